"""Comparisons and replications: the same on any executor, and intervals that cover the true mean."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import simmodel
from simmodel import InputError, Job, Start, compare, replicate, simulate
from simmodel.generators.arrivals import synthetic
from simmodel.generators.lublin_feitelson import lublin
from simmodel.scheduling import policy

JOBS = [Job(processors=3, run=10), Job(processors=4, run=100), Job(processors=1, run=10)]


def greedy(view: simmodel.View):
    for job in view.waiting:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])


def test_results_come_in_the_order_asked_for_with_their_labels() -> None:
    found = compare(4, JOBS, {"strict": "fcfs", "loose": greedy, "promised": policy("easy")})
    assert [result.name for result in found] == ["strict", "loose", "promised"]
    assert found["loose"].jobs["start"].tolist() == [0, 10, 0]
    assert found["strict"].jobs["start"].tolist() == [0, 10, 110]
    assert found.table["result"].tolist() == ["strict", "loose", "promised"]
    assert len(found) == 3
    with pytest.raises(KeyError, match="nown results: strict, loose, promised"):
        found["lost"]


def test_a_list_is_labelled_by_the_names_of_its_policies() -> None:
    assert compare(4, iter(JOBS), [greedy, "sjf+easy", policy("window")]).table["result"].tolist() == [
        "greedy",
        "sjf+easy",
        "window",
    ]


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_changes_nothing(make: type) -> None:
    log = lublin(200, 32, seed=3)
    here = compare(None, log, ["fcfs", "easy"], seed=7)
    with make(2) as executor:
        there = compare(None, log, ["fcfs", "easy"], seed=7, executor=executor)
    for one, other in zip(here, there, strict=True):
        assert one.jobs["start"].tolist() == other.jobs["start"].tolist()
        assert one.name == other.name


@pytest.mark.parametrize(
    ("policies", "sentence"),
    [
        ([], "at least one policy"),
        (["easy", "easy"], "duplicate policy 'easy'"),
        (["no"], "unknown policy"),
    ],
)
def test_wrong_policies_are_refused_before_anything_runs(policies: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        compare(4, JOBS, policies)


def test_summaries_and_plots_of_a_comparison() -> None:
    found = compare(4, JOBS, {"<fcfs>": "fcfs", "easy": "easy"})
    assert "&lt;fcfs&gt;" in found._repr_html_()
    lines = found.summary(["wait_mean", "fairness_users"]).splitlines()
    assert lines[0].split() == ["mean", "wait"]  # metrics without a value are left out
    assert lines[2].split() == ["easy", "3.33", "s"]
    figure = found.plot()
    assert len(figure.axes) == 4


def test_rejected_jobs_are_not_hidden_by_the_metrics_of_the_others() -> None:
    assert "rejected" not in compare(4, JOBS, ["fcfs"]).summary()
    jobs = [*JOBS, Job(id="wide", processors=5, run=1), Job(id="wider", processors=9, run=1)]
    head, *rows = (line.split() for line in compare(4, jobs, ["fcfs", "easy"]).summary().splitlines())
    assert head[-1] == "rejected"
    assert [row[-1] for row in rows] == ["2", "2"]


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    compare(4, JOBS, ["fcfs"])
    assert capsys.readouterr() == ("", "")
    compare(4, JOBS, ["fcfs", "easy"], progress=True)
    assert "2/2" in capsys.readouterr().err


# ---------------------------------------------------------------------- replications


def mean_of_draws(seed: int, high: int = 1) -> float:
    return float(np.random.default_rng(seed).uniform(0, high, 50).mean())


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    inside = sum(0.5 in replicate(lambda seed, i=i: mean_of_draws(seed * 400 + i), 8)["value"] for i in range(400))
    assert 0.92 < inside / 400 < 0.98


def test_replications_are_the_same_on_an_executor_and_extend_shorter_ones() -> None:
    few = replicate(mean_of_draws, 4, high=2)
    with ProcessPoolExecutor(2) as executor:
        many = replicate(mean_of_draws, 6, high=2, executor=executor)
    assert many.samples["value"][:4].tolist() == few.samples["value"].tolist()
    assert replicate(mean_of_draws, [3, 0], high=2).samples["seed"].tolist() == [3, 0]


def test_simulations_are_replicated_with_a_new_workload_for_each_seed() -> None:
    drawn = partial(synthetic, 400, gap={"distribution": "exponential", "mean": 10.0}, run=8.0, processors=1)
    runs = {name: replicate(simulate, 5, platform=1, workload=drawn, policy=name) for name in ("fcfs", "ljf")}
    assert len(set(runs["fcfs"].samples["wait_mean"].tolist())) == 5
    table = runs["fcfs"].table
    row = table["metric"].tolist().index("wait_mean")
    assert table["low"][row] < table["mean"][row] < table["high"][row]
    assert "fairness_users" not in table["metric"]  # users are unknown
    same = runs["fcfs"].difference(runs["ljf"], metric="wait_mean")  # all jobs are as long: the orders agree
    assert same.mean == pytest.approx(0, abs=1e-9)
    assert "wait_mean" in runs["fcfs"].summary()
    assert "wait_mean" in runs["fcfs"]._repr_html_()


def test_too_few_or_unequal_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="seeds: must be two or more"):
        replicate(mean_of_draws, 1)
    with pytest.raises(ValueError, match="same seeds"):
        replicate(mean_of_draws, [1, 2]).difference(replicate(mean_of_draws, [1, 3]))


def test_machines_are_compared_too() -> None:
    found = compare("hetsim-slow", "layered:n=15", ["hrr", "heft"])
    assert found["heft"].metrics()["makespan"] == found.table["makespan"][1] < found.table["makespan"][0]
    head, first, _ = found.summary().splitlines()
    assert "SLR" in head
    assert first.split()[0] == "hrr"
    assert len(found.plot().axes) == 4
    with pytest.raises(InputError, match="unknown metric 'wait_mean'"):
        found.metrics(["wait_mean"])


def test_brokers_are_compared_by_the_same_function() -> None:
    found = compare({"a": 4, "b": 4}, {"a": JOBS}, ["siloed", "sgs-t"], policies="fcfs")
    assert found["sgs-t"].jobs["destination"].tolist() == ["a", "b", "a"]
    assert "sgs-t" in found.summary()
