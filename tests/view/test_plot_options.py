"""Plots share their options and refuse invalid ones in one sentence before they draw."""

import inspect
import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from simmodel.experiments import compare
from simmodel.foundation.errors import InputError, MissingExtra
from simmodel.generators import grid_jobs, tiered_grid
from simmodel.metrics._examples import two_kinds
from simmodel.policies import Portfolio
from simmodel.results import MachineResult, Result
from simmodel.runs import simulate
from simmodel.view.machine_plots import MachinePlots
from simmodel.work import Job

JOBS = [Job(processors=3, run=10, user=1), Job(processors=4, run=100, user=2), Job(submit=5, processors=1, run=10)]
RESULT = simulate(4, JOBS, "easy")
CHOSEN = simulate(4, JOBS, Portfolio(["easy", "sjf+easy"], "slowdown_mean"))
BROKERED = simulate({"a": 4, "b": 4}, {"a": JOBS}, "sgs-t")
MACHINE: MachineResult = simulate("hetsim-slow", "random:tasks=10", "heft")
GRID = simulate(SPEC := tiered_grid(3, files=5, seed=1), grid_jobs(SPEC, 10, seed=1), "round-robin")
GPUS = simulate("gpu-cluster", [Job(nodes=1, gpus_per_node=1, run=10, partition="gpu")], "easy")
PLOTS = [
    *((GRID.plot, name) for name in ("sites", "flows", "map", "overview")),
    *((each.plot, name) for each in (RESULT, BROKERED, MACHINE) for name in dir(each.plot) if not name.startswith("_")),
    *((CHOSEN.plot, name) for name in ("scores", "starts_by_policy")),
    (GPUS.plot, "gpus"),
]
OF_SOME = {"scores": CHOSEN.plot, "starts_by_policy": CHOSEN.plot, "gpus": GPUS.plot}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def drawn(faces, name):
    if OF_SOME.get(name, faces) is not faces:
        pytest.skip("the run has no such figures")
    return getattr(faces, name)


@pytest.mark.parametrize(("menu", "name"), [(type(faces), name) for faces, name in PLOTS])
def test_menus_have_the_signatures_and_docstrings_of_the_functions(menu, name):
    function, method = getattr(menu, name), getattr(menu(RESULT), name)
    assert (
        list(inspect.signature(method).parameters.values()) == list(inspect.signature(function).parameters.values())[1:]
    )
    assert inspect.getdoc(method) == inspect.getdoc(function)
    assert {each.name: each.kind for each in inspect.classify_class_attrs(menu)}[name] == "method"


IDS = [f"{type(faces).__name__}.{name}" for faces, name in PLOTS]


@pytest.mark.few(18)
@pytest.mark.parametrize(("faces", "name"), PLOTS, ids=IDS)
def test_title_and_size_are_the_users(faces, name):
    found = drawn(faces, name)(title="mine", figsize=(5.5, 3.5))
    figure = getattr(found, "figure", None) or found
    assert figure.get_size_inches().tolist() == [5.5, 3.5]
    texts = [*figure.get_suptitle().split("\n"), *(ax.get_title(loc="left") for ax in figure.axes)]
    assert "mine" in [*texts, *(text.get_text() for ax in figure.axes for text in ax.texts)]


@pytest.mark.few(12)
@pytest.mark.parametrize(("faces", "name"), PLOTS, ids=IDS)
def test_wrong_sizes_and_axes_with_a_size(faces, name):
    draw = drawn(faces, name)
    for wrong in (7, (3,), (0, 4), ("a", 4), (4, float("inf"))):
        with pytest.raises(InputError, match="figsize: must be width and height in inches"):
            draw(figsize=wrong)
    if "ax" in inspect.signature(draw).parameters:
        with pytest.raises(InputError, match="figsize and ax exclude each other"):
            draw(figsize=(4, 4), ax=plt.figure().subplots())
    assert len(plt.get_fignums()) <= 1, "what is refused leaves no figure"


@pytest.mark.parametrize("name", ["utilisation", "queue", "power", "wait_by_bin"])
def test_wrong_colours_are_refused(name):
    assert getattr(RESULT.plot, name)(colour="tab:red")
    with pytest.raises(InputError, match=r"colour: must be a colour of matplotlib, such as .*, got 'usr'"):
        getattr(RESULT.plot, name)(colour="usr")


