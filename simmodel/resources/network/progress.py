"""Rates of jobs that each are one fluid: their progress uses links in proportion to their traffic.

Sources: ``fair-bottleneck`` is the rule of SimGrid's model of parallel tasks (``ptask_L07`` with its solver
``fairbottleneck``, release 3.32); ``max-min`` is progressive filling (D. Bertsekas, R. Gallager, "Data Networks", 2nd
ed., section 6.5.2) of progress in seconds of the time alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from simmodel.foundation.errors import unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Numbers: TypeAlias = NDArray[np.int64]

__all__ = ["RULES", "Fluid", "Fluids", "Uses", "rates_of"]

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
            which of them each job has for itself; default: none
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
