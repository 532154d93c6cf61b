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
from heapq import heapify, heappop, heappush, heapreplace
from math import fsum, inf
from typing import Final

from simmodel.form import mypyc_attr
from simmodel.foundation.pickling import Attributes, attributes, set_attributes
from simmodel.foundation.subclasses import refuse_properties
from simmodel.resources.network.bundle import Channel, Group
from simmodel.resources.network.crowd import Crowd

__all__ = ["Sharing", "fill", "level_of_change", "max_min_rates", "spread"]


REACH: Final = 40  # the most groups in the reach of a change that are filled at once; from more on, it is followed
_ROUNDING: Final = 1e-15  # the part of a level by which it must change to be followed
_FEW: Final = 32  # the most changed channels from which changes are followed from the lowest level up; else in rounds
_ROUNDS: Final = 100  # how often channels are looked at in the mean, at most; then all groups are filled


def water_level(channel: Channel) -> tuple[float, list[float]]:
    """Return the level at which a channel is used up, and for each user the level that everything else allows it.

    The level is infinite if everything else keeps the users below the capacity. This is the inner loop of every network
    simulation, hence the local names.
    """
    weight = load = 0.0
    allowed = []
    lowest = []
    for user, factor in channel.users:
        part = factor * user.demand
        weight += part
        most = user.ceiling
        for other, _ in user.uses:
            if other.full_at < most and other is not channel:
                most = other.full_at
        load += part * most
        allowed.append(most)
        lowest.append((most, part))
    room = channel.bound
    if load < room * (1 - 1e-12):
        return inf, allowed
    lowest.sort()
    least = 1e-3 * weight
    for k, (most, part) in enumerate(lowest):
        if room <= 0:
            return 0.0, allowed
        if most >= room / weight:
            return room / weight, allowed
        room -= part * most
        weight -= part
        if weight < least:  # subtraction has lost digits
            weight = fsum([each for _, each in lowest[k + 1 :]])
            least = 1e-3 * weight
    return inf, allowed


def level_of_change(channel: Channel) -> float | None:
    """Return the level from which a changed channel limits its users; infinity: no more than before.

    ``None``: it did not limit them before and does not now. Users are assumed to need at most their old levels.
    """
    capacity = channel.bound
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


def spread(
    spreading: list[Channel], groups: list[Group], touched: list[Channel], mark: int, floor: float, most: int
) -> None:
    """Collect the groups that a change of the spreading channels reaches, up to a few more than ``most``, and the
    channels of those groups."""
    for channel in spreading:
        if len(groups) > most:
            return
        for group, _ in channel.users:
            if group.filling != mark and group.level >= floor:
                group.filling = mark
                groups.append(group)
                for other, _ in group.uses:
                    if other.filling != mark:
                        other.filling = mark
                        touched.append(other)
                        if other.saturated:
                            spreading.append(other)


def fill(groups: list[Group], touched: list[Channel], mark: int) -> list[tuple[Channel, float]]:
    """Fill the marked groups; the others keep their levels.

    Return the channels that limited marked groups and have other users too, each with its limiting level.

    This is the inner loop of every network simulation, hence the local names. Channels are in a heap by the level at
    which they would be used up. Fixing groups below that level only raises it, so an outdated entry is recognised
    when it reaches the top.
    """
    if len(groups) == 1:
        return _fill_one(groups[0], touched)
    heap = []
    number = 0
    for channel in touched:
        room = channel.bound
        weight = 0.0
        count = 0
        for user, factor in channel.users:
            if user.filling == mark:
                weight += factor * user.demand
                count += 1
            else:
                room -= factor * user.demand * user.level
        channel.rising = count
        channel.full_at = inf
        if count:
            channel.has_others = count < len(channel.users)
            channel.room = room
            channel.rising_weight = channel.first_weight = weight
            heap.append((room / weight if room > 0 else 0.0, number, channel))
            number += 1
    heapify(heap)
    capped = sorted([group for group in groups if group.ceiling < inf], key=_ceiling, reverse=True)
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
        if not channel.rising:
            heappop(heap)
            continue
        if channel.rising_weight < 1e-3 * channel.first_weight:
            _sum_again(channel, mark)
        room = channel.room
        now = room / channel.rising_weight if room > 0 else 0.0
        if now > level:
            heapreplace(heap, (now, number, channel))
            continue
        channel.full_at = level
        if channel.has_others:
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
        channel.room -= demanded * level
        channel.rising_weight -= demanded
        channel.rising -= 1


