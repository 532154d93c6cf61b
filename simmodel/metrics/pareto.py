"""Several objectives at once: which points no other point dominates, and the volume that they dominate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["hypervolume", "pareto_front"]


def _points(points: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(points, dtype=np.float64)
    if found.ndim != 2:
        raise InputError(
            f"must have a row per point and a column per objective, got shape {found.shape}", place="points"
        )
    return found


def pareto_front(points: ArrayLike) -> NDArray[np.bool_]:
    """Return which points are on the Pareto front: no other is as low in all objectives and lower in one.

    Equal points are all on it, or none; points with a value that is nan are not.

    Parameters
    ----------
    points
        one row per point, one column per objective; lower is better

    >>> pareto_front([[1, 5], [2, 3], [3, 3], [4, 1], [2, 3]])
    array([ True,  True, False,  True,  True])
    """
    found = _points(points)
    front: NDArray[np.bool_] = np.asarray(np.isfinite(found).all(axis=1))
    order = np.lexsort(found.T[::-1])
    kept = np.empty((0, found.shape[1]))
    for i in order[front[order]].tolist():  # a point is dominated by earlier ones only, in lexicographic order
        point = found[i]
        if len(kept) and bool((np.all(kept <= point, axis=1) & np.any(kept < point, axis=1)).any()):
            front[i] = False
        else:
            kept = np.vstack([kept, point])
    return front


def hypervolume(points: ArrayLike, reference: ArrayLike) -> float:
    """Return the volume of the region that the points dominate, up to a reference point.

    Parameters
    ----------
    points
        one row per point, one column per objective; lower is better
    reference
        one value per objective; points beyond it do not count

    Source: E. Zitzler and L. Thiele, "Multiobjective optimization using evolutionary algorithms", PPSN V, 1998; the
    volume is summed over slices along the last objective.

    >>> hypervolume([[1, 2], [2, 1], [9, 0]], [3, 3])
    3.0
    """
    found, corner = _points(points), np.asarray(reference, dtype=np.float64)
    if corner.shape != (found.shape[1],):
        raise InputError(f"must have {found.shape[1]} values, got shape {corner.shape}", place="reference")
    inside = found[np.all(found < corner, axis=1)]
    return _volume(inside[pareto_front(inside)], corner)


def _volume(front: NDArray[np.float64], corner: NDArray[np.float64]) -> float:
    if not len(front):
        return 0.0
    if len(corner) == 1:
        return float(corner[0] - front.min())
    front = front[np.argsort(front[:, -1], kind="stable")]
    if len(corner) == 2:
        best = np.minimum.accumulate(front[:, 0])
        heights = np.append(front[1:, 1], corner[1]) - front[:, 1]
        return float(np.sum((corner[0] - best) * heights))
    total = 0.0
    for i in range(len(front)):
        height = (front[i + 1, -1] if i + 1 < len(front) else corner[-1]) - front[i, -1]
        if height > 0:
            below = front[: i + 1, :-1]
            total += height * _volume(below[pareto_front(below)], corner[:-1])
    return total
