"""The actions of ``simmodel twin``: replay, replay-audit, check and run."""

import json
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.foundation.errors import InputError
from simmodel_site.twin import AuditLog, read_audit
from simmodel_site.twin.config import TwinConfig, read_config

TWIN = """\
cluster = "alps"
platform = "machine.toml"
audit = "audit.jsonl"
clock = "events"

[source]
kind = "lines"
path = "events.jsonl"
follow = false

[advise]
policy = "easy"
when = "passed"
deadline = "500ms"
"""
MACHINE = 'kind = "cluster"\n[[partitions]]\nprocessors = 4\n'
EVENTS = [
    {"kind": "submitted", "cluster": "alps", "time": 0, "job": 1, "submit": 0, "request": {"processors": 3}},
    {"kind": "passed", "cluster": "alps", "time": 0},
    {"kind": "nonsense"},
    {"kind": "submitted", "cluster": "alps", "time": 1, "job": 2, "submit": 1, "request": {"processors": 1}},
    {"kind": "passed", "cluster": "alps", "time": 1},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "twin.toml").write_text(TWIN)
    (tmp_path / "machine.toml").write_text(MACHINE)
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long  # a log of four jobs: the test after it
def test_a_log_is_replayed_and_its_decisions_made_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "replay", "schedtwin", "--audit", "a.jsonl", "--schedule", "s.csv", "--plot", "p.png"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("schedtwin: 150 jobs on 32 processors\n")
    assert "sjf+easy" in said
    assert len((folder / "s.csv").read_text().splitlines()) == 151
    assert (folder / "p.png").stat().st_size > 10_000
    assert main(["twin", "replay-audit", "a.jsonl"]) == 0
    again = capsys.readouterr().out
    assert again == "291 decisions, 291 reproduced, 0 differ\n"
    assert main(["twin", "replay", "schedtwin", "--audit", "a.jsonl"]) == 2
    assert "a.jsonl: exists: decisions of another run are not mixed with it" in capsys.readouterr().err


def test_a_replay_on_workers_is_the_same(folder: Path) -> None:
    for name, words in (("one", ""), ("two", " --workers 2 --deadline 1h")):
        assert main(f"twin replay probe-4 --processors 12 --audit {name}.jsonl -q{words}".split()) == 0

    def advices(name: str) -> list[dict[str, object]]:
        found = [record.values["advice"] for record in read_audit(folder / f"{name}.jsonl") if record.kind == "advice"]
        return [{key: each[key] for key in each if key != "seconds"} for each in found]

    assert advices("one") == advices("two") != []


