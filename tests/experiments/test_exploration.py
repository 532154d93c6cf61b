"""Explorations: every combination once, the same seeds for all, and their intervals."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import isnan

import numpy as np
import pytest

from simmodel import InputError, Task, Workflow
from simmodel.catalogue import load_tasks
from simmodel.experiments.comparison import Exploration, explore
from simmodel.experiments.replication import replicate
from simmodel.generators.settings import generate
from simmodel.runs.scenario import Scenario, simulate
from tests.helpers.small_machines import small_machine

GPU = {"name": "gpu0", "setup": 10}


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(
        {"slow": "hetsim-slow", "setup": "hetsim-slow-setup"},
        ["layered:n=15", "random:tasks=15"],
        {"in turn": "hrr", "planned": "heft"},
        seeds=4,
    )


def test_every_combination_has_every_seed(found: Exploration) -> None:
    assert len(found.cells) == 8
    assert len(found.samples) == 32
    assert repr(found) == "<Comparison: 2 platforms x 2 workloads x 2 policies x 4 seeds>"
    seeds = [found[cell].samples["seed"].tolist() for cell in found]
    assert seeds == [seeds[0]] * 8


def test_a_sample_is_what_a_run_measures(found: Exploration) -> None:
    cell = found["setup", "layered:n=15", "planned"]
    seed = int(cell.samples["seed"][2])
    alone = simulate("hetsim-slow-setup", "layered:n=15", "heft", seed=seed)
    assert cell.samples["makespan"][2] == alone.metrics()["makespan"]


def test_policies_see_the_same_draws(found: Exploration) -> None:
    for platform in ("slow", "setup"):
        paths = [
            (cell.samples["makespan"] / cell.samples["slr"]).tolist()
            for policy in ("in turn", "planned")
            for cell in [found[platform, "layered:n=15", policy]]
        ]
        assert paths[0] == pytest.approx(paths[1])
    first, second = (("slow", "layered:n=15", policy) for policy in ("in turn", "planned"))
    paired = found.difference(first, second, metric="slr")
    apart = found.interval("slr", first).mean - found.interval("slr", second).mean
    assert paired.mean == pytest.approx(apart)


def test_the_table_has_means_and_intervals(found: Exploration) -> None:
    table = found.table
    assert len(table) == 8
    assert table["seeds"].tolist() == [4] * 8
    interval = found.interval("slr", ("slow", "layered:n=15", "in turn"))
    assert (table["slr"][0], table["slr_low"][0], table["slr_high"][0]) == (interval.mean, interval.low, interval.high)
    text = found.summary(["slr", "makespan"])
    assert len(text.splitlines()) == 9
    assert text.splitlines()[0].split() == ["platform", "workload", "policy", "SLR", "makespan"]
    assert "<table>" in found._repr_html_()
    with pytest.raises(InputError, match="unknown metric 'slrr'; did you mean 'slr'"):
        found.summary(["slrr"])
    with pytest.raises(KeyError, match="must fit one combination"):
        found["slow"]


def test_plots_of_explorations_name_metrics_and_policies(found: Exploration) -> None:
    import matplotlib.pyplot as plt

    figure = found.plot(["slr", "makespan"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["SLR", "makespan"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["in turn", "planned"]
    figure.savefig("/dev/null", format="png")
    found.plot(["slr"], log=True)
    plt.close("all")


def test_an_executor_changes_nothing_and_one_seed_has_no_interval() -> None:
    flow = Workflow([Task(id=i, run=i + 1.0) for i in range(6)], name="six")
    spec = small_machine(GPU)
    with ThreadPoolExecutor(2) as pool:
        threads = explore(spec, flow, ["hrr", "heft"], seeds=[5], executor=pool)
    here = explore(spec, flow, ["hrr", "heft"], seeds=[5])
    assert threads.samples["makespan"].tolist() == here.samples["makespan"].tolist()
    interval = here.interval("makespan", "heft")
    assert isnan(interval.half_width)
    assert "±" not in here.summary()
    assert repr(here) == "<Comparison: 1 platform x 1 workload x 2 policies x 1 seed>"


def test_work_may_be_drawn_by_a_function() -> None:
    drawn = explore("hetsim-slow", partial(load_tasks, "random:tasks=10"), ["hrr"], seeds=3)
    named = explore("hetsim-slow", "random:tasks=10", ["hrr"], seeds=3)
    assert drawn.samples["makespan"].tolist() == named.samples["makespan"].tolist()
    assert len(np.unique(drawn.samples["makespan"])) == 3


def test_numbers_of_processors_are_platforms() -> None:
    found = explore([4, 8], "probe-4", ["fcfs", "easy"], seeds=[0])
    assert found.labels("platform") == ["4", "8"]
    assert "mean wait" in found.summary(["wait_mean"])


def test_jobs_are_drawn_for_each_seed() -> None:
    text = "lublin:jobs=60,processors=64"
    found = explore(64, text, ["fcfs", "easy"], seeds=3)
    assert found.labels("workload") == [text]
    rows = found["fcfs"].samples
    assert len(set(rows["makespan"].tolist())) == 3
    settings = {"generator": "lublin", "parameters": {"jobs": 60, "processors": 64}}
    for seed, makespan in zip(rows["seed"].tolist(), rows["makespan"].tolist(), strict=True):
        drawn = generate(settings, seed=int(seed))
        assert simulate(64, drawn, "fcfs").metrics()["makespan"] == makespan
        assert simulate(64, text, "fcfs", seed=int(seed)).metrics()["makespan"] == makespan


def test_a_scenario_draws_its_jobs_again() -> None:
    text = "lublin:jobs=60,processors=64"
    first = simulate(None, text, "fcfs", seed=7)
    again = Scenario.from_document(json.loads(first.to_json())["scenario"]).run()
    assert again.jobs["start"].tolist() == first.jobs["start"].tolist()
    over_two = simulate([64, 64], text, seed=7)
    assert sorted(over_two.jobs["submit"].tolist()) == first.jobs["submit"].tolist()


def test_what_cannot_be_explored() -> None:
    with pytest.raises(InputError, match="platforms: must all run jobs or all run tasks, got both"):
        explore(["hetsim-slow", 4], "probe-4", ["fcfs"])
    with pytest.raises(InputError, match="duplicate platform 'machine'"):
        explore([small_machine(), small_machine()], "random:tasks=3", ["hrr"])
    with pytest.raises(InputError, match="workloads: must have at least one workload"):
        explore("hetsim-slow", [], ["hrr"])
    with pytest.raises(InputError, match="seeds: must be at least one"):
        explore("hetsim-slow", "random:tasks=3", ["hrr"], seeds=[])


def test_replications_of_a_machine() -> None:
    found = replicate(simulate, 3, platform="hetsim-slow", workload="random:tasks=5", policy="hrr")
    assert found["makespan"].count == 3
    assert found["slr"].mean > 0
