"""How jobs come into a system, by one door and one after another at their instants, and the life of jobs there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import attrs
import numpy as np

from simmodel.environment import GIVE_UP, Environment, Occurrence, ToCome
from simmodel.foundation.display import counted
from simmodel.foundation.errors import ImpossibleWork, InputError, SnapshotError
from simmodel.systems.system import System
from simmodel.work.chunks import KnownIds
from simmodel.work.job import ANY, Job, LiveJob, rule_of
from simmodel.work.prepare import REPEATED, Stopped, as_workload, distinct_jobs
from simmodel.work.task import SHARE
from simmodel.work.workload import Report, cancelled_waiting, elastics_of, jobs_of_rows, shares_in

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from simpy.events import Event

    from simmodel.environment import Call
    from simmodel.records.recorder import JobRecorder
    from simmodel.results.result import Result
    from simmodel.systems.dependencies import Dependencies
    from simmodel.systems.system import Offers
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.prepare import JobsGiven, Prepared
    from simmodel.work.workload import Workload

__all__ = [
    "BLOCK",
    "Arrivals",
    "Block",
    "Check",
    "ChunkReader",
    "Coming",
    "Door",
    "JobLife",
    "LeftOut",
    "as_queue",
    "check_specs",
    "follows",
    "known_here",
    "name_of",
    "needs_specs",
    "note_left_out",
    "prepared_of",
    "requests_of",
]

BLOCK = 16_384
"""How many arriving jobs are made at once."""

Check = Callable[[Iterable[tuple[object, Job]]], object]
"""Checks jobs of a script, given with their names."""

J = TypeVar("J", bound=LiveJob)
"""The live jobs of a system."""
Block: TypeAlias = "Sequence[tuple[Any, ...]]"
"""Rows of a log that are made at once, with the fields of :class:`Coming`."""
Homes: TypeAlias = "Callable[[NDArray[np.intp]], list[Any]]"
"""Returns the homes of the jobs in rows."""
AnyLife: TypeAlias = "JobLife[Any]"
"""Any system that runs jobs."""
Row = TypeVar("Row", bound=tuple[Any, ...])
"""A job that will be submitted: its row in the record, the instant (s), and whatever its system needs."""


class Coming(NamedTuple):
    """A job of a log, or a set of tasks, that is still to be submitted.

    ``row``: its row in the record; ``limit``, ``expected`` and ``length``: the seconds that it is planned with, is
    expected to run and runs; ``outcome``: its final state unless it is interrupted, ``None``: completed;
    ``unrequested``: whether it has no requested time; ``more``: the full request, only of sets of tasks and of jobs
    that request more than processors and time, else its sizes, if it may have several, or the instant at which it was
    cancelled while it waited (s); ``home``: the place at which a broker has it.

    A block has plain tuples of these fields, which cost the garbage collector nothing.
    """

    row: int
    submit: float
    processors: int
    limit: float
    expected: float
    length: float
    id: int | str
    user: int | str | None = None
    outcome: str | None = None
    unrequested: bool = False
    more: Any = None
    home: Any = None

    @property
    def gone(self) -> bool:
        """Whether it is cancelled when it comes, so that no policy is asked."""
        return isinstance(self.more, Job) and self.more.cancel is not None and self.more.cancel <= self.submit


class Arrivals(Occurrence, Generic[Row]):
    """Submits jobs, each at its instant, with one event per instant (per job, if each submission brings a decision).

    The jobs are rows, in blocks: a block is made when the last job of the one before is due, and a live job when it is
    submitted, so that a log of a million jobs makes neither objects nor events before.

    Parameters
    ----------
    env
        the environment
    blocks
        the rows, in order of submission
    priority
        of submissions within an instant
    each
        whether each row has an event of its own

    Attributes
    ----------
    number
        event number of the next submission; infinite while it submits, since the rest follows all planned events
    """

    __slots__ = ("_blocks", "_callbacks", "_i", "_jobs", "_plan", "each", "env", "number", "priority")

    def __init__(
        self, env: Environment, blocks: Iterable[Sequence[Row]], priority: float, *, each: bool = False
    ) -> None:
        self.env = env
        self.priority = priority
        self.each = each
        self._plan = env.plan
        self.number: float = inf
        self._callbacks = (self._fire,)
        self._blocks = iter(blocks)
        if self._next_block():
            self._push(self._jobs[0][1])

    def _next_block(self) -> Sequence[Row]:
        """Make the next rows; none are left if it is empty."""
        self._i = 0
        self._jobs: Sequence[Row] = next(self._blocks, ())
        return self._jobs

    def _push(self, at: float) -> None:
        now = self.env._now
        self.callbacks = self._callbacks
        self.number = self._plan(self, at if at > now else now, self.priority)

    def _fire(self, _event: Event) -> None:
        """Submit the jobs that are due."""
        jobs, i = self._jobs, self._i
        at = jobs[i][1]
        self.number = inf
        while True:
            row = jobs[i]
            i += 1
            if i == len(jobs):
                jobs, i = self._next_block(), 0
            self._i = i
            self.submit(row)
            if not jobs:
                return
            then = jobs[i][1]
            if then != at or self.each:
                break
        self._push(then)

    def submit(self, row: Row) -> None:
        """Submit a job, or reject it."""
        raise NotImplementedError

    def left(self) -> list[Row]:
        later = list(self._blocks)
        self._blocks = iter(later)
        return [*self._jobs[self._i :], *chain.from_iterable(later)]

    @property
    def pending(self) -> bool:
        """Whether rows are left."""
        return self._i < len(self._jobs)

    @property
    def order(self) -> tuple[float, float, float]:
        """Position of its next submission in the event queue: instant (s), priority, number; only if it is pending."""
        return max(self._jobs[self._i][1], self.env._now), self.priority, self.number


def prepared_of(workload: Workload, repeated: int, check: Check, prepare: Callable[[Workload], Prepared]) -> Prepared:
    """Return the jobs of a workload as simulated by a system, with a report of repairs and rejects.

    Parameters
    ----------
    workload, repeated
        the workload with distinct ids, and how many occurred again
    check
        checks the jobs of a script
    prepare
        returns the jobs as simulated
    """
    if workload.specs is not None:
        check(zip(workload["job"].tolist(), workload.specs, strict=True))
    prepared = prepare(workload)
    if repeated:
        prepared.report.repaired[REPEATED] += repeated
    return prepared


_DETAILS = ("preceding", "priority", "checkpoint_interval", "slack", "power", "frequency_sensitivity")
_OF_NODES = ("gpus_per_node", "memory_per_node")
_SHAPES = ("nodes", "cores_per_node", "chunks", "exclusive", *_OF_NODES)


def needs_specs(workload: Workload, offers: Offers, *, plain: bool = True) -> bool:
    """Whether the jobs request more than processors and time, or the system distinguishes queues or nodes.

    Columns about nodes matter only if nodes are identified; the sizes of elastic jobs, and jobs that were cancelled
    while they waited, unless they can be ``plain``.
    """
    details = (*_DETAILS, *(_SHAPES if offers.nodes else ()), *(() if plain else ("maximum",)))
    if "cancel" in workload:
        cancels = workload["cancel"] >= 0
        if (cancels & ~(cancelled_waiting(workload.table) & plain)).any():
            return True
    return bool(
        workload.specs is not None
        or offers.queues
        or (offers.shares and any(_any(workload[f"{SHARE}{name}"]) for name in shares_in(workload.table)))
        or any(name in workload and _any(workload[name]) for name in details)
    )


def _any(column: Any) -> bool:
    if column.dtype.kind == "f":
        return bool((np.nan_to_num(column) > 0).any())
    if column.dtype.kind in "iu":
        return bool((column > 0).any())
    return any(value not in (None, "", -1) for value in column.tolist())


def requests_of(workload: Workload, prepared: Prepared, offers: Offers | None) -> list[Job]:
    """Return the jobs of a log or a script that can run, in order of submission.

    Requests of a log that the platform does not know are left out, and counted as repairs; ``offers``: what it knows,
    ``None``: processors and time, and all names.
    """
    rows = prepared.rows.tolist()
    if workload.specs is not None:
        return list(map(workload.specs.__getitem__, rows))
    on_nodes, report = offers is not None and offers.nodes, prepared.report
    found = jobs_of_rows(workload.table, rows, prepared.processors, report.repaired, on_nodes)
    return [job if offers is None else known_here(offers, job, report) for _, job in found]


class LeftOut:
    """The requests of a log that the platform ignores: GPUs, memory, partitions, constraints."""

    def __init__(self) -> None:
        self.partitions: set[object] = set()
        self.asking = 0
        self.sharing = 0
        self.endless = 0
        self.components = 0
        self.choosing = Counter[str]()

    def note(self, report: Report) -> None:
        """Add the sentences to a report."""
        if len(self.partitions) > 1:
            report.note(f"the log's {len(self.partitions)} partitions are simulated as one machine")
        if self.asking:
            report.note(f"{self.asking:,} jobs request memory per processor, which is not simulated")
        if self.sharing:
            report.note(f"{self.sharing:,} jobs request bandwidth of storages or links that the platform does not have")
        if self.endless:
            some = counted(self.endless, "job")
            report.note(f"{some} without a time limit: nobody knows the end unless the queue or partition has a limit")
        if self.components:
            some = counted(self.components, "component")
            report.note(f"{some} of heterogeneous jobs, which may start apart here")
        for name, count in self.choosing.items():
            report.note(f"{counted(count, 'job')} with {name}, which only 'simmodel slurm' heeds")

    def add(self, workload: Workload, offers: Offers, report: Report) -> None:
        """Count the requests of a log, or of a part of one."""
        if workload.specs is not None:
            return
        if "partition" in workload and not offers.partitions:
            cells = {value for value in set(workload["partition"].tolist()) if value not in (None, "", -1)}
            self.partitions |= {name for cell in cells for name in str(cell).split(",")}
        if "requested_memory" in workload:
            asked = np.nan_to_num(np.asarray(workload["requested_memory"], dtype=np.float64)) > 0
            self.asking += int(asked.sum())
        if not offers.shares:
            rates = [np.nan_to_num(workload[f"{SHARE}{name}"]) for name in shares_in(workload.table)]
            self.sharing += int((np.max(rates, axis=0) > 0).sum()) if rates else 0
        self.endless += int(np.isposinf(workload.get("requested", np.nan)).sum())
        if workload["job"].dtype.kind == "U":
            self.components += sum(map(_is_component, workload["job"].tolist()))
        for name in ("constraints", "reservation"):
            if name in workload:
                self.choosing[name] += sum(value not in ("", "-1", -1, None) for value in workload[name].tolist())
        self.choosing += Counter()  # without zeros
        if not offers.nodes:
            _count_left_out(workload, report)


def _is_component(name: str) -> bool:
    """Return whether a job of Slurm is a component of a heterogeneous job.

    >>> _is_component("7+1"), _is_component("7")
    (True, False)
    """
    job, plus, number = name.partition("+")
    return bool(plus) and job.isdecimal() and number.isdecimal()


def note_left_out(workload: Workload, offers: Offers, report: Report) -> None:
    """Count or note requests of a log that the platform ignores: GPUs, memory, partitions."""
    left_out = LeftOut()
    left_out.add(workload, offers, report)
    left_out.note(report)


def _count_left_out(workload: Workload, report: Report) -> None:
    asked = np.zeros(len(workload), dtype=bool)
    for name in _OF_NODES:
        if name in workload:
            asked |= np.nan_to_num(np.asarray(workload[name], dtype=np.float64)) > 0
    if asked.any():
        report.repaired["GPUs or memory not on the platform: request ignored"] += int(asked.sum())


def as_queue(spec: Job, queues: Collection[str], partitions: Collection[str]) -> Job:
    """Return a job whose partition is here the name of a queue as one of that queue.

    So a log of a scheduler runs on the platform that describes it: partitions that share nodes are queues there.
    """
    name = spec.partition
    if name is None or str(name) in partitions or str(name) not in queues:
        return spec
    return attrs.evolve(spec, partition=None, queue=str(name))


def known_here(offers: Offers, spec: Job, report: Report) -> Job:
    """Return the job of a log without a queue or partition that this platform does not have; count the repair."""
    spec = as_queue(spec, offers.queues, offers.partitions)
    if spec.queue is not None and offers.queues and str(spec.queue) not in offers.queues:
        report.repaired["queue not on the platform: ignored"] += 1
        spec = attrs.evolve(spec, queue=None)
    if spec.partition is not None and offers.partitions and str(spec.partition) not in offers.partitions:
        report.repaired["partition not on the platform: ignored"] += 1
        spec = attrs.evolve(spec, partition=None)
    if any(name not in offers.shares for name in spec.bandwidth):
        report.repaired["bandwidth of storages and links not on the platform: ignored"] += 1
        left = {name: rate for name, rate in spec.bandwidth.items() if name in offers.shares}
        spec = attrs.evolve(spec, bandwidth=left)
    if spec.gpu and ":" not in spec.gpu and not offers.types:
        report.repaired["types of GPUs not on the platform: any GPU taken"] += 1
        spec = attrs.evolve(spec, gpu="")
    if spec.partitions and offers.partitions:
        names = tuple(name for name in spec.partitions if name == ANY or str(name) in offers.partitions)
        if names != spec.partitions:
            report.repaired["partition not on the platform: ignored"] += 1
            spec = attrs.evolve(spec, partitions=names)
    return spec


def check_specs(
    jobs: Iterable[tuple[object, Job]], known: Container[object], check: Callable[[Job, object], None]
) -> None:
    """Check the ids, queues and partitions of the jobs of a script; unknown ones of logs are ignored.

    Parameters
    ----------
    jobs
        the jobs with their names in errors
    known
        the ids of earlier jobs
    check
        ``check(job, label)`` checks the queue and the partitions of a job that names some

    Raises
    ------
    InputError
        if an id occurs twice, or a queue or partition is unknown
    """
    seen: set[object] = set()
    for label, job in jobs:
        if job.id is not None:
            if job.id in seen or job.id in known:
                raise InputError(f"duplicate job id {job.id!r}")
            seen.add(job.id)
        if job.queue is not None or job.partition is not None or job.partitions:
            check(job, label)


def name_of(job: Job, number: int, known: Container[object]) -> int | str:
    """Return the name of a job: its id, its own name, or the first number from ``number`` on that is not a known id."""
    if job.id is not None or job.name:
        return job.id if job.id is not None else str(job.name)
    while number in known:
        number += 1
    return number


class ChunkReader:
    """The chunks of a workload that is sorted by submit time and whose jobs do not wait for each other.

    Parameters
    ----------
    workload
        the workload
    offers
        the additional requests that the system supports
    check
        checks jobs of a script, given with their names
    prepare
        returns the jobs of a chunk as simulated

    Attributes
    ----------
    report
        counts of what was skipped, repaired and rejected so far; notes of the whole after the last chunk
    """

    def __init__(
        self, workload: ChunkedWorkload, offers: Offers, check: Check, prepare: Callable[[Workload], Prepared]
    ) -> None:
        self.report = Report()
        self._name = workload.name
        self._chunks: Iterator[Workload] = iter(workload)
        self._offers, self._check, self._prepare = offers, check, prepare
        self._ids = KnownIds()
        self._left_out = LeftOut()
        self._stopped = Stopped()
        self._latest = -inf  # the last submit time so far, s

    def next(self) -> tuple[Workload, Prepared] | None:
        """Return the next chunk and its jobs as simulated; ``None`` after the last.

        The report of the jobs is not added yet: their submission may repair more.
        """
        chunk = next(self._chunks, None)
        if chunk is None:
            self._stopped.note(self.report)
            self._left_out.note(self.report)
            return None
        workload, repeated = self._ids.distinct(chunk)
        prepared = prepared_of(workload, repeated, self._check, self._prepare)
        prepared.report.notes = ()  # those that count jobs are made at the end, of all chunks
        self._check_order(workload, prepared)
        self._left_out.add(workload, self._offers, prepared.report)
        self._stopped += prepared.stopped
        self.add(workload.report)
        return workload, prepared

    def add(self, more: Report) -> None:
        """Add the counts of a report."""
        report = self.report
        report.skipped.update(more.skipped)
        report.repaired.update(more.repaired)
        report.rejected.update(more.rejected)
        for sentence in more.notes:
            report.note(sentence)

    def _check_order(self, workload: Workload, prepared: Prepared) -> None:
        """Refuse jobs that are not sorted by submit time, or that follow other jobs."""
        submit = prepared.submit[np.sort(prepared.rows)]
        before = np.append(self._latest, submit[:-1]) if len(submit) else submit
        late = np.flatnonzero(submit < before)
        if len(late):
            job = workload["job"][np.sort(prepared.rows)[late[0]]]
            raise InputError(
                f"must be sorted by submit time to be read in chunks, got {submit[late[0]]:.10g} s after "
                f"{before[late[0]]:.10g} s; a log that is not sorted is simulated in memory (without stream)",
                source=self._name,
                place=f"job {job}",
            )
        if len(submit):
            self._latest = float(submit[-1])
        dependent = np.flatnonzero(follows(workload))
        if len(dependent):
            raise InputError(
                "must not wait for other jobs to be read in chunks; such a log is simulated in memory (without stream)",
                source=self._name,
                place=f"job {workload['job'][dependent[0]]}",
            )


def follows(workload: Workload) -> NDArray[np.bool_]:
    """Return a mask of the jobs that wait for others."""
    if workload.specs is not None:
        return np.array([bool(job.dependencies) for job in workload.specs], dtype=bool)
    if "preceding" not in workload:
        return np.zeros(0, dtype=bool)
    column = workload["preceding"]
    if column.dtype.kind in "iuf":
        return np.asarray(column > 0)
    return np.array([value not in (None, "", -1) for value in column.tolist()], dtype=bool)


# ---------------------------------------------------------------------- the door of a log, and the life of its jobs


class Door:
    """The way of a log into a system: checked, rejected or planned, whole or chunk by chunk.

    A chunk is read when the last job of the one before is due. A kind of system derives its own class, which says how
    its jobs are checked, prepared, admitted and submitted.

    Parameters
    ----------
    system
        the system
    """

    _rest: Iterator[Iterable[Block]] = iter(())

    def __init__(self, system: AnyLife) -> None:
        self.system = system

    notes = True
    """Whether the report tells of requests that the platform ignores."""

    def check(self, jobs: Iterable[tuple[object, Job]]) -> None:
        """Check the ids, queues and partitions of the jobs of a script, given with their names."""
        check_specs(jobs, self.system.ids, self.system.check_names)

    def prepare(self, workload: Workload) -> Prepared:
        """Return the jobs of a workload as simulated here."""
        raise NotImplementedError

    def admit(self, workload: Workload, prepared: Prepared) -> Iterable[Block]:
        """Give the jobs of a workload their rows in the record, and reject some; return the others, in blocks."""
        raise NotImplementedError

    def plan(self, blocks: Iterable[Block]) -> None:
        """Plan the submission of jobs."""
        raise NotImplementedError

    def write(self, *, everything: bool = False) -> None:
        """Write the rows of the jobs that have ended, before a chunk is read; all rows, after the last one."""

    def take(self, given: JobsGiven) -> Prepared:
        """Plan the submission of the jobs of a workload; return them as prepared, with repairs and rejects."""
        system = self.system
        workload, repeated = distinct_jobs(as_workload(given))
        prepared = prepared_of(workload, repeated, self.check, self.prepare)
        if self.notes and workload.specs is None:
            note_left_out(workload, system.offers, prepared.report)
        blocks = self.admit(workload, prepared)
        if len(prepared.rows):
            system._active += len(prepared.rows)
            self.plan(blocks)
        system.report += workload.report + prepared.report
        return prepared

    def take_chunks(self, given: ChunkedWorkload) -> None:
        """Plan the submission of the jobs of a workload that is read in chunks, sorted by submit time."""
        self._rest = self._read(ChunkReader(given, self.system.offers, self.check, self.prepare))
        self.system._active += 1  # one more than have come, until all has been read
        self.plan(chain.from_iterable(self._rest))

    def _read(self, reader: ChunkReader) -> Iterator[Iterable[Block]]:
        """Yield the jobs of each chunk, in blocks."""
        system = self.system
        while True:
            self.write()
            chunk = reader.next()
            if chunk is None:
                break
            blocks = self.admit(*chunk)
            system._active += len(chunk[1].rows)
            reader.add(chunk[1].report)
            yield blocks
        system.report += reader.report
        system._active -= 1

    def read_the_rest(self) -> None:
        """Read the chunks that were not due before the end of the run, whose jobs are unsubmitted, and write them."""
        for _ in self._rest:
            self.write(everything=True)

    def blocks(
        self,
        workload: Workload,
        prepared: Prepared,
        first: int,
        jobs: Sequence[Job] | None,
        homes: Homes | None = None,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the jobs that can run, in order of submission: blocks of rows, with the fields of :class:`Coming`.

        Parameters
        ----------
        first
            the row of the first job in the record
        jobs
            the jobs that can run, if they request more than processors and time
        homes
            returns the homes of rows, if jobs have some
        """
        table = workload.table
        for begin in range(0, len(prepared.rows), BLOCK):
            rows = prepared.rows[begin : begin + BLOCK]
            ids, users = (
                workload[name][rows].tolist() if name in workload else [None] * len(rows) for name in ("job", "user")
            )
            ends: list[str | None] = [None] * len(rows)
            more: list[Any]
            if jobs is not None:
                more = list(jobs[begin : begin + BLOCK])
            else:
                ends, more = prepared.ends(rows), elastics_of(table, rows, prepared.processors)
                if "cancel" in workload:
                    for i in np.flatnonzero(cancelled_waiting(table)[rows]).tolist():
                        ends[i], more[i] = "withdrawn", float(workload["cancel"][rows[i]])
            columns: list[list[Any]] = [
                (rows + first).tolist(),
                prepared.submit[rows].tolist(),
                prepared.processors[rows].tolist(),
                prepared.requested[rows].tolist(),
                prepared.expected[rows].tolist(),
                prepared.duration[rows].tolist(),
                ids,
                users,
                ends,
                prepared.unrequested[rows].tolist(),
                more,
            ]
            if homes is not None:
                columns.append(homes(rows))
            yield list(zip(*columns, strict=True))


