"""Base classes of processors that serve several tasks at once: at rates that depend on the tasks, or step by step.

A model says in :meth:`~simmodel.resources.processors.serving.ManyCores.admits` who may come in, beside the limit of
its cores, and in :meth:`SharedProcessor.rates` how fast each task goes, or in :meth:`BatchedProcessor.step` how long
the next step of the whole batch takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Any, NamedTuple

from simpy.events import NORMAL, Event, Process

from simmodel.environment import Call
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.processors.processor import Phase, Processor
from simmodel.resources.processors.taskplace import QueueState, RunningTask
from simmodel.work.taskset import LiveTask

__all__ = ["Batched", "BatchedProcessor", "ManyCores", "SharedProcessor"]


_ROUNDING = 1e-9  # error of sums of fractional cores


class ManyCores(Processor):
    """A processor with several cores: tasks start in queue order, each as soon as its cores are free.

    The first that does not fit holds up those behind it. If the platform allows preemption, a task of higher priority
    stops tasks of lower priority, the lowest and latest first, provided that this makes it fit. A model may also
    override :meth:`admits`, with its reason in :meth:`why_not_now`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._running: dict[LiveTask, RunningTask] = {}
        self._processes: dict[LiveTask, Process] = {}
        super().__init__(*args, **options)
        self._free: float = self.spec.cores
        self._admits_all = type(self).admits is ManyCores.admits

    @classmethod
    def refuses(cls, spec: ProcessorSpec) -> str | None:
        """Return why it does not support a spec, or ``None``."""
        return None

    def admits(self, task: LiveTask, running: Collection[LiveTask]) -> bool:
        """Return whether the head of the queue, which finds its cores free, may start now; asked again at each end.

        Policies ask too (:meth:`fits`), so a yes starts nothing: notes of a model on a task, such as its slices, count
        once the task is among those that run. A model whose answer changes at other instants calls :meth:`wake` then.

        Parameters
        ----------
        running
            the tasks that have started and not ended, in the order of their starts
        """
        return True

    def why_not_now(self, task: LiveTask, running: Collection[LiveTask]) -> str:
        """Return why :meth:`admits` refuses a task now, for reports and explanations; parameters as of it."""
        return f"{type(self).__name__} does not admit it now"

    def held_by(self, task: LiveTask) -> str:
        """Return why the model does not admit the head of the queue although its cores are free, or ""."""
        room = task is self._head() and task.cores <= self._free + _ROUNDING
        if not room or self._admits_all or self.admits(task, self._running.keys()):
            return ""
        return self.why_not_now(task, self._running.keys())

    @property
    def free(self) -> Any:
        """Idle cores."""
        return self._free

    def fits(self, task: LiveTask) -> bool:
        """Return whether the task would start now."""
        room = not self._queue and not self._ranked and task.cores <= self._free + _ROUNDING and self.can_run(task)
        room = room and (self.services.shares is None or self.services.shares.fits(task))
        return room and (self._admits_all or self.admits(task, self._running.keys()))

    @property
    def available(self) -> float:
        """The instant (s) from which it is expected to be idle, if its cores are loaded evenly."""
        now = self.env._now
        left = sum(max(0.0, run.expected_end - now) * task.cores for task, run in self._running.items())
        return now + (left + self._queued) / self.capacity

    def entries(self) -> list[tuple[float, int, float, RunningTask]]:
        """Return (expected end, position, cores, run) of each running task, ordered by expected end."""
        found = [(run.expected_end, self.index, task.cores, run) for task, run in self._running.items()]
        return sorted(found, key=lambda entry: entry[:2])

    def run(self) -> Phase:
        """Start tasks in queue order, each in its own process: the process of the queue."""
        while True:
            task = self._head()
            if (
                task is None
                or task.cores > self._free + _ROUNDING
                or not (self._admits_all or self.admits(task, self._running.keys()))
            ):
                self._sleep = event = Event(self.env)
                yield event
                continue
            self._pop()
            self._free -= task.cores
            self._running[task] = RunningTask(task, self, self.env._now, self.env._now + task.share / task.cores)
            self.go_on(task)

    def go_on(self, task: LiveTask) -> None:
        """Start a task, or continue one restored from a snapshot."""
        self._processes[task] = Process(self.env, self._one(task))

    def process_of(self, task: LiveTask) -> Process:
        """Return the process that takes a task through its phases."""
        return self._processes[task]

    def processes(self) -> list[Process]:
        """Return the processes of its queue and of its tasks that have not ended."""
        return [*super().processes(), *self._processes.values()]

    def restore(self, state: QueueState) -> None:
        """Take over the state of another processor."""
        super().restore(state)
        for run in state.running:
            self._running[run.work] = run._replace(place=self)
            self._free -= run.work.cores

    def _one(self, task: LiveTask) -> Phase:
        yield from self.serve(task)
        del self._running[task]
        del self._processes[task]
        self._free = self._free + task.cores if self._running else self.spec.cores
        self.wake()

    def _at(self, at: float) -> Event:
        """Return an event at an instant: each of its tasks needs its own timer."""
        return self.env.event_at(at)

    def put(self, task: LiveTask) -> None:
        """Queue a task; a blocked task waits in the queue and holds up those behind it."""
        before = self._queued
        super().put(task)
        task.share *= task.cores  # core seconds
        self._queued = before + task.share

    def _make_room_by_stopping(self, task: LiveTask) -> None:
        lacking = task.cores - self._free
        victims = []
        for number, other in reversed(list(enumerate(self._running))):
            if other.priority < task.priority and other in self._stoppable and other.state == "running":
                victims.append((other.priority, -number, other))
        chosen = []
        for _, _, other in sorted(victims):
            if lacking <= 0:
                break
            chosen.append(other)
            lacking -= other.cores
        if lacking <= 0:
            for other in chosen:
                self.stop(other, self.spec.preemption, goes_back=False)


