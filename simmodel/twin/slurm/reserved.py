"""Slurm's reservations and licences as those of a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import ConsumableSpec, PartitionSpec, ReservationSpec
from simmodel.platform.node_lists import node_list
from simmodel.platform.overlaps import check_overlaps
from simmodel.twin.described import Notes
from simmodel.twin.slurm.records import NodeRecord, ReservationRecord, Site
from simmodel.twin.slurm.values import nodes_of

__all__ = ["licences_of", "reservations_of"]

# Flags that say how the nodes were chosen, which the list of nodes has made definite.
_CHOICE = frozenset(("SPEC_NODES", "ANY_NODES", "ALL_NODES", "PART_NODES", "FIRST_CORES", "STATIC", "STATIC_ALLOC"))
_FLAGS = {
    "FLEX": "its jobs stay inside it",
    "MAINT": "like any other reservation",
    "IGNORE_JOBS": "it begins once the jobs on its nodes have ended",
    "OVERLAP": "",
}


def licences_of(site: Site, notes: Notes) -> tuple[ConsumableSpec, ...]:
    """Return the licences of a site."""
    found = []
    for each in site.licences or ():
        if each.reserved:
            notes.add(f"licence {each.name}", f"Reserved={each.reserved}", "all are for everybody")
        if each.total > 0:
            found.append(ConsumableSpec(name=each.name, amount=each.total))
        else:
            notes.add(f"licence {each.name}", "Total=0", "left out")
    return tuple(found)


def reservations_of(
    site: Site,
    partitions: Sequence[PartitionSpec],
    place_of: Mapping[str, str],
    nodes: Mapping[str, NodeRecord],
    origin: float,
    notes: Notes,
) -> tuple[ReservationSpec, ...]:
    """Return the reservations of a site, one for each partition on whose nodes they are.

    Parameters
    ----------
    place_of
        the partition of each node
    origin
        the instant (s since 1970) that is 0 in simulations
    """
    found: dict[str, list[ReservationSpec]] = {}
    taken = {part.name for part in partitions}
    for given in site.reservations or ():
        where = f"reservation {given.name}"
        if given.end <= origin or given.end <= given.start:
            notes.add(where, f"until {given.end:.0f}", "left out: it is over")
            continue
        places = _places(given, place_of, where, notes)
        _note(given, places, nodes, where, notes)
        for place, names in places.items():
            name = given.name if given.name not in taken else f"{given.name}@{place}"
            if name != given.name:
                notes.add(where, f"on {node_list(names)}", f"named {name} here")
            each = ReservationSpec(
                name=name,
                partition=place,
                nodes=tuple(names),
                start=max(given.start - origin, 0.0),
                end=given.end - origin,
                users=given.users if not any(user.startswith("-") for user in given.users) else (),
            )
            before = found.setdefault(place, [])
            try:
                partition = next(part for part in partitions if part.name == place)
                check_overlaps(partition, enumerate([*before, each]), identified=True)
            except InputError as error:
                notes.add(where, f"on {node_list(names)}", f"left out: {error.message}")
                continue
            taken.add(name)
            before.append(each)
    return tuple(each for several in found.values() for each in several)


def _places(given: ReservationRecord, place_of: Mapping[str, str], where: str, notes: Notes) -> dict[str, list[str]]:
    """Return the known nodes of a reservation by partition."""
    places: dict[str, list[str]] = {}
    unknown = []
    for name in nodes_of(given.nodes):
        if name in place_of:
            places.setdefault(place_of[name], []).append(name)
        else:
            unknown.append(name)
    if unknown:
        notes.add(where, f"nodes {node_list(unknown)}", "left out: not told")
    if not places:
        notes.add(where, f"Nodes={given.nodes or '(null)'}", "left out: no known nodes")
    return places


def _note(
    given: ReservationRecord,
    places: Mapping[str, Sequence[str]],
    nodes: Mapping[str, NodeRecord],
    where: str,
    notes: Notes,
) -> None:
    for flag in given.flags:
        if flag not in _CHOICE and not flag.startswith("ADD_"):
            notes.add(where, f"Flags={flag}", _FLAGS.get(flag) or "not modelled")
    for name, text in given.others.items():
        if name != "PartitionName":
            notes.add(where, f"{name}={text}", "not modelled")
    if any(user.startswith("-") for user in given.users):
        notes.add(where, f"Users={','.join(given.users)}", "for everybody here")
    whole = sum(nodes[name].cpus for names in places.values() for name in names)
    if given.cpus is not None and places and given.cpus < whole:
        notes.add(where, f"TRES=cpu={given.cpus}", f"it has its nodes whole here, {whole} CPUs")
    if len(places) > 1:
        notes.add(where, f"in the partitions {', '.join(places)}", "a reservation for each here")
