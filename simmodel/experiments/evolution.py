"""Proposals of a search: generations of NSGA-II by optuna, random points, or all points."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import isfinite, prod
from typing import Any, TypeAlias

import numpy as np

from simmodel.errors import optional_imports
from simmodel.experiments.parameters import Parameter, Space
from simmodel.experiments.trials import Trial
from simmodel.results.stores import plain

__all__ = ["Evolution", "Proposer", "at_random", "every_point", "number_of_points"]

Values: TypeAlias = "dict[str, Any]"
Proposer: TypeAlias = "Callable[[list[Trial]], Sequence[Mapping[str, Any]]]"
"""Returns the values of the next trials from all trials so far; the same ones give the same."""
_ATTEMPTS = 50  # points drawn for each new one, before a space counts as exhausted


def _key(values: Mapping[str, Any]) -> str:
    return json.dumps(plain(dict(values)), sort_keys=True)


def number_of_points(space: Space) -> int | None:
    """Return the number of points of a space; ``None`` if it has a range of real numbers.

    >>> number_of_points(Space.of({"policy": ["fcfs", "easy"], "nodes": (4, 8, "integer")}))
    10
    """
    counts = [len(each.choices) or (int(each.high - each.low) + 1 if each.whole else 0) for each in space.parameters]
    return prod(counts) or None


def every_point(space: Space) -> Proposer:
    """Return a proposer of all points of a space of choices and whole numbers, in order."""
    axes = [list(each.choices) or list(range(int(each.low), int(each.high) + 1)) for each in space.parameters]

    def propose(trials: list[Trial]) -> list[Values]:
        return [] if trials else [dict(zip(space.names, point, strict=True)) for point in product(*axes)]

    return propose


def at_random(space: Space, seed: int, count: int) -> Proposer:
    """Return a proposer of random points, ``count`` at once, none of them twice."""

    def propose(trials: list[Trial]) -> list[Values]:
        seen, found = {_key(trial.values) for trial in trials}, []
        rng = np.random.default_rng([seed, len(trials)])
        for _ in range(_ATTEMPTS * count):
            values = space.values(rng.random(len(space)))
            if (key := _key(values)) not in seen:
                seen.add(key)
                found.append(values)
            if len(found) == count:
                break
        return found

    return propose


class Evolution:
    """Generations of NSGA-II, as optuna's sampler makes them, without points that were tried before.

    A point that is drawn again counts in its generation with the objectives that are known; it is not run again. The
    search is replayed from the trials, so that a process that joins or continues a study proposes the same.

    Parameters
    ----------
    space
        the choices
    objectives
        their number
    population
        the points of a generation
    seed
        of the sampler
    losses
        the values to minimise of a trial; ``None`` if it failed
    """

    def __init__(
        self,
        space: Space,
        objectives: int,
        population: int,
        seed: int,
        losses: Callable[[Trial], list[float] | None],
    ) -> None:
        with optional_imports():
            import optuna
        self._space, self._population, self._losses = space, population, losses
        self._optuna = optuna
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # else it announces the study
        try:
            sampler = optuna.samplers.NSGAIISampler(population_size=population, seed=seed)
            self._search = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        finally:
            optuna.logging.set_verbosity(before)
        self._known: dict[str, list[float] | None] = {}
        self._generation: list[tuple[Any, Values]] = []  # optuna's trials that have not been told, and their values
        self._told = 0  # trials of the study
        self._points = number_of_points(space)

    def __call__(self, trials: list[Trial]) -> list[Values]:
        """Return the values of the next trials."""
        while True:
            while self._generation and self._told < len(trials):
                asked, values = self._generation.pop(0)
                self._known[_key(values)] = self._losses(trials[self._told])
                self._tell(asked, self._known[_key(values)])
                self._told += 1
            if self._generation:
                return [values for _, values in self._generation]
            self._generation = self._asked()
            if not self._generation:
                return []

    def _tell(self, asked: Any, losses: list[float] | None) -> None:
        if losses is None or not all(map(isfinite, losses)):
            self._search.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._search.tell(asked, losses)

    def _asked(self) -> list[tuple[Any, Values]]:
        """Return the next generation of new points."""
        found: dict[str, tuple[Any, Values]] = {}
        left = None if self._points is None else self._points - len(self._known)
        for _ in range(0 if left == 0 else _ATTEMPTS * self._population):
            asked = self._search.ask()
            values = {each.name: _drawn(asked, each) for each in self._space.parameters}
            key = _key(values)
            if key in self._known or key in found:
                self._tell(asked, self._known.get(key))
                continue
            found[key] = asked, values
            if len(found) in (self._population, left):
                break
        return list(found.values())


def _drawn(asked: Any, parameter: Parameter) -> Any:
    """Return the value that optuna draws for a parameter."""
    name = parameter.name
    if parameter.choices:
        return parameter.choices[asked.suggest_categorical(name, list(range(len(parameter.choices))))]
    if parameter.whole:
        return asked.suggest_int(name, int(parameter.low), int(parameter.high), log=parameter.scale == "log-integer")
    return parameter.value(asked.suggest_float(name, 0.0, 1.0))
