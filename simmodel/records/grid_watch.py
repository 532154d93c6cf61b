"""What the event-level data sets of a grid have in common: the state of its places, counted as it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.scheduling.observer import Observer

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob, Run

__all__ = ["GridWatch", "Row", "RowSink"]

Row = tuple[Any, ...]


class RowSink(Protocol):
    """What takes rows of tables as they happen."""

    def add(self, table: str, row: Row, /) -> None:
        """Take a row."""
        ...


class GridWatch(Observer):
    """What all layouts need: counts per site, and names of hosts.

    Parameters
    ----------
    grid
        the grid
    sink
        what takes the rows
    """

    def __init__(self, grid: Any, sink: RowSink) -> None:
        self.grid = grid
        self.env = grid.env
        self._sink = sink
        self._add: Callable[[str, Row], None] = sink.add
        sites = [site.name for site in grid.places]
        self.running = dict.fromkeys(sites, 0)
        self.queued = dict.fromkeys(sites, 0)
        self.finished = dict.fromkeys(sites, 0)
        self.failed = dict.fromkeys(sites, 0)
        self.all = {"running": 0, "queued": 0, "finished": 0, "failed": 0}
        self.free = sum(int(site.free) for site in grid.places)
        self._free_of = {site.name: int(site.free) for site in grid.places}
        self._started: dict[Any, Run] = {}

    def _mine(self, job: Any) -> bool:
        return getattr(getattr(job, "family", None), "owner", None) is self.grid

    def host(self, run: Run | None) -> str:
        """Return the name of the host of an execution; empty if hosts are not identified."""
        if run is None or not run.grant.nodes:
            return ""
        return str(run.place.nodes[run.grant.nodes[0]])

    def _look(self, site: Any) -> None:
        """Bring the free cores of the grid up to date after a change at a site."""
        free = int(site.free)
        self.free += free - self._free_of[site.name]
        self._free_of[site.name] = free

    def _count(self, what: str, site: str, by: int) -> None:
        counts: dict[str, int] = getattr(self, what)
        counts[site] += by
        self.all[what] += by

    def job_submitted(self, job: LiveJob) -> None:
        """Count a job that joins the queue of its site."""
        if self._mine(job):
            self._count("queued", job.destination.name, 1)  # type: ignore[attr-defined]
            self.entered(job)

    def entered(self, job: Any) -> None:
        """Note that a job joined the queue of its site."""

    def job_started(self, run: Run) -> None:
        """Count a job that starts."""
        job: Any = run.job
        if self._mine(job):
            site = job.destination
            self._look(site)
            self._count("queued", site.name, -1)
            self._count("running", site.name, 1)
            self._started[job] = run
            self.began(run, site)

    def began(self, run: Run, site: Any) -> None:
        """Note that a job holds its cores."""

    def job_ended(self, run: Run, status: str) -> None:
        """Count a job that releases its cores."""
        self._let_go(run.job, status)

    def _let_go(self, job: Any, status: str) -> None:
        """Count a job that has released its cores, which the grid may tell before its cluster does."""
        run = self._started.pop(job, None)
        if run is not None:
            site = self.grid.sites[run.place.name]
            self._look(site)
            self._count("running", site.name, -1)
            self.released(run, site, status)

    def released(self, run: Run, site: Any, status: str) -> None:
        """Note that a job has released its cores."""

    def job_cancelled(self, job: LiveJob) -> None:
        """Count a job that is withdrawn from the queue of its site."""
        place = getattr(job, "place", None)
        if place is not None and place.name in self.queued and hasattr(job, "family"):
            self._count("queued", place.name, -1)

    def job_phase(self, job: Any, site: Any, phase: str) -> None:
        """Count a job that has released its cores to write its outputs."""
        if phase == "writing":
            self._let_go(job, job._outcome)
        self.went_on(job, site, phase)

    def went_on(self, job: Any, site: Any, phase: str) -> None:
        """Note the phase of a job with overhead or files."""

    def job_retried(self, job: Any, site: Any, reason: str) -> None:
        """Count a job that failed at a site."""
        self._let_go(job, "lost")
        self.went_back(job, site, reason)

    def went_back(self, job: Any, site: Any, reason: str) -> None:
        """Note a failure at a site after which the job is assigned again."""

    def job_finished(self, job: LiveJob, site: Any) -> None:
        """Count a job that has ended for good."""
        self._let_go(job, job.state)
        good = job.state in ("completed", "timeout")
        if good or job.state == "failed":
            self._count("finished" if good else "failed", site.name, 1)
        self.ended(job, site)

    def ended(self, job: Any, site: Any) -> None:
        """Note that a job has ended for good."""

    def place_changed(self, place: Any, _cause: str) -> None:
        """Count the free cores of a site whose capacity has changed."""
        if place.name in self._free_of:
            self._look(self.grid.sites[place.name])
