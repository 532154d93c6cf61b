"""A broker hands work to one of several systems, each with its own scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform.broker import Slowdowns
from simmodel.records.broker_record import joined, renamed
from simmodel.records.streamed_recorder import EVERY
from simmodel.scheduling.protocol import Estimate, Load, work_units
from simmodel.systems.broker.core import BrokerCore
from simmodel.systems.broker.record import broker_result, task_broker_result
from simmodel.systems.broker.replay import replay_workload
from simmodel.systems.broker.snapshots import capture, restore
from simmodel.systems.broker.streamed import BrokerStream
from simmodel.systems.system import Offers

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.records.streamed_recorder import Write
    from simmodel.results.broker import BrokerResult, TaskBrokerResult
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.broker import BrokerSnapshot
    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.system import EstimateBasis, System
    from simmodel.work.job import Job
    from simmodel.work.prepare import JobsGiven, Prepared
    from simmodel.work.table import Table
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow

__all__ = ["Broker", "Slowdowns"]


class Broker(BrokerCore):
    """Hands each job to one of several systems, by a policy whose places are the systems.

    The systems live in the same environment, each with its own scheduler, speed and size: clusters, machines, other
    brokers or custom systems. They may also get jobs directly. In each instant the broker decides before its systems
    do.

    Parameters
    ----------
    env
        the environment
    systems
        the systems, with distinct names; ties go to the first
    policy
        a name, a policy, or a function of a view
    slowdowns
        factors of run and requested times: one number per system, in order or by name; or by (home, destination);
        default: 1
    by
        whether estimates use ``"requested"`` or ``"actual"`` run times: see
        :class:`~simmodel.systems.cluster.future.guest.Forecast`
    name, rank
        its name in reports; its turn among schedulers that share an instant (default: before those below it)

    Attributes
    ----------
    families
        the dependencies within each group of jobs: first those submitted one by one, then each workload
    ledger
        data about the jobs for the record
    sources
        the sources of jobs still to be submitted
    queue, handed
        the jobs that wait for the policy; the jobs that were handed over and have not ended
    restored
        the unfinished jobs of the snapshot that the broker was restored from, by their rows there

    Observers may have ``job_handed(job, place)`` and ``job_rejected(job, reason)``, and the hooks of the systems.

    Raises
    ------
    InputError
        if there is no system, a name is duplicate, slowdowns do not match the systems, or the policy is unknown

    >>> from simmodel import Environment
    >>> from simmodel import Cluster
    >>> from simmodel import Job
    >>> env = Environment()
    >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 8, name="b")], "sgs-t", slowdowns=[1, 1.5])
    >>> jobs = [broker.submit(Job(processors=4, run=10)) for _ in range(3)]
    >>> env.run()
    >>> [(job.destination.name, job.started) for job in jobs]
    [('a', 0), ('b', 0), ('b', 0)]

    A broker is a system too, so brokers can be nested:

    >>> env = Environment()
    >>> inner = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t", name="inner")
    >>> outer = Broker(env, [inner, Cluster(env, 2, name="c")], "sgs-t", name="outer")
    >>> jobs = [outer.submit(Job(processors=2, run=10)) for _ in range(6)]
    >>> env.run()
    >>> [job.destination.name for job in jobs], [job.started for job in jobs]
    (['inner', 'inner', 'inner', 'inner', 'c', 'inner'], [0, 0, 0, 0, 0, 10.0])
    """

    stream: BrokerStream | None = None
    """The writer of the record as the run goes on, or ``None``."""

    def replay(self, workload: JobsGiven, home: Any = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; return the report of repaired and rejected jobs.

        Jobs that no system can ever run are recorded as rejected. May be called for several workloads.

        Parameters
        ----------
        workload
            the jobs
        home
            their home system, or its name
        """
        if self.work != "jobs":
            return super().replay(workload)
        return replay_workload(self, workload, self.home(home))

    # ------------------------------------------------------------------ as a place

    def why_not(self, work: Job | TaskSet | Workflow) -> str | None:
        """Return why no system that the policy may choose can ever run the work, or ``None``; changes nothing."""
        return self._why_nowhere(self.live(self._checked(work), self.submitted, None, self.families[0]))

    def estimate(self, work: Job | TaskSet | Workflow, by: EstimateBasis = "requested") -> Estimate:
        """Return the estimate of the system with the earliest finish; ties go to the first.

        ``by`` is ignored: the broker's own setting applies.

        Raises
        ------
        ImpossibleWork
            if no system that the policy may choose can ever run it

        >>> from simmodel import Environment
        >>> from simmodel import Cluster
        >>> from simmodel import Job
        >>> env = Environment()
        >>> broker = Broker(env, [Cluster(env, 2, name="a"), Cluster(env, 4, name="b")], slowdowns=[1, 2])
        >>> broker.estimate(Job(processors=2, run=10)).finish, broker.estimate(Job(processors=4, run=10)).finish
        (10.0, 20.0)
        """
        job = self.live(self._checked(work), self.submitted, None, self.families[0])
        able = [place for place in self.allowed(None) if place.can_run(job)]
        if not able:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {self._why_nowhere(job)}")
        return min([place.estimate(job) for place in able], key=lambda estimate: estimate.finish)

    def present(self) -> Iterator[BrokeredJob]:
        """Iterate over the submitted jobs that have not ended, handed over or not."""
        yield from self.handed
        yield from self.queue
        yield from self.blocked()

    def all_below(self) -> Iterator[System[Any]]:
        """Iterate over the systems below this one, bottom up, and finally this one."""
        for place in self.places:
            yield from place.system.all_below()
        yield self

    @property
    def load(self) -> Load:
        """The sum of the loads of the systems, plus the jobs that wait for the broker."""
        queue: list[Any] = list(self.queue)
        own = sum(work_units(job.processors, job.limit) for job in queue)
        loads = [Load(0, len(queue), own, 0), *(place.load for place in self.places)]
        return Load(*map(sum, zip(*loads, strict=True)))

    @property
    def offers(self) -> Offers:
        """The requests that at least one system supports, in addition to processors and time."""
        found = [place.system.offers for place in self.places]
        queues = dict.fromkeys(name for each in found for name in each.queues)
        partitions = dict.fromkeys(name for each in found for name in each.partitions)
        shares = dict.fromkeys(name for each in found for name in each.shares)
        return Offers(any(each.nodes for each in found), tuple(queues), tuple(partitions), tuple(shares))

    @property
    def largest(self) -> int:
        """The largest number of processors that one job can have."""
        return max(place.system.largest for place in self.places)

    def settle(self) -> None:
        """Hand over the waiting jobs at once: estimates of the systems below cover only their own jobs."""
        if not self.scheduler.external:
            self.scheduler.decide()

    def row_of(self, work: BrokeredJob) -> int:
        """Return the row of a job in the table of the result."""
        return work.row

    number_of = row_of

    def numbered(self) -> Mapping[int, BrokeredJob]:
        """Return the unfinished jobs by their rows in the snapshot that the broker was restored from."""
        return self.restored

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> BrokerSnapshot:
        """Return the state of the broker and its systems as a plain value, from which a simulation can continue.

        Best taken between events, after the decisions of the instant.

        Raises
        ------
        SnapshotError
            if a system cannot be copied, a job has a body, or the state of the policy is not a plain value

        >>> from simmodel import Environment
        >>> from simmodel import Cluster
        >>> from simmodel import Job
        >>> env = Environment()
        >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
        >>> for _ in range(3): _ = broker.submit(Job(processors=4, run=10))
        >>> env.run(until=5)
        >>> broker.snapshot()
        <BrokerSnapshot of a, b at 5 s: 2 running, 1 waiting>
        """
        return capture(self)

    @classmethod
    def from_snapshot(
        cls,
        env: Environment,
        snapshot: BrokerSnapshot,
        policy: PolicyLike | None = None,
        policies: GivenPolicies = None,
    ) -> Broker:
        """Return a broker with new systems that continues from a snapshot.

        Parameters
        ----------
        env
            an environment at the instant of the snapshot
        policy
            of the broker; default: that of the snapshot
        policies
            of its systems: one for all, or by path; default: those of the snapshot

        Raises
        ------
        InputError
            if the environment is at another instant, a policy of the snapshot was given as an object, or parts of the
            snapshot do not fit together

        >>> from simmodel import Environment
        >>> from simmodel import Cluster
        >>> from simmodel import Job
        >>> env = Environment()
        >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
        >>> for _ in range(3): _ = broker.submit(Job(processors=4, run=10))
        >>> env.run(until=5)
        >>> later = Environment(5)
        >>> again = Broker.from_snapshot(later, broker.snapshot())
        >>> later.run(); again.result().jobs["end"]
        array([10., 10., 20.])
        """
        return restore(cls, env, snapshot, policy, policies)

    # ------------------------------------------------------------------ results

    def place_table(self) -> Table:
        """Return the places of the record: those of the systems, as they are now."""
        tables = []
        for place in self.places:
            table = place.system.place_table()
            names = renamed(table, place.name)
            tables.append(table.with_columns(place=[names[str(each)] for each in table["place"].tolist()]))
        return joined(tables)

    def stream_record(self, write: Write, *, every: int = EVERY) -> None:
        """Write the rows of jobs by a function when they have ended in their systems, from the first job on.

        Raises
        ------
        InputError
            if jobs have been submitted, the broker runs tasks, or a system below keeps its record in memory
        """
        if self.work != "jobs":
            super().stream_record(write, every=every)
        if self.submitted:
            raise InputError(f"must be None for {self!r}, which has jobs", place="stream")
        self.stream = BrokerStream(self, write, every)

    def result(self, name: str | None = None) -> BrokerResult | TaskBrokerResult:
        """Return the result so far of all jobs and of each system; ``name`` is its name in tables."""
        name = name or self.scheduler.policy_name
        if self.stream is not None:
            return self.stream.result(name)
        return (broker_result if self.work == "jobs" else task_broker_result)(self, name)
