"""Snapshots of clusters as JSON: jobs in columns, what equals the default left out; and reading them back.

Numbers are written so that they are read back as they were; infinity is the text ``"inf"``. Before the contents stand
``format``, ``schema`` (one more at each change that older versions cannot read) and ``system``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any

import attrs

from simmodel.errors import InputError, SnapshotError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.toml import from_dict, to_dict
from simmodel.resources.allocation import Allocation
from simmodel.snapshots import reading as read
from simmodel.snapshots.cluster import (
    Options,
    Past,
    PlaceState,
    Planned,
    PolicyState,
    RunningWork,
    Snapshot,
    Work,
)
from simmodel.work.job import Dependency, Job

__all__ = ["fields_of", "json_number", "json_spec", "spec_of_json", "values_of"]

_JOB_FIELDS = {field.name: field for field in attrs.fields(Job)}
_FLOATS = ("submit", "run", "requested", "memory_per_node", "priority", "cancel")


# ---------------------------------------------------------------------- writing


def json_number(value: float | None) -> Any:
    """Return a number as JSON can hold it: infinity as a text."""
    return "inf" if value == inf else value


def _plain(value: Any) -> Any:
    """Return a number of numpy's as one of Python's."""
    return value.item() if hasattr(value, "item") else value


@lru_cache(maxsize=64)
def _described(platform: ClusterSpec) -> dict[str, Any]:
    """Return a description as it is once it has been read back: what is a float there is one here."""
    return to_dict(from_dict(to_dict(platform)))


def json_spec(spec: Job | None) -> dict[str, Any] | None:
    """Return a job as plain values; what equals the default is left out."""
    if spec is None:
        return None
    if spec.body is not None:
        raise SnapshotError(f"job {spec.id}: work in a generator body cannot be copied")
    given: dict[str, Any] = {}
    for name, field in _JOB_FIELDS.items():
        value = getattr(spec, name)
        if name == "dependencies":
            if value:
                given[name] = [[_plain(each.job), each.after, float(each.think_time)] for each in value]
        elif name == "consumables":
            if value:
                given[name] = {key: float(amount) for key, amount in value.items()}
        elif value != field.default or name == "processors":
            given[name] = json_number(float(value)) if name in _FLOATS else _plain(value)
    return given


def _past(past: Past | None) -> Any:
    if past is None:
        return None
    return [
        past.attempts,
        past.eligible,
        past.first_start,
        past.attempt_start,
        past.last_start,
        past.executed,
        past.whole and [json_number(value) for value in past.whole],
        [list(row) for row in past.resumes.rows] if isinstance(past.resumes, Allocation) else past.resumes,
    ]


def _works(works: Sequence[Work]) -> dict[str, Any]:
    """Return jobs as columns; columns of defaults are left out, and those of one place are a text."""
    if not works:
        return {}
    columns: dict[str, Any] = dict(zip(Work._fields, map(list, zip(*works, strict=True)), strict=True))
    for name, default in Work._field_defaults.items():
        if columns[name].count(default) == len(works):
            del columns[name]
    if columns["expected"] == columns["requested"]:
        del columns["expected"]
    if columns["duration"].count(None) == len(works):
        del columns["duration"]
    if "place" in columns and columns["place"].count(columns["place"][0]) == len(works):
        columns["place"] = columns["place"][0]
    for name in ("requested", "expected", "duration"):
        if name in columns and inf in columns[name]:
            columns[name] = [json_number(value) for value in columns[name]]
    for name, write in (("spec", json_spec), ("past", _past)):
        if name in columns:
            columns[name] = [write(value) for value in columns[name]]
    return columns


def _runs(runs: Sequence[RunningWork]) -> dict[str, Any]:
    if not runs:
        return {}
    columns = _works([run.work for run in runs])
    own: dict[str, Any] = dict(
        zip(RunningWork._fields[1:], map(list, zip(*[run[1:] for run in runs], strict=True)), strict=True)
    )
    for name, default in RunningWork._field_defaults.items():
        if own[name].count(default) == len(runs):
            del own[name]
    for name in ("expected_end", "end"):
        if name in own and inf in own[name]:
            own[name] = [json_number(value) for value in own[name]]
    if "held" in own:
        own["held"] = [held and [list(row) for row in held.rows] for held in own["held"]]
    return {**columns, **own}


def _place(state: PlaceState) -> dict[str, Any]:
    given: dict[str, Any] = {"name": state.name}
    if state.down:
        given["down"] = state.down if isinstance(state.down, int) else [list(pair) for pair in state.down]
    if state.windows:
        given["windows"] = [
            [start, json_number(end), what if isinstance(what, int) else list(what), begun, why]
            for start, end, what, begun, why in state.windows
        ]
    if state.open:
        given["open"] = True
    return given


def values_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the contents of a snapshot as JSON can hold them."""
    policy = snapshot.policy
    values: dict[str, Any] = {
        "name": snapshot.name,
        "now": snapshot.now,
        "seed": snapshot.seed,
        "platform": _described(snapshot.platform),
        "options": snapshot.options._asdict(),
        "policy": policy._asdict(),
        "running": _runs(snapshot.running),
        **{name: _works(getattr(snapshot, name)) for name in ("waiting", "held", "blocked", "arrivals")},
        "new": list(snapshot.new),
        "places": [_place(state) for state in snapshot.places],
        "consumables": [list(pair) for pair in snapshot.consumables],
        "waits": [list(each) for each in snapshot.waits],
        "over": [list(each) for each in snapshot.over],
        "usage": [[json_number(life), [list(each) for each in users]] for life, users in snapshot.usage],
        "streams": dict(snapshot.streams),
        "planned": [[json_number(each.at), each.priority, each.what, *each.about] for each in snapshot.planned],
        "submitted": snapshot.submitted,
    }
    empty: tuple[Any, ...] = ({}, [])
    return {name: value for name, value in values.items() if value not in empty}


