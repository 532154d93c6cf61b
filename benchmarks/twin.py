"""What a twin costs: cycles of event, mirror, futures, decision and audit log; a deadline that is missed.

Run ``python benchmarks/twin.py`` for all parts, or name some of them. Machines are noisy: figures are CPU seconds by
those of the yardstick beside them (``y``), which is measured in the same run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from simmodel import Policy, Portfolio
from simmodel.futures import start_times, worker_pool
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin import Advisor, AuditLog, Demand, Ended, Event, Mirror, Started, Submitted, Twin
from simmodel_site.twin.sources import Refused

CANDIDATES = "portfolio(wfp, fcfs, sjf, backfill=easy, every=true)"


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def show(name: str, figure: float, unit: str, target: str = "") -> None:
    print(f"{name:66} {figure:9.3f} {unit:10} {target}", flush=True)


class Nowhere:
    """A source without events."""

    cluster = "alps"
    over = False

    def __init__(self) -> None:
        self.refused = Refused()

    def report(self) -> None:
        return None

    def events(self, timeout: float) -> list[Event]:
        return []

    def position(self) -> None:
        return None

    def resume(self, position: str | None) -> None: ...

    def close(self) -> None: ...


def busy_mirror(running: int, waiting: int, nodes: int = 0, seed: int = 1) -> Mirror:
    """Return the mirror of a full cluster; with ``nodes``, jobs have whole nodes of 16 cores."""
    rng = np.random.default_rng(seed)
    jobs = running + waiting
    widths = np.minimum(2 ** rng.integers(0, 8, jobs), 100)
    if nodes:
        widths = np.minimum(2 ** rng.integers(0, 3, jobs), 4)
        widths[:running] = np.diff(np.linspace(0, nodes, running + 1).astype(int))
        spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=nodes, cores=16)])])
    else:
        spec = ClusterSpec.simple(int(widths[:running].sum()))
    requested = np.ceil(rng.lognormal(8.5, 1.2, jobs) / 60) * 60
    mirror = Mirror(spec, "alps")
    first = 0
    for job, (width, seconds) in enumerate(zip(widths.tolist(), requested.tolist(), strict=True)):
        size: dict[str, Any] = {"nodes": width, "cores_per_node": 16} if nodes else {"processors": width}
        about: dict[str, Any] = {"cluster": "alps", "time": float(job >= running), "job": job, "submit": 0.0}
        mirror.apply(Submitted(**{**about, "time": 0.0}, request=Demand(**size, requested=seconds, user=job % 40)))
        if job < running:
            names = tuple((f"node{number}", 16) for number in range(first, first + width)) if nodes else ()
            mirror.apply(Started(**about, nodes=names))
            first += width
    return mirror


def steps(mirror: Mirror, count: int) -> Iterator[Event]:
    """Yield ends of the first jobs, each with a submission."""
    for number in range(count):
        about: dict[str, Any] = {"cluster": "alps", "time": 10.0 + number}
        yield Ended(**about, job=number, submit=0.0)
        request = Demand(processors=16, requested=600.0, user=1)
        yield Submitted(**about, job=1_000_000 + number, submit=10.0 + number, request=request)


def cycles() -> None:
    """An end, a submission and the decision after them, which simulates three policies to the end."""
    y = min(yardstick() for _ in range(3))
    for what, mirror, target in (
        ("1,000 nodes, 250 running, 500 waiting", busy_mirror(250, 500, 1000), "at most 450"),
        ("counts, 5,000 running, 10,000 waiting", busy_mirror(5000, 10_000), "at most 1500"),
    ):
        with TemporaryDirectory() as folder, AuditLog(Path(folder, "audit.jsonl")) as audit:
            advisor = Advisor(CANDIDATES)
            twin = Twin(Nowhere(), mirror, advisor, audit, clock=lambda mirror=mirror: mirror.now)
            events = list(steps(mirror, 4))
            spent = []
            for end, submission in zip(events[::2], events[1::2], strict=True):
                begin = time.process_time()
                twin.take(end)
                twin.take(submission)
                advice = twin.decide()
                spent.append(time.process_time() - begin)
                assert advice is not None
                assert len(advice.scores) == 3
            show(f"{what}: a cycle of three policies", 1e3 * min(spent) / y, "ms CPU / y", target)
            show(f"{what}: the slowest", 1e3 * max(spent) / y, "ms CPU / y")


class Endless(Policy):
    """A policy that never ends."""

    def decide(self, view: Any) -> Iterator[Any]:
        time.sleep(60)
        yield from ()


def missed() -> None:
    """The time from a missed deadline to the advice of the fallback, by the clock."""
    deadline = 0.5
    run_all, begun = start_times.run_all, [0.0]

    def noting(*arguments: Any, **options: Any) -> Any:
        begun[0] = time.perf_counter()
        return run_all(*arguments, **options)

    start_times.run_all = noting
    for what, mirror in (
        ("1,000 nodes, 250 running, 500 waiting", busy_mirror(250, 500, 1000)),
        ("counts, 5,000 running, 10,000 waiting", busy_mirror(5000, 10_000)),
    ):
        for event in steps(mirror, 1):
            mirror.apply(event)
        snapshot = mirror.snapshot()
        portfolio = Portfolio({"endless": Endless(), "easy": "easy"}, "wait_mean", every=True)
        with worker_pool(2) as pool:
            advice = Advisor(portfolio, deadline=deadline, executor=pool).advise(snapshot)
            over = time.perf_counter() - begun[0] - deadline
            assert advice.fallback
            show(f"{what}: from the deadline to the advice", 1e3 * over, "ms", "at most 50")
            for process in list(pool._processes.values()):
                process.terminate()
    start_times.run_all = run_all


PARTS: dict[str, Callable[[], None]] = {"cycles": cycles, "missed": missed}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"parts {', '.join(PARTS)} expected, found {', '.join(unknown)}")
    show("yardstick: sum(i*i for i in range(10_000_000))", yardstick(), "s CPU")
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
