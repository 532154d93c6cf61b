"""Conservative backfilling of jobs that are too short to move the clock: each takes its processors all the same."""

import random
from collections import Counter

import pytest

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.policies import Conservative
from simmodel.policies.planning import ConservativeKeep

PARTITIONS = {
    "counted": PartitionSpec(processors=8),
    "nodes": PartitionSpec(nodes=[NodeSpec(count=2, cores=4)]),
    "nodes that differ": PartitionSpec(nodes=[NodeSpec(cores=4), NodeSpec(name="slow", cores=4, speed=0.7)]),
}
TINY = [5e-324, 1e-20, 1e-16, 2.3e-16]


def events(partition, jobs, policy, options):
    heard = []

    class Watch:
        def job_started(self, run):
            heard.append(("starts", run.started, run.job.id))

        def job_promised(self, job, _place, at):
            heard.append(("is promised", at, job.id))

    simulate(ClusterSpec(partitions=[partition]), jobs, policy, observers=[Watch()], **options)
    return heard


def drawn(seed, nodes):
    rng = random.Random(seed)
    jobs = []
    for number in range(rng.randint(2, 9)):
        run = rng.choice([0.0, 1.0, 2.0, 3.0, *TINY])
        asked = {"processors": rng.choice([1, 2, 4, 8])}
        if nodes:
            asked = {"nodes": rng.randint(1, 2), "cores_per_node": rng.choice([1, 2, 4])}
        requested = rng.choice([None, None, run + 1, 2 * run or None])
        jobs.append(Job(id=number, submit=rng.choice([0, 0, 1, 2]), run=run, requested=requested, **asked))
    options = {"estimates": rng.choice(["requested", "exact"]), "overrun": rng.choice(["stop", "continue"])}
    return jobs, options


@pytest.mark.parametrize("seconds", [0.0, *TINY])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep"])
@pytest.mark.parametrize("kind", ["counted", "nodes"])
def test_jobs_of_a_tiny_duration_run_one_after_the_other(kind, policy, seconds):
    """At 1 s, when the first job ends, either of the others takes all processors."""
    one, all_ = {"processors": 1}, {"processors": 8}
    if kind == "nodes":
        one, all_ = {"nodes": 1, "cores_per_node": 1}, {"nodes": 2, "cores_per_node": 4}
    jobs = [Job(run=1.0, **one), Job(run=seconds, **all_), Job(run=seconds, **all_)]
    result = simulate(ClusterSpec(partitions=[PARTITIONS[kind]]), jobs, policy)
    assert result.jobs["start"].tolist() == [0, 1, 1 + seconds]


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize(
    "seeds",
    [
        range(12),
        [374, 686],
        pytest.param(range(60), marks=pytest.mark.long),
        pytest.param(range(3000), marks=pytest.mark.exhaustive),
    ],
)
def test_all_jobs_start(kind, seeds):
    for seed in seeds:
        jobs, options = drawn(seed, nodes=kind != "counted")
        for policy in (Conservative(), Conservative(promises=True), ConservativeKeep()):
            heard = Counter(what for what, *_ in events(PARTITIONS[kind], jobs, policy, options))
            assert heard["starts"] == len(jobs), seed


@pytest.mark.parametrize("kind", ["counted", "nodes"])
@pytest.mark.parametrize(
    "seeds",
    [
        range(12),
        [235, 517],
        pytest.param(range(60), marks=pytest.mark.long),
        pytest.param(range(3000), marks=pytest.mark.exhaustive),
    ],
)
def test_a_kept_plan_starts_what_a_new_plan_starts(kind, seeds):
    for seed in seeds:
        jobs, options = drawn(seed, nodes=kind != "counted")
        for policy in (Conservative, ConservativeKeep):
            found = [events(PARTITIONS[kind], jobs, policy(fast=fast), options) for fast in (True, False)]
            assert found[0] == found[1], seed
