"""Nodes of a pool that go down and come up, leave and join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.allocation import Allocation, NodeTable
from simmodel.resources.pools.pool import Pool

if TYPE_CHECKING:
    import numpy as np

    from simmodel.platform.cluster import OutageSpec, ReservationSpec
    from simmodel.work.job import Run

__all__ = ["ChangingNodes", "Nodes"]

Nodes: TypeAlias = int | str | Iterable[int | str]
"""Nodes by number or name."""


class ChangingNodes(Pool):
    """The base of pools of identified nodes: their names, and which of them are there.

    Attributes
    ----------
    nodes
        names of the nodes; elsewhere, nodes are numbers, positions in this list
    """

    _resized_by = "leave(nodes) or join(nodes)"
    nodes: list[str]
    _times_down: list[int]
    _gone: set[int]  # nodes that left
    _drained: Counter[int]  # how often take_down took each

    @property
    def table(self) -> NodeTable:
        """The free capacity of each node; read-only."""
        raise NotImplementedError

    def nodes_changed(self, what: Sequence[int]) -> None:
        """Note that some nodes went down or came up."""
        raise NotImplementedError

    @property
    def down_nodes(self) -> tuple[int, ...]:
        """The numbers of the nodes that are down, ascending."""
        return tuple(node for node, times in enumerate(self._times_down) if times)

    @property
    def units(self) -> range:
        """The numbers of the nodes."""
        return range(len(self.nodes))

    def unit(self, number: int) -> tuple[int, ...]:
        """Return one node, as a tuple of numbers."""
        return (number,)

    def units_of(self, part: OutageSpec | ReservationSpec) -> tuple[int, ...]:
        """Return the numbers of the nodes that an outage or a reservation names, ascending.

        Raises
        ------
        InputError
            an unknown or duplicate node
        """
        return self._numbers_of(part.nodes)

    def _numbers_of(self, nodes: Sequence[int | str]) -> tuple[int, ...]:
        named = any(isinstance(node, str) for node in nodes)
        numbers = {name: number for number, name in enumerate(self.nodes)} if named else {}
        found = sorted(self.number_of(node, numbers) for node in nodes)
        for number, after in pairwise(found):
            if number == after:
                raise InputError(f"duplicate node {self.nodes[number]!r} of {self.name}")
        return tuple(found)

    def number_of(self, node: int | str, numbers: dict[str, int]) -> int:
        """Return the number of a node given by name or number; ``numbers`` maps all names to numbers."""
        number = numbers.get(node) if isinstance(node, str) else node
        if number is None or not 0 <= number < len(self.nodes):
            raise InputError(
                f"unknown node {node!r} of {self.name}; known nodes: {self.nodes[0]} to {self.nodes[-1]}, "
                f"or 0 to {len(self.nodes) - 1}"
            )
        return number

    @property
    def away(self) -> tuple[tuple[int, int], ...]:
        """The nodes that are down, each with its number of reasons."""
        return tuple((node, times) for node, times in enumerate(self._times_down) if times)

    def take_away(self, away: Sequence[tuple[int, int]]) -> None:
        """Take the nodes down, each for its number of reasons."""
        for reason in range(max((times for _, times in away), default=0)):
            self.lower([node for node, times in away if times > reason])

    def leave(self, nodes: Nodes, cause: str = "leave") -> None:
        """Let nodes leave: they no longer count in the capacity, and get no new work; running work continues.

        A partition names all nodes that it may ever have: those that are not there from the beginning leave first.

        Parameters
        ----------
        nodes
            by number or name
        cause
            the cause in the record

        Raises
        ------
        InputError
            an unknown or duplicate node, or one that has left

        >>> from simmodel import Environment
        >>> from simmodel.platform import NodeSpec, PartitionSpec
        >>> from simmodel.resources import NodePool
        >>> pool = NodePool(Environment(), "batch", PartitionSpec(nodes=[NodeSpec(count=4, cores=8)]))
        >>> pool.leave(["node2", "node3"]); pool
        <NodePool batch: 16 of 16 processors free>
        >>> pool.join([2]); pool
        <NodePool batch: 24 of 24 processors free>
        """
        part = self.part(nodes)
        self._refuse(part, [node for node in part if node in self._gone], "nodes that have not left")
        self._go(part)
        for pool, own in self.shares(part):
            pool.go_down(own, cause)
        self.wake_all()

    def join(self, nodes: Nodes, cause: str = "join") -> None:
        """Let nodes that left come back.

        Parameters
        ----------
        nodes, cause
            as for :meth:`leave`

        Raises
        ------
        InputError
            an unknown or duplicate node, or one that has not left
        """
        part = self.part(nodes)
        self._refuse(part, [node for node in part if node not in self._gone], "nodes that have left")
        self._gone.difference_update(part)
        self._capacity += self._cores(part)
        for pool, own in self.shares(part):
            pool.come_up(own, cause)

    def _go(self, part: Sequence[int]) -> None:
        self._gone.update(part)
        self._capacity -= self._cores(part)

    def _cores(self, part: Sequence[int]) -> int:
        return int(self.table.capacity[0, list(part)].sum())

    def _refuse(self, part: Sequence[int], wrong: Sequence[int], accepted: str) -> None:
        if wrong:
            raise InputError(f"must be {accepted}, got {self.nodes[wrong[0]]!r} of {self.name}", place="nodes")

    @property
    def size(self) -> tuple[int, ...] | None:
        """The nodes that left, ascending; ``None`` if none did."""
        return tuple(sorted(self._gone)) or None

    def take_size(self, size: Sequence[int] | None) -> None:
        """Let the nodes leave that left another pool; they are down by :meth:`take_away`."""
        if size:
            self._go(size)

    def part(self, what: Nodes) -> tuple[int, ...]:
        """Return the numbers of nodes given by number or name, ascending."""
        return self._numbers_of((what,) if isinstance(what, (int, str)) else tuple(what))

    def lower(self, what: Sequence[int]) -> None:
        """Take nodes down without a record."""
        self._count_down(what, 1)
        self.table.take(Allocation.away(what))
        self.nodes_changed(what)

    def lift(self, what: Sequence[int]) -> None:
        """Bring nodes up without a record; one that is down for several reasons comes up when the last of them ends."""
        least = {node: 1 + (node in self._gone) for node in what}
        self._refuse(what, [node for node in what if self._times_down[node] < least[node]], "nodes that are down")
        self._count_down(what, -1)
        self.table.release(Allocation.away(what))
        self.nodes_changed(what)

    @property
    def drained(self) -> tuple[tuple[int, int], ...]:
        """The nodes that :meth:`take_down` took, each with how often."""
        return tuple(sorted((+self._drained).items()))

    @drained.setter
    def drained(self, value: Iterable[tuple[int, int]]) -> None:
        self._drained = Counter(dict(value))

    def count_drained(self, what: Sequence[int], more: int) -> None:
        """Count nodes as taken down (1) or as brought up again (-1)."""
        if more < 0:
            self._refuse(what, [node for node in what if not self._times_down[node]], "nodes that are down")
            self._refuse(what, [node for node in what if not self._drained[node]], "nodes that take_down took")
        for node in what:
            self._drained[node] += more

    def _count_down(self, nodes: Sequence[int], more: int) -> None:
        for node in nodes:
            before = self._times_down[node]
            self._times_down[node] = before + more
            if not before or not before + more:
                self.up -= more * int(self.table.capacity[0, node])

    def hit_by(self, what: Sequence[int], rng: np.random.Generator | None = None) -> list[Run]:
        """Return the executions that run on these nodes, in the order of their starts."""
        hit = set(what)
        runs = sorted(self.running.entries(), key=lambda entry: entry[1])
        return [run for _, _, _, run in runs if not hit.isdisjoint(run.grant.nodes)]

    def in_the_way(self, what: Sequence[int]) -> list[Run]:
        """Return the executions that run on these nodes, the latest first."""
        return self.hit_by(what)[::-1]
