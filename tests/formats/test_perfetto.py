"""Traces for Perfetto."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest

from simmodel.formats.perfetto import trace_events
from simmodel.results import Result
from simmodel.work.table import Table


def schedule(count=50, seed=0):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 500, count))
    start = submit + rng.integers(0, 20, count)
    jobs = {"submit": submit, "start": start, "end": start + rng.integers(1, 60, count)}
    return Result(jobs={**jobs, "processors": rng.integers(1, 5, count), "user": rng.integers(0, 3, count)}, name="run")


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_every_execution_is_a_slice_that_overlaps_no_other(tmp_path, name):
    result = schedule()
    result.to_perfetto(tmp_path / name)
    opener = gzip.open if name.endswith("gz") else open
    with opener(tmp_path / name, "rt") as file:
        document = json.load(file)
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 50
    assert slices[0]["args"].keys() == {"processors", "wait_s", "status", "user"}
    by_row = {}
    for event in slices:
        by_row.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in by_row.values():
        spans.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
    starts = sorted(event["ts"] for event in slices)
    assert starts == sorted((result.jobs["start"] * 1_000_000).astype(int).tolist())


def test_counters_and_names():
    result = schedule(3)
    events = list(trace_events(result))
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {f"machine, {result.processors} processors", "queue"}
    busy = [event["args"]["value"] for event in events if event["ph"] == "C" and event["name"] == "busy processors"]
    assert busy == result.busy().values.tolist()
    assert {event["name"] for event in events if event["ph"] == "C"} == {
        "busy processors",
        "jobs waiting",
        "processors waited for",
    }


def test_long_runs_are_thinned_and_say_so():
    events = list(trace_events(schedule(100), limit=10, points=5))
    assert sum(event["ph"] == "X" for event in events) == 10
    assert sum(event["ph"] == "C" and event["name"] == "busy processors" for event in events) == 5
    assert any("90 smallest executions left out" in event["args"]["name"] for event in events if event["ph"] == "M")


def test_identified_nodes_have_a_slice_each():
    nodes = np.empty(1, dtype=object)
    nodes[0] = (2, 5)
    runs = {"job": [1], "attempt": [1], "start": [0.0], "end": [4.0], "place": ["machine"], "processors": [8]}
    jobs = {"submit": [0], "start": [0], "end": [4], "processors": [8]}
    result = Result(jobs=jobs, runs=Table({**runs, "status": ["completed"], "nodes": nodes}))
    slices = [event for event in trace_events(result) if event["ph"] == "X"]
    assert [event["tid"] for event in slices] == [2, 5]
