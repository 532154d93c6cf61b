"""What an event costs on its way from a Redis stream through the source into the mirror, and what that keeps.

Run ``python benchmarks/twin_stream.py [EVENTS]`` (default: 60,000). The server is ``redis-server`` if that is
installed, else the embedded one. Machines are noisy: figures are CPU microseconds by the CPU seconds of the yardstick
beside them (``y``), which is measured in the same run. Limit: 200 an event, read by the thousand.

Measured on two cores with Redis 7.0, redis-py 8.1: by the thousand 63 to 107 an event, the source 36 to 63; one
by one 144 to 342, of which the source 83 to 229, more where nothing else keeps the cores awake (40 for redis-py to read
an answer; hiredis, if installed, does that in C; the rest is for caches that are cold after each wait).
Memory does not grow in the second half of 1,000,000.
"""

from __future__ import annotations

import heapq
import random
import resource
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simmodel_site.twin import Demand, Ended, Event, Mirror, RedisSettings, Started, StreamWriter, Submitted
from simmodel_site.twin.sources.stream import EmbeddedServer, StreamSource

PROCESSORS, WIDTH, WAITING = 1000, 4, 1000


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def events() -> Iterator[Event]:
    """Yield the events of a full cluster under FCFS, with a thousand jobs in the queue."""
    rng = random.Random(1)
    submit: dict[int, float] = {}
    running: list[tuple[float, int]] = []
    waiting: deque[int] = deque()
    now, job, free = 0.0, 0, PROCESSORS

    def about(job: int) -> dict[str, Any]:
        return {"cluster": "alps", "job": job, "submit": submit[job], "time": now}

    while True:
        while len(waiting) < WAITING:
            job += 1
            now += 0.5
            submit[job] = now
            waiting.append(job)
            yield Submitted(**about(job), request=Demand(processors=WIDTH, requested=3600.0, user=f"u{job % 50}"))
        while free >= WIDTH:
            started = waiting.popleft()
            free -= WIDTH
            heapq.heappush(running, (now + rng.uniform(10, 3000), started))
            yield Started(**about(started))
        end, ended = heapq.heappop(running)
        now = max(now, end)
        free += WIDTH
        yield Ended(**about(ended))
        del submit[ended]


@contextmanager
def server() -> Iterator[RedisSettings]:
    """Yield how to reach a server."""
    program = shutil.which("redis-server")
    if program is None:
        with EmbeddedServer() as embedded:
            yield embedded.settings
        return
    with TemporaryDirectory(prefix="simmodel-") as folder:
        path = Path(folder, "socket")
        words = [
            program,
            "--port",
            "0",
            "--unixsocket",
            str(path),
            "--dir",
            folder,
            "--save",
            "",
            "--appendonly",
            "yes",
        ]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while not path.exists():
            time.sleep(0.01)
        yield RedisSettings(url=f"unix://{path}", password_variable=None)
        process.kill()
        process.wait()


def measure(settings: RedisSettings, count: int, batch: int, y: float) -> None:
    """Write events in batches, read each batch at once into the mirror, and print what reading costs."""
    writer = StreamWriter(f"alps:{batch}", settings, longest=10_000)
    source, mirror = StreamSource("alps", settings, writer.stream), Mirror(PROCESSORS, "alps")
    mirror.snapshot()
    told, reading, applying, done, before = events(), 0.0, 0.0, 0, 0
    while done < count:
        writer.write(*islice(told, batch))
        begin = time.process_time()
        found = source.events(0)
        read = time.process_time()
        for event in found:
            mirror.apply(event)
        reading, applying = reading + read - begin, applying + time.process_time() - read
        done += len(found)
        before = before or (resident() if done >= count // 2 else 0)
    assert not mirror.refused
    assert source.gaps == 0
    each = 1e6 / done / y
    print(f"{done:,} events in batches of {batch:,}: {each * (reading + applying):.0f} us CPU / y an event,", end=" ")
    print(f"the source {each * reading:.0f}; {resident() - before:+d} MiB in the second half", flush=True)
    source.close()
    writer.close()


def resident() -> int:
    """MiB that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 2**20


def main(count: int) -> None:
    y = yardstick()
    print(f"yardstick: {y:.3f} s")
    with server() as settings:
        measure(settings, count, 1000, y)
        measure(settings, count // 10, 1, y)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000)
