"""Routes between places of a network: from a table, shortest paths by latency in a graph, or a topology."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from simmodel.foundation.errors import InputError
from simmodel.platform.links import LinkSpec
from simmodel.platform.network import NetworkSpec
from simmodel.platform.topology import Dragonfly, FatTree, Interconnect, Star, Topology, Torus, Tree, Valiant
from simmodel.resources.network.links import Link, make_link

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Dragonfly",
    "FatTree",
    "MadeLinks",
    "Router",
    "Star",
    "Topology",
    "TopologyRouter",
    "Torus",
    "Tree",
    "Valiant",
]


_Node = TypeVar("_Node", bound=Hashable)


class Router:
    """Finds the links from one place to another.

    Parameters
    ----------
    spec
        the links, and the routing table if any
    graph
        a ``networkx`` graph (directed or not) whose edges have the name of their link as ``link``; default: built from
        the ends (``between``) of the links

    Raises
    ------
    InputError
        an edge names an unknown link

    >>> from simmodel.platform import LinkSpec
    >>> links = [LinkSpec(name=a + b, bandwidth=1, latency=1, between=(a, b)) for a, b in ("xy", "yz")]
    >>> Router(NetworkSpec(links=links)).route("x", "z")
    ('xy', 'yz')
    """

    def __init__(self, spec: NetworkSpec, graph: nx.Graph[_Node] | None = None) -> None:
        self._links = {link.name: (place, link) for place, link in enumerate(spec.links)}
        self._table: dict[tuple[Hashable, Hashable], tuple[str, ...]] = {}
        for route in spec.routes:
            self._table[route.source, route.destination] = route.links
            if route.symmetrical:
                self._table[route.destination, route.source] = route.links[::-1]
        self._places = {place for ends in self._table for place in ends}
        self._numbers: dict[Hashable, int] = {}  # of the places in the graph
        self._edges: list[tuple[int, str]] = []  # from which place, by which link
        self._out: list[list[tuple[float, int, int]]] = []  # of each place, in order of links: latency, to, edge
        self._trees: dict[int, list[int]] = {}  # by source: the edge by which each place is reached; -1: none
        self._build(spec, graph)

    def route(self, source: Hashable, destination: Hashable) -> tuple[str, ...]:
        """Return the names of the links from one place to another; empty within one place."""
        found = self._table.get((source, destination))
        if found is not None:
            return found
        if not self._table:
            return self._shortest(source, destination)
        self._known(self._places, source, destination)
        if source == destination:
            return ()
        raise InputError(f"no route from {source} to {destination} in the routing table")

    def route_back(self, source: Hashable, destination: Hashable) -> tuple[str, ...]:
        """Return the links of the way back: the route of the other direction, or this one's links reversed."""
        if self._table and (destination, source) not in self._table:
            forth = self.route(source, destination)
            return tuple(self._links[name][1].reverse or name for name in reversed(forth))
        return self.route(destination, source)

    def _known(self, places: Container[Hashable], *asked: Hashable) -> None:
        for place in asked:
            if place not in places:
                raise InputError(f"unknown place {place!r}")

    def _build(self, spec: NetworkSpec, given: nx.Graph[Any] | None) -> None:
        edges: list[tuple[Any, Any, str]]
        if given is None:
            edges = [(link.between[0], link.between[1], link.name) for link in spec.links if link.between is not None]
        else:
            edges = list(given.edges(data="link"))
            self._numbers = {place: number for number, place in enumerate(given.nodes)}
        for a, b, name in edges:
            if name not in self._links:
                message = f"'link' must be the name of a link of the network, got {name!r}"
                raise InputError(message, place=f"edge {a}-{b}")
            self._numbers.setdefault(a, len(self._numbers))
            self._numbers.setdefault(b, len(self._numbers))
        self._out = [[] for _ in self._numbers]
        for a, b, name in sorted(edges, key=lambda edge: self._links[edge[2]][0]):
            link = self._links[name][1]
            one_way = link.one_way if given is None else given.is_directed()
            for start, end in ((a, b),) if one_way else ((a, b), (b, a)):
                self._out[self._numbers[start]].append((link.latency, self._numbers[end], len(self._edges)))
                self._edges.append((self._numbers[start], name))

    def _shortest(self, source: Hashable, destination: Hashable) -> tuple[str, ...]:
        """Return the path of least latency; ties go to the fewest links, then to the order of the links."""
        self._known(self._numbers, source, destination)
        start, here = self._numbers[source], self._numbers[destination]
        tree = self._trees.get(start)
        if tree is None:
            tree = self._trees[start] = self._tree(start)
        names: list[str] = []
        while here != start:
            if tree[here] < 0:
                raise InputError(f"no route from {source} to {destination}")
            here, name = self._edges[tree[here]]
            names.append(name)
        return tuple(reversed(names))

    def _tree(self, source: int) -> list[int]:
        """Return the edge by which each place is reached from a source; -1: it is not."""
        distances = [inf] * len(self._out)
        distances[source] = 0.0
        heap = [(0.0, source)]
        while heap:
            distance, here = heappop(heap)
            if distance == distances[here]:
                for latency, there, _ in self._out[here]:
                    if distance + latency < distances[there]:
                        distances[there] = distance + latency
                        heappush(heap, (distances[there], there))
        # Breadth first over the edges on paths of least latency.
        tree = [-1] * len(self._out)
        ahead = [source]
        for here in ahead:
            for latency, there, edge in self._out[here]:
                if tree[there] < 0 and there != source and distances[here] + latency == distances[there]:
                    tree[there] = edge
                    ahead.append(there)
        return tree

    def __repr__(self) -> str:
        return f"<Router: {len(self._links):,} links, {len(self._table):,} routes>"


