"""The plots of results of jobs, whole pages of one run and of several; matplotlib is imported when one is drawn.

Each function draws on ``ax`` or on a new figure of ``figsize`` inches and returns the axes; whole pages return their
figure. ``title`` replaces the default title.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from simmodel.metrics.batch import TAU, Cut, summary
from simmodel.metrics.comparison import compare, metrics_known
from simmodel.metrics.report import duration, metric_text
from simmodel.view.gantt import EXACT, gantt, pieces
from simmodel.view.portfolio_plots import portfolio_page, radar, score_over_time, starts_by_policy
from simmodel.view.result_plots import cdf, gpus_over_time, power_over_time, queue, utilisation, value_by_bin
from simmodel.view.style import (
    BLUE,
    INK,
    Look,
    Plot,
    PlotMenu,
    Size,
    about,
    axes,
    checked_colour,
    colour_bar,
    coloured,
    drawn,
    headline,
    narrow,
    panels,
    sequence,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.metrics.comparison import Measured
    from simmodel.metrics.statistics import Interval
    from simmodel.records.job_record import JobRecord
    from simmodel.work.workload import Workload

__all__ = [
    "ResultPlots",
    "arrivals",
    "cdf",
    "comparison",
    "gantt",
    "gpus_over_time",
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


@drawn
def size_and_run(
    workload: Workload,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the number of processors of jobs against their run times, both logarithmic.

    Jobs that ran for less than a second are drawn at one second; more than 2,000 jobs are counted in hexagons.

    Parameters
    ----------
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    ax = axes(ax, (6.4, 4.2), figsize)
    run, size = workload["run"], workload["processors"]
    known = (run >= 0) & (size > 0)
    left_out = int((~known).sum())
    run, size = np.maximum(run[known], 1.0), size[known].astype(np.float64)
    own = f"{workload.name}: {len(run):,} jobs" + (f" ({left_out:,} without size or run time)" if left_out else "")
    if len(run) > 2000:
        shown = ax.hexbin(
            run, size, xscale="log", yscale="log", gridsize=(44, 26), bins="log", mincnt=1, cmap=sequence()
        )
        colour_bar(ax, shown, fraction=0.04, title="jobs")
    else:
        ax.scatter(run, size, s=14, color=BLUE, alpha=0.5, linewidths=0)
        ax.set_xscale("log")
        ax.set_yscale("log")
    longest = float(run.max(initial=1.0))
    marks = [(1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (21600, "6 h"), (86400, "1 d")]
    marks = [mark for mark in [*marks, (604800, "1 wk")] if mark[0] <= 1.5 * longest]
    ax.set_xticks([at for at, _ in marks], [text for _, text in marks])
    powers = 2.0 ** np.arange(0, np.ceil(np.log2(max(size.max(initial=2.0), 2.0))) + 1)
    powers = powers[:: 1 + len(powers) // 9]
    ax.set_yticks(powers, [f"{power:,.0f}" for power in powers])
    ax.minorticks_off()
    ax.set_ylim(0.8 * size.min(initial=1e9), 1.3 * size.max(initial=1.0))
    ax.set_xlabel("run time")
    ax.set_ylabel("processors")
    return tidy(ax, grid="both", title=title, default=own)


def _offset(workload: Workload) -> float:
    """Return the seconds from midnight (local time, if the header has the zone) to the log's second 0."""
    try:
        start = float(workload.header.get("UnixStartTime", "0").split()[0])
    except (ValueError, IndexError):
        return 0.0
    zone = workload.header.get("TimeZoneString", "").strip()
    if not zone or not start:
        return start
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo

    try:
        shift = datetime.fromtimestamp(start, ZoneInfo(zone)).utcoffset() or timedelta()
    except (KeyError, ValueError, OSError, OverflowError):
        return start
    return start + shift.total_seconds()


