"""The result of a grid, assembled from its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.place_tables import change_table
from simmodel.results.grid import GridResult
from simmodel.systems.broker.ledger import CARRIED
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.systems.grid.core import GridCore

__all__ = ["grid_result"]

STATES = {"completed": "finished", "timeout": "finished", "lost": "failed"}


def grid_result(grid: GridCore, name: str) -> GridResult:
    """Return the result so far of a grid."""
    ledger, now = grid.ledger, float(grid.env.now)
    known = ledger.submitted()
    rows = grid.submitted
    column: dict[str, NDArray[Any]] = {each: ledger.column(each)[:rows] for each in _COLUMNS}
    status = np.full(rows, "waiting", dtype="<U11")
    state = np.full(rows, "pending", dtype="<U11")
    codes, words = ledger.column("status")[:rows], list(ledger.words)
    for code, word in enumerate(words):
        status[codes == code] = word
        state[codes == code] = STATES.get(word, word)
    early = known["submit"] > now
    status[early], state[early] = "unsubmitted", "created"
    for job in grid.handed:
        status[job.row], state[job.row] = _present(job, grid, column)
    for job in grid.blocked():
        state[job.row] = "created"
    end, reason = column["end"], np.full(rows, "", dtype=object)
    for row, fate in ledger.fates.items():
        status[row], end[row], reason[row] = fate.state, fate.at, fate.reason
        state[row] = fate.state
    for row, error in ledger.errors.items():
        reason[row] = error
    eligible = known["submit"].astype(np.float64)
    for row, at in ledger.eligible.items():
        eligible[row] = at
    names = np.array(["", *(site.name for site in grid.places)], dtype=object)
    table: dict[str, Any] = {"job": known["job"], "submit": known["submit"], "start": column["start"], "end": end}
    table |= {"processors": known["processors"], "status": status}
    table |= {"requested": known["asked"], "run": end - column["start"], "wait": column["start"] - eligible}
    table |= {key: known[key] for key in (*CARRIED, *_RECORDED) if key in known}
    table |= {"attempts": column["attempts"], "site": names[column["site"] + 1].astype(str), "state": state}
    table |= {key: column[key] for key in ("assigned", "queued", "executing", "finished", "bytes_in", "bytes_out")}
    table["executing"] = np.where(np.isnan(table["executing"]), column["start"], table["executing"])
    if ledger.eligible:
        table["eligible"] = eligible
    if any(reason):
        table["reason"] = reason
    jobs = Table(table)
    options: dict[str, Any] = {"ended": now} if grid.unfinished else {}
    return GridResult(
        name=name,
        jobs=jobs,
        runs=_runs(grid, jobs, column["site"]),
        places=_places(grid),
        changes=change_table(grid.changes),
        flows=_flows(grid),
        processors=sum(int(site.capacity) for site in grid.places),
        report=grid.report,
        decisions=grid.scheduler.timing(),
        **options,
    )


_COLUMNS = ("assigned", "queued", "start", "executing", "end", "finished", "bytes_in", "bytes_out", "site", "attempts")
_RECORDED = ("origin",)


def _present(job: Any, grid: GridCore, column: dict[str, NDArray[Any]]) -> tuple[str, str]:
    """Return the status and the state of a job that has been assigned and has not ended."""
    row = job.row
    if job.started is not None and job.run is not None:
        column["start"][row] = job.started
        return "running", "running"
    if job.state == "staging out":
        return "running", "staging out"
    return "waiting", "queued" if job.state == "waiting" else job.state


def _places(grid: GridCore) -> Table:
    sites = grid.spec.sites
    rows = [
        (
            site.name,
            site.capacity,
            sum(host.count for host in site.hosts),
            0.0,
            0.0,
            -1 if site.tier is None else site.tier,
        )
        for site in sites
    ]
    names = ("place", "processors", "nodes", "idle_power", "load_power", "tier")
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


def _runs(grid: GridCore, jobs: Table, site: NDArray[Any]) -> Table:
    """Return one row per execution, by start."""
    started = np.flatnonzero(np.isfinite(jobs["start"]))
    tries = grid.ledger.tries
    columns: dict[str, Any] = {name: jobs[name][started] for name in ("job", "start", "end", "processors", "status")}
    columns["attempt"] = jobs["attempts"][started]
    columns["place"] = jobs["site"][started]
    row = started
    if tries:
        rows, attempt, start, end, number, status = zip(*tries, strict=True)
        names = np.array([each.name for each in grid.places])
        more = {"job": jobs["job"][list(rows)], "start": start, "end": end, "attempt": attempt, "status": status}
        more |= {"processors": jobs["processors"][list(rows)], "place": names[list(number)]}
        columns = {name: np.concatenate([columns[name], np.asarray(more[name])]) for name in columns}
        row = np.concatenate([row, rows])
    order = np.lexsort((row, columns["start"]))
    first = ("job", "attempt", "start", "end", "place", "processors", "status")
    table = {name: np.asarray(columns[name])[order] for name in first}
    return Table({**table, "nodes": np.full(len(order), None, dtype=object)})
