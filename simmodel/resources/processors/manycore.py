"""Processors with several cores, which run several tasks at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from simpy.events import Event, Process

from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.processors.processor import Phase, Processor
from simmodel.resources.processors.taskplace import QueueState, RunningTask
from simmodel.work.taskset import LiveTask

__all__ = ["ManyCores"]

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
