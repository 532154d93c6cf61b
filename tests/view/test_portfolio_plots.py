"""Plots of runs under a portfolio."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simmodel.experiments.portfolio_comparison import compare_portfolio
from simmodel.foundation.errors import InputError
from simmodel.studies.schedtwin import (
    schedtwin_portfolio,
)
from simmodel.view.portfolio_plots import portfolio_page, radar, score_over_time, starts_by_policy
from tests.helpers.phased_jobs import draw_small


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
    with pytest.raises(InputError, match="must be a run under a portfolio"):
        score_over_time(runs.results[0])
