"""Snapshots of machines: the tasks that are not done, where data lie and move, and what each processor is doing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar, Self

import attrs

from simmodel.errors import InputError, unknown
from simmodel.platform.machine import MachineSpec
from simmodel.platform.toml import from_dict, to_dict
from simmodel.snapshots.cluster import PolicyState, SystemSnapshot, register_snapshot

__all__ = ["MachineSnapshot"]

POLICY = PolicyState(name="hrr", known_as="hrr")
Columns = Mapping[str, Any]


@register_snapshot
@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class MachineSnapshot(SystemSnapshot):
    """A machine at one instant; tasks and data are numbered, and everything else speaks of them by their numbers.

    Parameters
    ----------
    name, now, seed
        of the machine; s; of its random streams
    platform, options, policy
        as built: ``decide``, ``overlap``, ``transfers``, ``contention``, ``stream``; the policy and what it remembers
    sets
        of each task set of which tasks are not done: ``name``, ``at``, and what of ``reconfiguration`` it fixes
    tasks
        columns of the tasks that are not done: what they are, where they are, and the ``stamps`` of their phases
    data
        columns of the data that lie somewhere, or that such tasks read or write
    pools, places
        of each: what lies in it and waits for room; its queue, and what is loaded
    flights
        the data on their way, in the order in which they left
    waiting, new
        the tasks without a place, in order, and how many of them came since the last decision
    order
        the tasks that processors work on, in the order in which what they wait for comes
    loads
        where in the interval of a processor the reconfiguration of each family lies
    streams
        random streams by name, with their states
    alarms
        instants at which the policy asked to decide
    """

    system: ClassVar[str] = "machine"

    name: str = "machine"
    now: float = 0.0
    seed: int = 0
    platform: MachineSpec
    options: Mapping[str, Any]
    policy: PolicyState = POLICY
    sets: tuple[Columns, ...] = ()
    tasks: Columns
    data: Columns
    pools: tuple[Columns, ...] = ()
    places: tuple[Columns, ...] = ()
    flights: tuple[Columns, ...] = ()
    waiting: tuple[int, ...] = ()
    new: int = 0
    order: tuple[int, ...] = ()
    loads: tuple[tuple[str, float], ...] = ()
    streams: tuple[tuple[str, dict[str, Any]], ...] = ()
    alarms: tuple[float, ...] = ()

    def __repr__(self) -> str:
        running = sum(stamps is not None for stamps in self.tasks["stamps"])
        return (
            f"<MachineSnapshot of {self.name} at {self.now:g} s: {len(self.tasks['id'])} tasks not done, "
            f"{running} of them on processors>"
        )

    @property
    def unfinished(self) -> int:
        """How many tasks it holds."""
        return len(self.tasks["id"])

    def expected(self, *, actual: bool = False) -> MachineSnapshot:
        """Return what a what-if may see: no work to come, and run times without the error of their model.

        What runs is expected to end when a policy expects it to, and now where that is past. With ``actual`` run times
        stay what they are.
        """
        columns = self.tasks
        here = [i for i, state in enumerate(columns["state"]) if state != "to come"]
        number = {i: k for k, i in enumerate(here)}
        kept = dict.fromkeys(columns["set"][i] for i in here)
        set_of = {s: k for k, s in enumerate(kept)}
        tasks = {name: [column[i] for i in here] for name, column in columns.items()}
        tasks["set"] = [set_of[s] for s in tasks["set"]]
        tasks["parents"] = [[number[i] for i in found if i in number] for found in tasks["parents"]]
        if not actual:
            tasks["error"] = [0.0] * len(here)

        def renamed(found: Any) -> Any:
            return number[found] if isinstance(found, int) else found

        places = tuple(
            {
                **place,
                "queue": [number[i] for i in place["queue"]],
                "ranked": [[priority, rank, number[i]] for priority, rank, i in place["ranked"]],
                "running": [[number[i], started, end] for i, started, end in place["running"]],
                "loaded": renamed(place["loaded"]),
                "last_family": renamed(place["last_family"]),
            }
            for place in self.places
        )
        flights = tuple(
            {**flight, **{name: renamed(flight[name]) for name in ("owner", "task") if name in flight}}
            for flight in self.flights
        )
        given = [None if s is None else set_of.get(s) for s in self.data["given"]]
        return attrs.evolve(
            self,
            sets=tuple(self.sets[s] for s in kept),
            tasks=tasks,
            data={**self.data, "given": given},
            places=places,
            flights=flights,
            waiting=tuple(number[i] for i in self.waiting),
            order=tuple(number[i] if i >= 0 else i for i in self.order),
            streams=(),
        )

    def values(self) -> dict[str, Any]:
        """Return the contents as JSON can hold them."""
        values = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        values["platform"] = to_dict(from_dict(to_dict(self.platform)))  # a float where it reads back as one
        values["policy"] = self.policy._asdict()
        plain: dict[str, Any] = json.loads(json.dumps(_finite(values)))
        return plain

    @classmethod
    def of_values(cls, values: Mapping[str, Any], source: str | None = None) -> Self:
        """Return the snapshot of such contents.

        Raises
        ------
        InputError
            where a key is missing or unknown, or a value is not possible
        """
        fields = {field.name: field for field in attrs.fields(cls)}
        given = dict(values)
        for name in given:
            if name not in fields:
                raise InputError(unknown("key", name, fields).message, source, name)
        for name, field in fields.items():
            if field.default is attrs.NOTHING and name not in given:
                raise InputError("a value expected, found none", source, name)
        given["platform"] = from_dict(given["platform"], source=source)
        try:
            given["policy"] = PolicyState(**given["policy"])
            for name in ("sets", "pools", "places", "flights", "waiting", "order", "alarms"):
                given[name] = tuple(given[name])
            for name in ("loads", "streams"):
                given[name] = tuple((key, value) for key, value in given[name])
            given = {
                name: _infinite(value) if name not in ("platform", "policy") else value for name, value in given.items()
            }
            lengths = {name: len(column) for name, column in given["tasks"].items()}
            if len(set(lengths.values())) > 1:
                raise InputError(f"columns of one length expected, found {lengths}", source, "tasks")
            return cls(**given)
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(f"a snapshot of a machine expected, found what is none: {error}", source) from None


def _finite(value: Any) -> Any:
    """Return plain values with infinity as a text, which JSON can hold."""
    if isinstance(value, float):
        return "inf" if value == inf else value
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value


def _infinite(value: Any) -> Any:
    """Return values with infinity as a number again."""
    if value == "inf":
        return inf
    if isinstance(value, Mapping):
        return {key: _infinite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_infinite(each) for each in value])
    return value
