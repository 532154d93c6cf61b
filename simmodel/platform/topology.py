"""Topologies: networks of hosts whose routes are computed from two numbers.

Hosts, switches and routers have numbers, and links are named by their ends: ``"3-4:up"`` leads from 3 to 4 and
``"3-4:down"`` back. Routes are those of SimGrid 3.32: of its zones TORUS, FAT_TREE and DRAGONFLY.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import check_count
from simmodel.foundation.units import parse_quantity
from simmodel.platform.links import LinkSpec

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.intp]

__all__ = [
    "Dragonfly",
    "FatTree",
    "Interconnect",
    "Star",
    "Topology",
    "TopologyFile",
    "Torus",
    "Tree",
    "Valiant",
    "ends_of",
    "given_topology",
    "numbers_of_hosts",
    "read_topology",
    "switches_in",
]


class Topology(Protocol):
    """The interface of a topology: its hosts, routes between them by number, and links by name.

    A link is asked for when it is first used.
    """

    @property
    def hosts(self) -> Sequence[str]:
        """The names of the end points, in order."""
        ...

    def route(self, source: int, destination: int, /) -> Sequence[str]:
        """Return the names of the links from one host to another, in order."""
        ...

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name; raises :class:`InputError` if there is none."""
        ...


def _whole(value: object, place: str) -> int:
    """Return a whole number above zero, given as such or as a text."""
    if isinstance(value, str) and len(value) < 19 and value.strip().isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"must be a whole number >= 1, got {shown(value)}", place=place)
    return value


def _wholes(value: str | Iterable[object], place: str) -> tuple[int, ...]:
    found = tuple(_whole(each, place) for each in (value.split(",") if isinstance(value, str) else value))
    if not found:
        raise InputError("must have at least one number", place=place)
    return found


