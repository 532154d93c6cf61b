"""A small run of a machine, by hand, for the examples of this folder."""

from __future__ import annotations

import numpy as np

from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.records.task_record import TaskRecord
from simmodel.work.taskset import TaskSet

__all__ = ["two_kinds"]


def two_kinds() -> TaskRecord:
    """Return a run of two tasks: ``a`` on a CPU core from 0 to 3; ``b`` reads its 10 bytes on a GPU.

    The core sets the GPU up from 3 to 4, the data move until 5, and ``b`` runs until 7.

    >>> two_kinds()
    <TaskRecord example: 2 tasks on 2 processors>
    """
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="hbm", size=16.0)],
        architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="gpu", performance=(1, 4))],
        processors=[
            ProcessorSpec(name="cpu", type="CPUCore", architecture="x86", pool="ram", idle_power=1, load_power=11),
            ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="hbm", setup=1, idle_power=2, load_power=22),
        ],
        links=[LinkSpec(name="bus", bandwidth=10.0, between=("ram", "hbm"))],
    )
    work = TaskSet([3.0, 4.0], ids=["a", "b"], inputs=[(), (0,)], outputs=[(0,), ()], sizes=[10.0], name="pair")
    return TaskRecord(
        spec=spec,
        name="example",
        tasks={
            "task": ["a", "b"],
            "processor": ["cpu", "gpu"],
            "submit": [0, 0],
            "ready": [0, 3],
            "taken": [0, 3],
            "setup_start": [0, 3],
            "setup_end": [0, 4],
            "reconfiguration_end": [0, 4],
            "transfer_start": [0, 4],
            "transfer_end": [0, 5],
            "start": [0, 5],
            "end": [3, 7],
            "setup_core": ["", "cpu"],
            "run_best": [2, 2],
            "pool": ["ram", "hbm"],
        },
        sets=[work],
        speeds=np.array([[3.0, 2.0], [4.0, 2.0]]),
        transfers={
            "object": ["d0"],
            "bytes": [10.0],
            "source": ["ram"],
            "destination": ["hbm"],
            "start": [4.0],
            "end": [5.0],
            "task": ["b"],
            "cause": ["input"],
            "count": [1],
        },
        cpu_phases={"core": ["cpu"], "task": ["b"], "what": ["setup"], "start": [3.0], "end": [4.0]},
        memory={"ram": ([0.0, 3.0], [0.0, 10.0]), "hbm": ([0.0, 4.0, 7.0], [0.0, 10.0, 0.0])},
        peaks={"ram": 10.0, "hbm": 10.0},
        decisions={"count": 2, "seconds": 2e-6, "mean": 1e-6, "min": 1e-6, "max": 1e-6},
    )
