"""Jobs planned with predicted run times: predictions at submission, corrections, and learning."""

from __future__ import annotations

from functools import partial
from math import inf, nextafter
from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError, shown
from simmodel.predictors.learning import Learning
from simmodel.snapshots.cluster import PredictorState
from simmodel.work.job import Booting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simmodel.environment import Call
    from simmodel.resources.pools.claims import Grant
    from simmodel.scheduling.prediction import Predictor
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import LiveJob, Run

__all__ = ["Predictions"]

_LEAST = 1.0  # s: nothing is planned for no time, which a prediction can be


class Predictions:
    """Plans the jobs of a cluster with predictions, which it corrects when a job outlives them.

    It hears of jobs as observers do, so that a cluster without predictions pays nothing. The requested time of a job
    remains its limit (``job.asked``): no job is stopped by its prediction.

    Parameters
    ----------
    core
        that of the cluster
    predictor
        the predictor, which learns from the jobs that end
    """

    def __init__(self, core: ClusterCore, predictor: Predictor) -> None:
        self._core = core
        self.predictor = predictor
        self._learning = Learning(predictor)
        self._calls: dict[Run, Call] = {}  # the corrections to come

    # ------------------------------------------------------------------ hooks

    def job_submitted(self, job: LiveJob) -> None:
        """Plan a job with a prediction, or with its request if maintenance or a reservation is ahead.

        A job that starts before such a window because of its prediction would be in the way when it begins.
        """
        limit = job.asked
        predicted = self.predictor.predict(job)
        if not predicted >= 0:
            message = f"must predict seconds >= 0, got {predicted!r} for job {job.id}"
            raise InputError(message, place=f"predictor {self.predictor.name!r}")
        ahead = any(not window.begun for place in self._core.places for window in place.windows)
        ahead = ahead or any(place.consumables.falls_before(inf) for place in self._core.places)
        unknown = ahead or predicted == inf
        planned = job.planned if unknown else min(limit, max(_LEAST, float(predicted)))
        if not (unknown and job.unrequested):
            job.limit_to(limit)
        job.plan(planned, planned, job._duration)

    def job_started(self, run: Run) -> None:
        """Plan the correction of a prediction that the job outlives.

        Policies do not see planned calls: for a job that ends before, there is nothing to plan.
        """
        job, end = run.job, run.expected_end
        if job.predicted and end < inf and (run.callbacks is None or run._end > end):
            call = partial(self._correct, run)
            self._calls[run] = self._core.env.call_at(max(end, self._core.env.now), call, self._core.calendar_priority)

    job_resumed = job_started

    def job_ended(self, run: Run, status: str) -> None:
        """Learn from a job that has ended as it would have anyhow."""
        self._withdraw(run)
        if run.job.predicted or run.job.unrequested:
            self._learning.job_ended(run, status)

    def job_resized(self, run: Run, _processors: int, _grant: Grant) -> None:
        """Plan the correction of a job that has another size from now on."""
        for each in [each for each in self._calls if each.job is run.job]:
            self._withdraw(each)
        self.job_started(run)

    def job_suspended(self, run: Run) -> None:
        """Withdraw the correction of a job that stops for now; it resumes with the rest of a corrected prediction."""
        self._withdraw(run)
        job = run.job
        if job.predicted and job.expected <= 0:
            left = max(_LEAST, (run.expected_end - self._core.env.now) * self._speed(run))
            job.plan(left, left, job._duration)
            job.changed()

    def _withdraw(self, run: Run) -> None:
        call = self._calls.pop(run, None)
        if call is not None and call.pending:
            self._core.env.withdraw(call)

    # ------------------------------------------------------------------ corrections

    def _executed(self, run: Run) -> float:
        """Return the seconds of work that a run has done."""
        return float(self._core.env.now - run.started) * self._speed(run)

    def _before(self, job: LiveJob) -> float:
        """Return the seconds that a job ran before its present start, if that work was kept."""
        past = job.history
        if past is None:
            return 0.0
        return past.executed if past.kept is None else past.kept.ran

    def _speed(self, run: Run) -> float:
        return run.place.speed_of(run.job, run.grant.nodes) if run.place.paced else 1.0

    def _correct(self, run: Run) -> None:
        """Expect a run that has outlived its prediction to end later, at its limit at the latest."""
        del self._calls[run]
        job, place = run.job, run.place
        if job.run is not run or run.released:
            return
        elapsed, limit = self._executed(run), job.asked - self._before(job)
        corrected = self.predictor.correct(job, job.expected, elapsed)
        end = run.started + min(max(corrected, nextafter(elapsed, inf)), limit) / self._speed(run)
        if not end > run.expected_end:
            return  # at its limit
        place.running.remove(run)
        run.expected_end = end
        place.running.add(run, job.width)
        place.altered()
        self.job_started(run)
        self._core.wake()

    # ------------------------------------------------------------------ snapshots

    def state(self, jobs: Iterable[LiveJob]) -> PredictorState:
        """Return the learned state of the predictor, and the requested times of these jobs by number."""
        limits = tuple((job.seq, job.asked) for job in jobs if job.predicted)
        return PredictorState(self.predictor.state(), limits)

    def restore(self, given: PredictorState, jobs: Iterable[LiveJob], runs: Iterable[Run]) -> None:
        """Continue with the state of a snapshot for its jobs and its executions, whose ends are planned.

        Raises
        ------
        InputError
            if it is not the state of the predictor
        """
        limits = dict(given.limits)
        for job in jobs:
            if job.seq in limits:
                job.limit_to(limits[job.seq])
        for run in runs:
            if not (run.released or isinstance(run, Booting)):
                self.job_started(run)
        if given.state is None:
            return
        try:
            self.predictor.restore(given.state)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            message = f"must be the state of predictor {self.predictor.name!r}, got {shown(given.state)}"
            raise InputError(message, place="prediction.state") from None
