"""The states of the nodes of a place as spans of time: held, down, and held although they were down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["down_spans", "held_spans", "parts_inside"]


def held_spans(held: Table, started: float, ended: float) -> Table:
    """Return one row per node of everything that held capacity: ``node, start, end, processors`` (its cores there).

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
    held = held.where(known)
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
    """Return the parts of spans of nodes inside windows of the same nodes: ``node, start, end, processors``.

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
    return Table(
        {
            "node": spans["node"][rows],
            "start": np.maximum(spans["start"][rows], windows["start"][which]),
            "end": np.minimum(spans["end"][rows], windows["end"][which]),
            "processors": spans["processors"][rows],
        }
    )
