"""slurm.conf, with the files that it includes, topology.conf and gres.conf as a site.

Source: slurm.conf(5), topology.conf(5), gres.conf(5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from simmodel import InputError
from simmodel.extending import node_list, node_names, shown
from simmodel_site.policy.keys import (
    DOWN_NODES,
    FRONTEND,
    GRES,
    NODE,
    NODE_SET,
    PARTITION,
    SLURM_CONF,
    TOPOLOGY,
    Keys,
)
from simmodel_site.twin.described import Unsupported
from simmodel_site.twin.slurm.records import (
    GresRecord,
    LicenceRecord,
    NodeRecord,
    PartitionRecord,
    Site,
    SwitchRecord,
)
from simmodel_site.twin.slurm.values import (
    Gres,
    amount,
    amounts,
    cpus_of,
    gres,
    is_none,
    memory,
    seconds,
    split_list,
    whole,
)

__all__ = [
    "includes_of",
    "is_conf",
    "is_gres",
    "nodes_of_line",
    "pairs_of",
    "partition_of_line",
    "partition_settings",
    "read_conf",
    "read_gres",
]

Made = TypeVar("Made")
Line = dict[str, str]
_PAIR = re.compile(r'([A-Za-z_][\w.]*)\s*=\s*("[^"]*"|\S*)')
_KINDS: Mapping[str, Keys] = {
    "NodeName": NODE,
    "PartitionName": PARTITION,
    "SwitchName": TOPOLOGY,
    "BlockName": TOPOLOGY,
    "BlockSizes": TOPOLOGY,
    "NodeSet": NODE_SET,
    "DownNodes": DOWN_NODES,
    "FrontendName": FRONTEND,
}
"""The keys with which lines about nodes and the like begin, and all keys of such lines."""
_INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
_MOST = 100  # files that are included, one in another
_OF_CONF = re.compile(
    r"^\s*((SlurmctldHost|ControlMachine|ClusterName|SlurmUser|SlurmctldPort|SlurmdPort|SelectType"
    r"|SchedulerType|StateSaveLocation)=|(SwitchName|BlockName)=\S+ (Nodes|Switches)|(NodeName|PartitionName)=DEFAULT\b"
    r"|NodeName=\S+ .*\b(CPUs|Procs|Boards|Sockets|CoresPerSocket|RealMemory)=)",
    re.MULTILINE | re.IGNORECASE,
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
    settings: Line = {}
    records: dict[str, list[Line]] = {kind: [] for kind in _KINDS}
    usual: dict[str, Line] = {kind: {} for kind in _KINDS}
    for where, number, line in _all_lines(text, source, included):
        try:
            first, record = pairs_of(line)
        except InputError as error:
            raise InputError(error.message, where, f"line {number}") from None
        if first is None:
            settings |= record
        elif record[first].upper() == "DEFAULT":
            usual[first] |= record
        else:
            records[first].append(usual[first] | record)
    return _site(settings, records, source)


def pairs_of(line: str) -> tuple[str | None, Line]:
    """Return the kind of a line of slurm.conf, such as ``NodeName``, and its values by key; ``None``: of the cluster.

    Raises
    ------
    InputError
        it does not consist of ``Name=Value``

    >>> pairs_of("partitionname=b maxtime=60")
    ('PartitionName', {'PartitionName': 'b', 'MaxTime': '60'})
    """
    pairs = [(key, value.strip('"')) for key, value in _PAIR.findall(line)]
    if not pairs or _PAIR.sub("", line).strip():
        raise InputError(f"must consist of Name=Value, got {shown(line)}")
    first = next((kind for kind in _KINDS if kind.lower() == pairs[0][0].lower()), None)
    keys = SLURM_CONF if first is None else _KINDS[first]
    return first, {keys.proper(key): value for key, value in pairs}


def read_gres(text: str, source: str = "gres.conf") -> Site:
    """Return the generic resources of a gres.conf, as a part of a site.

    Raises
    ------
    InputError
        a line is malformed

    >>> read_gres("NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]").gres
    (GresRecord(nodes='n[1-2]', gres=Gres(name='gpu', count=4.0, type='a100')),)
    """
    found: list[GresRecord] = []
    unread: list[Unsupported] = []
    for number, line in _lines(text):
        record = {GRES.proper(key): value.strip('"') for key, value in _PAIR.findall(line)}
        if not record or _PAIR.sub("", line).strip():
            raise InputError(f"must consist of Name=Value, got {shown(line)}", source, f"line {number}")
        unread += _unread("gres.conf", record, GRES)
        if "Name" in record:
            files = node_names(record.get("File", "").replace("/", "_"))  # of MultipleFiles, all are one device
            count = amount(record.get("Count", "")) or float(len(files) or 1)
            each = Gres(record["Name"], count, record.get("Type", ""))
            found.append(GresRecord(nodes=record.get("NodeName", ""), gres=each))
    return Site(gres=tuple(found) or None, unread=tuple(unread), source=source)


def _unread(where: str, record: Line, keys: Keys) -> list[Unsupported]:
    """Return what a line says that may change starts and is not modelled."""
    return [Unsupported(where, what, why) for what, why in keys.named(record)]


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


def _site(settings: Line, records: Mapping[str, list[Line]], source: str) -> Site:
    nodes = _made(records["NodeName"], "NodeName", nodes_of_line, source)
    again = [name for name, times in Counter(node.name for node in nodes).items() if times > 1]
    if again:
        raise InputError(f"must be of one line each, got {node_list(again)} in several", source, "NodeName")
    down = {name: _state(line) for line in records["DownNodes"] for name in node_names(line["DownNodes"])}
    nodes = tuple(attrs.evolve(node, **down.get(node.name, {})) for node in nodes)
    sets = {line["NodeSet"]: _members_of(line, nodes) for line in records["NodeSet"]}
    sets["ALL"] = node_list(node.name for node in nodes)
    partitions = _made(records["PartitionName"], "PartitionName", lambda each: [_partition(each, sets)], source)
    others = [(kind, line) for kind in _KINDS if kind not in ("NodeName", "PartitionName") for line in records[kind]]
    return Site(
        cluster=settings.get("ClusterName"),
        settings=settings or None,
        nodes=nodes or None,
        partitions=partitions or None,
        licences=_licences(settings.get("Licenses", "")) or None,
        switches=_switches(records["SwitchName"]) or None,
        unread=tuple(each for kind, line in others for each in _unread(f"{kind} {line[kind]}", line, _KINDS[kind])),
        source=source,
    )


def _members_of(line: Line, nodes: Iterable[NodeRecord]) -> str:
    """Return the list of the nodes of a NodeSet: those that it names, and those with its feature."""
    everyone = line.get("Nodes", "").upper() == "ALL"
    featured = [node.name for node in nodes if everyone or line.get("Feature") in node.features]
    return node_list(dict.fromkeys([*(() if everyone else node_names(line.get("Nodes", ""))), *featured]))


def _licences(text: str) -> tuple[LicenceRecord, ...]:
    return tuple(LicenceRecord(name=name, total=int(amount)) for name, amount in amounts(text).items())


def _made(records: list[Line], kind: str, make: Callable[[Line], list[Made]], source: str) -> tuple[Made, ...]:
    """Return what lines of a kind describe; an error names the line."""
    found: list[Made] = []
    for record in records:
        try:
            found += make(record)
        except InputError as error:
            raise InputError(error.message, source, f"{kind}={record[kind]}") from None
    return tuple(found)


def nodes_of_line(record: Mapping[str, str]) -> list[NodeRecord]:
    """Return the nodes of a line that begins with ``NodeName``."""
    cpus = cpus_of(record)
    size, kept = memory(record.get("RealMemory", "1")) or 0.0, memory(record.get("MemSpecLimit", "0")) or 0.0
    return [
        NodeRecord(
            name=name,
            cpus=cpus.total - cpus.kept,
            threads=cpus.threads,
            socket=cpus.socket,
            memory=size,
            kept_cpus=cpus.kept,
            kept_memory=kept if kept < size else 0.0,
            gres=gres(record.get("Gres", "")),
            features=tuple(split_list(record.get("Feature", record.get("Features", "")))),
            weight=_number(record, "Weight"),
            others={
                name: record[name] for name in record if NODE.why(name, record[name]) or (name == "CPUs" and cpus.odd)
            },
            **_state(record),
        )
        for name in node_names(record["NodeName"])
    ]


def _number(record: Mapping[str, str], name: str, usual: str = "1") -> int:
    found = whole(record.get(name, usual))
    return 1 if found is None else found


def _state(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the state of nodes, and why they have it."""
    states = record.get("State", "UNKNOWN").upper()
    words = frozenset(("IDLE",) if states == "UNKNOWN" else states.split("+"))
    return {"states": words, "reason": record.get("Reason", "")}


