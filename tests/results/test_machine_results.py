"""Results of machines: traces, files and plots, and properties of every run."""

from __future__ import annotations

import csv
import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from simmodel import InputError, Task, Workflow, load_result, load_scenario
from simmodel.environment import Environment
from simmodel.formats.perfetto import task_events
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel.metrics.batch import MACHINE_METRICS
from simmodel.metrics.processors import busy_seconds, link_load
from simmodel.metrics.workflow import longest_path
from simmodel.records.task_record import FIRST_COLUMNS
from simmodel.results.loading import read_scenario
from simmodel.results.machine import MachineResult
from simmodel.results.stores import plain
from simmodel.runs.scenario import simulate
from simmodel.scheduling.protocol import Start
from simmodel.systems.machine.system import Machine
from tests.helpers.examples import up_to
from tests.helpers.machine_cases import MachineCase, machine_cases
from tests.helpers.small_machines import MB, run, small_machine

GPU = {"name": "gpu0", "setup": 100, "model_error": 0.1}
FPGA = {"name": "fpga0", "type": "FPGA", "setup": 90, "reconfiguration": (90, 150)}


def anywhere(view: Any) -> Any:
    for task in view.waiting:
        able = [place for place in view.places if place.can_run(task)]
        yield Start(task, able[int(view.rng.integers(len(able)))])


def fork() -> Workflow:
    tasks = [Task(id=name, run=10 + 3 * i, family=name) for i, name in enumerate("abcdefgh")]
    edges = [pair for each in "bcdefg" for pair in (("a", each, 50 * MB), (each, "h", 25 * MB))]
    return Workflow(tasks, edges, name="fork")


@pytest.fixture
def result() -> MachineResult:
    """A run with setup, reconfiguration, transfers, two sets and a plan."""
    spec = small_machine(GPU, FPGA, cores=2)
    return simulate(spec, [(0, fork()), (50, fork())], "heft", seed=4, name="two forks")


# ---------------------------------------------------------------------- traces


def check_trace(events: list[dict[str, Any]]) -> None:
    """Every flow has two ends that lie in slices, no slices of a row overlap, and every row has a name."""
    by_row: dict[tuple[int, int], list[tuple[float, float]]] = {}
    named = {(each["pid"], each["tid"]) for each in events if each["ph"] == "M" and each["name"] == "thread_name"}
    for each in events:
        if each["ph"] == "X":
            assert each["dur"] >= 0
            by_row.setdefault((each["pid"], each["tid"]), []).append((each["ts"], each["ts"] + each["dur"]))
    assert set(by_row) <= named
    for spans in by_row.values():
        spans.sort()
        assert all(first[1] <= second[0] + 1e-3 for first, second in pairwise(spans))
    ends: dict[int, dict[str, dict[str, Any]]] = {}
    for each in events:
        if each["ph"] in "sf":
            assert each["ph"] not in ends.setdefault(each["id"], {})
            ends[each["id"]][each["ph"]] = each
    for pair in ends.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["ts"] <= pair["f"]["ts"] + 1e-3
        for each in pair.values():
            spans = by_row[each["pid"], each["tid"]]
            assert any(low - 1e-3 <= each["ts"] <= high + 1e-3 for low, high in spans)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_has_phases_transfers_pools_and_arrows(result: MachineResult, tmp_path: Path, name: str) -> None:
    result.to_perfetto(tmp_path / name)
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "rt") as file:
        events = json.load(file)["traceEvents"]
    check_trace(events)
    slices = [each for each in events if each["ph"] == "X"]
    executions = [each for each in slices if each["cat"] == "execution"]
    assert len(executions) == 16
    starts = sorted(each["ts"] for each in executions)
    assert starts == pytest.approx(sorted((result.tasks["start"] * 1e6).tolist()))
    assert sum(each["ph"] == "s" for each in events) == 24
    assert sum(each["pid"] == 2 for each in slices) == len(result.transfers)
    threads = {each["args"]["name"] for each in events if each["ph"] == "M" and each["name"] == "thread_name"}
    assert {"cpu0", "gpu0", "n0-gpu0"} <= threads
    counters = {each["name"] for each in events if each["ph"] == "C"}
    assert {"n0", "gpu0", "fpga0", "blocked on setup"} <= counters


