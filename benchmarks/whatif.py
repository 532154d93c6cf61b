"""What what-ifs cost: CPU milliseconds of one future of a snapshot, with a yardstick beside them.

Run ``python benchmarks/whatif.py`` for all parts, or name some of them. Machines are noisy: compare figures of one run,
against the yardstick.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import numpy as np

from simmodel import Cluster, Environment, Workload
from simmodel.environment import quiet_garbage_collector
from simmodel.experiments.whatif import what_if
from simmodel.scheduling.snapshot import Snapshot
from simmodel.systems.whatif import foresee


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def show(name: str, figure: float, unit: str, target: str = "") -> None:
    print(f"{name:62} {figure:9.2f} {unit:14} {target}", flush=True)


def cpu(run: Callable[[], object], times: int = 7) -> float:
    """CPU seconds of the fastest of some runs."""
    spent = []
    for _ in range(times):
        gc.collect()
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return min(spent)


# ---------------------------------------------------------------------- one future


def busy_cluster(running: int = 500, waiting: int = 1000, seed: int = 1) -> Snapshot:
    """Return the snapshot of a cluster on which so many jobs run and so many wait."""
    rng = np.random.default_rng(seed)

    jobs = running + waiting
    sizes = np.minimum(2 ** rng.integers(0, 8, jobs), 100)
    requested = np.ceil(rng.lognormal(8.5, 1.2, jobs) / 60) * 60
    run = requested * rng.uniform(0.1, 1.0, jobs)
    log = Workload({"submit": np.zeros(jobs), "run": run, "processors": sizes, "requested": requested})
    env = Environment()
    cluster = Cluster(env, int(sizes[:running].sum()), "fcfs")
    cluster.replay(log)
    env.run(until=1)
    snapshot = cluster.snapshot()
    assert (len(snapshot.running), len(snapshot.waiting)) == (running, waiting)
    return snapshot


def snapshot_to_the_end() -> None:
    snapshot = busy_cluster()
    seen = snapshot.expected()
    size = f"{len(snapshot.running)} running, {len(snapshot.waiting):,} waiting"

    def light(policy: str) -> None:
        with quiet_garbage_collector():
            foresee(seen, policy)

    for policy in ("easy", "fcfs", "sjf+easy", "wfp+easy", "conservative"):
        target = "at most 20" if policy == "easy" else ""
        show(f"{size}: {policy} to the end", 1e3 * cpu(lambda policy=policy: light(policy)), "ms CPU", target)
    show("the same with its measures, by what_if", 1e3 * cpu(lambda: what_if(snapshot, ["easy"])), "ms CPU")
    show("the snapshot without what nobody knows", 1e3 * cpu(snapshot.expected), "ms CPU")
    text = snapshot.to_json()
    show("to JSON", 1e3 * cpu(snapshot.to_json), "ms CPU", f"{len(text) / 1024:.0f} KiB")
    show("from JSON", 1e3 * cpu(lambda: Snapshot.from_json(text)), "ms CPU")


PARTS = {"future": snapshot_to_the_end}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"parts {', '.join(PARTS)} expected, found {', '.join(unknown)}")
    show("yardstick: sum(i*i for i in range(10_000_000))", yardstick(), "s CPU")
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
