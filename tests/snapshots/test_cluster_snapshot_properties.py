"""Random runs of clusters, cut anywhere and continued, equal the uncut runs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.workload import Workload
from tests.helpers.cluster_cases import UNTIL, Case, Restless, cases
from tests.helpers.examples import up_to
from tests.helpers.snapshot_cuts import check_cut, check_same, check_snapshot, log_of, outcome, plain_workload

POLICIES = [
    *("fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f2", "f3", "f4", "multifactor"),
    *("easy", "easy-sjbf", "conservative", "conservative-keep", "best-fit", "window", "preemptive"),
    *("sjf+easy", "wfp+easy", "multifactor+easy", "sjf+conservative", "wfp+conservative", "largest+conservative-keep"),
    *("wfp+conservative-keep", "sjf+window", "multifactor+window", "portfolio(conservative-keep, wfp+easy)"),
]


class Restart(Restless):
    """The restless policy, with a state that snapshots keep."""

    def state(self) -> Any:
        return {"left": self.left, "next": self.next}

    def restore(self, values: Any) -> None:
        self.left, self.next = values["left"], values["next"]


def without_body(job: Job) -> Job:
    """Return the job without its body, which cannot be copied."""
    return attrs.evolve(job, body=None, run=4.0 if job.run is None else job.run)


def _workload(case: Case) -> Workload:
    if case.way == "log":
        return plain_workload([without_body(job) for job in case.jobs])
    return Workload.from_jobs(case.jobs)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Case, list[float]]:
    case = draw(cases())
    if case.way == "script":
        case = case._replace(way="jobs")
    case = case._replace(jobs=list(map(without_body, case.jobs)))
    at = st.one_of(st.sampled_from([1, 2, 3, 5, 8, 10, 13, 15, 20, 30, 33]), st.floats(0.5, 60))
    return case, sorted(set(map(float, draw(st.lists(at, min_size=1, max_size=3)))))


@pytest.mark.few(6)
@pytest.mark.parametrize("policy", [*POLICIES, Restart], ids=lambda policy: getattr(policy, "__name__", policy))
@settings(max_examples=up_to(15, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=cuts())
def test_a_run_that_is_cut_goes_on_as_if_it_had_not_been(policy, drawn):
    case, at = drawn

    def make(policy: Any) -> tuple[Environment, Cluster]:
        env = Environment(seed=case.seed)
        cluster = Cluster(env, case.spec, policy, **case.options)
        cluster.replay(_workload(case))
        return env, cluster

    until = UNTIL if case.spec.failures else None
    check_cut(make, policy, at, until=until, given=not isinstance(policy, str))


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", ["easy", "conservative", "conservative-keep", "preemptive", "multifactor+easy"])
@settings(max_examples=up_to(15, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=cuts(), steps=st.integers(1, 60))
def test_a_run_can_be_cut_between_any_two_events(policy, drawn, steps):
    case, _ = drawn
    env = Environment(seed=case.seed)
    cluster = Cluster(env, case.spec, policy, **case.options)
    cluster.replay(_workload(case))
    log = log_of(env)
    while steps and env.peek() < UNTIL:
        env.step()
        steps -= 1
    snapshot, seen = cluster.snapshot(), len(log.rows)
    later = Environment(snapshot.now, snapshot.seed)
    resumed = Cluster.from_snapshot(later, ClusterSnapshot.from_json(snapshot.to_json()))
    check_snapshot(resumed.snapshot(), snapshot)
    more = log_of(later)
    until = UNTIL if case.spec.failures else None
    assert outcome(later, until) == outcome(env, until)
    check_same(more.rows, log.rows[seen:])


AHEAD = ("easy", "conservative-keep", "multifactor+easy", "preemptive")


@settings(max_examples=up_to(40, 6), deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases(), at=st.lists(st.sampled_from([1.0, 2.0, 5.0, 8.0, 13.0, 20.5]), min_size=1, max_size=3))
def test_looking_ahead_changes_nothing(case, at):
    logs = []
    for look in (False, True):
        env = Environment(seed=case.seed)
        cluster = Cluster(env, case.spec, "sjf+easy", **case.options)
        log = log_of(env)
        cluster.replay(_workload(case))
        for instant in sorted(set(at)):
            env.run(until=instant)
            for policy in AHEAD if look else ():
                found = cluster.view.simulate(policy)
                assert found.starts == sorted(found.starts, key=lambda start: start[2])
                started = found.jobs["start"][found.jobs["waiting"]]
                assert not (started < instant).any()
        outcome(env, UNTIL if case.spec.failures else None)
        logs.append(log.rows)
    assert logs[0] == logs[1]
