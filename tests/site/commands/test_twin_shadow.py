"""``simmodel twin shadow`` on logs and configurations."""

from pathlib import Path

import pytest

from simmodel import simulate
from simmodel.cli import main
from simmodel.formats import write_swf
from simmodel.generators import lublin


def recorded(path: Path, policy: str) -> None:
    """Write a log with the waits under a policy."""
    log = lublin(120, 32, seed=3)
    log = log.replace(submit=log["submit"].round(), run=log["run"].round(), processors=32)
    jobs = simulate(32, log, policy).jobs
    write_swf(log.replace(wait=jobs["wait"], run=jobs["run"]), path)


@pytest.mark.long  # the shadow itself: tests/site/twin/test_shadow.py
def test_a_log_is_explained_by_its_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "log.swf", "fcfs")
    table, picture = tmp_path / "starts.csv", tmp_path / "shadow.png"
    arguments = ["--policy", "fcfs", "--processors", "32", "--table", str(table), "--plot", str(picture)]
    assert main(["twin", "shadow", str(tmp_path / "log.swf"), *arguments]) == 0
    said = capsys.readouterr().out
    assert "explained by fcfs" in said
    assert "100 %" in said
    assert len(table.read_text("utf-8").splitlines()) == 121
    assert picture.stat().st_size > 10_000


def test_a_configuration_names_source_policies_and_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "log.swf", "sjf")
    config = tmp_path / "twin.toml"
    config.write_text(
        'cluster = "alps"\nplatform = "machine.toml"\npolicy = "sjf"\nclock = "events"\naudit = "audit.jsonl"\n'
        '[source]\nkind = "log"\nlog = "log.swf"\n[advise]\npolicy = "easy"\n'
    )
    (tmp_path / "machine.toml").write_text('kind = "cluster"\n[[partitions]]\nprocessors = 32\n')
    assert main(["twin", "shadow", str(config)]) == 0
    said = capsys.readouterr().out
    assert "explained by sjf  " in said
    assert "mean wait under easy" in said
    assert not (tmp_path / "audit.jsonl").exists()


def test_a_policy_that_imports_code_needs_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path / "log.swf", "easy")
    (tmp_path / "policy_of_shadow.py").write_text("from simmodel.policies import Easy as Own\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = tmp_path / "twin.toml"
    config.write_text(
        'cluster = "alps"\nplatform = "machine.toml"\npolicy = "policy_of_shadow:Own"\nclock = "events"\n'
        '[source]\nkind = "log"\nlog = "log.swf"\n'
    )
    (tmp_path / "machine.toml").write_text('kind = "cluster"\n[[partitions]]\nprocessors = 32\n')
    assert main(["twin", "shadow", str(config)]) == 2
    assert "policy: must be a known policy" in capsys.readouterr().err
    assert main(["twin", "shadow", str(config), "--trust"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[-2:] for line in said if "explained by" in line] == [["100", "%"]]


def test_a_log_without_waits_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["twin", "shadow", "probe-4"]) == 2
    assert "probe-4: must have jobs with recorded waits, got 4 without" in capsys.readouterr().err
