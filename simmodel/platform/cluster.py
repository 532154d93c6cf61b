"""Specs of clusters: frozen values from which the live parts are built.

Times are in seconds, sizes in bytes, powers in watts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import gamma, inf
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import within_count
from simmodel.foundation.units import in_bytes, in_seconds, in_watts
from simmodel.platform.devices import DeviceSpec
from simmodel.platform.links import LinkSpec, cables
from simmodel.platform.models import PLACEMENTS, model_text
from simmodel.platform.node_lists import NodeList, node_names, resized, switch_names
from simmodel.platform.overlaps import check_overlaps
from simmodel.platform.power import NodePower
from simmodel.platform.storage import StorageSpec
from simmodel.platform.supply import PowerSupply
from simmodel.platform.topology import Topology, given_topology, numbers_of_hosts, switches_in

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ClusterSpec",
    "ConsumableSpec",
    "FailureModel",
    "NodeSpec",
    "OutageSpec",
    "PartitionSpec",
    "QueueSpec",
    "ReservationSpec",
    "placement_text",
]

_Number = TypeVar("_Number", bound=float | None)
_Whole = TypeVar("_Whole", bound=int | None)
_Text = TypeVar("_Text", bound=str | None)


def _positive(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str):
        raise InputError(
            f"must be a number > 0 or a quantity such as '2h' or '16GB', got {value!r}", place=attribute.name
        )
    if value is not None and not value > 0:
        raise InputError(f"must be > 0, got {value!r}", place=attribute.name)


def _not_negative(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if isinstance(value, str):
        raise InputError(
            f"must be a number >= 0 or a quantity such as '2h' or '16GB', got {value!r}", place=attribute.name
        )
    if value is not None and not value >= 0:
        raise InputError(f"must be >= 0, got {value!r}", place=attribute.name)


def _ends(_instance: FailureModel, attribute: attrs.Attribute[float], value: float) -> None:
    if value == inf:
        raise InputError("must be finite: an outage that never ends is an OutageSpec, got inf", place=attribute.name)


def _speed(instance: NodeSpec, attribute: attrs.Attribute[float], value: float) -> None:
    given: Any = value
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < inf:
        raise InputError(f"must be a finite number > 0, got {shown(value)}", place=attribute.name)


def _whole(least: int) -> WholeCheck:
    def check(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Whole], value: _Whole) -> None:
        given: Any = value
        if given is None and attribute.default is None:
            return
        if isinstance(given, bool) or not isinstance(given, Integral) or given < least:
            raise InputError(f"must be a whole number >= {least}, got {shown(value)}", place=attribute.name)

    return check


def _gpus(value: int | Mapping[str, int]) -> Any:  # a mapping becomes its sum, and gpu_types
    return value


def _one_of(*allowed: str | None) -> Check:
    def check(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Text], value: _Text) -> None:
        if value not in allowed:
            names = ", ".join(str(each) for each in allowed if each is not None)
            raise InputError(f"must be one of {names}, got {value!r}", place=attribute.name)

    return check


def placement_text(given: Any) -> Any:
    """Return a placement as documents store it: a function or a class by its registered name or as ``module:name``.

    >>> from simmodel.resources.ready.contiguous import Contiguous
    >>> placement_text(Contiguous), placement_text("spread")
    ('contiguous', 'spread')
    """
    return model_text(given, PLACEMENTS) if callable(given) else given


def _known_placement(_instance: PartitionSpec, attribute: attrs.Attribute[str | None], value: str | None) -> None:
    known = isinstance(value, str) and (value.partition("(")[0].strip() in PLACEMENTS or ":" in value)
    if value is not None and not known:
        raise InputError(f"must be one of {', '.join(PLACEMENTS)}, got {value!r}", place=attribute.name)


def _network(value: str | Path | Topology) -> Topology | None:
    return given_topology(value, "network")


def _switch(_instance: NodeSpec, attribute: attrs.Attribute[int | str | None], value: Any) -> None:
    fine = value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    if not fine and not (isinstance(value, str) and value):
        raise InputError(f"must be a name or a number >= 0, got {shown(value)}", place=attribute.name)


class Check(Protocol):
    """A validator of a text field."""

    def __call__(self, instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Text], value: _Text) -> None:
        """Raise an ``InputError`` unless the value is allowed."""
        ...


class WholeCheck(Protocol):
    """A validator of a field of whole numbers."""

    def __call__(self, instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Whole], value: _Whole) -> None:
        """Raise an ``InputError`` unless the value is a whole number, or ``None`` where that is the default."""
        ...


def _tuple(values: Iterable[Any]) -> tuple[Any, ...]:  # mypy does not support generic converters
    if not isinstance(values, Iterable):
        raise InputError(f"must be several specs, as in a list, got {shown(values)}")
    return tuple(values)


@attrs.frozen(kw_only=True, repr=False)
class NodeSpec(Fields):
    """Nodes of one kind.

    Parameters
    ----------
    name, count
        name of the nodes, to which a number is appended; number of nodes
    names
        instead of both: the names of all nodes as schedulers write them, ``n[1-32]``, ``cn[001-080,101],login``
    cores, gpus, memory
        per node; memory in bytes, 0 if not modelled
    gpu_types
        how many GPUs it has of each type, in the order of their numbers: ``gpus={"A100": 4, "T4": 2}`` says it, too
    idle_power, load_power
        W per node, when idle and when all cores are busy: the short form of ``power``
    power
        what it draws in all states, and how it sleeps: a :class:`~simmodel.platform.NodePower`
    speed
        relative to the run and requested times of jobs, which are for speed 1: a job that starts on the node takes, is
        expected to take, and may take ``time / speed`` seconds. On several nodes it has the speed of the slowest.
        Waiting jobs are planned at speed 1. A body takes its own time, and its limit is in seconds
    switch
        name or number of the switch to which the nodes are connected; for placements
    nodes_per_switch
        nodes on each of several switches: ``switch`` is the number of the first of them, or a name, to which a number
        is appended as to that of nodes (default: ``"switch"``)

    >>> PartitionSpec(nodes=[NodeSpec(count=3, switch="leaf", nodes_per_switch=2)]).node_switches
    ('leaf0', 'leaf0', 'leaf1')
    >>> PartitionSpec(nodes=[NodeSpec(names="cn[08-10]", cores=4)]).node_names
    ('cn08', 'cn09', 'cn10')
    >>> NodeSpec(cores=64, gpus={"A100": 4, "T4": 2}).gpus
    6
    """

    name: str = "node"
    names: str | None = None
    count: int = attrs.field(default=1, validator=[_whole(1), within_count])
    cores: int = attrs.field(default=1, validator=_whole(1))
    gpus: int = attrs.field(default=0, converter=_gpus)
    memory: float = attrs.field(default=0.0, converter=in_bytes, validator=_not_negative)
    idle_power: float = attrs.field(default=0.0, converter=in_watts, validator=_not_negative)
    load_power: float = attrs.field(default=0.0, converter=in_watts, validator=_not_negative)
    speed: float = attrs.field(default=1.0, validator=_speed)
    switch: int | str | None = attrs.field(default=None, validator=_switch)
    nodes_per_switch: int | None = attrs.field(default=None, validator=_whole(1))
    gpu_types: Mapping[str, int] = attrs.field(factory=dict)
    power: NodePower | None = None

    def __attrs_post_init__(self) -> None:
        self._set_gpus()
        self._set_power()
        if self.names is None:
            return
        try:
            count = len(NodeList.of(self.names))
        except InputError as error:
            raise InputError(error.message, place="names") from None
        if not count:
            raise InputError("must not be empty", place="names")
        if self.count not in (1, count):
            raise InputError(f"must be {count}, as many as there are names, got {self.count}", place="count")
        object.__setattr__(self, "count", count)

    def _set_gpus(self) -> None:
        """Set the number of GPUs and their types, of which one says the other."""
        given: Any = self.gpus
        given = 0 if given == {} else given
        types = given if isinstance(given, Mapping) else self.gpu_types
        check, fields = _whole(0), attrs.fields(NodeSpec)
        for name, count in types.items():
            if not isinstance(name, str) or not name or set(name) & set("|:, "):
                raise InputError(f"must be names of types without spaces, ',', ':' and '|', got {name!r}", place="gpus")
            check(self, fields.gpus, count)
        total = sum(types.values())
        if types and given not in (types, total, 0):
            raise InputError(f"must be {total}, the sum of gpu_types, got {given!r}", place="gpus")
        object.__setattr__(self, "gpus", total if types else given)
        object.__setattr__(self, "gpu_types", dict(types))
        check(self, fields.gpus, self.gpus)

    def _set_power(self) -> None:
        """Set the idle and the load power from ``power``, if it is given."""
        if self.power is None:
            return
        if not isinstance(self.power, NodePower):
            raise InputError(f"must be a NodePower, got {shown(self.power)}", place="power")
        for name, watts in (("idle_power", self.power.idle), ("load_power", self.power.load)):
            if getattr(self, name) not in (0, watts):
                text = f"must be {watts:g}, as power says, got {getattr(self, name):g}"
                raise InputError(text, place=name)
            object.__setattr__(self, name, watts)

    @property
    def watts(self) -> NodePower:
        """Its power, also if two numbers say it.

        >>> NodeSpec(idle_power=95, load_power=190.7).watts == NodePower(idle=95, load=190.7)
        True
        """
        return self.power or NodePower(idle=self.idle_power, load=self.load_power)

    def resized(self, count: int) -> NodeSpec:
        """Return another number of such nodes; the names of more nodes follow the last one.

        >>> NodeSpec(names="n[08-10]").resized(5).names, NodeSpec(names="n[08-10]").resized(2).names
        ('n[08-12]', 'n[08-09]')
        """
        if self.names is None or count < 1:
            return attrs.evolve(self, names=None, count=count)
        return attrs.evolve(self, names=resized(self.names, count), count=count)

    @property
    def has_switch(self) -> bool:
        """Whether the nodes have a switch."""
        return self.switch is not None or self.nodes_per_switch is not None


@attrs.frozen(kw_only=True, repr=False)
class PartitionSpec(Fields):
    """A partition of a cluster: a place of its scheduler.

    Parameters
    ----------
    processors, nodes
        exactly one of them: a number of interchangeable processors, or identified nodes
    placement
        on identified nodes: ``"first-fit"``: those of lowest number; ``"best-fit"``: those left with the fewest free
        cores, then GPUs; ``"packed"``: on the fewest switches, partly used ones first (cores on any nodes: the fewest
        nodes, among equals the partly used ones, the last one chosen to leave the fewest free cores); ``"spread"``:
        those with the most free cores, then GPUs; ``"exclusive-by-switch"``: whole switches, for one job each;
        ``"contiguous"``: nodes of adjacent numbers, for which a job waits; a function or a class as
        :func:`~simmodel.resources.pools.placements.register_placement` takes them, or ``module:name``. Ties go to the
        lower number.
        ``simmodel list placements`` prints all. Default: ``"best-fit"`` with ``one_host``, else ``"first-fit"``
    network
        the places of its nodes in a network, for placements and the record: a topology such as
        :class:`~simmodel.platform.Dragonfly`, a text such as ``"dragonfly:3;4;5;2 bandwidth=1GBps"``, or the path of a
        platform of SimGrid (``.xml``). A node is the host of its name; if none has the name of a host, that of its
        position. Default: nodes have no places, but those that ``switch`` of :class:`NodeSpec` says
    exclusive
        whether a job takes whole nodes
    one_host
        whether each job runs on one node (a host), so that its processors are cores of that host
    max_processors, max_requested
        limits on the processors and the requested time (s) of a job
    priority
        added to the priority of its jobs
    idle_power, load_power
        W per processor, if nodes are not identified
    devices
        what is known of the types of its GPUs: a :class:`~simmodel.platform.DeviceSpec` each

    >>> PartitionSpec(nodes=[NodeSpec(count=2, cores=16)]).capacity
    32
    """

    name: str = "batch"
    processors: int | None = attrs.field(default=None, validator=_whole(1))
    nodes: tuple[NodeSpec, ...] = attrs.field(default=(), converter=_tuple)
    placement: str | None = attrs.field(default=None, converter=placement_text, validator=_known_placement)
    network: Topology | None = attrs.field(default=None, converter=attrs.converters.optional(_network))
    exclusive: bool = False
    one_host: bool = False
    max_processors: int | None = attrs.field(default=None, validator=_whole(1))
    max_requested: float | None = attrs.field(default=None, converter=in_seconds, validator=_positive)
    priority: float = 0.0
    idle_power: float = attrs.field(default=0.0, converter=in_watts, validator=_not_negative)
    load_power: float = attrs.field(default=0.0, converter=in_watts, validator=_not_negative)
    devices: tuple[DeviceSpec, ...] = attrs.field(default=(), converter=_tuple)

    def __attrs_post_init__(self) -> None:
        for i, each in enumerate(self.devices):
            if not isinstance(each, DeviceSpec):
                raise InputError(f"must be a DeviceSpec, got {shown(each)}", place=f"devices[{i}]")
            if each.name in {other.name for other in self.devices[:i]}:
                raise InputError(f"duplicate type {each.name!r}", place=f"devices[{i}]")
        if (self.processors is None) == (not self.nodes):
            found = "neither" if self.processors is None else "both"
            raise InputError(f"must have either processors or nodes, got {found}", place="processors")
        if self.one_host and not self.nodes:
            raise InputError(f"must be False: {self.name} has no identified nodes", place="one_host")
        for i, kind in enumerate(self.nodes):
            if not isinstance(kind, NodeSpec):
                raise InputError(f"must be a NodeSpec, got {kind!r}", place=f"nodes[{i}]")
        if any(kind.names for kind in self.nodes):
            names = self.node_names
            if len(set(names)) < len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise InputError(f"duplicate node name {twice!r}", place="nodes")
        if self.network is not None:
            if not self.nodes:
                raise InputError(f"must be that of identified nodes: {self.name} has none", place="network")
            try:
                numbers_of_hosts(self.network, self.node_names)
            except InputError as error:
                raise InputError(error.message if error.source is None else str(error), place="network") from None

    @property
    def placed_by(self) -> str:
        """The name of its placement, also if that is the default one.

        >>> PartitionSpec(nodes=[NodeSpec()]).placed_by, PartitionSpec(nodes=[NodeSpec()], one_host=True).placed_by
        ('first-fit', 'best-fit')
        """
        return self.placement or ("best-fit" if self.one_host else "first-fit")

    @property
    def capacity(self) -> int:
        """Total number of processors."""
        return self.processors if self.processors is not None else sum(node.count * node.cores for node in self.nodes)

    @property
    def groups(self) -> list[str]:
        """The paths to what can have another number: its kinds of nodes, by name if they have different ones."""
        names = Counter(kind.name for kind in self.nodes)
        kinds = [f".{kind.name}" if names[kind.name] == 1 else f"[{i}]" for i, kind in enumerate(self.nodes)]
        return [f"nodes{kind}" for kind in kinds] or ["processors"]

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of its nodes: those listed by their spec, or its name and a number, from 0 on for each name.

        >>> PartitionSpec(nodes=[NodeSpec(count=2), NodeSpec(name="gpu"), NodeSpec()]).node_names
        ('node0', 'node1', 'gpu0', 'node2')
        """
        names: list[str] = []
        for kind, first, _ in self._kinds():
            listed = kind.names
            names += node_names(listed) if listed else (f"{kind.name}{first + i}" for i in range(kind.count))
        return tuple(names)

    def _kinds(self) -> Iterator[tuple[NodeSpec, int, int]]:
        """Yield the specs of nodes, each with how many nodes of the same name, and how many nodes, are before it."""
        counts: dict[str, int] = {}
        before = 0
        for kind in self.nodes:
            first = counts.get(kind.name, 0)
            yield kind, first, before
            counts[kind.name] = first + (0 if kind.names else kind.count)
            before += kind.count

    @property
    def nodes_below(self) -> Mapping[str, Sequence[int]]:
        """The nodes below each switch or router of its network that have no way around it, by number.

        >>> nodes = [NodeSpec(count=4)]
        >>> PartitionSpec(nodes=nodes, network="tree:2,2 bandwidth=1GBps").nodes_below
        {'1.0': [0, 1], '1.1': [2, 3], '2.0': [0, 1, 2, 3]}
        """
        switches = switches_in(self.network)
        if self.network is None or not switches:
            return {}
        hosts = numbers_of_hosts(self.network, self.node_names)
        nodes = {host: node for node, host in enumerate(hosts)}
        return {name: [nodes[host] for host in below if host in nodes] for name, below in switches.items()}

    @property
    def node_switches(self) -> tuple[str | None, ...]:
        """The names of the switches of its nodes; ``None``: a node without a switch.

        >>> PartitionSpec(nodes=[NodeSpec(count=2, switch="a"), NodeSpec(count=2, nodes_per_switch=1)]).node_switches
        ('a', 'a', 'switch0', 'switch1')
        """
        return tuple(switch_names(self.nodes))

    def node_number(self, node: int | str) -> int:
        """Return the number of a node that it has, given by number or name.

        >>> part = PartitionSpec(nodes=[NodeSpec(count=2), NodeSpec(name="gpu"), NodeSpec()])
        >>> [part.node_number(node) for node in (3, "node1", "gpu0", "node2")]
        [3, 1, 2, 3]
        """
        number = self._number(node) if isinstance(node, str) else node
        if number is None:
            raise InputError(f"unknown node {node!r} of {self.name}")
        return number

    def _number(self, name: str) -> int | None:
        """Return the number of the node of this name, if it has one."""
        for kind, first, before in self._kinds():
            if kind.names:
                place = NodeList.of(kind.names).index(name)
                if place is not None:
                    return before + place
                continue
            text = name.removeprefix(kind.name)
            number = int(text) if len(text) < 19 and text.isdecimal() else -1
            if first <= number < first + kind.count and name == f"{kind.name}{number}":
                return before + number - first
        return None

    def has_node(self, node: int | str) -> bool:
        """Whether it has a node with this number (from 0) or this name.

        >>> part = PartitionSpec(nodes=[NodeSpec(count=2), NodeSpec(name="gpu"), NodeSpec()])
        >>> [part.has_node(node) for node in (3, 4, "node2", "node3", "gpu0", "gpu")]
        [True, False, True, False, True, False]
        """
        if not isinstance(node, str):
            return 0 <= node < sum(kind.count for kind in self.nodes)
        return self._number(node) is not None


