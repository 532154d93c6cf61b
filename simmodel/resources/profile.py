"""What will be free when: a step function from now on, into which jobs are planned."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import nextafter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simmodel.resources.running import RunningIndex
    from simmodel.work.job import LiveJob

__all__ = ["CountProfile", "Profile", "earliest_from"]

INFINITY = float("inf")


class Profile(Protocol):
    """What a pool of any kind will have free when, as a policy plans with it; ``pool.profile()`` makes one.

    Instants and durations are in seconds. What a job is started with (an allocation of nodes, or nothing but the number
    of its processors) is for the pool to know: a planner hands it on as it got it.
    """

    def fits(self, job: LiveJob, duration: float, /) -> Any:
        """Return what to start the job with now, or ``None`` where it does not fit for so many seconds."""
        ...

    def earliest(self, job: LiveJob, duration: float, not_before: float = ..., /) -> tuple[float, Any]:
        """Return the earliest instant at which the job fits for so many seconds, and what to start it with."""
        ...

    def take(self, job: LiveJob, at: float, duration: float, allocation: Any = None, /) -> None:
        """Plan the job from an instant on for so many seconds."""
        ...

    def renew(self, job: LiveJob, at: float, duration: float, allocation: Any, /) -> None:
        """Plan again what an earlier decision planned."""
        ...

    def give_back(self, job: LiveJob, at: float, duration: float, allocation: Any = None, /) -> None:
        """Undo ``take``."""
        ...

    def make_room(self, job: LiveJob, duration: float, planned: LiveJob, /) -> Any:
        """Return what to start the job with now where planned work can do with other nodes, to which it is moved."""
        ...

    def instant(self, at: float, /) -> float:
        """Return the instant of a planned start: a step just after an instant is that instant."""
        ...


class CountProfile:
    """Free amounts over time, one whole number (or several: processors, then consumables) a step.

    Parameters
    ----------
    now
        the instant at which the profile begins, in seconds
    free
        what is free now
    ends
        (instant in seconds, processors) that come free, in order of time; who is past its expected end is expected to
        end just after now: what it holds is not free yet
    windows
        (start, end, processors) in seconds that are taken away for a while

    >>> profile = CountProfile(0, 2, [(10, 3)])
    >>> profile.earliest(4, 5), profile.earliest(1, 100)
    (10, 0)
    >>> profile.take(4, 10, 5); profile.steps()
    [(0, 2), (10, 1), (15, 5)]
    """

    __slots__ = ("_just_after", "free", "times")

    def __init__(
        self,
        now: float,
        free: int,
        ends: Iterable[tuple[float, int]],
        windows: Sequence[tuple[float, float, int]] = (),
    ) -> None:
        times: list[float] = [now]
        amounts = [free]
        self._just_after: dict[float, float] = {}
        soon = nextafter(now, INFINITY)
        for end, processors in ends:
            free += processors
            if end <= now:
                end = soon
                self._just_after[soon] = now
            if end > times[-1]:
                times.append(end)
                amounts.append(free)
            else:
                amounts[-1] = free
        self.times = times
        self.free = amounts
        for start, end, processors in windows:
            if end > now:
                begin = max(start, now)
                self.take(processors, begin, end - begin)

    def _after(self, instant: float) -> float:
        """Return the step just after an instant, which is the same instant to everybody outside the profile."""
        step = nextafter(instant, INFINITY)
        self._just_after[step] = self.instant(instant)
        return step

    def instant(self, at: float) -> float:
        """Return the instant of a step: a step just after an instant is that instant."""
        return self._just_after.get(at, at)

    def steps(self) -> list[tuple[float, int]]:
        """Return the steps as (instant, free)."""
        return list(zip(self.times, self.free, strict=True))

    def earliest(self, need: int, duration: float) -> float:
        """Return the earliest instant from which so many stay free for so many seconds; infinite where never."""
        times, free, after = self.times, self.free, self._just_after
        last = len(times)
        i = 0
        while i < last:
            if free[i] < need:
                i += 1
                continue
            end = (after.get(times[i], times[i]) if after else times[i]) + duration
            j = i + 1
            while j < last and times[j] < end:
                if free[j] < need:
                    break
                j += 1
            else:
                return times[i]
            i = j + 1
        return INFINITY

    def fits(self, need: int, duration: float) -> bool:
        """Whether so many are free from now on for so many seconds."""
        free = self.free
        if free[0] < need:
            return False
        times = self.times
        end = times[0] + duration
        for j in range(1, len(times)):
            if times[j] >= end:
                return True
            if free[j] < need:
                return False
        return True

    def take(self, need: int, start: float, duration: float) -> None:
        """Take so many away from ``start`` on for so many seconds; ``start`` lies within the profile.

        What takes no time is there for the instant: whoever comes after it comes just after.
        """
        times, free = self.times, self.free
        i = bisect_right(times, start) - 1
        if times[i] != start:
            i += 1
            times.insert(i, start)
            free.insert(i, free[i - 1])
        end = self.instant(start) + duration if duration > 0 else self._after(start)
        last = len(times)
        while i < last and times[i] < end:
            free[i] -= need
            i += 1
        if (i == last or times[i] != end) and end != INFINITY:
            times.insert(i, end)
            free.insert(i, free[i - 1] + need)

    def give_back(self, need: int, start: float, duration: float) -> None:
        """Undo ``take``."""
        self.take(-need, start, duration)

    def advance(self, now: float) -> None:
        """Drop what lies before ``now``."""
        i = bisect_right(self.times, now) - 1
        if i > 0:
            del self.times[:i], self.free[:i]
        if self.times[0] < now:
            self.times[0] = now


def ends_of(running: RunningIndex) -> Iterable[tuple[float, int]]:
    """Yield (expected end, processors) of what runs, in order."""
    for entry in running.entries():
        yield entry[0], entry[2]


def earliest_from(part: CountProfile, need: float, duration: float, at: float) -> float:
    """Return the earliest instant not before ``at`` (s) from which so much stays free for so many seconds."""
    times, free = part.times, part.free
    candidates = [at, *(time for time in times if time > at)]
    for start in candidates:
        end = part.instant(start) + duration
        if all(
            free[i] >= need
            for i in range(len(times))
            if (times[i] <= start or times[i] < end) and (i + 1 == len(times) or times[i + 1] > start)
        ):
            return start
    return INFINITY
