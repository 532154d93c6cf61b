"""How jobs come into a cluster: what they become there, what can never run, and what is still to be submitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from simmodel.errors import InputError
from simmodel.systems.cluster.arrivals import Arrivals, PlainJobs, chunks_of
from simmodel.systems.cluster.replay import known_here, needs_specs, note_left_out, specs
from simmodel.work.job import Job, LiveJob
from simmodel.work.prepare import planned_seconds, prepare

if TYPE_CHECKING:
    from simmodel.environment import Call, ToCome
    from simmodel.resources.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.queueing import Queueing
    from simmodel.systems.dependencies import Dependencies
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Report, Workload

__all__ = ["Intake", "Submission"]


class Submission:
    """A job that is still to be submitted, at an instant (s): its row in the record, its number in that order."""

    __slots__ = ("at", "job", "number", "report", "row")

    def __init__(self, at: float, row: int, number: int, job: Job, report: Report) -> None:
        self.at = at
        self.row = row
        self.number = number
        self.job = job
        self.report = report


class Intake:
    """Makes live jobs of what is submitted, refuses what can never run, and has jobs submitted later.

    Attributes
    ----------
    submitted
        how many jobs have been, or are still to be, submitted: the number of the next one
    offset
        of the numbers of jobs to their rows in the record
    sources, submissions
        plain jobs still to be submitted; others, each by its call
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

    # ------------------------------------------------------------------ what jobs become here

    def live(self, spec: Job, number: int | None = None, row: int | None = None) -> tuple[LiveJob, str | None]:
        """Return the live job, and why it can never run; by default it is the next one. A pure question.

        Raises
        ------
        InputError
            where it names a queue or a partition that is not there
        """
        core = self._core
        number = self.submitted if number is None else number
        index = number - self.offset if row is None else row
        run = float("inf") if spec.run is None else spec.run
        limit = spec.requested if spec.requested is not None else run
        requested, expected, duration = (
            float(each) for each in planned_seconds(run, limit, core.estimates, core.overrun)
        )
        if spec.body is not None:
            requested, expected, duration = limit, limit, float("inf")
        name = spec.id if spec.id is not None else spec.name or number + 1
        job = LiveJob(name, index, core.env.now, spec.processors, requested, expected, duration)
        job.seq = number
        job._job = spec
        job.user, job.priority = spec.user, spec.priority
        if core.overrun == "stop" and limit < run:
            job._outcome = "timeout"
        job.watched = True
        rules = self._queueing.rules
        if spec.queue is not None and rules:
            job.rules = rules.get(str(spec.queue))
            if job.rules is None:
                raise InputError(f"queue {spec.queue!r} of job {name} is not there; there are {', '.join(rules)}")
            job.priority += job.rules.spec.priority
        pool = _place_of(job, spec, core)
        job.place = pool
        job.priority += pool.priority
        job.request = pool.request_of(spec)
        reason = pool.why_not(job) or pool.limits_why_not(job)
        return job, reason or (job.rules.why_not(job) if job.rules is not None else None)

    # ------------------------------------------------------------------ submission

    def take_in(self, job: LiveJob) -> None:
        """Submit a live job: it waits for others, is held, or joins the queue."""
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
        """Return the jobs of a workload as they are simulated here: what is repaired, what is rejected."""
        core = self._core
        largest = max(pool.capacity for pool in core.places)
        prepared = prepare(workload, largest, core.estimates, core.overrun)
        note_left_out(workload, core.offers, prepared.report)
        return prepared

    def replay(self, workload: Workload, prepared: Prepared) -> None:
        """Have the jobs of a workload submitted, each at its instant."""
        core = self._core
        report = prepared.report
        first = self.submitted - self.offset
        names = workload["job"].tolist() if prepared.rejected else []
        for row, reason in prepared.rejected.items():
            processors = int(prepared.processors[row])
            job = LiveJob(names[row], first + row, float(workload["submit"][row]), processors, 0.0, 0.0, 0.0)
            job.place = core.places[0]
            self.reject(job, reason)
        self.submitted += len(workload)
        if core.only_pool is None or needs_specs(workload, core.offers):
            offers = core.offers
            for row, asked in specs(workload, prepared, offers.nodes):
                spec = known_here(offers, asked, report) if workload.specs is None else asked
                number = first + row + self.offset
                self.expect_one(Submission(float(prepared.submit[row]), first + row, number, spec, report))
        else:
            rows = range(first, first + len(workload))
            numbers = {row: row + self.offset for row in rows} if self.offset else None
            self.expect(chunks_of(workload, prepared, first), numbers)

    def reject(self, job: LiveJob, reason: str) -> None:
        """Record a job of a log that no place can ever run."""
        job.state = "rejected"
        self._core.tell("job_rejected", job, reason)
        self._dependencies.rejected(job.id)

    # ------------------------------------------------------------------ what is to come

    def expect(self, chunks: Iterable[PlainJobs], numbers: Mapping[int, int] | None) -> None:
        """Have plain jobs submitted, each at its instant."""
        self.sources.append(Arrivals(self._core, self._queueing, chunks, numbers))

    def expect_one(self, coming: Submission) -> None:
        """Have a job submitted; what can never run is recorded as rejected, and counted."""
        call = self._core.env.call_at(coming.at, lambda: self._submit(call), self._core.submit_priority)
        self.submissions[call] = coming

    def _submit(self, call: Call) -> None:
        coming = self.submissions.pop(call)
        job, reason = self.live(coming.job, coming.number, coming.row)
        if reason is None:
            self.take_in(job)
            return
        coming.report.rejected[reason.split(" asked for,")[-1].strip()] += 1
        self.reject(job, reason)
        self._over(job)

    def cancel_at(self, job: LiveJob, at: float) -> None:
        """Have a job withdrawn, or stopped, at an instant (s)."""
        core = self._core
        self._cancellations[job] = core.env.call_at(at, lambda: self._cancel(job), core.end_priority)

    def forget_cancellation(self, job: LiveJob) -> None:
        """The job is over, or has gone."""
        call = self._cancellations.pop(job, None)
        if call is not None and call.pending:
            self._core.env.withdraw(call)

    def cancellations(self) -> list[ToCome]:
        """List the cancellations to come, each with the number of its job."""
        return [call.to_come("cancel", job.seq) for job, call in self._cancellations.items() if call.pending]


def _place_of(job: LiveJob, spec: Job, core: ClusterCore) -> Pool:
    """Return the pool that a job waits for: its partition's, else its queue's, else the default one.

    Where there is no default, the first that can ever run it.

    Raises
    ------
    InputError
        where the partition is not there
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
            there = ", ".join(core.pools)
            raise InputError(f"partition {name!r} of job {job.id} is not there; there are {there}")
        return pool
    for pool in core.places:
        if pool.part_of is not None:
            break  # reservations are for those that name them
        job.request = pool.request_of(spec)
        if pool.why_not(job) is None and pool.limits_why_not(job) is None:
            return pool
    return core.places[0]
