"""How jobs come into a system: checked, one after another at their instants, from a workload that may be in chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
import numpy as np

from simmodel.environment import Occurrence
from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError, unknown
from simmodel.work.chunks import KnownIds
from simmodel.work.job import ANY, Job
from simmodel.work.prepare import REPEATED, Stopped
from simmodel.work.task import SHARE
from simmodel.work.workload import Report, cancelled_waiting, jobs_of_rows, shares_in

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from simpy.events import Event

    from simmodel.environment import Environment
    from simmodel.systems.system import Offers
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = [
    "BLOCK",
    "Arrivals",
    "Check",
    "ChunkReader",
    "LeftOut",
    "as_queue",
    "check_names",
    "check_specs",
    "follows",
    "known_here",
    "name_of",
    "needs_specs",
    "note_left_out",
    "prepared_of",
    "specs",
]

BLOCK = 16_384
"""How many arriving jobs are made at once."""

Check = Callable[[Iterable[tuple[object, Job]]], object]
"""Checks jobs of a script, given with their names."""


Row = TypeVar("Row", bound=tuple[Any, ...])
"""A job that will be submitted: its row in the record, the instant (s), and whatever its system needs."""


class Arrivals(Occurrence, Generic[Row]):
    """Submits jobs, each at its instant, with one event per instant (per job, if each submission brings a decision).

    The jobs are rows, in blocks: a block is made when the last job of the one before is due, and a live job when it is
    submitted, so that a log of a million jobs makes neither objects nor events before. A kind of system derives its own
    class, whose ``_fire`` submits the rows that are due.

    Parameters
    ----------
    env
        the environment
    blocks
        the rows, in order of submission
    priority
        of submissions within an instant

    Attributes
    ----------
    number
        event number of the next submission; infinite while it submits, since the rest follows all planned events
    """

    __slots__ = ("_blocks", "_callbacks", "_i", "_jobs", "_plan", "env", "number", "priority")

    def __init__(self, env: Environment, blocks: Iterable[Sequence[Row]], priority: float) -> None:
        self.env = env
        self.priority = priority
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
        self.callbacks = self._callbacks
        self.number = self._plan(self, at, self.priority)

    def _fire(self, _event: Event) -> None:
        raise NotImplementedError

    def left(self) -> list[Row]:
        """Return the rows that have not been submitted."""
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


_DETAILS = ("preceding", "priority", "checkpoint_interval")
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


def specs(workload: Workload, prepared: Prepared, on_nodes: bool = True) -> Iterator[tuple[int, Job]]:
    """Yield (row, job) for the rows that can run, in order of submission; node requests only if ``on_nodes``."""
    rows = prepared.rows.tolist()
    if workload.specs is not None:
        return zip(rows, map(workload.specs.__getitem__, rows), strict=True)
    return jobs_of_rows(workload.table, rows, prepared.processors, prepared.report.repaired, on_nodes)


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
        ``check(job, label)`` checks the queue and the partition of a job

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
        check(job, label)


def name_of(job: Job, number: int, known: Container[object]) -> int | str:
    """Return the name of a job: its id, its own name, or the first number from ``number`` on that is not a known id."""
    if job.id is not None or job.name:
        return job.id if job.id is not None else str(job.name)
    while number in known:
        number += 1
    return number


def check_names(job: Job, label: object, queues: Collection[str], partitions: Collection[str]) -> None:
    """Check that the queue and the partition of a job, if it names any, are among those of a system.

    Raises
    ------
    InputError
        if one is not
    """
    if job.queue is None and job.partition is None and not job.partitions:
        return
    several = () if job.partitions == (ANY,) else job.partitions
    named = [("partition", name, partitions) for name in (job.partition, *several)]
    for kind, name, names in (("queue", job.queue, queues), *named):
        if name is not None and str(name) not in names:
            raise InputError(f"job {label}: {unknown(kind, str(name), names).message}")


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
