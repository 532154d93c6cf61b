"""Plots of the referee: departures from a policy, what candidates explain over time, and why work waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack

import numpy as np

from simmodel.foundation.display import counted
from simmodel.view.style import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    ORANGE,
    PALE,
    Look,
    Size,
    coloured,
    drawn,
    duration_axis,
    figure,
    hide_x,
    legend,
    span_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.work.table import Table

__all__ = ["Judged", "departures", "explained", "in_the_way", "places_for_a_job", "waits_of_a_task"]

_BINS = 60


class Judged(Protocol):
    """The starts of a schedule, judged: see :class:`~simmodel.referee.verification.Judgement`."""

    @property
    def policy(self) -> str:
        """The name of the policy."""
        ...

    @property
    def jobs(self) -> Table:
        """One row a start: ``start``, ``wanted`` (s) and ``kind``."""
        ...


@drawn
def departures(
    judged: Judged, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw the share of starts that are the policy's over time, and below how late each of the others is.

    Parameters
    ----------
    judged
        the starts of a schedule
    title, figsize
        of the figure; default: the name of the policy
    """
    jobs = judged.jobs
    start, wanted, kind = jobs["start"], jobs["wanted"], jobs["kind"]
    new = figure((8.0, 4.6), figsize, f"Starts beside those of {judged.policy}" if title is None else title)
    above, below = new.subplots(2, 1, sharex=True, height_ratios=(1, 1.6))
    first, last = float(start.min()), float(start.max())
    edges = np.linspace(first, max(last, first + 1e-9), _BINS + 1)
    total = np.histogram(start, edges)[0]
    bottom = np.zeros(_BINS)
    with np.errstate(invalid="ignore"):
        for name, colour in (("same", BLUE), ("late", ORANGE), ("early", COLOURS[2]), ("impossible", GREY)):
            share = np.nan_to_num(np.histogram(start[kind == name], edges)[0] / total)
            if share.any():
                above.bar(edges[:-1], share, np.diff(edges), bottom, align="edge", color=colour, label=name)
            bottom += share
    above.set(ylim=(0, 1), ylabel="share of starts")
    legend(above, "upper left", (1.0, 1.0))
    late = kind == "late"
    delay = start[late] - wanted[late]
    below.scatter(start[late], delay, s=7, color=ORANGE, linewidths=0, label="late")
    early = kind == "early"
    below.scatter(start[early], np.zeros(int(early.sum())), s=9, marker="v", color=COLOURS[2], linewidths=0)
    duration_axis(below.yaxis, float(delay.max(initial=60.0)))
    below.set_ylabel("later than the policy wants")
    tidy(above)
    tidy(below)
    span_axis(below, first, max(last, first + 1.0))
    return new


