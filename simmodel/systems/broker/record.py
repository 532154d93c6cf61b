"""The result of a broker, assembled from its ledger and the results of its systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.broker_record import joined, renamed
from simmodel.results.broker import BrokerResult
from simmodel.results.task_broker import TaskBrokerResult
from simmodel.systems.broker.ledger import CARRIED
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.results.result import Result
    from simmodel.systems.broker.core import BrokerCore

__all__ = ["broker_result", "task_broker_result"]

_UNSUBMITTED = "unsubmitted"


def broker_result(broker: BrokerCore, name: str) -> BrokerResult:
    """Return the result so far of a broker that runs jobs."""
    below = {place.name: place.system.result(place.name) for place in broker.places}
    ledger = broker.ledger
    known = ledger.submitted()
    rows = broker.submitted
    columns: dict[str, NDArray[Any]] = {
        name: np.full(rows, np.nan) for name in ("start", "end", "requested", "run", "wait", "slowdown", "handed")
    }
    status = np.full(rows, "waiting", dtype="<U11")
    destination = np.full(rows, "", dtype=object)
    attempts = np.zeros(rows, dtype=np.int32)
    reason = np.full(rows, "", dtype=object)
    own: list[Table] = []
    eligible = known["submit"].copy()
    for row, at in ledger.eligible.items():
        eligible[row] = at
    for place in broker.places:
        jobs = below[place.name].jobs
        there, here = np.array(place.handed, dtype=np.int64).reshape(-1, 2).T
        for column in ("start", "end", "requested", "run"):
            columns[column][here] = jobs[column][there]
        columns["wait"][here] = jobs["start"][there] - eligible[here]
        columns["handed"][here] = jobs["submit"][there]
        columns["slowdown"][here] = [place.factor(home) for home in known["origin"][here].tolist()]
        status[here] = jobs["status"][there]
        attempts[here] = jobs["attempts"][there]
        destination[here] = place.name
        rest = np.ones(len(jobs), dtype=bool)
        rest[there] = False
        if rest.any():  # jobs submitted to the system directly
            mine = jobs.where(rest)
            extra = {"origin": [place.name] * len(mine), "destination": [place.name] * len(mine)}
            own.append(
                mine.with_columns(**extra, asked=mine["requested"], slowdown=np.ones(len(mine)), handed=mine["submit"])
            )
    _undelivered(broker, known, status, columns["end"], reason)
    table: dict[str, Any] = {"job": known["job"], "submit": known["submit"]}
    table |= {"start": columns["start"], "end": columns["end"], "processors": known["processors"], "status": status}
    table |= {"requested": np.where(np.isnan(columns["requested"]), known["asked"], columns["requested"])}
    table |= {key: columns[key] for key in ("run", "wait")}
    table |= {key: known[key] for key in CARRIED if key in known}
    table |= {"attempts": attempts, "origin": known["origin"], "destination": destination.astype(str)}
    table |= {"asked": known["asked"], "slowdown": columns["slowdown"], "handed": columns["handed"]}
    if ledger.expected:
        table["expected_start"], table["expected_end"] = np.full((2, rows), np.nan)
        which = list(ledger.expected)
        table["expected_start"][which] = [estimate.start for estimate in ledger.expected.values()]
        table["expected_end"][which] = [estimate.finish for estimate in ledger.expected.values()]
    if ledger.eligible:
        table["eligible"] = eligible
    if any(reason):
        table["reason"] = reason
    jobs = joined([Table(table), *own]) if own else Table(table)
    return _result(broker, name, below, jobs.with_columns(job=_distinct(jobs)))


def task_broker_result(broker: BrokerCore, name: str) -> TaskBrokerResult:
    """Return the result so far of a broker that runs sets of tasks."""
    places = {place.name: place.system.result(place.name) for place in broker.places}
    jobs: list[Any] = sorted(broker.ledger.alone, key=lambda job: job.row)
    now = broker.env.now
    nan = float("nan")
    table: dict[str, Any] = {
        "submission": np.array([job.id for job in jobs], dtype=object),
        "tasks": np.array([len(job.tasks) for job in jobs], dtype=np.int64),
        "submit": np.array([job.came for job in jobs], dtype=np.float64),
        "handed": np.array([nan if job.started is None else job.started for job in jobs], dtype=np.float64),
        "end": np.array([nan if job.ended is None else job.ended for job in jobs], dtype=np.float64),
        "status": np.array([_UNSUBMITTED if job.came > now else job.state for job in jobs], dtype=str),
        "origin": np.array(["" if job.home is None else job.home.name for job in jobs], dtype=str),
        "destination": np.array(["" if job.destination is None else job.destination.name for job in jobs], dtype=str),
    }
    expected = [broker.ledger.expected.get(job.row) for job in jobs]
    if any(expected):
        table["expected_end"] = np.array([nan if each is None else each.finish for each in expected])
    timing = broker.scheduler.timing()
    return TaskBrokerResult(name=name, submissions=Table(table), places=places, decisions=timing)


def _distinct(jobs: Table) -> NDArray[Any]:
    """Return the names of the jobs, prefixed with their home if names repeat."""
    names = jobs["job"]
    if len(set(names.tolist())) == len(names):
        return names
    pairs = zip(jobs["origin"].tolist(), names.tolist(), strict=True)
    return np.array([f"{origin}:{name}" if origin else str(name) for origin, name in pairs], dtype=object)


def _undelivered(
    broker: BrokerCore,
    submitted: dict[str, NDArray[Any]],
    status: NDArray[Any],
    end: NDArray[Any],
    reason: NDArray[Any],
) -> None:
    """Fill in the final state of jobs that were never handed over."""
    handed = np.zeros(len(status), dtype=bool)
    for place in broker.places:
        handed[[row for _, row in place.handed]] = True
    status[~handed & (submitted["submit"] > broker.env.now)] = _UNSUBMITTED
    for row, fate in broker.ledger.fates.items():
        status[row], end[row], reason[row] = fate.state, fate.at, fate.reason


def _called(table: Table, names: dict[str, str]) -> NDArray[Any]:
    return np.array([names[str(place)] for place in table["place"].tolist()], dtype=object)


def _runs(result: Result, cluster: str, jobs: Table, names: dict[str, str]) -> Table:
    """Return the executions in a cluster, with the job names of the common table."""
    here = np.flatnonzero((jobs["destination"] == cluster) & np.isfinite(jobs["start"]))
    if result.one_run_each:
        here = here[np.argsort(jobs["start"][here], kind="stable")]
        columns = {name: jobs[name][here] for name in ("job", "start", "end", "processors", "status")}
        nodes = np.full(len(here), None, dtype=object)
        place = np.full(len(here), next(iter(names.values())), dtype=object)
        return Table({**columns, "attempt": np.ones(len(here), dtype=np.int32), "place": place, "nodes": nodes})
    runs = result.runs
    if jobs["job"].dtype == object:
        called = {str(name).rpartition(":")[2]: name for name in jobs["job"][here].tolist()}
        own = np.array([called.get(str(name), name) for name in runs["job"].tolist()], dtype=object)
        runs = runs.with_columns(job=own)
    return runs.with_columns(place=_called(runs, names))


def _result(broker: BrokerCore, name: str, clusters: dict[str, Result], jobs: Table) -> BrokerResult:
    places: list[Table] = []
    runs: list[Table] = []
    changes: list[Table] = []
    claims: list[Table] = []
    report = Report()
    for cluster, result in clusters.items():
        names = renamed(result, cluster)
        runs.append(_runs(result, cluster, jobs, names))
        for table, into in ((result.places, places), (result.changes, changes), (result.claims, claims)):
            if table is not None:
                into.append(table.with_columns(place=_called(table, names)))
        report += result.report
    report += broker.report
    if any("allocated" in table for table in runs):
        runs = [table if "allocated" in table else table.with_columns(allocated=table["processors"]) for table in runs]
    everything = joined(runs)
    open_ended = np.isin(jobs["status"], ("waiting", "running", "suspended", _UNSUBMITTED)).any()
    options: dict[str, Any] = {"ended": float(broker.env.now)} if open_ended else {}
    return BrokerResult(
        name=name,
        jobs=jobs,
        clusters=clusters,
        places=joined(places),
        runs=everything.where(np.argsort(everything["start"], kind="stable")),
        changes=joined(changes) if changes else None,
        claims=joined(claims) if claims else None,
        processors=sum(result.processors for result in clusters.values()),
        report=report,
        decisions=broker.scheduler.timing(),
        **options,
    )
