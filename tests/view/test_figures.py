"""Figures for papers: no text is cut or covered, each has one size, and files have text as text."""

import functools
import importlib
import inspect
import io
import pkgutil
import re
import zlib

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import simmodel.view
from simmodel import Environment, Network, explore, load_workload, simulate
from simmodel.experiments import calibrate, optimise, sensitivity
from simmodel.foundation.errors import InputError
from simmodel.futures import what_if
from simmodel.generators import grid_jobs, tiered_grid
from simmodel.metrics.objective_scores import kiviat
from simmodel.metrics.statistics import Interval
from simmodel.platform import ClusterSpec, LinkSpec, NodeSpec, PartitionSpec
from simmodel.policies import Portfolio
from simmodel.records import NetworkRecorder
from simmodel.runs import start
from simmodel.studies import fat_curve, setup_study
from simmodel.view import experiment_plots, plots, portfolio_plots
from simmodel.view.style import STYLES, axes, drawn, tidy
from simmodel.work import Job, Table


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


LOG = "lublin-128-week"


@functools.cache
def run(policy="easy"):
    return simulate(128, LOG, policy)


@functools.cache
def chosen():
    return simulate(128, LOG, Portfolio(["easy", "sjf+easy", "fcfs"], "slowdown_mean"), until="2d")


@functools.cache
def brokered(policy="sgs-t"):
    return simulate({"alpha": 128, "beta": 64, "gamma": 256}, {"alpha": LOG, "beta": LOG}, policy, until="3d")


@functools.cache
def two(policy):
    return simulate({"alpha": 128, "beta": 64}, {"alpha": LOG, "beta": LOG}, policy, until="3d")


@functools.cache
def machine(policy="heft"):
    return simulate("hetsim-slow", "random:tasks=60", policy)


@functools.cache
def grid():
    spec = tiered_grid(30, files=40, seed=1)
    return simulate(spec, grid_jobs(spec, 300, seed=1), "round-robin")


@functools.cache
def network(transfers):
    env = Environment()
    links = Network(env, [LinkSpec(name=f"a link with a long name {i}", bandwidth=100.0 * i) for i in (1, 2, 3)])
    record = NetworkRecorder(links)
    env.observe(record)
    for i in range(transfers):
        links.transfer(100 + 7 * i, route=[f"a link with a long name {1 + i % 3}"])
    env.run()
    return record


@functools.cache
def indices(method):
    return sensitivity(
        lambda a, longer_name, z: 3 * a + longer_name * z,
        dict.fromkeys(("a", "longer_name", "z"), (0, 1)),
        method=method,
        samples=64,
    )


@functools.cache
def calibrated():
    record = {"site": [f"SITE-{i}" for i in range(12)], "walltime": np.arange(2.0, 14.0)}
    return calibrate(lambda x=1.0: {"walltime": np.full(12, x)}, record, {"x": (1, 4)}, budget=8)


def drawing(name):
    module, function = name.split(".")
    return getattr(importlib.import_module(f"simmodel.view.{module}"), function)


