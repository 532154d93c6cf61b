"""Gantt charts: the processors or nodes of each execution of jobs over time, coloured by a column, and of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from simmodel.foundation.display import counted
from simmodel.foundation.errors import unknown
from simmodel.metrics.devices import GpuUse
from simmodel.metrics.packing import pack
from simmodel.records.task_record import HELD, MOMENTS, PHASES, positions
from simmodel.view.style import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    Look,
    Size,
    axes,
    colour_bar,
    drawn,
    duration_colours,
    font_size,
    legend,
    rows_named,
    span_axis,
    tidy,
    time_axis,
)
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

__all__ = [
    "LEGEND",
    "PHASE_COLOURS",
    "Boxes",
    "gantt",
    "machine_gantt",
    "machine_time_axis",
    "pieces",
    "processor_rows",
    "shares",
    "used_processors",
]


EXACT = 5000  # most rectangles drawn one by one; more are averaged in an image


class Boxes(NamedTuple):
    """Rectangles of a chart: from an instant (s) to another, and from a row to another."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def where(self, kept: NDArray[np.bool_]) -> Boxes:
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


@drawn
def gantt(
    result: JobRecord,
    *,
    place: str | None = None,
    by: Literal["node", "gpu"] = "node",
    colour: str = "wait",
    scale: bool = True,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the executions of a place over time.

    Claims of processes are grey. Up to 5,000 rectangles are drawn one by one; more are averaged in an image whose
    pixels are exact shares.

    Parameters
    ----------
    place
        its name; default: the first
    by
        the rows: nodes, or processors where nodes are not identified; ``"gpu"``: the GPUs of a partition, with the
        shares and slices of each, where the record tells them apart
    colour
        the property shown by colours: ``"wait"``, ``"job"``, or a column of the jobs such as ``"user"``
    scale
        draw the colour bar of the waits
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the place or the column does not exist, or the devices are not told apart
    """
    if by not in ("node", "gpu"):
        raise unknown("rows", by, ("node", "gpu"))
    if colour not in ("wait", "job") and colour not in result.jobs:
        raise unknown("colour", colour, dict.fromkeys(["wait", "job", *result.jobs.names]))
    number = _place_number(result, place)
    names: Sequence[str] = ()
    if by == "gpu":
        use = GpuUse(result)
        runs, (names, which, rows) = use.held, use.strips(str(result.places["place"][number]))
        jobs = len(result.runs)
    else:
        runs, which, rows = pieces(result, place)
        jobs = int((result.runs["place"] == result.places["place"][number]).sum())
    ax = axes(ax, (9.0, min(max(4.0, 0.9 + 0.16 * len(names)), 9.0)), figsize)
    nodes = int(result.places["nodes"][number])
    size = len(names) or nodes or int(result.places["processors"][number])
    height = max(size, int(rows[:, 1].max()) if len(rows) else 1)
    end = np.where(np.isnan(runs["end"]), result.ended, runs["end"])
    job = rows_of(result.jobs["job"], runs["holder"][:jobs])  # the claims follow
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
    if names:
        step = 1 + len(names) // 40
        ax.set_ylim(height, 0)
        ax.set_yticks(np.arange(size)[::step] + 0.5, names[::step])
    else:
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


_SHOWN = 8  # of more processors, idle ones are left out
_MOST = 4000  # most rectangles drawn one by one; more are averaged in an image
LABELLED = 120  # most executions that are labelled

PHASE_COLOURS = {
    "waiting for setup": "#e4e6ea",
    "setup": ORANGE,
    "reconfiguration": "#8f6bb3",
    "waiting for memory": "#cfd3d9",
    "transfer": "#4a9c8c",
    "waiting for core": "#e4e6ea",
    "execution": BLUE,
}
"""The colours of the phases in which a task holds its processor."""
WORK_FOR_OTHERS = "#efb48c"
LEGEND = (
    ("execution", BLUE),
    ("setup", ORANGE),
    ("core works for others", WORK_FOR_OTHERS),
    ("reconfiguration", "#8f6bb3"),
    ("transfer", "#4a9c8c"),
    ("waits", "#d6d9de"),
)


def machine_time_axis(ax: Axes, result: TaskRecord) -> None:
    """Label the x axis in the machine's time since the start of the run."""
    start, end = result.started, max(result.ended, result.started + 1e-9)
    unit = result.time_unit
    if unit == "s" and end - start >= 3:
        span_axis(ax, start, end)
        return
    from matplotlib.ticker import MaxNLocator

    span = end - start
    power = int(np.floor(np.log10(span) / 3)) if unit == "s" else 0
    scale, name = {0: (1.0, "seconds"), -1: (1e-3, "ms"), -2: (1e-6, "microseconds")}.get(power, (1e-9, "ns"))
    if unit != "s":
        name = "time" if " " in unit else unit
    ticks = [tick for tick in MaxNLocator(8).tick_values(0, span / scale) if 0 <= tick <= span / scale * (1 + 1e-9)]
    ax.set_xticks([start + tick * scale for tick in ticks], [f"{tick:,.10g}" for tick in ticks])
    ax.set_xlim(start, end)
    ax.set_xlabel(name if name == "time" else f"{name} since the start")


class _Pieces(NamedTuple):
    """The rectangles of a Gantt chart, their phases of :data:`PHASES` (one more: work for others), and tasks or -1."""

    boxes: Boxes
    phase: NDArray[np.int64]
    task: NDArray[np.int64]

    def where(self, kept: NDArray[np.bool_]) -> _Pieces:
        return _Pieces(self.boxes.where(kept), self.phase[kept], self.task[kept])


class ProcessorRows(NamedTuple):
    """What a chart of a machine shows: processors from the top down, edges of their rows, rectangles, a note."""

    names: list[str]
    edges: NDArray[np.int64]
    pieces: _Pieces
    left_out: str


def processor_rows(result: TaskRecord, processors: Sequence[str] | None = None) -> ProcessorRows:
    """Return the rows of some processors and what stands on them; a processor has one row a core.

    Parameters
    ----------
    processors
        names, from the top down; default: all, or the used ones of more than 8

    Raises
    ------
    InputError
        if a processor is unknown
    """
    names: list[str] = result.processors["processor"].tolist()
    first = np.concatenate([[0], np.cumsum(np.maximum(result.processors["cores"].astype(np.int64), 1))])
    pieces = _machine_pieces(result, first)
    boxes = pieces.boxes
    owner = np.searchsorted(first, boxes.low, side="right") - 1
    chosen = used_processors(result) if processors is None else rows_named("processor", processors, names)
    edges = np.concatenate([[0], np.cumsum(np.diff(first)[chosen])])
    shift = np.full(len(names), np.nan)
    shift[chosen] = edges[:-1] - first[chosen]
    boxes = boxes._replace(low=boxes.low + shift[owner], high=boxes.high + shift[owner])
    left = len(names) - len(chosen) if processors is None else 0
    return ProcessorRows(
        [names[i] for i in chosen],
        edges,
        pieces._replace(boxes=boxes).where(np.isfinite(boxes.low)),
        f"{counted(left, 'idle processor')} left out" if left else "",
    )


def _machine_pieces(result: TaskRecord, first: NDArray[np.int64]) -> _Pieces:
    """Return the rectangles of all processors, whose rows begin at ``first``."""
    names = result.processors["processor"].tolist()
    start, end = result.spans
    shown = np.flatnonzero((result.placed >= 0) & np.isfinite(start[PHASES.index(HELD[0])]))
    bottom, top = _lanes(result, shown, first)
    held = [PHASES.index(name) for name in HELD]
    parts: list[tuple[Any, ...]] = []
    for at in held:
        kept = np.isfinite(start[at][shown]) & (end[at][shown] > start[at][shown])
        tasks = shown[kept]
        parts.append((start[at][tasks], end[at][tasks], bottom[kept], top[kept], at, tasks))
    cut = result.stopped
    place = positions(cut["processor"], names)
    alone = np.flatnonzero(np.diff(first)[place] == 1)  # the rows of processors with several cores are unknown
    for at in held:
        since, until = cut[MOMENTS[at]][alone], cut[MOMENTS[at + 1]][alone]
        kept = until > since
        low = first[place[alone[kept]]].astype(np.float64)
        parts.append((since[kept], until[kept], low, low + 1.0, at, -1))
    used = result.cpu_phases
    core = positions(used["core"], names)
    known = core >= 0
    ends = np.where(np.isnan(used["end"]), result.ended, used["end"])
    low = first[core[known]].astype(np.float64)
    parts.append((used["start"][known], ends[known], low, low + 1.0, len(PHASES), -1))
    rows = [[np.broadcast_to(value, len(part[0])) for value in part] for part in parts]
    start, end, low, high, phase, task = (np.concatenate(column) for column in zip(*rows, strict=True))
    return _Pieces(Boxes(start, end, low, high), phase, task)


def _lanes(result: TaskRecord, shown: NDArray[np.int64], first: NDArray[np.int64]) -> tuple[Any, Any]:
    """Return the lowest and highest row of each task: those of the processor, or of some of its cores."""
    bottom = first[result.placed[shown]].astype(np.float64)
    top = bottom + 1.0
    taken, ends = result.moments[2][shown], result.spans[1][-1][shown]
    ends = np.where(np.isnan(ends), result.ended, ends)
    cores = np.diff(first)
    for processor in np.flatnonzero(cores > 1).tolist():
        here = np.flatnonzero(result.placed[shown] == processor)
        wanted = np.maximum(result.tasks["cores"][shown[here]].astype(np.int64), 1)
        packed = pack(taken[here], ends[here], wanted, int(cores[processor]))
        index, where = np.unique(packed["index"], return_index=True)
        bottom[here[index]] = first[processor] + packed["low"][where]
        top[here[index]] = first[processor] + packed["high"][where]
    return bottom, top


@drawn
def machine_gantt(
    result: TaskRecord,
    *,
    processors: Sequence[str] | None = None,
    labels: bool | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the phases of each processor over time; CPU cores also show the setup they do for others.

    Up to 4,000 rectangles are drawn one by one; of more, the height in each column of pixels is the share of time that
    a processor spent in each phase.

    Parameters
    ----------
    processors
        names, from the top down; default: all, or the used ones of more than 8
    labels
        label executions with their tasks; default: if they are few
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if a processor is unknown

    >>> from simmodel.metrics._examples import two_kinds
    >>> [text.get_text() for text in machine_gantt(two_kinds()).get_yticklabels()]
    ['cpu', 'gpu']
    """
    names, tops, pieces, left_out = processor_rows(result, processors)
    ax = axes(ax, (9.0, 0.9 + min(max(0.32 * float(tops[-1]), 1.0), 9.0)), figsize)
    many = len(pieces.task) > _MOST
    if many:
        _task_image(ax, result, pieces, int(tops[-1]))
    else:
        _bars(ax, pieces)
    executed = pieces.where((pieces.phase == len(PHASES) - 1) & (pieces.task >= 0))
    if labels if labels is not None else len(executed.task) <= LABELLED and tops[-1] <= 60:
        _names(ax, result, executed)
    ax.set_ylim(tops[-1], 0)
    middles = (tops[:-1] + tops[1:]) / 2
    step = max(1, len(names) // 40)
    ax.set_yticks(middles[::step], names[::step])
    for edge in tops[1:-1] if len(names) <= 80 else ():
        ax.axhline(edge, color="white", linewidth=2.0 if many else 0.6)
    machine_time_axis(ax, result)
    ax.tick_params(axis="y", length=0)
    tidy(ax, grid="", title=title)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    _legend(ax, pieces.phase)
    if left_out:
        ax.annotate(left_out, (1, 1), (0, 6), "axes fraction", "offset points", ha="right", color=GREY)
    return ax


def used_processors(result: TaskRecord) -> list[int]:
    """Return the rows of the processors that plots show: all, or the used ones of more than 8."""
    count = len(result.processors)
    used = np.unique(result.placed[result.placed >= 0])
    core = positions(result.cpu_phases["core"], result.processors["processor"].tolist())
    used = np.union1d(used, core[core >= 0])
    return list(range(count)) if count <= _SHOWN or not len(used) else used.tolist()


def _colour_of(phase: int) -> str:
    return WORK_FOR_OTHERS if phase == len(PHASES) else PHASE_COLOURS[PHASES[phase]]


def _bars(ax: Axes, pieces: _Pieces) -> None:
    thick = pieces.phase == len(PHASES) - 1
    inset = np.where(thick, 0.1, 0.22)  # phases other than execution are thinner
    start, end, low, high = pieces.boxes
    span = float(end.max(initial=1.0) - start.min(initial=0.0))
    edges = np.where((end - start > span / 300) & (len(start) < 1500), 0.5, 0.0)  # none around slivers
    Boxes(start, end, low + inset, high - inset).draw(ax, [_colour_of(each) for each in pieces.phase.tolist()], edges)


def _task_image(ax: Axes, result: TaskRecord, pieces: _Pieces, rows: int) -> None:
    """Draw the share of time of each row in each phase, by columns of pixels, from the bottom up."""
    from matplotlib.colors import to_rgb

    wide, tall = 900, max(1, min(24, 960 // rows))
    colours = [_colour_of(each) for each in pieces.phase.tolist()]
    order = [colour for _, colour in LEGEND[:-1]]
    order += [colour for colour in dict.fromkeys(colours) if colour not in order]  # waits come last
    painted = np.array([order.index(colour) for colour in colours])
    covered = np.zeros((len(order), rows, wide))
    for number in range(len(order)):
        here = pieces.where(painted == number)
        covered[number] = here.boxes.covered(result, np.ones(len(here.task)), wide, rows, rows)
    tops = np.cumsum(covered, axis=0)[:, :, None, :]
    heights = ((tall - np.arange(tall)) - 0.5)[:, None] / tall
    which = (tops <= heights).sum(axis=0).reshape(rows * tall, wide)
    paint = np.array([*(to_rgb(colour) for colour in order), (1.0, 1.0, 1.0)])
    extent = (result.started, max(result.ended, result.started + 1e-9), 0, rows)
    ax.imshow(paint[which], aspect="auto", origin="lower", interpolation="nearest", extent=extent)


def _names(ax: Axes, result: TaskRecord, pieces: _Pieces) -> None:
    """Label bars with their tasks if the labels fit."""
    figure: Any = ax.figure
    width = ax.get_position().width * figure.get_size_inches()[0] * 72
    letter = 0.6 * font_size("small")
    span = max(result.ended - result.started, 1e-9)
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": "small",
        "color": "white",
        "annotation_clip": True,
    }
    names = result.tasks["task"][pieces.task].tolist()
    for name, a, b, low, high in zip(names, *(column.tolist() for column in pieces.boxes), strict=True):
        if len(str(name)) * letter <= (b - a) / span * width:
            ax.annotate(str(name), ((a + b) / 2, (low + high) / 2), **style)


def _legend(ax: Axes, phase: NDArray[np.int64]) -> None:
    from matplotlib.patches import Patch

    there = {PHASES[each] if each < len(PHASES) else "core works for others" for each in np.unique(phase).tolist()}
    waits = any(name.startswith("waiting") for name in there)
    handles = [
        Patch(color=colour, label=name) for name, colour in LEGEND if name in there or (name == "waits" and waits)
    ]
    if len(handles) > 1:
        room = {"borderaxespad": 0.2, "handlelength": 1.0, "handleheight": 0.9, "columnspacing": 1.4}
        legend(ax, "lower left", (0.0, 1.0), handles=handles, columns=len(handles), **room)
