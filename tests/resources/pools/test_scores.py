"""Placements by scores, against the rules of the paper's simulator written out for one node."""

import math
from random import Random

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.resources.pools.devices import DeviceTable
from simmodel.resources.pools.placements import Request, placement_named
from simmodel.resources.pools.scores import FGD, Score, mix_of
from simmodel.testing import check_resource

MIX = [(5, 4, 500, 1, ""), (3, 8, 1000, 2, ""), (2, 6, 250, 1, "T4"), (4, 3, 0, 0, "")]
TEXT = "5*4/0.5+3*8/2+2*6/0.25/T4+4*3/0"


def drawn(seed):
    """Return a table of nodes in use, and a request."""
    rng = Random(seed)
    kinds = [NodeSpec(count=3, cores=12, gpus={"T4": 2}), NodeSpec(name="b", count=3, cores=16, gpus={"A100": 4})]
    table = DeviceTable.of_partition(PartitionSpec(nodes=kinds))
    for _ in range(rng.randint(0, 14)):
        found = table.allocate(asked(rng))
        if found is not None:
            table.take(found)
    return table, asked(rng)


def asked(rng):
    gpus = rng.choice([0, 1, 2, 0.25, 0.4, 0.5, 0.75])
    return Request(4, 1, rng.randint(1, 5), gpus)


def fragments(cores, left, kind):
    """Return the free thousandths that the mix cannot use, by the definition of the paper."""
    total, found = sum(count for count, *_ in MIX), 0.0
    for count, wanted, each, number, types in MIX:
        fits = each and (not types or kind in types.split("|"))
        fits = fits and cores >= wanted and sum(free >= each for free in left) >= number
        found += count / total * (sum(free for free in left if free < each) if fits else sum(left))
    return found


def fgd(cores, left, kind, wanted, each, number):
    """Return the score of each device for a share, or of the node, as the simulator of the paper computes it."""

    def sigmoid(then, after):
        gone = (fragments(cores, left, kind) - fragments(cores - wanted, after, kind)) / 1000
        return math.trunc(100 / (1 + math.exp(-gone)))

    if number == 1 and each < 1000:
        return max(
            sigmoid(left, [free - each * (device == d) for d, free in enumerate(left)])
            for device in range(len(left))
            if left[device] >= each
        )
    after, missing = list(left), number
    for device, free in enumerate(left):
        if missing and free == 1000:
            after[device], missing = 0, missing - 1
    return sigmoid(left, after)


def packing(left, each, number):
    free = sum(each == 1000 for each in left)
    if not number:
        return 0
    if free == len(left):
        return max(33 - free, free)
    used = sorted(have for have in left if have >= each)[:number]
    whole = sum(have == 1000 for have in used)
    return max(50 - whole, 33) if whole else max(100 - sum(have // 10 for have in used) // 10, 50)


def scores(table, request, name):
    nodes = table.suitable(request).nonzero()[0]
    found = placement_named(name).choice
    choice = FGD(TEXT) if found is FGD else found()
    values = choice.score(table.seen(request), nodes) if len(nodes) else np.zeros(0)
    values = values if values.ndim == 1 else values.max(axis=0)
    return list(zip(nodes.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("name", ["fgd", "gpu-packing", "gpu-best-fit", "dot-product"])
def test_scores_are_those_of_the_rules(name):
    seen = 0
    for seed in range(150):
        table, request = drawn(seed)
        gpus = request.gpus_per_node
        each, number = (round(gpus * 1000), 1) if 0 < gpus < 1 else (1000 * (gpus > 0), int(gpus))
        for node, score in scores(table, request, name):
            count = int((table.all_devices[:, node] > 0).sum())
            cores, left = table.free[0, node], table.devices[:count, node].tolist()
            wanted, total = request.cores_per_node, each * number
            if name == "fgd":
                expected = fgd(cores, left, "T4" if node < 3 else "A100", wanted, each, number)
            elif name == "gpu-packing":
                expected = packing(left, each, number)
            elif name == "gpu-best-fit":
                rest = (cores - wanted) / 16 * 0.5 + (sum(left) - total) / 4000 * 0.5
                expected = math.trunc((1 - rest) * 100)
            else:
                expected = math.trunc((1 - (cores * wanted / 256 + sum(left) * total / 16e6) / 2) * 100)
            assert score == pytest.approx(expected, abs=1e-9 if name != "fgd" else 0), (seed, node)
            seen += 1
    assert seen > 300


def test_clustering_prefers_nodes_whose_jobs_have_as_many():
    table = DeviceTable.of_partition(PartitionSpec(nodes=[NodeSpec(count=4, cores=16, gpus=4)]))
    for node, gpus in ((0, 0.5), (1, 2), (2, 0.5), (2, 2)):
        held = (0, 500) if gpus == 0.5 else None
        devices = (held,) if held else ((2, 1000), (3, 1000))
        found = table.allocate(Request(1, 1, 1, gpus))
        table.take(type(found).of([(node, 1, gpus, 0, devices)]))
    share, pair = (dict(scores(table, Request(1, 1, 1, gpus), "gpu-clustering")) for gpus in (0.5, 2))
    assert share == {0: 75 + 3, 1: 0 + 12, 2: 50 + 15, 3: 25}
    assert pair == {0: 0 + 3, 1: 75 + 12, 3: 25}


def test_a_score_is_asked_again_about_changed_nodes_only():
    calls = []

    class Counting(Score):
        def score(self, table, nodes):
            calls.append(nodes.tolist())
            return np.zeros(len(nodes))

    table = DeviceTable.of_partition(PartitionSpec(nodes=[NodeSpec(count=4, cores=16, gpus=2)]))
    request, other, choice = Request(1, 1, 1, 0.5), Request(1, 1, 1, 1), Counting()
    for each in (request, request, other, request):
        chosen = choice.nodes(table.seen(each), table.suitable(each).nonzero()[0], 1)
        table.take(table.allocate(each))
        assert chosen.tolist() == [0 if table.devices[1, 0] == 1000 or each is other else 1]
    assert calls == [[0, 1, 2, 3], [0], [0, 1, 2, 3]]  # the last time node 0 is full, and the others have not changed


def test_random_ties_choose_any_of_the_best_by_the_seed():
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=20, cores=4)], placement="fgd(ties=random)")])
    jobs = [Job(nodes=1, run=10)] * 10
    first, again, other = (simulate(spec, jobs, "fcfs", seed=seed).runs["nodes"].tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) > 5


def test_the_mix_of_jobs_covers_the_part_that_is_asked_for():
    jobs = [Job(run=1, nodes=1, cores_per_node=2, gpus_per_node=0.5)] * 18 + [Job(run=1, processors=3)]
    jobs += [Job(run=1, nodes=1, cores_per_node=4, gpus_per_node=2, gpu="A100|T4")]
    assert mix_of(jobs) == "18*2/0.5+1*4/2/A100|T4"
    assert mix_of(jobs, 1.0) == "18*2/0.5+1*4/2/A100|T4+1*3/0"
    assert mix_of(jobs, 0.9) == "18*2/0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [("fgd(3:4)", "mix: must be count*cores/GPUs"), ("dot-product(ties=first)", "ties: must be lowest or random")],
)
def test_placements_that_mean_nothing_are_refused(text, message):
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=4)], placement=text)])
    with pytest.raises(InputError, match=message.replace("*", r"\*")):
        simulate(spec, [Job(run=1)], "fcfs")


@pytest.mark.parametrize("name", ["fgd", "dot-product", "gpu-best-fit", "gpu-packing", "gpu-clustering"])
def test_scores_are_placements(name):
    check_resource(name)
