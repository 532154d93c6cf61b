"""Scores of whole runs relative to each other, and the areas of Kiviat figures."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.metrics.objective_scores import final_scores, kiviat, kiviat_area, measured, started_shares
from simmodel.results.result import Result
from simmodel.scheduling.objectives import OBJECTIVES


def result(starts, name="run", **more):
    count = len(starts)
    run = np.array([10.0, 20.0, 40.0])[:count]
    jobs = {"submit": np.zeros(count), "start": starts, "end": starts + run, "processors": np.ones(count, int), **more}
    return Result(name=name, jobs=jobs, processors=2)


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
    with pytest.raises(InputError, match="run: must be a run under a portfolio"):
        started_shares(result(np.zeros(2)))


# ---------------------------------------------------------------------- Kiviat figures


def test_areas_of_radar_charts_are_as_by_hand():
    assert kiviat_area([1, 1, 1, 1]) == 2
    assert kiviat_area([1, 0.5, 1, 0.5]) == pytest.approx(1)
    assert kiviat_area([0.5, 0, 0.5, 1]) == pytest.approx(0.5 * (0.5 * 1 + 1 * 0.5))
    assert kiviat_area([1, 1, 1]) == pytest.approx(3 * math.sqrt(3) / 4)
    hexagon = kiviat_area(np.ones(6))
    assert hexagon == pytest.approx(3 * math.sqrt(3) / 2)
    with pytest.raises(ValueError, match="radii: must be three or more, got 2"):
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
    with pytest.raises(ValueError, match="results: must be two or more"):
        kiviat(runs[:1])
    with pytest.raises(ValueError, match="axes: must be three or more"):
        kiviat(runs, ["wait_max", "wait_mean"])


def test_the_range_of_areas_is_that_over_all_orders_of_the_axes():
    runs = [result(np.array([0.0, 9, 3])), result(np.array([5.0, 1, 0])), result(np.array([2.0, 2, 2]))]
    chart = kiviat(runs, ["wait_max", "slowdown_max", "wait_mean", "bounded_slowdown_mean", "turnaround_mean"])
    every = np.array([[kiviat_area(radii[list(order)]) for order in permutations(range(5))] for radii in chart.radii])
    assert chart.area_range == pytest.approx(np.stack([every.min(axis=1), every.max(axis=1)], axis=1))
