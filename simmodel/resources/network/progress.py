"""Rates of jobs that each are one fluid, whose progress uses links in proportion to their traffic, and those loads.

Sources: ``fair-bottleneck`` is the rule of SimGrid's model of parallel tasks (``ptask_L07`` with its solver
``fairbottleneck``, release 3.32); ``max-min`` is progressive filling (D. Bertsekas, R. Gallager, "Data Networks", 2nd
ed., section 6.5.2) of progress in seconds of the time alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from simmodel.foundation.errors import unknown
from simmodel.platform.topology import Interconnect, Topology, Valiant

__all__ = ["RULES", "Fluid", "Fluids", "LinkUsage", "Uses", "rates_of"]


if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Numbers: TypeAlias = NDArray[np.int64]


_SPENT = 1e-12  # of a capacity: what rounding leaves of it


class Uses(NamedTuple):
    """Which job uses which link, a row for each use, in order of the jobs: job, link, bytes at a progress of 1."""

    jobs: Numbers
    links: Numbers
    amounts: Floats


class Fluid:
    """A job that uses links: ``rate`` is its progress per second, ``alone`` that without others.

    Parameters
    ----------
    order
        its position among the others, which rounding depends on and nothing else
    links, amounts
        the numbers of the links that it uses, each once, and the bytes over each at a progress of 1
    ceiling
        the rate that its processors allow
    """

    __slots__ = ("alone", "amounts", "beside", "ceiling", "limit", "links", "order", "own", "rate")

    def __init__(self, order: int, links: Numbers, amounts: Floats, ceiling: float = inf) -> None:
        self.order = order
        self.links = links
        self.amounts = amounts
        self.ceiling = ceiling
        self.rate = 0.0
        self.alone = ceiling
        self.limit = -1
        """The link that limits it, of those that others use too; -1: none does."""
        self.beside: Fluid | None = None
        """The other job with most of that link."""
        self.own = amounts  # the rate that each link alone allows


class Fluids:
    """The rates of jobs over shared links; when some change, only those are solved that share links with them.

    Links that one job uses bound its rate as its processors do.

    Parameters
    ----------
    rule
        ``"fair-bottleneck"`` or ``"max-min"``

    >>> fluids = Fluids()
    >>> one, two = (Fluid(n, np.array([0]), np.array([size])) for n, size in enumerate([10.0, 30.0]))
    >>> capacity = np.array([60.0]); fluids.join(one, capacity); fluids.join(two, capacity)
    >>> [(fluid.rate, fluid.alone) for fluid in fluids.solve()]
    [(3.0, 6.0), (1.0, 2.0)]
    >>> fluids.leave(one); [fluid.rate for fluid in fluids.solve()]
    [2.0]
    """

    def __init__(self, rule: str = "fair-bottleneck") -> None:
        if rule not in RULES:
            raise unknown("rule", rule, RULES)
        self._rule = RULES[rule]
        self._fluids: list[Fluid] = []
        self._orders: list[int] = []
        self._users = np.zeros(0, dtype=np.int64)
        self._capacity: Floats = np.zeros(0)
        self._changed: list[Numbers] = []
        self._new: dict[Fluid, None] = {}

    def join(
        self, fluid: Fluid, capacity: Floats, apart: NDArray[np.bool_] | None = None, rate: float | None = None
    ) -> None:
        """Add a job.

        Parameters
        ----------
        fluid
            the job
        capacity
            of all links (bytes/s)
        apart
            which of them are not shared; default: none
        rate
            that of a job which is solved already, with all the others
        """
        if len(capacity) > len(self._users):
            self._users = np.concatenate((self._users, np.zeros(len(capacity) - len(self._users), dtype=np.int64)))
        self._capacity = capacity
        own = capacity[fluid.links] / fluid.amounts
        fluid.alone = min(fluid.ceiling, float(own.min(initial=inf)))
        if apart is not None and (alone := apart[fluid.links]).any():
            fluid.ceiling = min(fluid.ceiling, float(own[alone].min()))
            fluid.links, fluid.amounts, own = fluid.links[~alone], fluid.amounts[~alone], own[~alone]
        fluid.own = own
        at = bisect_left(self._orders, fluid.order)
        self._orders.insert(at, fluid.order)
        self._fluids.insert(at, fluid)
        self._users[fluid.links] += 1
        if rate is not None:
            fluid.rate = rate
            return
        self._changed.append(fluid.links)
        self._new[fluid] = None

    def leave(self, fluid: Fluid) -> None:
        """Remove a job."""
        at = bisect_left(self._orders, fluid.order)
        del self._orders[at], self._fluids[at]
        self._users[fluid.links] -= 1
        self._changed.append(fluid.links)
        self._new.pop(fluid, None)

    @property
    def waiting(self) -> bool:
        """Whether changes are not solved yet."""
        return bool(self._changed)

    def solve(self) -> list[Fluid]:
        """Set the rates of the jobs that share links with those that joined or left, and return these in order."""
        reached = self._reached()
        self._changed.clear()
        self._new.clear()
        if not reached:
            return reached
        lengths = [len(fluid.links) for fluid in reached]
        jobs = np.repeat(np.arange(len(reached)), lengths)
        links = np.concatenate([fluid.links for fluid in reached])
        own = np.concatenate([fluid.own for fluid in reached])
        shared = self._users[links] > 1
        ceilings = np.array([fluid.ceiling for fluid in reached])
        _lower(ceilings, jobs[~shared], own[~shared])
        jobs, links = jobs[shared], links[shared]
        amounts = np.concatenate([fluid.amounts for fluid in reached])[shared]
        numbers = np.flatnonzero(np.bincount(links))
        place = np.zeros(len(self._users), dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        uses = Uses(jobs, place[links], amounts)
        alone = np.array([fluid.alone for fluid in reached])
        rates, limits = self._rule(uses, self._capacity[numbers], ceilings, alone)
        others = _beside(uses, rates, limits)
        for fluid, rate, limit, other in zip(reached, rates.tolist(), limits.tolist(), others, strict=True):
            fluid.rate = rate
            fluid.limit = -1 if limit < 0 else int(numbers[limit])
            fluid.beside = None if other < 0 else reached[other]
        return reached

    def _reached(self) -> list[Fluid]:
        """Return the jobs that a change reaches: by links that several use, from job to job."""
        if not self._changed:
            return []
        touched = np.zeros(len(self._users), dtype=bool)
        for links in self._changed:
            touched[links] = True
        left = self._fluids
        found: set[Fluid] = set(self._new)
        while True:
            hit = [fluid for fluid in left if fluid in self._new or touched[fluid.links].any()]
            if len(hit) == len(left) or not hit:
                found.update(hit)
                return [fluid for fluid in self._fluids if fluid in found]
            found.update(hit)
            left = [fluid for fluid in left if fluid not in found]
            for fluid in hit:
                touched[fluid.links] = True


def rates_of(
    capacities: Mapping[str, float],
    jobs: Sequence[Mapping[str, float]],
    ceilings: Sequence[float] | None = None,
    rule: str = "fair-bottleneck",
) -> list[float]:
    """Return the progress per second of jobs that share links, all solved at once.

    Parameters
    ----------
    capacities
        of each link or processor, by name (bytes/s or any unit a second)
    jobs
        of each job, what it moves over links or does on processors in all, by name
    ceilings
        the highest rate of each job; default: infinity
    rule
        ``"fair-bottleneck"`` or ``"max-min"``

    >>> rates_of({"a": 2.0, "b": 9.0}, [{"a": 1.0}, {"a": 1.0, "b": 2.0}])
    [1.0, 1.0]
    """
    number = {name: i for i, name in enumerate(capacities)}
    fluids = Fluids(rule)
    capacity = np.array(list(capacities.values()), dtype=np.float64)
    for order, uses in enumerate(jobs):
        links = np.array([number[name] for name, amount in uses.items() if amount > 0], dtype=np.int64)
        amounts = np.array([amount for amount in uses.values() if amount > 0], dtype=np.float64)
        fluids.join(Fluid(order, links, amounts, inf if ceilings is None else ceilings[order]), capacity)
    return [fluid.rate for fluid in fluids.solve()]


def _lower(bounds: Floats, jobs: Numbers, values: Floats) -> None:
    """Lower the bound of each job to the least of its values; rows of a job are together."""
    if len(jobs):
        first = np.flatnonzero(np.concatenate(([True], jobs[1:] != jobs[:-1])))
        at = jobs[first]
        bounds[at] = np.minimum(bounds[at], np.minimum.reduceat(values, first))


def _beside(uses: Uses, rates: Floats, limits: Numbers) -> list[int]:
    """Return the other job with most of the link that limits each job; -1: no link does."""
    links = np.unique(limits[limits >= 0])
    at = np.isin(uses.links, links)
    jobs, links, loads = uses.jobs[at], uses.links[at], uses.amounts[at] * rates[uses.jobs[at]]
    order = np.argsort(-loads, kind="stable")[::-1]  # of equals the first one comes last
    jobs, links = jobs[order], links[order]
    count = int(uses.links.max(initial=-1)) + 2  # the last place is that of no link
    first, second = np.full(count, -1), np.full(count, -1)
    first[links] = jobs
    rest = first[links] != jobs
    second[links[rest]] = jobs[rest]
    found = np.where(first[limits] == np.arange(len(limits)), second[limits], first[limits])
    return np.where(limits < 0, -1, found).tolist()  # type: ignore[no-any-return]


def _fair_bottleneck(uses: Uses, capacity: Floats, ceilings: Floats, _alone: Floats) -> tuple[Floats, Numbers]:
    """Return the rates, and the links that limit: in rounds, each link offers its jobs equal shares of what is left.

    A job takes the least that its links offer it. It is done once one of them, or its ceiling, is spent. As in SimGrid,
    a link counts the last step of a job that is done again in each round.
    """
    jobs, links, amounts = uses
    rates, limits = np.zeros(len(ceilings)), np.full(len(ceilings), -1)
    room, drain = capacity.copy(), np.zeros(len(capacity))
    rising = np.ones(len(ceilings), dtype=bool)
    while rising.any():
        users = np.bincount(links, minlength=len(room))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = room / users
        steps = np.where(rising, ceilings, 0.0) - np.where(rising, rates, 0.0)
        _lower(steps, jobs, share[links] / amounts)
        rates[rising] += steps[rising]
        used = amounts * steps[jobs]
        room -= drain + np.bincount(links, used, minlength=len(room))
        spent = room <= _SPENT * capacity
        over = rising & (rates >= ceilings * (1 - _SPENT))
        at = spent[links]
        limits[jobs[at]] = links[at]
        over[jobs[at]] = True
        rising &= ~over
        done = over[jobs]
        drain += np.bincount(links[done], used[done], minlength=len(room))
        jobs, links, amounts = jobs[~done], links[~done], amounts[~done]
    return rates, limits


def _max_min(uses: Uses, capacity: Floats, ceilings: Floats, alone: Floats) -> tuple[Floats, Numbers]:
    """Return the rates, and the links that limit: all rise together, each until a link or its ceiling is spent.

    They rise in proportion to the rates alone: jobs that one link limits are slowed by the same factor.
    """
    jobs, links, amounts = uses
    amounts = amounts * alone[jobs]
    ceilings = np.where(alone < inf, ceilings, 1.0) / np.where(alone < inf, alone, 1.0)
    rates, limits = np.zeros(len(ceilings)), np.full(len(ceilings), -1)
    room = capacity.copy()
    rising = np.ones(len(ceilings), dtype=bool)
    while rising.any():
        demand = np.bincount(links, amounts, minlength=len(room))
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.maximum(room, 0.0) / demand
        highest = ceilings.copy()
        _lower(highest, jobs, level[links])
        least = highest[rising].min() * (1 + _SPENT)
        over = rising & (highest <= least)
        at = (level[links] <= least) & over[jobs]
        limits[jobs[at]] = links[at]
        rates[over] = highest[over]
        rising &= ~over
        done = over[jobs]
        room -= np.bincount(links[done], amounts[done] * rates[jobs[done]], minlength=len(room))
        jobs, links, amounts = jobs[~done], links[~done], amounts[~done]
    return rates * alone, limits


Rule: TypeAlias = Callable[[Uses, "Floats", "Floats", "Floats"], "tuple[Floats, Numbers]"]
RULES: Mapping[str, Rule] = {"fair-bottleneck": _fair_bottleneck, "max-min": _max_min}
"""The rules by which jobs share links, by name."""


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
    limit each message alone (``fatpipe``).

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
        return self._measure.link_name(number)

    def where(self, number: int) -> str:
        """Return where a link is, in words for reports."""
        inner = self.topology.of if isinstance(self.topology, Valiant) else self.topology
        return inner.where(self.name(number)) if isinstance(inner, Interconnect) else self.name(number)

    def of(self, sources: Numbers, destinations: Numbers, amounts: Floats) -> tuple[Numbers, Floats]:
        """Return the numbers of the links that messages use, in order, and the bytes over each.

        The messages of a job share a link; a ``fatpipe`` limits each of them alone, so that the largest one counts.

        Parameters
        ----------
        sources, destinations
            the numbers of the hosts at the ends of each message; from a host to itself it goes over the loopback
        amounts
            the bytes of each
        """
        total: Floats = np.zeros(0)
        for passed, sizes in self._crossed(sources, destinations, amounts):
            more: Floats = np.bincount(passed, sizes, minlength=len(total)).astype(np.float64, copy=False)
            more[: len(total)] += total
            total = more
        links = np.flatnonzero(total)
        self._look_up(links)
        alone = links[self.apart[links]]
        if len(alone):
            largest = np.zeros(len(total))
            for passed, sizes in self._crossed(sources, destinations, amounts):
                np.maximum.at(largest, passed, sizes)
            total[alone] = largest[alone]
        return links, total[links]

    def _crossed(self, sources: Numbers, destinations: Numbers, amounts: Floats) -> Iterator[tuple[Numbers, Floats]]:
        """Yield the links that messages cross, one after the other, and the bytes of each message over each."""
        for first in range(0, len(sources), CHUNK):
            part = slice(first, first + CHUNK)
            numbers = self._measure.crossed(sources[part], destinations[part])
            passed = numbers >= 0
            yield numbers[passed], np.broadcast_to(amounts[part], numbers.shape)[passed]

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
            self._look_up(np.unique(numbers[numbers >= 0]))
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
