"""Plots of choices among policies: of portfolios, and of what-ifs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np

from simmodel.metrics.objective_scores import MEASURES, Kiviat, not_a_portfolio, started_shares
from simmodel.scheduling.objectives import MEASURES as OF_JOBS
from simmodel.view.result_plots import queue
from simmodel.view.style import (
    BLUE,
    GREY,
    INK,
    PALE,
    Look,
    Size,
    axes,
    coloured,
    drawn,
    duration_axis,
    font_size,
    legend,
    narrow,
    panels,
    rows_named,
    span_axis,
    tidy,
    time_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon
    from numpy.typing import ArrayLike

    from simmodel.metrics.statistics import Interval
    from simmodel.records.job_record import JobRecord

__all__ = [
    "Future",
    "Futures",
    "outcomes",
    "portfolio_page",
    "radar",
    "replay_page",
    "score_over_time",
    "starts_by_policy",
]


@drawn
def radar(
    chart: Kiviat,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw a Kiviat figure: each run a polygon, the worst of the runs in the middle of an axis and the best at its end.

    Parameters
    ----------
    chart
        as :func:`simmodel.metrics.objective_scores.kiviat` returns it
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    ax = axes(ax, (5.2, 4.6), figsize)
    count = len(chart.axes)
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / count  # the first at the top, then clockwise
    spokes = np.column_stack([np.cos(angles), np.sin(angles)])
    for part in (0.25, 0.5, 0.75, 1.0):
        ax.add_patch(_polygon(part * spokes, edge=PALE))
    for i, name in enumerate(chart.axes):
        ax.plot([0, spokes[i, 0]], [0, spokes[i, 1]], color=PALE, linewidth=0.8)
        side = {-1: "right", 0: "center", 1: "left"}[int(np.sign(np.round(spokes[i, 0], 6)))]
        label, end = MEASURES[name][1].partition(" (")[0], (1.06 * spokes[i, 0], 1.09 * spokes[i, 1])
        ax.annotate(label, end, ha=side, va="center", color=INK)
    for (name, radii, area), colour in coloured(zip(chart.names, chart.radii, chart.areas.tolist(), strict=True)):
        corners = np.nan_to_num(radii)[:, None] * spokes
        ax.add_patch(_polygon(corners, face=colour, alpha=0.12))
        closed = np.vstack([corners, corners[:1]])
        ax.plot(closed[:, 0], closed[:, 1], color=colour, linewidth=1.6, marker="o", markersize=3.5)
        ax.plot([], [], color=colour, linewidth=1.6, marker="o", markersize=3.5, label=f"{name}, area {area:.2f}")
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.15, 1.2)
    ax.set_aspect("equal")
    ax.set_axis_off()
    legend(ax, "upper left", (-0.05, 0.02), columns=2)
    return tidy(ax, grid="", title=title, default="the best run on each axis is 1, the worst 0")


def _polygon(corners: ArrayLike, *, face: str = "none", edge: str = "none", alpha: float = 1.0) -> Polygon:
    from matplotlib.patches import Polygon

    return Polygon(np.asarray(corners), closed=True, facecolor=face, edgecolor=edge, linewidth=0.8, alpha=alpha)


def _policies(result: JobRecord) -> list[str]:
    """Return the policies of the portfolio in its order, then others that started jobs."""
    scores = result.choices
    named = dict.fromkeys(scores["policy"].tolist()) if scores is not None else {}
    return list(named | dict.fromkeys(started_shares(result)["policy"].tolist()))


@drawn
def starts_by_policy(
    result: JobRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw how many jobs each policy of a portfolio had started over time, and its share at the end.

    Parameters
    ----------
    result
        of a run under a portfolio
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the run was not under a portfolio
    """
    names = _policies(result)
    ax = axes(ax, figsize=figsize)
    jobs = result.jobs.where(result.jobs["started_by"].astype(str) != "")
    total = max(len(jobs), 1)
    for name, colour in coloured(names):
        starts = np.sort(jobs["start"][jobs["started_by"] == name])
        times = np.concatenate([[result.started], starts, [result.ended]])
        counts = np.concatenate([np.arange(len(starts) + 1), [len(starts)]])
        label = f"{name}, {100 * len(starts) / total:.0f} %"
        ax.plot(times, counts, drawstyle="steps-post", color=colour, linewidth=1.5, label=label)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("jobs started")
    time_axis(ax, result)
    legend(ax)
    return tidy(ax, title=title, default="jobs started by each policy of the portfolio")


