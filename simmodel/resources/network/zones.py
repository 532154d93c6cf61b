"""Zones: a topology whose routes are composed over a hierarchy of zones, as SimGrid composes them.

A zone holds hosts and routers, or other zones. It has the ways between any two of these; a way between two zones leads
from a gateway in the one to a gateway in the other, and the rest of the route is found in the zones further down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import inf
from typing import TypeAlias

import attrs

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.platform.links import LinkSpec
from simmodel.platform.topology import Topology

__all__ = ["DijkstraZone", "FloydZone", "FullZone", "StarZone", "TopologyZone", "Way", "Zone", "Zones"]

LOOPBACK = LinkSpec(name="__loopback__", bandwidth=1e10, sharing="fatpipe")
"""The way of a host to itself in a zone with a table of ways, unless the table has one."""

Between: TypeAlias = Callable[[str, str], list[str]]


@attrs.frozen
class Way:
    """The links of a way within a zone, and its gateways where it leads from one zone to another."""

    links: tuple[str, ...]
    leaves: str | None = None
    enters: str | None = None


class Zone:
    """A zone without routes, and the base class of the others.

    ``line`` is the zone, the one that holds it, and so on; ``points`` are the names of what it holds, in order;
    ``bypasses`` are ways between two of these, or between two zones at any depth, that replace the composed ones.
    """

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        self.name = name
        self.line: tuple[Zone, ...] = (self, *(() if parent is None else parent.line))
        self.points: list[str] = []
        self.ways: dict[tuple[str, str], Way] = {}
        self.bypasses: dict[tuple[str, str], Way] = {}
        if parent is not None:
            parent.points.append(name)

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        """Return the way between two of its points, or ``None``; ``between``: the links between two gateways."""
        return self.ways.get((source, destination))


class FullZone(Zone):
    """A zone with a table of all its ways."""

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        loop = Way((LOOPBACK.name,)) if source == destination else None
        return self.ways.get((source, destination), loop)


class DijkstraZone(FullZone):
    """A zone whose ways are chains of those in its table with the fewest links; ties are broken as in SimGrid."""

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        super().__init__(name, parent)
        self._trees: dict[str, dict[str, str]] = {}

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        """Return the chain."""
        if source == destination:
            return super().way(source, destination, between)
        if source not in self._trees:
            self._trees[source] = self._tree(source)
        places = [destination]
        while places[-1] != source:
            if places[-1] not in self._trees[source]:
                return None
            places.append(self._trees[source][places[-1]])
        steps = [self.ways[step] for step in pairwise(reversed(places))]
        links = list(steps[0].links)
        for before, step in pairwise(steps):
            if before.enters is not None and step.leaves is not None and before.enters != step.leaves:
                links += between(before.enters, step.leaves)
            links += step.links
        return Way(tuple(links), steps[0].leaves, steps[-1].enters)

    def _tree(self, source: str) -> dict[str, str]:
        """Return the point before each one on the way from a source, by Dijkstra."""
        number = {point: i for i, point in enumerate(dict.fromkeys(point for ends in self.ways for point in ends))}
        out: dict[str, list[tuple[str, int]]] = {point: [] for point in (source, *number)}
        for (a, b), way in self.ways.items():
            out[a].append((b, len(way.links)))
        costs: dict[str, float] = {source: 0}
        before: dict[str, str] = {}
        heap = [(0, number.get(source, 0), source)]
        while heap:
            cost, _, here = heappop(heap)
            for there, links in out[here]:
                if cost + links < costs.get(there, inf):
                    costs[there] = cost + links
                    before[there] = here
                    heappush(heap, (cost + links, number[there], there))
        return before


class FloydZone(DijkstraZone):
    """The same, with the ties of Floyd and Warshall's algorithm as SimGrid has it."""

    def _tree(self, source: str) -> dict[str, str]:
        import numpy as np

        number = {point: i for i, point in enumerate(self.points)}
        cost = np.full((len(number), len(number)), inf)
        before = np.full(cost.shape, -1)
        for (a, b), way in self.ways.items():
            cost[number[a], number[b]] = len(way.links)
            before[number[a], number[b]] = number[a]
        for i in range(len(number)):
            over = cost[:, i, None] + cost[None, i, :]
            shorter = over < cost
            cost, before = np.where(shorter, over, cost), np.where(shorter, before[None, i, :], before)
        for a, row in zip(self.points, before.tolist(), strict=True):  # all sources at once
            self._trees[a] = {b: self.points[i] for b, i in zip(self.points, row, strict=True) if i >= 0}
        return self._trees[source]