def test_long_traces_keep_the_longest_slices_and_say_so(result: MachineResult) -> None:
    events = list(task_events(result, limit=4))
    check_trace([each for each in events if each["ph"] not in "sf"])
    assert any("shortest slices left out" in each["args"].get("name", "") for each in events if each["ph"] == "M")


def test_a_processor_with_cores_has_a_row_for_each() -> None:
    work = Workflow([Task(id=i, run=5, cores=1 + i % 2) for i in range(5)])
    spec = small_machine({"name": "many", "type": "CPU", "cores": 3, "pool": "n0"})
    found = run(spec, work, dict.fromkeys(range(5), "many"))
    check_trace(list(task_events(found)))


# ---------------------------------------------------------------------- stores

STORES: dict[str, tuple[str, Any]] = {
    "sqlite": ("run.sqlite", MachineResult.to_sqlite),
    "csv": ("folder", MachineResult.to_csv),
    "parquet": ("tables", MachineResult.to_parquet),
    "json": ("run.json.gz", lambda result, path: result.to_json(path, tasks=True)),
}


PARTS = ("status", "phases", "peaks", "best_single")


@pytest.mark.parametrize("kind", STORES)
def test_what_is_stored_comes_back(result: MachineResult, tmp_path: Path, kind: str) -> None:
    name, write = STORES[kind]
    write(result, tmp_path / name)
    again = load_result(tmp_path / name)
    assert isinstance(again, MachineResult)
    for key in ("tasks", "transfers", "cpu_phases", "edges", "phases"):
        mine, other = getattr(result, key), getattr(again, key)
        assert mine.names == other.names
        for column in mine.names:
            assert mine[column].tolist() == pytest.approx(other[column].tolist(), nan_ok=True), (key, column)
    assert again.spec == result.spec
    mine, other = result.metrics(), again.metrics()
    assert [mine.pop(name) for name in PARTS] == [other.pop(name) for name in PARTS]
    assert mine == pytest.approx(other, nan_ok=True)
    assert again.summary() == result.summary()
    assert list(again.critical_path().rows()) == list(result.critical_path().rows())
    assert list(again.planned().rows()) == list(result.planned().rows())
    assert again.memory["n0"].values.tolist() == result.memory["n0"].values.tolist()
    assert read_scenario(tmp_path / name) == plain(result.scenario)


def test_a_scenario_repeats_the_run(result: MachineResult, tmp_path: Path) -> None:
    result.to_json(tmp_path / "run.json")
    again = load_scenario(tmp_path / "run.json").run()
    assert again.tasks["end"].tolist() == result.tasks["end"].tolist()
    drawn = simulate("hetsim-slow-setup", "layered:n=20", "hrr", seed=3, overlap=True)
    drawn.to_json(tmp_path / "drawn.json")
    scenario = load_scenario(tmp_path / "drawn.json")
    assert scenario.workload == "layered:n=20"
    assert scenario.run().tasks["end"].tolist() == drawn.tasks["end"].tolist()
    assert scenario.run(seed=4).tasks["end"].tolist() != drawn.tasks["end"].tolist()


