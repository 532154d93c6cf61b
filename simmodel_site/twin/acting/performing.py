"""One action on a scheduler: look, send, look again, by hands that have the commands of a scheduler."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from simmodel_site.twin.acting.actions import (
    HELD,
    MODES,
    PREFERRED,
    Action,
    Command,
    Hands,
    HandsError,
    JobNow,
    Mode,
    Outcome,
    mark_parts,
)
from simmodel_site.twin.events import job_id
from simmodel_site.twin.programs import Commands, ProgramError

__all__ = ["CommandHands", "Restored", "perform", "read_back", "restore"]


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
            as of :class:`~simmodel_site.twin.acting.actions.JobNow`
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


def perform(hands: Hands, action: Action) -> Outcome:
    """Do an action if it still makes sense, and return its outcome, as read back.

    It may be repeated: an action that is done already is not sent again.
    """
    try:
        before = hands.look(action.job)
        if before is not None and before.submit == action.submit and _as_wanted(before, action):
            return Outcome(number=action.number, what="already")
        why = _why_not(before, action)
        if before is None or why:
            return Outcome(number=action.number, what="refused", sentence=why)
        trouble = _sent(hands, before, action.command, action.value)
        after = hands.look(action.job)
    except HandsError as error:
        return Outcome(number=action.number, what="failed", sentence=str(error))
    if trouble:
        return _not_taken(action, after, trouble)
    if after is None or _as_wanted(after, action):
        return Outcome(number=action.number, what="done")
    return Outcome(number=action.number, what="failed", sentence=f"sent, but found {_told(after)} afterwards")


def _sent(hands: Hands, job: JobNow, command: Command, value: int = 0) -> str:
    """Send a command; return the sentence with which the scheduler refuses it, or ``""``."""
    try:
        hands.send(command, job.job, job.recorded if command == "release" else value)
    except HandsError as error:
        return str(error)
    return ""


def _not_taken(action: Action, job: JobNow | None, trouble: str) -> Outcome:
    """Return the outcome of a rejected command: ``"refused"`` if the job rules it out by now, else ``"failed"``."""
    why = _why_not(job, action)
    return Outcome(number=action.number, what="refused" if why else "failed", sentence=why or trouble)


def read_back(hands: Hands, action: Action) -> Outcome:
    """Return the outcome of an action that may have been sent or not, by the present state of its job."""
    try:
        job = hands.look(action.job)
    except HandsError as error:
        return Outcome(number=action.number, what="failed", sentence=str(error))
    if job is None or job.submit != action.submit or _as_wanted(job, action):
        return Outcome(number=action.number, what="done", sentence="found after a restart")
    return Outcome(number=action.number, what="late", sentence="not sent before a restart")


def _as_wanted(job: JobNow, action: Action) -> bool:
    if job.changed:
        return False
    if action.command == "release":
        return not job.held
    return job.preference == action.value and job.mark == (PREFERRED if action.value else "")


def _why_not(job: JobNow | None, action: Action) -> str:
    """Return why an action must not be done, or ``""``."""
    if job is None:
        return "the job is not known any more"
    if job.submit != action.submit:
        return f"the id belongs to another job now, submitted at {job.submit:g} s"
    if not job.waiting:
        return "the job does not wait any more"
    if job.changed:
        return job.changed
    if action.command == "release":
        return "" if job.mark == HELD else "the job was not held for a twin"
    if action.command == "unprefer":
        return "" if job.mark == PREFERRED else "the job was not moved by a twin"
    if job.mark not in ("", PREFERRED) or (job.preference and not job.mark):
        return "its priority or its note is somebody else's"
    return ""


def _told(job: JobNow) -> str:
    found = f"held={job.held}, preference={job.preference}, mark={job.mark!r}"
    return f"{found}: {job.changed}" if job.changed else found


class Restored(NamedTuple):
    """How many jobs were given back to the scheduler, how many could not be, and the first reason.

    Attributes
    ----------
    jobs, failed, why
        as above
    left
        the jobs that stay as their users or administrators have changed them, each with the change
    """

    jobs: int
    failed: int = 0
    why: str = ""
    left: tuple[str, ...] = ()


def restore(hands: Hands, moved: Mapping[tuple[int | str, float], int] = MappingProxyType({})) -> Restored:
    """Give all jobs with a mark of a twin back to the scheduler: none is held or preferred for the twin any more.

    Each job is looked at immediately before it is given back; values that others have changed since are kept.

    Parameters
    ----------
    moved
        how far the twin has moved jobs forward, by id and submission (s): those whose mark others have replaced stay
        there, and this is said
    """
    done, failed, left = 0, [], []
    try:
        jobs = hands.marked()
    except HandsError as error:
        return Restored(0, 1, str(error))
    for job in jobs:
        if job.changed:
            left.append(f"job {job.job}: {job.changed}")
            continue
        command: Command = "release" if job.mark == HELD else "unprefer"
        if command == "release" and not job.held:
            continue
        try:
            now = hands.look(job.job)
            if now is None or now.submit != job.submit or not now.waiting:
                continue  # it has started, or is over
            if now.mark != job.mark and not now.changed:
                continue  # it is given back
            trouble = "" if now.changed else _sent(hands, now, command)
            after = hands.look(job.job) if trouble else now
        except HandsError as error:
            failed.append(str(error))
            continue
        if after is not None and after.changed:
            left.append(f"job {job.job}: {after.changed}")
        elif trouble and after is not None and after.waiting:
            failed.append(trouble)
        else:
            done += not trouble
    for (number, submit), value in moved.items():
        try:
            now = None if any(job.job == number for job in jobs) else hands.look(number)
        except HandsError as error:
            failed.append(str(error))
            continue
        if now is not None and (now.submit, now.waiting, now.preference) == (submit, True, value):
            left.append(f"job {number}: its mark is somebody else's, and it stays moved forward by {value}")
    return Restored(done, len(failed), failed[0] if failed else "", tuple(left))