@drawn
def explained(
    curves: Mapping[str, tuple[Any, Any]],
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw the share of starts that each of some policies explains, over time.

    Parameters
    ----------
    curves
        by policy: the starts (s), and whether it explains each
    title, figsize
        of the figure
    """
    new = figure((8.0, 3.4), figsize)
    ax = new.subplots()
    first = min(float(start.min()) for start, _ in curves.values())
    last = max(float(start.max()) for start, _ in curves.values())
    edges = np.linspace(first, max(last, first + 1e-9), _BINS + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    for (name, (start, known)), colour in coloured(curves.items()):
        total = np.histogram(start, edges)[0]
        share = np.histogram(start[known], edges)[0] / np.where(total, total, 1)
        there = total > 0
        whole = float(np.mean(known))
        ax.plot(middle[there], share[there], color=colour, lw=1.4, label=f"{name}, {100 * whole:.3g} %")
    ax.set(ylim=(0, 1.02), ylabel="share of starts explained")
    legend(ax, "upper left", (1.0, 1.0))
    tidy(ax, title=title, default="Which policy explains the starts")
    span_axis(ax, first, max(last, first + 1.0))
    return new


_MOST = 20  # holders that are drawn
_ORDER = ("order", "processors", "dependencies", "nodes", "reservation", "limit", "licences")


class _Bar(NamedTuple):
    """A holder: its id or name, its processors, and its expected end (s)."""

    name: int | str
    processors: int
    until: float


@drawn
def in_the_way(
    spans: Sequence[tuple[float, float, str]],
    holders: Sequence[tuple[int | str, int, float]],
    at: float,
    promises: Sequence[tuple[float, float]] = (),
    *,
    since: str = "since its submission",
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw what a job waited for over time, the running jobs that make room for it, and the start it could expect.

    Parameters
    ----------
    spans
        since, until (s) and the reason
    holders
        running jobs: id, processors, expected end (s)
    at
        the instant (s) of the question
    promises
        since (s), and the start expected from then on (s)
    since
        the first instant in words
    title, figsize
        of the figure
    """
    drawn = [_Bar(*each) for each in holders[:_MOST]]
    ends = [until for _, until, _ in spans] + [until for _, _, until in drawn if np.isfinite(until)]
    first, last = min([at, *(since for since, _, _ in spans)]), max([at, *ends])
    last = max(last, first + 1.0)
    more = len(holders) - len(drawn)
    rows = max(len(drawn) + (more > 0), 1)
    height = 1.6 + 0.28 * rows + (1.4 if promises else 0.0)
    new = figure((8.0, height), figsize, title)
    if promises:
        above, below = new.subplots(2, 1, sharex=True, height_ratios=(1.2 + 0.28 * rows, 1.6))
        _promises(below, promises, first, max([until for _, until, _ in spans], default=last))
    else:
        above = new.subplots()
    _rows(above, spans, drawn, at, last)
    if more > 0:
        above.set_yticks(range(len(drawn) + 2), [*_names(drawn), f"and {more:,} more"])
        above.set_ylim(len(drawn) + 1.5, -0.6)
    named = dict(zip(*reversed(above.get_legend_handles_labels()), strict=True))
    if len(named) > 1:
        legend(above, "upper left", (1.0, 1.0), handles=list(named.values()))
    span_axis(above, first, last, since)
    if promises:
        span_axis(below, first, last, since)
        hide_x(above)
    return new


def _rows(
    ax: Axes, spans: Sequence[tuple[float, float, str]], holders: Sequence[_Bar], at: float, last: float,
) -> None:  # fmt: skip
    first = min([at, *(since for since, _, _ in spans)])
    for since, until, reason in spans:
        colour = COLOURS[_ORDER.index(reason)] if reason in _ORDER else GREY
        ax.barh(0, until - since, left=since, height=0.7, color=colour, label=reason)
        if until - since > 0.02 * len(reason) * (last - first):
            ax.text((since + until) / 2, 0, reason, ha="center", va="center", color="white")
    for row, (_, processors, until) in enumerate(holders, 1):
        ax.barh(row, min(until if np.isfinite(until) else last, last) - at, left=at, height=0.7, color=GREY)
        if processors:
            ax.text(at, row, f" {counted(processors, 'processor')}", va="center", color=INK)
    ax.axvline(at, color=INK, lw=0.8)
    ax.set_yticks(range(len(holders) + 1), _names(holders))
    ax.invert_yaxis()
    tidy(ax, grid="x")


def _names(holders: Sequence[_Bar]) -> list[str]:
    names = [each if isinstance(each, str) and " " in each else f"job {each}" for each, _, _ in holders]
    return ["it waits for", *names]


def _promises(ax: Axes, promises: Sequence[tuple[float, float]], first: float, until: float) -> None:
    """Draw the start that the job could expect, as steps over time."""
    since = [each for each, _ in promises]
    expected = [at - first for _, at in promises]
    ax.step([*since, max(until, since[-1])], [*expected, expected[-1]], where="post", color=INK, lw=1.3)
    ax.plot(since, expected, "o", color=INK, ms=3)
    duration_axis(ax.yaxis, max(expected), log=False)
    ax.set_ylabel("expected start\n" + ax.get_ylabel())
    tidy(ax)


@drawn
def waits_of_a_task(
    spans: Sequence[tuple[float, float, str, str]],
    submit: float,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw what a task waited for, one row a reason, with who held it.

    Parameters
    ----------
    spans
        since, until, the reason and who held it
    submit
        the instant of its submission
    title, figsize
        of the figure
    """
    reasons = list(dict.fromkeys(reason for _, _, reason, _ in spans))
    last = max([until for _, until, _, _ in spans], default=submit + 1.0)
    new = figure((8.0, 1.2 + 0.36 * max(len(reasons), 1)), figsize, title)
    ax = new.subplots()
    for since, until, reason, by in spans:
        row = reasons.index(reason)
        colour = COLOURS[row % len(COLOURS)]
        ax.barh(row, until - since, left=since, height=0.7, color=colour, edgecolor="white", lw=0.4)
        if until - since > 0.016 * len(by) * (last - submit):
            ax.text((since + until) / 2, row, by, ha="center", va="center", color="white")
    ax.set_yticks(range(len(reasons)), reasons)
    ax.invert_yaxis()
    tidy(ax, grid="x")
    span_axis(ax, submit, max(last, submit + 1e-9), "since its submission")
    return new


@drawn
def places_for_a_job(
    places: Sequence[Mapping[str, Any]],
    chosen: str,
    at: float,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw for each place when a job would wait and run there: as estimated above, as simulated below.

    Parameters
    ----------
    places
        rows with ``place, estimated_start, estimated_end, start, end`` (s)
    chosen
        the place that was chosen
    at
        the instant (s) of the decision
    title, figsize
        of the figure
    """
    instants = [row[name] for row in places for name in ("estimated_end", "end") if np.isfinite(row[name])]
    last = max([at + 1.0, *instants])
    new = figure((8.0, 1.4 + 0.5 * max(len(places), 1)), figsize, title)
    ax = new.subplots()
    for row, place in enumerate(places):
        strong = COLOURS[0] if place["place"] == chosen else COLOURS[6]
        for shift, prefix, colour in ((-0.2, "estimated_", PALE), (0.2, "", strong)):
            start, end = place[f"{prefix}start"], place[f"{prefix}end"]
            if not np.isfinite(start):
                continue
            ax.plot([at, start], [row + shift] * 2, color=GREY, lw=0.8)
            until = end if np.isfinite(end) else last
            ax.barh(row + shift, until - start, left=start, height=0.34, color=colour, edgecolor=GREY, lw=0.5)
    ax.set_yticks(range(len(places)), [str(place["place"]) for place in places])
    ax.invert_yaxis()
    ax.axvline(at, color=INK, lw=0.8)
    tidy(ax, grid="x", default="pale: as estimated at the decision; below: as simulated")
    span_axis(ax, at, last, "since the decision")
    return new
