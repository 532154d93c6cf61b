"""Projections: the future of a queue without further arrivals, computed on demand and kept while it proves right.

The rules are those of :class:`~simmodel.policies.backfilling.Easy` and
:class:`~simmodel.policies.planning.Conservative`, for pools on which only the number of free processors counts and for
queues in order of arrival. There, a job at the tail does not affect the jobs before it while it waits, so that its
start follows from the decisions that are known already. There are three forms:

* :class:`ProjectedPlan`: if every run lasts exactly as long as planned, the plan of the queue is its future, and a new
  job adds an entry to it;
* :class:`ProjectedEasy`: the same under EASY, where the future decisions of the queue are kept;
* :class:`Projection`: if runs end before their expected ends, each end brings a decision. Future decisions are
  simulated one by one and kept, each with the capacity that it leaves for later jobs. Adding a job drops the decisions
  after its start, since from then on it holds processors.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from heapq import heappop, heappush
from itertools import islice
from operator import attrgetter, sub
from typing import Any, NamedTuple

from simmodel.resources.pools.profile import CountProfile

__all__ = ["ProjectedEasy", "ProjectedJob", "ProjectedPlan", "Projection"]

INFINITY = float("inf")
_BLOCK = 32  # decisions that share a bound of their free processors
_LONG = 50_000  # decisions after which a projection begins anew
Running = tuple[float, int, int, float]  # end, start number, processors, expected end


class ProjectedJob(NamedTuple):
    """A job, its processors, its planned seconds while waiting and while running, and its run time."""

    job: Any
    processors: int
    planned: float
    expected: float
    duration: float


class ProjectedPlan:
    """The planned starts of a queue whose jobs all run exactly as long as planned.

    Parameters
    ----------
    backfill
        whether jobs use the earliest hole that does not delay the jobs before them; otherwise they start in order

    >>> plan = ProjectedPlan(backfill=True)
    >>> plan.restart(0.0, 2, [(10.0, 0, 2, 10.0)], [ProjectedJob("a", 4, 5, 5, 5)])
    >>> plan.start(0.0, ProjectedJob("b", 2, 10, 10, 10)), plan.start(0.0, ProjectedJob("c", 2, 11, 11, 11))
    (0.0, 15.0)
    """

    __slots__ = ("_backfill", "_count", "_due", "_profile", "_starts")

    def __init__(self, *, backfill: bool) -> None:
        self._backfill = backfill
        self._profile = CountProfile(0.0, 0, ())
        self._starts: dict[Any, float] = {}  # planned, not yet confirmed
        self._due: list[tuple[float, int, Any]] = []  # the same, earliest first
        self._count = 0

    def restart(self, now: float, free: int, running: list[Running], waiting: list[ProjectedJob]) -> None:
        """Plan a queue from scratch; ``waiting`` is in the order of the queue."""
        ends = sorted((each[3], each[1], each[2]) for each in running)
        self._profile = CountProfile(now, free, [(end, processors) for end, _, processors in ends])
        self._starts = {}
        self._due = []
        for work in waiting:
            self.add(now, work)

    def start(self, now: float, work: ProjectedJob, decided: bool = False) -> float:
        """Return when the work would start if added now (s)."""
        self._profile.advance(now)
        found: float = self._profile.earliest(work.processors, work.duration)
        return found

    def add(self, now: float, work: ProjectedJob, decided: bool = False) -> None:
        """Add work at the tail."""
        profile = self._profile
        profile.advance(now)
        at = profile.earliest(work.processors, work.duration)
        profile.take(work.processors, at, work.duration)
        if not self._backfill:
            profile.advance(at)  # later jobs do not start before it
        self._starts[work.job] = at
        self._count += 1
        heappush(self._due, (at, self._count, work.job))

    def advance(self, now: float, started: list[tuple[Any, float]]) -> bool:
        """Return whether all went as planned: the given jobs started on time, and no others were due before now."""
        starts = self._starts
        if any(starts.pop(job, None) != at for job, at in started):
            return False
        due = self._due
        while due and due[0][0] < now:
            if heappop(due)[2] in starts:
                return False
        return True


class _Lane:
    """The jobs of one width in the order of the queue.

    Attributes
    ----------
    numbers
        their numbers in the queue
    plans, left
        their planned seconds; infinite: started in truth, or (``left``) up to the last decision
    bounds, mins
        of each block of these the least
    first
        the position of the first that waits after the last decision, at most
    least
        the least of ``mins``, at most
    """

    __slots__ = ("bounds", "first", "gone", "least", "left", "mins", "numbers", "plans", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.numbers: list[int] = []
        self.plans: list[float] = []
        self.bounds: list[float] = []
        self.gone = 0  # the first that has not started in truth
        self.reset()

    def add(self, number: int, planned: float) -> int:
        """Add a job at the tail; return its position."""
        i = len(self.numbers)
        if i % _BLOCK == 0:
            self.bounds.append(planned)
            self.mins.append(planned)
        self.bounds[-1] = min(self.bounds[-1], planned)
        self.numbers.append(number)
        self.plans.append(planned)
        self.left.append(INFINITY)
        self.take_back(i)
        return i

    def remove(self, i: int) -> None:
        """Note that a job has started in truth."""
        self.plans[i] = INFINITY
        self.bounds[i // _BLOCK] = min(self.plans[i - i % _BLOCK : i - i % _BLOCK + _BLOCK])

    def reset(self) -> bool:
        """Return to the jobs that wait in truth; return whether there are any."""
        plans, gone = self.plans, self.gone
        while gone < len(plans) and plans[gone] == INFINITY:
            gone += 1
        self.gone = self.first = gone
        self.left = plans[:]
        self.mins = self.bounds[:]
        self.least = min(self.mins, default=INFINITY)
        return gone < len(plans)

    def take_back(self, i: int) -> None:
        """Count a job as waiting again."""
        planned = self.left[i] = self.plans[i]
        self.first = min(self.first, i)
        self.mins[i // _BLOCK] = min(self.mins[i // _BLOCK], planned)
        self.least = min(self.least, planned)

    def within(self, limit: float, other: int) -> int:
        """Return the number of the first that waits and is planned to last at most ``limit`` s, or another number."""
        left, mins = self.left, self.mins
        for block in range(self.first // _BLOCK, len(mins)):
            if mins[block] <= limit:
                some = left[block * _BLOCK : (block + 1) * _BLOCK]
                least = mins[block] = min(some)
                if least <= limit:
                    i = block * _BLOCK
                    for planned in some:
                        if planned <= limit:
                            return self.numbers[i]
                        i += 1
        self.least = min(mins)
        return other


class ProjectedEasy:
    """The starts of a queue in order of arrival under EASY, whose jobs all run exactly as long as planned.

    Then the promise to the head of the queue stays as it is until it starts, and jobs that start before it only use up
    the processors beside it. Candidates come from lanes, one for each width: a decision costs no more in a long queue.
    There is one state, after the last decision; those after the start of an added job are taken back. The queue itself
    is kept: after an end that was not foreseen, decisions are simulated again from the jobs that have not started.

    Parameters
    ----------
    each
        whether each single end brings a decision, instead of all ends of an instant together

    >>> plan = ProjectedEasy(each=False)
    >>> plan.restart(0.0, 2, [(10.0, 0, 2, 10.0)], [ProjectedJob("a", 4, 5, 5, 5)])
    >>> plan.start(0.0, ProjectedJob("b", 2, 10, 10, 10)), plan.start(0.0, ProjectedJob("c", 2, 11, 11, 11))
    (0.0, 15.0)
    >>> plan.again(3.0, 4, [], [])  # what ran has ended early
    True
    >>> plan.start(3.0, ProjectedJob("b", 2, 10, 10, 10))
    8.0
    """

    def __init__(self, *, each: bool) -> None:
        self._each = each
        self.restart(0.0, 0, [], [])

    # ------------------------------------------------------------------ the queue

    def restart(self, now: float, free: int, running: list[Running], waiting: list[ProjectedJob]) -> None:
        """Restart with a decision now; ``waiting`` is in the order of the queue."""
        # The jobs by their numbers, in the order of the queue; those that have started included.
        self._numbers: dict[Any, int] = {}  # of those that have not started in truth
        self._widths: list[int] = []
        self._plans: list[float] = []
        self._true: list[float | None] = []  # anything but None: started in truth
        self._lane_of: dict[int, _Lane] = {}  # by width
        self._spots: list[tuple[_Lane, int]] = []  # the lane of each, and its position there
        for work in waiting:
            self.queue(work)
        self._project(now, free, running)

    def queue(self, work: ProjectedJob) -> None:
        """Add work at the tail of the queue, before the future is simulated again."""
        width = work.processors
        number = self._numbers[work.job] = len(self._widths)
        self._widths.append(width)
        self._plans.append(work.planned)
        self._true.append(None)
        lane = self._lane_of.get(width)
        if lane is None:
            lane = self._lane_of[width] = _Lane(width)
        self._spots.append((lane, lane.add(number, work.planned)))

    def again(self, now: float, free: int, running: list[Running], started: list[tuple[Any, float]]) -> bool:
        """Restart with a decision now and the queue that is known, of which jobs have started; ``False``: not these."""
        for job, at in started:
            number = self._numbers.pop(job, None)
            if number is None:
                return False
            self._leave(number, at)
        if len(self._true) > 2 * len(self._numbers) + _BLOCK:  # most have left
            plans, widths = self._plans, self._widths
            works = [ProjectedJob(job, widths[i], plans[i], plans[i], plans[i]) for job, i in self._numbers.items()]
            self.restart(now, free, running, works)
        else:
            self._project(now, free, running)
        return True

    def _leave(self, number: int, at: float) -> None:
        """Note that a job has started in truth (s)."""
        self._true[number] = at
        lane, i = self._spots[number]
        lane.remove(i)

    @property
    def waits(self) -> int:
        """The number of jobs that have not started in truth."""
        return len(self._numbers)

    def foreseen(self) -> dict[Any, float]:
        """Return the starts (s) that are foreseen so far and have not come, by job."""
        starts = self._starts
        return {job: at for job, i in self._numbers.items() if (at := starts[i]) is not None}

    # ------------------------------------------------------------------ decisions

    def _project(self, now: float, free: int, running: list[Running]) -> None:
        """Simulate the first decision, now."""
        # The state after the last decision.
        self._starts = self._true[:]
        self._lanes = [lane for _, lane in sorted(self._lane_of.items()) if lane.reset()]
        self._free_now = free
        self._ends = sorted([each[:3] for each in running])
        self._past = 0  # ends that have come
        self._head = self._true.index(None) if None in self._true else len(self._true)  # number of the first that waits
        self._promised: float | None = None  # start promised to the head (s); none: not known
        self._extra_then = 0  # processors left over then
        # What has brought it about, in order.
        self._first_number = max((each[1] for each in running), default=0) + 1
        self._begun: list[int] = []
        # The decisions: instants (s), free processors, promises, what these leave over; starts and ends until then.
        self._at: list[float] = []
        self._free: list[int] = []
        self._until: list[float] = []
        self._extra: list[int] = []
        self._begun_to: list[int] = []
        self._past_to: list[int] = []
        self._bounds: list[tuple[int, int, float]] = []  # see _bound
        self._first = 0  # the last decision up to now
        self._asked: tuple[Any, float, int] | None = None  # job, instant and decision of the last answer
        self._simulate(-INFINITY, INFINITY, 0.0, now)
        self._supposed = bool(self._begun)  # whether a decision was assumed that starts work

    def _simulate(self, before: float, width: float, planned: float, now: float | None = None) -> int:
        """Simulate decisions up to an instant, or up to one that could also start a job (hot path).

        Parameters
        ----------
        before
            the instant (s)
        width, planned
            processors and planned seconds of the job
        now
            an instant (s) of which a decision is simulated although nothing ends

        Returns the number of the decision that could start the job; -1: none has been found.
        """
        starts, widths, plans, spots = self._starts, self._widths, self._plans, self._spots
        lanes, ends, begun, free, head = self._lanes, self._ends, self._begun, self._free_now, self._head
        past, promised, extra, each = self._past, self._promised, self._extra_then, self._each
        count, number = len(starts), self._first_number + len(begun)
        sizes = [lane.width for lane in lanes]
        note_at, note_free, note_until = self._at.append, self._free.append, self._until.append
        note_extra, note_begun, note_past = self._extra.append, self._begun_to.append, self._past_to.append
        tried = 0  # no job of up to so many processors could start beside the promise: it can only become less likely
        found, i = -1, len(self._at)
        while found < 0:
            if now is not None:
                at, now = now, None
            elif past == len(ends) or ends[past][0] > before:
                break
            else:
                at, _, ended = ends[past]
                free += ended
                past += 1
                while not each and past < len(ends) and ends[past][0] == at:
                    free += ends[past][2]
                    past += 1
            until = limit = INFINITY
            heads = True
            while True:  # start one job after the other
                if heads:
                    while head < count and starts[head] is not None:
                        head += 1
                    if head == count:
                        break
                    if widths[head] > free:
                        heads = False
                        if promised is None:
                            promised, extra = _promised_start(ends[past:], widths[head] - free, at)
                            tried = 0
                        until, limit = promised, promised - at
                        continue
                    best, promised = head, None
                else:
                    low, high = bisect_right(sizes, tried), bisect_right(sizes, free)
                    if low >= high:
                        break
                    waiter = count
                    empty = False
                    for lane in lanes[low:high]:
                        if lane.width <= extra:
                            left, first = lane.left, lane.first
                            if left[first] == INFINITY:
                                while first < len(left) and left[first] == INFINITY:
                                    first += 1
                                if first == len(left):
                                    empty = True
                                    lane.least = INFINITY
                                    continue
                                lane.first = first
                            if (other := lane.numbers[first]) < waiter:
                                waiter = other
                        elif lane.least <= limit and lane.numbers[lane.first] < waiter:
                            waiter = min(waiter, lane.within(limit, waiter))
                    if empty:
                        lanes[:] = [lane for lane in lanes if lane.least < INFINITY]
                        sizes = [lane.width for lane in lanes]
                    if waiter == count:
                        tried = free
                        break
                    best = waiter
                    if plans[best] > limit:
                        extra -= widths[best]
                    if (plans[best] > limit) != (at + plans[best] > until):
                        promised = None  # rounded: its end and its length disagree
                starts[best] = at
                lane, spot = spots[best]
                lane.left[spot] = INFINITY
                free -= widths[best]
                insort(ends, (at + plans[best], number, widths[best]), past)
                number += 1
                begun.append(best)
            note_at(at)
            note_free(free)
            note_until(until)
            note_extra(extra)
            note_begun(len(begun))
            note_past(past)
            if width <= free and (planned <= until - at or width <= extra):
                found = i
            i += 1
        self._free_now, self._head, self._past = free, head, past
        self._promised, self._extra_then = promised, extra
        return found

    def _bound(self, block: int) -> tuple[int, int, float]:
        """Return of a block of decisions the most free processors, those beside the promise, and seconds until it."""
        some = slice(block * _BLOCK, (block + 1) * _BLOCK)
        free = self._free[some]
        longest = max(map(sub, self._until[some], self._at[some]))
        return max(free), max(map(min, free, self._extra[some])), longest

    def _take_back(self, i: int) -> None:
        """Return to the state after a decision: take back all later ones."""
        begun, past = self._begun_to[i], self._past_to[i]
        next_number = self._first_number + begun
        self._ends = [end for end in self._ends if end[1] < next_number]
        for number in islice(self._begun, begun, None):
            self._starts[number] = None
            lane, spot = self._spots[number]
            lane.take_back(spot)
            if lane not in self._lanes:
                insort(self._lanes, lane, key=attrgetter("width"))
            self._head = min(self._head, number)
        del self._begun[begun:]
        for column in (self._at, self._free, self._until, self._extra, self._begun_to, self._past_to):
            del column[i + 1 :]
        del self._bounds[i // _BLOCK :]
        self._free_now, self._extra_then, self._promised, self._past = self._free[i], self._extra[i], None, past

    # ------------------------------------------------------------------ questions

    def start(self, now: float, work: ProjectedJob, decided: bool = False) -> float:
        """Return when the work would start if added now (s).

        Parameters
        ----------
        now
            the instant, not before that of an earlier call
        work
            the work
        decided
            whether the decision of this instant has been made already: deciding again changes nothing
        """
        first = self._first
        self._at[first] = max(self._at[first], now)
        width, planned = work.processors, work.planned
        found = self._admitting(width, planned)
        if found < 0:
            found = self._simulate(INFINITY, width, planned)
        if found < 0:
            return INFINITY
        self._asked = work.job, now, found
        return self._at[found]

    def _admitting(self, width: int, planned: float) -> int:
        """Return the first known decision from the last one on that could start a job too; -1 if none could."""
        at, free, until, extra, bounds = self._at, self._free, self._until, self._extra, self._bounds
        for block in range(len(bounds), len(at) // _BLOCK):
            bounds.append(self._bound(block))
        i = self._first
        while i < len(at):
            block = i // _BLOCK
            most, beside, longest = bounds[block] if block < len(bounds) else (width, width, 0.0)
            if width <= beside or (width <= most and planned <= longest):
                for j in range(i, min((block + 1) * _BLOCK, len(at))):
                    if width <= free[j] and (planned <= until[j] - at[j] or width <= extra[j]):
                        return j
            i = (block + 1) * _BLOCK
        return -1

    def add(self, now: float, work: ProjectedJob, decided: bool = False) -> None:
        """Add work at the tail of the queue, now."""
        if self._asked is None or self._asked[:2] != (work.job, now):
            self.start(now, work, decided)
        assert self._asked is not None
        i = self._asked[2]
        self._asked = None
        self._supposed = False
        if i + 1 < len(self._at):
            self._take_back(i)
        at, until, width, number = self._at[i], self._until[i], work.processors, len(self._starts)
        self.queue(work)
        lane = self._lane_of[width]
        if lane not in self._lanes:
            insort(self._lanes, lane, key=attrgetter("width"))
        self._starts.append(at)
        lane.left[-1] = INFINITY
        if until == INFINITY:
            self._head = number + 1
        else:
            if work.planned > until - at:
                self._extra_then -= width
            if (work.planned > until - at) != (at + work.planned > until):
                self._promised = None  # rounded: its end and its length disagree
        self._free_now -= width
        insort(self._ends, (at + work.planned, self._first_number + len(self._begun), width), self._past)
        self._begun.append(number)
        self._free[i], self._extra[i], self._begun_to[i] = self._free_now, self._extra_then, len(self._begun)
        if i > self._first and self._until[i - 1] == INFINITY:  # it has waited as the head of the queue
            left = self._free_now + sum([processors for end, _, processors in self._ends[self._past :] if end <= at])
            for j in range(i - 1, self._first - 1, -1):
                if self._until[j] < INFINITY:
                    break
                self._until[j], self._extra[j] = at, left
                del self._bounds[j // _BLOCK :]

    def advance(self, now: float, started: list[tuple[Any, float]]) -> bool:
        """Return whether all went as foreseen: the given jobs started on time, and no others were due before now."""
        starts, true, at = self._starts, self._true, self._at
        self._asked = None
        self._simulate(now, INFINITY, 0.0)
        as_foreseen = not self._supposed
        for job, when in started:
            number = self._numbers.pop(job, None)
            if number is None:
                self._numbers.clear()  # this is not its queue
                return False
            self._leave(number, when)
            as_foreseen = as_foreseen and starts[number] == when
        if not as_foreseen:
            return False
        i = self._first
        while i + 1 < len(at) and at[i + 1] <= now:
            i += 1
        before = i if at[i] == now else i + 1
        while before > self._first and at[before - 1] == now:
            before -= 1
        if before > self._first:
            low = self._begun_to[self._first - 1] if self._first else 0
            if any(true[number] is None for number in self._begun[low : self._begun_to[before - 1]]):
                return False
        self._first = i
        return i < _LONG


def _promised_start(ends: list[tuple[float, int, int]], missing: int, at: float) -> tuple[float, int]:
    """Return when processors that miss at an instant (s) will be free, by ends in order, and how many are left over."""
    promised = INFINITY
    for end, _, processors in ends:
        if end > promised:
            break
        missing -= processors
        if missing <= 0:
            promised = end if end > at else at
    assert missing <= 0
    return promised, -missing


class _Point:
    """One decision: the running and waiting work after it, and the capacity that it leaves for later jobs."""

    __slots__ = ("at", "extra", "free", "holds", "profile", "promised", "running", "started", "todo", "waiting")

    def __init__(self, at: float, free: int, running: list[Running], waiting: list[ProjectedJob]) -> None:
        self.at = at
        self.free = free
        self.running = running  # by (end, start number)
        self.waiting = waiting
        self.started: list[ProjectedJob] = []
        self.holds = True  # deciding again without any change would start nothing
        self.promised: float | None = None  # EASY: promised start of the head, computed on demand
        self.extra = 0  # EASY: processors left over then
        self.profile: CountProfile | None = None  # conservative: includes the plans made so far
        self.todo = 0  # conservative: position of the first waiting work without a plan

    def begin(self, work: ProjectedJob, number: int) -> None:
        """Start work."""
        self.started.append(work)
        self.free -= work.processors
        if work.expected != work.planned:
            self.holds = False  # the decision assumed the requested time
        insort(self.running, (self.at + work.duration, number, work.processors, self.at + work.expected))

    def by_expected_end(self) -> list[tuple[float, int]]:
        """Return (expected end, processors) of the running work, in order."""
        return [(each[3], each[2]) for each in sorted(self.running, key=_by_expected_end)]


def _by_expected_end(entry: Running) -> tuple[float, int]:
    return entry[3], entry[1]


class Projection:
    """The future decisions of a queue in order of arrival, simulated on demand.

    Parameters
    ----------
    kind
        ``"easy"`` or ``"conservative"``: the kind of backfilling
    each
        whether each single end brings a decision, instead of all ends of an instant together

    >>> projection = Projection("easy", each=False)
    >>> projection.restart(0.0, 2, [(6.0, 0, 2, 10.0)], [ProjectedJob("a", 4, 5, 5, 5)])
    >>> projection.start(0.0, ProjectedJob("b", 2, 10, 10, 4)), projection.start(0.0, ProjectedJob("c", 2, 11, 11, 11))
    (0.0, 11.0)
    """

    def __init__(self, kind: str, *, each: bool) -> None:
        self._decide = self._easy if kind == "easy" else self._conservative
        self._admits = _easy_admits if kind == "easy" else _conservative_admits
        self._each = each
        self._points: list[_Point] = []  # the last decision up to now, and the known future ones
        self._asked: tuple[Any, float, int, list[_Point]] | None = None  # job, instant, point, points: the last answer
        self._number = 0
        self._starts: dict[Any, float] = {}  # foreseen, not yet confirmed
        self._supposed = False  # whether restart() assumed a decision that starts work

    def restart(self, now: float, free: int, running: list[Running], waiting: list[ProjectedJob]) -> None:
        """Restart with a decision now; ``waiting`` is in the order of the queue."""
        self._number = max((each[1] for each in running), default=0)
        self._starts = {}
        self._asked = None
        first = _Point(now, free, sorted(running), list(waiting))
        self._decide(first)
        self._points = [first]
        self._supposed = bool(first.started)
        self._foresee(first)

    def _foresee(self, point: _Point) -> None:
        for work in point.started:
            self._starts[work.job] = point.at

    # ------------------------------------------------------------------ future decisions

    def _next(self, points: list[_Point], before: float = INFINITY) -> bool:
        """Simulate one more decision up to ``before``; return whether there is one."""
        last = points[-1]
        running = last.running
        if not running or running[0][0] > before:
            return False
        at = running[0][0]
        ended = 1
        if not self._each:
            while ended < len(running) and running[ended][0] == at:
                ended += 1
        free = last.free + sum(each[2] for each in running[:ended])
        point = _Point(at, free, running[ended:], list(last.waiting))
        if point.waiting:
            self._decide(point)
        points.append(point)
        if points is self._points:
            self._foresee(point)
        return True

    def _start_heads(self, point: _Point) -> None:
        waiting = point.waiting
        heads = 0
        while heads < len(waiting) and waiting[heads].processors <= point.free:
            self._begin(point, waiting[heads])
            heads += 1
        del waiting[:heads]

    def _begin(self, point: _Point, work: ProjectedJob) -> None:
        self._number += 1
        point.begin(work, self._number)

    def _easy(self, point: _Point) -> None:
        self._start_heads(point)
        waiting = point.waiting
        if not waiting or point.free <= 0 or all(work.processors > point.free for work in waiting):
            return
        limit = _promise(point) - point.at
        left = []
        for work in waiting:
            if work.processors <= point.free and (work.planned <= limit or work.processors <= point.extra):
                if work.planned > limit:
                    point.extra -= work.processors
                self._begin(point, work)
            else:
                left.append(work)
        point.waiting = left

    def _conservative(self, point: _Point) -> None:
        self._start_heads(point)
        waiting = point.waiting
        if not waiting:
            return
        narrowest = min([work.processors for work in waiting])
        if point.free < narrowest:
            return
        at = point.at
        profile = point.profile = CountProfile(at, point.free, point.by_expected_end())
        left: list[ProjectedJob] = []
        for i, work in enumerate(waiting):
            if profile.free < narrowest:
                point.todo = len(left)
                left += waiting[i:]
                break
            start = profile.earliest(work.processors, work.planned)
            profile.take(work.processors, start, work.planned)
            if start == at:
                self._begin(point, work)
            else:
                left.append(work)
        else:
            point.todo = len(left)
        point.waiting = left

    # ------------------------------------------------------------------ questions

    def start(self, now: float, work: ProjectedJob, decided: bool = False) -> float:
        """Return when the work would start if added now (s).

        Parameters
        ----------
        now
            the instant, not before that of an earlier call
        work
            the work
        decided
            whether the decision of this instant has been made already, so that the work brings another one
        """
        points = self._points
        first = points[0]
        if first.at < now or decided:
            if first.holds and (first.profile is None or first.profile.next_step > now):
                first.at = now  # deciding again would change nothing
                first.promised = None
                if first.profile is not None:
                    first.profile.advance(now)
            else:
                again = _Point(now, first.free, list(first.running), list(first.waiting))
                number = self._number
                self._decide(again)
                if again.started:
                    points = [again]  # the future if the work is added
                else:
                    self._number = number
                    points[0] = again
        i, admits = 0, self._admits
        while True:
            if i == len(points) and not self._next(points):
                return INFINITY
            if admits(points[i], work):
                self._asked = work.job, now, i, points
                return points[i].at
            i += 1

    def add(self, now: float, work: ProjectedJob, decided: bool = False) -> None:
        """Add work at the tail of the queue, now."""
        if self._asked is None or self._asked[:2] != (work.job, now):
            self.start(now, work, decided)
        assert self._asked is not None
        _, _, i, points = self._asked
        self._asked = None
        self._supposed = False
        if points is not self._points:
            self._starts = {}
            for point in points:
                self._foresee(point)
            self._points = points
        for point in points[:i]:
            point.waiting.append(work)
        at = points[i]
        if at.profile is not None:
            at.profile.take(work.processors, at.at, work.planned)
        elif at.promised is not None and work.planned > at.promised - at.at:
            at.extra -= work.processors
        self._begin(at, work)
        for point in points[i + 1 :]:
            for each in point.started:
                self._starts.pop(each.job, None)
        del points[i + 1 :]
        self._starts[work.job] = at.at

    def advance(self, now: float, started: list[tuple[Any, float]]) -> bool:
        """Return whether all went as foreseen: the given jobs started on time, and no others were due before now."""
        points, starts = self._points, self._starts
        self._asked = None
        while self._next(points, now):
            pass
        if self._supposed or any(starts.pop(job, None) != at for job, at in started):
            return False
        past = 0
        for point in points:
            if point.at > now:
                break
            if point.at < now and any(work.job in starts for work in point.started):
                return False
            past += 1
        del points[: past - 1]
        return True


def _promise(point: _Point) -> float:
    """Return the start promised to the head of the queue, from the expected ends."""
    if point.promised is None:
        missing = point.waiting[0].processors - point.free
        ends = point.by_expected_end()
        for i, (end, processors) in enumerate(ends):
            missing -= processors
            if missing <= 0:
                promised = max(end, point.at)
                point.promised = promised
                point.extra = -missing + sum(more for later, more in ends[i + 1 :] if later <= promised)
                break
    assert point.promised is not None
    return point.promised


def _easy_admits(point: _Point, work: ProjectedJob) -> bool:
    if work.processors > point.free:
        return False
    if not point.waiting:
        return True
    promised = _promise(point)
    return work.planned <= promised - point.at or work.processors <= point.extra


def _conservative_admits(point: _Point, work: ProjectedJob) -> bool:
    if work.processors > point.free:
        return False
    waiting = point.waiting
    if not waiting:
        return True
    profile = point.profile
    if profile is None:
        profile = point.profile = CountProfile(point.at, point.free, point.by_expected_end())
        point.todo = 0
    for each in waiting[point.todo :]:
        profile.take(each.processors, profile.earliest(each.processors, each.planned), each.planned)
    point.todo = len(waiting)
    return profile.fits(work.processors, work.planned)
