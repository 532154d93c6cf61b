"""Objectives: what is measured, on which scale it is compared, how it is written; the areas of Kiviat figures."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from simmodel.errors import InputError
from simmodel.metrics.objective_scores import final_scores, kiviat, kiviat_area, measured, started_shares
from simmodel.results.result import Result
from simmodel.scheduling.objectives import MEASURES, OBJECTIVES, Objective, comparable, measure, objective


def result(starts, name="run", **more):
    count = len(starts)
    run = np.array([10.0, 20.0, 40.0])[:count]
    jobs = {"submit": np.zeros(count), "start": starts, "end": starts + run, "processors": np.ones(count, int), **more}
    return Result(name=name, jobs=jobs, processors=2)


# ---------------------------------------------------------------------- measures


def test_measures_by_hand():
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
        ("", "objective '': WEIGHT*MEASURE or MEASURE=WEIGHT expected, found ''"),
        ("wait_max+", "WEIGHT*MEASURE or MEASURE=WEIGHT expected, found ''"),
        ("2*wait_max=3", "WEIGHT*MEASURE or MEASURE=WEIGHT expected, found '2*wait_max=3'"),
        ("wait_avg", "objective 'wait_avg': measure 'wait_avg' is not known; did you mean 'wait_max'"),
        ("x*wait_max", "a weight > 0 of wait_max expected, found 'x'"),
        ("-1*wait_max", "a weight > 0 of wait_max expected, found -1"),
        ("0*wait_max", "a weight > 0 of wait_max expected, found 0"),
        ("nan*wait_max", "a weight > 0 of wait_max expected, found nan"),
        ("wait_max+wait_max", "each measure once expected, found wait_max 2 times"),
        ("nowhere:score", "min-max, mean, raw or a module before the colon expected: No module named 'nowhere'"),
        ("math:pi", "objective 'math:pi': a function expected"),
        ({}, "an objective of weights or of a function expected, found none"),
        ({"wait_max": "1"}, "a weight > 0 of wait_max expected, found '1'"),
        (3, "an objective .a name, terms, weights or a function. expected, found 3"),
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
    with pytest.raises(InputError, match="scale min-max, mean, raw expected, found 'best'"):
        Objective({"wait_max": 1}, scale="best")


# ---------------------------------------------------------------------- whole runs


def test_runs_are_scored_beside_each_other():
    early, late = result(np.zeros(3), "early"), result(np.array([0.0, 10, 30]), "late")
    assert final_scores([early, late]).tolist() == [0, 1]
    assert final_scores([early, late], "raw:wait_mean") == pytest.approx([0, 40 / 3])
    assert final_scores([early, late], lambda run: run.ended).tolist() == [40, 70]
    assert measured(early, ["utilisation", "wait_max"]) == {"utilisation": 70 / 80, "wait_max": 0}


def test_only_jobs_that_ran_to_their_end_are_measured():
    run = result(np.array([0.0, 10, 500]), status=np.array(["completed", "timeout", "failed"]))
    assert measured(run, ["wait_max"]) == {"wait_max": 10}


def test_shares_need_a_portfolio():
    with pytest.raises(InputError, match="run: a run under a portfolio expected"):
        started_shares(result(np.zeros(2)))


# ---------------------------------------------------------------------- Kiviat figures


def test_areas_by_hand():
    assert kiviat_area([1, 1, 1, 1]) == 2
    assert kiviat_area([1, 0.5, 1, 0.5]) == pytest.approx(1)
    assert kiviat_area([0.5, 0, 0.5, 1]) == pytest.approx(0.5 * (0.5 * 1 + 1 * 0.5))
    assert kiviat_area([1, 1, 1]) == pytest.approx(3 * math.sqrt(3) / 4)
    hexagon = kiviat_area(np.ones(6))
    assert hexagon == pytest.approx(3 * math.sqrt(3) / 2)
    with pytest.raises(ValueError, match="three axes or more expected, found 2"):
        kiviat_area([1, 1])


def shoelace(radii):
    angles = 2 * np.pi * np.arange(len(radii)) / len(radii)
    x, y = radii * np.cos(angles), radii * np.sin(angles)
    return abs((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2


@pytest.mark.parametrize("count", [3, 4, 5, 8])
def test_areas_are_those_of_the_polygons(count):
    radii = np.random.default_rng(count).random(count)
    assert kiviat_area(radii) == pytest.approx(shoelace(radii))


def test_the_worst_run_stands_in_the_middle_and_the_best_at_the_end_of_an_axis():
    runs = [
        result(np.zeros(3), "best"),
        result(np.array([0.0, 10, 30]), "worst"),
        result(np.array([0.0, 5, 15]), "half"),
    ]
    chart = kiviat(runs)
    assert chart.axes == OBJECTIVES["schedtwin"].measures
    assert chart.radii == pytest.approx(np.array([[1] * 4, [0] * 4, [0.5] * 4]))
    assert chart.areas == pytest.approx([2, 0, 0.5])
    assert chart.values[1].tolist() == [30, 1.75, pytest.approx(40 / 3), pytest.approx((1 + 1.5 + 1.75) / 3)]
    assert chart.table.names == ("policy", "wait_max", "slowdown_max", "wait_mean", "slowdown_mean", "area")
    used = kiviat(runs, ["utilisation", "wait_max", "wait_mean"])
    assert used.radii[:2, 0].tolist() == [1, 0], "more utilisation is better"
    assert kiviat(runs[:1] * 2).radii.tolist() == [[1] * 4] * 2
    with pytest.raises(ValueError, match="two results or more"):
        kiviat(runs[:1])
    with pytest.raises(ValueError, match="three axes or more"):
        kiviat(runs, ["wait_max", "wait_mean"])


def test_the_range_of_areas_is_that_over_all_orders_of_the_axes():
    runs = [result(np.array([0.0, 9, 3])), result(np.array([5.0, 1, 0])), result(np.array([2.0, 2, 2]))]
    chart = kiviat(runs, ["wait_max", "slowdown_max", "wait_mean", "bounded_slowdown_mean", "turnaround_mean"])
    every = np.array([[kiviat_area(radii[list(order)]) for order in permutations(range(5))] for radii in chart.radii])
    assert chart.area_range == pytest.approx(np.stack([every.min(axis=1), every.max(axis=1)], axis=1))
