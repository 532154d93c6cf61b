"""Gantt charts of jobs: the processors or nodes of each execution over time, coloured by wait or another column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.foundation.errors import unknown
from simmodel.metrics.packing import pack
from simmodel.view.style import COLOURS, GREY, Size, axes, colour_bar, duration_colours, tidy, time_axis
from simmodel.work.table import distinct, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage
    from numpy.typing import ArrayLike, NDArray

    from simmodel.records.job_record import JobRecord
    from simmodel.records.task_record import TaskRecord
    from simmodel.work.table import Table

__all__ = ["Boxes", "gantt", "pieces", "shares"]

EXACT = 5000  # most rectangles drawn one by one; more are averaged in an image


class Boxes(NamedTuple):
    """Rectangles of a chart: from an instant (s) to another, and from a row to another."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def where(self, kept: NDArray[np.bool_]) -> Boxes:
        """Return some of them."""
        return Boxes(*(column[kept] for column in self))

    def draw(self, ax: Axes, colours: ArrayLike | Sequence[str], edges: float | NDArray[np.float64]) -> Collection:
        """Draw each in its colour, with white edges of some width (points)."""
        from matplotlib.collections import PolyCollection

        start, end, low, high = self
        corners: Any = np.stack(
            [np.stack([x, y], axis=1) for x, y in ((start, low), (end, low), (end, high), (start, high))], 1
        )
        return ax.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=edges))

    def covered(
        self, result: JobRecord | TaskRecord, weight: NDArray[np.float64], wide: int, tall: int, rows: int
    ) -> NDArray[np.float64]:
        """Return the weighted part of each pixel that they cover, in a picture of the whole run and all its rows."""
        span = max(result.ended - result.started, 1e-9)
        x = [(each - result.started) / span * wide for each in (self.start, self.end)]
        return shares(x, [each * (tall / rows) for each in (self.low, self.high)], weight, wide, tall)


def pieces(
    result: JobRecord, place: str | None = None, held: Table | None = None
) -> tuple[Table, NDArray[np.int64], NDArray[Any]]:
    """Return the holders of a place's capacity and, for each rectangle of its chart, its holder and ``(low, high)``.

    Rows are nodes if they are identified, else processors as packed by :func:`simmodel.metrics.packing.pack`.

    Parameters
    ----------
    place
        its name; default: the first
    held
        what held capacity there, if that is known (``result.held(place)``)
    """
    number = _place_number(result, place)
    name, size = result.places["place"][number], int(result.places["processors"][number])
    runs = result.held(name) if held is None else held
    nodes_of = runs["nodes"].tolist()
    if any(nodes is not None for nodes in nodes_of):
        spans = [(i, *span) for i, nodes in enumerate(nodes_of) for span in _spans(nodes or ())]
        found = np.array(spans, dtype=np.int64).reshape(-1, 3)
        return runs, found[:, 0], found[:, 1:]
    packed = pack(runs["start"], np.where(np.isnan(runs["end"]), result.ended, runs["end"]), runs["processors"], size)
    return runs, packed["index"], np.column_stack([packed["low"], packed["high"]])


def _place_number(result: JobRecord, place: str | None) -> int:
    names = result.places["place"].tolist()
    if place is not None and place not in names:
        raise unknown("place", place, names)
    return 0 if place is None else names.index(place)