def _fill_one(group: Group, touched: list[Channel]) -> list[tuple[Channel, float]]:
    """Fill a single group."""
    for channel in touched:
        channel.full_at = inf
    lowest = group.ceiling
    top: Channel | None = None
    demand = group.demand
    for channel, factor in group.uses:
        room = channel.bound
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
    if top is None:
        return []
    top.full_at = lowest
    return [(top, lowest)]


def _sum_again(channel: Channel, mark: int) -> None:
    """Sum the rising weights of a channel again once subtraction has lost too many digits."""
    channel.rising_weight = channel.first_weight = fsum(
        [factor * user.demand for user, factor in channel.users if user.filling == mark and user.level < 0]
    )


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
            taken = fsum([uses[i][name] * rates[i] for i in range(len(uses)) if name in uses[i] and i not in rising])
            rise = fsum([uses[i][name] * weight[i] for i in rising if name in uses[i]])
            if rise > 0:
                levels[name] = max(0.0, capacity - taken) / rise
        own = {i: min([cap[i] / weight[i]] + [levels[name] for name in uses[i] if name in levels]) for i in rising}
        level = min(own.values())
        for i in rising:
            if own[i] <= level:
                rates[i] = min(cap[i], weight[i] * level)
        rising = [i for i in rising if own[i] > level]
    return rates


MANY: Final = 500
EACH: Final = 3
"""Groups in the reach of one change that are solved as a crowd, if they are more than ``EACH`` for each channel."""

_SURE: Final = 64  # solutions for the crowd without looking how far a change reaches


