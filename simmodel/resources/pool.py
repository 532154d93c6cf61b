"""Pools of nodes: what a batch scheduler hands out, claimed all at once or not at all."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import TYPE_CHECKING, Any, Self

import attrs
from simpy.events import Event

from simmodel.resources.profile import CountProfile, earliest_from, ends_of
from simmodel.resources.running import RunningIndex
from simmodel.resources.windows import Windows

if TYPE_CHECKING:
    from types import TracebackType

    from simmodel.environment import Environment
    from simmodel.work.job import LiveJob

__all__ = ["Claim", "Consumables", "CountPool", "Grant", "Lost", "Pool", "Preempted"]


@attrs.frozen
class Grant:
    """What a pool gave: processors, and the nodes they stand on where nodes are identified.

    ``nodes`` is a tuple of node numbers, or ``None``; ``allocation`` is the pool's own note of it.
    """

    processors: int = 0
    nodes: tuple[int, ...] | None = None
    allocation: Any = None


@attrs.frozen
class Lost:
    """The cause of the interrupt of a claim whose part of a pool failed: of which pool, and since when it held (s)."""

    place: Any
    since: float


COUNTED = Grant()  # of jobs that hold nothing but a number of processors: their own number says how many


@attrs.frozen
class Preempted:
    """The cause of the interrupt of a claim that had to give way: by which claim, and since when it held (s)."""

    by: Any
    since: float


class Consumables:
    """Named amounts that jobs take while they run: licences, bytes of burst buffer, bytes/s of I/O bandwidth.

    >>> shared = Consumables({"matlab": 2})
    >>> shared.take({"matlab": 2}); shared.fits({"matlab": 1}), shared.free
    (False, {'matlab': 0})
    """

    def __init__(self, amounts: Mapping[str, float]) -> None:
        self.capacity = dict(amounts)
        self.free = dict(amounts)

    def why_not(self, need: Mapping[str, float]) -> str | None:
        """Say why so much can never be had, or ``None``."""
        for name, amount in need.items():
            if name not in self.capacity:
                return f"consumable {name!r} asked for, there are {', '.join(self.capacity) or 'none'}"
            if amount > self.capacity[name]:
                return f"{amount:g} of {name} asked for, there are {self.capacity[name]:g}"
        return None

    def fits(self, need: Mapping[str, float]) -> bool:
        """Whether so much is free."""
        return all(self.free[name] >= amount for name, amount in need.items())

    def take(self, need: Mapping[str, float]) -> None:
        """Take it."""
        for name, amount in need.items():
            self.free[name] -= amount

    def give_back(self, need: Mapping[str, float]) -> None:
        """Give it back."""
        for name, amount in need.items():
            self.free[name] += amount


class Claim(Event):
    """An all-or-nothing request for a part of a pool: an event whose value is the grant, and a context manager.

    Leaving the block gives everything back, also on an interrupt; a claim that was not yet granted is withdrawn.
    """

    def __init__(self, pool: Pool, job: LiveJob, priority: float, preempt: bool, number: int) -> None:
        super().__init__(pool.env)
        self.pool = pool
        self.job = job
        self.priority = priority
        self.preempt = preempt
        self.key = (-priority, number)
        self.asked = pool.env.now
        self.process = pool.env.active_process
        self.grant: Grant | None = None
        self.since: float | None = None
        self.expected_end = float("inf")
        self.entry: Any = None  # where it stands among what runs

    def __lt__(self, other: Claim) -> bool:
        return self.key < other.key

    @property
    def work(self) -> LiveJob:
        """What it holds the place for."""
        return self.job

    @property
    def place(self) -> Pool:
        """The pool."""
        return self.pool

    @property
    def started(self) -> float | None:
        """Since when it is granted, in seconds."""
        return self.since

    def describe(self) -> str:
        """Say what is claimed, for reports of who is stuck."""
        return f"a claim of {self.job.processors} processors of {self.pool.name} since {self.asked:g}"

    def release(self) -> None:
        """Give everything back, or withdraw the claim where it was not granted yet; doing it again changes nothing."""
        self.pool._release(self)

    def lose(self) -> None:
        """Give everything back because what is held has failed; its process is interrupted with :class:`Lost`."""
        if self not in self.pool._granted:
            return
        self.pool._withdraw(self)
        if self.process is not None and self.process.is_alive:
            self.process.interrupt(Lost(self.pool, self.since or 0.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Pool(Windows):
    """What pools of every kind share: claims, the executions in them, and windows in which part of them is away.

    Attributes
    ----------
    name
        what reports call it
    capacity, free, up
        processors in all, free now, and not down (``free`` is negative while what is down is still in use)
    version
        one more at each take and give-back
    running
        executions ordered by expected end
    windows
        announced in advance: no work that would run into one starts (see :meth:`announce`)
    units
        what can fail by itself: the numbers of nodes, or of processors where nodes are not identified
    """

    queues = False

    def __init__(self, env: Environment, name: str, capacity: int, consumables: Consumables | None = None) -> None:
        self.env = env
        self.name = name
        self.capacity = capacity
        self.free = capacity
        self.up = capacity
        self.version = 0
        self.priority = 0.0  # of jobs that wait for it
        self.max_processors: int | None = None
        self.max_requested: float | None = None
        self.running = RunningIndex()
        self.windows = []
        self.spec: Any = None  # the partition it was made of
        self.part_of: Pool | None = None  # the pool that a reservation is part of
        self.consumables = consumables or Consumables({})
        self.changed: list[Any] = []  # called when something comes free or goes: the schedulers that use the pool
        self._claims: list[Claim] = []
        self._granted: list[Claim] = []
        self._numbers = 0
        env.register_waits(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.free} of {self.capacity} processors free>"

    # ------------------------------------------------------------------ what a kind of pool says

    @property
    def simple(self) -> bool:
        """Whether one number says all: no windows, no consumables, no identified nodes."""
        return False

    def why_not(self, job: LiveJob) -> str | None:
        """Say why the pool can never run the job, or ``None``."""
        raise NotImplementedError

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now."""
        raise NotImplementedError

    def accepts(self, job: LiveJob, allocation: Any) -> bool:
        """Whether the job could start now with exactly this allocation."""
        return self.fits(job)

    def fits_without(self, job: LiveJob, runs: Iterable[Any]) -> bool:
        """Whether the job could start now if these executions were not there; everything is as before afterwards."""
        version = self.version
        gone = list(runs)
        planned = bool(self.windows)  # then what runs counts too, not only what is free
        for run in gone:
            self.give_back(run.work, run.grant)
            if planned:
                self.running.remove(run)
        fits = self.fits(job)
        for run in reversed(gone):
            self.take(run.work, run.grant.allocation)
            if planned:
                self.running.add(run, run.work.processors)
        self.version = version
        return fits

    def take(self, job: LiveJob, allocation: Any = None) -> Grant:
        """Take what the job asks for."""
        raise NotImplementedError

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Give back what a job held."""
        raise NotImplementedError

    def profile(self) -> Any:
        """Return what will be free when, by the expected ends of what runs and the windows announced."""
        raise NotImplementedError

    # ------------------------------------------------------------------ parts that go and come

    @property
    def units(self) -> range:
        """The numbers of what can fail by itself."""
        raise NotImplementedError

    def unit(self, number: int) -> Any:
        """Return what :meth:`take_down` takes for one unit."""
        raise NotImplementedError

    def units_of(self, part: Any) -> Any:
        """Return what :meth:`take_down` takes for the part that an outage or a reservation names.

        Raises
        ------
        InputError
            where it names nodes that are not there
        """
        raise NotImplementedError

    def take_down(self, what: Any) -> None:
        """Take a part away: it takes no new work, what runs there goes on. What is taken twice must come back twice."""
        raise NotImplementedError

    def bring_up(self, what: Any) -> None:
        """Bring back a part that was taken away."""
        raise NotImplementedError

    def hit_by(self, what: Any, rng: Any) -> list[Any]:
        """Return the executions, in the order of their starts, that a failure of a part stops.

        Asked once the part is down. Where only counts are known, what fails is drawn from ``rng`` among all that was
        up, so that busy processors are hit in proportion.
        """
        raise NotImplementedError

    def in_the_way(self, what: Any) -> list[Any]:
        """Return the executions that hold a part that is down and must be empty, the latest first."""
        raise NotImplementedError

    def altered(self) -> None:
        """Note that what was known of the pool no longer holds."""
        self.version += 1

    # ------------------------------------------------------------------ shared

    def consumable_profiles(self) -> dict[str, CountProfile]:
        """Return what is free of each consumable when, by the expected ends of what runs here."""
        profiles = {}
        for name, free in self.consumables.free.items():
            ends = (
                (end, run.work.request.consumables.get(name, 0))
                for end, _, _, run in self.running.entries()
                if run.work.request is not None
            )
            profiles[name] = CountProfile(self.env.now, free, ends)  # type: ignore[arg-type]
        return profiles

    def limits_why_not(self, job: LiveJob) -> str | None:
        """Say which limit of the place the job breaks, or ``None``."""
        if self.max_processors is not None and job.processors > self.max_processors:
            return f"{job.processors} processors asked for, {self.name} allows {self.max_processors}"
        if self.max_requested is not None and job.requested > self.max_requested:
            return f"{job.requested:g} s asked for, {self.name} allows {self.max_requested:g}"
        return None

    def can_run(self, job: LiveJob) -> bool:
        """Whether the pool could ever run the job."""
        return self.why_not(job) is None

    @property
    def backlog(self) -> float:
        """Processor seconds that what runs is still expected to take."""
        now = self.env.now
        return sum((max(end, now) - now) * processors for end, _, processors, _ in self.running.entries())

    def claim(
        self,
        processors: int | None = None,
        *,
        priority: float = 0.0,
        preempt: bool = False,
        duration: float | None = None,
        **request: Any,
    ) -> Claim:
        """Ask for a part of the pool, all or nothing; the claim is an event and a context manager.

        Claims are served by priority (higher first), then in order; a claim that does not fit holds up those behind.

        Parameters
        ----------
        processors
            how many, where no nodes are asked for
        priority
            higher goes first
        preempt
            whether holders of lower priority are interrupted to make room, the latest first, with :class:`Preempted`
            as the cause
        duration
            seconds it will be held, where that is known; policies that plan reckon with it
        request
            what else a :class:`~simmodel.work.job.Job` asks for: nodes, gpus_per_node, consumables ...

        Raises
        ------
        ImpossibleWork
            where the pool can never give that

        >>> from simmodel.environment import Environment
        >>> env = Environment()
        >>> pool = CountPool(env, "pool", 4)
        >>> def user(env, name, processors):
        ...     with pool.claim(processors) as grant:
        ...         yield grant
        ...         print(env.now, name)
        ...         yield env.timeout(10)
        >>> for name in "ab":
        ...     _ = env.process(user(env, name, 3))
        >>> env.run()
        0 a
        10 b
        """
        from simmodel.errors import ImpossibleWork
        from simmodel.work.job import Job, LiveJob

        if processors is not None:
            request["processors"] = processors
        spec = Job(run=0.0 if duration is None else duration, **request)
        number = self._numbers = self._numbers + 1
        planned = float("inf") if duration is None else duration
        job = LiveJob(f"claim {number}", -number, self.env.now, spec.processors, planned, planned, 0.0)
        job.spec = spec
        job.request = self.request_of(spec)
        reason = self.why_not(job)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: {reason}")
        claim = Claim(self, job, priority, preempt, number)
        insort(self._claims, claim)
        self._serve_claims()
        return claim

    def request_of(self, spec: Any) -> Any:
        """Return what the pool must know of a job beyond its processors, or ``None``."""
        return spec if spec.consumables else None

    def _serve_claims(self) -> None:
        while self._claims:
            claim = self._claims[0]
            if not self.fits(claim.job) and not (claim.preempt and self._make_room(claim)):
                return
            del self._claims[0]
            claim.since = self.env.now
            claim.expected_end = claim.since + claim.job.requested
            claim.grant = self.take(claim.job)
            self.running.add(claim, claim.job.processors)
            self._granted.append(claim)
            claim.succeed(claim.grant)

    def _make_room(self, claim: Claim) -> bool:
        """Interrupt claims of lower priority, the lowest and latest first, where that makes enough room."""
        victims = sorted((held for held in self._granted if held.priority < claim.priority), key=lambda c: c.key)
        taken: list[Claim] = []
        while victims and not self.fits(claim.job):
            victim = victims.pop()
            taken.append(victim)
            self._withdraw(victim)
        if not self.fits(claim.job):
            for victim in reversed(taken):  # not enough: as it was
                victim.grant = self.take(victim.job, victim.grant.allocation if victim.grant else None)
                self.running.add(victim, victim.job.processors)
                self._granted.append(victim)
            return False
        for victim in taken:
            if victim.process is not None and victim.process.is_alive:
                victim.process.interrupt(Preempted(claim, victim.since or 0.0))
        return True

    def _withdraw(self, claim: Claim) -> None:
        self._granted.remove(claim)
        self.running.remove(claim)
        assert claim.grant is not None
        self.give_back(claim.job, claim.grant)

    def _release(self, claim: Claim) -> None:
        if claim in self._granted:
            self._withdraw(claim)
            self.came_free()
        elif claim in self._claims:
            self._claims.remove(claim)
            self._serve_claims()

    def came_free(self) -> None:
        """Serve the claims that wait, and tell the schedulers."""
        if self._claims:
            self._serve_claims()
        for call in self.changed:
            call()

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each claim that waits."""
        holders = ", ".join(str(run.work.id) for run in list(self.running)[:5]) or "nobody"
        for claim in self._claims:
            who = claim.process.name if claim.process is not None else "somebody"
            yield f"process {who} waits for {claim.describe()}; {self.free} are free, held by {holders}"


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

    def take(self, job: LiveJob, allocation: Any = None) -> Grant:
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

    def request_of(self, spec: Any) -> Any:
        """Return the job where it asks for consumables, GPUs or memory, else ``None``."""
        return spec if spec.consumables or spec.gpus_per_node or spec.memory_per_node else None

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

    def units_of(self, part: Any) -> int:
        """Return the number of processors that an outage or a reservation names."""
        return int(part.processors)

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

    def hit_by(self, what: int, rng: Any) -> list[Any]:
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

    def in_the_way(self, what: int) -> list[Any]:
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

    def take(self, job: LiveJob, at: float, duration: float, _allocation: Any = None) -> None:
        """Plan the job from an instant on for so many seconds."""
        for part, need in self._needs(job):
            part.take(need, at, duration)

    def make_room(self, job: LiveJob, duration: float, planned: LiveJob) -> Any:
        """Return ``None``: where processors only count, planned work cannot move to others."""
        return None

    def instant(self, at: float) -> float:
        """Return the instant of a planned start (see :meth:`CountProfile.instant`)."""
        return min(part.instant(at) for part in self._parts.values()) if at < float("inf") else at

    def give_back(self, job: LiveJob, at: float, duration: float, _allocation: Any = None) -> None:
        """Undo ``take``."""
        for part, need in self._needs(job):
            part.give_back(need, at, duration)
