"""A twin of a real Slurm under load: SchedTwin's 150 jobs with all times divided by 100, on 32 nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simmodel.generators.phased import schedtwin
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.toml import write_toml
from simmodel_site.twin.audit import read_audit
from simmodel_site.twin.audit_replay import replay_audit
from simmodel_site.twin.events import event_of
from simmodel_site.twin.mirror.mirror import Mirror
from tests.helpers.paths import ROOT
from tests.site.helpers.redis_server import RedisServer
from tests.site.helpers.slurm_cluster import SlurmCluster, wait_until
from tests.site.helpers.told_lives import told_of

pytestmark = pytest.mark.live

SCALE = 100
PLATFORM = ClusterSpec(
    name="virtual",
    partitions=[PartitionSpec(name="batch", nodes=[NodeSpec(names="n[1-32]", count=32, cores=4)])],
)
CONFIG = """
cluster = "virtual"
platform = "platform.toml"
policy = "fcfs"
audit = "audit.jsonl"

[source]
kind = "slurm"
interval = 5.0
requested = "comment"
wake = {{ kind = "redis", url = "{url}" }}

[advise]
policy = "portfolio(wfp, fcfs, sjf, backfill=easy, objective=schedtwin)"
fallback = "fcfs"
"""


@contextmanager
def twin_of(folder: Path, stream: RedisServer) -> Iterator[subprocess.Popen[str]]:
    """Run a twin in a process of its own."""
    write_toml(PLATFORM, folder / "platform.toml")
    (folder / "twin.toml").write_text(CONFIG.format(url=stream.settings.url))
    command = [sys.executable, "-m", "simmodel", "twin", "run", str(folder / "twin.toml")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=-1, stderr=subprocess.STDOUT, text=True) as twin:
        try:
            yield twin
        finally:
            twin.kill()


def submit_all(slurm: SlurmCluster) -> dict[int, float]:
    """Submit the jobs at their times, and return the seconds that each may run."""
    log, began = schedtwin(), time.monotonic()
    walltimes = {}
    columns = (log["submit"], log["run"], log["requested"], log["processors"])
    for submit, run, requested, nodes in zip(*(column.tolist() for column in columns), strict=True):
        time.sleep(max(0.0, began + submit / SCALE - time.monotonic()))
        options = (f"-N{int(nodes)}", "--exclusive", "-t1", f"--comment={requested / SCALE:g}")
        walltimes[slurm.submit(*options, seconds=run / SCALE)] = requested / SCALE
    return walltimes


def mirrored(audit: Path) -> Mirror:
    """Return the mirror that the events of an audit log lead to."""
    mirror = Mirror(PLATFORM, "virtual")
    for record in read_audit(audit):
        if record.kind == "event":
            mirror.apply(event_of(record.values["event"]))
    return mirror


def test_every_job_of_schedtwins_workload_is_mirrored_through_its_life(
    slurm: SlurmCluster, slurm_stream: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with twin_of(tmp_path, slurm_stream) as twin:
        assert twin.stdout is not None
        assert twin.stdout.readline().startswith("following virtual")
        walltimes = submit_all(slurm)
        wait_until(lambda: not slurm.unfinished(), 540)
        time.sleep(4.0)  # until the twin has been told of the last end
        twin.send_signal(signal.SIGTERM)
        said, _ = twin.communicate(timeout=60)
    assert twin.returncode == 0, said
    mirror = mirrored(tmp_path / "audit.jsonl")
    changes = told_of(mirror)
    once = dict.fromkeys(("submitted", "started", "ended"), 1)
    wrong = {job: told for job in walltimes if (told := {k: n for (j, k), n in changes.items() if j == job}) != once}
    assert not wrong
    assert not mirror.refused
    told = slurm.run("squeue", "-h", "-t", "all", "-o", "%A %S %e").splitlines()
    for job, start, end in (line.split() for line in told if int(line.split()[0]) in walltimes):
        entry = mirror.entry(int(job))
        assert entry is not None
        assert entry.request.requested == walltimes[int(job)]
        assert (entry.state.first_start, entry.state.ended) == (float(start), float(end))
    found = replay_audit(tmp_path / "audit.jsonl")
    assert (found.decisions - found.reproduced, found.first) == (0, "")
    cycles = [r.values["advice"]["seconds"] for r in read_audit(tmp_path / "audit.jsonl") if r.kind == "advice"]
    assert len(cycles) == found.decisions > 50
    with capsys.disabled():
        mean, worst = 1e3 * sum(cycles) / len(cycles), 1e3 * max(cycles)
        print(
            f"\n{len(cycles)} decisions for Slurm: mean {mean:.1f} ms, worst {worst:.1f} ms, by the fallback "
            f"{found.fallbacks}"
        )
