"""The event-level data set: its rows follow from the run, its counts from the rows, and batches survive a kill."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from simmodel import Environment, Job
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.records.cgsim_events import CGSIM_EVENTS, CGSIM_STATES, CGSimEvents, CGSimStates
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.results.streams import DataSet
from simmodel.systems.grid.system import Grid
from simmodel.work import File
from tests.helpers.paths import ROOT

TABLES = {"events": list(GRID_EVENTS), "jobs": list(GRID_JOBS)}


def ran(folder, observer=GridEvents, tables=TABLES, **options):
    """Return the grid and the data set of a small run with files, waits and a site that fails."""
    env = Environment()
    disk = StorageSpec(capacity=200, read_bandwidth=10, write_bandwidth=5)
    spec = GridSpec(
        sites=[
            SiteSpec(name="a", hosts=[NodeSpec(count=2, cores=4)], storage=disk),
            SiteSpec(name="b", cores=4, storage=disk),
        ],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=2, latency=1, between=("a", "b"))]),
        files=[FileSpec(name="f", size=20, sites=["a"]), FileSpec(name="g", size=30, sites=["b"])],
        outages=[SiteOutageSpec(site="b", at=60, until=70)],
        retries=1,
    )
    grid = Grid(env, spec, "round-robin")
    data = DataSet(folder / "events.sqlite", tables, {"grid": "small"}, batch=7, **options)
    env.observe(observer(grid, data))
    for number in range(12):
        files = {"inputs": ["f", "g"], "outputs": [File(f"o{number}", 5)]} if number % 2 else {}
        grid.submit(Job(id=number, processors=3, run=10, **files), at=number * 5.0)
    grid.submit(Job(id="lost", run=1, inputs=["nowhere"]))
    env.run()
    return grid, data


def table(path, name):
    return rows_of(path, f"{name} ORDER BY _ID")


def test_the_rows_of_jobs_are_those_of_the_result(tmp_path):
    grid, data = ran(tmp_path)
    data.close()
    rows = {row["job"]: row for row in table(tmp_path / "events.sqlite", "jobs")}
    jobs = {job["job"]: job for job in grid.result().jobs.rows()}
    assert len(rows) == len(jobs) == 13
    for name, row in rows.items():
        job = jobs[int(name) if isinstance(name, int) else name]
        assert row["state"] == job["state"]
        assert row["site"] == job["site"]
        assert row["attempts"] == job["attempts"]
        if job["state"] == "finished":
            assert row["queue_time"] == job["start"] - job["submit"]
            assert row["walltime"] == job["end"] - job["start"]
            assert row["turnaround"] == job["finished"] - job["submit"]


def test_features_follow_from_the_events_before_the_submission(tmp_path):
    _, data = ran(tmp_path)
    data.close()
    events = table(tmp_path / "events.sqlite", "events")
    for row in table(tmp_path / "events.sqlite", "jobs"):
        created = next(
            i for i, event in enumerate(events) if event["event"] == "created" and event["job"] == row["job"]
        )
        before = events[:created]
        running = sum(event["event"] == "running" for event in before) - sum(
            event["event"] == "released" for event in before
        )
        assert row["grid_running"] == running
        assert row["grid_finished"] == sum(event["event"] == "finished" for event in before)
        later = [event for event in events[created + 1 :] if event["job"] != row["job"]]
        assert all(event["time"] >= row["submit"] for event in later)


def test_the_state_of_each_row_is_that_of_its_place(tmp_path):
    """Counts of the site are counted again from the rows alone."""
    _, data = ran(tmp_path)
    data.close()
    running = dict.fromkeys("ab", 0)
    queued = dict.fromkeys("ab", 0)
    finished = dict.fromkeys("ab", 0)
    failed = dict.fromkeys("ab", 0)
    for event in table(tmp_path / "events.sqlite", "events"):
        site, what = event["site"], event["event"]
        running[site or "a"] += {"running": 1, "released": -1}.get(what, 0)
        queued[site or "a"] += {"queued": 1, "running": -1}.get(what, 0) if what in ("queued", "running") else 0
        finished[site or "a"] += what == "finished"
        failed[site or "a"] += what == "failed"
        if what in ("running", "released", "finished", "failed", "transfer ended"):
            counts = running[site], finished[site], failed[site]
            assert (event["running"], event["finished"], event["failed"]) == counts
            if site == "a":
                assert event["free_cores"] == 8 - 3 * running["a"]


def test_csv_and_parquet_equal_the_database(tmp_path):
    _, data = ran(tmp_path, folders={"csv": tmp_path / "csv", "parquet": tmp_path / "parquet"})
    data.close()
    for name, columns in TABLES.items():
        rows = table(tmp_path / "events.sqlite", name)
        assert rows
        as_parquet = parquet.read_table(tmp_path / "parquet" / f"{name}.parquet").to_pylist()
        with open(tmp_path / "csv" / f"{name}.csv", encoding="utf-8", newline="") as file:
            as_csv = list(csv.DictReader(file))
        assert len(rows) == len(as_parquet) == len(as_csv)
        for row, other, text in zip(rows, as_parquet, as_csv, strict=True):
            for column in columns:
                value = row[column]
                if isinstance(value, float):
                    assert other[column] == value
                    assert float(text[column]) == value
                else:
                    assert text[column] == ("" if value is None else str(value))
    meta = json.loads((tmp_path / "csv" / "meta.json").read_text(encoding="utf-8"))
    assert meta["rows"]["jobs"] == 13


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_rows_of_several_forms_keep_their_order_and_values(tmp_path, batch):
    """More rows than a statement takes, and fewer; a form leaves out columns that always have the same values."""
    path = tmp_path / "events.sqlite"
    with DataSet(path, {"events": ["number", "file", "size"], "other": ["number"]}, batch=batch) as data:
        data.shorten("no file", "events", {"file": "it's", "size": 0.0})
        for number in range(2000):
            if number < 700 or number % 3:
                data.add("no file", (number,))
            else:
                data.add("events", (number, f"f{number}", 1.5))
            data.add("other", (-number,))
    plain = [("it's", 0.0) if number < 700 or number % 3 else (f"f{number}", 1.5) for number in range(2000)]
    found = [tuple(row.values()) for row in table(path, "events")]
    assert found == [(number + 1, number, *values) for number, values in enumerate(plain)]
    assert [row["number"] for row in table(path, "other")] == [-number for number in range(2000)]
    assert data.written == {"events": 2000, "other": 2000}


def test_a_row_with_too_few_values_is_refused(tmp_path):
    data = DataSet(tmp_path / "events.sqlite", {"events": ["number", "file"]})
    data.add("events", (1,))
    with pytest.raises(sqlite3.ProgrammingError):
        data.flush()
    data.add("events", (2,))
    data.leave()


def test_a_data_set_that_is_not_closed_says_so(tmp_path):
    _, data = ran(tmp_path)
    data.leave()
    assert not (tmp_path / "events.sqlite").exists()
    left = tmp_path / "events.sqlite.unfinished"
    assert {row["key"]: json.loads(row["value"]) for row in rows_of(left, "meta")}["unfinished"] is True
    assert len(table(left, "jobs")) == 13


def rows_of(path, name):
    with closing(sqlite3.connect(path)) as database:
        cursor = database.execute(f"SELECT * FROM {name}")
        names = [each[0] for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


@pytest.mark.few(1)
@pytest.mark.parametrize("kill_after", [0, 50, 400])
def test_what_a_killed_process_leaves_is_readable(tmp_path, kill_after):
    """The process is killed once so many rows are there, whenever that is."""
    path = tmp_path / "events.sqlite"
    code = f"""
