"""Pools of counted processors, without node identities, and their profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from heapq import merge
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.absences import Absences
from simmodel.resources.pools.allocation import probe
from simmodel.resources.pools.claims import Grant
from simmodel.resources.pools.pool import Pool
from simmodel.resources.pools.profile import CountProfile, ends_of
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    import numpy as np

    from simmodel.platform.cluster import OutageSpec, ReservationSpec
    from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
    from simmodel.work.job import Job, LiveJob, Run

__all__ = ["CountPool", "PoolProfile"]

COUNTED = Grant()  # of all jobs that hold processors only: the job has their number


class CountPool(Pool):
    """A pool that only counts its free processors: the fast kind.

    Parameters
    ----------
    env, name
        the environment, and the name of the pool in reports
    capacity
        processors
    consumables
        the consumables that jobs may request, shared with other pools
    """

    _resized = False

    @property
    def simple(self) -> bool:
        """Whether the number of free processors is the whole state: no windows and no consumables."""
        return not self.windows and not self.consumables.capacity

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the pool can never run the job, or ``None``."""
        if job.processors > self._capacity:
            return self.too_large(job.processors)
        request = job.request
        if request is not None:
            if request.gpus_per_node or request.memory_per_node:
                return Refusal.of("GPUs or memory of nodes", f"{self.name} has processors only")
            return self._why_not_amounts(job, request)
        return None

    def width_of(self, job: LiveJob) -> int:
        """Return the processors that a job takes; 0 if it requests anything else."""
        return job.processors if job.request is None else 0

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now and run for its requested time without running into a window."""
        if job.processors > self.free:
            return False
        if job.request is not None and not self._amounts_fit(job):
            return False
        if not self.windows:
            return True
        end = self.env.now + job.planned
        if all(window.begun or window.start >= end for window in self.windows):
            return True
        return bool(self.profile().fits(job, job.planned) is not None)

    def accepts(self, job: LiveJob, allocation: object) -> bool:
        """Whether the job could start now; the allocation must be a grant of counted processors."""
        return isinstance(allocation, Grant) and self.fits(job)

    def room_for(self, job: LiveJob, allocation: object = None) -> Grant | None:
        """Return the grant of a job reported to run here; ``None``: other jobs hold too much."""
        request = job.request
        room = job.processors <= self.free + min(self.absences.down, self._capacity)
        return COUNTED if room and (request is None or self.consumables.fits(request.consumables)) else None

    def resized(self, job: LiveJob, grant: Grant, processors: int, left: float) -> Grant | None:
        """Return the grant of running work on another number of processors; ``None``: too few are free."""
        more = processors - job.processors
        if more > 0 and (more > self.free or (self.windows and not self.fits(probe(job, more, left)))):
            return None
        return COUNTED

    def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant:
        """Allocate the job's processors and consumables."""
        free = self.free
        processors = job._processors
        if (
            free != self._free
            or job.processors != processors
            or job.planned != job._planned
            or job.expected != job._expected
            or job.submit != job._submit
            or job.priority != job._priority
        ):
            self.check(job)
        self.free = self._free = free - processors
        self.version += 1
        if job.request is not None:
            self.consumables.take(job.request.consumables)
        return COUNTED

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Release the job's grant."""
        if job.processors != job._processors:
            self.check(job)
        self.free = self._free = self._free + job._processors
        self.version += 1
        if job.request is not None:
            self.consumables.give_back(job.request.consumables)

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when the job fits, by the expected ends (s), and the processors left free at its start.

        Considers processors only; plan on a pool with windows or consumables with :meth:`profile`.
        """
        missing = job.processors - self.free
        if missing <= 0:
            return self.env.now, -missing
        return self.running.when_free(missing, self.env.now)

    def _request_of(self, spec: Job) -> Request | None:
        shaped = spec.gpus_per_node or spec.memory_per_node
        if not (shaped or spec.consumables or spec.bandwidth or self.power is not None):
            return None
        from simmodel.resources.pools.allocation import Request

        return Request.of(spec)

    def counts(self) -> CountProfile:
        """Return the profile of the free processors."""
        windows = self.windows
        if not windows:
            return CountProfile(self.env.now, self.free, ends_of(self.running))
        back = sorted((window.end, window.what) for window in windows if window.begun)
        return CountProfile(
            self.env.now,
            self.free - max(0, self.absences.down - self._capacity),  # absences that overlap end one after the other
            merge(ends_of(self.running), back),
            [(window.start, window.end, window.what) for window in windows if not window.begun],
        )

    def profile(self) -> PoolProfile:
        """Return the free processors and consumables over time."""
        now = self.env.now
        return PoolProfile(now, {"": self.counts(), **self.consumables.profiles(now, self.running)})

    # ------------------------------------------------------------------ processors that go down and come up

    @cached_property
    def absences(self) -> CountAbsences:
        """How many of its processors are away."""
        return CountAbsences(self)

    @property
    def units(self) -> range:
        """The numbers of the processors."""
        return range(self._capacity)

    def unit(self, number: int) -> int:
        """Return the number of processors in a unit: 1."""
        return 1

    def part(self, what: int) -> int:
        """Return a number of processors, checked."""
        return _whole(what, 1)

    def resize(self, processors: int, cause: str = "resize") -> None:
        """Change the number of processors; if there are fewer, running work continues and ``free`` may be negative.

        Parameters
        ----------
        processors
            the new number, at least 0 and the sum reservations hold; processors that are down count. A reservation to
            come does not open before there are enough
        cause
            the cause in the record

        Raises
        ------
        InputError
            not a whole number, or too few

        >>> from simmodel import Environment
        >>> pool = CountPool(Environment(), "pool", 4)
        >>> claim = pool.claim(3)
        >>> pool.resize(2); pool.free, pool.capacity
        (-1, 2)
        >>> pool.resize(8); pool
        <CountPool pool: 5 of 8 processors free>
        """
        held = sum(place.taken for place in self.reserved if place.holds)
        if _whole(processors, 0) < held:
            accepted = f"must be >= {held}, the processors that reservations of {self.name} hold"
            raise InputError(f"{accepted}, got {processors}", place="processors")
        self.set_capacity(int(processors))
        self.tell("place_changed", self, cause)
        self.came_free()

    def set_capacity(self, processors: int) -> None:
        """Change the number of processors without a record."""
        self._resized = True
        self._capacity = processors
        self.absences.lower(0)

    @property
    def size(self) -> int | None:
        """The number of processors, if the pool was resized."""
        return self._capacity if self._resized else None

    def set_up(self, processors: int) -> None:
        """Have so many processors that are not down."""
        self.free = self._free = self._free + processors - self.up
        self.up = processors
        self.version += 1


class CountAbsences(Absences[int]):
    """How many processors of a pool are away.

    Attributes
    ----------
    down
        the sum of the processors taken down; exceeds the capacity if several reasons overlap
    """

    def __init__(self, pool: CountPool) -> None:
        self._pool = pool
        self.down = 0
        self._drained = 0

    @property
    def pool(self) -> CountPool:
        return self._pool

    @property
    def away(self) -> int:
        """The sum of the processors taken down."""
        return self.down

    @property
    def drained(self) -> int:
        """The number of processors that ``take_down`` took."""
        return self._drained

    @property
    def whole(self) -> int:
        return self._pool.capacity

    def units_of(self, spec: OutageSpec | ReservationSpec) -> int:
        return spec.processors or 0

    def restore(self, size: int | None, away: int, drained: int) -> None:
        """Take over the number of processors of a pool, if it was resized, and how many are down."""
        if size is not None:
            self._pool.set_capacity(size)
        if away:
            self.lower(away - self.down)
        self._drained = drained or self._drained

    def lower(self, what: int) -> None:
        """Take processors down without a record; those in use go as soon as they come free."""
        self.down += what
        self._pool.set_up(max(0, self._pool.capacity - self.down))

    def lift(self, what: int) -> None:
        """Bring processors up without a record."""
        self._refuse(what, self.down, "that are down")
        self.lower(-what)

    def _refuse(self, what: int, most: int, which: str) -> None:
        if what > most:
            message = f"must be <= {most}, the processors of {self._pool.name} {which}, got {what}"
            raise InputError(message, place="processors")

    def count_drained(self, what: int, more: int) -> None:
        """Count processors as taken down (1) or as brought up again (-1)."""
        if more < 0:
            self._refuse(what, self.down, "that are down")
            self._refuse(what, self._drained, "that take_down took")
        self._drained += more * what

    def hit_by(self, what: int, rng: np.random.Generator) -> list[Run]:
        """Return the executions that hold one of ``what`` processors drawn among those that were up."""
        runs = sorted(self._pool.running.entries(), key=lambda entry: entry[1])
        busy = sum(entry[2] for entry in runs)
        there = max(min(self._pool.capacity, self._pool.capacity - self.down + what), busy, what)
        drawn = sorted(rng.choice(there, size=what, replace=False).tolist())
        hit = []
        first, i = 0, 0
        for _, _, processors, run in runs:
            first += processors
            before = i
            while i < len(drawn) and drawn[i] < first:
                i += 1
            if i > before:
                hit.append(run)
        return hit

    def in_the_way(self, what: int) -> list[Run]:
        """Return the executions that started last, as many as must stop for the others to fit."""
        missing = min(-self._pool.free, what)
        hit = []
        for _, _, processors, run in sorted(self._pool.running.entries(), key=lambda entry: -entry[1]):
            if missing <= 0:
                break
            hit.append(run)
            missing -= processors
        return hit


def _whole(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"must be a whole number >= {least}, got {value!r}", place="processors")
    return int(value)


class PoolProfile:
    """The free processors and consumables of a pool over time, for policies that plan.

    Parameters
    ----------
    now
        the instant at which the profile begins, in seconds
    parts
        the profiles of the processors, by the empty name, and of the consumables, by name
    width
        returns the processors that a job takes
    """

    __slots__ = ("_now", "_only", "_parts", "_width")

    def __init__(
        self, now: float, parts: Mapping[str, CountProfile], width: Callable[[LiveJob], int] = attrgetter("processors")
    ) -> None:
        self._now = now
        self._parts = parts
        self._only = parts[""] if len(parts) == 1 else None  # no consumables
        self._width = width

    def _needs(self, job: LiveJob) -> Iterable[tuple[CountProfile, Any]]:
        yield self._parts[""], self._width(job)
        if job.request is not None:
            for name, amount in job.request.consumables.items():
                yield self._parts[name], amount

    def fits(self, job: LiveJob, duration: float, _within: NodeTable | None = None) -> Any:
        """Return a grant to start the job with now, or ``None`` if it does not fit for ``duration`` seconds."""
        return COUNTED if all(part.fits(need, duration) for part, need in self._needs(job)) else None

    def earliest(self, job: LiveJob, duration: float, not_before: float = -float("inf")) -> tuple[float, Any]:
        """Return the earliest instant (s) at which the job fits for ``duration`` seconds, and its grant then."""
        if self._only is not None:
            return self._only.earliest(self._width(job), duration, not_before), COUNTED
        needs = list(self._needs(job))
        at = max(self._now, not_before)
        while True:
            found = max(part.earliest(need, duration, at) for part, need in needs)
            if found == at or found == float("inf"):
                return found, COUNTED
            at = found

    def take(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Plan the job from an instant on for ``duration`` seconds."""
        if self._only is not None:
            self._only.take(self._width(job), at, duration)
            return
        for part, need in self._needs(job):
            part.take(need, at, duration)

    def renew(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Repeat an earlier plan."""
        self.take(job, at, duration)

    def hold(self, job: LiveJob, duration: float, _allocation: Allocation | None = None) -> float:
        """Repeat an earlier plan that is due, at the earliest instant (s): processors are alike."""
        at, _ = self.earliest(job, duration)
        self.take(job, at, duration)
        return at

    @property
    def processors(self) -> CountProfile:
        return self._parts[""]

    @property
    def exact(self) -> bool:
        """Whether no step stands for the instant before it (see :meth:`CountProfile.instant`)."""
        return all(part.exact for part in self._parts.values())

    def advance(self, now: float) -> None:
        """Drop the past, before ``now`` (s)."""
        self._now = now
        for part in self._parts.values():
            part.advance(now)

    def make_room(
        self, job: LiveJob, duration: float, planned: LiveJob, booted: tuple[float, Allocation] | None = None
    ) -> Any:
        """Return a grant to start the job with now, or ``None``: planned work cannot move to other processors.

        ``booted``: when the nodes that it gets are up (s); it holds those that are up already from now on.
        """
        if booted is None:
            return self.fits(job, duration)
        up, part = booted[0], self.processors
        awake = part.fits(max(part.free, 0), up - self._now + duration)
        return booted[1] if awake and part.earliest(self._width(job), duration, up) <= up else None

    def instant(self, at: float) -> float:
        """Return the instant of a planned start (see :meth:`CountProfile.instant`)."""
        found: float = min([part.instant(at) for part in self._parts.values()])
        return found

    def give_back(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Undo :meth:`take`."""
        if self._only is not None:
            self._only.give_back(self._width(job), at, duration)
            return
        for part, need in self._needs(job):
            part.give_back(need, at, duration)
