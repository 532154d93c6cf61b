"""Ready memory pools: a page cache, and pinned data such as the weights of a model.

Data leave a page cache page by page, and only the pages that left are read again.
"""

from __future__ import annotations

from math import ceil
from typing import ClassVar

from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.models import Option
from simmodel.work.taskset import LiveData

__all__ = ["PageCache", "PinnedPool"]


class PageCache(MemoryPool):
    """A memory whose data are dropped page by page; the pages that are still there need not move again.

    Data that nobody uses give way in the order of the rule ``evict``, those in part here before all others, each from
    its first page on; those in use stay. Data of which the last copy is here are written back whole before they leave.
    Its option is

    - ``page``: bytes of a page; default 4096. The last page of an object has only its own bytes

    >>> from simmodel import Task, TaskSet, simulate
    >>> from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="disk"),
    ...            MemoryPoolSpec(name="cache", size=100, model=PageCache, options={"page": 10})],
    ...     architectures=[ArchitectureSpec(name="any")], home="disk",
    ...     processors=[ProcessorSpec(name="core", type="CPU", architecture="any", pool="cache")],
    ...     links=[LinkSpec(name="bus", bandwidth=1, between=("disk", "cache"))])
    >>> reads = TaskSet([1.0] * 3, inputs=[(0,), (1,), (0,)], sizes=[80.0, 35.0])  # the second drops two of 8 pages
    >>> simulate(spec, reads, "hrr").transfers["bytes"].tolist()
    [80.0, 35.0, 20.0]
    """

    takes: ClassVar = {"page": Option(4096.0, unit="B", above=0)}

    def remains(self, here: float, lacking: float) -> float:
        """Return the bytes that stay: all pages but as many of the first as are needed."""
        page = float(self.options["page"])
        return max(0.0, here - ceil(lacking / page) * page)


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
