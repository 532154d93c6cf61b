"""Intervals against scipy, coverage against the normal distribution, and the warm-up rule."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import stats

from simmodel.errors import InputError
from simmodel.metrics.statistics import (
    Interval,
    batch_means,
    mean_interval,
    mser,
    paired_difference,
    replication_seeds,
    replications,
    t_quantile,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 19, 29, 99, 1000, 100_000])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.9995, 0.999999])
def test_quantiles_of_t(freedom, probability):
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-9, abs=1e-9)


@given(st.floats(0.001, 0.999), st.floats(0.5, 500))
@example(probability=0.5000000000000001, freedom=1.0)
@example(probability=0.2499999999999999, freedom=0.5)
def test_quantiles_are_symmetric_and_agree(probability, freedom):
    found = t_quantile(probability, freedom)
    assert found == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-7, abs=1e-9)
    assert t_quantile(1 - probability, freedom) == pytest.approx(-found, rel=1e-6, abs=1e-9)


def test_quantiles_next_to_the_median_keep_their_digits():
    assert t_quantile(0.5000000000000001, 1.0) == pytest.approx(np.pi * 2**-53, rel=1e-9)
    assert t_quantile(0.5 - 1e-9, 1.0) == pytest.approx(-np.pi * 1e-9, rel=1e-7)


def test_interval_of_a_mean():
    samples = [4, 8, 6, 5, 3]
    interval = mean_interval(samples, level=0.95)
    low, high = stats.t.interval(0.95, 4, np.mean(samples), stats.sem(samples))
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.mean == 5.2
    assert 5 in interval
    assert high + 0.001 not in interval


def test_constant_samples_have_an_interval_of_no_width():
    assert 3 in mean_interval([3, 3, 3])
    assert mean_interval([3, 3, 3]).half_width == 0


def test_coverage_of_the_interval():
    rng = np.random.default_rng(0)
    hits = sum(0 in mean_interval(rng.normal(size=8), level=0.9) for _ in range(2000))
    assert stats.binomtest(hits, 2000, 0.9).pvalue > 1e-3


def test_paired_samples_profit_from_common_numbers():
    rng = np.random.default_rng(1)
    common = rng.normal(0, 100, 50)
    interval = paired_difference(common + 1 + rng.normal(0, 0.1, 50), common, level=0.99)
    assert 1 in interval
    assert interval.half_width < 0.1
    with pytest.raises(ValueError, match="got 2 and 3"):
        paired_difference([1, 2], [1, 2, 3])


def test_batch_means_drop_the_rest_at_the_beginning():
    assert batch_means([1000, 1, 2, 3, 4], batches=2, level=0.5).mean == 2.5
    rng = np.random.default_rng(2)
    noise, series = 0.0, []
    for shock in rng.normal(size=20_000):
        noise = 0.8 * noise + shock
        series.append(5 + noise)
    assert 5 in batch_means(series)
    for batches in (1, 10):
        with pytest.raises(InputError, match="must be"):
            batch_means([1, 2, 3], batches=batches)


def test_replications_have_seeds_of_their_own():
    interval = replications(lambda seed: float(np.random.default_rng(seed).exponential(2.0, 500).mean()), count=12)
    assert 2 in interval
    assert interval.count == 12
    assert len(set(replication_seeds(100))) == 100
    assert replication_seeds(3, seed=1) != replication_seeds(3, seed=0)


def test_warm_up_rule_finds_the_change():
    rng = np.random.default_rng(3)
    series = np.append(50 + rng.normal(size=100), rng.normal(size=900))
    assert mser(series) == 100
    assert mser(np.ones(100)) == 0
    assert mser([1, 2, 3]) == 0
    assert mser([]) == 0


@given(st.lists(st.integers(-100, 100), min_size=10, max_size=60))
def test_warm_up_rule_against_its_definition(values):
    means = np.array(values[: len(values) // 5 * 5], dtype=float).reshape(-1, 5).mean(axis=1)
    errors = [((means[d:] - means[d:].mean()) ** 2).sum() / (len(means) - d) ** 2 for d in range(len(means) // 2 + 1)]
    assert errors[mser(values) // 5] == pytest.approx(min(errors), abs=1e-9)


def test_wrong_arguments():
    for call in (
        lambda: mean_interval([1]),
        lambda: mean_interval([1, 2], level=1),
        lambda: t_quantile(1, 3),
        lambda: t_quantile(0.5, 0),
        lambda: mser([1, 2], batch=0),
    ):
        with pytest.raises(InputError, match="must be"):
            call()


def test_intervals_print_and_compare():
    assert str(Interval(1234.5, 1.5, 0.999, 20)) == "1234 ± 1.5 (99.9 %, n = 20)"
    assert Interval(1, 2, 0.9, 3) == Interval(1, 2, 0.9, 3)
