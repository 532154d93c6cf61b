"""The accounting of recorded runs of Slurm as sacct prints it, and folders of a site's files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path

FIELDS = (
    "JobID|Submit|Eligible|Start|End|TimelimitRaw|AllocCPUS|State|ExitCode|User|Partition|ReqTRES|NodeList|SubmitLine"
)

CONF = """
ClusterName=small
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
Licenses=matlab:2
NodeName=n[1-4] CPUs=4 RealMemory=2000
PartitionName=batch Nodes=ALL Default=YES
PartitionName=fast Nodes=n[1-2] PriorityTier=10
"""

HEAD = "JobID|Submit|Start|End|Timelimit|ReqCPUS|State|User|Partition|QOS|SubmitLine"


def sacct_line(
    job: int | str, options: str = "", *, submit: int = 0, start: int | None = None, run: int = 60, more: str = "batch|"
) -> str:
    """Return a line of the fields of ``HEAD``; instants in seconds after noon."""

    def at(seconds: int) -> str:
        return f"2024-05-01T{12 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    began = submit if start is None else start
    return f"{job}|{at(submit)}|{at(began)}|{at(began + run)}|00:10:00|1|COMPLETED|ann|{more}|sbatch {options} run.sh"


def site_folder(folder: Path, lines: Iterable[str], conf: str = CONF) -> Path:
    """Write slurm.conf and the lines of sacct into a folder, and return it."""
    (folder / "slurm.conf").write_text(conf)
    (folder / "jobs.txt").write_text("\n".join([HEAD, *lines]) + "\n")
    return folder


def sacct_of(run: Path) -> str:
    """Return what sacct would print of a recorded run, by its jobcomp.txt and submissions.csv."""
    with (run / "submissions.csv").open() as file:
        options = {row["job"]: row["options"] for row in csv.DictReader(file)}
    lines = [FIELDS]
    for line in (run / "jobcomp.txt").read_text().splitlines():
        cells = dict(re.findall(r"(\w+)=(\S*)", line))
        array = cells.get("ArrayJobId", cells["JobId"])
        name = f"{array}_{cells['ArrayTaskId']}" if "ArrayTaskId" in cells else array
        values = [cells[key] for key in ("SubmitTime", "EligibleTime", "StartTime", "EndTime", "TimeLimit", "ProcCnt")]
        rest = (cells["JobState"], cells["ExitCode"], "slurm", cells["Partition"], cells["Tres"], cells["NodeList"])
        lines.append("|".join([name, *values, *rest, f"sbatch --parsable -o /dev/null {options[array]}"]))
    return "\n".join(lines) + "\n"
