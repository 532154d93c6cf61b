"""Checkpoints of jobs: work that executions keep, or later ones do again; saves to shared storages and links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from simmodel.work.checkpoint import Kept, Progress
from simmodel.work.prepare import planned_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simmodel.environment import Call
    from simmodel.resources.network.flow import Flow
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.checkpoint import Checkpoint
    from simmodel.work.job import LiveJob, Run

__all__ = ["Checkpoints"]

_NEXT = {"restart": "read", "read": "work", "work": "cost", "cost": "write", "write": "work"}
_BYTES = ("read", "write")
_ROUNDING = 1e-12  # of a sum of seconds, relative


class Ends(Protocol):
    """The part that plans and brings the ends of runs: the execution of a cluster."""

    def plan_end(self, run: Run, at: float, /) -> None:
        """Plan the end of a run at an instant (s)."""
        ...

    def finish(self, run: Run, status: str | None = None, /) -> None:
        """End a run, by default with the planned status."""
        ...


class Checkpoints:
    """Counts the work that executions keep, and carries out those that save to a storage or over a link.

    The ends of these depend on who else uses it: they go phase by phase, without a process and with one event a phase.

    An attempt that begins from a checkpoint spends the seconds of ``restart`` and reads the bytes. It works for an
    interval, spends the seconds of ``cost`` and writes the bytes, until at most an interval of its work is left.

    Parameters
    ----------
    core
        that of the cluster
    ends
        the execution of the cluster
    """

    def __init__(self, core: ClusterCore, ends: Ends) -> None:
        self._core = core
        self._ends = ends
        self._under_way: dict[Run, _Execution] = {}

    def count_kept(self, run: Run, status: str) -> None:
        """Count the work kept by an execution that ends now: it is suspended, completed or stopped.

        Observers hear ``job_checkpointed(run, kept, lost)``; ``lost``: the seconds of this execution to be done again.
        """
        job = run.job
        spec, past = job._job, job.remember()
        assert spec is not None
        assert spec.checkpoint is not None
        assert spec.run is not None
        before = past.kept or Kept()
        speed = run.place.speed_of(job, run.grant.nodes)
        elapsed = float(self._core.env._now - run.started)
        if status == "suspended":
            past.kept = before._replace(ran=before.ran + elapsed * speed)
            past.progress = self.pause(run)
            return
        broken = 0.0
        counted = self.end(run, status)
        past.progress = None
        if counted is not None:
            kept, broken = counted
        elif status == "completed":
            kept = spec.checkpoint.completed(spec.run, before)
        else:
            kept = spec.checkpoint.stopped(elapsed * speed, before)
            complete = (kept.checkpoints - before.checkpoints) * spec.checkpoint.saving
            broken = max(0.0, kept.saving - before.saving - complete)
        past.kept = kept
        lost, overhead = 0.0, kept.reading - before.reading
        if status in ("preempted", "requeued"):
            lost, overhead = (kept.lost - before.lost) / speed, overhead + broken
            past.executed += elapsed - lost
        past.lost += lost
        past.overhead += overhead / speed
        self._core.tell("job_checkpointed", run, kept, lost)

    def plan_rest(self, job: LiveJob) -> None:
        """Plan a job that has been requeued with the work that its checkpoints have not kept."""
        core, spec, past = self._core, job._job, job.history
        assert spec is not None
        assert past is not None
        assert past.kept is not None
        seconds = spec.seconds(past.kept.saved)
        limit = seconds if spec.requested is None else spec.requested
        requested, expected, duration = map(float, planned_seconds(seconds, limit, core.estimates, core.overrun))
        if job.predicted:
            requested, expected = job.planned, job.expected
        past.keep(job.planned, job.expected, job._duration)
        job.plan(requested, expected, duration)
        job.end_as(cut=core.overrun == "stop" and limit < seconds)

    def jobs(self) -> Iterator[LiveJob]:
        """Iterate over the jobs that run so, in the order of their starts."""
        return (run.job for run in self._under_way)

    def begin(self, run: Run) -> None:
        """Begin a run, or continue one that was suspended."""
        job = run.job
        job.end_as(cut=False)  # unless its limit stops it
        past = job.history
        execution = _Execution(self._core, self._ends, run)
        self._under_way[run] = execution
        execution.limit(0.0 if past is None or past.kept is None else past.kept.ran)
        if past is not None and past.progress is not None:
            execution.resume(past.progress)
        else:
            execution.begin((past.kept if past is not None else None) or Kept())

    def pause(self, run: Run) -> Progress | None:
        """Stop a run that is suspended, and return how far it has come; ``None``: it is none of these."""
        execution = self._under_way.pop(run, None)
        return None if execution is None else execution.stop()

    def end(self, run: Run, status: str) -> tuple[Kept, float] | None:
        """End a run that saves to a storage or over a link, as its execution does; ``None``: it is none of these."""
        execution = self._under_way.pop(run, None)
        return None if execution is None else execution.end(status)


class _Execution:
    """The execution of one run: its present phase, which an event ends, since an instant (s)."""

    __slots__ = ("_call", "_core", "_ends", "_flow", "_limit", "_run", "_since", "_spec", "_speed", "_state", "_work")

    def __init__(self, core: ClusterCore, ends: Ends, run: Run) -> None:
        job = run.job._job
        assert job is not None
        assert job.checkpoint is not None
        assert job.run is not None
        self._core = core
        self._ends = ends
        self._run = run
        self._spec: Checkpoint = job.checkpoint
        self._work = job.run
        self._speed: float = run.place.speed_of(run.job, run.grant.nodes)
        self._call: Call | None = None
        self._limit: Call | None = None
        self._flow: Flow | None = None

    # ------------------------------------------------------------------ phases

    def begin(self, kept: Kept) -> None:
        self._state = Progress("", 0.0, 0.0, kept.saved, 0, kept._replace(ran=0.0))
        self._enter("restart" if kept.saved else "work")
        self._go()

    def resume(self, state: Progress) -> None:
        """Continue where an execution was stopped."""
        self._state = state
        self._go()

    def _enter(self, phase: str) -> None:
        """Enter the next phase that takes time."""
        spec, state = self._spec, self._state
        if phase == "work" and state.saves == spec.saves(self._work - state.first):
            phase = "rest"
        amount = {
            "restart": spec.restart,
            "cost": spec.cost,
            "work": spec.interval,
            "rest": self._work - state.first - state.saves * spec.interval,
        }.get(phase, spec.size)
        self._state = state._replace(phase=phase, left=amount)
        self._since = self._core.env._now
        if amount == 0 and phase != "rest":
            self._enter(_NEXT[phase])

    def _go(self) -> None:
        """Begin or resume the present phase."""
        core, (phase, left, *_) = self._core, self._state
        self._since = now = core.env._now
        if phase in _BYTES:
            self._flow = core.io.move(self._spec.to, left, self._run.job.id, self._moved, read=phase == "read")
        elif phase == "rest":
            self._ends.plan_end(self._run, now + left / self._speed)
        else:
            self._call = core.env.call_at(now + left / self._speed, self._over, core.end_priority)

    def _moved(self, flow: Flow) -> None:
        if flow is self._flow:  # else it was cancelled
            self._over()

    def _over(self) -> None:
        """Go on to the next phase: the present one is complete."""
        self._complete()
        self._go()

    def _complete(self) -> None:
        """Count the present phase, which is complete, and enter the next one."""
        self._call = self._flow = None
        self._count()
        spec, state = self._spec, self._state
        if state.phase == "work":
            self._state = state._replace(done=spec.interval)
        elif state.phase == "write":
            saves, kept = state.saves + 1, state.kept
            kept = kept._replace(saved=state.first + saves * spec.interval, checkpoints=kept.checkpoints + 1)
            self._state = state._replace(saves=saves, done=0.0, kept=kept)
        self._enter(_NEXT[state.phase])

    def _count(self) -> None:
        """Count the time that the present phase has taken by now."""
        state = self._state
        passed = float(self._core.env._now - self._since) * self._speed
        kept = state.kept
        if state.phase in ("work", "rest"):
            self._state = state._replace(done=state.done + passed)
        elif state.phase in ("cost", "write"):
            self._state = state._replace(kept=kept._replace(saving=kept.saving + passed))
        else:
            self._state = state._replace(kept=kept._replace(reading=kept.reading + passed))

    # ------------------------------------------------------------------ ends

    def limit(self, ran: float) -> None:
        """Have the run stopped at its requested time, of which its attempt has used ``ran`` seconds before."""
        core, run = self._core, self._run
        job = run.job._job
        if core.overrun == "stop" and job is not None and job.requested is not None:
            at = run.started + (job.requested - ran) / self._speed
            self._limit = core.env.call_at(at, self._time_out, core.end_priority)

    def _time_out(self) -> None:
        self._limit = None
        now = self._core.env._now
        if self._run.callbacks is None or self._run._end > now + _ROUNDING * max(1.0, now):
            self._ends.finish(self._run, "timeout")  # else its work ends now

    def stop(self) -> Progress:
        """Stop the execution and return its progress; a phase that is complete at this instant counts."""
        env, call, flow = self._core.env, self._call, self._flow
        now = env._now
        if (call is not None and call.at <= now) or (flow is not None and flow.left <= 0):
            self._complete()
        elif flow is not None:
            self._state = self._state._replace(left=flow.left)
        else:
            passed = float(now - self._since) * self._speed
            self._state = self._state._replace(left=max(0.0, self._state.left - passed))
        self._count()
        self._call = self._flow = None
        for each in (call, self._limit):
            if each is not None and each.pending:
                env.withdraw(each)
        if flow is not None:
            flow.cancel()
        return self._state

    def end(self, status: str) -> tuple[Kept, float]:
        """End the execution; return the work that its checkpoints have kept, and the seconds of a save broken off."""
        state = self.stop()
        kept, broken = state.kept, 0.0
        if status == "completed":
            return kept._replace(saved=self._work), broken
        if state.phase == "cost":
            broken = self._spec.cost - state.left
        elif state.phase == "write":
            broken = self._spec.cost + float(self._core.env._now - self._since) * self._speed
        return kept._replace(lost=kept.lost + state.done), broken
