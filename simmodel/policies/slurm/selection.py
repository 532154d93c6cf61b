"""Which nodes a job gets: select/cons_tres without a topology, on sets of nodes as bits of whole numbers.

Source: ``_eval_nodes`` of select/cons_tres, by its behaviour: nodes stand in maximal runs of consecutive usable nodes.
The smallest run that is large enough is taken from its lowest node on; if none is, the largest one, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.pools.allocation import Allocation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.allocation import NodeTable, Request

    Free = NDArray[np.float64]  # shape (3, nodes): cores, GPUs and bytes of memory

__all__ = ["able", "allocation_of", "choose", "enough", "flags_of", "mask_of", "nodes_in", "runs"]


def mask_of(flags: NDArray[np.bool_]) -> int:
    """Return a set of nodes as the bits of a number, the first node as the lowest bit.

    >>> bin(mask_of(np.array([True, False, True, True])))
    '0b1101'
    """
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def flags_of(mask: int, count: int) -> NDArray[np.bool_]:
    """Return a set of nodes as an array of shape (count,).

    >>> flags_of(0b1101, 5).tolist()
    [True, False, True, True, False]
    """
    bits = np.frombuffer(mask.to_bytes(count // 8 + 1, "little"), dtype=np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)


def nodes_in(mask: int) -> list[int]:
    """Return the numbers of the nodes of a set, ascending.

    >>> nodes_in(0b1101)
    [0, 2, 3]
    """
    found: list[int] = []
    for first, count in runs(mask):
        found += range(first, first + count)
    return found


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the maximal runs of consecutive nodes: the first node of each, and their number.

    >>> list(runs(0b1101))
    [(0, 1), (2, 2)]
    """
    base = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        count = (~mask & (mask + 1)).bit_length() - 1
        yield base + skipped, count
        mask >>= count
        base += skipped + count


def able(free: Free, capacity: Free, request: Request) -> int:
    """Return the nodes that meet what a request asks of each node."""
    cores = free[0]
    flags = cores >= (1 if request.nodes is None else request.cores_per_node)
    if request.exclusive:
        flags &= cores == capacity[0]
    if request.gpus_per_node:
        flags &= free[1] >= request.gpus_per_node
    if request.memory_per_node:
        flags &= free[2] >= request.memory_per_node
    return mask_of(flags)


def enough(free: Free, request: Request, usable: int) -> bool:
    """Whether these nodes, each of which meets the request, meet it together."""
    if request.nodes is not None:
        return usable.bit_count() >= request.nodes
    return bool(free[0, flags_of(usable, free.shape[1])].sum() >= request.processors)


def choose(free: Free, request: Request, usable: int, *, least_loaded: bool = False) -> list[tuple[int, int]]:
    """Return the nodes that a job gets of these usable nodes, of which there are enough, and its cores on each.

    Parameters
    ----------
    least_loaded
        whether the nodes with most free cores come first (``CR_LLN``), instead of runs

    >>> from simmodel.resources.pools.allocation import Request
    >>> free = np.ones((3, 8))
    >>> choose(free, Request(2, nodes=2), 0b11101101), choose(free, Request(4, nodes=4), 0b11101101)
    ([(2, 1), (3, 1)], [(5, 1), (6, 1), (7, 1), (0, 1)])
    """
    cores = free[0]
    wanted = request.nodes or 1
    left = request.processors
    found: list[tuple[int, int]] = []
    for node in _least_loaded(cores, usable) if least_loaded else _by_runs(cores, request, usable):
        if len(found) >= wanted and left <= 0:
            break
        count = request.cores_per_node if request.nodes is not None else min(int(cores[node]), left)
        found.append((node, count))
        left -= count
    return found


def allocation_of(table: NodeTable, request: Request, chosen: list[tuple[int, int]]) -> Allocation:
    """Return the parts of chosen nodes that a job takes: whole nodes if it asks for them."""
    rows = []
    for node, count in chosen:
        cores, gpus = table.capacity[:2, node].tolist() if request.exclusive else (count, request.gpus_per_node)
        rows.append((node, cores, gpus, request.memory_per_node))
    return Allocation.of(rows)


def _least_loaded(cores: NDArray[np.float64], usable: int) -> list[int]:
    return sorted(nodes_in(usable), key=lambda node: (-cores[node], node))


def _by_runs(cores: NDArray[np.float64], request: Request, usable: int) -> Iterator[int]:
    """Yield nodes in the order in which they are taken; what a job still needs shrinks as it takes them."""
    sums = np.concatenate(([0.0], np.cumsum(np.maximum(cores, 0.0)))).tolist()
    there = [(sums[first + count] - sums[first], -first, count) for first, count in runs(usable)]
    there.sort()  # the largest one last, the first of several
    longest = max([count for _, _, count in there], default=0)
    nodes, processors = request.nodes or 1, float(request.processors)
    while there:
        best = len(there) - 1
        if there[best][0] >= processors and longest >= nodes:
            best = _tightest(there, nodes, processors)
        size, first, count = there.pop(best)
        yield from range(-first, count - first)
        nodes, processors = nodes - count, processors - size


def _tightest(there: list[tuple[float, int, int]], nodes: int, processors: float) -> int:
    """Return the place of the smallest run that is large enough, the first of several; else that of the largest."""
    found = len(there) - 1
    fits = False
    for i, (size, _, count) in enumerate(there):
        if size >= processors and count >= nodes:
            if fits and size > there[found][0]:
                break
            found, fits = i, True
    return found
