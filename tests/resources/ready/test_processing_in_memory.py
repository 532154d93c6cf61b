"""A custom processor: a rank of memory whose data are scattered first."""

from __future__ import annotations

from typing import Any

import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.platform.toml import read_toml
from simmodel.resources.models import model_named
from simmodel.resources.processors.processor import Processor
from simmodel.resources.ready.processors import PIMRank
from simmodel.scheduling.protocol import Start
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet


def rank_machine(policy: Any, size: float = 100.0, **options: Any) -> Machine:
    """Return a machine of one core and a rank, with 1 byte/s between them and 2 bytes/s to scatter."""
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name="host"), MemoryPoolSpec(name="mram", size=size)],
        architectures=[ArchitectureSpec(name="any")],
        processors=[
            ProcessorSpec(name="core", type="CPUCore", architecture="any", pool="host"),
            ProcessorSpec(name="rank", type="PIM", architecture="any", pool="mram", dma=False,
                          model="simmodel.resources.ready.processors:PIMRank", options=options or {"scatter": 2.0}),
        ],
        links=[LinkSpec(name="bus", bandwidth=1.0, between=("host", "mram"))],
    )  # fmt: skip
    return Machine(Environment(), spec, policy)


def to(*names: str) -> Any:
    """Return a policy that starts the tasks on these processors."""

    def policy(view: Any) -> Any:
        places = {place.name: place for place in view.places}
        for task in view.waiting:
            yield Start(task, places[names[task.row]])

    return policy


def run(machine: Machine, tasks: TaskSet) -> Any:
    machine.env.run(machine.submit(tasks))
    return machine.result()


def test_a_core_scatters_and_is_held_meanwhile() -> None:
    # The core moves the rank's data 0-4, runs its own waiting task 4-7, and scatters the data 7-9.
    machine = rank_machine(to("rank", "core"))
    assert isinstance(machine.processors["rank"], PIMRank)
    result = run(machine, TaskSet([10.0, 3.0], inputs=[(0,), ()], outputs=[(), ()], sizes=[4.0], submit=[0, 1]))
    assert result.tasks["end"].tolist() == [19.0, 7.0]
    assert result.cpu_phases["what"].tolist() == ["transfer", "transfer"]
    held = list(zip(result.cpu_phases["start"].tolist(), result.cpu_phases["end"].tolist(), strict=True))
    assert held == [(0.0, 4.0), (7.0, 9.0)]


def test_data_are_scattered_once_and_again_when_they_come_again() -> None:
    # t1 finds its data scattered. t2 needs the room, so they are evicted; for t3 they are moved and scattered again.
    machine = rank_machine(to(*["rank"] * 4), size=8.0)
    tasks = TaskSet(
        [1.0] * 4,
        inputs=[(0,), (0,), (), (0,)],
        outputs=[()] * 4,
        sizes=[4.0],
        memory=[0, 0, 8.0, 0],
        parents=[(), (0,), (1,), (2,)],
    )
    result = run(machine, tasks)
    took = (result.tasks["transfer_end"] - result.tasks["transfer_start"]).tolist()
    assert took == [6.0, 0.0, 0.0, 6.0]


def test_what_a_rank_writes_need_not_be_scattered() -> None:
    machine = rank_machine(to("rank", "rank"))
    tasks = TaskSet([1.0, 1.0], inputs=[(), (0,)], outputs=[(0,), ()], sizes=[4.0])
    assert run(machine, tasks).tasks["end"].tolist() == [1.0, 2.0]


def test_start_counts_for_each_object() -> None:
    machine = rank_machine(to("rank"), scatter="2B/s", start="0.5s")
    tasks = TaskSet([1.0], inputs=[(0, 1)], outputs=[()], sizes=[4.0, 2.0])
    assert run(machine, tasks).tasks["start"].tolist() == [6.0 + 3.0 + 1.0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": 1}, "options of processor rank: missing scatter (bytes/s)"),
        ({"scatter": 0.0}, "options of processor rank: scatter: must be > 0, got 0.0"),
        (
            {"scatter": 1, "gather": 2},
            "options of processor rank: unknown option 'gather'; did you mean 'scatter'?",
        ),
        ({"scatter": "fast"}, "options of processor rank: scatter"),
    ],
)
def test_wrong_options_are_said(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        rank_machine(to("rank"), **options)
    assert str(caught.value).startswith(says)


class Slow(Processor):
    """A custom processor that takes twice the time."""

    def execute(self, task: Any, seconds: float) -> Any:
        """Run a task."""
        yield self.env.timeout(2 * seconds)


def test_a_platform_file_names_the_class(tmp_path: Any) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(
        f"""kind = "machine"
[[pools]]
name = "ram"
[[architectures]]
name = "any"
[[processors]]
name = "core"
type = "CPUCore"
architecture = "any"
pool = "ram"
model = "{__name__}:Slow"
"""
    )
    machine = Machine(Environment(), read_toml(path, trust=True), to("core"))
    assert run(machine, TaskSet([3.0])).tasks["end"].tolist() == [6.0]


@pytest.mark.parametrize(
    "model", ["nowhere:Nothing", "simmodel.resources.ready.processors:Nothing", "json:dumps", "no-such-name"]
)
def test_a_class_that_is_not_there_is_said(model: str) -> None:
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="any")],
        processors=[ProcessorSpec(name="core", type="CPUCore", architecture="any", pool="ram", model=model)],
    )
    with pytest.raises(InputError, match="model of processor core"):
        Machine(Environment(), spec, to("core"))


def test_it_is_found_by_name() -> None:
    assert model_named("pim", Processor, "") is PIMRank
