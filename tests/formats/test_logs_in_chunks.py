"""Logs that are read in chunks from their files: the same jobs, reports and errors as read at once."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Workload, load_workload, simulate
from simmodel.catalogue.workloads import workload_in_chunks
from simmodel.formats.swf import write_swf
from simmodel.foundation import loading

SACCT = "JobID|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|State|User\n"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a few lines at a time."""
    read = loading.read_blocks

    def few(*args: Any, **options: Any) -> Any:
        return read(*args, **{**options, "size": 200})

    for module in ("simmodel.formats.swf", "simmodel.catalogue.formats"):
        monkeypatch.setattr(f"{module}.read_blocks", few)


def swf(path: Path) -> Path:
    write_swf(load_workload("lublin-128-week").where(slice(0, 40)), path)
    return path


def gwf(path: Path) -> Path:
    lines = ["# Site: a"]
    for i in range(30):
        fields = [str(i + 1), str(100 + i), "-1", str(5 + i % 7), "1", *["-1"] * 5, "1", f"U{i % 3}", "G1"]
        lines.append("\t".join([*fields, *["-1"] * 16]))
    path.write_text("\n".join(lines) + "\n")
    return path


def sacct(path: Path) -> Path:
    rows = []
    for i in range(30):
        at = f"2024-05-01T12:{i:02}:00"
        rows.append(f"{i + 17}|{at}|{at}|2024-05-01T13:00:00|01:00:00|1-00:00:00|{1 + i % 4}|COMPLETED|u{i % 3}")
        rows.append(f"{i + 17}.batch|{at}|{at}|2024-05-01T13:00:00|01:00:00||4|COMPLETED|")
    path.write_text(SACCT + "\n".join(rows) + "\n")
    return path


def jobcomp(path: Path) -> Path:
    day = "2024-05-01T12"
    lines = [
        f"JobId={i} UserId=ann(7) JobState=COMPLETED Partition=batch TimeLimit=2 ProcCnt={1 + i % 4} NodeCnt=1 "
        f"SubmitTime={day}:{i:02}:00 StartTime={day}:{i:02}:05 EndTime={day}:{i:02}:{10 + i % 40}"
        for i in range(1, 60)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def table(path: Path) -> Path:
    rows = [f'{i},{5 + i},"{1 + i % 4}","a user\n{i % 3}"' for i in range(60)]
    path.write_text("submit,run,processors,user\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("make", [swf, gwf, sacct, jobcomp, table], ids=["swf", "gwf", "sacct", "jobcomp", "csv"])
def test_a_log_in_chunks_has_the_jobs_of_the_whole(tmp_path: Path, make: Any) -> None:
    path = make(tmp_path / {"table": "log.csv"}.get(make.__name__, f"log.{make.__name__}"))
    whole = load_workload(path)
    log = workload_in_chunks(path)
    chunks = list(log)
    assert len(chunks) > 3
    assert (log.name, log.processors, log.header) == (whole.name, whole.processors, whole.header)
    for name in whole.table.names:
        found = np.concatenate([chunk[name] for chunk in chunks if name in chunk])
        if name == "job" and make is table:
            continue  # a chunk without ids numbers its own jobs
        assert found.tolist() == pytest.approx(whole[name].tolist(), nan_ok=True, abs=0), name
    assert sum((chunk.report.skipped for chunk in chunks), start=type(whole.report.skipped)()) == whole.report.skipped
    in_memory = simulate(128, path, "easy")
    streamed = simulate(128, path, "easy", stream=tmp_path / "a.db")
    assert streamed.load().jobs["start"].tolist() == in_memory.jobs["start"].tolist()
    assert streamed.load().jobs["job"].tolist() == in_memory.jobs["job"].tolist()
    assert streamed.report == in_memory.report
    assert streamed.scenario["workload"] == in_memory.scenario["workload"] == [{"source": str(path)}]


def test_a_compressed_log_is_read_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(swf(tmp_path / "log.swf").read_bytes()))
    assert sum(map(len, workload_in_chunks(path))) == 40
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="corrupt gzip file"):
        list(workload_in_chunks(path))


@pytest.mark.parametrize("make", [swf, gwf, sacct, table], ids=["swf", "gwf", "sacct", "csv"])
def test_a_bad_line_has_its_number_in_the_file(tmp_path: Path, make: Any) -> None:
    path = make(tmp_path / {"table": "log.csv"}.get(make.__name__, f"log.{make.__name__}"))
    lines = path.read_text().split("\n")
    lines[28] = "what is this"
    path.write_text("\n".join(lines))
    sentences = []
    for read in (load_workload, lambda file: list(workload_in_chunks(file))):
        with pytest.raises(InputError) as caught:
            read(path)
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]
    assert "line 29" in sentences[0] or make is table  # whose cells have more than a line


def test_files_that_are_no_logs_are_refused_in_chunks_too(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    for text in (b"", b"; MaxProcs: 3\n", b"1 2 3\n", b"\0\0\0", "1 2".encode("utf-16")):
        path.write_bytes(text)
        with pytest.raises(InputError):
            list(workload_in_chunks(path))
    (tmp_path / "log.csv").write_text("submit,run\n")
    with pytest.raises(InputError, match="no jobs"):
        list(workload_in_chunks(tmp_path / "log.csv"))


def test_jobs_that_the_header_promises_are_missed(tmp_path: Path) -> None:
    path = swf(tmp_path / "log.swf")
    path.write_text("; MaxRecords: 50\n; MaxProcs: 128\n" + path.read_text().partition("\n")[2])
    log = workload_in_chunks(path)
    assert log.total == 50
    assert simulate(None, path, "fcfs", stream=tmp_path / "a.db").report == simulate(None, path, "fcfs").report
    assert simulate(None, path, "fcfs").report.skipped == {"promised by the header, not in the file": 10}


def test_other_formats_are_read_as_a_whole_first() -> None:
    chunks = list(workload_in_chunks("lublin-128-week"))
    assert sum(map(len, chunks)) == 600
    assert all(isinstance(chunk, Workload) for chunk in chunks)
