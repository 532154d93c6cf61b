"""Memory pools: the data in them, their users, and eviction.

A task reserves all its memory at once: for its inputs, its outputs and its own working memory. Inputs and outputs are
in use until the task is done; then the outputs are available to others. Unused data stay until room is needed; the
eviction rule says which go first, by default the least recently used. A copy that is not the last one, or that no task
will read any more, is dropped; the last copy of data that will still be read, and of results, is first moved to a
slower pool.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from simpy.events import Event

from simmodel.environment import Environment
from simmodel.platform.machine import MemoryPoolSpec
from simmodel.resources.eviction import EvictionOrder, RankedCounts, rule_for_data
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DataArrival", "MemoryPool", "RoomClaim", "nearest"]


class DataArrival(Event):
    """Data on their way to a pool with room reserved for them: an event that happens on their arrival."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.users = 0
        self.under_way = False
        self.stale = False  # the data were rewritten after they left
        self.owner: LiveTask | None = None  # the task that must bring them
        self.flight: Any = None  # their transfer, once started


class RoomClaim(Event):
    """A task's request for room: an event that happens when granted; its value is the data that it must bring."""

    def __init__(self, env: Environment, task: LiveTask) -> None:
        super().__init__(env)
        self.task = task


class MemoryPool:
    """A memory that holds data objects.

    Parameters
    ----------
    env
        the environment
    spec
        its name, its size and the pool to which it spills

    Attributes
    ----------
    name, size
        its name, and its size in bytes
    used, peak
        bytes in use now, and at most so far
    held
        the data in it, least recently used first, with the number of users of each
    order
        the data in the order of another eviction rule; ``None``: the least recently used go first
    arriving, leaving
        the data on their way to it, and those being moved out
    writing
        the data being written here but not here yet, with the number of tasks that write each
    awaited
        the data that queued tasks will bring
    takers
        the number of tasks with reserved memory
    claims
        the tasks that wait for room, in order
    changed
        called when bytes are freed or data come out of use, while a task waits for room
    index
        its position in the machine

    >>> env = Environment()
    >>> pool = MemoryPool(env, MemoryPoolSpec(name="hbm", size=100.0))
    >>> a, b = LiveData("a", 60.0), LiveData("b", 60.0)
    >>> pool.put(a); pool.used, pool.room_for(60.0), pool.free
    (60.0, False, 40.0)
    >>> pool.forget_unneeded(60.0); pool.put(b); pool
    <MemoryPool hbm: 60 of 100 bytes used, 1 data object>
    """

    def __init__(self, env: Environment, spec: MemoryPoolSpec, index: int = 0) -> None:
        self.env = env
        self.spec = spec
        self.name = spec.name
        self.size = spec.size
        self.index = index
        self.spill: MemoryPool = self
        self.used = 0.0
        self.peak = 0.0
        self.held: OrderedDict[LiveData, int] = OrderedDict()
        self.order: EvictionOrder | None = None
        if spec.evict != "lru":
            self.held = ranked = RankedCounts(rule_for_data(spec.evict, f"memory pool {spec.name}, evict"))
            self.order = ranked.order
        self.arriving: dict[LiveData, DataArrival] = {}
        self.leaving: dict[LiveData, None] = {}
        self.writing: dict[LiveData, int] = {}
        self.awaited: dict[LiveData, None] = {}
        self.stale: dict[LiveData, None] = {}  # copies still in use of data that were rewritten
        self.takers = 0
        self.claims: deque[RoomClaim] = deque()
        self.changed: Callable[[], None] | None = None
        self._steps = array("d", (env._now, 0.0))

    def __repr__(self) -> str:
        plural = "" if len(self.held) == 1 else "s"
        return (
            f"<MemoryPool {self.name}: {self.used:g} of {self.size:g} bytes used, {len(self.held)} data object{plural}>"
        )

    @property
    def free(self) -> float:
        """Free bytes."""
        return self.size - self.used

    def steps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the instants (s) at which the use changed, and the bytes used from then on."""
        found = np.array(self._steps).reshape(-1, 2)
        times, used = found[:, 0], found[:, 1]
        last = np.append(times[1:] != times[:-1], True)  # the last value of each instant
        return times[last], used[last]

    # ------------------------------------------------------------------ bytes

    def _add(self, amount: float) -> None:
        self.used = used = self.used + amount
        if used > self.peak:
            self.peak = used
        self._steps.extend((self.env._now, used))

    def _remove(self, amount: float) -> None:
        self.used = used = self.used - amount if self.held or self.arriving else max(0.0, self.used - amount)
        self._steps.extend((self.env._now, used))
        if self.changed is not None:
            self.changed()

    def room_for(self, amount: float) -> bool:
        """Return whether ``amount`` bytes are free, up to rounding errors."""
        return self.used + amount <= self.size * (1 + 1e-12)

    # ------------------------------------------------------------------ tasks

    def needs(self, task: LiveTask) -> float:
        """Return the bytes that a task would have to reserve here: for missing data, and its own memory."""
        need = task.memory
        held, arriving = self.held, self.arriving
        for data in task.inputs:
            if data not in held and data not in arriving:
                need += data.size
        for data in task.outputs:
            if data not in held and data not in task.inputs and data not in self.writing:
                need += data.size
        return need

    def take(self, task: LiveTask) -> tuple[LiveData, ...] | list[LiveData] | None:
        """Reserve a task's memory; return the data that the caller must bring, or ``None`` if there is no room.

        All its data are in use from now on, including those on their way.
        """
        held = self.held
        writing = self.writing
        inputs = task.inputs
        outputs = task.outputs
        amount = task.memory
        missing: tuple[LiveData, ...] | list[LiveData] = ()
        arriving = self.arriving
        for data in inputs:
            if data not in held and data not in arriving:
                amount += data.size
                if missing:
                    missing.append(data)  # type: ignore[union-attr]
                else:
                    missing = [data]
        for data in outputs:
            if data not in held and data not in inputs and data not in writing:
                amount += data.size
        if self.used + amount > self.size and not self.room_for(amount):
            return None
        if amount:
            self._add(amount)
        self.takers += 1
        for data in inputs:
            if data in held:
                held[data] += 1
                held.move_to_end(data)
            else:
                arrival = arriving.get(data)
                if arrival is None:
                    arriving[data] = arrival = DataArrival(self.env)
                    arrival.owner = task
                arrival.users += 1
        for data in outputs:
            if data in inputs:
                continue
            if data in writing:
                writing[data] += 1
            elif data in held:
                held[data] += 1
            else:
                writing[data] = 1
                data.coming = self
        return missing

    def take_again(self, task: LiveTask) -> None:
        """Restore a task's use of its data from a snapshot, whose bytes in use already include them."""
        self.takers += 1
        for data in task.inputs:
            if data in self.held:
                self.held[data] += 1
            else:
                self.arriving[data].users += 1
        for data in task.outputs:
            if data in task.inputs:
                continue
            if data in self.writing:
                self.writing[data] += 1
            elif data in self.held:
                self.held[data] += 1
            else:
                self.writing[data] = 1
                data.coming = self

    def set_used(self, used: float, peak: float) -> None:
        """Set the bytes in use and their peak."""
        self.used = used
        self.peak = peak
        self._steps = array("d", (self.env._now, used))

    def give_back(self, task: LiveTask, done: bool) -> None:
        """Release a task's memory; its outputs become available if it is done, otherwise their room is freed."""
        held = self.held
        inputs = task.inputs
        self.takers -= 1
        for data in inputs:
            held[data] -= 1
        if self.stale:
            if done:
                for data in task.outputs:
                    self.stale.pop(data, None)
            self._forget_stale()
        for data in task.outputs:
            if data in inputs:
                continue
            if data in self.writing:
                self._end_writing(data, done)
            else:
                held[data] -= 1
        if task.memory:
            self._remove(task.memory)
        elif self.changed is not None:
            self.changed()

    def _end_writing(self, data: LiveData, done: bool) -> None:
        """Note that a task writing data here is done, or was stopped."""
        writers = self.writing[data] - 1
        if not done:
            if writers:
                self.writing[data] = writers
            else:
                del self.writing[data]
                data.coming = None
                self._remove(data.size)
            return
        del self.writing[data]
        held = self.held
        if data in held:  # an old copy has arrived meanwhile: overwritten
            held[data] += writers
            self._remove(data.size)
            return
        held[data] = writers
        data.copies += (self,)
        arrival = self.arriving.get(data)
        if arrival is not None:
            held[data] += arrival.users
            arrival.users = 0

    # ------------------------------------------------------------------ data

    def put(self, data: LiveData) -> None:
        """Place unused data here."""
        self._add(data.size)
        self.held[data] = 0
        data.copies += (self,)

    def land(self, data: LiveData) -> None:
        """Place data from outside here; their bytes were reserved as for a task."""
        self.takers -= 1
        self.held[data] = 0
        data.copies = (self,)
        if self.changed is not None:
            self.changed()

    def expect(self, data: LiveData) -> DataArrival:
        """Reserve room for data about to come that no task here waits for yet."""
        self._add(data.size)
        self.arriving[data] = arrival = DataArrival(self.env)
        return arrival

    def arrived(self, data: LiveData) -> DataArrival:
        """Note the arrival of data; return its event, which the caller triggers."""
        arrival = self.arriving.pop(data)
        self.awaited.pop(data, None)
        if data in self.held:  # written here meanwhile
            self.held[data] += arrival.users
            self._remove(data.size)
        else:
            self.held[data] = arrival.users
            data.copies += (self,)
        if self.changed is not None:
            self.changed()
        return arrival

    def forget(self, data: LiveData) -> None:
        """Drop an unused copy."""
        del self.held[data]
        self.awaited.pop(data, None)
        data.copies = tuple(pool for pool in data.copies if pool is not self)
        self._remove(data.size)

    def use(self, data: LiveData) -> None:
        """Protect a copy from eviction while it is read from outside."""
        self.held[data] += 1

    def unuse(self, data: LiveData) -> None:
        """End the protection of :meth:`use`."""
        self.held[data] -= 1
        if self.stale:
            self._forget_stale()
        if self.changed is not None:
            self.changed()

    def written_elsewhere(self, data: LiveData) -> None:
        """Mark copies here, or on their way here, as stale: the data were rewritten in another pool."""
        arrival = self.arriving.get(data)
        if arrival is not None and arrival.under_way:
            arrival.stale = True
        if data in self.held:
            self.stale[data] = None
            self._forget_stale()

    def _forget_stale(self) -> None:
        for data in [data for data in self.stale if not self.held[data]]:
            del self.stale[data]
            self.forget(data)

    def turn_away(self, data: LiveData) -> None:
        """Free the room of data that arrived stale."""
        arrival = self.arriving.pop(data)
        self.awaited.pop(data, None)
        self._remove(data.size)
        arrival.succeed()

    # ------------------------------------------------------------------ room

    def unused(self) -> Iterator[LiveData]:
        """Iterate over unused data that are not leaving, in the order of the eviction rule."""
        leaving = self.leaving
        if self.order is not None:
            held, ranked = self.held, self.order
            return (each.name for each in ranked if not held[each.name] and each.name not in leaving)
        return (data for data, users in self.held.items() if not users and data not in leaving)

    def forget_unneeded(self, amount: float, keep: Collection[LiveData] = ()) -> None:
        """Drop data that need not be kept, in the order of the eviction rule, until ``amount`` bytes are free."""
        lacking = self.used + amount - self.size * (1 + 1e-12)
        if lacking <= 0:
            return
        found = []
        for data in self.unused():
            if data not in keep and not self.must_move(data):
                found.append(data)
                lacking -= data.size
                if lacking <= 0:
                    break
        for data in found:
            self.forget(data)

    def must_move(self, data: LiveData) -> bool:
        """Return whether this is the last copy of data that are still needed."""
        if not data.readers and not data.kept:
            return False
        if len(data.copies) == 1:
            return True
        return not any(pool is not self and data not in pool.leaving for pool in data.copies)


def nearest(pools: Sequence[MemoryPool], cost: Sequence[float]) -> MemoryPool:
    """Return the pool with the lowest cost, the first of equal ones.

    Parameters
    ----------
    cost
        seconds to transfer from each pool, by its index
    """
    best = pools[0]
    for pool in pools:
        if cost[pool.index] < cost[best.index]:
            best = pool
    return best
