"""Slurm's description of its cluster as typed values, whether by its commands or by its REST interface.

Times are in seconds, instants in seconds since 1970, memory in bytes. ``None``: no limit, or unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet

import attrs

from simmodel import InputError
from simmodel.extending import Fields
from simmodel_site.twin.described import Unsupported
from simmodel_site.twin.mirror.node_states import Service
from simmodel_site.twin.slurm.values import Gres

__all__ = [
    "GresRecord",
    "LicenceRecord",
    "NodeRecord",
    "PartitionRecord",
    "QosRecord",
    "ReservationRecord",
    "Site",
    "SwitchRecord",
    "service_of",
]

_DOWN = frozenset(("DOWN", "ERROR", "FAIL", "FUTURE", "INVAL", "INVALID_REG", "UNKNOWN"))
_DRAINING = frozenset(
    (
        *("DRAIN", "DRAINING", "DRAINED", "FAILING", "NOT_RESPONDING", "NO_RESPOND"),
        *("BLOCKED", "POWERING_DOWN", "REBOOT", "REBOOT_ISSUED"),
    )
)
_MAINTENANCE = frozenset(("MAINT", "MAINTENANCE"))  # sinfo tells it of nodes without jobs alone
_BUSY = frozenset(("ALLOCATED", "MIXED"))


def service_of(states: AbstractSet[str]) -> Service:
    """Return whether jobs run and start on a node, by the words of its state: not at all if it is down.

    >>> service_of({"IDLE"}), service_of({"IDLE", "DRAIN"}), service_of({"MAINT"}), service_of({"MIXED", "MAINTENANCE"})
    ('up', 'draining', 'draining', 'up')
    """
    if states & _DOWN:
        return "down"
    if states & _DRAINING or (states & _MAINTENANCE and not states & _BUSY):
        return "draining"
    return "up"


@attrs.frozen(kw_only=True, repr=False)
class NodeRecord(Fields):
    """A node.

    Parameters
    ----------
    cpus, threads, socket
        CPUs that jobs can have; how many a core has, and a socket
    kept_cpus, kept_memory
        CPUs and memory kept for the system; the memory is part of ``memory``
    states
        the words of its state, such as ``IDLE`` and ``DRAIN``
    others
        its settings that may change starts and are not modelled, by Slurm's name
    """

    name: str
    cpus: int
    threads: int = 1
    socket: int = 1
    memory: float = 0.0
    kept_cpus: int = 0
    kept_memory: float = 0.0
    gres: tuple[Gres, ...] = ()
    states: frozenset[str] = frozenset()
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    weight: int = 1
    reason: str = ""
    others: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def service(self) -> Service:
        """Whether jobs run and start there: not at all if it is down, only run if it is draining."""
        return service_of(self.states)


@attrs.frozen(kw_only=True, repr=False)
class PartitionRecord(Fields):
    """A partition.

    Parameters
    ----------
    nodes
        the list of its nodes, as Slurm writes it
    resources
        its trackable resources: ``cpu``, ``mem``, ``node``
    default
        whether jobs that name no partition get it; ``None``: unknown
    sharing
        ``NO``, ``EXCLUSIVE``, ``YES:4`` or ``FORCE:4``
    least_loaded
        whether jobs get the least loaded nodes
    preempt_mode, grace_time, billing
        ``PreemptMode``, if it is told; ``GraceTime`` (s); ``TRESBillingWeights``
    others
        its further settings, by Slurm's name: some that are modelled, and those that may change starts and are not
    """

    name: str
    nodes: str = ""
    resources: Mapping[str, float] = attrs.field(factory=dict)
    default: bool | None = None
    state: str = "UP"
    max_time: float | None = None
    max_nodes: int | None = None
    tier: int = 1
    job_factor: int = 1
    sharing: str = "NO"
    least_loaded: bool = False
    preempt_mode: str | None = None
    grace_time: float = 0.0
    billing: str = ""
    others: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, repr=False)
class ReservationRecord(Fields):
    """A reservation: ``cpus`` is how many it has on its nodes, ``others`` its further restrictions, by Slurm's name."""

    name: str
    start: float
    end: float
    nodes: str = ""
    users: tuple[str, ...] = ()
    cpus: int | None = None
    flags: tuple[str, ...] = ()
    others: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, repr=False)
class GresRecord(Fields):
    """A line of gres.conf: the list of its nodes, empty for all, and what each of them has."""

    nodes: str
    gres: Gres


@attrs.frozen(kw_only=True, repr=False)
class LicenceRecord(Fields):
    """Licences of one name: all of them, and those that reservations hold."""

    name: str
    total: int
    reserved: int = 0


@attrs.frozen(kw_only=True, repr=False)
class SwitchRecord(Fields):
    """A switch, and the list of the nodes below it; on level 0 they are connected to it."""

    name: str
    level: int
    nodes: str = ""


@attrs.frozen(kw_only=True, repr=False)
class QosRecord(Fields):
    """A quality of service; its limits are those of a job (time, CPUs) and of simultaneous jobs."""

    name: str
    priority: int = 0
    max_time: float | None = None
    max_cpus: int | None = None
    max_running: int | None = None
    max_running_per_user: int | None = None
    preempts: tuple[str, ...] = ()
    preempt_mode: str = ""
    others: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, repr=False)
class Site(Fields):
    """Slurm's description of a cluster; ``None``: Slurm has not reported this part.

    Parameters
    ----------
    settings
        of ``scontrol show config``, by name
    unread
        what its files say of neither nodes nor partitions nor settings, and is not modelled
    source
        where it comes from, for the description

    >>> Site(nodes=(NodeRecord(name="n1", cpus=4),))
    Site(nodes=(NodeRecord(name='n1', cpus=4),))
    """

    cluster: str | None = None
    version: str | None = None
    settings: Mapping[str, str] | None = None
    nodes: tuple[NodeRecord, ...] | None = None
    partitions: tuple[PartitionRecord, ...] | None = None
    reservations: tuple[ReservationRecord, ...] | None = None
    licences: tuple[LicenceRecord, ...] | None = None
    switches: tuple[SwitchRecord, ...] | None = None
    qos: tuple[QosRecord, ...] | None = None
    gres: tuple[GresRecord, ...] | None = None
    unread: tuple[Unsupported, ...] = ()
    source: str = ""

    def with_(self, other: Site) -> Site:
        """Return this site with the parts of another one.

        Raises
        ------
        InputError
            both have the same part, or they are of different clusters
        """
        told = {
            name: value
            for name, value in attrs.asdict(other, recurse=False).items()
            if value is not None and name not in ("source", "unread")
        }
        for name, value in told.items():
            if name not in ("cluster", "version") and getattr(self, name) is not None:
                raise InputError(f"{name} are told twice: by {self.source}, and by {other.source}")
            if name == "cluster" and self.cluster not in (None, value):
                raise InputError(f"must tell of the cluster {self.cluster!r}, got {value!r}", other.source)
        source = ", ".join(each for each in (self.source, other.source) if each)
        return attrs.evolve(self, **told, unread=self.unread + other.unread, source=source)
