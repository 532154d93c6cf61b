"""Placements of one's own: contiguous nodes against brute force, promises, classes and functions in specs."""

from random import Random

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.kinds import to_dict
from simmodel.platform.models import PLACEMENTS
from simmodel.platform.toml import check_models, from_dict
from simmodel.platform.topology import read_topology
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.resources.pools.placements import NodeChoice, register_placement
from simmodel.runs import start


def cluster(placement="contiguous", count=6, cores=4, **options):
    nodes = [NodeSpec(count=count, cores=cores)]
    return ClusterSpec(partitions=[PartitionSpec(nodes=nodes, placement=placement, **options)])


def whole(nodes, submit=0.0, run=10.0):
    return Job(submit=submit, nodes=nodes, cores_per_node=4, run=run, requested=run)


def adjacent(nodes):
    return list(nodes) == list(range(nodes[0], nodes[0] + len(nodes)))


@pytest.mark.parametrize("seed", range(60))
def test_finds_the_shortest_piece_whenever_there_is_one(seed):
    rng = Random(seed)
    count = rng.randint(1, 10)
    made = NodeTable(np.array([[4.0] * count, [0] * count, [8] * count]), "contiguous")
    made.take(Allocation.of([(i, rng.choice([0, 0, 1, 3, 4]), 0, 0) for i in range(count)]))
    free = made.free[0].tolist()
    exclusive = rng.random() < 0.3
    if rng.random() < 0.5:
        each, wanted = rng.randint(1, 4), rng.randint(1, 4)
        request = Request(each * wanted, wanted, each, exclusive=exclusive)
    else:
        each, wanted = 1, rng.randint(1, 14)
        request = Request(wanted, exclusive=exclusive)
    good = [free[i] >= each and (free[i] == 4 or not exclusive) for i in range(count)]
    sizes = [1 if request.nodes else free[i] for i in range(count)]
    runs = [
        (last - first, first)
        for first in range(count)
        for last in range(first + 1, count + 1)
        if all(good[first:last]) and sum(sizes[first:last]) >= wanted
    ]
    found = made.allocate(request)
    assert made.fits(request) == bool(runs) == (found is not None)
    if found is None:
        return
    assert found.meets(request)
    assert made.allows(found, request)
    assert adjacent(found.numbers)
    if request.nodes is None:
        assert (len(found.numbers), found.numbers[0]) == min(runs)
    else:
        length = {first: next(n for n in range(first, count + 1) if n == count or not good[n]) for _, first in runs}
        begin = min(runs, key=lambda run: (_piece(good, run[1]), run[1]))[1]
        assert length
        assert found.numbers[0] == begin


def _piece(good, first):
    """Return the length of the piece of good nodes in which a node lies."""
    low = high = first
    while low and good[low - 1]:
        low -= 1
    while high + 1 < len(good) and good[high + 1]:
        high += 1
    return high - low + 1


def test_cores_on_a_torus_are_counted_whatever_the_gpus():
    """6 of 4 cores a node, on a ring without node 1: the first two nodes side by side are 0 and 3, or else 2 and 3."""
    made = NodeTable(np.array([[4.0] * 4, [8] * 4, [8] * 4]), "contiguous")
    made.settle(NodeNetwork(read_topology("torus:4 bandwidth=1GBps")), 0)
    made.free[0, 1] = 0
    found = made.allocate(Request(6))
    assert found.rows in (((0, 4, 0, 0), (3, 2, 0, 0)), ((2, 4, 0, 0), (3, 2, 0, 0)))


def test_a_job_waits_although_enough_nodes_are_free():
    jobs = [whole(2), whole(2, run=30), whole(2), whole(3, submit=1)]
    result = simulate(cluster(), jobs, "fcfs")
    assert [*result.runs["nodes"]] == [(0, 1), (2, 3), (4, 5), (0, 1, 2)]
    assert result.jobs["start"].tolist() == [0, 0, 0, 30]  # 4 nodes are free from 10 on, in two pieces


