"""The check of custom memory pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.testing.machines import Arrivals, check_machine
from simmodel.work.task import DataObject, Task
from simmodel.work.workflow import Workflow

__all__ = ["check_pool"]


def check_pool(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of memory pools on machines with ample and with scarce memory (see :func:`check_machine`).

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    for size in (1000.0, 64.0, 40.0):
        spec = MachineSpec(
            pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="own", size=size, model=model, options=options)],
            architectures=[ArchitectureSpec(name="x")],
            processors=[
                ProcessorSpec(name="cpu", type="CPU", architecture="x", pool="ram"),
                ProcessorSpec(name="gpu", count=2, type="GPU", architecture="x", pool="own"),
            ],
            links=[LinkSpec(name="bus", bandwidth=20, between=("ram", "own"))],
        )
        check_machine(spec, _work(), model)


def _work() -> Arrivals:
    """Return tasks that read common data and write data of their own, some of which others read, in two groups."""
    groups: list[tuple[float, Workflow]] = []
    for group, at in enumerate((0.0, 9.5)):
        letter = "ab"[group]
        data = [DataObject(f"{letter}-in{d}", 4.0 + 3 * d) for d in range(5)]
        data += [DataObject(f"{letter}-out{i}", 2.0 + i % 4) for i in range(12)]
        tasks = [
            Task(
                id=f"{letter}{i}",
                run=1.0 + (i * i) % 5 + i / 64,
                implementations=("GPU",) if i % 5 else ("CPU",),
                inputs=[f"{letter}-in{i * 3 % 5}", f"{letter}-in{i * 2 % 5}"][: 1 + (i * 3 % 5 != i * 2 % 5)]
                + ([f"{letter}-out{i - 5}"] if i >= 5 else []),
                outputs=[f"{letter}-out{i}"],
                memory=2.0 * (i % 3),
            )
            for i in range(12)
        ]
        groups.append((at, Workflow(tasks, files=data)))
    return groups
