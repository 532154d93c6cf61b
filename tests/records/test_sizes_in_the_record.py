"""Every figure, trace and file shows the sizes of jobs and claims that grow and shrink: one case, by hand.

Four nodes of four processors, 10 W idle and 50 W busy each, or sixteen processors of 2 and 12 W:

====== =========================== ===========================================
who    processors                  how
====== =========================== ===========================================
a      4 to 10 s, 8 to 20, 2 to 30 a policy resizes it
b      2 to 20 s, 6 to 30          its body grows
claim  6 to 40 s, 1 to 50          it shrinks
====== =========================== ===========================================
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from simpy.events import Event

from simmodel import Cluster, Elastic, Environment, Job, Resize, Result, Start, View, load_result, simulate
from simmodel.metrics import energy, node_energy, power
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.records.observers import EventRecorder, UsageMeter
from simmodel.scheduling.protocol import Decision
from simmodel.work import LiveJob

COUNTED = ClusterSpec(partitions=[PartitionSpec(processors=16, idle_power=2, load_power=12)])
NODES = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=4, idle_power=10, load_power=50)])])
PLACES = pytest.mark.parametrize("spec", [COUNTED, NODES], ids=["counted", "nodes"])
SIZES = {10: 8, 20: 2}

STRETCHES = {
    "a": [(0, 10, 4, "resized"), (10, 20, 8, "resized"), (20, 30, 2, "completed")],
    "b": [(0, 20, 2, "resized"), (20, 30, 6, "completed")],
    "claim 1": [(30, 40, 6, "resized"), (40, 50, 1, "released")],
}


def sizes(view: View) -> Iterator[Decision]:
    """Start jobs in order, and resize the elastic one at the instants of SIZES."""
    for job in view.waiting:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])
    for run in view.running:
        if run.job.elastic is not None and view.now in SIZES and run.job.processors != SIZES[view.now]:
            yield Resize(run.job, SIZES[view.now])


# Seconds at four processors: 10, then 20 at eight, then 5 at two.
ELASTIC = Job(id="a", run=35, elastic=Elastic(1, 4, 8), user="ann")
TICKS = [Job(id=f"tick {at}", submit=at, run=0, user="eve") for at in SIZES]


def grows(env: Environment, job: LiveJob, grant: Any) -> Generator[Event, Any, None]:
    yield env.timeout(20)
    yield grant.grow(4)
    yield env.timeout(10)


BODY = Job(id="b", processors=2, requested=60, body=grows, user="bob")


def shrinks(env: Environment, pool: Any) -> Generator[Event, Any, None]:
    yield env.timeout(30)
    with pool.claim(6) as claim:
        grant = yield claim
        yield env.timeout(10)
        grant.shrink(5)
        yield env.timeout(10)


def three(spec: ClusterSpec, *observers: Any) -> Result:
    """Return the result of the case."""
    env = Environment()
    cluster = Cluster(env, spec, sizes)
    for make in observers:
        env.observe(make(env, cluster))
    for job in (ELASTIC, BODY, *TICKS):
        env.process(later(env, cluster, job))
    env.process(shrinks(env, cluster.places[0]))
    env.run()
    return cluster.result()


def later(env: Environment, cluster: Cluster, job: Job) -> Generator[Event, Any, None]:
    yield env.timeout(job.submit)
    cluster.submit(job)


def stretches(result: Result) -> dict[str, list[tuple[float, float, int, str]]]:
    found: dict[str, list[tuple[float, float, int, str]]] = {}
    for row in result.held().rows():
        if not str(row["holder"]).startswith("tick"):
            part = row["start"], row["end"], row["processors"], row["status"]
            found.setdefault(str(row["holder"]), []).append(part)
    return found


@PLACES
def test_tables_and_utilisation_have_each_size(spec: ClusterSpec) -> None:
    result = three(spec)
    assert stretches(result) == STRETCHES
    assert result.busy().times.tolist() == [0, 10, 20, 30, 40]
    assert result.busy().values.tolist() == [6, 10, 8, 6, 1]
    assert result.metrics()["utilisation"] == pytest.approx((60 + 100 + 80 + 60 + 10) / (16 * 50))
    rows = {row["job"]: row for row in result.jobs.rows()}
    assert (rows["a"]["processors"], rows["a"]["run"], rows["b"]["processors"], rows["b"]["run"]) == (4, 30, 2, 30)


@PLACES
def test_stored_results_have_each_size(spec: ClusterSpec, tmp_path: Path) -> None:
    result = three(spec)
    result.to_csv(tmp_path / "folder")
    result.to_sqlite(tmp_path / "file.sqlite")
    for path in ("folder", "file.sqlite"):
        stored = load_result(tmp_path / path)
        assert isinstance(stored, Result)
        assert stretches(stored) == STRETCHES
        assert stored.busy().values.tolist() == result.busy().values.tolist()
        assert stored.held()["nodes"].tolist() == result.held()["nodes"].tolist()


@PLACES
def test_power_follows_each_size(spec: ClusterSpec) -> None:
    result = three(spec)
    idle, each = (16 * 2, 10) if spec is COUNTED else (4 * 10, 10)  # (50 - 10) W for four cores
    assert power(result).values.tolist() == [idle + each * busy for busy in (6, 10, 8, 6, 1)]
    assert energy(result).total == 50 * idle + each * 310
    if spec is NODES:
        assert node_energy(result)["energy"].sum() == energy(result).total


def test_gantt_chart_on_nodes() -> None:
    from simmodel.view.gantt import pieces

    result = three(NODES)
    held, which, rows = pieces(result)
    names = [str(held["holder"][row]) for row in which]
    found = [(name, held["start"][row], *span.tolist()) for name, row, span in zip(names, which, rows, strict=True)]
    nodes = {(row["holder"], row["start"]): row["nodes"] for row in result.held().rows()}
    assert [each for each in found if each[0] == "a"] == [("a", 0, 0, 1), ("a", 10, 0, 3), ("a", 20, 0, 1)]
    assert nodes["b", 20] == (1, 2, 3)  # one core free on its own, one on the third, and four
    assert nodes["claim 1", 30] == (0, 1, 2)  # beside those that end at this instant
    assert nodes["claim 1", 40] == (0,)
    pytest.importorskip("matplotlib")
    for colour in ("wait", "job", "user"):
        result.plot.gantt(colour=colour)
    result.plot.overview()


def test_gantt_chart_of_processors() -> None:
    from simmodel.view.gantt import pieces

    held, which, rows = pieces(three(COUNTED))
    heights: dict[tuple[str, float], int] = {}
    for row, (low, high) in zip(which.tolist(), rows.tolist(), strict=True):
        key = str(held["holder"][row]), float(held["start"][row])
        heights[key] = heights.get(key, 0) + high - low
    expected = {(name, start): n for name, parts in STRETCHES.items() for start, _, n, _ in parts}
    assert {key: n for key, n in heights.items() if not key[0].startswith("tick")} == expected


@PLACES
def test_traces_have_a_slice_for_each_size(spec: ClusterSpec, tmp_path: Path) -> None:
    three(spec).to_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = {
        (each["name"].removeprefix("job "), each["ts"] / 1e6, each["dur"] / 1e6, each["args"]["processors"])
        for each in events
        if each["ph"] == "X" and "tick" not in each["name"]
    }
    assert slices == {(name, start, end - start, n) for name, parts in STRETCHES.items() for start, end, n, _ in parts}
    busy = [(each["ts"] / 1e6, each["args"]["value"]) for each in events if each.get("name") == "busy processors"]
    assert busy == [(0, 6), (10, 10), (20, 8), (30, 6), (40, 1)]


@pytest.mark.parametrize("name", ["run.db", "folder"])
def test_streamed_records_have_each_size(name: str, tmp_path: Path) -> None:
    jobs = [ELASTIC, BODY, *TICKS]
    if name == "folder":
        pytest.importorskip("pyarrow")
    whole = simulate(16, jobs, sizes)
    streamed = simulate(16, jobs, sizes, stream=tmp_path / name).load()
    expected = {name: STRETCHES[name] for name in ("a", "b")}
    assert stretches(whole) == stretches(streamed) == expected
    assert streamed.jobs["run"].tolist() == whole.jobs["run"].tolist()


def test_events_and_usage_meters_follow_each_size() -> None:
    meters: list[UsageMeter] = []
    events: list[EventRecorder] = []

    def meter(env: Environment, _cluster: Cluster) -> UsageMeter:
        meters.append(UsageMeter(env))
        return meters[0]

    def recorder(env: Environment, cluster: Cluster) -> EventRecorder:
        events.append(EventRecorder(env, cluster.places))
        return events[0]

    three(COUNTED, meter, recorder)
    resized = [row for row in events[0].table().rows() if row["event"] == "resized"]
    found = [(row["time"], row["job"], row["detail"], row["free"]) for row in resized]
    assert found == [  # the ticks hold one processor when the policy decides
        (10, "a", "8", 5),
        (20, "b", "6", 2),
        (20, "a", "2", 7),
        (40, "claim 1", "1", 15),
    ]
    assert meters[0].mean_busy() == pytest.approx((60 + 100 + 80) / 50)  # of jobs
    assert meters[0].busy == 0


def test_a_meter_counts_the_size_of_a_start() -> None:
    env = Environment()
    meter = UsageMeter(env)
    env.observe(meter)
    cluster = Cluster(env, 8, lambda view: [Start(job, view.places[0], processors=8) for job in view.waiting])
    cluster.submit(ELASTIC)
    env.run()
    assert (env.now, meter.mean_busy(), meter.busy) == (17.5, 8, 0)
