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
given = [word for word in options if word.startswith("--format=")]
if given and name in rows:
    for row in rows[name]:
        text = given[0].partition("=")[2]
        for letters, value in row.items():
            text = text.replace("%" + letters, value.replace("%", "\\0"))
        sys.stdout.write(text.replace("\\0", "%") + "\\n")
"""

_LETTERS = "A F K T V S e l D C c v m b W h Q r E P N u a q j k"
_VALUES = (
    "7 7 N/A PENDING 1700000000 N/A N/A 10:00 2 8 1 (null) 0 N/A (null) OK 5 Priority (null) batch - ada (null) "
    "normal sim (null)"
)
JOB: Mapping[str, str] = {**dict(zip(_LETTERS.split(), _VALUES.split(), strict=True)), "N": ""}
"""A pending job as squeue tells it, by the letters of its format."""


def write_stub(folder: Path, jobs: Sequence[Mapping[str, str]] = (), nodes: Sequence[Mapping[str, str]] = ()) -> None:
    """Write the commands, and what squeue and sinfo tell: rows with values by the letters of the format."""
    program = python_program(PROGRAM.format(folder=str(folder), readers=READERS))
    for name in ALL:
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    (folder / "rows.json").write_text(
        json.dumps({"squeue": [dict(row) for row in jobs], "sinfo": list(map(dict, nodes))})
    )


def calls(folder: Path) -> list[tuple[bool, list[str]]]:
    """Return the commands that were run, each with whether it only reads."""
    path = folder / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(reads, words) for reads, *words in map(json.loads, lines)]
