"""Sensitivity: which parameters of a model move its outputs, by Morris screening or Sobol indices, on SALib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.ensembles import GivenStudy, Numbers, measured_calls, study_of
from simmodel.experiments.models import GivenOutputs, Outputs, Varied, check_whole, outcome
from simmodel.experiments.parameters import GivenSpace, Model, Space
from simmodel.foundation.display import Cells, Shown, text_table, texts
from simmodel.foundation.errors import InputError, optional_imports, unknown
from simmodel.metrics.statistics import t_quantile
from simmodel.runs.scenario import Scenario
from simmodel.view.experiment_plots import effects, index_bars
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["METHODS", "Sensitivity", "sensitivity"]

GivenGroups: TypeAlias = "bool | Mapping[str, Sequence[str]]"
METHODS = {"morris": 20, "sobol": 1024}
"""The methods, and how many samples each takes by default."""
_ROUNDING = 1e-12  # of the largest index: below it is the rounding of sums
_LEVELS = 4  # of Morris' grid
_AGAIN = "(again)"  # among the values of a run that is made again
_SEED_0 = 2**32 - 1  # stands for 0, with which SALib 1.5 draws other points at each call
_SHOWN = {"morris": ("mu_star", "sigma"), "sobol": ("first", "total")}


def sensitivity(
    model: Model,
    parameters: GivenSpace,
    outputs: GivenOutputs = None,
    method: str = "morris",
    *,
    samples: int | None = None,
    groups: GivenGroups = False,
    pairs: bool = False,
    seed: int = 0,
    level: float = 0.95,
    study: GivenStudy = None,
    force: bool = False,
    executor: Executor | None = None,
    progress: bool = False,
) -> Sensitivity:
    """Return how much each parameter of a model moves its outputs.

    Parameters
    ----------
    model
        a scenario, or a function of keywords that returns a number, numbers by name, or a result. All runs of a
        scenario have its seed
    parameters
        the range of each, by path or keyword: see :class:`~simmodel.experiments.parameters.Space`
    outputs
        names of metrics, functions of a result, or both by name; default: all numbers of a function
    method
        ``"morris"``: elementary effects, which screen many parameters with few runs; ``"sobol"``: the share of the
        variance that each parameter explains alone (first order) and with all others (total)
    samples
        trajectories of Morris' method (default: 20), of as many runs as parameters and one more; for Sobol's a power
        of 2 (default: 1,024), times parameters and two runs (with ``pairs``: twice the parameters)
    groups
        parameters that are moved together, by the name of the group: ``{"network": ["latency", "bandwidth"]}``;
        ``True``: the groups of the parameters, such as the sites of a grid
    pairs
        whether Sobol's method also gives the indices of pairs
    seed
        of the samples
    level
        confidence of the intervals, between 0 and 1, from bootstrap samples
    study
        the file that keeps the runs: the same call with it goes on where it was stopped
    force
        go on with a file whose runs were about something else, such as an older version of a function
    executor
        runs the model; default: this process
    progress
        show a progress bar

    Raises
    ------
    InputError
        a parameter, an output, the method or a group is wrong
    MissingExtra
        SALib is not installed

    Sources: M. D. Morris, "Factorial sampling plans for preliminary computational experiments", Technometrics 33(2),
    1991; A. Saltelli et al., "Variance based sensitivity analysis of model output", Computer Physics Communications
    181(2), 2010; J. Herman and W. Usher, "SALib", JOSS 2(9), 2017.

    >>> found = sensitivity(lambda x, y, z: 3 * x + y, {"x": (0, 1), "y": (0, 1), "z": (0, 1)})
    >>> found.table["mu_star"].round(6).tolist(), found.influential()
    ([3.0, 1.0, 0.0], ['x', 'y'])
    """
    if method not in METHODS:
        raise InputError(unknown("method", str(method), METHODS).message, place="method")
    if not 0 < level < 1:
        raise InputError(f"must be between 0 and 1, got {level!r}", place="level")
    count = METHODS[method] if samples is None else samples
    check_whole("samples", count, 2)
    check_whole("seed", seed, 0)
    if method == "sobol" and count & (count - 1):
        raise InputError(f"must be a power of 2 for Sobol's method, got {count}", place="samples")
    space, wanted = Space.of(parameters, model), Outputs.read(outputs)
    design = _Design(method, count, _problem(space, groups), pairs and method == "sobol", seed, level)
    points = _points(design)
    kept = study_of(
        study, "sensitivity", force, model=model, parameters=space.document(), outputs=wanted, design=design[:5]
    )
    items = [space.values(point) for point in points]
    shared = Varied(model, space, wanted)
    found = measured_calls(outcome, shared, items, study=kept, executor=executor, progress=progress)
    names = list(wanted.of) or list(dict.fromkeys(name for each in found for name in each))
    columns = {name: np.array([each.get(name, np.nan) for each in found], dtype=np.float64) for name in names}
    for name, values in columns.items():
        if not np.isfinite(values).all():
            missing = int((~np.isfinite(values)).sum())
            raise InputError(f"{name}: must be a number in all runs, but is not in {missing} of {len(values)}")
    analysed = _analysed(design, space, points, columns)
    if method == "sobol" or isinstance(model, Scenario):
        return analysed
    again = [{**item, _AGAIN: True} for item in items[:: len(items) // count][:count]]
    run = partial(measured_calls, outcome, shared, study=kept, executor=executor)
    return attrs.evolve(analysed, noise=_noise(run, again, design, columns))


def _noise(
    run: Callable[[Sequence[Mapping[str, Any]]], list[Numbers]],
    again: Sequence[Mapping[str, Any]],
    design: _Design,
    columns: Mapping[str, NDArray[np.float64]],
) -> dict[str, float]:
    """Return up to where ``mu_star`` may be noise: that of a parameter without effect, from runs that are made again.

    One run shows whether the model is random at all.
    """
    before = {name: values[:: len(values) // len(again)][: len(again)] for name, values in columns.items()}
    found = run(again[:1])
    if all(found[0].get(name) == values[0] for name, values in before.items()):
        return dict.fromkeys(columns, 0.0)
    found += run(again[1:])
    step = _LEVELS / (2 * (_LEVELS - 1))  # by which Morris' method moves a parameter
    bounds = {}
    for name, values in before.items():
        away = np.abs(np.array([each[name] for each in found]) - values) / step
        error = t_quantile((1 + design.level) / 2, len(away) - 1) * away.std(ddof=1) * sqrt(2 / len(away))
        bounds[name] = float(away.mean() + error)
    return bounds


class _Design(NamedTuple):
    method: str
    samples: int
    problem: dict[str, Any]
    pairs: bool
    seed: int
    level: float


def _problem(space: Space, groups: GivenGroups) -> dict[str, Any]:
    """Return the parameters as SALib describes them: all from 0 to 1."""
    problem: dict[str, Any] = {"num_vars": len(space), "names": space.names, "bounds": [[0.0, 1.0]] * len(space)}
    if groups is False:
        return problem
    if groups is True:
        of = {each.name: each.group or each.name for each in space.parameters}
    else:
        of = {name: name for name in space.names}
        for group, members in groups.items():
            for name in members:
                if name not in of:
                    raise InputError(unknown("parameter", name, space.names).message, place="groups")
                if of[name] != name:
                    raise InputError(f"{name} must be in one group, got {of[name]} and {group}", place="groups")
                of[name] = group
    problem["groups"] = [of[name] for name in space.names]
    return problem


def _points(design: _Design) -> NDArray[np.float64]:
    """Return the points of the unit cube at which the model is run."""
    with optional_imports():
        from SALib.sample import morris, sobol
    problem = dict(design.problem)
    if design.method == "morris":
        found = morris.sample(problem, design.samples, num_levels=_LEVELS, seed=design.seed or _SEED_0)
    else:
        found = sobol.sample(problem, design.samples, calc_second_order=design.pairs, seed=design.seed)
    return np.asarray(found, dtype=np.float64)


def _analysed(
    design: _Design, space: Space, points: NDArray[np.float64], columns: Mapping[str, NDArray[np.float64]]
) -> Sensitivity:
    names = list(dict.fromkeys(design.problem.get("groups", space.names)))
    rows: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for output, values in columns.items():
        found = _indices(design, points, values, len(names))
        of_pairs = found.pop("pairs", None)
        for i, name in enumerate(names):
            indices = {key: float(found[key][i]) for key in found}
            rows.append({"output": output, "parameter": name, **indices})
        for i, j in combinations(range(len(names)), 2):
            if of_pairs is not None:
                index, error = of_pairs[:, i, j].tolist()
                pair = {"output": output, "first": names[i], "second": names[j], "index": index}
                pairs.append({**pair, "low": index - error, "high": index + error})
    values_of = [space.values(point) for point in points]
    runs = {name: np.array([each[name] for each in values_of]) for name in space.names}
    runs |= {name if name not in runs else f"{name} (output)": values for name, values in columns.items()}
    return Sensitivity(design.method, _table(rows), Table(runs), _table(pairs), design.level)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table({name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())})


def _indices(
    design: _Design, points: NDArray[np.float64], values: NDArray[np.float64], count: int
) -> dict[str, NDArray[np.float64]]:
    """Return the indices of each parameter (or group) for one output, with the ends of their intervals."""
    with optional_imports():
        from SALib.analyze import morris, sobol
    problem = dict(design.problem)
    if design.method == "morris":
        usual = {"conf_level": design.level, "num_levels": _LEVELS, "seed": design.seed or _SEED_0}
        found = morris.analyze(problem, points, values, **usual)
        star, error = (np.asarray(found[key], dtype=np.float64) for key in ("mu_star", "mu_star_conf"))
        error[error <= _ROUNDING * star] = np.nan  # all effects are equal
        more = {key: np.asarray(found[key], dtype=np.float64) for key in ("mu", "sigma")}
        return {"mu_star": star, "mu_star_low": np.maximum(star - error, 0.0), "mu_star_high": star + error, **more}
    if np.ptp(values) == 0:  # nothing moves it: no variance to divide
        zeros = np.zeros(count)
        kinds = [f"{kind}{end}" for kind in ("first", "total") for end in ("", "_low", "_high")]
        return {**dict.fromkeys(kinds, zeros), **({"pairs": np.zeros((2, count, count))} if design.pairs else {})}
    usual = {"calc_second_order": design.pairs, "conf_level": design.level, "seed": design.seed or _SEED_0}
    found = sobol.analyze(problem, values, **usual)
    indices: dict[str, NDArray[np.float64]] = {}
    for kind, key in (("first", "S1"), ("total", "ST")):
        index, error = np.asarray(found[key]), np.asarray(found[f"{key}_conf"])
        indices |= {kind: index, f"{kind}_low": index - error, f"{kind}_high": index + error}
    return indices | ({"pairs": np.array([found["S2"], found["S2_conf"]])} if design.pairs else {})


@attrs.frozen(eq=False, repr=False)
class Sensitivity(Shown):
    """The sensitivity of outputs to parameters.

    Parameters
    ----------
    method
        ``"morris"`` or ``"sobol"``
    table
        one row per output and parameter (or group): ``output, parameter`` and, by Morris' method, ``mu_star`` (mean
        size of the effect of moving the parameter through its range) with its interval (nan if all effects are equal:
        along these trajectories the output is linear in the parameter), ``mu`` (mean effect) and
        ``sigma`` (deviation of the effect: the parameter interacts, or its effect is not linear); by Sobol's method
        ``first`` and ``total`` (shares of the variance) with their intervals
    runs
        one row per run: the values of the parameters and the outputs
    pairs
        the Sobol indices of pairs, if asked for: ``output, first, second, index, low, high``
    level
        confidence of the intervals
    noise
        by output: up to where ``mu_star`` may be that of a parameter without effect, if the model is a function; 0 if
        it is not random
    """

    method: str
    table: Table
    runs: Table
    pairs: Table
    level: float
    noise: Mapping[str, float] = attrs.field(factory=dict)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return list(dict.fromkeys(self.table["output"].tolist()))

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters, or of their groups."""
        return list(dict.fromkeys(self.table["parameter"].tolist()))

    @property
    def index(self) -> str:
        """The column by which parameters are ranked: ``"mu_star"`` or ``"total"``."""
        return "mu_star" if self.method == "morris" else "total"

    def of(self, output: str | None = None) -> Table:
        """Return the rows of an output (default: the first one), the most influential parameter first.

        Raises
        ------
        InputError
            if there is no such output
        """
        name = self.outputs[0] if output is None else output
        if name not in self.outputs:
            raise unknown("output", name, self.outputs)
        rows = self.table.where(self.table["output"] == name)
        return rows.where(np.argsort(-rows[self.index], kind="stable"))

    def influential(self, output: str | None = None, least: float = 0.05) -> list[str]:
        """Return the parameters that move an output, by more than noise may do, the most influential first.

        Parameters
        ----------
        least
            of the effect of the most influential one (Morris), or of the variance (Sobol, total index)
        """
        rows = self.of(output)
        limit = least * (float(rows["mu_star"][0]) if self.method == "morris" else 1.0)
        noise = self.noise.get(str(rows["output"][0]), 0.0)
        return [str(name) for name in rows["parameter"][(rows[self.index] >= limit) & (rows[self.index] > noise)]]

    def summary(self, output: str | None = None) -> str:
        """Return a table of text: one line per parameter, the most influential first."""
        return "\n".join(text_table(self._cells(output)))

    plot = index_bars
    plot_effects = effects

    def _cells(self, output: str | None = None) -> Cells:
        names, found = _SHOWN[self.method], self.of(output)
        rows, least = [["", *names]], _ROUNDING * float(np.abs(found[self.index]).max())
        for row in found.rows():
            cells = []
            for name in names:
                value = 0.0 if abs(row[name]) < least else row[name]
                (text,) = texts([value])
                error = (
                    f" ± {high - row[name]:.2g}"
                    if value and np.isfinite(high := row.get(f"{name}_high", np.nan))
                    else ""
                )
                cells.append(f"{text}{error}")
            rows.append([row["parameter"], *cells])
        noise = self.noise.get(str(found["output"][0]), 0.0)
        return rows + ([["(noise)", f"<= {noise:.2g}", ""]] if noise else [])

    def __repr__(self) -> str:
        about = f"{len(self.outputs)} outputs" if len(self.outputs) > 1 else self.outputs[0]
        return (
            f"<Sensitivity of {about} to {len(self.parameters)} parameters by {self.method}: {len(self.runs):,} runs>"
        )
