"""The submission of jobs to a cluster: creation of live jobs, rejection, and planned arrivals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError, unknown
from simmodel.systems.cluster.arrivals import Arrivals, PlainJobs, chunks_of
from simmodel.systems.cluster.choices import able, check_partitions, places_of
from simmodel.systems.cluster.replay import (
    as_queue,
    check_names,
    check_specs,
    known_here,
    name_of,
    needs_specs,
    note_left_out,
    specs,
)
from simmodel.work.job import Job, LiveJob, rule_of
from simmodel.work.malleable import MalleableJob
from simmodel.work.prepare import planned_seconds, prepare

if TYPE_CHECKING:
    from simmodel.environment import Call, ToCome
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.queueing import Queueing
    from simmodel.systems.dependencies import Dependencies
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Report, Workload

__all__ = ["Intake", "Submission"]


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
    """

    def __init__(
        self,
        core: ClusterCore,
        queueing: Queueing,
        dependencies: Dependencies,
        cancel: Callable[[LiveJob], object],
        over: Callable[[LiveJob], object],
    ) -> None:
        self._core = core
        self._queueing = queueing
        self._dependencies = dependencies
        self._cancel = cancel
        self._over = over
        self.submitted = 0
        self.offset = 0
        self.sources: list[Arrivals] = []
        self.submissions: dict[Call, Submission] = {}
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
        requested, expected, duration = (
            float(each) for each in planned_seconds(run, limit, core.estimates, core.overrun)
        )
        if spec.has_body:
            requested, expected, duration = limit, limit, float("inf")
        name = self._name_of(spec, number)
        kind = LiveJob if spec.elastic is None else MalleableJob
        job = kind(name, index, core.env.now, spec.processors, requested, expected, duration)
        if spec.elastic is not None:
            job.elastic = spec.elastic
        job.seq = number
        job._job = spec
        job.user, job.priority = spec.user, spec.priority
        job.unrequested = spec.requested is None and core.estimates == "requested"
        if core.overrun == "stop" and limit < run:
            job._outcome = "timeout"
        job.watched = True
        rules = self._queueing.rules
        if spec.queue is not None and rules:
            job.rules = rules.get(str(spec.queue))
            if job.rules is None:
                raise InputError(f"job {name}: {unknown('queue', str(spec.queue), rules).message}")
            job.priority += job.rules.spec.priority
        places = places_of(spec, core) if spec.partitions and core.only_pool is None else [_place_of(job, spec, core)]
        pool = places[0]
        reason = None
        if len(places) == 1:
            job.request = pool.request_of(spec)
            reason = pool.why_not(job) or pool.limits_why_not(job)
        else:
            found, reasons = able(job, places)
            pool, reason = (found[0], None) if found else (pool, reasons)
            job.request = pool.request_of(spec)
        job.place = pool
        job.priority += pool.priority
        reason = reason or (job.rules.why_not(job) if job.rules is not None else None)
        if reason is None and spec.workflow is not None:
            from simmodel.systems.cluster.workflows_in_jobs import why_not_inside

            reason = why_not_inside(spec)
        return job, reason or core.io.why_not(spec)

    def _name_of(self, spec: Job, number: int) -> int | str:
        """Return the name of a job: its id, its own name, or the next number that is no id of a submitted job."""
        return name_of(spec, number + 1, self._dependencies.known)

    def check_one(self, spec: Job) -> None:
        """Check a job that is submitted now (see :meth:`check`)."""
        self.check(((self._name_of(spec, self.submitted), spec),))

    # ------------------------------------------------------------------ submission

    def check(self, jobs: Iterable[tuple[object, Job]]) -> None:
        """Check the ids, queues and partitions of jobs that are about to be submitted, given with their names.

        Raises
        ------
        InputError
            if an id is in use, or a queue or partition is unknown
        """
        check_specs(jobs, self._dependencies.known, self.check_names)

    def check_names(self, job: Job, label: object) -> None:
        """Check that the queue and the partitions of a job exist here."""
        job = as_queue(job, self._queueing.rules, self._core.pools)
        check_names(job, label, self._queueing.rules, self._core.pools)
        check_partitions(job, self._core, label)

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
        """Return the jobs of a workload as simulated here, with a report of repairs and rejects."""
        core = self._core
        if workload.specs is not None:
            self.check(zip(workload["job"].tolist(), workload.specs, strict=True))
        prepared = prepare(
            workload, core.largest, core.estimates, core.overrun, too_large=core.too_large, timed=core.io.timed
        )
        note_left_out(workload, core.offers, prepared.report)
        return prepared

    def replay(self, workload: Workload, prepared: Prepared) -> None:
        """Plan the submission of the jobs of a workload."""
        first = self.admit(workload, prepared)
        if self.one_by_one(workload):
            for coming in self.submissions_of(workload, prepared, first):
                self.expect_one(coming)
        else:
            rows = range(first, first + len(workload))
            numbers = {row: row + self.offset for row in rows} if self.offset else None
            self.expect(chunks_of(workload, prepared, first), numbers)

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

    def expect(self, chunks: Iterable[PlainJobs], numbers: Mapping[int, int] | None) -> None:
        """Plan the submission of plain jobs."""
        self.sources.append(Arrivals(self._core, self._queueing, chunks, numbers))

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
        """Plan the cancellation of a job at an instant (s)."""
        core = self._core
        self._cancellations[job] = core.env.call_at(at, lambda: self._cancel(job), core.end_priority)

    def forget_cancellation(self, job: LiveJob) -> None:
        """Withdraw the planned cancellation of a job that has ended or left."""
        call = self._cancellations.pop(job, None)
        if call is not None and call.pending:
            self._core.env.withdraw(call)

    def cancellations(self) -> list[ToCome]:
        """List the planned cancellations, each with the number of its job."""
        return [call.to_come("cancel", job.seq) for job, call in self._cancellations.items() if call.pending]


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
        if pool.why_not(job) is None and pool.limits_why_not(job) is None:
            return pool
    return core.places[0]
