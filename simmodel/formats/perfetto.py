"""Traces for ui.perfetto.dev and chrome://tracing: a process per place, a row per processor or node, and counters.

The format is the trace event format of Chrome in JSON: complete events (``X``) for executions, metadata (``M``) for
names, counters (``C``). Times are in microseconds: whole ones for jobs, eighths for tasks, which add up exactly.

Slices of a row never overlap: a slice ends at the rounded end, and what overlaps (jobs on one node; a core that sets up
others while its own task waits for data) gets a second row. Viewers drop slices that overlap others.

The slices of a task are the phases in which it holds its processor; a CPU core also shows the setups and transfers that
it runs for other processors. One unit of the machine's time is shown as one second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from simmodel.foundation.errors import Plain
from simmodel.foundation.writing import text_file
from simmodel.metrics.packing import pack
from simmodel.metrics.processors import link_load, routes
from simmodel.records.steps import Steps
from simmodel.records.task_record import HELD, PHASES, positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.job_record import JobRecord
    from simmodel.records.task_record import TaskRecord
    from simmodel.work.table import Table

__all__ = ["counter", "task_events", "trace_events", "write_events", "write_task_trace", "write_trace"]


_MICRO = 1e6


def write_trace(result: JobRecord, path: str | Path, *, limit: int = 500_000, points: int = 20_000) -> None:
    """Write the executions of a run as a trace, compressed if the path ends in ``.gz``.

    On places that only count processors an execution is one slice, on the lowest of its rows (as packed by
    :func:`simmodel.metrics.packing.pack`); on identified nodes it is a slice on each of its nodes.

    Parameters
    ----------
    path
        the file to write; Perfetto opens ``.json`` and ``.json.gz``
    limit
        the maximum number of slices of a place; those with the most processor-seconds are kept, and the name of the
        place shows how many are left out
    points
        the maximum number of values of a counter; longer ones are averaged over equal intervals

    >>> import json, pathlib, tempfile
    >>> from simmodel.records import JobRecord
    >>> result = JobRecord(jobs={"submit": [0], "start": [1], "end": [3], "processors": [2]}, processors=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_trace(result, folder + "/trace.json")
    ...     events = json.loads(pathlib.Path(folder, "trace.json").read_text())["traceEvents"]
    >>> [(event["ts"], event["dur"], event["args"]["processors"]) for event in events if event["ph"] == "X"]
    [(1000000, 2000000, 2)]
    """
    write_events(path, trace_events(result, limit=limit, points=points), result.name)


def write_events(path: str | Path, events: Iterable[Mapping[str, Plain]], name: str) -> None:
    """Write trace events to a file, one per line, compressed if the path ends in ``.gz``.

    Parameters
    ----------
    path
        the file to write
    events
        dictionaries in the trace event format: ``ph``, ``ts`` and so on
    name
        of the trace
    """
    with text_file(path, ".json") as file:
        _write(file, events, name)


def _write(file: TextIO, events: Iterable[Mapping[str, Plain]], name: str) -> None:
    encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
    file.write('{"displayTimeUnit":"ms","otherData":' + encode({"name": name}) + ',"traceEvents":[\n')
    before = ""
    for event in events:
        file.write(before + encode(event))
        before = ",\n"
    file.write("\n]}\n")


def trace_events(result: JobRecord, *, limit: int = 500_000, points: int = 20_000) -> Iterator[dict[str, Any]]:
    """Yield the trace events as dictionaries; the parameters are those of :func:`write_trace`."""
    jobs = result.jobs
    ids, first = np.unique(jobs["job"], return_index=True)
    for number, place in enumerate(result.places["place"].tolist(), start=1):
        runs = result.held(place)
        row = np.full(len(runs), -1, dtype=np.int64)
        known = int((result.runs["place"] == place).sum())  # the claims follow
        row[:known] = first[np.searchsorted(ids, runs["holder"][:known])]
        size = int(result.places["processors"][number - 1])
        yield from _slices(result, runs, row, number, size, limit)
        yield from counter("busy processors", result.busy(place), number, points)
    yield _process(0, "queue")
    yield from counter("jobs waiting", result.queue_length(), 0, points)
    yield from counter("processors waited for", result.queued_processors(), 0, points)


def _slices(
    result: JobRecord, runs: Table, row: NDArray[np.intp], pid: int, size: int, limit: int
) -> Iterator[dict[str, Any]]:
    """Yield the executions and claims of one place; ``row`` has the rows of their jobs, -1 for claims."""
    place = str(result.places["place"][pid - 1])
    start, end = runs["start"], np.where(np.isnan(runs["end"]), result.ended, runs["end"])
    begin, stop = (np.rint(each * _MICRO).astype(np.int64) for each in (start, end))
    index, thread, stride = _rows(runs, begin, stop, size)
    left_out = max(0, len(index) - limit)
    if left_out:
        weight = ((end - start) * runs["processors"])[index]
        kept = np.sort(np.argsort(-weight, kind="stable")[:limit])
        index, thread = index[kept], thread[kept]
    name = f"{place}, {size} processors" + (f" ({left_out} smallest executions left out)" if left_out else "")
    yield _process(pid, name)
    if stride > 1:
        yield from _threads(pid, np.unique(thread), stride, "node {}".format)
    jobs = result.jobs
    extra = [name for name in ("user", "queue") if name in jobs]
    columns = [
        runs["holder"][index].tolist(),
        row[index].tolist(),
        begin[index].tolist(),
        (stop - begin)[index].tolist(),
        thread.tolist(),
        runs["processors"][index].tolist(),
        runs["status"][index].tolist(),
        jobs["wait"][row[index]].tolist(),
        *(jobs[name][row[index]].tolist() for name in extra),
    ]
    for job, known, ts, dur, tid, processors, status, wait, *rest in zip(*columns, strict=True):
        waited = {} if known < 0 else {"wait_s": wait}
        about = {} if known < 0 else dict(zip(extra, rest, strict=True))
        yield {
            "ph": "X",
            "name": str(job) if known < 0 else f"job {job}",
            "cat": status,
            "ts": ts,
            "dur": dur,
            "pid": pid,
            "tid": tid,
            "args": {"processors": processors, **waited, "status": status, **about},
        }


def _rows(
    runs: Table, begin: NDArray[np.int64], stop: NDArray[np.int64], size: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Return the execution and the row of each slice, and how many rows a node has.

    An execution is on every one of its nodes, in the lowest row that is free there, or on its lowest packed row.
    """
    nodes = runs["nodes"].tolist()
    on_nodes = np.array([held is not None for held in nodes], dtype=bool)
    if on_nodes.any():
        pairs = [(i, node) for i, held in enumerate(nodes) for node in held or (0,)]
        index, node = np.array([i for i, _ in pairs]), np.array([node for _, node in pairs])
        lane = _lanes(node, begin[index], stop[index])
        stride = int(lane.max()) + 1
        return index, node * stride + lane, stride
    packed = pack(begin, stop, runs["processors"], size)
    index, first = np.unique(packed["index"], return_index=True)
    return index, packed["low"][first], 1


def counter(name: str, steps: Steps, pid: int, points: int) -> Iterator[dict[str, Any]]:
    """Yield the values of a step function as a counter of a process, thinned to ``points`` values."""
    thin = steps.thinned(points)
    times = np.rint(thin.times * _MICRO).astype(np.int64).tolist()
    for ts, value in zip(times, np.round(thin.values, 3).tolist(), strict=True):
        yield {"ph": "C", "name": name, "ts": ts, "pid": pid, "args": {"value": value}}


_PROCESSORS, _LINKS, _POOLS, _TASKS = 1, 2, 3, 4  # the processes of the trace
_ROWS = 1000  # thread ids reserved for each processor or link; overlapping slices use several


def write_task_trace(result: TaskRecord, path: str | Path, *, limit: int = 500_000, points: int = 20_000) -> None:
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
    ...     write_task_trace(two_kinds(), folder + "/trace.json")
    ...     events = json.loads(pathlib.Path(folder, "trace.json").read_text())["traceEvents"]
    >>> [event["name"] for event in events if event["ph"] == "X"]
    ['a', 'b: setup', 'b: transfer', 'b', 'for b: setup', '10B to hbm for b']
    """
    write_events(path, task_events(result, limit=limit, points=points), result.name)


def task_events(result: TaskRecord, *, limit: int = 500_000, points: int = 20_000) -> Iterator[dict[str, Any]]:
    """Yield the trace's events as dictionaries; parameters as of :func:`write_task_trace`."""
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


def _threads(pid: int, tids: NDArray[np.int64], stride: int, name_of: Callable[[int], str]) -> Iterator[dict[str, Any]]:
    """Yield the names of rows, of which each owner has up to ``stride``."""
    for tid in tids.tolist():
        number, lane = divmod(tid, stride)
        name = name_of(number) + (f" ({lane + 1})" if lane else "")
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


_PARTS = 8  # of a microsecond: exact in binary, and whole nanoseconds for viewers


def _micro(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return microseconds rounded to eighths, so that ends, as sums of starts and durations, are exact."""
    found: NDArray[np.float64] = np.rint(np.asarray(seconds) * (_MICRO * _PARTS)) / _PARTS
    return found


def _lanes(owner: NDArray[np.int64], start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int64]:
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
        yield from _threads(_PROCESSORS, self.rows, _ROWS, self.processors.__getitem__)
        thread = result.placed * _ROWS + self.lane
        ts, te = _micro(starts[order]).tolist(), _micro(stops[order]).tolist()
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
        begun, over = _micro(self.helped_start).tolist(), _micro(self.helped_end).tolist()
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
        event = {"ph": "X", "name": name, "cat": cat, "ts": begin, "dur": stop - begin, "pid": _PROCESSORS, "tid": tid}
        return event | {"args": args}

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
        leaves = np.maximum(_micro(end[-1][parent]) - 1 / _PARTS, _micro(start[-1][parent]))
        ends = zip(parent.tolist(), child.tolist(), leaves.tolist(), _micro(began[child]).tolist(), strict=True)
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
    yield from _threads(_LINKS, np.unique(link * _ROWS + lane), _ROWS, list(numbers).__getitem__)
    thread = (link * _ROWS + lane)[kept].tolist()
    ts, te = _micro(start[kept]).tolist(), _micro(end[kept]).tolist()
    for i, tid, begin, stop in zip(row[kept].tolist(), thread, ts, te, strict=True):
        size = show_quantity(float(f"{table['bytes'][i]:.4g}"), "B")
        task = str(table["task"][i])
        yield {
            "ph": "X",
            "name": f"{size} to {table['destination'][i]}" + (f" for {task}" if task else ""),
            "cat": str(table["cause"][i]),
            "ts": begin,
            "dur": stop - begin,
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
