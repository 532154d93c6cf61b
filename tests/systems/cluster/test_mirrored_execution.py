"""Clusters with mirrored executions reproduce recorded schedules exactly."""

from __future__ import annotations

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, QueueSpec, ReservationSpec
from simmodel.resources.pools.allocation import Allocation
from simmodel.work.workload import Workload


def log() -> Workload:
    """A log with simultaneous events, a job of zero length, and a job stopped at its requested time."""
    rng = np.random.default_rng(5)
    count = 120
    run = rng.integers(0, 60, count).astype(float)
    columns = {
        "job": np.arange(1, count + 1),
        "submit": np.sort(rng.integers(0, 400, count)).astype(float),
        "run": run,
        "requested": np.maximum(1.0, run + rng.integers(-5, 40, count)),
        "processors": rng.integers(1, 9, count),
    }
    return Workload(columns)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_recorded_schedule_comes_back(policy):
    planned = Cluster(Environment(), 8, policy)
    planned.replay(log())
    planned.env.run()
    record = planned.result().jobs
    told = Cluster(Environment(), 8, execution="mirrored")
    told.replay(log())
    order = sorted(range(len(record)), key=lambda row: (record["start"][row], record["end"][row], row))
    for row in order:
        name = int(record["job"][row])
        told.execution.start(name, at=float(record["start"][row]))
        told.execution.end(name, str(record["status"][row]), at=float(record["end"][row]))
    told.env.run()
    again = told.result().jobs
    for column in ("start", "end", "status"):
        assert again[column].tolist() == record[column].tolist()
    assert told.scheduler.calls == 0


def test_what_if_of_a_mirror_goes_by_expected_ends():
    env = Environment()
    mirror = Cluster(env, 4, "easy", execution="mirrored")
    first = mirror.submit(Job(processors=3, run=1, requested=100))
    second = mirror.submit(Job(processors=2, run=1, requested=10))
    mirror.execution.start(first)
    env.run(until=50)
    assert (first.state, second.state) == ("running", "waiting")
    seen = mirror.snapshot(actual=False)
    assert seen.running[0].expected_end == 100
    later = Environment(50)
    future = Cluster.from_snapshot(later, seen)
    later.run()
    assert future.result().jobs["start"].tolist() == [0, 100]


def test_a_job_can_start_on_nodes_that_are_named_and_go_back_to_the_queue():
    env = Environment()
    cluster = Cluster(env, 4, execution="mirrored")
    job = cluster.submit(Job(processors=4, run=5))
    other = cluster.submit(Job(processors=4, run=5))
    cluster.execution.start(job, at=1)
    cluster.execution.end(job, "requeued", at=3)
    cluster.execution.start(other, at=3)
    cluster.execution.end(other, at=4)
    cluster.execution.start(job, at=4)
    cluster.execution.end(job, at=9)
    env.run()
    assert (job.attempts, job.started, job.state, other.state, env.now) == (2, 4, "completed", "completed", 9)


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (lambda cluster, job: cluster.execution.end(job), "cannot be ended at 2 s: it is waiting"),
        (lambda cluster, job: cluster.execution.end(job, at=3), "cannot be ended at 3 s: it is waiting"),
        (lambda cluster, job: cluster.execution.start(job, at=1), "at: must be an instant >= 2 s, got 1"),
        (
            lambda cluster, job: cluster.execution.start("nobody", at=3),
            "job nobody cannot be started or ended at 3 s: not submitted, or ended",
        ),
        (
            lambda cluster, job: cluster.execution.end(job, "rejected"),
            "status: must be one of completed, .*, got 'rejected'",
        ),
        (lambda cluster, job: [cluster.execution.start(job), cluster.execution.start(job)], "it is running"),
        (
            lambda cluster, job: [cluster.execution.start(cluster.submit(Job(processors=3, run=1))) for _ in "ab"],
            "3 processors requested, 1 of 4 are free",
        ),
    ],
)
def test_what_cannot_be_is_refused(tell, message):
    env = Environment()
    cluster = Cluster(env, 4, execution="mirrored")
    job = cluster.submit(Job(run=1))
    env.run(until=2)

    def run() -> None:
        tell(cluster, job)
        env.run()

    with pytest.raises(InputError, match=message):
        run()


