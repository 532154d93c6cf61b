"""Plots of the referee: where a schedule departs from a policy, and the share that candidates explain over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.view.style import BLUE, COLOURS, GREY, ORANGE, Size, coloured, duration_axis, figure, span_axis, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.work.table import Table

__all__ = ["Judged", "departures", "explained"]

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


def departures(judged: Judged, *, title: str | None = None, figsize: Size | None = None) -> Figure:
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
    above.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
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


def explained(
    curves: Mapping[str, tuple[Any, Any]], *, title: str | None = None, figsize: Size | None = None
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
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    tidy(ax, title=title, default="Which policy explains the starts")
    span_axis(ax, first, max(last, first + 1.0))
    return new
