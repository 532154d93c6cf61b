"""The command portfolio: its output files, and one sentence for each invalid input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from simmodel import Job, load_result, load_scenario, simulate
from simmodel.cli import main
from simmodel.formats.swf import write_swf
from simmodel.policies.portfolio import Portfolio
from simmodel.view.portfolio_plots import score_over_time, starts_by_policy
from tests.helpers.phased_jobs import draw_small


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_swf(draw_small(seed=1), tmp_path / "log.swf")
    return tmp_path


@pytest.mark.long  # smaller: the other tests of the file
def test_the_command_writes_what_came_out(folder: Path, capsys: pytest.CaptureFixture[str]):
    files = ["--schedule", "s.csv", "--choices", "c.csv", "--json", "o.json", "--db", "o.sqlite", "--plot", "o.png"]
    given = [
        "portfolio",
        "log.swf",
        "--policies",
        "fcfs,sjf",
        "--ties",
        "sjf",
        "--hysteresis",
        "0.01",
        "--interval",
        "9",
    ]
    assert main([*given, "--objective", "wait_max=0.5,slowdown_mean=0.5", *files]) == 0
    said = capsys.readouterr().out
    assert "log: 26 jobs on 32 processors\nobjective: 0.5*wait_max+0.5*slowdown_mean\n" in said
    expected = simulate(
        32,
        folder / "log.swf",
        Portfolio(
            {"fcfs": "easy", "sjf": "sjf+easy"}, "wait_max+slowdown_mean", ties=["sjf"], hysteresis=0.01, interval=9
        ),
    )
    with (folder / "s.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["start"]) for row in rows] == expected.jobs["start"].tolist()
    assert [row["started_by"] for row in rows] == expected.jobs["started_by"].tolist()
    with (folder / "c.csv").open(newline="") as file:
        choices = list(csv.DictReader(file))
    assert [float(row["time"]) for row in choices] == expected.choices["time"].tolist()
    document = json.loads((folder / "o.json").read_text())
    assert [run["policy"] for run in document["portfolio"]["runs"]] == ["fcfs", "sjf", "portfolio"]
    assert document["portfolio"]["runs"][2]["started"] is None
    stored = load_result(folder / "o.sqlite")
    assert stored.choices["score"].tolist() == pytest.approx((0.5 * expected.choices["score"]).tolist())
    assert stored.choices["chosen"].tolist() == expected.choices["chosen"].tolist()
    assert starts_by_policy(stored) is not None
    assert score_over_time(stored) is not None
    again = load_scenario(folder / "o.json").run()
    assert again.jobs["start"].tolist() == expected.jobs["start"].tolist()
    assert (folder / "o.png").stat().st_size > 10_000


def test_a_portfolio_is_a_policy_of_the_other_commands(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["batch", "log.swf", "--policy", "portfolio(easy, sjf+easy, objective=wait_mean)"]) == 0
    assert main(["compare", "log.swf", "--policies", "easy,portfolio(easy, sjf+easy)", "--table", "t.csv"]) == 0
    with (folder / "t.csv").open(newline="") as file:
        assert [row["result"] for row in csv.DictReader(file)] == ["easy", "portfolio(easy, sjf+easy)"]
    capsys.readouterr()
    assert main(["list", "policies"]) == 0
    said = capsys.readouterr().out
    assert "portfolio(A, B, ...)" in said


def test_an_objective_may_be_a_function_of_ones_own(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "mine_of_this_test.py").write_text("def last(future):\n    return float(future.jobs['end'].max())\n")
    assert main(["portfolio", "log.swf", "--objective", "mine_of_this_test:last"]) == 0
    assert "objective: last" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policies", "fcfs,esay"], "unknown policy 'esay'; did you mean 'easy'"),
        (["--policies", ","], "--policies: must name at least one policy, got ','"),
        (["--platform", "hetsim-slow"], "hetsim-slow: must be a platform that runs jobs, got a machine"),
        (["--policies", "fcfs,fcfs"], "duplicate policy 'fcfs'"),
        (["--objective", "wait"], "objective 'wait': unknown measure 'wait'; did you mean 'wait_max'"),
        (
            ["--objective", "nowhere:f"],
            "objective 'nowhere:f': neither scale (min-max, mean, raw) nor module:function: No module",
        ),
        (["--ties", "ljf"], "unknown tie policy 'ljf'"),
        (["--hysteresis", "-1"], "--hysteresis: must be a number >= 0, got '-1'"),
        (["--interval", "0"], "--interval: must be a time > 0"),
        (["--plot", "o.xyz"], "a picture (."),
    ],
)
def test_wrong_arguments_get_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str], arguments, sentence):
    status = main(["portfolio", "log.swf", *arguments])
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_jobs_by_hand_under_the_command_s_default(folder: Path):
    jobs = [Job(processors=4, run=100), Job(submit=1, processors=4, run=50), Job(submit=90, processors=4, run=10)]
    assert simulate(4, jobs, "portfolio").jobs["start"].tolist() == [0, 110, 100]
