"""The recorded starts of a workload: one rule for all that reads them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from simmodel.referee import verify
from simmodel.results.result import recorded_result
from simmodel.work.workload import Workload

JOBS = {"submit": [0, 5, 9], "run": [10, 10, 10], "processors": [1, 1, 1]}


@pytest.mark.parametrize(
    ("columns", "starts"),
    [
        ({}, [np.nan, np.nan, np.nan]),
        ({"wait": [0, 3, -1]}, [0, 8, np.nan]),
        ({"wait": [np.nan, 3, 0]}, [np.nan, 8, 9]),
        ({"recorded_start": [1, np.nan, 12]}, [1, np.nan, 12]),
        ({"recorded_start": [1.5, np.nan, np.nan], "wait": [7, 2, -1]}, [1.5, 7, np.nan]),
    ],
)
def test_starts_are_those_recorded_or_follow_from_waits(columns: Mapping[str, Any], starts: list[float]) -> None:
    assert Workload({**JOBS, **columns}).recorded_starts() == pytest.approx(starts, nan_ok=True)


def test_results_referee_and_twin_read_the_same_recorded_starts() -> None:
    log = Workload({**JOBS, "recorded_start": [2, np.nan, 12], "wait": [0, 3, 0]}, processors=3)
    starts = [2.0, 8.0, 12.0]
    assert recorded_result(log).jobs["start"].tolist() == starts
    assert verify(log).schedule.start.tolist() == starts


def test_recorded_ends_give_the_run_times_of_the_schedule() -> None:
    log = Workload({**JOBS, "recorded_start": [0, 5, 9], "recorded_end": [4, np.nan, 10]}, processors=3)
    assert verify(log).schedule.end.tolist() == [4, 15, 10]
