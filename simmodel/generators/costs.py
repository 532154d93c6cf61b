"""Random run times and data for a task graph, as in HetSim's experiment."""

from __future__ import annotations

from itertools import pairwise

import attrs
import numpy as np

from simmodel.generators.draws import Amount, Count, Streams, amounts, counts, streams
from simmodel.generators.layers import layered
from simmodel.work.task import DataObject
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

__all__ = ["layered_with_costs", "with_costs"]


def with_costs(
    work: Workflow | TaskSet,
    *,
    run: Amount = (10, 500),
    objects: Count = (1, 5),
    size: Amount = (4e6, 300e6),
    rng: np.random.Generator | Streams,
) -> Workflow:
    """Return the workflow with random run times of tasks and random data on each edge, replacing its own.

    Ids, families, cores, memory and priorities stay. The defaults are those of section 5 of HetSim's paper.

    Parameters
    ----------
    work
        the graph
    run
        run time of a task on the reference processor, s
    objects
        number of data objects of each edge, or an interval of it; their names are ``parent->child#1``,
        ``parent->child#2`` and so on
    size
        size of each data object, bytes
    rng
        the random stream, or one each for run times, data sizes and everything else

    Raises
    ------
    InputError
        a parameter is invalid

    >>> from simmodel import Task
    >>> bare = Workflow([Task(id="a"), Task(id="b"), Task(id="c")], [("a", "b"), ("a", "c")])
    >>> flow = with_costs(bare, objects=2, rng=np.random.default_rng(1))
    >>> [edge.data for edge in flow.edges], flow["a"].run
    ([('a->b#1', 'a->b#2'), ('a->c#1', 'a->c#2')], 243.12...)
    """
    flow = work if isinstance(work, Workflow) else work.workflow()
    other, running, sizing = streams(rng)
    pairs = [(parent, child) for parent in flow.tasks for child in flow.children(parent)]
    first = np.concatenate([[0], np.cumsum(counts("objects", objects, len(pairs), other))]).tolist()
    bytes_of = amounts("size", size, first[-1], sizing, unit="B").tolist()
    edges = [
        (parent, child, [DataObject(f"{parent}->{child}#{i + 1 - a}", bytes_of[i]) for i in range(a, b)])
        for (parent, child), (a, b) in zip(pairs, pairwise(first), strict=True)
    ]
    times = amounts("run", run, len(flow), running).tolist()
    tasks = (
        attrs.evolve(task, run=seconds, flop=None, run_on={}, inputs=(), outputs=(), started=None, ended=None)
        for task, seconds in zip(flow, times, strict=True)
    )
    return Workflow(tasks, edges, name=flow.name, header=flow.header, report=flow.report)


def layered_with_costs(
    n: int = 100,
    *,
    fat: float = 0.5,
    regular: float = 0.9,
    density: float = 0.5,
    jump: int = 1,
    run: Amount = (10, 500),
    objects: Count = (1, 5),
    size: Amount = (4e6, 300e6),
    rng: np.random.Generator | Streams,
) -> TaskSet:
    """Return a random layered graph with run times and data on its edges, as columns.

    Parameters
    ----------
    n, fat, regular, density, jump
        as for :func:`~simmodel.generators.layers.layered`
    run, objects, size
        as for :func:`with_costs`
    rng
        the random stream, or one each for run times, data sizes and everything else

    Raises
    ------
    InputError
        a parameter is invalid

    >>> work = layered_with_costs(50, density=0.3, rng=np.random.default_rng(1))
    >>> work, work.workflow().summary()["levels"]
    (<TaskSet layered-50: 50 tasks, 199 data objects>, 8)
    """
    other, running, sizing = streams(rng)
    shape, counting = other.spawn(2)
    graph = TaskSet.of(layered(n, fat=fat, regular=regular, density=density, jump=jump, rng=shape))
    parents = graph.parents or [()] * len(graph)
    pairs = sorted((parent, child) for child, found in enumerate(parents) for parent in found)
    first = np.concatenate([[0], np.cumsum(counts("objects", objects, len(pairs), counting))]).tolist()
    read: list[list[int]] = [[] for _ in parents]
    written: list[list[int]] = [[] for _ in parents]
    for (parent, child), (a, b) in zip(pairs, pairwise(first), strict=True):
        written[parent].extend(range(a, b))
        read[child].extend(range(a, b))
    return TaskSet(
        amounts("run", run, len(graph), running).tolist(),
        ids=graph.ids,
        inputs=[tuple(found) for found in read],
        outputs=[tuple(found) for found in written],
        sizes=amounts("size", size, first[-1], sizing, unit="B").tolist(),
        parents=parents,
        name=graph.name,
    )
