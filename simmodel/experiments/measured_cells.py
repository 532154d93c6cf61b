"""The measurements of an exploration while it goes on, and whether they are enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from math import nan
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from simmodel.experiments.decisions import Decisions
from simmodel.experiments.ensembles import Numbers
from simmodel.experiments.stopping import Goal, Seeds, checked_metrics, finite_interval
from simmodel.metrics.statistics import Interval
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AXES", "MeasuredCells"]

AXES = ("platform", "workload", "policy")
Cell: TypeAlias = "tuple[str, str, str]"


class MeasuredCells:
    """The measurements of each combination, and what a sequence needs of them."""

    def __init__(self, cells: list[Cell], seeds: Seeds, goals: Sequence[Goal], level: float) -> None:
        self._found: dict[Cell, list[Numbers]] = {cell: [] for cell in cells}
        self._seeds, self._level = seeds, level
        self._widths = [goal for goal in goals if goal.width is not None]
        pairs = [(*a[:2], a[2], b[2]) for a, b in combinations(cells, 2) if a[:2] == b[:2]]
        decided = [goal for goal in goals if goal.width is None]
        self.decisions = [Decisions.of(goal, pairs, seeds, level, len(decided)) for goal in decided]
        self._goals = goals

    def add(self, measured: Sequence[Numbers], seeds: int) -> None:
        """Add the measurements of a round: of all cells in order, each with all seeds of the round."""
        for i, samples in enumerate(self._found.values()):
            samples.extend(measured[i * seeds : (i + 1) * seeds])

    def _values(self, cell: Cell, metric: str) -> NDArray[np.float64]:
        return np.array([each.get(metric, nan) for each in self._found[cell]], dtype=np.float64)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for samples in self._found.values() for each in samples for name in each))

    def needed(self, _: int) -> float:
        """Return about how many seeds would reach all goals."""
        checked_metrics(self._goals, self._names)
        widths = [goal.needed(each) for goal in self._widths for each in self._intervals(goal).values()]
        return max([*widths, *(each.look(partial(self._differences, each.goal)) for each in self.decisions)])

    def _intervals(self, goal: Goal) -> dict[Cell, Interval]:
        return {cell: finite_interval(self._values(cell, goal.metric), self._level) for cell in self._found}

    def _differences(self, goal: Goal, pair: tuple[str, str, str, str]) -> NDArray[np.float64]:
        platform, workload, first, second = pair
        a, b = (self._values((platform, workload, policy), goal.metric) for policy in (first, second))
        return a - b

    def open(self) -> Iterator[str]:
        """Yield what is not reached, one line each."""
        for goal in self._widths:
            for cell, interval in self._intervals(goal).items():
                if goal.needed(interval) > interval.count:
                    yield f"{', '.join(cell)}: {goal.metric} {interval}"
        for each in self.decisions:
            yield from each.open

    @property
    def table(self) -> Table:
        """One row per run: platform, workload, policy, seed and the metrics."""
        rows = [cell for cell, samples in self._found.items() for _ in samples]
        seeds = [seed for samples in self._found.values() for seed in self._seeds.part(0, len(samples))]
        measured = [each for samples in self._found.values() for each in samples]
        return Table(
            {
                **{axis: np.array([row[i] for row in rows], dtype=str) for i, axis in enumerate(AXES)},
                "seed": np.array(seeds, dtype=np.uint64),
                **{
                    name: np.array([each.get(name, nan) for each in measured], dtype=np.float64) for name in self._names
                },
            }
        )
