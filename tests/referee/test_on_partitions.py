"""Schedules of jobs that may run in several partitions, of counted processors and of nodes."""

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.referee import verify
from tests.helpers.drawn_schedules import MODES, drawn_clusters, drawn_jobs, starts_of

POLICIES = ("fcfs", "sjf", "easy", "easy-sjbf", "conservative", "conservative-keep", "best-fit")


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", drawn_clusters())
@pytest.mark.parametrize("policy", POLICIES)
def test_own_schedules_on_partitions_are_told_to_be_so(kind: str, policy: str) -> None:
    spec = drawn_clusters()[kind]
    for seed, mode in enumerate(MODES):
        jobs = drawn_jobs(seed)
        verdict = verify(jobs, simulate(spec, jobs, policy, overrun="continue", **mode), spec, policy, **mode)
        assert verdict.right, verdict.report()


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", drawn_clusters())
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep"])
def test_a_start_that_was_moved_on_partitions_is_the_first_departure(kind: str, policy: str) -> None:
    spec = drawn_clusters()[kind]
    for seed in range(3):
        jobs = drawn_jobs(seed, 40)
        starts = starts_of(simulate(spec, jobs, policy, overrun="continue"))
        moved = int(np.random.default_rng(seed).integers(1, len(jobs) + 1))
        wanted = starts[moved]
        starts[moved] += 7
        first = verify(jobs, starts, spec, policy, mistakes=False).departures[0]
        assert (first.at, first.kind, first.job) == (wanted, "late", moved)


def test_a_start_that_is_taken_back_waits_for_all_its_partitions_again() -> None:
    spec = drawn_clusters()["counted"]
    jobs = [
        Job(id=1, processors=4, run=10, partitions=["a", "b"]),
        Job(id=2, submit=3, processors=4, run=5, partition="a"),
    ]
    verdict = verify(jobs, {1: 5.0, 2: 3.0}, spec, "fcfs", mistakes=False)
    # At 3 s fcfs still gives a to job 1, and nothing to job 2; at 5 s a is taken, and job 1 starts in b.
    assert [each[:3] for each in verdict.departures] == [(0.0, "late", 1), (3.0, "early", 2)]