from simmodel.results.streams import DataSet
data = DataSet({str(path)!r}, {{"events": ["number"]}}, batch=10)
print("begun", flush=True)
number = 0
while True:
    data.add("events", (number,))
    number += 1
    if number == {kill_after} + 1:
        print("now", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    assert process.stdout.readline() == b"now\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = Path(f"{path}.unfinished")
    rows = table(left, "events")
    assert [row["number"] for row in rows] == list(range(len(rows)))
    assert len(rows) % 10 == 0
    assert {row["key"] for row in rows_of(left, "meta")} >= {"simmodel", "unfinished"}


def test_states_of_cgsim_end_as_the_jobs_do(tmp_path):
    grid, data = ran(tmp_path, CGSimStates, {"EVENTS": CGSIM_STATES})
    data.close()
    rows = table(tmp_path / "events.sqlite", "EVENTS")
    of = [row["STATE"] for row in rows if row["JOB_ID"] == "0"]
    assert of == ["global_pending", "assigned", "site_pending", "running", "finished"]
    ends = [row for row in rows if row["STATE"] == "finished"]
    assert len(ends) == int((grid.result().jobs["state"] == "finished").sum())
    assert [row["STATE"] for row in rows if row["JOB_ID"] == "lost"][-1] == "failed"
    assert max(row["SITE_FINISHED_JOBS"] for row in rows if row["SITE"] == "a") == sum(
        row["SITE"] == "a" for row in ends
    )


def test_cgsims_events_have_a_beginning_and_an_end(tmp_path):
    grid, data = ran(tmp_path, CGSimEvents, {"EVENTS": CGSIM_EVENTS})
    data.close()
    rows = table(tmp_path / "events.sqlite", "EVENTS")
    for kind in ("FileRead", "FileTransfer", "JobExecution"):
        states = [row["STATE"] for row in rows if row["EVENT"] == kind]
        assert states.count("Started") >= states.count("Finished") > 0
    jobs = {str(job["job"]): job for job in grid.result().jobs.rows()}
    for row in rows:
        if row["EVENT"] == "JobExecution" and row["STATE"] == "Finished" and row["STATUS"] == "finished":
            assert row["TIME"] == jobs[row["JOB_ID"]]["end"]
