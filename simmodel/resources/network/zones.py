"""Zones: a topology whose routes are composed over a hierarchy of zones, as SimGrid composes them.

A zone holds hosts and routers, or other zones. It knows the way between any two of these; a way between two zones
begins and ends at gateways inside them, and the rest of the route is found in the zones further down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import TypeAlias

import attrs

from simmodel.foundation.errors import InputError
from simmodel.platform.network import LinkSpec
from simmodel.resources.network.topology import Topology

__all__ = ["DijkstraZone", "FloydZone", "FullZone", "StarZone", "TopologyZone", "Way", "Zone", "Zones"]

LOOPBACK = LinkSpec(name="__loopback__", bandwidth=1e10, sharing="fatpipe")
"""The way of a host to itself in a zone with a table of routes, unless the table has one."""

Between: TypeAlias = "Callable[[str, str], list[str]]"  # the links between two hosts or routers


@attrs.frozen
class Way:
    """The links of a way within a zone, and its gateways where it leads from one zone to another."""

    links: tuple[str, ...]
    leaves: str | None = None
    enters: str | None = None


class Zone:
    """A zone without routes, and the base class of the others.

    Parameters
    ----------
    name
        its name
    parent
        the zone that holds it; ``None``: it is the outermost

    ``points`` are the names of what it holds: hosts, routers and zones, in order. ``bypasses`` are ways between two
    hosts or routers in it, or between two zones at any depth, that replace the composed ones.
    """

    listed = False
    """Whether its ways are listed one by one."""

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        self.name = name
        self.parent = parent
        self.points: list[str] = []
        self.has_zones = False
        self.ways: dict[tuple[str, str], Way] = {}
        self.bypasses: dict[tuple[str, str], Way] = {}
        if parent is not None:
            parent.points.append(name)
            parent.has_zones = True

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        """Return the way between two of its points, or ``None``; ``between``: the links between two gateways."""
        return None

    def line(self) -> list[Zone]:
        """Return the zone, the one that holds it, and so on."""
        found: list[Zone] = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found


class FullZone(Zone):
    """A zone with a table of all its ways."""

    listed = True

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        found = self.ways.get((source, destination))
        if found is None and source == destination and not self.has_zones:
            return Way((LOOPBACK.name,))
        return found


class _GraphZone(FullZone):
    """A zone whose ways are chains of the listed ones with the fewest links."""

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        if source == destination:
            return super().way(source, destination, between)
        places = self.chain(source, destination)
        if places is None:
            return None
        steps = [self.ways[step] for step in pairwise(places)]
        links = list(steps[0].links)
        for before, step in pairwise(steps):
            if before.enters is not None and step.leaves is not None and before.enters != step.leaves:
                links += between(before.enters, step.leaves)
            links += step.links
        return Way(tuple(links), steps[0].leaves, steps[-1].enters)

    def chain(self, source: str, destination: str) -> list[str] | None:
        """Return the points on the way, with both ends, or ``None``."""
        raise NotImplementedError


def _walk_back(before: Mapping[str, str], source: str, destination: str) -> list[str] | None:
    found = [destination]
    while found[-1] != source:
        if found[-1] not in before:
            return None
        found.append(before[found[-1]])
    return found[::-1]


class FloydZone(_GraphZone):
    """A zone whose shortest ways are computed at once, by Floyd and Warshall; ties are broken as in SimGrid."""

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        super().__init__(name, parent)
        self._before: dict[str, dict[str, str]] = {}

    def chain(self, source: str, destination: str) -> list[str] | None:
        if not self._before:
            self._compute()
        return _walk_back(self._before[source], source, destination)

    def _compute(self) -> None:
        import numpy as np

        number = {point: i for i, point in enumerate(self.points)}
        far = 1 << 60
        cost = np.full((len(number), len(number)), far, dtype=np.int64)
        before = np.full(cost.shape, -1, dtype=np.int64)
        for (a, b), way in self.ways.items():
            cost[number[a], number[b]] = len(way.links)
            before[number[a], number[b]] = number[a]
        for i in range(len(number)) if not self.has_zones else ():
            if cost[i, i] == far:
                cost[i, i], before[i, i] = 1, i
        for i in range(len(number)):
            over = cost[:, i, None] + cost[None, i, :]
            shorter = (over < cost) & (over < far)
            cost = np.where(shorter, over, cost)
            before = np.where(shorter, before[None, i, :], before)
        for a, row in zip(self.points, before.tolist(), strict=True):
            self._before[a] = {b: self.points[i] for b, i in zip(self.points, row, strict=True) if i >= 0 and b != a}


class DijkstraZone(_GraphZone):
    """A zone whose shortest ways are computed from each source, by Dijkstra; ties are broken as in SimGrid."""

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        super().__init__(name, parent)
        self._before: dict[str, dict[str, str]] = {}
        self._out: dict[str, list[tuple[str, int]]] = {}  # of each point on a listed way: where to, by how many links

    def chain(self, source: str, destination: str) -> list[str] | None:
        if source not in self._before:
            self._before[source] = self._from(source)
        return _walk_back(self._before[source], source, destination)

    def _from(self, source: str) -> dict[str, str]:
        if not self._out:
            for (a, b), way in self.ways.items():
                self._out.setdefault(a, []).append((b, len(way.links)))
                self._out.setdefault(b, [])
        number = {point: i for i, point in enumerate(self._out)}
        points = list(self._out)
        costs: dict[str, int] = {source: 0}
        before: dict[str, str] = {}
        heap = [(0, number[source])] if source in number else []
        while heap:
            cost, i = heappop(heap)
            here = points[i]
            if cost > costs[here]:
                continue
            for there, links in self._out[here]:
                if there not in costs or cost + links < costs[there]:
                    costs[there] = cost + links
                    before[there] = here
                    heappush(heap, (costs[there], number[there]))
        return before


class StarZone(Zone):
    """A zone whose points each have links up to its centre and down from it: SimGrid's clusters.

    A link both on the way up and on the way down, such as a backbone, is used once.
    """

    def __init__(self, name: str, parent: Zone | None = None) -> None:
        super().__init__(name, parent)
        self.ups: dict[str, tuple[str, ...]] = {}
        self.downs: dict[str, tuple[str, ...]] = {}

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        loop = self.ways.get((source, destination))
        if loop is not None:
            return loop
        return Way(tuple(dict.fromkeys((*self.ups.get(source, ()), *self.downs.get(destination, ())))))


class TopologyZone(Zone):
    """A zone whose hosts are those of a topology; its router has no links."""

    def __init__(self, name: str, parent: Zone | None, topology: Topology) -> None:
        super().__init__(name, parent)
        self.topology = topology
        self._numbers = {host: i for i, host in enumerate(topology.hosts)}

    def way(self, source: str, destination: str, between: Between) -> Way | None:
        loop = self.ways.get((source, destination))
        if loop is not None:
            return loop
        if source not in self._numbers or destination not in self._numbers:
            return Way(())
        links = self.topology.route(self._numbers[source], self._numbers[destination])
        return Way(tuple(f"{self.name}/{link}" for link in links))

    def link(self, name: str) -> LinkSpec | None:
        """Return the link of its topology with a name, which begins with that of the zone, or ``None``."""
        if not name.startswith(f"{self.name}/"):
            return None
        found = self.topology.link(name.removeprefix(f"{self.name}/"))
        return attrs.evolve(found, name=name, reverse=found.reverse and f"{self.name}/{found.reverse}")


class Zones:
    """A hierarchy of zones as a :class:`~simmodel.resources.network.topology.Topology`.

    Parameters
    ----------
    hosts
        the names of the hosts, in order
    zone_of
        the zone that holds each host, router and zone but the outermost, by name
    links
        the links by name; those of zones that are topologies need not be among them

    >>> zone = FullZone("lab")
    >>> zone.points += ["a", "b"]
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

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name."""
        if name in self._links:
            return self._links[name]
        for zone in self._topologies:
            if (found := zone.link(name)) is not None:
                return found
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
        return self.between(self.hosts[source], self.hosts[destination])

    def between(self, source: str, destination: str) -> tuple[str, ...]:
        """Return the names of the links from one host or router to another, given by their names."""
        return tuple(self._between(source, destination))

    def _between(self, source: str, destination: str) -> list[str]:
        one, other = self.zone_of[source], self.zone_of[destination]
        ups, downs = one.line(), other.line()
        common = one
        while one is not other and len(ups) > 1 and len(downs) > 1 and ups[-1] is downs[-1]:
            common = ups.pop()
            downs.pop()
        if one is other:
            way = common.bypasses.get((source, destination)) or common.way(source, destination, self._between)
            if way is not None:
                return list(way.links)
        elif ups[-1] is not downs[-1]:
            keys = ((a.name, b.name) for a, b in _outwards(ups, downs))
            bypass = next((common.bypasses[key] for key in keys if key in common.bypasses), None)
            way = bypass or common.way(ups[-1].name, downs[-1].name, self._between)
            if way is not None and way.leaves is not None and way.enters is not None:
                # Where a bypass begins or ends at a host that is its gateway, SimGrid adds the host's way to itself.
                before = self._between(source, way.leaves) if bypass or way.leaves != source else []
                after = self._between(way.enters, destination) if bypass or way.enters != destination else []
                return [*before, *way.links, *after]
        raise InputError(f"no route from {source} to {destination} in zone {common.name}")

    def __repr__(self) -> str:
        return f"<Zones: {len(self.hosts):,} hosts, {len(self._links):,} links>"


def _outwards(ups: Sequence[Zone], downs: Sequence[Zone]) -> Iterator[tuple[Zone, Zone]]:
    """Yield the pairs of zones between which a bypass may lead, from the innermost outwards, in SimGrid's order."""
    for most in range(max(len(ups), len(downs))):
        pairs = [pair for i in range(most) for pair in ((i, most), (most, i))] + [(most, most)]
        yield from ((ups[i], downs[j]) for i, j in pairs if i < len(ups) and j < len(downs))
