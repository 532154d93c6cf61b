"""The event-level data set of a grid: every change of state of its jobs, files and sites, with the state of the place.

Rows go to a sink as they happen, so that memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any

from simmodel.records.grid_watch import ENDED_AS, GridWatch, Row, RowSink
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.shared_channel import Access
    from simmodel.resources.network.transfer import Transfer
    from simmodel.scheduling.protocol import GridSite, MovedFile
    from simmodel.work.job import Brokered, LiveJob, Run

__all__ = ["GRID_EVENTS", "GRID_JOBS", "GridEvents"]

GRID_EVENTS: dict[str, str] = {
    "time": "s, the instant",
    "event": "what happened: created, assigned, staging in, queued, running, executing, released, staging out, "
    "finished, failed, rejected, cancelled, retried, transfer started, transfer ended, read started, read ended, "
    "write started, write ended, evicted, site down, site up, site closed, site reopened",
    "job": "the id of the job; empty: none",
    "attempt": "how often the job has been assigned",
    "site": "the site; of a transfer, its destination; empty: none",
    "host": "the name of the host; empty: not yet chosen, or hosts are not identified",
    "file": "the file; empty: none",
    "bytes": "bytes moved, read, written or evicted; of what failed, those done",
    "source": "the site that a transfer comes from",
    "detail": "the reason of a failure, or the cause of a transfer; failed: broken off",
    "pending": "jobs that wait for the broker, after the event; this and all that follow: "
    "empty for jobs that are known to be impossible before they come",
    "free_cores": "free cores of the site, after the event; of the grid where there is no site",
    "queued": "jobs in the queue of the site, or of all sites",
    "running": "jobs that hold cores at the site, or at all sites",
    "finished": "jobs that have ended well at the site, or at all sites",
    "failed": "jobs that have failed for good at the site, or at all sites",
}
"""The columns of the table ``events``."""

GRID_JOBS: dict[str, str] = {
    "job": "the id",
    "submit": "s, the instant of its submission (feature)",
    "hour": "hour of the day of the submission, the run beginning at midnight (feature)",
    "processors": "cores requested (feature)",
    "requested": "s, requested time on a core of speed 1; nan: none (feature)",
    "user": "its user (feature)",
    "home": "the site that it was submitted to; empty: none (feature)",
    "input_files": "number of inputs (feature)",
    "input_bytes": "their bytes (feature)",
    "output_files": "number of outputs (feature)",
    "output_bytes": "their bytes (feature)",
    "grid_pending": "jobs that wait for the broker just before (feature)",
    "grid_queued": "jobs in the queues of all sites just before (feature)",
    "grid_running": "jobs that hold cores just before (feature)",
    "grid_free_cores": "free cores just before (feature)",
    "grid_finished": "jobs that had ended well just before (feature)",
    "state": "finished, failed, rejected or cancelled (outcome)",
    "site": "the last site that it was assigned to (outcome)",
    "attempts": "how often it was assigned (outcome)",
    "assigned": "s, the instant of the last assignment (outcome)",
    "queue_time": "s from its submission to its start (outcome)",
    "walltime": "s that it held cores (outcome)",
    "turnaround": "s from its submission to its end (outcome)",
    "bytes_in": "bytes moved between sites for it (outcome)",
    "bytes_out": "bytes that it wrote (outcome)",
    "reason": "why it failed or was rejected (outcome)",
}
"""The columns of the table ``jobs``: one row a job, features known at its submission, then its outcome."""


class GridEvents(GridWatch):
    """Writes the tables :data:`GRID_EVENTS` and :data:`GRID_JOBS`; parameters are a grid and the sink of the rows."""

    def __init__(self, grid: Any, sink: RowSink) -> None:
        super().__init__(grid, sink)
        sink.shorten("events of jobs", "events", {"file": "", "bytes": 0.0, "source": ""})
        self._queue = grid.queue
        self._features: dict[int, Row] = {}
        self._host_of: dict[Any, str] = {}

    def _event(
        self,
        event: str,
        job: Brokered | None = None,
        site: GridSite | None = None,
        *,
        file: str = "",
        size: float = 0.0,
        source: str = "",
        detail: str = "",
    ) -> None:
        counts = self.all if site is None else self.at[site]
        free = counts.free if site is None else counts.free_now()
        name = "" if site is None else site.name
        about: Row = ("", 0) if job is None else (job.id, self.grid.ledger.attempts[job.row])
        host = "" if job is None else self._host_of.get(job, "")
        what = float(self.env._now), event, *about, name, host, file, size, source, detail
        state = counts.queued, counts.running, counts.finished, counts.failed
        self._add("events", (*what, len(self.grid.queue), free, *state))

    def _at_site(self, event: str, job: Brokered, site: GridSite, detail: str = "") -> None:
        """Note an event of a job at a site (hot path of :meth:`_event`)."""
        counts = self.at[site]
        pool = counts.pool
        self._add(
            "events of jobs",
            (
                float(self.env._now),
                event,
                job.id,
                self.grid.ledger.attempts[job.row],
                counts.name,
                self._host_of.get(job, ""),
                detail,
                self._queue.count,
                pool.free if pool is not None and pool.free > 0 else counts.free_now(),
                counts.queued,
                counts.running,
                counts.finished,
                counts.failed,
            ),
        )

    def job_created(self, job: Brokered) -> None:
        """Note a submission, with the state of the grid at that instant."""
        self._created(job, float(self.env._now), self._state())

    def _state(self) -> Row:
        counts = self.all
        return self._queue.count, counts.free, counts.queued, counts.running, counts.finished, counts.failed

    def _created(self, job: Brokered, now: float, state: Row) -> None:
        """Note a submission at an instant (s), with the state of the grid then."""
        pending, free, queued, running, finished, _ = state
        files: Row = (0, 0, 0, 0)
        if job.inputs or job.outputs:
            catalogue = self.grid.data.catalogue
            size = sum(catalogue.size(file) for file in job.inputs if file in catalogue)
            files = len(job.inputs), size, len(job.outputs), sum(file.size for file in job.outputs)
        name, user, home = job.id, job.user, job.home
        user, home = "" if user is None else user, "" if home is None else home.name
        asked = nan if job.unrequested else job.limit
        about = name, now, int(now % 86400 // 3600), job.processors, asked, user, home
        self._features[job.row] = (*about, *files, pending, queued, running, free, finished)
        self._add("events of jobs", (now, "created", name, self.grid.ledger.attempts[job.row], "", "", "", *state))

    def job_assigned(self, job: Brokered, site: GridSite) -> None:
        self._at_site("assigned", job, site)

    def entered(self, job: Brokered) -> None:
        self._at_site("queued", job, job.destination)

    def went_on(self, job: Brokered, site: GridSite, phase: str) -> None:
        """Note the phases of stays that are states of jobs."""
        if phase in _PHASES:
            self._at_site(_PHASES[phase], job, site)

    def began(self, job: Brokered, run: Run, site: GridSite) -> None:
        if run.grant.nodes:
            self._host_of[job] = self.host(run)
        self._at_site("running", job, site)

    def released(self, job: Brokered, run: Run, site: GridSite, status: str) -> None:
        self._at_site("released", job, site, status)

    def went_back(self, job: Brokered, site: GridSite, reason: str) -> None:
        """Note a failure at a site after which the job is assigned again."""
        self._at_site("retried", job, site, reason)
        self._host_of.pop(job, None)

    def ended(self, job: Brokered, site: GridSite) -> None:
        """Note the end of a job, and its row in the table of jobs."""
        row, ledger, state = job.row, self.grid.ledger, ENDED_AS.get(job.state, job.state)
        reason = ledger.errors.get(row, "")
        self._at_site(state, job, site, reason)
        self._host_of.pop(job, None)
        self._outcome(job, state, site.name, reason)

    def _outcome(self, job: Brokered, state: str, site: str, reason: str) -> None:
        """Write the row of a job that has ended."""
        row, ledger = job.row, self.grid.ledger
        features = self._features.pop(row, None)
        if features is None:
            return
        submit, start, assigned = features[1], ledger.start[row], ledger.assigned[row]
        wait, held = start - submit, ledger.end[row] - start
        self._add(
            "jobs",
            (
                *features,
                state,
                site,
                ledger.attempts[row],
                assigned if assigned == assigned else None,
                wait if wait == wait else None,
                held if held == held else None,
                max(0.0, float(self.env._now) - submit),
                ledger.bytes_in[row],
                ledger.bytes_out[row],
                reason,
            ),
        )

    def job_rejected(self, job: LiveJob, reason: str) -> None:
        """Note a job that no site can ever run, at its submission."""
        if self._mine(job):
            self._end_outside(job, "rejected", reason)

    def withdrawn(self, job: Brokered) -> None:
        """Note a job that was cancelled before it came, or while it waited for the broker."""
        fate = self.grid.ledger.fates.get(job.row)
        self._end_outside(job, "cancelled", "" if fate is None else fate.reason)

    def _end_outside(self, job: Brokered, event: str, reason: str) -> None:
        """Note the end of a job that is at no site, with its submission if this is not known yet."""
        ledger, row = self.grid.ledger, job.row
        now = float(self.env._now)
        state = self._state() if event == "cancelled" or isinstance(reason, Refusal) else (None,) * 6
        if row not in self._features:
            self._created(job, now, state)
        self._add("events of jobs", (now, event, job.id, ledger.attempts[row], "", "", reason, *state))
        number = ledger.site[row]
        self._outcome(job, event, "" if number < 0 else self.grid.places[number].name, reason)

    def file_transfer_started(self, fetch: MovedFile) -> None:
        """Note that a file is on its way."""
        assert fetch.source is not None
        about: Mapping[str, Any] = {
            "file": fetch.file,
            "size": fetch.size,
            "source": fetch.source.name,
            "detail": fetch.cause,
        }
        self._event("transfer started", fetch.job, fetch.site, **about)

    def file_transfer_ended(self, fetch: MovedFile, transfer: Transfer) -> None:
        """Note that a file has arrived, or failed on its way."""
        assert fetch.source is not None
        detail = fetch.cause if transfer.ok else "failed"
        about: Mapping[str, Any] = {"file": fetch.file, "size": transfer.done, "source": fetch.source.name}
        self._event("transfer ended", fetch.job, fetch.site, detail=detail, **about)

    def _access(self, event: str, access: Access) -> None:
        if access.about is not None:
            stay, file = access.about
            broken = access.status == "cancelled"
            size = access.done if broken else access.size
            self._event(event, stay.job, stay.site, file=file, size=size, detail="failed" if broken else "")

    def read_started(self, access: Access) -> None:
        self._access("read started", access)

    def read_ended(self, access: Access) -> None:
        self._access("read ended", access)

    def write_started(self, access: Access) -> None:
        self._access("write started", access)

    def write_ended(self, access: Access) -> None:
        self._access("write ended", access)

    def file_dropped(self, storage: Storage, file: str, size: float, cause: str) -> None:
        site = self.grid.sites.get(storage.name)
        if site is not None:
            self._event("evicted", None, site, file=file, size=size, detail=cause)

    def site_down(self, site: GridSite) -> None:
        self._event("site down", None, site)

    def site_up(self, site: GridSite) -> None:
        self._event("site up", None, site)

    def site_closed(self, site: GridSite) -> None:
        self._event("site closed", None, site)

    def site_reopened(self, site: GridSite) -> None:
        self._event("site reopened", None, site)


_PHASES = {"staging in": "staging in", "inside": "staging in", "executing": "executing", "writing": "staging out"}
