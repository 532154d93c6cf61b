"""Streamed records of grids: the same rows, executions, sites and metrics as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Environment, Grid, InputError, Job, Simulation, Workload, load_result, simulate
from simmodel.foundation.errors import SnapshotError
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.results import open_result
from simmodel.results.streams import RecordStream
from simmodel.systems.broker import replay
from simmodel.systems.grid.system import GridStream
from simmodel.work import ChunkedWorkload, File

SITES = ("a", "b", "c")


def random_grid(seed: int) -> tuple[GridSpec, Workload]:
    """Return three sites, one of which fails at times, and jobs with and without files, some of which cannot run."""
    rng = np.random.default_rng(seed)
    disk = StorageSpec(read_bandwidth=50, write_bandwidth=20, capacity=float(rng.choice([400, 1e9])))
    links = [LinkSpec(name=f"{a}{b}", bandwidth=30, latency=1, between=(a, b)) for a, b in ("ab", "bc", "ac")]
    outages = [SiteOutageSpec(site="b", at=200 * i + 50, until=200 * i + 90) for i in range(int(rng.integers(0, 4)))]
    files = [FileSpec(name=f"f{i}", size=40, sites=[SITES[i % 3]]) for i in range(6)]
    sites = [SiteSpec(name=name, cores=int(rng.integers(4, 12)), storage=disk) for name in SITES]
    spec = GridSpec(
        sites=sites, network=NetworkSpec(links=links), files=files, outages=outages, retries=int(rng.integers(0, 3))
    )
    submit = np.sort(rng.integers(0, 900, 60)).astype(float)
    jobs = []
    for i, at in enumerate(submit.tolist()):
        work: dict[str, Any] = {"processors": int(rng.integers(1, 7)), "run": float(rng.integers(0, 60))}
        if rng.random() < 0.6:
            work["inputs"] = [f"f{number}" for number in rng.choice(8, int(rng.integers(0, 3)), replace=False)]
            work["outputs"] = [File(name=f"o{i}", size=float(rng.integers(1, 60)))] * int(rng.integers(0, 2))
        site = str(rng.choice([*SITES, "nowhere"])) if rng.random() < 0.5 else None
        jobs.append(Job(submit=at, user=f"u{i % 4}", site=site, **work))
    return spec, Workload.from_jobs(jobs)


def rows(table: Any) -> list[dict[str, Any]]:
    return [{name: None if cell != cell else cell for name, cell in row.items()} for row in table.rows()]


def lines(result: Any) -> list[str]:
    """Return the lines of a summary without the time that decisions took."""
    return [line for line in result.summary().splitlines() if "microseconds" not in line]


def assert_same(streamed: Any, whole: Any) -> None:
    again = streamed.load()
    assert set(again.jobs.names) == set(whole.jobs.names)
    for name in whole.jobs.names:
        assert again.jobs[name].astype(str).tolist() == np.asarray(whole.jobs[name]).astype(str).tolist(), name
    for table in ("runs", "flows", "places"):
        assert rows(getattr(again, table)) == rows(getattr(whole, table)), table
    assert (streamed.started, streamed.ended, streamed.processors) == (whole.started, whole.ended, whole.processors)
    assert streamed.report.lines() == whole.report.lines()
    for name in whole.sites.names:
        ours, theirs = streamed.sites[name], whole.sites[name]
        if name == "utilisation" and whole.changes is not None:
            assert np.isnan(ours).all()
        elif ours.dtype.kind == "f":
            assert ours == pytest.approx(theirs, rel=1e-9, nan_ok=True)
        else:
            assert ours.tolist() == theirs.tolist()


@pytest.mark.few(6)
@pytest.mark.parametrize("seed", range(24))
def test_a_streamed_grid_equals_the_one_in_memory(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, jobs = random_grid(seed)
    broker = ["round-robin", "least-loaded", "data-locality", "earliest-finish", "recorded"][seed % 5]
    until = None if seed % 3 else 500.0
    whole = simulate(spec, jobs, broker, until=until)
    monkeypatch.setattr(replay, "BLOCK", 1 + seed % 9)
    chunks = ChunkedWorkload.of(jobs, 1 + seed % 13)
    streamed = simulate(spec, chunks, broker, until=until, stream=tmp_path / "grid.db")
    assert_same(streamed, whole)
    if whole.changes is None and not (whole.jobs["attempts"] > 1).any():
        assert streamed.numbers() == pytest.approx(whole.numbers(), rel=1e-9, nan_ok=True)
        assert lines(streamed) == lines(whole)
    else:
        assert "load().metrics() reads all of it" in streamed.summary()
    assert rows(open_result(tmp_path / "grid.db").sites) == rows(streamed.sites)


def test_jobs_that_have_ended_leave_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    drain = GridStream.drain

    def drained(stream: GridStream) -> None:
        drain(stream)
        ledger = stream.ledger
        left.append(max(len(ledger.open), len(ledger.start), len(ledger.status), len(ledger.fates)))

    monkeypatch.setattr(GridStream, "drain", drained)
    monkeypatch.setattr(replay, "BLOCK", 20)
    jobs = [Job(submit=10 * i, run=15, inputs=["f"], outputs=[File(f"o{i}", 1)]) for i in range(1000)]
    spec = GridSpec(sites=[SiteSpec(name="a", cores=4)], files=[FileSpec(name="f", size=1, sites=["a"])])
    log = ChunkedWorkload.of(Workload.from_jobs(jobs), 20)
    result = simulate(spec, log, stream=tmp_path / "grid.db")
    assert len(left) >= 50
    assert max(left) < 30
    assert result.metrics()["status"] == {"completed": 1000}


def test_a_grid_streamed_to_parquet_has_the_record_of_one_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    spec, jobs = random_grid(4)
    assert_same(simulate(spec, jobs, stream=tmp_path / "grid.parquet"), simulate(spec, jobs))


def by_hand(path: Path | None) -> Any:
    """Return the result of jobs that a process submits one by one, some of which are cancelled."""
    env = Environment()
    grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=4), SiteSpec(name="b", cores=2)]), "round-robin")
    simulation = Simulation(grid)
    if path is not None:
        simulation.stream_to(RecordStream(path))
        grid.stream_record(simulation._stream.write, every=5)  # type: ignore[union-attr]

    def user() -> Any:
        for i in range(60):
            job = grid.submit(Job(processors=1 + i % 4, run=10 + 7 * (i % 5), user=f"u{i % 3}"))
            if i % 11 == 5:
                grid.cancel(job)
            yield env.timeout(3 + i % 4)

    env.process(user())
    return simulation.run().result()


def test_jobs_of_a_script_are_written_every_so_often(tmp_path: Path) -> None:
    assert_same(by_hand(tmp_path / "grid.db"), by_hand(None))


def test_what_a_streamed_grid_refuses(tmp_path: Path) -> None:
    spec, jobs = random_grid(1)
    grid = Grid(Environment(), spec)
    with pytest.raises(InputError, match="must be in memory"):
        grid.replay_in_chunks(ChunkedWorkload.of(jobs))
    grid.submit(Job(run=5))
    with pytest.raises(InputError, match="must be None for <Grid grid"):
        grid.stream_record(print)
    grid = Grid(Environment(), spec)
    grid.stream_record(lambda *_: None)
    grid.replay_in_chunks(ChunkedWorkload.of(jobs))
    with pytest.raises(InputError, match="cannot take jobs one by one"):
        grid.submit(Job(run=5))
    with pytest.raises(SnapshotError, match="reads its workload in chunks"):
        grid.snapshot()
    with pytest.raises(InputError, match="must not wait for other jobs"):
        simulate(spec, [Job(id=1, run=5), Job(run=5, dependencies=[1])], stream=tmp_path / "x.db")
    with pytest.raises(InputError, match="must be sorted by submit time"):
        simulate(spec, [Job(run=5, submit=5), Job(run=5)], stream=tmp_path / "x.db")


def test_the_file_of_a_run_that_failed_is_unfinished_and_readable(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(replay, "BLOCK", 5)
    spec, jobs = random_grid(2)

    class Fails:
        def job_finished(self, job: Any, _site: Any) -> None:
            if job.row == 40:
                raise RuntimeError("enough")

    chunks = ChunkedWorkload.of(jobs, 5)
    with pytest.raises(RuntimeError, match="enough"):
        simulate(spec, chunks, "round-robin", observers=[Fails()], stream=tmp_path / "grid.db")
    found: Any = load_result(tmp_path / "grid.db.unfinished")
    assert "unfinished" in str(found.report)
    whole = simulate(spec, jobs, "round-robin")
    assert 10 < len(found.jobs) < 60
    at = {job: i for i, job in enumerate(whole.jobs["job"].tolist())}
    rows_of = [at[job] for job in found.jobs["job"].tolist()]
    assert found.jobs["start"].astype(str).tolist() == whole.jobs["start"][rows_of].astype(str).tolist()
