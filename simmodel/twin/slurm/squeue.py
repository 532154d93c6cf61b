"""Rows of ``squeue`` and ``sinfo`` as jobs and nodes of the twin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from typing import Literal, TypeAlias

from simmodel.errors import InputError, shown
from simmodel.platform.strict import inside
from simmodel.twin.events import JobReport
from simmodel.twin.refused import Refused
from simmodel.twin.slurm import values
from simmodel.twin.slurm.jobs import JobRecord, reports_of

__all__ = ["LimitFrom", "Row", "node_sizes", "nodes_out", "reports_in"]

LimitFrom: TypeAlias = Literal["limit", "comment"]
"""Where a job's requested time stands: in its limit, or in its comment as seconds (Slurm rounds limits to minutes)."""

Row: TypeAlias = Mapping[str, str]
"""Texts by field of :data:`~simmodel.twin.slurm.commands.TABLES`."""

_LONGEST_NAME = 256  # characters of a name that are kept
_DOWN = frozenset(("down", "error", "fail", "future", "inval", "unknown"))
_DRAINING = frozenset(("drained", "draining", "failing", "maint", "reboot", "blocked", "powering_down"))
_MARKS = "*~#!%$@^-+"  # of states of nodes


def reports_in(
    jobs: Iterable[Row],
    nodes: Iterable[Row] = (),
    *,
    limit_from: LimitFrom = "limit",
    memory: bool = False,
    priorities: bool = False,
    refused: Refused | None = None,
) -> tuple[JobReport, ...]:
    """Return the jobs of the table ``jobs`` in the order of Slurm's priority, submission and id.

    Parameters
    ----------
    nodes
        the table ``nodes``: an exclusive job that waits takes whole nodes
    limit_from
        where requested times stand
    memory, priorities
        as of :func:`~simmodel.twin.slurm.jobs.reports_of`
    refused
        counts the rows that make no sense; default: they raise an error

    Raises
    ------
    InputError
        a row makes no sense, and none are counted
    """
    sizes = node_sizes(nodes)
    found: list[tuple[float, JobReport]] = []
    for row in jobs:
        try:
            with _in_row(row):
                record = _record(row, sizes, limit_from)
                reports = list(reports_of(record, memory=memory, priorities=priorities))
        except InputError as error:
            if refused is None:
                raise
            refused.count(error)
        else:
            found += [(-record.priority, report) for report in reports]
    found.sort(key=lambda each: (each[0], each[1].submit, _numbers(each[1].job)))
    return tuple(report for _, report in found)


def _numbers(job: int | str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in str(job).split("_"))


@contextmanager
def _in_row(row: Row) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        inner = inside(f"job {shown(row['id'])}", error)
        raise InputError(inner.message, "squeue", inner.place) from None


def _record(row: Row, sizes: Mapping[str, int], limit_from: LimitFrom) -> JobRecord:
    for each in ("id", "array"):
        if not row[each].isdecimal():
            raise InputError(f"must be a whole number, got {shown(row[each])}", place=each)
    submit = values.instant(row["submit"])
    if submit is None:
        raise InputError("must be known", place="submit")
    nodes, cpus = _at_least_one(row, "nodes"), _at_least_one(row, "cpus")
    names = values.nodes_of(row["allocated"])
    whole = row["exclusive"] == "NO"
    if whole and not names:
        cpus = max(cpus, nodes * max((sizes.get(each, 1) for each in row["partition"].split(",")), default=1))
    told = _positive(row["comment"]) if limit_from == "comment" else None
    return JobRecord(
        job=int(row["id"]),
        array=int(row["array"]) if row["task"].isdecimal() else None,
        tasks=row["task"] if row["task"].isdecimal() else "",
        submit=submit,
        states=(row["state"],),
        reason=row["reason"],
        held=row["priority"] == "0",
        cpus=cpus,
        least_nodes=nodes,
        most_nodes=nodes if names or whole or nodes > 1 else 0,
        one_node=nodes == 1 and (values.whole(row["least_cpus"]) or 1) >= cpus,
        gpus_per_node=int(sum(each.count for each in values.gres(row["gres"]) if each.name == "gpu")),
        memory_per_node=values.memory(row["memory"]) or 0.0,
        licences=values.amounts(row["licenses"]),
        limit=told or values.seconds(row["limit"]),
        user=_text(row["user"]),
        account=_text(row["account"]),
        partition=row["partition"],
        reservation=_text(row["reservation"]),
        qos=_text(row["qos"]),
        priority=float(values.whole(row["priority"]) or 0),
        name=row["name"][:_LONGEST_NAME],
        dependency="" if values.is_none(row["dependency"]) else row["dependency"],
        started=values.instant(row["start"]) if names else None,
        ended=values.instant(row["end"]),
        nodes=tuple((name, 0) for name in names),
    )


def _positive(text: str) -> float | None:
    """Return a finite number > 0; ``None``: the text is no such number."""
    with suppress(ValueError):
        found = float(text)
        return found if 0 < found < inf else None
    return None


def _at_least_one(row: Row, place: str) -> int:
    found = values.whole(row[place])
    if found is None or found < 1:
        raise InputError(f"must be a whole number >= 1, got {shown(row[place])}", place=place)
    return found


def _text(text: str) -> str | None:
    return None if values.is_none(text) else text


def node_sizes(rows: Iterable[Row]) -> Mapping[str, int]:
    """Return the most cpus of a node in each partition, from the table ``nodes``.

    >>> dict(node_sizes([{"name": "n1", "cpus": "4", "partition": "batch*"}]))
    {'batch': 4}
    """
    found: dict[str, int] = {}
    for row in rows:
        name = row["partition"].removesuffix("*")
        found[name] = max(found.get(name, 1), values.whole(row["cpus"]) or 1)
    return found


def nodes_out(rows: Iterable[Row]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the nodes that are down, and of those that take no new jobs, from the table ``nodes``.

    >>> nodes_out([{"name": "n1", "state": "down*"}, {"name": "n2", "state": "draining"}])
    (('n1',), ('n2',))
    """
    down, draining = [], []
    for name, state in {row["name"]: row["state"] for row in rows}.items():  # one row for each partition of a node
        word = state.rstrip(_MARKS).lower()
        if word in _DOWN:
            down.append(name)
        elif word in _DRAINING or "*" in state:  # *: it does not answer
            draining.append(name)
    return tuple(down), tuple(draining)
