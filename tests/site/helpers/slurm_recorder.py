"""Records runs of a real slurmctld as those below SIMMODEL_DATA are recorded: from its log, with all cycles."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.site.helpers.slurm_cluster import SlurmCluster, wait_until
from tests.site.helpers.slurm_decisions import named
from tests.site.helpers.slurm_runs import Line, Recorded

LOGGED = {"LogTimeFormat": "iso8601_ms", "SlurmctldDebug": "debug2", "DebugFlags": "Backfill"}
"""The settings of slurm.conf under which the log tells each cycle."""

_EVENTS = {"backfill": "cycle begins", "over": "cycle ends", "main start": "started", "backfill start": "started"}
_EVENTS |= {what: what for what in ("submitted", "ended", "preempted", "requeued")}
"""The events of a run by the lines of its log."""

_OWN = {"SlurmctldHost", "SlurmUser", "SlurmdUser", "SlurmctldPort", "StateSaveLocation"}
_OWN |= {"SlurmctldPidFile", "SlurmdPidFile", "SlurmdSpoolDir", "SlurmctldLogFile", "SlurmdLogFile"}


class Asked(NamedTuple):
    """A submission: seconds after the one before, options of sbatch, seconds that it sleeps."""

    after: float
    options: str
    seconds: float


def record(cluster: SlurmCluster, jobs: Sequence[Asked], folder: Path, *, begin: float = 2.0) -> Recorded:
    """Let a cluster run jobs and keep its files in a folder.

    In the options ``{0}`` is the id of the first job, and so on; ``begin``: seconds before the first submission.
    """
    rows: list[tuple[int, str, float, str]] = []
    try:
        cluster.start()
        due = time.time() + begin
        for after, text, seconds in jobs:
            due += after
            time.sleep(max(0.0, due - time.time()))
            options, at = text.format(*(job for job, *_ in rows)), time.time()
            rows.append((cluster.submit(*options.split(), seconds=seconds), f"{at:.3f}", seconds, options))
        for what, name in (("config", "config"), ("nodes", "node"), ("partitions", "partition")):
            (folder / f"scontrol_{what}.txt").write_text(cluster.run("scontrol", "show", name))
        wait_until(lambda: not cluster.unfinished(), 600, "the end of all jobs")
        log = (cluster.folder / "slurmctld.log").read_text(errors="replace")
        for name in ("slurm.conf", "jobcomp.txt", "topology.conf"):
            if (cluster.folder / name).exists():
                shutil.copy(cluster.folder / name, folder / name)
    finally:
        cluster.stop()
    with gzip.open(folder / "slurmctld.log.gz", "wt") as packed:
        packed.write(log)
    for name, head, found in (
        ("submissions", "job submitted seconds options", rows),
        ("events", "time what job task nodes note", events_of(Recorded(folder).lines())),
    ):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([head.split(), *found])
    return Recorded(folder)


def events_of(lines: Iterable[Line]) -> Iterator[tuple[str, ...]]:
    """Yield the events of the lines of a log: instant, what, job, task of an array, nodes, and a note."""
    for at, what, words in lines:
        if what in _EVENTS:
            job, more, *_ = (*words, "", "")
            name, number = named(job)
            task = name if "_" in name else ""
            start = what.endswith(" start")
            note = what.removesuffix(" start") if start else f"prio={more}" if what == "submitted" else ""
            yield f"{at:.3f}", _EVENTS[what], number, task, more if start else "", note


def like(run: Recorded, seed: int, **settings: str) -> tuple[SlurmCluster, list[Asked]]:
    """Return a cluster of the configuration of a recorded run, and as many jobs, drawn anew from its own.

    Gaps, options and sleeps are drawn one by one; jobs that wait for others wait for some of the last dozen.
    """
    drawn = Random(f"{run.name} {seed}")
    conf: dict[str, Any] = {}
    partitions, extra, cpus = [], [], 1
    for line in (run.folder / "slurm.conf").read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "NodeName":
            cpus = int(line.partition(" CPUs=")[2].split()[0])
        elif name in ("PartitionName", "Licenses"):
            (partitions if name == "PartitionName" else extra).append(line)
        elif value and not line.startswith("#") and name not in _OWN:
            conf[name] = value
    topology = run.folder / "topology.conf"
    files = {topology.name: topology.read_text()} if topology.exists() else {}
    nodes = len(run.site.nodes or ())
    cluster = SlurmCluster(nodes, cpus, conf | settings, "\n".join(partitions), "\n".join(extra), files)
    with (run.folder / "submissions.csv").open() as file:
        rows = list(csv.DictReader(file))
    at = [float(row["submitted"]) for row in rows]
    jobs = []
    for i in range(len(rows)):
        options = drawn.choice(rows)["options"]
        other = f"afterany:{{{drawn.randrange(max(i - 12, 0), i)}}}" if i else ""
        options = re.sub(r"afterany:\d+" if i else r"-d afterany:\d+", other, options)
        k = drawn.randrange(1, len(at))
        jobs.append(Asked(at[k] - at[k - 1], options, float(drawn.choice(rows)["seconds"])))
    return cluster, jobs
