"""Light futures: what a simulation from a snapshot finds is what the simulation itself goes on to do."""

from collections.abc import Iterator
from random import Random
from typing import Any

import attrs
import pytest

from simmodel.environment import Environment
from simmodel.futures.start_times import predict
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.protocol import Decision, Policy, Start, View
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job, Run
from tests.helpers.policies_there import there

NODES = ClusterSpec(
    name="n", partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-4]", count=4, cores=4)])]
)
POLICIES = (
    *there("slurm", "slurm(bf_interval=10, batch_sched_delay=0)", "slurm(completing=2, bf_resolution=1)"),
    *("fcfs", "easy", "conservative", "conservative-keep", "wfp+easy", "multifactor", "window", "preemptive"),
)


def jobs(seed: int) -> list[Job]:
    random = Random(seed)
    found = []
    for number in range(60):
        run = random.expovariate(1 / 90)
        asked = {"nodes": random.randint(1, 3), "cores_per_node": random.randint(1, 4)}
        limit = run * random.choice((1, 1, 2, 5))
        found.append(Job(id=number, submit=random.uniform(0, 300), run=run, requested=limit, user=number % 5, **asked))
    return sorted(found, key=lambda job: job.submit)


@pytest.mark.few(6)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("platform", [NODES, 16], ids=["nodes", "processors"])
def test_a_future_is_what_the_simulation_goes_on_to_do(policy: str, platform: ClusterSpec | int) -> None:
    """Ends that a policy hears of as an observer bring its next decisions in a future, too."""
    given = jobs(sum(map(ord, policy)))
    if platform == 16:
        given = [Job(id=job.id, submit=job.submit, processors=job.processors, run=job.run, requested=job.requested)
                 for job in given]  # fmt: skip
    env = Environment()
    cluster = Cluster(env, platform, policy)
    cluster.replay(given)
    env.run(until=400)
    begun = set(cluster.result().jobs["job"][cluster.result().jobs["start"] < 400].tolist())
    found = predict(cluster.snapshot())
    env.run()
    table = cluster.result().jobs
    later = dict(zip(table["job"].tolist(), table["start"].tolist(), strict=True))
    assert len(found.starts) > 20
    assert {job: at for job, _, at in found.starts} == {job: at for job, at in later.items() if job not in begun}


@pytest.mark.few(6)
@pytest.mark.parametrize("policy", there("slurm", "slurm(completing=2)", "slurm(bf_interval=7, sched_interval=20)"))
@pytest.mark.parametrize("platform", [NODES, 16], ids=["nodes", "processors"])
@pytest.mark.parametrize("seed", [4, *range(3)])
def test_policy_slurm_continues_from_any_instant(seed: int, platform: ClusterSpec | int, policy: str) -> None:
    """Also where nothing waits, and where no run of a loop changes anything for long."""
    random = Random(seed)
    given = sorted(
        [attrs.evolve(job, submit=random.uniform(0, 1500)) for job in jobs(seed)], key=lambda job: job.submit
    )
    if platform == 16:
        given = [Job(id=job.id, submit=job.submit, processors=job.processors, run=job.run, requested=job.requested)
                 for job in given]  # fmt: skip
    whole = Cluster(Environment(), platform, policy)
    whole.replay(given)
    whole.env.run()
    starts = whole.result().jobs["start"]
    for cut in (random.uniform(0, 600), random.uniform(600, 1500), random.uniform(1500, 2500)):
        first = Cluster(Environment(), platform, policy)
        first.replay(given)
        first.env.run(until=cut)
        later = Cluster.from_snapshot(Environment(cut), first.snapshot())
        later.env.run()
        table = later.result().jobs
        found = dict(zip(table["job"].tolist(), table["start"].tolist(), strict=True))
        expected = zip(whole.result().jobs["job"].tolist(), starts.tolist(), strict=True)
        for job, at in expected:
            assert at < cut or found[job] == at, (job, cut)
        first.env.run()
        assert first.result().jobs["start"].tolist() == starts.tolist()


class Behind(Policy, Observer):
    """Starts as many jobs as have ended, and one at first."""

    name = "behind"

    def __init__(self) -> None:
        self.may = 1

    def attach(self, system: Any) -> None:
        system.env.observe(self)

    def job_ended(self, run: Run, status: str, /) -> None:
        self.may += 1

    def decide(self, view: View, /) -> Iterator[Decision]:
        for job in view.waiting:
            if self.may and job.place.fits(job):
                self.may -= 1
                yield Start(job, job.place)

    def state(self) -> Any:
        return {"may": self.may}

    def restore(self, values: Any) -> None:
        self.may = values["may"]


def test_a_policy_of_ones_own_hears_of_ends_in_a_future() -> None:
    env = Environment()
    cluster = Cluster(env, 4, Behind())
    for _ in range(3):
        cluster.submit(Job(run=10, requested=10))
    env.run(until=5)
    assert [at for _, _, at in predict(cluster.snapshot(), Behind()).starts] == [10.0, 20.0]
    assert [at for _, _, at in cluster.view.simulate(cluster.scheduler.policy).starts] == [10.0, 20.0]
    env.run()
    assert cluster.result().jobs["start"].tolist() == [0.0, 10.0, 20.0]
