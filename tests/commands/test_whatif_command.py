"""The command line of what-ifs: a snapshot of a log, and what it says about policies."""

import csv
import json
import re
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.futures.whatif import what_if
from simmodel.snapshots.cluster import ClusterSnapshot

SETTINGS = """
generator = "synthetic"
[parameters]
jobs = 20
run = 5000.0
size = 64
gap = { distribution = "exponential", mean = 300.0 }
"""
OWN = """import os, threading
def dies(view):
    os._exit(3)
def wrong(view):
    return 1 / 0
def blocks(view):
    threading.Event().wait(600)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder with a snapshot, generator settings, and policies of one's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.toml").write_text(SETTINGS)
    (tmp_path / "own_policies.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["batch", "lublin-128-week", "--snapshot", "s.json", "--at", "300000"]) == 0
    assert "snapshot written to s.json" in capsys.readouterr().out
    return tmp_path


def test_a_snapshot_of_a_log_is_the_state_at_that_instant(folder: Path) -> None:
    snapshot = ClusterSnapshot.from_json(folder / "s.json")
    assert snapshot.now == 300_000
    assert (len(snapshot.running), len(snapshot.waiting)) == (5, 12)
    assert snapshot.policy.known_as == "easy"


def test_the_table_names_the_best_and_what_it_starts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "w.json", "--table", "w.csv", "--plot", "w.png"]
    assert main(["whatif", "s.json", "--policies", "fcfs, easy,sjf+easy", *files]) == 0
    said = capsys.readouterr().out
    found = what_if(folder / "s.json", ["fcfs", "easy", "sjf+easy"])
    assert said.startswith("s.json, from 300000 s until all work has ended; score: raw:1*wait_mean, lower is better\n")
    assert f"best: {found.best.name}, which starts" in said
    assert [line.split()[0] for line in said.splitlines()[3:6]] == ["fcfs", "easy", "sjf+easy"]
    document = json.loads((folder / "w.json").read_text())
    assert document["best"] == found.best.name
    assert [each["score"] for each in document["policies"]] == [each.score for each in found]
    with (folder / "w.csv").open(newline="") as file:
        assert [row["policy"] for row in csv.DictReader(file)] == ["fcfs", "easy", "sjf+easy"]
    assert (folder / "w.png").read_bytes().startswith(b"\x89PNG")


def test_processes_say_the_same_and_another_seed_does_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = []
    for seed, workers in (("5", "1"), ("5", "2"), ("6", "1")):
        drawn = ["--arrivals", "more.toml", "--samples", "3", "--seed", seed, "--workers", workers]
        assert (
            main(["whatif", "s.json", "--policies", "fcfs,easy", *drawn, "--deadline", "600", "--json", "w.json"]) == 0
        )
        assert "means of 3 samples" in capsys.readouterr().out
        scores.append([each["scores"] for each in json.loads((folder / "w.json").read_text())["policies"]])
    assert scores[0] == scores[1] != scores[2]
    assert len(set(scores[0][0])) == 3


def test_a_policy_that_dies_or_fails_stops_nobody(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["whatif", "s.json", "--workers", "2", "--horizon", "3600", "--policies"]
    assert main([*command, "own_policies:dies,easy,own_policies:wrong"]) == 0
    said = capsys.readouterr().out
    assert "own_policies:dies: failed: its worker process died (exit code 3)" in said
    assert "own_policies:wrong: failed: ZeroDivisionError: division by zero (line 5 of own_policies.py)" in said
    assert "best: easy" in said
    assert main([*command, "own_policies:wrong"]) == 2
    out, err = capsys.readouterr()
    assert "nothing to decide" in out
    assert err == "simmodel: no policy finished\n"


def test_a_policy_that_blocks_is_left_at_the_deadline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", "s.json", "--deadline", "10", "--policies", "easy,own_policies:blocks"]) == 0
    said = capsys.readouterr().out
    assert "own_policies:blocks: unfinished: not finished by the deadline of 10 s" in said
    assert "best: easy" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["whatif", "missing.json", "--policies", "easy"], r"missing.json: no such file"),
        (["whatif", "more.toml", "--policies", "easy"], r"more.toml"),
        (["whatif", "s.json", "--policies", "esay"], r"did you mean 'easy'"),
        (["whatif", "s.json", "--policies", ","], r"policies: must have at least one policy"),
        (["whatif", "s.json", "--policies", "easy,easy"], r"duplicate policy 'easy'"),
        (["whatif", "s.json", "--policies", "easy", "--objective", "speed"], r"speed"),
        (["whatif", "s.json", "--policies", "easy", "--horizon", "0"], r"--horizon: must be a time > 0"),
        (["whatif", "s.json", "--policies", "easy", "--samples", "3"], r"--samples needs --arrivals"),
        (["whatif", "s.json", "--policies", "easy", "--samples", "0"], r"--samples: must be a whole number >= 1"),
        (["whatif", "s.json", "--policies", "easy", "--arrivals", "nowhere"], r"unknown workload 'nowhere'"),
        (["whatif", "s.json", "--policies", "easy", "--arrivals", "none.toml"], r"none.toml: no such file"),
        (["whatif", "s.json", "--policies", "easy", "--json", "no/such/folder"], r"no folder"),
        (["batch", "probe-4", "--snapshot", "x.json"], r"--snapshot needs the time of the snapshot"),
        (["batch", "probe-4", "--snapshot", "no/x.json", "--at", "5"], r"no folder"),
    ],
)
def test_wrong_input_gets_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status = main(arguments)
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(sentence, err), err
