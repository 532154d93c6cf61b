"""The execution of jobs on a cluster: starts, bodies, ends, preemption and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from math import inf
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from simmodel.environment import ToCome
from simmodel.foundation.errors import InputError
from simmodel.resources.pools.claims import Claim
from simmodel.resources.pools.elastic import fits_at, resized
from simmodel.scheduling.protocol import Resize, SetLevel, Start
from simmodel.scheduling.scheduler import Withdrawn
from simmodel.systems.cluster.queueing import Queueing, places_to_wait
from simmodel.work.job import Booting, LiveJob, Run
from simmodel.work.malleable import MalleableJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.claims import Grant
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.scheduler import Handler
    from simmodel.snapshots.jobs import RunningWork, WorkState
    from simmodel.systems.cluster.bodies import Bodies
    from simmodel.systems.cluster.checkpoints import Checkpoints
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.traffic import JobTraffic

__all__ = ["Ending", "JobExecution", "carry_level", "carry_resize", "carry_start"]

_COMES_BACK = ("preempted", "requeued")
_STOPPED = {"timeout": "timeout", "cancel": "cancelled"}


class Ending(NamedTuple):
    """A planned end of a run; priority and number order simultaneous ends (see ``ToCome``)."""

    at: float
    priority: float
    number: int
    run: Run


class JobExecution:
    """Starts and ends jobs: one heap event per job, and a process if it has a body.

    Parameters
    ----------
    core, queueing
        those of the cluster
    over
        called with a job that has ended for good
    changed
        functions of systems above, called when a job has started or ended
    """

    plans = True
    """Whether it plans the ends of jobs; otherwise they are reported from outside."""

    def __init__(
        self,
        core: ClusterCore,
        queueing: Queueing,
        over: Callable[[LiveJob], object],
        changed: list[Callable[[], object]],
    ) -> None:
        self.env = core.env
        self._core = core
        self._queueing = queueing
        self._queues = queueing.queues
        self._over = over
        self._changed = changed
        self._priority = core.end_priority
        self._ends = (self.finish,)
        self._booting: dict[Booting, None] = {}
        self._released: dict[Run, None] = {}  # holding nothing any more, with their end events pending
        self.malleable = 0  # running jobs whose size may change
        self._at_levels = [0, 0]  # executions that ended at a level, and those of them that a limit cut off there
        core.settle = self.settle
        for pool in core.places:
            pool.changed.append(self._tell_above)
            if self.plans:
                pool.changed.append(self._capacity_changed)

    @cached_property
    def _bodies(self) -> Bodies:
        from simmodel.systems.cluster.bodies import Bodies

        return Bodies(self._core, self.finish, self._changed)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of its jobs, and the executions that save to a storage or over a link."""
        from simmodel.systems.cluster.checkpoints import Checkpoints

        return Checkpoints(self._core, self)

    @cached_property
    def traffic(self) -> JobTraffic:
        """The part that runs jobs with traffic."""
        from simmodel.systems.cluster.traffic import JobTraffic

        self.talks = True
        return JobTraffic(self._core, self)

    talks = False
    """Whether there have been jobs with traffic."""

    # ------------------------------------------------------------------ starts

    def start(
        self,
        work: LiveJob,
        place: Pool,
        allocation: Any = None,
        *,
        since: float | None = None,
        processors: int | None = None,
    ) -> None:
        """Start a waiting job, which counts as started at ``since`` (s); the scheduler has checked that it fits.

        ``processors``: the size at which an elastic job starts, by default that which it prefers. If its nodes have to
        boot, it holds them and starts when they are up: ``allocation`` is then what it has held until now.
        """
        job, env = work, self.env
        now = env._now if since is None else since
        booted = type(allocation) is Booting
        if booted:
            grant, processors = allocation.grant, allocation.processors
        else:
            if job.watched:
                if job._outcome == "withdrawn":
                    place.version += 1  # policies see that not all is as they planned
                    self.drop(job, "withdrawn")
                    raise Withdrawn
                if job.altered() is not None:
                    place.check(job)
            if processors is None:
                grant = place.take(job, allocation)  # raises a PolicyError if a policy has changed the job or the place
                self._queues[place].remove(job)
            else:
                grant = self._take_sized(job, place, processors)
            if job.watched:
                job = self._queueing.chosen(job)
            if place.sleeping is not None and self.plans and place.sleeping.wake_for(grant.nodes, job.id):
                self._boot(job, place, grant, processors)
                return
        expected, duration = job.expected, job._duration
        if place.paced:
            speed = place.speed_of(job, grant.nodes)
            expected, duration = expected / speed, duration / speed
        spec = job._job
        course = job.course
        simple = self.plans and course is None and (spec is None or not (spec.own_end or spec.saves_somewhere))
        if simple:
            end = now + duration
            run = Run(job, place, now, now + expected, grant, self._ends, end)
            run._number = env.plan(run, end, self._priority)  # as plan_end does, without a call
        else:
            run = Run(job, place, now, now + expected, grant)
        place.running.add(run, job.width)
        job.state = "running"
        job.run = run
        job.started = now
        if simple or course is not None:
            pass
        elif spec is not None and spec.has_body:
            self._bodies.begin(run, spec)
        elif self.plans and spec is not None and spec.traffic is not None:
            self.traffic.begin(run)
        elif self.plans:
            self.checkpoints.begin(run)
        past, resumed = job.history, False
        if past is not None:
            if past.stopped is not None:
                job.remember().go_on(now)
            if past.resumes:
                resumed = past.attempt_start is not None  # else it was bound to a host
                job.remember().resumes = None
        if resumed:
            self._core.tell("job_resumed", run)
        else:
            job.attempts += 1
            for hook in self._core.on_started:
                hook(run)
            size = processors is not None and processors != job.preferred
            if size or (past is not None and past.level is not None):
                self._tell_resized(run, job.processors if processors is None else processors, grant)
        if job.watched:
            self._started_watched(job, limited=not booted)
        if self._changed:
            self._tell_above()
        if course is not None:  # last, since it may end the run at once
            course(run)

    def _boot(self, job: LiveJob, place: Pool, grant: Grant, processors: int | None) -> None:
        """Let a job hold its nodes until they are up; policies expect it to run from then on."""
        assert place.sleeping is not None
        now, up = self.env._now, place.sleeping.ready(grant.allocation)
        run = Booting(job, place, now, up + job.expected / place.speed_of(job, grant.nodes), grant)
        run.processors, run.up = processors, up
        place.running.add(run, job.width)
        self._booting[run] = None
        job.state, job.run = "running", run
        if job.watched:
            self._queueing.started(job)
        if self._changed:
            self._tell_above()

    def booted(self, place: Pool) -> None:
        """Start the jobs at a place whose nodes are all up now."""
        assert place.sleeping is not None
        for run in [run for run in self._booting if run.place is place]:
            if place.sleeping.booting.keys().isdisjoint(run.grant.nodes):
                del self._booting[run]
                place.running.remove(run)
                self.start(run.job, place, run)

    def _leave_boot(self, run: Booting, status: str) -> None:
        """Take its nodes from a job while they boot: it waits again, unless it is cancelled."""
        job, place = run.job, run.place
        del self._booting[run]
        place.running.remove(run)
        place.give_back(job, run.grant)
        job.run = None
        freed = self._queueing.ended(job) if job.watched else ()
        if status in ("cancelled", "timeout"):
            job.state = status
            self._core.tell("job_cancelled", job)
            self._over(job)
        else:
            job.undo_level()
            job.attempts += 1  # plans see that it is back
            self._queueing.enqueue(job)
            job.attempts -= 1
        for each in freed:
            self._queueing.enqueue(each)
        if place.claims.waiting:
            place.claims.serve()
        if self._changed:
            self._tell_above()
        self._core.wake()

    def drop(self, job: LiveJob, state: str) -> None:
        """End a job that has not started: it was cancelled, or its turn came although it never ran."""
        job = self._queueing.choices.get(job, (job,))[0]
        self._queueing.leave(job)
        job.state = state
        if job.history is not None:
            job.remember().go_on(self.env._now)
        self._core.tell("job_cancelled", job)
        self._over(job)

    def _take_sized(self, job: LiveJob, place: Pool, processors: int) -> Grant:
        """Take a waiting elastic job out of its queue, and allocate the processors of the size that it starts at."""
        assert isinstance(job, MalleableJob)
        self._queues[place].remove(job)
        if processors != job.processors:
            job.begin_at(processors, self.env._now)
        job.state = "running"
        return place.take(job)

    @property
    def stops(self) -> bool:
        """Whether jobs are stopped at their limits."""
        return self._core.overrun == "stop" and self._core.estimates == "requested"

    def start_at(
        self, job: LiveJob, place: Pool, allocation: Allocation | None, level: float, *, stretch: bool
    ) -> None:
        """Start a waiting job at a relative frequency of its nodes."""
        job = self._queueing.choices.get(job, (job,))[0]
        self.plan_at(job, place, level, stretch=stretch)
        self.start(job, place, allocation)

    def plan_at(self, job: LiveJob, place: Pool, level: float | None, *, stretch: bool) -> None:
        """Let a waiting job start at a relative frequency of its nodes, when it starts; ``None``: at none."""

        def change() -> None:
            job.undo_level()
            if level is not None:
                job.run_at(level, stretch=stretch, stops=self.stops)

        job.watched = True
        self._queueing.move(job, place, change)

    def _tell_resized(self, run: Run, before: int, grant: Grant) -> None:
        for hook in self._core.on_resized:
            hook(run, before, grant)

    def resize(
        self, job: LiveJob, processors: int, held: Any, level: float | None = None, *, stretch: bool = True
    ) -> None:
        """Give a running job another size or level, with the capacity that it holds from now on (hot path)."""
        former, env = job.run, self.env
        assert former is not None
        place, before, now, grant = former.place, job.processors, env._now, former.grant
        if former.callbacks is not None:
            env.withdraw(former)
        speed = place.speed_of(job, grant.nodes) if place.paced else 1.0
        place.give_back(job, grant)
        if level is None:
            assert isinstance(job, MalleableJob)
            job.resize(processors, now, speed)
        else:
            job.watched = True
            job.suspend(now, None, speed)
            job.run_at(level, stretch=stretch, stops=self.stops)
            job.started = now
        taken = place.take(job, held)
        if place.paced:
            speed = place.speed_of(job, taken.nodes)
        job.run = run = Run(job, place, now, now + job.expected / speed, taken)
        place.running.replace(former, run, job.width, processors - before)
        if self.talks and self.traffic.runs(former):
            self.traffic.resize(former, run)
        elif self.plans:
            self.plan_end(run, now + job._duration / speed)
        for usage in self._core.usages:
            usage.change(job.user, processors - before, now)
        self._tell_resized(run, before, grant)
        if place.claims.waiting:
            place.claims.serve()
        if self._changed:
            self._tell_above()

    @property
    def places(self) -> tuple[Pool, ...]:
        return self._core.places

    def take_back(self, job: LiveJob) -> None:
        """Undo a start of this instant: the job waits again at its old position, as if it had not started.

        Raises
        ------
        InputError
            if it did not start at this instant, or has a body
        """
        run = job.run
        if isinstance(run, Booting):
            self._leave_boot(run, "requeued")
            return
        if run is None or run.started != self.env.now or run.process is not None:
            raise InputError(f"job {job.id}: the start cannot be taken back: it is {job.state}, or has a body")
        if run.callbacks is not None:
            self.env.withdraw(run)
        self.checkpoints.pause(run)
        run.place.running.remove(run)
        run.place.give_back(job, run.grant)
        freed = self._ended_watched(run) if job.watched else ()
        job.run = job.started = None
        job.undo_level()
        self._queueing.join(job, places_to_wait(job, self._core))  # with its attempt: plans see that it is back
        for entry in self._queueing.choices.get(job, (job,)):
            entry.attempts -= 1
        if job.attempts:
            job.remember().stopped = float(self.env.now)
        for each in freed:
            self._queueing.enqueue(each)

    def after_each(self, call: Callable[[], object]) -> None:
        """Call a function after each start and each end, as the systems above are."""
        self._changed.append(call)

    def _tell_above(self) -> None:
        for call in self._changed:
            call()

    def _capacity_changed(self) -> None:
        """Ask for a decision, also without waiting work if running jobs may grow."""
        if self.malleable:
            self._core.wake_anyway()
        else:
            self._core.wake()

    def plan_end(self, run: Run, at: float) -> None:
        """Plan the end of a run at an instant (s)."""
        if self.talks and self.traffic.runs(run):
            self.traffic.plan_end(run, at)
            return
        run.callbacks = self._ends
        run._end = at
        run._number = self.env.plan(run, at, self._priority)

    def go_on(self, run: Run) -> None:
        """Let a run execute from now on, its body or for the run time of its job, after a course of its own."""
        spec = run.job._job
        if spec is not None and spec.has_body:
            self._bodies.begin(run, spec)
            return
        if spec is not None and spec.traffic is not None:
            self.traffic.begin(run)
            return
        if spec is not None and spec.saves_somewhere:
            self.checkpoints.begin(run)
            return
        speed: float = run.place.speed_of(run.job, run.grant.nodes)
        self.plan_end(run, self.env._now + run.job._duration / speed)

    def _started_watched(self, job: LiveJob, *, limited: bool = True) -> None:
        """Update usage and, if ``limited``, limits, and release dependent jobs at the start of a job that needs it."""
        for usage in self._core.usages:
            usage.change(job.user, job.processors, self.env._now)
        if limited:
            self._queueing.started(job)
        if self._core.dependencies is not None:
            self._core.dependencies.happened(job, "start")
        self.malleable += job.elastic is not None

    # ------------------------------------------------------------------ ends

    def finish(self, run: Run, status: str | None = None) -> None:
        """End a run, by default with the planned status, and release its grant (hot path)."""
        job, place = run.job, run.place
        planned = status is None
        if status is None:
            status = job._outcome
        elif run.process is None and run.callbacks is not None:
            self.env.withdraw(run)  # stopped before its planned end
        if run.released:
            del self._released[run]
        else:
            place.running.remove(run)
            place.give_back(job, run.grant)
        job.run = None
        freed = self._ended_watched(run, status) if job.watched else ()
        comes_back = not planned and status in _COMES_BACK
        if not comes_back:
            job.state = status
            job.earlier = job.later = None  # or a long job would keep all that were in the queue after it
        for hook in self._core.on_ended:
            hook(run, status)
        for held in freed:  # after the hooks, since this may bring a decision
            self._queueing.enqueue(held)
        if comes_back:
            job.requeue(self.env._now, place.speed_of(job, run.grant.nodes))
            if job._job is not None and job._job.checkpoint is not None:
                self.checkpoints.plan_rest(job)
            self._queueing.enqueue(job)
        else:
            self._over(job)
        if place.claims.waiting:
            place.claims.serve()
        if self._changed:
            self._tell_above()
        queue = self._queueing.only_queue
        if queue is None or queue.count:  # else there is nothing to decide
            if planned:
                self._core.wake_last()
            else:
                self._core.wake()
        elif self.malleable:  # which may grow
            self._core.wake_anyway()

    def _ended_watched(self, run: Run, status: str | None = None) -> Sequence[LiveJob]:
        """Update usage, limits and checkpoints at an end; return the held jobs that may wait from now on."""
        job = run.job
        if job._job is not None and job._job.traffic is not None:
            self.traffic.end(run, status)
        if status is not None and job._job is not None and job._job.checkpoint is not None:
            self.checkpoints.count_kept(run, status)
        for usage in self._core.usages:
            usage.change(job.user, -job.processors, self.env._now)
        self.malleable -= job.elastic is not None
        past = job.history
        if past is not None and past.level is not None and status not in (None, "suspended"):
            self._at_levels[0] += 1
            self._at_levels[1] += status == "timeout" != past.level.outcome and past.level.over > 0
        return self._queueing.ended(job)

    def notes(self) -> tuple[str, ...]:
        """Return a sentence about the executions that ended at a level, if there were any."""
        count, cut = self._at_levels
        share = f"{cut:,} ({cut / count:.1%})" if cut else "none"
        return (f"executions at a level: {count:,}; stopped there by a limit not stretched: {share}",) if count else ()

    def settle(self) -> None:
        """Release the grants of jobs whose end is a pending event of this instant and was expected by now."""
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
        """Mark the grant of a run as released although its end event is pending."""
        run.released = True
        self._released[run] = None

    # ------------------------------------------------------------------ preemption and failures

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """The handlers of the decision types ``Resize``, ``SetLevel``, and ``Start`` at a size or a level."""
        return {
            Resize: partial(carry_resize, self),
            SetLevel: partial(carry_level, self),
            Start: partial(carry_start, self),
        }

    def entry_at(self, job: LiveJob, place: Pool) -> LiveJob:
        """Return the entry of a waiting job at a place, or the job."""
        return next((each for each in self._queueing.choices.get(job, ()) if each.place is place), job)

    def why_not_preempt(self, job: LiveJob, mode: str) -> str | None:
        """Return why a running job cannot be preempted in this mode, or ``None``."""
        if mode not in ("requeue", "suspend", *_STOPPED):
            return f"mode: must be 'requeue', 'suspend', 'timeout' or 'cancel', got {mode!r}"
        if job.run is None:
            return "it is not running"
        if job.run.released:
            return "the job has ended"
        if job.course is not None:
            return "a job that reads files at a site of a grid cannot be preempted"
        spec = job._job
        if spec is not None and spec.on_preempt == "no" and mode != "timeout":
            return "the job forbids preemption"
        if spec is not None and spec.has_body and mode == "suspend":
            return "a job with a body cannot be suspended"
        return None

    def preempt(self, job: LiveJob, mode: str = "requeue") -> None:
        """Preempt a running job: it starts again, continues later (``suspend``), or ends (``timeout``, ``cancel``)."""
        run = job.run
        if run is None:
            raise InputError(f"cannot preempt {job}: it does not run")
        if mode != "suspend" or isinstance(run, Booting):
            self.stop(run, _STOPPED.get(mode, "preempted"))
            return
        if run.callbacks is not None:
            self.env.withdraw(run)
        run.place.running.remove(run)
        run.place.give_back(job, run.grant)
        job.run = None
        job.suspend(self.env._now, run.grant, run.place.speed_of(job, run.grant.nodes))
        job.remember().stop(self.env._now)
        freed = self._ended_watched(run, "suspended") if job.watched else ()
        self._core.tell("job_suspended", run)
        for each in (*freed, job):
            self._queueing.enqueue(each)
        self._core.wake()

    def stop(self, run: Run, status: str) -> None:
        """Stop a run: a body is interrupted and may clean up for its grace time; any other run ends now."""
        if run.job.run is not run:
            return
        if isinstance(run, Booting):
            self._leave_boot(run, status)
        elif run.stopping is not None:
            if run.stopping in _COMES_BACK and status not in _COMES_BACK:
                run.stopping = status  # cleaning up for a restart, which is now called off
        elif run.process is not None:
            self._bodies.stop(run, status)
        else:
            self.finish(run, status)

    def leaves(self, run: Run | Claim) -> float:
        """Return the instant (s) at which a run ends at the latest if its body cleans up; else its expected end."""
        if isinstance(run, Run) and run.stopping is not None:
            return self._bodies.kill_at(run)
        return run.expected_end

    def stop_all(self, runs: Iterable[Run | Claim], status: str) -> None:
        """Stop several runs; processes that hold claims are interrupted."""
        for run in runs:
            if isinstance(run, Claim):
                run.lose()
            else:
                self.stop(run, status)

    def fail(self, runs: Iterable[Run | Claim]) -> None:
        """Stop several runs by a failure: their jobs are resubmitted or lost, as set by the spec's ``on_failure``."""
        self.stop_all(runs, self._core.lost)

    # ------------------------------------------------------------------ snapshots

    def endings(self) -> list[Ending]:
        """List the planned ends."""
        runs = [run for pool in self._core.places for run in pool.running if isinstance(run, Run)]
        talking = self.traffic.endings() if self.talks else ()
        return [
            Ending(float(run._end), float(self._priority), run._number, run)
            for run in (*runs, *self._released)
            if run.callbacks is not None
        ] + [Ending(*each) for each in talking]

    def state(
        self, work_of: Callable[[LiveJob], WorkState], *, ends: bool
    ) -> tuple[tuple[RunningWork, ...], list[ToCome]]:
        """Return the executions and, with ``ends``, their planned ends, each with the position of its execution."""
        from simmodel.snapshots.jobs import RunningWork

        runs = [entry[3] for pool in self._core.places for entry in sorted(pool.running.entries(), key=itemgetter(1))]
        endings = sorted(self.endings(), key=itemgetter(0, 1, 2)) if ends else []
        at = {ending.run: ending.at for ending in endings}
        runs += [run for run in at if run.released]
        rows = {run: row for row, run in enumerate(runs)}
        coming = [ToCome(*ending[:3], "end", (rows[ending.run],)) for ending in endings]
        return tuple(
            [
                RunningWork(
                    work_of(run.job),
                    float(run.started),
                    float(run.expected_end),
                    at.get(run),
                    run.grant.allocation,
                    max(1, run.job.attempts + (run in self._booting)),
                    getattr(run, "released", False),
                    self.traffic.pace_of(run) if ends and self.talks and run not in self._booting else None,
                    run in self._booting,
                    getattr(run, "processors", None),
                )
                for run in runs
            ]
        ), coming

    def restore(self, running: Sequence[RunningWork], jobs: Iterable[LiveJob]) -> list[Run]:
        """Restore the executions of live jobs, whose ends are planned with :meth:`plan_end`; return them."""
        from simmodel.systems.job_states import grant_of

        runs: list[Run] = []
        there: dict[Pool, list[tuple[Run, int]]] = {place: [] for place in self._core.places}
        for each, job in zip(running, jobs, strict=True):
            place = job.place
            grant = grant_of(each.held) if each.released else place.take(job, each.held)
            run = (Booting if each.boots else Run)(job, place, each.started, each.expected_end, grant)
            runs.append(run)
            if each.released:
                self.release(run)
            else:
                there[place].append((run, job.width))
            job.state = "running"
            job.run = run
            self._core.known[job.id] = job
            if job.rules is not None:
                job.rules.runs(job)
            if isinstance(run, Booting):
                run.processors, run.up = each.boots_at, self.env.now  # plans of this instant are over
                self._booting[run] = None
                job.attempts = each.attempt - 1
                continue
            job.started = each.started
            job.attempts = each.attempt
            self.malleable += job.elastic is not None
            if each.pace is not None:
                self.traffic.begin(run, each.pace)
        for place, held in there.items():
            place.running.fill(held)
        return runs

    def expect_ends(self, runs: Iterable[Run]) -> None:
        """Plan the expected ends of restored executions whose actual ends are unknown."""
        from simmodel.snapshots.jobs import expected_end

        for run in sorted(runs, key=attrgetter("expected_end")):
            end = expected_end(self.env.now, run.expected_end)
            if end != run.expected_end:
                run.job._duration = (end - run.started) * run.place.speed_of(run.job, run.grant.nodes)
            if end < inf:
                self.plan_end(run, end)


