"""Training of a predictor: in a simulation that plans with other times, or from a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.scheduling.observer import Observer
from simmodel.work.job import Job
from simmodel.work.prepare import as_workload, prepare

if TYPE_CHECKING:
    from simmodel.scheduling.prediction import Predictor
    from simmodel.work.job import Run
    from simmodel.work.prepare import JobsGiven

__all__ = ["Learning", "learn_from"]


class Learning(Observer):
    """Teaches a predictor the run times of the jobs that end by themselves or at their requested time.

    Parameters
    ----------
    predictor
        the predictor; the policies of the simulation do not use it

    >>> from simmodel import Job, simulate
    >>> from simmodel.predictors.similar import RecentTwo
    >>> past = RecentTwo()
    >>> _ = simulate(4, [Job(run=10 + i, requested=60) for i in range(3)], "easy", observers=[Learning(past)])
    >>> past.predict(Job(run=1, requested=60))
    11.5
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def __repr__(self) -> str:
        return f"<learning of {self.predictor!r}>"

    def job_ended(self, run: Run, status: str) -> None:
        """Learn from a job that has ended as it would have anyhow."""
        if status in ("completed", "timeout"):
            job = run.job
            speed = run.place.speed_of(job, run.grant.nodes) if run.place.paced else 1.0
            before = job.history.executed if job.history is not None else 0.0
            self.predictor.learn(job, float(run.place.env.now - run.started) * speed + before)


def learn_from(predictor: Predictor, workload: JobsGiven) -> int:
    """Teach a predictor the run times of a log, in the order of the ends; return the number of jobs learned from.

    The log may be a workload, a data frame with its columns, or jobs.

    Jobs without recorded waits count as started at their submission; jobs that did not run teach nothing.

    >>> from simmodel import Workload
    >>> from simmodel.predictors.similar import RecentTwo
    >>> past = RecentTwo()
    >>> learn_from(past, Workload({"submit": [0, 0], "run": [10, 20], "processors": [1, 1], "requested": [60, 60]}))
    2
    >>> from simmodel import Job
    >>> past.predict(Job(run=1, requested=60))
    15.0
    """
    workload = as_workload(workload)
    ready = prepare(workload, None)
    start = workload.recorded_starts()
    end = np.where(np.isnan(start), ready.submit, start) + ready.duration
    names = [workload[name].tolist() if name in workload else None for name in ("user", "group")]
    rows = ready.rows[np.argsort(end[ready.rows], kind="stable")].tolist()
    for row in rows:
        user, group = (None if column is None else column[row] for column in names)
        seconds = float(ready.duration[row])
        asked = float(ready.asked[row])
        job = Job(
            user=user,
            group=group,
            processors=int(ready.processors[row]),
            run=seconds,
            requested=asked if asked > 0 else None,
        )
        predictor.learn(job, seconds)
    return len(rows)
