"""How well a record fixes calibrated values: intervals, and the parameters that it cannot identify.

Around the best values the times of jobs are taken as linear in the parameters (as powers of those on a logarithmic
scale), from one more simulation on each side of every parameter. The jobs are drawn again and again with replacement
(the bootstrap); the best of many points near the best values under these times is the estimate of each draw. Besides,
every parameter is moved over its whole range, in simulations: where the loss is not surely worse, the record does not
distinguish these values from the best ones.

Source: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.calibration.fitting import Block, Fit, times_of
from simmodel.experiments.calibration.least_squares import QUEUES, LeastSquares, Logarithms, fine_step
from simmodel.experiments.calibration.losses import Criterion, RelativeError
from simmodel.experiments.calibration.observations import Cell, Observations, Times
from simmodel.experiments.parameters import Parameter
from simmodel.foundation.errors import SimmodelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"

__all__ = ["WORSE", "Identified", "Neighbourhood", "fitted", "identified", "possible_times", "refined", "surroundings"]

_STEP = 0.02  # of the range, to each side, for the linear times
_DRAWS, _CANDIDATES = 200, 400
_FAR = 5.0  # logarithm of the factor by which times grow at most
_WIDE = 0.5  # share of a range from which on an interval says too little
_NARROW = 0.05  # share of a range below which one says enough, however small its value
_ALIKE = 0.9  # correlation of the estimates of two parameters on a ridge
_POINTS = 10  # distinct estimates, beyond one for each parameter, below which they do not show a ridge
_NEARBY = 0.03  # of a whole number, to each side
_STAYS = 0.3  # of the errors: the change of times that counts as none
_NEAR = 0.005  # relative difference of losses that counts as none

WORSE = 1.05
"""How many times the best loss least squares may have: more is a sign that odd jobs count."""
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
        ``"identified"``, ``"flat"``: its values fit the record alike, ``"ridged"``: only together with other
        parameters, ``"several"``: values apart from each other fit as well, or ``"no interval"``: the record fixes it
        by queue times alone, of which no honest interval is known
    other
        those parameters, or those values; of a choice the choices that are as good as the best one
    together
        the sum or product of the parameters that is known, with its interval
    """

    name: str
    low: Any
    high: Any
    verdict: str
    other: str = ""
    together: str = ""

    def besides(self, parameter: Parameter, at: float, alike: Sequence[float]) -> Identified:
        """Return it with other positions that fit as well, where these are not in its interval."""
        values = [float(parameter.value(each)) for each in alike]
        values = [each for each in values if not self.low <= each <= self.high]
        if not values or self.verdict == "ridged":
            return self
        low, high = min([self.low, *values]), max([self.high, *values])
        if self.verdict == "flat":
            return attrs.evolve(self, low=low, high=high)
        best = float(parameter.value(at))
        sign = all(abs(each + best) <= 0.5 * (self.high - self.low) for each in values)
        other = "sign" if sign else " and ".join(f"{each:.4g}" for each in values)
        return attrs.evolve(self, low=low, high=high, verdict="several", other=other)

    def sentence(self, parameter: Parameter) -> str:
        """Return why the record does not fix the parameter, as a sentence; empty if it is identified."""
        if self.verdict == "identified":
            return ""
        if self.verdict == "no interval":
            return f"{self.name} has no interval: only queue times tell of it, in which jobs depend on each other"
        if self.verdict == "ridged":
            why = self.together or "one makes up for the other"
            return f"{self.name} is known only together with {self.other}: {why}"
        if self.verdict == "several":
            if self.other == "sign":
                return f"{self.name} is known only up to its sign"
            return f"{self.name} is not unique: {self.other} fits as well"
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
    """

    point: Array
    times: Times
    slopes: dict[str, Array]
    relative: NDArray[np.bool_]

    def moved_to(self, point: Array, times: Times) -> Neighbourhood:
        """Return that of another point, with its times: slopes of parameters that multiply times grow with these."""
        slopes = {}
        for name, steep in self.slopes.items():
            before, now = self.times[name], times[name]
            grown = np.divide(now, before, out=np.ones_like(now), where=(before > 0) & (now > 0))
            slopes[name] = np.where(self.relative[:, None], steep * grown, steep)
        return Neighbourhood(point, times, slopes, self.relative)


def possible_times(fit: Fit, values: Mapping[str, Any]) -> Times | None:
    """Return the times of a run with these values; ``None`` if it failed, or one is infinite."""
    try:
        found = times_of(fit, values)
        return None if any(np.isinf(times).any() for times in found.values()) else found
    except (SimmodelError, ArithmeticError, ValueError, LookupError, TypeError):
        return None


def surroundings(
    fit: Fit, parts: Sequence[Block], point: Array, run: Runner, *, fine: bool = False
) -> Neighbourhood | None:
    """Return the neighbourhood of a point; parts, which act on different jobs, are moved at once.

    With ``fine`` the steps are those of a smooth function; otherwise they are long enough for times that jump.
    """
    space = fit.varied.space
    moves: list[dict[int, float]] = []
    for turn in range(max(len(part.parameters) for part in parts)):
        for side in (-1, 1):
            moves += [{i: _moved(space.parameters[i], point[i], side, fine) for i in _turn(parts, turn)}]
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
    return Neighbourhood(point, found[0], slopes, relative)


def _turn(parts: Sequence[Block], turn: int) -> list[int]:
    return [part.parameters[turn] for part in parts if turn < len(part.parameters)]


def _moved(parameter: Parameter, at: float, side: int, fine: bool) -> float:
    """Return a position a step away; of whole numbers: that of another one; of choices: the same one."""
    if parameter.choices:
        return at
    step = fine_step(parameter, at) if fine else min(_STEP, at / 2 or _STEP)
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
        times = near.times[name][local.rows]
        steep = slopes[own][:, local.rows]
        positive = np.where(times > 0, times, 1.0)
        grown = np.exp(np.clip(away[:, relative] @ (steep[relative] / positive), -_FAR, _FAR))
        linear = away[:, relative] @ steep[relative]
        moved = np.where(times > 0, times * grown, times + linear)
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
    near = near.moved_to(best, times)
    found: dict[int, Identified] = {}
    for part in parts:
        logs = Logarithms.of(fit.observed, part)
        if logs is not None:
            squares = LeastSquares.at(logs, near.slopes, times, part.parameters)
            found.update(_by_squares(fit, part, squares, best, run, level))
    fixed = {i for i, each in found.items() if each.verdict == "identified"}
    scans = _scans(fit, parts, best, run, found)
    for number, part in enumerate(parts):
        rng = np.random.default_rng([seed, 3, number])
        local = _Local.of(fit.observed, part)
        if local is None:
            continue
        unsettled = any(i not in found for i in part.parameters)
        estimates = _estimates(fit, near, local, part, rng) if unsettled else np.zeros((0, 0))
        for column, i in enumerate(part.parameters):
            parameter = space.parameters[i]
            if i in found:
                alike = _indistinguishable(fit, local, times, scans.get(i, []), rng)
                found[i] = found[i].besides(parameter, best[i], alike)
                continue
            tail = (1 - level) / 2
            low, high = np.quantile(estimates[:, column], [tail, 1 - tail]).tolist()
            alike = _indistinguishable(fit, local, times, scans.get(i, []), rng)
            if parameter.choices:
                value, alternatives = parameter.value(best[i]), ", ".join(str(parameter.value(at)) for at in alike)
                verdict = "flat" if alike else "identified"
                found[i] = Identified(name=parameter.name, low=value, high=value, verdict=verdict, other=alternatives)
                continue
            low, high = min([low, best[i], *alike]), max([high, best[i], *alike])
            verdict, other = "identified", ""
            if _is_wide(parameter, low, best[i], high):
                others = [k for k, j in enumerate(part.parameters) if j != i and j not in fixed]
                verdict, other = _verdict(estimates, column, others, [space.names[j] for j in part.parameters])
            ends = (parameter.value(low), parameter.value(high))
            if verdict == "identified" and not QUEUES.isdisjoint(local.observed.quantities):
                verdict, ends = "no interval", (None, None)
            found[i] = Identified(name=parameter.name, low=ends[0], high=ends[1], verdict=verdict, other=other)
    return [found[i] for i in sorted(found)]


def _by_squares(
    fit: Fit, part: Block, squares: LeastSquares, best: Array, run: Runner, level: float
) -> dict[int, Identified]:
    """Return the findings on a part's parameters that walltimes reflect; with queues, on those that they fix."""
    assert fit.observed is not None
    own, parameters = list(part.parameters), _parameters(fit, part)
    queues = not QUEUES.isdisjoint(fit.observed.quantities)
    centre = best[own] + squares.step(best[own], 0.0, np.zeros(len(own), dtype=bool))
    half = squares.half_widths(level)
    low, high = np.minimum(centre - half, best[own]), np.maximum(centre + half, best[own])
    rough = [
        2 * width >= min(abs(float(parameter.value(at))) / _span(parameter, at), _WIDE)
        for parameter, at, width in zip(parameters, best[own], half.tolist(), strict=True)
    ]
    found: dict[int, Identified] = {}
    for group in [] if queues else squares.groups(half, rough):
        what = _combination(fit, part, squares, group, best, run, level)
        for column in group:
            others = " and ".join(parameters[j].name for j in group if j != column)
            ends = (parameters[column].value(low[column]), parameters[column].value(high[column]))
            found[own[column]] = Identified(
                name=parameters[column].name, low=ends[0], high=ends[1], verdict="ridged", other=others, together=what
            )
    for column, parameter in enumerate(parameters):
        if own[column] in found or parameter.choices or parameter.whole or half[column] >= 1:
            continue
        wide = _is_wide(parameter, low[column], best[own[column]], high[column])
        if not (wide and queues):
            ends = (parameter.value(low[column]), parameter.value(high[column]))
            verdict = "flat" if wide else "identified"
            found[own[column]] = Identified(name=parameter.name, low=ends[0], high=ends[1], verdict=verdict)
    return found


