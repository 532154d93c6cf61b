"""Many runs of one log: in one process, and on a Dask ``LocalCluster`` of two.

Run ``python benchmarks/ensembles.py [RUNS] [JOBS]`` (default: 200 runs of 10,000 jobs). The CPU seconds of the runs
alone and of each process are printed beside the times on the clock: on a computer that others use, too, the clock says
little, and the busiest process is how long it would take with a core for each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np

from simmodel import Workload, replicate, simulate
from simmodel.generators import lublin


def run(log: Workload, seed: int) -> dict[str, float]:
    """Run the log under EASY, and return its metrics and the CPU seconds that it took."""
    before = thread_time()
    found = simulate(256, log, "easy", seed=seed).numbers()
    return {**found, "cpu": thread_time() - before}


def cpu_of(process: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def measured(name: str, workers: list[int]) -> Iterator[None]:
    """Print the time on the clock and the CPU seconds of this process and of workers."""
    clock, own, before = perf_counter(), process_time(), [cpu_of(each) for each in workers]
    yield
    busy = ", ".join(f"{cpu_of(each) - start:.1f}" for each, start in zip(workers, before, strict=True))
    of = f", workers {busy} s" if workers else ""
    here = f"{process_time() - own:.1f}"
    print(f"{name}: {perf_counter() - clock:.1f} s on the clock; CPU: here {here} s{of}", flush=True)


def main(runs: int, jobs: int) -> None:
    """Run both, and compare the results."""
    from distributed import Client, LocalCluster

    function = partial(run, lublin(jobs, 256, seed=1))
    print(f"{runs} runs of {jobs:,} jobs; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with measured("one process", []):
        here = replicate(function, runs)
    cluster: Any = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        with measured("Dask with two", list(client.run(os.getpid).values())):
            far = replicate(function, runs, executor=client.get_executor())
    for name, found in (("one process", here), ("Dask", far)):
        print(f"{name}: the runs alone took {found.samples['cpu'].sum():.1f} s of CPU")
    names = [name for name in here.samples.names if name != "cpu" and "decision" not in name]
    print("equal:", all(np.array_equal(here.samples[name], far.samples[name], equal_nan=True) for name in names))


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(*given, *(200, 10_000)[len(given) :])
