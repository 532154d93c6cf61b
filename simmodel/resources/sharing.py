"""Weighted max-min fair sharing: full progressive filling, and an incremental solver.

All rates rise together, each in proportion to its weight, until a capacity is used up or a rate reaches its cap; those
rates are then fixed and the others continue to rise. The common height is the *level*: rate = weight * level. The
result is the unique allocation in which no rate can grow without reducing one that is not larger for its weight.

Sources: D. Bertsekas, R. Gallager, "Data Networks", 2nd ed., section 6.5.2 (progressive filling); H. Casanova et al.,
"Versatile, scalable, and accurate simulation of distributed applications and platforms", JPDC 74(10), 2014 (weights and
partial invalidation in SimGrid); J. Ros-Giralt et al., "On the bottleneck structure of congestion-controlled networks",
SIGMETRICS 2020 (the reach of a change).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from math import fsum, inf

__all__ = ["Channel", "Group", "Sharing", "max_min_rates"]


def max_min_rates(
    capacities: Mapping[str, float],
    routes: Sequence[Mapping[str, float] | Sequence[str]],
    weights: Sequence[float] | None = None,
    caps: Sequence[float] | None = None,
) -> list[float]:
    """Return the max-min fair rates by full progressive filling: simple and slow, the reference for :class:`Sharing`.

    Parameters
    ----------
    capacities
        the capacity of each resource, by name (bytes/s)
    routes
        for each rate, the resources that it uses: names, or a mapping of names to factors (load = factor * rate)
    weights
        the weight of each rate; default: 1
    caps
        the upper bound of each rate (bytes/s); default: infinity

    >>> max_min_rates({"backbone": 60, "access": 10}, [["access", "backbone"], ["backbone"], ["backbone"]])
    [10.0, 25.0, 25.0]
    >>> max_min_rates({"link": 100}, [["link"], ["link"]], weights=[1, 3])
    [25.0, 75.0]
    """
    uses = [route if isinstance(route, Mapping) else dict.fromkeys(route, 1.0) for route in routes]
    weight = list(weights) if weights is not None else [1.0] * len(uses)
    cap = list(caps) if caps is not None else [inf] * len(uses)
    rates = [0.0] * len(uses)
    rising = list(range(len(uses)))
    while rising:
        levels = {}
        for name, capacity in capacities.items():
            taken = fsum(uses[i][name] * rates[i] for i in range(len(uses)) if name in uses[i] and i not in rising)
            rise = fsum(uses[i][name] * weight[i] for i in rising if name in uses[i])
            if rise > 0:
                levels[name] = max(0.0, capacity - taken) / rise
        own = {i: min([cap[i] / weight[i]] + [levels[name] for name in uses[i] if name in levels]) for i in rising}
        level = min(own.values())
        for i in rising:
            if own[i] <= level:
                rates[i] = min(cap[i], weight[i] * level)
        rising = [i for i in rising if own[i] > level]
    return rates


class Channel:
    """A shared capacity: a link, or the cores of a host.

    >>> Channel("backbone", 60.0)
    <Channel backbone of 60.0, 0.0 used>
    """

    __slots__ = (
        "_count",
        "_mark",
        "_outside",
        "_room",
        "_start",
        "_weight",
        "capacity",
        "load",
        "name",
        "saturated",
        "users",
    )

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = capacity
        self.load = 0.0
        self.saturated = False
        self.users: list[tuple[Group, float]] = []
        self._mark = 0
        # While filling: capacity left; weight and number of the rising rates, and their initial weight; whether the
        # channel also has users outside the part that is solved.
        self._room = self._weight = self._start = 0.0
        self._count = 0
        self._outside = False

    def __repr__(self) -> str:
        return f"<Channel {self.name} of {self.capacity}, {self.load} used>"


class Group:
    """Rates with the same channels and the same cap, which therefore share one level.

    Parameters
    ----------
    uses
        the channels, each with its factor (load = factor * rate; 1 except for traffic in the reverse direction)
    demand
        the sum of the weights of the rates
    ceiling
        the level at which their caps bind: cap / weight

    >>> link = Channel("link", 100.0)
    >>> Group(((link, 1.0),), 2.0).level
    inf
    """

    __slots__ = ("_entries", "_mark", "ceiling", "demand", "level", "uses")

    def __init__(self, uses: Sequence[tuple[Channel, float]], demand: float = 0.0, ceiling: float = inf) -> None:
        self.uses = tuple(uses)
        self.demand = demand
        self.ceiling = ceiling
        self.level = ceiling
        self._mark = 0
        self._entries = tuple((channel, (self, factor)) for channel, factor in self.uses)


class Sharing:
    """Max-min fair levels of groups, updated by solving only the groups that a change can reach.

    Announce any number of changes with :meth:`join`, :meth:`leave`, :meth:`grow`, :meth:`shrink`, :meth:`refit` and
    :meth:`refit_group`; then call :meth:`solve` once.

    Two facts bound the work. Progressive filling proceeds upwards: nothing differs below the lowest level at which a
    changed channel behaves differently, so groups below that level (the *floor*) keep theirs. And a channel with spare
    capacity limits no group, so a change spreads only through saturated channels; if a channel becomes saturated in
    the new solution and has users above its level, it is added and the larger part is solved again.

    >>> backbone, access = Channel("backbone", 60.0), Channel("access", 10.0)
    >>> near, far = Group(((backbone, 1.0),), 2.0), Group(((access, 1.0), (backbone, 1.0)), 1.0)
    >>> sharing = Sharing(); sharing.join(near); sharing.join(far)
    >>> _ = sharing.solve(); near.level, far.level
    (25.0, 10.0)
    >>> sharing.leave(far); _ = sharing.solve(); near.level
    30.0
    """

    __slots__ = ("_changed", "_floor", "_mark", "_seeds")

    def __init__(self) -> None:
        self._seeds: dict[Channel, None] = {}
        self._changed: dict[Group, None] = {}
        self._floor = inf
        self._mark = 0

    @property
    def waiting(self) -> bool:
        """Whether announced changes are not solved yet."""
        return bool(self._changed or self._seeds)

    def join(self, group: Group) -> None:
        """Add a group, with a demand above zero."""
        # Until solved, a new group counts as at its ceiling.
        group.level = group.ceiling
        self._changed[group] = None
        for channel, entry in group._entries:
            channel.users.append(entry)
            self._seeds[channel] = None

    def leave(self, group: Group) -> None:
        """Remove a group and set its level to zero."""
        if group.level < self._floor:
            self._floor = group.level
        self._changed.pop(group, None)
        for channel, entry in group._entries:
            channel.users.remove(entry)
            self._seeds[channel] = None
        group.level = 0.0

    def grow(self, group: Group) -> None:
        """Announce that the demand of a group has grown."""
        self._changed[group] = None
        for channel, _ in group.uses:
            self._seeds[channel] = None

    def shrink(self, group: Group) -> None:
        """Announce that the demand of a group has shrunk."""
        if group.level < self._floor:
            self._floor = group.level
        self.grow(group)

    def refit(self, channel: Channel) -> None:
        """Announce that the capacity of a channel has changed."""
        self._floor = 0.0
        self._seeds[channel] = None

    def refit_group(self, group: Group) -> None:
        """Announce that the ceiling of a group has changed, or its demand in either direction."""
        self._floor = 0.0
        self.grow(group)
        group.level = group.ceiling  # until solved, as for a new group

    def solve(self) -> tuple[list[Group], list[Channel]]:
        """Update all levels; return the groups and the channels that may have changed, each once."""
        mark = self._mark = self._mark + 1
        floor = self._floor
        touched = list(self._seeds)
        spreading = []
        for channel in touched:
            channel._mark = mark
            level = _level_of_change(channel)
            if level is not None:
                spreading.append(channel)
                if level < floor:
                    floor = level
        # Levels that differ only by rounding belong together; solving for too many groups is never wrong.
        floor *= 1 - 1e-9
        groups: list[Group] = []
        while spreading:
            _spread(spreading, groups, touched, mark, floor)
            tops = _fill(groups, touched, mark)
            spreading = []
            for channel, level in tops:
                if any(user._mark != mark and user.level > level * (1 + 1e-12) for user, _ in channel.users):
                    spreading.append(channel)
                    if level < floor:
                        floor = level
        for channel in touched:
            load = 0.0
            for user, factor in channel.users:
                load += factor * user.demand * user.level
            channel.load = load
            channel.saturated = load >= channel.capacity * (1 - 1e-9)
        groups += [group for group in self._changed if group._mark != mark]
        self._seeds.clear()
        self._changed.clear()
        self._floor = inf
        return groups, touched


def _level_of_change(channel: Channel) -> float | None:
    """Return the level from which a changed channel limits its users; infinity: no more than before.

    ``None``: it did not limit them before and does not now. Users are assumed to need at most their old levels.
    """
    capacity = channel.capacity
    users = channel.users
    total = 0.0
    for user, factor in users:
        total += factor * user.demand * user.level
    if total <= capacity * (1 + 1e-12):
        return inf if channel.saturated else None
    # Water-filling of this channel alone: users below the mean level leave the rest of their share to the others.
    above = users
    while True:
        weight = 0.0
        for user, factor in above:
            weight += factor * user.demand
        level = capacity / weight if capacity > 0 else 0.0
        higher = [entry for entry in above if entry[0].level >= level]
        if len(higher) == len(above) or not higher:
            return level
        for user, factor in above:
            if user.level < level:
                capacity -= factor * user.demand * user.level
        above = higher


def _spread(spreading: list[Channel], groups: list[Group], touched: list[Channel], mark: int, floor: float) -> None:
    """Collect the groups that a change of the spreading channels reaches, and the channels of those groups."""
    for channel in spreading:
        for group, _ in channel.users:
            if group._mark != mark and group.level >= floor:
                group._mark = mark
                groups.append(group)
                for other, _ in group.uses:
                    if other._mark != mark:
                        other._mark = mark
                        touched.append(other)
                        if other.saturated:
                            spreading.append(other)


def _fill(groups: list[Group], touched: list[Channel], mark: int) -> list[tuple[Channel, float]]:
    """Fill the marked groups; the others keep their levels.

    Return the channels that limited marked groups and have other users too, each with its limiting level.

    This is the inner loop of every network simulation, hence the local names. Channels are in a heap by the level at
    which they would be used up. Fixing groups below that level only raises it, so an outdated entry is recognised
    when it reaches the top.
    """
    if len(groups) == 1:
        return _fill_one(groups[0])
    heap = []
    number = 0
    for channel in touched:
        room = channel.capacity
        weight = 0.0
        count = 0
        for user, factor in channel.users:
            if user._mark == mark:
                weight += factor * user.demand
                count += 1
            else:
                room -= factor * user.demand * user.level
        channel._count = count
        if count:
            channel._outside = count < len(channel.users)
            channel._room = room
            channel._weight = channel._start = weight
            heap.append((room / weight if room > 0 else 0.0, number, channel))
            number += 1
    heapify(heap)
    capped = sorted((group for group in groups if group.ceiling < inf), key=_ceiling, reverse=True)
    for group in groups:
        group.level = -1.0  # still rising
    tops = []
    left = len(groups)
    while left:
        level, number, channel = heap[0]
        if capped and capped[-1].ceiling <= level:
            group = capped.pop()
            if group.level < 0:
                _fix(group, group.ceiling)
                left -= 1
            continue
        if not channel._count:
            heappop(heap)
            continue
        if channel._weight < 1e-3 * channel._start:
            _sum_again(channel, mark)
        room = channel._room
        now = room / channel._weight if room > 0 else 0.0
        if now > level:
            heapreplace(heap, (now, number, channel))
            continue
        if channel._outside:
            tops.append((channel, level))
        for group, _ in channel.users:
            if group.level < 0:
                _fix(group, level)
                left -= 1
        heappop(heap)
    return tops


def _ceiling(group: Group) -> float:
    return group.ceiling


def _fix(group: Group, level: float) -> None:
    group.level = level
    demand = group.demand
    for channel, factor in group.uses:
        demanded = factor * demand
        channel._room -= demanded * level
        channel._weight -= demanded
        channel._count -= 1


def _fill_one(group: Group) -> list[tuple[Channel, float]]:
    """Fill a single group."""
    lowest = group.ceiling
    top: Channel | None = None
    demand = group.demand
    for channel, factor in group.uses:
        room = channel.capacity
        users = channel.users
        if len(users) > 1:
            for user, part in users:
                if user is not group:
                    room -= part * user.demand * user.level
        level = room / (factor * demand) if room > 0 else 0.0
        if level < lowest:
            lowest = level
            top = channel
    group.level = lowest
    return [(top, lowest)] if top is not None else []


def _sum_again(channel: Channel, mark: int) -> None:
    """Sum the rising weights of a channel again once subtraction has lost too many digits."""
    channel._weight = channel._start = fsum(
        factor * user.demand for user, factor in channel.users if user._mark == mark and user.level < 0
    )
