"""Rows of a chart for executions of which only the number of processors is known; plots and traces share it.

An execution gets the lowest free rows side by side, or the lowest free rows anywhere if no gap is wide enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.loading import check_count
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["pack"]


def pack(start: ArrayLike, end: ArrayLike, processors: ArrayLike, rows: int = 0) -> Table:
    """Return pieces of executions that never overlap: ``index, low, high`` with rows ``low <= row < high``.

    Parameters
    ----------
    start, end
        of the executions, s
    processors
        of each, whole numbers
    rows
        the number of rows; more are added if the executions need them

    Raises
    ------
    InputError
        there are more rows than the limit of counts

    Returns
    -------
    Table
        one row per piece, in order of start, the lowest piece of an execution first; ``index`` is its row in ``start``

    >>> table = pack([0, 0, 5, 8], [5, 10, 10, 9], [2, 1, 2, 1], rows=4)
    >>> list(zip(table["index"].tolist(), table["low"].tolist(), table["high"].tolist()))
    [(0, 0, 2), (1, 2, 3), (2, 0, 2), (3, 3, 4)]
    """
    starts, ends = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    sizes = np.asarray(processors, dtype=np.int64)
    check_count("processors to draw", max(rows, int(sizes.max(initial=0))))
    count = len(starts)
    # Within an instant, ends come first, then executions of zero length, which take no rows from others, then starts.
    times = np.append(starts, ends)
    kind = np.append(np.where(ends > starts, 2, 1), np.zeros(count, dtype=np.int64))
    which = np.append(np.arange(count), np.arange(count))
    lasting = np.append(ends > starts, ends > starts) | (kind > 0)
    order = np.lexsort((which, kind, times))
    order = order[lasting[order]]
    instant = (ends <= starts).tolist()
    free, width = (1 << rows) - 1, rows
    held: dict[int, int] = {}
    index: list[int] = []
    lows: list[int] = []
    highs: list[int] = []
    size_of = sizes.tolist()
    for i, begins in zip(which[order].tolist(), (kind[order] > 0).tolist(), strict=True):
        if not begins:
            free |= held.pop(i)
            continue
        size = size_of[i]
        if size <= 0:
            continue
        lacking = size - free.bit_count()
        if lacking > 0:
            free |= ((1 << lacking) - 1) << width
            width += lacking
        mask = _lowest(free, size)
        if not instant[i]:
            free &= ~mask
            held[i] = mask
        while mask:
            low = (mask & -mask).bit_length() - 1
            ones = mask >> low
            high = low + (~ones & (ones + 1)).bit_length() - 1
            index.append(i)
            lows.append(low)
            highs.append(high)
            mask = mask >> high << high
    return Table(
        {"index": np.array(index, np.int64), "low": np.array(lows, np.int64), "high": np.array(highs, np.int64)}
    )


def _lowest(free: int, size: int) -> int:
    """Return the lowest ``size`` bits set side by side in ``free``, or the lowest anywhere."""
    fits, have = free, 1
    while have < size and fits:
        step = min(have, size - have)
        fits &= fits >> step
        have += step
    if fits:
        return ((1 << size) - 1) << ((fits & -fits).bit_length() - 1)
    taken = 0
    while size:
        low = (free & -free).bit_length() - 1
        ones = free >> low
        length = min((~ones & (ones + 1)).bit_length() - 1, size)
        piece = ((1 << length) - 1) << low
        taken |= piece
        free ^= piece
        size -= length
    return taken
