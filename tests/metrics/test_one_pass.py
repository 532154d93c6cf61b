"""Metrics in one pass: exact percentiles of values in a file, and queues over time from parts of a record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import InputError
from simmodel.metrics.batch import summary
from simmodel.metrics.one_pass import Span, Spool, summary_in_one_pass
from simmodel.records import JobRecord
from tests.helpers.examples import up_to

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, -1.0, 0.5])


@given(st.lists(st.lists(NUMBERS, max_size=20), max_size=4), st.floats(0, 100))
def test_percentiles_are_those_of_numpy(parts: list[list[float]], percent: float) -> None:
    values = np.array([value for part in parts for value in part])
    with Spool() as spool:
        for part in parts:
            spool.add(np.array(part))
        found = spool.percentiles(percent, 50)
    assert len(spool) == len(values)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = [np.percentile(values, p) for p in (percent, 50)] if len(values) else [np.nan, np.nan]
    for one, other in zip(found, expected, strict=True):
        if np.isfinite(other):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-300)


def test_percentiles_of_more_values_than_a_block() -> None:
    values = np.random.default_rng(1).exponential(5, 200_000).round(1)
    with Spool() as spool:
        for part in np.array_split(values, 7):
            spool.add(part)
        assert spool.percentiles(0, 50, 95, 100) == pytest.approx(np.percentile(values, [0, 50, 95, 100]).tolist())


@st.composite
def records(draw: st.DrawFn) -> JobRecord:
    """Draw a record of jobs in all states, some cancelled while they wait, some never submitted."""
    count = draw(st.integers(1, 25))
    small = st.integers(0, 12)
    submit = np.cumsum(draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=count, max_size=count))).astype(float)
    now = draw(st.integers(0, 60)) + float(submit[0])
    start, end, status = np.full(count, np.nan), np.full(count, np.nan), []
    for row in range(count):
        begins = submit[row] + draw(small)
        ends = begins + draw(small)
        state = draw(st.sampled_from(["completed", "completed", "timeout", "failed", "cancelled", "rejected"]))
        if state == "rejected":
            pass
        elif submit[row] > now:
            state = "unsubmitted"
        elif begins > now:
            state = "waiting"
        elif state == "cancelled":
            end[row] = begins
        else:
            start[row] = begins
            state, end[row] = (state, ends) if ends <= now else ("running", np.nan)
        status.append(state)
    columns = {"submit": submit, "start": start, "end": end, "status": status}
    columns["processors"] = np.array(draw(st.lists(st.integers(1, 5), min_size=count, max_size=count)))
    columns["user"] = np.array(draw(st.lists(st.sampled_from(["ann", "bob"]), min_size=count, max_size=count)))
    return JobRecord(jobs=columns, processors=8, started=float(submit[0]), ended=max(now, float(submit[0])))


@settings(max_examples=up_to(200))
@given(records(), st.integers(1, 9), st.sampled_from([{}, {"warmup": 2.0}, {"warmup": "10%", "cooldown": "20%"}]))
def test_metrics_in_one_pass_are_those_of_the_whole_record(
    record: JobRecord, rows: int, cuts: dict[str, float | str]
) -> None:
    jobs = record.jobs
    parts = [jobs.where(slice(at, at + rows)) for at in range(0, len(jobs), rows)]
    submit = jobs["submit"]
    span = Span(started=record.started, ended=record.ended, processors=8, first=submit[0], last=submit[-1])
    try:
        expected = summary(record, **cuts)
    except InputError as error:
        with pytest.raises(InputError, match=str(error)):
            summary_in_one_pass(parts, span, **cuts)
        return
    found = summary_in_one_pass(parts, span, **cuts)
    assert list(found) == list(expected)
    for name in ("status", "never_started"):
        assert found.pop(name, None) == expected.pop(name, None)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)
