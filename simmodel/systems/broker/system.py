"""A broker hands work to one of several systems, each with its own scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from simmodel.foundation.errors import ImpossibleWork, InputError, unknown
from simmodel.platform.broker import BrokerSpec, Slowdowns
from simmodel.platform.options import BrokerOptions, Options
from simmodel.records.broker_record import joined, renamed
from simmodel.records.streamed_recorder import EVERY, Extent
from simmodel.scheduling.protocol import Estimate, Load, work_units
from simmodel.scheduling.registry import PolicyLike, unused
from simmodel.systems.broker.core import BrokerCore
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.broker.record import (
    broker_result,
    delivered,
    direct,
    prefixed,
    result_of,
    task_broker_result,
    tidy,
    undelivered,
)
from simmodel.systems.broker.replay import BrokerDoor
from simmodel.systems.broker.snapshots import capture, restore
from simmodel.systems.kinds import Kind, kind_of
from simmodel.systems.submissions import read_submissions
from simmodel.systems.system import Offers, System
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.records.streamed_recorder import Write
    from simmodel.results.broker import BrokerResult, TaskBrokerResult
    from simmodel.snapshots.broker import BrokerSnapshot
    from simmodel.systems.arrivals import Door
    from simmodel.systems.destination import BrokeredJob, Destination
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenWork, Submissions
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.job import Job
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow

__all__ = ["BROKER", "Broker", "BrokerKind", "BrokerStream", "Slowdowns"]

_LEAST = 256  # jobs of a system after which it writes the rows of those that have ended
_DIRECT = 1 << 40  # the first row of jobs that were submitted to a system directly


class BrokerStream:
    """Writes the rows of a broker's jobs when its systems write theirs.

    Parameters
    ----------
    broker
        a broker that runs jobs, before the first of them
    write
        the function that writes tables
    every
        after how many jobs rows are written

    Attributes
    ----------
    extent
        of the rows written so far
    """

    def __init__(self, broker: BrokerCore, write: Write, every: int = EVERY) -> None:
        self.extent = Extent()
        self._broker = broker
        self._write = write
        self._known: dict[str, NDArray[Any]] = {}
        self._parts = (0, 0)
        self._repeats = False
        self._written = np.zeros(0, dtype=bool)
        self._places = {place.name: _Place(i, place) for i, place in enumerate(broker.places)}
        for each in self._places.values():
            own = max(_LEAST, every // len(self._places))
            each.place.system.stream_record(partial(self._take, each), every=own)

    def _take(self, place: _Place, name: str, rows: NDArray[np.int64], table: Table) -> None:
        """Take a table of a place, and write it with the rows and the names that its jobs have here."""
        if name == "jobs":
            self._complete(place)
            self._take_jobs(place, rows, table)
        elif place.rows is not None:
            here = np.array([place.rows[row] for row in rows.tolist()], dtype=np.int64)
            called = dict(zip(place.here.tolist(), place.jobs["job"].tolist(), strict=True))
            ids = np.array([called[row] for row in here.tolist()], dtype=place.jobs["job"].dtype)
            names = place.names()
            places = np.array([names[str(each)] for each in table["place"].tolist()], dtype=object)
            self._write("runs", here, table.with_columns(job=ids, place=places))
            place.rows = None

    def _take_jobs(self, place: _Place, rows: NDArray[np.int64], table: Table) -> None:
        known = self._columns()
        handed = dict(place.place.handed)
        first = _DIRECT + (place.number << 32)
        here = np.array([handed.pop(row, first + row) for row in rows.tolist()], dtype=np.int64)
        place.place.handed[:] = handed.items()
        ours = here < _DIRECT
        self._written[here[ours]] = True
        parts = [delivered(self._broker, known, here[ours], place.place, table.where(ours))]
        parts.append(direct(place.place, table.where(~ours)))
        place.rows = dict(zip(rows.tolist(), here.tolist(), strict=True))
        place.here = np.append(here[ours], here[~ours])
        place.jobs = joined(
            [self._put(each, jobs) for each, jobs in zip((here[ours], here[~ours]), parts, strict=True)]
        )
        ledger = self._broker.ledger
        for kept in (ledger.expected, ledger.eligible):
            for row in here.tolist() if kept else ():
                kept.pop(row, None)

    def _complete(self, place: _Place) -> None:
        """Write the executions of the last jobs of a place that wrote none: those of jobs that ran once."""
        if place.rows is None:
            return
        place.rows = None
        ran = np.isfinite(place.jobs["start"])
        if ran.any():
            jobs, count = place.jobs.where(ran), int(ran.sum())
            nodes = np.full(count, None, dtype=object)
            name = np.full(count, next(iter(place.names().values())), dtype=object)
            runs = jobs.with_columns(attempt=np.ones(count, dtype=np.int32), place=name, nodes=nodes)
            self._write("runs", place.here[ran], runs)

    def result(self, name: str) -> BrokerResult:
        """Write the rows that are left, and return the result without jobs."""
        broker = self._broker
        below = {place.name: place.system.result(place.name) for place in broker.places}
        self._finish()
        none = tidy(undelivered(broker, self._columns(), np.zeros(0, dtype=np.int64)))
        return result_of(broker, name, below, none, **self.extent.span(broker.env.now))

    def _finish(self) -> None:
        """Write the rows that the systems have not written: those of jobs that were never handed over."""
        for place in self._places.values():
            self._complete(place)
        known = self._columns()
        rest = np.flatnonzero(~self._written)
        self._written[rest] = True
        for begin in range(0, len(rest), EVERY):
            rows = rest[begin : begin + EVERY]
            self._put(rows, undelivered(self._broker, known, rows))

    # ------------------------------------------------------------------ rows

    def _put(self, rows: NDArray[np.int64], jobs: Table) -> Table:
        """Write rows of jobs; return the columns that their executions have, too."""
        if self._repeats:
            jobs = jobs.with_columns(job=prefixed(jobs["job"], jobs["origin"]))
        if len(jobs):
            self.extent.add(jobs)
            self._write("jobs", rows, tidy(jobs) if "reason" in jobs else jobs)
        return Table({name: np.asarray(jobs[name]) for name in ("job", "start", "end", "processors", "status")})

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns known at submission of all jobs so far."""
        ledger = self._broker.ledger
        parts = (len(ledger.tables), len(ledger.alone))
        if parts != self._parts or not self._known:
            self._parts, self._known = parts, ledger.submitted()
            names = self._known["job"]
            self._repeats = self._repeats or len(set(names.tolist())) < len(names)
            more = np.zeros(self._broker.submitted - len(self._written), dtype=bool)
            self._written = np.append(self._written, more)
        return self._known


