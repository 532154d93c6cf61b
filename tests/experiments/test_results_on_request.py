"""From other processes come metrics, and whole results on request; tables and texts are the same either way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Result, Workload, compare, explore, replicate, simulate
from simmodel.experiments import compare_brokers, compare_portfolio, replicate_portfolio
from simmodel.experiments.runs import MeasuredRun
from simmodel.foundation.errors import SimmodelError
from simmodel.generators import lublin
from simmodel.policies.portfolio import Portfolio
from simmodel.studies import broker_study, fat_curve, schedtwin_run, schedtwin_seeds, setup_study

LOG = lublin(1500, 64, seed=3)
HOMES = {name: lublin(700, 64, seed=seed) for name, seed in (("a", 4), ("b", 5))}
PORTFOLIO = Portfolio(["easy", "sjf+easy"], interval=50_000)


class Far(Executor):
    """An executor whose calls and results pass through pickle, as to and from another process."""

    def __init__(self) -> None:
        self.came: list[int] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        again, given = pickle.loads(pickle.dumps((function, arguments)))
        packed = pickle.dumps(again(*given, **options))
        self.came.append(len(packed))
        future.set_result(pickle.loads(packed))
        return future


EXPERIMENTS: dict[str, Callable[..., Any]] = {
    "compare": partial(compare, 64, LOG, ["fcfs", "easy"]),
    "compare machines": partial(compare, "hetsim-slow", "layered:n=150", ["hrr", "heft"]),
    "compare brokers": partial(compare, {"a": 64, "b": 64}, HOMES, ["siloed", "least-loaded"]),
    "explore": partial(explore, 64, {"log": LOG}, ["fcfs", "easy"], seeds=2),
    "replicate": partial(replicate, simulate, 2, platform=64, workload=LOG, policy="easy"),
    "brokers": partial(compare_brokers, {"a": 64, "b": 64}, HOMES, ["least-loaded", "random"], repeat=2),
    "portfolio": partial(compare_portfolio, 64, LOG, PORTFOLIO),
    "portfolios": partial(replicate_portfolio, 64, partial(lublin, 100, 64), PORTFOLIO, 2),
    "fat curve": partial(fat_curve, fats=[0.2, 0.8], ccrs=[1.0], seeds=2, shape={"n": 20}),
    "setup": partial(setup_study, ["hrr", "heft"], seeds=2),
    "schedtwin": partial(schedtwin_run, seed=1),
    "schedtwin seeds": partial(schedtwin_seeds, 2),
    "broker study": partial(broker_study, LOG, seeds=2, edges=50),
}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name == "schedtwin seeds" else []) for name in EXPERIMENTS]
)
def test_only_metrics_come_back_and_say_the_same(name: str) -> None:
    experiment, far = EXPERIMENTS[name], Far()
    here, there = experiment(), experiment(executor=far)
    if hasattr(here, "summary"):
        assert there.summary() == here.summary()
    assert there._repr_html_() == here._repr_html_()
    assert repr(there) == repr(here)
    assert max(far.came) < 12_000, far.came  # a result of 1,500 jobs has 150 kB


def same(jobs: Any, others: Any) -> None:
    assert jobs.names == others.names
    for column in jobs.names:
        assert np.array_equal(np.asarray(jobs[column]).astype(str), np.asarray(others[column]).astype(str)), column


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", ["compare", "compare brokers", "brokers", "portfolio", pytest.param("schedtwin", marks=pytest.mark.long)]
)
def test_results_come_on_request_or_are_simulated_again(name: str) -> None:
    experiment, far, near = EXPERIMENTS[name], Far(), Far()
    runs = [
        each.results.values() if isinstance(each.results, dict) else each.results
        for each in (experiment(), experiment(executor=far, results=True), experiment(executor=near))
    ]
    for whole, asked, measured in zip(*runs, strict=True):
        assert isinstance(whole, Result)
        assert type(asked) is type(whole)
        assert isinstance(measured, MeasuredRun)
        same(asked.jobs, whole.jobs)
        same(measured.jobs, whole.jobs)
        assert measured.name == whole.name
        assert measured.metrics().keys() == whole.metrics().keys()
        assert measured.scenario["policy"] == whole.scenario["policy"]
        assert repr(measured) == f"<MeasuredRun {whole.name}: {len(whole.METRICS)} metrics>"
        assert "wait_mean" in measured._repr_html_()
    assert sum(far.came) > 1.5 * sum(near.came)


@pytest.mark.long  # the usual metrics: the tests before
def test_other_metrics_and_pages_of_measured_runs() -> None:
    here, there = (EXPERIMENTS["compare"](executor=each) for each in (None, Far()))
    for options in ({"warmup": "10%"}, {"tau": 1.0}):
        assert there.summary(**options) == here.summary(**options)
    assert there["easy"].numbers() == pytest.approx(here["easy"].numbers(), nan_ok=True)
    moved = [
        partial(compare_brokers, {"a": 64, "b": 64}, HOMES, ["siloed", "sgs-t"])(executor=e) for e in (None, Far())
    ]
    assert moved[0].summary() == moved[1].summary()
    assert "turnaround of moved jobs" in moved[0].summary()
    shown, other = (EXPERIMENTS["portfolio"](executor=each) for each in (None, Far()))
    assert str(shown.document()) == str(other.document())
    assert other.choices == shown.choices > 0
    machines = EXPERIMENTS["compare machines"](executor=Far())
    assert machines["heft"].tasks["end"].max() == machines["heft"].metrics()["makespan"]
    with pytest.raises(InputError, match="options of metrics of jobs, not of tasks"):
        machines.metrics(tau=1.0)


def test_threads_and_this_process_keep_results_unless_they_need_not() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert isinstance(compare(64, LOG, ["fcfs"], executor=threads)["fcfs"], Result)
        assert isinstance(compare(64, LOG, ["fcfs"], executor=threads, results=False)["fcfs"], MeasuredRun)
    assert isinstance(compare(64, LOG, ["fcfs"], results=False)["fcfs"], MeasuredRun)


def test_a_run_without_a_seed_is_repeated_with_the_one_it_drew() -> None:
    found = compare({"a": 64, "b": 64}, HOMES, ["random"], seed=None, executor=Far())["random"]
    assert found.result.metrics()["wait_mean"] == found.metrics()["wait_mean"]


CALLS: list[int] = []


def moody(view: Any) -> Any:
    """Start jobs in the order of the queue, in another one in the second run."""
    from simmodel import Start

    CALLS.append(len(view.waiting))
    jobs = list(view.waiting)
    for job in jobs if len(CALLS) < 3000 else jobs[::-1]:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])


def test_a_run_that_cannot_be_repeated_says_so() -> None:
    CALLS.clear()
    found = compare(64, LOG, [moody], executor=Far())["moody"]
    CALLS.extend([0] * 3000)
    with pytest.raises(
        SimmodelError, match="'moody' has other metrics when it is simulated again: ask for results=True"
    ):
        _ = found.jobs
    alone = pickle.loads(pickle.dumps(MeasuredRun(simulate(64, LOG, "fcfs"))))
    with pytest.raises(SimmodelError, match="the run 'fcfs' kept its metrics only: ask for results=True"):
        _ = alone.jobs
    with pytest.raises(AttributeError, match="no attribute '_ipython_display_'"):
        _ = alone._ipython_display_


def test_runs_do_not_write_to_one_file() -> None:
    for call in (
        partial(compare, 64, LOG, ["fcfs"]),
        partial(explore, 64, [LOG], ["fcfs"]),
        partial(compare_brokers, [4, 4], Workload({"submit": [0], "run": [1], "processors": [1]}), ["random"]),
        partial(compare_portfolio, 64, LOG),
    ):
        with pytest.raises(
            InputError, match="stream: must be None: several runs would write their records to one file"
        ):
            call(stream="a.db")
