"""Snapshots of a live broker, taken and continued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import nan
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.scheduling.protocol import Estimate
from simmodel.snapshots.broker import (
    Arriving,
    BrokerSnapshot,
    Handed,
    OverState,
    PlannedState,
    SlowdownState,
    WaitState,
)
from simmodel.snapshots.jobs import Wait
from simmodel.systems.arrivals import Coming
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.destination import BrokeredJob, BrokeredSet
from simmodel.systems.kinds import kind_of_snapshot
from simmodel.systems.policy_state import (
    check_instant,
    chosen_policy,
    policy_state,
    remember,
    restore_streams,
    stream_states,
)
from simmodel.systems.submissions import set_columns, set_of_columns
from simmodel.work.job import LiveJob
from simmodel.work.table import Table
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.broker.core import BrokerCore
    from simmodel.systems.destination import Destination
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.work.job import Job

__all__ = ["Restored", "capture", "remember_all", "restore"]

_ORDER = itemgetter(0, 1, 2)


def capture(broker: BrokerCore) -> BrokerSnapshot:
    """Return the snapshot of a broker and its systems."""
    env = broker.env
    numbers = {family: number for number, family in enumerate(broker.families)}
    left = [source for source in broker.sources if source.pending]
    arrivals = tuple(
        tuple(_arriving(job, numbers[source.family]) for job in map(Coming._make, source.left()))
        for source in sorted(left, key=lambda source: source.order)
    )
    return BrokerSnapshot(
        name=broker.name,
        now=float(env._now),
        seed=env.seed,
        places=tuple(place.system.snapshot() for place in broker.places),
        policy=policy_state(broker.scheduler),
        by=broker.by,
        slowdowns=tuple(
            SlowdownState(home or "", place.name, factor)
            for place in broker.places
            for home, factor in place.slowdowns.items()
            if home is not None or factor != 1.0
        ),
        waiting=tuple(_waiting(job, numbers[job.family]) for job in broker.queue),
        blocked=tuple(_waiting(job, numbers[job.family]) for job in broker.blocked()),
        handed=tuple(_handed(broker, job, numbers[job.family]) for job in broker.handed),
        arrivals=arrivals,
        waits=tuple(_waits(broker)),
        over=tuple(_over(broker, arrivals)),
        planned=tuple(
            PlannedState(each.at, each.what, each.about[0])
            for each in sorted(broker.to_come(), key=itemgetter(0, 1, 2))
        ),
        alarms=tuple(sorted(broker.scheduler.alarms)),
        streams=stream_states(env, f"{broker.name}."),
    )


def _home(home: Destination | None) -> str:
    return "" if home is None else home.name


def _check(job: int | str, spec: Job | None, when: str = "") -> None:
    if spec is not None and spec.has_body:
        raise SnapshotError(f"job {job}{when} cannot be copied: {spec.program}")


def _waiting(job: BrokeredJob, family: int) -> Arriving:
    _check(job.id, job._job)
    numbers = float(job.came), int(job.processors), float(job.limit), float(job._length)
    tasks = set_columns(job.tasks) if isinstance(job, BrokeredSet) else None
    about = job.id, job.row, *numbers, job.user, _home(job.home), job._job, family, tasks, job.unrequested
    outcome = "completed" if job._job is not None else job._outcome
    return Arriving(*about, outcome)


def _arriving(job: Coming, family: int) -> Arriving:
    numbers = job.submit, job.processors, job.limit, job.length
    about = job.id, job.row, *numbers, job.user, _home(job.home)
    if isinstance(job.more, TaskSet):
        return Arriving(*about, None, family, set_columns(job.more))
    _check(job.id, job.more, ", still to arrive,")
    outcome = "completed" if job.more is not None or job.outcome is None else job.outcome
    return Arriving(*about, job.more, family, unrequested=job.unrequested, outcome=outcome)


def _handed(broker: BrokerCore, job: BrokeredJob, family: int) -> Handed:
    place = job.destination
    assert place is not None
    estimate = broker.ledger.expected.get(job.row)
    return Handed(
        job.row,
        place.name,
        place.system.number_of(job if job.below is None else job.below),
        job.id,
        float(job.came),
        int(job.processors),
        float(job.limit),
        _home(job.home),
        job.user,
        None if estimate is None else float(estimate.start),
        None if estimate is None else float(estimate.finish),
        broker.ledger.eligible.get(job.row),
        family,
        job.unrequested,
    )


def _waits(broker: BrokerCore) -> Iterator[WaitState]:
    for number, family in enumerate(broker.families):
        for job, which, other, what in family.waits():
            yield WaitState(number, other, what, job.seq, which)


def _over(broker: BrokerCore, arrivals: Iterable[Iterable[Arriving]]) -> Iterator[OverState]:
    """Yield the ended jobs on which arrivals depend."""
    named = dict.fromkeys(
        (each.family, dependency.job)
        for source in arrivals
        for each in source
        if each.spec is not None
        for dependency in each.spec.dependencies
    )
    for number, name in named:
        for _, state in broker.families[number].ended((name,)):
            yield OverState(number, name, state)


B = TypeVar("B", bound="BrokerCore")


def restore(
    kind: type[B], env: Environment, snapshot: BrokerSnapshot, policy: PolicyLike | None, policies: GivenPolicies
) -> B:
    """Return a broker that continues from a snapshot: see ``Broker.from_snapshot``."""
    check_instant(env, snapshot)
    given = policies_of_places(policies, {place.name: kind_of_snapshot(place) for place in snapshot.places})
    chosen = chosen_policy(snapshot, policy)
    systems = [
        kind_of_snapshot(each).restore(env, each, given[each.name].own, policies=given[each.name].below)
        for each in snapshot.places
    ]
    slowdowns: dict[Any, float] = {(home or None, place): factor for home, place, factor in snapshot.slowdowns}
    broker = kind(env, systems, chosen, slowdowns=slowdowns, by=snapshot.by, name=snapshot.name)
    restore_streams(env, snapshot)
    Restored(broker, snapshot).run()
    remember_all(broker, snapshot)
    return broker


def remember_all(broker: BrokerCore, snapshot: BrokerSnapshot) -> bool:
    """Restore the memory of the broker's policy, and its alarms; return whether it is the policy that decides now."""
    if not remember(broker.scheduler, snapshot.policy):
        return False
    for at in snapshot.alarms:
        broker.scheduler.plan_alarm(at)
    return True


