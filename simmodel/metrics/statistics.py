"""Statistics of simulations: confidence intervals, replications, batch means and the end of the warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.foundation.display import Fields, figures
from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Interval",
    "batch_means",
    "cautious_interval",
    "correlation_length",
    "mean_interval",
    "mser",
    "paired_difference",
    "replication_seeds",
    "replications",
    "t_quantile",
]


@attrs.frozen(repr=False)
class Interval(Fields):
    """A mean with its confidence interval; ``value in interval`` says whether a value is inside.

    >>> interval = Interval(mean=10.0, half_width=2.0, level=0.95, count=5)
    >>> interval.low, interval.high, 11 in interval, 13 in interval
    (8.0, 12.0, True, False)
    >>> print(interval)
    10 ± 2 (95 %, n = 5)
    """

    mean: float
    half_width: float
    level: float
    count: int

    @property
    def low(self) -> float:
        """The lower bound."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper bound."""
        return self.mean + self.half_width

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return f"{figures(self.mean, 4)} ± {figures(self.half_width, 2)} ({100 * self.level:g} %, n = {self.count})"


# ---------------------------------------------------------------------- Student's t


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Lentz's method; DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    fraction = d
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + numerator / c
            c = c if abs(c) > tiny else tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction


def _t_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t exceeds t >= 0."""
    return 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _t_centre(t: float, freedom: float) -> float:
    """Return the probability that Student's t lies between 0 and t >= 0, exact also if it is tiny."""
    return 0.5 * _incomplete_beta(0.5, freedom / 2, t * t / (freedom + t * t))


def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution.

    Parameters
    ----------
    probability
        between 0 and 1
    freedom
        degrees of freedom, > 0

    >>> round(t_quantile(0.975, 10), 6)
    2.228139
    """
    if not 0 < probability < 1:
        raise InputError(f"must be between 0 and 1, got {probability!r}", place="probability")
    if not freedom > 0:
        raise InputError(f"must be > 0, got {freedom!r}", place="freedom")
    return _t_quantile(float(probability), float(freedom))


@lru_cache(4096)
def _t_quantile(probability: float, freedom: float) -> float:
    tail, centre = min(probability, 1 - probability), abs(probability - 0.5)

    def beyond(t: float) -> bool:
        """Whether the quantile's distance from 0 is at most t; near the median the tail has too few digits."""
        return _t_tail(t, freedom) <= tail if tail < 0.25 else _t_centre(t, freedom) >= centre

    low, high = 0.0, 1.0
    while not beyond(high):
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        if beyond(middle):
            high = middle
        else:
            low = middle
    return math.copysign(high, probability - 0.5) if centre else 0.0


# ---------------------------------------------------------------------- intervals


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"must be between 0 and 1, got {level!r}", place="level")


def mean_interval(samples: ArrayLike, level: float = 0.999) -> Interval:
    """Return the mean of independent samples with its Student-t confidence interval.

    Parameters
    ----------
    samples
        at least two numbers
    level
        confidence, between 0 and 1

    >>> print(mean_interval([9, 10, 11], level=0.95))
    10 ± 2.5 (95 %, n = 3)
    """
    _check_level(level)
    values = np.asarray(samples, dtype=np.float64)
    count = len(values)
    if count < 2:
        raise InputError(f"must be two or more for an interval, got {count}", place="samples")
    error = float(values.std(ddof=1)) / math.sqrt(count)
    return Interval(float(values.mean()), t_quantile((1 + level) / 2, count - 1) * error, level, count)


_UPPER = 0.6744897501960817  # quantile of the normal distribution: the limit that holds in 75 % of cases


def cautious_interval(samples: ArrayLike, level: float = 0.999) -> Interval:
    """Return the mean of independent samples with an interval for sequences that stop by its width.

    It is the Student-t interval with the upper 75 % confidence limit of the standard deviation in place of its
    estimate; the error of the estimate follows from the kurtosis of the samples (at least that of a normal
    distribution). It makes up for stopping where the deviation happens to be small, and for skewness.

    Parameters
    ----------
    samples
        at least two numbers
    level
        confidence, between 0 and 1

    >>> print(cautious_interval([9, 10, 11], level=0.95))
    10 ± 3.2 (95 %, n = 3)
    """
    plain = mean_interval(samples, level)
    values = np.asarray(samples, dtype=np.float64)
    away = values - plain.mean
    variance = float((away**2).mean())
    kurtosis = max(float((away**4).mean()) / variance**2, 3.0) if variance > 0 else 3.0
    error = math.sqrt((kurtosis - 1) / plain.count) / 2
    return attrs.evolve(plain, half_width=plain.half_width * (1 + _UPPER * error))


