"""Streamed metrics are those in memory, also of jobs that are suspended, requeued, resized or save their work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Job, Workload, load_workload, simulate
from simmodel.cli import main
from simmodel.platform import ClusterSpec, GridSpec, PartitionSpec, SiteOutageSpec, SiteSpec
from simmodel.results import open_result
from simmodel.work import ChunkedWorkload, Elastic
from tests.helpers.examples import seeds
from tests.helpers.interrupted_cases import case

TWO = ClusterSpec(name="two", partitions=[PartitionSpec(name=name, processors=64) for name in "pq"])


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for counts in ("status", "never_started"):
        assert found.pop(counts, None) == expected.pop(counts, None)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", seeds(40, 500))
@pytest.mark.parametrize("cuts", [{}, {"warmup": "10%", "cooldown": "20%"}], ids=["whole", "cut"])
def test_streamed_metrics_are_those_in_memory(tmp_path: Path, seed: int, cuts: dict[str, Any]) -> None:
    drawn = case(seed)
    whole, streamed = (
        simulate(drawn.platform, drawn.jobs, drawn.policy, seed=seed, stream=stream)
        for stream in (None, tmp_path / "a.db")
    )
    again = streamed.load()
    for column in whole.jobs.names:
        assert again.jobs[column].astype(str).tolist() == np.asarray(whole.jobs[column]).astype(str).tolist(), column
    if whole.changes is not None:
        with pytest.raises(InputError, match="has changes of its places: metrics in one pass are of jobs on"):
            streamed.metrics(**cuts)
        return
    try:
        expected = whole.metrics(**cuts)
    except InputError as error:
        with pytest.raises(InputError, match=str(error)):
            streamed.metrics(**cuts)
        return
    same(streamed.metrics(**cuts), expected)
    assert streamed.METRICS == whole.METRICS
    told = [  # the last digit may be rounded up in the one and down in the other
        [re.sub(r"\d[\d.,]*", "#", line) for line in result.summary(**cuts).splitlines() if "microseconds" not in line]
        for result in (streamed, whole)
    ]
    assert told[0] == told[1]


def test_a_resized_job_beside_another_one(tmp_path: Path) -> None:
    """Utilisation was end - start times the preferred size; unfairness, too."""
    pytest.importorskip("pyarrow")
    jobs = [Job(id=1, run=100, elastic=Elastic(4, 8, 16)), Job(id=2, submit=10, processors=8, run=50)]
    whole = simulate(16, jobs, "keep-preferred")
    assert len(whole.runs) > 2
    for name in ("a.db", "a.parquet"):
        same(simulate(16, jobs, "keep-preferred", stream=tmp_path / name).metrics(), whole.metrics())
    whole.to_parquet(tmp_path / "stored.parquet")
    same(open_result(tmp_path / "stored.parquet").metrics(), whole.metrics())


def test_two_partitions_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = load_workload("lublin-128-week").where(slice(0, 300))
    log = log.replace(processors=np.minimum(log["processors"], 64), partition=np.where(log["job"] % 2, "p", "q"))
    whole = simulate(TWO, log, "easy")
    for rows in (40, 1000):
        streamed = simulate(TWO, ChunkedWorkload.of(log, rows), "easy", stream=tmp_path / "a.db")
        same(streamed.metrics(), whole.metrics())
        assert streamed.load().runs["place"].tolist() == whole.runs["place"].tolist()
    parts = [f'[[partitions]]\nname = "{name}"\nprocessors = {size}\n' for name, size in (("p", 64), ("q", 128))]
    (tmp_path / "two.toml").write_text('kind = "cluster"\n' + "".join(parts))
    platform, out = str(tmp_path / "two.toml"), str(tmp_path / "b.db")
    assert main(["batch", "lublin-128-week", "--platform", platform, "--stream", out]) == 0
    assert "mean wait" in capsys.readouterr().out


def test_grids_whose_jobs_ran_again_are_loaded(tmp_path: Path) -> None:
    sites = [SiteSpec(name="a", cores=4)]
    spec = GridSpec(sites=sites, outages=[SiteOutageSpec(site="a", at=5, until=10)], retries=3)
    log = Workload({"submit": [0, 1], "run": [20, 20], "processors": [2, 2], "requested": [60, 60]})
    streamed = simulate(spec, log, "least-loaded", stream=tmp_path / "a.db")
    with pytest.raises(InputError, match="has changes of its places"):
        streamed.metrics()
    whole = simulate(spec, log, "least-loaded")
    same(streamed.load().metrics(), whole.metrics())
    assert whole.metrics()["interrupted"] == 2
    streamed._changes = None
    with pytest.raises(InputError, match="has jobs that were executed again: metrics in one pass"):
        streamed.metrics()
