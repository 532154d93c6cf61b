"""EASY on nodes that differ or are shared, start by start and node by node, against every choice of nodes."""

from operator import ge
from random import Random

import pytest

from simmodel import simulate
from simmodel.environment import Environment
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.policies.backfilling import Easy
from simmodel.policies.ordering import start_heads
from simmodel.scheduling.protocol import Start
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.workload import Workload
from tests.oracles.nodes import Machine, NodeJob, easy

KINDS = [(4, 0, 16), (4, 2, 16), (8, 4, 32), (2, 0, 0), (8, 0, 8)]
ORDERS = {
    "easy": (lambda job: 0, None),
    "easy-sjbf": (lambda job: 0, lambda job: job.requested),
    "largest+easy": (lambda job: -job.nodes * job.shape[0], None),
}


def drawn(seed):
    """Draw a machine of two to six nodes of up to three kinds, and jobs that come faster than they can start."""
    rng = Random(seed)
    kinds = rng.sample(KINDS, rng.randint(1, 3))
    machine = [(kind, rng.randint(1, 3 if len(kinds) > 1 else 6)) for kind in kinds]
    jobs, submit, few = [], 0, rng.random() < 0.5
    for _ in range(rng.randint(4, 18)):
        submit += rng.choice([0, 0, 0, 1, 2, 5])
        cores, gpus, memory = rng.choice(kinds)
        cores = rng.choice([cores, max(1, cores // 2)]) if few else rng.randint(1, cores)
        shape = cores, rng.choice([0, rng.randint(0, gpus)]), rng.choice([0, memory // 2, rng.randint(0, memory)])
        there = sum(count for kind, count in machine if all(map(ge, kind, shape)))
        run = rng.randint(1, 20)
        requested = rng.choice([run, run + 1, 2 * run, run + 10, run + 30, max(1, run // 2)])
        nodes = rng.choice([1, 1, min(2, there), max(1, there - 1), there])
        jobs.append(NodeJob(submit, run, requested, nodes, shape))
    return machine, jobs


def run(machine, jobs, policy, exclusive, placement, overrun, speeds=None):
    """Return the start and the nodes of each job."""
    kinds = [
        NodeSpec(name=f"kind{i}-", count=count, cores=kind[0], gpus=kind[1], memory=kind[2], speed=speed)
        for i, ((kind, count), speed) in enumerate(zip(machine, speeds or [1.0] * len(machine), strict=True))
    ]
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, exclusive=exclusive, placement=placement)])
    asked = [
        Job(
            id=row,
            submit=job.submit,
            run=job.run,
            requested=job.requested,
            nodes=job.nodes,
            cores_per_node=job.shape[0],
            gpus_per_node=job.shape[1],
            memory_per_node=job.shape[2],
        )
        for row, job in enumerate(jobs)
    ]
    env = Environment()
    cluster = Cluster(env, spec, policy, overrun=overrun)
    cluster.replay(Workload.from_jobs(asked))
    env.run()
    place = cluster.places[0]
    assert (place.table.free == place.table.capacity).all()
    runs = cluster.result().runs
    held = zip(runs["start"].tolist(), map(list, runs["nodes"]), strict=True)
    found = dict(zip(runs["job"].tolist(), held, strict=True))
    return [found[row] for row in range(len(jobs))]


@pytest.mark.parametrize("policy", ORDERS)
@pytest.mark.parametrize(
    "cases", [30, pytest.param(150, marks=pytest.mark.long), pytest.param(3000, marks=pytest.mark.exhaustive)]
)
def test_starts_and_nodes_as_brute_force_says(policy, cases):
    order, candidates = ORDERS[policy]
    for seed in range(cases):
        machine, jobs = drawn(seed)
        rng = Random(seed)
        exclusive, overrun = rng.random() < 0.3, rng.choice(["stop", "continue"])
        placement = rng.choice(["first-fit", "best-fit", "packed", "spread"])
        capacity = [(*kind[:2], kind[2] or 2.0**50) for kind, count in machine for _ in range(count)]
        expected = easy(jobs, Machine(capacity, exclusive, placement), order, candidates, overrun)
        assert run(machine, jobs, policy, exclusive, placement, overrun) == expected, seed


@pytest.mark.parametrize("policy", ORDERS)
@pytest.mark.parametrize(
    "cases", [20, pytest.param(60, marks=pytest.mark.long), pytest.param(3000, marks=pytest.mark.exhaustive)]
)
def test_starts_and_nodes_at_different_speeds_as_brute_force_says(policy, cases):
    order, candidates = ORDERS[policy]
    for seed in range(cases):
        machine, jobs = drawn(seed)
        rng = Random(seed)
        speeds = [rng.choice([0.5, 1.0, 2.0]) for _ in machine]
        placement = rng.choice(["first-fit", "best-fit", "packed", "spread"])
        capacity = [(*kind[:2], kind[2] or 2.0**50) for kind, count in machine for _ in range(count)]
        by_node = [speed for speed, (_, count) in zip(speeds, machine, strict=True) for _ in range(count)]
        slow = Machine(capacity, placement=placement, speeds=by_node)
        expected = easy(jobs, slow, order, candidates)
        assert run(machine, jobs, policy, False, placement, "stop", speeds) == expected, seed


class Pinned(Easy):
    """EASY whose head gets certain nodes at its promised instant, which no job past that instant may use."""

    def decide(self, view):
        place = view.places[0]
        queue = view.waiting.by(self.order)
        yield from start_heads(self.order, view, place)
        if (head := queue.head()) is None:
            return
        profile = place.profile()
        at, allocation = profile.earliest(head, head.requested)
        profile.take(head, at, head.requested, allocation)
        for job in queue:
            if job is not head and (found := profile.fits(job, job.planned)) is not None:
                yield Start(job, place, None, found)
                profile.take(job, view.now, job.planned, found)


@pytest.mark.parametrize("cases", [150, pytest.param(2000, marks=pytest.mark.exhaustive)])
def test_jobs_wait_no_longer_in_the_mean_than_with_pinned_nodes(cases):
    waits = {Easy: 0.0, Pinned: 0.0}
    starts = {Easy: [], Pinned: []}
    jobs = 0
    for seed in range(cases):
        machine, drawn_jobs = drawn(seed)
        exclusive = Random(seed).random() < 0.3
        jobs += len(drawn_jobs)
        for policy in waits:
            found = run(machine, drawn_jobs, policy(), exclusive, "first-fit", "stop")
            starts[policy].append([at for at, _ in found])
            waits[policy] += sum(at - job.submit for (at, _), job in zip(found, drawn_jobs, strict=True))
    assert starts[Easy] != starts[Pinned]
    assert waits[Easy] <= waits[Pinned], {policy.__name__: wait / jobs for policy, wait in waits.items()}


def test_a_job_of_parts_of_nodes_comes_while_a_promise_made_by_counting_whole_nodes_stands():
    """Job 0 has one of two nodes until 19 s. At 1 s jobs 1 and 2 wait, which hold the cores of whole nodes.

    Job 3 needs a core of each node: free cores are no room for it. Job 1 starts at 19 s and ends at 25 s; then job 2
    runs on one node until 45 s.
    """
    part = PartitionSpec(nodes=[NodeSpec(count=2, cores=2, memory=4)], placement="best-fit")
    whole = {"cores_per_node": 2}
    jobs = [
        Job(id=0, submit=0, run=19, nodes=1, memory_per_node=4, **whole),
        Job(id=1, submit=1, run=6, requested=26, nodes=2, **whole),
        Job(id=2, submit=1, run=20, requested=25, nodes=1, **whole),
        Job(id=3, submit=2, run=3, nodes=2, cores_per_node=1),
    ]
    found = simulate(ClusterSpec(partitions=[part]), jobs, "easy").jobs
    assert found["start"].tolist() == [0, 19, 25, 45]


def test_a_job_for_whole_nodes_waits_until_they_are_idle_where_others_share_them():
    """Job 0 has one of four cores of node 0 until 10 s, and job 1 all of node 1 until 30 s. Job 2 wants two whole ones.

    Job 3 wants a whole node for 5 s: the third one is idle, and node 0 is by 10 s, so that job 2 gets these two then.
    """
    part = PartitionSpec(nodes=[NodeSpec(count=2, cores=4), NodeSpec(name="other", cores=8)])
    jobs = [
        Job(id=0, submit=0, run=10, nodes=1, cores_per_node=1),
        Job(id=1, submit=0, run=30, nodes=1, cores_per_node=4),
        Job(id=2, submit=1, run=5, nodes=2, cores_per_node=1, exclusive=True),
        Job(id=3, submit=2, run=5, nodes=1, cores_per_node=1, exclusive=True),
    ]
    runs = simulate(ClusterSpec(partitions=[part]), jobs, "easy").runs
    held = dict(zip(runs["job"].tolist(), zip(runs["start"].tolist(), runs["nodes"], strict=True), strict=True))
    assert held == {0: (0, (0,)), 1: (0, (1,)), 2: (10, (0, 2)), 3: (2, (2,))}


def test_a_job_for_a_whole_host_shares_it_with_none():
    """Host 0 is for job 0 until 10 s, host 1 for jobs 1 and 2, so job 3 waits, of four cores, and job 4 with it."""
    part = PartitionSpec(one_host=True, nodes=[NodeSpec(count=2, cores=4)])
    whole = {0: True, 4: True}
    jobs = [Job(id=i, processors=4 if i == 3 else 1, run=10, exclusive=whole.get(i, False)) for i in range(5)]
    for policy in ("fcfs", "easy", "conservative", "conservative-keep"):
        found = simulate(ClusterSpec(partitions=[part]), jobs, policy).jobs
        assert found["start"].tolist() == [0, 0, 0, 10, 10], policy


@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjf+easy", "conservative", "conservative-keep", "best-fit"])
@pytest.mark.parametrize("one_host", [False, True])
def test_jobs_for_whole_and_parts_of_shared_nodes_never_hold_a_node_together(policy: str, one_host: bool):
    for seed in range(12 if policy == "easy" else 3):
        rng = Random(seed)
        kinds = [NodeSpec(count=3, cores=4), NodeSpec(name="other", count=2, cores=8)]
        part = PartitionSpec(nodes=kinds, one_host=one_host)
        jobs = [
            Job(
                id=row,
                submit=rng.randint(0, 60),
                run=rng.randint(1, 40),
                requested=rng.randint(40, 80),
                exclusive=rng.random() < 0.5,
                **{"processors": rng.randint(1, 4)}
                if one_host
                else {"nodes": rng.randint(1, 3), "cores_per_node": rng.randint(1, 4)},
            )
            for row in range(25)
        ]
        runs = simulate(ClusterSpec(partitions=[part]), jobs, policy).runs
        held = list(zip(runs["job"].tolist(), runs["start"], runs["end"], map(set, runs["nodes"]), strict=True))
        assert len(held) == len(jobs)
        for job, start, end, nodes in held:
            others = (each for each in held if jobs[job].exclusive and each[0] != job)
            assert not any(nodes & on and start < until and since < end for _, since, until, on in others), (seed, job)


def test_a_job_that_is_held_since_another_one_of_its_user_started_is_not_started_beside_a_promise():
    """Job 1 waits for node 0 until 10 s; of jobs 2 and 3, which fit on the other node, the user may run one."""
    part = PartitionSpec(nodes=[NodeSpec(cores=4), NodeSpec(name="other", cores=2)])
    spec = ClusterSpec(partitions=[part], queues=[QueueSpec(name="one", max_running_per_user=1), QueueSpec(name="any")])
    wide = [Job(id=i, run=10, nodes=1, cores_per_node=4, queue="any") for i in range(2)]
    small = [Job(id=2 + i, run=1, nodes=1, cores_per_node=1, queue="one", user="x") for i in range(2)]
    assert simulate(spec, [*wide, *small], "easy").jobs["start"].tolist() == [0, 10, 0, 1]