class JobLife(System[J]):
    """The life of jobs in a system, from their arrival to their end: the base class of all systems that run jobs.

    A kind of system overrides the steps that differ: :meth:`door`, :meth:`came`, :meth:`enqueue`, :meth:`start`, ...

    Attributes
    ----------
    report
        counts of what was skipped, repaired and rejected
    sources
        the jobs still to be submitted
    ids
        the ids that jobs of a script may not have: those of earlier ones
    chunks
        the door of the workload that it reads in chunks, or ``None``
    """

    submitted = 0
    chunks: Door | None = None
    ids: Any = ()

    def __init__(self, env: Environment, name: str) -> None:
        if not isinstance(env, Environment):
            raise InputError(f"env: must be a simmodel Environment, got {type(env).__module__}.{type(env).__name__}")
        self.env = env
        self.name = name
        self.changed = []
        self.report = Report()
        self.sources: list[Any] = []
        self._active = 0
        self._cancellations: dict[J, Call] = {}

    # ------------------------------------------------------------------ submission

    def able(self, found: tuple[J, str | None]) -> J:
        """Return a live job, given with the reason why it can never run or ``None``.

        Raises
        ------
        ImpossibleWork
            if there is a reason
        """
        job, reason = found
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: {'job' if self.work == 'jobs' else 'set'} {job.id}: {reason}")
        return job

    def door(self, home: str | None = None) -> Door:
        """Return the door of the jobs of a home, by name."""
        raise NotImplementedError

    def replay(self, workload: JobsGiven, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its submit time; return them as prepared, with repairs and rejects.

        A list of jobs, a data frame and a workflow are workloads too: see
        :func:`~simmodel.work.prepare.as_workload`. Jobs that can never run are recorded as rejected and counted. May be
        called for several workloads.

        Parameters
        ----------
        workload
            the jobs
        home
            their home, by name, if places are systems
        """
        return self.door(home).take(workload)

    @property
    def streams(self) -> bool:
        """Whether the rows of its record are written as the run goes on."""
        return False

    def replay_in_chunks(self, workload: ChunkedWorkload) -> None:
        """Submit the jobs of a workload as they are read; they must be sorted by submit time.

        Raises
        ------
        InputError
            if the record is not streamed, jobs have been submitted, or a job comes too late or waits for another
        """
        if not self.reads_in_chunks:
            super().replay_in_chunks(workload)
        if not self.streams or self.submitted:
            message = "must be in memory, unless it is the only one and the record is streamed to a file (stream=)"
            raise InputError(f"{message}, got {workload!r}", place="workload")
        self.chunks = self.door()
        self.chunks.take_chunks(workload)

    def check_whole(self) -> None:
        """Raise a :class:`SnapshotError` while it reads a workload in chunks, of which no copy has the rest."""
        if self.chunks is not None:
            raise SnapshotError(f"{self.name} cannot be copied: it reads its workload in chunks")

    def check_receives(self) -> None:
        """Raise an :class:`InputError` while it reads a workload in chunks, whose jobs have the next rows."""
        if self.chunks is not None:
            raise InputError(f"{self.name}: cannot take jobs one by one while it reads a workload in chunks")

    # ------------------------------------------------------------------ the life of a job

    def came(self, job: J) -> None:
        """Notify observers of a job that is submitted now."""
        raise NotImplementedError

    def enqueue(self, job: J) -> None:
        """Put a job into the queue."""
        raise NotImplementedError

    def family(self, job: J) -> Dependencies:
        """Return the dependencies among a job and others."""
        raise NotImplementedError

    def take_in(self, job: J) -> None:
        """Submit a live job, which joins the queue, is held by a limit, or is blocked by dependencies."""
        self.came(job)
        spec = job._job
        if spec is not None:
            if spec.cancel is not None:
                self.cancel_at(job, spec.cancel)
            if spec.dependencies:
                self.family(job).block(job)
                return
        self.enqueue(job)

    def come(self, job: J, reason: str | None) -> None:
        """Submit a job of a log, or reject and count it, given the reason why it can never run."""
        if reason is None:
            self.take_in(job)
            return
        self.report.rejected[rule_of(reason)] += 1
        self.reject(job, reason)
        self.over(job)

    def reject(self, job: J, reason: str) -> None:
        """Record a job that can never run."""
        job.state = "rejected"
        self.tell("job_rejected", job, reason)

    def over(self, job: J) -> None:
        """Finish a job that has ended: trigger its event, and notify the systems above."""
        self.forget_cancellation(job)
        if job.event is not None:
            job.event.succeed(job)
        self._one_over()
        for call in self.changed:
            call()

    def tell(self, hook: str, *what: object) -> None:
        """Call a hook of the observers."""
        for call in self.env.hooks(hook):
            call(*what)

    def cancel_at(self, job: J, at: float) -> None:
        """Plan the cancellation of a job at an instant (s); at a past one it is cancelled at once."""
        self._cancellations[job] = self.env.call_at(at, lambda: self.cancel(job), self.timing.ends, GIVE_UP)

    def forget_cancellation(self, job: J) -> None:
        """Withdraw the planned cancellation of a job that has ended or left."""
        call = self._cancellations.pop(job, None)
        if call is not None and call.pending:
            self.env.withdraw(call)

    def cancellations(self) -> list[ToCome]:
        """List the planned cancellations, each with the number of its job."""
        pending = ((job, call) for job, call in self._cancellations.items() if call.pending)
        return [call.to_come("cancel", self.number_of(job)) for job, call in pending]

    # ------------------------------------------------------------------ the record

    def result_of(self, recorder: JobRecorder | None, name: str | None, report: Report) -> Result:
        """Return the result of a recorder so far.

        Raises
        ------
        InputError
            if the system keeps no record
        """
        if recorder is None:
            raise InputError(f"{self.name}: cannot return a result: built with record=False")
        scheduler = self.scheduler
        from simmodel.results.result import Result

        return recorder.record(
            Result,
            name=name or scheduler.policy_name,
            report=report,
            decisions=scheduler.timing(),
            policy=scheduler.policy,
            reasons=scheduler.reasons,
            started=recorder.since,
        )
