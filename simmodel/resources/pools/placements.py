"""Placements: the choice among the nodes that a request can have.

Requests for nodes get the first ones in the order of the placement. Requests for cores anywhere get cores of nodes in
that order, or of the fewest nodes. Ties go to the node of lower number.

Sources: first fit and best fit: Johnson, "Fast algorithms for bin packing", J. Comput. Syst. Sci. 8(3), 1974; batch
systems call the packed placement "pack" or "least nodes", and the opposite "spread" or "least loaded"; the fewest leaf
switches by best fit are those of Slurm's plugin topology/tree, whole switches its ``ExclusiveTopo``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import attrs
import numpy as np

from simmodel.foundation.entries import call_with, load, split_call
from simmodel.foundation.errors import InputError
from simmodel.platform.models import PLACEMENTS
from simmodel.resources.models import Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import PartitionSpec
    from simmodel.platform.devices import DeviceSpec
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.work.job import Job
    from simmodel.work.node_chunks import Chunk

    Numbers = NDArray[np.intp]  # of nodes or switches
    Amounts = NDArray[Any]
    Thousandths = NDArray[np.int64]  # shape (devices, nodes)
    Nodes = Callable[["Table", Numbers, int], Numbers]
    Cores = Callable[["Table", Numbers, Amounts, int], tuple[Numbers, Amounts]]
    Enough = Callable[["Table", Numbers, Amounts, int], bool]

__all__ = [
    "Ask",
    "DeviceView",
    "NodeChoice",
    "Placement",
    "Request",
    "Table",
    "described_placements",
    "fewest",
    "fewest_switches",
    "new_table",
    "numbered",
    "placement_named",
    "register_placement",
    "until_enough",
    "unused_switches",
]


_NONE: Mapping[str, str] = MappingProxyType({})


def fewest_switches(there: Amounts, wanted: float, better: Amounts | None = None) -> Numbers:
    """Return the fewest switches on which there is enough, in order of use.

    Those with most come first, which are used entirely. The last one is the one with the least that is enough for the
    rest. Ties go to the lower number.

    Parameters
    ----------
    there
        how many nodes, or cores, can be used on each switch; in sum at least ``wanted``
    better
        how many of them are better to use: the last switch is rather the one on which the fewest others are needed

    Source: the best fit over leaf switches of Slurm's plugin topology/tree.

    >>> fewest_switches(np.array([2.0, 5, 3, 4]), 3), fewest_switches(np.array([2.0, 5, 3, 4]), 7)
    (array([2]), array([1, 0]))
    """
    order = np.argsort(-there, kind="stable")
    total = np.cumsum(there[order])
    last = int(np.searchsorted(total, wanted))
    rest = wanted - (total[last - 1] if last else 0.0)
    others = np.sort(order[last:])
    others = others[there[others] >= rest]
    needed = np.zeros(len(others)) if better is None else np.maximum(rest - better[others], 0.0)
    return np.append(order[:last], others[np.lexsort((there[others], needed))[:1]])


def unused_switches(switches: Numbers, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask of nodes whose switch has no node that is used.

    >>> unused_switches(np.array([0, 0, 1]), np.array([True, False, False])).tolist()
    [False, False, True]
    """
    busy = np.zeros(int(switches.max()) + 1, dtype=bool)
    busy[switches[used]] = True
    return ~busy[switches]


