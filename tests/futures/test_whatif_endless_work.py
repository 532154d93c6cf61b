"""Futures of endless work: jobs behind it never start, and no policy is asked at infinity."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job
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
