"""The arithmetic of signals: integrals, and the spans with the least of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StepLine"]


@attrs.frozen(eq=False, slots=False)
class StepLine:
    """A step function as arrays: the values from some instants on, shape (n,) each, and its end (s)."""

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    end: float

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        return np.append(0.0, np.cumsum(self.values[:-1] * np.diff(self.times)))

    def _steps(self, instants: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the steps in which some instants lie; the end lies in the last one."""
        if not instants.min() >= self.times[0] or not instants.max() <= self.end:
            wrong = instants.min() if instants.min() < self.times[0] else instants.max()
            there = f"the signal lasts from {self.times[0]:g} to {self.end:g} s"
            raise InputError(f"{there}, and is asked for at {wrong:g} s", place="signal")
        return np.searchsorted(self.times, instants, side="right") - 1

    def _between(self, start: float, end: float) -> NDArray[np.float64]:
        """Return the instants of the steps between two instants."""
        first, last = np.searchsorted(self.times, [start, end], side="right").tolist()
        return self.times[first:last]

    def at(self, instant: float) -> float:
        return float(self.values[self._steps(np.array([instant], dtype=np.float64))[0]])

    def integrals(self, instants: NDArray[np.float64]) -> NDArray[np.float64]:
        steps = self._steps(instants)
        found: NDArray[np.float64] = self._sums[steps] + self.values[steps] * (instants - self.times[steps])
        return found

    def lowest(self, earliest: float, latest: float, length: float) -> float:
        if length <= 0 or latest <= earliest:
            return float(earliest)
        # The mean over a sliding span is linear between the instants at which one of its ends meets a step.
        meets = [self._between(earliest, latest), self._between(earliest + length, latest + length) - length]
        starts = np.sort(np.concatenate([[earliest], *meets, [latest]]))
        sums = self.integrals(starts + length) - self.integrals(starts)
        least = sums.min()
        return float(starts[np.argmax(sums <= least + 1e-12 * abs(least))])  # the first of those that are equal

    def lowest_spans(self, earliest: float, latest: float, length: float) -> list[tuple[float, float]]:
        first, last = self._steps(np.array([earliest, latest], dtype=np.float64)).tolist()
        edges = np.concatenate([[earliest], self.times[first + 1 : last + 1], [latest]])
        values, lasts = self.values[first : last + 1], np.diff(edges)
        order = np.argsort(values, kind="stable")
        enough = np.searchsorted(np.cumsum(lasts[order]), length - 1e-9 * length)
        worst = values[order[min(int(enough), len(order) - 1)]]
        spans: list[tuple[float, float]] = []
        for start, end, value in zip(edges[:-1].tolist(), edges[1:].tolist(), values.tolist(), strict=True):
            if value > worst or end == start:
                continue
            if spans and spans[-1][1] == start:
                spans[-1] = spans[-1][0], end
            else:
                spans.append((start, end))
        return spans
