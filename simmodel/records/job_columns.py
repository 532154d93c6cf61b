"""Columns of jobs: those of a workload joined with those of individually submitted jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.checkpoint import Kept
    from simmodel.work.job import LiveJob

__all__ = ["Column", "job_columns", "join", "joined", "kept_columns"]

Column: TypeAlias = "NDArray[np.generic] | Sequence[object]"

NAMES = ("job", "submit", "processors", "requested")


def job_columns(columns: Mapping[str, Column], expected: int, late: Sequence[LiveJob]) -> dict[str, NDArray[Any]]:
    """Join the columns of the expected jobs with the properties of jobs that came later.

    Parameters
    ----------
    columns
        ``job, submit, processors, requested`` of the first ``expected`` jobs, and any other columns to keep
    expected
        number of these jobs
    late
        the jobs after them

    >>> from types import SimpleNamespace as Some
    >>> job_columns({}, 0, [Some(id="a", submit=0.0, preferred=2, asked=5.0, user="eve", spec=None)])["user"]
    array(['eve'], dtype='<U3')
    """
    known = {name: np.asarray(column) for name, column in columns.items()}
    if not late:
        return known or {name: np.zeros(0) for name in NAMES}
    added: dict[str, list[Any]] = {
        "job": [job.id for job in late],
        "submit": [job.submit for job in late],
        "processors": [job.preferred for job in late],
        "requested": [_asked(job) for job in late],
    }
    for name in ("user", "group", "queue", "partition"):
        values = [_value(job, name) for job in late]
        if name in known or any(value not in (None, -1) for value in values):
            added[name] = values
    shares = [job.spec.bandwidth if job.spec is not None else {} for job in late]
    for share in dict.fromkeys(share for each in shares for share in each):
        added[f"bandwidth_{share}"] = [each.get(share, np.nan) for each in shares]
    joined = {name: join(known.get(name, _missing(column, expected)), column) for name, column in added.items()}
    for name in known:
        if name not in joined:
            joined[name] = join(known[name], _missing(known[name], len(late)))
    return joined


def _asked(job: LiveJob) -> float:
    """Return the requested time (s), or the run time if exact estimates replace it; nan: it has none."""
    return nan if job.asked == inf else job.asked


def _value(job: LiveJob, name: str) -> Any:
    value = getattr(job, name, None)
    return getattr(job.spec, name, None) if value is None and job.spec is not None else value


def joined(first: Mapping[str, Column], more: Mapping[str, Column]) -> dict[str, NDArray[Any]]:
    """Join the columns of two groups of jobs; columns that a group lacks have unknown values there.

    >>> joined({"job": [1]}, {"job": [2], "user": [7]})
    {'job': array([1, 2]), 'user': array([-1,  7])}
    """
    lengths = [len(next(iter(part.values()), ())) for part in (first, more)]
    names = dict.fromkeys([*first, *more])
    return {
        name: join(
            np.asarray(first[name]) if name in first else _missing(more[name], lengths[0]),
            np.asarray(more[name]) if name in more else _missing(first[name], lengths[1]),
        )
        for name in names
    }


_KEPT = {
    "saved_work": "saved",
    "lost_work": "lost",
    "checkpoint_time": "saving",
    "restart_time": "reading",
    "checkpoints": "checkpoints",
}
"""Columns of jobs with checkpoints, and the fields of :class:`~simmodel.work.checkpoint.Kept` that fill them."""


def kept_columns(kept: Mapping[int, Kept], count: int) -> dict[str, NDArray[Any]]:
    """Return the columns of work kept by the checkpoints of jobs, by row; unknown for jobs without.

    >>> from simmodel.work.checkpoint import Kept
    >>> kept_columns({1: Kept(saved=40.0, lost=6.0)}, 2)["lost_work"]
    array([nan,  6.])
    """
    rows = list(kept)
    found = {}
    for name, field in _KEPT.items():
        column = np.full(count, np.nan)
        column[rows] = [getattr(each, field) for each in kept.values()]
        found[name] = column
    return found


def _missing(like: Column, count: int) -> NDArray[Any]:
    """Return a column of unknown values with the type of another column."""
    kind = np.asarray(like).dtype.kind
    return np.full(count, np.nan if kind == "f" else -1 if kind in "iu" else "")


def join(first: NDArray[np.generic], more: NDArray[np.generic] | Sequence[object]) -> NDArray[Any]:
    """Join two columns: as numbers with -1 for unknown values, or, if there is text, as text with empty ones."""
    if isinstance(more, np.ndarray) and f"{first.dtype.kind}{more.dtype.kind}" in ("ff", "ii", "uu"):
        return np.concatenate([first, more])
    values = first.tolist() + (more.tolist() if isinstance(more, np.ndarray) else list(more))
    texts = any(isinstance(value, str) and value for value in values)
    filled = [("" if texts else -1) if value is None or value == "" else value for value in values]
    return np.array([str(value) for value in filled] if texts else filled)
