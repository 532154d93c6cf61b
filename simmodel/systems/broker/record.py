"""The result of a broker, assembled from its ledger and the results of its systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.broker_record import joined, renamed
from simmodel.records.job_record import OF_REQUESTS, STOPS, since
from simmodel.records.tables import joined_nodes, reason_table
from simmodel.results.broker import BrokerResult, TaskBrokerResult
from simmodel.systems.broker.ledger import CARRIED
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.results.result import Result
    from simmodel.systems.broker.core import BrokerCore
    from simmodel.systems.destination import Destination

__all__ = [
    "broker_result",
    "delivered",
    "direct",
    "distinct",
    "prefixed",
    "result_of",
    "task_broker_result",
    "tidy",
    "undelivered",
]

_UNSUBMITTED = "unsubmitted"


def broker_result(broker: BrokerCore, name: str) -> BrokerResult:
    """Return the result so far of a broker that runs jobs."""
    below = {
        place.name: place.system.result(place.name) if place.elsewhere is None else place.elsewhere
        for place in broker.places
    }
    rows: list[NDArray[np.int64]] = []
    pieces: list[Table] = []
    own: list[Table] = []
    known = broker.ledger.submitted()
    for place in broker.places:
        jobs = below[place.name].jobs
        there, here = np.array(place.handed, dtype=np.int64).reshape(-1, 2).T
        rows.append(here)
        pieces.append(delivered(broker, known, here, place, jobs.where(there)))
        rest = np.ones(len(jobs), dtype=bool)
        rest[there] = False
        if rest.any():
            own.append(direct(place, jobs.where(rest)))
    handed = np.concatenate(rows)
    rest = np.ones(broker.submitted, dtype=bool)
    rest[handed] = False
    rows.append(np.flatnonzero(rest))
    pieces.append(undelivered(broker, known, rows[-1]))
    everything = joined(pieces).where(np.argsort(np.concatenate(rows)))
    jobs = tidy(joined([tidy(everything), *own]) if own else everything)
    return result_of(broker, name, below, jobs.with_columns(job=distinct(jobs["job"], jobs["origin"])))


def delivered(
    broker: BrokerCore, known: Mapping[str, NDArray[Any]], rows: NDArray[np.int64], place: Destination, jobs: Table
) -> Table:
    """Return the record of jobs that were handed over to a place.

    Parameters
    ----------
    known
        the columns known at submission, of all jobs of the broker
    rows, jobs
        the rows of these jobs, and their table there
    """
    factors = [place.factor(home) for home in known["origin"][rows].tolist()]
    return _piece(
        broker,
        known,
        rows,
        **{name: jobs[name].astype(np.float64, copy=False) for name in ("start", "end", "requested", "run")},
        again=jobs["wait"] - (jobs["start"] - since(jobs)),
        status=np.asarray(jobs["status"]).astype("<U13"),
        attempts=jobs["attempts"].astype(np.int32, copy=False),
        destination=np.full(len(rows), place.name),
        slowdown=np.array(factors, dtype=np.float64),
        handed=jobs["submit"],
        reason=np.full(len(rows), "", dtype=object),
    ).with_columns(**{name: jobs[name] for name in STOPS if name in jobs})


def undelivered(broker: BrokerCore, known: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> Table:
    """Return the record of jobs that were not handed over, or not yet; ``known`` as of :func:`delivered`."""
    nothing = np.full(len(rows), np.nan)
    status = np.where(known["submit"][rows] > broker.env.now, _UNSUBMITTED, "waiting").astype("<U13")
    end, reason = nothing.copy(), np.full(len(rows), "", dtype=object)
    fates = broker.ledger.fates
    for i, row in enumerate(rows.tolist()):
        if row in fates:
            status[i], end[i], reason[i] = fates[row].state, fates[row].at, fates[row].reason
    return _piece(
        broker,
        known,
        rows,
        start=nothing,
        end=end,
        requested=nothing,
        run=nothing,
        again=nothing,
        status=status,
        attempts=np.zeros(len(rows), dtype=np.int32),
        destination=np.full(len(rows), ""),
        slowdown=nothing,
        handed=nothing,
        reason=reason,
    )


def direct(place: Destination, jobs: Table) -> Table:
    """Return the record of jobs that were submitted to the system of a place directly."""
    names = [place.name] * len(jobs)
    columns = {"asked": jobs["requested"], "slowdown": np.ones(len(jobs)), "handed": jobs["submit"]}
    return jobs.with_columns(origin=names, destination=names, **columns)


def _piece(
    broker: BrokerCore, known: Mapping[str, NDArray[Any]], rows: NDArray[np.int64], **own: NDArray[Any]
) -> Table:
    """Return the columns of the record of some jobs, given those that depend on their places.

    ``again``, of these: the seconds that they waited after an interruption.
    """
    ledger = broker.ledger
    known = {name: column[rows] for name, column in known.items()}
    eligible = known["submit"]
    if ledger.eligible:
        known_at = zip(rows.tolist(), eligible.tolist(), strict=True)
        eligible = np.array([ledger.eligible.get(row, at) for row, at in known_at], dtype=np.float64)
    table: dict[str, Any] = {name: known[name] for name in ("job", "submit")}
    table |= {"start": own["start"], "end": own["end"], "processors": known["processors"], "status": own["status"]}
    table |= {"requested": np.where(np.isnan(own["requested"]), known["asked"], own["requested"])}
    table |= {"run": own["run"], "wait": own["start"] - eligible + own["again"]}
    table |= {key: known[key] for key in (*OF_REQUESTS, *CARRIED) if key in known}
    table |= {"attempts": own["attempts"], "origin": known["origin"], "destination": own["destination"]}
    table |= {"asked": known["asked"], "slowdown": own["slowdown"], "handed": own["handed"]}
    if ledger.expected:
        found = [ledger.expected.get(row) for row in rows.tolist()]
        table["expected_start"] = np.array([np.nan if each is None else each.start for each in found], dtype=np.float64)
        table["expected_end"] = np.array([np.nan if each is None else each.finish for each in found], dtype=np.float64)
    if ledger.eligible:
        table["eligible"] = eligible
    return Table({**table, "reason": own["reason"]})


def tidy(jobs: Table) -> Table:
    """Return jobs without the column of reasons if there are none, and with interruptions of 0 where none are known."""
    columns = {name: np.where(jobs[name] > 0, jobs[name], 0) if name in STOPS else jobs[name] for name in jobs.names}
    if not any(columns.get("reason", ())):
        columns.pop("reason", None)
    return Table(columns)


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


def distinct(names: NDArray[Any], origins: NDArray[Any]) -> NDArray[Any]:
    """Return the names of all jobs, prefixed with their homes if names repeat."""
    if len(set(names.tolist())) == len(names):
        return names
    return prefixed(names, origins)


def prefixed(names: NDArray[Any], origins: NDArray[Any]) -> NDArray[Any]:
    """Return the names of jobs, prefixed with their homes."""
    pairs = zip(origins.tolist(), names.tolist(), strict=True)
    return np.array([f"{origin}:{name}" if origin else str(name) for origin, name in pairs], dtype=object)


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


def result_of(broker: BrokerCore, name: str, clusters: dict[str, Result], jobs: Table, **span: float) -> BrokerResult:
    """Return the result of a broker, given those of its systems, the table of jobs, and ``started`` and ``ended``."""
    places: list[Table] = []
    runs: list[Table] = []
    changes: list[Table] = []
    claims: list[Table] = []
    nodes: list[Table] = []
    report = Report()
    for cluster, result in clusters.items():
        names = renamed(result.places, cluster)
        runs.append(_runs(result, cluster, jobs, names))
        tables = (result.places, result.changes, result.claims, result.nodes)
        for table, into in zip(tables, (places, changes, claims, nodes), strict=True):
            if table is not None:
                into.append(table.with_columns(place=_called(table, names)))
        report += result.report
    report += broker.report
    if any("allocated" in table for table in runs):
        runs = [table if "allocated" in table else table.with_columns(allocated=table["processors"]) for table in runs]
    everything = joined(runs)
    open_ended = np.isin(jobs["status"], ("waiting", "running", "suspended", _UNSUBMITTED)).any()
    options: dict[str, Any] = {"ended": float(broker.env.now)} if open_ended else {**span}
    return BrokerResult(
        name=name,
        jobs=jobs,
        clusters=clusters,
        places=joined(places),
        runs=everything.where(np.argsort(everything["start"], kind="stable")),
        changes=joined(changes) if changes else None,
        claims=joined(claims) if claims else None,
        nodes=joined_nodes(nodes),
        processors=sum(result.processors for result in clusters.values()),
        report=report,
        decisions=broker.scheduler.timing(),
        reasons=reason_table(broker.scheduler.reasons, set(map(str, jobs["job"].tolist())) if len(jobs) else None),
        **options,
    )
