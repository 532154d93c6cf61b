"""Workflows: tasks, their dependencies, and the data that move between them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil, inf, isclose, isnan, nan
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import attrs

from simmodel.foundation.display import html_page
from simmodel.foundation.errors import InputError, Plain, UnknownKey, of_class, shown, unknown
from simmodel.foundation.units import parse_quantity
from simmodel.work.job import Dependency, Job
from simmodel.work.task import CPU_CORES, DataObject, File, RecordedMachine, Task
from simmodel.work.workload import Report

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "DataObject",
    "Edge",
    "File",
    "RecordedMachine",
    "Task",
    "Workflow",
    "levels_of",
    "longest_path",
    "topological_order",
]

K = TypeVar("K", bound=int | str)


def topological_order(parents: Mapping[K, Sequence[K]], children: Mapping[K, Sequence[K]]) -> tuple[K, ...]:
    """Return the keys in topological order, parents first; ties in the order of declaration.

    Raises
    ------
    InputError
        the graph has a cycle; the message names its keys

    >>> topological_order({"c": ["a"], "a": [], "b": []}, {"a": ["c"], "b": [], "c": []})
    ('a', 'c', 'b')
    """
    keys = list(parents)
    rank = {key: i for i, key in enumerate(keys)}
    missing = [len(found) for found in parents.values()]
    free = [i for i, count in enumerate(missing) if not count]
    order: list[K] = []
    while free:
        key = keys[heapq.heappop(free)]
        order.append(key)
        for child in children[key]:
            i = rank[child]
            missing[i] -= 1
            if not missing[i]:
                heapq.heappush(free, i)
    if len(order) < len(keys):
        raise InputError(f"tasks form a cycle: {_cycle(parents, set(order))}")
    return tuple(order)


def _cycle(parents: Mapping[K, Sequence[K]], done: Collection[K]) -> str:
    at = next(key for key in parents if key not in done)
    path: dict[K, int] = {}
    while at not in path:
        path[at] = len(path)
        at = next(parent for parent in parents[at] if parent not in done)
    cycle = [str(key) for key in (at, *reversed(list(path)[path[at] :]))]
    return " -> ".join(cycle if len(cycle) <= 12 else [*cycle[:10], "...", str(at)])


def levels_of(order: Sequence[K], parents: Mapping[K, Sequence[K]]) -> tuple[tuple[K, ...], ...]:
    """Return the keys by level, the number of edges of the longest path from a root; in a level as declared.

    >>> levels_of(["a", "c", "b"], {"c": ["a"], "a": [], "b": []})
    (('a', 'b'), ('c',))
    """
    level: dict[K, int] = {}
    for key in order:
        level[key] = 1 + max((level[parent] for parent in parents[key]), default=-1)
    found: list[list[K]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for key in parents:
        found[level[key]].append(key)
    return tuple(map(tuple, found))


def longest_path(
    order: Sequence[K],
    parents: Mapping[K, Sequence[K]],
    time: Callable[[K], float],
    between: Mapping[tuple[K, K], float],
) -> tuple[float, tuple[K, ...]]:
    """Return the length of a longest path and its keys; ties go to the keys that are first in the order.

    Parameters
    ----------
    order, parents
        a topological order, and the parents of each key
    time
        seconds of a key
    between
        seconds from a parent to a child; 0 if missing

    >>> longest_path("abc", {"a": "", "b": "a", "c": "a"}, {"a": 1, "b": 2, "c": 2}.get, {("a", "c"): 3})
    (6, ('a', 'c'))
    """
    ends: dict[K, float] = {}
    before: dict[K, K] = {}
    for key in order:
        start: float = 0
        for parent in parents[key]:
            ready = ends[parent] + between.get((parent, key), 0)
            if key not in before or ready > start:
                start, before[key] = ready, parent
        ends[key] = start + time(key)
    if not ends:
        return 0, ()
    at = max(ends, key=ends.__getitem__)
    length, path = ends[at], [at]
    while at in before:
        at = before[at]
        path.append(at)
    return length, tuple(reversed(path))


TaskId = int | str
Moved: TypeAlias = "float | str | DataObject | Iterable[DataObject] | None"
GivenEdge: TypeAlias = "tuple[TaskId, TaskId] | tuple[TaskId, TaskId, Moved] | Edge"


class Edge(NamedTuple):
    """A dependency of a child on its parent, with the data that the parent writes and the child reads."""

    parent: TaskId
    child: TaskId
    data: tuple[str, ...]
    size: float


_FIELDS = [field.name for field in attrs.fields(Task) if field.name != "id"]
_BYTES = ("size", "bytes", "weight")


def _task_of_node(node: TaskId, fields: Mapping[str, Any]) -> Task:
    """Return the task of a node of a graph: its attribute ``task``, or made of its attributes."""
    place = f"node {node!r}"
    for key in fields:
        if key not in (["task"] if "task" in fields else _FIELDS):
            known = ["task"] if "task" in fields else ["task", *_FIELDS]
            raise InputError(unknown("attribute", str(key), known).message, place=place)
    if "task" not in fields:
        return Task(id=node, **fields)
    task = of_class(fields["task"], Task, "a Task", f"{place}, task")
    if task.id != node:
        raise InputError(f"must be task {node!r}, got task {task.id!r}", place=place)
    return task


def _edge_of_graph(parent: TaskId, child: TaskId, fields: Mapping[str, Any]) -> GivenEdge:
    """Return an edge of a graph with its bytes or the names of its data."""
    place = f"edge from {parent!r} to {child!r}"
    for key in fields:
        if key not in (*_BYTES, "data"):
            raise InputError(unknown("attribute", str(key), (*_BYTES, "data")).message, place=place)
    given = {key: parse_quantity(fields[key], "B", place=f"{place}, {key}") for key in _BYTES if key in fields}
    if len(set(given.values())) > 1:
        raise InputError(f"{' and '.join(given)} must be the same bytes", place=place)
    if "data" in fields:
        data = fields["data"]
        if not isinstance(data, tuple | list):
            raise InputError(f"must be a list of names, got {shown(data)}", place=f"{place}, data")
        return Edge(parent, child, tuple(data), next(iter(given.values()), nan))
    return (parent, child, fields[next(iter(given))]) if any(given.values()) else (parent, child)


class Workflow:
    """A directed acyclic graph of tasks; independent tasks are a workflow without edges.

    All sequences keep the order in which tasks, edges and files were given.

    Parameters
    ----------
    tasks
        the tasks, with unique ids
    edges
        ``(parent, child)`` ids; ``(parent, child, bytes)`` adds a data object named ``parent->child`` that the parent
        writes and the child reads (its bytes are a number or a text such as ``"5GB"``), ``(parent, child, objects)``
        adds the given ones; or the :attr:`edges` of a workflow. ``None``: each task waits for the writers of its
        inputs. The report notes files that a task reads before another writes them, or without an order of the two
    files
        the data objects that tasks name as inputs and outputs
    name
        its name in plots and reports
    header
        metadata of its file
    report
        items that the reader skipped or repaired
    machines, makespan
        the machines on which it was recorded, and its recorded makespan in seconds, if known
    cpu_only
        whether tasks that name neither ``implementations`` nor ``run_on`` run on CPU cores only, as in files with
        recorded run times, which say nothing about accelerators; see :meth:`offloaded`
    complete
        whether files imply order, as in DAX: a task that reads a file which no task before it writes waits for those
        that write it, too; counted as repaired

    Raises
    ------
    InputError
        an argument has the wrong type, an id, edge or data object is duplicate, an edge or task names an unknown task
        or data object, or tasks form a cycle (which the message names)

    >>> tasks = [Task(id="a", run=2), Task(id="b", run=3), Task(id="c", run=4), Task(id="d", run=1)]
    >>> diamond = Workflow(tasks, [("a", "b", 100), ("a", "c", 200), ("b", "d"), ("c", "d")], name="diamond")
    >>> diamond
    <Workflow diamond: 4 tasks, 4 edges, 2 data objects>
    >>> diamond.parents("d"), diamond.levels, diamond.critical_path()
    (('b', 'c'), (('a',), ('b', 'c'), ('d',)), ('a', 'c', 'd'))
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        edges: Iterable[GivenEdge] | None = None,
        files: Iterable[DataObject] = (),
        *,
        name: str = "workflow",
        header: Mapping[str, Plain] | None = None,
        report: Report | None = None,
        machines: Iterable[RecordedMachine] = (),
        makespan: float | None = None,
        cpu_only: bool = False,
        complete: bool = False,
    ) -> None:
        self.name = name
        self.cpu_only = cpu_only
        self.header: dict[str, Any] = dict(header or {})
        self.report = report or Report()
        self.machines = tuple(machines)
        self.makespan = makespan
        lists: dict[str, object] = {"tasks": tasks, "edges": () if edges is None else edges, "files": files}
        for what, given in lists.items():
            vanish = isinstance(given, Mapping) and any(each is not None for each in given.values())
            if vanish or isinstance(given, str) or not isinstance(given, Iterable):
                raise InputError(f"must be a list, got {shown(given)}", place=what)
        self.tasks: dict[TaskId, Task] = {}
        for task in tasks:
            if of_class(task, Task, "a Task", "tasks").id in self.tasks:
                raise InputError(f"duplicate task id {task.id!r}")
            self.tasks[task.id] = task
        self.files: dict[str, DataObject] = {}
        for file in files:
            self._add_file(of_class(file, DataObject, "a DataObject", "files"))
        for task in self.tasks.values():
            for names, verb in ((task.inputs, "reads"), (task.outputs, "writes")):
                for each in names:
                    if each not in self.files:
                        raise InputError(f"task {task.id!r} {verb} unknown data object {each!r}")
        self._parents: dict[TaskId, list[TaskId]] = {task: [] for task in self.tasks}
        self._children: dict[TaskId, list[TaskId]] = {task: [] for task in self.tasks}
        self._pairs: dict[tuple[TaskId, TaskId], None] = {}
        self._add_edges(self._inferred() if edges is None else edges)
        self.order = topological_order(self._parents, self._children)
        """The ids in topological order, parents first; ties in the order of declaration."""
        if complete:
            self._complete()
        self._note_unordered()

    def _add_file(self, file: DataObject) -> None:
        if self.files.setdefault(file.name, file) != file:
            sizes = f"{self.files[file.name].size:g} and {file.size:g} bytes"
            raise InputError(f"duplicate data object {file.name!r}, with {sizes}")

    def _inferred(self) -> list[tuple[TaskId, TaskId]]:
        pairs = [(writer, task.id) for task in self for file in task.inputs for writer in self.writers(file)]
        return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))

    def _complete(self) -> None:
        """Have tasks wait for the writers of the files that they read, and that no task before them writes."""
        implied: dict[tuple[TaskId, TaskId], None] = {}
        for reader, name in self._early_reads():
            others = [each for each in self.writers(name) if each != reader]
            makers = [each for each in others if name not in self.tasks[each].inputs]  # the rest change what is there
            changes = name in self.tasks[reader].outputs
            later = self._after(reader)
            ahead = [each for each in (makers if changes else others) if each not in later]
            implied |= dict.fromkeys((each, reader) for each in (ahead if ahead or changes else makers))
        if not implied:
            return
        self.report.repaired["order that files imply, not in the file"] += len(implied)
        self._add_edges(implied)
        try:
            self.order = topological_order(self._parents, self._children)
        except InputError as error:
            message = "a task waits for those that write the files that it reads"
            raise InputError(f"{error.message}, since {message}") from None

    def _early_reads(self) -> Iterator[tuple[TaskId, str]]:
        """Yield each task with the name of a data object that it reads, no task before it writes, and others do."""
        writers = {name: set(found) for name, found in self._by_file[0].items() if found} if self.files else {}
        for task in self if writers else ():
            parents = set(self._parents[task.id])
            for name in task.inputs:
                known = writers.get(name)
                if known and known != {task.id} and known.isdisjoint(parents) and not self._follows(task.id, known):
                    yield task.id, name

    def _follows(self, task: TaskId, others: Collection[TaskId]) -> bool:
        """Whether any of the others is an ancestor of a task."""
        waiting, seen = [task], {task}
        while waiting:
            for parent in self._parents[waiting.pop()]:
                if parent in others:
                    return True
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return False

    def _after(self, task: TaskId) -> set[TaskId]:
        """Return a task and all that come after it."""
        waiting, seen = [task], {task}
        while waiting:
            new = [child for child in self._children[waiting.pop()] if child not in seen]
            seen.update(new)
            waiting += new
        return seen

    def _note_unordered(self) -> None:
        """Note the data objects that tasks read and others write in no order."""
        found = []
        for reader, name in self._early_reads():
            later = self._after(reader)
            writer = next((each for each in self._by_file[0][name] if each not in later), None)
            if writer is not None:
                found.append((reader, name, writer))
        if found:
            reader, name, writer = found[0]
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            self.report.note(
                f"task {reader!r} reads {name!r}, which {writer!r} writes, and no edge orders the two{more}: "
                "what is read is taken to exist before"
            )

    def _add_edges(self, edges: Iterable[GivenEdge]) -> None:
        moved: dict[TaskId, tuple[dict[str, None], dict[str, None]]] = {}  # names read and written by task
        for edge in edges:
            parent, child, given = self._parts(edge)
            for end in (parent, child):
                if not isinstance(end, Hashable) or end not in self.tasks:
                    raise InputError(f"edge from {parent!r} to {child!r}: unknown task {end!r}")
            if (parent, child) in self._pairs:
                raise InputError(f"duplicate edge from {parent!r} to {child!r}")
            self._pairs[parent, child] = None
            self._parents[child].append(parent)
            self._children[parent].append(child)
            if given is not None:
                for each in self._objects(parent, child, given):
                    for end, way in ((parent, 1), (child, 0)):
                        if end not in moved:
                            task = self.tasks[end]
                            moved[end] = (dict.fromkeys(task.inputs), dict.fromkeys(task.outputs))
                        moved[end][way][each.name] = None
        for end, (reads, writes) in moved.items():
            self.tasks[end] = attrs.evolve(self.tasks[end], inputs=reads, outputs=writes)
        self.__dict__.pop("_by_file", None)

    def _parts(self, edge: GivenEdge) -> tuple[TaskId, TaskId, Moved]:
        """Return the ends of an edge as it was given, and what it moves."""
        if isinstance(edge, Edge):
            return edge.parent, edge.child, self._named(edge)
        if isinstance(edge, str) or not isinstance(edge, Sequence) or not 2 <= len(edge) <= 3:
            accepted = "(parent, child) or (parent, child, bytes or data objects)"
            raise InputError(f"must be {accepted}, got {shown(edge)}", place="edges")
        return edge[0], edge[1], edge[2] if len(edge) == 3 else None

    def _objects(self, parent: TaskId, child: TaskId, given: Moved) -> list[DataObject]:
        """Register the data objects of an edge that was given with bytes or objects, and return them."""
        if isinstance(given, (int, float, str, Real)):
            size: Any = given
            given = DataObject(f"{parent}->{child}", size)
            if given.name in self.files:
                raise InputError(f"duplicate data object {given.name!r}: the edge adds one of this name")
        objects: list[Any] = list(given) if isinstance(given, Iterable) else [given]
        for each in objects:
            self._add_file(of_class(each, DataObject, "bytes or data objects", f"edge from {parent!r} to {child!r}"))
        return objects

    def _named(self, edge: Edge) -> list[DataObject]:
        """Return the data objects that an edge names; their bytes must be those of the edge."""
        place = f"edge from {edge.parent!r} to {edge.child!r}"
        for name in edge.data:
            if name not in self.files:
                raise InputError(unknown("data object", str(name), self.files).message, place=place)
        objects = [self.files[name] for name in edge.data]
        size = sum(each.size for each in objects)
        if not (isclose(edge.size, size) or isnan(edge.size)):
            raise InputError(f"must have the {size:.15g} bytes of its data, got {edge.size:.15g}", place=place)
        return objects

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph[TaskId], *, name: str | None = None) -> Workflow:
        """Return the workflow of a directed graph.

        Nodes have a ``task`` or the fields of one. Edges have ``size``, ``bytes`` or ``weight``, all of them bytes, a
        number or a text such as ``"5GB"``; or, as in :meth:`to_networkx`, the names of their ``data``, which are in
        ``graph.graph["files"]``. Other entries of ``graph.graph`` become the header.

        Raises
        ------
        InputError
            the graph is not directed, a node or an edge has an unknown attribute, or as :class:`Workflow`

        >>> import networkx as nx
        >>> graph = nx.DiGraph([("a", "b", {"size": 8e6})])
        >>> nx.set_node_attributes(graph, 5, "run")
        >>> Workflow.from_networkx(graph).critical_path_length()
        10
        """
        import networkx as nx

        given: object = graph
        if not isinstance(given, nx.DiGraph):
            hint = ": its edges do not say which task comes first" if isinstance(given, nx.Graph) else ""
            raise InputError(f"must be a networkx.DiGraph, got {type(graph).__name__}{hint}", place="graph")
        header = dict(graph.graph)
        files = of_class(header.pop("files", {}), dict, "data objects by name", "graph.graph['files']")
        own = header.pop("name", None)
        tasks = [_task_of_node(node, fields) for node, fields in graph.nodes.items()]
        edges = [_edge_of_graph(*edge) for edge in graph.edges(data=True)]
        return cls(tasks, edges, files.values(), name=name or own or "workflow", header=header)

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks.values())

    def __getitem__(self, task: TaskId) -> Task:
        return self.tasks[task]

    def __contains__(self, task: object) -> bool:
        return task in self.tasks

    def parents(self, task: TaskId) -> tuple[TaskId, ...]:
        """Return the ids of the tasks that this one waits for."""
        return tuple(self._parents[task])

    def children(self, task: TaskId) -> tuple[TaskId, ...]:
        """Return the ids of the tasks that wait for this one."""
        return tuple(self._children[task])

    def reads(self, task: TaskId) -> tuple[DataObject, ...]:
        """Return the data objects that a task reads, in the order of its inputs."""
        return tuple(self.files[name] for name in self.tasks[task].inputs)

    def writes(self, task: TaskId) -> tuple[DataObject, ...]:
        """Return the data objects that a task writes, in the order of its outputs."""
        return tuple(self.files[name] for name in self.tasks[task].outputs)

    @cached_property
    def _by_file(self) -> tuple[dict[str, list[TaskId]], dict[str, list[TaskId]]]:
        writers: dict[str, list[TaskId]] = {name: [] for name in self.files}
        readers: dict[str, list[TaskId]] = {name: [] for name in self.files}
        for task in self:
            for found, names in ((writers, task.outputs), (readers, task.inputs)):
                for name in dict.fromkeys(names):
                    found[name].append(task.id)
        return writers, readers

    def writers(self, file: str) -> tuple[TaskId, ...]:
        """Return the ids of the tasks that write a data object; several tasks may write the same name."""
        return tuple(self._by_file[0][file])

    def readers(self, file: str) -> tuple[TaskId, ...]:
        """Return the ids of the tasks that read a data object."""
        return tuple(self._by_file[1][file])

    @property
    def inputs(self) -> tuple[DataObject, ...]:
        """The data objects that must exist before the workflow starts.

        That is, those read by a task of which no ancestor writes them.
        """
        return tuple(
            file for name, file in self.files.items() if any(self._comes_with(r, name) for r in self.readers(name))
        )

    def _comes_with(self, reader: TaskId, name: str) -> bool:
        """Whether no ancestor of the reader writes the data object."""
        writers = {writer for writer in self._by_file[0][name] if writer != reader}
        return not (writers and self._follows(reader, writers))

    @property
    def outputs(self) -> tuple[DataObject, ...]:
        """The data objects that are written, and read by no task."""
        return tuple(file for name, file in self.files.items() if self.writers(name) and not self.readers(name))

    @property
    def roots(self) -> tuple[TaskId, ...]:
        """The ids of the tasks without parents."""
        return tuple(task for task, parents in self._parents.items() if not parents)

    @property
    def sinks(self) -> tuple[TaskId, ...]:
        """The ids of the tasks without children."""
        return tuple(task for task, children in self._children.items() if not children)

    @cached_property
    def _data(self) -> dict[tuple[TaskId, TaskId], tuple[str, ...]]:
        found: dict[tuple[TaskId, TaskId], list[str]] = {}
        for child, listed in self._parents.items():
            parents = set(listed)
            for name in dict.fromkeys(self.tasks[child].inputs) if parents else ():
                for writer in self._by_file[0][name]:
                    if writer in parents:
                        found.setdefault((writer, child), []).append(name)
        return {pair: tuple(names) for pair, names in found.items()}

    def data(self, parent: TaskId, child: TaskId) -> tuple[DataObject, ...]:
        """Return the data objects that a task writes and its child reads; empty for a pure precedence edge.

        >>> flow = Workflow([Task(id=1), Task(id=2)], [(1, 2, 500)])
        >>> flow.data(1, 2)
        (DataObject(name='1->2', size=500),)
        """
        if (parent, child) not in self._pairs:
            raise UnknownKey(f"unknown dependency: no edge leads from {shown(parent)} to {shown(child)}")
        return tuple(self.files[name] for name in self._data.get((parent, child), ()))

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All edges in the order in which they were given, with the names and total bytes of their data."""
        sized = ((pair, self._data.get(pair, ())) for pair in self._pairs)
        return tuple(Edge(*pair, names, sum(self.files[name].size for name in names)) for pair, names in sized)

    def unlisted(self) -> list[tuple[TaskId, TaskId, str]]:
        """Return (writer, reader, name) for each task that reads the output of another without an edge from it.

        Files reuse names, so this need not be an error in the edges.
        """
        return [
            (writer, reader, name)
            for name in self.files
            for reader in self.readers(name)
            for writer in self.writers(name)
            if writer != reader and writer not in self._parents[reader]
        ]

    @cached_property
    def levels(self) -> tuple[tuple[TaskId, ...], ...]:
        """The ids by level, the number of edges of the longest path from a root; in a level as declared."""
        return levels_of(self.order, self._parents)

    def critical_path(
        self, time: Callable[[Task], float] = Task.run_time, transfer: Callable[[Edge], float] | None = None
    ) -> tuple[TaskId, ...]:
        """Return the ids of the tasks on a longest path.

        Parameters
        ----------
        time
            seconds of a task
        transfer
            seconds of an edge; default: data move in zero time

        >>> tasks = [Task(id="a", run=2), Task(id="b", run=3), Task(id="c", run=4)]
        >>> flow = Workflow(tasks, [("a", "b", 1000), ("a", "c")])
        >>> flow.critical_path(), flow.critical_path(transfer=lambda edge: edge.size / 100)
        (('a', 'c'), ('a', 'b'))
        """
        return self._longest(time, transfer)[1]

    def critical_path_length(
        self, time: Callable[[Task], float] = Task.run_time, transfer: Callable[[Edge], float] | None = None
    ) -> float:
        """Return the seconds of a longest path; see :meth:`critical_path`."""
        return self._longest(time, transfer)[0]

    def _longest(
        self, time: Callable[[Task], float], transfer: Callable[[Edge], float] | None
    ) -> tuple[float, tuple[TaskId, ...]]:
        moved = {(edge.parent, edge.child): transfer(edge) for edge in self.edges} if transfer else {}
        return longest_path(self.order, self._parents, lambda task: time(self.tasks[task]), moved)

    def total_work(self, time: Callable[[Task], float] = Task.run_time) -> float:
        """Return the total run time of all tasks in seconds.

        >>> Workflow([Task(id=1, run=2), Task(id=2, run=3)]).total_work()
        5
        """
        return sum(map(time, self.tasks.values()))

    def map(self, change: Callable[[Task], Task], *, data: float = 1.0, name: str | None = None) -> Workflow:
        """Return the workflow with each task changed and all sizes multiplied by ``data``; ids and edges stay.

        >>> import attrs
        >>> flow = Workflow([Task(id=1, run=2), Task(id=2, run=3)], [(1, 2, 500)])
        >>> double = flow.map(lambda task: attrs.evolve(task, run=2 * task.run), data=10)
        >>> double.total_work(), double.edges[0].size
        (10, 5000)
        """
        files = self.files.values() if data == 1 else [DataObject(f.name, f.size * data) for f in self.files.values()]
        new = self._like(map(change, self), list(self._pairs), files, name or self.name)
        if list(new.tasks) != list(self.tasks):
            raise InputError("change: must keep the ids of tasks")
        return new

    def labelled(self, label: str, shared: Collection[str] = ()) -> Workflow:
        """Return the workflow with ``label:`` before its ids and the names of its data objects, except shared ones.

        >>> flow = Workflow([Task(id=1), Task(id=2)], [(1, 2, 500)]).labelled("a")
        >>> flow.name, list(flow.tasks), list(flow.files)
        ('a', ['a:1', 'a:2'], ['a:1->2'])
        """
        names = {name: name if name in shared else f"{label}:{name}" for name in self.files}

        def moved(task: Task) -> Task:
            reads, writes = ([names[each] for each in files] for files in (task.inputs, task.outputs))
            return attrs.evolve(task, id=f"{label}:{task.id}", inputs=reads, outputs=writes)

        pairs = [(f"{label}:{parent}", f"{label}:{child}") for parent, child in self._pairs]
        files = [DataObject(names[file.name], file.size) for file in self.files.values()]
        return self._like(map(moved, self), pairs, files, label)

    def _like(
        self, tasks: Iterable[Task], pairs: Iterable[GivenEdge], files: Iterable[DataObject], name: str
    ) -> Workflow:
        """Return a workflow with the properties of this one."""
        about: dict[str, Any] = {"header": self.header, "cpu_only": self.cpu_only}
        new = Workflow(tasks, pairs, files, name=name, machines=self.machines, makespan=self.makespan, **about)
        new.report = self.report  # whose notes name the tasks as they were
        return new

    def offloaded(self, where: Mapping[str, tuple[str | Iterable[str], float]]) -> Workflow:
        """Return the workflow in which some tasks may run on accelerators, too.

        Parameters
        ----------
        where
            by family or name of tasks: a type of processors (or several) and the speed-up there over ``run``

        Raises
        ------
        InputError
            no task has one of these families or names, a speed-up is not above zero, or a run time is unknown

        >>> flow = Workflow([Task(id="a", run=20, family="fft"), Task(id="b", run=2)], cpu_only=True)
        >>> flow.offloaded({"fft": ("GPU", 10)})["a"].run_on
        {'GPU': 2.0}
        """
        known = {name for task in self for name in (task.family, task.name) if name is not None}
        for name, (_, gain) in where.items():
            if name not in known:
                raise unknown("family or name of tasks", name, sorted(known))
            if not 0 < gain < inf:
                raise InputError(f"must be a speed-up > 0, got {gain!r}", place=f"where[{name!r}]")

        def moved(task: Task) -> Task:
            given = where.get(task.family or "") or where.get(task.name or "")
            if given is None:
                return task
            if task.run is None:
                raise InputError(f"{self.name}: unknown run time of task {task.id!r}")
            types = (given[0],) if isinstance(given[0], str) else tuple(given[0])
            own = CPU_CORES if task.implementations is None else task.implementations
            return attrs.evolve(
                task,
                implementations=tuple(dict.fromkeys((*own, *types))),
                run_on={**task.run_on, **dict.fromkeys(types, task.run / given[1])},
            )

        return self.map(moved)

    def jobs(self, *, nodes: bool = False, memory: bool = False, files: bool = False) -> list[Job]:
        """Return the tasks as batch jobs, submitted at 0: each waits for the success of its parents.

        A job has the id, name, run time, cores (rounded up) and priority of its task. Data move in no time, unless the
        jobs have files and run in a grid.

        Parameters
        ----------
        nodes
            whether each job requests its cores on one node, instead of any processors
        memory
            whether it requests the memory of its task too, on that node
        files
            whether it reads and writes the data objects of its task, as files of a grid

        Raises
        ------
        InputError
            a task has no run time, or ``memory`` is requested without ``nodes``

        >>> flow = Workflow([Task(id="a", run=2, cores=4), Task(id="b", run=3)], [("a", "b")])
        >>> flow.jobs()[1]
        Job(id='b', processors=1, run=3, dependencies=(Dependency(job='a', after='success'),))
        >>> flow.jobs(nodes=True)[0].nodes, flow.jobs()[0].processors
        (1, 4)
        """
        if memory and not nodes:
            raise InputError("must be False without nodes=True: memory is requested of nodes", place="memory")
        found = []
        for task in self:
            if task.run is None:
                message = "must have a run time (run, in s) to be a batch job, got none"
                raise InputError(message, place=f"{self.name}, task {task.id!r}")
            cores = ceil(task.cores)
            asked: dict[str, Any] = {"nodes": 1, "cores_per_node": cores} if nodes else {"processors": cores}
            if memory:
                asked["memory_per_node"] = task.memory
            if files:
                asked |= {"inputs": task.inputs, "outputs": dict.fromkeys(self.writes(task.id))}
            waits = [Dependency(parent, after="success") for parent in self._parents[task.id]]
            found.append(
                Job(id=task.id, name=task.name, run=task.run, priority=task.priority, dependencies=waits, **asked)
            )
        return found

    @cached_property
    def graph(self) -> nx.DiGraph[Any]:
        """The frozen graph, built on first access; :meth:`to_networkx` returns a copy that can be changed."""
        import networkx as nx

        frozen: nx.DiGraph[Any] = nx.freeze(self.to_networkx())
        return frozen

    def to_networkx(self) -> nx.DiGraph[Any]:
        """Return a ``networkx.DiGraph``: nodes have their ``task``, edges ``data`` (names) and ``size`` in bytes.

        >>> graph = Workflow([Task(id="a"), Task(id="b")], [("a", "b", 500)]).to_networkx()
        >>> graph.edges["a", "b"]
        {'data': ('a->b',), 'size': 500}
        >>> list(Workflow.from_networkx(graph).files)
        ['a->b']
        """
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph(name=self.name, files=dict(self.files))
        graph.add_nodes_from((id_, {"task": task}) for id_, task in self.tasks.items())
        graph.add_edges_from((p, c, {"data": data, "size": size}) for p, c, data, size in self.edges)
        return graph

    def summary(self) -> dict[str, Any]:
        """Return key figures: tasks, edges, levels, width, bytes; work and critical path in seconds, if known."""
        found: dict[str, Any] = {
            "tasks": len(self),
            "edges": len(self._pairs),
            "roots": len(self.roots),
            "sinks": len(self.sinks),
            "levels": len(self.levels),
            "width": max(map(len, self.levels), default=0),
            "families": len({task.family for task in self if task.family is not None}),
            "data objects": len(self.files),
            "bytes": sum(file.size for file in self.files.values()),
        }
        if self.tasks and all(task.run is not None for task in self):
            found |= {"work": self.total_work(), "critical path": self.critical_path_length()}
        elif self.tasks and all(task.flop is not None for task in self):
            found["flop"] = sum(task.flop or 0.0 for task in self)
        if self.makespan is not None:
            found["recorded makespan"] = self.makespan
        return found

    def __repr__(self) -> str:
        return f"<Workflow {self.name}: {len(self)} tasks, {len(self._pairs)} edges, {len(self.files)} data objects>"

    def _repr_html_(self) -> str:
        rows = [(key, f"{value:,.6g}") for key, value in self.summary().items()]
        families = Counter(task.family for task in self if task.family is not None).most_common(8)
        rows += [(f"tasks of {family}", f"{count:,}") for family, count in families]
        return html_page(self.name, [("", "value"), *rows], notes=self.report.lines())
