"""The result of a grid, assembled from its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.grid_watch import ENDED_AS
from simmodel.records.job_record import OF_REQUESTS, runs_of
from simmodel.records.tables import change_table, reason_table
from simmodel.results.grid import GridResult
from simmodel.systems.broker.ledger import CARRIED
from simmodel.systems.grid.ledger import INSTANTS
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from simmodel.systems.broker.core import Part
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.core import GridCore
    from simmodel.systems.grid.ledger import Try

__all__ = ["grid_result", "job_table", "place_table", "result_of", "run_table"]


def grid_result(grid: GridCore, name: str) -> GridResult:
    """Return the result so far of a grid."""
    jobs = job_table(grid, grid.ledger.submitted(), np.arange(grid.submitted))
    runs = run_table(jobs, np.arange(grid.submitted), grid.ledger.past) if grid.ledger.past else None
    span = {"ended": float(grid.env.now)} if any(part.unfinished for part in grid.elsewhere) else {}
    for part in grid.elsewhere:
        jobs = _with_part(jobs, part)
    return result_of(grid, name, jobs, None if runs is None else runs[1], **span)


def _with_part(jobs: Table, part: Part) -> Table:
    """Return jobs with the rows that another process has, and with the columns that only it has: reasons."""
    columns: dict[str, Any] = dict(jobs.items())
    assert part.jobs is not None
    for name, values in part.jobs.items():
        column = columns[name] if name in columns else np.full(len(jobs), "", dtype=object)
        columns[name] = column = column.astype(np.result_type(column, values))
        column[part.rows] = values
    return Table(columns)


def result_of(grid: GridCore, name: str, jobs: Table, runs: Table | None, **span: float) -> GridResult:
    """Return the result of a grid, given its jobs and executions; ``span``: ``started`` and ``ended``."""
    options: dict[str, Any] = {**span, "ended": float(grid.env.now)} if grid.unfinished else {**span}
    return GridResult(
        name=name,
        jobs=jobs,
        runs=runs,
        places=place_table(grid),
        changes=change_table(grid.changes),
        flows=_flows(grid),
        processors=sum(int(site.capacity) for site in grid.places),
        report=grid.report + Report(notes=(*grid.outages.failures.notes(), *grid.data.notes(grid.name))),
        decisions=grid.scheduler.timing(),
        reasons=reason_table(grid.scheduler.reasons),
        **options,
    )


def job_table(
    grid: GridCore, known: Mapping[str, NDArray[Any]], rows: NDArray[np.int64], *, over: bool = False
) -> Table:
    """Return the record of jobs.

    Parameters
    ----------
    known
        the columns known at submission of these jobs
    rows
        their rows, in order
    over
        whether all of them have ended
    """
    ledger, at = grid.ledger, _Positions(rows)
    column = {name: ledger.column(name, rows) for name in _COLUMNS}
    status, state, reason = _states(grid, known["submit"], column, at, over)
    eligible = known["submit"].astype(np.float64)
    for row, since in ledger.eligible.items():
        if row in at:
            eligible[at[row]] = since
    names = np.array(["", *(site.name for site in grid.places)], dtype=object)
    start, end = column["start"], column["end"]
    table: dict[str, Any] = {"job": known["job"], "submit": known["submit"], "start": start, "end": end}
    table |= {"processors": known["processors"], "status": status}
    table |= {"requested": known["asked"], "run": end - start, "wait": start - eligible}
    past = {at[row]: tries for row, tries in ledger.past.items() if row in at}
    if past:
        table |= _stops(past, start - eligible)
    table |= {key: known[key] for key in (*OF_REQUESTS, *CARRIED, "origin") if key in known}
    table |= {"attempts": column["attempts"], "site": names[column["site"] + 1].astype(str), "state": state}
    table |= {key: column[key] for key in ("assigned", "queued", "executing", "finished", "bytes_in", "bytes_out")}
    table["executing"] = np.where(np.isnan(column["executing"]), start, column["executing"])
    if ledger.eligible:
        table["eligible"] = eligible
    if any(reason):
        table["reason"] = reason
    return Table(table)


def _stops(past: Mapping[int, Sequence[Try]], wait: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return the waits and the columns of interruptions of jobs that wait until their latest start, some of it held.

    ``past``: their attempts that were not the last ones, by position.
    """
    lost, interruptions = np.zeros(len(wait)), np.zeros(len(wait), dtype=np.int32)
    for i, tries in past.items():
        held = [each.end - each.start for each in tries if each.start is not None]
        lost[i], interruptions[i] = sum(held), len(held)
    return {"wait": wait - lost, "interruptions": interruptions, "lost": lost, "suspended": np.zeros(len(wait))}


