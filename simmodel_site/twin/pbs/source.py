"""PBS as a source of events, by commands that read, and the hands that act: the full list of commands that write.

Jobs are held by an execution time (``qsub -a``), not by a hold: PBS itself lets them start once it has come, so that
none waits longer whatever dies. The mark of a twin stands in a resource of jobs that users cannot change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from simmodel import InputError
from simmodel.extending import clipped, counted, shown
from simmodel_site.twin.acting.actions import PREFERRED, RESTORING, Command, HandsError, JobNow, Mode, mark_parts
from simmodel_site.twin.acting.performing import CommandHands
from simmodel_site.twin.events import JobReport, JobState
from simmodel_site.twin.mirror.node_states import nodes_out
from simmodel_site.twin.pbs.commands import Document, PbsCommands, PbsError, table_of, text_of
from simmodel_site.twin.pbs.jobs import MARK, Reading, jobs_in, mark_of
from simmodel_site.twin.pbs.nodes import largest, licences_in, nodes_in
from simmodel_site.twin.pbs.values import instant, job_of, number
from simmodel_site.twin.programs import is_garbled
from simmodel_site.twin.sources import Source
from simmodel_site.twin.sources.polling import ALIVE, PolledSettings, PolledSource, State

if TYPE_CHECKING:
    from datetime import tzinfo

    from simmodel_site.twin.described import Described

__all__ = ["EXPRESS", "HIGHEST", "START", "WRITES", "PbsHands", "PbsSettings", "PbsSource"]


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
        as of :class:`~simmodel_site.twin.acting.performing.CommandHands`
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
    simmodel_site.twin.acting.actions.HandsError: 'release' is no command of this mode: prefer, unprefer
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


_ASKED_AT_ONCE = 100  # jobs whose ends are asked for in one command
_UNKNOWN = "Unknown Job Id"
_ASKED_IN_ALL = 1000  # and in one report; the end of any other one is when it was missed


@attrs.frozen(kw_only=True, repr=False)
class PbsSettings(PolledSettings):
    """The settings of a source that asks PBS.

    Parameters
    ----------
    interval, wake, conf, folder, timeout
        as of :class:`~simmodel_site.twin.sources.polling.PolledSettings`; the stream of the hook wakes it
    priorities
        whether PBS's priorities (``qalter -p``) come before the order of the mirrored policy
    history
        whether PBS is asked how jobs ended (``job_history_enable``); else those that vanish count as completed
    express
        the queue to which jobs are moved that are preferred; default: their priority alone is changed
    start
        whether a job that is released is also started at once (``qrun``), past the order of PBS's scheduler
    """

    priorities: bool = False
    history: bool = True
    express: str | None = None
    start: bool = False

    def open(self, cluster: str, folder: Path) -> PbsSource:
        return PbsSource(cluster, self, wake=self.wakening(cluster, folder))

    def hands(self, mode: Mode, *, restoring: bool = False) -> PbsHands:
        """Return the hands for this PBS in a mode; ``restoring``: with the commands that give everything back."""
        allowed, start = (RESTORING, False) if restoring else (None, self.start)
        return PbsHands(self.commands_of(PbsCommands), mode, allowed=allowed, express=self.express, start=start)

    def describe(
        self, paths: Iterable[str | Path] = (), *, local: tzinfo | None = None, origin: float = 0.0
    ) -> Described:
        """Return the platform of the cluster, as :func:`~simmodel_site.twin.pbs.describe.describe_pbs` does.

        PBS reports no instants of its cluster: ``local`` and ``origin`` change nothing.
        """
        from simmodel_site.twin.pbs.describe import describe_pbs

        return describe_pbs(paths, commands=self.commands_of(PbsCommands))


class PbsSource(PolledSource):
    """A source of full reports on PBS; with ``history``, jobs that have vanished since the last one are asked for.

    Parameters
    ----------
    cluster
        the name of the cluster
    settings
        where PBS is, and how it is asked
    commands, wake, clock
        as of :class:`~simmodel_site.twin.sources.polling.PolledSource`; default: the commands that the settings name

    Attributes
    ----------
    others
        how many jobs asked for resources that requests do not express, in the last report
    """

    settings: PbsSettings
    commands: PbsCommands

    def __init__(
        self,
        cluster: str,
        settings: PbsSettings | None = None,
        *,
        commands: PbsCommands | None = None,
        wake: Source | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        settings = settings or PbsSettings()
        super().__init__(cluster, settings, commands or settings.commands_of(PbsCommands), wake=wake, clock=clock)
        self.others: Counter[str] = Counter()
        self._alive: dict[int | str, float] = {}  # the submissions of the jobs of the last report
        self._as_of = 0.0  # the instant of the last answer
        self._reading = Reading()
        self._counted: frozenset[str] | None = None  # the resources that the server counts, asked for once

    def state(self) -> State:
        """Return the state of PBS; raises :class:`~simmodel_site.twin.pbs.commands.PbsError`."""
        told = self.commands.document("jobs")
        try:
            if is_garbled(dict.fromkeys(told), ()):
                raise InputError("must be readable text")
            as_of = _instant(text_of(told, "timestamp"))
            if 0 < as_of < self._as_of:
                raise InputError("must not be older than the last answer", place="timestamp")
            nodes = list(nodes_in(self.commands.document("nodes"), self.refused))
            reading = Reading(
                server=text_of(told, "pbs_server"),
                node=largest(nodes),
                licences=self._licences(),
                priorities=self.settings.priorities,
            )
            if not nodes:
                raise InputError("must be told", place="nodes")
            others: Counter[str] = Counter()
            jobs = jobs_in(told, reading, refused=self.refused, others=others)
        except InputError as error:
            raise PbsError(f"answer: {error}") from None
        self._as_of, self._reading = max(self._as_of, min(as_of, self._clock())), reading
        alive = {job.job: job.submit for job in jobs if job.state in ALIVE}
        gone = [job for job, submit in self._alive.items() if alive.get(job) != submit]
        ended = self._ended(gone, reading) if self.settings.history else []
        self.others, self._alive = others, alive
        jobs = (*jobs, *(job for job in ended if job.job not in alive))
        return State(jobs, *nodes_out((node.name, node.service) for node in nodes))

    def states_of(self, job: int | str) -> Iterable[JobState]:
        """Return the state of a job that PBS knows, also as one of the past; none: it is unknown."""
        try:
            told = self.commands.document("ended" if self.settings.history else "job", [job])
            return [each.state for each in jobs_in(told, self._reading, refused=self.refused) if each.job == job]
        except InputError as error:
            raise PbsError(f"answer: {error}") from None
        except PbsError as error:
            if _UNKNOWN in str(error):
                return ()
            raise

    def _licences(self) -> frozenset[str]:
        if self._counted is None:
            self._counted = frozenset(licences_in(self.commands.document("server")))
        return self._counted

    def _ended(self, jobs: list[int | str], reading: Reading) -> list[JobReport]:
        """Return the reports of vanished jobs that have ended; those that PBS does not report are left out."""
        found: list[JobReport] = []
        for at in range(0, min(len(jobs), _ASKED_IN_ALL), _ASKED_AT_ONCE):
            some = jobs[at : at + _ASKED_AT_ONCE]
            try:
                told = jobs_in(self.commands.document("ended", some), reading, refused=self.refused)
            except (PbsError, InputError) as error:
                self.refused.count(error)
                continue
            asked = set(some)
            found += [job for job in told if job.job in asked and job.state not in ALIVE]
        return found

    def release(self) -> str:
        """Return a sentence on the release of PBS and its server; raises ``SimmodelError``."""
        server = self.commands.document("server")
        release = text_of(server, "pbs_version") or "of unknown version"
        return f"PBS {release} answers; its server is {text_of(server, 'pbs_server') or 'not named'}"

    def count(self, name: str) -> int:
        """Return how many ``jobs`` or ``nodes`` there are; raises ``SimmodelError``."""
        return len(table_of(self.commands.document(name), {"jobs": "Jobs"}.get(name, name)))

    def advice(self) -> Iterator[str]:
        """Yield sentences on hidden jobs, on the setting ``history``, and on resources that requests do not express."""
        server = self.commands.document("server")
        for values in table_of(server, "Server").values():
            if isinstance(values, dict) and text_of(values, "query_other_jobs") == "False":
                yield "query_other_jobs is False: users who are no operators see their own jobs alone"
            history = isinstance(values, dict) and text_of(values, "job_history_enable") == "True"
            if history != self.settings.history:
                yield f"the source should have history = {str(history).lower()}, as job_history_enable is {history}"
        self.report()
        for name, count in sorted(self.others.items()):
            yield f"not expressed: {clipped(name)}, asked for by {counted(count, 'job')}"


def _instant(text: str) -> float:
    if text and not (text.isascii() and text.isdecimal()):
        raise InputError(f"must be an instant (s), got {shown(text)}", place="timestamp")
    return float(text or 0)
