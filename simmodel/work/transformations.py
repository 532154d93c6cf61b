"""Workloads made of workloads: another load, a part, a selection, several together. None changes what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["between", "first", "merge", "offered_load", "scale_load", "select", "shift"]


def offered_load(workload: Workload, processors: int | None = None) -> float:
    """Return the share of the machine that the jobs ask for: processor-seconds by processors and span of submissions.

    Jobs without a run time count nothing; where the allocated processors are not known, those asked for are taken.

    Parameters
    ----------
    workload
        the jobs
    processors
        the size of the machine; default the workload's

    Raises
    ------
    ValueError
        the size of the machine is not known, or all jobs are submitted at one instant

    >>> jobs = Workload({"submit": [0, 100], "run": [30, 50], "processors": [2, 4]}, processors=4)
    >>> offered_load(jobs)
    0.65
    """
    size = processors or workload.processors
    if not size:
        raise ValueError(f"{workload.name}: processors expected, the workload does not say the size of its machine")
    submit = workload["submit"]
    span = float(submit.max() - submit.min()) if len(submit) else 0.0
    if not span > 0:
        raise ValueError(f"{workload.name}: submissions at more than one instant expected")
    asked = workload.get("requested_processors")
    count = np.maximum(np.where(workload["processors"] > 0, workload["processors"], asked), 0)
    work = np.maximum(np.nan_to_num(workload["run"], nan=0.0, posinf=0.0), 0.0)
    return float(count @ work / (size * span))


def scale_load(
    workload: Workload, factor: float | None = None, *, to: float | None = None, processors: int | None = None
) -> Workload:
    """Return the jobs with shorter or longer gaps between them, which makes the load so many times as large.

    Run times and sizes stay as they are, and so does the first submission.

    Parameters
    ----------
    workload
        the jobs
    factor
        load by load before: gaps become ``1 / factor`` as long
    to
        instead of a factor: the offered load to reach
    processors
        the size of the machine, for ``to``; default the workload's

    Raises
    ------
    ValueError
        neither or both of ``factor`` and ``to``, or one that is not above zero

    >>> jobs = Workload({"submit": [10, 110], "run": [30, 50], "processors": [2, 4]}, processors=4)
    >>> scale_load(jobs, 2)["submit"], offered_load(scale_load(jobs, to=0.5))
    (array([10., 60.]), 0.5)
    """
    if (factor is None) == (to is None):
        raise ValueError("factor or to expected, found both or none")
    if to is not None:
        factor = to / offered_load(workload, processors)
    assert factor is not None
    if not 0 < factor < np.inf:
        raise ValueError(f"a load above zero expected, found {factor if to is None else to!r}")
    submit = workload["submit"]
    begin = submit.min() if len(submit) else 0.0
    return _moved(workload, begin + (submit - begin) / factor)


def shift(workload: Workload, seconds: float) -> Workload:
    """Return the jobs submitted so many seconds later (or earlier).

    >>> shift(Workload({"submit": [10, 20], "run": [1, 1], "processors": [1, 1]}), -10)["submit"]
    array([ 0., 10.])
    """
    return _moved(workload, workload["submit"] + seconds)


def _moved(workload: Workload, submit: NDArray[np.number]) -> Workload:
    """Return the jobs with these instants of submission; cancellations move along."""
    columns: dict[str, Any] = {"submit": submit}
    if "cancel" in workload:
        columns["cancel"] = workload["cancel"] + (submit - workload["submit"])
    return workload.replace(**columns)


def first(workload: Workload, jobs: int) -> Workload:
    """Return the first so many jobs, in the order of the log.

    >>> len(first(Workload({"submit": [0, 1], "run": [1, 1], "processors": [1, 1]}), 1))
    1
    """
    if jobs < 0:
        raise ValueError(f"jobs >= 0 expected, found {jobs}")
    return workload.where(slice(jobs))


def between(workload: Workload, start: float = -np.inf, end: float = np.inf) -> Workload:
    """Return the jobs submitted from ``start`` to before ``end``, in s of the log.

    >>> between(Workload({"submit": [0, 5, 9], "run": [1, 1, 1], "processors": [1, 1, 1]}), 5, 9)["submit"]
    array([5.])
    """
    return workload.where((workload["submit"] >= start) & (workload["submit"] < end))


def select(workload: Workload, condition: Callable[[Workload], ArrayLike] | None = None, **values: Any) -> Workload:
    """Return the jobs that fulfil a condition on columns, and whose columns have these values.

    Parameters
    ----------
    workload
        the jobs
    condition
        a function of the workload that gives a mask
    values
        a value, or a list of values, for each of some columns

    Raises
    ------
    KeyError
        there is no such column

    >>> jobs = Workload({"submit": [0, 5, 9], "run": [1, 2, 3], "processors": [1, 8, 8], "user": [7, 7, 9]})
    >>> select(jobs, lambda jobs: jobs["processors"] > 4, user=7)["run"]
    array([2.])
    """
    mask = np.ones(len(workload), dtype=bool)
    if condition is not None:
        mask &= np.asarray(condition(workload), dtype=bool)
    for column, wanted in values.items():
        mask &= np.isin(
            workload[column], list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
        )
    return workload.where(mask)


def merge(*workloads: Workload, align: bool = False, name: str | None = None, own_users: bool = False) -> Workload:
    """Return the jobs of several workloads in the order of submission; at one instant, in the order of the workloads.

    Where two jobs have the same number, all are numbered anew from 1, and ``preceding`` with them. A column
    ``source`` says which workload a job is of. A column that some of them lack is unknown there. The machine's size
    is the largest.

    Parameters
    ----------
    workloads
        one or more
    align
        let each begin at 0 first
    name
        the name of the whole; default their names with ``+``
    own_users
        write the workload's name before users, groups, queues and partitions, which are else taken to be the same

    Raises
    ------
    ValueError
        no workload, or some made of jobs that ask for more than columns say

    >>> one = Workload({"submit": [10, 20], "run": [1, 2], "processors": [1, 1]}, name="one")
    >>> two = Workload({"submit": [15], "run": [3], "processors": [2]}, name="two")
    >>> both = merge(one, two)
    >>> both["run"], both["job"], both["source"]
    (array([1., 3., 2.]), array([1, 2, 3]), array(['one', 'two', 'one'], dtype='<U3'))
    """
    if not workloads:
        raise ValueError("at least one workload expected, found none")
    if any(each.specs is not None for each in workloads):
        raise ValueError("workloads of columns expected, found one made of jobs: join their lists of jobs instead")
    parts = [shift(each, -float(each["submit"].min())) if align and len(each) else each for each in workloads]
    tables: list[dict[str, NDArray[Any]]] = [dict(part.table) for part in parts]
    if own_users:
        for part, table in zip(parts, tables, strict=True):
            for column in ("user", "group", "queue", "partition"):
                if column in table:
                    table[column] = np.array(
                        ["" if value in (-1, "", None) else f"{part.name}:{value}" for value in table[column].tolist()]
                    )
    _number(tables)
    names = dict.fromkeys(column for table in tables for column in table)
    lengths = [len(part) for part in parts]
    columns = {column: _joined([table.get(column) for table in tables], lengths) for column in names}
    columns["source"] = np.repeat(np.array([part.name for part in parts]), lengths)
    order = np.argsort(columns["submit"], kind="stable")
    if columns.pop("_new", None) is not None:
        columns = _renumbered(columns, order)
    return Workload(
        {column: values[order] for column, values in columns.items()},
        name=name or "+".join(part.name for part in parts),
        processors=max((part.processors for part in parts if part.processors), default=None),
        report=sum((part.report for part in parts), Report()),
    )


def _number(tables: list[dict[str, NDArray[np.generic]]]) -> None:
    """Where job numbers meet, make them pairs of workload and number, and mark the tables."""
    numbers = [number for table in tables for number in table["job"].tolist()]
    if len(set(numbers)) == len(numbers):
        return
    for at, table in enumerate(tables):
        for column in ("job", "preceding"):
            if column in table:
                pairs = np.empty(len(table[column]), dtype=object)
                pairs[:] = [(at, number) for number in table[column].tolist()]
                table[column] = pairs
        table["_new"] = np.ones(len(table["job"]), dtype=bool)


def _renumbered(columns: dict[str, NDArray[np.generic]], order: NDArray[np.intp]) -> dict[str, NDArray[np.generic]]:
    """Number jobs in this order; a preceding job that is not there becomes -1."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(1, len(order) + 1)
    new: Mapping[Any, int] = dict(zip(columns["job"].tolist(), position.tolist(), strict=True))
    changed = {**columns, "job": position}
    if "preceding" in columns:
        changed["preceding"] = np.array([new.get(pair, -1) for pair in columns["preceding"].tolist()], dtype=np.int64)
    return changed


def _joined(parts: Sequence[NDArray[np.generic] | None], lengths: list[int]) -> NDArray[np.generic]:
    """Join columns of one name; what a workload lacks is nan, -1 or the empty text, as the others' kind has it."""
    kinds = {part.dtype.kind for part in parts if part is not None}
    if kinds <= set("iufb"):
        missing: Any = np.nan if "f" in kinds else -1
        return np.concatenate(
            [np.full(n, missing) if part is None else part for part, n in zip(parts, lengths, strict=True)]
        )
    if "O" in kinds:
        blank = np.array([None], dtype=object)
        return np.concatenate(
            [np.repeat(blank, n) if p is None else p.astype(object) for p, n in zip(parts, lengths, strict=True)]
        )
    texts = [
        np.full(n, "") if part is None else np.array(["" if v in (-1, "") else str(v) for v in part.tolist()])
        for part, n in zip(parts, lengths, strict=True)
    ]
    return np.concatenate([text.astype(str) for text in texts])
