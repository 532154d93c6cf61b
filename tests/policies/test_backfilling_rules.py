"""Promises of backfilling: which are recorded, which stand, and the future that follows from them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.policies import Easy
from simmodel.resources.pools.counts import CountPool
from simmodel.runs.scenario import simulate
from simmodel.systems.cluster.future.guest import Forecast
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.workload import Workload
from tests.helpers.batch_cases import Case, cases
from tests.helpers.broker_cases import MODES
from tests.helpers.examples import up_to


@pytest.mark.parametrize(("policy", "promised"), [(Easy(), []), (Easy(promises=True), [(2, 10)])])
def test_promises_are_recorded_only_if_asked_for(policy: Easy, promised: list[Any]) -> None:
    """The second job of 2 processors waits for the first, until 10."""
    env = Environment()
    cluster = Cluster(env, 2, policy)
    heard: list[Any] = []
    env.observe(SimpleNamespace(job_promised=lambda job, place, at: heard.append((job.id, at))))
    for _ in range(2):
        cluster.submit(Job(processors=2, run=10))
    env.run()
    assert heard == promised


@settings(max_examples=up_to(100))
@given(
    cases(max_jobs=12, zero_runs=False, overruns=False, missing=False),
    st.sampled_from(["easy", "conservative"]),
    st.sampled_from(["requested", "actual"]),
    st.sampled_from(MODES[:2]),
)
def test_the_future_that_is_kept_is_the_rule(case: Case, policy: str, by: Any, mode: dict[str, Any]) -> None:
    """The forecast for each arriving job equals that of a simulation that decides by the reference rule."""
    env = Environment()
    cluster = Cluster(env, case.processors, policy, **mode)
    kept, anew = Forecast(cluster, by), Forecast(cluster, by, kept=False)
    for job in case.jobs:
        if job.submit > env.now:
            env.run(until=job.submit)
        assert job.run is not None
        work = Job(processors=job.processors, run=job.run, requested=job.requested)
        found = kept.of(work)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CountPool, "simple", False)
            assert found == anew.of(work)
        cluster.submit(work)
    assert kept._future is not None


class Forgetful(Easy):
    """EASY that plans anew at each decision, whatever has changed since the last."""

    def decide(self, view: Any) -> Any:
        self.forget()
        return super().decide(view)


@pytest.mark.few(12)
@pytest.mark.parametrize("estimates", ["requested", "cqsim"])
@pytest.mark.parametrize(("order", "candidates"), [("fcfs", None), ("fcfs", "sjf"), ("sjf", None), ("wfp", None)])
@pytest.mark.parametrize("seed", range(4))
def test_new_jobs_start_beside_a_promise_as_if_it_were_made_anew(
    seed: int, order: str, candidates: str | None, estimates: str
) -> None:
    """Times are multiples of 0.1 s, so that some jobs would end at a promised instant but for rounding."""
    rng = np.random.default_rng(seed)
    count = 400
    run = rng.integers(1, 60, count) * 0.1
    jobs = Workload(
        {
            "submit": np.cumsum(rng.choice([0.0, 0.1, 0.3, 1.1], count)),
            "run": run,
            "requested": run + rng.integers(0, 30, count) * 0.1,
            "processors": rng.choice([1, 1, 2, 3, 8], count),
        }
    )
    starts = [
        simulate(10, jobs, kind(order, candidates=candidates), estimates=estimates).jobs["start"].tolist()
        for kind in (Easy, Forgetful)
    ]
    assert starts[0] == starts[1]


def test_a_promise_whose_instant_has_passed_is_made_anew() -> None:
    """Two jobs of 4 processors should end at 100 and 100.25 s: at 100.5 s, a long job may take what both leave."""
    jobs = [
        Job(run=200, requested=100, processors=4),
        Job(run=200, requested=100.25, processors=4),
        Job(run=10, processors=6),
        Job(run=500, processors=2),
        Job(submit=100.5, run=50, processors=2),
    ]
    starts = simulate(10, jobs, "easy", overrun="continue").jobs["start"].tolist()
    assert starts == [0, 0, 200, 100.5, 200]
