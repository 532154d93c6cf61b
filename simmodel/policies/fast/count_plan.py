"""The plan of conservative backfilling on counted processors, kept from decision to decision."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from math import nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from simmodel.form import mypyc_attr
from simmodel.scheduling.protocol import Decision, Start
from simmodel.work.job import entry_of

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.profile import CountProfile
    from simmodel.resources.pools.running import Entry
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.work.job import LiveJob

__all__ = ["CountPlan"]

INFINITY: Final = float("inf")
Seconds: TypeAlias = Any
"""An instant or a duration, as it is given: compiled, a ``float`` would make one of each whole number."""
_PAST = 1000  # started jobs tolerated in the line
_DOUBLED = 40
_FEW = 100  # planned jobs whose profile is short enough to be searched from its beginning
_APART = 64  # jobs planned between two marks
_CHANGES = 256  # kept until all marks have them


class Bounds:
    """Bounds of planned starts: a job that is as large and as long as a planned one starts no earlier than that.

    Plans only take processors; when processors come free unforeseen, the bounds no longer hold.
    """

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        # Starts (s), ascending, by requested time (s), ascending: of the planned jobs of at most 2^i processors.
        self._steps: list[tuple[list[Seconds], list[Seconds]]] = []

    def of(self, width: int, requested: Seconds) -> Seconds:
        """Return the instant (s) before which a job does not start; infinitely early if none is known."""
        if not self._steps:
            return -INFINITY
        times, starts = self._steps[min(width.bit_length(), len(self._steps)) - 1]
        found = bisect_right(times, requested)
        return starts[found - 1] if found else -INFINITY

    def add(self, width: int, requested: Seconds, at: Seconds) -> None:
        """Add a job that has been planned at an instant (s)."""
        steps = self._steps
        while not steps or 1 << len(steps) <= 2 * width:
            steps.append((list(steps[-1][0]), list(steps[-1][1])) if steps else ([], []))
        for times, starts in steps[(width - 1).bit_length() :]:
            first = bisect_right(times, requested)
            if first and starts[first - 1] >= at:
                return  # as in all that follow
            stop = bisect_right(starts, at, first)
            times[first:stop], starts[first:stop] = [requested], [at]

    def copy(self) -> Bounds:
        copy = Bounds()
        copy._steps = [(list(times), list(starts)) for times, starts in self._steps]
        return copy


class _Mark:
    """The profile and the bounds that the jobs before a position in the line leave.

    ``noted`` is the number of changes since that the profile has; ``least`` the least requested times (s), by width, of
    the jobs planned behind it, up to the position ``stop``, and perhaps of some that have started since.
    """

    __slots__ = ("bounds", "least", "noted", "position", "profile", "stop")

    def __init__(self, position: int, profile: CountProfile, bounds: Bounds, noted: int) -> None:
        self.position = position
        self.profile = profile
        self.bounds = bounds
        self.noted = noted
        self.least: dict[int, Seconds] = {}
        self.stop = -1


class Marks:
    """The profiles before some positions in the line, at which planning can go on: the first is that of no plans.

    ``all``: the marks, by position.
    """

    __slots__ = ("_changes", "all")

    def __init__(self) -> None:
        self.all: list[_Mark] = []
        self._changes: list[tuple[Seconds, int, Seconds, Seconds]] = []

    def mark(self, position: int, profile: CountProfile, bounds: Bounds) -> None:
        """Add the profile and the bounds before a position behind all others."""
        self.all.append(_Mark(position, profile.copy(), bounds.copy(), len(self._changes)))

    def note(self, position: Seconds, amount: int, start: Seconds, end: Seconds) -> None:
        """Note that an amount comes free or is taken, in the profiles before positions up to this one."""
        if len(self._changes) >= _CHANGES:
            for mark in self.all:
                self._renew(mark)
                mark.noted = 0
            self._changes.clear()
        self._changes.append((position, amount, start, end))

    def cut(self, position: int) -> None:
        """Drop the profiles before positions behind this one."""
        marks = self.all
        while marks and marks[-1].position > position:
            marks.pop()
        if marks:
            marks[-1].stop = -1

    def clear(self) -> None:
        self.all.clear()
        self._changes.clear()

    def profile(self, mark: _Mark, now: Seconds) -> CountProfile:
        """Return the profile of a mark from now on; it is not to be changed."""
        self._renew(mark)
        mark.profile.advance(now)
        return mark.profile

    def _renew(self, mark: _Mark) -> None:
        for position, amount, start, end in self._changes[mark.noted :]:
            if position >= mark.position:
                mark.profile.change(amount, start, end)
        mark.noted = len(self._changes)


@mypyc_attr(allow_interpreted_subclasses=True)
class CountPlan:
    """The planned starts of the waiting jobs of a pool of counted processors.

    Jobs are planned in the order of the queue, each into the earliest hole that the running jobs and those before it
    leave. While running jobs end when expected and planned jobs start when planned, planning anew would give the same
    starts: then the plan is kept, and jobs that arrived since are added to it. A job that comes or goes within the plan
    has only the jobs behind it planned anew; an early end, the first job that can start earlier and those behind it;
    any other change of the pool, all.

    A plan goes no further than the last job that could start now; the more ends have come when expected, the further it
    is made in advance, since it will probably last.

    Parameters
    ----------
    place, waiting, order
        the pool, its queue, and the order of the queue
    keep
        whether the plan is used for several decisions: not if the order changes with time
    """

    __slots__ = (
        "_arrived",
        "_bounds",
        "_broken",
        "_due",
        "_ends",
        "_events",
        "_freed",
        "_gone",
        "_held",
        "_left",
        "_line",
        "_marks",
        "_next",
        "_offered",
        "_order",
        "_place",
        "_planned",
        "_profile",
        "_since",
        "_starts",
        "_tried",
        "_version",
        "_waiting",
        "_without",
    )

    def __init__(self, place: Pool, waiting: WaitingQueue, order: OrderLike, *, keep: bool) -> None:
        self._place = place
        self._waiting = waiting
        self._order = order
        self._profile: Any = None  # with the planned jobs
        self._bounds = Bounds()  # of jobs behind them
        self._line: list[LiveJob] = []  # in the order of the queue
        self._next = 0  # how many of them are planned
        self._starts: dict[LiveJob, tuple[Seconds, int]] = {}  # planned start (s) and position in the line
        self._due: list[tuple[Seconds, int, int, LiveJob]] = []  # the same, earliest first, and some that are void
        self._planned: list[tuple[Seconds, int, int, LiveJob]] = []  # those of the last decision, not yet among them
        self._gone: dict[LiveJob, tuple[Seconds, int]] = {}  # planned jobs that left the queue and have not started
        self._arrived: list[LiveJob] = []
        self._left: set[LiveJob] = set()  # jobs without a plan that have left the queue
        self._held: set[LiveJob] = set()  # those of them that keep their places in this decision
        self._broken = False  # whether something was not as planned
        self._ends = 0  # the ends that came when expected since all jobs were planned anew
        self._version = self._events = 0  # of the pool when all jobs were planned; its changes since
        self._offered: LiveJob | None = None  # a job whose start has not been carried out yet
        self._tried = 0, 0  # events and length of the line when no further job could start
        self._marks: Marks | None = Marks() if keep and self.counted else None
        self._since = 0  # jobs planned since the last mark
        self._freed = -INFINITY  # until when (s) processors are free that ended early since the last decision
        self._without = False  # whether some job has no plan, since work without an end is before it
        if keep:
            waiting.keep(self)
            place.running.watch(self)

    counted: ClassVar[bool] = True
    """Whether its profile is of processors, so that an early end leaves a part of the plan."""

    # ------------------------------------------------------------------ what happens between decisions

    def add(self, job: LiveJob) -> None:
        """Note a job that has come into the queue."""
        if self._profile is not None:
            self._arrived.append(job)
            if job.attempts:
                self._broken = True  # it may stand in the line already, at another position

    def remove(self, job: LiveJob) -> None:
        planned = self._starts.pop(job, None)
        if planned is not None:
            self._gone[job] = planned
        elif self._offered is not None:
            self._left.add(job)

    def started(self, entry: Entry) -> None:
        """Note a start in the pool: of a planned job, or of a head of the queue."""
        self._events += 1
        if self._profile is None or self._broken:
            return
        end, _, processors, run = entry
        now, job = self._place.env._now, run.work
        at, position = self._gone.pop(job, None) or self._starts.pop(job, None) or (None, 0)
        if processors != job.width or end != now + job.planned or end <= now:
            self._broken = True
        elif at is None and not self._starts and not self._gone:
            self._take_head(entry, now)
        elif at != now or not self._as_planned(entry):
            self._broken = True
        elif self._marks is not None and self._marks.all:
            self._marks.note(position, -processors, now, end)

    def ended(self, entry: Entry) -> None:
        """Note an end in the pool."""
        self._events += 1
        now = self._place.env._now
        if entry[0] > now:
            if self._marks is None or self._profile is None or not self._profile.exact or self._without:
                self._broken = True
            elif not self._broken:
                self._profile.change(entry[2], now, entry[0])
                self._marks.note(INFINITY, entry[2], now, entry[0])
                self._freed = max(self._freed, entry[0])
        elif entry[0] == now:
            self._ends += 1

    # ------------------------------------------------------------------ decisions

    def decide(self) -> Iterator[Decision]:
        """Bring the plan up to date and start the jobs planned for now."""
        now = self._place.env._now
        if self._lasts(now):
            self._follow(now)
        else:
            self._restart(now)
        yield from self._start_due(now)
        yield from self._go_on(now)

    def _lasts(self, now: Seconds) -> bool:
        """Whether everything went as planned since the last decision."""
        if self._profile is None or self._broken or self._offered is not None:
            return False  # a start that was put aside may be carried out elsewhere
        if self._place.version != self._version + self._events:
            return False
        if (
            self._place.running.first_end <= nextafter(now, INFINITY)
            or len(self._line) > 2 * self._waiting.count + _PAST
        ):
            return False
        due, starts = self._due, self._starts
        for each in self._planned:
            heappush(due, each)
        self._planned.clear()
        if len(due) > 3 * len(starts) + _PAST:
            due[:] = [each for each in due if starts.get(each[3]) == each[:2]]
            heapify(due)
        while due and due[0][0] < now:
            at, position, _, job = heappop(due)
            if starts.get(job) == (at, position):
                return False  # it was due before now
        return True

    def _restart(self, now: Seconds) -> None:
        """Plan no job yet."""
        self._profile = self._new_profile()
        self._bounds = Bounds()
        self._line = list(self._waiting.by(self._order))
        self._next = 0
        self._starts.clear()
        self._due.clear()
        self._planned.clear()
        self._gone.clear()
        self._arrived.clear()
        self._offered = None
        self._ends = 0
        self._freed = -INFINITY
        self._without = False
        if self._marks is not None:
            self._marks.clear()
        # Steps just after now stand for now: they do not outlast the decision.
        self._broken = self._place.running.first_end <= nextafter(now, INFINITY)
        self._version, self._events = self._place.version, 0
        self._tried = -1, 0

    def _follow(self, now: Seconds) -> None:
        """Take the jobs that came and went into account."""
        if self._gone:
            self._cut(min(position for _, position in self._gone.values()))
        if self._freed > now:
            self._move_up(now)
        self._freed = -INFINITY
        for job in self._arrived:
            self._insert(job, 0)
        self._arrived.clear()
        self._profile.advance(now)

    def _move_up(self, now: Seconds) -> None:
        """Drop the plans from the first job on that can start earlier since processors came free early.

        The jobs before a position can only start earlier in what came free, before ``_freed``. The profile of the
        jobs before a mark bounds what is free for those behind it.
        """
        marks, freed = self._marks, self._freed
        assert marks is not None
        stops = [*[mark.position for mark in marks.all[1:]], self._next]
        for mark, stop in zip(marks.all, stops, strict=False):
            profile = marks.profile(mark, now)
            if mark.stop == stop and not any(profile.opens(*each, freed) for each in mark.least.items()):
                continue
            planned = self._planned_behind(mark, stop)
            wide = {width for width, requested in mark.least.items() if profile.opens(width, requested, freed)}
            if wide and self._moves_one(mark, planned, wide, profile, now):
                return

    def _planned_behind(self, mark: _Mark, stop: int) -> list[tuple[int, int, Seconds, Seconds]]:
        """Return position, width, requested time (s) and start (s) of the jobs planned from a mark to a position."""
        line, starts = self._line, self._starts
        planned = []
        least: dict[int, Seconds] = {}
        for i in range(mark.position, stop):
            job = line[i]
            start = starts.get(job)
            if start is not None and start[1] == i:
                width, requested = job.width, job.planned
                planned.append((i, width, requested, start[0]))
                if requested <= least.get(width, INFINITY):
                    least[width] = requested
        mark.least, mark.stop = least, stop
        return planned

    def _moves_one(
        self,
        mark: _Mark,
        planned: list[tuple[int, int, Seconds, Seconds]],
        wide: set[int],
        profile: CountProfile,
        now: Seconds,
    ) -> bool:
        """Whether a job of some widths behind a mark can start earlier: then it and all later plans are dropped."""
        freed, taken = self._freed, 0
        closed: dict[tuple[int, Seconds], Seconds] = {}  # what like jobs have been asked in vain
        for each, (i, width, requested, at) in enumerate(planned):
            like, before = (width, requested), min(freed, at)
            if width not in wide or at <= now or before <= closed.get(like, now):
                continue
            closed[like] = before  # of this mark, the profile of later jobs has no more free
            if not profile.opens(width, requested, before):
                continue
            if each:
                if not taken:
                    profile = profile.copy()
                for _, other, its, start_of_other in planned[taken:each]:
                    profile.take(other, start_of_other, its)
                taken = each
                if not profile.opens(width, requested, before):
                    continue
            self._go_back(i, profile if taken else profile.copy(), mark, planned[:each])
            return True
        return False

    def _go_back(
        self, position: int, profile: CountProfile, mark: _Mark, planned: list[tuple[int, int, Seconds, Seconds]]
    ) -> None:
        """Drop the plans from a position on: the profile is that before it, ``planned`` lie between it and a mark."""
        starts, marks, line = self._starts, self._marks, self._line
        assert marks is not None
        for i in range(position, self._next):
            if (start := starts.get(line[i])) is not None and start[1] == i:
                del starts[line[i]]
        self._due[:] = [each for each in self._due if each[1] < position]
        heapify(self._due)
        marks.cut(position)
        self._profile = profile
        self._bounds = mark.bounds.copy()
        if len(starts) >= _FEW:
            for _, width, requested, at in planned:
                self._bounds.add(width, requested, at)
        self._since = len(planned)
        self._next = position
        self._tried = -1, 0
        self._ends = 0

    def _insert(self, job: LiveJob, after: int) -> bool:
        """Insert a job that has come into the line, if it belongs at ``after`` or later."""
        if job.state != "waiting":
            return True
        line, key = self._line, self._order.key
        entry = entry_of(job, key)[:-1]  # a former entry of the same job may still stand in the line
        position = len(line)
        if line and entry < entry_of(line[-1], key)[:-1]:
            position = bisect_right(line, entry, key=lambda each: entry_of(each, key)[:-1])
        if position < after:
            return False
        if position < self._next:
            self._cut(position)
        line.insert(position, job)
        self._tried = self._tried[0], min(self._tried[1], position)
        return True

    def _cut(self, position: int) -> None:
        """Drop the plans of the jobs from a position in the line on."""
        planned = {**self._starts, **self._gone}
        dropped = [(job, at) for job, (at, place) in planned.items() if place >= position]
        for job, _ in dropped:
            self._starts.pop(job, None)
            self._gone.pop(job, None)
        self._drop(dropped)
        if self._marks is not None:
            self._marks.cut(position)
        self._since = 0
        self._bounds = Bounds()
        self._next = min(self._next, position)
        self._tried = -1, 0

    def _start_due(self, now: Seconds) -> Iterator[Decision]:
        """Start the jobs that an earlier decision planned for now."""
        due, starts = self._due, self._starts
        while due and due[0][0] <= now:
            at, position, _, job = heappop(due)
            if starts.get(job) != (at, position):
                continue
            self._offered = job
            yield self._start(job)
            self._offered = None
            behind = [place for _, place in self._gone.values() if place > position]
            if behind:  # held by a limit since this start
                self._cut(min(behind))

    def _go_on(self, now: Seconds) -> Iterator[Decision]:
        """Plan jobs behind those that are planned, as long as one of the others could start now. A hot path."""
        line, starts, held = self._line, self._starts, self._held
        plan, planned = self._plan, self._planned
        held.clear()
        self._left.clear()
        events, tried = self._tried
        marks = self._marks
        position = self._next
        first = max(tried, position) if events == self._events else position
        fitting = [] if marks is not None else self._fitting(first)
        following = self._needed(now, first) if marks is not None else self._in_turn(now, fitting)
        at = now
        while position < len(line):
            place = following(position, at)
            if place < 0:
                break
            job = line[place]
            if place == position:
                position += 1
                if (job.state != "waiting" and job not in held) or job in starts:
                    continue
                if marks is not None and (self._since >= _APART or not marks.all):
                    marks.mark(place, self._profile, self._bounds)
                    self._since = 0
                self._since += 1
            at = plan(job)
            if at == INFINITY:
                self._without = True
                continue
            starts[job] = at, place
            if at + job.planned <= at:
                self._broken = True  # the step just after it stands for its instant
            if at > now:
                planned.append((at, place, job.seq, job))
                if marks is not None and at < at + job.planned:
                    position = self._plan_alike(job, at, position)
                continue
            self._next = position
            self._offered = job
            yield self._start(job)
            self._offered = None
            self._has_started(job)
            if self._left:
                self._hold(position, place)
            if job.planned == INFINITY:
                break  # all are planned anew
            if self._arrived:
                fitting += self._join(place + 1)
        self._next = position
        self._tried = self._events, len(line)

    def _hold(self, position: int, place: int) -> None:
        """Note which jobs without a plan a limit holds since a job behind them has started: a new plan has them."""
        self._held.update(self._left.intersection(self._line[position:place]))
        self._left.clear()
        self._broken = self._broken or bool(self._held)

    def _in_turn(self, now: Seconds, fitting: list[LiveJob]) -> Callable[[int, Seconds], int]:
        """Return a function of a position and the last plan (s): that of the job to be planned next, which it is.

        It is -1 once none of the fitting jobs could start now, and some are planned in advance.
        """
        more = 2.0 ** min(self._ends, _DOUBLED) if self._ends else 0.0  # jobs to plan although none could start now
        until = -INFINITY  # a plan from then on does not change which job could start now

        def following(position: int, at: Seconds) -> int:
            nonlocal more, until
            if until < now or at < until or at == now:
                until = self._until(fitting)
                if until < now:
                    more -= 1
                    if more < 0:
                        return -1
            return position

        return following

    def _needed(self, now: Seconds, first: int) -> Callable[[int, Seconds], int]:
        """Return a function of a position and the last plan (s): the position of the job to be planned next.

        A job that fits now starts if none of those before it could start before it would end. Else the plans matter up
        to the first that could. It is -1 once no job fits now.
        """
        stop = 0  # no plan from there on matters yet
        holes: dict[int, Seconds] = {}
        if not self._widths(now):
            first = len(self._line)

        def following(position: int, _: Seconds) -> int:
            nonlocal first, stop
            if position < stop:
                return position
            first = self._first_fitting(max(first, position), now, holes)
            if first == len(self._line):
                return -1
            place = self._first_before(position, first, now)
            if place == first:
                return place
            stop = place + 1
            return position

        return following

    def _first_fitting(self, first: int, now: Seconds, holes: dict[int, Seconds]) -> int:
        """Return the position of the first job from one on that fits now beside the planned ones, or that of the end.

        ``holes`` is for how long (s) processors are free from now on, or longer, by width.
        """
        line, profile, starts = self._line, self._profile, self._starts
        for place in range(first, len(line)):
            job = line[place]
            width, requested = job.width, job.planned
            longest = holes.get(width, INFINITY)
            if requested <= longest and job.state == "waiting" and job not in starts:
                if profile.fits(width, requested):
                    return place
                holes[width] = nextafter(profile.free_until(width), INFINITY) - now
        return len(line)

    def _first_before(self, position: int, fitting: int, now: Seconds) -> int:
        """Return the position of the first job from one on that could start before a fitting one ends, or of that one.

        If none before the fitting one could, waiting or held, it starts now, whatever their plans.
        """
        line, profile, starts, held = self._line, self._profile, self._starts, self._held
        end = now + line[fitting].planned
        holes: dict[int, Seconds] = {}  # the longest from before the end on, by width
        for place in range(position, fitting):
            job = line[place]
            width = job.width
            longest = holes.get(width)
            if longest is None:
                longest = holes[width] = profile.longest(width, end)
            if job.planned <= longest and (job.state == "waiting" or job in held) and job not in starts:
                return place
        return fitting

    def _plan_alike(self, job: LiveJob, at: Seconds, position: int) -> int:
        """Plan the next jobs with one change as far as they request the same as a planned one and fit beside it.

        None of them could start earlier. Returns the position behind them. A hot path.
        """
        line, starts, width, requested = self._line, self._starts, job.width, job.planned
        first, last, room = position, min(len(line), position + _APART - self._since), -1
        while position < last:
            other = line[position]
            if other.width != width or other.planned != requested or other.state != "waiting" or other in starts:
                break
            if room < 0:
                room = self._profile.room(width, at, requested, last - first)
            if position - first >= room:
                break
            starts[other] = at, position
            self._planned.append((at, position, other.seq, other))
            position += 1
        if position > first:
            self._profile.take(width * (position - first), at, requested)
            self._since += position - first
        return position

    def _join(self, after: int) -> list[LiveJob]:
        """Insert the jobs that a start has released, if they stand behind the planned jobs; return them."""
        came = [job for job in self._arrived if self._insert(job, max(after, self._next))]
        self._arrived = [job for job in self._arrived if job not in came]
        return came

    def _until(self, fitting: list[LiveJob]) -> Seconds:
        """Return the expected end (s) of a job that could start now; infinitely early if none could.

        Jobs that cannot start are dropped for good, with those that request no less: plans only take processors.
        """
        starts, now = self._starts, self._place.env._now
        while fitting:
            job = fitting[-1]
            if job.state != "waiting" or job in starts:
                fitting.pop()
            elif self._fits(job):
                return now + job.planned
            else:
                self._drop_like(job, fitting)
        return -INFINITY

    # ------------------------------------------------------------------ what depends on the kind of pool

    def _new_profile(self) -> Any:
        """Return the profile without any plans."""
        return self._place.counts()

    def _plan(self, job: LiveJob) -> Seconds:
        """Plan a job; return its start (s), which is infinite if it can never start."""
        profile, width, requested = self._profile, job.width, job.planned
        at: Seconds
        if len(self._starts) < _FEW:
            at = profile.earliest(width, requested)
        else:
            bound = self._bounds.of(width, requested)
            at = profile.earliest(width, requested, bound)
            if bound < at < INFINITY:
                self._bounds.add(width, requested, at)
        if at < INFINITY:
            profile.take(width, at, requested)
        return at

    def _start(self, job: LiveJob) -> Start:
        return Start(job, self._place)

    def _has_started(self, job: LiveJob) -> None:
        """Note the start of a job, which a plan that is not kept learns in no other way."""

    def _as_planned(self, entry: Entry) -> bool:
        """Whether a job that was planned for now has started on the planned nodes."""
        return True

    def _take_head(self, entry: Entry, now: Seconds) -> None:
        """Note the start of a job while no jobs are planned."""
        self._profile.advance(now)
        self._profile.take(entry[2], now, entry[3].work.planned)
        if self._marks is not None:
            self._marks.clear()

    def _drop(self, jobs: list[tuple[LiveJob, Seconds]]) -> None:
        """Undo the plans of jobs, each with its start (s)."""
        for job, at in jobs:
            self._profile.give_back(job.width, at, job.planned)

    def _fitting(self, first: int) -> list[LiveJob]:
        """Return the jobs from a position in the line on of the widths of which a job may fit now."""
        free = self._profile.free
        return [job for job in self._line[first:] if job.width <= free]

    def _widths(self, now: Seconds) -> set[int]:
        """Return the widths of which a waiting job may fit now."""
        free_until = self._profile.free_until

        def longest(width: int) -> Seconds:
            return nextafter(free_until(width), INFINITY) - now  # not less, whatever the rounding

        widths: set[int] = self._waiting.lanes(self._order).widths(self._profile.free, longest)
        return widths

    def _fits(self, job: LiveJob) -> bool:
        """Whether a job could start now beside the planned ones."""
        fits: bool = self._profile.fits(job.width, job.planned)
        return fits

    def _drop_like(self, blocked: LiveJob, jobs: list[LiveJob]) -> None:
        """Drop a job that does not fit now, and those that request no less."""
        width, requested = blocked.width, blocked.planned
        jobs[:] = [job for job in jobs if job.width < width or job.planned < requested]
