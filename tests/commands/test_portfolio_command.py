"""``simmodel portfolio``, its experiment, and its pictures."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simmodel import Job, load_result, load_scenario, simulate
from simmodel.cli import main
from simmodel.errors import InputError
from simmodel.experiments.portfolio_comparison import compare_portfolio, replicate_portfolio
from simmodel.formats.swf import write_swf
from simmodel.generators.phased import SCHEDTWIN, JobClass, schedtwin
from simmodel.metrics.objective_scores import final_scores, kiviat
from simmodel.policies.portfolio import Portfolio
from simmodel.studies.schedtwin import (
    PAPER_AREAS,
    PAPER_SHARES,
    schedtwin_portfolio,
    schedtwin_run,
    schedtwin_seeds,
)
from simmodel.view.radar import portfolio_page, radar, score_over_time, starts_by_policy

SMALL = (JobClass(6, (2, 4), (60, 180)), JobClass(8, (16, 20), (500, 700)), JobClass(12, (2, 4), (60, 180)))
draw_small = partial(schedtwin, classes=SMALL)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_swf(draw_small(seed=1), tmp_path / "log.swf")
    return tmp_path


# ---------------------------------------------------------------------- the workload


def test_classes_and_bounds_of_the_paper_s_workload():
    assert [(each.jobs, each.nodes, each.walltime) for each in SCHEDTWIN] == [
        (25, (2, 4), (60, 180)),
        (35, (16, 20), (500, 700)),
        (40, (6, 8), (200, 300)),
        (50, (2, 4), (60, 180)),
    ]
    seen = []
    for seed in range(20):
        log = schedtwin(seed=seed)
        assert log["submit"].tolist() == [5.0 * i for i in range(150)]
        assert (log["run"] == log["requested"]).all()
        first = 0
        for each in SCHEDTWIN:
            rows = slice(first, first + each.jobs)
            for name, (low, high) in (("processors", each.nodes), ("requested", each.walltime)):
                assert low <= log[name][rows].min() <= log[name][rows].max() <= high
            first += each.jobs
        seen.append(log)
    assert {int(n) for log in seen for n in log["processors"][25:60]} == {16, 17, 18, 19, 20}
    assert {float(log["requested"][60:100].max()) for log in seen} >= {300.0}
    assert (seen[0]["requested"] != seen[1]["requested"]).any()
    assert (schedtwin(seed=0)["requested"] == schedtwin(rng=np.random.default_rng(0))["requested"]).all()


def test_run_times_are_shares_of_the_walltime():
    half, drawn = schedtwin(run_share=0.5, seed=2), schedtwin(run_share=(0.2, 0.8), seed=2)
    assert (half["run"] == half["requested"] / 2).all()
    share = drawn["run"] / drawn["requested"]
    assert 0.2 <= share.min() < 0.3 < 0.7 < share.max() <= 0.8
    assert (half["requested"] == drawn["requested"]).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"run_share": 0}, "run_share: 0 < least <= most <= 1 expected, found 0"),
        ({"run_share": (0.5, 2)}, "run_share: 0 < least <= most <= 1 expected"),
        ({"processors": 19}, "classes: at most 19 nodes a job expected, found 20"),
        ({"gap": -1}, "gap: seconds >= 0 expected"),
        ({"classes": []}, "classes: at least one job expected, found none"),
        (
            {"classes": [{"jobs": 1, "nodes": [4, 2], "walltime": 60}]},
            "nodes: whole numbers 1 <= least <= most expected",
        ),
        ({"classes": [{"jobs": 1, "node": 2, "walltime": 60}]}, "classes: jobs, nodes and walltime of each expected"),
        ({"classes": [{"jobs": -1, "nodes": 2, "walltime": 60}]}, "jobs: a whole number from 0 on expected"),
    ],
)
def test_wrong_classes_get_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        schedtwin(**options)


# ---------------------------------------------------------------------- beside its policies


def test_a_portfolio_beside_its_policies():
    log = draw_small(seed=4)
    runs = compare_portfolio(32, log, schedtwin_portfolio(interval=30))
    assert runs.names == ("wfp", "fcfs", "sjf", "portfolio")
    alone = {name: simulate(32, log, f"{name}+easy") for name in ("wfp", "fcfs", "sjf")}
    for name, result in alone.items():
        assert runs.results[runs.names.index(name)].jobs["start"].tolist() == result.jobs["start"].tolist()
    again = simulate(32, log, schedtwin_portfolio(interval=30))
    assert runs.portfolio.jobs["start"].tolist() == again.jobs["start"].tolist()
    assert runs.scores.tolist() == final_scores([*alone.values(), again]).tolist()
    assert runs.chart.radii.tolist() == kiviat([*alone.values(), again]).radii.tolist()
    assert runs.shares["jobs"].sum() == len(log)
    rows = list(runs.table.rows())
    assert [row["policy"] for row in rows] == list(runs.names)
    assert sum(row["started"] for row in rows[:-1]) == pytest.approx(1)
    head = "longest wait greatest slowdown mean wait mean slowdown area score started"
    assert " ".join(runs.summary().splitlines()[0].split()) == head
    assert len(runs.summary().splitlines()) == 5
    assert repr(runs) == "<PortfolioComparison: wfp, fcfs, sjf, portfolio>"
    with pytest.raises(InputError, match="a portfolio expected, found 'easy'"):
        compare_portfolio(32, log, "easy")


def test_an_objective_of_few_measures_is_shown_on_the_usual_axes():
    runs = compare_portfolio(32, draw_small(seed=4), Portfolio(["easy", "sjf+easy"], "wait_mean"))
    assert runs.chart.axes == ("wait_max", "slowdown_max", "wait_mean", "slowdown_mean")
    own = compare_portfolio(32, draw_small(seed=4), Portfolio(["easy"], "utilisation+wait_max+turnaround_mean"))
    assert own.chart.axes == ("utilisation", "wait_max", "turnaround_mean")
    assert "%" in own.summary().splitlines()[1]


def test_seeds_are_compared_in_pairs():
    found = replicate_portfolio(32, draw_small, Portfolio(["easy", "sjf+easy"]), seeds=4)
    table = found.table()
    assert table["policy"].tolist() == ["easy", "sjf+easy", "portfolio"]
    for name in found.names:
        values = found.scores["portfolio"] - found.scores[name]
        assert found.difference(name).mean == pytest.approx(values.mean())
        assert found.mean("score", name).mean == pytest.approx(found.scores[name].mean())
    assert table["difference"][-1] == 0
    assert (found.values("wait_max")["easy"] > 0).all()
    assert (found.values("utilisation")["portfolio"] <= 1).all()
    assert len(found.summary().splitlines()) == 4
    assert repr(found) == "<PortfolioReplications: 4 seeds of easy, sjf+easy, portfolio>"


def test_replications_run_in_other_processes_as_here():
    portfolio = schedtwin_portfolio(hysteresis=0.05)
    here = replicate_portfolio(32, draw_small, portfolio, seeds=[7, 8])
    with ProcessPoolExecutor(1) as pool:
        there = replicate_portfolio(32, draw_small, portfolio, seeds=[7, 8], executor=pool)
    for name in here.samples.names:
        assert there.samples[name].tolist() == pytest.approx(here.samples[name].tolist(), nan_ok=True)


def test_the_paper_s_experiment():
    found = schedtwin_seeds([1, 2])
    assert set(PAPER_AREAS) == set(found.names)
    assert sum(PAPER_SHARES.values()) == pytest.approx(1)
    assert (found.scores["portfolio"] < found.scores["fcfs"]).all()
    runs = schedtwin_run(1)
    assert runs.names == found.names
    assert runs.scores.tolist() == [found.scores[name][0] for name in runs.names]


# ---------------------------------------------------------------------- pictures


def test_pictures_are_drawn():
    runs = compare_portfolio(32, draw_small(seed=4), schedtwin_portfolio())
    result = runs.portfolio
    _, ax = plt.subplots()
    assert radar(runs.chart, ax=ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"{name}, area {area:.2f}" for name, area in zip(runs.names, runs.chart.areas, strict=True)
    ]
    lines = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert len(lines) == 4
    for line, radii in zip(lines, runs.chart.radii, strict=True):
        assert np.hypot(line.get_xdata()[:4], line.get_ydata()[:4]) == pytest.approx(radii)
    scores = score_over_time(result)
    marks = [line for line in scores.lines if line.get_marker() == "|"]
    assert sum(len(line.get_xdata()) for line in marks) == (result.choices["chosen"] == 1).sum()
    starts = starts_by_policy(result)
    labels = [text.get_text().partition(",")[0] for text in starts.get_legend().get_texts()]
    assert labels == ["wfp", "fcfs", "sjf"]
    assert sum(line.get_ydata()[-1] for line in starts.lines) == len(result.jobs)
    for figure in (runs.plot(), portfolio_page(result)):
        figure.canvas.draw()
    assert result.plot.scores().get_ylabel() == "score (less is better)"
    assert result.plot.starts_by_policy().get_ylabel() == "jobs started"
    with pytest.raises(ValueError, match="it has no scores"):
        score_over_time(runs.results[0])


# ---------------------------------------------------------------------- the command line


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
        (["--policies", "fcfs,esay"], "policy 'esay' is not known; did you mean 'easy'"),
        (["--policies", ","], "--policies: at least one expected, found ','"),
        (["--platform", "hetsim-slow"], "hetsim-slow: a platform that runs jobs expected, found a machine"),
        (["--policies", "fcfs,fcfs"], "each policy once expected, found fcfs 2 times"),
        (["--objective", "wait"], "objective 'wait': measure 'wait' is not known; did you mean 'wait_max'"),
        (["--objective", "nowhere:f"], "a module before the colon expected: No module named 'nowhere'"),
        (["--ties", "ljf"], "policy of the ties 'ljf' is not known"),
        (["--hysteresis", "-1"], "argument --hysteresis: a share from 0 on expected, found -1"),
        (["--interval", "0"], "argument --interval: seconds > 0 expected, found 0"),
        (["--plot", "o.xyz"], "a picture (."),
    ],
)
def test_wrong_arguments_get_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str], arguments, sentence):
    try:
        status = main(["portfolio", "log.swf", *arguments])
    except SystemExit as error:
        status = error.code
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_jobs_by_hand_under_the_command_s_default(folder: Path):
    jobs = [Job(processors=4, run=100), Job(submit=1, processors=4, run=50), Job(submit=90, processors=4, run=10)]
    assert simulate(4, jobs, "portfolio").jobs["start"].tolist() == [0, 110, 100]
