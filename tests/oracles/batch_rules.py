"""The decisions of each batch policy, by rescanning plain lists; only ``conservative-keep`` has state, its promises.

A decision function takes a :class:`State` and returns the positions of the jobs that start now, in that order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations


@dataclass
class Seen:
    """A waiting job, as policies see it."""

    position: int
    submit: float
    processors: int
    requested: float
    user: object = None
    priority: float = 0


@dataclass
class State:
    """The state that a policy sees at one decision.

    ``waiting`` is in order of (submit, position); ``running`` holds (expected end, processors) of each job that counts
    as running; ``expected_end(job)`` is the expected end of a job that starts now.
    """

    now: float
    free: int
    waiting: list[Seen]
    running: list[tuple[float, int]]
    expected_end: Callable[[Seen], float]
    promises: dict[int, float] = field(default_factory=dict)


Key = Callable[[Seen, float], float]


def _at_least_one(value: float) -> float:
    return value if value > 0 else 1


def _cube(x: float) -> float:
    return x * x * x


# The smallest key goes first; ties by (submit, position), the order of State.waiting, which a stable sort keeps.
ORDERS: dict[str, Key] = {
    "fcfs": lambda job, now: 0,
    "sjf": lambda job, now: job.requested,
    "ljf": lambda job, now: -job.requested,
    "smallest": lambda job, now: job.processors,
    "largest": lambda job, now: -job.processors,
    "wfp": lambda job, now: -_cube((now - job.submit) / _at_least_one(job.requested)) * job.processors,
    "unicef": lambda job, now: (
        -((now - job.submit) / (math.log2(max(2, job.processors)) * _at_least_one(job.requested)))
    ),
    "f1": lambda job, now: math.log10(max(1, job.requested)) * job.processors + 870 * math.log10(max(1, job.submit)),
    "f2": lambda job, now: math.sqrt(job.requested) * job.processors + 25600 * math.log10(max(1, job.submit)),
    "f3": lambda job, now: job.requested * job.processors + 6860000 * math.log10(max(1, job.submit)),
    "f4": lambda job, now: job.requested * math.sqrt(job.processors) + 530000 * math.log10(max(1, job.submit)),
}


def in_order(jobs: list[Seen], key: Key, now: float) -> list[Seen]:
    return sorted(jobs, key=lambda job: key(job, now))


# ---------------------------------------------------------------------- the future as steps


Steps = list[list[float]]


def profile(now: float, free: int, running: list[tuple[float, int]]) -> Steps:
    """Return steps [instant, free processors], provided that each running job ends when expected.

    Jobs that run past their expected end are assumed to end just after now, in a second step at ``now``; so only the
    first step is "now".
    """
    steps: Steps = [[now, free]]
    for end, processors in sorted(running):
        at = max(end, now)
        if len(steps) > 1 and steps[-1][0] == at:
            steps[-1][1] += processors
        else:
            steps.append([at, steps[-1][1] + processors])
    return steps


def fits_from(steps: Steps, i: int, processors: int, length: float) -> bool:
    end = steps[i][0] + length
    return steps[i][1] >= processors and all(free >= processors for at, free in steps[i + 1 :] if at < end)


def earliest_hole(steps: Steps, processors: int, length: float, first: int = 0) -> int:
    """Return the index of the first step from which ``processors`` stay free for ``length`` seconds."""
    return next(i for i in range(first, len(steps)) if fits_from(steps, i, processors, length))


def occupy(steps: Steps, i: int, processors: int, length: float) -> None:
    """Take processors from step i for this length; a length of zero takes only step i."""
    end = steps[i][0] + length
    j = i + 1
    while j < len(steps) and steps[j][0] < end:
        j += 1
    if j == len(steps) or steps[j][0] != end:
        steps.insert(j, [end, steps[j - 1][1]])
    for step in steps[i:j]:
        step[1] -= processors


# ---------------------------------------------------------------------- the policies


def no_backfill(state: State, order: Key) -> list[int]:
    return _start_heads(state, in_order(state.waiting, order, state.now))[0]


def _start_heads(state: State, queue: list[Seen]) -> tuple[list[int], int, list[tuple[float, int]]]:
    """Remove heads from the queue while they fit; return their positions, the free processors, and the running jobs."""
    free, running, started = state.free, list(state.running), []
    while queue and queue[0].processors <= free:
        job = queue.pop(0)
        free -= job.processors
        running.append((state.expected_end(job), job.processors))
        started.append(job.position)
    return started, free, running


def easy(state: State, order: Key, candidates: Key | None = None) -> list[int]:
    now = state.now
    queue = in_order(state.waiting, order, now)
    started, free, running = _start_heads(state, queue)
    if not queue:
        return started
    head, rest = queue[0], queue[1:]
    promised = next(at for at, then_free in profile(now, free, running) if then_free >= head.processors)
    extra = free + sum(processors for end, processors in running if end <= promised) - head.processors
    state.promises[head.position] = promised
    if candidates is not None:
        rest = in_order(sorted(rest, key=lambda job: (job.submit, job.position)), candidates, now)
    for job in rest:
        if job.processors > free:
            continue
        if now + job.requested > promised:
            if job.processors > extra:
                continue
            extra -= job.processors
        free -= job.processors
        started.append(job.position)
    return started


def conservative(state: State, order: Key) -> list[int]:
    queue = in_order(state.waiting, order, state.now)
    started, free, running = _start_heads(state, queue)
    steps = profile(state.now, free, running)
    for job in queue:
        i = earliest_hole(steps, job.processors, job.requested)
        state.promises[job.position] = steps[i][0]
        occupy(steps, i, job.processors, job.requested)
        if i == 0:
            started.append(job.position)
    return started


def conservative_keep(state: State, order: Key) -> list[int]:
    free = state.free
    running = list(state.running)
    started: list[int] = []
    queue = in_order(state.waiting, order, state.now)
    for job in queue:
        steps = profile(state.now, free, running)
        for other in queue:
            if other is not job and other.position in state.promises and other.position not in started:
                _occupy_at(steps, state.promises[other.position], other)
        i = earliest_hole(steps, job.processors, job.requested)
        assert steps[i][0] <= state.promises.get(job.position, math.inf), "a promise cannot be kept"
        state.promises[job.position] = steps[i][0]
        if i == 0:
            free -= job.processors
            running.append((state.expected_end(job), job.processors))
            started.append(job.position)
    return started


def _occupy_at(steps: Steps, at: float, job: Seen) -> None:
    if all(step[0] != at for step in steps):
        after = next((k for k, step in enumerate(steps) if step[0] > at), len(steps))
        steps.insert(after, [at, steps[after - 1][1]])
    i = next(k for k, step in enumerate(steps) if step[0] == at and fits_from(steps, k, job.processors, job.requested))
    occupy(steps, i, job.processors, job.requested)


def best_fit(state: State) -> list[int]:
    free = state.free
    waiting = list(state.waiting)
    started = []
    while fitting := [job for job in waiting if job.processors <= free]:
        job = min(fitting, key=lambda job: (free - job.processors, job.submit, job.position))
        waiting.remove(job)
        free -= job.processors
        started.append(job.position)
    return started


def window(state: State, order: Key, size: int, planning: str) -> list[int]:
    free = state.free
    running = list(state.running)
    queue = in_order(state.waiting, order, state.now)
    started: list[int] = []
    while queue:
        head, queue = queue[:size], queue[size:]
        plans = [_plan(profile(state.now, free, running), list(line), planning) for line in permutations(head)]
        _, starting = min(plans, key=lambda plan: plan[0])  # permutations come in order of arrival; min keeps the first
        for job in starting:
            free -= job.processors
            running.append((state.expected_end(job), job.processors))
            started.append(job.position)
        if len(starting) < len(head):
            break
    return started


def _plan(steps: Steps, line: list[Seen], planning: str) -> tuple[float, list[Seen]]:
    """Return the last planned end of these jobs, and those that the plan starts now."""
    last, makespan, now = 0, -math.inf, []
    for job in line:
        i = earliest_hole(steps, job.processors, job.requested, last if planning == "list" else 0)
        makespan = max(makespan, steps[i][0] + job.requested)
        occupy(steps, i, job.processors, job.requested)
        if planning == "list":
            last = i
        if i == 0:
            now.append(job)
    return makespan, now
