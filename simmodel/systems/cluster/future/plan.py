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

from bisect import insort
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import Any, NamedTuple

from simmodel.resources.pools.profile import CountProfile
from simmodel.scheduling.waiting import Lanes

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
        return self._profile.earliest(work.processors, work.duration)

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


class _Waiter:
    """A job in the lanes of a projection, in the order of the queue."""

    __slots__ = ("job", "planned", "priority", "seq", "state", "submit", "width")

    def __init__(self, work: ProjectedJob, number: int) -> None:
        self.job = work.job
        self.width = work.processors
        self.planned = work.planned
        self.seq = number
        self.priority = self.submit = 0.0
        self.state: Any = "waiting"


class ProjectedEasy:
    """The starts of a queue in order of arrival under EASY, whose jobs all run exactly as long as planned.

    Then the promise to the head of the queue stays as it is until it starts, and jobs that start before it only use up
    the processors beside it. Candidates come from lanes, as in the live queue: a decision costs no more in a long one.
    There is one state, after the last decision; those after the start of an added job are taken back.

    Parameters
    ----------
    each
        whether each single end brings a decision, instead of all ends of an instant together

    >>> plan = ProjectedEasy(each=False)
    >>> plan.restart(0.0, 2, [(10.0, 0, 2, 10.0)], [ProjectedJob("a", 4, 5, 5, 5)])
    >>> plan.start(0.0, ProjectedJob("b", 2, 10, 10, 10)), plan.start(0.0, ProjectedJob("c", 2, 11, 11, 11))
    (0.0, 15.0)
    """

    def __init__(self, *, each: bool) -> None:
        self._each = each
        self.restart(0.0, 0, [], [])

    def restart(self, now: float, free: int, running: list[Running], waiting: list[ProjectedJob]) -> None:
        """Restart with a decision now; ``waiting`` is in the order of the queue."""
        # The state after the last decision.
        self._free_now = free
        self._ends = [each[:3] for each in running]
        heapify(self._ends)
        self._queue = [_Waiter(work, number) for number, work in enumerate(waiting)]
        self._head = 0  # number of the first that waits
        self._lanes: Lanes[_Waiter] = Lanes(None)
        for waiter in self._queue:
            self._lanes.add(waiter)
        self._promised: float | None = None  # start promised to the head (s); none: not known
        self._extra_then = 0  # processors left over then
        # What has brought it about, in order.
        self._first_number = max((each[1] for each in running), default=0) + 1
        self._begun: list[_Waiter] = []
        self._past: list[tuple[float, int, int]] = []  # ends
        # The decisions: instants (s), free processors, promises, what these leave over; starts and ends until then.
        self._at: list[float] = []
        self._free: list[int] = []
        self._until: list[float] = []
        self._extra: list[int] = []
        self._begun_to: list[int] = []
        self._past_to: list[int] = []
        self._most: list[int] = []  # free processors of any of a block of decisions, at most
        self._first = 0  # the last decision up to now
        self._asked: tuple[Any, float, int] | None = None  # job, instant and decision of the last answer
        self._starts: dict[Any, float] = {}  # foreseen, not yet confirmed
        self._decide(now)
        self._supposed = bool(self._begun)  # whether a decision was assumed that starts work

    # ------------------------------------------------------------------ decisions

    def _next(self, before: float = INFINITY) -> bool:
        """Simulate one more decision up to ``before``; return whether there is one."""
        ends = self._ends
        if not ends or ends[0][0] > before:
            return False
        end = heappop(ends)
        at = end[0]
        self._past.append(end)
        free = self._free_now + end[2]
        if not self._each:
            while ends and ends[0][0] == at:
                end = heappop(ends)
                self._past.append(end)
                free += end[2]
        self._free_now = free
        self._decide(at)
        return True

    def _decide(self, at: float) -> None:
        """Start the jobs that EASY would start at an instant (s), and note the decision."""
        queue, number = self._queue, self._head
        count = len(queue)
        if number < count and queue[number].width <= self._free_now:
            self._promised = None
            while number < count and queue[number].width <= self._free_now:
                self._begin(queue[number], at)
                number += 1
                while number < count and queue[number].state != "waiting":
                    number += 1
            self._head = number
        if number == count:
            until = INFINITY
        else:
            if self._promised is None:
                self._promise(at)
            assert self._promised is not None
            until = self._promised
            if self._lanes.narrowest <= self._free_now:
                self._backfill(at, until)
        i = len(self._at)
        free = self._free_now
        self._at.append(at)
        self._free.append(free)
        self._until.append(until)
        self._extra.append(self._extra_then)
        self._begun_to.append(len(self._begun))
        self._past_to.append(len(self._past))
        if i % _BLOCK == 0:
            self._most.append(free)
        elif free > self._most[-1]:
            self._most[-1] = free

    def _backfill(self, at: float, until: float) -> None:
        first, limit = self._lanes.first_fitting, until - at
        while self._free_now > 0:
            waiter = first(self._free_now, limit, self._extra_then)
            if waiter is None:
                break
            self._use_up(waiter.width, waiter.planned, at, until)
            self._begin(waiter, at)

    def _use_up(self, width: int, planned: float, at: float, until: float) -> None:
        """Count the processors that a start leaves over when the promise is kept."""
        if planned > until - at:
            self._extra_then -= width
        if (planned > until - at) != (at + planned > until):
            self._promised = None  # rounded: its end and its length disagree

    def _begin(self, waiter: _Waiter, at: float) -> None:
        waiter.state = "running"
        self._lanes.remove(waiter)
        self._run(waiter, at)

    def _run(self, waiter: _Waiter, at: float) -> None:
        self._free_now -= waiter.width
        heappush(self._ends, (at + waiter.planned, self._first_number + len(self._begun), waiter.width))
        self._begun.append(waiter)
        self._starts[waiter.job] = at

    def _promise(self, at: float) -> None:
        """Promise the head of the queue a start: when enough processors are free."""
        missing = self._queue[self._head].width - self._free_now
        promised = INFINITY
        for end, _, processors in sorted(self._ends):
            if end > promised:
                break
            missing -= processors
            if missing <= 0:
                promised = max(end, at)
        assert missing <= 0
        self._promised, self._extra_then = promised, -missing

    def _take_back(self, i: int) -> None:
        """Return to the state after a decision: take back all later ones."""
        begun, past = self._begun_to[i], self._past_to[i]
        next_number = self._first_number + begun
        ends = chain(self._ends, islice(self._past, past, None))
        self._ends = [end for end in ends if end[1] < next_number]
        heapify(self._ends)
        for waiter in islice(self._begun, begun, None):
            waiter.state = "waiting"
            self._lanes.add(waiter)
            self._starts.pop(waiter.job, None)
            if waiter.seq < self._head:
                self._head = waiter.seq
        del self._past[past:], self._begun[begun:]
        for column in (self._at, self._free, self._until, self._extra, self._begun_to, self._past_to):
            del column[i + 1 :]
        del self._most[i // _BLOCK + 1 :]
        self._free_now, self._extra_then, self._promised = self._free[i], self._extra[i], None

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
        i = self._first
        self._at[i] = max(self._at[i], now)
        width, planned = work.processors, work.planned
        at, free, until, extra, most = self._at, self._free, self._until, self._extra, self._most
        count = len(at)
        while True:
            if i == count:
                if not self._next():
                    return INFINITY
                count += 1
            if i % _BLOCK == 0 and most[i // _BLOCK] < width:
                i = min(i + _BLOCK, count)
                continue
            if width <= free[i] and (planned <= until[i] - at[i] or width <= extra[i]):
                self._asked = work.job, now, i
                return at[i]
            i += 1

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
        at, until = self._at[i], self._until[i]
        waiter = _Waiter(work, len(self._queue))
        waiter.state = "running"
        self._queue.append(waiter)
        if until < INFINITY:
            self._use_up(waiter.width, waiter.planned, at, until)
        else:
            self._head = len(self._queue)
        self._run(waiter, at)
        self._free[i], self._extra[i], self._begun_to[i] = self._free_now, self._extra_then, len(self._begun)
        if i > self._first and self._until[i - 1] == INFINITY:  # it has waited as the head of the queue
            left = self._free_now + sum([processors for end, _, processors in self._ends if end <= at])
            for j in range(i - 1, self._first - 1, -1):
                if self._until[j] < INFINITY:
                    break
                self._until[j], self._extra[j] = at, left

    def advance(self, now: float, started: list[tuple[Any, float]]) -> bool:
        """Return whether all went as foreseen: the given jobs started on time, and no others were due before now."""
        starts, at = self._starts, self._at
        self._asked = None
        while self._next(now):
            pass
        if self._supposed or any(starts.pop(job, None) != when for job, when in started):
            return False
        i = self._first
        while i + 1 < len(at) and at[i + 1] <= now:
            i += 1
        before = i if at[i] == now else i + 1
        while before > self._first and at[before - 1] == now:
            before -= 1
        if before > self._first:
            begun = islice(
                self._begun, self._begun_to[self._first - 1] if self._first else 0, self._begun_to[before - 1]
            )
            if any(waiter.job in starts for waiter in begun):
                return False
        self._first = i
        return i < _LONG


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