def test_a_schedule_begins_with_the_phases(result: MachineResult, tmp_path: Path) -> None:
    result.schedule_csv(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    begin = "task,processor,ready,setup_start,setup_end,reconfiguration_end,transfer_start,transfer_end,start,end"
    assert ",".join(rows[0]).startswith(begin)
    assert list(FIRST_COLUMNS) == begin.split(",")
    assert len(rows) == 17


def test_work_that_is_no_work_is_refused() -> None:
    spec = small_machine()
    for work, said in (
        ([], "workload: must contain at least one workflow or task set"),
        ([3], "workload: must be workflows, task sets, a name or a path, got 3"),
        ([(-1, fork())], "must be an instant >= 0 s, got"),
        ("random:task=3", "unknown key 'task'"),
    ):
        with pytest.raises(InputError, match=said):
            simulate(spec, work, "hrr")
    with pytest.raises(InputError, match="unknown policy 'hft'; did you mean 'heft'"):
        simulate(spec, fork(), "hft")


# ---------------------------------------------------------------------- looks


@pytest.mark.long  # each picture of machines: tests/view
def test_every_picture_is_drawn(result: MachineResult, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    for name in ("gantt", "memory", "links", "phases", "plan"):
        axes = getattr(result.plot, name)()
        axes.figure.savefig(tmp_path / f"{name}.png", dpi=40)
        plt.close(axes.figure)
    result.plot.overview().savefig(tmp_path / "overview.png", dpi=40)
    axes = result.plot.gantt(processors=["gpu0", "cpu0"], labels=False)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["gpu0", "cpu0"]
    plt.close("all")


def test_many_tasks_are_averaged_in_an_image(tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    found = simulate("hetsim-slow-setup", "random:tasks=5000", "hrr")
    axes = found.plot.gantt()
    assert len(axes.images) == 1
    axes.figure.savefig(tmp_path / "many.png", dpi=40)
    plt.close("all")


def test_of_many_processors_pictures_show_those_that_did_something() -> None:
    import matplotlib.pyplot as plt

    found = simulate("a100x4", "layered:n=12", "heft")
    for name in ("gantt", "phases", "plan"):
        axes = getattr(found.plot, name)()
        labels = [text.get_text() for text in axes.get_yticklabels()]
        assert set(found.tasks["processor"].tolist()) <= set(labels)
        assert len(labels) < 20
    assert any("idle processors left out" in text.get_text() for text in found.plot.gantt().texts)
    plt.close("all")


def test_notebooks_show_the_metrics(result: MachineResult) -> None:
    shown = result._repr_html_()
    assert "two forks" in shown
    assert "SLR" in shown
    assert repr(result) == "<MachineResult two forks: 16 tasks on 4 processors>"
    text = result.summary()
    assert text.count("fork  makespan") == 2


# ---------------------------------------------------------------------- what holds of every run


@settings(
    deadline=None, max_examples=up_to(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(machine_cases(policies=("anywhere",)))
def test_metrics_of_random_runs_agree_with_their_record(case: MachineCase) -> None:
    env = Environment(seed=case.seed)
    machine = Machine(env, case.spec, anywhere, **case.options)
    try:
        for at, work in case.work:
            machine.submit(work, at)
        env.run()
    except (ImpossibleWork, Stalled):  # other tests check which runs stall
        assume(False)
    found = machine.result()
    found.scenario = {"options": {"contention": case.options["contention"]}}
    check_result(found, exact=not any(each.model_error for each in case.spec.processors))


def check_result(found: MachineResult, exact: bool) -> None:
    """Check that phases, loads, paths, links and traces fit together."""
    tasks = found.tasks
    metrics = found.metrics()
    span = found.ended - found.started
    start, end = found.spans
    assert np.all(end >= start)
    assert (end - start).sum() == pytest.approx((tasks["end"] - tasks["submit"]).sum())
    busy = busy_seconds(found)
    assert np.all(busy >= 0)
    assert np.all(busy <= span * 2 + 1e-9)  # a core may set up others while its own task waits for data
    assert all(0 <= value < float("inf") for name in MACHINE_METRICS for value in [metrics[name]] if value == value)
    if exact and not np.any(tasks["attempts"] > 1):
        least = longest_path(found, tasks["run_best"]).max()
        assert metrics["makespan"] >= least - 1e-9
        assert not np.any(found.by_set()["slr"] < 1 - 1e-9)
    steps = list(found.critical_path().rows())
    assert steps[-1]["end"] == tasks["end"].max()
    assert steps[0]["cause"] == "arrival"
    assert steps[0]["start"] in tasks["submit"]
    for before, after in pairwise(steps):
        assert after["start"] == pytest.approx(before["end"])
        assert after["cause"] != "arrival"
    for link, load in link_load(found).items():
        bandwidth = next(each.bandwidth for each in found.spec.links if each.name == link)
        if found.scenario["options"]["contention"]:
            assert load.max() <= bandwidth * (1 + 1e-9)
    carried = found.links()["bytes"]
    assert carried.tolist() == pytest.approx([each.integral() for each in link_load(found).values()], abs=1e-6)
    check_trace(list(task_events(found)))
    assert found.summary()
