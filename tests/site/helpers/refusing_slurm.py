"""Commands of Slurm that note what they are asked for, and fail on anything outside the list of a mode."""

from __future__ import annotations

from pathlib import Path

from simmodel_site.twin.acting.actions import HELD, Mode
from simmodel_site.twin.slurm.commands import SlurmCommands
from simmodel_site.twin.slurm.source import SlurmHands

SQUEUE = """#!/bin/sh
echo "squeue $*" >> {folder}/asked
cat {folder}/rows
"""
SCONTROL = """#!/bin/sh
echo "scontrol $*" >> {folder}/asked
case "$*" in
{allowed}
*) echo "forbidden: $*" >> {folder}/forbidden; exit 1 ;;
esac
"""
ALLOWED = {
    "observe": "",
    "advise": "",
    "priority": '"update JobId="*" Nice="*" AdminComment="*) exit 0 ;;',
    "hold-and-release": '"update JobId="*" StartTime=now AdminComment=simmodel-released@"*) exit 0 ;;',
}
ROW = ("7", "7", "N/A", "PENDING", "60", "99999999999", "0", f"{HELD}@99999999999")


class Stub:
    """A folder of such commands."""

    def __init__(self, folder: Path, mode: Mode, row: tuple[str, ...] = ROW) -> None:
        self.folder = folder
        folder.joinpath("rows").write_text("".join(f"{cell:<32}" for cell in row) + "\n")
        for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
            path = folder / name
            path.write_text(text.format(folder=folder, allowed=ALLOWED[mode]))
            path.chmod(0o755)
        self.hands = SlurmHands(SlurmCommands(folder=str(folder)), mode)

    def told(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []
