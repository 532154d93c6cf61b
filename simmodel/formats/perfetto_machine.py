"""Traces of machines for ui.perfetto.dev: rows for processors and links, counters for pools, arrows along dependencies.

The slices of a task are the phases in which it holds its processor; a CPU core also shows the setups and transfers that
it runs for other processors. Overlapping slices (a core sets up others while its own task waits for data) get a second
row. One unit of the machine's time is shown as one second. See :mod:`simmodel.formats.perfetto` for the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.formats.perfetto import counter, write_events
from simmodel.foundation.errors import Plain
from simmodel.metrics.processors import link_load, routes
from simmodel.records.steps import Steps
from simmodel.records.task_record import HELD, PHASES, positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.task_record import TaskRecord

__all__ = ["trace_events", "write_trace"]

_PROCESSORS, _LINKS, _POOLS, _TASKS = 1, 2, 3, 4  # the processes of the trace
_ROWS = 1000  # thread ids reserved for each processor or link; overlapping slices use several


def write_trace(result: TaskRecord, path: str | Path, *, limit: int = 500_000, points: int = 20_000) -> None:
    """Write the phases of tasks, transfers and memory use as a trace, compressed if the path ends in ``.gz``.

    Parameters
    ----------
    path
        the file to write; Perfetto opens ``.json`` and ``.json.gz``
    limit
        the maximum number of slices of processors, of slices of links, and of arrows; the longest are kept, and the
        name of the process shows how many are left out
    points
        the maximum number of values of a counter; longer ones are averaged over equal intervals

    >>> import json, pathlib, tempfile
    >>> from simmodel.metrics._examples import two_kinds
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_trace(two_kinds(), folder + "/trace.json")
    ...     events = json.loads(pathlib.Path(folder, "trace.json").read_text())["traceEvents"]
    >>> [event["name"] for event in events if event["ph"] == "X"]
    ['a', 'b: setup', 'b: transfer', 'b', 'for b: setup', '10B to hbm for b']
    """
    write_events(path, trace_events(result, limit=limit, points=points), result.name)


def trace_events(result: TaskRecord, *, limit: int = 500_000, points: int = 20_000) -> Iterator[dict[str, Any]]:
    """Yield the trace's events as dictionaries; parameters as of :func:`write_trace`."""
    slices = _Slices(result)
    yield from slices.events(limit)
    yield from _link_slices(result, limit)
    for link, load in link_load(result).items():
        yield from counter(f"{link} (bytes per time unit)", load, _LINKS, points)
    yield _process(_POOLS, "memory pools (bytes)")
    for pool, used in result.memory.items():
        yield from counter(pool, used, _POOLS, points)
    yield _process(_TASKS, "tasks")
    start, end = result.spans
    for phase in ("blocked on dependencies", "blocked on setup"):
        at = PHASES.index(phase)
        known = np.isfinite(start[at])
        times = np.append(start[at][known], end[at][known])
        signs = np.repeat([1.0, -1.0], known.sum())
        steps = Steps.from_changes(times, signs, result.started, max(result.ended, result.started))
        yield from counter(phase, steps, _TASKS, points)


