"""The free capacity of a pool over time: a step function from now on, into which jobs are planned."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from math import nextafter
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Protocol, SupportsFloat, TypeAlias

if TYPE_CHECKING:
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.running import RunningIndex
    from simmodel.work.job import LiveJob

__all__ = ["CountProfile", "Profile"]

INFINITY: Final = float("inf")
_MOST: Final = 64  # steps in a block
Seconds: TypeAlias = Any
"""An instant or a duration, as it is given: compiled, a ``float`` would make one of each whole number."""


class Profile(Protocol):
    """The free capacity of a pool of any kind over time, for policies that plan; made by ``pool.profile()``.

    Instants and durations are in seconds. Allocations (of nodes, or just a number of processors) are opaque to the
    planner, which passes them on unchanged.
    """

    def fits(self, job: LiveJob, duration: float, within: Any = None, /) -> Any:
        """Return an allocation to start the job with now, or ``None`` if it does not fit for ``duration`` seconds.

        ``within``: the table of the parts of nodes that it may have, if nodes are identified.
        """
        ...

    def earliest(self, job: LiveJob, duration: float, not_before: float = -INFINITY, /) -> tuple[float, Any]:
        """Return the earliest instant at which the job fits for ``duration`` seconds, and its allocation then."""
        ...

    def take(self, job: LiveJob, at: float, duration: float, allocation: Any = None, /) -> None:
        """Plan the job from an instant on for ``duration`` seconds."""
        ...

    def renew(self, job: LiveJob, at: float, duration: float, allocation: Any, /) -> None:
        """Repeat an earlier plan."""
        ...

    def hold(self, job: LiveJob, duration: float, allocation: Any, /) -> float | None:
        """Repeat an earlier plan that is due now; return its instant, or ``None`` if its own nodes are not free."""
        ...

    def give_back(self, job: LiveJob, at: float, duration: float, allocation: Any = None, /) -> None:
        """Undo :meth:`take`."""
        ...

    def make_room(
        self, job: LiveJob, duration: float, planned: LiveJob, booted: tuple[float, Allocation] | None = None, /
    ) -> Any:
        """Return an allocation to start the job with now, moving planned work to other nodes, or ``None``."""
        ...

    def instant(self, at: float, /) -> float:
        """Return the instant of a planned start; a step just after an instant counts as that instant."""
        ...


class _Block:
    """Consecutive steps of a profile, with bounds of their free capacity.

    ``shift`` is added to all of ``free``; ``low`` and ``high`` are bounds of ``free`` without it.
    """

    __slots__ = ("free", "high", "low", "shift", "times")

    def __init__(self, times: list[Seconds], free: list[float], whole: _Block | None = None) -> None:
        self.times = times
        self.free = free
        self.shift: float = 0.0
        if whole is None:
            self.low, self.high = min(free), max(free)
        else:  # of which it is a part
            self.shift, self.low, self.high = whole.shift, whole.low, whole.high

    def add(self, first: int, stop: int, amount: float) -> None:
        """Add an amount to some of the steps."""
        free = self.free
        free[first:stop] = [each + amount for each in free[first:stop]]
        if amount < 0:
            self.low += amount
        else:
            self.high += amount


class CountProfile:
    """A free amount (of processors or of a consumable) over time.

    The steps are in blocks with bounds, so that a search passes over those that are too full and those that fit.
    Amounts are counted as floats; where the first one is a whole number, whole numbers are returned.

    Parameters
    ----------
    now
        the instant at which the profile begins, in seconds
    free
        the amount free now
    ends
        (instant in seconds, processors) of running work, ordered by time; work past its expected end is expected to end
        just after now: its processors are not free yet
    windows
        (start, end, processors) of absences, in seconds

    >>> profile = CountProfile(0, 2, [(10, 3)])
    >>> profile.earliest(4, 5), profile.earliest(1, 100)
    (10, 0)
    >>> profile.take(4, 10, 5); profile.steps()
    [(0, 2), (10, 1), (15, 5)]
    """

    __slots__ = ("_blocks", "_firsts", "_just_after", "_whole")

    def __init__(
        self,
        now: Seconds,
        free: SupportsFloat,
        ends: Iterable[tuple[Seconds, SupportsFloat]],
        windows: Sequence[tuple[Seconds, Seconds, SupportsFloat]] = (),
    ) -> None:
        self._whole = isinstance(free, Integral)
        times: list[Seconds] = [now]
        amount = float(free)
        amounts = [amount]
        self._just_after: dict[Seconds, Seconds] = {}
        soon = nextafter(now, INFINITY)
        for end, processors in ends:
            amount += float(processors)
            if end <= now:
                end = soon
                self._just_after[soon] = now
            if end > times[-1]:
                times.append(end)
                amounts.append(amount)
            else:
                amounts[-1] = amount
        if times[-1] == INFINITY:
            del times[-1], amounts[-1]
        cuts = range(0, len(times), _MOST // 2)
        self._blocks = [_Block(times[i : i + _MOST // 2], amounts[i : i + _MOST // 2]) for i in cuts]
        self._firsts = [times[i] for i in cuts]  # the first instant of each block
        for start, end, processors in windows:
            if end > now:
                begin = max(start, now)
                self.take(processors, begin, end - begin)

    def _after(self, at: Seconds, end: Seconds) -> Seconds:
        """Return the step just after a plan whose end does not come after its step; it counts as the end."""
        step = nextafter(at, INFINITY)
        self._just_after[step] = end
        return step

    def instant(self, at: Seconds) -> Seconds:
        """Return the instant of a step; a step just after an instant counts as that instant."""
        return self._just_after.get(at, at)

    @property
    def exact(self) -> bool:
        """Whether no step stands for the instant before it."""
        return not self._just_after

    def _as_given(self, amount: float) -> Any:
        """Return an amount as a whole number, if the first was one."""
        return int(amount) if self._whole else amount

    def steps(self) -> list[tuple[Seconds, Any]]:
        """Return the steps as (instant, free)."""
        return [
            (at, self._as_given(free + block.shift))
            for block in self._blocks
            for at, free in zip(block.times, block.free, strict=True)
        ]

    @property
    def free(self) -> Any:
        """The amount free at the beginning."""
        block = self._blocks[0]
        return self._as_given(block.free[0] + block.shift)

    @property
    def next_step(self) -> Seconds:
        """The instant of the second step, in seconds; infinite if there is none."""
        times = self._blocks[0].times
        return times[1] if len(times) > 1 else self._firsts[1] if len(self._firsts) > 1 else INFINITY

    # ------------------------------------------------------------------ questions

    def earliest(
        self, need: SupportsFloat, duration: Seconds, not_before: Seconds = -INFINITY, granted: Seconds = INFINITY
    ) -> Seconds:
        """Return the earliest instant from which ``need`` stays free for ``duration`` seconds; infinite if never.

        From the instant ``granted`` on, ``need`` is there: the answer comes no later. A hot path.
        """
        blocks, after = self._blocks, self._just_after
        least = float(need)
        last = granted  # by when a hole that does not go on from then must end
        if self._firsts[0] < granted < INFINITY:
            block = blocks[bisect_left(self._firsts, granted) - 1]
            i = bisect_left(block.times, granted) - 1
            if block.free[i] + block.shift < least:
                last = block.times[i]
        if not_before > self._firsts[0]:
            blocks = self._from(not_before)
        start = granted  # of a hole that may go on in the next block
        end: Seconds = INFINITY
        open_ = False
        for block in blocks:
            lack = least - block.shift
            times, free = block.times, block.free
            if times[0] >= last:
                break
            i, count = 0, len(free)
            if open_:
                if times[0] >= end:
                    return start
                if block.low >= lack:
                    continue
                while i < count and free[i] >= lack:
                    i += 1
                if i == count:
                    block.low = min(free)
                    continue
                if times[i] >= end:
                    return start
                open_ = False
            elif block.high < lack:
                continue
            if not after and times[-1] < times[i] + duration and times[-1] < last:  # no hole in it is long enough
                first, i = i, count
                while i > first and free[i - 1] >= lack:
                    i -= 1
            while True:
                while i < count and free[i] < lack:
                    i += 1
                if i == count:
                    break
                start = times[i]
                end = (after.get(start, start) if after else start) + duration
                if end > last:
                    if last < granted or start >= granted:
                        return granted
                    end = granted
                i += 1
                while i < count and free[i] >= lack:
                    i += 1
                if i == count:
                    open_ = True
                    break
                if times[i] >= end:
                    return start
            if not open_:
                block.high = max(free)
        return start if open_ else granted

    def _from(self, instant: Seconds) -> list[_Block]:
        """Return the blocks from an instant on, beginning with a step at that instant."""
        b = bisect_right(self._firsts, instant) - 1
        block = self._blocks[b]
        i = bisect_right(block.times, instant) - 1
        first = _Block([instant, *block.times[i + 1 :]], block.free[i:], block)
        return [first, *self._blocks[b + 1 :]]

    def opens(self, need: SupportsFloat, duration: Seconds, before: Seconds) -> bool:
        """Whether ``need`` stays free for ``duration`` seconds from an instant before ``before``. A hot path."""
        after = self._just_after
        least = float(need)
        end: Seconds = INFINITY
        open_ = False
        for block in self._blocks:
            lack = least - block.shift
            times, free = block.times, block.free
            i, count = 0, len(free)
            if open_:
                if times[0] >= end:
                    return True
                if block.low >= lack:
                    continue
                while i < count and free[i] >= lack:
                    i += 1
                if i == count:
                    continue
                if times[i] >= end:
                    return True
                open_ = False
            elif times[0] >= before:
                return False
            elif block.high < lack:
                continue
            while True:
                while i < count and free[i] < lack:
                    i += 1
                if i == count:
                    break
                start = times[i]
                if start >= before:
                    return False
                end = (after.get(start, start) if after else start) + duration
                i += 1
                while i < count and free[i] >= lack:
                    i += 1
                if i == count:
                    open_ = True
                    break
                if times[i] >= end:
                    return True
            if not open_:
                block.high = max(free)
        return open_

    def longest(self, need: SupportsFloat, before: Seconds) -> float:
        """Return for how long (s) ``need`` stays free at most from an instant before ``before``, or a little longer."""
        after = self._just_after
        least, most = float(need), 0.0  # what is needed; the longest hole
        start: Seconds = -INFINITY  # of a hole that may go on in the next block
        for block in self._blocks:
            lack = least - block.shift
            times, free = block.times, block.free
            if start == -INFINITY:
                if times[0] >= before:
                    break
                if block.high < lack:
                    continue
            elif block.low >= lack:
                continue
            open_ = start > -INFINITY
            for i, each in enumerate(free):
                if each < lack:
                    if open_:
                        # Not less, whatever the rounding.
                        most = max(most, float(nextafter(times[i], INFINITY) - start))
                        start, open_ = -INFINITY, False
                elif not open_:
                    at = times[i]
                    if at >= before:
                        return most
                    start, open_ = after.get(at, at), True
        return most if start == -INFINITY else INFINITY

    def fits(self, need: SupportsFloat, duration: Seconds) -> bool:
        """Whether ``need`` is free from now on for ``duration`` seconds."""
        least = float(need)
        end = self._firsts[0] + duration
        for block in self._blocks:
            lack = least - block.shift
            times = block.times
            if times[0] >= end:
                return block is not self._blocks[0] or block.free[0] >= lack
            if block.low < lack:
                free = block.free
                stop = bisect_left(times, end)
                if min(free[:stop]) < lack:
                    return False
                if stop < len(free):
                    return True
                block.low = min(free)
        return True

    def free_until(self, need: SupportsFloat) -> Seconds:
        """Return the instant (s) until which ``need`` is free from the beginning on; infinite if for good."""
        least = float(need)
        for block in self._blocks:
            lack = least - block.shift
            if block.low < lack:
                for i, free in enumerate(block.free):
                    if free < lack:
                        return block.times[i]
                block.low = min(block.free)
        return INFINITY

    def room(self, need: SupportsFloat, start: Seconds, duration: Seconds, most: int) -> int:
        """Return how often, up to ``most`` times, ``need`` is free from ``start`` on for ``duration`` seconds."""
        end = self._just_after.get(start, start) + duration
        each = float(need)
        least = each * most
        for block in self._blocks[bisect_right(self._firsts, start) - 1 :]:
            times = block.times
            if times[0] >= end or least < each:
                break
            if block.low + block.shift < least:
                i = max(0, bisect_right(times, start) - 1)
                least = min(least, min(block.free[i : max(i + 1, bisect_left(times, end))]) + block.shift)
        return int(least // each)

    # ------------------------------------------------------------------ changes

    def take(self, need: SupportsFloat, start: Seconds, duration: Seconds) -> None:
        """Take ``need`` from ``start`` on, which is within the profile, for ``duration`` seconds.

        A duration that does not move the clock takes it for the instant: it is free again just after. A hot path.
        """
        after = self._just_after
        end = (after.get(start, start) if after else start) + duration
        if end <= start:
            end = self._after(start, end)
        self._change(-float(need), start, end)

    def move(self, need: SupportsFloat, start: Seconds, to: Seconds, duration: Seconds) -> None:
        """Undo :meth:`take`, and take the same from an earlier instant on."""
        amount = float(need)
        until, end = to + duration, start + duration
        self._change(-amount, to, min(until, start))
        self._change(amount, max(until, start), end)

    def change(self, amount: SupportsFloat, start: Seconds, end: Seconds) -> None:
        """Add an amount from ``start``, which is within the profile, to ``end``, and merge equal steps there."""
        self._change(float(amount), start, end)

    def _change(self, amount: float, start: Seconds, end: Seconds) -> None:
        """Add an amount from an instant to another. A hot path."""
        if end <= start:
            return
        blocks = self._blocks
        b = c = 0
        if len(blocks) > 1:
            b = bisect_right(self._firsts, start) - 1
            c = bisect_right(self._firsts, end, b) - 1
        block = blocks[b]
        times = block.times
        i = bisect_left(times, start)
        first = i < len(times) and times[i] == start  # whether the step was there, and may now equal the one before it
        if not first:
            times.insert(i, start)
            block.free.insert(i, block.free[i - 1])
        last = blocks[c]
        times, free = last.times, last.free
        j = bisect_left(times, end)
        second = j < len(times) and times[j] == end
        if not second and end < INFINITY:
            times.insert(j, end)
            free.insert(j, free[j - 1])
        if b == c:
            free[i:j] = [each + amount for each in free[i:j]]
            if amount < 0:
                block.low += amount
            else:
                block.high += amount
        else:
            block.add(i, len(block.free), amount)
            for between in blocks[b + 1 : c]:
                between.shift += amount
            if j:
                last.add(0, j, amount)
        if second and j and free[j] == free[j - 1]:
            del times[j], free[j]
        if first and i and block.free[i] == block.free[i - 1]:
            del block.times[i], block.free[i]
        if c > b and len(times) > _MOST:
            self._divide(c)
        if len(block.times) > _MOST:
            self._divide(b)

    def give_back(self, need: SupportsFloat, start: Seconds, duration: Seconds) -> None:
        """Undo :meth:`take`."""
        self.take(-float(need), start, duration)

    def advance(self, now: Seconds) -> None:
        """Drop the steps before ``now``."""
        blocks, firsts = self._blocks, self._firsts
        b = bisect_right(firsts, now) - 1
        if b > 0:
            del blocks[:b], firsts[:b]
        block = blocks[0]
        i = bisect_right(block.times, now) - 1
        if i > 0:
            del block.times[:i], block.free[:i]
        if block.times[0] < now:
            block.times[0] = now
        firsts[0] = block.times[0]
        if self._just_after:
            self._just_after = {step: at for step, at in self._just_after.items() if step >= now}

    def copy(self) -> CountProfile:
        """Return a copy."""
        return _restored(self._whole, self._just_after, self._parts())

    def _parts(self) -> list[tuple[Any, ...]]:
        return [(block.times, block.free, block.shift, block.low, block.high) for block in self._blocks]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._whole, self._just_after, self._parts())

    def _divide(self, b: int) -> None:
        """Divide a block that has become too long."""
        block = self._blocks[b]
        half = _MOST // 2
        second = _Block(block.times[half:], block.free[half:])
        second.shift = block.shift
        del block.times[half:], block.free[half:]
        self._blocks.insert(b + 1, second)
        self._firsts.insert(b + 1, second.times[0])


def _restored(whole: bool, just_after: dict[Seconds, Seconds], parts: list[tuple[Any, ...]]) -> CountProfile:
    """Return a profile of these blocks, which it copies; pickles of both forms call it."""
    profile = CountProfile(0, 0, ())
    profile._whole, profile._just_after, profile._blocks = whole, dict(just_after), []
    for times, free, *bounds in parts:
        block = _Block(list(times), list(free))
        block.shift, block.low, block.high = bounds
        profile._blocks.append(block)
    profile._firsts = [block.times[0] for block in profile._blocks]
    return profile


def ends_of(running: RunningIndex) -> Iterable[tuple[float, int]]:
    """Yield (expected end, processors) of running work, in order."""
    for entry in running.entries():
        yield entry[0], entry[2]
