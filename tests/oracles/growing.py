"""Claims that grow and shrink, served step by step on counted processors."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Script", "Step", "grants"]


class Step(NamedTuple):
    """What a process does ``after`` some seconds: ``grow`` by a number, with a patience (s), or ``shrink`` by one."""

    after: float
    what: str
    processors: int
    patience: float


class Script(NamedTuple):
    """A process: it claims processors at an instant (s), takes its steps, and releases all after some seconds."""

    at: float
    processors: int
    priority: int
    steps: Sequence[Step]
    release_after: float


def grants(scripts: Sequence[Script], capacity: int) -> list[tuple[float, int, int]]:
    """Return (instant, process, processors held from now on) for each change, in order."""
    held, step = [0] * len(scripts), [-1] * len(scripts)
    queue: list[tuple[int, int, int, int]] = []  # -priority, order, process, how many more
    found: list[tuple[float, int, int]] = []
    events = [(script.at, number, "act") for number, script in enumerate(scripts)]
    heapq.heapify(events)
    order = 0

    def next_act(now: float, who: int) -> None:
        step[who] += 1
        steps = scripts[who].steps
        after = steps[step[who]].after if step[who] < len(steps) else scripts[who].release_after
        heapq.heappush(events, (now + after, who, "act"))

    while events:
        now, who, what = heapq.heappop(events)
        script = scripts[who]
        if what.startswith("give up"):
            entry = next((each for each in queue if what == f"give up {each[1]}"), None)
            if entry is None:
                continue
            queue.remove(entry)
            next_act(now, who)
        elif step[who] < 0:
            order += 1
            queue.append((-script.priority, order, who, script.processors))
        elif step[who] == len(script.steps):
            held[who] = 0
            found.append((now, who, 0))
        else:
            _, kind, processors, patience = script.steps[step[who]]
            if kind == "grow" and held[who] + processors <= capacity:
                order += 1
                queue.append((-script.priority, order, who, processors))
                heapq.heappush(events, (now + patience, who, f"give up {order}"))
            elif kind == "shrink" and processors < held[who]:
                held[who] -= processors
                found.append((now, who, held[who]))
                next_act(now, who)
            else:
                next_act(now, who)
        queue.sort()
        while queue and queue[0][3] <= capacity - sum(held):
            _, _, first, more = queue.pop(0)
            held[first] += more
            found.append((now, first, held[first]))
            next_act(now, first)
    return found
