"""Contiguous placement: a job gets nodes in one piece, and waits until there is such a piece.

As on machines whose partitions must be blocks. [V. Lo, K. J. Windisch, W. Liu, B. Nitzberg, "Noncontiguous processor
allocation algorithms for mesh-connected multicomputers", IEEE TPDS 8(7), 1997, compare it with others.]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.resources.pools.placements import NodeChoice, Table, until_enough

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]
    Amounts = NDArray[np.float64]

__all__ = ["Contiguous"]


class Contiguous(NodeChoice):
    """nodes of adjacent numbers, from the shortest piece that is enough; on a torus a block; jobs wait for such a piece

    On a torus or a mesh, a job gets the first nodes, row by row, of a box of any sides: of the one whose sides have the
    least sum, among equals the smallest, among its places the first.
    """

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the nodes of the shortest piece with enough nodes, or of a block, first; ties: the lowest number."""
        network = _on_torus(table)
        if network is not None:
            best = _block(network, candidates, count)
            assert best is not None
        else:
            best = min((piece for piece in _pieces(candidates) if len(piece) >= count), key=len)
        return np.concatenate([best, np.setdiff1d(candidates, best)])

    def cores(self, table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        """Return the fewest adjacent nodes with enough cores; ties go to the lowest number."""
        network = _on_torus(table)
        if network is not None:
            best = _block_of_cores(network, candidates, free[0], processors)
            assert best is not None
            return until_enough(best, free[0][np.searchsorted(candidates, best)], processors)
        found: tuple[int, int] | None = None
        total, first = 0.0, 0
        for last, cores in enumerate(free[0]):
            if last and candidates[last] != candidates[last - 1] + 1:
                total, first = 0.0, last
            total += cores
            while total - free[0][first] >= processors:
                total -= free[0][first]
                first += 1
            if total >= processors and (found is None or last - first < found[1] - found[0]):
                found = first, last
        assert found is not None
        part = slice(found[0], found[1] + 1)
        taken = free[0][part].copy()
        taken[-1] -= taken.sum() - processors
        return candidates[part], taken

    def enough(self, table: Table, candidates: Numbers, amounts: Amounts, needed: int) -> bool:
        """Return whether a piece is large enough."""
        network = _on_torus(table)
        if network is not None:
            return _block_of_cores(network, candidates, amounts, needed) is not None
        ends = np.flatnonzero(np.diff(candidates) != 1) + 1
        return bool(max(map(np.sum, np.split(amounts, ends)), default=0) >= needed)


def _pieces(candidates: Numbers) -> list[Numbers]:
    return np.split(candidates, np.flatnonzero(np.diff(candidates) != 1) + 1)


def _on_torus(table: Table) -> NodeNetwork | None:
    """Return the network of the nodes if it is a torus or a mesh."""
    return table.network if table.network is not None and table.network.torus is not None else None


def _block_of_cores(network: NodeNetwork, candidates: Numbers, amounts: Amounts, needed: int) -> Numbers | None:
    """Return the nodes of a block that have enough in sum; of all levels of amounts the highest for which there is one.

    At a level each node counts as much as the level, so that more free nodes never spoil a block.
    """
    for level in np.unique(amounts)[::-1].tolist():
        able = candidates[amounts >= level]
        count = int(-(-needed // level)) if level > 0 else len(candidates) + 1
        found = _block(network, able, count) if count <= len(able) else None
        if found is not None:
            return found
    return None


def _block(network: NodeNetwork, candidates: Numbers, count: int) -> Numbers | None:
    """Return ``count`` nodes of a block, in order, all of them candidates; ``None`` if there is no such block."""
    torus = network.torus
    assert torus is not None
    sizes = torus.dimensions
    free = np.zeros(len(network), dtype=bool)
    free[network.hosts[candidates]] = True
    grid = free.reshape(sizes[::-1]).T  # by coordinates
    for sides in _boxes(sizes, count):
        fits = grid
        for i, (extents, offset) in enumerate(_parts(sides, count)):
            part = np.roll(_windows(grid, extents), [-each for each in offset], range(len(sizes)))
            fits = part if not i else fits & part
        if not torus.wrap:
            fits = fits[tuple(slice(size - side + 1) for size, side in zip(sizes, sides, strict=True))]
        if fits.any():
            start = np.array(np.unravel_index(int(np.argmax(fits.T)), fits.T.shape))[::-1]
            cells = np.array(np.unravel_index(np.arange(count), sides, order="F")) + start[:, None]
            hosts = np.ravel_multi_index(tuple(cells), sizes, mode="wrap", order="F")
            node: Numbers = np.empty(len(network), dtype=np.intp)
            node[network.hosts] = np.arange(len(network))
            found: Numbers = node[hosts]
            return found
    return None


@lru_cache(maxsize=256)
def _boxes(sizes: tuple[int, ...], count: int) -> Sequence[tuple[int, ...]]:
    """Return the sides of the boxes of which some nodes, row by row, fill each side; the best first.

    >>> _boxes((4, 4), 5)
    ((2, 3), (3, 2), (4, 2))
    """
    found = []
    for first in product(*(range(1, size + 1) for size in sizes[:-1])):
        sides = (*first, -(-count // prod(first)))
        if sides[-1] <= sizes[-1] and all(side <= -(-count // prod(sides[:i])) for i, side in enumerate(sides)):
            found.append(sides)
    return tuple(sorted(found, key=lambda sides: (sum(sides), prod(sides), sides)))


def _parts(sides: Sequence[int], count: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the extents and the offset of the boxes that the first nodes of a box, row by row, are made of.

    >>> list(_parts((3, 2), 5))
    [((3, 1), (0, 0)), ((2, 1), (0, 1))]
    """
    offset = [0] * len(sides)
    for axis in reversed(range(len(sides))):
        whole, count = divmod(count, prod(sides[:axis]))
        if whole:
            yield (*sides[:axis], whole, *[1] * (len(sides) - axis - 1)), tuple(offset)
        offset[axis] = whole


def _windows(grid: NDArray[np.bool_], extents: Sequence[int]) -> NDArray[np.bool_]:
    """Return at which cells a box of free cells begins, as if the grid went round."""
    for axis, extent in enumerate(extents):
        length = 1
        while length < extent:
            step = min(length, extent - length)
            grid = grid & np.roll(grid, -step, axis)
            length += step
    return grid
