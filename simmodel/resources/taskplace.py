"""The queue of a processor, and what policies may ask of it."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from simpy.events import Event

from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.memory import MemoryPool
from simmodel.resources.services import ProcessorServices
from simmodel.work.livetask import LiveTask

__all__ = ["Family", "QueueState", "RunningTask", "TaskPlace"]

Family = str | LiveTask | None
"""What tasks of one kind are called, which a processor need not be reconfigured between; or the only task of its kind.
"""


class RunningTask(NamedTuple):
    """A task that a processor works on: since when, and until when it is expected to (s)."""

    work: LiveTask
    place: Any
    started: float
    expected_end: float


class QueueState(NamedTuple):
    """What a processor has to do, and what it is doing: what goes on needs, where a copy of it is made.

    ``queue``, ``ranked``: the tasks in its queue, and those of a queue by priority with what they are ordered by;
    ``numbers``: how many were ranked so far; ``queued``: expected seconds in the queue; ``since``, ``until``: s, of
    what it works on; ``loaded``, ``last_family``: the family it has, and that of the end of its queue; ``running``:
    what it works on.
    """

    queue: Sequence[LiveTask]
    ranked: Sequence[tuple[float, int, LiveTask]]
    numbers: int
    queued: float
    since: float
    until: float
    loaded: Family
    last_family: Family
    running: Sequence[RunningTask]


class TaskPlace:
    """A place that takes tasks into a queue: in the order of decisions, or by priority.

    Parameters
    ----------
    services
        the machine
    name, spec
        what it is called and what it is
    pool
        the memory that it works on
    index, kind
        its position among the machine's places, and the column of ``LiveTask.speeds`` that holds for it
    """

    queues = True
    version = 0

    def __init__(
        self,
        services: ProcessorServices,
        name: str,
        spec: ProcessorSpec,
        pool: MemoryPool,
        index: int = 0,
        kind: int = 0,
    ) -> None:
        self.services = services
        self.env = services.env
        self.name = name
        self.spec = spec
        self.type = spec.type
        self.architecture = spec.architecture
        self.pool = pool
        self.index = index
        self.kind = kind
        self.capacity = spec.cores
        self.current: LiveTask | None = None
        self.reconfigures = spec.reconfiguration[1] > 0
        self.loaded: Family = None
        self.last_family: Family = None  # of the queue: what will be loaded when it is empty
        self._queue: deque[LiveTask] = deque()
        self._ranked: list[tuple[float, int, LiveTask]] = []  # of queue="priority": those that are ready
        self._numbers = 0
        self._by_priority = spec.queue == "priority"
        self._since = 0.0
        self._until = 0.0  # when what it does now is expected to end
        self._queued = 0.0  # expected seconds in the queue
        self._sleep: Event | None = None
        self._sets_up = spec.setup > 0

    # ------------------------------------------------------------------ what policies ask

    @property
    def waiting(self) -> list[LiveTask]:
        """The tasks in its queue, in the order in which it takes them; of a queue by priority the ready ones first."""
        return [entry[2] for entry in self._ranked] + list(self._queue)

    @property
    def free(self) -> int:
        """Cores that nothing runs on: 1 or 0."""
        return int(self.current is None)

    def can_run(self, task: LiveTask) -> bool:
        """Return whether it could ever run the task."""
        return task.speeds[self.kind] < inf

    def why_not(self, task: LiveTask) -> str | None:
        """Say why it can never run the task, or ``None``."""
        return None if task.speeds[self.kind] < inf else f"no processor like {self.name} ({self.type}) can run it"

    def fits(self, task: LiveTask) -> bool:
        """Return whether the task would begin now."""
        return self.current is None and not self._queue and not self._ranked and task.speeds[self.kind] < inf

    def expected_run(self, task: LiveTask) -> float:
        """Return the seconds that the task is expected to run here."""
        return task.speeds[self.kind]

    def expected_setup(self, task: LiveTask) -> float:
        """Return the seconds of setup, and of reconfiguration unless what is loaded last is the task's family."""
        seconds = self.spec.setup
        if self.reconfigures and task.family != self.last_family:
            seconds += self.services.reconfiguration_time(self.spec, task)
        return seconds

    def expected_transfer(self, task: LiveTask, *, behind: bool = False) -> float:
        """Return the seconds to bring what the task reads and is not here yet, one after another or at once.

        Parameters
        ----------
        behind
            whether to leave out what tasks in the queues of this memory will have brought before
        """
        awaited = self.pool.awaited if behind else ()
        times = [self.services.mover.transfer_time(data, self.pool) for data in task.inputs if data not in awaited]
        return (max(times) if self.services.mover.parallel else sum(times)) if times else 0.0

    @property
    def available(self) -> float:
        """The instant (s) from which it is expected to have nothing to do."""
        return max(self.env._now, self._until) + self._queued

    @property
    def backlog(self) -> float:
        """The expected seconds of work that it has."""
        return self.available - self.env._now

    @property
    def running(self) -> TaskPlace:
        """What runs here, for :attr:`simmodel.scheduling.protocol.View.running`."""
        return self

    def entries(self) -> list[tuple[float, int, float, RunningTask]]:
        """Return expected end, position, cores and run of each task that runs."""
        task = self.current
        if task is None:
            return []
        return [(self._until, self.index, 1, RunningTask(task, self, self._since, self._until))]

    # ------------------------------------------------------------------ its queue

    def state(self) -> QueueState:
        """Return what it has to do."""
        return QueueState(
            tuple(self._queue),
            tuple(self._ranked),
            self._numbers,
            self._queued,
            self._since,
            self._until,
            self.loaded,
            self.last_family,
            [entry[3] for entry in self.entries()],
        )

    def restore(self, state: QueueState) -> None:
        """Have to do what another one had."""
        self._queue.extend(state.queue)
        self._ranked += state.ranked
        self._numbers, self._queued = state.numbers, state.queued
        self._since, self._until = state.since, state.until
        self.loaded, self.last_family = state.loaded, state.last_family

    def put(self, task: LiveTask) -> None:
        """Take a task into the queue: a blocked one waits there, and so do those behind it."""
        share = task.speeds[self.kind]
        if self._sets_up or self.reconfigures:
            share += self.expected_setup(task)
            self.last_family = task.family
        for data in task.inputs:
            if self.pool not in data.copies and data not in self.pool.awaited:
                share += self.services.mover.transfer_time(data, self.pool)
                self.pool.awaited[data] = None
        task.share = share
        self._queued += share
        if not self._by_priority:
            self._queue.append(task)
        elif task.missing:
            self._queue.append(task)
            return
        else:
            self._rank(task)
        if self._sleep is not None:
            self.wake()

    def remove(self, task: LiveTask) -> None:
        """Take a task that has not begun out of the queue; those behind it may go on."""
        self._ranked = [entry for entry in self._ranked if entry[2] is not task]
        if task in self._queue:
            self._queue.remove(task)
        left = self.waiting
        self._queued = self._queued - task.share if left else 0.0
        last = left[-1] if left else self.current
        self.last_family = self.loaded if last is None else last.family
        for data in task.inputs:
            if not any(data in other.inputs for other in left):
                self.pool.awaited.pop(data, None)
        self.wake()

    def _rank(self, task: LiveTask) -> None:
        self._numbers += 1
        insort(self._ranked, (-task.priority, self._numbers, task))
        if self.spec.preemption != "no":
            self._make_room_by_stopping(task)

    def _make_room_by_stopping(self, task: LiveTask) -> None:
        """Stop what runs, if the task goes before it."""
        running = self.current
        if running is not None and running.priority < task.priority:
            self.stop(running, self.spec.preemption, goes_back=False)

    def task_ready(self, task: LiveTask) -> None:
        """A task of its queue need not wait for others any more."""
        if self._by_priority:
            self._queue.remove(task)
            self._rank(task)
        if self._sleep is not None:
            self.wake()

    def wake(self) -> None:
        """Let the process look at its queue."""
        event, self._sleep = self._sleep, None
        if event is not None:
            event.succeed()

    def _head(self) -> LiveTask | None:
        """Return the task whose turn it is, or ``None`` where there is none or it is blocked."""
        if self._by_priority:
            return self._ranked[0][2] if self._ranked else None
        queue = self._queue
        return queue[0] if queue and not queue[0].missing else None

    def _pop(self) -> LiveTask:
        task = self._ranked.pop(0)[2] if self._by_priority else self._queue.popleft()
        share = task.share
        self._queued = self._queued - share if self._queue or self._ranked else 0.0
        self._since = now = self.env._now
        self._until = now + share
        return task

    def stop(self, task: LiveTask, mode: str, goes_back: bool) -> None:
        """Stop a task that executes."""
        raise NotImplementedError
