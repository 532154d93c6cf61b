"""``simmodel twin predict`` from an audit log, events and a history."""

from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel.twin.events import Demand, Event, Passed, Started, Submitted

ABOUT = {"cluster": "alps", "submit": 0.0, "time": 0.0}
EVENTS: list[Event] = [
    Submitted(**ABOUT, job=1, request=Demand(processors=4, requested=3600.0, user="ada")),  # type: ignore[arg-type]
    Submitted(**ABOUT, job=2, request=Demand(processors=4, requested=600.0, user="ada")),  # type: ignore[arg-type]
    Submitted(**ABOUT, job="x y", request=Demand(processors=4, requested=60.0)),  # type: ignore[arg-type]
    Started(**ABOUT, job=1),  # type: ignore[arg-type]
    Passed(cluster="alps", time=0.0),
]
HISTORY = "submit,run,processors,requested,user\n" + "0,100,4,3600,ada\n" * 8


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text("".join(event.line() + "\n" for event in EVENTS))
    (tmp_path / "machine.toml").write_text('kind = "cluster"\n[[partitions]]\nprocessors = 4\n')
    (tmp_path / "history.csv").write_text(HISTORY)
    file = tmp_path / "twin.toml"
    file.write_text(
        'cluster = "alps"\nplatform = "machine.toml"\nclock = "events"\naudit = "audit.jsonl"\n'
        '[source]\nkind = "lines"\npath = "events.jsonl"\nfollow = false\n'
    )
    return file


def starts(config: Path, *arguments: str) -> list[str]:
    """Return the first columns of the table: the jobs and their predicted starts."""
    table = config.with_name("starts.csv")
    assert main(["twin", "predict", str(config), *arguments, "--table", str(table), "-q"]) == 0
    return [",".join(line.split(",")[:3]) for line in table.read_text("utf-8").splitlines()[1:]]


def test_starts_follow_from_requested_times(config: Path) -> None:
    assert starts(config) == ["2,0,3600", "x y,0,4200"]
    assert starts(config, "x y", "--draws", "0") == ["x y,0,4200"]


def test_a_history_shortens_them(config: Path) -> None:
    history = str(config.with_name("history.csv"))
    assert starts(config, "2", "--history", history, "--predictor", "recent-two", "--draws", "5") == ["2,0,100"]


def test_the_audit_log_has_the_state_too(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "run", str(config)]) == 0
    config.with_name("events.jsonl").write_text("")
    assert starts(config) == ["2,0,3600", "x y,0,4200"]
    capsys.readouterr()
    assert main(["twin", "predict", str(config), "2"]) == 0
    assert "alps at 0 s" in capsys.readouterr().out


def test_what_does_not_wait_is_refused(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "predict", str(config), "7"]) == 2
    assert "unknown waiting job '7'" in capsys.readouterr().err
    config.with_name("events.jsonl").write_text("")
    assert main(["twin", "predict", str(config)]) == 2
    assert "source: must tell something, got no event" in capsys.readouterr().err


def test_a_policy_that_imports_code_needs_trust(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.with_name("policy_of_predict.py").write_text("from simmodel.policies import Easy as Own\n")
    monkeypatch.syspath_prepend(str(config.parent))
    config.write_text('policy = "policy_of_predict:Own"\n' + config.read_text("utf-8"))
    assert main(["twin", "predict", str(config)]) == 2
    assert "policy: must be a known policy" in capsys.readouterr().err
    assert starts(config, "2", "--trust") == ["2,0,3600"]
