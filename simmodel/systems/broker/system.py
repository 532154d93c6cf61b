"""A broker: jobs of several homes go to one of several clusters, each with its own scheduler."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simpy.events import Event

from simmodel.environment import Environment, Occurrence
from simmodel.errors import ImpossibleWork, InputError
from simmodel.policies.brokers import broker_policy
from simmodel.scheduling.protocol import Estimate, View
from simmodel.scheduling.scheduler import Carry, Scheduler
from simmodel.systems.broker.arrivals import BrokerQueue, Source, Values, replay_workload
from simmodel.systems.broker.member import BrokeredJob, Member, Slowdowns, check_members, set_slowdowns
from simmodel.systems.cluster.forecast import By
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.system import System
from simmodel.work.job import OVER, Job, LiveJob, Run
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.results.broker import BrokerResult
    from simmodel.snapshots.broker import BrokerSnapshot
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Broker", "Slowdowns"]

INFINITY = float("inf")


class Broker(System[BrokeredJob]):
    """Hands each job to one of several clusters, by a policy whose places are the clusters.

    The clusters are made in the same environment, each with its own scheduler, speed and size; they may have jobs of
    their own besides. What is submitted to the broker is decided on before the clusters decide, in the same instant.

    Parameters
    ----------
    env
        the environment
    clusters
        the clusters, with names that differ, in the order in which ties go to the first
    policy
        the name of a broker (see :mod:`simmodel.policies.brokers`), a policy, or a function of a view
    slowdowns
        what multiplies run and requested times: one number a cluster, in their order or by name; or by (home,
        destination), where what is not named is 1
    by
        whether estimates go by ``"requested"`` or by ``"actual"`` run times: see
        :class:`~simmodel.systems.cluster.forecast.Forecast`
    ties
        who wins a tie, where ``policy`` is a name: see :data:`simmodel.policies.brokers.TIES`
    name, rank
        what reports call it; its turn among schedulers that share an instant

    Observers hear ``job_handed(job, place)`` and ``job_rejected(job, reason)``, and from the clusters what clusters
    tell.

    Raises
    ------
    InputError
        where there is no cluster, names or slowdowns do not match, or the policy is not known

    >>> env = Environment()
    >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 8, name="b")], "sgs-t", slowdowns=[1, 1.5])
    >>> jobs = [broker.submit(Job(processors=4, run=10)) for _ in range(3)]
    >>> env.run()
    >>> [(job.destination.name, job.started) for job in jobs]
    [('a', 0), ('b', 0), ('b', 0)]
    """

    kind = "broker"

    def __init__(
        self,
        env: Environment,
        clusters: Sequence[Cluster],
        policy: Any = "sgs-t",
        *,
        slowdowns: Slowdowns = None,
        by: By = "requested",
        ties: Any = None,
        name: str = "broker",
        rank: int = 0,
    ) -> None:
        self.env = env
        self.name = name
        self.members = tuple(Member(cluster, by) for cluster in clusters)
        self.places = self.members
        self.by = by
        self._named = {member.name: member for member in self.members}
        check_members(env, self.members)
        set_slowdowns(self._named, slowdowns)
        self._queue = BrokerQueue(env)
        self.view = View(env, self._queue, self.members, f"{name}.policy")
        self.view.estimator = self._estimate
        chosen = broker_policy(policy, ties=ties)
        self.scheduler = Scheduler(env, chosen, self.view, self, name, rank, self.members[0].cluster._by_event)
        self._destinations = getattr(chosen, "destinations", None)
        first = self.members[0].cluster
        self._by_event = first._by_event
        self._submit_priority = first._submit_priority
        self._end_priority = first._end_priority
        self._changed: Callable[[], None] = self.scheduler.decide if self._by_event else self.scheduler.wake
        self.submitted = 0
        self._active = 0  # submitted or still to arrive, and not over
        self._idle: Event | None = None
        self._sources: list[Source] = []
        self._tables: list[tuple[int, Table]] = []  # first row, what is known of the jobs from there on
        self.report = Report()
        self._adopted: dict[LiveJob, Dependencies] = {}  # jobs that a snapshot held, and their families
        self.known_as = policy if isinstance(policy, str) else None
        self._ties = ties if isinstance(ties, str) else None
        self._alone: list[BrokeredJob] = []  # submitted one by one
        self._own = Dependencies(self)  # type: ignore[arg-type]
        self._families: list[Dependencies] = [self._own]
        self._cancellations: dict[BrokeredJob, Occurrence] = {}
        self._fates: dict[int, tuple[str, float, str]] = {}  # row: state, instant, reason; of what went nowhere
        self._eligible_at: dict[int, float] = {}
        self._expected: dict[int, Estimate] = {}
        env.observe(self)
        env.register_waits(self)

    @property
    def carries(self) -> Mapping[type, Carry]:
        """What it carries out beside starts: nothing; in particular a broker takes nothing back."""
        return {}

    def __repr__(self) -> str:
        return f"<Broker {self.name}: {len(self._queue)} waiting, {', '.join(self._named)}>"

    # ------------------------------------------------------------------ submission

    def home(self, given: Any) -> Member | None:
        """Return the place of a home: given as a name or a cluster; ``None`` stays ``None``."""
        if given is None or isinstance(given, Member):
            return given
        found = self._named.get(getattr(given, "name", given))
        if found is None:
            raise InputError(f"a home among {', '.join(self._named)} expected, found {given!r}")
        return found

    def submit(self, spec: Job, home: Any = None) -> BrokeredJob:
        """Submit a job now, whatever its ``submit`` says; the job is an event that happens when it is over.

        Parameters
        ----------
        spec
            the job
        home
            the cluster it belongs to, or its name

        Raises
        ------
        ImpossibleWork
            where no cluster that the policy may choose can ever run it
        InputError
            where the home is not there
        """
        job = self._live(spec, self.submitted, self.home(home), self._own)
        reason = self._why_nowhere(job)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {reason}")
        self.submitted += 1
        self._active += 1
        self._alone.append(job)
        self._take_in(job)
        return job

    def _live(self, spec: Job, row: int, home: Member | None, family: Dependencies) -> BrokeredJob:
        length = INFINITY if spec.run is None else float(spec.run)
        limit = length if spec.requested is None else float(spec.requested)
        name = spec.id if spec.id is not None else spec.name or row + 1
        job = BrokeredJob(name, row, self.env._now, spec.processors, limit, length)
        job.spec, job.user, job.priority, job.home = spec, spec.user, spec.priority, home
        job._others = family
        job._watched = True
        return job

    def replay(self, workload: Workload, home: Any = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; returns what was repaired and rejected.

        Jobs that no cluster can ever run are recorded as rejected and counted. May be called for several workloads.

        Parameters
        ----------
        workload
            the jobs
        home
            the cluster they belong to, or its name
        """
        return replay_workload(self, workload, self.home(home))

    def _expect(self, values: list[Values], family: Dependencies) -> None:
        """Have jobs submitted, each at its instant."""
        if values:
            self._sources.append(Source(self, values, family))

    def _allowed(self, home: Member | None) -> Sequence[Member]:
        return self.members if self._destinations is None else self._destinations(home, self.members)

    def _why_nowhere(self, job: BrokeredJob) -> str | None:
        """Say why no cluster can ever run the job, or ``None``."""
        reasons = []
        for member in self._allowed(job.home):
            reason = member.why_not(job)
            if reason is None:
                return None
            reasons.append(reason)
        return "; ".join(dict.fromkeys(reasons))

    def _arrive(self, job: BrokeredJob) -> None:
        """Take in a job of a workload."""
        reason = self._why_nowhere(job)
        if reason is None:
            self._take_in(job)
            return
        said = re.sub(r" of job \S+ is not there", " is not there", reason)  # the same words for every job
        self.report.rejected[said.split(" asked for,")[-1].strip()] += 1
        job.state = "rejected"
        self._fates[job.row] = "rejected", float("nan"), reason
        for hook in self.env.hooks("job_rejected"):
            hook(job, reason)
        job._others.rejected(job.id)
        self._over(job)

    def _take_in(self, job: BrokeredJob) -> None:
        spec = job.spec
        if spec is not None:
            job._others.know(job)
            if spec.dependencies:
                if spec.cancel is not None:
                    self._cancel_at(job, spec.cancel)
                job._others.block(job)
                return
        self._queue.add(job)
        self._changed()

    def _cancel_at(self, job: BrokeredJob, at: float) -> None:
        self._cancellations[job] = self._at(at, lambda: self.cancel(job), (self, "cancel", job))

    def _eligible(self, job: BrokeredJob) -> None:
        """All that the job had to come after has come."""
        if job.state == "blocked":
            self._eligible_at[job.row] = float(self.env._now)
            self._queue.add(job)
            self._changed()

    # ------------------------------------------------------------------ what the scheduler asks for

    def _estimate(self, _view: View, job: BrokeredJob, place: Member) -> Estimate:
        estimate = place.expect(job)
        if job.estimates is None:
            job.estimates = {place: estimate}
        else:
            job.estimates[place] = estimate
        return estimate

    def start(self, job: BrokeredJob, place: Member, allocation: Any = None) -> None:
        """Hand a job to a cluster."""
        if job.state == "blocked":
            return
        self._queue.remove(job)
        timer = self._cancellations.pop(job, None)
        if timer is not None and timer.callbacks is not None:
            self.env.withdraw(timer)
        job.destination = place
        if job.estimates is not None and place in job.estimates:
            self._expected[job.row] = job.estimates[place]
        place.take(job)
        for hook in self.env.hooks("job_handed"):
            hook(job, place)

    def cancel(self, job: BrokeredJob) -> None:
        """Withdraw a job that waits, here or in its cluster, or stop one that runs."""
        if job.state in OVER:
            return
        if job.destination is not None:
            job.destination.cluster.cancel(job)
            return
        if job.state == "waiting":
            self._queue.remove(job)
        job.state = "cancelled"
        self._fates[job.row] = "cancelled", float(self.env._now), ""
        for hook in self.env.hooks("job_cancelled"):
            hook(job)
        if job.event is not None:
            job.event.succeed(job)

    # ------------------------------------------------------------------ what happens in the clusters

    def _others(self, job: LiveJob) -> Dependencies | None:
        """Return the dependencies among the jobs that this one came with; ``None`` where it is not the broker's."""
        return job._others if type(job) is BrokeredJob else self._adopted.get(job)

    def job_started(self, run: Run) -> None:
        """Let those go that come after the start."""
        others = self._others(run.job)
        if others is not None and others._waiting:
            others.happened(run.job, "start")

    def job_ended(self, run: Run, _status: str) -> None:
        """Let those go that come after the end; what a policy holds back may go now."""
        if run.job.state in OVER:
            self._over(run.job)
        if self._queue._count:
            self.scheduler.wake()

    def job_cancelled(self, job: LiveJob) -> None:
        """See :meth:`job_ended`."""
        self._over(job)

    def _over(self, job: LiveJob) -> None:
        others = self._others(job)
        if others is None:
            return
        self._active -= 1
        if others._waiting:
            others.happened(job, "end")
        if self._idle is not None and not self._active and not self._idle.triggered:
            self._idle.succeed()

    def _at(self, at: float, call: Callable[[], object], what: tuple[Any, ...] | None = None) -> Occurrence:
        return self.env.call_at(at, call, self._end_priority, what)

    def idle(self) -> Event:
        """Return an event that happens once every job that was submitted or is still to arrive is over."""
        if self._idle is None:
            self._idle = Event(self.env)
            if not self._active:
                self._idle.succeed()
        return self._idle

    def policies_below(self) -> dict[str, str | None]:
        """Return the names of the policies of the places; ``None``: given as objects."""
        return {member.name: member.cluster.known_as for member in self.members}

    @property
    def endless(self) -> bool:
        """Whether events go on in a place though all jobs are over."""
        return any(member.cluster.endless for member in self.members)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits for the broker."""
        for job in self._queue:
            policy = self.scheduler.policy_name
            yield f"job {job.id} waits since {job.submit:g} for the policy {policy} to choose a cluster"
        for family in self._families:
            yield from family.waiting_report()

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> BrokerSnapshot:
        """Return the state of the broker and its clusters as a plain value, from which a simulation can go on.

        Best taken between events, after the decisions of the instant.

        Raises
        ------
        SnapshotError
            where a cluster cannot be copied, a job is a process, or the memory of the policy is not of plain values

        >>> env = Environment()
        >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
        >>> for _ in range(3): _ = broker.submit(Job(processors=4, run=10))
        >>> env.run(until=5)
        >>> broker.snapshot()
        <BrokerSnapshot of a, b at 5 s: 2 running, 1 waiting>
        """
        from simmodel.systems.broker.capture import capture

        return capture(self)

    @classmethod
    def from_snapshot(
        cls, env: Environment, snapshot: BrokerSnapshot, policy: Any = None, policies: Mapping[str, Any] | None = None
    ) -> Broker:
        """Return a broker with clusters of its own that goes on where a snapshot was taken.

        Parameters
        ----------
        env
            an environment whose time is that of the snapshot
        policy
            of the broker; default: that of the snapshot
        policies
            of clusters, by name, instead of their own

        Raises
        ------
        InputError
            where the time is another, a policy is not known by a name, or the snapshot contradicts itself

        >>> env = Environment()
        >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
        >>> for _ in range(3): _ = broker.submit(Job(processors=4, run=10))
        >>> env.run(until=5)
        >>> later = Environment(5)
        >>> again = Broker.from_snapshot(later, broker.snapshot())
        >>> later.run(); again.result().jobs["end"]
        array([10., 10., 20.])
        """
        from simmodel.systems.broker.capture import restore

        return restore(cls, env, snapshot, policy, policies or {})

    # ------------------------------------------------------------------ results

    def result(self, name: str | None = None) -> BrokerResult:
        """Return what has happened so far to all jobs and in each cluster; ``name`` is what tables call it."""
        from simmodel.systems.broker.record import broker_result

        return broker_result(self, name or self.scheduler.policy_name)