def _process(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def _thread(pid: int, tid: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def _micro(seconds: NDArray[np.float64]) -> list[float]:
    """Return microseconds rounded to whole nanoseconds; this keeps equal instants equal and all instants in order."""
    return [whole / 1000 for whole in np.rint(np.asarray(seconds) * 1e9).astype(np.int64).tolist()]


def _lanes(owner: NDArray[np.int64], start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each span the lowest row of its owner on which it overlaps no other."""
    lanes = np.zeros(len(owner), dtype=np.int64)
    order = np.lexsort((end, start, owner))
    same = owner[order][1:] == owner[order][:-1]
    for each in np.unique(owner[order][1:][same & (start[order][1:] < end[order][:-1])]).tolist():
        here = order[owner[order] == each]
        until: list[float] = []  # the end of the last span of each row
        for i, begins, ends in zip(here.tolist(), start[here].tolist(), end[here].tolist(), strict=True):
            lane = next((row for row, last in enumerate(until) if last <= begins), len(until))
            until[lane : lane + 1] = [ends]
            lanes[i] = lane
    return lanes


def _longest(took: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Return the indices of the longest spans, in their original order."""
    if len(took) <= limit:
        return np.arange(len(took))
    return np.sort(np.argsort(-took, kind="stable")[:limit])


class _Slices:
    """The slices of the processors, and the arrows between them."""

    def __init__(self, result: TaskRecord) -> None:
        self.result = result
        start, end = result.spans
        first = len(PHASES) - len(HELD)
        self.taken = start[first]
        self.until = np.where(np.isnan(end[-1]), np.fmax.reduce(end[first:]), end[-1])
        self.shown = np.flatnonzero((result.placed >= 0) & np.isfinite(self.taken))
        self.names = [str(task) for task in result.tasks["task"].tolist()]
        self.processors: list[str] = result.processors["processor"].tolist()
        core = positions(result.cpu_phases["core"], self.processors)
        self.helped = np.flatnonzero(core >= 0)
        self.core = core[self.helped]
        ends = result.cpu_phases["end"].astype(np.float64)
        self.helped_end = np.where(np.isnan(ends), result.ended, ends)[self.helped]
        self.helped_start = result.cpu_phases["start"].astype(np.float64)[self.helped]
        self.lane = np.zeros(len(result.tasks), dtype=np.int64)
        owner = np.append(result.placed[self.shown], self.core)
        lanes = _lanes(
            owner,
            np.append(self.taken[self.shown], self.helped_start),
            np.append(self.until[self.shown], self.helped_end),
        )
        self.lane[self.shown] = lanes[: len(self.shown)]
        self.helped_lane = lanes[len(self.shown) :]
        self.rows = np.unique(owner * _ROWS + lanes)

    def events(self, limit: int) -> Iterator[dict[str, Any]]:
        result = self.result
        start, end = result.spans
        first = len(PHASES) - len(HELD)
        row, phase, begins, ends = [], [], [], []
        for at in range(first, len(PHASES)):
            kept = self.shown[np.isfinite(start[at][self.shown])]
            if at < len(PHASES) - 1:
                kept = kept[(end[at] > start[at])[kept]]
            row.append(kept)
            phase.append(np.full(len(kept), at))
            begins.append(start[at][kept])
            ends.append(end[at][kept])
        rows, phases = np.concatenate(row), np.concatenate(phase)
        starts, stops = np.concatenate(begins), np.concatenate(ends)
        order = np.lexsort((phases, starts, rows))
        order = order[_longest((stops - starts)[order], limit)]
        left = len(rows) - len(order)
        more = f" ({left} shortest slices left out)" if left else ""
        yield _process(_PROCESSORS, f"{result.spec.name}: {len(self.processors)} processors{more}")
        for each in self.rows.tolist():
            number, lane = divmod(each, _ROWS)
            yield from _thread(_PROCESSORS, each, self.processors[number] + (f" ({lane + 1})" if lane else ""))
        thread = result.placed * _ROWS + self.lane
        ts, te = _micro(starts[order]), _micro(stops[order])
        families, sets = result.tasks["family"].tolist(), result.set_table["set"].tolist()
        of = result.tasks["set"].tolist()
        pairs = zip(rows[order].tolist(), phases[order].tolist(), ts, te, strict=True)
        for task, at, begin, stop in pairs:
            name = self.names[task] if at == len(PHASES) - 1 else f"{self.names[task]}: {PHASES[at]}"
            args: dict[str, Any] = {"task": self.names[task], "phase": PHASES[at]}
            if families[task]:
                args["family"] = families[task]
            if len(sets) > 1:
                args["set"] = sets[int(of[task])]
            yield self.slice(name, PHASES[at], begin, stop, int(thread[task]), args)
        table = result.cpu_phases
        begun, over = _micro(self.helped_start), _micro(self.helped_end)
        for i, core, lane, begin, stop in zip(
            self.helped.tolist(), self.core.tolist(), self.helped_lane.tolist(), begun, over, strict=True
        ):
            what, task_id = str(table["what"][i]), str(table["task"][i])
            yield self.slice(
                f"for {task_id}: {what}", f"{what} for others", begin, stop, core * _ROWS + lane, {"task": task_id}
            )
        yield from self.arrows(thread, limit)

    @staticmethod
    def slice(name: str, cat: str, begin: float, stop: float, tid: int, args: dict[str, Plain]) -> dict[str, Any]:
        took = round(stop - begin, 3)
        return {"ph": "X", "name": name, "cat": cat, "ts": begin, "dur": took, "pid": _PROCESSORS, "tid": tid} | {
            "args": args
        }

    def arrows(self, thread: NDArray[np.int64], limit: int) -> Iterator[dict[str, Any]]:
        """Yield two events for each dependency: from the end of the parent's execution to the child's first slice."""
        start, end = self.result.spans
        began = self.taken
        edges = self.result.edges
        parent, child = edges["parent"], edges["child"]
        known = np.isfinite(end[-1][parent]) & np.isfinite(start[-1][parent]) & np.isfinite(began[child])
        known &= (self.result.placed[parent] >= 0) & (self.result.placed[child] >= 0)
        parent, child = parent[known][:limit], child[known][:limit]
        # Perfetto ties an arrow to the slice around its end: it must leave shortly before the parent's slice ends.
        leaves = np.maximum(end[-1][parent] - 1e-9, start[-1][parent])
        ends = zip(parent.tolist(), child.tolist(), _micro(leaves), _micro(began[child]), strict=True)
        for number, (a, b, at, to) in enumerate(ends, start=1):
            common = {"name": "dependency", "cat": "dependency", "id": number, "pid": _PROCESSORS}
            yield {"ph": "s", **common, "tid": int(thread[a]), "ts": at}
            yield {"ph": "f", "bp": "e", **common, "tid": int(thread[b]), "ts": max(to, at)}


def _link_slices(result: TaskRecord, limit: int) -> Iterator[dict[str, Any]]:
    from simmodel.foundation.units import show_quantity

    table = result.transfers
    numbers = {link.name: i for i, link in enumerate(result.spec.links)}
    pairs = [(row, numbers[link]) for row, way in enumerate(routes(result) if len(table) else ()) for link in way]
    row = np.array([pair[0] for pair in pairs], dtype=np.int64)
    link = np.array([pair[1] for pair in pairs], dtype=np.int64)
    start = table["start"].astype(np.float64)[row]
    end = table["end"].astype(np.float64)[row]
    end = np.where(np.isnan(end), result.ended, end)
    kept = _longest(end - start, limit)
    more = f" ({len(row) - len(kept)} shortest transfers left out)" if len(kept) < len(row) else ""
    yield _process(_LINKS, f"links{more}")
    lane = _lanes(link, start, end)
    names = list(numbers)
    for each in np.unique(link * _ROWS + lane).tolist():
        number, low = divmod(each, _ROWS)
        yield from _thread(_LINKS, each, names[number] + (f" ({low + 1})" if low else ""))
    thread = (link * _ROWS + lane)[kept].tolist()
    ts, te = _micro(start[kept]), _micro(end[kept])
    for i, tid, begin, stop in zip(row[kept].tolist(), thread, ts, te, strict=True):
        size = show_quantity(float(f"{table['bytes'][i]:.4g}"), "B")
        task = str(table["task"][i])
        yield {
            "ph": "X",
            "name": f"{size} to {table['destination'][i]}" + (f" for {task}" if task else ""),
            "cat": str(table["cause"][i]),
            "ts": begin,
            "dur": round(stop - begin, 3),
            "pid": _LINKS,
            "tid": tid,
            "args": {
                "object": str(table["object"][i]),
                "bytes": float(table["bytes"][i]),
                "source": str(table["source"][i]),
                "destination": str(table["destination"][i]),
                "objects": int(table["count"][i]),
            },
        }
