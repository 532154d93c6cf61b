"""Run times and data for a graph that has others, or none: as HetSim's experiment gives them to a workflow."""

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
    """Return a workflow with run times drawn, and with data drawn for each edge, in place of what it has.

    Tasks keep ids, families, cores, memory and priorities. The defaults are those of HetSim's section 5.

    Parameters
    ----------
    work
        the graph
    run
        s on the reference processor
    objects
        data objects of each edge: a number, or from one to another. They are called ``parent->child``, with ``#1``,
        ``#2`` ... behind
    size
        bytes of each
    rng
        where randomness comes from

    Raises
    ------
    InputError
        a parameter is not possible

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
    """Return a random graph in layers with run times and data of edges: :func:`layered` dressed, as columns.

    Parameters
    ----------
    n, fat, regular, density, jump
        of :func:`~simmodel.generators.layers.layered`
    run, objects, size
        of :func:`with_costs`
    rng
        where randomness comes from

    Raises
    ------
    InputError
        a parameter is not possible

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
