"""The core of a broker: it accepts work, hands it to its systems and follows it there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, PolicyError, unknown
from simmodel.platform.broker import Slowdowns, read_slowdowns
from simmodel.scheduling.checks import not_here
from simmodel.scheduling.protocol import Estimate, Place, Start, View
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.scheduler import Scheduler
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.arrivals import Arrivals, Block, Coming, JobLife, check_specs, name_of
from simmodel.systems.broker.ledger import Fate, Ledger
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.destination import BrokeredJob, BrokeredSet, Destination, destination_of
from simmodel.systems.system import EstimateBasis, System, Timing
from simmodel.work.job import OVER, Job, LiveJob, Refusal, Run, rule_of
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Call, ToCome
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.results.result import Result
    from simmodel.scheduling.protocol import Decides
    from simmodel.systems.system import Live
    from simmodel.work.live import LiveWork
    from simmodel.work.table import Table

__all__ = ["BrokerCore", "BrokerQueue", "Part"]

Home: TypeAlias = "System[Any] | Destination | str | None"
"""The home of work: a system or its name."""

INFINITY = float("inf")


class Part(NamedTuple):
    """The part of a record that one process has: the result of each place and its jobs, as in ``Destination.handed``.

    Of a grid its jobs, their rows, and whether any has not ended.
    """

    places: Mapping[str, tuple[Result, list[tuple[int, int]]]]
    rows: NDArray[np.int64] | None = None
    jobs: Table | None = None
    unfinished: bool = False


class BrokerQueue(WaitingQueue):
    """The waiting jobs of a broker; skips jobs handed over meanwhile, whose links then belong to another queue."""

    __slots__ = ()

    def add(self, job: LiveJob) -> None:
        """Add a job, whose requested time and home its policy cannot change from now on."""
        assert isinstance(job, BrokeredJob)
        job._limit, job._origin = job.limit, job.home
        super().add(job)

    def __iter__(self) -> Iterator[BrokeredJob]:
        seen: set[Any] = set()
        job: Any = self._first
        while job is not None:
            after: Any = job.later
            if job.state == "waiting" and job.destination is None and job not in seen:
                seen.add(job)
                yield job
            if after is not None and (after.destination is not None or after.state != "waiting"):
                after = self._first  # it has left meanwhile: once more, without those seen
            job = after


class Source(Arrivals[Any]):
    """Submits the jobs of a log to a broker, or rejects them.

    Attributes
    ----------
    family
        the dependencies among its jobs
    """

    __slots__ = ("broker", "family")

    def __init__(self, broker: BrokerCore, blocks: Iterable[Block], family: Dependencies) -> None:
        self.broker = broker
        self.family = family
        super().__init__(broker.env, blocks, broker.timing.submits, each=broker.timing.by_event)

    def _next_block(self) -> Sequence[Any]:
        self.broker.before_block()
        return super()._next_block()

    def live(self, coming: Any) -> BrokeredJob:
        """Return the live job of a row."""
        row, at, processors, limit, _, length, name, user, outcome, unrequested, spec, home = coming
        if spec is not None:
            job = self.broker.live(spec, row, home, self.family)
            job.widen(processors)
        else:
            job = BrokeredJob(name, row, at, processors, limit, length, self.family)
            job.user, job.home, job.unrequested = user, home, unrequested
            if outcome is not None:
                job._outcome = outcome
        return job

    def submit(self, row: Any) -> None:
        """Submit a job, or reject it."""
        job = self.live(row)
        if isinstance(job, BrokeredSet):
            self.broker.ledger.alone.append(job)
        self.broker.arrive(job)


class Later(Source):
    """Submits one job or set of tasks whose live object exists already."""

    __slots__ = ("job",)

    def __init__(self, broker: BrokerCore, job: BrokeredJob) -> None:
        self.job = job
        spec = job.tasks if isinstance(job, BrokeredSet) else job._job
        numbers = job.processors, job.limit, job.limit, job._length
        coming = Coming(job.row, job.came, *numbers, job.id, job.user, None, job.unrequested, spec, job.home)
        super().__init__(broker, [[coming]], job.family)

    def submit(self, row: Any) -> None:
        if self.job.state not in OVER:  # else it was cancelled before it came
            self.broker.take_in(self.job)


class BrokerCore(JobLife[BrokeredJob]):
    """A broker without replay, snapshots and results: see :class:`~simmodel.systems.broker.system.Broker`."""

    kind = "broker"
    asks: ClassVar[tuple[Decides, ...]] = ("places", "systems")
    """The kinds of decision that it asks its policy for."""
    own_homes: ClassVar[bool] = False
    """Whether the jobs of a workload have homes of their own, in its column ``site``."""
    places: tuple[Destination, ...]
    _on_created: tuple[Callable[..., object], ...] = ()
    """The hooks that hear of each job that comes; a grid has them."""

    def __init__(
        self,
        env: Environment,
        systems: Sequence[System[Any]],
        policy: PolicyLike = "sgs-t",
        *,
        slowdowns: Slowdowns = None,
        by: EstimateBasis = "requested",
        name: str = "broker",
        rank: int | None = None,
    ) -> None:
        _check(env, systems)
        super().__init__(env, name)
        self.by = by
        self.work = systems[0].work
        self.timing = _timing(systems)
        self.rank = min(system.rank for system in systems) - 1 if rank is None else rank
        self.places = tuple(self.place_of(system) for system in systems)
        self.named = {place.name: place for place in self.places}
        for each in read_slowdowns(list(self.named), slowdowns):
            self.named[each.place].slowdowns[each.home] = each.factor
            if self.work == "tasks" and each.factor != 1.0:
                raise InputError(f"slowdowns: {each.place} runs tasks; slowdowns apply to jobs only")
        self.queue = BrokerQueue(env)
        self.view = View(env, self.queue, self.places, f"{name}.policy")
        self.view.estimator = self._estimate
        self.scheduler = Scheduler(env, policy, self.view, self, name, self.rank, self.timing.by_event, self.asks)
        self._destinations = self.scheduler.policy.destinations
        self._changed: Callable[[], None] = self.scheduler.decide if self.timing.by_event else self.scheduler.wake
        self.submitted = 0
        self.ledger = Ledger()
        self.families: list[Dependencies] = [Dependencies(self)]
        self.handed: dict[BrokeredJob, None] = {}
        self._below: dict[LiveJob, BrokeredJob] = {}  # jobs whose system has a separate live job
        self.restored: dict[int, BrokeredJob] = {}
        self._expected: set[object] = set()  # ids of jobs submitted one by one for a later instant
        self._on_handed: tuple[Callable[..., object], ...] = ()
        env.observe(self)
        env.on_hooks_changed(self._find_handed)
        env.register_waits(self)

    def __repr__(self) -> str:
        return f"<Broker {self.name}: {len(self.queue)} waiting, {', '.join(self.named)}>"

    # ------------------------------------------------------------------ submission

    def home(self, given: Home) -> Destination | None:
        """Return the destination that a home (a name or a system) stands for; ``None`` stays ``None``."""
        if given is None or isinstance(given, Destination):
            return given
        name: Any = getattr(given, "name", given)
        found = self.named.get(name)
        if found is None:
            raise unknown("home", str(name), self.named)
        return found

    def submit(self, work: Job | TaskSet | Workflow, home: Home = None, *, at: float | None = None) -> BrokeredJob:
        """Submit work now, whatever the ``submit`` of a job; return an event that happens when it has ended.

        Parameters
        ----------
        work
            a job; for systems that run tasks, a workflow or a set of tasks, which goes to one system as a whole
        home
            its home system, or the name of that
        at
            the instant (s) of its submission; default: now

        Raises
        ------
        ImpossibleWork
            if no system that the policy may choose can ever run it
        InputError
            if the home is unknown, the work is of the wrong kind, ``at`` is past, the id of a job is in use, or no
            system that the policy may choose has its queue and partition
        """
        if isinstance(work, Job):
            family, label = self.families[0], work.id or work.name or self.submitted + 1
            known = self._expected if work.id in self._expected else family.known
            check_specs([(label, work)], known, partial(self.check_names, home=self.home(home)))
        return self.accept(work, home, at=at)

    def accept(self, work: Job | TaskSet | Workflow, home: Home = None, *, at: float | None = None) -> BrokeredJob:
        """Submit work whose id may occur again, as that of work from a broker above; raises as :meth:`submit`."""
        job = self.live(self._checked(work), self.submitted, self.home(home), self.families[0])
        self.able((job, self._why_nowhere(job)))
        if at is not None and not self.env.now <= at < INFINITY:
            raise InputError(f"must be an instant >= {self.env.now:g} s, got {at!r}", place="at")
        self.submitted += 1
        self._active += 1
        self.ledger.alone.append(job)
        if at is not None and at > self.env.now:
            job.came = job.submit = at
            self._expected.add(job.id)
            self.sources.append(Later(self, job))
        else:
            self.take_in(job)
        return job

    def _checked(self, work: Job | TaskSet | Workflow) -> Job | TaskSet:
        """Check that work is of the kind that the systems run, and return it; workflows as task sets."""
        if self.work == "tasks" and isinstance(work, TaskSet | Workflow):
            return TaskSet.of(work)
        if self.work == "tasks" or not isinstance(work, Job):
            expected = "a Workflow or a TaskSet" if self.work == "tasks" else "a Job"
            raise InputError(f"work: must be {expected}, got {work!r}")
        return work

    def check_names(self, job: Job, label: object, home: Destination | None = None) -> None:
        """Check that a system that the policy may choose has the queue and the partition of a job."""
        errors: dict[str, str] = {}
        for place in self.allowed(home):
            try:
                place.system.check_names(job, label)
            except InputError as error:
                errors[place.name] = error.message
            else:
                return
        if len(set(errors.values())) == 1:
            raise InputError(next(iter(errors.values())))
        if errors:
            raise InputError("; ".join(f"{name}: {message}" for name, message in errors.items()))

    def job_class(self, spec: Job) -> type[BrokeredJob]:
        """Return the class of the live job of a request."""
        return BrokeredJob

    def live(self, spec: Job | TaskSet, row: int, home: Destination | None, family: Dependencies) -> BrokeredJob:
        """Return the live work of a row; changes nothing."""
        if isinstance(spec, TaskSet):
            tasks = BrokeredSet(row, self.env._now, spec, family)
            tasks.home = home
            return tasks
        length = float(spec.seconds())
        limit = length if spec.requested is None else float(spec.requested)
        name = name_of(spec, row + 1, family.known)
        job = self.job_class(spec)(name, row, self.env._now, spec.processors, limit, length, family)
        job._job, job.user, job.priority, job.home = spec, spec.user, spec.priority, home
        job.watched, job.plain, job.unrequested = True, spec.plain, spec.requested is None
        if spec.outcome != "completed":
            job.end_as(cut=False)
        return job

    def expect(self, count: int, blocks: Iterable[Block], family: Dependencies) -> None:
        """Plan the submission of a number of jobs, each at its instant; they are made block by block."""
        self._active += count
        if count:
            self.sources.append(Source(self, blocks, family))

    # ------------------------------------------------------------------ places in several processes

    def why_coupled(self) -> str | None:
        """Return why its places cannot be simulated apart from each other, or ``None``."""
        policy = self.scheduler.policy
        if self.work != "jobs":
            return "they run tasks, not jobs"
        if not policy.blind:
            return f"policy {policy.name} may look at what happens there"
        if len(self.sources) > 1 and not policy.at_home:
            return f"policy {policy.name} takes the jobs of several workloads in turn"
        for job in map(Coming._make, chain.from_iterable(source.left() for source in self.sources)):
            if isinstance(job.more, Job) and job.more.coupled:
                return f"job {job.id} has dependencies, files or a body"
        return None

    def keep_share(self, mine: Collection[str], *, first: bool) -> NDArray[np.int16]:
        """Choose a place for each job to come, and keep those of the places of these names only.

        With ``first``, the jobs of no place are kept, too: none can run them, or they are cancelled when they come.
        Returns the number of the place of each job, by row; -1: none.
        """
        places, sources = self.places, self.sources
        number = {place: i for i, place in enumerate(places)}
        keep = {number[self.named[name]] for name in mine} | ({-1} if first else set())
        chosen = np.full(self.submitted, -1, dtype=np.int16)
        self.sources = []
        for source in sources:
            coming = list(map(Coming._make, source.left()))
            if coming:
                self._active -= len(coming)
                self.env.withdraw(source)
            jobs = map(source.live, [each for each in coming if not each.gone])
            able = (job for job in jobs if any(place.why_not(job) is None for place in self.allowed(job.home)))
            view = View(self.env, able, places, f"{self.name}.policy")
            for decision in self.scheduler.policy.decide(view) or ():
                assert isinstance(decision, Start)
                chosen[decision.work.row] = number[decision.place]
            kept = [job for job in coming if int(chosen[job.row]) in keep]
            self.expect(len(kept), [kept], source.family)
        self.scheduler.answer_by(lambda view: (Start(job, places[chosen[job.row]]) for job in view.waiting))
        return chosen

    def part(self, places: Collection[str], _rows: NDArray[np.int64]) -> Part:
        """Return the part of the record that some places have, of the jobs in these rows."""
        return Part({name: (self.named[name].system.result(name), self.named[name].handed) for name in places})

    def join(self, parts: Sequence[Part]) -> None:
        """Take the parts of the record that other processes have."""
        for part in parts:
            for name, (result, handed) in part.places.items():
                self.named[name].elsewhere, self.named[name].handed = result, handed

    def before_block(self) -> None:
        """Prepare for a block of arriving jobs before it is made: a record on its way to disk is written."""

    def allowed(self, home: Destination | None) -> Sequence[Destination]:
        """Return the places that jobs of a home may be handed to."""
        return self._destinations(home, self.places)

    def _why_nowhere(self, job: BrokeredJob) -> Refusal | None:
        """Return why no system can ever run the job, or ``None``."""
        reasons: list[str] = []
        rules: list[str] = []
        for place in self._destinations(job.home, self.places):
            reason = place.why_not(job)
            if reason is None:
                return None
            for found, text in ((reasons, reason), (rules, rule_of(reason))):
                found.append(re.sub(r"^job .*?: ", "", text))  # the same words for every job
        return Refusal("; ".join(dict.fromkeys(reasons)), "; ".join(dict.fromkeys(rules)))

    def arrive(self, job: BrokeredJob) -> None:
        """Accept work that arrives at its instant, or reject it."""
        for place in self._destinations(job.home, self.places):
            if place.why_not(job) is None:
                self.take_in(job)
                return
        self.come(job, self._why_nowhere(job))

    def reject(self, job: BrokeredJob, reason: str) -> None:
        """Record work that arrives at its instant, and that no system can ever run."""
        self.ledger.fates[job.row] = Fate("rejected", float("nan"), reason)
        job.family.rejected(job.id)
        super().reject(job, reason)

    def family(self, job: BrokeredJob) -> Dependencies:
        """Return the dependencies among a job and the others of its workload."""
        family: Dependencies = job.family
        return family

    def came(self, job: BrokeredJob) -> None:
        """Notify observers of a job that comes now."""
        for hook in self._on_created:
            hook(job)
        if job._job is not None:
            job.family.know(job)

    def enqueue(self, job: BrokeredJob) -> None:
        """Have a job wait for the policy."""
        self.queue.add(job)
        self._changed()

    def eligible(self, job: BrokeredJob) -> None:
        """Add a blocked job to the queue: all its dependencies are satisfied."""
        if job.state == "blocked":
            self.ledger.eligible[job.row] = float(self.env._now)
            self.enqueue(job)

    # ------------------------------------------------------------------ services for the scheduler

    def earlier(self, job: BrokeredJob) -> Any:
        """Return the earlier executions of a job as policies see them: those in its system."""
        return job.history

    def _estimate(self, _view: View, job: BrokeredJob, place: Destination) -> Estimate:
        return self._noted(job, place, place.estimate(job))

    def _noted(self, job: BrokeredJob, place: Destination, estimate: Estimate) -> Estimate:
        """Keep an estimate that the policy asked for, for the record."""
        if job.estimates is None:
            job.estimates = {place: estimate}
        else:
            job.estimates[place] = estimate
        return estimate

    def place_of(self, system: System[Live]) -> Destination:
        """Return a system as a place."""
        return destination_of(system, self.by)

    def start(self, work: BrokeredJob, place: Destination, allocation: Allocation | None = None) -> None:
        """Hand a job to a system; raises ``PolicyError`` if an allocation is named, which no broker does.

        A grid overrides this: its sites have hosts.
        """
        if allocation is not None:
            message = f"allocation: must be None: {self.name} is no grid, got {allocation!r}"
            raise PolicyError(message, work=f"job {work.id}", place=place.name)
        if work.state != "blocked":
            self.assign(work, place)
            if self._cancellations:
                self.forget_cancellation(work)
            self.hand(work, place)

    def assign(self, work: BrokeredJob, place: Destination) -> None:
        """Take a waiting job out of the queue, bound for a place."""
        ours = isinstance(work, BrokeredJob) and work.family.owner is self
        reason = (work.altered() or work.diverted()) if ours else not_here(work)
        if reason is not None:
            raise PolicyError(reason, work=f"job {work.id}", place=place.name)
        self.queue.remove(work)
        work.destination = place
        if work.estimates is not None and place in work.estimates:
            self.ledger.expected[work.row] = work.estimates[place]
        self.handed[work] = None

    def _find_handed(self) -> None:
        self._on_handed = self.env.hooks("job_handed")

    def hand(self, work: BrokeredJob, place: Destination) -> None:
        """Hand a job to the system that it is bound for."""
        live = place.take(work)
        if live is not work:
            self._continue_as(work, live)
        for hook in self._on_handed:
            hook(work, place)

    def _continue_as(self, job: BrokeredJob, live: LiveWork) -> None:
        """Continue a job as the live work of the system that it was handed to."""
        job.below, job.place = live, job.destination
        job.follow(live)
        if live.over:  # an empty set, or a job that its system has ended at once
            self.over(job)
        elif isinstance(live, BrokeredJob):
            live.above = job
        elif isinstance(live, LiveJob):
            self._below[live] = job
        else:
            live.callbacks.append(lambda _: self._set_over(job, live))
        if job.started is not None and job.state not in OVER:  # at once
            self._started(job)

    def _set_over(self, job: BrokeredJob, live: LiveWork) -> None:
        job.follow(live)
        self.over(job)
        if self.queue:
            self.scheduler.wake()

    def go_on(self, job: BrokeredJob, live: LiveWork | None = None) -> None:
        """Adopt a job submitted before the broker was restored: waiting, blocked, or handed over as live work."""
        self._active += 1
        if live is not None:
            assert job.destination is not None
            self.handed[job] = None
            job.destination.handed.append((job.destination.system.row_of(live), job.row))
            self._continue_as(job, live)
        elif job.state != "blocked":
            self.queue.add(job)
            self.queue.forget_new()

    def cancel(self, work: BrokeredJob) -> None:
        """Withdraw a waiting job, here or in its system, or stop a running one; an ended job stays as it is."""
        if work.state in OVER:
            return
        if work.destination is not None:
            work.destination.cancel(work)
            return
        if work.state == "waiting":
            self.queue.remove(work)
        work.state = "cancelled"
        self.ledger.fates[work.row] = Fate("cancelled", float(self.env._now), work.remember().why)
        self.tell("job_cancelled", work)
        if work.event is not None:
            work.event.succeed(work)

    # ------------------------------------------------------------------ events in the systems

    def _mine(self, live: LiveJob) -> BrokeredJob | None:
        """Return the broker's job that a live job is or represents; ``None`` if it is not a job of this broker.

        Brokers below report the jobs that they have accepted themselves.
        """
        if isinstance(live, BrokeredJob):
            return live if live.family.owner is self else None
        job = self._below.get(live)
        if job is not None:
            job.follow(live)
        return job

    def job_started(self, run: Run) -> None:
        """Release the jobs that wait for this start."""
        job: Any = run.job
        if type(job) is BrokeredJob and job.above is None and not job.family.waiting:
            return  # nearly all
        job = self._mine(job)
        if job is not None and (job.above is not None or job.family.waiting):
            self._started(job)

    def _started(self, job: BrokeredJob) -> None:
        job.family.happened(job, "start")
        above = job.above
        if above is not None:
            above.follow(job)
            _broker(above)._started(above)

    def job_ended(self, run: Run, _status: str) -> None:
        """Release the jobs that wait for this end, and wake the scheduler, whose policy may hold jobs back."""
        job = self._mine(run.job)
        if job is not None:
            if run.job.state in OVER:
                self.over(job)
            elif job.above is not None:
                self._changed_below(job)
        if self.queue:
            self.scheduler.wake()

    def place_changed(self, place: Place, cause: str) -> None:
        """Wake the scheduler: its policy may have waited for capacity."""
        if self.queue:
            self.scheduler.wake()

    def job_cancelled(self, job: LiveJob) -> None:
        """See :meth:`job_ended`."""
        mine = self._mine(job)
        if mine is not None:
            self.over(mine)

    def job_suspended(self, run: Run) -> None:
        """Pass the state of the job on to the brokers above."""
        job = self._mine(run.job)
        if job is not None:
            self._changed_below(job)

    job_resumed = job_suspended

    def _changed_below(self, job: BrokeredJob) -> None:
        while job.above is not None:
            job.above.follow(job)
            job = job.above

    def over(self, job: BrokeredJob) -> None:
        """Finish a job that has ended, here and in the brokers above, and release the jobs that wait for its end."""
        self.handed.pop(job, None)
        if self._cancellations:
            self.forget_cancellation(job)
        if job.below is not None:
            if isinstance(job.below, LiveJob):
                self._below.pop(job.below, None)
            if job.below.event is not None:
                job.answer_as(job.below.event)
            if job.event is not None:
                job.event.succeed(job)
        family = job.family
        if family.waiting or (family.forgets and job._job is not None):
            family.happened(job, "end")
        above = job.above
        if above is not None:
            above.follow(job)
            _broker(above).over(above)
        self._one_over()
        for call in self.changed:
            call()

    def to_come(self) -> list[ToCome]:
        """List the planned cancellations, and the ends of think times of blocked jobs, each with its row."""
        return [*self.cancellations(), *chain.from_iterable(family.to_come() for family in self.families)]

    def plan(self, at: float, call: Callable[[], object]) -> Call:
        """Schedule a call at an instant (s), at the priority of ends; the call can be withdrawn."""
        return self.env.call_at(at, call, self.timing.ends)

    def policies_below(self) -> dict[str, str | None]:
        """Return the names of the policies of the places, by path; ``None`` for policies given as objects."""
        found: dict[str, str | None] = {}
        for place in self.places:
            found[place.name] = place.system.known_as
            found |= {f"{place.name}.{path}": name for path, name in place.system.policies_below().items()}
        return found

    @property
    def endless(self) -> bool:
        """Whether a system produces events after all work has ended."""
        return any(place.system.endless for place in self.places)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits for the broker."""
        for job in self.queue:
            policy = self.scheduler.policy_name
            yield f"job {job.id} waits since {job.submit:g} for policy {policy} to choose a place"
        for family in self.families:
            yield from family.waiting_report()

    def blocked(self) -> Iterator[BrokeredJob]:
        """Iterate over the jobs that wait for other jobs."""
        for family in self.families:
            yield from family.blocked_jobs()  # type: ignore[misc]


