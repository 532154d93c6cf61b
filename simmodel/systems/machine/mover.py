"""Data movement between the pools of a machine: on demand, ahead of time, and out of full pools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from simpy.events import NORMAL, Event

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.resources.data.memory import DataArrival, MemoryPool, RoomClaim, nearest
from simmodel.resources.network.links import Link, Route
from simmodel.resources.network.network import Network
from simmodel.resources.processors.services import Moved
from simmodel.work.taskset import LiveData, LiveTask

if TYPE_CHECKING:
    from collections.abc import Iterable


__all__ = ["DataMover", "Fetch", "Flight", "RoomMaker"]

_Row = tuple[LiveData, MemoryPool, MemoryPool, float, float, LiveTask | None, str, float]
"""A recorded transfer: data, source, destination, start and end (s), its task, its cause, and the bytes moved."""


class Flight:
    """Data in flight to a pool: which, from where, since when (s), for which task, why, and the event of their end.

    ``ends``: the arrival instant (s), if links are not shared; ``number``: in the order of departure.
    """

    __slots__ = ("cause", "data", "ends", "first", "mover", "moving", "number", "pool", "since", "source", "task")

    data: LiveData
    source: MemoryPool
    moving: Any

    def __init__(self, mover: DataMover, pool: MemoryPool, task: LiveTask | None, cause: str) -> None:
        self.mover = mover
        self.pool = pool
        self.task = task
        self.cause = cause
        self.since = self.ends = 0.0
        self.number = 0
        self.first = False

    def land(self, event: Event | None) -> None:
        """End it, as the last act of the event that ends the transfer (``None``: not the last)."""
        data, source, pool, mover = self.data, self.source, self.pool, self.mover
        if not self.moving._ok:
            mover.failed(self)
            return
        arrival = pool.arriving[data]
        source.unuse(data)
        rows = mover.rows
        moved = data.size - arrival.part
        if rows is not None:
            rows.append((data, source, pool, self.since, mover.env._now, self.task, self.cause, moved))
        for call in mover.on_moved:
            call(Moved(data.name, moved, source.name, pool.name, self.since, mover.env._now, self.task, self.cause))
        if not arrival.stale or data in pool.held:
            pool.arrived(data)
            mover.tell(arrival, self, event is not None)
        elif arrival.users:  # rewritten meanwhile: send them again
            arrival.stale = arrival.under_way = False
            arrival.part = 0.0
            mover.depart(self, data, arrival)
        else:
            pool.turn_away(data)

    def go_on(self, _: Event | None = None) -> None:
        """Continue after the arrival, before all others that wait for it; called if ``first``."""


class Fetch(Flight):
    """Data in flight for a task, one after another; ``done`` happens when the last have arrived."""

    __slots__ = ("done", "left")

    def __init__(self, mover: DataMover, pool: MemoryPool, task: LiveTask, cause: str, missing: Sequence[LiveData]):
        super().__init__(mover, pool, task, cause)
        self.left = iter(missing)
        self.done = Event(mover.env)

    def go_on(self, _: Event | None = None) -> None:
        """Send the next data; at the end, let the task go on as the last act of this event."""
        for data in self.left:
            arrival = self.pool.arriving[data]
            met = arrival.met
            self.first = met is None and not arrival.under_way
            if not self.first:  # others wait already: in turn
                arrival.event.callbacks.append(self.go_on)
            if not arrival.under_way:
                self.mover.depart(self, data, arrival)
            return
        done: Any = self.done
        done._ok, done._value = True, None
        callbacks, done.callbacks = done.callbacks, None
        for callback in callbacks:
            callback(done)


class DataMover:
    """Moves data between pools, over shared or exclusive links.

    Parameters
    ----------
    env
        the environment
    network
        the links
    pools
        by name
    home
        the pool of data that belong nowhere else
    parallel
        whether the data that a task lacks move all at once; otherwise one after another
    contention
        whether transfers share the bandwidth of links; otherwise each has its links to itself
    record
        whether to record transfers in ``moved``

    Attributes
    ----------
    latency, per_byte
        from each pool to each other one, by their indices: seconds, and seconds per byte, on otherwise idle links as
        they are now (:meth:`follow`); ``inf`` without a route
    failures
        the number of transfers that failed with a link; their data are sent again once it is up

    Observers may have ``data_moved(moved)``, with a :class:`Moved`.
    """

    def __init__(
        self,
        env: Environment,
        network: Network,
        pools: Mapping[str, MemoryPool],
        home: MemoryPool,
        *,
        parallel: bool = False,
        contention: bool = True,
        record: bool = True,
    ) -> None:
        self.env = env
        self.network = network
        self.pools = pools
        self.home = home
        self.parallel = parallel
        self.contention = contention
        custom = next((link.name for link in network.links.values() if link.spec.model is not None), None)
        if custom is not None and not contention:
            raise InputError(f"must be true: link {custom} has a model, got {contention!r}", place="contention")
        self.rows: list[_Row] | None = [] if record else None
        self._numbers = 0
        self.failures = 0
        self.on_moved: tuple[Callable[..., object], ...] = ()
        self._find_ways()
        network.on_link_change(self._link_changed)
        self.room = RoomMaker(env, pools.values(), self.move_out)
        env.on_hooks_changed(self._find_hooks)

    def _find_hooks(self) -> None:
        self.on_moved = self.env.hooks("data_moved")

    @property
    def moved(self) -> list[Moved]:
        """The recorded transfers, in the order of their ends."""
        return [
            Moved(data.name, moved, source.name, pool.name, since, end, task, cause)
            for data, source, pool, since, end, task, cause, moved in self.rows or ()
        ]

    def _find_ways(self) -> None:
        """Find the route from each pool to each other one; none from or to a pool that no processor uses."""
        self._names = names = list(self.pools)
        self.latency = [[0.0] * len(names) for _ in names]
        self.per_byte = [[0.0] * len(names) for _ in names]
        self._routes: list[list[Route | None]] = [[None] * len(names) for _ in names]
        self._pairs: dict[Route, list[tuple[int, int]]] = {}
        for i, source in enumerate(names):
            for j, destination in enumerate(names):
                if i == j:
                    continue
                try:
                    self._routes[i][j] = way = self.network.way(source, destination)
                except InputError:
                    self.latency[i][j] = self.per_byte[i][j] = inf
                else:
                    self._pairs.setdefault(way, []).append((i, j))
        self._changing = [way for way in self._pairs if way.changing]
        self._since = -inf  # the instant at which the profiles of links were last looked up
        for way in self._pairs:
            self._weigh(way)

    def _weigh(self, way: Route) -> None:
        """Set the latency (s) and the seconds per byte of a route to those of its links now."""
        latency, slow = way.latency, 1.0 / way.bandwidth
        for i, j in self._pairs[way]:
            if way.modelled:
                latency, rate = self.network.idle(self._names[i], self._names[j])
                slow = 1.0 / rate if rate else slow  # while a link is down: as if it were up
            self.latency[i][j], self.per_byte[i][j] = latency, slow

    def _link_changed(self, link: Link) -> None:
        for way in link.routes:
            if way in self._pairs:
                self._weigh(way)

    def follow(self) -> None:
        """Let ``latency`` and ``per_byte`` follow the links that change by a profile, up to now."""
        if self._changing and self._since != self.env._now:
            self._since = self.env._now
            for way in self._changing:
                self._weigh(way)

    def transfer_time(self, data: LiveData, pool: MemoryPool) -> float:
        """Return the seconds to move data to a pool over uncontended links; 0 if the pool holds them."""
        if self._changing:
            self.follow()
        copies = data.copies
        if not copies:
            if data.coming is None:
                return 0.0
            copies = (data.coming,)
        to = pool.index
        size = pool.lacking(data) if pool.parts else data.size
        if len(copies) == 1:
            source: int = copies[0].index
            return self.latency[source][to] + size * self.per_byte[source][to]
        pools: tuple[MemoryPool, ...] = copies
        return min([self.latency[each.index][to] + size * self.per_byte[each.index][to] for each in pools])

    # ------------------------------------------------------------------ flights

    def bring(self, data: LiveData, pool: MemoryPool, task: LiveTask | None, cause: str) -> Event:
        """Start to move data to a pool that has reserved room for them; return the event of their arrival."""
        arrival = pool.arriving[data]
        event = arrival.event
        if not arrival.under_way:
            self.depart(Flight(self, pool, task, cause), data, arrival)
        return event

    def fetch(self, missing: Sequence[LiveData], pool: MemoryPool, task: LiveTask, cause: str) -> Event:
        """Start to move data to a pool one after another; return an event that happens when all have arrived."""
        fetch = Fetch(self, pool, task, cause, missing)
        fetch.go_on()
        return fetch.done

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def depart(self, flight: Flight, data: LiveData, arrival: DataArrival) -> None:
        """Start to move data to a pool that has reserved room for them, from the nearest copy."""
        pool = flight.pool
        if data in pool.held:  # written there meanwhile
            arrival.under_way = True
            self.tell(pool.arrived(data), flight, False)
            return
        if self._changing:
            self.follow()
        to = pool.index
        copies, size = data.copies, data.size - arrival.part
        source: MemoryPool = copies[0]
        if len(copies) > 1:
            ways = zip(self.latency, self.per_byte, strict=True)
            source = nearest(copies, [latency[to] + size * slow[to] for latency, slow in ways])
        flight.data = data
        flight.source = source
        flight.since = now = self.env._now
        self._numbers = flight.number = self._numbers + 1
        if self.contention:
            way = self._routes[source.index][to] or self.network.way(source.name, pool.name)
            moving: Any = self.network.carry(size, way, source.name, pool.name)
        else:
            flight.ends = ends = now + self.latency[source.index][to] + size * self.per_byte[source.index][to]
            moving = self.env.event_at(ends)
        self.send(flight, moving, arrival)

    def send(self, flight: Flight, moving: Any, arrival: DataArrival) -> None:
        """Put data in flight; the copy at the source is in use until they arrive."""
        arrival.under_way = True
        arrival.flight = flight
        flight.moving = moving
        flight.source.use(flight.data)
        if moving.callbacks is None:  # nothing to move, and no latency
            flight.land(None)
        else:
            moving.inside = True
            moving.callbacks.append(flight.land)

    def failed(self, flight: Flight) -> None:
        """Count a transfer that failed with its link; once the route is up, the data are sent again, all of them."""
        data, source, pool, moving = flight.data, flight.source, flight.pool, flight.moving
        self.failures += 1
        row = (flight.since, self.env._now, flight.task, "failed")
        if self.rows is not None:
            self.rows.append((data, source, pool, *row, moving.bytes_done))
        for call in self.on_moved:
            call(Moved(data.name, moving.bytes_done, source.name, pool.name, *row))
        what = f"data {data.name} from {source.name} to {pool.name}, whose transfer failed,"
        self.network.when_up(moving.way, partial(self._again, flight), what)

    def _again(self, flight: Flight) -> None:
        data, pool = flight.data, flight.pool
        arrival = pool.arriving[data]
        flight.source.unuse(data)  # the copy was in use until now
        if arrival.stale and not arrival.users and data not in pool.held:
            pool.turn_away(data)
        else:
            if arrival.stale:
                arrival.part = 0.0
            arrival.stale = arrival.under_way = False
            self.depart(flight, data, arrival)

    def tell(self, arrival: DataArrival, flight: Flight, last: bool) -> None:
        """Let those who wait for data go on: at once if this is the last act of an event and none precedes them."""
        met = arrival.met
        if flight.first:
            if met is None and last:
                env = self.env
                queue = env._queue
                if not (queue and queue[0][0] <= env._now and queue[0][1] <= NORMAL):
                    flight.go_on()
                    return
            met = arrival.event
            met.callbacks.insert(0, flight.go_on)
        if met is None:
            return
        if last:
            self.env.happen(met)
        else:
            met.succeed()

    def fetch_ahead(self, task: LiveTask) -> None:
        """Start to move the inputs of a task to its processor's pool: those already written, while there is room."""
        pool = task.place.pool
        for data in task.inputs:
            if data.written and data not in pool.held and data not in pool.arriving:
                if pool.claims or not pool.room_for(pool.lacking(data)):
                    return
                pool.expect(data)
                self.bring(data, pool, task, "overlap")

    def move_out(self, data: LiveData, pool: MemoryPool) -> None:
        """Start to move data out of a pool to its spill pool, which must have room for them."""
        spill = pool.spill
        pool.leaving[data] = None
        spill.expect(data)
        arrival = self.bring(data, spill, None, "write-back" if spill is self.home else "spill")
        self.leaves(data, pool, arrival)

    def abandon(self) -> None:
        """Call off all data in flight, and forget the claims for room; other movers may use the network."""
        for pool in self.pools.values():
            pool.claims.clear()
            for arrival in pool.arriving.values():
                if arrival.flight is None or not arrival.flight.moving.callbacks:
                    continue
                if self.contention:
                    arrival.flight.moving.callbacks.clear()
                    arrival.flight.moving.cancel()
                else:
                    self.env.withdraw(arrival.flight.moving)
        self.network.off_link_change(self._link_changed)

    def leaves(self, data: LiveData, pool: MemoryPool, arrival: Event) -> None:
        """Drop the copy in a pool once the data have arrived at their destination, unless it is used again."""

        def gone(_: Event) -> None:
            del pool.leaving[data]
            if data in pool.held and data not in pool.uses:
                pool.forget(data)

        # The transfer reads the copy at its source, and releases it before this callback drops it.
        assert arrival.callbacks is not None
        arrival.callbacks.append(gone)


