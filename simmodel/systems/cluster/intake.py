"""How jobs come into a cluster: live jobs, rejection, planned submissions of single jobs, of logs and of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simmodel.environment import GIVE_UP
from simmodel.foundation.errors import ImpossibleWork, InputError, unknown
from simmodel.records.streamed_recorder import StreamedRecorder
from simmodel.systems.arrivals import (
    BLOCK,
    Arrivals,
    ChunkReader,
    as_queue,
    check_names,
    check_specs,
    known_here,
    name_of,
    needs_specs,
    note_left_out,
    prepared_of,
    specs,
)
from simmodel.systems.cluster.queueing import able, places_of
from simmodel.work.job import Job, LiveJob, rule_of
from simmodel.work.malleable import MalleableJob
from simmodel.work.prepare import Prepared, as_workload, distinct_jobs, planned_seconds, prepare
from simmodel.work.workload import cancelled_waiting, elastics_of

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.environment import Call, ToCome
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.queueing import Queueing
    from simmodel.systems.dependencies import Dependencies
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.elastic import Elastic
    from simmodel.work.prepare import JobsGiven
    from simmodel.work.workload import Report, Workload

__all__ = ["ChunkedReplay", "Intake", "PlainArrivals", "PlainJob", "Submission", "columns_of_log"]


PlainJob: TypeAlias = "tuple[int, float, int, float, float, float, Any, Any, str | None, bool, Elastic | float | None]"
"""A future job of a log that requests only processors and time, as a plain tuple, which costs the collector nothing.