def _span(parameter: Parameter, at: float) -> float:
    """Return by how much the value changes with a unit of the position, at a position."""
    if parameter.scale.startswith("log"):
        return abs(float(parameter.value(at))) * log(parameter.high / parameter.low)
    return float(parameter.high - parameter.low)


def _combination(
    fit: Fit, part: Block, squares: LeastSquares, group: Sequence[int], best: Array, run: Runner, level: float
) -> str:
    """Return the sum or the product of parameters that is known, with its interval; empty if it is neither.

    Two of them are moved far along the line on which the combination stays: the times must stay, too.
    """
    parameters = [_parameters(fit, part)[column] for column in group]
    own = [part.parameters[column] for column in group]
    if any(each.choices or each.whole for each in parameters):
        return ""
    values = np.array([float(each.value(at)) for each, at in zip(parameters, best[own], strict=True)])
    spans = np.array([_span(each, at) for each, at in zip(parameters, best[own], strict=True)])
    forms: list[tuple[bool, Array, Array]] = []
    for product in (False, True) if (values > 0).all() else (False,):
        scales = spans / values if product else spans
        shares = squares.shares(group, scales)
        moved = None if shares is None else _along(parameters, values, shares, product=product)
        if shares is not None and moved is not None:
            point = best.copy()
            point[own] = [each.unit(value) for each, value in zip(parameters, moved.tolist(), strict=True)]
            forms.append((product, shares, point))
    runs = run([fit.varied.space.values(each[2]) for each in forms]) if forms else []
    away = [
        np.inf if times is None else float(np.sqrt(np.mean((squares.logs.errors(times) - squares.errors) ** 2)))
        for times in runs
    ]
    noise = float(np.sqrt(np.mean(squares.errors**2)))
    if not away or min(away) > max(_STAYS * noise, _STAYS**4):
        return ""
    product, shares, _ = forms[int(np.argmin(away))]
    one = squares.merged(group, shares * (spans / values if product else spans))
    half = float(one.half_widths(level, most=np.inf)[-1])
    value = float(np.prod(values**shares) if product else values @ shares)
    names = [each.name for each in parameters]
    text = _product(names, shares.tolist()) if product else _sum(names, shares.tolist())
    return f"{text} = {value:.4g} ± {half * (value if product else 1):.2g}"


