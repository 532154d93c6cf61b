"""The JSON of slurmrestd, and of commands with ``--json``: nodes, partitions, reservations, licences, QOS and jobs.

The shape of an answer goes by the data parser that it names (``meta.plugin.data_parser``), never by the release: up to
v0.0.38, of plug-ins without data parsers, records are flat; from v0.0.39 on they are nested, a number is an object of
``set``, ``infinite`` and ``number``, and a state is a list of words. Recorded answers of v0.0.38 and of v0.0.41 to
v0.0.44 are tested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

from simmodel import InputError
from simmodel.extending import parse_json, shown
from simmodel_site.twin.slurm.records import (
    LicenceRecord,
    NodeRecord,
    PartitionRecord,
    QosRecord,
    ReservationRecord,
    Site,
)
from simmodel_site.twin.slurm.values import amounts, count_of, cpus_of, gres, is_none, split_list

__all__ = ["FREE", "PARSERS", "Given", "parser_of", "read_answer", "read_document", "records_of"]

_T = TypeVar("_T")
_PARSER = re.compile(r"(?:data_parser|openapi)?/?(v0\.0\.(\d{1,4}))(?:\W.*)?")
PARSERS = range(38, 45)
"""The data parsers whose shapes are known, the oldest first."""
_FLAT = PARSERS[0]
_NO_VALUE = 0xFFFFFFFD  # and the numbers above it stand for infinite and for not set, in 32 bits; in 64 bits alike


def parser_of(document: Mapping[str, Any], source: str | None = None) -> int:
    """Return the number of the data parser of an answer, 44 for v0.0.44.

    Raises
    ------
    InputError
        it names none, or one whose shape is not known

    >>> parser_of({"meta": {"plugin": {"data_parser": "data_parser/v0.0.44"}}})
    44
    """
    given: Any = document
    if not isinstance(given, Mapping):
        raise InputError(f"must be one JSON object, got {shown(given)}", source)
    meta = document.get("meta")
    plugin = meta.get("plugin") if isinstance(meta, Mapping) else None
    given = plugin.get("data_parser") or plugin.get("type") if isinstance(plugin, Mapping) else None
    match = _PARSER.fullmatch(given) if isinstance(given, str) else None
    if match is None or int(match[2]) not in PARSERS:
        raise InputError(
            f"must be v0.0.{PARSERS[0]} to v0.0.{PARSERS[-1]}, got {shown(given)}", source, "meta.plugin.data_parser"
        )
    return int(match[2])


def read_document(text: str, since: float = 0.0) -> tuple[Mapping[str, Any], float]:
    """Return an answer and its instant (s), or ``since`` where it gives none.

    Raises
    ------
    InputError
        it is not a JSON object, reports errors, or is older than ``since``
    """
    document = parse_json(text)
    if not isinstance(document, dict):
        raise InputError(f"must be an object, got {shown(document)}")
    if document.get("errors"):
        raise InputError(f"must be none, got {shown(document['errors'])}", place="errors")
    told = Given(document, PARSERS[-1], "answer").number("last_update")
    if told is not None and told < since:
        raise InputError("must not be older than the last answer", place="last_update")
    return document, since if told is None else float(told)


FREE = frozenset(
    (
        *("name", "comment", "admin_comment", "system_comment", "extra", "command", "container", "submit_line"),
        *("current_working_directory", "standard_error", "standard_input", "standard_output", "state_description"),
    )
)
"""Fields of jobs that hold free text, as users write it."""


@lru_cache(1024)
def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


class Given:
    """The fields of one record of an answer, each under its name in flat and in nested answers.

    >>> node = Given({"state": ["IDLE"], "weight": {"set": True, "infinite": False, "number": 5}}, 44, "nodes[0]")
    >>> node.words("state"), node.number("weight"), node.text("reason")
    (('IDLE',), 5, '')
    """

    def __init__(self, values: Any, parser: int, place: str) -> None:
        if not isinstance(values, dict):
            raise InputError(f"must be an object, got {shown(values)}", place=place)
        self.values, self.flat, self.place = values, parser <= _FLAT, place

    def get(self, path: str, flat: str | None = None) -> Any:
        """Return a value by its path, or in flat answers by another name; ``None``: it is not there."""
        found: Any = self.values
        for key in _keys(flat if self.flat and flat is not None else path):
            if not isinstance(found, dict):
                return None
            found = found.get(key)
        return found

    def wrong(self, path: str, accepted: str) -> InputError:
        return InputError(f"must be {accepted}, got {shown(self.get(path))}", place=f"{self.place}.{path}")

    def number(self, path: str, flat: str | None = None) -> float | None:
        """Return a number; ``None``: infinite, not set or not there."""
        given = self.get(path, flat)
        if isinstance(given, dict):
            if given.get("infinite") or given.get("set") is False:
                return None
            given = given.get("number")
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
            raise self.wrong(path, "a number")
        return None if given < 0 or given >= _NO_VALUE else given

    def whole(self, path: str, flat: str | None = None) -> int | None:
        """Return a whole number; ``None``: infinite, not set or not there."""
        found = self.number(path, flat)
        return None if found is None else int(found)

    def text(self, path: str, flat: str | None = None) -> str:
        """Return a text, empty if it is not there or stands for nothing."""
        given = self.get(path, flat)
        if given is not None and not isinstance(given, str):
            raise self.wrong(path, "a text")
        return "" if given is None or is_none(given) else given

    def name(self, path: str, flat: str | None = None) -> str:
        """Return a text that must be there."""
        found = self.text(path, flat)
        if not found:
            raise self.wrong(path, "a text that is not empty")
        return found

    def words(self, path: str, flat: str | None = None) -> tuple[str, ...]:
        """Return words in capitals: a list of them, or one text."""
        given = self.get(path, flat)
        given = given.replace("+", ",").split(",") if isinstance(given, str) else given
        if given is not None and not (isinstance(given, Sequence) and all(isinstance(each, str) for each in given)):
            raise self.wrong(path, "a list of texts")
        return tuple(each.strip("*").upper() for each in given or () if each)

    def names(self, path: str, flat: str | None = None) -> tuple[str, ...]:
        """Return names: a list of them, or one text with commas, each once."""
        given = self.get(path, flat)
        if isinstance(given, Sequence) and all(isinstance(each, str) for each in given):
            given = "" if is_none("".join(given)) else given
            return tuple(dict.fromkeys(split_list(given) if isinstance(given, str) else given))
        if given is not None:
            raise self.wrong(path, "a list of names")
        return ()

    def objects(self, path: str) -> list[Mapping[str, Any]]:
        """Return a list of objects, empty if it is not there."""
        found = self.get(path)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
            raise self.wrong(path, "a list of objects")
        return found

    def read(self, read: Callable[[str], _T], path: str, flat: str | None = None) -> _T:
        """Return the value of a text in Slurm's own notation."""
        try:
            return read(self.text(path, flat))
        except InputError as error:
            raise InputError(error.message, place=f"{self.place}.{path}") from None


