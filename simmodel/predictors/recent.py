"""The two simplest predictions: the request itself, and the last two jobs of the user.

Source: Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates",
IEEE TPDS 18(6), 2007.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.scheduling.prediction import Predictor

if TYPE_CHECKING:
    from simmodel.scheduling.prediction import AskingJob

__all__ = ["RecentTwo", "Request"]


class Request(Predictor):
    """Every job is expected to run for its requested time.

    >>> from simmodel import Job
    >>> Request().predict(Job(run=10, requested=60))
    60
    """

    name = "request"

    def predict(self, job: AskingJob) -> float:
        """Return the requested time (s), infinite if the job has none."""
        return job.asked


class RecentTwo(Predictor):
    """A job is expected to run as long as the last two ended jobs of its user on average, and at most as requested.

    Before two jobs of the user have ended, the request is the prediction.

    >>> from simmodel import Job
    >>> last = RecentTwo()
    >>> for seconds in (90, 10, 20):
    ...     last.learn(Job(run=seconds, user="ann"), seconds)
    >>> last.predict(Job(run=1, requested=60, user="ann")), last.predict(Job(run=1, requested=60, user="bob"))
    (15.0, 60)
    """

    name = "recent-two"

    def __init__(self) -> None:
        self._last: dict[int | str | None, tuple[float, ...]] = {}

    def predict(self, job: AskingJob) -> float:
        """Return the mean of the last two run times (s)."""
        last = self._last.get(job.user, ())
        return min(job.asked, (last[0] + last[1]) / 2) if len(last) == 2 else job.asked

    def learn(self, job: AskingJob, seconds: float) -> None:
        """Remember the run time."""
        self._last[job.user] = (*self._last.get(job.user, ())[-1:], seconds)

    def state(self) -> Any:
        """Return the last run times of each user."""
        return [[user, *last] for user, last in self._last.items()]

    def restore(self, values: Any) -> None:
        """Restore the last run times of each user."""
        self._last = {user: tuple(map(float, last)) for user, *last in values}
