"""Optimisation: the platforms and policies that no others beat in all of several objectives, by search."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from itertools import product
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.ensembles import GivenStudy, search, study_of
from simmodel.experiments.models import GivenOutputs, Outputs, Varied, check_whole, outcome
from simmodel.experiments.parameters import GivenSpace, Model, Parameter, Space
from simmodel.experiments.trials import Study, Trial
from simmodel.foundation.display import Cells, Shown, counted, text_table, texts
from simmodel.foundation.errors import InputError, SimmodelError, optional_imports, shown, unknown
from simmodel.metrics.objective_scores import hypervolume, pareto_front
from simmodel.results.stores import plain
from simmodel.runs.scenario import Scenario
from simmodel.view.experiment_plots import front as plotted
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["METHODS", "Optimisation", "optimise"]

METHODS = ("nsga-ii", "random", "all")
"""The methods: a genetic search, random points, and every point of a space that has a finite number."""
Values: TypeAlias = "dict[str, Any]"
Proposer: TypeAlias = "Callable[[list[Trial]], Sequence[Mapping[str, Any]]]"
"""Returns the values of the next trials from all trials so far; the same ones give the same."""
_ATTEMPTS = 50  # points drawn for each new one, before a space counts as exhausted


def optimise(
    model: Model,
    choices: GivenSpace,
    objectives: GivenOutputs,
    method: str = "nsga-ii",
    *,
    budget: int = 300,
    population: int = 30,
    maximise: Sequence[str] = (),
    seed: int = 0,
    study: GivenStudy = None,
    force: bool = False,
    executor: Executor | None = None,
    progress: bool = False,
) -> Optimisation:
    """Search for the values of a model's parameters that no others beat in all objectives: the Pareto front.

    Parameters
    ----------
    model
        a scenario, or a function of keywords
    choices
        the choices by path or keyword: ranges, or lists of names and numbers, such as
        ``{"policy": ["fcfs", "easy"], "partitions[0].processors": (64, 512, "integer")}``; see
        :class:`~simmodel.experiments.parameters.Space`
    objectives
        names of metrics, functions of a result (or of a result and the values of the choices), or both by name. They
        are minimised; one whose name begins with ``-`` is maximised
    method
        ``"nsga-ii"`` (of optuna), ``"random"``, or ``"all"``: every point of a space without ranges of real numbers
    budget
        the number of runs, all of different values
    population
        the runs of a generation of NSGA-II, which can run at once
    maximise
        names of objectives to maximise
    seed
        of the search
    study
        the file that keeps the runs: the same call with it goes on where it was stopped, also with a larger budget
    force
        go on with a file whose runs were about something else, such as an older version of a function
    executor
        runs the model; default: this process
    progress
        show a progress bar, one step per run

    Raises
    ------
    InputError
        a choice, an objective or the method is wrong
    SimmodelError
        all runs failed
    MissingExtra
        optuna is not installed

    Source: K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE Transactions on
    Evolutionary Computation 6(2), 2002.

    >>> from simmodel import Scenario
    >>> model = Scenario(platform=64, workload="lublin-128-week", until=172800)
    >>> choices = {"policy": ["fcfs", "easy"], "processors": (128, 132, "integer")}
    >>> objectives = {"wait": "wait_mean", "size": lambda result: result.processors}
    >>> print(optimise(model, choices, objectives, budget=10, population=4).summary())
    policy  processors   wait  size
      easy         131  988.5   131
      easy         130  1,042   130
      easy         129  1,059   129
      easy         128  1,146   128
    """
    wanted, upwards = _objectives(objectives, maximise)
    space = Space.of(choices, model)
    _check(space, method, budget, population, seed)
    about = {"model": model, "choices": space.document(), "objectives": wanted, "method": [method, population, seed]}
    kept = study_of(study, "optimise", force, maximise=sorted(upwards), **about)
    kept = Study(document={"about": "optimise"}) if kept is None else kept
    signs = np.array([-1.0 if name in upwards else 1.0 for name in wanted.of])

    def losses(trial: Trial) -> list[float] | None:
        if trial.state != "finished":
            return None
        return [float(sign * trial.outcome[name]) for name, sign in zip(wanted.of, signs, strict=True)]

    propose: Proposer
    if method == "nsga-ii":
        propose = Evolution(space, len(signs), population, seed, losses)
    else:
        propose = every_point(space) if method == "all" else at_random(space, seed, population)
    most = budget if method != "all" else number_of_points(space) or 0
    search(kept, propose, most, outcome, Varied(model, space, wanted), executor=executor, progress=progress)
    found = Optimisation(model, space, tuple(wanted.of), frozenset(upwards), tuple(kept.trials()[:most]))
    if not len(found.runs):
        raise SimmodelError(f"all {len(found.trials)} runs failed: {found.trials[0].error}")
    return found


def _objectives(given: GivenOutputs, maximise: Sequence[str]) -> tuple[Outputs, set[str]]:
    """Return the objectives by name, and the names of those to maximise."""
    if given is None:
        raise InputError("must be at least one, got none", place="objectives")
    read = Outputs.read(given, "objectives")
    upwards = {maximise} if isinstance(maximise, str) else set(maximise)
    of: dict[str, Any] = {}
    for label, each in read.of.items():
        name, taken = label.removeprefix("-"), each.removeprefix("-") if isinstance(each, str) else each
        if name in of:
            raise InputError(f"duplicate name {name!r}", place="objectives")
        if label.startswith("-") or (isinstance(each, str) and each.startswith("-")):
            upwards.add(name)
        of[name] = taken
    for name in upwards:
        if name not in of:
            raise InputError(unknown("objective", name, of).message, place="maximise")
    return Outputs(of), upwards


def _check(space: Space, method: str, budget: int, population: int, seed: int) -> None:
    if method not in METHODS:
        raise InputError(unknown("method", str(method), METHODS).message, place="method")
    for name, value, least in (("budget", budget, 1), ("population", population, 2), ("seed", seed, 0)):
        check_whole(name, value, least)
    for each in space.parameters:
        try:
            plain(list(each.choices))
        except TypeError:
            raise InputError(
                f"choices: must be names, files or numbers, got {shown(each.choices)}", each.name
            ) from None
        if method == "all" and not each.choices and not each.whole:
            raise InputError(f"must be choices or whole numbers for method 'all', got {each.scale}", place=each.name)


@attrs.frozen(eq=False, repr=False, slots=False)
class Optimisation(Shown):
    """The runs of an optimisation, and the Pareto front.

    Parameters
    ----------
    model, space
        the model that was optimised, and the choices
    objectives
        the names of the objectives
    maximised
        those that are maximised
    trials
        the trials: values, objectives, or why they failed
    """

    model: Model
    space: Space
    objectives: tuple[str, ...]
    maximised: frozenset[str]
    trials: tuple[Trial, ...]

    @cached_property
    def runs(self) -> Table:
        """One row per run that ended: ``number``, the values, the objectives, and whether it is on the front."""
        found = [trial for trial in self.trials if trial.state == "finished"]
        columns: dict[str, Any] = {"number": np.array([trial.number for trial in found], dtype=np.int64)}
        for name in self.space.names:
            columns[name] = np.array([trial.values[name] for trial in found])
        for name in self.objectives:
            columns[self._column(name)] = np.array([trial.outcome[name] for trial in found], dtype=np.float64)
        return Table({**columns, "front": pareto_front(self._losses(Table(columns))) if found else np.zeros(0, bool)})

    def _column(self, objective: str) -> str:
        return f"{objective} (objective)" if objective in self.space.names else objective

    def _losses(self, rows: Table) -> NDArray[np.float64]:
        signs = [-1.0 if name in self.maximised else 1.0 for name in self.objectives]
        columns = [sign * rows[self._column(name)] for name, sign in zip(self.objectives, signs, strict=True)]
        return np.column_stack(columns)

    @property
    def front(self) -> Table:
        """The rows of :attr:`runs` on the Pareto front, by the first objective, the best first."""
        rows = self.runs.where(self.runs["front"])
        rows = Table({name: rows[name] for name in rows.names if name != "front"})
        return rows.where(np.lexsort(self._losses(rows).T[::-1]))

    @property
    def failed(self) -> Table:
        """The number, the values and the error of the runs that failed."""
        found = [trial for trial in self.trials if trial.state == "failed"]
        columns = {name: np.array([trial.values[name] for trial in found]) for name in self.space.names}
        numbers = np.array([trial.number for trial in found], dtype=np.int64)
        return Table({"number": numbers, **columns, "error": np.array([trial.error for trial in found], dtype=str)})

    def scenario(self, point: int) -> Scenario:
        """Return the scenario of a point of the front: ``optimisation.scenario(0).run()`` repeats its run.

        Raises
        ------
        InputError
            if there is no such point, or a function was optimised
        """
        if not isinstance(self.model, Scenario):
            raise InputError("must be a scenario, but a function was optimised: call it with the values", place="model")
        return self.space.apply(self.model, self.values(point))

    def values(self, point: int) -> dict[str, Any]:
        """Return the values of the choices at a point of the front.

        Raises
        ------
        InputError
            if there is no such point
        """
        numbers = self.front["number"].tolist()
        if not -len(numbers) <= point < len(numbers):
            raise InputError(f"must be below {len(numbers)}, the points of the front, got {point}", place="point")
        return dict(next(trial.values for trial in self.trials if trial.number == numbers[point]))

    def hypervolume(self, reference: ArrayLike | None = None) -> float:
        """Return the volume of objectives that the front dominates: see :func:`~simmodel.metrics.hypervolume`.

        Parameters
        ----------
        reference
            one value per objective; default: the worst of all runs in each
        """
        losses = self._losses(self.runs)
        signs = [-1.0 if name in self.maximised else 1.0 for name in self.objectives]
        corner = losses.max(axis=0) if reference is None else np.asarray(reference, dtype=np.float64) * signs
        return hypervolume(losses, corner)

    def summary(self) -> str:
        """Return the front as a table of text, one line per point."""
        return "\n".join(text_table(self._cells(), left=0))

    plot = plotted

    def _cells(self) -> Cells:
        rows = self.front
        names = [name for name in rows.names if name != "number"]
        return [names, *(texts(row[name] for name in names) for row in rows.rows())]

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if len(self.failed) else ""
        found = f"{counted(len(self.front), 'point')} of {counted(len(self.runs), 'run')}{failed}"
        return f"<Optimisation of {', '.join(self.objectives)}: {found}>"


# ---------------------------------------------------------------------- proposals


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
        self, space: Space, objectives: int, population: int, seed: int, losses: Callable[[Trial], list[float] | None]
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
