"""Replays in chunks with a streamed record: the same starts, records and metrics as of the whole log in memory."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel import InputError, Job, Workload, load_workload, simulate, start
from simmodel.foundation.errors import SnapshotError
from simmodel.platform import ClusterSpec, FailureModel, NodeSpec, PartitionSpec
from simmodel.results import Result, StreamedResult
from simmodel.work import ChunkedWorkload, Table
from tests.helpers.batch_cases import Case, cases, to_workload
from tests.helpers.examples import up_to

POLICIES = st.sampled_from(["fcfs", "easy", "conservative", "sjf+easy"])


def in_both_ways(platform: Any, log: Workload, policy: str, rows: int, **options: Any) -> tuple[Result, StreamedResult]:
    """Return the results of a log in memory and in chunks; the latter is in a folder that no longer exists."""
    with TemporaryDirectory() as folder:
        streamed = simulate(
            platform, ChunkedWorkload.of(log, rows), policy, stream=Path(folder, "record.db"), **options
        )
        whole = simulate(platform, log, policy, **options)
        assert_same(whole, streamed)
    return whole, streamed


def assert_same(whole: Result, streamed: StreamedResult) -> None:
    again = streamed.load()
    assert columns(again.jobs) == columns(whole.jobs)
    assert columns(again.runs) == columns(whole.runs)
    assert (again.started, again.ended, again.processors) == (whole.started, whole.ended, whole.processors)
    assert streamed.report == whole.report
    in_memory, in_one_pass = whole.metrics(), streamed.metrics()
    assert list(in_memory) == list(in_one_pass)
    for name, value in in_memory.items():
        assert in_one_pass[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name


def columns(table: Table) -> dict[str, list[Any]]:
    """Return the columns as lists, with ``None`` for unknown values."""
    return {name: [None if cell != cell else cell for cell in column.tolist()] for name, column in table.items()}


def by_submit(case: Case) -> Workload:
    log = to_workload(case.jobs)
    return log.where(np.argsort(log["submit"], kind="stable"))


@settings(max_examples=up_to(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), POLICIES, st.integers(1, 6))
def test_counted_processors_replay_the_same_in_chunks(case: Case, policy: str, rows: int) -> None:
    in_both_ways(case.processors, by_submit(case), policy, rows)


@settings(max_examples=up_to(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(max_jobs=12), POLICIES, st.integers(1, 5))
def test_identified_nodes_replay_the_same_in_chunks(case: Case, policy: str, rows: int) -> None:
    nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=case.processors)])])
    in_both_ways(nodes, by_submit(case), policy, rows)


@settings(max_examples=up_to(30), deadline=None)
@given(cases(), st.integers(1, 6), st.sampled_from([1, 7, 50, 500]))
def test_a_run_that_is_stopped_has_all_jobs_of_the_log(case: Case, rows: int, until: int) -> None:
    in_both_ways(case.processors, by_submit(case), "easy", rows, until=until)


@pytest.mark.few(4)
@pytest.mark.parametrize("decide", [{}, {"decide_on": "event"}, {"decide_on": "event", "event_order": "ends-first"}])
@pytest.mark.parametrize("rows", [1, 7, 100_000])
def test_a_week_replays_the_same_in_chunks(decide: dict[str, Any], rows: int) -> None:
    log = load_workload("lublin-128-week")
    log = log.replace(user=np.arange(len(log)) % 7)
    whole, streamed = in_both_ways(128, log, "easy", rows, **decide)
    assert math.isfinite(whole.metrics()["fairness_users"])
    assert streamed.scenario["workload"] == [{"name": "lublin-128-week", "jobs": 600}]


def test_cuts_are_those_of_the_record_in_memory(tmp_path: Path) -> None:
    log = load_workload("lublin-128-week")
    streamed = simulate(128, ChunkedWorkload.of(log, 50), "easy", stream=tmp_path / "a.db")
    whole = simulate(128, log, "easy")
    for cuts in ({"warmup": "10%"}, {"cooldown": 1000}, {"warmup": 5000.0, "cooldown": "20%"}, {"tau": 60}):
        expected = whole.metrics(**cuts)
        for name, value in streamed.metrics(**cuts).items():
            assert value == pytest.approx(expected[name], rel=1e-9, nan_ok=True), (name, cuts)
    with pytest.raises(InputError, match=r"must be seconds or a share for a streamed record, got 'mser-5'"):
        streamed.metrics(warmup="mser-5")


def test_interrupted_jobs_have_all_their_executions(tmp_path: Path) -> None:
    failing = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(cores=4, count=32)])],
        failures=[FailureModel(mean_time_between_failures=3e5, mean_time_to_repair=500)],
    )
    log = load_workload("lublin-128-week").where(slice(0, 150))
    streamed = simulate(failing, ChunkedWorkload.of(log, 20), "easy", stream=tmp_path / "a.db", until=400_000)
    whole = simulate(failing, log, "easy", until=400_000)
    assert (whole.jobs["attempts"] > 1).any()
    again = streamed.load()
    assert columns(again.jobs) == columns(whole.jobs)
    assert columns(again.runs) == columns(whole.runs)
    assert whole.changes is not None
    assert again.changes is not None
    assert columns(again.changes) == columns(whole.changes)
    for name, value in whole.metrics().items():
        assert again.metrics()[name] == pytest.approx(value, nan_ok=True)
    with pytest.raises(InputError, match=r"metrics in one pass are of jobs on a constant capacity"):
        streamed.metrics()


def test_jobs_of_a_script_replay_in_chunks(tmp_path: Path) -> None:
    jobs = [Job(submit=i, run=10, requested=20, processors=1 + i % 3, priority=i % 5, cancel=9 * i) for i in range(30)]
    whole = simulate(4, jobs, "fcfs")
    assert (whole.jobs["status"] == "cancelled").any()
    streamed = simulate(4, ChunkedWorkload.of(Workload.from_jobs(jobs), 4), "fcfs", stream=tmp_path / "a.db")
    assert_same(whole, streamed)


def test_ids_that_come_again_in_a_later_chunk_are_new(tmp_path: Path) -> None:
    log = Workload({"job": [1, 2, 1, 2, 5], "submit": [0, 1, 2, 3, 4], "run": [5] * 5, "processors": [1] * 5})
    found = simulate(4, ChunkedWorkload.of(log, 2), "fcfs", stream=tmp_path / "a.db").load()
    assert found.jobs["job"].tolist() == [1, 2, 3, 4, 5]
    assert found.report == simulate(4, log, "fcfs").report


def refused(log: Workload | ChunkedWorkload, folder: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        simulate(4, log, "fcfs", stream=folder / "a.db", **options)
    return str(caught.value)


def test_logs_that_cannot_be_read_in_chunks_get_one_sentence(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"submit": [0, 9, 5], "run": [5] * 3, "processors": [1] * 3}
    sentence = "rows, job 3: must be sorted by submit time to be read in chunks, got 5 s after 9 s; "
    for rows in (1, 2, 3):
        found = refused(ChunkedWorkload.of(Workload(columns, name="rows"), rows), tmp_path)
        assert found == sentence + "a log that is not sorted is simulated in memory (without stream)"
    after = {**columns, "submit": [0, 1, 2], "preceding": [-1, 1, -1]}
    assert "job 2: must not wait for other jobs to be read in chunks" in refused(Workload(after), tmp_path)
    assert refused(Workload(columns), tmp_path, events=True).startswith("events: must be False")
    with pytest.raises(InputError, match="must be in memory, unless"):
        simulate(4, ChunkedWorkload.of(Workload(columns)), "fcfs")
    with pytest.raises(InputError, match="must be in memory for a broker"):
        simulate({"a": 4, "b": 4}, ChunkedWorkload.of(Workload(columns)), "round-robin", stream=tmp_path / "b.db")
    assert list(tmp_path.iterdir()) == []


def test_what_needs_all_jobs_is_refused_while_a_log_is_read(tmp_path: Path) -> None:
    log = Workload({"submit": [0, 9, 15], "run": [5] * 3, "processors": [1] * 3})
    simulation = start(4, ChunkedWorkload.of(log, 1), "fcfs", stream=tmp_path / "a.db").run(until=3)
    with pytest.raises(SnapshotError, match="cannot be copied: it reads its workload in chunks"):
        simulation.snapshot()
    with pytest.raises(InputError, match="cannot take jobs one by one while it reads a workload in chunks"):
        simulation.system.submit(Job(run=5))
    result = simulation.result()
    assert result.load().jobs["status"].tolist() == ["running", "unsubmitted", "unsubmitted"]
    assert simulation.result() is result
    with pytest.raises(InputError, match="has ended: its record is in"):
        simulation.run()


def test_memory_does_not_grow_with_the_number_of_jobs(tmp_path: Path) -> None:
    def drawn(jobs: int) -> ChunkedWorkload:
        def chunks() -> Any:
            for begin in range(0, jobs, 500):
                submit = np.arange(begin, begin + 500) * 10.0
                yield Workload({"submit": submit, "run": np.full(500, 30.0), "processors": np.ones(500, int)})

        return ChunkedWorkload(chunks)

    peaks = []
    for jobs in (1_000, 1_000, up_to(10_000, 4_000)):  # the first run fills caches
        tracemalloc.start()
        result = simulate(4, drawn(jobs), "easy", stream=tmp_path / "a.db")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert result.metrics()["jobs"] == jobs
    assert peaks[2] < 1.3 * peaks[1], peaks


@settings(max_examples=up_to(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2)), min_size=1),
    POLICIES,
    st.integers(1, 4),
)
def test_chunks_of_plain_jobs_and_of_requests_follow_each_other_within_an_instant(
    jobs: list[tuple[int, int, int, int]], policy: str, rows: int
) -> None:
    gaps, runs, processors, priorities = (np.array(column) for column in zip(*jobs, strict=True))
    log = Workload({"submit": np.cumsum(gaps), "run": runs, "processors": processors, "priority": priorities})
    in_both_ways(4, log, policy, rows)


@pytest.mark.parametrize("first", [[5, 10, 20], [0, 10, 20]])
def test_two_logs_are_in_the_order_of_their_replays_within_an_instant(first: list[int]) -> None:
    simulation = start(4, [Job(id=0, processors=4, run=100)], "fcfs")
    logs = [first, [0, 10, 20]]
    for number, submits in enumerate(logs, 1):
        jobs = [Job(id=10 * number + i, submit=at, run=5, user=number) for i, at in enumerate(submits)]
        simulation.system.replay(Workload.from_jobs(jobs))
    simulation.run(until=30)
    waiting = [(job.submit, job.user) for job in simulation.system.view.waiting]
    assert waiting == sorted(waiting)
    assert len(waiting) == 6
