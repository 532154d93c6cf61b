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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from simpy.events import Event

from simmodel.environment import Environment
from simmodel.foundation.display import counted
from simmodel.platform.machine import MemoryPoolSpec
from simmodel.resources.data.eviction import EvictionOrder, RankedData, rule_for_data
from simmodel.resources.models import Model, read_options
from simmodel.work.taskset import LiveData, LiveTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.work.taskset import LiveTask

__all__ = ["DataArrival", "DataHolder", "MemoryPool", "RoomClaim", "nearest"]


class DataArrival:
    """Data on their way to a pool with room reserved for them.

    Attributes
    ----------
    users
        the number of tasks here that wait for them
    under_way, flight
        whether they have left; their transfer, once started
    stale
        whether they were rewritten after they left
    owner
        the task that must bring them
    met
        the event of their arrival, if anybody has asked for it
    part
        the bytes of them that are here already and need not move
    """

    __slots__ = ("env", "flight", "met", "owner", "part", "stale", "under_way", "users")

    def __init__(self, env: Environment, owner: LiveTask | None = None) -> None:
        self.env = env
        self.users = 0
        self.under_way = self.stale = False
        self.owner = owner
        self.flight: Any = None
        self.met: Event | None = None
        self.part = 0.0

    @property
    def event(self) -> Event:
        """An event that happens on their arrival; made on demand, since few of them have a waiter."""
        if self.met is None:
            self.met = Event(self.env)
        return self.met


class RoomClaim(Event):
    """A task's request for room: an event that happens when granted; its value is the data that it must bring."""

    def __init__(self, env: Environment, task: LiveTask) -> None:
        super().__init__(env)
        self.task = task


