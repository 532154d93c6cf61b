"""Estimates by simulation: when would a job start on a cluster if it were submitted now?

A forecast simulates the cluster from its present state, with the job at the tail of its queue and without later
arrivals, and with requested run times (known to a scheduler) or actual ones (known to a simulation only, as in CQSim+).
Answers are cached until the state changes.

If the queue is in order of arrival and only processors count, or nodes that are alike and taken whole, the projected
future is kept and extended as needed instead of simulated again (see :mod:`simmodel.systems.cluster.future.plan`). Each
start and end is compared with the projection, which is restarted when they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from simmodel.environment import Environment
from simmodel.foundation.display import Shown
from simmodel.foundation.errors import InputError
from simmodel.policies.backfilling import Easy
from simmodel.policies.ordering import FCFS
from simmodel.policies.planning import Conservative
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.cluster.future.plan import ProjectedEasy, ProjectedJob, ProjectedPlan, Projection
from simmodel.work.job import LiveJob, Run

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import Place
    from simmodel.systems.cluster.intake import LiveCluster
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.job import Job

__all__ = ["Forecast"]

INFINITY = float("inf")
_ON_TIME = ("completed", "timeout")
_UNASKED = 500  # starts after which a queue that nobody asks for is no longer followed


class Forecast(Observer, Shown):
    """Estimates of job starts on one cluster by simulation of its future.

    Parameters
    ----------
    cluster
        the cluster
    by
        ``"requested"``: every job runs for its expected time; ``"actual"``: for its actual run time
    kept
        whether to keep and extend the projected future if possible; ``False``: simulate again for each estimate

    Raises
    ------
    InputError
        if ``by`` is neither of the two

    >>> from simmodel import Cluster, Environment, Job
    >>> env = Environment()
    >>> cluster = Cluster(env, 4, policy="easy")
    >>> _ = cluster.submit(Job(processors=3, run=10, requested=60)); env.run(until=1)
    >>> Forecast(cluster).of(Job(processors=2, run=5, requested=20)).start
    60.0
    >>> Forecast(cluster, by="actual").of(Job(processors=2, run=5, requested=20))
    Estimate(start=10.0, setup=0.0, transfer=0.0, run=5.0)
    """

    def __init__(self, cluster: LiveCluster, by: EstimateBasis = "requested", *, kept: bool = True) -> None:
        if by not in ("requested", "actual"):
            raise InputError(f"must be 'requested' or 'actual', got {by!r}", place="by")
        self.cluster = cluster
        self.by = by
        self._actual = by == "actual"
        self._pool: Any = cluster.places[0]
        self._each = cluster.core.by_event
        self._kind = _kind(cluster) if kept else None
        self.keeps, core = self._kind is not None, cluster.core
        stops = core.overrun == "stop" and core.predictions is None
        self.punctual = self._actual or stops or core.estimates == "exact"  # no run exceeds its expected end
        self._future: ProjectedPlan | ProjectedEasy | Projection | None = None
        self._exact = False  # whether all run times in the future equal the planned ones
        self._stale = True
        self._queue_known = False  # whether a stale future still knows which jobs wait: it learns of all that come
        self._watches = False
        self._started: list[tuple[Any, float]] = []  # since the last comparison
        self._version = -1
        self._changes = 0  # changes of the pool's version since then that were observed
        self._now = -1.0
        self._calls = -1
        self._coming: Any = None  # the job that was added and is about to be submitted
        self._answers: list[tuple[Any, tuple[float, float]]] = []  # cached (question, start and speed) of this state
        self._token: tuple[Any, ...] = ()

    # ------------------------------------------------------------------ estimates

    def of(self, spec: Job) -> Estimate:
        """Estimate when a :class:`~simmodel.work.job.Job` would start if submitted now, and how long it would run (s).

        Raises
        ------
        ImpossibleWork
            if no place of the cluster can ever run it
        """
        from simmodel.foundation.errors import ImpossibleWork

        job, reason = self.cluster.live(spec)
        if reason is not None:
            raise ImpossibleWork(f"{self.cluster.name}: job {job.id}: {reason}")
        return self.estimate(job)

    def estimate(self, job: LiveJob) -> Estimate:
        """Estimate when a live job would start if submitted now, and how long it would run (s).

        The job has the place that it would wait for, and the times that it would be planned with and run there.
        """
        return self.expect(self._work(job), job.place)

    def expect(self, work: ProjectedJob, place: Pool) -> Estimate:
        """Estimate when work would start at one of the cluster's places, and how long it would run (s)."""
        start, speed = self._start(work, place)
        return Estimate(start, 0.0, 0.0, work.duration / speed)

    def _work(self, job: LiveJob) -> ProjectedJob:
        expected = job.expected
        return ProjectedJob(job, job.processors, job.planned, expected, job._duration if self._actual else expected)

    def _counted(self, work: ProjectedJob) -> ProjectedJob | None:
        """Return work with the processors that it takes; ``None`` if these and its times do not decide its start."""
        job, processors, _, expected, duration = work
        if not (0 < duration <= expected < INFINITY) or job.priority:
            return None
        if (job.history is not None and job.history.resumes) or (job._job is not None and job._job.has_body):
            return None
        width = self._pool.width_of(job)
        if not width:
            return None
        return work if width == processors else work._replace(processors=width)

    def _start(self, work: ProjectedJob, place: Pool) -> tuple[float, float]:
        """Return when work would start (s), and at which speed it would run."""
        job = work.job
        if self._stale and self._future and self.punctual and self._starts_at_once(work, place):
            return self.cluster.env._now, 1.0  # without a new projection
        counted = None if self._kind is None else self._counted(work)
        if counted is not None and self._comes_true(counted):
            assert self._future is not None
            return self._future.start(self.cluster.env._now, counted, self._decided()), 1.0
        if self._starts_at_once(work, place):
            return self.cluster.env._now, 1.0
        token = self._state()
        if token != self._token:
            self._token = token
            self._answers.clear()
        asked = place, job.id, job.user, job.priority, work[1:], job._job
        for question, answer in self._answers:
            if question == asked:
                return answer
        found = self._simulated(work, place)
        self._answers.append((asked, found))
        return found

    def _starts_at_once(self, work: ProjectedJob, place: Pool) -> bool:
        """Whether work that requests only processors fits while nothing waits, under a policy that then starts it."""
        spec = work.job._job
        if self._kind is None or not (spec is None or spec.plain) or self.cluster.view.waiting or place.claims.waiting:
            return False
        return place.fits(work.job)

    def _simulated(self, work: ProjectedJob, place: Pool) -> tuple[float, float]:
        """Simulate a copy of the cluster into which the work is submitted, until it starts; see :meth:`_start`."""
        cluster = self.cluster
        snapshot = cluster.snapshot().expected(actual=True) if self._actual else cluster.snapshot(actual=False)
        env = Environment(snapshot.now, snapshot.seed)
        copy = cluster.from_snapshot(env, snapshot, cluster.scheduler.policy, record=False)
        guest = _guest(work, copy, copy.pools[place.name])
        copy.receive(guest)
        copy.take_in(guest)
        while guest.started is None and env.peek() < INFINITY:
            env.step()
        if guest.started is None:
            return INFINITY, 1.0
        return float(guest.started), 1.0 if guest.run is None else guest.place.speed_of(guest, guest.run.grant.nodes)

    def _state(self) -> tuple[Any, ...]:
        """Return a key that changes whenever the cluster may have changed."""
        cluster = self.cluster
        return (
            cluster.env._now,
            cluster.submitted,
            cluster.scheduler.calls,
            tuple(pool.version for pool in cluster.places),
            len(cluster.view.waiting),
        )

    # ------------------------------------------------------------------ the projection

    def adds(self, job: LiveJob) -> None:
        """Add a job that is about to be submitted to the projection."""
        future = self._future
        if future is None or (self._stale and not self._queue_known):
            return
        work = self._counted(self._work(job))
        self._queue_known = self._queue_known and work is not None and _exact(work)
        if work is None or (self._exact and not _exact(work)) or self._now != self.cluster.env._now:
            self._stale = True
        if work is not None and not self._stale:
            future.add(self._now, work, self._decided())
            self._coming = job
        elif work is not None and self._queue_known:
            assert isinstance(future, ProjectedEasy)
            future.queue(work)
            self._coming = job

    def _comes_true(self, work: ProjectedJob) -> bool:
        """Advance the projection to now, or restart it; return whether there is one."""
        now = self.cluster.env._now
        if not self._watches:
            self._watches = True
            self.cluster.core.follow(self)
        pool = self._pool
        late = not self.punctual and pool.running.first_end <= now  # a run that exceeds its expected end
        if self._future is not None and not self._stale and not late and (not self._exact or _exact(work)):
            if now != self._now:
                self._now = now
                self._calls = -1 if self._started and self._started[-1][1] == now else self.cluster.scheduler.calls
            if self._version + self._changes == pool.version:
                self._version, self._changes = pool.version, 0
                started = self._started
                self._started = []
                if self._future.advance(now, started):
                    return True
        return self._begin(now, work)

    def _decided(self) -> bool:
        """Whether the cluster has already decided at this instant, so that a submission brings another decision."""
        return self._calls != self.cluster.scheduler.calls

    def _begin(self, now: float, work: ProjectedJob) -> bool:
        """Restart the projection from the state of the cluster; return ``False`` if that state cannot be projected."""
        cluster, pool = self.cluster, self._pool
        self._stale = True
        if not pool.simple or pool.up != pool.capacity or cluster.dependencies.waiting or pool.claims.waiting:
            return False
        running, waiting = [], []
        exact = _exact(work)
        for _, number, processors, run in pool.running.entries():
            if not isinstance(run, Run) or run.process is not None or run.released:
                return False
            end = run._end if self._actual else run.expected_end
            if not now < end <= run.expected_end or run.expected_end == INFINITY:
                return False
            exact = exact and end == run.expected_end
            running.append((end, number, processors, run.expected_end))
        if exact and self._queue_known and isinstance(self._future, ProjectedEasy):
            known = self._future.again(now, pool.free, running, self._started)
            if known and self._future.waits == len(cluster.view.waiting):
                return self._begun(now)
        self._queue_known = False
        for job in cluster.view.waiting:
            each = self._counted(self._work(job))
            if each is None:
                return False
            exact = exact and _exact(each)
            waiting.append(each)
        if self._kind == "fcfs" or (exact and self._kind == "conservative"):
            if not isinstance(self._future, ProjectedPlan):
                self._future = ProjectedPlan(backfill=self._kind != "fcfs")
            self._exact = self._kind != "fcfs"
            if self._kind == "fcfs":  # expected ends are irrelevant
                running = [(end, number, processors, end) for end, number, processors, _ in running]
        elif exact:
            if not isinstance(self._future, ProjectedEasy):
                self._future = ProjectedEasy(each=self._each)
            self._exact = True
            self._queue_known = cluster.core.predictions is None  # else requests may change
        else:
            assert self._kind is not None
            if not isinstance(self._future, Projection):
                self._future = Projection(self._kind, each=self._each)
            self._exact = False
        self._future.restart(now, pool.free, running, waiting)
        return self._begun(now)

    def _begun(self, now: float) -> bool:
        """Note that the projection has been restarted now."""
        self._stale = False
        self._started = []
        self._version, self._changes = self._pool.version, 0
        self._now, self._calls = now, self.cluster.scheduler.calls
        return True

    # ------------------------------------------------------------------ hooks

    def job_submitted(self, job: LiveJob) -> None:
        """Compare a submission with the projection."""
        if job is self._coming:
            self._coming = None
        elif job.place is self._pool:
            self._discard()

    def job_started(self, run: Run) -> None:
        """Note a start for comparison with the projection."""
        if run.place is self._pool and (not self._stale or self._queue_known):
            self._started.append((run.job, run.started))
            self._changes += 1
            if self._stale and len(self._started) > _UNASKED:
                self._discard()

    def job_ended(self, run: Run, status: str) -> None:
        """Compare an end with the projection."""
        if run.place is self._pool and (not self._stale or self._queue_known):
            self._changes += 1
            end = run._end if self._actual else run.expected_end
            if status not in _ON_TIME:
                self._discard()
            elif end != self.cluster.env._now:
                self._stale = True

    def job_cancelled(self, job: LiveJob) -> None:
        """Discard the projection: a job was withdrawn."""
        if job.place is self._pool:
            self._discard()

    def place_changed(self, place: Place, _cause: str) -> None:
        """Discard the projection: the capacity of the place has changed."""
        if place is self._pool:
            self._discard()

    def _discard(self) -> None:
        self._stale = True
        self._queue_known = False
        self._started = []

    def __repr__(self) -> str:
        return f"<Forecast of {self.cluster.name} at {self.cluster.env.now:g} s by {self.by} times>"


