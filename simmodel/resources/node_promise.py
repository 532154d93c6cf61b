"""What jobs may take of identified nodes without delaying the promised start of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.node_ends import shape_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.allocation import Allocation, Request
    from simmodel.resources.node_ends import Amounts, Mask, Numbers
    from simmodel.resources.node_states import NodeStates
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
    before
        an earlier promise: if it was to the same job, its instant is likely to hold

    Attributes
    ----------
    at
        the promised instant (s); infinite if the expected ends never free enough nodes
    extra
        number of nodes to spare at that instant
    """

    __slots__ = ("_found", "_rest", "_spared", "_states", "at", "extra", "job")

    def __init__(self, states: NodeStates, job: LiveJob, now: float, before: NodePromise | None = None) -> None:
        self._states = states
        self.job = job
        request: Request = job.request
        assert request.nodes is not None
        shape = shape_of(request)
        hint = before.at if before is not None and before.job is job else 0.0
        self.at: float
        self.at, nodes = states.ends.earliest(shape, request.nodes, now, hint)
        self.extra = 0
        self._spared: Mask | None = None  # the nodes that no job hurts; or what is left of each beside the promise
        self._rest: Amounts | None = None
        if self.at < INFINITY:
            self.extra = int(np.count_nonzero(nodes)) - request.nodes
            if states.ends.alone(shape):
                self._spared = ~nodes
            else:
                self._rest = states.ends.rest(shape, self.at, nodes)

    def possible(self, rows: Numbers, now: float) -> Numbers:
        """Return those of some rows of jobs that do not delay the promise, each by itself, if they fit."""
        if self.at == INFINITY:
            return rows
        states = self._states
        free = states.table.free
        may = states.requested[rows] <= self.at - now
        late = (~may).nonzero()[0]
        if not len(late):
            return rows
        past = rows[late]
        usable = free[0] > 0
        if states.exclusive:
            usable &= free[0] == states.table.capacity[0]
        if self._spared is not None:
            usable &= self._spared
        nodes = usable.nonzero()[0]
        room = free.take(nodes, axis=1)
        if self._rest is not None:
            np.minimum(room, self._rest.take(nodes, axis=1), out=room)
        wanted, shapes = states.asked(past)
        cores, gpus, memory = shapes[:, :, None]
        met = room[0] >= cores
        met &= room[1] >= gpus
        met &= room[2] >= memory
        may[late] = np.add.reduce(met, axis=1) >= wanted - self.extra
        self._found = past, nodes, met
        return rows[may]

    def unhurt(self, row: int) -> Numbers:
        """Return the nodes that the job of a row does not hurt, which was found possible last and runs past then."""
        rows, nodes, met = self._found
        found: Numbers = nodes[met[int((rows == row).argmax())]]
        return found

    def take(self, allocation: Allocation) -> None:
        """Note that a job takes these parts of nodes and runs past the promised instant."""
        nodes = allocation.nodes
        if self._spared is not None:
            self.extra -= len(nodes) - int(np.count_nonzero(self._spared[nodes]))
            self._spared[nodes] = True  # no longer promised
        elif self._rest is not None:
            left: NDArray[np.float64] = self._rest[:, nodes] - allocation.amounts
            hurt = (left < 0).any(axis=0)
            left[:, hurt] = INFINITY
            self.extra -= int(np.count_nonzero(hurt))
            self._rest[:, nodes] = left
