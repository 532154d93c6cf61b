"""Shared capacities, and the rates that use them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

__all__ = ["Channel", "Group"]


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
        "place",
        "saturated",
        "users",
    )

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = capacity
        self.load = 0.0
        self.saturated = False
        self.users: list[tuple[Group, float]] = []
        self.place = 0  # its number in a crowd; 0: none
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

    __slots__ = ("_entries", "_mark", "ceiling", "demand", "level", "row", "uses")

    def __init__(self, uses: Sequence[tuple[Channel, float]], demand: float = 0.0, ceiling: float = inf) -> None:
        self.uses = tuple(uses)
        self.demand = demand
        self.ceiling = ceiling
        self.level = ceiling
        self.row = -1  # its row in a crowd, which then has the level; -1: none
        self._mark = 0
        self._entries = tuple((channel, (self, factor)) for channel, factor in self.uses)