# ---------------------------------------------------------------------- reading


def _rows(value: Any) -> Any:
    rows = [tuple(read.count(each) for each in row) for row in read.items(value)]
    if any(len(row) != 4 for row in rows):
        raise ValueError
    return Allocation.of(rows)  # type: ignore[arg-type]


def _resumes(value: Any) -> Any:
    return value if value is None or value is True else _rows(value)


def _read_past(value: Any) -> Past | None:
    if value is None:
        return None
    attempts, eligible, first, start, last, executed, whole, resumes = read.items(value)
    if whole is not None:
        requested, expected, duration = whole
        whole = (read.seconds(requested), read.seconds(expected), None if duration is None else read.seconds(duration))
    return Past(
        read.count(attempts),
        None if eligible is None else read.instant(eligible),
        None if first is None else read.instant(first),
        None if start is None else read.instant(start),
        None if last is None else read.instant(last),
        read.seconds(executed),
        whole,
        _resumes(resumes),
    )


def spec_of_json(value: Any) -> Job | None:
    """Return the job of plain values (see :func:`json_spec`); raises what a check raises."""
    if value is None:
        return None
    given = dict(value)
    for name in given:
        if name not in _JOB_FIELDS or name == "body":
            raise ValueError
    if "dependencies" in given:
        given["dependencies"] = tuple(
            Dependency(read.name(job), after, read.seconds(think)) for job, after, think in given["dependencies"]
        )
    if "consumables" in given:
        given["consumables"] = {
            read.text(name): read.seconds(amount) for name, amount in dict(given["consumables"]).items()
        }
    for name in _FLOATS:
        if given.get(name) is not None:
            given[name] = read.real(given[name])
    for name in ("processors", "nodes", "cores_per_node", "gpus_per_node"):
        if given.get(name) is not None:
            given[name] = read.count(given[name])
    return Job(**given)


_JOB = "a job's fields"
_WORK_KEYS = Work._fields


def _read_works(reader: read.Reader, more: Sequence[str] = ()) -> list[Work]:
    """Return the jobs of columns."""
    if not reader.values:
        return []
    names = reader.take("id", read.items, "a list of job numbers or names")
    count = len(names)
    ids = [reader.check(value, read.name, "a job number or name", f"id[{i}]") for i, value in enumerate(names)]
    requested = reader.column("requested", read.seconds, "seconds (0 or more)", count, None)
    if count and requested[0] is None:
        raise reader.error("a list of seconds expected, found none", "requested")
    expected = (
        reader.column("expected", read.seconds, "seconds (0 or more)", count, None)
        if "expected" in reader.values
        else requested
    )
    place = reader.values.get("place", "")
    places = [reader.take("place", read.text, "a place", "")] * count if isinstance(place, str) else None
    columns = [
        ids,
        reader.column("number", read.whole, "a whole number", count, None),
        reader.column("submit", read.instant, "an instant in s", count, None),
        reader.column("processors", read.size, "a whole number > 0", count, 1),
        requested,
        expected,
        reader.column("duration", read.maybe(read.seconds), "seconds (0 or more)", count, None),
        reader.column("user", read.user, "a user's number or name", count, None),
        reader.column("priority", read.instant, "a number", count, 0.0),
        places if places is not None else reader.column("place", read.text, "a place", count, ""),
        reader.column("outcome", read.text, "completed or timeout", count, "completed"),
        reader.column("spec", spec_of_json, _JOB, count, None),
        reader.column("past", _read_past, "what came before", count, None),
    ]
    for name, column in (("number", columns[1]), ("submit", columns[2])):
        if count and column[0] is None:
            raise reader.error("a list expected, found none", name)
    if not more:
        reader.finish(_WORK_KEYS)
    return [Work(*each) for each in zip(*columns, strict=True)]


