"""Jobs: what is asked (frozen values) beside the slim live state of what happens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import attrs

from simmodel.environment import Occurrence
from simmodel.work.live import LiveWork

if TYPE_CHECKING:
    import simpy
    from simpy.events import Event

    from simmodel.environment import Environment

__all__ = ["OVER", "Dependency", "History", "Job", "JobRequest", "LiveJob", "Run"]

INFINITY = float("inf")

OVER = ("completed", "timeout", "failed", "cancelled", "lost", "rejected")
"""The states of a job to which nothing more will happen."""

_Number = TypeVar("_Number", bound=float | None)

Body = Callable[[Any, "LiveJob", Any], Generator["Event", Any, Any]]


def _positive(_instance: Job | Dependency, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str) or (value is not None and not value > 0):
        raise ValueError(f"{attribute.name} > 0 expected, found {value!r}")


def _not_negative(_instance: Job | Dependency, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str) or (value is not None and not value >= 0):
        raise ValueError(f"{attribute.name} >= 0 expected, found {value!r}")


@attrs.frozen
class Dependency:
    """A job waits for another one, and then for a think time.

    Parameters
    ----------
    job
        the id of the job waited for
    after
        ``"end"`` however it ended, ``"success"`` only when it completed (else this job is cancelled), ``"start"``
    think_time
        seconds between that and the moment at which this job may start

    >>> Dependency("prepare", after="success", think_time=5)
    Dependency(job='prepare', after='success', think_time=5)
    """

    job: int | str
    after: Literal["end", "start", "success"] = attrs.field(
        default="end", validator=attrs.validators.in_(("end", "start", "success"))
    )
    think_time: float = attrs.field(default=0.0, validator=_not_negative)


def _whole(_instance: Job, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str) or value is None or value != value // 1:
        raise ValueError(f"{attribute.name}: a whole number expected, found {value!r}")


def _number(_instance: Job, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is not None and value != value:
        raise ValueError(f"{attribute.name}: a number expected, found {value!r}")


def _dependencies(value: Iterable[Dependency | int | str]) -> tuple[Dependency, ...]:
    if isinstance(value, str):
        raise ValueError(f"dependencies: a list of jobs expected, found {value!r}")
    return tuple(each if isinstance(each, Dependency) else Dependency(each) for each in value)


@attrs.frozen(kw_only=True)
class Job:
    """A request to a batch system. It never changes: one job can be run in many simulations.

    Parameters
    ----------
    run
        seconds it runs once started; may be missing where it has a body
    processors
        processors asked for, where no nodes are; default ``nodes * cores_per_node``
    requested
        seconds it asks for (wall-time limit); missing: its run time
    submit
        the instant at which it is submitted, in seconds (of a list of jobs; ``cluster.submit`` submits at once)
    nodes, cores_per_node, gpus_per_node, memory_per_node
        whole numbers; memory in bytes; where nodes are asked for
    consumables
        named amounts: licences, bytes of burst buffer, bytes/s of I/O bandwidth
    user, group, queue, partition, priority
        who asks and where; a higher priority goes first
    dependencies
        ids of jobs, or :class:`Dependency` values, that must come before
    cancel
        the instant at which it is withdrawn or stopped, in seconds
    on_preempt
        ``"requeue"`` starts it again after a preemption or a failure, ``"suspend"`` resumes it where it was,
        ``"no"`` forbids preempting it
    keeps_work
        whether a requeued job keeps the work it had done (it writes checkpoints)
    body
        a generator function ``body(env, job, grant)`` that is the job: it ends when the body ends

    Raises
    ------
    ValueError
        where a number is negative, or neither ``run`` nor ``body`` is given

    >>> Job(processors=4, run=100, requested=120).processors
    4
    >>> Job(nodes=2, cores_per_node=8, run=10).processors
    16
    """

    id: int | str | None = None
    submit: float = attrs.field(default=0.0, validator=_not_negative)
    processors: int = attrs.field(validator=[_whole, _positive])
    run: float | None = attrs.field(default=None, validator=_not_negative)
    requested: float | None = attrs.field(default=None, validator=_positive)
    nodes: int | None = attrs.field(default=None, validator=_positive)
    cores_per_node: int = attrs.field(default=1, validator=_not_negative)
    gpus_per_node: int = attrs.field(default=0, validator=_not_negative)
    memory_per_node: float = attrs.field(default=0.0, validator=_not_negative)
    consumables: Mapping[str, float] = attrs.field(factory=dict)
    user: int | str | None = None
    group: int | str | None = None
    queue: int | str | None = None
    partition: int | str | None = None
    priority: float = attrs.field(default=0.0, validator=_number)
    dependencies: tuple[Dependency, ...] = attrs.field(default=(), converter=_dependencies)
    cancel: float | None = attrs.field(default=None, validator=_number)
    on_preempt: Literal["requeue", "suspend", "no"] = attrs.field(
        default="requeue", validator=attrs.validators.in_(("requeue", "suspend", "no"))
    )
    keeps_work: bool = False
    body: Body | None = None
    name: str | None = None

    @processors.default
    def _default_processors(self) -> int:
        return 1

    def __attrs_post_init__(self) -> None:
        if self.run is None and self.body is None:
            raise ValueError(f"job {self.id if self.id is not None else self.name}: a run time or a body expected")
        if self.body is not None and not callable(self.body):
            raise ValueError(f"body: a generator function body(env, job, grant) expected, found {self.body!r}")
        for name, amount in self.consumables.items():
            if not amount >= 0:
                raise ValueError(f"consumables: an amount of {name} >= 0 expected, found {amount!r}")
        if self.nodes is not None:
            object.__setattr__(self, "processors", self.nodes * max(1, self.cores_per_node))


class JobRequest:
    """What a job asks for, as policies may know it: a :class:`Job` without its run time, body and cancellation.

    Attributes
    ----------
    has_body
        whether the job is a process, which cannot be suspended
    """

    __slots__ = (
        "consumables",
        "cores_per_node",
        "dependencies",
        "gpus_per_node",
        "group",
        "has_body",
        "id",
        "keeps_work",
        "memory_per_node",
        "name",
        "nodes",
        "on_preempt",
        "partition",
        "priority",
        "processors",
        "queue",
        "requested",
        "submit",
        "user",
    )

    def __init__(self, job: Job) -> None:
        self.id = job.id
        self.name = job.name
        self.submit = job.submit
        self.processors = job.processors
        self.requested = job.requested
        self.nodes = job.nodes
        self.cores_per_node = job.cores_per_node
        self.gpus_per_node = job.gpus_per_node
        self.memory_per_node = job.memory_per_node
        self.consumables = job.consumables
        self.user = job.user
        self.group = job.group
        self.queue = job.queue
        self.partition = job.partition
        self.priority = job.priority
        self.dependencies = job.dependencies
        self.on_preempt = job.on_preempt
        self.keeps_work = job.keeps_work
        self.has_body = job.body is not None

    def __repr__(self) -> str:
        return f"<request of job {self.id if self.id is not None else self.name}: {self.processors} processors>"


class History:
    """What happened to a job before: only of jobs that were blocked, or whose executions were stopped.

    Attributes
    ----------
    eligible
        when all that it had to come after had come (s), where that was after its submission
    first_start, attempt_start, last_start
        when it first started, where it was stopped since; when the attempt began that was suspended; when it last
        started (s)
    executed
        seconds whose work was not thrown away
    resumes
        what it held when it was suspended: it goes on with it; ``None``: it starts from the beginning
    """

    __slots__ = ("_whole", "attempt_start", "eligible", "executed", "first_start", "last_start", "resumes")

    def __init__(self) -> None:
        self.eligible: float | None = None
        self.first_start: float | None = None
        self.attempt_start: float | None = None
        self.last_start: float | None = None
        self.executed = 0.0
        self.resumes: Any = None
        self._whole: tuple[float, float, float] | None = None  # its seconds before it was suspended, as of plan()

    @property
    def suspended(self) -> bool:
        """Whether it was ever suspended."""
        return self._whole is not None


class LiveJob(LiveWork):
    """A submitted job: what a policy may know of it, and where it stands; an event that happens when it is over.

    Attributes
    ----------
    id, index, seq
        its name; its row in the record; its place in the order of submission
    submit
        the instant of submission, in seconds
    processors
        processors asked for
    requested, expected
        seconds that a policy plans it with while it waits, and once it runs
    user, priority
        as asked for; the priority includes that of its queue and partition
    place
        the place (partition) that it waits for
    request
        what it asks of nodes and consumables; ``None``: processors alone
    rules
        those of its queue, where it has any
    state
        ``"blocked"`` by dependencies, ``"held"`` by a limit, ``"waiting"``, ``"running"``, ``"suspended"`` or how it
        ended
    attempts
        how often it began to run
    started, run
        the instant of its latest start (s); its present execution
    past
        what happened to it before, where that says more
    watched
        whether usage, limits or other jobs hang on its start and end
    """

    __slots__ = (
        "_duration",
        "_job",
        "_outcome",
        "_seen",
        "_spec",
        "_work",
        "attempts",
        "earlier",
        "expected",
        "id",
        "index",
        "later",
        "past",
        "place",
        "priority",
        "processors",
        "request",
        "requested",
        "rules",
        "run",
        "seq",
        "started",
        "state",
        "submit",
        "user",
        "watched",
    )

    def __init__(
        self,
        id: int | str,  # the field's word
        index: int,
        submit: float,
        processors: int,
        requested: float,
        expected: float,
        duration: float,
    ) -> None:
        self.event = None
        self.id = id
        self.index = index
        self.seq = index
        self.submit = submit
        self.processors = processors
        self.requested = requested
        self.expected = expected
        self.user: int | str | None = None
        self.priority: float = 0.0
        self.place: Any = None
        self.request: Any = None
        self.rules: Any = None
        self.state = "new"
        self.attempts = 0
        self.run: Run | None = None
        self.started: float | None = None
        self.past: History | None = None
        self.watched = False
        # Nothing that a policy may look at: seconds it will run; how it will end, where nothing comes between; what it
        # was submitted as, where that says more than the rest.
        self._duration = duration
        self._outcome = "completed"
        self._job: Job | None = None
        self._spec: JobRequest | None = None
        self._work: Any = None  # what snapshots say of it while that stays true, and what they say to a what-if
        self._seen: Any = None

    earlier: LiveJob | None  # set by the queue that it stands in
    later: LiveJob | None

    @property
    def spec(self) -> JobRequest | None:
        """What it asks for, where that is more than processors and time."""
        if self._spec is None and self._job is not None:
            self._spec = JobRequest(self._job)
        return self._spec

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in OVER

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of its place."""
        env: Environment = self.place.env
        return env

    @property
    def group(self) -> int | str | None:
        """The user's group or account."""
        return None if self._job is None else self._job.group

    @property
    def queue(self) -> int | str | None:
        """The queue it was submitted to."""
        return None if self._job is None else self._job.queue

    @property
    def asked(self) -> float:
        """Seconds that it asked for; ``requested`` is less where it was suspended."""
        past = self.past
        return self.requested if past is None or past._whole is None else past._whole[0]

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.processors} processors, {self.requested:g} s requested, {self.state}>"

    # ------------------------------------------------------------------ what systems do with it

    def plan(self, requested: float, expected: float, duration: float) -> None:
        """Set the seconds that it is planned with while it waits and once it runs, and those that it will run."""
        self.requested, self.expected, self._duration = requested, expected, duration

    def adopt(self, other: LiveJob) -> None:
        """Become what another job is in a system that both were made for: planned, placed and ruled like it."""
        self.plan(other.requested, other.expected, other._duration)
        self.place, self.request, self.rules, self.priority = other.place, other.request, other.rules, other.priority
        self._job, self._spec = other._job, None

    def remember(self) -> History:
        """Return what happened to it before, to be changed; what snapshots said of it no longer holds."""
        self._work = self._seen = None
        if self.past is None:
            self.past = History()
        return self.past

    def requeue(self, now: float) -> None:
        """Note that its execution was stopped (s), and that it starts again: from the beginning, or what it keeps."""
        past = self.remember()
        started = past.last_start = float(self.started)  # type: ignore[arg-type]
        if past.first_start is None:
            past.first_start = started if past.attempt_start is None else past.attempt_start
        past.attempt_start = None
        job = self._job
        if job is not None and job.keeps_work:
            past.executed += float(now - started)
            if job.body is None:
                self._duration -= now - started
                return
        if past._whole is not None:
            self.plan(*past._whole)

    def suspend(self, now: float, held: Any) -> None:
        """Note that it was suspended (s), and goes on with what it held."""
        past = self.remember()
        started = past.last_start = float(self.started)  # type: ignore[arg-type]
        elapsed = now - started
        if past.attempt_start is None:
            past.attempt_start = started
        past.executed += float(elapsed)
        past.resumes = held
        if past._whole is None:
            past._whole = self.requested, self.expected, self._duration
        self.plan(max(0.0, self.requested - elapsed), max(0.0, self.expected - elapsed), self._duration - elapsed)


class Run(Occurrence):
    """One execution of a job at a place; as an entry of SimPy's queue it is the end of that execution.

    Attributes
    ----------
    job, place
        what runs where
    started, expected_end
        seconds; the end that a policy may reckon with
    grant
        what the place gave: ``grant.nodes`` are its nodes, where nodes are identified, else ``None``
    process
        that of a job with a body
    stopping
        how a body that was interrupted will have ended
    released
        whether what it held is given back, though its end is still to be handled
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
    entry: Any  # where it stands among what runs

    def __init__(self, job: LiveJob, place: Any, started: float, expected_end: float, grant: Any) -> None:
        self.job = job
        self.place = place
        self.started = started
        self.expected_end = expected_end
        self.grant = grant
        self.process: simpy.Process | None = None
        self.stopping: str | None = None
        self.released = False
        self.callbacks = None
        self._end = INFINITY  # when it ends, where that is planned, and its number among the events planned
        self._number = 0

    @property
    def work(self) -> LiveJob:
        """The job; the name that all kinds of work share."""
        return self.job

    def __repr__(self) -> str:
        return f"<run of job {self.job.id} on {self.place.name} since {self.started:g}>"
