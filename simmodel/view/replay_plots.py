"""Plots of logs that were replayed with advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.view.result_plots import queue
from simmodel.view.style import BLUE, GREY, Size, coloured, page, span_axis, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.records.job_record import JobRecord

__all__ = ["replay_page"]


def replay_page(
    own: JobRecord,
    advised: JobRecord,
    starts: Sequence[tuple[float, str, int]],
    *,
    title: str | None = None,
    figsize: Size | None = None,
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
    with page((8.0, 7.2), figsize, title) as figure:
        first, second, third = figure.subplots(3, 1)
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
            third.legend(frameon=False, fontsize=8.5)
        tidy(third, title="jobs started by each policy")
        for ax in (first, second, third):
            span_axis(ax, min(own.started, advised.started), max(own.ended, advised.ended))
    return figure
