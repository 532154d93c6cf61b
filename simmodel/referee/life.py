"""Why a job of a simulation waited, from its submission to its start: reasons, promises, and what the policy said."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.errors import InputError, Stalled
from simmodel.futures.whatif import what_if
from simmodel.referee.explanation import Explanation
from simmodel.referee.obstacles import obstacle, waiting_parts, why_waits
from simmodel.referee.telling import span_table, told_of
from simmodel.scheduling.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.protocol import Place
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.systems.cluster.system import Cluster
    from simmodel.systems.system import System
    from simmodel.work.job import LiveJob, Run

__all__ = ["after_instant", "before_decision", "explain_job", "instant_in"]

_FORETOLD = 24  # instants at which the start is foretold, of a policy that promises none


class Promise(NamedTuple):
    """From an instant on (s), the start that a job could expect (s), and why it changed."""

    since: float
    at: float
    cause: str


class _Between(Observer):
    """What happened in a cluster since the last look."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.early: list[tuple[float, int | str]] = []
        self.came: dict[int | str, None] = {}
        self.gone: dict[int | str, None] = {}
        self.changes: list[str] = []

    def job_submitted(self, job: LiveJob) -> None:
        self.came[job.id] = None

    def job_cancelled(self, job: LiveJob) -> None:
        self.gone[job.id] = None

    def job_ended(self, run: Run, _status: str) -> None:
        left = run.expected_end - run.place.env.now
        if left > 0:
            self.early.append((float(left), run.job.id))

    def place_changed(self, place: Place, cause: str) -> None:
        self.changes.append(f"{cause} of {place.name}")

    def cause(self, sooner: bool, job: int | str) -> str:
        """Return why a start is expected sooner, or later, than at the last look; empty: unknown."""
        if sooner and self.early:
            left, name = max(self.early, key=lambda each: each[0])
            return f"job {name} ended {left:.10g} s early"
        if sooner and self.gone:
            return f"job {next(iter(self.gone))} was withdrawn"
        if self.changes:
            return self.changes[-1]
        came = [str(name) for name in self.came if name != job]
        return f"job {came[-1]} came" if came and not sooner else ""


class _Watch(Observer):
    """Notes what a job waits for after each decision, and what it is promised."""

    def __init__(self, job: int | str, happened: _Between) -> None:
        self.job = str(job)
        self.live: LiveJob | None = None
        self.spans: list[tuple[float, float, str]] = []
        self.promises: list[Promise] = []
        self.decisions: list[float] = []
        self._since: tuple[float, str] | None = None
        self._happened = happened

    def job_submitted(self, job: LiveJob) -> None:
        if str(job.id) == self.job:
            self.live = job
            self._happened.forget()

    def job_promised(self, job: LiveJob, _place: Place, at: float) -> None:
        if job is self.live:
            self.promise(float(job.place.env.now), float(at))

    def promise(self, now: float, at: float) -> None:
        """Note the start that the job can expect."""
        before = self.promises[-1].at if self.promises else None
        if at != before:
            cause = "" if before is None else self._happened.cause(at < before, self.job)
            self.promises.append(Promise(now, at, cause))
        self._happened.forget()

    def decided(self, scheduler: Scheduler, _seconds: float, _decisions: int) -> None:
        live = self.live
        if live is not None and not live.attempts and not live.over:
            now = float(scheduler.env.now)
            self.decisions.append(now)
            self._note(now, obstacle(live, scheduler.view.choices.get(live, ()) if scheduler.view.choices else ()))

    def job_started(self, run: Run) -> None:
        if run.job is self.live and self._since is not None:
            now = float(run.place.env.now)
            self._note(now, None)
            if self.promises:
                self.promise(now, now)

    def job_cancelled(self, job: LiveJob) -> None:
        if job is self.live:
            self._note(float(job.place.env.now), None)

    def _note(self, now: float, reason: str | None) -> None:
        if self._since is not None and self._since[1] != reason:
            if now > self._since[0]:
                self.spans.append((self._since[0], now, self._since[1]))
            self._since = None
        if reason is not None and self._since is None:
            self._since = now, reason


