"""The policy that Slurm's settings amount to.

Sources: slurm.conf(5), sched/backfill and the multifactor plug-in of Slurm's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from simmodel import InputError
from simmodel.extending import node_list
from simmodel_site.policy.keys import SHOW_CONFIG
from simmodel_site.twin.described import Notes
from simmodel_site.twin.slurm.records import PartitionRecord, Site
from simmodel_site.twin.slurm.values import amount, is_none, memory, nodes_of, seconds, split_list, whole

if TYPE_CHECKING:
    from simmodel_site.policy.layout import SlurmNodes, SlurmSwitch
    from simmodel_site.policy.reservations import SlurmReservation
    from simmodel_site.policy.settings import SlurmConf, SlurmPartition

__all__ = ["note_settings", "policy_of", "slurm_of"]

_WEIGHTS = {
    "PriorityWeightAssoc": "the factor of the association",
    "PriorityWeightPartition": "PriorityJobFactor of partitions",
    "PriorityWeightQOS": "the priority of QOS",
    "PriorityWeightTRES": "the factors of trackable resources",
    "PriorityWeightNice": "the nice value",
}
_WHERE = "scheduler"
_ORDERED = frozenset(("multifactor", "weight_age", "weight_size", "weight_fair_share", "max_age", "decay_half_life"))
"""The fields of settings that other policies than ``slurm`` have, too."""


def policy_of(settings: Mapping[str, str] | None, notes: Notes) -> str:
    """Return the name of the policy of these settings of ``scontrol show config``; note those that it leaves out.

    The main loop of Slurm starts jobs in order until one does not fit; its backfill scheduler plans every waiting job
    and starts those that delay no planned one: conservative backfilling, planned again in each cycle.

    >>> policy_of({"SchedulerType": "sched/builtin", "PriorityType": "priority/basic"}, Notes())
    'fcfs'
    >>> settings = {"SchedulerType": "sched/backfill", "PriorityType": "priority/multifactor", "PriorityWeightAge": "5"}
    >>> policy_of(settings, Notes())
    'multifactor(age=5, size=0, fair_share=0)+conservative'
    """
    if settings is None:
        notes.add(_WHERE, "not told", "taken as sched/backfill with priority/basic; give 'scontrol show config'")
        return "conservative"
    order = _order(settings, notes)
    scheduler = settings.get("SchedulerType", "sched/backfill")
    for parameter in split_list(_told(settings, "SchedulerParameters")):
        notes.add(_WHERE, f"SchedulerParameters {parameter}", "has no counterpart")
    if scheduler == "sched/builtin":
        return order
    if scheduler != "sched/backfill":
        notes.add(_WHERE, f"SchedulerType={scheduler}", "taken as sched/backfill")
    policy = "conservative" if order == "fcfs" else f"{order}+conservative"
    notes.add(
        _WHERE,
        "backfills in cycles, by default every 30 s",
        f"simmodel decides whenever a job is submitted or ends: {policy} is an approximation, and {order} may explain "
        "more of the starts; --log tells which",
    )
    return policy


def slurm_of(site: Site, notes: Notes, reservations: Sequence[SlurmReservation] = ()) -> str:
    """Return the name of the policy ``slurm`` with a site's settings and partitions; note those that it leaves out.

    Parameters
    ----------
    reservations
        those that the policy keeps, not the platform

    >>> from simmodel_site.twin.slurm.records import PartitionRecord
    >>> part = PartitionRecord(name="low", nodes="n[1-8]", default=True)
    >>> slurm_of(Site(partitions=(part,), settings={"SchedulerParameters": "bf_interval=10"}), Notes())
    'slurm(bf_interval=10, partitions=(low:nodes=n[1-8]:default))'
    """
    from simmodel_site.policy.policy import Slurm

    if site.settings is None:
        notes.add(_WHERE, "not told", "its parameters have their default values; give slurm.conf")
    settings = _settings(site)
    if 0 < settings.bf_max_time < settings.bf_interval:
        why = "cuts no cycle here, unless the policy is given how long a test takes: test=0.0003"
        notes.add(_WHERE, f"SchedulerParameters bf_max_time={settings.bf_max_time:g}", why)
    partitions = tuple(_partition(each, settings, site.source) for each in site.partitions or ())
    nodes = _nodes(site, sockets=settings.allocates == "socket")
    return Slurm(settings, partitions, nodes=nodes, switches=_switches(site), reservations=reservations).text


def _settings(site: Site) -> SlurmConf:
    """Return the settings of a site; an error names its files."""
    from simmodel_site.policy.settings import SlurmConf

    try:
        return SlurmConf.of(site.settings or {})
    except InputError as error:
        raise InputError(error.message, site.source or None, error.place) from None


def _partition(given: PartitionRecord, settings: SlurmConf, source: str) -> SlurmPartition:
    """Return a partition as the policy has it, with what matters under these settings."""
    from simmodel_site.policy.settings import SlurmPartition

    try:
        least = whole(given.others.get("MinNodes", "")) or 0
        return SlurmPartition(
            name=given.name,
            nodes=given.nodes,
            tier=given.tier,
            job_factor=given.job_factor,
            max_time=given.max_time,
            default_time=_default_time(given),
            default=bool(given.default),
            billing=given.billing if settings.weight_fair_share or settings.enforce_limits else "",
            preempt_mode=_preempt_mode(given, settings),
            grace_time=given.grace_time if settings.preempt else 0.0,
            qos=given.others.get("QoS", "") if settings.enforce_limits else "",
            exclusive=given.sharing == "EXCLUSIVE",
            least_loaded=given.least_loaded and not settings.least_loaded,
            min_nodes=least if least > 1 else 0,
            max_nodes=given.max_nodes if given.max_nodes and given.max_nodes < len(nodes_of(given.nodes)) else 0,
            **(_memory(given) if settings.memory else {}),
        )
    except InputError as error:
        raise InputError(error.message, source or None, error.place or f"partition {given.name}") from None


_MEMORIES = {
    "def_mem_per_cpu": "DefMemPerCPU",
    "def_mem_per_node": "DefMemPerNode",
    "max_mem_per_cpu": "MaxMemPerCPU",
    "max_mem_per_node": "MaxMemPerNode",
}
"""The settings of partitions about memory, by the fields of the policy."""


def _memory(partition: PartitionRecord) -> dict[str, float]:
    """Return what a partition says of memory (bytes)."""
    return {field: memory(partition.others.get(name, "")) or 0.0 for field, name in _MEMORIES.items()}


def note_settings(site: Site, notes: Notes, *, own: bool) -> None:
    """Note the settings that may change starts and are not modelled, and those that only policy ``slurm`` models.

    Parameters
    ----------
    own
        whether that is the policy
    """
    settings = site.settings or {}
    threads = any(node.threads > 1 for node in site.nodes or ())
    for what, why in SHOW_CONFIG.named(settings):
        if (own or not what.startswith(_NOTED)) and (threads or "CR_ONE_TASK_PER_CORE" not in what):
            notes.add(_WHERE, what, why)
    if not own and settings:
        found = {name: value for name, value in _settings(site).changed().items() if name not in _ORDERED}
        if found:
            notes.add(
                _WHERE, ", ".join(f"{name}={value}" for name, value in found.items()), "policy slurm alone has it"
            )


_NOTED = ("SchedulerParameters", "SchedulerType", "PriorityFlags", "PriorityType", "PriorityUsageResetPeriod")
"""The settings that policies other than ``slurm`` name themselves."""


def _nodes(site: Site, *, sockets: bool) -> tuple[SlurmNodes, ...]:
    """Return the nodes that differ from others by weight, features, types of their GPUs, or CPUs that go together."""
    from simmodel_site.policy.layout import SlurmNodes

    kinds: dict[SlurmNodes, list[str]] = {}
    for node in site.nodes or ():
        gpus = dict.fromkeys(each.type for each in node.gres if each.name == "gpu" and each.type)
        lists: dict[str, Any] = {"features": node.features, "gpus": gpus}
        socket = node.socket if sockets else 1
        kind = SlurmNodes(names="", weight=node.weight, threads=node.threads, socket=socket, **lists)
        kinds.setdefault(kind, []).append(node.name)
    usual = SlurmNodes(names="")
    return tuple(attrs.evolve(kind, names=node_list(names)) for kind, names in kinds.items() if kind != usual)


def _switches(site: Site) -> tuple[SlurmSwitch, ...]:
    """Return the tree of switches: those above others have the largest ones below them."""
    from simmodel_site.policy.layout import SlurmSwitch

    told = sorted(site.switches or (), key=lambda each: each.level)
    below = {each.name: frozenset(nodes_of(each.nodes)) for each in told}
    found = []
    free: dict[str, None] = {}  # switches that are not below another one yet
    for each in told:
        inner = [name for name in free if each.level and below[name] <= below[each.name]]
        for name in inner:
            del free[name]
        free[each.name] = None
        found.append(
            SlurmSwitch(name=each.name, switches=",".join(inner))
            if inner
            else SlurmSwitch(name=each.name, nodes=each.nodes)
        )
    return tuple(found) if len(found) > 1 else ()


def _preempt_mode(partition: PartitionRecord, settings: SlurmConf) -> str | None:
    """Return what happens to the jobs of a partition that are preempted, where it differs from ``PreemptMode``."""
    from simmodel_site.policy.settings import preempt_mode_of

    if not settings.preempt or partition.preempt_mode is None:
        return None
    try:
        mode = preempt_mode_of(partition.preempt_mode)
    except ValueError:
        place = f"partition {partition.name}"
        raise InputError(f"unknown PreemptMode {partition.preempt_mode!r}", place=place) from None
    return None if mode == settings.preempt_mode else mode


def _default_time(partition: PartitionRecord) -> float | None:
    text = partition.others.get("DefaultTime", "")
    return float(text) * 60 if text.isdecimal() else seconds(text)


def _told(settings: Mapping[str, str], name: str) -> str:
    text = settings.get(name, "")
    return "" if is_none(text) else text


def _number(settings: Mapping[str, str], name: str) -> float:
    try:
        return amount(settings.get(name, "0")) or 0.0
    except InputError as error:
        raise InputError(error.message, place=name) from None


def _order(settings: Mapping[str, str], notes: Notes) -> str:
    """Return the order of the queue."""
    kind = settings.get("PriorityType", "priority/basic")
    if kind == "priority/basic":
        return "fcfs"
    if kind != "priority/multifactor":
        notes.add(_WHERE, f"PriorityType={kind}", "taken as priority/basic")
        return "fcfs"
    for name, what in _WEIGHTS.items():
        text = _told(settings, name)
        if text not in ("", "0"):
            notes.add(_WHERE, f"{name}={text}", f"the order leaves out {what}")
    age, size = _number(settings, "PriorityWeightAge"), _number(settings, "PriorityWeightJobSize")
    fair = _number(settings, "PriorityWeightFairShare")
    values = {"age": age, "size": size, "fair_share": fair}
    for key, name, usual in (("max_age", "PriorityMaxAge", 604800.0), ("half_life", "PriorityDecayHalfLife", 604800.0)):
        given = seconds(_told(settings, name))
        if given == 0 and fair and key == "half_life":
            notes.add(_WHERE, f"{name}=0", "usage decays with a half-life of 7 days here")
        elif given and given != usual:
            values[key] = given
    flags = _told(settings, "PriorityFlags")
    if fair and "NO_FAIR_TREE" not in flags:
        notes.add(_WHERE, "Fair Tree", "fair share is that of users by their usage and equal shares")
    if flags:
        notes.add(_WHERE, f"PriorityFlags={flags}", "have no counterpart")
    reset = _told(settings, "PriorityUsageResetPeriod")
    if fair and reset:
        notes.add(_WHERE, f"PriorityUsageResetPeriod={reset}", "usage only decays here")
    if not age and not size and not fair:
        return "fcfs"
    texts = [f"{key}={int(value) if value == int(value) else value}" for key, value in values.items()]
    if settings.get("PriorityFavorSmall", "No").upper() == "YES":
        texts.append("small_first=true")
    return f"multifactor({', '.join(texts)})"
