"""The reasons that policies give with their decisions are kept in the record, for all kinds of systems and stores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Job, Preempt, Reserve, Start, Task, WakeAt, Workflow, load_result, simulate

JOBS = [Job(id=name, processors=3, run=10) for name in (1, 2, 3)]


def careful(view: Any) -> Iterator[Any]:
    place = view.places[0]
    for job in view.waiting:
        if place.fits(job):
            yield Start(job, place, None if job.id == 2 else "it fits")
        else:
            yield Reserve(job, place, view.now + 50, "the room is held")
            yield WakeAt(view.now + 20, "to look again")


def first_place(view: Any) -> Iterator[Any]:
    for work in view.waiting:
        yield Start(work, view.places[0], "always the first")


def test_reasons_of_starts_promises_and_wake_ups_are_rows_and_none_is_no_row() -> None:
    found = simulate(4, JOBS, careful).reasons
    assert found.names == ("time", "decision", "work", "place", "at", "reason")
    rows = [tuple(row.values())[:4] for row in found.rows()]
    assert rows[:3] == [(0, "Start", "1", "batch"), (0, "Reserve", "2", "batch"), (0, "WakeAt", "", "")]
    assert rows[-1] == (20, "Start", "3", "batch")
    assert "2" not in [row[2] for row in rows if row[1] == "Start"]
    assert found["at"][:3].tolist()[1:] == [50, 20]
    assert np.isnan(found["at"][0])


def test_policies_that_give_none_leave_no_table() -> None:
    assert simulate(4, JOBS, "easy").reasons is None


def test_reasons_of_preemptions() -> None:
    def hasty(view: Any) -> Iterator[Any]:
        for run in view.running:
            if view.waiting and run.job.id == 1:
                yield Preempt(run.job, "requeue", "someone else waits")
        for job in [job for job in view.waiting if job.id != 1] or view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])

    jobs = [Job(id=1, processors=4, run=10), Job(id=2, processors=4, run=5, submit=2)]
    assert [tuple(row.values())[:3] for row in simulate(4, jobs, hasty).reasons.rows()] == [(2, "Preempt", "1")]


def test_reasons_of_brokers_name_jobs_as_the_record_does_and_those_of_machines_tasks() -> None:
    logs = {"a": [Job(id=1, run=10)], "b": [Job(id=1, run=10), Job(id=2, run=10)]}
    assert simulate({"a": 4, "b": 4}, logs, first_place).reasons["work"].tolist() == ["a:1", "b:1", "b:2"]
    chain = Workflow([Task(id="a", run=100), Task(id="b", run=50)], [("a", "b", 50e6)])
    assert simulate("hetsim-slow", chain, first_place).reasons["work"].tolist() == ["a", "b"]


@pytest.mark.parametrize("way", ["sqlite", "csv", "parquet"])
def test_reasons_are_stored(way: str, tmp_path: Path) -> None:
    result = simulate(4, JOBS, careful)
    path = tmp_path / ("run.db" if way == "sqlite" else "run")
    getattr(result, f"to_{way}")(path)
    again = load_result(path).reasons
    assert again["reason"].tolist() == result.reasons["reason"].tolist()
    assert again["time"].tolist() == result.reasons["time"].tolist()


def test_reasons_of_streamed_records(tmp_path: Path) -> None:
    streamed = simulate(4, JOBS, careful, stream=tmp_path / "run.db")
    assert streamed.load().reasons["reason"].tolist() == simulate(4, JOBS, careful).reasons["reason"].tolist()