class Restored:
    """Restores the jobs of a snapshot in a broker."""

    def __init__(self, broker: BrokerCore, snapshot: BrokerSnapshot) -> None:
        self.broker = broker
        self.snapshot = snapshot
        coming = [each for source in snapshot.arrivals for each in source]
        self.unhanded = [*snapshot.waiting, *snapshot.blocked]
        self.known: list[Handed | Arriving] = sorted(
            [*snapshot.handed, *self.unhanded, *coming], key=lambda each: each.row
        )
        self.rows = {each.row: row for row, each in enumerate(self.known)}
        if len(self.rows) != len(self.known):
            raise InputError(f"duplicate row: {len(self.known)} jobs in {len(self.rows)} rows")
        self.adopted: set[int] = set()
        self.numbered: dict[str, Mapping[int, Any]] = {place.name: place.system.numbered() for place in broker.places}

    def run(self) -> None:
        """Restore all jobs."""
        broker, snapshot = self.broker, self.snapshot
        broker.submitted = len(self.known)
        if self.known and broker.work == "jobs":
            broker.ledger.tables.append((0, _table(self.known)))
        for _ in range(max([each.family for each in self.known], default=0)):
            broker.families.append(Dependencies(broker))
        members: list[list[BrokeredJob]] = [[] for _ in broker.families]
        jobs = broker.restored
        for given in snapshot.handed:
            job = jobs[given.row] = self.adopt(given)
            self.note(job)
            members[given.family].append(jobs[given.row])
        blocked = {each.row for each in snapshot.blocked}
        for each in self.unhanded:
            job = jobs[each.row] = self.live(each)
            self.note(job)
            job.state = "blocked" if each.row in blocked else "new"
            members[each.family].append(job)
            broker.go_on(job)
        for number, family in enumerate(broker.families):
            mine = [each for each in snapshot.waits if each.family == number]
            waits = [Wait(each.other, each.what, jobs[each.row].row, each.which) for each in mine]
            over = [(each.job, each.how) for each in snapshot.over if each.family == number]
            family.restore(members[number], (), waits, over)
        for planned in snapshot.planned:
            job = jobs[planned.row]
            if planned.what == "cancel":
                broker.cancel_at(job, planned.at)
            else:
                job.family.think_again(job, planned.at)
        for source in snapshot.arrivals:
            broker.expect(len(source), [list(map(self.coming, source))], broker.families[source[0].family])

    def note(self, job: BrokeredJob) -> None:
        """Register a set of tasks in the ledger; jobs are in its table already."""
        if isinstance(job, BrokeredSet):
            self.broker.ledger.alone.append(job)

    def adopt(self, each: Handed) -> BrokeredJob:
        """Adopt a job that a system has."""
        broker, row = self.broker, self.rows[each.row]
        live = self.numbered.get(each.place, {}).get(each.number)
        if live is None:
            raise InputError(f"handed: job {each.id} is missing in {each.place} (number {each.number})")
        if id(live) in self.adopted:
            raise InputError(f"handed: duplicate number {each.number} of {each.place}")
        self.adopted.add(id(live))
        family = broker.families[each.family]
        if isinstance(live, LiveJob) and not isinstance(live, BrokeredSet):
            if live.id != each.id:
                raise InputError(f"handed: number {each.number} of {each.place} must be job {each.id}, got {live.id}")
            job = BrokeredJob(each.id, row, each.submit, each.processors, each.asked, each.asked, family)
        else:
            tasks = live.tasks if isinstance(live, BrokeredSet) else live.set
            job = BrokeredSet(row, each.submit, tasks, family)
            job.limit = job._length = each.asked
        job.user, job.home, job.destination = each.user, broker.home(each.origin or None), broker.named[each.place]
        job.unrequested = each.unrequested
        if each.start is not None and each.end is not None:
            broker.ledger.expected[row] = Estimate(each.start, 0.0, 0.0, each.end - each.start)
        if each.eligible is not None:
            broker.ledger.eligible[row] = each.eligible
        broker.go_on(job, live)
        return job

    def coming(self, each: Arriving) -> Coming:
        """Return a job that is still to arrive."""
        length = each.limit if each.length is None else each.length
        home = self.broker.home(each.home or None)
        numbers = each.submit, each.processors, each.limit, each.limit, length
        spec: Any = each.spec if each.tasks is None else set_of_columns(each.tasks)
        if each.spec is not None and each.spec.id is None:
            spec = attrs.evolve(each.spec, id=each.id)
        outcome = None if each.outcome == "completed" else each.outcome
        return Coming(
            self.rows[each.row], *numbers, each.id, each.user, outcome, each.unrequested, more=spec, home=home
        )

    def live(self, each: Arriving) -> BrokeredJob:
        """Return a job that has not been handed over."""
        broker, row = self.broker, self.rows[each.row]
        home, family = broker.home(each.home or None), broker.families[each.family]
        if each.spec is not None or each.tasks is not None:
            job = broker.live(each.spec or set_of_columns(each.tasks or {}), row, home, family)
            job.widen(each.processors)
            job.id = each.id
        else:
            length = each.limit if each.length is None else each.length
            job = BrokeredJob(each.id, row, each.submit, each.processors, each.limit, length, family)
            job.user, job.home, job.unrequested = each.user, home, each.unrequested
            job._outcome = each.outcome
        job.submit = job.came = each.submit
        return job


def _table(known: list[Handed | Arriving]) -> Table:
    ids = [each.id for each in known]
    users = [each.user for each in known]
    columns: dict[str, Any] = {
        "job": np.array(ids, dtype=object if any(isinstance(each, str) for each in ids) else np.int64),
        "submit": np.array([each.submit for each in known], dtype=np.float64),
        "processors": np.array([each.processors for each in known], dtype=np.int64),
        "asked": np.array([_asked(each) for each in known], dtype=np.float64),
        "origin": np.array([each.origin if isinstance(each, Handed) else each.home for each in known], dtype=str),
    }
    if any(user is not None for user in users):
        columns["user"] = np.array([-1 if user is None else user for user in users])
    return Table(columns)


def _asked(each: Handed | Arriving) -> float:
    """Return the requested time (s) without a slowdown; nan: none."""
    if each.unrequested:
        return nan
    return each.asked if isinstance(each, Handed) else each.limit
