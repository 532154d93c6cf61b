"""Conservative backfilling on identified nodes: against plain tables, and with a kept plan against a new one."""

import random

import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec
from simmodel.policies import Conservative
from simmodel.policies.fast.node_plan import NodePlan
from simmodel.policies.preemption import Preemptive
from simmodel.resources.pools import node_profile
from tests.helpers.drawn_queues import drawn_queues
from tests.helpers.examples import up_to
from tests.oracles.conservative_nodes import NodeJob, simulate as plain_tables


def drawn_nodes(rng):
    return [
        NodeSpec(
            name=f"n{i}",
            count=rng.randint(1, 4),
            cores=rng.choice([1, 2, 4, 8]),
            gpus=rng.randint(0, 2),
            memory=rng.choice([4, 8]),
        )
        for i in range(rng.randint(1, 3))
    ]


def drawn_request(rng):
    return {
        "nodes": rng.randint(1, 4),
        "cores_per_node": rng.randint(1, 4),
        "gpus_per_node": rng.choice([0, 0, 1]),
        "memory_per_node": rng.choice([0, 0, 3]),
    }


def events(spec, jobs, policy, options=None):
    heard = []

    class Watch:
        def job_started(self, run):
            heard.append(("starts", run.job.id, run.started, run.grant.nodes))

        def job_resumed(self, run):
            heard.append(("resumes", run.job.id, run.started, run.grant.nodes))

        def job_promised(self, job, _place, at):
            heard.append(("is promised", job.id, at))

    simulate(spec, jobs, policy, observers=[Watch()], **(options or {}))
    return heard


@pytest.mark.parametrize(
    "seeds",
    [
        range(15),
        pytest.param(range(60), marks=pytest.mark.long),
        pytest.param(range(3000), marks=pytest.mark.exhaustive),
    ],
)
def test_starts_and_nodes_as_by_plain_tables(seeds):
    for seed in seeds:
        rng = random.Random(seed)
        kinds, exclusive = drawn_nodes(rng), rng.random() < 0.3
        capacities = [(kind.cores, kind.gpus, kind.memory) for kind in kinds for _ in range(kind.count)]
        if len(set(capacities)) == 1:
            continue  # counted: not planned on certain nodes
        jobs, submit = [], 0
        for _ in range(rng.randint(2, 25)):
            submit += rng.choice([0, 0, 1, 3])
            run = rng.randint(1, 20)
            asked = drawn_request(rng)
            needs = asked["cores_per_node"], asked["gpus_per_node"], asked["memory_per_node"]
            able = sum(all(has >= need for has, need in zip(node, needs, strict=True)) for node in capacities)
            if able >= asked["nodes"]:
                jobs.append(NodeJob(submit, run, run + rng.choice([0, 0, 3, 15]), asked["nodes"], *needs))
        spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, exclusive=exclusive)])
        submitted = [
            Job(
                id=i,
                submit=job.submit,
                run=job.run,
                requested=job.requested,
                nodes=job.nodes,
                cores_per_node=job.cores,
                gpus_per_node=job.gpus,
                memory_per_node=job.memory,
            )
            for i, job in enumerate(jobs)
        ]
        found = {name: (at, nodes) for _, name, at, nodes in events(spec, submitted, "conservative")}
        assert [found[i] for i in range(len(jobs))] == plain_tables(jobs, capacities, exclusive=exclusive), seed


