"""Plots of grids: the use of sites over time, the transfers between them, a map, and the load of links over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import show_quantity
from simmodel.metrics.grid import by_site
from simmodel.view.plots import ResultPlots
from simmodel.view.result_plots import cdf, queue
from simmodel.view.style import (
    GREY,
    INK,
    PALE,
    Look,
    Plot,
    Size,
    about,
    axes,
    colour_bar,
    drawn,
    font_size,
    headline,
    panels,
    rows_named,
    sequence,
    span_axis,
    tidy,
)

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.records.broker_record import GridRecord
    from simmodel.records.network_recorder import NetworkRecorder
    from simmodel.records.steps import Steps

__all__ = ["GridPlots", "grid_flows", "grid_map", "grid_overview", "link_heat", "site_heat", "site_positions"]

_INTERVALS = 240  # of a heat map
_NAMED = 60  # rows with names
_SHOWN = 15  # links in an overview
_SHARES = ((0.0, "0"), (0.5, "50 %"), (1.0, "100 %"))


@drawn
def site_heat(
    result: GridRecord,
    sites: Sequence[str] | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the used share of each site over time as a heat map: exact averages over equal intervals.

    Parameters
    ----------
    sites
        names of sites; default: all, in the order of the grid
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if a site is unknown
    """
    known = result.places["place"].tolist()
    names = known if sites is None else list(sites)
    rows_named("site", names, known)
    shares = [result.utilisation(name) for name in names]
    mean = result.utilisation().mean()
    used = f", {mean:.1%} of all cores" if np.isfinite(mean) else ""
    own = f"used share of the cores{used}"
    ax = axes(ax, _heat_size(names), figsize)
    return _heat(ax, names, shares, result.started, result.ended, own if title is None else title)


