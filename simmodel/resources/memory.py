"""A memory pool: which data lie in it, who uses them, and what goes when room is needed.

A task takes at once all that it needs: room for what it reads and writes, and for its own memory. What it reads and
writes is in use from then until it is done; what it writes is there for others once it is done. Data that nobody uses
stay until room is needed; then the least recently used goes first. A copy that is not the last one, or that nobody will
read any more, is forgotten; the last copy of data that somebody will read, and of results, is moved to a slower pool
first.
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
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DataArrival", "MemoryPool", "RoomClaim", "nearest"]


class DataArrival(Event):
    """Data on their way to a pool, where room is kept for them: it happens when they are there."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.users = 0
        self.under_way = False
        self.stale = False  # the data have been written anew since they left
        self.owner: LiveTask | None = None  # the task that has to bring them
        self.flight: Any = None  # how they come, once they are on their way


class RoomClaim(Event):
    """A task that waits for room: it happens when it has it; its value are the data that it must bring."""

    def __init__(self, env: Environment, task: LiveTask) -> None:
        super().__init__(env)
        self.task = task


class MemoryPool:
    """A memory in which data lie.

    Parameters
    ----------
    env
        the environment
    spec
        its name, size and the pool that takes what must go

    Attributes
    ----------
    name, size
        its name, and bytes in all
    used, peak
        bytes taken now, and the most that they ever were
    held
        the data in it, the least recently used first, and how many use each now
    arriving, leaving
        the data on their way to it, and those that move out
    writing
        the data that are being written here and are not here yet, and how many tasks write each
    awaited
        the data that tasks in queues will have brought
    takers
        number of tasks that have taken what they need
    claims
        the tasks that wait for room, in turn
    changed
        what is called when bytes are given back or data come out of use, while somebody waits for room
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
        self.arriving: dict[LiveData, DataArrival] = {}
        self.leaving: dict[LiveData, None] = {}
        self.writing: dict[LiveData, int] = {}
        self.awaited: dict[LiveData, None] = {}
        self.stale: dict[LiveData, None] = {}  # copies in use of data that have been written anew
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
        """Bytes that nothing has taken."""
        return self.size - self.used

    def steps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the instants (s) at which the use changed, and the bytes used from then on."""
        found = np.array(self._steps).reshape(-1, 2)
        times, used = found[:, 0], found[:, 1]
        last = np.append(times[1:] != times[:-1], True)  # of one instant, what it came to
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
        """Return whether so many bytes are free, up to the rounding of sums."""
        return self.used + amount <= self.size * (1 + 1e-12)

    # ------------------------------------------------------------------ tasks

    def needs(self, task: LiveTask) -> float:
        """Return the bytes that a task would still have to take here: for data that are not here, and its own."""
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
        """Take what a task needs; return the data that must still be brought, or ``None`` where there is no room.

        The data are in use from now on, those on their way included; those returned are the caller's to bring.
        """
        held = self.held
        writing = self.writing
        amount = task.memory
        missing: tuple[LiveData, ...] | list[LiveData] = ()
        arriving = self.arriving
        for data in task.inputs:
            if data not in held and data not in arriving:
                amount += data.size
                if missing:
                    missing.append(data)  # type: ignore[union-attr]
                else:
                    missing = [data]
        for data in task.outputs:
            if data not in held and data not in task.inputs and data not in writing:
                amount += data.size
        if self.used + amount > self.size and not self.room_for(amount):
            return None
        if amount:
            self._add(amount)
        self.takers += 1
        for data in task.inputs:
            if data in held:
                held[data] += 1
                held.move_to_end(data)
            else:
                arrival = arriving.get(data)
                if arrival is None:
                    arriving[data] = arrival = DataArrival(self.env)
                    arrival.owner = task
                arrival.users += 1
        for data in task.outputs:
            if data in task.inputs:
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
        """Have a task use what it had taken when a snapshot was made; the bytes are counted there."""
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
        """Begin to count from so many bytes used."""
        self.used = used
        self.peak = peak
        self._steps = array("d", (self.env._now, used))

    def give_back(self, task: LiveTask, done: bool) -> None:
        """Take a task's data out of use; what it has written is there now, where it is done, and else its room goes."""
        held = self.held
        self.takers -= 1
        for data in task.inputs:
            held[data] -= 1
        if self.stale:
            if done:
                for data in task.outputs:
                    self.stale.pop(data, None)
            self._forget_stale()
        for data in task.outputs:
            if data in task.inputs:
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
        """One of those that write data here is done, or was stopped."""
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
        if data in held:  # a copy of what it was before has come meanwhile: it is written over
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
        """Have data lie here, which nobody uses yet."""
        self._add(data.size)
        self.held[data] = 0
        data.copies += (self,)

    def land(self, data: LiveData) -> None:
        """Have data lie here, from outside, whose bytes were taken like those of a task."""
        self.takers -= 1
        self.held[data] = 0
        data.copies = (self,)
        if self.changed is not None:
            self.changed()

    def expect(self, data: LiveData) -> DataArrival:
        """Keep room for data that are about to come, and that nobody here waits for yet."""
        self._add(data.size)
        self.arriving[data] = arrival = DataArrival(self.env)
        return arrival

    def arrived(self, data: LiveData) -> None:
        """The data are here."""
        arrival = self.arriving.pop(data)
        self.awaited.pop(data, None)
        if data in self.held:  # written here meanwhile
            self.held[data] += arrival.users
            self._remove(data.size)
        else:
            self.held[data] = arrival.users
            data.copies += (self,)
        arrival.succeed()
        if self.changed is not None:
            self.changed()

    def forget(self, data: LiveData) -> None:
        """Let a copy go that nobody uses."""
        del self.held[data]
        self.awaited.pop(data, None)
        data.copies = tuple(pool for pool in data.copies if pool is not self)
        self._remove(data.size)

    def use(self, data: LiveData) -> None:
        """Keep a copy from going while it is read from outside."""
        self.held[data] += 1

    def unuse(self, data: LiveData) -> None:
        """End what :meth:`use` began."""
        self.held[data] -= 1
        if self.stale:
            self._forget_stale()
        if self.changed is not None:
            self.changed()

    def written_elsewhere(self, data: LiveData) -> None:
        """The data have been written anew in another pool: what is here, or comes here, is of old."""
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
        """Give the room back of data that came, and that nobody wants as they are."""
        arrival = self.arriving.pop(data)
        self.awaited.pop(data, None)
        self._remove(data.size)
        arrival.succeed()

    # ------------------------------------------------------------------ room

    def unused(self) -> Iterator[LiveData]:
        """Iterate over data that nobody uses and that stay, the least recently used first."""
        leaving = self.leaving
        return (data for data, users in self.held.items() if not users and data not in leaving)

    def forget_unneeded(self, amount: float, keep: Collection[LiveData] = ()) -> None:
        """Forget what need not be kept, the least recently used first, until so many bytes are free."""
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
        """Return whether this is the last copy of data that are still wanted."""
        if not data.readers and not data.kept:
            return False
        if len(data.copies) == 1:
            return True
        return not any(pool is not self and data not in pool.leaving for pool in data.copies)


def nearest(pools: Sequence[MemoryPool], cost: Sequence[float]) -> MemoryPool:
    """Return the pool from which bytes come soonest; the first of those that are equal.

    Parameters
    ----------
    cost
        seconds from each pool, by its index
    """
    best = pools[0]
    for pool in pools:
        if cost[pool.index] < cost[best.index]:
            best = pool
    return best
