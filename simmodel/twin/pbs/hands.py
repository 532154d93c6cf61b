"""What the twin may change in PBS: the whole list of commands that write, and the hands that send them.

Jobs are held by an execution time (``qsub -a``), not by a hold: PBS itself lets them start once it has come, so that
none waits longer whatever dies. The mark of a twin stands in a resource of jobs that users cannot change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import time
from types import MappingProxyType

from simmodel.errors import InputError, shown
from simmodel.twin.acting.actions import HELD, MODES, PREFERRED, Command, HandsError, JobNow, Mode, mark_parts
from simmodel.twin.events import job_id
from simmodel.twin.pbs.commands import PbsCommands, PbsError
from simmodel.twin.pbs.documents import Document, table_of, text_of
from simmodel.twin.pbs.jobs import MARK, mark_of
from simmodel.twin.pbs.values import instant, job_of, number, pbs_id

__all__ = ["EXPRESS", "HIGHEST", "START", "WRITES", "PbsHands"]

WRITES: Mapping[Command, tuple[str, ...]] = MappingProxyType(
    {
        "release": ("qalter", "-a", "{now}", "{job}"),
        "prefer": ("qalter", "-p", "{value}", "-l", f"{MARK}={PREFERRED}@{{value}}{{home}}", "{job}"),
        "unprefer": ("qalter", "-p", "0", "-l", f"{MARK}=none", "{job}"),
    }
)
"""What the twin changes in PBS."""

EXPRESS = ("qmove", "{queue}", "{job}")
"""What it sends in addition where preferred jobs are moved to a queue, and back."""

START = ("qrun", "{job}")
"""What it sends after a release where released jobs are started at once."""

HIGHEST = 1023
"""The highest priority that PBS takes."""

_GONE = re.compile(r"(?i)unknown job|has finished")
_QUEUE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}", re.ASCII)


class PbsHands:
    """Looks at single jobs of PBS, and sends the commands of a mode.

    Parameters
    ----------
    commands
        how PBS's commands are run; default: those on the path
    mode
        the mode whose commands may be sent
    allowed
        the commands that may be sent, instead: all of them to give everything back
    express
        the queue to which preferred jobs are moved; default: none
    start
        whether released jobs are started at once
    clock
        tells the time (s since 1970)

    Raises
    ------
    InputError
        the queue is no name of a queue

    >>> hands = PbsHands(mode="priority")
    >>> hands.send("release", 7)
    Traceback (most recent call last):
    ...
    simmodel.twin.acting.actions.HandsError: 'release' is no command of this mode: prefer, unprefer
    """

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
        self.reads = commands or PbsCommands()
        self.commands: tuple[Command, ...] = MODES[mode] if allowed is None else tuple(allowed)
        self.express = express
        self.start = start
        self._clock = clock

    def words(self, command: Command) -> str:
        """Return a command as it is sent."""
        more: tuple[str, ...] = ()
        if command == "release" and self.start:
            more = START
        elif command != "release" and self.express:
            more = EXPRESS
        sent = " ".join(WRITES[command]).replace("{home}", ".{queue}" if self.express else "")
        return f"{sent}; {' '.join(more)}" if more else sent

    def look(self, job: int | str) -> JobNow | None:
        """Return a job as PBS has it now; ``None`` if PBS does not know it or it is over."""
        try:
            document = self.reads.document("job", [job])
        except PbsError as error:
            if _GONE.search(str(error)):
                return None
            raise HandsError(str(error)) from None
        found = self._jobs(document)
        return next((now for now in found if now.job == job_id(job)), None)

    def marked(self) -> tuple[JobNow, ...]:
        """Return the waiting jobs with a mark of the twin."""
        try:
            document = self.reads.document("job")
        except PbsError as error:
            raise HandsError(str(error)) from None
        found = self._jobs(document, marked=True)
        return tuple(now for now in found if now.waiting and now.mark in (HELD, PREFERRED))

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        """Send a command for a job."""
        if command not in self.commands:
            names = ", ".join(self.commands) or "none"
            raise HandsError(f"{command!r} is no command of this mode: {names}")
        name = pbs_id(job)
        if "[" in name:
            raise HandsError(f"job {job}: PBS changes no single tasks of an array")
        if command != "release" and abs(int(value)) > HIGHEST:
            raise HandsError(f"job {job}: the priority must be at most {HIGHEST}, got {value}")
        if command == "release":
            self._run(WRITES[command], job=name, now=f"{datetime.fromtimestamp(self._clock(), UTC):%Y%m%d%H%M.%S}")
            if self.start:
                self._started(name)
        elif self.express is None:
            self._run(WRITES[command], job=name, value=str(abs(int(value))), home="")
        else:
            self._moved(command, name, str(abs(int(value))), self.express)

    def _started(self, name: str) -> None:
        """Start a released job; where it cannot start now, PBS's own scheduler starts it later."""
        try:
            self._run(START, job=name)
        except HandsError:
            return

    def _moved(self, command: Command, name: str, value: str, express: str) -> None:
        """Mark a job with its own queue before it is moved, and move it back before the mark goes."""
        jobs = [each for each in table_of(self._read(name), "Jobs").values() if isinstance(each, dict)]
        if not jobs:
            raise HandsError(f"job {name}: is not known any more")
        given = jobs[0]
        queue = text_of(given, "queue")
        if command == "prefer":
            home = _home(mark_of(given)) or queue
            if not _QUEUE.fullmatch(home):
                raise HandsError(f"job {name}: {shown(home)} is no name of a queue")
            self._run(WRITES[command], job=name, value=value, home=f".{home}")
            if queue != express:
                self._run(EXPRESS, job=name, queue=express)
        else:
            home = _home(mark_of(given))
            if home and home != queue and _QUEUE.fullmatch(home):
                self._run(EXPRESS, job=name, queue=home)
            self._run(WRITES[command], job=name)

    def _read(self, name: str) -> Document:
        try:
            return self.reads.document("job", [name])
        except PbsError as error:
            raise HandsError(str(error)) from None

    def _run(self, words: Sequence[str], **values: str) -> None:
        try:
            self.reads.run([word.format(**values) for word in words])
        except PbsError as error:
            raise HandsError(str(error)) from None

    def _jobs(self, document: Document, *, marked: bool = False) -> list[JobNow]:
        """Return the jobs of an answer; ``marked``: those with a mark alone, so that no other one can be in the way."""
        server, found = text_of(document, "pbs_server"), []
        for name, given in table_of(document, "Jobs").items():
            try:
                if not isinstance(given, dict):
                    raise InputError(f"must be an object, got {shown(given)}")
                if not marked or mark_of(given):
                    found.append(self._row(job_of(name, server)[0], given))
            except InputError as error:
                raise HandsError(f"qstat: job {shown(name)}: {error}") from None
        return found

    def _row(self, job: int | str, given: Document) -> JobNow:
        submit = instant(text_of(given, "ctime"))
        if submit is None:
            raise InputError("must be known", place="ctime")
        word, mark = text_of(given, "job_state"), mark_of(given)
        until = instant(text_of(given, "Execution_Time"))
        preference = int(number(text_of(given, "Priority")) or 0)
        if self.express is not None and _home(mark) and text_of(given, "queue") != self.express:
            preference = 0  # marked, and not moved yet, or moved back already
        home = _home(mark)
        (known, value), waiting = mark_parts(mark.partition(".")[0] if home else mark), word in ("Q", "W", "H", "T")
        ahead = word == "W" and until is not None and until > self._clock()
        changed = ""
        if ahead and not (known == HELD and until == value):
            changed = f"its execution time, {until:.0f} s, is its user's or an administrator's"
        elif known == PREFERRED and waiting and number(text_of(given, "Priority")) != value:
            changed = f"its priority, {preference}, is its user's or an administrator's"
        return JobNow(
            job=job,
            submit=submit,
            waiting=waiting,
            held=ahead and not changed,
            preference=preference,
            mark=known,
            recorded=value or 0,
            changed=changed,
        )


def _home(mark: str) -> str:
    """Return the queue from which a marked job was moved; empty: from none."""
    start, _, queue = mark.partition(".")
    return queue if mark_parts(start)[0] == PREFERRED else ""
