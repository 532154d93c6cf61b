"""Outcomes of a what-if: the simulated futures of each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import inf, isfinite, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Fields, Shown, counted, figures
from simmodel.foundation.errors import ByName, InputError, UnknownKey, unknown
from simmodel.metrics.statistics import Interval, mean_interval
from simmodel.scheduling.objectives import MEASURES, measure
from simmodel.scheduling.protocol import Decision, Policy, Start, View
from simmodel.scheduling.registry import label
from simmodel.snapshots.jobs import rows_of
from simmodel.systems.system import Live
from simmodel.work.job import Job
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import At
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.system import System

__all__ = [
    "Action",
    "Branch",
    "CancelJob",
    "Following",
    "Outcome",
    "PoliciesBelow",
    "Recorded",
    "Sample",
    "StartJob",
    "Starting",
    "SubmitJob",
    "follow",
    "sample_of",
]

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


class Starting(NamedTuple):
    """The start of a job, by id, at a place, by name, at an instant (s)."""

    job: int | str
    place: str
    at: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Sample(Shown):
    """One simulated future.

    Attributes
    ----------
    jobs
        jobs that waited or arrived: ``job, submit, start, end, processors, requested, status`` and ``waiting``, whether
        it waited at the snapshot; times in s, nan if not reached by the end of the simulation
    starts
        the starts, in order
    measures
        measures of these jobs (:data:`~simmodel.scheduling.objectives.MEASURES`); utilisation covers all running jobs.
        A job that has not started by the horizon counts as if it started then; without a horizon it does not count
    unstarted
        number of jobs that have not started by the end
    ended
        the last simulated instant, s
    seed
        seed of the sample
    result
        the complete result, if ``what_if`` keeps results
    """

    jobs: Table
    starts: tuple[Starting, ...]
    measures: dict[str, float]
    unstarted: int
    ended: float
    seed: int
    now: tuple[Starting, ...]
    """The starts at the instant of the snapshot."""
    result: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether the same jobs have the same times; results and seeds are not compared."""
        if not isinstance(other, Sample):
            return NotImplemented
        return (
            self.starts == other.starts
            and self.ended == other.ended
            and self.jobs.names == other.jobs.names
            and all(_same(self.jobs[name], other.jobs[name]) for name in self.jobs.names)
        )

    __hash__ = None  # type: ignore[assignment]

    def _cells(self) -> Cells:
        rows = [[name, figures(value, 6)] for name, value in self.measures.items()]
        return [["measure", "value"], *rows, ["unstarted", str(self.unstarted)]]

    def __repr__(self) -> str:
        return f"<Sample: {counted(len(self.jobs), 'job')}, {len(self.now)} start now, ended at {self.ended:g} s>"


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    if one.dtype.kind == "f":
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(np.array_equal(one, other))


