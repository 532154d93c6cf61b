"""Capture: the snapshot of a live broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING

from simmodel.foundation.errors import SnapshotError
from simmodel.snapshots.broker import (
    Arriving,
    BrokerSnapshot,
    Handed,
    OverState,
    PlannedState,
    SlowdownState,
    WaitState,
)
from simmodel.systems.destination import BrokeredSet
from simmodel.systems.policy_state import policy_state, stream_states
from simmodel.systems.submissions import set_columns
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from simmodel.systems.broker.core import BrokerCore, Coming
    from simmodel.systems.destination import BrokeredJob, Destination
    from simmodel.work.job import Job

__all__ = ["capture"]

_ORDER = itemgetter(0, 1, 2)


def capture(broker: BrokerCore) -> BrokerSnapshot:
    """Return the snapshot of a broker and its systems."""
    env = broker.env
    numbers = {family: number for number, family in enumerate(broker.families)}
    left = [source for source in broker.sources if source.pending]
    arrivals = tuple(
        tuple(_arriving(job, numbers[source.family]) for job in source.left())
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
    return Arriving(job.id, job.row, *numbers, job.user, _home(job.home), job._job, family, tasks, job.unrequested)


def _arriving(job: Coming, family: int) -> Arriving:
    numbers = job.submit, job.processors, job.limit, job.length
    about = job.id, job.row, *numbers, job.user, _home(job.home)
    if isinstance(job.spec, TaskSet):
        return Arriving(*about, None, family, set_columns(job.spec))
    _check(job.id, job.spec, ", still to arrive,")
    return Arriving(*about, job.spec, family, unrequested=job.unrequested)


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


# ---------------------------------------------------------------------- dependencies


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
