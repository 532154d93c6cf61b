"""The executions of a place: an index by expected end, their remaining work, and the elastic ones among them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = ["UNIT", "ElasticRuns", "Entry", "RunningIndex", "Watcher", "WorkLeft"]


class ElasticRuns:
    """The running elastic jobs in the order of their starts, which changes of size do not alter, and their sums.

    A start, an end or a change of size costs O(log n), a question O(1).

    Parameters
    ----------
    entries
        the current executions: (expected end in s, number, processors, run)

    Attributes
    ----------
    processors, minimum, preferred, maximum
        the sums of their present sizes and of those of their :class:`~simmodel.work.elastic.Elastic`
    limits
        the minimum and the maximum of each, in their order
    """

    __slots__ = ("_of", "_order", "limits", "maximum", "minimum", "preferred", "processors")

    def __init__(self, entries: Iterable[tuple[float, int, int, Any]]) -> None:
        self._order: list[tuple[float, int, LiveJob]] = []  # start (s), rank of submission, job
        self._of: dict[LiveJob, tuple[float, int, LiveJob]] = {}  # its place in the order
        self.limits: list[tuple[int, int]] = []
        self.processors = self.minimum = self.preferred = self.maximum = 0
        for entry in entries:
            self.started(entry)

    @property
    def jobs(self) -> list[LiveJob]:
        """A list of the jobs in the order of their starts, ties in the order of submission."""
        return [job for _, _, job in self._order]

    def started(self, entry: tuple[float, int, int, Any]) -> None:
        """Note an execution that was added, if its job is elastic."""
        run = entry[3]
        job: LiveJob = run.job
        elastic = job.elastic
        if elastic is None:
            return
        past = job.history
        begun = run.started if past is None or past.attempt_start is None else past.attempt_start
        place = begun, job.seq, job
        row = bisect_left(self._order, place)
        self._order.insert(row, place)
        self.limits.insert(row, (elastic.minimum, elastic.maximum))
        self._of[job] = place
        self.processors += job.processors
        self.minimum += elastic.minimum
        self.preferred += elastic.preferred
        self.maximum += elastic.maximum

    def ended(self, entry: tuple[float, int, int, Any]) -> None:
        """Note an execution that was removed."""
        job: LiveJob = entry[3].job
        elastic = job.elastic
        if elastic is None:
            return
        row = bisect_left(self._order, self._of.pop(job))
        del self._order[row], self.limits[row]
        self.processors -= job.processors
        self.minimum -= elastic.minimum
        self.preferred -= elastic.preferred
        self.maximum -= elastic.maximum


UNIT = 2**20
"""Units per second: integer sums do not depend on their order."""


class WorkLeft:
    """The expected remaining work of executions from an instant on, in units of 2^-20 processor seconds.

    Executions past their expected end, or without one, count zero. A start, an end and a question are sums: the index
    has the executions in the order of their ends.

    Parameters
    ----------
    runs
        the index of the executions, which tells of starts and ends

    Attributes
    ----------
    endless
        the number of executions without an end
    changed
        functions that are called whenever an execution is added or removed
    """

    __slots__ = ("_now", "_overdue", "_processors", "_runs", "_sum", "changed", "endless")

    def __init__(self, runs: RunningIndex) -> None:
        self.changed: list[Callable[[], object]] = []
        self._runs = runs
        self._now = -inf  # the instant of the last question
        self._overdue: set[int] = set()  # the numbers of the executions that are past their ends at that instant
        self._sum = self._processors = self.endless = 0
        for entry in runs.entries():
            self.started(entry)

    def started(self, entry: Entry) -> None:
        """Add an execution of the index (hot path)."""
        for call in self.changed:
            call()
        end, number, processors, _ = entry
        if end == inf:
            self.endless += 1
        elif end <= self._now:
            self._overdue.add(number)
        else:
            self._sum += int(end * UNIT) * processors
            self._processors += processors

    def ended(self, entry: Entry) -> None:
        """Remove an execution of the index (hot path)."""
        for call in self.changed:
            call()
        end, number, processors, _ = entry
        if end == inf:
            self.endless -= 1
        elif number in self._overdue:
            self._overdue.remove(number)
        else:
            self._sum -= int(end * UNIT) * processors
            self._processors -= processors

    def at(self, now: float) -> int:
        """Return the work left at an instant (s); instants must not decrease from call to call."""
        return self.line(now)[0]

    def line(self, now: float) -> tuple[int, int, float]:
        """Return the work left at an instant (s), by how many units it falls per unit of time, and until when (s)."""
        runs, overdue = self._runs, self._overdue
        self._now = now
        entry = runs.nth(len(overdue))
        while entry is not None and entry[0] <= now:
            end, number, processors, _ = entry
            overdue.add(number)
            self._sum -= int(end * UNIT) * processors
            self._processors -= processors
            entry = runs.nth(len(overdue))
        processors = self._processors
        return self._sum - int(now * UNIT) * processors, processors, inf if entry is None else entry[0]


_BLOCK = 96
_FILLED = 72  # entries of a block that was not filled one by one: three quarters
INFINITY = float("inf")

Entry = tuple[float, int, int, Any]  # expected end, start number, processors, run


class Watcher(Protocol):
    """A listener to the starts and ends of the executions of an index."""

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

    Attributes
    ----------
    size, endless
        the number of executions, and of those without an expected end
    """

    __slots__ = ("_blocks", "_count", "_elastic", "_lasts", "_left", "_others", "_sums", "_watchers", "endless", "size")

    def __init__(self) -> None:
        self._blocks: list[list[Entry]] = [[]]
        self._lasts: list[Entry] = []  # the greatest entry of each block except the last
        self._sums: list[int] = [0]
        self.size = self.endless = 0
        self._count = 0
        self._left: WorkLeft | None = None  # created on first use, as is the next one
        self._elastic: ElasticRuns | None = None
        self._watchers: tuple[Watcher, ...] = ()
        self._others: tuple[Watcher, ...] = ()  # without that of elastic jobs

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return iter([entry[3] for block in self._blocks for entry in block])

    def entries(self) -> Iterator[Entry]:
        """Iterate over (expected end in s, start number, processors, run) in order."""
        for block in self._blocks:
            yield from block

    def watch(self, watcher: Watcher) -> None:
        """Notify a watcher of each execution that is added or removed from now on."""
        self._watchers = (*self._watchers, watcher)
        self._others = tuple([each for each in self._watchers if each is not self._elastic])

    @property
    def first_end(self) -> float:
        """The earliest expected end, in seconds; infinite if nothing runs."""
        block = self._blocks[0]
        return block[0][0] if block else INFINITY

    def nth(self, n: int) -> Entry | None:
        """Return the entry after the first ``n``, or ``None``."""
        for block in self._blocks:
            if n < len(block):
                return block[n]
            n -= len(block)
        return None

    def add(self, run: Held, processors: int) -> None:
        """Add an execution with its number of processors."""
        number = self._count = self._count + 1
        entry = run.entry = (run.expected_end, number, processors, run)
        self.size += 1
        if entry[0] == INFINITY:
            self.endless += 1
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
        if self.size or self._watchers or self._left is not None:
            for run, processors in runs:
                self.add(run, processors)
            return
        entries = []
        for number, (run, processors) in enumerate(runs, self._count + 1):
            entry = run.entry = (run.expected_end, number, processors, run)
            entries.append(entry)
        self.size = len(entries)
        self.endless = sum([entry[0] == INFINITY for entry in entries])
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
        self.size -= 1
        if entry[0] == INFINITY:
            self.endless -= 1
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

    def replace(self, former: Held, run: Held, processors: int, more: int) -> None:
        """Replace an execution by the next one of the same job, which is elastic and has ``more`` processors."""
        if self._others or self._lasts:
            watchers, self._watchers = self._watchers, self._others
            self.remove(former)
            self.add(run, processors)
            self._watchers = watchers
        else:  # one block: its entry moves
            entry, block = former.entry, self._blocks[0]
            former.entry = None
            self._count = number = self._count + 1
            run.entry = new = (run.expected_end, number, processors, run)
            del block[bisect_left(block, entry)]
            insort(block, new)
            self.endless += (new[0] == INFINITY) - (entry[0] == INFINITY)
            self._sums[0] += processors - entry[2]
        if self._elastic is not None:
            self._elastic.processors += more

    @property
    def left(self) -> WorkLeft:
        """The expected remaining work; maintained from its first use on."""
        if self._left is None:
            self._left = WorkLeft(self)
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
