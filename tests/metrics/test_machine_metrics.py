"""Metrics of machines, computed by hand on the eight cases, and critical paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simmodel import Environment, Machine, Task, Workflow, load_platform
from simmodel.metrics._examples import two_kinds
from simmodel.metrics.critical import critical_shares
from simmodel.metrics.processors import link_load, pools
from simmodel.metrics.workflow import by_set, longest_path, machine_text
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.records.task_record import PHASES
from simmodel.results.machine import MachineResult
from simmodel.runs.scenario import simulate
from simmodel.scheduling.protocol import Start
from simmodel.work.task import DataObject
from simmodel.work.taskset import TaskSet
from tests.helpers.small_machines import MB, Placed, run, small_machine

CPU = {"idle_power": 1, "load_power": 3}
GPU = {"name": "gpu0", "setup": 100, "idle_power": 10, "load_power": 30}
FPGA = {"name": "fpga0", "type": "FPGA", "setup": 90, "reconfiguration": (90, 150), "idle_power": 10, "load_power": 30}


def tasks(*spec: tuple[str, float], edges: Any = (), **fields: Any) -> Workflow:
    return Workflow([Task(id=name, run=seconds, **fields) for name, seconds in spec], edges)


def shared_object() -> Workflow:
    return Workflow(
        [
            Task(id="p", run=10, outputs=["o"]),
            Task(id="c", run=50, inputs=["o"]),
            Task(id="d", run=50, inputs=["o"]),
        ],
        files=[DataObject("o", 50 * MB)],
    )


def on_fpga(*families: str, seconds: dict[str, float]) -> TaskSet:
    n = len(families)
    return TaskSet(
        [20.0] * n,
        ids=[f"f{i + 1}" for i in range(n)],
        families=list(families),
        implementations=[("FPGA",)] * n,
        reconfiguration=seconds,
    )


def case(name: str) -> MachineResult:
    """Return the run of one of the eight cases."""
    gpu1 = {**GPU, "name": "gpu1", "setup": 120}
    shared = {**GPU, "name": "igpu0", "pool": "n0"}
    works: dict[str, tuple[Any, Any, dict[str, str]]] = {
        "A": ([GPU], tasks(("t", 50)), {"t": "gpu0"}),
        "B": ([GPU], tasks(("c", 80), ("t", 50)), {"c": "cpu0", "t": "gpu0"}),
        "C": ([GPU, gpu1], tasks(("a", 50), ("b", 50)), {"a": "gpu0", "b": "gpu1"}),
        "D": ([GPU], tasks(("p", 10), ("c", 50), edges=[("p", "c", 50 * MB)]), {"p": "cpu0", "c": "gpu0"}),
        "E": ([GPU], shared_object(), {"p": "cpu0", "c": "gpu0", "d": "gpu0"}),
        "F": ([FPGA], on_fpga("x", "x", seconds={"x": 150}), {"f1": "fpga0", "f2": "fpga0"}),
        "G": ([FPGA], on_fpga("x", "y", seconds={"x": 150, "y": 90}), {"f1": "fpga0", "f2": "fpga0"}),
        "H": ([shared], tasks(("p", 10), ("c", 50), edges=[("p", "c", 50 * MB)]), {"p": "cpu0", "c": "igpu0"}),
    }
    accelerators, work, where = works[name]
    return run(small_machine(*accelerators, **CPU), work, where)


# Of each case: makespan; longest path without and with setup; the best single processor; processors; busy time of the
# core and of each accelerator; and the data moved.
#
# The CPU core can run what is on the GPU too (all factors are 1), so setup lengthens the path only where it is needed.
BY_HAND = {
    "A": (150, 50, 50, 50, 2, (100, 150), 0),
    "B": (230, 80, 80, 130, 2, (180, 150), 0),
    "C": (270, 50, 50, 100, 3, (220, 150, 170), 0),
    "D": (162, 60, 60, 60, 2, (110, 152), 1),
    "E": (312, 60, 60, 110, 2, (210, 302), 1),
    "F": (370, 20, 260, 40, 2, (180, 370), 0),
    "G": (460, 20, 260, 40, 2, (180, 460), 0),
    "H": (160, 60, 60, 60, 2, (110, 150), 0),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_metrics_of_the_cases_by_hand(name: str) -> None:
    makespan, path, with_setup, single, processors, busy, moved = BY_HAND[name]
    result = case(name)
    found = result.metrics()
    assert found["makespan"] == makespan
    assert found["slr"] == makespan / path
    assert found["slr_setup"] == makespan / with_setup
    assert found["speedup"] == single / makespan
    assert found["efficiency"] == single / makespan / processors
    assert result.load()["busy"].tolist() == list(busy)
    core = 1 * (makespan - busy[0]) + 3 * busy[0]
    assert found["energy"] == core + sum(10 * (makespan - each) + 30 * each for each in busy[1:])
    assert found["utilisation"] == pytest.approx(sum(busy) / makespan / processors)
    assert (found["transfers"], found["bytes"]) == (moved, moved * 50 * MB)


def test_phase_totals_are_as_by_hand() -> None:
    found = case("G").metrics()
    assert (found["setup"], found["reconfiguration"], found["transfer"], found["execution"]) == (180, 240, 0, 40)
    phases = case("C").metrics()["phases"]
    assert phases["waiting for setup"] == 100
    assert case("B").metrics()["phases"]["waiting for setup"] == 80
    assert case("E").metrics()["phases"]["blocked on setup"] == 152
    assert case("D").metrics()["phases"]["blocked on dependencies"] == 10


def test_phases_say_where_a_task_was() -> None:
    rows = [tuple(row.values()) for row in case("D").phases.rows()]
    assert rows == [
        ("p", "execution", "cpu0", 0, 10),
        ("c", "blocked on dependencies", "", 0, 10),
        ("c", "setup", "cpu0", 10, 110),
        ("c", "transfer", "gpu0", 110, 112),
        ("c", "execution", "gpu0", 112, 162),
    ]
    assert [row[1:3] for row in ([*each.values()] for each in case("C").phases.rows()) if row[0] == "b"] == [
        ["waiting for setup", "cpu0"],
        ["setup", "cpu0"],
        ["execution", "gpu1"],
    ]


def test_load_of_processors_and_links() -> None:
    result = case("D")
    load = result.load()
    assert load["tasks"].tolist() == [1, 1]
    assert load["for others"].tolist() == [100, 0]
    assert load["setup"].tolist() == [0, 100]
    assert [column.tolist() for column in result.links().values()] == [["n0-gpu0"], [1], [50 * MB], [2 / 162]]
    assert link_load(result)["n0-gpu0"].at([109, 111, 113]).tolist() == [0, 25 * MB, 0]
    assert pools(result)["peak"].tolist() == [50 * MB, 50 * MB]


def test_no_processor_alone_runs_everything() -> None:
    work = TaskSet([10.0, 10.0], implementations=[("CPUCore",), ("GPU",)])
    found = run(small_machine(GPU), work, {0: "cpu0", 1: "gpu0"}).metrics()
    assert np.isnan(found["speedup"])
    assert found["best_single"] == ""
    assert found["slr"] == 12


@pytest.mark.parametrize("begin", [0, 100])
def test_several_sets_have_their_own_makespans(begin: int) -> None:
    """Nothing but the instants depends on when the first set comes."""
    spec = small_machine()
    first, second = tasks(("a", 10), ("b", 20), edges=[("a", "b")]), tasks(("a", 7))
    result = simulate(spec, [(begin, first), (begin + 5, second)], "hrr")
    rows = list(result.by_set().rows())
    assert [(row["submit"], row["end"]) for row in rows] == [(begin, begin + 37), (begin + 5, begin + 17)]
    assert [row["makespan"] for row in rows] == [37, 12]
    assert [row["slr"] for row in rows] == [37 / 30, 12 / 7]
    assert result.metrics()["slr"] == 37 / 30
    assert longest_path(result, result.tasks["run_best"]).tolist() == [10, 30, 12]


def test_a_cut_run_has_no_makespan() -> None:
    found = simulate(small_machine(), tasks(("a", 10), ("b", 20)), "hrr", until=15)
    metrics = found.metrics()
    assert np.isnan(metrics["makespan"])
    assert np.isnan(metrics["slr"])
    assert metrics["status"] == {"done": 1, "running": 1}
    assert "1 done" in found.summary()
    assert found.critical_path()["task"].tolist() == ["a"]


def test_a_result_without_tasks_has_metrics() -> None:
    spec = small_machine()
    result = MachineResult(spec=spec, tasks={name: [] for name in ("task", "processor", "start", "end")})
    assert result.metrics()["makespan"] == 0
    assert "tasks" in result.summary()
    assert len(result.critical_path()) == 0
    assert pools(result)["mean"].tolist() == [0]


def test_the_record_of_the_examples_is_that_of_a_run_up_to_the_last_start() -> None:
    by_hand = two_kinds()
    result = run(by_hand.spec, by_hand.sets[0], {"a": "cpu", "b": "gpu"})
    # The speed of the GPU is drawn, so the end of b is another.
    for name in ("submit", "ready", "taken", "setup_start", "setup_end", "transfer_start", "transfer_end", "start"):
        assert result.tasks[name].tolist() == by_hand.tasks[name].tolist(), name
    for name in ("bytes", "source", "destination", "start", "end", "task", "cause"):
        assert result.transfers[name].tolist() == by_hand.transfers[name].tolist(), name
    assert [row["end"] for row in result.cpu_phases.rows()] == by_hand.cpu_phases["end"].tolist()


@pytest.mark.parametrize(("seconds", "text"), [(2.5e-5, "25 microseconds"), (1, "1 s"), (90, "1 min 30 s")])
def test_times_of_decisions_read_as_durations_from_a_second_on(seconds: float, text: str) -> None:
    assert machine_text("decision_mean", seconds) == text


# ---------------------------------------------------------------------- the critical path


def path(result: MachineResult) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.critical_path().rows()]


def test_critical_paths_of_the_cases_by_hand() -> None:
    assert path(case("A")) == [
        ("t", "gpu0", "setup", 0, 100, "arrival", ""),
        ("t", "gpu0", "execution", 100, 150, "next phase", ""),
    ]
    assert path(case("B")) == [
        ("c", "cpu0", "execution", 0, 80, "arrival", ""),
        ("t", "gpu0", "setup", 80, 180, "core", "c"),
        ("t", "gpu0", "execution", 180, 230, "next phase", ""),
    ]
    assert path(case("C")) == [
        ("a", "gpu0", "setup", 0, 100, "arrival", ""),
        ("b", "gpu1", "setup", 100, 220, "core", "a"),
        ("b", "gpu1", "execution", 220, 270, "next phase", ""),
    ]
    assert path(case("E")) == [
        ("p", "cpu0", "execution", 0, 10, "arrival", ""),
        ("c", "gpu0", "setup", 10, 110, "dependency", "p"),
        ("c", "gpu0", "transfer", 110, 112, "next phase", ""),
        ("c", "gpu0", "execution", 112, 162, "next phase", ""),
        ("d", "gpu0", "setup", 162, 262, "processor", "c"),
        ("d", "gpu0", "execution", 262, 312, "next phase", ""),
    ]
    assert critical_shares(case("G")) == {"reconfiguration": 240, "setup": 180, "execution": 40}


def test_a_task_waits_for_its_own_core() -> None:
    result = run(small_machine(GPU), tasks(("t", 10), ("c", 80)), {"t": "gpu0", "c": "cpu0"})
    assert path(result) == [
        ("t", "gpu0", "setup", 0, 100, "arrival", ""),
        ("c", "cpu0", "execution", 100, 180, "core", "t"),
    ]


def test_a_task_waits_for_room_that_another_leaves() -> None:
    work = Workflow([Task(id="a", run=30, memory=60), Task(id="b", run=5, memory=60)])
    result = run(small_machine(sizes={"n0": 100}, cores=2), work, {"a": "cpu0", "b": "cpu1"})
    assert path(result) == [
        ("a", "cpu0", "execution", 0, 30, "arrival", ""),
        ("b", "cpu1", "execution", 30, 35, "memory", "a"),
    ]


def test_data_without_dma_wait_for_the_core_that_moves_them() -> None:
    work = tasks(("p", 10), ("q", 30), ("c", 5), edges=[("p", "c", 50 * MB)])
    gpu = {"name": "gpu0", "dma": False}
    result = run(small_machine(gpu, cores=2), work, {"p": "cpu1", "q": "cpu0", "c": "gpu0"})
    assert path(result) == [
        ("q", "cpu0", "execution", 0, 30, "arrival", ""),
        ("c", "gpu0", "transfer", 30, 32, "core", "q"),
        ("c", "gpu0", "execution", 32, 37, "next phase", ""),
    ]


@pytest.mark.parametrize("begin", [0.0, 1.7e9])
def test_ends_and_starts_that_differ_by_rounding_belong_together(begin: float) -> None:
    """``b`` takes the core of ``a`` at its end, which is one rounding error earlier; also in seconds since 1970."""
    done = begin + 3.0
    taken = float(np.nextafter(done, np.inf))
    instants = {"setup_start", "setup_end", "reconfiguration_end", "transfer_start", "transfer_end", "taken", "start"}
    columns: dict[str, Any] = {name: [begin, taken] for name in instants}
    columns |= {"submit": [begin] * 2, "ready": [begin] * 2, "end": [done, taken + 4.0], "setup_core": ["", ""]}
    columns |= {"task": ["a", "b"], "processor": ["cpu0"] * 2, "pool": ["n0"] * 2}
    found = MachineResult(spec=small_machine(), tasks=columns).critical_path()
    assert found["task"].tolist() == ["a", "b"]
    assert found["cause"].tolist() == ["arrival", "processor"]
    assert found["after"].tolist() == ["", "a"]


def test_a_wait_for_a_decision_is_a_step_of_its_own() -> None:
    class Late:
        def decide(self, view: Any) -> Any:
            from simmodel import WakeAt

            for task in view.waiting:
                if view.now < 4:
                    yield WakeAt(4)
                else:
                    yield Start(task, view.places[0])

    result = simulate(small_machine(), tasks(("a", 3)), Late())
    assert path(result) == [
        ("a", "cpu0", "blocked on setup", 0, 4, "arrival", ""),
        ("a", "cpu0", "execution", 4, 7, "next phase", ""),
    ]


# ---------------------------------------------------------------------- plans and records


def test_lateness_is_the_end_less_the_planned_end() -> None:
    spec = small_machine({"name": "gpu0"})
    flow = tasks(("a", 10), ("b", 20), ("c", 20), edges=[("a", "b", 50 * MB), ("a", "c", 50 * MB)])
    found = simulate(spec, flow, "heft").planned()
    assert sorted(found["task"].tolist()) == ["a", "b", "c"]
    assert found["planned_processor"].tolist() == found["processor"].tolist()
    assert found["lateness"].tolist() == [0, 0, 0]
    late = simulate(small_machine({"name": "gpu0", "setup": 7}), flow, "heft")
    assert late.metrics()["lateness"] == late.planned()["end"].max() - late.planned()["planned_end"].max()
    assert np.isnan(simulate(spec, flow, "hrr").metrics()["lateness"])


def test_recorded_tasks_are_compared_with_simulated_ones() -> None:
    flow = Workflow(
        [
            Task(id="a", run=10, started=0.0, ended=11.0),
            Task(id="b", run=20, started=12.0, ended=33.0),
            Task(id="c", run=1),
        ],
        [("a", "b")],
    )
    result = simulate(small_machine(), [(100, flow)], "hrr")
    found = result.against_recorded()
    assert found["task"].tolist() == ["a", "b"]
    assert found["start"].tolist() == [0, 11]
    assert found["end"].tolist() == [10, 31]
    assert found["recorded_run"].tolist() == [11, 21]
    assert found["difference"].tolist() == [-1, -2]
    assert len(simulate(small_machine(), tasks(("a", 1)), "hrr").against_recorded()) == 0


def test_links_that_share_are_loaded_to_their_bandwidth_and_no_more() -> None:
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name=name) for name in ("n0", "a", "b")],
        architectures=[ArchitectureSpec(name="x")],
        processors=[
            ProcessorSpec(name="cpu0", type="CPUCore", architecture="x", pool="n0"),
            ProcessorSpec(name="ga", type="GPU", architecture="x", pool="a"),
            ProcessorSpec(name="gb", type="GPU", architecture="x", pool="b"),
        ],
        links=[
            LinkSpec(name="one", bandwidth=10.0, between=("n0", "a")),
            LinkSpec(name="two", bandwidth=10.0, between=("a", "b")),
        ],
    )
    work = Workflow(
        [Task(id="p", run=1, outputs=["x", "y"]), Task(id="q", run=1, inputs=["x"]), Task(id="r", run=1, inputs=["y"])],
        files=[DataObject("x", 100.0), DataObject("y", 20.0)],
    )
    where = {"p": "cpu0", "q": "ga", "r": "gb"}
    load = link_load(run(spec, work, where))
    assert load["one"].max() == 10
    assert load["two"].at([2, 6]).tolist() == [5, 0]
    alone = simulate(spec, work, Placed(where), contention=False)
    assert link_load(alone)["one"].max() == 20
    assert alone.links()["transfers"].tolist() == [2, 1]


def test_phases_have_their_names_in_order() -> None:
    assert PHASES[0] == "blocked on dependencies"
    assert PHASES[-1] == "execution"
    result = case("E")
    start, end = result.spans
    assert np.nansum(end - start) == pytest.approx((result.tasks["end"] - result.tasks["submit"]).sum())


def test_the_ratio_of_a_set_counts_from_its_own_submission() -> None:
    chain = Workflow([Task(id="a", run=10), Task(id="b", run=5)], [("a", "b")])
    env = Environment()
    machine = Machine(env, load_platform("hetsim-slow"), "hrr")
    machine.submit(chain, at=1000)
    env.run()
    found, first = by_set(machine.result()), by_set(simulate("hetsim-slow", chain, "hrr"))
    assert found["submit"].tolist() == [1000]
    for name in ("slr", "makespan"):
        assert found[name].tolist() == pytest.approx(first[name].tolist(), rel=1e-9)
