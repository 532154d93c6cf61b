"""Live jobs: the slim state of what was asked, and their executions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from simmodel.environment import Occurrence
from simmodel.foundation.errors import PolicyError
from simmodel.work.history import AtLevel, History
from simmodel.work.live import LiveWork
from simmodel.work.outcomes import OUTCOMES
from simmodel.work.request import JobRequest

if TYPE_CHECKING:
    import simpy

    from simmodel.environment import Environment
    from simmodel.work.elastic import Elastic
    from simmodel.work.request import Job, Named
    from simmodel.work.task import File

__all__ = [
    "OVER",
    "Booting",
    "Brokered",
    "LiveJob",
    "Queued",
    "Run",
    "entry_of",
    "kept_state",
    "not_a_key",
    "outcome_of",
    "run_time_of",
    "seen_by",
    "told_end",
]

INFINITY = float("inf")

OVER = (*OUTCOMES, "lost", "rejected", "withdrawn")
"""The final states of a job: how its run ended by itself, or why it did not."""

_GUARDED = {"processors": "", "planned": " s", "expected": " s", "submit": " s", "priority": ""}
"""The fields of a live job that nothing but its system changes, with their units in errors."""


class LiveJob(LiveWork):
    """A submitted job: its request and state as policies see them, and an event that succeeds when it ends.

    Attributes
    ----------
    id, index, seq
        its name; its row in the record; its rank in the order of submission
    submit
        instant of submission in seconds
    processors
        processors requested
    width
        processors of its place that it takes: those requested, or all of the nodes that it gets whole
    planned, expected
        seconds with which policies plan it while it waits, and while it runs: its request, or a prediction; the run
        time of a job with neither, which is the future: a policy that must not know it reads ``requested``
    unrequested
        whether it has no requested time
    user, priority
        its user; its priority, which includes those of its queue and partition
    place
        the place (partition) that it waits for, the first one if there are several
    request
        its request for nodes and consumables; ``None``: processors only
    rules
        the rules of its queue, if any
    state
        ``"blocked"`` by dependencies, ``"held"`` by a limit, ``"waiting"``, ``"running"``, ``"suspended"`` or its
        final state
    attempts
        number of times it started
    started, run
        instant of its latest start (s); its current execution
    history
        what systems know of its earlier executions and its wait for dependencies, if any
    watched
        whether usage, limits or other jobs depend on its start and end
    """

    __slots__ = (
        "_asked",
        "_duration",
        "_expected",
        "_job",
        "_outcome",
        "_planned",
        "_priority",
        "_processors",
        "_seen",
        "_spec",
        "_submit",
        "_work",
        "attempts",
        "earlier",
        "expected",
        "history",
        "id",
        "index",
        "later",
        "place",
        "planned",
        "priority",
        "processors",
        "request",
        "rules",
        "run",
        "seq",
        "started",
        "state",
        "submit",
        "unrequested",
        "user",
        "watched",
        "width",
    )

    elastic: Elastic | None = None
    """The sizes between which it may run; ``None``: it has one."""

    course: Callable[[Run], object] | None = None
    """Called once it has started, instead of executing for its run time: its caller plans its end."""

    def __init__(
        self,
        id: int | str,  # the field's word
        index: int,
        submit: float,
        processors: int,
        planned: float,
        expected: float,
        duration: float,
        user: int | str | None = None,
        place: Named | None = None,
        watched: bool = False,
    ) -> None:
        self.event = None
        self.id = id
        self.index = index
        self.seq = index
        self.submit = submit
        self.processors = self._processors = self.width = processors
        self.planned = self._planned = planned
        self.expected = self._expected = expected
        self.unrequested = False
        self.user = user
        self.priority: float = 0.0
        self.place: Any = place
        self.request: Any = None
        self.rules: Any = None
        self.state = "new"
        self.attempts = 0
        self.run: Run | None = None
        self.started: float | None = None
        self.history: History | None = None
        self.watched = watched
        # Not for policies: seconds it will run; its final state unless it is interrupted; the Job that was submitted,
        # if that holds more than the fields above. Copies of the fields in _GUARDED are compared at a start; submit and
        # priority are copied when it joins a queue.
        self._submit: float | None = None
        self._duration = duration
        self._outcome = "completed"
        self._job: Job | None = None
        self._spec: JobRequest | None = None
        self._work: Any = None  # its entries in snapshots, kept while valid: complete, and as a what-if sees it
        self._seen: Any = None

    earlier: LiveJob | None  # neighbours in its queue, set by the queue
    later: LiveJob | None

    @property
    def spec(self) -> JobRequest | None:
        """Its request, if it comprises more than processors and time."""
        if self._spec is None and self._job is not None:
            self._spec = JobRequest(self._job)
        return self._spec

    @property
    def preferred(self) -> int:
        """The processors requested; those that it takes differ while it has another size."""
        past = self.history
        return self.processors if past is None or past.asked is None else past.asked

    @property
    def over(self) -> bool:
        """Whether it is in a final state."""
        return self.state in OVER

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of its place."""
        env: Environment = self.place.env
        return env

    @property
    def past(self) -> Any:
        """Its earlier executions, for policies: its :class:`History`, if any; in a grid a tuple of earlier attempts."""
        return self.history

    @property
    def group(self) -> int | str | None:
        """The user's group or account."""
        return None if self._job is None else self._job.group

    @property
    def queue(self) -> int | str | None:
        """The queue it was submitted to."""
        return None if self._job is None else self._job.queue

    @property
    def requested(self) -> float:
        """Its requested time or a prediction in seconds, after a suspension the remainder; infinite without both."""
        return INFINITY if self.unrequested and not self.predicted else self.planned

    @requested.setter
    def requested(self, seconds: float) -> None:
        self.planned = seconds  # which is refused when the job starts

    @property
    def asked(self) -> float:
        """Its requested time in seconds, infinite if it has none; ``requested`` may be a prediction or a remainder."""
        if self.unrequested:
            return INFINITY
        try:
            return self._asked
        except AttributeError:  # not set for the million: only with predictions
            past = self.history
        return self.planned if past is None else past.requested(self.planned)

    def __repr__(self) -> str:
        seconds = "no time" if self.requested == INFINITY else f"{self.requested:g} s"
        return f"<job {self.id}: {self.processors} processors, {seconds} requested, {self.state}>"

    # ------------------------------------------------------------------ changes made by systems

    def plan(self, planned: float, expected: float, duration: float) -> None:
        """Set the seconds with which it is planned while it waits and while it runs, and its actual run time (s)."""
        self.planned = self._planned = planned
        self.expected = self._expected = expected
        self._duration = duration

    def end_as(self, *, cut: bool) -> None:
        """Set the final state that it comes to by itself: that of its request, unless its limit cuts it off.

        A job that never ran is withdrawn at its turn.
        """
        spec = self._job
        if spec is not None and spec.never_ran:
            self._outcome = "withdrawn"
        else:
            self._outcome = "timeout" if cut else "completed" if spec is None else spec.outcome

    def limit_to(self, seconds: float) -> None:
        """Set its requested time (s), at which it is stopped, where it is planned with a prediction instead."""
        self._asked = seconds

    @property
    def predicted(self) -> bool:
        """Whether it is planned with a prediction of its run time."""
        return hasattr(self, "_asked")

    def widen(self, processors: int) -> None:
        """Set the number of processors that it requests."""
        self.processors = self._processors = self.width = processors

    def resume_at(self, processors: int) -> None:
        """Take over a size to which its planned times belong already."""
        self.widen(processors)
        if self.request is not None:
            self._ask_for(processors)

    def _ask_for(self, processors: int) -> None:
        self.request = attrs.evolve(self.request, processors=processors)
        self._count_power()

    def _count_power(self) -> None:
        """Request the power that it draws at its present size and level, where this counts."""
        if self.place is not None and self.place.power is not None:
            self.place.power.count(self)

    def hold(self, processors: int) -> None:
        """Take another number of processors from now on, while it runs: its body grows or shrinks."""
        past = self.remember()
        if past.asked is None:
            past.asked = self.processors
        self.resume_at(processors)

    def altered(self) -> str | None:
        """Return how other code, such as a policy, has changed its request, or ``None``."""
        if self._submit is None:  # it was in no queue
            self._submit, self._priority = self.submit, self.priority
        spec = self._job
        if (
            self.processors == self._processors
            and self.planned == self._planned
            and self.expected == self._expected
            and self.submit == self._submit
            and self.priority == self._priority
            and (spec is None or self.user == spec.user)
        ):
            return None
        for name, unit in _GUARDED.items():
            before, now = getattr(self, f"_{name}"), getattr(self, name)
            if now != before:
                name = "requested" if name == "planned" else name
                return f"cannot change {name} from {before:g} to {now!r}{unit}: jobs are read-only"
        return f"cannot change user from {spec.user!r} to {self.user!r}: jobs are read-only"  # type: ignore[union-attr]

    def adopt(self, other: LiveJob) -> None:
        """Take over the planned times, place, request, rules and priority of another job."""
        self.plan(other.planned, other.expected, other._duration)
        self._outcome, self.unrequested = other._outcome, other.unrequested
        self.place, self.request, self.rules, self.priority = other.place, other.request, other.rules, other.priority
        self._job, self._spec = other._job, None

    def changed(self) -> None:
        """Discard its entries in snapshots, which are kept while it does not change."""
        self._work = self._seen = None

    def remember(self) -> History:
        """Return its history, for changes, and discard its entries in snapshots."""
        self._work = self._seen = None
        if self.history is None:
            self.history = History()
        return self.history

    def requeue(self, now: float, speed: float = 1.0) -> None:
        """Record that its execution was stopped at ``now`` (s): it starts again, from the beginning or a checkpoint.

        The work done is the elapsed seconds times the ``speed`` of its nodes.
        """
        past = self.remember()
        started = float(self.started)  # type: ignore[arg-type]
        past.start_again(now, started)
        if past.asked is not None:
            self.resume_at(past.asked)
            past.asked = None
        left = self.leave_level()
        job = self._job
        if job is not None and job.checkpoint is not None:
            return  # its system counts what they keep, and plans the rest
        if job is not None and job.keeps_work:
            past.executed += float(now - started)
            if not job.has_body:
                self._duration = max(0.0, self._duration - (now - started) * speed)
                if left is not None:
                    self._duration = (self._duration + left.over) / left.factor
                    planned, expected, _ = past.whole  # type: ignore[misc]
                    self.plan(planned, expected, self._duration)
                return
        else:
            past.lost += past.executed + float(now - started)
            past.executed = 0.0
        if past.whole is not None:
            self.plan(*past.whole)

    def suspend(self, now: float, held: Any, speed: float = 1.0, longer: float = 1.0) -> None:
        """Record that it was suspended at ``now`` (s), to resume with the resources that it held.

        The work done is the elapsed seconds times the ``speed`` of its nodes; that left takes ``longer`` times as long.
        """
        past = self.remember()
        started = past.last_start = float(self.started)  # type: ignore[arg-type]
        elapsed = now - started
        if past.attempt_start is None:
            past.attempt_start = started
        past.executed += float(elapsed)
        past.resumes = held
        past.keep(self.planned, self.expected, self._duration)
        done = elapsed * speed
        planned, expected, left = self.planned - done, self.expected - done, self._duration - done
        self.planned = self._planned = planned * longer if planned > 0.0 else 0.0
        self.expected = self._expected = expected * longer if expected > 0.0 else 0.0
        self._duration = left * longer if left > 0.0 else 0.0

    # ------------------------------------------------------------------ levels

    @property
    def level(self) -> float | None:
        """The relative frequency at which it runs, if a policy chose one."""
        past = self.history
        return None if past is None or past.level is None else past.level.level

    @property
    def own_times(self) -> bool:
        """Whether its times do not follow a level: it has sizes, an end or checkpoints of its own."""
        spec = self._job
        return self.elastic is not None or (spec is not None and (spec.own_end or spec.checkpoint is not None))

    def run_at(self, level: float, *, stretch: bool = True, stops: bool = True) -> None:
        """Run at a relative frequency from now on: what is left takes longer or shorter.

        ``stretch``: its limit does so, too; ``stops``: it is stopped at its limit.
        """
        past = self.remember()
        before = past.level or AtLevel(1.0, 1.0, self._outcome, limit=self._asked if self.predicted else None)
        past.keep(self.planned, self.expected, self._duration)
        beta = 1.0 if self._job is None else self._job.frequency_sensitivity
        factor = beta * (1 / level - 1) + 1
        longer = factor / before.factor
        limit = self._asked - past.executed if self.predicted else self.planned
        if stretch := stretch or self.unrequested:
            limit *= longer
        most = limit if stops and (before.over or not stretch) else INFINITY
        left = (self._duration + before.over) * longer
        cut = left > most
        self.plan(min(self.planned * longer, limit), min(self.expected * longer, most), min(left, most))
        if self.predicted:
            self.limit_to(past.executed + limit)
        self._outcome = "timeout" if cut else before.outcome
        past.level = AtLevel(level, factor, before.outcome, left - most if cut else 0.0, before.limit)
        self._count_power()

    def leave_level(self) -> AtLevel | None:
        """Forget the level at which it ran, whose times its caller replaces, and return it; ``None``: it had none."""
        past = self.history
        if past is None or past.level is None:
            return None
        left, past.level = past.level, None
        self._outcome = left.outcome
        if left.limit is not None:
            self.limit_to(left.limit)
        self._count_power()
        return left

    def undo_level(self) -> None:
        """Take back the level of a start that is taken back, if it had one."""
        if self.leave_level() is not None:
            self.plan(*self.remember().whole)  # type: ignore[misc]

    @contextmanager
    def trying(self, level: float, *, stretch: bool = True, stops: bool = True) -> Iterator[None]:
        """Ask how a waiting job would do at a relative frequency: it has its times there meanwhile."""
        kept, request = (self.planned, self.expected, self._duration), self.request
        outcome, history, work, seen = self._outcome, self.history, self._work, self._seen
        asked = self._asked if self.predicted else None
        self.history = copy(history)
        try:
            self.run_at(level, stretch=stretch, stops=stops)
            yield
        finally:
            self.plan(*kept)
            self.request = request
            self._outcome, self.history, self._work, self._seen = outcome, history, work, seen
            if asked is not None:
                self.limit_to(asked)


