"""slurm.conf, with the files that it includes, topology.conf and gres.conf as a site.

Source: slurm.conf(5), topology.conf(5), gres.conf(5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TypeVar

from simmodel.foundation.errors import InputError, shown
from simmodel.platform.node_lists import node_list, node_names
from simmodel.twin.slurm.records import (
    GresRecord,
    LicenceRecord,
    NodeRecord,
    PartitionRecord,
    Site,
    SwitchRecord,
)
from simmodel.twin.slurm.scontrol import USUAL
from simmodel.twin.slurm.values import Gres, amounts, gres, is_none, memory, seconds, split_list, whole

__all__ = ["includes_of", "is_conf", "is_gres", "read_conf", "read_gres"]

Made = TypeVar("Made")
_PAIR = re.compile(r'([A-Za-z_][\w.]*)\s*=\s*("[^"]*"|\S*)')
_KINDS = ("NodeName", "PartitionName", "SwitchName")
_OTHERS = ("NodeSet", "DownNodes", "FrontendName")
_INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
_MOST = 100  # files that are included, one in another
_CPUS = ("Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")

_OF_CONF = re.compile(
    r"^\s*(SlurmctldHost|ControlMachine|ClusterName|SwitchName=\S+ (Nodes|Switches)"
    r"|NodeName=\S+ .*\b(CPUs|Boards|Sockets|RealMemory)=)",
    re.MULTILINE,
)


def is_conf(text: str) -> bool:
    """Whether a text is a slurm.conf or a topology.conf rather than a report of scontrol.

    >>> is_conf("# of 2026\\nClusterName=c\\nNodeName=n[1-2] CPUs=4"), is_conf("NodeName=n1 CPUTot=4 State=IDLE")
    (True, False)
    """
    if "Configuration data as of" in text or "CPUTot=" in text or "TotalCPUs=" in text:
        return False
    return _OF_CONF.search(text) is not None


def is_gres(text: str) -> bool:
    """Whether a text is a gres.conf.

    >>> is_gres("NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]"), is_gres("NodeName=n1 CPUs=4")
    (True, False)
    """
    return re.search(r"^\s*(AutoDetect=|(NodeName=\S+\s+)?(AutoDetect|Name)=\w+)", text, re.M | re.I) is not None


def includes_of(text: str) -> tuple[str, ...]:
    """Return the files that a slurm.conf includes, as it names them.

    >>> includes_of("ClusterName=c\\ninclude nodes.conf # all of them")
    ('nodes.conf',)
    """
    return tuple(match[1] for _, line in _lines(text) if (match := _INCLUDE.fullmatch(line)))


def read_conf(text: str, source: str = "slurm.conf", included: Callable[[str], tuple[str, str]] | None = None) -> Site:
    """Return the site of a slurm.conf or a topology.conf.

    Parameters
    ----------
    source
        where the text is from, for errors
    included
        returns the text and the source of a file that is included; default: such a line is an error

    Raises
    ------
    InputError
        a line is malformed, two lines have a node of one name, or a file that is included cannot be read

    >>> site = read_conf("ClusterName=c\\nNodeName=n[1-2] CPUs=4\\nPartitionName=b Nodes=ALL MaxTime=60")
    >>> [node.name for node in site.nodes], site.partitions[0].nodes, site.partitions[0].max_time
    (['n1', 'n2'], 'n[1-2]', 3600.0)
    """
    settings: dict[str, str] = {}
    records: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    usual: dict[str, dict[str, str]] = {kind: {} for kind in _KINDS}
    for where, number, line in _all_lines(text, source, included):
        pairs = [(key, value.strip('"')) for key, value in _PAIR.findall(line)]
        if not pairs or _PAIR.sub("", line).strip():
            raise InputError(f"must consist of Name=Value, got {shown(line)}", where, f"line {number}")
        first = next((kind for kind in _KINDS if kind.lower() == pairs[0][0].lower()), None)
        if pairs[0][0].lower() in (each.lower() for each in _OTHERS):
            raise InputError(f"{pairs[0][0]} is not read", where, f"line {number}")
        if first is None:
            settings.update(pairs)
            continue
        record = {key.lower(): value for key, value in pairs}
        if pairs[0][1].upper() == "DEFAULT":
            usual[first].update(record)
        else:
            records[first].append({**usual[first], **record})
    return _site(settings, records, source)


def read_gres(text: str, source: str = "gres.conf") -> Site:
    """Return the generic resources of a gres.conf, as a part of a site.

    Raises
    ------
    InputError
        a line is malformed

    >>> read_gres("NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]").gres
    (GresRecord(nodes='n[1-2]', gres=Gres(name='gpu', count=4.0, type='a100')),)
    """
    found = []
    for number, line in _lines(text):
        record = {key.lower(): value.strip('"') for key, value in _PAIR.findall(line)}
        if not record or _PAIR.sub("", line).strip():
            raise InputError(f"must consist of Name=Value, got {shown(line)}", source, f"line {number}")
        if "name" in record:
            files = node_names(record.get("file", record.get("multiplefiles", "")).replace("/", "_"))
            count = whole(record.get("count", "")) if record.get("count") else len(files) or 1
            each = Gres(record["name"], float(count or 0), record.get("type", ""))
            found.append(GresRecord(nodes=record.get("nodename", ""), gres=each))
    return Site(gres=tuple(found) or None, source=source)


def _all_lines(
    text: str, source: str, included: Callable[[str], tuple[str, str]] | None, depth: int = 0
) -> Iterator[tuple[str, int, str]]:
    """Yield the lines that say something, of included files too, each with its file and number."""
    for number, line in _lines(text):
        match = _INCLUDE.fullmatch(line)
        if match is None:
            yield source, number, line
            continue
        if included is None or depth == _MOST:
            why = (
                "is not read: give the folder" if included is None else f"must not include {_MOST} files in each other"
            )
            raise InputError(f"the file {match[1]} {why}", source, f"line {number}")
        yield from _all_lines(*included(match[1]), included, depth + 1)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, continued ones joined, with their numbers."""
    held, begun = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].rstrip()
        begun = begun or number
        held += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        if held.strip():
            yield begun, held.strip()
        held, begun = "", 0
    if held.strip():
        yield begun, held.strip()


