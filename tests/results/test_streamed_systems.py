"""Streamed records of brokers, small systems, and clusters that get jobs one by one: the same rows as in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from simmodel import Broker, Cluster, Environment, InputError, Job, Simulation, Workload, load_result, simulate
from simmodel.environment import Environment as Env
from simmodel.generators import lublin
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.resources import CountPool
from simmodel.results.streams import RecordStream
from simmodel.systems import JobSystem
from simmodel.systems.broker import system as broker_system
from simmodel.systems.system import System

NODES = ClusterSpec(name="nodes", partitions=[PartitionSpec(nodes=[NodeSpec(count=64)])])
PARTS = ClusterSpec(name="parts", partitions=[PartitionSpec(name=each, processors=64) for each in "pq"])
LOG = lublin(400, 64, seed=4)
HOMES = {name: lublin(300, 64, seed=seed) for name, seed in (("a", 4), ("b", 5))}


def dependent() -> Workload:
    """A log in which every third job follows the one before the last, and some are too large."""
    chosen = LOG.where(slice(0, 120))
    number = np.arange(1, 121)
    processors = chosen["processors"].copy()
    processors[50] = 1000
    preceding = np.where(number % 3 == 0, number - 2, -1)
    columns = {"job": number, "processors": processors, "preceding": preceding, "think_time": np.full(120, 30.0)}
    return Workload({**{name: chosen[name] for name in ("submit", "run")}, **columns})


RUNS: dict[str, Callable[..., Any]] = {
    "homes": partial(simulate, {"a": 64, "b": 64}, HOMES, "least-loaded", policies="easy"),
    "estimates": partial(simulate, {"a": 64, "b": 64}, HOMES, "sgs-t"),
    "slowdowns": partial(simulate, {"a": 64, "b": 64}, LOG, "random", slowdowns=[1, 1.5]),
    "nodes": partial(simulate, {"a": 64, "n": NODES}, LOG, "least-loaded"),
    "partitions": partial(simulate, {"a": 64, "p": PARTS}, LOG, "round-robin"),
    "nested": partial(simulate, {"a": 64, "in": {"x": 64, "y": NODES}}, LOG, "least-loaded"),
    "cut": partial(simulate, {"a": 64, "b": 64}, HOMES, "least-loaded", until=300_000),
    "rejected": partial(simulate, {"a": 8, "b": 32}, HOMES, "least-loaded"),
    "dependent": partial(simulate, {"a": 64, "b": 64}, dependent(), "least-loaded"),
}


@pytest.fixture(params=[None, 8], ids=["at the end", "often"])
def every(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """How often rows are written."""
    if request.param is not None:
        monkeypatch.setattr(broker_system, "_LEAST", request.param)
        for kind in (Broker, Cluster, JobSystem):
            monkeypatch.setattr(kind.stream_record, "__kwdefaults__", {"every": request.param})
    return request.param


def same(streamed: Any, whole: Any) -> None:
    found = streamed.load()
    assert set(found.jobs.names) == set(whole.jobs.names)
    for column in whole.jobs.names:
        assert found.jobs[column].astype(str).tolist() == np.asarray(whole.jobs[column]).astype(str).tolist(), column
    assert executions(found) == executions(whole)
    assert list(map(str, found.places.rows())) == list(map(str, whole.places.rows()))
    assert (streamed.started, streamed.ended, streamed.processors) == (whole.started, whole.ended, whole.processors)
    assert streamed.report.lines() == whole.report.lines()
    assert streamed.numbers() == pytest.approx(whole.numbers(), rel=1e-9, nan_ok=True)


def executions(result: Any) -> list[tuple[Any, ...]]:
    columns = ("start", "end", "job", "attempt", "place", "processors", "status", "nodes")
    return sorted(tuple(str(row[name]) for name in columns) for row in result.runs.rows())


@pytest.mark.few(4)
@pytest.mark.parametrize("name", RUNS)
def test_a_broker_streams_the_rows_of_its_record(tmp_path: Path, name: str, every: int | None) -> None:
    same(RUNS[name](stream=tmp_path / "a.db"), RUNS[name]())


def test_a_broker_writes_a_folder_of_parquet_files(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    same(RUNS["nested"](stream=tmp_path / "a.parquet"), RUNS["nested"]())


def by_hand(make: Callable[[Env], System[Any]], submit: Callable[[Any, Job], object], path: Path | None) -> Any:
    """Return the result of jobs that a process submits one by one, some of which are cancelled."""
    env = Environment()
    system = make(env)
    simulation = Simulation(system)
    if path is not None:
        simulation.stream_to(RecordStream(path))

    def user() -> Any:
        for i in range(60):
            job = submit(system, Job(processors=1 + i % 4, run=10 + 7 * (i % 5), requested=60, user=f"u{i % 3}"))
            if i % 11 == 5:
                system.cancel(job)
            yield env.timeout(3 + i % 4)

    env.process(user())
    return simulation.run().result()


class Slots(JobSystem):
    """Jobs of one processor each in a fixed number of slots."""

    kind: ClassVar[str] = "slots"

    def __init__(self, env: Env) -> None:
        spec = attrs.make_class("Spec", ["name"])("slots")
        super().__init__(env, spec, "fcfs", places=[CountPool(env, "slots", 6)])


def two(env: Env) -> Broker:
    return Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 6, name="b")], "least-loaded")


def some_directly(broker: Broker, job: Job) -> Any:
    """Submit every fifth job to a cluster, past the broker."""
    if broker.env.now % 5 == 0:
        broker.places[1].system.submit(attrs.evolve(job, id=f"own {broker.env.now:g}"))
        return None
    return broker.submit(job)


@pytest.mark.parametrize("make", [lambda env: Cluster(env, 6), Slots, two], ids=["cluster", "small system", "broker"])
def test_jobs_that_come_one_by_one_are_streamed(tmp_path: Path, make: Any, every: int | None) -> None:
    submit = lambda system, job: system.submit(job)  # noqa: E731
    same(by_hand(make, submit, tmp_path / "a.db"), by_hand(make, submit, None))


def test_jobs_past_the_broker_come_last(tmp_path: Path, every: int | None) -> None:
    class Quiet(Broker):
        def cancel(self, work: Any) -> None:
            if work is not None:
                super().cancel(work)

    def make(env: Env) -> Quiet:
        return Quiet(env, [Cluster(env, 4, name="a"), Cluster(env, 6, name="b")], "least-loaded")

    same(by_hand(make, some_directly, tmp_path / "a.db"), by_hand(make, some_directly, None))


def test_what_cannot_be_streamed_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(InputError, match="stream: must be None for a broker, whose record is kept in memory"):
        simulate({"m": "hetsim-slow"}, "layered:n=10", "round-robin", stream=path)
    with pytest.raises(InputError, match=r"stream: must be None under portfolio.*, whose choices are kept in memory"):
        simulate({"a": 64, "b": 64}, LOG, "random", policies={"a": "portfolio", "b": "easy"}, stream=path)
    env = Environment()
    broker = two(env)
    broker.submit(Job(run=5))
    with pytest.raises(InputError, match=r"stream: must be None for <Broker .*>, which has jobs"):
        Simulation(broker).stream_to(RecordStream(path))
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_fails_leaves_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_system, "_LEAST", 8)
    monkeypatch.setattr(Broker.stream_record, "__kwdefaults__", {"every": 8})
    calls: list[int] = []

    def fails(view: Any) -> Any:
        calls.append(1)
        if len(calls) > 300:
            raise RuntimeError("enough")
        return RR.decide(view)

    from simmodel.policies.mapping import RoundRobin

    RR = RoundRobin()
    with pytest.raises(RuntimeError, match="enough"):
        simulate({"a": 64, "b": 64}, LOG, fails, stream=tmp_path / "a.db")
    left = load_result(tmp_path / "a.db.unfinished")
    assert 100 < len(left.jobs) < 400
    assert set(left.jobs["destination"].tolist()) == {"a", "b"}
