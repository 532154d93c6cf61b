"""Workloads: the jobs of a log or a generator, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil
from numbers import Integral
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Fields, html_page
from simmodel.foundation.entries import load as load_by_name
from simmodel.foundation.errors import InputError, shown
from simmodel.work.checkpoint import CHECKPOINT_COLUMNS, checkpoint_columns, checkpoint_of, checkpoints_in
from simmodel.work.elastic import Amdahl, Elastic
from simmodel.work.job import Dependency, Job, partitions_in
from simmodel.work.measured import power_column
from simmodel.work.node_chunks import chunks_of
from simmodel.work.outcomes import outcomes_in
from simmodel.work.table import Columns, Rows, Table
from simmodel.work.task import SHARE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from simmodel.work.task import File

__all__ = [
    "COLUMNS",
    "Report",
    "Workload",
    "cancelled_waiting",
    "distinct_ids",
    "elastics_of",
    "has_value",
    "jobs_of_rows",
    "never_run",
    "processors_of",
    "runnable_jobs",
    "shares_in",
]

_DETAILS = ("preceding", "priority", "cancel", "exit_code", "slack", "power", "frequency_sensitivity")
_SHAPES = ("nodes", "cores_per_node", "gpus_per_node", "gpu", "memory_per_node", "chunks", "exclusive")
_ELASTIC = ("minimum", "maximum", "serial")
_USED = {
    *("job", "requested", "think_time", "user", "group", "queue", "partition"),
    *(*_DETAILS, *_SHAPES, *_ELASTIC, *CHECKPOINT_COLUMNS),
}
_CHUNK = 1 << 20


def processors_of(table: Table) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the processors of each job, and for which the requested ones are missing and the allocated ones used."""
    allocated = np.asarray(table["processors"], dtype=np.int64)
    if "requested_processors" not in table:
        return allocated, np.zeros(len(allocated), dtype=bool)
    asked = np.asarray(table["requested_processors"], dtype=np.int64)
    return np.where(asked > 0, asked, allocated), (asked <= 0) & (allocated > 0)


def shares_in(table: Table) -> list[str]:
    """Return the names of the storages and links of which jobs of a log hold shares: those of ``bandwidth_NAME``."""
    return [name.removeprefix(SHARE) for name in table.names if name.startswith(SHARE)]


def cancelled_waiting(table: Table) -> NDArray[np.bool_]:
    """Return which jobs were cancelled while they waited: a ``cancel`` is known, and no run time."""
    run = table["run"]
    waited: NDArray[np.bool_] = (np.isnan(run) | (run == -1)) & (table["cancel"] >= 0)
    return waited


def never_run(
    table: Table, processors: NDArray[np.int64], *, linked: bool = True
) -> tuple[tuple[str, NDArray[np.bool_]], ...]:
    """Return the reasons for which jobs can never run on any machine, each with the rows that it holds for.

    ``linked``: whether the column of preceding jobs counts.
    """
    run = table["run"]
    negative = (run < 0) & (run != -1)  # of which -1 stands for none
    missing = ~(run >= 0) & ~negative
    if "cancel" in table:
        missing &= ~cancelled_waiting(table)
    return (
        ("run time missing", missing),
        ("run time negative", negative),
        ("submission time missing", ~np.isfinite(table["submit"])),
        ("no processors", processors <= 0),
        ("circular preceding jobs", _circular(table) if linked else np.zeros(len(table), dtype=bool)),
    )