@attrs.frozen(kw_only=True, repr=False)
class QueueSpec(Fields):
    """A queue to which jobs are submitted.

    Parameters
    ----------
    partition
        partition of its jobs, unless they name one
    priority
        added to the priority of its jobs
    max_processors, max_requested
        limits on the processors and the requested time (s) of a job
    max_running, max_running_per_user, max_waiting_per_user
        limits on the number of simultaneous jobs
    preemptible
        how its jobs may be preempted, ``"requeue"`` or ``"suspend"``; ``None``: not at all
    preempts
        the queues whose jobs its own jobs may preempt
    """

    name: str
    partition: str | None = None
    priority: float = 0.0
    max_processors: int | None = attrs.field(default=None, validator=_whole(1))
    max_requested: float | None = attrs.field(default=None, converter=in_seconds, validator=_positive)
    max_running: int | None = attrs.field(default=None, validator=_whole(1))
    max_running_per_user: int | None = attrs.field(default=None, validator=_whole(1))
    max_waiting_per_user: int | None = attrs.field(default=None, validator=_whole(1))
    preemptible: Literal["requeue", "suspend"] | None = attrs.field(
        default=None, validator=_one_of(None, "requeue", "suspend")
    )
    preempts: tuple[str, ...] = attrs.field(default=(), converter=_tuple)


