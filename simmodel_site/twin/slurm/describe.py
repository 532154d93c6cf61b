"""The platform that Slurm's own description of its cluster amounts to, and a list of the properties left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from simmodel import InputError
from simmodel.extending import check_overlaps, decode, node_list, read_bytes
from simmodel.platform import ClusterOptions, ClusterSpec, ConsumableSpec, PartitionSpec, ReservationSpec
from simmodel_site.twin.described import STATE_OF_NOW, Described, Notes, saved_answers
from simmodel_site.twin.mirror.node_states import nodes_out
from simmodel_site.twin.slurm.answers import read_answer
from simmodel_site.twin.slurm.commands import SlurmCommands
from simmodel_site.twin.slurm.conf import includes_of, is_conf, is_gres, read_conf, read_gres
from simmodel_site.twin.slurm.partitions import (
    Group,
    groups_of,
    note_nodes,
    partition_of,
    qos_queues,
    queues_of,
    state_of,
    switches_of,
    with_gres,
)
from simmodel_site.twin.slurm.policies import note_settings, policy_of, slurm_of
from simmodel_site.twin.slurm.power import Boot, PowerSaving
from simmodel_site.twin.slurm.records import NodeRecord, ReservationRecord, Site
from simmodel_site.twin.slurm.rest import SlurmRest
from simmodel_site.twin.slurm.scontrol import read_scontrol
from simmodel_site.twin.slurm.values import nodes_of, split_list

if TYPE_CHECKING:
    from datetime import tzinfo

    from simmodel_site.policy.reservations import SlurmReservation

__all__ = [
    "OF_ASSOCIATIONS",
    "describe_slurm",
    "described",
    "kept_of",
    "licences_of",
    "reservations_of",
    "site_of",
    "told_by",
    "with_includes",
]

# Flags that say how the nodes were chosen, which the list of nodes has made definite.
_CHOICE = frozenset(("SPEC_NODES", "ANY_NODES", "ALL_NODES", "PART_NODES", "FIRST_CORES", "STATIC", "STATIC_ALLOC"))
_FLAGS = {
    "FLEX": "its jobs stay inside it",
    "MAINT": "like any other reservation",
    "IGNORE_JOBS": "it begins once the jobs on its nodes have ended",
    "OVERLAP": "",
}


OF_ASSOCIATIONS = "limits of associations"
"""What is not told without the dump of sacctmgr."""

_KEPT = ("FLEX", "IGNORE_JOBS")
_STAYS = "NO_HOLD_JOBS_AFTER"


def describe_slurm(
    paths: Iterable[str | Path] = (),
    *,
    commands: SlurmCommands | None = None,
    rest: SlurmRest | None = None,
    local: tzinfo | None = None,
    origin: float = 0.0,
    own_loops: bool | None = None,
    boot: Boot | None = None,
) -> Described:
    """Return the platform of a Slurm cluster from saved files, or else from the present output of its commands.

    Parameters
    ----------
    paths
        files and folders, as in :func:`site_of`
    commands
        Slurm's commands; default: those on the path
    rest
        a slurmrestd to ask instead, which does not report the settings of the scheduler
    local
        the zone of times in texts; default: that of this computer
    origin
        the instant, in seconds since 1970, that is 0 in simulations
    own_loops
        whether the policy is ``slurm``, with the loops of slurmctld and its settings, rather than the nearest one that
        decides at each event; default: if the settings are told, and fair share, which needs accounts, has no weight
    boot
        how long nodes boot that power saving switches off: a number, a quantity such as ``"4min"``, or a distribution
        of :mod:`simmodel.generators`; default: ResumeTimeout, an upper bound

    Raises
    ------
    InputError
        a file is malformed, or the answers are incomplete
    SlurmError
        a command is missing, fails or does not answer
    """
    given = list(paths)
    if given:
        site = site_of(given, local=local)
    else:
        site = reduce(Site.with_, _asked(commands or SlurmCommands()) if rest is None else _asked_by(rest), Site())
    return described(site, origin=origin, own_loops=own_loops, boot=boot)


def _asked(commands: SlurmCommands) -> Iterator[Site]:
    """Yield the parts of a site that Slurm's commands report."""
    for name in ("config", "node", "partition", "reservation", "license"):
        told = read_scontrol(commands.read(name), f"scontrol show {name}")
        yield told
        if (told.settings or {}).get("TopologyPlugin") == "topology/tree":
            yield read_scontrol(commands.read("topology"), "scontrol show topology")


