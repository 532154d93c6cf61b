"""Descriptions of clusters: frozen values that say what there is, from which live parts are built.

Times are seconds, sizes bytes, powers watts.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gamma, inf
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import attrs

from simmodel.errors import InputError

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
]

_Number = TypeVar("_Number", bound=float | None)
_Text = TypeVar("_Text", bound=str | None)

Placement = Literal["first-fit", "best-fit", "packed"]


def _positive(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is not None and not value > 0:
        raise InputError(f"{_kind(instance)}: {attribute.name} > 0 expected, found {value!r}", place=attribute.name)


def _not_negative(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Number], value: _Number) -> None:
    if value is not None and not value >= 0:
        raise InputError(f"{_kind(instance)}: {attribute.name} >= 0 expected, found {value!r}", place=attribute.name)


def _one_of(*allowed: str | None) -> Check:
    def check(instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Text], value: _Text) -> None:
        if value not in allowed:
            names = ", ".join(str(each) for each in allowed if each is not None)
            raise InputError(
                f"{_kind(instance)}: {attribute.name} one of {names} expected, found {value!r}", place=attribute.name
            )

    return check


class Check(Protocol):
    """A validator of a field that holds a text."""

    def __call__(self, instance: attrs.AttrsInstance, attribute: attrs.Attribute[_Text], value: _Text) -> None:
        """Raise an error unless the value is one of those allowed."""
        ...


def _kind(instance: attrs.AttrsInstance) -> str:
    name = getattr(instance, "name", None)
    kind = type(instance).__name__.removesuffix("Spec").lower()
    return f"{kind} {name}" if name else kind


def _tuple(values: Iterable[Any]) -> tuple[Any, ...]:  # mypy knows no generic converters
    return tuple(values)


@attrs.frozen(kw_only=True)
class NodeSpec:
    """Nodes of one kind.

    Parameters
    ----------
    name, count
        what they are called, with a number behind; how many
    cores, gpus, memory
        of each; memory in bytes, 0 where it is not modelled
    idle_power, load_power
        W of each, with nothing running and with all cores busy
    """

    name: str = "node"
    count: int = attrs.field(default=1, validator=_positive)
    cores: int = attrs.field(default=1, validator=_positive)
    gpus: int = attrs.field(default=0, validator=_not_negative)
    memory: float = attrs.field(default=0.0, validator=_not_negative)
    idle_power: float = attrs.field(default=0.0, validator=_not_negative)
    load_power: float = attrs.field(default=0.0, validator=_not_negative)


@attrs.frozen(kw_only=True)
class PartitionSpec:
    """A part of a cluster: a place of its scheduler.

    Parameters
    ----------
    processors, nodes
        exactly one of them: a number of processors of which only the count matters, or identified nodes
    placement
        on identified nodes: ``"first-fit"``, ``"best-fit"`` or ``"packed"``
    exclusive
        whether a job takes whole nodes
    max_processors, max_requested
        the largest (processors) and longest (s) job that may ask for it
    priority
        of its jobs, added to their own
    idle_power, load_power
        W a processor, where nodes are not identified

    >>> PartitionSpec(nodes=[NodeSpec(count=2, cores=16)]).capacity
    32
    """

    name: str = "batch"
    processors: int | None = attrs.field(default=None, validator=_positive)
    nodes: tuple[NodeSpec, ...] = attrs.field(default=(), converter=_tuple)
    placement: Placement = attrs.field(default="first-fit", validator=_one_of("first-fit", "best-fit", "packed"))
    exclusive: bool = False
    max_processors: int | None = attrs.field(default=None, validator=_positive)
    max_requested: float | None = attrs.field(default=None, validator=_positive)
    priority: float = 0.0
    idle_power: float = attrs.field(default=0.0, validator=_not_negative)
    load_power: float = attrs.field(default=0.0, validator=_not_negative)

    def __attrs_post_init__(self) -> None:
        if (self.processors is None) == (not self.nodes):
            found = "neither" if self.processors is None else "both"
            raise InputError(f"{_kind(self)}: processors or nodes expected, found {found}", place="processors")

    @property
    def capacity(self) -> int:
        """Processors in all."""
        return self.processors if self.processors is not None else sum(node.count * node.cores for node in self.nodes)

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of its nodes: that of their kind with a number behind, from 0 on for each name.

        >>> PartitionSpec(nodes=[NodeSpec(count=2), NodeSpec(name="gpu"), NodeSpec()]).node_names
        ('node0', 'node1', 'gpu0', 'node2')
        """
        names: list[str] = []
        counts: dict[str, int] = {}
        for kind in self.nodes:
            first = counts.get(kind.name, 0)
            names += [f"{kind.name}{number}" for number in range(first, first + kind.count)]
            counts[kind.name] = first + kind.count
        return tuple(names)

    def has_node(self, node: int | str) -> bool:
        """Whether it has a node of this number (from 0), or of this name: that of a kind with a number behind, from 0.

        >>> part = PartitionSpec(nodes=[NodeSpec(count=2), NodeSpec(name="gpu"), NodeSpec()])
        >>> [part.has_node(node) for node in (3, 4, "node2", "node3", "gpu0", "gpu")]
        [True, False, True, False, True, False]
        """
        if not isinstance(node, str):
            return 0 <= node < sum(kind.count for kind in self.nodes)
        counts: dict[str, int] = {}
        for kind in self.nodes:
            counts[kind.name] = counts.get(kind.name, 0) + kind.count
        numbers = [(node[len(name) :], count) for name, count in counts.items() if node.startswith(name)]
        return any(text.isdecimal() and str(int(text)) == text and int(text) < count for text, count in numbers)


