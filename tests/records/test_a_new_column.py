"""A new column of jobs is an entry in one table: in memory, streamed, stored and read back, for every system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Broker, Cluster, Environment, Job, load_result, simulate
from simmodel.platform import GridSpec, SiteSpec
from simmodel.records.job_record import DERIVED, OF_REQUESTS
from tests.helpers.usual_policy import usual_policy

JOBS = [Job(id=1, run=9, processors=3), Job(id=2, submit=1, run=5, processors=2), Job(id=3, submit=30, run=5)]
PLATFORMS: dict[str, Any] = {
    "cluster": 4,
    "broker": {"a": 4, "b": 2},
    "grid": GridSpec(sites=[SiteSpec(name="a", cores=4)]),
}


@pytest.fixture(autouse=True)
def turnaround(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DERIVED, "turnaround", lambda jobs: jobs["end"] - jobs["submit"])


@pytest.mark.parametrize("name", PLATFORMS)
def test_it_is_in_memory_streamed_and_stored(tmp_path: Path, name: str) -> None:
    whole = simulate(PLATFORMS[name], JOBS, usual_policy(PLATFORMS[name]))
    expected = whole.jobs["end"] - whole.jobs["submit"]
    assert whole.jobs["turnaround"].tolist() == expected.tolist()
    simulate(PLATFORMS[name], JOBS, usual_policy(PLATFORMS[name]), stream=tmp_path / "streamed.sqlite")
    whole.to_sqlite(tmp_path / "stored.sqlite")
    whole.to_csv(tmp_path / "csv")
    for path in ("streamed.sqlite", "stored.sqlite", "csv"):
        read = load_result(tmp_path / path).jobs
        assert read["turnaround"].tolist() == expected.tolist(), path


@pytest.mark.parametrize("form", ["sqlite", "csv"])
def test_it_has_numbers_where_no_job_has_ended(tmp_path: Path, form: str) -> None:
    whole = simulate(4, JOBS, "fcfs", until=0.5)
    getattr(whole, f"to_{form}")(tmp_path / f"stored.{form}")
    read = load_result(tmp_path / f"stored.{form}").jobs["turnaround"]
    assert read.dtype == np.float64
    assert np.isnan(read).all()


def test_a_column_of_requests_is_in_all_records_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OF_REQUESTS, "priority", "priority")
    jobs = [Job(run=9, priority=3, processors=4), Job(run=9, priority=2, processors=4)]
    env = Environment()
    cluster = Cluster(env, 4)
    for job in jobs:
        cluster.submit(job)
    env.run(until=5)
    later = Environment(5)
    again = Cluster.from_snapshot(later, cluster.snapshot())
    later.run()
    env = Environment()
    broker = Broker(env, [Cluster(env, 4)], "round-robin")
    for job in jobs:
        broker.submit(job)
    env.run()
    for system in (cluster, again, broker):
        assert system.result().jobs["priority"].tolist() == [3, 2]
