"""While bodies still hold the nodes of a reservation, plans expect the nodes when the last body is killed."""

from __future__ import annotations

import json
from types import SimpleNamespace

import attrs
import pytest
import simpy

from simmodel import InputError, Job, start
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec
from simmodel.policies import Conservative, Easy
from simmodel.policies.planning import ConservativeKeep
from simmodel.snapshots import ClusterSnapshot

NODES = PartitionSpec(name="p", nodes=[NodeSpec(name="n", count=2, cores=4)])
COUNTED = PartitionSpec(name="p", processors=8)
KINDS = pytest.mark.parametrize("partition", [NODES, COUNTED], ids=["nodes", "processors"])
NEVER = float("inf")


def cleans(seconds):
    """Return a body that runs for 1000 s; once interrupted, it cleans up for so many seconds."""

    def body(env, job, grant):
        try:
            yield env.timeout(1000)
        except simpy.Interrupt:
            yield env.timeout(seconds)
            raise

    return body


def on(partition, *reservations):
    """Return a cluster of 8 processors with reservations (name, start, end) of the same 4."""
    part = {"nodes": [0]} if partition.nodes else {"processors": 4}
    specs = [ReservationSpec(name=name, start=start, end=end, **part) for name, start, end in reservations]
    return ClusterSpec(partitions=[partition], reservations=specs)


def at(instant, spec, jobs, **options):
    """Return the cluster at an instant."""
    return start(spec, jobs, "fcfs", **options).run(until=instant).system


def earliest(cluster, place, processors=4, seconds=20):
    """Return the earliest instant at which a job fits, by the profile of a place."""
    job = SimpleNamespace(processors=processors, request=None, history=None, requested=seconds)
    found = cluster.pools[place].profile().earliest(job, seconds)[0]
    assert found >= cluster.env.now
    return found


@KINDS
@pytest.mark.parametrize(("grace", "back"), [(30, 130), (50, 150), (NEVER, NEVER)])
def test_at_the_end_the_partition_expects_its_part_when_the_last_body_is_killed(partition, grace, back):
    jobs = [
        Job(id=1, processors=2, requested=100, body=cleans(20), partition="r"),
        Job(id=2, processors=2, requested=100, body=cleans(90), partition="r", grace=grace),
    ]
    spec = on(partition, ("r", 0, 100))
    for instant in (110, 125):  # at 120 the first body has left
        cluster = at(instant, spec, jobs)
        assert not cluster.pools["p"].simple
        assert earliest(cluster, "p", 4) == instant
        assert earliest(cluster, "p", 8) == back
        assert earliest(cluster, "r", 1, 1) == NEVER
    cluster = at(191, spec, jobs)
    assert cluster.pools["p"].simple
    assert earliest(cluster, "p", 8) == 191


@KINDS
@pytest.mark.parametrize(("grace", "opens"), [(30, 130), (50, 150), (79, 179), (95, NEVER), (NEVER, NEVER)])
def test_at_its_beginning_a_reservation_expects_its_part_when_the_last_body_is_killed(partition, grace, opens):
    body = Job(id=1, processors=8, requested=90, body=cleans(75), partition="p", on_preempt="no", grace=grace)
    spec = on(partition, ("r", 100, 200))
    cluster = at(110, spec, [body], overrun="continue")
    assert earliest(cluster, "r") == opens
    assert earliest(cluster, "r", seconds=71) == NEVER  # a reservation ends in time, however late it opens
    assert earliest(cluster, "p", 8) == 200
    cluster = at(176, spec, [body], overrun="continue")  # the body has left or was killed
    assert earliest(cluster, "r") == 176
    assert earliest(cluster, "p", 4) == 176


