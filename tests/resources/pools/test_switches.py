"""Placements that look at switches: cases worked by hand, brute force, and whole switches in schedules."""

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec
from simmodel.platform.models import PLACEMENTS
from simmodel.resources import register_placement
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.resources.pools.placements import placement_named

POLICIES = [
    "fcfs",
    "best-fit",
    "easy",
    "easy-sjbf",
    "conservative",
    "conservative-keep",
    "window",
    "wfp+easy",
    "portfolio",
]


def table(free, switches, placement="packed", capacity=8):
    """Return a table of nodes with 8 cores, by what is free of them and their switches."""
    made = NodeTable(np.full((3, len(free)), [[capacity], [2], [0]], dtype=float), placement, switches)
    made.free[0] = free
    return made


def nodes_of(found):
    return [node for node, *_ in found.rows]


def partition(placement="packed", exclusive=False, **kind):
    kind = {"count": 8, "cores": 4, "switch": "leaf", "nodes_per_switch": 4, **kind}
    return PartitionSpec(nodes=[NodeSpec(**kind)], placement=placement, exclusive=exclusive)


@pytest.mark.parametrize(
    ("free", "wanted", "expected"),
    [
        ([8, 8, 8, 8, 8, 8], 2, [3, 4]),  # the smallest switch that is enough
        ([8, 8, 8, 4, 8, 8], 3, [0, 1, 2]),
        ([8, 8, 4, 8, 8, 8], 1, [2]),  # a used node
        ([4, 8, 4, 8, 8, 8], 2, [0, 2]),  # two used ones on one switch
        ([8, 8, 8, 8, 8, 8], 4, [0, 1, 2, 5]),  # a whole switch and the smallest other
        ([8, 8, 8, 8, 4, 8], 4, [0, 1, 2, 4]),  # but rather a used node
        ([0, 8, 8, 8, 8, 8], 5, [1, 2, 3, 4, 5]),
    ],
)
def test_packed_uses_few_switches_and_used_nodes(free, wanted, expected):
    made = table(free, [0, 0, 0, 1, 1, 2])
    assert nodes_of(made.allocate(Request(wanted * 4, nodes=wanted, cores_per_node=4))) == expected


def test_cores_anywhere_are_packed_on_few_switches_and_there_on_few_nodes():
    made = table([8, 8, 8, 5, 8, 2], [0, 0, 0, 1, 1, 2])
    assert made.allocate(Request(2)).rows == ((5, 2, 0, 0),)
    assert made.allocate(Request(9)).rows == ((3, 1, 0, 0), (4, 8, 0, 0))
    assert made.allocate(Request(26)).rows == ((0, 8, 0, 0), (1, 8, 0, 0), (2, 8, 0, 0), (5, 2, 0, 0))
    assert nodes_of(made.allocate(Request(9, exclusive=True))) == [0, 1]


def test_packed_uses_the_fewest_switches_by_brute_force():
    rng = Random(4)
    for _ in range(300):
        count = rng.randint(1, 8)
        switches = [rng.randint(0, 3) for _ in range(count)]
        made = table([rng.choice([0, 4, 8]) for _ in range(count)], switches)
        request = Request(0, nodes=rng.randint(1, 4), cores_per_node=4)
        able = [node for node in range(count) if made.free[0, node] >= 4]
        choices = list(combinations(able, request.nodes))
        found = made.allocate(request)
        assert (found is not None) == bool(choices)
        if found is None:
            continue
        chosen = nodes_of(found)
        least = min(len({switches[node] for node in choice}) for choice in choices)
        assert len({switches[node] for node in chosen}) == least
        if least > 1:
            continue

        def rank(choice, made=made, able=able, switches=switches):
            on = switches[choice[0]]
            unused = [made.free[0, node] == 8 for node in choice]
            return sum(unused), sum(switches[node] == on for node in able), on, sorted(zip(unused, choice, strict=True))

        single = [choice for choice in choices if len({switches[node] for node in choice}) == 1]
        assert chosen == sorted(min(single, key=rank))


