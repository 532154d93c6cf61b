"""``simmodel verify`` and ``identify``: exit statuses, and one sentence for what is no schedule."""

import zlib
from pathlib import Path

import numpy as np
import pytest

from simmodel.cli import main
from tests.helpers.mutations import mutated, within

RIGHT = "job,submit,start,end\n1,0,0,1000\n2,900,900,1400\n3,950,1000,1100\n4,960,1100,1500\n"
VERIFY = ["verify", "probe-4", "jobs.csv", "--processors", "12"]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "jobs.csv"


def test_the_status_is_0_for_a_right_schedule(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.write_text(RIGHT)
    assert main(VERIFY) == 0
    assert main([*VERIFY, "--policy", "easy"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == ["probe-4: 4 jobs", "possible"] * 2 + ["easy: every start is the policy's"]
    assert said.err == ""


@pytest.mark.parametrize(
    ("old", "new", "policy", "said"),
    [
        ("960,1100,1500", "960,1200,1600", "easy", "  first: at 1100 s the policy starts job 4, the schedule does not"),
        ("950,1000,1100", "950,960,1060", "easy", "  too many processors: 1, first: 17 of 12 processors are used"),
        ("950,1000,1100", "950,960,1060", None, "  too many processors: 1, first: 17 of 12 processors are used"),
    ],
)
def test_the_status_is_1_for_departures_and_what_is_impossible(
    jobs: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, policy: str | None, said: str
) -> None:
    assert old in RIGHT
    jobs.write_text(RIGHT.replace(old, new))
    assert main([*VERIFY, *([] if policy is None else ["--policy", policy])]) == 1
    found = capsys.readouterr()
    assert any(line.startswith(said) for line in found.out.splitlines()), found.out
    assert found.err == ""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("2,900,900,1400\n", "", "missing job: 1, first: job 2, submitted at 900 s, is not in the schedule"),
        ("4,960", "9,970,1500,1600\n4,960", "unknown job: 1, first: job 9 is not in the workload"),
        ("4,960", "3,950,1000,1100\n4,960", "doubled job: 1, first: job 3 is in the schedule more than once"),
        (
            "900,900,",
            "900,800,",
            "start before submission: 1, first: job 2 starts at 800 s, before its submission at 900",
        ),
        (
            "950,1000",
            "990,1000",
            "other submission: 1, first: job 3 is submitted at 990 s in the schedule, at 950 s in",
        ),
        ("submit,start", "begin,from", "jobs.csv: missing column start (or submit and wait); columns: 'job', 'begin'"),
        (",1100,1500", ",soon,1500", "jobs.csv, line 5: start: must be seconds, got 'soon'"),
        (RIGHT, "", "jobs.csv: must have jobs, got an empty file"),
        (RIGHT, "job,start\nx,1\ny,2\n", "schedule: must be a schedule of probe-4, got 2 jobs, none of which is in it"),
    ],
)
def test_the_status_is_2_for_what_is_no_schedule_of_these_jobs(
    jobs: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    assert old in RIGHT
    jobs.write_text(RIGHT.replace(old, new))
    assert main([*VERIFY, "--policy", "easy"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert sentence in said


def test_the_schedule_of_another_log_is_none_of_this_one(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "lublin-128-week", "--schedule", "jobs.csv", "-q"]) == 0
    assert main(VERIFY) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("simmodel: jobs.csv: must be a schedule of probe-4; other submission: 4, first: job 1 ")


def test_identify_says_what_is_wrong_with_a_schedule(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.write_text(RIGHT.replace("2,900,900,1400\n", ""))
    assert main(["identify", "probe-4", "jobs.csv", "--processors", "12", "--policies", "fcfs"]) == 0
    assert "missing job: 1" in capsys.readouterr().out


def test_identify_judges_a_sample(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.write_text(RIGHT)
    given = ["identify", "probe-4", "jobs.csv", "--processors", "12", "--policies", "easy"]
    assert main([*given, "--sample", "2", "--plot", "easy.png"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "probe-4: 2 of 4 starts"
    assert "0 % of the starts are explained by none of them" in said
    assert main([*given, "--sample", "0"]) == 2
    assert "--sample" in capsys.readouterr().err


# ---------------------------------------------------------------------- mutated files

FORMATS = {
    "own": RIGHT,
    "Batsim": "job_id,workload_name,submission_time,requested_number_of_resources,starting_time,execution_time,"
    "finish_time,allocated_resources\n"
    "1,w,0,5,0,1000,1000,0-4\n2,w,900,5,900,500,1400,5-9\n"
    "3,w,950,7,1000,100,1100,0-4 10-11\n4,w,960,12,1400,400,1800,0-11\n",
    "CQSim": "1;5;5;1000;1000;0;0;0;1000\n2;5;5;500;500;0;900;900;1400\n3;7;7;100;100;50;950;1000;1100\n"
    "4;12;12;400;400;140;960;1100;1500\n",
    "SWF": "; UnixStartTime: 0\n1 0 0 1000 5 -1 -1 5 1000 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    "2 900 0 500 5 -1 -1 5 500 -1 1 1 -1 -1 -1 -1 -1 -1\n3 950 50 100 7 -1 -1 7 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    "4 960 140 400 5 -1 -1 5 400 -1 1 1 -1 -1 -1 -1 -1 -1\n",
    "AccaSim": "1;7;2001-09-09 01:46:40__0;5#__2001-09-09 01:46:40;2001-09-09 02:03:20;1;5;1000;\n"
    "2;7;2001-09-09 02:01:40__0;5#__2001-09-09 02:01:40;2001-09-09 02:10:00;1;5;500;\n"
    "3;7;2001-09-09 02:02:30__0;7#__2001-09-09 02:03:20;2001-09-09 02:05:00;1;7;100;\n"
    "4;7;2001-09-09 02:02:40__0;5#__2001-09-09 02:05:00;2001-09-09 02:11:40;1;5;400;\n",
}


def answers(jobs: Path, capsys: pytest.CaptureFixture[str], name: str, count: int, policy: list[str]) -> list[int]:
    """Return how often each status came for mutated schedules; a status of 2 has one sentence."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), 5])
    statuses = [0, 0, 0]
    jobs.write_text(FORMATS[name])
    assert main(VERIFY) == 0
    capsys.readouterr()
    for _ in range(count):
        data = mutated(FORMATS[name].encode(), rng)
        jobs.write_bytes(data)
        with within(10.0):
            status = main([*VERIFY, *policy])
        said = capsys.readouterr()
        statuses[status] += 1
        assert "Traceback" not in said.err + said.out, data
        if status == 2:
            assert len(said.err.splitlines()) == 1, (data, said.err)
            assert said.err.startswith("simmodel: "), (data, said.err)
        else:
            assert said.err == "", (data, said.err)
            assert said.out.startswith("probe-4: "), (data, said.out)
    return statuses


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_schedules_are_judged_or_refused_in_one_sentence(
    jobs: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert sum(answers(jobs, capsys, name, 12, ["--policy", "easy"])) == 12


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
def test_200_mutated_schedules_of_each_kind(jobs: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    judged = answers(jobs, capsys, name, 200, ["--policy", "easy"])
    with capsys.disabled():
        print(f"\n{name}: 200 mutated schedules, by exit status 0, 1, 2: {judged}")
