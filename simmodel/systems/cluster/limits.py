"""The limits of a queue, and the jobs that they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.platform.cluster import QueueSpec
    from simmodel.work.job import LiveJob

__all__ = ["QueueRules"]


class QueueRules:
    """Counts the running jobs of a queue, in total and by user, and holds jobs beyond its limits in order of arrival.

    Policies do not see held jobs, so a limit delays no jobs but its own.

    Attributes
    ----------
    spec
        the spec of the queue
    held
        the held jobs
    """

    def __init__(self, spec: QueueSpec) -> None:
        self.spec = spec
        self.held: list[LiveJob] = []
        self._waiting: dict[LiveJob, None] = {}
        self._running = 0
        self._running_of: dict[Any, int] = {}
        self._limited = spec.max_running is not None or spec.max_running_per_user is not None

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the queue rejects the job, or ``None``."""
        spec = self.spec
        if spec.max_processors is not None and job.processors > spec.max_processors:
            return Refusal.of(f"{job.processors} processors", f"queue {spec.name} allows {spec.max_processors}")
        if spec.max_requested is not None and job.planned > spec.max_requested:
            return Refusal.of(f"{job.planned:g} s", f"queue {spec.name} allows {spec.max_requested:g}")
        if spec.max_waiting_per_user is not None:
            mine = sum(each.user == job.user for each in (*self._waiting, *self.held))
            if mine >= spec.max_waiting_per_user:
                return f"user {job.user} has {mine} jobs waiting, queue {spec.name} allows {spec.max_waiting_per_user}"
        return None

    def full(self, user: Any) -> bool:
        """Whether a job of the user would be held now."""
        spec = self.spec
        return (spec.max_running is not None and self._running >= spec.max_running) or (
            spec.max_running_per_user is not None and self._running_of.get(user, 0) >= spec.max_running_per_user
        )

    def holds(self, job: LiveJob) -> bool:
        """Hold the job or note that it waits; return whether it is held."""
        if self._limited and self.full(job.user):
            self.held.append(job)
            self.held.sort(key=lambda each: (each.submit, each.seq))
            return True
        self.waits(job)
        return False

    def waits(self, job: LiveJob) -> None:
        """Note that the job waits."""
        self._waiting[job] = None

    def runs(self, job: LiveJob) -> None:
        """Count a job that runs."""
        self._running += 1
        self._running_of[job.user] = self._running_of.get(job.user, 0) + 1

    def started(self, job: LiveJob) -> list[LiveJob]:
        """Count a start; return the waiting jobs that must be held from now on."""
        self._waiting.pop(job, None)
        self.runs(job)
        if not self._limited:
            return []
        full = [each for each in self._waiting if self.full(each.user)]
        for each in full:
            del self._waiting[each]
        self.held = sorted([*self.held, *full], key=lambda each: (each.submit, each.seq))
        return full

    def ended(self, job: LiveJob) -> list[LiveJob]:
        """Count an end; return the held jobs that may wait from now on, in order."""
        self._running -= 1
        self._running_of[job.user] -= 1
        freed = [each for each in self.held if not self.full(each.user)]
        self.held = [each for each in self.held if self.full(each.user)]
        return freed

    def forget(self, job: LiveJob) -> None:
        """Forget a job that was withdrawn."""
        self._waiting.pop(job, None)
        if job in self.held:
            self.held.remove(job)
