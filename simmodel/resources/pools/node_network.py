"""The places of nodes in a network: hops between them, and the links that work on them passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.platform.topology import Dragonfly, Interconnect, Topology, TopologyFile, Torus, Valiant, numbers_of_hosts
from simmodel.resources.network.zones import Zones

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.intp]

__all__ = ["NodeNetwork"]

KEPT = 4096
"""Up to so many nodes all hops are kept once they are asked for (one or two bytes each)."""


class Measure(Protocol):
    """What is asked of a topology: a generated one computes it, another one walks its routes."""

    def hops(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the number of links between hosts."""
        ...

    def crossed(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the numbers of the links between hosts, -1 where there are fewer."""
        ...

    def link_name(self, number: int) -> str:
        """Return the name of a link."""
        ...


class NodeNetwork:
    """The places of the nodes of a partition in its network. Nodes are numbers, as in grants.

    Parameters
    ----------
    topology
        the network; of a platform of SimGrid the one zone that holds all the nodes, if it is a generated topology
    hosts
        the number of the host that each node is; default: the hosts in order

    >>> from simmodel.platform import Torus
    >>> network = NodeNetwork(Torus(dimensions=(4, 4), bandwidth="1GBps"))
    >>> network.hops([0, 1], [5, 15]), network.mean_hops([0, 1, 5])
    (array([2, 3]), 1.3333333333333333)
    >>> network.route(0, 5), network.shared([0, 1], [1, 3])
    (('0-1:up', '1-5:up'), ('0-1:down', '0-1:up'))
    """

    def __init__(self, topology: Topology, hosts: Sequence[int] | Numbers | None = None) -> None:
        self.topology = topology.read if isinstance(topology, TopologyFile) else topology
        self.hosts: Numbers = np.arange(len(topology.hosts)) if hosts is None else np.asarray(hosts, dtype=np.intp)
        if isinstance(self.topology, Zones):
            names = [self.topology.hosts[host] for host in self.hosts.tolist()]
            inner = self.topology.within(names)
            if inner is not None:
                self.topology, self.hosts = inner, np.array(numbers_of_hosts(inner, names))
        self._measure: Measure = _measure(self.topology)
        self._matrix: Numbers | None = None

    @classmethod
    def of(cls, topology: Topology, names: Sequence[str]) -> NodeNetwork:
        """Return the places of nodes with these names."""
        return cls(topology, numbers_of_hosts(topology, names))

    def part(self, nodes: Iterable[int]) -> NodeNetwork:
        """Return the places of some of the nodes, which are numbered anew."""
        return NodeNetwork(self.topology, self.hosts[list(nodes)])

    def __len__(self) -> int:
        return len(self.hosts)

    @property
    def regular(self) -> Interconnect | None:
        """The generated topology, without the detours of ``valiant``; ``None``: it is not generated."""
        inner = self.topology.of if isinstance(self.topology, Valiant) else self.topology
        return inner if isinstance(inner, Interconnect) else None

    @property
    def torus(self) -> Torus | None:
        """The torus or mesh all of whose hosts are nodes, or ``None``."""
        found = self.regular
        return found if isinstance(found, Torus) and len(self) == len(found.hosts) else None

    @property
    def groups(self) -> Numbers | None:
        """The number of the group of each node in a dragonfly, or ``None``."""
        found = self.regular
        return found.groups_of(self.hosts) if isinstance(found, Dragonfly) else None

    def hops(self, a: ArrayLike, b: ArrayLike) -> Numbers:
        """Return the number of links between nodes: of each pair of two arrays, which are broadcast.

        Draws of ``valiant`` are left out: it is the shortest route that counts.
        """
        a, b = np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)
        if self._matrix is not None:
            return self._matrix[a, b].astype(np.intp)
        return self._measure.hops(self.hosts[a], self.hosts[b])

    def all_hops(self) -> Numbers:
        """Return the hops between all nodes as a square, kept from then on if there are at most :data:`KEPT`."""
        if self._matrix is not None:
            return self._matrix
        every = np.arange(len(self))
        rows = [self.hops(some[:, None], every) for some in np.array_split(every, len(self) // 256 + 1)]
        most = max((int(row.max(initial=0)) for row in rows), default=0)
        found = np.concatenate([row.astype(np.uint8 if most < 256 else np.uint16) for row in rows])
        if len(self) <= KEPT:
            self._matrix = found
        return found

    def mean_hops(self, nodes: ArrayLike) -> float:
        """Return the mean hops between two of some nodes, 0 for a single one: the dispersion of a job."""
        found = np.asarray(nodes, dtype=np.intp)
        if len(found) < 2:
            return 0.0
        parts = np.array_split(found, len(found) // 256 + 1)
        total = sum(int(self.hops(part[:, None], found).sum()) for part in parts)
        return total / (len(found) * (len(found) - 1))

    def route(self, a: int, b: int) -> tuple[str, ...]:
        """Return the names of the links from one node to another."""
        return tuple(self.topology.route(int(self.hosts[a]), int(self.hosts[b])))

    def links(self, nodes: ArrayLike) -> Numbers:
        """Return the links between any two of some nodes, ascending, by numbers that :meth:`link_name` names."""
        hosts = self.hosts[np.asarray(nodes, dtype=np.intp)]
        parts = np.array_split(hosts, len(hosts) * len(hosts) // 2**18 + 1)
        found = [np.unique(self._measure.crossed(part[:, None], hosts)) for part in parts if len(part)]
        links = np.unique(np.concatenate(found)) if found else np.array([], dtype=np.intp)
        return links[links >= 0]

    def link_name(self, number: int) -> str:
        """Return the name of a link from its number."""
        return self._measure.link_name(number)

    def shared(self, nodes: ArrayLike, others: ArrayLike) -> tuple[str, ...]:
        """Return the names of the links that are both between some nodes and between others, in order."""
        both = np.intersect1d(self.links(nodes), self.links(others)).tolist()
        return tuple(sorted(map(self.link_name, both)))

    def __repr__(self) -> str:
        return f"<NodeNetwork of {len(self):,} nodes: {self.topology!r}>"


def _measure(topology: Topology) -> Measure:
    inner = topology.of if isinstance(topology, Valiant) else topology
    if isinstance(inner, Interconnect):
        return inner
    return Walked(topology)


class Walked:
    """Hops and links of a topology that is not generated: each route is asked for once.

    >>> from simmodel.platform import Star
    >>> walked = Walked(Star(nodes=3, bandwidth="1GBps"))
    >>> walked.hops([0, 1], [2, 1]), [walked.link_name(link) for link in walked.crossed(0, 2).tolist()]
    (array([2, 0]), ['0-1.0:up', '2-1.0:down'])
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._routes: dict[tuple[int, int], list[int]] = {}

    def _route(self, a: int, b: int) -> list[int]:
        found = self._routes.get((a, b))
        if found is None:
            names = self._topology.route(a, b) if a != b else ()
            found = self._routes[a, b] = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
            self._names += list(self._numbers)[len(self._names) :]
        return found

    def _walk(self, sources: ArrayLike, destinations: ArrayLike) -> tuple[tuple[int, ...], list[list[int]]]:
        a, b = np.broadcast_arrays(np.asarray(sources, dtype=np.intp), np.asarray(destinations, dtype=np.intp))
        return a.shape, [self._route(*ends) for ends in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]

    def hops(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the number of links between hosts."""
        shape, routes = self._walk(sources, destinations)
        return np.array([len(route) for route in routes], dtype=np.intp).reshape(shape)

    def crossed(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the numbers of the links between hosts, -1 where there are fewer."""
        shape, routes = self._walk(sources, destinations)
        found = np.full((max(map(len, routes), default=0), len(routes)), -1, dtype=np.intp)
        for i, route in enumerate(routes):
            found[: len(route), i] = route
        return found.reshape(-1, *shape)

    def link_name(self, number: int) -> str:
        """Return the name of a link."""
        return self._names[number]
