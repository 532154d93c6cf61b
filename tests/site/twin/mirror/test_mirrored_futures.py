"""The mirror of a simulated cluster foresees what the simulation foresees."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, what_if
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.snapshots import ClusterSnapshot
from simmodel_site.twin import Demand, Event, Mirror, Released, Submitted
from simmodel_site.twin.sources.log import EventsOf

NODES = ClusterSpec(
    partitions=[
        PartitionSpec(
            name="nodes", nodes=[NodeSpec(count=12, cores=8, gpus=2), NodeSpec(name="big", count=4, cores=32)]
        ),
        PartitionSpec(name="counted", processors=40),
    ],
    queues=[QueueSpec(name="night", max_running_per_user=2)],
    default_partition="nodes",
)
POLICIES = ("easy", "fcfs", "sjf+easy", "conservative")


class Told:
    """Tells a mirror the events of a simulated cluster; jobs that are held there are told as held and released."""

    def __init__(self, system: Cluster, mirror: Mirror) -> None:
        self.mirror = mirror
        self.held: set[Any] = set()
        self.numbered = EventsOf(system, self.tell, mirror.cluster)
        system.env.observe(self.numbered)

    def tell(self, event: Event) -> None:
        if isinstance(event, Submitted) and event.job in self.held:
            event = Released(cluster=event.cluster, time=event.time, job=event.job, submit=event.submit)
        assert self.mirror.apply(event)

    def hold(self, job: Job) -> None:
        """Tell that a job came and is held."""
        self.held.add(job.id)
        request = Demand(
            processors=job.processors,
            nodes=job.nodes,
            cores_per_node=job.cores_per_node,
            requested=job.requested,
            partition=job.partition,
            user=job.user,
        )
        now = float(self.numbered.system.env.now)
        self.mirror.apply(
            Submitted(cluster=self.mirror.cluster, job=job.id, submit=now, time=now, request=request, held=True)
        )


def jobs(count: int, rng: np.random.Generator) -> list[Job]:
    """Draw jobs: some for whole nodes, some for GPUs, tasks of arrays, jobs of a limited queue, dependent jobs."""
    found: list[Job] = []
    at = 0.0
    while len(found) < count:
        at += float(rng.exponential(40))
        run = float(rng.integers(20, 900))
        common: dict[str, Any] = {"submit": at, "run": run, "requested": run * float(rng.choice([1, 1.5, 3]))}
        common["user"] = int(rng.integers(5))
        kind = int(rng.integers(6))
        if kind == 0:
            each = {"nodes": int(rng.integers(1, 6)), "cores_per_node": 8}
        elif kind == 1:
            each = {"nodes": 1, "cores_per_node": 2, "gpus_per_node": int(rng.integers(1, 3))}
        elif kind == 2:
            each = {"processors": int(rng.integers(1, 30)), "partition": "counted"}
        elif kind == 3:
            each = {"processors": int(rng.integers(1, 9)), "queue": "night"}
        elif kind == 4 and found:
            each = {"processors": 4, "dependencies": [found[-1].id]}
        else:
            each = {"processors": int(rng.integers(1, 40)), "partitions": ["nodes", "counted"]}
        if kind == 5:
            for task in range(3):
                found.append(Job(id=f"{len(found) + 1}_{task}", **common, processors=2, partition="counted"))
        else:
            found.append(Job(id=len(found) + 1, **common, **each))
    return found[:count]


def starts(snapshot: ClusterSnapshot, policy: str) -> dict[Any, tuple[str, float]]:
    return {each.job: (each.place, each.at) for each in what_if(snapshot, [policy])[policy].starts}


@pytest.mark.parametrize("instants", [30, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_futures_are_those_of_the_simulation(instants: int) -> None:
    """With nodes and GPUs, several partitions, limits of queues, holds, arrays, dependencies and drains."""
    rng = np.random.default_rng(7)
    env = Environment()
    system = Cluster(env, NODES, "easy")
    mirror = Mirror(NODES, "alps", "easy")
    told = Told(system, mirror)
    work = jobs(420, rng)
    held = {job.id for job in work if job.partition == "counted" and isinstance(job.id, int) and rng.random() < 0.2}

    def user(job: Job) -> Generator[Any]:
        yield env.timeout(job.submit)
        if job.id not in held:
            system.submit(job)
            return
        told.hold(job)
        yield env.timeout(float(rng.integers(30, 2000)))
        system.submit(job, since=job.submit)

    def drains() -> Generator[Any]:
        nodes: Any = system.pools["nodes"]
        while True:
            yield env.timeout(float(rng.integers(200, 1500)))
            some = sorted(rng.choice(16, 3, replace=False).tolist())
            nodes.take_down(some)
            system.pools["counted"].take_down(9)
            yield env.timeout(float(rng.integers(200, 900)))
            nodes.bring_up(some)
            system.pools["counted"].bring_up(9)

    for job in work:
        env.process(user(job))
    env.process(drains())
    seen = waited = held_then = 0
    for at in np.sort(rng.uniform(0, work[-1].submit, instants)).tolist():
        env.run(until=at)
        mirror.advance(at)
        mine = mirror.snapshot()
        mine.check()
        own = system.snapshot(actual=False)
        assert mine.tally == own.tally
        policy = POLICIES[seen % len(POLICIES)]
        expected = starts(own, policy)
        assert starts(mine, policy) == expected, (at, policy)
        seen += 1
        waited += len(expected)
        held_then += mirror.jobs["held"]
    assert seen == instants
    assert waited > 5 * instants
    assert not mirror.refused
    assert held_then > 0
