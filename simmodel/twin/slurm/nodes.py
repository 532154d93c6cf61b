"""The nodes of Slurm's partitions: which partitions share nodes, and the resources of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from simmodel.foundation.display import counted
from simmodel.platform.node_lists import node_list
from simmodel.twin.described import STATE_OF_NOW, NodeKind, Notes
from simmodel.twin.slurm.records import NodeRecord, PartitionRecord, Site
from simmodel.twin.slurm.values import Gres, count_of, nodes_of

__all__ = ["Group", "groups_of", "kind_of", "note_nodes", "with_gres"]


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

    >>> from simmodel.twin.slurm.records import GresRecord
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


def kind_of(node: NodeRecord, switch: str | None = None) -> NodeKind:
    """Return the resources of a node that jobs can use, and its switch."""
    gpus = int(sum(each.count for each in node.gres if each.name == "gpu"))
    return NodeKind(node.cpus, gpus, node.memory - node.kept_memory, switch)


def note_nodes(nodes: Iterable[NodeRecord], settings: Mapping[str, str] | None, notes: Notes) -> None:
    """Note properties that node specs leave out: types of GPUs, other generic resources, features, threads, states."""
    chosen = (settings or {}).get("SelectTypeParameters", "").upper()
    notes.add_of_nodes((node.name, what, why) for node in nodes for what, why in _left_out(node, "CPU" in chosen))
    if settings is not None and "MEMORY" not in chosen:
        notes.add(
            "nodes", f"SelectTypeParameters={chosen or '(null)'}", "does not allocate memory: requests should have none"
        )


def _left_out(node: NodeRecord, threads: bool) -> Iterator[tuple[str, str]]:
    """Yield properties that a node spec omits, each with its effect; ``threads``: jobs get single threads of a core."""
    if node.service != "up":
        yield f"State={'+'.join(sorted(node.states))}: {node.reason}".rstrip(": "), STATE_OF_NOW
    if any(each.type for each in node.gres if each.name == "gpu"):
        gpus = ",".join(f"gpu:{each.type or '?'}:{each.count:g}" for each in node.gres if each.name == "gpu")
        yield f"Gres={gpus}", "GPUs are counted together, whatever their type"
    for each in node.gres:
        if each.name != "gpu":
            yield f"Gres={each.name}:{each.count:g}", "not modelled"
    if node.features:
        yield f"Features={','.join(node.features)}", "jobs cannot ask for them here"
    if node.threads > 1 and not threads:
        why = "cores are CPUs here: the threads of a core go to one job in Slurm, of which requests must be multiples"
        yield f"ThreadsPerCore={node.threads}", why
