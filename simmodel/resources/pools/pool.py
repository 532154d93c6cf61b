"""Pools: the processors or nodes that a batch scheduler allocates, all or nothing."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import ImpossibleWork, InputError, PolicyError
from simmodel.foundation.units import show_quantity
from simmodel.resources.pools.absences import CALENDAR, Absences, CapacityWindow, Purpose
from simmodel.resources.pools.claims import Claim, Grant, Growth, Preempted, Waiter
from simmodel.resources.pools.profile import CountProfile, Profile
from simmodel.resources.pools.running import RunningIndex
from simmodel.work.job import Job, LiveJob, Refusal

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.pools.allocation import Allocation, Request
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.resources.pools.power import PowerCount
    from simmodel.resources.pools.promises import JobOrder, Promise, WaitingJobs
    from simmodel.resources.pools.running import RunningIndex
    from simmodel.resources.pools.sleeping import Sleeping
    from simmodel.work.job import Run

__all__ = ["ClaimQueue", "Consumables", "Limits", "Pool"]

Told = Callable[[float], object]


class _Line:
    """The steps of an amount over time, each a value that holds from an instant (s) on, and who holds some of it."""

    def __init__(
        self, name: str, env: Environment, steps: Sequence[tuple[float, int]], running: Sequence[RunningIndex]
    ) -> None:
        self.name = name
        self._env = env
        self._steps = steps
        self._times = [at for at, _ in steps]
        self.running = running
        self.until = -inf  # the instant of the next step

    @property
    def now(self) -> int:
        """The value now."""
        after = bisect_right(self._times, self._env._now)
        self.until = self._times[after] if after < len(self._times) else inf
        return self._steps[max(after - 1, 0)][1]

    @property
    def due(self) -> bool:
        return self._env._now >= self.until

    def ahead(self) -> Sequence[tuple[float, int]]:
        """Return the steps from the present one on."""
        return self._steps[max(bisect_right(self._times, self._env._now) - 1, 0) :]

    def lowest(self, other: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
        """Return the steps of the lower one of both at every instant."""
        times = [at for at, _ in other]
        both = sorted({*self._times, *times})
        at = [max(bisect_right(each, instant) - 1, 0) for each in (self._times, times) for instant in both]
        own, others = at[: len(both)], at[len(both) :]
        return [(t, min(self._steps[i][1], other[j][1])) for t, i, j in zip(both, own, others, strict=True)]


class Consumables:
    """Named amounts that jobs hold while they run: licences, bytes of burst buffer, bytes/s of a storage or a link.

    Amounts may be fractional: comparisons tolerate rounding errors, and a consumable without holders is entirely free.

    Parameters
    ----------
    amounts
        the capacity of each
    told
        functions to call with the amount that is held, whenever it changes: those that take it from a storage or a link

    >>> shared = Consumables({"matlab": 2})
    >>> shared.take({"matlab": 2}); shared.fits({"matlab": 1}), shared.free
    (False, {'matlab': 0})
    """

    def __init__(self, amounts: Mapping[str, float], told: Mapping[str, Told] | None = None) -> None:
        self._told = told or {}
        self.capacity = dict(amounts)
        self.free = dict(amounts)
        self.slack = {name: 1e-9 * amount for name, amount in amounts.items()}  # an upper bound of the rounding error
        self.version = 0  # incremented by each take and give_back
        self._holders = dict.fromkeys(amounts, 0)
        self._line: _Line | None = None

    # ------------------------------------------------------------------ an amount that changes over time

    def limit(
        self, name: str, env: Environment, steps: Sequence[tuple[float, int]], running: Sequence[RunningIndex]
    ) -> None:
        """Add an amount that changes over time, or lower it where it is there already.

        Parameters
        ----------
        name, env
            its name, and the clock
        steps
            its values from instants (s) on, the first of which is not in the future
        running
            the work of all pools that share it

        Raises
        ------
        InputError
            another amount has this name
        """
        if self._line is not None:
            steps = self._line.lowest(steps)
        elif name in self.capacity:
            raise InputError(f"must have another name than the amount that a cap limits, got {name!r}", "consumables")
        self._line = line = _Line(name, env, steps, running)
        self.capacity[name] = self.free[name] = line.now
        self.slack[name] = 0.0
        self._holders[name] = 0

    def _advance(self, line: _Line) -> None:
        """Change the amount whose step is over."""
        if line.due:
            name, before = line.name, self.capacity[line.name]
            self.capacity[name] = line.now
            self.free[name] += self.capacity[name] - before
            self.version += 1

    def rises_at(self) -> float:
        """Return the next instant (s) at which more of an amount is there, infinite if there is none."""
        steps = () if self._line is None else self._line.ahead()
        return next((at for (_, before), (at, after) in pairwise(steps) if after > before), inf)

    def falls_before(self, instant: float) -> bool:
        """Whether less of an amount will be there at some time before an instant (s)."""
        line = self._line
        return line is not None and any(
            at < instant and after < before for (_, before), (at, after) in pairwise(line.ahead())
        )

    # ------------------------------------------------------------------ what is free

    def why_not(self, need: Mapping[str, float]) -> str | None:
        """Return why the capacity can never satisfy the need, or ``None``."""
        for name, amount in need.items():
            if name not in self.capacity:
                return Refusal.of(f"consumable {name!r}", f"there are {', '.join(self.capacity) or 'none'}")
            most: float = self.capacity[name]
            if self._line is not None and self.is_limited(name):
                most = max(each for _, each in self._line.ahead())
            if amount > most:
                there = self.show(name, most)
                return Refusal.of(f"{self.show(name, amount)} of {name}", f"there are {there}")
        return None

    def show(self, name: str, amount: float) -> str:
        """Return an amount as a text, of a storage or a link in bytes/s, of power in watts.

        >>> Consumables({"scratch": 8e9}, {"scratch": print}).show("scratch", 2e9)
        '2GBps'
        """
        if self.is_limited(name):
            return f"{amount / 1000:g} W"
        return show_quantity(amount, "B/s") if self.is_bandwidth(name) else f"{amount:g}"

    def is_limited(self, name: str) -> bool:
        """Return whether a name is that of the amount that changes over time, the power below a cap."""
        return self._line is not None and name == self._line.name

    def is_bandwidth(self, name: str) -> bool:
        """Return whether a name is that of a storage or a link."""
        return name in self._told

    def lacking(self, need: Mapping[str, float]) -> list[str]:
        """Return the names of the amounts of which not enough is free."""
        return [name for name, amount in need.items() if not self.fits({name: amount})]

    def fits(self, need: Mapping[str, float]) -> bool:
        if self._line is not None:
            self._advance(self._line)
        return all(self.free[name] + self.slack[name] >= amount for name, amount in need.items())

    def take(self, need: Mapping[str, float]) -> None:
        """Take these amounts; nothing is checked."""
        self.version += 1
        if self._line is not None:
            self._advance(self._line)
        for name, amount in need.items():
            self.free[name] -= amount
            self._holders[name] += 1
            if name in self._told:
                self._tell(name)

    def give_back(self, need: Mapping[str, float]) -> None:
        """Give these amounts back."""
        self.version += 1
        if self._line is not None:
            self._advance(self._line)
        for name, amount in need.items():
            self._holders[name] -= 1
            self.free[name] = self.free[name] + amount if self._holders[name] else self.capacity[name]
            if name in self._told:
                self._tell(name)

    def profiles(self, now: float, running: RunningIndex) -> dict[str, CountProfile]:
        """Return the free amount of each over time from an instant (s) on, by the expected ends of running work."""
        line = self._line
        if line is not None:
            self._advance(line)
        profiles = {}
        for name, free in self.free.items():
            shared = line.running if line is not None and name == line.name else (running,)
            held = (
                (end, run.work.request.consumables.get(name, 0))
                for each in shared
                for end, _, _, run in each.entries()
                if run.work.request is not None
            )
            ends: Iterable[tuple[float, float]] = held if len(shared) == 1 else sorted(held, key=itemgetter(0))
            if line is not None and name == line.name:
                steps = [(at, after - before) for (_, before), (at, after) in pairwise(line.ahead())]
                ends = merge(ends, steps, key=itemgetter(0))
            profiles[name] = CountProfile(now, free + self.slack[name], ends)
        return profiles

    def state(self) -> tuple[tuple[str, float], ...]:
        """Return the free amounts for a snapshot, without one that follows from the clock and its holders."""
        derived = None if self._line is None else self._line.name
        return tuple((name, float(free)) for name, free in self.free.items() if name != derived)

    def restore(self, free: Iterable[tuple[str, float]]) -> None:
        """Take over the free amounts of a snapshot, to the last bit, whose holders have taken theirs."""
        self.free.update(free)
        for name in self._told:
            self._tell(name)

    def _tell(self, name: str) -> None:
        there = self.capacity[name]
        self._told[name](0.0 if there == inf else there - self.free[name])

    def __repr__(self) -> str:
        parts = (f"{self.free[name]:g} of {amount:g} {name}" for name, amount in self.capacity.items())
        return f"<Consumables: {', '.join(parts) or 'none'}>"


class Limits:
    """The limits of a pool on the processors and the requested time (s) of a job; ``None``: no limit."""

    __slots__ = ("processors", "requested")

    def __init__(self, processors: int | None = None, requested: float | None = None) -> None:
        self.processors = processors
        self.requested = requested

    def why_not(self, job: LiveJob, name: str) -> str | None:
        """Return which limit the job exceeds, or ``None``; ``name``: that of the pool."""
        if self.processors is not None and job.processors > self.processors:
            return Refusal.of(f"{job.processors} processors", f"{name} allows {self.processors}")
        if self.requested is not None and job.planned > self.requested:
            return Refusal.of(f"{job.planned:g} s", f"{name} allows {self.requested:g}")
        return None


class ClaimQueue:
    """The claims of a pool, served by priority, then in order; one that does not fit holds up the rest.

    Attributes
    ----------
    waiting
        claims not yet granted and requests to grow, in serving order
    held
        granted claims
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.waiting: list[Waiter] = []
        self.held: list[Claim] = []
        self._numbers = self._places = 0

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def next_place(self) -> int:
        self._places += 1
        return self._places

    def serve(self) -> None:
        """Grant claims and growth in order, up to the first that does not fit."""
        while self.waiting:
            first = self.waiting[0]
            if not first.fits() and not (first.preempt and self._make_room(first)):
                return
            dozing = self._pool.dozing
            if dozing is not None and isinstance(first, Claim) and dozing.wake_for_claim(first.job):
                return  # until its nodes are up
            del self.waiting[0]
            first.serve()

    def _make_room(self, claim: Waiter) -> bool:
        """Interrupt claims of lower priority, the lowest and latest first, if that makes enough room."""
        victims = sorted((held for held in self.held if held.priority < claim.priority), key=lambda c: c.key)
        taken: list[Claim] = []
        while victims and not claim.fits():
            victim = victims.pop()
            taken.append(victim)
            self.withdraw(victim)
        if not claim.fits():
            for victim in reversed(taken):  # not enough: undo
                victim.grant = self._pool.take(victim.job, victim.grant.allocation if victim.grant else None)
                self._pool.running.add(victim, victim.job.width)
                self.held.append(victim)
            return False
        for victim in taken:
            self.ended(victim, "preempted")
            victim.interrupt(Preempted(claim.holder if isinstance(claim, Growth) else claim, victim.since or 0.0))
        return True

    def withdraw(self, claim: Claim) -> None:
        """Take the capacity of a claim back."""
        self.held.remove(claim)
        self._pool.running.remove(claim)
        assert claim.grant is not None
        self._pool.give_back(claim.job, claim.grant)

    def ended(self, claim: Claim, status: str) -> None:
        """Withdraw the growths that a claim that has ended still requests, and notify observers of the end."""
        claim.drop_growths()
        self._pool.tell("claim_ended", claim, status)

    def release(self, claim: Claim) -> None:
        """Take the capacity of a claim back and serve others, or withdraw a claim that waits."""
        if claim in self.held:
            self.withdraw(claim)
            self.ended(claim, "released")
            self._pool.came_free()
        elif claim in self.waiting:
            self.waiting.remove(claim)
            self.serve()

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each waiting claim."""
        holders = ", ".join(str(run.work.id) for run in list(self._pool.running)[:5]) or "no work"
        for claim in self.waiting:
            who = f"process {claim.process.name}" if claim.process is not None else "a caller outside any process"
            yield f"{who} waits for {claim.describe()}; {self._pool.free} are free, held by {holders}"


class Pool:
    """The base class of pools: claims, running executions, and windows in which a part of the pool is away.

    Its capacity changes through :meth:`take_down` and :meth:`bring_up`, ``resize`` of counted processors, and ``leave``
    and ``join`` of identified nodes. Each call is recorded (hook ``place_changed``) and wakes the claims, the scheduler
    and the systems above; running work continues. A waiting job that no longer fits into the pool keeps waiting.

    Attributes
    ----------
    name, system
        its name in reports; the name of its cluster, by which a body knows where its job runs
    capacity, free, up
        processors in total, free now, and not down (``free`` is negative while down processors are still in use);
        read-only for users
    version
        incremented by each take and give_back
    running
        executions ordered by expected end
    limits, claims, absences
        the limits on its jobs; its claims; its parts that are away
    windows
        announced absences of a part of the pool: no work that would run into one starts (see :meth:`announce`)
    units
        the numbers of the units that fail independently: nodes, or processors if nodes are not identified
    """

    queues = False
    calendar_priority = CALENDAR
    paced = False
    """Whether jobs may run at another speed than 1."""
    power: PowerCount | None = None
    """Counts the power of its jobs, where a cap limits it."""
    holds = True
    """Whether it has its capacity: the pool of a reservation does not before its time, or after it."""
    sleeping: Sleeping | None = None
    """Its nodes that sleep and boot; ``None``: none can."""
    dozing: Sleeping | None = None
    """The same, while some of them are not up at once; else ``None``."""
    _resized_by = "resize(processors)"

    def __init__(self, env: Environment, name: str, capacity: int, consumables: Consumables | None = None) -> None:
        self.env = env
        self.name = self.system = name
        self._capacity = capacity
        self.free = self._free = capacity  # a copy for the comparison at each take
        self.up = capacity
        self.version = 0
        self.priority = 0.0  # added to that of the jobs that wait for it
        self.limits = Limits()
        self.running = RunningIndex()
        self.windows: list[CapacityWindow] = []
        self.spec: Any = None  # its partition
        self.part_of: Pool | None = None  # of the pool of a reservation: the pool that it belongs to
        self.reserved: list[Any] = []  # the pools of its reservations
        self.consumables = consumables or Consumables({})
        self.changed: list[Callable[[], object]] = []  # called when capacity comes free or goes: to wake schedulers
        self.tell: Callable[..., object] = self._tell_observers  # a cluster replaces it, to tell its recorder too
        self.claims = ClaimQueue(self)
        env.register_waits(self.claims)

    @property
    def capacity(self) -> int:
        """Processors in total, including those that are down; read-only."""
        return self._capacity

    @capacity.setter
    def capacity(self, value: int) -> None:
        raise InputError(
            f"cannot change capacity from {self._capacity} to {value!r}: places are read-only; call {self._resized_by}",
            place=self.name,
        )

    def check(self, job: LiveJob) -> None:
        """Check that no other code, such as a policy, has changed a job or the free processors.

        Raises
        ------
        PolicyError
            if it has
        """
        if self.free != self._free or job.altered() is not None:
            reason = job.altered() or f"cannot change free from {self._free} to {self.free!r}: places are read-only"
            raise PolicyError(reason, work=f"job {job.id}", place=self.name, instant=float(self.env.now))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.free} of {self.capacity} processors free>"

    def _tell_observers(self, hook: str, *what: object) -> None:
        for call in self.env.hooks(hook):
            call(*what)

    # ------------------------------------------------------------------ defined by each kind of pool

    @property
    def network(self) -> NodeNetwork | None:
        """The places of its nodes in a network, or ``None``."""
        return None

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The relative frequencies at which all of its nodes can run, the highest first."""
        kinds = [tuple(level for level, _ in kind.watts.levels) for kind in getattr(self.spec, "nodes", ())]
        return tuple(level for level in kinds[0] if all(level in each for each in kinds)) if kinds else ()

    @property
    def simple(self) -> bool:
        """Whether the number of free processors is the whole state: no windows, consumables or nodes that matter."""
        return False

    @property
    def largest(self) -> int:
        """The most processors that one job can have."""
        return self._capacity

    def too_large(self, processors: int, name: str | None = None) -> Refusal:
        """Return the refusal of a job with more processors than :attr:`largest`; ``name``: that of the pool in it."""
        name = name or self.name
        text = f"{processors} processors requested, {name} has {self.largest}"
        return Refusal(text, f"wider than {name}, which has {self.largest}")

    def speed_of(self, job: LiveJob, nodes: Iterable[int] | None) -> float:
        """Return the speed at which a job runs on these nodes of the pool; a body takes its own time."""
        return 1.0

    def know_queue(self) -> Sequence[Any]:
        """Return the indexes of the jobs that wait for the pool, which are to be kept up to date from now on."""
        return ()

    def width_of(self, job: LiveJob) -> int:
        """Return the processors that a job takes if its start follows from their number while the pool is simple.

        0: it does not, since the job requests anything else.
        """
        return 0

    def promise(
        self, head: LiveJob, waiting: WaitingJobs, order: JobOrder, before: Promise | None = None
    ) -> Promise | None:
        """Return the promise of the earliest start of a waiting job that does not fit now; ``None``: see its profile.

        Parameters
        ----------
        head
            the job
        waiting, order
            the jobs that wait for the pool, and the order in which those beside the head are tried
        before
            the last promise at the pool, which may answer this question too
        """
        return None

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the pool can never run the job, or ``None``."""
        raise NotImplementedError

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now."""
        raise NotImplementedError

    def why_waits(self, job: LiveJob) -> str:
        """Return why the job does not fit although as many processors are free as it requests, or an empty text."""
        return ""

    def accepts(self, job: LiveJob, allocation: Allocation | None) -> bool:
        """Whether the job could start now with exactly this allocation."""
        return self.fits(job)

    def room_for(self, job: LiveJob, allocation: Allocation | None = None) -> Any:
        """Return the capacity for a job reported to run here, by default as placed now; ``None``: there is no room.

        Only capacity that other jobs hold counts: not limits, windows, nor that the nodes of the allocation are down.
        """
        raise NotImplementedError

    def fits_without(self, job: LiveJob, runs: Iterable[Run]) -> bool:
        """Whether the job could start now without these executions; the state of the pool is restored afterwards."""
        version = self.version
        gone = list(runs)
        planned = bool(self.windows)  # then fits() looks at running work too
        for run in gone:
            self.give_back(run.work, run.grant)
            if planned:
                self.running.remove(run)
        fits = self.fits(job)
        for run in reversed(gone):
            self.take(run.work, run.grant.allocation)
            if planned:
                self.running.add(run, run.work.width)
        self.version = version
        return fits

    @property
    def why_rigid(self) -> str | None:
        """Why the work on the pool keeps its size, or ``None``."""
        return None

    def resized(self, job: LiveJob, grant: Grant, processors: int, left: float) -> Any:
        """Return the grant or allocation of running work with another number of processors, for ``left`` seconds more.

        Work that grows keeps its own; work that shrinks gives back the nodes with the highest numbers. ``None``:
        too few are free.
        """
        raise NotImplementedError

    def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant:
        """Allocate the job's request."""
        raise NotImplementedError

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Release a job's grant."""
        raise NotImplementedError

    def profile(self) -> Profile:
        """Return the free capacity over time, from the expected ends of running work and the announced windows."""
        raise NotImplementedError

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when the job fits, by the expected ends (s), and the processors left free at its start."""
        raise NotImplementedError

    def counts(self) -> CountProfile:
        """Return the profile of the processors of a pool that is :attr:`simple`."""
        raise NotImplementedError

    # ------------------------------------------------------------------ claims

    def claim(
        self,
        processors: int | None = None,
        *,
        priority: float = 0.0,
        preempt: bool = False,
        duration: float | None = None,
        **request: Any,
    ) -> Claim:
        """Request capacity of the pool, all or nothing; the claim is an event and a context manager.

        Claims are served by priority (higher first), then in order; a claim that does not fit holds up those behind.

        Parameters
        ----------
        processors
            their number, if the claim is not for nodes
        priority
            higher goes first
        preempt
            whether to interrupt claims of lower priority to make room, the latest first, with :class:`Preempted` as
            the cause
        duration
            the expected seconds until release, if known, for policies that plan
        request
            other request fields of :class:`~simmodel.work.job.Job`: nodes, gpus_per_node, consumables ...

        Raises
        ------
        ImpossibleWork
            the pool can never grant it

        >>> from simmodel import Environment
        >>> from simmodel.resources import CountPool
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
        if processors is not None:
            request["processors"] = processors
        spec = Job(run=0.0 if duration is None else duration, **request)
        number = self.claims.next_number()
        planned = float("inf") if duration is None else duration
        job = LiveJob(f"claim {number}", -number, self.env.now, spec.processors, planned, planned, 0.0)
        job.place = self
        job.request = self.request_of(spec)
        reason = self.why_not(job)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: {reason}")
        claim = Claim(self, job, priority, preempt)
        insort(self.claims.waiting, claim)
        self.claims.serve()
        return claim

    def release(self, claim: Claim) -> None:
        """Release a claim of the pool, as ``claim.release()`` does."""
        claim.release()

    # ------------------------------------------------------------------ another size

    def resize(self, processors: int, cause: str = "resize") -> None:
        """Change the number of processors, if they are counted; ``InputError`` if nodes are identified."""
        raise self._cannot("resize")

    def leave(self, nodes: int | str | Iterable[int | str], cause: str = "leave") -> None:
        """Let nodes leave, if they are identified; ``InputError`` if processors are counted."""
        raise self._cannot("leave")

    def join(self, nodes: int | str | Iterable[int | str], cause: str = "join") -> None:
        """Let nodes that left come back, if they are identified; ``InputError`` if processors are counted."""
        raise self._cannot("join")

    def _cannot(self, what: str) -> InputError:
        return InputError(f"cannot {what}; call {self._resized_by}", place=self.name)

    # ------------------------------------------------------------------ parts that go down and come up

    @cached_property
    def absences(self) -> Absences[Any]:
        """Which of its parts are away."""
        raise NotImplementedError

    @property
    def units(self) -> range:
        """The numbers of the units that fail independently."""
        raise NotImplementedError

    def unit(self, number: int) -> Any:
        """Return one unit as the argument of :meth:`take_down`."""
        raise NotImplementedError

    def take_down(self, what: Any, cause: str = "drain") -> None:
        """Take a part down: it gets no new work, running work continues; each take_down needs its own bring_up.

        Nodes that are reserved are down in their reservation, too; reserved processors that are not identified stay up.

        Parameters
        ----------
        what
            a number of processors, or nodes by number or name if nodes are identified
        cause
            the cause in the record

        Raises
        ------
        InputError
            no such part

        >>> from simmodel import Environment
        >>> from simmodel.resources import CountPool
        >>> pool = CountPool(Environment(), "pool", 4)
        >>> pool.take_down(3); pool.free, pool.up, pool.capacity
        (1, 1, 4)
        >>> pool.bring_up(4)
        Traceback (most recent call last):
        ...
        simmodel.foundation.errors.InputError: processors: must be <= 3, the processors of pool that are down, got 4
        """
        part = self.part(what)
        self.absences.count_drained(part, 1)
        for pool, own in self.shares(part):
            pool.absences.go_down(own, cause)
        self.wake_all()

    def bring_up(self, what: Any, cause: str = "resume") -> None:
        """Bring a part back up that :meth:`take_down` took; the outages and windows of a spec end by themselves.

        Parameters
        ----------
        what, cause
            as for :meth:`take_down`

        Raises
        ------
        InputError
            the part is not down, or for other reasons only
        """
        part = self.part(what)
        self.absences.count_drained(part, -1)
        for pool, own in self.shares(part):
            pool.absences.come_up(own, cause)

    def shares(self, what: Any) -> Iterator[tuple[Pool, Any]]:
        """Yield the pool and its reservations that have some of a part, each with its share."""
        yield self, what
        for place in self.reserved:
            if own := place.own_part(what):
                yield place, own

    def announce(
        self,
        start: float,
        end: float,
        what: Any,
        tell: Callable[[bool], object] | None = None,
        *,
        purpose: Purpose | None = None,
    ) -> CapacityWindow | None:
        """Announce that part of the pool will be away from ``start`` to ``end`` (s).

        No work that would run into the window starts. Work that still runs when it begins, past its expected end,
        continues.

        Parameters
        ----------
        start, end
            seconds; ``end`` may be infinite; a past start means now, a window in the past is ignored
        what
            a number of processors, or a tuple of nodes if nodes are identified (see ``absences.units_of``)
        tell
            called with ``True`` once the part is away, and with ``False`` once the window has ended
        purpose
            its purpose, instead of ``tell``: a snapshot finds it again by its name

        >>> from simmodel import Environment
        >>> from simmodel.resources import CountPool
        >>> env = Environment(); pool = CountPool(env, "pool", 4)
        >>> _ = pool.announce(10, 20, 3)
        >>> env.run(until=15); pool.free, pool.windows
        (1, [<window 10 to 20 s: 3>])
        >>> env.run(); pool.free, pool.windows
        (4, [])
        """
        env = self.env
        if end <= env.now:
            return None
        window = CapacityWindow(self, start, end, what, Purpose(tell=tell) if purpose is None else purpose)
        insort(self.windows, window)
        self.altered()
        if start > env.now:
            window.plan("begin", start)
        else:  # a system is built: its observers are told by the first event
            window.begun = True
            self.absences.lower(what)
            window.plan("told", env.now)
        if end < float("inf"):
            window.plan("over", end)
        return window

    def part(self, what: Any) -> Any:
        """Return a part as :attr:`absences` counts it.

        Raises
        ------
        InputError
            no such part
        """
        raise NotImplementedError

    def lower(self, what: Any) -> None:
        """Take a part down, as :meth:`take_down` does, but without a record and without its reservations."""
        self.absences.lower(self.part(what))

    @property
    def size(self) -> Any:
        """The change of the capacity since the pool was built, as a value: ``None`` if there is none."""
        raise NotImplementedError

    def altered(self) -> None:
        """Invalidate cached answers after a change."""
        self.version += 1

    # ------------------------------------------------------------------ shared

    @property
    def limited(self) -> bool:
        """Whether it limits the processors or the requested time of a job."""
        return self.limits.processors is not None or self.limits.requested is not None

    def can_run(self, job: LiveJob) -> bool:
        """Whether the pool could ever run the job."""
        return self.why_not(job) is None

    @property
    def backlog(self) -> float:
        """The expected remaining work of running executions, in processor seconds."""
        now = self.env.now
        return sum((max(end, now) - now) * processors for end, _, processors, _ in self.running.entries())

    def request_of(self, spec: Job) -> Request | None:
        """Return a job's request beyond processors, or ``None``."""
        request = self._request_of(spec)
        return request if self.power is None or request is None else self.power.counted(request)

    def _why_not_amounts(self, job: LiveJob, request: Request) -> str | None:
        """Return why the consumables can never satisfy a request, or ``None``."""
        reason, power = self.consumables.why_not(request.consumables), self.power
        if reason is None or power is None or not (power.lowers and self.levels) or job.own_times:
            return reason
        return self.consumables.why_not(power.counted(request, self.levels[-1]).consumables)

    def _amounts_fit(self, job: LiveJob) -> bool:
        """Whether the consumables that a job requests are free now, and stay so where their amount changes."""
        request, there = job.request, self.consumables
        if request is None or not there.capacity:
            return True
        if not there.fits(request.consumables):
            return False
        now, seconds = self.env._now, job.planned
        if self.dozing is not None:  # its nodes may have to boot first
            seconds += max(0.0, float(self.dozing.by_node().max()) - now)
        if not there.falls_before(now + seconds):
            return True
        profiles = there.profiles(now, self.running)
        return all(profiles[name].fits(amount, seconds) for name, amount in request.consumables.items())

    def _request_of(self, spec: Job) -> Request | None:
        if not spec.amounts and self.power is None:
            return None
        from simmodel.resources.pools.allocation import Request

        return Request.of(spec)

    def came_free(self) -> None:
        """Serve the waiting claims and wake the schedulers, after capacity came free."""
        if self.claims.waiting:
            self.claims.serve()
        self.wake_all()

    def wake_all(self) -> None:
        """Wake the schedulers that use the pool."""
        for call in self.changed:
            call()
