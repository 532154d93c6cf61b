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
    "all_equal",
    "batch_means",
    "cautious_interval",
    "correlation_length",
    "extremes_needed",
    "mean_interval",
    "mser",
    "paired_difference",
    "paired_samples",
    "replication_seeds",
    "replications",
    "series_interval",
    "share_interval",
    "spread_interval",
    "t_quantile",
    "tail_index",
]


@attrs.frozen(repr=False)
class Interval(Fields):
    """A mean with its confidence interval; ``value in interval`` says whether a value is inside.

    Where no interval would hold, ``half_width`` is nan, nothing is inside, and ``why`` is the reason. ``extremes`` says
    that the samples are too few for their skewness: extremes carry the mean, and the interval misses the true one more
    often than its level says.

    >>> interval = Interval(mean=10.0, half_width=2.0, level=0.95, count=5)
    >>> interval.low, interval.high, 11 in interval, 13 in interval
    (8.0, 12.0, True, False)
    >>> print(interval)
    10 ± 2 (95 %, n = 5)
    >>> print(Interval(10.0, math.nan, 0.95, 5, "all 5 samples are equal"))
    10 (no interval: all 5 samples are equal)
    """

    mean: float
    half_width: float
    level: float
    count: int
    why: str = ""
    extremes: bool = False

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
        if math.isnan(self.half_width):
            return f"{figures(self.mean, 4)} (no interval{self.why and ': '}{self.why})"
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


_ROUNDING = 1e-12  # relative difference of values that are equal but for rounding


def all_equal(values: ArrayLike, size: float = 0.0) -> bool:
    """Whether values are equal but for rounding: copies of one sample, which say nothing about others.

    Parameters
    ----------
    values
        any number of numbers
    size
        that of the numbers that they are differences of

    >>> all_equal([0.3, 0.1 + 0.2]), all_equal([0.3, 0.31]), all_equal([])
    (True, False, True)
    """
    found = np.asarray(values, dtype=np.float64)
    return not len(found) or bool(np.ptp(found) <= _ROUNDING * max(size, float(np.abs(found).max())))


def mean_interval(samples: ArrayLike, level: float = 0.999) -> Interval:
    """Return the mean of independent samples with its Student-t confidence interval; without one if all are equal.

    Parameters
    ----------
    samples
        at least two numbers
    level
        confidence, between 0 and 1

    >>> print(mean_interval([9, 10, 11], level=0.95))
    10 ± 2.5 (95 %, n = 3)
    >>> print(mean_interval([10, 10, 10], level=0.95))
    10 (no interval: all 3 samples are equal)
    """
    _check_level(level)
    values = np.asarray(samples, dtype=np.float64)
    count = len(values)
    if count < 2:
        raise InputError(f"must be two or more for an interval, got {count}", place="samples")
    if all_equal(values):
        return Interval(float(np.median(values)), math.nan, level, count, f"all {count} samples are equal")
    half = t_quantile((1 + level) / 2, count - 1) * float(values.std(ddof=1)) / math.sqrt(count)
    by_chance = _COCHRAN * 16 / count  # of normal samples, whose skewness has a standard error of the root of 6 / count
    extremes = extremes_needed(values) > max(count, by_chance)
    return Interval(float(values.mean()), half, level, count, extremes=extremes)


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
    if plain.why:
        return plain
    values = np.asarray(samples, dtype=np.float64)
    away = values - plain.mean
    kurtosis = max(float((away**4).mean() / (away**2).mean() ** 2), 3.0)
    error = math.sqrt((kurtosis - 1) / plain.count) / 2
    return attrs.evolve(plain, half_width=plain.half_width * (1 + _UPPER * error))


def paired_difference(first: ArrayLike, second: ArrayLike, level: float = 0.999) -> Interval:
    """Return the mean of ``first - second`` with its interval, for samples made in pairs with the same random numbers.

    >>> print(paired_difference([3, 5, 8], [1, 4, 5], level=0.95))
    2 ± 2.5 (95 %, n = 3)
    """
    return mean_interval(paired_samples(first, second), level)


