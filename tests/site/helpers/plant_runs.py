"""Runs of a plant and a twin, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simmodel import Workload
from simmodel.work.prepare import prepare
from tests.helpers.paths import ROOT
from tests.site.helpers.plant import CLUSTER

CONFIG = """\
cluster = "{cluster}"
platform = "machine.toml"
audit = "audit.jsonl"
clock = "events"

[source]
{source}

[advise]
policy = "{policy}"
when = "passed"
"""
LINES = 'kind = "lines"\npath = "events.jsonl"'


def jobs_of(workload: Workload, processors: int) -> list[list[Any]]:
    """Return rows of id, submission, processors, requested and run time (s), as they are simulated."""
    ready = prepare(workload, processors)
    columns = (workload["job"], ready.submit, ready.processors, ready.requested, ready.duration)
    return [[column[row].item() for column in columns] for row in ready.rows]


def prepare_folder(folder: Path, processors: int, policy: str, source: str = LINES) -> None:
    """Write the configuration of a twin and its platform."""
    (folder / "twin.toml").write_text(CONFIG.format(cluster=CLUSTER, source=source, policy=policy))
    (folder / "machine.toml").write_text(f'kind = "cluster"\n[[partitions]]\nprocessors = {processors}\n')


def begin(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Start a Python process in which the package and the tests can be imported."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *words], env=environment, text=True, **options)


def begin_twin(folder: Path, **options: Any) -> subprocess.Popen[str]:
    """Start the twin of a folder."""
    return begin("-m", "simmodel", "twin", "run", str(folder / "twin.toml"), stdout=subprocess.PIPE, **options)


def begin_plant(folder: Path, jobs: list[list[Any]], processors: int, events: str = "") -> subprocess.Popen[str]:
    """Start the plant of a folder; ``events``: where they go, by default the file ``events.jsonl``."""
    (folder / "jobs.json").write_text(json.dumps(jobs))
    names = ("jobs.json", "audit.jsonl", "starts.json", "events.jsonl")
    work, audit, starts, file = (str(folder / name) for name in names)
    return begin("-m", "tests.site.helpers.plant", work, str(processors), audit, starts, events or file)


@contextmanager
def ending(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """Kill processes that still run at the end."""
    try:
        yield
    finally:
        for each in processes:
            each.kill()
            each.wait()
            for stream in (each.stdout, each.stderr):
                if stream is not None:
                    stream.close()


def stop(twin: subprocess.Popen[str]) -> str:
    """Let a twin end, and return what it printed."""
    twin.send_signal(signal.SIGTERM)
    said, _ = twin.communicate(timeout=60)
    assert twin.returncode == 0
    return said


def starts_of(folder: Path) -> dict[str, float]:
    """Return the starts (s) of the plant, by job."""
    found: dict[str, float] = json.loads((folder / "starts.json").read_text())
    return found


def plant_run(
    folder: Path, workload: Workload, processors: int, policy: str, source: str = LINES, events: str = ""
) -> dict[str, float]:
    """Run a plant under the advice of a twin; return the start of each job (s)."""
    prepare_folder(folder, processors, policy, source)
    twin = begin_twin(folder)
    plant = begin_plant(folder, jobs_of(workload, processors), processors, events)
    with ending(twin, plant):
        assert plant.wait(timeout=600) == 0
        stop(twin)
    return starts_of(folder)
