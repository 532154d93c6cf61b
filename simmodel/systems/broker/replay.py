"""The door by which logs come into a broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from simpy.events import URGENT

from simmodel.environment import WAKE_UP
from simmodel.systems.arrivals import Block, Door, check_specs, follows, needs_specs, requests_of
from simmodel.systems.broker.core import Source
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.destination import BrokeredJob
from simmodel.work.prepare import prepare

if TYPE_CHECKING:
    from simmodel.systems.broker.core import BrokerCore
    from simmodel.systems.destination import Destination
    from simmodel.work.job import Job
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["BrokerDoor"]


class BrokerDoor(Door):
    """The door of a workload, whose jobs may depend on each other alone.

    Parameters
    ----------
    broker
        the broker
    home
        the home of all jobs, or ``None``
    """

    system: BrokerCore

    def __init__(self, broker: BrokerCore, home: Destination | None) -> None:
        super().__init__(broker)
        self.home = home
        self.family = Dependencies(broker)

    def check(self, jobs: Iterable[tuple[object, Job]]) -> None:
        """Check the ids of jobs, which may occur in other workloads, their queues and partitions."""
        check_specs(jobs, (), partial(self.system.check_names, home=self.home))

    def _own_homes(self, workload: Workload) -> bool:
        return self.system.own_homes and "site" in workload

    def prepare(self, workload: Workload) -> Prepared:
        """Return the jobs of a workload as simulated; those that must run at an unknown home are rejected."""
        broker, own_homes = self.system, self._own_homes(workload)
        largest = max(place.system.largest for place in (broker.places if own_homes else broker.allowed(self.home)))
        prepared = prepare(workload, largest, "requested", "continue")
        if not (own_homes and broker.scheduler.policy.at_home):
            return prepared
        sites: list[Any] = workload["site"].tolist()
        lost = [row for row in prepared.rows.tolist() if str(sites[row]) not in broker.named]
        for row in lost:
            reason = f"unknown site {sites[row]}" if sites[row] else "no site recorded"
            prepared.rejected[row] = reason
            prepared.report.rejected[reason] += 1
        return attrs.evolve(prepared, rows=prepared.rows[~np.isin(prepared.rows, lost)]) if lost else prepared

    def admit(self, workload: Workload, prepared: Prepared) -> Iterable[Block]:
        """Give the jobs of a workload their rows in the record, and reject some; return the others, in blocks."""
        broker, family, first = self.system, self.family, self.system.submitted
        family.forgets = not follows(workload).any()
        broker.submitted += len(workload)
        broker.ledger.expect(first, workload, prepared, "" if self.home is None else self.home.name)
        for row in prepared.rejected:
            family.rejected(workload["job"][row])
        if prepared.rejected:  # told from the first event on, since observers are often added only after the workload
            broker.count_coming(len(prepared.rejected))
            broker.env.call_at(
                broker.env.now, partial(self._tell, self._refused(workload, prepared, first)), URGENT, WAKE_UP
            )
        special = needs_specs(workload, broker.offers, plain=False)
        jobs = requests_of(workload, prepared, broker.offers) if special else None
        if not self._own_homes(workload):
            return self.blocks(workload, prepared, first, jobs, lambda rows: [self.home] * len(rows))
        sites, named = workload["site"], broker.named
        return self.blocks(
            workload, prepared, first, jobs, lambda rows: [named.get(str(site)) for site in sites[rows].tolist()]
        )

    def plan(self, blocks: Iterable[Block]) -> None:
        """Plan the submission of jobs."""
        self.system.families.append(self.family)
        self.system.sources.append(Source(self.system, blocks, self.family))

    def write(self, *, everything: bool = False) -> None:
        """Write the rows of the jobs that have ended."""
        if everything:
            self.system.before_block()

    def _refused(self, workload: Workload, prepared: Prepared, first: int) -> Iterator[tuple[BrokeredJob, str]]:
        """Yield the jobs that are known to be impossible before they come, with reasons, by submission."""
        broker, own_homes = self.system, self._own_homes(workload)
        submits: list[float] = workload["submit"].tolist()
        for row in sorted(prepared.rejected, key=lambda row: (submits[row] == submits[row], submits[row])):
            columns = prepared.processors, prepared.requested, prepared.duration
            processors, limit, length = (column[row].item() for column in columns)
            submit, name = submits[row], workload["job"][row : row + 1].tolist()[0]
            if workload.specs is None:
                job = BrokeredJob(name, first + row, submit, processors, limit, length, self.family)
                job.user = workload["user"][row : row + 1].tolist()[0] if "user" in workload else None
                job.unrequested = bool(prepared.unrequested[row])
            else:
                job = broker.live(workload.specs[row], first + row, None, self.family)
                job.id, job.submit, job.came = name, submit, submit
            job.home = broker.named.get(str(workload["site"][row])) if own_homes else self.home
            job.state = "rejected"
            yield job, prepared.rejected[row]

    def _tell(self, refused: Iterator[tuple[BrokeredJob, str]]) -> None:
        """Notify observers, if there are any, of jobs that would come now, and of the later ones at their instants."""
        broker, env = self.system, self.system.env
        hooks = env.hooks("job_rejected")
        for job, reason in refused:
            if hooks and job.submit > env.now:
                later = partial(self._tell, chain([(job, reason)], refused))
                env.call_at(job.submit, later, broker.timing.submits)
                return
            broker.tell("job_rejected", job, reason)
            broker.over(job)
