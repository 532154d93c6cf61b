"""Rewards: an objective of the jobs at the end of an episode, or as the differences that add up to it."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Literal

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.scheduling.objectives import MEASURES, Objective, ObjectiveLike, measure, objective as objective_of
from simmodel.scheduling.observer import Observer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.results.result import Result
    from simmodel.runs.simulation import Simulation
    from simmodel.work.job import Run

__all__ = ["Reward", "When"]

When = Literal["end", "differences"]


class Reward(Observer):
    """The reward of an episode: an objective of its jobs, negated, whose value at the end is the sum of the rewards.

    The jobs are those of the result that ended well. At the end of an episode that stalls or is truncated, a job that
    has not started counts with its wait so far and a run time of 0.

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
        self._past: list[NDArray[np.float64]] = []  # waits and run times of jobs that ended before a fork

    @property
    def name(self) -> str:
        """The objective as a text."""
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
        if self.when == "differences":
            simulation.env.observe(self)

    def job_ended(self, run: Run, _status: str) -> None:
        """Add a job."""
        wait, ran = run.started - run.job.submit, self._env.now - run.started
        for name, sofar in self._values.items():
            what, _, statistic = name.rpartition("_")
            if what == "wait":
                value = wait
            elif what == "turnaround":
                value = wait + ran
            elif what == "slowdown":
                value = (wait + ran) / ran if ran else 0.0
            else:
                value = max(1.0, (wait + ran) / max(ran, self._goal.tau))
            self._values[name] = max(sofar, value) if statistic == "max" else sofar + value / self._jobs

    def step(self) -> float:
        """Return the reward for what has happened since the last one."""
        if self.when == "end":
            return 0.0
        value = sum([weight * self._values[name] for name, weight in self._goal.weights])
        change, self.given = self.given - value, value
        return change

    def last(self, simulation: Simulation) -> tuple[float, float]:
        """Return the last reward of an episode, and the value of the objective."""
        value = self.value(simulation)
        return self.given - value, value

    def value(self, simulation: Simulation) -> float:
        """Return the objective of the jobs so far."""
        result, goal = simulation.result(), self._goal
        if goal.function is not None:
            return float(goal.function(result))
        jobs, now = result.jobs, simulation.env.now
        late = np.isnan(jobs["start"]) & (jobs["submit"] <= now) & (jobs["status"] != "rejected")
        waiting = np.array([now - jobs["submit"][late], np.zeros(np.count_nonzero(late))])
        waits, runs = np.concatenate([*self._past, _times(result), waiting], axis=1)
        busy = float(result.metrics()["utilisation"]) if "utilisation" in goal.measures else nan
        found = measure(np.zeros(len(waits)), waits, runs, names=goal.measures, busy=busy, tau=goal.tau)
        return float(goal.scores([found])[0])

    def fork(self, simulation: Simulation, copy: Simulation) -> Reward:
        """Return the reward of a copy of a simulation, with the jobs that have ended."""
        other = Reward(self.objective, self.when)
        other.begin(copy)
        other._past = [*self._past, _times(simulation.result())]
        other.given, other._values, other._jobs = self.given, dict(self._values), self._jobs
        return other


def _times(result: Result) -> NDArray[np.float64]:
    """Return the waits and run times of the jobs that ended well (s), of shape (2, jobs)."""
    return np.array([result.jobs["wait"], result.jobs["run"]])[:, result.counted]
