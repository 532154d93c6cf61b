"""Fast parsing of tables of whitespace-separated numbers into columns, by whole arrays.

NumPy's own text readers take 1 to 4 us for a line of 18 numbers. Here the text is an array of bytes: the limits of all
fields are found together, and the up to 16 digits of a field become a number by a few operations on 64-bit words, eight
digits in each. Fields that are not whole numbers are rare in logs and are parsed one by one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["parse", "read_columns_of_numbers"]

_BLOCK = 1 << 20
_PAD = 16
_ZEROS = np.uint64(0x3030303030303030)


def read_columns_of_numbers(text: bytes, columns: int) -> list[NDArray[Any]] | None:
    """Return the columns of a text in which each non-blank line has a fixed number of numbers.

    A column of whole numbers is an array of ``int64``, any other one of ``float64``.

    Parameters
    ----------
    text
        lines of fields separated by spaces or tabs
    columns
        the number of fields on each line

    Returns
    -------
    The columns, or ``None`` if a line has another number of fields or a field is not a finite number; the caller then
    parses line by line to find it.

    >>> read_columns_of_numbers(b"1 2.5\\n-3 4\\n", 2)
    [array([ 1, -3]), array([2.5, 4. ])]
    >>> read_columns_of_numbers(b"1 2\\n3\\n", 2) is None
    True
    """
    parts: list[list[NDArray[Any]]] = []
    at = 0
    while at < len(text):
        cut = at + _BLOCK
        cut = len(text) if cut >= len(text) else text.find(b"\n", cut) + 1 or len(text)
        part = _block(text[at:cut], columns)
        if part is None:
            return None
        if len(part[0]):
            parts.append(part)
        at = cut
    if not parts:
        return [np.empty(0, np.int64) for _ in range(columns)]
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _block(text: bytes, columns: int) -> list[NDArray[Any]] | None:
    padded = b" " * _PAD + text + b" "
    characters = np.frombuffer(padded, np.uint8)
    blank = characters <= 32
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    if len(starts) % columns or not _one_row_a_line(characters, starts, columns):
        return None
    words = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    result = []
    for column in range(columns):
        values = _column(padded, characters, words, starts[column::columns], ends[column::columns])
        if values is None:
            return None
        result.append(values)
    return result


def _one_row_a_line(characters: NDArray[np.uint8], starts: NDArray[np.intp], columns: int) -> bool:
    """Return whether each row of fields is on its own line."""
    breaks = np.flatnonzero(characters == 10)
    first = np.searchsorted(breaks, starts[::columns])  # the lines of the first and of the last field of each row
    last = np.searchsorted(breaks, starts[columns - 1 :: columns])
    return bool((first == last).all() and (first[1:] > first[:-1]).all())


def _column(
    padded: bytes,
    characters: NDArray[np.uint8],
    words: NDArray[np.uint64],
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
) -> NDArray[Any] | None:
    first = characters[starts]
    lengths = ends - starts
    negative = first == 45
    some_negative = negative.any()
    if some_negative:
        if negative.all() and (lengths == 2).all() and (characters[starts + 1] == 49).all():
            return np.full(len(starts), -1, np.int64)  # the most frequent column
        lengths = lengths - negative
    longest = int(lengths.max(initial=0))
    if longest == 1:
        digits = characters[ends - 1] - np.uint8(48)
        odd = digits > 9
        values = digits.astype(np.int64)
    else:
        values, odd = _eight_digits(words, ends, lengths)
        if longest > 8:
            upper, odd_upper = _eight_digits(words, ends - 8, lengths - 8)
            values += upper * 100_000_000
            odd |= odd_upper | (lengths > 16)
        odd |= lengths < 1
    if some_negative:
        np.negative(values, out=values, where=negative)
    if not odd.any():
        return values
    return _one_by_one(padded, starts, ends, values, np.flatnonzero(odd))


def _eight_digits(
    words: NDArray[np.uint64], ends: NDArray[np.intp], lengths: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the numbers spelled by the last eight characters before ``ends``, and a mask of those with non-digits.

    The word's highest byte is the last character (little-endian); the bytes before the field are shifted out.
    """
    word = words[ends - 8] ^ _ZEROS
    shift = ((8 - np.clip(lengths, 0, 8)) << 3).astype(np.uint64)
    nothing = shift == 64
    shift[nothing] = 0
    word = (word >> shift) << shift
    word[nothing] = 0
    # A byte above 9 sets bits in its upper half, directly or after adding 6.
    odd = ((word | (word + np.uint64(0x0606060606060606))) & np.uint64(0xF0F0F0F0F0F0F0F0)) != 0
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)
    return word.astype(np.int64), odd


def _one_by_one(
    padded: bytes, starts: NDArray[np.intp], ends: NDArray[np.intp], values: NDArray[np.int64], rows: NDArray[np.intp]
) -> NDArray[Any] | None:
    """Parse the fields of these rows as Python numbers; the column becomes floats if one of them is not whole."""
    try:
        numbers = [
            parse(padded[start:end]) for start, end in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)
        ]
    except ValueError:
        return None
    if all(isinstance(number, int) for number in numbers):
        values[rows] = numbers
        return values
    floats = values.astype(np.float64)
    floats[rows] = numbers
    return floats if np.isfinite(floats).all() else None


def parse(field: bytes | str) -> int | float:
    """Return the number in a field; raises ``ValueError`` if it is not a number.

    >>> parse("3"), parse("-2.5"), parse("1e3")
    (3, -2.5, 1000.0)
    """
    if (b"_" if isinstance(field, bytes) else "_") in field:  # type: ignore[operator]
        raise InputError("must be digits")
    try:
        number = int(field)
    except ValueError:
        return float(field)
    if abs(number) < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