@attrs.frozen(kw_only=True)
class QueueSpec:
    """A queue that jobs are submitted to.

    Parameters
    ----------
    partition
        where its jobs run, unless they say otherwise
    priority
        added to that of its jobs
    max_processors, max_requested
        the largest (processors) and longest (s) job it takes
    max_running, max_running_per_user, max_waiting_per_user
        jobs at once
    preemptible
        whether, and how, its jobs may be preempted: ``"requeue"`` or ``"suspend"``
    preempts
        the queues whose jobs may be preempted for its own
    """

    name: str
    partition: str | None = None
    priority: float = 0.0
    max_processors: int | None = attrs.field(default=None, validator=_positive)
    max_requested: float | None = attrs.field(default=None, validator=_positive)
    max_running: int | None = attrs.field(default=None, validator=_positive)
    max_running_per_user: int | None = attrs.field(default=None, validator=_positive)
    max_waiting_per_user: int | None = attrs.field(default=None, validator=_positive)
    preemptible: Literal["requeue", "suspend"] | None = attrs.field(
        default=None, validator=_one_of(None, "requeue", "suspend")
    )
    preempts: tuple[str, ...] = attrs.field(default=(), converter=_tuple)


@attrs.frozen(kw_only=True)
class ConsumableSpec:
    """A named amount that jobs take while they run: licences, bytes of burst buffer, bytes/s of I/O bandwidth."""

    name: str
    amount: float = attrs.field(validator=_positive)


@attrs.frozen(kw_only=True)
class _Part:
    """A part of a partition: so many processors, or named nodes."""

    partition: str | None = None
    processors: int | None = attrs.field(default=None, validator=_positive)
    nodes: tuple[int | str, ...] = attrs.field(default=(), converter=_tuple)

    def __attrs_post_init__(self) -> None:
        if (self.processors is None) == (not self.nodes):
            found = "neither" if self.processors is None else "both"
            raise InputError(f"{_kind(self)}: processors or nodes expected, found {found}", place="processors")