@attrs.frozen(cache_hash=True)
class Request:
    """A job's request for nodes.

    Parameters
    ----------
    processors
        cores in total; without ``nodes`` they may be on any nodes, chosen by the placement
    nodes
        number of different nodes, or ``None``
    cores_per_node
        cores of each node, if ``nodes`` is set
    gpus_per_node, memory_per_node
        GPUs and bytes of memory of each node that it gets
    exclusive
        whether it gets whole nodes; without ``nodes``, the fewest with enough cores
    whole_switches
        whether it gets all nodes of switches on which nobody else has one, the fewest switches with enough nodes, or
        cores; only if it is exclusive
    consumables
        amounts of consumables, by name
    loose
        whether it may get other numbers of cores, as its options say to the scheduler of its cluster
    chunks
        what it requests of each node if that is not the same; then the amounts of each node are the most of any
    gpu, gpu_memory
        the types or the slice of the GPUs that it may have, and the bytes of memory of one that it gets, as jobs say

    >>> print(Request(16, nodes=2, cores_per_node=8, gpus_per_node=1))
    2 nodes with 8 cores and 1 GPU each
    """

    processors: int
    nodes: int | None = None
    cores_per_node: int = 1
    gpus_per_node: float = 0
    memory_per_node: float = 0.0
    exclusive: bool = False
    whole_switches: bool = False
    consumables: Mapping[str, float] = attrs.field(factory=dict, eq=False)
    loose: bool = False
    chunks: tuple[Chunk, ...] = ()
    gpu: str = ""
    gpu_memory: float = 0.0
    anywhere: bool = attrs.field(init=False, eq=False, repr=False)
    """Whether it is for a number of cores and nothing else."""

    @anywhere.default
    def _anywhere_default(self) -> bool:
        return self.nodes is None and self.cores_alone

    @property
    def cores_alone(self) -> bool:
        """Whether it is for cores, without GPUs or memory, that other jobs may share a node with."""
        return not (self.gpus_per_node or self.memory_per_node or self.exclusive)

    @classmethod
    def of(cls, job: Job, *, exclusive: bool = False, whole_switches: bool = False) -> Request:
        """Return the request of a job, with at least one core per node and memory rounded up to whole bytes.

        >>> from simmodel import Job
        >>> Request.of(Job(nodes=2, cores_per_node=8, run=1)).processors
        16
        """
        return cls(
            job.processors,
            job.nodes,
            max(1, job.cores_per_node),
            job.gpus_per_node,
            float(ceil(job.memory_per_node)),
            exclusive or whole_switches or job.exclusive,
            whole_switches,
            job.amounts,
            bool(job.options),
            job.chunks or (),
            job.gpu,
            job.gpu_memory,
        )

    @property
    def of_devices(self) -> bool:
        """Whether it is for certain devices or for a part of one, so that a number of GPUs does not tell it."""
        return bool(0 < self.gpus_per_node < 1 or self.gpu or self.gpu_memory)

    @property
    def shaped(self) -> bool:
        """Whether it is for a number of nodes, or for GPUs or memory of each."""
        return self.nodes is not None or bool(self.gpus_per_node or self.memory_per_node)

    @property
    def by_nodes(self) -> bool:
        """Whether it is for a number of nodes, with the same of each."""
        return self.nodes is not None and not self.chunks and not self.whole_switches

    def alike(self) -> list[Request]:
        """Return the requests for nodes of which it consists, each for nodes with the same, the largest first."""
        return [
            Request(count * each.cores, count, each.cores, each.gpus, each.memory, self.exclusive)
            for each, count in Counter(self.chunks).items()
        ]

    def __str__(self) -> str:
        if self.chunks:
            return " + ".join(map(str, self.alike()))
        parts = [] if self.nodes is None else [numbered(self.cores_per_node, "core")]
        if self.gpus_per_node:
            parts.append(self._gpus())
        if self.memory_per_node:
            parts.append(numbered(int(self.memory_per_node), "byte"))
        each = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
        if self.nodes is not None:
            return f"{numbered(self.nodes, 'node')} with {each}{' each' if self.nodes > 1 else ''}"
        return numbered(self.processors, "processor") + (f" on nodes with {each} each" if parts else "")

    def _gpus(self) -> str:
        """Return what it is for of the GPUs of each node, in words."""
        kind, _, part = self.gpu.partition(":")
        of = f" of type {kind.replace('|', ' or ')}" if kind else ""
        if self.gpu_memory:
            return f"{numbered(int(self.gpu_memory), 'byte')} of a GPU{of}"
        if part:
            return f"{numbered(int(self.gpus_per_node), 'slice')} {part}{of}"
        if 0 < self.gpus_per_node < 1:
            return f"{self.gpus_per_node:g} of a GPU{of}"
        return numbered(int(self.gpus_per_node), "GPU") + of


def numbered(number: int, word: str) -> str:
    """Return a number and a word, in the plural unless it is one."""
    return f"{number} {word}{'' if number == 1 else 's'}"


