"""Capacity that changes at run time: resized, drained, leaving and joining parts of pools, checked and recorded."""

from __future__ import annotations

import numpy as np
import pytest

from simmodel import Cluster, Environment, InputError, Job, Start, start
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec
from simmodel.resources import CountPool, NodePool

NODES = PartitionSpec(name="p", nodes=[NodeSpec(count=4, cores=2)])


def on_nodes(policy="fcfs"):
    env = Environment()
    cluster = Cluster(env, ClusterSpec(partitions=[NODES]), policy)
    return env, cluster, cluster.places[0]


# ---------------------------------------------------------------------- checks


def test_capacity_cannot_be_set():
    pool = CountPool(Environment(), "pool", 4)
    with pytest.raises(InputError, match=r"from 4 to 96: places are read-only; call resize\(processors\)"):
        pool.capacity = 96
    with pytest.raises(InputError, match=r"places are read-only; call leave\(nodes\) or join\(nodes\)"):
        on_nodes()[2].capacity = 96


def test_pools_of_either_kind_say_how_they_are_resized():
    pool = CountPool(Environment(), "pool", 4)
    for call in (lambda: pool.leave([0]), lambda: pool.join([0])):
        with pytest.raises(InputError, match=r"pool: cannot (leave|join); call resize\(processors\)"):
            call()
    with pytest.raises(InputError, match=r"p: cannot resize; call leave\(nodes\) or join\(nodes\)"):
        on_nodes()[2].resize(96)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pool: pool.bring_up(10), "processors: must be <= 1, the processors of pool that are down, got 10"),
        (lambda pool: pool.bring_up(0), "processors: must be a whole number >= 1, got 0"),
        (lambda pool: pool.take_down(-1), "processors: must be a whole number >= 1, got -1"),
        (lambda pool: pool.take_down(1.5), "processors: must be a whole number >= 1, got 1.5"),
        (lambda pool: pool.resize(-1), "processors: must be a whole number >= 0, got -1"),
        (lambda pool: pool.resize("8"), "processors: must be a whole number >= 0, got '8'"),
    ],
)
def test_wrong_numbers_of_processors_are_refused(call, message):
    pool = CountPool(Environment(), "pool", 4)
    pool.take_down(1)
    with pytest.raises(InputError) as caught:
        call(pool)
    assert str(caught.value) == message
    assert (pool.free, pool.up, pool.capacity) == (3, 3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pool: pool.bring_up([0, 1]), "nodes: must be nodes that are down, got 'node1' of p"),
        (lambda pool: pool.bring_up([3]), "nodes: must be nodes that take_down took, got 'node3' of p"),
        (lambda pool: pool.take_down([2, "node2"]), "duplicate node 'node2' of p"),
        (lambda pool: pool.take_down("node7"), "unknown node 'node7' of p; known nodes: node0 to node3, or 0 to 3"),
        (lambda pool: pool.join("node0"), "nodes: must be nodes that have left, got 'node0' of p"),
        (lambda pool: pool.leave([2, 3]), "nodes: must be nodes that have not left, got 'node3' of p"),
    ],
)
def test_wrong_nodes_are_refused(call, message):
    pool = NodePool(Environment(), "p", NODES)
    pool.take_down([0])
    pool.leave("node3")
    before = pool.table.free.copy()
    with pytest.raises(InputError) as caught:
        call(pool)
    assert str(caught.value) == message
    assert (pool.table.free == before).all()
    assert (pool.free, pool.up, pool.capacity, pool.down_nodes) == (4, 4, 6, (0, 3))


@pytest.mark.parametrize("partition", [NODES, PartitionSpec(name="p", processors=8)])
def test_reservations_keep_their_size(partition):
    part = {"nodes": [0]} if partition.nodes else {"processors": 2}
    spec = ClusterSpec(partitions=[partition], reservations=[ReservationSpec(name="r", start=0, end=9, **part)])
    place = Cluster(Environment(), spec).pools["r"]
    with pytest.raises(InputError, match="r: it is a reservation"):
        place.leave([0]) if partition.nodes else place.resize(4)


