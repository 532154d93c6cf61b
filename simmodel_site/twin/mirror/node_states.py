"""The ledger of nodes: which are out of service, by the last event of each."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from simmodel.extending import Plain, shown

if TYPE_CHECKING:
    from simmodel.platform import ClusterSpec
    from simmodel_site.twin.events import NodesChanged

__all__ = ["NodeLedger", "NodesOut", "Service", "nodes_out"]

Service: TypeAlias = Literal["up", "draining", "down"]
"""Whether jobs run and start on a node; on one that is draining they only run."""

_RANK = {"up": 0, "draining": 1, "down": 2}
_MANY = 1000  # changes of a partition of counted processors that are kept apart


class NodesOut(NamedTuple):
    """The names of the nodes that are down, and of those that take no new jobs."""

    down: tuple[str, ...]
    draining: tuple[str, ...]


def nodes_out(services: Iterable[tuple[str, Service]]) -> NodesOut:
    """Return the nodes that are out of service, by the service of each.

    >>> nodes_out([("n1", "down"), ("n2", "up"), ("n3", "draining")])
    NodesOut(down=('n1',), draining=('n3',))
    """
    told = dict(services)
    down, draining = (tuple(name for name, each in told.items() if each == out) for out in ("down", "draining"))
    return NodesOut(down, draining)


class NodeLedger:
    """The changes of the nodes of a cluster, received in any order and any number of times.

    Of a node the last change counts. Processors that are only counted go down and return one change after the other.

    >>> from simmodel.platform import ClusterSpec
    >>> from simmodel_site.twin import NodesChanged
    >>> nodes = NodeLedger(ClusterSpec.simple(8))
    >>> down = NodesChanged(cluster="alps", time=3.0, state="down", processors=2)
    >>> nodes.tell(down), nodes.tell(down), nodes.down()
    ((True, []), (False, []), {'batch': 2})
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self._names = {name: part.name for part in spec.partitions if part.nodes for name in part.node_names}
        self._in = {
            name: [part.name for part in spec.partitions if part.nodes and part.has_node(name)] for name in self._names
        }
        self._counted = {part.name for part in spec.partitions if not part.nodes}
        self._first = spec.partitions[0].name
        self._told: dict[str, tuple[float, int]] = {}  # of each node: when, and the rank of its state
        self._changes: dict[str, list[tuple[float, int, int]]] = {}  # of counted partitions: when, rank, how many
        self._base: dict[str, int] = {}

    def state(self, name: str) -> tuple[float, str]:
        """Return the instant (s) of the last event of a node, and its state."""
        time, rank = self._told.get(name, (float("-inf"), 0))
        return time, next(state for state, each in _RANK.items() if each == rank)

    @property
    def out(self) -> dict[str, str]:
        return {name: self.state(name)[1] for name, (_, rank) in self._told.items() if rank}

    def tell(self, event: NodesChanged) -> tuple[bool, list[str]]:
        """Take a change; return whether it changed anything, and a sentence for each part of it that is unknown."""
        refused = []
        changed = False
        fact = event.time, _RANK[event.state]
        for name in event.nodes:
            if name not in self._names:
                refused.append(f"unknown node {shown(name)}")
            elif fact > self._told.get(name, (float("-inf"), -1)):
                before = self._told.get(name, (0.0, 0))[1]
                self._told[name] = fact
                changed = changed or (before > 0) != (fact[1] > 0)
        if event.processors:
            partition = self._first if event.partition is None else event.partition
            if partition in self._counted and event.processors > 0:
                changed |= self._count(partition, (*fact, event.processors))
            else:
                refused.append(f"processors: must be nodes of {shown(partition)}, got {event.processors}")
        return changed, refused

    def _count(self, partition: str, change: tuple[float, int, int]) -> bool:
        changes = self._changes.setdefault(partition, [])
        if change in changes:
            return False
        before = self._total(partition)
        insort(changes, change)
        if len(changes) > _MANY:
            self._base[partition] = _after(self._base.get(partition, 0), changes[: _MANY // 2])
            del changes[: _MANY // 2]
        return self._total(partition) != before

    def _total(self, partition: str) -> int:
        return _after(self._base.get(partition, 0), self._changes.get(partition, ()))

    def down(self) -> dict[str, frozenset[str] | int]:
        """Return the resources out of service, by partition: names of nodes, or a number of processors."""
        found: dict[str, set[str]] = {}
        for name in self.out:
            for partition in self._in[name]:
                found.setdefault(partition, set()).add(name)
        counted = {partition: total for partition in self._changes if (total := self._total(partition))}
        return {name: frozenset(nodes) for name, nodes in found.items()} | counted

    # ------------------------------------------------------------------ documents

    def document(self) -> dict[str, Plain]:
        """Return the ledger as plain values."""
        return {
            "told": {name: list(fact) for name, fact in self._told.items()},
            "changes": {name: [list(each) for each in changes] for name, changes in self._changes.items()},
            "base": dict(self._base),
        }

    def restore(self, document: Mapping[str, Any]) -> None:
        """Restore the ledger from a document; nodes and partitions that the platform lacks are left out."""
        self._told = {name: (when, rank) for name, (when, rank) in document["told"].items() if name in self._names}
        self._changes = {
            name: [(when, rank, count) for when, rank, count in changes]
            for name, changes in document["changes"].items()
            if name in self._counted
        }
        self._base = dict(document["base"])


def _after(down: int, changes: Any) -> int:
    for _, rank, processors in changes:
        down = down + processors if rank else max(0, down - processors)
    return down
