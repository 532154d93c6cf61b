"""The values of arguments: each function reads a text, as the ``type`` of an argument of :mod:`argparse`."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable
from math import inf, isfinite
from pathlib import Path

__all__ = ["STDOUT", "at_least_one", "number", "one_of", "output", "positive", "seconds", "seed", "whole"]

STDOUT = Path("-")
"""The output that ``-`` names: standard output, compared by identity, so that ``./-`` is a file."""


def output(text: str) -> Path:
    """Read the path of a file to write.

    >>> output("-") is STDOUT, output("./-") is STDOUT
    (True, False)
    """
    return STDOUT if text == "-" else Path(text)


def seconds(text: str) -> float:
    """Read a time > 0, in seconds or with a unit.

    >>> seconds("600"), seconds("90min"), seconds("2d")
    (600.0, 5400.0, 172800.0)
    """
    from simmodel.errors import InputError
    from simmodel.platform.units import parse_quantity

    try:
        value = parse_quantity(text, "s")
    except InputError:
        value = 0.0
    if value <= 0:
        raise ArgumentTypeError(f"must be a time > 0 in seconds, or such as 90min, 12h or 2d, got {text!r}")
    return value


def _whole_from(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise ArgumentTypeError(f"must be a whole number >= {least}, got {text!r}")
        return int(text)

    return read


seed = _whole_from(0)
at_least_one = _whole_from(1)


def whole(text: str) -> int:
    """Read a whole number.

    >>> whole("-3")
    -3
    """
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def number(accepted: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    """Return a reader of finite numbers for which a condition holds.

    >>> number("a number > 0", lambda value: value > 0)("2.5")
    2.5
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = inf
        if not (isfinite(value) and holds(value)):
            raise ArgumentTypeError(f"must be {accepted}, got {text!r}")
        return value

    return read


positive = number("a number > 0", lambda value: value > 0)


def one_of(known: Iterable[str], kind: str = "value") -> Callable[[str], str]:
    """Return a reader of one of these names.

    >>> one_of(["none", "easy"])("easy")
    'easy'
    """
    names = tuple(known)

    def read(text: str) -> str:
        if text not in names:
            from simmodel.errors import unknown

            raise ArgumentTypeError(str(unknown(kind, text, names)))
        return text

    return read
