"""Schedules are told to be a policy's, or where they depart from it."""

import io
from typing import Any

import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.formats.schedules import read_schedule
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, PartitionSpec
from simmodel.referee import verify
from simmodel.referee.mistakes import MistakenEasy
from simmodel.work.job import Dependency
from simmodel.work.workload import Workload
from tests.helpers.drawn_schedules import EVERY_MODE, MODES, POLICIES, SLOW, drawn_log, schedule_by, starts_of

MANY = range(2, 25)  # times 9 modes: about 200 schedules of each policy


def own(policy: str, mode: dict[str, Any], seed: int) -> None:
    """Check that a policy's own schedules are told to be its own: jobs stopped at their limits, and jobs that go on."""
    log = drawn_log(seed, 24 if policy in SLOW else 80)
    for overrun in ("stop", "continue"):
        verdict = verify(log, schedule_by(log, policy, overrun=overrun, **mode), 8, policy, **mode)
        assert verdict.right, verdict.report()
        assert verdict.judgement is not None
        assert verdict.judgement.explained() == 1.0


@pytest.mark.few(5)
@pytest.mark.parametrize("policy", [*POLICIES, *SLOW])
def test_own_schedules_are_told_to_be_so(policy: str) -> None:
    for seed, mode in enumerate(MODES):
        own(policy, mode, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", [*POLICIES, *SLOW])
def test_own_schedules_are_told_to_be_so_many_times(policy: str) -> None:
    for mode in EVERY_MODE:
        for seed in MANY:
            own(policy, mode, seed)
    print(f"{policy}: no departure in {2 * len(EVERY_MODE) * len(MANY)} schedules")


def test_planning_with_run_times_is_told_by_name() -> None:
    log = drawn_log(3, 200)
    verdict = verify(log, schedule_by(log, "easy", estimates="exact"), 8, "easy")
    assert verdict.mistake == "planning with actual run times"
    assert "most likely: planning with actual run times" in verdict.report()
    assert verdict.different >= len({each.job for each in verdict.departures if each.kind == "late"}) > 0


def test_easy_without_mistakes_is_easy() -> None:
    for seed in range(10):
        log = drawn_log(seed)
        assert starts_of(simulate(8, log, MistakenEasy("fcfs"))) == starts_of(simulate(8, log, "easy"))


def test_a_departure_says_what_should_have_been() -> None:
    log = Workload({"submit": [0, 1, 2], "run": [10, 5, 20], "processors": [4, 4, 1]}, processors=5)
    verdict = verify(log, {1: 0, 2: 10, 3: 2}, policy="fcfs", mistakes=False)
    (departure,) = verdict.departures
    assert departure == (2.0, "early", 3, 2, 1, ())
    assert verdict.table["text"].tolist() == [
        "at 2 s the schedule starts job 3, the policy does not: it starts no job; "
        "job 2 is at the head, 1 processor is free"
    ]
    assert verdict.plot(title="") is not None


def test_a_departure_on_several_partitions_is_told() -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(name="a", processors=2), PartitionSpec(name="b", processors=2)])
    jobs = [Job(id=name, processors=2, run=9, partition=part) for name, part in ((1, "a"), (2, "b"))]
    verdict = verify(Workload.from_jobs(jobs), {1: 0.0, 2: 5.0}, spec, "fcfs", mistakes=False)
    assert [each[:4] for each in verdict.departures] == [(0.0, "late", 2, 2)]


# ---------------------------------------------------------------------- what cannot be


LOG = Workload(
    {"submit": [0, 5, 6], "run": [10, 10, 10], "processors": [4, 4, 2], "requested": [20, 20, 20]}, processors=4
)


@pytest.mark.parametrize(
    ("schedule", "kinds"),
    [
        ({1: 0, 2: 10, 3: 20}, []),
        ({1: 0, 2: 10, 3: 5}, ["start before submission", "too many processors", "too many processors"]),
        ({1: 0, 2: 9.5, 3: 19.5}, ["too many processors"]),
        ({1: 0, 2: 10}, ["missing job"]),
        ({1: 0, 2: 10, 3: 20, 4: 30}, ["unknown job"]),
        ({"job": [1, 2, 3, 3], "start": [0, 10, 20, 40]}, ["doubled job"]),
        ({"job": ["1", "2", "3"], "start": [0, 10, 20]}, []),
        ({"job": [1, 2, 3], "start": [0, 10, 20], "end": [10, 15, 30]}, []),
    ],
)
def test_impossible_schedules_have_their_kinds_of_faults(schedule: Any, kinds: list[str]) -> None:
    assert sorted(fault.kind for fault in verify(LOG, schedule).faults) == sorted(kinds)


def test_starts_before_dependencies_are_found() -> None:
    jobs = [Job(id=1, run=10), Job(id=2, run=5, dependencies=(Dependency(1, think_time=2),))]
    log = Workload.from_jobs(jobs, processors=4)
    assert verify(log, {1: 0, 2: 12}).right
    (fault,) = verify(log, {1: 0, 2: 11}).faults
    assert fault.text == "job 2 starts at 11 s, before it may: job 1, for whose end it waits, allows it from 12 s on"
    preceding = Workload({"submit": [0, 0], "run": [10, 5], "processors": [1, 1], "preceding": [-1, 1]}, processors=4)
    assert [fault.kind for fault in verify(preceding, {1: 0, 2: 9}).faults] == ["start before a dependency"]


