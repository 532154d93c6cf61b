"""What sleeping nodes save and cost: energy, waits and boots on two logs, and the time of conservative backfilling.

Run ``python benchmarks/sleeping_nodes.py`` for all cases, or name some of them: ``logs``, ``conservative``. With
``--picture FILE.png``, ``logs`` draws energy against the mean wait. Logs are looked for in ``SIMMODEL_DATA`` or
``../shared/data``; one that is not there is left out, and the output says so.

Nodes are those of Grid'5000's taurus: 95 W idle, 190.7 W under load, 9.75 W off, 150 s at 125 W to boot, and 6 s at
101 W to stop.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from math import fsum
from pathlib import Path

import numpy as np

from simmodel import Job, Result, load_workload, simulate
from simmodel.metrics import energy
from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
LOGS = {"KTH-SP2-1996-2": 100, "SDSC-SP2-1998-4": 128}
TAURUS = NodePower(idle=95, load=190.7, off=9.75, boot=("150s", 125), stop=("6s", 101))
AFTER = ("never", 1800, 300, 60, 0)


def platform(nodes: int, cores: int = 1, *, exclusive: bool = True) -> ClusterSpec:
    """Return a cluster of such nodes."""
    kinds = [NodeSpec(count=nodes, cores=cores, power=TAURUS)]
    return ClusterSpec(partitions=[PartitionSpec(nodes=kinds, exclusive=exclusive)])


def by_hand(result: Result, nodes: int) -> tuple[float, int]:
    """Return the energy of a run (J) from the seconds of each state, and the number of boots."""
    runs, changes = result.runs, result.changes

    def inside(start: float, end: float) -> float:
        return max(min(end, result.ended) - max(start, result.started), 0.0)

    busy = fsum((runs["end"] - runs["start"]) * runs["processors"])
    stops: list[float] = []
    offs: list[float] = []
    boots: list[float] = []
    asleep: dict[int, float] = {}  # since when off
    for row in () if changes is None else changes.rows():
        for node, until in zip(row["nodes"] or (), row["until"] or (), strict=True):
            if row["cause"] == "sleep":
                asleep[node] = until
                stops.append(inside(row["time"], until))
            elif row["cause"] == "wake":
                off = asleep.pop(node)
                begins = max(off, row["time"])
                offs.append(inside(off, begins))
                boots.append(inside(begins, until))
    offs += [inside(off, result.ended) for off in asleep.values()]
    states = {TAURUS.off: fsum(offs), 101.0: fsum(stops), 125.0: fsum(boots)}
    up = nodes * (result.ended - result.started) - fsum(states.values())
    parts = [watts * seconds for watts, seconds in states.items()]
    return fsum([*parts, TAURUS.idle * up, (TAURUS.load - TAURUS.idle) * busy]), len(boots)


def logs(picture: str | None) -> None:
    """Print what EASY needs with nodes that sleep after some idle times."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for name, nodes in LOGS.items():
        path = DATA / "swf" / f"{name}-filtered.swf.gz"
        if not path.exists():
            print(f"{name}: not in {DATA}, left out")
            continue
        log = load_workload(path)
        print(f"{name}: {len(log):,} jobs on {nodes} nodes, EASY")
        print("sleep after   energy  mean wait   boots   off by hand  CPU")
        for after in AFTER:
            begin = time.process_time()
            result = simulate(platform(nodes), log, "easy" if after == "never" else f"sleep-after({after})")
            seconds = time.process_time() - begin
            total, wait = energy(result).total, float(result.jobs["wait"].mean())
            hand, boots = by_hand(result, nodes)
            curves.setdefault(name, []).append((total / 3.6e9, wait))
            line = f"{after:>11} {total / 3.6e9:8.2f} MWh {wait:8.0f} s {boots:7,} {abs(total / hand - 1):12.1e}"
            print(f"{line} {seconds:4.0f} s", flush=True)
    if picture is not None and curves:
        draw(picture, curves)


def draw(picture: str, curves: dict[str, list[tuple[float, float]]]) -> None:
    """Draw energy against the mean wait."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(5 * len(curves), 4), squeeze=False)
    for ax, (name, points) in zip(axes[0], curves.items(), strict=True):
        ax.plot(*zip(*points, strict=True), "o-")
        for label, point in zip(AFTER, points, strict=True):
            ax.annotate(f" {label}", point)
        ax.set(title=f"{name}: sleep after (s)", xlabel="energy (MWh)", ylabel="mean wait (s)")
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


def jobs_of(count: int, load: float, nodes: int, *, shared: bool) -> Iterator[Job]:
    """Yield jobs for up to 128 nodes each, at a load, in order of submission."""
    rng, cores = np.random.default_rng(1), 8
    wanted, run = 2 ** rng.integers(0, 8, count), rng.exponential(3600, count).clip(1).round()
    requested = (run * rng.uniform(1, 3, count)).round()
    submit = np.sort(rng.uniform(0, float((wanted * run).sum()) / nodes / load, count)).round()
    each = rng.integers(1, cores + 1, count) if shared else np.full(count, cores)
    for row in zip(submit, run, requested, wanted.tolist(), each.tolist(), strict=True):
        yield Job(submit=row[0], run=row[1], requested=row[2], nodes=row[3], cores_per_node=row[4])


def conservative() -> None:
    """Print how long conservative backfilling takes on 1,000 nodes with and without sleep after 300 s, in turn."""
    for shared in (False, True):
        spec = platform(1000, 8, exclusive=not shared)
        for load in (0.7, 0.95, 1.2):
            jobs = list(jobs_of(3000, load, 1000, shared=shared))
            spent = {"conservative": 0.0, "sleep-after(300, conservative)": 0.0}
            for _ in range(2):
                for policy in spent:
                    begin = time.process_time()
                    simulate(spec, jobs, policy)
                    spent[policy] += (time.process_time() - begin) / 2
            plain, asleep = spent.values()
            kind = "shared" if shared else "exclusive"
            print(f"{kind} nodes, load {load}: {plain:.2f} s, with sleep {asleep:.2f} s: {asleep / plain:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], "logs", "conservative"], help="default: both")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    if "logs" in options.cases or not options.cases:
        logs(options.picture)
    if "conservative" in options.cases or not options.cases:
        conservative()


if __name__ == "__main__":
    main()