@attrs.frozen(kw_only=True, repr=False)
class Outcome(Shown):
    """The outcome of one policy or branch.

    Attributes
    ----------
    name, branch
        its label, and the branch that was tried
    status
        ``"finished"``, ``"unfinished"`` by the deadline, or ``"failed"``
    reason
        why it is not finished
    samples
        the futures in order; ``None`` for one that is not finished
    scores
        one score per counted sample, by the objective, relative to the other policies on that sample; lower is better
    counted
        the indices of the samples that count: those that all compared policies have
    seconds
        wall-clock time (s) of the simulations
    """

    name: str
    branch: Branch
    status: Literal["finished", "unfinished", "failed"]
    reason: str = ""
    samples: tuple[Sample | None, ...] = ()
    scores: tuple[float, ...] = ()
    counted: tuple[int, ...] = ()
    seconds: float = attrs.field(default=0.0, eq=False)

    @property
    def first(self) -> Sample | None:
        """The first counted future, else the first finished one, or ``None``."""
        order = [*self.counted, *range(len(self.samples))]
        return next((each for each in (self.samples[i] for i in order) if each is not None), None)

    @property
    def starts(self) -> tuple[Starting, ...]:
        """The starts of its first future, in order."""
        return () if self.first is None else self.first.starts

    @property
    def now(self) -> tuple[Starting, ...]:
        """The starts at the instant of the snapshot: the decisions of the policy."""
        return () if self.first is None else self.first.now

    @property
    def score(self) -> float:
        """The mean of its scores; nan if it has none."""
        return float(np.mean(self.scores)) if self.scores else nan

    @property
    def unstarted(self) -> float:
        """The mean number of jobs that have not started by the end."""
        found = self.values("unstarted")
        return float(found.mean()) if len(found) else nan

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the counted samples."""
        if not self.counted:
            return ByName("measure", dict.fromkeys(MEASURES, nan))
        return ByName("measure", {name: float(self.values(name).mean()) for name in MEASURES})

    def values(self, name: str = "score") -> Any:
        """Return a measure, ``unstarted`` or ``score`` of each counted sample, an array of shape (samples,)."""
        if name == "score":
            return np.array(self.scores, dtype=np.float64)
        counted = [sample for sample in (self.samples[i] for i in self.counted) if sample is not None]
        if name == "unstarted":
            return np.array([sample.unstarted for sample in counted], dtype=np.float64)
        if name not in MEASURES:
            raise UnknownKey(unknown("measure", name, ["score", "unstarted", *MEASURES]).message)
        return np.array([sample.measures[name] for sample in counted], dtype=np.float64)

    def interval(self, name: str = "score", level: float = 0.95) -> Interval:
        """Return the mean of a measure over the counted samples with its confidence interval.

        Raises
        ------
        ValueError
            if fewer than two samples count
        """
        return mean_interval(self.values(name), level)

    def _cells(self) -> Cells:
        if not self.counted:
            return [["status", self.status], ["reason", self.reason]]
        rows = [[name, figures(value, 6)] for name, value in self.measures.items()]
        return [["measure", "value"], ["score", figures(self.score, 6)], *rows, ["unstarted", f"{self.unstarted:g}"]]

    def __repr__(self) -> str:
        return f"<Outcome {self.name}: {self.status}, {len(self.now)} start now>"


# ---------------------------------------------------------------------- samples


Name = int | str
_COLUMNS = ("submit", "start", "end", "processors", "requested", "status")
_NEVER = ("rejected", "unsubmitted", "cancelled", "withdrawn")


class Recorded(Protocol):
    """The common interface of results of jobs and of tasks."""

    def outcomes(self) -> Table:
        """Return one row per job or task."""
        ...

    def executions(self) -> Table:
        """Return one row per execution."""
        ...

    def used(self, begin: float, end: float) -> float:
        """Return the processor seconds held by work."""
        ...

    def room(self, begin: float, end: float) -> float:
        """Return the processor seconds available."""
        ...


def sample_of(
    snapshot: Snapshot,
    result: Recorded,
    *,
    until: float = inf,
    seed: int = 0,
    came: Mapping[Name, float] = MappingProxyType({}),
    keep: bool,
) -> Sample:
    """Return the sample of a simulated future of a snapshot.

    Parameters
    ----------
    snapshot, result
        the start of the future, and its result
    until
        the instant (s) at which the simulation was stopped
    seed
        seed of the sample
    came
        run times (s) of jobs that arrived since the snapshot, by id
    keep
        whether to keep the complete result

    >>> from simmodel import Job, simulate, start
    >>> jobs = [Job(processors=3, run=10), Job(id="b", processors=2, run=5)]
    >>> snapshot = start(4, jobs, "fcfs").run(until=1).snapshot()
    >>> sample = sample_of(snapshot, simulate(snapshot), keep=False)
    >>> sample.starts, sample.jobs["waiting"].tolist(), sample.ended
    ((Starting(job='b', place='batch', at=10.0),), [True], 15.0)
    """
    now, before, ids = float(snapshot.now), snapshot.begun, snapshot.ids
    work = result.outcomes()
    given = [*ids, *came]
    names = _as_given(work["work"], given)
    begun = np.fromiter(map({name for name, _ in before}.__contains__, names), dtype=bool, count=len(names))
    waiting = np.fromiter(map(set(ids).__contains__, names), dtype=bool, count=len(names))
    inside = ~(begun & (work["start"] <= now))
    inside &= ~np.isin(work["status"], _NEVER)
    inside &= ~(work["submit"] > until)
    column = np.array(names, dtype=object if str in set(map(type, names)) else None)
    own = Table({"job": column, **{name: work[name] for name in _COLUMNS}, "waiting": waiting}).where(inside)
    since = work["since"][inside]
    if np.isnan(own["requested"]).any():  # jobs without a requested time
        planned = {**snapshot.seconds, **came}
        known = [planned.get(name, nan) for name, kept in zip(names, inside.tolist(), strict=True) if kept]
        own = own.with_columns(requested=np.where(np.isnan(own["requested"]), known, own["requested"]))
    started = np.isfinite(own["start"])
    wait = np.where(started, work["wait"][inside], (until if until < inf else nan) - since)
    run = np.where(np.isnan(work["run"][inside]), own["requested"], work["run"][inside])
    counts = (started | (until < inf)) & np.isfinite(since)
    ended = until if until < inf else float(np.nanmax(np.append(work["end"], now)))
    room = result.room(now, ended) if ended > now else 0.0
    measures = measure(
        np.zeros(counts.sum()),
        wait[counts],
        run[counts],
        stopped=np.nan_to_num(work["delay"] - work["wait"])[inside][counts],
        busy=result.used(now, ended) / room if room else nan,
    )
    starts = _starts(result, now, given)
    at_once = tuple(takewhile(lambda each: each.at == now, starts))
    begun_now = tuple(each for each in at_once if (each.job, each.at) not in before)
    return Sample(
        jobs=own,
        starts=begun_now + starts[len(at_once) :],
        now=begun_now,
        measures=measures,
        unstarted=int((~started).sum()),
        ended=ended,
        seed=seed,
        result=result if keep else None,
    )


def _as_given(column: NDArray[np.generic], given: Sequence[Name]) -> list[Name]:
    """Return the names in a column in their original type: numbers or strings."""
    if column.dtype.kind in "iu":
        return list(column.tolist())
    names = {str(name): name for name in given}
    return [names[str(name)] for name in column.tolist()]


def _starts(result: Recorded, now: float, given: Sequence[Name]) -> tuple[Starting, ...]:
    """Return the starts from an instant (s) on, in order."""
    runs = result.executions()
    starts = runs["start"]
    rows = np.flatnonzero(starts >= now)
    rows = rows[np.argsort(starts[rows], kind="stable")]
    columns = (_as_given(runs["work"][rows], given), runs["place"][rows].tolist(), starts[rows].tolist())
    return rows_of(Starting, columns)
