"""What the actions of the ready environments of clusters mean."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from simmodel.foundation.errors import unknown
from simmodel.learn.coding import Act, Action, Choice, Mask
from simmodel.learn.window import JobWindow
from simmodel.policies.backfilling import Easy
from simmodel.policies.ordering import FCFS
from simmodel.scheduling.protocol import Decision, Start

if TYPE_CHECKING:
    from simmodel.foundation.errors import Plain
    from simmodel.policies.ordering import GivenOrder
    from simmodel.scheduling.protocol import View
    from simmodel.work.job import LiveJob

__all__ = ["ChooseNext", "ReserveAndFill"]


class ChooseNext(Act[JobWindow]):
    """An action is the row of the job that is next, as in RLScheduler (Zhang et al., SC 2020).

    The job starts as soon as it fits; until then no other does, except by backfilling. The agent is asked again once it
    has started.

    Parameters
    ----------
    shown
        the rows
    backfill
        ``"easy"``: jobs that do not delay a job that does not fit start beside it
    candidates
        the order in which these are tried
    hold
        whether a job that does not fit stays next until it starts; else the agent is asked again at each event, as
        the policies of :func:`~simmodel.runs.scenario.simulate` are
    wait
        whether there is one more action, the last one: to choose nothing until the next event

    Raises
    ------
    InputError
        an unknown kind of backfilling
    """

    decides = "jobs"

    def __init__(
        self,
        shown: JobWindow,
        backfill: Literal["none", "easy"] = "none",
        *,
        candidates: GivenOrder = FCFS,
        hold: bool = True,
        wait: bool = False,
    ) -> None:
        if backfill not in ("none", "easy"):
            raise unknown("backfill", backfill, ("none", "easy"))
        super().__init__(shown)
        self.backfill: Literal["none", "easy"] = backfill
        self.candidates = candidates
        self.hold = hold
        self.wait = wait
        self.space = Choice(shown.window + wait)
        self._masks = _masks(shown.window, wait)
        self._easy = None if backfill == "none" else Easy(candidates=candidates)
        self._closed = False

    def asks(self, view: View) -> bool:
        """Whether no job is next, and one waits that may be chosen at this decision."""
        return self.shown.reserved is None and not self._closed and bool(view.waiting)

    def mask(self, view: View) -> Mask:
        """Return which rows have a job."""
        found: Mask = self._masks[len(self.shown.jobs(view))]
        return found

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Start a job, or note that it is next."""
        jobs = self.shown.jobs(view)
        row = int(action)
        if row >= len(jobs):  # to wait
            self._closed = True
            return ()
        return self._try(view, jobs[row])

    def resume(self, view: View) -> Iterable[Decision]:
        """Start the job that is next, if it fits by now."""
        shown, self._closed = self.shown, False
        job, shown.reserved = shown.reserved, None
        return () if job is None or job.state != "waiting" else self._try(view, job)

    def _try(self, view: View, job: LiveJob) -> Iterable[Decision]:
        if job.place.fits(job):
            return (Start(job, job.place),)
        if self.hold:
            self.shown.reserved = job
        else:
            self._closed = True
        return self._beside(view, job)

    def _beside(self, view: View, job: LiveJob) -> Iterable[Decision]:
        """Return the starts beside a job that does not fit."""
        return () if self._easy is None else self._easy.beside(view, job.place, job)

    def state(self) -> Plain:
        """Return the id of the job that is next, and whether nothing more is chosen at this decision."""
        return {"next": None if self.shown.reserved is None else self.shown.reserved.id, "closed": self._closed}

    def restore(self, values: Plain, view: View) -> None:
        """Take over the job that is next."""
        if isinstance(values, dict):
            name, self._closed = values["next"], bool(values["closed"])
            self.shown.reserved = None if name is None else next((job for job in view.waiting if job.id == name), None)


@cache
def _masks(window: int, wait: bool) -> Mask:
    """Return the mask for each number of jobs in the rows."""
    masks = np.tri(window + 1, window + wait, -1, dtype=np.bool_)
    masks[:, window:] = True
    masks.flags.writeable = False
    return masks


class ReserveAndFill(ChooseNext):
    """An action is a row, on two levels, as in DRAS (Fan et al., IEEE TPDS 33(12), 2022).

    First the job that is next: it starts if it fits, otherwise it gets a reservation, at the instant at which it fits
    if all running jobs end as requested. Then, while it waits, each job to backfill that does not delay it; the last
    action ends the filling until the next event.

    >>> ReserveAndFill(JobWindow(4, reserves=True)).space.n
    np.int64(5)
    """

    def __init__(self, shown: JobWindow) -> None:
        super().__init__(shown, wait=True)

    def asks(self, view: View) -> bool:
        """Whether a job may be reserved or backfilled."""
        if self.shown.reserved is None:
            return bool(view.waiting)
        some: bool = self.shown.backfillable(view).any().item()
        return some and not self._closed

    def mask(self, view: View) -> Mask:
        """Return which rows have a job, or one that may be backfilled."""
        if self.shown.reserved is None:
            found = super().mask(view).copy()
            found[-1] = False
            return found
        return np.append(self.shown.backfillable(view), True)

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Start a job, reserve for it, or end the filling."""
        if self.shown.reserved is None or action == self.shown.window:
            return super().__call__(view, action)
        job = self.shown.jobs(view)[int(action)]
        return (Start(job, job.place),)