class Brokered(LiveJob):
    """A job that a broker or a grid hands to one of its systems, as policies and records see it.

    Attributes
    ----------
    row, came, limit
        its row in the broker's record; the instant of its submission there (s); its requested time (s) without any
        slowdown factor, or its run time, which is the future: a policy that must not know it reads ``requested``
    home, destination
        the place it was submitted to, and the one it was handed to, or ``None``
    family
        the dependencies among the jobs of its workload
    plain, needs_files
        whether it requests only processors and time; whether it has inputs, which must be at a site before it runs
    inputs, outputs, stay
        the names of the files that it reads, the files that it writes, and its files at its present site, if any
    """

    __slots__ = ()
    row: int
    came: float
    limit: float
    home: Any
    destination: Any
    family: Any
    plain: bool
    needs_files: bool = False
    inputs: tuple[str, ...] = ()
    outputs: tuple[File, ...] = ()
    stay: Any = None


def run_time_of(job: LiveJob) -> float:
    """Return the seconds that a job will run at its present place, for records: policies must not know."""
    return job._duration


def outcome_of(job: LiveJob) -> str:
    """Return the final state of a job unless it is interrupted, for records: policies must not know."""
    return job._outcome


def told_end(job: LiveJob) -> tuple[str, int | None]:
    """Return the outcome and the exit code that a job was submitted with, for records: policies must not know."""
    spec = job._job
    return ("completed", None) if spec is None else (spec.outcome, spec.exit_code)


