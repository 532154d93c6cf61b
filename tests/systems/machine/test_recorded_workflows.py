"""Recorded workflows: on the machines that they were recorded on, and on machines with accelerators."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from simmodel import Task, Workflow, load_platform, load_workflow, simulate
from simmodel.formats.wfformat import write_wfformat
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.runs.scenario import Scenario
from simmodel.work.task import RecordedMachine
from tests.helpers.data_files import data_file


def recorded() -> Workflow:
    """Two tasks of 40 and 20 s and one of 5 s that joins them, recorded on two nodes within 52 s."""
    tasks = [
        Task(id="a", run=40, family="fold", cores=2, machines=["one"], started=0, ended=40),
        Task(id="b", run=20, family="scan", machines=["two"], started=3, ended=23),
        Task(id="c", run=5, family="join", machines=["two"], started=45, ended=50),
    ]
    machines = [RecordedMachine(name="one"), RecordedMachine(name="two", cores=1)]
    edges = [("a", "c", 8e9), ("b", "c")]
    return Workflow(tasks, edges, name="fork", machines=machines, makespan=52.0, cpu_only=True)


def test_a_workflow_runs_on_the_machines_that_it_was_recorded_on(tmp_path: Path) -> None:
    result = simulate(None, recorded(), "earliest-finish")
    assert [(each.name, each.cores, each.type) for each in result.spec.processors] == [
        ("one", 2, "CPU"),
        ("two", 1, "CPU"),
    ]
    assert result.tasks["end"].tolist() == [40.0, 20.0, 45.0]
    assert "makespan of fork: 45 s, recorded 52 s" in result.report.notes
    assert result.against_recorded()["difference"].tolist() == [0.0, -3.0, -5.0]
    write_wfformat(recorded(), tmp_path / "fork.json")
    again = simulate(None, tmp_path / "fork.json", "earliest-finish")
    assert again.tasks["end"].tolist() == [40.0, 20.0, 45.0]
    assert Scenario.from_document(again.scenario).run().tasks["end"].tolist() == [40.0, 20.0, 45.0]


def test_a_workflow_without_recorded_machines_needs_a_machine() -> None:
    with pytest.raises(InputError, match="flow records no machines: pass a machine"):
        simulate(None, Workflow([Task(id=1, run=2)], name="flow"))


def test_a_real_workflow_on_its_machines() -> None:
    flow = load_workflow(data_file("wfformat/seismology-chameleon-1000p-001.json.gz"))
    result = simulate(None, flow, "earliest-finish")
    assert len(result.spec.processors) == len(flow.machines)
    assert any(note.endswith("recorded 2,194 s") for note in result.report.notes)


def server() -> MachineSpec:
    """Two cores, and a GPU that is 100 times as fast."""
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="gpu", performance=100)],
        processors=[
            ProcessorSpec(name="cpu", cores=2, type="CPU", architecture="x86", pool="ram"),
            ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="ram"),
        ],
    )


def test_recorded_tasks_that_say_nothing_about_accelerators_run_on_cpus() -> None:
    flow = recorded()
    result = simulate(server(), flow, "greedy-et")
    assert set(result.tasks["processor"].tolist()) == {"cpu"}
    assert result.report.notes[0] == (
        "3 of 3 tasks of fork say nothing about accelerators: none of them may run on GPU "
        "(Workflow.offloaded sends families or names there)"
    )
    # A stored scenario has the rule in its columns.
    assert Scenario.from_document(result.scenario).run().tasks["processor"].tolist() == ["cpu"] * 3
    # Tasks made in Python say where they run: everywhere, unless they name implementations.
    free = Workflow([Task(id=1, run=100)])
    assert simulate(server(), free, "greedy-et").tasks["end"].tolist() == [1.0]
    gpu = attrs.evolve(server(), processors=server().processors[1:])
    with pytest.raises(ImpossibleWork, match="no processor of type CPUCore or CPU; known types: GPU"):
        simulate(gpu, flow)


def test_a_map_sends_families_to_accelerators_with_a_speed_up() -> None:
    flow = recorded().offloaded({"scan": ("GPU", 8), "join": (["GPU", "FPGA"], 5.0)})
    assert flow["b"].implementations == ("CPUCore", "CPU", "GPU")
    assert flow["c"].implementations == ("CPUCore", "CPU", "GPU", "FPGA")
    result = simulate(server(), flow, "greedy-et")
    assert result.tasks["processor"].tolist() == ["cpu", "gpu", "gpu"]
    assert result.tasks["end"].tolist() == [40.0, 2.5, 41.0]  # 20 s / 8, and 5 s / 5 after 40 s; not a hundredth
    assert result.report.notes[0].startswith("1 of 3 tasks of fork say nothing")
    with pytest.raises(InputError, match="unknown family or name of tasks 'scam'; did you mean 'scan'"):
        recorded().offloaded({"scam": ("GPU", 8)})
    with pytest.raises(InputError, match=r"where\['scan'\]: must be a speed-up > 0, got 0"):
        recorded().offloaded({"scan": ("GPU", 0)})


def test_a_real_workflow_keeps_to_the_cores_of_a_server_with_gpus() -> None:
    flow = load_workflow(data_file("wfformat/soykb-chameleon-50fastq-20ch-001.json.gz"))
    spec = load_platform("a100x4")
    table = simulate(spec, flow, "earliest-finish").load()
    assert table["tasks"][table["type"] == "GPU"].sum() == 0
    assert table["tasks"].sum() == len(flow)