@attrs.frozen(kw_only=True, repr=False)
class ConsumableSpec(Fields):
    """A named amount of which jobs hold shares while they run: licences, bytes of burst buffer, bytes/s of I/O."""

    name: str
    amount: float = attrs.field(validator=_positive)


@attrs.frozen(kw_only=True, repr=False)
class _Part(Fields):
    """A part of a partition: a number of processors, or named nodes."""

    partition: str | None = None
    processors: int | None = attrs.field(default=None, validator=_whole(1))
    nodes: tuple[int | str, ...] = attrs.field(default=(), converter=_tuple)

    def __attrs_post_init__(self) -> None:
        if (self.processors is None) == (not self.nodes):
            found = "neither" if self.processors is None else "both"
            raise InputError(f"must have either processors or nodes, got {found}", place="processors")


@attrs.frozen(kw_only=True, repr=False)
class OutageSpec(_Part):
    """An outage: part of a partition is unavailable from ``at`` to ``until``.

    Parameters
    ----------
    at, until
        begin and end in seconds; ``inf``: no end
    partition
        default: the first
    processors, nodes
        exactly one of them: number of processors, or nodes (numbers from 0, or names such as ``"node3"``)
    kind
        ``"failure"`` stops the jobs that run there; ``"maintenance"`` is announced, so no job starts that would
        overlap it; ``"drain"`` lets running jobs end
    """

    at: float = attrs.field(converter=in_seconds, validator=_not_negative)
    until: float = attrs.field(default=inf, converter=in_seconds)
    kind: Literal["failure", "maintenance", "drain"] = attrs.field(
        default="failure", validator=_one_of("failure", "maintenance", "drain")
    )
    reason: str = ""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.until > self.at:
            raise InputError(f"must be > at ({self.at:g} s), got {self.until:g}", place="until")


