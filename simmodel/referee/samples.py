"""Stretches of a schedule, to judge a part of a long one: consecutive starts, evenly spread over all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["STRETCHES", "Stretch", "stretches_of"]

STRETCHES = 100
"""Into how many stretches a sample is divided, at most."""
_BEFORE = 10  # of a stretch: policies are asked from a tenth of its starts before it on


class Stretch(NamedTuple):
    """Consecutive starts: their rows in the order of the starts, and the instants (s) at which policies are asked."""

    rows: NDArray[np.intp]
    since: float
    until: float


def stretches_of(start: NDArray[np.float64], count: int) -> list[Stretch]:
    """Return a number of starts of a schedule, in stretches; all of them in one if there are no more.

    >>> [(each.rows.tolist(), each.since, each.until) for each in stretches_of(np.arange(1000.0), 200)][:2]
    [([4, 5], 3.0, 5.0), ([14, 15], 13.0, 15.0)]
    """
    order = np.argsort(start, kind="stable")
    if count >= len(order):
        return [Stretch(order, -np.inf, np.inf)]
    parts = min(count, STRETCHES)
    bounds = np.linspace(0, len(order), parts + 1).astype(int)
    found = []
    for number, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        size = count * (number + 1) // parts - count * number // parts
        begin = first + (last - first - size) // 2
        before = max(0, begin - 1 - size // _BEFORE)
        rows = order[begin : begin + size]
        found.append(Stretch(rows, float(start[order[before]]), float(start[rows[-1]])))
    return found
