"""The types of the fields of states, and their annotations: checks of values and layouts in JSON."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from math import isfinite
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
from simpy.events import Event

from simmodel.foundation.errors import InputError
from simmodel.work import request as requests
from simmodel.work.job import Dependency, Job

__all__ = [
    "Check",
    "Columns",
    "Count",
    "Field",
    "Form",
    "Instant",
    "Keyed",
    "Layout",
    "Like",
    "Rest",
    "Seconds",
    "Seed",
    "Size",
    "arms_of",
    "base_of",
    "check_each",
    "fields_of",
    "is_label",
    "is_mapping",
    "is_row",
    "is_union",
    "not_none",
    "one_of",
]

T = TypeVar("T")
Form: TypeAlias = type | GenericAlias | UnionType
"""The type of a field: a class, or a type built from classes (``tuple[int, ...]``, ``int | None``)."""


class Check(NamedTuple):
    """A test that a value must pass in addition to its type, and the words for accepted values."""

    expected: str
    test: Callable[[Any], bool]


def one_of(*words: str) -> Check:
    return Check(" or ".join(map(repr, words)), words.__contains__)


class Like(NamedTuple):
    """Annotates a column that is omitted if it equals another one."""

    column: str


class Layout(NamedTuple):
    """How values of a type are laid out in JSON: ``"columns"``, ``"keyed"`` or ``"rest"``."""

    name: str


Columns = Annotated[tuple[T, ...], Layout("columns")]
"""Rows of a ``NamedTuple``, written as columns; a column of defaults is omitted, one of equal strings is one string."""
Keyed = Annotated[tuple[tuple[str, T], ...], Layout("keyed")]
"""Pairs of a name and a value, in order, written as an object."""
Rest = Annotated[T, Layout("rest")]
"""The last field of a row, a tuple: its items follow the other fields."""
Instant = Annotated[float, Check("an instant (s)", isfinite)]
Seconds = Annotated[float, Check("a number >= 0 (s)", (0.0).__le__)]
Seed = Annotated[Any, Check("a whole number >= 0", lambda value: type(value) is int and value >= 0)]
"""A seed; it may have more than 64 bits."""
Count = Annotated[int, Check("a whole number >= 0", lambda value: 0 <= value < 2**63)]
Size = Annotated[int, Check("a whole number >= 1", lambda value: 0 < value < 2**63)]


def check_each(place: str, values: Iterable[object], known: Container[object], what: str) -> None:
    """Check that values, each at its place, are known; ``None`` always is.

    Raises
    ------
    InputError
        if one is not; names its place, and what is expected

    >>> check_each("new", [3, 8], range(5), "a job below 5")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: new[1]: must be a job below 5, got 8
    """
    for i, value in enumerate(values):
        if value is not None and value not in known:
            raise InputError(f"must be {what}, got {value}", place=f"{place}[{i}]")


def is_row(kind: Form) -> TypeGuard[type]:
    """Return whether values of a type are lists in JSON, with one element per field."""
    return kind is Dependency or (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"))


def is_label(kind: Form) -> bool:
    """Return whether a type is that of names: numbers or strings."""
    return kind in (int | str, int | str | None)


def is_union(kind: Form) -> bool:
    """Return whether a type is a union, other than that of names."""
    return get_origin(kind) in (Union, UnionType) and not is_label(kind)


def is_mapping(kind: Form) -> bool:
    return get_origin(kind) in (dict, Mapping)


def arms_of(kind: Form) -> tuple[list[Any], list[Any]]:
    """Return the members of a union that are lists in JSON, and the others, without ``None``."""
    arms = [each for each in get_args(kind) if each is not NoneType]
    from simmodel.resources.pools.allocation import Allocation

    lists = [each for each in arms if each is Allocation or get_origin(each) is tuple or is_row(each)]
    return lists, [each for each in arms if each not in lists]


def base_of(kind: Form) -> tuple[Any, list[Any]]:
    """Return a type without its annotations, and these."""
    return (get_args(kind)[0], list(getattr(kind, "__metadata__", ()))) if get_origin(kind) is Annotated else (kind, [])


def not_none(kind: Form) -> Any:
    """Return ``X`` for ``X | None``, otherwise the type itself."""
    arms = [each for each in get_args(kind) if each is not NoneType] if is_union(kind) else []
    return arms[0] if len(arms) == 1 else kind


class Field(NamedTuple):
    """A field of a state: its type, and its default or ``attrs.NOTHING``."""

    name: str
    kind: Any
    default: Any


@cache
def fields_of(kind: type) -> tuple[Field, ...]:
    """Return the fields of a ``NamedTuple`` or an attrs class, with their types."""
    if kind is Job:
        attrs.resolve_types(Job, {**vars(requests), "Event": Event})
    elif attrs.has(kind):
        attrs.resolve_types(kind)
    if attrs.has(kind):
        return tuple(Field(each.name, each.type, each.default) for each in attrs.fields(kind))
    hints = get_type_hints(kind, include_extras=True)
    row: Any = kind
    defaults = row._field_defaults
    return tuple(Field(name, hints[name], defaults.get(name, attrs.NOTHING)) for name in row._fields)
