"""One run of a machine, from a description and work to a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.errors import InputError
from simmodel.platform.machine import MachineSpec
from simmodel.records.observers import Progress
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.formats.hetsim_config import HetSimConfig
    from simmodel.results.machine import MachineResult
    from simmodel.snapshots.machine import MachineSnapshot

__all__ = ["go_on", "run_tasks", "sets_of_scenario"]

_INLINE = 100_000  # tasks of work that no file holds, kept in the scenario itself
_COLUMNS = (
    "run",
    "ids",
    "families",
    "implementations",
    "inputs",
    "outputs",
    "sizes",
    "names",
    "parents",
    "submit",
    "flop",
    "run_on",
    "cores",
    "memory",
    "priority",
    "reconfiguration",
    "name",
)

Work = TaskSet | Workflow
Works = Work | str | Path | Iterable[Work | tuple[float, Work]]


def run_tasks(
    spec: MachineSpec,
    work: Works,
    policy: Any = "hrr",
    *,
    config: HetSimConfig | str | Path | None = None,
    seed: int | None = 0,
    decide: Literal["ready", "submit"] | None = None,
    overlap: bool = False,
    transfers: Literal["sequential", "parallel"] = "sequential",
    contention: bool = True,
    until: float | None = None,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
    versions: Mapping[str, str] | None = None,
) -> MachineResult:
    """Run tasks on a machine under a policy, and return what happened.

    Parameters
    ----------
    spec
        the machine
    work
        a workflow, a task set, several of them, each alone or with the instant of its submission as ``(at, work)``; or
        a text: the path of a file, the name of a ready one, or ``"random:tasks=100"``
    policy
        a name (see ``simmodel list policies``), a policy, or a function of a view
    config
        HetSim's configuration, or the path of its file: what work is drawn from, and the reconfiguration of FPGAs
    seed
        of all random streams; ``None``: another one each time, kept in the result's scenario
    decide, overlap, transfers, contention
        see :class:`~simmodel.systems.machine.system.Machine`
    until
        the instant at which to stop; default: when every task is done
    observers
        objects with hooks; one that is a class is called with the environment
    progress
        whether to show a progress bar
    name
        what tables and plots call the run; default: the policy
    versions
        of what ran, for the scenario

    Raises
    ------
    InputError
        where a name, a file or an option is wrong
    ImpossibleWork
        where no processor can run a task, or no pool hold its data
    Stalled
        where tasks wait for what will never happen

    >>> from simmodel.catalogue import load_platform
    >>> run_tasks(load_platform("hetsim-slow"), TaskSet([3.0, 4.0]), "hrr").tasks["end"]
    array([3., 4.])
    """
    from simmodel.platform.toml import to_dict

    env = Environment(seed=seed)
    if isinstance(config, (str, Path)):
        from simmodel.formats.hetsim_config import read_hetsim_config

        config = read_hetsim_config(config)
    if config is not None:
        spec = config.on_machine(spec)
    works = _works(work, spec, config, env.seed)
    machine = Machine(
        env,
        spec,
        policy.fresh() if hasattr(policy, "fresh") else policy,
        decide=decide,
        overlap=overlap,
        transfers=transfers,
        contention=contention,
    )
    _observe(env, observers)
    bar = Progress(sum(len(each) for _, each in works), spec.name, unit="tasks") if progress else None
    _run(machine, works, until, bar)
    result = machine.result(name or machine.scheduler.policy_name)
    result.scenario = {
        "platform": to_dict(spec),
        "workload": {"source": str(work)} if isinstance(work, (str, Path)) and config is None else _inlined(works),
        "policy": policy if isinstance(policy, str) else machine.scheduler.policy_name,
        "policy_by_name": isinstance(policy, str),
        "options": {
            "decide": decide,
            "overlap": overlap,
            "transfers": transfers,
            "contention": contention,
            "until": until,
        },
        "seed": env.seed,
        "versions": dict(versions or {}),
    }
    return result


def go_on(
    snapshot: MachineSnapshot,
    policy: Any = None,
    *,
    arrivals: Iterable[tuple[float, Work]] = (),
    seed: int | None = None,
    until: float | None = None,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
    versions: Mapping[str, str] | None = None,
) -> MachineResult:
    """Go on from the snapshot of a machine, and return what happened to the tasks that were not done.

    Parameters
    ----------
    policy
        default: that of the snapshot, with what it remembers
    arrivals
        work that is submitted besides, each with its instant (s)
    seed
        of the random streams; default: they go on as they were
    until, observers, progress, name, versions
        see :func:`run_tasks`

    Raises
    ------
    InputError
        where the policy is not known by a name and none is given, or an instant is past

    >>> from simmodel.catalogue import load_platform
    >>> machine = Machine(Environment(), load_platform("hetsim-slow"))
    >>> _ = machine.submit(TaskSet([30.0, 40.0])); machine.env.run(until=2)
    >>> go_on(machine.snapshot(), arrivals=[(5.0, TaskSet([1.0]))]).tasks["end"]
    array([30., 40.,  6.])
    """
    if until is not None and not until > snapshot.now:
        raise InputError(f"until > {snapshot.now:g}, the instant of the snapshot, expected, found {until!r}")
    env = Environment(snapshot.now, snapshot.seed if seed is None else seed)
    given = snapshot if seed is None else attrs.evolve(snapshot, streams=())
    machine = Machine.from_snapshot(env, given, policy)
    _observe(env, observers)
    works = [(at, TaskSet.of(each)) for at, each in arrivals]
    count = len(machine.tasks) + sum(len(each) for _, each in works)
    bar = Progress(count, machine.name, unit="tasks") if progress else None
    _run(machine, works, until, bar)
    result = machine.result(name or machine.scheduler.policy_name)
    result.scenario = {
        "snapshot": snapshot.document() if len(snapshot.tasks["id"]) <= _INLINE else {"digest": snapshot.digest},
        "workload": _inlined(works),
        "policy": machine.known_as or machine.scheduler.policy_name,
        "policy_by_name": machine.known_as is not None,
        "options": {"until": until},
        "seed": seed,
        "versions": dict(versions or {}),
    }
    return result


def _observe(env: Environment, observers: Sequence[Any]) -> None:
    for observer in observers:
        env.observe(observer(env) if isinstance(observer, type) else observer)


def _run(machine: Machine, works: Iterable[tuple[float, TaskSet]], until: float | None, bar: Progress | None) -> None:
    env = machine.env
    if bar is not None:
        env.observe(bar)
    try:
        with quiet_garbage_collector():
            for at, each in works:
                machine.submit(each, at)
            env.run(until=until)
    finally:
        if bar is not None:
            bar.close()


def _works(work: Any, spec: MachineSpec, config: HetSimConfig | None, seed: int) -> list[tuple[float, TaskSet]]:
    """Return the task sets with the instants of their submission."""
    if isinstance(work, (str, Path)):
        from simmodel.catalogue import task_work

        return _works(task_work(work, seed, config=config, machine=spec), spec, None, seed)
    if isinstance(work, (TaskSet, Workflow)):
        return [(0.0, TaskSet.of(work))]
    found: list[tuple[float, TaskSet]] = []
    for each in work if isinstance(work, Iterable) else [work]:
        at, tasks = each if isinstance(each, tuple) and len(each) == 2 else (0.0, each)
        if not isinstance(tasks, (TaskSet, Workflow)):
            raise InputError(f"a workflow, tasks, a name or a path expected, found {tasks!r}")
        if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < float("inf"):
            raise InputError(f"an instant of zero or more expected, found {at!r}", place=f"submission of {tasks.name}")
        found.append((float(at), TaskSet.of(tasks)))
    if not found:
        raise InputError("at least one workflow or task set expected, found none")
    return found


def _inlined(works: Sequence[tuple[float, TaskSet]]) -> dict[str, Any]:
    """Return work as columns, where it is small enough for a scenario."""
    count = sum(len(tasks) for _, tasks in works)
    described: dict[str, Any] = {"name": ", ".join(dict.fromkeys(tasks.name for _, tasks in works)), "tasks": count}
    if count <= _INLINE:
        described["sets"] = [{"at": at, **_columns(tasks)} for at, tasks in works]
    return described


def _columns(tasks: TaskSet) -> dict[str, Any]:
    columns = {name: getattr(tasks, name) for name in _COLUMNS}
    if isinstance(tasks.ids, range):
        del columns["ids"]
    return {name: value for name, value in columns.items() if value is not None}


def sets_of_scenario(described: Mapping[str, Any]) -> list[tuple[float, TaskSet]]:
    """Return the task sets that a scenario holds, with the instants of their submission.

    Raises
    ------
    InputError
        where it holds none: they were too many

    >>> work = [(5.0, TaskSet([3.0, float("nan")], run_on=[None, {"gpu": 2}], parents=[(), (0,)]))]
    >>> from simmodel.results.stores import plain
    >>> at, again = sets_of_scenario(plain(_inlined(work)))[0]
    >>> at, again.run, again.parents
    (5.0, [3.0, nan], [(), (0,)])
    """
    if "sets" not in described:
        raise InputError(
            f"the work {described['name']!r} has {described['tasks']:,} tasks, and is not in the scenario: give it to "
            "run(workload=...)"
        )
    found = []
    for each in described["sets"]:
        columns = {name: each[name] for name in _COLUMNS if name in each}
        columns["run"] = [float("nan") if seconds is None else seconds for seconds in columns["run"]]
        for name in ("implementations", "inputs", "outputs", "parents"):
            if name in columns:
                columns[name] = [None if value is None else tuple(value) for value in columns[name]]
        columns.setdefault("parents", [()] * len(columns["run"]))  # none, whatever the data say
        found.append((each["at"], TaskSet(columns.pop("run"), **columns)))
    return found
