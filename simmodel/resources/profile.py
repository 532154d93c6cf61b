"""The free capacity of a pool over time: a step function from now on, into which jobs are planned."""

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
    """The free capacity of a pool of any kind over time, for policies that plan; made by ``pool.profile()``.

    Instants and durations are in seconds. Allocations (of nodes, or just a number of processors) are opaque to the
    planner, which passes them on unchanged.
    """

    def fits(self, job: LiveJob, duration: float, /) -> Any:
        """Return an allocation to start the job with now, or ``None`` if it does not fit for ``duration`` seconds."""
        ...

    def earliest(self, job: LiveJob, duration: float, not_before: float = ..., /) -> tuple[float, Any]:
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

    def make_room(self, job: LiveJob, duration: float, planned: LiveJob, /) -> Any:
        """Return an allocation to start the job with now, moving planned work to other nodes, or ``None``."""
        ...

    def instant(self, at: float, /) -> float:
        """Return the instant of a planned start; a step just after an instant counts as that instant."""
        ...


class CountProfile:
    """A free amount (of processors or of a consumable) over time.

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
        """Return the step just after an instant, which outside the profile counts as the same instant."""
        step = nextafter(instant, INFINITY)
        self._just_after[step] = self.instant(instant)
        return step

    def instant(self, at: float) -> float:
        """Return the instant of a step; a step just after an instant counts as that instant."""
        return self._just_after.get(at, at)

    def steps(self) -> list[tuple[float, int]]:
        """Return the steps as (instant, free)."""
        return list(zip(self.times, self.free, strict=True))

    def earliest(self, need: int, duration: float) -> float:
        """Return the earliest instant from which ``need`` stays free for ``duration`` seconds; infinite if never."""
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
        """Whether ``need`` is free from now on for ``duration`` seconds."""
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
        """Take ``need`` from ``start`` on, which is within the profile, for ``duration`` seconds.

        A duration of zero takes it for the instant: it is free again just after.
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
        """Undo :meth:`take`."""
        self.take(-need, start, duration)

    def advance(self, now: float) -> None:
        """Drop the steps before ``now``."""
        i = bisect_right(self.times, now) - 1
        if i > 0:
            del self.times[:i], self.free[:i]
        if self.times[0] < now:
            self.times[0] = now


def ends_of(running: RunningIndex) -> Iterable[tuple[float, int]]:
    """Yield (expected end, processors) of running work, in order."""
    for entry in running.entries():
        yield entry[0], entry[2]


def earliest_from(part: CountProfile, need: float, duration: float, at: float) -> float:
    """Return the earliest instant (s) from ``at`` on from which ``need`` stays free for ``duration`` seconds."""
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