class _Place:
    """A place of the broker, and the last jobs that it wrote."""

    def __init__(self, number: int, place: Destination) -> None:
        self.number, self.place = number, place
        self.rows: dict[int, int] | None = None  # there, here: of jobs whose executions have not been written
        self.here = np.zeros(0, dtype=np.int64)
        self.jobs = Table({})

    def names(self) -> dict[str, str]:
        """Return the names of the places below in the record, by their names there."""
        return renamed(self.place.system.place_table(), self.place.name)


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

    >>> from simmodel import Cluster, Environment, Job
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

    def door(self, home: Any = None) -> Door:
        """Return the door of the jobs of a home system, or its name."""
        if self.work != "jobs":
            raise InputError(f"{self.name}: cannot replay a workload of jobs: a {self.kind} runs {self.work}")
        return BrokerDoor(self, self.home(home))

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

        >>> from simmodel import Cluster, Environment, Job
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
        nodes, types = any(each.nodes for each in found), any(each.types for each in found)
        return Offers(nodes, tuple(queues), tuple(partitions), tuple(shares), types)

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

        >>> from simmodel import Cluster, Environment, Job
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

        >>> from simmodel import Cluster, Environment, Job
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


@attrs.frozen(kw_only=True, repr=False)
class BrokerKind(Kind):
    """The kind of brokers: the kind of work is that of the places, and each place has its own policy and options."""

    asks = Broker.asks
    homes = True

    def work_of(self, spec: BrokerSpec) -> Literal["jobs", "tasks"]:
        """Return the kind of work that all places run.

        Raises
        ------
        InputError
            if some run jobs and some tasks
        """
        found = {_kind(each).work_of(each): name for name, each in spec.places.items()}
        if len(found) > 1:
            raise InputError(
                f"places: must all run jobs or all run tasks; {found['jobs']} runs jobs, {found['tasks']} runs tasks"
            )
        return next(iter(found))

    def read_options(self, values: Mapping[str, Any]) -> Options:
        """Return the options of the broker, including those of its places."""
        return BrokerOptions.of(values)

    def option_names(self, spec: BrokerSpec) -> list[str]:
        below = [name for place in spec.places.values() for name in _kind(place).option_names(place)]
        return list(dict.fromkeys([*BrokerOptions.names()[:-1], *below]))

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return the amounts that jobs can request of nodes at every place; no file moves from one place to another."""
        found = [_kind(place).of_nodes(place) - {"files"} for place in spec.places.values()]
        return frozenset.intersection(*found) if found else frozenset()

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the workloads with their homes, and the broker spec with the given slowdowns."""
        slowdowns: Slowdowns = inputs.get("slowdowns")
        if slowdowns is not None:
            spec = attrs.evolve(spec, slowdowns=slowdowns)
        homes, of_nodes = list(spec.places), self.of_nodes(spec)
        return read_submissions(self.work_of(spec), given, homes=homes, of_nodes=of_nodes, seed=seed), spec

    def build(
        self,
        env: Environment,
        spec: BrokerSpec,
        policy: PolicyLike,
        options: Options,
        *,
        policies: GivenPolicies = None,
        name: str | None = None,
    ) -> System[Any]:
        """Return a broker over places built from their specs, each with its policy and options."""
        assert isinstance(options, BrokerOptions)
        kinds = {place: _kind(below) for place, below in spec.places.items()}
        chosen = policies_of_places(policies, kinds)
        missing = [place for place, each in chosen.items() if each == (None, None)]
        if isinstance(policies, Mapping) and missing:
            raise InputError(f"policies: missing {', '.join(missing)}; every place needs a policy")
        known: set[str] = set()
        systems: list[Any] = []
        for place, below in spec.places.items():
            kind, (own, deeper) = kinds[place], chosen[place]
            names = kind.option_names(below)
            mine = {key: value for key, value in options.below.items() if key in names}
            known.update(names)
            plain = _default(kind) if own is None else unused(own)
            systems.append(kind.build(env, below, plain, kind.read_options(mine), policies=deeper, name=place))
        for key in options.below:
            if key not in known:
                raise unknown("option", key, self.option_names(spec))
        return Broker(env, systems, policy, slowdowns=_factors(spec), by=options.by, name=name or spec.name)


def _kind(spec: Any) -> Kind:
    found = kind_of(spec)
    if found is None:
        raise InputError(f"places: must be specs of systems, got {spec!r}")
    return found


def _factors(spec: BrokerSpec) -> Slowdowns:
    return {(each.home, each.place) if each.home is not None else each.place: each.factor for each in spec.slowdowns}


def _default(kind: Kind) -> str:
    """Return the default policy of a place: clusters under brokers backfill, as in the CQSim+ papers."""
    return "easy" if kind.name == "cluster" else kind.policy


BROKER = BrokerKind(
    name="broker",
    spec=BrokerSpec,
    system=Broker,
    snapshot="simmodel.snapshots.broker:BrokerSnapshot",
    options=BrokerOptions,
    inputs=("slowdowns",),
    policy="sgs-t",
)
