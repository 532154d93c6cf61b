"""Bodies of jobs: their processes, the interrupt that stops them, and their end by force after a grace time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simpy.events import URGENT, Event, Process
from simpy.exceptions import Interrupt

from simmodel.errors import JobFailed
from simmodel.resources.claims import Grant, Lost, Preempted
from simmodel.resources.killing import kill
from simmodel.systems.cluster.inside import run_inside

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import Job, Run

__all__ = ["Bodies"]


class Bodies:
    """Runs the bodies of jobs, each as a process, and stops them.

    A body that must stop is interrupted and may clean up. If it has not ended when the grace time of its job is over,
    it is killed: its generator is closed, and the event that it waits for does not resume it. A body that the interrupt
    of one of its claims ends has lost its job to the failure or the preemption.

    Parameters
    ----------
    core
        that of the cluster
    finish
        called with a run and its final status once its body has ended
    """

    def __init__(self, core: ClusterCore, finish: Callable[[Run, str], object]) -> None:
        self._env: Environment = core.env
        self._core = core
        self._finish = finish
        self._limits: dict[Run, Call] = {}
        self._kills: dict[Run, Call] = {}

    def begin(self, run: Run, spec: Job) -> None:
        """Start the body of a run; under ``overrun="stop"`` it is stopped at its requested time."""
        job, env, core = run.job, self._env, self._core
        grant = run.grant if run.grant.nodes is not None else Grant(job.processors)
        try:
            body = run_inside(env, job, spec) if spec.body is None else spec.body(env, job, grant)
            run.process = process = Process(env, body)
        except Exception as error:
            _name_job(error, run)
            raise
        if core.overrun == "stop" and spec.requested is not None:
            at = env.now + spec.requested
            self._limits[run] = env.call_at(at, lambda: self.stop(run, "timeout"), core.end_priority)
        process.callbacks.append(lambda event: self._over(run, event))

    def stop(self, run: Run, status: str) -> None:
        """Interrupt a body with the final state of its job as the cause, and kill it after the grace time.

        A body that stops its own job is interrupted at its next ``yield``.
        """
        process = run.process
        if process is None or not process.is_alive or run.stopping is not None:
            return  # it ended at this instant, or cleans up already
        env = self._env
        run.stopping = status
        if env.active_process is process:
            env.call_at(env.now, lambda: self._interrupt(run), URGENT)
        else:
            process.interrupt(status)
        job = run.job._job
        grace = 0.0 if job is None else job.grace
        if grace < float("inf"):
            self._kills[run] = env.call_at(env.now + grace, lambda: self._kill(run), self._core.end_priority)

    def kill_at(self, run: Run) -> float:
        """Return the instant (s) at which a body that was interrupted is killed; infinite if never."""
        call = self._kills.get(run)
        return float("inf") if call is None else call.at

    def _interrupt(self, run: Run) -> None:
        assert run.process is not None
        if run.process.is_alive:
            run.process.interrupt(run.stopping)

    def _kill(self, run: Run) -> None:
        assert run.process is not None
        kill(run.process)

    def _over(self, run: Run, event: Event) -> None:
        for calls in (self._limits, self._kills):
            call = calls.pop(run, None)
            if call is not None and call.pending:
                self._env.withdraw(call)
        if event._ok:
            status = run.stopping or "completed"
        elif run.stopping is not None and isinstance(event._value, (Interrupt, JobFailed)):
            event._defused = True
            status = run.stopping
        elif isinstance(event._value, JobFailed):
            event._defused = True
            status = "failed"
        elif isinstance(event._value, Interrupt) and isinstance(event._value.cause, (Lost, Preempted)):
            event._defused = True  # it does not go on without one of its claims
            status = "preempted" if isinstance(event._value.cause, Preempted) else self._core.lost
        else:
            _name_job(event._value, run)  # an error in the user's code, which the environment raises
            return
        self._finish(run, status)


def _name_job(error: BaseException, run: Run) -> None:
    error.add_note(f"in the body of job {run.job.id}")
