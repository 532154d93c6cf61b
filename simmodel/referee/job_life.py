"""Why a job of a simulation waited, from its submission to its start: obstacles, promises, and the policy's reasons."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, Stalled, of_class
from simmodel.futures.asking import promised_now
from simmodel.futures.whatif import what_if
from simmodel.referee.explanation import Explanation
from simmodel.referee.explanation_parts import span_table, told_of
from simmodel.referee.obstacles import waiting_parts, why_waits
from simmodel.referee.watching import Happened, Promise, Watch
from simmodel.systems.cluster.snapshots import to_come
from simmodel.systems.cluster.system import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.systems.system import Live, System
    from simmodel.work.job import LiveJob

__all__ = ["after_instant", "before_decision", "explain_job", "instant_in"]


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
    submits = {str(name): at for name, at in to_come(system)}
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
    if simulation.next_decision() is not None and env.now == when:
        snapshot = system.seen()
        simulation.decide()
    return snapshot
