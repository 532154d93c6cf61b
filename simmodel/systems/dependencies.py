"""Jobs that wait for other jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.work.job import OVER, LiveJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from simmodel.environment import Environment, Occurrence
    from simmodel.work.job import Dependency

__all__ = ["Dependencies", "Owner"]


class Owner(Protocol):
    """A system whose jobs may wait for each other."""

    env: Environment

    def cancel(self, work: Any, /) -> None:
        """Withdraw a job that waits."""
        ...

    def plan(self, at: float, call: Callable[[], object], what: tuple[Any, ...] | None = None) -> Occurrence:
        """Call at an instant (s), with the ends of that instant; the occurrence can be withdrawn."""
        ...

    def eligible(self, job: Any) -> None:
        """Take a job into the queue: all that it had to come after has come."""
        ...


class Dependencies:
    """Knows who waits for whose start, end or success, and lets jobs go when all of it has come.

    A job whose predecessor did not complete, where it asked for success, is cancelled.

    Attributes
    ----------
    owner, env
        the cluster or broker that the jobs were submitted to, and its environment
    known, absent
        submitted jobs by id; ids that will never come: of jobs that were rejected
    waiting
        (job, which of its dependencies) by (the other's id, ``"start"`` or ``"end"``)
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.env = owner.env
        self.known: dict[Any, LiveJob] = {}
        self.waiting: dict[tuple[Any, str], list[tuple[LiveJob, Dependency]]] = {}
        self.blocked = False  # whether any job has ever waited for another
        self.absent: set[Any] = set()

    def know(self, job: LiveJob) -> None:
        """Remember a submitted job, so that others can name it."""
        self.known[job.id] = job

    def rejected(self, name: Any) -> None:
        """Take a job that never runs for one that ended without success."""
        self.absent.add(name)

    def block(self, job: LiveJob) -> None:
        """Have the job wait for those it names, and join the queue when all of them have come: at once, perhaps."""
        assert job.spec is not None
        job.state = "blocked"
        self.blocked = True
        job._waits_for = len(job.spec.dependencies)
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
        owner = self.owner
        if not as_hoped:
            owner.cancel(job)
        elif dependency.think_time > 0:
            self.think(job, self.env.now + dependency.think_time)
        else:
            self._one_less(job)

    def think(self, job: LiveJob, until: float) -> None:
        """One of those that the job waits for has come; it may go on after that instant (s)."""
        self.owner.plan(until, lambda: self._one_less(job), (self, "eligible", job))

    def think_again(self, job: LiveJob, until: float) -> None:
        """Have a job wait for one thing more, which comes at an instant (s)."""
        job._waits_for += 1
        self.think(job, until)

    def _one_less(self, job: LiveJob) -> None:
        job._waits_for -= 1
        if not job._waits_for:
            self.owner.eligible(job)

    def restore(
        self,
        jobs: Iterable[LiveJob],
        waits: Iterable[tuple[Any, str, LiveJob, int]],
        over: Iterable[tuple[Any, str]],
    ) -> None:
        """Know these jobs, who waits for whom, and how those ended that are over, as a snapshot has it."""
        for name, state in over:
            gone = self.known[name] = LiveJob(name, -1, 0.0, 1, 0.0, 0.0, 0.0)
            gone.state = state
        for job in sorted(jobs, key=lambda job: (job.submit, job.seq)):
            self.known[job.id] = job
            if job.state == "blocked":
                self.blocked = True
                job._waits_for = 0
        for _, what, job, which in waits:
            assert job.spec is not None
            job._waits_for += 1
            self._wait(job, job.spec.dependencies[which], what)

    def blocked_jobs(self) -> Iterator[LiveJob]:
        """Yield the jobs that wait for others, in the order in which they became known."""
        if self.blocked:
            yield from (job for job in self.known.values() if job.state == "blocked")

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that is blocked."""
        for (name, what), waiting in self.waiting.items():
            known = "which has not" if name in self.known else "which was never submitted"
            for job, _ in waiting:
                if job.state == "blocked":
                    yield f"job {job.id} waits since {job.submit:g} for the {what} of job {name}, {known}"
