"""Features of jobs and tasks: what a plain recount finds, and nothing that is known only later."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Job, load_workload, simulate
from simmodel.foundation.errors import InputError
from simmodel.metrics.features import (
    JOB_FEATURES,
    JOB_OUTCOMES,
    TASK_FEATURES,
    TASK_OUTCOMES,
    export_features,
    job_features,
    task_features,
)
from simmodel.records import JobRecord
from simmodel.work.table import Table
from tests.helpers.examples import up_to


@st.composite
def records(draw: st.DrawFn) -> JobRecord:
    """Draw what happened to some jobs, a few of which never started."""
    count = draw(st.integers(1, 12))
    submit = sorted(draw(st.lists(st.integers(0, 20), min_size=count, max_size=count)))
    wait = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    run = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    never = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    start = np.where(never, np.nan, np.add(submit, wait).astype(float))
    return JobRecord(
        jobs={
            "submit": submit,
            "start": start,
            "end": start + run,
            "processors": draw(st.lists(st.integers(1, 4), min_size=count, max_size=count)),
            "requested": draw(st.lists(st.integers(10, 30), min_size=count, max_size=count)),
            "user": draw(st.lists(st.sampled_from("ab"), min_size=count, max_size=count)),
        }
    )


def recounted(record: JobRecord, row: int) -> dict[str, float]:
    """Count what is known just before a submission, job by job."""
    jobs = list(record.jobs.rows())
    job, now = jobs[row], jobs[row]["submit"]
    before = jobs[:row]
    waiting = [each for each in before if not each["start"] < now]
    running = [each for each in before if each["start"] < now and not each["end"] < now]
    ended = sorted((each for each in before if each["end"] < now), key=lambda each: each["end"])
    started = sorted((each for each in before if each["start"] < now), key=lambda each: each["start"])
    own = [each for each in ended if each["user"] == job["user"]]
    return {
        "queued": len(waiting),
        "queued_processors": sum(each["processors"] for each in waiting),
        "queued_work": sum(each["processors"] * each["requested"] for each in waiting),
        "oldest_wait": max((now - each["submit"] for each in waiting), default=0),
        "running": len(running),
        "running_processors": sum(each["processors"] for each in running),
        "running_work": sum(each["processors"] * (each["start"] + each["requested"] - now) for each in running),
        "recent_wait": np.mean([each["start"] - each["submit"] for each in started[-10:]]) if started else 0,
        "user_queued": sum(each["user"] == job["user"] for each in waiting),
        "user_running": sum(each["user"] == job["user"] for each in running),
        "user_ended": len(own),
        "user_run": np.mean([each["end"] - each["start"] for each in own[-2:]]) if len(own) > 1 else np.nan,
    }


@settings(max_examples=up_to(40))
@given(records())
def test_features_are_those_of_a_recount(record: JobRecord) -> None:
    table = job_features(record, requests=True)
    for row in range(len(table)):
        expected = recounted(record, row)
        found = {name: float(table[name][row]) for name in expected}
        ties = record.jobs["end"][:row]  # the last two of a user are not determined if jobs end together
        if len(set(ties[np.isfinite(ties)])) < np.isfinite(ties).sum():
            del expected["user_run"], found["user_run"]
        starts = record.jobs["start"][:row]
        if row > 10 and len(set(starts[np.isfinite(starts)])) < np.isfinite(starts).sum():
            del expected["recent_wait"], found["recent_wait"]
        assert found == pytest.approx(expected, nan_ok=True)


def unknown_from(record: JobRecord, now: float) -> JobRecord:
    """Return the record as it was known just before an instant, with the jobs that were submitted at it."""
    jobs = record.jobs.where(record.jobs["submit"] <= now)
    start = np.where(jobs["start"] < now, jobs["start"], np.nan)
    end = np.where(jobs["end"] < now, jobs["end"], np.nan)
    status = np.where(jobs["status"].astype(str) == "rejected", "rejected", "waiting")
    return JobRecord(jobs={**dict(jobs.items()), "start": start, "end": end, "status": status})


def test_no_feature_is_known_only_later() -> None:
    result = simulate(32, load_workload("lublin-1024").where(slice(0, 300)).replace(processors=8), "easy")
    record = JobRecord(jobs=dict(result.jobs.items()))
    whole = job_features(record, requests=True)
    for row in range(0, len(whole), 7):
        past = job_features(unknown_from(record, float(whole["submit"][row])), requests=True)
        for name in JOB_FEATURES:
            assert past[name][row] == pytest.approx(whole[name][row], nan_ok=True), name


def test_a_request_that_gives_the_run_time_away_counts_as_unknown() -> None:
    jobs = {"submit": [0, 1], "start": [0, 5], "end": [5, 9], "processors": [1, 1]}
    assert np.isnan(job_features(JobRecord(jobs=jobs))["requested"]).all()
    assert job_features(JobRecord(jobs=jobs | {"requested": [9, 9]}))["requested"].tolist() == [9, 9]


def test_jobs_that_ran_again_are_refused() -> None:
    jobs = {"submit": [0], "start": [0], "end": [5], "processors": [1], "attempts": [2]}
    with pytest.raises(InputError, match="must be of jobs that run once"):
        job_features(JobRecord(jobs=jobs))


def test_features_of_tasks_are_those_of_a_recount() -> None:
    result = simulate("hetsim-sample", "layered-100", "hrr")
    table = task_features(result)
    tasks = list(result.tasks.rows())
    for row, name in enumerate(table["task"].tolist()):
        now = table["ready"][row]
        (task,) = (each for each in tasks if each["task"] == name)
        others = [each for each in tasks if each is not task]
        assert table["ended"][row] == sum(each["end"] < now for each in others)
        assert table["executing"][row] == sum(each["start"] < now <= each["end"] for each in others)
        assert table["queue_time"][row] == pytest.approx(task["start"] - now)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_are_exported_with_their_schema(tmp_path: Path, suffix: str) -> None:
    result = simulate(4, [Job(run=5, requested=9), Job(submit=1, run=5, requested=9)], "easy")
    table = job_features(result)
    about = json.loads(export_features(table, tmp_path / f"jobs{suffix}").read_text())
    assert [each["column"] for each in about["columns"]] == [*JOB_FEATURES, *JOB_OUTCOMES]
    assert set(table.names) - {"job"} == {each["column"] for each in about["columns"]}
    assert (about["rows"], (tmp_path / f"jobs{suffix}").stat().st_size > 100) == (2, True)
    tasks = task_features(simulate("hetsim-sample", "fork-join", "hrr"))
    assert set(tasks.names) - {"task"} == {*TASK_FEATURES, *TASK_OUTCOMES}
    with pytest.raises(InputError, match=r"must end in .csv or .parquet"):
        export_features(tasks, tmp_path / "tasks.txt")


def test_a_table_without_jobs_has_no_rows() -> None:
    empty = JobRecord(jobs={"submit": [], "start": [], "end": [], "processors": []})
    assert isinstance(job_features(empty), Table)
    assert len(job_features(empty)) == 0
