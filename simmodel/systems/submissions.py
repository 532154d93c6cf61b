"""The work that a simulation submits: logs of jobs with their homes, or task sets with their submit times.

A scenario stores each part as its name or path, or else as columns if it is small enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from simmodel.foundation.errors import InputError, Plain, unknown
from simmodel.systems.system import Live
from simmodel.work.chunks import ChunkedWorkload
from simmodel.work.job import Job
from simmodel.work.prepare import JobsGiven, are_workflows, as_workload, told_apart
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from simmodel.formats.hetsim_config import HetSimConfig
    from simmodel.platform.machine import MachineSpec
    from simmodel.systems.system import System
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow

__all__ = [
    "INLINE",
    "GivenTasks",
    "GivenWork",
    "Log",
    "Logs",
    "Submissions",
    "Tasks",
    "in_chunks",
    "read_submissions",
    "read_workload",
]

INLINE = 100_000
"""Maximum number of jobs or tasks without a source file that a scenario stores."""

GivenTasks: TypeAlias = (
    "TaskSet | Workflow | str | Path | Iterable[TaskSet | Workflow | tuple[float, TaskSet | Workflow]]"
)
GivenJobs = JobsGiven | ChunkedWorkload | str | Path | Iterable[JobsGiven | str | Path] | Mapping[str | None, Any]
GivenWork: TypeAlias = "GivenJobs | GivenTasks"
"""Accepted workloads: see :func:`~simmodel.runs.scenario.simulate`."""


class Submissions:
    """The work that a simulation submits to a system."""

    what: ClassVar[Literal["jobs", "tasks"]]

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def total(self) -> int | None:
        """The number of jobs or tasks, if it is known."""
        return len(self)

    @property
    def title(self) -> str:
        """Title of its progress bar."""
        raise NotImplementedError

    def submit_to(self, system: System[Live]) -> None:
        """Plan the submission of each part at its instant.

        Raises
        ------
        InputError
            if an instant is in the past
        """
        raise NotImplementedError

    def document(self) -> list[dict[str, Any]]:
        """Return the plain values that a scenario stores for it."""
        raise NotImplementedError


@attrs.frozen
class Log:
    """A workload, its home (or ``None``), and the name or path that it was loaded from (or ``None``)."""

    workload: Workload | ChunkedWorkload
    home: str | None = None
    source: str | None = None


@attrs.frozen
class Logs(Submissions):
    """Workloads of jobs."""

    what = "jobs"

    logs: Sequence[Log]

    def __len__(self) -> int:
        return sum(_count(log.workload) or 0 for log in self.logs)

    @property
    def total(self) -> int | None:
        """The number of jobs, if it is known."""
        return None if any(_count(log.workload) is None for log in self.logs) else len(self)

    @property
    def title(self) -> str:
        return ", ".join(log.workload.name for log in self.logs) or "jobs"

    def submit_to(self, system: System[Live]) -> None:
        """Plan the submission of each job at its submit time."""
        now = system.env.now
        for log in self.logs:
            if isinstance(log.workload, ChunkedWorkload):
                system.replay_in_chunks(log.workload)
                continue
            submit = log.workload["submit"]
            if (submit < now).any():
                row = int((submit < now).argmax())
                raise InputError(
                    f"must be submitted at or after {now:g} s, the current time, got {submit[row]:g} s",
                    source=log.workload.name,
                    place=f"job {log.workload['job'][row]}",
                )
            system.replay(log.workload, log.home)

    def document(self) -> list[dict[str, Any]]:
        """Return the source or the columns of each workload."""
        return [
            ({} if log.home is None else {"home": log.home})
            | (_inlined(log.workload) if log.source is None else {"source": log.source})
            for log in self.logs
        ]


def _count(log: Workload | ChunkedWorkload) -> int | None:
    """Return the number of jobs; ``None`` if it is unknown until all chunks are read."""
    return log.total if isinstance(log, ChunkedWorkload) else len(log)


def _inlined(log: Workload | ChunkedWorkload) -> dict[str, Any]:
    """Return a workload as plain values; with its columns, if it is small and they describe it completely."""
    described: dict[str, Any] = {"name": log.name, "jobs": _count(log)}
    if isinstance(log, ChunkedWorkload):
        return described
    if log.specs is None and len(log) <= INLINE:
        described["columns"] = {key: log[key].tolist() for key in log.table.names}
        described["processors"] = log.processors
    return described


def read_workload(
    given: GivenWork, *, of_nodes: Collection[str] = (), place: str = "workload", seed: int = 0
) -> Workload:
    """Return one workload of jobs, given in any form: a name or a path, or as to :func:`as_workload`.

    Parameters
    ----------
    seed
        of a text with a generator and its parameters

    Raises
    ------
    InputError
        if it is anything else, or cannot be read

    >>> read_workload("probe-4")
    <Workload probe-4: 4 jobs, 12 processors>
    """
    if isinstance(given, (str, Path)):
        return _of_file(given, of_nodes, seed)
    if isinstance(given, ChunkedWorkload):
        raise InputError(f"must be a whole workload, got {given!r}, which is read in chunks", place=place)
    jobs: Any = given
    return as_workload(jobs, of_nodes=of_nodes, place=place, also=", a name or a path")


def _of_file(given: str | Path, of_nodes: Collection[str], seed: int) -> Workload:
    """Return the workload of a name, a generator or a file, or the tasks of the workflow of a file as jobs."""
    from simmodel.catalogue import load_workflow, load_workload
    from simmodel.catalogue.workloads import is_generator

    if _is_workflow(given):
        return as_workload(load_workflow(given), of_nodes=of_nodes)
    return load_workload(given, seed=seed) if is_generator(given) else load_workload(given)


def _is_workflow(given: str | Path) -> bool:
    from simmodel.catalogue.formats import is_workflow

    path = Path(given)
    return path.is_file() and is_workflow(path)


def workload_of(given: GivenWork, of_nodes: Collection[str] = (), seed: int = 0) -> Log:
    """Return one workload given in any form, with its source."""
    if isinstance(given, ChunkedWorkload):
        return Log(given, source=given.source)
    source = str(given) if isinstance(given, (str, Path)) else None
    return Log(read_workload(given, of_nodes=of_nodes, seed=seed), source=source)


def in_chunks(given: GivenWork, seed: int = 0) -> ChunkedWorkload:
    """Return one workload, given in any form, as one that is read in chunks; ``seed`` as of :func:`read_workload`.

    Raises
    ------
    InputError
        if there are several
    """
    if isinstance(given, (str, Path)) and not _is_workflow(given):
        from simmodel.catalogue.workloads import is_generator, workload_in_chunks

        return workload_in_chunks(given, seed=seed) if is_generator(given) else workload_in_chunks(given)
    workload = workload_of(given).workload
    return workload if isinstance(workload, ChunkedWorkload) else ChunkedWorkload.of(workload)


def _logs(given: GivenWork, homes: Sequence[str], of_nodes: Collection[str], seed: int) -> list[Log]:
    """Return the given workloads: one, or several, by home or in the order of the places; workflows need no homes."""
    pairs: list[tuple[str | None, Any]] = [(None, given)]
    several = isinstance(given, (list, tuple)) and not any(isinstance(each, Job) for each in given)
    if isinstance(given, Mapping):
        for home in given:
            if home is not None and home not in homes:
                raise unknown("place", str(home), homes)
        pairs = list(given.items())
    elif several and are_workflows(given):
        pairs = [(None, each) for each in given]
    elif isinstance(given, (list, tuple)) and several and given and homes:
        if len(given) > len(homes):
            raise InputError(f"must be at most {len(homes)}, one per place, got {len(given)}", place="workloads")
        pairs = list(zip(homes, given, strict=False))
    works = [each for _, each in pairs] if len(pairs) == 1 else _told_apart([each for _, each in pairs])
    logs = [workload_of(each, of_nodes, seed) for each in works]
    sources = [str(each) if isinstance(each, (str, Path)) else None for _, each in pairs]
    return [
        attrs.evolve(log, home=home, source=log.source or source)
        for log, source, (home, _) in zip(logs, sources, pairs, strict=True)
    ]


def _told_apart(works: Sequence[Any]) -> list[Any]:
    """Return works in which workflows are told apart, if there are several, those of files among them."""
    from simmodel.catalogue import load_workflow

    flows = [each for each in works if are_workflows([each]) or (isinstance(each, (str, Path)) and _is_workflow(each))]
    if len(flows) < 2:
        return list(works)
    told = iter(told_apart([load_workflow(each) if isinstance(each, (str, Path)) else each for each in flows]))
    return [next(told) if any(each is flow for flow in flows) else each for each in works]


@attrs.frozen
class Tasks(Submissions):
    """Task sets, each with the instant (s) of its submission."""

    what = "tasks"

    sets: Sequence[tuple[float, TaskSet]]
    source: str | None = None

    def __len__(self) -> int:
        return sum(len(tasks) for _, tasks in self.sets)

    @property
    def title(self) -> str:
        return ", ".join(dict.fromkeys(tasks.name for _, tasks in self.sets)) or "tasks"

    def submit_to(self, system: System[Live]) -> None:
        """Plan the submission of each set at its instant."""
        for at, tasks in self.sets:
            system.submit(tasks, at=at)

    def document(self) -> list[dict[str, Any]]:
        """Return the source of all sets, or the columns of each."""
        if self.source is not None:
            return [{"source": self.source}]
        if len(self) > INLINE:
            return [{"name": self.title, "tasks": len(self)}]
        return [{"at": at, **set_columns(tasks)} for at, tasks in self.sets]


_COLUMNS = (
    *("run", "ids", "families", "implementations", "inputs", "outputs", "sizes", "names", "parents", "submit", "flop"),
    *("run_on", "cores", "memory", "priority", "amounts", "reconfiguration", "name"),
)


def set_columns(tasks: TaskSet) -> dict[str, Any]:
    """Return the columns of a task set as plain values, without the missing ones."""
    columns = {name: getattr(tasks, name) for name in _COLUMNS}
    if isinstance(tasks.ids, range):
        del columns["ids"]
    columns["run"] = [None if seconds != seconds else float(seconds) for seconds in tasks.run]
    return {name: value for name, value in columns.items() if value is not None}


def _tasks(given: GivenWork, seed: int, machine: MachineSpec | None, config: HetSimConfig | None) -> Tasks:
    """Return the given task sets with their submit times."""
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_tasks

        made = _tasks(load_tasks(given, seed, config=config, machine=machine), seed, machine, None)
        return made if config is not None else attrs.evolve(made, source=str(given))
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow

    if isinstance(given, (TaskSet, Workflow)):
        return Tasks([(0.0, TaskSet.of(given))])
    if isinstance(given, (Workload, Mapping)):
        raise InputError(
            f"must be workflows, task sets, a name or a path (machines run tasks, not jobs), got {given!r}",
            place="workload",
        )
    found: list[tuple[float, TaskSet]] = []
    for each in given if isinstance(given, Iterable) else [given]:
        at, tasks = each if isinstance(each, tuple) and len(each) == 2 else (0.0, each)
        if not isinstance(tasks, (TaskSet, Workflow)):
            raise InputError(f"must be workflows, task sets, a name or a path, got {tasks!r}", place="workload")
        if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < float("inf"):
            raise InputError(f"must be an instant >= 0 s, got {at!r}", place=f"submission of {tasks.name}")
        found.append((float(at), TaskSet.of(tasks)))
    if not found:
        raise InputError("must contain at least one workflow or task set", place="workload")
    return Tasks(found)


def read_submissions(
    what: str,
    given: GivenWork,
    *,
    homes: Sequence[str] = (),
    of_nodes: Collection[str] = (),
    seed: int = 0,
    machine: MachineSpec | None = None,
    config: HetSimConfig | None = None,
) -> Submissions:
    """Return the submissions of a given workload.

    Parameters
    ----------
    what
        the work that the system runs: ``"jobs"`` or ``"tasks"``
    given
        one workload or several; objects, names or files
    homes
        names of the places that can be homes of workloads
    of_nodes
        for workflows run as jobs: see :func:`~simmodel.work.prepare.as_workload`
    seed
        of generated jobs and tasks
    machine, config
        for generated tasks: see :func:`~simmodel.catalogue.load_tasks`

    Raises
    ------
    InputError
        if the workload is anything else

    >>> from simmodel import TaskSet
    >>> len(read_submissions("tasks", [(5.0, TaskSet([3.0, 4.0]))]))
    2
    """
    return Logs(_logs(given, homes, of_nodes, seed)) if what == "jobs" else _tasks(given, seed, machine, config)


def submissions_of_document(what: str, parts: Sequence[Mapping[str, Plain]]) -> GivenWork:
    """Return the workload stored in a scenario, as accepted by :func:`read_submissions`.

    Raises
    ------
    InputError
        if the scenario does not store all of it

    >>> from simmodel import TaskSet
    >>> work = Tasks([(5.0, TaskSet([3.0, float("nan")], run_on=[None, {"gpu": 2}], parents=[(), (0,)]))])
    >>> from simmodel.results.stores import plain
    >>> at, again = submissions_of_document("tasks", plain(work.document()))[0]
    >>> at, again.run, again.parents
    (5.0, [3.0, nan], [(), (0,)])
    """
    if what == "tasks":
        if parts and "source" in parts[0]:
            return str(parts[0]["source"])
        return [_set_of(part) for part in parts]
    logs: dict[Any, Workload | str] = {part.get("home"): _log_of(part) for part in parts}
    return logs[None] if list(logs) == [None] else logs


def _log_of(part: Mapping[str, Plain]) -> Workload | str:
    if "source" in part:
        return str(part["source"])
    if "columns" not in part:
        raise InputError(
            f"workload {part['name']!r} is not stored in the scenario (made in Python, or too large): "
            "pass it as run(workload=...)"
        )
    values: Mapping[str, Any] = part
    return Workload(values["columns"], name=values["name"], processors=values.get("processors"))


def _set_of(part: Mapping[str, Plain]) -> tuple[float, TaskSet]:
    if "run" not in part:
        raise InputError(
            f"workload {part['name']!r} is not stored in the scenario ({part['tasks']:,} tasks are too many): "
            "pass it as run(workload=...)"
        )
    at: Any = part["at"]
    return at, set_of_columns(part)


def set_of_columns(part: Mapping[str, Plain]) -> TaskSet:
    """Return the task set of the columns that :func:`set_columns` returned."""
    from simmodel.work.taskset import TaskSet

    columns: dict[str, Any] = {name: part[name] for name in _COLUMNS if name in part}
    columns["run"] = [float("nan") if seconds is None else seconds for seconds in columns["run"]]
    for name in ("implementations", "inputs", "outputs", "parents"):
        if name in columns:
            columns[name] = [None if value is None else tuple(value) for value in columns[name]]
    columns.setdefault("parents", [()] * len(columns["run"]))  # else derived from the data
    return TaskSet(columns.pop("run"), **columns)
