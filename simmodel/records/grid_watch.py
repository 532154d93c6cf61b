"""Common part of the event-level data sets of a grid: the state of its places, counted as it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from simmodel.scheduling.observer import Observer
from simmodel.work.job import OVER, Brokered, outcome_of

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import GridSite, Place
    from simmodel.work.job import LiveJob, Run

__all__ = ["ENDED_AS", "Counts", "GridWatch", "Row", "RowSink"]

ENDED_AS: Mapping[str, str] = {
    "completed": "finished",
    **dict.fromkeys(("failed", "timeout", "lost", "node-failure", "out-of-memory"), "failed"),
}
"""The states of a grid by the final states of jobs; all others keep their name."""

Row = tuple[Any, ...]


class RowSink(Protocol):
    """A sink of rows of tables as they happen."""

    def add(self, table: str, row: Row, /) -> None:
        """Take a row."""
        ...

    def shorten(self, form: str, table: str, values: Mapping[str, str | float], /) -> None:
        """Take rows of a table also under another name, without columns that then have these values."""
        ...


class Counts:
    """The state of a site, or of all sites together, counted as it changes.

    Attributes
    ----------
    name, free, pool
        the name of the site; free cores; the only pool of cores, or ``None``
    queued, running
        jobs in the queue of the site; jobs that hold cores
    finished, failed
        jobs that have ended well; jobs that have failed for good
    """

    __slots__ = ("_pools", "failed", "finished", "free", "name", "pool", "queued", "running")

    def __init__(self, sites: Sequence[GridSite], name: str = "") -> None:
        self.name = name
        self._pools = [pool for site in sites for pool in site.system.places if pool.part_of is None]
        self.pool = self._pools[0] if len(self._pools) == 1 else None
        self.queued = self.running = self.finished = self.failed = 0
        self.free = self.free_now()

    def free_now(self) -> int:
        """Return the free cores at this instant."""
        return sum([max(0, int(pool.free)) for pool in self._pools])  # below 0: jobs hold cores that went down


class GridWatch(Observer):
    """The common base of all layouts: counts per site, and names of hosts.

    Parameters
    ----------
    grid
        the grid
    sink
        the sink of the rows

    Attributes
    ----------
    at, all
        the state of each site, and of all
    """

    def __init__(self, grid: Any, sink: RowSink) -> None:
        self.grid = grid
        self.env = grid.env
        self._sink = sink
        self._add: Callable[[str, Row], None] = sink.add
        self.at = {site: Counts([site], site.name) for site in grid.places}
        self.all = Counts(grid.places)
        self._queued: dict[LiveJob, Counts] = {}
        self._started: dict[LiveJob, tuple[Brokered, Run, Any, Counts]] = {}

    def _mine(self, job: LiveJob) -> TypeGuard[Brokered]:
        return isinstance(job, Brokered) and job.family.owner is self.grid  # else submitted to a site directly

    def host(self, run: Run | None) -> str:
        """Return the name of the host of an execution; empty if hosts are not identified."""
        if run is None or not run.grant.nodes:
            return ""
        return str(run.place.nodes[run.grant.nodes[0]])

    def _look(self, counts: Counts) -> None:
        """Bring the free cores of the grid up to date after a change at a site."""
        pool = counts.pool
        free = pool.free if pool is not None and pool.free > 0 else counts.free_now()
        self.all.free += free - counts.free
        counts.free = free

    def job_submitted(self, job: LiveJob) -> None:
        """Count a job that joins the queue of its site."""
        if self._mine(job):
            counts = self._queued[job] = self.at[job.destination]
            counts.queued += 1
            self.all.queued += 1
            self.entered(job)

    def entered(self, job: Brokered) -> None:
        """Note that a job joined the queue of its site."""

    def job_started(self, run: Run) -> None:
        """Count a job that starts."""
        job = run.job
        if self._mine(job):
            site = job.destination
            counts, everything = self.at[site], self.all
            self._look(counts)
            self._leave_queue(job)
            counts.running += 1
            everything.running += 1
            self._started[job] = job, run, site, counts
            self.began(job, run, site)

    def began(self, job: Brokered, run: Run, site: GridSite) -> None:
        """Note that a job holds its cores."""

    def job_ended(self, run: Run, status: str) -> None:
        """Count a job that releases its cores."""
        if run.job in self._started:
            self._let_go(run.job, status)

    def _let_go(self, job: LiveJob, status: str) -> None:
        """Count a job that has released its cores, which the grid may report before its cluster does."""
        started = self._started.pop(job, None)
        if started is not None:
            own, run, site, counts = started
            self._look(counts)
            counts.running -= 1
            self.all.running -= 1
            self.released(own, run, site, status)

    def released(self, job: Brokered, run: Run, site: GridSite, status: str) -> None:
        """Note that a job has released its cores."""

    def job_cancelled(self, job: LiveJob) -> None:
        self._leave_queue(job)
        if job.state == "cancelled" and self._mine(job) and job.destination is None:
            self.withdrawn(job)

    def withdrawn(self, job: Brokered) -> None:
        """Note a job that was cancelled before it had a site."""

    def _leave_queue(self, job: LiveJob) -> None:
        """Count a job that has left a queue, which the grid may report before its cluster does."""
        counts = self._queued.pop(job, None)
        if counts is not None:
            counts.queued -= 1
            self.all.queued -= 1

    def job_phase(self, job: Brokered, site: GridSite, phase: str) -> None:
        """Count a job that has released its cores to write its outputs."""
        if phase == "writing" or (phase == "over" and job.state in OVER):
            self._let_go(job, outcome_of(job) if phase == "writing" else job.state)
        self.went_on(job, site, phase)

    def went_on(self, job: Brokered, site: GridSite, phase: str) -> None:
        """Note the phase of a job with overhead or files."""

    def job_retried(self, job: Brokered, site: GridSite, reason: str) -> None:
        self._leave_queue(job)
        self._let_go(job, "lost")
        self.went_back(job, site, reason)

    def went_back(self, job: Brokered, site: GridSite, reason: str) -> None:
        """Note a failure at a site after which the job is assigned again."""

    def job_finished(self, job: Brokered, site: GridSite) -> None:
        """Count a job that has ended for good."""
        self._leave_queue(job)
        self._let_go(job, job.state)
        counts = self.at[site]
        ended = ENDED_AS.get(job.state)
        if ended == "finished":
            counts.finished += 1
            self.all.finished += 1
        elif ended == "failed":
            counts.failed += 1
            self.all.failed += 1
        self.ended(job, site)

    def ended(self, job: Brokered, site: GridSite) -> None:
        """Note that a job has ended for good."""

    def place_changed(self, place: Place, _cause: str) -> None:
        """Count the free cores of a site whose capacity has changed."""
        site = self.grid.sites.get(place.name)
        if site is not None:
            self._look(self.at[site])
