"""Plots of the largest and the shortest values end with a picture or with one sentence."""

import io
from functools import cache

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.policies import Portfolio
from simmodel.runs import simulate
from simmodel.view import arrivals, size_and_run
from simmodel.work import Job, Task, Workflow, Workload

MANY = 10**18
SECONDS = [1e300, 1e10, 1e-300]
TOO_MANY = "must be at most 10,000,000 (limit count), got "


def jobs(seconds):
    return [
        Job(id=1, processors=MANY, run=seconds, user=1),
        Job(id=2, submit=seconds / 2, processors=MANY // 3, run=seconds, user=2),
        Job(id=3, submit=seconds, processors=1, run=seconds / 4),
    ]


def on_gpus(seconds):
    return [Job(id=1, nodes=1, gpus_per_node=0.5, run=seconds), Job(id=2, nodes=1, gpus_per_node=2, run=seconds)]


ON_GPUS = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus={"T4": 2})])])
RUNS = {
    "cluster": lambda seconds: simulate(MANY, jobs(seconds), "easy"),
    "broker": lambda seconds: simulate({"a": MANY, "b": MANY}, {"a": jobs(seconds)}, "sgs-t"),
    "gpus": lambda seconds: simulate(ON_GPUS, on_gpus(seconds), "fcfs"),
    "machine": lambda seconds: simulate("hetsim-slow", Workflow([Task(id=i, run=seconds) for i in range(3)]), "heft"),
    "portfolio": lambda seconds: simulate(MANY, jobs(seconds), Portfolio(["easy", "sjf"], "wait_mean")),
}
PLOTS = [
    *(("cluster", name) for name in ("cdf", "gantt", "overview", "power", "queue", "utilisation", "wait_by_bin")),
    *(("broker", name) for name in ("cdf", "clusters", "flows", "gantt", "overview", "queue", "utilisation", "weekly")),
    ("gpus", "gpus"),
    *(("machine", name) for name in ("gantt", "links", "memory", "overview", "phases", "plan")),
    *(("portfolio", name) for name in ("scores", "starts_by_policy")),
]


@cache
def result(kind, seconds):
    """Return the result of a run."""
    return RUNS[kind](seconds)


def picture(draw):
    """Draw and render; return the message of an error."""
    try:
        found = draw()
    except InputError as error:
        assert not plt.get_fignums(), "a refused plot leaves no figure open"
        return str(error)
    file = io.BytesIO()
    (getattr(found, "figure", None) or found).savefig(file, format="png", dpi=40)
    plt.close("all")
    assert file.getvalue().startswith(b"\x89PNG")
    return ""


pytestmark = [  # sums beyond 1.8e308 are infinite, and labels of 300 digits leave no room for axes
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:constrained_layout not applied:UserWarning"),
]


@pytest.mark.few(5)
@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize(("kind", "name"), PLOTS)
def test_results_of_huge_and_of_tiny_values(kind, name, seconds):
    said = picture(getattr(result(kind, seconds).plot, name))
    if said:
        counted = "weeks" if name in ("clusters", "weekly") else "processors to draw"
        assert said.startswith(f"{counted}: {TOO_MANY}")
        assert kind != "machine"
        assert counted != "weeks" or seconds > 1


@pytest.mark.few(5)
@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("draw", [arrivals, size_and_run])
def test_workloads_of_huge_and_of_tiny_values(draw, seconds):
    assert picture(lambda: draw(Workload.from_jobs(jobs(seconds)))) == ""


def test_intervals_of_weekly_figures():
    plot = result("broker", 1e10).plot
    for wrong in (0, -1, float("nan")):
        with pytest.raises(InputError, match="interval: must be > 0 s, got"):
            plot.weekly(interval=wrong)
    with pytest.raises(InputError, match="weeks: must be at most"):
        plot.weekly(interval=1e-3)


@pytest.mark.parametrize("kind", ["cluster", "broker", "machine"])
def test_every_plot_is_drawn(kind):
    names = {name for name in dir(result(kind, 1e10).plot) if not name.startswith("_")}
    assert names <= {
        name for each, name in PLOTS if each in (kind, "portfolio", "gpus") or (kind, each) == ("broker", "cluster")
    }
