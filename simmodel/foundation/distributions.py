"""Distributions of times and sizes, by mean and coefficient of variation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, Plain, unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "DISTRIBUTIONS",
    "Distribution",
    "GivenDistribution",
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
    """A distribution of numbers: ``draw(rng, n)`` returns n draws, ``mean`` is its expectation.

    >>> exponential(mean=2.0).draw(np.random.default_rng(1), 3).round(3)
    array([ 2.146,  0.617, 10.751])
    """

    name: str
    mean: float
    draw: Draw = attrs.field(repr=False, eq=False)
    parameters: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def document(self) -> dict[str, Any]:
        """The mapping of its name and parameters, from which :func:`distribution` makes it again.

        >>> exponential(mean=2.0).document
        {'distribution': 'exponential', 'mean': 2.0}
        """
        return {"distribution": self.name, **self.parameters}


def _check(**values: float) -> None:
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"{name}: must be > 0, got {value!r}")


def exponential(mean: float) -> Distribution:
    """Exponential with a given mean: the gaps of a Poisson process."""
    _check(mean=mean)
    return Distribution("exponential", mean, lambda rng, n: rng.exponential(mean, n), {"mean": mean})


def deterministic(value: float) -> Distribution:
    """A constant."""
    if not value >= 0:
        raise InputError(f"value: must be >= 0, got {value!r}")
    return Distribution("deterministic", value, lambda _rng, n: np.full(n, float(value)), {"value": value})


def uniform(low: float, high: float) -> Distribution:
    """Uniform between ``low`` and ``high``."""
    if not 0 <= low <= high < np.inf:
        raise InputError(f"low and high: must be 0 <= low <= high, got {low!r} and {high!r}")
    return Distribution(
        "uniform", (low + high) / 2, lambda rng, n: rng.uniform(low, high, n), {"low": low, "high": high}
    )


def gamma(mean: float, cv: float) -> Distribution:
    """Gamma with a given mean and coefficient of variation (standard deviation / mean)."""
    _check(mean=mean, cv=cv)
    shape = 1 / cv**2
    return Distribution("gamma", mean, lambda rng, n: rng.gamma(shape, mean / shape, n), {"mean": mean, "cv": cv})


def weibull(mean: float, shape: float) -> Distribution:
    """Weibull with a given mean and shape; a shape below 1 has a long tail."""
    _check(mean=mean, shape=shape)
    scale = mean / math.gamma(1 + 1 / shape)
    return Distribution("weibull", mean, lambda rng, n: scale * rng.weibull(shape, n), {"mean": mean, "shape": shape})


def log_normal(mean: float, cv: float) -> Distribution:
    """Log-normal with a given mean and coefficient of variation."""
    _check(mean=mean, cv=cv)
    sigma = math.sqrt(math.log1p(cv**2))
    middle = math.log(mean) - sigma**2 / 2
    return Distribution("log_normal", mean, lambda rng, n: rng.lognormal(middle, sigma, n), {"mean": mean, "cv": cv})


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

    return Distribution("hyper_exponential", mean, draw, {"mean": mean, "cv": cv})


def choice(values: Sequence[float], probabilities: Sequence[float] | None = None) -> Distribution:
    """One of several values, with given probabilities (default: equal)."""
    array = np.asarray(values)
    shares = np.full(len(array), 1 / max(len(array), 1)) if probabilities is None else np.asarray(probabilities, float)
    if not len(array) or len(shares) != len(array) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
        raise InputError(f"probabilities: must add up to 1, one per value, got {probabilities!r} for {values!r}")
    given = {"values": array.tolist(), "probabilities": shares.tolist()}
    return Distribution("choice", float(array @ shares), lambda rng, n: rng.choice(array, n, p=shares), given)


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