@pytest.mark.parametrize("kind", ["failure", "drain", "maintenance", "reservation"])
@pytest.mark.parametrize("partition", [NODES, PartitionSpec(name="p", processors=8)], ids=["nodes", "processors"])
def test_what_the_calendar_took_comes_up_by_itself(partition, kind):
    part, wrong = ({"nodes": [0]}, [0]) if partition.nodes else ({"processors": 2}, 2)
    spec = ClusterSpec(
        partitions=[partition],
        outages=[] if kind == "reservation" else [OutageSpec(at=5, until=50, kind=kind, **part)],
        reservations=[ReservationSpec(name="r", start=5, end=50, **part)] if kind == "reservation" else [],
    )
    sim = start(spec, [Job(run=100)], "easy").run(until=10)
    pool = sim.system.places[0]
    free = pool.free
    with pytest.raises(InputError, match="that take_down took, got"):
        pool.bring_up(wrong)
    pool.take_down(wrong)
    pool.bring_up(wrong)
    with pytest.raises(InputError, match="that take_down took, got"):
        pool.bring_up(wrong)
    assert pool.free == free
    sim.run(until=60)
    assert pool.up == 8
    again = start(start(spec, [Job(run=100)], "easy").run(until=10).snapshot()).system.places[0]
    with pytest.raises(InputError, match="that take_down took, got"):
        again.bring_up(wrong)


def test_nodes_that_leave_or_drain_are_not_in_their_reservation_either():
    spec = ClusterSpec(partitions=[NODES], reservations=[ReservationSpec(name="r", start=10, end=50, nodes=[0, 1, 2])])
    sim = start(spec, [Job(nodes=3, partition="r", run=5), Job(nodes=1, partition="r", run=5, submit=20)], "easy")
    pool, reserved = sim.system.places
    pool.leave([0])
    pool.take_down("node1", "failure")
    sim.run(until=30)
    assert sim.result().jobs["start"].tolist()[1:] == [20]
    assert sim.result().runs["nodes"].tolist() == [(2,)]
    pool.join([0])
    pool.bring_up([1])
    sim.run(until=40)
    assert sim.result().jobs["start"].tolist() == [30, 20]
    assert (reserved.up, reserved.down_nodes) == (6, ())
    sim.run(until=60)
    assert (pool.up, pool.free, pool.capacity) == (8, 8, 8)


def test_a_reservation_keeps_its_processors_and_opens_when_there_are_enough():
    counted = PartitionSpec(name="p", processors=8)
    reservations = [ReservationSpec(name=f"r{i}", start=40 * i, end=40 * i + 30, processors=3) for i in range(2)]
    sim = start(ClusterSpec(partitions=[counted], reservations=reservations), [Job(partition="r1", run=5)], "easy")
    sim.run(until=20)
    pool = sim.system.places[0]
    with pytest.raises(InputError, match="processors: must be >= 3, the processors that reservations of p hold, got 2"):
        pool.resize(2)
    assert (pool.capacity, pool.up) == (8, 5)
    sim.run(until=35)
    pool.resize(2)
    sim.env.call_at(45, lambda: pool.resize(8))
    sim.run(until=60)
    assert sim.result().jobs["start"].tolist() == [45]


# ---------------------------------------------------------------------- effects


def test_cloud_bursting_adds_processors_while_the_queue_is_long():
    env = Environment()
    cluster = Cluster(env, 4)
    pool = cluster.places[0]
    jobs = [cluster.submit(Job(processors=4, run=100)) for _ in range(4)]

    def burst(env):
        yield env.timeout(10)
        pool.resize(12, cause="burst")
        yield env.timeout(150)
        pool.resize(4)

    env.process(burst(env))
    env.run()
    assert [job.started for job in jobs] == [0, 10, 10, 100]
    record = cluster.result()
    assert record.changes["cause"].tolist() == ["burst", "resize"]
    assert record.capacity().at(np.array([5, 50, 155, 165, 199])).tolist()[:3] == [4, 12, 12]
    assert record.utilisation().values.max() <= 1
    assert (pool.free, pool.capacity) == (4, 4)


