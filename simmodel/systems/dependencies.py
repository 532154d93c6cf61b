"""Jobs that wait for other jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from simmodel.work.job import OVER, LiveJob

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment, ToCome
    from simmodel.work.job import Dependency

__all__ = ["Dependencies", "Owner"]

Work = TypeVar("Work", bound=LiveJob, contravariant=True)
"""The live jobs of an owner."""


class Owner(Protocol[Work]):
    """A system whose jobs may wait for each other."""

    env: Environment

    def cancel(self, work: Work, /) -> None:
        """Withdraw a job that waits."""
        ...

    def eligible(self, job: Work, /) -> None:
        """Take a job into the queue: all that it had to come after has come."""
        ...

    def plan(self, at: float, call: Callable[[], object], /) -> Call:
        """Call at an instant (s), with the ends of that instant."""
        ...


class Dependencies:
    """Knows who waits for whose start, end or success, and lets jobs go when all of it has come.

    A job whose predecessor did not complete, where it asked for success, is cancelled.

    Attributes
    ----------
    owner, env
        the system that the jobs were submitted to, and its environment
    known
        the jobs that others can name, by id
    absent
        ids that will never come: of jobs that were rejected
    waiting
        by (id, ``"start"`` or ``"end"``): the jobs that wait for it, and why
    """

    def __init__(self, owner: Owner[Work]) -> None:
        self.owner: Owner[Any] = owner
        self.env = owner.env
        self.known: dict[Any, LiveJob] = {}
        self.absent: set[Any] = set()
        self.waiting: dict[tuple[Any, str], list[tuple[LiveJob, Dependency]]] = {}
        self._missing: dict[LiveJob, int] = {}  # of each blocked job, how many of those it waits for
        self._thinking: dict[Call, LiveJob] = {}

    def know(self, job: LiveJob) -> None:
        """Remember a submitted job, so that others can name it."""
        self.known[job.id] = job

    def forget(self, job: LiveJob) -> None:
        """Forget a job that is not here any more; whoever waits for it waits on."""
        self.known.pop(job.id, None)
        self._missing.pop(job, None)

    def unblock(self, job: LiveJob) -> None:
        """Note that a job waits for nobody any more."""
        self._missing.pop(job, None)

    def rejected(self, name: int | str) -> None:
        """Take a job that never runs for one that ended without success."""
        self.absent.add(name)

    def blocked_jobs(self) -> list[LiveJob]:
        """Return the jobs that wait for others, in the order of submission."""
        return [job for job in self.known.values() if job.state == "blocked"] if self._missing else []

    def block(self, job: LiveJob) -> None:
        """Have the job wait for those it names, and join the queue when all of them have come: at once, perhaps."""
        assert job.spec is not None
        job.state = "blocked"
        self._missing[job] = len(job.spec.dependencies)
        for dependency in job.spec.dependencies:
            before = self.known.get(dependency.job)
            if before is None and dependency.job not in self.absent:
                self._wait(job, dependency, "start" if dependency.after == "start" else "end")
            elif before is None:
                self._come(job, dependency, dependency.after != "success")
            elif dependency.after == "start" and (before.started is not None or before.state in OVER):
                self._come(job, dependency, True)
            elif dependency.after != "start" and before.state in OVER:
                self._come(job, dependency, dependency.after == "end" or before.state == "completed")
            else:
                self._wait(job, dependency, "start" if dependency.after == "start" else "end")

    def _wait(self, job: LiveJob, dependency: Dependency, what: str) -> None:
        self.waiting.setdefault((dependency.job, what), []).append((job, dependency))

    def happened(self, job: LiveJob, what: str) -> None:
        """The job started or ended."""
        waiting = self.waiting
        if not waiting:
            return
        for dependent, dependency in waiting.pop((job.id, what), ()):
            self._come(dependent, dependency, dependency.after != "success" or job.state == "completed")
        if what == "end":  # a job that ends without having started lets those go that waited for its start
            for dependent, dependency in waiting.pop((job.id, "start"), ()):
                self._come(dependent, dependency, True)

    def _come(self, job: LiveJob, dependency: Dependency, as_hoped: bool) -> None:
        if job.state != "blocked":
            return
        if not as_hoped:
            self.owner.cancel(job)
        elif dependency.think_time > 0:
            self._think(job, self.env.now + dependency.think_time)
        else:
            self._one_less(job)

    def _think(self, job: LiveJob, until: float) -> None:
        call = self.owner.plan(until, lambda: self._one_less(self._thinking.pop(call)))
        self._thinking[call] = job

    def _one_less(self, job: LiveJob) -> None:
        missing = self._missing.get(job, 0) - 1
        if missing > 0:
            self._missing[job] = missing
            return
        self._missing.pop(job, None)
        self.owner.eligible(job)

    # ------------------------------------------------------------------ to be copied

    def to_come(self) -> list[ToCome]:
        """List the ends of think times, each with the number of its job."""
        return [call.to_come("eligible", job.seq) for call, job in self._thinking.items() if job.state == "blocked"]

    def waits(self) -> Iterator[tuple[LiveJob, int, Any, str]]:
        """Iterate over what blocked jobs wait for: (job, which of its dependencies, the other's id, what)."""
        for (other, what), waiting in self.waiting.items():
            for job, dependency in waiting:
                if job.state == "blocked" and job.spec is not None:
                    yield job, job.spec.dependencies.index(dependency), other, what

    def restore(
        self,
        jobs: Iterable[LiveJob],
        waits: Iterable[tuple[int | str, str, LiveJob, int]],
        over: Iterable[tuple[int | str, str]],
    ) -> None:
        """Know these jobs, who waits for whom, and how those ended that are over, as a snapshot has it."""
        for name, state in over:
            gone = self.known[name] = LiveJob(name, -1, 0.0, 1, 0.0, 0.0, 0.0)
            gone.state = state
        for job in sorted(jobs, key=lambda job: (job.submit, job.seq)):
            self.known[job.id] = job
            if job.state == "blocked":
                self._missing[job] = 0
        for _, what, job, which in waits:
            assert job.spec is not None
            self._missing[job] += 1
            self._wait(job, job.spec.dependencies[which], what)

    def think_again(self, job: LiveJob, until: float) -> None:
        """Have a blocked job wait until an instant (s), beside what else it waits for."""
        self._missing[job] = self._missing.get(job, 0) + 1
        self._think(job, until)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that is blocked."""
        for (name, what), waiting in self.waiting.items():
            known = "which has not" if name in self.known else "which was never submitted"
            for job, _ in waiting:
                if job.state == "blocked":
                    yield f"job {job.id} waits since {job.submit:g} for the {what} of job {name}, {known}"
