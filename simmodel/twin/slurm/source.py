"""Slurm as a source of events: its state by commands that read, at intervals and when its scripts wake the twin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any, Literal, TypeAlias

import attrs

from simmodel.display import Fields
from simmodel.errors import InputError, shown
from simmodel.loading import parse_json
from simmodel.twin.acting.actions import Mode
from simmodel.twin.events import Event, JobReport, Noticed, StateReport
from simmodel.twin.refused import Refused
from simmodel.twin.slurm.answers import read_answer
from simmodel.twin.slurm.checking import check_rest, check_slurm
from simmodel.twin.slurm.commands import SlurmCommands
from simmodel.twin.slurm.hands import SlurmHands
from simmodel.twin.slurm.jobs import JobRecord, LimitFrom, jobs_in, queue_of
from simmodel.twin.slurm.program import SlurmError
from simmodel.twin.slurm.rest import SlurmRest
from simmodel.twin.slurm.squeue import NodesOut, node_sizes, nodes_out, records_in, with_marks
from simmodel.twin.source import RemoteSource, Source
from simmodel.twin.sources import source_settings

__all__ = ["SlurmSettings", "SlurmSource"]

Ask: TypeAlias = Literal["squeue", "json", "rest"]
"""How Slurm is asked: by rows in formats of our own (the fastest), by ``squeue --json``, or by slurmrestd."""

_ALIVE = frozenset(("waiting", "held", "running"))
_LONG_OVER = 5.0  # seconds after its end; until then a job is told in each report, as its end may be too new for one
_AFTER = 2.0  # seconds from a report that was asked for to the next: Slurm tells whole seconds
_SETTLE = 0.05  # seconds from the first of several wake-ups to the report that answers them all
_LONGEST_PAUSE = 10.0  # seconds until a command that failed is tried again
_IDLE = 4.0  # reports take at most a fifth of the time: so many times its cost must pass until the next


@attrs.frozen(kw_only=True, repr=False)
class SlurmSettings(Fields):
    """The settings of a source that asks Slurm.

    Parameters
    ----------
    interval
        the longest time between two reports (s)
    wake
        the settings of a source (``kind`` and so on) whose events wake this one: the stream of Slurm's scripts
    requested
        where requested times stand: ``"limit"``, or ``"comment"`` (seconds, finer than Slurm's minutes)
    memory
        whether Slurm allocates memory to jobs (``SelectTypeParameters`` names it)
    priorities
        whether Slurm's priorities come before the order of the mirrored policy
    ask
        how Slurm is asked: ``"squeue"``, by rows in formats of our own; ``"json"``, by ``squeue --json``; or ``"rest"``
    marks
        whether the marks of jobs that are held for a twin are asked for, too: such jobs wait
    socket
        the unix socket of slurmrestd
    conf, folder, timeout
        of :class:`~simmodel.twin.slurm.commands.SlurmCommands`
    """

    interval: float = 30.0
    wake: Mapping[str, Any] | None = None
    requested: LimitFrom = "limit"
    memory: bool = False
    priorities: bool = False
    ask: Ask = "squeue"
    marks: bool = False
    socket: str | None = None
    conf: str | None = None
    folder: str | None = None
    timeout: float = 30.0

    def open(self, cluster: str, folder: Path) -> SlurmSource:
        """Return the source."""
        wake = None if self.wake is None else source_settings(self.wake).open(cluster, folder)
        commands = SlurmCommands(conf=self.conf, folder=self.folder, timeout=self.timeout)
        return SlurmSource(
            cluster,
            commands,
            interval=self.interval,
            wake=wake,
            requested=self.requested,
            memory=self.memory,
            priorities=self.priorities,
            ask=self.ask,
            marks=self.marks,
            rest=None if self.socket is None else SlurmRest(str(folder / self.socket), self.timeout),
        )

    def hands(self, mode: Mode, *, restoring: bool = False) -> SlurmHands:
        """Return what acts on this Slurm in a mode; ``restoring``: with the commands that give everything back.

        Raises
        ------
        InputError
            jobs that are held for a twin would not be seen to wait
        """
        if mode == "hold-and-release" and self.ask == "squeue" and not self.marks:
            raise InputError("must be true with mode 'hold-and-release'", place="source.marks")
        commands = SlurmCommands(conf=self.conf, folder=self.folder, timeout=self.timeout)
        return SlurmHands(commands, mode, allowed=("release", "unprefer") if restoring else None)


class SlurmSource:
    """Tells the state of Slurm as full reports; jobs that have ended are told for some seconds more.

    Parameters
    ----------
    cluster
        the name of the cluster
    commands
        the commands; default: those on the path
    interval
        the longest time between two reports (s)
    wake
        a source whose events wake this one; what it tells is passed on, but for what is only ``noticed``
    requested
        where requested times stand: ``"limit"``, or ``"comment"`` (seconds, finer than Slurm's minutes)
    memory, priorities, ask, marks
        as of :class:`SlurmSettings`
    rest
        asks slurmrestd
    clock
        tells the time (s since 1970), as the clock of Slurm's controller does

    Attributes
    ----------
    refused
        rows that made no sense and commands that failed, counted by sentence

    While Slurm does not answer, nothing is told; the first answer afterwards is a full report as any other.
    """

    def __init__(
        self,
        cluster: str,
        commands: SlurmCommands | None = None,
        *,
        interval: float = 30.0,
        wake: Source | None = None,
        requested: LimitFrom = "limit",
        memory: bool = False,
        priorities: bool = False,
        ask: Ask = "squeue",
        marks: bool = False,
        rest: SlurmRest | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        if not interval > 0:
            raise InputError(f"must be a number > 0 (s), got {interval!r}", place="interval")
        if (ask == "rest") != (rest is not None):
            raise InputError("must be given where Slurm is asked by 'rest', and nowhere else", place="socket")
        self.cluster = cluster
        self.ask = ask
        self._rest = rest
        self.commands = commands or SlurmCommands()
        self.interval = interval
        self.wake = wake
        self.requested = requested
        self.memory = memory
        self.priorities = priorities
        self.marks = marks
        self.refused = Refused()
        self._clock = clock
        self._told: set[tuple[int | str, float]] = set()
        self._due = self._earliest = monotonic()
        self._trouble: str | None = None
        self._awake = False  # whether something has woken it since the last report

    def __repr__(self) -> str:
        return f"<SlurmSource {self.cluster}>"

    def report(self) -> StateReport | None:
        """Return the full state; ``None`` if Slurm does not answer, which is counted."""
        began = monotonic()
        try:
            found = self._state()
        except SlurmError as error:
            self.refused.count(error)
            self._trouble, found = str(error), None
        else:
            self._trouble = None
        ended = monotonic()
        if found is None:
            self._earliest = self._due = ended + min(max(ended - began, 1.0), _LONGEST_PAUSE)
        else:
            self._earliest, self._due = ended + _IDLE * (ended - began), ended + self.interval
        return found

    def _state(self) -> StateReport:
        time = self._clock()
        records, sizes, (down, draining) = self._by_squeue() if self.ask == "squeue" else self._by_json()
        jobs = queue_of(
            records,
            sizes,
            limit_from=self.requested,
            memory=self.memory,
            priorities=self.priorities,
            refused=self.refused,
        )
        fresh = tuple(job for job in jobs if (job.job, job.submit) not in self._told or job.state in _ALIVE)
        self._told = {(job.job, job.submit) for job in jobs if job.ended is not None and job.ended < time - _LONG_OVER}
        return StateReport(
            cluster=self.cluster, time=max([time, *_instants(fresh)]), jobs=fresh, down=down, draining=draining
        )

    def _by_squeue(self) -> tuple[Iterable[JobRecord], Mapping[str, int], NodesOut]:
        """Return jobs, sizes of nodes, and the nodes that are down or drain, from rows of our own format."""
        jobs, nodes = list(self.commands.rows("jobs")), list(self.commands.rows("nodes"))
        records = records_in(jobs, refused=self.refused)
        if self.marks:
            records = with_marks(records, self.commands.read("marks"))
        return records, node_sizes(nodes), nodes_out(nodes)

    def _by_json(self) -> tuple[Iterable[JobRecord], Mapping[str, int], NodesOut]:
        """Return the same from answers in JSON."""
        jobs, nodes = (
            self.commands.read(f"{each}.json") if self._rest is None else self._rest.read(each)
            for each in ("jobs", "nodes")
        )
        try:
            document = parse_json(jobs)
            if not isinstance(document, dict):
                raise InputError(f"must be an object, got {shown(document)}")
            records, told = jobs_in(document, refused=self.refused), read_answer(nodes).nodes or ()
        except InputError as error:
            raise SlurmError(f"answer in JSON: {error}") from None
        out = tuple(tuple(node.name for node in told if node.service == each) for each in ("down", "draining"))
        sizes: dict[str, int] = {}
        for node in told:
            for name in node.partitions:
                sizes[name] = max(sizes.get(name, 1), node.cpus)
        return records, sizes, (out[0], out[1])

    def events(self, timeout: float) -> Iterable[Event]:
        """Return what the wakening source tells, and a full report once one is due."""
        until = monotonic() + timeout
        while True:
            now = monotonic()
            if now >= self._due and now >= self._earliest:
                woken, self._awake = self._awake, False
                report = self.report()
                if woken:
                    self._due = min(self._due, now + _AFTER)
                return [] if report is None else [report]
            left = min(max(self._due, self._earliest), until) - now
            if left <= 0:
                return []
            told = self._woken(left)
            if told:
                return told

    def _woken(self, timeout: float) -> list[Event]:
        """Wait for the wakening source; its events make a report due."""
        if self.wake is None:
            sleep(timeout)
            return []
        told = list(self.wake.events(timeout))
        if told:
            self._due, self._awake = min(self._due, monotonic() + _SETTLE), True
        elif self.wake.over:
            self.wake = None
        return [event for event in told if not isinstance(event, Noticed)]

    def position(self) -> str | None:
        """Return the position of the wakening source; reports need none."""
        return None if self.wake is None else self.wake.position()

    def resume(self, position: str | None) -> None:
        """Let the wakening source continue; jobs that have ended are told anew."""
        self._told.clear()
        self._due = self._earliest = monotonic()
        if self.wake is not None:
            self.wake.resume(position)

    def check(self) -> list[str]:
        """Return what Slurm tells and what the twin may not see, in sentences.

        Raises
        ------
        InputError
            what a command prints is not understood
        SlurmError
            a command is missing, fails, or does not answer
        """
        woken = self.wake.check() if isinstance(self.wake, RemoteSource) else ()
        own = check_slurm(self.commands, memory=self.memory) if self._rest is None else check_rest(self._rest)
        return [*own, *(f"wakened by {each}" for each in woken)]

    @property
    def trouble(self) -> str | None:
        """Why Slurm, or the wakening source, cannot be read now; reports come at intervals without the latter."""
        return self._trouble or (self.wake.trouble if isinstance(self.wake, RemoteSource) else None)

    @property
    def gaps(self) -> int:
        """How often the wakening source has missed events; a report follows in any case."""
        return self.wake.gaps if isinstance(self.wake, RemoteSource) else 0

    @property
    def over(self) -> bool:
        """Always false: a scheduler goes on."""
        return False

    def close(self) -> None:
        """Close the wakening source."""
        if self.wake is not None:
            self.wake.close()


def _instants(jobs: Iterable[JobReport]) -> Iterable[float]:
    for job in jobs:
        yield job.submit
        for instant in (job.started, job.ended):
            if instant is not None:
                yield instant
