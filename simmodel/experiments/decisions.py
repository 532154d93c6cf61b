"""Paired comparisons that stop when they are decided: which of two policies has the lower metric, with corrected error.

A difference is looked at several times, and there are several of them, so each look has a share of the error: the
probability that any of them is decided wrongly is at most one minus the level (Bonferroni's inequality). The number of
looks is that of a sequence which doubles up to its budget. A difference that was decided stays decided.

Intervals of Student's t miss the mean of skewed differences on one side: a mean on the side of the short tail says
little until the long one has been seen. Such a difference is decided once it has been seen 25 times as often as its
squared skewness.

Source: W. G. Cochran, "Sampling Techniques", 3rd edition, 1977, section 2.15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import attrs
import numpy as np
from numpy.typing import NDArray

from simmodel.experiments.stopping import Goal, Seeds, finite_interval, looks
from simmodel.metrics.statistics import Interval
from simmodel.work.table import Table

__all__ = ["Decisions"]

_COCHRAN = 25.0


def _misled(values: NDArray[np.float64]) -> bool:
    """Whether a mean is on the side of the short tail, and the values are too few for their skewness."""
    mean, deviation = float(values.mean()), float(values.std())
    if not deviation > 0:
        return False
    skewness = float((((values - mean) / deviation) ** 3).mean())
    return mean * skewness < 0 and len(values) < _COCHRAN * skewness**2


Pair = tuple[str, str, str, str]
"""A platform, a workload and two policies."""


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
            interval = self.found[pair] = finite_interval(values, self.level)
            same = interval.mean == 0 == interval.half_width
            if same or (0 not in interval and not _misled(values[np.isfinite(values)])):
                self.decided.add(pair)
        return 0 if len(self.decided) == len(self.pairs) else inf

    @property
    def open(self) -> list[str]:
        """What is not decided, one line each."""
        return [
            f"{first} and {second} on {platform} with {workload}: difference of {self.goal.metric} {self.found[pair]}"
            for pair in self.pairs
            if pair not in self.decided
            for platform, workload, first, second in [pair]
        ]

    @property
    def table(self) -> Table:
        """One row per pair: its labels, the mean difference with its interval, the replications, and ``lower``.

        ``lower`` is the policy with the lower metric: ``same`` if all differences are zero, empty if it is open.
        """
        rows = [(pair, self.found[pair]) for pair in self.pairs]
        lower = [
            "" if pair not in self.decided else "same" if each.mean == 0 else pair[2] if each.mean < 0 else pair[3]
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