Its row in the record; the instant of its submission, in s; its processors; the seconds that it is planned with, is
expected to run and runs (see :class:`~simmodel.work.job.LiveJob`); its id and user; its final state unless it is
interrupted, ``None``: completed; whether it has no requested time; its sizes, if it may have several, or the instant at
which it was cancelled while it waited (s).
"""


class PlainArrivals(Arrivals[PlainJob]):
    """Submits the plain jobs of a log to a cluster.

    The number of a job in the order of submission is its row, unless ``numbers`` maps the row to another.
    """

    __slots__ = ("_fixed", "_queueing", "numbers")

    def __init__(
        self,
        core: ClusterCore,
        queueing: Queueing,
        blocks: Iterable[Sequence[PlainJob]],
        numbers: Mapping[int, int] | None,
        cancel_at: Callable[[LiveJob, float], object],
    ) -> None:
        self._queueing = queueing
        assert queueing.only_queue is not None
        each = core.by_event or bool(core.on_submitted)
        self.numbers = numbers
        self._fixed = (core, queueing.only_queue.add, core.only_pool, each, numbers, cancel_at)  # for each event
        super().__init__(core.env, blocks, core.submit_priority)

    def _fire(self, _event: Event) -> None:
        core, admit, pool, each, numbers, cancel_at = self._fixed
        one_by_one = core.by_event or core.on_submitted
        if one_by_one:
            admit = self._queueing.admit
        watched = bool(core.usages)
        jobs, i = self._jobs, self._i
        at = jobs[i][1]
        self.number = inf
        while True:
            row, _, processors, planned, expected, duration, name, user, outcome, blind, more = jobs[i]
            if more is None:
                job = LiveJob(name, row, at, processors, planned, expected, duration, user, pool, watched)
            elif isinstance(more, float):
                job = LiveJob(name, row, at, processors, planned, expected, duration, user, pool, True)
                cancel_at(job, more)
            else:
                job = MalleableJob(name, row, at, processors, planned, expected, duration, user, pool, True)
                job.elastic = more
            if numbers is not None:
                job.seq = numbers[row]
            if outcome is not None:
                job._outcome = outcome
            if blind:
                job.unrequested = True
            i += 1
            if i == len(jobs):
                jobs, i = self._next_block(), 0
            self._i = i
            admit(job)
            if not jobs:
                break
            then = jobs[i][1]
            if each or then != at:
                self._push(then)
                break
        if not one_by_one:
            core.wake_last()


def plain_blocks(workload: Workload, prepared: Prepared, first: int = 0) -> Iterator[list[PlainJob]]:
    """Yield the rows that can run in blocks of plain Python values, in order of submission.

    ``first`` is the record's row of the workload's first job.
    """
    for begin in range(0, len(prepared.rows), BLOCK):
        rows = prepared.rows[begin : begin + BLOCK]
        ids, users = (
            workload[name][rows].tolist() if name in workload else [None] * len(rows) for name in ("job", "user")
        )
        ends, more = prepared.ends(rows), elastics_of(workload.table, rows, prepared.processors)
        if "cancel" in workload:
            for i in np.flatnonzero(cancelled_waiting(workload.table)[rows]).tolist():
                ends[i], more[i] = "withdrawn", float(workload["cancel"][rows[i]])
        columns: tuple[list[Any], ...] = (
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
        )
        yield list(zip(*columns, strict=True))


class Submission:
    """A job that will be submitted at an instant (s), with its row in the record and its number of submission.

    ``before``, if any, is called when that instant has come, first of all.
    """

    __slots__ = ("at", "before", "job", "number", "report", "row")

    def __init__(self, at: float, row: int, number: int, job: Job, report: Report) -> None:
        self.at = at
        self.row = row
        self.number = number
        self.job = job
        self.report = report
        self.before: Callable[[], object] | None = None


class Intake:
    """Creates live jobs, rejects jobs that can never run, and plans the submission of later ones.

    Attributes
    ----------
    submitted
        number of submitted and arriving jobs, which is also the number of the next one
    offset
        number of a job minus its row in the record
    sources, submissions
        arriving plain jobs; other arriving jobs by their calls
    chunks
        the replay of a workload that is read in chunks, or ``None``
    reports
        counts of what was skipped, repaired and rejected, of each workload
    """

    def __init__(
        self,
        core: ClusterCore,
        queueing: Queueing,
        dependencies: Dependencies,
        cancel: Callable[[LiveJob], object],
        over: Callable[[LiveJob], object],
        count_coming: Callable[[int], object],
        *,
        mirrored: bool,
    ) -> None:
        self._core = core
        self._queueing = queueing
        self._dependencies = dependencies
        self._cancel = cancel
        self._over = over
        self._count_coming = count_coming
        self._mirrored = mirrored  # whether starts and ends are reported from outside
        self.submitted = 0
        self.offset = 0
        self.sources: list[PlainArrivals] = []
        self.submissions: dict[Call, Submission] = {}
        self.chunks: ChunkedReplay | None = None
        self.reports: list[Report] = []
        self._cancellations: dict[LiveJob, Call] = {}

    # ------------------------------------------------------------------ live jobs

    def live(self, spec: Job, number: int | None = None, row: int | None = None) -> tuple[LiveJob, str | None]:
        """Return the live job, by default the next one, and why it can never run or ``None``; has no side effects.

        Raises
        ------
        InputError
            if it names an unknown queue or partition
        """
        core = self._core
        spec = as_queue(core.io.timed_job(spec), self._queueing.rules, core.pools)
        number = self.submitted if number is None else number
        index = number - self.offset if row is None else row
        run = spec.seconds()
        limit = spec.requested if spec.requested is not None else run
        requested, expected, duration = map(float, planned_seconds(run, limit, core.estimates, core.overrun))
        if spec.own_end:
            requested, expected, duration = limit, limit, float("inf")
        name = name_of(spec, number + 1, self._dependencies.known)
        kind = LiveJob if spec.elastic is None else MalleableJob
        job = kind(name, index, core.env.now, spec.processors, requested, expected, duration)
        if spec.elastic is not None:
            job.elastic = spec.elastic
        job.seq = number
        job._job = spec
        job.user, job.priority = spec.user, spec.priority
        job.unrequested = spec.requested is None and core.estimates == "requested"
        cut = core.overrun == "stop" and limit < run and spec.traffic is None
        if cut or spec.run is None or spec.outcome != "completed":
            job.end_as(cut=cut)
        job.watched = True
        rules = self._queueing.rules
        if spec.queue is not None and rules:
            job.rules = rules.get(str(spec.queue))
            if job.rules is None:
                raise InputError(f"job {name}: {unknown('queue', str(spec.queue), rules).message}")
            job.priority += job.rules.spec.priority
        places = places_of(spec, core) if spec.partitions and core.only_pool is None else [_place_of(job, spec, core)]
        for pool in places:
            job.request = pool.request_of(spec)
            if spec.requested == inf and not spec.own_end:
                self._limit(job, spec, pool)
            reason = pool.why_not(job) or pool.limits.why_not(job, pool.name)
            if reason is None:
                break
        else:
            if len(places) > 1:
                pool, reason = places[0], able(job, places)[1]
                job.request = pool.request_of(spec)
        job.place = pool
        job.priority += pool.priority
        reason = reason or (job.rules.why_not(job) if job.rules is not None else None)
        if reason is None and spec.workflow is not None:
            from simmodel.systems.cluster.bodies import why_not_inside

            reason = why_not_inside(spec)
        if reason is None and spec.traffic is not None:
            from simmodel.systems.cluster.traffic import why_no_traffic

            reason = why_no_traffic(spec, pool)
        return job, reason or core.io.why_not(spec)

    def _limit(self, job: LiveJob, spec: Job, pool: Pool) -> None:
        """Give a job without a limit that of its partition and queue."""
        core, rules, run = self._core, job.rules, spec.seconds()
        limits = pool.limits.requested, None if rules is None else rules.spec.max_requested
        limit = min([inf, *(each for each in limits if each is not None)])
        job.plan(*map(float, planned_seconds(run, limit, core.estimates, core.overrun)))
        job.end_as(cut=core.overrun == "stop" and limit < run and spec.traffic is None)

    # ------------------------------------------------------------------ submission

    def submit(self, spec: Job, since: float | None, number: int | None) -> LiveJob:
        """Submit a job now: see :meth:`Cluster.submit <simmodel.systems.cluster.system.Cluster.submit>`."""
        core, now = self._core, self._core.env._now
        if not isinstance(spec, Job):
            raise InputError(f"must be a Job, got {spec!r}", place="work")
        if since is not None and not since <= now:
            raise InputError(f"must be an instant <= {now:g} s, got {since!r}", place="since")
        if number is not None and core.recorder is not None:
            raise InputError(f"must be None for a cluster that keeps a record, got {number!r}", place="number")
        self.check(((name_of(spec, self.submitted + 1, self._dependencies.known), spec),))
        job, reason = self.live(spec)
        if reason is not None and (not self._mirrored or job.place.why_not(job) is not None):
            raise ImpossibleWork(f"{core.name}: job {job.id}: {reason}")
        if since is not None:
            job.submit = since
        self.receive(job, number)
        self.take_in(job)
        if self._mirrored and job.rules is None and job.request is None and _adds_nothing(spec):
            job._job = None  # its copies in what-ifs cost as little as those of jobs of a log
        return job

    def receive(self, job: LiveJob, number: int | None = None) -> None:
        """Assign a number, by default the next one, and a row in the record to a job that is about to be submitted."""
        if self.chunks is not None:
            raise InputError(f"{self._core.name}: cannot take jobs one by one while it reads a workload in chunks")
        self._core.record_submissions()
        job.seq = seq = self.submitted if number is None else number
        job.index = seq - self.offset
        if seq >= self.submitted:
            self.submitted = seq + 1
        self._count_coming(1)

    def check(self, jobs: Iterable[tuple[object, Job]]) -> None:
        """Check the ids, queues and partitions of jobs that are about to be submitted, given with their names.

        Raises
        ------
        InputError
            if an id is in use, or a queue or partition is unknown
        """
        check_specs(jobs, self._dependencies.known, self.check_names)

    def check_names(self, job: Job, label: object) -> None:
        """Check that the queue and the partitions of a job exist here, and that it names reservations alone."""
        pools = self._core.pools
        job = as_queue(job, self._queueing.rules, pools)
        check_names(job, label, self._queueing.rules, pools)
        for name in job.partitions if len(job.partitions) > 1 else ():
            if pools[str(name)].part_of is not None:
                message = f"must name reservation {name} alone, got {job.partition_text}"
                raise InputError(f"job {label}: partitions: {message}")

    def take_in(self, job: LiveJob) -> None:
        """Submit a live job, which joins the queue, is held by a limit, or is blocked by dependencies."""
        self._dependencies.know(job)
        for hook in self._core.on_submitted:
            hook(job)
        spec = job._job
        if spec is not None:
            if spec.cancel is not None:
                self.cancel_at(job, spec.cancel)
            if spec.dependencies:
                self._dependencies.block(job)
                return
        self._queueing.enqueue(job)

    def prepare(self, workload: Workload) -> Prepared:
        """Return the jobs of a workload as simulated here."""
        core = self._core
        return prepare(
            workload, core.largest, core.estimates, core.overrun, too_large=core.too_large, timed=core.io.timed
        )

    def replay(self, given: JobsGiven) -> Prepared:
        """Plan the submission of the jobs of a workload; return them as prepared. The caller counts them."""
        workload, repeated = distinct_jobs(as_workload(given))
        prepared = prepared_of(workload, repeated, self.check, self.prepare)
        note_left_out(workload, self._core.offers, prepared.report)
        self.reports += [workload.report, prepared.report]
        recorder = self._core.recorder
        if recorder is not None and not recorder.expect(columns_of_log(workload, prepared)):
            self._core.record_submissions()
        first = self.admit(workload, prepared)
        if self.one_by_one(workload):
            for coming in self.submissions_of(workload, prepared, first):
                self.expect_one(coming)
        else:
            rows = range(first, first + len(workload))
            numbers = {row: row + self.offset for row in rows} if self.offset else None
            self.expect(plain_blocks(workload, prepared, first), numbers)
        return prepared

    def replay_in_chunks(self, workload: ChunkedWorkload) -> None:
        """Plan the submission of the jobs of a workload that is read in chunks, into a record that is streamed."""
        recorder = self._core.recorder
        if not isinstance(recorder, StreamedRecorder) or self.submitted:
            message = "must be in memory, unless it is the only one and the record is streamed to a file (stream=)"
            raise InputError(f"{message}, got {workload!r}", place="workload")
        self._dependencies.forgets = True
        self.chunks = ChunkedReplay(self._core, self, self._count_coming, workload, recorder)
        self.reports.append(self.chunks.report)
        self.chunks.begin()

    def one_by_one(self, workload: Workload) -> bool:
        """Whether each job of a workload becomes a ``Job``, since it may request more than processors and time."""
        pool = self._core.only_pool
        return pool is None or pool.limited or needs_specs(workload, self._core.offers)

    def admit(self, workload: Workload, prepared: Prepared) -> int:
        """Count the jobs of a workload and reject those that can never run; return the row of the first job."""
        core = self._core
        first = self.submitted - self.offset
        names = workload["job"].tolist() if prepared.rejected else []
        for row, reason in prepared.rejected.items():
            processors = int(prepared.processors[row])
            job = LiveJob(names[row], first + row, float(workload["submit"][row]), processors, 0.0, 0.0, 0.0)
            job.place = core.places[0]
            self.reject(job, reason)
        self.submitted += len(workload)
        return first

    def submissions_of(self, workload: Workload, prepared: Prepared, first: int) -> Iterator[Submission]:
        """Yield the submissions of a workload's jobs, which request more than processors and time."""
        offers, report = self._core.offers, prepared.report
        for row, asked in specs(workload, prepared, offers.nodes):
            spec = known_here(offers, asked, report) if workload.specs is None else asked
            number = first + row + self.offset
            yield Submission(float(prepared.submit[row]), first + row, number, spec, report)

    def reject(self, job: LiveJob, reason: str) -> None:
        """Record a job of a log that no place can ever run."""
        job.state = "rejected"
        self._core.tell("job_rejected", job, reason)
        self._dependencies.rejected(job.id)

    # ------------------------------------------------------------------ planned submissions and cancellations

    def expect(self, blocks: Iterable[Sequence[PlainJob]], numbers: Mapping[int, int] | None) -> None:
        """Plan the submission of plain jobs."""
        self.sources.append(PlainArrivals(self._core, self._queueing, blocks, numbers, self.cancel_at))

    def expect_one(self, coming: Submission) -> None:
        """Plan the submission of a job; if it can never run, it is recorded as rejected and counted."""
        call = self._core.env.call_at(coming.at, lambda: self._submit(call), self._core.submit_priority)
        self.submissions[call] = coming

    def _submit(self, call: Call) -> None:
        coming = self.submissions.pop(call)
        if coming.before is not None:
            coming.before()
        job, reason = self.live(coming.job, coming.number, coming.row)
        if reason is None:
            self.take_in(job)
            return
        coming.report.rejected[rule_of(reason)] += 1
        self.reject(job, reason)
        self._over(job)

    def cancel_at(self, job: LiveJob, at: float) -> None:
        """Plan the cancellation of a job at an instant (s); at a past one it is cancelled at once."""
        core = self._core
        at = max(at, core.env._now)
        self._cancellations[job] = core.env.call_at(at, lambda: self._cancel(job), core.end_priority, GIVE_UP)

    def forget_cancellation(self, job: LiveJob) -> None:
        """Withdraw the planned cancellation of a job that has ended or left."""
        call = self._cancellations.pop(job, None)
        if call is not None and call.pending:
            self._core.env.withdraw(call)

    def cancellations(self) -> list[ToCome]:
        """List the planned cancellations, each with the number of its job."""
        return [call.to_come("cancel", job.seq) for job, call in self._cancellations.items() if call.pending]


