"""Claims: all-or-nothing requests of SimPy processes for capacity of a pool."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import attrs
from simpy.events import URGENT

from simmodel.foundation.display import Fields, counted
from simmodel.foundation.errors import ImpossibleWork
from simmodel.resources.pools.grants import Grant, Growth, Holder, LiveGrant, Waiter
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from types import TracebackType

    from simmodel.environment import Environment
    from simmodel.resources.pools.allocation import Allocation, Request
    from simmodel.resources.pools.running import RunningIndex

__all__ = ["Claim", "Claims", "Lost", "Preempted"]


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
    granted is withdrawn.
    """

    pool: Claims

    def __init__(self, pool: Claims, job: LiveJob, priority: float, preempt: bool) -> None:
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
        """Tell observers of another size."""
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
        pool.claims_held.append(self)
        pool.tell("claim_granted", self)
        self.succeed(self.live)

    def release(self) -> None:
        """Release everything, or withdraw the claim if it is not granted yet; repeated calls have no effect."""
        self.pool._release(self)

    def lose(self) -> None:
        """Release everything after a failure of the capacity, and interrupt the process with :class:`Lost`."""
        if self not in self.pool.claims_held:
            return
        self.pool._withdraw(self)
        grew = bool(self.growths)
        self.pool._ended(self, "lost")
        self._interrupt(Lost(self.pool, self.since or 0.0))
        if grew:  # its requests held up others
            self.pool.serve_claims()

    def _interrupt(self, cause: Lost | Preempted) -> None:
        """Interrupt the process; one that brought this about itself, as by a shrink, at its next ``yield``."""
        process, env = self.process, self.pool.env
        if process is None or not process.is_alive:
            return
        if env.active_process is process:
            env.call_at(env.now, lambda: self._interrupt(cause), URGENT)
        else:
            process.interrupt(cause)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Claims:
    """The part of a pool that serves claims by priority, then in order; one that does not fit holds up the rest."""

    if TYPE_CHECKING:  # the other members of the pool
        env: Environment
        name: str
        free: int
        running: RunningIndex
        tell: Callable[..., object]

        @property
        def why_rigid(self) -> str | None: ...  # noqa: D102
        def resized(self, job: LiveJob, grant: Grant, processors: int, left: float) -> Any: ...  # noqa: D102
        def why_not(self, job: LiveJob) -> str | None: ...  # noqa: D102
        def fits(self, job: LiveJob) -> bool: ...  # noqa: D102
        def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant: ...  # noqa: D102
        def give_back(self, job: LiveJob, grant: Grant) -> None: ...  # noqa: D102
        def request_of(self, spec: Job) -> Request | None: ...  # noqa: D102
        def came_free(self) -> None: ...  # noqa: D102

    claims_waiting: list[Waiter]
    claims_held: list[Claim]
    _numbers = 0  # of claims, and of all that waited in their queue
    _places = 0

    def next_place(self) -> int:
        """Return the number of the next entry in the queue of claims."""
        self._places += 1
        return self._places

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
        number = self._numbers = self._numbers + 1
        planned = float("inf") if duration is None else duration
        job = LiveJob(f"claim {number}", -number, self.env.now, spec.processors, planned, planned, 0.0)
        job.place = self
        job.request = self.request_of(spec)
        reason = self.why_not(job)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: {reason}")
        claim = Claim(self, job, priority, preempt)
        insort(self.claims_waiting, claim)
        self.serve_claims()
        return claim

    def release(self, claim: Claim) -> None:
        """Release a claim of the pool, as ``claim.release()`` does."""
        claim.release()

    def serve_claims(self) -> None:
        """Grant claims and growth in order, up to the first that does not fit."""
        while self.claims_waiting:
            first = self.claims_waiting[0]
            if not first.fits() and not (first.preempt and self._make_room(first)):
                return
            del self.claims_waiting[0]
            first.serve()

    def _make_room(self, claim: Waiter) -> bool:
        """Interrupt claims of lower priority, the lowest and latest first, if that makes enough room."""
        victims = sorted((held for held in self.claims_held if held.priority < claim.priority), key=lambda c: c.key)
        taken: list[Claim] = []
        while victims and not claim.fits():
            victim = victims.pop()
            taken.append(victim)
            self._withdraw(victim)
        if not claim.fits():
            for victim in reversed(taken):  # not enough: undo
                victim.grant = self.take(victim.job, victim.grant.allocation if victim.grant else None)
                self.running.add(victim, victim.job.width)
                self.claims_held.append(victim)
            return False
        for victim in taken:
            self._ended(victim, "preempted")
            victim._interrupt(Preempted(claim.holder if isinstance(claim, Growth) else claim, victim.since or 0.0))
        return True

    def _withdraw(self, claim: Claim) -> None:
        self.claims_held.remove(claim)
        self.running.remove(claim)
        assert claim.grant is not None
        self.give_back(claim.job, claim.grant)

    def _ended(self, claim: Claim, status: str) -> None:
        """Withdraw what a claim that has ended still requests, and tell observers of the end."""
        claim.drop_growths()
        self.tell("claim_ended", claim, status)

    def _release(self, claim: Claim) -> None:
        if claim in self.claims_held:
            self._withdraw(claim)
            self._ended(claim, "released")
            self.came_free()
        elif claim in self.claims_waiting:
            self.claims_waiting.remove(claim)
            self.serve_claims()

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each waiting claim."""
        holders = ", ".join(str(run.work.id) for run in list(self.running)[:5]) or "no work"
        for claim in self.claims_waiting:
            who = f"process {claim.process.name}" if claim.process is not None else "a caller outside any process"
            yield f"{who} waits for {claim.describe()}; {self.free} are free, held by {holders}"
