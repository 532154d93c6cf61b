"""The executions of jobs in a cluster: how they start, run, end, and are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappush
from typing import TYPE_CHECKING, Any

from simpy.events import Event, Process
from simpy.exceptions import Interrupt

from simmodel.environment import Environment, Occurrence
from simmodel.errors import JobFailed
from simmodel.resources.claims import Claim, Grant
from simmodel.snapshots.jobs import Past
from simmodel.work.job import Job, LiveJob, Run

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.scheduling.usage import Usage
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.systems.dependencies import Dependencies

__all__ = ["Executions"]

Hooks = tuple[Callable[..., object], ...]
_COMES_BACK = ("preempted", "requeued")


class Executions:
    """The part of a cluster that carries decisions out: one heap event a job, and a process where it has a body."""

    if TYPE_CHECKING:  # what the cluster has besides
        env: Environment
        spec: ClusterSpec
        overrun: str
        usages: list[Usage]
        _queues: dict[Any, WaitingQueue]
        _only_queue: WaitingQueue | None
        _dependencies: Dependencies
        _cancellations: dict[LiveJob, Occurrence]
        _active: int
        _idle: Event | None
        _end_priority: int
        _end_callbacks: tuple[Callable[[Run], None]]
        _changed: Callable[[], None]
        _on_started: Hooks
        _on_ended: Hooks

        def _tell(self, hook: str, *what: Any) -> None: ...
        def plan(self, at: float, call: Callable[[], object], what: tuple[Any, ...] | None = None) -> Occurrence: ...  # noqa: D102
        def _enqueue(self, job: LiveJob) -> None: ...

    def start(self, job: LiveJob, place: Any, allocation: Any = None) -> None:
        """Start a waiting job; the scheduler has checked that it fits."""
        env = self.env
        now = env._now
        self._queues[place].remove(job)
        grant = place.take(job, allocation)
        run = Run(job, place, now, now + job._expected, grant)
        place.running.add(run, job.processors)
        job.state = "running"
        job._run = run
        job._started = now
        if job.spec is not None and job.spec.body is not None:
            self._begin_body(run, job.spec)
        else:
            run.callbacks = self._end_callbacks
            heappush(env._queue, (now + job._duration, self._end_priority, next(env._eid), run))  # type: ignore[misc]
        if job._resumes:
            job._resumes = job._work = job._seen = None
            self._tell("job_resumed", run)
        else:
            job.attempts += 1
            for hook in self._on_started:
                hook(run)
        if job._watched:
            self._started_watched(job)

    def _started_watched(self, job: LiveJob) -> None:
        """Do what only some jobs need when they start: usage, limits, and jobs that come after the start."""
        for usage in self.usages:
            usage.change(job.user, job.processors, self.env._now)
        if job.rules is not None:
            for held in job.rules.started(job):
                self._queues[held.place].remove(held)
                held.state = "held"
        self._dependencies.happened(job, "start")

    def _begin_body(self, run: Run, spec: Job) -> None:
        assert spec.body is not None
        job = run.job
        grant = run.grant if run.grant.nodes is not None else Grant(job.processors)
        run.process = Process(self.env, spec.body(self.env, job, grant))
        limit = None
        if self.overrun == "stop" and spec.requested is not None:
            limit = self.plan(self.env.now + spec.requested, lambda: self._out_of_time(run))
        run.process.callbacks.append(lambda event: self._body_over(run, event, limit))

    def _out_of_time(self, run: Run) -> None:
        if run.stopping is None:
            self._stop(run, "timeout")

    def _body_over(self, run: Run, event: Event, limit: Occurrence | None) -> None:
        if limit is not None and limit.callbacks is not None:
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
        self._finish(run, status)

    def _ended(self, run: Run) -> None:
        """The end of a run, as an event of its own: the hot path."""
        self._finish(run, run.job._outcome)

    def _finish(self, run: Run, status: str) -> None:
        """Give back what the run held, and see what follows from its end."""
        job, place = run.job, run.place
        if run.process is None and run.callbacks is not None:
            self.env.withdraw(run)  # it is stopped before its end
        if not run.released:
            place.running.remove(run)
            place.give_back(job, run.grant)
        job._run = None
        freed = self._ended_watched(job) if job._watched else ()
        comes_back = status in _COMES_BACK
        if not comes_back:
            job.state = status
        for hook in self._on_ended:
            hook(run, status)
        for held in freed:  # once the end is told: it may bring a decision
            self._enqueue(held)
        if comes_back:
            self._back_to_queue(job)
        else:
            self._over(job)
        if place._claims:
            place._serve_claims()
        queue = self._only_queue
        if queue is None or queue._count:  # else there is nothing to decide about
            self._changed()

    def _ended_watched(self, job: LiveJob) -> Sequence[LiveJob]:
        """Note the end in usage and limits; return the jobs that were held and may wait from now on."""
        for usage in self.usages:
            usage.change(job.user, -job.processors, self.env._now)
        return job.rules.ended(job) if job.rules is not None else ()

    def _over(self, job: LiveJob) -> None:
        """The job is over, however it ended."""
        self._active -= 1
        if job._watched:
            self._dependencies.happened(job, "end")
            timer = self._cancellations.pop(job, None)
            if timer is not None and timer.callbacks is not None:
                self.env.withdraw(timer)
        if job.event is not None:
            job.event.succeed(job)
        if self._idle is not None and not self._active and not self._idle.triggered:
            self._idle.succeed()

    def _back_to_queue(self, job: LiveJob) -> None:
        assert job._started is not None
        past: Past = job._past or Past()
        start = float(job._started) if past.attempt_start is None else past.attempt_start
        first = start if past.first_start is None else past.first_start
        done = self.env._now - job._started if job.spec is not None and job.spec.keeps_work else 0.0
        last, executed = float(job._started), past.executed + float(done)
        job._past = past._replace(first_start=first, attempt_start=None, last_start=last, executed=executed)
        job._work = job._seen = None
        if job.spec is not None and job.spec.keeps_work and job.spec.body is None:
            job._duration -= done
        elif hasattr(job, "_whole"):  # it starts again from the beginning, also where it had been suspended
            job.requested, job._expected, job._duration = job._whole
        self._enqueue(job)

    def _stop(self, run: Run, status: str) -> None:
        """Stop a run: a body is interrupted and may clean up; anything else ends now."""
        if run.job._run is not run:
            return
        if run.stopping is not None:
            if run.stopping in _COMES_BACK and status not in _COMES_BACK:
                run.stopping = status  # it cleans up to start again: now it will not
        elif run.process is not None:
            if run.process.is_alive:  # else it ended in this instant
                run.stopping = status
                run.process.interrupt(status)
        else:
            self._finish(run, status)

    # ------------------------------------------------------------------ stopped before their end

    def why_not_preempt(self, job: LiveJob, mode: str) -> str | None:
        """Say why a running job cannot be stopped so, or ``None``."""
        if mode not in ("requeue", "suspend"):
            return f"mode requeue or suspend expected, found {mode!r}"
        if job._run is not None and job._run.released:
            return "the job has ended"
        spec = job.spec
        if spec is not None and spec.on_preempt == "no":
            return "the job forbids preempting it"
        if spec is not None and spec.body is not None and mode == "suspend":
            return "a job with a body cannot be suspended"
        return None

    def preempt(self, job: LiveJob, mode: str = "requeue") -> None:
        """Stop a running job: it starts again from the queue, or (``suspend``) goes on where it was."""
        run = job._run
        if run is None:
            raise ValueError(f"running work expected, found {job}")
        if mode == "requeue":
            self._stop(run, "preempted")
            return
        assert job._started is not None
        elapsed = self.env._now - job._started
        self.env.withdraw(run)
        run.place.running.remove(run)
        run.place.give_back(job, run.grant)
        job._run = None
        past: Past = job._past or Past()
        start = float(job._started) if past.attempt_start is None else past.attempt_start
        last, executed = float(job._started), past.executed + float(elapsed)
        job._past = past._replace(attempt_start=start, last_start=last, executed=executed)
        job._work = job._seen = None
        if not hasattr(job, "_whole"):
            job._whole = job.requested, job._expected, job._duration
        job._duration -= elapsed
        job._expected = max(0.0, job._expected - elapsed)
        job.requested = max(0.0, job.requested - elapsed)
        job._resumes = run.grant
        freed = self._ended_watched(job) if job._watched else ()
        self._tell("job_suspended", run)
        for each in (*freed, job):
            self._enqueue(each)
        self._changed()

    def fail(self, runs: Iterable[Run | Claim]) -> None:
        """Have these runs hit by a failure: their jobs are resubmitted or lost, as the platform says.

        Processes that hold claims are interrupted.
        """
        status = "requeued" if self.spec.on_failure == "resubmit" else "lost"
        self._stop_all(runs, status)

    def _stop_all(self, runs: Iterable[Run | Claim], status: str) -> None:
        for run in runs:
            if isinstance(run, Claim):
                run.lose()
            else:
                self._stop(run, status)