def _site(settings: dict[str, str], records: Mapping[str, list[dict[str, str]]], source: str) -> Site:
    nodes = _made(records["NodeName"], "NodeName", _nodes, source)
    again = [name for name, times in Counter(node.name for node in nodes).items() if times > 1]
    if again:
        raise InputError(f"must be of one line each, got {node_list(again)} in several", source, "NodeName")
    everything = node_list(node.name for node in nodes)
    partitions = _made(records["PartitionName"], "PartitionName", lambda each: [_partition(each, everything)], source)
    return Site(
        cluster=settings.get("ClusterName"),
        settings=settings or None,
        nodes=nodes or None,
        partitions=partitions or None,
        licences=_licences(settings.get("Licenses", "")) or None,
        switches=_switches(records["SwitchName"]) or None,
        source=source,
    )


def _licences(text: str) -> tuple[LicenceRecord, ...]:
    return tuple(LicenceRecord(name=name, total=int(amount)) for name, amount in amounts(text).items())


def _made(
    records: list[dict[str, str]], kind: str, make: Callable[[dict[str, str]], list[Made]], source: str
) -> tuple[Made, ...]:
    """Return what lines of a kind describe; an error names the line."""
    found: list[Made] = []
    for record in records:
        try:
            found += make(record)
        except InputError as error:
            raise InputError(error.message, source, f"{kind}={record[kind.lower()]}") from None
    return tuple(found)


def _nodes(record: dict[str, str]) -> list[NodeRecord]:
    states = record.get("state", "UNKNOWN").upper()
    return [
        NodeRecord(
            name=name,
            cpus=_cpus(record),
            threads=whole(record.get("threadspercore", "1")) or 1,
            memory=memory(record.get("realmemory", "1")) or 0.0,
            kept_memory=memory(record.get("memspeclimit", "0")) or 0.0,
            gres=gres(record.get("gres", "")),
            states=frozenset(("IDLE",) if states == "UNKNOWN" else states.split("+")),
            features=tuple(split_list(record.get("feature", record.get("features", "")))),
            weight=whole(record.get("weight", "1")) or 1,
        )
        for name in node_names(record["nodename"])
    ]


def _cpus(record: dict[str, str]) -> int:
    given = record.get("cpus") or record.get("procs")
    if given:
        count = whole(given)
        if count is None or count < 1:
            raise InputError(f"CPUs must be >= 1, got {shown(given)}")
        return count
    return prod(whole(record.get(name.lower(), "1")) or 1 for name in _CPUS)


_READ = ("partitionname", "nodes", "default", "state", "maxtime", "maxnodes", "prioritytier", "priorityjobfactor")
_SHARING = ("oversubscribe", "lln", "gracetime", "tresbillingweights")


def _partition(record: dict[str, str], everything: str) -> PartitionRecord:
    nodes = record.get("nodes", "")
    limit = record.get("maxtime", "")
    priority = record.get("priority", "1")
    return PartitionRecord(
        name=record["partitionname"],
        nodes=everything if nodes.upper() == "ALL" else "" if is_none(nodes) else nodes,
        default=record.get("default", "NO").upper() == "YES",
        state=record.get("state", "UP").upper(),
        max_time=_limit(limit),
        max_nodes=whole(record.get("maxnodes", "UNLIMITED")),
        tier=whole(record.get("prioritytier", priority)) or 1,
        job_factor=whole(record.get("priorityjobfactor", priority)) or 1,
        sharing=record.get("oversubscribe", "NO").upper(),
        least_loaded=record.get("lln", "NO").upper() == "YES",
        preempt_mode=record.get("preemptmode"),
        grace_time=seconds(record.get("gracetime", "0")) or 0.0,
        billing=record.get("tresbillingweights", ""),
        others=_others(record),
    )


def _others(record: dict[str, str]) -> dict[str, str]:
    """Return the settings of a partition that are not the usual ones, by Slurm's name."""
    names = {name.lower(): name for name in USUAL}
    read = (*_READ, *_SHARING, "priority")
    rest = {names.get(key, key): value for key, value in record.items() if key not in read}
    return {name: value for name, value in rest.items() if value not in USUAL.get(name, ()) and not is_none(value)}


def _limit(text: str) -> float | None:
    """Return a limit in seconds: a number alone is in minutes."""
    return float(text) * 60 if text.isdecimal() else seconds(text)


def _switches(records: list[dict[str, str]]) -> tuple[SwitchRecord, ...]:
    """Return the switches, each with all nodes below it, and its level."""
    named = {record["switchname"]: record for record in records}

    def below(name: str, depth: int = 0) -> tuple[int, list[str]]:
        record = named.get(name, {})
        if "nodes" in record or depth > len(named):
            return 0, list(node_names(record.get("nodes", "")))
        found = [below(each, depth + 1) for each in node_names(record.get("switches", ""))]
        return 1 + max([level for level, _ in found], default=0), [node for _, nodes in found for node in nodes]

    expanded = {name: below(name) for name in named}
    return tuple(
        SwitchRecord(name=name, level=level, nodes=node_list(nodes)) for name, (level, nodes) in expanded.items()
    )
