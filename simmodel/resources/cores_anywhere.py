"""Queues of jobs for cores on any nodes: for them, the cores of a pool of shared nodes are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = ["CoresAnywhere"]


class CoresAnywhere:
    """An index of a queue that knows whether all its jobs are for cores anywhere.

    Such a job starts if enough cores are free, on whichever nodes, whatever other work runs there. So the number of
    free cores and the expected ends decide, as on counted processors, and nodes are chosen when a job starts.

    Attributes
    ----------
    known
        whether the waiting jobs are known

    >>> from simmodel.resources.allocation import Request
    >>> from simmodel.work import LiveJob
    >>> index, job = CoresAnywhere(), LiveJob(1, 0, 0.0, 6, 60.0, 60.0, 60.0)
    >>> index.known = True; index.add(job); index.all_waiting
    True
    >>> job.request = Request(2, nodes=2); index.add(job); index.all_waiting
    False
    """

    __slots__ = ("_others", "known")

    def __init__(self) -> None:
        self.known = False
        self._others: dict[LiveJob, None] = {}

    @property
    def all_waiting(self) -> bool:
        """Whether all waiting jobs are for cores anywhere."""
        return self.known and not self._others

    def asks(self, job: LiveJob) -> bool:
        """Whether a job is for cores anywhere."""
        if job.past is not None and job.past.resumes:
            return False
        return job.request is None or job.request.anywhere

    def add(self, job: LiveJob) -> None:
        """Note a job that joins the queue."""
        if not self.asks(job):
            self._others[job] = None

    def remove(self, job: LiveJob) -> None:
        """Forget a job that leaves the queue."""
        self._others.pop(job, None)