def kept_state(job: LiveJob, make: Callable[[LiveJob], object]) -> Any:
    """Return the entry of a job in snapshots, made anew if the job has changed: policies must not know."""
    if job._work is None:
        job._work = make(job)
    return job._work


def seen_by(make: Callable[[LiveJob], object]) -> Callable[[LiveJob], Any]:
    """Return a function of the entry of a job in snapshots as a what-if sees it, made anew if the job has changed."""

    def seen(job: LiveJob) -> Any:
        if job._seen is None:
            job._seen = make(job)
        return job._seen

    return seen


class Run(Occurrence):
    """One execution of a job at a place; in SimPy's event queue it is the end of that execution.

    Attributes
    ----------
    job, place
        the job, and the place where it runs
    started, expected_end
        instants in seconds: of its start, and of its end as policies see it
    grant
        the resources that it holds: ``grant.nodes`` lists its nodes if nodes are identified, else ``None``
    process
        the process of its body, if it has one
    stopping
        final state of the job once its interrupted body has ended
    released
        whether its resources are released although its end is still to be handled
    """

    __slots__ = (
        "_end",
        "_number",
        "entry",
        "expected_end",
        "grant",
        "job",
        "place",
        "process",
        "released",
        "started",
        "stopping",
    )
    entry: Any  # its position among the running work

    def __init__(
        self,
        job: LiveJob,
        place: Named,
        started: float,
        expected_end: float,
        grant: Any,
        callbacks: Any = None,
        end: float = INFINITY,
    ) -> None:
        self.job = job
        self.place: Any = place
        self.started = started
        self.expected_end = expected_end
        self.grant = grant
        self.process: simpy.Process | None = None
        self.stopping: str | None = None
        self.released = False
        self.callbacks = callbacks
        self._end = end  # its planned end (s), and its number among the planned events
        self._number = 0

    @property
    def work(self) -> LiveJob:
        """The job, by the attribute name common to all kinds of work."""
        return self.job

    def __repr__(self) -> str:
        return f"<run of job {self.job.id} on {self.place.name} since {self.started:g}>"