def _adds_nothing(job: Job) -> bool:
    """Whether a live job has all that its request has, but for its name."""
    waits = job.dependencies or job.group is not None
    return job.plain and not (waits or job.inputs or job.outputs or job.site is not None or job.keeps_work)


def _place_of(job: LiveJob, spec: Job, core: ClusterCore) -> Pool:
    """Return the pool that a job waits for: its partition, else that of its queue, else the default one.

    Without a default, the first partition that can ever run it.

    Raises
    ------
    InputError
        if the partition is unknown
    """
    if core.only_pool is not None:
        return core.only_pool
    name = spec.partition
    if name is None and job.rules is not None:
        name = job.rules.spec.partition
    if name is None:
        name = core.spec.default_partition
    if name is not None:
        pool = core.pools.get(str(name))
        if pool is None:
            raise InputError(f"job {job.id}: {unknown('partition', str(name), core.pools).message}")
        return pool
    for pool in core.places:
        if pool.part_of is not None:
            break  # reservations must be named
        job.request = pool.request_of(spec)
        if pool.why_not(job) is None and pool.limits.why_not(job, pool.name) is None:
            return pool
    return core.places[0]


def columns_of_log(workload: Workload, prepared: Prepared) -> dict[str, Any]:
    """Return the columns of a workload for the record."""
    columns = {name: workload[name] for name in workload.table.names if name not in ("wait", "status", "run")}
    columns |= {
        "processors": prepared.processors,
        "requested": np.where(prepared.unrequested, np.nan, prepared.requested),
        "recorded_run": workload["run"],
    }
    return columns if prepared.outcomes is None else columns | {"outcome": prepared.outcomes}