@pytest.mark.parametrize(
    ("draw", "sentence"),
    {
        "colour": (lambda: RESULT.plot.gantt(colour="usr"), "colour 'usr'.*'user'.*wait, job, "),
        "place of a chart": (lambda: RESULT.plot.gantt(place="x"), "place 'x'.*batch"),
        "place": (lambda: RESULT.plot.utilisation(place="x"), "place 'x'.*batch"),
        "value": (lambda: RESULT.plot.cdf("wiat"), "value 'wiat'.*'wait'"),
        "value in bins": (lambda: RESULT.plot.wait_by_bin(value="wiat"), "value 'wiat'.*'wait'"),
        "column of text": (lambda: RESULT.plot.cdf("status"), "value 'status'"),
        "statistic": (lambda: RESULT.plot.wait_by_bin(statistic="men"), "statistic: must be one of mean.*got 'men'"),
        "bins": (lambda: RESULT.plot.wait_by_bin(bins=[1]), "bins: must be two or more increasing edges"),
        "no bins": (lambda: RESULT.plot.wait_by_bin("user"), "bins for 'user'"),
        "scores": (lambda: RESULT.plot.scores(), "^easy: must be a run under a portfolio of policies$"),
        "starts": (lambda: RESULT.plot.starts_by_policy(), "^easy: must be a run under a portfolio of policies$"),
        "weekly": (lambda: BROKERED.plot.weekly("use"), "value 'use'.*utilisation, submitted, handed"),
        "processors": (lambda: MACHINE.plot.gantt(processors=["x"]), "processor 'x'"),
        "pools": (lambda: MACHINE.plot.memory(pools=["x"]), "memory pool 'x'"),
        "links": (lambda: MACHINE.plot.links(names=["x"]), "link 'x'"),
        "plan": (lambda: MachinePlots(two_kinds()).plan(), "^example: must be a run under a planner$"),
        "metric": (lambda: compare(4, JOBS, ["fcfs"]).plot(["wiat_mean"]), "metric 'wiat_mean'.*'wait_mean'"),
        "warmup": (lambda: RESULT.metrics(warmup="x"), "warmup: must be seconds or a share"),
        "cooldown": (lambda: RESULT.summary(cooldown=-1), "cooldown: must be >= 0 s, got -1"),
    }.values(),
)
def test_wrong_options(draw, sentence):
    with pytest.raises(InputError, match=sentence):
        draw()
    assert not plt.get_fignums(), "what is refused leaves no figure"


def test_metrics_of_tasks_have_no_warmup():
    runs = compare("hetsim-slow", "random:tasks=10", ["hrr", "heft"])
    with pytest.raises(InputError, match="hrr: warmup, cooldown and tau are options of metrics of jobs"):
        runs.metrics(warmup=5)
    assert len(runs.metrics(["makespan"])) == 2


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("matplotlib", "plot", lambda: RESULT.plot.queue()),
        ("matplotlib", "plot", lambda: RESULT.plot.overview()),
        ("matplotlib", "plot", lambda: BROKERED.plot.clusters()),
        ("pandas", "tables", lambda: RESULT.jobs.to_pandas()),
        ("pyarrow", "tables", lambda: RESULT.to_parquet("never written")),
        ("tqdm", "plot", lambda: compare(4, JOBS, ["fcfs"], progress=True)),
    ],
)
def test_missing_dependencies_name_their_extra(module, extra, call, monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as caught:
        call()
    assert str(caught.value) == f"{module} is not installed: pip install 'simmodel[{extra}]'"
    assert isinstance(caught.value, ImportError)


def test_extras_are_those_of_the_package():
    import tomllib

    from simmodel.foundation.errors import EXTRAS
    from tests.helpers.paths import PACKAGE

    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    listed = project["optional-dependencies"]
    for name, extra in EXTRAS.items():
        module = {"sklearn": "scikit-learn"}.get(name, name)
        assert any(each.startswith(module.replace("_", "-")) or f"[{module}]" in each for each in listed[extra]), (
            module,
            extra,
        )


def test_results_take_their_options_by_name():
    with pytest.raises(TypeError, match="warmupp"):
        Result.metrics(RESULT, warmupp=3)