def spread_interval(samples: ArrayLike, level: float = 0.95) -> Interval:
    """Return the mean of samples with the interval that a further one is in: t times their standard deviation.

    It does not shrink with their number. That is the interval of resamples of one log: each is as long as the log, so
    that their spread is the log's own error, while the error of their mean only tells how many were drawn.

    Parameters
    ----------
    samples
        at least two numbers
    level
        confidence, between 0 and 1

    >>> print(spread_interval([9, 10, 11] * 20)), print(mean_interval([9, 10, 11] * 20, 0.95))
    10 ± 1.6 (95 %, n = 60)
    10 ± 0.21 (95 %, n = 60)
    (None, None)
    """
    found = mean_interval(samples, level)
    return attrs.evolve(found, half_width=found.half_width * math.sqrt(found.count), extremes=False)


_PERIODS = 10  # fewer say too little of how they spread


def share_interval(sums: ArrayLike, counts: ArrayLike, level: float = 0.95, *, period: str = "week") -> Interval:
    """Return a mean over the observations of successive periods with its interval, or with the reason why none holds.

    The mean is that of all observations; its error is that of a ratio of sums. There is none for fewer than ten
    periods, or if the deviations of successive periods are surely correlated.

    Parameters
    ----------
    sums, counts
        of the observations in each period
    level
        confidence, between 0 and 1
    period
        its name, for reasons

    Source: W. G. Cochran, "Sampling Techniques", 3rd edition, 1977, chapter 6.

    >>> print(share_interval([9, 20, 33, 10, 21, 31, 11, 19, 32, 10], [1, 2, 3] * 3 + [1]))
    10.32 ± 0.41 (95 %, n = 10)
    >>> print(share_interval([9, 20], [1, 2]))
    9.667 (no interval: 2 weeks, 10 needed)
    """
    _check_level(level)
    total, count = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    total, count = total[count > 0], count[count > 0]
    periods = len(count)
    mean = float(total.sum() / count.sum()) if periods else math.nan
    away = total - mean * count
    why = ""
    if periods < _PERIODS:
        why = f"{periods} {period}{'' if periods == 1 else 's'}, {_PERIODS} needed"
    elif all_equal(away, float(np.abs(total).max())):
        why = f"all {periods} {period}s are equal"
    else:
        successive = float((away[1:] * away[:-1]).sum() / (away**2).sum())
        if successive > 1.645 / math.sqrt(periods):  # 95 % of independent ones have less
            why = f"successive {period}s depend on each other (correlation {successive:.2f} of {periods})"
    if why:
        return Interval(mean, math.nan, level, periods, why)
    error = math.sqrt(periods / (periods - 1) * float((away**2).sum())) / float(count.sum())
    return Interval(mean, t_quantile((1 + level) / 2, periods - 1) * error, level, periods)


