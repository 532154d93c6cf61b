"""Data movement between the pools of a machine: on demand, ahead of time, and out of full pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, NamedTuple

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.errors import InputError
from simmodel.resources.memory import DataArrival, MemoryPool, nearest
from simmodel.resources.network import Network
from simmodel.resources.services import Moved
from simmodel.systems.machine.room import RoomMaker
from simmodel.work.livetask import LiveData, LiveTask

__all__ = ["DataMover", "Flight"]


class Flight(NamedTuple):
    """Data in flight: since when (s), for which task, why, and the event of their arrival.

    ``ends``: the arrival instant (s), if links are not shared.
    """

    data: LiveData
    source: MemoryPool
    pool: MemoryPool
    since: float
    task: LiveTask | None
    cause: str
    moving: Any
    ends: float = 0.0
    number: int = 0


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
        self.moved: list[Moved] = []
        self._numbers = 0
        self._record = record
        self._on_moved: tuple[Callable[..., object], ...] = ()
        self.latency, self.per_byte = self._ways()
        self.room = RoomMaker(env, pools.values(), self.move_out)
        env.on_hooks_changed(self._find_hooks)

    def _find_hooks(self) -> None:
        self._on_moved = self.env.hooks("data_moved")

    def _ways(self) -> tuple[list[list[float]], list[list[float]]]:
        """Return the latency (s) and the seconds per byte from each pool to each other one; ``inf`` without a route."""
        names = list(self.pools)
        latency = [[0.0] * len(names) for _ in names]
        per_byte = [[0.0] * len(names) for _ in names]
        for i, source in enumerate(names):
            for j, destination in enumerate(names):
                if i == j:
                    continue
                try:
                    links = [self.network.links[name] for name in self.network.route(source, destination)]
                except InputError:  # a pool that no processor uses
                    latency[i][j] = per_byte[i][j] = inf
                    continue
                latency[i][j] = sum(link.spec.latency for link in links)
                per_byte[i][j] = 1.0 / min(link.bandwidth for link in links)
        return latency, per_byte

    def transfer_time(self, data: LiveData, pool: MemoryPool) -> float:
        """Return the seconds to move data to a pool over uncontended links; 0 if the pool holds them."""
        best = inf
        to = pool.index
        copies = data.copies
        if not copies:
            if data.coming is None:
                return 0.0
            copies = (data.coming,)
        for source in copies:
            if source is pool:
                return 0.0
            seconds = self.latency[source.index][to] + data.size * self.per_byte[source.index][to]
            best = min(best, seconds)
        return best

    def bring(self, data: LiveData, pool: MemoryPool, task: LiveTask | None, cause: str) -> Event:
        """Start to move data to a pool that has reserved room for them; return the event of their arrival."""
        arrival = pool.arriving[data]
        if arrival.under_way:
            return arrival
        if data in pool.held:  # written there meanwhile
            arrival.under_way = True
            pool.arrived(data).succeed()
            return arrival
        to = pool.index
        copies = data.copies
        source: MemoryPool = copies[0]
        if len(copies) > 1:
            ways = zip(self.latency, self.per_byte, strict=True)
            source = nearest(copies, [latency[to] + data.size * slow[to] for latency, slow in ways])
        now = self.env._now
        if self.contention:
            moving: Any = self.network.transfer(data.size, source=source.name, destination=pool.name)
            ends = 0.0
        else:
            ends = now + self.latency[source.index][to] + data.size * self.per_byte[source.index][to]
            moving = self.env.event_at(ends)
        self._numbers = number = self._numbers + 1
        self.send(Flight(data, source, pool, now, task, cause, moving, ends, number))
        return arrival

    def next_number(self) -> int:
        """Return the number of the next flight."""
        self._numbers += 1
        return self._numbers

    def send(self, flight: Flight) -> None:
        """Put data in flight; the copy at the source is in use until they arrive."""
        moving = flight.moving
        arrival = flight.pool.arriving[flight.data]
        arrival.under_way = True
        arrival.flight = flight
        flight.source.use(flight.data)
        if moving.callbacks is None:  # nothing to move, and no latency
            self._land(flight, arrival, DataArrival.succeed)
        else:
            moving.inside = True
            moving.callbacks.append(partial(self._land, flight, arrival, self.env.happen))

    def _land(
        self, flight: Flight, arrival: DataArrival, happen: Callable[[Any], object], _: Event | None = None
    ) -> None:
        """End a flight; ``happen`` triggers the event of the arrival."""
        data, source, pool, since, task, cause, _moving, _ends, _number = flight
        source.unuse(data)
        if self._record or self._on_moved:
            moved = Moved(data.name, data.size, source.name, pool.name, since, self.env._now, task, cause)
            if self._record:
                self.moved.append(moved)
            for call in self._on_moved:
                call(moved)
        if not arrival.stale or data in pool.held:
            happen(pool.arrived(data))
        elif arrival.users:  # rewritten meanwhile: send them again
            arrival.stale = arrival.under_way = False
            self.bring(data, pool, task, cause)
        else:
            pool.turn_away(data)

    def fetch_ahead(self, task: LiveTask) -> None:
        """Start to move the inputs of a task to its processor's pool: those already written, while there is room."""
        pool = task.place.pool
        for data in task.inputs:
            if data.written and data not in pool.held and data not in pool.arriving:
                if pool.claims or not pool.room_for(data.size):
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

    def leaves(self, data: LiveData, pool: MemoryPool, arrival: Event) -> None:
        """Drop the copy in a pool once the data have arrived at their destination, unless it is used again."""

        def gone(_: Event) -> None:
            del pool.leaving[data]
            if not pool.held.get(data, 1):
                pool.forget(data)

        # The transfer reads the copy at its source, and releases it before this callback drops it.
        assert arrival.callbacks is not None
        arrival.callbacks.append(gone)
