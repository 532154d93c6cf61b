"""A GPU with several streams: kernels run together, as long as one alone does not fill the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from simmodel.resources.models import Option
from simmodel.resources.processors.serving import SharedProcessor
from simmodel.work.taskset import LiveTask

__all__ = ["MultiStreamGPU"]


class MultiStreamGPU(SharedProcessor):
    """A GPU that runs a kernel in each of its streams, which are its ``cores``; kernels share it equally.

    A kernel alone runs at full speed but fills only the part ``share`` of the GPU: up to 1 / share kernels run together
    without slowing each other down. Its option is

    - ``share``: the part of the GPU that one kernel can use, above 0 and at most 1; default 1

    >>> from simmodel import Task, Workflow, simulate
    >>> from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="hbm")], architectures=[ArchitectureSpec(name="gpu")],
    ...     processors=[ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="hbm", cores=4,
    ...                               model=MultiStreamGPU, options={"share": 0.5})])
    >>> simulate(spec, Workflow([Task(id=i, run=10) for i in range(4)]), "hrr").tasks["end"].tolist()
    [20.0, 20.0, 20.0, 20.0]
    """

    takes: ClassVar = {"share": Option(1.0, above=0, most=1)}

    def rates(self, running: Sequence[LiveTask]) -> Sequence[float]:
        """Return the rate of each kernel: 1 while all of them fit, else equal shares."""
        return [min(1.0, 1.0 / (self.options["share"] * len(running)))] * len(running)
