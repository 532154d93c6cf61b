"""Memory pools: the data in them, their users, and eviction.

A task reserves all its memory at once: for its inputs, its outputs and its own working memory. Inputs and outputs are
in use until the task is done; then the outputs are available to others. Unused data stay until room is needed; the
eviction rule says which go first, by default the least recently used. A copy that is not the last one, or that no task
will read any more, is dropped; the last copy of data that will still be read, and of results, is first moved to a
slower pool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from simmodel.environment import Environment
from simmodel.platform.machine import MemoryPoolSpec
from simmodel.resources.data.data_holder import DataArrival, DataHolder, RoomClaim
from simmodel.work.livetask import LiveData, LiveTask

__all__ = ["MemoryPool", "nearest"]


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
