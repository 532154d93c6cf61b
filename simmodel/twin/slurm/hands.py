"""What the twin may change in Slurm: the whole list of commands that write, and the hands that send them.

Jobs are held by a begin time (``sbatch --begin``), not by priority 0: Slurm itself lets them start once it has come, so
that none waits longer whatever dies, and a release does not send a job to the end of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import time
from types import MappingProxyType

from simmodel.errors import shown
from simmodel.twin.acting.actions import HELD, MODES, PREFERRED, RELEASED, Command, HandsError, JobNow, Mode, mark_parts
from simmodel.twin.events import job_id
from simmodel.twin.slurm.commands import UNKNOWN_JOB, SlurmCommands, SlurmError, check_id

__all__ = ["WRITES", "SlurmHands"]

WRITES: Mapping[Command, tuple[str, ...]] = MappingProxyType(
    {
        "release": ("scontrol", "update", "JobId={job}", "StartTime=now", f"AdminComment={RELEASED}@{{value}}"),
        "prefer": ("scontrol", "update", "JobId={job}", "Nice=-{value}", f"AdminComment={PREFERRED}@{{value}}"),
        "unprefer": ("scontrol", "update", "JobId={job}", "Nice=0", "AdminComment="),
    }
)
"""All that the twin ever changes in Slurm.

The comments tell ``job_submit.lua`` what the twin believes; within slurmctld, it refuses a command if a user or an
administrator was faster.
"""

_FIELDS = ("JobID", "ArrayJobID", "ArrayTaskID", "State", "SubmitTime", "EligibleTime", "Nice", "admin_comment")
_WIDTH = 32
_LOOK = ("squeue", "--noheader", "--all", "--array", f"--Format={','.join(f'{name}:{_WIDTH}' for name in _FIELDS)}")


class SlurmHands:
    """Looks at single jobs of Slurm, and sends the commands of a mode.

    Parameters
    ----------
    commands
        how Slurm's commands are run; default: those on the path
    mode
        the mode whose commands may be sent
    allowed
        the commands that may be sent, instead: all of them to give everything back
    clock
        tells the time (s since 1970)

    >>> hands = SlurmHands(mode="priority")
    >>> hands.send("release", 7)
    Traceback (most recent call last):
    ...
    simmodel.twin.acting.actions.HandsError: 'release' is no command of this mode: prefer, unprefer
    """

    def __init__(
        self,
        commands: SlurmCommands | None = None,
        mode: Mode = "observe",
        *,
        allowed: Sequence[Command] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self.reads = commands or SlurmCommands()
        self.commands: tuple[Command, ...] = MODES[mode] if allowed is None else tuple(allowed)
        self._clock = clock

    def words(self, command: Command) -> str:
        """Return a command as it is sent."""
        return " ".join(WRITES[command])

    def look(self, job: int | str) -> JobNow | None:
        """Return a job as Slurm has it now; ``None`` if Slurm does not know it."""
        try:
            rows = self._rows("--states=all", f"--jobs={check_id(job)}")
        except HandsError as error:
            if UNKNOWN_JOB in str(error):
                return None
            raise
        return next((row for row in rows if row.job == job_id(job)), None)

    def marked(self) -> tuple[JobNow, ...]:
        """Return the waiting jobs with a mark of the twin."""
        return tuple(row for row in self._rows("--states=PENDING") if row.mark in (HELD, PREFERRED))

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        """Send a command for a job."""
        if command not in self.commands:
            names = ", ".join(self.commands) or "none"
            raise HandsError(f"{command!r} is no command of this mode: {names}")
        words = [word.format(job=check_id(job), value=abs(int(value))) for word in WRITES[command]]
        self._run(words)

    def _rows(self, *words: str) -> list[JobNow]:
        return [_row(line, self._clock()) for line in self._run((*_LOOK, *words)).splitlines() if line.strip()]

    def _run(self, words: Sequence[str]) -> str:
        try:
            return self.reads.run(words)
        except SlurmError as error:
            raise HandsError(str(error)) from None


def _row(line: str, now: float) -> JobNow:
    cells = [line[at * _WIDTH : (at + 1) * _WIDTH].strip() for at in range(len(_FIELDS))]
    job, array, task, state, submit, eligible, nice, mark = cells
    waiting, (word, value) = state == "PENDING", mark_parts(mark)
    begin = float(eligible) if eligible.isdecimal() else 0.0
    try:
        preference = -int(nice or 0)
        return JobNow(
            job=f"{array}_{task}" if task.isdecimal() else int(job),
            submit=float(submit),
            waiting=waiting,
            held=waiting and word == HELD and begin == value and begin > now,
            preference=preference,
            mark=word,
            recorded=value or 0,
            changed=_changed(word, value, begin, preference, now) if waiting else "",
        )
    except ValueError:
        raise HandsError(f"squeue: must tell a job, got {shown(line)}") from None


def _changed(word: str, value: int | None, begin: float, preference: int, now: float) -> str:
    """Return what others have set on a job that waits, beside what its mark records."""
    if begin > now and not (word == HELD and begin == value):
        return f"its begin time, {begin:.0f} s, is its user's or an administrator's"
    if word == PREFERRED and preference != value:
        return f"its nice value, {-preference}, is its user's or an administrator's"
    return ""
