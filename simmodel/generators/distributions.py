"""Distributions of times and sizes, named by what one knows of them: the mean and the coefficient of variation."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.display import Fields
from simmodel.errors import InputError, Plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "DISTRIBUTIONS",
    "Distribution",
    "choice",
    "deterministic",
    "distribution",
    "exponential",
    "gamma",
    "hyper_exponential",
    "log_normal",
    "uniform",
    "weibull",
]

Draw = Callable[[np.random.Generator, int], "NDArray[Any]"]


@attrs.frozen(repr=False)
class Distribution(Fields):
    """A distribution of numbers: ``draw(rng, n)`` gives an array, ``mean`` its expectation.

    >>> exponential(mean=2.0).draw(np.random.default_rng(1), 3).round(3)
    array([ 2.146,  0.617, 10.751])
    """

    name: str
    mean: float
    draw: Draw = attrs.field(repr=False, eq=False)


def _check(**values: float) -> None:
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} > 0 expected, found {value!r}")


def exponential(mean: float) -> Distribution:
    """Exponential with this mean: the gaps of a Poisson process."""
    _check(mean=mean)
    return Distribution("exponential", mean, lambda rng, n: rng.exponential(mean, n))


def deterministic(value: float) -> Distribution:
    """Always this value."""
    if not value >= 0:
        raise ValueError(f"value >= 0 expected, found {value!r}")
    return Distribution("deterministic", value, lambda _rng, n: np.full(n, float(value)))


def uniform(low: float, high: float) -> Distribution:
    """Any value from ``low`` to ``high`` with the same chance."""
    if not 0 <= low <= high:
        raise ValueError(f"0 <= low <= high expected, found {low!r} and {high!r}")
    return Distribution("uniform", (low + high) / 2, lambda rng, n: rng.uniform(low, high, n))


def gamma(mean: float, cv: float) -> Distribution:
    """Gamma with this mean and coefficient of variation (standard deviation by mean)."""
    _check(mean=mean, cv=cv)
    shape = 1 / cv**2
    return Distribution("gamma", mean, lambda rng, n: rng.gamma(shape, mean / shape, n))


def weibull(mean: float, shape: float) -> Distribution:
    """Weibull with this mean and shape; a shape below 1 has a long tail."""
    _check(mean=mean, shape=shape)
    scale = mean / math.gamma(1 + 1 / shape)
    return Distribution("weibull", mean, lambda rng, n: scale * rng.weibull(shape, n))


def log_normal(mean: float, cv: float) -> Distribution:
    """Log-normal with this mean and coefficient of variation."""
    _check(mean=mean, cv=cv)
    sigma = math.sqrt(math.log1p(cv**2))
    middle = math.log(mean) - sigma**2 / 2
    return Distribution("log_normal", mean, lambda rng, n: rng.lognormal(middle, sigma, n))


def hyper_exponential(mean: float, cv: float) -> Distribution:
    """Two exponentials with balanced means, with this mean and a coefficient of variation of at least 1."""
    _check(mean=mean, cv=cv)
    if cv < 1:
        raise ValueError(f"cv >= 1 expected, found {cv!r}")
    first = (1 + math.sqrt((cv**2 - 1) / (cv**2 + 1))) / 2

    def draw(rng: np.random.Generator, n: int) -> NDArray[Any]:
        share = np.where(rng.random(n) < first, first, 1 - first)
        drawn: NDArray[Any] = rng.exponential(1.0, n) * mean / (2 * share)
        return drawn

    return Distribution("hyper_exponential", mean, draw)


def choice(values: Sequence[float], probabilities: Sequence[float] | None = None) -> Distribution:
    """One of these values, with these probabilities (default: the same for each)."""
    array = np.asarray(values)
    shares = np.full(len(array), 1 / max(len(array), 1)) if probabilities is None else np.asarray(probabilities, float)
    if not len(array) or len(shares) != len(array) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
        raise ValueError(f"values with probabilities that add up to 1 expected, found {values!r}, {probabilities!r}")
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
"""A distribution, a number (always that), or a name and its parameters as plain values."""


def distribution(spec: GivenDistribution) -> Distribution:
    """Return a distribution of a description: itself, a number (always that), or a name and its parameters.

    Raises
    ------
    InputError
        the name or a parameter is unknown, or a value is not possible

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
        close = difflib.get_close_matches(str(name), DISTRIBUTIONS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"distribution: one of {', '.join(DISTRIBUTIONS)} expected, found {name!r}{hint}")
    try:
        return make(**parameters)
    except (TypeError, ValueError) as error:
        raise InputError(f"distribution {name}: {error}") from None
