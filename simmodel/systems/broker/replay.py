"""Replay of workloads by a broker, in memory or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from simpy.events import URGENT

from simmodel.environment import WAKE_UP
from simmodel.systems.arrivals import (
    BLOCK,
    ChunkReader,
    check_specs,
    follows,
    known_here,
    needs_specs,
    note_left_out,
    prepared_of,
    specs,
)
from simmodel.systems.broker.core import Coming
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.destination import BrokeredJob
from simmodel.work.prepare import as_workload, distinct_jobs, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simmodel.systems.broker.core import BrokerCore
    from simmodel.systems.destination import Destination
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.job import Job
    from simmodel.work.prepare import JobsGiven, Prepared
    from simmodel.work.workload import Workload

__all__ = ["ChunkedReplay", "replay_workload"]


def replay_workload(broker: BrokerCore, workload: JobsGiven, home: Destination | None) -> Prepared:
    """Schedule the jobs of a workload, all of one home, on a broker: see :meth:`Broker.replay`."""
    workload, repeated = distinct_jobs(as_workload(workload))
    prepared = prepared_of(workload, repeated, partial(_check, broker, home), partial(_prepare, broker, home))
    note_left_out(workload, broker.offers, prepared.report)
    family = Dependencies(broker)
    family.forgets = not follows(workload).any()
    broker.families.append(family)
    blocks = _admit(broker, workload, prepared, home, family)
    broker.expect(len(prepared.rows), blocks, family)
    broker.report += workload.report + prepared.report  # including the repairs of each job
    return prepared


class ChunkedReplay:
    """Submits the jobs of a workload chunk by chunk: a chunk is read when the last job of the one before has come.

    Parameters
    ----------
    broker
        the broker
    workload
        the workload, sorted by submit time
    count_read
        called when all chunks have been read
    """

    def __init__(self, broker: BrokerCore, workload: ChunkedWorkload, count_read: Callable[[], object]) -> None:
        self._broker = broker
        self._family = Dependencies(broker)
        self._family.forgets = True
        self._count_read = count_read
        self._reader = ChunkReader(
            workload, broker.offers, partial(_check, broker, None), partial(_prepare, broker, None)
        )
        self._rest: Iterator[int] = self._read()
        self._blocks: Iterator[list[Coming]] = iter(())

    def begin(self) -> None:
        """Plan the submission of the first chunk."""
        broker = self._broker
        broker.families.append(self._family)
        broker.expect(1, self._coming(), self._family)  # one more than have come, until all has been read

    def _coming(self) -> Iterator[list[Coming]]:
        for count in self._rest:
            self._broker.count_coming(count)
            yield from self._blocks

    def _read(self) -> Iterator[int]:
        """Yield the number of jobs of each chunk, which are admitted and whose blocks come next."""
        broker, reader = self._broker, self._reader
        while (chunk := reader.next()) is not None:
            workload, prepared = chunk
            self._blocks = _admit(broker, workload, prepared, None, self._family)
            reader.add(prepared.report)
            yield len(prepared.rows)
        broker.report += reader.report
        self._count_read()

    def read_the_rest(self) -> None:
        """Read the chunks that were not due before the end of the run, whose jobs are unsubmitted."""
        for count in self._rest:
            self._broker.count_coming(count)
            self._broker.before_block()


def _check(broker: BrokerCore, home: Destination | None, jobs: Iterable[tuple[object, Job]]) -> None:
    check_specs(jobs, (), partial(broker.check_names, home=home))


def _prepare(broker: BrokerCore, home: Destination | None, workload: Workload) -> Prepared:
    """Return the jobs of a workload as simulated; those that must run at an unknown home are rejected."""
    own_homes = broker.own_homes and "site" in workload
    largest = max(place.system.largest for place in (broker.places if own_homes else broker.allowed(home)))
    prepared = prepare(workload, largest, "requested", "continue")
    return _at_home(broker, workload, prepared) if own_homes and broker.scheduler.policy.at_home else prepared


def _at_home(broker: BrokerCore, workload: Workload, prepared: Prepared) -> Prepared:
    """Reject the jobs whose site, at which they must run, is unknown."""
    sites: list[Any] = workload["site"].tolist()
    lost = [row for row in prepared.rows.tolist() if str(sites[row]) not in broker.named]
    for row in lost:
        reason = f"unknown site {sites[row]}" if sites[row] else "no site recorded"
        prepared.rejected[row] = reason
        prepared.report.rejected[reason] += 1
    return attrs.evolve(prepared, rows=prepared.rows[~np.isin(prepared.rows, lost)]) if lost else prepared


def _admit(
    broker: BrokerCore, workload: Workload, prepared: Prepared, home: Destination | None, family: Dependencies
) -> Iterator[list[Coming]]:
    """Give the jobs of a workload their rows in the record; return those that can run, in blocks."""
    first, offers = broker.submitted, broker.offers
    broker.submitted += len(workload)
    broker.ledger.expect(first, workload, prepared, "" if home is None else home.name)
    for row in prepared.rejected:
        family.rejected(workload["job"][row])
    if prepared.rejected:  # told from the first event on, since observers are often added only after the workload
        refused = _refused(broker, workload, prepared, first, home, family)
        broker.count_coming(len(prepared.rejected))
        broker.env.call_at(broker.env.now, partial(_tell, broker, refused), URGENT, WAKE_UP)
    jobs: list[Job] | None = None
    if workload.specs is None and needs_specs(workload, offers, plain=False):
        known = (known_here(offers, spec, prepared.report) for _, spec in specs(workload, prepared, offers.nodes))
        jobs = list(known)
    return _in_blocks(broker, workload, prepared, first, home, jobs)


def _refused(
    broker: BrokerCore,
    workload: Workload,
    prepared: Prepared,
    first: int,
    home: Destination | None,
    family: Dependencies,
) -> Iterator[tuple[BrokeredJob, str]]:
    """Yield the jobs of a workload that are known to be impossible before they come, with reasons, by submission."""
    own_homes = broker.own_homes and "site" in workload
    submits: list[float] = workload["submit"].tolist()
    for row in sorted(prepared.rejected, key=lambda row: (submits[row] == submits[row], submits[row])):
        columns = prepared.processors, prepared.requested, prepared.duration
        processors, limit, length = (column[row].item() for column in columns)
        submit, name = submits[row], workload["job"][row : row + 1].tolist()[0]
        if workload.specs is None:
            job = BrokeredJob(name, first + row, submit, processors, limit, length, family)
            job.user = workload["user"][row : row + 1].tolist()[0] if "user" in workload else None
            job.unrequested = bool(prepared.unrequested[row])
        else:
            job = broker.live(workload.specs[row], first + row, None, family)
            job.id, job.submit, job.came = name, submit, submit
        job.home = broker.named.get(str(workload["site"][row])) if own_homes else home
        job.state = "rejected"
        yield job, prepared.rejected[row]


def _tell(broker: BrokerCore, refused: Iterator[tuple[BrokeredJob, str]]) -> None:
    """Notify observers, if there are any, of the jobs that would come now, and of the later ones at their instants."""
    env, hooks = broker.env, broker.env.hooks("job_rejected")
    for job, reason in refused:
        if hooks and job.submit > env.now:
            later = partial(_tell, broker, chain([(job, reason)], refused))
            env.call_at(job.submit, later, broker.timing.submits)
            return
        broker.refuse(job, reason)


def _in_blocks(
    broker: BrokerCore,
    workload: Workload,
    prepared: Prepared,
    first: int,
    home: Destination | None,
    jobs: Sequence[Job] | None,
) -> Iterator[list[Coming]]:
    """Yield the jobs that can run, in order of submission; ``first`` is the row of the first job.

    ``jobs``: their specs, if they request more than processors and time and the workload has none.
    """
    numbers = prepared.submit, prepared.processors, prepared.requested, prepared.duration, prepared.unrequested
    own_homes = broker.own_homes and "site" in workload
    for begin in range(0, len(prepared.rows), BLOCK):
        broker.before_block()
        rows = prepared.rows[begin : begin + BLOCK]
        count = len(rows)
        columns: list[Any] = [(rows + first).tolist(), *(column[rows].tolist() for column in numbers)]
        columns += [workload[name][rows].tolist() if name in workload else [None] * count for name in ("job", "user")]
        if own_homes:
            columns.append([broker.named.get(str(site)) for site in workload["site"][rows].tolist()])
        else:
            columns.append([home] * count)
        if workload.specs is not None:
            columns.append([workload.specs[row] for row in rows.tolist()])
        else:
            columns.append([None] * count if jobs is None else jobs[begin : begin + BLOCK])
        columns.append(prepared.ends(rows))
        yield list(map(partial(tuple.__new__, Coming), zip(*columns, strict=True)))  # as Coming._make does
