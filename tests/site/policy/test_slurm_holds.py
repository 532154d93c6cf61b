"""Holds: the order of records as slurmctld 22.05.8 numbers them, and simulations that continue from a snapshot."""

from __future__ import annotations

import json
from math import inf

import pytest

from simmodel import Job, Result, simulate, start
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.policy.holds import Records
from simmodel_site.policy.policy import Slurm, SlurmTiming
from simmodel_site.policy.running import Completing
from simmodel_site.policy.settings import SlurmConf


def test_the_order_of_records_is_that_of_a_real_slurmctld() -> None:
    """Ten jobs, the second held as it came and released after the seventh, the third held later and released last.

    The priorities were 4294901759 less 0, -, 1, 2, 3, 4, 5; of the second 6, of the eighth 7, of the third 8, and of
    the ninth 9.
    """
    records = Records()
    for number in range(7):
        records.submitted(number, hold={1: (-inf, 12.3), 2: (5.3, 13.4)}.get(number))
    assert [records.order(number) for number in (0, 2, 3, 4, 5, 6)] == [0, 1, 2, 3, 4, 5]
    records.turns_by(12.3)
    records.submitted(7)
    records.turns_by(13.4)
    records.submitted(8)
    assert [records.order(number) for number in (1, 7, 2, 8)] == [6, 7, 8, 9]


def test_tasks_of_an_array_are_one_record_and_are_released_together() -> None:
    records = Records()
    found = [records.submitted(number, "17", (-inf, 5.0)) for number in range(3)]
    records.submitted(3)
    assert (found, records.order(3), [records.holds(number) for number in found]) == ([0, 0, 0], 0, [True] * 3)
    records.turns_by(5.0)
    assert (records.order(0), records.holds(0)) == (1, False)


@pytest.mark.parametrize("until", [10.0, 30.0, 55.0])
def test_a_simulation_continues_from_a_snapshot(until: float) -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(names="n1")])])
    jobs = [
        Job(id=1, submit=0, nodes=1, requested=300, run=100),
        Job(id=2, submit=1, nodes=1, requested=60, run=10, options="--hold=now+49"),
        Job(id=3, submit=5, nodes=1, requested=60, run=10, options="--hold=now+25,now+60"),
        Job(id=4, submit=20, nodes=1, requested=60, run=10),
        Job(id=5, submit=60, nodes=1, requested=60, run=10),
    ]
    policy = Slurm(timing=SlurmTiming(turn=1.0))
    whole = simulate(spec, jobs, policy).jobs
    simulation = start(spec, jobs, policy)
    simulation.run(until=until)
    again = simulate(simulation.snapshot(), policy=policy).jobs
    starts = dict(zip(whole["job"].tolist(), whole["start"].tolist(), strict=True))
    assert sorted(starts, key=starts.__getitem__) == [1, 4, 2, 5, 3]
    assert dict(zip(again["job"].tolist(), again["start"].tolist(), strict=True)).items() <= starts.items()


def test_a_job_that_is_released_while_it_waits_for_another_goes_before_those_submitted_later() -> None:
    """The second job is released at 31 s; two more are submitted at 40 s, and the first one runs for 100 s."""
    jobs = [
        Job(id=1, submit=0, requested=300, run=100),
        Job(id=2, submit=1, requested=60, run=10, options="--hold=now+30", dependencies=[1]),
        *[Job(id=i, submit=40, requested=60, run=10) for i in (3, 4)],
    ]
    starts = starts_of(simulate(1, jobs, "slurm"))
    assert sorted(starts, key=starts.__getitem__) == [1, 2, 3, 4]


def unsorted_jobs() -> list[Job]:
    """Return jobs for one processor, whose submissions are not in the order of the list."""
    submits = {1: 0, 2: 60, 3: 1, 4: 61, 5: 2, 6: 59}
    return [Job(id=i, submit=at, run=100 if i == 1 else 10, requested=120) for i, at in submits.items()]