_READ = frozenset(
    (
        *("PartitionName", "Nodes", "Default", "State", "MaxTime", "MaxNodes", "Priority", "PriorityTier"),
        *("PriorityJobFactor", "OverSubscribe", "Shared", "Exclusive", "LLN", "GraceTime", "TRESBillingWeights"),
        "PreemptMode",
    )
)
"""The keys of partitions that have fields of their own in a record."""


_USUAL = ("UNLIMITED", "INFINITE", "0", "1")
"""The values of others that change nothing, but for these."""
_ALL = ("DefaultTime", "SuspendTime", "SuspendTimeout", "ResumeTimeout")


def partition_settings(record: Mapping[str, str], keys: Keys = PARTITION) -> dict[str, str]:
    """Return the further settings of a partition: those that are modelled, and those that may change starts.

    >>> partition_settings({"PartitionName": "b", "Hidden": "YES", "DefaultTime": "60", "ReqResv": "YES", "New": "1"})
    {'DefaultTime': '60', 'ReqResv': 'YES', 'New': '1'}
    """
    kept = {name for names in PARTITION.modelled.values() for name in names.split()} - _READ
    return {
        name: value
        for name, value in record.items()
        if (name in kept and not is_none(value) and (name in _ALL or value not in _USUAL))
        or (name not in _READ - {"Exclusive"} and keys.why(name, value))
    }


