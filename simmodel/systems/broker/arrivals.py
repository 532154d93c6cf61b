"""Arrivals of a broker: its queue, and sources that submit jobs at their instants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from simmodel.environment import Occurrence
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.destination import BrokeredJob, BrokeredSet, Destination
from simmodel.work.job import OVER

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.systems.broker.ledger import Ledger
    from simmodel.systems.system import Timing
    from simmodel.work.job import Job
    from simmodel.work.taskset import TaskSet

__all__ = ["BrokerQueue", "Coming", "Later", "Source", "Taker"]


class Coming(NamedTuple):
    """A job or a set of tasks that is still to be submitted to a broker.

    ``row``: its row in the record; ``limit`` and ``length``: planned and run time (s) without a slowdown;
    ``unrequested``: whether it has no requested time; ``spec``: the full request, only of sets of tasks and of jobs
    that request more than processors and time.
    """

    row: int
    submit: float
    processors: int
    limit: float
    length: float
    unrequested: bool
    id: int | str
    user: int | str | None = None
    home: Destination | None = None
    spec: Job | TaskSet | None = None


class Taker(Protocol):
    """The broker that a source submits to."""

    env: Environment
    timing: Timing
    ledger: Ledger

    def live(self, spec: Job | TaskSet, row: int, home: Destination | None, family: Dependencies, /) -> BrokeredJob:
        """Return the live work of a row."""
        ...

    def arrive(self, job: BrokeredJob, /) -> None:
        """Accept work that arrives at its instant, or reject it."""
        ...

    def take_in(self, job: BrokeredJob, /) -> None:
        """Accept work that can run."""
        ...


class BrokerQueue(WaitingQueue):
    """The waiting jobs of a broker; skips jobs handed over meanwhile, whose links then belong to another queue."""

    __slots__ = ()

    def add(self, job: Any) -> None:
        """Add a job, whose requested time and home its policy cannot change from now on."""
        job._limit, job._origin = job.limit, job.home
        super().add(job)

    def __iter__(self) -> Iterator[BrokeredJob]:
        seen: set[Any] = set()
        job: Any = self._first
        while job is not None:
            after: Any = job.later
            if job.state == "waiting" and job.destination is None and job not in seen:
                seen.add(job)
                yield job
            if after is not None and (after.destination is not None or after.state != "waiting"):
                after = self._first  # it has left meanwhile: once more, without those seen
            job = after


class Source(Occurrence):
    """Submits jobs to a broker, with one event per instant, or one per job if the broker decides after each.

    Its jobs come in blocks, each of which is made when the last job of the one before has been submitted.

    Attributes
    ----------
    family
        the dependencies among its jobs
    order
        position of its next submission in the event queue: instant (s), priority, number
    """

    __slots__ = ("_blocks", "_i", "_jobs", "broker", "family", "order")

    def __init__(self, broker: Taker, blocks: Iterable[Sequence[Coming]], family: Dependencies) -> None:
        self.broker = broker
        self.family = family
        self._blocks = iter(blocks)
        if self._next_block():
            self._push(self._jobs[0].submit)

    def _next_block(self) -> Sequence[Coming]:
        self._i = 0
        self._jobs = next(self._blocks, ())
        return self._jobs

    def to_come(self) -> list[Coming]:
        """Return the jobs still to be submitted."""
        later = list(self._blocks)
        self._blocks = iter(later)
        return [*self._jobs[self._i :], *chain.from_iterable(later)]

    def _push(self, at: float) -> None:
        env = self.broker.env
        self.callbacks = (self._fire,)
        at, priority = max(at, env._now), self.broker.timing.submits
        self.order = at, priority, env.plan(self, at, priority)

    def _fire(self, _event: object) -> None:
        broker, jobs, i, family = self.broker, self._jobs, self._i, self.family
        at = jobs[i].submit
        each = broker.timing.by_event
        while True:
            row, _, processors, limit, length, unrequested, name, user, home, spec = jobs[i]
            if spec is not None:
                job = broker.live(spec, row, home, family)
                job.widen(processors)
                if isinstance(job, BrokeredSet):
                    broker.ledger.alone.append(job)
            else:
                job = BrokeredJob(name, row, at, processors, limit, length, family)
                job.user, job.home, job.unrequested = user, home, unrequested
            i += 1
            self._i = i
            broker.arrive(job)
            if i == len(jobs):
                jobs, i = self._next_block(), 0
                if not jobs:
                    return
            then = jobs[i].submit
            if then != at or each:
                break
        self._push(then)


class Later(Source):
    """Submits one job or set of tasks whose live object exists already."""

    __slots__ = ("job",)

    def __init__(self, broker: Taker, job: BrokeredJob) -> None:
        self.job = job
        spec = job.tasks if isinstance(job, BrokeredSet) else job._job
        numbers = job.processors, job.limit, job._length, job.unrequested
        coming = Coming(job.row, job.came, *numbers, job.id, job.user, job.home, spec)
        super().__init__(broker, [[coming]], job.family)

    def _fire(self, _event: object) -> None:
        self._i = 1
        if self.job.state not in OVER:  # else it was cancelled before it came
            self.broker.take_in(self.job)
