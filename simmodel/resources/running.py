"""An index of the executions of a place by expected end."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from simmodel.resources.elastic_runs import ElasticRuns
from simmodel.resources.work_left import WorkLeft

__all__ = ["Entry", "RunningIndex", "Watcher"]

_BLOCK = 96
_FILLED = 72  # entries of a block that was not filled one by one: three quarters
INFINITY = float("inf")

Entry = tuple[float, int, int, Any]  # expected end, start number, processors, run


class Watcher(Protocol):
    """What is told of the starts and ends of the executions of an index."""

    def started(self, entry: Entry, /) -> None:
        """Note an execution that was added."""
        ...

    def ended(self, entry: Entry, /) -> None:
        """Note an execution that was removed."""
        ...


class Held(Protocol):
    """An execution in an index: its expected end (s) and its entry."""

    expected_end: float
    entry: Any


class RunningIndex:
    """Executions sorted by expected end, then by start, with sums of processors for a fast search.

    The entries are in blocks of at most 96, each with the sum of its processors: adding, removing and finding the time
    at which a number of processors is free cost about the square root of the number of executions.
    """

    __slots__ = ("_blocks", "_count", "_elastic", "_lasts", "_left", "_size", "_sums", "_watchers")

    def __init__(self) -> None:
        self._blocks: list[list[Entry]] = [[]]
        self._lasts: list[Entry] = []  # the greatest entry of each block except the last
        self._sums: list[int] = [0]
        self._size = 0
        self._count = 0
        self._left: WorkLeft | None = None  # created on first use, as is the next one
        self._elastic: ElasticRuns | None = None
        self._watchers: tuple[Watcher, ...] = ()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([entry[3] for block in self._blocks for entry in block])

    def entries(self) -> Iterator[Entry]:
        """Iterate over (expected end in s, start number, processors, run) in order."""
        for block in self._blocks:
            yield from block

    def watch(self, watcher: Watcher) -> None:
        """Tell a watcher of each execution that is added or removed from now on."""
        self._watchers = (*self._watchers, watcher)

    @property
    def first_end(self) -> float:
        """The earliest expected end, in seconds; infinite if nothing runs."""
        block = self._blocks[0]
        return block[0][0] if block else INFINITY

    def add(self, run: Held, processors: int) -> None:
        """Add an execution with its number of processors."""
        number = self._count = self._count + 1
        entry = run.entry = (run.expected_end, number, processors, run)
        self._size += 1
        for watcher in self._watchers:
            watcher.started(entry)
        lasts = self._lasts
        i = bisect_left(lasts, entry) if lasts else 0
        block = self._blocks[i]
        insort(block, entry)
        self._sums[i] += processors
        if len(block) > _BLOCK:
            self._split(i)

    def fill(self, runs: Iterable[tuple[Held, int]]) -> None:
        """Add executions, each with its number of processors, to an empty index: in order, but sorted at once."""
        if self._size or self._watchers or self._left is not None:
            for run, processors in runs:
                self.add(run, processors)
            return
        entries = []
        for number, (run, processors) in enumerate(runs, self._count + 1):
            entry = run.entry = (run.expected_end, number, processors, run)
            entries.append(entry)
        self._size = len(entries)
        self._count += len(entries)
        entries.sort()
        blocks = [entries[i : i + _FILLED] for i in range(0, len(entries), _FILLED)] or [[]]
        self._blocks = blocks
        self._lasts = [block[-1] for block in blocks[:-1]]
        self._sums = [sum([entry[2] for entry in block]) for block in blocks]

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
        """Remove an execution of the index."""
        entry = run.entry
        run.entry = None
        self._size -= 1
        for watcher in self._watchers:
            watcher.ended(entry)
        lasts = self._lasts
        block = self._blocks[0]
        i = 0
        if block[0] is entry:  # as is usual where executions end when expected
            del block[0]
        else:
            if lasts:
                i = bisect_left(lasts, entry)
                block = self._blocks[i]
            del block[bisect_left(block, entry)]
        self._sums[i] -= entry[2]
        if not block and lasts:
            del self._blocks[i], self._sums[i]
            del lasts[min(i, len(lasts) - 1)]

    def replace(self, former: Held, run: Held, processors: int) -> None:
        """Replace an execution by the next one of the same job, which is elastic and has another size."""
        elastic, watchers = self._elastic, self._watchers
        self._watchers = tuple([each for each in watchers if each is not elastic])
        self.remove(former)
        self.add(run, processors)
        self._watchers = watchers
        if elastic is not None:
            elastic.resized(run.entry[3].job)

    @property
    def left(self) -> WorkLeft:
        """The expected remaining work; maintained from its first use on."""
        if self._left is None:
            self._left = WorkLeft(self.entries())
            self.watch(self._left)
        return self._left

    @property
    def elastic(self) -> ElasticRuns:
        """The executions of elastic jobs; maintained from its first use on."""
        if self._elastic is None:
            self._elastic = ElasticRuns(self.entries())
            self.watch(self._elastic)
        return self._elastic

    def when_free(self, missing: int, now: float) -> tuple[float, int]:
        """Return the instant (s) at which ``missing`` more processors are free, and the surplus then.

        Executions past their expected end are expected to end now; all ends at the instant count. The instant is
        infinite if too few processors ever come free.
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
