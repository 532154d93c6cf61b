"""What comes to a broker: a queue that forgets what is handed over, and sources that submit, each at its instant."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from simmodel.environment import Occurrence
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.destination import BrokeredJob, BrokeredSet, Destination

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.systems.broker.ledger import Ledger
    from simmodel.systems.system import Timing
    from simmodel.work.job import Job
    from simmodel.work.taskset import TaskSet

__all__ = ["BrokerQueue", "Coming", "Later", "Source", "Taker"]


class Coming(NamedTuple):
    """A job, or a set of tasks, that is still to be submitted to a broker.

    ``row`` of the record; ``limit`` and ``length``: s, asked for and run where there is no slowdown; ``spec``: of jobs
    that ask for more than processors and time.
    """

    row: int
    submit: float
    processors: int
    limit: float
    length: float
    id: int | str
    user: int | str | None = None
    home: Destination | None = None
    spec: Job | TaskSet | None = None


class Taker(Protocol):
    """What a source submits to: a broker."""

    env: Environment
    timing: Timing
    ledger: Ledger

    def live(self, spec: Job | TaskSet, row: int, home: Destination | None, family: Dependencies, /) -> BrokeredJob:
        """Return the live work of a row."""
        ...

    def arrive(self, job: BrokeredJob, /) -> None:
        """Take in what comes at its instant, or reject it."""
        ...

    def take_in(self, job: BrokeredJob, /) -> None:
        """Take in what can run."""
        ...


class BrokerQueue(WaitingQueue):
    """What waits for a broker: what is handed over joins another queue at once, and is linked there."""

    __slots__ = ()

    def __iter__(self) -> Iterator[BrokeredJob]:
        jobs: list[Any] = list(super().__iter__())
        for job in jobs:
            if job.state == "waiting" and job.destination is None:
                yield job


class Source(Occurrence):
    """Submits jobs to a broker; one event an instant, or one a job where each is decided on.

    Attributes
    ----------
    family
        the dependencies among its jobs
    order
        where its next submission stands among events: instant (s), priority, number
    """

    __slots__ = ("_i", "_jobs", "broker", "family", "order")

    def __init__(self, broker: Taker, jobs: list[Coming], family: Dependencies) -> None:
        self.broker = broker
        self.family = family
        self._jobs = jobs
        self._i = 0
        self._push(jobs[0].submit)

    def to_come(self) -> list[Coming]:
        """Return what is still to be submitted."""
        return self._jobs[self._i :]

    def _push(self, at: float) -> None:
        env = self.broker.env
        self.callbacks = (self._fire,)
        self.order = max(at, env._now), self.broker.timing.submits, next(env._eid)
        heappush(env._queue, (*self.order, self))  # type: ignore[misc]

    def _fire(self, _event: object) -> None:
        broker, jobs, i, family = self.broker, self._jobs, self._i, self.family
        at = jobs[i].submit
        each = broker.timing.by_event
        while True:
            row, _, processors, limit, length, name, user, home, spec = jobs[i]
            if spec is not None:
                job = broker.live(spec, row, home, family)
                job.processors = processors
                if isinstance(job, BrokeredSet):
                    broker.ledger.alone.append(job)
            else:
                job = BrokeredJob(name, row, at, processors, limit, length, family)
                job.user, job.home = user, home
            i += 1
            self._i = i
            broker.arrive(job)
            if i == len(jobs):
                return
            then = jobs[i].submit
            if then != at or each:
                break
        self._push(then)


class Later(Source):
    """Submits one job, or one set of tasks, that somebody has in hand already."""

    __slots__ = ("job",)

    def __init__(self, broker: Taker, job: BrokeredJob) -> None:
        self.job = job
        spec = job.tasks if isinstance(job, BrokeredSet) else job._job
        numbers = job.processors, job.limit, job._length
        super().__init__(broker, [Coming(job.row, job.came, *numbers, job.id, job.user, job.home, spec)], job.family)

    def _fire(self, _event: object) -> None:
        self._i = 1
        self.broker.take_in(self.job)