_AFTER_SCHEDULERS = 3
_NEAR = 1e-15  # of the clock: a task that would end this close to new rates ends with the old ones


class _Together(ManyCores):
    """A processor whose executing tasks wait for one timer; :meth:`_join` of subclasses begins their execution."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._ends: dict[LiveTask, Event] = {}  # of the executing tasks
        self._alarm: Call | None = None
        super().__init__(*args, **options)

    @classmethod
    def refuses(cls, spec: ProcessorSpec) -> str | None:
        """Return why it does not support a spec, or ``None``."""
        return None if spec.preemption == "no" else "does not stop tasks: preemption must be 'no'"

    def inside_own_phase(self, task: LiveTask) -> str | None:
        """Return the phase of a task that cannot be copied, or ``None``: execution can."""
        found = super().inside_own_phase(task)
        return None if found == "execute" else found

    def execute(self, task: LiveTask, seconds: float) -> Phase:
        self._ends[task] = event = Event(self.env)
        self._join(task)
        yield event

    def _join(self, task: LiveTask) -> None:
        """Begin to execute a task; one of a snapshot has begun already."""
        raise NotImplementedError

    def _leave(self, task: LiveTask) -> None:
        self._ends.pop(task).succeed()

    def _set_alarm(self, at: float, call: Callable[[], None]) -> None:
        """Set the one alarm to an instant (s); ``inf``: to none."""
        alarm, self._alarm = self._alarm, None
        if alarm is not None:
            self.env.withdraw(alarm)

        def ring() -> None:
            self._alarm = None
            call()

        if at < inf:
            self._alarm = self.env.call_at(at, ring, NORMAL)

    def end(self) -> None:
        """End its processes by force."""
        super().end()
        self._set_alarm(inf, lambda: None)

    @property
    def _ready(self) -> type[Processor]:
        """The ready class that it derives from, which knows how far its tasks are."""
        return next(each for each in type(self).__mro__ if issubclass(each, _Together) and each.__module__ == __name__)

    def kept_state(self) -> Any:
        """Return how far its tasks are, and beside it the memory of a model that has one: for snapshots."""
        work = self._ready.own_state(self)
        return work if type(self).own_state is self._ready.own_state else {"work": work, "own": self.own_state()}

    def restore_kept(self, values: Any) -> None:
        """Take back the values of :meth:`kept_state`; of a former version, a model kept all of them itself."""
        if type(self).own_state is self._ready.own_state or values.keys() != {"work", "own"}:
            self.restore_own(values)
            return
        if values["work"] is not None:
            self._ready.restore_own(self, values["work"])
        if values["own"] is not None:
            self.restore_own(values["own"])


class SharedProcessor(_Together):
    """A processor whose tasks share it: each goes at a rate that depends on which others run.

    Tasks are admitted in queue order, as of :class:`~simmodel.resources.processors.serving.ManyCores`: as many as its
    cores and :meth:`admits` allow. A model overrides :meth:`rates`, and :meth:`until` if rates follow the clock. Work
    is exact between events; nothing ticks. It has snapshots, and refuses preemption.

    >>> from simmodel import Task, Workflow, simulate
    >>> from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="gpu")],
    ...     processors=[ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="ram", cores=8,
    ...                               model=SharedProcessor)])
    >>> simulate(spec, Workflow([Task(id=1, run=10), Task(id=2, run=4)]), "hrr").tasks["end"].tolist()
    [14.0, 8.0]
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._left: dict[LiveTask, float] = {}  # expected seconds at full rate
        self._settled = 0.0  # the instant of these
        self._rates: Sequence[float] = ()
        self._varies = type(self).until is not SharedProcessor.until
        super().__init__(*args, **options)

    def rates(self, running: Sequence[LiveTask]) -> Sequence[float]:
        """Return the rate of each running task, 1 if it goes as fast as alone; default: equal shares of one processor.

        It is asked at each start and each end, also when the last task has ended: a model with a memory learns so from
        when on it is idle.

        Parameters
        ----------
        running
            the tasks that execute, in the order in which they began
        """
        return [1.0 / max(1, len(running))] * len(running)

    def until(self, now: float) -> float:
        """Return the instant (s) after ``now`` from which rates may differ; default: infinity, they do not.

        It is asked whenever the rates are, which is at starts and ends of tasks and at each instant that it returns.
        """
        return inf

    def rates_changed(self) -> None:
        """Ask for the rates again; for models whose rates change at instants that :meth:`until` cannot foresee."""
        self._settle()
        self._plan()

    def held_by(self, task: LiveTask) -> str:
        """Return that a task executes at rate 0, or another reason why the model holds it up."""
        rate = dict(zip(self._left, self._rates, strict=True)).get(task)
        return f"{type(self).__name__} gives it the rate 0" if rate == 0 else super().held_by(task)

    @property
    def executing(self) -> tuple[LiveTask, ...]:
        """The tasks that execute, in the order in which they began."""
        return tuple(self._left)

    @property
    def rated(self) -> float:
        """The instant (s) at which rates were asked for last."""
        return self._settled

    def begin(self) -> None:
        """Start its process, and go on with the tasks of a snapshot."""
        super().begin()
        if self._left and self._alarm is None:
            self._plan()

    def _join(self, task: LiveTask) -> None:
        if task not in self._left:
            self._settle()
            self._left[task] = task.speeds[self.kind]
            self._plan()

    def _now_left(self) -> list[float]:
        """Return the expected seconds left of each executing task now."""
        passed = self.env._now - self._settled
        if not passed:
            return list(self._left.values())
        return [
            max(0.0, left - rate * passed / self._error(task))
            for (task, left), rate in zip(self._left.items(), self._rates, strict=True)
        ]

    def _settle(self) -> None:
        self._left = dict(zip(self._left, self._now_left(), strict=True))
        self._settled = self.env._now

    def _error(self, task: LiveTask) -> float:
        """Return the actual run time of a task divided by the expected one."""
        return max(1.0 + self.spec.model_error * task._error, 1e-12)

    def _plan(self) -> None:
        """Ask for the rates, and set the alarm to the first end."""
        running = tuple(self._left)
        try:
            rates = [float(rate) for rate in self.rates(running)]
        except (ArithmeticError, LookupError, ValueError):
            if running:
                raise
            rates = []  # such as 1 / len(running)
        if len(rates) != len(running) or not all(0 <= rate < inf for rate in rates):
            message = f"must return {len(running)} finite numbers >= 0, one for each task, got {rates}"
            raise InputError(message, place=f"{self.name}: {type(self).__name__}.rates")
        self._rates = rates
        first = inf
        leaving: list[LiveTask] = []
        for (task, left), rate in zip(self._left.items(), rates, strict=True):
            expected = self._settled + left / rate if rate else (inf if left else self._settled)
            self._running[task] = self._running[task]._replace(expected_end=expected)
            end = self._settled + left * self._error(task) / rate if rate else expected
            if end < first:
                first, leaving = end, []
            if end == first:
                leaving.append(task)
        if self._varies and running:
            now = self.env._now
            until = self.until(now)
            if not until > now:
                message = f"must return an instant after {now!r}, got {until!r}"
                raise InputError(message, place=f"{self.name}: {type(self).__name__}.until")
            if until < first and not first - until <= _NEAR * until:
                first, leaving = until, []
        self._set_alarm(first, lambda: self._over(leaving))

    def _over(self, leaving: Sequence[LiveTask]) -> None:
        self._settle()
        for task in leaving:
            del self._left[task]
            self._leave(task)
        self._plan()

    def own_state(self) -> Any:
        """Return the expected seconds left of each executing task, at the instant of the last change.

        If rates follow the clock, at this instant: those of the last change may hold no more.
        """
        if not self._left:
            return None
        if self._varies:
            left = [[task, left] for task, left in zip(self._left, self._now_left(), strict=True)]
            return {"since": self.env._now, "left": left}
        return {"since": self._settled, "left": [[task, left] for task, left in self._left.items()]}

    def restore_own(self, values: Any) -> None:
        """Take back the seconds left of each executing task."""
        self._settled = values["since"]
        self._left = dict(values["left"])


