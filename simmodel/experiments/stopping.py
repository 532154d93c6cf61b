"""Sequential stopping: how many replications are enough, by a rule that keeps the confidence of the intervals.

An interval that stops a sequence of replications is too narrow more often than its level says: the sequence stops where
the deviation happens to look small, and mean and deviation of waits are correlated. Three things hold against it, as in
the procedures of Chow and Robbins [1965] and Law and Kelton [1982]: a first number of replications; few looks, each at
a number that the last one predicts; and half widths with an upper limit of the standard deviation in place of its
estimate (:func:`simmodel.metrics.statistics.cautious_interval`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import ceil, inf, isfinite

import attrs
import numpy as np
from numpy.typing import ArrayLike

from simmodel.display import Fields
from simmodel.errors import InputError, shown, unknown
from simmodel.metrics.statistics import Interval, cautious_interval, replication_seeds

__all__ = [
    "BUDGET",
    "LEAST",
    "Goal",
    "Seeds",
    "Stop",
    "checked_metrics",
    "chosen_seeds",
    "finite_interval",
    "goal_of",
    "in_rounds",
    "looks",
]

LEAST, BUDGET = 30, 1000
"""The first and the last number of replications of a sequence."""
_GROWTH = 1.1
_PART = re.compile(
    r"(?:(?P<metric>[^\s±,]+)\s*)?(?:(?P<sign>±|\+/?-)\s*(?P<width>[0-9.eE+-]+)\s*(?P<share>%)?|(?P<decided>decided))"
)


@attrs.frozen(repr=False)
class Goal(Fields):
    """What a metric must reach before a sequence of replications stops.

    Parameters
    ----------
    metric
        its name
    width
        the largest half width of its interval: in the unit of the metric, or as a share of the mean; ``None``: each
        difference between two policies must be decided
    relative
        whether the width is a share

    >>> print(Goal("wait_mean", 0.05, relative=True), "and", Goal("wait_mean"))
    wait_mean ± 5 % and wait_mean decided
    """

    metric: str
    width: float | None = None
    relative: bool = False

    def needed(self, interval: Interval) -> float:
        """Return about how many replications would reach the goal."""
        assert self.width is not None
        width = self.width * abs(interval.mean) if self.relative else self.width
        if not isfinite(interval.half_width):
            return inf
        if interval.half_width <= width:
            return 0
        return interval.count * (interval.half_width / width) ** 2 if width > 0 else inf

    def __str__(self) -> str:
        if self.width is None:
            return f"{self.metric} decided"
        return f"{self.metric} ± {100 * self.width:.10g} %" if self.relative else f"{self.metric} ± {self.width:.10g}"


@attrs.frozen(repr=False)
class Stop(Fields):
    """How a sequence of replications stopped.

    Parameters
    ----------
    goals
        what was to be reached
    reached
        whether all of it was
    count
        the number of replications
    open
        what was not reached, one line each
    """

    goals: tuple[Goal, ...]
    reached: bool
    count: int
    open: tuple[str, ...] = ()

    def __str__(self) -> str:
        wanted = ", ".join(map(str, self.goals))
        if self.reached:
            return f"{wanted}: reached after {self.count:,} replications"
        return f"{wanted}: not reached with the budget of {self.count:,} replications ({'; '.join(self.open)})"


def goal_of(text: str) -> tuple[Goal, ...]:
    """Return the goals that a text names: ``"wait_mean ± 5 %, slowdown ± 0.5"``, ``"wait_mean decided"``.

    The sign may be ``+-``; without a name, the metric is ``value``.

    Raises
    ------
    InputError
        it is neither

    >>> goal_of("wait_mean +- 5 %, utilisation ± 0.01")
    (Goal(metric='wait_mean', width=0.05, relative=True), Goal(metric='utilisation', width=0.01))
    >>> goal_of("wait_mean < 5")
    Traceback (most recent call last):
    ...
    simmodel.errors.InputError: until: must be like 'wait_mean ± 5 %' or 'wait_mean decided', got 'wait_mean < 5'
    """
    found = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        try:
            width = None if match is None or match["decided"] else float(match["width"])
        except ValueError:
            match = None
        if match is None or (width is not None and not 0 < width < inf):
            raise InputError(
                f"must be like 'wait_mean ± 5 %' or 'wait_mean decided', got {shown(text)}", place="until"
            ) from None
        share = match["share"] is not None
        found.append(Goal(match["metric"] or "value", width / 100 if width and share else width, share))
    return tuple(found)


@attrs.frozen
class Seeds:
    """The seeds of a sequence of replications.

    Parameters
    ----------
    first, most
        how many are used at least and at most
    given
        the seeds themselves; ``None``: those of :func:`~simmodel.metrics.statistics.replication_seeds`
    """

    first: int
    most: int
    given: tuple[int, ...] | None = None

    def part(self, begin: int, end: int) -> list[int]:
        """Return the seeds of these replications."""
        return list(self.given[begin:end]) if self.given is not None else replication_seeds(end)[begin:]


def chosen_seeds(
    seeds: int | Iterable[int] | None, goals: Sequence[Goal], budget: int | None, usual: int, fewest: int
) -> Seeds:
    """Return the seeds for an argument ``seeds``: a number, the seeds themselves, or ``None`` (the ``usual`` number).

    Raises
    ------
    InputError
        a seed is duplicate, there are fewer than the ``fewest``, or the budget is less than the first number
    """
    if seeds is not None and not isinstance(seeds, int):
        given = tuple(int(seed) for seed in seeds)
        if len(set(given)) < len(given):
            raise InputError(f"must name each seed once, got {list(given)}", place="seeds")
        found = Seeds(min(LEAST, len(given)) if goals else len(given), len(given), given)
    elif goals:
        most = BUDGET if budget is None else budget
        found = Seeds(min(LEAST, most) if seeds is None else seeds, most)
    else:
        count = usual if seeds is None else seeds
        found = Seeds(count, count)
    if found.first < fewest:
        wanted = "two or more for an interval" if fewest == 2 else "at least one"
        raise InputError(f"must be {wanted}, got {found.first or ('none' if fewest == 1 else 0)}", place="seeds")
    if found.first > found.most:
        wanted = f">= {found.first}, the number of seeds at the first look"
        raise InputError(f"must be {wanted}, got {found.most}", place="budget")
    return found


def in_rounds(
    run: Callable[[int, int], object], needed: Callable[[int], float], first: int, most: int
) -> tuple[int, bool]:
    """Replicate in rounds until enough is known or the budget is spent; return the number, and whether it is enough.

    Parameters
    ----------
    run
        ``run(begin, end)`` runs these replications
    needed
        ``needed(n)``: about how many would be enough, as the first ``n`` tell; not more than ``n``: they are enough
    first, most
        the number of replications at the first look; the budget

    A round ends at the predicted number, but grows by a tenth at least and to the double at most. The numbers depend
    on what was measured alone, not on the executor.

    >>> in_rounds(lambda begin, end: print(begin, end), lambda n: 70, 30, 1000)
    0 30
    30 60
    60 70
    (70, True)
    """
    count = first
    run(0, count)
    while (wanted := needed(count)) > count:
        if count >= most:
            return count, False
        more = min(most, max(ceil(_GROWTH * count), 2 * count if wanted > 2 * count else ceil(wanted)))
        run(count, more)
        count = more
    return count, True


def looks(first: int, most: int) -> int:
    """Return how often a sequence that doubles is looked at, at most.

    >>> looks(30, 1000)
    7
    """
    count = 1
    while first < most:
        first, count = min(most, 2 * first), count + 1
    return count


def checked_metrics(goals: Sequence[Goal], known: Iterable[str]) -> None:
    """Refuse a goal whose metric is not measured."""
    names = list(known)
    for goal in goals:
        if goal.metric not in names:
            raise InputError(unknown("metric", goal.metric, names).message, place="until")


def finite_interval(values: ArrayLike, level: float) -> Interval:
    """Return the cautious interval of the values that are finite; infinitely wide for fewer than two."""
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    if len(found) < 2:
        return Interval(float(found.mean()) if len(found) else np.nan, inf, level, len(found))
    return cautious_interval(found, level)
