"""What a simulation submits: logs of jobs with their homes, or sets of tasks with their instants.

Each part is kept in a scenario as the text that names it, or as columns where it is small enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from simmodel.errors import InputError, Plain
from simmodel.systems.system import Live
from simmodel.work.job import Job
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from simmodel.formats.hetsim_config import HetSimConfig
    from simmodel.platform.machine import MachineSpec
    from simmodel.systems.system import System
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow

__all__ = ["INLINE", "GivenTasks", "GivenWork", "Logs", "Submissions", "Tasks", "read_submissions"]

INLINE = 100_000
"""Jobs or tasks that no file holds, kept in the scenario itself."""

GivenTasks: TypeAlias = (
    "TaskSet | Workflow | str | Path | Iterable[TaskSet | Workflow | tuple[float, TaskSet | Workflow]]"
)
GivenJobs = Workload | Job | str | Path | Iterable[Job] | Iterable[Workload | str | Path] | Mapping[str | None, Any]
GivenWork: TypeAlias = "GivenJobs | GivenTasks"
"""What users may give as a workload: see :func:`~simmodel.runs.simulating.simulate`."""


class Submissions:
    """What a simulation submits to a system."""

    what: ClassVar[Literal["jobs", "tasks"]]

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What a progress bar calls it."""
        raise NotImplementedError

    def submit_to(self, system: System[Live]) -> None:
        """Have all of it submitted, each part at its instant.

        Raises
        ------
        InputError
            where an instant is past
        """
        raise NotImplementedError

    def document(self) -> list[dict[str, Any]]:
        """Return plain values that say what it is, as a scenario keeps them."""
        raise NotImplementedError


@attrs.frozen
class Log:
    """A workload, the place it belongs to (``None``: no place), and the text that names it, where one does."""

    workload: Workload
    home: str | None = None
    source: str | None = None


@attrs.frozen
class Logs(Submissions):
    """Workloads of jobs."""

    what = "jobs"

    logs: Sequence[Log]

    def __len__(self) -> int:
        return sum(len(log.workload) for log in self.logs)

    @property
    def title(self) -> str:
        """The names of the workloads."""
        return ", ".join(log.workload.name for log in self.logs) or "jobs"

    def submit_to(self, system: System[Live]) -> None:
        """Have each job submitted at its instant."""
        now = system.env.now
        for log in self.logs:
            submit = log.workload["submit"]
            if (submit < now).any():
                row = int((submit < now).argmax())
                raise InputError(
                    f"arrivals at or after {now:g} s, the instant of the snapshot, expected, found job "
                    f"{log.workload['job'][row]} at {submit[row]:g} s"
                )
            system.replay(log.workload, log.home)

    def document(self) -> list[dict[str, Any]]:
        """Return the text, or the columns, of each workload."""
        return [
            ({} if log.home is None else {"home": log.home})
            | (_inlined(log.workload) if log.source is None else {"source": log.source})
            for log in self.logs
        ]


def _inlined(log: Workload) -> dict[str, Any]:
    """Return a workload as plain values, with its columns where it is small enough and they say all of it."""
    described: dict[str, Any] = {"name": log.name, "jobs": len(log)}
    if log.specs is None and len(log) <= INLINE:
        described["columns"] = {key: log[key].tolist() for key in log.table.names}
        described["processors"] = log.processors
    return described


def workload_of(given: GivenWork) -> Log:
    """Return the workload that is given as one, as jobs, as a name or as a file."""
    if isinstance(given, Workload):
        return Log(given)
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_workload

        return Log(load_workload(given), source=str(given))
    found: list[object] = list(given) if isinstance(given, Iterable) else [given]
    jobs = [job for job in found if isinstance(job, Job)]
    if len(jobs) < len(found):
        raise InputError(f"a workload, jobs, a name or a path expected, found {given!r}")
    return Log(Workload.from_jobs(jobs))


def _logs(given: GivenWork, homes: Sequence[str]) -> list[Log]:
    """Return the workloads that are given: one; or several, by their places or in the order of these."""
    if isinstance(given, Mapping):
        for home in given:
            if home is not None and home not in homes:
                raise InputError(f"workloads by the name of their place expected ({', '.join(homes)}), found {home!r}")
        return [attrs.evolve(workload_of(each), home=home) for home, each in given.items()]
    if isinstance(given, (list, tuple)) and given and homes and not any(isinstance(each, Job) for each in given):
        if len(given) > len(homes):
            raise InputError(f"at most {len(homes)} workloads expected, one a place, found {len(given)}")
        return [attrs.evolve(workload_of(each), home=home) for home, each in zip(homes, given, strict=False)]
    return [workload_of(given)]