class Sizing(Protocol):
    """The part that starts and resizes jobs: the execution of a cluster."""

    @property
    def places(self) -> Sequence[Pool]:
        """The places on which jobs run."""
        ...

    def start(self, work: LiveJob, place: Pool, /, *, processors: int | None = None) -> None:
        """Start a waiting job at a size."""
        ...

    def resize(
        self, job: LiveJob, processors: int, held: Any, /, level: float | None = None, *, stretch: bool = True
    ) -> None:
        """Give a running job another size or level, with the capacity that it holds from now on."""
        ...

    @property
    def stops(self) -> bool:
        """Whether jobs are stopped at their limits."""
        ...

    def start_at(
        self, job: LiveJob, place: Pool, allocation: Allocation | None, level: float, /, *, stretch: bool
    ) -> None:
        """Start a waiting job at a relative frequency of its nodes."""
        ...

    def plan_at(self, job: LiveJob, place: Pool, level: float | None, /, *, stretch: bool) -> None:
        """Let a waiting job start at a relative frequency of its nodes, when it starts; ``None``: at none."""
        ...

    def entry_at(self, job: LiveJob, place: Pool, /) -> LiveJob:
        """Return the entry of a waiting job at a place, or the job."""
        ...


def why_not_level(job: LiveJob, place: Pool, level: float) -> str | None:
    """Return why a job cannot run at a level on a place, or ``None``."""
    if level not in place.levels:
        names = ", ".join(f"{each:g}" for each in place.levels)
        there = f"one of {names}, the levels of all its nodes" if names else "None, since its nodes have no levels"
        return f"level: must be {there}, got {level!r}"
    if job.own_times:
        return f"level: must be None for a job with a size, an end or checkpoints of its own, got {level!r}"
    return None