def test_an_audit_that_differs_ends_with_status_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "run", "twin.toml"]) == 0
    with AuditLog("changed.jsonl") as log:
        for record in read_audit("audit.jsonl"):
            values = json.loads(json.dumps(record.values))
            if record.kind == "advice":
                values["advice"]["digest"] = "0" * 64
            log.add(record.kind, **values)
    capsys.readouterr()
    assert main(["twin", "replay-audit", "changed.jsonl"]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("2 decisions, 0 reproduced, 2 differ\n")
    assert "advice 1: digest" in said.err


def test_a_configuration_is_checked_and_run_and_continued(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "check", "twin.toml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "platform machine.toml: 4 processors in 1 partition",
        "policy fcfs; advice by easy, if late by fcfs",
        "source lines of alps: events alone, no full reports",
        "audit log audit.jsonl: can be written",
        "it may change nothing but its own files",
    ]
    assert not (folder / "audit.jsonl").exists()
    assert main(["twin", "run", "twin.toml"]) == 0
    assert capsys.readouterr().out == "following alps\nended: 2 decisions, 0 of them by the fallback\n"
    with open("events.jsonl", "a") as file:
        file.write(json.dumps({**EVENTS[3], "job": 3, "time": 2, "submit": 2}) + "\n")
        file.write(json.dumps({**EVENTS[4], "time": 2}) + "\n")
    assert main(["twin", "run", "twin.toml"]) == 0
    assert capsys.readouterr().out == "following alps\nended: 1 decisions, 0 of them by the fallback\n"
    advices = [record.values["advice"] for record in read_audit("audit.jsonl") if record.kind == "advice"]
    assert [(each["number"], each["time"]) for each in advices] == [(1, 0.0), (2, 1.0), (3, 2.0)]
    assert main(["twin", "replay-audit", "audit.jsonl"]) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("easy", "esay"), "twin.toml, advise.policy: unknown policy 'esay'; did you mean 'easy'?"),
        (("easy", "heft"), "policy: must decide when jobs start, got 'heft'"),
        (('kind = "lines"', 'kind = "linse"'), "source.kind: unknown source 'linse'; did you mean 'lines'?"),
        (('kind = "lines"\n', ""), "source.kind: missing key; known sources: lines, log, redis, pbs, slurm"),
        (('path = "events.jsonl"\n', ""), "source.path: missing key"),
        (("follow", "folow"), "source.folow: unknown key 'folow'; did you mean 'follow'?"),
        (('audit = "audit.jsonl"\n', ""), "audit: missing key: what is advised is written there"),
        (("500ms", "500 parsecs"), "advise.deadline: must be a quantity in s such as '11.5ms', got '500 parsecs'"),
        (("500ms", "0s"), "advise.deadline: must be a number > 0, got 0.0"),
        (("passed", "later"), "advise.when: must be 'quiet' or 'passed', got 'later'"),
        (("machine.toml", "none.toml"), "none.toml"),
        (("machine.toml", "hetsim-slow"), "platform: must be a cluster, got <MachineSpec"),
        (("alps", "alps\nrubbish"), "twin.toml"),
    ],
)
def test_wrong_configurations_get_one_sentence(
    change: tuple[str, str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "twin.toml").write_text(TWIN.replace(*change, 1))
    assert main(["twin", "run", "twin.toml"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_an_audit_log_has_one_twin(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with AuditLog("audit.jsonl"):
        assert main(["twin", "run", "twin.toml"]) == 2
    assert "audit.jsonl: is written by another process" in capsys.readouterr().err


def test_a_configuration_in_python_is_checked_too() -> None:
    source = {"kind": "lines", "path": "x"}
    with pytest.raises(InputError, match="policy: unknown policy 'nope'"):
        TwinConfig(cluster="alps", platform="theta", source=source, policy="nope")
    assert TwinConfig(cluster="alps", platform="theta", source=source).spec().processors == 4360


def test_the_folder_of_a_configuration_is_that_of_its_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    config = read_config(folder / "twin.toml")
    assert config.path("events.jsonl") == folder / "events.jsonl"
    assert config.spec().processors == 4
    (folder / "wrong.toml").write_text(f'folder = "/"\n{TWIN}')
    with pytest.raises(InputError, match="unknown key 'folder'"):
        read_config(folder / "wrong.toml")


SLOW = """\
import time
from simmodel import Policy


class Slow(Policy):
    def decide(self, view):
        time.sleep(30)
        return ()
"""


def test_a_policy_that_hangs_is_left_behind_each_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "slow_policy.py").write_text(SLOW)
    policy = "portfolio(slow_policy:Slow, fcfs, objective=wait_mean, every=true)"
    (folder / "twin.toml").write_text(TWIN.replace('"easy"', f'"{policy}"').replace("500ms", "200ms"))
    monkey = pytest.MonkeyPatch()
    monkey.syspath_prepend(str(folder))
    try:
        assert main(["twin", "run", "twin.toml"]) == 2
        assert "advise.policy: must be a known policy" in capsys.readouterr().err
        assert main(["twin", "run", "twin.toml", "--trust"]) == 0
    finally:
        monkey.undo()
    assert capsys.readouterr().out.endswith("ended: 2 decisions, 2 of them by the fallback\n")
    advices = [record.values["advice"] for record in read_audit("audit.jsonl") if record.kind == "advice"]
    assert [[start["job"] for start in each["starts"]] for each in advices] == [[1], [1, 2]]
    assert all("not finished by the deadline of 0.2 s" in each["reason"] for each in advices)
    assert main(["twin", "replay-audit", "audit.jsonl"]) == 2
    assert "imports code: pass trust=True (--trust) if you trust the file" in capsys.readouterr().err
