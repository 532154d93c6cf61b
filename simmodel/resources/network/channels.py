"""Shared capacities, and the rates that use them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

__all__ = ["Channel", "Group"]


class Channel:
    """A shared capacity: a link, or the cores of a host.

    Parameters
    ----------
    name, capacity
        its name, and the amount that its users share per second

    Attributes
    ----------
    load, saturated, users
        the amount used; whether that is all; the groups that use it, each with its factor
    place
        its number in a crowd; 0: none
    filling, room, rising, rising_weight, first_weight, has_others
        of one filling: its number; the capacity left; the number of rates that still rise, and the sum of their weights
        now and at first; whether others than those filled use the channel

    >>> Channel("backbone", 60.0)
    <Channel backbone of 60.0, 0.0 used>
    """

    __slots__ = (
        "capacity",
        "filling",
        "first_weight",
        "has_others",
        "load",
        "name",
        "place",
        "rising",
        "rising_weight",
        "room",
        "saturated",
        "users",
    )

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = capacity
        self.load = 0.0
        self.saturated = False
        self.users: list[tuple[Group, float]] = []
        self.place = 0
        self.filling = 0
        self.room = self.rising_weight = self.first_weight = 0.0
        self.rising = 0
        self.has_others = False

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

    Attributes
    ----------
    level
        their common rate per weight; infinite if nothing limits them
    row
        its row in a crowd, which then has the level; -1: none
    filling, entries
        the number of the latest filling; for each channel, the pair that stands for the group among its users

    >>> link = Channel("link", 100.0)
    >>> Group(((link, 1.0),), 2.0).level
    inf
    """

    __slots__ = ("ceiling", "demand", "entries", "filling", "level", "row", "uses")

    def __init__(self, uses: Sequence[tuple[Channel, float]], demand: float = 0.0, ceiling: float = inf) -> None:
        self.uses = tuple(uses)
        self.demand = demand
        self.ceiling = ceiling
        self.level = ceiling
        self.row = -1
        self.filling = 0
        self.entries = tuple((channel, (self, factor)) for channel, factor in self.uses)
