"""Rows of schedules without a start: rejected, cancelled, withdrawn, still waiting; runs that were requeued."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from simmodel import Workload, simulate
from simmodel.cli import main
from simmodel.formats import read_pbs, read_sacct, read_swf
from simmodel.formats.schedules import read_schedule
from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import reading
from simmodel.referee import identify, verify
from simmodel.referee.schedules import schedule_of
from simmodel.work.workload import Report

BIG = {
    "nb_res": 4,
    "jobs": [
        {"id": "a", "subtime": 0, "walltime": 60, "res": 2, "profile": "p"},
        {"id": "b", "subtime": 1, "walltime": 60, "res": 8, "profile": "p"},
        {"id": "c", "subtime": 2, "walltime": 60, "res": 3, "profile": "q"},
        {"id": "d", "subtime": 3, "res": 4, "profile": "p"},
        {"id": "e", "subtime": 50, "res": 4, "profile": "p"},
    ],
    "profiles": {"p": {"type": "delay", "delay": 10}, "q": {"type": "delay", "delay": 5, "ret": 2}},
}


@pytest.mark.parametrize("option", ["--batsim", "--schedule"])
@pytest.mark.parametrize("until", [[], ["--until", "6"], ["--until", "12"], ["--until", "40"]], ids=" ".join)
def test_what_batch_writes_is_accepted(tmp_path, capsys, option, until):
    log, out = tmp_path / "big.json", tmp_path / "out.csv"
    log.write_text(json.dumps(BIG))
    assert main(["batch", str(log), "--policy", "easy", option, str(out), *until]) == 0
    assert main(["verify", str(log), str(out), "--policy", "easy"]) == 0
    text = capsys.readouterr().out
    assert "1 rejected" in text
    assert "easy: every start is the policy's" in text


BATSIM = "job_id,submission_time,final_state,starting_time,execution_time,finish_time\n"


@pytest.mark.parametrize(
    ("word", "why"),
    [
        *((word, None) for word in ("REJECTED", "COMPLETED_KILLED", "SUBMITTED", "NOT_SUBMITTED", "cancelled")),
        *((word, None) for word in ("withdrawn", "unsubmitted", "waiting", "CANCELLED by 5", "PENDING", "FAILED")),
        *((word, "nor a status that says why") for word in ("", "COMPLETED_SUCCESSFULLY", "BANANA")),
    ],
)
def test_a_status_says_why_a_job_has_no_start(tmp_path, word, why):
    path = tmp_path / "jobs.csv"
    path.write_text(f"{BATSIM}1,0,COMPLETED_SUCCESSFULLY,0,10,10\n2,5,{word},-1,-1,-1\n")
    log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [4, 4]}, processors=4)
    found = schedule_of(log, path)
    assert [fault.text for fault in found.faults] == (
        [] if why is None else [f"job 2, submitted at 5 s, has no start in the schedule, {why}"]
    )
    assert len(found.notes) == (why is None)
    assert found.starts == {1: 0.0}


def test_jobs_that_waited_are_in_the_queue_that_the_policy_sees():
    log = Workload({"submit": [0, 1, 2], "run": [50, 50, 10], "processors": [3, 4, 1]}, processors=4)
    columns = {"job": [1, 2, 3], "start": [0, np.nan, 30], "end": [50, 30, 40], "status": ["", "cancelled", ""]}
    assert verify(log, columns, policy="fcfs").right  # job 3 waited behind job 2 until it was cancelled
    assert verify(log, {**columns, "start": [0, np.nan, 2], "end": [50, 30, 12]}, policy="fcfs").departures
    assert verify(log, {**columns, "status": ["", "rejected", ""], "start": [0, np.nan, 2]}, policy="fcfs").right


def test_a_job_that_the_policy_reaches_before_its_cancellation_is_a_departure():
    log = Workload(
        {"submit": [0.0, 1], "run": [50, np.nan], "processors": [3, 1], "cancel": [np.nan, 40]}, processors=4
    )
    (departure,) = verify(log, {1: 0.0}, policy="fcfs", mistakes=False).departures
    assert (departure.job, departure.at, departure.kind) == (2, 1.0, "late")


SWF = """; MaxProcs: 4
1 0 0 50 3 -1 -1 3 60 -1 1 7 -1 -1 -1 -1 -1 -1
2 1 29 0 4 -1 -1 4 100 -1 5 7 -1 -1 -1 -1 -1 -1
3 2 28 10 1 -1 -1 1 20 -1 0 7 -1 -1 -1 -1 -1 -1
"""


def test_logs_of_swf_are_their_own_schedules(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    log = read_swf(path)
    for given in (None, path, log):
        found = verify(log, given, policy="fcfs")
        assert found.right
        assert found.schedule.notes == ("1 job without a start: 1 cancelled",)
    table = read_schedule(path)
    assert np.isnan(table["start"]).tolist() == [False, True, False]
    assert table["end"].tolist() == [50, 30, 40]
    assert identify(log, candidates=["fcfs", "sjf"]).best == "fcfs"


SACCT = """JobID|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|State|NodeList|User
7|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:10:00|00:10:00|01:00:00|4|REQUEUED|cn1|ann
7|2024-05-01T08:10:00|2024-05-01T08:10:00|2024-05-01T08:40:00|00:30:00|01:00:00|4|COMPLETED|cn1|ann
8|2024-05-01T08:12:00|2024-05-01T08:40:00|2024-05-01T08:41:00|00:01:00|00:05:00|4|FAILED|cn1|bob
9|2024-05-01T08:11:00|2024-05-01T08:30:00|2024-05-01T08:30:00|00:00:00|00:05:00|4|CANCELLED by 5|None assigned|bob
10|2024-05-01T08:13:00|None|2024-05-01T08:35:00|00:00:00|00:05:00|4|CANCELLED by 5||bob
11|2024-05-01T08:20:00|Unknown|Unknown|00:00:00|00:05:00|4|PENDING||bob
12|2024-05-01T08:41:00|2024-05-01T08:41:00|2024-05-01T08:41:00|00:00:00|00:05:00|4|CANCELLED by 5|cn1|bob
"""


def test_rows_of_sacct_without_a_start_do_not_start(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT)
    log = read_sacct(path)
    assert np.isnan(log["wait"]).tolist() == [False, False, False, True, True, True, False]
    assert np.isfinite(log.recorded_starts()).sum() == 4
    first = log["submit"][0]
    assert (log["cancel"] - first)[3:5].tolist() == [1800, 2100]
    result = simulate(4, log, "fcfs")
    status = dict(zip(result.jobs["job"].tolist(), result.jobs["status"].tolist(), strict=True))
    assert list(status.values()) == [
        *("cancelled", "completed", "failed", "cancelled", "cancelled", "rejected"),
        "cancelled",
    ]
    assert (result.jobs["end"] - result.jobs["start"]).tolist()[:3] == [600, 1800, 60]  # the first run is not lost
    assert result.metrics()["never_started"] == {"cancelled while waiting": 2}
    assert result.metrics()["counted"] == 4
    for given in (None, log, result):
        found = verify(log, given, platform=4, policy="fcfs")
        assert found.right, found.report()


def test_rows_of_pbs_without_a_start_do_not_start():
    text = """05/01/2024 08:00:00;Q;1.s;queue=w
