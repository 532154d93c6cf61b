"""Flows, the shared capacities that they use, and the bundles in which they share one virtual time.

Flows that always have the same level (same channels, same cap) form a bundle with one virtual clock: the progress of a
flow of weight 1 since the bundle began. A flow ends when the clock reaches the mark set at its start, so a change of
rates updates the bundle, not its flows. Clock and marks are pairs of floats: small flows keep their precision on
clocks that have run for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop
from math import inf, nan
from types import TracebackType
from typing import Any, Protocol

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.foundation.errors import SimmodelError, _error

__all__ = ["KEPT", "Bundle", "Cancelled", "Carrier", "Channel", "Clockwork", "Flow", "Group"]


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

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.bound = capacity
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
    def capacity(self, value: float) -> None:
        self.bound = value

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


_ROUNDING = 4.5e-16  # two steps between floats

KEPT = -1.0
"""The due time of bundles whose :class:`Clockwork` has their clock."""


@_error
class Cancelled(SimmodelError):
    """A flow was cancelled while a process waited for it, with ``done`` of ``size`` completed.

    >>> raise Cancelled("transfer 1 was cancelled", done=3.0, size=10.0)
    Traceback (most recent call last):
    ...
    simmodel.resources.network.flow.Cancelled: transfer 1 was cancelled
    """

    done: float = 0.0
    size: float = 0.0


class Carrier(Protocol):
    """The interface of a resource that carries flows, such as :class:`~simmodel.resources.network.fluid.Fluid`."""

    env: Environment
    kind: str
    unit: str

    def settle(self) -> None:
        """Update all rates."""
        ...

    def take_out(self, flow: Flow) -> None:
        """Stop a flow in any phase, keeping its remaining size."""
        ...

    def go_on(self, flow: Flow) -> None:
        """Start a flow, or continue one that was stopped."""
        ...

    def let_go(self, flow: Flow) -> None:
        """Remove an ended flow and wake the processes that wait for it."""
        ...


class Clockwork(Protocol):
    """A keeper of the clocks of many bundles, such as :class:`~simmodel.resources.network.fluid.Clocks`."""

    def read(self, bundle: Bundle) -> None:
        """Set the clock of a bundle."""
        ...

    def drop(self, bundle: Bundle) -> None:
        """Forget a bundle."""
        ...


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
        uses: Sequence[tuple[Channel, float]],
        pipes: Sequence[Channel] = (),
        cap: float = inf,
        unit: float = 1.0,
        scale: float = 1.0,
        number: int = 0,
    ) -> None:
        super().__init__(uses)
        self.pipes = tuple(pipes)
        self.cap = cap
        self.unit = unit
        self.scale = scale
        self.count = 0
        self.owner: Any = None
        self.key: tuple[float, float] = (cap, unit)  # among the bundles of its owner
        self.plain = False  # whether its first and its last flow concern nobody
        self.number = number
        self.pipe_entry = (self, 1.0)
        # The sum of the flows' weights, and its rounding error.
        self.weight = self.rest = 0.0
        # Flows by the mark at which they end; entries of removed flows stay until they reach the top.
        self.heap: list[tuple[float, float, int, Flow]] = []
        # The virtual time at the instant ``since``, and its speed.
        self.high = self.low = self.speed = 0.0
        self.since = 0.0
        self.due = nan  # when the next flow ends; nan until settled; KEPT: the clocks have it, and the virtual time
        self.clocks: Clockwork | None = None
        self.fit()

    def fit(self) -> None:
        """Compute the ceiling from the current cap and pipes."""
        most = self.cap
        for pipe in self.pipes:
            if pipe.bound < most:
                most = pipe.bound
        self.ceiling = most / (self.unit * self.scale)

    def advance(self, now: float) -> None:
        """Advance the virtual time to ``now``."""
        if self.due == KEPT:
            self.read()
        passed = now - self.since
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

    def mark(self, step: float) -> tuple[float, float]:
        """Return the virtual time ``step`` ahead, as a pair of floats."""
        high = self.high
        total = high + step
        part = total - high
        rest = self.low + ((high - (total - part)) + (step - part))
        top = total + rest
        return top, rest - (top - total)

    def weigh(self, weight: float) -> None:
        """Add a weight, which may be negative, with compensated summation."""
        total = self.weight + weight
        part = total - self.weight
        self.rest += (self.weight - (total - part)) + (weight - part)
        self.weight = total
        self.demand = (total + self.rest) * self.scale

    def head(self) -> tuple[float, float, int, Flow]:
        """Return the entry of the flow that ends next."""
        heap = self.heap
        while True:
            entry = heap[0]
            if entry[3].entry is entry:
                return entry
            heappop(heap)

    def pop_ended(self, now: float) -> list[Flow]:
        """Remove the flows that end now from the heap, and return them: the head, and those equal up to rounding."""
        # The head ends now, so its mark is the virtual time, without rounding.
        top, rest, _, flow = self.head()
        self.high = top
        self.low = rest
        self.since = now
        heap = self.heap
        near = self.speed * now * _ROUNDING
        ended: list[Flow] = []
        while True:
            heappop(heap)
            flow.entry = flow.bundle = None
            flow.kept = 0.0
            ended.append(flow)
            if len(ended) == self.count:
                return ended
            entry = self.head()
            if (entry[0] - top) + (entry[1] - rest) > near:
                return ended
            flow = entry[3]

    def ahead(self, entry: tuple[float, float, int, Flow], now: float) -> float:
        """Return how far the virtual time is from a mark at an instant, as after :meth:`advance`; change nothing."""
        self.read()
        high, low = self.high, self.low
        passed = now - self.since
        if passed > 0:
            step = self.speed * passed
            total = high + step
            part = total - high
            low += (high - (total - part)) + (step - part)
            high = total
        return (entry[0] - high) + (entry[1] - low)


class Flow(Event):
    """Work in flight: an event that happens when it is complete.

    Leaving a ``with`` block around it cancels the remaining work, also on an interrupt. ``status`` is ``"waiting"``
    (in its latency), ``"moving"``, ``"paused"``, ``"done"`` or ``"cancelled"``; ``start`` and ``end`` are in s. While
    moving, it has an ``entry`` in a ``bundle``; ``kept`` is the work left when it last stopped. ``inside``: only the
    system that owns it waits for it, with one callback, so that its end need not pass the event queue.

    >>> from simmodel.resources import Host
    >>> env = Environment()
    >>> flow = Host(env, 100.0).execute(1000.0)
    >>> env.run(until=4); flow.pause(), flow.left, flow.status
    (400.0, 600.0, 'paused')
    >>> env.run(until=10); flow.resume(); env.run(); flow.end
    16.0
    """

    inside = False
    end: float | None = None
    status = "waiting"
    bundle: Bundle | None = None
    entry: tuple[float, float, int, Flow] | None = None

    def __init__(self, fluid: Carrier, number: int, size: float, weight: float) -> None:
        env = fluid.env
        self.env = env
        self.callbacks = []
        self.fluid = fluid
        self.number = number
        self.size = size
        self.weight = weight
        self.start: float = env._now
        self.kept = size

    def __enter__(self) -> Flow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    @property
    def left(self) -> float:
        """The remaining work at this instant."""
        bundle, entry = self.bundle, self.entry
        if bundle is None or entry is None:
            return self.kept
        left = bundle.ahead(entry, self.env._now) * self.weight
        return min(max(left, 0.0), self.size)

    @property
    def done(self) -> float:
        """The work done by this instant."""
        return self.size - self.left

    @property
    def rate(self) -> float:
        """The rate at this instant, per second; zero while it waits, is paused or has ended."""
        if self.bundle is None:
            return 0.0
        self.fluid.settle()
        self.bundle.read()
        return self.bundle.speed * self.weight

    def cancel(self) -> float:
        """Cancel it and return the work done; waiting processes get :class:`Cancelled`. No effect once it has ended."""
        if self.end is None:
            self.fluid.take_out(self)
            self._end_early("cancelled", Cancelled(self._ended_early("was cancelled"), self.done, self.size))
        return self.done

    def _end_early(self, status: str, error: Cancelled) -> None:
        self.status = status
        self.end = self.env._now
        self._ok = False
        self._value = error
        self._defused = True
        self.fluid.let_go(self)

    def finish(self) -> None:
        """End it as done."""
        self.kept = 0.0
        self.entry = self.bundle = None
        self.end = self.env._now
        self.status = "done"
        self._ok = True
        self._value = self._result()
        self.fluid.let_go(self)

    def pause(self) -> float:
        """Pause it and return the work done, which is kept; no effect while paused or once it has ended."""
        if self.end is None and self.status != "paused":
            self.fluid.take_out(self)
            self.status = "paused"
        return self.done

    def resume(self) -> None:
        """Continue after :meth:`pause`."""
        if self.status == "paused":
            self.fluid.go_on(self)

    def describe(self) -> str:
        """Describe the flow and its progress."""
        return f"{self._title()}, {self.done:g} of {self.size:g} {self.fluid.unit} done, {self.status}"

    def _title(self) -> str:
        return f"{self.fluid.kind} {self.number}"

    def _ended_early(self, how: str) -> str:
        return f"{self._title()} {how} at {self.env._now:g} with {self.done:g} of {self.size:g} done"

    def _result(self) -> object:
        return None

    def _desc(self) -> str:
        return f"{type(self).__name__}({self._title()})"
