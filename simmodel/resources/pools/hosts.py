"""Pools of hosts, on one of which each job runs: hosts of one kind are counted, and chosen when a job starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.allocation import Allocation, Request
from simmodel.resources.pools.claims import Grant
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.promises import INFINITY, Promise
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import NodeSpec, PartitionSpec
    from simmodel.resources.pools.allocation import NodeTable
    from simmodel.resources.pools.node_states import NodeStates
    from simmodel.resources.pools.pool import Consumables
    from simmodel.resources.pools.promises import JobOrder, WaitingJobs
    from simmodel.work.job import Job, LiveJob

__all__ = ["CHOICES", "HostPool", "HostPromise", "Hosts"]


class _Kind:
    """Hosts with the same number of cores, numbered from ``first`` on, by their number of free cores.

    ``by_free[n]`` has one bit for each host with ``n`` free cores, and ``there`` one for each such ``n`` above zero.
    """

    __slots__ = ("by_free", "cores", "first", "gpus", "there")

    def __init__(self, first: int, cores: int, gpus: int) -> None:
        self.first = first
        self.cores = cores
        self.gpus = gpus
        self.by_free = [0] * (cores + 1)
        self.there = 0


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


class Hosts:
    """Counts of the hosts of each kind by free cores, from which a host is chosen for a number of cores.

    Parameters
    ----------
    kinds
        the hosts, in order; kinds that follow each other with the same cores and GPUs are one
    free
        the free cores of each host, below zero if it is down
    choose
        one of :data:`CHOICES`

    Attributes
    ----------
    free
        as the parameter, kept up to date
    alone
        each host as the nodes of a grant
    kinds
        the counts
    choose
        ``choose(cores)`` returns the host on which a job with a number of cores starts, or ``None``

    >>> from simmodel.platform import NodeSpec
    >>> hosts = Hosts([NodeSpec(count=3, cores=8)], [8, 3, 5], CHOICES["best-fit"])
    >>> hosts.choose(4), hosts.choose(2), hosts.choose(9)
    (2, 1, None)
    >>> hosts.move(2, -4); hosts.choose(4)
    0
    """

    __slots__ = ("_kind_of", "alone", "choose", "free", "kinds")

    def __init__(self, kinds: Sequence[NodeSpec], free: Sequence[int], choose: Choice) -> None:
        self.free = list(free)
        self.alone = [(host,) for host in range(len(self.free))]
        self.kinds: list[_Kind] = []
        self.choose: Callable[[int], int | None] = partial(choose, self.kinds)
        self._kind_of: list[_Kind] = []  # of each host
        for (cores, gpus), alike in groupby(kinds, key=lambda kind: (kind.cores, kind.gpus)):
            kind = _Kind(len(self._kind_of), cores, gpus)
            self.kinds.append(kind)
            self._kind_of += [kind] * sum(each.count for each in alike)
        for host, cores in enumerate(self.free):
            if cores > 0:
                kind = self._kind_of[host]
                kind.by_free[cores] |= 1 << (host - kind.first)
                kind.there |= 1 << cores

    def fits(self, cores: int) -> bool:
        """Whether a host has at least ``cores`` free cores."""
        for kind in self.kinds:  # noqa: SIM110 (hot path)
            if kind.there >> cores:
                return True
        return False

    @property
    def most(self) -> int:
        """The most free cores of a host."""
        return max([kind.there.bit_length() - 1 for kind in self.kinds])

    def move(self, host: int, cores: int) -> None:
        """Note that cores of a host came free, or were taken if their number is negative."""
        before = self.free[host]
        after = self.free[host] = before + cores
        kind = self._kind_of[host]
        bit = 1 << (host - kind.first)
        by_free = kind.by_free
        if before > 0:
            left = by_free[before] = by_free[before] ^ bit
            if not left:
                kind.there ^= 1 << before
        if after > 0:
            if not by_free[after]:
                kind.there |= 1 << after
            by_free[after] |= bit


Choice = Callable[[list[_Kind], int], int | None]


def _fullest(kinds: list[_Kind], cores: int) -> int | None:
    """Choose the host with the fewest free cores, then the fewest GPUs, then the lowest number."""
    best: tuple[int, int, int] | None = None
    for kind in kinds:
        enough = kind.there >> cores
        if enough:
            free = cores + (enough & -enough).bit_length() - 1
            bits = kind.by_free[free]
            found = free, kind.gpus, kind.first + (bits & -bits).bit_length() - 1
            if best is None or found < best:
                best = found
    return None if best is None else best[2]


def _emptiest(kinds: list[_Kind], cores: int) -> int | None:
    """Choose the host with the most free cores, then the most GPUs, then the lowest number."""
    best: tuple[int, int, int] | None = None
    for kind in kinds:
        free = kind.there.bit_length() - 1
        if free >= cores:
            found = -free, -kind.gpus, kind.first + _lowest(kind.by_free[free])
            if best is None or found < best:
                best = found
    return None if best is None else best[2]


def _by_number(kinds: list[_Kind], cores: int) -> int | None:
    """Choose the host with the lowest number."""
    return next((_first(kind, range(cores, kind.cores + 1)) for kind in kinds if kind.there >> cores), None)


def _used_first(kinds: list[_Kind], cores: int) -> int | None:
    """Choose the host with the lowest number among those in use, else among all."""
    for kind in kinds:
        if (kind.there & ~(1 << kind.cores)) >> cores:
            return _first(kind, range(cores, kind.cores))
    return _by_number(kinds, cores)


def _first(kind: _Kind, free: range) -> int:
    """Return the host with the lowest number among those with some numbers of free cores."""
    found = 0
    for hosts in kind.by_free[free.start : free.stop]:
        found |= hosts
    return kind.first + _lowest(found)


CHOICES: dict[str, Choice] = {
    "best-fit": _fullest,
    "first-fit": _by_number,
    "packed": _used_first,
    "spread": _emptiest,
}
"""The choice among counted hosts by placement: the hosts that the placement chooses by table."""


class HostGrant(Grant):
    """Cores of one host; the allocation is made when it is read."""

    __slots__ = ("_allocation",)
    __setattr__ = object.__setattr__

    def __init__(self, processors: int, nodes: tuple[int, ...]) -> None:
        self.processors = processors  # type: ignore[misc]
        self.nodes = nodes  # type: ignore[misc]
        self._allocation: Allocation | None = None

    @property
    def allocation(self) -> Allocation:
        """The cores as parts of nodes, the same object at each look."""
        held = self._allocation
        if held is None:
            held = self._allocation = Allocation.alike(self.nodes or (), self.processors)
        return held

    def __reduce__(self) -> tuple[Any, ...]:
        return Grant, (self.processors, self.nodes, self.allocation)


class HostPool(NodePool):
    """A pool of hosts: each job runs on one of them, and its processors are cores of that host.

    A job for a number of processors is a request for one node with that many cores. As long as jobs ask for cores only,
    hosts are counted by their free cores, and the table of nodes is brought up to date when something asks for it:
    GPUs or memory of jobs, windows, or backfilling that looks at nodes. Both ways choose the same hosts.

    The placement is best fit unless the partition has another one: the host with the fewest free cores, then GPUs, then
    the lowest number. Parameters and attributes are those of :class:`~simmodel.resources.pools.nodes.NodePool`.

    >>> from simmodel import Environment
    >>> from simmodel.platform import NodeSpec, PartitionSpec
    >>> pool = HostPool(Environment(), "batch", PartitionSpec(nodes=[NodeSpec(count=2, cores=8)], one_host=True))
    >>> [pool.claim(cores).grant.nodes for cores in (5, 4, 3)], pool.free
    ([(0,), (1,), (0,)], 4)
    >>> pool.claim(9)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.ImpossibleWork: batch: 9 processors requested, the largest host of batch has 8
    """

    _sleeps = False

    def __init__(
        self,
        env: Environment,
        name: str,
        partition: PartitionSpec,
        consumables: Consumables | None = None,
        nodes: Sequence[str] | None = None,
    ) -> None:
        self._behind = False  # whether the counts have changes of cores that the table does not have
        super().__init__(env, name, partition, consumables, nodes)
        self._anywhere = None
        if self._whole is not None and not self._whole.always:
            self._whole = None
        whole = self._whole is not None or partition.exclusive  # then no job has a part of a host
        by_switch = partition.placed_by == "packed" and any(kind.has_switch for kind in partition.nodes)
        told = self._table.apart is not None
        self._choice = None if whole or by_switch or told else CHOICES.get(partition.placed_by)
        self._hosts: Hosts | None = None  # counted, without windows; None: to be counted from the table
        self._gpus_taken = 0.0
        self._most: int | None = None
        self._odd: _OddJobs | None = None
        self._asks: _Requests | None = None

    def tell_devices(self) -> None:
        """Tell the devices of each host apart from now on."""
        super().tell_devices()
        self._choice = self._hosts = None

    # ------------------------------------------------------------------ requests

    @property
    def largest(self) -> int:
        """The cores of the largest host, the most processors that a job can have."""
        if self._most is None:
            gone = self.absences.gone
            cores = self._table.capacity[0].tolist()
            self._most = int(max((each for host, each in enumerate(cores) if host not in gone), default=0))
        return self._most

    def too_large(self, processors: int, name: str | None = None) -> Refusal:
        """Return the refusal of a job with more processors than the largest host; ``name``: that of the pool in it."""
        return Refusal.of(f"{processors} processors", f"the largest host of {name or self.name} has {self.largest}")

    def _request_of(self, spec: Job) -> Request | None:
        plain = (spec.nodes is None or spec.nodes == 1) and self.power is None
        if plain and not (spec.gpus_per_node or spec.memory_per_node or spec.amounts or spec.exclusive):
            return None
        request = Request.of(spec, exclusive=self.spec.exclusive)
        if request.of_devices:
            self.tell_devices()
        return request if request.nodes else attrs.evolve(request, nodes=1, cores_per_node=request.processors)

    def request_for(self, job: LiveJob) -> Request:
        """Return the request of a live job."""
        return job.request or self.plain_request(job.processors)

    def plain_request(self, processors: int) -> Request:
        """Return the request for a number of cores of one host."""
        plain = self._plain.get(processors)
        if plain is None:
            plain = self._plain[processors] = Request(
                processors, nodes=1, cores_per_node=processors, exclusive=self.spec.exclusive
            )
        return plain

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the pool can never run the job, or ``None``."""
        request = job.request
        if request is not None and request.nodes is not None and request.nodes > 1:
            return Refusal.of(f"{request.nodes} nodes", f"each job of {self.name} runs on one host")
        if job.processors > self.largest:
            return self.too_large(job.processors)
        return None if request is None else super().why_not(job)

    @property
    def why_rigid(self) -> str:
        """Why the work on the pool keeps its size."""
        return f"each job of {self.name} runs on one host"

    def why_waits(self, job: LiveJob) -> str:
        """Return that no host has the cores although as many are free in total, or an empty text."""
        enough = job.processors <= self.free and not self.table.free[0].max() >= job.processors
        return f"{self.free} processors free in total, on no host" if enough else super().why_waits(job)

    # ------------------------------------------------------------------ counted hosts

    def _counts(self, job: LiveJob) -> bool:
        """Whether counting decides about a job: it asks for cores only, and nothing else matters now."""
        request = job.request
        return (
            self._choice is not None
            and not self.windows
            and (request is None or request.cores_alone)
            and (job.history is None or not job.history.resumes)
        )

    @property
    def table(self) -> NodeTable:
        """The free capacity of each host; read-only."""
        if self._behind:
            assert self._hosts is not None
            self._behind = False
            self._table.free[0] = self._hosts.free
        return super().table

    def _counted(self) -> Hosts:
        """Return the counted hosts."""
        hosts = self._hosts
        if hosts is None:
            assert self._choice is not None
            table = self.table
            hosts = self._hosts = Hosts(self.spec.nodes, list(map(int, table.free[0].tolist())), self._choice)
            self._gpus_taken = float((table.capacity[1] - table.free[1]).sum())
        return hosts

    def fits(self, job: LiveJob) -> bool:
        """Whether the job could start now and run for its requested time on a host that no window takes."""
        processors = job.processors
        if processors > self.free:
            return False
        hosts = self._hosts
        if hosts is None or job.request is not None or job.history is not None:
            return self._fits_otherwise(job)
        for kind in hosts.kinds:  # noqa: SIM110 (hot path: hosts.fits without a call)
            if kind.there >> processors:
                return True
        return False

    def _fits_otherwise(self, job: LiveJob) -> bool:
        if not self._counts(job):
            return super().fits(job)
        fits = self._counted().fits(job.processors)
        return fits and (job.request is None or self._amounts_fit(job))

    def take(self, job: LiveJob, allocation: Allocation | Grant | None = None) -> Grant:
        """Allocate the job's request; without an allocation of nodes, on the host that the placement chooses.

        Raises
        ------
        InputError
            the job does not fit
        """
        offered = self._offered
        named = isinstance(allocation, Allocation)
        if named and offered is not None and offered[2] is allocation and offered[:2] == (self.version, job):
            named = False
        hosts = self._hosts
        by_table = self._states is not None and not self._stale
        counts = (hosts is not None and job.request is None and job.history is None) or self._counts(job)
        # Hosts with equal free cores may differ in free GPUs.
        if named or by_table or not counts or self._gpus_taken:
            grant = super().take(job, allocation)
            self._note(grant.allocation, -1)
            return grant
        free, processors = self.free, job._processors
        if (
            free != self._free
            or job.processors != processors
            or job.planned != job._planned
            or job.expected != job._expected
            or job.submit != job._submit
            or job.priority != job._priority
        ):
            self.check(job)
        if hosts is None:
            hosts = self._counted()
        host = allocation.numbers[0] if isinstance(allocation, Allocation) else hosts.choose(processors)
        if host is None:
            raise InputError(f"cannot allocate {job} on {self.name}: it does not fit")
        hosts.move(host, -processors)
        self._behind = True
        if job.request is not None:
            self.consumables.take(job.request.consumables)
        self._changed(free - processors)
        return HostGrant(processors, hosts.alone[host])

    def give_back(self, job: LiveJob, grant: Grant) -> None:
        """Release the job's grant."""
        hosts = self._hosts
        by_table = self._states is not None and not self._stale
        if hosts is None or by_table or self._gpus_taken or job.request is not None:
            super().give_back(job, grant)
            self._note(grant.allocation, 1)
            return
        host, processors = grant.nodes[0], grant.processors  # type: ignore[index]
        hosts.move(host, processors)
        self._behind = True
        self._changed(self.free + processors if hosts.free[host] >= 0 else self.free)

    def _note(self, allocation: Allocation, sign: int) -> None:
        """Count an allocation that was taken (-1) or given back (1) by table."""
        hosts = self._hosts
        if hosts is None:
            return
        for nodes, (cores, gpus, _) in allocation.groups():
            for host in nodes:
                hosts.move(host, sign * int(cores))
            self._gpus_taken -= sign * gpus * len(nodes)

    def altered(self) -> None:
        """Invalidate cached answers after a change."""
        super().altered()  # brings the table up to date
        self._hosts = self._most = None

    # ------------------------------------------------------------------ backfilling

    def counts_hosts(self, queue: WaitingJobs) -> bool:
        """Whether backfilling can decide by the counts of hosts now; ``queue`` waits for the pool.

        They know no windows, consumables, GPUs, memory and certain hosts, nor jobs that are planned with another time
        than they will be while they run.
        """
        if self._choice is None or self.windows or self.consumables.capacity:
            return False
        if self._odd is None:
            self._odd = _OddJobs(self)
            queue.keep(self._odd)
        if self._odd.jobs:
            return False
        self._counted()
        if self._gpus_taken:
            return False
        self._stale = True  # the states, if there are any
        return True

    def promise(
        self, head: LiveJob, waiting: WaitingJobs, order: JobOrder, before: Promise | None = None
    ) -> Promise | None:
        """Return the promise of the earliest start of a job: by the counts of hosts if these decide now."""
        if self.counts_hosts(waiting):
            return HostPromise(self, head, waiting, order, self._counted())
        return super().promise(head, waiting, order, before)

    def offer_host(self, job: LiveJob, host: int) -> Allocation:
        """Return the allocation of a job now, on this host; nothing is taken."""
        allocation = Allocation.alike((host,), job.processors)
        self._offered = self.version, job, allocation
        return allocation

    def states(self, queue: WaitingJobs) -> NodeStates | None:
        """Return the states of its nodes, if backfilling can decide by them now; see the base class."""
        if self._asks is None:
            self._asks = _Requests(self)
            queue.keep(self._asks)
        return super().states(queue)