class Ask(NamedTuple):
    """What a request is for of the devices of each node.

    ``parts``: how many; ``need``: the thousandths of each device that a part beginning at it takes, far too many
    where none may begin; ``length``: how many devices follow each other in a part, one number if that is the same
    everywhere; ``whole``: whether parts are whole GPUs, which are taken by number.
    """

    parts: int
    need: Thousandths
    length: Thousandths | int
    whole: bool


class DeviceView(Protocol):
    """The devices of each node as placements see them: GPUs, or the places of one that can be cut into slices.

    ``devices``: the free thousandths of each, of shape (devices, nodes); ``all_devices``: the same if nothing is taken,
    0 where a node has fewer; ``kind_of``: the number of its type in ``kinds``, -1 where there is none; ``users``: how
    many jobs have devices of each node, in row 0 shares, in row n whole ones, n of them or, in the last, more.
    """

    devices: Thousandths
    all_devices: Thousandths
    kind_of: Thousandths
    users: Thousandths
    kinds: dict[str, DeviceSpec | None]

    def ask(self, request: Request) -> Ask | None:
        """Return what a request is for of the devices of each node; ``None``: nothing."""

    def open(self, ask: Ask, nodes: Numbers) -> NDArray[np.bool_]:
        """Return the mask of the devices of some nodes at which a part can begin now."""

    def scored(self, request: Request, nodes: Numbers, score: Callable[[Numbers], Amounts]) -> Amounts:
        """Return a score of each of some nodes; asked for are those that changed since the same request was scored."""

    def why_waits(self, request: Request) -> str:
        """Return that no device has what is free in sum, or no node as many free ones; an empty text if one has."""


class Table(NamedTuple):
    """The nodes as placements see them, and the request for which they choose.

    ``free`` and ``capacity``: amounts of cores, GPUs and bytes of memory, of shape (3, nodes); ``switches``: the number
    of the switch of each node, ``None`` if none has one; ``network``: their places in the network of the partition, or
    ``None``; ``seed``: of the run, for random placements, which choose the same again for the same table; ``request``:
    what the job asks for, not what it will do; ``devices``: the table of the devices of each node if they are told
    apart (:class:`DeviceView`), else ``None``.
    """

    free: Amounts
    capacity: Amounts
    switches: Numbers | None
    network: NodeNetwork | None
    seed: int
    request: Request
    devices: DeviceView | None


new_table = partial(tuple.__new__, Table)  # makes no call of Python


class Placement(NamedTuple):
    """A choice among nodes.

    ``nodes(table, candidates, count)`` returns the candidates in order of preference, of which ``count`` are taken;
    ``cores(table, candidates, free, processors)`` the nodes for cores anywhere, and the cores of each; ``plain``:
    whether idle nodes that are alike and without switches are taken by number; ``least``: whether cores anywhere are on
    the fewest nodes; ``whole_switches``: whether a job gets whole switches, the fewest; ``enough(table, candidates,
    amounts, needed)``: whether it can choose among them, ``None``: if there are enough in sum; ``refuses(partition)``:
    why it does not support a partition, or ``None``; ``choice``: the class, which may have parameters;
    ``devices(table, node, numbers)``: the devices of a node in order of preference, ``None``: the fullest first.
    """

    nodes: Nodes
    cores: Cores
    description: str = ""
    plain: bool = False
    least: bool = False
    whole_switches: bool = False
    enough: Enough | None = None
    refuses: Callable[[PartitionSpec], str | None] | None = None
    choice: type[NodeChoice] | None = None
    devices: Callable[[Table, int, list[int]], list[int]] | None = None

    @property
    def strict(self) -> bool:
        """Whether a job may fail to start although enough nodes, or cores, are free."""
        return self.whole_switches or self.enough is not None


