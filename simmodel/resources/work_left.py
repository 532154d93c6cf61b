"""The expected remaining work of executions, maintained in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

__all__ = ["UNIT", "WorkLeft"]

UNIT = 2**20
"""Units per second: integer sums do not depend on their order."""


class WorkLeft:
    """The expected remaining work of executions from an instant on, in units of 2^-20 processor seconds.

    Executions past their expected end, or without one, count zero. A start or an end costs O(log n), a question O(1)
    amortised.

    Parameters
    ----------
    entries
        the current executions: (expected end in s, number, processors, anything)

    Attributes
    ----------
    endless
        the number of executions without an end
    changed
        functions that are called whenever an execution is added or removed

    >>> left = WorkLeft([(10.0, 1, 2, None)])
    >>> left.add(20.0, 2, 1)
    >>> [left.at(now) / UNIT for now in (5, 12, 30)]
    [25.0, 8.0, 0.0]
    """

    __slots__ = ("_ends", "_of", "_processors", "_sum", "changed", "endless")

    def __init__(self, entries: Iterable[tuple[float, int, int, Any]]) -> None:
        self.changed: list[Callable[[], object]] = []
        self._ends: list[tuple[float, int]] = []
        self._of: dict[int, tuple[int, int]] = {}  # by number: the end in units, times processors; processors
        self._sum = self._processors = self.endless = 0
        for end, number, processors, _ in entries:
            self.add(end, number, processors)
        heapify(self._ends)

    def add(self, end: float, number: int, processors: int) -> None:
        """Add an execution."""
        for call in self.changed:
            call()
        if end == inf:
            self.endless += 1
            return
        work = int(end * UNIT) * processors
        self._of[number] = work, processors
        self._sum += work
        self._processors += processors
        heappush(self._ends, (end, number))

    def remove(self, end: float, number: int) -> None:
        """Remove an execution."""
        for call in self.changed:
            call()
        if end == inf:
            self.endless -= 1
            return
        self._drop(number)

    def started(self, entry: tuple[float, int, int, Any]) -> None:
        """Add an execution of an index."""
        self.add(*entry[:3])

    def ended(self, entry: tuple[float, int, int, Any]) -> None:
        """Remove an execution of an index."""
        self.remove(*entry[:2])

    def _drop(self, number: int) -> None:
        work, processors = self._of.pop(number, (0, 0))
        self._sum -= work
        self._processors -= processors

    def at(self, now: float) -> int:
        """Return the work left at an instant (s); instants must not decrease from call to call."""
        return self.line(now)[0]

    def line(self, now: float) -> tuple[int, int, float]:
        """Return the work left at an instant (s), by how many units it falls per unit of time, and until when (s)."""
        ends = self._ends
        while ends and (ends[0][0] <= now or ends[0][1] not in self._of):
            work, processors = self._of.pop(heappop(ends)[1], (0, 0))
            self._sum -= work
            self._processors -= processors
        processors = self._processors
        return self._sum - int(now * UNIT) * processors, processors, ends[0][0] if ends else inf