def _broker(job: BrokeredJob) -> BrokerCore:
    broker = job.family.owner
    assert isinstance(broker, BrokerCore)
    return broker


def _check(env: Environment, systems: Sequence[System[Any]]) -> None:
    """Check that a broker can manage systems together.

    Raises
    ------
    InputError
        if there is none, two have the same name, some run jobs and some tasks, or one is in another environment
    """
    if not systems:
        raise InputError("must not be empty", place="systems")
    for name, count in Counter(system.name for system in systems).items():
        if count > 1:
            raise InputError(f"duplicate system {name!r}")
    for system in systems:
        if system.work != systems[0].work:
            raise InputError(
                f"systems: must all run jobs or all run tasks; {systems[0].name} runs {systems[0].work}, "
                f"{system.name} runs {system.work}"
            )
        if system.env is not env:
            raise InputError(f"systems: {system.name} is in another environment than the broker")


def _timing(systems: Sequence[System[Any]]) -> Timing:
    """Return the timing of a broker: that of its systems with ``decide_on="event"``, if any.

    Raises
    ------
    InputError
        if those order the submissions and ends of an instant differently
    """
    strict = [system for system in systems if system.timing.by_event]
    for system in strict:
        if system.timing != strict[0].timing:
            raise InputError(f"systems: {strict[0].name} and {system.name} differ in event_order")
    return strict[0].timing if strict else Timing()
