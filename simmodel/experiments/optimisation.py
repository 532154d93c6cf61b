"""Optimisation: the platforms and policies that no others beat in all of several objectives, by search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.display import Cells, Shown, counted, text_table, texts
from simmodel.errors import InputError, SimmodelError, shown, unknown
from simmodel.experiments.ensembles import GivenStudy, study_of
from simmodel.experiments.evolution import Evolution, at_random, every_point, number_of_points
from simmodel.experiments.models import GivenOutputs, Outputs, Varied, check_whole, outcome
from simmodel.experiments.parameters import GivenSpace, Model, Space
from simmodel.experiments.searching import search
from simmodel.experiments.trials import Study, Trial
from simmodel.metrics.pareto import hypervolume, pareto_front
from simmodel.results.stores import plain
from simmodel.runs.scenario import Scenario
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from simmodel.view.style import Size

__all__ = ["METHODS", "Optimisation", "optimise"]

METHODS = ("nsga-ii", "random", "all")
"""The methods: a genetic search, random points, and every point of a space that has a finite number."""


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
        what can be chosen, by path or keyword: ranges, or lists of names and numbers, such as
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
      easy         130   1042   130
      easy         129   1059   129
      easy         128   1146   128
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

    propose: Callable[[list[Trial]], Sequence[Mapping[str, Any]]]
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
        what was optimised, and the choices
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
        """Return the volume of objectives that the front dominates: see :func:`simmodel.metrics.pareto.hypervolume`.

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

    def plot(
        self,
        objectives: Sequence[str] | None = None,
        *,
        colour: str | None = None,
        title: str | None = None,
        figsize: Size | None = None,
    ) -> Figure:
        """Draw the runs and the front in the plane of two objectives; see :func:`simmodel.view.pareto_plots.front`.

        Parameters
        ----------
        objectives
            the names of two; default: the first two
        colour
            the name of a choice that gives the points of the front their colours
        """
        from simmodel.view.pareto_plots import front

        return front(self, objectives, colour=colour, title=title, figsize=figsize)

    def _cells(self) -> Cells:
        rows = self.front
        names = [name for name in rows.names if name != "number"]
        return [names, *(texts(row[name] for name in names) for row in rows.rows())]

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if len(self.failed) else ""
        found = f"{counted(len(self.front), 'point')} of {counted(len(self.runs), 'run')}{failed}"
        return f"<Optimisation of {', '.join(self.objectives)}: {found}>"
