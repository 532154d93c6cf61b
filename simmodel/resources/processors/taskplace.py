"""The queue of a processor, its view by policies, and the shares of bandwidth that its tasks hold."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy.events import Event

from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.pools.pool import Consumables
from simmodel.resources.processors.services import ProcessorServices
from simmodel.work.task import shares_of
from simmodel.work.taskset import LiveTask

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.network.network import Network

__all__ = ["Family", "QueueState", "RunningTask", "TaskPlace", "TaskShares"]


Family = str | LiveTask | None
"""The family of a task: no reconfiguration between tasks of one family; a task without a family is its own."""


class RunningTask(NamedTuple):
    """A running task: its processor, its start and its expected end (s)."""

    work: LiveTask
    place: Any
    started: float
    expected_end: float


class QueueState(NamedTuple):
    """The queued and running work of a processor, for snapshots.

    ``queue``: the queued tasks in order; ``ranked``: the ready tasks of a priority queue with their sort keys;
    ``numbers``: tasks ranked so far; ``queued``: expected seconds of work in the queue; ``since``, ``until``: start and
    expected end of the current task (s); ``loaded``, ``last_family``: the family loaded, and that of the last task in
    the queue; ``running``: the running tasks.
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
    """A place with a queue of tasks, ordered by decision or by priority.

    Parameters
    ----------
    services
        the machine
    name, spec
        its name and spec
    pool
        its memory pool
    index, kind
        its position among the machine's places, and its column of ``LiveTask.speeds``
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
        self.last_family: Family = None  # of the queue: the family loaded once it is empty
        self._queue: deque[LiveTask] = deque()
        self._ranked: list[tuple[float, int, LiveTask]] = []  # of queue="priority": the ready tasks
        self._numbers = 0
        self._by_priority = spec.queue == "priority"
        self._since = 0.0
        self._until = 0.0  # expected end of the current task
        self._queued = 0.0  # expected seconds in the queue
        self._sleep: Event | None = None
        self._sets_up = spec.setup > 0

    # ------------------------------------------------------------------ questions of policies

    @property
    def waiting(self) -> list[LiveTask]:
        """The queued tasks in serving order; a priority queue has the ready ones first."""
        return [entry[2] for entry in self._ranked] + list(self._queue)

    @property
    def free(self) -> int:
        """Idle cores: 1 or 0."""
        return int(self.current is None)

    def can_run(self, task: LiveTask) -> bool:
        """Return whether it could ever run the task."""
        return task.speeds[self.kind] < inf

    def why_not(self, task: LiveTask) -> str | None:
        """Return why it can never run the task, or ``None``."""
        return None if task.speeds[self.kind] < inf else f"no processor like {self.name} ({self.type}) can run it"

    def fits(self, task: LiveTask) -> bool:
        """Return whether the task would start now."""
        room = self.current is None and not self._queue and not self._ranked and task.speeds[self.kind] < inf
        return room and (self.services.shares is None or self.services.shares.fits(task))

    def expected_run(self, task: LiveTask) -> float:
        """Return the expected run time of the task here, in seconds."""
        return task.speeds[self.kind]

    def expected_setup(self, task: LiveTask, *, now: bool = False) -> float:
        """Return the seconds of setup, plus reconfiguration unless the queue ends with the task's family.

        Parameters
        ----------
        now
            whether to compare with the family that is loaded now, whatever the queue ends with
        """
        seconds = self.spec.setup
        if self.reconfigures and task.family != (self.loaded if now else self.last_family):
            seconds += self.services.reconfiguration_time(self.spec, task)
        return seconds

    def expected_transfer(self, task: LiveTask, *, behind: bool = False) -> float:
        """Return the seconds to transfer the task's missing inputs, one after another or in parallel.

        Parameters
        ----------
        behind
            whether to leave out data that tasks already queued on this memory pool will bring
        """
        awaited = self.pool.awaited if behind else ()
        times = [self.services.mover.transfer_time(data, self.pool) for data in task.inputs if data not in awaited]
        return (max(times) if self.services.mover.parallel else sum(times)) if times else 0.0

    @property
    def available(self) -> float:
        """The instant (s) from which it is expected to be idle."""
        return max(self.env._now, self._until) + self._queued

    @property
    def backlog(self) -> float:
        """The expected seconds of its remaining and queued work."""
        return max(0.0, self.available - self.env._now)  # sums of seconds are rounded

    @property
    def running(self) -> TaskPlace:
        """The running work, for :attr:`simmodel.scheduling.protocol.View.running`."""
        return self

    def entries(self) -> list[tuple[float, int, float, RunningTask]]:
        """Return (expected end, position, cores, run) of each running task."""
        task = self.current
        if task is None:
            return []
        return [(self._until, self.index, 1, RunningTask(task, self, self._since, self._until))]

    # ------------------------------------------------------------------ the queue

    def state(self) -> QueueState:
        """Return its queued and running work."""
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
        """Take over the state of another processor."""
        self._queue.extend(state.queue)
        self._ranked += state.ranked
        self._numbers, self._queued = state.numbers, state.queued
        self._since, self._until = state.since, state.until
        self.loaded, self.last_family = state.loaded, state.last_family

    def put(self, task: LiveTask) -> None:
        """Queue a task; a blocked task waits in the queue and holds up those behind it."""
        share = task.speeds[self.kind]
        if self._sets_up or self.reconfigures:
            share += self.expected_setup(task)
            self.last_family = task.family
        pool = self.pool
        for data in task.inputs:
            if pool not in data.copies and data not in pool.awaited:
                share += self.services.mover.transfer_time(data, pool)
                pool.awaited[data] = None
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
        """Remove a task that has not started from the queue; it no longer holds up those behind it."""
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
        """Stop the running task if the new one has priority over it."""
        running = self.current
        if running is not None and running.priority < task.priority:
            self.stop(running, self.spec.preemption, goes_back=False)

    def task_ready(self, task: LiveTask) -> None:
        """Note that a queued task is ready: its parents are done."""
        if self._by_priority:
            self._queue.remove(task)
            self._rank(task)
        if self._sleep is not None:
            self.wake()

    def wake(self) -> None:
        """Wake the process to look at its queue."""
        event, self._sleep = self._sleep, None
        if event is not None:
            event.succeed()

    def _head(self) -> LiveTask | None:
        """Return the next task, or ``None`` if the queue is empty or its head is blocked."""
        if self._by_priority:
            return self._ranked[0][2] if self._ranked else None
        queue = self._queue
        return queue[0] if queue and not queue[0].missing else None

    def _pop(self) -> LiveTask:
        queue = self._queue
        task = self._ranked.pop(0)[2] if self._by_priority else queue.popleft()
        share = task.share
        self._queued = self._queued - share if queue or self._ranked else 0.0
        self._since = now = self.env._now
        self._until = now + share
        return task

    def stop(self, task: LiveTask, mode: str, goes_back: bool) -> None:
        """Stop an executing task."""
        raise NotImplementedError


class _Claim(NamedTuple):
    since: float  # when the data of the task were there (s)
    place: int
    task: LiveTask
    event: Event


class TaskShares:
    """The bandwidth that tasks hold, withheld from transfers; claims are served in order.

    Parameters
    ----------
    env, network, places
        the environment; the network whose shared links have the bandwidth; the processors, whose queues ask for some

    >>> from simmodel import Task, Workflow, simulate
    >>> from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="a"), MemoryPoolSpec(name="b")], architectures=[ArchitectureSpec(name="x")],
    ...     processors=[ProcessorSpec(name="p", count=3, type="CPU", architecture="x", pool="a")],
    ...     links=[LinkSpec(name="bus", bandwidth="10GB/s", between=("a", "b"))])
    >>> readers = [Task(id=i, run=5, bandwidth={"bus": "4GB/s"}) for i in range(3)]
    >>> simulate(spec, Workflow(readers), "hrr").tasks["start"].tolist()
    [0.0, 0.0, 5.0]
    """

    def __init__(self, env: Environment, network: Network, places: Sequence[TaskPlace] = ()) -> None:
        links = [link for link in network.links.values() if link.spec.sharing == "shared"]
        told = {link.name: partial(network.withhold, link) for link in links}
        self.amounts = Consumables({link.name: link.spec.bandwidth for link in links}, told)
        self._env = env
        self._places = places
        self._claims: list[_Claim] = []
        self._called = False

    def why_not(self, need: Mapping[str, float]) -> str | None:
        """Return why a task with this need can never run, or ``None``."""
        return self.amounts.why_not(need)

    def fits(self, task: LiveTask) -> bool:
        """Return whether the shares of a task are free, and not asked for by tasks that are on processors already."""
        need = shares_of(task.amounts)
        if not need or self._claims:
            return not need
        for place in self._places:
            for other in (*place.waiting, *(entry[3].work for entry in place.entries())):
                if other.stamps is None or len(other.stamps) < 6:
                    for name, rate in shares_of(other.amounts).items():
                        need[name] = need.get(name, 0.0) + rate
        return self.amounts.fits(need)

    def claim(self, task: LiveTask, since: float, place: int) -> Event | None:
        """Return the event of the instant at which a task has its shares; ``None`` if it asks for none."""
        if not shares_of(task.amounts):
            return None
        event = Event(self._env)
        self._claims.append(_Claim(since, place, task, event))
        self._look_again()
        return event

    def take(self, task: LiveTask) -> None:
        """Take the shares of a task that runs in a snapshot."""
        self.amounts.take(shares_of(task.amounts))

    def give_back(self, task: LiveTask) -> None:
        """Take back the shares of a task that has ended or was stopped."""
        need = shares_of(task.amounts)
        if need:
            self.amounts.give_back(need)
            if self._claims:
                self._look_again()

    def _look_again(self) -> None:
        """Serve the claims after the events of this instant that are already scheduled: their order is named."""
        if not self._called:
            self._called = True
            self._env.call_at(self._env.now, self._serve)

    def _serve(self) -> None:
        self._called = False
        self._claims.sort(key=lambda claim: (claim.since, claim.place, claim.task.index))
        while self._claims and self.amounts.fits(need := shares_of(self._claims[0].task.amounts)):
            claim = self._claims.pop(0)
            self.amounts.take(need)
            claim.event.succeed()
