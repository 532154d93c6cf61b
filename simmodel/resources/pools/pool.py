"""Pools: the processors or nodes that a batch scheduler allocates, all or nothing."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, PolicyError
from simmodel.resources.pools.claims import Claims, Grant
from simmodel.resources.pools.consumables import Consumables
from simmodel.resources.pools.profile import CountProfile, Profile
from simmodel.resources.pools.promises import PlannedPromise, Promise
from simmodel.resources.pools.running import RunningIndex
from simmodel.resources.pools.windows import CALENDAR, CapacityWindow, Purpose
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Environment
    from simmodel.platform.cluster import OutageSpec, ReservationSpec
    from simmodel.resources.pools.allocation import Allocation, Request
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.resources.pools.promises import JobOrder, WaitingJobs
    from simmodel.work.job import Job, LiveJob, Run

__all__ = ["Pool"]


class Pool(Claims):
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
    claims_waiting, claims_held
        claims not yet granted and requests to grow, in serving order; and granted claims
    windows
        announced absences of a part of the pool: no work that would run into one starts (see :meth:`announce`)
    units
        the numbers of the units that fail independently: nodes, or processors if nodes are not identified
    """

    queues = False
    calendar_priority = CALENDAR
    paced = False
    """Whether jobs may run at another speed than 1."""
    _resized_by = "resize(processors)"

    def __init__(self, env: Environment, name: str, capacity: int, consumables: Consumables | None = None) -> None:
        self.env = env
        self.name = self.system = name
        self._capacity = capacity
        self.free = self._free = capacity  # a copy for the comparison at each take
        self.up = capacity
        self.version = 0
        self.priority = 0.0  # added to that of the jobs that wait for it
        self.max_processors: int | None = None
        self.max_requested: float | None = None
        self.running = RunningIndex()
        self.windows: list[CapacityWindow] = []
        self.spec: Any = None  # its partition
        self.part_of: Pool | None = None  # of the pool of a reservation: the pool that it belongs to
        self.reserved: list[Any] = []  # the pools of its reservations
        self.consumables = consumables or Consumables({})
        self.changed: list[Callable[[], object]] = []  # called when capacity comes free or goes: to wake schedulers
        self.tell: Callable[..., object] = self._tell_observers  # a cluster replaces it, to tell its recorder too
        self.claims_waiting = []
        self.claims_held = []
        env.register_waits(self)

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
            raise self.tampered(job)

    def tampered(self, job: LiveJob) -> PolicyError:
        """Return the error for a job or a pool that other code, such as a policy, has changed."""
        reason = job.altered() or f"cannot change free from {self._free} to {self.free!r}: places are read-only"
        return PolicyError(reason, work=f"job {job.id}", place=self.name, instant=float(self.env.now))

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

    def promise(self, head: LiveJob, waiting: WaitingJobs, order: JobOrder, before: Promise | None = None) -> Promise:
        """Return the promise of the earliest start of a waiting job that does not fit now.

        Parameters
        ----------
        head
            the job
        waiting, order
            the jobs that wait for the pool, and the order in which those beside the head are tried
        before
            the last promise at the pool, which may answer this question too
        """
        return PlannedPromise(self, head, waiting, order)

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

    @property
    def units(self) -> range:
        """The numbers of the units that fail independently."""
        raise NotImplementedError

    def unit(self, number: int) -> Any:
        """Return one unit as the argument of :meth:`take_down`."""
        raise NotImplementedError

    def units_of(self, part: OutageSpec | ReservationSpec) -> Any:
        """Return the part that an outage or a reservation names, as the argument of :meth:`take_down`.

        Raises
        ------
        InputError
            an unknown or duplicate node
        """
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
        self.count_drained(part, 1)
        for pool, own in self.shares(part):
            pool.go_down(own, cause)
        self.wake_all()

    def go_down(self, what: Any, cause: str) -> None:
        """Take a part down and record it, without waking the schedulers: for callers that first stop work there."""
        self.lower(what)
        self.tell("place_changed", self, cause)

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
        self.count_drained(part, -1)
        for pool, own in self.shares(part):
            pool.come_up(own, cause)

    def come_up(self, what: Any, cause: str) -> None:
        """Bring a part up, whatever took it down, and record it."""
        self.lift(what)
        self.tell("place_changed", self, cause)
        self.came_free()

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
            a number of processors, or a tuple of nodes if nodes are identified (see ``units_of``)
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
            self.lower(what)
            window.plan("told", env.now)
        if end < float("inf"):
            window.plan("over", end)
        return window

    @property
    def drained(self) -> Any:
        """The part of :attr:`away` that :meth:`take_down` took, in the same form."""
        raise NotImplementedError

    @drained.setter
    def drained(self, value: Any) -> None:
        raise NotImplementedError

    def count_drained(self, what: Any, more: int) -> None:
        """Count a part as taken down (1) or as brought up again (-1).

        Raises
        ------
        InputError
            the part to bring up was not taken down
        """
        raise NotImplementedError

    def part(self, what: Any) -> Any:
        """Return a part as the argument of :meth:`lower` and :meth:`lift`.

        Raises
        ------
        InputError
            no such part
        """
        raise NotImplementedError

    def lower(self, what: Any) -> None:
        """Take a part down without a record: the first step of :meth:`take_down`."""
        raise NotImplementedError

    def lift(self, what: Any) -> None:
        """Bring a part up without a record: the first step of :meth:`bring_up`.

        Raises
        ------
        InputError
            the part is not down
        """
        raise NotImplementedError

    @property
    def size(self) -> Any:
        """The change of the capacity since the pool was built, as a value: ``None`` if there is none."""
        raise NotImplementedError

    def take_size(self, size: Any) -> None:
        """Take over the :attr:`size` of another pool of the same spec, without its parts that are down."""
        raise NotImplementedError

    def hit_by(self, what: Any, rng: np.random.Generator) -> list[Run]:
        """Return the executions that a failure of a part stops, ordered by their starts; called once it is down.

        A pool without identified nodes draws the failed processors from ``rng`` among all that were up, so that busy
        processors are hit in proportion.
        """
        raise NotImplementedError

    def in_the_way(self, what: Any) -> list[Run]:
        """Return the executions to stop to empty a part that is down, the latest first."""
        raise NotImplementedError

    @property
    def away(self) -> Any:
        """The capacity that is down, as a value: a number of processors, or ((node, number of reasons), ...)."""
        raise NotImplementedError

    def take_away(self, away: Any) -> None:
        """Take down the capacity in :attr:`away` of another pool of the same spec."""
        raise NotImplementedError

    def altered(self) -> None:
        """Invalidate cached answers after a change."""
        self.version += 1

    # ------------------------------------------------------------------ shared

    @property
    def limited(self) -> bool:
        """Whether it limits the processors or the requested time of a job."""
        return self.max_processors is not None or self.max_requested is not None

    def limits_why_not(self, job: LiveJob) -> str | None:
        """Return which limit of the pool the job exceeds, or ``None``."""
        if self.max_processors is not None and job.processors > self.max_processors:
            return Refusal.of(f"{job.processors} processors", f"{self.name} allows {self.max_processors}")
        if self.max_requested is not None and job.planned > self.max_requested:
            return Refusal.of(f"{job.planned:g} s", f"{self.name} allows {self.max_requested:g}")
        return None

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
        if not spec.amounts:
            return None
        from simmodel.resources.pools.allocation import Request

        return Request.of(spec)

    def came_free(self) -> None:
        """Serve the waiting claims and wake the schedulers, after capacity came free."""
        if self.claims_waiting:
            self.serve_claims()
        self.wake_all()

    def wake_all(self) -> None:
        """Wake the schedulers that use the pool."""
        for call in self.changed:
            call()