def paired_samples(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return ``first - second`` of samples that come in pairs; differences that are equal but for rounding are equal.

    >>> paired_samples([0.3, 5.5], [0.1 + 0.2, 5.5])
    array([0., 0.])
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise InputError(f"samples must come in pairs, got {len(a)} and {len(b)}")
    found, known = a - b, np.isfinite(a - b)
    size = float(np.abs([a[known], b[known]]).max(initial=0.0))
    if known.any() and all_equal(found[known], size):
        same = float(np.median(found[known]))
        found[known] = same if abs(same) > _ROUNDING * size else 0.0
    return found


_COCHRAN = 25.0


def extremes_needed(samples: ArrayLike) -> float:
    """Return how many samples an interval of their mean needs for their skewness.

    Source: W. G. Cochran, "Sampling Techniques", 3rd edition, 1977, section 2.15.

    >>> extremes_needed([1, 2, 3]), round(extremes_needed([0] * 9 + [1]))
    (0.0, 178)
    """
    values = np.asarray(samples, dtype=np.float64)
    if all_equal(values):
        return 0.0
    away = values - values.mean()
    return _COCHRAN * float((away**3).mean() ** 2 / (away**2).mean() ** 3)


_BATCHES = 20
_LENGTHS = 250  # correlation lengths from which on a series is trusted
_TOP = (
    250  # of the changes in a series, how many its tail is estimated from at least; more than 50 times as many: 1 of 50
)
_HEAVY = 0.25  # tail index from which on sums of a queue's waits have no variance: services without a fourth moment


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


def tail_index(changes: NDArray[np.float64]) -> tuple[float, float]:
    """Return the extreme value index of the sizes of changes by the moment estimator, and its standard error.

    It is 0 for an exponential tail, ``1 / a`` for one that falls as the power ``-a``, below 0 for one with an end.

    Source: A. L. M. Dekkers, J. H. J. Einmahl and L. de Haan, "A moment estimator for the index of an extreme-value
    distribution", Annals of Statistics 17(4), 1989.

    >>> rng = np.random.default_rng(1)
    >>> [round(tail_index(each)[0], 1) for each in (rng.exponential(size=100_000), rng.pareto(2.5, size=100_000))]
    [0.0, 0.4]
    """
    sizes = np.abs(changes[changes != 0])
    most = min(max(_TOP, len(changes) // 50), len(sizes) // 4)
    if most < 2:
        return math.inf, math.inf
    highest = np.log(-np.partition(-sizes, most)[: most + 1])
    above = np.delete(highest, highest.argmin()) - highest.min()
    first, second = float(above.mean()), float((above**2).mean())
    if not second > first**2:
        return -math.inf, 0.0
    return first + 1 - 0.5 / (1 - first**2 / second), 1 / math.sqrt(most)


def series_interval(series: ArrayLike, level: float = 0.95) -> Interval:
    """Return the mean of one long stationary series with its interval, or with the reason why none would hold.

    The square of its width is the mean of those of the interval of twenty batch means, and of that of the variance over
    the correlation length. For skewed observations it is the wider, the fewer correlation lengths the series has: among
    short series, those without their extremes look long enough. There is none if

    - all observations are equal;
    - the series has fewer than 250 correlation lengths: a quiet stretch of a queue looks uncorrelated, so that a short
      one does not show its own correlation; or
    - its changes from one observation to the next do not surely have a light tail (:func:`tail_index` plus two standard
      errors at most 1/4): the waits of a queue change by service times, and if these have no fourth moment, mean waits
      have no variance.

    A series tells nothing of what did not happen in it.

    Parameters
    ----------
    series
        observations in order, such as the waits of successive jobs after the warm-up
    level
        confidence, between 0 and 1

    Source: A. M. Law, "Simulation Modeling and Analysis", section on batch means; the fourth moment: D. J. Daley, "The
    serial correlation coefficients of waiting times in a stationary single server queue", Journal of the Australian
    Mathematical Society 8(4), 1968.

    >>> rng = np.random.default_rng(1)
    >>> print(series_interval(rng.normal(size=10_000)))
    -0.01091 ± 0.023 (95 %, n = 10000)
    >>> print(series_interval(rng.normal(size=10_000).cumsum()))
    -57.78 (no interval: worth 4 independent observations, 250 needed)
    >>> print(series_interval(rng.pareto(2.5, size=10_000)))
    0.6503 (no interval: a heavy tail: extremes carry the mean)
    """
    _check_level(level)
    values = np.asarray(series, dtype=np.float64)
    count = len(values)
    mean = float(values.mean()) if count else math.nan
    lengths = count / correlation_length(values) if count > 1 else float(count)
    index, error = tail_index(np.diff(values))
    why = ""
    if count > 1 and all_equal(values):
        why = f"all {count:,} observations are equal"
    elif lengths < _LENGTHS:
        why = f"worth {lengths:,.0f} independent observations, {_LENGTHS} needed"
    elif index + 2 * error > _HEAVY:
        why = "a heavy tail: extremes carry the mean"
    if why:
        return Interval(mean, math.nan, level, count, why)
    size = count // _BATCHES
    means = values[count - size * _BATCHES :].reshape(_BATCHES, size).mean(axis=1)
    spectral = t_quantile((1 + level) / 2, lengths / 2) * float(values.std()) / math.sqrt(lengths)
    batches = t_quantile((1 + level) / 2, _BATCHES - 1) * float(means.std(ddof=1)) / math.sqrt(_BATCHES)
    skewness = abs(float(((values - mean) ** 3).mean())) / float(values.std()) ** 3
    wider = 1 + min(skewness, 1.0) * (_LENGTHS / lengths) ** 2
    return Interval(mean, math.sqrt((batches**2 + spectral**2) / 2) * wider, level, count)


def batch_means(series: ArrayLike, level: float = 0.95) -> Interval | None:
    """Return :func:`series_interval`; ``None`` where no interval would hold.

    >>> batch_means([1.0, 2.0, 1.5]) is None
    True
    """
    found = series_interval(series, level)
    return None if found.why else found


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
