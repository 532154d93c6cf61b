"""Flows, the shared capacities that they use, and the bundles in which they share one virtual time.

Flows that always have the same level (same channels, same cap) form a bundle with one virtual clock: the progress of a
flow of weight 1 since the bundle began. A flow ends when the clock reaches the mark set at its start, so a change of
rates updates the bundle, not its flows. Clock and marks are pairs of floats: small flows keep their precision on
clocks that have run for long.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.foundation.errors import SimmodelError, _error
from simmodel.resources.network.bundle import KEPT, Bundle, Channel, Clockwork, Group

__all__ = ["KEPT", "Bundle", "Cancelled", "Carrier", "Channel", "Clockwork", "Flow", "Group"]


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
        self.weight = float(weight)
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