def records_of(document: Mapping[str, Any], kind: str, parser: int, source: str | None = None) -> Iterator[Given]:
    """Yield the records of a kind in an answer."""
    given = document[kind]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(f"must be a list, got {shown(given)}", source, kind)
    for number, each in enumerate(given):
        yield Given(each, parser, f"{kind}[{number}]")


def read_answer(data: bytes | str | Mapping[str, Any], source: str = "an answer") -> Site:
    """Return the site in an answer: its cluster, and its nodes, partitions, reservations, licences or QOS.

    Raises
    ------
    InputError
        it is not JSON, names no known data parser, lacks a value, or has a wrong one

    >>> answer = {"meta": {"plugin": {"data_parser": "v0.0.42"}}, "licenses": [{"LicenseName": "matlab", "Total": 3}]}
    >>> read_answer(answer).licences
    (LicenceRecord(name='matlab', total=3),)
    """
    document: Any = data
    if isinstance(data, bytes | str):
        document = parse_json(data if isinstance(data, bytes) else data.encode(), source)
    parser = parser_of(document, source)
    told: dict[str, Any] = {}
    try:
        for kind, (field, read) in _KINDS.items():
            if kind in document:
                told[field] = tuple(read(each) for each in records_of(document, kind, parser))
    except InputError as error:
        raise InputError(error.message, source, error.place) from None
    meta = document["meta"]
    slurm = Given(meta.get("slurm") or meta.get("Slurm") or {}, parser, "meta.slurm")
    return Site(cluster=slurm.text("cluster") or None, version=slurm.text("release") or None, **told, source=source)


