"""Blocks of a torus or a mesh: the first nodes, row by row, of a box of any sides, all of them free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.node_network import NodeNetwork

    Numbers = NDArray[np.intp]
    Amounts = NDArray[np.float64]

__all__ = ["block", "block_of_cores"]


def block_of_cores(network: NodeNetwork, candidates: Numbers, amounts: Amounts, needed: int) -> Numbers | None:
    """Return the nodes of a block that have enough in sum; of all levels of amounts the highest for which there is one.

    At a level each node counts as much as the level, so that more free nodes never spoil a block.
    """
    for level in np.unique(amounts)[::-1].tolist():
        able = candidates[amounts >= level]
        count = int(-(-needed // level)) if level > 0 else len(candidates) + 1
        found = block(network, able, count) if count <= len(able) else None
        if found is not None:
            return found
    return None


def block(network: NodeNetwork, candidates: Numbers, count: int) -> Numbers | None:
    """Return ``count`` nodes of a block, in order, all of them candidates; ``None`` if there is no such block."""
    torus = network.torus
    assert torus is not None
    sizes = torus.dimensions
    free = np.zeros(prod(sizes), dtype=bool)
    free[network.hosts[candidates]] = True
    grid = free.reshape(sizes[::-1]).T  # by coordinates
    for sides in boxes(sizes, count):
        fits = grid
        for i, (extents, offset) in enumerate(parts(sides, count)):
            part = np.roll(windows(grid, extents), [-each for each in offset], range(len(sizes)))
            fits = part if not i else fits & part
        if not torus.wrap:
            fits = fits[tuple(slice(size - side + 1) for size, side in zip(sizes, sides, strict=True))]
        if fits.any():
            start = np.array(np.unravel_index(int(np.argmax(fits.T)), fits.T.shape))[::-1]
            cells = np.array(np.unravel_index(np.arange(count), sides, order="F")) + start[:, None]
            hosts = np.ravel_multi_index(tuple(cells), sizes, mode="wrap", order="F")
            node: Numbers = np.empty(prod(sizes), dtype=np.intp)
            node[network.hosts] = np.arange(len(network))
            found: Numbers = node[hosts]
            return found
    return None


@lru_cache(maxsize=256)
def boxes(sizes: tuple[int, ...], count: int) -> Sequence[tuple[int, ...]]:
    """Return the sides of the boxes of which some nodes, row by row, fill each side; the best first.

    >>> boxes((4, 4), 5)
    ((2, 3), (3, 2), (4, 2))
    """
    found = []
    for first in product(*(range(1, size + 1) for size in sizes[:-1])):
        sides = (*first, -(-count // prod(first)))
        if sides[-1] <= sizes[-1] and all(side <= -(-count // prod(sides[:i])) for i, side in enumerate(sides)):
            found.append(sides)
    return tuple(sorted(found, key=lambda sides: (sum(sides), prod(sides), sides)))


def parts(sides: Sequence[int], count: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the extents and the offset of the boxes that the first nodes of a box, row by row, are made of.

    >>> list(parts((3, 2), 5))
    [((3, 1), (0, 0)), ((2, 1), (0, 1))]
    """
    offset = [0] * len(sides)
    for axis in reversed(range(len(sides))):
        whole, count = divmod(count, prod(sides[:axis]))
        if whole:
            yield (*sides[:axis], whole, *[1] * (len(sides) - axis - 1)), tuple(offset)
        offset[axis] = whole


def windows(grid: NDArray[np.bool_], extents: Sequence[int]) -> NDArray[np.bool_]:
    """Return at which cells a box of free cells begins, as if the grid went round."""
    for axis, extent in enumerate(extents):
        length = 1
        while length < extent:
            step = min(length, extent - length)
            grid = grid & np.roll(grid, -step, axis)
            length += step
    return grid