def _kind(cluster: LiveCluster) -> str | None:
    """Return the kind of projection for the cluster's policy, or ``None`` if its future cannot be projected."""
    spec, pool, policy = cluster.spec, cluster.places[0], cluster.scheduler.policy
    if len(cluster.places) > 1 or pool.paced or cluster.core.submits_first:
        return None
    if spec.queues or spec.outages or spec.failures or spec.reservations or spec.amounts:
        return None
    if policy is FCFS:
        return "fcfs"
    if type(policy) is Conservative and policy.order is FCFS:
        return "conservative"
    if type(policy) is Easy and policy.order is FCFS and policy.candidates is FCFS:
        return "easy"
    return None


def _guest(work: ProjectedJob, cluster: LiveCluster, place: Pool) -> LiveJob:
    """Return work as a live job of a copy of the cluster, at one of its places."""
    job, processors, requested, expected, duration = work
    guest = LiveJob(job.id, 0, cluster.env._now, processors, requested, expected, duration)
    guest.user, guest.priority = job.user, job.priority
    guest.place = place
    guest.watched = bool(cluster.core.usages)
    if job._job is not None:
        guest._job = attrs.evolve(job._job, run=duration, body=None, cancel=None, dependencies=())
        guest.request = place.request_of(guest._job)
        guest.rules = None if job.rules is None else cluster.rules[job.rules.spec.name]
        guest.watched = True
    elif place.power is not None:
        place.power.count(guest)
    return guest


def _exact(work: ProjectedJob) -> bool:
    return work.planned == work.duration == work.expected
