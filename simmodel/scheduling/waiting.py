"""The waiting jobs of a place, in order of arrival and in any order that a policy requests.

An index is created when a policy first requests an order, and maintained from then on. Decisions sort nothing unless
the order changes with time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from simmodel.foundation.errors import InputError
from simmodel.work.job import Queued, entry_of

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["Lanes", "MergedQueues", "SortedJobs", "WaitingQueue"]

_BLOCK = 128
INFINITY = float("inf")
W = TypeVar("W", bound=Queued)
Entry = tuple[Any, ...]  # (key, ..., submit, sequence number, job): comparisons end at the number


class Index(Protocol):
    """An index of the jobs of a queue."""

    def add(self, job: LiveJob) -> None:
        """Add a job."""
        ...

    def remove(self, job: LiveJob) -> None:
        """Remove a job."""
        ...


class SortedJobs:
    """Waiting jobs sorted by a constant key, ties by submission.

    Entries are in blocks of at most 128: adding and removing cost about the square root of the queue length.
    """

    __slots__ = ("_blocks", "_key", "_lasts")

    def __init__(self, key: Callable[[LiveJob], Any] | None) -> None:
        self._key = key
        self._blocks: list[list[Entry]] = [[]]
        self._lasts: list[Entry] = []  # the greatest entry of each block except the last

    def add(self, job: LiveJob) -> None:
        self.insert(entry_of(job, self._key))

    def fill(self, entries: list[Entry]) -> None:
        """Add entries, sorted, to an empty index."""
        self._blocks = [entries[i : i + _BLOCK] for i in range(0, len(entries), _BLOCK)] or [[]]
        self._lasts = [block[-1] for block in self._blocks[:-1]]

    def insert(self, entry: Entry) -> int:
        """Add an entry; return the index of its block."""
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
        # The last block is split at its end, so that a queue that grows at the end has full blocks; others in half.
        block = self._blocks[i]
        cut = len(block) - 1 if i == len(self._blocks) - 1 else len(block) // 2
        self._blocks[i : i + 1] = [block[:cut], block[cut:]]
        self._lasts.insert(i, block[cut - 1])

    def remove(self, job: LiveJob) -> None:
        self.discard(entry_of(job, self._key))

    def discard(self, entry: Entry) -> int:
        """Remove an entry; return the index ``i`` of its block, or ``~i`` if the block became empty and is gone."""
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
        """Iterate in order, each job once; jobs started meanwhile are skipped."""
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


class _Arrivals(SortedJobs):
    """Waiting jobs in order of arrival."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)

    def add(self, job: LiveJob) -> None:
        self.insert((job.submit, job.seq, job))

    def remove(self, job: LiveJob) -> None:
        self.discard((job.submit, job.seq, job))

    def next(self, job: LiveJob) -> LiveJob | None:
        """Return the first job that arrived after a job."""
        entry = self._after((job.submit, job.seq))
        return None if entry is None else entry[-1]


class _Lane(SortedJobs):
    """Waiting jobs of one size in queue order, with a lower bound of the requested times in each block.

    Removal does not update the bounds; a block searched in vain gets its exact bound.
    """

    __slots__ = ("least", "mins")

    def __init__(self) -> None:
        super().__init__(None)
        self.mins: list[float] = [INFINITY]
        self.least = INFINITY

    def fill(self, entries: list[Entry]) -> None:
        super().fill(entries)
        self.mins = [_least(block) for block in self._blocks]
        self.least = min(self.mins)

    def insert(self, entry: Entry) -> int:
        requested = entry[-1].planned
        last = self._blocks[-1]
        if (not last or entry > last[-1]) and len(last) < _BLOCK:  # nearly all
            last.append(entry)
            if requested < self.mins[-1]:
                self.mins[-1] = requested
            if requested < self.least:
                self.least = requested
            return len(self._blocks) - 1
        blocks = len(self._blocks)
        i = SortedJobs.insert(self, entry)
        if len(self._blocks) != blocks:
            self.mins[i : i + 1] = [min(e[-1].planned for e in block) for block in self._blocks[i : i + 2]]
        elif requested < self.mins[i]:
            self.mins[i] = requested
        if requested < self.least:
            self.least = requested
        return i

    def discard(self, entry: Entry) -> int:
        i = SortedJobs.discard(self, entry)
        if i < 0:
            del self.mins[~i]
        elif not self._blocks[0]:
            self.mins[0] = self.least = INFINITY
        return i

    def first(self, limit: float) -> Entry | None:
        """Return the first entry with a requested time of at most ``limit`` seconds, or ``None``."""
        for i, least in enumerate(self.mins):
            if least <= limit:
                block = self._blocks[i]
                for entry in block:
                    if entry[-1].planned <= limit:
                        return entry
                self.mins[i] = _least(block)
        self.least = min(self.mins)
        return None


def _least(block: list[Entry]) -> float:
    """Return the smallest requested time (s) of some entries; infinite if there are none."""
    return min([entry[-1].planned for entry in block], default=INFINITY)