def test_whole_switches_are_taken_with_all_nodes_that_are_up():
    made = table([8] * 6, [0, 0, 0, 1, 1, 2], "exclusive-by-switch")
    one, two, six = (Request(4 * n, nodes=n, cores_per_node=4, exclusive=True, whole_switches=True) for n in (1, 2, 6))
    assert made.allocate(one).rows == ((5, 8, 2, 0),)
    held = made.allocate(two)
    assert held.rows == ((3, 8, 2, 0), (4, 8, 2, 0))
    assert held.meets(two)
    assert not held.meets(six)
    assert nodes_of(made.allocate(six)) == [0, 1, 2, 3, 4, 5]
    assert nodes_of(made.allocate(Request(17, exclusive=True, whole_switches=True))) == [0, 1, 2]
    made.take(Allocation.of([(0, 1, 0, 0)]))  # of anybody
    made.take(Allocation.away([0, 3]))
    assert nodes_of(made.allocate(two)) == [4, 5]
    assert not made.fits(Request(12, nodes=3, cores_per_node=4, exclusive=True, whole_switches=True))
    assert not made.allows(Allocation.of([(1, 8, 2, 0), (2, 8, 2, 0)]), two)
    assert made.allows(Allocation.of([(4, 8, 2, 0), (5, 8, 2, 0)]), two)


def test_nodes_without_a_switch_are_alone():
    kinds = [NodeSpec(count=2, cores=8, switch="a"), NodeSpec(count=2, cores=8)]
    made = NodeTable.of(kinds, "exclusive-by-switch")
    assert nodes_of(made.allocate(Request(8, nodes=1, cores_per_node=8, exclusive=True, whole_switches=True))) == [2]
    assert NodeTable.of(kinds[1:]).switches is None
    assert made.without([0, 2]).switches.tolist() == [0, 2]


SOME = [policy for policy in POLICIES if policy != "window"]


