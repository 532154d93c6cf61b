"""All changes that the twin may make in PBS: the full list of commands that write, and the hands that send them.

Jobs are held by an execution time (``qsub -a``), not by a hold: PBS itself lets them start once it has come, so that
none waits longer whatever dies. The mark of a twin stands in a resource of jobs that users cannot change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import time
from types import MappingProxyType

from simmodel.foundation.errors import InputError, shown
from simmodel.twin.acting.actions import PREFERRED, Command, HandsError, JobNow, Mode, mark_parts
from simmodel.twin.acting.hands import CommandHands
from simmodel.twin.pbs.commands import PbsCommands, PbsError
from simmodel.twin.pbs.documents import Document, table_of, text_of
from simmodel.twin.pbs.jobs import MARK, mark_of
from simmodel.twin.pbs.values import instant, job_of, number

__all__ = ["EXPRESS", "HIGHEST", "START", "WRITES", "PbsHands"]

WRITES: Mapping[Command, tuple[str, ...]] = MappingProxyType(
    {
        "release": ("qalter", "-a", "{now}", "{job}"),
        "prefer": ("qalter", "-p", "{value}", "-l", f"{MARK}={PREFERRED}@{{value}}{{home}}", "{job}"),
        "unprefer": ("qalter", "-p", "0", "-l", f"{MARK}=none", "{job}"),
    }
)
"""The commands by which the twin changes jobs in PBS."""

EXPRESS = ("qmove", "{queue}", "{job}")
"""The additional command where preferred jobs are moved to a queue, and back."""

START = ("qrun", "{job}")
"""The command after a release where released jobs are started at once."""

HIGHEST = 1023
"""The highest priority that PBS takes."""

_QUEUE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}", re.ASCII)


class PbsHands(CommandHands):
    """Looks at single jobs of PBS, and sends the commands of a mode.

    Parameters
    ----------
    commands
        how PBS's commands are run; default: those on the path
    mode, allowed, clock
        as of :class:`~simmodel.twin.acting.hands.CommandHands`
    express
        the queue to which preferred jobs are moved; default: none
    start
        whether released jobs are started at once

    Raises
    ------
    InputError
        ``express`` is not a valid name of a queue

    >>> hands = PbsHands(mode="priority")
    >>> hands.send("release", 7)
    Traceback (most recent call last):
    ...
    simmodel.twin.acting.actions.HandsError: 'release' is no command of this mode: prefer, unprefer
    """

    writes = WRITES
    gone = re.compile(r"(?i)unknown job|has finished")
    begin, preference = "execution time", "priority"
    reads: PbsCommands

    def __init__(
        self,
        commands: PbsCommands | None = None,
        mode: Mode = "observe",
        *,
        allowed: Sequence[Command] | None = None,
        express: str | None = None,
        start: bool = False,
        clock: Callable[[], float] = time,
    ) -> None:
        if express is not None and not _QUEUE.fullmatch(express):
            raise InputError(f"must be the name of a queue, got {shown(express)}", place="express")
        super().__init__(commands or PbsCommands(), mode, allowed=allowed, clock=clock)
        self.express = express
        self.start = start

    def words(self, command: Command) -> str:
        """Return a command as it is sent."""
        more: tuple[str, ...] = ()
        if command == "release" and self.start:
            more = START
        elif command != "release" and self.express:
            more = EXPRESS
        sent = super().words(command).replace("{home}", ".{queue}" if self.express else "")
        return f"{sent}; {' '.join(more)}" if more else sent

    def jobs(self, job: int | str | None = None) -> list[JobNow]:
        """Return a job as it is now; ``None``: all jobs with a mark, so that no other one can be in the way."""
        document = self.reads.document("job", [] if job is None else [job])
        server, found = text_of(document, "pbs_server"), []
        for name, given in table_of(document, "Jobs").items():
            try:
                if not isinstance(given, dict):
                    raise InputError(f"must be an object, got {shown(given)}")
                if job is not None or mark_of(given):
                    found.append(self._row(job_of(name, server)[0], given))
            except InputError as error:
                raise HandsError(f"qstat: job {shown(name)}: {error}") from None
        return found

    def carry_out(self, command: Command, job: int | str, value: int) -> None:
        """Send a command that is allowed, and those that belong to it."""
        name = self.reads.word_of(job)
        if "[" in name:
            raise HandsError(f"job {job}: PBS changes no single tasks of an array")
        if command != "release" and value > HIGHEST:
            raise HandsError(f"job {job}: the priority must be at most {HIGHEST}, got {value}")
        if command == "release":
            self.run(WRITES[command], job=name, now=f"{datetime.fromtimestamp(self.clock(), UTC):%Y%m%d%H%M.%S}")
            if self.start:
                with suppress(PbsError):  # where it cannot start now, PBS's own scheduler starts it later
                    self.run(START, job=name)
        elif self.express is None:
            self.run(WRITES[command], job=name, value=value, home="")
        else:
            self._moved(command, name, value, self.express)

    def _moved(self, command: Command, name: str, value: int, express: str) -> None:
        """Mark a job with its own queue before it is moved, and move it back before the mark goes."""
        told = self.reads.document("job", [name])
        jobs = [each for each in table_of(told, "Jobs").values() if isinstance(each, dict)]
        if not jobs:
            raise HandsError(f"job {name}: is not known any more")
        given = jobs[0]
        queue = text_of(given, "queue")
        if command == "prefer":
            home = _home(mark_of(given)) or queue
            if not _QUEUE.fullmatch(home):
                raise HandsError(f"job {name}: {shown(home)} is no name of a queue")
            self.run(WRITES[command], job=name, value=value, home=f".{home}")
            if queue != express:
                self.run(EXPRESS, job=name, queue=express)
        else:
            home = _home(mark_of(given))
            if home and home != queue and _QUEUE.fullmatch(home):
                self.run(EXPRESS, job=name, queue=home)
            self.run(WRITES[command], job=name)

    def _row(self, job: int | str, given: Document) -> JobNow:
        submit = instant(text_of(given, "ctime"))
        if submit is None:
            raise InputError("must be known", place="ctime")
        word, mark = text_of(given, "job_state"), mark_of(given)
        home, until = _home(mark), instant(text_of(given, "Execution_Time"))
        return self.job_now(
            job,
            submit,
            waiting=word in ("Q", "W", "H", "T"),
            mark=mark.partition(".")[0] if home else mark,
            begin=(until or 0.0) if word == "W" else 0.0,
            number=int(number(text_of(given, "Priority")) or 0),
            moved=self.express is None or not home or text_of(given, "queue") == self.express,
        )


def _home(mark: str) -> str:
    """Return the queue from which a marked job was moved; empty: from none."""
    start, _, queue = mark.partition(".")
    return queue if mark_parts(start)[0] == PREFERRED else ""
