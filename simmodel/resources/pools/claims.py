"""Grants and claims: the capacity that a pool gives to claims and to bodies of jobs, which grow and shrink."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, Self
from warnings import warn

import attrs
from simpy.events import URGENT, Event

from simmodel.foundation.display import Fields, counted
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.resources.pools.allocation import probe
from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from types import TracebackType

    from simpy import Process

    from simmodel.environment import Environment
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.running import RunningIndex

__all__ = ["Claim", "ClaimedPool", "Grant", "Growth", "Holder", "LiveGrant", "Lost", "Preempted", "Waiter"]


@attrs.frozen(repr=False)
class Grant(Fields):
    """The capacity that a pool granted: processors, and their nodes if nodes are identified.

    ``nodes`` is a tuple of node numbers, or ``None``; ``allocation`` is internal to the pool. The grants of claims and
    of the bodies of jobs grow and shrink, and always show the capacity held now.
    """

    processors: int = 0
    nodes: tuple[int, ...] | None = None
    allocation: Any = None

    def grow(self, processors: int) -> Growth:
        """Request more processors; see :meth:`Holder.grow`."""
        raise InputError("only the grants of claims and of the bodies of jobs grow")

    def shrink(self, processors: int) -> None:
        """Give processors back; see :meth:`Holder.shrink`."""
        raise InputError("only the grants of claims and of the bodies of jobs shrink")


class Held(Protocol):
    """An entry in the index of running work: its expected end (s), its place there, and its grant."""

    expected_end: float
    entry: Any
    grant: Any


class LiveGrant(Grant):
    """The grant of a claim or of the body of a job: it shows the capacity held now, grows and shrinks."""

    __slots__ = ("_holder",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    _holder: Holder

    def __init__(self, holder: Holder) -> None:
        object.__setattr__(self, "_holder", holder)

    @property
    def processors(self) -> int:
        """The processors requested, grown and not given back; on exclusive nodes it holds whole nodes with them."""
        return self._holder.processors

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """The numbers of the nodes held, ascending; ``None`` if nodes are not identified."""
        return self._holder.nodes

    @property
    def allocation(self) -> Any:
        return self._holder.now.allocation

    def grow(self, processors: int) -> Growth:
        """Request more processors; see :meth:`Holder.grow`."""
        return self._holder.grow(processors)

    def shrink(self, processors: int) -> None:
        """Give processors back; see :meth:`Holder.shrink`."""
        self._holder.shrink(processors)

    def __repr__(self) -> str:
        on = "" if self.nodes is None else f" on nodes {', '.join(map(str, self.nodes))}"
        return f"<grant of {self._holder.title}: {counted(self.processors, 'processor')}{on}>"


class WaitingClaims(Protocol):
    """The queue of claims of a pool: see :class:`~simmodel.resources.pools.pool.ClaimQueue`."""

    waiting: list[Waiter]
    held: list[Claim]

    def next_place(self) -> int: ...
    def serve(self) -> None: ...
    def withdraw(self, claim: Claim, /) -> None: ...
    def ended(self, claim: Claim, status: str, /) -> None: ...
    def release(self, claim: Claim, /) -> None: ...


class ClaimedPool(Protocol):
    """A pool, as its claims ask it: see :class:`~simmodel.resources.pools.pool.Pool`."""

    env: Environment
    name: str
    running: RunningIndex
    tell: Callable[..., object]

    @property
    def claims(self) -> WaitingClaims: ...
    @property
    def why_rigid(self) -> str | None: ...
    def resized(self, job: LiveJob, grant: Grant, processors: int, left: float) -> Any: ...
    def why_not(self, job: LiveJob) -> str | None: ...
    def fits(self, job: LiveJob) -> bool: ...
    def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant: ...
    def give_back(self, job: LiveJob, grant: Grant) -> None: ...
    def came_free(self) -> None: ...


class Waiter(Event):
    """An event that waits in the queue of claims of a pool, by priority and then in order of arrival."""

    pool: ClaimedPool
    priority: float
    preempt: bool

    def __init__(self, pool: ClaimedPool, priority: float, preempt: bool) -> None:
        super().__init__(pool.env)
        self.pool = pool
        self.priority = priority
        self.preempt = preempt
        self.key = (-priority, pool.claims.next_place())
        self.asked = pool.env.now
        self.process: Process | None = pool.env.active_process

    def __lt__(self, other: Waiter) -> bool:
        return self.key < other.key

    def fits(self) -> bool:
        """Whether it can be granted now."""
        raise NotImplementedError

    def serve(self) -> None:
        """Grant it."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe it, for the report of stalled waiters."""
        raise NotImplementedError


