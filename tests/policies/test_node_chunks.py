"""Requests of which the nodes do not have the same, on small clusters, against every assignment of chunks to nodes."""

from itertools import permutations
from math import inf
from random import Random

import numpy as np
import pytest

from simmodel import Cluster, Elastic, Environment, Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.referee import why_waits
from simmodel.resources.pools.allocation import Allocation, Request, assigned
from simmodel.snapshots import Snapshot
from simmodel.work import Chunk
from tests.helpers.policies_there import there

KINDS = [(4, 0, 16), (4, 2, 16), (8, 4, 32), (2, 0, 8)]


def drawn(seed):
    """Draw two to four nodes of up to three kinds, and jobs of one to three chunks, or of cores anywhere."""
    rng = Random(seed)
    kinds = rng.sample(KINDS, rng.randint(1, 3))
    nodes = sorted(rng.choice(kinds) for _ in range(rng.randint(2, 4)))
    jobs, submit = [], 0
    while len(jobs) < rng.randint(5, 14):
        submit += rng.choice([0, 0, 1, 2, 5])
        chunks = []
        for cores, gpus, memory in rng.sample(nodes, rng.randint(1, min(3, len(nodes)))):
            chunks.append(
                Chunk(rng.randint(1, cores), rng.choice([0, rng.randint(0, gpus)]), rng.choice([0, memory // 2]))
            )
        run = rng.randint(1, 20)
        request = (
            {"processors": rng.randint(1, sum(node[0] for node in nodes))} if rng.random() < 0.2 else {"chunks": chunks}
        )
        jobs.append(Job(id=len(jobs), submit=submit, run=run, requested=rng.choice([run, run + 1, 2 * run]), **request))
    return nodes, jobs


def cluster_of(nodes, placement="first-fit", exclusive=False):
    kinds = [NodeSpec(name=f"k{i}-", cores=c, gpus=g, memory=m) for i, (c, g, m) in enumerate(nodes)]
    return ClusterSpec(partitions=[PartitionSpec(nodes=kinds, placement=placement, exclusive=exclusive)])


def asked(job):
    """Return the amounts of each chunk of a job; ``None``: cores anywhere."""
    if job.nodes is None:
        return None
    alike = Chunk(job.cores_per_node, job.gpus_per_node, job.memory_per_node)
    return [(each.cores, each.gpus, each.memory) for each in job.chunks or [alike] * job.nodes]


def fits(job, free):
    """Whether some assignment of the chunks of a job to different nodes is free."""
    parts = asked(job)
    if parts is None:
        return sum(cores for cores, _, _ in free) >= job.processors
    return any(
        all(
            have >= take
            for node, part in zip(chosen, parts, strict=True)
            for have, take in zip(free[node], part, strict=True)
        )
        for chosen in permutations(range(len(free)), len(parts))
    )


class Schedule:
    """The parts of nodes that each job of a result held, and when."""

    def __init__(self, nodes, jobs, result):
        self.nodes, self.jobs = nodes, jobs
        self.parts = {}
        for row in result.runs.rows():
            amounts = zip(row["nodes"], row["cores"], row["gpus"], row["memory"], strict=True)
            self.parts[row["job"]] = [(node, (cores, gpus, memory)) for node, cores, gpus, memory in amounts]
        self.begin = dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))
        self.end = dict(zip(result.jobs["job"].tolist(), result.jobs["end"].tolist(), strict=True))

    def free(self, now, *, expected=None):
        """Return what is free of each node after the decision of an instant, or after the expected ends by another."""
        left = [list(node) for node in self.nodes]
        for job in self.jobs:
            end = self.end[job.id] if expected is None else max(self.begin[job.id] + job.requested, now)
            if self.begin[job.id] <= now < self.end[job.id] and (expected is None or end > expected):
                for node, part in self.parts[job.id]:
                    left[node] = [have - take for have, take in zip(left[node], part, strict=True)]
        return left

    def promise(self, job, now):
        """Return the earliest expected end at which a job fits."""
        running = [other for other in self.jobs if self.begin[other.id] <= now < self.end[other.id]]
        ends = sorted({max(self.begin[other.id] + other.requested, now) for other in running})
        return next((at for at in ends if fits(job, self.free(now, expected=at))), inf)

    def check(self, exclusive=False):
        """Check that each chunk has a node of its own and that no node is used twice."""
        for job in self.jobs:
            parts, held = asked(job), self.parts[job.id]
            assert len({node for node, _ in held}) == len(held)
            if parts is None:
                assert exclusive or sum(part[0] for _, part in held) == job.processors
            elif not exclusive:
                assert sorted(part for _, part in held) == sorted(parts)
        for now in self.begin.values():
            assert all(min(node) >= 0 for node in self.free(now))


CASES = [30, pytest.param(100, marks=pytest.mark.long), pytest.param(2000, marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjf+easy", "conservative", "conservative-keep", *there("slurm")])
def test_each_chunk_has_a_node_and_no_start_is_missed_or_delayed(policy, cases):
    for seed in range(cases):
        nodes, jobs = drawn(seed)
        rng = Random(seed)
        placement = "first-fit" if policy == "slurm" else rng.choice(["first-fit", "best-fit", "packed", "spread"])
        spec = cluster_of(nodes, placement)
        result = simulate(spec, jobs, policy)
        jobs = [job for job in jobs if job.id in result.runs["job"].tolist()]
        schedule = Schedule(nodes, jobs, result)
        schedule.check()
        if policy in ("slurm", "conservative-keep"):  # which hold nodes for later jobs, too
            continue
        order = (
            (lambda job: (job.requested, job.submit, job.id))
            if policy == "sjf+easy"
            else (lambda job: (job.submit, job.id))
        )
        promised = {}
        for now in sorted({*schedule.begin.values(), *schedule.end.values(), *(job.submit for job in jobs)}):
            queue = sorted([job for job in jobs if job.submit <= now < schedule.begin[job.id]], key=order)
            if not queue:
                continue
            free, head = schedule.free(now), queue[0]
            assert not fits(head, free), (seed, now)
            if policy == "fcfs":
                continue
            at = schedule.promise(head, now)
            if policy in ("easy", "conservative"):  # in the order of submission, and without promises to other jobs
                assert at <= promised.get(head.id, inf), (seed, now)
                promised[head.id] = at
            if "easy" in policy:
                assert not [job for job in queue[1:] if fits(job, free) and now + job.requested <= at], (seed, now)
        assert all(schedule.begin[name] <= at for name, at in promised.items())


@pytest.mark.parametrize("cases", CASES)
def test_whole_nodes_and_refusals(cases):
    for seed in range(cases):
        nodes, jobs = drawn(seed)
        result = simulate(cluster_of(nodes, exclusive=True), jobs, "easy")
        left = [job for job in jobs if job.id in result.runs["job"].tolist()]
        Schedule(nodes, left, result).check(exclusive=True)
        for job in jobs:
            assert (job in left) == fits(job, [list(node) for node in nodes]), seed


@pytest.mark.parametrize("cases", [200, pytest.param(5000, marks=pytest.mark.exhaustive)])
def test_chunks_are_assigned_where_any_assignment_exists(cases):
    rng = Random(1)
    for _ in range(cases):
        nodes, counts = rng.randint(1, 5), [rng.randint(1, 2) for _ in range(rng.randint(1, 3))]
        able = [[rng.random() < 0.5 for _ in range(nodes)] for _ in counts]
        found = assigned([np.array(each) for each in able], [Request(n, nodes=n) for n in counts])
        parts = [part for part, count in enumerate(counts) for _ in range(count)]
        any_way = any(
            all(able[part][node] for part, node in zip(parts, chosen, strict=True))
            for chosen in permutations(range(nodes), len(parts))
        )
        assert (found is not None) == any_way
        if found is not None:
            assert [found.tolist().count(part) for part in range(len(counts))] == counts
            assert all(part < 0 or able[part][node] for node, part in enumerate(found.tolist()))


def test_two_nodes_hold_eight_and_two_cores_and_not_five_and_five():
    spec = cluster_of([(8, 0, 0)] * 2)
    jobs = [
        Job(id=1, chunks="8+2", run=3600, requested=3600),
        Job(id=2, nodes=1, cores_per_node=6, run=60, requested=60),
    ]
    for policy in ("fcfs", "easy", "conservative", *there("slurm")):
        assert simulate(spec, jobs, policy).jobs["wait"][1] < 5
    assert simulate(16, jobs, "easy").jobs["start"].tolist() == [0, 0]
    assert simulate(15, jobs, "easy").jobs["start"].tolist() == [0, 3600]


def test_chunks_of_one_kind_are_nodes():
    assert Job(chunks=[4, 4], run=1) == Job(nodes=2, cores_per_node=4, run=1)
    job = Job(chunks=[Chunk(2, gpus=1), 32], run=1)
    assert (job.nodes, job.processors, job.cores_per_node, job.gpus_per_node) == (2, 34, 32, 1)
    assert str(Request.of(job)) == "1 node with 32 cores + 1 node with 2 cores and 1 GPU"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"chunks": [8, 2], "nodes": 3}, "nodes: must be left out beside chunks, got 3"),
        ({"chunks": [8, 2], "memory_per_node": "1GB"}, "memory_per_node: must be left out beside chunks"),
        ({"chunks": [8, 2], "elastic": Elastic(1, 2, 3)}, "elastic: must be left out beside chunks"),
        ({"chunks": "8;2"}, "chunks: must be cores such as '8+2' or '2*8:gpus=1:memory=16GB+4', got '8;2'"),
        ({"chunks": [0, 1]}, "cores: must be a whole number >= 1, got 0"),
        ({"chunks": 8}, "chunks: must be a list of Chunk or of numbers of cores, got 8"),
        ({"chunks": "2000000*1+2"}, "chunks: must be at most 1,048,576"),
        ({"chunks": "1:memory=much+2"}, "memory: must be a number >= 0 or a quantity such as '16GB', got 'much'"),
    ],
)
def test_wrong_chunks_get_one_sentence(fields, sentence):
    with pytest.raises(ValueError, match=r".") as caught:
        Job(run=1, **fields)
    assert sentence in str(caught.value)


