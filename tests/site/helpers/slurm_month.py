"""A generated site of Slurm: jobs of several users, partitions, QOS and accounts, whose record EASY has made."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from simmodel import Job, simulate

__all__ = ["month"]

_BEGIN = datetime(2024, 5, 1)
_CONF = """
ClusterName=month
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightPartition=500
NodeName=n[1-{nodes}] CPUs=16
PartitionName=batch Nodes=ALL Default=YES MaxTime=2-0
PartitionName=short Nodes=ALL MaxTime=4:00:00 PriorityJobFactor=10
"""
_HEAD = "JobID|Submit|Start|End|Timelimit|ReqCPUS|State|User|Account|Partition|QOS|NodeList|SubmitLine"


def month(folder: Path, jobs: int = 800, nodes: int = 40, *, load: float = 0.7, seed: int = 1) -> Path:
    """Write slurm.conf and the accounting of jobs of whole nodes into a folder, and return it."""
    rng = np.random.default_rng(seed)
    user = rng.zipf(1.5, jobs) % 30
    size = np.minimum(2 ** rng.integers(0, 6, jobs), nodes)
    run = np.minimum(rng.lognormal(8.7, 1.3, jobs), 40 * 3600).astype(int) + 1
    hours = np.ceil(np.minimum(run * rng.uniform(1.1, 4, jobs), 48 * 3600) / 3600).astype(int)
    submit = np.sort(rng.uniform(0, (size * run).sum() / (nodes * load), jobs)).astype(int)
    short = hours <= 4
    given = [
        Job(id=i + 1, submit=int(submit[i]), run=int(run[i]), processors=int(size[i]), requested=3600 * int(hours[i]))
        for i in range(jobs)
    ]
    starts = simulate(nodes, given, "easy").jobs["start"].astype(int)
    lines = [_HEAD]
    for i in range(jobs):
        came, began, ended = (
            (_BEGIN + timedelta(seconds=int(at))).isoformat() for at in (submit[i], starts[i], starts[i] + run[i])
        )
        lines.append(
            f"{i + 1}|{came}|{began}|{ended}|{hours[i]}:00:00|{16 * size[i]}|COMPLETED|u{user[i]}|a{user[i] % 4}|"
            f"{'short' if short[i] else 'batch'}|{'high' if i % 9 == 0 else 'normal'}||"
            f"sbatch -N {size[i]} --exclusive run.sh"
        )
    (folder / "slurm.conf").write_text(_CONF.format(nodes=nodes))
    (folder / "jobs.txt").write_text("\n".join(lines) + "\n")
    return folder
