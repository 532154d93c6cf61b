"""What a job may take of identified nodes without delaying the promised start of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.allocation import Allocation, Request
    from simmodel.resources.node_states import NodeStates, Rows
    from simmodel.work.job import LiveJob

__all__ = ["NodePromise"]

INFINITY = float("inf")


class NodePromise:
    """The earliest instant at which a job can have its nodes, and the room beside it for jobs that run past then.

    A node is hurt by a job if it would satisfy the promise at that instant, and does not with the job on it. As many
    nodes may be hurt as there are to spare.

    Parameters
    ----------
    states
        the nodes
    job
        the promised job, which does not fit now
    now
        seconds

    Attributes
    ----------
    at
        the promised instant (s); infinite if the expected ends never free enough nodes
    extra
        number of nodes to spare at that instant
    """

    __slots__ = ("_rest", "_states", "at", "extra", "job")

    def __init__(self, states: NodeStates, job: LiveJob, now: float) -> None:
        self._states = states
        self.job = job
        request: Request = job.request
        assert request.nodes is not None
        shape = shape_of(request)
        self.at, nodes = states.ends(shape, request.nodes, now)
        self.extra = 0
        if self.at < INFINITY:
            self.extra = int(np.count_nonzero(nodes)) - request.nodes
            self._rest = states.rest(shape, self.at, nodes)

    def possible(self, rows: Rows, now: float) -> Rows:
        """Return those of some rows of jobs that fit now that may start, each by itself."""
        if self.at == INFINITY:
            return rows
        states = self._states
        late = states.requested[rows] > self.at - now
        past = rows[late]
        if not len(past):
            return rows
        table = states.table
        free = table.free
        if states.exclusive:
            free = np.where(free[0] == table.capacity[0], free, -1.0)
        nodes, shapes = states.asked(past)
        cores, gpus, memory = shapes[:, :, None]
        room = np.minimum(free, self._rest)
        room = room[:, room[0] >= shapes[0].min()]
        met = room[0] >= cores
        met &= room[1] >= gpus
        met &= room[2] >= memory
        return np.concatenate([rows[~late], past[met.sum(axis=1) + self.extra >= nodes]])

    def unhurt(self, request: Request) -> NDArray[np.bool_] | None:
        """Return the nodes that satisfy a request now and are not hurt; ``None`` if it would delay the promise."""
        shape = shape_of(request)
        mask = self._states.satisfying(shape)
        for amount, rest in zip(shape, self._rest, strict=True):
            mask &= rest >= amount
        assert request.nodes is not None
        return mask if int(np.count_nonzero(mask)) + self.extra >= request.nodes else None

    def take(self, allocation: Allocation) -> None:
        """Note that a job takes these parts of nodes and runs past the promised instant."""
        nodes = allocation.nodes
        left = self._rest[:, nodes] - (0.0 if self._states.exclusive else allocation.amounts)
        hurt = (left < 0).any(axis=0)
        left[:, hurt] = INFINITY  # no longer promised
        self.extra -= int(np.count_nonzero(hurt))
        self._rest[:, nodes] = left


def shape_of(request: Request) -> tuple[float, float, float]:
    """Return the cores, GPUs and bytes of memory that a request is for on each node."""
    return request.cores_per_node, request.gpus_per_node, request.memory_per_node
