"""Jobs that request more time than a partition or a queue allows: rejected, cut or split, and counted."""

from itertools import pairwise

import numpy as np
import pytest

from simmodel import InputError, Job, Scenario, Workload, load_scenario, simulate
from simmodel.cli import main
from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
from simmodel.systems.cluster.time_limits import time_limits
from simmodel.work import Dependency
from simmodel.work.time_limits import within_limits

HOUR = 3600
SPEC = ClusterSpec(partitions=[PartitionSpec(processors=4, max_requested=HOUR)])
LOG = Workload(
    {
        "submit": [0, 10, 20, 30, 40],
        "run": [9000, 5000, 600, np.nan, 100],
        "requested": [10_000, 7200, 7200, 7200, -1],
        "processors": [4, 4, 1, 1, 1],
        "preceding": [-1, -1, 1, -1, 2],
        "cancel": [np.nan, np.nan, np.nan, 50, np.nan],
        "status": [1, 5, 1, 5, 1],
    }
)


def as_jobs(log):
    return log, log.jobs(), Workload.from_jobs(log.jobs())


def test_by_default_they_are_rejected():
    assert simulate(SPEC, LOG, "fcfs").report.rejected == {"batch allows 3600": 4}


@pytest.mark.parametrize("form", range(3), ids=["columns", "jobs", "workload of jobs"])
def test_cut_jobs_time_out_at_the_limit(form):
    result = simulate(SPEC, as_jobs(LOG)[form], "fcfs", too_long="cut")
    assert result.jobs["run"].tolist()[:3] == [HOUR, HOUR, 600]
    assert list(result.jobs["status"])[:3] == ["timeout", "timeout", "completed"]
    assert result.report.repaired["requested time above the limit: cut"] == 4
    assert not result.report.rejected


@pytest.mark.parametrize("form", range(3), ids=["columns", "jobs", "workload of jobs"])
def test_split_jobs_run_part_after_part_and_who_waits_for_them_waits_for_the_last(form):
    result = simulate(SPEC, as_jobs(LOG)[form], "fcfs", too_long="split")
    jobs = {row["job"]: row for row in result.jobs.rows()}
    assert len(jobs) == 5 + 3  # the first job has three parts, the second two
    spans = [(row["start"], row["end"]) for row in result.jobs.rows() if row["submit"] == 0]
    assert [end - start for start, end in spans] == [HOUR, HOUR, 1800]
    assert all(later[0] >= before[1] for before, later in pairwise(spans))
    assert jobs[3]["start"] >= jobs[1]["end"]
    assert jobs[5]["start"] >= jobs[2]["end"]
    assert jobs[2]["status"] == "cancelled"  # as its whole ended
    assert result.report.repaired["requested time above the limit: split"] == 4
    assert result.report.notes[-1] == "jobs that run longer than their limit: 2, in 5 parts"
    whole = np.nansum(LOG["run"] * LOG["processors"])
    assert np.nansum(result.jobs["run"] * result.jobs["processors"]) == whole


def test_parts_request_no_more_than_the_whole():
    split = within_limits(LOG, np.full(5, float(HOUR)), "split")
    assert split["requested"].tolist() == [HOUR, HOUR, 2800, HOUR, HOUR, HOUR, HOUR, -1]
    assert within_limits(LOG, np.full(5, np.inf), "split") is LOG


def test_names_of_parts_are_new_where_names_are_texts():
    log = Workload({"job": ["a", "b"], "submit": [0, 0], "run": [25, 5], "processors": [1, 1]})
    split = within_limits(log, np.array([10, 10]), "split")
    assert split["job"].tolist() == ["a.1", "a.2", "a", "b"]
    assert split["preceding"].tolist() == ["", "a.1", "a.2", ""]


def test_other_dependencies_are_kept_by_the_first_part():
    jobs = [Job(id=1, run=5), Job(id=2, run=25, dependencies=[Dependency(1, after="start")])]
    parts = within_limits(Workload.from_jobs(jobs), np.array([10.0, 10.0]), "split").jobs()
    assert [[(each.job, each.after) for each in job.dependencies] for job in parts] == [
        [],
        [(1, "start")],
        [("2.1", "end")],
        [("2.2", "end")],
    ]


def test_a_program_is_cut_and_never_split():
    def body(env, job, grant):
        yield env.timeout(50)

    jobs = [Job(id=1, requested=100, body=body)]
    for way in ("cut", "split"):
        (job,) = within_limits(Workload.from_jobs(jobs), np.array([60.0]), way).jobs()
        assert (job.requested, job.run, job.body) == (60, None, body)


QUEUED = ClusterSpec(
    partitions=[
        PartitionSpec(name="short", processors=8, max_requested=10),
        PartitionSpec(name="long", processors=4, max_requested=30),
        PartitionSpec(name="free", processors=2),
    ],
    queues=[QueueSpec(name="quick", max_requested=5), QueueSpec(name="slow", partition="long")],
)


@pytest.mark.parametrize(
    ("job", "limit"),
    [
        ({"partition": "short"}, 10),
        ({"partitions": "short,long"}, 30),
        ({"partitions": "any", "processors": 3}, 30),
        ({"processors": 8}, 10),
        ({"processors": 3}, 30),
        ({"processors": 9}, np.inf),  # which no partition has
        ({}, np.inf),
        ({"queue": "quick"}, 5),
        ({"queue": "slow"}, 30),
        ({"partition": "slow"}, 30),  # the name of a queue
        ({"partition": "elsewhere", "processors": 3}, 30),
    ],
)
def test_the_limit_is_the_longest_of_the_partitions_and_that_of_the_queue(job, limit):
    assert time_limits(Workload.from_jobs([Job(run=1, **job)]), QUEUED).tolist() == [limit]


def test_a_stored_run_is_repeated_with_its_parts(tmp_path):
    first = simulate(SPEC, LOG, "fcfs", too_long="split")
    first.to_sqlite(tmp_path / "run.sqlite")
    again = load_scenario(tmp_path / "run.sqlite").run()
    assert np.array_equal(again.jobs["start"], first.jobs["start"], equal_nan=True)
    assert Scenario.of(SPEC, LOG, too_long="cut").run().report.repaired


def test_what_cannot_be_changed_gets_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"too_long: must be 'reject' or 'cut' or 'split', got 'trim'"):
        simulate(SPEC, LOG, "fcfs", too_long="trim")
    with pytest.raises(InputError, match="too_long: must be 'reject' where a log is read in chunks"):
        simulate(SPEC, LOG, "fcfs", too_long="cut", stream=tmp_path / "s.sqlite")
    with pytest.raises(InputError, match="unknown option 'too_long'"):
        simulate({"a": 4, "b": 4}, LOG, too_long="cut")


def test_a_command_cuts_and_counts(capsys):
    words = "batch lublin-128-week --set partitions.batch.max_time=1h --too-long cut"
    assert main(words.split()) == 0
    assert "requested time above the limit: cut 402" in capsys.readouterr().out
