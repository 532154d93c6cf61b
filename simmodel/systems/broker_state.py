"""From a live broker to its snapshot, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.errors import InputError, SnapshotError
from simmodel.scheduling.broker_snapshot import Arriving, BrokerSnapshot, Handed
from simmodel.scheduling.protocol import Estimate
from simmodel.scheduling.snapshot import PolicyState
from simmodel.systems.cluster import Cluster
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.gather import submitted
from simmodel.systems.member import BrokeredJob
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.systems.broker import Broker, Values
    from simmodel.work.job import LiveJob

__all__ = ["capture", "restore"]


def capture(broker: Broker) -> BrokerSnapshot:
    """Return the snapshot of a broker and its clusters."""
    for family in broker._families:
        for sentence in family.waiting_report():
            raise SnapshotError(f"{broker.name} cannot be copied: {sentence}")
    env = broker.env
    prefix = f"{broker.name}."
    return BrokerSnapshot(
        name=broker.name,
        now=float(env._now),
        seed=env.seed,
        clusters=tuple(member.cluster.snapshot() for member in broker.members),
        policy=_policy(broker),
        ties=broker._ties,
        by=broker.by,
        slowdowns=tuple(
            (home or "", member.name, factor)
            for member in broker.members
            for home, factor in member.slowdowns.items()
            if home is not None or factor != 1.0
        ),
        waiting=tuple(_waiting(job) for job in broker._queue),  # type: ignore[arg-type]
        handed=tuple(_handed(broker)),
        arrivals=tuple(tuple(map(_arriving, source.to_come())) for source in _pending(broker)),
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


def _policy(broker: Broker) -> PolicyState:
    scheduler = broker.scheduler
    state = getattr(scheduler.policy, "state", None)
    values = state() if callable(state) else None
    if values is not None:
        try:
            values = json.loads(json.dumps(values))
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"policy {scheduler.policy_name} cannot be copied: {error}") from None
    return PolicyState(scheduler.policy_name, broker._known_as, values, scheduler.due, scheduler._asked_for)


def _home(home: Any) -> str:
    return "" if home is None else str(home.name)


def _waiting(job: BrokeredJob) -> Arriving:
    if job.spec is not None and job.spec.body is not None:
        raise SnapshotError(f"job {job.id} cannot be copied: it has a body, which is a generator")
    home = _home(job.home)
    limit, length = float(job._limit), float(job._length)
    return Arriving(job.id, job.row, float(job.came), int(job.processors), limit, length, job.user, home, job.spec)


def _arriving(values: Values) -> Arriving:
    row, submit, processors, limit, length, name, user, home, spec = values
    if spec is not None and (spec.body is not None or spec.dependencies):
        why = "it has a body, which is a generator" if spec.body is not None else "it names jobs that it comes after"
        raise SnapshotError(f"job {name}, still to arrive, cannot be copied: {why}")
    return Arriving(name, row, submit, processors, limit, length, user, _home(home), spec)


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
    broker.scheduler._asked_for = own and snapshot.policy.asked
    if snapshot.waiting and (snapshot.policy.due or not own):
        broker.scheduler.wake()
    return broker


def _take_over(broker: Broker, snapshot: BrokerSnapshot) -> None:
    """Give the broker the jobs of the snapshot, those of the rows that are not over."""
    coming = [each for source in snapshot.arrivals for each in source]
    known: list[Any] = sorted([*snapshot.handed, *snapshot.waiting, *coming], key=lambda each: each.row)
    rows = {each.row: row for row, each in enumerate(known)}
    if len(rows) != len(known):
        raise InputError(f"rows that differ expected, found {len(known)} jobs in {len(rows)} rows")
    broker.submitted = broker._active = len(known)
    if known:
        broker._tables.append((0, _table(known)))
    live = {member.name: {job.seq: job for job in _alive(member.cluster)} for member in broker.members}
    for each in snapshot.handed:
        job = live.get(each.cluster, {}).get(each.number)
        if job is None:
            raise InputError(f"job {each.id}, handed to {each.cluster} as number {each.number}, is not there")
        row = rows[each.row]
        broker._adopted[job] = row
        broker._named[each.cluster].handed.append((job.index, row))
        if each.start is not None and each.end is not None:
            broker._expected[row] = Estimate(each.start, 0.0, 0.0, each.end - each.start)
    for arriving in snapshot.waiting:
        broker._queue.add(_live(broker, arriving, rows[arriving.row]))
    broker._queue.forget_new()
    for source in snapshot.arrivals:
        values = [
            (
                rows[each.row],
                each.submit,
                each.processors,
                each.limit,
                each.limit if each.length is None else each.length,
                each.id,
                each.user,
                broker.home(each.home or None),
                each.spec,
            )
            for each in source
        ]
        family = Dependencies(broker)  # type: ignore[arg-type]
        broker._families.append(family)
        broker._expect(values, family)


def _live(broker: Broker, each: Arriving, row: int) -> BrokeredJob:
    home = broker.home(each.home or None)
    if each.spec is not None:
        job = broker._live(each.spec, row, home, broker._own)
        job.processors = each.processors
    else:
        length = each.limit if each.length is None else each.length
        job = BrokeredJob(each.id, row, each.submit, each.processors, each.limit, length)
        job.user, job.home = each.user, home
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
