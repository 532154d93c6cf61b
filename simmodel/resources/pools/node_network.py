"""The places of nodes in a network: hops between them, and the links that work on them passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.platform.topology import Dragonfly, Interconnect, Topology, TopologyFile, Torus, Valiant, numbers_of_hosts
from simmodel.resources.network.zones import Zones

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.intp]

__all__ = ["NodeNetwork"]

KEPT = 4096
"""Up to so many nodes all hops are kept once they are asked for, in a byte each."""


class Measure(Protocol):
    """What is asked of a topology: a generated one computes it, another one walks its routes."""

    def hops(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the number of links between hosts."""
        ...

    def among(self, hosts: ArrayLike, /) -> Numbers:
        """Return the numbers of the links between any two of some hosts, ascending."""
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

    Attributes
    ----------
    measure
        counts hops and numbers links; one object for all that share their links, such as a partition and its
        reservations

    >>> from simmodel.platform import Torus
    >>> network = NodeNetwork(Torus(dimensions=(4, 4), bandwidth="1GBps"))
    >>> network.hops([0, 1], [5, 15]), network.mean_hops([0, 1, 5])
    (array([2, 3]), 1.3333333333333333)
    >>> network.route(0, 5), network.shared([0, 1], [1, 3])
    (('0-1:up', '1-5:up'), ('0-1:up',))
    """

    def __init__(self, topology: Topology, hosts: Sequence[int] | Numbers | None = None) -> None:
        self.topology = topology.read if isinstance(topology, TopologyFile) else topology
        self.hosts: Numbers = np.arange(len(topology.hosts)) if hosts is None else np.asarray(hosts, dtype=np.intp)
        if isinstance(self.topology, Zones):
            names = [self.topology.hosts[host] for host in self.hosts.tolist()]
            inner = self.topology.within(names)
            if inner is not None:
                self.topology, self.hosts = inner, np.array(numbers_of_hosts(inner, names))
        self.measure: Measure = _measure(self.topology)

    @classmethod
    def of(cls, topology: Topology, names: Sequence[str]) -> NodeNetwork:
        return cls(topology, numbers_of_hosts(topology, names))

    def part(self, nodes: Iterable[int]) -> NodeNetwork:
        """Return the places of some of the nodes, which are numbered anew."""
        part = NodeNetwork(self.topology, self.hosts[list(nodes)])
        part.measure = self.measure
        return part

    def __len__(self) -> int:
        return len(self.hosts)

    @property
    def regular(self) -> Interconnect | None:
        """The generated topology, without the detours of ``valiant``; ``None``: it is not generated."""
        inner = self.topology.of if isinstance(self.topology, Valiant) else self.topology
        return inner if isinstance(inner, Interconnect) else None

    @property
    def torus(self) -> Torus | None:
        """The torus or mesh, or ``None``."""
        found = self.regular
        return found if isinstance(found, Torus) else None

    @property
    def groups(self) -> Numbers | None:
        """The number of the group of each node in a dragonfly, or ``None``."""
        found = self.regular
        return found.groups_of(self.hosts) if isinstance(found, Dragonfly) else None

    def hops(self, a: ArrayLike, b: ArrayLike) -> Numbers:
        """Return the number of links between nodes: of each pair of two arrays, which are broadcast.

        Draws of ``valiant`` are left out: it is the shortest route that counts.
        """
        return self.measure.hops(self.hosts[np.asarray(a, dtype=np.intp)], self.hosts[np.asarray(b, dtype=np.intp)])

    def all_hops(self) -> Numbers:
        """Return the hops between all nodes as a square: kept if the topology is generated, for up to 4,096 nodes."""
        found = self.regular
        if found is None or len(self) > KEPT:
            return _square(self.measure, self.hosts)
        return _square_of(found, self.hosts.astype("<i8").tobytes())

    def mean_hops(self, nodes: ArrayLike) -> float:
        """Return the mean hops between two of some nodes, 0 for a single one: the dispersion of a job."""
        found = np.asarray(nodes, dtype=np.intp)
        if len(found) < 2:
            return 0.0
        parts = np.array_split(found, len(found) // 256 + 1)
        total = sum(int(self.hops(part[:, None], found).sum()) for part in parts)
        return total / (len(found) * (len(found) - 1))

    def route(self, a: int, b: int) -> tuple[str, ...]:
        return tuple(self.topology.route(int(self.hosts[a]), int(self.hosts[b])))

    def links(self, nodes: ArrayLike) -> Numbers:
        """Return the links between any two of some nodes, ascending, by numbers that :meth:`link_name` names."""
        return self.measure.among(self.hosts[np.asarray(nodes, dtype=np.intp)])

    def link_name(self, number: int) -> str:
        return self.measure.link_name(number)

    def shared(self, nodes: ArrayLike, others: ArrayLike) -> tuple[str, ...]:
        """Return the names of the links that are both between some nodes and between others, in order."""
        both = np.intersect1d(self.links(nodes), self.links(others)).tolist()
        return tuple(sorted(map(self.link_name, both)))

    def __repr__(self) -> str:
        return f"<NodeNetwork of {len(self):,} nodes: {self.topology!r}>"


def _square(measure: Measure, hosts: Numbers) -> Numbers:
    rows = [measure.hops(some[:, None], hosts) for some in np.array_split(hosts, len(hosts) // 256 + 1)]
    kind = np.min_scalar_type(max(int(row.max(initial=0)) for row in rows))
    return np.concatenate([row.astype(kind) for row in rows])


@lru_cache(maxsize=4)
def _square_of(topology: Interconnect, hosts: bytes) -> Numbers:
    return _square(topology, np.frombuffer(hosts, dtype="<i8"))


def _measure(topology: Topology) -> Measure:
    inner = topology.of if isinstance(topology, Valiant) else topology
    if isinstance(inner, Interconnect):
        return inner
    return Walked(topology)


class Walked:
    """Hops and links of a topology that is not generated: each route is asked for once.

    >>> from simmodel.platform import Star
    >>> walked = Walked(Star(nodes=3, bandwidth="1GBps"))
    >>> walked.hops([0, 1], [2, 1]), [walked.link_name(link) for link in walked.among([0, 2]).tolist()]
    (array([2, 0]), ['0-1.0:up', '2-1.0:down', '2-1.0:up', '0-1.0:down'])
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

    def hops(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the number of links between hosts."""
        a, b = np.broadcast_arrays(np.asarray(sources, dtype=np.intp), np.asarray(destinations, dtype=np.intp))
        ends = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        return np.array([len(self._route(*each)) for each in ends], dtype=np.intp).reshape(a.shape)

    def among(self, hosts: ArrayLike, /) -> Numbers:
        """Return the numbers of the links between any two of some hosts, ascending."""
        every = np.asarray(hosts).tolist()
        return np.array(sorted({link for a in every for b in every for link in self._route(a, b)}), dtype=np.intp)

    def link_name(self, number: int) -> str:
        return self._names[number]