def carry_start(execution: Sizing, decision: Start) -> str | None:
    """Start a waiting job at the size or the level that a decision names, or return why this is impossible."""
    job, place, _, allocation, processors, level, stretch = decision
    if level is not None:
        if processors is not None:
            return f"processors: must be None beside a level, got {processors!r}"
        return _carry_start_at(execution, execution.entry_at(job, place), place, allocation, level, stretch)
    assert processors is not None
    if job.state != "waiting" or job.place is not place:
        return f"cannot start {job!r} on {place.name}: it does not wait for it"
    if job.elastic is None:
        return f"processors: must be None for a job that is not elastic, got {processors!r}"
    if allocation is not None:
        return f"allocation: must be None beside a size, got {allocation!r}"
    reason: str | None = job.elastic.why_not(processors)
    if reason is None and processors != job.preferred:
        reason = place.why_rigid
    if reason is not None:
        return reason
    if job.history is not None and job.history.resumes:
        return f"processors: must be None for a suspended job, which resumes as it was, got {processors!r}"
    if not fits_at(place, job, processors):
        return f"does not fit: {processors} processors, {place.free} of {place.capacity} are free"
    execution.start(job, place, processors=processors)
    return None


def _carry_start_at(
    execution: Sizing, job: LiveJob, place: Pool, allocation: Allocation | None, level: float, stretch: bool
) -> str | None:
    if job.state != "waiting" or job.place is not place:
        return f"cannot start {job!r} on {place.name}: it does not wait for it"
    if job.history is not None and job.history.resumes:
        return f"level: must be None for a suspended job, which resumes as it was, got {level!r}"
    reason = why_not_level(job, place, level)
    if reason is not None:
        return reason
    with job.trying(level, stretch=stretch, stops=execution.stops):
        fits = place.fits(job) if allocation is None else place.accepts(job, allocation)
    if not fits:
        return f"does not fit at level {level:g}: {place.free} of {place.capacity} processors are free"
    execution.start_at(job, place, allocation, level, stretch=stretch)
    return None


