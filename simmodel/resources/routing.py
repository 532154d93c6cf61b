"""Routes between places of a network: from a table, or shortest paths by latency in a graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from simmodel.errors import InputError
from simmodel.platform.network import NetworkSpec

if TYPE_CHECKING:
    import networkx as nx

_Node = TypeVar("_Node", bound=Hashable)

__all__ = ["Router"]


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
        self._spec = spec
        self._given: nx.Graph[Any] | None = graph
        self._graph: nx.MultiDiGraph[Hashable] | None = None
        self._distances: dict[Hashable, dict[Hashable, float]] = {}
        if graph is not None:
            self._build()

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

    def _build(self) -> nx.MultiDiGraph[Hashable]:
        import networkx as nx

        graph: nx.MultiDiGraph[Hashable] = nx.MultiDiGraph()
        if self._given is not None:
            graph.add_nodes_from(self._given.nodes)
            name: Any
            for a, b, name in self._given.edges(data="link"):
                if name not in self._links:
                    raise InputError(
                        f"'link' must be the name of a link of the network, got {name!r}", place=f"edge {a}-{b}"
                    )
                self._join(graph, a, b, name, self._given.is_directed())
        else:
            for link in self._spec.links:
                if link.between is not None:
                    a, b = link.between
                    self._join(graph, a, b, link.name, link.one_way)
        self._graph = graph
        return graph

    def _join(self, graph: nx.MultiDiGraph[Hashable], a: Hashable, b: Hashable, name: str, one_way: bool) -> None:
        place, link = self._links[name]
        graph.add_edge(a, b, key=name, latency=link.latency, place=place)
        if not one_way:
            graph.add_edge(b, a, key=name, latency=link.latency, place=place)

    def _shortest(self, source: Hashable, destination: Hashable) -> tuple[str, ...]:
        """Find the path of least latency; ties go to the fewest links, then to the order of the links."""
        import networkx as nx

        graph = self._graph if self._graph is not None else self._build()
        self._known(graph, source, destination)
        distances = self._distances.get(source)
        if distances is None:
            distances = nx.single_source_dijkstra_path_length(graph, source, weight="latency")
            self._distances[source] = distances
        if destination not in distances:
            raise InputError(f"no route from {source} to {destination}")
        # Breadth first over the edges on paths of least latency.
        reached: dict[Hashable, tuple[Hashable, str]] = {}
        ahead = deque([source])
        while destination not in reached and destination != source:
            here = ahead.popleft()
            edges = sorted(graph.out_edges(here, keys=True, data=True), key=lambda edge: edge[3]["place"])
            for _, there, name, data in edges:
                if there != source and there not in reached and distances[here] + data["latency"] == distances[there]:
                    reached[there] = (here, name)
                    ahead.append(there)
        names: list[str] = []
        while destination != source:
            destination, name = reached[destination]
            names.append(name)
        return tuple(reversed(names))

    def __repr__(self) -> str:
        return f"<Router: {len(self._links):,} links, {len(self._table):,} routes>"
