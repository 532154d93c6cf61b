"""Intervals against scipy, coverage against the normal distribution, and the warm-up rule."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import stats

from simmodel.foundation.errors import InputError
from simmodel.metrics.statistics import (
    Interval,
    batch_means,
    cautious_interval,
    correlation_length,
    extremes_needed,
    mean_interval,
    mser,
    paired_difference,
    replication_seeds,
    replications,
    series_interval,
    t_quantile,
    tail_index,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 19, 29, 99, 1000, 100_000])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.9995, 0.999999])
def test_quantiles_of_t(freedom, probability):
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-8, abs=1e-9)


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


@pytest.mark.parametrize("interval", [mean_interval, cautious_interval])
@pytest.mark.parametrize("samples", [[3, 3, 3], [0.3, 0.1 + 0.2], [5e5, 5e5 + 8.1e-11], [0.0] * 30])
def test_samples_that_are_equal_but_for_rounding_have_no_interval(interval, samples):
    found = interval(samples, 0.95)
    assert found.why == f"all {len(samples)} samples are equal"
    assert np.isnan([found.half_width, found.low, found.high]).all()
    assert samples[0] not in found
    assert found.mean == pytest.approx(samples[0])
    assert "±" not in str(found)
    assert not interval([*samples, samples[0] + 1e-9 * max(samples[0], 1)], 0.95).why


@given(st.floats(-1e12, 1e12), st.floats(-1e9, 1e9), st.integers(2, 40))
def test_differences_of_pairs_that_are_equal_have_no_interval(first, apart, count):
    noise = np.random.default_rng(count).normal(first, 1 + abs(first), count)
    found = paired_difference(noise + apart, noise, 0.95)
    assert found.why == f"all {count} samples are equal"
    assert found.mean == pytest.approx(apart, rel=1e-9, abs=1e-11 * np.abs(noise).max())
    assert paired_difference(noise, noise).mean == 0


def test_means_that_extremes_carry_are_marked():
    rng = np.random.default_rng(5)
    assert not any(mean_interval(rng.normal(size=count)).extremes for count in (5, 20, 1000))
    assert mean_interval([*rng.normal(size=49), 300.0]).extremes
    assert np.mean([mean_interval(rng.normal(size=20)).extremes for _ in range(200)]) < 0.08
    assert np.mean([mean_interval(rng.pareto(1.5, 20)).extremes for _ in range(200)]) > 0.8
    assert extremes_needed(np.repeat([0.0, 1.0], [90, 10])) == pytest.approx(25 * 0.8**2 / 0.09)  # by its skewness


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


def test_batch_means_of_a_long_series_and_of_short_ones():
    rng = np.random.default_rng(2)
    noise, series = 0.0, []
    for shock in rng.normal(size=20_000):
        noise = 0.8 * noise + shock
        series.append(5 + noise)
    assert 5 in batch_means(series)
    assert correlation_length(series) == pytest.approx(9, rel=0.2)  # (1 + 0.8) / (1 - 0.8)
    for short, lengths in (([], 0), ([1], 1), ([1, 2, 3], None), (series[:1000], None)):
        assert batch_means(short) is None
        assert "independent observations, 250 needed" in series_interval(short).why
        assert lengths is None or f"worth {lengths} " in series_interval(short).why
    assert batch_means([7.0] * 500) is None
    assert series_interval([7.0] * 500).why == "all 500 observations are equal"
    assert series_interval(rng.pareto(2.5, 20_000)).why == "a heavy tail: extremes carry the mean"
    assert 0.2 in series_interval(rng.random(2000) < 0.2)  # of two values none is an extreme
    with pytest.raises(InputError, match="level: must be between 0 and 1"):
        batch_means(series, 1)


def waits(rng, utilisation, runs, jobs):
    """Return waits of successive customers of stationary M/M/1 queues, one row a run (Lindley's recursion)."""
    wait = np.where(rng.random(runs) < utilisation, rng.exponential(1 / (1 - utilisation), runs), 0.0)
    found = np.empty((runs, jobs))
    for i in range(jobs):
        found[:, i] = wait
        wait = np.maximum(0, wait + rng.exponential(1, runs) - rng.exponential(1 / utilisation, runs))
    return found


@pytest.mark.parametrize("jobs", [40, 200, 1000, 2000, 5000])
def test_short_series_of_waits_have_no_interval(jobs):
    for utilisation in (0.8, 0.9):
        for series in waits(np.random.default_rng(11), utilisation, 40, jobs):
            assert "independent observations, 250 needed" in series_interval(series).why


def test_tail_index_of_known_tails():
    rng = np.random.default_rng(6)
    for draw, index in ((rng.exponential, 0.0), (lambda size: rng.pareto(2.5, size), 0.4), (rng.random, -1.0)):
        found, error = tail_index(draw(size=200_000) * rng.choice([-1, 1], 200_000))
        assert error == pytest.approx(1 / np.sqrt(4000))
        assert abs(found - index) < 4 * error
    assert tail_index(np.zeros(9))[0] == np.inf  # nothing changes


@pytest.mark.parametrize("runs", [50, pytest.param(300, marks=pytest.mark.exhaustive)])
def test_intervals_after_the_warm_up_of_an_empty_queue(runs):
    rng = np.random.default_rng(3)
    series = waits(rng, 0.9, runs, 2000)
    for row in series:
        assert batch_means(row[mser(row) :]) is None


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
    assert str(Interval(1234.5, 1.5, 0.999, 20)) == "1,234 ± 1.5 (99.9 %, n = 20)"
    assert str(Interval(145_083.2, 2_316.4, 0.95, 8)) == "145,083 ± 2,316 (95 %, n = 8)"
    assert Interval(1, 2, 0.9, 3) == Interval(1, 2, 0.9, 3)
