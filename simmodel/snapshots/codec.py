"""The codec for the states of all systems: typed values to JSON values and back; each value read is checked.

An attrs class is an object without the fields that equal their default; a ``NamedTuple`` is a list; ``Columns`` are
rows written as an object of columns; ``Keyed`` are pairs written as an object. Infinity is the string ``"inf"``.
Numbers survive the round trip exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import inf
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import attrs
from cattrs import Converter

from simmodel.foundation.errors import InputError, Plain, SnapshotError, shown
from simmodel.platform.broker import SystemSpec
from simmodel.platform.kinds import KINDS, to_dict
from simmodel.platform.strict import inside, made_from, strict_converter
from simmodel.platform.toml import from_dict
from simmodel.resources.pools.allocation import Allocation
from simmodel.snapshots.row_columns import Read, RowTable, Write, items
from simmodel.snapshots.types import (
    Check,
    Count,
    Form,
    Layout,
    arms_of,
    base_of,
    fields_of,
    is_mapping,
    is_row,
    is_union,
)
from simmodel.work.elastic import Amdahl, MeasuredSpeedup, Speedup
from simmodel.work.job import PROGRAM, Job
from simmodel.work.traffic import Messages, Phases, Traffic

__all__ = ["read_state", "register_state", "write_fields"]

T = TypeVar("T")


def read_state(values: Plain, kind: type[T]) -> T:
    """Return the state of a type from plain values.

    Raises
    ------
    InputError
        if a key is unknown or missing, or a value is invalid; with its path inside the values

    >>> read_state({"job": 7, "after": "start"}, Job)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: after: unknown key 'after'; known keys: id, submit, processors, run, ...
    nodes, cores_per_node, gpus_per_node, memory_per_node, consumables, user, group, queue, partition, priority,
    dependencies, cancel, on_preempt, keeps_work, checkpoint, grace, name, partitions, inputs, outputs, site, elastic,
    bandwidth, traffic, compute, exclusive, options, outcome, exit_code, chunks, gpu,
    gpu_memory, slack, power, frequency_sensitivity
    """
    found: T = _converter().structure(values, kind)
    return found


def write_fields(state: attrs.AttrsInstance) -> dict[str, Any]:
    """Return the fields of an attrs object that differ from their default, as plain values."""
    kind: Any = type(state)
    return _object_writer(kind)(state)


def register_state(kind: type[T], read: Callable[[Plain], T], write: Write) -> None:
    """Register custom functions that read and write a class."""
    _OWN[kind] = (read, write)


# ---------------------------------------------------------------------- classes with a special form


def _read_allocation(value: Plain) -> Allocation:
    told = isinstance(value, list | tuple) and any(isinstance(row, list | tuple) and len(row) == 5 for row in value)
    devices = (tuple[tuple[Count, Count], ...],) if told else ()
    rows = _reader(tuple[tuple[(Count, Count, float if told else Count, Count, *devices)], ...])(value, tuple)  # type: ignore[misc]
    try:
        return Allocation.of(rows)
    except ValueError as error:
        raise InputError(str(error)) from None


def _write_job(job: Job) -> dict[str, Any]:
    if job.has_body:
        raise SnapshotError(f"job {job.id} cannot be copied: {job.program}")
    # The number of processors is always written: its default depends on the rest of the request.
    return {"processors": _plain(job.processors), **_object_writer(Job)(job)}


def _plain(value: Any) -> Any:
    """Return a NumPy number as a Python number."""
    return value.item() if hasattr(value, "item") else value


def _described(spec: SystemSpec) -> dict[str, Any]:
    """Return a spec as plain values in the form they have after a round trip, with floats as floats."""
    return to_dict(from_dict(to_dict(spec)))


@lru_cache(maxsize=64)
def _described_once(spec: SystemSpec) -> dict[str, Any]:
    return _described(spec)


def _write_spec(spec: SystemSpec) -> dict[str, Any]:
    try:
        return _described_once(spec)  # type: ignore[arg-type]
    except TypeError:  # specs with unhashable options
        return _described(spec)


def _is_spec(kind: Form) -> bool:
    return kind in KINDS.values()


def _spec_reader(kind: type) -> Read:
    def read(value: Plain, _kind: Form) -> Any:
        spec = from_dict(value)  # type: ignore[arg-type]  # it checks the value itself
        if not isinstance(spec, kind):
            raise InputError(f"must be a {kind.__name__}, got a {type(spec).__name__}", place="kind")
        return spec

    return read


def _read_speedup(value: Plain) -> Speedup:
    if isinstance(value, Mapping) and set(value) <= {"serial"}:
        return _reader(Amdahl)(value, Amdahl)  # type: ignore[no-any-return]
    if isinstance(value, Mapping) and set(value) == {"points"}:
        return _reader(MeasuredSpeedup)(value, MeasuredSpeedup)  # type: ignore[no-any-return]
    raise InputError(f"must be {{'serial': share}} or {{'points': [[processors, speed-up], ...]}}, got {shown(value)}")


def _write_speedup(speedup: Speedup) -> dict[str, Any]:
    if isinstance(speedup, Amdahl | MeasuredSpeedup):
        kind: Any = type(speedup)
        return _object_writer(kind)(speedup)
    raise SnapshotError(f"speedup: must be Amdahl(...) or a table to be written to a file, got {speedup}")


def _read_messages(value: Plain) -> Messages:
    kind = Phases if isinstance(value, Mapping) and "steps" in value else Traffic
    return _reader(kind)(value, kind)  # type: ignore[no-any-return]


def _write_messages(messages: Messages) -> dict[str, Any]:
    kind: Any = type(messages)
    return _object_writer(kind)(messages)


_OWN: dict[type[Any], tuple[Callable[[Any], Any], Write]] = {
    Allocation: (_read_allocation, lambda held: [list(row) for row in held.rows]),
    Speedup: (_read_speedup, _write_speedup),
    Messages: (_read_messages, _write_messages),
}

# ---------------------------------------------------------------------- reading


@cache
def _converter() -> Converter:
    fields_of(Job)
    converter = strict_converter(omit=tuple(PROGRAM))
    converter.register_structure_hook(float, _read_float)
    converter.register_structure_hook_func(lambda kind: kind is Any, lambda value, _kind: value)
    converter.register_structure_hook_func(made_from(Literal), _read_literal)
    for of, reader in (
        (made_from(tuple), _tuple_reader),
        (is_mapping, _mapping_reader),
        (is_union, _union_reader),
        (is_row, _row_reader),
        (made_from(Annotated), _annotated_reader),
        (_is_spec, _spec_reader),
        (_OWN.__contains__, _own_reader),
    ):
        converter.register_structure_hook_factory(of, reader)
    return converter


def _reader(kind: Form) -> Read:
    return _converter().get_structure_hook(kind)


def _own_reader(kind: type) -> Read:
    read = _OWN[kind][0]
    return lambda value, _kind: read(value)


def _read_float(value: Plain, _kind: Form) -> float:
    if type(value) is float and value == value:
        return value
    if value == "inf":
        return inf
    if type(value) is not int:
        raise InputError(f"must be a number, got {shown(value)}")
    if abs(value) > 2**1023:
        raise InputError("must be a number that fits in 64 bits, got a larger one")
    return float(value)


def _read_literal(value: Plain, kind: Form) -> Any:
    allowed = get_args(kind)
    if value not in allowed or type(value) not in map(type, allowed):
        raise InputError(f"must be {' or '.join(map(repr, allowed))}, got {shown(value)}")
    return value


def _read_each(values: Sequence[Plain], kinds: Sequence[tuple[Read, Form]]) -> list[Any]:
    found = []
    for i, (value, (read, kind)) in enumerate(zip(values, kinds, strict=True)):
        try:
            found.append(read(value, kind))
        except InputError as error:
            raise inside(f"[{i}]", error) from None
    return found


def _tuple_reader(kind: Form) -> Read:
    arms = get_args(kind)
    if arms[1:] == (...,):
        element = (_reader(arms[0]), arms[0])

        def read_all(value: Plain, _kind: Form) -> tuple[Any, ...]:
            given = items(value)
            return tuple(_read_each(given, [element] * len(given)))

        return read_all
    readers = [(_reader(each), each) for each in arms]

    def read(value: Plain, _kind: Form) -> tuple[Any, ...]:
        given = items(value)
        if len(given) != len(readers):
            raise InputError(f"must have {len(readers)} values, got {len(given)}")
        return tuple(_read_each(given, readers))

    return read


def _row_reader(kind: type) -> Read:
    fields = fields_of(kind)
    rest = "rest" in [each.name for each in base_of(fields[-1].kind)[1] if isinstance(each, Layout)]
    plain = fields[:-1] if rest else fields
    readers = [(_reader(each.kind), each.kind) for each in plain]
    # Rows of earlier versions lack the last fields, which have defaults.
    least = len(plain) if rest else sum(each.default is attrs.NOTHING for each in plain)

    def read(value: Plain, _kind: Form) -> Any:
        given = items(value)
        if len(given) < least or (len(given) > len(plain) and not rest):
            raise InputError(f"must be [{', '.join(each.name for each in fields)}], got {shown(value)}")
        found = []
        for field, each, (one, of) in zip(plain, given, readers, strict=False):
            try:
                found.append(one(each, of))
            except InputError as error:
                raise inside(field.name, error) from None
        return kind(*found, tuple(given[len(plain) :])) if rest else kind(*found)

    return read


def _mapping_reader(kind: Form) -> Read:
    of = get_args(kind)[1]
    one = _reader(of)

    def read(value: Plain, _kind: Form) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InputError(f"must be a mapping, got {shown(value)}")
        found = {}
        for key, each in value.items():
            try:
                found[key] = one(each, of)
            except InputError as error:
                raise inside(key, error) from None
        return found

    return read


def _union_reader(kind: Form) -> Read:
    lists, others = arms_of(kind)
    optional = NoneType in get_args(kind)
    of_list, of_other = (lists or others)[0], (others or lists)[0]
    read_list, read_other = _reader(of_list), _reader(of_other)

    def read(value: Plain, _kind: Form) -> Any:
        if value is None and optional:
            return None
        return read_list(value, of_list) if isinstance(value, list) else read_other(value, of_other)

    return read


def _annotated_reader(kind: Form) -> Read:
    base, notes = base_of(kind)
    layouts = [each.name for each in notes if isinstance(each, Layout)]
    if "columns" in layouts:
        table = _table(get_args(base)[0])
        return lambda value, _kind: table.read(value)
    if "keyed" in layouts:
        values: Any = dict.__class_getitem__((str, get_args(get_args(base)[0])[1]))
        keyed = _reader(values)
        return lambda value, _kind: tuple(keyed(value, values).items())
    one = _reader(base)
    checks = [each for each in notes if isinstance(each, Check)]
    if not checks:
        return one
    expected, test = checks[0]

    def read(value: Plain, _kind: Form) -> Any:
        try:
            found = one(value, base)
        except InputError:
            found = None
        if found is None or not test(found):
            raise InputError(f"must be {expected}, got {shown(value)}")
        return found

    return read


# ---------------------------------------------------------------------- writing
# A writer is a function, or None if values of the type are plain already.


@cache
def _writer(kind: Form) -> Write | None:
    base, notes = base_of(kind)
    layouts = [each.name for each in notes if isinstance(each, Layout)]
    if "columns" in layouts:
        return _table(get_args(base)[0]).write
    if "keyed" in layouts:
        return dict
    if notes:
        return _writer(base)
    for each in kind.__mro__ if isinstance(kind, type) else ():
        if each in _OWN:
            return _OWN[each][1]
    if _is_spec(kind):
        return _write_spec
    if kind is float:
        return _write_float
    if kind is Job:
        return _write_job
    if is_row(kind):
        return _row_writer(kind)
    if isinstance(kind, type) and attrs.has(kind):
        return _object_writer(kind)
    if get_origin(kind) is tuple:
        return _tuple_writer(kind)
    if is_mapping(kind):
        one = _writer(get_args(kind)[1])
        return dict if one is None else lambda values: {key: one(each) for key, each in values.items()}
    return _union_writer(kind) if is_union(kind) else None


def _write_float(value: float) -> float | str:
    return "inf" if value == inf else float(value)


def _write_each(values: Sequence[object], write: Write | None) -> list[Any]:
    return list(values) if write is None else [write(each) for each in values]


def _tuple_writer(kind: Form) -> Write:
    arms = get_args(kind)
    if arms[1:] == (...,):
        one = _writer(arms[0])
        return lambda values: _write_each(values, one)
    writers = [_writer(each) for each in arms]
    return lambda values: [each if write is None else write(each) for each, write in zip(values, writers, strict=True)]


def _row_writer(kind: type) -> Write:
    fields = fields_of(kind)
    rest = any(isinstance(each, Layout) for each in base_of(fields[-1].kind)[1])
    writers = [(each.name, _writer(each.kind)) for each in fields]

    def write(row: tuple[object, ...]) -> list[Any]:
        found = [getattr(row, name) if one is None else one(getattr(row, name)) for name, one in writers]
        return [*found[:-1], *found[-1]] if rest else found

    return write


@cache
def _object_writer(kind: type) -> Callable[[Any], dict[str, Any]]:
    writers = [(each.name, each.default, _writer(each.kind)) for each in fields_of(kind) if each.name not in PROGRAM]

    def write(state: attrs.AttrsInstance) -> dict[str, Any]:
        found = {}
        for name, default, one in writers:
            value = getattr(state, name)
            if value != default and not (isinstance(default, attrs.Factory) and not value):  # type: ignore[arg-type]
                found[name] = _plain(value) if one is None else one(value)
        return found

    return write


def _union_writer(kind: Form) -> Write | None:
    lists, others = arms_of(kind)
    writers = {each: _writer(each) for each in (*lists, *others)}
    if not any(writers.values()):
        return None
    of_list, of_other = (writers[each[0]] if each else None for each in (lists, others))
    plain = (int, float, str, bool)

    def write(value: Any) -> Any:
        one = of_other if others and (not lists or isinstance(value, plain)) else of_list
        return value if value is None or one is None else one(value)

    return write


@cache
def _table(kind: type) -> RowTable:
    return RowTable(kind, _reader, _writer)