05/01/2024 08:00:00;S;1.s;user=a ctime=1714550400 start=1714550400 exec_host=n/0*4 Resource_List.ncpus=4
05/01/2024 08:10:00;E;1.s;user=a ctime=1714550400 start=1714550400 end=1714551000 exec_host=n/0*4 Exit_status=1
05/01/2024 08:01:00;Q;2.s;queue=w
05/01/2024 08:05:00;D;2.s;requestor=a@s
05/01/2024 08:02:00;Q;3.s;queue=w
05/01/2024 08:20:00;E;3.s;user=a ctime=1714550520 end=1714551600 Resource_List.ncpus=4 Exit_status=271
"""
    log = read_pbs(io.StringIO(text), timezone="UTC")
    assert log["outcome"].tolist() == ["failed", "cancelled", "cancelled"]
    assert (log["cancel"] - log["submit"][0]).tolist()[1:] == [300, 1200]
    assert np.isfinite(log.recorded_starts()).tolist() == [True, False, False]
    jobs = simulate(4, log, "fcfs").jobs
    assert jobs["status"].tolist() == ["failed", "cancelled", "withdrawn"]
    assert verify(log, None, platform=4).right


def test_a_log_of_requeued_runs_and_its_replay_agree(tmp_path, capsys):
    log, out = tmp_path / "sacct.txt", Path(tmp_path, "out.csv")
    log.write_text(SACCT)
    assert main(["batch", str(log), "--processors", "4", "--policy", "fcfs", "--schedule", str(out)]) == 0
    assert "jobs never started                   2 cancelled while waiting" in capsys.readouterr().out
    assert main(["verify", str(log), str(out), "--processors", "4", "--policy", "fcfs"]) == 0


PBS = "\n".join(
    f"05/01/2024 08:00:00;{kind};{job}.s;user=a ctime={submit} {more}"
    for kind, job, submit, more in (
        ("E", 1, 1714550400, "start=1714550400 end=1714551000 exec_host=n/0*4 Resource_List.ncpus=4 Exit_status=1"),
        ("E", 2, 1714550401, "start=1714551000 end=1714551600 exec_host=n/0*4 Resource_List.ncpus=4 Exit_status=0"),
        ("E", 3, 1714550402, "end=1714551100 Resource_List.ncpus=4 Exit_status=271"),
    )
)
CLOCKS = """JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State|NodeList
1|2024-10-27T02:50:00|2024-10-27T02:10:00|2024-10-27T02:40:00|1800|60|4|COMPLETED|n1
2|2024-10-27T02:55:00|None|2024-10-27T02:30:00|0|60|0|CANCELLED by 7|None assigned
3|2025-03-30T01:50:00|2025-03-30T01:55:00|2025-03-30T03:10:00|900|60|4|TIMEOUT|n1
"""


@pytest.mark.parametrize(
    ("name", "text"), [("log.txt", SACCT), ("log.pbs", PBS), ("clocks.txt", CLOCKS), ("l.swf", SWF)]
)
def test_logs_are_read_replayed_and_their_own_schedules(tmp_path, capsys, name, text):
    log, out = tmp_path / name, tmp_path / "out.csv"
    log.write_text(text)
    usual = ["--processors", "4", "--timezone", "Europe/Berlin"]
    assert main(["batch", str(log), *usual, "--policy", "fcfs", "--schedule", str(out)]) == 0
    for schedule in ([], [str(log)], [str(out)]):
        capsys.readouterr()
        assert main(["verify", str(log), *schedule, *usual]) == 0
        answer = capsys.readouterr().out
        assert "possible" in answer
        assert "without a start" in answer


def test_what_neither_is_a_schedule_nor_a_log_is_refused_as_before(tmp_path):
    log = Workload({"submit": [0], "run": [10], "processors": [4]}, processors=4)
    path = tmp_path / "other.txt"
    path.write_text("a,b\n1,2\n")
    for given, message in ((path, "missing column job"), (tmp_path / "nothing.csv", "no such file")):
        with pytest.raises(InputError, match=message):
            verify(log, given)


BAD = "job_id,starting_time,finish_time,allocated_resources\n1,0,10,0\n2,zero,10,1\n3,0\n4,20,30,n[1-\n5,40,50,0\n"
ACCASIM = "1;a;2024-01-01 00:00:00__0;1#__2024-01-01 00:00:00;2024-01-01 00:00:10;b\n"


@pytest.mark.parametrize(
    ("text", "bad", "jobs"),
    [
        (BAD, 3, [1, 5]),
        (f"{ACCASIM}what\n", 1, [1]),
        ("1;2;2;9;10;0;0;0;10\n2;2;2;9;10;0;0;0\n", 1, [1]),
        (f"{SWF}4 1 2 3\n", 1, [1, 2, 3]),
    ],
    ids=["csv", "accasim", "cqsim", "swf"],
)
def test_lines_of_schedules_that_cannot_be_read_are_refused_or_counted(tmp_path, text, bad, jobs):
    path = tmp_path / "schedule.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"schedule\.txt, line \d"):
        read_schedule(path)
    report = Report()
    assert read_schedule(path, strict=False, report=report)["job"].tolist() == jobs
    assert report.skipped == {"bad lines": bad}
    log = Workload({"submit": np.zeros(5), "run": np.full(5, 10), "processors": np.ones(5)}, processors=9)
    with reading(skip_bad=True):
        assert f"of the schedule: skipped {bad} (bad lines {bad})" in schedule_of(log, path).notes


def test_the_header_of_old_batsim(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "jobID,submission_time,success,starting_time,finish_time,allocated_processors\n1,0,1,0,10,0-1\n2,0,0,-1,-1,\n"
    )
    found = read_schedule(path)
    assert found["nodes"].tolist() == [(0, 1), ()]
    log = Workload({"submit": [0, 0], "run": [10, 10], "processors": [2, 9]}, processors=9)
    assert schedule_of(log, path).faults == ()