def test_jobs_of_no_seconds_may_follow_each_other_at_an_instant() -> None:
    log = Workload({"submit": [0, 0, 0], "run": [0, 0, 5], "processors": [4, 4, 4]}, processors=4)
    assert verify(log, {1: 0, 2: 0, 3: 0}, policy="fcfs").right


def test_waits_of_a_log_are_its_schedule() -> None:
    log = Workload(
        {"submit": [0, 5], "run": [10, 10], "processors": [4, 4], "wait": [0, 5], "requested": [20, 20]}, processors=4
    )
    assert verify(log, policy="fcfs").right
    assert not verify(log.replace(wait=[0, 6]), policy="fcfs").right
    assert verify(log.replace(wait=[0, 6]), policy="fcfs", tolerance=1.0).right


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"job": [1]}, "none of which is in it"),
        ({1: "soon"}, "schedule: must be starts (s) by job"),
        ({"start": [1]}, "schedule: must have a column 'job', got start"),
        ({7: 0.0}, "none of which is in it"),
        ({}, "schedule: must have jobs, got none"),
        (None, "the workload has no recorded waits"),
        ("absent.csv", "absent.csv"),
    ],
)
def test_what_is_no_schedule_is_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        verify(LOG, given)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_that_preempts_is_refused() -> None:
    with pytest.raises(InputError, match="policy: must not preempt"):
        verify(LOG, {1: 0, 2: 10, 3: 20}, policy="preemptive")


def test_clocks_that_differ_are_laid_beside_each_other() -> None:
    later = {"job": [1, 2, 3], "submit": [100, 105, 106], "start": [100, 110, 120]}
    verdict = verify(LOG, later, policy="fcfs")
    assert verdict.right
    assert verdict.schedule.notes == ("the times of the schedule are shifted by -100 s, as its submissions are",)


# ---------------------------------------------------------------------- files


def test_files_of_other_simulators_are_read() -> None:
    batsim = (
        "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,"
        "execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources\n"
        "1,w,0,4,20,1,0,10,10,0,10,1,0-3\n2,w,5,4,20,1,10,10,20,5,15,1.5,0-3\n"
    )
    table = read_schedule(io.StringIO(batsim))
    assert (table["job"].tolist(), table["start"].tolist(), table["end"].tolist()) == ([1, 2], [0, 10], [10, 20])
    swf = "; UnixStartTime: 0\n1 0 0 10 4 -1 -1 4 20 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    swf += "2 5 -1 10 4 -1 -1 4 20 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    assert read_schedule(io.StringIO(swf))["job"].tolist() == [1]
    own = read_schedule(io.StringIO("Name;Begin\nx;3\n"), {"job": "Name", "start": "Begin"})
    assert own["start"].tolist() == [3.0]
    assert np.isnan(own["end"]).all()


def test_job_statistics_of_elastisim_are_read() -> None:
    text = "ID,Type,Submit Time,Start Time,End Time,Wait Time,Makespan,Turnaround Time,Status\n"
    text += "1,rigid,0,0,10,0,10,10,completed\n2,moldable,5,10,20,5,10,15,killed\n3,rigid,6,-1,-1,-1,-1,-1,killed\n"
    table = read_schedule(io.StringIO(text))
    assert table["submit"].tolist() == [0, 5, 6]
    assert table["start"].tolist()[:2] == [0, 10]
    assert table["end"].tolist()[:2] == [10, 20]
    assert np.isnan([table["start"][2], table["end"][2]]).all()


def test_schedules_of_accasim_are_read_and_laid_beside_the_clock_of_the_log() -> None:
    text = "1;7;2001-09-09 01:46:40__0;4;1024#__2001-09-09 01:46:40;2001-09-09 01:46:50;1;4;1024;20;\n"
    text += "2;7;2001-09-09 01:46:45__0;4;1024#__2001-09-09 01:46:50;2001-09-09 01:47:00;1;4;1024;20;\n"
    table = read_schedule(io.StringIO(text))
    assert table["start"].tolist() == [1e9, 1e9 + 10]
    assert table["end"].tolist() == [1e9 + 10, 1e9 + 20]
    verdict = verify(LOG.where([0, 1]), table, policy="fcfs")
    assert verdict.right
    assert verdict.schedule.start.tolist() == [0, 10]
    with_a_name = text.replace(";7;", ";job name;7;batch;")
    assert read_schedule(io.StringIO(with_a_name))["start"].tolist() == [1e9, 1e9 + 10]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have jobs, got an empty file"),
        ("1;7;2001-13-09 01:46:40__0;4#__2001-09-09 01:46:40;2001-09-09 01:46:50;1;\n", "line 1: invalid date: "),
        ("1;7;2001-09-09 01:46:40__0;4#__2001-09-09 01:46:40;2001-09-09 01:46:50;1;\n2;7\n", "line 2: must be job;"),
        ("job,begin\n1,2\n", "missing column start (or submit and wait)"),
        ("start\n2\n", "missing column job"),
        ("job,start\n1,x\n", "line 2: start: must be seconds, got 'x'"),
        ("job,start\n1\n", "line 2: must have 2 cells, got 1"),
        ("job,start\n", "must have jobs, got none"),
        ("job,start\n1,inf\n", "line 2: start: must be seconds"),
    ],
)
def test_files_that_are_no_schedules_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_schedule(io.StringIO(text))
    assert sentence in str(caught.value)
