"""Fresh schedules of a real Slurm, replayed from its own slurm.conf and accounting."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from simmodel.twin.slurm.site.folder import read_folder
from simmodel.twin.slurm.site.replayed import replay
from tests.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, wait_until

pytestmark = pytest.mark.live

COMMON = {
    "SchedulerType": "sched/backfill",
    "JobCompType": "jobcomp/filetxt",
    "JobCompLoc": "{folder}/jobcomp.txt",
}
TIERS = (
    "PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP\n"
    "PartitionName=high Nodes=n[1-5] PriorityTier=10 MaxTime=2 State=UP"
)
ONE = "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
RUNS: Mapping[str, tuple[str, str]] = {
    "defaults": ("bf_max_time=60", ONE),
    "tiers": ("bf_max_time=60,bf_interval=10", TIERS),
    "quick": ("bf_max_time=60,bf_interval=20,batch_sched_delay=1", ONE),
}


def recorded(name: str, folder: Path, seed: int, count: int = 40) -> None:
    """Let a real Slurm run jobs that are drawn, and keep its files."""
    parameters, partitions = RUNS[name]
    drawn = Random(seed)
    cluster = SlurmCluster(8, 1, {**COMMON, "SchedulerParameters": parameters}, partitions)
    rows = []
    try:
        cluster.start()
        time.sleep(2)
        for _ in range(count):
            nodes = drawn.choice((1, 1, 1, 2, 2, 3, 4, 5, 8))
            high = ["-p", "high"] if name == "tiers" and nodes <= 5 and drawn.random() < 0.3 else []
            limit = drawn.choice((1, 2) if high else (1, 2, 3))
            options = [*high, "-N", str(nodes), "-t", str(limit)]
            seconds = drawn.uniform(2, 12)
            at = time.time()
            rows.append((cluster.submit(*options, seconds=seconds), at, seconds, " ".join(options)))
            time.sleep(drawn.expovariate(1 / 1.2))
        wait_until(lambda: not cluster.run("squeue", "-h", "-o", "%i").split(), 200, "the end of all jobs")
        (folder / "slurm.conf").write_text(cluster.conf.read_text())
        (folder / "jobcomp.txt").write_text((cluster.folder / "jobcomp.txt").read_text())
    finally:
        cluster.stop()
    with (folder / "submissions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("job", "submitted", "seconds", "options"), *rows])


def test_three_fresh_runs_are_replayed(tmp_path: Path) -> None:
    """They run beside each other. The loops make nearly all recorded starts, from the state that the record led to.

    What is recorded tells neither the phases of the loops nor parts of seconds: a schedule that runs free drifts away.
    """
    require(*PROGRAMS)
    folders = {name: tmp_path / name for name in RUNS}
    for folder in folders.values():
        folder.mkdir()
    with ThreadPoolExecutor(len(RUNS)) as pool:
        list(pool.map(recorded, folders, folders.values(), range(len(RUNS))))
    for folder in folders.values():
        site = read_folder(folder)
        assert len(site.recorded) == 40
        assert site.unsupported == ()
        found = replay(site)
        waits = [float((found.jobs[each] - found.jobs["submit"]).mean()) for each in ("recorded", "simulated")]
        assert len(found.departures or ()) <= 2
        assert found.order >= 0.85
        assert waits[1] == pytest.approx(waits[0], rel=0.3)
