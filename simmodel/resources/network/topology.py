"""Topologies at work: routes by the names of hosts, and links that are made when first used."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from simmodel.foundation.errors import InputError
from simmodel.platform.links import LinkSpec
from simmodel.platform.topology import Dragonfly, FatTree, Interconnect, Star, Topology, Torus, Tree, Valiant
from simmodel.resources.network.links import Link, make_link

__all__ = ["Dragonfly", "FatTree", "MadeLinks", "Star", "Topology", "TopologyRouter", "Torus", "Tree", "Valiant"]


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