def _along(parameters: Sequence[Parameter], values: Array, shares: Array, *, product: bool) -> Array | None:
    """Return values with the same sum or product, two of them far from these; ``None`` if their ranges do not let."""
    numbers = np.log(values) if product else values
    ends = np.array([[each.low, each.high] for each in parameters], dtype=np.float64)
    if product:
        ends = np.log(np.maximum(ends, 1e-3 * values[:, None]))
    best: tuple[float, Array] | None = None
    for i in range(len(values)):
        for j in range(len(values)):
            for side in (-1.0, 1.0) if i != j else ():
                slope = -shares[i] / shares[j]
                room_i = ends[i][1] - numbers[i] if side > 0 else numbers[i] - ends[i][0]
                room_j = (ends[j][1] - numbers[j] if side * slope > 0 else numbers[j] - ends[j][0]) / abs(slope)
                most = log(2) if product else 0.5 * float(np.abs(shares * values).sum()) / abs(shares[i])
                step = min(room_i, room_j, most)
                far = step * abs(shares[i])
                if step > 0 and (best is None or far > best[0]):
                    moved = numbers.copy()
                    moved[i] += side * step
                    moved[j] += side * step * slope
                    best = far, moved
    if best is None:
        return None
    return np.exp(best[1]) if product else best[1]


