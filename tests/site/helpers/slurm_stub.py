"""Stand-ins for Slurm's commands that answer to what reads, and fail and remember on anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.helpers.stand_ins import python_program

ALL = (
    *("squeue", "sinfo", "scontrol", "sacct", "sbatch", "scancel", "srun", "salloc", "sattach", "sbcast", "scrontab"),
    *("sacctmgr", "strigger", "sreport", "sprio", "sshare", "sdiag", "slurmrestd", "slurmctld", "slurmd"),
)
READERS = {"squeue", "sinfo", "sacct"}

PROGRAM = """
import json, os, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
folder = {folder!r}
options = [word for word in words if word.startswith("-")]
verbs = [word for word in words if not word.startswith("-")]
reads = name in {readers!r} and not verbs or name == "scontrol" and verbs[:1] in (["show"], ["ping"])
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(json.dumps([reads, name, *words]) + "\\n")
if not reads:
    sys.exit(name + ": this would change something: " + " ".join(words))
with open(os.path.join(folder, "rows.json")) as file:
    rows = json.load(file)
if name == "scontrol" and verbs[:2] == ["show", "job"]:
    found = [row for row in rows["squeue"] if verbs[2:] in ([], [row["A"]], [row["F"] + "_" + row["K"]])]
    if verbs[2:] and not found:
        sys.exit("slurm_load_jobs error: Invalid job id specified")
    for row in found:
        task = " ArrayJobId=" + row["F"] + " ArrayTaskId=" + row["K"] if row["K"] != "N/A" else ""
        print("JobId=" + row["A"] + task + " JobName=" + row["j"] + "\\n   JobState=" + row["T"] + "\\n")
if name == "scontrol" and verbs == ["show", "config"]:
    print(rows["config"])
told = [row for row in rows.get(name, ()) if "--states=PENDING" not in options or row["T"] == "PENDING"]
heading = dict.fromkeys({letters!r}.split(), "HEADING")
for text in [word.partition("=")[2] for word in options if word.lower().startswith("--format=")]:
    for row in [*([] if "--noheader" in options else [heading]), *told]:
        line = text.replace(",ArrayTaskID:24", "%K").replace("JobID:24", "%A").replace(",admin_comment:40", "%k")
        if "--array" not in options and "limit" in row:
            row = {{**row, "K": row["limit"]}}  # of the tasks that wait, and how many may run at once
        for letters, value in row.items():
            line = line.replace("%" + letters, value.replace("%", "\\0"))
        sys.stdout.write(line.replace("\\0", "%") + "\\n")
"""

_LETTERS = "A F K T V S e l D C c v m b W h Q r E P N u a q j k n x f"
_VALUES = (
    "7 7 N/A PENDING 1700000000 N/A N/A 10:00 2 8 1 (null) 0 N/A (null) OK 5 Priority (null) batch - ada (null) "
    "normal sim (null) (null) (null) (null)"
)
JOB: Mapping[str, str] = {**dict(zip(_LETTERS.split(), _VALUES.split(), strict=True)), "N": ""}
"""A pending job as squeue tells it, by the letters of its format."""


NODE: Mapping[str, str] = {"N": "n1", "T": "idle", "c": "4", "m": "2000", "P": "batch*"}
"""A node as sinfo tells it."""


def write_stub(
    folder: Path,
    jobs: Sequence[Mapping[str, str]] = (),
    nodes: Sequence[Mapping[str, str]] = (NODE,),
    config: str = "",
) -> None:
    """Write the commands, and what squeue and sinfo tell: rows with values by the letters of the format."""
    program = python_program(PROGRAM.format(folder=str(folder), readers=READERS, letters=_LETTERS))
    for name in ALL:
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    rows = {"squeue": list(map(dict, jobs)), "sinfo": [{**NODE, **row} for row in nodes], "config": config}
    (folder / "rows.json").write_text(json.dumps(rows))


def calls(folder: Path) -> list[tuple[bool, list[str]]]:
    """Return the commands that were run, each with whether it only reads."""
    path = folder / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(reads, words) for reads, *words in map(json.loads, lines)]
