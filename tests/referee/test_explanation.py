"""Why a job waits: reasons worked out by hand, and changes that start it while the next smaller one does not."""

from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, simulate
from simmodel.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.referee import explain, why_waits
from simmodel.work.job import Dependency
from simmodel.work.workload import Workload
from tests.helpers.drawn_schedules import drawn_log

LOG = Workload(
    {
        "submit": [0, 1, 2, 3],
        "run": [100, 50, 20, 10],
        "requested": [100, 50, 120, 10],
        "processors": [3, 4, 1, 1],
    },
    processors=4,
)


def test_the_head_waits_for_processors() -> None:
    found = explain(4, LOG, "easy", 2)
    assert (found.reason, found.needs, found.free) == ("processors", 4, 1)
    assert found.holders == ((1, 3, 100.0),)
    assert found.expected == 100.0
    assert [change[:2] for change in found.changes] == [("processors", 1)]
    assert list(found.spans.rows()) == [{"since": 1.0, "until": 100.0, "reason": "processors"}]


def test_a_job_that_would_delay_the_head_waits_for_order_and_a_shorter_limit_starts_it() -> None:
    found = explain(4, LOG, "easy", 3)
    assert (found.reason, found.ahead) == ("order", (2,))
    assert [change[:2] for change in found.changes] == [("requested", 98.0)]  # it must end when the head starts
    assert "it would start now with a limit of 98 s instead of 120 s" in found.report()
    assert "others go first" in found.report()
    assert found.plot(title="") is not None


def test_other_partitions_are_tried() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(name="a", processors=2), PartitionSpec(name="b", processors=4)])
    jobs = [Job(id=1, processors=2, run=9, partition="a"), Job(id=2, processors=2, run=9, partition="a", submit=1)]
    assert ("partition", "b") in [change[:2] for change in explain(spec, jobs, "fcfs", 2).changes]


def test_nodes_are_changed_where_nodes_are_requested() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=4, count=3)])])
    jobs = [
        Job(id=1, nodes=1, cores_per_node=4, run=9),
        Job(id=2, nodes=3, cores_per_node=4, run=9, submit=1),
    ]
    assert [change[:2] for change in explain(spec, jobs, "fcfs", 2).changes] == [("nodes", 2)]


def test_dependencies_are_a_reason() -> None:
    jobs = [Job(id=1, run=9), Job(id=2, run=5, submit=1, dependencies=(Dependency(1),))]
    found = explain(4, jobs, "fcfs", 2, at=3)
    assert (found.reason, found.changes, found.expected) == ("dependencies", (), 9.0)
    assert "waits for other jobs" in found.report()


def drawn(seed: int) -> Any:
    """Return a snapshot of a crowded cluster, before a decision if there is one, or ``None``."""
    rng = np.random.default_rng(seed)
    policy = ["easy", "fcfs", "conservative", "sjf+easy", "wfp+easy"][seed % 5]
    env = Environment()
    cluster = Cluster(env, 8, policy)
    cluster.replay(drawn_log(seed, 60))
    env.run(until=float(rng.integers(50, 500)) + 0.5)
    return cluster.snapshot() if cluster.snapshot().waiting else None


def check_changes(seeds: range) -> int:
    """Check the changes that are proposed for drawn jobs by simulating them; return how many there were."""
    from simmodel.referee.explanation import _started_now, _with

    proposed = 0
    for seed in seeds:
        snapshot = drawn(seed)
        if snapshot is None:
            continue
        work = snapshot.expected().waiting[seed % len(snapshot.waiting)]
        found = why_waits(snapshot, work.id)
        assert work.id not in _started_now(snapshot.expected(), None)
        for what, value, _ in found.changes:
            name = {"processors": "count", "requested": "seconds"}[what]
            most = work.processors if what == "processors" else work.requested
            for more, starts in ((0, True), (1, False)):
                if value + more < most:
                    seen = _with(snapshot.expected(), work, **{name: value + more})
                    env = Environment(seen.now)
                    everyone = tuple(each.number for each in seen.waiting)
                    jobs = Cluster.from_snapshot(env, attrs.evolve(seen, policy=_due(seen.policy), new=everyone))
                    env.run(until=float(np.nextafter(seen.now, np.inf)))
                    running = {run.job.id for run in jobs.places[0].running}
                    assert env.now < seen.now + 1e-6
                    assert (work.id in running) == starts, (seed, what, value, more)
            proposed += 1
    return proposed


def _due(policy: Any) -> Any:
    return attrs.evolve(policy, due=True, asked=True)


def test_changes_start_the_job_and_the_next_smaller_ones_do_not() -> None:
    assert check_changes(range(60)) > 8


@pytest.mark.exhaustive
def test_changes_of_many_jobs() -> None:
    assert check_changes(range(60, 2060)) > 300


def test_spans_end_at_the_start() -> None:
    log = drawn_log(1)
    jobs = simulate(8, log, "easy").jobs
    late = [int(job) for job, wait in zip(jobs["job"], jobs["wait"], strict=True) if wait > 0][:10]
    for job in late:
        spans = list(explain(8, log, "easy", job).spans.rows())
        (row,) = np.flatnonzero(jobs["job"] == job)
        assert (spans[0]["since"], spans[-1]["until"]) == (jobs["submit"][row], jobs["start"][row])
        assert all(one["until"] == after["since"] for one, after in pairwise(spans))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((9,), "job: must be one of the 4 jobs, got 9"),
        ((1,), "at: job 1 does not wait at 0 s: it is running, started at 0 s"),
        ((2, 0.5), "at: must be an instant from 1 s (its submission) on, got 0.5"),
        ((2, 300.0), "at: job 2 does not wait at 300 s: it is completed, started at 100 s"),
    ],
)
def test_jobs_that_do_not_wait_are_told(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        explain(4, LOG, "easy", *arguments)
    assert str(caught.value) == sentence
