"""The backfill loop over nodes of one core, all alike: the starts of :class:`BackfillCycle`, found with fewer plans.

A cycle ends once no job left can start and what it tells the next cycles is known. Until a job starts or ends, the
next cycle goes on where it has ended: the plans of the jobs ahead hold until an instant that is known with them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import inf
from operator import and_, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from simmodel_site.policy.backfill import Kind, Tallies, kind_of
from simmodel_site.policy.selection import choose_alike

if TYPE_CHECKING:
    from simmodel.extending import Allocation
    from simmodel_site.policy.board import Pending
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["AlikeCycle", "AlikeTable"]


class AlikeTable:
    """The nodes, as bits, that no planned job has in each slot of time (s, whole).

    Attributes
    ----------
    begins, free
        the begin of each slot, and its nodes
    gained
        the nodes of each slot but the first that the one before lacks
    end
        the end of the last slot

    >>> table = AlikeTable(0, 600, 0b111, 60)
    >>> table.reserve(60, 120, 0b001), table.begins, table.free, table.gained
    (2, [0, 60, 120], [7, 6, 7], [0, 1])
    """

    def __init__(self, begin: int, end: int, nodes: int, resolution: int) -> None:
        self.begins, self.free, self.gained = [begin], [nodes], list[int]()
        self.end = end
        self._nodes, self._resolution = nodes, resolution
        self._gains: list[int] | None = None

    def reserve(self, begin: int, end: int, nodes: int) -> int:
        """Keep nodes for a planned job in a span of time, of one slot at least; return the number of new records."""
        begins, free, gained = self.begins, self.free, self.gained
        begin = max(begin, begins[0])
        end = max(end, begin + self._resolution)
        if begin > self.end:
            return 0
        made = 0
        self._gains = None
        first = last = bisect_left(begins, begin, 1)  # the slot before it is the first that ends at the begin or later
        before = max(first - 2, 0)
        if self._end_of(first - 1) > begin:
            self._split(first, begin)
            made = 1
        if first < len(begins):
            last = bisect_left(begins, end, first + 1)  # the first slot that is not touched
            if end < self._end_of(last - 1):
                self._split(last, end)
                made += 1
            keep = self._nodes ^ nodes
            free[first:last] = [each & keep for each in free[first:last]]
            gained[first - 1 : last - 1] = [each & keep for each in gained[first - 1 : last - 1]]
            if last < len(begins):
                gained[last - 1] |= free[last] & nodes
        for i in range(before, min(last, len(begins) - 1)):
            if free[i] == free[i + 1]:
                del begins[i + 1], free[i + 1], gained[i]
                break
        return made

    def _end_of(self, slot: int) -> int:
        return self.begins[slot + 1] if slot + 1 < len(self.begins) else self.end

    def _split(self, slot: int, begin: int) -> None:
        """Divide the slot before this one, which begins at an instant."""
        self.begins.insert(slot, begin)
        self.free.insert(slot, self.free[slot - 1])
        self.gained.insert(slot - 1, 0)

    @property
    def gains(self) -> list[int]:
        """The slots whose next one has a node that they lack."""
        if self._gains is None:
            self._gains = [i for i, nodes in enumerate(self.gained) if nodes]
        return self._gains

    def pass_to(self, begin: int, end: int) -> None:
        """Move the begin of the first slot and the end of the last one on."""
        self.begins[0], self.end = begin, end


class Found(NamedTuple):
    """A plan: a start (s, whole), and the nodes: to choose from if it is now, else those chosen; if they are kept."""

    start: int
    nodes: int
    reserved: bool


class AlikeCycle:
    """One cycle of the backfill loop over jobs that are alike but for width and limit, on nodes of one core.

    Parameters
    ----------
    queue
        the jobs, sorted
    settings
        of slurm.conf
    now
        the instant (s)
    kinds
        how many jobs of each kind wait

    Attributes
    ----------
    tested, started
        the number of tests, and of starts
    valid
        the instant (s) before which all plans made so far hold, and no more jobs can start than now
    moved
        as that of :class:`BackfillCycle`
    """

    def __init__(self, queue: Sequence[Pending], settings: SlurmConf, now: float, kinds: Mapping[Kind, int]) -> None:
        self._settings = settings
        self._board = board = queue[0].board
        self._version = board.version
        self._step = settings.bf_resolution
        self._now = int(now)
        step = self._step
        self._table = AlikeTable(self._now // step * step, self._horizon // step * step, board.up, step)
        self._records = 1
        self._tallies = Tallies(settings)
        self.tested = self.started = 0
        self.moved = False
        self._reserved: list[int] = []  # the nodes of each plan that has a reservation
        self._looked = 0  # the first of them, since the last start, that has idle nodes
        self._taken = 0  # all these nodes
        self._room: int | None = None  # the number of other nodes
        self._same: dict[Kind, tuple[Found | None, bool]] = {}  # plans since the last reservation
        self._reached: list[Pending] = []
        self._passed: Counter[Kind] = Counter()  # the kinds of these
        self.valid = inf if not board.completing else -inf
        self._full = False  # whether the table is
        limits = settings.bf_max_job_user, settings.bf_max_job_part, settings.bf_max_job_user_part
        self._all_tested = not (any(limits) or settings.bf_max_job_assoc)
        self._take(queue, kinds)

    def _take(self, queue: Sequence[Pending], kinds: Mapping[Kind, int]) -> None:
        """Take over the jobs that have not been reached."""
        self._queue = queue
        passed, most = self._passed, self._settings.bf_max_job_test
        self._left = {kind: count for kind, number in kinds.items() if (count := number - passed[kind])}
        self._hopes: set[Kind] | None = None  # the kinds of jobs of which one may start
        self._near: Counter[Kind] | None = None  # of the jobs that are tested if all are, where there are others
        self._width = 0  # their processors
        if self._all_tested and len(queue) > most:
            self._near = Counter([kind_of(job) for job in queue[len(self._reached) : most]])
            self._width = sum([kind[0] * number for kind, number in self._near.items()])

    def goes_on(self, queue: Sequence[Pending], now: float, kinds: Mapping[Kind, int]) -> bool:
        """Go on at a later instant (s) if that gives what a new cycle does; return whether it does."""
        board, reached, at = self._board, self._reached, int(now)
        if board.version != self._version or self.started or at >= self.valid or board.completing:
            return False
        if (board.ends and board.ends[0] <= at) or queue[: len(reached)] != reached or len(queue) == len(reached):
            return False
        self._now = at
        self._table.pass_to(at // self._step * self._step, self._horizon // self._step * self._step)
        self._take(queue, kinds)
        return True

    @property
    def _horizon(self) -> int:
        """The end of the window of plans (s, whole)."""
        return int(self._now + self._settings.bf_window * 60)

    @property
    def marked(self) -> bool:
        """Whether idle nodes are reserved."""
        reserved, looked, unheld = self._reserved, self._looked, self._board.unheld
        while looked < len(reserved) and not reserved[looked] & unheld:
            looked += 1
        self._looked = looked
        return looked < len(reserved)

    def starts(self) -> Iterator[tuple[Pending, Allocation]]:
        """Yield the starts of the cycle; whoever asks has made each at once."""
        settings, queue = self._settings, self._queue
        for i in range(len(self._reached), len(queue)):
            if self._full or self.tested >= settings.bf_max_job_test or self._none_can_start():
                return
            job = queue[i]
            kind = kind_of(job)
            self._pass(job, kind)
            if not job.waits or not self._tallies.counts(job):
                continue
            known = self._same.get(kind)
            if known is None:
                known = self._same[kind] = self._plan(kind)
            plan, tested = known
            if tested:
                self.tested += 1
            else:
                self._all_tested, self._near = False, None
            if plan is None:
                continue
            if plan.start > self._now:
                self._full = not self._reserve(plan, job.limit)
                continue
            allocation = self._board.select(job, plan.nodes)
            if allocation is None:
                self.valid = -inf
                continue
            yield job, allocation
            self._looked = 0
            self._same.clear()
            self._hopes = None
            if job.job.rules is not None:  # the limits of its queue may hold others, which are not tested
                self._near = None
            self.started += 1
            if settings.bf_max_job_start and self.started >= settings.bf_max_job_start:
                return

    def _pass(self, job: Pending, kind: Kind) -> None:
        """Count a job that is reached."""
        self._reached.append(job)
        self._passed[kind] += 1
        self._left[kind] -= 1
        if not self._left[kind] and self._hopes is not None:
            self._hopes.discard(kind)
        if self._near is not None:
            self._near[kind] -= 1
            self._width -= kind[0]

    # ------------------------------------------------------------------ jobs that may start

    def _none_can_start(self) -> bool:
        """Whether no job left can start, and nothing else is to be found."""
        hopes = self._hopes
        if hopes is None:
            hopes = self._hopes = self._hoping()
        if hopes and not self._beyond(hopes):
            return False
        return self.marked or ((self.moved or self.started > 0) and not self._board.unheld)

    def _beyond(self, hopes: set[Kind]) -> bool:
        """Whether jobs that may start are only behind the first ``bf_max_job_test`` jobs, all of which are tested.

        They are unless for one of them no node is left at any time: that cannot be while there are more nodes without a
        reservation than all of them ask for.
        """
        near = self._near
        if near is None or any(near[kind] > 0 for kind in hopes):
            return False
        if self._room is None:
            self._room = (self._board.up ^ self._taken).bit_count()
        return self._room > self._width

    def _hoping(self) -> set[Kind]:
        """Return the kinds of jobs of which one may start: enough idle nodes are free until its limit ends."""
        board, table, now = self._board, self._table, self._now
        count = board.idle
        kinds = sorted(
            [kind for kind, number in self._left.items() if kind[0] <= count and number > 0], key=itemgetter(1)
        )
        found: set[Kind] = set()
        if not kinds:
            return found
        free, begins, at = board.free_alike, table.begins, bisect_right(table.begins, now) - 1
        for kind in kinds:
            stop = bisect_right(begins, now + kind[1], at)
            if stop > at:
                free = reduce(and_, table.free[at:stop], free)
                count, at = free.bit_count(), stop
            if kind[0] <= count:
                found.add(kind)
        return found

    # ------------------------------------------------------------------ plans

    def _plan(self, kind: Kind) -> tuple[Found | None, bool]:
        """Return when and where a job would start beside all planned ones, and whether a test was needed to know."""
        wanted, limit, nodes = kind
        now, board, table = self._now, self._board, self._table
        begins, slots, gains, ends, up = table.begins, table.free, table.gains, board.ends, board.up
        idle, idles, number = board.free_alike, board.idle, len(table.begins)
        tried: list[tuple[int, int]] = []
        at = now
        while True:
            if at < table.end:
                first = bisect_right(begins, at) - 1
                stop = bisect_right(begins, at + limit, first)
            else:
                first, stop, self.valid = number, number, -inf
            if at == now:
                self._see_slots(first, stop, limit)
            tried.append((first, stop))
            gain = bisect_left(gains, first)
            later = begins[gains[gain] + 1] if gain < len(gains) and gains[gain] <= stop else 0
            ended = bisect_right(ends, later) if later else len(ends)
            freed, counts = board.freed(ended)
            free = reduce(and_, slots[first:stop], up)
            counted = 0
            if idles + counts[ended] >= wanted:
                counted = ((idle | freed[ended]) & free).bit_count()
            if counted < wanted:
                if not later:
                    return None, self._some_free(tried, nodes or 1)
                at = later
                continue
            able = idle & free
            if idles >= wanted and able.bit_count() >= wanted:
                start = now
            else:
                start, released = board.release(free, self._needed(free, wanted, ended, counted))
                able |= freed[released] & free
            if at > start:
                start, self.moved = at, True
            if later and start > later:
                at = later
                continue
            found = self._found(kind, start, free, able, stop)
            if found is not None:
                return found, True
            at = max(start, now + 1)

    def _see_slots(self, first: int, stop: int, limit: int) -> None:
        """Note until when a job that starts now, and has slots from the first up to another, has the same ones."""
        begins, until = self._table.begins, self.valid
        if stop < len(begins) and begins[stop] - limit < until:
            until = begins[stop] - limit
        self.valid = min(until, begins[first + 1] if first + 1 < len(begins) else self._table.end)

    def _found(self, kind: Kind, start: int, free: int, able: int, stop: int) -> Found | None:
        """Return the plan of a job that can start on able nodes; ``None``: planned jobs have them from a slot on."""
        wanted, limit, _ = kind
        begins, slots, step, rest = self._table.begins, self._table.free, self._step, able
        end = (start + limit) // step * step
        if start > self._now and stop < len(begins) and begins[stop] < end:
            rest = reduce(and_, slots[stop : bisect_left(begins, end, stop)], able)
            if rest.bit_count() < wanted:
                return None
        chosen = choose_alike(able, wanted)
        if start <= self._now:
            if not chosen & self._board.completing:
                return Found(start, free, False)
            start = self._now + 1
            rest = reduce(and_, slots[stop : bisect_left(begins, (start + limit) // step * step, stop)], able)
        if start > self._horizon:
            self.valid = min(self.valid, start - self._settings.bf_window * 60)
            return Found(start, chosen, False)
        return Found(start, chosen, True) if chosen & rest == chosen else None

    def _some_free(self, tried: list[tuple[int, int]], least: int) -> bool:
        """Whether so many nodes are free in some of the spans of slots: slots from the first to the second."""
        slots, up = self._table.free, self._board.up
        return any(reduce(and_, slots[first:stop], up).bit_count() >= least for first, stop in tried)

    def _needed(self, free: int, wanted: int, most: int, counted: int) -> int:
        """Return after how many ends a job fits on free nodes: it does after the most, not now."""
        board = self._board
        idle, idles = board.free_alike, board.idle
        freed, counts = board.freed(most)
        low = bisect_left(counts, wanted - idles, 1, most)
        missing = idles + counts[most] - counted  # so many nodes that ends free are not free for it
        high = bisect_left(counts, wanted - idles + missing, low, most)
        while low < high:
            middle = (low + high) // 2
            if ((idle | freed[middle]) & free).bit_count() >= wanted:
                high = middle
            else:
                low = middle + 1
        return low

    def _reserve(self, plan: Found, limit: int) -> bool:
        """Keep the nodes of a planned job, unless it starts beyond the window; ``False``: the table is full."""
        start, nodes, reserved = plan
        if not reserved:
            return True
        if self._records >= self._settings.slots:
            return False
        step, table = self._step, self._table
        begin = start // step * step
        end = max((start + limit) // step * step, begin + step)
        if (last := table.end if begin >= table.end else end) >= table.end:  # a later end of the table divides it
            self.valid = min(self.valid, last + step - self._settings.bf_window * 60)
        self._records += table.reserve(begin, end, nodes)
        self._reserved.append(nodes)
        self._same.clear()
        self._taken |= nodes
        self._room = None
        if nodes & self._board.free_alike:
            self._hopes = None
        return True
