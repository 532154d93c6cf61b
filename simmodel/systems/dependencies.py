"""Dependencies between jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from simmodel.work.job import OVER, LiveJob

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment, ToCome
    from simmodel.snapshots.jobs import Wait, WorkState
    from simmodel.systems.system import Timing
    from simmodel.work.job import Dependency

__all__ = ["Dependencies", "Owner"]

Work = TypeVar("Work", bound=LiveJob, contravariant=True)
"""The live jobs of an owner."""
_SUBMISSION = attrgetter("submit", "seq")
_ORDER = itemgetter(0, 1, 2)


class Owner(Protocol[Work]):
    """A system whose jobs may depend on each other."""

    env: Environment

    def cancel(self, work: Work, /) -> None:
        """Cancel a blocked job."""
        ...

    def eligible(self, job: Work, /) -> None:
        """Put a job into the queue: its dependencies are met."""
        ...

    def number_of(self, work: Work, /) -> int:
        """Return the number of a job in snapshots."""
        ...

    @property
    def timing(self) -> Timing:
        """The priorities of its events within an instant."""
        ...


class Dependencies:
    """Holds jobs back until the jobs that they depend on have started, ended or succeeded.

    A job that requires the success of another is cancelled if that one does not complete.

    Attributes
    ----------
    owner, env
        the system that the jobs were submitted to, and its environment
    known
        the submitted jobs that others can depend on, by id
    absent
        ids of rejected jobs
    forgets
        whether it forgets jobs that have ended: no later job depends on another
    waiting
        by (id, ``"start"`` or ``"end"``): the jobs that wait for this event, each with its dependency
    """

    def __init__(self, owner: Owner[Work], known: dict[Any, LiveJob] | None = None) -> None:
        self.owner: Owner[Any] = owner
        self.env = owner.env
        self.known: dict[Any, LiveJob] = {} if known is None else known
        self.absent: set[Any] = set()
        self.forgets = False
        self.waiting: dict[tuple[Any, str], list[tuple[LiveJob, Dependency]]] = {}
        self._missing: dict[LiveJob, int] = {}  # number of unmet dependencies of each blocked job
        self._thinking: dict[Call, LiveJob] = {}

    def know(self, job: LiveJob) -> None:
        """Register a submitted job, so that others can depend on it."""
        self.known[job.id] = job

    def unblock(self, job: LiveJob) -> None:
        self._missing.pop(job, None)

    def hold(self, job: LiveJob) -> None:
        """Block a job until it is released."""
        job.state = "blocked"
        self.know(job)
        self._missing[job] = 0

    def held(self) -> list[LiveJob]:
        """Return the jobs that are blocked until they are released."""
        return [job for job, missing in self._missing.items() if not missing and job.state == "blocked"]

    def release(self, job: LiveJob) -> bool:
        """No longer block a job that was held until it is released; return whether it was."""
        if self._missing.get(job) != 0:
            return False
        self.unblock(job)
        return True

    def rejected(self, name: int | str) -> None:
        """Treat a rejected job as one that ended without success."""
        if not self.forgets:
            self.absent.add(name)

    def blocked_jobs(self) -> list[LiveJob]:
        """Return the blocked jobs, in order of submission."""
        return [job for job in self.known.values() if job.state == "blocked"] if self._missing else []

    def block(self, job: LiveJob) -> None:
        """Block a job until its dependencies are met, which may be at once."""
        assert job.spec is not None
        job.state = "blocked"
        self._missing[job] = len(job.spec.dependencies)
        for dependency in job.spec.dependencies:
            before = self.known.get(dependency.job)
            if before is None and dependency.job not in self.absent:
                self._wait(job, dependency, "start" if dependency.after == "start" else "end")
            elif before is None:
                self._come(job, dependency, "rejected")
            elif before.state in OVER or (dependency.after == "start" and before.started is not None):
                self._come(job, dependency, before.state)
            else:
                self._wait(job, dependency, "start" if dependency.after == "start" else "end")

    def _wait(self, job: LiveJob, dependency: Dependency, what: str) -> None:
        before = self.known.get(dependency.job)
        if before is not None:
            before.watched = True
        self.waiting.setdefault((dependency.job, what), []).append((job, dependency))

    def happened(self, job: LiveJob, what: str) -> None:
        """Resolve the dependencies on the start or the end of a job."""
        waiting = self.waiting
        if what == "end":
            self._missing.pop(job, None)
            if self.forgets:
                self.known.pop(job.id, None)
        if not waiting:
            return
        for dependent, dependency in waiting.pop((job.id, what), ()):
            self._come(dependent, dependency, job.state)
        if what == "end":  # a job that ends without a start also releases the jobs that wait for its start
            for dependent, dependency in waiting.pop((job.id, "start"), ()):
                self._come(dependent, dependency, job.state)

    def _come(self, job: LiveJob, dependency: Dependency, ended: str) -> None:
        """Note that a job that another waits for has come to a state, which meets a dependency or never will."""
        if job.state != "blocked":
            return
        if not dependency.met_by(ended == "completed"):
            job.remember().why = f"needs the {dependency.after} of job {dependency.job}, which is {ended}"
            self.owner.cancel(job)
        elif dependency.think_time > 0:
            self._think(job, self.env.now + dependency.think_time)
        else:
            self._one_less(job)

    def _think(self, job: LiveJob, until: float) -> None:
        call = self.env.call_at(until, lambda: self._one_less(self._thinking.pop(call)), self.owner.timing.ends)
        self._thinking[call] = job

    def _one_less(self, job: LiveJob) -> None:
        missing = self._missing.get(job, 0) - 1
        if missing > 0:
            self._missing[job] = missing
            return
        self._missing.pop(job, None)
        self.owner.eligible(job)

    # ------------------------------------------------------------------ snapshots

    def to_come(self) -> list[ToCome]:
        """List the pending ends of think times, each with the number of its job."""
        return [call.to_come("eligible", job.seq) for call, job in self._thinking.items() if job.state == "blocked"]

    def waits(self) -> Iterator[tuple[LiveJob, int, Any, str]]:
        """Yield the unmet dependencies of blocked jobs: (job, index of the dependency, id of the other job, event)."""
        for (other, what), waiting in self.waiting.items():
            for job, dependency in waiting:
                if job.state == "blocked" and job.spec is not None:
                    yield job, job.spec.dependencies.index(dependency), other, what

    def state(
        self, work_of: Callable[[LiveJob], WorkState], arrivals: Iterable[WorkState]
    ) -> tuple[tuple[WorkState, ...], tuple[Wait, ...], tuple[tuple[int | str, str], ...]]:
        """Return the blocked jobs, their unmet dependencies, and the ended jobs on which jobs to come depend."""
        from simmodel.snapshots.jobs import Wait

        blocked = tuple(map(work_of, self.blocked_jobs()))
        found = [(job.submit, job.seq, which, other, what) for job, which, other, what in self.waits()]
        waits = [Wait(other, what, number, which) for _, number, which, other, what in sorted(found, key=_ORDER)]
        needed = [each.job for work in arrivals if work.spec is not None for each in work.spec.dependencies]
        return blocked, tuple(waits if blocked else ()), tuple(self.ended(needed))

    def ended(self, names: Iterable[int | str]) -> Iterator[tuple[int | str, str]]:
        """Yield the id and the final state of each of these jobs that has ended or was rejected, once."""
        for name in dict.fromkeys(names):
            job = self.known.get(name)
            if job is not None and job.state in OVER:
                yield name, job.state
            elif job is None and name in self.absent:
                yield name, "rejected"

    def restore(
        self,
        jobs: Iterable[LiveJob],
        blocked: Iterable[LiveJob],
        waits: Sequence[Wait],
        over: Iterable[tuple[int | str, str]],
    ) -> None:
        """Restore jobs other than running ones, the blocked ones among them, unmet dependencies and ended jobs."""
        for name, state in over:
            gone = self.known[name] = LiveJob(name, -1, 0.0, 1, 0.0, 0.0, 0.0)
            gone.state = state
        for job in blocked:
            job.state = "blocked"
        in_order = sorted(jobs, key=_SUBMISSION)
        self.known |= {job.id: job for job in in_order}
        self._missing |= {job: 0 for job in in_order if job.state == "blocked"}
        numbered = {self.owner.number_of(job): job for job in in_order} if waits else {}
        for _, what, number, which in waits:
            job = numbered[number]
            assert job.spec is not None
            self._missing[job] += 1
            self._wait(job, job.spec.dependencies[which], what)

    def think_again(self, job: LiveJob, until: float) -> None:
        """Restore a think time: a blocked job also waits until an instant (s)."""
        self._missing[job] = self._missing.get(job, 0) + 1
        self._think(job, until)

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence per unmet dependency of a blocked job."""
        for (name, what), waiting in self.waiting.items():
            known = f"which is {self.known[name].state}" if name in self.known else "which was never submitted"
            for job, _ in waiting:
                if job.state == "blocked":
                    yield f"job {job.id} has waited since {job.submit:g} s for the {what} of job {name}, {known}"
        for job in self.held():
            yield f"job {job.id}, submitted at {job.submit:g} s, is held by the policy"
