"""Max-min fair levels of many groups at once: the groups of a solver in columns, filled with numpy.

A change in a network with thousands of flows moves the levels of most of them. Here a channel that is used up fixes all
its users in a few operations on arrays, whereas the loop in :mod:`~simmodel.resources.network.sharing` takes them one
by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.network.flow import Channel, Group

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

__all__ = ["Crowd", "fill_levels"]

_FREE = -1.0  # the level of a row without a group


class Crowd:
    """The groups of a solver in columns: row i holds a group, its demand, ceiling and level, and where it flows.

    Channels are numbered from 1; 0 pads the routes of groups with few channels.

    >>> from simmodel.resources.network.flow import Channel, Group
    >>> backbone, access = Channel("backbone", 60.0), Channel("access", 10.0)
    >>> near, far = Group(((backbone, 1.0),), 2.0), Group(((access, 1.0), (backbone, 1.0)), 1.0)
    >>> crowd = Crowd([near, far]); _ = crowd.solve({backbone: None}, {near: None, far: None}, 0.0)
    >>> crowd.level[:2].tolist(), backbone.load
    ([25.0, 10.0], 60.0)
    """

    def __init__(self, groups: Iterable[Group]) -> None:
        self.groups: list[Group | None] = []
        self.demand: Floats = np.zeros(1024)
        self.ceiling: Floats = np.full(1024, inf)
        self.level: Floats = np.full(1024, _FREE)
        self.moved: Places = np.empty(0, np.intp)  # rows that the last solution moved, without announced changes
        self._behind: NDArray[np.bool_] = np.zeros(1024, np.bool_)  # rows whose groups have not been told their level
        self._chan: Places = np.zeros((1024, 2), np.intp)
        self._factor: Floats = np.zeros((1024, 2))
        self._free: list[int] = []
        self._channels: list[Channel] = []
        self._capacity: Floats = np.full(64, inf)
        self._load: Floats = np.zeros(64)
        for group in groups:
            self.add(group)

    def add(self, group: Group) -> None:
        """Give a group a row."""
        if self._free:
            row = self._free.pop()
            self.groups[row] = group
        else:
            row = len(self.groups)
            self.groups.append(group)
            if row == len(self.level):
                self._lengthen()
        group.row = row
        self.demand[row] = group.demand
        self.ceiling[row] = group.ceiling
        self.level[row] = group.level
        if len(group.uses) > self._chan.shape[1]:
            wider = ((0, 0), (0, len(group.uses) - self._chan.shape[1]))
            self._chan, self._factor = np.pad(self._chan, wider), np.pad(self._factor, wider)
        self._chan[row] = 0
        self._factor[row] = 0.0
        for k, (channel, factor) in enumerate(group.uses):
            self._chan[row, k] = channel.place or self._number(channel)
            self._factor[row, k] = factor

    def remove(self, group: Group) -> None:
        """Free the row of a group."""
        row = group.row
        self.groups[row] = None
        self.demand[row] = 0.0
        self.level[row] = _FREE
        self._free.append(row)
        group.row = -1

    def close(self) -> None:
        """Copy the levels to the groups, and free them and their channels."""
        self.tell()
        for group in self.groups:
            if group is not None:
                group.row = -1
        for channel in self._channels:
            channel.place = 0

    def _number(self, channel: Channel) -> int:
        self._channels.append(channel)
        channel.place = place = len(self._channels)
        if place == len(self._capacity):
            self._capacity = np.concatenate((self._capacity, np.full(place, inf)))
            self._load = np.concatenate((self._load, np.zeros(place)))
        self._capacity[place] = channel.bound
        self._load[place] = channel.load
        return place

    def _lengthen(self) -> None:
        more = len(self.level)
        self.demand = np.concatenate((self.demand, np.zeros(more)))
        self.ceiling = np.concatenate((self.ceiling, np.full(more, inf)))
        self.level = np.concatenate((self.level, np.full(more, _FREE)))
        self._behind = np.concatenate((self._behind, np.zeros(more, np.bool_)))
        self._chan = np.concatenate((self._chan, np.zeros_like(self._chan)))
        self._factor = np.concatenate((self._factor, np.zeros_like(self._factor)))

    def tell(self) -> list[Group]:
        """Copy the levels to the groups; return those that the last solution moved."""
        rows = np.flatnonzero(self._behind)
        for row, level in zip(rows.tolist(), self.level[rows].tolist(), strict=True):
            group = self.groups[row]
            if group is not None:
                group.level = level
        self._behind[rows] = False
        return [group for row in self.moved.tolist() if (group := self.groups[row]) is not None]

    def take(self, groups: Iterable[Group], channels: Iterable[Channel]) -> None:
        """Copy a solution that was found without the columns."""
        self.moved = self.moved[:0]
        for channel in channels:
            if channel.place:
                self._capacity[channel.place] = channel.bound
                self._load[channel.place] = channel.load
        for group in groups:
            row = group.row
            self.demand[row] = group.demand
            self.ceiling[row] = group.ceiling
            self.level[row] = group.level

    def solve(self, seeds: Iterable[Channel], changed: Iterable[Group], floor: float) -> list[Channel]:
        """Update the levels after changes of channels and groups; return the channels whose load may have changed.

        The changed groups get their levels at once; the other groups with a new one are the rows ``moved``.
        """
        changed = list(changed)
        for group in changed:
            self.demand[group.row] = group.demand
            self.ceiling[group.row] = group.ceiling
        for channel in seeds:
            if channel.place:
                self._capacity[channel.place] = channel.bound
        weight = self._factor[: len(self.groups)] * self.demand[: len(self.groups), None]
        for channel in seeds:
            if channel.place:
                floor = min(floor, self._level_of_change(channel, weight))
        old = self.level[: len(self.groups)].copy()
        while True:
            # As in Sharing: levels that differ only by rounding belong together.
            floor *= 1 - 1e-9
            lowest = self._fill_above(floor, old, weight)
            if lowest >= floor or not floor:
                break
            floor = lowest
        level = self.level[: len(self.groups)]
        for group in changed:
            group.level = float(level[group.row])
            old[group.row] = group.level
        self.moved = np.flatnonzero(level != old)
        self._behind[self.moved] = True
        return self._tell_loads(seeds, weight)

    def _level_of_change(self, channel: Channel, weight: Floats) -> float:
        """Return the level from which a changed channel limits its users; infinity: no more than before."""
        entries = np.flatnonzero(self._chan[: len(self.groups)].ravel() == channel.place)
        part, level = weight.ravel()[entries], self.level[entries // weight.shape[1]]
        capacity = channel.bound
        if not len(part) or (part * level).sum() <= capacity * (1 + 1e-12):
            return inf
        # Water-filling of this channel alone: users below the mean level leave the rest of their share to the others.
        while True:
            mean = capacity / float(part.sum()) if capacity > 0 else 0.0
            higher = level >= mean
            if higher.all() or not higher.any():
                return mean
            capacity -= float((part * level)[~higher].sum())
            part, level = part[higher], level[higher]

    def _fill_above(self, floor: float, old: Floats, weight: Floats) -> float:
        """Fill the groups whose level was not below the floor; return the lowest level that was lowered."""
        self.level[: len(self.groups)] = old
        rows = np.flatnonzero(old >= floor)
        if not len(rows):
            return inf
        inside = weight[rows]
        fixed = weight * np.where(old >= floor, 0.0, old)[:, None]
        chan = self._chan[: len(self.groups)]
        count = len(self._channels) + 1
        room = self._capacity[:count] - np.bincount(chan.ravel(), fixed.ravel(), count)
        level = fill_levels(chan[rows], inside, self.ceiling[rows], room)
        self.level[rows] = level
        return float(level.min())

    def _tell_loads(self, seeds: Iterable[Channel], weight: Floats) -> list[Channel]:
        """Set the loads of the channels; return those that may have changed."""
        count = len(self._channels) + 1
        rates = weight * self.level[: len(self.groups), None]
        loads = np.bincount(self._chan[: len(self.groups)].ravel(), rates.ravel(), count)
        loads[0] = 0.0
        told = dict.fromkeys(seeds)
        for place in np.flatnonzero(loads != self._load[:count]).tolist():
            told[self._channels[place - 1]] = None
        for channel in told:
            channel.load = load = float(loads[channel.place])
            channel.saturated = load >= channel.bound * (1 - 1e-9)
        self._load[:count] = loads
        return list(told)


def fill_levels(chan: Places, weight: Floats, ceiling: Floats, room: Floats) -> Floats:
    """Return the max-min fair levels of groups.

    Parameters
    ----------
    chan
        for each group, the numbers of its channels
    weight
        for each group, the load of each of these channels at level 1; 0: not used
    ceiling
        the highest level of each group; changed in place
    room
        the capacity of each channel; changed in place

    >>> routes, once = np.array([[1, 0], [0, 0], [0, 0]]), np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    >>> fill_levels(routes, once, np.array([np.inf, np.inf, 20.0]), np.array([60.0, 10.0])).tolist()
    [10.0, 30.0, 20.0]
    """
    # The inner loop of crowded networks, hence its length and the local names: about ten operations a channel.
    count, wide = len(room), chan.shape[1]
    flat = chan.ravel()
    # The users of each channel in one piece, and their weights there.
    order = np.argsort(flat.astype(np.int16 if count < 2**15 else np.int32), kind="stable")
    users = order // wide
    own = weight.ravel()[order]
    begins = [0, *np.cumsum(np.bincount(flat, minlength=count)).tolist()]
    total = np.bincount(flat, weight.ravel(), count)
    start = total.copy()
    rising = np.ones(len(chan), np.bool_)
    limit = np.full(count, inf)  # the level at which a channel was used up
    used = np.flatnonzero(total > 0)
    heap = list(zip((np.maximum(room[used], 0.0) / total[used]).tolist(), used.tolist(), strict=True))
    heapify(heap)
    capped = np.flatnonzero(ceiling < inf)
    capped = capped[np.argsort(ceiling[capped], kind="stable")]
    ceilings = ceiling[capped]
    done = 0
    lowest = float(ceilings[0]) if len(capped) else inf
    while heap:
        level, channel = heap[0]
        if lowest <= level:
            upto = int(np.searchsorted(ceilings, level, "right"))
            these = capped[done:upto]
            these = these[rising[these]]
            np.subtract.at(total, chan[these], weight[these])
            np.subtract.at(room, chan[these], weight[these] * ceiling[these][:, None])
            rising[these] = False
            done = upto
            lowest = float(ceilings[done]) if done < len(capped) else inf
            continue
        begin, end = begins[channel], begins[channel + 1]
        if total[channel] < 1e-3 * start[channel]:
            # Subtraction has lost digits.
            total[channel] = start[channel] = own[begin:end] @ rising[users[begin:end]]
            if not start[channel]:
                heappop(heap)
                continue
        left = room[channel]
        now = float(left / total[channel]) if left > 0 else 0.0
        if now > level:
            heapreplace(heap, (now, channel))
            continue
        heappop(heap)
        limit[channel] = level
        these = users[begin:end]
        these = these[rising[these]]
        where = chan[these].ravel()
        part = weight[these].ravel()
        if count <= 1000:
            part = np.bincount(where, part, count)
            total -= part
            room -= level * part
        else:
            np.subtract.at(total, where, part)
            np.subtract.at(room, where, level * part)
        rising[these] = False
    for k in range(wide):
        np.minimum(ceiling, limit[chan[:, k]], out=ceiling)
    return ceiling
