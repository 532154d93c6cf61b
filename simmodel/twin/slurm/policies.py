"""The policy that Slurm's settings amount to.

Sources: slurm.conf(5), sched/backfill and the multifactor plug-in of Slurm's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.platform.node_lists import node_list
from simmodel.twin.described import Notes
from simmodel.twin.slurm.records import PartitionRecord, Site
from simmodel.twin.slurm.values import amount, is_none, nodes_of, seconds, split_list

if TYPE_CHECKING:
    from simmodel.policies.slurm.layout import SlurmNodes, SlurmSwitch
    from simmodel.policies.slurm.reservations import SlurmReservation
    from simmodel.policies.slurm.settings import SlurmConf

__all__ = ["policy_of", "slurm_of"]

_WEIGHTS = {
    "PriorityWeightAssoc": "the factor of the association",
    "PriorityWeightPartition": "PriorityJobFactor of partitions",
    "PriorityWeightQOS": "the priority of QOS",
    "PriorityWeightTRES": "the factors of trackable resources",
    "PriorityWeightNice": "the nice value",
}
_WHERE = "scheduler"
_LASTING = "cycles are not interrupted here, however long they take"
_LONG_CYCLES = {
    "bf_max_time": "cuts no cycle here, unless the policy is given how long a test takes: test=0.0003",
    "bf_continue": _LASTING,
    "bf_yield_interval": _LASTING,
    "bf_yield_sleep": _LASTING,
    "max_rpc_cnt": "no other requests are served here",
    "max_sched_time": "the main loop takes no time here",
    "sched_min_interval": "the main loop runs at turns of a second here",
    "build_queue_timeout": "queues are built at once here",
}


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

    >>> from simmodel.twin.slurm.records import PartitionRecord
    >>> part = PartitionRecord(name="low", nodes="n[1-8]", default=True)
    >>> slurm_of(Site(partitions=(part,), settings={"SchedulerParameters": "bf_interval=10"}), Notes())
    'slurm(bf_interval=10, partitions=(low:nodes=n[1-8]:default))'
    """
    from simmodel.policies.slurm.policy import Slurm
    from simmodel.policies.slurm.settings import SlurmConf, SlurmPartition

    if site.settings is None:
        notes.add(_WHERE, "not told", "its parameters have their default values; give slurm.conf")
    try:
        settings = SlurmConf.of(site.settings or {})
    except InputError as error:
        raise InputError(error.message, site.source, error.place) from None
    for each in settings.unread:
        name = each.removeprefix("SchedulerParameters ").partition("=")[0]
        notes.add(_WHERE, each, _LONG_CYCLES.get(name, "may change starts: policy slurm leaves it out"))
    if 0 < settings.bf_max_time < settings.bf_interval:
        notes.add(_WHERE, f"SchedulerParameters bf_max_time={settings.bf_max_time:g}", _LONG_CYCLES["bf_max_time"])
    partitions = tuple(
        SlurmPartition(
            name=each.name,
            nodes=each.nodes,
            tier=each.tier,
            job_factor=each.job_factor,
            max_time=each.max_time,
            default_time=_default_time(each),
            default=bool(each.default),
            billing=each.billing if settings.weight_fair_share or settings.enforce_limits else "",
            preempt_mode=_preempt_mode(each, settings),
            grace_time=each.grace_time if settings.preempt else 0.0,
            qos=each.others.get("QoS", "") if settings.enforce_limits else "",
        )
        for each in site.partitions or ()
    )
    return Slurm(settings, partitions, nodes=_nodes(site), switches=_switches(site), reservations=reservations).text


def _nodes(site: Site) -> tuple[SlurmNodes, ...]:
    """Return the nodes that differ from others by weight, features or the types of their GPUs."""
    from simmodel.policies.slurm.layout import SlurmNodes

    kinds: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for node in site.nodes or ():
        types = tuple(dict.fromkeys(each.type for each in node.gres if each.name == "gpu" and each.type))
        kinds.setdefault((node.weight, node.features, types), []).append(node.name)
    found = []
    for (weight, features, gpus), names in kinds.items():
        if weight != 1 or features or gpus:
            lists: dict[str, Any] = {"features": features, "gpus": gpus}
            found.append(SlurmNodes(names=node_list(names), weight=weight, **lists))
    return tuple(found)


def _switches(site: Site) -> tuple[SlurmSwitch, ...]:
    """Return the tree of switches: those above others have the largest ones below them."""
    from simmodel.policies.slurm.layout import SlurmSwitch

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
    from simmodel.policies.slurm.settings import preempt_mode_of

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
