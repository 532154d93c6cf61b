"""Least squares of logarithms of a job's own times, such as walltimes: values, intervals, combinations.

Errors of walltimes are factors: their logarithms are alike for short and long jobs. Errors far out count less (Huber's
weights), so that odd jobs do not decide. Queue times are left out: in them one late job delays the next ones.

Source: P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35(1), 1964;
D. W. Marquardt, "An algorithm for least-squares estimation of nonlinear parameters", SIAM Journal 11(2), 1963.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.calibration.fitting import Block
from simmodel.experiments.calibration.observations import Observations, Times
from simmodel.experiments.parameters import Parameter
from simmodel.metrics.statistics import t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"

__all__ = [
    "QUEUES",
    "Descent",
    "LeastSquares",
    "Logarithms",
    "descended",
    "fine_step",
    "left_plateau",
    "polished",
    "spread",
]

QUEUES = frozenset(("queue_time", "start", "end"))
"""Quantities in which jobs depend on each other."""
_BLOCKS = 12  # of jobs in order of time, between which errors may vary together
_TOGETHER = 1.3  # times the deviation of independent rows, from which on blocks of rows are alike
_SINGULAR = 1e-5  # of the largest singular value: below, a direction is not determined
_FAR = 2.0  # standard deviations from which on an error counts less
_LEAST = 1e-3  # of a recorded time: simulated ones below count as this
_EXACT = 1e-9  # logarithm that counts as no error
_ALONE = 0.1  # degrees of freedom that a row leaves below which it decides alone
_FINE = 1e-4  # share of a value that slopes are measured over
_DAMPED, _SETTLED = 1e-3, 1e-7  # the first damping, and the relative gain that is none
_STEPS = 3  # with Huber's weights
_LITTLE = 0.05  # half width of an interval, in the unit cube, from which on a parameter has little effect
_PLACES = 8  # of a parameter without effect, on a linear and on a logarithmic scale


@attrs.frozen(eq=False)
class Logarithms:
    """The logarithms of the recorded times of the jobs of a block of parameters: one row per job and quantity.

    Parameters
    ----------
    names, jobs
        by part: the quantity, and the numbers of its jobs in the record
    recorded
        the logarithms
    group
        the number of the site and quantity of each row, which has a variance of its own
    block
        the block of each row in the order of the record
    """

    names: tuple[str, ...]
    jobs: tuple[NDArray[np.intp], ...]
    recorded: Array
    group: NDArray[np.intp]
    block: NDArray[np.intp]

    @classmethod
    def of(cls, observed: Observations, part: Block) -> Logarithms | None:
        """Return those of the jobs that are not held out; ``None`` with queue times only, or too few jobs."""
        names, jobs, logs, groups, blocks = [], [], [], [], []
        numbers: dict[tuple[str, str], int] = {}
        for cell in observed.training:
            if part.sites and cell.site not in part.sites:
                continue
            order = np.arange(len(cell.rows)) * _BLOCKS // max(len(cell.rows), 1)
            for name in observed.quantities:
                positive = observed.jobs[name][cell.rows] > 0
                if name not in QUEUES and positive.any():
                    names.append(name)
                    jobs.append(cell.rows[positive])
                    logs.append(np.log(observed.jobs[name][jobs[-1]]))
                    number = numbers.setdefault((cell.site, name), len(numbers))
                    groups.append(np.full(len(logs[-1]), number))
                    blocks.append(order[positive])
        if sum(map(len, logs)) <= len(part.parameters):
            return None
        return cls(tuple(names), tuple(jobs), *(np.concatenate(each) for each in (logs, groups, blocks)))

    def errors(self, times: Times) -> Array:
        """Return the logarithm of recorded over simulated times."""
        found = np.concatenate([times[name][rows] for name, rows in zip(self.names, self.jobs, strict=True)])
        return np.asarray(self.recorded - np.log(np.maximum(found, _LEAST * np.exp(self.recorded))), dtype=np.float64)

    def slopes(self, slopes: Mapping[str, Array], times: Times, own: Sequence[int]) -> Array:
        """Return the slopes of the logarithms of simulated times: one column per parameter of the block."""
        found = []
        for name, rows in zip(self.names, self.jobs, strict=True):
            base = times[name][rows]
            steep = slopes[name][list(own)][:, rows]
            found.append((steep / np.where(base > 0, base, np.inf)).T)
        return np.concatenate(found)

    def weights(self, errors: Array) -> tuple[Array, Array]:
        """Return the inverse of each row's deviation, that of its group, and its weight: less than 1 if far out."""
        scales = np.empty(len(errors))
        for number in range(int(self.group.max()) + 1):
            here = self.group == number
            scales[here] = 1.4826 * np.median(np.abs(errors[here]))
        scales = np.maximum(scales, max(0.05 * float(scales.max()), _EXACT))
        return 1 / scales, 1 / np.maximum(np.abs(errors) / scales / _FAR, 1.0)