@mypyc_attr(allow_interpreted_subclasses=True)
class Sharing:
    """Max-min fair levels of groups, updated by solving only the groups that a change can reach.

    Announce any number of changes with :meth:`join`, :meth:`leave`, :meth:`grow`, :meth:`shrink`, :meth:`refit` and
    :meth:`refit_group`; then call :meth:`solve` once.

    Two facts bound the work. Progressive filling proceeds upwards: nothing differs below the lowest level at which a
    changed channel behaves differently, so groups below that level (the *floor*) keep theirs. And a channel with spare
    capacity limits no group, so a change spreads only through saturated channels; if a channel becomes saturated in
    the new solution and has users above its level, it is added and the larger part is solved again.

    Most changes move far fewer groups than they can reach. If more than a few are in reach, the change is followed from
    channel to channel instead: the level at which a channel is used up follows from its capacity and from the levels at
    which the other channels of its users are; where it differs, those others are solved again, the lowest first.
    Levels that fulfil this for every channel are max-min fair.

    If a change moves very many groups, all groups become a :class:`~simmodel.resources.network.crowd.Crowd`: columns
    that are filled with numpy. It then has the levels; :meth:`tell` copies them to the groups.

    Parameters
    ----------
    many, each
        one change must reach ``many`` groups, and more than ``each`` times as many as channels, to make a crowd
    reach
        the most groups that one change may reach to be filled at once

    >>> backbone, access = Channel("backbone", 60.0), Channel("access", 10.0)
    >>> near, far = Group(((backbone, 1.0),), 2.0), Group(((access, 1.0), (backbone, 1.0)), 1.0)
    >>> sharing = Sharing(); sharing.join(near); sharing.join(far)
    >>> _ = sharing.solve(); near.level, far.level
    (25.0, 10.0)
    >>> sharing.leave(far); _ = sharing.solve(); near.level
    30.0
    """

    __slots__ = ("_changed", "_floor", "_joined", "_mark", "_seeds", "_sure", "crowd", "each", "many", "reach")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_properties(cls, __name__)

    def __init__(self, many: int = MANY, each: int = EACH, reach: int = REACH) -> None:
        self.many = many
        self.each = each
        self.reach = reach
        self.crowd: Crowd | None = None
        self._joined: dict[Group, None] = {}
        self._seeds: dict[Channel, None] = {}
        self._changed: dict[Group, None] = {}
        self._floor = inf
        self._mark = 0
        self._sure = 0

    def __getstate__(self) -> Attributes:
        return attributes(self)

    def __setstate__(self, values: Attributes) -> None:
        set_attributes(self, values)

    @property
    def waiting(self) -> bool:
        """Whether announced changes are not solved yet."""
        return bool(self._changed or self._seeds)

    def join(self, group: Group) -> None:
        """Add a group, with a demand above zero."""
        # Until solved, a new group counts as at its ceiling.
        group.level = group.ceiling
        self._changed[group] = None
        self._joined[group] = None
        if self.crowd is not None:
            self.crowd.add(group)
        for channel, entry in group.entries:
            channel.users.append(entry)
            self._seeds[channel] = None

    def leave(self, group: Group) -> None:
        """Remove a group and set its level to zero."""
        self._lower_floor(group)
        if self.crowd is not None:
            self.crowd.remove(group)
        self._changed.pop(group, None)
        del self._joined[group]
        for channel, entry in group.entries:
            channel.users.remove(entry)
            self._seeds[channel] = None
        group.level = 0.0

    def join_alone(self, group: Group) -> bool:
        """Add a group, solved, if nobody else uses its channels; otherwise return ``False``, without any effect.

        >>> link = Channel("link", 60.0); group = Group(((link, 1.0),), 2.0); sharing = Sharing()
        >>> sharing.join_alone(group), group.level, sharing.waiting
        (True, 30.0, False)
        """
        level = group.ceiling
        demand = group.demand
        for channel, factor in group.uses:
            if channel.users:
                return False
            own = channel.bound / (factor * demand)
            if own < level:
                level = own
        if self.crowd is not None:
            return False
        group.level = level
        self._joined[group] = None
        for channel, entry in group.entries:
            channel.users.append(entry)
            part = entry[1] * demand
            channel.load = load = part * level
            channel.saturated = load >= channel.bound * (1 - 1e-9)
            channel.full_at = inf if level < channel.bound / part else level
        return True

    def leave_alone(self, group: Group) -> bool:
        """Remove a group if nobody else uses its channels; otherwise return ``False``, without any effect."""
        for channel, _ in group.uses:
            if len(channel.users) > 1:
                return False
        if self.crowd is not None:
            return False
        self._changed.pop(group, None)
        del self._joined[group]
        for channel, _ in group.uses:
            channel.users.clear()
            channel.load = 0.0
            channel.saturated = not channel.bound
            channel.full_at = inf
        group.level = 0.0
        return True

    def _lower_floor(self, group: Group) -> None:
        level = group.level if self.crowd is None else float(self.crowd.level[group.row])
        if level < self._floor:
            self._floor = level

    def grow(self, group: Group) -> None:
        """Announce that the demand of a group has grown."""
        self._changed[group] = None
        for channel, _ in group.uses:
            self._seeds[channel] = None

    def shrink(self, group: Group) -> None:
        """Announce that the demand of a group has shrunk."""
        self._lower_floor(group)
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
        if self.crowd is not None:
            self.crowd.level[group.row] = group.ceiling

    def tell(self) -> list[Group]:
        """Copy the levels from a crowd to its groups; return those that the last solution moved."""
        return self.crowd.tell() if self.crowd is not None else []

    def disband(self) -> None:
        """Go on without the crowd."""
        if self.crowd is not None:
            if self._sure:
                self._read_crowd(self.crowd)
            self.crowd.close()
            self.crowd = None
            self._sure = 0

    def solve(self) -> tuple[list[Group], list[Channel]]:
        """Update all levels; return the groups and the channels that may have changed, each once.

        The groups of a crowd are among them only if their change was announced; the others are its ``moved`` rows.
        """
        if self.crowd is not None:
            if self._sure:
                return self._solve_crowd(self.crowd)
            self.crowd.tell()
        mark = self._mark = self._mark + 1
        floor = self._floor
        touched = list(self._seeds)
        spreading = []
        for channel in touched:
            channel.filling = mark
            level = level_of_change(channel)
            if level is not None:
                spreading.append(channel)
                if level < floor:
                    floor = level
        # Levels that differ only by rounding belong together; solving for too many groups is never wrong.
        floor *= 1 - 1e-9
        groups: list[Group] = []
        while spreading:
            solved = len(groups), len(touched)
            spread(spreading, groups, touched, mark, floor, self.reach)
            if len(groups) >= self.many and len(groups) > self.each * len(touched):
                return self._gather()
            if len(groups) > self.reach:
                del groups[solved[0] :], touched[solved[1] :]
                if not self._follow(groups, touched):
                    return self._gather()
                break
            tops = fill(groups, touched, mark)
            spreading = []
            for channel, level in tops:
                if any(user.filling != mark and user.level > level * (1 + 1e-12) for user, _ in channel.users):
                    spreading.append(channel)
                    if level < floor:
                        floor = level
        groups += [group for group in self._changed if group.filling != self._mark]
        for channel in touched:
            load = 0.0
            for user, factor in channel.users:
                load += factor * user.demand * user.level
            channel.load = load
            channel.saturated = load >= channel.bound * (1 - 1e-9)
        if self.crowd is not None:
            self.crowd.take(groups, touched)
        self._solved()
        return groups, touched

    def _follow(self, groups: list[Group], touched: list[Channel]) -> bool:
        """Solve the touched channels, and all others that this changes; add these, and the groups with new levels.

        Return ``False`` if these are very many, or rounding keeps it from an end; then nothing is solved.
        """
        mark = self._mark = self._mark + 1
        groups[:] = dict.fromkeys([*groups, *self._changed])
        for group in groups:
            group.filling = mark
        few = len(touched) <= _FEW
        queue = [(channel.full_at if few else k, k, channel) for k, channel in enumerate(touched)]
        heapify(queue)
        for channel in touched:
            channel.queued = True
        count = len(queue)
        while queue:
            channel = heappop(queue)[2]
            channel.queued = False
            level, allowed = water_level(channel)
            old = channel.full_at
            if level == old or abs(level - old) <= _ROUNDING * old < inf:
                continue
            channel.full_at = level
            lower = min(level, old)
            for (user, _), most in zip(channel.users, allowed, strict=True):
                if most > lower:
                    if user.filling != mark:
                        user.filling = mark
                        groups.append(user)
                    for other, _ in user.uses:
                        if not other.queued and other is not channel:
                            other.queued = True
                            count += 1
                            heappush(queue, (other.full_at if few else count, count, other))
            many = len(groups) >= self.many and len(groups) > self.each * count
            if many or count > _ROUNDS * (len(touched) + len(groups)):
                for _, _, channel in queue:
                    channel.queued = False
                return False
        found = dict.fromkeys(touched)
        for group in groups:
            level = group.ceiling
            for channel, _ in group.uses:
                found[channel] = None
                if channel.full_at < level:
                    level = channel.full_at
            group.level = level
        touched[:] = found
        return True

    def _gather(self) -> tuple[list[Group], list[Channel]]:
        """Go on with a crowd."""
        self._sure = _SURE
        if self.crowd is None:
            self.crowd = Crowd(self._joined)
        return self._solve_crowd(self.crowd)

    def _read_crowd(self, crowd: Crowd) -> None:
        """Copy the levels from a crowd to its groups, and set the levels at which channels are used up."""
        crowd.tell()
        for group in self._joined:
            for channel, _ in group.uses:
                channel.full_at = 0.0 if channel.saturated else inf
        for group in self._joined:
            for channel, _ in group.uses:
                if channel.full_at < group.level:
                    channel.full_at = group.level

    def _solve_crowd(self, crowd: Crowd) -> tuple[list[Group], list[Channel]]:
        groups = list(self._changed)
        channels = crowd.solve(self._seeds, groups, self._floor)
        self._sure = self._sure - 1 if 4 * len(crowd.moved) >= self.many else 0
        self._solved()
        if not self._sure:
            self._read_crowd(crowd)
        return groups, channels

    def _solved(self) -> None:
        self._seeds.clear()
        self._changed.clear()
        self._floor = inf
