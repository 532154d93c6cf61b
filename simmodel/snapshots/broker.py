"""Snapshots of a broker with all its clusters, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import attrs

from simmodel.errors import InputError
from simmodel.snapshots import reading as read
from simmodel.snapshots.cluster import PolicyState, Snapshot, SystemSnapshot, register_snapshot
from simmodel.snapshots.codec import fields_of, json_number, json_spec, spec_of_json, values_of
from simmodel.work.job import Job

__all__ = ["Arriving", "BrokerSnapshot", "Handed"]

POLICY = PolicyState(name="sgs-t", known_as="sgs-t")


class Arriving(NamedTuple):
    """A job that a broker has not handed over, or that is still to arrive.

    ``limit``: s, requested; ``length``: s that it will run, where that is known; both as on a cluster without a
    slowdown. ``home``: the name of its cluster; empty: none. ``family``: the number of the jobs it came with, among
    which those are that it may come after.
    """

    id: int | str
    row: int
    submit: float
    processors: int
    limit: float
    length: float | None
    user: int | str | None = None
    home: str = ""
    spec: Job | None = None
    family: int = 0


class Handed(NamedTuple):
    """A job that was handed to a cluster and is not over: its row in the record, its number there, as it came.

    ``start``, ``end``: s, what was expected of its cluster, where the policy asked. ``eligible``: s, when all had come
    that it came after. ``family``: as of :class:`Arriving`.
    """

    row: int
    cluster: str
    number: int
    id: int | str
    submit: float
    processors: int
    asked: float
    origin: str = ""
    user: int | str | None = None
    start: float | None = None
    end: float | None = None
    eligible: float | None = None
    family: int = 0


@register_snapshot
@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class BrokerSnapshot(SystemSnapshot):
    """A broker and its clusters at one instant.

    Parameters
    ----------
    name, now, seed
        of the broker; s; of its random streams
    clusters
        the snapshot of each cluster, in the order of the places
    policy, ties, by
        the policy and what it remembers; the rule for ties; what estimates go by
    slowdowns
        (home or empty, cluster, factor)
    waiting, blocked
        what waits for the policy, in order; what waits for other jobs
    handed
        what was handed over and is not over
    arrivals
        what is still to arrive, source by source
    waits
        for whom blocked jobs wait: (family, the other's id, ``"start"`` or ``"end"``, the job's row, which dependency)
    over
        (family, id, how it ended) of the jobs that are over and that arrivals name
    planned
        (s, ``"eligible"`` or ``"cancel"``, row) of blocked jobs: a think time that ends, a job that is withdrawn
    streams
        random streams of the broker by name, with their states

    ``simulate(snapshot)`` goes on from it, and so does :meth:`Broker.from_snapshot
    <simmodel.systems.broker.system.Broker.from_snapshot>`.
    """

    system: ClassVar[str] = "broker"

    name: str = "broker"
    now: float = 0.0
    seed: int = 0
    clusters: tuple[Snapshot, ...]
    policy: PolicyState = POLICY
    ties: str | None = None
    by: str = "requested"
    slowdowns: tuple[tuple[str, str, float], ...] = ()
    waiting: tuple[Arriving, ...] = ()
    blocked: tuple[Arriving, ...] = ()
    handed: tuple[Handed, ...] = ()
    arrivals: tuple[tuple[Arriving, ...], ...] = ()
    waits: tuple[tuple[int, int | str, str, int, int], ...] = ()
    over: tuple[tuple[int, int | str, str], ...] = ()
    planned: tuple[tuple[float, str, int], ...] = ()
    streams: tuple[tuple[str, dict[str, Any]], ...] = ()

    def __repr__(self) -> str:
        running = sum(len(cluster.running) for cluster in self.clusters)
        waiting = sum(len(cluster.waiting) for cluster in self.clusters) + len(self.waiting) + len(self.blocked)
        names = ", ".join(cluster.name for cluster in self.clusters)
        return f"<BrokerSnapshot of {names} at {self.now:g} s: {running} running, {waiting} waiting>"

    @property
    def unfinished(self) -> int:
        """How many jobs it holds."""
        own = len(self.waiting) + len(self.blocked) + sum(map(len, self.arrivals))
        return own + sum(cluster.unfinished for cluster in self.clusters)

    def reseeded(self) -> Self:
        """Return the snapshot without its random streams, and without those of its clusters."""
        return attrs.evolve(self, streams=(), clusters=tuple(each.reseeded() for each in self.clusters))

    def expected(self, *, actual: bool = False) -> BrokerSnapshot:
        """Return what a what-if may see, as :meth:`simmodel.snapshots.cluster.Snapshot.expected` does."""
        waiting, blocked = self.waiting, self.blocked
        if not actual:
            waiting, blocked = (tuple(map(_seen, jobs)) for jobs in (waiting, blocked))
        return attrs.evolve(
            self,
            clusters=tuple(cluster.expected(actual=actual) for cluster in self.clusters),
            waiting=waiting,
            blocked=blocked,
            arrivals=(),
            planned=tuple(each for each in self.planned if each[1] != "cancel"),
            over=(),
            streams=(),
            seed=0,
        )

    def values(self) -> dict[str, Any]:
        """Return the contents as JSON can hold them."""
        values: dict[str, Any] = {
            "name": self.name,
            "now": self.now,
            "seed": self.seed,
            "clusters": [values_of(cluster) for cluster in self.clusters],
            "policy": self.policy._asdict(),
            "ties": self.ties,
            "by": self.by,
            "slowdowns": [list(each) for each in self.slowdowns],
            "waiting": _arriving(self.waiting),
            "blocked": _arriving(self.blocked),
            "handed": _columns(Handed, self.handed),
            "arrivals": [_arriving(source) for source in self.arrivals],
            "waits": [list(each) for each in self.waits],
            "over": [list(each) for each in self.over],
            "planned": [list(each) for each in self.planned],
            "streams": dict(self.streams),
        }
        empty: tuple[Any, ...] = ({}, [], None)
        return {name: value for name, value in values.items() if value not in empty}

    @classmethod
    def of_values(cls, values: Mapping[str, Any], source: str | None = None) -> Self:
        """Return the snapshot of such contents; raises ``InputError`` where a key or a value is not possible."""
        reader = read.Reader(values, source)
        clusters = reader.take("clusters", read.items, "a list of clusters")
        found: dict[str, Any] = {"clusters": tuple(_cluster(each, i, source) for i, each in enumerate(clusters))}
        found["name"] = reader.take("name", read.text, "a name", "broker")
        found["now"] = reader.take("now", read.instant, "an instant in s")
        found["seed"] = reader.take("seed", read.count, "a whole number", 0)
        policy = read.Reader(reader.take("policy", dict, "keys with values"), source, "policy")
        found["policy"] = PolicyState(
            policy.take("name", read.text, "a name"),
            policy.take("known_as", read.maybe(read.text), "a name", None),
            policy.take("state", lambda value: value, "values", None),
            policy.take("due", read.flag, "true or false", True),
            policy.take("asked", read.flag, "true or false", False),
        )
        policy.finish(PolicyState._fields)
        found["ties"] = reader.take("ties", read.maybe(read.text), "a rule for ties", None)
        found["by"] = reader.take("by", read.text, "requested or actual", "requested")
        slowdowns = reader.each(
            "slowdowns", lambda each: (read.text(each[0]), read.text(each[1]), read.real(each[2])), "a slowdown"
        )
        found["slowdowns"] = tuple(slowdowns)
        found["waiting"] = _read(Arriving, reader.values.pop("waiting", {}), source, "waiting")
        found["blocked"] = _read(Arriving, reader.values.pop("blocked", {}), source, "blocked")
        found["handed"] = _read(Handed, reader.values.pop("handed", {}), source, "handed")
        sources = reader.take("arrivals", read.items, "a list of sources", [])
        found["arrivals"] = tuple(_read(Arriving, each, source, f"arrivals[{i}]") for i, each in enumerate(sources))
        waits = reader.each("waits", _read_wait, "[family, job, start or end, row, which]")
        found["waits"] = tuple(waits)
        over = reader.each(
            "over", lambda each: (read.count(each[0]), read.name(each[1]), read.text(each[2])), "[family, job, how]"
        )
        found["over"] = tuple(over)
        planned = reader.each("planned", _read_planned, "[instant, eligible or cancel, row]")
        found["planned"] = tuple(planned)
        found["streams"] = tuple(reader.take("streams", dict, "random streams by name", {}).items())
        reader.finish(found)
        return cls(**found)


def _seen(job: Arriving) -> Arriving:
    spec = job.spec
    if spec is not None:
        spec = attrs.evolve(spec, run=job.limit, body=None, cancel=None)
    return job._replace(length=None, spec=spec)


def _read_wait(value: Any) -> tuple[int, int | str, str, int, int]:
    family, name, what, row, which = read.items(value)
    if what not in ("start", "end"):
        raise ValueError
    return read.count(family), read.name(name), what, read.count(row), read.count(which)


def _read_planned(value: Any) -> tuple[float, str, int]:
    at, what, row = read.items(value)
    if what not in ("eligible", "cancel"):
        raise ValueError
    return read.instant(at), what, read.count(row)


def _cluster(values: Any, i: int, source: str | None) -> Snapshot:
    try:
        return Snapshot(**fields_of(values, source))
    except InputError as error:
        place = f"clusters[{i}].{error.place}" if error.place else f"clusters[{i}]"
        raise InputError(error.message, source, place) from None


def _columns(kind: Any, rows: Sequence[Any]) -> dict[str, Any]:
    """Return rows as columns; those of defaults alone are left out."""
    if not rows:
        return {}
    columns: dict[str, Any] = dict(zip(kind._fields, map(list, zip(*rows, strict=True)), strict=True))
    for name, default in kind._field_defaults.items():
        if columns[name].count(default) == len(rows):
            del columns[name]
    for name in ("limit", "length", "asked", "start", "end"):
        if name in columns:
            columns[name] = [json_number(value) for value in columns[name]]
    return columns


def _arriving(rows: Sequence[Arriving]) -> dict[str, Any]:
    columns = _columns(Arriving, rows)
    if "spec" in columns:
        columns["spec"] = [json_spec(spec) for spec in columns["spec"]]
    return columns


_CHECKS: dict[str, tuple[Any, str]] = {
    "id": (read.name, "a job number or name"),
    "row": (read.count, "a row"),
    "submit": (read.instant, "an instant in s"),
    "processors": (read.size, "a whole number > 0"),
    "limit": (read.seconds, "seconds (0 or more)"),
    "length": (read.maybe(read.seconds), "seconds (0 or more)"),
    "asked": (read.seconds, "seconds (0 or more)"),
    "user": (read.user, "a user's number or name"),
    "home": (read.text, "a cluster"),
    "origin": (read.text, "a cluster"),
    "cluster": (read.text, "a cluster"),
    "number": (read.whole, "a whole number"),
    "spec": (spec_of_json, "a job's fields"),
    "start": (read.maybe(read.real), "an instant in s"),
    "end": (read.maybe(read.real), "an instant in s"),
    "eligible": (read.maybe(read.instant), "an instant in s"),
    "family": (read.count, "the number of a family"),
}


def _read(kind: Any, values: Any, source: str | None, place: str) -> tuple[Any, ...]:
    reader = read.Reader(values, source, place)
    if not reader.values:
        return ()
    count = len(reader.check(reader.values.get("id"), read.items, "a list of job numbers or names", "id"))
    columns = []
    for name in kind._fields:
        if name not in reader.values and name not in kind._field_defaults:
            raise reader.error(f"a list of {count} expected, found none", name)
        columns.append(reader.column(name, *_CHECKS[name], count, kind._field_defaults.get(name)))
    reader.finish(kind._fields)
    return tuple(kind(*row) for row in zip(*columns, strict=True))
