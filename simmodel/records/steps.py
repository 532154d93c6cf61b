"""Step functions of time, constant between events, such as busy processors or power, and the states of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, counted, figures, texts
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Steps", "down_spans", "held_spans", "parts_inside"]


def _floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _float(value: float) -> float:
    return float(value)


@attrs.frozen(eq=False, repr=False)
class Steps(Shown):
    """A quantity that is constant between events; ``values[i]`` holds from ``times[i]`` until ``times[i + 1]``.

    Parameters
    ----------
    times
        instants in s, increasing
    values
        values, one per instant
    end
        the instant in s until which the last value holds

    >>> busy = Steps([0, 10, 30], [2, 4, 0], end=40)
    >>> busy.integral(), busy.mean(), busy.max()
    (100.0, 2.5, 4.0)
    >>> busy.at([5, 10, 35])
    array([2., 4., 0.])
    """

    times: NDArray[np.float64] = attrs.field(converter=_floats)
    values: NDArray[np.float64] = attrs.field(converter=_floats)
    end: float = attrs.field(converter=_float)  # attrs would tokenize the signature of ``float`` itself: 5 ms

    def _cells(self) -> Cells:
        return [["from", "value"], *map(texts, zip(self.times.tolist(), self.values.tolist(), strict=True))]

    def __repr__(self) -> str:
        if not len(self.times):
            return "<Steps: none>"
        steps = counted(len(self.times), "step")
        mean, most = figures(self.mean(), 4), figures(self.max(), 4)
        return f"<Steps: {steps} from {self.start:g} to {self.end:g}, mean {mean}, most {most}>"

    @classmethod
    def from_changes(cls, times: ArrayLike, changes: ArrayLike, start: float, end: float) -> Steps:
        """Return the sum of changes from 0: ``changes[i]`` at ``times[i]``, in any order.

        Simultaneous changes form one step. Changes before ``start`` take effect at ``start``; changes after ``end`` are
        ignored.

        >>> steps = Steps.from_changes([0, 0, 5, 5], [1, 2, -2, 1], start=0, end=10)
        >>> steps.times, steps.values
        (array([0., 5.]), array([3., 2.]))
        """
        at = np.maximum(_floats(times), start)
        order = np.argsort(at, kind="stable")
        at = at[order]
        total = _floats(np.cumsum(np.asarray(changes, dtype=np.result_type(float, np.asarray(changes)))[order]))
        last = np.flatnonzero(np.append(at[1:] != at[:-1], True)) if len(at) else np.zeros(0, dtype=int)
        at, total = at[last], total[last]
        inside = (at < end) | (at == start)
        at, total = at[inside], total[inside]
        if not len(at) or at[0] > start:
            at, total = np.insert(at, 0, start), np.insert(total, 0, 0.0)
        changed = np.append(True, total[1:] != total[:-1])
        return cls(at[changed], total[changed], end)

    @classmethod
    def from_spans(cls, spans: Table, amounts: ArrayLike, start: float, end: float) -> Steps:
        """Return the sum of amounts, each there from the ``start`` of its span to its ``end``.

        >>> Steps.from_spans(Table({"start": [0.0, 5.0], "end": [9.0, 7.0]}), [2, 1], start=0, end=10).values
        array([2., 3., 2., 0.])
        """
        each = np.asarray(amounts, dtype=np.longdouble)  # so that what begins and ends leaves nothing behind
        times, changes = np.append(spans["start"], spans["end"]), np.append(each, -each)
        return cls.from_changes(times, changes, start, end)

    @property
    def start(self) -> float:
        """The first instant, in s."""
        return float(self.times[0]) if len(self.times) else self.end

    def at(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return the values at these instants; 0 before the first step and from the end on."""
        asked = _floats(times)
        row = np.searchsorted(self.times, asked, side="right") - 1  # -1: the 0 behind the values
        return np.where(asked < self.end, np.append(self.values, 0.0)[row], 0.0)

    def _cumulative(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        edges = np.append(self.times, max(self.end, self.start))
        return edges, np.append(0.0, np.cumsum(self.values * np.diff(edges)))

    def integral(self, start: float | None = None, end: float | None = None) -> float:
        """Return the exact integral over time from ``start`` to ``end`` (default: the whole range)."""
        edges, area = self._cumulative()
        low, high = self.start if start is None else start, self.end if end is None else end
        return float(np.interp(high, edges, area) - np.interp(low, edges, area))

    def mean(self, start: float | None = None, end: float | None = None) -> float:
        """Return the time average; nan over an empty interval."""
        low, high = self.start if start is None else start, self.end if end is None else end
        return self.integral(low, high) / (high - low) if high > low else float("nan")

    def max(self) -> float:
        """Return the maximum of the values that hold for some time; 0 if there are none."""
        held = np.diff(np.append(self.times, self.end)) > 0
        return float(self.values[held].max()) if held.any() else 0.0

    def averages(self, edges: ArrayLike) -> NDArray[np.float64]:
        """Return the exact time averages between consecutive ``edges`` (s, increasing).

        >>> Steps([0, 10], [2, 4], end=20).averages([0, 5, 15, 20])
        array([2., 3., 4.])
        """
        at = _floats(edges)
        known, area = self._cumulative()
        return np.asarray(np.diff(np.interp(at, known, area)) / np.diff(at), dtype=np.float64)

    def thinned(self, points: int = 2000) -> Steps:
        """Return the step function itself, or its averages over ``points`` equal intervals if it has more steps."""
        if len(self.times) <= points or self.end <= self.start:
            return self
        edges = np.linspace(self.start, self.end, points + 1)
        return Steps(edges[:-1], self.averages(edges), self.end)

    def combine(
        self, other: Steps, function: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    ) -> Steps:
        """Return ``function(self, other)`` at every step of either, where one that has not begun or has ended is 0.

        >>> Steps([0, 2], [1, 3], end=4).combine(Steps([0, 1], [2, 4], end=4), np.divide).values
        array([0.5 , 0.25, 0.75])
        """
        end = max(self.end, other.end)
        ends = [each.end for each in (self, other) if each.end < end and len(each.times)]
        times = np.sort(np.concatenate([self.times, other.times, ends]), kind="stable")  # merges; union1d sorts anew
        times = times[np.append(True, times[1:] != times[:-1])] if len(times) else times
        return Steps(times, function(self.at(times), other.at(times)), end)

    def share_of(self, other: Steps) -> Steps:
        """Return the quotient at every step of either; 0 where the other is not positive.

        >>> Steps([0, 2], [1, 3], end=4).share_of(Steps([0, 1], [0, 4], end=4)).values
        array([0.  , 0.25, 0.75])
        """
        return self.combine(other, lambda a, b: np.divide(a, b, out=np.zeros_like(a), where=b > 0))

    def __add__(self, other: Steps) -> Steps:
        return self.combine(other, np.add)

    def scaled(self, factor: float, offset: float = 0.0) -> Steps:
        """Return ``offset + factor * values`` over the same time."""
        return Steps(self.times, offset + factor * self.values, self.end)

    def curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return times and values for a step plot (``where="post"``), with the last value repeated at the end."""
        return np.append(self.times, self.end), np.append(self.values, self.values[-1:])


def held_spans(held: Table, started: float, ended: float) -> Table:
    """Return one row per node of what held capacity: its ``row``, ``node, start, end``, and ``processors``, the cores.

    Parameters
    ----------
    held
        as of :meth:`simmodel.records.JobRecord.held`, of one place; without ``cores`` its processors are divided evenly
    started, ended
        begin and end of the record (s), and of the spans that reach beyond it

    >>> nodes = np.empty(1, dtype=object); nodes[0] = (0, 2)
    >>> held = Table({"start": [1.0], "end": [np.nan], "processors": [6], "nodes": nodes})
    >>> spans = held_spans(held, started=2, ended=5)
    >>> spans["node"], spans["start"], spans["end"], spans["processors"]
    (array([0, 2]), array([2., 2.]), array([5., 5.]), array([3., 3.]))
    """
    known = np.array([nodes is not None and len(nodes) > 0 for nodes in held["nodes"].tolist()], dtype=bool)
    rows, held = np.flatnonzero(known), held.where(known)
    nodes = held["nodes"].tolist()
    each = np.array([len(some) for some in nodes], dtype=np.int64)
    recorded = held["cores"].tolist() if "cores" in held else [None] * len(held)
    cores = [
        (processors / len(some),) * len(some) if known is None else known
        for known, some, processors in zip(recorded, nodes, held["processors"].tolist(), strict=True)
    ]
    start = np.clip(held["start"], started, ended)
    end = np.clip(np.where(np.isnan(held["end"]), ended, held["end"]), start, ended)
    return Table(
        {
            "row": np.repeat(rows, each),
            "node": np.array([node for some in nodes for node in some], dtype=np.int64),
            "start": np.repeat(start, each),
            "end": np.repeat(end, each),
            "processors": np.array([amount for some in cores for amount in some], dtype=np.float64),
        }
    )


def down_spans(changes: Table, started: float, ended: float) -> Table:
    """Return one row per absence of a node, by node and start: ``node, start, end``.

    Parameters
    ----------
    changes
        of one place, in order of time, with the nodes that are ``down`` from each on
    started, ended
        begin and end of the record (s), and of the spans that reach beyond it

    >>> down = np.empty(3, dtype=object); down[:] = [(1,), (0, 1), (0,)]
    >>> spans = down_spans(Table({"time": [2.0, 4.0, 7.0], "down": down}), started=3, ended=9)
    >>> spans["node"], spans["start"], spans["end"]
    (array([0, 1]), array([4., 3.]), array([9., 7.]))
    """
    since: dict[int, float] = {}
    rows: list[tuple[int, float, float]] = []
    for time, down in zip(changes["time"].tolist(), changes["down"].tolist(), strict=True):
        now = set(down or ())
        rows += [(node, since.pop(node), time) for node in list(since) if node not in now]
        since |= {node: time for node in now if node not in since}
    rows += [(node, start, ended) for node, start in since.items()]
    clipped = ((node, max(start, started), min(end, ended)) for node, start, end in rows)
    rows = sorted(row for row in clipped if row[1] < row[2])
    node, start, end = zip(*rows, strict=True) if rows else ((), (), ())
    return Table(
        {
            "node": np.array(node, dtype=np.int64),
            "start": np.array(start, dtype=np.float64),
            "end": np.array(end, dtype=np.float64),
        }
    )


def parts_inside(spans: Table, windows: Table) -> Table:
    """Return the parts of spans of nodes inside windows of the same nodes, with all columns of the spans.

    Parameters
    ----------
    spans
        as of :func:`held_spans`
    windows
        as of :func:`down_spans`: those of a node do not overlap

    >>> spans = Table({"node": [1, 1], "start": [0.0, 6.0], "end": [5.0, 9.0], "processors": [4.0, 2.0]})
    >>> inside = parts_inside(spans, Table({"node": [1], "start": [3.0], "end": [7.0]}))
    >>> inside["start"], inside["end"]
    (array([3., 6.]), array([5., 7.]))
    """
    spans = spans.where(np.lexsort((spans["start"], spans["node"])))
    first, last = (np.searchsorted(spans["node"], windows["node"], side=side) for side in ("left", "right"))
    chosen: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    window: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    for i, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        stop = low + int(np.searchsorted(spans["start"][low:high], windows["end"][i]))
        rows = low + np.flatnonzero(spans["end"][low:stop] > windows["start"][i])
        chosen.append(rows)
        window.append(np.full(len(rows), i, dtype=np.int64))
    rows, which = np.concatenate(chosen), np.concatenate(window)
    inside = spans.where(rows)
    start = np.maximum(inside["start"], windows["start"][which])
    return inside.with_columns(start=start, end=np.minimum(inside["end"], windows["end"][which]))