def _sum(names: Sequence[str], shares: Sequence[float]) -> str:
    """Return the text of a sum.

    >>> _sum(["pilot", "stage", "idle"], [1.0, 2.0, -1.5])
    'pilot + 2 stage - 1.5 idle'
    """
    found = ""
    for name, share in zip(names, shares, strict=True):
        sign = " - " if share < 0 else " + "
        found += (sign if found else "") + ("" if abs(share) == 1 else f"{abs(share):.2g} ") + name
    return found


def _product(names: Sequence[str], shares: Sequence[float]) -> str:
    """Return the text of a product of powers.

    >>> _product(["a", "b", "c"], [1.0, 2.0, -1.0])
    'a * b^2 / c'
    """
    found = ""
    for name, share in zip(names, shares, strict=True):
        sign = " / " if share < 0 else " * "
        found += (sign if found else "") + name + ("" if abs(share) == 1 else f"^{abs(share):.2g}")
    return found


def _is_wide(parameter: Parameter, low: float, at: float, high: float) -> bool:
    """Whether an interval of positions is half a range, or as wide as its value and not a small part of the range."""
    low, high = max(low, 0.0), min(high, 1.0)
    ends = [float(parameter.value(each)) for each in (low, at, high)]
    return high - low >= _WIDE or (high - low >= _NARROW and ends[2] - ends[0] > abs(ends[1]))


def fitted(fit: Fit, parts: Sequence[Block], near: Neighbourhood, run: Runner, searched: Times) -> tuple[Array, Times]:
    """Return the least-squares point of the jobs' own times, where that is better, and its times.

    Values that walltimes determine are fitted to logarithms of walltimes, more precisely than by any mean of errors or
    by queues, in which a late job delays the next ones. Values that other losses are asked for stay, and so do
    those of walltimes if odd jobs make their loss much larger than that of the times that the search found.
    """
    assert fit.observed is not None
    alone = QUEUES.isdisjoint(fit.observed.quantities)
    if alone and not decides(fit):
        return near.point, near.times
    logs = [Logarithms.of(fit.observed, part) for part in parts]
    proposed = near.point.copy()
    weighed: list[tuple[Logarithms, LeastSquares] | None] = []
    for part, each in zip(parts, logs, strict=True):
        own = list(part.parameters)
        found = None if each is None else LeastSquares.at(each, near.slopes, near.times, own)
        if each is not None and found is not None:
            whole = [bool(parameter.whole or parameter.choices) for parameter in _parameters(fit, part)]
            unknown = found.half_widths(0.95) >= 1
            proposed[own] += found.step(proposed[own], 0.0, np.array(whole) | unknown)
        weighed.append(None if each is None or found is None else (each, found))
    [times] = run([fit.varied.space.values(proposed)])
    point, kept = near.point.copy(), {name: values.copy() for name, values in near.times.items()}
    for part, both in zip(parts, weighed, strict=True):
        if times is None or both is None:
            continue
        own_logs, squares = both
        old, new = (float(((own_logs.errors(each) * squares.weights) ** 2).sum()) for each in (near.times, times))
        if new < old and (not alone or _loss_in(fit, part, times) < WORSE * _loss_in(fit, part, searched)):
            point[list(part.parameters)] = proposed[list(part.parameters)]
            rows = _rows(fit.observed, part)
            for name in kept:
                kept[name][rows] = times[name][rows]
    return point, kept


