"""A bandwidth that is shared equally among all who use it: the disks of storages and of hosts.

The virtual clock of :mod:`~simmodel.resources.network.flow` without the solver of networks: a start or an end costs
O(log n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappush
from math import inf
from typing import Any, NamedTuple

from simmodel.environment import END, Environment, ToCome
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import parse_quantity
from simmodel.resources.alarm import Alarm
from simmodel.resources.network.flow import Bundle, Flow
from simmodel.resources.network.transfer import Delivery

__all__ = ["Access", "AccessState", "ChannelState", "SharedChannel"]

Bandwidth = float | str | Callable[[int], float]


class AccessState(NamedTuple):
    """An access at one instant: its size and the bytes left, its start (s), whether it is paused, and its mark.

    ``mark``: the virtual time at which it ends, as a pair of floats, if the channel has a virtual time.
    """

    size: float
    left: float
    start: float
    paused: bool = False
    mark: tuple[float, float] | None = None


class ChannelState(NamedTuple):
    """A channel at one instant: its accesses in the order of their starts, and its virtual time at instant ``since``.

    With virtual time and marks a restored channel continues to the last bit; ``since=None``: it has neither.
    """

    accesses: tuple[AccessState, ...] = ()
    time: tuple[float, float] = (0.0, 0.0)
    since: float | None = None


class Access(Flow):
    """Bytes read or written: an event that happens when the last byte has passed; its value is a :class:`Delivery`.

    ``cancel()``, ``pause()``, ``resume()`` and a ``with`` block work as for a transfer. ``about``: whatever it is for,
    passed to observers.

    >>> env = Environment(); access = SharedChannel(env, 100.0).start(1000.0)
    >>> env.run(until=4); access.left, access.rate
    (600.0, 100.0)
    """

    about: Any = None
    fluid: SharedChannel

    @property
    def channel(self) -> SharedChannel:
        return self.fluid

    def _result(self) -> Delivery:
        return Delivery(self.start, self.env._now, self.size)


class SharedChannel:
    """A bandwidth in bytes/s, shared equally among the accesses in it.

    Parameters
    ----------
    env
        the environment
    bandwidth
        bytes/s, a text such as ``"2GBps"``, or a function that returns it for a number of accesses >= 1; infinity:
        accesses take no time
    name
        its name
    kind
        the name of its accesses: with ``kind="read"`` its hooks are ``read_started(access)`` and
        ``read_ended(access)``

    turns
        ``turns(channel, busy)`` is called before its first access moves, and when the last one has ended

    Raises
    ------
    InputError
        the bandwidth is negative or not a quantity

    >>> env = Environment()
    >>> disk = SharedChannel(env, 100.0)
    >>> first = disk.start(1000.0); env.run(until=5); second = disk.start(1000.0)
    >>> env.run(first & second).todict()[first].end, second.end
    (15.0, 20.0)
    """

    __slots__ = (
        "_alarm",
        "_bundle",
        "_given",
        "_numbers",
        "_on_end",
        "_on_start",
        "_turns",
        "_under_way",
        "bandwidth",
        "env",
        "kind",
        "name",
        "withheld",
    )
    unit = "B"

    def __init__(
        self,
        env: Environment,
        bandwidth: Bandwidth,
        name: str = "disk",
        *,
        kind: str = "flow",
        turns: Callable[[SharedChannel, bool], object] | None = None,
    ) -> None:
        self.env = env
        self.name = name
        self.kind = kind
        self._numbers = 0
        self._under_way: dict[Flow, None] = {}
        self._bundle = Bundle(())
        self._alarm = Alarm(env, self._due)
        self._on_start: tuple[Callable[..., object], ...] = ()
        self._on_end: tuple[Callable[..., object], ...] = ()
        self._given: Callable[[int], float] | None = None
        self._turns = turns
        self.withheld = 0.0  # bytes/s that accesses do not have
        self.bandwidth = self._read_bandwidth(bandwidth)
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)

    def _find_hooks(self) -> None:
        self._on_start = self.env.hooks(f"{self.kind}_started")
        self._on_end = self.env.hooks(f"{self.kind}_ended")

    def _read_bandwidth(self, bandwidth: Bandwidth) -> float:
        if callable(bandwidth):
            self._given = bandwidth
            bandwidth = bandwidth(1)
        else:
            self._given = None
        if bandwidth == inf:
            return inf
        value = parse_quantity(bandwidth, "B/s", place=f"{self.name}, bandwidth")
        if value < 0:
            raise InputError(f"must be >= 0, got {bandwidth!r}", place=f"{self.name}, bandwidth")
        return value

    def __len__(self) -> int:
        """Return the number of accesses that have not ended, those paused among them."""
        return len(self._under_way)

    def __repr__(self) -> str:
        return f"<SharedChannel {self.name}: {self.bandwidth:g} bytes/s, {len(self)} in it>"

    # ------------------------------------------------------------------ accesses

    def start(self, size: float | str, call: Callable[[Any], Any] | None = None, about: Any = None) -> Access:
        """Start an access and return the event of its end.

        Parameters
        ----------
        size
            bytes, or a text such as ``"64GB"``
        call
            ``call(access)`` is called at its end, but not if it is cancelled
        about
            whatever it is for

        Raises
        ------
        InputError
            the size is negative, not finite or not a quantity

        >>> env = Environment(); disk = SharedChannel(env, 100.0)
        >>> _ = disk.start(250.0, lambda access: print("read at", env.now)); env.run()
        read at 2.5
        """
        if isinstance(size, str):
            size = parse_quantity(size, "B", place=f"{self.name}, size of an access")
        if not 0 <= size < inf:
            raise InputError(f"must be finite and >= 0, got {size!r}", place=f"{self.name}, size of an access")
        access = self._new(size, call)
        if about is not None:
            access.about = about
        for tell in self._on_start:
            tell(access)
        if access.status == "waiting":
            self.go_on(access)
        return access

    def _new(self, size: float, call: Callable[[Any], Any] | None) -> Access:
        self._numbers = number = self._numbers + 1
        access = Access(self, number, size, 1.0)
        if call is not None:
            access.inside = True
            access.callbacks.append(call)
        self._under_way[access] = None
        return access

    def go_on(self, flow: Flow) -> None:
        """Start an access, or continue one that was paused."""
        if not flow.kept or self.bandwidth == inf:
            flow.finish()
            return
        bundle = self._bundle
        now = self.env._now
        if bundle.count:
            bundle.advance(now)
            top, rest = bundle.mark(flow.kept)
        else:  # an empty channel starts anew, at virtual time 0
            if self._turns is not None:
                self._turns(self, True)
            bundle.high = bundle.low = rest = 0.0
            bundle.since = now
            top = flow.kept
        flow.bundle = bundle
        flow.status = "moving"
        flow.entry = entry = (top, rest, flow.number, flow)
        heappush(bundle.heap, entry)
        bundle.count += 1
        self._share(now)

    def take_out(self, flow: Flow) -> None:
        """Stop an access, keeping its remaining bytes."""
        bundle = flow.bundle
        if bundle is None:
            return
        now = self.env._now
        bundle.advance(now)
        flow.kept = flow.left
        flow.entry = flow.bundle = None
        bundle.count -= 1
        if len(bundle.heap) > 2 * bundle.count + 64:
            bundle.heap = [entry for entry in bundle.heap if entry[3].entry is entry]
            heapify(bundle.heap)
        self._share(now)

    def let_go(self, flow: Flow) -> None:
        """Remove an ended access and trigger its event; without callbacks it does not pass through the event queue."""
        del self._under_way[flow]
        for call in self._on_end:
            call(flow)
        if flow.inside and not flow._ok:
            flow.callbacks = flow.callbacks[1:]
        if flow.callbacks:
            self.env.schedule(flow)
        else:
            flow.callbacks = None  # type: ignore[assignment]

    def settle(self) -> None:
        """Do nothing: rates are always up to date."""

    def _share(self, now: float) -> None:
        """Divide the bandwidth anew, from now on."""
        bundle = self._bundle
        count = bundle.count
        if not count:
            bundle.heap.clear()
            self._alarm.set(inf)
            if self._turns is not None:
                self._turns(self, False)
            return
        if self._given is not None:
            self.bandwidth = self._given(count)
        bundle.speed = speed = max(0.0, self.bandwidth - self.withheld) / count
        top, rest, _, _ = bundle.head()
        due = now + ((top - bundle.high) + (rest - bundle.low)) / speed if speed > 0 else inf
        self._alarm.set(max(due, self.env._now))

    def _due(self) -> None:
        """End the accesses that are due now."""
        bundle = self._bundle
        now = self.env._now
        ended = bundle.pop_ended(now)
        bundle.count -= len(ended)
        self._share(now)
        if len(ended) == 1 and ended[0].inside and not self._on_end:
            flow = ended[0]
            flow.end = now
            flow.status = "done"
            del self._under_way[flow]
            self.env.happen(flow, flow._result())
            return
        for flow in ended:
            if flow.end is None:  # an observer of another's end may have cancelled it
                flow.finish()

    def set_bandwidth(self, bandwidth: Bandwidth) -> None:
        """Change the bandwidth from now on; at 0 all accesses stand still.

        >>> env = Environment(); disk = SharedChannel(env, 100.0); _ = disk.start(1000.0)
        >>> env.run(until=5); disk.set_bandwidth("250Bps"); env.run(); env.now
        7.0
        """
        self.bandwidth = self._read_bandwidth(bandwidth)
        self.ask_again()

    def withhold(self, rate: float) -> None:
        """Keep bytes/s from the accesses, which share the rest, until the next call.

        >>> env = Environment(); disk = SharedChannel(env, 100.0); _ = disk.start(1000.0)
        >>> env.run(until=5); disk.withhold(75.0); env.run(); env.now
        25.0
        """
        self.withheld = rate
        self.ask_again()

    def ask_again(self) -> None:
        """Ask the function of the bandwidth again, whose answer has changed."""
        if self._bundle.count:
            self._bundle.advance(self.env._now)
            self._share(self.env._now)

    # ------------------------------------------------------------------ questions and snapshots

    def under_way(self) -> Iterator[Access]:
        """Iterate over the accesses that have not ended, in the order of their starts."""
        return iter(self._under_way)  # type: ignore[arg-type]

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each access that has not ended, for the report of stalled waiters."""
        for flow in self._under_way:
            why = "; the bandwidth is 0" if self.bandwidth == 0 else ""
            if 0 < self.bandwidth <= self.withheld:
                why = "; jobs hold all of the bandwidth"
            yield f"{self.name}: {flow.describe()} since {flow.start:g}{why}"

    def to_come(self) -> ToCome | None:
        """Return the next end as a planned event of a snapshot; ``None``: no access moves."""
        alarm = self._alarm
        return ToCome(alarm.at, float(END), alarm.number, "access", (self.name,)) if alarm.at < inf else None

    @property
    def alarm(self) -> Alarm:
        """The alarm that ends the accesses due next."""
        return self._alarm

    def state(self) -> ChannelState:
        """Return the accesses and the virtual time as plain values.

        >>> env = Environment(); disk = SharedChannel(env, 100.0); access = disk.start(1000.0); env.run(until=4)
        >>> disk.state().accesses
        (AccessState(size=1000.0, left=600.0, start=0, paused=False, mark=(1000.0, 0.0)),)
        """
        bundle = self._bundle
        accesses = tuple(
            AccessState(
                flow.size,
                flow.left,
                flow.start,
                flow.status == "paused",
                None if flow.entry is None else (flow.entry[0], flow.entry[1]),
            )
            for flow in self._under_way
        )
        if not bundle.count:
            return ChannelState(accesses)
        return ChannelState(accesses, (bundle.high, bundle.low), bundle.since)

    def restore(self, state: ChannelState, calls: Iterable[Callable[[Any], Any] | None] = ()) -> list[Access]:
        """Put accesses into an empty channel, as a snapshot has them; return them in order.

        Parameters
        ----------
        state
            of the same instant
        calls
            for each access the function that is called at its end, or ``None``

        >>> env = Environment(); disk = SharedChannel(env, 100.0); _ = disk.start(1000.0); env.run(until=4)
        >>> later = Environment(4); copy = SharedChannel(later, 100.0)
        >>> _ = copy.restore(disk.state(), [lambda access: print("read at", later.now)]); later.run()
        read at 10.0
        """
        told = list(calls) or [None] * len(state.accesses)
        bundle = self._bundle
        bundle.high, bundle.low = state.time
        bundle.since = self.env._now if state.since is None else state.since
        found = []
        for each, call in zip(state.accesses, told, strict=True):
            access = self._new(each.size, call)
            access.start = each.start
            access.kept = each.left
            if each.paused:
                access.status = "paused"
            else:
                access.bundle = bundle
                access.status = "moving"
                access.entry = entry = (*(each.mark or (each.left, 0.0)), access.number, access)
                bundle.heap.append(entry)
                bundle.count += 1
            found.append(access)
        heapify(bundle.heap)
        self._share(bundle.since)
        return found