class StarZone(Zone):
    """A zone whose points each have links up to its centre and down from it: SimGrid's clusters.

    A link both on the way up and on the way down, such as a backbone, is used once.
    """

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        super().__init__(name, parent)
        self.ups: dict[str, tuple[str, ...]] = {}
        self.downs: dict[str, tuple[str, ...]] = {}

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        links = dict.fromkeys((*self.ups.get(source, ()), *self.downs.get(destination, ())))
        return self.ways.get((source, destination), Way(tuple(links)))


class TopologyZone(Zone):
    """A zone whose hosts are those of a topology."""

    def __init__(self, name: str, parent: Zone | None, topology: Topology) -> None:
        super().__init__(name, parent)
        self.topology = topology
        self._numbers = {host: i for i, host in enumerate(topology.hosts)}

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        """Return the way in the topology; the names of its links begin with that of the zone."""
        links = self.topology.route(self._numbers[source], self._numbers[destination])
        return Way(tuple(f"{self.name}/{link}" for link in links))

    def link(self, name: str) -> LinkSpec:
        found = self.topology.link(name.removeprefix(f"{self.name}/"))
        return attrs.evolve(found, name=name, reverse=found.reverse and f"{self.name}/{found.reverse}")


class Zones:
    """A hierarchy of zones as a :class:`~simmodel.platform.topology.Topology`.

    Parameters
    ----------
    hosts
        the names of the hosts, in order
    zone_of
        the zone that holds each host, router and zone but the outermost, by name
    links
        the links by name, but for those of zones that are topologies

    >>> zone = FullZone("lab")
    >>> zone.ways["a", "b"] = Way(("lan",))
    >>> zones = Zones(["a", "b"], {"a": zone, "b": zone}, {"lan": LinkSpec(name="lan", bandwidth="1Gbps")})
    >>> zones.route(0, 1), zones.route(0, 0)
    (('lan',), ('__loopback__',))
    """

    def __init__(self, hosts: Sequence[str], zone_of: Mapping[str, Zone], links: Mapping[str, LinkSpec]) -> None:
        self.hosts = tuple(hosts)
        self.zone_of = zone_of
        self._links = links
        self._topologies = [zone for zone in dict.fromkeys(zone_of.values()) if isinstance(zone, TopologyZone)]

    def within(self, hosts: Sequence[str]) -> Topology | None:
        """Return the generated topology that has all of some hosts, if one zone holds them."""
        zones = {self.zone_of[host] for host in hosts}
        zone = zones.pop() if len(zones) == 1 else None
        return zone.topology if isinstance(zone, TopologyZone) else None

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name."""
        if name in self._links:
            return self._links[name]
        zone = next((zone for zone in self._topologies if name.startswith(f"{zone.name}/")), None)
        if zone is not None:
            return zone.link(name)
        if name == LOOPBACK.name:
            return LOOPBACK
        raise InputError(f"unknown link {name!r}")

    def route(self, source: int, destination: int, /) -> tuple[str, ...]:
        """Return the names of the links from one host to another, given by their numbers.

        Raises
        ------
        InputError
            there is no route
        """
        return tuple(self.between(self.hosts[source], self.hosts[destination]))

    def between(self, source: str, destination: str) -> list[str]:
        """Return the names of the links from one host or router to another, given by their names."""
        one, other = self.zone_of[source], self.zone_of[destination]
        ups, downs = list(one.line), list(other.line)
        common = one
        while one is not other and len(ups) > 1 and len(downs) > 1 and ups[-1] is downs[-1]:
            common = ups.pop()
            downs.pop()
        if one is other:
            way = one.bypasses.get((source, destination)) or one.way(source, destination, self.between)
            if way is not None:
                return list(way.links)
        elif ups[-1] is not downs[-1]:
            keys = ((a.name, b.name) for a, b in _outwards(ups, downs))
            bypass = next((common.bypasses[key] for key in keys if key in common.bypasses), None)
            way = bypass or common.way(ups[-1].name, downs[-1].name, self.between)
            if way is not None and way.leaves is not None and way.enters is not None:
                # Where a bypass begins or ends at a host that is its gateway, SimGrid adds the host's way to itself.
                before = self.between(source, way.leaves) if bypass or way.leaves != source else []
                after = self.between(way.enters, destination) if bypass or way.enters != destination else []
                return [*before, *way.links, *after]
        raise InputError(f"no route from {source} to {destination} in zone {common.name}")

    def __repr__(self) -> str:
        return f"<Zones: {counted(len(self.hosts), 'host')}, {counted(len(self._links), 'link')}>"


def _outwards(ups: Sequence[Zone], downs: Sequence[Zone]) -> Iterator[tuple[Zone, Zone]]:
    """Yield the pairs of zones between which a bypass may lead, from the innermost outwards, in SimGrid's order."""
    for most in range(max(len(ups), len(downs))):
        pairs = [pair for i in range(most) for pair in ((i, most), (most, i))] + [(most, most)]
        yield from ((ups[i], downs[j]) for i, j in pairs if i < len(ups) and j < len(downs))
