"""Processors: each is one process with a queue of tasks, which it takes through their phases.

A processor of one's own is a subclass that overrides one of the phases, each a generator: :meth:`Processor.setup`,
:meth:`~Processor.reconfigure`, :meth:`~Processor.transfer`, :meth:`~Processor.execute`. The platform names it as its
``model``.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Generator, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol

from simpy.events import AllOf, Event, Process, Timeout
from simpy.exceptions import Interrupt

from simmodel.environment import Environment
from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.cores import Core, CoreTicket, take_core
from simmodel.resources.memory import MemoryPool
from simmodel.work.livetask import LiveData, LiveTask

__all__ = ["Board", "Phases", "Processor", "RunningTask"]

Phase = Generator[Event, Any, Any]
Data = Sequence[LiveData]


class Board(Protocol):
    """What a processor is mounted on: a machine."""

    env: Environment
    parallel: bool

    def bring(self, data: LiveData, pool: MemoryPool, task: LiveTask | None, cause: str) -> Event:
        """Start to move data to a pool that keeps room for them; return the event of their arrival."""
        ...

    def make_way(self, pool: MemoryPool, amount: float) -> None:
        """Start to move data out of a pool, until so many bytes are on their way out."""
        ...

    def transfer_time(self, data: LiveData, pool: MemoryPool) -> float:
        """Return the seconds to move data to a pool, with the links to themselves; 0 where they are there."""
        ...

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task."""
        ...

    def held_core(self, core: Core, task: LiveTask, what: str, since: float) -> None:
        """Take down who held a CPU core without running on it."""
        ...

    def finished(self, task: LiveTask, processor: Processor, phases: Phases) -> None:
        """A task is done."""
        ...

    def stopped(self, task: LiveTask, processor: Processor, goes_back: bool) -> None:
        """A task was stopped before its end."""
        ...


Phases = tuple[float, float, float, float, float, float, float, float]
"""Instants (s): taken, setup start and end, reconfiguration end, transfer start and end, start, end."""


class RunningTask(NamedTuple):
    """A task that a processor works on: since when, and until when it is expected to (s)."""

    work: LiveTask
    place: Any
    started: float
    expected_end: float


