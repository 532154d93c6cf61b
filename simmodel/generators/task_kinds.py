"""The generators of work for machines, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, Plain, unknown
from simmodel.foundation.units import parse_quantity
from simmodel.generators.distributions import Amount, Count, Streams
from simmodel.generators.layers import layered, layered_with_costs, with_costs
from simmodel.generators.tasksets import changed, database, mix, mixture, random_tasks
from simmodel.work.task import DataObject, Task
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import GivenEdge, Workflow

__all__ = ["TASK_KINDS", "TaskKind", "Work"]

Work = TaskSet | Workflow | list[tuple[float, TaskSet | Workflow]]
"""Work for a machine: a task set, a workflow, or pairs of an instant (s) and one of these."""


@attrs.frozen(kw_only=True, repr=False)
class TaskKind(Fields):
    """A generator of work and its interface.

    Parameters
    ----------
    description
        one line about the work
    make
        the function of its parameters; ``rng`` is the random stream, ``part`` the reader of works inside this one
    count
        the parameter that is the number of tasks
    streams
        whether ``rng`` is :class:`~simmodel.generators.distributions.Streams`
    in_text
        whether text can specify its parameters; otherwise they need a file

    >>> TASK_KINDS["database"].count
    'tasks'
    """

    description: str
    make: Callable[..., TaskSet | Workflow] = attrs.field(repr=False)
    count: str | None = None
    streams: bool = False
    in_text: bool = True


class Reader(Protocol):
    """The reader of works named inside other works."""

    def work(self, text: str, rng: np.random.Generator | None) -> Work:
        """Return the named work."""
        ...


def _dressed(
    workflow: str,
    *,
    run: Amount = (10, 500),
    objects: Count = (1, 5),
    size: Amount = (4e6, 300e6),
    part: Reader,
    rng: np.random.Generator | Streams,
) -> Workflow:
    if not isinstance(workflow, str):
        raise InputError(f"must be a bundled name or a file, got {workflow!r}", place="workflow")
    given = part.work(workflow, None)
    if isinstance(given, list):
        raise InputError("must be one workflow, got several over time", place="workflow")
    return with_costs(given, run=run, objects=objects, size=size, rng=rng)


def _mixture(
    tasks: int | None = None, parts: Plain = (), *, order: str = "shuffled", part: Reader, rng: np.random.Generator
) -> TaskSet:
    """Merge works: each of ``parts`` has a ``work`` (text) and, with ``tasks``, a ``share`` of their number."""
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise InputError("must be a non-empty list of parts with works", place="parts")
    given: list[Any] = list(parts)
    for k, each in enumerate(given):
        keys = ("work",) if tasks is None else ("work", "share")
        if not isinstance(each, Mapping) or not isinstance(each.get("work"), str):
            raise InputError("missing key 'work' (text)", place=f"parts[{k}]")
        for key in each:
            if key not in keys:
                more = "; shares need a number of tasks" if key == "share" else ""
                raise InputError(f"{unknown('key', key, keys).message}{more}", place=f"parts[{k}].{key}")
        if len(each) < len(keys):
            raise InputError("missing key 'share'", place=f"parts[{k}]")
    if tasks is None:
        mixing, *drawing = rng.spawn(1 + len(parts))
        works = [_one(part, each["work"], drawing[k], k) for k, each in enumerate(given)]
        return mix(works, order=order, rng=mixing)
    shares = [(each["share"], _of_size(part, each["work"], k)) for k, each in enumerate(given)]
    return mixture(tasks, shares, order=order, rng=rng)


def _one(part: Reader, text: str, rng: np.random.Generator, k: int) -> TaskSet | Workflow:
    found: Work = part.work(text, rng)
    if isinstance(found, list):
        raise InputError("must be one work, got several over time", place=f"parts[{k}].work")
    return found


def _of_size(part: Reader, text: str, k: int) -> Callable[[int, np.random.Generator], TaskSet | Workflow]:
    """Return a function that generates a given number of tasks of the work in a text."""
    name, _, rest = text.partition(":")
    kind = TASK_KINDS.get(name)
    if kind is None or kind.count is None:
        known = ", ".join(each for each, found in TASK_KINDS.items() if found.count)
        raise InputError(f"must be one of {known} to have a share, got {text!r}", place=f"parts[{k}].work")
    count = kind.count
    return lambda n, rng: _one(part, f"{name}:{rest}{',' if rest.strip() else ''}{count}={n}", rng, k)


_TASK = (
    *("id", "run", "flop", "run_on", "implementations", "family", "cores", "memory", "priority", "inputs", "outputs"),
    "amounts",
)


def _listed(
    tasks: Sequence[Mapping[str, Plain]],
    *,
    edges: Sequence[Plain] | None = None,
    data: Mapping[str, float | str] | None = None,
) -> Workflow | TaskSet:
    """List tasks by their fields of Task and ``submit`` (s); an edge is [parent, child] or [parent, child, bytes]."""
    made, submit = [], []
    for k, each in enumerate(tasks):
        place = f"tasks[{k}]"
        if not isinstance(each, Mapping):
            raise InputError(f"must be a table, got {each!r}", place=place)
        fields: dict[str, Any] = dict(each)
        for key in fields:
            if key not in (*_TASK, "submit"):
                raise InputError(unknown("key", key, (*_TASK, "submit")).message, place=f"{place}.{key}")
        for key, unit in (("run", "s"), ("flop", "flop"), ("memory", "B"), ("submit", "s"), ("cores", "s")):
            if key in fields and (key != "cores" or not isinstance(fields[key], int)):
                fields[key] = parse_quantity(fields[key], unit, place=f"{place}.{key}")
        if "run_on" in fields:
            if not isinstance(fields["run_on"], Mapping):
                raise InputError(f"must be a table, got {fields['run_on']!r}", place=f"{place}.run_on")
            fields["run_on"] = {
                str(on): parse_quantity(value, "s", place=f"{place}.run_on.{on}")
                for on, value in fields["run_on"].items()
            }
        if isinstance(fields.get("id", k), bool) or not isinstance(fields.setdefault("id", k), int | str):
            raise InputError(f"must be text or a whole number, got {fields['id']!r}", place=f"{place}.id")
        submit.append(fields.pop("submit", 0.0))
        try:
            made.append(Task(**fields))
        except (TypeError, ValueError) as error:
            raise InputError(str(error), place=place) from None
    if not made:
        raise InputError("must not be empty", place="tasks")
    files = [
        DataObject(name, parse_quantity(size, "B", place=f"data.{name}")) for name, size in dict(data or {}).items()
    ]
    pairs = None if edges is None else [_edge(edge, k) for k, edge in enumerate(edges)]
    work = Workflow(made, pairs, files, name="tasks")
    return changed(TaskSet.of(work), submit=submit) if any(submit) else work


def _edge(edge: Plain, k: int) -> GivenEdge:
    if not isinstance(edge, Sequence) or isinstance(edge, str) or len(edge) not in (2, 3):
        raise InputError(f"must be [parent, child] or [parent, child, bytes], got {edge!r}", place=f"edges[{k}]")
    given: Sequence[Any] = edge
    parent, child, *sizes = given
    return (parent, child, parse_quantity(sizes[0], "B", place=f"edges[{k}]")) if sizes else (parent, child)


TASK_KINDS: dict[str, TaskKind] = {
    "random": TaskKind(description="independent tasks", make=random_tasks, count="tasks", streams=True),
    "database": TaskKind(
        description="queries on one large object, and tasks that gather their results",
        make=database,
        count="tasks",
        streams=True,
    ),
    "layered": TaskKind(
        description="a random layered graph, with run times and data on its edges",
        make=layered_with_costs,
        count="n",
        streams=True,
    ),
    "daggen": TaskKind(
        description="a random layered graph with DAGGEN's operations and data, for machines with speeds",
        make=layered,
        count="n",
    ),
    "dressed": TaskKind(
        description="the graph of a file or a bundled work, with random run times and data on its edges",
        make=_dressed,
        streams=True,
    ),
    "tasks": TaskKind(description="tasks listed one by one, with edges and data", make=_listed, in_text=False),
    "mixture": TaskKind(
        description="several works merged, whole or in shares of a number of tasks",
        make=_mixture,
        in_text=False,
    ),
}
"""The generators of work by name; custom ones can be added."""