POLICIES = ["fcfs", "easy", "sjf", "easy(order=sjf)", "conservative"]
WAITS = [(0.0, 900.0, "order"), (900.0, 4000.0, "processors"), (4000.0, 4100.0, "limit")]
HOLDERS = [(1000 + i, 8 * i + 1, 4000.0 + 900 * i) for i in range(24)]
PLACES = [
    {
        "place": f"site {i}",
        "estimated_start": 60.0 * i,
        "estimated_end": 900.0 + 60 * i,
        "start": 90.0 * i,
        "end": 950.0 + 90 * i,
    }
    for i in range(5)
]
ERRORS = {
    "target": ["run", "run", "wait", "wait"],
    "method": ["gradient boosting", "simulation"] * 2,
    "error": [900.0, 7000.0, 300.0, 80.0],
    "relative": [0.2, 1.4, 0.3, 0.1],
}
ROWS = [
    {
        "case": f"easy with 20 nodes more and order {i}",
        "difference": -944.0 * i,
        "low": -944.0 * i - 300,
        "high": -944.0 * i + 300,
        "percent": -5.9 * i,
        "percent_low": -5.9 * i - 2,
        "percent_high": -5.9 * i + 2,
        "verdict": "better by 5.9 % (4.0 to 7.8)",
    }
    for i in (-1, 0, 1, 2)
]
DRAWN = {
    "broker_plots.weeks": lambda **o: brokered().plot.weekly(interval=86400.0, **o),
    "broker_plots.flows": lambda **o: brokered().plot.flows(**o),
    "broker_plots.clusters": lambda **o: brokered().plot.clusters(**o),
    "broker_plots.means_by_bin": lambda **o: drawing("broker_plots.means_by_bin")([run("easy"), run("fcfs")], **o),
    "broker_plots.before_and_after": lambda **o: drawing("broker_plots.before_and_after")(
        brokered("siloed"), brokered(), **o
    ),
    "calibration_plots.site_errors": lambda **o: drawing("calibration_plots.site_errors")(calibrated(), **o),
    "calibration_plots.convergence": lambda **o: drawing("calibration_plots.convergence")(
        {"gaussian process": calibrated(), "b": calibrated()}, **o
    ),
    "experiment_plots.exploration": lambda **o: explore([64, 128], [LOG, "probe-4"], POLICIES, seeds=1).plot(
        ["wait_mean", "utilisation"], **o
    ),
    "experiment_plots.front": lambda **o: optimise(
        lambda x, y: {"a": x, "b": -x - y}, {"x": (0, 9, "integer"), "y": [0, 1]}, ["a", "b"], "all"
    ).plot(**o),
    "experiment_plots.index_bars": lambda **o: indices("sobol").plot(**o),
    "experiment_plots.effects": lambda **o: indices("morris").plot_effects(**o),
    "experiment_plots.differences": lambda **o: experiment_plots.differences(ROWS, "mean wait", **o),
    "experiment_plots.errors_of_methods": lambda **o: experiment_plots.errors_of_methods(Table(ERRORS), **o),
    "gantt.gantt": lambda **o: run().plot.gantt(**o),
    "gantt.machine_gantt": lambda **o: machine().plot.gantt(**o),
    "grid_plots.site_heat": lambda **o: grid().plot.sites(**o),
    "grid_plots.grid_flows": lambda **o: grid().plot.flows(**o),
    "grid_plots.grid_map": lambda **o: grid().plot.map(**o),
    "grid_plots.link_heat": lambda **o: drawing("grid_plots.link_heat")(network(40), **o),
    "grid_plots.grid_overview": lambda **o: grid().plot.overview(**o),
    "machine_plots.memory": lambda **o: machine().plot.memory(**o),
    "machine_plots.links": lambda **o: machine().plot.links(**o),
    "machine_plots.phases": lambda **o: machine().plot.phases(**o),
    "machine_plots.plan": lambda **o: machine().plot.plan(**o),
    "machine_plots.machine_overview": lambda **o: machine().plot.overview(**o),
    "network_plots.link_load": lambda **o: drawing("network_plots.link_load")(network(40), **o),
    "network_plots.transfer_times": lambda **o: drawing("network_plots.transfer_times")(network(40), **o),
    "plots.size_and_run": lambda **o: plots.size_and_run(load_workload(LOG), **o),
    "plots.arrivals": lambda **o: plots.arrivals(load_workload(LOG), **o),
    "plots.overview": lambda **o: run().plot.overview(**o),
    "plots.comparison": lambda **o: plots.comparison([run(each) for each in POLICIES], **o),
    "portfolio_plots.radar": lambda **o: portfolio_plots.radar(kiviat([run(each) for each in POLICIES]), **o),
    "portfolio_plots.starts_by_policy": lambda **o: chosen().plot.starts_by_policy(**o),
    "portfolio_plots.score_over_time": lambda **o: chosen().plot.scores(**o),
    "portfolio_plots.portfolio_page": lambda **o: portfolio_plots.portfolio_page(
        chosen(), kiviat([run(), chosen()]), **o
    ),
    "portfolio_plots.replay_page": lambda **o: portfolio_plots.replay_page(
        run("fcfs"), run(), [(3600.0, "easy", 3), (90000.0, "sjf", 2)], **o
    ),
    "portfolio_plots.outcomes": lambda **o: futures().plot(**o),
    "referee_plots.departures": lambda **o: verified().plot(**o),
    "referee_plots.explained": lambda **o: drawing("referee_plots.explained")(
        {each: (np.arange(500.0), np.arange(500) % 3 > 0) for each in POLICIES}, **o
    ),
    "referee_plots.in_the_way": lambda **o: drawing("referee_plots.in_the_way")(
        WAITS, HOLDERS, 4100.0, [(0.0, 9000.0), (900.0, 12000.0)], **o
    ),
    "referee_plots.waits_of_a_task": lambda **o: drawing("referee_plots.waits_of_a_task")(
        [(*each, "another task") for each in WAITS], 0.0, **o
    ),
    "referee_plots.places_for_a_job": lambda **o: drawing("referee_plots.places_for_a_job")(PLACES, "site 2", 0.0, **o),
    "result_plots.utilisation": lambda **o: run().plot.utilisation(**o),
    "result_plots.queue": lambda **o: run().plot.queue(**o),
    "result_plots.gpus_over_time": lambda **o: on_gpus().plot.gpus(**o),
    "result_plots.power_over_time": lambda **o: run().plot.power(**o),
    "result_plots.value_by_bin": lambda **o: run().plot.wait_by_bin(**o),
    "result_plots.cdf": lambda **o: run().plot.cdf([run("fcfs"), run("sjf"), brokered()], **o),
    "study_plots.setup_study": lambda **o: setups().plot(**o),
    "study_plots.fat_curve": lambda **o: fats().plot(**o),
    "study_plots.case_study": lambda **o: drawing("study_plots.case_study")(two("siloed"), two("sgs-t"), **o),
}


