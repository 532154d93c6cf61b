"""Small machines for tests: CPU core ``cpu0`` on pool ``n0``, and accelerators with their own pools."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from simmodel import Environment, Task, Workflow
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.results.machine import MachineResult
from simmodel.scheduling.protocol import Start
from simmodel.systems.machine.system import Machine

MB = 1e6

WIDE_FLOW = Workflow(
    [Task(id=i, run=10.0 + i, family="xyz"[i % 3]) for i in range(12)],
    [
        (0, 3, 40 * MB),
        (1, 4, 25 * MB),
        (2, 5, 90 * MB),
        (3, 6, 10 * MB),
        (4, 7, 80 * MB),
        (5, 8),
        (6, 9),
        (0, 9, 5 * MB),
    ],
)
"""A workflow of three layers and three families."""


def small_machine(
    *accelerators: dict[str, Any], sizes: Mapping[str, float] | None = None, cores: int = 1, **core: Any
) -> MachineSpec:
    """Return a machine; accelerators are fields of ProcessorSpec, linked to n0 at 25 MB per time unit."""
    sizes = sizes or {}
    spills = core.pop("spills", {})
    pools = dict.fromkeys(["n0", *(each.get("pool", each["name"]) for each in accelerators)])
    names = ["cpu0"] if cores == 1 else [f"cpu{i}" for i in range(cores)]
    return MachineSpec(
        pools=[MemoryPoolSpec(name=name, size=sizes.get(name, inf), spill=spills.get(name)) for name in pools],
        architectures=[ArchitectureSpec(name="x")],
        processors=[
            *(ProcessorSpec(name=name, type="CPUCore", architecture="x", pool="n0", **core) for name in names),
            *(
                ProcessorSpec(**{"type": "GPU", "architecture": "x", "pool": each["name"], **each})
                for each in accelerators
            ),
        ],
        links=[LinkSpec(name=f"n0-{name}", bandwidth=25 * MB, between=("n0", name)) for name in pools if name != "n0"],
    )


class Placed:
    """Starts each task at once on the processor given by a mapping."""

    def __init__(self, where: Mapping[Any, str]) -> None:
        self.where = where

    def decide(self, view: Any) -> Any:
        places = {place.name: place for place in view.places}
        for task in view.waiting:
            yield Start(task, places[self.where[task.id]])


def run(spec: MachineSpec, work: Any, where: Mapping[Any, str], *, seed: int = 0, **options: Any) -> MachineResult:
    """Run work with each task on the processor given by the mapping."""
    env = Environment(seed=seed)
    machine = Machine(env, spec, Placed(where), **options)
    env.run(machine.submit(work))
    return machine.result()


def row(result: MachineResult, task: Any, *columns: str) -> tuple[float, ...]:
    """Return the values of one task in some columns."""
    i = result.tasks["task"].tolist().index(task)
    return tuple(result.tasks[column][i].item() for column in columns)


def two_tasks() -> Machine:
    """Return a machine with a task on the core and one that follows on an accelerator."""
    machine = Machine(Environment(seed=0), small_machine({"name": "gpu0", "setup": 100}), "hrr")
    machine.submit(Workflow([Task(id="p", run=10), Task(id="c", run=50)], [("p", "c", 50 * MB)]))
    return machine
