"""Why a job of a simulation waited, from its submission to its start: obstacles, promises, and the policy's reasons."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, Stalled, of_class
from simmodel.futures.asking import promised_now
from simmodel.futures.whatif import what_if
from simmodel.referee.explanation import Explanation, span_table, told_of
from simmodel.referee.obstacles import obstacle, waiting_parts, why_waits
from simmodel.scheduling.observer import Observer
from simmodel.systems.cluster.system import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.protocol import Place
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.systems.cluster.system import Cluster
    from simmodel.systems.system import Live, System
    from simmodel.work.job import LiveJob, Run
    from simmodel.work.traffic import Slowed

__all__ = ["Happened", "Look", "Promise", "Watch", "after_instant", "before_decision", "explain_job", "instant_in"]

_MOST = 24  # looks at the cluster that are kept
_AFTER_SCHEDULERS = 9  # rank at the end of an instant: after the schedulers of all systems


class Promise(NamedTuple):
    """From an instant on (s), the start that a job could expect (s), why it changed, and who says so.

    ``by``: ``"promise"`` of the policy, or a ``"what-if"``; at the end the ``"start"`` itself.
    """

    since: float
    at: float
    cause: str
    by: str


@attrs.define(kw_only=True)
class Happened:
    """The events in a cluster between two looks, as far as they explain why a start is expected at another instant.

    ``early``: by how many seconds a job ended early, at most, and its id; ``came``: the last two jobs, of which one may
    be the job itself; ``gone``: the first that was withdrawn; ``change``: the last one of the capacity.
    """

    early: tuple[float, int | str] = (0.0, "")
    came: tuple[int | str, ...] = ()
    gone: int | str | None = None
    change: str = ""

    def and_then(self, later: Happened) -> Happened:
        """Return the events of two spans, one after the other."""
        return Happened(
            early=max(self.early, later.early, key=lambda each: each[0]),
            came=(*self.came, *later.came)[-2:],
            gone=later.gone if self.gone is None else self.gone,
            change=later.change or self.change,
        )

    def cause(self, sooner: bool, job: int | str) -> str:
        """Return why a start is expected sooner, or later, than before; empty: unknown."""
        left, name = self.early
        if sooner and left:
            return f"job {name} ended {left:.10g} s early" if left < inf else f"job {name}, without a limit, ended"
        if sooner and self.gone is not None:
            return f"job {self.gone} was withdrawn"
        if self.change:
            return self.change
        came = [str(name) for name in self.came if str(name) != str(job)]
        return f"job {came[-1]} came" if came and not sooner else ""


class _Between(Observer):
    """Notes the events in a cluster until it is asked."""

    def __init__(self) -> None:
        self._happened = Happened()

    def taken(self) -> Happened:
        """Return the events so far, and begin anew."""
        happened, self._happened = self._happened, Happened()
        return happened

    def job_submitted(self, job: LiveJob) -> None:
        self._happened.came = (*self._happened.came[-1:], job.id)

    def job_cancelled(self, job: LiveJob) -> None:
        if self._happened.gone is None:
            self._happened.gone = job.id

    def job_ended(self, run: Run, _status: str) -> None:
        left = float(run.expected_end - run.place.env.now)
        if left > self._happened.early[0]:
            self._happened.early = left, run.job.id

    def place_changed(self, place: Place, cause: str) -> None:
        self._happened.change = f"{cause} of {place.name}"


class Look(NamedTuple):
    """A cluster after the decisions of an instant, as a policy may see it, and the events since the last look."""

    snapshot: ClusterSnapshot
    happened: Happened


class Watch(Observer):
    """Notes why a job waits after each decision, the starts promised to it, and the cluster after some decisions.

    Parameters
    ----------
    system
        the cluster
    job
        the id of the job, which is still to come

    Attributes
    ----------
    live
        the job, once it has come
    spans
        its waits: since, until (s), and the reason
    promises
        the starts that the policy promised in the run
    leaves
        whether the run ends once the job has started or left
    slowed
        who slowed its first execution, if it has traffic and that is over
    looks
        the cluster after some of the decisions while it waited, evenly spread among them
    """

    def __init__(self, system: Cluster, job: int | str) -> None:
        self.job = str(job)
        self.live: LiveJob | None = None
        self.spans: list[tuple[float, float, str]] = []
        self.promises: list[Promise] = []
        self.looks: list[Look] = []
        self._system = system
        self._since: tuple[float, str] | None = None
        self._decisions = 0
        self._step = 1  # from look to look, in decisions
        self._happened = _Between()  # since the last promise
        self._seen = _Between()  # since the last look
        self._look = system.env.at_instant_end(self._take_look, _AFTER_SCHEDULERS)
        self._leave = system.env.at_instant_end(system.env.leave, _AFTER_SCHEDULERS + 1)
        self.leaves = False
        self.slowed: Slowed | None = None
        for each in (self, self._happened, self._seen):
            system.env.observe(each)

    @property
    def over(self) -> bool:
        """Whether the job has started or left."""
        return self.live is not None and (bool(self.live.attempts) or self.live.over)

    def unseen(self) -> Happened:
        """Return the events since the last look, and begin anew."""
        return self._seen.taken()

    def job_submitted(self, job: LiveJob) -> None:
        """Know the job from its submission on."""
        if str(job.id) == self.job:
            self.live = job
            self._happened.taken()
            self._seen.taken()

    def job_promised(self, job: LiveJob, _place: Place, at: float) -> None:
        if job is self.live and not self.over:
            self._promise(float(job.place.env.now), float(at), "promise")

    def _promise(self, now: float, at: float, by: str) -> None:
        before = self.promises[-1].at if self.promises else None
        happened = self._happened.taken()
        if at != before:
            self.promises.append(Promise(now, at, "" if before is None else happened.cause(at < before, self.job), by))

    def decided(self, scheduler: Scheduler, _seconds: float, _decisions: int) -> None:
        """Note the obstacle to the job after a decision, and look at the cluster."""
        live = self.live
        if live is None or self.over:
            return
        choices = scheduler.view.choices
        self._note(float(scheduler.env.now), obstacle(live, choices.get(live, ()) if choices else ()))
        self._look()

    def _take_look(self) -> None:
        """Look at the cluster; of too many looks, every second is left out."""
        self._decisions += 1
        if self.over or (self._decisions - 1) % self._step:
            return
        self.looks.append(Look(self._system.snapshot(actual=False), self._seen.taken()))
        if len(self.looks) > _MOST:
            left_out, kept = self.looks[1::2], self.looks[2::2]
            merged = [one.happened.and_then(two.happened) for one, two in zip(left_out, kept, strict=True)]
            self.looks[1:] = [look._replace(happened=happened) for look, happened in zip(kept, merged, strict=True)]
            self._step *= 2

    def job_started(self, run: Run) -> None:
        """Note that the wait is over."""
        if run.job is self.live and self._since is not None:
            now = float(run.place.env.now)
            self._note(now, None)
            if self.promises:
                self._promise(now, now, "start")
            if run.job.spec is None or run.job.spec.traffic is None:
                self._ends()

    def job_slowed(self, run: Run, slowed: Slowed) -> None:
        """Note who slowed its first execution, if it has traffic."""
        if run.job is self.live and self.slowed is None:
            self.slowed = slowed
            self._ends()

    def job_cancelled(self, job: LiveJob) -> None:
        """Note that the wait is over."""
        if job is self.live:
            self._note(float(job.place.env.now), None)
            self._ends()

    def _ends(self) -> None:
        if self.leaves:
            self._leave()

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
    """Explain why a job waits on a cluster at an instant, with the reasons of its wait until it started.

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
    system = of_class(simulation.system, Cluster, "of a cluster", "simulation")
    submits = {str(name): at for source in system.sources for name, at in source.names()}
    when = instant_in(submits, job, at)
    watch = Watch(system, job)
    snapshot = before_decision(simulation, when)
    live = watch.live
    if str(job) not in waiting_parts(snapshot) or (live is not None and live.attempts):
        raise InputError(f"job {job} does not wait at {when:.10g} s: {_fate(live)}", place="at")
    found = why_waits(snapshot, job, policy)
    if not watch.over:
        watch.leaves, system.scheduler.external = True, False
        with suppress(Stalled):  # it never starts
            simulation.run()
    return attrs.evolve(
        found,
        spans=span_table(watch.spans),
        promises=span_table(_promises(watch, policy), Promise._fields),
        told=told_of([each._asdict() for each in system.scheduler.reasons], job),
        slowed="" if watch.slowed is None else watch.slowed.text(),
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


def _promises(watch: Watch, policy: PolicyLike | None) -> list[Promise]:
    """Return the starts that a job could expect: as promised or, before that, as foretold at some of its decisions."""
    begins = watch.promises[0].since if watch.promises else inf
    found: list[Promise] = []
    unseen = Happened()
    for snapshot, happened in watch.looks:
        unseen = unseen.and_then(happened)
        if snapshot.now >= begins or watch.job not in waiting_parts(snapshot):
            continue
        at, by = _expected(snapshot, watch.job, policy)
        if at is not None and (not found or at != found[-1].at):
            cause = unseen.cause(at < found[-1].at, watch.job) if found else ""
            found.append(Promise(float(snapshot.now), at, cause, by))
        unseen = Happened()
    if not found or watch.promises:
        return found + watch.promises
    started = watch.live.started if watch.live is not None else None
    if started is not None and started != found[-1].at:
        cause = unseen.and_then(watch.unseen()).cause(started < found[-1].at, watch.job)
        found.append(Promise(float(started), float(started), cause, "start"))
    return found


def _expected(snapshot: ClusterSnapshot, job: str, policy: PolicyLike | None) -> tuple[float | None, str]:
    """Return the start (s) that a waiting job can expect, and who says so; ``None``: it never starts."""
    promised = {str(each): at for each, at in promised_now(snapshot, policy).items()}
    if job in promised:
        return promised[job], "promise"
    (outcome,) = what_if(snapshot, {"": policy}).outcomes
    return next((each.at for each in outcome.starts if str(each.job) == job), None), "what-if"


def _fate(live: LiveJob | None) -> str:
    if live is None:
        return "it was rejected"
    return f"it is {live.state}" + (f", started at {live.started:.10g} s" if live.started is not None else "")


def after_instant(simulation: Simulation, when: float, system: System[Live] | None = None) -> Any:
    """Run through an instant (s), and return the state of the system, or of one below it, after its decisions."""
    simulation.run(until=float(np.nextafter(when, inf)))
    return attrs.evolve((system or simulation.system).seen(), now=when)


def before_decision(simulation: Simulation, when: float) -> Any:
    """Run to an instant (s), through its decision if there is one; return the state after its events, before that."""
    env, system = simulation.env, simulation.system
    if when > env.now:
        simulation.run(until=when)
    snapshot = system.seen()
    if env.peek() > when:
        return snapshot
    if system.timing.by_event:
        return after_instant(simulation, when)
    scheduler = system.scheduler
    scheduler.external = True
    while scheduler.question is None and env.peek() <= when:
        env.step()
    if scheduler.question is not None:
        snapshot = system.seen()
        simulation.decide()
    return snapshot
