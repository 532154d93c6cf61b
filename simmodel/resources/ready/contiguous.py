"""Contiguous placement: a job gets nodes in one piece, and waits until there is such a piece.

As on machines whose partitions must be blocks. [V. Lo, K. J. Windisch, W. Liu, B. Nitzberg, "Noncontiguous processor
allocation algorithms for mesh-connected multicomputers", IEEE TPDS 8(7), 1997, compare it with others.]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.pools.blocks import block, block_of_cores
from simmodel.resources.pools.placements import NodeChoice, Table, until_enough

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.node_network import NodeNetwork

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
            best = block(network, candidates, count)
            assert best is not None
        else:
            best = min((piece for piece in _pieces(candidates) if len(piece) >= count), key=len)
        return np.concatenate([best, np.setdiff1d(candidates, best)])

    def cores(self, table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        """Return the fewest adjacent nodes with enough cores; ties go to the lowest number."""
        network = _on_torus(table)
        if network is not None:
            best = block_of_cores(network, candidates, free[0], processors)
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
            return block_of_cores(network, candidates, amounts, needed) is not None
        ends = np.flatnonzero(np.diff(candidates) != 1) + 1
        return bool(max(map(np.sum, np.split(amounts, ends)), default=0) >= needed)


def _pieces(candidates: Numbers) -> list[Numbers]:
    return np.split(candidates, np.flatnonzero(np.diff(candidates) != 1) + 1)


def _on_torus(table: Table) -> NodeNetwork | None:
    """Return the network of the nodes if it is a torus or a mesh."""
    return table.network if table.network is not None and table.network.torus is not None else None