def test_what_has_no_chunks_refuses_them():
    job = Job(id=1, chunks=[8, 2], run=1)
    cases = [
        (PartitionSpec(nodes=[NodeSpec(count=2, cores=8)], one_host=True), "2 nodes requested, each job of"),
        (PartitionSpec(nodes=[NodeSpec(count=2, cores=4)]), "1 node with 8 cores + 1 node with 2 cores requested"),
        (
            PartitionSpec(nodes=[NodeSpec(count=2, cores=8, nodes_per_switch=1)], placement="exclusive-by-switch"),
            "chunks requested, the placement of batch is for nodes that are alike",
        ),
    ]
    for partition, reason in cases:
        cluster = Cluster(Environment(), ClusterSpec(partitions=[partition]))
        with pytest.raises(Exception, match=r".") as caught:
            cluster.submit(job)
        assert reason in str(caught.value)


def test_chunks_are_kept_in_snapshots_and_explained():
    spec = cluster_of([(8, 0, 0), (8, 2, 0)])
    jobs = [
        Job(id=1, chunks=[2, Chunk(1, 1)], run=50, requested=60),
        Job(id=2, chunks="8+3", run=10, requested=10, submit=1),
    ]
    sim = start(spec, jobs, "easy")
    sim.run(until=5)
    snapshot = Snapshot.from_json(sim.snapshot().to_json())
    assert "needs 1 node with 8 cores + 1 node with 3 cores of batch" in why_waits(snapshot, 2).report()
    rest = start(snapshot)
    rest.run()
    sim.run()
    assert rest.result().jobs["start"].tolist() == sim.result().jobs["start"].tolist() == [0, 50]


def test_an_allocation_meets_chunks_in_any_order():
    request = Request.of(Job(chunks=[8, 2], run=1))
    assert Allocation.of([(0, 2, 0, 0), (3, 8, 0, 0)]).meets(request)
    assert not Allocation.of([(0, 5, 0, 0), (3, 5, 0, 0)]).meets(request)
    assert not Allocation.of([(0, 8, 0, 0)]).meets(request)