class Growth(Waiter):
    """A request of a claim or of a body for more processors, all or nothing: an event whose value is the grant.

    It waits with the priority of its claim, behind the claims that came earlier; bodies have priority 0. It is
    withdrawn when the process that waits for it is interrupted or waits no longer, and when its claim or job ends:
    ``yield grant.grow(4) | env.timeout(9)`` gives up after 9 s.
    """

    def __init__(self, holder: Holder, processors: int) -> None:
        super().__init__(holder.pool, holder.priority, holder.preempt)
        self.holder = holder
        self.processors = processors
        self.callbacks: list[Callable[[Any], None]] = _Listeners(self)

    def describe(self) -> str:
        """Describe it, for the report of stalled waiters."""
        return f"a request for {counted(self.processors, 'more processor')} of {self.pool.name} since {self.asked:g}"

    def fits(self) -> bool:
        """Whether the additional processors are free now."""
        return self._larger() is not None

    def _larger(self) -> Any:
        """Return the enlarged grant or allocation of its holder, or ``None``: too few are free."""
        holder = self.holder
        return holder.resized(holder.job.processors + self.processors)

    def serve(self) -> None:
        """Give its holder the processors."""
        holder = self.holder
        holder.growths.remove(self)
        holder.resize(holder.job.processors + self.processors, self._larger())
        self.succeed(holder.live)

    def withdraw(self) -> None:
        """Withdraw it if it has not been granted; else no effect."""
        if self in self.holder.growths:
            self.holder.growths.remove(self)
            self.pool.claims.waiting.remove(self)
            self.pool.claims.serve()


class _Listeners(list["Callable[[Any], None]"]):
    """The callbacks of a request to grow, which is withdrawn with the last of them."""

    def __init__(self, growth: Growth) -> None:
        super().__init__()
        self._growth = growth

    def remove(self, callback: Callable[[Any], None]) -> None:
        """Remove a callback, as an interrupt of the process that waits does."""
        super().remove(callback)
        if not self:
            self._growth.withdraw()


