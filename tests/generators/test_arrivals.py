"""Distributions have the given mean and variation; renewal processes match their closed forms."""

import math

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.generators import distributions as d
from simmodel.generators.arrivals import poisson_arrivals, renewal_arrivals, synthetic

N = 200_000


@pytest.mark.parametrize(
    ("made", "mean", "cv"),
    [
        (d.exponential(5.0), 5.0, 1.0),
        (d.deterministic(5.0), 5.0, 0.0),
        (d.uniform(2.0, 8.0), 5.0, 6 / math.sqrt(12) / 5),
        (d.gamma(5.0, 0.5), 5.0, 0.5),
        (d.gamma(5.0, 2.0), 5.0, 2.0),
        (d.weibull(5.0, 1.0), 5.0, 1.0),
        (d.weibull(5.0, 2.0), 5.0, math.sqrt(math.gamma(2) / math.gamma(1.5) ** 2 - 1)),
        (d.log_normal(5.0, 1.5), 5.0, 1.5),
        (d.hyper_exponential(5.0, 1.0), 5.0, 1.0),
        (d.hyper_exponential(5.0, 3.0), 5.0, 3.0),
        (d.choice([1, 2, 4], [0.5, 0.25, 0.25]), 2.0, math.sqrt(1.5) / 2),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_draws_have_the_mean_and_variation_asked_for(made, mean, cv):
    drawn = made.draw(np.random.default_rng(7), N)
    assert made.mean == pytest.approx(mean)
    assert drawn.mean() == pytest.approx(mean, rel=4 * cv / math.sqrt(N) + 1e-9)
    assert drawn.std() / mean == pytest.approx(cv, rel=0.06, abs=1e-12)


def test_a_poisson_process_counts_as_poisson():
    times = poisson_arrivals(N, 0.2, start=100.0, seed=3)
    assert times[0] > 100
    counts = np.bincount(((times - 100) // 50).astype(int))[:-1]
    assert counts.mean() == pytest.approx(10, rel=0.02)
    assert counts.var() == pytest.approx(10, rel=0.08)


def test_renewal_counts_vary_with_the_gaps():
    # In the long run the variance / mean of counts is the squared cv of the gaps.
    for cv in (0.5, 2.0):
        times = renewal_arrivals(N, d.gamma(1.0, cv), seed=4)
        counts = np.bincount((times // 100).astype(int))[:-1]
        assert counts.var() / counts.mean() == pytest.approx(cv**2, rel=0.15)


def test_distributions_by_description():
    assert d.distribution(3).mean == 3
    assert d.distribution({"distribution": "weibull", "mean": 4, "shape": 0.7}).mean == 4
    with pytest.raises(InputError, match="unknown distribution 'gama'; did you mean 'gamma'"):
        d.distribution({"distribution": "gama"})
    with pytest.raises(InputError, match=r"distribution gamma: .*cv"):
        d.distribution({"distribution": "gamma", "mean": 4})
    with pytest.raises(InputError, match="mean: must be > 0, got -4"):
        d.distribution({"distribution": "exponential", "mean": -4})
    for wrong in (lambda: d.hyper_exponential(1, 0.5), lambda: d.choice([1], [2]), lambda: d.uniform(3, 1)):
        with pytest.raises(ValueError, match=r"must (be|add up)"):
            wrong()


def test_synthetic_jobs():
    log = synthetic(
        5000,
        gap=d.exponential(10),
        run=d.gamma(60, 2),
        size=d.choice([1, 2, 4, 100]),
        request_factor=d.uniform(0.5, 3),
        users=5,
        processors=16,
        seed=0,
    )
    assert sorted(set(log["processors"].tolist())) == [1, 2, 4, 16]
    assert (log["requested"] >= log["run"]).all()
    assert (log["requested"] == log["run"]).mean() == pytest.approx(0.2, abs=0.03)
    assert sorted(set(log["user"].tolist())) == [1, 2, 3, 4, 5]
    assert (np.diff(log["submit"]) >= 0).all()
    again = synthetic(5000, gap=d.exponential(10), run=d.gamma(60, 2), seed=0)
    assert (again["submit"] == log["submit"]).all()  # each quantity has its own stream
    assert (again["run"] == log["run"]).all()
    with pytest.raises(ValueError, match="jobs: must be >= 1"):
        synthetic(0, gap=1, run=1)
    with pytest.raises(ValueError, match="gaps: must be >= 0"):
        renewal_arrivals(3, d.Distribution("mine", 0.0, lambda rng, n: rng.normal(size=n)))