def decides(fit: Fit) -> bool:
    """Whether least squares decide on the values: if walltimes alone are asked for, in the mean."""
    losses = [] if fit.criterion is None else list(fit.criterion.losses.values())
    plain = [isinstance(each, RelativeError) and each.average == "sums" for each in losses]
    return bool(plain) and all(plain) and all(each.quantity == "walltime" for each in losses)


def _loss_in(fit: Fit, part: Block, times: Times) -> float:
    losses = fit.losses(times)
    return losses[part.label] if part.label in losses else losses["loss"]


def _parameters(fit: Fit, part: Block) -> list[Parameter]:
    return [fit.varied.space.parameters[i] for i in part.parameters]


def _estimates(fit: Fit, near: Neighbourhood, local: _Local, part: Block, rng: np.random.Generator) -> Array:
    """Return the best point of a part for each draw of its jobs."""
    assert fit.criterion is not None
    points = _cloud(near, local, part, rng)
    logs = local.logs(fit.criterion, _linear(near, local, part, points), local.drawn(rng))
    logs += 1e-9 * rng.random(logs.shape)  # ties of points that a parameter without any effect tells apart
    return np.asarray(points[np.argmin(logs, axis=1)])


def _verdict(estimates: Array, column: int, others: Sequence[int], names: Sequence[str]) -> tuple[str, str]:
    """Return that a parameter is not known, or with which others if only a combination of them is.

    It is known only together with others if they explain nearly all of the variance of its estimates: then a
    combination of them is known far better than each alone, whatever the ranges are. A few distinct estimates lie on a
    line whatever the record is.

    >>> along = np.linspace(0, 1, 200)
    >>> _verdict(np.column_stack([along, 1 - along]), 0, [1], ["pilot", "stage"])
    ('ridged', 'stage')
    >>> _verdict(np.repeat([[0.1, 0.3], [0.7, 0.2]], 100, axis=0), 0, [1], ["pilot", "stage"])
    ('flat', '')
    """
    away = estimates - estimates.mean(axis=0)
    several = [len(np.unique(each)) >= len(names) + _POINTS for each in estimates.T]
    varying = [other for other in others if several[other]]
    if varying and several[column]:
        slopes = np.linalg.lstsq(away[:, varying], away[:, column], rcond=None)[0]
        left = away[:, column] - away[:, varying] @ slopes
        if float((left**2).mean()) < (1 - _ALIKE**2) * float((away[:, column] ** 2).mean()):
            shares = np.abs(slopes) * away[:, varying].std(axis=0)
            strong = [names[other] for other, share in zip(varying, shares, strict=True) if share > 0.3 * shares.max()]
            return "ridged", " and ".join(strong)
    return "flat", ""


def _scans(
    fit: Fit, parts: Sequence[Block], best: Array, run: Runner, settled: Container[int]
) -> dict[int, list[tuple[float, Times]]]:
    """Return the times with each parameter moved over its range, the others at their best: by parameter, position.

    Of those that are settled, only the mirror image is looked at.
    """
    space = fit.varied.space
    moves: list[dict[int, float]] = []
    for turn in range(max(len(part.parameters) for part in parts)):
        wanted = {i: _positions(space.parameters[i], best[i], i in settled) for i in _turn(parts, turn)}
        for step in range(max((len(each) for each in wanted.values()), default=0)):
            moves += [{i: each[step] for i, each in wanted.items() if step < len(each)}]
    found: dict[int, list[tuple[float, Times]]] = {}
    runs = run([space.values(_replaced(best, move)) for move in moves])
    for move, times in zip(moves, runs, strict=True):
        for i, at in move.items():
            if times is not None:
                found.setdefault(i, []).append((at, times))
    return found


def _positions(parameter: Parameter, at: float, settled: bool) -> list[float]:
    if parameter.choices:
        return [parameter.unit(each) for each in parameter.choices if each != parameter.value(at)]
    wanted = [] if settled else [0.0, at / 2, (1 + at) / 2, 1.0]
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