def _asked_by(rest: SlurmRest) -> Iterator[Site]:
    for name in ("nodes", "partitions", "reservations", "licenses"):
        yield read_answer(rest.read(name), f"slurmrestd {name}")


def site_of(paths: Iterable[str | Path], *, local: tzinfo | None = None) -> Site:
    """Return the site in saved texts of ``scontrol show ...``, slurm.conf, topology.conf, gres.conf, answers in JSON.

    Of folders, all files are read. Files that a slurm.conf includes are read from its folder, also if it names them by
    another one.

    Answers with jobs do not describe the cluster and are passed over.

    Parameters
    ----------
    local
        the zone of times in texts; default: that of this computer

    Raises
    ------
    InputError
        a file is neither, is malformed, or repeats a part that another one has
    """
    site = Site()
    for data, name in with_includes(saved_answers(paths)):
        site = site.with_(told_by(data, name, local))
    return site


def with_includes(files: Iterable[tuple[bytes, str]]) -> list[tuple[bytes, str]]:
    """Return files, each by content and name, without those that one of them includes."""
    given = list(files)
    inside = {path for data, name in given if is_conf(text := _text(data)) for path in _included(text, name)}
    return [(data, name) for data, name in given if Path(name).resolve() not in inside]


def told_by(data: bytes, name: str, local: tzinfo | None) -> Site:
    """Return the part of a site in the content of a file of this name.

    Parameters
    ----------
    local
        the zone of times in texts; default: that of this computer

    Raises
    ------
    InputError
        it is not what Slurm prints, or malformed
    """
    if data.lstrip()[:1] == b"{":
        return read_answer(data, name)
    text = _text(data)
    if is_conf(text):

        def included(other: str) -> tuple[str, str]:
            content, where = read_bytes(_beside(other, name))
            return decode(content), where

        return read_conf(text, name, included)
    if is_gres(text):
        return read_gres(text, name)
    return read_scontrol(text, name, local)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _beside(name: str, source: str) -> Path:
    """Return the path of a file that another one includes: in its folder, wherever it was at the site."""
    folder, given = Path(source).parent, Path(name)
    return folder / given if not given.is_absolute() and (folder / given).exists() else folder / given.name