def explain_job(
    make: Callable[[], Simulation], job: int | str, at: float | None, policy: PolicyLike | None
) -> Explanation:
    """Explain why a job waits on a cluster at an instant, and what it waited for until it started.

    Parameters
    ----------
    make
        returns the simulation of a cluster, from its beginning on
    job, at
        its id; the instant (s), default: that of its submission
    policy
        that of the simulation, if it was given as an object
    """
    simulation = make()
    system: Cluster = simulation.system  # type: ignore[assignment]
    happened = _Between()
    watch = _Watch(job, happened)
    submits = {str(each.id): float(each.submit) for each in system.snapshot().arrivals}
    when = instant_in(submits, job, at)
    for each in (watch, happened):
        simulation.env.observe(each)
    snapshot = before_decision(simulation, when)
    live = watch.live
    if str(job) not in waiting_parts(snapshot) or (live is not None and live.attempts):
        raise InputError(f"job {job} does not wait at {when:.10g} s: {_fate(live)}", place="at")
    found = why_waits(snapshot, job, policy)
    system.scheduler.external = False
    with suppress(Stalled):  # other jobs never start
        simulation.run()
    if not watch.promises:
        _foretell(make(), watch, policy)
    return attrs.evolve(
        found,
        spans=span_table(watch.spans),
        promises=span_table(watch.promises, Promise._fields),
        told=told_of([each._asdict() for each in system.scheduler.reasons], job),
    )


def instant_in(submits: dict[str, float], job: int | str, at: float | None, called: str = "job") -> float:
    """Return the instant (s) of a question: that of the submission by default; else it must not be before it.

    Raises
    ------
    InputError
        the job is unknown, or the instant is before its submission
    """
    if str(job) not in submits:
        raise InputError(f"must be one of the {len(submits):,} {called}s, got {job!r}", place=called)
    when = submits[str(job)] if at is None else float(at)
    if not submits[str(job)] <= when < inf:
        raise InputError(
            f"must be an instant from {submits[str(job)]:.10g} s (its submission) on, got {at!r}", place="at"
        )
    return when


def _foretell(simulation: Simulation, watch: _Watch, policy: PolicyLike | None) -> None:
    """Foretell the start of a job at some of the decisions of its wait, for a policy that promises none."""
    instants = sorted(set(watch.decisions))
    if len(instants) > _FORETOLD:
        chosen = np.linspace(0, len(instants) - 1, _FORETOLD).round().astype(int)
        instants = [instants[row] for row in chosen.tolist()]
    happened = _Between()
    again = _Watch(watch.job, happened)
    simulation.env.observe(happened)
    for instant in instants:
        expected = _expected(after_instant(simulation, instant), watch.job, policy)
        if expected is not None:
            again.promise(instant, expected)
    started = watch.live.started if watch.live is not None else None
    if started is not None and again.promises:
        simulation.run(until=float(np.nextafter(started, inf)))
        again.promise(float(started), float(started))
    watch.promises = again.promises


def _expected(snapshot: ClusterSnapshot, job: str, policy: PolicyLike | None) -> float | None:
    """Return the start (s) of a job as a what-if foretells it; ``None``: it does not wait, or never starts."""
    if job not in waiting_parts(snapshot):
        return None
    (outcome,) = what_if(snapshot, {"": policy}).outcomes
    return next((each.at for each in outcome.starts if str(each.job) == job), None)


def _fate(live: LiveJob | None) -> str:
    if live is None:
        return "it was rejected"
    return f"it is {live.state}" + (f", started at {live.started:.10g} s" if live.started is not None else "")


def after_instant(simulation: Simulation, when: float, system: System[Any] | None = None) -> Any:
    """Run through an instant (s), and return the state of the system, or of one below it, after its decisions."""
    simulation.run(until=float(np.nextafter(when, inf)))
    return attrs.evolve((system or simulation.system).snapshot(), now=when)


def before_decision(simulation: Simulation, when: float) -> Any:
    """Run to an instant (s), through its decision if there is one; return the state after its events, before that."""
    env, system = simulation.env, simulation.system
    if when > env.now:
        simulation.run(until=when)
    snapshot = system.snapshot()
    if env.peek() > when:
        return snapshot
    if system.timing.by_event:
        return after_instant(simulation, when)
    if simulation.next_decision() is not None and env.now == when:
        snapshot = system.snapshot()
        simulation.decide()
    return snapshot