class _OddJobs:
    """An index of a queue of hosts: the waiting jobs about which counting does not decide."""

    __slots__ = ("_pool", "jobs")

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool
        self.jobs: dict[LiveJob, None] = {}

    def add(self, job: LiveJob) -> None:
        """Note a job that joins the queue."""
        request = job.request
        if (
            (request is not None and not request.cores_alone)
            or job.expected != job.planned
            or (job.history is not None and job.history.resumes)
        ):
            self.jobs[job] = None

    def remove(self, job: LiveJob) -> None:
        if self.jobs:
            self.jobs.pop(job, None)


class _Requests:
    """An index of a queue of hosts that gives waiting jobs for processors only the request for one host."""

    __slots__ = ("_pool",)

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool

    def add(self, job: LiveJob) -> None:
        """Give a job that joins the queue its request."""
        if job.request is None:
            job.request = self._pool.plain_request(job.processors)

    def remove(self, job: LiveJob) -> None:
        """Take the request of a job that leaves the queue: it may go to another pool."""
        if job.request is self._pool.plain_request(job.processors):
            job.request = None


class HostPromise(Promise):
    """A promise on counted hosts: the instant at which a host has the cores of the head, and the room beside it.

    As on nodes (:class:`~simmodel.resources.pools.node_states.NodePromise`), a host is hurt by a job if it would
    satisfy the promise at that instant, and does not with the job on it; all such hosts but one may be hurt.

    Parameters
    ----------
    place, head, waiting, order
        as for any promise; no host has the cores of the head now
    hosts
        the counted hosts of the pool

    Attributes
    ----------
    free, room
        the most cores that a job can have now if it ends by that instant, and if it does not
    """

    __slots__ = ("_hosts", "_rest", "free", "room")
    place: HostPool

    def __init__(self, place: HostPool, head: LiveJob, waiting: WaitingJobs, order: JobOrder, hosts: Hosts) -> None:
        super().__init__(place, head, waiting, order)
        self._hosts = hosts
        self._rest: dict[int, int] = {}  # the cores to spare then of each host that satisfies the promise
        self.free = self.room = 0

    def _earliest(self) -> float:
        """Find the instant by the running work, each on one host; work past its expected end is expected to end now."""
        at = INFINITY
        cores, free = self.head.processors, self._hosts.free
        then: dict[int, int] = {}  # the cores of hosts that are free at that instant
        for end, _, processors, run in self.place.running.entries():
            if end > at or end == INFINITY:
                break
            host = run.grant.nodes[0]
            there = then[host] = then.get(host, free[host]) + processors
            if there >= cores and at == INFINITY:
                at = max(end, self.place.env._now)
        self._rest = {host: there - cores for host, there in then.items() if there >= cores}
        return at

    def _find(self) -> tuple[LiveJob, Allocation | None] | None:
        lanes = self._waiting.lanes(self._order)
        if self._at is None and self.place.free < lanes.narrowest:
            return None
        limit = self.at - self.place.env._now
        self._renew()
        job = lanes.first_fitting(self.free, limit, self.room)
        if job is None:
            return None
        host = self._take(job.processors) if job.planned > limit else None
        return job, None if host is None else self.place.offer_host(job, host)

    def bars(self, jobs: Iterable[LiveJob]) -> bool:
        """Whether none of some jobs starts, which have come since all starts were found; nothing else has changed."""
        if self._at is None:
            return super().bars(jobs)
        limit, free, room = self._at - self.place.env._now, self.free, self.room
        return limit > 0 and not any(job.width <= (free if job.planned <= limit else room) for job in jobs)

    def _renew(self) -> None:
        """Update ``free`` and ``room``, the most cores that jobs can have now."""
        hosts, rest = self._hosts, self._rest
        self.free = self.room = hosts.most
        if len(rest) == 1:
            ((host, spare),) = rest.items()
            there = hosts.free[host]
            if there > spare:
                hosts.move(host, -there)
                self.room = max(hosts.most, spare)
                hosts.move(host, there)

    def _take(self, cores: int) -> int | None:
        """Take cores for a job that runs past the instant; return its host, or ``None``: the one that it gets anyway.

        Hosts that this does not hurt go first.
        """
        hosts, rest = self._hosts, self._rest
        usual = hosts.choose(cores)
        hurt = [(host, hosts.free[host]) for host, spare in rest.items() if spare < cores <= hosts.free[host]]
        chosen = usual
        if any(host == usual for host, _ in hurt):
            for host, there in hurt:
                hosts.move(host, -there)
            other = hosts.choose(cores)
            for host, there in hurt:
                hosts.move(host, there)
            chosen = usual if other is None else other
        if chosen in rest:
            rest[chosen] -= cores
            if rest[chosen] < 0:
                del rest[chosen]  # no longer promised
        return None if chosen == usual else chosen
