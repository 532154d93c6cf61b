"""slurm.conf and topology.conf as a site.

Source: slurm.conf(5), topology.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TypeVar

from simmodel.foundation.errors import InputError, shown
from simmodel.platform.node_lists import node_list, node_names
from simmodel.twin.slurm.records import NodeRecord, PartitionRecord, Site, SwitchRecord
from simmodel.twin.slurm.values import gres, is_none, memory, seconds, split_list, whole

__all__ = ["is_conf", "read_conf"]

Made = TypeVar("Made")
_PAIR = re.compile(r'([A-Za-z_][\w.]*)\s*=\s*("[^"]*"|\S*)')
_KINDS = ("NodeName", "PartitionName", "SwitchName")
_OTHERS = ("NodeSet", "DownNodes", "FrontendName", "Include")
_CPUS = ("Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")


def is_conf(text: str) -> bool:
    """Whether a text is a slurm.conf or a topology.conf rather than a report of scontrol.

    >>> is_conf("# of 2026\\nClusterName=c\\nNodeName=n[1-2] CPUs=4"), is_conf("NodeName=n1 CPUTot=4 State=IDLE")
    (True, False)
    """
    if "Configuration data as of" in text or "CPUTot=" in text or "TotalCPUs=" in text:
        return False
    return (
        re.search(r"^\s*(SlurmctldHost|ControlMachine|ClusterName|SwitchName=\S+ (Nodes|Switches))", text, re.M)
        is not None
    )


def read_conf(text: str, source: str = "slurm.conf") -> Site:
    """Return the site of a slurm.conf or a topology.conf.

    Parameters
    ----------
    source
        where the text is from, for errors

    Raises
    ------
    InputError
        a line is malformed, or includes another file

    >>> site = read_conf("ClusterName=c\\nNodeName=n[1-2] CPUs=4\\nPartitionName=b Nodes=ALL MaxTime=60")
    >>> [node.name for node in site.nodes], site.partitions[0].nodes, site.partitions[0].max_time
    (['n1', 'n2'], 'n[1-2]', 3600.0)
    """
    settings: dict[str, str] = {}
    records: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    usual: dict[str, dict[str, str]] = {kind: {} for kind in _KINDS}
    for number, line in _lines(text):
        pairs = [(key, value.strip('"')) for key, value in _PAIR.findall(line)]
        if not pairs or _PAIR.sub("", line).strip():
            raise InputError(f"must consist of Name=Value, got {shown(line)}", source, f"line {number}")
        first = next((kind for kind in _KINDS if kind.lower() == pairs[0][0].lower()), None)
        if pairs[0][0].lower() in (each.lower() for each in _OTHERS):
            raise InputError(f"{pairs[0][0]} is not read", source, f"line {number}")
        if first is None:
            settings.update(pairs)
            continue
        record = {key.lower(): value for key, value in pairs}
        if pairs[0][1].upper() == "DEFAULT":
            usual[first].update(record)
        else:
            records[first].append({**usual[first], **record})
    return _site(settings, records, source)


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
    everything = node_list(node.name for node in nodes)
    partitions = _made(records["PartitionName"], "PartitionName", lambda each: [_partition(each, everything)], source)
    return Site(
        cluster=settings.get("ClusterName"),
        settings=settings or None,
        nodes=nodes or None,
        partitions=partitions or None,
        switches=_switches(records["SwitchName"]) or None,
        source=source,
    )


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
        return whole(given) or 1
    return prod(whole(record.get(name.lower(), "1")) or 1 for name in _CPUS)


_READ = ("partitionname", "nodes", "default", "state", "maxtime", "maxnodes", "prioritytier", "priorityjobfactor")
_SHARING = ("oversubscribe", "lln")


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
        others={key: value for key, value in record.items() if key not in (*_READ, *_SHARING, "priority")},
    )


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
