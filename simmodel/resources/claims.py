"""Claims: all-or-nothing requests of SimPy processes for a part of a pool."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import attrs
from simpy.events import Event

from simmodel.errors import ImpossibleWork
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from types import TracebackType

    from simmodel.environment import Environment
    from simmodel.resources.allocation import Allocation, Request
    from simmodel.resources.running import RunningIndex

__all__ = ["Claim", "Claims", "Grant", "Lost", "Preempted"]


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


@attrs.frozen
class Preempted:
    """The cause of the interrupt of a claim that had to give way: by which claim, and since when it held (s)."""

    by: Any
    since: float


class Claim(Event):
    """An all-or-nothing request for a part of a pool: an event whose value is the grant, and a context manager.

    Leaving the block gives everything back, also on an interrupt; a claim that was not yet granted is withdrawn.
    """

    def __init__(self, pool: Claims, job: LiveJob, priority: float, preempt: bool, number: int) -> None:
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
    def place(self) -> Claims:
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
        if self not in self.pool.claims_held:
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


class Claims:
    """The part of a pool that serves claims: by priority, then in order; one that does not fit holds up the rest."""

    if TYPE_CHECKING:  # what the pool has besides
        env: Environment
        name: str
        free: int
        running: RunningIndex

        def why_not(self, job: LiveJob) -> str | None: ...  # noqa: D102
        def fits(self, job: LiveJob) -> bool: ...  # noqa: D102
        def take(self, job: LiveJob, allocation: Allocation | None = None) -> Grant: ...  # noqa: D102
        def give_back(self, job: LiveJob, grant: Grant) -> None: ...  # noqa: D102
        def request_of(self, spec: Job) -> Request | None: ...  # noqa: D102
        def came_free(self) -> None: ...  # noqa: D102

    claims_waiting: list[Claim]
    claims_held: list[Claim]
    _numbers = 0

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
        claim = Claim(self, job, priority, preempt, number)
        insort(self.claims_waiting, claim)
        self.serve_claims()
        return claim

    def serve_claims(self) -> None:
        """Grant the claims that fit, in their order, up to the first that does not."""
        while self.claims_waiting:
            claim = self.claims_waiting[0]
            if not self.fits(claim.job) and not (claim.preempt and self._make_room(claim)):
                return
            del self.claims_waiting[0]
            claim.since = self.env.now
            claim.expected_end = claim.since + claim.job.requested
            claim.grant = self.take(claim.job)
            self.running.add(claim, claim.job.processors)
            self.claims_held.append(claim)
            claim.succeed(claim.grant)

    def _make_room(self, claim: Claim) -> bool:
        """Interrupt claims of lower priority, the lowest and latest first, where that makes enough room."""
        victims = sorted((held for held in self.claims_held if held.priority < claim.priority), key=lambda c: c.key)
        taken: list[Claim] = []
        while victims and not self.fits(claim.job):
            victim = victims.pop()
            taken.append(victim)
            self._withdraw(victim)
        if not self.fits(claim.job):
            for victim in reversed(taken):  # not enough: as it was
                victim.grant = self.take(victim.job, victim.grant.allocation if victim.grant else None)
                self.running.add(victim, victim.job.processors)
                self.claims_held.append(victim)
            return False
        for victim in taken:
            if victim.process is not None and victim.process.is_alive:
                victim.process.interrupt(Preempted(claim, victim.since or 0.0))
        return True

    def _withdraw(self, claim: Claim) -> None:
        self.claims_held.remove(claim)
        self.running.remove(claim)
        assert claim.grant is not None
        self.give_back(claim.job, claim.grant)

    def _release(self, claim: Claim) -> None:
        if claim in self.claims_held:
            self._withdraw(claim)
            self.came_free()
        elif claim in self.claims_waiting:
            self.claims_waiting.remove(claim)
            self.serve_claims()

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each claim that waits."""
        holders = ", ".join(str(run.work.id) for run in list(self.running)[:5]) or "nobody"
        for claim in self.claims_waiting:
            who = claim.process.name if claim.process is not None else "somebody"
            yield f"process {who} waits for {claim.describe()}; {self.free} are free, held by {holders}"
