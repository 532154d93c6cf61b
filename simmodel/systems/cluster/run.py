"""Runs of jobs: a platform and a workload, or a snapshot to go on from, in; a result out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import attrs

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.machine import MachineSpec
from simmodel.records.columns import joined
from simmodel.records.observers import EventRecorder, Progress
from simmodel.records.recorder import JobRecorder
from simmodel.records.versions import versions
from simmodel.results.result import Result
from simmodel.scheduling.registry import policy as policy_named
from simmodel.snapshots.cluster import Snapshot, SystemSnapshot
from simmodel.systems.cluster.restore import restoring
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.prepare import Estimates, Overrun
from simmodel.work.workload import Report, Workload

__all__ = ["described", "go_on_with_jobs", "inlined", "observe", "platform_of", "run_jobs", "workload_of"]

INLINE = 100_000  # jobs of a workload that no file holds, kept in the scenario itself


def run_jobs(
    platform: Any,
    workload: Any,
    policy: Any,
    *,
    processors: int | None = None,
    seed: int | None = 0,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates = "requested",
    overrun: Overrun = "stop",
    until: float | None = None,
    events: bool = False,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> Result:
    """Run a workload on a cluster under a policy (see :func:`simmodel.runs.simulate.simulate`)."""
    log, source = workload_of(workload)
    spec = platform_of(platform, processors, log)
    env = Environment(seed=seed)
    chosen = policy_named(policy)
    if chosen is policy and hasattr(chosen, "fresh"):
        chosen = chosen.fresh()  # a policy that keeps a state starts each run without one
    cluster = Cluster(
        env,
        spec,
        policy if isinstance(policy, str) else chosen,  # a snapshot says the name
        decide_on=decide_on,
        event_order=event_order,
        estimates=estimates,
        overrun=overrun,
        record=False,
    )
    recorder = JobRecorder(env, expected=len(log), places=cluster.places)
    env.observe(recorder)
    event_recorder = EventRecorder(env, cluster.places) if events else None
    bar = Progress(len(log), log.name) if progress else None
    observe(env, event_recorder, bar, *observers)
    prepared = cluster.replay(log)
    run_to_end(cluster, until, bar)
    scheduler = cluster.scheduler
    options = {"decide_on": decide_on, "event_order": event_order, "estimates": estimates, "overrun": overrun}
    columns = {key: log[key] for key in log.table.names if key not in ("wait", "status")}
    columns |= {"processors": prepared.processors, "requested": prepared.requested, "recorded_run": log["run"]}
    del columns["run"]
    return recorder.record(
        Result,
        columns,
        name=name or scheduler.policy_name,
        events=None if event_recorder is None else event_recorder.table(),
        report=log.report + prepared.report if isinstance(log.report, Report) else prepared.report,
        decisions=scheduler.timing(),
        policy=scheduler.policy,
        scenario={
            "platform": described(spec),
            "workload": source if source is not None else inlined(log),
            "policy": policy if isinstance(policy, str) else scheduler.policy_name,
            "policy_by_name": isinstance(policy, str),
            "options": {**options, "until": until},
            "seed": env.seed,
            "versions": versions(),
        },
    )


def observe(env: Environment, *observers: Any) -> None:
    """Add observers; those that are classes are called with the environment, those that are ``None`` left out."""
    for observer in observers:
        if observer is not None:
            env.observe(observer(env) if isinstance(observer, type) else observer)


def run_to_end(cluster: Cluster, until: float | None, bar: Progress | None) -> None:
    env, spec = cluster.env, cluster.spec
    try:
        with quiet_garbage_collector():
            if until is not None:
                env.run(until=until)
            elif cluster.calendar.endless or spec.outages or spec.reservations:
                env.run(until=cluster.idle())
            else:
                env.run()
    finally:
        if bar is not None:
            bar.close()


def go_on_with_jobs(
    snapshot: SystemSnapshot,
    second: Any,
    third: Any,
    *,
    arrivals: Any = None,
    seed: int | None = None,
    until: float | None = None,
    events: bool = False,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> Result:
    """Go on from a snapshot; the policy stands where a workload would, or behind it."""
    if not isinstance(snapshot, Snapshot):
        raise InputError(f"a snapshot of a cluster expected, found one of a {snapshot.system}")
    given = [each for each in (second, third) if each is not None]
    if len(given) > 1:
        raise InputError("a snapshot, and at most one policy, expected: new jobs are arrivals=")
    if until is not None and not until > snapshot.now:
        raise InputError(f"until > {snapshot.now:g} s, the instant of the snapshot, expected, found {until:g}")
    env = Environment(snapshot.now, snapshot.seed if seed is None else seed)
    chosen = given[0] if given else None
    restored = restoring(env, snapshot if seed is None else attrs.evolve(snapshot, streams=()), chosen)
    cluster = restored.cluster
    log = None if arrivals is None else _arrivals(arrivals, snapshot.now)
    recorder = restored.recorder(0 if log is None else len(log))
    env.observe(recorder)
    event_recorder = EventRecorder(env, cluster.places) if events else None
    if event_recorder is not None:
        event_recorder.take_over(run.job for run in restored.runs)
        event_recorder.take_over(restored.jobs.values())
    columns = restored.columns()
    bar = Progress(len(columns["job"]) + (0 if log is None else len(log)), "jobs") if progress else None
    observe(env, event_recorder, bar, *observers)
    report = cluster.report
    if log is not None:
        prepared = cluster.replay(log)
        report = log.report + prepared.report
        added = {key: log[key] for key in log.table.names if key in ("job", "user", "group", "queue", "partition")}
        added |= {"submit": log["submit"], "processors": prepared.processors, "requested": prepared.requested}
        columns = joined(columns, added)
    run_to_end(cluster, until, bar)
    return recorder.record(
        Result,
        columns,
        name=name or cluster.scheduler.policy_name,
        events=None if event_recorder is None else event_recorder.table(),
        report=report + cluster.report if log is not None else report,
        decisions=cluster.scheduler.timing(),
        policy=cluster.scheduler.policy,
        started=snapshot.now,
        scenario={
            "snapshot": snapshot.document() if len(columns["job"]) <= INLINE else {"digest": snapshot.digest},
            "workload": None if log is None else inlined(log),
            "policy": chosen if isinstance(chosen, str) else None if chosen is None else cluster.scheduler.policy_name,
            "policy_by_name": chosen is None or isinstance(chosen, str),
            "options": {"until": until},
            "seed": seed,
            "versions": versions(),
        },
    )


def _arrivals(given: Any, now: float) -> Workload:
    log, _ = workload_of(given)
    early = log["submit"] < now
    if early.any():
        row = int(early.argmax())
        raise InputError(
            f"arrivals at or after {now:g} s, the instant of the snapshot, expected, found job {log['job'][row]} at "
            f"{log['submit'][row]:g} s"
        )
    return log


def workload_of(given: Any) -> tuple[Workload, dict[str, Any] | None]:
    """Return the workload, and where it came from, where that is a name or a file."""
    if isinstance(given, Workload):
        return given, None
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_workload

        return load_workload(given), {"source": str(given)}
    jobs = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(job, Job) for job in jobs):
        raise InputError(f"a workload, jobs, a name or a path expected, found {given!r}")
    return Workload.from_jobs(jobs), None


def platform_of(given: Any, processors: Any, log: Workload) -> ClusterSpec:
    """Return the cluster that is given, or the one that a log was recorded on."""
    if processors is not None and (not isinstance(processors, Integral) or int(processors) <= 0):
        raise InputError(f"a number of processors > 0 expected, found {processors!r}")
    if given is None:
        given = processors if processors is not None else log.processors
        if given is None:
            raise InputError(f"{log.name} does not say how many processors its machine has: give a number of them")
    if not isinstance(given, bool) and isinstance(given, Integral):
        if given <= 0:
            raise InputError(f"a number of processors > 0 expected, found {given}")
        return ClusterSpec.simple(int(given) if processors is None else int(processors))
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_platform

        given = load_platform(given)
    if isinstance(given, MachineSpec):
        raise InputError(f"a cluster expected, found the machine {given.name!r}: it runs tasks, not jobs")
    if not isinstance(given, ClusterSpec):
        raise InputError(f"a cluster, a number of processors, a name or a path expected, found {given!r}")
    return given if processors is None else given.with_processors(int(processors))


def described(spec: ClusterSpec) -> dict[str, Any]:
    """Return a platform as plain values."""
    from simmodel.platform.toml import to_dict

    return to_dict(spec)


def inlined(log: Workload) -> dict[str, Any]:
    """Return the workload as plain values, where it is small enough and columns say all of it."""
    described: dict[str, Any] = {"name": log.name, "jobs": len(log)}
    if log.specs is None and len(log) <= INLINE:
        described["columns"] = {key: log[key].tolist() for key in log.table.names}
        described["processors"] = log.processors
    return described
