"""Comparison of a portfolio with its policies: one run of each, and pairs over seeds."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from simmodel import simulate
from simmodel.experiments.portfolio_comparison import compare_portfolio, replicate_portfolio
from simmodel.foundation.errors import InputError
from simmodel.metrics.objective_scores import final_scores, kiviat
from simmodel.policies.portfolio import Portfolio
from simmodel.studies.schedtwin import (
    schedtwin_portfolio,
)
from tests.helpers.phased_jobs import draw_small


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
    with pytest.raises(InputError, match="portfolio: must be a portfolio, got 'easy'"):
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


@pytest.mark.long  # smaller: the other tests of the file
def test_replications_run_in_other_processes_as_here():
    portfolio = schedtwin_portfolio(hysteresis=0.05)
    here = replicate_portfolio(32, draw_small, portfolio, seeds=[7, 8])
    with ProcessPoolExecutor(1) as pool:
        there = replicate_portfolio(32, draw_small, portfolio, seeds=[7, 8], executor=pool)
    for name in here.samples.names:
        assert there.samples[name].tolist() == pytest.approx(here.samples[name].tolist(), nan_ok=True)
