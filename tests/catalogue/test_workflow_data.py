"""Every workflow of the data loads, or is rejected with a reason, and runs under every machine policy."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from simmodel.catalogue import load_workflow
from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.scheduling.registry import policy_names
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from tests.helpers.data_files import data_file
from tests.helpers.paths import DATA
from tests.oracles.machine import Witness, check

NAMES = list(policy_names("tasks"))
FILES = sorted(
    str(path.relative_to(DATA))
    for pattern in ("dag/*.dot.gz", "dax/*.xml.gz", "wfformat/*.json.gz")
    for path in DATA.glob(pattern)
) or ["dax/Sipht_30.xml.gz"]
NEGATIVE = "dax/Epigenomics_997.xml.gz"


def load(name: str) -> Workflow:
    return load_workflow(data_file(name), repair=True) if name == NEGATIVE else load_workflow(data_file(name))


def server(most: float = inf) -> MachineSpec:
    """Return a machine of cores, a wide processor, GPUs and an FPGA; its pools except the disk hold ``most`` bytes."""
    return MachineSpec(
        pools=[
            MemoryPoolSpec(name="disk"),
            MemoryPoolSpec(name="ram", size=most),
            MemoryPoolSpec(name="hbm", size=min(most, 16e9), spill="ram"),
            MemoryPoolSpec(name="ddr", size=min(most, 8e9)),
        ],
        architectures=[
            ArchitectureSpec(name="x86", speed=5e9),
            ArchitectureSpec(name="gpu", performance=(1, 8), speed=2e10),
            ArchitectureSpec(name="fpga", performance=(1, 4), speed=1e10),
        ],
        processors=[
            ProcessorSpec(name="core", count=4, type="CPUCore", architecture="x86", pool="ram"),
            ProcessorSpec(name="wide", cores=256, type="CPU", architecture="x86", pool="ram"),
            ProcessorSpec(name="gpu", count=2, type="GPU", architecture="gpu", pool="hbm", setup=2),
            ProcessorSpec(name="fpga", type="FPGA", architecture="fpga", pool="ddr", setup=1,
                          reconfiguration=(5, 20), dma=False, model_error=0.2),
        ],
        links=[
            LinkSpec(name="sata", bandwidth="1GBps", latency="1ms", between=("disk", "ram")),
            LinkSpec(name="pcie", bandwidth="12GBps", latency="10us", between=("ram", "hbm")),
            LinkSpec(name="fpga", bandwidth="4GBps", between=("ram", "ddr")),
            LinkSpec(name="peer", bandwidth="8GBps", between=("hbm", "ddr")),
        ],
        home="disk",
    )  # fmt: skip


def run(spec: MachineSpec, work: Workflow | TaskSet, policy: str, **options: bool) -> Machine:
    machine = Machine(Environment(seed=1), spec, policy, **options)
    witness = Witness(machine)
    submission = machine.submit(work)
    machine.env.run(submission)
    machine.env.run()  # transfers still in flight
    check(witness)
    return machine


def test_what_the_data_hold() -> None:
    data_file("dax")
    assert len(FILES) == 34
    assert len(NAMES) >= 14


MARKS = ("_100", "_997", "large", "1000p", "1l-3c-12p", "dss-15d", "50fastq", "airrflow", "medium")
LARGE = [name for name in FILES if any(mark in name for mark in MARKS)]


SMALL = [name for name in FILES if name not in LARGE]


@pytest.mark.few(13)
@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.long) for name in LARGE)])
def test_every_workflow_runs(name: str) -> None:
    runs_under(name, NAMES[:1])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name",
    [
        *SMALL[::8],
        *(pytest.param(name, marks=pytest.mark.long) for at, name in enumerate(SMALL) if at % 8),
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in LARGE),
    ],
)
def test_every_workflow_runs_under_every_policy(name: str) -> None:
    runs_under(name, NAMES)


def runs_under(name: str, policies: Sequence[str]) -> None:
    work = TaskSet.of(load(name))
    for number, policy in enumerate(policies):
        machine = run(server(), work, policy, overlap=number % 2 == 1, contention=number % 3 > 0)
        assert len(machine.tasks) == len(work)
        metrics = machine.result().metrics()
        assert metrics["slr"] >= 1 - 0.2  # the run of a task on the FPGA may be shorter than expected
        assert metrics["makespan"] > 0


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [name for name in FILES if name not in LARGE])
def test_they_run_where_memory_is_short(name: str) -> None:
    runs_in_little_memory(name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in LARGE if "_1000" not in name and "large" not in name])
def test_large_ones_run_where_memory_is_short(name: str) -> None:
    runs_in_little_memory(name)


def runs_in_little_memory(name: str) -> None:
    work = TaskSet.of(load(name))
    inputs, outputs = work.inputs or [], work.outputs or []
    needs = [sum(work.sizes[d] for d in dict.fromkeys((*a, *b))) for a, b in zip(inputs, outputs, strict=True)]
    needs = [need + (work.memory[i] if work.memory else 0.0) for i, need in enumerate(needs)]
    spec = server(1.2 * max(needs, default=1.0) + 1.0)
    for policy in ("hrr", "earliest-finish", "heft")[: 3 if len(work) < 700 else 1]:
        machine = run(spec, work, policy, overlap=policy != "hrr")
        for pool in machine.pools.values():
            assert pool.peak <= pool.size * (1 + 1e-9)


def test_negative_sizes_are_refused_with_their_line() -> None:
    path = data_file(NEGATIVE)
    with pytest.raises(InputError) as caught:
        load_workflow(path)
    says = str(caught.value)
    assert says.startswith(f"{path}, line 30: size of file 'chr21.0.21.sfq': must be >= 0, got -6585019")
    assert "113 more files" in says
    assert "repair=True" in says
    assert load_workflow(path, repair=True).report.repaired


def test_files_of_other_kinds_are_refused_in_one_sentence() -> None:
    for path in sorted(Path(data_file("dag")).glob("*.yaml.gz")):
        with pytest.raises(InputError, match="a workflow in one of the formats"):
            load_workflow(path)
