"""Parameters of generators, drawn from distributions of times and sizes.

An amount is a number, a pair (drawn uniformly between both), a
distribution or the mapping of one, or text with a unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simmodel.foundation.distributions import (
    DISTRIBUTIONS,
    Distribution,
    choice,
    deterministic,
    distribution,
    exponential,
    gamma,
    hyper_exponential,
    log_normal,
    uniform,
    weibull,
)
from simmodel.foundation.errors import InputError, Plain
from simmodel.foundation.loading import check_count
from simmodel.foundation.units import parse_quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "DISTRIBUTIONS",
    "Amount",
    "Count",
    "Distribution",
    "Streams",
    "amounts",
    "choice",
    "counts",
    "deterministic",
    "distribution",
    "exponential",
    "gamma",
    "hyper_exponential",
    "log_normal",
    "share",
    "stream",
    "streams",
    "uniform",
    "weibull",
    "whole",
    "whole_counts",
]


Amount = float | str | Sequence[float | str] | Distribution | Mapping[str, Plain]
Count = float | Sequence[float]
"""A whole number, or an interval (ends included) from which one is drawn."""


def stream(rng: np.random.Generator | None, seed: int | None) -> np.random.Generator:
    """Return ``rng``, or a stream with this seed, or by default the stream with seed 0.

    Raises
    ------
    InputError
        both are passed

    >>> stream(None, 0).random() == stream(None, None).random()
    True
    """
    if rng is None:
        return np.random.default_rng(seed if seed is not None else 0)
    if seed is not None:
        raise InputError("rng and seed exclude each other")
    return rng


class Streams(NamedTuple):
    """Three random streams: for run times, for data sizes, and for everything else."""

    uniform: np.random.Generator
    run: np.random.Generator
    size: np.random.Generator


def streams(rng: np.random.Generator | Streams) -> Streams:
    """Return three streams spawned from one, or the given three.

    >>> [stream.random() < 1 for stream in streams(np.random.default_rng(0))]
    [True, True, True]
    """
    return rng if isinstance(rng, Streams) else Streams(*rng.spawn(3))


def whole(name: str, value: Plain | np.integer, *, least: int = 0) -> int:
    """Check and return a whole number.

    >>> whole("tasks", 1e6), whole("tasks", 0, least=1)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: tasks: must be a whole number >= 1, got 0
    """
    number = value if isinstance(value, int | float | np.integer) and not isinstance(value, bool) else None
    if number is None or number != number // 1 or not least <= number < 2**53:
        raise InputError(f"must be a whole number >= {least}, got {value!r}", place=name)
    return int(number)


def share(name: str, value: Plain) -> float:
    """Check and return a share from 0 to 1.

    >>> share("partial", 0.5)
    0.5
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"must be a share from 0 to 1, got {value!r}", place=name)
    return float(value)


def amounts(name: str, given: Amount, n: int, rng: np.random.Generator, *, unit: str = "s") -> NDArray[np.float64]:
    """Return ``n`` draws of a non-negative amount in a unit (``"s"``, ``"B"``).

    Raises
    ------
    InputError
        it is not an amount, or a draw is negative or not finite

    >>> amounts("size", ("4MB", "300MB"), 2, np.random.default_rng(0), unit="B").round()
    array([1.92540659e+08, 8.38568670e+07])
    >>> amounts("run", 5, 2, np.random.default_rng(0))
    array([5., 5.])
    """
    try:
        if isinstance(given, Distribution | Mapping):
            drawn = distribution(given).draw(rng, n)
        elif isinstance(given, Sequence) and not isinstance(given, str):
            low, high = _ends(given, unit)
            drawn = rng.uniform(low, high, n) if low < high else np.full(n, low)
        else:
            drawn = np.full(n, parse_quantity(given, unit))
    except ValueError as error:
        message = error.message if isinstance(error, InputError) else str(error)
        raise InputError(message, place=name) from None
    if not (np.isfinite(drawn).all() and (drawn >= 0).all()):
        wrong = drawn[~(np.isfinite(drawn) & (drawn >= 0))][0]
        raise InputError(f"must be finite and >= 0, got a draw of {wrong:g}", place=name)
    return np.asarray(drawn, np.float64)


def _ends(given: Sequence[float | str], unit: str) -> tuple[float, float]:
    if len(given) != 2:
        raise InputError(f"must be two ends of an interval, got {list(given)}")
    low, high = (parse_quantity(end, unit) for end in given)
    if low > high:
        raise InputError(f"must have the lower end first, got {given[0]!r} and {given[1]!r}")
    return low, high


def counts(name: str, given: Count, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return ``n`` draws of a whole number, or of whole numbers in an interval with both ends.

    >>> counts("objects", (1, 5), 5, np.random.default_rng(0))
    array([5, 4, 3, 2, 2])
    """
    if not isinstance(given, str | float) and isinstance(given, Sequence) and len(given) == 2:
        low, high = (whole(name, end) for end in given)
        if low > high:
            raise InputError(f"must have the lower end first, got {low} and {high}", place=name)
        check_count(f"{name} in total", n * high)
        return rng.integers(low, high, n, endpoint=True)
    every = whole(name, given)
    check_count(f"{name} in total", n * every)
    return np.full(n, every, np.int64)


def whole_counts(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round shares of a total, which add up to 1, to whole numbers that add up to it, by largest remainders.

    >>> whole_counts(np.array([0.5, 0.3, 0.2]), 4)
    array([2, 1, 1])
    """
    exact = shares * total
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[rest] += 1
    return counts
