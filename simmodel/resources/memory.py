"""A memory pool: which data lie in it, who uses them, and what goes when room is needed.

A task takes at once all that it needs: room for what it reads and writes, and for its own memory. What it reads and
writes is in use from then until it is done. Data that nobody uses stay until room is needed; then the least recently
used goes first. A copy that is not the last one, or that nobody will read any more, is forgotten; the last copy of data
that somebody will read, and of results, is moved to a slower pool first.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from simpy.events import Event

from simmodel.environment import Environment
from simmodel.platform.machine import MemoryPoolSpec
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Arrival", "MemoryPool"]


class Arrival(Event):
    """Data on their way to a pool, where room is kept for them: it happens when they are there."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.users = 0
        self.under_way = False


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
    arriving
        the data on their way to it
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
        self.arriving: dict[LiveData, Arrival] = {}
        self.leaving: dict[LiveData, None] = {}
        self._steps = array("d", (env._now, 0.0))
        self._claims: deque[Event] = deque()  # of those that wait for room, the first has its turn
        self._changed: Event | None = None

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
        if self._changed is not None:
            self._tell()

    def _tell(self) -> None:
        event, self._changed = self._changed, None
        if event is not None:
            event.succeed()

    def changed(self) -> Event:
        """Return an event that happens when bytes are given back, or data come out of use."""
        if self._changed is None:
            self._changed = Event(self.env)
        return self._changed

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
            if data not in held and data not in task.inputs:
                need += data.size
        return need

    def take(self, task: LiveTask) -> tuple[LiveData, ...] | list[LiveData] | None:
        """Take what a task needs; return the data that must still be brought, or ``None`` where there is no room.

        The data are in use from now on, those on their way included; those returned are the caller's to bring.
        """
        held = self.held
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
            if data not in held and data not in task.inputs:
                amount += data.size
        if self.used + amount > self.size and not self.room_for(amount):
            return None
        if amount:
            self._add(amount)
        for data in task.inputs:
            if data in held:
                held[data] += 1
                held.move_to_end(data)
            else:
                arrival = arriving.get(data)
                if arrival is None:
                    arriving[data] = arrival = Arrival(self.env)
                arrival.users += 1
        for data in task.outputs:
            if data in held:
                held[data] += 1
            elif data not in task.inputs:
                held[data] = 1
                data.copies += (self,)
        return missing

    def give_back(self, task: LiveTask, done: bool) -> None:
        """Take a task's data out of use; where it is not done, what it would have written goes too."""
        held = self.held
        for data in task.inputs:
            held[data] -= 1
        for data in task.outputs:
            if data in task.inputs:
                continue
            held[data] -= 1
            if not done and not data.written and not held[data]:
                self.forget(data)
        if task.memory:
            self._remove(task.memory)
        elif self._changed is not None:
            self._tell()

    # ------------------------------------------------------------------ data

    def put(self, data: LiveData) -> None:
        """Have data lie here, which nobody uses yet."""
        self._add(data.size)
        self.held[data] = 0
        data.copies += (self,)

    def expect(self, data: LiveData) -> Arrival:
        """Keep room for data that are about to come, and that nobody here waits for yet."""
        self._add(data.size)
        self.arriving[data] = arrival = Arrival(self.env)
        return arrival

    def arrived(self, data: LiveData) -> None:
        """The data are here."""
        arrival = self.arriving.pop(data)
        self.held[data] = arrival.users
        data.copies += (self,)
        arrival.succeed()
        if self._changed is not None:
            self._tell()

    def forget(self, data: LiveData) -> None:
        """Let a copy go that nobody uses."""
        del self.held[data]
        data.copies = tuple(pool for pool in data.copies if pool is not self)
        self._remove(data.size)

    def use(self, data: LiveData) -> None:
        """Keep a copy from going while it is read from outside."""
        self.held[data] += 1

    def unuse(self, data: LiveData) -> None:
        """End what :meth:`use` began."""
        self.held[data] -= 1
        if self._changed is not None:
            self._tell()

    # ------------------------------------------------------------------ room

    def _unused(self) -> Iterator[LiveData]:
        """Iterate over data that nobody uses, the least recently used first."""
        leaving = self.leaving
        return (data for data, users in self.held.items() if not users and data not in leaving)

    def forget_unneeded(self, amount: float) -> None:
        """Forget what need not be kept, the least recently used first, until so many bytes are free."""
        while not self.room_for(amount):
            for data in self._unused():
                if not self.must_move(data):
                    self.forget(data)
                    break
            else:
                return

    def must_move(self, data: LiveData) -> bool:
        """Return whether this is the last copy of data that are still wanted."""
        if not data.readers and not data.kept:
            return False
        return not any(pool is not self and data not in pool.leaving for pool in data.copies)

    def oldest(self) -> LiveData | None:
        """Return the least recently used of the data that nobody uses, or ``None``."""
        return next(self._unused(), None)

    def queue_for_room(self) -> Event | None:
        """Wait for one's turn to make room: an event where others are before, and ``None`` where nobody is."""
        turn = Event(self.env)
        self._claims.append(turn)
        return turn if len(self._claims) > 1 else None

    def end_of_turn(self) -> None:
        """Let the next one make room."""
        self._claims.popleft()
        if self._claims:
            self._claims[0].succeed()

    @property
    def crowded(self) -> bool:
        """Whether somebody waits for room."""
        return bool(self._claims)


def nearest(pools: Sequence[Any], cost: Sequence[float]) -> Any:
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
