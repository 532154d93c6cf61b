"""Branches of a what-if: a policy, the policies that follow it, and manual actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Decision, Start, View
from simmodel.scheduling.registry import label
from simmodel.systems.system import Live
from simmodel.work.job import Job

if TYPE_CHECKING:
    from simmodel.scheduling.policy_base import At
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.system import System

__all__ = ["Action", "Branch", "CancelJob", "Following", "PoliciesBelow", "StartJob", "SubmitJob", "follow"]

PoliciesBelow: TypeAlias = "PolicyLike | Mapping[str, PolicyLike]"
"""Policies of the places below: one for all, or by path (``"a"``, ``"inner.a"``)."""


class StartJob(NamedTuple):
    """Start a job whatever the policy decides: at a place, by name, and at an instant (s).

    Default: at the place where it waits, and at once. A job that waits for another partition moves to this one.
    """

    job: int | str
    place: str | None = None
    at: float | None = None


class CancelJob(NamedTuple):
    """Withdraw a waiting job, or stop a running one, at an instant (s); default: at once."""

    job: int | str
    at: float | None = None


class SubmitJob(NamedTuple):
    """Submit a job at an instant (s); default: at once. The job runs for its ``run`` time."""

    job: Job
    at: float | None = None


Action: TypeAlias = StartJob | CancelJob | SubmitJob


def _follow(given: Iterable[tuple[float, PolicyLike]]) -> tuple[tuple[float, PolicyLike], ...]:
    return tuple(sorted(((float(at), policy) for at, policy in given), key=lambda pair: pair[0]))


def _actions(given: Iterable[Action]) -> tuple[Action, ...]:
    actions = tuple(given)
    for action in actions:
        if not isinstance(action, (StartJob, CancelJob, SubmitJob)):
            raise InputError(f"actions: must be StartJob, CancelJob or SubmitJob values, got {action!r}")
    return actions


@attrs.frozen(repr=False)
class Branch(Fields):
    """One future to try: a policy, the policies that follow it, and manual actions.

    Its methods return a new branch, so a tree of branches is built step by step.

    Parameters
    ----------
    policy
        a name, a policy or a function of a view; ``None``: the snapshot's own, with its state
    then
        pairs of an instant (s, on the clock of the snapshot) and the policy that decides from then on
    actions
        :class:`StartJob`, :class:`CancelJob` and :class:`SubmitJob` values
    policies
        policies of places that are systems, instead of their own: one for all, or by path
    data
        the data policy of a grid, instead of its own

    >>> now = Branch("easy").start(7)
    >>> later = now.switch(3600, "sjf+easy")
    >>> print(now); print(later)
    easy, start job 7
    easy, sjf+easy from 3600 s, start job 7
    """

    policy: PolicyLike | None = None
    then: tuple[tuple[float, PolicyLike], ...] = attrs.field(default=(), converter=_follow)
    actions: tuple[Action, ...] = attrs.field(default=(), converter=_actions)
    policies: PoliciesBelow | None = None
    data: PolicyLike | None = None

    def switch(self, at: float, policy: PolicyLike) -> Branch:
        """Return this branch with a switch to another policy at an instant (s)."""
        return attrs.evolve(self, then=(*self.then, (at, policy)))

    def start(self, job: int | str, place: str | None = None, at: float | None = None) -> Branch:
        """Return this branch with a manual start of a job; see :class:`StartJob`."""
        return attrs.evolve(self, actions=(*self.actions, StartJob(job, place, at)))

    def cancel(self, job: int | str, at: float | None = None) -> Branch:
        """Return this branch with the cancellation of a job; see :class:`CancelJob`."""
        return attrs.evolve(self, actions=(*self.actions, CancelJob(job, at)))

    def submit(self, job: Job, at: float | None = None) -> Branch:
        """Return this branch with one more job; see :class:`SubmitJob`."""
        return attrs.evolve(self, actions=(*self.actions, SubmitJob(job, at)))

    def fork(self, at: float, policies: Iterable[PolicyLike]) -> dict[str, Branch]:
        """Return one branch for each policy to switch to at an instant (s), by label.

        >>> list(Branch("easy").fork(60, ["fcfs", "sjf"]))
        ['easy, fcfs from 60 s', 'easy, sjf from 60 s']
        """
        return {str(branch): branch for branch in (self.switch(at, policy) for policy in policies)}

    @property
    def submitted(self) -> tuple[SubmitJob, ...]:
        """The submissions among the actions."""
        return tuple(action for action in self.actions if isinstance(action, SubmitJob))

    def __str__(self) -> str:
        parts = [label(self.policy), *_called_below(self.policies)]
        parts += [] if self.data is None else [f"data {label(self.data)}"]
        parts += [f"{label(policy)} from {at:g} s" for at, policy in self.then]
        for action in self.actions:
            at = "" if action.at is None else f" at {action.at:g} s"
            if isinstance(action, SubmitJob):
                parts.append(f"submit {action.job.id or action.job.name or f'{action.job.processors} processors'}{at}")
            elif isinstance(action, CancelJob):
                parts.append(f"cancel job {action.job}{at}")
            else:
                parts.append(f"start job {action.job}{f' on {action.place}' if action.place else ''}{at}")
        return ", ".join(parts)

    def check(self, now: float) -> None:
        """Raise ``InputError`` if an instant is before ``now`` (s), that of the snapshot."""
        for at in (*(at for at, _ in self.then), *(action.at for action in self.actions if action.at is not None)):
            if not (at >= now and isfinite(at)):
                raise InputError(f"branch '{self}': must be an instant >= {now:g} s, got {at:g}")


def _called_below(policies: PoliciesBelow | None) -> list[str]:
    if policies is None:
        return []
    if isinstance(policies, Mapping):
        return [f"{label(policy)} on {path}" for path, policy in policies.items()]
    return [f"{label(policies)} below"]


def follow(branch: Branch, first: Policy, named: Callable[[PolicyLike], Policy]) -> Policy:
    """Return the policy that carries out a branch, except its submissions, starting with the policy ``first``.

    The policy serves one simulation. ``named`` returns policies in their initial state.
    """
    starts = [action for action in branch.actions if isinstance(action, StartJob)]
    cancels = [action for action in branch.actions if isinstance(action, CancelJob)]
    if not (starts or cancels or branch.then):
        return first
    return Following(first, [(at, named(policy)) for at, policy in branch.then], starts, cancels)


class Following(Policy):
    """A sequence of policies, with manual starts and cancellations."""

    def __init__(
        self, first: Policy, then: list[tuple[float, Policy]], starts: list[StartJob], cancels: list[CancelJob]
    ) -> None:
        self.first = first
        self.then = then
        self.starts = starts
        self.cancels = cancels
        self.stages = [(float("-inf"), first), *then]
        self.name = first.name
        self.plans = first.plans
        self.tries_every_submission = any(each.tries_every_submission for _, each in self.stages)
        self.preempts = any(each.preempts for _, each in self.stages)
        self.system: System[Any] | None = None
        self._to_start = starts
        self._stage = 0

    def destinations(self, home: At | None, places: Sequence[At], /) -> Sequence[At]:
        """Return the destinations that the first policy allows for a home."""
        return self.first.destinations(home, places)

    def attach(self, system: System[Live]) -> None:
        """Attach all policies to the system, and schedule a decision for every switch and action."""
        self.system = system
        for _, policy in self.stages:
            policy.attach(system)
        env = system.env
        for at, _ in self.stages[1:]:
            env.call_at(at, self._wake)
        for start in self.starts:
            env.call_at(env.now if start.at is None else start.at, self._wake)
        for cancel in self.cancels:
            env.call_at(env.now if cancel.at is None else cancel.at, _Withdrawal(system, cancel.job))

    def _wake(self) -> None:
        assert self.system is not None
        self.system.scheduler.wake_anyway()

    def restore(self, values: Any) -> None:
        """Restore the state of the first policy."""
        self.first.restore(values)

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Yield the manual starts that are due, then the decisions of the current policy."""
        now = view.now
        before = self._stage
        while self._stage + 1 < len(self.stages) and self.stages[self._stage + 1][0] <= now:
            self._stage += 1
        policy = self.stages[self._stage][1]
        if self._stage != before:
            policy.forget()
        if any(start.at is None or start.at <= now for start in self._to_start):
            return self._by_hand(view, policy)
        return policy.decide(view) or ()

    def _by_hand(self, view: View, policy: Policy) -> Iterator[Decision]:
        due = [start for start in self._to_start if start.at is None or start.at <= view.now]
        self._to_start = [start for start in self._to_start if start not in due]
        for start in due:
            system = self.system
            assert system is not None
            part, job = find_job(system, start.job)
            if part is not system:
                raise InputError(f"job {start.job} cannot be started: it has been handed to {part.name}")
            place = job.place if start.place is None else _place(view, start.place)
            if place is None:
                raise InputError(f"job {start.job} cannot be started: missing place")
            if job.state != "waiting":
                raise InputError(f"job {start.job} cannot be started at {view.now:g} s: it is {job.state}")
            if not place.queues and place is not job.place:
                system.rebind(job, place)
            if not place.queues and not place.fits(job):
                raise InputError(
                    f"job {start.job} cannot be started on {place.name} at {view.now:g} s: {job.processors} processors "
                    f"requested, {place.free} of {place.capacity} are free"
                )
            yield Start(job, place, "by hand")
        yield from policy.decide(view) or ()


class _Withdrawal:
    """Cancels a job when called."""

    def __init__(self, system: System[Live], job: int | str) -> None:
        self._system = system
        self._job = job

    def __call__(self) -> None:
        system, job = find_job(self._system, self._job)
        system.cancel(job)


def _place(view: View, name: str) -> Any:
    for place in view.places:
        if place.name == name:
            return place
    raise unknown("place", name, [place.name for place in view.places])


def find_job(system: System[Live], name: int | str) -> tuple[System[Any], Any]:
    """Return the live job with an id, after the system that has it.

    Raises
    ------
    InputError
        if it is unknown or has ended
    """
    for part in system.all_below():
        for job in part.present():
            if job.id == name:
                return part, job
    raise InputError(f"job {name} cannot be found at {system.env.now:g} s: not submitted, or ended")
