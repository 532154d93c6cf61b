"""How much traffic loads each link of a topology, for all pairs of hosts at once."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from simmodel.platform.topology import Dragonfly, FatTree, Interconnect, Star, Topology, Torus, Valiant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Numbers: TypeAlias = NDArray[np.int64]

__all__ = ["LinkUsage"]

CHUNK = 1 << 18
"""Pairs of hosts that are routed at once."""


class Paths(Protocol):
    """The links of a topology by number, and those of the ways between many pairs of hosts."""

    @property
    def size(self) -> int:
        """The number of links."""
        ...

    def steps(self, sources: Numbers, destinations: Numbers, /) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield positions of pairs, and the link that each of them uses, until all links of all pairs are told."""
        ...

    def name(self, number: int, /) -> str:
        """Return the name of a link."""
        ...


class LinkUsage:
    """The bytes over each link of a topology that messages between hosts cause.

    A link has a number from its first use on; ``capacity`` has the bytes/s of each that was used, ``apart`` tells which
    a job has for itself whoever else uses it (``fatpipe``).

    Parameters
    ----------
    topology
        has the routes. Those of tori, fat trees, trees, stars and dragonflies without limiters are computed for all
        pairs at once, others one by one; a route that is drawn for each flow is that of the first one

    >>> usage = LinkUsage(Torus(dimensions=(4,), bandwidth=10.0))
    >>> links, amounts = usage.of(np.array([0, 0]), np.array([1, 2]), np.array([5.0, 7.0]))
    >>> [usage.name(link) for link in links.tolist()], amounts.tolist()
    (['0-1:up', '1-2:up'], [12.0, 7.0])
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._paths = _paths_of(topology)
        self.capacity: Floats = np.full(self._paths.size, nan)
        self.apart: NDArray[np.bool_] = np.zeros(self._paths.size, dtype=bool)

    def name(self, number: int) -> str:
        """Return the name of a link."""
        return self._paths.name(number)

    def where(self, number: int) -> str:
        """Return where a link is, in words for reports."""
        inner = self.topology.of if isinstance(self.topology, Valiant) else self.topology
        return inner.where(self.name(number)) if isinstance(inner, Interconnect) else self.name(number)

    def of(self, sources: Numbers, destinations: Numbers, amounts: Floats) -> tuple[Numbers, Floats]:
        """Return the numbers of the links that messages use, in order, and the bytes over each.

        Parameters
        ----------
        sources, destinations
            the numbers of the hosts at the ends of each message, which differ
        amounts
            the bytes of each
        """
        total = np.zeros(self._paths.size)
        for first in range(0, len(sources), CHUNK):
            part = slice(first, first + CHUNK)
            sizes = amounts[part]
            for which, numbers in self._paths.steps(sources[part], destinations[part]):
                more = np.bincount(numbers, sizes[which], minlength=len(total))
                if len(more) > len(total):
                    total = np.concatenate((total, np.zeros(len(more) - len(total))))
                total += more
        links = np.flatnonzero(total)
        self._look_up(links)
        return links, total[links]

    def _look_up(self, links: Numbers) -> None:
        """Take the capacities of links that are used for the first time."""
        more = self._paths.size - len(self.capacity)
        if more > 0:
            self.capacity = np.concatenate((self.capacity, np.full(more, nan)))
            self.apart = np.concatenate((self.apart, np.zeros(more, dtype=bool)))
        for number in links[np.isnan(self.capacity[links])].tolist():
            spec = self.topology.link(self.name(number))
            self.capacity[number] = spec.bandwidth
            self.apart[number] = spec.sharing == "fatpipe"


class _AnyPaths:
    """Routes one by one, each once; links are numbered as they come."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[int, int], list[int]] = {}

    @property
    def size(self) -> int:
        return len(self._names)

    def name(self, number: int, /) -> str:
        return self._names[number]

    def _route(self, source: int, destination: int) -> list[int]:
        found: list[int] = []
        for name in dict.fromkeys(self._topology.route(source, destination)):
            number = self._numbers.setdefault(name, len(self._names))
            if number == len(self._names):
                self._names.append(name)
            found.append(number)
        return found

    def steps(self, sources: Numbers, destinations: Numbers, /) -> Iterator[tuple[Numbers, Numbers]]:
        which: list[int] = []
        numbers: list[int] = []
        for i, pair in enumerate(zip(sources.tolist(), destinations.tolist(), strict=True)):
            if pair not in self._known:
                self._known[pair] = self._route(*pair)
            numbers += self._known[pair]
            which += [i] * len(self._known[pair])
        yield np.array(which, dtype=np.int64), np.array(numbers, dtype=np.int64)