class MadeLinks(dict[str, Link]):
    """The links of a topology by name, each made when first asked for.

    Parameters
    ----------
    topology
        describes the links
    made
        called with each new link

    >>> links = MadeLinks(Star(nodes=100, bandwidth="1GBps"), print)
    >>> links["7-1.0:up"].bandwidth, len(links)
    <Link 7-1.0:up of 1e+09 B/s, 0 used>
    (1000000000.0, 1)
    """

    def __init__(self, topology: Topology, made: Callable[[Link], object]) -> None:
        super().__init__()
        self._describe = topology.link
        self._like: Callable[[str], LinkSpec] | None = None
        if isinstance(topology, Interconnect) and type(topology).link is Interconnect.link:
            self._like = topology.like
        self._made = made

    def __missing__(self, name: str) -> Link:
        link = self[name] = make_link(self._describe(name))
        self._made(link)
        return link

    def along(self, names: Sequence[str]) -> list[Link]:
        """Return the links of a route of the topology, each made if need be, without checking their names.

        >>> MadeLinks(Star(nodes=100, bandwidth="1GBps"), id).along(["7-1.0:up"])[0].spec.reverse
        '7-1.0:down'
        """
        like = self._like
        if like is None:
            return [self[name] for name in names]
        found: list[Link] = []
        for name in names:
            link = self.get(name)
            if link is None:
                link = self[name] = Link(like(name), name, self._describe)
                self._made(link)
            found.append(link)
        return found


class TopologyRouter:
    """Finds the links from one host of a topology to another.

    Parameters
    ----------
    topology
        computes the routes

    Raises
    ------
    InputError
        two hosts have one name

    >>> TopologyRouter(Torus(dimensions=(8,), bandwidth="1GBps")).route("n6", "n0")
    ('6-7:up', '7-0:up')
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._numbers: dict[Hashable, int] = {name: number for number, name in enumerate(topology.hosts)}
        if len(self._numbers) < len(topology.hosts):
            raise InputError("must be different names", place="hosts of the topology")
        self._flows: dict[tuple[int, int], int] = {}

    def _ends(self, source: Hashable, destination: Hashable) -> tuple[int, int]:
        for place in (source, destination):
            if place not in self._numbers:
                raise InputError(f"unknown place {place!r}")
        return self._numbers[source], self._numbers[destination]

    def route(self, source: Hashable, destination: Hashable) -> tuple[str, ...]:
        """Return the names of the links from one host to another: those of the next flow, if flows differ."""
        ends = self._ends(source, destination)
        if isinstance(self._topology, Valiant):
            return tuple(self._topology.drawn(*ends, self._flows.get(ends, 0)))
        return tuple(self._topology.route(*ends))

    def route_back(self, source: Hashable, destination: Hashable) -> tuple[str, ...] | None:
        """Return the links of the way back; ``None``: those of the way forth in reverse."""
        return None if isinstance(self._topology, Valiant) else self.route(destination, source)

    def begin(self, source: Hashable, destination: Hashable) -> None:
        """Note that a flow begins, so that the next one has its own route."""
        ends = self._ends(source, destination)
        self._flows[ends] = self._flows.get(ends, 0) + 1
