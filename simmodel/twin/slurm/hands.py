"""All changes that the twin may make in Slurm: the full list of commands that write, and the hands that send them.

Jobs are held by a begin time (``sbatch --begin``), not by priority 0: Slurm itself lets them start once it has come, so
that none waits longer whatever dies, and a release does not send a job to the end of the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from time import time
from types import MappingProxyType

from simmodel.foundation.errors import shown
from simmodel.twin.acting.actions import PREFERRED, RELEASED, Command, HandsError, JobNow, Mode
from simmodel.twin.acting.performing import CommandHands
from simmodel.twin.slurm.commands import UNKNOWN_JOB, SlurmCommands, check_id

__all__ = ["WRITES", "SlurmHands"]

WRITES: Mapping[Command, tuple[str, ...]] = MappingProxyType(
    {
        "release": ("scontrol", "update", "JobId={job}", "StartTime=now", f"AdminComment={RELEASED}@{{value}}"),
        "prefer": ("scontrol", "update", "JobId={job}", "Nice=-{value}", f"AdminComment={PREFERRED}@{{value}}"),
        "unprefer": ("scontrol", "update", "JobId={job}", "Nice=0", "AdminComment="),
    }
)
"""All that the twin ever changes in Slurm.

The comments give ``job_submit.lua`` the values that the twin assumes; within slurmctld, it refuses a command if a
user or an administrator was faster.
"""

_FIELDS = ("JobID", "ArrayJobID", "ArrayTaskID", "State", "SubmitTime", "EligibleTime", "Nice", "admin_comment")
_WIDTH = 32
_LOOK = ("squeue", "--noheader", "--all", "--array", f"--Format={','.join(f'{name}:{_WIDTH}' for name in _FIELDS)}")


class SlurmHands(CommandHands):
    """Looks at single jobs of Slurm, and sends the commands of a mode.

    Parameters
    ----------
    commands
        how Slurm's commands are run; default: those on the path
    mode, allowed, clock
        as of :class:`~simmodel.twin.acting.performing.CommandHands`

    >>> hands = SlurmHands(mode="priority")
    >>> hands.send("release", 7)
    Traceback (most recent call last):
    ...
    simmodel.twin.acting.actions.HandsError: 'release' is no command of this mode: prefer, unprefer
    """

    writes = WRITES
    gone = re.compile(UNKNOWN_JOB)
    begin, preference, sign = "begin time", "nice value", -1

    def __init__(
        self,
        commands: SlurmCommands | None = None,
        mode: Mode = "observe",
        *,
        allowed: Sequence[Command] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        super().__init__(commands or SlurmCommands(), mode, allowed=allowed, clock=clock)

    def jobs(self, job: int | str | None = None) -> list[JobNow]:
        """Return a job as it is now; ``None``: all waiting jobs."""
        which = ("--states=PENDING",) if job is None else ("--states=all", f"--jobs={check_id(job)}")
        return [self._row(line) for line in self.reads.run((*_LOOK, *which)).splitlines() if line.strip()]

    def _row(self, line: str) -> JobNow:
        cells = [line[at * _WIDTH : (at + 1) * _WIDTH].strip() for at in range(len(_FIELDS))]
        job, array, task, state, submit, eligible, nice, mark = cells
        try:
            return self.job_now(
                f"{array}_{task}" if task.isdecimal() else int(job),
                float(submit),
                waiting=state == "PENDING",
                mark=mark,
                begin=float(eligible) if eligible.isdecimal() else 0.0,
                number=int(nice or 0),
            )
        except ValueError:
            raise HandsError(f"squeue: must tell a job, got {shown(line)}") from None
