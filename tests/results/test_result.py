"""Results made by hand, and the step functions behind them."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.records.steps import Steps
from simmodel.results import Result, recorded_result
from simmodel.work.table import Table
from simmodel.work.workload import Workload
from tests.helpers.data_files import data_file

NAN = float("nan")
SCHEDULES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=30
)


def schedule(rows, **more):
    """A result of rows (submit, wait, run, processors)."""
    submit, wait, run, size = (np.array(column) for column in zip(*rows, strict=True))
    jobs = {"submit": submit, "start": submit + wait, "end": submit + wait + run, "processors": size}
    return Result(jobs=jobs, **more)


@given(SCHEDULES)
def test_busy_processors_integrate_to_the_work_done(rows):
    result = schedule(rows)
    work = sum(run * size for _, _, run, size in rows)
    assert result.busy().integral() == work
    assert result.busy().integral(10, 20) == sum(
        size * max(0, min(20, s + w + r) - max(10, s + w)) for s, w, r, size in rows
    )


@given(SCHEDULES)
def test_the_queue_integrates_to_the_sum_of_waits(rows):
    result = schedule(rows)
    assert result.queue_length().integral() == sum(wait for _, wait, _, _ in rows)
    assert result.queued_processors().integral() == sum(wait * size for _, wait, _, size in rows)


@given(SCHEDULES)
def test_runs_made_from_jobs_say_the_same(rows):
    result = schedule(rows)
    again = Result(jobs=result.jobs, runs=result.runs)
    assert again.busy().integral() == result.busy().integral()
    assert np.array_equal(again.queue_length().values, result.queue_length().values)


@given(SCHEDULES, st.integers(1, 7))
def test_averages_keep_the_integral(rows, bins):
    busy = schedule(rows).busy()
    edges = np.linspace(busy.start, busy.start + 100, bins + 1)
    assert (busy.averages(edges) * np.diff(edges)).sum() == pytest.approx(busy.integral())
    assert busy.thinned(3).integral() == pytest.approx(busy.integral())


def test_steps_at_and_after_their_ends():
    steps = Steps.from_changes([1, 4, 4, 9], [2, -2, 5, -5], start=2, end=8)
    assert steps.times.tolist() == [2, 4]
    assert steps.values.tolist() == [2, 5]
    assert steps.at([0, 2, 4, 7.5, 8, 100]).tolist() == [0, 2, 5, 5, 0, 0]
    assert steps.max() == 5
    assert np.isnan(Steps([3], [1], end=3).mean())
    assert Steps([3], [1], end=3).max() == 0


def test_steps_without_changes_are_zero():
    steps = Steps.from_changes([], [], start=5, end=9)
    assert (steps.times.tolist(), steps.values.tolist(), steps.integral()) == ([5], [0], 0)


def test_two_step_functions_combine_at_every_step_of_either():
    total = Steps([0, 4], [1, 2], end=6) + Steps([2], [10], end=8)
    assert total.times.tolist() == [0, 2, 4, 6]
    assert total.values.tolist() == [1, 11, 12, 10]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 4)), min_size=2, max_size=2))
def test_the_integral_of_a_sum_is_the_sum_of_integrals(drawn):
    one, other = (Steps([start, start + 1], [value, 2 * value], end=start + length) for start, length, value in drawn)
    assert (one + other).integral() == (other + one).integral() == one.integral() + other.integral()
    assert (one + Steps([], [], end=3)).integral() == one.integral()


def test_missing_columns_follow_from_the_others():
    jobs = {"submit": [0, 1, 2], "start": [0, 5, NAN], "end": [9, NAN, NAN], "processors": [1, 2, 3]}
    result = Result(jobs=jobs)
    assert result.jobs.names[:6] == ("job", "submit", "start", "end", "processors", "status")
    assert result.jobs["status"].tolist() == ["completed", "running", "waiting"]
    assert result.jobs["attempts"].tolist() == [1, 1, 0]
    assert (result.started, result.ended, result.processors) == (0, 9, 3)
    assert repr(result) == "<Result run: 3 jobs on 3 processors>"
    with pytest.raises(ValueError, match="columns: missing end"):
        Result(jobs={"submit": [0], "start": [0], "processors": [1]})


def test_utilisation_honours_what_was_down():
    changes = Table(
        {"time": [10.0, 20.0], "place": ["machine"] * 2, "cause": ["failure", "repair"], "processors": [2, 4]}
    )
    jobs = {"submit": [0], "start": [0], "end": [30], "processors": [2]}
    result = Result(jobs=jobs, processors=4, changes=changes)
    assert result.capacity().integral() == 4 * 20 + 2 * 10
    assert result.utilisation().values.tolist() == [0.5, 1, 0.5]
    assert result.metrics()["utilisation"] == 0.6


def test_utilisation_of_one_place_counts_its_own_processors():
    places = Table(
        {"place": ["a", "b"], "processors": [4, 2], "nodes": [0, 0], "idle_power": [0, 0], "load_power": [0, 0]}
    )
    nodes = np.full(2, None, dtype=object)
    runs = {"job": [1, 2], "attempt": [1, 1], "start": [0.0, 0.0], "end": [4.0, 8.0], "place": ["a", "b"]}
    runs |= {"processors": [4, 1], "status": ["completed"] * 2, "nodes": nodes}
    jobs = {"submit": [0, 0], "start": [0, 0], "end": [4, 8], "processors": [4, 1]}
    result = Result(jobs=jobs, runs=Table(runs), places=places, processors=6)
    assert result.utilisation("a").mean() == 0.5
    assert result.utilisation("b").mean() == 0.5
    assert result.capacity().values.tolist() == [6]
    with pytest.raises(ValueError, match="place 'c'"):
        result.capacity("c")


def test_an_empty_result_answers_everything():
    result = Result(jobs={"submit": [], "start": [], "end": [], "processors": []}, processors=4)
    metrics = result.metrics()
    assert metrics["jobs"] == 0
    assert np.isnan(metrics["wait_mean"])
    assert "0" in result.summary()
    assert result._repr_html_().startswith("<div>")
    assert len(result.runs) == 0


def test_rejected_and_withdrawn_jobs_in_the_queue():
    jobs = {"submit": [0, 0, 0], "start": [NAN, NAN, 4], "end": [6, NAN, 9], "processors": [1, 1, 1]}
    result = Result(jobs={**jobs, "status": ["cancelled", "rejected", "completed"]})
    assert result.queue_length().integral() == 6 + 4


def test_a_log_with_waits_is_a_result():
    columns = {"submit": [0, 5, 6, 7], "wait": [1, -1, 2, 0], "run": [10, 10, -1, 3], "processors": [1, 1, 1, 0]}
    result = recorded_result(Workload(columns, name="log"), processors=4)
    assert result.jobs["status"].tolist() == ["completed", "rejected", "rejected", "rejected"]
    assert result.report.rejected.total() == 3
    assert result.busy().integral() == 10


def test_summary_and_html_tell_the_main_numbers():
    result = schedule([(0, 0, 10, 4), (0, 10, 20, 2)], processors=4, name="a <b>")
    result.decisions = {"count": 3, "mean": 2e-6}
    text = result.summary()
    assert text.splitlines()[0] == "a <b> on 4 processors"
    assert "66.7 %" in text
    assert "2 microseconds" in text
    assert "a &lt;b&gt;" in result._repr_html_()
    assert "<svg" in result._repr_html_()
    assert "<details><summary>zoom, search, click</summary><iframe" in result._repr_html_()
    assert "<iframe" not in schedule([(0, 0, 10, 1)] * 5001, processors=5001)._repr_html_()


def test_reference_schedule_of_a_real_log_gives_its_published_metrics():
    import csv
    import gzip

    with gzip.open(data_file("refsched/KTH-SP2-1996-2-filtered.starts.csv.gz"), "rt") as file:
        starts = {row["job"]: float(row["start_easy"]) for row in csv.DictReader(file)}
    with gzip.open(data_file("swf/KTH-SP2-1996-2-filtered.swf.gz"), "rt") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith(";")]
    start = np.array([starts[line[0]] for line in lines])
    submit, run, size = (np.array([float(line[i]) for line in lines]) for i in (1, 3, 4))
    result = Result(jobs={"submit": submit, "start": start, "end": start + run, "processors": size}, processors=100)
    metrics = result.metrics()
    assert metrics["wait_mean"] == pytest.approx(6836.872, abs=1e-3)
    assert metrics["bounded_slowdown_mean"] == pytest.approx(92.57653973362949, rel=1e-9)
    assert metrics["slowdown_mean"] == pytest.approx(198.001775521565, rel=1e-9)
    assert metrics["turnaround_mean"] == pytest.approx(15696.798181243601, rel=1e-9)
    assert metrics["wait_max"] == 262194
    assert result.busy().max() <= 100


# ---------------------------------------------------------------------- tables


def test_a_table_is_as_long_as_its_columns_and_no_mapping():
    table = Table({"job": [1, 2, 3], "wait": [0.0, 5.0, 1.0]})
    assert len(table) == 3
    assert not isinstance(table, Mapping)
    with pytest.raises(TypeError, match="not iterable"):
        list(table)
    assert table.names == tuple(table.keys()) == ("job", "wait")
    assert {**table}.keys() == dict(table.items()).keys() == {"job", "wait"}
    assert [column.tolist() for column in table.values()] == [[1, 2, 3], [0, 5, 1]]
    assert "wait" in table
    assert "run" not in table
    assert len(list(table.rows())) == len(Table(table)) == 3
    assert not Table({})