@attrs.frozen
class Tasks(Submissions):
    """Sets of tasks, each with the instant (s) of its submission."""

    what = "tasks"

    sets: Sequence[tuple[float, TaskSet]]
    source: str | None = None

    def __len__(self) -> int:
        return sum(len(tasks) for _, tasks in self.sets)

    @property
    def title(self) -> str:
        """The names of the sets."""
        return ", ".join(dict.fromkeys(tasks.name for _, tasks in self.sets)) or "tasks"

    def submit_to(self, system: System[Live]) -> None:
        """Have each set submitted at its instant."""
        for at, tasks in self.sets:
            system.submit(tasks, at=at)

    def document(self) -> list[dict[str, Any]]:
        """Return the text of all sets, or the columns of each."""
        if self.source is not None:
            return [{"source": self.source}]
        if len(self) > INLINE:
            return [{"name": self.title, "tasks": len(self)}]
        return [{"at": at, **set_columns(tasks)} for at, tasks in self.sets]


_COLUMNS = (
    *("run", "ids", "families", "implementations", "inputs", "outputs", "sizes", "names", "parents", "submit", "flop"),
    *("run_on", "cores", "memory", "priority", "reconfiguration", "name"),
)


def set_columns(tasks: TaskSet) -> dict[str, Any]:
    """Return the columns of a set of tasks as plain values, but for those that it has not."""
    columns = {name: getattr(tasks, name) for name in _COLUMNS}
    if isinstance(tasks.ids, range):
        del columns["ids"]
    columns["run"] = [None if seconds != seconds else float(seconds) for seconds in tasks.run]
    return {name: value for name, value in columns.items() if value is not None}


def _tasks(given: GivenWork, seed: int, machine: MachineSpec | None, config: HetSimConfig | None) -> Tasks:
    """Return the task sets with the instants of their submission."""
    if isinstance(given, (str, Path)):
        from simmodel.catalogue import load_tasks

        made = _tasks(load_tasks(given, seed, config=config, machine=machine), seed, machine, None)
        return made if config is not None else attrs.evolve(made, source=str(given))
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import Workflow

    if isinstance(given, (TaskSet, Workflow)):
        return Tasks([(0.0, TaskSet.of(given))])
    if isinstance(given, (Workload, Mapping)):
        raise InputError(f"a workflow, tasks, a name or a path expected, found {given!r}: machines run tasks, not jobs")
    found: list[tuple[float, TaskSet]] = []
    for each in given if isinstance(given, Iterable) else [given]:
        at, tasks = each if isinstance(each, tuple) and len(each) == 2 else (0.0, each)
        if not isinstance(tasks, (TaskSet, Workflow)):
            raise InputError(f"a workflow, tasks, a name or a path expected, found {tasks!r}")
        if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < float("inf"):
            raise InputError(f"an instant of zero or more expected, found {at!r}", place=f"submission of {tasks.name}")
        found.append((float(at), TaskSet.of(tasks)))
    if not found:
        raise InputError("at least one workflow or task set expected, found none")
    return Tasks(found)


def read_submissions(
    what: str,
    given: GivenWork,
    *,
    homes: Sequence[str] = (),
    seed: int = 0,
    machine: MachineSpec | None = None,
    config: HetSimConfig | None = None,
) -> Submissions:
    """Return what users give as a workload.

    Parameters
    ----------
    what
        ``"jobs"`` or ``"tasks"``: what the system runs
    given
        one workload or several; objects, names or files
    homes
        the names of the places that a workload may belong to
    seed, machine, config
        of tasks that are drawn: see :func:`~simmodel.catalogue.tasks`

    Raises
    ------
    InputError
        where it is something else

    >>> from simmodel import TaskSet
    >>> len(read_submissions("tasks", [(5.0, TaskSet([3.0, 4.0]))]))
    2
    """
    return Logs(_logs(given, homes)) if what == "jobs" else _tasks(given, seed, machine, config)


def submissions_of_document(what: str, parts: Sequence[Mapping[str, Plain]]) -> GivenWork:
    """Return the workload that a scenario holds, as :func:`read_submissions` takes it.

    Raises
    ------
    InputError
        where the scenario does not hold all of it

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
            f"the workload {part['name']!r} was made in Python or is large, and is not in the scenario: "
            "give it to run(workload=...)"
        )
    said: Mapping[str, Any] = part
    return Workload(said["columns"], name=said["name"], processors=said.get("processors"))


def _set_of(part: Mapping[str, Plain]) -> tuple[float, TaskSet]:
    if "run" not in part:
        raise InputError(
            f"the work {part['name']!r} has {part['tasks']:,} tasks, and is not in the scenario: give it to "
            "run(workload=...)"
        )
    at: Any = part["at"]
    return at, set_of_columns(part)


def set_of_columns(part: Mapping[str, Plain]) -> TaskSet:
    """Return the set of tasks of such columns (see :func:`set_columns`)."""
    from simmodel.work.taskset import TaskSet

    columns: dict[str, Any] = {name: part[name] for name in _COLUMNS if name in part}
    columns["run"] = [float("nan") if seconds is None else seconds for seconds in columns["run"]]
    for name in ("implementations", "inputs", "outputs", "parents"):
        if name in columns:
            columns[name] = [None if value is None else tuple(value) for value in columns[name]]
    columns.setdefault("parents", [()] * len(columns["run"]))  # none, whatever the data say
    return TaskSet(columns.pop("run"), **columns)
