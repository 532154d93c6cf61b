"""Jobs without a time limit: nobody knows when they end, and what they are in the way of is not passed for ever."""

from math import inf
from random import Random

import pytest

from simmodel import Job, simulate, start, what_if
from simmodel.platform import ClusterSpec, ConsumableSpec, NodeSpec, PartitionSpec, QueueSpec
from simmodel.policies.backfilling import Easy
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.referee import explain
from simmodel.snapshots import Snapshot
from tests.helpers.policies_there import there
from tests.oracles import endless

CASES = [16, pytest.param(400, marks=pytest.mark.long), pytest.param(4000, marks=pytest.mark.exhaustive)]


def drawn(seed, most=8):
    """Draw processors and jobs, some without a limit, that come faster than they can start."""
    rng = Random(seed)
    processors, jobs, submit = rng.randint(2, most), [], 0
    share = rng.choice([0.1, 0.3, 0.6, 1.0])
    for _ in range(rng.randint(4, 24)):
        submit += rng.choice([0, 0, 1, 2, 7])
        run = rng.randint(1, 25)
        limit = inf if rng.random() < share else rng.choice([run, run + 1, 2 * run, run + 12])
        jobs.append((submit, run, limit, rng.choice([1, 1, 2, rng.randint(1, processors), processors])))
    return processors, jobs


def as_jobs(drawn_jobs, **more):
    return [
        Job(
            id=row,
            submit=submit,
            run=run,
            requested=limit,
            **({"processors": size} if not more else shape_of(size, more)),
        )
        for row, (submit, run, limit, size) in enumerate(drawn_jobs)
    ]


def shape_of(size, more):
    return {"nodes": size, "cores_per_node": more["cores"]}


PLATFORMS = {
    "processors": (lambda n: n, {}),
    "whole nodes": (lambda n: nodes_of(n, cores=4, exclusive=True), {"cores": 1}),
    "nodes of one core": (lambda n: nodes_of(n, cores=1), {"cores": 1}),
    "shared nodes": (lambda n: nodes_of(n, cores=4), {"cores": 3}),
    "nodes that differ": (lambda n: nodes_of(n, cores=4, odd=True), {"cores": 4}),
}


def nodes_of(count, cores, exclusive=False, odd=False):
    kinds = [NodeSpec(count=count, cores=cores), *([NodeSpec(name="small", cores=2)] if odd else [])]
    return ClusterSpec(partitions=[PartitionSpec(nodes=kinds, exclusive=exclusive)])