class NodeChoice(Model):
    """The base class of placements with more to say than an order: one may keep a job waiting for better nodes.

    ``tells_devices``: whether it needs the devices of nodes told apart, also if no job shares one.
    """

    tells_devices: ClassVar[bool] = False

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the candidates (node numbers, ascending) in order of preference; the first ``count`` are taken.

        ``table`` is as for :func:`register_placement`.
        """
        raise NotImplementedError

    def cores(self, table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        """Return nodes for cores anywhere, and the cores of each; default: in order of preference until enough.

        ``free[0]`` has the free cores of the candidates.
        """
        order = np.searchsorted(candidates, self.nodes(table, candidates, len(candidates)))
        return until_enough(candidates[order], free[0][order], processors)

    def devices(self, table: Table, node: int, numbers: list[int]) -> list[int]:
        """Return devices of a node on which a share fits, in order of preference; default: the fullest first.

        ``numbers``: those devices, the fullest first; of a slice, those at which it may begin.
        """
        return numbers

    def enough(self, table: Table, candidates: Numbers, amounts: Amounts, needed: int) -> bool:
        """Return whether a job can start on some of the candidates, on which there is enough in sum; default: yes.

        It must not turn from true to false when there are more candidates, or more free cores on them.

        Parameters
        ----------
        table, candidates
            as for :meth:`nodes`
        amounts
            1 for each candidate if ``needed`` is a number of nodes; its free cores if it is a number of cores
        """
        return True


def register_placement(name: str, nodes: Nodes | type[NodeChoice], description: str = "") -> None:
    """Make a placement known by a name, which ``PartitionSpec(placement=)`` and platform files accept from then on.

    An entry point in the group ``simmodel.placements`` makes such a function known in all programs.

    Parameters
    ----------
    name
        its name; replaces another placement of that name
    nodes
        ``nodes(table, candidates, count)`` returns the candidates, an array of node numbers, in order of preference;
        ``count`` of them will be taken (of requests for cores anywhere: as many as have enough cores, and ``count`` is
        the number of candidates). ``table.free`` and ``table.capacity`` hold cores, GPUs and bytes of memory by node,
        ``table.switches`` the number of the switch of each node, or ``None`` if none has one, ``table.request`` what
        the job asks for, and ``table.network`` the places of the nodes in the network of the partition, if it has one
        (:class:`~simmodel.resources.pools.node_network.NodeNetwork`). Or a class derived from :class:`NodeChoice`
    description
        one line

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> register_placement("last", lambda table, candidates, count: candidates[::-1])
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=8)], placement="last")])
    >>> simulate(spec, [Job(nodes=2, cores_per_node=4, run=10)], "fcfs").runs["nodes"]
    array([(2, 3)], dtype=object)
    >>> del PLACEMENTS["last"]
    """
    PLACEMENTS[name] = _placement(nodes, description)


def _placement(given: Any, description: str, values: Sequence[str] = (), named: Mapping[str, str] = _NONE) -> Placement:
    """Return the placement that a function or a class derived from :class:`NodeChoice` is; a class has parameters."""
    if not isinstance(given, type):
        return _of_function(given, description)
    if not issubclass(given, NodeChoice):
        raise InputError(f"must be a function or a subclass of NodeChoice, got {given!r}", place="placement")
    choice = call_with(given, values, named, "placement")
    enough = choice.enough if given.enough is not NodeChoice.enough else None
    lines = (given.__doc__ or "").splitlines()
    about = description or (lines[0] if lines else "")
    devices = choice.devices if given.devices is not NodeChoice.devices else None
    return Placement(
        choice.nodes, choice.cores, about, enough=enough, refuses=choice.refuses, choice=given, devices=devices
    )


def _of_function(nodes: Nodes, description: str) -> Placement:
    def cores(table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        order = np.searchsorted(candidates, nodes(table, candidates, len(candidates)))
        return until_enough(candidates[order], free[0][order], processors)

    return Placement(nodes, cores, description)


def placement_named(name: str) -> Placement:
    """Return the placement of a name.

    >>> placement_named("spread").description
    'the nodes with the most free cores, then GPUs'
    """
    if "(" in name:
        return _with_parameters(name)
    if name not in PLACEMENTS:
        try:
            return _named_in_full(name)
        except (ImportError, AttributeError) as error:
            message = f"must be a function or a class as module:name, got {name!r}: {error}"
            raise InputError(message, place="placement") from None
    found = PLACEMENTS[name]
    return found if isinstance(found, Placement) else _of_entry(found)


@cache
def _of_entry(found: Any) -> Placement:
    """Return the placement of the function or the class that an entry names; the entry keeps it."""
    return _placement(found, "" if isinstance(found, type) else f"from {found.__module__}:{found.__qualname__}")


@cache
def _named_in_full(name: str) -> Placement:
    return _placement(load(name), f"from {name}")


def _with_parameters(text: str) -> Placement:
    name, values, named = split_call(text, "placement")
    choice = placement_named(name).choice
    if choice is None:
        raise InputError(f"must have no parameters, got {text!r}", place="placement")
    return _placement(choice, "", values, named)


def described_placements() -> dict[str, str]:
    """Return the names and descriptions of all placements.

    >>> described_placements()["first-fit"]
    'the nodes of lowest number'
    """
    return {name: placement_named(name).description for name in PLACEMENTS}


def _by_number(_table: Table, candidates: Numbers, _count: int) -> Numbers:
    return candidates


def _fullest(table: Table, candidates: Numbers, _count: int) -> Numbers:
    cores, gpus = table.free[:2, candidates]
    return candidates[np.lexsort((gpus, cores))]


def _emptiest(table: Table, candidates: Numbers, _count: int) -> Numbers:
    cores, gpus = table.free[:2, candidates]
    return candidates[np.lexsort((-gpus, -cores))]


def _packed(table: Table, candidates: Numbers, count: int) -> Numbers:
    """Return the nodes of the fewest switches first, on each of them the partly used ones.

    The last switch is the one on which the fewest unused nodes are taken, among equals the one with the fewest nodes.
    """
    unused = table.free[0, candidates] == table.capacity[0, candidates]
    if table.switches is None:
        return candidates[np.argsort(unused, kind="stable")]
    on = table.switches[candidates]
    chosen = fewest_switches(np.bincount(on), count, np.bincount(on, ~unused))
    rank = np.full(int(on.max()) + 1, len(chosen))
    rank[chosen] = np.arange(len(chosen))
    return candidates[np.lexsort((unused, rank[on]))]


def until_enough(candidates: Numbers, cores: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    """Take nodes in order until there are enough cores."""
    total = np.cumsum(cores)
    last = int(np.searchsorted(total, processors))
    taken = cores[: last + 1].copy()
    taken[last] -= total[last] - processors
    return candidates[: last + 1], taken


def _cores_by_number(_table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    return until_enough(candidates, free[0], processors)


def _cores_fullest(_table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    order = np.argsort(free[0], kind="stable")
    return until_enough(candidates[order], free[0][order], processors)


def _cores_emptiest(_table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    order = np.argsort(-free[0], kind="stable")
    return until_enough(candidates[order], free[0][order], processors)


def fewest(table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    """Use the fewest nodes: the emptiest first, last the one left with the fewest free cores, preferably a used one."""
    cores = free[0]
    unused = cores == table.capacity[0, candidates]
    order = np.lexsort((unused, -cores))
    total = np.cumsum(cores[order])
    last = int(np.searchsorted(total, processors))
    rest = processors - (total[last - 1] if last else 0.0)
    others = np.sort(order[last:])
    others = others[cores[others] >= rest]
    closing = others[np.lexsort((cores[others], unused[others]))[:1]]
    return candidates[np.append(order[:last], closing)], np.append(cores[order[:last]], rest)


def _cores_packed(table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    """Use the fewest nodes of the fewest switches."""
    if table.switches is None:
        return fewest(table, candidates, free, processors)
    on = table.switches[candidates]
    chosen = fewest_switches(np.bincount(on, free[0]), processors)
    whole = np.isin(on, chosen[:-1])
    closing = on == chosen[-1]
    nodes, cores = fewest(table, candidates[closing], free[:, closing], processors - int(free[0, whole].sum()))
    return np.append(candidates[whole], nodes), np.append(free[0, whole], cores)


FIRST_FIT = Placement(_by_number, _cores_by_number, "the nodes of lowest number", plain=True)
BEST_FIT = Placement(_fullest, _cores_fullest, "the nodes left with the fewest free cores, then GPUs", plain=True)
PACKED = Placement(
    _packed,
    _cores_packed,
    "the fewest switches, and partly used nodes first; cores anywhere: the fewest nodes",
    plain=True,
    least=True,
)
SPREAD = Placement(_emptiest, _cores_emptiest, "the nodes with the most free cores, then GPUs", plain=True)
EXCLUSIVE_BY_SWITCH = Placement(
    _by_number,
    _cores_by_number,
    "whole switches, for one job each: the fewest, the last one with the fewest nodes that are enough",
    whole_switches=True,
)
