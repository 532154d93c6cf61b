"""How well a record fixes calibrated values: intervals, and the parameters that it cannot identify.

Around the best values the times of jobs are taken as linear in the parameters (as powers of those on a logarithmic
scale), from one more simulation on each side of every parameter. The jobs are drawn again and again with replacement
(the bootstrap); the best of many points near the best values under these times is the estimate of each draw. Besides,
every parameter is moved over its whole range, in simulations: where the loss is not surely worse, the record does not
tell these values from the best ones.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.errors import SimmodelError
from simmodel.experiments.fitting import Block, Fit, times_of
from simmodel.experiments.losses import Criterion
from simmodel.experiments.observations import Cell, Observations, Times
from simmodel.experiments.parameters import Parameter
from simmodel.metrics.statistics import t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"

__all__ = ["Identified", "Neighbourhood", "fitted", "identified", "possible_times", "refined", "surroundings"]

_STEP = 0.02  # of the range, to each side, for the linear times
_DRAWS, _CANDIDATES = 200, 400
_FAR = 5.0  # logarithm of the factor by which times grow at most
_WIDE = 0.5  # share of a range from which on an interval says too little
_ALIKE = 0.9  # correlation of the estimates of two parameters on a ridge
_NEARBY = 0.03  # of a whole number, to each side
_NEAR = 0.005  # relative difference of losses that counts as none

Runner: TypeAlias = "Callable[[Sequence[Mapping[str, Any]]], list[Times | None]]"
"""Runs the model with several values and returns the times of each run; ``None`` if it failed."""


@attrs.frozen(kw_only=True)
class Identified:
    """How well a record fixes a parameter.

    Parameters
    ----------
    name
        the parameter
    low, high
        the interval of its value; of a choice twice the best one
    verdict
        ``"identified"``, ``"flat"``: the record does not tell its values apart, ``"ridged"``: only together with other
        parameters, or ``"no interval"``: the record tells it by queue times alone, of which no honest interval is known
    other
        those parameters; of a choice the choices that are as good as the best one
    """

    name: str
    low: Any
    high: Any
    verdict: str
    other: str = ""

    def sentence(self, parameter: Parameter) -> str:
        """Return what the record does not say of it; empty if it is identified."""
        if self.verdict == "identified":
            return ""
        if self.verdict == "no interval":
            return f"{self.name} has no interval: only queue times tell of it, in which jobs depend on each other"
        if self.verdict == "ridged":
            return f"{self.name} is known only together with {self.other}: one makes up for the other"
        if parameter.choices:
            return f"{self.name} is not identifiable: the record does not tell {self.low} from {self.other}"
        values = f"{_text(self.low)} to {_text(self.high)}"
        return f"{self.name} is not identifiable: the record does not tell its values from {values} apart"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@attrs.frozen(eq=False)
class Neighbourhood:
    """The times of jobs around a point: with its values, and how they change with each parameter.

    Parameters
    ----------
    point
        the point of the unit cube
    times
        its times
    slopes
        by quantity, the change of the times by a unit of each parameter: one row per parameter
    relative
        which parameters multiply the times: those on a logarithmic scale
    base
        the times at the point of the slopes
    """

    point: Array
    times: Times
    slopes: dict[str, Array]
    relative: NDArray[np.bool_]
    base: Times


def possible_times(fit: Fit, values: Mapping[str, Any]) -> Times | None:
    """Return the times of a run with these values; ``None`` if it failed."""
    try:
        return times_of(fit, values)
    except (SimmodelError, ArithmeticError, ValueError, LookupError, TypeError):
        return None


def surroundings(fit: Fit, parts: Sequence[Block], point: Array, run: Runner) -> Neighbourhood | None:
    """Return the neighbourhood of a point; parts, which act on different jobs, are moved at once."""
    space = fit.varied.space
    moves: list[dict[int, float]] = []
    for turn in range(max(len(part.parameters) for part in parts)):
        for side in (-1, 1):
            moves += [{i: _moved(space.parameters[i], point[i], side) for i in _turn(parts, turn)}]
    points = [point, *(_replaced(point, move) for move in moves)]
    found = run([space.values(each) for each in points])
    if found[0] is None or any(each is None for each in found):
        return None
    assert fit.observed is not None
    count = len(fit.observed.jobs)
    slopes = {name: np.zeros((len(space), count)) for name in fit.observed.quantities}
    for number in range(0, len(moves), 2):
        below, above = found[number + 1], found[number + 2]
        assert below is not None
        assert above is not None
        for part in parts:
            here = _rows(fit.observed, part)
            for i in set(part.parameters) & set(moves[number]):
                apart = moves[number + 1][i] - moves[number][i]
                for name in slopes if apart else ():
                    slopes[name][i, here] = (above[name][here] - below[name][here]) / apart
    relative = np.array([each.scale.startswith("log") for each in space.parameters])
    return Neighbourhood(point, found[0], slopes, relative, found[0])


def _turn(parts: Sequence[Block], turn: int) -> list[int]:
    return [part.parameters[turn] for part in parts if turn < len(part.parameters)]


def _moved(parameter: Parameter, at: float, side: int) -> float:
    """Return a position a step away; of whole numbers: that of another one; of choices: the same one."""
    if parameter.choices:
        return at
    step = _STEP
    if parameter.whole:
        value = parameter.value(at)
        near = min(max(value + side * max(1, round(0.02 * value)), parameter.low), parameter.high)
        return parameter.unit(near)
    return min(max(at + side * step, 0.0), 1.0)


def _replaced(point: Array, move: Mapping[int, float]) -> Array:
    found = point.copy()
    for i, at in move.items():
        found[i] = at
    return found


def _rows(observed: Observations, part: Block) -> NDArray[np.intp]:
    if not part.sites:
        return np.arange(len(observed.jobs))
    return np.flatnonzero(np.isin(observed.jobs["site"], sorted(part.sites)))


def _cells(observed: Observations, part: Block) -> list[Cell]:
    return [cell for cell in observed.training if not part.sites or cell.site in part.sites]


@attrs.frozen(eq=False)
class _Local:
    """The cells of a part, with their jobs alone."""

    cells: list[Cell]
    observed: Observations
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, observed: Observations, part: Block) -> _Local | None:
        cells = _cells(observed, part)
        if not cells:
            return None
        rows = np.concatenate([cell.rows for cell in cells])
        ends = np.cumsum([len(cell.rows) for cell in cells])
        local = [
            Cell(cell.site, cell.kind, np.arange(end - len(cell.rows), end))
            for cell, end in zip(cells, ends.tolist(), strict=True)
        ]
        return cls(local, attrs.evolve(observed, jobs=observed.jobs.where(rows)), rows)

    def logs(self, criterion: Criterion, times: Mapping[str, Array], picks: list[NDArray[np.intp]]) -> Array:
        """Return the logarithm of the loss for each choice of jobs (rows) and each row of times (columns)."""
        return criterion.resampled(times, self.observed, self.cells, picks)

    def everything(self) -> list[NDArray[np.intp]]:
        """Return one choice of jobs: each once."""
        return [np.arange(len(cell.rows))[None] for cell in self.cells]

    def drawn(self, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Return choices of jobs with replacement."""
        return [rng.integers(len(cell.rows), size=(_DRAWS, len(cell.rows))) for cell in self.cells]


