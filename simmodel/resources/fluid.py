"""Work that flows at shared rates: progress in virtual time, and one pending wake-up for all that is under way.

A network's transfers and a host's computations are flows. Flows that always have the same level (same channels, same
cap) form a bundle with one virtual time: what a flow of weight 1 would have got since the bundle began. A flow ends
when that clock reaches the mark that it was given at its start, so a change of rates touches the bundle, not its flows.
The clock and the marks are kept in two floats each: small flows keep their digits on clocks that ran for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import inf, nan
from types import TracebackType
from typing import Any

from simpy.events import NORMAL, Event

from simmodel.environment import END, Environment, Occurrence
from simmodel.errors import SimmodelError, _error
from simmodel.resources.sharing import Channel, Group, Sharing

__all__ = ["Alarm", "Bundle", "Cancelled", "Flow", "Fluid"]

_SETTLE_RANK = -1  # rates are settled before any scheduler decides
_ROUNDING = 4.5e-16  # two steps between floats


@_error
class Cancelled(SimmodelError):
    """A flow was given up by ``cancel`` while somebody waited for it; ``done`` of ``size`` had been moved."""

    done: float = 0.0
    size: float = 0.0


class _Ring(Occurrence):
    __slots__ = ()

    def __init__(self, callbacks: tuple[Callable[[object], object]]) -> None:
        self.callbacks = callbacks


class Alarm:
    """A wake-up that can be moved: at most one is pending.

    >>> env = Environment()
    >>> alarm = Alarm(env, lambda: print("woke at", env.now))
    >>> alarm.set(10); alarm.set(3); env.run()
    woke at 3
    >>> env.now
    3
    """

    __slots__ = ("_call", "_callbacks", "_env", "_ring", "at")

    def __init__(self, env: Environment, call: Callable[[], object]) -> None:
        self.at = inf
        self._env = env
        self._call = call
        self._callbacks = (self._fire,)
        self._ring: _Ring | None = None

    def set(self, at: float) -> None:
        """Wake up at a time (s) that is not past, and not at the one asked for before; infinity: not at all."""
        if at == self.at:
            return
        env = self._env
        if self._ring is not None:
            env.withdraw(self._ring)
            self._ring = None
        self.at = at
        if at < inf:
            self._ring = ring = _Ring(self._callbacks)
            heappush(env._queue, (at, END, next(env._eid), ring))  # type: ignore[misc]

    def _fire(self, _: object) -> None:
        self._ring = None
        self.at = inf
        self._call()


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
    """

    __slots__ = (
        "_due",
        "_heap",
        "_high",
        "_low",
        "_number",
        "_pipe_entry",
        "_rest",
        "_since",
        "_speed",
        "_weight",
        "cap",
        "count",
        "owner",
        "pipes",
        "scale",
        "unit",
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
        self._number = number
        self._pipe_entry = (self, 1.0)
        # The sum of the flows' weights and what rounding has cut off it.
        self._weight = self._rest = 0.0
        # Flows by the mark at which they end; entries of flows that left stay until they come up.
        self._heap: list[tuple[float, float, int, Flow]] = []
        # The virtual time at the instant ``_since``, and how fast it runs.
        self._high = self._low = self._speed = 0.0
        self._since = 0.0
        self._due = nan  # when the next flow ends; not a number while that is not settled
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
        passed = now - self._since
        if passed > 0:
            self._since = now
            self._push(self._speed * passed)

    def _push(self, step: float) -> None:
        high = self._high
        total = high + step
        part = total - high
        self._low += (high - (total - part)) + (step - part)
        self._high = total

    def mark(self, step: float) -> tuple[float, float]:
        """Return the virtual time ``step`` ahead, in two floats."""
        high = self._high
        total = high + step
        part = total - high
        rest = self._low + ((high - (total - part)) + (step - part))
        top = total + rest
        return top, rest - (top - total)

    def weigh(self, weight: float) -> None:
        """Add a weight (or take a negative one away), keeping what rounding cuts off."""
        total = self._weight + weight
        part = total - self._weight
        self._rest += (self._weight - (total - part)) + (weight - part)
        self._weight = total
        self.demand = (total + self._rest) * self.scale

    def head(self) -> tuple[float, float, int, Flow]:
        """Return the entry of the flow that ends next."""
        heap = self._heap
        while True:
            entry = heap[0]
            if entry[3]._entry is entry:
                return entry
            heappop(heap)


class Flow(Event):
    """Work under way: an event that happens when all of it is done.

    Leaving a ``with`` block around it cancels what is not done, also on an interrupt.
    """

    def __init__(self, fluid: Fluid, number: int, size: float, weight: float) -> None:
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
        self._left = size
        self._bundle: Bundle | None = None
        self._entry: tuple[float, float, int, Flow] | None = None

    def __enter__(self) -> Flow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    @property
    def left(self) -> float:
        """What is left to do, at this instant."""
        bundle, entry = self._bundle, self._entry
        if bundle is None or entry is None:
            return self._left
        bundle.advance(self.env._now)
        left = ((entry[0] - bundle._high) + (entry[1] - bundle._low)) * self.weight
        return min(max(left, 0.0), self.size)

    @property
    def done(self) -> float:
        """What has been done, at this instant."""
        return self.size - self.left

    @property
    def rate(self) -> float:
        """How fast it moves at this instant, per second; zero while it waits, pauses or is over."""
        if self._bundle is None:
            return 0.0
        self.fluid.settle()
        return self._bundle._speed * self.weight

    def cancel(self) -> float:
        """Give it up, and return what has been done; who waits for it gets :class:`Cancelled`. No effect when over."""
        if self.end is None:
            self.fluid._stop(self)
            self.status = "cancelled"
            self.end = self.env._now
            self._ok = False
            self._value = Cancelled(self._was_cancelled(), self.done, self.size)
            self._defused = True
            self.fluid._trigger(self)
        return self.done

    def pause(self) -> float:
        """Hold it, keeping what has been done, which is returned; no effect while paused or when over."""
        if self.end is None and self.status != "paused":
            self.fluid._stop(self)
            self.status = "paused"
        return self.done

    def resume(self) -> None:
        """Go on where :meth:`pause` held it."""
        if self.status == "paused":
            self.fluid._go_on(self)

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


class Fluid:
    """A resource of channels that flows share: the common part of :class:`Network` and :class:`Host`.

    A flow's start or end is announced to the solver at once and solved for when the instant is over, so that many
    changes of one instant cost one solution. Due times of bundles wait in a calendar of the resource's own; the
    environment's queue holds one wake-up, for the first of them.
    """

    kind = "flow"
    unit = ""
    carrier = "channel"

    def __init__(self, env: Environment, progress: float = 1.0) -> None:
        self.env = env
        self._progress = progress  # the part of a rate that is payload
        self._sharing = Sharing()
        self._calendar: list[tuple[float, int, Bundle]] = []
        self._alarm = Alarm(env, self._due)
        self._settle_at_end = env.at_instant_end(self.settle, _SETTLE_RANK)
        self._numbers = 0
        self._under_way: dict[Flow, None] = {}
        self._busy = 0  # bundles with flows
        self._pipes_touched: dict[Channel, None] = {}
        self._on_start: tuple[Callable[..., object], ...] = ()
        self._on_end: tuple[Callable[..., object], ...] = ()
        self._on_load: tuple[Callable[..., object], ...] = ()
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)

    def _find_hooks(self) -> None:
        self._on_start = self.env.hooks(f"{self.kind}_started")
        self._on_end = self.env.hooks(f"{self.kind}_ended")
        self._on_load = self.env.hooks(f"{self.carrier}_load_changed")

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each flow that is under way or paused, for a report of who is stuck."""
        for flow in self._under_way:
            yield f"{flow.describe()} since {flow.start:g}{self._why_stuck(flow)}"

    def _why_stuck(self, flow: Flow) -> str:
        return ""

    # ------------------------------------------------------------------ flows come and go

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _enter(self, flow: Flow, bundle: Bundle) -> None:
        """Let a flow with something left move from now on."""
        now = self.env._now
        if bundle.count:
            bundle.advance(now)
        else:
            bundle._high = bundle._low = bundle._speed = 0.0
            bundle._since = now
        top, rest = bundle.mark(flow._left / flow.weight)
        self._numbers = number = self._numbers + 1
        flow._entry = entry = (top, rest, number, flow)
        flow._bundle = bundle
        flow.status = "moving"
        heappush(bundle._heap, entry)
        bundle._due = nan
        if bundle.count:
            bundle.count += 1
            bundle.weigh(flow.weight)
            self._sharing.grow(bundle)
            return
        bundle.count = 1
        bundle._weight = flow.weight
        bundle._rest = 0.0
        bundle.demand = flow.weight * bundle.scale
        self._busy += 1
        self._first_in(bundle)
        if bundle.pipes:
            bundle.fit()
            for pipe in bundle.pipes:
                pipe.users.append(bundle._pipe_entry)
        self._sharing.join(bundle)

    def _less(self, bundle: Bundle, count: int) -> None:
        """Take flows out of a bundle, after their weights."""
        bundle._due = nan
        bundle.count -= count
        if bundle.count:
            self._sharing.shrink(bundle)
            if len(bundle._heap) > 2 * bundle.count + 64:
                bundle._heap = [entry for entry in bundle._heap if entry[3]._entry is entry]
                heapify(bundle._heap)
            return
        bundle._heap.clear()
        self._busy -= 1
        self._sharing.leave(bundle)
        for pipe in bundle.pipes:
            pipe.users.remove(bundle._pipe_entry)
            self._pipes_touched[pipe] = None
        self._last_out(bundle)

    def _first_in(self, bundle: Bundle) -> None:
        """Hear that a bundle gets its first flow."""

    def _last_out(self, bundle: Bundle) -> None:
        """Hear that a bundle has lost its last flow."""

    def _stop(self, flow: Flow) -> None:
        """Take a flow out wherever it is, keeping what is left of it."""
        flow._left = flow.left
        bundle = flow._bundle
        flow._entry = flow._bundle = None
        if bundle is not None:
            bundle.weigh(-flow.weight)
            self._less(bundle, 1)
            self._settle_at_end()

    def _go_on(self, flow: Flow) -> None:
        raise NotImplementedError

    def _finish(self, flow: Flow) -> None:
        """End a flow of which nothing is left."""
        flow._left = 0.0
        flow._entry = flow._bundle = None
        flow.end = self.env._now
        flow.status = "done"
        flow._ok = True
        flow._value = flow._result()
        self._trigger(flow)

    def _trigger(self, flow: Flow) -> None:
        """Tell who waits; where nobody does, the event has happened without passing through the queue."""
        del self._under_way[flow]
        for call in self._on_end:
            call(flow)
        if flow.callbacks:
            env = self.env
            heappush(env._queue, (env._now, NORMAL, next(env._eid), flow))
        else:
            flow.callbacks = None  # type: ignore[assignment]

    # ------------------------------------------------------------------ time passes

    def _due(self) -> None:
        """End the flows that are due now."""
        now = self.env._now
        calendar = self._calendar
        ended: list[Flow] = []
        while calendar and calendar[0][0] <= now:
            due, _, bundle = heappop(calendar)
            if bundle._due != due:
                continue
            # The head ends now, so this is what the virtual time is, without rounding.
            top, rest, _, flow = bundle.head()
            bundle._high = top
            bundle._low = rest
            bundle._since = now
            heap = bundle._heap
            near = bundle._speed * now * _ROUNDING
            count = 0
            while True:
                heappop(heap)
                count += 1
                flow._entry = None
                ended.append(flow)
                if count == bundle.count:
                    break
                entry = bundle.head()
                if (entry[0] - top) + (entry[1] - rest) > near:
                    break
                bundle.weigh(-flow.weight)
                flow = entry[3]
            bundle.weigh(-flow.weight)
            self._less(bundle, count)
        for flow in ended:
            self._finish(flow)
        self._settle_soon()

    def _settle_soon(self) -> None:
        """Settle now, or at the end of the instant where it may bring more changes."""
        queue = self.env._queue
        if queue and queue[0][0] <= self.env._now:
            self._settle_at_end()
        else:
            self.settle()

    def settle(self) -> None:
        """Bring all rates and due times up to date; done by itself when an instant ends."""
        calendar = self._calendar
        if self._sharing.waiting:
            now = self.env._now
            groups, channels = self._sharing.solve()
            progress = self._progress
            for bundle in groups:
                speed = bundle.scale * bundle.level * progress  # type: ignore[attr-defined]
                if speed == bundle._speed and bundle._due == bundle._due:  # type: ignore[attr-defined]
                    continue
                self._set_speed(bundle, speed, now)  # type: ignore[arg-type]
            if len(calendar) > 64 + 2 * self._busy:
                calendar[:] = [entry for entry in calendar if entry[2]._due == entry[0]]
                heapify(calendar)
            if self._on_load:
                self._tell_load(groups, channels)
            self._pipes_touched.clear()
        while calendar and calendar[0][2]._due != calendar[0][0]:
            heappop(calendar)
        self._alarm.set(calendar[0][0] if calendar else inf)

    def _set_speed(self, bundle: Bundle, speed: float, now: float) -> None:
        bundle.advance(now)
        bundle._speed = speed
        entry = bundle.head()
        ahead = (entry[0] - bundle._high) + (entry[1] - bundle._low)
        due = now + ahead / speed if speed > 0 else inf
        if due < now:
            due = now
        bundle._due = due
        if due < inf:
            heappush(self._calendar, (due, bundle._number, bundle))

    def _tell_load(self, groups: list[Group], channels: list[Channel]) -> None:
        told = dict.fromkeys(channels) | self._pipes_touched
        for group in groups:
            told |= dict.fromkeys(group.pipes)  # type: ignore[attr-defined]
        for channel in told:
            channel.load = 0.0
            for user, factor in channel.users:
                channel.load += factor * user.demand * user.level
            for call in self._on_load:
                call(channel)

    def _capacity_changed(self, channel: Channel, shared: bool) -> None:
        """Solve again for a channel whose capacity has changed."""
        if shared:
            self._sharing.refit(channel)
        else:
            self._pipes_touched[channel] = None
            for bundle, _ in channel.users:
                bundle.fit()  # type: ignore[attr-defined]
                self._sharing.refit_group(bundle)
        self._settle_at_end()

    def _rescale(self, bundle: Bundle, scale: float) -> None:
        """Solve again for a bundle whose weights are multiplied by another scale."""
        bundle.scale = scale
        bundle.fit()
        if bundle.count:
            bundle.weigh(0.0)
            self._sharing.refit_group(bundle)
