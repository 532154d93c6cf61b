"""A cluster under a broker, as a place that queues: what fits there, how loaded it is, and how jobs are handed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.errors import InputError
from simmodel.platform.broker import Slowdowns
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.cluster.forecast import By, Forecast
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.pool import Pool
    from simmodel.systems.cluster.system import Cluster

__all__ = ["BrokeredJob", "Member", "Slowdowns", "check_members", "set_slowdowns"]

INFINITY = float("inf")


class BrokeredJob(LiveJob):
    """A job that a broker hands to one of several clusters.

    ``requested`` is what was asked for, until it is handed over: then it is what it is planned with there.

    Attributes
    ----------
    home
        the place it belongs to, or ``None``
    came
        the instant at which it was submitted to the broker, in s
    destination
        the place it was handed to, or ``None``
    row
        its row in the broker's record
    estimates
        what the policy was told of places, where it asked
    """

    __slots__ = ("_length", "_limit", "_others", "came", "destination", "estimates", "home", "row")

    def __init__(self, id: int | str, row: int, submit: float, processors: int, limit: float, length: float) -> None:
        super().__init__(id, row, submit, processors, limit, limit, length)
        self.row = row
        self.came = submit
        self.home: Member | None = None
        self.destination: Member | None = None
        self.estimates: dict[Member, Estimate] | None = None
        self._limit = limit  # seconds asked for, on a cluster without a slowdown
        self._length = length  # seconds it will run there
        self._others: Any = None  # the dependencies among the jobs it came with

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of the broker."""
        env: Environment = self._others.env
        return env


class Member:
    """A cluster as a place of a broker.

    Parameters
    ----------
    cluster
        the cluster
    by
        what forecasts of it go by: see :class:`~simmodel.systems.cluster.forecast.Forecast`

    Attributes
    ----------
    name, cluster, forecast
        of the cluster, the cluster, its future
    slowdowns
        what multiplies run and requested times, by the name of the home (``None``: of any other)
    handed
        (row in the cluster's record, row in the broker's) of what was handed over
    """

    queues = True

    def __init__(self, cluster: Cluster, by: By = "requested") -> None:
        self.cluster = cluster
        self.name = cluster.name
        self.forecast = Forecast(cluster, by)
        self.slowdowns: dict[str | None, float] = {None: 1.0}
        self.handed: list[tuple[int, int]] = []
        self._plain: Pool | None = None  # where jobs go that ask for processors and time alone
        if cluster._only_pool is not None and not cluster.rules:
            self._plain = cluster._only_pool

    def __repr__(self) -> str:
        return f"<{self.name}: {self.queued} waiting, {self.free} of {self.capacity} processors free>"

    # ------------------------------------------------------------------ the state, for policies

    def _parts(self) -> Iterator[Pool]:
        """Iterate over the partitions; the processors of reservations are theirs."""
        return (pool for pool in self.cluster.places if pool.part_of is None)

    @property
    def capacity(self) -> int:
        """Processors in all."""
        return sum(int(pool.capacity) for pool in self._parts())

    @property
    def free(self) -> int:
        """Processors free now."""
        return sum(int(pool.free) for pool in self._parts())

    @property
    def version(self) -> int:
        """A number that changes with what is free or waits."""
        cluster = self.cluster
        return int(sum(pool.version for pool in cluster.places) + cluster.submitted)

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self.cluster.view.waiting)

    @property
    def runs(self) -> int:
        """Jobs that run."""
        return sum(len(pool.running) for pool in self.cluster.places)

    @property
    def queued_processors(self) -> int:
        """Processors that waiting jobs ask for."""
        return sum(int(job.processors) for job in self.cluster.view.waiting)

    @property
    def backlog(self) -> float:
        """Processor seconds that what runs and waits is still expected to take."""
        running = sum(float(pool.backlog) for pool in self.cluster.places)
        return running + sum(float(job.processors * job._expected) for job in self.cluster.view.waiting)

    # ------------------------------------------------------------------ what can run here

    def slowdown(self, job: BrokeredJob) -> float:
        """Return what multiplies the run and requested times of a job here."""
        slowdowns = self.slowdowns
        if len(slowdowns) == 1 or job.home is None:
            return slowdowns[None]
        return self.factor(job.home.name)

    def factor(self, home: str) -> float:
        """Return what multiplies the run and requested times of jobs of a home (by its name; empty: none) here."""
        return self.slowdowns.get(home, self.slowdowns[None])

    def seconds(self, job: BrokeredJob) -> tuple[float, float, float]:
        """Return the seconds that a job would be planned with here, planned with once it runs, and run."""
        slowdown = self.slowdown(job)
        limit, run = job._limit * slowdown, job._length * slowdown
        cluster = self.cluster
        if job.spec is not None and job.spec.body is not None:
            return limit, limit, INFINITY
        if cluster.overrun == "stop" and run > limit:
            run = limit
        return (
            limit if cluster.estimates == "requested" else run,
            run if cluster.estimates == "exact" else limit,
            run,
        )

    def why_not(self, job: BrokeredJob) -> str | None:
        """Say why the cluster can never run the job, or ``None``."""
        pool = self._plain
        if pool is not None and job.spec is None:
            if job.processors > pool.capacity:
                return f"{job.processors} processors asked for, {self.name} has {pool.capacity}"
            if pool.max_processors is None and pool.max_requested is None:
                return None
        try:
            return self._guest(job)[1]
        except InputError as error:
            return error.message

    def can_run(self, job: BrokeredJob) -> bool:
        """Whether the cluster could ever run the job."""
        return self.why_not(job) is None

    def fits(self, job: BrokeredJob) -> bool:
        """Whether the job could start now, were nothing before it in the queue."""
        guest, reason = self._guest(job)
        return reason is None and bool(guest.place.fits(guest))

    def _spec(self, job: BrokeredJob) -> Job:
        """Return the job as it would be submitted here."""
        slowdown = self.slowdown(job)
        if job.spec is None:
            return Job(
                id=job.id,
                processors=job.processors,
                run=job._length * slowdown,
                requested=job._limit * slowdown,
                user=job.user,
            )
        spec = job.spec
        changed: dict[str, Any] = {"dependencies": ()} if spec.dependencies else {}
        if slowdown != 1.0:
            changed["run"] = None if spec.run is None else spec.run * slowdown
            changed["requested"] = None if spec.requested is None else spec.requested * slowdown
        return attrs.evolve(spec, **changed) if changed else spec

    def _guest(self, job: BrokeredJob) -> tuple[LiveJob, str | None]:
        """Return the job as it would be here, and why it can never run."""
        return self.cluster._live(self._spec(job), self.cluster.submitted - self.cluster._offset)

    # ------------------------------------------------------------------ estimates, and handing over

    def expect(self, job: BrokeredJob) -> Estimate:
        """Return when the job would start and how long it would run here, were it handed over now."""
        pool = self._plain
        if pool is not None and job.spec is None:
            before = job.requested, job._expected, job._duration
            job.requested, job._expected, job._duration = self.seconds(job)
            job.place = pool
            estimate = self.forecast.estimate(job)
            job.requested, job._expected, job._duration = before
            job.place = None
            return estimate
        guest, reason = self._guest(job)
        return self.forecast.estimate(guest) if reason is None else Estimate(INFINITY, 0.0, 0.0, guest.requested)

    def take(self, job: BrokeredJob) -> None:
        """Take a job into the queue of the cluster; from now on it is the cluster's."""
        cluster = self.cluster
        cluster._begin_record()
        number = cluster.submitted
        index = number - cluster._offset
        cluster.submitted += 1
        cluster._active += 1
        self.handed.append((index, job.row))
        spec = job.spec
        if self._plain is not None and spec is None:
            job.requested, job._expected, job._duration = self.seconds(job)
            job.place = self._plain
            job.priority += self._plain.priority
            job._watched = bool(cluster.usages)
        else:
            job.spec = self._spec(job)
            guest, _ = cluster._live(job.spec, index)
            for name in ("requested", "_expected", "_duration", "place", "request", "rules", "priority"):
                setattr(job, name, getattr(guest, name))
            job._watched = True
        if cluster.overrun == "stop" and job._length > job._limit and (spec is None or spec.body is None):
            job._outcome = "timeout"
        job.index, job.seq = index, number
        job.submit = cluster.env._now
        self.forecast.adds(job)
        if job.spec is None:
            cluster._admit(job)
        else:
            cluster._take_in(job)


