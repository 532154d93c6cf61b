"""The settings of slurm.conf that decide on starts, by Slurm's own names, with the defaults of Slurm 22.05.

Source: slurm.conf(5) and its SchedulerParameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import inf
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields, shown, unknown
from simmodel_site.policy.keys import SHOW_CONFIG, is_unset

__all__ = [
    "SlurmConf",
    "SlurmPartition",
    "number_text",
    "partitions_of",
    "parts_of",
    "preempt_mode_of",
    "weights_of",
    "whole",
]

YEAR = 365 * 86400
_DATABASE = "accounting_storage/slurmdbd"


@attrs.frozen(kw_only=True, repr=False)
class SlurmConf(Fields):
    """The settings of slurm.conf that decide on starts; times in seconds, unless Slurm's name says otherwise.

    Parameters
    ----------
    default_queue_depth, partition_job_depth, sched_max_job_start, batch_sched_delay, sched_interval
        of the main loop: jobs tested at an event, jobs of each partition (0: any number), jobs started in a run (0: any
        number), least seconds between two runs, seconds between two runs over the whole queue
    backfill
        whether there is a backfill loop (``SchedulerType``)
    bf_interval, bf_window, bf_resolution
        of the backfill loop: seconds from the end of a cycle to the next; minutes that it plans ahead; seconds
    bf_max_job_test, bf_max_job_part, bf_max_job_user, bf_max_job_user_part, bf_max_job_assoc, bf_max_job_start
        jobs tested in a cycle, of each partition, of each user, of both, of each association (which takes precedence
        over users); jobs started in a cycle (0: any number)
    bf_max_time
        seconds after which a cycle ends, if tests take time; 0: ``bf_interval``
    bf_node_space_size
        records of its table of free nodes; 0: ``bf_max_job_test``
    bf_min_age_reserve, bf_min_prio_reserve
        younger (s) or lower jobs neither close their partition nor reserve nodes
    bf_window_linear
        seconds by which the window of a test grows in each round; 0: it doubles
    assoc_limit_stop
        whether a job that waits for a licence closes its partition
    multifactor
        whether priorities are those of priority/multifactor
    weight_age, weight_size, weight_partition, max_age, calc_period, favor_small
        of priority/multifactor: ``PriorityWeightAge`` and so on; seconds; seconds; whether small jobs come first
    bf_max_job_array_resv
        tasks of an array for which a cycle of the backfill loop reserves nodes
    weight_fair_share, weight_assoc, weight_qos, weight_tres
        of priority/multifactor, which need accounts: ``PriorityWeightFairshare`` and so on; ``CPU=1000,Mem=500``
    decay_half_life, fair_tree, damping
        ``PriorityDecayHalfLife`` (s; 0: usage does not decay); whether Fair Tree ranks users, without
        ``NO_FAIR_TREE``; ``FairShareDampeningFactor``
    enforce_limits
        whether the limits of associations and QOS hold (``AccountingStorageEnforce``)
    safe_limits
        whether jobs start only if what is used, and what running jobs and they themselves may use, is within the limits
        of minutes used; else running jobs are stopped at the scan after a limit is reached (``safe``)
    least_loaded, memory
        whether jobs get the least loaded nodes (``CR_LLN``); whether memory is allocated (``CR_*_Memory``)
    allocates, dist_block
        what jobs get whole: ``core``, with all its threads, ``socket``, or ``cpu``: a core, too, of which some threads
        are theirs (``CR_Core``, ``CR_Socket``, ``CR_CPU``); whether the CPUs of a job fill one socket after another
        (``CR_CORE_DEFAULT_DIST_BLOCK``)
    def_mem_per_cpu, def_mem_per_node
        ``DefMemPerCPU``, ``DefMemPerNode`` (bytes); without both, jobs that name no memory get that of whole nodes
    max_mem_per_cpu, max_mem_per_node
        ``MaxMemPerCPU``: jobs with more memory of each CPU (bytes) get more CPUs; ``MaxMemPerNode``: with more of each
        node, they never start; 0: no limit
    tree
        whether nodes are chosen by their switches (``TopologyPlugin=topology/tree``)
    max_switch_wait
        the longest that a job waits for one leaf switch (s)
    preempt, preempt_mode, preempt_exempt_time
        ``partition_prio``, ``qos`` or nothing (``PreemptType``); what happens to preempted jobs: ``requeue``,
        ``cancel``, ``suspend`` or ``off``; seconds from a start before which jobs are not preempted
    requeue
        whether preempted jobs can be requeued (``JobRequeue``); else they are cancelled
    preempt_youngest_first, preempt_strict_order, preempt_reorder_count
        of ``PreemptParameters``: how the jobs that are preempted are chosen
    complete_wait, kill_wait, over_time_limit
        ``CompleteWait``, ``KillWait``, ``OverTimeLimit`` (s; ``inf``: jobs are not stopped)
    epilog, defer
        whether nodes run an ``Epilog``: where the last node of a job has ended it, the main loop runs at once, unless
        ``SchedulerParameters=defer``
    unread
        the settings that are set and not modelled

    Raises
    ------
    InputError
        a number is negative, infinite or nan, or 0 where a loop would never sleep

    >>> SlurmConf.of({"SchedulerParameters": "bf_interval=10,bf_max_time=60", "KillWait": "5 sec"}).bf_interval
    10.0
    """

    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_max_job_start: int = 0
    batch_sched_delay: float = 3.0
    sched_interval: float = 60.0
    backfill: bool = True
    bf_interval: float = 30.0
    bf_window: float = 1440.0
    bf_resolution: int = 60
    bf_max_job_test: int = 500
    bf_max_job_part: int = 0
    bf_max_job_user: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_start: int = 0
    bf_max_time: float = 0.0
    bf_node_space_size: int = 0
    bf_min_age_reserve: float = 0.0
    bf_min_prio_reserve: int = 0
    bf_window_linear: float = 0.0
    assoc_limit_stop: bool = False
    multifactor: bool = False
    weight_age: float = 0.0
    weight_size: float = 0.0
    weight_partition: float = 0.0
    weight_fair_share: float = 0.0
    weight_assoc: float = 0.0
    weight_qos: float = 0.0
    weight_tres: str = ""
    decay_half_life: float = 7 * 86400.0
    fair_tree: bool = True
    damping: float = 1.0
    enforce_limits: bool = False
    safe_limits: bool = False
    max_age: float = 7 * 86400.0
    calc_period: float = 300.0
    favor_small: bool = False
    bf_max_job_array_resv: int = 20
    least_loaded: bool = False
    memory: bool = False
    allocates: str = "core"
    dist_block: bool = False
    def_mem_per_cpu: float = 0.0
    def_mem_per_node: float = 0.0
    max_mem_per_cpu: float = 0.0
    max_mem_per_node: float = 0.0
    tree: bool = False
    max_switch_wait: float = 300.0
    preempt: str = ""
    preempt_mode: str = "off"
    preempt_exempt_time: float = 0.0
    requeue: bool = True
    preempt_youngest_first: bool = False
    preempt_strict_order: bool = False
    preempt_reorder_count: int = 1
    complete_wait: float = 0.0
    kill_wait: float = 30.0
    over_time_limit: float = 0.0
    epilog: bool = False
    defer: bool = False
    unread: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.bf_interval == -1:  # as slurm.conf may say: there is no backfill loop
            object.__setattr__(self, "backfill", False)
            object.__setattr__(self, "bf_interval", 30.0)
        for field in attrs.fields(type(self)):
            value, least = getattr(self, field.name), _LEAST.get(field.name, 0)
            if isinstance(value, int | float) and not (
                least <= value < inf or (value == inf and field.name in _ENDLESS)
            ):
                raise InputError(f"must be a finite number >= {least}, got {value:g}", place=field.name)

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> SlurmConf:
        """Return the settings of the names and values of slurm.conf, or of ``scontrol show config``.

        Raises
        ------
        InputError
            a value is not one that Slurm accepts, or negative
        """
        given: dict[str, Any] = {}
        named = {name.lower(): (name, _bare(value)) for name, value in conf.items()}
        for key, (field, read) in _CONF.items():
            if key in named and named[key][1]:
                given[field] = _value(*named[key], read)
        text = {key: value for key, (_, value) in named.items()}
        given |= _selection(text.get("selecttype", ""), text.get("selecttypeparameters", "").upper())
        enforced = {*text.get("accountingstorageenforce", "").lower().split(",")}
        given |= {"safe_limits": True} if enforced & {"safe", "all"} else {}
        parameters = text.get("schedulerparameters", "")
        for name, value in _parameters(text.get("preemptparameters", "")):
            parameters += f",preempt_{name.removeprefix('preempt_')}={value}"
        for name, value in _parameters(parameters):
            if value == "-1" and name in ("bf_interval", "sched_interval"):
                given |= {name: -1.0} if name == "bf_interval" else {}
            elif name in _SCHEDULER:
                given[name] = _value(name, value, _SCHEDULER[name])
        if text.get("accountingstoragetype", _DATABASE) != _DATABASE:
            for name in ("weight_age", "weight_fair_share"):  # slurmctld ignores them without its database
                if given.get(name):
                    given[name] = 0.0
        return cls(**given, unread=tuple(what for what, _ in SHOW_CONFIG.named(conf)))

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, but for those that are not modelled.

        >>> SlurmConf(bf_interval=10.0, least_loaded=True).changed()
        {'bf_interval': 10.0, 'least_loaded': True}
        """
        usual = SlurmConf()
        told = attrs.asdict(self)
        return {name: each for name, each in told.items() if each != getattr(usual, name) and name != "unread"}

    @classmethod
    def typed(cls, name: str, text: str) -> Any:
        """Return the value of a field in a text.

        Raises
        ------
        InputError
            it is not of its type
        """
        usual = getattr(cls(), name)
        if isinstance(usual, str):
            return text.removeprefix("(").removesuffix(")")
        return _value(name, text, _yes if isinstance(usual, bool) else whole if isinstance(usual, int) else float)

    @property
    def slots(self) -> int:
        """The records of the table of free nodes."""
        return self.bf_node_space_size or self.bf_max_job_test