def starts_of(result: Result) -> dict[int, float]:
    return dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))


def test_priorities_follow_submissions_also_in_a_list_that_is_not_sorted() -> None:
    jobs = unsorted_jobs()
    starts = starts_of(simulate(1, jobs, "slurm"))
    assert sorted(starts, key=starts.__getitem__) == [1, 3, 5, 6, 2, 4]
    assert starts == starts_of(simulate(1, sorted(jobs, key=lambda job: job.submit), "slurm"))


@pytest.mark.parametrize("until", [30.0, 100.5, 105.0])
def test_the_main_loop_runs_at_turns_after_a_snapshot_too(until: float) -> None:
    jobs = sorted(unsorted_jobs(), key=lambda job: job.submit)
    simulation = start(1, jobs, "slurm")
    simulation.run(until=until)
    again = starts_of(simulate(simulation.snapshot(), policy="slurm"))
    assert again.items() <= starts_of(simulate(1, jobs, "slurm")).items()


@pytest.mark.parametrize("until", [0.5, 1.5, 30.0, 59.5, 60.5, 105.0, 115.0])
def test_priorities_of_a_list_that_is_not_sorted_are_kept_through_a_snapshot(until: float) -> None:
    simulation = start(1, unsorted_jobs(), "slurm")
    simulation.run(until=until)
    again = starts_of(simulate(simulation.snapshot(), policy="slurm"))
    assert again.items() <= starts_of(simulate(1, unsorted_jobs(), "slurm")).items()
    assert {2, 4} <= again.keys()


def test_jobs_of_lower_numbers_that_were_submitted_later_get_the_next_numbers() -> None:
    records = Records()
    for given, at in ((0, 0.0), (2, 5.0), (0, 0.0), (1, 6.0), (3, 6.0)):  # the second time that of a mirrored job
        records.arrived(given, at)
    again = Records()
    again.restore(records.state())
    for each in (records, again):
        each.left(2)
        each.left(1)
        each.arrived(4, 7.0)
        assert [each.number(given) for given in (0, 2, 3, 4)] == [0, 2, 4, 5]


def test_the_order_of_records_in_a_snapshot_of_an_earlier_version_is_read() -> None:
    holds = {"last": 6, "coming": [], "until": [[1, None]], "unnumbered": [1], "releases": [], "released": []}
    records = Records()
    records.restore({"arrays": {}, "others": [], "holds": holds})
    records.arrived(7, 20.0)
    assert (records.last, records.order(7), records.holds(1)) == (7, 6, True)


@pytest.mark.parametrize("until", [3.0, 30.5, 52.0, 54.5])
def test_the_end_of_an_epilog_starts_a_job_at_once_after_a_snapshot_too(until: float) -> None:
    """Job 1 began before the snapshot, and ends at 54.5 s, before a loop has looked at it again."""
    policy = Slurm(SlurmConf(epilog=True), timing=SlurmTiming(turn=1.0))
    jobs = [Job(id=1, submit=0, requested=300, run=50.5), Job(id=2, submit=10, requested=300, run=10)]
    simulation = start(1, jobs, policy)
    simulation.run(until=until)
    again = starts_of(simulate(simulation.snapshot(), policy=policy))
    assert again[2] == starts_of(simulate(1, jobs, policy))[2] == 54.5


def test_nodes_of_ended_jobs_stay_taken_after_a_snapshot_too() -> None:
    before, after = (Completing(SlurmConf(epilog=True, complete_wait=5), 1.5, 0.5, asks=True) for _ in range(2))
    before.ended(10.0, "1", 0b011, stopped=False)
    before.ended(10.2, "1", 0b100, stopped=True)
    after.restore(json.loads(json.dumps(before.state())))
    (pool,) = start(1, [Job(run=1)], "fcfs").system.places
    pool.name = "1"
    for each in (before, after):
        assert (each.next_run, each.nodes(pool), each.wait(11.0), each.nodes(pool)) == (10.7, 0b111, True, 0b011)