def _node(given: Given) -> NodeRecord:
    cpus, usable = given.whole("cpus"), given.whole("effective_cpus")
    if cpus is None:
        raise given.wrong("cpus", "a number")
    told = {"CPUs": cpus, "Sockets": given.whole("sockets"), "CoresPerSocket": given.whole("cores")}
    counts = {**told, "ThreadsPerCore": given.whole("threads")}
    parts = cpus_of({name: str(count) for name, count in counts.items() if count})
    return NodeRecord(
        name=given.name("name"),
        cpus=cpus if usable is None else usable,
        threads=parts.threads,
        socket=parts.socket,
        memory=(given.number("real_memory") or 0) * 2.0**20,
        kept_cpus=0 if usable is None else cpus - usable,
        kept_memory=(given.number("specialized_memory") or 0) * 2.0**20,
        gres=given.read(gres, "gres"),
        states=frozenset(given.words("state") + (given.words("state_flags") if given.flat else ())),
        partitions=given.names("partitions"),
        features=given.names("features"),
        weight=given.whole("weight") or 0,
        reason=given.text("reason"),
    )


# Settings of partitions that have no counterpart: Slurm's name, the path, that in flat answers, and usual values.
_OTHERS = (
    ("AllowAccounts", "accounts/allowed", "allowed_accounts", ()),
    ("DenyAccounts", "accounts/deny", "denied_accounts", ()),
    ("AllowGroups", "groups/allowed", "allowed_groups", ()),
    ("AllowQos", "qos/allowed", "allowed_qos", ()),
    ("DenyQos", "qos/deny", "denied_qos", ()),
    ("QoS", "qos/assigned", "qos", ()),
    ("AllocNodes", "nodes/allowed_allocation", "allowed_allocation_nodes", ()),
    ("Alternate", "alternate", "alternative", ()),
    ("MinNodes", "minimums/nodes", "min nodes per job", (0, 1)),
    ("DefaultTime", "defaults/time", "default_time_limit", (0,)),
    ("DefMemPerCPU", "defaults/partition_memory_per_cpu", "default_memory_per_cpu", (0,)),
    ("DefMemPerNode", "defaults/partition_memory_per_node", "default_memory_per_node", (0,)),
    ("MaxMemPerCPU", "maximums/partition_memory_per_cpu", "maximum_memory_per_cpu", (0,)),
    ("MaxMemPerNode", "maximums/partition_memory_per_node", "maximum_memory_per_node", (0,)),
    ("MaxCPUsPerNode", "maximums/cpus_per_node", "maximum_cpus_per_node", (0,)),
    ("MaxCPUsPerSocket", "maximums/cpus_per_socket", "maximum_cpus_per_socket", (0,)),
    ("OverTimeLimit", "maximums/over_time_limit", "over_time_limit", (0,)),
    ("SuspendTime", "suspend_time", "suspend_time", ()),
    ("SuspendTimeout", "timeouts/suspend", "suspend_timeout", ()),
    ("ResumeTimeout", "timeouts/resume", "resume_timeout", ()),
)


def _others(given: Given) -> dict[str, str]:
    found = {}
    for name, path, flat, usual in _OTHERS:
        value = given.get(path, flat)
        if isinstance(value, str) or value is None:
            text = given.text(path, flat)
        elif name == "SuspendTime" and isinstance(value, dict) and value.get("infinite"):
            text = "INFINITE"
        else:
            number = given.whole(path, flat)
            text = "" if number is None or number in usual else str(number)
            if text and name == "DefaultTime":
                text = f"{int(text) // 60:02d}:{int(text) % 60:02d}:00"
        if text:
            found[name] = text
    return found


