"""The waiting jobs of a cluster: one queue per place, an entry of a job in that of each partition that it may have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, unknown
from simmodel.scheduling.protocol import work_units
from simmodel.scheduling.waiting import MergedQueues, WaitingQueue
from simmodel.work.job import ANY, LiveJob, Refusal, rule_of

if TYPE_CHECKING:
    from simmodel.platform.cluster import QueueSpec
    from simmodel.resources.pools.pool import Pool
    from simmodel.snapshots.jobs import Choice, WorkState
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import Job

__all__ = ["QueueRules", "Queueing", "able", "places_of", "places_to_wait"]


class QueueRules:
    """Counts the running jobs of a queue, in total and by user, and holds jobs beyond its limits in order of arrival.

    Policies do not see held jobs, so a limit delays no jobs but its own.

    Attributes
    ----------
    spec
        the spec of the queue
    held
        the held jobs
    """

    def __init__(self, spec: QueueSpec) -> None:
        self.spec = spec
        self.held: list[LiveJob] = []
        self._waiting: dict[LiveJob, None] = {}
        self._running = 0
        self._running_of: dict[Any, int] = {}
        self._limited = spec.max_running is not None or spec.max_running_per_user is not None

    def why_not(self, job: LiveJob) -> str | None:
        """Return why the queue rejects the job, or ``None``."""
        spec = self.spec
        if spec.max_processors is not None and job.processors > spec.max_processors:
            return Refusal.of(f"{job.processors} processors", f"queue {spec.name} allows {spec.max_processors}")
        if spec.max_requested is not None and job.planned > spec.max_requested:
            return Refusal.of(f"{job.planned:g} s", f"queue {spec.name} allows {spec.max_requested:g}")
        if spec.max_waiting_per_user is not None:
            mine = sum(each.user == job.user for each in (*self._waiting, *self.held))
            if mine >= spec.max_waiting_per_user:
                return f"user {job.user} has {mine} jobs waiting, queue {spec.name} allows {spec.max_waiting_per_user}"
        return None

    def full(self, user: Any) -> bool:
        """Whether a job of the user would be held now."""
        spec = self.spec
        return (spec.max_running is not None and self._running >= spec.max_running) or (
            spec.max_running_per_user is not None and self._running_of.get(user, 0) >= spec.max_running_per_user
        )

    def holds(self, job: LiveJob) -> bool:
        """Hold the job or note that it waits; return whether it is held."""
        if self._limited and self.full(job.user):
            self.held.append(job)
            self.held.sort(key=lambda each: (each.submit, each.seq))
            return True
        self.waits(job)
        return False

    def waits(self, job: LiveJob) -> None:
        self._waiting[job] = None

    def runs(self, job: LiveJob) -> None:
        self._running += 1
        self._running_of[job.user] = self._running_of.get(job.user, 0) + 1

    def started(self, job: LiveJob) -> list[LiveJob]:
        """Count a start; return the waiting jobs that must be held from now on."""
        self._waiting.pop(job, None)
        self.runs(job)
        if not self._limited:
            return []
        full = [each for each in self._waiting if self.full(each.user)]
        for each in full:
            del self._waiting[each]
        self.held = sorted([*self.held, *full], key=lambda each: (each.submit, each.seq))
        return full

    def ended(self, job: LiveJob) -> list[LiveJob]:
        """Count an end; return the held jobs that may wait from now on, in order."""
        self._running -= 1
        self._running_of[job.user] -= 1
        freed = [each for each in self.held if not self.full(each.user)]
        self.held = [each for each in self.held if self.full(each.user)]
        return freed

    def forget(self, job: LiveJob) -> None:
        self._waiting.pop(job, None)
        if job in self.held:
            self.held.remove(job)


class QueuedWork:
    """Totals over waiting jobs, updated as whole numbers when jobs come and go.

    Attributes
    ----------
    processors, work
        requested processors; expected work in units of 2^-20 processor seconds
    endless
        number of jobs without an expected end
    changed
        functions that are called whenever a job joins or leaves
    """

    __slots__ = ("_counts", "changed", "endless", "processors", "work")

    def __init__(self, counts: Callable[[LiveJob], bool] | None) -> None:
        self._counts = counts  # whether a job counts: of several entries, only one does; None: each job has one
        self.changed: list[Callable[[], object]] = []
        self.processors = self.work = self.endless = 0

    def add(self, job: LiveJob) -> None:
        """Count a job that joins the queue (hot path)."""
        for call in self.changed:
            call()
        if self._counts is None or self._counts(job):
            self.processors += job.processors
            self.work += work_units(job.processors, job.expected)
            self.endless += job.expected == inf

    def remove(self, job: LiveJob) -> None:
        """Count a job that leaves the queue (hot path)."""
        for call in self.changed:
            call()
        if self._counts is None or self._counts(job):
            self.processors -= job.processors
            self.work -= work_units(job.processors, job.expected)
            self.endless -= job.expected == inf


class Queueing:
    """One queue per place, limits that hold jobs, and the decisions that arrivals bring.

    Attributes
    ----------
    queues, only_queue
        the queues by place; the single one, or ``None``
    waiting
        the jobs of all queues, as seen by policies
    choices
        the jobs that wait in several queues (see :class:`~simmodel.scheduling.waiting.MergedQueues`)
    rules
        the limits of the named queues in the cluster's spec, by name
    """

    def __init__(self, core: ClusterCore) -> None:
        self._core = core
        self.queues = {pool: WaitingQueue(core.env) for pool in core.places}
        for pool, queue in self.queues.items():
            for index in pool.know_queue():
                queue.keep(index)
        self.only_queue = None if core.only_pool is None else self.queues[core.only_pool]
        self._merged = MergedQueues(self.queues)
        self.waiting: WaitingQueue | MergedQueues = self._merged if self.only_queue is None else self.only_queue
        self.choices = self._merged.choices
        self.rules = {queue.name: QueueRules(queue) for queue in core.spec.queues}
        self._on_nodes = core.offers.nodes
        self._queued: QueuedWork | None = None

    def admit(self, job: LiveJob) -> None:
        """Submit a plain job of a log (hot path)."""
        core = self._core
        for hook in core.on_submitted:
            hook(job)
        queue = self.only_queue
        assert queue is not None
        if not core.by_event:
            queue.add(job)
            core.wake()
            return
        fits = True
        if core.submits_first:
            core.settle()
            fits = job.place.fits(job) if self._on_nodes else job.processors <= job.place.free
        queue.add(job)
        if fits or core.tries_every_submission:
            core.decide()

    def enqueue(self, job: LiveJob) -> None:
        """Put an eligible job into the queue of its place, unless a limit holds it."""
        if job.rules is not None and job.rules.holds(job):
            job.state = "held"
            return
        core = self._core
        several = job._job is not None and job._job.partitions
        entries = entries_of(job, places_to_wait(job, core)) if several else (job,)
        tries = True
        if core.submits_first:
            core.settle()
            tries = core.tries_every_submission or any(entry.place.fits(entry) for entry in entries)
        self._add(entries)
        if tries:
            core.wake()

    def join(self, job: LiveJob, places: Sequence[Pool]) -> None:
        """Put a job into the queues of one or several places, in order of preference."""
        self._add(entries_of(job, places))

    def _add(self, entries: tuple[LiveJob, ...]) -> None:
        if len(entries) > 1:
            self._merged.add_choices(entries)
        for entry in entries:
            self.queues[entry.place].add(entry)

    def leave(self, job: LiveJob) -> None:
        """Remove a waiting or held job."""
        if job.state == "waiting":
            self._take_out(job)
        if job.rules is not None:
            job.rules.forget(job)

    def _take_out(self, job: LiveJob) -> None:
        """Remove a waiting job from its queue or queues; the caller sets its new state."""
        entries = self.choices.get(job)
        if entries is None:
            self.queues[job.place].withdraw(job)
            return
        for entry in entries:
            self.queues[entry.place].withdraw(entry)
        self._forget(entries)

    def _forget(self, entries: tuple[LiveJob, ...]) -> None:
        self._merged.remove_choices(entries)
        for entry in entries[1:]:
            entry.state = "left"

    def chosen(self, entry: LiveJob) -> LiveJob:
        """Return the job of an entry that starts and has left its queue; its other entries leave theirs.

        The job is at the place of that entry from now on. The policy is asked again: the places that it leaves may have
        been decided already.
        """
        entries = self.choices.get(entry)
        if entries is None:
            return entry
        for each in entries:
            if each is not entry:
                self.queues[each.place].remove(each)
        self._forget(entries)
        job = entries[0]
        if job is not entry:
            job.place, job.priority, job.width, job.request = entry.place, entry.priority, entry.width, entry.request
            job._priority = entry._priority
            job.changed()
        self._core.wake()
        return job

    @property
    def queued(self) -> QueuedWork:
        """Totals over waiting jobs, updated incrementally from the first access on."""
        if self._queued is None:
            self._queued = QueuedWork(None if self.only_queue is not None else self._merged.counts)
            for queue in self.queues.values():
                queue.keep(self._queued)
        return self._queued

    def move(self, job: LiveJob, place: Pool, change: Callable[[], object] | None = None) -> None:
        """Let a waiting job wait for one place, with another request by a change of it."""
        self._take_out(job)
        bind(job, place)
        if change is not None:
            change()
        self.queues[place].add(job)

    def let_wait(self, job: LiveJob) -> None:
        """Put a job that is held by a limit or blocked into the queue of its place, although it may not start yet."""
        if job.rules is not None:
            job.rules.forget(job)
            job.rules.waits(job)
        self.queues[job.place].add(job)

    def started(self, job: LiveJob) -> None:
        """Count a start in the limits of the job's queue; hold the waiting jobs that exceed them from now on."""
        if job.rules is not None:
            for held in job.rules.started(job):
                self._take_out(held)
                held.state = "held"

    def ended(self, job: LiveJob) -> Sequence[LiveJob]:
        """Count an end in the limits of the job's queue; return the held jobs that may wait from now on."""
        return job.rules.ended(job) if job.rules is not None else ()

    def held(self) -> Iterator[LiveJob]:
        for rules in self.rules.values():
            yield from rules.held

    # ------------------------------------------------------------------ snapshots

    def state(
        self, work_of: Callable[[LiveJob], WorkState]
    ) -> tuple[tuple[WorkState, ...], tuple[WorkState, ...], tuple[int, ...], tuple[Choice, ...]]:
        """Return the waiting and the held jobs, the numbers of those new to the policy, and those in several queues."""
        from simmodel.snapshots.jobs import Choice

        held, waiting = tuple(map(work_of, self.held())), tuple(map(work_of, self.waiting))
        choices = (
            Choice(job.seq, tuple(entry.place.name for entry in entries))
            for job, entries in sorted(self.choices.items(), key=lambda each: each[0].seq)
            if job is entries[0]
        )
        return waiting, held, tuple(job.seq for job in self.waiting.new if job.state == "waiting"), tuple(choices)

    def restore(
        self,
        waiting: Iterable[LiveJob],
        held: Iterable[LiveJob],
        new: Collection[int] | None,
        choices: Iterable[Choice],
    ) -> None:
        """Restore the waiting and the held jobs, in order, and which are new to the policy; ``None``: all."""
        places = {choice.number: [self._core.pools[name] for name in choice.places] for choice in choices}
        jobs = {job.seq: job for job in waiting}
        for job in jobs.values():
            if job.seq in places:
                self._add(entries_of(job, places[job.seq]))
            else:
                self.queues[job.place].add(job)
            if job.rules is not None:
                job.rules.waits(job)
        for job in held:
            job.state = "held"
            job.rules.held.append(job)
        if new is not None:
            self.waiting.forget_new()
            for job in map(jobs.__getitem__, new):
                for entry in self.choices.get(job, (job,)):
                    self.queues[entry.place].new.append(entry)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence per waiting or held job."""
        for pool, queue in self.queues.items():
            for job in queue:
                never = pool.why_not(job)  # its capacity has changed
                there = pool.why_waits(job) or f"{pool.free} of {pool.capacity} are free"
                yield (
                    f"job {job.id} has waited for {job.processors} processors of {pool.name} since {job.submit:g} s; "
                    + there
                    + (f": {never}" if never is not None else "")
                )
        for rules in self.rules.values():
            for job in rules.held:
                yield f"job {job.id}, submitted at {job.submit:g} s, is held by a limit of queue {rules.spec.name}"


# ---------------------------------------------------------------------- jobs that may run in several partitions


def places_of(spec: Job, core: ClusterCore) -> list[Pool]:
    """Return the pools of the ``partitions`` of a job, in order of preference, without reservations beside others.

    Raises
    ------
    InputError
        if one is unknown
    """
    found = core.places_named.get(spec.partitions)
    if found is None:
        names = [str(name) for name in spec.partitions]
        if names == [ANY] and ANY not in core.pools:
            names = list(core.pools)
        for name in names:
            if name not in core.pools:
                raise InputError(f"job {spec.id}: {unknown('partition', name, core.pools).message}")
        places = [core.pools[name] for name in names]
        found = [place for place in places if place.part_of is None] or places[:1]
        core.places_named[spec.partitions] = found
    return found


def bind(job: LiveJob, place: Pool) -> None:
    """Bind a job that is in no queue to a place."""
    before = job.place
    job.place = place
    if before is not None:
        job.priority += place.priority - before.priority
    job.width = job.processors
    if job._job is not None:
        job.request = place.request_of(job._job)
    job.changed()


def able(job: LiveJob, places: Sequence[Pool]) -> tuple[list[Pool], Refusal]:
    """Return those of several places that can ever run a job, and why the others cannot."""
    spec, request = job._job, job.request
    assert spec is not None
    found, reasons = [], {}
    for place in places:
        job.request = place.request_of(spec)
        reason = place.why_not(job) or place.limits.why_not(job, place.name)
        if reason is None:
            found.append(place)
        else:
            reasons[reason] = rule_of(reason)
    job.request = request
    return found, Refusal("; ".join(reasons), "; ".join(dict.fromkeys(reasons.values())))


def entries_of(job: LiveJob, places: Sequence[Pool]) -> tuple[LiveJob, ...]:
    """Return the entries of a job for the queues of several places: the job itself for the first, copies for others."""
    if job.place is not places[0]:
        bind(job, places[0])
    return job, *(_copy(job, place) for place in places[1:])


def places_to_wait(job: LiveJob, core: ClusterCore) -> list[Pool]:
    """Return the places in whose queues a job waits, in order of preference: those of its partitions that can run it.

    A suspended job waits for the place where it was suspended.
    """
    spec, history = job._job, job.history
    if spec is None or not spec.partitions or core.only_pool is not None or (history is not None and history.resumes):
        return [job.place]
    return able(job, places_of(spec, core))[0] or [job.place]


def _copy(job: LiveJob, place: Pool) -> LiveJob:
    copy = LiveJob(
        job.id, job.index, job.submit, job.processors, job.planned, job.expected, job._duration, job.user, place, True
    )
    copy.seq, copy.rules, copy._job, copy._outcome = job.seq, job.rules, job._job, job._outcome
    copy.attempts, copy.history, copy.unrequested = job.attempts, job.history, job.unrequested
    copy.priority = job.priority + (place.priority - job.place.priority)
    copy.request = None if job._job is None else place.request_of(job._job)
    return copy