def _cloud(near: Neighbourhood, local: _Local, part: Block, rng: np.random.Generator, *, wide: bool = False) -> Array:
    """Return points of a part around the best one, as far apart as the jobs leave them uncertain.

    With ``wide`` some are much farther, each direction by itself: the best trial may be right in one of them alone.
    """
    size = len(part.parameters)
    information = np.full((size, size), 0.0)
    for cell in local.cells:
        rows = local.rows[cell.rows]
        for name, slopes in near.slopes.items():
            away = near.times[name][rows] - local.observed.jobs[name][cell.rows]
            scale = max(float(np.sqrt(np.mean(away**2))), 1e-9 * float(np.abs(near.times[name][rows]).max()), 1e-300)
            steep = slopes[list(part.parameters)][:, rows] / scale
            information += steep @ steep.T
    values, vectors = np.linalg.eigh(information)
    spread = 1 / np.sqrt(np.maximum(values, 1.0))
    steps = rng.standard_normal((20 * _CANDIDATES, size))
    if wide:
        reach = np.minimum(rng.choice([0.1, 1, 10, 100], steps.shape) * spread, _WIDE)
    else:
        reach = rng.choice([0.3, 1, 3], (len(steps), 1)) * spread
    best = near.point[list(part.parameters)]
    points = best + (steps * reach) @ vectors.T
    inside = points[((points >= 0) & (points <= 1)).all(axis=1)][:_CANDIDATES]
    if len(inside) < _CANDIDATES // 4:
        inside = np.clip(points[:_CANDIDATES], 0, 1)
    return np.vstack([best, inside])


