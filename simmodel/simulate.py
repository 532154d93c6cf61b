"""The front door: a platform, a workload and a policy in; a result out."""

from __future__ import annotations

import platform as python_platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import attrs

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.machine import MachineSpec
from simmodel.records.columns import joined
from simmodel.records.observers import EventRecorder, Progress
from simmodel.records.recorder import JobRecorder
from simmodel.scheduling.machine_snapshot import MachineSnapshot
from simmodel.scheduling.registry import policy as policy_named
from simmodel.scheduling.snapshot import Snapshot, SystemSnapshot, snapshot_of_document
from simmodel.systems.cluster import Cluster
from simmodel.systems.restore import restoring
from simmodel.work.job import Job
from simmodel.work.prepare import Estimates, Overrun
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from simmodel.records.result import Result
    from simmodel.records.tasks import MachineResult
    from simmodel.systems.task_run import Works

__all__ = ["Scenario", "load_scenario", "simulate"]

_INLINE = 100_000  # jobs of a workload that no file holds, kept in the scenario itself


@overload
def simulate(
    platform: ClusterSpec | int | None,
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
) -> Result: ...


@overload
def simulate(
    platform: SystemSnapshot,
    workload: Any = None,
    *,
    policy: Any = None,
    arrivals: Workload | Iterable[Job] | str | Path | None = None,
    seed: int | None = None,
    until: float | None = None,
    events: bool = False,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> Result: ...


@overload
def simulate(
    platform: MachineSpec,
    workload: Works,
    policy: Any = "hrr",
    *,
    config: Any = None,
    seed: int | None = 0,
    decide: Literal["ready", "submit"] | None = None,
    overlap: bool = False,
    transfers: Literal["sequential", "parallel"] = "sequential",
    contention: bool = True,
    until: float | None = None,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> MachineResult: ...


@overload
def simulate(platform: str | Path, workload: Any, policy: Any = None, **options: Any) -> Any: ...


def simulate(platform: Any, workload: Any = None, policy: Any = None, **options: Any) -> Any:
    """Run a workload on a cluster, or tasks on a machine, under a policy, and return what happened.

    Parameters
    ----------
    platform
        a number of processors, a :class:`~simmodel.platform.cluster.ClusterSpec`, the name of a ready one or the path
        of a file; ``None``: the machine that the workload says it was recorded on. Or a snapshot, to go on from, or a
        :class:`~simmodel.platform.machine.MachineSpec`: see below
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

    ``simulate(snapshot, policy, until=..., arrivals=...)`` goes on from a
    :class:`~simmodel.scheduling.snapshot.Snapshot`: under its own policy, with what that remembers, unless another is
    given; with its own arrivals, and these jobs besides; with its own random streams, unless there is a seed. The
    result has a row for each job that was not over, with what it did before. The snapshot of a machine goes on
    likewise, with ``arrivals`` as ``(at, work)``.

    >>> env = Environment()
    >>> cluster = Cluster(env, 12, "easy")
    >>> _ = cluster.replay(Workload.from_jobs(jobs))
    >>> env.run(until=955)
    >>> simulate(cluster.snapshot(), "fcfs", arrivals=[Job(submit=970, processors=5, run=10)]).jobs["start"]
    array([   0.,  900., 1000., 1100., 1100.])

    On a machine, ``simulate(machine, work, policy, overlap=..., transfers=..., contention=..., decide=...)`` runs
    workflows and task sets, and returns a :class:`~simmodel.records.tasks.MachineResult`: see
    :func:`simmodel.systems.task_run.run_tasks`.

    >>> from simmodel.work.workflow import Task, Workflow
    >>> chain = Workflow([Task(id="a", run=100), Task(id="b", run=50)], [("a", "b", 50e6)])
    >>> simulate("hetsim-slow", chain, "heft").metrics()["tasks"]
    2
    """
    if isinstance(platform, MachineSnapshot):
        from simmodel.systems.task_run import go_on

        return go_on(platform, workload if policy is None else policy, versions=_versions(), **options)
    if isinstance(platform, SystemSnapshot):
        return _continue(platform, workload, policy, **options)
    if workload is None:
        raise InputError("a workload expected, found none")
    if isinstance(platform, (str, Path)):
        from simmodel.platform.library import load_platform

        platform = load_platform(platform)
    if isinstance(platform, MachineSpec):
        from simmodel.systems.task_run import run_tasks

        return run_tasks(platform, workload, "hrr" if policy is None else policy, versions=_versions(), **options)
    return _simulate(platform, workload, "fcfs" if policy is None else policy, **options)


def _simulate(
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
    log, source = _workload(workload)
    spec = _platform(platform, processors, log)
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
    _observe(env, event_recorder, bar, *observers)
    prepared = cluster.replay(log)
    _run(cluster, until, bar)
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


def _observe(env: Environment, *observers: Any) -> None:
    for observer in observers:
        if observer is not None:
            env.observe(observer(env) if isinstance(observer, type) else observer)


def _run(cluster: Cluster, until: float | None, bar: Progress | None) -> None:
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


def _continue(
    snapshot: SystemSnapshot,
    second: Any,
    third: Any,
    *,
    policy: Any = None,
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
    given = [each for each in (second, third, policy) if each is not None]
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
    _observe(env, event_recorder, bar, *observers)
    report = cluster.report
    if log is not None:
        prepared = cluster.replay(log)
        report = log.report + prepared.report
        added = {key: log[key] for key in log.table.names if key in ("job", "user", "group", "queue", "partition")}
        added |= {"submit": log["submit"], "processors": prepared.processors, "requested": prepared.requested}
        columns = joined(columns, added)
    _run(cluster, until, bar)
    return recorder.result(
        columns,
        name=name or cluster.scheduler.policy_name,
        events=None if event_recorder is None else event_recorder.table(),
        report=report + cluster.report if log is not None else report,
        decisions=cluster.scheduler.timing(),
        policy=cluster.scheduler.policy,
        started=snapshot.now,
        scenario={
            "snapshot": snapshot.document() if len(columns["job"]) <= _INLINE else {"digest": snapshot.digest},
            "workload": None if log is None else _inlined(log),
            "policy": chosen if isinstance(chosen, str) else None if chosen is None else cluster.scheduler.policy_name,
            "policy_by_name": chosen is None or isinstance(chosen, str),
            "options": {"until": until},
            "seed": seed,
            "versions": _versions(),
        },
    )


def _arrivals(given: Any, now: float) -> Workload:
    log, _ = _workload(given)
    early = log["submit"] < now
    if early.any():
        row = int(early.argmax())
        raise InputError(
            f"arrivals at or after {now:g} s, the instant of the snapshot, expected, found job {log['job'][row]} at "
            f"{log['submit'][row]:g} s"
        )
    return log


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

    @property
    def of_machine(self) -> bool:
        """Whether a machine ran tasks."""
        return bool(self.values.get("platform", {}).get("kind") == "machine")

    def workload(self) -> Any:
        """Return the workload; of a machine, pairs of an instant and a task set, or the text that says where they are.

        Raises ``InputError`` where the scenario does not hold enough of it.
        """
        described = self.values["workload"]
        if self.of_machine:
            from simmodel.systems.task_run import sets_of_scenario

            return described["source"] if "source" in described else sets_of_scenario(described)
        if "source" in described:
            return _workload(described["source"])[0]
        if "columns" not in described:
            raise InputError(
                f"the workload {described['name']!r} was made in Python or is large, and is not in the scenario: "
                "give it to run(workload=...)"
            )
        return Workload(described["columns"], name=described["name"], processors=described.get("processors"))

    def platform(self) -> Any:
        """Return the platform: a cluster or a machine."""
        from simmodel.platform.toml import from_dict

        return from_dict(self.values["platform"])

    def run(self, *, workload: Any = None, policy: Any = None, **options: Any) -> Any:
        """Run it again; whatever is given replaces what was saved."""
        if policy is None and not self.values["policy_by_name"]:
            raise InputError(f"the policy {self.values['policy']!r} was given as an object: give it to run(policy=...)")
        if "snapshot" in self.values:
            return self._continue(workload, self.values["policy"] if policy is None else policy, options)
        described = self.values["workload"]
        if workload is None:
            workload = described["source"] if "source" in described else self.workload()
        return simulate(
            self.platform(),
            workload,
            self.values["policy"] if policy is None else policy,
            **{"seed": self.values["seed"], **self.values["options"], **options},
        )

    def _continue(self, arrivals: Any, policy: Any, options: dict[str, Any]) -> Result:
        document = self.values["snapshot"]
        if "format" not in document:
            raise InputError(
                "the snapshot is large, and is not in the scenario: simulate(snapshot, ...) repeats the run"
            )
        if arrivals is None and self.values["workload"] is not None:
            arrivals = self.workload()
        given = {"seed": self.values["seed"], **self.values["options"], **options}
        return simulate(snapshot_of_document(document), policy, arrivals=arrivals, **given)


def load_scenario(path: str | Path) -> Scenario:
    """Return the scenario of a stored result (SQLite, JSON, or a folder of CSV or Parquet files)."""
    from simmodel.records.stores import read_scenario

    return Scenario(read_scenario(path))