def _bare(text: str) -> str:
    """Return a value without what stands for nothing, and without the units that scontrol prints."""
    return "" if is_unset(text) else text.strip().removesuffix(" sec").strip()


def _selection(kind: str, chosen: str) -> dict[str, Any]:
    """Return the settings of SelectType and SelectTypeParameters."""
    if not chosen and "select/cons" in kind:
        chosen = "CR_CORE_MEMORY"  # what slurmctld takes then
    allocates = "socket" if "CR_SOCKET" in chosen else "cpu" if "CR_CPU" in chosen else "core"
    return {field: True for field, word in _CHOSEN.items() if word in chosen} | {"allocates": allocates}


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        if part.strip():
            name, _, value = part.strip().partition("=")
            yield name.strip().lower(), value.strip()


def _value(name: str, text: str, read: Any) -> Any:
    try:
        return read(text)
    except ValueError:
        raise InputError(f"must be {_ACCEPTED.get(read, 'a number')}, got {shown(text)}", place=name) from None


def parts_of(text: str, keys: Mapping[str, Any], what: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the values of each part of a text, ``NAME[:KEY=VALUE]...``, separated by semicolons.

    Parameters
    ----------
    keys
        what reads the value of each known key; of a key without value: ``yes``
    what
        what a part is, as errors call it; empty: they tell the key alone

    Raises
    ------
    InputError
        a key is unknown, or its value is not accepted

    >>> list(parts_of("a:weight=2; b", {"weight": int}))
    [('a', {'weight': 2}), ('b', {})]
    """
    for part in text.split(";"):
        name, *settings = (each.strip() for each in part.split(":"))
        values: dict[str, Any] = {}
        for each in settings:
            key, equals, value = each.partition("=")
            if key not in keys:
                raise unknown("key", key, keys)
            place = f"{what} {name}, {key}" if what else key
            values[key] = _value(place, value if equals else "yes", keys[key])
        if name:
            yield name, values


def whole(text: str) -> int:
    """Return a whole number from 0 on, or raise :class:`ValueError`."""
    found = int(text)
    if found < 0:
        raise ValueError(text)
    return found


def _seconds(text: str) -> float:
    """Return seconds; of ``7-00:00:00`` too."""
    if not text.replace(".", "", 1).isdecimal():
        days, dash, rest = text.partition("-")
        hours, minutes, seconds = (["0", "0", *rest.split(":")] if dash else ["0", "0", *days.split(":")])[-3:]
        return (int(days) * 86400 if dash else 0) + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    return float(text)


def _minutes(text: str) -> float:
    """Return the seconds of a number of minutes, or of days, hours, minutes and seconds."""
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return inf
    text = text.removesuffix("min").strip()
    return _seconds(text) * (60 if text.isdecimal() else 1)


def _mebibytes(text: str) -> float:
    """Return the bytes of a number of MiB."""
    return 0.0 if text.upper() == "UNLIMITED" else float(text) * 2**20


def _preempt_type(text: str) -> str:
    kind = text.lower().removeprefix("preempt/")
    if kind not in ("none", "partition_prio", "qos"):
        raise ValueError(text)
    return "" if kind == "none" else kind


def preempt_mode_of(text: str) -> str:
    """Return what happens to preempted jobs by a ``PreemptMode``; ``GANG`` goes with ``SUSPEND``.

    Raises
    ------
    ValueError
        it is not what Slurm accepts

    >>> preempt_mode_of("SUSPEND,GANG"), preempt_mode_of("REQUEUE")
    ('suspend', 'requeue')
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip().lower() not in ("", "gang", "within")]
    if not {*words} <= {"off", "requeue", "cancel", "suspend"} or len(words) > 1:
        raise ValueError(text)
    return words[0] if words else "off"


