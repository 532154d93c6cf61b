"""Workloads derived from workloads: scaled, shifted, cut, selected, merged. No function changes its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.foundation.units import parse_quantity
from simmodel.work.traffic import Traffic
from simmodel.work.workload import Report, Workload, processors_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "add_traffic",
    "between",
    "first",
    "make_malleable",
    "merge",
    "offered_load",
    "scale_load",
    "select",
    "shift",
]


def make_malleable(
    workload: Workload,
    share: float = 1.0,
    *,
    least: float = 0.25,
    most: float = 2.0,
    serial: float = 0.05,
    processors: int | None = None,
    seed: int = 0,
) -> Workload:
    """Return the jobs, a share of which may run on fewer or more processors than they request.

    The columns ``minimum`` and ``maximum`` (processors) and ``serial`` (the serial share of Amdahl's law) say so; the
    jobs prefer their requested size. A larger share keeps the malleable jobs of a smaller one with the same seed.

    Parameters
    ----------
    workload
        the jobs
    share
        the share of the jobs, chosen at random, from 0 to 1
    least, most
        the smallest and the largest size as multiples of the request, rounded up and down
    serial
        the serial share of their work
    processors
        the largest size of any job; default: the size of the workload's machine, if known
    seed
        of the choice

    Raises
    ------
    InputError
        a share is not from 0 to 1, or the request is not between ``least`` and ``most``

    >>> log = Workload({"submit": [0, 1], "run": [9, 9], "processors": [3, 8]}, processors=10)
    >>> elastic = make_malleable(log)
    >>> elastic["minimum"].tolist(), elastic["maximum"].tolist()
    ([1, 2], [6, 10])
    """
    for name, value in (("share", share), ("serial", serial)):
        if not 0 <= value <= 1:
            raise InputError(f"{name}: must be from 0 to 1, got {value!r}")
    if not 0 < least <= 1 <= most:
        raise InputError(f"least, most: must be multiples from 0 to 1 and from 1 on, got {least!r} and {most!r}")
    asked, _ = processors_of(workload.table)
    chosen = np.random.default_rng(seed).permutation(len(workload)) < round(share * len(workload))
    sizes = np.ceil(asked * least), np.minimum(np.floor(asked * most), processors or workload.processors or np.inf)
    minimum, maximum = (np.where(chosen & (asked > 0), size, -1).astype(np.int64) for size in sizes)
    serials = np.where(chosen, serial, np.nan)
    return workload.replace(minimum=minimum, maximum=np.maximum(maximum, np.where(chosen, asked, -1)), serial=serials)


def offered_load(workload: Workload, processors: int | None = None) -> float:
    """Return the offered load: processor-seconds of the jobs, divided by processors and span of submissions.

    Jobs without a run time count as zero; if the allocated processors are unknown, the requested ones count.

    Parameters
    ----------
    workload
        the jobs
    processors
        the size of the machine; default: that of the workload

    Raises
    ------
    InputError
        the size of the machine is unknown, or all jobs are submitted at one instant

    >>> jobs = Workload({"submit": [0, 100], "run": [30, 50], "processors": [2, 4]}, processors=4)
    >>> offered_load(jobs)
    0.65
    """
    size = processors or workload.processors
    if not size:
        raise InputError(f"{workload.name}: missing processors: the workload does not have the size of its machine")
    submit = workload["submit"]
    span = float(submit.max() - submit.min()) if len(submit) else 0.0
    if not span > 0:
        raise InputError(f"{workload.name}: must have submissions at more than one instant")
    count, run = counted_work(workload)
    return float(count @ run / (size * span))


def counted_work(workload: Workload) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the processors and the run time (s) of each job that count as load: unknown ones as zero."""
    asked = workload.get("requested_processors")
    count = np.maximum(np.where(workload["processors"] > 0, workload["processors"], asked), 0)
    return count, np.maximum(np.nan_to_num(workload["run"], nan=0.0, posinf=0.0), 0.0)


def scale_load(
    workload: Workload, factor: float | None = None, *, to: float | None = None, processors: int | None = None
) -> Workload:
    """Return the jobs with the gaps between submissions scaled, so that the offered load changes by a factor.

    Run times, sizes and the first submission stay as they are.

    Parameters
    ----------
    workload
        the jobs
    factor
        new load divided by old load: gaps are multiplied by ``1 / factor``
    to
        the offered load to reach, instead of a factor
    processors
        the size of the machine, for ``to``; default: that of the workload

    Raises
    ------
    InputError
        neither or both of ``factor`` and ``to`` are given, or the one given is not above zero

    >>> jobs = Workload({"submit": [10, 110], "run": [30, 50], "processors": [2, 4]}, processors=4)
    >>> scale_load(jobs, 2)["submit"], offered_load(scale_load(jobs, to=0.5))
    (array([10., 60.]), 0.5)
    """
    if (factor is None) == (to is None):
        raise InputError("must have either factor or to, got " + ("neither" if to is None else "both"))
    if to is not None:
        load = offered_load(workload, processors)
        if not 0 < load < np.inf:
            raise InputError(f"to: the jobs must have an offered load that is finite and > 0, got {load:g}")
        factor = to / load
    assert factor is not None
    if not 0 < factor < np.inf:
        name, given = ("factor", factor) if to is None else ("to", to)
        raise InputError(f"{name}: must be a finite number > 0, got {given!r}")
    submit = workload["submit"]
    begin = submit.min() if len(submit) else 0.0
    with np.errstate(over="ignore"):
        moved = begin + (submit - begin) / factor
    if np.isinf(moved).any():
        name, given = ("factor", factor) if to is None else ("to", to)
        raise InputError(f"{name}: must be large enough for finite instants, got {given!r}")
    return moved_to(workload, moved)


def shift(workload: Workload, seconds: float) -> Workload:
    """Return the jobs submitted the given number of seconds later (earlier if negative).

    >>> shift(Workload({"submit": [10, 20], "run": [1, 1], "processors": [1, 1]}), -10)["submit"]
    array([ 0., 10.])
    """
    return moved_to(workload, workload["submit"] + seconds)


def moved_to(workload: Workload, submit: NDArray[np.number]) -> Workload:
    """Return the jobs with these instants of submission; cancellations and recorded instants shift by the same time."""
    instants = ("cancel", "recorded_start", "recorded_end")
    moved: dict[str, Any] = {
        name: workload[name] + (submit - workload["submit"]) for name in instants if name in workload
    }
    return workload.replace(submit=submit, **moved)


def first(workload: Workload, jobs: int) -> Workload:
    """Return the first ``jobs`` jobs, in the order of the log.

    >>> len(first(Workload({"submit": [0, 1], "run": [1, 1], "processors": [1, 1]}), 1))
    1
    """
    if jobs < 0:
        raise InputError(f"jobs: must be >= 0, got {jobs!r}")
    return workload.where(slice(jobs))


def between(workload: Workload, start: float = -np.inf, end: float = np.inf) -> Workload:
    """Return the jobs submitted from ``start`` until before ``end``, in seconds of the log.

    >>> between(Workload({"submit": [0, 5, 9], "run": [1, 1, 1], "processors": [1, 1, 1]}), 5, 9)["submit"]
    array([5.])
    """
    return workload.where((workload["submit"] >= start) & (workload["submit"] < end))


def select(workload: Workload, condition: Callable[[Workload], ArrayLike] | None = None, **values: Any) -> Workload:
    """Return the jobs that meet a condition and have the given values in the named columns.

    Parameters
    ----------
    workload
        the jobs
    condition
        a function that takes the workload and returns a boolean mask
    values
        by column: the value, or a list of accepted values

    Raises
    ------
    KeyError
        a column is unknown

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
    """Return the jobs of several workloads in the order of submission; ties in the order of the workloads.

    If two jobs have the same number, all jobs are renumbered from 1, ``preceding`` included. The column ``source``
    names the workload of each job. A column that a workload lacks is filled with unknown values. The size of the
    machine is the largest of all.

    Parameters
    ----------
    workloads
        one or more
    align
        shift each workload to begin at 0 first
    name
        name of the merged workload; default: all names joined by ``+``
    own_users
        prefix users, groups, queues and partitions with the name of their workload; otherwise equal names mean the
        same user

    Raises
    ------
    InputError
        no workload is given, or one was made from :class:`~simmodel.work.job.Job` values

    >>> one = Workload({"submit": [10, 20], "run": [1, 2], "processors": [1, 1]}, name="one")
    >>> two = Workload({"submit": [15], "run": [3], "processors": [2]}, name="two")
    >>> both = merge(one, two)
    >>> both["run"], both["job"], both["source"]
    (array([1., 3., 2.]), array([1, 2, 3]), array(['one', 'two', 'one'], dtype='<U3'))
    """
    if not workloads:
        raise InputError("workloads: must have at least one")
    if any(each.specs is not None for each in workloads):
        raise InputError("workloads: cannot merge a workload made from jobs: merge the lists of jobs instead")
    parts = [shift(each, -float(each["submit"].min())) if align and len(each) else each for each in workloads]
    tables: list[dict[str, NDArray[Any]]] = [dict(part.table) for part in parts]
    if own_users:
        for part, table in zip(parts, tables, strict=True):
            for column in ("user", "group", "queue", "partition"):
                if column in table:
                    table[column] = np.array([_own_names(part.name, column, value) for value in table[column].tolist()])
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


def _own_names(workload: str, column: str, value: int | str | None) -> str:
    """Return the cell of a column whose names, of partitions perhaps several, begin with that of the workload."""
    if value in (-1, "", None):
        return ""
    names = str(value).split(",") if column == "partition" else [value]
    return ",".join(f"{workload}:{name}" for name in names)


def _number(tables: list[dict[str, NDArray[np.generic]]]) -> None:
    """Replace job numbers that collide by pairs of workload and number, and mark the tables."""
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
    """Number jobs in this order; an unknown preceding job becomes -1."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(1, len(order) + 1)
    new: Mapping[Any, int] = dict(zip(columns["job"].tolist(), position.tolist(), strict=True))
    changed = {**columns, "job": position}
    if "preceding" in columns:
        changed["preceding"] = np.array([new.get(pair, -1) for pair in columns["preceding"].tolist()], dtype=np.int64)
    return changed


def _joined(parts: Sequence[NDArray[np.generic] | None], lengths: list[int]) -> NDArray[np.generic]:
    """Join the columns of one name; missing ones are nan, -1, ``None`` or the empty text, as the type of the others."""
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


def add_traffic(
    workload: Workload,
    patterns: Sequence[str | Traffic] = ("all-to-all", "ring", "stencil-2d", "tree"),
    rates: tuple[float | str, float | str] = ("10MB/s", "1GB/s"),
    *,
    cores: int = 1,
    share: float = 1.0,
    seed: int = 0,
) -> Workload:
    """Return the jobs, a share of which have traffic: they compute for their run time and send meanwhile.

    They name no queue and no partition, which platforms lack that a log is not of.

    Parameters
    ----------
    workload
        the jobs
    patterns
        from which that of each job is drawn (see :class:`~simmodel.work.traffic.Traffic`)
    rates
        the least and the most bytes/s that a node sends, on average over the run time; drawn log-uniformly
    cores
        of a node, for jobs that request processors
    share
        the share of the jobs, chosen at random, from 0 to 1
    seed
        of the draws

    Raises
    ------
    InputError
        a pattern is unknown, or the share or the rates are not in order

    >>> log = Workload({"submit": [0, 1], "run": [10, 10], "processors": [4, 8], "requested": [60, 60]})
    >>> [(job.traffic.pattern, job.compute) for job in add_traffic(log, ["ring"]).specs]
    [('ring', 10.0), ('ring', 10.0)]
    """
    low, high = (parse_quantity(rate, "B/s", place="rates") for rate in rates)
    if not 0 <= share <= 1:
        raise InputError(f"share: must be from 0 to 1, got {share!r}")
    if not (0 < low <= high and patterns):
        raise InputError(f"rates, patterns: must be two rates > 0 in order, and some patterns, got {rates}, {patterns}")
    rng = np.random.default_rng(seed)
    jobs = [attrs.evolve(job, queue=None, partition=None, partitions=()) for job in workload.jobs()]
    chosen = rng.permutation(len(jobs)) < round(share * len(jobs))
    kinds = rng.integers(len(patterns), size=len(jobs)).tolist()
    sent = np.exp(rng.uniform(np.log(low), np.log(high), len(jobs))).tolist()
    given = [each if isinstance(each, Traffic) else Traffic(each) for each in patterns]
    for row, job in enumerate(jobs):
        if chosen[row] and job.run and not job.own_end:
            nodes = job.nodes or -(-job.processors // cores)
            kind = given[kinds[row]]
            size = kind.bytes * sent[row] * nodes * job.run / (kind.total(nodes) or 1.0)
            jobs[row] = attrs.evolve(job, run=None, compute=job.run, traffic=attrs.evolve(kind, bytes=size))
    return Workload.from_jobs(jobs, name=workload.name, processors=workload.processors)