def _read_runs(reader: read.Reader) -> list[RunningWork]:
    if not reader.values:
        return []
    works = _read_works(reader, RunningWork._fields)
    count = len(works)
    started = reader.column("started", read.instant, "an instant in s", count, None)
    ends = reader.column("expected_end", read.real, "an instant in s", count, None)
    for name, column in (("started", started), ("expected_end", ends)):
        if count and column[0] is None:
            raise reader.error("a list expected, found none", name)
    columns = [
        works,
        started,
        ends,
        reader.column("end", read.maybe(read.real), "an instant in s", count, None),
        reader.column("held", read.maybe(_rows), "parts of nodes ([node, cores, GPUs, bytes], ...)", count, None),
        reader.column("attempt", read.size, "a whole number > 0", count, 1),
        reader.column("released", read.flag, "true or false", count, False),
    ]
    reader.finish((*_WORK_KEYS, *RunningWork._fields[1:]))
    return [RunningWork(*each) for each in zip(*columns, strict=True)]


def _read_down(value: Any) -> Any:
    if isinstance(value, int):
        return read.count(value)
    return tuple((read.count(node), read.size(times)) for node, times in read.items(value))


def _read_window(value: Any) -> Any:
    start, end, what, begun, why = read.items(value)
    part = read.count(what) if isinstance(what, int) else tuple(read.count(node) for node in what)
    return read.instant(start), read.real(end), part, read.flag(begun), read.text(why)


def _read_place(value: Any, source: str | None, place: str) -> PlaceState:
    reader = read.Reader(value, source, place)
    state = PlaceState(
        reader.take("name", read.text, "the name of a place"),
        reader.take("down", _read_down, "processors, or [[node, times], ...]", 0),
        tuple(reader.each("windows", _read_window, "[start, end, what, begun, what for]")),
        reader.take("open", read.flag, "true or false", False),
    )
    reader.finish(PlaceState._fields)
    return state


def _read_planned(value: Any) -> Planned:
    at, priority, what, *about = read.items(value)
    return Planned(read.real(at), read.real(priority), read.text(what), tuple(about))


def _read_usage(value: Any) -> Any:
    life, users = read.items(value)
    return read.seconds(life), tuple(
        (read.user(user), read.seconds(used), read.instant(held), read.instant(since))
        for user, used, held, since in users
    )


def _read_wait(value: Any) -> Any:
    other, what, number, which = read.items(value)
    if what not in ("start", "end"):
        raise ValueError
    return read.name(other), what, read.whole(number), read.count(which)


def fields_of(values: Mapping[str, Any], source: str | None = None) -> dict[str, Any]:
    """Return the fields of a snapshot of a cluster from its contents.

    Raises
    ------
    InputError
        where a key is unknown or missing, or a value is not possible
    """
    reader = read.Reader(values, source)
    found: dict[str, Any] = {
        "name": reader.take("name", read.text, "a name", "cluster"),
        "now": reader.take("now", read.instant, "an instant in s"),
        "seed": reader.take("seed", read.count, "a whole number", 0),
    }
    platform = reader.take("platform", lambda value: value, "a description of a cluster")
    try:
        found["platform"] = from_dict(platform)
    except InputError as error:
        place = f"platform.{error.place}" if error.place else "platform"
        raise InputError(error.message, source, place) from None
    options = read.Reader(reader.take("options", dict, "keys with values", {}), source, "options")
    found["options"] = Options(
        *(options.take(name, read.text, "a text", default) for name, default in Options._field_defaults.items())
    )
    options.finish(Options._fields)
    policy = read.Reader(reader.take("policy", dict, "keys with values", {}), source, "policy")
    found["policy"] = PolicyState(
        policy.take("name", read.text, "a name", "fcfs"),
        policy.take("known_as", read.maybe(read.text), "a name", None),
        policy.take("state", lambda value: value, "values", None),
        policy.take("due", read.flag, "true or false", True),
        policy.take("asked", read.flag, "true or false", False),
    )
    policy.finish(PolicyState._fields)
    found["running"] = tuple(_read_runs(read.Reader(reader.values.pop("running", {}), source, "running")))
    for name in ("waiting", "held", "blocked", "arrivals"):
        found[name] = tuple(_read_works(read.Reader(reader.values.pop(name, {}), source, name)))
    found["new"] = tuple(reader.each("new", read.whole, "the number of a job"))
    places = reader.take("places", read.items, "a list", [])
    found["places"] = tuple(_read_place(value, source, f"places[{i}]") for i, value in enumerate(places))
    found["consumables"] = tuple(
        reader.each("consumables", lambda pair: (read.text(pair[0]), read.instant(pair[1])), "[name, free]")
    )
    found["waits"] = tuple(reader.each("waits", _read_wait, "[job, start or end, number, which]"))
    found["over"] = tuple(
        reader.each("over", lambda pair: (read.name(pair[0]), read.text(pair[1])), "[job, how it ended]")
    )
    found["usage"] = tuple(reader.each("usage", _read_usage, "[half-life, [[user, usage, held, instant], ...]]"))
    found["streams"] = tuple(reader.take("streams", dict, "random streams by name", {}).items())
    found["planned"] = tuple(reader.each("planned", _read_planned, "[instant, priority, what, ...]"))
    found["submitted"] = reader.take("submitted", read.count, "a whole number", 0)
    reader.finish(found)
    return found
