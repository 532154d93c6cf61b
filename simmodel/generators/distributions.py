"""Distributions of times and sizes, by mean and coefficient of variation, and parameters of generators drawn from them.

An amount is a number, a pair (drawn uniformly between both), a
:class:`~simmodel.generators.distributions.Distribution` or the mapping of one, or text with a unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, Plain, unknown
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


Draw = Callable[[np.random.Generator, int], "NDArray[Any]"]


@attrs.frozen(repr=False)
class Distribution(Fields):
    """A distribution of numbers: ``draw(rng, n)`` returns n draws, ``mean`` is its expectation.

    >>> exponential(mean=2.0).draw(np.random.default_rng(1), 3).round(3)
    array([ 2.146,  0.617, 10.751])
    """

    name: str
    mean: float
    draw: Draw = attrs.field(repr=False, eq=False)


def _check(**values: float) -> None:
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"{name}: must be > 0, got {value!r}")


def exponential(mean: float) -> Distribution:
    """Exponential with a given mean: the gaps of a Poisson process."""
    _check(mean=mean)
    return Distribution("exponential", mean, lambda rng, n: rng.exponential(mean, n))


def deterministic(value: float) -> Distribution:
    """A constant."""
    if not value >= 0:
        raise InputError(f"value: must be >= 0, got {value!r}")
    return Distribution("deterministic", value, lambda _rng, n: np.full(n, float(value)))


def uniform(low: float, high: float) -> Distribution:
    """Uniform between ``low`` and ``high``."""
    if not 0 <= low <= high < np.inf:
        raise InputError(f"low and high: must be 0 <= low <= high, got {low!r} and {high!r}")
    return Distribution("uniform", (low + high) / 2, lambda rng, n: rng.uniform(low, high, n))


def gamma(mean: float, cv: float) -> Distribution:
    """Gamma with a given mean and coefficient of variation (standard deviation / mean)."""
    _check(mean=mean, cv=cv)
    shape = 1 / cv**2
    return Distribution("gamma", mean, lambda rng, n: rng.gamma(shape, mean / shape, n))


def weibull(mean: float, shape: float) -> Distribution:
    """Weibull with a given mean and shape; a shape below 1 has a long tail."""
    _check(mean=mean, shape=shape)
    scale = mean / math.gamma(1 + 1 / shape)
    return Distribution("weibull", mean, lambda rng, n: scale * rng.weibull(shape, n))


def log_normal(mean: float, cv: float) -> Distribution:
    """Log-normal with a given mean and coefficient of variation."""
    _check(mean=mean, cv=cv)
    sigma = math.sqrt(math.log1p(cv**2))
    middle = math.log(mean) - sigma**2 / 2
    return Distribution("log_normal", mean, lambda rng, n: rng.lognormal(middle, sigma, n))


def hyper_exponential(mean: float, cv: float) -> Distribution:
    """A mixture of two exponentials with balanced means, with a given mean and coefficient of variation >= 1."""
    _check(mean=mean, cv=cv)
    if cv < 1:
        raise InputError(f"cv: must be >= 1, got {cv!r}")
    first = (1 + math.sqrt((cv**2 - 1) / (cv**2 + 1))) / 2

    def draw(rng: np.random.Generator, n: int) -> NDArray[Any]:
        share = np.where(rng.random(n) < first, first, 1 - first)
        drawn: NDArray[Any] = rng.exponential(1.0, n) * mean / (2 * share)
        return drawn

    return Distribution("hyper_exponential", mean, draw)


def choice(values: Sequence[float], probabilities: Sequence[float] | None = None) -> Distribution:
    """One of several values, with given probabilities (default: equal)."""
    array = np.asarray(values)
    shares = np.full(len(array), 1 / max(len(array), 1)) if probabilities is None else np.asarray(probabilities, float)
    if not len(array) or len(shares) != len(array) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
        raise InputError(f"probabilities: must add up to 1, one per value, got {probabilities!r} for {values!r}")
    return Distribution("choice", float(array @ shares), lambda rng, n: rng.choice(array, n, p=shares))


DISTRIBUTIONS: Mapping[str, Callable[..., Distribution]] = {
    "exponential": exponential,
    "deterministic": deterministic,
    "uniform": uniform,
    "gamma": gamma,
    "weibull": weibull,
    "log_normal": log_normal,
    "hyper_exponential": hyper_exponential,
    "choice": choice,
}
"""The distributions by name."""


GivenDistribution: TypeAlias = Distribution | Mapping[str, Plain] | float
"""A distribution, a constant, or a mapping with its name (``distribution``) and parameters."""


def distribution(spec: GivenDistribution) -> Distribution:
    """Return a distribution: as it is, from a constant, or from a mapping with its name and parameters.

    Raises
    ------
    InputError
        the name or a parameter is unknown, or a value is invalid

    >>> distribution({"distribution": "gamma", "mean": 5, "cv": 0.5}).name
    'gamma'
    """
    if isinstance(spec, Distribution):
        return spec
    if isinstance(spec, int | float):
        return deterministic(spec)
    parameters = dict(spec)
    name = parameters.pop("distribution", None)
    make = DISTRIBUTIONS.get(str(name))
    if make is None:
        raise unknown("distribution", str(name), DISTRIBUTIONS)
    try:
        return make(**parameters)
    except (TypeError, ValueError) as error:
        raise InputError(f"distribution {name}: {error}") from None


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