def test_fewer_processors_drain():
    env = Environment()
    cluster = Cluster(env, 10)
    pool = cluster.places[0]
    first = cluster.submit(Job(processors=10, run=100))
    env.run(until=10)
    pool.resize(4)
    assert (pool.free, pool.up, pool.capacity) == (-6, 4, 4)
    second = cluster.submit(Job(processors=4, run=10))
    with pytest.raises(ImpossibleWork, match="5 processors requested, batch has 4"):
        cluster.submit(Job(processors=5, run=10))
    env.run()
    assert (first.state, first.run, second.started) == ("completed", None, 100)
    record = cluster.result()
    assert record.utilisation().values.max() <= 1
    assert (record.processors, record.capacity().at(np.array([5, 50, 105])).tolist()) == (10, [10, 10, 4])


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep", "best-fit", "window"])
def test_jobs_that_no_longer_fit_into_a_pool_wait(policy):
    env = Environment()
    cluster = Cluster(env, 8, policy)
    pool = cluster.places[0]
    jobs = [cluster.submit(Job(processors=size, run=10)) for size in (8, 8, 2)]
    env.run(until=5)
    pool.resize(4)
    with pytest.raises(Stalled, match=r"job 2 .* 4 of 4 are free: 8 processors requested, batch has 4"):
        env.run()
    assert jobs[0].state == "completed"
    pool.resize(8)
    env.run()
    assert {job.state for job in jobs} == {"completed"}


def test_who_gives_up_a_claim_lets_those_behind_it_go_on():
    """Of 4 processors 2 are held; a claim of 4 waits, and one of 2 behind it, until the first is given up."""
    env = Environment()
    pool = Cluster(env, 4).places[0]
    granted = []

    def user(name, processors, seconds):
        with pool.claim(processors=processors) as claim:
            yield claim | env.timeout(seconds)
            granted.append((name, env.now, claim.triggered))
            yield env.timeout(20)

    env.process(user("first", 2, 5))
    env.run(until=1)
    wide = pool.claim(processors=4)
    env.process(user("behind", 2, 50))
    env.run(until=7)
    assert granted == [("first", 0, True)]
    wide.release()
    env.run()
    assert granted == [("first", 0, True), ("behind", 7, True)]
    assert not wide.triggered
    assert pool.free == 4


def test_a_resize_wakes_claims():
    env = Environment()
    pool = CountPool(env, "pool", 4)
    granted = []

    def user(env):
        with pool.claim(processors=4) as first:
            yield first
            with pool.claim(processors=3) as second:
                yield second
                granted.append(env.now)

    env.process(user(env))
    env.run(until=7)
    pool.resize(7)
    env.run()
    assert granted == [7]


@pytest.mark.parametrize("change", ["resize", "bring_up"])
def test_a_broker_above_decides_again(change):
    asked = []

    def only_where_free(view):
        asked.append(view.now)
        for job in view.waiting:
            for place in view.places:
                if place.free >= job.processors:
                    yield Start(job, place)
                    break

    sim = start({"a": 4}, [Job(processors=4, run=10)], only_where_free)
    pool = sim.system.places[0].system.places[0]
    pool.take_down(2) if change == "bring_up" else pool.resize(2)
    env = sim.env
    env.call_at(30, lambda: pool.bring_up(2) if change == "bring_up" else pool.resize(4))
    if change == "resize":
        pool.resize(4)
        pool.take_down(3)
        env.call_at(20, lambda: pool.resize(8))
    sim.run()
    assert sim.result().jobs["start"].tolist() == [20 if change == "resize" else 30]


