"""A memory with pinned data, such as the weights of a model."""

from __future__ import annotations

from typing import ClassVar

from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.models import Option
from simmodel.work.taskset import LiveData

__all__ = ["PinnedPool"]


class PinnedPool(MemoryPool):
    """A memory in which named data stay once they have come, until no task is left that reads them.

    Its option is

    - ``pinned``: the names of these data

    >>> from simmodel import Task, TaskSet, simulate
    >>> from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="ram"),
    ...            MemoryPoolSpec(name="hbm", size=100, model=PinnedPool, options={"pinned": ["weights"]})],
    ...     architectures=[ArchitectureSpec(name="any")], home="ram",
    ...     processors=[ProcessorSpec(name="gpu", type="GPU", architecture="any", pool="hbm")],
    ...     links=[LinkSpec(name="bus", bandwidth=10, between=("ram", "hbm"))])
    >>> reads = TaskSet([1.0] * 4, inputs=[(0,), (1,), (2,), (0,)], sizes=[60.0, 30.0, 40.0],
    ...                 names=["weights", "a", "b"])
    >>> simulate(spec, reads, "hrr").transfers["object"].tolist()  # the weights come once
    ['weights', 'a', 'b']
    """

    takes: ClassVar = {"pinned": Option(())}

    def may_evict(self, data: LiveData) -> bool:
        """Return whether data are not pinned, or not read any more."""
        return data.name not in self.options["pinned"] or not data.readers
