"""EASY on identified nodes by brute force: every choice of nodes is tried for jobs that run past the promised instant.

A kind of node, what is free of it, and a shape are (cores, GPUs, memory). Work past its expected end is expected to end
now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

__all__ = ["Machine", "NodeJob", "easy"]

Amounts = tuple[float, ...]


@dataclass(frozen=True)
class NodeJob:
    """A job for ``nodes`` nodes of a shape; times in seconds."""

    submit: float
    run: float
    requested: float
    nodes: int
    shape: Amounts


@dataclass
class Machine:
    """Nodes: the capacity of each, and the parts (expected end, row of the job, amounts) that run on it."""

    capacity: Sequence[Amounts]
    exclusive: bool = False
    placement: str = "first-fit"
    parts: list[list[tuple[float, int, Amounts]]] = field(default_factory=list)
    speeds: Sequence[float] = ()  # of the nodes; none: 1

    def __post_init__(self) -> None:
        self.parts = [[] for _ in self.capacity]

    def free(self, node: int, after: float = -math.inf) -> Amounts:
        """Return what is free of a node once the parts that are expected to end by an instant have ended."""
        left = self.capacity[node]
        for end, _, held in self.parts[node]:
            if end > after:
                left = tuple(have - take for have, take in zip(left, held, strict=True))
        return left

    def meets(self, node: int, shape: Amounts, after: float = -math.inf) -> bool:
        """Whether a node satisfies a shape now, or at an instant."""
        if self.exclusive and any(end > after for end, _, _ in self.parts[node]):
            return False
        return all(have >= take for have, take in zip(self.free(node, after), shape, strict=True))

    def there(self, shape: Amounts, after: float = -math.inf) -> list[int]:
        """Return the nodes that satisfy a shape now, or at an instant."""
        return [node for node in range(len(self.capacity)) if self.meets(node, shape, after)]

    def rank(self, node: int) -> tuple[float, ...]:
        """Return the rank of a node in the order of the placement."""
        cores, gpus, _ = self.free(node)
        if self.placement == "best-fit":
            return cores, gpus, node
        if self.placement == "spread":
            return -cores, -gpus, node
        if self.placement == "packed":
            return cores == self.capacity[node][0], node
        return (node,)

    def seconds(self, time: float, nodes: Sequence[int]) -> float:
        """Return the seconds that a time at speed 1 takes on some nodes."""
        return time / min(self.speeds[node] for node in nodes) if self.speeds else time

    def promise(self, job: NodeJob, now: float) -> float:
        """Return the earliest instant at which there are enough nodes for a job that does not fit now."""
        for at in sorted({max(end, now) for parts in self.parts for end, _, _ in parts}):
            if len(self.there(job.shape, at)) >= job.nodes:
                return at
        return math.inf

    def put(self, row: int, job: NodeJob, nodes: Sequence[int], end: float) -> None:
        """Put a job on nodes."""
        for node in nodes:
            held = (*self.capacity[node][:2], job.shape[2]) if self.exclusive else job.shape
            self.parts[node].append((end, row, held))

    def remove(self, row: int) -> None:
        """Remove a job."""
        self.parts = [[part for part in parts if part[1] != row] for parts in self.parts]

    def choice(self, row: int, job: NodeJob, now: float, head: NodeJob, at: float) -> list[int] | None:
        """Return the nodes of a job that runs past the promise: the fewest that hurt it, then by placement."""

        def promised(nodes: Sequence[int]) -> list[int]:
            self.put(row, job, nodes, math.inf)
            left = self.there(head.shape, at)
            self.remove(row)
            return left

        before = promised([])
        there = self.there(job.shape)
        hurt = {node for node in there if node in before and node not in promised([node])}
        allowed = [chosen for chosen in combinations(there, job.nodes) if len(promised(chosen)) >= head.nodes]
        if not allowed:
            return None
        best = min(allowed, key=lambda chosen: sorted((node in hurt, self.rank(node)) for node in chosen))
        assert len(hurt.intersection(best)) == min(len(hurt.intersection(chosen)) for chosen in allowed)
        return sorted(best)


def easy(
    jobs: Sequence[NodeJob],
    machine: Machine,
    order: Callable[[NodeJob], float] = lambda job: 0,
    candidates: Callable[[NodeJob], float] | None = None,
    overrun: str = "stop",
) -> list[tuple[float, list[int]]]:
    """Return the start and the nodes of each job under EASY; jobs are in order of submission and run for some time.

    The smallest keys go first in the queue and among the candidates; ties by submission.
    """
    starts: dict[int, tuple[float, list[int]]] = {}
    ends: dict[int, float] = {}
    waiting: list[int] = []
    coming = list(range(len(jobs)))
    while coming or ends:
        now = min([jobs[row].submit for row in coming[:1]] + list(ends.values()))
        for row in [row for row, end in ends.items() if end == now]:
            machine.remove(row)
            del ends[row]
        while coming and jobs[coming[0]].submit == now:
            waiting.append(coming.pop(0))

        def start(row: int, nodes: list[int], now: float = now) -> None:
            job = jobs[row]
            machine.put(row, job, nodes, now + machine.seconds(job.requested, nodes))
            starts[row] = now, nodes
            length = min(job.run, job.requested) if overrun == "stop" else job.run
            ends[row] = now + machine.seconds(length, nodes)
            waiting.remove(row)

        def placed(job: NodeJob) -> list[int] | None:
            there = sorted(machine.there(job.shape), key=machine.rank)
            return sorted(there[: job.nodes]) if len(there) >= job.nodes else None

        queue = sorted(waiting, key=lambda row: order(jobs[row]))
        while queue and (nodes := placed(jobs[queue[0]])) is not None:
            start(queue.pop(0), nodes)
        if not queue:
            continue
        head = jobs[queue[0]]
        at = machine.promise(head, now)
        for row in sorted(queue[1:], key=lambda row: (candidates or order)(jobs[row])):
            job = jobs[row]
            if placed(job) is None:
                continue
            past = job.requested > at - now
            found = machine.choice(row, job, now, head, at) if past else placed(job)
            if found is not None:
                start(row, found)
                machine.remove(row)
                machine.put(row, job, found, now + job.requested)  # as planned, until the decision is made
                assert not past or len(machine.there(head.shape, at)) >= head.nodes
        for row in [row for row in ends if starts[row][0] == now]:
            machine.remove(row)
            nodes = starts[row][1]
            machine.put(row, jobs[row], nodes, now + machine.seconds(jobs[row].requested, nodes))
    return [starts[row] for row in range(len(jobs))]
