"""Flows, and the bundles in which they share one virtual time.

Flows that always have the same level (same channels, same cap) form a bundle with one virtual time: what a flow of
weight 1 would have got since the bundle began. A flow ends when that clock reaches the mark that it was given at its
start, so a change of rates touches the bundle, not its flows. Clock and marks are kept in two floats each: small flows
keep their digits on clocks that ran for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop
from math import inf, nan
from types import TracebackType
from typing import Any, Protocol

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.errors import SimmodelError, _error
from simmodel.resources.sharing import Channel, Group

__all__ = ["Bundle", "Cancelled", "Carrier", "Flow"]


@_error
class Cancelled(SimmodelError):
    """A flow was given up by ``cancel`` while somebody waited for it; ``done`` of ``size`` had been moved.

    >>> raise Cancelled("transfer 1 was cancelled", done=3.0, size=10.0)
    Traceback (most recent call last):
    ...
    simmodel.resources.flow.Cancelled: transfer 1 was cancelled
    """

    done: float = 0.0
    size: float = 0.0


class Carrier(Protocol):
    """What a flow asks of the resource that it moves in; a :class:`~simmodel.resources.fluid.Fluid` is one."""

    env: Environment
    kind: str
    unit: str

    def settle(self) -> None:
        """Bring all rates up to date."""
        ...

    def take_out(self, flow: Flow) -> None:
        """Stop a flow wherever it is, keeping what is left of it."""
        ...

    def go_on(self, flow: Flow) -> None:
        """Let a flow move on that was stopped, or start one."""
        ...

    def let_go(self, flow: Flow) -> None:
        """Forget a flow that is over, and tell who waits for it."""
        ...


class Bundle(Group):
    """Flows that have one level in common.

    Parameters
    ----------
    uses
        the shared channels, each with how many times a rate it takes there
    pipes
        the capacities that bound each rate by itself
    cap
        the most that one rate may be
    unit
        the weight of each flow where cap or pipes bind (then it is the same for all)
    scale
        what the weight of a flow is multiplied by (the model's weight of a route)
    number
        what ties between bundles are broken by

    >>> Bundle([(Channel("link", 100.0), 1.0)], cap=30.0, unit=2.0).ceiling
    15.0
    """

    __slots__ = (
        "cap",
        "count",
        "due",
        "heap",
        "high",
        "low",
        "number",
        "owner",
        "pipe_entry",
        "pipes",
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
        self.number = number
        self.pipe_entry = (self, 1.0)
        # The sum of the flows' weights and what rounding has cut off it.
        self.weight = self.rest = 0.0
        # Flows by the mark at which they end; entries of flows that left stay until they come up.
        self.heap: list[tuple[float, float, int, Flow]] = []
        # The virtual time at the instant ``_since``, and how fast it runs.
        self.high = self.low = self.speed = 0.0
        self.since = 0.0
        self.due = nan  # when the next flow ends; not a number while that is not settled
        self.fit()

    def fit(self) -> None:
        """Take the ceiling from the cap and the pipes as they are."""
        most = self.cap
        for pipe in self.pipes:
            if pipe.capacity < most:
                most = pipe.capacity
        self.ceiling = most / (self.unit * self.scale)

    def advance(self, now: float) -> None:
        """Bring the virtual time to ``now``."""
        passed = now - self.since
        if passed > 0:
            self.since = now
            self._push(self.speed * passed)

    def _push(self, step: float) -> None:
        high = self.high
        total = high + step
        part = total - high
        self.low += (high - (total - part)) + (step - part)
        self.high = total

    def mark(self, step: float) -> tuple[float, float]:
        """Return the virtual time ``step`` ahead, in two floats."""
        high = self.high
        total = high + step
        part = total - high
        rest = self.low + ((high - (total - part)) + (step - part))
        top = total + rest
        return top, rest - (top - total)

    def weigh(self, weight: float) -> None:
        """Add a weight (or take a negative one away), keeping what rounding cuts off."""
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


class Flow(Event):
    """Work under way: an event that happens when all of it is done.

    Leaving a ``with`` block around it cancels what is not done, also on an interrupt. ``status`` is ``"waiting"``
    (a latency), ``"moving"``, ``"paused"``, ``"done"`` or ``"cancelled"``; ``start`` and ``end`` are in s. While it
    moves, it has an ``entry`` in a ``bundle``; ``kept`` is what was left when it last stood still.

    >>> from simmodel.resources import Host
    >>> env = Environment()
    >>> flow = Host(env, 100.0).execute(1000.0)
    >>> env.run(until=4); flow.pause(), flow.left, flow.status
    (400.0, 600.0, 'paused')
    >>> env.run(until=10); flow.resume(); env.run(); flow.end
    16.0
    """

    def __init__(self, fluid: Carrier, number: int, size: float, weight: float) -> None:
        env = fluid.env
        self.env = env
        self.callbacks = []
        self.fluid = fluid
        self.number = number
        self.size = size
        self.weight = weight
        self.start: float = env._now
        self.end: float | None = None
        self.status = "waiting"
        self.kept = size
        self.bundle: Bundle | None = None
        self.entry: tuple[float, float, int, Flow] | None = None

    def __enter__(self) -> Flow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    @property
    def left(self) -> float:
        """What is left to do, at this instant."""
        bundle, entry = self.bundle, self.entry
        if bundle is None or entry is None:
            return self.kept
        bundle.advance(self.env._now)
        left = ((entry[0] - bundle.high) + (entry[1] - bundle.low)) * self.weight
        return min(max(left, 0.0), self.size)

    @property
    def done(self) -> float:
        """What has been done, at this instant."""
        return self.size - self.left

    @property
    def rate(self) -> float:
        """How fast it moves at this instant, per second; zero while it waits, pauses or is over."""
        if self.bundle is None:
            return 0.0
        self.fluid.settle()
        return self.bundle.speed * self.weight

    def cancel(self) -> float:
        """Give it up, and return what has been done; who waits for it gets :class:`Cancelled`. No effect when over."""
        if self.end is None:
            self.fluid.take_out(self)
            self.status = "cancelled"
            self.end = self.env._now
            self._ok = False
            self._value = Cancelled(self._was_cancelled(), self.done, self.size)
            self._defused = True
            self.fluid.let_go(self)
        return self.done

    def finish(self) -> None:
        """End it: nothing of it is left."""
        self.kept = 0.0
        self.entry = self.bundle = None
        self.end = self.env._now
        self.status = "done"
        self._ok = True
        self._value = self._result()
        self.fluid.let_go(self)

    def pause(self) -> float:
        """Hold it, keeping what has been done, which is returned; no effect while paused or when over."""
        if self.end is None and self.status != "paused":
            self.fluid.take_out(self)
            self.status = "paused"
        return self.done

    def resume(self) -> None:
        """Go on where :meth:`pause` held it."""
        if self.status == "paused":
            self.fluid.go_on(self)

    def describe(self) -> str:
        """Say what it is and how far it is."""
        return f"{self._title()}, {self.done:g} of {self.size:g} {self.fluid.unit} done, {self.status}"

    def _title(self) -> str:
        return f"{self.fluid.kind} {self.number}"

    def _was_cancelled(self) -> str:
        return f"{self._title()} was cancelled at {self.env._now:g} with {self.done:g} of {self.size:g} done"

    def _result(self) -> object:
        return None

    def _desc(self) -> str:
        return f"{type(self).__name__}({self._title()})"
