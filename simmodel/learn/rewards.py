"""Rewards: an objective of the jobs at the end of an episode, or as the differences that add up to it."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Literal

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.metrics.batch import in_window
from simmodel.records.job_record import ENDED_WELL, delays, needed, since
from simmodel.scheduling.objectives import MEASURES, Objective, ObjectiveLike, measure, objective as objective_of
from simmodel.scheduling.observer import Observer
from simmodel.work.job import outcome_of, run_time_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.results.result import Result
    from simmodel.runs.simulation import Simulation
    from simmodel.work.job import Run

__all__ = ["Reward", "When"]

When = Literal["end", "differences"]


class Reward(Observer):
    """The reward of an episode: an objective of its jobs, negated, whose value at the end is the sum of the rewards.

    The jobs are those that the metrics of the result count: they ended well, and had not started before an episode that
    begins ``warm``. At the end of an episode that is truncated, a job that waits counts with the time so far, and a run
    time of 0. In one that stalls it counts as the last of the jobs that are left, if these ran one after another.

    Parameters
    ----------
    objective
        any argument of :func:`~simmodel.scheduling.objectives.objective`, on the raw scale; a function gets the result;
        or the name of one of ``result.metrics()``
    when
        ``"end"``: all with the last step; ``"differences"``: with each step what the jobs that ended since have added,
        for means and maxima, and with the last step the rest

    Raises
    ------
    InputError
        the objective is unknown, or is not known before the end

    >>> Reward("raw: wait_mean + 2 * wait_max", "differences").name
    '1*wait_mean+2*wait_max'
    """

    def __init__(self, objective: ObjectiveLike = "bounded_slowdown_mean", when: When = "end") -> None:
        if when not in ("end", "differences"):
            raise unknown("when", when, ("end", "differences"))
        self.objective, self.when = objective, when
        self._metric = objective if isinstance(objective, str) and objective.isidentifier() else ""
        if self._metric in MEASURES or not self._metric:
            self._metric, self._goal = "", attrs.evolve(objective_of(objective), scale="raw")
        else:
            self._goal = Objective(function=self._of_metrics)
        if when == "differences" and (self._goal.function is not None or "utilisation" in self._goal.measures):
            raise InputError(f"must be 'end' for {self.name}, which is not known before it, got {when!r}", place="when")
        self._begun = False
        self._past: list[NDArray[np.float64]] = []  # of jobs that ended before a fork: as of _times
        self._low: float | None = None  # in a fork: the first instant of the whole episode (s)

    @property
    def name(self) -> str:
        return self._metric or str(self._goal).removeprefix("raw:")

    def _of_metrics(self, result: Result) -> float:
        found = result.metrics()
        if self._metric not in found:
            raise unknown("measure or metric", self._metric, dict.fromkeys([*MEASURES, *found]))
        return float(found[self._metric])

    def begin(self, simulation: Simulation) -> None:
        """Follow an episode from now on."""
        if self._metric and not self._begun:
            self._of_metrics(simulation.result())  # an unknown name is an error at once
        self.given, self._begun = 0.0, True
        self._values = dict.fromkeys(self._goal.measures, 0.0)  # what the jobs that have ended have added to each
        self._jobs = max(1, simulation.system.unfinished)
        self._env = simulation.env
        self._from = float(self._env.now)
        if self.when == "differences":
            simulation.env.observe(self)

    def job_ended(self, run: Run, status: str) -> None:
        """Add a job."""
        job, history = run.job, run.job.history
        ran, stopped, begun = self._env.now - run.started, 0.0, run.started
        eligible = None if history is None else history.eligible
        whole = self._env.now - (job.submit if eligible is None else eligible)
        if history is not None and history.begun is not None:
            begun, ran = history.begun, ran + history.executed - history.overhead
            stopped = history.paused + history.lost + history.overhead
        if status not in (*ENDED_WELL, outcome_of(job)) or begun < self._from:
            return
        for name, sofar in self._values.items():
            what, _, statistic = name.rpartition("_")
            if what == "wait":
                value = whole - ran - stopped
            elif what == "turnaround":
                value = whole
            elif what == "slowdown":
                value = whole / ran if ran else 0.0
            else:
                value = max(1.0, whole / max(ran, self._goal.tau))
            self._values[name] = max(sofar, value) if statistic == "max" else sofar + value / self._jobs

    def step(self) -> float:
        """Return the reward for what has happened since the last one."""
        if self.when == "end":
            return 0.0
        value = sum([weight * self._values[name] for name, weight in self._goal.weights])
        change, self.given = self.given - value, value
        return change

    def last(self, simulation: Simulation, *, stalled: bool = False) -> tuple[float, float]:
        """Return the last reward of an episode, and the value of the objective; ``stalled``: nothing more happens."""
        value = self.value(simulation, stalled=stalled)
        return self.given - value, value

    def value(self, simulation: Simulation, *, stalled: bool = False) -> float:
        """Return the objective of the jobs so far."""
        result, goal = simulation.result(), self._goal
        if goal.function is not None:
            return float(goal.function(result))
        low = result.started if self._low is None else self._low
        times = [*self._past, _times(result, low), _left(simulation, result, low, stalled=stalled)]
        waits, runs, stopped = np.concatenate(times, axis=1)
        busy = float(result.metrics()["utilisation"]) if "utilisation" in goal.measures else nan
        measured = measure(np.zeros(len(waits)), waits, runs, stopped=stopped, names=goal.measures, tau=goal.tau)
        if "utilisation" in measured:  # of all jobs, also where none counts
            measured["utilisation"] = busy
        return float(goal.scores([measured])[0])

    def fork(self, simulation: Simulation, copy: Simulation) -> Reward:
        """Return the reward of a copy of a simulation, with the jobs that have ended."""
        other, result = Reward(self.objective, self.when), simulation.result()
        other.begin(copy)
        other._low = low = result.started if self._low is None else self._low
        other._past = [*self._past, _times(result, low)]
        other.given, other._values, other._jobs, other._from = self.given, dict(self._values), self._jobs, self._from
        return other


def _times(result: Result, low: float) -> NDArray[np.float64]:
    """Return the waits, the seconds needed and those of interruptions (s) of the jobs that count, of shape (3, jobs).

    ``low``: the first instant of the episode (s).
    """
    jobs = result.jobs.where(result.counted & in_window(result.jobs, low, result.ended))
    return np.array([jobs["wait"], needed(jobs), delays(jobs) - jobs["wait"]])


def _left(simulation: Simulation, result: Result, low: float, *, stalled: bool) -> NDArray[np.float64]:
    """Return the same of the jobs that still wait.

    ``stalled``: as if all jobs that are left ran one after another from now on, each of them as the last one.
    """
    jobs, now = result.jobs, simulation.env.now
    waiting = result.status.isin(("waiting", "suspended")) & (jobs["submit"] <= now) & ~(jobs["start"] < low)
    jobs = jobs.where(waiting)
    waits, runs = now - since(jobs), np.zeros(len(jobs))
    if stalled:
        lengths = {simulation.system.row_of(job): run_time_of(job) for job in simulation.system.present()}
        found = [lengths.get(row, 0.0) for row in np.flatnonzero(waiting).tolist()]
        runs = np.where(np.isfinite(found), found, 0.0)
        waits = waits + (runs.sum() - runs)
    return np.array([waits, runs, np.zeros(len(jobs))])
