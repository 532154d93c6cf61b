"""Snapshots of clusters as JSON: jobs in columns, what equals the default left out; and reading them back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

import attrs

from simmodel.errors import InputError, SnapshotError, unknown
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.toml import from_dict, to_dict
from simmodel.resources.allocation import Allocation
from simmodel.scheduling.snapshot import (
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

__all__ = ["fields_of", "read_document", "values_of"]

_JOB_FIELDS = {field.name: field for field in attrs.fields(Job)}
_FLOATS = ("submit", "run", "requested", "memory_per_node", "priority", "cancel")


# ---------------------------------------------------------------------- writing


def _number(value: float | None) -> Any:
    return "inf" if value == inf else value


def _plain(value: Any) -> Any:
    """Return a number of numpy's as one of Python's."""
    return value.item() if hasattr(value, "item") else value


@lru_cache(maxsize=64)
def _described(platform: ClusterSpec) -> dict[str, Any]:
    """Return a description as it is once it has been read back: what is a float there is one here."""
    return to_dict(from_dict(to_dict(platform)))


def _spec(spec: Job | None) -> dict[str, Any] | None:
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
            given[name] = _number(float(value)) if name in _FLOATS else _plain(value)
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
        past.whole and [_number(value) for value in past.whole],
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
            columns[name] = [_number(value) for value in columns[name]]
    for name, write in (("spec", _spec), ("past", _past)):
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
            own[name] = [_number(value) for value in own[name]]
    if "held" in own:
        own["held"] = [held and [list(row) for row in held.rows] for held in own["held"]]
    return {**columns, **own}


def _place(state: PlaceState) -> dict[str, Any]:
    given: dict[str, Any] = {"name": state.name}
    if state.down:
        given["down"] = state.down if isinstance(state.down, int) else [list(pair) for pair in state.down]
    if state.windows:
        given["windows"] = [
            [start, _number(end), what if isinstance(what, int) else list(what), begun, why]
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
        "usage": [[_number(life), [list(each) for each in users]] for life, users in snapshot.usage],
        "streams": dict(snapshot.streams),
        "planned": [[_number(each.at), each.priority, each.what, *each.about] for each in snapshot.planned],
        "submitted": snapshot.submitted,
    }
    empty: tuple[Any, ...] = ({}, [])
    return {name: value for name, value in values.items() if value not in empty}


# ---------------------------------------------------------------------- reading


def read_document(given: str | Path) -> tuple[dict[str, Any], str | None]:
    """Return the document in JSON text, or in a file of it, and the name of the file.

    Raises
    ------
    InputError
        where the file is not there, or it is not JSON
    """
    source = None
    text = str(given)
    if isinstance(given, Path) or not text.lstrip().startswith("{"):
        source = text
        opener: Callable[..., Any] = gzip.open if source.endswith(".gz") else open
        try:
            with opener(given, "rt", encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            raise InputError("no such file", source) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"JSON expected, found what cannot be read: {error}", source) from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"JSON expected: {error}", source) from None
    if not isinstance(document, dict):
        raise InputError(f"an object with keys expected, found {type(document).__name__}", source)
    return document, source


class _Reader:
    """Takes values out of a document, and says where the one is that is wrong."""

    def __init__(self, values: Any, source: str | None, place: str = "") -> None:
        self.source = source
        self.place = place
        if not isinstance(values, Mapping):
            raise InputError(f"keys with values expected, found {values!r}", source, place or None)
        self.values = dict(values)

    def error(self, message: str, place: str) -> InputError:
        """Return the error for a place in here."""
        return InputError(message, self.source, f"{self.place}.{place}" if self.place else place)

    def take(self, name: str, check: Callable[[Any], Any], expected: str, default: Any = attrs.NOTHING) -> Any:
        """Return a checked value; the check returns it, or raises ``ValueError`` or ``TypeError``."""
        if name not in self.values:
            if default is attrs.NOTHING:
                raise self.error(f"{expected} expected, found none", name)
            return default
        return self.check(self.values.pop(name), check, expected, name)

    def check(self, value: Any, check: Callable[[Any], Any], expected: str, place: str) -> Any:
        """Return a value as a check returns it."""
        try:
            return check(value)
        except InputError:
            raise
        except (TypeError, ValueError, KeyError, IndexError):
            raise self.error(f"{expected} expected, found {value!r}", place) from None

    def each(self, name: str, check: Callable[[Any], Any], expected: str) -> list[Any]:
        """Return the checked values of a list; none where it is left out."""
        values = self.take(name, _list, "a list", [])
        return [self.check(value, check, expected, f"{name}[{i}]") for i, value in enumerate(values)]

    def column(self, name: str, check: Callable[[Any], Any], expected: str, count: int, default: Any) -> list[Any]:
        """Return the checked values of a column of so many."""
        if name not in self.values:
            return [default] * count
        values = self.take(name, _list, "a list")
        if len(values) != count:
            raise self.error(f"{count} values expected, found {len(values)}", name)
        try:
            return [check(value) for value in values]
        except (TypeError, ValueError, KeyError, IndexError):
            return [self.check(value, check, expected, f"{name}[{i}]") for i, value in enumerate(values)]

    def finish(self, known: Iterable[str]) -> None:
        """Raise where a key is left that nobody took."""
        for name in self.values:
            raise self.error(unknown("key", name, known).message, name)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _size(value: Any) -> int:
    if type(value) is not int or value <= 0:
        raise ValueError
    return value


def _real(value: Any) -> float:
    if type(value) is float:
        number: float = value
    elif value == "inf":
        return inf
    elif type(value) is int:
        number = float(value)
    else:
        raise TypeError
    if number != number:
        raise ValueError
    return number


def _instant(value: Any) -> float:
    number = _real(value)
    if number == inf:
        raise ValueError
    return number


def _seconds(value: Any) -> float:
    number = _real(value)
    if number < 0:
        raise ValueError
    return number


def _maybe(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


def _name(value: Any) -> int | str:
    if type(value) not in (int, str):
        raise TypeError
    return value  # type: ignore[no-any-return]


def _user(value: Any) -> int | str | None:
    return None if value is None else _name(value)


def _rows(value: Any) -> Any:
    rows = [tuple(_count(each) for each in row) for row in _list(value)]
    if any(len(row) != 4 for row in rows):
        raise ValueError
    return Allocation.of(rows)  # type: ignore[arg-type]


def _resumes(value: Any) -> Any:
    return value if value is None or value is True else _rows(value)


def _read_past(value: Any) -> Past | None:
    if value is None:
        return None
    attempts, eligible, first, start, last, executed, whole, resumes = _list(value)
    if whole is not None:
        requested, expected, duration = whole
        whole = (_seconds(requested), _seconds(expected), None if duration is None else _seconds(duration))
    return Past(
        _count(attempts),
        None if eligible is None else _instant(eligible),
        None if first is None else _instant(first),
        None if start is None else _instant(start),
        None if last is None else _instant(last),
        _seconds(executed),
        whole,
        _resumes(resumes),
    )


def _read_spec(value: Any) -> Job | None:
    if value is None:
        return None
    given = dict(value)
    for name in given:
        if name not in _JOB_FIELDS or name == "body":
            raise ValueError
    if "dependencies" in given:
        given["dependencies"] = tuple(
            Dependency(_name(job), after, _seconds(think)) for job, after, think in given["dependencies"]
        )
    if "consumables" in given:
        given["consumables"] = {_text(name): _seconds(amount) for name, amount in dict(given["consumables"]).items()}
    for name in _FLOATS:
        if given.get(name) is not None:
            given[name] = _real(given[name])
    for name in ("processors", "nodes", "cores_per_node", "gpus_per_node"):
        if given.get(name) is not None:
            given[name] = _count(given[name])
    return Job(**given)


_JOB = "a job's fields"
_WORK_KEYS = Work._fields


def _read_works(reader: _Reader, more: Sequence[str] = ()) -> list[Work]:
    """Return the jobs of columns."""
    if not reader.values:
        return []
    names = reader.take("id", _list, "a list of job numbers or names")
    count = len(names)
    ids = [reader.check(value, _name, "a job number or name", f"id[{i}]") for i, value in enumerate(names)]
    requested = reader.column("requested", _seconds, "seconds (0 or more)", count, None)
    if count and requested[0] is None:
        raise reader.error("a list of seconds expected, found none", "requested")
    expected = (
        reader.column("expected", _seconds, "seconds (0 or more)", count, None)
        if "expected" in reader.values
        else requested
    )
    place = reader.values.get("place", "")
    places = [reader.take("place", _text, "a place", "")] * count if isinstance(place, str) else None
    columns = [
        ids,
        reader.column("number", _whole, "a whole number", count, None),
        reader.column("submit", _instant, "an instant in s", count, None),
        reader.column("processors", _size, "a whole number > 0", count, 1),
        requested,
        expected,
        reader.column("duration", _maybe(_seconds), "seconds (0 or more)", count, None),
        reader.column("user", _user, "a user's number or name", count, None),
        reader.column("priority", _instant, "a number", count, 0.0),
        places if places is not None else reader.column("place", _text, "a place", count, ""),
        reader.column("outcome", _text, "completed or timeout", count, "completed"),
        reader.column("spec", _read_spec, _JOB, count, None),
        reader.column("past", _read_past, "what came before", count, None),
    ]
    for name, column in (("number", columns[1]), ("submit", columns[2])):
        if count and column[0] is None:
            raise reader.error("a list expected, found none", name)
    if not more:
        reader.finish(_WORK_KEYS)
    return [Work(*each) for each in zip(*columns, strict=True)]


def _read_runs(reader: _Reader) -> list[RunningWork]:
    if not reader.values:
        return []
    works = _read_works(reader, RunningWork._fields)
    count = len(works)
    started = reader.column("started", _instant, "an instant in s", count, None)
    ends = reader.column("expected_end", _real, "an instant in s", count, None)
    for name, column in (("started", started), ("expected_end", ends)):
        if count and column[0] is None:
            raise reader.error("a list expected, found none", name)
    columns = [
        works,
        started,
        ends,
        reader.column("end", _maybe(_real), "an instant in s", count, None),
        reader.column("held", _maybe(_rows), "parts of nodes ([node, cores, GPUs, bytes], ...)", count, None),
        reader.column("attempt", _size, "a whole number > 0", count, 1),
        reader.column("released", _flag, "true or false", count, False),
    ]
    reader.finish((*_WORK_KEYS, *RunningWork._fields[1:]))
    return [RunningWork(*each) for each in zip(*columns, strict=True)]


def _read_down(value: Any) -> Any:
    if isinstance(value, int):
        return _count(value)
    return tuple((_count(node), _size(times)) for node, times in _list(value))


def _read_window(value: Any) -> Any:
    start, end, what, begun, why = _list(value)
    part = _count(what) if isinstance(what, int) else tuple(_count(node) for node in what)
    return _instant(start), _real(end), part, _flag(begun), _text(why)


def _read_place(value: Any, source: str | None, place: str) -> PlaceState:
    reader = _Reader(value, source, place)
    state = PlaceState(
        reader.take("name", _text, "the name of a place"),
        reader.take("down", _read_down, "processors, or [[node, times], ...]", 0),
        tuple(reader.each("windows", _read_window, "[start, end, what, begun, what for]")),
        reader.take("open", _flag, "true or false", False),
    )
    reader.finish(PlaceState._fields)
    return state


def _read_planned(value: Any) -> Planned:
    at, priority, what, *about = _list(value)
    return Planned(_real(at), _real(priority), _text(what), tuple(about))


def _read_usage(value: Any) -> Any:
    life, users = _list(value)
    return _seconds(life), tuple(
        (_user(user), _seconds(used), _instant(held), _instant(since)) for user, used, held, since in users
    )


def _read_wait(value: Any) -> Any:
    other, what, number, which = _list(value)
    if what not in ("start", "end"):
        raise ValueError
    return _name(other), what, _whole(number), _count(which)


def fields_of(values: Mapping[str, Any], source: str | None = None) -> dict[str, Any]:
    """Return the fields of a snapshot of a cluster from its contents.

    Raises
    ------
    InputError
        where a key is unknown or missing, or a value is not possible
    """
    reader = _Reader(values, source)
    found: dict[str, Any] = {
        "name": reader.take("name", _text, "a name", "cluster"),
        "now": reader.take("now", _instant, "an instant in s"),
        "seed": reader.take("seed", _count, "a whole number", 0),
    }
    platform = reader.take("platform", lambda value: value, "a description of a cluster")
    try:
        found["platform"] = from_dict(platform)
    except InputError as error:
        place = f"platform.{error.place}" if error.place else "platform"
        raise InputError(error.message, source, place) from None
    options = _Reader(reader.take("options", dict, "keys with values", {}), source, "options")
    found["options"] = Options(
        *(options.take(name, _text, "a text", default) for name, default in Options._field_defaults.items())
    )
    options.finish(Options._fields)
    policy = _Reader(reader.take("policy", dict, "keys with values", {}), source, "policy")
    found["policy"] = PolicyState(
        policy.take("name", _text, "a name", "fcfs"),
        policy.take("known_as", _maybe(_text), "a name", None),
        policy.take("state", lambda value: value, "values", None),
        policy.take("due", _flag, "true or false", True),
        policy.take("asked", _flag, "true or false", False),
    )
    policy.finish(PolicyState._fields)
    found["running"] = tuple(_read_runs(_Reader(reader.values.pop("running", {}), source, "running")))
    for name in ("waiting", "held", "blocked", "arrivals"):
        found[name] = tuple(_read_works(_Reader(reader.values.pop(name, {}), source, name)))
    found["new"] = tuple(reader.each("new", _whole, "the number of a job"))
    places = reader.take("places", _list, "a list", [])
    found["places"] = tuple(_read_place(value, source, f"places[{i}]") for i, value in enumerate(places))
    found["consumables"] = tuple(
        reader.each("consumables", lambda pair: (_text(pair[0]), _instant(pair[1])), "[name, free]")
    )
    found["waits"] = tuple(reader.each("waits", _read_wait, "[job, start or end, number, which]"))
    found["over"] = tuple(reader.each("over", lambda pair: (_name(pair[0]), _text(pair[1])), "[job, how it ended]"))
    found["usage"] = tuple(reader.each("usage", _read_usage, "[half-life, [[user, usage, held, instant], ...]]"))
    found["streams"] = tuple(reader.take("streams", dict, "random streams by name", {}).items())
    found["planned"] = tuple(reader.each("planned", _read_planned, "[instant, priority, what, ...]"))
    found["submitted"] = reader.take("submitted", _count, "a whole number", 0)
    reader.finish(found)
    return found
