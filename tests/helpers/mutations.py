"""Mutations of valid files: bytes, lines, numbers, nesting; the same for the same stream of random numbers."""

from __future__ import annotations

import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np

__all__ = ["Hang", "mutated", "peak_memory", "within"]

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w-]+")
_VALUES = (
    *(b"-1", b"0", b"1", b"-0.5", b"1e308", b"1e999", b"-1e18", b"1e18", b"1e-320", b"nan", b"inf", b"", b'"x"'),
    *(b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1000000000000", b"null", b"true"),
    *(b"9" * 400, b"1" * 5000, b"2147483648", b"\xff\xfe", b"[]", b"{}", b"0x10", b"1_000", b"99999999999999999999-01"),
)
_SIGNS = b"[]{}()<>\"'=,;:|/&\\\n\t\r \0\x1b\xff-+.eE#"


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file after one to three mutations, each at a random place."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        data = _MUTATIONS[int(rng.integers(len(_MUTATIONS)))](data, rng)
    return data


class Hang(BaseException):
    """A call took too long; no ``Exception``, so that no handler of errors hides it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise :class:`Hang` if the block computes for longer, or waits for 20 times as long; in the main thread alone."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Hang

    limits = (signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 20 * seconds)
    before = [signal.signal(number, stop) for number, _, _ in limits]
    for _, timer, most in limits:
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def peak_memory() -> float:
    """Return the largest memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


# ---------------------------------------------------------------------- one mutation each


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace one to four bytes by others."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if found:
            found[int(rng.integers(len(found)))] = int(rng.integers(256))
    return bytes(found)


def _sign(data: bytes, rng: np.random.Generator) -> bytes:
    """Put a character that means something to parsers into the file, or instead of another one."""
    at = int(rng.integers(len(data) + 1))
    return data[:at] + bytes([_SIGNS[int(rng.integers(len(_SIGNS)))]]) + data[at + int(rng.integers(2)) :]


def _number(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(_NUMBER, _VALUES, data, rng)


def _word(data: bytes, rng: np.random.Generator) -> bytes:
    found = _WORD.findall(data)
    return _replaced(_WORD, (*_VALUES, *found, *found), data, rng)


def _replaced(pattern: re.Pattern[bytes], by: tuple[bytes, ...], data: bytes, rng: np.random.Generator) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    one = found[int(rng.integers(len(found)))]
    return data[: one.start()] + by[int(rng.integers(len(by)))] + data[one.end() :]


def _lines(data: bytes, rng: np.random.Generator) -> bytes:
    """Remove, repeat or swap lines, or items where a file is one line."""
    sign = b"\n" if data.count(b"\n") > 3 else b","
    lines = data.split(sign)
    i, j = (int(rng.integers(len(lines))) for _ in range(2))
    match int(rng.integers(3)):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case _:
            lines[i], lines[j] = lines[j], lines[i]
    return sign.join(lines)


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    i, j = sorted(int(rng.integers(len(data) + 1)) for _ in range(2))
    return data[:i] if rng.integers(2) else data[:i] + data[j:]


def _nest(data: bytes, rng: np.random.Generator) -> bytes:
    """Open many brackets or elements at a place."""
    sign = (b"[", b"(", b'{"a":', b"<a>", b"a.", b"portfolio(", b'"' + b"z" * 50)[int(rng.integers(7))]
    at, often = int(rng.integers(len(data) + 1)), int(rng.choice([3, 120, 100_000]))
    return data[:at] + sign * often + data[at:]


_MUTATIONS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    *(_flip, _sign, _sign, _number, _number, _number, _number, _number, _word, _word, _word, _lines, _lines),
    *(_cut, _nest),
)