class Holder:
    """A holder of capacity of a pool that can grow and shrink: a claim, or the body of a job.

    Attributes
    ----------
    pool, job, held
        the pool; the job that stands for its capacity; its entry in the index of running work
    priority, preempt
        those with which it requests more
    growths
        its requests to grow that wait
    live
        its grant, as users have it
    """

    __slots__ = ()
    pool: ClaimedPool
    job: LiveJob
    priority: float
    preempt: bool
    growths: list[Growth]
    live: LiveGrant

    @property
    def title(self) -> str:
        """Its name in messages."""
        raise NotImplementedError

    @property
    def held(self) -> Held:
        """Its entry in the index of running work."""
        raise NotImplementedError

    @property
    def holds(self) -> bool:
        """Whether it holds its capacity: it began, and has not ended."""
        raise NotImplementedError

    def told(self, processors: int, grant: Grant) -> None:
        """Notify observers of another size, given its former processors and grant."""
        raise NotImplementedError

    @property
    def processors(self) -> int:
        """The processors requested, grown and not given back; on exclusive nodes it holds whole nodes with them."""
        return self.job.processors

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """The numbers of the nodes held, ascending; ``None`` if it holds none or nodes are not identified."""
        grant: Grant | None = self.held.grant
        return None if grant is None else grant.nodes

    @property
    def now(self) -> Grant:
        """The present grant of the pool."""
        grant: Grant | None = self.held.grant
        assert grant is not None
        return grant

    def grow(self, processors: int) -> Growth:
        """Request more processors, all or nothing: ``yield grant.grow(4)`` waits until they are there.

        The request waits in the queue of claims (see :class:`Growth`).

        Parameters
        ----------
        processors
            how many more, from 1 on

        Raises
        ------
        InputError
            it holds nothing, or keeps its size: on hosts, contiguous nodes and whole switches, or if it requested
            nodes, GPUs or memory instead of processors alone
        ImpossibleWork
            the pool never has that many

        >>> from simmodel import Environment
        >>> from simmodel.resources import CountPool
        >>> env = Environment()
        >>> pool = CountPool(env, "pool", 8)
        >>> def user(env):
        ...     with pool.claim(2) as grant:
        ...         yield grant
        ...         yield grant.grow(4)
        ...         print(env.now, grant.processors, pool.free)
        ...         grant.shrink(5)
        ...         print(env.now, grant.processors, pool.free)
        >>> def other(env):
        ...     with pool.claim(5) as grant:
        ...         yield grant & env.timeout(10)
        >>> _ = env.process(other(env)), env.process(user(env))
        >>> env.run()
        10 6 2
        10 1 7
        """
        self._check(processors, "grow")
        wanted = self.job.processors + sum(growth.processors for growth in self.growths) + int(processors)
        reason = self.why_never(wanted)
        if reason is not None:
            raise ImpossibleWork(f"{self.title}: {reason}")
        growth = Growth(self, int(processors))
        self.growths.append(growth)
        insort(self.pool.claims.waiting, growth)
        self.pool.claims.serve()
        return growth

    def shrink(self, processors: int) -> None:
        """Give processors back at once, on the nodes with the highest numbers; on exclusive nodes, whole nodes only.

        Parameters
        ----------
        processors
            how many; it keeps one at least

        Raises
        ------
        InputError
            it holds nothing, has not more than that, or keeps its size (see :meth:`grow`)
        """
        self._check(processors, "shrink")
        left = self.job.processors - int(processors)
        if left < 1:
            most = self.job.processors - 1
            raise InputError(f"{self.title} must keep a processor: it can give back {most}, got {processors}")
        self.resize(left, self.resized(left))
        self.pool.came_free()

    def resized(self, processors: int) -> Any:
        """Return its grant or allocation with another number of processors; ``None``: too few are free."""
        left = max(0.0, self.held.expected_end - self.pool.env.now)
        return self.pool.resized(self.job, self.now, processors, left)

    def resize(self, processors: int, parts: Any) -> None:
        """Hold another number of processors, and these parts of nodes, from now on."""
        pool, job, held = self.pool, self.job, self.held
        former, before = self.now, job.processors
        pool.running.remove(held)
        pool.give_back(job, former)
        job.hold(processors)
        held.grant = pool.take(job, parts)
        pool.running.add(held, job.width)
        self.told(before, former)

    def drop_growths(self) -> None:
        """Withdraw its requests to grow, as it ends."""
        for growth in self.growths:
            self.pool.claims.waiting.remove(growth)
        self.growths.clear()

    def _check(self, processors: int, what: str) -> None:
        """Raise an error unless it can grow, or shrink, by a number of processors."""
        _check_whole(processors)
        if not self.holds:
            raise InputError(f"{self.title} cannot {what}: it holds nothing now")
        request = self.job.request
        reason = self.pool.why_rigid
        if reason is None and request is not None and request.shaped:
            reason = f"it requested {request}"
        if reason is not None:
            raise InputError(f"{self.title} cannot {what}: {reason}")

    def why_never(self, processors: int) -> str | None:
        """Return why it can never have a number of processors, or ``None``."""
        return self.pool.why_not(probe(self.job, processors, 0.0))


def _check_whole(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"must be a whole number >= 1, got {value!r}", place="processors")


