"""Pictures of a workload: what is asked for, and when it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.view.style import BLUE, GREY, INK, axes, sequence, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simmodel.work.workload import Workload

__all__ = ["arrivals", "size_and_run"]


def size_and_run(workload: Workload, *, ax: Axes | None = None) -> Axes:
    """Draw the number of processors of jobs against their run times, both logarithmic.

    Jobs that ran for less than a second stand at one second; more than 2,000 jobs are counted in hexagons.

    Parameters
    ----------
    ax
        where to draw; default: a new figure
    """
    ax = axes(ax, (6.4, 4.2))
    run, size = workload["run"], workload["processors"]
    known = (run >= 0) & (size > 0)
    left_out = int((~known).sum())
    run, size = np.maximum(run[known], 1.0), size[known].astype(np.float64)
    title = f"{workload.name}: {len(run):,} jobs" + (f" ({left_out:,} without size or run time)" if left_out else "")
    if len(run) > 2000:
        shown = ax.hexbin(
            run, size, xscale="log", yscale="log", gridsize=(44, 26), bins="log", mincnt=1, cmap=sequence()
        )
        bar = ax.figure.colorbar(shown, ax=ax, pad=0.01, fraction=0.04, aspect=28)
        bar.ax.tick_params(labelsize=8, colors=GREY, labelcolor=INK, width=0.6, length=2)
        bar.ax.minorticks_off()
        bar.ax.set_title("jobs", fontsize=8.5, color=INK, loc="left", pad=5)
        bar.outline.set_visible(False)
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
    return tidy(ax, grid="both", title=title)


def _offset(workload: Workload) -> float:
    """Seconds from midnight (local time, where the header tells it) to the log's second 0."""
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


def arrivals(workload: Workload, *, ax: Axes | None = None) -> Axes:
    """Draw how many jobs are submitted in each hour of the day, on average.

    The hours are local ones where the header of the log tells when it began (and its time zone), else the log's own.

    Parameters
    ----------
    ax
        where to draw; default: a new figure
    """
    ax = axes(ax, (6.4, 3.0))
    submit = workload["submit"]
    hours = np.floor((submit + _offset(workload)) % 86400 / 3600).astype(int)
    days = max((float(np.ptp(submit)) if len(submit) else 0.0) / 86400, 1.0)
    counts = np.bincount(hours, minlength=24) / days
    ax.bar(np.arange(24) + 0.5, counts, width=0.86, color=BLUE, alpha=0.9)
    ax.set_xticks(np.arange(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
    ax.set_xlim(0, 24)
    ax.set_xlabel("hour of the day")
    ax.set_ylabel("jobs an hour")
    return tidy(ax, title=f"{workload.name}: {len(submit):,} jobs over {days:,.4g} days")
