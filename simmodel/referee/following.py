"""Follows a schedule that was made elsewhere, and asks a policy at each of its states for its own starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.foundation.errors import InputError
from simmodel.scheduling.protocol import Policy, Reserve, Start, View, WakeAt
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.systems.cluster.system import Cluster
    from simmodel.work.job import LiveJob

__all__ = ["Departure", "Follower", "TakeBack"]

_LOOKS_AHEAD = (Reserve, WakeAt)  # left out from the first departure on: promises that are not kept wake for nothing
_AFTER_SCHEDULERS = 9  # rank at the end of an instant: after the schedulers of all systems


class TakeBack(NamedTuple):
    """A decision: a job that was started at this instant waits again, as if it had not been."""

    work: LiveJob


class Drop(NamedTuple):
    """A decision: a waiting job leaves, since it cannot start when the schedule says."""

    work: LiveJob


class Departure(NamedTuple):
    """A start of the schedule that is not the policy's, at the instant (s) at which they part.

    ``kind``: ``"late"``: the policy starts the job now, the schedule later; ``"early"``: the schedule starts it now,
    the policy does not; ``"impossible"``: the schedule starts it now, but its processors are not free. ``head``,
    ``free``, ``instead``: the first job in the order of arrival that waits, the free processors, and the jobs that the
    policy starts at this instant.
    """

    at: float
    kind: str
    job: int | str
    head: int | str | None
    free: int
    instead: tuple[int | str, ...]


class Follower(Policy):
    """Starts the jobs of a cluster when a schedule says, and notes the jobs that a policy would have started instead.

    At each decision the policy is asked on the state that the schedule led to, so that one departure does not bring
    others. Its starts that are not in the schedule are taken back; further starts of the schedule are made at the end
    of the instant. A job that cannot start then, since its processors are not free, leaves.

    Parameters
    ----------
    policy
        the policy to ask
    starts
        the start (s) of each job by id; a job without one never starts
    places
        the partition of each job by id, if known: where it starts if the policy does not start it
    polled
        whether to ask the policy at each start, too; else, as in a simulation, only when a job comes or ends, and when
        it wanted to be asked
    stretches
        since when and until when (s) to ask the policy, in order; default: always. The jobs that it wants at the first
        decision of a stretch it may have wanted before: they count from their submission

    Attributes
    ----------
    wanted
        by id, the first instant (s) at which the policy would have started a job
    departures
        where policy and schedule part, in order

    Raises
    ------
    InputError
        the policy preempts jobs

    >>> from simmodel import Job, start
    >>> jobs = [Job(processors=4, run=10), Job(submit=1, processors=4, run=5), Job(submit=2, processors=1, run=99)]
    >>> sim = start(5, jobs, Follower("easy", {1: 0.0, 2: 101.0, 3: 2.0})).run()
    >>> sim.system.scheduler.policy.departures
    [Departure(at=10.0, kind='late', job=2, head=2, free=4, instead=(2,))]
    """

    decides = "jobs"

    def __init__(
        self,
        policy: PolicyLike,
        starts: Mapping[int | str, float],
        places: Mapping[int | str, str] | None = None,
        *,
        polled: bool = False,
        stretches: Sequence[tuple[float, float]] | None = None,
    ) -> None:
        self.policy = policy_of(policy)
        if self.policy.preempts:
            raise InputError(f"must not preempt jobs, got {self.policy.name}", place="policy")
        self.starts = starts
        self.places = places or {}
        self.polled = polled
        self.stretches = stretches
        self.name = self.policy.name
        self.tries_every_submission = self.policy.tries_every_submission
        self.wanted: dict[int | str, float] = {}
        self.departures: list[Departure] = []
        self._due: dict[int | str, None] = {}  # to be started by now
        self._queued: dict[int | str, LiveJob] = {}  # those that have come into the queue and are still to be started
        self._ahead = sorted(((at, str(job), job) for job, at in starts.items() if at < inf), reverse=True)
        self._asked_at = nan
        self._wakes: set[float] = set()  # the instants (s) of those that are left out: the policy is asked then
        self._forcing = False
        self._settled: tuple[float, ...] | None = None  # the state in which all that the policy starts is taken back
        self._proposed: list[LiveJob] = []
        self._to_come = [(-inf, inf)] if stretches is None else list(stretches)[::-1]
        self._away = stretches is not None  # not asked at the last decision

    def notes(self, system: Cluster, /) -> tuple[str, ...]:
        return self.policy.notes(system)

    def state(self) -> Any:
        return self.policy.state()

    def attach(self, system: Cluster) -> None:
        """Attach the policy, and plan to look at the cluster at each start of the schedule."""
        super().attach(system)
        self._system = system
        system.scheduler.handlers[TakeBack] = self._take_back
        system.scheduler.handlers[Drop] = self._drop
        self._at_end = system.env.at_instant_end(self._force, _AFTER_SCHEDULERS)
        self._plan()

    def _plan(self) -> None:
        if self._ahead:
            env = self._system.env
            env.call_at(max(env.now, self._ahead[-1][0]), self._begin)

    def _begin(self) -> None:
        self._look()
        self._at_end()
        self._plan()

    def _look(self) -> None:
        """Note which jobs are due at this instant."""
        now, ahead = self._system.env.now, self._ahead
        while ahead and ahead[-1][0] <= now:
            self._due[ahead.pop()[2]] = None

    def decide(self, view: View, /) -> Iterator[Any]:
        """Yield the policy's decisions, then take back those that the schedule does not have."""
        for job in view.waiting.new:
            self._queued[job.id] = job
        if self._forcing:
            yield from self._forced(view)
            return
        self._look()
        if self._settled is not None and self._settled == _state(view):
            return
        now = view.now
        if any(self.starts[name] < now for name in self._due):
            yield from self._dropped(view, [job for job in self._waiting_due() if self.starts[job.id] < now])
        if self._asks(now):
            yield from self._asked(view)
        if self._due:
            self._at_end()

    def _asks(self, now: float) -> bool:
        """Whether the policy is asked at an instant."""
        to_come = self._to_come
        while to_come and to_come[-1][1] < now:
            to_come.pop()
        if to_come and to_come[-1][0] <= now:
            return True
        self._away = True
        return False

    def _asked(self, view: View) -> Iterator[Any]:
        """Yield the policy's decisions, then take back those that the schedule does not have."""
        now = self._asked_at = view.now
        comes_back, self._away = self._away, False
        if comes_back:
            self.policy.forget()
        proposed: list[LiveJob] = []
        for decision in self.policy.decide(view) or ():
            if self.departures and isinstance(decision, _LOOKS_AHEAD):
                self._wakes.add(decision.at)
                continue
            if type(decision) is Start:
                proposed.append(_entries(view, decision.work)[0])
            yield decision
        due, wanted = self._due, self.wanted
        if any(job.id not in due for job in proposed):
            self.policy.forget()  # what it planned is not what happens
        vain = not any(job.id in due for job in proposed)
        for job in proposed:
            known = job.id in wanted
            if not known:
                wanted[job.id] = float(job.submit) if comes_back and job.id not in due else now
            if job.id in due:
                self._leaves(job.id)
                continue
            yield TakeBack(job)
            if not known:
                self._departs("late", job.id, view, proposed)
        self._proposed = proposed
        # The start of a job that waits for several places wakes the scheduler, which would go on for ever.
        self._settled = _state(view) if vain and any(job in view.choices for job in proposed) else None

    def _waiting_due(self) -> list[LiveJob]:
        """Return the jobs in the queue that are due, in the order of arrival, without a look at the others."""
        found = [job for name in self._due if (job := self._queued.get(name)) is not None and job.state == "waiting"]
        return sorted(found, key=lambda job: (job.submit, job.seq))

    def _leaves(self, job: int | str) -> None:
        """Note that a due job leaves the queue for good."""
        del self._due[job]
        self._queued.pop(job, None)  # one that came while the policy decided is not in it yet

    def _departs(self, kind: str, job: int | str, view: View, proposed: list[LiveJob]) -> None:
        head = next(iter(view.waiting), None)
        instead = tuple(each.id for each in proposed)
        free = sum(place.free for place in view.places)
        self.departures.append(Departure(view.now, kind, job, None if head is None else head.id, free, instead))

    def _force(self) -> None:
        """Start the jobs that the schedule starts at this instant and the policy did not.

        The policy was asked before if anything has happened at this instant.
        """
        if not self._due:
            return
        scheduler, now = self._system.scheduler, self._system.env.now
        if self._asked_at != now and (self.polled or now in self._wakes):
            scheduler.decide()
        if self._asked_at != now:
            self._proposed = []
        self._forcing = True
        try:
            scheduler.decide()
        finally:
            self._forcing = False

    def _forced(self, view: View) -> Iterator[Any]:
        self.policy.forget()
        for job in self._waiting_due():
            wanted = self.places.get(job.id)
            entries = sorted(_entries(view, job), key=lambda entry: entry.place.name != wanted)
            place = next((entry.place for entry in entries if entry.place.fits(entry)), None)
            if place is None:
                yield from self._dropped(view, [job])
                continue
            if job.id not in self.wanted:
                self._departs("early", job.id, view, self._proposed)
            self._leaves(job.id)
            yield Start(job, place)

    def _dropped(self, view: View, jobs: list[LiveJob]) -> Iterator[Any]:
        for job in jobs:
            self._departs("impossible", job.id, view, self._proposed)
            self._leaves(job.id)
            yield Drop(job)

    def _drop(self, decision: Drop) -> None:
        self._system.cancel(decision.work)

    def _take_back(self, decision: TakeBack) -> None:
        self._system.execution.take_back(decision.work)


def _state(view: View) -> tuple[float, ...]:
    """Return numbers that change whenever a job comes, starts, ends or leaves."""
    return view.now, len(view.waiting), *(place.version for place in view.places)


def _entries(view: View, job: LiveJob) -> Sequence[LiveJob]:
    """Return the entries of a job in the queues of several places, the first of which is the job itself."""
    found: Sequence[LiveJob] = view.choices.get(job, (job,)) if view.choices else (job,)
    return found
