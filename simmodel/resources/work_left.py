"""The expected work of what runs, kept in integers as it starts and ends."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

__all__ = ["UNIT", "WorkLeft"]

UNIT = 2**20
"""Units of a second: sums of whole units are the same in every order."""


class WorkLeft:
    """Processor seconds that what runs is expected to take from an instant on, in units of 2^-20.

    What is past its expected end, or has none, counts zero. A start or an end costs O(log n), a question O(1) on
    average.

    Parameters
    ----------
    entries
        what runs already: (expected end in s, number, processors, anything)

    Attributes
    ----------
    endless
        how many have no end

    >>> left = WorkLeft([(10.0, 1, 2, None)])
    >>> left.add(20.0, 2, 1)
    >>> [left.at(now) / UNIT for now in (5, 12, 30)]
    [25.0, 8.0, 0.0]
    """

    __slots__ = ("_ends", "_of", "_processors", "_sum", "endless")

    def __init__(self, entries: Iterable[tuple[float, int, int, Any]]) -> None:
        self._ends: list[tuple[float, int]] = []
        self._of: dict[int, tuple[int, int]] = {}  # by number: the end in units, times processors; processors
        self._sum = self._processors = self.endless = 0
        for end, number, processors, _ in entries:
            self.add(end, number, processors)
        heapify(self._ends)

    def add(self, end: float, number: int, processors: int) -> None:
        """Count what starts."""
        if end == inf:
            self.endless += 1
            return
        work = int(end * UNIT) * processors
        self._of[number] = work, processors
        self._sum += work
        self._processors += processors
        heappush(self._ends, (end, number))

    def remove(self, end: float, number: int) -> None:
        """Count what ends."""
        if end == inf:
            self.endless -= 1
            return
        work, processors = self._of.pop(number, (0, 0))
        self._sum -= work
        self._processors -= processors

    def at(self, now: float) -> int:
        """Return what is left at an instant (s), which is not before that of an earlier question."""
        ends = self._ends
        while ends and (ends[0][0] <= now or ends[0][1] not in self._of):
            end, number = heappop(ends)
            self.remove(end, number)
        return self._sum - int(now * UNIT) * self._processors
