"""Advance reservations: parts of partitions that are separate places for a limited time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.counts import CountPool
from simmodel.resources.pools.hosts import HostPool
from simmodel.resources.pools.nodes import NodePool, Nodes
from simmodel.resources.pools.pool import Limits, Pool
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import PartitionSpec, ReservationSpec
    from simmodel.work.job import LiveJob

__all__ = ["Access", "Reserved", "ReservedHosts", "ReservedNodes", "ReservedProcessors", "reserve"]


class Access(Limits):
    """Who may use a reservation and when, and the limits of its pool."""

    __slots__ = ("_env", "_reservation")

    def __init__(self, env: Environment, reservation: ReservationSpec) -> None:
        super().__init__()
        self._env = env
        self._reservation = reservation

    def why_not(self, job: LiveJob, name: str) -> str | None:
        """Return why the job may not use the reservation, or ``None``."""
        spec, now = self._reservation, self._env.now
        if spec.users and job.user not in spec.users:
            return Refusal.of(f"access of user {job.user}", f"reservation {spec.name} is for other users")
        if spec.queues and job.queue not in spec.queues:
            return Refusal.of(f"access of queue {job.queue}", f"reservation {spec.name} is for other queues")
        if now >= spec.end:
            return Refusal.of(f"access at {now:g} s", f"reservation {spec.name} ended at {spec.end:g} s")
        longest = spec.end - max(spec.start, now)
        if job.planned > longest:
            return Refusal.of(f"{job.planned:g} s", f"reservation {spec.name} has {longest:g}")
        return super().why_not(job, name)


class Reserved(Pool):
    """The base of reserved pools; their ``limits`` say who may use them, and when.

    Attributes
    ----------
    reservation, part_of
        its spec and its partition
    taken
        the reserved part of the partition
    holds
        whether it has that part: from the last body of the partition on it until its own last body has left
    """

    reservation: ReservationSpec
    part_of: Pool
    taken: Any
    holds = False

    def vacant(self, others: Iterable[Reserved]) -> bool:
        """Whether no work of the partition and none of its reservations is on the part."""
        raise NotImplementedError

    def vacant_at(self, others: Iterable[Reserved], leaves: Callable[[Any], float]) -> float:
        """Return the instant (s) at which it is expected to be vacant, by when each execution leaves."""
        raise NotImplementedError

    def own_part(self, _what: Any) -> Any:
        """Return the share of a part of the partition; ``None`` if processors are not identified."""
        return None


class ReservedProcessors(Reserved, CountPool):
    """Reserved processors, known by number only."""

    def vacant(self, others: Iterable[Reserved]) -> bool:
        """Whether enough processors are in use neither by the partition nor by its reservations."""
        return self._missing(others) <= 0

    def _missing(self, others: Iterable[Reserved]) -> int:
        parent = self.part_of
        used = parent.up - parent.free + sum(other.taken for other in others if other.holds)
        return int(used + self.taken - parent.capacity)

    def vacant_at(self, others: Iterable[Reserved], leaves: Callable[[Any], float]) -> float:
        """Return when (s) enough processors are expected to be free; infinite if the partition has too few."""
        before = [other for other in others if other.holds]
        frees = [(leaves(run), processors) for _, _, processors, run in self.part_of.running.entries()]
        frees += [(max([other.reservation.end, *map(leaves, other.running)]), other.taken) for other in before]
        missing = self._missing(before)
        for at, processors in sorted(frees):
            missing -= processors
            if missing <= 0:
                return at
        return float("inf")

    def resize(self, processors: int, cause: str = "resize") -> None:
        """Raise ``InputError``: its spec sets the size of a reservation."""
        raise InputError(f"cannot resize {self.name}: it is a reservation")


class ReservedNodes(Reserved, NodePool):
    """Reserved nodes, numbered from 0, with their names in the partition."""

    def vacant(self, others: Iterable[Reserved]) -> bool:
        """Whether none of the nodes is in use by the partition or held by another reservation."""
        held = set().union(*(other.taken for other in others if other.holds))
        return held.isdisjoint(self.taken) and not self.part_of.absences.in_the_way(self.taken)

    def vacant_at(self, others: Iterable[Reserved], leaves: Callable[[Any], float]) -> float:
        """Return when the last execution on the nodes is expected to have left."""
        mine = set(self.taken)
        runs = self.part_of.absences.in_the_way(self.taken)
        runs += [run for other in others if other.holds and not mine.isdisjoint(other.taken) for run in other.running]
        return max(map(leaves, runs), default=self.env.now)

    def leave(self, nodes: Nodes, cause: str = "leave") -> None:
        """Raise ``InputError``: its spec sets the nodes of a reservation."""
        raise InputError(f"cannot let nodes leave {self.name}: it is a reservation")

    def own_part(self, what: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers in the reservation of those nodes of the partition that are reserved."""
        own = {node: number for number, node in enumerate(self.taken)}
        return tuple(own[node] for node in what if node in own)


class ReservedHosts(ReservedNodes, HostPool):
    """Reserved hosts, on one of which each job runs."""


def reserve(env: Environment, spec: ReservationSpec, parent: Pool) -> Pool:
    """Return the place of a reservation in a pool; the calendar opens and closes it.

    Raises
    ------
    InputError
        if it names nodes that the pool does not have
    """
    place: ReservedNodes | ReservedProcessors
    taken = parent.absences.units_of(spec)
    partition: PartitionSpec = parent.spec
    if isinstance(parent, NodePool):
        kinds = [kind for kind in partition.nodes for _ in range(kind.count)]
        switches = partition.node_switches
        names = [parent.nodes[node] for node in taken]
        one = {"count": 1, "nodes_per_switch": None}
        alone = [
            attrs.evolve(kinds[node], names=name if kinds[node].names else None, switch=switches[node], **one)
            for node, name in zip(taken, names, strict=True)
        ]
        own = attrs.evolve(partition, name=spec.name, nodes=alone, network=None)
        kind = ReservedHosts if own.one_host else ReservedNodes
        place = kind(env, spec.name, own, parent.consumables, names)
        if parent.network is not None:
            place.place_in(parent.network.part(taken))
    else:
        place = ReservedProcessors(env, spec.name, taken, parent.consumables)
        place.spec = attrs.evolve(partition, name=spec.name, processors=taken)
    place.part_of = parent
    parent.reserved.append(place)
    place.reservation = spec
    place.limits = Access(env, spec)
    place.taken = taken
    place.priority = parent.priority
    return place