def distinct_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return job ids of which none occurs twice, and how many of them are new.

    >>> distinct_ids(np.array([7, 8, 7]))
    (array([7, 8, 9]), 1)
    """
    again = _repeated(ids)
    count = len(again)
    if not count:
        return ids, 0
    renamed = ids.copy()
    if ids.dtype.kind in "iu":
        renamed[again] = int(ids.max()) + 1 + np.arange(count)
    else:
        taken = set(ids.tolist())
        renamed = renamed.astype(object)
        for row in again.tolist():
            number = 2
            while (name := f"{ids[row]}.{number}") in taken:
                number += 1
            taken.add(name)
            renamed[row] = name
    return renamed, count


def _circular(table: Table) -> NDArray[np.bool_]:
    """Return whether each job of a log precedes itself, directly or through the jobs that precede it.

    >>> from simmodel.work.table import Table
    >>> _circular(Table({"job": np.array([1, 2, 3]), "preceding": np.array([2, 1, 1])}))
    array([ True,  True, False])
    """
    circular = np.zeros(len(table), dtype=bool)
    if "preceding" not in table or "job" not in table:
        return circular
    if table["preceding"].dtype.kind in "iu" and (table["preceding"] == -1).all():
        return circular  # as in most logs
    jobs, before = table["job"].tolist(), table["preceding"].tolist()
    row_of = {job: row for row, job in enumerate(jobs)}
    ahead = {
        row: row_of[other] for row, other in enumerate(before) if other not in (-1, "", jobs[row]) and other in row_of
    }
    seen: set[int] = set()
    for first in ahead:
        path: dict[int, int] = {}
        row: int | None = first
        while row is not None and row not in seen:
            seen.add(row)
            path[row] = len(path)
            row = ahead.get(row)
        if row in path:
            circular[list(path)[path[row] :]] = True
    return circular


def _repeated(ids: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the rows whose id occurred in an earlier row."""
    if ids.dtype.kind not in "iu":
        seen: set[object] = set()
        found_again = []
        for row, name in enumerate(ids.tolist()):
            if name in seen:
                found_again.append(row)
            seen.add(name)
        return np.array(found_again, dtype=np.intp)
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):  # type: ignore[operator]
        return np.zeros(0, dtype=np.intp)
    least, most = int(ids.min()), int(ids.max())
    if most - least > 64 * len(ids) + 1024:  # too sparse for a bit per number
        _, first = np.unique(ids, return_index=True)
        return np.setdiff1d(np.arange(len(ids)), first)
    met = np.zeros(most - least + 1, dtype=bool)
    found = []
    for begin in range(0, len(ids), _CHUNK):
        part = ids[begin : begin + _CHUNK].astype(np.int64) - least
        _, first = np.unique(part, return_index=True)
        new = np.zeros(len(part), dtype=bool)
        new[first] = ~met[part[first]]
        met[part] = True
        found.append(np.flatnonzero(~new) + begin)
    return np.concatenate(found)


