"""What a job may take of counted hosts without delaying the promised start of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.resources.host_counts import Hosts
    from simmodel.resources.running import RunningIndex

__all__ = ["HostPromise"]

INFINITY = float("inf")


class HostPromise:
    """The earliest instant at which a host has the cores of a job, and the room beside it for jobs that run past then.

    As on nodes (:class:`~simmodel.resources.node_promise.NodePromise`), a host is hurt by a job if it would satisfy the
    promise at that instant, and does not with the job on it; all such hosts but one may be hurt.

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
