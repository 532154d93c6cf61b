"""Resources with flows at shared rates, a single pending wake-up for all of them, and their clocks in columns.

The transfers of a network and the computations of a host are flows; this is the common part of both resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from simmodel.environment import Environment
from simmodel.resources.alarm import Alarm
from simmodel.resources.network.bundle import set_speeds
from simmodel.resources.network.crowd import Crowd
from simmodel.resources.network.flow import KEPT, Bundle, Channel, Flow, Group
from simmodel.resources.network.sharing import Sharing

if TYPE_CHECKING:
    from simmodel.resources.network.crowd import Floats

__all__ = ["Clocks", "Fluid"]


class Clocks:
    """The clocks of the bundles that are rows of a crowd.

    A bundle that is touched (a flow enters or leaves) has its clock itself until it is settled again; then its due time
    is not ``KEPT``.

    Parameters
    ----------
    crowd
        the columns of the solver
    progress
        the share of a rate that is payload

    >>> from simmodel.resources.network.flow import Channel
    >>> bundle = Bundle([(Channel("link", 100.0), 1.0)])
    >>> Clocks(Crowd([bundle]), 1.0).first()
    inf
    """

    def __init__(self, crowd: Crowd, progress: float) -> None:
        self.crowd = crowd
        self._progress = progress
        self._columns: Floats = np.zeros((7, 0))
        self.due: Floats = np.full(0, inf)
        self._fit()

    def _fit(self) -> None:
        more = len(self.crowd.level) - len(self.due)
        if more:
            self._columns = np.concatenate((self._columns, np.zeros((7, more))), axis=1)
            self.due = np.concatenate((self.due, np.full(more, inf)))

    def keep(self, bundle: Bundle) -> None:
        """Take the clock of a bundle, and when its next flow ends."""
        self._fit()
        top, rest, _, _ = bundle.head()
        self._columns[:, bundle.row] = (
            bundle.high,
            bundle.low,
            bundle.speed,
            bundle.since,
            bundle.scale,
            top,
            rest,
        )
        self.due[bundle.row] = bundle.due
        bundle.due = KEPT
        bundle.clocks = self

    def read(self, bundle: Bundle) -> None:
        bundle.high, bundle.low, bundle.speed, bundle.since = self._columns[:4, bundle.row].tolist()

    def drop(self, bundle: Bundle) -> None:
        self.due[bundle.row] = inf
        bundle.clocks = None

    def first(self) -> float:
        """Return when the next flow ends; infinity: none does."""
        return float(self.due.min())

    def move(self, now: float) -> None:
        """Give the rows that the solver has moved their new speeds, from now on."""
        # The same operations as for a single bundle in Fluid and Bundle, to the last bit.
        rows = self.crowd.moved
        high, low, speed, since, scale, top, rest = self._columns[:, rows]
        step = speed * (now - since)
        total = high + step
        part = total - high
        low = low + ((high - (total - part)) + (step - part))
        speed = scale * self.crowd.level[rows] * self._progress
        ahead = (top - total) + (rest - low)
        with np.errstate(divide="ignore", invalid="ignore"):
            due = np.where(speed > 0, np.maximum(now + ahead / speed, now), inf)
        self._columns[:4, rows] = total, low, speed, np.full(len(rows), now)
        self.due[rows] = due

    def hand_over(self, calendar: list[tuple[float, int, Bundle]], until: float) -> None:
        """Move the bundles that are due by an instant into a calendar, with their clocks."""
        for row in np.flatnonzero(self.due <= until).tolist():
            bundle = self.crowd.groups[row]
            if not isinstance(bundle, Bundle) or bundle.due != KEPT:
                continue  # touched at this instant: due when it is settled
            bundle.read()
            bundle.due = due = float(self.due[row])
            self.due[row] = inf
            heappush(calendar, (due, bundle.number, bundle))

    def close(self, calendar: list[tuple[float, int, Bundle]]) -> None:
        """Give all bundles their clocks back."""
        for bundle in self.crowd.groups:
            if isinstance(bundle, Bundle) and bundle.due == KEPT:
                bundle.read()
                bundle.due = due = float(self.due[bundle.row])
                heappush(calendar, (due, bundle.number, bundle))
                bundle.clocks = None


_SETTLE_RANK = -1  # rates are settled before any scheduler decides


class Fluid:
    """A resource with channels that flows share: the base class of :class:`Network` and :class:`Host`.

    Starts and ends of flows are announced to the solver at once and solved at the end of the instant, so that all
    changes of an instant cost one solution. The due times of bundles are in the resource's own calendar; the event
    queue of the environment has one wake-up, for the first of them.

    Parameters
    ----------
    env
        the environment
    progress
        the share of a rate that is payload

    >>> fluid = Fluid(Environment())
    >>> list(fluid.waiting_report())
    []
    """

    kind = "flow"
    unit = ""
    carrier = "channel"

    def __init__(self, env: Environment, progress: float = 1.0) -> None:
        self.env = env
        self._progress = progress  # the share of a rate that is payload
        self._sharing = Sharing()
        self._clocks: Clocks | None = None  # of the bundles of a crowd
        self._calendar: list[tuple[float, int, Bundle]] = []
        self._alarm = Alarm(env, self._due)
        self._settle_at_end = env.at_instant_end(self.settle, _SETTLE_RANK)
        self._numbers = 0
        self._ending = False  # while flows end: rates are settled afterwards
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
        """Yield one sentence for each flow that has not ended, for the report of stalled waiters."""
        for flow in self._under_way:
            yield f"{flow.describe()} since {flow.start:g}{self._why_stuck(flow)}"

    def _why_stuck(self, flow: Flow) -> str:
        return ""

    def abandon(self) -> None:
        """Cancel all flows; observers are notified, but those who wait for them are not."""
        for flow in list(self._under_way):
            if flow.callbacks:
                flow.callbacks.clear()
            flow.cancel()

    # ------------------------------------------------------------------ flows start and end

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _enter(self, flow: Flow, bundle: Bundle) -> None:
        """Let a flow with remaining work move from now on."""
        now = self.env._now
        weight = flow.weight
        step = flow.kept / weight
        self._numbers = number = self._numbers + 1
        flow.bundle = bundle
        flow.status = "moving"
        if bundle.count:
            bundle.advance(now)
            bundle.due = nan
            top, rest = bundle.mark(step)
            flow.entry = entry = (top, rest, number, flow)
            heappush(bundle.heap, entry)
            bundle.count += 1
            bundle.weigh(weight)
            self._sharing.grow(bundle)
            return
        # An empty bundle starts anew, at virtual time 0.
        bundle.high = bundle.low = bundle.speed = bundle.rest = 0.0
        bundle.since = now
        bundle.due = nan
        bundle.count = 1
        bundle.weight = weight
        bundle.demand = weight * bundle.scale
        flow.entry = entry = (step, 0.0, number, flow)
        bundle.heap.append(entry)
        self._busy += 1
        if not bundle.plain:
            self._first_in(bundle)
        if bundle.pipes:
            bundle.fit()
            for pipe in bundle.pipes:
                pipe.users.append(bundle.pipe_entry)
        # Alone on its channels, a bundle needs no solver; observers are told of loads by the solution.
        if not self._on_load and self._sharing.join_alone(bundle):
            bundle.speed = speed = bundle.scale * bundle.level * self._progress
            bundle.due = due = now + step / speed if speed > 0 else inf
            if due < inf:
                heappush(self._calendar, (due, bundle.number, bundle))
        else:
            self._sharing.join(bundle)

    def _less(self, bundle: Bundle, count: int) -> None:
        """Remove flows from a bundle, after their weights."""
        if bundle.count == count:
            self._empty(bundle)
            return
        bundle.due = nan
        bundle.count -= count
        self._sharing.shrink(bundle)
        if not bundle.plain:
            self._fewer(bundle, count)
        if len(bundle.heap) > 2 * bundle.count + 64:
            bundle.heap = [entry for entry in bundle.heap if entry[3].entry is entry]
            heapify(bundle.heap)

    def _empty(self, bundle: Bundle) -> None:
        """Remove the last flow of a bundle."""
        bundle.due = nan
        count = bundle.count
        bundle.count = 0
        bundle.heap.clear()
        self._busy -= 1
        if bundle.clocks is not None:
            bundle.clocks.drop(bundle)
        if self._on_load or not self._sharing.leave_alone(bundle):
            self._sharing.leave(bundle)
        for pipe in bundle.pipes:
            pipe.users.remove(bundle.pipe_entry)
            self._pipes_touched[pipe] = None
        if not bundle.plain:
            self._last_out(bundle)
            self._fewer(bundle, count)

    def _fewer(self, bundle: Bundle, count: int) -> None:
        """React to flows that have left a bundle that is not plain."""

    def _first_in(self, bundle: Bundle) -> None:
        """React to the first flow of a bundle that is not plain."""

    def _last_out(self, bundle: Bundle) -> None:
        """React to the end of the last flow of a bundle that is not plain."""

    def take_out(self, flow: Flow) -> None:
        """Stop a flow in any phase, keeping its remaining size."""
        bundle = flow.bundle
        if bundle is not None:
            bundle.advance(self.env._now)
        flow.kept = flow.left
        flow.entry = flow.bundle = None
        if bundle is not None:
            bundle.weigh(-flow.weight)
            self._less(bundle, 1)
            self._settle_at_end()

    def go_on(self, flow: Flow) -> None:
        """Start a flow, or continue one that was stopped."""
        raise NotImplementedError

    def let_go(self, flow: Flow) -> None:
        """Remove an ended flow and trigger its event; without callbacks it does not pass through the event queue."""
        del self._under_way[flow]
        for call in self._on_end:
            call(flow)
        if flow.callbacks:
            env = self.env
            env.schedule(flow)
        else:
            flow.callbacks = None  # type: ignore[assignment]

    # ------------------------------------------------------------------ time passes

    def _due(self) -> None:
        """End the flows that are due now."""
        now = self.env._now
        calendar = self._calendar
        if self._clocks is not None:
            self._clocks.hand_over(calendar, now)
        ended: list[Flow] = []
        while calendar and calendar[0][0] <= now:
            due, _, bundle = heappop(calendar)
            if bundle.due != due:
                continue
            if bundle.count == 1:
                flow = bundle.head()[3]
                flow.entry = flow.bundle = None
                flow.kept = 0.0
                ended.append(flow)
                self._empty(bundle)
                continue
            over = bundle.pop_ended(now)
            count = len(over)
            for flow in over if count < bundle.count else over[:-1]:
                bundle.weigh(-flow.weight)
            ended += over
            self._less(bundle, count)
        if len(ended) == 1 and ended[0].inside and not self._on_end:
            self._end_inside(ended[0])
        else:
            for flow in ended:
                if flow.end is None:  # an observer of another's end may have cancelled it
                    flow.finish()
        self._settle_soon()

    def _end_inside(self, flow: Flow) -> None:
        """End the only flow that ends now, and let its owner go on: this is the last act of the event."""
        self._ending = True
        flow.end = self.env._now
        flow.status = "done"
        del self._under_way[flow]
        self.env.happen(flow)
        self._ending = False

    def _settle_soon(self) -> None:
        """Settle now, or at the end of the instant if it has further events."""
        queue = self.env._queue
        if queue and queue[0][0] <= self.env._now:
            self._settle_at_end()
        else:
            self.settle()

    def settle(self) -> None:
        """Update all rates and due times; happens automatically at the end of an instant and when a rate is read."""
        calendar = self._calendar
        sharing = self._sharing
        if sharing._changed or sharing._seeds or self._pipes_touched:
            now = self.env._now
            groups, channels = self._sharing.solve()
            set_speeds(groups, self._progress, now, calendar)  # type: ignore[arg-type]
            if self._sharing.crowd is not None:
                self._settle_crowd(self._sharing.crowd, groups, now)
            if self._on_load:
                groups += self._sharing.tell()
                self._tell_load(groups, channels)
            self._pipes_touched.clear()
            if self._on_load and sharing.waiting:  # a channel has another capacity because of its load
                self.settle()
                return
        if len(calendar) > 64 + 2 * self._busy:
            calendar[:] = [entry for entry in calendar if entry[2].due == entry[0]]
            heapify(calendar)
        while calendar and calendar[0][2].due != calendar[0][0]:
            heappop(calendar)
        due = calendar[0][0] if calendar else inf
        if self._clocks is not None:
            due = min(due, self._clocks.first())
        self._alarm.set(due)

    def _settle_crowd(self, crowd: Crowd, groups: list[Group], now: float) -> None:
        """Update the speeds and due times of the bundles of a crowd; a crowd that has become small ends."""
        clocks = self._clocks
        if clocks is None:
            self._clocks = clocks = Clocks(crowd, self._progress)
            groups = [group for group in crowd.groups if group is not None]
        for bundle in groups:
            clocks.keep(bundle)  # type: ignore[arg-type]
        clocks.move(now)
        if 4 * self._busy < self._sharing.many:
            clocks.close(self._calendar)
            self._clocks = None
            self._sharing.disband()

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
        """Announce that the capacity of a channel has changed."""
        if shared:
            self._sharing.refit(channel)
        else:
            self._pipes_touched[channel] = None
            for bundle, _ in channel.users:
                bundle.fit()  # type: ignore[attr-defined]
                self._sharing.refit_group(bundle)
        self._settle_at_end()

    def _rescale(self, bundle: Bundle, scale: float) -> None:
        """Announce that the scale of a bundle's weights has changed."""
        bundle.scale = scale
        bundle.fit()
        if bundle.count:
            bundle.weigh(0.0)
            self._sharing.refit_group(bundle)
