"""Hands that act by the commands of a scheduler: a class for one has its words, and reads its jobs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time
from typing import ClassVar

from simmodel.twin.acting.actions import HELD, MODES, PREFERRED, Command, HandsError, JobNow, Mode, mark_parts
from simmodel.twin.events import job_id
from simmodel.twin.programs import Commands, ProgramError

__all__ = ["CommandHands"]


class CommandHands(ABC):
    """Looks at single jobs of a scheduler, and sends the commands of a mode.

    Parameters
    ----------
    reads
        how the scheduler's commands are run
    mode
        the mode whose commands may be sent
    allowed
        the commands that may be sent, instead: all of them to give everything back
    clock
        returns the time (s since 1970)

    Attributes
    ----------
    writes
        the words of each command, with ``{job}`` and ``{value}`` in them
    gone
        matches the scheduler's message for a job that it does not know
    begin, preference
        its terms for the instant before which a job does not start, and for the number that moves jobs forward
    sign
        -1: jobs of lower numbers come first; 1: those of higher ones
    """

    writes: ClassVar[Mapping[Command, tuple[str, ...]]]
    gone: ClassVar[re.Pattern[str]]
    begin: ClassVar[str]
    preference: ClassVar[str]
    sign: ClassVar[int] = 1

    def __init__(
        self,
        reads: Commands,
        mode: Mode = "observe",
        *,
        allowed: Sequence[Command] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self.reads = reads
        self.commands: tuple[Command, ...] = MODES[mode] if allowed is None else tuple(allowed)
        self.clock = clock

    @abstractmethod
    def jobs(self, job: int | str | None = None) -> Iterable[JobNow]:
        """Return a job as it is now, perhaps among others; ``None``: all waiting jobs with a mark.

        Raises
        ------
        ProgramError
            a command is missing, fails, or does not answer
        HandsError
            its answer is not understood
        """

    def words(self, command: Command) -> str:
        """Return a command as it is sent."""
        return " ".join(self.writes[command])

    def look(self, job: int | str) -> JobNow | None:
        """Return a job as the scheduler has it now; ``None`` if the scheduler does not know it."""
        try:
            return next((now for now in self.jobs(job) if now.job == job_id(job)), None)
        except ProgramError as error:
            if self.gone.search(str(error)):
                return None
            raise HandsError(str(error)) from None

    def marked(self) -> tuple[JobNow, ...]:
        """Return the waiting jobs with a mark of the twin."""
        try:
            return tuple(now for now in self.jobs() if now.waiting and now.mark in (HELD, PREFERRED))
        except ProgramError as error:
            raise HandsError(str(error)) from None

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        """Send a command for a job."""
        if command not in self.commands:
            names = ", ".join(self.commands) or "none"
            raise HandsError(f"{command!r} is no command of this mode: {names}")
        try:
            self.carry_out(command, job, abs(int(value)))
        except ProgramError as error:
            raise HandsError(str(error)) from None

    def carry_out(self, command: Command, job: int | str, value: int) -> None:
        """Send a command that is allowed; raises ``ProgramError``."""
        self.run(self.writes[command], job=self.reads.word_of(job), value=value)

    def run(self, words: Sequence[str], **values: int | str) -> None:
        """Run a command with these values in its words; raises ``ProgramError``."""
        self.reads.run([word.format(**values) for word in words])

    def job_now(
        self, job: int | str, submit: float, *, waiting: bool, mark: str, begin: float, number: int, moved: bool = True
    ) -> JobNow:
        """Return a job from the values of an answer, with any change made by others than the twin.

        Parameters
        ----------
        job, submit, waiting
            as of :class:`~simmodel.twin.acting.actions.JobNow`
        mark
            the text of its mark
        begin
            the instant before which it does not start (s); 0: none
        number
            its number of ``preference``
        moved
            whether it is where preferred jobs are
        """
        word, value = mark_parts(mark)
        ahead = waiting and begin > self.clock()
        held = ahead and word == HELD and begin == value
        changed = ""
        if ahead and not held:
            changed = f"its {self.begin}, {begin:.0f} s, is its user's or an administrator's"
        elif waiting and word == PREFERRED and self.sign * number != value:
            changed = f"its {self.preference}, {number}, is its user's or an administrator's"
        return JobNow(
            job=job,
            submit=submit,
            waiting=waiting,
            held=held,
            preference=self.sign * number if moved else 0,
            mark=word,
            recorded=value or 0,
            changed=changed,
        )
