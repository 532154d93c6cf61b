"""The executions of jobs in a cluster: how they start, run, end, and are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy.events import Event, Process
from simpy.exceptions import Interrupt

from simmodel.errors import JobFailed
from simmodel.resources.claims import Claim, Grant
from simmodel.scheduling.protocol import Preempt
from simmodel.scheduling.scheduler import handle_preempt
from simmodel.work.job import Job, LiveJob, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simmodel.environment import Call
    from simmodel.resources.pool import Pool
    from simmodel.scheduling.scheduler import Handler
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.queueing import Queueing
    from simmodel.systems.dependencies import Dependencies

__all__ = ["Ending", "JobExecution"]

_COMES_BACK = ("preempted", "requeued")


class Ending(NamedTuple):
    """An end that is planned: of which run, and when; the rest says in which order ends come (see ``ToCome``)."""

    at: float
    priority: float
    number: int
    run: Run


class JobExecution:
    """Carries decisions out: one heap event a job, and a process where it has a body. It plans the ends itself.

    Parameters
    ----------
    core, queueing, dependencies
        of the cluster
    over
        called with a job to which nothing more will happen
    changed
        called when a job has started or ended, for systems above
    """

    plans = True
    """Whether a job ends when its time is over; else somebody says so."""

    def __init__(
        self,
        core: ClusterCore,
        queueing: Queueing,
        dependencies: Dependencies,
        over: Callable[[LiveJob], object],
        changed: Sequence[Callable[[], object]],
    ) -> None:
        self.env = core.env
        self._core = core
        self._queueing = queueing
        self._queues = queueing.queues
        self._dependencies = dependencies
        self._over = over
        self._changed = changed
        self._priority = core.end_priority
        self._ends = (self.finish,)
        self._released: dict[Run, None] = {}  # what they held is given back, though their ends are still to be handled

    # ------------------------------------------------------------------ starts

    def start(self, work: LiveJob, place: Pool, allocation: Any = None) -> None:
        """Start a waiting job; the scheduler has checked that it fits."""
        job, env = work, self.env
        now = env._now
        self._queues[place].remove(job)
        grant = place.take(job, allocation)
        run = Run(job, place, now, now + job.expected, grant)
        place.running.add(run, job.processors)
        job.state = "running"
        job.run = run
        job.started = now
        spec = job._job
        if spec is not None and spec.body is not None:
            self._begin_body(run, spec)
        elif self.plans:
            run.callbacks = self._ends
            run._end = end = now + job._duration
            run._number = number = next(env._eid)
            heappush(env._queue, (end, self._priority, number, run))  # type: ignore[misc]
        if job.past is not None and job.past.resumes:
            job.remember().resumes = None
            self._core.tell("job_resumed", run)
        else:
            job.attempts += 1
            for hook in self._core.on_started:
                hook(run)
        if job.watched:
            self._started_watched(job)
        if self._changed:
            self._tell_above()

    def _tell_above(self) -> None:
        for call in self._changed:
            call()

    def plan_end(self, run: Run, at: float) -> None:
        """Have a run end at an instant (s)."""
        run.callbacks = self._ends
        run._end = at
        run._number = self.env.plan(run, at, self._priority)

    def _started_watched(self, job: LiveJob) -> None:
        """Do what only some jobs need when they start: usage, limits, and jobs that come after the start."""
        for usage in self._core.usages:
            usage.change(job.user, job.processors, self.env._now)
        self._queueing.started(job)
        self._dependencies.happened(job, "start")

    # ------------------------------------------------------------------ bodies

    def _begin_body(self, run: Run, spec: Job) -> None:
        assert spec.body is not None
        job = run.job
        grant = run.grant if run.grant.nodes is not None else Grant(job.processors)
        run.process = Process(self.env, spec.body(self.env, job, grant))
        limit = None
        if self._core.overrun == "stop" and spec.requested is not None:
            limit = self.env.call_at(self.env.now + spec.requested, lambda: self._out_of_time(run), self._priority)
        run.process.callbacks.append(lambda event: self._body_over(run, event, limit))

    def _out_of_time(self, run: Run) -> None:
        if run.stopping is None:
            self.stop(run, "timeout")

    def _body_over(self, run: Run, event: Event, limit: Call | None) -> None:
        if limit is not None and limit.pending:
            self.env.withdraw(limit)
        if event._ok:
            status = run.stopping or "completed"
        elif run.stopping is not None and isinstance(event._value, (Interrupt, JobFailed)):
            event._defused = True
            status = run.stopping
        elif isinstance(event._value, JobFailed):
            event._defused = True
            status = "failed"
        else:
            return  # an error in the user's code: the environment raises it
        self.finish(run, status)

    # ------------------------------------------------------------------ ends

    def finish(self, run: Run, status: str | None = None) -> None:
        """End a run, by default as it was to end: give back what it held, and see what follows. The hot path."""
        job, place = run.job, run.place
        if status is None:
            status = job._outcome
        elif run.process is None and run.callbacks is not None:
            self.env.withdraw(run)  # it is stopped before its end
        if not run.released:
            place.running.remove(run)
            place.give_back(job, run.grant)
        else:
            del self._released[run]
        job.run = None
        freed = self._ended_watched(job) if job.watched else ()
        comes_back = status in _COMES_BACK
        if not comes_back:
            job.state = status
        for hook in self._core.on_ended:
            hook(run, status)
        for held in freed:  # once the end is told: it may bring a decision
            self._queueing.enqueue(held)
        if comes_back:
            job.requeue(self.env._now)
            self._queueing.enqueue(job)
        else:
            self._over(job)
        if place.claims_waiting:
            place.serve_claims()
        queue = self._queueing.only_queue
        if queue is None or queue.count:  # else there is nothing to decide about
            self._core.wake()
        if self._changed:
            self._tell_above()

    def _ended_watched(self, job: LiveJob) -> Sequence[LiveJob]:
        """Note the end in usage and limits; return the jobs that were held and may wait from now on."""
        for usage in self._core.usages:
            usage.change(job.user, -job.processors, self.env._now)
        return self._queueing.ended(job)

    def settle(self) -> None:
        """Free what holds jobs whose end is an event of this instant, still to be handled, and was expected by now."""
        now = self.env._now
        for pool in self._core.places:
            expected = []
            for end, _, _, run in pool.running.entries():
                if end > now:
                    break
                expected.append(run)
            for run in expected:
                if isinstance(run, Run) and run._end == now and run.process is None:
                    pool.running.remove(run)
                    pool.give_back(run.job, run.grant)
                    self.release(run)

    def release(self, run: Run) -> None:
        """Note that what a run held is given back, though its end is still to be handled."""
        run.released = True
        self._released[run] = None

    # ------------------------------------------------------------------ stopped before their end

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """What it carries out beside starts: ``Preempt``."""
        return {Preempt: partial(handle_preempt, self)}

    def why_not_preempt(self, job: LiveJob, mode: str) -> str | None:
        """Say why a running job cannot be stopped so, or ``None``."""
        if mode not in ("requeue", "suspend"):
            return f"mode: must be 'requeue' or 'suspend', got {mode!r}"
        if job.run is not None and job.run.released:
            return "the job has ended"
        spec = job._job
        if spec is not None and spec.on_preempt == "no":
            return "the job forbids preempting it"
        if spec is not None and spec.body is not None and mode == "suspend":
            return "a job with a body cannot be suspended"
        return None

    def preempt(self, job: LiveJob, mode: str = "requeue") -> None:
        """Stop a running job: it starts again from the queue, or (``suspend``) goes on where it was."""
        run = job.run
        if run is None:
            raise ValueError(f"running work expected, found {job}")
        if mode == "requeue":
            self.stop(run, "preempted")
            return
        if run.callbacks is not None:
            self.env.withdraw(run)
        run.place.running.remove(run)
        run.place.give_back(job, run.grant)
        job.run = None
        job.suspend(self.env._now, run.grant)
        freed = self._ended_watched(job) if job.watched else ()
        self._core.tell("job_suspended", run)
        for each in (*freed, job):
            self._queueing.enqueue(each)
        self._core.wake()

    def stop(self, run: Run, status: str) -> None:
        """Stop a run: a body is interrupted and may clean up; anything else ends now."""
        if run.job.run is not run:
            return
        if run.stopping is not None:
            if run.stopping in _COMES_BACK and status not in _COMES_BACK:
                run.stopping = status  # it cleans up to start again: now it will not
        elif run.process is not None:
            if run.process.is_alive:  # else it ended in this instant
                run.stopping = status
                run.process.interrupt(status)
        else:
            self.finish(run, status)

    def stop_all(self, runs: Iterable[Run | Claim], status: str) -> None:
        """Stop these runs; processes that hold claims are interrupted."""
        for run in runs:
            if isinstance(run, Claim):
                run.lose()
            else:
                self.stop(run, status)

    def fail(self, runs: Iterable[Run | Claim]) -> None:
        """Have these runs hit by a failure: their jobs are resubmitted or lost, as the platform says."""
        self.stop_all(runs, "requeued" if self._core.spec.on_failure == "resubmit" else "lost")

    # ------------------------------------------------------------------ to be copied

    def endings(self) -> list[Ending]:
        """List the ends that are planned."""
        runs = [run for pool in self._core.places for run in pool.running if isinstance(run, Run)]
        return [
            Ending(float(run._end), float(self._priority), run._number, run)
            for run in (*runs, *self._released)
            if run.callbacks is not None
        ]
