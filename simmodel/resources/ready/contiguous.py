"""Contiguous placement: a job gets nodes of adjacent numbers, and waits until there are enough of them in one piece.

As on machines whose partitions must be blocks. [V. Lo, K. J. Windisch, W. Liu, B. Nitzberg, "Noncontiguous processor
allocation algorithms for mesh-connected multicomputers", IEEE TPDS 8(7), 1997, compare it with others.]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.resources.pools.placements import NodeChoice, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]
    Amounts = NDArray[np.float64]

__all__ = ["Contiguous"]


class Contiguous(NodeChoice):
    """nodes of adjacent numbers, from the shortest piece that is enough; jobs wait for such a piece"""

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the nodes of the shortest piece with enough nodes first; ties go to the lowest number."""
        best = min((piece for piece in _pieces(candidates) if len(piece) >= count), key=len)
        return np.concatenate([best, np.setdiff1d(candidates, best)])

    def cores(self, table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        """Return the fewest adjacent nodes with enough cores; ties go to the lowest number."""
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
        ends = np.flatnonzero(np.diff(candidates) != 1) + 1
        return bool(max(map(np.sum, np.split(amounts, ends)), default=0) >= needed)


def _pieces(candidates: Numbers) -> list[Numbers]:
    return np.split(candidates, np.flatnonzero(np.diff(candidates) != 1) + 1)
