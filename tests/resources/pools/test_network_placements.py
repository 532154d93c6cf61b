"""Placements by the network: hand-worked choices, and their rules on drawn tables of nodes."""

from itertools import permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.models import PLACEMENTS
from simmodel.platform.topology import read_topology
from simmodel.resources import NodeChoice, register_placement
from simmodel.resources.pools.allocation import NodeTable, Request
from simmodel.resources.pools.network_placements import curve
from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.testing import check_resource
from tests.helpers.examples import up_to

DRAGONFLY = "dragonfly:3;2;2;2"  # 3 groups of 8 nodes
NETWORKED = ["hilbert", "group-first", "random-groups", "hybrid", "hybrid(2)", "fewest-hops", "contiguous"]


def table(text, placement, taken=(), seed=0):
    """Return the table of the nodes of a topology, of one core each, some of them taken."""
    network = NodeNetwork(read_topology(f"{text} bandwidth=1GBps"))
    made = NodeTable(np.array([[1.0] * len(network), [0] * len(network), [8] * len(network)]), placement)
    made.settle(network, seed)
    made.free[0, list(taken)] = 0
    return made


def chosen(made, count):
    found = made.allocate(Request(count, nodes=count))
    return None if found is None else found.numbers


@pytest.mark.few(1)
@pytest.mark.parametrize("placement", NETWORKED)
def test_each_one_keeps_the_rules_of_placements(placement):
    from simmodel.testing.resources import check_placement

    check_placement(placement, {})


@settings(max_examples=up_to(120, 30), deadline=None)
@given(st.data())
def test_the_nodes_are_free_as_many_as_asked_and_the_same_again(data):
    placement = data.draw(st.sampled_from(NETWORKED))
    torus = ["torus:4,3,2", "torus:5,4 wrap=false"]
    text = data.draw(
        st.sampled_from(
            torus if placement == "hilbert" else [DRAGONFLY] + torus * (placement in ("fewest-hops", "contiguous"))
        )
    )
    made = table(text, placement, seed=data.draw(st.integers(0, 5)))
    made.free[0] = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(made), max_size=len(made)))
    free = np.flatnonzero(made.free[0])
    count = data.draw(st.integers(1, len(made)))
    found = chosen(made, count)
    if found is None:
        assert count > len(free) or placement == "contiguous"
        return
    assert len(found) == count
    assert set(found) <= set(free.tolist())
    assert chosen(made, count) == found
    groups = made.network.groups
    if placement == "hybrid(2)" and count > 2:  # one of each group in turn
        used = np.bincount(groups[list(found)], minlength=3)
        there = np.bincount(groups[free], minlength=3)
        assert (used >= np.minimum(there, used.max() - 1)).all()
    elif placement in ("group-first", "hybrid", "hybrid(2)") and count <= 8:
        # Within one group where one has enough.
        if np.bincount(groups[free]).max() >= count:
            assert len(set(groups[list(found)].tolist())) == 1
    elif placement == "random-groups":  # all groups but one are used up
        rest = [group for group in set(groups[list(found)].tolist()) if set(free[groups[free] == group]) - set(found)]
        assert len(rest) <= 1


def blocks(sizes, count, wrap):
    """Yield the sets of cells that the first ones of any box, row by row, are: by brute force."""
    for sides in product(*(range(1, size + 1) for size in sizes)):
        if prod(sides) >= count:
            starts = (range(size if wrap else size - side + 1) for size, side in zip(sizes, sides, strict=True))
            cells = [cell[::-1] for cell in product(*(range(side) for side in sides[::-1]))][:count]
            for start in product(*starts):
                yield {
                    sum(
                        (c + s) % n * prod(sizes[:i])
                        for i, (c, s, n) in enumerate(zip(cell, start, sizes, strict=True))
                    )
                    for cell in cells
                }


