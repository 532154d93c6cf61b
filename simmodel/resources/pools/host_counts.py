"""Hosts counted by their free cores: the choice of one for a job, and what a promised start leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.platform.cluster import NodeSpec
    from simmodel.resources.pools.running import RunningIndex

__all__ = ["CHOICES", "HostPromise", "Hosts"]


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
    """Return the number of the lowest bit that is set."""
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

    >>> from simmodel.platform import NodeSpec
    >>> hosts = Hosts([NodeSpec(count=3, cores=8)], [8, 3, 5], CHOICES["best-fit"])
    >>> hosts.choose(4), hosts.choose(2), hosts.choose(9)
    (2, 1, None)
    >>> hosts.move(2, -4); hosts.choose(4)
    0
    """

    __slots__ = ("_choose", "_kind_of", "alone", "free", "kinds")

    def __init__(self, kinds: Sequence[NodeSpec], free: Sequence[int], choose: Choice) -> None:
        self.free = list(free)
        self.alone = [(host,) for host in range(len(self.free))]
        self._choose = choose
        self.kinds: list[_Kind] = []
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
        """Whether a host has so many free cores."""
        for kind in self.kinds:  # noqa: SIM110 (hot path)
            if kind.there >> cores:
                return True
        return False

    @property
    def most(self) -> int:
        """The most free cores of a host."""
        return max([kind.there.bit_length() - 1 for kind in self.kinds])

    def choose(self, cores: int) -> int | None:
        """Return the host on which a job with so many cores starts, or ``None``."""
        return self._choose(self.kinds, cores)

    def move(self, host: int, cores: int) -> None:
        """Note that so many cores of a host came free, or were taken if it is negative."""
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


INFINITY = float("inf")


class HostPromise:
    """The earliest instant at which a host has the cores of a job, and the room beside it for jobs that run past then.

    As on nodes (:class:`~simmodel.resources.pools.node_states.NodePromise`), a host is hurt by a job if it would
    satisfy the promise at that instant, and does not with the job on it; all such hosts but one may be hurt.

    Parameters
    ----------
    hosts
        the hosts, none of which has the cores now
    cores
        of the promised job
    running
        the running work, each on one host; work past its expected end is expected to end now
    now
        seconds

    Attributes
    ----------
    at
        the promised instant (s); infinite if the expected ends never free the cores of a host
    free, room
        the most cores that a job can have now if it ends by that instant, and if it does not
    """

    __slots__ = ("_hosts", "_rest", "at", "free", "room")

    def __init__(self, hosts: Hosts, cores: int, running: RunningIndex, now: float) -> None:
        self._hosts = hosts
        self.at = at = INFINITY
        free = hosts.free
        then: dict[int, int] = {}  # the cores of hosts that are free at that instant
        for end, _, processors, run in running.entries():
            if end > at or end == INFINITY:
                break
            host = run.grant.nodes[0]
            there = then[host] = then.get(host, free[host]) + processors
            if there >= cores and at == INFINITY:
                self.at = at = max(end, now)
        # The cores to spare then of each host that satisfies the promise:
        self._rest = {host: there - cores for host, there in then.items() if there >= cores}
        self.renew()

    def renew(self) -> None:
        """Note that hosts have changed: a job has started."""
        hosts, rest = self._hosts, self._rest
        self.free = self.room = hosts.most
        if len(rest) == 1:
            ((host, spare),) = rest.items()
            there = hosts.free[host]
            if there > spare:
                hosts.move(host, -there)
                self.room = max(hosts.most, spare)
                hosts.move(host, there)

    def take(self, cores: int) -> int | None:
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