@pytest.mark.parametrize(("requested", "opens"), [(150, 150), (190, 180)])
def test_counted_processors_are_expected_when_enough_have_left(requested, opens):
    jobs = [
        Job(id=1, processors=4, requested=requested, run=170, partition="p"),
        Job(id=2, processors=2, requested=90, body=cleans(95), partition="p", grace=80),
        Job(id=3, processors=2, requested=90, body=cleans(95), partition="p", grace=20),
    ]
    cluster = at(99, on(COUNTED, ("r", 100, 200)), jobs, overrun="continue")
    cluster.env.run(until=100.5)  # 2 and 3, the latest, are stopped; 1 may end before the second of them
    assert earliest(cluster, "r") == opens
    assert earliest(cluster, "p", 8) == 200
    cluster.env.run(until=125)
    assert cluster.pools["r"].free == 0


@KINDS
@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_reservation_expects_its_part_when_the_last_body_of_the_one_before_is_killed(partition, names):
    partition = attrs.evolve(partition, **({"nodes": [NodeSpec(cores=4)]} if partition.nodes else {"processors": 4}))
    spec = on(partition, *sorted([(names[0], 0, 100), (names[1], 100, 200)]))
    body = Job(id=1, processors=2, requested=100, body=cleans(30), partition=names[0], grace=40)
    cluster = at(100, spec, [body])
    cluster.env.run(until=105)
    assert earliest(cluster, names[1]) == 140
    assert earliest(cluster, "p") == 200  # the two absences overlap
    cluster.env.run(until=131)
    assert earliest(cluster, names[1]) == 131
    assert earliest(at(105, spec, []), names[1]) == 105


@pytest.mark.few(3)
@KINDS
@pytest.mark.parametrize("policy", [Easy(promises=True), Conservative(promises=True), ConservativeKeep()])
def test_promises_during_a_hand_over_are_kept(partition, policy):
    jobs = [
        Job(id=1, processors=4, requested=100, body=cleans(90), partition="r", grace=50),
        Job(id=2, submit=110, processors=8, run=10, partition="p"),
    ]
    sim, heard = start(on(partition, ("r", 0, 100)), jobs, policy), []
    sim.env.observe(SimpleNamespace(job_promised=lambda job, place, at: heard.append((job.id, float(sim.env.now), at))))
    result = sim.run().result()
    assert heard == [(2, 110, 150)]
    assert result.jobs["start"].tolist() == [0, 150]


@KINDS
@pytest.mark.parametrize(("instant", "place", "free_at"), [(110, "p", 130), (210, "s", 240)])
def test_what_ifs_expect_the_same(partition, instant, place, free_at):
    spec = on(partition, ("r", 0, 100), ("s", 200, 300))
    jobs = [
        Job(id=1, processors=4, requested=100, body=cleans(90), partition="r"),
        Job(id=2, submit=140, processors=8, requested=55, body=cleans(90), partition="p", grace=40, on_preempt="no"),
    ]
    sim = start(spec, jobs, "fcfs", overrun="continue").run(until=instant)
    wide = 8 if place == "p" else 4
    assert earliest(sim.system, place, wide) == free_at
    snapshot = sim.system.snapshot(actual=False)
    again = start(type(snapshot).from_json(snapshot.to_json()))
    assert earliest(again.system, place, wide) == free_at
    again.run(until=instant + 1)  # in a what-if, work past its expected end ends just after now
    assert earliest(again.system, place, wide) == instant + 1


def test_a_snapshot_whose_pending_part_has_no_window_is_refused():
    body = Job(id=1, processors=4, requested=100, body=cleans(90), partition="r")
    document = at(110, on(NODES, ("r", 0, 100)), [body]).snapshot(actual=False).to_json()
    data = json.loads(document)
    data["places"][0]["windows"] = []
    with pytest.raises(InputError) as caught:
        ClusterSnapshot.from_json(json.dumps(data))
    assert str(caught.value).endswith(
        "places[1].pending: must be '' without a window that has begun, 'reservation r' of p, got 'return'"
    )


@KINDS
def test_absences_that_overlap_end_one_after_the_other(partition):
    both = {"nodes": [0]} if partition.nodes else {"processors": 8}
    outages = [OutageSpec(at=at, until=until, kind="maintenance", **both) for at, until in [(10, 20), (15, 30)]]
    cluster = at(16, ClusterSpec(partitions=[partition], outages=outages), [])
    assert earliest(cluster, "p", 8) == 30