@pytest.mark.few(3)
@pytest.mark.parametrize("text", ["torus:4,3", "torus:3,2,2", "torus:4,3 wrap=false", "torus:6"])
def test_a_contiguous_job_gets_a_block_exactly_if_there_is_one(text):
    sizes, wrap = tuple(map(int, text.split()[0][6:].split(","))), "false" not in text
    rng = np.random.default_rng(4)
    known = {count: list(blocks(sizes, count, wrap)) for count in range(1, prod(sizes) + 1)}
    for _ in range(60):
        made = table(text, "contiguous", np.flatnonzero(rng.random(prod(sizes)) < 0.4).tolist())
        free = set(np.flatnonzero(made.free[0]).tolist())
        for count, there in known.items():
            found = chosen(made, count)
            able = [block for block in there if block <= free]
            assert (found is not None) == bool(able), (free, count)
            if found is not None:
                assert set(found) in able
                # What it offers it also accepts.
                assert made.allows(made.allocate(Request(count, nodes=count)), Request(count, nodes=count))


def test_contiguous_blocks_by_hand():
    assert chosen(table("torus:4,4", "contiguous"), 4) == (0, 1, 4, 5)
    assert chosen(table("torus:4,4", "contiguous", [5]), 4) == (2, 3, 6, 7)
    assert chosen(table("torus:4,4", "contiguous", [0, 2, 5, 7, 8, 10, 13, 15]), 2) is None
    assert chosen(table("torus:4,4", "contiguous", range(1, 15)), 2) is None  # 0 and 15 touch at a corner only
    assert chosen(table("torus:4,4", "contiguous", range(1, 12)), 2) == (0, 12)  # round the second dimension
    assert chosen(table("torus:4,4 wrap=false", "contiguous", range(1, 12)), 2) == (12, 13)
    # Of a job that waits for a block, although as many nodes are free.
    part = PartitionSpec(nodes=[NodeSpec(count=4)], network="torus:4 bandwidth=1 wrap=false", placement="contiguous")
    jobs = [Job(nodes=1, run=9), Job(nodes=1, run=3), Job(nodes=1, run=9), Job(submit=1, nodes=2, run=1)]
    assert simulate(ClusterSpec(partitions=[part]), jobs, "fcfs").jobs["start"].tolist() == [0, 0, 0, 9]


@pytest.mark.parametrize("sizes", [(8,), (4, 4), (8, 8), (4, 4, 4), (2, 2, 2, 2)])
def test_neighbours_on_the_curve_are_neighbours_in_space(sizes):
    at = np.array(np.unravel_index(np.argsort(curve(sizes)), sizes, order="F"))
    assert sorted(curve(sizes).tolist()) == list(range(prod(sizes)))
    assert (np.abs(np.diff(at)).sum(axis=0) == 1).all()


def test_hilbert_takes_the_densest_stretch():
    assert chosen(table("torus:4,4", "hilbert"), 4) == (0, 1, 4, 5)
    along = np.argsort(curve((4, 4))).tolist()
    made = table("torus:4,4", "hilbert", along[3:9])
    assert chosen(made, 4) == tuple(sorted(along[9:13]))
    assert chosen(table("torus:3,3", "hilbert"), 9) == tuple(range(9))


def test_cores_on_any_nodes_are_on_as_many_nodes_as_if_all_had_as_many_as_the_best():
    """8 of 4 cores a node, whatever their memory: two nodes, which follow each other on the curve from node 2 on."""
    network = NodeNetwork(read_topology("torus:6 bandwidth=1GBps"))
    made = NodeTable(np.array([[4.0] * 6, [0] * 6, [64] * 6]), "hilbert")
    made.settle(network, 0)
    made.free[0] = [4, 0, 4, 4, 4, 4]
    assert made.allocate(Request(8)).rows == ((2, 4, 0, 0), (3, 4, 0, 0))
    made.free[0] = [4, 0, 2, 2, 2, 0]  # these two have 4, so a third one is needed: the first on the curve
    assert made.allocate(Request(8)).rows == ((0, 4, 0, 0), (2, 2, 0, 0), (3, 2, 0, 0))