class Booting(Run):
    """What a job holds while its nodes boot, from ``started`` on: it runs from the end of the longest boot on.

    ``processors``: the size at which an elastic job starts; ``None``: that which it prefers; ``up``: when its nodes are
    expected to be up (s).
    """

    __slots__ = ("processors", "up")
    processors: int | None
    up: float


class Queued(Protocol):
    """The part of a waiting job that decides on its position in a queue, and on its place in an index."""

    width: int
    planned: float
    priority: float
    submit: float
    seq: int
    state: Any


_Queued = TypeVar("_Queued", bound=Queued)


def entry_of(job: _Queued, key: Callable[[_Queued], Any] | None) -> tuple[Any, ...]:
    """Return the sort key of a job: its priority, the key, its submission."""
    if key is None:
        return (-job.priority, job.submit, job.seq, job)
    value = key(job)
    if value is None or value != value:
        raise not_a_key(job, value)
    return (-job.priority, value, job.submit, job.seq, job)


def not_a_key(job: Queued, value: object) -> PolicyError:
    """Return the error that the key of an order is ``None`` or nan for a job."""
    text = f"the key of the order is {value}, which cannot be compared"
    hint = "a waiting job has no run and no start, and no policy knows its run time; `requested` is its requested time"
    return PolicyError(f"{text}: {hint}", work=f"job {job.id}" if isinstance(job, LiveJob) else "")