def check_members(env: Environment, members: Sequence[Member]) -> None:
    """Check that clusters can stand under one broker.

    Raises
    ------
    InputError
        where there is none, two have one name, one is in another environment, or they decide at different instants
    """
    if not members:
        raise InputError("at least one cluster expected, found none")
    if len({member.name for member in members}) != len(members):
        raise InputError(f"clusters with names that differ expected, found {', '.join(each.name for each in members)}")
    first = members[0].cluster
    for member in members:
        cluster = member.cluster
        if cluster.env is not env:
            raise InputError(f"clusters in the environment of the broker expected, {member.name} is in another one")
        if (cluster._by_event, cluster._submits_first) != (first._by_event, first._submits_first):
            raise InputError(f"clusters that decide alike expected, {members[0].name} and {member.name} do not")


def set_slowdowns(members: Mapping[str, Member], given: Slowdowns) -> None:
    """Set what multiplies run and requested times on each cluster: one number a cluster, or by (home, destination).

    Raises
    ------
    InputError
        where numbers and clusters do not match, or one is not > 0
    """
    names = list(members)
    if given is None:
        return
    pairs: dict[Any, float]
    if isinstance(given, Mapping):
        pairs = dict(given)
    else:
        factors = list(given)
        if len(factors) != len(names):
            raise InputError(f"{len(names)} slowdowns expected, one a cluster, found {len(factors)}")
        pairs = dict(zip(names, factors, strict=True))
    for which, factor in pairs.items():
        home, destination = which if isinstance(which, tuple) else (None, which)
        for each in (home, destination):
            if each is not None and each not in names:
                raise InputError(f"slowdowns of clusters expected ({', '.join(names)}), found one of {each!r}")
        if not (isinstance(factor, (int, float)) and 0 < factor < INFINITY):
            raise InputError(f"a slowdown > 0 expected for {destination}, found {factor!r}")
        members[destination].slowdowns[home] = float(factor)
