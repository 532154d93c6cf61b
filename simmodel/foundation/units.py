"""Quantities with units, such as "40Gbps", "11.5ms" and "64GB": parsing and formatting.

The units are those of SimGrid's platform files (https://simgrid.org/doc/latest/XML_reference.html): ``b`` is a bit,
``B`` a byte, ``k M G T P E Z Y`` are powers of 1000 and ``Ki Mi Gi ...`` powers of 1024.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from math import isfinite
from numbers import Real
from typing import Any

from simmodel.foundation.errors import InputError, shown, unknown

__all__ = ["UNITS", "in_bytes", "in_seconds", "in_watts", "parse_quantity", "seconds_in", "show_quantity"]

_LETTERS = "kMGTPEZY"
_LARGE = {"": Decimal(1), "K": Decimal(1000)}
_LARGE |= {letter: Decimal(1000) ** power for power, letter in enumerate(_LETTERS, 1)}
_LARGE |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPEZY", 1)} | {"ki": Decimal(1024)}
_SMALL = {"m": Decimal("1e-3"), "u": Decimal("1e-6"), "µ": Decimal("1e-6"), "n": Decimal("1e-9"), "p": Decimal("1e-12")}
_BIT = Decimal("0.125")


def _with_prefixes(prefixes: dict[str, Decimal], words: dict[str, Decimal]) -> dict[str, Decimal]:
    return {prefix + word: scale * worth for word, worth in words.items() for prefix, scale in prefixes.items()}


_ONE = Decimal(1)
_TIMES = {"m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
# The accepted spellings of each unit, and their values in that unit.
_WORDS: dict[str, dict[str, Decimal]] = {
    "B": _with_prefixes(_LARGE, {"B": _ONE, "b": _BIT, "bit": _BIT}),
    "B/s": _with_prefixes(_LARGE, {"Bps": _ONE, "B/s": _ONE, "bps": _BIT, "b/s": _BIT, "bit/s": _BIT}),
    "s": _with_prefixes({"": _ONE, **_SMALL}, {"s": _ONE}) | {word: Decimal(worth) for word, worth in _TIMES.items()},
    "flop": _with_prefixes(_LARGE, {"f": _ONE, "flop": _ONE, "flops": _ONE}),
    "flop/s": _with_prefixes(_LARGE, {"f": _ONE, "flops": _ONE, "flop/s": _ONE, "f/s": _ONE}),
    "W": _with_prefixes({**_LARGE, **_SMALL}, {"W": _ONE}),
}
_EXAMPLES = {"B": "64GB", "B/s": "40Gbps", "s": "11.5ms", "flop": "1Gf", "flop/s": "1Gf", "W": "250W"}
# The output form of each unit: its symbol, and the prefixes with their powers of ten.
_SHOWN = {"B": "B", "B/s": "Bps", "s": "s", "flop": "f", "flop/s": "f", "W": "W"}
_POWERS_UP = [(3 * power, letter) for power, letter in enumerate(_LETTERS, 1)][::-1]
_POWERS_DOWN = [(-3, "m"), (-6, "u"), (-9, "n"), (-12, "p")]

UNITS = tuple(_WORDS)

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ/]*)\s*", re.ASCII)


def parse_quantity(quantity: str | float, unit: str, *, source: str | None = None, place: str | None = None) -> float:
    """Return a quantity as a number in the given unit.

    Parameters
    ----------
    quantity
        a number in the given unit, or a text of a number and an optional unit; spaces are ignored
    unit
        ``"B"`` (bytes), ``"B/s"``, ``"s"``, ``"flop"``, ``"flop/s"`` or ``"W"`` (watts)
    source, place
        location of the quantity, for the error message

    Raises
    ------
    InputError
        the quantity cannot be parsed, has another unit, is negative, infinite or nan; or ``unit`` is unknown

    >>> parse_quantity("40Gbps", "B/s"), parse_quantity("4750MBps", "B/s"), parse_quantity("11.5ms", "s")
    (5000000000.0, 4750000000.0, 0.0115)
    >>> parse_quantity("64GB", "B"), parse_quantity("1 KiB", "B"), parse_quantity("1Gf", "flop/s")
    (64000000000.0, 1024.0, 1000000000.0)
    >>> parse_quantity("40Gbps", "s")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: must be a quantity in s such as '11.5ms', got '40Gbps'
    """
    if unit not in _WORDS:
        raise unknown("unit", unit, UNITS)
    found: object = quantity
    value: float | None = None
    if isinstance(found, str):
        match = _NUMBER.fullmatch(found)
        worth = _ONE if match and not match[2] else _WORDS[unit].get(match[2]) if match else None
        if match is not None and worth is not None:
            # Exact until the last step, so that a formatted number parses to itself.
            exact = Context(prec=len(match[1]) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
            value = float(exact.multiply(exact.create_decimal(match[1]), worth))
    elif not isinstance(found, bool) and isinstance(found, Real):
        value = float(found)
    if value is None:
        message = f"must be a quantity in {unit} such as {_EXAMPLES[unit]!r}, got {shown(quantity)}"
        raise InputError(message, source=source, place=place)
    if not isfinite(value) or value < 0:
        message = f"must be a finite quantity in {unit} >= 0, got {shown(quantity)}"
        raise InputError(message, source=source, place=place)
    return value


def seconds_in(unit: str) -> float:
    """Return the seconds in a unit of time; raises ``InputError`` if it is none.

    >>> seconds_in("min"), seconds_in("ms")
    (60.0, 0.001)
    """
    if unit not in _WORDS["s"]:
        raise InputError(f"must be a unit of time such as 'min', got {shown(unit)}", place="unit")
    return float(_WORDS["s"][unit])


def in_seconds(value: float | str | None) -> Any:
    """Return a text such as ``"2h"`` in seconds, and anything else unchanged: the converter of fields.

    A text that is not a quantity is left to the validator of the field, which knows the field's name.

    >>> in_seconds("2h"), in_seconds(60), in_seconds("soon")
    (7200.0, 60, 'soon')
    """
    return _if_quantity(value, "s") if isinstance(value, str) else value


def in_bytes(value: float | str | None) -> Any:
    """Return a text such as ``"16GB"`` in bytes, and anything else unchanged (see :func:`in_seconds`)."""
    return _if_quantity(value, "B") if isinstance(value, str) else value


def in_watts(value: float | str | None) -> Any:
    """Return a text such as ``"250W"`` in watts, and anything else unchanged (see :func:`in_seconds`)."""
    return _if_quantity(value, "W") if isinstance(value, str) else value


def in_rates(values: Mapping[str, float | str]) -> Mapping[str, float]:
    """Return bandwidths by name in bytes/s.

    Raises
    ------
    InputError
        one is not a quantity, or negative

    >>> in_rates({"scratch": "2GB/s"})
    {'scratch': 2000000000.0}
    """
    if not isinstance(values, Mapping):
        raise InputError(f"must be bandwidths by name, got {shown(values)}", place="bandwidth")
    return {name: parse_quantity(rate, "B/s", place=f"bandwidth[{name!r}]") for name, rate in values.items()}


def _if_quantity(value: str, unit: str) -> float | str:
    try:
        return parse_quantity(value, unit)
    except InputError:
        return value


def show_quantity(value: float, unit: str) -> str:
    """Return a number in the given unit as a short text that :func:`parse_quantity` reads back exactly.

    Raises
    ------
    InputError
        the unit is unknown, or the value is negative, infinite or nan

    >>> show_quantity(5e9, "B/s"), show_quantity(0.0115, "s"), show_quantity(88e-9, "s"), show_quantity(250, "W")
    ('5GBps', '11.5ms', '88ns', '250W')
    """
    exact = Decimal(repr(parse_quantity(value, unit)))
    size = exact.adjusted()
    power, letter = 0, ""
    if exact and unit != "s" and size >= 3:
        power, letter = next((power, letter) for power, letter in _POWERS_UP if size >= power)
    elif exact and unit in ("s", "W") and -12 <= size < 0:
        power, letter = next((power, letter) for power, letter in _POWERS_DOWN if size >= power)
    mantissa = exact.scaleb(-power).normalize()
    digits = f"{mantissa:f}" if -4 <= mantissa.adjusted() < 17 else f"{mantissa:e}"
    return f"{digits}{letter}{_SHOWN[unit]}"
