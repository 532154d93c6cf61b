"""Slurm as a source of events, by commands that read, and the hands that act: the full list of commands that write.

Jobs are held by a begin time (``sbatch --begin``), not by priority 0: Slurm itself lets them start once it has come, so
that none waits longer whatever dies, and a release does not send a job to the end of the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from simmodel import InputError
from simmodel.extending import shown
from simmodel_site.twin.acting.actions import PREFERRED, RELEASED, RESTORING, Command, HandsError, JobNow, Mode
from simmodel_site.twin.acting.performing import CommandHands
from simmodel_site.twin.events import JobState
from simmodel_site.twin.mirror.node_states import NodesOut, nodes_out
from simmodel_site.twin.slurm.answers import read_answer, read_document
from simmodel_site.twin.slurm.commands import UNKNOWN_JOB, SlurmCommands, SlurmError, check_id
from simmodel_site.twin.slurm.jobs import JobRecord, LimitFrom, Rules, job_state, jobs_in, queue_of
from simmodel_site.twin.slurm.records import Site
from simmodel_site.twin.slurm.rest import SlurmRest
from simmodel_site.twin.slurm.scontrol import read_scontrol
from simmodel_site.twin.slurm.squeue import (
    node_services,
    node_sizes,
    records_in,
    rules_in,
    with_array_limits,
    with_marks,
)
from simmodel_site.twin.sources import Source
from simmodel_site.twin.sources.polling import PolledSettings, PolledSource, State

if TYPE_CHECKING:
    from datetime import tzinfo

    from simmodel_site.twin.described import Described

__all__ = ["WRITES", "SlurmHands", "SlurmSettings", "SlurmSource"]


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
        as of :class:`~simmodel_site.twin.acting.performing.CommandHands`

    >>> hands = SlurmHands(mode="priority")
    >>> hands.send("release", 7)
    Traceback (most recent call last):
    ...
    simmodel_site.twin.acting.actions.HandsError: 'release' is no command of this mode: prefer, unprefer
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


Ask: TypeAlias = Literal["squeue", "json", "rest"]
"""How Slurm is asked: by rows in formats of our own (the fastest), by ``squeue --json``, or by slurmrestd."""


@attrs.frozen(kw_only=True, repr=False)
class SlurmSettings(PolledSettings):
    """The settings of a source that asks Slurm.

    Parameters
    ----------
    interval, wake, conf, folder, timeout
        as of :class:`~simmodel_site.twin.sources.polling.PolledSettings`; the stream of Slurm's scripts wakes it
    requested
        where requested times stand: ``"limit"``, or ``"comment"`` (seconds, finer than Slurm's minutes)
    memory
        whether Slurm allocates memory to jobs; default: if its ``SelectTypeParameters`` names memory, which slurmrestd
        does not tell
    priorities
        whether Slurm's priorities come before the order of the mirrored policy
    ask
        how Slurm is asked: ``"squeue"``, by rows in formats of our own; ``"json"``, by ``squeue --json``; or ``"rest"``
    marks
        whether the marks of jobs that are held for a twin are asked for, too: such jobs wait
    socket
        the unix socket of slurmrestd
    """

    requested: LimitFrom = "limit"
    memory: bool | None = None
    priorities: bool = False
    ask: Ask = "squeue"
    marks: bool = False
    socket: str | None = None

    def open(self, cluster: str, folder: Path) -> SlurmSource:
        rest = None if self.socket is None else SlurmRest(str(folder / self.socket), self.timeout)
        return SlurmSource(cluster, self, wake=self.wakening(cluster, folder), rest=rest)

    def hands(self, mode: Mode, *, restoring: bool = False) -> SlurmHands:
        """Return the hands for this Slurm in a mode; ``restoring``: with the commands that give everything back.

        Raises
        ------
        InputError
            jobs that are held for a twin would not be seen to wait
        """
        if mode == "hold-and-release" and self.ask == "squeue" and not self.marks:
            raise InputError("must be true with mode 'hold-and-release'", place="source.marks")
        return SlurmHands(self.commands_of(SlurmCommands), mode, allowed=RESTORING if restoring else None)

    def describe(
        self, paths: Iterable[str | Path] = (), *, local: tzinfo | None = None, origin: float = 0.0
    ) -> Described:
        """Return the platform of the cluster, as :func:`~simmodel_site.twin.slurm.describe.describe_slurm` does."""
        from simmodel_site.twin.slurm.describe import describe_slurm

        commands = self.commands_of(SlurmCommands)
        rest = None if self.socket is None else SlurmRest(self.socket, self.timeout)
        return describe_slurm(paths, commands=commands, rest=rest, local=local, origin=origin)


class SlurmSource(PolledSource):
    """A source of full reports on Slurm; jobs that have ended stay in them for some seconds more.

    Parameters
    ----------
    cluster
        the name of the cluster
    settings
        where Slurm is, how it is asked, and how its answers are taken
    commands, wake, clock
        as of :class:`~simmodel_site.twin.sources.polling.PolledSource`; default: the commands that the settings name
    rest
        asks slurmrestd
    """

    settings: SlurmSettings
    commands: SlurmCommands

    def __init__(
        self,
        cluster: str,
        settings: SlurmSettings | None = None,
        *,
        commands: SlurmCommands | None = None,
        wake: Source | None = None,
        rest: SlurmRest | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        settings = settings or SlurmSettings()
        super().__init__(cluster, settings, commands or settings.commands_of(SlurmCommands), wake=wake, clock=clock)
        if (settings.ask == "rest") != (rest is not None):
            raise InputError("must be given where Slurm is asked by 'rest', and nowhere else", place="socket")
        self._rest = rest
        self._nodes: frozenset[str] | None = None  # the names of the last answer
        self._config: str | None = None
        self._rules = Rules()
        self._as_of = 0.0  # the instant of the last answer in JSON

    def state(self) -> State:
        """Return the state of Slurm; raises :class:`~simmodel_site.twin.slurm.commands.SlurmError`."""
        records, sizes, out = self._by_squeue() if self.settings.ask == "squeue" else self._by_json()
        jobs = queue_of(
            records,
            sizes,
            limit_from=self.settings.requested,
            memory=self._rules.memory if self.settings.memory is None else self.settings.memory,
            priorities=self.settings.priorities,
            rules=self._rules,
            refused=self.refused,
        )
        return State(jobs, *out)

    def _by_squeue(self) -> tuple[Iterable[JobRecord], Mapping[str, int], NodesOut]:
        """Return jobs, sizes of nodes, and the nodes that are down or drain, from rows of our own format."""
        jobs, nodes = self.commands.rows("jobs"), self.commands.rows("nodes")
        names = frozenset(row["name"] for row in nodes)
        if self._nodes is None or not names >= self._nodes:
            self._nodes = self.commands.nodes()
        if not names or not names >= self._nodes:
            raise SlurmError("sinfo: must tell all nodes of partitions")
        self._nodes = names
        self._rules = rules_in(self._configuration(), nodes)
        records: Iterable[JobRecord] = records_in(jobs, refused=self.refused)
        if any(each["task"].isdecimal() and each["state"] == "PENDING" for each in jobs):
            records = with_array_limits(records, self.commands.rows("arrays"))
        if self.settings.marks:
            records = tuple(with_marks(records, self.commands.rows("marks")))
        return records, node_sizes(nodes), nodes_out(node_services(nodes))

    def _configuration(self) -> str:
        """Return Slurm's settings, asked for once: with others, the platform is another one, too."""
        if self._config is None:
            self._config = "" if self._rest is not None else self.commands.read("config")
        return self._config

    def _by_json(self) -> tuple[Iterable[JobRecord], Mapping[str, int], NodesOut]:
        """Return the same from answers in JSON."""
        read = self.commands.read
        jobs, nodes = (
            read(f"{each}.json") if self._rest is None else self._rest.read(each).decode("utf-8", "replace")
            for each in ("jobs", "nodes")
        )
        try:
            (document, as_of), (of_nodes, _) = read_document(jobs, self._as_of), read_document(nodes)
            records = jobs_in(document, refused=self.refused, garbled="\ufffd" in jobs)
            told = read_answer(of_nodes).nodes
            if told is None:
                raise InputError("must be told", place="nodes")
        except InputError as error:
            raise SlurmError(f"answer in JSON: {error}") from None
        self._as_of = min(as_of, self._clock())
        rows = (
            {"name": node.name, "partition": name, "memory": f"{node.memory / 2**20:.0f}"}
            for node in told
            for name in node.partitions
        )
        self._rules = rules_in(self._configuration(), rows)
        sizes: dict[str, int] = {}
        for node in told:
            for name in node.partitions:
                sizes[name] = max(sizes.get(name, 1), node.cpus)
        return records, sizes, nodes_out((node.name, node.service) for node in told)

    def known(self) -> Iterable[int | str]:
        """Return the jobs that ``scontrol`` lists; none where slurmrestd is asked."""
        return self.commands.jobs() if self._rest is None else ()

    def states_of(self, job: int | str) -> Iterable[JobState]:
        """Return the states in which a job may be, asked for alone; none: Slurm does not know it."""
        if self._rest is not None:
            records: Iterable[JobRecord] = self._by_json()[0]
            return [each.state for each in queue_of(records, refused=self.refused) if each.job == job]
        return [job_state((word,)) for word in self.commands.states(job)]

    def release(self) -> str:
        """Return a sentence on the release of Slurm and its cluster; raises ``SimmodelError``."""
        self.commands.read("ping")
        site = self._site()
        return f"Slurm {site.version or 'of unknown version'} answers; its cluster is {site.cluster or 'not named'}"

    def count(self, name: str) -> int:
        """Return how many ``jobs`` or ``nodes`` there are; raises ``SimmodelError``."""
        rows = self.commands.rows(name)
        return len({row.get("name") for row in rows} if name == "nodes" else rows)

    def advice(self) -> Iterator[str]:
        """Yield sentences on hidden jobs and nodes, and on the setting ``memory``."""
        settings = self._site().settings or {}
        hidden = [each for each in settings.get("PrivateData", "").lower().split(",") if each in ("jobs", "nodes")]
        if hidden:
            yield f"PrivateData hides the {' and '.join(hidden)} of others from users who are no operators"
        allocated = "MEMORY" in settings.get("SelectTypeParameters", "").upper()
        if settings and self.settings.memory not in (None, allocated):
            told = "allocates memory" if allocated else "does not allocate memory"
            yield f"Slurm {told}: the source should have memory = {str(allocated).lower()}"

    def _site(self) -> Site:
        return read_scontrol(self.commands.read("config"), "scontrol show config")

    def check_scheduler(self) -> Iterator[str]:
        """Yield sentences on Slurm's answers, on hidden jobs and nodes, and on settings; raises ``SimmodelError``."""
        return super().check_scheduler() if self._rest is None else self._rest.check()
