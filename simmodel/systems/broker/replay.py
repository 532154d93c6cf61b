"""Replay of workloads by a broker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.systems.broker.arrivals import Coming
from simmodel.systems.cluster.replay import check_specs, known_here, needs_specs, note_left_out, specs
from simmodel.systems.dependencies import Dependencies
from simmodel.work.prepare import REPEATED, distinct_jobs, prepare

if TYPE_CHECKING:
    from simmodel.systems.broker.core import BrokerCore
    from simmodel.systems.destination import Destination
    from simmodel.work.job import Job
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["replay_workload"]


def replay_workload(broker: BrokerCore, workload: Workload, home: Destination | None) -> Prepared:
    """Schedule the jobs of a workload, all of one home, on a broker: see :meth:`Broker.replay`."""
    own_homes = broker.own_homes and "site" in workload
    largest = max(place.system.largest for place in (broker.places if own_homes else broker.allowed(home)))
    workload, repeated = distinct_jobs(workload)
    if workload.specs is not None:
        jobs_named = zip(workload["job"].tolist(), workload.specs, strict=True)
        check_specs(jobs_named, (), partial(broker.check_names, home=home))
    prepared = prepare(workload, largest, "requested", "continue")
    if repeated:
        prepared.report.repaired[REPEATED] += repeated
    homes = None
    if own_homes:
        homes, prepared = _homes(broker, workload, prepared)
    offers = broker.offers
    note_left_out(workload, offers, prepared.report)
    first, family = broker.submitted, Dependencies(broker)
    broker.submitted += len(workload)
    broker.families.append(family)
    broker.ledger.expect(first, workload, prepared, "" if home is None else home.name)
    for row in prepared.rejected:
        family.rejected(workload["job"][row])
    jobs = None
    if needs_specs(workload, offers):
        jobs = specs(workload, prepared, offers.nodes)
        if workload.specs is None:
            jobs = ((row, known_here(offers, spec, prepared.report)) for row, spec in jobs)
    broker.expect(list(_coming(workload, prepared, first, homes or home, jobs)), family)
    broker.report += workload.report + prepared.report  # including the repairs of each job
    return prepared


def _homes(broker: BrokerCore, workload: Workload, prepared: Prepared) -> tuple[list[Destination | None], Prepared]:
    """Return the home of each row by the column ``site``; a job that must run at an unknown one is rejected."""
    sites: list[Any] = workload["site"].tolist()
    homes = [broker.named.get(str(site)) for site in sites]
    if broker.scheduler.policy.at_home:
        lost = [row for row in prepared.rows.tolist() if homes[row] is None]
        for row in lost:
            reason = f"unknown site {sites[row]}" if sites[row] else "no site recorded"
            prepared.rejected[row] = reason
            prepared.report.rejected[reason] += 1
        if lost:
            prepared = attrs.evolve(prepared, rows=prepared.rows[~np.isin(prepared.rows, lost)])
    return homes, prepared


def _coming(
    workload: Workload,
    prepared: Prepared,
    first: int,
    home: Destination | list[Destination | None] | None,
    jobs: Iterator[tuple[int, Job]] | None,
) -> Iterator[Coming]:
    """Return the jobs that can run, in order of submission; ``first`` is the row of the first job.

    ``home``: that of all, or of each row; ``jobs``: their specs, if they request more than processors and time.
    """
    rows = prepared.rows
    count = len(rows)
    numbers = (prepared.submit, prepared.processors, prepared.requested, prepared.duration)
    columns: list[Any] = [(rows + first).tolist(), *(column[rows].tolist() for column in numbers)]
    columns += [workload[name][rows].tolist() if name in workload else [None] * count for name in ("job", "user")]
    homes = [home[row] for row in rows.tolist()] if isinstance(home, list) else [home] * count
    columns += [homes, [None] * count if jobs is None else [spec for _, spec in jobs]]
    return map(partial(tuple.__new__, Coming), zip(*columns, strict=True))  # as Coming._make does