def test_promises_wait_for_adjacent_nodes():
    # At 10 nodes 0, 1, 4, 5 are free; the head job needs 3 adjacent ones, from 30 on. Until then 20 s fit, 21 do not.
    jobs = [
        whole(2),
        whole(2, run=30),
        whole(2),
        whole(3, submit=1),
        whole(2, submit=2, run=20),
        whole(2, submit=2, run=21),
    ]
    for policy in ("easy", "conservative", "easy-sjbf"):
        result = simulate(cluster(), jobs, policy)
        starts = result.jobs["start"].tolist()
        assert starts[:5] == [0, 0, 0, 30, 10], policy
        # On nodes 4 and 5 it is not in the way of the head job, which gets 0, 1, 2 at 30.
        assert starts[5] == 10, policy
    tight = [*jobs[:4], whole(2, submit=2, run=21), whole(2, submit=2, run=21)]
    for policy in ("easy", "conservative"):
        starts = simulate(cluster(), tight, policy).jobs["start"].tolist()
        assert starts[3] == 30, policy
        assert starts[4] == 10, policy


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "policy", ["fcfs", "easy", "conservative", "sjf", "easy-sjbf", pytest.param("window", marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("exclusive", [False, True])
def test_all_jobs_run_on_adjacent_nodes_and_heads_keep_their_promises(policy, exclusive):
    rng = Random(1)
    jobs = [whole(rng.randint(1, 5), submit=i, run=float(rng.randint(1, 20))) for i in range(30)]
    jobs += [
        Job(submit=i, processors=rng.randint(1, 16), run=float(rng.randint(1, 20)), requested=20) for i in range(30)
    ]
    result = simulate(cluster(exclusive=exclusive), jobs, policy)
    assert (result.jobs["status"] == "completed").all()
    assert all(adjacent(nodes) for nodes in result.runs["nodes"])
    cut = start(cluster(exclusive=exclusive), jobs, policy)
    cut.run(until=60)
    rest = simulate(cut.snapshot()).jobs
    starts = dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))
    assert [starts[job] for job in rest["job"].tolist()] == rest["start"].tolist()


def test_what_never_fits_is_refused():
    result = simulate(cluster(count=3), [whole(4)], "fcfs")
    assert result.jobs["status"].tolist() == ["rejected"]
    kinds = [NodeSpec(count=2, cores=4), NodeSpec(name="thin", cores=1), NodeSpec(name="more", count=2, cores=4)]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, placement="contiguous")])
    result = simulate(spec, [whole(2), whole(3)], "fcfs")
    assert result.jobs["status"].tolist() == ["completed", "rejected"]
    with pytest.raises(InputError, match="placement: must be another one with one_host, got 'contiguous'"):
        simulate(cluster(one_host=True), [Job(run=1)], "fcfs")


# ---------------------------------------------------------------------- functions and classes in specs


def backwards(_table, candidates, _count):
    """Return the nodes of highest number first."""
    return candidates[::-1]


class EvenFirst(NodeChoice):
    """Even numbers first, and never a single odd node.

    More than one line.
    """

    def nodes(self, _table, candidates, _count):
        return candidates[np.argsort(candidates % 2, kind="stable")]

    def enough(self, _table, candidates, _amounts, needed):
        return needed > 1 or bool((candidates % 2 == 0).any())


def test_a_partition_takes_a_function_or_a_class():
    result = simulate(cluster(backwards), [whole(2)], "fcfs")
    assert [*result.runs["nodes"]] == [(4, 5)]
    result = simulate(cluster(EvenFirst, count=4), [whole(1), whole(2), whole(1)], "fcfs")
    assert [*result.runs["nodes"]] == [(0,), (1, 2), (0,)]
    assert result.jobs["start"].tolist() == [0, 0, 10]  # node 3 is free, but odd
    assert cluster(EvenFirst).partitions[0].placement == "tests.resources.ready.test_contiguous:EvenFirst"


def test_documents_hold_placements_and_trust_them_only_on_request():
    spec = cluster(EvenFirst)
    assert from_dict(to_dict(spec)) == spec
    with pytest.raises(InputError, match=r"file, partitions\[0\].placement: must be a known model, got"):
        check_models(spec, "file")
    check_models(cluster("contiguous"))


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        ("nonesuch", "placement: must be one of first-fit, best-fit, packed, spread"),
        ("nowhere:f", "placement: must be a function or a class as module:name, got 'nowhere:f': No module named"),
        ("simmodel.work.job:Job", "placement: must be a function or a subclass of NodeChoice, got"),
        (
            lambda _table, candidates, _count: candidates,
            "define it at the top of a module, or name it with register_pl",
        ),
        (3, "placement: must be one of first-fit"),
    ],
)
def test_what_is_no_placement_is_refused(placement, message):
    with pytest.raises(InputError, match=message):
        simulate(cluster(placement), [whole(1)], "fcfs")


def test_a_class_gets_a_name():
    register_placement("even", EvenFirst)
    try:
        result = simulate(cluster("even", count=4), [whole(1), whole(1)], "fcfs")
        assert [*result.runs["nodes"]] == [(0,), (2,)]
    finally:
        del PLACEMENTS["even"]
