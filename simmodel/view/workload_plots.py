"""Plots of a workload: sizes and run times of its jobs, and when they are submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.view.style import BLUE, Size, axes, checked_colour, colour_bar, sequence, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simmodel.work.workload import Workload

__all__ = ["arrivals", "size_and_run"]


def size_and_run(
    workload: Workload,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
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


def arrivals(
    workload: Workload,
    *,
    colour: str = BLUE,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
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