def _linear(near: Neighbourhood, local: _Local, part: Block, points: Array) -> dict[str, Array]:
    """Return the times of a part's jobs at several points: linear in the parameters, or in their logarithms."""
    own = np.array(part.parameters)
    away, relative = points - near.point[own], near.relative[own]
    found = {}
    for name, slopes in near.slopes.items():
        times, base = near.times[name][local.rows], near.base[name][local.rows]
        steep = slopes[own][:, local.rows]
        positive = np.where(base > 0, base, 1.0)
        grown = np.exp(np.clip(away[:, relative] @ (steep[relative] / positive), -_FAR, _FAR))
        linear = away[:, relative] @ steep[relative]
        moved = np.where((base > 0) & (times > 0), times * grown, times + linear)
        found[name] = moved + away[:, ~relative] @ steep[~relative]
    return found


def refined(fit: Fit, parts: Sequence[Block], near: Neighbourhood, run: Runner, seed: int) -> tuple[Array, Times]:
    """Return a point that is better than the best trial, if the linear times lead to one, and its times."""
    assert fit.criterion is not None
    assert fit.observed is not None
    proposed = near.point.copy()
    locals_ = [_Local.of(fit.observed, part) for part in parts]
    for number, (part, local) in enumerate(zip(parts, locals_, strict=True)):
        if local is not None:
            points = _cloud(near, local, part, np.random.default_rng([seed, 2, number]), wide=True)
            logs = local.logs(fit.criterion, _linear(near, local, part, points), local.everything())
            proposed[list(part.parameters)] = points[int(np.argmin(logs[0]))]
    proposed = fit.varied.space.point(fit.varied.space.values(proposed))
    [times] = run([fit.varied.space.values(proposed)])
    if times is None:
        return near.point, near.times
    point, kept = near.point.copy(), {name: values.copy() for name, values in near.times.items()}
    for part, local in zip(parts, locals_, strict=True):
        if local is None:
            continue
        both = {name: np.stack([near.times[name][local.rows], times[name][local.rows]]) for name in near.times}
        old, new = local.logs(fit.criterion, both, local.everything())[0]
        if new < old:
            point[list(part.parameters)] = proposed[list(part.parameters)]
            rows = _rows(fit.observed, part)
            for name in kept:
                kept[name][rows] = times[name][rows]
    return point, kept


def identified(
    fit: Fit,
    parts: Sequence[Block],
    near: Neighbourhood,
    best: Array,
    times: Times,
    run: Runner,
    *,
    seed: int,
    level: float,
) -> list[Identified]:
    """Return how well the record fixes each parameter.

    Parameters
    ----------
    near
        the times around the best trial
    best, times
        the best point, and its times
    level
        the confidence of the intervals
    """
    assert fit.observed is not None
    space = fit.varied.space
    scans = _scans(fit, parts, best, run)
    near = attrs.evolve(near, point=best, times=times)
    found: dict[int, Identified] = {}
    for number, part in enumerate(parts):
        rng = np.random.default_rng([seed, 3, number])
        local = _Local.of(fit.observed, part)
        if local is None:
            continue
        estimates = _estimates(fit, near, local, part, rng)
        squares = _LeastSquares.of(near, local, part)
        for column, i in enumerate(part.parameters):
            parameter = space.parameters[i]
            tail = (1 - level) / 2
            low, high = np.quantile(estimates[:, column], [tail, 1 - tail]).tolist()
            alone = squares is not None and bool(squares.known[column])
            if squares is not None and alone:
                centre, half = best[i] + squares.step[column], squares.half_widths(level)[column]
                low, high = centre - half, centre + half
            alike = _indistinguishable(fit, local, times, scans.get(i, []), rng)
            if parameter.choices:
                value, others = parameter.value(best[i]), ", ".join(str(parameter.value(at)) for at in alike)
                verdict = "flat" if alike else "identified"
                found[i] = Identified(name=parameter.name, low=value, high=value, verdict=verdict, other=others)
                continue
            low, high = min([low, best[i], *alike]), max([high, best[i], *alike])
            names = [space.names[j] for j in part.parameters]
            values = [float(parameter.value(at)) for at in (low, best[i], high)]
            wide = high - low >= _WIDE or values[2] - values[0] > abs(values[1])
            verdict, other = _verdict(estimates, column, wide, names)
            low, high = max(low, 0.0), min(high, 1.0)
            ends = (parameter.value(low), parameter.value(high))
            if verdict == "identified" and not alone and not _QUEUES.isdisjoint(local.observed.quantities):
                verdict, ends = "no interval", (None, None)
            found[i] = Identified(name=parameter.name, low=ends[0], high=ends[1], verdict=verdict, other=other)
    return [found[i] for i in sorted(found)]


_QUEUES = frozenset(("queue_time", "start"))  # quantities in which jobs depend on each other
_BLOCKS = 12  # of jobs in order of time, between which errors may vary together
_SINGULAR = 1e-6  # of the largest singular value: below, a direction is not determined


