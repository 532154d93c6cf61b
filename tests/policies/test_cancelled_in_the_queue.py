"""Jobs that were cancelled while they waited, under all policies: by brute force, in chunks, after snapshots."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, simulate, start
from simmodel.formats.batsim import write_batsim_jobs
from simmodel.referee import verify
from simmodel.work import ChunkedWorkload
from tests.helpers.batch_cases import Case, cases, to_workload
from tests.helpers.examples import up_to
from tests.oracles.batch import simulate as by_hand

POLICIES = (
    *("fcfs", "sjf", "ljf", "easy", "easy-sjbf", "sjf+easy", "conservative", "conservative-keep"),
    *("sjf+conservative", "best-fit", "window"),
)
CASES = cases(max_jobs=12, zero_runs=False, missing=False, cancelled=True)


def plain(case: Case, *, as_jobs: bool) -> tuple[list, object]:
    """Return the jobs of a case without priorities, or with one, which makes each of them a ``Job``."""
    jobs = [type(job)(**{**vars(job), "priority": 0}) for job in case.jobs]
    log = to_workload(jobs, case.processors)
    return jobs, log.replace(priority=np.ones(len(jobs), dtype=int)) if as_jobs else log


@settings(max_examples=up_to(2000))
@given(CASES, st.sampled_from(POLICIES), st.booleans(), st.sampled_from(["requested", "exact"]))
def test_they_hold_their_place_and_leave_without_a_start(case, policy, as_jobs, estimates):
    jobs, log = plain(case, as_jobs=as_jobs)
    left: dict[int, float] = {}
    starts = by_hand(jobs, case.processors, policy, estimates=estimates, left=left)
    found = simulate(None, log, policy, estimates=estimates).jobs
    assert [None if at != at else at for at in found["start"].tolist()] == starts
    gone = {row: float(found["end"][row]) for row, job in enumerate(jobs) if job.cancel is not None}
    assert gone == left
    for row, at in left.items():
        assert found["status"][row] == ("cancelled" if at == jobs[row].cancel else found["status"][row])
        assert found["status"][row] in ("cancelled", "withdrawn")
        assert found["attempts"][row] == 0


@settings(max_examples=up_to(300))
@given(CASES, st.sampled_from(POLICIES), st.booleans())
def test_the_referee_finds_nothing_wrong_in_what_is_simulated(case, policy, as_jobs):
    _, log = plain(case, as_jobs=as_jobs)
    result = simulate(None, log, policy)
    with TemporaryDirectory() as folder:
        written = [Path(folder, name) for name in ("schedule.csv", "batsim.csv")]
        result.schedule_csv(written[0])
        write_batsim_jobs(result, written[1], log)
        assert all(verify(log, path, policy=policy, mistakes=False).right for path in written)
    assert verify(log, result, policy=policy, mistakes=False).right


@settings(max_examples=up_to(300))
@given(CASES, st.sampled_from(["fcfs", "easy", "conservative"]), st.booleans(), st.integers(1, 5))
def test_they_are_the_same_in_chunks(case, policy, as_jobs, rows):
    _, log = plain(case, as_jobs=as_jobs)
    whole = simulate(None, log, policy)
    with TemporaryDirectory() as folder:
        streamed = simulate(log.processors, ChunkedWorkload.of(log, rows), policy, stream=Path(folder, "run.db"))
        again = streamed.load().jobs
        assert streamed.summary().splitlines()[1:4] == whole.summary().splitlines()[1:4]
    for name in ("start", "end"):
        np.testing.assert_array_equal(again[name], whole.jobs[name])
    assert again["status"].tolist() == whole.jobs["status"].tolist()


@settings(max_examples=up_to(300))
@given(CASES, st.sampled_from(["fcfs", "easy", "conservative", "conservative-keep"]), st.booleans(), st.data())
def test_continued_snapshots_end_as_the_whole(case, policy, as_jobs, data):
    _, log = plain(case, as_jobs=as_jobs)
    whole = simulate(None, log, policy).jobs
    last = float(np.nanmax(whole["end"], initial=1.0))
    sim = start(None, log, policy)
    sim.run(until=data.draw(st.floats(1e-3, max(last, 1.0))))
    snapshot = sim.snapshot()
    later = type(snapshot).from_json(snapshot.to_json())
    env = Environment(later.now)
    cluster = Cluster.from_snapshot(env, later)
    env.run()
    rest = cluster.result().jobs
    rows = [whole["job"].tolist().index(job) for job in rest["job"].tolist()]
    np.testing.assert_array_equal(rest["end"], whole["end"][rows])
    assert rest["status"].tolist() == np.asarray(whole["status"])[rows].tolist()


def test_many_may_leave_at_one_instant():
    jobs = [Job(id=number, cancel=50, processors=1, requested=10) for number in range(5000)]
    metrics = simulate(4, jobs, "easy").metrics()
    assert metrics["status"] == {"withdrawn": 5000}
    assert metrics["never_started"] == {"would have started": 5000}


@pytest.mark.parametrize("platform", [{"a": 4, "b": 4}], ids=["broker"])
def test_brokers_count_them_as_clusters_do(platform):
    jobs = [
        Job(id=1, run=50, processors=4),
        Job(id=2, run=50, processors=4),
        Job(id=3, submit=1, cancel=30, processors=4, requested=9),
        Job(id=4, submit=2, cancel=90, processors=4, requested=9),
    ]
    result = simulate(platform, jobs, "round-robin")
    assert result.jobs["status"].tolist() == ["completed", "completed", "cancelled", "withdrawn"]
    assert result.jobs["end"].tolist() == [50, 50, 30, 50]
    assert result.metrics()["never_started"] == {"cancelled while waiting": 1, "would have started": 1}
