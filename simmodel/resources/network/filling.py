"""Progressive filling of the groups that a change reaches."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from math import fsum, inf

from simmodel.resources.network.channels import Channel, Group

__all__ = ["fill", "level_of_change", "spread"]


def level_of_change(channel: Channel) -> float | None:
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


def spread(spreading: list[Channel], groups: list[Group], touched: list[Channel], mark: int, floor: float) -> None:
    """Collect the groups that a change of the spreading channels reaches, and the channels of those groups."""
    for channel in spreading:
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
        return _fill_one(groups[0])
    heap = []
    number = 0
    for channel in touched:
        room = channel.capacity
        weight = 0.0
        count = 0
        for user, factor in channel.users:
            if user.filling == mark:
                weight += factor * user.demand
                count += 1
            else:
                room -= factor * user.demand * user.level
        channel.rising = count
        if count:
            channel.has_others = count < len(channel.users)
            channel.room = room
            channel.rising_weight = channel.first_weight = weight
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
    channel.rising_weight = channel.first_weight = fsum(
        factor * user.demand for user, factor in channel.users if user.filling == mark and user.level < 0
    )