class ChunkedReplay:
    """Submits the jobs of a workload chunk by chunk: a chunk is read when the last job of the one before is due.

    Then the rows of all jobs that have ended are written, too.

    Parameters
    ----------
    core, intake
        the parts of the cluster that runs the jobs
    count_coming
        counts jobs that will be submitted; negative: that many fewer will be
    workload
        the workload, sorted by submit time
    recorder
        the record of the cluster

    Attributes
    ----------
    report
        counts of what was skipped, repaired and rejected so far
    """

    def __init__(
        self,
        core: ClusterCore,
        intake: Intake,
        count_coming: Callable[[int], object],
        workload: ChunkedWorkload,
        recorder: StreamedRecorder,
    ) -> None:
        self._core = core
        self._intake = intake
        self._count_coming = count_coming
        self._recorder = recorder
        self._reader = ChunkReader(workload, core.offers, intake.check, intake.prepare)
        self.report = self._reader.report
        self._read = False  # whether all chunks have been read

    def begin(self) -> None:
        """Plan the submission of the first chunk."""
        self._count_coming(1)  # until all has been read
        if self._core.only_pool is None:
            self._plan_next()
        else:
            self._intake.expect(self._plain(), None)

    def read_the_rest(self) -> None:
        """Read the chunks that were not due before the end of the run, whose jobs are unsubmitted, and write them."""
        while (chunk := self._next()) is not None:
            self._intake.admit(*chunk)
            self._reader.add(chunk[1].report)
            self._recorder.drain(everything=True)

    # ------------------------------------------------------------------ submission

    def _plain(self) -> Iterator[list[PlainJob]]:
        """Yield the jobs, as long as they request only processors and time; plan the submission of all others."""
        while (chunk := self._next()) is not None:
            workload, prepared = chunk
            if self._intake.one_by_one(workload):
                self._plan(workload, prepared)
                return
            first = self._intake.admit(workload, prepared)
            self._count_coming(len(prepared.rows))
            self._reader.add(prepared.report)
            yield from plain_blocks(workload, prepared, first)

    def _plan(self, workload: Workload, prepared: Prepared) -> None:
        """Plan the submission of a chunk, and to plan the next one when the last job of this one is due."""
        intake = self._intake
        first = intake.admit(workload, prepared)
        coming = list(intake.submissions_of(workload, prepared, first))
        self._count_coming(len(coming))
        self._reader.add(prepared.report)
        for each in coming:
            each.report = self.report
            intake.expect_one(each)
        if coming:
            coming[-1].before = self._plan_next
        else:
            self._plan_next()

    def _plan_next(self) -> None:
        chunk = self._next()
        if chunk is not None:
            self._plan(*chunk)

    # ------------------------------------------------------------------ reading

    def _next(self) -> tuple[Workload, Prepared] | None:
        """Write the rows of ended jobs, read the next chunk and open its rows of the record; ``None`` at the end."""
        self._recorder.drain()
        chunk = None if self._read else self._reader.next()
        if chunk is not None:
            self._recorder.expect(columns_of_log(*chunk))
        elif not self._read:
            self._read = True
            self._count_coming(-1)
        return chunk