def carry_level(execution: Sizing, decision: SetLevel) -> str | None:
    """Let a running job go on at another level, or a waiting one start there, or return why this is impossible."""
    job, level, _, stretch = decision
    here = isinstance(job, LiveJob) and job.state in ("waiting", "running") and job.place in execution.places
    run = job.run if here else None
    if not here or (run is not None and (run.released or level is None or isinstance(run, Booting))):
        return f"cannot set the level of {job!r} to {level!r}: it neither waits nor runs here"
    if job.history is not None and job.history.resumes:
        return f"cannot set the level of {job!r}: it resumes as it was suspended"
    reason = None if level is None else why_not_level(job, job.place, level)
    if reason is not None or job.level == level:
        return reason
    if run is None:
        execution.plan_at(job, job.place, level, stretch=stretch)
        return None
    assert level is not None
    if job.place.power is not None:
        speed = run.place.speed_of(job, run.grant.nodes)
        left = 1.0 - min(1.0, (run.place.env.now - run.started) * speed / job.planned)
        with job.trying(level, stretch=stretch, stops=execution.stops):
            request, seconds = job.request, job.planned * left / speed
        if not job.place.power.allows(job, request, seconds):
            return f"does not fit at level {level:g}: too little power is free"
    execution.resize(job, job.processors, run.grant.allocation, level, stretch=stretch)
    return None


def carry_resize(execution: Sizing, decision: Resize) -> str | None:
    """Give a running job another size, or return why this is impossible."""
    job, processors, _ = decision
    run = job.run if isinstance(job, LiveJob) else None
    if run is None or run.released or isinstance(run, Booting):
        return f"cannot resize {job!r}: it is not running"
    place = run.place
    if place not in execution.places:
        return f"cannot resize {job!r}: it is running on another system"
    elastic = job.elastic
    if elastic is None:
        return f"cannot resize {job!r}: it is not elastic"
    usual = type(processors) is int and elastic.minimum <= processors <= elastic.maximum
    reason: str | None = (None if usual else elastic.why_not(processors)) or place.why_rigid
    if reason is not None or processors == job.processors:
        return reason
    held: Any = resized(place, job, run.grant, processors)
    if held is None:
        more = processors - job.processors
        return f"does not fit: {more} more processors, {place.free} of {place.capacity} are free"
    execution.resize(job, processors, held)
    return None
