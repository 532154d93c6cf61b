"""Task graphs: random ones in layers with the parameters of DAGGEN, random run times and data for any, and Sipht.

Layers: Suter, Hunold, DAGGEN, a synthetic task graph generator; the parameters as in Hunold, Rauber, Suter,
"Redistribution aware two-step scheduling for mixed-parallel applications", IEEE Cluster 2008. The shape of Sipht: G.
Juve, A. Chervenak, E. Deelman, S. Bharathi, G. Mehta, K. Vahi, "Characterizing and profiling scientific workflows",
FGCS 29(3), 2013.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.generators.distributions import Amount, Count, Streams, amounts, counts, streams
from simmodel.work.task import DataObject, Task
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["layered", "layered_with_costs", "sipht", "with_costs"]


_BLOCK = 1024  # the rows of a matrix are a multiple of this
_ELEMENT = 8  # bytes of a matrix element


def layered(
    n: int = 100,
    *,
    fat: float = 0.5,
    regular: float = 0.9,
    density: float = 0.5,
    jump: int = 1,
    ccr: int = 0,
    mindata: float = 2048,
    maxdata: float = 11264,
    minalpha: float = 0.0,
    maxalpha: float = 0.2,
    rng: np.random.Generator,
) -> Workflow:
    """Return a random layered task graph; each task below the first layer has at least one parent above.

    A task works on a square matrix of m x m doubles, m drawn from ``mindata`` to ``maxdata`` in steps of 1024 (at least
    1024), and sends all 8 m^2 bytes to each of its children. Tasks are numbered from 1, layer by layer.

    Parameters
    ----------
    n
        number of tasks
    fat
        a layer has about ``n ** fat`` tasks: 0 is a chain, 1 is one layer
    regular
        uniformity of the layers: a width differs from ``n ** fat`` by a share of up to 1 - ``regular``
    density
        a task has up to 1 + ``density`` * (width of the layer above) parents, but at most that width
    jump
        a parent is up to ``jump`` layers above
    ccr
        complexity of the tasks: 1 is a m^2 flop with a from 64 to 512, 2 is 2 a m^2 log2(m) flop, 3 is m^3 flop (the
        least data for their work), 0 draws one of the three for each task
    mindata, maxdata
        rows of the matrices
    minalpha, maxalpha
        bounds of ``serial``, the share of the work that does not run in parallel (Amdahl's law)
    rng
        the random stream

    Raises
    ------
    InputError
        a parameter is outside its limits

    >>> import numpy as np
    >>> flow = layered(50, fat=0.5, density=0.3, rng=np.random.default_rng(1))
    >>> len(flow), len(flow.levels), all(edge.size % 8 == 0 for edge in flow.edges)
    (50, 8, True)
    """
    for name, value in (("fat", fat), ("regular", regular), ("density", density)):
        if isinstance(value, (bool, str)) or not 0 <= value <= 1:
            raise InputError(f"{name}: must be a number from 0 to 1, got {value!r}")
    for name, whole, least in (("n", n, 1), ("jump", jump, 0), ("ccr", ccr, 0)):
        if isinstance(whole, (bool, str)) or not math.isfinite(whole) or whole != int(whole) or whole < least:
            raise InputError(f"{name}: must be a whole number >= {least}, got {whole!r}")
    if ccr > 3:
        raise InputError(f"ccr: must be 0, 1, 2 or 3, got {ccr!r}")
    if not 0 < mindata <= maxdata < math.inf:
        raise InputError(f"mindata: must be > 0 and <= maxdata, got {mindata!r} and {maxdata!r}")
    if not 0 <= minalpha <= maxalpha <= 1:
        raise InputError(f"minalpha: must be >= 0 and <= maxalpha <= 1, got {minalpha!r} and {maxalpha!r}")
    widths = _widths(n, fat, regular, rng)
    rows = np.maximum(rng.uniform(mindata, maxdata, n) // _BLOCK, 1) * _BLOCK
    flop = _flop(rows, ccr, rng)
    alpha = rng.uniform(minalpha, maxalpha, n)
    tasks = [
        Task(id=i, flop=work, serial=share)
        for i, (work, share) in enumerate(zip(flop.tolist(), alpha.tolist(), strict=True), 1)
    ]
    bytes_out = (_ELEMENT * rows**2).tolist()
    edges = [(parent + 1, child + 1, bytes_out[parent]) for parent, child in _edges(widths, density, jump, rng)]
    return Workflow(tasks, edges, name=f"layered-{n}")


def _widths(n: int, fat: float, regular: float, rng: np.random.Generator) -> list[int]:
    """Return the number of tasks of each layer, around the mean width; the last layer takes the rest."""
    mean = int(n**fat * (1 + 1e-12))  # so that 100 ** 0.5 is 10 despite rounding
    widths: list[int] = []
    left = n
    while left:
        width = max(1, int(mean * (1 + rng.uniform(-1, 1) * (1 - regular))))
        widths.append(min(width, left))
        left -= widths[-1]
    return widths


def _flop(rows: NDArray[np.float64], ccr: int, rng: np.random.Generator) -> NDArray[np.float64]:
    factor = rng.uniform(64, 512, len(rows))
    kind = rng.integers(1, 4, len(rows)) if ccr == 0 else np.full(len(rows), ccr)
    return np.select([kind == 1, kind == 2], [factor * rows**2, 2 * factor * rows**2 * np.log2(rows)], rows**3)


def _edges(widths: list[int], density: float, jump: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return distinct pairs of parent and child, sorted."""
    first = np.concatenate([[0], np.cumsum(widths)]).tolist()
    edges = []
    for layer in range(1, len(widths)):
        above = widths[layer - 1]
        for child in range(first[layer], first[layer + 1]):
            count = min(1 + int(rng.uniform(0, density * above)), above)
            layers = np.maximum(layer - rng.integers(1, max(jump, 1) + 1, count), 0).tolist()
            taken: dict[int, None] = {}
            for parent_layer, share in zip(layers, rng.random(count).tolist(), strict=True):
                width = widths[parent_layer]
                place = int(share * width)
                for step in range(width):  # the next unused task of the layer, if any
                    parent = first[parent_layer] + (place + step) % width
                    if parent not in taken:
                        taken[parent] = None
                        break
            edges += [(parent, child) for parent in taken]
    return sorted(edges)


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


_SEARCHES = ("Findterm", "RNAMotif", "Transterm", "Blast")
_BLASTS = ("Blast_candidate", "Blast_QRNA", "Blast_synteny", "Blast_paralogues")


def sipht(patsers: int = 17) -> Workflow:
    """Return the task graph of one search, without run times and data.

    :func:`~simmodel.generators.layers.with_costs` adds them.

    Parameters
    ----------
    patsers
        number of scans for binding sites; 17 gives the 29 tasks and 33 edges of Pegasus's Sipht_30

    Raises
    ------
    InputError
        the number is below 1

    >>> sipht()
    <Workflow sipht-29: 29 tasks, 33 edges, 0 data objects>
    """
    if patsers < 1:
        raise InputError(f"must be >= 1, got {patsers!r}", place="patsers")
    scans = [f"Patser_{i}" for i in range(1, patsers + 1)]
    edges = [(scan, "Patser_concate") for scan in scans]
    edges += [(search, "SRNA") for search in _SEARCHES]
    edges += [("SRNA", "FFN_Parse"), *(("SRNA", blast) for blast in _BLASTS), ("FFN_Parse", "Blast_synteny")]
    edges += [(each, "SRNA_annotate") for each in ("SRNA", "Patser_concate", *_BLASTS)]
    names = [*scans, "Patser_concate", *_SEARCHES, "SRNA", "FFN_Parse", *_BLASTS, "SRNA_annotate"]
    tasks = [Task(id=name, family="Patser" if name in scans else name) for name in names]
    return Workflow(tasks, edges, name=f"sipht-{len(tasks)}")