class Batched(NamedTuple):
    """A task in a batch, and the number of its steps that are done."""

    task: LiveTask
    done: int


class BatchedProcessor(_Together):
    """A processor that takes all its tasks through steps together: the batch may change between steps only.

    Tasks are admitted in queue order, as many as its cores and :meth:`admits` allow, and join the batch at its next
    step. A model overrides :meth:`steps` and :meth:`step`. It has snapshots, and refuses preemption and model errors.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._batch: dict[LiveTask, int] = {}  # the steps done
        self._joining: list[LiveTask] = []
        self._until_step: float | None = None  # the end of the current step
        super().__init__(*args, **options)
        self._next = self.env.at_instant_end(self._begin_step, _AFTER_SCHEDULERS)

    @classmethod
    def refuses(cls, spec: ProcessorSpec) -> str | None:
        """Return why it does not support a spec, or ``None``."""
        if spec.model_error:
            return f"has no model error: model_error must be 0, got {spec.model_error:g}"
        return super().refuses(spec)

    def steps(self, task: LiveTask) -> int:
        """Return the number of steps (>= 1) of a task."""
        raise NotImplementedError(f"{type(self).__name__} must have steps(task): the number of steps of a task")

    def step(self, batch: Sequence[Batched]) -> float:
        """Return the seconds of the next step of a batch, in the order in which its tasks joined."""
        raise NotImplementedError(f"{type(self).__name__} must have step(batch): the seconds of the next step")

    def stepped(self, each: Batched) -> None:
        """Note that a step of a task has ended; ``each.done`` counts it."""

    def begin(self) -> None:
        """Start its process, and go on with the batch of a snapshot."""
        super().begin()
        if self._until_step is not None and self._alarm is None:
            self._set_alarm(self._until_step, self._end_step)
        elif self._joining or self._batch:
            self._next()

    def _join(self, task: LiveTask) -> None:
        if task not in self._batch and task not in self._joining:
            self._joining.append(task)
            if self._until_step is None:
                self._next()

    def _begin_step(self) -> None:
        self._batch |= dict.fromkeys(self._joining, 0)
        self._joining = []
        if self._batch and self._until_step is None:
            seconds = self.step([Batched(*each) for each in self._batch.items()])
            if not 0 <= seconds < inf:
                message = f"must return a finite number >= 0 (s), got {seconds!r}"
                raise InputError(message, place=f"{self.name}: {type(self).__name__}.step")
            self._until_step = self.env._now + seconds
            self._set_alarm(self._until_step, self._end_step)

    def _end_step(self) -> None:
        self._until_step = None
        for task, done in list(self._batch.items()):
            self._batch[task] = done + 1
            self.stepped(Batched(task, done + 1))
            if done + 1 >= self.steps(task):
                del self._batch[task]
                self._leave(task)
        if self._batch or self._joining:
            self._next()

    def own_state(self) -> Any:
        """Return the batch, those who join it, and the end of the current step."""
        if not self._batch and not self._joining:
            return None
        batch = [[task, done] for task, done in self._batch.items()]
        return {"batch": batch, "joining": list(self._joining), "until": self._until_step}

    def restore_own(self, values: Any) -> None:
        """Take back the batch."""
        self._batch = dict(values["batch"])
        self._joining = list(values["joining"])
        self._until_step = values["until"]
