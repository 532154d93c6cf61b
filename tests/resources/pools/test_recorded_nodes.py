"""What is recorded of the nodes of each run: as many as requested, of the requested kind, and no more than there is."""

from operator import ge
from random import Random

import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec

POLICIES = [
    "fcfs",
    "best-fit",
    "easy",
    "largest+easy",
    "conservative",
    "conservative-keep",
    "window(size=3)",
    "portfolio",
]
KINDS = [(4, 0, 16), (4, 2, 16), (8, 4, 32), (2, 0, 4)]
PLACEMENTS = ["first-fit", "best-fit", "packed", "spread"]


def drawn(seed):
    """Draw nodes of several kinds, some with switches, and jobs of which each fits."""
    rng = Random(seed)
    kinds = [(kind, rng.randint(1, 4)) for kind in rng.sample(KINDS, rng.randint(1, 3))]
    specs = [
        NodeSpec(
            name=f"kind{i}-",
            count=count,
            cores=kind[0],
            gpus=kind[1],
            memory=kind[2],
            switch=rng.choice([None, "a", "b"]),
        )
        for i, (kind, count) in enumerate(kinds)
    ]
    jobs = []
    for i in range(20):
        each, _ = rng.choice(kinds)
        shape = (
            rng.randint(1, each[0]),
            rng.choice([0, rng.randint(0, each[1])]),
            rng.choice([0, rng.randint(0, each[2])]),
        )
        there = sum(count for kind, count in kinds if all(map(ge, kind, shape)))
        names = ("nodes", "cores_per_node", "gpus_per_node", "memory_per_node")
        asked = dict(zip(names, (rng.randint(1, there), *shape), strict=True))
        run = rng.randint(1, 20)
        jobs.append(Job(id=i, submit=i // 2, run=run, requested=run + rng.choice([0, 5, 20]), **asked))
    exclusive, placement = rng.random() < 0.4, rng.choice(PLACEMENTS)
    return PartitionSpec(nodes=specs, placement=placement, exclusive=exclusive), jobs


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cases", [8, pytest.param(2000, marks=pytest.mark.exhaustive)])
def test_the_nodes_of_all_runs_are_recorded_of_the_requested_kind_and_held_once(policy, cases):
    for seed in range(cases):
        part, jobs = drawn(seed)
        runs = simulate(ClusterSpec(partitions=[part]), jobs, policy).runs
        capacity = [(kind.cores, kind.gpus, kind.memory) for kind in part.nodes for _ in range(kind.count)]
        columns = (runs[name].tolist() for name in ("job", "start", "end", "nodes", "cores", "gpus", "memory"))
        held = [[] for _ in capacity]
        for number, start, end, nodes, *amounts in zip(*columns, strict=True):
            job = jobs[number]
            assert len(set(nodes)) == len(nodes) == job.nodes
            for node, *part_of in zip(nodes, *amounts, strict=True):
                shape = job.cores_per_node, job.gpus_per_node, job.memory_per_node
                assert all(map(ge, capacity[node], part_of)), seed
                assert tuple(part_of) == ((*capacity[node][:2], shape[2]) if part.exclusive else shape), seed
                held[node].append((start, end, part_of))
        for node, parts in enumerate(held):
            for at, _, _ in parts:
                there = [part_of for start, end, part_of in parts if start <= at < end]
                assert all(map(ge, capacity[node], map(sum, zip(*there, strict=True)))), (seed, node, at)
                assert not part.exclusive or len(there) == 1, (seed, node, at)
        assert len(runs["job"]) == len(jobs)
