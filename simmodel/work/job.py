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

__all__ = ["OVER", "Dependency", "Job", "LiveJob", "Run"]

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
    requested
        seconds that a policy plans it with
    user, priority
        as asked for; the priority includes that of its queue and partition
    place
        the place (partition) that it waits for
    spec
        the :class:`Job` it was submitted as, where there is one
    state
        ``"blocked"`` by dependencies, ``"held"`` by a limit, ``"waiting"``, ``"running"``, ``"suspended"`` or how it
        ended
    """

    __slots__ = (
        "_duration",
        "_expected",
        "_outcome",
        "_past",
        "_resumes",
        "_run",
        "_seen",
        "_started",
        "_waits_for",
        "_watched",
        "_whole",
        "_work",
        "attempts",
        "earlier",
        "id",
        "index",
        "later",
        "place",
        "priority",
        "processors",
        "request",
        "requested",
        "rules",
        "seq",
        "spec",
        "state",
        "submit",
        "user",
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
        self._expected = expected  # seconds it is planned with once it runs
        self._duration = duration  # seconds it will run: nothing that a policy may look at
        self.user: int | str | None = None
        self.priority: float = 0.0
        self.place: Any = None
        self.spec: Job | None = None
        self.request: Any = None  # for identified nodes and consumables; None: processors alone
        self.rules: Any = None  # of its queue
        self.state = "new"
        self.attempts = 0
        self._run: Run | None = None
        self._outcome = "completed"  # what its end will be, where nothing comes between
        self._resumes: Any = None  # what it held when it was suspended: it goes on at its next start
        self._watched = False  # usage, limits or other jobs hang on its start and end
        self._started: float | None = None
        self._past: Any = None  # what came before: of a job that was blocked, or whose executions were stopped
        self._work: Any = None  # what snapshots say of it while that stays true, and what they say to a what-if
        self._seen: Any = None

    # Set where they are needed: by the queue it stands in; for a job of a script; while it waits for others; once it
    # was suspended (its seconds before that: requested, expected, duration).
    earlier: LiveJob | None
    later: LiveJob | None
    _waits_for: int
    _whole: tuple[float, float, float]

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
        return None if self.spec is None else self.spec.group

    @property
    def queue(self) -> int | str | None:
        """The queue it was submitted to."""
        return None if self.spec is None else self.spec.queue

    @property
    def started(self) -> float | None:
        """The instant of its latest start, in seconds."""
        return self._started

    @property
    def run(self) -> Run | None:
        """Its present execution, while it runs."""
        return self._run

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.processors} processors, {self.requested:g} s requested, {self.state}>"


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
    """

    __slots__ = ("entry", "expected_end", "grant", "job", "place", "process", "released", "started", "stopping")
    entry: Any  # where it stands among what runs

    def __init__(self, job: LiveJob, place: Any, started: float, expected_end: float, grant: Any) -> None:
        self.job = job
        self.place = place
        self.started = started
        self.expected_end = expected_end
        self.grant = grant
        self.process: simpy.Process | None = None  # of a job with a body
        self.stopping: str | None = None  # how a body that was interrupted will have ended
        self.released = False  # what it held is given back, though its end is still to be handled

    @property
    def work(self) -> LiveJob:
        """The job; the name that all kinds of work share."""
        return self.job

    def __repr__(self) -> str:
        return f"<run of job {self.job.id} on {self.place.name} since {self.started:g}>"