class RoomMaker:
    """Makes room in the pools of a machine for tasks that wait for it.

    Each pool serves its claims in order of arrival. To make room it first drops data that need not be kept, then moves
    data to its spill pool, as far as that has room that no task waits for; the spill pool may spill in turn. If no
    task uses memory and nothing moves, all claims would wait for ever: then the first claim that can be served
    overtakes the others.

    Parameters
    ----------
    env, pools
        the environment; the pools
    move_out
        starts to move data out of a pool, to its spill pool
    """

    def __init__(
        self, env: Environment, pools: Iterable[MemoryPool], move_out: Callable[[LiveData, MemoryPool], object]
    ) -> None:
        self._env = env
        self._move_out = move_out
        self._pools = tuple(pools)
        self._called = False

    def claim(self, pool: MemoryPool, task: LiveTask) -> RoomClaim:
        """Return the claim of a task for room; it happens with the data that the task still lacks."""
        claim = RoomClaim(self._env, task)
        pool.claims.append(claim)
        if len(pool.claims) > 1 or not self._admit(pool, claim):
            for each in self._pools:
                each.changed = self._look_again
            self._look_again()
        return claim

    def _look_again(self) -> None:
        """Serve the claims after the events of this instant that are already scheduled."""
        if not self._called:
            self._called = True
            self._env.call_at(self._env._now, self._serve)

    def _serve(self) -> None:
        for pool in self._pools:
            while pool.claims:
                task = pool.claims[0].task
                if not self._admit(pool, pool.claims[0]):
                    self._make_way(pool, pool.needs(task), _own(task), ())
                    break
        while self._deadlocked() and self._break_deadlock():
            pass
        self._called = False
        if not any(pool.claims for pool in self._pools):
            for pool in self._pools:
                pool.changed = None

    def _admit(self, pool: MemoryPool, claim: RoomClaim) -> bool:
        """Grant a claim if there is room; return whether it was granted."""
        task = claim.task
        missing = pool.take(task)
        if missing is None:
            pool.forget_unneeded(pool.needs(task), _own(task))
            missing = pool.take(task)
            if missing is None:
                return False
        pool.claims.remove(claim)
        claim.succeed(missing)
        return True

    def _make_way(
        self, pool: MemoryPool, amount: float, keep: Collection[LiveData], before: tuple[MemoryPool, ...]
    ) -> None:
        """Start to move data out of a pool, least recently used first, until an amount (bytes) will be free."""
        spill = pool.spill
        if spill is pool or spill in before or spill.claims:
            return
        lacking = pool.used + amount - pool.size - sum(data.size for data in pool.leaving)
        for data in pool.unused():
            if lacking <= 0:
                return
            if data in keep or data in spill.held or data in spill.arriving or not pool.must_move(data):
                continue
            spill.forget_unneeded(data.size)
            if spill.room_for(data.size):
                lacking -= data.size
                self._move_out(data, pool)
            else:
                self._make_way(spill, data.size, (), (*before, pool))

    # ------------------------------------------------------------------ deadlock

    def _deadlocked(self) -> bool:
        """Return whether a claim waits while no task uses memory and nothing moves."""
        return any(pool.claims for pool in self._pools) and not any(
            pool.takers or pool.arriving for pool in self._pools
        )

    def _break_deadlock(self) -> bool:
        """Serve one claim out of turn, or start to make room for one; return whether that was possible."""
        waiting = [(pool, claim) for pool in self._pools for claim in pool.claims]
        if any(self._admit(pool, claim) for pool, claim in waiting):
            return True
        for pool, claim in waiting:
            need, keep = pool.needs(claim.task), _own(claim.task)
            if self._move_all(self._enough(pool, need, keep), pool):
                return True
        for pool, claim in waiting:  # make room in the pool that they would spill to
            need, keep = pool.needs(claim.task), _own(claim.task)
            lacking = pool.used + need - pool.size
            spill = pool.spill
            if spill.spill is not pool and self._move_all(self._enough(spill, lacking, keep), spill):
                return True
        return False

    def _enough(self, pool: MemoryPool, amount: float, keep: Collection[LiveData]) -> list[LiveData]:
        """Return data whose move makes room for an amount (bytes) in a pool; empty if that is impossible."""
        spill = pool.spill
        if spill is pool:
            return []
        lacking = pool.used + amount - pool.size
        room = spill.size - spill.used
        room += sum(data.size for data in spill.unused() if not spill.must_move(data) and data not in pool.held)
        found = []
        for data in pool.unused():
            if lacking <= pool.size * 1e-12:
                break
            if 0 < data.size <= room and data not in keep and data not in spill.held and pool.must_move(data):
                found.append(data)
                lacking -= data.size
                room -= data.size
        return found if lacking <= pool.size * 1e-12 else []

    def _move_all(self, chosen: list[LiveData], pool: MemoryPool) -> bool:
        pool.spill.forget_unneeded(sum(data.size for data in chosen))
        for data in chosen:
            self._move_out(data, pool)
        return bool(chosen)


def _own(task: LiveTask) -> tuple[LiveData, ...]:
    return (*task.inputs, *task.outputs)