@cache
def weights_of(text: str) -> tuple[tuple[str, float], ...]:
    """Return the weights of resources of a text such as ``CPU=1000,Mem=0.25G``; of memory: per MB.

    Raises
    ------
    ValueError
        a weight is not a number

    >>> weights_of("CPU=2,Mem=1.0G,GRES/gpu=10")
    (('cpu', 2.0), ('mem', 0.0009765625), ('gres/gpu', 10.0))
    """
    found = []
    for part in text.split(","):
        if part.strip():
            name, _, value = part.partition("=")
            value = value.strip().upper()
            per = _UNITS.get(value[-1:], 1.0)
            number = float(value[:-1] if value[-1:] in _UNITS else value)
            found.append((name.strip().lower(), number / per))
    return tuple(found)


_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""The units of weights of memory, in MB."""


def _weights(text: str) -> str:
    weights_of(text)
    return text


_TIME = "days-hours:minutes:seconds"
_ACCEPTED: dict[Any, str] = {
    whole: "a whole number >= 0",
    _seconds: f"seconds or {_TIME}",
    _minutes: f"minutes, {_TIME} or UNLIMITED",
    _mebibytes: "a number of MiB or UNLIMITED",
    _preempt_type: "preempt/none, preempt/partition_prio or preempt/qos",
    preempt_mode_of: "OFF, CANCEL, REQUEUE or SUSPEND",
    _weights: "weights such as CPU=1000,Mem=0.25G",
}
"""Words for the values that the readers of settings accept."""


def _yes(text: str) -> bool:
    return text.lower() in ("yes", "1", "true")


_SCHEDULER: dict[str, Any] = {
    **dict.fromkeys(("default_queue_depth", "partition_job_depth", "bf_resolution", "bf_max_job_test"), whole),
    **dict.fromkeys(("bf_max_job_part", "bf_max_job_user", "bf_max_job_user_part", "bf_max_job_start"), whole),
    **dict.fromkeys(("bf_max_job_assoc", "sched_max_job_start"), whole),
    **dict.fromkeys(("bf_node_space_size", "bf_min_prio_reserve", "bf_max_job_array_resv"), whole),
    **dict.fromkeys(("batch_sched_delay", "sched_interval", "bf_interval", "bf_window"), _seconds),
    **dict.fromkeys(("bf_max_time", "bf_min_age_reserve", "bf_window_linear", "max_switch_wait"), _seconds),
    "assoc_limit_stop": lambda text: True,
    "defer": lambda text: True,
    "preempt_youngest_first": lambda text: True,
    "preempt_strict_order": lambda text: True,
    "preempt_reorder_count": whole,
}
"""The SchedulerParameters that are modelled."""

_LEAST = dict.fromkeys(("sched_interval", "bf_interval", "bf_resolution", "calc_period"), 1)
"""The least values of settings for which 0 is not one."""
_ENDLESS = {"max_age", "decay_half_life", "calc_period", "preempt_exempt_time", "over_time_limit"}
"""Those that may be ``UNLIMITED``."""

_CHOSEN = {"least_loaded": "LLN", "memory": "MEMORY", "dist_block": "DIST_BLOCK"}
"""The settings that a word in SelectTypeParameters switches on."""

_ENFORCED = {"limits", "safe", "all"}

_CONF: dict[str, tuple[str, Any]] = {
    "schedulertype": ("backfill", lambda text: text.removeprefix("sched/") != "builtin"),
    "prioritytype": ("multifactor", lambda text: text.removeprefix("priority/") == "multifactor"),
    "priorityweightage": ("weight_age", float),
    "priorityweightjobsize": ("weight_size", float),
    "priorityweightpartition": ("weight_partition", float),
    "priorityweightfairshare": ("weight_fair_share", float),
    "priorityweightassoc": ("weight_assoc", float),
    "priorityweightqos": ("weight_qos", float),
    "priorityweighttres": ("weight_tres", _weights),
    "prioritydecayhalflife": ("decay_half_life", _minutes),
    "priorityflags": ("fair_tree", lambda text: "NO_FAIR_TREE" not in text.upper()),
    "fairsharedampeningfactor": ("damping", float),
    "accountingstorageenforce": ("enforce_limits", lambda text: bool(_ENFORCED & {*text.lower().split(",")})),
    "prioritymaxage": ("max_age", _minutes),
    "prioritycalcperiod": ("calc_period", _minutes),
    "priorityfavorsmall": ("favor_small", _yes),
    "topologyplugin": ("tree", lambda text: text.removeprefix("topology/") == "tree"),
    "defmempernode": ("def_mem_per_node", _mebibytes),
    "defmempercpu": ("def_mem_per_cpu", _mebibytes),
    "maxmempernode": ("max_mem_per_node", _mebibytes),
    "maxmempercpu": ("max_mem_per_cpu", _mebibytes),
    "jobrequeue": ("requeue", lambda text: text != "0"),
    "preempttype": ("preempt", _preempt_type),
    "preemptmode": ("preempt_mode", preempt_mode_of),
    "preemptexempttime": ("preempt_exempt_time", _minutes),
    "completewait": ("complete_wait", _seconds),
    "killwait": ("kill_wait", _seconds),
    "overtimelimit": ("over_time_limit", _minutes),
    "epilog": ("epilog", lambda text: True),
}
"""The settings of slurm.conf that are modelled."""


@attrs.frozen(kw_only=True, repr=False)
class SlurmPartition(Fields):
    """A partition as Slurm's loops see it; partitions may share nodes.

    Parameters
    ----------
    name
        its name, which jobs give as their queue or their partition
    nodes
        the list of its nodes as Slurm writes it; empty: all nodes
    tier, job_factor
        ``PriorityTier``; ``PriorityJobFactor``
    max_time, default_time
        the longest limit (s), and that of jobs without one; ``None``: no limit
    default
        whether jobs that name no partition get it
    billing
        ``TRESBillingWeights``; empty: a CPU counts 1
    preempt_mode, grace_time
        what happens to its jobs when they are preempted (``None``: the ``PreemptMode`` of the cluster), and seconds
        that they still have then
    qos
        the QOS whose limits hold for its jobs; empty: none
    exclusive, least_loaded
        whether its jobs get whole nodes (``OverSubscribe=EXCLUSIVE``); whether they get the least loaded ones (``LLN``)
    min_nodes, max_nodes
        the least number of nodes that a job gets, and the largest; 0: any number
    def_mem_per_cpu, def_mem_per_node, max_mem_per_cpu, max_mem_per_node
        as those of :class:`SlurmConf` (bytes), in place of them; 0: those of the cluster
    """

    name: str
    nodes: str = ""
    tier: int = 1
    job_factor: int = 1
    max_time: float | None = None
    default_time: float | None = None
    default: bool = False
    billing: str = ""
    preempt_mode: str | None = None
    grace_time: float = 0.0
    qos: str = ""
    exclusive: bool = False
    least_loaded: bool = False
    min_nodes: int = 0
    max_nodes: int = 0
    def_mem_per_cpu: float = 0.0
    def_mem_per_node: float = 0.0
    max_mem_per_cpu: float = 0.0
    max_mem_per_node: float = 0.0

    @property
    def text(self) -> str:
        """Its text, as :func:`partitions_of` reads it.

        >>> SlurmPartition(name="high", nodes="n[1-5]", tier=10).text
        'high:nodes=n[1-5]:tier=10'
        """
        parts = [self.name]
        for field in attrs.fields(SlurmPartition)[1:]:
            value = getattr(self, field.name)
            if value != field.default:
                parts.append(field.name if value is True else f"{field.name}={number_text(value)}")
        return ":".join(parts)


def number_text(value: float | str) -> str:
    """Return the shortest text of a number that is read as the same number; texts as they are.

    >>> number_text(60.0), number_text(3000 * 2.0**20), number_text(0.1)
    ('60', '3145728000', '0.1')
    """
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.0f}" if value == int(value) else repr(value)


def partitions_of(text: str) -> tuple[SlurmPartition, ...]:
    """Return the partitions of a text, ``NAME[:nodes=LIST][:tier=N][:job_factor=N]...``, separated by semicolons.

    Raises
    ------
    InputError
        a key is unknown, or its value is not a number

    >>> partitions_of("low:default; high:nodes=n[1-5]:tier=10")[1].tier
    10
    """
    return tuple(SlurmPartition(name=name, **values) for name, values in parts_of(text, _PARTITION))


_PARTITION = {
    "nodes": str,
    "default": _yes,
    "tier": whole,
    "job_factor": whole,
    "max_time": float,
    "default_time": float,
    "billing": _weights,
    "preempt_mode": preempt_mode_of,
    "grace_time": float,
    "qos": str,
    **dict.fromkeys(("exclusive", "least_loaded"), _yes),
    **dict.fromkeys(("min_nodes", "max_nodes"), whole),
    **dict.fromkeys(("def_mem_per_cpu", "def_mem_per_node", "max_mem_per_cpu", "max_mem_per_node"), float),
}
