"""The multifactor order of all waiting jobs at once, by columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.column_index import ColumnIndex

__all__ = ["scores"]


def scores(
    now: float, columns: ColumnIndex, max_age: float, age: float, fair: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the keys of all waiting jobs, an array of shape (jobs,), to the last bit as job by job.

    Parameters
    ----------
    now, columns
        the instant (s), and the jobs
    max_age, age
        the wait (s) at which the age factor reaches 1, and its weight
    fair
        the weighted fair-share factor of each user, with the sign of a key
    """
    keys, part = columns.scratch
    np.subtract(now, columns.submit, out=keys)
    keys /= max_age
    if len(keys) and keys[0] > 1.0:  # of the job that arrived first
        np.minimum(keys, 1.0, out=keys)
    keys *= -age
    keys += columns.part
    keys += fair[0] if len(fair) == 1 else np.take(fair, columns.user, out=part, mode="clip")
    found: NDArray[np.float64] = keys
    return found