class _TorusPaths:
    """Link ``(here * dimensions + dimension) * 2``: upwards from a host; the next number: its way back."""

    def __init__(self, torus: Torus) -> None:
        self._torus = torus
        self._sides = torus.sharing == "splitduplex"
        self.size = len(torus.hosts) * len(torus.dimensions) * 2

    def name(self, number: int, /) -> str:
        here, dimension = divmod(number // 2, len(self._torus.dimensions))
        size = self._torus.dimensions[dimension]
        step = int(np.prod(self._torus.dimensions[:dimension], dtype=np.int64))
        there = here + step if here // step % size < size - 1 else here + step - step * size
        return f"{here}-{there}{_side(number, self._sides)}"

    def steps(self, sources: Numbers, destinations: Numbers, /) -> Iterator[tuple[Numbers, Numbers]]:
        torus, here, step = self._torus, sources.copy(), 1
        for dimension, size in enumerate(torus.dimensions):
            at, to = here // step % size, destinations // step % size
            half = size // 2 if torus.wrap else size
            rises = ((at < to) & (to <= at + half)) | ((at > half) & ((at + half) % size >= to))
            left = np.where(rises, to - at, at - to) % size
            for done in range(int(left.max(initial=0))):
                which = np.flatnonzero(left > done)
                up = rises[which]
                low = at[which] - ~up  # of the link: the host below it
                low %= size
                base = here[which] - at[which] * step + low * step
                yield which, (base * len(torus.dimensions) + dimension) * 2 + (~up & self._sides)
                there = (at[which] + np.where(up, 1, -1)) % size
                here[which] += (there - at[which]) * step
                at[which] = there
            step *= size


class _FatTreePaths:
    """Link ``first + ((child * parents + parent) * parallel + port) * 2``: to a level; the next number: way back."""

    def __init__(self, tree: FatTree) -> None:
        self._tree = tree
        self._sides = tree.sharing == "splitduplex"
        self._below = np.concatenate(([1], np.cumprod(tree.down, dtype=np.int64)))
        self._above = np.concatenate(([1], np.cumprod(tree.up, dtype=np.int64)))
        children = self._above * self._below[-1] // self._below
        each = children[:-1] * np.array(tree.up) * np.array(tree.parallel) * 2
        self._first = np.concatenate(([0], np.cumsum(each)))
        self._backbone = isinstance(tree, Star) and tree.backbone is not None
        self.size = int(self._first[-1]) + self._backbone

    def name(self, number: int, /) -> str:
        tree = self._tree
        if number >= self._first[-1]:
            return "backbone"
        level = int(np.searchsorted(self._first, number, side="right")) - 1
        rest, port = divmod((number - int(self._first[level])) // 2, tree.parallel[level])
        child, digit = divmod(rest, tree.up[level])
        above = int(self._above[level])
        parent = child % above + above * (digit + tree.up[level] * (child // above // tree.down[level]))
        low = f"{level}.{child}" if level else str(child)
        return f"{low}-{level + 1}.{parent}{f'#{port}' if port else ''}{_side(number, self._sides)}"

    def steps(self, sources: Numbers, destinations: Numbers, /) -> Iterator[tuple[Numbers, Numbers]]:
        tree, here = self._tree, sources.copy()
        top = np.zeros(len(here), dtype=np.int64)
        which = np.arange(len(here))
        for level in range(tree.levels):
            above, up, parallel = int(self._above[level]), tree.up[level], tree.parallel[level]
            which = which[here[which] // above != destinations[which] // self._below[level]]
            child = here[which]
            port, digit = np.divmod(destinations[which] // above % (up * parallel), up)
            yield which, self._first[level] + ((child * up + digit) * parallel + port) * 2
            here[which] = child % above + above * (digit + up * (child // above // tree.down[level]))
            top[which] = level + 1
        if self._backbone:
            yield np.arange(len(here)), np.full(len(here), self.size - 1)
        first = np.full(len(here), -1)
        for level in reversed(range(tree.levels)):
            above, up, parallel, children = (
                int(self._above[level]),
                tree.up[level],
                tree.parallel[level],
                tree.down[level],
            )
            which = np.flatnonzero(top > level)
            parent, before = here[which], first[which]
            digit = destinations[which] // self._below[level] % children
            child = parent % above + above * (digit + children * (parent // above // up))
            place = -((digit - before) // children) * children + digit  # the port, as in the topology
            again = (before < 0) | (place >= children * parallel)
            place = np.where(again, sources[which] % parallel * children + digit, place)
            first[which] = place + 1
            number = ((child * up + parent // above % up) * parallel + place // children) * 2
            yield which, self._first[level] + number + self._sides
            here[which] = child


class _DragonflyPaths:
    """Links of hosts by host, green and black ones by lower router and what differs in the other, blue by groups."""

    def __init__(self, dragonfly: Dragonfly) -> None:
        self._of = of = dragonfly
        self._sides = of.sharing == "splitduplex"
        routers = of.groups * of.chassis * of.routers
        self._green = 2 * len(of.hosts)
        self._black = self._green + 2 * routers * of.routers
        self._blue = self._black + 2 * routers * of.chassis
        self.size = self._blue + 2 * of.groups * of.groups

    def _at(self, router: int) -> tuple[int, int, int]:
        rest, last = divmod(router, self._of.routers)
        return rest // self._of.chassis, rest % self._of.chassis, last

    def name(self, number: int, /) -> str:
        of = self._of
        if number < self._green:
            one, other = str(number // 2), self._at(number // 2 // of.nodes)
        elif number < self._black:
            router, last = divmod((number - self._green) // 2, of.routers)
            group, chassis, place = self._at(router)
            one, other = f"{group}.{chassis}.{place}", (group, chassis, last)
        elif number < self._blue:
            router, last = divmod((number - self._black) // 2, of.chassis)
            group, chassis, place = self._at(router)
            one, other = f"{group}.{chassis}.{place}", (group, last, place)
        else:
            low, high = divmod((number - self._blue) // 2, of.groups)
            one = f"{low}.{high // of.routers}.{high % of.routers}"
            other = (high, low // of.routers, low % of.routers)
        return f"{one}-{other[0]}.{other[1]}.{other[2]}{_side(number, self._sides)}"

    def steps(self, sources: Numbers, destinations: Numbers, /) -> Iterator[tuple[Numbers, Numbers]]:
        of = self._of
        every = np.arange(len(sources))
        yield every, sources * 2
        yield every, destinations * 2 + self._sides
        here, there = sources // of.nodes, destinations // of.nodes
        size = of.chassis * of.routers
        one, other = here // size, there // size
        within = np.flatnonzero((one == other) & (here != there))
        yield from self._in_group(within, here[within], there[within], of.continuous)
        which = np.flatnonzero(one != other)
        one, other = one[which], other[which]
        yield from self._in_group(which, here[which], one * size + other, True)
        low, high = np.minimum(one, other), np.maximum(one, other)
        yield which, self._blue + (low * of.groups + high) * 2 + ((one > other) & self._sides)
        yield from self._in_group(which, other * size + one, there[which], True)

    def _in_group(
        self, which: Numbers, here: Numbers, there: Numbers, continuous: bool
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the green and the black links from routers to others of their groups."""
        of = self._of
        place, end = here % of.routers, there % of.routers
        green = place != end
        low = np.minimum(place, end)
        number = ((here - place + low) * of.routers + np.maximum(place, end)) * 2 + ((place > end) & self._sides)
        yield which[green], self._green + number[green]
        chassis, last = here // of.routers % of.chassis, there // of.routers % of.chassis
        if not continuous:
            chassis = np.where(green, 0, chassis)
        black = chassis != last
        low = np.minimum(chassis, last)
        base = (there // of.routers - last + low) * of.routers + end
        number = (base * of.chassis + np.maximum(chassis, last)) * 2 + ((chassis > last) & self._sides)
        yield which[black], self._black + number[black]


def _side(number: int, sides: bool) -> str:
    return (":down" if number % 2 else ":up") if sides else ""


def _paths_of(topology: Topology) -> Paths:
    if isinstance(topology, Interconnect) and topology.limiter is None:
        if isinstance(topology, Torus):
            return _TorusPaths(topology)
        if isinstance(topology, FatTree):
            return _FatTreePaths(topology)
        if isinstance(topology, Dragonfly):
            return _DragonflyPaths(topology)
    return _AnyPaths(topology)
