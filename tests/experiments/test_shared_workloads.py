"""Experiments on executors: what runs share reaches each worker once, and a worker that dies costs its runs a retry."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Workload, commands, compare, explore, replicate
from simmodel.cli import main
from simmodel.commands.parser import command_parser
from simmodel.experiments import Study
from simmodel.foundation.errors import SimmodelError
from simmodel.futures import executors

NO_NETWORK = pytest.mark.filterwarnings("ignore:Couldn't detect a suitable IP address:RuntimeWarning")


def log(jobs: int = 2000) -> Workload:
    """A log of jobs of one processor."""
    rng = np.random.default_rng(1)
    columns = {"submit": np.sort(rng.uniform(0, 60.0 * jobs, jobs)), "run": rng.uniform(1, 900, jobs)}
    return Workload({**columns, "requested": np.full(jobs, 900.0), "processors": np.ones(jobs, dtype=int)}, name="log")


@contextmanager
def dask(processes: bool, folder: Path, workers: int = 2) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'simmodel[scale]'")
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "local_directory": str(folder)}
    with (
        distributed.LocalCluster(processes=processes, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(workers)
        yield client


class Sizes:
    """The bytes of the arguments of all calls that an executor was asked for."""

    def __init__(self, executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        submit = executor.submit

        def counted(function: Any, *arguments: Any, **options: Any) -> Any:
            self.calls.append(sum(len(pickle.dumps(each)) for each in arguments if _plain(each)))
            return submit(function, *arguments, **options)

        monkeypatch.setattr(executor, "submit", counted)


def _plain(value: object) -> bool:
    return type(value).__module__.partition(".")[0] != "distributed"


def numbers(found: Any) -> dict[str, list[float]]:
    table = found.samples if hasattr(found, "samples") else found.table
    return {name: table[name].tolist() for name in table.names if not name.startswith("decision")}


def test_a_process_pool_reads_the_workload_and_gets_only_the_names_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    work = log()
    size = len(pickle.dumps(work))
    here = [explore(64, {"log": work}, ["fcfs", "easy"], seeds=4), compare(64, work, ["fcfs", "easy", "sjf"])]
    with ProcessPoolExecutor(2) as pool:
        sent = Sizes(pool, monkeypatch)
        far = [
            explore(64, {"log": work}, ["fcfs", "easy"], seeds=4, executor=pool),
            compare(64, work, ["fcfs", "easy", "sjf"], executor=pool),
        ]
    assert [str(numbers(each)) for each in far] == [str(numbers(each)) for each in here]
    assert len(sent.calls) == 8 + 3
    assert sum(sent.calls) < 0.2 * size


@pytest.mark.long  # with a pool of processes: below
@NO_NETWORK
def test_dask_gets_the_workload_once_and_compressed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    work = log()
    size = len(pickle.dumps(work))
    here = explore(64, {"log": work}, ["fcfs", "easy"], seeds=10)
    with dask(False, tmp_path) as client:
        sent = Sizes(client, monkeypatch)  # also what its executor submits
        far = explore(64, {"log": work}, ["fcfs", "easy"], seeds=10, executor=client.get_executor())
    assert str(numbers(far)) == str(numbers(here))
    assert len(sent.calls) == 1 + 20
    assert sent.calls[0] < 0.5 * size
    assert sum(sent.calls[1:]) < 0.2 * size


def test_threads_share_what_cannot_be_pickled() -> None:
    with ThreadPoolExecutor(2) as threads:
        found = replicate(lambda seed: {"value": seed % 7}, [3, 10, 12], executor=threads)
    assert found.samples["value"].tolist() == [3.0, 3.0, 5.0]


def test_an_error_in_a_worker_is_raised_as_it_is() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(InputError, match="wrong on purpose"):
        replicate(_wrong, [1, 2], executor=pool)


def _wrong(seed: int) -> float:
    raise InputError("wrong on purpose")


class Deadly:
    """A workload drawn for each seed, whose first draw with seed 2 kills its process."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "died"

    def __call__(self, seed: int) -> Workload:
        if seed == 2 and not self.mark.exists():
            self.mark.touch()
            os._exit(3)
        return log(200 + seed)


@contextmanager
def pool(workers: int, _folder: Path) -> Iterator[Executor]:
    with ProcessPoolExecutor(workers) as executor:
        yield executor


@contextmanager
def dask_executor(workers: int, folder: Path) -> Iterator[Executor]:
    with dask(True, folder, workers) as client:
        yield client.get_executor()