def jobs_of_rows(
    table: Table, rows: Iterable[int], given: NDArray[np.int64], repaired: Counter[str], on_nodes: bool = True
) -> Iterator[tuple[int, Job]]:
    """Yield (row, job) for rows that can run; requests of nodes only if ``on_nodes``.

    ``given``: the processors of each row; ``repaired``: counts of the repairs.
    """
    columns = [(name, table[name].tolist()) for name in table.names if name in _USED]
    shares = [(name, table[f"{SHARE}{name}"].tolist()) for name in shares_in(table)]
    names, run, submit = set(table["job"].tolist()), table["run"].tolist(), table["submit"].tolist()
    processors = given.tolist()
    saves = any(name in table for name in CHECKPOINT_COLUMNS)
    ended = outcomes_in(table)
    outcomes = None if ended is None else ended.tolist()
    for row in rows:
        known: dict[str, Any] = {}
        for name, column in columns:
            value = column[row]
            if value is not None and value == value and value != -1:
                known[name] = value
        dependencies: tuple[Dependency, ...] = ()
        preceding = known.get("preceding")
        if preceding:
            if preceding in names and preceding != known.get("job"):
                dependencies = (Dependency(preceding, think_time=max(0.0, known.get("think_time", 0.0))),)
            else:
                repaired["preceding job not in the log: dependency ignored"] += 1
        requested = known.get("requested", 0.0)
        asked: dict[str, Any] = {name: known.get(name) for name in ("user", "group", "queue")}
        asked |= partitions_in(known.get("partition"))
        asked["processors"] = int(processors[row])
        if on_nodes and "chunks" in known and known["chunks"] != "":
            asked |= {"chunks": chunks_of(str(known["chunks"])), "exclusive": known.get("exclusive", 0) > 0}
        elif on_nodes:
            asked["exclusive"] = known.get("exclusive", 0) > 0
            for name in ("nodes", "cores_per_node", "gpus_per_node"):
                if known.get(name, 0) > 0:
                    share = name == "gpus_per_node" and known[name] < 1
                    asked[name] = known[name] if share else ceil(known[name])
                    if asked[name] != known[name]:
                        repaired[f"{name}: shares rounded up"] += 1
            if "nodes" in asked and "cores_per_node" not in asked:
                asked["cores_per_node"] = -(-asked["processors"] // asked["nodes"])
            asked["memory_per_node"] = max(0.0, known.get("memory_per_node", 0.0))
            asked["gpu"] = str(known.get("gpu", "")) if "gpus_per_node" in asked else ""
        if known.get("maximum", 0) > 0 and not (_ONE_SIZE & asked.keys() or asked.get("memory_per_node")):
            asked["elastic"] = _elastic(asked["processors"], *map(known.get, _ELASTIC))
        if shares:
            asked["bandwidth"] = {name: column[row] for name, column in shares if column[row] > 0}
        yield (
            row,
            Job(
                id=known["job"] if known.get("job", "") != "" else f"row {row + 1}",
                submit=max(0.0, submit[row]),
                run=run[row] if run[row] >= 0 else None,
                requested=requested if requested > 0 else None,
                dependencies=dependencies,
                priority=known.get("priority", 0.0),
                cancel=known.get("cancel"),
                outcome="completed" if outcomes is None else outcomes[row],
                exit_code=known.get("exit_code"),
                slack=known.get("slack"),
                power=known.get("power"),
                frequency_sensitivity=known.get("frequency_sensitivity", 1.0),
                checkpoint=checkpoint_of(known) if saves else None,
                **asked,
            ),
        )


_ONE_SIZE = {"nodes", "gpus_per_node", "partitions", "chunks"}  # requests beside which a job has one size


@lru_cache(maxsize=4096)
def _elastic(processors: int, minimum: float | None, maximum: float, serial: float | None) -> Elastic:
    """Return the sizes of a job of a log, which always include the one that it requests; equal ones are shared."""
    least = processors if minimum is None else min(processors, max(1, ceil(minimum)))
    most = max(processors, int(maximum))
    return Elastic(least, processors, most, speedup=Amdahl(0.0 if serial is None else float(serial)))


def elastics_of(table: Table, rows: NDArray[np.intp], processors: NDArray[np.int64]) -> list[Elastic | float | None]:
    """Return the sizes of the jobs in some rows of a log that request processors only; ``None``: it has one size.

    ``processors``: requested by each job of the log.
    """
    found: list[Elastic | float | None] = [None] * len(rows)
    if "maximum" not in table:
        return found
    most = np.nan_to_num(np.asarray(table["maximum"], dtype=np.float64)[rows], nan=-1.0)
    least, serial = (_values(table, name, rows) for name in ("minimum", "serial"))
    named = table["partition"][rows].tolist() if "partition" in table else None
    for i in np.flatnonzero(most > 0).tolist():
        if named is None or "partitions" not in partitions_in(named[i]):
            found[i] = _elastic(int(processors[rows[i]]), least[i], float(most[i]), serial[i])
    return found


def _values(table: Table, name: str, rows: NDArray[np.intp]) -> list[float | None]:
    """Return a column of numbers in some rows; ``None``: missing."""
    if name not in table:
        return [None] * len(rows)
    values = np.asarray(table[name], dtype=np.float64)[rows].tolist()
    return [None if value != value or value == -1 else value for value in values]


def has_value(cell: Any) -> bool:
    """Return whether a cell of a column has a value."""
    return cell is not None and cell == cell and cell not in ("", -1)


def runnable_jobs(table: Table, name: str, *, on_nodes: bool, strict: bool) -> list[Job]:
    """Return the jobs of a log that can run, in order of its rows: see :meth:`Workload.jobs`."""
    ids, renamed = distinct_ids(table["job"])
    if renamed:
        table = table.with_columns(job=ids)
    processors, _ = processors_of(table)
    bad = np.zeros(len(table), dtype=bool)
    for reason, mask in never_run(table, processors):
        if strict and mask.any():
            first, count = ids[int(mask.argmax())], int(mask.sum())
            raise InputError(
                f"{reason}: such a job never runs ({count:,} in {name}; jobs(strict=False) leaves them out)",
                place=f"job {first}",
            )
        bad |= mask
    rows = np.flatnonzero(~bad).tolist()
    jobs = [job for _, job in jobs_of_rows(table, rows, processors, Counter(), on_nodes)]
    if "site" in table:
        sites = [str(site) if has_value(site) else None for site in table["site"][rows].tolist()]
        jobs = [attrs.evolve(job, site=site) for job, site in zip(jobs, sites, strict=True)]
    if len(jobs) == len(table):
        return jobs
    kept = {job.id for job in jobs}
    return [
        attrs.evolve(job, dependencies=[each for each in job.dependencies if each.job in kept])
        if any(each.job not in kept for each in job.dependencies)
        else job
        for job in jobs
    ]


# All columns that simmodel interprets. "job", "submit", "run" and "processors" always exist; the others are optional,
# and a reader may add further columns. Unknown values are nan in columns of floats, -1 in columns of integers; users,
# groups, queues and partitions are integers or text, as in the log.
COLUMNS: Mapping[str, str] = {
    "job": "the job's number or name in the log",
    "submit": "s, instant of submission, as in the log",
    "wait": "s, recorded wait",
    "run": "s, recorded run time",
    "processors": "processors allocated",
    "requested_processors": "processors requested",
    "requested": "s, requested time (wall-time limit)",
    "cpu_time": "s, average CPU time per processor",
    "used_memory": "bytes used per processor",
    "requested_memory": "bytes requested per processor",
    "status": "1 completed, 0 failed, 5 cancelled, 2 to 4 parts of a job",
    "outcome": "how its run ended: completed, timeout, failed, cancelled, node-failure, out-of-memory",
    "exit_code": "its exit code",
    "user": "the user who submitted the job",
    "group": "the user's group or account",
    "executable": "the program",
    "queue": "the queue submitted to",
    "partition": "the partition submitted to; a,b: any of these, in order of preference",
    "preceding": "the job that must end first",
    "think_time": "s between the end of the preceding job and this submission",
    "nodes": "nodes requested, each with cores_per_node cores",
    "cores_per_node": "cores per node",
    "gpus_per_node": "GPUs per node, or a share of one device of it",
    "gpu": "types of these GPUs, a|b, or a slice of one, A100:3g.20gb",
    "memory_per_node": "bytes per node",
    "chunks": "cores of each node, instead, if they differ: 8+2, 8:gpus=1:memory=16GB+2*4",
    "exclusive": "1: it gets whole nodes",
    "bandwidth_NAME": "bytes/s that it holds of a storage or link of this name",
    "priority": "higher first",
    "slack": "s that its start may be put off after its submission",
    "power": "measured W of each node, or steps 0:200;60:350, or busy shares cpu=0.5 gpu=0:1;60:0",
    "frequency_sensitivity": "from 0 to 1: how much longer it runs at a lower frequency; unknown: 1",
    "checkpoint_interval": "s of work between two checkpoints; 0 or unknown: it writes none",
    "checkpoint_cost": "s of a checkpoint",
    "checkpoint_restart": "s of reading a checkpoint",
    "checkpoint_size": "bytes of a checkpoint, in addition to these seconds",
    "checkpoint_to": "the storage or link to which it is written",
    "cancel": "s, instant at which the job is withdrawn or stopped; without a run time: it was cancelled in the queue",
    "site": "the site of a grid that it was submitted to, or ran at",
    "recorded_start": "s, instant at which it started in reality",
    "recorded_end": "s, instant at which it ended in reality",
}


@attrs.define(repr=False)
class Report(Fields):
    """Counts by reason of items that a reader, a generator or a run skipped, repaired or rejected, and notes.

    A note is a sentence about something that changes the meaning of the results, such as jobs that are cut short.

    >>> report = Report(); report.repaired["requested time missing: run time used"] += 2
    >>> print(report)
    repaired 2 (requested time missing: run time used 2)
    """

    skipped: Counter[str] = attrs.field(factory=Counter)
    repaired: Counter[str] = attrs.field(factory=Counter)
    rejected: Counter[str] = attrs.field(factory=Counter)
    notes: tuple[str, ...] = ()

    def __add__(self, other: Report) -> Report:
        counts = (self.skipped + other.skipped, self.repaired + other.repaired, self.rejected + other.rejected)
        return Report(*counts, tuple(dict.fromkeys((*self.notes, *other.notes))))

    def __bool__(self) -> bool:
        return bool(self.skipped or self.repaired or self.rejected or self.notes)

    def note(self, sentence: str) -> None:
        """Add a note, unless it is there already."""
        self.notes = tuple(dict.fromkeys((*self.notes, sentence)))

    def lines(self) -> list[str]:
        """Return one line for each kind (skipped, repaired, rejected) that occurred, and one for each note."""
        kinds = (("skipped", self.skipped), ("repaired", self.repaired), ("rejected", self.rejected))
        return [
            f"{kind} {sum(counts.values())} ({', '.join(f'{reason} {n}' for reason, n in sorted(counts.items()))})"
            for kind, counts in kinds
            if counts
        ] + list(self.notes)

    def _cells(self) -> Cells:
        kinds = (("skipped", self.skipped), ("repaired", self.repaired), ("rejected", self.rejected))
        rows = [[kind, reason, f"{count:,}"] for kind, counts in kinds for reason, count in sorted(counts.items())]
        rows += [["note", sentence, ""] for sentence in self.notes]
        return [["", "reason", "count"], *rows]

    def __repr__(self) -> str:
        kinds = (("skipped", self.skipped), ("repaired", self.repaired), ("rejected", self.rejected))
        counts = [f"{sum(counts.values()):,} {kind}" for kind, counts in kinds if counts]
        return f"<Report: {', '.join(counts) or 'nothing skipped, repaired or rejected'}>"

    def __str__(self) -> str:
        return "; ".join(self.lines()) or "nothing skipped, repaired or rejected"


class Workload:
    """Jobs as columns, one row per job, in the order of the log.

    The columns hold the values recorded or generated, unrepaired. Repairs and rejections by a simulation (missing
    requests, invalid jobs) are counted in the report of its result.

    Parameters
    ----------
    columns
        arrays of equal length, by name; see :data:`COLUMNS`
    name
        its name in plots and reports
    processors
        the size of the machine on which it was recorded, if known
    header
        metadata of the file, in order
    report
        items that the reader skipped

    Attributes
    ----------
    numbered
        whether the columns had no ids of jobs, which are numbered from 1

    >>> workload = Workload({"submit": [0, 5], "run": [10, 10], "processors": [1, 4]}, name="two jobs")
    >>> workload
    <Workload two jobs: 2 jobs>
    >>> workload["job"]
    array([1, 2])
    """

    def __init__(
        self,
        columns: Columns,
        *,
        name: str = "workload",
        processors: int | None = None,
        header: Mapping[str, str] | None = None,
        report: Report | None = None,
    ) -> None:
        if not callable(getattr(columns, "items", None)):
            raise InputError(f"must be columns by name (from_jobs takes jobs), got {shown(columns)}", place="columns")
        arrays = {key: np.asarray(column) for key, column in columns.items()}
        missing = [key for key in ("submit", "run", "processors") if key not in arrays]
        if missing:
            raise InputError(f"columns: missing {', '.join(missing)}")
        for key in ("submit", "run", "wait", "requested", "cpu_time", "think_time", "cancel"):
            if key in arrays:
                arrays[key] = arrays[key].astype(np.float64, copy=False)
        self.numbered = "job" not in arrays
        if self.numbered:
            arrays = {"job": np.arange(1, len(arrays["submit"]) + 1), **arrays}
        self.table = Table(arrays)
        self.name = name
        self.processors = processors
        self.header: dict[str, str] = dict(header or {})
        self.report = report or Report()
        self.specs: Sequence[Job] | None = None  # of a workload made from jobs: they may hold more than the columns
        self.files: Sequence[File] | None = None  # of a workflow in a grid: those that must exist before its tasks run

    @classmethod
    def from_jobs(cls, jobs: Iterable[Job], *, name: str = "jobs", processors: int | None = None) -> Workload:
        """Return the workload of these jobs, in the given order.

        >>> from simmodel import Job
        >>> Workload.from_jobs([Job(processors=2, run=10), Job(run=5, submit=3)])["submit"]
        array([0., 3.])
        """
        specs = list(jobs)
        nan = float("nan")
        specs, names = _named(specs)
        columns = {
            "job": np.array(names, dtype=object if any(isinstance(name, str) for name in names) else None),
            "submit": [job.submit for job in specs],
            "run": [job.run if job.run is not None else nan if job.never_ran else float("inf") for job in specs],
            "processors": [job.processors for job in specs],
            "requested": [nan if job.requested is None else job.requested for job in specs],
        }
        for column in ("user", "group", "queue", "partition", "site"):
            values = [getattr(job, "partition_text" if column == "partition" else column) for job in specs]
            if any(value is not None for value in values):
                columns[column] = np.array(values, dtype=object)
        for share in dict.fromkeys(share for job in specs for share in job.bandwidth):
            columns[f"bandwidth_{share}"] = [job.bandwidth.get(share, nan) for job in specs]
        if any(job.outcome != "completed" for job in specs):
            columns["outcome"] = [job.outcome for job in specs]
        if any(job.cancel is not None for job in specs):
            columns["cancel"] = [nan if job.cancel is None else job.cancel for job in specs]
        if any(job.exit_code is not None for job in specs):
            columns["exit_code"] = [-1 if job.exit_code is None else job.exit_code for job in specs]
        if any(job.slack is not None for job in specs):
            columns["slack"] = [nan if job.slack is None else job.slack for job in specs]
        if any(job.power is not None for job in specs):
            columns["power"] = power_column([job.power for job in specs])
        if any(job.frequency_sensitivity != 1 for job in specs):
            columns["frequency_sensitivity"] = [job.frequency_sensitivity for job in specs]
        if any(job.checkpoint is not None for job in specs):
            columns |= checkpoint_columns([job.checkpoint for job in specs])
        workload = cls(columns, name=name, processors=processors)
        workload.specs = specs
        return workload

    def jobs(self, *, nodes: bool = True, strict: bool = True) -> list[Job]:
        """Return the jobs as :class:`~simmodel.work.job.Job` values, in order of the rows.

        They have the requests of the workload in a simulation, after its repairs: the allocated processors if the
        requested ones are missing, and a new id for one that occurs twice. A queue or partition that the platform lacks
        is ignored in a log, but is an error in jobs.

        Parameters
        ----------
        nodes
            whether to keep a log's requests of nodes, GPUs and memory, which counted processors cannot meet
        strict
            whether a job that can never run is an error; otherwise such jobs are left out, and no job waits for them

        Raises
        ------
        InputError
            with ``strict``: a run time, an instant of submission or the processors are missing, or a job precedes
            itself

        >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [1, 4], "preceding": [-1, 1]})
        >>> [(job.id, job.submit, job.processors, job.dependencies) for job in log.jobs()][1]
        (2, 5.0, 4, (Dependency(job=1),))
        >>> Workload.from_jobs(log.jobs())
        <Workload jobs: 2 jobs>
        """
        if self.specs is not None:
            return list(self.specs)
        return runnable_jobs(self.table, self.name, on_nodes=nodes, strict=strict)

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.table[column]

    def __contains__(self, column: object) -> bool:
        return column in self.table

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.table.rows()

    def get(self, column: str, missing: float = -1) -> NDArray[Any]:
        """Return a column, or one filled with ``missing`` if the workload lacks it."""
        return self.table[column] if column in self.table else np.full(len(self), missing)

    def recorded_starts(self) -> NDArray[np.float64]:
        """Return the recorded start of each job (s): as recorded, else submission plus wait; nan: unknown.

        >>> Workload({"submit": [0, 5], "wait": [3, -1], "run": [1, 1], "processors": [1, 1]}).recorded_starts()
        array([ 3., nan])
        """
        start = self.get("recorded_start", np.nan).astype(np.float64)
        wait = self.get("wait", np.nan).astype(np.float64)
        waited: NDArray[np.float64] = np.where(wait >= 0, self["submit"] + wait, np.nan)
        return np.where(np.isfinite(start), start, waited)

    def replace(
        self, *, name: str | None = None, processors: int | Iterable[int] | None = None, **columns: Any
    ) -> Workload:
        """Return the workload with these columns replaced or added.

        ``processors`` is the size of the machine if it is one number, and the column of the jobs otherwise;
        ``checkpoint`` is the :class:`~simmodel.work.checkpoint.Checkpoint` of all jobs, or ``None``.

        >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [1, 4]}, processors=4)
        >>> half = log.replace(processors=[1, 2]); half["processors"], half.processors
        (array([1, 2]), 4)
        """
        if "checkpoint" in columns:
            none = {"checkpoint_size": np.zeros(len(self)), "checkpoint_to": np.full(len(self), "")}
            given = checkpoint_columns([columns.pop("checkpoint")] * len(self))
            columns |= {name: column for name, column in none.items() if name in self} | given
        size = int(processors) if isinstance(processors, Integral) else None
        if processors is not None and size is None:
            columns["processors"] = processors
        derived = self._derived(self.table.with_columns(**columns), name, size)
        if self.specs is not None:
            named = [key for key in columns if key in attrs.fields_dict(Job)]
            fields: dict[str, Any] = {
                key: [None if each != each else each for each in derived[key].tolist()] for key in named
            }
            if "partition" in columns:
                parts = {"partition": None, "partitions": ()}
                several = [parts | partitions_in(text) for text in derived["partition"].tolist()]
                fields |= {key: [each[key] for each in several] for key in parts}
            if any(name in columns for name in CHECKPOINT_COLUMNS):
                fields["checkpoint"] = checkpoints_in(derived.table)
            derived.specs = [
                attrs.evolve(job, **{key: values[row] for key, values in fields.items()})
                for row, job in enumerate(self.specs)
            ]
        return derived

    def where(self, rows: Rows, *, name: str | None = None) -> Workload:
        """Return the jobs selected by a boolean mask, a slice or an array of row numbers."""
        derived = self._derived(self.table.where(rows), name, None)
        if self.specs is not None:
            derived.specs = [self.specs[row] for row in np.arange(len(self))[rows].tolist()]
        return derived

    def resampled(
        self, *, users: bool | float = True, weeks: int | None = None, load: float | None = None, seed: int = 0
    ) -> Workload:
        """Return a log like this one: its users, drawn with replacement and moved by whole weeks.

        The users of the log are parted into long-term and temporary ones. Of both, as many as there are in the time
        that is asked for are drawn with replacement. A long-term user begins at a random week of their own and goes
        round: after the last week comes the first. A temporary user arrives in a random week. So each job keeps its
        hour and weekday, and each user their order of jobs, sessions and think times; users lose what they had with
        each other. Users are drawn until the offered load is within 2 % of the log's, and the mean run time and the
        shares of arrivals by hour and by weekday (on average) are within 5 %; if no draw is, single users are
        exchanged. Only what is then missing of the load is made up by scaling the gaps. The report says so.

        A copy of a user is another user, jobs are numbered anew, and ``preceding`` with them. The jobs without a user
        of one week stay together and are put into another week.

        Parameters
        ----------
        users
            ``True``; the weeks from first to last job from which a user is long-term (default: 12, or half of the log);
            or ``False``: nobody is told apart, and whole weeks of the log are drawn
        weeks
            length of the new log; default: that of the log, in whole weeks
        load
            offered load; default: that of the log
        seed
            of the draw

        Raises
        ------
        InputError
            the log spans less than a week, or consists of the tasks of workflows

        Source: Zakay, Feitelson, "Workload resampling for performance evaluation of parallel job schedulers",
        Concurrency and Computation: Practice and Experience 26(12), 2014.

        >>> days = np.arange(0, 70 * 86400, 43200.0)
        >>> log = Workload({"submit": days, "run": days % 7000, "processors": days % 3 + 1, "user": days // 3600 % 60})
        >>> log.resampled(seed=1)
        <Workload workload resample 1: 140 jobs>
        """
        make: Callable[..., Workload] = load_by_name("simmodel.work.resampling:resampled")
        return make(self, users=users, weeks=weeks, load=load, seed=seed)

    def shaken(self, *, noise: float | str = 60.0, seed: int = 0) -> Workload:
        """Return the log with each submission shifted at random, so little that no user would notice.

        A shift is uniform, up to ``noise`` either way; jobs that a user submits at one instant shift together, and the
        jobs of a user keep their order. How much a result moves shows how sensitive it is to chance; it is no interval.

        Parameters
        ----------
        noise
            the largest shift, in s or as a text such as ``"1min"``
        seed
            of the shifts

        Source: Tsafrir, Ouaknine, Feitelson, "Reducing performance evaluation sensitivity and variability by input
        shaking", MASCOTS 2007.

        >>> log = Workload({"submit": [100, 100, 5000], "run": [9, 9, 9], "processors": [1, 1, 1], "user": [7, 7, 7]})
        >>> log.shaken(noise=10, seed=1)["submit"].round(1)
        array([ 109. ,  109. , 4992.9])
        """
        make: Callable[..., Workload] = load_by_name("simmodel.work.resampling:shaken")
        return make(self, noise=noise, seed=seed)

    def _derived(self, table: Table, name: str | None, processors: int | None) -> Workload:
        return Workload(
            table,
            name=name or self.name,
            processors=processors or self.processors,
            header=self.header,
            report=self.report,
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return a ``pandas.DataFrame`` of the columns."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        size = f", {self.processors} processors" if self.processors else ""
        return f"<Workload {self.name}: {len(self)} jobs{size}>"

    def _repr_html_(self) -> str:
        return html_page(repr(self)[1:-1], ()) + self.table._repr_html_()


def _named(specs: list[Job]) -> tuple[list[Job], list[int | str]]:
    """Return jobs and their names; a job without an id gets its position, or the next number that is not an id."""
    names = [job.id if job.id is not None else job.name or i for i, job in enumerate(specs, 1)]
    given = {job.id for job in specs if job.id is not None}
    later = len(specs)
    for row, job in enumerate(specs if given else ()):
        if job.id is None and names[row] in given:
            while (later := later + 1) in given:
                pass
            names[row] = later
            specs[row] = attrs.evolve(job, id=later)
    return specs, names
