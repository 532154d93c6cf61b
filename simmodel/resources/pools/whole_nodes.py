"""Nodes that are counted: alike with one job each, or as the cores of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.pools.allocation import Allocation
from simmodel.resources.pools.placements import placement_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simmodel.platform.cluster import PartitionSpec
    from simmodel.resources.pools.allocation import NodeTable
    from simmodel.resources.pools.placements import Placement
    from simmodel.work.job import LiveJob

__all__ = ["CoresAnywhere", "WholeNodes"]


class WholeNodes:
    """The idle nodes of a pool whose nodes are alike, and the work that does not take whole nodes.

    It is also an index of the pool's queue, by which it knows the waiting jobs.

    Parameters
    ----------
    cores, gpus
        of each node
    exclusive
        whether every job gets whole nodes, with their GPUs
    placement
        of idle nodes; ``None``: by number

    Attributes
    ----------
    always
        whether every job takes whole nodes: they are exclusive, or have one core
    queue_known
        whether the waiting jobs are known
    odd
        number of waiting jobs and of allocations that are not of whole nodes, or must be of certain nodes
    held
        processors of all allocations
    idle
        the idle nodes, ascending; ``None`` if not known

    >>> from simmodel.work import LiveJob
    >>> nodes = WholeNodes(4, 0, exclusive=True)
    >>> job = LiveJob(1, 0, 0.0, 6, 60.0, 60.0, 60.0)
    >>> nodes.width(job)
    8
    >>> nodes.idle = [0, 1, 2]
    >>> nodes.take(job, 8).rows, nodes.idle
    (((0, 4, 0, 0), (1, 4, 0, 0)), [2])
    """

    __slots__ = ("_exclusive", "_gpus", "_odd_jobs", "_place", "always", "cores", "held", "idle", "odd", "queue_known")

    def __init__(self, cores: int, gpus: int, *, exclusive: bool, placement: Placement | None = None) -> None:
        self.cores = cores
        self._gpus = gpus
        self._exclusive = exclusive
        self._place = placement
        self.always = exclusive or cores == 1
        self.queue_known = False
        self.odd = 0
        self._odd_jobs: dict[LiveJob, None] = {}
        self.held = 0
        self.idle: list[int] | None = None

    @classmethod
    def of(cls, partition: PartitionSpec) -> WholeNodes | None:
        """Return those of a partition; ``None`` if its nodes differ, or jobs get whole switches."""
        first = partition.nodes[0]
        each = first.cores, first.gpus, first.memory
        placement = placement_named(partition.placed_by)
        if placement.strict:
            return None
        if any((kind.cores, kind.gpus, kind.memory) != each for kind in partition.nodes):
            return None
        by_number = placement.plain and not any(kind.has_switch for kind in partition.nodes)
        return cls(first.cores, first.gpus, exclusive=partition.exclusive, placement=None if by_number else placement)

    @property
    def by_number(self) -> bool:
        """Whether idle nodes are taken by number."""
        return self._place is None

    def width(self, job: LiveJob) -> int:
        """Return the processors of the whole nodes that a job requests; 0 if it requests parts of nodes."""
        request, cores = job.request, self.cores
        if request is not None and request.nodes is not None:
            whole = self.always or request.cores_per_node == cores
            return request.nodes * cores if whole else 0
        processors = job.processors
        rest = processors % cores
        if not rest:
            return processors
        return processors - rest + cores if self.always else 0

    # ------------------------------------------------------------------ waiting jobs

    def add(self, job: LiveJob) -> None:
        """Set the width of a job that joins the queue."""
        width = self.width(job)
        job.width = width or job.processors
        if not width or (job.past is not None and job.past.resumes):
            self._odd_jobs[job] = None
            self.odd += 1

    def remove(self, job: LiveJob) -> None:
        """Forget a job that leaves the queue."""
        if job in self._odd_jobs:
            del self._odd_jobs[job]
            self.odd -= 1

    # ------------------------------------------------------------------ allocations

    def find_idle(self, table: NodeTable) -> None:
        """Find the idle nodes in the table of the pool."""
        self.idle = (table.free[0] == self.cores).nonzero()[0].tolist()

    def take(self, job: LiveJob, width: int, table: NodeTable | None = None) -> Allocation:
        """Take so many processors for a job, of the idle nodes in the table, of which there are enough."""
        count = width // self.cores
        idle = self.idle
        assert idle is not None
        if self._place is None:
            nodes = tuple(idle[:count])
            del idle[:count]
        else:
            assert table is not None
            nodes = tuple(sorted(self._place.nodes(table, np.array(idle), count)[:count].tolist()))
            self.idle = sorted(set(idle).difference(nodes))
        self.held += width
        request = job.request
        if request is None:
            return Allocation.alike(nodes, self.cores, self._gpus if self._exclusive else 0)
        gpus = self._gpus if self._exclusive else request.gpus_per_node
        return Allocation.alike(nodes, self.cores, gpus, request.memory_per_node)

    def give_back(self, nodes: Iterable[int], width: int) -> None:
        """Give back what :meth:`take` returned."""
        idle = self.idle
        assert idle is not None
        idle.extend(nodes)
        idle.sort()
        self.held -= width

    def count(self, job: LiveJob, allocation: Allocation, sign: int) -> None:
        """Count any allocation of the pool that is taken (1) or given back (-1); idle nodes are no longer known."""
        processors = allocation.processors
        self.held += sign * processors
        self.idle = None
        if not processors == len(allocation.nodes) * self.cores == job.width:
            self.odd += sign


class CoresAnywhere:
    """An index of a queue that knows whether all its jobs are for cores anywhere.

    Such a job starts if enough cores are free, on whichever nodes, whatever other work runs there. So the number of
    free cores and the expected ends decide, as on counted processors, and nodes are chosen when a job starts.

    Attributes
    ----------
    known
        whether the waiting jobs are known

    >>> from simmodel.resources.pools.allocation import Request
    >>> from simmodel.work import LiveJob
    >>> index, job = CoresAnywhere(), LiveJob(1, 0, 0.0, 6, 60.0, 60.0, 60.0)
    >>> index.known = True; index.add(job); index.all_waiting
    True
    >>> job.request = Request(2, nodes=2); index.add(job); index.all_waiting
    False
    """

    __slots__ = ("_others", "known")

    def __init__(self) -> None:
        self.known = False
        self._others: dict[LiveJob, None] = {}

    @property
    def all_waiting(self) -> bool:
        """Whether all waiting jobs are for cores anywhere."""
        return self.known and not self._others

    def asks(self, job: LiveJob) -> bool:
        """Whether a job is for cores anywhere."""
        if job.past is not None and job.past.resumes:
            return False
        return job.request is None or job.request.anywhere

    def add(self, job: LiveJob) -> None:
        """Note a job that joins the queue."""
        if not self.asks(job):
            self._others[job] = None

    def remove(self, job: LiveJob) -> None:
        """Forget a job that leaves the queue."""
        self._others.pop(job, None)
