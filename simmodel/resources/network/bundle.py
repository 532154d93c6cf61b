"""The shared capacities that flows use, and the bundles in which they share one virtual time.

Flows that always have the same level (same channels, same cap) form a bundle with one virtual clock: the progress of a
flow of weight 1 since the bundle began. A flow ends when the clock reaches the mark set at its start, so a change of
rates updates the bundle, not its flows. Clock and marks are pairs of floats: small flows keep their precision on
clocks that have run for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf, nan
from typing import Any, Final, Protocol, SupportsFloat, TypeAlias

from simmodel.form import mypyc_attr
from simmodel.foundation.pickling import Attributes, attributes, set_attributes
from simmodel.foundation.subclasses import refuse_properties

__all__ = ["KEPT", "Bundle", "Channel", "Clockwork", "Group", "set_speeds"]


_ROUNDING: Final = 4.5e-16  # two steps between floats

Seconds: TypeAlias = Any
"""An instant, as it is given: compiled, a ``float`` would make one of each whole number."""
Entry: TypeAlias = Any
"""A tuple that is the same object wherever it stands: compiled, a typed tuple would be made again at each place."""

KEPT: Final = -1.0
"""The due time of bundles whose :class:`Clockwork` has their clock."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Channel:
    """A shared capacity: a link, or the cores of a host.

    Parameters
    ----------
    name, capacity
        its name, and the amount that its users share per second

    Attributes
    ----------
    bound, load, saturated, users
        the amount that users share, and that used; whether that is all; the groups that use it, each with its factor
    place
        its number in a crowd; 0: none
    full_at, queued
        the level at which it is used up; whether that is to be found again
    filling, room, rising, rising_weight, first_weight, has_others
        of one filling: its number; the capacity left; the number of rates that still rise, and the sum of their weights
        now and at first; whether others than those filled use the channel

    >>> Channel("backbone", 60.0)
    <Channel backbone of 60.0, 0.0 used>
    """

    __slots__ = (
        "bound",
        "filling",
        "first_weight",
        "full_at",
        "has_others",
        "load",
        "name",
        "place",
        "queued",
        "rising",
        "rising_weight",
        "room",
        "saturated",
        "users",
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_properties(cls, __name__)

    def __init__(self, name: str, capacity: SupportsFloat) -> None:
        self.name = name
        self.bound = float(capacity)
        self.load = 0.0
        self.saturated = False
        self.full_at = inf
        self.queued = False
        self.users: list[tuple[Group, float]] = []
        self.place = 0
        self.filling = 0
        self.room = self.rising_weight = self.first_weight = 0.0
        self.rising = 0
        self.has_others = False

    @property
    def capacity(self) -> float:
        """The most that the rates over it add up to."""
        return self.bound

    @capacity.setter
    def capacity(self, value: SupportsFloat) -> None:
        self.bound = float(value)

    def __getstate__(self) -> Attributes:
        return attributes(self)

    def __setstate__(self, values: Attributes) -> None:
        set_attributes(self, values)

    def __repr__(self) -> str:
        return f"<Channel {self.name} of {self.capacity}, {self.load} used>"


@mypyc_attr(allow_interpreted_subclasses=True)
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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_properties(cls, __name__)

    def __init__(
        self, uses: Sequence[tuple[Channel, SupportsFloat]], demand: SupportsFloat = 0.0, ceiling: SupportsFloat = inf
    ) -> None:
        self.uses = tuple([(channel, float(factor)) for channel, factor in uses])
        self.demand = float(demand)
        self.ceiling = float(ceiling)
        self.level = self.ceiling
        self.row = -1
        self.filling = 0
        self.entries: tuple[tuple[Channel, Entry], ...] = tuple(
            [(channel, (self, factor)) for channel, factor in self.uses]
        )

    def __getstate__(self) -> Attributes:
        return attributes(self)

    def __setstate__(self, values: Attributes) -> None:
        set_attributes(self, values)


class Clockwork(Protocol):
    """A keeper of the clocks of many bundles, such as :class:`~simmodel.resources.network.fluid.Clocks`."""

    def read(self, bundle: Bundle) -> None:
        """Set the clock of a bundle."""
        ...

    def drop(self, bundle: Bundle) -> None:
        """Forget a bundle."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Bundle(Group):
    """Flows that share one level.

    Parameters
    ----------
    uses
        the shared channels, each with its factor (load = factor * rate)
    pipes
        the capacities that bound each rate separately
    cap
        the upper bound of each rate
    unit
        the weight of each flow if cap or pipes bind (then it is the same for all)
    scale
        the factor on the weights of the flows (the model's weight of a route)
    number
        the tie-breaker between bundles

    >>> Bundle([(Channel("link", 100.0), 1.0)], cap=30.0, unit=2.0).ceiling
    15.0
    """

    __slots__ = (
        "cap",
        "clocks",
        "count",
        "due",
        "heap",
        "high",
        "key",
        "low",
        "number",
        "owner",
        "pipe_entry",
        "pipes",
        "plain",
        "rest",
        "scale",
        "since",
        "speed",
        "unit",
        "weight",
    )

    def __init__(
        self,
        uses: Sequence[tuple[Channel, SupportsFloat]],
        pipes: Sequence[Channel] = (),
        cap: SupportsFloat = inf,
        unit: SupportsFloat = 1.0,
        scale: SupportsFloat = 1.0,
        number: int = 0,
    ) -> None:
        super().__init__(uses)
        self.pipes = tuple(pipes)
        self.cap = float(cap)
        self.unit = float(unit)
        self.scale = float(scale)
        self.count = 0
        self.owner: Any = None
        self.key: Entry = (cap, unit)  # among the bundles of its owner
        self.plain = False  # whether its first and its last flow concern nobody
        self.number = number
        self.pipe_entry: Entry = (self, 1.0)
        # The sum of the flows' weights, and its rounding error.
        self.weight = self.rest = 0.0
        # Flows by the mark at which they end; entries of removed flows stay until they reach the top.
        self.heap: list[Entry] = []
        # The virtual time at the instant ``since``, and its speed.
        self.high = self.low = self.speed = 0.0
        self.since: Seconds = 0.0
        # When the next flow ends; nan until settled; KEPT: the clocks have it, and the virtual time.
        self.due: Seconds = nan
        self.clocks: Clockwork | None = None
        self.fit()

    def fit(self) -> None:
        """Compute the ceiling from the current cap and pipes."""
        most = self.cap
        for pipe in self.pipes:
            if pipe.bound < most:
                most = pipe.bound
        self.ceiling = most / (self.unit * self.scale)

    def advance(self, now: Seconds) -> None:
        """Advance the virtual time to ``now``."""
        if self.due == KEPT:
            self.read()
        passed = float(now - self.since)
        if passed > 0:
            self.since = now
            self._push(self.speed * passed)

    def read(self) -> None:
        """Read the virtual time from the clocks if these have it."""
        if self.due == KEPT and self.clocks is not None:
            self.clocks.read(self)

    def _push(self, step: float) -> None:
        high = self.high
        total = high + step
        part = total - high
        self.low += (high - (total - part)) + (step - part)
        self.high = total

    def mark(self, ahead: SupportsFloat) -> tuple[float, float]:
        """Return the virtual time a step ahead, as a pair of floats."""
        high, step = self.high, float(ahead)
        total = high + step
        part = total - high
        rest = self.low + ((high - (total - part)) + (step - part))
        top = total + rest
        return top, rest - (top - total)

    def weigh(self, more: SupportsFloat) -> None:
        """Add a weight, which may be negative, with compensated summation."""
        weight = float(more)
        total = self.weight + weight
        part = total - self.weight
        self.rest += (self.weight - (total - part)) + (weight - part)
        self.weight = total
        self.demand = (total + self.rest) * self.scale

    def head(self) -> Entry:
        """Return the entry of the flow that ends next."""
        heap = self.heap
        while True:
            entry = heap[0]
            if entry[3].entry is entry:
                return entry
            heappop(heap)

    def pop_ended(self, now: Seconds) -> list[Any]:
        """Remove the flows that end now from the heap, and return them: the head, and those equal up to rounding."""
        # The head ends now, so its mark is the virtual time, without rounding.
        entry = self.head()
        top, rest, flow = float(entry[0]), float(entry[1]), entry[3]
        self.high = top
        self.low = rest
        self.since = now
        heap = self.heap
        near = float(self.speed * now * _ROUNDING)
        ended: list[Any] = []
        while True:
            heappop(heap)
            flow.entry = flow.bundle = None
            flow.kept = 0.0
            ended.append(flow)
            if len(ended) == self.count:
                return ended
            entry = self.head()
            if (float(entry[0]) - top) + (float(entry[1]) - rest) > near:
                return ended
            flow = entry[3]

    def ahead(self, entry: Entry, now: Seconds) -> float:
        """Return how far the virtual time is from a mark at an instant, as after :meth:`advance`; change nothing."""
        self.read()
        high, low = self.high, self.low
        passed = float(now - self.since)
        if passed > 0:
            step = self.speed * passed
            total = high + step
            part = total - high
            low += (high - (total - part)) + (step - part)
            high = total
        return (float(entry[0]) - high) + (float(entry[1]) - low)


def set_speeds(
    bundles: list[Bundle], progress: float, now: Seconds, calendar: list[tuple[Seconds, int, Bundle]]
) -> None:
    """Let bundles go on at the speeds of their levels from now on, and add the ends of their next flows to a calendar.

    A hot path. ``progress``: the share of a rate that is payload.
    """
    for bundle in bundles:
        speed = bundle.scale * bundle.level * progress
        due = bundle.due
        if speed == bundle.speed and due == due != KEPT:
            continue
        bundle.advance(now)
        bundle.speed = speed
        entry = bundle.head()
        top, rest = float(entry[0]), float(entry[1])
        ahead = (top - bundle.high) + (rest - bundle.low)
        due = now + ahead / speed if speed > 0 else inf
        if due < now:
            due = now
        bundle.due = due
        if due < inf:
            heappush(calendar, (due, bundle.number, bundle))
