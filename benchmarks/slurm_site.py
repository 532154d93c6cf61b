"""What an administrator's what-ifs cost on a site of Slurm: 800 jobs on 40 nodes, generated.

    python benchmarks/slurm_site.py [--jobs N] [--nodes N] [--load X] [--runs N] [--workers N]

One pair of runs of each, the site as it is and changed; with ``--runs``: so many resampled logs on ``--workers``
processes. CPU times in y, that of ``sum(i*i for i in range(10**7))``; of resamples for each process.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from simmodel.extending import worker_pool
from simmodel_site.twin.slurm.site.folder import read_folder
from simmodel_site.twin.slurm.site.replayed import change
from tests.site.helpers.slurm_month import month


def yardstick() -> float:
    """Return the CPU time of y (s)."""
    begun = process_time()
    sum(i * i for i in range(10**7))
    return process_time() - begun


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for (s)."""
    return sum(os.times()[:4])


def main() -> None:
    """Print the times, and the first line of each answer."""
    parser = argparse.ArgumentParser()
    for name, value in (("jobs", 800), ("nodes", 40), ("runs", 0), ("workers", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--load", type=float, default=0.7)
    given = parser.parse_args()
    more = f"NodeName=n[{given.nodes + 1}-{given.nodes * 3 // 2}] CPUs=16"
    asked: list[tuple[str, dict[str, Any]]] = [
        ("PartitionName=batch MaxTime=12:00:00", {"too_long": "cut"}),
        (more, {}),
        ("SchedulerType=sched/builtin", {}),
    ]
    with TemporaryDirectory() as folder:
        site = read_folder(month(Path(folder), given.jobs, given.nodes, load=given.load))
    for text, how in asked:
        begun = process_time()
        found = change(site, [text], phases=2, **how)
        seconds = (process_time() - begun) / 2
        print(f"{text}: {seconds / yardstick():.1f} y a pair; mean wait {found.effects[0].verdict}", flush=True)
        if given.runs:
            with ExitStack() as stack:
                pool = stack.enter_context(worker_pool(given.workers)) if given.workers > 1 else None
                begun = cpu_seconds()
                found = change(site, [text], resample="users", runs=given.runs, executor=pool, **how)
            seconds = (cpu_seconds() - begun) / given.workers
            told = f"{seconds / yardstick():.1f} y each; mean wait {found.effects[0].verdict}"
            print(f"  {given.runs} resampled logs on {given.workers} processes: {told}", flush=True)


if __name__ == "__main__":
    main()
