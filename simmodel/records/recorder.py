"""The recorder of jobs: an observer that fills columns, at a tenth of a microsecond per hook."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from simmodel.environment import Environment
from simmodel.foundation.errors import Plain
from simmodel.records.job_record import Column, JobRecord, job_columns, joined, kept_columns
from simmodel.records.tables import (
    Change,
    ClaimStretch,
    Stretch,
    Stretches,
    change_table,
    claim_table,
    held_by,
    node_table,
    place_table,
    reason_table,
    run_table,
    with_slowed,
)
from simmodel.scheduling.observer import Observer
from simmodel.work.job import Booting
from simmodel.work.table import Table, Words, rows_of
from simmodel.work.workload import Report

if TYPE_CHECKING:
    import simpy
    from numpy.typing import NDArray

    from simmodel.records.task_record import TaskRecord
    from simmodel.resources.pools.claims import Claim, Grant
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.resources.pools.sleeping import NodeChange, Sleeping
    from simmodel.scheduling.protocol import Place, Policy
    from simmodel.scheduling.scheduler import GivenReason
    from simmodel.work.checkpoint import Kept
    from simmodel.work.job import History, LiveJob, Run
    from simmodel.work.traffic import Slowed

__all__ = ["OPEN", "Chooser", "JobRecorder"]

Record = TypeVar("Record", bound=JobRecord)


@runtime_checkable
class Chooser(Protocol):
    """A policy that delegates decisions to other policies, and records its choices."""

    @property
    def started_by(self) -> Table:
        """One row per start: ``job``, and the ``policy`` that started it."""
        ...

    @property
    def scores(self) -> Table:
        """The ``choices`` of the record: ``time, policy, score, chosen``."""
        ...


class Recorded(Protocol):
    """A system that has a record."""

    def result(self) -> TaskRecord:
        """Return its record so far."""
        ...


NAN = float("nan")

# The states of jobs, stored in one byte per job: 0 until the job ends, then the index of its status here.
STATUSES = (
    "waiting",
    "running",
    "completed",
    "timeout",
    "failed",
    "cancelled",
    "lost",
    "rejected",
    "preempted",
    "requeued",
    "suspended",
    "unsubmitted",
    "node-failure",
    "out-of-memory",
    "withdrawn",
)
OPEN = ("waiting", "running", "suspended", "unsubmitted")
CODES = {status: code for code, status in enumerate(STATUSES)}
RUNNING, TIMEOUT, LOST = CODES["running"], CODES["timeout"], CODES["lost"]
REJECTED, SUSPENDED, UNSUBMITTED = CODES["rejected"], CODES["suspended"], CODES["unsubmitted"]


class JobRecorder(Observer):
    """Record one row per job: its start, end and final state.

    Pass it to ``env.observe``. Rows of executions are kept only if they hold more than the row of the job: on
    identified nodes, or for jobs that are preempted, suspended or started again.

    Parameters
    ----------
    env
        the observed environment
    expected
        number of jobs known in advance, as rows of a workload; other jobs are added as they arrive
    late
        whether to observe every submission, so that other jobs are recorded even if they never start; default: true
        if no jobs are expected
    places
        the observed places, in order; they define the machine in the result. Nodes and their power are those of
        ``place.spec`` (a :class:`~simmodel.platform.cluster.PartitionSpec`), if any, and failed nodes those of
        ``place.down_nodes``

    Attributes
    ----------
    since
        the time of the snapshot that the observed system continues from, in s, or ``None``
    job_started, job_ended
        the two hooks that run for every job; closures over the columns, for speed

    >>> import simpy
    >>> from types import SimpleNamespace as Some
    >>> env, pool, grant = simpy.Environment(5), Some(name="pool", capacity=4), Some(nodes=None)
    >>> recorder = JobRecorder(env, expected=2)
    >>> run = Some(job=Some(index=0, id=1), place=pool, started=5.0, grant=grant)
    >>> recorder.job_started(run); env.run(until=15); recorder.job_ended(run, "completed")
    >>> jobs = recorder.jobs({"job": [1, 2], "submit": [0, 9], "processors": [1, 4], "requested": [10, 10]})
    >>> jobs["wait"], jobs["run"], jobs["status"]
    (array([ 5., nan]), array([10., nan]), array(['completed', 'waiting'], dtype='<U13'))
    """

    job_started: Callable[[Run], None]
    job_ended: Callable[[Run, str], None]
    job_submitted: Callable[[LiveJob], None]

    def __init__(
        self, env: simpy.Environment, expected: int = 0, *, late: bool | None = None, places: Sequence[Place] = ()
    ) -> None:
        self._env = env
        self.since: float | None = None
        self._expected = expected
        self._columns: Mapping[str, Column] = {}
        self._hears = False
        self._places = tuple(places)
        self._sizes = [int(place.capacity) for place in places]  # when the record begins: pools may be resized
        self._start: Any = array("d", [NAN]) * expected  # by row, as are the next two
        self._end: Any = array("d", [NAN]) * expected
        self._code: Any = bytearray(expected)
        self._late: dict[int, LiveJob] = {}  # by row: jobs beyond the expected ones
        self._reasons: dict[int, str] = {}
        self._eligible: dict[int, float] = {}
        self._elsewhere: dict[int, Any] = {}  # places of jobs that do not run at the main place
        self._main: Any = None
        # For interrupted jobs:
        self._first: dict[int, float] = {}
        self._attempt: dict[int, int] = {}
        self._resumed: dict[int, float] = {}
        self._suspended: set[int] = set()
        self._interrupted: dict[int, LiveJob] = {}  # by row
        self._sizes_now: dict[int, int] = {}  # of jobs that had several, by row
        self._levels: dict[int, list[tuple[float, float]]] = {}  # by row: (instant s, level from then on, nan: none)
        # For jobs with checkpoints: what they have kept; the seconds that restarts have lost since the record began.
        self._kept: dict[int, Kept] = {}
        self._lost: dict[int, float] = {}
        self._slowed: dict[int, dict[float, Slowed]] = {}  # of jobs with traffic: by the end of the execution
        # Executions that need separate rows:
        self._stretches: list[Any] = []  # one after another: a tuple each would be work for the garbage collector
        self._on_nodes: dict[int, Grant] = {}  # of the latest execution of each job
        # For jobs that ran before the snapshot: seconds that count, and processors.
        self._carried: dict[int, tuple[float, int]] = {}
        self._changes: list[Change] = []
        self._states: dict[int, NodeChange] = {}  # of nodes, by number of the change
        self._claims: list[ClaimStretch] = []  # ended
        self._claims_held: dict[Claim, float] = {}  # since when at their present size
        self._workflows: dict[int | str, Recorded] = {}  # by job, of its latest attempt
        self._bind()
        if late or (late is None and not expected):
            self.hear_submissions()

    @property
    def hears_submissions(self) -> bool:
        """Whether jobs beyond the expected ones are recorded at submission."""
        return self._hears

    def hear_submissions(self) -> None:
        """Observe every submission from now on, so that jobs beyond the expected ones are recorded at submission."""
        self._hears = True
        self.job_submitted = self._submitted

    def expect(self, columns: Mapping[str, Column]) -> bool:
        """Add rows for jobs before their submission; return ``False`` if rows of other jobs follow already.

        Parameters
        ----------
        columns
            ``job, submit, processors, requested`` of these jobs, and any other columns to keep
        """
        if self._late:
            return False
        count = len(columns["job"])
        self._columns = joined(self._columns, columns) if self._expected else dict(columns)
        self._expected += count
        self._start.extend(array("d", [NAN]) * count)
        self._end.extend(array("d", [NAN]) * count)
        self._code.extend(bytes(count))
        return True

    # ------------------------------------------------------------------ hooks that run for every job

    def _bind(self) -> None:
        env, start, end, code, codes = self._env, self._start, self._end, self._code, CODES
        first_start, detailed_end, on_nodes = self._started_elsewhere, self._ended_unusually, self._on_nodes
        main: Any = None

        def job_started(run: Run) -> None:
            nonlocal main
            job = run.job
            try:
                start[job.index] = env._now
            except IndexError:
                self._grow(job)
                start[job.index] = env._now
            if run.place is not main:
                main = first_start(run)
            if run.grant.nodes is not None:
                on_nodes[job.index] = run.grant

        def job_ended(run: Run, status: str) -> None:
            index = run.job.index
            end[index] = env._now
            how = code[index] = codes[status]
            if how > TIMEOUT:
                detailed_end(run, status)

        self.job_started, self.job_ended = job_started, job_ended

    def _grow(self, job: LiveJob) -> None:
        """Add rows up to that of an unexpected job."""
        more = job.index + 1 - len(self._start)
        if more > 0:
            self._start.extend([NAN] * more)
            self._end.extend([NAN] * more)
            self._code.extend(bytes(more))
        if job.index >= self._expected:
            self._late[job.index] = job

    def _submitted(self, job: LiveJob) -> None:
        if job.index >= self._expected:
            self._grow(job)

    def carry_over(self, jobs: Iterable[LiveJob]) -> None:
        """Record the histories of expected jobs that were submitted before the record began."""
        start, started = self._start, self.job_started
        for job in jobs:
            if job.run is not None and not isinstance(job.run, Booting):
                started(job.run)
                start[job.index] = job.run.started
            if job.history is not None:
                self._carry_past(job, job.history)

    def _carry_past(self, job: LiveJob, past: History) -> None:
        row, run, attempt = job.index, job.run, past.attempt_start
        if past.eligible is not None:
            self._eligible[row] = past.eligible
        if past.first_start is not None:
            self._first[row] = past.first_start
            self._attempt[row] = job.attempts if run is not None or attempt is not None else job.attempts + 1
        if attempt is not None:
            self._start[row] = attempt
            if run is not None:
                self._resumed[row] = run.started
            else:
                self._suspended.add(row)
        if past.kept is not None:
            self._kept[row] = past.kept
        if past.interruptions:
            self._interrupted[row] = job
        if past.first_start is not None or attempt is not None:
            self._carried[row] = past.executed, int(job.processors)
        if job.processors != job.preferred:
            self._sizes_now[row] = int(job.processors)
        if job.level is not None:
            self._levels[row] = [(-np.inf, job.level)]

    # ------------------------------------------------------------------ rare hooks

    def job_eligible(self, job: LiveJob) -> None:
        """Record that a job may start from now on, if this is later than its submission."""
        if self._env.now > job.submit:
            self._grow(job)
            self._eligible[job.index] = self._env.now

    def job_rejected(self, job: LiveJob, reason: str) -> None:
        """Record a job that no place can ever run."""
        self._grow(job)
        self._code[job.index] = REJECTED
        self._reasons[job.index] = reason

    def job_cancelled(self, job: LiveJob) -> None:
        """Record the end of a job that left the queue without a start."""
        self._grow(job)
        self._code[job.index] = CODES[job.state]
        if job.history is not None and job.history.why:
            self._reasons[job.index] = job.history.why
        self._end[job.index] = self._env.now

    def job_suspended(self, run: Run) -> None:
        """End a stretch of execution; the attempt continues."""
        self._suspended.add(run.job.index)
        self._keep(run, "suspended", counts=True)

    def job_resumed(self, run: Run) -> None:
        """Begin another stretch of execution."""
        index = run.job.index
        self._suspended.discard(index)
        self._resumed[index] = self._env.now

    def job_resized(self, run: Run, processors: int, grant: Grant) -> None:
        """End a stretch of execution at the former size, unless it had no length, and begin another one."""
        index, now, resumed = run.job.index, self._env._now, self._resumed
        since = resumed.get(index)
        if since is None:
            since = self._start[index]
        if since < now:
            resumed[index] = now
            attempt, place, size = self._attempt.get(index, 1), run.place.name, int(processors)
            nodes, allocation = (None, None) if grant.nodes is None else (grant.nodes, grant.allocation)
            self._stretches += (index, attempt, since, now, place, size, "resized", nodes, True, allocation)
        self._sizes_now[index] = run.job.processors
        level = run.job.level
        if level is not None:
            self._levels.setdefault(index, []).append((now, level))
        if run.grant.nodes is not None:
            self._on_nodes[index] = run.grant

    def job_checkpointed(self, run: Run, kept: Kept, lost: float) -> None:
        """Record the work kept by the checkpoints of a job, and the seconds of this execution that are lost."""
        index = run.job.index
        self._kept[index] = kept
        if lost:
            self._lost[index] = self._lost.get(index, 0.0) + lost

    def job_slowed(self, run: Run, slowed: Slowed) -> None:
        """Record who slowed an execution with traffic."""
        told, now = self._slowed.setdefault(run.job.index, {}), float(self._env.now)
        if slowed.alone or now not in told:  # else it has no length
            told[now] = slowed

    def workflow_started(self, job: LiveJob, machine: Recorded) -> None:
        """Remember the machine on which the workflow of a job runs, for its record."""
        self._workflows[job.id] = machine

    def claim_granted(self, claim: Claim) -> None:
        """Record a claim of one of the places."""
        if any(claim.place is place for place in self._places):
            self._claims_held[claim] = self._env.now

    def claim_resized(self, claim: Claim, processors: int, grant: Grant) -> None:
        """End a stretch of a claim at its former size, unless it had no length, and begin another one."""
        since, now = self._claims_held.get(claim, self._env.now), self._env.now
        if since < now:
            self._claims_held[claim] = now
            self._claims.append(ClaimStretch.of(claim, since, now, "resized", processors, grant))

    def claim_ended(self, claim: Claim, status: str) -> None:
        """Record the end of a claim."""
        if claim in self._claims_held:
            since = self._claims_held.pop(claim)
            self._claims.append(ClaimStretch.of(claim, since, self._env.now, status))

    def place_changed(self, place: Place, cause: str) -> None:
        """Record the capacity of a place from now on: ``place.up`` if it exists, else ``place.capacity``."""
        up = getattr(place, "up", None)
        down = getattr(place, "down_nodes", ())
        sleeping: Sleeping | None = getattr(place, "sleeping", None)
        if sleeping is not None and sleeping.change is not None:
            self._states[len(self._changes)] = sleeping.change
        self._changes.append(
            (self._env.now, place.name, cause, place.capacity if up is None else up, tuple(sorted(down)))
        )

    def _started_elsewhere(self, run: Run) -> Any:
        """Record the place of a job that does not run at the main place; return the main place."""
        index = run.job.index
        if self._main is None:
            self._main = run.place
        if run.place is not self._main:
            self._elsewhere[index] = run.place
        return self._main

    def _ended_unusually(self, run: Run, status: str) -> None:
        index = run.job.index
        again = status in ("preempted", "requeued")
        if again and index not in self._suspended:
            spec = run.job.spec
            self._keep(run, status, counts=spec is not None and (spec.keeps_work or spec.checkpoint is not None))
        self._suspended.discard(index)
        if again:
            self._first.setdefault(index, self._start[index])
            self._attempt[index] = self._attempt.get(index, 1) + 1
            self._start[index] = self._end[index] = NAN
            self._code[index] = 0
            self._elsewhere.pop(index, None)
            self._on_nodes.pop(index, None)
            if index in self._levels:
                self._levels[index].append((self._env._now, NAN))
            if index in self._sizes_now:
                self._sizes_now[index] = run.job.preferred

    def _keep(self, run: Run, status: str, *, counts: bool) -> None:
        """Add a row for the stretch that ends now."""
        job = run.job
        index = job.index
        self._interrupted[index] = job
        nodes, allocation = held_by(run.grant)
        attempt, since = self._attempt.get(index, 1), self._resumed.pop(index, self._start[index])
        size = int(job.processors)
        place, now = run.place.name, self._env.now
        self._stretches += (index, attempt, since, now, place, size, status, nodes, counts, allocation)

    # ------------------------------------------------------------------ tables

    def jobs(self, columns: Mapping[str, Column] | None = None, stretches: Stretches | None = None) -> Table:
        """Return the table of jobs, in row order.

        Parameters
        ----------
        columns
            ``job, submit, processors, requested`` of the expected jobs, and any other columns to keep; default: those
            passed to :meth:`expect`
        stretches
            what :meth:`stretches` returns, if it was asked already
        """
        columns = self._columns if columns is None else columns
        count = len(self._start)
        late = [self._late[row] for row in range(self._expected, count)]
        given = job_columns(columns, self._expected, late)
        submit = given.pop("submit").astype(np.float64, copy=False)
        start, end = np.array(self._start), np.array(self._end)
        attempts = np.isfinite(start).astype(np.int32)
        executed = end - start
        code = self._codes(start, end, submit)
        for index, attempt in sorted(self._attempt.items()):
            attempts[index] = attempt if np.isfinite(start[index]) else attempt - 1
            start[index] = self._first[index]
        if self._stretches or self._carried:
            self._count_stretches(executed, self.stretches() if stretches is None else stretches)
        eligible = submit
        if self._eligible:
            eligible = submit.copy()
            eligible[list(self._eligible)] = list(self._eligible.values())
        table = {
            "job": given.pop("job"),
            "submit": submit,
            "start": start,
            "end": end,
            "processors": given.pop("processors"),
            "status": Words(code, STATUSES),
            "requested": given.pop("requested", np.full(count, NAN)),
            "run": executed,
            "wait": start - eligible,
            **given,
            "attempts": attempts,
        }
        if self._interrupted:
            waited, stops = self._stops(count)
            table |= {"wait": table["wait"] + waited, **stops}
        if self._eligible:
            table["eligible"] = eligible
        if self._kept:
            table |= kept_columns(self._kept, count)
        if self._reasons:
            table["reason"] = np.full(count, "", dtype=object)
            table["reason"][list(self._reasons)] = list(self._reasons.values())
        return Table(table)

    def _stops(self, count: int) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Return the seconds that jobs waited again, and the columns of jobs that tell of their interruptions."""
        found = np.zeros((count, 5))
        for row, job in self._interrupted.items():
            past: History | None = getattr(job, "history", None)  # a system of its own may keep none
            if past is not None:
                found[row] = past.waited, past.interruptions, past.lost, past.paused, past.overhead
        waited, interruptions, lost, suspended, overhead = found.T
        table: dict[str, NDArray[Any]] = {"interruptions": interruptions.astype(np.int32), "lost": lost}
        table |= {"suspended": suspended, **({"overhead": overhead} if overhead.any() else {})}
        return waited, table

    def _codes(
        self, start: NDArray[np.float64], end: NDArray[np.float64], submit: NDArray[np.float64]
    ) -> NDArray[np.uint8]:
        code = np.frombuffer(bytes(self._code), dtype=np.uint8).copy()
        code[(code == 0) & np.isfinite(start) & np.isnan(end)] = RUNNING
        code[(code == 0) & (submit > self._env.now)] = UNSUBMITTED
        suspended = sorted(self._suspended)
        code[[index for index in suspended if not self._code[index]]] = SUSPENDED  # else it was cancelled since then
        return code

    def _count_stretches(self, executed: NDArray[np.float64], stretches: Stretches) -> None:
        """Set the run times of interrupted jobs: the sum of all stretches whose work was kept."""
        rows, _, start, end, _, _, _, _, counts, _ = stretches
        row = np.array(rows, dtype=np.int64)
        seconds, several = np.zeros(len(executed)), np.zeros(len(executed), dtype=bool)
        several[row[: len(self._stretches) // len(stretches)]] = True  # those kept, which others follow
        for index, (before, _) in self._carried.items():
            seconds[index], several[index] = before, True
        anew, last = np.flatnonzero(~np.array(counts, dtype=bool)), np.full(len(executed), -1)
        seconds[row[anew]], last[row[anew]] = 0.0, anew
        kept = np.arange(len(row)) > last[row]
        np.add.at(seconds, row[kept], np.subtract(end, start)[kept])  # in order
        for index, lost in self._lost.items():
            seconds[index] -= lost
        executed[several] = np.where(np.isfinite(self._end), seconds, NAN)[several]

    def stretches(self) -> Stretches:
        """Return the stretches kept, and then the last ones of interrupted jobs, as columns."""
        found = self._stretches.copy()
        rows, attempts, _, _, _, sizes, states, *_ = Stretch.columns(found)
        last = dict(zip(rows, range(len(rows)), strict=True))
        for index, number in last.items():
            stopped = states[number] == "suspended" and index not in self._resumed
            if index in self._suspended:
                continue
            if stopped and attempts[number] == self._attempt.get(index, 1):
                continue  # it ended while it was suspended
            if isfinite(self._start[index]):
                found += self._last_stretch(index, sizes[number])
        others = {index: processors for index, (_, processors) in self._carried.items()} | self._sizes_now
        for index, processors in others.items():
            known = index in last or index in self._suspended
            if not known and isfinite(self._start[index]):
                found += self._last_stretch(index, processors)
        return Stretch.columns(found)

    def _last_stretch(self, index: int, processors: int) -> tuple[Any, ...]:
        place: str = self._elsewhere.get(index, self._main).name
        start, end = self._resumed.get(index, self._start[index]), self._end[index]
        status = STATUSES[self._code[index] or RUNNING]
        nodes, allocation = held_by(self._on_nodes.get(index))
        processors = self._sizes_now.get(index, processors)
        return index, self._attempt.get(index, 1), start, end, place, processors, status, nodes, True, allocation

    def runs(self, jobs: Table, stretches: Stretches | None = None) -> Table | None:
        """Return the table of executions, or ``None`` if it follows from the table of jobs."""
        first = not self._places or self._main is None or self._main is self._places[0]
        if first and not (self._stretches or self._on_nodes or self._elsewhere or self._sizes_now or self._levels):
            return None
        place = np.full(len(jobs), self._main.name if self._main is not None else "", dtype=object)
        for index, where in self._elsewhere.items():
            place[index] = where.name
        table = run_table(jobs, self.stretches() if stretches is None else stretches, place, self._on_nodes)
        if self._levels:
            row, start = rows_of(jobs["job"], table["job"]).tolist(), table["start"].tolist()
            told = [
                [level for at, level in self._levels.get(each, ()) if at <= since][-1:]
                for each, since in zip(row, start, strict=True)
            ]
            table = table.with_columns(level=np.array([each[0] if each else NAN for each in told]))
        if not self._slowed:
            return table
        names = jobs["job"].tolist()
        return with_slowed(
            table, {(names[row], end): each for row, of in self._slowed.items() for end, each in of.items()}
        )

    def _networks(self) -> dict[str, NodeNetwork]:
        """Return the places of nodes in networks, by place."""
        from simmodel.resources.pools.nodes import NodePool

        pools = [place for place in self._places if isinstance(place, NodePool)]
        return {pool.name: pool.network for pool in pools if pool.network is not None}

    def claims(self) -> Table | None:
        """Return the table of claims by their grants, a row for each size, or ``None`` if there were none."""
        held = [ClaimStretch.of(claim, since, NAN, "held") for claim, since in self._claims_held.items()]
        return claim_table([*self._claims, *held])

    def changes(self) -> Table | None:
        """Return the changes of places: ``time, place, cause, processors, down`` (nodes); ``None``: no change.

        If nodes slept: also ``nodes, until, job``, see :class:`~simmodel.resources.pools.sleeping.NodeChange`.
        """
        return change_table(self._changes, self._states)

    def record(
        self,
        kind: type[Record],
        columns: Mapping[str, Column] | None = None,
        *,
        name: str = "run",
        processors: int | None = None,
        places: Table | None = None,
        events: Table | None = None,
        report: Report | None = None,
        decisions: Mapping[str, float] | None = None,
        scenario: Mapping[str, Plain] | None = None,
        started: float | None = None,
        ended: float | None = None,
        policy: Policy | Chooser | None = None,
        reasons: Sequence[GivenReason] = (),
    ) -> Record:
        """Return the record of the run so far.

        Parameters
        ----------
        kind
            the class of the record: :class:`~simmodel.records.job_record.JobRecord` or one derived from it
        columns
            columns of the expected jobs, as in :meth:`jobs`
        name, processors, places, events, report, decisions, scenario, started, ended
            as in the record; processors and places default to those of the observed places, ``ended`` to now if jobs
            are still waiting or running
        policy
            the policy of the run; the choices and starts of a portfolio are recorded
        reasons
            those that it gave with its decisions
        """
        stretches = self.stretches()
        jobs = self.jobs(columns, stretches)
        chooser = policy if isinstance(policy, Chooser) else None
        if chooser is not None:
            started_by = chooser.started_by
            by = dict(zip(started_by["job"].tolist(), started_by["policy"].tolist(), strict=True))
            jobs = jobs.with_columns(started_by=np.array([by.get(job, "") for job in jobs["job"].tolist()], dtype=str))
        nodes = node_table(self._places)
        if places is None and self._places:
            places = place_table(self._places, self._sizes, nodes)
        if processors is None and places is not None:
            # A reservation is a separate place, but its processors belong to a partition.
            inside = [place.name for place in self._places if getattr(place, "part_of", None) is not None]
            processors = int(places["processors"][~np.isin(places["place"], inside)].sum())
        if ended is None and self._claims_held:
            ended = float(self._env.now)
        if ended is None and Words.of(jobs["status"]).isin(OPEN).any():
            ended = float(self._env.now)
        env = self._env
        unit = {"time_unit": env.unit} if isinstance(env, Environment) and env.unit != "s" else {}
        given: dict[str, Any] = {"processors": processors, "places": places, "started": started, "ended": ended}
        return kind(
            name=name,
            jobs=jobs,
            runs=self.runs(jobs, stretches),
            events=events,
            changes=self.changes(),
            claims=self.claims(),
            choices=None if chooser is None else chooser.scores,
            nodes=nodes,
            reasons=reason_table(reasons),
            report=report or Report(),
            workflows={job: machine.result() for job, machine in self._workflows.items()},
            decisions=dict(decisions or {}),
            networks=self._networks() if self._on_nodes else {},
            scenario={**(scenario or {}), **unit},
            **{key: value for key, value in given.items() if value is not None},
        )

    def __repr__(self) -> str:
        return f"<JobRecorder of {self._expected + len(self._late):,} jobs>"
