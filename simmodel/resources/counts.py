"""Pools of which only the number of free processors counts, and what they will have free when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import merge
from typing import TYPE_CHECKING, Any

from simmodel.resources.claims import Grant
from simmodel.resources.pool import Pool
from simmodel.resources.profile import CountProfile, earliest_from, ends_of

if TYPE_CHECKING:
    import numpy as np

    from simmodel.platform.cluster import OutageSpec, ReservationSpec
    from simmodel.resources.allocation import Allocation, Request
    from simmodel.work.job import Job, LiveJob, Run

__all__ = ["CountPool", "PoolProfile"]

COUNTED = Grant()  # of jobs that hold nothing but a number of processors: their own number says how many


class CountPool(Pool):
    """A pool of which only the number of free processors counts: the fast kind.

    Parameters
    ----------
    env, name
        the environment, and what reports call the pool
    capacity
        processors
    consumables
        what jobs may take besides, shared with other pools
    """

    _down = 0  # processors that are away, in all

    @property
    def simple(self) -> bool:
        """Whether one number says all: no windows and no consumables."""
        return not self.windows and not self.consumables.capacity

    def why_not(self, job: LiveJob) -> str | None:
        """Say why the pool can never run the job, or ``None``."""
        if job.processors > self.capacity:
            return f"{job.processors} processors asked for, {self.name} has {self.capacity}"
        request = job.request
        if request is not None:
            if request.gpus_per_node or request.memory_per_node:
                return f"GPUs or memory of nodes asked for, {self.name} has processors only"
            return self.consumables.why_not(request.consumables)
        return None

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now, and run its requested time without running into a window."""
        if job.processors > self.free:
            return False
        request = job.request
        if request is not None and not self.consumables.fits(request.consumables):
            return False
        if not self.windows:
            return True
        end = self.env.now + job.requested
        if all(window.begun or window.start >= end for window in self.windows):
            return True
        return bool(self.profile().fits(job, job.requested) is not None)

    def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant:
        """Take the processors, and the consumables where the job asks for any."""
        self.free -= job.processors
        self.version += 1
        if job.request is not None:
            self.consumables.take(job.request.consumables)
        return COUNTED

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Give back what the job held."""
        self.free += job.processors
        self.version += 1
        if job.request is not None:
            self.consumables.give_back(job.request.consumables)

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when enough processors are free by the expected ends (s), and how many more then.

        Reckons with processors alone; a pool with windows or consumables is planned with :meth:`profile`.
        """
        missing = job.processors - self.free
        if missing <= 0:
            return self.env.now, -missing
        return self.running.when_free(missing, self.env.now)

    def request_of(self, spec: Job) -> Request | None:
        """Return what the job asks for beyond processors: consumables, GPUs or memory, else ``None``."""
        if not (spec.consumables or spec.gpus_per_node or spec.memory_per_node):
            return None
        from simmodel.resources.allocation import Request

        return Request.of(spec)

    def counts(self) -> CountProfile:
        """Return the profile of free processors alone."""
        windows = self.windows
        if not windows:
            return CountProfile(self.env.now, self.free, ends_of(self.running))
        back = sorted((window.end, window.what) for window in windows if window.begun)
        return CountProfile(
            self.env.now,
            self.free,
            merge(ends_of(self.running), back),
            [(window.start, window.end, window.what) for window in windows if not window.begun],
        )

    def profile(self) -> PoolProfile:
        """Return what will be free when: processors, and each consumable."""
        return PoolProfile(self.env.now, {"": self.counts(), **self.consumable_profiles()})

    # ------------------------------------------------------------------ parts that go and come

    @property
    def units(self) -> range:
        """The numbers of the processors."""
        return range(self.capacity)

    def unit(self, number: int) -> int:
        """Return one processor: which one is not known."""
        return 1

    def units_of(self, part: OutageSpec | ReservationSpec) -> int:
        """Return the number of processors that an outage or a reservation names."""
        return part.processors or 0

    @property
    def away(self) -> int:
        """The processors that are down, in all; more than there are where several reasons take the same."""
        return self._down

    def take_away(self, away: int) -> None:
        """Take as many processors down."""
        self._set_down(away)

    def take_down(self, what: int) -> None:
        """Take processors away; those in use are missed as soon as they come free."""
        self._set_down(self._down + what)

    def bring_up(self, what: int) -> None:
        """Bring processors back."""
        self._set_down(self._down - what)
        self.came_free()

    def _set_down(self, down: int) -> None:
        self._down = down
        up = max(0, self.capacity - down)
        self.free += up - self.up
        self.up = up
        self.version += 1

    def hit_by(self, what: int, rng: np.random.Generator) -> list[Run]:
        """Return the executions that hold one of so many processors drawn among those that were up."""
        runs = sorted(self.running.entries(), key=lambda entry: entry[1])
        busy = sum(entry[2] for entry in runs)
        there = max(min(self.capacity, self.capacity - self._down + what), busy, what)
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
        """Return the executions that started last, until what is left is enough for the others."""
        missing = min(-self.free, what)
        hit = []
        for _, _, processors, run in sorted(self.running.entries(), key=lambda entry: -entry[1]):
            if missing <= 0:
                break
            hit.append(run)
            missing -= processors
        return hit


class PoolProfile:
    """What a pool has free when, as a policy plans with it: processors and consumables together."""

    __slots__ = ("_now", "_parts")

    def __init__(self, now: float, parts: Mapping[str, CountProfile]) -> None:
        self._now = now
        self._parts = parts

    def _needs(self, job: LiveJob) -> Iterable[tuple[CountProfile, Any]]:
        yield self._parts[""], job.processors
        if job.request is not None:
            for name, amount in job.request.consumables.items():
                yield self._parts[name], amount

    def fits(self, job: LiveJob, duration: float) -> Any:
        """Return what to start the job with now, or ``None`` where it does not fit for so many seconds."""
        return COUNTED if all(part.fits(need, duration) for part, need in self._needs(job)) else None

    def earliest(self, job: LiveJob, duration: float, not_before: float = -float("inf")) -> tuple[float, Any]:
        """Return the earliest instant (s) at which the job fits for so many seconds, and what to start it with."""
        needs = list(self._needs(job))
        if len(needs) == 1 and not_before <= self._now:
            return needs[0][0].earliest(needs[0][1], duration), COUNTED
        at = max(self._now, not_before)
        while True:
            found = max(earliest_from(part, need, duration, at) for part, need in needs)
            if found == at or found == float("inf"):
                return found, COUNTED
            at = found

    def take(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Plan the job from an instant on for so many seconds."""
        for part, need in self._needs(job):
            part.take(need, at, duration)

    def renew(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Plan again what an earlier decision planned."""
        self.take(job, at, duration)

    def make_room(self, job: LiveJob, duration: float, planned: LiveJob) -> Any:
        """Return ``None``: where processors only count, planned work cannot move to others."""
        return None

    def instant(self, at: float) -> float:
        """Return the instant of a planned start (see :meth:`CountProfile.instant`)."""
        return min(part.instant(at) for part in self._parts.values()) if at < float("inf") else at

    def give_back(self, job: LiveJob, at: float, duration: float, _allocation: Allocation | None = None) -> None:
        """Undo ``take``."""
        for part, need in self._needs(job):
            part.give_back(need, at, duration)
