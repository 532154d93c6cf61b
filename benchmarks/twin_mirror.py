"""What the mirror of a twin costs: an event with few and with many jobs, a snapshot, and the memory of many events.

Run ``python benchmarks/twin_mirror.py`` for all parts, or name some: ``events``, ``memory``. Machines are noisy:
compare figures of one run, against the yardstick.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections import deque
from collections.abc import Iterator
from typing import Any

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin import Demand, Ended, Event, Mirror, Started, Submitted


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def show(name: str, figure: float, unit: str) -> None:
    print(f"{name:62} {figure:9.3f} {unit}", flush=True)


class Plant:
    """A cluster that always has a third of its jobs running; each event is one of a job that ends, comes or starts."""

    def __init__(self, jobs: int, *, nodes: bool) -> None:
        self.time = 0.0
        self.count = 0
        self.running: deque[tuple[int, float, int]] = deque()
        self.waiting: deque[tuple[int, float]] = deque()
        self.free = deque(range(jobs // 3))
        self.nodes = nodes
        kind = {"nodes": [NodeSpec(count=jobs // 3, cores=4)]} if nodes else {"processors": 4 * (jobs // 3)}
        self.spec = ClusterSpec(partitions=[PartitionSpec(**kind)])
        self.mirror = Mirror(self.spec, "plant")
        for _ in range(jobs):
            self.mirror.apply(self.submit())
        for _ in range(jobs // 3):
            self.mirror.apply(self.start())
        self.mirror.snapshot()

    def about(self, job: int, submit: float) -> dict[str, Any]:
        return {"cluster": "plant", "job": job, "submit": submit, "time": self.time}

    def submit(self) -> Event:
        self.count += 1
        self.time += 0.5
        self.waiting.append((self.count, self.time))
        request = Demand(processors=4, requested=3600.0 + self.count % 97, user=f"user{self.count % 50}")
        return Submitted(**self.about(self.count, self.time), request=request)

    def start(self) -> Event:
        (job, submit), node = self.waiting.popleft(), self.free.popleft()
        self.running.append((job, submit, node))
        nodes = ((f"node{node}", 4),) if self.nodes else ()
        return Started(**self.about(job, submit), partition="batch", nodes=nodes)

    def end(self) -> Event:
        job, submit, node = self.running.popleft()
        self.free.append(node)
        return Ended(**self.about(job, submit))

    def events(self, count: int) -> Iterator[Event]:
        for _ in range(count // 3):
            yield from (self.end(), self.submit(), self.start())


def events(y: float) -> None:
    """Time an event, and a snapshot, with 1,500 and with 15,000 jobs."""
    for nodes in (False, True):
        costs = []
        for jobs in (1_500, 15_000):
            plant = Plant(jobs, nodes=nodes)
            given = list(plant.events(30_000))
            begin = time.process_time()
            for event in given:
                plant.mirror.apply(event)
            costs.append((time.process_time() - begin) / len(given))
            what = f"{jobs:,} jobs on {'nodes' if nodes else 'counted processors'}"
            show(f"an event, {what}", costs[-1] * 1e6, f"us      {costs[-1] * 1e6 / y:.1f} us /y")
            plant.mirror.snapshot()
            for event in plant.events(30):
                plant.mirror.apply(event)
            begin = time.process_time()
            plant.mirror.snapshot()
            show(f"a snapshot after 30 events, {what}", (time.process_time() - begin) * 1e3, "ms")
        show("an event with 15,000 jobs against one with 1,500", costs[1] / costs[0], "times")


def memory(_y: float) -> None:
    """Measure the memory after each quarter of a million events."""
    plant = Plant(1_500, nodes=True)
    tracemalloc.start()
    for part in range(1, 5):
        for number, event in enumerate(plant.events(250_000)):
            plant.mirror.apply(event)
            if number % 10_000 == 0:
                plant.mirror.snapshot()
        kept = len(plant.mirror.ledger.entries)
        show(f"after {part * 250_000:,} events, {kept:,} jobs kept", tracemalloc.get_traced_memory()[0] / 1e6, "MB")
    tracemalloc.stop()


PARTS = {"events": events, "memory": memory}

if __name__ == "__main__":
    y = yardstick()
    show("yardstick: sum(i * i for i in range(10 ** 7))", y, "s")
    for name in sys.argv[1:] or PARTS:
        PARTS[name](y)