class DataHolder(Model):
    """Data objects in limited room: the base class of :class:`~simmodel.resources.data.memory.MemoryPool`."""

    def __init__(self, env: Environment, spec: MemoryPoolSpec, index: int = 0) -> None:
        self.env = env
        self.spec = spec
        self.options = read_options(type(self), spec.options, f"options of memory pool {spec.name}")
        self.name = spec.name
        self.size = spec.size
        self.index = index
        self._only: tuple[Any, ...] = (self,)  # the copies of data that are here and nowhere else
        self.used = 0.0
        self.peak = 0.0
        self.held: OrderedDict[LiveData, None] = OrderedDict()
        self.uses: dict[LiveData, int] = {}  # few: `held` may have half a million, and a look-up there misses the cache
        self.order: EvictionOrder | None = None
        if spec.evict != "lru":
            self.held = ranked = RankedData(rule_for_data(spec.evict, f"memory pool {spec.name}, evict"))
            self.order = ranked.order
        self.arriving: dict[LiveData, DataArrival] = {}
        self.leaving: dict[LiveData, None] = {}
        self.writing: dict[LiveData, int] = {}
        self.awaited: dict[LiveData, None] = {}
        self.stale: dict[LiveData, None] = {}  # copies still in use of data that were rewritten
        self.parts: dict[LiveData, float] = {}
        self._evicts_all = type(self).may_evict is DataHolder.may_evict
        self.changed: Callable[[], None] | None = None
        self._steps = array("d", (env._now, 0.0))

    def __repr__(self) -> str:
        use = f"{self.used:g} of {self.size:g} bytes used"
        return f"<{type(self).__name__} {self.name}: {use}, {counted(len(self.held), 'data object')}>"

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

    # ------------------------------------------------------------------ the parts that models override

    def may_evict(self, data: LiveData) -> bool:
        """Return whether data that nobody uses may go when room is needed; the rule ``evict`` says which go first."""
        return True

    def remains(self, here: float, lacking: float) -> float:
        """Return how many bytes stay of data that give way; default: none.

        Parameters
        ----------
        here, lacking
            their bytes that are here, and the bytes that are needed
        """
        return 0.0

    # ------------------------------------------------------------------ bytes

    def _add(self, amount: float) -> None:
        self.used = used = self.used + amount
        if used > self.peak:
            self.peak = used
        note = self._steps.append
        note(self.env._now)
        note(used)

    def _remove(self, amount: float) -> None:
        self.used = used = self.used - amount if self.held or self.arriving else max(0.0, self.used - amount)
        note = self._steps.append
        note(self.env._now)
        note(used)
        if self.changed is not None:
            self.changed()

    def room_for(self, amount: float) -> bool:
        """Return whether ``amount`` bytes are free, up to rounding errors."""
        return self.used + amount <= self.size * (1 + 1e-12)

    def set_used(self, used: float, peak: float) -> None:
        """Set the bytes in use and their peak."""
        self.used = used
        self.peak = peak
        self._steps = array("d", (self.env._now, used))

    # ------------------------------------------------------------------ data

    def put(self, data: LiveData) -> None:
        """Place unused data here."""
        self._add(data.size)
        self.held[data] = None
        data.copies += (self,)

    def expect(self, data: LiveData) -> DataArrival:
        """Reserve room for data about to come that no task here waits for yet."""
        self._add(self.lacking(data))
        self.arriving[data] = arrival = DataArrival(self.env)
        arrival.part = self.parts.pop(data, 0.0)
        return arrival

    def lacking(self, data: LiveData) -> float:
        """Return the bytes of data that are not here, of those that must come."""
        return data.size - self.parts.get(data, 0.0)

    def arrived(self, data: LiveData) -> DataArrival:
        """Note the arrival of data; the caller notifies those who wait for it."""
        arrival = self.arriving.pop(data)
        self.awaited.pop(data, None)
        if arrival.users:
            self.uses[data] = self.uses.get(data, 0) + arrival.users
        if self in data.copies or (self.stale and data in self.stale):  # written here meanwhile
            self._remove(data.size)
        else:
            self.held[data] = None
            data.copies = (*data.copies, self) if data.copies else self._only
        if self.changed is not None:
            self.changed()
        return arrival

    def forget(self, data: LiveData, kept: float = 0.0) -> None:
        """Drop an unused copy, except for some bytes of it that are kept."""
        del self.held[data]
        self.awaited.pop(data, None)
        data.copies = tuple(pool for pool in data.copies if pool is not self)
        if kept:
            self.parts[data] = kept
        self._remove(data.size - kept)

    def _keep(self, data: LiveData, kept: float) -> float:
        """Drop a part of data, except for some bytes of it; return these."""
        amount = self.parts[data] - kept
        if kept:
            self.parts[data] = kept
        else:
            del self.parts[data]
        self._remove(amount)
        return kept

    def use(self, data: LiveData, users: int = 1) -> None:
        """Protect a copy from eviction while it is used."""
        self.uses[data] = self.uses.get(data, 0) + users

    def _unuse(self, data: LiveData) -> None:
        left = self.uses[data] - 1
        if left:
            self.uses[data] = left
        else:
            del self.uses[data]

    def unuse(self, data: LiveData) -> None:
        """End the protection of a copy that was read from outside."""
        left = self.uses[data] - 1
        if left:
            self.uses[data] = left
        else:
            del self.uses[data]
        if self.stale:
            self._forget_stale()
        if self.changed is not None:
            self.changed()

    def written_elsewhere(self, data: LiveData) -> None:
        """Mark copies here, or on their way here, as stale: the data were rewritten in another pool."""
        arrival = self.arriving.get(data)
        if arrival is not None:
            arrival.stale = arrival.under_way
            if not arrival.under_way:
                arrival.part = 0.0
        if data in self.parts:
            self._keep(data, 0.0)
        if data in self.held:
            self.stale[data] = None
            self._forget_stale()

    def _forget_stale(self) -> None:
        for data in [data for data in self.stale if data not in self.uses]:
            del self.stale[data]
            self.forget(data)

    def turn_away(self, data: LiveData) -> None:
        """Free the room of data that arrived stale."""
        arrival = self.arriving.pop(data)
        self.awaited.pop(data, None)
        self._remove(data.size)
        if arrival.met is not None:
            arrival.met.succeed()

    # ------------------------------------------------------------------ room

    def unused(self) -> Iterator[LiveData]:
        """Iterate over unused data that are not leaving, in the order of the eviction rule."""
        uses, leaving = self.uses, self.leaving
        ranked = self.order
        all_held: Iterable[LiveData] = self.held if ranked is None else (each.name for each in ranked)
        found = (data for data in all_held if data not in uses and data not in leaving)
        return found if self._evicts_all else filter(self.may_evict, found)

    def forget_unneeded(self, amount: float, keep: Collection[LiveData] = ()) -> None:
        """Drop data that need not be kept, in the order of the eviction rule, until ``amount`` bytes are free."""
        lacking = self.used + amount - self.size * (1 + 1e-12)
        if lacking <= 0:
            return
        for data, part in list(self.parts.items()):
            if lacking > 0 and data not in keep:
                lacking -= part - self._keep(data, self.remains(part, lacking))
        found = []
        for data in self.unused() if lacking > 0 else ():
            if data not in keep and not self.must_move(data):
                found.append((data, lacking))
                lacking -= data.size
                if lacking <= 0:
                    break
        for data, bytes_lacking in found:
            kept = self.remains(data.size, bytes_lacking) if len(data.copies) > 1 else 0.0
            self.forget(data, kept)

    def must_move(self, data: LiveData) -> bool:
        """Return whether this is the last copy of data that are still needed."""
        if not data.readers and not data.kept:
            return False
        if len(data.copies) == 1:
            return True
        return not any(pool is not self and data not in pool.leaving for pool in data.copies)