def test_groups_by_hand():
    # Of the groups 0 to 7, 8 to 15 and 16 to 23 three, five and one nodes are free.
    busy = [*range(5), *range(8, 11), *range(16, 23)]
    assert chosen(table(DRAGONFLY, "group-first", busy), 3) == (5, 6, 7)
    assert chosen(table(DRAGONFLY, "group-first", busy), 4) == (11, 12, 13, 14)
    assert chosen(table(DRAGONFLY, "group-first", busy), 6) == (11, 12, 13, 14, 15, 23)
    assert chosen(table(DRAGONFLY, "hybrid(limit=3)", busy), 3) == (5, 6, 7)
    assert chosen(table(DRAGONFLY, "hybrid(limit=3)", busy), 4) == (5, 6, 11, 23)
    assert chosen(table(DRAGONFLY, "hybrid"), 8) == tuple(range(8))
    assert chosen(table(DRAGONFLY, "hybrid"), 9) == (0, 1, 2, 8, 9, 10, 16, 17, 18)


def test_random_groups_depend_on_the_seed_and_reach_every_group():
    firsts = [chosen(table(DRAGONFLY, "random-groups", seed=seed), 8) for seed in range(40)]
    assert {nodes[0] for nodes in firsts} == {0, 8, 16}
    assert all(nodes == tuple(range(nodes[0], nodes[0] + 8)) for nodes in firsts)
    part = PartitionSpec(nodes=[NodeSpec(count=24)], network=f"{DRAGONFLY} bandwidth=1", placement="random-groups")
    jobs = [Job(submit=i, nodes=1 + i % 5, run=7) for i in range(20)]
    one, again, other = (simulate(ClusterSpec(partitions=[part]), jobs, "fcfs", seed=seed).runs for seed in (1, 1, 2))
    assert list(one["nodes"]) == list(again["nodes"]) != list(other["nodes"])


def test_random_nodes_are_each_chosen_equally_often_and_again_by_the_same_seed():
    seeds = range(600)
    firsts = [chosen(table("torus:4,3", "random", seed=seed), 3) for seed in seeds]
    counts = np.bincount(np.concatenate(firsts), minlength=12)
    assert counts.sum() == 3 * len(seeds)
    assert np.all(np.abs(counts - 150) < 4 * (150 * 0.75) ** 0.5)
    assert firsts == [chosen(table("torus:4,3", "random", seed=seed), 3) for seed in seeds]


@pytest.mark.parametrize("text", ["torus:4,3", DRAGONFLY, "fat-tree:2;3,3;1,2;1,1"])
def test_the_fewest_hops_grow_from_the_seed_with_the_nearest_nodes(text):
    rng = np.random.default_rng(8)
    for _ in range(40):
        made = table(text, "fewest-hops")
        made.free[0] = rng.random(len(made)) < 0.6
        free = np.flatnonzero(made.free[0]).tolist()
        count = int(rng.integers(1, len(free) + 1))
        hops = made.network.hops
        near = {seed: sum(sorted(hops(seed, free).tolist())[:count]) for seed in free}
        nodes = [min(free, key=lambda node: (near[node], node))]
        while len(nodes) < count:
            rest = [node for node in free if node not in nodes]
            nodes.append(min(rest, key=lambda node: (sum(int(hops(each, node)) for each in nodes), node)))
        assert chosen(made, count) == tuple(sorted(nodes))


def test_the_fewest_hops_beat_first_fit_where_free_nodes_are_scattered():
    made = table("torus:8,8", "fewest-hops", [node for node in range(64) if (node * 7) % 5 < 2])
    found = chosen(made, 9)
    first = np.flatnonzero(made.free[0])[:9]
    assert made.network.mean_hops(found) < made.network.mean_hops(first)


