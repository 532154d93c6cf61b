"""SchedTwin's workload on a real Slurm of 32 virtual nodes, in a hundredth of its time, under a twin that acts."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from time import sleep, time
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from simmodel.generators import schedtwin
from simmodel.records import JobRecord
from simmodel_site.twin import read_audit, replay_audit
from simmodel_site.twin.audit_replay import AuditReplay
from tests.site.helpers.acting_plant import ActingPlant, acting_plant
from tests.site.helpers.redis_server import stream_of
from tests.site.helpers.slurm_cluster import SlurmCluster, hooked, running, wait_until

FASTER = 100.0  # the paper's times are divided by this
POLICIES = {
    "wfp": "wfp+easy",
    "fcfs": "fcfs+easy",
    "sjf": "sjf+easy",
    "portfolio": "portfolio(wfp, fcfs, sjf, backfill=easy)",
}
SCRIPT = """#!/bin/sh
echo begin $SLURM_JOB_ID $(date +%s.%N) >> {file}
sleep {seconds:.3f}
echo end $SLURM_JOB_ID $(date +%s.%N) >> {file}
"""


class LiveRun(NamedTuple):
    """A run: its jobs, in the paper's times, what the replay of its audit log found, and the longest time held (s)."""

    record: JobRecord
    replay: AuditReplay
    runs: Counter[str]
    released: int
    longest: float


def live_run(policy: str, folder: Path, *, seed: int = 0, jobs: int | None = None, delay: float = 600.0) -> LiveRun:
    """Run the workload, or its first jobs, on a cluster of its own."""
    log = schedtwin(seed=seed)
    rows = [(int(log["processors"][i]), float(log["run"][i]) / FASTER) for i in range(jobs or len(log))]
    cluster = hooked(SlurmCluster(), delay)
    where = {name: cluster.environment[name] for name in ("SLURM_CONF", "PATH")}
    with (
        patch.dict(os.environ, where),
        running(cluster),
        stream_of(cluster) as stream,
        acting_plant(cluster, folder, POLICIES[policy], maximum_delay=delay, stream=stream) as plant,
    ):
        plant.start("watchdog")
        plant.start("twin")
        submitted = _submit(plant, rows)
        wait_until(lambda: not cluster.unfinished(), 600, plant.story)
        plant.kill("twin", signal.SIGTERM)
        plant.kill("watchdog", signal.SIGTERM)
        return _read(plant, folder, rows, submitted, policy)


def _submit(plant: ActingPlant, rows: list[tuple[int, float]]) -> dict[str, float]:
    """Submit a job every 50 ms, or as fast as Slurm takes them."""
    first, submitted = time(), {}
    for number, (nodes, seconds) in enumerate(rows):
        sleep(max(0.0, first + number * 5.0 / FASTER - time()))
        at = time()
        script = SCRIPT.format(file=plant.ran, seconds=seconds)
        submitted[plant.submit_script(script, nodes, seconds)] = at
    return submitted


def _read(
    plant: ActingPlant, folder: Path, rows: list[tuple[int, float]], submitted: dict[str, float], policy: str
) -> LiveRun:
    begun: dict[str, float] = {}
    ended: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for line in plant.ran.read_text().splitlines():
        what, job, at = line.split()
        counts[job] += what == "begin"
        (begun if what == "begin" else ended)[job] = float(at)
    by: dict[str, str] = {}
    decided, released = {}, 0
    for line in read_audit(folder / "audit.jsonl"):
        if line.kind == "advice":
            decided[line.values["advice"]["number"]] = line.values["advice"]["policy"]
        elif line.kind == "action" and line.values["action"]["command"] == "release":
            released += 1
            by[str(line.values["action"]["job"])] = decided[line.values["action"]["advice"]]
    first = min(submitted.values())
    names = list(submitted)

    def scaled(times: dict[str, float]) -> list[float]:
        return [FASTER * (times[name] - first) for name in names]

    record = JobRecord(
        name=policy,
        processors=32,
        jobs={
            "job": np.arange(1, len(names) + 1),
            "submit": scaled(submitted),
            "start": scaled(begun),
            "end": scaled(ended),
            "processors": [nodes for nodes, _ in rows],
            "requested": [FASTER * seconds for _, seconds in rows],
            "started_by": [by.get(name, "") for name in names],
        },
    )
    longest = max(begun[name] - submitted[name] for name in names)
    return LiveRun(record, replay_audit(folder / "audit.jsonl"), counts, released, longest)
