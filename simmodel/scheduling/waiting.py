"""The waiting jobs of a place: in the order of arrival, and in any other order that a policy asks for.

Nothing here is sorted at a decision unless its order changes with time; an index is kept from the first time a policy
asks for it, and only then.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.pool import Pool
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["Lanes", "MergedQueues", "SortedJobs", "WaitingQueue"]

_BLOCK = 128
INFINITY = float("inf")
Entry = tuple[Any, ...]  # (key, ..., submit, sequence number, job): comparisons end at the number


class Index(Protocol):
    """What a queue keeps informed."""

    def add(self, job: LiveJob) -> None:
        """Take a job in."""
        ...

    def remove(self, job: LiveJob) -> None:
        """Take a job out."""
        ...


def _entry(job: LiveJob, key: Callable[[LiveJob], Any] | None) -> Entry:
    """Return what the job is sorted by: its priority, the key, its submission."""
    if key is None:
        return (-job.priority, job.submit, job.seq, job)
    return (-job.priority, key(job), job.submit, job.seq, job)


class SortedJobs:
    """Waiting jobs sorted by a key that does not change while they wait, ties by submission.

    Entries stand in blocks of at most 128, so that adding and removing cost about the square root of the queue.
    """

    __slots__ = ("_blocks", "_key", "_lasts")

    def __init__(self, key: Callable[[LiveJob], Any] | None) -> None:
        self._key = key
        self._blocks: list[list[Entry]] = [[]]
        self._lasts: list[Entry] = []  # of each block but the last one: its greatest entry

    def add(self, job: LiveJob) -> None:
        """Take a job in."""
        self.insert(_entry(job, self._key))

    def insert(self, entry: Entry) -> int:
        """Take an entry in; return the number of its block."""
        lasts = self._lasts
        i = bisect_left(lasts, entry) if lasts else 0
        block = self._blocks[i]
        if not block or entry > block[-1]:
            block.append(entry)
        else:
            insort(block, entry)
        if len(block) > _BLOCK:
            self._split(i)
        return i

    def _split(self, i: int) -> None:
        # A queue that grows at its end keeps full blocks; one that grows anywhere keeps halves.
        block = self._blocks[i]
        cut = len(block) - 1 if i == len(self._blocks) - 1 else len(block) // 2
        self._blocks[i : i + 1] = [block[:cut], block[cut:]]
        self._lasts.insert(i, block[cut - 1])

    def remove(self, job: LiveJob) -> None:
        """Take a job out."""
        self.discard(_entry(job, self._key))

    def discard(self, entry: Entry) -> int:
        """Take an entry out; return the number of its block, inverted (``~i``) where the block went with it."""
        lasts = self._lasts
        i = bisect_left(lasts, entry) if lasts else 0
        block = self._blocks[i]
        del block[bisect_left(block, entry)]
        if not block and lasts:
            del self._blocks[i]
            del lasts[min(i, len(lasts) - 1)]
            return ~i
        return i

    def head(self) -> LiveJob | None:
        """Return the first job, or ``None``."""
        block = self._blocks[0]
        return block[0][-1] if block else None

    def __iter__(self) -> Iterator[LiveJob]:
        """Iterate in order; what is started drops out, each remaining job comes once."""
        last: Entry | None = None
        while True:
            entry = self._after(last)
            if entry is None:
                return
            last = entry
            yield entry[-1]

    def _after(self, last: Entry | None) -> Entry | None:
        if last is None:
            return self._blocks[0][0] if self._blocks[0] else None
        i = bisect_left(self._lasts, last) if self._lasts else 0
        while i < len(self._blocks):
            block = self._blocks[i]
            j = bisect_left(block, last)
            if j < len(block) and block[j] == last:
                j += 1
            if j < len(block):
                return block[j]
            i += 1
        return None


class _Lane(SortedJobs):
    """Waiting jobs of one size in queue order, with a lower bound of the requested times in each block.

    Removing leaves the bounds as they are; a block that was looked through in vain gets its exact one.
    """

    __slots__ = ("least", "mins")

    def __init__(self) -> None:
        super().__init__(None)
        self.mins: list[float] = [INFINITY]
        self.least = INFINITY

    def insert(self, entry: Entry) -> int:
        blocks = len(self._blocks)
        i = super().insert(entry)
        requested = entry[-1].requested
        if len(self._blocks) != blocks:
            self.mins[i : i + 1] = [min(e[-1].requested for e in block) for block in self._blocks[i : i + 2]]
        elif requested < self.mins[i]:
            self.mins[i] = requested
        if requested < self.least:
            self.least = requested
        return i

    def discard(self, entry: Entry) -> int:
        i = super().discard(entry)
        if i < 0:
            del self.mins[~i]
        elif not self._blocks[0]:
            self.mins[0] = self.least = INFINITY
        return i

    def first(self, limit: float) -> Entry | None:
        """Return the first entry that requests at most ``limit`` seconds."""
        for i, least in enumerate(self.mins):
            if least <= limit:
                block = self._blocks[i]
                for entry in block:
                    if entry[-1].requested <= limit:
                        return entry
                self.mins[i] = min([e[-1].requested for e in block], default=INFINITY)
        self.least = min(self.mins)
        return None


class Lanes:
    """Waiting jobs in one lane for each number of processors: the index that backfilling asks.

    The first job in queue order that fits is found by looking at the first suitable one of each lane that is narrow
    enough, so that the cost depends on the number of different sizes and hardly on how many wait. Jobs that come are
    sorted in when the index is next asked: many have started by then.
    """

    __slots__ = ("_entries", "_key", "_lanes", "_late", "_sizes")

    def __init__(self, key: Callable[[LiveJob], Any] | None) -> None:
        self._key = key
        self._lanes: dict[int, _Lane] = {}
        self._sizes: list[int] = []  # of lanes with jobs in them, ascending
        self._entries: dict[LiveJob, Entry] = {}  # of the jobs that are sorted in
        self._late: list[LiveJob] = []

    def add(self, job: LiveJob) -> None:
        """Take a job in."""
        self._late.append(job)

    def remove(self, job: LiveJob) -> None:
        """Take a job out."""
        entry = self._entries.pop(job, None)
        if entry is not None:
            lane = self._lanes[job.processors]
            lane.discard(entry)
            if not lane._blocks[0]:
                del self._sizes[bisect_left(self._sizes, job.processors)]

    def _sort_in(self) -> None:
        entries, lanes, key = self._entries, self._lanes, self._key
        for job in self._late:
            if job.state != "waiting" or job in entries:
                continue
            entry = entries[job] = _entry(job, key)
            lane = lanes.get(job.processors)
            if lane is None:
                lane = lanes[job.processors] = _Lane()
            if not lane._blocks[0]:
                insort(self._sizes, job.processors)
            lane.insert(entry)
        self._late.clear()

    @property
    def narrowest(self) -> float:
        """The least number of processors that any waiting job asks for; infinite where none waits."""
        if self._late:
            self._sort_in()
        return self._sizes[0] if self._sizes else INFINITY

    def first_fitting(self, free: int, limit: float, extra: int) -> LiveJob | None:
        """Return the first job that fits in ``free`` and requests at most ``limit`` s, or fits in ``extra`` as well."""
        if self._late:
            self._sort_in()
        best: Entry | None = None
        lanes = self._lanes
        for size in self._sizes:
            if size > free:
                break
            lane = lanes[size]
            if size <= extra:
                entry: Entry | None = lane._blocks[0][0]
            elif lane.least <= limit:
                entry = lane.first(limit)
            else:
                continue
            if entry is not None and (best is None or entry < best):
                best = entry
        return None if best is None else best[-1]

    def widest_fitting(self, free: int) -> LiveJob | None:
        """Return the first job among those that leave the fewest processors free."""
        if self._late:
            self._sort_in()
        i = bisect_left(self._sizes, free + 1) - 1
        return self._lanes[self._sizes[i]]._blocks[0][0][-1] if i >= 0 else None


class WaitingQueue:
    """The jobs that wait for a place, in the order of arrival (priority classes are an affair of the orders).

    Iterating gives a live cursor: what is started drops out, each remaining job comes once.

    Attributes
    ----------
    new
        the jobs that came since the last decision
    count
        how many wait
    with_priorities
        whether any had a priority so far: then the order of arrival is not the order of the queue
    """

    __slots__ = ("_env", "_first", "_indexes", "_last", "_updates", "count", "new", "with_priorities")

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._first: LiveJob | None = None
        self._last: LiveJob | None = None
        self.count = 0
        self._indexes: dict[tuple[str, OrderLike], Any] = {}
        self._updates: list[Index] = []  # the indexes that are told of each coming and going
        self.with_priorities = False
        self.new: list[LiveJob] = []

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[LiveJob]:
        job = self._first
        while job is not None:
            if job.state == "waiting":
                yield job
            job = job.later

    def head(self) -> LiveJob | None:
        """Return the job that arrived first, or ``None``."""
        return self._first

    def heads(self) -> list[LiveJob]:
        """Return the job that arrived first, as a list of one or none (see :meth:`MergedQueues.heads`)."""
        return [] if self._first is None else [self._first]

    def at(self, _place: Any) -> WaitingQueue:
        """Return the jobs that wait for a place: of a scheduler with one place, all."""
        return self

    def add(self, job: LiveJob) -> None:
        """Take a job in, at its place by (submit, sequence number): one that comes back goes where it was."""
        job.state = "waiting"
        last = self._last
        if last is None:
            job.earlier = job.later = None
            self._first = self._last = job
        elif last.seq < job.seq and last.submit <= job.submit:
            job.earlier, job.later = last, None
            last.later = self._last = job
        else:
            self._insert(job)
        self.count += 1
        self.new.append(job)
        if job.priority:
            self._note_priorities()
        for index in self._updates:
            index.add(job)

    def forget_new(self) -> None:
        """Start the next decision's list of new jobs."""
        self.new.clear()

    def _insert(self, job: LiveJob) -> None:
        key = (job.submit, job.seq)
        after = self._first
        while after is not None and (after.submit, after.seq) < key:
            after = after.later
        job.later = after
        job.earlier = after.earlier if after is not None else self._last
        if job.earlier is None:
            self._first = job
        else:
            job.earlier.later = job
        if after is None:
            self._last = job
        else:
            after.earlier = job

    def _note_priorities(self) -> None:
        """From the first job with a priority on, the order of arrival is not the order of the queue."""
        if not self.with_priorities:
            self.with_priorities = True
            for name, index in list(self._indexes.items()):
                if index is self:
                    del self._indexes[name]

    def remove(self, job: LiveJob) -> None:
        """Take a job out; the caller gives it its new state, and cursors that stand on it go on behind it."""
        before, after = job.earlier, job.later
        if before is None:
            self._first = after
        else:
            before.later = after
        if after is None:
            self._last = before
        else:
            after.earlier = before
        self.count -= 1
        for index in self._updates:
            index.remove(job)

    # ------------------------------------------------------------------ indexes

    def by(self, order: OrderLike) -> Any:
        """Return the jobs in an order: ``head()`` is its first, iterating gives a live cursor.

        An order whose key does not change while work waits is kept as an index from now on; one that changes with
        time is evaluated when asked.
        """
        found = self._indexes.get(("by", order))
        if found is None:
            if order.key is None and not self.with_priorities:
                found = self._indexes["by", order] = self
            else:
                found = self._keep("by", order, lambda: SortedJobs(order.key))
        return found

    def lanes(self, order: OrderLike) -> Any:
        """Return the index that finds the first fitting job in an order (see :class:`Lanes`)."""
        found = self._indexes.get(("lanes", order))
        if found is None:
            found = self._keep("lanes", order, lambda: Lanes(order.key))
        return found

    def keep(self, index: Index) -> None:
        """Tell an index of the jobs that wait, and from now on of those that come and go."""
        for job in self:
            index.add(job)
        self._updates.append(index)

    def _keep(self, kind: str, order: OrderLike, make: Callable[[], Any]) -> Any:
        if order.changes:
            for (_, other), index in self._indexes.items():
                if other == order:  # one index by columns serves both questions
                    self._indexes[kind, order] = index
                    return index
        if order.changes:
            from simmodel.scheduling.column_index import ColumnIndex

            index = ColumnIndex(order, self._env)
        else:
            index = make()
        for job in self:
            index.add(job)
        self._indexes[kind, order] = index
        self._updates.append(index)
        return index


class MergedQueues:
    """The waiting jobs of all places of a scheduler, in the order of arrival; ``at(place)`` gives one's own."""

    __slots__ = ("_queues",)

    def __init__(self, queues: dict[Any, WaitingQueue]) -> None:
        self._queues = queues

    def at(self, place: Pool) -> WaitingQueue:
        """Return the jobs that wait for a place."""
        return self._queues[place]

    def heads(self) -> list[LiveJob]:
        """Return the job that arrived first at each place where any waits, in the order of the places."""
        return [queue._first for queue in self._queues.values() if queue._first is not None]

    @property
    def new(self) -> list[LiveJob]:
        """The jobs that came since the last decision."""
        return [job for queue in self._queues.values() for job in queue.new]

    def forget_new(self) -> None:
        """Start the next decision's list of new jobs."""
        for queue in self._queues.values():
            queue.new.clear()

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def __bool__(self) -> bool:
        return any(queue.count for queue in self._queues.values())

    def __iter__(self) -> Iterator[LiveJob]:
        cursors = merge(*self._queues.values(), key=lambda job: (job.submit, job.seq))
        return (job for job in cursors if job.state == "waiting")