@pytest.mark.few(3)
@pytest.mark.parametrize("policy", [*SOME, pytest.param("window", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("seeds", [4, pytest.param(15, marks=pytest.mark.exhaustive)])
def test_no_two_jobs_are_on_one_switch_at_a_time(policy, seeds):
    for seed in range(seeds):
        rng = Random(seed)
        part = PartitionSpec(
            nodes=[
                NodeSpec(name="a", count=rng.randint(1, 7), cores=4, switch=0, nodes_per_switch=rng.randint(1, 4)),
                NodeSpec(name="b", count=3, cores=8, gpus=2, memory=16, switch=1),
            ],
            placement="exclusive-by-switch",
        )
        outages = [OutageSpec(at=rng.randint(0, 20), until=60, nodes=[0], kind=rng.choice(["maintenance", "drain"]))]
        jobs = [
            Job(
                id=i,
                submit=i // 2,
                run=rng.randint(1, 20),
                requested=30,
                **rng.choice(
                    [
                        {"processors": rng.randint(1, 20)},
                        {"nodes": rng.randint(1, 4), "cores_per_node": rng.randint(1, 4)},
                    ]
                ),
                memory_per_node=rng.choice([0, 0, 5]),
            )
            for i in range(20)
        ]
        spec = ClusterSpec(partitions=[part], outages=outages if rng.random() < 0.5 else [])
        result = simulate(spec, jobs, policy)
        on, held = part.node_switches, {}
        for nodes, start, end, job in zip(
            *(result.runs[name] for name in ("nodes", "start", "end", "job")), strict=True
        ):
            assert len(nodes) >= (jobs[job].nodes or 1)
            for switch in {on[node] for node in nodes}:
                held.setdefault(switch, []).append((start, end))
        for spans in held.values():
            spans.sort()
            assert all(one[1] <= next_[0] for one, next_ in pairwise(spans))
        assert set(result.jobs["status"].tolist()) <= {"completed", "rejected"}


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy", "easy-sjbf", "largest+easy", "best-fit"])
def test_switches_that_are_alike_are_as_counted_processors(policy):
    for seed in range(20):
        rng = Random(seed)
        rows = [(i // 3, rng.randint(1, 20), rng.randint(1, 4)) for i in range(30)]
        wide = [Job(submit=at, run=run, requested=run + 5 * (run % 3), processors=n) for at, run, n in rows]
        spec = ClusterSpec(partitions=[partition("exclusive-by-switch", count=16)])
        asked = [
            Job(submit=at, run=run, requested=run + 5 * (run % 3), nodes=4 * n, cores_per_node=4) for at, run, n in rows
        ]
        assert simulate(spec, asked, policy).jobs["start"].tolist() == simulate(4, wide, policy).jobs["start"].tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", [2, pytest.param(8, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("policy", POLICIES)
def test_any_placement_of_nodes_that_are_alike_and_exclusive_starts_what_counts_start(policy, seeds):
    register_placement("from-the-end", lambda _table, candidates, _count: candidates[::-1])
    try:
        for seed in range(seeds):
            rng = Random(seed)
            rows = [(i // 3, rng.randint(1, 20), rng.randint(1, 8)) for i in range(30)]
            jobs = [Job(submit=at, run=run, requested=run + 5 * (run % 3), processors=n) for at, run, n in rows]
            asked = [Job(submit=at, run=run, requested=run + 5 * (run % 3), nodes=n) for at, run, n in rows]
            expected = simulate(8, jobs, policy).jobs["start"].tolist()
            for placement in sorted(set(PLACEMENTS) - {"contiguous", "exclusive-by-switch"}):
                refuses = placement_named(placement).refuses
                if refuses is not None and refuses(partition()) is not None:
                    continue  # it needs a network
                choice = placement_named(placement).choice
                if choice is not None and choice.tells_devices:
                    continue  # its promises are of certain nodes, also where these are alike
                spec = ClusterSpec(partitions=[partition(placement, exclusive=True, cores=1)])
                result = simulate(spec, asked, policy)
                assert result.jobs["start"].tolist() == expected, (seed, placement)
                assert [len(nodes) for nodes in result.runs["nodes"]] == result.runs["processors"].tolist()
    finally:
        del PLACEMENTS["from-the-end"]


@pytest.mark.parametrize("exclusive", [False, True])
def test_packed_keeps_jobs_within_switches(exclusive):
    jobs = [Job(nodes=n, cores_per_node=4, run=100) for n in (3, 2, 2, 1)]
    result = simulate(ClusterSpec(partitions=[partition(exclusive=exclusive)]), jobs, "easy")
    assert list(result.runs["nodes"]) == [(0, 1, 2), (4, 5), (6, 7), (3,)]
    by_number = simulate(ClusterSpec(partitions=[partition("first-fit", exclusive)]), jobs, "easy")
    assert list(by_number.runs["nodes"]) == [(0, 1, 2), (3, 4), (5, 6), (7,)]


def test_reserved_nodes_keep_their_switches():
    part = partition("exclusive-by-switch")
    spec = ClusterSpec(partitions=[part], reservations=[ReservationSpec(name="r", start=0, end=50, nodes=[2, 3, 4, 5])])
    jobs = [Job(nodes=1, run=10, requested=10, partition="r") for _ in range(3)]
    result = simulate(spec, jobs, "fcfs")
    assert list(result.runs["nodes"]) == [(0, 1), (2, 3), (0, 1)]
    assert result.jobs["start"].tolist() == [0, 0, 10]


def test_a_simulation_with_whole_switches_continues_from_a_snapshot():
    from simmodel import start

    spec = ClusterSpec(partitions=[partition("exclusive-by-switch", count=12)])
    jobs = [Job(submit=i, nodes=1 + i % 6, cores_per_node=2, run=9 + i, requested=30) for i in range(12)]
    expected = simulate(spec, jobs, "easy").jobs
    cut = start(spec, jobs, "easy")
    cut.run(until=20)
    resumed = simulate(cut.snapshot()).jobs
    starts = dict(zip(expected["job"].tolist(), expected["start"].tolist(), strict=True))
    assert {job: starts[job] for job in resumed["job"].tolist()} == dict(
        zip(resumed["job"].tolist(), resumed["start"].tolist(), strict=True)
    )


def test_entry_points_offer_placements(monkeypatch):
    from simmodel.foundation import entries
    from simmodel.foundation.entries import Entries
    from simmodel.platform import cluster
    from simmodel.resources.pools import placements

    offered = {"simmodel.placements": {"backwards": "tests.resources.pools.test_switches:backwards"}}
    monkeypatch.setattr(entries, "offered", offered.get)
    for module in (cluster, placements):
        monkeypatch.setattr(module, "PLACEMENTS", Entries({}, "simmodel.placements"))
    assert placements.described_placements() == {"backwards": "from tests.resources.pools.test_switches:backwards"}
    spec = ClusterSpec(partitions=[partition("backwards", exclusive=True)])
    assert list(simulate(spec, [Job(nodes=2, run=1)], "fcfs").runs["nodes"]) == [(6, 7)]


def backwards(_table, candidates, _count):
    """Return the nodes of highest number first."""
    return candidates[::-1]
