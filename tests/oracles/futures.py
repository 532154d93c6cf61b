"""What-ifs by brute force: EASY from a state, by its definition, with lists and no index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np


class Wait(NamedTuple):
    job: Any
    submit: float
    processors: int
    requested: float
    priority: float = 0.0


KEYS: dict[str, Callable[[Wait, float], Any]] = {
    "fcfs": lambda job, now: 0.0,
    "sjf": lambda job, now: job.requested,
    "wfp": lambda job, now: -(((now - job.submit) / max(job.requested, 1.0)) ** 3 * job.processors),
}


def easy_future(
    now: float, running: Sequence[tuple[float, int]], waiting: Sequence[Wait], capacity: int, order: str
) -> dict[Any, float]:
    """Return the start of each waiting job; ``running`` is (expected end, processors), ``waiting`` in order of arrival.

    Each job runs for its requested time; running jobs past their expected end are assumed to end just after now.
    """
    busy = [(max(end, math.nextafter(now, math.inf)), processors) for end, processors in running]
    queue = list(waiting)
    starts: dict[Any, float] = {}
    while queue:
        while _started_one(now, busy, queue, capacity, order, starts):
            pass
        if not queue:
            break
        now = min(end for end, _ in busy)
        busy = [each for each in busy if each[0] > now]
    return starts


def _started_one(
    now: float, busy: list[tuple[float, int]], queue: list[Wait], capacity: int, order: str, starts: dict[Any, float]
) -> bool:
    """Make one decision; return whether another one is due at this instant, as a job of zero length ended."""
    key = KEYS[order]
    line = sorted(queue, key=lambda job: (-job.priority, key(job, now)))  # stable: ties by arrival
    free = capacity - sum(processors for _, processors in busy)
    zero = False

    def start(job: Wait) -> None:
        nonlocal free, zero
        free -= job.processors
        zero = zero or job.requested == 0
        busy.append((now + job.requested, job.processors))
        starts[job.job] = now
        queue.remove(job)

    while line and line[0].processors <= free:
        start(line.pop(0))
    if line:
        head, at, left = line[0], now, free
        for end in sorted({end for end, _ in busy}):
            at, left = end, free + sum(processors for other, processors in busy if other <= end)
            if left >= head.processors:
                break
        extra = left - head.processors
        for job in line[1:]:
            if job.processors <= free and (now + job.requested <= at or job.processors <= extra):
                if now + job.requested > at:
                    extra -= job.processors
                start(job)
    if zero:
        busy[:] = [each for each in busy if each[0] > now]
    return zero and bool(queue)


def brute_simulate(cluster: Any, capacity: int) -> Callable[..., Any]:
    """Return a ``view.simulate`` for a cluster of counted processors, with orders with EASY as candidates."""

    def simulate(policy: Any, **_options: Any) -> Any:
        view = cluster.view
        waiting = [Wait(job.id, job.submit, job.processors, job.planned, job.priority) for job in view.waiting]
        running = [(run.expected_end, run.job.processors) for run in view.running]
        starts = easy_future(view.now, running, waiting, capacity, policy.order.name)
        requested = np.array([job.requested for job in waiting])
        start = np.array([starts[job.job] for job in waiting])
        jobs = {
            "job": np.array([job.job for job in waiting]),
            "submit": np.array([job.submit for job in waiting]),
            "start": start,
            "end": start + requested,
            "processors": np.array([job.processors for job in waiting]),
            "requested": requested,
            "waiting": np.ones(len(waiting), dtype=bool),
        }
        return SimpleNamespace(jobs=jobs)

    return simulate
