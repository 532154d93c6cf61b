"""Reading JSON documents: values are checked one by one, and the first wrong one gets one sentence with its place.

A check returns the value it is given, as it is to be used, or raises ``TypeError`` or ``ValueError``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

import attrs

from simmodel.errors import InputError, unknown

__all__ = [
    "Reader",
    "count",
    "flag",
    "instant",
    "items",
    "maybe",
    "name",
    "read_document",
    "real",
    "seconds",
    "size",
    "text",
    "user",
    "whole",
]


def read_document(given: str | Path) -> tuple[dict[str, Any], str | None]:
    """Return the document in JSON text, or in a file of it, and the name of the file.

    Raises
    ------
    InputError
        where the file is not there, or it is not JSON
    """
    source = None
    content = str(given)
    if isinstance(given, Path) or not content.lstrip().startswith("{"):
        source = content
        opener: Callable[..., Any] = gzip.open if source.endswith(".gz") else open
        try:
            with opener(given, "rt", encoding="utf-8") as file:
                content = file.read()
        except FileNotFoundError:
            raise InputError("no such file", source) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"JSON expected, found what cannot be read: {error}", source) from None
    try:
        document = json.loads(content)
    except ValueError as error:
        raise InputError(f"JSON expected: {error}", source) from None
    if not isinstance(document, dict):
        raise InputError(f"an object with keys expected, found {type(document).__name__}", source)
    return document, source


class Reader:
    """Takes values out of a document, and says where the one is that is wrong.

    Parameters
    ----------
    values
        keys with values
    source, place
        the file, and the path of the values inside it, for messages

    Raises
    ------
    InputError
        where they are not keys with values

    >>> Reader({"size": "big"}, "mine.json", "jobs[3]").take("size", size, "a whole number > 0")
    Traceback (most recent call last):
    ...
    simmodel.errors.InputError: mine.json, jobs[3].size: a whole number > 0 expected, found 'big'
    """

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
        values = self.take(name, items, "a list", [])
        return [self.check(value, check, expected, f"{name}[{i}]") for i, value in enumerate(values)]

    def column(self, name: str, check: Callable[[Any], Any], expected: str, count: int, default: Any) -> list[Any]:
        """Return the checked values of a column of so many."""
        if name not in self.values:
            return [default] * count
        values = self.take(name, items, "a list")
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


def items(value: Any) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise TypeError
    return value


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise TypeError
    return value


def flag(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise TypeError
    return value


def whole(value: Any) -> int:
    """Return a whole number."""
    if type(value) is not int:
        raise TypeError
    return value


def count(value: Any) -> int:
    """Return a whole number that is not negative."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def size(value: Any) -> int:
    """Return a whole number greater than zero."""
    if type(value) is not int or value <= 0:
        raise ValueError
    return value


def real(value: Any) -> float:
    """Return a number, which may be infinite: ``"inf"``, since JSON has no word for it."""
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


def instant(value: Any) -> float:
    """Return a number that is finite."""
    number = real(value)
    if not isfinite(number):
        raise ValueError
    return number


def seconds(value: Any) -> float:
    """Return a number that is not negative; it may be infinite."""
    number = real(value)
    if number < 0:
        raise ValueError
    return number


def maybe(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a check that lets ``None`` pass."""
    return lambda value: None if value is None else check(value)


def name(value: Any) -> int | str:
    """Return a number or a text: what jobs are called."""
    if type(value) not in (int, str):
        raise TypeError
    return value  # type: ignore[no-any-return]


def user(value: Any) -> int | str | None:
    """Return a number or a text, or ``None``."""
    return None if value is None else name(value)
