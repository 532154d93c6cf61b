"""What a replay in chunks with a streamed record costs: peak memory of the process, and CPU microseconds a job.

Run ``python benchmarks/streaming.py [JOBS ...]`` (default: 100,000, 1,000,000 and 10,000,000 jobs, under EASY on 1,024
processors at a load of 0.7). The jobs are drawn chunk by chunk. Each run is a process of its own: its peak memory is
asked for. Ten million jobs take some minutes, and 1 GB of disk.

Measured on one core of a shared machine (yardstick of ``batch.py``: 0.44 s): 1,000,000 jobs 11.6 us CPU a job in 70 MiB
and 5.6 us for the metrics, peak 108 MiB; 10,000,000 jobs 11.6 us in 72 MiB and 6.1 us, peak 111 MiB, record 830 MB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from simmodel import Workload, simulate
from simmodel.work import ChunkedWorkload

PROCESSORS, LOAD = 1024, 0.7
CHUNK = 16_384


def drawn(jobs: int) -> Iterator[Workload]:
    """Draw jobs of one to 64 processors for an hour on average, submitted by 500 users at random instants."""
    sizes = 2 ** np.arange(7)
    gap = 3600 * sizes.mean() / (LOAD * PROCESSORS)
    at = 0.0
    for begin in range(0, jobs, CHUNK):
        rng = np.random.default_rng([7, begin])
        count = min(CHUNK, jobs - begin)
        submit = at + np.cumsum(rng.exponential(gap, count)).round(2)
        at = float(submit[-1])
        run = rng.exponential(3600, count).round(1)
        yield Workload(
            {
                "job": np.arange(begin + 1, begin + count + 1),
                "submit": submit,
                "run": run,
                "processors": sizes[rng.integers(0, len(sizes), count)],
                "requested": run * rng.uniform(1, 5, count),
                "user": rng.integers(1, 501, count),
            }
        )


def measure(jobs: int, path: str) -> None:
    """Run it here, and print CPU seconds and MiB."""
    begin = time.process_time()
    log = ChunkedWorkload(lambda: drawn(jobs), name=f"{jobs:,} drawn jobs", total=jobs)
    result = simulate(PROCESSORS, log, "easy", stream=path)
    ran, ran_in = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = result.metrics()
    assert found["status"] == {"completed": jobs}
    passed, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(ran - begin, ran_in, passed - ran, peak, found["queue_length_max"], found["wait_mean"])


def show(jobs: int) -> None:
    """Run it in a process of its own and print a line."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "record.db")
        command = [sys.executable, __file__, "--here", str(jobs), str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        size = path.stat().st_size / 1e6
    ran, ran_in, metrics, peak, deepest, wait = map(float, done.stdout.split())
    print(
        f"{jobs:12,} jobs: {1e6 * ran / jobs:6.1f} us CPU a job for the run in {ran_in:4.0f} MiB, "
        f"{1e6 * metrics / jobs:5.1f} us for the metrics, peak {peak:4.0f} MiB; "
        f"record {size:6.0f} MB, longest queue {deepest:.0f}, mean wait {wait:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        measure(int(sys.argv[2]), sys.argv[3])
    else:
        for each in map(int, sys.argv[1:] or ("100000", "1000000", "10000000")):
            show(each)