COUNTED = ("processors", "whole nodes", "nodes of one core")  # where a plan of counts is one of nodes


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_starts_as_brute_force_says(policy, platform, cases):
    make, more = PLATFORMS[platform]
    for seed in range(cases if platform == "processors" else cases // 4):
        processors, jobs = drawn(seed)
        found = simulate(make(processors), as_jobs(jobs, **more), policy).jobs["start"].tolist()
        if policy == "easy" or platform in COUNTED:
            assert found == endless.simulate(jobs, processors, policy), seed
        else:  # planned nodes are an answer of their own: the kept plan is that of the full profile
            reference = simulate(make(processors), as_jobs(jobs, **more), Conservative(fast=False))
            assert found == reference.jobs["start"].tolist(), seed


POLICIES = ("easy", "easy-sjbf", "conservative", "conservative-keep", "window", "keep-preferred", "preemptive")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("platform", ["processors", "nodes of one core"])
def test_a_job_that_nobody_knows_to_start_is_passed_by_few(policy, platform):
    """A job for all processors waits beside one without a limit, while small ones with and without limits come on."""
    make, more = PLATFORMS[platform]
    wide = [(0, 50, inf, 2), (1, 5, 20, 4)]
    small = [(2 + i, 7, limit, 1) for i, limit in enumerate([9, inf, 8, 7] * 40)]
    starts = simulate(make(4), as_jobs(sorted(wide + small), **more), policy).jobs["start"].tolist()
    assert starts[1] == 50  # what falls free is kept for it
    assert sum(start < 50 for start in starts[2:]) == 2  # on what was free when it came


def test_the_third_starts_at_once_where_no_end_is_known():
    jobs = as_jobs([(0, 1200, inf, 2), (1, 1200, 1200, 4), (2, 3600, 3600, 2)])
    for policy in POLICIES:
        assert simulate(4, jobs, policy).jobs["start"].tolist() == [0, 3602, 2]
    assert simulate(4, jobs, "easy", estimates="exact").jobs["start"].tolist() == [0, 1200, 2400]
    for policy in there("slurm"):
        assert simulate(4, jobs, policy).jobs["wait"][2] < 31  # in the first cycle of backfilling: a year is no bound


def test_devices_and_licences_that_fall_free_are_kept_too():
    gpu = NodeSpec(count=2, name="gpu", cores=4, gpus=1)
    spec = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=4), gpu])],
        consumables=[ConsumableSpec(name="licence", amount=2)],
    )
    one = {"nodes": 1, "cores_per_node": 1, "gpus_per_node": 1, "requested": 10}
    jobs = [
        Job(id="a", nodes=1, gpus_per_node=1, run=100, requested=inf),
        Job(id="b", nodes=1, gpus_per_node=1, run=10, requested=10),
        Job(id="both", submit=1, nodes=2, gpus_per_node=1, run=5, requested=5),
        *(Job(id=f"cores {i}", submit=2, nodes=1, cores_per_node=4, run=5, requested=inf) for i in range(4)),
        Job(id="c", submit=3, run=10, **one),  # would fit from 10 on
    ]
    for policy in ("easy", "conservative", "conservative-keep", "window"):
        starts = dict(
            zip(*(simulate(spec, jobs, policy).jobs[name].tolist() for name in ("job", "start")), strict=True)
        )
        assert (starts["both"], starts["c"]) == (100, 105)
        assert [starts[f"cores {i}"] for i in range(4)][:3] == [2, 2, 2]
    held = {"processors": 1, "consumables": {"licence": 1}}
    licences = [
        Job(id="a", run=100, requested=inf, **held),
        Job(id="b", run=10, requested=10, **held),
        Job(id="both", submit=1, run=5, requested=5, consumables={"licence": 2}),
        Job(id="c", submit=3, run=10, requested=10, **held),
        Job(id="none", submit=3, run=10, requested=10),
    ]
    for policy in ("easy", "conservative", "conservative-keep"):
        assert simulate(spec, licences, policy).jobs["start"].tolist() == [0, 0, 100, 105, 3]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("platform", ["processors", "shared nodes", "nodes that differ"])
@pytest.mark.parametrize(
    "cases", [1, pytest.param(12, marks=pytest.mark.long), pytest.param(60, marks=pytest.mark.exhaustive)]
)
def test_a_snapshot_keeps_what_is_kept(policy, platform, cases):
    make, more = PLATFORMS[platform]
    for seed in range(cases):
        processors, jobs = drawn(seed)
        whole = simulate(make(processors), as_jobs(jobs, **more), policy).jobs["start"].tolist()
        sim = start(make(processors), as_jobs(jobs, **more), policy)
        for at in range(2, 40, 12):
            sim.run(until=at)
            snapshot = Snapshot.from_json(sim.snapshot().to_json())
            rest = start(snapshot).run().result().jobs
            for job, begin in zip(rest["job"].tolist(), rest["start"].tolist(), strict=True):
                assert begin == whole[job], (seed, at)


def test_what_is_kept_is_in_snapshots_alone_while_it_is():
    jobs = as_jobs([(0, 50, inf, 2), (0, 10, 10, 1), (1, 5, 20, 4)])
    sim = start(4, jobs, "easy")
    sim.run(until=5)
    assert sim.snapshot().policy.state == {"kept": {"batch": [2, 1, {}]}}
    sim.run(until=20)
    assert sim.snapshot().policy.state == {"kept": {"batch": [2, 1, {}]}}
    sim.run(until=60)
    assert sim.snapshot().policy.state is None


