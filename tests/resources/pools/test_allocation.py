"""Placement of requests on nodes: cases worked by hand, and a comparison with brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.platform.cluster import NodeSpec
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.work.job import Job
from tests.helpers.examples import up_to

GB = 2**30

PLAIN = ["best-fit", "exclusive-by-switch", "first-fit", "packed", "spread"]
"""The placements that need no network, draw nothing and let no job wait for better nodes."""


def table(free, capacity=None, placement="first-fit", gpus=None):
    """Return a table of nodes with these free cores and capacities."""
    capacity = capacity or [8] * len(free)
    gpus = gpus or [0] * len(free)
    made = NodeTable(np.array([capacity, gpus, [0] * len(free)], dtype=float), placement)
    made.free[0] = free
    return made


def cores(found):
    return [(node, held) for node, held, _, _ in found.rows]


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("first-fit", [(0, 8), (1, 1)]),
        ("best-fit", [(0, 1), (1, 3), (2, 5)]),  # fullest nodes first
        ("spread", [(0, 8), (3, 1)]),  # emptiest nodes first
        ("packed", [(1, 1), (3, 8)]),  # two nodes at least: the emptiest used one, and the one left with fewest
    ],
)
def test_cores_anywhere_are_those_of_the_placement(placement, expected):
    made = table([8, 3, 5, 8], [8, 8, 8, 16], placement)
    assert cores(made.allocate(Request(9))) == expected


@pytest.mark.parametrize(
    ("placement", "expected"),
    [("first-fit", [0, 1]), ("best-fit", [1, 2]), ("packed", [1, 2]), ("spread", [0, 4])],
)
def test_requests_for_nodes_get_those_of_the_placement(placement, expected):
    made = table([8, 4, 6, 3, 8], placement=placement)
    found = made.allocate(Request(8, nodes=2, cores_per_node=4))
    assert cores(found) == [(node, 4) for node in expected]


@pytest.mark.parametrize("count", [1, 8])
def test_parts_of_another_number_of_capacities_are_refused_one_by_one_and_together(count):
    cores_and_gpus = Allocation(np.array([0]), np.array([[1.0], [1.0]]))
    with pytest.raises(ValueError, match=r"shape|shorter"):
        table([4]).add([(cores_and_gpus, 1)] * count)


def test_a_request_for_cores_and_nothing_else_is_for_cores_anywhere():
    assert Request(4).anywhere
    for more in ({"nodes": 4}, {"gpus_per_node": 1}, {"memory_per_node": 1.0}, {"exclusive": True}):
        assert not Request(4, **more).anywhere


def test_best_fit_looks_at_gpus_next():
    made = table([4, 4, 4], placement="best-fit", gpus=[4, 1, 2])
    assert made.allocate(Request(1, nodes=1)).rows == ((1, 1, 0, 0),)
    assert made.allocate(Request(1, nodes=1, gpus_per_node=2)).rows == ((2, 1, 2, 0),)


def test_packed_uses_one_node_where_one_is_enough():
    made = table([8, 1, 5, 6], placement="packed")
    assert cores(made.allocate(Request(4))) == [(2, 4)]
    assert cores(made.allocate(Request(7))) == [(0, 7)]


@pytest.mark.parametrize("placement", PLAIN)
def test_exclusive_requests_get_whole_nodes(placement):
    made = table([8, 7, 8, 16, 8], [8, 8, 8, 16, 8], placement)
    assert cores(made.allocate(Request(5, exclusive=True))) == [(0, 8)]
    assert cores(made.allocate(Request(17, exclusive=True))) == [(0, 8), (3, 16)]
    assert made.allocate(Request(41, exclusive=True)) is None
    twice = made.allocate(Request(4, nodes=2, cores_per_node=2, exclusive=True))
    assert cores(twice) == [(0, 8), (3, 16) if placement == "spread" else (2, 8)]
    assert twice.meets(Request(4, nodes=2, cores_per_node=2, exclusive=True))


def test_memory_and_gpus_come_from_each_node():
    kinds = [NodeSpec(count=2, cores=4, gpus=2, memory=8 * GB), NodeSpec(name="thin", cores=4, memory=2 * GB)]
    made = NodeTable.of(kinds)
    found = made.allocate(Request.of(Job(processors=6, memory_per_node=5 * GB, run=1)))
    assert found.rows == ((0, 4, 0, 5 * GB), (1, 2, 0, 5 * GB))
    made.take(found)
    assert not made.fits(Request(1, memory_per_node=4.0 * GB))
    assert made.allocate(Request(1, nodes=1, gpus_per_node=2)).rows == ((1, 1, 2, 0),)
    made.release(found)
    assert (made.free == made.capacity).all()


def test_memory_that_is_not_described_is_no_limit():
    made = NodeTable.of([NodeSpec(cores=4)])
    assert made.fits(Request(1, memory_per_node=float(2**40)))


def test_nodes_that_are_away_give_nothing():
    made = table([8, 8, 8])
    made.take(Allocation.away([0, 1]))
    made.take(Allocation.away([1]))
    assert made.cores == 8
    assert cores(made.allocate(Request(3))) == [(2, 3)]
    made.release(Allocation.away([0, 1]))
    assert cores(made.allocate(Request(9))) == [(0, 8), (2, 1)]
    made.release(Allocation.away([1]))
    assert made.cores == 24


def test_the_minimum_is_what_stays_free():
    low = table([8, 2, 5]).minimum([table([1, 8, 5])])
    assert low.free[0].tolist() == [1, 2, 5]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request(25), "25 processors requested, the pool has 24"),
        (Request(9, nodes=1, cores_per_node=9), "1 node with 9 cores requested, the pool has 0 such nodes"),
        (Request(4, nodes=4), "4 nodes with 1 core each requested, the pool has 3 such nodes"),
        (
            Request(2, nodes=2, gpus_per_node=1, memory_per_node=7.0),
            "2 nodes with 1 core, 1 GPU and 7 bytes each requested, the pool has 0 such nodes",
        ),
        (Request(9, gpus_per_node=2), "9 processors on nodes with 2 GPUs each requested, the pool has 8"),
        (Request(24), None),
    ],
)
def test_an_impossible_request_has_its_reason(request_, reason):
    made = table([0, 8, 8], gpus=[0, 0, 2])
    made.take(Allocation.away([2]))
    assert made.why_not(request_) == reason


def test_wrong_allocations():
    with pytest.raises(ValueError, match="duplicate node"):
        Allocation.of([(1, 1, 0, 0), (1, 2, 0, 0)])
    with pytest.raises(ValueError, match="amounts must be >= 0"):
        Allocation.of([(1, -1, 0, 0)])
    held = Allocation.of([(1, 2, 0, 0), (3, 2, 0, 0)])
    assert held.meets(Request(4))
    assert held.meets(Request(4, nodes=2, cores_per_node=2))
    assert not held.meets(Request(3))
    assert not held.meets(Request(5))
    assert not held.meets(Request(4, nodes=2, cores_per_node=2, gpus_per_node=1))
    assert not Allocation.of([]).meets(Request(1))
    assert eval(repr(held)) == held


nodes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=6
)
requests = st.builds(
    lambda processors, count, each, gpus, memory, exclusive: (
        Request(processors, None, 1, gpus, memory, exclusive)
        if count is None
        else Request(count * each, count, each, gpus, memory, exclusive)
    ),
    st.integers(1, 14),
    st.one_of(st.none(), st.integers(1, 4)),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.0, 1.0, 2.0]),
    st.booleans(),
)


@given(nodes=nodes, request_=requests, placement=st.sampled_from(PLAIN))
@settings(max_examples=up_to(400), deadline=None)
def test_finds_something_whenever_there_is_anything_to_find(nodes, request_, placement):
    capacity = np.array([[used + free or 1 for used, free, _, _ in nodes], [g for *_, g, _ in nodes], [2] * len(nodes)])
    made = NodeTable(capacity.astype(float), placement)
    made.take(Allocation.of([(i, used, 0, 0) for i, (used, *_) in enumerate(nodes)]))
    made.take(Allocation.away([i for i, (*_, away) in enumerate(nodes) if away]))
    before = made.free.copy()
    found = made.allocate(request_)
    assert (made.free == before).all()
    assert made.fits(request_) == (found is not None)
    # Brute force over all sets of nodes.
    good = [
        i
        for i in range(len(nodes))
        if before[0, i] >= request_.cores_per_node
        and before[1, i] >= request_.gpus_per_node
        and before[2, i] >= request_.memory_per_node
        and (not request_.exclusive or before[0, i] == capacity[0, i])
    ]
    counts = range(1, len(good) + 1) if request_.nodes is None else [request_.nodes]
    sets = [each for n in counts for each in combinations(good, n)]
    enough = [s for s in sets if request_.nodes is not None or before[0, list(s)].sum() >= request_.processors]
    assert bool(enough) == (found is not None)
    if found is None:
        return
    assert found.meets(request_)
    assert set(found.nodes.tolist()) <= set(good)
    assert (np.diff(found.nodes) > 0).all()
    if request_.nodes is None and (placement == "packed" or request_.exclusive):
        assert len(found.nodes) == min(map(len, enough))
    if request_.exclusive:
        assert (found.amounts[0] == capacity[0, found.nodes]).all()
    made.take(found)
    assert (made.free[:, found.nodes] >= 0).all()
    made.release(found)
    assert (made.free == before).all()


def test_many_changes_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(5)
    one, many = table([8] * 20), table([8] * 20)
    changes = []
    for _ in range(30):
        rows = [(int(node), 1, 0, 0) for node in rng.choice(20, 4, replace=False)]
        changes.append((Allocation.of(rows), int(rng.choice([-1, 1]))))
    changes.append((Allocation.away([3]), -1))
    for change in changes:
        one.add([change])
    many.add(changes)
    assert (one.free == many.free).all()
