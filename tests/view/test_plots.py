"""Every plot is drawn, on a new figure and on given axes; numbers in it are checked."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, PowerSupply, Signal
from simmodel.results import Result
from simmodel.view import plots
from simmodel.view.gantt import shares
from simmodel.view.style import span_axis
from simmodel.work.table import Table
from simmodel.work.workload import Workload


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def schedule(count, seed=0, most=9, name="run"):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 60 * count, count)).astype(float)
    start = submit + np.where(rng.random(count) < 0.5, 0, rng.exponential(600, count))
    jobs = {"submit": submit, "start": start, "end": start + rng.exponential(900, count)}
    size = rng.integers(1, most, count)
    return Result(
        jobs={**jobs, "processors": size, "requested": 2000.0 * size, "user": rng.integers(0, 5, count)}, name=name
    )


SMALL, LARGE = schedule(60), schedule(9000, most=300)
DRAWINGS = {
    "gantt": lambda result, ax: plots.gantt(result, ax=ax),
    "gantt by job": lambda result, ax: plots.gantt(result, colour="job", ax=ax),
    "gantt by user": lambda result, ax: plots.gantt(result, colour="user", ax=ax),
    "utilisation": lambda result, ax: plots.utilisation(result, ax=ax),
    "queue": lambda result, ax: plots.queue(result, ax=ax),
    "processors waited for": lambda result, ax: plots.queue(result, processors=True, ax=ax),
    "power": lambda result, ax: plots.power_over_time(result, ax=ax),
    "bins": lambda result, ax: plots.value_by_bin(result, ax=ax),
    "bins of requests": lambda result, ax: plots.value_by_bin(result, by="requested", value="bounded_slowdown", ax=ax),
    "cdf": lambda result, ax: plots.cdf(result, ax=ax),
    "cdf of several": lambda result, ax: plots.cdf([result, SMALL], value="bounded_slowdown", ax=ax),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("result", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("drawing", DRAWINGS)
def test_drawings_return_the_axes_given(drawing, result):
    fig, ax = plt.subplots()
    assert DRAWINGS[drawing](result, ax) is ax
    fig.canvas.draw()


def test_drawings_on_figures_of_their_own():
    for draw in (SMALL.plot.gantt, SMALL.plot.utilisation, SMALL.plot.queue, SMALL.plot.power, SMALL.plot.wait_by_bin):
        assert draw().figure is not None
    assert SMALL.plot.cdf("turnaround").get_xlabel() == "turnaround"


@pytest.mark.few(1)
@pytest.mark.parametrize("result", [SMALL, LARGE], ids=["small", "large"])
def test_the_overview_counts_the_jobs(result, tmp_path):
    fig = result.plot.overview()
    fig.savefig(tmp_path / "overview.png", dpi=50)
    assert fig.get_suptitle().startswith(f"run: {len(result.jobs):,} jobs, {result.processors:,} processors\n")


def test_comparison_has_a_panel_a_metric():
    fig = plots.comparison(
        [SMALL, schedule(60, seed=1, name="other")], metrics=["wait_mean", "utilisation", "makespan"]
    )
    assert [ax.get_title("left") for ax in fig.axes] == ["mean wait", "utilisation", "makespan"]
    fig.canvas.draw()


def test_results_without_jobs_are_drawn_too():
    empty = Result(jobs={"submit": [], "start": [], "end": [], "processors": []}, processors=4)
    empty.plot.overview().canvas.draw()


def test_gantt_of_nodes_joins_neighbours():
    nodes = np.empty(1, dtype=object)
    nodes[0] = (0, 1, 3)
    runs = {"job": [1], "attempt": [1], "start": [0.0], "end": [4.0], "place": ["rack"], "processors": [3]}
    places = {"place": ["rack"], "processors": [4], "nodes": [4], "idle_power": [0.0], "load_power": [0.0]}
    jobs = {"submit": [0], "start": [0], "end": [4], "processors": [3]}
    table = Table({**runs, "status": ["completed"], "nodes": nodes})
    result = Result(jobs=jobs, runs=table, places=Table(places), processors=4)
    ax = plots.gantt(result)
    assert ax.get_ylabel() == "node"
    assert len(ax.collections[0].get_paths()) == 2


def test_image_of_many_rectangles_keeps_their_area():
    rng = np.random.default_rng(0)
    low, left = rng.uniform(0, 20, 500), rng.uniform(0, 60, 500)
    high, right = low + rng.uniform(0, 10, 500), left + rng.uniform(0, 40, 500)
    grid = shares([left, right], [low, high], np.ones(500), 100, 30)
    assert grid.sum() == pytest.approx(((high - low) * (right - left)).sum())
    one = shares([np.array([0.5]), np.array([2.25])], [np.array([1.0]), np.array([2.5])], np.ones(1), 4, 4)
    assert one[1].tolist() == pytest.approx([0.5, 1, 0.25, 0])
    assert one[2].tolist() == pytest.approx([0.25, 0.5, 0.125, 0])


def test_bars_say_what_falls_outside():
    ax = plots.value_by_bin(SMALL, bins=[0, 2, 4])
    outside = int((SMALL.jobs["processors"] > 4).sum())
    assert f"{outside} jobs outside" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("span", "label", "last"),
    [
        (0.5, "seconds", "0.5"),
        (90, "seconds", "90"),
        (7200, "minutes", "120"),
        (86400, "hours", "24"),
        (8e6, "days", "84"),
    ],
)
def test_time_axes_count_in_fitting_units(span, label, last):
    _, ax = plt.subplots()
    span_axis(ax, 1000, 1000 + span)
    assert ax.get_xlabel() == f"{label} since the start"
    assert ax.get_xticklabels()[-1].get_text() == last
    assert len(ax.get_xticks()) <= 12


def workload(count, **more):
    rng = np.random.default_rng(0)
    columns = {"submit": np.sort(rng.uniform(0, 30 * 86400, count)), "run": rng.lognormal(6, 2, count)}
    return Workload({**columns, "processors": 2 ** rng.integers(0, 8, count)}, name="made up", **more)


@pytest.mark.parametrize("count", [300, 5000])
def test_workload_pictures(count):
    log = workload(count)
    ax = plots.size_and_run(log)
    ax.figure.canvas.draw()
    assert ax.get_title("left") == f"made up: {count:,} jobs"
    plots.arrivals(log).figure.canvas.draw()


def test_jobs_without_a_run_time_are_told():
    log = workload(10).replace(run=np.append(np.full(9, 60.0), -1))
    assert "1 without" in plots.size_and_run(log).get_title("left")


def test_hours_are_local_where_the_header_tells():
    log = Workload(
        {"submit": [0.0], "run": [1.0], "processors": [1]},
        header={"UnixStartTime": "1700000000", "TimeZoneString": "Europe/Paris"},  # 22:13 UTC, 23:13 in Paris
    )
    heights = [patch.get_height() for patch in plots.arrivals(log).patches]
    assert heights.index(1.0) == 23


def test_a_chart_of_more_processors_than_memory_holds_is_one_sentence():
    from simmodel import Job, simulate
    from simmodel.foundation.errors import InputError

    result = simulate(10**18, [Job(processors=10**17, run=10)], "easy")
    for draw in (result.plot.gantt, result.plot.overview):
        with pytest.raises(InputError, match="processors to draw: must be at most 10,000,000"):
            draw()


def test_a_state_of_power_has_the_same_colour_whatever_else_draws_power():
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4, idle_power=100, load_power=300)])])
    small = simulate(spec, [Job(processors=4, run=100)], "easy")
    ax = small.plot.power(supply=PowerSupply(fixed=500), cap=Signal([0, 50], [900, 1100], end=100))
    assert (ax.get_ylabel(), ax.get_title(loc="left").split("\n")[0]) == ("power (kW)", "power, 0.025 kWh in all")
    assert [each.get_text() for each in ax.get_legend().get_texts()] == ["idle", "+ load", "+ other", "cap"]
    (line,) = (line for line in ax.lines if line.get_label() == "cap")
    assert line.get_ydata().tolist()[:2] == [0.9, 1.1]
    large = simulate("frontier", [Job(nodes=9000, cores_per_node=64, gpus_per_node=4, run=7200)], "easy")
    whole = large.plot.power()
    assert (whole.get_ylabel(), whole.get_title(loc="left").split("\n")[0]) == ("power (MW)", "power, 54.32 MWh in all")
    colours = [{each.get_label(): each.get_facecolor().tolist() for each in one.collections} for one in (ax, whole)]
    assert [*colours[1]] == ["idle", "+ load", "+ GPUs", "+ other"]
    assert all(colours[1][name] == colour for name, colour in colours[0].items())
    both = small.plot.power(ax=whole)
    assert both.get_ylabel() == "power (MW)"
    assert both.lines[-1].get_ydata().max() == pytest.approx(0.0004)