def _spans(nodes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Join neighbouring nodes."""
    spans: list[tuple[int, int]] = []
    for node in sorted(nodes):
        if spans and spans[-1][1] == node:
            spans[-1] = (spans[-1][0], node + 1)
        else:
            spans.append((node, node + 1))
    return spans


def gantt(
    result: JobRecord,
    *,
    place: str | None = None,
    colour: str = "wait",
    scale: bool = True,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the executions of a place over time.

    Claims of processes are grey. Up to 5,000 rectangles are drawn one by one; more are averaged in an image whose
    pixels are exact shares.

    Parameters
    ----------
    place
        its name; default: the first
    colour
        the property shown by colours: ``"wait"``, ``"job"``, or a column of the jobs such as ``"user"``
    scale
        draw the colour bar of the waits
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the place or the column does not exist
    """
    if colour not in ("wait", "job") and colour not in result.jobs:
        raise unknown("colour", colour, dict.fromkeys(["wait", "job", *result.jobs.names]))
    number = _place_number(result, place)
    runs, which, rows = pieces(result, place)
    ax = axes(ax, (9.0, 4.0), figsize)
    nodes = int(result.places["nodes"][number])
    size = nodes or int(result.places["processors"][number])
    height = max(size, int(rows[:, 1].max()) if len(rows) else 1)
    end = np.where(np.isnan(runs["end"]), result.ended, runs["end"])
    jobs = int((result.runs["place"] == result.places["place"][number]).sum())  # the claims follow
    job = rows_of(result.jobs["job"], runs["holder"][:jobs])
    claims = len(runs) - jobs
    boxes = Boxes(runs["start"][which], end[which], rows[:, 0], rows[:, 1])
    edge = 0.5 if len(which) < 1500 else 0.0
    shown: Collection | AxesImage
    if colour == "wait":
        waits = np.append(np.nan_to_num(result.jobs["wait"][job]), np.zeros(claims))
        colours, norm, marks = duration_colours(float(waits.max()) if len(waits) else 0.0)
        if len(which) <= EXACT:
            from matplotlib.colors import to_rgba

            paint = colours(norm(waits))
            paint[jobs:] = to_rgba(GREY)
            shown = boxes.draw(ax, paint[which], edge)
        else:
            shown = _image(ax, result, boxes, norm(waits[which]), colours, height)
        if scale and len(marks) > 1:
            from matplotlib.cm import ScalarMappable

            colour_bar(ax, ScalarMappable(norm, colours), marks, fraction=0.03, title="wait")
    else:
        keys = job if colour == "job" else distinct(result.jobs[colour][job])[1]
        paint = np.append(np.array(COLOURS)[keys % len(COLOURS)], np.full(claims, GREY))
        shown = boxes.draw(ax, paint[which], edge)
    shown.set_rasterized(len(which) > 1000)
    ax.set_ylim(0, height)
    ax.set_ylabel("node" if nodes else "processor")
    time_axis(ax, result)
    return tidy(ax, grid="", title=title)


def _image(
    ax: Axes, result: JobRecord, boxes: Boxes, values: NDArray[np.float64], colours: Colormap, height: int
) -> AxesImage:
    """Draw an image: a pixel has the mean colour of the rectangles that cover it, as opaque as they cover it."""
    wide, tall = 1400, min(height, 360)
    cover = boxes.covered(result, np.ones(len(values)), wide, tall, height)
    weighted = boxes.covered(result, np.asarray(values), wide, tall, height)
    picture = colours(np.divide(weighted, cover, out=np.zeros_like(cover), where=cover > 1e-9))
    picture[..., 3] = np.clip(cover, 0, 1)
    extent = (result.started, max(result.ended, result.started + 1e-9), 0, height)
    return ax.imshow(picture, aspect="auto", origin="lower", interpolation="nearest", extent=extent)


def shares(
    x: list[NDArray[np.float64]], y: list[NDArray[np.float64]], weight: NDArray[np.float64], wide: int, tall: int
) -> NDArray[np.float64]:
    """Return the sum of weighted rectangles with fractional edges in each pixel, from differences at their corners."""
    grid = np.zeros((tall + 2) * (wide + 2))
    for at_x, sign_x in zip(x, (1, -1), strict=True):
        column = np.clip(np.floor(at_x), 0, wide).astype(np.int64)
        part_x = np.clip(at_x - column, 0, 1)
        for at_y, sign_y in zip(y, (1, -1), strict=True):
            line = np.clip(np.floor(at_y), 0, tall).astype(np.int64)
            part_y = np.clip(at_y - line, 0, 1)
            for dx, share_x in ((0, 1 - part_x), (1, part_x)):
                for dy, share_y in ((0, 1 - part_y), (1, part_y)):
                    cell = (line + dy) * (wide + 2) + column + dx
                    grid += np.bincount(cell, sign_x * sign_y * weight * share_x * share_y, minlength=len(grid))
    return grid.reshape(tall + 2, wide + 2).cumsum(axis=0).cumsum(axis=1)[:tall, :wide]