@pytest.mark.few(1)
@NO_NETWORK
@pytest.mark.parametrize(
    ("executors_of", "workers"),
    [(pool, 2), (pool, 1), *(pytest.param(dask_executor, each, marks=pytest.mark.long) for each in (2, 1))],
)
def test_a_lost_worker_costs_its_runs_a_retry(tmp_path: Path, executors_of: Any, workers: int) -> None:
    draw, kept = Deadly(tmp_path), log()
    file = tmp_path / "runs.sqlite" if workers == 2 else None
    given: dict[str, Any] = {"drawn": draw, "kept": kept}
    with executors_of(workers, tmp_path) as executor:
        far = explore(64, given, ["fcfs", "easy"], seeds=[1, 2, 3], executor=executor, study=file)
    assert draw.mark.exists()
    if file is not None:
        assert Study(file).counts == {"queued": 0, "running": 0, "finished": 12, "failed": 0}
    here = explore(64, {"drawn": draw, "kept": kept}, ["fcfs", "easy"], seeds=[1, 2, 3])
    assert str(numbers(far)) == str(numbers(here))


def _dies(number: int, left: float | None = None) -> int:
    if number == 2:
        os._exit(3)
    return number


def _dies_at(_material: object, number: int, _left: float | None) -> int:
    return _dies(number)


def test_a_run_that_kills_its_pool_fails() -> None:
    with (
        ProcessPoolExecutor(2) as executor,
        pytest.raises(SimmodelError, match=r"its worker process died \(exit code 3\)"),
    ):
        replicate(_dies, [1, 2], executor=executor)


@pytest.mark.long
@NO_NETWORK
def test_a_run_that_kills_dask_workers_fails_alone(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs dask: pip install 'simmodel[scale]'")  # before the settings below
    from dask import config

    with config.set({"distributed.scheduler.allowed-failures": 0}), dask_executor(2, tmp_path) as executor:
        found = executors.run_all(_dies_at, os.urandom(20_000), [1, 2, 3, 4], executor=executor)
    assert [each.value for each in found] == [1, None, 3, 4]
    assert found[1].reason == "its workers died"


def test_without_a_folder_for_temporary_files_workers_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: object) -> None:
        raise OSError("no folder")

    monkeypatch.setattr(executors, "mkstemp", none)
    with ProcessPoolExecutor(2) as pool:
        found = compare(64, log(), ["fcfs", "easy"], executor=pool)
    assert str(numbers(found)) == str(numbers(compare(64, log(), ["fcfs", "easy"])))


COMMANDS = {
    "calibrate": ["calibrate", "size-from-starts"],
    "compare": ["compare", "probe-4", "--policies", "fcfs,easy", "--processors", "12"],
    "explore": ["explore", "--platforms", "small", "--workloads", "probe-4", "--policies", "fcfs,easy", "--seeds", "2"],
    "identify": ["identify", "probe-4", "jobs.csv", "--policies", "fcfs,easy", "--processors", "12"],
    "meta": ["meta", "probe-4", "--clusters", "12,12", "--broker", "random,sgs-t", "--repeat", "2"],
    "optimise": ["optimise", "size-cluster"],
    "portfolio": ["portfolio", "probe-4", "--policies", "fcfs,sjf", "--processors", "12"],
    "resume": ["resume", "runs.sqlite"],
    "sensitivity": ["sensitivity", "screen-machine"],
    "whatif": ["whatif", "s.json", "--policies", "fcfs,easy"],
}


@pytest.mark.long
@NO_NETWORK
def test_every_command_with_workers_runs_on_a_dask_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(arguments: list[str]) -> list[str]:
        assert main(arguments) == 0
        return [line for line in capsys.readouterr().out.splitlines() if "a decision took" not in line]

    monkeypatch.chdir(tmp_path)
    assert main(["batch", "probe-4", "--snapshot", "s.json", "--at", "955", "-q"]) == 0
    assert main(["batch", "probe-4", "--processors", "12", "--schedule", "jobs.csv", "-q"]) == 0
    assert main(["sensitivity", "screen-machine", "--study", "runs.sqlite", "-q"]) == 0
    taking = [name for name in commands.COMMANDS if "--dask" in command_parser(name)[1].format_usage()]
    assert sorted(COMMANDS) == sorted(taking)
    with dask(True, tmp_path) as client:
        address = client.scheduler.address
        for arguments in COMMANDS.values():
            assert said([*arguments, "--dask", address]) == said(arguments)
        assert main([*COMMANDS["compare"], "--dask", address, "--workers", "2"]) == 2
    assert "--workers and --dask exclude each other" in capsys.readouterr().err
    assert main([*COMMANDS["compare"], "--dask", "nowhere"]) == 2
    assert "--dask: must be the address of a Dask scheduler, got 'nowhere'" in capsys.readouterr().err