@attrs.frozen(eq=False)
class _LeastSquares:
    """The least squares of the logarithms of what jobs have by themselves, linear around a point.

    Parameters
    ----------
    step
        from the point to it, by parameter of the part, in the unit cube
    known
        which parameters these quantities determine
    left, inverse
        the errors that it leaves, one per job and quantity, and the pseudo-inverse of the slopes
    block
        the block of jobs in order of time of each error
    """

    step: Array
    known: NDArray[np.bool_]
    left: Array
    inverse: Array
    block: NDArray[np.intp]

    @classmethod
    def of(cls, near: Neighbourhood, local: _Local, part: Block) -> _LeastSquares | None:
        """Return that of a part; ``None`` if there are only queue times, or too few jobs."""
        own = list(part.parameters)
        slopes, errors, blocks = [], [], []
        for cell in local.cells:
            rows = local.rows[cell.rows]
            order = np.arange(len(rows)) * _BLOCKS // max(len(rows), 1)
            for name in near.slopes:
                times, recorded = near.times[name][rows], local.observed.jobs[name][cell.rows]
                positive = (times > 0) & (recorded > 0)
                if name not in _QUEUES and positive.any():
                    slopes.append((near.slopes[name][own][:, rows[positive]] / times[positive]).T)
                    errors.append(np.log(recorded[positive] / times[positive]))
                    blocks.append(order[positive])
        if sum(map(len, errors)) <= len(own):
            return None
        jacobian, error = np.concatenate(slopes), np.concatenate(errors)
        _, singular, right = np.linalg.svd(jacobian, full_matrices=True)
        rank = int((singular > _SINGULAR * singular.max()).sum()) if singular.max() > 0 else 0
        inverse = np.linalg.pinv(jacobian, rcond=_SINGULAR)
        step = inverse @ error
        known = np.abs(right[rank:]).max(axis=0, initial=0.0) < 1e-3
        left = np.asarray(error - jacobian @ step, dtype=np.float64)
        return cls(step, known, left, np.asarray(inverse, dtype=np.float64), np.concatenate(blocks))

    def half_widths(self, level: float) -> Array:
        """Return half the width of each interval: for independent jobs, or for blocks of them, whichever is larger."""
        count, size = len(self.left), len(self.step)
        effects = self.left[:, None] * self.inverse.T
        blocks = np.stack([effects[self.block == each].sum(axis=0) for each in range(_BLOCKS)])
        alone = np.sqrt((effects**2).sum(axis=0) * count / (count - size)) * t_quantile((1 + level) / 2, count - size)
        together = np.sqrt((blocks**2).sum(axis=0) * _BLOCKS / (_BLOCKS - 1)) * t_quantile((1 + level) / 2, _BLOCKS - 1)
        return np.asarray(np.maximum(alone, together), dtype=np.float64)


def fitted(fit: Fit, parts: Sequence[Block], near: Neighbourhood, run: Runner) -> tuple[Array, Times]:
    """Return the point of the least squares of what jobs have by themselves, where that is better, and its times.

    Where queue times are observed, too, what walltimes determine is asked of walltimes: queues, in which a late job
    delays the next ones, say less of it. Otherwise the best values are those of the loss.
    """
    assert fit.observed is not None
    if _QUEUES.isdisjoint(fit.observed.quantities):
        return near.point, near.times
    locals_ = [_Local.of(fit.observed, part) for part in parts]
    proposed = near.point.copy()
    before: list[float | None] = []
    for part, local in zip(parts, locals_, strict=True):
        found = None if local is None else _LeastSquares.of(near, local, part)
        own = list(part.parameters)
        if found is not None:
            whole = [bool(parameter.whole or parameter.choices) for parameter in _parameters(fit, part)]
            moved = np.where(found.known & ~np.array(whole), proposed[own] + found.step, proposed[own])
            proposed[own] = np.clip(moved, 0.0, 1.0)
        before.append(None if local is None else _squares(near.times, local))
    [times] = run([fit.varied.space.values(proposed)])
    point, kept = near.point.copy(), {name: values.copy() for name, values in near.times.items()}
    for part, local, old in zip(parts, locals_, before, strict=True):
        if times is not None and local is not None and old is not None and (_squares(times, local) or 0.0) < old:
            point[list(part.parameters)] = proposed[list(part.parameters)]
            rows = _rows(fit.observed, part)
            for name in kept:
                kept[name][rows] = times[name][rows]
    return point, kept


def _parameters(fit: Fit, part: Block) -> list[Parameter]:
    return [fit.varied.space.parameters[i] for i in part.parameters]


