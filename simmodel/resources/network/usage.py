"""How much traffic loads each link of a topology, for all pairs of hosts at once."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from simmodel.platform.topology import Interconnect, Topology, Valiant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Numbers: TypeAlias = NDArray[np.int64]

__all__ = ["LinkUsage"]

CHUNK = 1 << 16
"""Pairs of hosts that are routed at once."""


class Measure(Protocol):
    """The links of routes by number, for many pairs of hosts at once."""

    def crossed(self, sources: Numbers, destinations: Numbers, /) -> Numbers:
        """Return the links between hosts, along a new axis; -1 where a route has fewer."""
        ...

    def link_name(self, number: int, /) -> str:
        """Return the name of a link."""
        ...


class LinkUsage:
    """The bytes over each link of a topology that messages between hosts cause.

    A link has a number from its first use on; ``capacity`` has the bytes/s of each that was used, ``apart`` tells which
    a job has for itself whoever else uses it (``fatpipe``).

    Parameters
    ----------
    topology
        has the routes. Those of tori, fat trees, trees, stars and dragonflies are computed for all pairs at once if
        there are no limiters or loopbacks, others one by one; a route drawn for each flow is that of the first one

    >>> from simmodel.platform import Torus
    >>> usage = LinkUsage(Torus(dimensions=(4,), bandwidth=10.0))
    >>> links, amounts = usage.of(np.array([0, 0]), np.array([1, 2]), np.array([5.0, 7.0]))
    >>> [usage.name(link) for link in links.tolist()], amounts.tolist()
    (['0-1:up', '1-2:up'], [12.0, 7.0])
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        regular = isinstance(topology, Interconnect) and topology.limiter is None and topology.loopback is None
        self._measure: Measure = topology if isinstance(topology, Interconnect) and regular else _OneByOne(topology)
        self.capacity: Floats = np.full(0, nan)
        self.apart: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._latency: Floats = np.zeros(0)

    def name(self, number: int) -> str:
        """Return the name of a link."""
        return self._measure.link_name(number)

    def where(self, number: int) -> str:
        """Return where a link is, in words for reports."""
        inner = self.topology.of if isinstance(self.topology, Valiant) else self.topology
        return inner.where(self.name(number)) if isinstance(inner, Interconnect) else self.name(number)

    def of(self, sources: Numbers, destinations: Numbers, amounts: Floats) -> tuple[Numbers, Floats]:
        """Return the numbers of the links that messages use, in order, and the bytes over each.

        Parameters
        ----------
        sources, destinations
            the numbers of the hosts at the ends of each message; from a host to itself it goes over the loopback
        amounts
            the bytes of each
        """
        total: Floats = np.zeros(0)
        for first in range(0, len(sources), CHUNK):
            part = slice(first, first + CHUNK)
            numbers = self._measure.crossed(sources[part], destinations[part])
            passed = numbers >= 0
            sizes = np.broadcast_to(amounts[part], numbers.shape)[passed]
            more: Floats = np.bincount(numbers[passed], sizes, minlength=len(total)).astype(np.float64, copy=False)
            more[: len(total)] += total
            total = more
        links = np.flatnonzero(total)
        self._look_up(links)
        return links, total[links]

    def longest(self, sources: Numbers, destinations: Numbers) -> float:
        """Return the longest latency (s) of the routes of messages.

        >>> from simmodel.platform import Torus
        >>> LinkUsage(Torus(dimensions=(4,), bandwidth=10.0, latency=0.5)).longest(np.array([0, 0]), np.array([1, 2]))
        1.0
        """
        found = 0.0
        for first in range(0, len(sources), CHUNK):
            part = slice(first, first + CHUNK)
            numbers = self._measure.crossed(sources[part], destinations[part])
            seconds = np.where(numbers >= 0, self._latency[numbers], 0.0)
            found = max(found, float(seconds.sum(axis=0).max(initial=0.0)))
        return found

    @property
    def lags(self) -> bool:
        """Whether a link that was used has a latency."""
        return bool(np.any(self._latency > 0))

    def _look_up(self, links: Numbers) -> None:
        """Take the capacities of links that are used for the first time."""
        more = int(links.max(initial=-1)) + 1 - len(self.capacity)
        if more > 0:
            self.capacity = np.concatenate((self.capacity, np.full(more, nan)))
            self.apart = np.concatenate((self.apart, np.zeros(more, dtype=bool)))
            self._latency = np.concatenate((self._latency, np.zeros(more)))
        for number in links[np.isnan(self.capacity[links])].tolist():
            spec = self.topology.link(self.name(number))
            self.capacity[number] = spec.bandwidth
            self.apart[number] = spec.sharing == "fatpipe"
            self._latency[number] = spec.latency


class _OneByOne:
    """Asks for each route once; links are numbered as they come, and one that a route passes twice counts once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[int, int], list[int]] = {}

    def link_name(self, number: int, /) -> str:
        return self._names[number]

    def _route(self, source: int, destination: int) -> list[int]:
        names = dict.fromkeys(self._topology.route(source, destination))
        found = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        self._names += list(self._numbers)[len(self._names) :]
        return found

    def crossed(self, sources: Numbers, destinations: Numbers, /) -> Numbers:
        routes: list[list[int]] = []
        for pair in zip(sources.tolist(), destinations.tolist(), strict=True):
            if pair not in self._known:
                self._known[pair] = self._route(*pair)
            routes.append(self._known[pair])
        found = np.full((max(map(len, routes), default=0), len(routes)), -1, dtype=np.int64)
        for i, route in enumerate(routes):
            found[: len(route), i] = route
        return found
