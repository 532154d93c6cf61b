"""Changes of a site in slurm.conf's own words: ``PartitionName=batch MaxTime=12:00:00``, ``NodeName=n[41-60] CPUs=32``.

A line changes what it says of nodes and partitions that are there, and adds those that are not. What it does not say of
a new node is as of the site's last node, and the partitions that have all nodes get it, as with ``Nodes=ALL``. Nodes
whose state is down, drained or for future use are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import node_list, unknown
from simmodel_site.policy.keys import NODE, PARTITION, SLURM_CONF
from simmodel_site.twin.slurm.conf import nodes_of_line, pairs_of, partition_of_line
from simmodel_site.twin.slurm.records import PartitionRecord, Site
from simmodel_site.twin.slurm.values import nodes_of

__all__ = ["changed_site", "is_line", "line_for"]

_CPUS = ("cpus", "threads", "socket", "kept_cpus")
_OF_NODE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("CPUs", "Procs", "Boards", "SocketsPerBoard", "Sockets", "CoresPerSocket", "ThreadsPerCore"), _CPUS
    ),
    **dict.fromkeys(("CoreSpecCount", "CPUSpecList"), _CPUS),
    "RealMemory": ("memory",),
    "MemSpecLimit": ("kept_memory",),
    "Gres": ("gres",),
    "Feature": ("features",),
    "Features": ("features",),
    "Weight": ("weight",),
    "State": ("states", "reason"),
}
_OF_PARTITION: Mapping[str, tuple[str, ...]] = {
    "Nodes": ("nodes",),
    "Default": ("default",),
    "State": ("state",),
    "MaxTime": ("max_time",),
    "MaxNodes": ("max_nodes",),
    "Priority": ("tier", "job_factor"),
    "PriorityTier": ("tier",),
    "PriorityJobFactor": ("job_factor",),
    "OverSubscribe": ("sharing",),
    "Shared": ("sharing",),
    "Exclusive": ("sharing",),
    "LLN": ("least_loaded",),
    "PreemptMode": ("preempt_mode",),
    "GraceTime": ("grace_time",),
    "TRESBillingWeights": ("billing",),
}
"""The fields of records that the keys of a line decide."""


def is_line(change: str) -> bool:
    """Whether a change is a line about nodes or partitions, or about when nodes sleep.

    >>> is_line("partitionname=batch MaxTime=60"), is_line("SuspendTime=60"), is_line("bf_interval=60")
    (True, True, False)
    """
    return change.partition("=")[0].strip().lower() in ("nodename", "partitionname", *_SLEEP)


_SLEEP = ("suspendtime", "suspendtimeout", "suspendexcnodes", "suspendexcparts", "resumetimeout")


def line_for(site: Site, name: str, value: str) -> str | None:
    """Return the lines with which a setting of partitions or nodes is changed; ``None``: it is of the cluster.

    >>> site = Site(partitions=(PartitionRecord(name="batch"),))
    >>> line_for(site, "MaxTime", "60")
    'it is a setting of partitions: --set "PartitionName=batch MaxTime=60"; partitions here: batch'
    """
    if name in SLURM_CONF:
        return None
    if name in PARTITION:
        names = [each.name for each in site.partitions or ()]
        line = f'--set "PartitionName={names[0]} {name}={value}"'
        return f"it is a setting of partitions: {line}; partitions here: {', '.join(names)}"
    names = [each.name for each in site.nodes or ()]
    line = f'--set "NodeName={names[0]} {name}={value}"'
    return f"it is a setting of nodes: {line}; nodes here: {node_list(names)}" if name in NODE else None


def changed_site(site: Site, lines: Iterable[str]) -> Site:
    """Return a site with changes, each a line of slurm.conf about nodes or partitions, or about when nodes sleep.

    Raises
    ------
    InputError
        a line is malformed, names a partition that is not there without saying its ``Nodes``, or changes nothing

    >>> from simmodel_site.twin.slurm.records import NodeRecord
    >>> nodes = tuple(NodeRecord(name=f"n{i}", cpus=4, memory=2**30) for i in (1, 2))
    >>> site = Site(nodes=nodes, partitions=(PartitionRecord(name="batch", nodes="n[1-2]"),))
    >>> more = changed_site(site, ["NodeName=n[3-4] CPUs=8", "PartitionName=batch MaxTime=1:00:00"])
    >>> more.partitions[0].nodes, more.partitions[0].max_time, [node.cpus for node in more.nodes], more.nodes[3].memory
    ('n[1-4]', 3600.0, [4, 4, 8, 8], 1073741824)
    """
    everyone = {node.name for node in site.nodes or ()}
    for line in lines:
        try:
            name, _, value = (each.strip() for each in line.partition("="))
            if name.lower() in _SLEEP:
                changed = attrs.evolve(site, settings={**(site.settings or {}), SLURM_CONF.proper(name): value})
            else:
                kind, record = pairs_of(line)
                changed = _with_nodes(site, record) if kind == "NodeName" else _with_partition(site, record)
        except InputError as error:
            raise InputError(error.message, place=f"--set {line!r}") from None
        if changed == site:
            raise InputError("it changes nothing that the model of the site heeds", place=f"--set {line!r}")
        site = changed
    held = {name for part in site.partitions or () for name in nodes_of(part.nodes)}
    alone = [node.name for node in site.nodes or () if node.name not in held | everyone]
    if alone:
        raise InputError(f'no partition has {node_list(alone)}: add "PartitionName=NAME Nodes=..."', place="--set")
    return site


def _changes(record: Mapping[str, str], fields: Mapping[str, tuple[str, ...]], made: Any) -> dict[str, Any]:
    """Return the fields of a made record that the keys of a line decide."""
    return {field: getattr(made, field) for key in record for field in fields.get(key, ())}


def _with_nodes(site: Site, record: Mapping[str, str]) -> Site:
    nodes = {node.name: node for node in site.nodes or ()}
    last = next(reversed(nodes.values()))
    before, left_out = list(nodes), set()
    for made in nodes_of_line(record):
        of = nodes.get(made.name) or attrs.evolve(last, name=made.name, states=frozenset({"IDLE"}), reason="")
        others = {**{key: each for key, each in of.others.items() if key not in record}, **made.others}
        nodes[made.name] = attrs.evolve(of, **_changes(record, _OF_NODE, made), others=others)
        if "State" in record and nodes[made.name].service != "up":
            left_out.add(made.name)
    everyone = {name: None for name in nodes if name not in left_out}

    def those_of(part: PartitionRecord) -> str:
        mine = nodes_of(part.nodes)
        return node_list(everyone if {*mine} >= {*before} else [name for name in mine if name in everyone])

    parts = [attrs.evolve(part, nodes=those_of(part)) for part in site.partitions or ()]
    return attrs.evolve(site, nodes=tuple(nodes[name] for name in everyone), partitions=tuple(parts))


def _with_partition(site: Site, record: Mapping[str, str]) -> Site:
    everyone = node_list(node.name for node in site.nodes or ())
    made = partition_of_line(record, everyone)
    parts = {part.name: part for part in site.partitions or ()}
    of = parts.get(made.name)
    if of is None:
        if not made.nodes:
            error = unknown("partition", made.name, parts)
            error.message += "; a new one needs Nodes="
            raise error
        return attrs.evolve(site, partitions=(*parts.values(), made))
    others = {**{key: each for key, each in of.others.items() if key not in record}, **made.others}
    parts[made.name] = attrs.evolve(of, **_changes(record, _OF_PARTITION, made), others=others)
    return attrs.evolve(site, partitions=tuple(parts.values()))
