"""Rows of ``squeue`` and ``sinfo`` as jobs and nodes of the twin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

import attrs

from simmodel import InputError
from simmodel.extending import inside, shown
from simmodel_site.twin.mirror.node_states import Service
from simmodel_site.twin.slurm import values
from simmodel_site.twin.slurm.jobs import LONGEST_NAME, JobRecord, Rules, own_mark
from simmodel_site.twin.slurm.records import service_of
from simmodel_site.twin.sources import Refused

__all__ = ["Row", "node_services", "node_sizes", "records_in", "rules_in", "with_array_limits", "with_marks"]

Row: TypeAlias = Mapping[str, str]
"""Texts by field of :data:`~simmodel_site.twin.slurm.commands.TABLES`."""

_MARKS = "*~#!%$@^-+"  # of states of nodes
_FREE = frozenset(("name", "comment"))  # fields in which users write what they like


def records_in(
    jobs: Iterable[Row], nodes: Iterable[Row] = (), *, refused: Refused | None = None
) -> Iterator[JobRecord]:
    """Yield the jobs of the table ``jobs``.

    Parameters
    ----------
    refused
        counts the rows that make no sense; default: they raise an error

    Raises
    ------
    InputError
        a row makes no sense, and none are counted
    """
    for row in jobs:
        try:
            with _in_row(row):
                record = _record(row)
        except InputError as error:
            if refused is None:
                raise
            refused.count(error)
        else:
            yield record


@contextmanager
def _in_row(row: Row) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        inner = inside(f"job {shown(row['id'])}", error)
        raise InputError(inner.message, "squeue", inner.place) from None


def _record(row: Row) -> JobRecord:
    for each, text in row.items():
        if each not in _FREE and not values.is_readable(text):
            raise InputError("must be printable", place=each)
    for each in ("id", "array"):
        if not row[each].isdecimal():
            raise InputError(f"must be a whole number, got {shown(row[each])}", place=each)
    submit = values.instant(row["submit"])
    if submit is None:
        raise InputError("must be known", place="submit")
    nodes, cpus = _at_least_one(row, "nodes"), _at_least_one(row, "cpus")
    names = values.nodes_of(row["allocated"])
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
        most_nodes=nodes if nodes > 1 else 0,
        whole_nodes=row["exclusive"] == "NO",
        one_node=nodes == 1 and (values.whole(row["least_cpus"]) or 1) >= cpus,
        gpus_per_node=int(sum(each.count for each in values.gres(row["gres"]) if each.name == "gpu")),
        memory_per_node=values.memory(row["memory"]) or 0.0,
        licences=values.amounts(row["licenses"]),
        limit=values.seconds(row["limit"]),
        user=_text(row["user"]),
        account=_text(row["account"]),
        partition=row["partition"],
        reservation=_text(row["reservation"]),
        qos=_text(row["qos"]),
        priority=float(values.whole(row["priority"]) or 0),
        name=row["name"][:LONGEST_NAME],
        comment=row["comment"],
        dependency="" if values.is_none(row["dependency"]) else row["dependency"],
        started=values.instant(row["start"]),
        ended=values.instant(row["end"]),
        nodes=tuple((name, 0) for name in names),
        required=_text(row["required"]) or "",
        excluded=_text(row["excluded"]) or "",
        features=_text(row["features"]) or "",
        sharing="" if row["exclusive"] in ("NO", "OK") else row["exclusive"].lower(),
    )


def with_marks(records: Iterable[JobRecord], rows: Iterable[Row]) -> Iterator[JobRecord]:
    """Yield jobs with the marks of the table ``marks``; raises ``InputError`` if it lacks one that waits.

    A job whose begin time is not the one that its mark records is held by its user, not for a twin: it has no mark.
    """
    found = {
        (row["job"], row["task"] if row["task"].isdecimal() else ""): own_mark(row["mark"], row["begin"])
        for row in rows
    }
    for record in records:
        mark = found.get((str(record.job), record.tasks))
        if mark is None and "PENDING" in record.states:
            raise InputError(f"must tell the mark of job {record.job}", "squeue")
        yield record if mark is None or values.is_none(mark) else attrs.evolve(record, mark=mark)


def with_array_limits(records: Iterable[JobRecord], rows: Iterable[Row]) -> Iterator[JobRecord]:
    """Yield jobs with how many tasks of their array may run at once, from the table ``arrays``."""
    limits = {row["array"]: values.whole(row["tasks"].rpartition("%")[2]) for row in rows if "%" in row["tasks"]}
    for record in records:
        limit = limits.get(str(record.array))
        yield attrs.evolve(record, array_limit=limit) if limit else record


def rules_in(config: str, nodes: Iterable[Row]) -> Rules:
    """Return the rules of a Slurm from ``scontrol show config`` and the table ``nodes``.

    >>> nodes = [{"name": "n1", "memory": "8", "partition": "a*"}, {"name": "n2", "memory": "8", "partition": "a*"}]
    >>> rules = rules_in("SelectTypeParameters = CR_CORE_MEMORY", [*nodes, {**nodes[0], "partition": "b"}])
    >>> rules.memory, sorted(rules.parts), dict(rules.node_memory)["a"]
    (True, ['b'], 8388608.0)
    """
    told = dict(re.findall(r"^(\w+)\s*=\s*(\S+)", config, re.MULTILINE))
    members: dict[str, set[str]] = {}
    memory: dict[str, set[float]] = {}
    for row in nodes:
        if not all(map(values.is_readable, row.values())):
            raise InputError("must be printable", "sinfo", "row")
        name = row["partition"].removesuffix("*")
        members.setdefault(name, set()).add(row["name"])
        memory.setdefault(name, set()).add((values.whole(row["memory"]) or 0) * 2.0**20)
    return Rules(
        memory="MEMORY" in told.get("SelectTypeParameters", "").upper(),
        preemption="" if told.get("PreemptType", "preempt/none") == "preempt/none" else told.get("PreemptMode", "on"),
        parts=frozenset(
            name for name, own in members.items() if any(own & other and other - own for other in members.values())
        ),
        node_memory={name: sizes.pop() for name, sizes in memory.items() if len(sizes) == 1},
    )


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


def node_services(rows: Iterable[Row]) -> Iterator[tuple[str, Service]]:
    """Yield the name of a node and its service for each row of the table ``nodes``.

    >>> list(node_services([{"name": "n1", "state": "down*"}, {"name": "n2", "state": "draining"}]))
    [('n1', 'down'), ('n2', 'draining')]
    """
    for row in rows:
        silent = {"NOT_RESPONDING"} if "*" in row["state"] else set()
        yield row["name"], service_of({row["state"].rstrip(_MARKS).upper()} | silent)
