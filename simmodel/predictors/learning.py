"""An observer that teaches a predictor while a simulation plans with other times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.scheduling.observer import Observer

if TYPE_CHECKING:
    from simmodel.scheduling.prediction import Predictor
    from simmodel.work.job import Run

__all__ = ["Learning"]


class Learning(Observer):
    """Teaches a predictor the run times of the jobs that end by themselves or at their requested time.

    Parameters
    ----------
    predictor
        the predictor; the policies of the simulation do not use it

    >>> from simmodel import Job, simulate
    >>> from simmodel.predictors import RecentTwo
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
            before = job.past.executed if job.past is not None else 0.0
            self.predictor.learn(job, float(run.place.env.now - run.started) * speed + before)