@attrs.frozen(kw_only=True, repr=False)
class ReservationSpec(_Part):
    """An advance reservation: part of a partition that is a separate place from ``start`` to ``end`` (s).

    Jobs that name it as their partition run there; if ``users`` or ``queues`` are given, only their jobs may. Other
    jobs do not start if they would overlap it. Jobs that still run there at its end are stopped. Reservations must not
    overlap on a node, nor have more processors together than their partition.
    """

    name: str
    start: float = attrs.field(converter=in_seconds, validator=_not_negative)
    end: float = attrs.field(converter=in_seconds)
    users: tuple[int | str, ...] = attrs.field(default=(), converter=_tuple)
    queues: tuple[str, ...] = attrs.field(default=(), converter=_tuple)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.end > self.start:
            raise InputError(f"must be > start ({self.start:g} s), got {self.end:g}", place="end")


@attrs.frozen(kw_only=True, repr=False)
class FailureModel(Fields):
    """Random failures: the parts of a system fail and are repaired independently, each at the same rates.

    Nodes and switches are parts of a cluster, sites of a grid, links of both. A failed switch takes down all nodes
    connected to it, or in the network of a grid all links that end at it. The routers and switches of a topology, in
    which the nodes of a partition or the sites of a grid lie, are among them by their names: a failed one takes down
    all nodes below it that have no way around it, and jobs with traffic over its links stand still until its repair. A
    link fails together with its ``reverse``. A part that is down for another reason too comes back when the last of
    them ends.

    Parameters
    ----------
    of
        ``"nodes"`` (processors, if nodes are not identified), ``"switches"``, ``"links"`` or ``"sites"``
    names
        of the switches, links or sites that fail; default: all. The links of a topology must be named
    partition
        of the nodes or switches; default: of nodes the first, of switches all
    mean_time_between_failures, mean_time_to_repair
        seconds, for one part: from a repair to the next failure (``inf``: never), and from there to the repair
    distribution, shape
        distribution of the time to failure: ``"exponential"``, or ``"weibull"`` with this shape
    repair, repair_shape
        distribution of the repair time: ``"exponential"``, ``"weibull"`` with this shape, or ``"constant"``

    The nodes of one model share a random stream. Each other part has a stream by its name, so that a further one
    changes no instant of the others.

    >>> import numpy as np
    >>> model = FailureModel(mean_time_between_failures=100, distribution="weibull", shape=0.7)
    >>> rng = np.random.default_rng(1)
    >>> round(float(np.mean([model.draw_time_to_failure(rng) for _ in range(20_000)])))
    100
    """

    of: Literal["nodes", "switches", "links", "sites"] = attrs.field(
        default="nodes", validator=_one_of("nodes", "switches", "links", "sites")
    )
    names: tuple[str, ...] = attrs.field(default=(), converter=_tuple)
    partition: str | None = None
    mean_time_between_failures: float = attrs.field(converter=in_seconds, validator=_positive)
    mean_time_to_repair: float = attrs.field(default=3600.0, converter=in_seconds, validator=[_positive, _ends])
    distribution: Literal["exponential", "weibull"] = attrs.field(
        default="exponential", validator=_one_of("exponential", "weibull")
    )
    shape: float = attrs.field(default=1.0, validator=_positive)
    repair: Literal["exponential", "weibull", "constant"] = attrs.field(
        default="exponential", validator=_one_of("exponential", "weibull", "constant")
    )
    repair_shape: float = attrs.field(default=1.0, validator=_positive)

    def draw_time_to_failure(self, rng: np.random.Generator) -> float:
        """Draw the seconds until the next failure."""
        return _drawn(rng, self.mean_time_between_failures, self.distribution, self.shape)

    def draw_time_to_repair(self, rng: np.random.Generator) -> float:
        """Draw the seconds until the repair."""
        return _drawn(rng, self.mean_time_to_repair, self.repair, self.repair_shape)

    def check(self, kinds: Sequence[str], parts: Callable[[FailureModel], Collection[str]], place: str) -> None:
        """Raise an ``InputError`` unless it is of one of these kinds of parts, and names some that are there."""
        if self.of not in kinds:
            raise InputError(f"must be {' or '.join(kinds)} here, got {self.of!r}", place=f"{place}.of")
        if self.of not in ("nodes", "switches") and self.partition is not None:
            raise InputError(f"must be None for {self.of}, got {self.partition!r}", place=f"{place}.partition")
        if self.of == "nodes":
            if self.names:
                raise InputError(f"must be empty for nodes, got {shown(self.names)}", place=f"{place}.names")
            return
        known = parts(self)
        for name in self.names:
            if name not in known:
                raise InputError(unknown(_ONE[self.of], name, known).message, place=f"{place}.names")
        if not known:
            raise InputError(f"must be a kind of parts that are there, got {self.of!r}", place=f"{place}.of")


