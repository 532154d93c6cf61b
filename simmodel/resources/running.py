"""The executions of a place in the order of their expected ends."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Protocol

from simmodel.resources.work_left import WorkLeft

__all__ = ["RunningIndex"]

_BLOCK = 96

Entry = tuple[float, int, int, Any]  # expected end, start number, processors, run


class Held(Protocol):
    """What an index knows of an execution: when it is expected to end (s), and where it stands in the index."""

    expected_end: float
    entry: Any


class RunningIndex:
    """Executions sorted by expected end, then by start; with sums, so that the earliest free time is found fast.

    The entries stand in blocks of at most 96 with the sum of their processors, so that adding, removing and looking
    for the time at which so many processors are free cost about the square root of the number that runs.
    """

    __slots__ = ("_blocks", "_count", "_lasts", "_left", "_size", "_sums")

    def __init__(self) -> None:
        self._blocks: list[list[Entry]] = [[]]
        self._lasts: list[Entry] = []  # of each block but the last one: its greatest entry
        self._sums: list[int] = [0]
        self._size = 0
        self._count = 0
        self._left: WorkLeft | None = None  # once somebody asked

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([entry[3] for block in self._blocks for entry in block])

    def entries(self) -> Iterator[Entry]:
        """Iterate over (expected end in s, start number, processors, run) in order."""
        for block in self._blocks:
            yield from block

    def add(self, run: Held, processors: int) -> None:
        """Add an execution that holds so many processors."""
        number = self._count = self._count + 1
        entry = (run.expected_end, number, processors, run)
        run.entry = entry  # where it stands, for remove()
        self._size += 1
        if self._left is not None:
            self._left.add(*entry[:3])
        lasts = self._lasts
        i = bisect_left(lasts, entry) if lasts else 0
        block = self._blocks[i]
        insort(block, entry)
        self._sums[i] += processors
        if len(block) > _BLOCK:
            self._split(i)

    def _split(self, i: int) -> None:
        block = self._blocks[i]
        half = len(block) // 2
        left, right = block[:half], block[half:]
        self._blocks[i : i + 1] = [left, right]
        self._lasts.insert(i, left[-1])
        moved = sum(entry[2] for entry in right)
        self._sums[i] -= moved
        self._sums.insert(i + 1, moved)

    def remove(self, run: Held) -> None:
        """Remove an execution that is in the index."""
        entry = run.entry
        run.entry = None
        self._size -= 1
        if self._left is not None:
            self._left.remove(*entry[:2])
        lasts = self._lasts
        i = bisect_left(lasts, entry) if lasts else 0
        block = self._blocks[i]
        self._sums[i] -= entry[2]
        del block[bisect_left(block, entry)]
        if not block and lasts:
            del self._blocks[i], self._sums[i]
            del lasts[min(i, len(lasts) - 1)]

    @property
    def left(self) -> WorkLeft:
        """The expected work of what runs; kept at each start and end from the first question on."""
        if self._left is None:
            self._left = WorkLeft(self.entries())
        return self._left

    def when_free(self, missing: int, now: float) -> tuple[float, int]:
        """Return the instant (s) at which so many more processors are free, and how many more than that.

        Whoever is past its expected end is expected to end now; all that end at the instant count.
        Where too little ever comes free the instant is infinite.
        """
        gathered = 0
        blocks, sums = self._blocks, self._sums
        for i, total in enumerate(sums):
            if gathered + total < missing:
                gathered += total
                continue
            entries = iter(blocks[i])
            at = now
            for end, _, processors, _ in entries:
                gathered += processors
                if gathered >= missing:
                    at = max(end, now)
                    break
            for later, _, processors, _ in entries:
                if later > at:
                    return at, gathered - missing
                gathered += processors
            for block in blocks[i + 1 :]:
                for later, _, processors, _ in block:
                    if later > at:
                        return at, gathered - missing
                    gathered += processors
            return at, gathered - missing
        return float("inf"), 0
