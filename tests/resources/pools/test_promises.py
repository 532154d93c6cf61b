"""The promise to the head of a queue, and the jobs that start beside it: worked by hand on each kind of pool."""

from __future__ import annotations

from typing import Any

import pytest

from simmodel.environment import Environment
from simmodel.platform.cluster import NodeSpec, PartitionSpec
from simmodel.policies.ordering import FCFS
from simmodel.resources.pools.counts import CountPool
from simmodel.resources.pools.hosts import HostPool, HostPromise
from simmodel.resources.pools.node_states import NodePromise
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.pool import Pool
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.work.job import Job, LiveJob, Run


def counted(env: Environment) -> Pool:
    return CountPool(env, "p", 8)


def nodes(env: Environment) -> Pool:
    kinds = [NodeSpec(name="a", count=4, cores=1), NodeSpec(name="b", count=4, cores=1, memory=8)]
    return NodePool(env, "p", PartitionSpec(nodes=kinds))


def hosts(env: Environment) -> Pool:
    return HostPool(env, "p", PartitionSpec(nodes=[NodeSpec(cores=8)], one_host=True))


def begin(pool: Pool, job: LiveJob, allocation: Any = None) -> None:
    """Start a job as a cluster does."""
    grant = pool.take(job, allocation)
    job.state, job.started = "running", pool.env.now
    job.run = run = Run(job, pool, 0.0, job.expected, grant)
    pool.running.add(run, job.width)


def waiting_job(pool: Pool, number: int, processors: int, seconds: float) -> LiveJob:
    live = LiveJob(number, number, 0.0, processors, seconds, seconds, seconds)
    live.place = pool
    by_node = isinstance(pool, NodePool) and not isinstance(pool, HostPool)
    live.request = pool.request_of(Job(run=seconds, nodes=processors) if by_node else Job(processors=processors, run=1))
    return live


@pytest.mark.parametrize(
    ("kind", "of"),
    [(nodes, NodePromise), (hosts, HostPromise)],
    ids=["node", "host"],
)
def test_jobs_beside_a_promise_end_before_it_or_leave_room(kind: Any, of: Any) -> None:
    """Of 8, 5 are in use until 10 s; the head wants 6, so that 2 are to spare then, and 3 are free until then.

    A long job of 1 starts, one of 3 or then of 2 would delay the head; the short ones of 1 end in time.
    """
    env = Environment()
    pool = kind(env)
    queue = WaitingQueue(env)
    begin(pool, waiting_job(pool, 1, 5, 10.0))
    head, *others = (
        waiting_job(pool, number, processors, seconds)
        for number, processors, seconds in [
            (2, 6, 9.0),
            (3, 3, 50.0),
            (4, 1, 50.0),
            (5, 2, 50.0),
            (6, 1, 10.0),
            (7, 1, 5.0),
        ]
    )
    for job in (head, *others):
        queue.add(job)
    promise = pool.promise(head, queue, FCFS)
    assert type(promise) is of
    assert promise.at == 10
    found = []
    while (start := promise.next()) is not None:
        job, allocation = start
        queue.remove(job)
        begin(pool, job, allocation)
        found.append(job.id)
    assert found == [4, 6, 7]
    assert promise.at == 10
    assert promise.version == pool.version
    assert promise.bars([waiting_job(pool, 8, 1, 1.0)])  # nothing is free


def test_a_pool_without_a_promise_of_its_own_is_planned_by_its_profile() -> None:
    """A subclass that says when what is free, and no more, backfills: here the last processor is never given away."""
    from simmodel import simulate
    from simmodel.policies import Easy

    class OneLess(CountPool):
        simple = False

        def fits(self, job: LiveJob) -> bool:
            return job.processors < self.free and super().fits(job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simmodel.systems.cluster.core.CountPool", OneLess)
        jobs = [Job(processors=3, run=10), Job(processors=4, run=10), Job(run=10), Job(processors=2, run=10)]
        assert simulate(5, jobs, Easy()).jobs["start"].tolist() == [0, 10, 0, 20]