@attrs.frozen(kw_only=True)
class OutageSpec(_Part):
    """Part of a partition is away for a while.

    Parameters
    ----------
    at, until
        s; for ever where ``until`` is infinite
    partition
        default: the first
    processors, nodes
        exactly one of them: how many, or which nodes (numbers from 0, or names such as ``"node3"``)
    kind
        ``"failure"`` stops the jobs there; ``"maintenance"`` is announced, so that no job starts that would run into
        it; ``"drain"`` lets running jobs end
    """

    at: float = attrs.field(validator=_not_negative)
    until: float = inf
    kind: Literal["failure", "maintenance", "drain"] = attrs.field(
        default="failure", validator=_one_of("failure", "maintenance", "drain")
    )
    reason: str = ""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.until > self.at:
            raise InputError(f"outage: until > at ({self.at:g} s) expected, found {self.until:g}", place="until")


@attrs.frozen(kw_only=True)
class ReservationSpec(_Part):
    """An advance reservation: part of a partition that is a place of its own from ``start`` to ``end`` (s).

    Jobs that name it as their partition run there; where ``users`` or ``queues`` are given only theirs may. No other
    job starts that would run into it. Jobs that still run there at its end are stopped.
    """

    name: str
    start: float = attrs.field(validator=_not_negative)
    end: float
    users: tuple[int | str, ...] = attrs.field(default=(), converter=_tuple)
    queues: tuple[str, ...] = attrs.field(default=(), converter=_tuple)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.end > self.start:
            raise InputError(
                f"reservation {self.name}: end > start ({self.start:g} s) expected, found {self.end:g}", place="end"
            )


