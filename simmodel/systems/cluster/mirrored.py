"""Mirrored executions: starts and ends reported from outside, by a real scheduler or a recorded schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.environment import END, SUBMIT
from simmodel.foundation.errors import InputError
from simmodel.resources.pools.elastic import fits_at
from simmodel.systems.cluster.execution import JobExecution
from simmodel.work.job import LiveJob, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.claims import Claim
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore

__all__ = ["MirroredExecution"]

_START = SUBMIT + 0.5  # in an instant: after its ends and its submissions
_STATUSES = ("completed", "timeout", "failed", "cancelled", "lost", "preempted", "requeued")


class MirroredExecution(JobExecution):
    """Starts and ends jobs as reported, now or at an instant (s).

    The policy of the cluster is not asked; what-ifs of its snapshots use it.

    >>> from simmodel import Cluster, Environment, Job
    >>> env = Environment()
    >>> cluster = Cluster(env, 4, execution="mirrored")
    >>> job = cluster.submit(Job(processors=2, run=60))
    >>> cluster.execution.start(job, at=5)
    >>> cluster.execution.end(job, "failed", at=12)
    >>> env.run(); job.started, job.state, env.now
    (5, 'failed', 12)
    """

    plans = False

    def __init__(self, core: ClusterCore, *parts: Any) -> None:
        super().__init__(core, *parts)
        self._jobs: dict[int | str, LiveJob] = {}  # jobs that have not ended, by id
        self._ending: dict[LiveJob, str] = {}  # statuses of jobs that end at the instant of their start
        core.env.observe(self)

    def start(
        self,
        work: LiveJob | int | str,
        place: Pool | None = None,
        allocation: Allocation | None = None,
        *,
        at: float | None = None,
        since: float | None = None,
        processors: int | None = None,
    ) -> None:
        """Start a job that waits, or that a limit or a dependency would keep waiting, after all submissions.

        Parameters
        ----------
        work
            the job, or its id if it has not been submitted yet
        place, allocation
            the partition, by default the one that the job waits for; the parts of its nodes, if nodes are identified
        at
            the instant, in s; default: now
        since
            the instant at which it started, in s, if that is reported late; default: the instant above
        processors
            the size at which an elastic job starts; default: that which it prefers

        Raises
        ------
        InputError
            if the instant is in the past; at the instant, if the job does not wait or does not fit
        """
        if at is None:
            self._begin(work, place, allocation, since, processors)
        else:
            self._plan(at, lambda: self._begin(work, place, allocation, since, processors), _START)

    def end(self, job: LiveJob | int | str, status: str = "completed", *, at: float | None = None) -> None:
        """End a running job.

        Parameters
        ----------
        job
            the job, or its id
        status
            ``"completed"``, ``"timeout"``, ``"failed"``, ``"cancelled"`` or ``"lost"``; with ``"preempted"`` and
            ``"requeued"`` the job returns to the queue
        at
            the instant, in s; default: now

        Raises
        ------
        InputError
            if the status is unknown or the instant is in the past; at the instant, if the job does not run
        """
        if status not in _STATUSES:
            raise InputError(f"must be one of {', '.join(_STATUSES)}, got {status!r}", place="status")
        if at is None:
            self._finish(job, status)
        else:
            self._plan(at, lambda: self._end_at(job, status), END)

    # ------------------------------------------------------------------ carrying out

    def _plan(self, at: float, call: Callable[[], None], priority: float) -> None:
        if at < self.env.now:
            raise InputError(f"at: must be an instant >= {self.env.now:g} s, got {at:g}")
        self.env.call_at(at, call, priority)

    def _begin(
        self,
        job: LiveJob | int | str,
        place: Pool | None,
        allocation: Allocation | None,
        since: float | None,
        processors: int | None,
    ) -> None:
        live = self._live(job)
        if live.state in ("held", "blocked"):
            self._core.unblock(live)
            self._queueing.let_wait(live)
        if live.state != "waiting":
            raise InputError(f"job {live.id} cannot be started at {self.env.now:g} s: it is {live.state}")
        if place is not None and place is not live.place:
            self._queueing.move(live, place)
        pool = live.place
        part = pool.room_for(live, allocation) if processors is None else fits_at(pool, live, processors) or None
        if part is None:
            raise InputError(
                f"job {live.id} cannot be started on {pool.name} at {self.env.now:g} s: {live.processors} processors "
                f"requested, {pool.free} of {pool.capacity} are free"
            )
        super().start(live, pool, part, since=since, processors=processors)
        status = self._ending.pop(live, None)
        if status is not None:
            self._finish(live, status)

    def _end_at(self, job: LiveJob | int | str, status: str) -> None:
        live = self._live(job)
        if live.run is not None:
            self._finish(live, status)
            return
        self._ending[live] = status
        self._plan(self.env.now, lambda: self._check_ended(live), _START + 0.25)

    def _check_ended(self, job: LiveJob) -> None:
        if job in self._ending:
            self._finish(job, self._ending.pop(job))

    def _finish(self, job: LiveJob | int | str, status: str) -> None:
        live = self._live(job)
        if live.run is None:
            raise InputError(f"job {live.id} cannot be ended at {self.env.now:g} s: it is {live.state}")
        self.finish(live.run, status)

    def _live(self, job: LiveJob | int | str) -> LiveJob:
        if isinstance(job, LiveJob):
            return job
        found = self._jobs.get(job)
        if found is None:
            raise InputError(f"job {job} cannot be started or ended at {self.env.now:g} s: not submitted, or ended")
        return found

    def leave(self, job: LiveJob) -> None:
        """Take out a job that has not started: it does not end, so jobs that depend on it keep waiting.

        Raises
        ------
        InputError
            if it has started or ended
        """
        if job.state not in ("waiting", "held", "blocked"):
            raise InputError(f"job {job.id} cannot be taken out at {self.env.now:g} s: it is {job.state}")
        self._queueing.leave(job)
        self._core.known.pop(job.id, None)
        self._core.unblock(job)
        self.job_cancelled(job)
        job.state = "left"

    def fail(self, runs: Iterable[Run | Claim]) -> None:
        """Do nothing: which jobs a failure or a reservation stops is reported, too."""

    def stop_all(self, runs: Iterable[Run | Claim], status: str) -> None:
        """Do nothing: which jobs the end of a reservation stops is reported, too."""

    # ------------------------------------------------------------------ jobs by id

    def job_submitted(self, job: LiveJob) -> None:
        if job.place in self._queues:
            self._jobs[job.id] = job

    def job_ended(self, run: Run, _status: str) -> None:
        if run.job.over:
            self.job_cancelled(run.job)

    def job_cancelled(self, job: LiveJob) -> None:
        if self._jobs.get(job.id) is job:
            del self._jobs[job.id]
