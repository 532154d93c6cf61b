"""What a run in two processes saves: clusters under a broker that looks at none of them, simulated apart.

Run ``python benchmarks/apart.py [CASE ...] [--quick]``. Times are CPU seconds by those of a yardstick y measured beside
them, and wall-clock seconds. ``longest`` is the CPU time of the process that takes most: what the run would last with
a core for each. Of a run in two processes the record is compared with that of one.

The cases: ``sdsc-sp2``, the log (``SIMMODEL_DATA``) dealt to two machines of its size; ``das-2``, jobs drawn by the
model of Lublin and Feitelson, as many as the log of DAS-2 has, on its five clusters; ``das-2-random``, random choices.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from simmodel import Workload, load_workload, simulate
from simmodel.platform import ClusterSpec

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
DAS2 = {"VU": 144, "Leiden": 64, "UvA": 64, "Delft": 64, "Utrecht": 64}
"""Processors of the clusters of DAS-2: nodes with two of them."""
JOBS = 1_124_772
"""Jobs in the log of DAS-2 in the Grid Workloads Archive."""


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def spent(who: int) -> float:
    """CPU seconds of this process, or of its children that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def das2(jobs: int) -> Workload:
    """Return jobs of at most 64 processors that load DAS-2 by 0.7."""
    log = load_workload(f"lublin:jobs={jobs},processors=64")
    submit, run, processors = (np.asarray(log[name], dtype=float) for name in ("submit", "run", "processors"))
    load = (run * processors).sum() / (sum(DAS2.values()) * (submit.max() - submit.min()))
    return Workload({"submit": submit * (load / 0.7), "run": run, "processors": log["processors"]})


def sdsc(jobs: int) -> Workload:
    """Return the first jobs of SDSC-SP2, twice as fast as they came."""
    log = load_workload(DATA / "swf" / "SDSC-SP2-1998-4-filtered.swf.gz")
    columns = {name: log[name][:jobs] for name in ("submit", "run", "processors", "requested")}
    return Workload({**columns, "submit": columns["submit"] / 2})


CASES = {
    "sdsc-sp2": ({"a": 128, "b": 128}, sdsc, 54_006, "round-robin"),
    "das-2": (DAS2, das2, JOBS, "shares"),
    "das-2-random": (DAS2, das2, JOBS, "random(144,64,64,64,64)"),
}


def measured(places: dict[str, int], log: Workload, policy: str, processes: int) -> tuple[list[float], object]:
    """Return the CPU seconds of all processes and of the longest, and wall-clock seconds; and the ends of the jobs."""
    clusters = {name: ClusterSpec.simple(count, name=name) for name, count in places.items()}
    own, children, begin = spent(resource.RUSAGE_SELF), spent(resource.RUSAGE_CHILDREN), time.perf_counter()
    result = simulate(clusters, log, policy, policies="easy", processes=processes)
    wall = time.perf_counter() - begin
    own, children = spent(resource.RUSAGE_SELF) - own, spent(resource.RUSAGE_CHILDREN) - children
    return [own + children, max(own, children), wall], result.jobs["end"]


def main(arguments: list[str]) -> None:
    """Measure the cases that are named, or all of them."""
    quick = "--quick" in arguments
    named = [each for each in arguments if each != "--quick"] or list(CASES)
    print("| case | jobs | processes | CPU s/y | longest s/y | wall s | one / longest | one / wall |")
    print("|---|---|---|---|---|---|---|---|")
    for name in named:
        places, draw, jobs, policy = CASES[name]
        log = draw(min(jobs, 20_000) if quick else jobs)
        first: list[float] = []
        ends: list[object] = []
        for processes in (1, 2):
            y = yardstick()
            found, end = measured(places, log, policy, processes)
            first, ends = first or found, [*ends, end]
            ratios = f"{first[0] / found[1]:.2f} | {first[2] / found[2]:.2f}"
            cells = f"{found[0] / y:.1f} | {found[1] / y:.1f} | {found[2]:.1f}"
            print(f"| {name} | {len(log):,} | {processes} | {cells} | {ratios} |", flush=True)
        assert np.array_equal(*ends, equal_nan=True)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1:])
