"""Records that are streamed to disk: the files, while the run goes on, when it fails, and afterwards."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Observer, Workload, load_result, load_workload, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.results import StreamedResult, open_result
from simmodel.work import ChunkedWorkload


def week(rows: int = 100) -> ChunkedWorkload:
    return ChunkedWorkload.of(load_workload("lublin-128-week"), rows)


class Fails(Observer):
    """Ends the run with an error after some jobs."""

    def __init__(self) -> None:
        self.ended = 0

    def job_ended(self, _run: Any, _status: str) -> None:
        self.ended += 1
        if self.ended == 400:
            raise RuntimeError("enough")


@pytest.mark.parametrize("name", ["record.db", "record.parquet"])
def test_a_streamed_result_is_that_of_a_run_in_memory(tmp_path: Path, name: str) -> None:
    if name == "record.parquet":
        pytest.importorskip("pyarrow")
    whole = simulate(128, "lublin-128-week", "easy")
    streamed = simulate(128, week(), "easy", stream=tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    for found in (streamed, open_result(tmp_path / name)):
        assert found.numbers() == pytest.approx(whole.numbers(), rel=1e-9, nan_ok=True)
        assert found.summary().splitlines()[:4] == whole.summary().splitlines()[:4]
        assert sum(len(part) for part in found.jobs("job", "wait")) == 600
        assert next(found.jobs("job")).names == ("job",)
        assert (found.name, found.processors, found.started, found.ended) == ("easy", 128, whole.started, whole.ended)
        assert repr(found) == f"<StreamedResult easy: on 128 processors, in {tmp_path / name}>"
        assert '"wait_mean": 1' in found.to_json()
    again = load_result(tmp_path / name)
    assert again.jobs.names == whole.jobs.names
    for column in whole.jobs.names:
        assert np.array_equal(again.jobs[column], np.asarray(whole.jobs[column])), column
    assert again.stored_tables().keys() == whole.stored_tables().keys()
    assert again.scenario["policy"] == "easy"


def test_executions_on_nodes_are_streamed_in_order(tmp_path: Path) -> None:
    nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=128)])])
    whole = simulate(nodes, "lublin-128-week", "easy")
    streamed = simulate(nodes, week(), "easy", stream=tmp_path / "a.db").load()
    assert streamed.runs.names == whole.runs.names
    for column in whole.runs.names:
        assert streamed.runs[column].tolist() == whole.runs[column].tolist(), column


def test_a_record_stored_at_the_end_can_be_opened_too(tmp_path: Path) -> None:
    whole = simulate(128, "lublin-128-week", "easy")
    whole.to_sqlite(tmp_path / "a.db")
    assert open_result(tmp_path / "a.db").numbers() == pytest.approx(whole.numbers(), rel=1e-9, nan_ok=True)
    whole.to_csv(tmp_path / "csv")
    with pytest.raises(InputError, match="must be an SQLite file or a folder of Parquet files to be read in parts"):
        open_result(tmp_path / "csv").metrics()


def test_a_log_that_is_not_sorted_has_metrics_in_one_pass_over_an_index(tmp_path: Path) -> None:
    jobs = 40_000
    log = Workload({"submit": np.arange(jobs)[::-1], "run": np.ones(jobs), "processors": np.ones(jobs, int)})
    whole = simulate(4, log, "fcfs")
    whole.to_sqlite(tmp_path / "a.db")
    assert open_result(tmp_path / "a.db").numbers() == pytest.approx(whole.numbers(), rel=1e-9, nan_ok=True)
    pytest.importorskip("pyarrow")
    whole.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="must be sorted by submit time for metrics in one pass"):
        open_result(tmp_path / "a.parquet").metrics()


@pytest.mark.parametrize("name", ["record.db", "record.parquet"])
def test_a_run_that_fails_leaves_what_it_has_and_the_old_file(tmp_path: Path, name: str) -> None:
    if name == "record.parquet":
        pytest.importorskip("pyarrow")
    simulate(128, week().of(load_workload("probe-4")), "fcfs", stream=tmp_path / name)
    with pytest.raises(RuntimeError, match="enough"):
        simulate(128, week(), "easy", stream=tmp_path / name, observers=[Fails()])
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.unfinished"]
    assert len(load_result(tmp_path / name).jobs) == 4
    left = load_result(tmp_path / f"{name}.unfinished")
    assert 100 <= len(left.jobs) < 400
    assert (left.jobs["status"] == "completed").all()
    sentence = "unfinished: the run was stopped before its end; jobs that had not ended by then are missing"
    assert left.report.notes == open_result(tmp_path / f"{name}.unfinished").report.notes == (sentence,)
    again = simulate(128, week(), "easy", stream=tmp_path / name)
    assert isinstance(again, StreamedResult)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_killed_run_leaves_its_last_part(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from simmodel import Observer, load_workload, simulate\n"
        "from simmodel.work import ChunkedWorkload\n"
        "class Kills(Observer):\n"
        "    ended = 0\n"
        "    def job_ended(self, run, status):\n"
        "        self.ended += 1\n"
        "        if self.ended == 400: os.kill(os.getpid(), 9)\n"
        "simulate(128, ChunkedWorkload.of(load_workload('lublin-128-week'), 100), 'easy', stream='a.db',\n"
        "         observers=[Kills()])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert done.returncode == -9
    assert not (tmp_path / "a.db").exists()
    left = load_result(tmp_path / "a.db.unfinished")
    assert 100 <= len(left.jobs) < 400
    assert "unfinished: the run was stopped before its end" in left.report.notes[0]


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="cannot be replaced: it is a database of another program"):
        simulate(128, week(), "fcfs", stream=tmp_path / "other.db")
    with pytest.raises(InputError, match="no folder"):
        simulate(128, week(), "fcfs", stream=tmp_path / "none" / "a.db")
    with pytest.raises(InputError, match="must be a file, got a device or a pipe"):
        simulate(128, week(), "fcfs", stream="/dev/null")
    simulate("hetsim-slow", "layered:n=10").to_sqlite(tmp_path / "tasks.db")
    with pytest.raises(InputError, match="must be a result of jobs, got one of a machine"):
        open_result(tmp_path / "tasks.db")


def test_a_log_without_jobs_that_can_run_has_a_record(tmp_path: Path) -> None:
    log = Workload({"submit": [0, 1], "run": [5, 5], "processors": [9, 9]})
    result = simulate(4, log, "fcfs", stream=tmp_path / "a.db")
    assert result.metrics()["status"] == {"rejected": 2}
    assert result.load().jobs["reason"].tolist() == ["larger than the machine"] * 2
    none = simulate(4, ChunkedWorkload(lambda: iter(())), "fcfs", stream=tmp_path / "b.db")
    assert none.metrics()["jobs"] == len(none.load().jobs) == 0