@drawn
def arrivals(
    workload: Workload,
    *,
    colour: str = BLUE,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw how many jobs are submitted in each hour of the day, on average.

    Hours are local time if the header of the log has its start and time zone, else counted from its second 0.

    Parameters
    ----------
    colour
        any colour of matplotlib
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    colour, ax = checked_colour(colour), axes(ax, (6.4, 3.0), figsize)
    submit = workload["submit"]
    hours = np.floor((submit + _offset(workload)) % 86400 / 3600).astype(int)
    days = max((float(np.ptp(submit)) if len(submit) else 0.0) / 86400, 1.0)
    counts = np.bincount(hours, minlength=24) / days
    ax.bar(np.arange(24) + 0.5, counts, width=0.86, color=colour, alpha=0.9)
    ax.set_xticks(np.arange(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
    ax.set_xlim(0, 24)
    ax.set_xlabel("hour of the day")
    ax.set_ylabel("jobs an hour")
    return tidy(ax, title=title, default=f"{workload.name}: {len(submit):,} jobs over {days:,.4g} days")


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


@drawn
def overview(
    result: JobRecord, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw one run on one page: processors and queue over time, wait by size, and the distribution of waits.

    The first panel is a Gantt chart of a run of few executions, and the number of busy processors of a longer one.

    Parameters
    ----------
    title, figsize
        another title than the run's name (``""``: none); width and height of the figure, inches
    """
    fig, (top, middle, left, right) = panels((10.5, 7.6), [(1.7, "a"), (0.9, "b"), (1.35, "cd")], figsize)
    if len(result.places) == 1 and len(result.runs) <= EXACT and len(pieces(result)[1]) <= EXACT:
        gantt(result, title="executions, darker the longer the job had waited", ax=top)
    else:
        utilisation(result, ax=top)
    top.set_xlabel("")
    queue(result, ax=middle)
    value_by_bin(result, ax=left)
    cdf(result, ax=right)
    metrics = summary(result)
    told = [f"{_WORDS[name]} {metric_text(name, metrics[name])}" for name in _HEADLINE if math.isfinite(metrics[name])]
    headline(fig, about(result) if title is None else title, " · ".join(told))
    return fig


@drawn
def comparison(
    results: Sequence[Measured],
    *,
    metrics: Sequence[str] | None = None,
    warmup: Cut = None,
    cooldown: Cut = None,
    tau: float = TAU,
    intervals: Mapping[str, Sequence[Interval]] | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw metrics of several results as bars, one panel per metric, in the order of the results.

    Parameters
    ----------
    metrics
        names of the results' ``METRICS``; default: wait, slowdown, utilisation and queue length of jobs, or makespan,
        SLR, speedup and utilisation of tasks
    warmup, cooldown, tau
        of metrics of jobs, as of :func:`simmodel.metrics.batch.summary`
    intervals
        by metric, the interval of each result; drawn on the bars
    title, figsize
        title of the page; default: log, number of jobs, machine and policy if the runs share them; its size, inches
    """
    first = results[0]
    if metrics is None:
        metrics = next(names for names in _COMPARED if first.METRICS.keys() >= set(names))
    labels = metrics_known(results)
    table = compare(results, metrics, warmup=warmup, cooldown=cooldown, tau=tau)
    names = table["result"].tolist()
    letters = "".join(chr(ord("a") + number) for number in range(len(metrics)))
    pairs = [f"{letters[i : i + 2]:.<{min(2, len(letters))}}" for i in range(0, len(letters), 2)]
    size = 5.2 * len(pairs[0]), 0.9 + len(pairs) * (0.7 + 0.3 * len(results))
    fig, shown = panels(size, [(1, pair) for pair in pairs], figsize, title)
    known = intervals or {}
    at, colours = np.arange(len(names)), [colour for _, colour in coloured(names)]
    for number, (name, ax) in enumerate(zip(metrics, shown, strict=True)):
        values = table[name].astype(np.float64)
        half = np.array([each.half_width for each in known[name]] if name in known else [np.nan] * len(at))
        lengths, widths = np.nan_to_num(values), np.nan_to_num(half)
        ax.barh(at, lengths, height=0.68, color=colours, alpha=0.9)
        ax.errorbar(lengths, at, xerr=half, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2)
        for y, value in enumerate(values.tolist()):
            text = duration(value, days=3) if labels[name][0] == "s" else first.metric_text(name, value)
            end = (lengths[y] + widths[y], y)
            ax.annotate(text, end, (4, 0), textcoords="offset points", va="center", color=INK)
        ax.set_yticks(at, names if number % 2 == 0 or narrow(fig) else [""] * len(names))
        ax.set_xlim(0, 1.4 * max(float((lengths + widths).max(initial=0.0)), 1e-12))
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
    gpus = Plot(gpus_over_time)
    wait_by_bin = Plot(value_by_bin)
    cdf = Plot(cdf)
    scores = Plot(score_over_time)
    starts_by_policy = Plot(starts_by_policy)
    overview = Plot(overview)
