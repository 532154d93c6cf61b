"""A cluster: pools of nodes, a queue, a scheduler, and the life of jobs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from simpy.events import Event

from simmodel.environment import END, SUBMIT, Environment, Occurrence, heard
from simmodel.errors import ImpossibleWork, InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.records.recorder import JobRecorder
from simmodel.scheduling.protocol import Estimate, Preempt, View
from simmodel.scheduling.registry import policy as policy_named
from simmodel.scheduling.scheduler import Carry, Scheduler, carry_preempt
from simmodel.scheduling.usage import Usage
from simmodel.scheduling.waiting import MergedQueues, WaitingQueue
from simmodel.snapshots.jobs import Past
from simmodel.systems.cluster.arrivals import Arrivals, Values, chunks_of
from simmodel.systems.cluster.build import build_pools, place_of
from simmodel.systems.cluster.calendar import Calendar
from simmodel.systems.cluster.copies import Snapshots
from simmodel.systems.cluster.execution import Executions
from simmodel.systems.cluster.limits import QueueRules
from simmodel.systems.cluster.replay import needs_specs, note_left_out, submit_specs
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.system import Offers, System, Timing
from simmodel.work.job import OVER, Job, LiveJob, Run
from simmodel.work.prepare import Estimates, Overrun, Prepared, planned_seconds, prepare
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.resources.pool import Pool
    from simmodel.results.result import Result
    from simmodel.systems.cluster.forecast import Forecast
    from simmodel.systems.system import By
    from simmodel.work.workload import Workload

__all__ = ["Cluster"]

_HOOKS = (
    "job_submitted",
    "job_eligible",
    "job_rejected",
    "job_started",
    "job_ended",
    "job_suspended",
    "job_resumed",
    "job_cancelled",
    "place_changed",
)


class Cluster(Executions, Snapshots, System[LiveJob]):
    """Nodes under one batch scheduler, which runs jobs.

    Parameters
    ----------
    env
        the environment
    platform
        a :class:`~simmodel.platform.cluster.ClusterSpec`, or a number of processors
    policy
        a name, a policy, or a function of a view
    decide_on
        ``"instant"``: one decision after all ends and all submissions of an instant; ``"event"``: one after each
    event_order
        with ``decide_on="event"``: whether ``"submits-first"`` or ``"ends-first"`` at one instant. Submissions first
        follows the classic simulators: a submission brings a decision only if the job fits now (or the policy tries
        every submission), and a job whose expected end has come counts as ended even before its end is handled
    estimates
        what policies plan with: see :func:`~simmodel.work.prepare.planned_seconds`
    overrun
        ``"stop"``: a job is stopped at its requested time; ``"continue"``: it runs on
    name, rank
        what reports call it; its turn among schedulers that share an instant
    record
        whether to keep what happens to its jobs, for :meth:`result`
    begin
        whether outages, failures and reservations of its description begin now; a snapshot's are there already

    Observers hear ``job_submitted(job)``, ``job_eligible(job)``, ``job_rejected(job, reason)``, ``job_started(run)``,
    ``job_ended(run, status)``, ``job_suspended(run)``, ``job_resumed(run)``, ``job_cancelled(job)``,
    ``job_promised(job, place, at)``, ``place_changed(place, cause)`` and ``decided(scheduler, seconds, decisions)``.

    >>> env = Environment()
    >>> cluster = Cluster(env, 4, policy="fcfs")
    >>> def user(env):
    ...     first = cluster.submit(Job(processors=3, run=10))
    ...     second = cluster.submit(Job(processors=2, run=5))
    ...     yield second
    ...     print(first.state, second.started, env.now)
    >>> _ = env.process(user(env)); env.run()
    completed 10.0 15.0
    >>> cluster.result().metrics()["wait_mean"]
    5.0
    """

    kind = "cluster"

    def __init__(
        self,
        env: Environment,
        platform: ClusterSpec | int,
        policy: Any = "fcfs",
        *,
        decide_on: Literal["instant", "event"] = "instant",
        event_order: Literal["submits-first", "ends-first"] = "submits-first",
        estimates: Estimates = "requested",
        overrun: Overrun = "stop",
        name: str | None = None,
        rank: int = 1,
        record: bool = True,
        begin: bool = True,
    ) -> None:
        _one_of("decide_on", decide_on, ("instant", "event"))
        _one_of("event_order", event_order, ("submits-first", "ends-first"))
        _one_of("estimates", estimates, ("requested", "exact", "cqsim"))
        _one_of("overrun", overrun, ("stop", "continue"))
        if not isinstance(env, Environment):
            raise InputError(f"an environment of simmodel expected, found {type(env).__module__}.{type(env).__name__}")
        self.env = env
        self.spec = platform if isinstance(platform, ClusterSpec) else ClusterSpec.simple(platform)
        self.name = name or self.spec.name
        self.estimates: Estimates = estimates
        self.overrun: Overrun = overrun
        self.options = ClusterOptions(
            decide_on=decide_on, event_order=event_order, estimates=estimates, overrun=overrun
        )
        self.pools = build_pools(env, self.spec)
        self.places: tuple[Any, ...] = tuple(self.pools.values())
        self._only_pool = self.places[0] if len(self.places) == 1 else None
        self._queues = {pool: WaitingQueue(env) for pool in self.places}
        self._only_queue = self._queues[self._only_pool] if self._only_pool is not None else None
        waiting: Any = self._only_queue if self._only_queue is not None else MergedQueues(self._queues)
        self.view = View(env, waiting, self.places, f"{self.name}.policy")
        self.view.estimator = _estimate
        self.usages: list[Usage] = []
        self.rules = {queue.name: QueueRules(queue) for queue in self.spec.queues}
        self.submitted = 0
        self._offset = 0  # of the numbers of jobs to their rows in the record
        self._record = record
        self._recorder: JobRecorder | None = None
        self._since: float | None = None
        self.report = Report()  # of jobs that a snapshot had still to arrive
        self._reports: list[Report] = []  # of replays
        self._active = 0  # submitted and not over
        self._sources: list[Arrivals] = []
        self._idle: Event | None = None
        self._cancellations: dict[LiveJob, Occurrence] = {}  # to come
        self._dependencies = Dependencies(self)
        self._by_event = decide_on == "event"
        self._submits_first = self._by_event and event_order == "submits-first"
        self._end_priority = SUBMIT if self._submits_first else END
        self._submit_priority = END if self._submits_first else SUBMIT
        self.known_as = policy if isinstance(policy, str) else None
        self.timing = Timing(self._by_event, self._submit_priority, self._end_priority)
        self._forecasts: dict[str, Forecast] = {}
        policy = policy_named(policy)
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank, self._by_event)
        self._tries_every_submission = getattr(policy, "tries_every_submission", False)
        self._changed: Callable[[], None] = self._decide_now if self._by_event else self.scheduler.wake
        for pool in self.places:
            pool.changed.append(self._changed)
        self._end_callbacks = (self._ended,)
        self._hooks: dict[str, tuple[Callable[..., object], ...]] = {}
        self._on_submitted: tuple[Callable[..., object], ...] = ()
        self._on_started: tuple[Callable[..., object], ...] = ()
        self._on_ended: tuple[Callable[..., object], ...] = ()
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)
        if hasattr(policy, "attach"):
            policy.attach(self)
        self.calendar = Calendar(self)
        if begin:
            self.calendar.begin()
        self.view.simulate = self._simulate

    @property
    def carries(self) -> Mapping[type, Carry]:
        """What it carries out beside starts: ``Preempt``."""
        return {Preempt: partial(carry_preempt, self)}

    def __repr__(self) -> str:
        return f"<Cluster {self.name}: {len(self.view.waiting)} waiting, {self._active} jobs not over>"

    def _find_hooks(self) -> None:
        own = self._recorder
        kept = {name: heard(own, name) for name in _HOOKS}
        self._hooks = {name: self.env.hooks(name) + ((call,) if call else ()) for name, call in kept.items()}
        self._on_submitted = self._hooks["job_submitted"]
        self._on_started = self._hooks["job_started"]
        self._on_ended = self._hooks["job_ended"]

    def _tell(self, hook: str, *what: Any) -> None:
        for call in self._hooks[hook]:
            call(*what)

    # ------------------------------------------------------------------ submission

    def submit(self, spec: Job) -> LiveJob:
        """Submit a job now, whatever its ``submit`` says; the job is an event that happens when it is over.

        Raises
        ------
        ImpossibleWork
            where no place of the cluster can ever run it
        InputError
            where it names a queue or a partition that is not there
        """
        if not isinstance(spec, Job):
            raise InputError(f"a Job expected, found {spec!r}")
        job, reason = self._live(spec, self.submitted - self._offset, self.submitted)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {reason}")
        self._begin_record()
        self.submitted += 1
        self._active += 1
        self._take_in(job)
        return job

    def _begin_record(self, expected: Mapping[str, Any] | None = None) -> None:
        """Keep what happens to jobs, from the first of them on; of a workload, ``expected`` are its columns."""
        if not self._record:
            return
        if self._recorder is None:
            self._recorder = JobRecorder(self.env, late=False, places=self.places)
            self._find_hooks()
        if (expected is None or not self._recorder.expect(expected)) and not self._recorder.hears_submissions:
            self._recorder.hear_submissions()
            self._find_hooks()

    def result(self, name: str | None = None) -> Result:
        """Return what has happened so far to the jobs of this cluster; ``name`` is what tables and plots call it.

        Raises
        ------
        InputError
            where the cluster was told to keep no record
        """
        if not self._record:
            raise InputError(f"{self.name} keeps no record: Cluster(record=True) expected")
        self._begin_record()
        assert self._recorder is not None
        scheduler = self.scheduler
        from simmodel.results.result import Result

        return self._recorder.record(
            Result,
            name=name or scheduler.policy_name,
            report=sum(self._reports, Report()) + self.report,
            decisions=scheduler.timing(),
            policy=scheduler.policy,
            started=self._since,
        )

    def _keep_record(self, recorder: JobRecorder) -> None:
        """Go on with a record that begins now, of jobs that are known already."""
        self._recorder, self._since = recorder, float(self.env.now)
        self._find_hooks()

    def replay(self, workload: Workload, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; returns what was repaired and rejected.

        Jobs that can never run are recorded as rejected and counted. A job whose row names a preceding job waits for
        the end of that one and then its think time.
        """
        if home is not None:
            raise InputError(f"{self.name} is a cluster, whose jobs have no home; found {home!r}")
        largest = max(pool.capacity for pool in self.places)
        prepared = prepare(workload, largest, self.estimates, self.overrun)
        self._reports += [workload.report, prepared.report]
        self._begin_record(_columns_of(workload, prepared))
        note_left_out(workload, self.offers, prepared.report)
        first = self.submitted - self._offset
        names = workload["job"].tolist() if prepared.rejected else []
        for row, reason in prepared.rejected.items():
            processors = int(prepared.processors[row])
            job = LiveJob(names[row], first + row, float(workload["submit"][row]), processors, 0.0, 0.0, 0.0)
            job.state = "rejected"
            self._tell("job_rejected", job, reason)
            self._dependencies.rejected(job.id)
        self.submitted += len(workload)
        self._active += len(prepared.rows)
        if self._only_pool is None or needs_specs(workload, self.offers):
            submit_specs(self, workload, prepared, first)
        else:
            rows = range(first, first + len(workload))
            numbers = {row: row + self._offset for row in rows} if self._offset else None
            self._expect(chunks_of(workload, prepared, first), numbers)
        return prepared

    def _expect(self, chunks: Iterator[list[Values]], numbers: Mapping[int, int] | None) -> None:
        """Have plain jobs submitted, each at its instant."""
        self._sources.append(Arrivals(self, chunks, self._by_event or bool(self._on_submitted), numbers))

    def _live(self, spec: Job, index: int, number: int | None = None) -> tuple[LiveJob, str | None]:
        """Return the live job, and why it can never run; its number is its row in the record, unless it has its own."""
        number = index if number is None else number
        run = float("inf") if spec.run is None else spec.run
        limit = spec.requested if spec.requested is not None else run
        requested, expected, duration = (
            float(each) for each in planned_seconds(run, limit, self.estimates, self.overrun)
        )
        if spec.body is not None:
            requested, expected, duration = limit, limit, float("inf")
        name = spec.id if spec.id is not None else spec.name or number + 1
        job = LiveJob(name, index, self.env.now, spec.processors, requested, expected, duration)
        job.seq = number
        job.spec = spec
        job.user, job.priority = spec.user, spec.priority
        if self.overrun == "stop" and limit < run:
            job._outcome = "timeout"
        job._watched = True
        if spec.queue is not None and self.rules:
            rules = self.rules.get(str(spec.queue))
            if rules is None:
                raise InputError(f"queue {spec.queue!r} of job {name} is not there; there are {', '.join(self.rules)}")
            job.rules = rules
            job.priority += rules.spec.priority
        pool = place_of(job, self)
        job.place = pool
        job.priority += pool.priority
        job.request = pool.request_of(spec)
        reason = pool.why_not(job) or pool.limits_why_not(job)
        return job, reason or (job.rules.why_not(job) if job.rules is not None else None)

    def _take_in(self, job: LiveJob) -> None:
        """Submit a live job: it waits for others, is held, or joins the queue."""
        self._dependencies.know(job)
        for hook in self._on_submitted:
            hook(job)
        spec = job.spec
        if spec is not None:
            if spec.cancel is not None:
                self._cancel_at(job, spec.cancel)
            if spec.dependencies:
                self._dependencies.block(job)
                return
        self._enqueue(job)

    def _cancel_at(self, job: LiveJob, at: float) -> None:
        self._cancellations[job] = self.plan(at, lambda: self.cancel(job), (self, "cancel", job))

    def _admit(self, job: LiveJob) -> None:
        """Take in a plain job of a log: the hot path."""
        for hook in self._on_submitted:
            hook(job)
        queue = self._only_queue
        assert queue is not None
        if not self._by_event:
            queue.add(job)
            self._changed()
            return
        if self._submits_first:
            self._count_as_ended()
            fits = job.processors <= job.place.free
            queue.add(job)
            if fits or self._tries_every_submission:
                self.scheduler.decide()
        else:
            queue.add(job)
            self.scheduler.decide()

    def _enqueue(self, job: LiveJob) -> None:
        """Put an eligible job into the queue of its place, unless a limit holds it."""
        if job.rules is not None and job.rules.holds(job):
            job.state = "held"
            return
        if self._submits_first:
            self._count_as_ended()
        fits = job.place.fits(job)
        self._queues[job.place].add(job)
        if not self._submits_first or fits or self._tries_every_submission:
            self._changed()

    def eligible(self, job: LiveJob) -> None:
        """Take a job into the queue: all that it had to come after has come."""
        if job.state == "blocked":
            if self.env._now > job.submit:
                job._past = Past(eligible=float(self.env._now))
                job._work = job._seen = None
            self._tell("job_eligible", job)
            self._enqueue(job)

    def _decide_now(self) -> None:
        if self._submits_first:
            self._count_as_ended()
        self.scheduler.decide()

    def _count_as_ended(self) -> None:
        """Free what holds jobs whose end is an event of this instant, still to be handled, and was expected by now."""
        now = self.env._now
        for pool in self.places:
            expected = []
            for end, _, _, run in pool.running.entries():
                if end > now:
                    break
                expected.append(run)
            for run in expected:
                if isinstance(run, Run) and run.started + run.job._duration == now and run.process is None:
                    pool.running.remove(run)
                    pool.give_back(run.job, run.grant)
                    run.released = True

    # ------------------------------------------------------------------ interventions

    def rebind(self, work: LiveJob, place: Pool) -> None:
        """Let a waiting job wait for another partition."""
        before: Pool = work.place
        self._queues[before].remove(work)
        work.place = place
        work.priority += place.priority - before.priority
        if work.spec is not None:
            work.request = place.request_of(work.spec)
        self._queues[place].add(work)

    def cancel(self, job: LiveJob) -> None:
        """Withdraw a job that waits, or stop one that runs; one that is over stays as it is."""
        if job.state in OVER:
            return
        if job._run is not None:
            self._stop(job._run, "cancelled")
            return
        if job.state == "waiting":
            self._queues[job.place].remove(job)
        if job.rules is not None:
            job.rules.forget(job)
        job.state = "cancelled"
        self._tell("job_cancelled", job)
        self._over(job)
        self._changed()

    def keep_usage(self, usage: Usage) -> None:
        """Keep the consumption of users in this record from now on (for fair share)."""
        self.usages.append(usage)
        self.view.usage = usage

    # ------------------------------------------------------------------ under a broker, and for whoever asks

    @property
    def plain_pool(self) -> Pool | None:
        """Where jobs go that ask for processors and time alone: the only place, where no queue has rules."""
        return None if self.rules else self._only_pool

    def forecast(self, by: By = "requested") -> Forecast:
        """Return the forecast of the cluster, which is kept, by requested or by actual run times."""
        from simmodel.systems.cluster.forecast import Forecast

        if by not in self._forecasts:
            self._forecasts[by] = Forecast(self, by)
        return self._forecasts[by]

    def estimate(self, work: Job, by: By = "requested") -> Estimate:
        """Return when a job would start and how long it would run (s), were it submitted now; a pure question.

        Raises
        ------
        ImpossibleWork
            where no place of the cluster can ever run it

        >>> cluster = Cluster(Environment(), 4)
        >>> _ = cluster.submit(Job(processors=4, run=10, requested=60))
        >>> cluster.estimate(Job(run=5)).start
        60.0
        """
        return self.forecast(by).of(work)

    def why_not(self, work: Job) -> str | None:
        """Say why no place of the cluster can ever run the job, or ``None``; a pure question."""
        return self.live(work)[1]

    def live(self, spec: Job) -> tuple[LiveJob, str | None]:
        """Return the job as it would be, were it submitted now, and why it can never run; nothing changes."""
        return self._live(spec, self.submitted - self._offset)

    def take_over(self, job: LiveJob) -> int:
        """Take a live job over that says what it is planned with here and where it waits; return its row.

        How brokers hand jobs to clusters: one that asks for processors and time alone costs what one of a log does.
        """
        self._begin_record()
        number = job.seq = self.submitted
        row = job.index = number - self._offset
        self.submitted = number + 1
        self._active += 1
        job.submit = self.env._now
        if job.spec is None:
            self._admit(job)
        else:
            self._take_in(job)
        return row

    @property
    def offers(self) -> Offers:
        """What jobs may ask for beside processors and time."""
        nodes = any(partition.nodes for partition in self.spec.partitions)
        return Offers(nodes, tuple(self.rules), tuple(self.pools) if self._only_pool is None else ())

    @property
    def capacity(self) -> int:
        """Processors in all; those of reservations are those of their partitions."""
        return sum(int(pool.capacity) for pool in self.places if pool.part_of is None)

    @property
    def free(self) -> int:
        """Processors free now."""
        return sum(int(pool.free) for pool in self.places if pool.part_of is None)

    # ------------------------------------------------------------------ time

    def plan(self, at: float, call: Callable[[], object], what: tuple[Any, ...] | None = None) -> Occurrence:
        """Call at an instant (s), with the ends of that instant; the occurrence can be withdrawn."""
        return self.env.call_at(at, call, self._end_priority, what)

    def _reject(self, job: LiveJob, reason: str) -> None:
        """Record a job of a log that no place can ever run."""
        job.state = "rejected"
        self._tell("job_rejected", job, reason)
        self._dependencies.rejected(job.id)
        self._over(job)

    def idle(self) -> Event:
        """Return an event that happens once every job that was submitted or is still to arrive is over."""
        if self._idle is None:
            self._idle = Event(self.env)
            if not self._active:
                self._idle.succeed()
        return self._idle

    @property
    def endless(self) -> bool:
        """Whether events go on though all jobs are over: failures, outages, reservations."""
        return bool(self.calendar.endless or self.spec.outages or self.spec.reservations)

    def present(self) -> Iterator[LiveJob]:
        """Yield the jobs that were submitted and are not over: running, waiting, held by a limit, blocked."""
        yield from super().present()
        for rules in self.rules.values():
            yield from rules.held
        yield from self._dependencies.blocked_jobs()

    # ------------------------------------------------------------------ who is stuck

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits."""
        for pool in self.places:
            for job in self._queues[pool]:
                yield (
                    f"job {job.id} waits for {job.processors} processors of {pool.name} since {job.submit:g}; "
                    f"{pool.free} of {pool.capacity} are free"
                )
        for rules in self.rules.values():
            for job in rules.held:
                yield f"job {job.id} is held by a limit of queue {rules.spec.name} since {job.submit:g}"
        yield from self._dependencies.waiting_report()


def _estimate(view: View, job: LiveJob, place: Any) -> Estimate:
    """Estimate by the expected ends of what runs, as if the job were next."""
    at, _ = place.profile().earliest(job, job.requested)
    return Estimate(at, 0.0, 0.0, job.requested)


def _columns_of(workload: Workload, prepared: Prepared) -> dict[str, Any]:
    """Return what the record keeps of the jobs of a workload."""
    columns = {name: workload[name] for name in workload.table.names if name not in ("wait", "status", "run")}
    return columns | {
        "processors": prepared.processors,
        "requested": prepared.requested,
        "recorded_run": workload["run"],
    }


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} {' or '.join(map(repr, allowed))} expected, found {value!r}")
