"""A plant: a cluster of counted processors in a process of its own, for tests of the twin.

It alone knows how long jobs run. It publishes submissions, starts and ends as events, each instant closed by
``passed``, and starts exactly the jobs that the twin advises, which it reads in the twin's audit log. It needs only
the standard library, apart from what publishes into a stream::

    python -m tests.site.helpers.plant JOBS.json PROCESSORS AUDIT.jsonl STARTS.json EVENTS

``EVENTS`` is a file of JSON lines, or the address of a server that has the stream.

``JOBS.json`` holds rows of id, submission (s), processors, requested time and run time (s), in the order of the queue.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CLUSTER = "plant"
PATIENCE = 120.0  # seconds without advice after which it gives up
Publish = Callable[[list[dict[str, Any]]], object]


class Advices:
    """The advice in an audit log, one after the other, as it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = self._lines()

    def _lines(self) -> Iterator[bytes]:
        while not self.path.exists():
            yield b""
        with open(self.path, "rb") as file:
            cut = b""
            while True:
                line = file.readline()
                if line.endswith(b"\n"):
                    yield cut + line
                    cut = b""
                else:
                    cut += line
                    yield b""

    def next(self) -> dict[str, Any]:
        until, pause = time.monotonic() + PATIENCE, 0.0002
        for line in self.lines:
            if b'"kind":"advice"' in line[:200]:
                found: dict[str, Any] = json.loads(line)["advice"]
                return found
            if not line:
                if time.monotonic() > until:
                    break
                time.sleep(pause)
                pause = min(2 * pause, 0.02)
        raise SystemExit("the plant waited for advice in vain")


def run(jobs: list[list[Any]], processors: int, advices: Advices, publish: Publish) -> dict[str, float]:
    """Run the jobs as advised; return the start of each."""
    coming = sorted(jobs, key=lambda job: job[1])[::-1]
    waiting: dict[Any, list[Any]] = {}
    ends: list[tuple[float, int, Any, float, int]] = []
    starts: dict[str, float] = {}
    free, count, now = processors, 0, 0.0
    sequence = 0
    while coming or ends:
        told = []
        now = min([*([coming[-1][1]] if coming else []), *([ends[0][0]] if ends else [])])
        while ends and ends[0][0] == now:
            _, _, name, submit, width = heapq.heappop(ends)
            free += width
            told.append({"kind": "ended", "job": name, "submit": submit})
        while coming and coming[-1][1] == now:
            job = coming.pop()
            waiting[job[0]] = job
            request = {"processors": job[2], "requested": job[3]}
            told.append({"kind": "submitted", "job": job[0], "submit": job[1], "request": request})
        told.append({"kind": "passed"})
        for event in told:
            sequence += 1
            event.update(cluster=CLUSTER, time=now, sequence=sequence)
        publish(told)
        if not waiting:
            continue
        advice = advices.next()
        assert advice["time"] == now, f"advice for {advice['time']} s at {now} s"
        told = []
        for each in advice.get("starts", ()):
            name, submit, width, _, seconds = waiting.pop(each["job"])
            assert submit == each["submit"]
            free -= width
            assert free >= 0, f"job {name} does not fit at {now} s"
            starts[str(name)] = now
            count += 1
            heapq.heappush(ends, (now + seconds, count, name, submit, width))
            sequence += 1
            told.append(
                {"kind": "started", "job": name, "submit": submit, "cluster": CLUSTER, "time": now}
                | {"sequence": sequence}
            )
        if told:
            publish(told)
    return starts


def into_file(path: Path) -> Publish:
    file = open(path, "a")  # noqa: SIM115 (until the process ends)

    def publish(events: list[dict[str, Any]]) -> None:
        file.write("".join(f"{json.dumps(event)}\n" for event in events))
        file.flush()

    return publish


def into_stream(url: str) -> Publish:
    from simmodel.foundation.errors import InputError
    from simmodel_site.twin import RedisSettings, StreamWriter
    from simmodel_site.twin.events import event_of
    from simmodel_site.twin.streams import stream_key

    writer = StreamWriter(stream_key(CLUSTER), RedisSettings(url=url, password_variable=None))

    def publish(events: list[dict[str, Any]]) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                writer.write(*(event_of(event) for event in events))
                return
            except InputError:  # the server is away; some of the events may have arrived, and then do so twice
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    return publish


def main(words: list[str]) -> None:
    jobs, processors, audit, out, events = words
    publish = into_stream(events) if "://" in events else into_file(Path(events))
    found = run(json.loads(Path(jobs).read_text()), int(processors), Advices(Path(audit)), publish)
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
