"""From a live broker to its snapshot, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.environment import Call
from simmodel.errors import InputError, SnapshotError
from simmodel.scheduling.protocol import Estimate
from simmodel.snapshots.broker import Arriving, BrokerSnapshot, Handed
from simmodel.systems.broker.member import BrokeredJob
from simmodel.systems.broker.record import submitted
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.policy_state import policy_state
from simmodel.work.job import OVER
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.systems.broker.arrivals import Values
    from simmodel.systems.broker.system import Broker
    from simmodel.work.job import LiveJob

__all__ = ["capture", "restore"]


def capture(broker: Broker) -> BrokerSnapshot:
    """Return the snapshot of a broker and its clusters."""
    env = broker.env
    arrivals = tuple(
        tuple(_arriving(values, broker._families.index(source.family)) for values in source.to_come())
        for source in _pending(broker)
    )
    prefix = f"{broker.name}."
    return BrokerSnapshot(
        name=broker.name,
        now=float(env._now),
        seed=env.seed,
        clusters=tuple(member.cluster.snapshot() for member in broker.members),
        policy=policy_state(broker.scheduler, broker.known_as),
        ties=broker._ties,
        by=broker.by,
        slowdowns=tuple(
            (home or "", member.name, factor)
            for member in broker.members
            for home, factor in member.slowdowns.items()
            if home is not None or factor != 1.0
        ),
        waiting=tuple(_waiting(broker, job) for job in broker._queue),
        blocked=tuple(_waiting(broker, job) for job in _blocked(broker)),
        handed=tuple(_handed(broker)),
        arrivals=arrivals,
        waits=tuple(_waits(broker)),
        over=tuple(_over(broker, arrivals)),
        planned=tuple(_planned(broker)),
        streams=tuple(
            (name, dict(stream.bit_generator.state))
            for name, stream in sorted(env._streams.items())
            if name.startswith(prefix)
        ),
    )


def _pending(broker: Broker) -> list[Any]:
    """Return the sources with jobs to come, in the order in which they will be asked."""
    queue: list[Any] = broker.env._queue
    entries = {entry[3]: entry[:3] for entry in queue if entry[3] in broker._sources}
    return sorted((source for source in broker._sources if source.to_come()), key=lambda source: entries[source])


def _home(home: Any) -> str:
    return "" if home is None else str(home.name)


def _family(broker: Broker, job: LiveJob) -> int:
    family = broker._adopted.get(job, getattr(job, "_others", None))
    return 0 if family is None else broker._families.index(family)


def _waiting(broker: Broker, job: Any) -> Arriving:
    if job.spec is not None and job.spec.body is not None:
        raise SnapshotError(f"job {job.id} cannot be copied: it has a body, which is a generator")
    numbers = float(job.came), int(job.processors), float(job._limit), float(job._length)
    return Arriving(job.id, job.row, *numbers, job.user, _home(job.home), job.spec, _family(broker, job))


def _arriving(values: Values, family: int) -> Arriving:
    row, submit, processors, limit, length, name, user, home, spec = values
    if spec is not None and spec.body is not None:
        raise SnapshotError(f"job {name}, still to arrive, cannot be copied: it has a body, which is a generator")
    return Arriving(name, row, submit, processors, limit, length, user, _home(home), spec, family)


# ---------------------------------------------------------------------- who waits for whom


def _blocked(broker: Broker) -> Iterator[LiveJob]:
    for family in broker._families:
        if family.blocked:
            yield from (job for job in family._known.values() if job.state == "blocked")


def _waits(broker: Broker) -> Iterator[tuple[int, Any, str, int, int]]:
    for number, family in enumerate(broker._families):
        for (other, what), waiting in family._waiting.items():
            for job, dependency in waiting:
                if job.state == "blocked" and job.spec is not None:
                    yield number, other, what, job.row, job.spec.dependencies.index(dependency)  # type: ignore[attr-defined]


def _over(broker: Broker, arrivals: Iterable[Iterable[Arriving]]) -> Iterator[tuple[int, Any, str]]:
    """Yield the jobs that are over and that one still to arrive names."""
    named = dict.fromkeys(
        (each.family, dependency.job)
        for source in arrivals
        for each in source
        if each.spec is not None
        for dependency in each.spec.dependencies
    )
    for number, name in named:
        family = broker._families[number]
        job = family._known.get(name)
        if job is not None and job.state in OVER:
            yield number, name, job.state
        elif job is None and name in family._absent:
            yield number, name, "rejected"


def _planned(broker: Broker) -> Iterator[tuple[float, str, int]]:
    """Yield what is to come of blocked jobs, in order."""
    owners = (broker, *broker._families)
    queue: list[Any] = broker.env._queue
    for at, _, _, call in sorted((entry for entry in queue if type(entry[3]) is Call), key=lambda entry: entry[:3]):
        if call.callbacks is not None and call.what is not None and call.what[0] in owners:
            job = call.what[2]
            if job.state == "blocked":
                yield float(at), call.what[1], job.row


# ---------------------------------------------------------------------- what was handed over


def _alive(cluster: Cluster) -> Iterator[LiveJob]:
    """Iterate over the jobs of a cluster that are not over."""
    for pool in cluster.places:
        yield from (run.job for run in pool.running if hasattr(run, "job"))
    yield from cluster.view.waiting
    for rules in cluster.rules.values():
        yield from rules.held


def _handed(broker: Broker) -> Iterator[Handed]:
    table = submitted(broker)
    users = table["user"].tolist() if "user" in table else None
    for member in broker.members:
        rows = dict(member.handed)
        for job in _alive(member.cluster):
            row = rows.get(job.index)
            if row is None:
                continue  # the cluster's own
            estimate = broker._expected.get(row)
            yield Handed(
                row,
                member.name,
                job.seq,
                job.id,
                float(table["submit"][row]),
                int(table["processors"][row]),
                float(table["asked"][row]),
                str(table["origin"][row]),
                None if users is None or users[row] == "" else users[row],
                None if estimate is None else float(estimate.start),
                None if estimate is None else float(estimate.finish),
                broker._eligible_at.get(row),
                _family(broker, job),
            )


def restore(
    kind: type[Broker], env: Environment, snapshot: BrokerSnapshot, policy: Any, policies: Mapping[str, Any]
) -> Broker:
    """Return a broker that goes on where a snapshot was taken (see :meth:`Broker.from_snapshot`)."""
    if env.now != snapshot.now:
        raise InputError(f"an environment at {snapshot.now:g} s expected, as the snapshot, found one at {env.now:g} s")
    names = [cluster.name for cluster in snapshot.clusters]
    for name in policies:
        if name not in names:
            raise InputError(f"policies of clusters expected ({', '.join(names)}), found one of {name!r}")
    if policy is None and snapshot.policy.known_as is None:
        raise InputError(
            f"the broker {snapshot.policy.name!r} was given as an object: give it again, to go on from the snapshot"
        )
    chosen = snapshot.policy.known_as if policy is None else policy
    ties = snapshot.ties if policy is None else None
    if policy is not None and not isinstance(policy, str) and hasattr(policy, "fresh"):
        chosen = policy.fresh()
    clusters = [Cluster.from_snapshot(env, each, policies.get(each.name)) for each in snapshot.clusters]
    slowdowns: dict[Any, float] = {(home, at) if home else at: factor for home, at, factor in snapshot.slowdowns}
    broker = kind(env, clusters, chosen, slowdowns=slowdowns, by=snapshot.by, ties=ties, name=snapshot.name)  # type: ignore[arg-type]
    for name, state in snapshot.streams:
        env.rng(name).bit_generator.state = state
    _take_over(broker, snapshot)
    own = broker.scheduler.policy_name == snapshot.policy.name
    if own and snapshot.policy.state is not None and hasattr(broker.scheduler.policy, "restore"):
        broker.scheduler.policy.restore(snapshot.policy.state)
    broker.scheduler.asked_for = own and snapshot.policy.asked
    if snapshot.waiting and (snapshot.policy.due or not own):
        broker.scheduler.wake()
    return broker


def _take_over(broker: Broker, snapshot: BrokerSnapshot) -> None:
    """Give the broker the jobs of the snapshot, those of the rows that are not over."""
    coming = [each for source in snapshot.arrivals for each in source]
    unhanded = [*snapshot.waiting, *snapshot.blocked]
    known: list[Any] = sorted([*snapshot.handed, *unhanded, *coming], key=lambda each: each.row)
    rows = {each.row: row for row, each in enumerate(known)}
    if len(rows) != len(known):
        raise InputError(f"rows that differ expected, found {len(known)} jobs in {len(rows)} rows")
    broker.submitted = broker._active = len(known)
    if known:
        broker._tables.append((0, _table(known)))
    for _ in range(max([each.family for each in known], default=0)):
        broker._families.append(Dependencies(broker))  # type: ignore[arg-type]
    members: list[list[LiveJob]] = [[] for _ in broker._families]
    for given in snapshot.handed:
        members[given.family].append(_adopt(broker, given, rows[given.row]))
    held = {each.row: _live(broker, each, rows[each.row]) for each in unhanded}
    for each in unhanded:
        members[each.family].append(held[each.row])
    for each in snapshot.waiting:
        broker._queue.add(held[each.row])
    broker._queue.forget_new()
    for each in snapshot.blocked:
        held[each.row].state = "blocked"
    for number, family in enumerate(broker._families):
        waits = [(other, what, held[row], which) for i, other, what, row, which in snapshot.waits if i == number]
        family.restore(members[number], waits, [(name, how) for i, name, how in snapshot.over if i == number])
    for at, what, row in snapshot.planned:
        if what == "cancel":
            broker._cancel_at(held[row], at)
        else:
            held[row]._waits_for += 1
            held[row]._others.think(held[row], at)
    for source in snapshot.arrivals:
        values = [_values(broker, each, rows[each.row]) for each in source]
        broker._expect(values, broker._families[source[0].family])


def _adopt(broker: Broker, each: Handed, row: int) -> LiveJob:
    """Take over a job that is in a cluster."""
    member = broker._named.get(each.cluster)
    found = [job for job in _alive(member.cluster) if job.seq == each.number] if member is not None else []
    if member is None or not found:
        raise InputError(f"job {each.id}, handed to {each.cluster} as number {each.number}, is not there")
    job = found[0]
    broker._adopted[job] = broker._families[each.family]
    member.handed.append((job.index, row))
    if each.start is not None and each.end is not None:
        broker._expected[row] = Estimate(each.start, 0.0, 0.0, each.end - each.start)
    if each.eligible is not None:
        broker._eligible_at[row] = each.eligible
    return job


def _values(broker: Broker, each: Arriving, row: int) -> Values:
    length = each.limit if each.length is None else each.length
    home = broker.home(each.home or None)
    return row, each.submit, each.processors, each.limit, length, each.id, each.user, home, each.spec


def _live(broker: Broker, each: Arriving, row: int) -> BrokeredJob:
    home = broker.home(each.home or None)
    if each.spec is not None:
        job = broker._live(each.spec, row, home, broker._families[each.family])
        job.processors = each.processors
    else:
        length = each.limit if each.length is None else each.length
        job = BrokeredJob(each.id, row, each.submit, each.processors, each.limit, length)
        job.user, job.home, job._others = each.user, home, broker._families[each.family]
    job.submit = job.came = each.submit
    return job


def _table(known: list[Any]) -> Table:
    ids = [each.id for each in known]
    users = [each.user for each in known]
    columns: dict[str, Any] = {
        "job": np.array(ids, dtype=object if any(isinstance(each, str) for each in ids) else np.int64),
        "submit": np.array([each.submit for each in known], dtype=np.float64),
        "processors": np.array([each.processors for each in known], dtype=np.int64),
        "asked": np.array([each.asked if isinstance(each, Handed) else each.limit for each in known], dtype=np.float64),
        "origin": np.array([each.origin if isinstance(each, Handed) else each.home for each in known], dtype=str),
    }
    if any(user is not None for user in users):
        columns["user"] = np.array([-1 if user is None else user for user in users])
    return Table(columns)
