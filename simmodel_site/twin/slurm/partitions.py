"""Slurm's partitions, their nodes, and qualities of service as partitions and queues of a platform."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from simmodel.extending import counted, node_list
from simmodel.platform import DeviceSpec, NodePower, PartitionSpec, QueueSpec
from simmodel_site.policy.keys import SHOW_NODE, SHOW_PARTITION
from simmodel_site.twin.described import STATE_OF_NOW, NodeKind, Notes, node_specs
from simmodel_site.twin.slurm.power import is_asleep
from simmodel_site.twin.slurm.records import NodeRecord, PartitionRecord, QosRecord, Site, SwitchRecord
from simmodel_site.twin.slurm.values import Gres, count_of, nodes_of

__all__ = [
    "Group",
    "groups_of",
    "kind_of",
    "note_nodes",
    "partition_of",
    "per_gpu",
    "qos_queues",
    "queues_of",
    "state_of",
    "switches_of",
    "with_gres",
]


@attrs.frozen
class Group:
    """Partitions that share nodes, directly or through others, and all their nodes, of the lowest weight first.

    ``members`` has the names of the nodes of each partition.
    """

    partitions: tuple[PartitionRecord, ...]
    nodes: tuple[NodeRecord, ...]
    members: Mapping[str, frozenset[str]]

    @property
    def name(self) -> str:
        """The name of the partition with the most nodes, the first of these."""
        return max(self.partitions, key=lambda each: len(self.members[each.name])).name


def with_gres(site: Site, notes: Notes) -> Site:
    """Return a site whose nodes have the types of generic resources that gres.conf tells; note what does not fit.

    >>> from simmodel_site.twin.slurm.records import GresRecord
    >>> node = NodeRecord(name="n1", cpus=4, gres=(Gres("gpu", 4.0),))
    >>> of = tuple(GresRecord(nodes="n[1-2]", gres=Gres("gpu", 2.0, name)) for name in ("a100", "h100"))
    >>> [each.type for each in with_gres(Site(nodes=(node,), gres=of), Notes()).nodes[0].gres]
    ['a100', 'h100']
    """
    told: dict[str, list[Gres]] = {}
    for line in site.gres or ():
        for name in nodes_of(line.nodes) or [node.name for node in site.nodes or ()]:
            told.setdefault(name, []).append(line.gres)
    if not told:
        return site
    wrong: list[tuple[str, str, str]] = []
    nodes = []
    for node in site.nodes or ():
        gres = list(node.gres)
        for name in dict.fromkeys(each.name for each in told.get(node.name, ())):
            lines = [each for each in told[node.name] if each.name == name]
            mine = [each for each in gres if each.name == name]
            if sum(each.count for each in mine) != sum(each.count for each in lines):
                text = ",".join(f"{each.name}:{each.count:g}" for each in lines)
                wrong.append((node.name, f"gres.conf: {text}", "slurm.conf has another number, which is taken"))
            elif not any(each.type for each in mine):
                gres = [each for each in gres if each.name != name] + lines
        nodes.append(attrs.evolve(node, gres=tuple(gres)))
    notes.add_of_nodes(wrong)
    return attrs.evolve(site, nodes=tuple(nodes))


def groups_of(site: Site, notes: Notes, *, by_weight: bool = True) -> list[Group]:
    """Return the partitions of a site in groups that share no nodes, in order; note any left out.

    ``by_weight``: nodes of lower weight come first, else they are in the order in which they are told.
    """
    nodes = {node.name: node for node in site.nodes or ()}
    members = {part.name: _members(part, nodes, notes) for part in site.partitions or ()}
    group_of: dict[str, set[str]] = {name: {name} for name in members}
    first: dict[str, str] = {}
    for partition, names in members.items():
        for name in names:
            one, other = group_of[first.setdefault(name, partition)], group_of[partition]
            if one is not other:
                one |= other
                group_of.update(dict.fromkeys(other, one))
    groups: dict[int, list[PartitionRecord]] = {}
    for part in site.partitions or ():
        if members[part.name]:
            groups.setdefault(id(group_of[part.name]), []).append(part)
        else:
            notes.add(f"partition {part.name}", f"Nodes={part.nodes or '(null)'}", "left out: no known nodes")
    order = {name: (node.weight if by_weight else 0, number) for number, (name, node) in enumerate(nodes.items())}
    found = []
    for parts in groups.values():
        names = sorted(dict.fromkeys(name for part in parts for name in members[part.name]), key=order.__getitem__)
        sets = {part.name: frozenset(members[part.name]) for part in parts}
        found.append(Group(tuple(parts), tuple(nodes[name] for name in names), sets))
    used = {name for names in members.values() for name in names}
    if spare := [name for name in nodes if name not in used]:
        notes.add(f"nodes {node_list(spare)}", "in no partition", "left out")
    return found


def _members(part: PartitionRecord, nodes: dict[str, NodeRecord], notes: Notes) -> list[str]:
    """Return the names of the nodes of a partition; nodes without a record are added if they can be inferred."""
    listed = dict.fromkeys(nodes_of(part.nodes))
    others = [name for name, node in nodes.items() if part.name in node.partitions and name not in listed]
    if others:
        text = f"not in its list, {part.nodes or '(null)'}"
        notes.add(f"partition {part.name}", f"nodes {node_list(others)}", f"{text}, but say that they are in it: taken")
    missing = [name for name in listed if name not in nodes]
    if missing:
        nodes.update(_inferred(part, missing, [nodes[name] for name in listed if name in nodes], notes))
    return [name for name in [*listed, *others] if name in nodes]


def _inferred(
    part: PartitionRecord, missing: Sequence[str], told: Iterable[NodeRecord], notes: Notes
) -> dict[str, NodeRecord]:
    """Return the nodes without a record, all alike, if the resources of their partition determine theirs."""
    where = f"nodes {node_list(missing)}"
    if not part.resources:
        notes.add(where, f"in partition {part.name}", "left out: no NodeName or NodeSet line tells of them")
        return {}
    known = list(told)
    cpus = (count_of(part.resources, "cpu") or 0) - sum(node.cpus for node in known)
    memory = part.resources.get("mem", 0.0) - sum(node.memory for node in known)
    each, rest = divmod(cpus, len(missing))
    if each < 1 or rest or part.resources.get("node") != len(known) + len(missing):
        notes.add(where, "not told", f"left out: the resources of partition {part.name} do not say what they are")
        return {}
    size = max(memory, 0.0) / len(missing)
    what = f"{counted(each, 'CPU')} and {size / 2**30:g} GiB each"
    notes.add(where, "not told", f"taken as alike, by the resources of partition {part.name}: {what}, GPUs unknown")
    return {name: NodeRecord(name=name, cpus=each, memory=size, partitions=(part.name,)) for name in missing}


def kind_of(node: NodeRecord, switch: str | None = None, power: NodePower | None = None) -> NodeKind:
    """Return the resources of a node that jobs can use, its switch, and how it sleeps."""
    types = Counter[str]()
    for each in node.gres:
        if each.name == "gpu" and each.count:
            types[type_of(each)] += int(each.count)
    typed = tuple(types.items()) if set(types) - {"gpu"} else ()
    return NodeKind(node.cpus, types.total(), node.memory - node.kept_memory, switch, typed, power)


def type_of(gres: Gres) -> str:
    """Return the type of a GPU as nodes and jobs here name it; one without is of type ``gpu``.

    >>> type_of(Gres("gpu", 4.0, "a100")), type_of(Gres("gpu", 7.0, "1g.5gb")), type_of(Gres("gpu", 1.0))
    ('a100', '1g.5gb', 'gpu')
    """
    return re.sub(r"[|:, ]", "_", gres.type) or "gpu"


def devices_of(nodes: Iterable[NodeRecord]) -> tuple[DeviceSpec, ...]:
    """Return what the names of the types of GPUs tell of them: their memory, as in ``3g.20gb``; slices are devices."""
    types = dict.fromkeys(type_of(each) for node in nodes for each in node.gres if each.name == "gpu" and each.count)
    sizes = {name: found[1] for name in types if (found := re.search(r"(\d+)gb$", name.lower()))}
    return tuple(DeviceSpec(name=name, memory=f"{size}GB") for name, size in sizes.items())


def per_gpu(site: Site, notes: Notes) -> dict[str, float]:
    """Return how many shards, and how much of mps, each GPU of a site has, by the name of the generic resource.

    Note the nodes whose GPUs have others, or that have no GPU.

    >>> node = NodeRecord(name="n1", cpus=4, gres=(Gres("gpu", 4.0, "a100"), Gres("shard", 32.0)))
    >>> per_gpu(Site(nodes=(node,)), Notes())
    {'shard': 8.0}
    """
    found: dict[str, float] = {}
    wrong = []
    for node in site.nodes or ():
        counts = Counter[str]()
        for each in node.gres:
            counts[each.name] += each.count  # type: ignore[assignment] # a Counter of floats
        for name in SHARING:
            if not counts[name]:
                continue
            here = counts[name] / counts["gpu"] if counts["gpu"] else 0.0
            usual = found.setdefault(name, here) if here >= 1 else 0.0
            if usual != here or not here:
                what = f"Gres={name}:{counts[name]:g} on {counts['gpu']:g} GPUs"
                wrong.append((node.name, what, "not as on the first nodes: the shares of jobs are taken as on these"))
    notes.add_of_nodes(wrong)
    return found


def note_nodes(
    nodes: Sequence[NodeRecord],
    settings: Mapping[str, str] | None,
    notes: Notes,
    heeded: Notes,
    state: str = STATE_OF_NOW,
    powers: Mapping[str, NodePower] = MappingProxyType({}),
) -> None:
    """Note properties that node specs leave out.

    Parameters
    ----------
    notes, heeded
        of what nobody heeds; and of what policy ``slurm`` does: features, types of GPUs, threads
    state
        why the states of nodes are noted
    powers
        how nodes sleep, by name
    """
    chosen = (settings or {}).get("SelectTypeParameters", "").upper()
    unread = [(node.name, _left_out(node, state, powers.get(node.name))) for node in nodes]
    notes.add_of_nodes((name, what, why) for name, several in unread for what, why in several)
    heeded.add_of_nodes((node.name, what, why) for node in nodes for what, why in _of_policy(node, "CPU" in chosen))
    if settings is not None and "MEMORY" not in chosen:
        heeded.add(
            "nodes", f"SelectTypeParameters={chosen or '(null)'}", "does not allocate memory: requests should have none"
        )


def state_of(node: NodeRecord) -> str:
    """Return the state of a node, with the reason that an administrator gave."""
    return f"State={'+'.join(sorted(node.states))}: {node.reason}".rstrip(": ")


def _left_out(node: NodeRecord, state: str, power: NodePower | None) -> Iterator[tuple[str, str]]:
    """Yield properties that neither a node spec nor a policy heeds, each with its effect."""
    if node.service != "up":
        yield state_of(node), state
    if power is None and is_asleep(node):
        yield state_of(node), "as if awake: it never sleeps, by the settings that are told"
    elif power is not None and state == STATE_OF_NOW and power.asleep:
        yield state_of(node), "asleep at the beginning of a simulation; a twin takes it as awake"
    for each in node.gres:
        if each.name in SHARING:
            yield f"Gres={each.name}:{each.count:g}", "shares of GPUs: policy slurm and twins do not give them"
        elif each.name != "gpu":
            yield f"Gres={each.name}:{each.count:g}", "not modelled"
    for name, text in node.others.items():
        yield f"{name}={text}", SHOW_NODE.why(name, text) or "slurmctld takes the number of its threads"


def _of_policy(node: NodeRecord, threads: bool) -> Iterator[tuple[str, str]]:
    """Yield properties that policy slurm heeds, each with its effect; ``threads``: jobs get threads of a core."""
    if any(each.type for each in node.gres if each.name == "gpu"):
        gpus = ",".join(f"gpu:{each.type or '?'}:{each.count:g}" for each in node.gres if each.name == "gpu")
        yield f"Gres={gpus}", "policy slurm alone gives jobs the type that they ask for"
    if node.features:
        yield f"Features={','.join(node.features)}", "jobs cannot ask for them here"
    if node.threads > 1 and not threads:
        why = "cores are CPUs here: the threads of a core go to one job in Slurm, of which requests must be multiples"
        yield f"ThreadsPerCore={node.threads}", why


SHARING = ("shard", "mps")
"""The generic resources that are shares of a GPU."""

TIER = 2.0**32
"""The priority that each tier adds to a job: above any priority of Slurm, so that tiers come first."""


def partition_of(
    group: Group,
    site: Site,
    switches: Mapping[str, str],
    notes: Notes,
    heeded: Notes,
    powers: Mapping[str, NodePower] = MappingProxyType({}),
) -> PartitionSpec:
    """Return the partition of a group; a single one has its limits, of several each has a queue with them.

    Parameters
    ----------
    powers
        how nodes sleep, by name
    notes, heeded
        of what nobody heeds, and of what policy ``slurm`` does
    """
    alone = group.partitions[0] if len(group.partitions) == 1 else None
    settings = site.settings or {}
    whole = [part for part in group.partitions if part.sharing == "EXCLUSIVE"]
    exclusive = settings.get("SelectType") == "select/linear" or len(whole) == len(group.partitions)
    for part in () if exclusive else whole:
        heeded.add(
            f"partition {part.name}", "OverSubscribe=EXCLUSIVE", "its jobs share nodes: it shares them with others"
        )
    for part in group.partitions:
        _note(part, notes, heeded)
    return PartitionSpec(
        name=group.name,
        nodes=node_specs(
            ((node.name, kind_of(node, switches.get(node.name), powers.get(node.name))) for node in group.nodes), notes
        ),
        placement=_placement(group, settings, switches),
        exclusive=exclusive,
        devices=devices_of(group.nodes),
        **(_limits(group, alone, _lowest(site), heeded) if alone is not None else {}),
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


def _note(part: PartitionRecord, notes: Notes, heeded: Notes) -> None:
    """Note the settings of a partition that are left out."""
    told = {"State": part.state, "OverSubscribe": part.sharing, "PreemptMode": part.preempt_mode or "", **part.others}
    for name, text in told.items():
        why = SHOW_PARTITION.why(name, text)
        if why is not None:
            notes.add(f"partition {part.name}", f"{name}={text}", why)
        elif name in part.others and not name.startswith(("Suspend", "Resume")):
            heeded.add(f"partition {part.name}", f"{name}={text}", _WHY.get(name, "not modelled"))


def switches_of(site: Site, notes: Notes, heeded: Notes) -> dict[str, str]:
    """Return the switch of each node; switches above these, which policy ``slurm`` heeds, are noted."""
    found = {}
    above: list[SwitchRecord] = []
    for switch in site.switches or ():
        if switch.level:
            above.append(switch)
        else:
            found.update(dict.fromkeys(nodes_of(switch.nodes), switch.name))
    if above:
        heeded.add(
            "topology", f"switches {', '.join(each.name for each in above)}", "only the lowest level is modelled"
        )
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
