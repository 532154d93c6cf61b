"""Slurm's partitions and qualities of service as partitions and queues of a platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simmodel.platform.cluster import PartitionSpec, QueueSpec
from simmodel.platform.node_lists import node_list
from simmodel.twin.described import Notes, node_specs
from simmodel.twin.slurm.nodes import Group, kind_of
from simmodel.twin.slurm.records import PartitionRecord, QosRecord, Site, SwitchRecord
from simmodel.twin.slurm.values import nodes_of

__all__ = ["partition_of", "qos_queues", "queues_of", "switches_of"]

TIER = 2.0**32
"""The priority that each tier adds to a job: above any priority of Slurm, so that tiers come first."""


def partition_of(group: Group, site: Site, switches: Mapping[str, str], notes: Notes) -> PartitionSpec:
    """Return the partition of a group; a single one has its limits, of several each has a queue with them."""
    alone = group.partitions[0] if len(group.partitions) == 1 else None
    settings = site.settings or {}
    whole = [part for part in group.partitions if part.sharing == "EXCLUSIVE"]
    exclusive = settings.get("SelectType") == "select/linear" or len(whole) == len(group.partitions)
    for part in () if exclusive else whole:
        notes.add(
            f"partition {part.name}", "OverSubscribe=EXCLUSIVE", "its jobs share nodes: it shares them with others"
        )
    for part in group.partitions:
        _note(part, notes)
    return PartitionSpec(
        name=group.name,
        nodes=node_specs(((node.name, kind_of(node, switches.get(node.name))) for node in group.nodes), notes),
        placement=_placement(group, settings, switches),
        exclusive=exclusive,
        **(_limits(group, alone, _lowest(site), notes) if alone is not None else {}),
    )


def _placement(group: Group, settings: Mapping[str, str], switches: Mapping[str, str]) -> str | None:
    if "CR_LLN" in settings.get("SelectTypeParameters", "").upper() or all(p.least_loaded for p in group.partitions):
        return "spread"
    return "packed" if any(node.name in switches for node in group.nodes) else None


def _lowest(site: Site) -> int:
    return min(part.tier for part in site.partitions or ())


def _limits(group: Group, part: PartitionRecord, lowest: int, notes: Notes) -> dict[str, Any]:
    """Return the limits and the priority of a partition, as fields of a partition or a queue."""
    members = group.members[part.name]
    most = None
    if part.max_nodes is not None and part.max_nodes < len(members):
        where, what = f"partition {part.name}", f"MaxNodes={part.max_nodes}"
        if part.max_nodes:
            most = part.max_nodes * max(node.cpus for node in group.nodes if node.name in members)
            notes.add(where, what, f"as at most {most} processors")
        else:
            notes.add(where, what, "no job may run there: not limited here")
    return {"max_requested": part.max_time, "max_processors": most, "priority": (part.tier - lowest) * TIER}


def queues_of(group: Group, site: Site, notes: Notes) -> tuple[QueueSpec, ...]:
    """Return the queues of partitions that share nodes; none for one that shares none."""
    if len(group.partitions) == 1:
        return ()
    everything = frozenset(node.name for node in group.nodes)
    for part in group.partitions:
        members = group.members[part.name]
        if members != everything:
            listed = node_list(node.name for node in group.nodes if node.name in members)
            notes.add(
                f"partition {part.name}",
                f"Nodes={listed}",
                f"shares nodes: a queue whose jobs may have any of the {len(everything)} nodes of {group.name}",
            )
    lowest = _lowest(site)
    return tuple(
        QueueSpec(name=part.name, partition=group.name, **_limits(group, part, lowest, notes))
        for part in group.partitions
    )


_WHY = {
    "DefaultTime": "requests have their own limits",
    "DefMemPerCPU": "requests have their own memory",
    "DefMemPerNode": "requests have their own memory",
}


def _note(part: PartitionRecord, notes: Notes) -> None:
    """Note the settings of a partition that are left out."""
    where = f"partition {part.name}"
    if part.state != "UP":
        notes.add(where, f"State={part.state}", "jobs start there")
    if part.sharing not in ("NO", "EXCLUSIVE"):
        notes.add(where, f"OverSubscribe={part.sharing}", "jobs do not share CPUs")
    for name, text in part.others.items():
        notes.add(where, f"{name}={text}", _WHY.get(name, "not modelled"))


def switches_of(site: Site, notes: Notes) -> dict[str, str]:
    """Return the switch of each node; switches above these are noted."""
    found = {}
    above: list[SwitchRecord] = []
    for switch in site.switches or ():
        if switch.level:
            above.append(switch)
        else:
            found.update(dict.fromkeys(nodes_of(switch.nodes), switch.name))
    if above:
        notes.add("topology", f"switches {', '.join(each.name for each in above)}", "only the lowest level is modelled")
    plugin = (site.settings or {}).get("TopologyPlugin", "topology/none")
    if not found and plugin in ("topology/tree", "topology/block"):
        notes.add("topology", f"TopologyPlugin={plugin}", "not told: give 'scontrol show topology'")
    return found


def qos_queues(site: Site, used: Iterable[QueueSpec], notes: Notes) -> tuple[QueueSpec, ...]:
    """Return the queues of qualities of service; none if partitions have queues already."""
    weight = (site.settings or {}).get("PriorityWeightQOS", "")
    told = site.qos or ()
    for each in told:
        where = f"QOS {each.name}"
        if each.priority and weight not in ("", "0"):
            notes.add(where, f"Priority={each.priority}", "no part of the order")
        for name, text in each.others.items():
            notes.add(where, f"{name}={text}", "not modelled")
    if any(True for _ in used):
        for each in told:
            limits = ", ".join(f"{name}={value:g}" for name, value in _limits_of(each).items())
            if limits or each.preempts:
                what = limits or f"Preempt={','.join(each.preempts)}"
                notes.add(f"QOS {each.name}", what, "a job has one queue, which is that of its partition")
        return ()
    modes = _modes(told, site.settings or {}, notes)
    return tuple(_qos(each, modes, notes) for each in told)


def _limits_of(qos: QosRecord) -> dict[str, float]:
    limits = {
        "max_requested": qos.max_time,
        "max_processors": qos.max_cpus,
        "max_running": qos.max_running,
        "max_running_per_user": qos.max_running_per_user,
    }
    return {name: value for name, value in limits.items() if value is not None}


def _modes(told: Iterable[QosRecord], settings: Mapping[str, str], notes: Notes) -> dict[str, Any]:
    """Return how the jobs of each quality of service are preempted, of those that others preempt."""
    victims = {name for each in told for name in each.preempts}
    usual = settings.get("PreemptMode", "").upper()
    found: dict[str, Any] = {}
    for each in told:
        if each.name not in victims:
            continue
        mode = usual if each.preempt_mode in ("", "DISABLED", "OFF") else each.preempt_mode
        kind = "requeue" if "REQUEUE" in mode else "suspend" if "SUSPEND" in mode else None
        if kind is None:
            notes.add(f"QOS {each.name}", f"PreemptMode={mode or 'OFF'}", "its jobs are not preempted")
        else:
            found[each.name] = kind
            notes.add(f"QOS {each.name}", f"PreemptMode={mode}", "preempted by the policy 'preemptive' only")
    return found


def _qos(qos: QosRecord, modes: Mapping[str, Any], notes: Notes) -> QueueSpec:
    limits = _limits_of(qos)
    for name in [name for name, value in limits.items() if value <= 0]:
        notes.add(f"QOS {qos.name}", f"{name}={limits.pop(name):g}", "no job may run: not limited here")
    preempts = tuple(name for name in qos.preempts if name in modes and name != qos.name)
    whole = {name: value if name == "max_requested" else int(value) for name, value in limits.items()}
    fields: dict[str, Any] = {**whole, "preemptible": modes.get(qos.name), "preempts": preempts}
    return QueueSpec(name=qos.name, **fields)
