"""Rows of a ``NamedTuple`` as columns of plain values, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import NoneType
from typing import Any, Literal, NamedTuple, get_origin

import attrs

from simmodel.foundation.errors import InputError, Plain, shown, unknown
from simmodel.platform.strict import inside
from simmodel.snapshots.types import Check, Field, Form, Like, base_of, fields_of, is_row, not_none

__all__ = ["Read", "Reader", "RowTable", "Write", "Writer", "items"]

Read = Callable[[Plain, Form], Any]
"""A function from a plain value and its type to a typed value."""
Write = Callable[[Any], Any]
"""A function from a typed value to a plain value."""
Reader = Callable[[Form], Read]
Writer = Callable[[Form], Write | None]
"""A function from a type to the function that writes its values; ``None``: they are plain already."""


def items(value: Plain) -> list[Plain]:
    """Return a value after checking that it is a list."""
    if not isinstance(value, list):
        raise InputError(f"must be a list, got {shown(value)}")
    return value


class Column(NamedTuple):
    """A column: how its values are read and written, and its default."""

    name: str
    kind: Any
    default: Any
    like: str | None
    read: Read
    write: Write | None
    text: bool
    plain: type[Any] | None  # the type of its values in JSON, if they need no conversion
    test: Callable[[Any], bool] | None

    @classmethod
    def of(cls, field: Field, reader: Reader, writer: Writer) -> Column:
        """Return the column of a field."""
        base, notes = base_of(field.kind)
        like = [each.column for each in notes if isinstance(each, Like)]
        inner, checks = base_of(not_none(field.kind))
        tests = [each.test for each in checks if isinstance(each, Check)]
        text = base is str or get_origin(base) is Literal
        test = tests[0] if tests else _TESTS.get(inner)
        return cls(
            field.name,
            field.kind,
            field.default,
            like[0] if like else None,
            reader(field.kind),
            writer(field.kind),
            text,
            inner if inner in (int, float, str, bool) else None,
            test,
        )

    def values(self, given: Plain, count: int) -> Sequence[Any]:
        """Return the checked values of the column."""
        if self.text and isinstance(given, str):
            return [self._one(given, self.name)] * count
        try:
            listed = items(given)
            if len(listed) != count:
                raise InputError(f"must have {count} values, got {len(listed)}")
        except InputError as error:
            raise inside(self.name, error) from None
        plain = self.plain is not None and set(map(type, listed)) == {self.plain}
        if plain and (self.test is None or all(map(self.test, listed))):
            return listed
        return [self._one(value, f"{self.name}[{i}]") for i, value in enumerate(listed)]

    def _one(self, value: Plain, place: str) -> Any:
        try:
            return self.read(value, self.kind)
        except InputError as error:
            raise inside(place, error) from None

    def written(self, values: Sequence[object], first: bool) -> Any:
        """Return the column as a JSON value; the first column stays a list, as it determines the number of rows."""
        if self.text and not first and values.count(values[0]) == len(values):
            return values[0]
        if self.plain is float and inf not in values and set(map(type, values)) <= {float, NoneType}:
            return list(values)
        return list(values) if self.write is None else [self.write(each) for each in values]


_TESTS: dict[Any, Callable[[Any], bool]] = {
    float: lambda value: value == value,
    int: lambda value: -(2**63) <= value < 2**63,
}


class RowTable:
    """The layout of ``NamedTuple`` rows as columns; fields that are ``NamedTuple`` values themselves are flattened.

    Columns are read in the order of the fields.
    """

    def __init__(self, kind: type, reader: Reader, writer: Writer) -> None:
        self.kind: Any = kind
        self.columns: list[Column | RowTable] = [
            RowTable(field.kind, reader, writer) if is_row(field.kind) else Column.of(field, reader, writer)
            for field in fields_of(kind)
        ]

    def names(self) -> list[str]:
        """Return the names of the columns."""
        found = []
        for each in self.columns:
            found += each.names() if isinstance(each, RowTable) else [each.name]
        return found

    def read(self, value: Plain) -> tuple[Any, ...]:
        """Return the rows from an object of columns."""
        if not isinstance(value, Mapping):
            raise InputError(f"must be a mapping of columns, got {shown(value)}")
        if not value:
            return ()
        names = self.names()
        for name in value:
            if name not in names:
                raise inside(name, unknown("column", name, names))
        first = value.get(names[0])
        if first is None:
            raise InputError(f"missing column {shown(names[0])}")
        if not isinstance(first, list):
            raise inside(names[0], InputError(f"must be a list, got {shown(first)}"))
        return tuple(self._rows(value, len(first)))

    def _rows(self, given: Mapping[str, Plain], count: int) -> list[Any]:
        columns: dict[str, Sequence[Any]] = {}
        for each in self.columns:
            if isinstance(each, RowTable):
                columns[""] = each._rows(given, count)
            elif each.name in given:
                columns[each.name] = each.values(given[each.name], count)
            elif each.like is not None:
                columns[each.name] = columns[each.like]
            elif each.default is attrs.NOTHING:
                raise InputError(f"missing column {shown(each.name)}")
            else:
                columns[each.name] = [each.default] * count
        return list(map(self.kind._make, zip(*columns.values(), strict=True)))

    def write(self, rows: Sequence[tuple[object, ...]]) -> dict[str, Any]:
        """Return rows as an object of columns."""
        found: dict[str, Any] = {}
        if not rows:
            return found
        given = dict(zip(self.kind._fields, zip(*rows, strict=True), strict=True))
        for i, (each, values) in enumerate(zip(self.columns, given.values(), strict=True)):
            if isinstance(each, RowTable):
                found.update(each.write(values))
            elif (each.default is attrs.NOTHING or values.count(each.default) < len(rows)) and (
                each.like is None or values != given[each.like]
            ):
                found[each.name] = each.written(values, i == 0)
        return found