def _states(
    grid: GridCore, submit: NDArray[np.float64], column: dict[str, NDArray[Any]], at: _Positions, over: bool
) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.object_]]:
    """Return the status, the state and the reason of jobs; completes their starts and ends in ``column``."""
    ledger, count = grid.ledger, len(submit)
    status, state = np.full((2, count), "waiting", dtype="<U13")
    state[:] = "pending"
    for word, code in ledger.words.items():
        ended = column["status"] == code
        status[ended], state[ended] = word, ENDED_AS.get(word, word)
    early = submit > float(grid.env.now)
    status[early], state[early] = "unsubmitted", "created"
    for job in () if over else grid.handed:
        if job.row in at:
            i = at[job.row]
            status[i], state[i] = _present(job, i, column)
    for job in () if over else grid.blocked():
        if job.row in at:
            state[at[job.row]] = "created"
    reason = np.full(count, "", dtype=object)
    for row, fate in ledger.fates.items():
        i = at[row]
        status[i] = state[i] = fate.state
        column["end"][i], reason[i] = fate.at, fate.reason
    for row, error in ledger.errors.items():
        reason[at[row]] = error
    cancelled = state == "cancelled"  # also without a start it has an end
    for name, other in (("end", "finished"), ("finished", "end")):
        column[name] = np.where(cancelled & np.isnan(column[name]), column[other], column[name])
    return status, state, reason


_COLUMNS = (*INSTANTS, "bytes_in", "bytes_out", "site", "attempts", "status")


class _Positions:
    """The positions of rows in a table."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self._rows = rows
        self._all = len(rows) == 0 or bool(rows[-1] == len(rows) - 1)  # each is its own position
        self._found: dict[int, int] | None = None

    def _positions(self) -> dict[int, int]:
        if self._found is None:
            self._found = {row: i for i, row in enumerate(self._rows.tolist())}
        return self._found

    def __getitem__(self, row: int) -> int:
        return row if self._all else self._positions()[row]

    def __contains__(self, row: int) -> bool:
        return row < len(self._rows) if self._all else row in self._positions()


def _present(job: BrokeredJob, i: int, column: dict[str, NDArray[Any]]) -> tuple[str, str]:
    """Return the status and the state of a job that has been assigned and has not ended; ``i``: its position."""
    if job.started is not None and job.run is not None:
        column["start"][i] = job.started
        return "running", "running"
    if job.state == "staging out":
        return "running", "staging out"
    return "waiting", "queued" if job.state == "waiting" else job.state


def place_table(grid: GridCore) -> Table:
    """Return the sites of the record; their watts are the means of their hosts, which are not told apart."""
    rows = []
    for site in grid.spec.sites:
        count = sum(host.count for host in site.hosts)
        idle = sum(host.count * host.idle_power for host in site.hosts) / max(count, 1)
        load = sum(host.count * host.load_power for host in site.hosts) / max(count, 1)
        fastest = max((host.speed for host in site.hosts), default=1.0)
        rows.append((site.name, site.capacity, count, idle, load, -1 if site.tier is None else site.tier, fastest))
    names = ("place", "processors", "nodes", "idle_power", "load_power", "tier", "speed")
    return Table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def _flows(grid: GridCore) -> Table:
    """Return one row per pair of sites with transfers, in the order of the sites."""
    number = {site.name: at for at, site in enumerate(grid.places)}
    rows = sorted((number[a], number[b], *counts) for (a, b), counts in grid.data.flows.items())
    names = np.array([site.name for site in grid.places])
    source, destination, files, size, failed = np.array(rows, dtype=np.float64).reshape(len(rows), 5).T
    counted: dict[str, Any] = {"files": files.astype(np.int64), "bytes": size, "failed": failed.astype(np.int64)}
    return Table(
        {"source": names[source.astype(np.intp)], "destination": names[destination.astype(np.intp)], **counted}
    )


def run_table(
    jobs: Table, rows: NDArray[np.int64], past: Mapping[int, Sequence[Try]]
) -> tuple[NDArray[np.int64], Table]:
    """Return one row per execution, by start, and the row of its job; needed if jobs ran twice, or else they follow.

    Parameters
    ----------
    jobs, rows
        jobs, and their rows in the ledger, in order
    past
        their attempts that were not the last ones, by row
    """
    last = runs_of(jobs, jobs["site"], jobs["attempts"])
    held = [(row, each) for row, tries in past.items() for each in tries if each.start is not None]
    row = np.array([row for row, _ in held], dtype=np.int64)
    of = jobs.where(np.searchsorted(rows, row))
    more = {"job": of["job"], "attempt": np.array([each.attempt for _, each in held], dtype=np.int64)}
    more |= {name: np.array([getattr(each, name) for _, each in held], dtype=np.float64) for name in ("start", "end")}
    more |= {"place": np.array([each.site for _, each in held], dtype=str), "processors": of["processors"]}
    more["status"] = np.full(len(held), "requeued")
    columns = {name: np.concatenate([last[name], more[name]]) for name in more}
    started = np.isfinite(jobs["start"])
    row = np.concatenate([rows[started][np.argsort(jobs["start"][started], kind="stable")], row])
    order = np.lexsort((row, columns["start"]))
    table = {name: column[order] for name, column in columns.items()}
    return row[order], Table({**table, "nodes": np.full(len(order), None, dtype=object)})