def test_nodes_leave_when_their_work_has_ended_and_come_back():
    env, cluster, pool = on_nodes()
    first = cluster.submit(Job(nodes=2, cores_per_node=2, run=100))
    env.run(until=10)
    pool.leave(["node0", 1])
    assert (pool.capacity, pool.up, pool.free, pool.down_nodes) == (4, 4, 4, (0, 1))
    with pytest.raises(ImpossibleWork, match="3 nodes"):
        cluster.submit(Job(nodes=3, cores_per_node=2, run=10))
    wide = cluster.submit(Job(nodes=2, cores_per_node=2, run=200))
    next_one = cluster.submit(Job(nodes=1, run=5))
    env.run(until=150)
    assert (first.state, wide.started, next_one.started) == ("completed", 10, None)
    pool.join("node1")
    env.run()
    assert (next_one.started, pool.capacity) == (150, 6)
    record = cluster.result()
    assert record.changes["cause"].tolist() == ["leave", "join"]
    assert record.utilisation().values.max() <= 1


def test_a_node_that_left_stays_away_when_it_is_repaired():
    _, _, pool = on_nodes()
    pool.take_down([0], "failure")
    pool.leave([0])
    pool.bring_up([0], "repair")
    assert pool.down_nodes == (0,)
    pool.join([0])
    assert (pool.down_nodes, pool.free) == ((), 8)


def test_changes_of_a_pool_outside_a_cluster_are_told_to_observers():
    env = Environment()
    heard = []

    class Watch:
        def place_changed(self, place, cause):
            heard.append((place.name, cause, place.up))

    env.observe(Watch())
    pool = CountPool(env, "pool", 4)
    pool.take_down(3)
    pool.bring_up(1)
    pool.resize(9, "burst")
    pool.announce(5, 8, 2)
    env.run()
    assert {name for name, _, _ in heard} == {"pool"}
    assert [each[1:] for each in heard] == [("drain", 1), ("resume", 2), ("burst", 7), ("drain", 5), ("resume", 7)]


def test_windows_are_in_the_order_of_their_starts_then_their_ends_then_their_announcement():
    pool = CountPool(Environment(), "pool", 9)
    made = [pool.announce(*span) for span in ((20, 30, 1), (10, 30, 2), (10, 30, 3), (10, 20, 1), (10, 30, 1))]
    assert pool.windows == [made[number] for number in (3, 1, 2, 4, 0)]


# ---------------------------------------------------------------------- snapshots


def changed(partition):
    """Return a simulation whose capacity has changed, and one function that changes it again."""
    jobs = [Job(submit=7 * i, processors=1 + i % 4, run=20 + i, requested=40) for i in range(30)]
    sim = start(ClusterSpec(partitions=[partition]), jobs, "easy").run(until=30)
    pool = sim.system.places[0]
    pool.leave([1, 3]) if partition.nodes else pool.resize(5)
    pool.take_down([0] if partition.nodes else 1)
    return sim


def grow(pool):
    pool.join([1, 3]) if isinstance(pool, NodePool) else pool.resize(9)


@pytest.mark.parametrize("partition", [NODES, PartitionSpec(name="p", processors=8)], ids=["nodes", "processors"])
@pytest.mark.parametrize("cut", [31, 60, 100])
def test_snapshots_keep_a_changed_capacity(partition, cut):
    whole, half = changed(partition), changed(partition)
    half.run(until=cut)
    snapshot = half.snapshot()
    again = start(type(snapshot).from_json(snapshot.to_json()))
    pools = [sim.system.places[0] for sim in (whole, again)]
    assert again.system.places[0].capacity == half.system.places[0].capacity
    for sim, pool in zip((whole, again), pools, strict=True):
        sim.env.call_at(150, lambda pool=pool: grow(pool))
        sim.run()
    assert pools[0].capacity == pools[1].capacity
    jobs = [sim.result().jobs for sim in (whole, again)]
    ends = [dict(zip(each["job"].tolist(), each["end"].tolist(), strict=True)) for each in jobs]
    assert ends[1]
    assert ends[1].items() <= ends[0].items()
