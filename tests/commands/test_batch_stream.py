"""``simmodel batch --stream``: the summary of a run in memory, from a record on disk."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.results import load_result, open_result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "poisson", "--jobs", "50", "--processors", "8", "-o", "in.swf"]) == 0
    return tmp_path


def test_the_summary_is_that_of_a_run_in_memory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["batch", "in.swf", "--json", "whole.json"]) == 0
    whole = capsys.readouterr().out
    assert main(["batch", "in.swf", "--stream", "jobs.db", "--json", "streamed.json"]) == 0
    streamed = capsys.readouterr().out
    timed = "decisions of the policy"
    lines = [line for line in whole.splitlines() if timed not in line and "written" not in line]
    assert [line for line in streamed.splitlines() if timed not in line and "written" not in line] == lines
    assert "  jobs written to jobs.db\n" in streamed
    one, other = (json.loads(Path(name).read_text()) for name in ("whole.json", "streamed.json"))
    for name, value in one["metrics"].items():
        assert other["metrics"][name] == (value if name == "status" else pytest.approx(value, rel=1e-9)), name
    assert one["scenario"] == other["scenario"]
    assert len(load_result("jobs.db").jobs) == 50
    assert open_result("jobs.db").report == load_result("jobs.db").report


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--db b.db", "--stream and --db exclude each other: --db needs the whole record in memory"),
        ("--schedule -", "--stream and --schedule exclude each other"),
        ("--events", "--stream and --events exclude each other"),
        ("--stream -", "--stream: must be a file, got standard output"),
        ("--stream in.swf", "in.swf: --stream must be another file than an input"),
        ("--stream none/jobs.db", "none/jobs.db: cannot be written: no folder"),
    ],
)
def test_what_needs_the_whole_record_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    capsys.readouterr()
    assert main(["batch", "in.swf", "--stream", "jobs.db", *words.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("jobs.db").exists()


def test_a_database_of_another_program_is_replaced_by_force_only(folder: Path) -> None:
    with sqlite3.connect("jobs.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    assert main(["batch", "in.swf", "--stream", "jobs.db", "-q"]) == 2
    assert main(["batch", "in.swf", "--stream", "jobs.db", "--force", "-q"]) == 0
    assert len(load_result("jobs.db").jobs) == 50


def test_a_log_that_is_not_sorted_gets_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("in.swf").read_text().splitlines()
    jobs = [line for line in lines if not line.startswith(";")]
    Path("late.swf").write_text("; MaxProcs: 8\n" + "\n".join(reversed(jobs)) + "\n")
    capsys.readouterr()
    assert main(["batch", "late.swf", "--stream", "jobs.db"]) == 2
    said = capsys.readouterr().err
    assert "must be sorted by submit time to be read in chunks" in said
    assert len(said.strip().splitlines()) == 1
    assert [path.name for path in folder.iterdir() if "jobs" in path.name] == []