@functools.cache
def on_gpus():
    nodes = [NodeSpec(cores=8, gpus={"A100": 1, "T4": 1}, count=2), NodeSpec(name="t", cores=8, gpus={"T4": 2})]
    jobs = [Job(nodes=1, gpus_per_node=0.6, gpu="T4", run=10), Job(nodes=1, gpus_per_node=2, run=20, submit=5)]
    return simulate(ClusterSpec(partitions=[PartitionSpec(nodes=nodes)]), jobs, "easy")


@functools.cache
def futures():
    simulation = start(128, LOG, "easy")
    simulation.run(until=400_000)
    return what_if(simulation.snapshot(), POLICIES)


@functools.cache
def verified():
    from simmodel.referee import verify

    return verify(LOG, run("fcfs"), 128, "easy")


@functools.cache
def setups():
    return setup_study(["hrr", "heft"], seeds=2)


@functools.cache
def fats():
    return fat_curve(fats=[0.2, 0.8], ccrs=[0.1, 1.0, 10.0], seeds=2, shape={"n": 20})


def test_every_plot_of_the_package_is_looked_at():
    known = set()
    for module in pkgutil.iter_modules(simmodel.view.__path__):
        if module.name not in ("page", "style"):
            found = importlib.import_module(f"simmodel.view.{module.name}")
            known |= {
                f"{module.name}.{name}"
                for name, each in vars(found).items()
                if inspect.isfunction(each)
                and each.__module__ == found.__name__
                and "style" in inspect.signature(each).parameters
            }
    assert set(DRAWN) == known


def texts(figure):
    """Return pairs of kind and text of all texts that are shown, and their boxes in pixels."""
    figure.draw_without_rendering()
    shown = [("title", text) for text in figure.texts]
    for ax in figure.axes:
        shown += [
            ("note" if text in ax.texts else "title", text)
            for text in ax.get_children()
            if isinstance(text, mpl.text.Text)
        ]
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            shown.append(("label", axis.label))
            low, high = sorted(axis.get_view_interval())
            room = 1e-6 * (high - low)
            inside = [tick for tick in axis.get_major_ticks() if low - room <= tick.get_loc() <= high + room]
            shown += [(f"tick {axis.axis_name}", tick.label1) for tick in inside]
        legend = ax.get_legend()
        shown += [("legend", text) for text in legend.get_texts()] if legend is not None else []
    return [
        (kind, text.get_text(), text.get_window_extent())
        for kind, text in shown
        if text.get_text().strip() and text.get_visible()
    ]