class MemoryPool(DataHolder):
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
    held, uses
        the data in it, least recently used first; the number of users of those in use
    order
        the data in the order of another eviction rule; ``None``: the least recently used go first
    arriving, leaving
        the data on their way to it, and those being moved out
    writing
        the data being written here but not here yet, with the number of tasks that write each
    awaited
        the data that queued tasks will bring
    parts
        data of which only some bytes are left here, and these bytes
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
        super().__init__(env, spec, index)
        self.spill: MemoryPool = self
        self.takers = 0
        self.claims: deque[RoomClaim] = deque()
        self._admits_all = type(self).admits is MemoryPool.admits

    def admits(self, task: LiveTask) -> bool:
        """Return whether a task, for whose data and memory there is room, may have them now; asked again later.

        It is asked about the data of a workflow, too, when they come: these have ``memory`` and no inputs or outputs.
        """
        return True

    # ------------------------------------------------------------------ tasks

    def needs(self, task: LiveTask) -> float:
        """Return the bytes that a task would have to reserve here: for missing data, and its own memory."""
        need = task.memory
        held, arriving = self.held, self.arriving
        for data in task.inputs:
            if data not in held and data not in arriving:
                need += self.lacking(data)
        for data in task.outputs:
            if data not in held and data not in task.inputs and data not in self.writing:
                need += data.size
        return need

    def take(self, task: LiveTask) -> tuple[LiveData, ...] | list[LiveData] | None:
        """Reserve a task's memory; return the data that the caller must bring, or ``None`` if there is no room.

        All its data are in use from now on, including those on their way.
        """
        # The inner loop of tasks with data. Where a pool has no stale copies, those in it are those that data list.
        held, stale, writing, arriving = self.held, self.stale, self.writing, self.arriving
        inputs, outputs = task.inputs, task.outputs
        if not self._admits_all and not self.admits(task):
            return None
        amount = task.memory
        missing: tuple[LiveData, ...] | list[LiveData] = ()
        for data in inputs:
            if self not in data.copies and data not in arriving and not (stale and data in stale):
                amount += data.size
                if missing:
                    missing.append(data)  # type: ignore[union-attr]
                else:
                    missing = [data]
        for data in outputs:
            if self not in data.copies and data not in inputs and data not in writing and not (stale and data in stale):
                amount += data.size
        parts = self.parts
        if parts:
            amount -= sum(parts.get(data, 0.0) for data in missing)
        if self.used + amount > self.size and not self.room_for(amount):
            return None
        if amount:
            self._add(amount)
        self.takers += 1
        uses = self.uses
        for data in inputs:
            if self in data.copies or (stale and data in stale):
                uses[data] = uses.get(data, 0) + 1
                held.move_to_end(data)
            else:
                arrival = arriving.get(data)
                if arrival is None:
                    arriving[data] = arrival = DataArrival(self.env, task)
                arrival.users += 1
        for data in outputs:
            if data not in inputs:
                self._write(data)
        if parts:
            for data in missing:
                arriving[data].part = parts.pop(data, 0.0)
        return missing

    def _write(self, data: LiveData) -> None:
        """Note that a task begins to write data here."""
        if data in self.writing:
            self.writing[data] += 1
        elif self in data.copies or (self.stale and data in self.stale):
            self.use(data)
        else:
            self.writing[data] = 1
            data.coming = self

    def take_again(self, task: LiveTask) -> None:
        """Restore a task's use of its data from a snapshot, whose bytes in use already include them."""
        self.takers += 1
        for data in task.inputs:
            if data in self.held:
                self.use(data)
            else:
                self.arriving[data].users += 1
        for data in task.outputs:
            if data not in task.inputs:
                self._write(data)

    def give_back(self, task: LiveTask, done: bool) -> None:
        """Release a task's memory; its outputs become available if it is done, otherwise their room is freed."""
        inputs = task.inputs
        uses = self.uses
        self.takers -= 1
        for data in inputs:
            left = uses[data] - 1
            if left:
                uses[data] = left
            else:
                del uses[data]
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
                self._unuse(data)
        if task.memory:
            self._remove(task.memory)
        elif self.changed is not None:
            self.changed()

    def _end_writing(self, data: LiveData, done: bool) -> None:
        """Note that a task writing data here is done, or was stopped."""
        writers = self.writing.pop(data) - 1
        if not done:
            if writers:
                self.writing[data] = writers
            else:
                data.coming = None
                self._remove(data.size)
            return
        users = writers
        arrival = self.arriving.get(data) if self.arriving else None
        if self in data.copies or (self.stale and data in self.stale):  # an old copy has arrived meanwhile: overwritten
            self._remove(data.size)
        else:
            self.held[data] = None
            data.copies = (*data.copies, self) if data.copies else self._only
            if arrival is not None:
                users += arrival.users
                arrival.users = 0
        if users:
            self.use(data, users)

    def land(self, data: LiveData) -> None:
        """Place data from outside here; their bytes were reserved as for a task."""
        self.takers -= 1
        self.held[data] = None
        data.copies = (self,)
        if self.changed is not None:
            self.changed()


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
