"""Objectives: measures, scales, and their form as text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.scheduling.objectives import MEASURES, Objective, comparable, measure, objective

# ---------------------------------------------------------------------- measures


def test_measures_of_three_jobs_are_as_by_hand():
    found = measure([0, 5, 10], [10, 5, 40], [10, 1, 20], busy=0.75)
    assert found == {
        "wait_max": 30,
        "wait_mean": 40 / 3,
        "slowdown_max": 2.5,
        "slowdown_mean": pytest.approx((2 + 1 + 2.5) / 3),
        "bounded_slowdown_max": 2.5,
        "bounded_slowdown_mean": pytest.approx((2 + 1 + 2.5) / 3),
        "turnaround_mean": pytest.approx((20 + 1 + 50) / 3),
        "utilisation": 0.75,
    }
    assert list(found) == list(MEASURES)


def test_a_short_job_weighs_less_in_the_bounded_slowdown():
    found = measure([0], [99], [1], names=("slowdown_max", "bounded_slowdown_max"))
    assert found == {"slowdown_max": 100, "bounded_slowdown_max": 10}
    assert measure([0], [99], [1], names=("bounded_slowdown_mean",), tau=50) == {"bounded_slowdown_mean": 2}


def test_jobs_that_run_for_no_time_have_no_slowdown_and_one_that_has_not_started_waits_to_the_horizon():
    found = measure([0, 0], [4, 8], [0, 8], names=("slowdown_mean", "wait_mean"))
    assert found == {"slowdown_mean": 2, "wait_mean": 6}
    assert measure([0, 3], [4, math.nan], [1, 1], names=("wait_max",), until=30) == {"wait_max": 27}
    assert measure([0, 3], [9, math.nan], [1, 1], names=("wait_max",)) == {"wait_max": 9}
    assert all(math.isnan(value) for value in measure([], [], []).values())
    assert math.isnan(measure([0], [1], [0], names=("slowdown_max",))["slowdown_max"])


# ---------------------------------------------------------------------- scales


def test_min_max_does_not_blow_rounding_up():
    mean = 100 / 3
    assert comparable([[mean], [np.nextafter(mean, 99)], [mean]]).tolist() == [[0], [0], [0]]
    assert comparable([[mean], [mean + 1e-3], [mean]]).tolist() == [[0], [1], [0]]


def test_what_cannot_be_told_counts_for_nobody():
    nan = math.nan
    assert comparable([[1, nan], [2, nan]]).tolist() == [[0, 0], [1, 0]]
    assert comparable([[1, nan, 0], [3, nan, 0]], "mean").tolist() == [[0.5, 0, 0], [1.5, 0, 0]]
    assert comparable(np.zeros((0, 2))).shape == (0, 2)


def test_scores_of_each_scale_by_hand():
    futures = [{"wait_max": 100.0, "utilisation": 0.5}, {"wait_max": 300.0, "utilisation": 0.9}]
    weights = {"wait_max": 1, "utilisation": 3}
    assert Objective(weights).scores(futures).tolist() == [3, 1]
    assert Objective(weights, scale="raw").scores(futures) == pytest.approx([100 + 3 * 0.5, 300 + 3 * 0.1])
    assert Objective(weights, scale="mean").scores(futures) == pytest.approx([0.5 + 3 * 0.5 / 0.3, 1.5 + 3 * 0.1 / 0.3])


# ---------------------------------------------------------------------- as text


@pytest.mark.parametrize(
    ("text", "weights", "scale"),
    [
        ("wait_mean", {"wait_mean": 1}, "min-max"),
        ("0.25*wait_max+0.75 * wait_mean", {"wait_max": 0.25, "wait_mean": 0.75}, "min-max"),
        ("wait_max=0.25, wait_mean=.75", {"wait_max": 0.25, "wait_mean": 0.75}, "min-max"),
        ("1e+3*slowdown_max + utilisation", {"slowdown_max": 1000, "utilisation": 1}, "min-max"),
        ("raw: wait_max*2", {"wait_max": 2}, "raw"),
        ("mean:turnaround_mean=1e-3", {"turnaround_mean": 0.001}, "mean"),
        ("schedtwin", dict.fromkeys(("wait_max", "slowdown_max", "wait_mean", "slowdown_mean"), 0.25), "min-max"),
    ],
)
def test_objectives_are_read_and_written(text, weights, scale):
    found = objective(text)
    assert (dict(found.weights), found.scale) == (weights, scale)
    assert objective(str(found)) == found


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("", "objective '': must be WEIGHT*MEASURE or MEASURE=WEIGHT, got ''"),
        ("wait_max+", "must be WEIGHT*MEASURE or MEASURE=WEIGHT, got ''"),
        ("2*wait_max=3", "must be WEIGHT*MEASURE or MEASURE=WEIGHT, got '2*wait_max=3'"),
        ("wait_avg", "objective 'wait_avg': unknown measure 'wait_avg'; did you mean 'wait_max'"),
        ("x*wait_max", "weight of wait_max must be finite and > 0, got 'x'"),
        ("-1*wait_max", "weight of wait_max must be finite and > 0, got -1"),
        ("0*wait_max", "weight of wait_max must be finite and > 0, got 0"),
        ("nan*wait_max", "weight of wait_max must be finite and > 0, got nan"),
        ("wait_max+wait_max", "duplicate measure 'wait_max'"),
        ("nowhere:score", "neither scale .min-max, mean, raw. nor module:function: No module named 'nowhere'"),
        ("math:pi", "objective 'math:pi': must be a function, got 3.14"),
        ({}, "objective: missing weights or function"),
        ({"wait_max": "1"}, "weight of wait_max must be finite and > 0, got '1'"),
        (3, "objective: must be a name, terms, weights or a function, got 3"),
    ],
)  # fmt: skip
def test_wrong_objectives_get_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence.replace("*", r"\*").replace("+", r"\+")):
        objective(given)


def test_an_objective_may_be_a_function():
    assert objective("math:fsum").function is math.fsum
    found = objective(max)
    assert (found.function, found.measures, str(found)) == (max, (), "max")
    assert objective(found) is found
    with pytest.raises(InputError, match="unknown scale 'best'; known scales: min-max, mean, raw"):
        Objective({"wait_max": 1}, scale="best")