class Processor:
    """A processor that runs one task at a time, in the order of its queue.

    Parameters
    ----------
    board
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
        self, board: Board, name: str, spec: ProcessorSpec, pool: MemoryPool, index: int = 0, kind: int = 0
    ) -> None:
        self.board = board
        self.env = board.env
        self.name = name
        self.spec = spec
        self.type = spec.type
        self.architecture = spec.architecture
        self.pool = pool
        self.index = index
        self.kind = kind
        self.capacity = spec.cores
        self.core = Core(name) if spec.is_cpu and spec.cores == 1 else None
        self.setup_cores: Sequence[Core] = ()  # those that set it up
        self.overlap = bool(spec.overlap)
        self.loaded: Any = None  # the family
        self.current: LiveTask | None = None
        self.reconfigures = spec.reconfiguration[1] > 0
        self._last_family: Any = None  # of the queue: what will be loaded when it is empty
        self._queue: deque[LiveTask] = deque()
        self._ranked: list[tuple[float, int, LiveTask]] = []  # of queue="priority": those that are ready
        self._numbers = 0
        self._by_priority = spec.queue == "priority"
        self._until = 0.0  # when what it does now is expected to end
        self._queued = 0.0  # expected seconds in the queue
        self._sleep: Event | None = None
        self._stoppable: dict[LiveTask, Any] = {}  # executing tasks, and the processes that run them
        self._since = 0.0
        own = type(self)
        self._sets_up = spec.setup > 0 or own.setup is not Processor.setup
        self._always_transfers = own.transfer is not Processor.transfer
        self._plain = own.execute is Processor.execute and spec.preemption == "no"
        self.process = self._begin()

    def _begin(self) -> Process:
        return Process(self.env, self.run())

    def __repr__(self) -> str:
        doing = f"runs {self.current.id}" if self.current is not None else "idle"
        return f"<{type(self).__name__} {self.name} ({self.type}): {doing}, {len(self.waiting)} in its queue>"

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
        if self.reconfigures and task.family != self._last_family:
            seconds += self.board.reconfiguration_time(self.spec, task)
        return seconds

    def expected_transfer(self, task: LiveTask) -> float:
        """Return the seconds to bring what the task reads and is not here yet, one after another or at once."""
        times = [self.board.transfer_time(data, self.pool) for data in task.inputs]
        return (max(times) if self.board.parallel else sum(times)) if times else 0.0

    @property
    def available(self) -> float:
        """The instant (s) from which it is expected to have nothing to do."""
        return max(self.env._now, self._until) + self._queued

    @property
    def backlog(self) -> float:
        """The expected seconds of work that it has."""
        return self.available - self.env._now

    @property
    def running(self) -> Processor:
        """What runs here, for :attr:`simmodel.scheduling.protocol.View.running`."""
        return self

    def entries(self) -> list[tuple[float, int, float, RunningTask]]:
        """Return expected end, position, cores and run of each task that runs."""
        task = self.current
        if task is None:
            return []
        return [(self._until, self.index, 1, RunningTask(task, self, self._since, self._until))]

    # ------------------------------------------------------------------ its queue

    def put(self, task: LiveTask) -> None:
        """Take a task into the queue: a blocked one waits there, and so do those behind it."""
        share = task.speeds[self.kind]
        if self.spec.setup or self.reconfigures:
            share += self.expected_setup(task)
            self._last_family = task.family
        for data in task.inputs:
            if self.pool not in data.copies:
                share += self.board.transfer_time(data, self.pool)
        task._share = share
        self._queued += share
        if not self._by_priority:
            self._queue.append(task)
        elif task._missing:
            self._queue.append(task)
            return
        else:
            self._rank(task)
        if self._sleep is not None:
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
        return queue[0] if queue and not queue[0]._missing else None

    def _pop(self) -> LiveTask:
        task = self._ranked.pop(0)[2] if self._by_priority else self._queue.popleft()
        share = task._share
        self._queued = self._queued - share if self._queue or self._ranked else 0.0
        self._since = now = self.env._now
        self._until = now + share
        return task

    # ------------------------------------------------------------------ the process

    def run(self) -> Phase:
        """Take one task after the other through its phases: the process."""
        env = self.env
        queue = self._queue
        while True:
            # What _head() says, at hand for the ordinary queue.
            if self._ranked if self._by_priority else queue and not queue[0]._missing:
                self.current = task = self._pop()
                yield from self.serve(task)
                self.current = None
            else:
                self._sleep = event = Event(env)
                yield event

    def serve(self, task: LiveTask) -> Phase:
        """Take a task through its phases."""
        env = self.env
        board = self.board
        task.state = "running"
        task.attempts += 1
        taken = setup_start = reconfigured = env._now
        if self._sets_up:
            core: Any = None
            if self.setup_cores:
                core = take_core(env, self.setup_cores)
                if type(core) is CoreTicket:
                    core = yield core
            setup_start = env._now
            yield from self.setup(task)
            reconfigured = env._now
            if core is not None:
                core.release()
                board.held_core(core, task, "setup", setup_start)
        setup_end = reconfigured
        if self.reconfigures and task.family != self.loaded:
            yield from self.reconfigure(task)
            self.loaded = task.family
            reconfigured = env._now
        transfer_start = transfer_end = reconfigured
        pool = self.pool
        uses_memory = task.inputs or task.outputs or task.memory
        if uses_memory:
            missing: Data | None = None if pool.crowded else pool.take(task)
            if missing is None:
                missing = yield from self._wait_for_room(task)
                transfer_start = env._now
            if missing or pool.arriving or self._always_transfers:
                yield from self.transfer(task, missing)
            transfer_end = env._now
        own = self.core
        if own is not None and not own.take():
            yield own.queue(env)
        start = env._now
        seconds = task.speeds[self.kind]
        if self.spec.model_error:
            seconds *= 1.0 + self.spec.model_error * task._error
        done = True
        self._until = start + seconds
        if self._plain:
            yield Timeout(env, seconds)
        elif self.spec.preemption == "no":
            yield from self.execute(task, seconds)
        else:
            done = yield from self._execute_until_stopped(task, seconds)
        if own is not None:
            own.release()
        if uses_memory:
            pool.give_back(task, done)
        if done:
            phases = (taken, setup_start, setup_end, reconfigured, transfer_start, transfer_end, start, env._now)
            board.finished(task, self, phases)

    # ------------------------------------------------------------------ the phases

    def setup(self, task: LiveTask) -> Phase:
        """Set a task up; a CPU core is held meanwhile."""
        yield Timeout(self.env, self.spec.setup)

    def reconfigure(self, task: LiveTask) -> Phase:
        """Load the family of a task."""
        yield Timeout(self.env, self.board.reconfiguration_time(self.spec, task))

    def transfer(self, task: LiveTask, missing: Data) -> Phase:
        """Bring what a task reads to the pool, where room for it is kept.

        Parameters
        ----------
        missing
            the data to bring, in their order; others that it reads are there, or on their way for somebody else
        """
        pool = self.pool
        bring = self.board.bring
        if missing:
            core: Any = None
            if not self.spec.dma:
                core = take_core(self.env, self.setup_cores if self.core is None else (self.core,))
                if type(core) is CoreTicket:
                    core = yield core
            since = self.env._now
            if self.board.parallel:
                yield AllOf(self.env, [bring(data, pool, task, "input") for data in missing])
            else:
                for data in missing:
                    yield bring(data, pool, task, "input")
            if core is not None:
                core.release()
                self.board.held_core(core, task, "transfer", since)
        for data in task.inputs:
            arrival = pool.arriving.get(data)
            if arrival is not None:
                yield arrival

    def execute(self, task: LiveTask, seconds: float) -> Phase:
        """Run a task, whose data are in the pool.

        Parameters
        ----------
        seconds
            how long it runs, model error included
        """
        yield Timeout(self.env, seconds)

    # ------------------------------------------------------------------ room and preemption

    def _wait_for_room(self, task: LiveTask) -> Generator[Event, Any, Data]:
        """Take what a task needs in the pool, in turn with others; data move out where they must."""
        pool = self.pool
        turn = pool.queue_for_room()
        if turn is not None:
            yield turn
        present = [data for data in task.inputs if data in pool.held]
        for data in present:  # they need not be brought: keep them
            pool.use(data)
        while True:
            need = pool.needs(task)
            pool.forget_unneeded(need)
            missing = pool.take(task)
            if missing is not None:
                break
            self.board.make_way(pool, need)
            yield pool.changed()
        for data in present:
            pool.unuse(data)
        pool.end_of_turn()
        return missing

    def _execute_until_stopped(self, task: LiveTask, seconds: float) -> Generator[Event, Any, bool]:
        """Run a task that may be stopped; return whether it came to its end."""
        process = self.env.active_process
        left = seconds * (1.0 - task.done_share)
        since = self.env._now
        self._stoppable[task] = process
        try:
            yield from self.execute(task, left)
        except Interrupt as stop:
            mode, goes_back = stop.args[0]
            if mode == "suspend" and seconds > 0:
                task.done_share += (self.env._now - since) / seconds
            self.board.stopped(task, self, goes_back)
            if not goes_back:
                task.state = "assigned"
                self._queued += task._share
                self._rank(task) if self._by_priority else self._queue.appendleft(task)
            return False
        finally:
            del self._stoppable[task]
        return True

    def why_not_stop(self, task: LiveTask) -> str | None:
        """Say why a running task cannot be stopped now, or ``None``."""
        if self.spec.preemption == "no":
            return f"{self.name} does not let tasks be stopped (preemption = 'no')"
        return None if task in self._stoppable else "the task does not execute yet"

    def stop(self, task: LiveTask, mode: str, goes_back: bool) -> None:
        """Stop a task that executes; one that is not so far yet, or is being stopped, goes on.

        Parameters
        ----------
        mode
            ``"suspend"``: what is done stays done; ``"requeue"``: it starts again
        goes_back
            whether it goes back to the scheduler; else it stays in this queue
        """
        process = self._stoppable.get(task)
        if process is not None and task.state == "running":
            task.state = "stopping"
            process.interrupt((mode, goes_back))