def test_a_placement_sees_the_request_and_the_network():
    seen = []

    def near_the_door(table, candidates, count):
        request, network = table.request, table.network
        seen.append((request.nodes, request.cores_per_node, request.processors, count, len(network)))
        return candidates[np.argsort(network.hops(0, candidates), kind="stable")]

    register_placement("near-the-door", near_the_door)
    try:
        part = PartitionSpec(
            nodes=[NodeSpec(count=9, cores=4)], network="torus:9 bandwidth=1", placement="near-the-door"
        )
        runs = simulate(ClusterSpec(partitions=[part]), [Job(nodes=4, cores_per_node=3, run=1)], "fcfs").runs
    finally:
        del PLACEMENTS["near-the-door"]
    assert runs["nodes"][0] == (0, 1, 2, 8)
    assert seen == [(4, 3, 12, 4, 9)]


@pytest.mark.few(2)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_any_network_leaves_the_schedule_of_other_placements_as_it_is(policy, exclusive):
    rng = np.random.default_rng(2)
    jobs = [
        Job(
            submit=float(i // 2),
            nodes=int(rng.integers(1, 12)),
            cores_per_node=int(rng.integers(1, 5)),
            run=float(rng.integers(1, 20)),
        )
        for i in range(40)
    ]
    for placement in ("first-fit", "best-fit", "packed", "spread"):
        part = {"nodes": [NodeSpec(count=24, cores=4)], "placement": placement, "exclusive": exclusive}
        plain = simulate(ClusterSpec(partitions=[PartitionSpec(**part)]), jobs, policy)
        placed = simulate(
            ClusterSpec(partitions=[PartitionSpec(**part, network=f"{DRAGONFLY} bandwidth=1")]), jobs, policy
        )
        for name in ("job", "start", "end", "nodes"):
            assert list(plain.runs[name]) == list(placed.runs[name])


class Even(NodeChoice):
    """even nodes first, from one on"""

    def __init__(self, first=0):
        self.first = first

    def nodes(self, table, candidates, count):
        return candidates[np.lexsort((candidates, candidates % 2 != 0, candidates < self.first))]


@pytest.mark.long  # of a ready one: test_each_one_keeps_the_rules_of_placements
def test_a_placement_of_a_class_keeps_the_rules():
    check_resource(Even)


def test_placements_have_parameters():
    register_placement("even", Even)
    try:
        assert chosen(table("torus:8", "even(first=3)"), 3) == (3, 4, 6)
        assert chosen(table("torus:8", "even(first=3)"), 2) == (4, 6)
        with pytest.raises(InputError, match=r"placement: unknown parameter 'last'; known parameters: first"):
            table("torus:8", "even(last=3)")
    finally:
        del PLACEMENTS["even"]
    with pytest.raises(InputError, match=r"placement: must have no parameters, got 'packed\(3\)'"):
        table("torus:8", "packed(3)")
    with pytest.raises(InputError, match="placement: must be one of first-fit"):
        PartitionSpec(nodes=[NodeSpec()], placement="unheard-of(3)")


@pytest.mark.parametrize(
    ("placement", "network", "message"),
    [
        ("hilbert", None, "partition batch, placement: 'hilbert' needs a partition whose network is a torus or a mesh"),
        ("hilbert", f"{DRAGONFLY} bandwidth=1", "'hilbert' needs a partition whose network is a torus or a mesh"),
        ("hybrid(3)", "torus:24 bandwidth=1", r"'hybrid\(3\)' needs a partition whose network is a dragonfly"),
        ("fewest-hops", None, "'fewest-hops' needs a partition whose network is given"),
    ],
)
def test_what_a_placement_needs_is_said_when_the_cluster_is_built(placement, network, message):
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=24)], network=network, placement=placement)])
    with pytest.raises(InputError, match=message):
        simulate(spec, [Job(run=1)], "fcfs")


def test_dispersion_is_the_mean_over_pairs():
    network = NodeNetwork(read_topology(f"{DRAGONFLY} bandwidth=1GBps"))
    pairs = list(permutations((0, 3, 9, 20), 2))
    assert network.mean_hops((0, 3, 9, 20)) == pytest.approx(sum(len(network.route(*pair)) for pair in pairs) / 12)
