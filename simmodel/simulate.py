"""The front door: a platform, a workload and a policy in; a result out."""

from __future__ import annotations

import platform as python_platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.records.observers import EventRecorder, Progress
from simmodel.records.recorder import JobRecorder
from simmodel.scheduling.registry import policy as policy_named
from simmodel.systems.cluster import Cluster
from simmodel.work.job import Job
from simmodel.work.prepare import Estimates, Overrun
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from simmodel.records.result import Result

__all__ = ["Scenario", "load_scenario", "simulate"]

_INLINE = 100_000  # jobs of a workload that no file holds, kept in the scenario itself


def simulate(
    platform: ClusterSpec | int | str | Path | None,
    workload: Workload | Iterable[Job] | str | Path,
    policy: Any = "fcfs",
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
    """Run a workload on a cluster under a policy, and return what happened.

    Parameters
    ----------
    platform
        a number of processors, a :class:`~simmodel.platform.cluster.ClusterSpec`, the name of a ready one or the path
        of a file; ``None``: the machine that the workload says it was recorded on
    workload
        a :class:`~simmodel.work.workload.Workload`, jobs, the name of a ready one or the path of a log
    policy
        a name (see ``simmodel list policies``), a policy, or a function of a view
    processors
        replaces the number of processors of the platform
    seed
        of all random streams; ``None``: another one each time, kept in the result's scenario
    decide_on, event_order, estimates, overrun
        see :class:`~simmodel.systems.cluster.Cluster`
    until
        the instant at which to stop, in seconds; default: when every job is over
    events
        whether to keep a row for each state change
    observers
        objects with hooks; one that is a class is called with the environment
    progress
        whether to show a progress bar
    name
        what tables and plots call the run; default: the policy

    Raises
    ------
    InputError
        where a name, a file or an option is wrong
    Stalled
        where jobs wait that nothing will ever start

    >>> jobs = [Job(processors=5, run=1000), Job(submit=900, processors=5, run=500),
    ...         Job(submit=950, processors=7, run=100), Job(submit=960, processors=2, run=400)]
    >>> simulate(12, jobs, "easy").jobs["start"]
    array([   0.,  900., 1000., 1100.])
    """
    log, source = _workload(workload)
    spec = _platform(platform, processors, log)
    env = Environment(seed=seed)
    chosen = policy_named(policy)
    if chosen is policy and hasattr(chosen, "fresh"):
        chosen = chosen.fresh()  # a policy that keeps a state starts each run without one
    cluster = Cluster(
        env,
        spec,
        chosen,
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
    for observer in (event_recorder, bar, *observers):
        if observer is not None:
            env.observe(observer(env) if isinstance(observer, type) else observer)
    prepared = cluster.replay(log)
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
    scheduler = cluster.scheduler
    options = {"decide_on": decide_on, "event_order": event_order, "estimates": estimates, "overrun": overrun}
    columns = {key: log[key] for key in log.table.names if key not in ("wait", "status")}
    columns |= {"processors": prepared.processors, "requested": prepared.requested, "recorded_run": log["run"]}
    del columns["run"]
    return recorder.result(
        columns,
        name=name or scheduler.policy_name,
        events=None if event_recorder is None else event_recorder.table(),
        report=log.report + prepared.report if isinstance(log.report, Report) else prepared.report,
        decisions=scheduler.timing(),
        policy=scheduler.policy,
        scenario={
            "platform": _described(spec),
            "workload": source if source is not None else _inlined(log),
            "policy": policy if isinstance(policy, str) else scheduler.policy_name,
            "policy_by_name": isinstance(policy, str),
            "options": {**options, "until": until},
            "seed": env.seed,
            "versions": _versions(),
        },
    )


def _workload(given: Any) -> tuple[Workload, dict[str, Any] | None]:
    """Return the workload, and where it came from, where that is a name or a file."""
    if isinstance(given, Workload):
        return given, None
    if isinstance(given, (str, Path)):
        from simmodel.formats.library import load_workload

        return load_workload(given), {"source": str(given)}
    jobs = list(given)
    if not all(isinstance(job, Job) for job in jobs):
        raise InputError(f"a workload, jobs, a name or a path expected, found {given!r}")
    return Workload.from_jobs(jobs), None


def _platform(given: Any, processors: int | None, log: Workload) -> ClusterSpec:
    if processors is not None and processors <= 0:
        raise InputError(f"a number of processors > 0 expected, found {processors}")
    if given is None:
        given = processors if processors is not None else log.processors
        if given is None:
            raise InputError(f"{log.name} does not say how many processors its machine has: give a number of them")
    if isinstance(given, int):
        if given <= 0:
            raise InputError(f"a number of processors > 0 expected, found {given}")
        return ClusterSpec.simple(given if processors is None else processors)
    if isinstance(given, (str, Path)):
        from simmodel.platform.library import load_platform

        given = load_platform(given)
    if not isinstance(given, ClusterSpec):
        raise InputError(f"a cluster, a number of processors, a name or a path expected, found {given!r}")
    return given if processors is None else given.with_processors(processors)


def _described(spec: ClusterSpec) -> dict[str, Any]:
    from simmodel.platform.toml import to_dict

    return to_dict(spec)


def _inlined(log: Workload) -> dict[str, Any]:
    """Return the workload as plain values, where it is small enough and columns say all of it."""
    described: dict[str, Any] = {"name": log.name, "jobs": len(log)}
    if log.specs is None and len(log) <= _INLINE:
        described["columns"] = {key: log[key].tolist() for key in log.table.names}
        described["processors"] = log.processors
    return described


def _versions() -> dict[str, str]:
    import numpy
    import simpy

    from simmodel import __version__

    return {
        "simmodel": __version__,
        "simpy": simpy.__version__,
        "numpy": numpy.__version__,
        "python": python_platform.python_version(),
    }


@attrs.frozen
class Scenario:
    """A run that can be repeated: platform, workload, policy, options and seed, as a result keeps them.

    >>> from simmodel.work.workload import Workload
    >>> log = Workload({"submit": [0, 0], "run": [5, 5], "processors": [2, 2]})
    >>> again = Scenario(simulate(2, log, "fcfs").scenario).run()
    >>> again.jobs["end"]
    array([ 5., 10.])
    """

    values: Mapping[str, Any]
    """What the result keeps under ``scenario``."""

    def workload(self) -> Workload:
        """Return the workload; raises ``InputError`` where the scenario does not hold enough of it."""
        described = self.values["workload"]
        if "source" in described:
            return _workload(described["source"])[0]
        if "columns" not in described:
            raise InputError(
                f"the workload {described['name']!r} was made in Python or is large, and is not in the scenario: "
                "give it to run(workload=...)"
            )
        return Workload(described["columns"], name=described["name"], processors=described.get("processors"))

    def platform(self) -> ClusterSpec:
        """Return the platform."""
        from simmodel.platform.toml import from_dict

        spec: ClusterSpec = from_dict(self.values["platform"])
        return spec

    def run(self, *, workload: Workload | None = None, policy: Any = None, **options: Any) -> Result:
        """Run it again; whatever is given replaces what was saved."""
        if policy is None and not self.values["policy_by_name"]:
            raise InputError(f"the policy {self.values['policy']!r} was given as an object: give it to run(policy=...)")
        described = self.values["workload"]
        if workload is None:
            workload = described["source"] if "source" in described else self.workload()
        return simulate(
            self.platform(),
            workload,
            self.values["policy"] if policy is None else policy,
            **{"seed": self.values["seed"], **self.values["options"], **options},
        )


def load_scenario(path: str | Path) -> Scenario:
    """Return the scenario of a stored result (SQLite, JSON, or a folder of CSV or Parquet files)."""
    from simmodel.records.stores import read_scenario

    return Scenario(read_scenario(path))
