"""Conservative backfilling on identified nodes by plain tables: all jobs are planned anew at each instant.

Each job, in order of arrival, is planned at the earliest instant from which enough nodes have room for its whole
requested time beside the running jobs and those planned before it, on the nodes of lowest number. Jobs planned for now
start. Running jobs are expected to end when their requested time is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["NodeJob", "simulate"]

Part = tuple[float, float, tuple[int, ...], "NodeJob"]  # from, until, nodes, job


@dataclass(eq=False)
class NodeJob:
    """A job: its submission, run and requested times (s), and its nodes with the cores, GPUs and bytes of each."""

    submit: float
    run: float
    requested: float
    nodes: int
    cores: int
    gpus: int = 0
    memory: float = 0

    @property
    def needs(self) -> tuple[float, float, float]:
        """Return what is asked of each node."""
        return self.cores, self.gpus, self.memory


def _has_room(
    capacity: tuple[float, float, float], node: int, job: NodeJob, at: float, parts: list[Part], exclusive: bool
) -> bool:
    if any(has < need for has, need in zip(capacity, job.needs, strict=True)):
        return False
    end = at + job.requested
    there = [part for part in parts if node in part[2] and part[0] < end and part[1] > at]
    if exclusive:
        return not there
    for instant in [at, *(part[0] for part in there if part[0] > at)]:
        beside = [other.needs for start, until, _, other in there if start <= instant < until]
        left = [has - sum(needs[i] for needs in beside) for i, has in enumerate(capacity)]
        if any(has < need for has, need in zip(left, job.needs, strict=True)):
            return False
    return True


def simulate(
    jobs: Sequence[NodeJob], nodes: Sequence[tuple[float, float, float]], *, exclusive: bool = False
) -> list[tuple[float, tuple[int, ...]]]:
    """Return the start (s) and the nodes of each job, none of which runs longer than requested.

    ``nodes`` are the cores, GPUs and bytes of each node.

    >>> simulate([NodeJob(0, 5, 9, 2, 1), NodeJob(0, 5, 5, 2, 1), NodeJob(1, 8, 8, 1, 1)], [(1, 0, 0)] * 3)
    [(0, (0, 1)), (5, (0, 1)), (1, (2,))]
    """
    started: dict[NodeJob, tuple[float, tuple[int, ...]]] = {}
    waiting: list[NodeJob] = []
    running: list[Part] = []  # until: expected
    arriving = sorted(jobs, key=lambda job: job.submit)
    while arriving or running:
        ends = [start + job.run for start, _, _, job in running]
        now = min([*ends, *(job.submit for job in arriving[:1])])
        running = [part for part in running if part[0] + part[3].run > now]
        while arriving and arriving[0].submit == now:
            waiting.append(arriving.pop(0))
        parts = list(running)
        for job in list(waiting):
            at, chosen = _earliest(job, now, parts, nodes, exclusive)
            parts.append((at, at + job.requested, chosen, job))
            if at == now:
                started[job] = at, chosen
                waiting.remove(job)
                running.append(parts[-1])
    return [started[job] for job in jobs]


def _earliest(
    job: NodeJob, now: float, parts: list[Part], nodes: Sequence[tuple[float, float, float]], exclusive: bool
) -> tuple[float, tuple[int, ...]]:
    for at in sorted({now, *(until for _, until, _, _ in parts if until > now)}):
        fit = [i for i, capacity in enumerate(nodes) if _has_room(capacity, i, job, at, parts, exclusive)]
        if len(fit) >= job.nodes:
            return at, tuple(fit[: job.nodes])
    return math.inf, ()