def test_a_start_told_late_counts_from_its_instant() -> None:
    env = Environment()
    cluster = Cluster(env, 4, execution="mirrored")
    env.run(until=50)
    late = cluster.submit(Job(id="late", processors=3, run=100), since=10)
    first = cluster.submit(Job(id="first", processors=3, run=100), since=5)
    assert [job.id for job in cluster.view.waiting] == ["first", "late"]
    cluster.execution.start(late, since=20)
    assert (late.started, late.run.expected_end, cluster.places[0].free) == (20, 120, 1)
    assert [(run.id, run.started) for run in cluster.snapshot().running] == [("late", 20)]
    cluster.execution.leave(first)
    assert (first.state, list(cluster.view.waiting)) == ("left", [])
    with pytest.raises(InputError, match="job late cannot be taken out at 50 s: it is running"):
        cluster.execution.leave(late)
    with pytest.raises(InputError, match="since: must be an instant <= 50 s, got 51"):
        cluster.submit(Job(run=1), since=51)
    with pytest.raises(InputError, match="number: must be None for a cluster that keeps a record, got 7"):
        cluster.submit(Job(run=1), number=7)


def test_numbers_order_jobs_of_one_instant() -> None:
    cluster = Cluster(Environment(), 4, execution="mirrored", record=False)
    for number in (5, 2, 9):
        cluster.submit(Job(id=f"job {number}", run=1), number=number)
    assert [job.id for job in cluster.view.waiting] == ["job 2", "job 5", "job 9"]
    assert cluster.submitted == 10


def test_a_job_that_starts_against_a_limit_is_not_held_by_it_any_more() -> None:
    env = Environment()
    spec = ClusterSpec(partitions=[PartitionSpec(processors=4)], queues=[QueueSpec(name="one", max_running=1)])
    cluster = Cluster(env, spec, execution="mirrored")
    first, second, third = (cluster.submit(Job(run=5, queue="one")) for _ in "abc")
    cluster.execution.start(first)
    cluster.execution.start(second)
    assert [work.id for work in cluster.snapshot(actual=False).held] == [third.id]
    cluster.execution.end(first)
    assert third.state == "held"
    cluster.execution.end(second)
    assert list(cluster.view.waiting) == [third]


def test_a_job_starts_as_told_against_limits_dependencies_windows_and_drains() -> None:
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=4)], max_requested=50)],
        queues=[QueueSpec(name="one", max_running=1)],
        outages=[OutageSpec(kind="maintenance", at=60, until=90, nodes=[0, 1, 2])],
        reservations=[ReservationSpec(name="course", start=100, end=120, nodes=[0])],
    )
    env = Environment()
    cluster = Cluster(env, spec, execution="mirrored")
    pool = cluster.places[0]
    first, second = (cluster.submit(Job(nodes=1, cores_per_node=4, run=500, queue="one")) for _ in "ab")
    blocked = cluster.submit(Job(nodes=1, cores_per_node=4, run=500, dependencies=[first.id]))
    cluster.execution.start(first)
    assert (second.state, blocked.state) == ("held", "blocked")
    pool.take_down([2])
    for job, node in ((second, 1), (blocked, 2)):
        cluster.execution.start(job, pool, Allocation.of([(node, 4, 0, 0)]))
    assert [run.nodes for run in cluster.snapshot(actual=False).running] == [(0,), (1,), (2,)]
    env.run(until=110)
    assert {job.state for job in (first, second, blocked)} == {"running"}, "no window stops what is told to run"
    more = cluster.submit(Job(nodes=1, cores_per_node=1, run=5))
    with pytest.raises(InputError, match="cannot be started on batch"):
        cluster.execution.start(more, pool, Allocation.of([(1, 1, 0, 0)]))
    with pytest.raises(ImpossibleWork):
        cluster.submit(Job(nodes=4, run=5))
