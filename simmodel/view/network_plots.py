"""Plots of a network: the load of its links over time, and the time of transfers against that without contention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from simmodel.view.style import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    Look,
    Size,
    area,
    axes,
    coloured,
    drawn,
    duration_axis,
    legend,
    quantity_scale,
    span_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simmodel.records.network_recorder import NetworkRecorder

__all__ = ["link_load", "transfer_times"]

_POINTS = 800


@drawn
def link_load(
    record: NetworkRecorder,
    links: Sequence[str] | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the load of links over time; a single one with its capacity, several as parts of theirs.

    Long records are shown as exact averages over equal intervals.

    Parameters
    ----------
    record
        the recorder of the network
    links
        names of links; default: the seven that carried most
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    >>> from simmodel import Environment, Network
    >>> from simmodel.platform import LinkSpec
    >>> from simmodel.records import NetworkRecorder
    >>> env = Environment()
    >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
    >>> record = NetworkRecorder(network); env.observe(record)
    >>> _ = env.run(network.transfer(300, route=["wan"]))
    >>> link_load(record).get_ylabel()
    'load of wan (Bps)'
    """
    if links is None:
        table = record.links()
        most = np.argsort(-table["bytes"], kind="stable")[: len(COLOURS)]
        links = [str(table["link"][row]) for row in most]
    for name in links:
        record.load(name)  # raises if the link is unknown
    ax = axes(ax, figsize=figsize)
    end = record.started
    for name, colour in coloured(links):
        load, capacity = record.load(name), record.capacity(name)
        end = load.end
        if len(links) == 1:
            scale, unit = quantity_scale(capacity.max(), "B/s")
            area(ax, load.thinned(_POINTS).scaled(1 / scale), BLUE, "load")
            times, values = capacity.thinned(_POINTS).scaled(1 / scale).curve()
            ax.plot(times, values, drawstyle="steps-post", color=GREY, linewidth=0.9, label="capacity")
            ax.set_ylabel(f"load of {name} ({unit})")
            ax.set_ylim(0, 1.05 * capacity.max() / scale)
        else:
            times, values = load.share_of(capacity).thinned(_POINTS).curve()
            ax.plot(times, values, drawstyle="steps-post", color=colour, linewidth=0.9, label=name)
    if len(links) != 1:
        ax.set_ylabel("load, part of the capacity")
        ax.set_ylim(0, 1.05)
    if links:
        legend(ax, "upper left", (1.0, 1.0))
    span_axis(ax, record.started, end)
    return tidy(ax, title=title)


@drawn
def transfer_times(
    record: NetworkRecorder,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the time that each finished transfer took, and the time it would have taken alone.

    Up to 60 are bars from their start, the time alone dark and the queueing after it light; more are points over the
    time alone, with the line on which both are equal.

    Parameters
    ----------
    record
        the recorder of the network
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    >>> from simmodel import Environment, Network
    >>> from simmodel.platform import LinkSpec
    >>> from simmodel.records import NetworkRecorder
    >>> env = Environment()
    >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
    >>> record = NetworkRecorder(network); env.observe(record)
    >>> for size in (100, 300): _ = network.transfer(size, route=["wan"])
    >>> env.run(); [float(bar.get_width()) for bar in transfer_times(record).patches]
    [1.0, 3.0, 1.0, 1.0]
    """
    table = record.transfers()
    table = table.where(table["status"] == "done")
    alone, queueing, start = table["alone"], table["queueing"], table["start"]
    if len(table) > 60:
        ax = axes(ax, (4.6, 4.2), figsize)
        most = float((alone + queueing).max())
        least = max(float(alone[alone > 0].min(initial=most)), most * 1e-6, 1e-9)
        ax.plot([0, most], [0, most], color=GREY, linewidth=0.8)
        ax.plot(alone, alone + queueing, "o", color=BLUE, markersize=2.5, markeredgewidth=0, alpha=0.5)
        ax.set_xlabel("time alone")
        ax.set_ylabel("time taken")
        duration_axis(ax.xaxis, most, shortest=least)
        duration_axis(ax.yaxis, most, shortest=least)
        return tidy(ax, grid="both", title=title)
    ax = axes(ax, (8.0, 1.0 + 0.16 * len(table)), figsize)
    rows = np.arange(len(table))
    ax.barh(rows, alone, left=start, height=0.7, color=BLUE, label="alone")
    ax.barh(rows, queueing, left=start + alone, height=0.7, color=ORANGE, alpha=0.55, label="queueing")
    ax.set_yticks(rows, [str(number) for number in table["transfer"]])
    ax.set_ylabel("transfer")
    ax.invert_yaxis()
    end = float(table["end"].max()) if len(table) else record.started
    span_axis(ax, record.started, end)
    if len(table):
        legend(ax, "upper left", (1.0, 1.0))
    return tidy(ax, grid="x", title=title)
