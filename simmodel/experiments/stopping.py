"""Sequential stopping: how many replications are enough, by a rule that keeps the confidence of the intervals.

An interval that stops a sequence of replications is too narrow more often than its level says: the sequence stops where
the deviation happens to look small, and mean and deviation of waits are correlated. Three things hold against it, as in
the procedures of Chow and Robbins [1965] and Law and Kelton [1982]: a first number of replications; few looks, each at
a number that the last one predicts; and half widths with an upper limit of the standard deviation in place of its
estimate (:func:`simmodel.metrics.statistics.cautious_interval`).

Which of two policies has the lower metric is decided in pairs. A difference is looked at several times, and there are
several of them, so each look has a share of the error: the probability that any of them is decided wrongly is at most
one minus the level (Bonferroni's inequality). The number of looks is that of a sequence which doubles up to its budget.
A difference that was decided stays decided. Intervals of Student's t miss the mean of skewed differences on one side: a
mean on the side of the short tail says little until the long one has been seen. Such a difference is decided once it
has been seen 25 times as often as its squared skewness (:func:`simmodel.metrics.statistics.extremes_needed`). One whose
mean is on the side of the long tail may be decided before: then the sequence says that extremes carry the mean.

Replications that are equal are copies of one run: they are no sample, nothing is decided by them, and a sequence stops
after a few of them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from math import ceil, inf, isfinite
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.metrics.statistics import Interval, all_equal, cautious_interval, extremes_needed, replication_seeds
from simmodel.work.table import Table

__all__ = [
    "BUDGET",
    "EQUAL",
    "FEW",
    "LEAST",
    "Decisions",
    "Goal",
    "Seeds",
    "Stop",
    "checked_metrics",
    "chosen_seeds",
    "depends_on_seed",
    "finite_interval",
    "goal_of",
    "in_rounds",
    "looks",
    "stop_of",
]

LEAST, BUDGET = 30, 1000
"""The first and the last number of replications of a sequence."""
FEW = 5
"""The number of replications that, if they are equal, end a sequence."""
EQUAL = "all replications are equal: the work does not depend on the seed; no interval"
_GROWTH = 1.1
_PART = re.compile(
    r"(?:(?P<metric>[^\s±,]+)\s*)?(?:(?P<sign>±|\+/?-)\s*(?P<width>[0-9.eE+-]+)\s*(?P<share>%)?|(?P<decided>decided))"
)
Pair: TypeAlias = "tuple[str, str, str, str]"
"""A platform, a workload and two policies."""


@attrs.frozen(repr=False)
class Goal(Fields):
    """The goal for a metric at which a sequence of replications stops: a precision, or decided differences.

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
        if interval.why:
            return 0
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
        the goals to be reached
    reached
        whether all of it was
    count
        the number of replications
    open
        the goals not reached, one line each
    notes
        where all replications are equal, or extremes among them carry a mean, one line each
    """

    goals: tuple[Goal, ...]
    reached: bool
    count: int
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        wanted, count = ", ".join(map(str, self.goals)), f"{self.count:,} replications"
        how = f"reached after {count}" if self.reached else f"stopped after {count}"
        if self.open:
            how = f"not reached with the budget of {count} ({'; '.join(self.open)})"
        return "; ".join([f"{wanted}: {how}", *self.notes])


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
    simmodel.foundation.errors.InputError: stop: must be like 'wait_mean ± 5 %' or 'wait_mean decided', got ...
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
                f"must be like 'wait_mean ± 5 %' or 'wait_mean decided', got {shown(text)}", place="stop"
            ) from None
        share = match["share"] is not None
        found.append(Goal(match["metric"] or "value", width / 100 if width and share else width, share))
    return tuple(found)


def stop_of(stop: str | None, until: float | str | None) -> tuple[str | None, dict[str, float | str]]:
    """Return the rule of stopping, and ``until``, a time, as an option of the simulations.

    A rule as ``until`` works for one version, with a ``FutureWarning``.

    >>> stop_of("wait_mean decided", "2d")
    ('wait_mean decided', {'until': '2d'})
    """
    if until is None:
        return stop, {}
    if isinstance(until, str) and stop is None and ("±" in until or "-" in until or "decided" in until):
        text = f"until= is a time; the rule of stopping is stop={until!r}, and no other in the next version"
        warnings.warn(text, FutureWarning, stacklevel=3)
        return until, {}
    return stop, {"until": until}


@attrs.frozen
class Seeds:
    """The seeds of a sequence of replications.

    Parameters
    ----------
    first, most
        how many are used at least and at most
    given
        the seeds themselves; ``None``: those of :func:`~simmodel.metrics.statistics.replication_seeds`
    seed
        from which these are drawn
    """

    first: int
    most: int
    given: tuple[int, ...] | None = None
    seed: int = 0

    def part(self, begin: int, end: int) -> list[int]:
        return list(self.given[begin:end]) if self.given is not None else replication_seeds(end, self.seed)[begin:]


def chosen_seeds(
    seeds: int | Iterable[int] | None, goals: Sequence[Goal], budget: int | None, usual: int, fewest: int, seed: int = 0
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
        found = Seeds(min(LEAST, most) if seeds is None else seeds, most, seed=seed)
    else:
        count = usual if seeds is None else seeds
        found = Seeds(count, count, seed=seed)
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
        ``needed(n)``: about how many would be enough, by the first ``n``; not more than ``n``: they are enough
    first, most
        the number of replications at the first look; the budget

    A round ends at the predicted number, but grows by a tenth at least and to the double at most. The numbers depend
    on the measurements alone, not on the executor.

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
            raise InputError(unknown("metric", goal.metric, names).message, place="stop")


def depends_on_seed(samples: Iterable[tuple[str, NDArray[np.float64]]]) -> bool:
    """Whether replications differ in any measurement but the times that decisions took on this computer.

    Parameters
    ----------
    samples
        each measurement by name, one value per replication

    >>> depends_on_seed([("wait_mean", np.array([15145.0, 15145.0])), ("decision_mean", np.array([1e-6, 2e-6]))])
    False
    """
    return any(
        not name.startswith("decision_") and not (all_equal(values[known]) and len({*known.tolist()}) < 2)
        for name, values in samples
        for known in [np.isfinite(values)]
    )


def finite_interval(values: ArrayLike, level: float) -> Interval:
    """Return the cautious interval of the values that are finite; infinitely wide for fewer than two."""
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    if len(found) < 2:
        return Interval(float(found.mean()) if len(found) else np.nan, inf, level, len(found))
    return cautious_interval(found, level)


# ---------------------------------------------------------------------- decisions


def _misled(values: NDArray[np.float64]) -> bool:
    """Whether a mean is on the side of the short tail, and the values are too few for their skewness."""
    mean = float(values.mean())
    return mean * float(((values - mean) ** 3).sum()) < 0 and len(values) < extremes_needed(values)


@attrs.define
class Decisions:
    """The differences of a metric between pairs of policies, and which of them are decided.

    Parameters
    ----------
    goal
        the metric
    pairs
        platforms, workloads and pairs of policies
    level
        of each interval, corrected
    found
        the interval of each difference when it was decided, or as it is now
    decided
        the pairs that are decided

    >>> decisions = Decisions.of(Goal("wait_mean"), [("p", "w", "easy", "fcfs")], Seeds(30, 120), 0.95)
    >>> round(decisions.level, 4)  # three looks: 30, 60, 120
    0.9833
    >>> decisions.look(lambda pair: np.linspace(-2, -1, 30)), decisions.table["lower"][0]
    (0, np.str_('easy'))
    """

    goal: Goal
    pairs: Sequence[Pair]
    level: float
    found: dict[Pair, Interval] = attrs.field(factory=dict)
    decided: set[Pair] = attrs.field(factory=set)

    @classmethod
    def of(cls, goal: Goal, pairs: Sequence[Pair], seeds: Seeds, level: float, goals: int = 1) -> Decisions:
        """Return the decisions of a sequence with these seeds, one of several ``goals`` that are decided at once."""
        shares = max(len(pairs), 1) * looks(seeds.first, seeds.most) * goals
        return cls(goal, pairs, 1 - (1 - level) / shares)

    def look(self, differences: Callable[[Pair], NDArray[np.float64]]) -> float:
        """Look at the paired differences of each pair; return how many replications are needed: 0 or not known."""
        for pair in self.pairs:
            if pair in self.decided:
                continue
            values = differences(pair)
            values = values[np.isfinite(values)]
            interval = self.found[pair] = finite_interval(values, self.level)
            if not interval.why and 0 not in interval and not _misled(values):
                self.decided.add(pair)
        return inf if any(left for *_, left in self.lines) else 0

    @property
    def lines(self) -> list[tuple[str, Interval, bool]]:
        """For each pair a line of text, the interval of its difference, and whether it can still be decided."""
        return [
            (f"{a} and {b} on {platform} with {workload}: difference of {self.goal.metric} {each}", each, is_open)
            for (platform, workload, a, b), each in self.found.items()
            for is_open in [(platform, workload, a, b) not in self.decided and not each.why]
        ]

    @property
    def table(self) -> Table:
        """One row per pair: its labels, the mean difference with its interval, the replications, and ``lower``.

        ``lower`` is the policy with the lower metric: ``same`` if all differences are zero, empty if it is not decided.
        """
        rows = [(pair, self.found[pair]) for pair in self.pairs]
        lower = [
            ("same" if each.why and each.mean == 0 else "")
            if pair not in self.decided
            else pair[2 if each.mean < 0 else 3]
            for pair, each in rows
        ]
        labels = {
            name: np.array([pair[i] for pair in self.pairs], dtype=str)
            for i, name in enumerate(("platform", "workload", "first", "second"))
        }
        return Table(
            {
                **labels,
                "metric": np.array([self.goal.metric] * len(rows), dtype=str),
                "difference": np.array([each.mean for _, each in rows], dtype=np.float64),
                "low": np.array([each.low for _, each in rows], dtype=np.float64),
                "high": np.array([each.high for _, each in rows], dtype=np.float64),
                "replications": np.array([each.count for _, each in rows], dtype=np.int64),
                "lower": np.array(lower, dtype=str),
            }
        )