def partition_of_line(record: Mapping[str, str], everyone: str) -> PartitionRecord:
    """Return the partition of a line that begins with ``PartitionName``; ``everyone``: the list of all nodes."""
    return _partition(record, {"ALL": everyone})


def _partition(record: Mapping[str, str], sets: Mapping[str, str]) -> PartitionRecord:
    nodes = record.get("Nodes", "")
    parts = () if is_none(nodes) else split_list(nodes.replace(" ", ","))
    limit = record.get("MaxTime", "")
    priority = record.get("Priority", "1")
    exclusive = {"NODE": "EXCLUSIVE"}.get(record.get("Exclusive", "").upper())
    sharing = exclusive or record.get("OverSubscribe") or record.get("Shared") or "NO"
    return PartitionRecord(
        name=record["PartitionName"],
        nodes=",".join(sets.get("ALL" if part.upper() == "ALL" else part, part) for part in parts),
        default=record.get("Default", "NO").upper() == "YES",
        state=record.get("State", "UP").upper(),
        max_time=_limit(limit),
        max_nodes=whole(record.get("MaxNodes", "UNLIMITED")),
        tier=_number(record, "PriorityTier", priority),
        job_factor=_number(record, "PriorityJobFactor", priority),
        sharing=sharing.upper(),
        least_loaded=record.get("LLN", "NO").upper() == "YES",
        preempt_mode=record.get("PreemptMode"),
        grace_time=seconds(record.get("GraceTime", "0")) or 0.0,
        billing=record.get("TRESBillingWeights", ""),
        others=partition_settings(record),
    )


def _limit(text: str) -> float | None:
    """Return a limit in seconds: a number alone is in minutes."""
    return float(text) * 60 if text.isdecimal() else seconds(text)


def _switches(records: list[Line]) -> tuple[SwitchRecord, ...]:
    """Return the switches, each with all nodes below it, and its level."""
    named = {record["SwitchName"]: record for record in records}

    def below(name: str, depth: int = 0) -> tuple[int, list[str]]:
        record = named.get(name, {})
        if "Nodes" in record or depth > len(named):
            return 0, list(node_names(record.get("Nodes", "")))
        found = [below(each, depth + 1) for each in node_names(record.get("Switches", ""))]
        return 1 + max([level for level, _ in found], default=0), [node for _, nodes in found for node in nodes]

    expanded = {name: below(name) for name in named}
    return tuple(
        SwitchRecord(name=name, level=level, nodes=node_list(nodes)) for name, (level, nodes) in expanded.items()
    )
