"""Metrics of jobs that are suspended, requeued, resized or stopped by failures: what they waited, ran, lost, paused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simmodel import Job, Portfolio, Preempt, Resize, Start, WakeAt, simulate, start, what_if
from simmodel.metrics.batch import INTERRUPTION_METRICS, job_values
from simmodel.metrics.objective_scores import measured
from simmodel.platform import (
    ClusterSpec,
    GridSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    SiteOutageSpec,
    SiteSpec,
)
from simmodel.predictors.learning import Learning
from simmodel.predictors.similar import RecentTwo
from simmodel.records import JobRecord
from simmodel.records.job_record import since
from simmodel.scheduling.objectives import MEASURES
from simmodel.snapshots import Snapshot
from simmodel.work import Checkpoint, Elastic
from tests.helpers.examples import seeds
from tests.helpers.interrupted_cases import case

PARTS = ("wait", "run", "lost", "suspended")


def failing(*outages: tuple[float, float], processors: int = 4) -> ClusterSpec:
    down = [OutageSpec(at=at, until=until, processors=processors) for at, until in outages]
    return ClusterSpec(partitions=[PartitionSpec(processors=processors)], outages=down)


def value(result: Any, name: str, row: int = 0) -> float:
    return float(result.jobs[name][row]) if name in result.jobs else 0.0


def parts(result: Any, row: int = 0) -> list[float]:
    return [value(result, name, row) for name in PARTS]


class Scripted:
    """FCFS with preemptions and resizes of job 1 at given instants; what was stopped waits for a time."""

    def __init__(self, **at: Any) -> None:
        self.at, self.rests = at["at"], -1.0

    def decide(self, view: Any) -> Any:
        if view.now == 0 and view.waiting:
            for each in self.at:
                yield WakeAt(each)
        what = self.at.get(view.now)
        running = {run.job.id: run.job for run in view.places[0].running}
        if what is not None and 1 in running and view.now > self.rests:
            mode, rest = what
            self.rests = view.now + rest
            yield Resize(running[1], mode) if isinstance(mode, int) else Preempt(running[1], mode)
            yield WakeAt(self.rests)
        if view.now >= self.rests:
            for job in view.waiting:
                if view.places[0].fits(job):
                    yield Start(job, view.places[0])


def test_a_failure_costs_what_it_costs() -> None:
    """One job of 100 s, whose processors are down from 90 to 1,000 s: it ends at 1,100 s."""
    result = simulate(failing((90, 1000)), [Job(processors=4, run=100)], "fcfs")
    metrics = result.metrics()
    assert parts(result) == [910, 100, 90, 0]
    assert [metrics[name] for name in ("slowdown_mean", "bounded_slowdown_mean", "turnaround_mean")] == [11, 11, 1100]
    assert metrics["per_processor_slowdown_mean"] == 11 / 4
    assert [metrics[name] for name in INTERRUPTION_METRICS] == [0, 1, 1]
    assert metrics["wait_mean"] == metrics["wait_max"] == metrics["wait_p95"] == 910
    assert metrics["interrupted"] == 1
    assert result.queue_length().integral() == 910
    assert result.METRICS.keys() == set(result.numbers())
    assert "jobs interrupted" in result.summary()


@pytest.mark.parametrize(
    ("mode", "options", "expected", "overhead"),
    [
        ("suspend", {}, [0, 100, 0, 50], 0),
        ("requeue", {}, [50, 100, 30, 0], 0),
        ("requeue", {"keeps_work": True}, [50, 100, 0, 0], 0),
        ("requeue", {"checkpoint": Checkpoint(20, cost=2, restart=5)}, [50, 108 + 5, 8, 0], 5),
        ("requeue", {"checkpoint": Checkpoint(20, cost=15, restart=5)}, [50, 160 + 10, 20, 0], 10),
        (8, {"elastic": Elastic(4, 4, 8)}, [0, 30 + 35, 0, 0], 0),
    ],
    ids=["suspended", "requeued", "keeps its work", "saved", "a save broken off", "resized"],
)
def test_the_four_parts_of_the_time_of_a_job(
    mode: Any, options: dict[str, Any], expected: list[float], overhead: float
) -> None:
    """A job of 100 s on 4 processors that is stopped at 30 s, and waits for 50 s."""
    result = simulate(8, [Job(id=1, processors=4, run=100, **options)], Scripted(at={30.0: (mode, 50.0)}))
    jobs = result.jobs
    assert parts(result) == expected
    assert jobs["end"][0] == sum(expected)
    assert value(result, "overhead") == overhead
    needed = expected[1] - overhead
    metrics = result.metrics()
    assert metrics["slowdown_mean"] == sum(expected) / needed
    assert metrics["interrupted"] == (mode != 8)
    assert ("interruptions" in jobs) == (mode != 8)
    if "checkpoint" in options:  # alone it needs the same
        assert simulate(8, [Job(processors=4, run=100, **options)], "fcfs").jobs["run"][0] == needed


def preempting() -> ClusterSpec:
    queues = [QueueSpec(name="low", preemptible="suspend"), QueueSpec(name="high", priority=9, preempts=["low"])]
    return ClusterSpec(partitions=[PartitionSpec(processors=4)], queues=queues)


def test_victims_of_preemption_are_seen_by_metrics_and_objectives() -> None:
    jobs = [Job(id=1, processors=4, run=50, queue="low")]
    jobs += [Job(id=i, submit=10 * i, processors=4, run=60, queue="high") for i in (2, 3)]
    result = simulate(preempting(), jobs, "preemptive")
    assert parts(result) == [0, 50, 0, 120]
    metrics, told = result.metrics(), measured(result)
    assert metrics["slowdown_mean"] == pytest.approx((170 / 50 + 1 + 110 / 60) / 3)
    shared = [name for name in MEASURES if name in metrics]
    assert [told[name] for name in shared] == pytest.approx([metrics[name] for name in shared], abs=1e-12)
    assert told["slowdown_max"] == 170 / 50


def taking_turns(view: Any) -> Any:
    """Let all jobs have the processors for 5 s each, in turn."""
    for run in list(view.running):
        if view.waiting and view.now - run.started >= 5:
            yield Preempt(run.job, "suspend")
    for job in sorted(view.waiting, key=lambda job: (job.started or 0.0, job.submit, job.seq)):
        if view.places[0].fits(job):
            yield Start(job, view.places[0])
    yield WakeAt(view.now + 5)


def test_what_ifs_and_portfolios_count_the_interruptions_of_futures() -> None:
    sim = start(4, [Job(processors=4, run=9, requested=9)], "fcfs").run(until=1)
    for i in range(3):
        sim.system.submit(Job(id=f"j{i}", processors=3, run=12, requested=12))
    found = what_if(sim.snapshot(), {"turns": taking_turns})["turns"].measures
    future = sim.system.view.simulate(taking_turns)
    told = Portfolio({"turns": taking_turns})._measured(future, sim.system.view, 1.0)
    whole = simulate(sim.snapshot(), policy=taking_turns)
    assert (whole.jobs["suspended"][1:] > 10).all()
    metrics = whole.metrics()
    for name in ("wait_mean", "turnaround_mean", "slowdown_mean", "bounded_slowdown_mean"):
        assert found[name] == pytest.approx(metrics[name]), name
        if name in told:
            assert told[name] == pytest.approx(metrics[name]), name
    assert told["slowdown_max"] == pytest.approx(found["slowdown_max"]) == (whole.jobs["end"].max() - 1) / 12


def test_a_cancelled_job_that_waited_again_or_was_suspended_has_all_its_parts() -> None:
    for mode, expected in (("requeue", [70, 0, 30, 0]), ("suspend", [0, 30, 0, 70])):
        result = simulate(4, [Job(id=1, processors=4, run=100, cancel=100)], Scripted(at={30.0: (mode, 500.0)}))
        assert result.jobs["status"].tolist() == ["cancelled"]
        assert parts(result) == expected
        assert result.metrics()["interrupted"] == 1


def test_brokers_and_grids_tell_the_same_parts() -> None:
    there = simulate({"a": failing((90, 1000))}, [Job(processors=4, run=100), Job(processors=9, run=1)], "round-robin")
    assert parts(there) == [910, 100, 90, 0]
    assert there.jobs["interruptions"].tolist() == [1, 0]
    sites = [SiteSpec(name="a", cores=4), SiteSpec(name="b", cores=4)]
    grid = GridSpec(sites=sites, outages=[SiteOutageSpec(site=name, at=90, until=1000) for name in "ab"], retries=3)
    result = simulate(grid, [Job(processors=4, run=100)], "least-loaded")
    assert parts(result) == [910, 100, 90, 0]
    assert result.metrics()["slowdown_mean"] == 11
    assert result.queue_length().integral() == 910
    assert result.metrics()["interrupted"] == 1
    down = GridSpec(sites=sites[:1], outages=[SiteOutageSpec(site="a", at=5, until=10)], retries=3)
    again = simulate(down, [Job(submit=1, processors=4, run=2), Job(submit=6, processors=4, run=100)], "least-loaded")
    assert again.metrics()["interrupted"] == 0


def test_records_without_the_columns_still_see_interruptions() -> None:
    """As results of earlier versions, or tables made by hand."""
    jobs = {"submit": [0.0, 0], "start": [0.0, 5], "end": [100.0, 9], "processors": [1, 1], "run": [10.0, 4]}
    record = JobRecord(jobs={**jobs, "attempts": [2, 1]}, processors=4)
    assert job_values(record, "slowdown").tolist() == [10, 9 / 4]
    assert record.jobs["wait"].tolist() == [0, 5]


def test_an_objective_is_the_metric_of_a_run_that_continues() -> None:
    jobs = [Job(processors=4, run=100, requested=100), Job(submit=10, processors=4, run=50, requested=50)]
    rest = simulate(start(4, jobs, "fcfs").run(until=20).snapshot())
    assert measured(rest)["turnaround_mean"] == rest.metrics()["turnaround_mean"] == 140


def test_a_predictor_learns_the_run_of_a_job_with_checkpoints_once() -> None:
    past = RecentTwo()
    jobs = [Job(run=10, requested=600, checkpoint=Checkpoint(100, cost=1)) for _ in range(3)]
    simulate(4, jobs, "easy", observers=[Learning(past)])
    assert past.predict(Job(run=1, requested=600)) == 10


@pytest.mark.few(10)
@pytest.mark.parametrize("seed", seeds(40, 500))
@pytest.mark.parametrize("coupled", [False, True])
def test_the_parts_add_up_to_the_turnaround_and_the_queue_is_the_sum_of_the_waits(seed: int, coupled: bool) -> None:
    drawn = case(seed, coupled=coupled)
    result = simulate(drawn.platform, drawn.jobs, drawn.policy, seed=seed)
    jobs = dict(result.jobs.items())
    turnaround = jobs["end"] - since(result.jobs)
    found = sum(jobs.get(name, 0.0) for name in PARTS)
    ran = np.isfinite(jobs["start"]) & np.isfinite(jobs["end"])
    assert found[ran] == pytest.approx(turnaround[ran], abs=1e-9)
    assert all((np.nan_to_num(jobs[name]) >= 0).all() for name in PARTS if name in jobs)
    never = np.where(result.status == "rejected", 0.0, turnaround)
    waits = np.where(np.isnan(jobs["start"]), never, jobs["wait"])
    assert result.queue_length().integral() == pytest.approx(waits.sum(), abs=1e-6)
    metrics = result.metrics()
    assert measured(result)["turnaround_mean"] == pytest.approx(metrics["turnaround_mean"], abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("seed", seeds(15, 300))
def test_a_continued_run_tells_the_parts_of_the_whole_one(seed: int) -> None:
    drawn = case(seed, coupled=True, bodies=False)
    whole = simulate(drawn.platform, drawn.jobs, drawn.policy, seed=seed)
    at = float(np.random.default_rng(seed).uniform(1, max(2, whole.ended)))
    snapshot = start(drawn.platform, drawn.jobs, drawn.policy, seed=seed).run(until=at).snapshot()
    rest = simulate(Snapshot.from_json(snapshot.to_json()), policy=drawn.policy)
    rows = {job: row for row, job in enumerate(whole.jobs["job"].tolist())}
    for name in (*PARTS, "interruptions", "overhead"):
        for row, job in enumerate(rest.jobs["job"].tolist()):
            assert value(rest, name, row) == pytest.approx(value(whole, name, rows[job]), abs=1e-9, nan_ok=True)


def test_nodes_tell_the_parts_too() -> None:
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=2)])],
        outages=[OutageSpec(at=10, until=30, nodes=[0, 1])],
    )
    assert parts(simulate(spec, [Job(nodes=2, cores_per_node=2, run=20)], "fcfs")) == [20, 20, 10, 0]
