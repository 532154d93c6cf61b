"""Partitions as a scheduler names them, in a mirror of a cluster on which those that share nodes are queues."""

from typing import Any

import attrs
import pytest

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel_site.twin import Demand, Ended, Mirror, Started, Submitted
from simmodel_site.twin.mirror.places import Places

SPEC = ClusterSpec(
    partitions=[
        PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-2]", cores=4)]),
        PartitionSpec(name="gpu", nodes=[NodeSpec(names="g1", cores=4)]),
    ],
    queues=[
        QueueSpec(name="batch", partition="batch"),
        QueueSpec(name="debug", partition="batch", priority=5, max_requested=100),
        QueueSpec(name="high", priority=3),
    ],
)


@pytest.mark.parametrize(
    ("partition", "queue", "found"),
    [
        (None, "high", (None, "high")),
        (None, "normal", (None, None)),
        ("gpu", "high", ("gpu", "high")),
        ("gpu", "normal", ("gpu", None)),
        ("debug", "high", ("batch", "debug")),
        ("batch,debug", None, ("batch", "batch")),
        ("debug,gpu", None, ("batch,gpu", "debug")),
        ("nowhere", None, ("nowhere", None)),
        ("nowhere,gpu,there", None, ("gpu", None)),
        ("nowhere,there", None, ("nowhere,there", None)),
    ],
)
def test_partitions_of_the_scheduler(partition: str | None, queue: str | None, found: tuple[str | None, ...]) -> None:
    request = Places(SPEC).request(Demand(partition=partition, queue=queue))
    assert (request.partition, request.queue) == found


def test_a_platform_without_such_queues_leaves_requests_as_they_are() -> None:
    request = Demand(partition="debug", queue="high")
    assert Places(attrs.evolve(SPEC, queues=())).request(request) is request


def test_a_mirror_has_jobs_where_the_scheduler_has_them() -> None:
    mirror = Mirror(SPEC, "alps")
    about: dict[str, Any] = {"cluster": "alps", "time": 1.0, "submit": 1.0}
    for job, partition in ((1, "debug"), (2, "batch"), (3, "debug"), (4, "gpu")):
        request = Demand(nodes=1, cores_per_node=4, processors=4, requested=50.0, partition=partition, queue="normal")
        mirror.apply(Submitted(**about, job=job, request=request))
    mirror.apply(Started(cluster="alps", time=2.0, job=1, submit=1.0, partition="debug", nodes=(("n2", 4),)))
    assert not mirror.refused
    snapshot = mirror.snapshot()
    (running,) = snapshot.running
    assert (running.id, running.work.place) == (1, "batch")
    waiting = {each.id: each for each in snapshot.waiting}
    queues = {job: each.spec.queue for job, each in waiting.items() if each.spec is not None}
    assert {job: each.place for job, each in waiting.items()} == {2: "batch", 3: "batch", 4: "gpu"}
    assert queues == {2: "batch", 3: "debug", 4: None}
    assert (waiting[2].priority, waiting[3].priority) == (0, 5)


def test_jobs_that_name_more_than_the_platform_has_are_mirrored_and_marked() -> None:
    mirror = Mirror(attrs.evolve(SPEC, queues=()), "alps")
    about: dict[str, Any] = {"cluster": "alps", "time": 1.0, "submit": 1.0}
    asked: dict[int, dict[str, Any]] = {
        1: {"partition": "batch,big"},
        2: {"partition": "gpu", "consumables": {"matlab": 2.0}},
        3: {"partition": "big,huge"},
        4: {"partition": "gpu"},
    }
    for job, asks in asked.items():
        mirror.apply(Submitted(**about, job=job, request=Demand(processors=1, requested=50.0, **asks)))
    assert {each.id for each in mirror.snapshot().waiting} == {1, 2, 4}
    assert [mirror.unmodelled(job) for job in asked] == [
        ("partition big, which the platform lacks",),
        ("matlab, which the platform lacks",),
        (),
        (),
    ]
    (sentence,) = mirror.refused
    assert "job 3: unknown partition 'big'" in sentence


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1), (2, 0, 3, 1)])
def test_processors_are_shared_among_nodes_as_there_is_room(order: tuple[int, ...]) -> None:
    """4 processors on two nodes of which another job has 3 of one: 3 and 1, and 2 and 2 once the other has ended."""
    mirror = Mirror(SPEC, "alps", "easy")
    wide, small = ({"cluster": "alps", "job": job, "submit": 1.0} for job in (1, 2))
    events = [
        Submitted(**wide, time=1.0, request=Demand(processors=4, nodes=2, cores_per_node=2, requested=50.0)),
        Started(**wide, time=1.0, partition="batch", nodes=(("n1", 2), ("n2", 2))),
        Submitted(**small, time=1.0, request=Demand(processors=3, nodes=1, cores_per_node=3, requested=50.0)),
        Started(**small, time=2.0, partition="batch", nodes=(("n2", 3),)),
    ]
    for number in order:
        mirror.apply(events[number])
    held = {run.id: run.held.rows for run in mirror.snapshot().running}
    assert held == {1: ((0, 3, 0, 0), (1, 1, 0, 0)), 2: ((1, 3, 0, 0),)}
    assert mirror.system.free == 5  # of these 4 on g1
    mirror.apply(Ended(**small, time=9.0))
    assert {run.id: run.held.rows for run in mirror.snapshot().running} == {1: ((0, 2, 0, 0), (1, 2, 0, 0))}
    assert not mirror.refused