def drawn(seed):
    """Nodes and jobs of all kinds: some run on, are cancelled, preempted, held by limits, or ask for cores anywhere."""
    rng = random.Random(seed)
    kinds = drawn_nodes(rng)
    unit, gaps = rng.choice([1, 1, 0.1, 7.3]), rng.choice([[0], [0, 0, 1], [0, 1, 2, 5], [0, 3, 10, 30]])
    exact, over, odd = rng.choice([0, 0.5, 0.9, 1, 1]), rng.choice([0, 0, 0.1]), rng.choice([0, 0, 0.05])
    priorities, cancelled = rng.choice([[0], [0], [0, 0, 1, 2]]), rng.choice([0, 0, 0.2])
    preempts, limits = rng.random() < 0.2, rng.random() < 0.3
    jobs, submit = [], 0
    for number in range(1, rng.randint(3, 50)):
        submit += rng.choice(gaps)
        run, kind = rng.choice([1, 2, 3, 5, 8, 10, 20, rng.randint(1, 40)]), rng.random()
        requested = run + rng.choice([1, 5, 10, 30])
        if kind < exact + over:
            requested = run if kind < exact else max(1, run // 2)
        asked = {"processors": rng.randint(1, 6)} if rng.random() < odd else drawn_request(rng)
        if preempts or limits:
            asked["queue"] = rng.choice("ab")
        if rng.random() < cancelled:
            asked["cancel"] = (submit + rng.choice([0, 1, 5, 20])) * unit
        if rng.random() < 0.05 and number > 1:
            asked["dependencies"] = [rng.randint(1, number - 1)]
        times = {"submit": submit * unit, "run": run * unit, "requested": requested * unit}
        jobs.append(Job(id=number, user=rng.choice("xyz"), priority=rng.choice(priorities), **times, **asked))
    queues = drawn_queues(rng, preempts=preempts, limits=limits)
    outages = []
    if rng.random() < 0.25:
        what = {"nodes": [rng.randrange(sum(kind.count for kind in kinds))], "kind": rng.choice(["failure", "drain"])}
        outages = [OutageSpec(at=rng.randint(1, 60) * unit, until=rng.randint(61, 120) * unit, **what)]
    part = PartitionSpec(
        name="p", nodes=kinds, exclusive=rng.random() < 0.3, placement=rng.choice(["first-fit"] * 5 + ["packed"])
    )
    options = {
        "overrun": rng.choice(["stop", "continue"]),
        "decide_on": rng.choice(["instant", "instant", "event"]),
        "event_order": rng.choice(["submits-first", "ends-first"]),
        "estimates": rng.choice(["requested"] * 4 + ["exact", "cqsim"]),
    }
    spec = ClusterSpec(partitions=[part], queues=queues, outages=outages)
    return spec, jobs, options, rng.choice(["fcfs", "fcfs", "sjf", "largest", "wfp"]), preempts, rng.random() < 0.1


def near(value):
    """Return a value with its instants rounded: promises sum the same seconds in another order."""
    if isinstance(value, (list, tuple)):
        return [near(each) for each in value]
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "seeds",
    [
        range(8),
        [2863],
        pytest.param(range(80), marks=pytest.mark.long),
        pytest.param(range(3000), marks=pytest.mark.exhaustive),
    ],
)
def test_a_kept_plan_starts_on_the_same_nodes_what_a_new_profile_starts(seeds, monkeypatch):
    kept = []
    follow = NodePlan._follow
    monkeypatch.setattr(NodePlan, "_follow", lambda plan, now: (kept.append(now), follow(plan, now)))
    for seed in seeds:
        spec, jobs, options, order, preempts, promises = drawn(seed)
        policies = [Conservative(order, promises=promises, fast=fast) for fast in (True, False)]
        plans = [events(spec, jobs, Preemptive(each) if preempts else each, options) for each in policies]
        assert near(plans[0]) == near(plans[1]), seed
    assert len(kept) >= len(seeds)


def test_no_job_starts_after_its_promise_if_all_run_as_long_as_requested():
    for seed in range(up_to(60, 20)):
        rng = random.Random(seed)
        kinds = drawn_nodes(rng)
        spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, exclusive=rng.random() < 0.3)])
        jobs = [Job(id=i, submit=i // 3, run=rng.randint(1, 20), **drawn_request(rng)) for i in range(25)]
        promised = {}
        for what, job, at, *_ in events(spec, jobs, Conservative(promises=True)):
            if what == "is promised":
                promised.setdefault(job, at)
            assert at <= promised.get(job, at), seed


def test_a_planned_exclusive_job_has_all_of_its_nodes():
    """Job 2 is planned on the whole node from 10 on: job 3 has no room beside it, job 4 would delay it."""
    node = {"nodes": 1, "requested": 10, "run": 10}
    jobs = [Job(id=1, cores_per_node=3, **node), Job(id=2, submit=1, cores_per_node=1, exclusive=True, **node)]
    jobs += [Job(id=i, submit=i, cores_per_node=1, **node) for i in (3, 4)]
    promised = {}
    for what, job, at, *_ in events(
        ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=4)])]), jobs, Conservative(promises=True)
    ):
        if what == "is promised":
            promised.setdefault(job, at)
    assert promised == {2: 10, 3: 20, 4: 20}


def test_jobs_of_a_future_on_nodes_that_goes_as_planned_are_planned_once(monkeypatch):
    rng = random.Random(3)
    planned = []
    earliest = node_profile.NodeGaps.earliest
    monkeypatch.setattr(
        node_profile.NodeGaps, "earliest", lambda self, *asked: (planned.append(asked), earliest(self, *asked))[1]
    )
    kinds = [NodeSpec(name="thin", count=12, cores=8), NodeSpec(name="gpu", count=4, cores=8, gpus=2)]
    jobs = [Job(id=i, run=rng.randint(1, 1000), **drawn_request(rng) | {"memory_per_node": 0}) for i in range(200)]
    result = simulate(ClusterSpec(partitions=[PartitionSpec(nodes=kinds)]), jobs, "conservative")
    assert (result.jobs["status"] == "completed").all()
    assert len(planned) < 1.1 * len(jobs)
