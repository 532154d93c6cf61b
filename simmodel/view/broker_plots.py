"""Plots of several clusters under a broker: flows of jobs between them, and the use of each week by week."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from simmodel.foundation.errors import unknown
from simmodel.metrics.brokered import WEEK, by_origin, moved_turnaround, side_by_side, weekly
from simmodel.view.plots import ResultPlots
from simmodel.view.result_plots import value_by_bin
from simmodel.view.style import (
    COLOURS,
    INK,
    Look,
    Plot,
    Size,
    axes,
    coloured,
    drawn,
    duration_axis,
    legend,
    panels,
    sequence,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.records.broker_record import BrokerRecord
    from simmodel.records.job_record import JobRecord

__all__ = ["BrokerPlots", "before_and_after", "flows", "means_by_bin", "weeks"]


@drawn
def weeks(
    result: BrokerRecord,
    value: str = "utilisation",
    *,
    interval: float = WEEK,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the utilisation of each cluster week by week, or the jobs ``submitted`` or ``handed`` to it.

    Parameters
    ----------
    value
        ``"utilisation"``, ``"submitted"`` or ``"handed"``
    interval
        s
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the value is unknown
    """
    if value not in ("utilisation", "submitted", "handed"):
        raise unknown("value", value, ("utilisation", "submitted", "handed"))
    table = weekly(result, interval)
    ax = axes(ax, figsize=figsize)
    for name, colour in coloured(result.clusters):
        rows = table.where(table["cluster"] == name)
        heights = np.append(rows[value], rows[value][-1:]).astype(np.float64)
        ax.plot(np.arange(len(heights)), heights, drawstyle="steps-post", color=colour, linewidth=1.4, label=name)
    ax.set_ylim(0, 1.0 if value == "utilisation" else None)
    ax.set_xlim(0, max(1, len(table) // max(1, len(result.clusters))))
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    unit = {WEEK: "weeks", 86400.0: "days", 3600.0: "hours"}.get(interval, f"intervals of {interval:g} s")
    ax.set_xlabel(f"{unit} since the start")
    ax.set_ylabel({"utilisation": "utilisation", "submitted": "jobs submitted", "handed": "jobs handed over"}[value])
    legend(ax, columns=4)
    return tidy(
        ax, title=title, default={"submitted": "jobs submitted", "handed": "jobs handed over"}.get(value, value)
    )


@drawn
def flows(
    result: BrokerRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the number of jobs from each home to each destination.

    Parameters
    ----------
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    table = by_origin(result, ())
    names = list(result.clusters)
    homes = [home for home in ("", *names) if (table["origin"] == home).any()]
    counts = np.zeros((len(homes), len(names)))
    for row in table.rows():
        counts[homes.index(row["origin"]), names.index(row["destination"])] = row["jobs"]
    ax = axes(ax, (2.2 + 1.1 * len(names), 1.6 + 0.7 * len(homes)), figsize)
    ax.imshow(counts, cmap=sequence(), aspect="auto", vmin=0)
    for (i, j), count in np.ndenumerate(counts):
        colour = "white" if count > 0.55 * counts.max() else INK
        ax.text(j, i, f"{int(count):,}", ha="center", va="center", color=colour)
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(homes)), [home or "no home" for home in homes])
    ax.set_xlabel("cluster")
    ax.set_ylabel("home")
    return tidy(ax, grid="", title=title, default="jobs from each home to each cluster")


@drawn
def means_by_bin(
    results: Sequence[JobRecord],
    *,
    by: str = "processors",
    bins: Sequence[float] | None = None,
    value: str = "wait",
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the mean of a value in bins as bars, one colour per result.

    Parameters
    ----------
    results, by, bins, value
        as of :func:`~simmodel.metrics.brokered.side_by_side`
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    table = side_by_side(results, by, bins, value, unit=1.0)
    ax = axes(ax, figsize=figsize)
    places = np.arange(len(table))
    width = 0.8 / len(results)
    for i, (result, colour) in enumerate(coloured(results)):
        at = places + (i - (len(results) - 1) / 2) * width
        ax.bar(at, table[result.name], width, color=colour, label=result.name)
    ax.set_xticks(places, table["bin"].tolist())
    ax.set_xlabel("processors" if by == "processors" else "time asked for" if by == "walltime" else by)
    ax.set_ylabel(f"mean {value}")
    if value in ("wait", "turnaround", "run"):
        longest = max(float(np.nanmax(table[result.name])) for result in results)
        duration_axis(ax.yaxis, max(longest, 1e-9), log=False)
    legend(ax, "lower left", (0.0, 1.0), columns=4, borderaxespad=0.2)
    return tidy(ax, title=title)


@drawn
def before_and_after(
    siloed: BrokerRecord,
    brokered: BrokerRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the mean turnaround of moved jobs before (at home) and after.

    Parameters
    ----------
    siloed, brokered
        as of :func:`~simmodel.metrics.brokered.moved_turnaround`
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    table = moved_turnaround(siloed, brokered)
    ax = axes(ax, figsize=figsize)
    places = np.arange(len(table))
    for shift, name, colour in ((-0.2, "before", COLOURS[0]), (0.2, "after", COLOURS[1])):
        label = "at home" if name == "before" else "at the destination"
        ax.bar(places + shift, table[name].astype(np.float64), 0.4, color=colour, label=label)
    labels = [
        f"{row['origin']} to {row['destination']}\n{row['jobs']:,} jobs"
        if row["origin"] != "all"
        else f"all moved\n{row['jobs']:,} jobs"
        for row in table.rows()
    ]
    ax.set_xticks(places, labels)
    ax.set_ylabel("mean turnaround")
    longest = max([*table["before"].tolist(), *table["after"].tolist()], default=1.0)
    duration_axis(ax.yaxis, longest, log=False)
    legend(ax)
    return tidy(ax, title=title, default=f"{siloed.name} and {brokered.name}")


@drawn
def clusters(
    result: BrokerRecord, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw utilisation, jobs handed over, flows and waits on one page.

    Parameters
    ----------
    title, figsize
        title of the page (``""``: none); width and height of the figure, inches
    """
    fig, (first, second, third, fourth) = panels((11, 6.4), [(1, "ab"), (1, "cd")], figsize, title)
    weeks(result, ax=first)
    weeks(result, value="handed", ax=second)
    flows(result, ax=third)
    value_by_bin(result, ax=fourth)
    return fig


class BrokerPlots(ResultPlots):
    """The plots of one result of a broker: ``result.plot``."""

    _result: BrokerRecord

    weekly = Plot(weeks)
    flows = Plot(flows)
    clusters = Plot(clusters)