def _partition(given: Given) -> PartitionRecord:
    flags = given.words("flags")
    minutes = given.number("maximums/time", "max_time_limit")
    jobs = given.whole("maximums/oversubscribe/jobs")
    force = "FORCE" in given.words("maximums/oversubscribe/flags")
    sharing = "EXCLUSIVE" if jobs == 0 else "NO" if jobs in (None, 1) and not force else f"YES:{jobs}"
    return PartitionRecord(
        name=given.name("name"),
        nodes=given.text("nodes/configured", "nodes"),
        resources=given.read(amounts, "tres/configured", "tres"),
        default=True if "DEFAULT" in flags else False if given.flat else None,
        state="+".join(given.words("partition/state", "state")) or "UP",
        max_time=None if minutes is None else minutes * 60.0,
        max_nodes=given.whole("maximums/nodes", "maximum_nodes_per_job"),
        tier=given.whole("priority/tier", "priority_tier") or 0,
        job_factor=given.whole("priority/job_factor", "priority_job_factor") or 0,
        sharing=f"FORCE:{jobs}" if force else sharing,
        least_loaded="LEAST_LOADED_NODES" in flags,
        others=_others(given),
    )


def _reservation(given: Given) -> ReservationRecord:
    start, end = given.number("start_time"), given.number("end_time")
    if start is None or end is None:
        raise given.wrong("start_time" if start is None else "end_time", "an instant (s)")
    kept = {
        "Groups": "groups",
        "Accounts": "accounts",
        "Licenses": "licenses",
        "Features": "features",
        "PartitionName": "partition",
        "BurstBuffer": "burst_buffer",
    }
    return ReservationRecord(
        name=given.name("name"),
        start=float(start),
        end=float(end),
        nodes=given.text("node_list"),
        users=given.names("users"),
        cpus=count_of(given.read(amounts, "tres"), "cpu"),
        flags=given.words("flags"),
        others={name: text for name, key in kept.items() if (text := given.text(key))},
    )


def _licence(given: Given) -> LicenceRecord:
    total = given.whole("Total")
    if total is None:
        raise given.wrong("Total", "a number")
    return LicenceRecord(name=given.name("LicenseName"), total=total, reserved=given.whole("Reserved") or 0)


def _qos(given: Given) -> QosRecord:
    minutes = given.number("limits/max/wall_clock/per/job")
    limits = {str(each.get("type")): each.get("count") for each in given.objects("limits/max/tres/per/job")}
    cpus = limits.pop("cpu", None)
    others = {f"MaxTRESPerJob {name}": str(count) for name, count in limits.items()}
    for name, path in (
        ("MaxSubmitJobsPerUser", "limits/max/jobs/per/user"),
        ("MaxSubmitJobsPerAccount", "limits/max/jobs/per/account"),
        ("MaxJobsPerAccount", "limits/max/jobs/active_jobs/per/account"),
        ("GrpSubmitJobs", "limits/max/jobs/count"),
        ("GrpWall", "limits/max/wall_clock/per/qos"),
    ):
        number = given.number(path)
        if number is not None:
            others[name] = f"{number:g}"
    for name, path in (
        ("MaxTRESPerUser", "limits/max/tres/per/user"),
        ("MaxTRESPerNode", "limits/max/tres/per/node"),
        ("MaxTRESPerAccount", "limits/max/tres/per/account"),
        ("MinTRESPerJob", "limits/min/tres/per/job"),
        ("GrpTRES", "limits/max/tres/total"),
    ):
        listed = [f"{each.get('type')}={each.get('count')}" for each in given.objects(path)]
        if listed:
            others[name] = ",".join(listed)
    return QosRecord(
        name=given.name("name"),
        priority=given.whole("priority") or 0,
        max_time=None if minutes is None else minutes * 60.0,
        max_cpus=cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus > 0 else None,
        max_running=given.whole("limits/max/active_jobs/count"),
        max_running_per_user=given.whole("limits/max/jobs/active_jobs/per/user"),
        preempts=given.names("preempt/list"),
        preempt_mode="+".join(given.words("preempt/mode")),
        others=others,
    )


_KINDS: Mapping[str, tuple[str, Callable[[Given], Any]]] = {
    "nodes": ("nodes", _node),
    "partitions": ("partitions", _partition),
    "reservations": ("reservations", _reservation),
    "licenses": ("licences", _licence),
    "qos": ("qos", _qos),
}
