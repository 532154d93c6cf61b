"""The plots of results of jobs, whole pages of one run and of several; matplotlib is imported when one is drawn.

Each function draws on ``ax`` or on a new figure of ``figsize`` inches and returns the axes; whole pages return their
figure. ``title`` replaces the default title.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.metrics.batch import TAU, Cut, summary
from simmodel.metrics.comparison import compare, metrics_known
from simmodel.metrics.report import metric_text
from simmodel.view.gantt import EXACT, gantt, pieces
from simmodel.view.menu import Plot, PlotMenu
from simmodel.view.portfolio_plots import portfolio_page, radar, score_over_time, starts_by_policy
from simmodel.view.result_plots import cdf, power_over_time, queue, utilisation, value_by_bin
from simmodel.view.style import INK, Size, coloured, figure, headline, page, tidy
from simmodel.view.workload_plots import arrivals, size_and_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.metrics.comparison import Measured
    from simmodel.records.job_record import JobRecord

__all__ = [
    "ResultPlots",
    "arrivals",
    "cdf",
    "comparison",
    "gantt",
    "overview",
    "portfolio_page",
    "power_over_time",
    "queue",
    "radar",
    "score_over_time",
    "size_and_run",
    "starts_by_policy",
    "utilisation",
    "value_by_bin",
]

_HEADLINE = ("utilisation", "wait_mean", "bounded_slowdown_mean", "makespan")
_COMPARED = (
    ("wait_mean", "bounded_slowdown_mean", "utilisation", "queue_length_mean"),
    ("makespan", "slr", "speedup", "utilisation"),
)
_WORDS = {
    "utilisation": "utilisation",
    "wait_mean": "mean wait",
    "bounded_slowdown_mean": "mean bounded slowdown",
    "makespan": "makespan",
}


def overview(result: JobRecord, *, title: str | None = None, figsize: Size | None = None) -> Figure:
    """Draw one run on one page: processors and queue over time, wait by size, and the distribution of waits.

    The first panel is a Gantt chart of a run of few executions, and the number of busy processors of a longer one.

    Parameters
    ----------
    title, figsize
        another title than the run's name (``""``: none); width and height of the figure, inches
    """
    with page((10.5, 7.6), figsize, pad=(0.12, 0.08)) as fig:
        grid = fig.add_gridspec(3, 2, height_ratios=(1.7, 0.9, 1.35))
        top, middle = fig.add_subplot(grid[0, :]), fig.add_subplot(grid[1, :])
        if len(result.places) == 1 and len(result.runs) <= EXACT and len(pieces(result)[1]) <= EXACT:
            gantt(result, title="executions, darker the longer the job had waited", ax=top)
        else:
            utilisation(result, ax=top)
        top.set_xlabel("")
        queue(result, ax=middle)
        value_by_bin(result, ax=fig.add_subplot(grid[2, 0]))
        cdf(result, ax=fig.add_subplot(grid[2, 1]))
    metrics = summary(result)
    told = [f"{_WORDS[name]} {metric_text(name, metrics[name])}" for name in _HEADLINE if math.isfinite(metrics[name])]
    head = f"{len(result.jobs):,} jobs on {result.processors:,} processors"
    headline(top, result.name if title is None else title, " · ".join([head, *told]))
    return fig


def comparison(
    results: Sequence[Measured],
    *,
    metrics: Sequence[str] | None = None,
    warmup: Cut = None,
    cooldown: Cut = None,
    tau: float = TAU,
    title: str | None = None,
    figsize: Size | None = None,
) -> Figure:
    """Draw metrics of several results as bars, one panel per metric, in the order of the results.

    Parameters
    ----------
    metrics
        names of the results' ``METRICS``; default: wait, slowdown, utilisation and queue length of jobs, or makespan,
        SLR, speedup and utilisation of tasks
    warmup, cooldown, tau
        of metrics of jobs, as of :func:`simmodel.metrics.batch.summary`
    title, figsize
        title of the page; width and height of the figure, inches
    """
    first = results[0]
    if metrics is None:
        metrics = next(names for names in _COMPARED if first.METRICS.keys() >= set(names))
    labels = metrics_known(results)
    table = compare(results, metrics, warmup=warmup, cooldown=cooldown, tau=tau)
    columns = min(2, len(metrics))
    rows = -(-len(metrics) // columns)
    fig = figure((5.2 * columns, 0.9 + rows * (0.7 + 0.3 * len(results))), figsize, title, pad=(0.12, 0.1))
    names = table["result"].tolist()
    for number, name in enumerate(metrics):
        ax = fig.add_subplot(rows, columns, number + 1)
        values = table[name].astype(np.float64)
        lengths = np.nan_to_num(values)
        colours = [colour for _, colour in coloured(names)]
        ax.barh(np.arange(len(names)), lengths, height=0.68, color=colours, alpha=0.9)
        for y, value in enumerate(values.tolist()):
            text = first.metric_text(name, value)
            ax.annotate(text, (lengths[y], y), (4, 0), textcoords="offset points", va="center", fontsize=8.5, color=INK)
        ax.set_yticks(np.arange(len(names)), names if number % columns == 0 else [""] * len(names))
        ax.set_xlim(0, 1.3 * max(float(lengths.max(initial=0.0)), 1e-12))
        ax.set_xticks([])
        ax.invert_yaxis()
        tidy(ax, grid="", title=labels[name][1])
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    return fig


class ResultPlots(PlotMenu):
    """The plots of one result of jobs: ``result.plot``.

    Parameters
    ----------
    result
        the run

    >>> from simmodel import Result
    >>> result = Result(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}, processors=4)
    >>> result.plot.queue().get_ylabel()
    'waiting jobs'
    """

    def __init__(self, result: JobRecord) -> None:
        self._result = result

    gantt = Plot(gantt)
    utilisation = Plot(utilisation)
    queue = Plot(queue)
    power = Plot(power_over_time)
    wait_by_bin = Plot(value_by_bin)
    cdf = Plot(cdf)
    scores = Plot(score_over_time)
    starts_by_policy = Plot(starts_by_policy)
    overview = Plot(overview)