@attrs.frozen(repr=False)
class Lost(Fields):
    """The cause of the interrupt when the capacity of a claim fails: the pool, and when it was granted (s)."""

    place: Any
    since: float


@attrs.frozen(repr=False)
class Preempted(Fields):
    """The cause of the interrupt when a claim is preempted: the preempting claim, and when it was granted (s)."""

    by: Any
    since: float


class Claim(Waiter, Holder):
    """An all-or-nothing request for capacity of a pool: an event whose value is the grant, and a context manager.

    Once granted, it grows and shrinks. Leaving the block releases everything, also on an interrupt; a claim not yet
    granted is withdrawn. When it is preempted or lost, ``process`` is interrupted: that which made it, unless another
    one has been set. If that has ended, the claim is released with a ``RuntimeWarning``.
    """

    def __init__(self, pool: ClaimedPool, job: LiveJob, priority: float, preempt: bool) -> None:
        super().__init__(pool, priority, preempt)
        self.job = job
        self.grant: Grant | None = None
        self.live = LiveGrant(self)
        self.growths: list[Growth] = []
        self.since: float | None = None
        self.expected_end = float("inf")
        self.entry: Any = None  # its entry in the index of running work

    @property
    def work(self) -> LiveJob:
        """The job that stands for the claim in records and queues."""
        return self.job

    @property
    def place(self) -> Any:
        """The pool."""
        return self.pool

    @property
    def started(self) -> float | None:
        """The instant of the grant, in seconds; ``None`` while it waits."""
        return self.since

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"{self.job.id} of {self.pool.name}"

    @property
    def held(self) -> Claim:
        """The claim: it is its own entry in the index of running work."""
        return self

    @property
    def holds(self) -> bool:
        """Whether it is granted, and not released."""
        return self.entry is not None

    def told(self, processors: int, grant: Grant) -> None:
        """Notify observers of another size."""
        self.pool.tell("claim_resized", self, processors, grant)

    def describe(self) -> str:
        """Describe the claim, for the report of stalled waiters."""
        return f"a claim of {counted(self.job.processors, 'processor')} of {self.pool.name} since {self.asked:g}"

    def fits(self) -> bool:
        """Whether it can be granted now."""
        return self.pool.fits(self.job)

    def serve(self) -> None:
        """Take the capacity."""
        pool = self.pool
        self.since = pool.env.now
        self.expected_end = self.since + self.job.planned
        self.grant = pool.take(self.job)
        pool.running.add(self, self.job.width)
        pool.claims.held.append(self)
        pool.tell("claim_granted", self)
        self.succeed(self.live)

    def release(self) -> None:
        """Release everything, or withdraw the claim if it is not granted yet; repeated calls have no effect."""
        self.pool.claims.release(self)

    def lose(self) -> None:
        """Release everything after a failure of the capacity, and interrupt the process with :class:`Lost`."""
        if self not in self.pool.claims.held:
            return
        self.pool.claims.withdraw(self)
        grew = bool(self.growths)
        self.pool.claims.ended(self, "lost")
        self.interrupt(Lost(self.pool, self.since or 0.0))
        if grew:  # its requests held up others
            self.pool.claims.serve()

    def interrupt(self, cause: Lost | Preempted) -> None:
        """Interrupt the process; one that brought this about itself, as by a shrink, at its next ``yield``.

        If there is none any more, a ``RuntimeWarning`` says that nobody was told.
        """
        process, env = self.process, self.pool.env
        if process is None or not process.is_alive:
            what = "preempted" if isinstance(cause, Preempted) else "lost"
            who = "it was made outside any process" if process is None else f"its process {process.name} has ended"
            warn(
                f"{self.title} was {what} at {env.now:g} s and released, but no process was interrupted: {who}; if "
                "another process works with the grant, set claim.process to it",
                RuntimeWarning,
                stacklevel=2,
            )
        elif env.active_process is process:
            env.call_at(env.now, lambda: process.interrupt(cause) if process.is_alive else None, URGENT)
        else:
            process.interrupt(cause)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