def test_futures_know_no_end():
    sim = start(4, as_jobs([(0, 50, inf, 2), (1, 5, 20, 4), (2, 5, 20, 2), (3, 9, 30, 2)]), "easy")
    sim.run(until=4)
    seen = sim.snapshot().expected()
    found = what_if(seen, {name: name for name in ("easy", "conservative", "conservative-keep", "window", "fcfs")})
    assert [[start.job for start in each.starts] for each in found.outcomes] == [[]] * 5  # what falls free is kept
    assert sim.system.estimate(Job(processors=2, run=1, requested=9)).start == inf
    assert simulate({"a": 4, "b": 4}, as_jobs([(0, 50, inf, 2), (0, 60, inf, 4)]), "earliest-start").jobs[
        "start"
    ].tolist() == [0, 0]


@pytest.mark.parametrize("estimates", ["predicted", "recent-two", "own-past"])
def test_estimates_may_say_otherwise(estimates):
    past = [(10 * i, 5, inf, 1) for i in range(5)]
    jobs = as_jobs([*past, (100, 5, inf, 2), (101, 5, inf, 4), (102, 60, inf, 2)])
    assert simulate(4, jobs, "easy").jobs["start"].tolist()[-2:] == [162, 102]
    predicted = simulate(4, jobs, "easy", estimates=estimates).jobs["start"].tolist()[-2:]
    assert predicted == [105, 110]


def test_a_job_without_a_limit_has_that_of_its_queue_or_partition():
    part = PartitionSpec(name="short", processors=4, max_requested=100)
    spec = ClusterSpec(partitions=[part], queues=[QueueSpec(name="brief", max_requested=50)])
    jobs = [Job(run=200, requested=inf), Job(run=200, requested=inf, queue="brief"), Job(run=20, requested=inf)]
    result = simulate(spec, jobs, "easy")
    assert (result.jobs["end"].tolist(), result.jobs["status"].tolist()) == (
        [100, 50, 20],
        ["timeout", "timeout", "completed"],
    )


def test_a_wide_job_for_any_partition_starts_in_the_first_that_is_free():
    spec = ClusterSpec(partitions=[PartitionSpec(name=name, processors=4) for name in "ab"])
    jobs = [
        Job(id=1, partition="a", processors=2, run=50, requested=inf),
        Job(id=2, partition="b", processors=2, run=60, requested=inf),
        Job(id=3, submit=1, partitions="any", processors=4, run=5, requested=5),
        *(Job(id=4 + i, submit=2 + i, partitions="any", processors=2, run=8, requested=inf) for i in range(9)),
    ]
    starts = simulate(spec, jobs, "easy").jobs["start"].tolist()
    assert starts[2] == 50
    assert starts[3] == 2


def test_no_start_is_promised_to_a_job_that_no_known_end_frees():
    jobs = as_jobs([(0, 50, inf, 2), (1, 20, 20, 4), (2, 80, 80, 2)])
    for policy in (Easy(promises=True), Conservative(promises=True), ConservativeKeep()):
        promised = []

        class Watch:
            def job_promised(self, job, _place, at, promised=promised):
                promised.append((job.id, at))

        simulate(4, jobs, policy, observers=[Watch()])
        assert promised == [(1, 82)]  # once the first has ended


def test_a_start_that_comes_sooner_since_a_job_without_a_limit_has_ended_is_explained():
    jobs = as_jobs([(0, 50, inf, 2), (0, 100, 100, 1), (0, 60, 60, 1), (1, 20, 20, 2)])
    story = explain(4, jobs, "easy", 3, at=40)
    assert [row["cause"] for row in story.promises.rows()] == ["", "job 0, without a limit, ended"]