def covered(one, other):
    """Return whether two boxes share more than a rim of half a pixel."""
    return min(one.x1, other.x1) - max(one.x0, other.x0) > 0.5 and min(one.y1, other.y1) - max(one.y0, other.y0) > 0.5


@pytest.mark.parametrize("high", [1.191, 1.195])
def test_a_last_number_that_comes_with_the_width_is_not_cut(high):
    @drawn
    def bars(**look):
        ax = axes(None, (6.4, 2.2))
        ax.barh(["a", "longer_name"], [high, 0.3])
        return tidy(ax, grid="x", default="total")

    figure = bars(style="ieee-column").figure
    for _ in range(2):
        assert all(box.x1 <= figure.bbox.width + 0.5 for _, _, box in texts(figure))


@pytest.mark.few(20)
@pytest.mark.filterwarnings("error:constrained_layout not applied")
@pytest.mark.parametrize("style", ["ieee-column", None])
@pytest.mark.parametrize("name", DRAWN)
def test_no_text_is_cut_or_covered(name, style):
    found = DRAWN[name](style=style)
    figure = getattr(found, "figure", None) or found
    if style is not None:
        assert figure.get_figwidth() == STYLES[style].width
        assert figure.get_figheight() <= STYLES[style].height
    shown = texts(figure)
    wide, high = figure.bbox.width, figure.bbox.height
    outside = [
        text for _, text, box in shown if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > wide + 0.5 or box.y1 > high + 0.5
    ]
    assert not outside
    kept = [each for each in shown if each[0] != "note"]  # those at points are where the points are
    assert not [(one[1], other[1]) for i, one in enumerate(kept) for other in kept[:i] if covered(one[2], other[2])]


@pytest.mark.parametrize("size", [7, 13])
def test_all_text_has_the_size_of_the_settings(size):
    with mpl.rc_context({"font.size": size}):
        for name in ("result_plots.cdf", "result_plots.queue", "plots.comparison", "experiment_plots.front"):
            found = DRAWN[name]()
            figure = getattr(found, "figure", None) or found
            figure.draw_without_rendering()
            assert {text.get_fontsize() for text in figure.findobj(mpl.text.Text) if text.get_text()} == {size}


def test_all_text_has_the_size_of_the_style_also_when_it_is_saved_later():
    figure = run().plot.wait_by_bin(style="acm-column").figure
    figure.savefig(io.BytesIO(), format="png")
    figure.draw_without_rendering()
    assert {text.get_fontsize() for text in figure.findobj(mpl.text.Text) if text.get_text()} == {8}