def _inverse(slopes: Array) -> tuple[Array, Array]:
    """Return the pseudo-inverse, and how far slopes leave each parameter undetermined, from 0 to 1.

    Each parameter is measured by the change that it makes, so that their ranges do not count.
    """
    norms = np.linalg.norm(slopes, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    left, singular, right = np.linalg.svd(slopes / norms, full_matrices=False)
    known = singular > _SINGULAR * max(float(singular[0]), 1e-300)
    inverse = (right[known].T / singular[known]) @ left[:, known].T / norms[:, None]
    loose = np.sqrt((right[~known] ** 2).sum(axis=0)) if not known.all() else np.zeros(len(norms))
    return np.asarray(inverse, dtype=np.float64), np.asarray(loose, dtype=np.float64)


@attrs.frozen(eq=False)
class LeastSquares:
    """The least squares of a block of parameters, linear around a point.

    Parameters
    ----------
    logs
        the recorded times
    slopes
        by row and parameter, in the unit cube
    errors
        by row, those that the point leaves
    weights, counts
        by row: the root of its weight in the sum of squares, and its Huber weight
    """

    logs: Logarithms
    slopes: Array
    errors: Array
    weights: Array
    counts: Array

    @classmethod
    def at(
        cls, logs: Logarithms, slopes: Mapping[str, Array], times: Times, own: Sequence[int], *, plain: bool = False
    ) -> LeastSquares:
        """Return the least squares around the point of these times.

        With ``plain`` all rows weigh the same: far from the best point, all errors are far out.
        """
        errors = logs.errors(times)
        weights, counts = (np.ones(len(errors)),) * 2 if plain else logs.weights(errors)
        return cls(logs, logs.slopes(slopes, times, own), errors, weights * np.sqrt(counts), counts)

    def step(self, at: Array, damping: float, fixed: NDArray[np.bool_]) -> Array:
        """Return the step from a point of the unit cube to a better one, which stays in the cube.

        Parameters
        ----------
        damping
            of Marquardt: 0 is the whole step
        fixed
            the parameters that are not moved
        """
        slopes, errors = self.slopes * self.weights[:, None], self.errors * self.weights
        free, found = ~fixed, np.zeros(len(at))
        for _ in range(len(at)):
            if not free.any():
                return found
            steep = slopes[:, free]
            norm = np.sqrt(damping * (steep**2).sum(axis=0))
            inverse, _ = _inverse(np.vstack([steep, np.diag(norm)]) if damping else steep)
            found = np.zeros(len(at))
            found[free] = inverse[:, : len(errors)] @ errors
            out = free & (((at <= 0) & (found < 0)) | ((at >= 1) & (found > 0)))
            if not out.any():
                break
            free &= ~out
        return np.asarray(np.clip(at + found, 0.0, 1.0) - at, dtype=np.float64)

    @property
    def effects(self) -> Array:
        """How the error of each row moves the estimates: one row per parameter.

        Errors are those of a row that the fit does not follow; of a row that decides alone, nothing is known.
        """
        slopes = self.slopes * self.weights[:, None]
        inverse, _ = _inverse(slopes)
        freedom = 1 - np.einsum("ij,ji->i", slopes, inverse)
        errors = np.where(freedom > _ALONE, self.errors / np.sqrt(np.maximum(freedom, _ALONE)), 1.0)
        stiff = self.counts.mean() / max(float((self.counts == 1).mean()), 0.5)  # errors far out hold less than that
        return np.asarray(inverse * (self.weights * errors) * stiff, dtype=np.float64)

    def half_widths(self, level: float, *, most: float = 1.0) -> Array:
        """Return half the width of each parameter's interval, by default at most 1: the whole unit.

        It is that of independent rows, or that of blocks of rows where their sums differ by more than these explain.
        """
        effects = self.effects
        count, size = len(self.errors), len(effects)
        blocks = np.stack([effects[:, self.logs.block == each].sum(axis=1) for each in range(_BLOCKS)])
        alone = np.sqrt((effects**2).sum(axis=1))
        together = np.sqrt((blocks**2).sum(axis=0) * _BLOCKS / (_BLOCKS - 1))
        upper = (1 + level) / 2
        half = np.where(
            together > _TOGETHER * alone,
            together * t_quantile(upper, _BLOCKS - 1),
            alone * t_quantile(upper, count - size),
        )
        _, loose = _inverse(self.slopes * self.weights[:, None])
        return np.asarray(np.minimum(np.where(loose > 1e-3, most, half), most))

    def alone(self, column: int) -> LeastSquares:
        """Return the least squares of one parameter, all others known."""
        return attrs.evolve(self, slopes=self.slopes[:, [column]])

    def groups(self, half: Array, wide: Sequence[bool]) -> list[tuple[int, ...]]:
        """Return the sets of parameters that are known only together: others make up for each.

        Parameters
        ----------
        half
            half the width of each interval
        wide
            whether the interval of each says too little
        """
        size = len(half)
        steep = self.slopes * self.weights[:, None]
        loose = [
            i
            for i in range(size)
            if wide[i] and steep[:, i].any() and 3 * float(self.alone(i).half_widths(0.95)[0]) < half[i]
        ]
        joined: list[set[int]] = []
        for i in loose:
            others = [j for j in loose if j != i]
            if not others:
                continue
            shares = np.abs(np.linalg.lstsq(steep[:, others], steep[:, i], rcond=_SINGULAR)[0])
            shares *= np.linalg.norm(steep[:, others], axis=0)
            found = {i, *(j for j, share in zip(others, shares.tolist(), strict=True) if share > 0.1 * shares.max())}
            for known in [each for each in joined if each & found]:
                joined.remove(known)
                found |= known
            joined.append(found)
        return sorted(tuple(sorted(each)) for each in joined)

    def shares(self, group: Sequence[int], scales: Array) -> Array | None:
        """Return how much a unit of each parameter's own scale moves the times, if they all move them alike.

        Parameters
        ----------
        group
            the parameters
        scales
            the width of the unit in each parameter's own scale, such as its range

        Returns
        -------
        array or None
            relative to the one that moves them least; ``None`` if they do not move times alike
        """
        steep = self.slopes[:, list(group)] * self.weights[:, None]
        norms = np.linalg.norm(steep, axis=0)
        _, singular, right = np.linalg.svd(steep / norms, full_matrices=False)
        if singular[1] > 0.1 * singular[0]:
            return None
        found = right[0] * norms / scales
        found = found / np.abs(found).min() * np.sign(found[0])
        near = np.round(found)
        return np.asarray(near if (np.abs(found - near) < 0.05 * np.abs(near)).all() else found, dtype=np.float64)

    def merged(self, group: Sequence[int], shares: Array) -> LeastSquares:
        """Return the least squares with one parameter, the last column, instead of a group that moves times alike."""
        others = [j for j in range(self.slopes.shape[1]) if j not in group]
        one = self.slopes[:, list(group)] @ shares / (shares @ shares)
        return attrs.evolve(self, slopes=np.column_stack([self.slopes[:, others], one]))


Solver: TypeAlias = "Callable[[Sequence[Array]], list[Times | None]]"
"""Returns the times at points of the unit cube; ``None`` where the model fails."""


def fine_step(parameter: Parameter, at: float) -> float:
    """Return a step, in the unit cube, that changes a value by a small share of itself."""
    if parameter.scale.startswith("log"):
        return _FINE / log(parameter.high / parameter.low)
    span = parameter.high - parameter.low
    return float(max(_FINE * abs(float(parameter.value(at))) / span, _FINE * 1e-3))


@attrs.frozen(eq=False)
class Descent:
    """A way down to least squares: its points and their times, the best one last.

    Parameters
    ----------
    points, times
        in order
    squares
        the sum of squares of the logarithms at the last point
    """

    points: list[Array]
    times: list[Times]
    squares: float

    @property
    def steps(self) -> list[tuple[Array, Times]]:
        """The points after the first one, with their times."""
        return list(zip(self.points[1:], self.times[1:], strict=True))


def descended(
    logs: Logarithms, parameters: Sequence[Parameter], run: Solver, start: Array, times: Times, rounds: int = 40
) -> Descent:
    """Return the way from a point of the unit cube to least squares, all jobs alike, by Marquardt's method."""
    own, free = range(len(parameters)), np.zeros(len(parameters), dtype=bool)
    found = Descent([start], [times], float((logs.errors(times) ** 2).sum()))
    damping = _DAMPED
    for _ in range(rounds):
        squares = LeastSquares.at(logs, _slopes(run, parameters, found), found.times[-1], own, plain=True)
        before = found.squares
        while damping < 1e6:
            point = found.points[-1] + squares.step(found.points[-1], damping, free)
            [new] = run([point])
            sum_ = np.inf if new is None else float((logs.errors(new) ** 2).sum())
            if new is not None and sum_ < before:
                found = Descent([*found.points, point], [*found.times, new], sum_)
                damping = max(damping / 30, 1e-9)
                break
            damping *= 30
        if found.squares > before * (1 - _SETTLED) - _EXACT**2:
            break
    return found


def left_plateau(logs: Logarithms, parameters: Sequence[Parameter], run: Solver, found: Descent) -> Descent:
    """Return a way that is better, where some parameters have little effect at the end of one: near a plateau.

    Each of these is moved over its range, and the way goes on from the places that are better.
    """
    slopes = _slopes(run, parameters, found)
    half = LeastSquares.at(logs, slopes, found.times[-1], range(len(parameters))).half_widths(0.95)
    for i in np.flatnonzero(half > _LITTLE).tolist():
        points = []
        for at in np.concatenate([np.linspace(0, 1, _PLACES), np.geomspace(1e-4, 0.5, _PLACES)]).tolist():
            points.append(found.points[-1].copy())
            points[-1][i] = at
        for point, times in zip(points, run(points), strict=True):
            if times is not None and (logs.errors(times) ** 2).sum() < found.squares:
                found = min(found, descended(logs, parameters, run, point, times), key=lambda way: way.squares)
    return found


def polished(logs: Logarithms, parameters: Sequence[Parameter], run: Solver, found: Descent) -> Descent:
    """Return the way on to the best point with Huber's weights, in a few steps."""
    own, free = range(len(parameters)), np.zeros(len(parameters), dtype=bool)
    for _ in range(_STEPS):
        squares = LeastSquares.at(logs, _slopes(run, parameters, found), found.times[-1], own)
        step = squares.step(found.points[-1], 0.0, free)
        [new] = run([found.points[-1] + step])
        if (
            new is None
            or ((logs.errors(new) * squares.weights) ** 2).sum() >= ((squares.errors * squares.weights) ** 2).sum()
        ):
            break
        found = Descent(
            [*found.points, found.points[-1] + step], [*found.times, new], float((logs.errors(new) ** 2).sum())
        )
    return found


def _slopes(run: Solver, parameters: Sequence[Parameter], found: Descent) -> dict[str, Array]:
    """Return the slopes of the times at the last point of a way, by one run for each parameter."""
    point, times = found.points[-1], found.times[-1]
    points = []
    for i, parameter in enumerate(parameters):
        step = fine_step(parameter, point[i])
        points.append(point.copy())
        points[-1][i] += step if point[i] + step <= 1 else -step
    runs = run(points)
    slopes = {name: np.zeros((len(parameters), len(each))) for name, each in times.items()}
    for i, new in enumerate(runs):
        for name in slopes if new is not None else ():
            assert new is not None
            slopes[name][i] = (new[name] - times[name]) / (points[i][i] - point[i])
    return slopes


def spread(parameters: Sequence[Parameter], count: int) -> list[Array]:
    """Return points of the unit cube, evenly spread; every second one lies in the low end of linear ranges."""
    size = len(parameters)
    root = 2.0
    for _ in range(30):
        root = (1 + root) ** (1 / (size + 1))
    steps = root ** -np.arange(1, size + 1)
    points = (0.5 + np.outer(np.arange(1, count + 1), steps)) % 1
    linear = np.array([each.scale == "linear" and each.low >= 0 for each in parameters])
    points[1::2, linear] **= 1 + log(1000)
    return list(points)
