"""The choice among the switches of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]
    Amounts = NDArray[Any]  # of nodes or cores

__all__ = ["fewest_switches", "unused_switches"]


def fewest_switches(there: Amounts, wanted: float, better: Amounts | None = None) -> Numbers:
    """Return the fewest switches on which there is enough, in order of use.

    Those with most come first, which are used entirely. The last one is the one with the least that is enough for the
    rest. Ties go to the lower number.

    Parameters
    ----------
    there
        how many nodes, or cores, can be used on each switch; in sum at least ``wanted``
    better
        how many of them are better to use: the last switch is rather the one on which the fewest others are needed

    Source: the best fit over leaf switches of Slurm's plugin topology/tree.

    >>> fewest_switches(np.array([2.0, 5, 3, 4]), 3), fewest_switches(np.array([2.0, 5, 3, 4]), 7)
    (array([2]), array([1, 0]))
    """
    order = np.argsort(-there, kind="stable")
    total = np.cumsum(there[order])
    last = int(np.searchsorted(total, wanted))
    rest = wanted - (total[last - 1] if last else 0.0)
    others = np.sort(order[last:])
    others = others[there[others] >= rest]
    needed = np.zeros(len(others)) if better is None else np.maximum(rest - better[others], 0.0)
    return np.append(order[:last], others[np.lexsort((there[others], needed))[:1]])


def unused_switches(switches: Numbers, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask of nodes whose switch has no node that is used.

    >>> unused_switches(np.array([0, 0, 1]), np.array([True, False, False])).tolist()
    [False, False, True]
    """
    busy = np.zeros(int(switches.max()) + 1, dtype=bool)
    busy[switches[used]] = True
    return ~busy[switches]
