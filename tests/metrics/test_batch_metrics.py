"""Metrics computed by hand, and properties of every schedule."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.foundation.errors import InputError
from simmodel.metrics import bounded_slowdown, compare, jain, slowdown, unfairness
from simmodel.metrics.batch import METRICS, discrimination, per_processor_slowdown, window
from simmodel.metrics.bins import binned, grouped
from simmodel.metrics.packing import pack
from simmodel.metrics.report import duration
from simmodel.results import Result

NAN = float("nan")


def schedule(rows, **more):
    submit, wait, run, size = (np.array(column) for column in zip(*rows, strict=True))
    jobs = {"submit": submit, "start": submit + wait, "end": submit + wait + run, "processors": size}
    users = more.pop("user", None)
    return Result(jobs=jobs if users is None else {**jobs, "user": users}, **more)


def test_metrics_of_four_jobs_are_as_by_hand():
    # 12 processors; the four jobs (submit, run, processors) start at 0, 900, 1000 and 1100.
    rows = [(0, 0, 1000, 5), (900, 0, 500, 5), (950, 50, 100, 7), (960, 140, 400, 2)]
    metrics = schedule(rows, processors=12).metrics()
    assert metrics["wait_mean"] == 190 / 4
    assert metrics["wait_median"] == 25
    assert metrics["wait_max"] == 140
    assert metrics["turnaround_mean"] == (1000 + 500 + 150 + 540) / 4
    assert metrics["bounded_slowdown_mean"] == (1 + 1 + 1.5 + 1.35) / 4
    assert metrics["per_processor_slowdown_mean"] == 1
    assert metrics["makespan"] == 1500
    assert metrics["utilisation"] == (5000 + 2500 + 700 + 800) / (12 * 1500)
    assert metrics["throughput"] == 4 / 1500
    assert metrics["queue_length_mean"] == 190 / 1500
    assert metrics["queue_length_max"] == 2
    assert metrics["queued_processors_mean"] == (7 * 50 + 2 * 140) / 1500
    assert math.isnan(metrics["fairness_users"])


def test_slowdowns_at_their_bounds():
    assert bounded_slowdown([0, 0, 100], [0, 5, 5]).tolist() == [1, 1, 10.5]
    assert bounded_slowdown(100, 5, tau=60) == 105 / 60
    assert per_processor_slowdown([100, 100], [0, 100], [1, 2]).tolist() == [10, 1]
    assert np.isnan(slowdown(10, 0))


def test_what_did_not_run_to_its_end_is_counted_but_not_averaged():
    jobs = {
        "submit": [0, 0, 0, 0],
        "start": [10, 30, NAN, 0],
        "end": [20, 40, NAN, 5],
        "processors": [1, 1, 9, 1],
        "status": ["completed", "timeout", "rejected", "failed"],
    }
    metrics = Result(jobs=jobs, processors=4).metrics()
    assert metrics["wait_mean"] == 20
    assert (metrics["jobs"], metrics["counted"]) == (4, 2)
    assert metrics["status"] == {"completed": 1, "failed": 1, "rejected": 1, "timeout": 1}


def test_cuts_by_seconds_share_and_rule():
    result = schedule([(i * 10, 0, 10, 1) for i in range(11)], processors=1)
    assert window(result, warmup=20, cooldown=30) == (20, 70)
    assert window(result, warmup="10%") == (10, result.ended)
    metrics = result.metrics(warmup=20, cooldown="30%")
    assert (metrics["counted"], metrics["outside_window"]) == (6, 5)
    assert metrics["utilisation"] == 1
    slow = schedule([(i * 10, 1000 if i < 10 else 5, 1, 1) for i in range(200)])
    assert window(slow, warmup="mser-5")[0] == 100
    for wrong in ("ten", "-5%", -1, "100%"):
        with pytest.raises(InputError, match="warmup: must be"):
            window(result, warmup=wrong)
    with pytest.raises(ValueError, match="leave nothing"):
        window(result, warmup=80, cooldown=80)


def test_cuts_may_leave_one_instant_but_not_nothing():
    result = schedule([(0, 0, 10, 1), (50, 0, 10, 1), (100, 0, 10, 1)])
    assert window(result, warmup=50, cooldown=50) == (50, 50)
    assert result.metrics(warmup=50, cooldown=50)["counted"] == 1
    with pytest.raises(InputError, match="leave nothing of 100 s"):
        window(result, warmup=51, cooldown=50)


def test_default_bins_are_half_open_with_what_falls_outside():
    sizes = [1, 128, 129, 256, 257, 512, 1024, 1025]
    result = schedule([(0, i, 10, size) for i, size in enumerate(sizes)])
    table = binned(result)
    assert table["bin"].tolist() == ["(0,128]", "(128,256]", "(256,512]", "(512,1024]", "(1024,inf]", "outside"]
    assert table["jobs"].tolist() == [2, 2, 2, 1, 1, 0]
    assert table["wait"].tolist()[:5] == [0.5, 2.5, 4.5, 6, 7]
    minutes = [10, 11, 30, 60, 120, 250, 500, 1000, 1500, 1501]
    requested = Result(jobs={**result.jobs.where(np.zeros(10, int)), "requested": np.array(minutes) * 60.0})
    table = binned(requested, by="requested", value="wait", statistic="max")
    assert table["bin"].tolist()[0] == "(10,30] min"
    assert table["jobs"].tolist() == [2, 1, 1, 1, 1, 1, 1, 2]


def test_bins_of_ones_own_and_other_statistics():
    result = schedule([(0, 1, 10, 1), (0, 3, 10, 2), (0, 8, 10, 3)])
    assert binned(result, bins=[0, 2, 4], statistic="sum")["wait"].tolist()[:2] == [4, 8]
    assert binned(result, bins=[0, 4], statistic="p50")["wait"][0] == 3
    assert binned(result, bins=[0, 4], statistic=len)["wait"][0] == 3
    assert binned(result, by="wait", bins=[0, 5], value="processors")["processors"].tolist() == [1.5, 3]
    for wrong in ({"by": "wait"}, {"bins": [1]}, {"bins": [2, 1]}, {"statistic": "mode"}):
        with pytest.raises(InputError, match=r"must be|missing bins"):
            binned(result, **wrong)


def test_groups_by_user_are_sorted_with_their_sums():
    result = schedule([(0, 4, 10, 1), (0, 8, 10, 2), (0, 0, 5, 1)], user=["b", "a", "b"])
    table = grouped(result, "user", ["wait"], "max")
    assert table["user"].tolist() == ["a", "b"]
    assert table["jobs"].tolist() == [1, 2]
    assert table["processor_seconds"].tolist() == [20, 15]
    assert table["wait"].tolist() == [8, 4]


def test_fairness_among_users():
    even = schedule([(0, 10, 10, 1), (0, 10, 10, 1)], user=[1, 2])
    assert even.metrics()["fairness_users"] == 1
    uneven = schedule([(0, 0, 10, 1), (0, 20, 10, 1)], user=[1, 2])
    assert uneven.metrics()["fairness_users"] == (1 + 3) ** 2 / (2 * (1 + 9))
    assert math.isnan(jain([]))


ROWS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 20), st.integers(1, 5)), min_size=1, max_size=20
)


@given(ROWS)
def test_discriminations_add_up_to_nothing(rows):
    result = schedule(rows)
    found = discrimination(result)
    assert np.nansum(found) == pytest.approx(0, abs=1e-6)
    if result.busy().integral():
        assert -1e-9 <= unfairness(result) <= 1 + 1e-9


@given(ROWS)
def test_metrics_hold_their_bounds(rows):
    metrics = schedule(rows).metrics()
    assert metrics["wait_median"] <= metrics["wait_max"]
    assert metrics["bounded_slowdown_mean"] >= metrics["per_processor_slowdown_mean"] >= 1
    assert math.isnan(metrics["utilisation"]) or 0 <= metrics["utilisation"] <= 1 + 1e-9
    assert set(METRICS) <= set(metrics)


@given(ROWS, st.integers(0, 6))
def test_packing_never_overlaps_and_covers_each_execution(rows, size):
    start = np.array([s + w for s, w, _, _ in rows])
    end = start + [r for _, _, r, _ in rows]
    sizes = np.array([p for _, _, _, p in rows])
    table = pack(start, end, sizes, size)
    rows_of = np.bincount(table["index"], table["high"] - table["low"], minlength=len(rows))
    assert (rows_of == sizes).all()
    most = int(Result(jobs={"submit": start, "start": start, "end": end, "processors": sizes}).busy().max())
    lasting = (end > start)[table["index"]]
    assert table["high"][lasting].max(initial=0) <= max(size, most)
    taken = set()
    for i, low, high in zip(table["index"].tolist(), table["low"].tolist(), table["high"].tolist(), strict=True):
        for row in range(low, high):
            for second in range(start[i], end[i]):
                assert (row, second) not in taken
                taken.add((row, second))


def test_compare_has_a_row_a_result():
    one = schedule([(0, 1, 10, 1)], name="one")
    two = schedule([(0, 3, 10, 1)], name="two")
    table = compare([one, two])
    assert table["result"].tolist() == ["one", "two"]
    assert table["wait_mean"].tolist() == [1, 3]
    assert set(METRICS) < set(table.names)
    with pytest.raises(ValueError, match="unknown metric 'speed'"):
        compare([one], ["speed"])


def test_durations_read_as_people_say_them():
    assert [duration(s) for s in (59.6, 3599.9, 86400, 90061)] == ["59.6 s", "1 h", "1 d", "1 d 1 h"]


def test_names_of_mixed_types_are_told_apart():
    jobs = {"submit": [0, 0, 0], "start": [0, 10, 10], "end": [10, 20, 20], "processors": [1, 1, 1]}
    mixed = {"job": np.array(["a", 7, 8], dtype=object), "user": np.array(["ann", None, 3], dtype=object)}
    plain = Result(jobs={**jobs, "job": [6, 7, 8], "user": ["ann", "bob", "cy"]}).metrics()
    assert Result(jobs={**jobs, **mixed}).metrics() == plain
    assert grouped(Result(jobs={**jobs, **mixed}))["user"].tolist() == [3, "ann", None]