_ONE = {"switches": "switch", "links": "link", "sites": "site"}


def _drawn(rng: np.random.Generator, mean: float, distribution: str, shape: float) -> float:
    if distribution == "weibull":
        return float(rng.weibull(shape) * mean / gamma(1 + 1 / shape))
    return mean if distribution == "constant" else float(rng.exponential(mean))


@attrs.frozen(kw_only=True, repr=False)
class ClusterSpec(Fields):
    """A cluster.

    Parameters
    ----------
    partitions
        its partitions; each is a place of its scheduler
    queues, consumables
        its queues; the amounts that jobs hold in addition to nodes
    storages, links
        storages and links outside its nodes, of whose bandwidth jobs hold shares (``Job(bandwidth=...)``); of a storage
        that is the lower one of its bandwidths. Bodies use the rest: ``cluster.storages``, ``cluster.network``
    outages, failures, reservations
        planned and random outages, and advance reservations
    on_failure
        whether jobs stopped by a failure are resubmitted (``"resubmit"``) or lost (``"lose"``)
    default_partition
        partition of jobs that name none; default: the first that can ever run the job
    description, source
        a description of the cluster, and the source of its figures
    supply
        how power reaches its nodes, for the figures of energy: its losses, what is always drawn besides, and its PUE,
        a number. Functions are given to the figures

    >>> ClusterSpec.simple(16).processors
    16
    """

    name: str = "cluster"
    partitions: tuple[PartitionSpec, ...] = attrs.field(converter=_tuple)
    queues: tuple[QueueSpec, ...] = attrs.field(default=(), converter=_tuple)
    consumables: tuple[ConsumableSpec, ...] = attrs.field(default=(), converter=_tuple)
    outages: tuple[OutageSpec, ...] = attrs.field(default=(), converter=_tuple)
    failures: tuple[FailureModel, ...] = attrs.field(default=(), converter=_tuple)
    reservations: tuple[ReservationSpec, ...] = attrs.field(default=(), converter=_tuple)
    on_failure: Literal["resubmit", "lose"] = attrs.field(default="resubmit", validator=_one_of("resubmit", "lose"))
    default_partition: str | None = None
    description: str = ""
    source: str = ""
    storages: tuple[StorageSpec, ...] = attrs.field(default=(), converter=_tuple)
    links: tuple[LinkSpec, ...] = attrs.field(default=(), converter=_tuple)
    supply: PowerSupply | None = None

    def __attrs_post_init__(self) -> None:
        if self.supply is not None and (callable(self.supply.pue) or self.supply.temperature is not None):
            message = "must be a number, without temperature: functions are given to the figures"
            raise InputError(message, place="supply.pue")
        if not self.partitions:
            raise InputError("must not be empty", place="partitions")
        for i, each in enumerate(self.partitions):
            if not isinstance(each, PartitionSpec):
                raise InputError(f"must be a PartitionSpec, got {each!r}", place=f"partitions[{i}]")
        for group in ("partitions", "queues", "consumables", "reservations"):
            seen: dict[str, int] = {}
            for i, each in enumerate(getattr(self, group)):
                if each.name in seen:
                    raise InputError(f"duplicate name {each.name!r}", place=f"{group}[{i}].name")
                seen[each.name] = i
        for i, partition in enumerate(self.partitions):
            if partition.placement == "exclusive-by-switch":
                wrong = "with one_host" if partition.one_host else "if no node has a switch"
                if partition.one_host or not any(kind.has_switch for kind in partition.nodes):
                    message = f"must be another one {wrong}, got {partition.placement!r}"
                    raise InputError(message, place=f"partitions[{i}].placement")
        self._check_amounts()
        partitions = [partition.name for partition in self.partitions]
        if self.default_partition is not None and self.default_partition not in partitions:
            message = unknown("partition", self.default_partition, partitions).message
            raise InputError(message, place="default_partition")
        for group in ("queues", "outages", "failures", "reservations"):
            for i, each in enumerate(getattr(self, group)):
                if each.partition is not None and each.partition not in partitions:
                    message = unknown("partition", each.partition, partitions).message
                    raise InputError(message, place=f"{group}[{i}].partition")
        for i, model in enumerate(self.failures):
            model.check(("nodes", "switches", "links"), self.failing, f"failures[{i}]")
        self._check_queues()
        for i, reservation in enumerate(self.reservations):
            if reservation.name in partitions:
                raise InputError(
                    f"must differ from the names of the partitions, got {reservation.name!r}",
                    place=f"reservations[{i}].name",
                )
        for group in ("outages", "reservations"):
            for i, part in enumerate(getattr(self, group)):
                self._check_part(part, f"{group}[{i}]")
        for partition in self.partitions if self.reservations else ():
            reservations = enumerate(self.reservations)
            here = [(i, each) for i, each in reservations if self.partition(each.partition) is partition]
            check_overlaps(partition, here, bool(partition.nodes))

    def _check_amounts(self) -> None:
        known = {each.name for each in self.consumables}
        storages, links = [each.name for each in self.storages], [each.name for each in self.links]
        for group, names in (("storages", storages), ("links", links)):
            for i, name in enumerate(names):
                if not name or name in known:
                    told = f"duplicate name {name!r}" if name else "must not be empty"
                    raise InputError(told, place=f"{group}[{i}].name")
                known.add(name)
        for i, link in enumerate(self.links):
            if link.sharing != "shared":
                message = f"must be 'shared', so that jobs can hold shares of it, got {link.sharing!r}"
                raise InputError(message, place=f"links[{i}].sharing")

    @property
    def amounts(self) -> tuple[str, ...]:
        """The names of all amounts that jobs can hold: of consumables, storages and links."""
        names = [*(each.name for each in self.consumables), *(each.name for each in self.storages)]
        return (*names, *(each.name for each in self.links))

    def _check_queues(self) -> None:
        queues = {queue.name: queue for queue in self.queues}
        for i, queue in enumerate(self.queues):
            for other in queue.preempts:
                place = f"queues[{i}].preempts"
                if other not in queues:
                    raise InputError(unknown("queue", other, queues).message, place=place)
                if queues[other].preemptible is None:
                    raise InputError(f"must be a preemptible queue, got {other!r}", place=place)
                if other == queue.name or queue.name in queues[other].preempts:
                    raise InputError(f"must be a queue that does not preempt {queue.name}, got {other!r}", place=place)
        for i, reservation in enumerate(self.reservations):
            for name in reservation.queues:
                if name not in queues:
                    raise InputError(unknown("queue", name, queues).message, place=f"reservations[{i}].queues")

    def _check_part(self, part: OutageSpec | ReservationSpec, place: str) -> None:
        partition = self.partition(part.partition)
        for node in part.nodes if partition.nodes else ():
            if not partition.has_node(node):
                count = sum(kind.count for kind in partition.nodes)
                raise InputError(
                    f"must be nodes of {partition.name} (0 to {count - 1}, or names such as "
                    f"{partition.node_names[0]}), got {node!r}",
                    place=f"{place}.nodes",
                )
        if part.processors is not None and partition.nodes:
            raise InputError(
                f"must be nodes instead: the nodes of {partition.name} are identified", place=f"{place}.processors"
            )
        if part.nodes and not partition.nodes:
            raise InputError(
                f"must be processors instead: {partition.name} has no identified nodes", place=f"{place}.nodes"
            )
        if part.processors is not None and part.processors > partition.capacity:
            raise InputError(
                f"must be <= {partition.capacity}, the processors of {partition.name}, got {part.processors}",
                place=f"{place}.processors",
            )

    @classmethod
    def simple(cls, processors: int, *, name: str = "cluster") -> ClusterSpec:
        """Return a cluster of one partition of interchangeable processors.

        Raises
        ------
        InputError
            ``processors`` is not a whole number > 0

        >>> ClusterSpec.simple(16).processors
        16
        """
        given: Any = processors
        if isinstance(given, bool) or not isinstance(given, Integral):
            accepted = "a ClusterSpec or a number of processors (load_platform reads names and files)"
            raise InputError(f"must be {accepted}, got {processors!r}")
        return cls(name=name, partitions=(PartitionSpec(processors=processors),))

    @property
    def processors(self) -> int:
        """Total number of processors."""
        return sum(partition.capacity for partition in self.partitions)

    def models(self) -> Iterator[tuple[str, str]]:
        """Yield the place and the name of each placement, and of each model of a storage or a link."""
        for i, partition in enumerate(self.partitions):
            if partition.placement is not None:
                yield f"partitions[{i}].placement", partition.placement
        for i, storage in enumerate(self.storages):
            yield f"storages[{i}].model", storage.model
        for i, link in enumerate(self.links):
            if link.model is not None:
                yield f"links[{i}].model", link.model

    def partition(self, name: str | None) -> PartitionSpec:
        """Return the partition with this name; ``None``: the first."""
        if name is None:
            return self.partitions[0]
        return next(partition for partition in self.partitions if partition.name == name)

    def failing(self, model: FailureModel) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Return what each switch or link of a failure model takes down: (partition, node number), or (link, 0).

        >>> nodes = NodeSpec(count=3, nodes_per_switch=2)
        >>> model = FailureModel(of="switches", mean_time_between_failures="30d")
        >>> ClusterSpec(partitions=[PartitionSpec(nodes=[nodes])]).failing(model)
        {'switch0': [('batch', 0), ('batch', 1)], 'switch1': [('batch', 2)]}
        """
        if model.of == "links":
            return {name: [(link, 0) for link in links] for name, links in cables(self.links).items()}
        found: dict[str, list[tuple[str, int]]] = {}
        for partition in self.partitions:
            if model.partition in (None, partition.name):
                for node, switch in enumerate(partition.node_switches):
                    if switch is not None:
                        found.setdefault(switch, []).append((partition.name, node))
                for switch, nodes in partition.nodes_below.items():
                    held = found.setdefault(switch, [])
                    held += [(partition.name, node) for node in nodes if (partition.name, node) not in held]
        return found

    @property
    def nodes(self) -> int:
        """Total number of nodes; one of interchangeable processors is a node by itself."""
        return sum(sum(kind.count for kind in part.nodes) or part.capacity for part in self.partitions)

    def with_nodes(self, nodes: int) -> ClusterSpec:
        """Return the cluster with another number of nodes, of which it has one kind.

        Raises
        ------
        InputError
            the cluster has several kinds of nodes, or partitions

        >>> ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=8)])]).with_nodes(5).processors
        40
        """
        first = self.partitions[0]
        if len(self.partitions) > 1 or len(first.nodes) > 1:
            raise InputError(f"must name what changes: one of {', '.join(self.groups)}", place="nodes")
        if not first.nodes:
            return self.with_processors(nodes)
        return attrs.evolve(self, partitions=(attrs.evolve(first, nodes=(first.nodes[0].resized(nodes),)),))

    @property
    def groups(self) -> list[str]:
        """The paths to what can have another number: the kinds of nodes of each partition, or its processors.

        >>> kinds = [NodeSpec(name="thin"), NodeSpec(name="fat"), NodeSpec(name="fat")]
        >>> ClusterSpec(partitions=[PartitionSpec(name="a", nodes=kinds), PartitionSpec(name="b", processors=4)]).groups
        ['partitions.a.nodes.thin', 'partitions.a.nodes[1]', 'partitions.a.nodes[2]', 'partitions.b.processors']
        """
        return [f"partitions.{part.name}.{group}" for part in self.partitions for group in part.groups]

    def with_processors(self, processors: int) -> ClusterSpec:
        """Return the cluster with another number of processors.

        Raises
        ------
        InputError
            the cluster has several partitions or identified nodes
        """
        if len(self.partitions) > 1 or self.partitions[0].nodes:
            raise InputError(
                f"cannot change the processors of {self.name}: it has several partitions or nodes; "
                f"there are {', '.join(self.groups)}"
            )
        return attrs.evolve(self, partitions=(attrs.evolve(self.partitions[0], processors=processors),))
