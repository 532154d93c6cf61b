"""Advice: what the policy would start in a simulation, and what decides if the policy is late or fails."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, Policy, Portfolio, Start, simulate, start
from simmodel.foundation.errors import InputError
from simmodel.futures import worker_pool
from simmodel.generators import lublin
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin import Advice, Advisor, Mirror, Twin, replay_audit, replay_log
from simmodel_site.twin.sources.log import AdvisedLog

COUNTS = ClusterSpec.simple(64)
NODES = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=8, cores=8)], placement="best-fit")])
_DRAWN = lublin(80, 64, seed=4)
LOG = _DRAWN.replace(submit=np.round(0.2 * _DRAWN["submit"]))
POLICIES = (
    "fcfs",
    "easy",
    "sjf+easy",
    "conservative",
    "conservative-keep",
    "best-fit",
    "multifactor",
    "portfolio",
    "portfolio(fcfs, sjf, backfill=easy, objective=wait_mean, hysteresis=0.2)",
    "portfolio(fcfs, wfp, backfill=easy, interval=600, every=true)",
    "portfolio(conservative-keep, sjf+easy, horizon=7200)",
)


def snapshot_of(spec: ClusterSpec = COUNTS, waiting: int = 6) -> Any:
    """Return the snapshot of a cluster on which 40 of 64 processors are in use, before a decision."""
    env = Environment()
    cluster = Cluster(env, spec, "fcfs")
    cluster.submit(Job(id="runs", processors=40, run=50, requested=100))
    env.run(until=1)
    cluster.scheduler.external = True
    for i in range(waiting):
        cluster.submit(Job(id=i, processors=8 + 8 * (i % 4), run=20, requested=30 + 10 * i))
    return cluster.snapshot()


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_log_that_takes_the_advice_is_the_simulation_under_the_policy(policy: str) -> None:
    found = replay_log(COUNTS, LOG, policy)
    expected = simulate(COUNTS, LOG, policy)
    assert (found.advised.jobs["start"] == expected.jobs["start"]).all()
    assert not any(advice.fallback for advice in found.advices)


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["easy", "portfolio"])
def test_advice_names_the_nodes_that_the_simulation_gives(policy: str) -> None:
    simulation = start(NODES, LOG, policy)
    compared = 0
    while (view := simulation.next_decision()) is not None:
        advice = Advisor(policy).advise(simulation.snapshot())
        before = {job.id: job for job in view.waiting}
        simulation.decide()
        runs = [job.run for job in before.values() if job.run is not None]
        names = NODES.partitions[0].node_names
        expected = {
            run.job.id: tuple((names[int(row[0])], int(row[1])) for row in run.grant.allocation.rows) for run in runs
        }
        if policy == "easy":  # a fresh portfolio may choose another policy than one that has a past
            assert {each.job: each.nodes for each in advice.starts} == expected
        compared += len(expected)
        assert all(sum(cores for _, cores in each.nodes) >= before[each.job].processors for each in advice.starts)
    assert compared == len(LOG)


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["multifactor", "portfolio(multifactor, fcfs, backfill=easy, objective=wait_mean)"])
def test_the_mirror_keeps_the_consumption_of_users_that_the_advising_policy_asks_for(
    policy: str, tmp_path: Path
) -> None:
    log = LOG.replace(user=np.random.default_rng(1).integers(0, 4, len(LOG)))
    audit = tmp_path / "audit.jsonl"
    found = replay_log(COUNTS, log, policy, scheduler="easy", audit=audit)
    assert (found.advised.jobs["start"] == simulate(COUNTS, log, policy).jobs["start"]).all()
    assert (found.advised.jobs["start"] != simulate(COUNTS, log, "easy").jobs["start"]).any()
    assert replay_audit(audit).reproduced == len(found.advices)


class Shuffled(Policy):
    """Start the jobs that fit in a random order."""

    name = "shuffled"
    decides = "jobs"

    def decide(self, view: Any) -> Iterator[Start]:
        jobs = list(view.waiting)
        for number in view.rng.permutation(len(jobs)):
            if view.places[0].fits(jobs[number]):
                yield Start(jobs[number], view.places[0])


@pytest.mark.long  # smaller: the other tests of the file
def test_random_draws_go_on_from_decision_to_decision() -> None:
    found = replay_log(COUNTS, LOG, Shuffled())
    assert (found.advised.jobs["start"] == simulate(COUNTS, LOG, Shuffled()).jobs["start"]).all()


@pytest.mark.long  # smaller: the other tests of the file
def test_an_advisor_continues_from_the_state_of_another_one() -> None:
    def starts(renew: bool) -> list[Advice]:
        source = AdvisedLog(start(COUNTS, LOG, "fcfs"), "cluster")
        mirror = Mirror(COUNTS, "cluster")
        policy = "portfolio(fcfs, conservative-keep, sjf+easy, hysteresis=0.3)"
        advices: list[Advice] = []
        twin = Twin(source, mirror, Advisor(policy), when="passed", told=[advices.append, source.advised])
        while not source.over:
            twin.step()
            if renew:
                values = json.loads(json.dumps(twin.advisor.state()))
                twin.advisor = Advisor(policy)
                twin.advisor.restore(values)
        return advices

    def told(advices: list[Advice]) -> list[Any]:
        return [(each.number, each.time, each.policy, each.starts, each.digest) for each in advices]

    assert told(starts(renew=True)) == told(starts(renew=False))


def test_workers_give_the_same_advice() -> None:
    snapshot = snapshot_of()
    here = Advisor("portfolio").advise(snapshot)
    with worker_pool(2) as pool:
        there = Advisor("portfolio", executor=pool, deadline=60.0).advise(snapshot)
    assert (here.policy, here.scores, here.starts) == (there.policy, there.scores, there.starts)
    assert here.starts
    assert len(here.scores) == 3


# ---------------------------------------------------------------------- late and failing policies


class Slow(Policy):
    """A policy that takes its time."""

    name = "slow"
    decides = "jobs"

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds

    def decide(self, view: Any) -> Iterator[Start]:
        time.sleep(self.seconds)
        yield from ()


class Wrong(Policy):
    """A policy that starts the first job, and then fails as told."""

    name = "wrong"
    decides = "jobs"

    def __init__(self, how: str) -> None:
        self.how = how

    def decide(self, view: Any) -> Iterator[Any]:
        jobs = list(view.waiting)
        yield Start(jobs[0], view.places[0])
        if self.how == "raises":
            raise ZeroDivisionError("no reason")
        yield "nonsense" if self.how == "nonsense" else Start(jobs[0], view.places[0])


def test_a_late_portfolio_leaves_the_decision_to_the_fallback() -> None:
    snapshot = snapshot_of()
    candidates = Portfolio({"slow": Slow(), "easy": "easy"}, "wait_mean", every=True)
    advisor = Advisor(candidates, fallback="sjf+easy", deadline=0.01)
    before = advisor.state()
    advice = advisor.advise(snapshot)
    assert advice.fallback
    assert advice.policy == "sjf+easy"
    assert "not finished by the deadline of 0.01 s" in advice.reason
    assert advice.starts == Advisor("sjf+easy").advise(snapshot).starts
    assert advisor.state()["policy"]["policy"] == {**candidates.state()}
    assert (before["number"], advisor.number) == (0, 1)


def test_a_policy_that_hangs_is_left_in_its_worker() -> None:
    with worker_pool(1) as pool:
        candidates = Portfolio({"slow": Slow(3.0), "easy": "easy"}, "wait_mean", every=True)
        advice = Advisor(candidates, fallback="easy", deadline=0.2, executor=pool).advise(snapshot_of())
        assert advice.fallback
        for process in list(pool._processes.values()):
            process.terminate()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raises", "ZeroDivisionError: no reason"),
        ("again", "PolicyError: "),
        ("nonsense", "PolicyError: "),
    ],
)
def test_what_a_failing_policy_started_is_forgotten(how: str, reason: str) -> None:
    snapshot = snapshot_of()
    advice = Advisor(Wrong(how), fallback="sjf+easy").advise(snapshot)
    assert advice.reason.startswith(reason)
    assert (advice.fallback, advice.starts) == (True, Advisor("sjf+easy").advise(snapshot).starts)


def test_the_snapshot_stays_as_it_is() -> None:
    snapshot = snapshot_of()
    before = snapshot.to_json()
    Advisor("portfolio").advise(snapshot)
    assert snapshot.to_json() == before


def test_nothing_waits_so_nothing_starts() -> None:
    advice = Advisor("portfolio").advise(snapshot_of(waiting=0))
    assert (advice.starts, advice.fallback) == ((), False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "heft"}, "policy: must decide when jobs start, got 'heft'"),
        ({"policy": "preemptive"}, "policy: must not preempt jobs"),
        ({"fallback": "least-loaded"}, "fallback: must decide when jobs start"),
        ({"policy": "esay"}, "did you mean 'easy'"),
        ({"deadline": 0.0}, r"deadline: must be a finite number > 0 \(s\), got 0.0"),
        ({"deadline": np.nan}, "deadline: must be a finite number > 0"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Advisor(**options)


def test_advice_survives_json() -> None:
    advice = Advisor("portfolio").advise(snapshot_of(NODES))
    assert Advice.of(json.loads(json.dumps(advice.document(), allow_nan=False))) == advice
    assert advice.starts[0].nodes