def _among(crossed: Callable[[Numbers, Numbers], Numbers], hosts: Numbers) -> Numbers:
    parts = np.array_split(hosts, len(hosts) * len(hosts) // 2**18 + 1)
    links = np.unique(np.concatenate([np.unique(crossed(part[:, None], hosts)) for part in parts]))
    return links[links >= 0]


def _truth(value: bool | str, place: str) -> bool:
    if value not in (True, False, "true", "false"):
        raise InputError(f"must be true or false, got {value!r}", place=place)
    return value in (True, "true")


def _rate(value: float | str, place: str) -> float:
    rate = parse_quantity(value, "B/s", place=place)
    if rate <= 0:
        raise InputError(f"must be > 0, got {value!r}", place=place)
    return rate


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(value.split(",") if isinstance(value, str) else value)


@attrs.frozen(kw_only=True, repr=False)
class Interconnect(Fields):
    """The common part of the topologies of hosts that are alike.

    Parameters
    ----------
    bandwidth, latency
        of each link, bytes/s and seconds, or texts with units
    sharing
        ``"splitduplex"``: a link for each direction; ``"shared"`` or ``"fatpipe"``: one for both
    limiter
        bytes/s that pass through a host, a switch or a router, if that is limited
    loopback, loopback_latency
        bytes/s and seconds of a link from each host to itself, which each transfer has for itself; default: a transfer
        within a host takes no time
    names
        the names of the hosts; default: ``n0``, ``n1`` and so on
    """

    kind: ClassVar[str] = ""
    shape: ClassVar[tuple[str, ...]] = ()
    """The fields that its parameters fill, in SimGrid's order: with ``;`` between them and ``,`` within."""

    bandwidth: float
    latency: float = 0.0
    sharing: str = "splitduplex"
    limiter: float | None = None
    loopback: float | None = None
    loopback_latency: float = 0.0
    names: tuple[str, ...] = attrs.field(default=(), converter=_names)
    hosts: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    even: ClassVar[bool] = False
    """Whether all links have the same bandwidth."""
    _makers: dict[float, Callable[[str, str | None], LinkSpec]] = attrs.field(
        init=False, eq=False, repr=False, factory=dict
    )
    _kinds: dict[float, LinkSpec] = attrs.field(init=False, eq=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._set(bandwidth=_rate(self.bandwidth, "bandwidth"))
        self._set(latency=parse_quantity(self.latency, "s", place="latency"))
        self._set(loopback_latency=parse_quantity(self.loopback_latency, "s", place="loopback_latency"))
        if self.sharing not in ("splitduplex", "shared", "fatpipe"):
            message = f"must be 'splitduplex', 'shared' or 'fatpipe', got {self.sharing!r}"
            raise InputError(message, place="sharing")
        for name, rate in (("limiter", self.limiter), ("loopback", self.loopback)):
            if rate is not None:
                self._set(**{name: _rate(rate, name)})
        count = self._size()
        check_count("hosts", count)
        if self.names and len(set(self.names)) < len(self.names):
            twice = next(name for name, count in Counter(self.names).items() if count > 1)
            raise InputError(f"must be different names, got {twice!r} twice", place="names")
        if self.names and len(self.names) != count:
            raise InputError(f"must be {count:,} names, got {len(self.names):,}", place="names")
        self._set(hosts=self.names or tuple(f"n{number}" for number in range(count)))

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _size(self) -> int:
        """Check the parameters; return the number of hosts."""
        raise NotImplementedError

    def _width(self, ends: str) -> float:
        """Return the bandwidth of the link between two nodes, as a multiple of ``bandwidth``; 0: there is none."""
        raise NotImplementedError

    def _has(self, node: str) -> bool:
        """Whether there is a host, a switch or a router with this number."""
        return node.isdecimal() and int(node) < len(self.hosts)

    def _way(self, source: int, destination: int) -> list[str]:
        """Return the links between two different hosts."""
        raise NotImplementedError

    def route(self, source: int, destination: int, /) -> Sequence[str]:
        """Return the names of the links from one host to another, by their numbers."""
        if source == destination:
            return () if self.loopback is None else (f"{source}:loopback",)
        return self._way(source, destination)

    def hops(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the number of links between hosts: of each pair of two arrays of numbers, which are broadcast.

        Limiters and loopbacks do not count.

        >>> Torus(dimensions=(8,), bandwidth="1GBps").hops([[0], [6]], [1, 4, 7])
        array([[1, 4, 1],
               [3, 2, 1]])
        """
        return self._hops(np.asarray(sources, dtype=np.intp), np.asarray(destinations, dtype=np.intp))

    def _hops(self, sources: Numbers, destinations: Numbers) -> Numbers:
        raise NotImplementedError

    def crossed(self, sources: ArrayLike, destinations: ArrayLike, /) -> Numbers:
        """Return the links between hosts by number: of each pair of two arrays those of its route, along a new axis.

        Of shape (links at most, pairs), -1 where a route has fewer. Limiters and loopbacks do not count.
        :meth:`link_name` names them.

        >>> ring = Torus(dimensions=(8,), bandwidth="1GBps")
        >>> [[ring.link_name(link) for link in route if link >= 0] for route in ring.crossed([0, 6], [1, 0]).T.tolist()]
        [['0-1:up'], ['6-7:up', '7-0:up']]
        """
        a, b = np.broadcast_arrays(np.asarray(sources, dtype=np.intp), np.asarray(destinations, dtype=np.intp))
        steps = np.array([*self._trace(a, b)], dtype=np.intp).reshape(-1, *a.shape)
        steps[:, a == b] = -1
        return steps

    def among(self, hosts: ArrayLike, /) -> Numbers:
        """Return the links between any two of some hosts, ascending, by number as :meth:`crossed` has them."""
        return _among(self.crossed, np.asarray(hosts, dtype=np.intp))

    def _trace(self, sources: Numbers, destinations: Numbers) -> list[Numbers]:
        """Return the numbers of the first links of routes, of the second ones and so on."""
        raise NotImplementedError

    def _point(self, number: int) -> str:
        """Return the name of a host, a switch or a router from its number among all of these."""
        return str(number)

    @property
    def _upwards(self) -> int:
        """The most links that have one point as the first of their two ends."""
        raise NotImplementedError

    def _upper(self, low: int, which: int) -> tuple[int, int]:
        """Return the second end of such a link of a point, and its port."""
        raise NotImplementedError

    def _ids(self, low: Numbers, which: Numbers | int, down: NDArray[np.bool_] | bool = False) -> Numbers:
        """Return the numbers of links by their first end, and by which of its links they are."""
        found: Numbers = (low * self._upwards + which) * 2
        return found + down if self.sharing == "splitduplex" else found

    def link_name(self, number: int) -> str:
        """Return the name of a link from its number as :meth:`crossed` has it."""
        ends, down = divmod(number, 2)
        low, which = divmod(ends, self._upwards)
        high, port = self._upper(low, which)
        side = "" if self.sharing != "splitduplex" else ":down" if down else ":up"
        return f"{self._point(low)}-{self._point(high)}{f'#{port}' if port else ''}{side}"

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name; raises :class:`InputError` if there is none."""
        ends, _, side = name.partition(":")
        split = self.sharing == "splitduplex"
        if side == ("up" if split else ""):
            width, reverse = self._width(ends), f"{ends}:down"
        elif split and side == "down":
            width, reverse = self._width(ends), f"{ends}:up"
        elif side == "limiter" and self.limiter is not None and self._has(ends):
            return LinkSpec(name=name, bandwidth=self.limiter)
        elif side == "loopback" and self.loopback is not None and self._has(ends) and ends.isdecimal():
            return LinkSpec(name=name, bandwidth=self.loopback, latency=self.loopback_latency, sharing="fatpipe")
        else:
            width = 0.0
        if not width:
            raise InputError(f"unknown link {name!r} of {self.text().split()[0]}")
        make = self._makers.get(width)
        if make is None:
            make = self._makers[width] = self._kind(width).copies()
        return make(name, reverse if split else None)

    def _kind(self, width: float) -> LinkSpec:
        """Return a link of a bandwidth, as a multiple of ``bandwidth``."""
        found = self._kinds.get(width)
        if found is None:
            sharing = "fatpipe" if self.sharing == "fatpipe" else "shared"
            rate = self.bandwidth * width
            found = LinkSpec(name=f"link of {self.kind}", bandwidth=rate, latency=self.latency, sharing=sharing)
            self._kinds[width] = found
        return found

    def like(self, name: str, /) -> LinkSpec:
        """Return a link with the values of one of its routes: another name and no reverse, without a check of the name.

        >>> Torus(dimensions=(8,), bandwidth="1GBps").like("6-7:up").bandwidth
        1000000000.0
        """
        ends, _, side = name.partition(":")
        if side in ("limiter", "loopback"):
            return self.link(name)
        return self._kind(1.0 if self.even else self._width(ends))

    def where(self, link: str) -> str:
        """Return where a link is, in words for reports: its two ends; in a dragonfly the groups that it joins.

        >>> Torus(dimensions=(8,), bandwidth=1.0).where("6-7:up")
        '6 - 7'
        """
        return link.partition(":")[0].replace("-", " - ")

    def switches(self) -> Mapping[str, Sequence[int]]:
        """Return the hosts below each switch or router that have no way around it.

        >>> FatTree(levels=2, down=(2, 2), up=(1, 2), parallel=(1, 1), bandwidth="1GBps").switches()
        {'1.0': range(0, 2), '1.1': range(2, 4), '2.0': range(0, 0), '2.1': range(0, 0)}
        >>> Torus(dimensions=(8,), bandwidth="1GBps").switches()
        {}
        """
        return {}

    def _limited(self, names: list[str], node: str | int) -> None:
        if self.limiter is not None:
            names.append(f"{node}:limiter")

    def text(self) -> str:
        """Return the text that :class:`~simmodel.platform.NetworkSpec` reads as this topology.

        >>> Star(nodes=4, bandwidth="1GBps", latency="1us").text()
        'star:4 bandwidth=1000000000.0 latency=1e-06'
        """
        values = {name: _shown(value) for name, value in attrs.asdict(self, recurse=False).items()}
        shape = ";".join(",".join(values.pop(name) for name in part.split(",")) for part in self.shape)
        given = [each.name for each in attrs.fields(type(self)) if each.init and each.name in values]
        fields = attrs.fields_dict(type(self))
        options = [f"{name}={values[name]}" for name in given if values[name] != _shown(fields[name].default)]
        return " ".join([f"{self.kind}:{shape}", *options])


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@attrs.frozen(kw_only=True, repr=False)
class Torus(Interconnect):
    """A torus or a mesh: routes go by dimension, the first one first, in each the shorter way round.

    Parameters
    ----------
    dimensions
        the number of hosts in each dimension; host 1 is beside host 0 in the first one
    wrap
        whether the ends of each dimension are joined; ``False``: a mesh

    The others are those of :class:`Interconnect`.

    >>> Torus(dimensions=(4, 4), bandwidth="1GBps").route(0, 7)
    ['3-0:down', '3-7:up']
    """

    kind = "torus"
    shape = ("dimensions",)
    even = True

    dimensions: tuple[int, ...]
    wrap: bool = True
    _steps: dict[int, tuple[int, int, bool]] = attrs.field(init=False, eq=False, repr=False)

    def _size(self) -> int:
        self._set(dimensions=_wholes(self.dimensions, "dimensions"), wrap=_truth(self.wrap, "wrap"))
        # By the difference of the ends: the distance of neighbours, the hosts of the dimension, and whether it wraps.
        steps: dict[int, tuple[int, int, bool]] = {}
        step = 1
        for size in self.dimensions:
            if size > 1:
                steps[step] = (step, size, False)
                if self.wrap:
                    steps[step - step * size] = (step, size, True)
            step *= size
        self._set(_steps=steps)
        return step

    def _width(self, ends: str) -> float:
        one, _, other = ends.partition("-")
        if not one.isdecimal() or not other.isdecimal():
            return 0.0
        here, there = int(one), int(other)
        step, size, wraps = self._steps.get(there - here, (1, 1, False))
        last = here // step % size == size - 1
        return 1.0 if size > 1 and last == wraps and here < len(self.hosts) else 0.0

    def _way(self, source: int, destination: int) -> list[str]:
        up, down = (":up", ":down") if self.sharing == "splitduplex" else ("", "")
        names: list[str] = []
        here, step = source, 1
        for size in self.dimensions:
            at, to = here // step % size, destination // step % size
            if at != to:
                half = size // 2 if self.wrap else size
                # At equal distances as SimGrid: upwards, but not from the middle.
                rises = at < to <= at + half or (at > half and (at + half) % size >= to)
                for _ in range((to - at if rises else at - to) % size):
                    self._limited(names, here)
                    if rises:
                        there = here + step if at < size - 1 else here + step - step * size
                        at = (at + 1) % size
                        names.append(f"{here}-{there}{up}")
                    else:
                        there = here - step if at else here - step + step * size
                        at = (at - 1) % size
                        names.append(f"{there}-{here}{down}")
                    here = there
            step *= size
        self._limited(names, destination)
        return names

    def _hops(self, sources: Numbers, destinations: Numbers) -> Numbers:
        total, step = np.zeros(np.broadcast(sources, destinations).shape, dtype=np.intp), 1
        for size in self.dimensions:
            apart = np.abs(sources // step % size - destinations // step % size)
            total += np.minimum(apart, size - apart) if self.wrap else apart
            step *= size
        return total

    def _trace(self, sources: Numbers, destinations: Numbers) -> list[Numbers]:
        steps: list[Numbers] = []
        here, step = sources, 1
        for dimension, size in enumerate(self.dimensions):
            at, to = here // step % size, destinations // step % size
            half = size // 2 if self.wrap else size
            rises = ((at < to) & (to <= at + half)) | ((at > half) & ((at + half) % size >= to))
            count = np.where(rises, to - at, at - to) % size
            base = here - at * step
            for i in range(int(count.max(initial=0))):
                low = np.where(rises, at + i, at - i - 1) % size
                link = self._ids(base + low * step, dimension, ~rises)
                steps.append(np.where(i < count, link, -1))
            here, step = base + to * step, step * size
        return steps

    @property
    def _upwards(self) -> int:
        return len(self.dimensions)

    def _upper(self, low: int, which: int) -> tuple[int, int]:
        size, step = self.dimensions[which], prod(self.dimensions[:which])
        return low + (step if low // step % size < size - 1 else step - step * size), 0

    def among(self, hosts: ArrayLike, /) -> Numbers:
        """Return the links between any two of some hosts, by dimension: of a route's part in one, only its ends matter.

        The part leads from a host with the later coordinates of the source to one with the earlier coordinates of the
        destination.
        """
        every, step, found = np.asarray(hosts, dtype=np.intp), 1, [np.array([-1])]
        for size in self.dimensions:
            a, b = np.unique(every // step)[:, None], np.unique(every % (step * size))
            found.append(np.unique(self.crossed(a * step + b % step, a // size * size * step + b)))
            step *= size
        links = np.unique(np.concatenate(found))
        return links[links >= 0]

    def via(self, source: int, middle: int, destination: int) -> list[str]:
        """Return the links of a route that passes a host in the middle."""
        first = self._way(source, middle) if source != middle else []
        rest = self._way(middle, destination) if middle != destination else []
        return first + (rest[1:] if self.limiter is not None and first else rest)


@attrs.frozen(kw_only=True, repr=False)
class FatTree(Interconnect):
    """A fat tree: routes go up to the first switch above both hosts, and down.

    On the way up the number of the destination chooses the parent (d-mod-k). Switch 3 of level 1 is ``"1.3"``; links
    beside a first one between the same switches end in ``#1``, ``#2`` and so on.

    Parameters
    ----------
    levels
        the number of levels of switches
    down, up, parallel
        of each level, the lowest first: the children of a switch, the parents of each child, and the parallel links
        between the two

    The others are those of :class:`Interconnect`. Source: E. Zahavi, "D-Mod-K routing providing non-blocking traffic
    for shift permutations on real life fat trees", CCIT report 776, Technion, 2010.

    >>> FatTree(levels=2, down=(4, 4), up=(1, 2), parallel=(1, 1), bandwidth="1GBps").route(0, 7)
    ['0-1.0:up', '1.0-2.1:up', '1.1-2.1:down', '7-1.1:down']
    """

    kind = "fat-tree"
    shape: ClassVar[tuple[str, ...]] = ("levels", "down", "up", "parallel")
    even: ClassVar[bool] = True

    levels: int
    down: tuple[int, ...]
    up: tuple[int, ...]
    parallel: tuple[int, ...]
    _below: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    _above: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)

    def _size(self) -> int:
        self._set(levels=_whole(self.levels, "levels"), down=_wholes(self.down, "down"))
        self._set(up=_wholes(self.up, "up"), parallel=_wholes(self.parallel, "parallel"))
        for name, each in (("down", self.down), ("up", self.up), ("parallel", self.parallel)):
            if len(each) != self.levels:
                raise InputError(f"must have a number for each of {self.levels} levels, got {each}", place=name)
        self._set(_below=tuple(prod(self.down[:level]) for level in range(self.levels + 1)))
        self._set(_above=tuple(prod(self.up[:level]) for level in range(self.levels + 1)))
        return self._below[-1]

    def _node(self, text: str) -> tuple[int, int]:
        """Return the level and the number of a host or a switch; level -1 if there is none."""
        level, _, number = text.rpartition(".")
        if not number.isdecimal() or not (level or "0").isdecimal() or level == "0":
            return -1, 0
        found = int(level or 0), int(number)
        if found[0] > self.levels or found[1] >= self._above[found[0]] * self._below[-1] // self._below[found[0]]:
            return -1, 0
        return found

    def _has(self, node: str) -> bool:
        return self._node(node)[0] >= 0

    def _width(self, ends: str) -> float:
        pair, _, port = ends.partition("#")
        one, _, other = pair.partition("-")
        (low, child), (high, parent) = self._node(one), self._node(other)
        if low < 0 or high != low + 1 or (port and not (port.isdecimal() and 0 < int(port) < self.parallel[low])):
            return 0.0
        above = self._above[low]
        alike = child % above == parent % above
        return float(alike and child // above // self.down[low] == parent // above // self.up[low])

    def _way(self, source: int, destination: int) -> list[str]:
        rise, fall = (":up", ":down") if self.sharing == "splitduplex" else ("", "")
        names: list[str] = []
        level, here, end = 0, source, str(source)
        while here // self._above[level] != destination // self._below[level]:
            self._limited(names, end)
            above = self._above[level]
            port, digit = divmod(destination // above % (self.up[level] * self.parallel[level]), self.up[level])
            here = here % above + above * (digit + self.up[level] * (here // above // self.down[level]))
            level += 1
            names.append(f"{end}-{level}.{here}{f'#{port}' if port else ''}{rise}")
            end = f"{level}.{here}"
        first = -1
        while level:
            level -= 1
            above, children = self._above[level], self.down[level]
            digit = destination // self._below[level] % children
            here = here % above + above * (digit + children * (here // above // self.up[level]))
            # As SimGrid: the number of the source chooses the link, but after a link the search goes on from its port.
            place = -((digit - first) // children) * children + digit
            if first < 0 or place >= children * self.parallel[level]:
                place = source % self.parallel[level] * children + digit
            first = place + 1
            port = place // children
            lower = f"{level}.{here}" if level else str(here)
            names.append(f"{lower}-{end}{f'#{port}' if port else ''}{fall}")
            self._limited(names, end)
            end = lower
        self._limited(names, destination)
        return names

    def _hops(self, sources: Numbers, destinations: Numbers) -> Numbers:
        below = [sources // each != destinations // each for each in self._below[:-1]]
        total: Numbers = np.asarray(np.sum(below, axis=0, dtype=np.intp))
        return 2 * total

    def switches(self) -> Mapping[str, Sequence[int]]:
        """Return the hosts below each switch that have no way around it."""
        found: dict[str, Sequence[int]] = {}
        for level in range(1, self.levels + 1):
            above, below = self._above[level], self._below[level]
            for number in range(above * self._below[-1] // below):
                found[f"{level}.{number}"] = range(number * below, number * below + below) if above == 1 else range(0)
        return found

    def _first(self, level: int) -> int:
        return sum(self._above[each] * self._below[-1] // self._below[each] for each in range(level))

    def _trace(self, sources: Numbers, destinations: Numbers) -> list[Numbers]:
        steps: list[Numbers] = []
        here, top = sources, np.zeros_like(sources)
        for level, above in enumerate(self._above[:-1]):
            rises = (top == level) & (here // above != destinations // self._below[level])
            port, digit = np.divmod(destinations // above % (self.up[level] * self.parallel[level]), self.up[level])
            parent = here % above + above * (digit + self.up[level] * (here // above // self.down[level]))
            link = self._ids(self._first(level) + here, digit * self.parallel[level] + port)
            steps.append(np.where(rises, link, -1))
            here, top = np.where(rises, parent, here), top + rises
        first = np.full_like(sources, -1)
        for level in reversed(range(self.levels)):
            falls = level < top
            above, children = self._above[level], self.down[level]
            digit = destinations // self._below[level] % children
            child = here % above + above * (digit + children * (here // above // self.up[level]))
            place = -((digit - first) // children) * children + digit
            anew = (first < 0) | (place >= children * self.parallel[level])
            place = np.where(anew, sources % self.parallel[level] * children + digit, place)
            which = here // above % self.up[level] * self.parallel[level] + place // children
            link = self._ids(self._first(level) + child, which, True)
            steps.append(np.where(falls, link, -1))
            here, first = np.where(falls, child, here), np.where(falls, place + 1, first)
        return steps

    @property
    def _upwards(self) -> int:
        return max(up * links for up, links in zip(self.up, self.parallel, strict=True))

    def _upper(self, low: int, which: int) -> tuple[int, int]:
        level, child = self._level(low)
        digit, port = divmod(which, self.parallel[level])
        above = self._above[level]
        parent = child % above + above * (digit + self.up[level] * (child // above // self.down[level]))
        return self._first(level + 1) + parent, port

    def _level(self, point: int) -> tuple[int, int]:
        level = max(each for each in range(self.levels + 1) if self._first(each) <= point)
        return level, point - self._first(level)

    def _point(self, number: int) -> str:
        level, there = self._level(number)
        return f"{level}.{there}" if level else str(number)


@attrs.frozen(kw_only=True, repr=False)
class Dragonfly(Interconnect):
    """A dragonfly: groups of chassis of routers, with a few hosts at each router.

    All routers of a chassis are joined by green links, those of the same number in a group by black ones, and each two
    groups by a blue one. Router 2 of chassis 0 in group 1 is ``"1.0.2"``; the blue link to group g is at router g of a
    group. Routes are minimal: green, black, blue, green, black.

    Parameters
    ----------
    groups, blue
        the number of groups, and how many links each blue link stands for: its bandwidth is so much larger
    chassis, black
        the chassis of a group; links that a black one stands for
    routers, green
        the routers of a chassis; links that a green one stands for
    nodes
        the hosts of a router
    continuous
        whether a route within a group goes on where its green link ends. In SimGrid 3.32 it does not: it goes on from
        the first chassis, so that it has a black link too many or lacks one; the default has the same links

    The others are those of :class:`Interconnect`. Source: J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven,
    highly-scalable dragonfly topology", ISCA 2008.

    >>> Dragonfly(groups=3, chassis=2, routers=4, nodes=2, bandwidth="1GBps").route(0, 21)
    ['0-0.0.0:up', '0.0.0-0.0.1:up', '0.0.1-1.0.0:up', '1.0.0-1.0.2:up', '21-1.0.2:down']
    """

    kind = "dragonfly"
    shape = ("groups,blue", "chassis,black", "routers,green", "nodes")

    groups: int
    blue: int = 1
    chassis: int
    black: int = 1
    routers: int
    green: int = 1
    nodes: int
    continuous: bool = False

    def _size(self) -> int:
        self._set(groups=_whole(self.groups, "groups"), blue=_whole(self.blue, "blue"))
        self._set(chassis=_whole(self.chassis, "chassis"), black=_whole(self.black, "black"))
        self._set(routers=_whole(self.routers, "routers"), green=_whole(self.green, "green"))
        self._set(nodes=_whole(self.nodes, "nodes"), continuous=_truth(self.continuous, "continuous"))
        if self.groups > self.chassis * self.routers:
            message = f"must be <= the {self.chassis * self.routers} routers of a group, each of which leads to one"
            raise InputError(f"{message}, got {self.groups}", place="groups")
        return self.groups * self.chassis * self.routers * self.nodes

    def _has(self, node: str) -> bool:
        return self._router(node) is not None or super()._has(node)

    def _router(self, text: str) -> tuple[int, int, int] | None:
        """Return the group, the chassis and the number of a router, if there is one."""
        parts = text.split(".")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            return None
        group, chassis, router = map(int, parts)
        fits = group < self.groups and chassis < self.chassis and router < self.routers
        return (group, chassis, router) if fits else None

    def switches(self) -> Mapping[str, Sequence[int]]:
        """Return the hosts of each router."""
        firsts = range(0, len(self.hosts), self.nodes)
        return {_dotted(self._at(first)): range(first, first + self.nodes) for first in firsts}

    def _at(self, host: int) -> tuple[int, int, int]:
        rest, router = divmod(host // self.nodes, self.routers)
        return rest // self.chassis, rest % self.chassis, router

    def _gateway(self, group: int, other: int) -> tuple[int, int, int]:
        """Return the router of a group whose blue link leads to another group."""
        return group, other // self.routers, other % self.routers

    def _width(self, ends: str) -> float:
        one, _, other = ends.partition("-")
        a, b = self._router(one), self._router(other)
        if b is None:
            return 0.0
        if a is None:
            return float(super()._has(one) and self._at(int(one)) == b)
        if a >= b:
            return 0.0
        if a[0] != b[0]:
            return float(self.blue if (a, b) == (self._gateway(a[0], b[0]), self._gateway(b[0], a[0])) else 0)
        if a[1] != b[1]:
            return float(self.black if a[2] == b[2] else 0)
        return float(self.green)

    def where(self, link: str) -> str:
        """Return where a link is, in words for reports: its two ends, or the two groups that it joins.

        >>> dragonfly = Dragonfly(groups=3, chassis=2, routers=4, nodes=2, bandwidth=1.0)
        >>> dragonfly.where("0.0.1-1.0.0:up"), dragonfly.where("1.0.0-1.0.2:up")
        ('group 0 - group 1', '1.0.0 - 1.0.2')
        """
        one, _, other = link.partition(":")[0].partition("-")
        ends = one.split(".")[0], other.split(".")[0]
        apart = "." in one and "." in other and ends[0] != ends[1]
        return f"group {ends[0]} - group {ends[1]}" if apart else super().where(link)

    def _hop(self, names: list[str], here: tuple[int, int, int], there: tuple[int, int, int]) -> None:
        """Add the link from one router to another."""
        one, other = _dotted(here), _dotted(there)
        self._limited(names, one)
        side = (":up" if here < there else ":down") if self.sharing == "splitduplex" else ""
        names.append(f"{one}-{other}{side}" if here < there else f"{other}-{one}{side}")

    def _between(
        self, names: list[str], here: tuple[int, int, int], to: tuple[int, int, int], continuous: bool
    ) -> None:
        """Add the links from one router to another: green, black, blue, green, black."""
        if here[0] != to[0]:
            gateway = self._gateway(here[0], to[0])
            self._between(names, here, gateway, True)
            here = self._gateway(to[0], here[0])
            self._hop(names, gateway, here)
            continuous = True
        if here[2] != to[2]:
            after = here[0], here[1], to[2]
            self._hop(names, here, after)
            here = after if continuous else (here[0], 0, to[2])
        if here[1] != to[1]:
            self._hop(names, here, to)

    def _way(self, source: int, destination: int) -> list[str]:
        return self._through(source, destination, [self._at(destination)], self.continuous)

    def _places(self, hosts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        routers = hosts // self.nodes
        chassis = routers // self.routers
        return chassis // self.chassis, chassis % self.chassis, routers % self.routers

    def groups_of(self, hosts: ArrayLike) -> Numbers:
        """Return the numbers of the groups of hosts."""
        return self._places(np.asarray(hosts, dtype=np.intp))[0]

    def _hops(self, sources: Numbers, destinations: Numbers) -> Numbers:
        (group, chassis, router), (other, to, last) = self._places(sources), self._places(destinations)
        turns = router != last
        within = turns.astype(np.intp) + np.where(turns & (not self.continuous), to != 0, to != chassis)
        out = (router != other % self.routers).astype(np.intp) + (chassis != other // self.routers)
        back = (last != group % self.routers).astype(np.intp) + (to != group // self.routers)
        found = 2 + np.where(group == other, within, 1 + out + back)
        return np.where(sources == destinations, 0, found)

    def _trace(self, sources: Numbers, destinations: Numbers) -> list[Numbers]:
        (group, chassis, router), (other, to, last) = self._places(sources), self._places(destinations)
        same = group == other
        gate = np.where(same, to, other // self.routers), np.where(same, last, other % self.routers)
        steps = [self._ids(sources, 0)]
        steps += self._turns(group, (chassis, router), gate, ~same | self.continuous)
        back = group // self.routers, group % self.routers
        here, there = self._at_router(group, *gate), self._at_router(other, *back)
        blue = self._hop_ids(here, there, self.routers + self.chassis + np.maximum(group, other))
        steps.append(np.where(same, -1, blue))
        steps += (np.where(same, -1, each) for each in self._turns(other, back, (to, last), ~same))
        return [*steps, self._ids(destinations, 0, True)]

    @property
    def _upwards(self) -> int:
        return self.routers + self.chassis + self.groups

    def _upper(self, low: int, which: int) -> tuple[int, int]:
        first = len(self.hosts)
        if low < first:
            return first + low // self.nodes, 0
        rest, router = divmod(low - first, self.routers)
        group, chassis = divmod(rest, self.chassis)
        if which < self.routers:
            router = which
        elif which < self.routers + self.chassis:
            chassis = which - self.routers
        else:
            back, group = group, which - self.routers - self.chassis
            chassis, router = divmod(back, self.routers)
        return first + (group * self.chassis + chassis) * self.routers + router, 0

    def among(self, hosts: ArrayLike, /) -> Numbers:
        """Return the links between any two of some hosts: their own, and those between their routers."""
        every = np.unique(np.asarray(hosts, dtype=np.intp))
        first = np.unique(every // self.nodes) * self.nodes
        own = self.crossed(every, np.roll(every, 1))[[0, -1]]
        inner = _among(lambda a, b: self.crossed(a, b)[1:-1], first)
        links = np.union1d(own, inner)
        return links[links >= 0]

    def _at_router(self, group: Numbers, chassis: Numbers, router: Numbers) -> Numbers:
        """Return the numbers of routers among the points."""
        return len(self.hosts) + (group * self.chassis + chassis) * self.routers + router

    def _hop_ids(self, here: Numbers, there: Numbers, which: Numbers) -> Numbers:
        return self._ids(np.minimum(here, there), which, here > there)

    def _turns(
        self, group: Numbers, here: tuple[Numbers, Numbers], there: tuple[Numbers, Numbers], continuous: Numbers
    ) -> list[Numbers]:
        """Return the green and the black links within groups."""
        (chassis, router), (to, last) = here, there
        turns = router != last
        after = np.where(turns & ~continuous, 0, chassis)
        turn, end = self._at_router(group, chassis, last), self._at_router(group, to, last)
        green = self._hop_ids(self._at_router(group, chassis, router), turn, np.maximum(router, last))
        black = self._hop_ids(self._at_router(group, after, last), end, self.routers + np.maximum(after, to))
        return [np.where(turns, green, -1), np.where(after != to, black, -1)]

    def _point(self, number: int) -> str:
        router = number - len(self.hosts)
        return str(number) if router < 0 else _dotted(self._at(router * self.nodes))

    def via(self, source: int, middle: int, destination: int) -> list[str]:
        """Return the links of a route that passes the router of a host in the middle."""
        return self._through(source, destination, [self._at(middle), self._at(destination)], True)

    def _through(
        self, source: int, destination: int, routers: Sequence[tuple[int, int, int]], continuous: bool
    ) -> list[str]:
        up, down = (":up", ":down") if self.sharing == "splitduplex" else ("", "")
        here = self._at(source)
        names: list[str] = []
        self._limited(names, source)
        names.append(f"{source}-{_dotted(here)}{up}")
        for router in routers:
            self._between(names, here, router, continuous)
            here = router
        self._limited(names, _dotted(here))
        names.append(f"{destination}-{_dotted(here)}{down}")
        self._limited(names, destination)
        return names


def _dotted(router: tuple[int, int, int]) -> str:
    return f"{router[0]}.{router[1]}.{router[2]}"


@attrs.frozen(kw_only=True, repr=False)
class Tree(FatTree):
    """A tree of switches, with one way between two hosts; its links are named as those of a fat tree.

    Parameters
    ----------
    down
        the children of a switch of each level, the lowest first
    width
        the bandwidth of the links to each level as a multiple of ``bandwidth``; default: 1 for each

    The others are those of :class:`Interconnect`.

    >>> Tree(down=(4, 2), width=(1, 4), bandwidth="1GBps").route(0, 7)
    ['0-1.0:up', '1.0-2.0:up', '1.1-2.0:down', '7-1.1:down']
    """

    kind = "tree"
    shape: ClassVar[tuple[str, ...]] = ("down",)
    even = False

    levels: int = attrs.field(init=False, repr=False)
    up: tuple[int, ...] = attrs.field(init=False, repr=False)
    parallel: tuple[int, ...] = attrs.field(init=False, repr=False)
    width: tuple[int, ...] = ()

    def _size(self) -> int:
        down = _wholes(self.down, "down")
        ones = (1,) * len(down)
        self._set(levels=len(down), up=ones, parallel=ones, width=_wholes(self.width or ones, "width"))
        if len(self.width) != len(down):
            raise InputError(f"must have a number for each of {len(down)} levels, got {self.width}", place="width")
        return FatTree._size(self)

    def _width(self, ends: str) -> float:
        found = FatTree._width(self, ends)
        return found and found * self.width[self._node(ends.partition("-")[0])[0]]


@attrs.frozen(kw_only=True, repr=False)
class Star(Tree):
    """A star: each host has a link to one switch, which may have a backbone that all routes pass.

    Parameters
    ----------
    nodes
        the number of hosts
    backbone, backbone_latency
        bytes/s and seconds of the backbone; default: there is none

    The others are those of :class:`Interconnect`.

    >>> Star(nodes=4, bandwidth="1GBps", backbone="2GBps").route(0, 3)
    ['0-1.0:up', 'backbone', '3-1.0:down']
    """

    kind = "star"
    shape: ClassVar[tuple[str, ...]] = ("nodes",)

    down: tuple[int, ...] = attrs.field(init=False, repr=False)
    width: tuple[int, ...] = attrs.field(init=False, default=(), repr=False)
    nodes: int
    backbone: float | None = None
    backbone_latency: float = 0.0

    def _size(self) -> int:
        self._set(down=(_whole(self.nodes, "nodes"),), nodes=_whole(self.nodes, "nodes"))
        self._set(backbone_latency=parse_quantity(self.backbone_latency, "s", place="backbone_latency"))
        if self.backbone is not None:
            self._set(backbone=_rate(self.backbone, "backbone"))
        return Tree._size(self)

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name; raises :class:`InputError` if there is none."""
        if name == "backbone" and self.backbone is not None:
            return LinkSpec(name=name, bandwidth=self.backbone, latency=self.backbone_latency)
        return Tree.link(self, name)

    def _hops(self, sources: Numbers, destinations: Numbers) -> Numbers:
        passes: Numbers = ((sources != destinations) & (self.backbone is not None)).astype(np.intp)
        return Tree._hops(self, sources, destinations) + passes

    def _trace(self, sources: Numbers, destinations: Numbers) -> list[Numbers]:
        steps = Tree._trace(self, sources, destinations)
        backbone = np.full_like(sources, 2 * self.nodes)
        return steps if self.backbone is None else [steps[0], backbone, *steps[1:]]

    def link_name(self, number: int) -> str:
        """Return the name of a link from its number as :meth:`crossed` has it."""
        return Tree.link_name(self, number) if number < 2 * self.nodes else "backbone"

    def _way(self, source: int, destination: int) -> list[str]:
        names = Tree._way(self, source, destination)
        if self.backbone is not None:
            names.insert(len(names) // 2, "backbone")
        return names


@attrs.frozen(kw_only=True, repr=False)
class Valiant(Fields):
    """Routes by way of a host that is drawn for each flow from all hosts, to spread any traffic over the links.

    On a dragonfly a route passes the router of that host. The draw depends on the seed, the two hosts and the number
    of flows between them before, and on nothing else.

    Parameters
    ----------
    of
        the topology
    seed
        the seed of the draws

    Source: L. G. Valiant, "A scheme for fast parallel communication", SIAM Journal on Computing 11(2), 1982.

    >>> rings = Valiant(of=Torus(dimensions=(8,), bandwidth=1.0), seed=1)
    >>> rings.middle(0, 1, 0), rings.drawn(0, 1, 0)
    (3, ['0-1:up', '1-2:up', '2-3:up', '2-3:down', '1-2:down'])
    """

    of: Torus | Dragonfly
    seed: int = 0

    @property
    def hosts(self) -> Sequence[str]:
        """The names of the hosts, in order."""
        return self.of.hosts

    def middle(self, source: int, destination: int, flow: int) -> int:
        """Return the host by way of which a flow goes, by its number among those between its ends."""
        return Random(f"{self.seed} {source} {destination} {flow}").randrange(len(self.of.hosts))

    def drawn(self, source: int, destination: int, flow: int) -> Sequence[str]:
        """Return the names of the links of a flow, by its number among those between its ends."""
        if source == destination:
            return self.of.route(source, destination)
        return self.of.via(source, self.middle(source, destination, flow), destination)

    def route(self, source: int, destination: int, /) -> Sequence[str]:
        """Return the names of the links of the first flow from one host to another."""
        return self.drawn(source, destination, 0)

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name; raises :class:`InputError` if there is none."""
        return self.of.link(name)

    def text(self) -> str:
        """Return the text that :class:`~simmodel.platform.NetworkSpec` reads as this topology."""
        return f"valiant:{self.seed} {self.of.text()}"


@attrs.frozen(repr=False)
class TopologyFile(Fields):
    """The hosts and routes of a platform file of SimGrid, which is read when it is first asked.

    Parameters
    ----------
    path
        that of the file

    Raises
    ------
    InputError
        the file cannot be read, or is invalid; with its line
    """

    path: str

    @property
    def read(self) -> Topology:
        file = Path(self.path)
        found: Topology = _read_file(self.path, file.stat().st_mtime_ns if file.is_file() else 0)
        return found

    @property
    def hosts(self) -> Sequence[str]:
        """The names of the hosts, in order."""
        return self.read.hosts

    def route(self, source: int, destination: int, /) -> Sequence[str]:
        """Return the names of the links from one host to another, by their numbers."""
        return self.read.route(source, destination)

    def link(self, name: str, /) -> LinkSpec:
        """Return the link with a name; raises :class:`InputError` if there is none."""
        return self.read.link(name)

    def text(self) -> str:
        return self.path


@lru_cache(maxsize=8)
def _read_file(path: str, _changed: int) -> Any:
    return FILES["simgrid"](path).topology


FILES = Entries[Callable[[str], Any]]({"simgrid": "simmodel.formats.simgrid:read_simgrid"})
"""The readers of files with topologies, loaded when the first such file is read."""


_READY: Mapping[str, type[Interconnect]] = {each.kind: each for each in (Torus, FatTree, Dragonfly, Star, Tree)}


def read_topology(text: str) -> Interconnect | Valiant | TopologyFile:
    """Return the topology of a text: its name and SimGrid's parameters, then options; or the path of SimGrid's XML.

    Raises
    ------
    InputError
        the name, a parameter or an option is invalid

    >>> read_topology("fat-tree:2;4,4;1,2;1,1 bandwidth=1GBps latency=50us").hosts[-1]
    'n15'
    >>> read_topology("valiant:7 torus:4,4 bandwidth=1GBps").seed
    7
    """
    if text.endswith((".xml", ".xml.gz")):
        return TopologyFile(text)
    first, *words = text.split() or [""]
    kind, _, parameters = first.partition(":")
    if kind == "valiant":
        inner = read_topology(" ".join(words))
        if not isinstance(inner, Torus | Dragonfly) or not parameters.isdecimal():
            raise InputError(f"must be valiant:SEED and a torus or a dragonfly, got {text!r}")
        return Valiant(of=inner, seed=int(parameters))
    if kind not in _READY:
        raise unknown("topology", kind, [*_READY, "valiant"])
    made = _READY[kind]
    values: dict[str, Any] = {}
    parts = parameters.split(";")
    if len(parts) != len(made.shape):
        raise InputError(f"must be {kind}:{';'.join(made.shape)}, got {first!r}")
    for names, part in zip(made.shape, parts, strict=True):
        numbers = part.split(",") if "," in names else [part]
        if len(numbers) > names.count(",") + 1:
            raise InputError(f"must be {kind}:{';'.join(made.shape)}, got {first!r}")
        values |= zip(names.split(","), numbers, strict=False)
    options = dict(word.partition("=")[::2] for word in words)
    known = [each.alias for each in attrs.fields(made) if each.init and each.name not in values]
    for name in options:
        if name not in known:
            raise unknown("option", name, known)
    if "bandwidth" not in options:
        raise InputError("missing, such as bandwidth=1GBps", place="bandwidth")
    return made(**(values | options))


def switches_in(topology: Topology | None) -> Mapping[str, Sequence[int]]:
    """Return the hosts below each switch or router of a topology; none of one that is not built in.

    >>> switches_in(read_topology("valiant:1 dragonfly:2;1;2;2 bandwidth=1GBps"))["1.0.1"]
    range(6, 8)
    """
    inner = topology.of if isinstance(topology, Valiant) else topology
    return inner.switches() if isinstance(inner, Interconnect) else {}


def ends_of(link: str) -> tuple[str, ...]:
    """Return the ends of a link of a topology, by its name.

    >>> ends_of("3-1.0#1:up"), ends_of("1.0:limiter"), ends_of("backbone")
    (('3', '1.0'), ('1.0',), ('backbone',))
    """
    return tuple(link.partition(":")[0].partition("#")[0].split("-"))


def given_topology(value: str | Path | Topology | None, place: str) -> Topology | None:
    """Return a topology, also of a text or a path as :func:`read_topology` takes them; ``place`` is that in errors.

    >>> given_topology("star:4 bandwidth=1GBps", "network").hosts
    ('n0', 'n1', 'n2', 'n3')
    """
    if not isinstance(value, str | Path):
        return value
    try:
        return read_topology(str(value))
    except InputError as error:
        raise InputError(error.message, place=f"{place}, {error.place}" if error.place else place) from None


def numbers_of_hosts(topology: Topology, names: Sequence[str]) -> list[int]:
    """Return the number of the host that each of some nodes is: the host of its name, or else that of its position.

    A topology whose hosts have names of their own may have more hosts than there are nodes.

    Raises
    ------
    InputError
        some nodes have the name of a host and others not, or there are more or fewer nodes than hosts

    >>> numbers_of_hosts(Star(nodes=3, bandwidth="1GBps", names="a,b,c"), ["c", "a"])
    [2, 0]
    >>> numbers_of_hosts(Star(nodes=3, bandwidth="1GBps"), ["login", "cn0", "cn1"])
    [0, 1, 2]
    """
    numbers = {host: number for number, host in enumerate(topology.hosts)}
    strange = [name for name in names if name not in numbers]
    inner = topology.of if isinstance(topology, Valiant) else topology
    named = not isinstance(inner, Interconnect) or bool(inner.names)
    if not strange and (named or len(names) == len(numbers)):
        return [numbers[name] for name in names]
    if named and 0 < len(strange) < len(names):
        raise InputError(f"must have the node {strange[0]!r} among its hosts, as it has others", place="network")
    if len(names) != len(numbers):
        raise InputError(f"must have a host for each of {len(names):,} nodes, got {len(numbers):,}", place="network")
    return list(range(len(names)))