def streams(pdf):
    """Yield a PDF and its streams, inflated."""
    yield pdf
    for found in re.finditer(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            yield zlib.decompress(found[1])
        except zlib.error:
            continue


@pytest.mark.parametrize("by", ["the plot", "the figure"])
def test_files_have_text_as_text(by, tmp_path):
    path, picture = tmp_path / "a.pdf", tmp_path / "a.svg"
    if by == "the plot":
        run().plot.queue(save=path, style="springer")
        run().plot.queue(save=picture)
    else:
        run().plot.queue().figure.savefig(path)
        run().plot.queue().figure.savefig(picture)
    found = b"".join(streams(path.read_bytes()))
    assert b"/Type /Font" in found
    assert re.search(rb"/Subtype\s*/Type3", found) is None
    assert re.search(rb"/Subtype\s*/CIDFontType2", found)
    assert "waiting jobs</text>" in picture.read_text("utf-8")


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a\.doc: must be a picture \(.*\.pdf.*got '\.doc'"):
        run().plot.queue(save=tmp_path / "a.doc")
    assert not list(tmp_path.iterdir())


def test_unknown_styles_are_refused():
    with pytest.raises(InputError, match="unknown style 'ieee-colum'; did you mean 'ieee-column'"):
        run().plot.queue(style="ieee-colum")
    assert not plt.get_fignums()


@pytest.mark.parametrize("plot", ["cdf", "queue", "utilisation"])
def test_results_on_the_same_axes_have_their_own_colours_and_labels(plot):
    ax = plt.figure().subplots()
    for policy in ("fcfs", "easy", "sjf"):
        assert getattr(run(policy).plot, plot)(ax=ax) is ax
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    assert len({line.get_color() for line in lines}) == len(lines) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fcfs", "easy", "sjf"]


def test_results_of_one_name_are_labelled_by_what_differs():
    ax = plt.figure().subplots()
    for size in (128, 192):
        simulate(size, LOG, "easy").plot.cdf(ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["easy, 128 processors", "easy, 192 processors"]


def test_several_results_in_any_form():
    a, b, c = run("fcfs"), run("easy"), run("sjf")
    forms = [plots.cdf([a, b, c]), plots.cdf(a, b, c), a.plot.cdf([a, b, c]), a.plot.cdf(b, c), a.plot.cdf([b, c])]
    for found in forms:
        assert [line.get_label() for line in found.get_lines()] == ["fcfs", "easy", "sjf"]
    assert a.plot.cdf([a, b], "slowdown").get_xlabel() == a.plot.cdf("slowdown").get_xlabel() == "slowdown"
    assert plots.cdf([a, b], value="slowdown").get_xlabel() == "slowdown"
    assert [line.get_color() for line in plots.cdf([a, b], color=["red", "blue"]).get_lines()] == ["red", "blue"]
    with pytest.raises(InputError, match="colour: must be one for each of 2 results"):
        plots.cdf([a, b], colour="red")


def test_the_title_of_a_run_says_log_machine_policy_and_number_of_jobs():
    for found in (run().plot.queue(), run().plot.gantt(), run().plot.cdf(style="ieee-column")):
        assert "easy: lublin-128-week, 600 jobs, 128 processors" in " ".join(found.get_title(loc="left").split("\n"))
    assert run().plot.overview().get_suptitle().startswith("easy: lublin-128-week, 600 jobs, 128 processors\n")
    assert run().plot.queue(title="mine").get_title(loc="left") == "mine"
    assert plots.comparison([run("easy"), run("fcfs")]).get_suptitle() == "lublin-128-week, 600 jobs, 128 processors"


def test_bars_beside_each_other_count_in_one_unit():
    (ax,) = plots.comparison([run("easy"), run("fcfs")], metrics=["wait_mean"]).axes
    assert [text.get_text() for text in ax.texts] == ["4 h 12 min", "24 h 21 min"]


def test_bars_have_intervals():
    pair = [run("easy"), run("fcfs")]
    intervals = {"wait_mean": [Interval(15e3, 2e3, 0.95, 9), Interval(88e3, 9e3, 0.95, 9)]}
    found = plots.comparison(pair, metrics=["wait_mean"], intervals=intervals)
    (bars,) = [each for each in found.axes[0].containers if isinstance(each, mpl.container.ErrorbarContainer)]
    assert [segment[:, 0].tolist() for segment in bars[2][0].get_segments()] == [
        pytest.approx([run(name).metrics()["wait_mean"] - half, run(name).metrics()["wait_mean"] + half])
        for name, half in (("easy", 2e3), ("fcfs", 9e3))
    ]


def test_differences_are_grey_where_they_are_not_decided():
    names = ("case", "verdict", "percent", "percent_low", "percent_high", "difference", "low", "high")
    rows = [
        dict(zip(names, (*row, *row[2:]), strict=True))
        for row in (
            ("a", "better by 5 %", -5.0, -7.0, -3.0),
            ("b", "not decided", 1.0, -1.0, 3.0),
            ("c", "one run: no interval", 1.0, np.nan, np.nan),
        )
    ]
    ax = experiment_plots.differences(rows, "mean wait").axes[0]
    assert [line.get_color() for line in ax.get_lines() if line.get_marker() == "o"] == [
        "#2f6690",
        "#8b929a",
        "#8b929a",
    ]
    assert [text.get_text() for text in ax.texts] == ["better by 5 %", "not decided", "one run: no interval"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    assert all("%" in text.get_text() or text.get_text() == "0" for text in ax.get_xticklabels())