class Lanes(Generic[W]):
    """Waiting jobs in one lane per width: the index for backfilling.

    The first fitting job in queue order is the first among the first suitable jobs of the narrow enough lanes, so the
    cost depends on the number of different sizes and hardly on the queue length. New jobs are inserted at the next
    question: many have started by then.
    """

    __slots__ = ("_entries", "_key", "_lanes", "_late", "_sizes")

    def __init__(self, key: Callable[[W], Any] | None) -> None:
        self._key = key
        self._lanes: dict[int, _Lane] = {}
        self._sizes: list[int] = []  # of non-empty lanes, ascending
        self._entries: dict[W, Entry] = {}  # of inserted jobs
        self._late: list[W] = []  # not inserted yet

    def add(self, job: W) -> None:
        self._late.append(job)

    def remove(self, job: W) -> None:
        """Remove a job."""
        late = self._late
        if late and late[-1] is job:
            late.pop()
            return
        entry = self._entries.pop(job, None)
        if entry is not None:
            lane = self._lanes[job.width]
            first = lane._blocks[0]
            if first[0] is entry and len(first) > 1:  # heads leave most often
                del first[0]
                return
            lane.discard(entry)
            if not lane._blocks[0]:
                del self._sizes[bisect_left(self._sizes, job.width)]

    def _sort_in(self) -> None:
        entries, lanes, key = self._entries, self._lanes, self._key
        if not lanes:
            self._fill()
            return
        for job in self._late:
            if job.state != "waiting" or job in entries:
                continue
            entry = entries[job] = entry_of(job, key)
            lane = lanes.get(job.width)
            if lane is None:
                lane = lanes[job.width] = _Lane()
            if not lane._blocks[0]:
                insort(self._sizes, job.width)
            lane.insert(entry)
        self._late.clear()

    def _fill(self) -> None:
        """Insert the first jobs: sorted at once."""
        key = self._key
        self._entries = {job: entry_of(job, key) for job in self._late if job.state == "waiting"}
        self._late.clear()
        widths: dict[int, list[Entry]] = {}
        for entry in sorted(self._entries.values()):
            widths.setdefault(entry[-1].width, []).append(entry)
        for width, entries in widths.items():
            self._lanes[width] = lane = _Lane()
            lane.fill(entries)
        self._sizes = sorted(widths)

    @property
    def narrowest(self) -> float:
        """The smallest width of a waiting job; infinite if none waits."""
        if self._late:
            self._sort_in()
        return self._sizes[0] if self._sizes else INFINITY

    def first_fitting(self, free: int, limit: float, extra: int) -> W | None:
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

    def widths(self, free: int, limit: Callable[[int], float]) -> set[int]:
        """Return the widths up to ``free`` of which a job requests at most the limit (s) of its width."""
        if self._late:
            self._sort_in()
        found = set()
        for size in self._sizes:
            if size > free:
                break
            lane, most = self._lanes[size], limit(size)
            if lane.least <= most and lane.first(most) is not None:
                found.add(size)
        return found

    def widest_fitting(self, free: int) -> W | None:
        """Return the first of the jobs that leave the fewest processors free, or ``None`` if none fits."""
        if self._late:
            self._sort_in()
        i = bisect_left(self._sizes, free + 1) - 1
        return self._lanes[self._sizes[i]]._blocks[0][0][-1] if i >= 0 else None


