"""Futures of endless work: jobs behind it never start, and no policy is asked at infinity."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, Start, WakeAt, simulate, start, what_if
from simmodel.foundation.errors import Stalled
from simmodel.scheduling import scheduler
from simmodel.scheduling.objectives import measure


def endless(env: Environment, job: Any, grant: Any) -> Any:
    yield env.event()


@pytest.mark.parametrize("policy", ["wfp+easy", "fcfs", "sjf+easy"])
def test_what_waits_for_endless_work_never_starts(policy: str) -> None:
    env = Environment()
    cluster = Cluster(env, 4, "portfolio")
    cluster.submit(Job(processors=3, body=endless))
    cluster.submit(Job(processors=2, run=10))
    cluster.submit(Job(processors=1, run=5))
    env.run(until=1)
    future = cluster.view.simulate(policy)
    assert future.ended < inf
    assert all(start < inf for _, _, start in future.starts)


def test_beside_a_run_without_an_end_no_wait_counts() -> None:
    found = measure(
        np.array([0.0, 0.0]), np.array([10.0, 30.0]), np.array([inf, 10.0]), names=("slowdown_max", "slowdown_mean")
    )
    assert found == {"slowdown_max": 4.0, "slowdown_mean": 2.5}


def restless(view: Any) -> Any:
    """Start all that fits, and wake again in 600 s, for ever."""
    for job in view.waiting:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])
    yield WakeAt(view.now + 600)


BODY = Job(id=1, processors=3, body=endless)


def test_a_policy_that_always_wakes_does_not_prolong_endless_work() -> None:
    assert simulate(4, [BODY, Job(id=2, run=10)], restless).jobs["status"].tolist() == ["running", "completed"]
    snapshot = start(4, [BODY, Job(id=2, run=10)], restless).run(until=5).system.snapshot(actual=False)
    found = what_if(snapshot, {"restless": restless, "fcfs": "fcfs"})
    assert [outcome.status for outcome in found.outcomes] == ["finished", "finished"]
    env = Environment()
    cluster = Cluster(env, 4, "portfolio")
    cluster.submit(BODY)
    env.run(until=1)
    assert cluster.view.simulate(restless).ended < inf


def test_work_behind_endless_work_stalls_a_policy_that_only_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "IDLE_ALARMS", 100)
    jobs = [BODY, Job(id=2, processors=2, run=10)]
    with pytest.raises(
        Stalled, match=r"policy restless planned 100 wake-ups until 1.* s and decided nothing"
    ) as caught:
        simulate(4, jobs, restless)
    assert "job 2" in str(caught.value)
    snapshot = start(4, jobs, restless).run(until=5).system.snapshot(actual=False)
    found = what_if(snapshot, {"restless": restless})
    assert found["restless"].starts == ()


def test_a_policy_that_waits_for_its_hour_starts_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "IDLE_ALARMS", 50)

    def by_night(view: Any) -> Any:
        for job in view.waiting if view.now % 86_400 >= 72_000 else ():
            if view.places[0].fits(job):
                yield Start(job, view.places[0])
        yield WakeAt(view.now + 3600)

    found = simulate(4, [Job(processors=4, run=40_000)] * 5, by_night).jobs["start"]
    assert (found % 86_400).tolist() == [72_000] * 5
