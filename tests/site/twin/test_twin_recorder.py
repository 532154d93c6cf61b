"""A simulated cluster told as events: what happens to jobs and nodes, and nothing that was announced."""

from __future__ import annotations

from typing import Any

from simmodel import Cluster, Environment, Job
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel_site.twin import Event, NodesChanged
from simmodel_site.twin.sources.log import EventsOf


def events_of(cluster: Cluster) -> list[Event]:
    events: list[Event] = []
    cluster.env.observe(EventsOf(cluster, events.append, "alps"))
    return events


def nodes_in(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (event.time, event.state, event.nodes or event.processors, event.partition)
        for event in events
        if isinstance(event, NodesChanged)
    ]


def test_nodes_that_fail_drain_and_return_are_told_but_not_maintenance() -> None:
    spec = ClusterSpec(
        partitions=[PartitionSpec(name="a", nodes=[NodeSpec(count=3)]), PartitionSpec(name="b", processors=8)],
        outages=[
            OutageSpec(kind="failure", at=5, until=20, partition="a", nodes=[0, 1]),
            OutageSpec(kind="drain", at=10, until=30, partition="a", nodes=[1, 2]),
            OutageSpec(kind="maintenance", at=12, until=14, partition="a", nodes=[2]),
            OutageSpec(kind="drain", at=5, until=25, partition="b", processors=3),
            OutageSpec(kind="maintenance", at=6, until=7, partition="b", processors=4),
        ],
    )
    env = Environment()
    cluster = Cluster(env, spec)
    events = events_of(cluster)
    env.run(until=100)
    assert sorted(nodes_in(events)) == [
        (5.0, "down", ("node0", "node1"), "a"),
        (5.0, "draining", 3, "b"),
        (10.0, "draining", ("node2",), "a"),
        (20.0, "up", ("node0",), "a"),
        (25.0, "up", 3, "b"),
        (30.0, "up", ("node1", "node2"), "a"),
    ]


def test_counted_processors_that_come_and_go_are_told() -> None:
    env = Environment()
    cluster = Cluster(env, 8)
    events = events_of(cluster)
    pool: Any = cluster.places[0]
    pool.resize(5)
    pool.take_down(2)
    pool.resize(8)
    pool.bring_up(2)
    assert [(state, count) for _, state, count, _ in nodes_in(events)] == [
        ("draining", 3),
        ("draining", 2),
        ("up", 3),
        ("up", 2),
    ]


def test_a_job_that_is_suspended_waits_again_and_starts_again() -> None:
    env = Environment()
    cluster = Cluster(env, 4)
    events = events_of(cluster)
    job = cluster.submit(Job(id="7_1", processors=4, run=10, requested=20))
    env.run(until=3)
    cluster.preempt(job, "suspend")
    env.run()
    told = [(event.kind, event.time) for event in events]
    assert told == [("submitted", 0.0), ("started", 0.0), ("requeued", 3.0), ("started", 3.0), ("ended", 10.0)]
