"""Processors: each is one process with a queue of tasks, which it takes through their phases.

A custom processor is a subclass that overrides one or more phases, which are generators: :meth:`Processor.setup`,
:meth:`~Processor.reconfigure`, :meth:`~Processor.transfer`, :meth:`~Processor.execute`. The platform selects it by
``model``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from simpy.events import NORMAL, AllOf, Event, Process, Timeout
from simpy.exceptions import Interrupt

from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.models import Model, read_options
from simmodel.resources.processors.services import Core, CoreTicket, ProcessorServices, take_core
from simmodel.resources.processors.taskplace import TaskPlace
from simmodel.work.taskset import LiveData, LiveTask

if TYPE_CHECKING:
    from simmodel.environment import Environment

__all__ = ["Phase", "Processor", "kill"]

_CLOSES = 100  # attempts to close a generator that yields while it is closed


def kill(process: Process) -> Event | None:
    """End a process now: its generator is closed, and the event that it waits for, which is returned, resumes nothing.

    An exception that the generator raises while it is closed fails the process. No effect on a process that has ended.

    >>> from simmodel import Environment
    >>> env = Environment()
    >>> def work(env):
    ...     try:
    ...         yield env.timeout(5)
    ...     finally:
    ...         print("closed at", env.now)
    >>> process = env.process(work(env)); env.run(until=2)
    >>> kill(process)
    closed at 2
    <Timeout(5) object at ...>
    """
    if not process.is_alive:
        return None
    target = process.target
    if target is not None and target.callbacks is not None and process._resume in target.callbacks:
        target.callbacks.remove(process._resume)
    env: Environment = process.env  # type: ignore[assignment]
    before, env._active_proc = env._active_proc, process
    process._ok, process._value = True, None
    try:
        _close(process._generator)
    except Exception as error:
        process._ok, process._value = False, error
    finally:
        env._active_proc = before
    env.schedule(process)
    return target


def _close(generator: Any) -> None:
    for _ in range(_CLOSES):
        try:
            generator.close()
            break
        except RuntimeError as error:
            if error.args != ("generator ignored GeneratorExit",):
                raise


Phase = Generator[Event, Any, Any]
"""A phase of a task on a processor: a generator of events, as a SimPy process has it."""
Data = Sequence[LiveData]


class Processor(TaskPlace, Model):
    """A processor that runs one task at a time, in the order of its queue.

    Parameters
    ----------
    services, name, spec, pool, index, kind
        see :class:`~simmodel.resources.processors.taskplace.TaskPlace`
    """

    amounts: ClassVar[tuple[str, ...]] = ()
    """The names of the amounts that a task must have to run on it."""

    def __init__(
        self,
        services: ProcessorServices,
        name: str,
        spec: ProcessorSpec,
        pool: MemoryPool,
        index: int = 0,
        kind: int = 0,
    ) -> None:
        super().__init__(services, name, spec, pool, index, kind)
        self.options = read_options(type(self), spec.options, f"options of processor {name}")
        self.core = Core(name) if spec.is_cpu and spec.cores == 1 else None
        self.setup_cores: Sequence[Core] = ()  # the cores that run its setups
        self.overlap = bool(spec.overlap)
        self.holds_core_early = False  # its own task holds its core from the transfer of its data on
        self._stoppable: dict[LiveTask, Any] = {}  # executing tasks and their processes
        self._timer = Event(self.env)  # reused for all phases of fixed length: no other process waits for it
        self._timer._ok = True
        self._timer._value = None
        own = type(self)
        self._sets_up = self._sets_up or own.setup is not Processor.setup
        self._prepares = self._sets_up or self.reconfigures
        self._plain_setup = own.setup is Processor.setup
        self._plain_reconfiguration = own.reconfigure is Processor.reconfigure
        self._always_transfers = own.transfer is not Processor.transfer
        self._plain_execution = own.execute is Processor.execute
        self._plain = self._plain_execution and spec.preemption == "no"
        self.process: Process | None = None

    def run_time(self, amounts: Mapping[str, float]) -> float | None:
        """Return the expected run time (s) of a task alone by its amounts; ``None``: that of its other fields."""
        return None

    def kept_state(self) -> Any:
        """Return what a snapshot keeps of it beside its queue; ``None``: nothing."""
        return self.own_state()

    def restore_kept(self, values: Any) -> None:
        """Take back the values of :meth:`kept_state`; not called for ``None``."""
        self.restore_own(values)

    @classmethod
    def refuses(cls, spec: ProcessorSpec) -> str | None:
        """Return why it does not support a spec, or ``None``."""
        if spec.cores == 1:
            return None
        return f"runs one task at a time: cores must be 1, got {spec.cores} (derive from ManyCores to run several)"

    def begin(self) -> None:
        """Start its process, if not started yet."""
        if self.process is None:
            self.process = Process(self.env, self.run())

    def go_on(self, task: LiveTask) -> None:
        """Start in the middle of a task, in the phase of a snapshot."""
        self.current = task
        self.begin()

    def processes(self) -> list[Process]:
        """Return its processes that have not ended."""
        return [] if self.process is None else [self.process]

    def end(self) -> None:
        """End its processes by force, and withdraw the events that only they waited for."""
        for process in self.processes():
            target = kill(process)
            if isinstance(target, CoreTicket):
                target.drop()
            if target is not None and type(target) in (Event, Timeout) and target.triggered and not target.callbacks:
                self.env.withdraw(target)

    def inside_own_phase(self, task: LiveTask) -> str | None:
        """Return the name of the task's current phase if the processor's class overrides it, else ``None``."""
        own = {
            2: ("setup", self._plain_setup),
            3: ("reconfigure", self._plain_reconfiguration),
            5: ("transfer", not self._always_transfers),
            7: ("execute", self._plain_execution),
        }
        name, plain = own.get(len(task.stamps or ()), ("", True))
        return None if plain else name

    def held_by(self, task: LiveTask) -> str:
        """Return why the model holds up a queued task that finds its cores free, or a running one; default: ""."""
        return ""

    def process_of(self, task: LiveTask) -> Process:
        """Return the process that takes a task through its phases."""
        assert self.process is not None
        return self.process

    def __repr__(self) -> str:
        doing = f"runs {self.current.id}" if self.current is not None else "idle"
        return f"<{type(self).__name__} {self.name} ({self.type}): {doing}, {len(self.waiting)} in its queue>"

    # ------------------------------------------------------------------ the process

    def run(self) -> Phase:
        """Take tasks through their phases, one after another: the process."""
        env = self.env
        queue = self._queue
        if self.current is not None:
            yield from self.serve(self.current)
            self.current = None
        while True:
            # _head(), inlined for the ordinary queue.
            if self._ranked if self._by_priority else queue and not queue[0].missing:
                self.current = task = self._pop()
                yield from self.serve(task)
                self.current = None
            else:
                self._sleep = event = Event(env)
                yield event

    def serve(self, task: LiveTask) -> Phase:
        """Take a task through its phases; a task restored from a snapshot continues in its current phase."""
        # The inner loop of machines: a few dozen operations a task.
        env = self.env
        services = self.services
        stamps = task.stamps
        if stamps is None:
            now = env._now
            task.stamps = stamps = [now] if self._prepares else [now, now, now, now]
            task.state = "running"
            task.attempts += 1
        met = len(stamps)  # 1: none of its phases has begun
        if met < 4:
            yield from self._prepare(task, stamps)
        now = env._now
        pool = self.pool
        uses_memory = task.inputs or task.outputs or task.memory
        if met < 6:
            if uses_memory:
                missing: Data | None
                if met == 5:
                    missing = self._still_missing(task)
                else:
                    missing = None if pool.claims else pool.take(task)
                    if missing is None:
                        missing = yield services.mover.room.claim(pool, task)
                        now = env._now
                    stamps.append(now)
                if (
                    missing
                    or self._always_transfers
                    or (pool.arriving and not pool.arriving.keys().isdisjoint(task.inputs))
                ):
                    yield from self.transfer(task, missing)
                    now = env._now
                stamps.append(now)
            else:
                stamps += (now, now)
        own = self.core
        shares = services.shares
        if shares is not None:
            if met >= 7:
                shares.take(task)
            elif (claim := shares.claim(task, stamps[5], self.index)) is not None:
                yield claim
                now = env._now
        if met < 7:
            if own is not None:
                if task.core is own:  # held since its transfer
                    task.core = None
                    services.held_core(own, task, "transfer", task.core_since)
                elif own.busy:
                    yield own.queue(env)
                    now = env._now
                else:
                    own.busy = True
            stamps.append(now)
        expected = seconds = task.speeds[self.kind]
        if self.spec.model_error:
            seconds *= 1.0 + self.spec.model_error * task._error
        until = stamps[6] + seconds
        if until < now:  # restored from a snapshot, past its expected end
            until = now
        self._until = stamps[6] + expected
        done = True
        if self._plain:
            yield self._at(until)
        elif self.spec.preemption == "no":
            yield from self.execute(task, seconds)
        else:
            done = yield from self._execute_until_stopped(task, seconds, stamps[6])
        if own is not None:
            own.release()
        if shares is not None:
            shares.give_back(task)
        if uses_memory:
            pool.give_back(task, done)
        task.stamps = None
        if done:
            stamps.append(env._now)
            services.finished(task, self, stamps)

    def _prepare(self, task: LiveTask, stamps: list[float]) -> Phase:
        """Set a task up on a CPU core, and load its family."""
        env = self.env
        if len(stamps) < 3:
            if self._sets_up:
                core = task.core
                if len(stamps) == 1:
                    if self.setup_cores:
                        core = take_core(env, self.setup_cores)
                        if type(core) is CoreTicket:
                            core = yield core
                        task.core = core
                    stamps.append(env._now)
                if self._plain_setup:
                    yield self._at(stamps[1] + self.spec.setup)
                else:
                    yield from self.setup(task)
                if core is not None:
                    task.core = None
                    core.release()
                    self.services.held_core(core, task, "setup", stamps[1])
            else:
                stamps.append(env._now)
            stamps.append(env._now)
        if self.reconfigures and task.family != self.loaded:
            if self._plain_reconfiguration:
                yield self._at(stamps[2] + self.services.reconfiguration_time(self.spec, task))
            else:
                yield from self.reconfigure(task)
            self.loaded = task.family
        stamps.append(env._now)

    def _still_missing(self, task: LiveTask) -> Data:
        """Return the data that a task restored in its transfer phase still has to bring, or is bringing."""
        arriving = self.pool.arriving
        return [data for data in task.inputs if data in arriving and arriving[data].owner is task]

    def _at(self, at: float) -> Event:
        """Return the processor's own timer, set to an instant, at half the cost of a timeout."""
        env = self.env
        timer = self._timer
        timer.callbacks = []
        env.plan(timer, at, NORMAL)
        return timer

    # ------------------------------------------------------------------ the phases

    def setup(self, task: LiveTask) -> Phase:
        """Set a task up, while a CPU core is held."""
        yield Timeout(self.env, self.spec.setup)

    def reconfigure(self, task: LiveTask) -> Phase:
        """Load the family of a task."""
        yield Timeout(self.env, self.services.reconfiguration_time(self.spec, task))

    def transfer(self, task: LiveTask, missing: Data) -> Phase:
        """Bring the inputs of a task to the pool, which has room reserved for them.

        Parameters
        ----------
        missing
            the data to bring, in order; its other inputs are in the pool, or on their way for another task
        """
        pool = self.pool
        mover = self.services.mover
        if missing:
            core = task.core
            cores = self.setup_cores if self.core is None else (self.core,)
            if (self.holds_core_early or not self.spec.dma) and cores and core is None:
                core = take_core(self.env, cores)
                if type(core) is CoreTicket:
                    core = yield core
                task.core = core
                task.core_since = self.env._now
            if mover.parallel:
                yield AllOf(self.env, [mover.bring(data, pool, task, "input") for data in missing])
            else:
                yield mover.fetch(missing, pool, task, "input")
            if core is not None and not self.holds_core_early:
                task.core = None
                core.release()
                self.services.held_core(core, task, "transfer", task.core_since)
        for data in task.inputs:
            arrival = pool.arriving.get(data)
            if arrival is not None:
                yield arrival.event

    def execute(self, task: LiveTask, seconds: float) -> Phase:
        """Run a task whose data are in the pool.

        Parameters
        ----------
        seconds
            its run time, including the model error
        """
        yield Timeout(self.env, seconds)

    # ------------------------------------------------------------------ preemption

    def _execute_until_stopped(self, task: LiveTask, seconds: float, since: float) -> Generator[Event, Any, bool]:
        """Run a preemptible task that started at ``since``; return whether it completed."""
        left = seconds * (1.0 - task.done_share)
        self._until = since + task.speeds[self.kind] * (1.0 - task.done_share)
        self._stoppable[task] = self.env.active_process
        try:
            if self._plain_execution and since < self.env._now:  # restored in the middle of it
                yield self.env.event_at(max(since + left, self.env._now))
            else:
                yield from self.execute(task, left)
        except Interrupt as stop:
            mode, goes_back = stop.args[0]
            if mode == "suspend" and seconds > 0:
                task.done_share += (self.env._now - since) / seconds
            self.services.stopped(task, self, goes_back)
            if not goes_back:
                task.state = "assigned"
                self._queued += task.share
                self._rank(task) if self._by_priority else self._queue.appendleft(task)
            return False
        finally:
            del self._stoppable[task]
        return True

    def why_not_stop(self, task: LiveTask) -> str | None:
        """Return why a running task cannot be stopped now, or ``None``."""
        if self.spec.preemption == "no":
            return f"{self.name} does not allow preemption (preemption = 'no')"
        return None if task in self._stoppable else "the task is not executing yet"

    def stop(self, task: LiveTask, mode: str, goes_back: bool) -> None:
        """Stop an executing task; no effect if it is not executing yet or is already being stopped.

        Parameters
        ----------
        mode
            ``"suspend"``: it keeps the work done; ``"requeue"``: it starts again
        goes_back
            whether it returns to the scheduler; otherwise it stays in this queue
        """
        process = self._stoppable.get(task)
        if process is not None and task.state == "running":
            task.state = "stopping"
            process.interrupt((mode, goes_back))
