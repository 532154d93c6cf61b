"""The platform that Slurm's own description of its cluster amounts to, and a list of the properties left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.twin.described import Described, Notes, saved_answers
from simmodel.twin.mirror.node_states import nodes_out
from simmodel.twin.slurm.answers import read_answer
from simmodel.twin.slurm.commands import SlurmCommands
from simmodel.twin.slurm.conf import is_conf, read_conf
from simmodel.twin.slurm.nodes import Group, groups_of, note_nodes
from simmodel.twin.slurm.partitions import partition_of, qos_queues, queues_of, switches_of
from simmodel.twin.slurm.policies import policy_of, slurm_of
from simmodel.twin.slurm.records import Site
from simmodel.twin.slurm.reserved import licences_of, reservations_of
from simmodel.twin.slurm.rest import SlurmRest
from simmodel.twin.slurm.scontrol import read_scontrol

if TYPE_CHECKING:
    from datetime import tzinfo

__all__ = ["describe_slurm", "described", "site_of"]


def describe_slurm(
    paths: Iterable[str | Path] = (),
    *,
    commands: SlurmCommands | None = None,
    rest: SlurmRest | None = None,
    local: tzinfo | None = None,
    origin: float = 0.0,
    own_loops: bool = False,
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
        whether the policy is ``slurm``, with the loops of slurmctld and its settings, rather than the nearest other one

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
    return described(site, origin=origin, own_loops=own_loops)


def _asked(commands: SlurmCommands) -> Iterator[Site]:
    """Yield the parts of a site that Slurm's commands report."""
    for name in ("config", "node", "partition", "reservation", "license"):
        told = read_scontrol(commands.read(name), f"scontrol show {name}")
        yield told
        if (told.settings or {}).get("TopologyPlugin") == "topology/tree":
            yield read_scontrol(commands.read("topology"), "scontrol show topology")


def _asked_by(rest: SlurmRest) -> Iterator[Site]:
    """Yield the parts of a site that slurmrestd reports."""
    for name in ("nodes", "partitions", "reservations", "licenses"):
        yield read_answer(rest.read(name), f"slurmrestd {name}")


def site_of(paths: Iterable[str | Path], *, local: tzinfo | None = None) -> Site:
    """Return the site in saved texts of ``scontrol show ...``, slurm.conf, topology.conf and answers in JSON.

    Of folders, all files are read.

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
    for data, name in saved_answers(paths):
        if data.lstrip()[:1] == b"{":
            told = read_answer(data, name)
        elif is_conf(text := data.decode("utf-8", "replace")):
            told = read_conf(text, name)
        else:
            told = read_scontrol(text, name, local)
        site = site.with_(told)
    return site


def described(site: Site, *, origin: float = 0.0, own_loops: bool = False) -> Described:
    """Return the platform of a site.

    Partitions that share nodes become one partition, with a queue for each. Nodes of one kind are one spec, those of
    lower weight first; their cores are Slurm's CPUs. Reservations and licences are taken over.

    Parameters
    ----------
    origin
        the instant, in seconds since 1970, that is 0 in simulations; a twin's time is that of 1970
    own_loops
        whether the policy is ``slurm``, for which partitions have their own nodes

    Raises
    ------
    InputError
        nodes or partitions are missing

    >>> from simmodel.twin.slurm.records import NodeRecord, PartitionRecord
    >>> nodes = tuple(NodeRecord(name=f"n{i}", cpus=4) for i in (1, 2))
    >>> described(Site(nodes=nodes, partitions=(PartitionRecord(name="batch", nodes="n[1-2]"),))).spec.partitions
    (PartitionSpec(nodes=(NodeSpec(names='n[1-2]', count=2, cores=4),)),)
    """
    for name in ("nodes", "partitions"):
        if not getattr(site, name):
            raise InputError(f"no {name}: give 'scontrol show {name[:-1]}' or an answer with them", site.source or None)
    notes = Notes()
    groups = groups_of(site, notes)
    if not groups:
        raise InputError("no partition has known nodes", site.source or None)
    switches = switches_of(site, notes)
    partitions = tuple(partition_of(group, site, switches, notes) for group in groups)
    queues = tuple(queue for group in groups for queue in queues_of(group, site, Notes() if own_loops else notes))
    nodes = {node.name: node for group in groups for node in group.nodes}
    note_nodes(nodes.values(), site.settings, notes)
    place_of = {node.name: group.name for group in groups for node in group.nodes}
    spec = ClusterSpec(
        name=site.cluster or "slurm",
        partitions=partitions,
        queues=queues + qos_queues(site, queues, notes),
        consumables=licences_of(site, notes),
        reservations=reservations_of(site, partitions, place_of, nodes, origin, notes),
        default_partition=_default(groups, notes),
        source=f"Slurm {site.version or ''}".rstrip(),
    )
    options = _options(site, notes)
    policy = slurm_of(site, notes) if own_loops else policy_of(site.settings, notes)
    return Described(
        spec=spec,
        policy=policy,
        options=options,
        unsupported=tuple(notes),
        **nodes_out((name, node.service) for name, node in nodes.items())._asdict(),
    )


def _default(groups: Sequence[Group], notes: Notes) -> str | None:
    """Return the partition of jobs that name none."""
    for group in groups:
        if any(part.default for part in group.partitions):
            return group.name
    if len(groups) > 1 and any(part.default is None for group in groups for part in group.partitions):
        notes.add("partitions", "the default one is not told", "jobs that name none get the first that can run them")
    return None


def _options(site: Site, notes: Notes) -> ClusterOptions:
    """Return the options that limits amount to."""
    settings = site.settings or {}
    over = settings.get("OverTimeLimit", "0 min")
    if over == "UNLIMITED":
        return ClusterOptions(overrun="continue")
    if over and not over.startswith("0"):
        notes.add("jobs", f"OverTimeLimit={over}", "jobs are stopped at their limit")
    limited = any(part.max_time is not None or part.max_nodes is not None for part in site.partitions or ())
    if limited and settings.get("EnforcePartLimits", "").upper() == "NO":
        notes.add(
            "jobs", "EnforcePartLimits=NO", "jobs beyond a limit of their partition are refused, and wait in Slurm"
        )
    if "limits" in settings.get("AccountingStorageEnforce", ""):
        notes.add("jobs", "limits of associations", "not told")
    return ClusterOptions()