@attrs.frozen(kw_only=True)
class FailureModel:
    """Failures by chance: each node (or processor, where nodes are not identified) fails and is repaired by itself.

    Parameters
    ----------
    partition
        default: the first
    mean_time_between_failures, mean_time_to_repair
        s, of one node
    distribution, shape
        of the time to failure: ``"exponential"``, or ``"weibull"`` with this shape; repairs are exponential

    >>> import numpy as np
    >>> model = FailureModel(mean_time_between_failures=100, distribution="weibull", shape=0.7)
    >>> rng = np.random.default_rng(1)
    >>> round(float(np.mean([model.draw_time_to_failure(rng) for _ in range(20_000)])))
    100
    """

    partition: str | None = None
    mean_time_between_failures: float = attrs.field(validator=_positive)
    mean_time_to_repair: float = attrs.field(default=3600.0, validator=_positive)
    distribution: Literal["exponential", "weibull"] = attrs.field(
        default="exponential", validator=_one_of("exponential", "weibull")
    )
    shape: float = attrs.field(default=1.0, validator=_positive)

    def draw_time_to_failure(self, rng: np.random.Generator) -> float:
        """Draw the seconds until the next failure."""
        mean = self.mean_time_between_failures
        if self.distribution == "weibull":
            return float(rng.weibull(self.shape) * mean / gamma(1 + 1 / self.shape))
        return float(rng.exponential(mean))

    def draw_time_to_repair(self, rng: np.random.Generator) -> float:
        """Draw the seconds until it is repaired."""
        return float(rng.exponential(self.mean_time_to_repair))


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """A cluster.

    Parameters
    ----------
    partitions
        its parts; each is a place of its scheduler
    queues, consumables
        what jobs are submitted to; what they take besides nodes
    outages, failures, reservations
        what is away when, by given times or by chance, and what is kept for whom
    on_failure
        whether the jobs hit by a failure are submitted again (``"resubmit"``) or lost (``"lose"``)
    default_partition
        of jobs that name none; default: the first that can ever run the job
    description, source
        what it is, and where its figures come from

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

    def __attrs_post_init__(self) -> None:
        if not self.partitions:
            raise InputError(f"cluster {self.name}: at least one partition expected", place="partitions")
        for group in ("partitions", "queues", "consumables", "reservations"):
            seen: dict[str, int] = {}
            for i, each in enumerate(getattr(self, group)):
                if each.name in seen:
                    raise InputError(
                        f"names that differ expected, found {each.name!r} twice", place=f"{group}[{i}].name"
                    )
                seen[each.name] = i
        partitions = {partition.name for partition in self.partitions}
        if self.default_partition is not None and self.default_partition not in partitions:
            raise InputError(
                f"a partition expected ({', '.join(sorted(partitions))}), found {self.default_partition!r}",
                place="default_partition",
            )
        for group in ("queues", "outages", "failures", "reservations"):
            for i, each in enumerate(getattr(self, group)):
                if each.partition is not None and each.partition not in partitions:
                    raise InputError(
                        f"a partition expected ({', '.join(sorted(partitions))}), found {each.partition!r}",
                        place=f"{group}[{i}].partition",
                    )
        self._check_queues()
        for i, reservation in enumerate(self.reservations):
            if reservation.name in partitions:
                raise InputError(
                    f"a name that no partition has expected, found {reservation.name!r}",
                    place=f"reservations[{i}].name",
                )
        for group in ("outages", "reservations"):
            for i, part in enumerate(getattr(self, group)):
                self._check_part(part, f"{group}[{i}]")

    def _check_queues(self) -> None:
        queues = {queue.name: queue for queue in self.queues}
        known = ", ".join(queues)
        for i, queue in enumerate(self.queues):
            for other in queue.preempts:
                place = f"queues[{i}].preempts"
                if other not in queues:
                    raise InputError(f"a queue expected ({known}), found {other!r}", place=place)
                if queues[other].preemptible is None:
                    raise InputError(f"a queue that is preemptible expected, found {other!r}", place=place)
                if other == queue.name or queue.name in queues[other].preempts:
                    raise InputError(
                        f"a queue that does not preempt {queue.name} expected, found {other!r}", place=place
                    )
        for i, reservation in enumerate(self.reservations):
            for name in reservation.queues:
                if name not in queues:
                    found = f"a queue expected ({known or 'there are none'}), found {name!r}"
                    raise InputError(found, place=f"reservations[{i}].queues")

    def _check_part(self, part: OutageSpec | ReservationSpec, place: str) -> None:
        partition = self.partition(part.partition)
        for node in part.nodes if partition.nodes else ():
            if not partition.has_node(node):
                count = sum(kind.count for kind in partition.nodes)
                raise InputError(
                    f"a node of {partition.name} expected (0 to {count - 1}, or a name such as "
                    f"{partition.nodes[0].name}0), found {node!r}",
                    place=f"{place}.nodes",
                )
        if part.processors is not None and partition.nodes:
            raise InputError(
                f"nodes of {partition.name} expected: its nodes are identified", place=f"{place}.processors"
            )
        if part.nodes and not partition.nodes:
            raise InputError(f"processors of {partition.name} expected: it has no nodes", place=f"{place}.nodes")
        if part.processors is not None and part.processors > partition.capacity:
            raise InputError(
                f"at most {partition.capacity} processors of {partition.name} expected, found {part.processors}",
                place=f"{place}.processors",
            )

    @classmethod
    def simple(cls, processors: int, *, name: str = "cluster") -> ClusterSpec:
        """Return a cluster of one partition of which only the number of processors counts.

        Raises ``InputError`` where that is no whole number > 0.

        >>> ClusterSpec.simple(16).processors
        16
        """
        given: Any = processors
        if isinstance(given, bool) or not isinstance(given, Integral):
            raise InputError(
                "a cluster (load_platform reads names and files) or a number of processors expected, "
                f"found {processors!r}"
            )
        return cls(name=name, partitions=(PartitionSpec(processors=processors),))

    @property
    def processors(self) -> int:
        """Processors in all."""
        return sum(partition.capacity for partition in self.partitions)

    def partition(self, name: str | None) -> PartitionSpec:
        """Return the partition of this name; ``None`` is the first."""
        if name is None:
            return self.partitions[0]
        return next(partition for partition in self.partitions if partition.name == name)

    def with_processors(self, processors: int) -> ClusterSpec:
        """Return the cluster with another number of processors; raises where that does not say enough of it."""
        if len(self.partitions) > 1 or self.partitions[0].nodes:
            raise InputError(f"{self.name} has partitions or nodes: another number of processors does not describe it")
        return attrs.evolve(self, partitions=(attrs.evolve(self.partitions[0], processors=processors),))
