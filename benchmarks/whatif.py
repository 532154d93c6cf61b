"""What what-ifs cost: a job under a simulation-guided broker, one future of a snapshot; with a yardstick beside them.

Run ``python benchmarks/whatif.py`` for all parts, or name some of them. Real logs are looked for in ``SIMMODEL_DATA``
or ``../shared/data``; a part whose log is not there is left out, and says so. Machines are noisy: compare figures of
one run, against the yardstick.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from simmodel import Cluster, Environment, Workload
from simmodel.environment import quiet_garbage_collector
from simmodel.formats.swf import read_swf
from simmodel.futures.start_times import predict
from simmodel.futures.whatif import what_if
from simmodel.runs.scenario import simulate
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.studies.metascheduling import CQSIM, fitting

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def show(name: str, figure: float, unit: str, target: str = "") -> None:
    print(f"{name:62} {figure:9.3f} {unit:14} {target}", flush=True)


def cpu(run: Callable[[], object], times: int = 7) -> float:
    """CPU seconds of the fastest of some runs."""
    spent = []
    for _ in range(times):
        gc.collect()
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return min(spent)


# ---------------------------------------------------------------------- a broker that simulates


class Tenths:
    """CPU time after each tenth of the jobs was handed over."""

    def __init__(self, jobs: int) -> None:
        self.every = jobs // 10
        self.handed = 0
        self.marks = [time.process_time()]

    def job_handed(self, _job: Any, _place: Any) -> None:
        self.handed += 1
        if self.handed % self.every == 0:
            self.marks.append(time.process_time())

    def part(self, tenth: int) -> float:
        """Milliseconds a job of one tenth of the log."""
        return 1e3 * (self.marks[tenth + 1] - self.marks[tenth]) / self.every


def broker() -> None:
    """The whole Theta log on two clusters of 2,180 processors: both clusters' simulation is in the figures."""
    path = DATA / "swf" / "theta_2022.swf.gz"
    if not path.exists():
        print(f"theta_2022: not in {DATA}, left out")
        return
    log = fitting(read_swf(path))
    cases: list[tuple[str, str, str, dict[str, Any]]] = [
        ("random (no estimates)", "random", "easy", CQSIM),
        ("sgs-t as CQSim+, easy", "sgs-t", "easy", CQSIM),
        ("sgs-t as CQSim+, conservative", "sgs-t", "conservative", CQSIM),
        ("sgs-t by actual times, conservative, exact", "sgs-t", "conservative", {"estimates": "exact", "by": "actual"}),
        ("sgs-t by requested times, easy", "sgs-t", "easy", {}),
        ("sgs-t by requested times, conservative", "sgs-t", "conservative", {}),
    ]
    for name, chosen, policy, options in cases:
        best: Tenths | None = None
        for _ in range(2):
            gc.collect()
            tenths = Tenths(len(log))
            simulate([2180, 2180], log, chosen, policies=policy, observers=[tenths], **options)
            tenths.marks.append(time.process_time())
            if best is None or tenths.marks[-1] - tenths.marks[0] < best.marks[-1] - best.marks[0]:
                best = tenths
        assert best is not None
        mean = 1e3 * (best.marks[-1] - best.marks[0]) / len(log)
        target = "at most 0.6" if chosen == "sgs-t" else ""
        growth = f"first tenth {best.part(0):.3f}, last {best.part(9):.3f}"
        show(f"{name}: mean of {len(log):,} jobs", mean, "ms CPU a job", f"{growth}  {target}")


# ---------------------------------------------------------------------- one future


def busy_cluster(running: int = 500, waiting: int = 1000, seed: int = 1) -> ClusterSnapshot:
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
            predict(seen, policy)

    for policy in ("easy", "fcfs", "sjf+easy", "wfp+easy", "conservative"):
        target = "at most 20" if policy == "easy" else ""
        show(f"{size}: {policy} to the end", 1e3 * cpu(lambda policy=policy: light(policy)), "ms CPU", target)
    show("the same with its measures, by what_if", 1e3 * cpu(lambda: what_if(snapshot, ["easy"])), "ms CPU")
    show("the snapshot without what nobody knows", 1e3 * cpu(snapshot.expected), "ms CPU")
    text = snapshot.to_json()
    show("to JSON", 1e3 * cpu(snapshot.to_json), "ms CPU", f"{len(text) / 1024:.0f} KiB")
    show("from JSON", 1e3 * cpu(lambda: ClusterSnapshot.from_json(text)), "ms CPU")


def deep_queues() -> None:
    """Futures of deep queues, in milliseconds per second of the yardstick."""
    y = min(yardstick() for _ in range(3))
    for running, waiting, policy, target in (
        (500, 150, "conservative", ""),
        (500, 1_000, "conservative", "at most 150"),
        (500, 1_000, "conservative-keep", ""),
        (500, 1_000, "sjf+conservative", ""),
        (5_000, 10_000, "easy", "at most 250"),
        (5_000, 10_000, "conservative", ""),
    ):
        snapshot = busy_cluster(running, waiting)
        seen = snapshot.expected()
        spent = cpu(lambda seen=seen, policy=policy: predict(seen, policy), times=3)
        show(f"{running:,} running, {waiting:,} waiting: {policy} to the end", 1e3 * spent / y, "ms CPU / y")
        several = {str(number): policy for number in range(3)}
        spent = cpu(lambda snapshot=snapshot, several=several: what_if(snapshot, several), times=3) / len(several)
        show("the same by what_if of three policies, each", 1e3 * spent / y, "ms CPU / y", target)


PARTS = {"broker": broker, "future": snapshot_to_the_end, "deep": deep_queues}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"parts {', '.join(PARTS)} expected, found {', '.join(unknown)}")
    show("yardstick: sum(i*i for i in range(10_000_000))", yardstick(), "s CPU")
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
