"""``simmodel twin predict`` from an audit log, events and a history."""

import csv
import json
from pathlib import Path

import pytest

from simmodel.cli import main
from simmodel_site.twin.events import Demand, Ended, Event, Passed, Started, Submitted
from simmodel_site.twin.predictions import Foretold, PredictionLog

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


def test_predictions_are_judged_once_their_jobs_have_started(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "predict", str(config)]) == 0
    said = capsys.readouterr().out
    assert "no job of an earlier prediction has started yet" in said
    assert "scheduler" not in said
    book = config.with_name("twin.toml.predictions.jsonl")
    assert [json.loads(line)["job"] for line in book.read_text("utf-8").splitlines()] == [2, "x y"]
    about = {"cluster": "alps", "submit": 0.0}
    later = [
        Ended(**about, job=1, time=3600.0),
        Started(**about, job=2, time=3600.0),
        Passed(cluster="alps", time=3601.0),
    ]
    with config.with_name("events.jsonl").open("a") as file:
        file.writelines(event.line() + "\n" for event in later)
    with book.open("a", encoding="utf-8") as file:
        file.write('{"at": 3000, "job": 2, "submit": 0, "predicted": 3300, "low": 3200, "high": 3500}\nno prediction\n')
    table = config.with_name("judged.csv")
    assert main(["twin", "predict", str(config), "--table", str(table)]) == 0
    said = capsys.readouterr().out
    assert "of 2 earlier predictions whose job has started since, 50 % held; off by 2 min 30 s in the median" in said
    assert "1 line that cannot be read, passed over" in said
    row = next(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert (row["job"], row["predicted"], row["held"]) == ("x y", "4200", "0 %")  # looks less than 10 min ahead
    kept = [json.loads(line) for line in book.read_text("utf-8").splitlines() if line != "no prediction"]
    assert [each for each in kept if "started" in each] == [{"job": 2, "submit": 0.0, "started": 3600.0}]


def test_the_scheduler_is_judged_beside_them(tmp_path: Path) -> None:
    book = PredictionLog(tmp_path / "book.jsonl")
    starts = {1: 100.0, 2: 200.0, 3: 300.0}
    for job, start in starts.items():
        foretold = None if job == 3 else start + 40 * job
        book.add([Foretold(at=50, job=job, submit=0, predicted=start - 10, low=90, high=210, scheduler=foretold)])
    book.add([Foretold(at=50, job=9, submit=0), Foretold(at=150, job=1, submit=0, predicted=170, low=160, high=170)])
    book.settle(lambda job, submit: starts.get(int(job)))
    again = PredictionLog(book.path)
    assert [(each.job, each.held) for each in again.settled()] == [(1, True), (2, True), (3, False)]
    verdict = "off by 10 s in the median, the scheduler by 1 min (the 2 for which both told a start)"
    assert again.verdict() == f"of 3 earlier predictions whose job has started since, 67 % held; {verdict}"


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
