"""Quantities with units: "40Gbps", "11.5ms", "64GB" and the like, read and written by one pair of functions.

The units are those of SimGrid's platform files (https://simgrid.org/doc/latest/XML_reference.html): a small ``b`` is
a bit and a capital ``B`` a byte, ``k M G T P E Z Y`` are powers of 1000 and ``Ki Mi Gi ...`` powers of 1024.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from math import isfinite
from numbers import Real

from simmodel.errors import InputError

__all__ = ["UNITS", "parse_quantity", "show_quantity"]

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
# What each unit may be written as, and how many of the unit that is.
_WORDS: dict[str, dict[str, Decimal]] = {
    "B": _with_prefixes(_LARGE, {"B": _ONE, "b": _BIT, "bit": _BIT}),
    "B/s": _with_prefixes(_LARGE, {"Bps": _ONE, "B/s": _ONE, "bps": _BIT, "b/s": _BIT, "bit/s": _BIT}),
    "s": _with_prefixes({"": _ONE, **_SMALL}, {"s": _ONE}) | {word: Decimal(worth) for word, worth in _TIMES.items()},
    "flop": _with_prefixes(_LARGE, {"f": _ONE, "flop": _ONE, "flops": _ONE}),
    "flop/s": _with_prefixes(_LARGE, {"f": _ONE, "flops": _ONE, "flop/s": _ONE, "f/s": _ONE}),
    "W": _with_prefixes({**_LARGE, **_SMALL}, {"W": _ONE}),
}
_EXAMPLES = {"B": "64GB", "B/s": "40Gbps", "s": "11.5ms", "flop": "1Gf", "flop/s": "1Gf", "W": "250W"}
# How each unit is written: the word, the powers of ten that may stand before it, and from which size on they do.
_SHOWN = {"B": "B", "B/s": "Bps", "s": "s", "flop": "f", "flop/s": "f", "W": "W"}
_POWERS_UP = [(3 * power, letter) for power, letter in enumerate(_LETTERS, 1)][::-1]
_POWERS_DOWN = [(-3, "m"), (-6, "u"), (-9, "n"), (-12, "p")]

UNITS = tuple(_WORDS)

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ/]*)\s*", re.ASCII)


def parse_quantity(quantity: str | float, unit: str, *, source: str | None = None, place: str | None = None) -> float:
    """Return a quantity as a number of its unit.

    Parameters
    ----------
    quantity
        a number, taken as it is, or a text: a number, and a unit where it is not the plain one; spaces do not matter
    unit
        ``"B"`` (bytes), ``"B/s"``, ``"s"``, ``"flop"``, ``"flop/s"`` or ``"W"`` (watts)
    source, place
        where the quantity stands, for the message

    Raises
    ------
    InputError
        where it is neither, has another unit, is negative, infinite or not a number

    >>> parse_quantity("40Gbps", "B/s"), parse_quantity("4750MBps", "B/s"), parse_quantity("11.5ms", "s")
    (5000000000.0, 4750000000.0, 0.0115)
    >>> parse_quantity("64GB", "B"), parse_quantity("1 KiB", "B"), parse_quantity("1Gf", "flop/s")
    (64000000000.0, 1024.0, 1000000000.0)
    >>> parse_quantity("40Gbps", "s")
    Traceback (most recent call last):
    ...
    simmodel.errors.InputError: a quantity in s such as '11.5ms' expected, found '40Gbps'
    """
    if unit not in _WORDS:
        raise InputError(f"one of the units {', '.join(UNITS)} expected, found {unit!r}")
    found: object = quantity
    value: float | None = None
    if isinstance(found, str):
        match = _NUMBER.fullmatch(found)
        worth = _ONE if match and not match[2] else _WORDS[unit].get(match[2]) if match else None
        if match is not None and worth is not None:
            # Exact until the last step, so that what is written reads back as the same number.
            exact = Context(prec=len(match[1]) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
            value = float(exact.multiply(exact.create_decimal(match[1]), worth))
    elif not isinstance(found, bool) and isinstance(found, Real):
        value = float(found)
    if value is None:
        message = f"a quantity in {unit} such as {_EXAMPLES[unit]!r} expected, found {quantity!r}"
        raise InputError(message, source=source, place=place)
    if not isfinite(value) or value < 0:
        message = f"a finite quantity in {unit}, zero or more, expected, found {quantity!r}"
        raise InputError(message, source=source, place=place)
    return value


def show_quantity(value: float, unit: str) -> str:
    """Return a number of a unit as a short text that :func:`parse_quantity` reads back as the same number.

    Raises
    ------
    InputError
        where the unit is unknown or the value is negative, infinite or not a number

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
