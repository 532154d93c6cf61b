"""Traces for ui.perfetto.dev and chrome://tracing: a process per place, a row per processor or node, and counters.

The format is the trace event format of Chrome in JSON: complete events (``X``) for executions, metadata (``M``) for
names, counters (``C``); times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from simmodel.foundation.errors import Plain
from simmodel.foundation.writing import text_file
from simmodel.metrics.packing import pack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.job_record import JobRecord
    from simmodel.records.steps import Steps
    from simmodel.work.table import Table

__all__ = ["counter", "trace_events", "write_events", "write_trace"]

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
    with text_file(path) as file:
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
    yield {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "queue"}}
    yield from counter("jobs waiting", result.queue_length(), 0, points)
    yield from counter("processors waited for", result.queued_processors(), 0, points)


def _slices(
    result: JobRecord, runs: Table, row: NDArray[np.intp], pid: int, size: int, limit: int
) -> Iterator[dict[str, Any]]:
    """Yield the executions and claims of one place; ``row`` has the rows of their jobs, -1 for claims."""
    place = str(result.places["place"][pid - 1])
    start, end = runs["start"], np.where(np.isnan(runs["end"]), result.ended, runs["end"])
    index, thread = _rows(runs, start, end, size)
    left_out = max(0, len(index) - limit)
    if left_out:
        weight = ((end - start) * runs["processors"])[index]
        kept = np.sort(np.argsort(-weight, kind="stable")[:limit])
        index, thread = index[kept], thread[kept]
    name = f"{place}, {size} processors" + (f" ({left_out} smallest executions left out)" if left_out else "")
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    jobs = result.jobs
    extra = [name for name in ("user", "queue") if name in jobs]
    columns = [
        runs["holder"][index].tolist(),
        row[index].tolist(),
        np.rint(start[index] * _MICRO).astype(np.int64).tolist(),
        np.rint((end - start)[index] * _MICRO).astype(np.int64).tolist(),
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
    runs: Table, start: NDArray[np.float64], end: NDArray[np.float64], size: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the execution and the row of each slice: every node of an execution, or its lowest packed row."""
    nodes = runs["nodes"].tolist()
    on_nodes = np.array([held is not None for held in nodes], dtype=bool)
    if on_nodes.any():
        pairs = [(i, node) for i, held in enumerate(nodes) for node in held or (0,)]
        return np.array([i for i, _ in pairs]), np.array([node for _, node in pairs])
    packed = pack(start, end, runs["processors"], size)
    index, first = np.unique(packed["index"], return_index=True)
    return index, packed["low"][first]


def counter(name: str, steps: Steps, pid: int, points: int) -> Iterator[dict[str, Any]]:
    """Yield the values of a step function as a counter of a process, thinned to ``points`` values."""
    thin = steps.thinned(points)
    times = np.rint(thin.times * _MICRO).astype(np.int64).tolist()
    for ts, value in zip(times, np.round(thin.values, 3).tolist(), strict=True):
        yield {"ph": "C", "name": name, "ts": ts, "pid": pid, "args": {"value": value}}
