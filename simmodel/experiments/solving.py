"""The least squares of a function of a few numbers, from several starts, and how well the record fixes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simmodel.experiments.calibrated import Calibration
from simmodel.experiments.fitting import Block, Fit, times_of
from simmodel.experiments.identifiability import WORSE, Runner, decides, identified, refined, surroundings
from simmodel.experiments.least_squares import Logarithms, descended, left_plateau, polished, spread
from simmodel.experiments.observations import Times
from simmodel.experiments.trials import Trial
from simmodel.foundation.errors import SimmodelError
from simmodel.runs.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"

__all__ = ["is_smooth", "solution"]

_MOST = 12  # parameters
_STARTS = 2  # ways down to least squares from each kind of points
_AS_GOOD = 4.0  # by which a deviance may be worse: the likelihood does not tell the values apart


def is_smooth(fit: Fit) -> bool:
    """Whether least squares apply: to walltimes that a function returns, of a few parameters that are numbers."""
    space = fit.varied.space
    numbers = not any(each.choices or each.whole for each in space.parameters)
    plain = not isinstance(fit.varied.model, Scenario) and len(fit.blocks) == 1
    return plain and numbers and len(space) <= _MOST and decides(fit)


def solution(fit: Fit, start: Array, budget: int, run: Runner, level: float, seed: int) -> Calibration | None:
    """Return the least squares of a function; ``None`` where a search by trials does better.

    That is so if the budget is small, if the times do not depend on each parameter smoothly, or if odd jobs make the
    loss of least squares much larger than the least one.

    Parameters
    ----------
    fit
        a function, for which :func:`is_smooth` holds
    start
        the first point
    budget
        the number of trials: points that are tried, those of slopes not counted
    run
        runs the model
    level, seed
        of the intervals
    """
    assert fit.observed is not None
    space = fit.varied.space
    part = Block("", tuple(range(len(space))))
    logs = Logarithms.of(fit.observed, part)
    count = 8 + 6 * len(space)
    if logs is None or budget < 1 + count + 4 * _STARTS:
        return None

    def times_at(points: Sequence[Array]) -> list[Times | None]:
        return run([space.values(point) for point in points])

    points = [start, *spread(space.parameters, count)]
    runs = times_at(points)
    sums = [np.inf if times is None else float((logs.errors(times) ** 2).sum()) for times in runs]
    order = sorted((i for i, sum_ in enumerate(sums) if np.isfinite(sum_)), key=sums.__getitem__)
    starts = sorted(each for half in (0, 1) for each in [i for i in order if i % 2 == half][:_STARTS])
    rounds = (budget - len(points)) // max(len(starts), 1)
    ways = [descended(logs, space.parameters, times_at, points[i], times, rounds) for i in starts if (times := runs[i])]
    if not ways:
        return None
    ways.sort(key=lambda way: way.squares)
    ways.insert(0, left_plateau(logs, space.parameters, times_at, ways[0]))
    best = polished(logs, space.parameters, times_at, ways[0])
    near = surroundings(fit, [part], best.points[-1], run, fine=True)
    if near is None or any(not any(steep[i].any() for steep in near.slopes.values()) for i in range(len(space))):
        return None
    _, nearby = refined(fit, [part], near, run, seed)
    if fit.losses(near.times)["loss"] > WORSE * fit.losses(nearby)["loss"]:
        return None
    known = identified(fit, [part], near, near.point, near.times, run, seed=seed, level=level)
    bound = ways[0].squares * (1 + _AS_GOOD / len(logs.recorded)) + 1e-12
    for way in ways[1:]:
        if way.squares <= bound:
            known = [
                each.besides(parameter, at, [other])
                for each, parameter, at, other in zip(known, space.parameters, near.point, way.points[-1], strict=True)
            ]
    tried = [(space.values(point), times) for point, times in zip(points, runs, strict=True)]
    tried += [(space.values(point), times) for way in (*ways[1:], best) for point, times in way.steps]
    return Calibration(
        fit=fit,
        method="least-squares",
        trials=tuple(_trial(fit, i, *each) for i, each in enumerate(tried)),
        separable=False,
        before={},
        values=space.values(near.point),
        times_before=None,
        times_after=near.times,
        level=level,
        identified=tuple(known),
    )


def _trial(fit: Fit, number: int, values: Mapping[str, Any], times: Times | None) -> Trial:
    if times is None:
        try:
            times_of(fit, values)
            why = "a time is infinite"
        except (SimmodelError, ArithmeticError, ValueError, LookupError, TypeError) as error:
            why = str(error) or type(error).__name__
        return Trial(number=number, values=values, state="failed", error=why)
    return Trial(number=number, values=values, state="finished", outcome=fit.losses(times))
