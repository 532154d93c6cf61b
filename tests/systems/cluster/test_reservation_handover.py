"""Reservations: nodes change hands when the last body has left, and no two reservations overlap."""

from __future__ import annotations

import pytest
import simpy

from simmodel import InputError, Job, simulate, start
from simmodel.foundation.errors import ImpossibleWork
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, ReservationSpec

ONE_NODE = PartitionSpec(name="p", nodes=[NodeSpec(name="n", count=1, cores=4)])
COUNTED = PartitionSpec(name="p", processors=4)
POLICIES = ["fcfs", "easy", "conservative", "conservative-keep"]


def tidy(env, job, grant):
    """Run for 1000 s; once interrupted, clean up for 30 s."""
    try:
        yield env.timeout(1000)
    except simpy.Interrupt:
        yield env.timeout(30)
        raise


def on(partition, *reservations):
    part = {"nodes": [0]} if partition.nodes else {"processors": 4}
    specs = [ReservationSpec(name=name, start=start, end=end, **part) for name, start, end in reservations]
    return ClusterSpec(partitions=[partition], reservations=specs)


def runs(spec, jobs, policy="easy", **options):
    result = simulate(spec, jobs, policy, **options)
    assert result.utilisation().values.max() <= 1
    return list(zip(*(result.runs[name].tolist() for name in ("job", "start", "end", "status")), strict=True))


@pytest.mark.parametrize("partition", [ONE_NODE, COUNTED], ids=["nodes", "processors"])
@pytest.mark.parametrize("policy", POLICIES)
def test_at_the_end_the_partition_waits_for_the_last_body(partition, policy):
    jobs = [
        Job(id=1, processors=4, requested=100, body=tidy, partition="r"),
        Job(id=2, processors=4, run=50, partition="p"),
    ]
    found = runs(on(partition, ("r", 0, 100)), jobs, policy)
    assert found == [(1, 0, 130, "timeout"), (2, 130, 180, "completed")]


@pytest.mark.parametrize("partition", [ONE_NODE, COUNTED], ids=["nodes", "processors"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("grace", "opens"), [(30.0, 130), (10.0, 110), (0.0, 100)])
def test_at_its_beginning_a_reservation_waits_for_the_last_body(partition, policy, grace, opens):
    jobs = [
        Job(id=1, processors=4, requested=90, body=tidy, partition="p", on_preempt="no", grace=grace),
        Job(id=2, processors=4, run=50, partition="r"),
    ]
    spec = on(partition, ("r", 100, 200))
    found = runs(spec, jobs, policy, overrun="continue", until=250)
    assert found[:2] == [(1, 0, opens, "requeued"), (2, opens, opens + 50, "completed")]


@pytest.mark.parametrize("partition", [ONE_NODE, COUNTED], ids=["nodes", "processors"])
@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_reservation_waits_for_the_last_body_of_the_one_before(partition, names):
    spec = on(partition, *sorted([(names[0], 0, 100), (names[1], 100, 200)]))
    jobs = [
        Job(id=1, processors=4, requested=100, body=tidy, partition=names[0]),
        Job(id=2, processors=4, run=50, partition=names[1]),
        Job(id=3, processors=4, run=50, partition="p"),
    ]
    found = runs(spec, jobs)
    assert found == [(1, 0, 130, "timeout"), (2, 130, 180, "completed"), (3, 200, 250, "completed")]


def test_a_reservation_whose_nodes_never_come_free_does_not_open():
    jobs = [
        Job(id=1, processors=4, requested=90, body=tidy, partition="p", grace=1000),
        Job(id=2, processors=4, run=10, partition="r"),
    ]
    spec = on(ONE_NODE, ("r", 100, 120))
    result = simulate(spec, jobs, "easy", overrun="continue", until=250)
    assert result.jobs["status"].tolist() == ["running", "cancelled"]
    assert result.runs["start"].tolist() == [0, 130]


def test_what_ifs_continue_a_handover():
    spec = on(ONE_NODE, ("r", 0, 100))
    jobs = [
        Job(id=1, processors=4, requested=100, body=tidy, partition="r"),
        Job(id=2, processors=4, run=50, partition="p"),
    ]
    sim = start(spec, jobs, "easy").run(until=110)
    snapshot = sim.system.snapshot(actual=False)
    assert {state.name: state.pending for state in snapshot.places} == {"p": "", "r": "return"}
    again = start(type(snapshot).from_json(snapshot.to_json())).run()
    places = again.system.pools
    assert (places["p"].free, places["r"].free) == (4, 0)
    assert again.result().jobs["status"].tolist() == ["completed", "completed"]


# ---------------------------------------------------------------------- overlaps


def refused(partition, *parts):
    reservations = [
        ReservationSpec(name=f"r{i}", start=start, end=end, **part) for i, (start, end, part) in enumerate(parts)
    ]
    with pytest.raises(InputError) as caught:
        ClusterSpec(partitions=[PartitionSpec(name="q", processors=1), partition], reservations=reservations)
    return str(caught.value)


def test_reservations_that_overlap_on_a_node_are_refused():
    nodes = PartitionSpec(name="p", nodes=[NodeSpec(count=2), NodeSpec(name="gpu"), NodeSpec()])
    part = {"partition": "p"}
    found = refused(nodes, (0, 50, part | {"nodes": [1, "node2"]}), (49, 60, part | {"nodes": ["gpu0", 3]}))
    assert found == (
        "reservations[1].nodes: must be nodes that no other reservation holds from 49 to 60 s, "
        "got 3 of 'r0' (0 to 50 s)"
    )
    found = refused(nodes, (10, 20, part | {"nodes": ["node1"]}), (5, 100, part | {"nodes": [1]}))
    assert found.startswith("reservations[0].nodes: ")


def test_reservations_of_more_processors_than_there_are_at_an_instant_are_refused():
    part = {"partition": "p"}
    found = refused(
        PartitionSpec(name="p", processors=8),
        (0, 50, part | {"processors": 4}),
        (10, 20, part | {"processors": 4}),
        (20, 30, part | {"processors": 4}),
        (49, 60, part | {"processors": 5}),
    )
    assert found == (
        "reservations[3].processors: must be <= 4, the processors of p that other reservations leave at 49 s, got 5"
    )


def test_reservations_one_after_the_other_or_in_other_partitions_are_accepted():
    nodes = PartitionSpec(name="p", nodes=[NodeSpec(count=2)])
    other = PartitionSpec(name="q", processors=2)
    ClusterSpec(
        partitions=[nodes, other],
        reservations=[
            ReservationSpec(name="a", start=0, end=50, nodes=[0]),
            ReservationSpec(name="b", start=50, end=60, nodes=[0]),
            ReservationSpec(name="c", start=0, end=60, nodes=[1]),
            ReservationSpec(name="d", start=0, end=60, processors=2, partition="q"),
        ],
    )


def test_at_its_end_a_reservation_takes_no_more_jobs():
    sim = start(on(COUNTED, ("r", 0, 100)), [Job(run=1)], "easy").run(until=90)
    job = Job(run=0, requested=5, partition="r")
    assert sim.system.why_not(job) is None
    sim.env.call_at(100, lambda: sim.system.submit(job))
    with pytest.raises(ImpossibleWork, match="access at 100 s requested, reservation r ended at 100 s"):
        sim.run(until=110)
