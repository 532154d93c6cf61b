"""Stored results are read back equal; other files get an error."""

import gzip
import json
import sqlite3
import sys

import numpy as np
import pytest

from simmodel.foundation.errors import InputError, MissingExtra
from simmodel.results import Result, load_result
from simmodel.results.loading import read_scenario
from simmodel.results.stores import plain
from simmodel.work.table import Table
from simmodel.work.workload import Report

NAN = float("nan")


@pytest.fixture
def result():
    report = Report()
    report.rejected["too large"] += 1
    nodes = np.empty(2, dtype=object)
    nodes[:] = [(0, 1), None]
    down = np.empty(1, dtype=object)
    down[0] = (3,)
    jobs = {
        "job": [1, 2, 3],
        "submit": [0.0, 0.5, 2.0],
        "start": [0.0, 10.0, NAN],
        "end": [10.0, 30.25, NAN],
        "processors": [4, 2, 99],
        "status": ["completed", "timeout", "rejected"],
        "user": ["ann", "bob", "ann"],
        "reason": np.array(["", "", "too large"], dtype=object),
    }
    runs = {"job": [1, 2], "attempt": [1, 1], "start": [0.0, 10.0], "end": [10.0, 30.25], "place": ["a", "a"]}
    return Result(
        jobs=jobs,
        name="the run",
        processors=4,
        runs=Table({**runs, "processors": [4, 2], "status": ["completed", "timeout"], "nodes": nodes}),
        places=Table({"place": ["a"], "processors": [4], "nodes": [4], "idle_power": [1.5], "load_power": [2.0]}),
        changes=Table({"time": [5.0], "place": ["a"], "cause": ["failure"], "processors": [3], "down": down}),
        events=Table({"time": [0.0], "event": ["submitted"], "job": [1]}),
        report=report,
        decisions={"count": 2, "mean": 1e-6},
        scenario={"policy": "easy", "seed": 0, "options": {"until": None}},
    )


STORES = {
    "sqlite": ("run.sqlite", Result.to_sqlite),
    "csv": ("folder", Result.to_csv),
    "parquet": ("tables", Result.to_parquet),
    "json": ("run.json.gz", lambda result, path: result.to_json(path, jobs=True)),
}


@pytest.mark.parametrize("kind", STORES)
def test_a_stored_result_comes_back(result, tmp_path, kind):
    name, write = STORES[kind]
    path = tmp_path / name
    write(result, path)
    write(result, path)  # again: replaced, not added to
    again = load_result(path)
    assert read_scenario(path) == result.scenario
    assert (again.name, again.processors, again.started, again.ended) == ("the run", 4, 0, 30.25)
    assert again.report == result.report
    assert again.decisions == result.decisions
    for column in result.jobs.names:
        stored, kept = again.jobs[column], result.jobs[column]
        assert np.array_equal(stored, kept, equal_nan=kept.dtype.kind == "f"), column
    if kind != "json":
        assert again.runs["nodes"].tolist() == [(0, 1), None]
        assert again.changes["down"].tolist() == [(3,)]
        assert again.events["event"].tolist() == ["submitted"]
        assert list(again.places.rows()) == list(result.places.rows())
    assert again.metrics()["wait_mean"] == result.metrics()["wait_mean"]


def test_sqlite_reads_with_sql(result, tmp_path):
    result.to_sqlite(tmp_path / "run.sqlite")
    connection = sqlite3.connect(tmp_path / "run.sqlite")
    try:
        rows = connection.execute("SELECT job, start FROM jobs WHERE status != 'rejected' ORDER BY job").fetchall()
        assert rows == [(1, 0.0), (2, 10.0)]
        assert connection.execute("SELECT start FROM jobs WHERE job = 3").fetchone() == (None,)
        assert json.loads(dict(connection.execute("SELECT * FROM meta"))["scenario"])["policy"] == "easy"
    finally:
        connection.close()


def test_schedule_begins_with_the_six_columns(result, tmp_path):
    result.schedule_csv(tmp_path / "schedule.csv")
    lines = (tmp_path / "schedule.csv").read_text().splitlines()
    assert lines[0].startswith("job,submit,start,end,processors,status,")
    assert lines[1].startswith("1,0,0,10,4,completed,")
    assert lines[2].startswith("2,0.5,10,30.25,2,timeout,")
    assert lines[3].startswith("3,2,,,99,rejected,")


def test_json_has_null_where_nothing_is_known(result, tmp_path):
    document = json.loads(result.to_json(tmp_path / "run.json", jobs=True))
    assert document["jobs"]["start"] == [0.0, 10.0, None]
    assert document["metrics"]["jobs"] == 3
    assert json.loads((tmp_path / "run.json").read_text()) == document
    assert "jobs" not in json.loads(result.to_json())


def test_what_cannot_be_stored_says_so():
    with pytest.raises(TypeError, match="function cannot be stored"):
        plain({"policy": test_what_cannot_be_stored_says_so})


def test_parquet_without_pyarrow_says_what_to_install(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pyarrow is not installed: pip install .simmodel\[tables\]."):
        result.to_parquet(tmp_path / "tables")


def test_wrong_files_get_a_sentence(result, tmp_path):
    def message(path, call=read_scenario):
        with pytest.raises(InputError) as caught:
            call(path)
        return str(caught.value)

    assert "no such file or folder" in message(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    assert "missing meta.json" in message(tmp_path / "empty")
    (tmp_path / "text.txt").write_text("hello")
    assert "text.txt, line 1, column 1: invalid JSON" in message(tmp_path / "text.txt")
    (tmp_path / "other.json").write_text("[1]")
    assert "must be a stored result, got other JSON" in message(tmp_path / "other.json")
    with gzip.open(tmp_path / "broken.json.gz", "wb") as file:
        file.write(b"{")
    assert "broken.json.gz, line 1, column 2: invalid JSON" in message(tmp_path / "broken.json.gz")
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE t (x)")
    other.close()
    assert "must be a stored result, got another database" in message(tmp_path / "other.sqlite")
    result.to_json(tmp_path / "short.json")
    assert "missing table of jobs" in message(tmp_path / "short.json", load_result)
    result.scenario = {}
    result.to_json(tmp_path / "bare.json")
    assert "missing scenario" in message(tmp_path / "bare.json")