def paired_difference(first: ArrayLike, second: ArrayLike, level: float = 0.999) -> Interval:
    """Return the mean of ``first - second`` with its interval, for samples made in pairs with the same random numbers.

    >>> print(paired_difference([3, 5, 8], [1, 4, 5], level=0.95))
    2 ± 2.5 (95 %, n = 3)
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise InputError(f"samples must come in pairs, got {len(a)} and {len(b)}")
    return mean_interval(a - b, level)


_BATCHES = 10
_INDEPENDENT = 400  # times its correlation length that a series is trusted, however short it is
_LONG, _LEAST = 5000, 15  # a series of so many observations is trusted from so many times its correlation length on
_WIDER = 4.0  # by how much an interval is widened for a series as long as its correlation; less by the root of more


def correlation_length(series: ArrayLike) -> float:
    """Return how many observations of a stationary series are worth an independent one for its mean, >= 1.

    It is the sum of the autocorrelations by the initial monotone sequence: adjacent pairs are summed while they are
    positive and fall.

    Parameters
    ----------
    series
        at least two observations in order

    Source: C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7(4), 1992.

    >>> correlation_length([1, -1] * 50)
    1.0
    >>> round(correlation_length(np.repeat(np.random.default_rng(1).normal(size=1000), 10)))
    10
    """
    values = np.asarray(series, dtype=np.float64)
    count = len(values)
    away = values - values.mean()
    transformed = np.fft.rfft(away, 2 * count)
    products = np.fft.irfft(np.abs(transformed) ** 2, 2 * count)[:count]
    if not products[0] > 0:
        return 1.0
    pairs = products[: count // 2 * 2].reshape(-1, 2).sum(axis=1) / products[0]
    positive = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    return max(1.0, 2 * float(np.minimum.accumulate(pairs[:positive]).sum()) - 1)


def batch_means(series: ArrayLike, level: float = 0.95) -> Interval | None:
    """Return the mean of one long stationary series with its interval; ``None`` if the series is too short for one.

    The interval is the wider one of that of ten batch means, and that of the variance over the correlation length, and
    is widened the more, the fewer correlation lengths the series has. A series is too short if it has fewer than 15
    correlation lengths, or fewer than 5,000 observations and 400 correlation lengths: a quiet stretch of a queue looks
    uncorrelated, so that a short one does not show its own correlation. Waits of M/M/1 queues are covered by
    nominal 95 % intervals of 5,000 and more observations in 93 to 99 % of the cases at a utilisation of 0.5 and 0.8,
    and in 90 to 97 % at 0.9.

    Parameters
    ----------
    series
        observations in order, such as the waits of successive jobs after the warm-up
    level
        confidence, between 0 and 1

    Source: A. M. Law, "Simulation Modeling and Analysis", section on batch means.

    >>> rng = np.random.default_rng(1)
    >>> print(batch_means(rng.normal(size=10_000)), batch_means(rng.normal(size=10_000).cumsum()))
    -0.01091 ± 0.029 (95 %, n = 10000) None
    """
    _check_level(level)
    values = np.asarray(series, dtype=np.float64)
    count = len(values)
    lengths = count / correlation_length(values) if count > 1 else 0.0
    if lengths < _INDEPENDENT and (count < _LONG or lengths < _LEAST):
        return None
    size = count // _BATCHES
    means = values[count - size * _BATCHES :].reshape(_BATCHES, size).mean(axis=1)
    spectral = t_quantile((1 + level) / 2, max(2.0, lengths / 2)) * float(values.std()) / math.sqrt(lengths)
    half = max(mean_interval(means, level).half_width, spectral) * (1 + _WIDER / math.sqrt(lengths))
    return Interval(float(values.mean()), half, level, count)


def replication_seeds(count: int, seed: int = 0) -> list[int]:
    """Return seeds for independent replications; a longer list begins with the shorter one.

    >>> replication_seeds(2) == replication_seeds(5)[:2]
    True
    """
    return [int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(seed).spawn(count)]


def replications(function: Callable[[int], float], count: int = 20, *, seed: int = 0, level: float = 0.999) -> Interval:
    """Call ``function(seed)`` with independent seeds and return the mean of its values with its interval.

    Parameters
    ----------
    function
        runs one replication from a seed and returns one number
    count
        replications, at least 2
    seed
        the seed from which the seeds are drawn

    >>> import numpy as np
    >>> 0.5 in replications(lambda seed: np.random.default_rng(seed).random(100).mean(), count=10)
    True
    """
    return mean_interval([function(each) for each in replication_seeds(count, seed)], level)


# ---------------------------------------------------------------------- warm-up


def mser(series: ArrayLike, batch: int = 5) -> int:
    """Return the number of first observations to delete as warm-up, which minimises the standard error of the rest.

    The default is MSER-5, on means of five observations; at most the first half is deleted.

    Parameters
    ----------
    series
        observations in order
    batch
        observations averaged before the rule is applied

    Source: K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
    1997; the batches of five: K. P. White, M. J. Cobb and S. C. Spratt, "A comparison of five steady-state truncation
    heuristics for simulation", WSC 2000.

    >>> mser([100, 90, 50, 20, 5] + [1, 2] * 50)
    5
    """
    values: NDArray[np.float64] = np.asarray(series, dtype=np.float64)
    if batch < 1:
        raise InputError(f"must be >= 1, got {batch!r}", place="batch")
    count = len(values) // batch
    if count < 2:
        return 0
    means = values[: count * batch].reshape(count, batch).mean(axis=1)
    means = means - means.mean()  # only differences matter, and sums of squares stay exact
    left = np.arange(count, 0, -1, dtype=np.float64)
    tail = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum((means**2)[::-1])[::-1]
    error = (squares - tail**2 / left) / left**2
    return int(np.argmin(error[: count // 2 + 1])) * batch
