"""User estimates: the published shares and counts, and every estimate at least the run time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.generators.estimates import (
    POPULAR,
    distinct_estimates,
    estimate_times,
    popularity,
    user_estimates,
    with_estimates,
)
from simmodel.generators.lublin_feitelson import lublin
from tests.helpers.examples import up_to

HOUR = 3600.0


@pytest.mark.parametrize(
    ("jobs", "distinct"), [(20, 10), (200, 20), (1000, 35), (10_000, 90), (70_000, 340), (250_000, 565), (1, 1)]
)
def test_the_number_of_distinct_estimates_grows_with_the_jobs(jobs, distinct):
    assert distinct_estimates(jobs) == distinct


def test_more_jobs_have_more_different_estimates():
    counts = [distinct_estimates(jobs) for jobs in range(0, 2_000_000, 10_000)]
    assert all(a <= b for a, b in pairwise(counts))


@pytest.mark.parametrize("distinct", [1, 5, 20, 21, 35, 340])
def test_popularities_fall_and_the_first_20_hold_89_percent(distinct):
    shares = popularity(distinct)
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    assert (np.diff(shares[:20]) < 0).all()
    assert (np.diff(shares[20:]) < 0).all()
    if distinct > 20:
        assert shares[:20].sum() == pytest.approx(0.89)
        assert shares[1] == pytest.approx(0.140491 * np.exp(-0.177531 * 2) + 0.00462513)


@pytest.mark.parametrize("maximum", [60, 3600, 18 * HOUR, 36 * HOUR, 46 * HOUR, 500 * HOUR, 131_313])
@pytest.mark.parametrize("distinct", [1, 10, 20, 35, 340])
def test_times_are_distinct_minutes_up_to_the_maximum(maximum, distinct):
    times = estimate_times(distinct, maximum)
    assert len(times) == min(distinct, maximum // 60)
    assert len(set(times.tolist())) == len(times)
    assert times[0] == maximum == times.max()
    assert times.min() > 0
    assert (times[1:] % 60 == 0).all()


def test_the_popular_times_come_first():
    times = estimate_times(35, 36 * HOUR)
    assert times[1 : 1 + len(POPULAR)].tolist() == list(POPULAR)
    assert sorted(times[16:20] / HOUR) == [20, 25, 30, 35]


def test_estimates_exceed_run_times_and_few_are_popular():
    log = with_estimates(lublin(10_000, 256, seed=1), seed=2)
    requested, run = log["requested"], log["run"]
    assert (requested >= run).all()
    values, counts = np.unique(requested, return_counts=True)
    assert len(values) <= 90
    assert requested.max() >= run.max()
    # the most popular estimates hold 89 % of the jobs, the largest is the most popular
    assert np.sort(counts)[-20:].sum() / len(log) == pytest.approx(0.89, abs=0.03)
    assert values[counts.argmax()] == requested.max()
    # as in real logs, run times are a small part of the requested times
    assert np.median(run / requested) < 0.3


def test_the_seed_decides():
    runs = lublin(2000, seed=1)["run"]
    assert (user_estimates(runs, seed=3) == user_estimates(runs, rng=np.random.default_rng(3))).all()
    assert (user_estimates(runs, seed=3) != user_estimates(runs, seed=4)).any()
    assert len(user_estimates([])) == 0
    with pytest.raises(ValueError, match=r"must be at least the longest run \(7200 s\), got 60"):
        user_estimates([7200.0], 60)


@settings(max_examples=up_to(200), deadline=None)
@given(
    st.lists(st.one_of(st.floats(0, 2e5), st.just(float("nan"))), min_size=1, max_size=60),
    st.floats(0, 1e5),
    st.integers(0, 5),
)
def test_no_estimate_is_below_its_run_time(runs, more, seed):
    maximum = max(np.nan_to_num(runs).max(), 1) + more
    estimates = user_estimates(runs, maximum, seed=seed)
    assert (estimates >= np.nan_to_num(runs)).all()
    assert (estimates <= maximum).all()
    assert (estimates > 0).all()