def _included(text: str, source: str, seen: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the paths of the files that a file includes, directly or through others."""
    seen |= {Path(source).resolve()}
    for path in (_beside(name, source).resolve() for name in includes_of(text)):
        if path not in seen:
            yield path
            if path.is_file():
                yield from _included(_text(read_bytes(path)[0]), str(path), seen)


def described(
    site: Site,
    *,
    origin: float = 0.0,
    own_loops: bool | None = None,
    ran: Collection[str] | None = None,
    boot: Boot | None = None,
) -> Described:
    """Return the platform of a site.

    Partitions that share nodes become one partition, with a queue for each. Nodes of one kind are one spec, those of
    lower weight first; their cores are Slurm's CPUs. Reservations and licences are taken over.

    Parameters
    ----------
    origin
        the instant, in seconds since 1970, that is 0 in simulations; a twin's time is that of 1970
    own_loops
        whether the policy is ``slurm``, for which partitions have their own nodes; default: as of
        :func:`describe_slurm`
    ran
        of a site whose accounting is read: the nodes on which jobs ran. Then nodes that are out of service and on which
        none did are left out, and policy ``slurm`` keeps the reservations that the platform does not express, for jobs
        that name them. Default: the state of nodes is what a source tells
    boot
        as of :func:`describe_slurm`

    Raises
    ------
    InputError
        nodes or partitions are missing

    >>> from simmodel_site.twin.slurm.records import NodeRecord, PartitionRecord
    >>> nodes = tuple(NodeRecord(name=f"n{i}", cpus=4) for i in (1, 2))
    >>> described(Site(nodes=nodes, partitions=(PartitionRecord(name="batch", nodes="n[1-2]"),))).spec.partitions
    (PartitionSpec(nodes=(NodeSpec(names='n[1-2]', count=2, cores=4),)),)
    """
    for name in ("nodes", "partitions"):
        if not getattr(site, name):
            raise InputError(f"no {name}: give 'scontrol show {name[:-1]}' or an answer with them", site.source or None)
    own = _loops_told(site.settings) if own_loops is None else own_loops
    notes = Notes()
    heeded = Notes() if own else notes
    for each in site.unread:
        notes.add(each.where, each.what, each.why)
    site = with_gres(site, notes)
    site = _there(site, ran, notes)
    groups = groups_of(site, notes, by_weight=not own)
    if not groups:
        told = "; ".join(f"{each.where} {each.what}" for each in notes if each.why.startswith("left out"))
        raise InputError(f"no partition has known nodes: {told}", site.source or None)
    switches = switches_of(site, notes, heeded)
    place_of = {node.name: group.name for group in groups for node in group.nodes}
    saving = PowerSaving.of(site, place_of, notes, boot, ran=ran is not None)
    partitions = tuple(partition_of(group, site, switches, notes, heeded, saving.powers) for group in groups)
    queues = tuple(queue for group in groups for queue in queues_of(group, site, heeded))
    nodes = {node.name: node for group in groups for node in group.nodes}
    note_nodes([*nodes.values()], site.settings, notes, heeded, STATE_OF_NOW if ran is None else _RAN, saving.powers)
    site, kept = kept_of(site, nodes, origin, notes) if own and ran is not None else (site, ())
    spec = ClusterSpec(
        name=site.cluster or "slurm",
        partitions=partitions,
        queues=queues + qos_queues(site, queues, notes),
        consumables=licences_of(site, notes),
        reservations=reservations_of(site, partitions, place_of, nodes, origin, notes, heeded),
        default_partition=_default(groups, notes),
        source=f"Slurm {site.version or ''}".rstrip(),
    )
    options = _options(site, notes, heeded)
    policy = slurm_of(site, notes, kept) if own else policy_of(site.settings, notes)
    note_settings(site, notes, own=own)
    return Described(
        spec=spec,
        policy=saving.over(policy),
        nearest=policy_of(site.settings, Notes()) if own else "",
        options=options,
        unsupported=tuple(notes),
        **nodes_out((name, node.service) for name, node in nodes.items())._asdict(),
    )


_RAN = "in use here: since when or until when it is out of service is not told"


def _there(site: Site, ran: Collection[str] | None, notes: Notes) -> Site:
    """Return a site without nodes for future use, and without those that are out of service all the time."""
    nodes = site.nodes or ()
    future = {node.name for node in nodes if "FUTURE" in node.states}
    idle = [
        node
        for node in nodes
        if ran is not None and node.name not in {*future, *ran} and node.service != "up" and "CLOUD" not in node.states
    ]
    if len(idle) + len(future) == len(nodes):
        idle = []
    why = "left out: no job of the accounting ran there, and until when it is not told"
    notes.add_of_nodes((node.name, state_of(node), why) for node in idle)
    out = future | {node.name for node in idle}
    if not out:
        return site
    parts = [
        attrs.evolve(part, nodes=node_list(name for name in nodes_of(part.nodes) if name not in out))
        for part in site.partitions or ()
    ]
    return attrs.evolve(site, nodes=tuple(node for node in nodes if node.name not in out), partitions=tuple(parts))


def _loops_told(settings: Mapping[str, str] | None) -> bool:
    """Whether policy slurm knows what it needs: its settings, and no shares of users."""
    if settings is None:
        return False
    named = {name.lower(): value for name, value in settings.items()}
    return named.get("priorityweightfairshare", "0") in ("", "0", "(null)")


def _default(groups: Sequence[Group], notes: Notes) -> str | None:
    """Return the partition of jobs that name none."""
    for group in groups:
        if any(part.default for part in group.partitions):
            return group.name
    if len(groups) > 1 and any(part.default is None for group in groups for part in group.partitions):
        notes.add("partitions", "the default one is not told", "jobs that name none get the first that can run them")
    return None


def _options(site: Site, notes: Notes, heeded: Notes) -> ClusterOptions:
    """Return the options that limits amount to; note limits that files of accounts tell."""
    settings = site.settings or {}
    over = settings.get("OverTimeLimit", "0 min")
    if over == "UNLIMITED":
        return ClusterOptions(overrun="continue")
    if over and not over.startswith("0"):
        notes.add("jobs", f"OverTimeLimit={over}", "jobs are stopped at their limit")
    limited = any(part.max_time is not None or part.max_nodes is not None for part in site.partitions or ())
    if limited and settings.get("EnforcePartLimits", "").upper() == "NO":
        heeded.add(
            "jobs", "EnforcePartLimits=NO", "jobs beyond a limit of their partition are refused, and wait in Slurm"
        )
    if {"limits", "safe", "all"} & {*settings.get("AccountingStorageEnforce", "").lower().split(",")}:
        notes.add("jobs", OF_ASSOCIATIONS, "not told: give 'sacctmgr dump'")
        for part in site.partitions or ():
            if "QoS" in part.others:
                why = "its limits are not told: give 'sacctmgr --parsable2 show qos'"
                notes.add(f"partition {part.name}", f"QoS={part.others['QoS']}", why)
    return ClusterOptions()


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


def kept_of(
    site: Site, nodes: Mapping[str, NodeRecord], origin: float, notes: Notes
) -> tuple[Site, tuple[SlurmReservation, ...]]:
    """Return a site without the reservations that policy ``slurm`` keeps, and these.

    They have the flags FLEX, IGNORE_JOBS or NO_HOLD_JOBS_AFTER, accounts, users who may not use them, or some cores of
    their nodes.

    Parameters
    ----------
    origin
        the instant (s since 1970) that is 0 in simulations
    """
    from simmodel_site.policy.reservations import SlurmReservation

    found, others = [], []
    for given in site.reservations or ():
        names = nodes_of(given.nodes)
        whole = sum(nodes[name].cpus for name in names if name in nodes)
        part = given.cpus is not None and bool(names) and all(name in nodes for name in names) and given.cpus < whole
        flags = {flag for flag in given.flags if flag in _KEPT or flag.startswith(_STAYS)}
        denied = any(user.startswith("-") for user in given.users)
        if (
            not (part or flags or denied or "Accounts" in given.others)
            or not names
            or given.end <= max(origin, given.start)
        ):
            others.append(given)
            continue
        where = f"reservation {given.name}"
        cores: list[int] = []
        if part and given.cpus is not None:
            each, more = divmod(given.cpus, len(names))
            cores = [each + (i < more) for i in range(len(names))]
            if len(names) > 1:
                notes.add(where, f"TRES=cpu={given.cpus}", f"{'+'.join(map(str, cores))} on its nodes here")
        for flag in given.flags:
            if flag not in _CHOICE | flags | {"OVERLAP", "MAINT"} and not flag.startswith("ADD_"):
                notes.add(where, f"Flags={flag}", "not modelled")
        for name, text in given.others.items():
            if name not in ("PartitionName", "Accounts"):
                notes.add(where, f"{name}={text}", "not modelled")
        found.append(
            SlurmReservation(
                name=given.name,
                nodes=node_list(names),
                start=max(given.start - origin, 0.0),
                end=given.end - origin,
                users=given.users,
                accounts=split_list(given.others.get("Accounts", "")),
                flex="FLEX" in flags,
                stays=any(flag.startswith(_STAYS) for flag in flags),
                cores=cores,
            )
        )
    return attrs.evolve(site, reservations=tuple(others)), tuple(found)


def reservations_of(
    site: Site,
    partitions: Sequence[PartitionSpec],
    place_of: Mapping[str, str],
    nodes: Mapping[str, NodeRecord],
    origin: float,
    notes: Notes,
    heeded: Notes,
) -> tuple[ReservationSpec, ...]:
    """Return the reservations of a site, one for each partition on whose nodes they are.

    Parameters
    ----------
    place_of
        the partition of each node
    origin
        the instant (s since 1970) that is 0 in simulations
    notes, heeded
        of what nobody heeds, and of what policy ``slurm`` does
    """
    found: dict[str, list[ReservationSpec]] = {}
    taken = {part.name for part in partitions}
    for given in site.reservations or ():
        where = f"reservation {given.name}"
        if given.end <= origin or given.end <= given.start:
            notes.add(where, f"until {given.end:.0f}", "left out: it is over")
            continue
        places = _places(given, place_of, where, notes)
        _note(given, places, nodes, where, notes, heeded)
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
    heeded: Notes,
) -> None:
    for flag in given.flags:
        if flag not in _CHOICE and not flag.startswith("ADD_"):
            (heeded if flag == "MAINT" else notes).add(where, f"Flags={flag}", _FLAGS.get(flag) or "not modelled")
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