@drawn
def link_heat(
    record: NetworkRecorder,
    links: Sequence[str] | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the load of links over time, as a share of their bandwidth, as a heat map.

    Parameters
    ----------
    record
        the recorder of the network: of a grid, ``NetworkRecorder(grid.data.network)`` observed from the start
    links
        names of links; default: those that carried anything, at most 60, by bytes
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if a link is unknown
    """
    links = busiest_links(record, _NAMED) if links is None else links
    parts = [record.load(name).share_of(record.capacity(name)) for name in links]
    end = max((part.end for part in parts), default=record.started)
    own = "load of links, as a share of their bandwidth"
    ax = axes(ax, _heat_size(links), figsize)
    return _heat(ax, list(links), parts, record.started, end, own if title is None else title)


def busiest_links(record: NetworkRecorder, most: int) -> list[str]:
    """Return the links that carried most bytes, those that carried any, in that order."""
    table = record.links()
    order = np.argsort(-table["bytes"], kind="stable") if len(table) else np.array([], dtype=int)
    return [str(table["link"][row]) for row in order[:most] if table["bytes"][row] > 0]


def _heat_size(names: Sequence[str]) -> Size:
    return 9.0, 1.4 + min(max(0.17 * len(names), 0.6), 9.0)


def _heat(ax: Axes, names: Sequence[str], rows: Sequence[Steps], start: float, end: float, title: str) -> Axes:
    """Draw shares over time, a row each, with a bar of colours from 0 to 1."""
    span_axis(ax, start, end)
    if not names or not end > start:
        return _nothing(ax, "no time has passed" if names else "nothing was moved", title)
    edges = np.linspace(start, end, _INTERVALS + 1)
    values = np.clip(np.nan_to_num([row.averages(edges) for row in rows]), 0, 1)
    image = ax.imshow(
        values,
        cmap=_white_first(),
        aspect="auto",
        vmin=0,
        vmax=1,
        extent=(start, end, len(names) - 0.5, -0.5),
        interpolation="nearest",
    )
    colour_bar(ax, image, _SHARES, fraction=0.025)
    tidy(ax, grid="", title=title)
    _names(ax, "y", names)
    ax.tick_params(axis="y", length=0)
    return ax


def _names(ax: Axes, axis: str, names: Sequence[str]) -> None:
    """Label rows or columns with their names: as many as have room beside each other, in letters that fit."""
    box = ax.get_window_extent()
    room = 72 / ax.figure.dpi * (box.height if axis == "y" else box.width) / max(len(names), 1)  # points
    size = min(max(0.85 * room, 0.65 * font_size()), font_size())
    at = range(0, len(names), max(1, int(np.ceil(1.15 * size / room))))
    shown = [_short(names[i]) for i in at]
    if axis == "y":
        ax.set_yticks(at, shown, fontsize=size)
    else:
        ax.set_xticks(at, shown, fontsize=size, rotation=90 if len(names) > 5 else 0)


def _bytes(value: float) -> str:
    return show_quantity(float(f"{value:.3g}"), "B")


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:11]}…{name[-11:]}"


def _nothing(ax: Axes, why: str, title: str) -> Axes:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=GREY)
    return tidy(ax, grid="", title=title)


def _white_first() -> Any:
    """Return the colours of densities with white for zero."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = sequence()
    return LinearSegmentedColormap.from_list("share", ["#ffffff", *(colours(x) for x in np.linspace(0, 1, 8))])


# ---------------------------------------------------------------------- flows


def _matrix(result: GridRecord) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names of the sites, and the bytes moved from row to column."""
    names = result.places["place"].tolist()
    number = {name: at for at, name in enumerate(names)}
    moved = np.zeros((len(names), len(names)))
    for row in result.flows.rows():
        moved[number[row["source"]], number[row["destination"]]] += row["bytes"]
    return names, moved


@drawn
def grid_flows(
    result: GridRecord,
    *,
    every: bool = False,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the bytes moved from site to site as a matrix.

    Parameters
    ----------
    every
        show sites that neither sent nor received anything, too
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    from matplotlib.colors import LogNorm

    names, moved = _matrix(result)
    rows = np.flatnonzero(moved.any(axis=1) | every)
    columns = np.flatnonzero(moved.any(axis=0) | every)
    moved = moved[np.ix_(rows, columns)]
    wide, high = (min(max(0.22 * len(each), 1.5), 9.0) for each in (columns, rows))
    ax = axes(ax, (1.9 + wide, 1.5 + high), figsize)
    total = float(moved.sum())
    failed = int(result.flows["failed"].sum())
    told = f"{_bytes(total)} moved" + (f", {failed:,} transfers failed" if failed else "")
    if not total > 0:
        return _nothing(ax, "nothing was moved", told if title is None else title)
    least = float(moved[moved > 0].min())
    most = float(moved.max())
    norm = LogNorm(min(least, 0.999 * most), most)
    image = ax.imshow(np.ma.masked_equal(moved, 0), cmap=sequence(), norm=norm, aspect="auto", interpolation="nearest")
    ax.set_xlabel("to")
    ax.set_ylabel("from")
    ticks = np.geomspace(least, most, 4) if most > 3 * least else np.array([most])
    colour_bar(ax, image, [(tick, _bytes(tick)) for tick in ticks.tolist()], fraction=0.04)
    tidy(ax, grid="", title=title, default=told)
    _names(ax, "y", [names[i] for i in rows])
    _names(ax, "x", [names[i] for i in columns])
    ax.tick_params(length=0)
    return ax


# ---------------------------------------------------------------------- map


@drawn
def grid_map(
    result: GridRecord,
    *,
    edges: int = 200,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the sites as a graph: size by cores, colour by the used share, lines by the bytes moved between two sites.

    Sites of tier 0 are in the middle and those of the next tiers on rings around them, each near the site of the tier
    above with which it exchanged most; without tiers all are on one ring.

    Parameters
    ----------
    edges
        the most lines; those of the most bytes are drawn
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the number of lines is negative
    """
    if isinstance(edges, bool) or not isinstance(edges, int) or edges < 0:
        raise InputError(f"must be a whole number >= 0, got {edges!r}", place="edges")
    names, moved = _matrix(result)
    both = moved + moved.T
    at = site_positions(result, both)
    ax = axes(ax, (7.2, 6.4), figsize)
    _lines(ax, at, both, edges)
    cores = result.places["processors"].astype(float)
    share = np.array([result.utilisation(name).mean() for name in names])
    box = ax.get_window_extent()
    room = min(1.0, min(box.width, box.height) / ax.figure.dpi / 4.5)
    size = (40 + 360 * cores / max(float(cores.max()), 1.0)) * room**2
    if len(names) > 60:
        size *= 60 / len(names)
    points = ax.scatter(
        at[:, 0],
        at[:, 1],
        s=size,
        c=np.nan_to_num(share),
        cmap=_white_first(),
        vmin=0,
        vmax=1,
        edgecolors=INK,
        linewidths=0.7,
        zorder=3,
    )
    if len(names) <= _NAMED:
        style: dict[str, Any] = {
            "ha": "center",
            "va": "top",
            "fontsize": "small",
            "color": INK,
            "zorder": 4,
        }
        for name, (x, y), area in zip(names, at.tolist(), size.tolist(), strict=True):
            below = (0, -np.sqrt(area) / 2 - 2)
            ax.annotate(_short(name), (x, y), below, textcoords="offset points", **style)
    colour_bar(ax, points, _SHARES, fraction=0.03)
    most = _bytes(float(both.max())) if both.any() else None
    told = "used share" + (f"; the widest line is {most}" if most else "; nothing was moved")
    tidy(ax, grid="", title=title, default=told)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.margins(0.12)
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def _lines(ax: Axes, at: NDArray[np.float64], both: NDArray[np.float64], most: int) -> None:
    """Draw lines between sites, as wide as bytes are many, up to 5 points."""
    from matplotlib.collections import LineCollection

    a, b = np.triu_indices(len(at), 1)
    weight = both[a, b]
    chosen = np.argsort(-weight, kind="stable")[:most]
    chosen = chosen[weight[chosen] > 0][::-1]
    if len(chosen):
        segments = [(at[i], at[j]) for i, j in zip(a[chosen], b[chosen], strict=True)]
        part = weight[chosen] / weight.max()
        colours = [(0.55, 0.57, 0.60, 0.15 + 0.55 * each) for each in part.tolist()]
        widest = 5.0 * min(1.0, 40 / len(at))
        ax.add_collection(LineCollection(segments, linewidths=(0.4 + widest * part).tolist(), colors=colours, zorder=1))
    else:
        ax.plot(*at.T, linestyle="", color=PALE)


def site_positions(result: GridRecord, both: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the position of each site: rings by tier, each site by the angle of its partner in the tier above."""
    count = len(both)
    tier = result.places["tier"].astype(float) if "tier" in result.places else np.full(count, -1.0)
    tier = np.where(tier >= 0, tier, tier.max(initial=-1.0) + 1)
    at, angle = np.zeros((count, 2)), np.zeros(count)
    above = np.array([], dtype=int)
    for ring, level in enumerate(np.unique(tier).tolist()):
        here = np.flatnonzero(tier == level)
        if len(above):
            partner = angle[above[np.argmax(both[np.ix_(here, above)], axis=1)]]
            here = here[np.lexsort((here, -partner))]  # clockwise, as they are placed
        radius = float(ring + (len(here) > 1 and ring == 0))
        angle[here] = np.pi / 2 - 2 * np.pi * np.arange(len(here)) / len(here)
        at[here] = radius * np.stack([np.cos(angle[here]), np.sin(angle[here])], axis=1)
        above = here
    return at


# ---------------------------------------------------------------------- one page


@drawn
def grid_overview(
    result: GridRecord,
    record: NetworkRecorder | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw a run of a grid on one page: the use of sites over time, waiting jobs, the map, flows, and waits.

    Parameters
    ----------
    record
        the recorder of the network, observed from the start: the load of the busiest links over time is drawn, too
    title, figsize
        another title than the run's name (``""``: none); width and height of the figure, inches
    """
    row = list(by_site(result).rows())[-1]
    used = f" · {row['utilisation']:.1%} used" if np.isfinite(row["utilisation"]) else ""
    counts = f"{counted(row['jobs'], 'job')}, {row['finished']:,} finished, {row['failed']:,} failed"
    told = f"{counts} · {counted(len(result.places), 'site')}, {result.processors:,} cores{used}"
    links = [] if record is None else [1.0]
    rows = [(1.5, "a"), (0.7, "bc"), (1.7, "de"), *((each, "f") for each in links)]
    fig, (top, waiting, waits, map_, flows, *last) = panels((12.0, 10.5 + 2.5 * len(links)), rows, figsize)
    headline(fig, about(result) if title is None else title, told)
    site_heat(result, title="used share of the cores", ax=top)
    queue(result, title="waiting jobs", ax=waiting)
    cdf(result, ax=waits)
    grid_map(result, title="used share, and what was moved", ax=map_)
    grid_flows(result, title="bytes moved", ax=flows)
    if record is not None:
        link_heat(record, busiest_links(record, _SHOWN), title="load of the busiest links", ax=last[0])
    return fig


class GridPlots(ResultPlots):
    """The plots of one result of a grid: ``result.plot``."""

    _result: GridRecord

    sites = Plot(site_heat)
    flows = Plot(grid_flows)
    map = Plot(grid_map)
    overview = Plot(grid_overview)

    def links(
        self,
        record: NetworkRecorder,
        links: Sequence[str] | None = None,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Axes:
        """Draw the load of links over time, recorded by a ``NetworkRecorder``; see :func:`link_heat`."""
        return link_heat(record, links, title=title, figsize=figsize, ax=ax, style=style, save=save)