def _squares(times: Times, local: _Local) -> float | None:
    """Return the sum of squares of the logarithms of what jobs have by themselves; ``None`` if there is nothing."""
    found = []
    for cell in local.cells:
        for name in local.observed.quantities:
            if name not in _QUEUES:
                simulated, recorded = times[name][local.rows[cell.rows]], local.observed.jobs[name][cell.rows]
                positive = (simulated > 0) & (recorded > 0)
                found.append(float((np.log(recorded[positive] / simulated[positive]) ** 2).sum()))
    return sum(found) if found else None


def _estimates(fit: Fit, near: Neighbourhood, local: _Local, part: Block, rng: np.random.Generator) -> Array:
    """Return the best point of a part for each draw of its jobs."""
    assert fit.criterion is not None
    points = _cloud(near, local, part, rng)
    logs = local.logs(fit.criterion, _linear(near, local, part, points), local.drawn(rng))
    logs += 1e-9 * rng.random(logs.shape)  # ties of points that a parameter without any effect tells apart
    return np.asarray(points[np.argmin(logs, axis=1)])


def _verdict(estimates: Array, column: int, wide: bool, names: Sequence[str]) -> tuple[str, str]:
    """Return whether a parameter is known, and with which others if only a combination of them is.

    It is known only together with others if they explain nearly all of the variance of its estimates: then a
    combination of them is known far better than each alone, whatever the ranges are.
    """
    if not wide:
        return "identified", ""
    away = estimates - estimates.mean(axis=0)
    varying = [other for other in range(len(names)) if other != column and away[:, other].any()]
    variance = float((away[:, column] ** 2).mean())
    if varying and variance > 0:
        slopes = np.linalg.lstsq(away[:, varying], away[:, column], rcond=None)[0]
        left = away[:, column] - away[:, varying] @ slopes
        if float((left**2).mean()) < (1 - _ALIKE**2) * variance:
            shares = np.abs(slopes) * away[:, varying].std(axis=0)
            strong = [names[other] for other, share in zip(varying, shares, strict=True) if share > 0.3 * shares.max()]
            return "ridged", " and ".join(strong)
    return "flat", ""


def _scans(fit: Fit, parts: Sequence[Block], best: Array, run: Runner) -> dict[int, list[tuple[float, Times]]]:
    """Return the times with each parameter moved over its range, the others at their best: by parameter, position."""
    space = fit.varied.space
    moves: list[dict[int, float]] = []
    for turn in range(max(len(part.parameters) for part in parts)):
        wanted = {i: _positions(space.parameters[i], best[i]) for i in _turn(parts, turn)}
        for step in range(max(len(each) for each in wanted.values())):
            moves += [{i: each[step] for i, each in wanted.items() if step < len(each)}]
    found: dict[int, list[tuple[float, Times]]] = {}
    runs = run([space.values(_replaced(best, move)) for move in moves])
    for move, times in zip(moves, runs, strict=True):
        for i, at in move.items():
            if times is not None:
                found.setdefault(i, []).append((at, times))
    return found


def _positions(parameter: Parameter, at: float) -> list[float]:
    if parameter.choices:
        return [parameter.unit(each) for each in parameter.choices if each != parameter.value(at)]
    wanted = [0.0, at / 2, (1 + at) / 2, 1.0]
    if parameter.low < 0 < parameter.high and parameter.holds(-parameter.value(at)):
        wanted.append(parameter.unit(-parameter.value(at)))  # its mirror image
    if parameter.whole:  # whose effect may jump: values nearby tell how wide the interval is at least
        near = max(1, round(_NEARBY * parameter.value(at)))
        values = [parameter.value(at) + side * near for side in (-1, 1)]
        wanted += [parameter.unit(value) for value in values if parameter.holds(value)]
    others = {parameter.value(each): each for each in wanted if parameter.value(each) != parameter.value(at)}
    return list(others.values())


def _indistinguishable(
    fit: Fit, local: _Local, times: Times, scan: Sequence[tuple[float, Times]], rng: np.random.Generator
) -> list[float]:
    """Return the positions of a scan at which the loss is not surely worse than the best."""
    assert fit.criterion is not None
    if not scan:
        return []
    rows = {name: np.stack([times[name], *(each[name] for _, each in scan)])[:, local.rows] for name in times}
    logs = local.logs(fit.criterion, rows, local.drawn(rng))
    worse = logs[:, 1:] - logs[:, :1]
    alike = (np.quantile(worse, 0.05, axis=0) <= 0) | (np.median(worse, axis=0) < _NEAR)
    return [at for (at, _), same in zip(scan, alike.tolist(), strict=True) if same]
