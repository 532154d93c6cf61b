"""The one protocol of all schedulers: a policy maps a view to decisions.

A policy is a :class:`~simmodel.scheduling.policy_base.Policy`, any object with ``decide(view)``, or a function of a
view. It returns decisions or yields them. When it yields, each decision is applied before the policy goes on, so that
it sees the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from simmodel.work.job import LiveJob, Run
    from simmodel.work.livetask import LiveTask

__all__ = [
    "Decision",
    "Estimate",
    "Load",
    "OrderLike",
    "Place",
    "Preempt",
    "Reserve",
    "Start",
    "View",
    "WakeAt",
    "work_units",
]


class Start(NamedTuple):
    """Start waiting work at a place, now; a place that queues takes it into its queue.

    ``allocation`` is for places with identified nodes: the very nodes to use (as ``place.allocate`` returns them).
    """

    work: Any
    place: Any
    reason: str | None = None
    allocation: Any = None


class Preempt(NamedTuple):
    """Stop running work: it goes back to the queue, to start again (``requeue``) or to go on (``suspend``)."""

    work: Any
    mode: Literal["requeue", "suspend"] = "requeue"
    reason: str | None = None


class Reserve(NamedTuple):
    """Promise that work starts at a place at an instant (s): recorded, and the scheduler wakes then."""

    work: Any
    place: Any
    at: float
    reason: str | None = None


class WakeAt(NamedTuple):
    """Ask for a decision at an instant (s), even if nothing else happens then."""

    at: float
    reason: str | None = None


Decision = Start | Preempt | Reserve | WakeAt


class Estimate(NamedTuple):
    """What starting work at a place is expected to bring, in seconds: the start is an instant, the rest are durations.

    >>> Estimate(start=100.0, setup=1.0, transfer=2.0, run=10.0).finish
    113.0
    """

    start: float
    setup: float
    transfer: float
    run: float

    @property
    def finish(self) -> float:
        """The expected end, an instant in seconds."""
        return self.start + self.setup + self.transfer + self.run


class Load(NamedTuple):
    """How loaded a place is: processors free, pieces of work that wait, and expected work in units of 2^-20 processor
    seconds: whole numbers, which add up alike in every order. Work past its expected end counts zero.
    """

    free: int
    queued: int
    queued_work: int
    running_work: int

    @property
    def backlog(self) -> float:
        """Processor seconds that what runs and waits is still expected to take.

        >>> Load(free=2, queued=1, queued_work=3 * 2**20, running_work=2**20).backlog
        4.0
        """
        return (self.queued_work + self.running_work) / 2**20


def work_units(processors: int, seconds: float) -> int:
    """Return work in units of 2^-20 processor seconds; what is past its end, or lasts for ever, counts zero.

    >>> work_units(2, 1.5) == 3 * 2**20
    True
    """
    return int(seconds * 2**20) * processors if 0 < seconds < inf else 0


@runtime_checkable
class Place(Protocol):
    """Anything that takes work: a pool of nodes, a processor, a system under a broker.

    Each takes work of its own: pools and systems jobs, processors tasks. The questions are pure.
    """

    @property
    def name(self) -> str:
        """What reports call it; no two places of a scheduler have one name."""
        ...

    @property
    def capacity(self) -> float:
        """Processors in all."""
        ...

    @property
    def free(self) -> float:
        """Processors free now; negative while what is down is still in use."""
        ...

    @property
    def queues(self) -> bool:
        """Whether it takes work that does not fit now, into a queue of its own."""
        ...

    @property
    def version(self) -> int:
        """A number that changes with what a pool has free, or a system has free and waiting."""
        ...

    @property
    def backlog(self) -> float:
        """Processor seconds that what it has is still expected to take."""
        ...

    def can_run(self, work: Any, /) -> bool:
        """Whether it could ever run the work."""
        ...

    def why_not(self, work: Any, /) -> str | None:
        """Say why it could never run the work, or ``None``."""
        ...

    def fits(self, work: Any, /) -> bool:
        """Whether it could start the work now."""
        ...


class OrderLike(Protocol):
    """An order of waiting work: a key, lower first; ties go by submission.

    ``changes`` says that the key changes while work waits; it is then called as ``key(job, now)``, and ``scores(now,
    columns)`` may give the keys of all jobs at once (see :class:`simmodel.scheduling.column_index.ColumnIndex`).
    """

    @property
    def key(self) -> Callable[..., Any] | None:
        """The key function; ``None`` for the order of arrival."""
        ...

    @property
    def changes(self) -> bool:
        """Whether the key changes while work waits."""
        ...


class View:
    """What a policy may see: live, read-only, nothing copied.

    Attributes
    ----------
    now
        the instant, in seconds
    waiting
        the waiting work in order of arrival; see :class:`simmodel.scheduling.waiting.WaitingQueue`
    places
        where work can start
    rng
        the random stream of the policy
    usage
        processor seconds that users have consumed (see :class:`simmodel.scheduling.usage.Usage`)
    estimator
        ``estimator(view, work, place) -> Estimate``, which belongs to the system
    simulate
        simulation of a future, handed in from above where there is one
    problem
        ``problem(tasks) -> Problem``: what planners plan, where the system has it
    """

    __slots__ = ("_rng", "env", "estimator", "places", "problem", "simulate", "usage", "waiting")

    def __init__(self, env: Any, waiting: Any, places: Sequence[Any], rng_name: str = "policy") -> None:
        self.env = env
        self.waiting = waiting
        self.places = places
        self.estimator: Callable[[View, Any, Any], Estimate] | None = None
        self.simulate: Callable[..., Any] | None = None
        self.problem: Callable[..., Any] | None = None
        self.usage: Any = None
        self._rng = rng_name

    @property
    def now(self) -> float:
        """The instant, in seconds."""
        return float(self.env._now)

    @property
    def rng(self) -> np.random.Generator:
        """The random stream of the policy."""
        stream: np.random.Generator = self.env.rng(self._rng)
        return stream

    @property
    def running(self) -> list[Run]:
        """What runs, ordered by expected end: each with work, place, started, expected_end."""
        runs = [entry for place in self.places for entry in place.running.entries()]
        return [entry[3] for entry in (runs if len(self.places) == 1 else sorted(runs, key=lambda e: e[:2]))]

    def estimate(self, work: LiveJob | LiveTask, place: Place) -> Estimate:
        """Return what starting the work at the place is expected to bring, from what a scheduler can know."""
        if self.estimator is None:
            raise LookupError(f"this system has no estimator; none can say when {work} would start on {place}")
        return self.estimator(self, work, place)