class WaitingQueue:
    """The jobs that wait for a place, in order of arrival; priorities count in the orders of :meth:`by` only.

    Iteration is live: it returns each job once and skips those started meanwhile.

    Attributes
    ----------
    new
        the jobs that arrived since the last decision
    count
        the number of waiting jobs
    with_priorities
        whether any job so far had a priority: then the queue order differs from the order of arrival
    """

    __slots__ = (
        *("_arrivals", "_env", "_first", "_indexes", "_lanes", "_last", "_updates"),
        *("count", "new", "with_priorities"),
    )

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._first: LiveJob | None = None
        self._last: LiveJob | None = None
        self.count = 0
        self._indexes: dict[tuple[str, OrderLike], Any] = {}
        self._lanes: tuple[OrderLike | None, Any] = (None, None)  # the index of them that was asked for last
        self._updates: list[Index] = []  # the indexes to keep up to date
        self._arrivals: _Arrivals | None = None  # from the first job on that returns to a long queue
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
        """Return the job that arrived first as a list, empty if none waits (see :meth:`MergedQueues.heads`)."""
        return [] if self._first is None else [self._first]

    def at(self, _place: Any) -> WaitingQueue:
        """Return the jobs that wait for a place: all, since the scheduler has one place."""
        return self

    def add(self, job: LiveJob) -> None:
        """Add a job in order of (submit, sequence number), so that a returning job gets its old position."""
        job.state = "waiting"
        submit = job._submit = job.submit
        priority = job._priority = job.priority
        last = self._last
        if last is None:
            job.earlier = job.later = None
            self._first = self._last = job
        elif last.seq < job.seq and last.submit <= submit:
            job.earlier = last
            job.later = None
            last.later = self._last = job
        else:
            self._insert(job)
        self.count += 1
        self.new.append(job)
        if priority:
            self.with_priorities = True
        for index in self._updates:
            index.add(job)

    def forget_new(self) -> None:
        """Clear the list of new jobs after a decision."""
        self.new.clear()

    def _insert(self, job: LiveJob) -> None:
        after = self._next(job)
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

    def _next(self, job: LiveJob) -> LiveJob | None:
        """Return the first waiting job that arrived after a job."""
        if self._arrivals is not None:
            return self._arrivals.next(job)
        if self.count > _BLOCK:
            self._arrivals = _Arrivals()
            self.keep(self._arrivals)
            return self._arrivals.next(job)
        key = (job.submit, job.seq)
        after = self._first
        while after is not None and (after.submit, after.seq) < key:
            after = after.later
        return after

    def remove(self, job: LiveJob) -> None:
        """Remove a job, whose new state the caller sets; iterations at this job continue after it."""
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

    def withdraw(self, job: LiveJob) -> None:
        """Remove a job that does not start: it is not new either."""
        self.remove(job)
        if job in self.new:
            self.new.remove(job)

    # ------------------------------------------------------------------ indexes

    def by(self, order: OrderLike) -> Any:
        """Return the jobs in an order: ``head()`` is the first, iteration is live.

        An order with a constant key is maintained as an index from now on; one that changes with time is evaluated on
        demand.

        Raises
        ------
        InputError
            it is no order, but for instance the name of one
        """
        try:
            key = order.key
        except AttributeError:
            hint = f", which simmodel.policies.order({order!r}) returns" if isinstance(order, str) else ""
            raise InputError(f"view.waiting.by: must be an Order{hint}, got {order!r}") from None
        if key is None and not self.with_priorities:
            return self
        found = self._indexes.get(("by", order))
        if found is None:
            found = self._keep("by", order, lambda: SortedJobs(key))
        return found

    def lanes(self, order: OrderLike) -> Any:
        """Return the index for the first fitting job in an order (see :class:`Lanes`)."""
        last, found = self._lanes
        if last is not order:
            found = self._indexes.get(("lanes", order))
            if found is None:
                found = self._keep("lanes", order, lambda: Lanes(order.key))
            self._lanes = order, found
        return found

    def keep(self, index: Index) -> None:
        """Fill an index with the waiting jobs, and keep it up to date from now on."""
        for job in self:
            index.add(job)
        self._updates.append(index)

    def _keep(self, kind: str, order: OrderLike, make: Callable[[], Any]) -> Any:
        if order.changes:
            for (_, other), index in self._indexes.items():
                if other == order:  # one column index serves both purposes
                    self._indexes[kind, order] = index
                    return index
        if order.changes:
            from simmodel.scheduling.column_index import ColumnIndex

            index = ColumnIndex(order, self._env)
            index.fill(self)
        else:
            index = make()
            for job in self:
                index.add(job)
        self._indexes[kind, order] = index
        self._updates.append(index)
        return index


class MergedQueues:
    """The waiting jobs of all places of a scheduler, in order of arrival; ``at(place)`` returns those of one place.

    A job that waits for several places is in the queue of each, with one entry for each, and here once.

    Attributes
    ----------
    choices
        such jobs: from each of their entries to all of them, in order of preference; the first is the job itself
    """

    __slots__ = ("_extra", "_queues", "choices")

    def __init__(self, queues: dict[Any, WaitingQueue]) -> None:
        self._queues = queues
        self.choices: dict[LiveJob, tuple[LiveJob, ...]] = {}
        self._extra = 0

    def add_choices(self, entries: tuple[LiveJob, ...]) -> None:
        """Note the entries of a job that is about to join several queues."""
        for entry in entries:
            self.choices[entry] = entries
        self._extra += len(entries) - 1

    def remove_choices(self, entries: tuple[LiveJob, ...]) -> None:
        for entry in entries:
            del self.choices[entry]
        self._extra -= len(entries) - 1

    def counts(self, job: LiveJob) -> bool:
        """Whether a job of a queue counts in totals: of several entries, only the first does."""
        return not self.choices or self.choices.get(job, (job,))[0] is job

    def at(self, place: Pool) -> WaitingQueue:
        return self._queues[place]

    def heads(self) -> list[LiveJob]:
        """Return the job that arrived first at each place, in the order of the places; none for an empty queue."""
        return [queue._first for queue in self._queues.values() if queue._first is not None]

    @property
    def new(self) -> list[LiveJob]:
        """The jobs that arrived since the last decision."""
        return [job for queue in self._queues.values() for job in queue.new if self.counts(job)]

    def forget_new(self) -> None:
        """Clear the list of new jobs after a decision."""
        for queue in self._queues.values():
            queue.new.clear()

    @property
    def count(self) -> int:
        return sum([queue.count for queue in self._queues.values()]) - self._extra

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return any(queue.count for queue in self._queues.values())

    def __iter__(self) -> Iterator[LiveJob]:
        cursors = merge(*self._queues.values(), key=lambda job: (job.submit, job.seq))
        return (job for job in cursors if job.state == "waiting" and self.counts(job))
