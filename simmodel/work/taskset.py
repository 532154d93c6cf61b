"""Task sets: many tasks as columns, the form in which machines run them, without one object per task.

A submitted workflow is converted to a task set; sets of hundreds of thousands of tasks are built directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan, nan
from types import MappingProxyType
from typing import Any

from simmodel.foundation.display import Cells, Shown
from simmodel.foundation.errors import InputError
from simmodel.work.task import CPU_CORES, SHARE, DataObject, Task, shares_of
from simmodel.work.workflow import Workflow, topological_order
from simmodel.work.workload import Report

__all__ = ["LiveData", "LiveTask", "TaskSet"]

TaskId = int | str
_NONE: tuple[int, ...] = ()


class TaskSet(Shown):
    """Tasks as columns of equal length; a column that is ``None`` applies to no task.

    Parameters
    ----------
    run
        run time of each task in seconds on the reference processor; nan if ``run_on``, ``flop`` or ``amounts`` say
    ids
        unique identifiers of the tasks; default: 0, 1, 2 ...
    families, implementations
        family of each task, and the types of processors that can run it (``None``: all)
    inputs, outputs
        for each task the positions in ``sizes`` of the data objects that it reads and writes, in the order of their
        transfers
    sizes, names
        bytes and names of the data objects (names by default ``d0``, ``d1`` ...)
    parents
        for each task the positions of the tasks that it waits for; default: the writers of its inputs
    submit
        arrival of each task in seconds after the submission of the set
    flop, run_on, cores, memory, priority, amounts
        for each task as in :class:`~simmodel.work.task.Task`
    reconfiguration
        seconds to load a family, for families that do not take the time of the processor
    name, report
        name of the set in results; items skipped or repaired when it was read
    workflow
        the workflow that the set was made from

    Raises
    ------
    InputError
        columns differ in length, an amount is negative, a data object or task is unknown, or tasks form a cycle

    >>> tasks = TaskSet([3.0, 4.0], inputs=[(), (0,)], outputs=[(0,), ()], sizes=[1e6])
    >>> tasks, tasks.parents, tasks.children
    (<TaskSet tasks: 2 tasks, 1 data object>, [(), (0,)], [(1,), ()])
    """

    def __init__(
        self,
        run: Sequence[float],
        *,
        ids: Sequence[TaskId] | None = None,
        families: Sequence[str | None] | None = None,
        implementations: Sequence[tuple[str, ...] | None] | None = None,
        inputs: Sequence[tuple[int, ...]] | None = None,
        outputs: Sequence[tuple[int, ...]] | None = None,
        sizes: Sequence[float] = (),
        names: Sequence[str] | None = None,
        parents: Sequence[tuple[int, ...]] | None = None,
        submit: Sequence[float] | None = None,
        flop: Sequence[float | None] | None = None,
        run_on: Sequence[Mapping[str, float] | None] | None = None,
        cores: Sequence[float] | None = None,
        memory: Sequence[float] | None = None,
        priority: Sequence[float] | None = None,
        amounts: Sequence[Mapping[str, float] | None] | None = None,
        reconfiguration: Mapping[str, float] | None = None,
        name: str = "tasks",
        report: Report | None = None,
        workflow: Workflow | None = None,
    ) -> None:
        self.name = name
        self.report = report or Report()
        self.run = run
        self.ids: Sequence[TaskId] = range(len(run)) if ids is None else ids
        self.families = families
        self.implementations = implementations
        self.inputs = inputs
        self.outputs = outputs
        self.sizes = sizes
        self.names = names
        self.submit = submit
        self.flop = flop
        self.run_on = run_on
        self.cores = cores
        self.memory = memory
        self.priority = priority
        self.amounts = amounts
        self.reconfiguration = dict(reconfiguration or {})
        self.known_workflow = workflow  # source of this set, or made from it
        self._check()
        self.parents: Sequence[tuple[int, ...]] | None = self._writers() if parents is None else parents
        self.children = self._check_parents()

    def __len__(self) -> int:
        return len(self.run)

    def __repr__(self) -> str:
        plural = "" if len(self.sizes) == 1 else "s"
        return f"<TaskSet {self.name}: {len(self)} tasks, {len(self.sizes)} data object{plural}>"

    def _cells(self) -> Cells:
        edges = 0 if self.parents is None else sum(map(len, self.parents))
        families = Counter(family for family in self.families if family is not None) if self.families else Counter()
        rows = [["tasks", f"{len(self):,}"], ["edges", f"{edges:,}"], ["data objects", f"{len(self.sizes):,}"]]
        rows.append(["bytes", f"{sum(self.sizes):,.6g}"])
        rows += [[f"tasks of {family}", f"{count:,}"] for family, count in families.most_common(8)]
        return [["", "value"], *rows]

    # ------------------------------------------------------------------ checks

    def _check(self) -> None:
        n = len(self)
        columns = ("ids", "families", "implementations", "inputs", "outputs", "submit", "flop", "run_on")
        for column in (*columns, "cores", "memory", "priority", "amounts"):
            found = getattr(self, column)
            if found is not None and len(found) != n:
                raise InputError(f"must have {n} values, one for each task, got {len(found)}", place=column)
        for i, seconds in enumerate(self.run):
            if not 0 <= seconds < inf and not (isnan(seconds) and (self.run_on or self.flop or self.amounts)):
                raise InputError(f"must be a number >= 0 (s), got {seconds!r}", place=f"run of {self.ids[i]!r}")
        for column in ("submit", "memory"):
            for i, value in enumerate(getattr(self, column) or ()):
                if not 0 <= value < inf:
                    place = f"{column} of {self.ids[i]!r}"
                    raise InputError(f"must be a finite number >= 0, got {value!r}", place=place)
        if not isinstance(self.ids, range) and len(dict.fromkeys(self.ids)) < n:
            seen: dict[TaskId, None] = {}
            for each in self.ids:
                if each in seen:
                    raise InputError(f"duplicate task id {each!r}")
                seen[each] = None
        for d, size in enumerate(self.sizes):
            if not 0 <= size < inf:
                raise InputError(f"must be a number >= 0 (bytes), got {size!r}", place=f"size of {self.data_name(d)}")
        for column, verb in (("inputs", "reads"), ("outputs", "writes")):
            for i, found in enumerate(getattr(self, column) or ()):
                if len(found) > 1 and len(dict.fromkeys(found)) < len(found):
                    raise InputError(f"task {self.ids[i]!r} {verb} a data object twice: {list(found)}")
                for d in found:
                    if not 0 <= d < len(self.sizes):
                        raise InputError(f"task {self.ids[i]!r} {verb} unknown data object {d!r}")

    def _writers(self) -> list[tuple[int, ...]] | None:
        if self.inputs is None or self.outputs is None:
            return None
        writers: dict[int, list[int]] = {}
        for i, written in enumerate(self.outputs):
            for d in written:
                writers.setdefault(d, []).append(i)
        return [
            tuple(dict.fromkeys(w for d in read for w in writers.get(d, _NONE) if w != i)) if read else _NONE
            for i, read in enumerate(self.inputs)
        ]

    def _check_parents(self) -> Sequence[Sequence[int]] | None:
        parents = self.parents
        if parents is None or not any(parents):
            self.parents = None
            return None
        n = len(self)
        if len(parents) != n:
            raise InputError(f"must have {n} values, one for each task, got {len(parents)}", place="parents")
        children: list[list[int] | None] = [None] * n
        forward = True
        for i, found in enumerate(parents):
            for parent in found:
                if not 0 <= parent < n:
                    raise InputError(f"task {self.ids[i]!r} waits for unknown task {parent!r}")
                forward = forward and parent < i
                known = children[parent]
                if known is None:
                    children[parent] = [i]
                else:
                    known.append(i)
        found_children = [tuple(found) if found else _NONE for found in children]
        if not forward:  # else the rows are in topological order already
            try:
                topological_order(dict(enumerate(parents)), dict(enumerate(found_children)))
            except InputError as error:
                raise InputError(error.message, source=self.name) from None
        return found_children

    # ------------------------------------------------------------------ other forms

    @classmethod
    def of(cls, workflow: Workflow | TaskSet) -> TaskSet:
        """Return the tasks of a workflow as columns.

        >>> flow = Workflow([Task(id="a", run=1), Task(id="b", run=2)], [("a", "b", 1e6)])
        >>> TaskSet.of(flow).names
        ['a->b']
        """
        if isinstance(workflow, TaskSet):
            return workflow
        if not isinstance(workflow, Workflow):
            raise InputError(f"must be a Workflow or a TaskSet, got {workflow!r}")
        tasks = list(workflow)
        row = {task.id: i for i, task in enumerate(tasks)}
        data = {name: d for d, name in enumerate(workflow.files)}
        for task in tasks:
            if task.run is None and task.flop is None and not task.run_on and not task.amounts:
                raise InputError(f"{workflow.name}: unknown run time of task {task.id!r}")
        amounts = [task.all_amounts for task in tasks]
        return cls(
            [float("nan") if task.run is None else float(task.run) for task in tasks],
            ids=[task.id for task in tasks],
            families=[task.family for task in tasks],
            implementations=[
                CPU_CORES
                if workflow.cpu_only and task.implementations is None and not task.run_on
                else task.implementations
                for task in tasks
            ],
            inputs=[tuple(data[name] for name in dict.fromkeys(task.inputs)) for task in tasks],
            outputs=[tuple(data[name] for name in dict.fromkeys(task.outputs)) for task in tasks],
            sizes=[float(file.size) for file in workflow.files.values()],
            names=list(data),
            parents=[tuple(row[parent] for parent in workflow.parents(task.id)) for task in tasks],
            flop=[task.flop for task in tasks],
            run_on=[task.run_on or None for task in tasks],
            cores=[task.cores for task in tasks],
            memory=[task.memory for task in tasks],
            priority=[task.priority for task in tasks],
            amounts=[each or None for each in amounts] if any(amounts) else None,
            name=workflow.name,
            report=workflow.report,
            workflow=workflow,
        )

    def data_name(self, data: int) -> str:
        """Return the name of the data object at a position."""
        return f"d{data}" if self.names is None else self.names[data]

    def __iter__(self) -> Iterator[Task]:
        """Yield the tasks as :class:`~simmodel.work.task.Task` values."""
        for i in range(len(self)):
            yield self.task(i)

    def task(self, i: int) -> Task:
        """Return the task at a position as a :class:`~simmodel.work.task.Task`."""
        run = self.run[i]
        amounts = (self.amounts[i] if self.amounts else None) or {}
        return Task(
            id=self.ids[i],
            run=None if isnan(run) else run,
            flop=self.flop[i] if self.flop else None,
            run_on=(self.run_on[i] if self.run_on else None) or {},
            family=self.families[i] if self.families else None,
            implementations=self.implementations[i] if self.implementations else None,
            inputs=[self.data_name(d) for d in self.inputs[i]] if self.inputs else (),
            outputs=[self.data_name(d) for d in self.outputs[i]] if self.outputs else (),
            cores=self.cores[i] if self.cores else 1,
            memory=self.memory[i] if self.memory else 0.0,
            priority=self.priority[i] if self.priority else 0.0,
            amounts={name: value for name, value in amounts.items() if not name.startswith(SHARE)},
            bandwidth=shares_of(amounts),
        )

    def workflow(self) -> Workflow:
        """Return the workflow of these tasks, with one :class:`~simmodel.work.task.Task` each and a graph.

        >>> TaskSet([1.0, 2.0], parents=[(), (0,)]).workflow().critical_path_length()
        3.0
        """
        if self.known_workflow is None:
            ids, parents = self.ids, self.parents or ()
            edges = [(ids[parent], ids[i]) for i, found in enumerate(parents) for parent in found]
            files = [DataObject(self.data_name(d), size) for d, size in enumerate(self.sizes)]
            self.known_workflow = Workflow(self, edges, files, name=self.name, report=self.report)
        return self.known_workflow

    def summary(self) -> dict[str, Any]:
        """Return key figures: tasks, data objects, bytes, families, and seconds on the reference processor."""
        return {
            "tasks": len(self),
            "data objects": len(self.sizes),
            "bytes": sum(self.sizes),
            "families": len(dict.fromkeys(self.families or ())),
            "work": sum(seconds for seconds in self.run if not isnan(seconds)),
        }


_NOTHING: Mapping[str, float] = MappingProxyType({})


class LiveData:
    """A data object in one simulation.

    Attributes
    ----------
    name, size
        its name, and its size in bytes
    copies
        the memory pools that hold a copy, in the order in which they received it
    coming
        the memory pool in which a task is writing it
    written
        whether it exists: written by a task, or an input of the workflow
    readers
        number of submitted tasks that have yet to read it
    kept
        whether it is a result: written, and read by no task
    """

    __slots__ = ("_name", "coming", "copies", "kept", "readers", "size", "written")

    def __init__(self, name: str | int, size: float) -> None:
        self._name = name  # a number: of nameless data
        self.size = size
        self.copies: tuple[Any, ...] = ()
        self.coming: Any = None
        self.written = False
        self.readers = 0
        self.kept = False

    @property
    def name(self) -> str:
        return f"d{self._name}" if type(self._name) is int else str(self._name)

    def __repr__(self) -> str:
        where = ", ".join(pool.name for pool in self.copies) or "no pool"
        return f"<LiveData {self.name}: {self.size:g} bytes in {where}>"


class LiveTask:
    """A task in one simulation, as systems and policies handle it.

    Attributes
    ----------
    id, set, row, index
        its name; its task set and its row there; its row in the machine's record
    state
        ``"to come"``, ``"blocked"`` (parents not done), ``"waiting"`` (for a decision), ``"assigned"`` (in the queue
        of a processor), ``"running"`` (holds its processor), ``"done"`` or ``"cancelled"``
    place
        the processor that it was assigned to
    speeds
        expected seconds by kind of processor (see ``Processor.kind``); ``inf`` if it cannot run there
    family, cores, memory, priority
        as in :class:`~simmodel.work.task.Task`; a task without a family is a family by itself
    inputs, outputs
        the data objects that it reads and writes
    submit, ready, assigned
        instants in seconds; nan until reached
    missing, children
        number of its parents that are not done; the tasks that wait for it
    share
        expected seconds that it adds to the queue of its processor
    stamps
        while a processor works on it: the instants (s) at which its phases began so far (see
        :data:`~simmodel.resources.processors.services.STAMPS`)
    core, core_since
        the CPU core held by its setup or transfer; for a transfer, since when (s)
    attempts, done_share
        number of times it started; share of its work done before it was suspended
    """

    __slots__ = (
        "_error",
        "assigned",
        "attempts",
        "children",
        "core",
        "core_since",
        "cores",
        "done_share",
        "family",
        "id",
        "index",
        "inputs",
        "memory",
        "missing",
        "outputs",
        "place",
        "priority",
        "ready",
        "row",
        "set",
        "share",
        "speeds",
        "stamps",
        "state",
        "submission",
        "submit",
    )

    def __init__(
        self,
        id: int | str,
        set: TaskSet,
        row: int,
        index: int,
        speeds: tuple[float, ...],
        error: float,
        inputs: tuple[LiveData, ...],
        outputs: tuple[LiveData, ...],
        missing: int,
        submission: Any,
    ) -> None:
        self.id = id
        self.set = set
        self.row = row
        self.index = index
        self.state = "to come"
        self.place: Any = None
        self.speeds = speeds
        self._error = error  # from -1 to 1, multiplied by the model error of the processor
        self.inputs = inputs
        self.outputs = outputs
        self.missing = missing
        self.children: tuple[LiveTask, ...] | list[LiveTask] = ()
        self.submission = submission
        self.submit = self.ready = self.assigned = self.core_since = nan
        self.share = self.done_share = 0.0
        self.memory = self.priority = 0.0
        self.attempts = 0
        self.stamps: list[float] | None = None
        self.core: Any = None
        self.cores: float = 1
        self.family: Any = self

    @property
    def planned(self) -> float:
        """Its least expected run time in seconds over all processors, as orders of waiting work use it."""
        return min(self.speeds)

    requested = planned

    @property
    def amounts(self) -> Mapping[str, float]:
        """Numbers by name that models of processors read; read-only."""
        column = self.set.amounts
        return (None if column is None else column[self.row]) or _NOTHING

    def altered(self) -> str | None:
        """Return how other code, such as a policy, has changed its request, or ``None``."""
        row, tasks, live = self.row, self.set, self.submission
        families = tasks.families
        if (
            self.speeds is live.rows[row]
            and self.inputs is live.inputs[row]
            and self.outputs is live.outputs[row]
            and self.family is ((families[row] if families is not None else None) or self)
            and self.cores == (1 if tasks.cores is None else tasks.cores[row])
            and self.memory == (0 if tasks.memory is None else tasks.memory[row])
            and self.priority == (0 if tasks.priority is None else tasks.priority[row])
        ):
            return None
        return self._altered()

    def _altered(self) -> str | None:
        row, tasks, live = self.row, self.set, self.submission
        asked = (
            ("speeds", live.rows[row]),
            ("cores", 1 if tasks.cores is None else tasks.cores[row]),
            ("memory", 0.0 if tasks.memory is None else tasks.memory[row]),
            ("priority", 0.0 if tasks.priority is None else tasks.priority[row]),
            ("inputs", live.inputs[row]),
            ("outputs", live.outputs[row]),
            ("family", self if tasks.families is None or tasks.families[row] is None else tasks.families[row]),
        )
        for name, before in asked:
            now = getattr(self, name)
            if now is not before and now != before:
                return f"cannot change {name} from {before!r} to {now!r}: tasks are read-only"
        return None

    def __repr__(self) -> str:
        return f"<LiveTask {self.id}: {self.state}>"