@drawn
def score_over_time(
    result: JobRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the score of each policy at each choice of a portfolio and, below, the policy that was chosen.

    Parameters
    ----------
    result
        of a run under a portfolio
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the run was not under a portfolio
    """
    scores = result.choices
    if scores is None:
        raise not_a_portfolio(result)
    ax = axes(ax, figsize=figsize)
    names = list(dict.fromkeys(scores["policy"].tolist()))
    known = scores["score"][np.isfinite(scores["score"])]
    most = float(known.max(initial=0.0)) or 1.0
    line = 1.8 * font_size() * ax.figure.dpi / 72 / ax.bbox.height  # of the axes
    step = max(0.09, 1.05 * line / max(1 - line * len(names), 0.3))
    levels = [-most * step * (number + 0.9) for number in range(len(names))]
    for level, (name, colour) in zip(levels, coloured(names), strict=False):
        rows = scores.where(scores["policy"] == name)
        ax.plot(rows["time"], rows["score"], drawstyle="steps-post", color=colour, linewidth=1, alpha=0.85)
        chosen = rows["time"][rows["chosen"] == 1]
        ax.plot(chosen, np.full(len(chosen), level), "|", color=colour, markersize=6, markeredgewidth=1)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_ylim(-most * step * (0.6 + len(names)), 1.05 * most)
    ax.set_ylabel("score (less is better)")
    time_axis(ax, result)
    ticks = [tick for tick in ax.get_yticks() if 0 <= tick <= 1.05 * most]
    ax.set_yticks([*ticks, *levels], [*(f"{tick:g}" for tick in ticks), *names])
    tidy(ax, title=title, default="scores at each choice, and below them the policy that was chosen")
    for label, colour in coloured(ax.get_yticklabels()[len(ticks) :]):
        label.set_color(colour)
    ax.grid(False, axis="y")
    for tick in ticks:
        ax.axhline(tick, color=PALE, linewidth=0.8, zorder=0)
    return ax


@drawn
def portfolio_page(
    result: JobRecord,
    chart: Kiviat | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw a run under a portfolio on one page: scores, jobs started by each policy, and the radar chart.

    Parameters
    ----------
    result
        of a run under a portfolio
    chart
        of this run and others; default: no radar chart
    title, figsize
        title of the page; width and height of the figure, inches

    Raises
    ------
    InputError
        if the run was not under a portfolio
    """
    if result.choices is None:
        raise not_a_portfolio(result)
    if chart is None:
        fig, (scores, starts) = panels((8.0, 6.2), [(1, "a"), (1, "b")], figsize, title)
    else:
        fig, (scores, kiviat, starts) = panels((11.5, 6.2), [(1, "aaaaccc"), (1, "bbbbccc")], figsize, title)
        radar(chart, ax=kiviat)
    score_over_time(result, ax=scores)
    starts_by_policy(result, ax=starts)
    return fig


@drawn
def replay_page(
    own: JobRecord,
    advised: JobRecord,
    starts: Sequence[tuple[float, str, int]],
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw the waiting jobs without and with advice, and the jobs started by each policy over time.

    Parameters
    ----------
    own, advised
        the records of the scheduler's own policy, and of the cluster that took the advice
    starts
        instant (s), policy and number of started jobs of each decision
    title, figsize
        the title of the page; its width and height, inches
    """
    fig, (first, second, third) = panels((8.0, 7.2), [(1, "a"), (1, "b"), (1, "c")], figsize, title)
    queue(own, colour=GREY, ax=first, title=f"waiting jobs under {own.name}")
    queue(advised, colour=BLUE, ax=second, title="waiting jobs with advice")
    top = max(first.get_ylim()[1], second.get_ylim()[1])
    for ax in (first, second):
        ax.set_ylim(0, top)
    names = list(dict.fromkeys(policy for _, policy, _ in starts))
    for name, colour in coloured(names):
        mine = [(time, count) for time, policy, count in starts if policy == name]
        times = [time for time, _ in mine]
        third.step(times, np.cumsum([count for _, count in mine]), where="post", color=colour, label=name)
    third.set_ylabel("jobs started")
    if names:
        legend(third)
    tidy(third, title="jobs started by each policy")
    for ax in (first, second, third):
        span_axis(ax, min(own.started, advised.started), max(own.ended, advised.ended))
    return fig


class Future(Protocol):
    """One future, as plots need it: see :class:`~simmodel.futures.outcomes.Outcome`."""

    @property
    def name(self) -> str:
        """The label of its policy."""
        ...

    @property
    def status(self) -> str:
        """How it ended: finished, unfinished or failed."""
        ...

    @property
    def counted(self) -> Sequence[int]:
        """The numbers of the samples that are compared."""
        ...

    def values(self, name: str, /) -> Any:
        """Return a measure of each sample, as an array."""
        ...

    def interval(self, name: str, /) -> Interval:
        """Return the confidence interval of the mean of a measure."""
        ...


class Futures(Protocol):
    """A what-if, as plots need it: see :class:`~simmodel.futures.what_if_result.WhatIf`."""

    @property
    def best(self) -> Future | None:
        """The future with the lowest score."""
        ...

    def __iter__(self) -> Iterator[Future]: ...

    def __len__(self) -> int: ...


@drawn
def outcomes(
    found: Futures,
    measures: Sequence[str] = ("wait_mean", "wait_max", "bounded_slowdown_mean", "utilisation"),
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw measures as bars, one per policy, the best one dark; several samples with 95 % confidence intervals.

    Parameters
    ----------
    found
        the result of ``what_if``
    measures
        of :data:`~simmodel.scheduling.objectives.MEASURES`, ``unstarted`` or ``score``; one panel each
    title, figsize
        title of the page; width and height of the figure, inches

    Raises
    ------
    InputError
        if a measure is unknown
    """
    rows_named("measure", measures, [*OF_JOBS, "unstarted", "score"])
    letters = "".join(chr(ord("a") + number) for number in range(len(measures)))
    fig, shown = panels((2.4 * len(measures) + 1.2, 0.9 + 0.32 * len(found)), [(1, letters)], figsize, title)
    for ax, name in zip(shown, measures, strict=True):
        _bars(ax, found, name)
        ax.set_yticks(np.arange(len(found)), [each.name if ax is shown[0] or narrow(fig) else "" for each in found])
    return fig


def _bars(ax: Axes, found: Futures, name: str) -> None:
    best = found.best
    longest = 0.0
    for y, outcome in enumerate(found):
        values = outcome.values(name) if outcome.counted else np.array([])
        if not np.isfinite(values).all() or not len(values):
            text = "no value" if outcome.counted else outcome.status
            ax.annotate(text, (0, y), (4, 0), textcoords="offset points", va="center", color=GREY)
            continue
        mean = float(values.mean())
        error: dict[str, Any] = {}
        half = outcome.interval(name).half_width if len(values) > 1 else float("nan")
        if np.isfinite(half):
            error = {"xerr": half, "error_kw": {"elinewidth": 1.0, "ecolor": INK, "capsize": 2}}
            longest = max(longest, mean + half)
        longest = max(longest, mean)
        ax.barh(y, mean, height=0.66, color=BLUE, alpha=0.95 if outcome is best else 0.45, **error)
    unit, title = OF_JOBS.get(name, ("", name))
    if not longest:
        ax.set_xticks([0], ["0"])
    elif unit == "s":
        ax.set_xlabel("")
        duration_axis(ax.xaxis, longest, log=False)
    elif name == "utilisation":
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    tidy(ax, grid="x", default=title.partition(" (")[0])
    ax.set_ylim(len(found) - 0.5, -0.5)
