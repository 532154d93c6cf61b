"""State that policies keep between decisions must not outlive its validity."""

from __future__ import annotations

import pytest

from simmodel.environment import Environment
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job as Asked
from tests.helpers.batch_cases import to_workload
from tests.oracles.batch import Job, simulate


class Starts:
    """Record the start of each job."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}

    def job_started(self, run: object) -> None:
        self.at[run.job.index] = run.started  # type: ignore[attr-defined]


def starts(jobs: list[Job], processors: int, policy: str, **options: str) -> list[float]:
    env = Environment()
    cluster = Cluster(env, processors, policy, **options)  # type: ignore[arg-type]
    noted = Starts()
    env.observe(noted)
    cluster.replay(to_workload(jobs, processors))
    env.run()
    return [noted.at[row] for row in range(len(jobs))]


def case(*rows: tuple[float, float, float, int]) -> list[Job]:
    return [Job(*row) for row in rows]


# By case: the policy, its options, the processors, and the jobs as (submit, run, requested, processors).
REMEMBERED = {
    # The job with 4 processors arrived at 2, when none could start; the one with 1 at 3 must not delay its plan.
    "arrivals at decisions without a start are planned": (
        "conservative",
        {},
        8,
        case((0, 10, 10, 4), (0, 3, 3, 8), (1, 5, 5, 3), (2, 4, 4, 4), (3, 9, 10, 1), (4, 2, 2, 1)),
    ),
    "so are those of zero length": (
        "conservative",
        {},
        8,
        case((0, 10, 10, 4), (0, 0, 0, 5), (0, 0, 0, 1), (1, 5, 5, 1), (1, 0, 0, 5), (2, 0, 0, 4), (3, 0, 10, 1)),
    ),
    "a started job may be expected to stay longer than it was planned, conservative": (
        "conservative",
        {"decide_on": "event", "estimates": "cqsim"},
        4,
        case((0, 1, 1, 1), (0, 0, 0, 4), (0, 0, 5, 1), (0, 5, 5, 1), (0, 0, 0, 1)),
    ),
    "a started job may be expected to stay longer than it was planned, easy": (
        "wfp+easy",
        {"decide_on": "event", "estimates": "cqsim"},
        3,
        case((0, 5, 5, 1), (0, 0, 0, 3), (1, 0, 0, 1), (1, 5, 5, 1), (1, 0, 10, 1)),
    ),
    "a promised job that starts early opens holes": (
        "largest+conservative-keep",
        {"decide_on": "event"},
        16,
        case(
            *((0, 21, 21, 1), (0, 21, 21, 13), (0, 20, 20, 8), (0, 10, 11, 3), (0, 1, 1, 1), (2, 1, 1, 1)),
            *((10, 1, 1, 1), (30, 12, 12, 4), (30, 10, 10, 4), (30, 1, 1, 9), (30, 1, 1, 1), (30, 5, 5, 1)),
            *((30, 1, 1, 2), (32, 1, 1, 1)),
        ),
    ),
    "a promise that has moved wakes nobody": (
        "largest+conservative-keep",
        {"decide_on": "event"},
        4,
        case(
            *((0, 10, 5, 1), (0, 1, 1, 1), (0, 10, 10, 1), (0, 10, 11, 3), (0, 10, 20, 3), (0, 31, 40, 1)),
            *((0, 1, 1, 1), (0, 15, 15, 1), (0, 14, 7, 3), (0, 5, 10, 1), (0, 1, 1, 1), (0, 5, 5, 2)),
            *((0, 1, 1, 1), (0, 1, 1, 4), (0, 9, 9, 2)),
        ),
    ),
}


@pytest.mark.parametrize("name", REMEMBERED)
def test_memory_changes_nothing(name: str) -> None:
    policy, options, processors, jobs = REMEMBERED[name]
    expected = simulate(jobs, processors, policy, **options)  # type: ignore[arg-type]
    assert starts(jobs, processors, policy, **options) == expected


@pytest.mark.parametrize("policy", ["easy", "conservative", "conservative-keep"])
def test_who_is_withdrawn_gives_up_the_plan(policy: str) -> None:
    env = Environment()
    cluster = Cluster(env, 4, policy)
    cluster.submit(Asked(processors=2, run=10))
    wide = cluster.submit(Asked(processors=4, run=10, cancel=3))
    behind = cluster.submit(Asked(processors=1, run=20))
    env.run(until=4)
    late = cluster.submit(Asked(processors=1, run=20))
    env.run()
    assert (wide.state, behind.started, late.started) == ("cancelled", 3, 4)
