"""What is sent to the workers of a Dask cluster, and what comes back: bytes on all connections, in sizes of the log.

Run ``python benchmarks/workers.py [JOBS]`` (default: 100,000): 40 simulations on a ``LocalCluster`` of four processes
by ``explore`` (metrics come back), then four by ``compare``, without and with ``results=True``. Every write to a
connection is counted, in the client, the scheduler and the workers: the way of the log to the scheduler, from there
and among the workers, the messages about tasks and results, and the heartbeats.

Measured with distributed 2026.8 and a log of 100,000 jobs (4.8 MB pickled; the result of a run has 11.5 MB): 40
simulations 0.28 to 0.35 logs a worker (heartbeats of a slow machine count; 1.27 before what is sent was compressed),
four policies compared 0.21, with their results 1.30.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simmodel import compare, explore
from simmodel.generators import lublin

WORKERS, SEEDS, PROCESSORS = 4, 20, 256


def count_writes() -> None:
    """Count the bytes that this process writes to its connections from now on."""
    from distributed.comm.tcp import TCP

    write = TCP.write

    async def counted(self: Any, *arguments: Any, **options: Any) -> int:
        size: int = await write(self, *arguments, **options)
        TCP.bytes_written += size
        return size

    TCP.bytes_written, TCP.write = 0, counted


def written() -> int:
    """Return the bytes written so far by this process."""
    from distributed.comm.tcp import TCP

    found: int = TCP.bytes_written
    return found


class Sent:
    """The bytes on all connections of a cluster since the last time they were asked for."""

    def __init__(self, client: Any) -> None:
        self._client, self._before = client, 0
        client.run(count_writes)
        count_writes()

    def since(self) -> int:
        """Return the bytes since this was asked for."""
        now = written() + sum(self._client.run(written).values())
        found, self._before = now - self._before, now
        return found


@contextmanager
def cluster() -> Iterator[Any]:
    """Yield the client of a cluster of processes."""
    from distributed import Client, LocalCluster

    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": ":0", "protocol": "tcp"}
    with LocalCluster(**options) as local, Client(local) as client:
        client.wait_for_workers(WORKERS)
        yield client


def measure(jobs: int) -> None:
    """Print the bytes a worker."""
    log = lublin(jobs, PROCESSORS, seed=1)
    size = len(pickle.dumps(log, protocol=5))
    policies = ["fcfs", "easy"]
    with cluster() as client:
        sent = Sent(client)
        sent.since()
        found = explore(PROCESSORS, {"log": log}, policies, seeds=SEEDS, executor=client.get_executor())
        metrics = sent.since()
        compare(PROCESSORS, log, [*policies, "sjf", "ljf"], executor=client.get_executor())
        compared = sent.since()
        whole = compare(PROCESSORS, log, [*policies, "sjf", "ljf"], executor=client.get_executor(), results=True)
        results = sent.since()
    here = explore(PROCESSORS, {"log": log}, policies, seeds=SEEDS)
    assert all(str(found.samples[name].tolist()) == str(here.samples[name].tolist()) for name in here.samples.names)
    record = len(pickle.dumps(whole.results[0], protocol=5))
    print(f"a log of {jobs:,} jobs, {size / 1e6:.1f} MB; a result of it, {record / 1e6:.1f} MB")
    for what, count in (
        (f"{2 * SEEDS} simulations, their metrics", metrics),
        ("4 policies compared, their metrics", compared),
        ("4 policies compared, their results", results),
    ):
        print(f"{what}: {count / WORKERS / size:6.2f} logs a worker")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if sys.argv[1:] else 100_000)
