"""Full reports against the ledger: the events that must have happened but were not received."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.extending import just_after
from simmodel_site.twin.events import (
    Changed,
    Ended,
    Event,
    JobEvent,
    JobReport,
    NodesChanged,
    OnHold,
    Released,
    Requeued,
    Started,
    StateReport,
    Submitted,
)
from simmodel_site.twin.mirror.job_history import natural_order

if TYPE_CHECKING:
    from simmodel_site.twin.mirror.job_history import Entry
    from simmodel_site.twin.mirror.ledger import Ledger
    from simmodel_site.twin.mirror.node_states import NodeLedger

__all__ = ["missing"]

SLACK = 1.0
"""Seconds by which the clocks of events and of reports may differ: schedulers report whole seconds."""


def missing(report: StateReport, ledger: Ledger, nodes: NodeLedger, slack: float = SLACK) -> list[Event]:
    """Return the events that lead from the known state to a full report, each at the instant at which it happened.

    Events of later instants stand, and so do events of the last ``slack`` seconds before the report. A
    job that is not in it is over. Of a job with known events but no known submission, only the submission is
    returned: the rest follows if the report is compared again.

    Parameters
    ----------
    report
        the full state at an instant
    ledger, nodes
        the known state
    slack
        in seconds
    """
    found: list[JobEvent] = []
    seen = set()
    for each in report.jobs:
        key = report.cluster, each.job, each.submit
        seen.add(key)
        found += _of_job(report, each, ledger.entries.get(key), slack)
    for entry in sorted(ledger.alive(), key=_order):
        if entry.key not in seen and entry.last_told < report.time - slack:
            running = entry.state.phase == "running"
            found.append(Ended(**_about(report, entry), status="completed" if running else "cancelled"))
    found.sort(key=_when)  # a report is in the order of the queue, which priorities change
    return [*found, *_of_nodes(report, nodes)]


def _when(event: JobEvent) -> Any:
    return event.time, event.submit, natural_order(event.job)


def _order(entry: Entry) -> Any:
    return entry.order


def _about(report: StateReport, of: Entry | JobReport, time: float | None = None) -> dict[str, Any]:
    job = of.job if isinstance(of, JobReport) else of.id
    return {"cluster": report.cluster, "job": job, "submit": of.submit, "time": report.time if time is None else time}


def _of_job(report: StateReport, job: JobReport, entry: Entry | None, slack: float) -> Iterator[JobEvent]:
    """Yield the missing events of one job."""
    if entry is None or entry.state.request is None:
        yield Submitted(**_about(report, job, job.submit), request=job.request, held=job.state == "held")
        if entry is not None:
            return  # what follows from the other events told of it is seen once its submission is known
        if job.started is not None or job.state == "running":
            yield _start(report, job, job.submit)
        if job.state not in ("waiting", "held", "running"):
            yield _end(report, job, job.submit)
        return
    at = report.time
    state = entry.state if entry.last_told <= at else entry.at(at)
    if state.request is None or entry.superseded:
        return
    over = job.state not in ("waiting", "held", "running")  # its request may be told in part, as its nodes are freed
    if state.request != job.request and entry.state.request != job.request and not over:
        yield Changed(**_about(report, job), request=job.request)
    settled = state.since < at - slack  # else what was told is as new as the report
    if job.state in ("waiting", "held"):
        if state.phase != "waiting" and settled:
            yield Requeued(**_about(report, job))
        if state.held != (job.state == "held") and entry.last_told < at:
            yield (OnHold if job.state == "held" else Released)(**_about(report, job))
    elif job.state == "running":
        yield from _running(report, job, entry, state, slack)
    elif state.phase == "running" or (state.phase == "waiting" and settled):
        if job.started is not None and state.phase == "waiting":
            yield _start(report, job, state.since)
        yield _end(report, job, state.since)
    elif state.phase == "over" and job.started is not None and state.first_start is None:  # its end alone was told
        yield _start(report, job, job.submit)


def _running(report: StateReport, job: JobReport, entry: Entry, state: Any, slack: float) -> Iterator[JobEvent]:
    """Yield the missing events of a job that runs by the report."""
    if state.phase == "waiting":
        start = _start(report, job, state.since)
        told = any(isinstance(event, Started) and time == start.time for time, _, event in entry.facts)
        yield attrs.evolve(start, time=just_after(start.time)) if told else start  # the end before it was not told
    elif state.phase == "over":
        again = job.started is not None and job.started > state.ended
        if again or state.since < report.time - slack:
            at = job.started if again and job.started is not None else report.time
            yield Requeued(**_about(report, job, at))
            yield _start(report, job, at)
    elif job.started is not None and job.started > state.started + slack:
        yield Requeued(**_about(report, job, job.started))
        yield _start(report, job, job.started)
    elif (job.nodes and job.nodes != state.nodes) or (job.partition not in (None, state.partition)):
        yield Started(**_about(report, job, report.time), partition=job.partition, nodes=job.nodes)


def _start(report: StateReport, job: JobReport, since: float) -> Started:
    """Return the start of a job, not before an instant (s)."""
    at = report.time if job.started is None else job.started
    return Started(**_about(report, job, max(at, since)), partition=job.partition, nodes=job.nodes)


def _end(report: StateReport, job: JobReport, since: float) -> Ended:
    at = report.time if job.ended is None else job.ended
    over: Any = job.state
    return Ended(**_about(report, job, max(at, since)), status=over)


def _of_nodes(report: StateReport, nodes: NodeLedger) -> Iterator[Event]:
    """Yield the changes of nodes."""
    if report.down is None and report.draining is None:
        return
    told = dict.fromkeys(report.draining or (), "draining") | dict.fromkeys(report.down or (), "down")
    states: tuple[Literal["up", "down", "draining"], ...] = ("up", "draining", "down")
    for state in states:
        if state == "up":
            names = [name for name in nodes.out if name not in told]
        else:
            names = [name for name, each in told.items() if each == state]
        changed = [name for name in names if nodes.state(name)[1] != state and nodes.state(name)[0] < report.time]
        if changed:
            yield NodesChanged(cluster=report.cluster, time=report.time, state=state, nodes=tuple(changed))
