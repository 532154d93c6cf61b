"""Advance reservations and maintenance as both loops see them, worked by hand.

Turns at 1, 2, 3, ... s, cycles of the backfill loop at 30, 60, 90, ... s, if something has changed.
"""

from __future__ import annotations

from typing import Any

import pytest

from simmodel import Job, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.cluster import ReservationSpec
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.settings import SlurmConf

TIMING = SlurmTiming(main_first=1.0, turn=1.0, backfill_first=30.0)


def platform(*reservations: ReservationSpec, nodes: int = 2) -> ClusterSpec:
    part = PartitionSpec(name="batch", nodes=[NodeSpec(names=f"n[1-{nodes}]")])
    return ClusterSpec(partitions=[part], reservations=reservations)


def reserved(nodes: list[str], begin: float, end: float, **more: Any) -> ReservationSpec:
    return ReservationSpec(name="maint", partition="batch", nodes=nodes, start=begin, end=end, **more)


def job(id: int, submit: float, nodes: int, minutes: float, run: float, **more: Any) -> Job:
    return Job(id=id, submit=submit, nodes=nodes, requested=60 * minutes, run=run, **more)


def placed(spec: ClusterSpec, jobs: list[Job], **settings: Any) -> dict[int, tuple[float, tuple[str, ...]]]:
    runs = simulate(spec, jobs, Slurm(SlurmConf(**settings), timing=TIMING)).runs
    return {row["job"]: (row["start"], tuple(row["nodes"])) for row in runs.rows()}


def test_a_job_that_would_run_into_a_reservation_gets_other_nodes() -> None:
    """n1 is reserved from 100 s. At 4 s job 1 of two minutes gets n2, and job 2 of a minute n1."""
    jobs = [job(1, 0, 1, 2, 110), job(2, 0, 1, 1, 50)]
    assert placed(platform(reserved(["n1"], 100, 200)), jobs) == {1: (4, (1,)), 2: (4, (0,))}
    assert placed(platform(), jobs) == {1: (4, (0,)), 2: (4, (1,))}


def test_a_job_may_end_when_a_reservation_begins() -> None:
    """At 40 s a minute ends at 100 s. The backfill loop alone; after 71 s it looks every second for a change."""
    spec = platform(reserved(["n1", "n2"], 100, 200))
    jobs = [job(1, 10, 2, 1, 60)]
    for first, start_at in ((40.0, 40.0), (41.0, 200.0)):
        timing = SlurmTiming(main_first=1.0, turn=1.0, backfill_first=first)
        policy = Slurm(SlurmConf(batch_sched_delay=1000, sched_interval=1000), timing=timing)
        assert simulate(spec, jobs, policy).jobs["start"].tolist() == [start_at]


def test_the_backfill_loop_plans_behind_a_reservation() -> None:
    """n2 is reserved from 100 to 200 s. Job 1, of both nodes for two minutes, comes at 50 s and is planned at 240 s,
    as plans begin with whole minutes.

    So at 60 s job 2 of three minutes has no room on n1, and job 3 of two minutes has. At 200 s the reservation ends,
    which is a change: job 1 starts in the cycle of 210 s.
    """
    jobs = [job(1, 50, 2, 2, 100), job(2, 51, 1, 3, 30), job(3, 52, 1, 2, 30)]
    found = placed(platform(reserved(["n2"], 100, 200)), jobs, sched_interval=1000)
    assert found == {3: (60, (0,)), 1: (210, (0, 1)), 2: (310, (0,))}


def test_during_a_reservation_jobs_are_planned_at_its_end() -> None:
    """Job 1 comes at 150 s, when n2 is reserved until 300 s: job 3 of a minute starts before it, job 2 does not."""
    jobs = [job(1, 150, 2, 2, 100), job(2, 151, 1, 10, 30), job(3, 152, 1, 1, 30)]
    found = placed(platform(reserved(["n2"], 100, 300)), jobs, sched_interval=1000)
    assert found[3] == (180, (0,))
    assert 300 <= found[1][0] <= 330
    assert found[2][0] > found[1][0]


def test_jobs_of_a_reservation_start_in_it_and_do_not_block_others() -> None:
    """Job 1 has the reservation of n2, which begins at 100 s; job 2 of the partition starts on n1 meanwhile."""
    jobs = [job(1, 0, 1, 1, 50, partition="maint"), job(2, 1, 1, 10, 500)]
    found = placed(platform(reserved(["n2"], 100, 200)), jobs)
    assert found[2] == (4, (0,))
    assert 100 <= found[1][0] <= 130


@pytest.mark.parametrize("until", [90.0, 150.0])
def test_a_simulation_continues_from_a_snapshot(until: float) -> None:
    jobs = [job(1, 50, 2, 2, 100), job(2, 51, 1, 3, 30), job(3, 52, 1, 2, 30)]
    policy = Slurm(SlurmConf(sched_interval=1000), timing=TIMING)
    simulation = start(platform(reserved(["n2"], 100, 200)), jobs, policy)
    simulation.run(until=until)
    again = simulate(simulation.snapshot(), policy=policy).jobs
    assert dict(zip(again["job"].tolist(), again["start"].tolist(), strict=True)).items() >= {1: 210, 2: 310}.items()
