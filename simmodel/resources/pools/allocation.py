"""Allocation of cores, GPUs and memory of nodes: pure bookkeeping, without a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.platform.node_lists import switch_numbers
from simmodel.resources.pools.placements import (
    Request,
    fewest,
    fewest_switches,
    new_table,
    numbered,
    placement_named,
    unused_switches,
)
from simmodel.work.job import LiveJob, Refusal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import NodeSpec
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.resources.pools.placements import DeviceView, Table

    Numbers = NDArray[np.intp]  # of nodes

__all__ = ["AWAY", "Allocation", "Need", "NodeTable", "Request", "WideMoves", "cut", "joined", "probe"]

AWAY = 2.0**40  # cores taken from a node that is down, once per reason, so that reasons may overlap
NOT_MODELLED = 2.0**50  # bytes of a node without specified memory


class Allocation:
    """Parts of nodes: held by a job, or requested exactly.

    Parameters
    ----------
    nodes
        different node numbers, shape (n,), ascending
    amounts
        shape (3, n): cores, GPUs and bytes of memory of each
    devices
        of each, the devices that it has: (number, thousandths) each; ``None``: they are not told apart

    >>> held = Allocation.of([(0, 4, 1, 0), (2, 4, 1, 0)])
    >>> held.processors, held.rows
    (8, ((0, 4, 1, 0), (2, 4, 1, 0)))
    >>> Allocation.of([(0, 4, 0.46, 0, ((1, 460),))])
    Allocation.of([(0, 4, 0.46, 0, ((1, 460),))])
    """

    __slots__ = ("_alike", "amounts", "devices", "moves", "nodes", "processors")
    anywhere = False

    def __init__(
        self, nodes: NDArray[np.intp], amounts: NDArray[np.float64], devices: Sequence[Devices] | None = None
    ) -> None:
        self.nodes = nodes
        self.devices = devices
        self.amounts = amounts
        self.processors = int(amounts[0].sum())
        self._alike: tuple[tuple[int, ...], tuple[float, float, float]] | None = None
        self.moves: Moves | None = None

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> Allocation:
        """Return the allocation of rows (node, cores, GPUs, bytes of memory), each with its devices if they are known.

        Raises ``ValueError`` on a duplicate node, a negative amount, or a share of a GPU without the device.
        """
        given = sorted(rows)
        nodes = np.array([row[0] for row in given], dtype=np.intp)
        amounts = np.array([row[1:4] for row in given], dtype=np.float64).reshape(-1, 3).T.copy()
        devices = [tuple((int(each), int(part)) for each, part in row[4]) if len(row) > 4 else () for row in given]
        told = any(len(row) > 4 for row in given)
        for gpus, held in zip(amounts[1].tolist(), devices, strict=True):
            if held and (round(gpus * 1000) != sum(part for _, part in held) or len(dict(held)) < len(held)):
                raise InputError(f"devices must be different ones of {gpus:g} GPUs in sum, got {held}")
            if not held and (gpus != gpus // 1 or (told and gpus)):
                raise InputError(f"a share of a GPU must say of which device, got {gpus:g} GPUs")
        if (np.diff(nodes) == 0).any():
            raise InputError(f"duplicate node in {nodes.tolist()}")
        if (amounts < 0).any():
            raise InputError(f"amounts must be >= 0, got {given}")
        return cls(nodes, amounts, devices if told else None)

    @classmethod
    def alike(cls, nodes: tuple[int, ...], cores: int, gpus: float = 0, memory: float = 0) -> Allocation:
        """Return the allocation of the same of each of some nodes, ascending; its arrays are made when they are read.

        >>> Allocation.alike((1, 4), 8).rows
        ((1, 8, 0, 0), (4, 8, 0, 0))
        """
        allocation = cls.__new__(cls)
        allocation._alike = nodes, (cores, gpus, memory)
        allocation.devices = allocation.moves = None
        allocation.processors = len(nodes) * cores
        return allocation

    def __getattr__(self, name: str) -> Any:
        """Make the arrays of an allocation that has none yet."""
        if name not in ("nodes", "amounts"):
            raise AttributeError(name)
        assert self._alike is not None
        nodes, each = self._alike
        if name == "nodes":
            self.nodes = np.array(nodes, dtype=np.intp)
            return self.nodes
        self.amounts = np.repeat(np.array(each, dtype=np.float64)[:, None], len(nodes), axis=1)
        return self.amounts

    @classmethod
    def away(cls, nodes: Iterable[int]) -> Allocation:
        """Return the allocation that takes nodes down."""
        numbers = np.array(sorted(nodes), dtype=np.intp)
        amounts = np.zeros((3, len(numbers)))
        away = cls(numbers, amounts)
        amounts[0] = AWAY
        return away

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its nodes, ascending."""
        return tuple(self.nodes.tolist()) if self._alike is None else self._alike[0]

    def groups(self) -> Sequence[tuple[tuple[int, ...], tuple[Any, ...]]]:
        """Return its nodes in groups, each with the cores, GPUs and bytes of memory that it has of each of them.

        Beside these stand the devices, if they are told apart.
        """
        if self._alike is not None:
            return (self._alike,)
        found: dict[tuple[Any, ...], list[int]] = {}
        told = () if self.devices is None else (self.devices,)
        for node, *each in zip(self.nodes.tolist(), *self.amounts.tolist(), *told, strict=True):
            found.setdefault(tuple(each), []).append(node)
        return [(tuple(nodes), each) for each, nodes in found.items()]

    @property
    def columns(self) -> tuple[tuple[Any, ...], ...]:
        """The cores, the GPUs and the bytes of memory, each by node; and the devices if they are told apart."""
        if self.devices is not None:
            cores, _, memory = map(tuple, self.amounts.astype(np.int64).tolist())
            return cores, tuple(map(_gpus_of, self.devices)), memory, tuple(self.devices)
        if self._alike is None:
            return tuple(map(tuple, self.amounts.astype(np.int64).tolist()))
        nodes, each = self._alike
        return tuple((int(amount),) * len(nodes) for amount in each)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows (node, cores, GPUs, bytes of memory), by node number; and the devices if they are told apart."""
        if self.devices is not None:
            return tuple(zip(self.nodes.tolist(), *self.columns, strict=True))
        columns = zip(self.nodes.tolist(), *self.amounts.astype(np.int64).tolist(), strict=True)
        return tuple((node, cores, gpus, memory) for node, cores, gpus, memory in columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allocation) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    def __repr__(self) -> str:
        return f"Allocation.of({list(self.rows)})"

    def tell(self, devices: Sequence[Devices]) -> None:
        """Say which devices it has of each node."""
        self.nodes, self.amounts, self.devices = self.nodes, self.amounts, tuple(devices)
        self._alike = self.moves = None

    def meets(self, request: Request) -> bool:
        """Whether it satisfies a request, with exactly its cores unless nodes are exclusive or it is loose."""
        if request.chunks:
            return len(self.nodes) == request.nodes and self.meets_chunks(request, more=request.exclusive)
        cores, gpus, memory = self.amounts
        if request.whole_switches:  # with any other nodes of the switches
            asked = 1 if request.nodes is None else request.cores_per_node
            able = (cores >= asked) & (gpus >= request.gpus_per_node) & (memory >= request.memory_per_node)
            enough = int(cores[able].sum()) >= request.processors
            return enough if request.nodes is None else int(np.count_nonzero(able)) >= request.nodes
        few = not (request.loose or request.of_devices) and bool((gpus < request.gpus_per_node).any())
        if not len(self.nodes) or few or (memory < request.memory_per_node).any():
            return False
        if request.nodes is not None:
            enough = cores >= request.cores_per_node if request.exclusive else cores == request.cores_per_node
            return len(self.nodes) == request.nodes and bool(enough.all())
        if request.exclusive:
            return self.processors >= request.processors
        return (request.loose or self.processors == request.processors) and bool((cores > 0).all())

    def meets_chunks(self, request: Request, *, more: bool) -> bool:
        """Whether each chunk has a node of its own, with its cores, or at least these if ``more``."""
        cores, gpus, memory = self.amounts
        parts = request.alike()
        able = [
            ((cores >= part.cores_per_node) if more else (cores == part.cores_per_node))
            & (gpus >= part.gpus_per_node)
            & (memory >= part.memory_per_node)
            for part in parts
        ]
        return assigned(able, parts) is not None


Devices = tuple[tuple[int, int], ...]
"""The devices of a node that an allocation has: number and thousandths of each."""


class WideMoves(NamedTuple):
    """What an allocation has of each of many nodes: cores, bytes, and parts of devices, one row each.

    ``holders`` are the nodes of which it has devices, ``totals`` the thousandths in all and ``rows`` those of
    :attr:`~simmodel.resources.pools.devices.DeviceTable.users` there.
    """

    nodes: NDArray[np.intp]
    cores: NDArray[np.float64]
    memory: NDArray[np.float64]
    device: NDArray[np.intp]
    at: NDArray[np.intp]
    thousandths: NDArray[np.intp]
    holders: NDArray[np.intp]
    totals: NDArray[np.intp]
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, part: Allocation, devices: Sequence[Devices], rows: Sequence[int]) -> WideMoves:
        """Return those of an allocation, from its devices and the rows of its nodes."""
        cores, _, memory = part.amounts
        nodes = part.nodes
        count = np.array([len(held) for held in devices])
        held = np.array([each for held in devices for each in held], dtype=np.int64).reshape(-1, 2)
        totals = np.array([sum([thousandths for _, thousandths in held]) for held in devices])
        some = count > 0
        at = np.repeat(nodes, count)
        return cls(nodes, cores, memory, held[:, 0], at, held[:, 1], nodes[some], totals[some], np.array(rows)[some])


Moves = list[tuple[int, float, float, Devices, int]] | WideMoves
"""Of each node of an allocation its cores, bytes and devices, and what its table counts it as; kept from one to use."""


def _gpus_of(devices: Devices) -> float:
    """Return how many GPUs some devices are in sum, a whole number as such."""
    thousandths = sum([part for _, part in devices])
    return thousandths / 1000 if thousandths % 1000 else thousandths // 1000


def assigned(able: Sequence[NDArray[np.bool_]], parts: Sequence[Request]) -> NDArray[np.intp] | None:
    """Return the number of the part that each node is for, -1: none; ``None``: not all parts can have their nodes.

    Parameters
    ----------
    able
        for each part, the mask of the nodes that meet it
    parts
        requests for nodes

    >>> able = [np.array([True, True, False]), np.array([True, False, False])]
    >>> assigned(able, [Request(1, nodes=1), Request(1, nodes=1)])
    array([ 1,  0, -1])
    """
    part_of = np.full(len(able[0]), -1)

    def free_one(part: int, seen: set[int]) -> bool:
        """Give one more node to a part, for which other parts may change to other nodes."""
        there = np.flatnonzero(able[part] & (part_of < 0))
        if len(there):
            part_of[there[0]] = part
            return True
        seen.add(part)
        for other in set(part_of[able[part]].tolist()) - seen:
            node = np.flatnonzero(able[part] & (part_of == other))[0]
            if free_one(other, seen):
                part_of[node] = part
                return True
        return False

    for part, request in enumerate(parts):
        assert request.nodes is not None
        first = np.flatnonzero(able[part] & (part_of < 0))[: request.nodes]
        part_of[first] = part
        if not all(free_one(part, set()) for _ in range(request.nodes - len(first))):
            return None
    return part_of


Need = Request | Allocation


class NodeTable:
    """The free capacity of each node.

    Parameters
    ----------
    capacity
        shape (3, nodes): cores, GPUs and bytes of memory of each
    placement
        the name of a placement. Exclusive requests for cores get the fewest nodes under any placement
    switches
        the attribute

    Attributes
    ----------
    free
        the free capacity, of the shape of ``capacity``; the free cores of a node that is down are far below zero
    switches
        the number of the switch of each node, ``None`` if none has one; a node without has a number of its own
    network, seed
        the places of the nodes in a network, or ``None``; the seed of random placements; both by :meth:`settle`

    >>> from simmodel.platform import NodeSpec
    >>> table = NodeTable.of([NodeSpec(count=3, cores=4)])
    >>> first = table.allocate(Request(6)); table.take(first); first.rows
    ((0, 4, 0, 0), (1, 2, 0, 0))
    >>> table.fits(Request(8, nodes=2, cores_per_node=4)), table.cores
    (False, 6)
    """

    __slots__ = ("_kept_kinds", "_place", "_seen", "capacity", "free", "network", "seed", "switches")

    @property
    def apart(self) -> DeviceView | None:
        """Itself if it knows the devices of each node apart, else ``None``."""
        return None

    def __init__(
        self, capacity: NDArray[np.float64], placement: str = "first-fit", switches: Sequence[int] | None = None
    ) -> None:
        self.capacity = capacity
        self.free = capacity.copy()
        self.switches: Numbers | None = None if switches is None else np.asarray(switches, dtype=np.intp)
        self._place = placement_named(placement)
        self.settle(None, 0)
        self._kept_kinds: list[tuple[tuple[float, float, float], int]] | None = None

    @classmethod
    def of(cls, kinds: Sequence[NodeSpec], placement: str = "first-fit") -> NodeTable:
        """Return the table of nodes of these kinds, all free; unspecified memory is unlimited."""
        columns = [(kind.cores, kind.gpus, floor(kind.memory) or NOT_MODELLED) for kind in kinds]
        counts = [kind.count for kind in kinds]
        return cls(np.repeat(np.array(columns, dtype=np.float64).T, counts, axis=1), placement, switch_numbers(kinds))

    def _with(self, free: NDArray[np.float64]) -> Self:
        table = object.__new__(type(self))
        table.capacity, table.free, table._place, table.switches = self.capacity, free, self._place, self.switches
        table._kept_kinds, table.network, table.seed = self._kept_kinds, self.network, self.seed
        table._seen = free, self.capacity, self.switches, self.network, self.seed
        return table

    def settle(self, network: NodeNetwork | None, seed: int) -> None:
        """Set what placements see beside the amounts: the places of the nodes in a network, and a seed."""
        self.network, self.seed = network, seed
        self._seen = self.free, self.capacity, self.switches, network, seed

    def seen(self, request: Request) -> Table:
        """Return the table as placements see it when they choose for a request."""
        return new_table((*self._seen, request, self.apart))

    def __repr__(self) -> str:
        cores = f"{self.free[0].sum():g} of {self.capacity[0].sum():g}"
        return f"<{type(self).__name__} of {len(self)} nodes: {cores} cores are free>"

    def __len__(self) -> int:
        return int(self.capacity.shape[1])

    @property
    def counted(self) -> bool:
        """Whether enough free cores in sum suffice for a request for cores anywhere."""
        return self.complete and self._place.enough is None

    @property
    def strict(self) -> bool:
        """Whether the placement has conditions of its own, which free nodes alone do not meet."""
        return self._place.strict

    @property
    def complete(self) -> bool:
        """Whether all nodes are up."""
        return bool((self.free[0] >= 0).all())

    @property
    def cores(self) -> int:
        """How many cores are free."""
        return int(np.maximum(self.free[0], 0).sum())

    def copy(self) -> Self:
        """Return a copy."""
        return self._with(self.free.copy())

    def full(self) -> Self:
        """Return the table with nothing taken."""
        return self._with(self.capacity.copy())

    def state(self) -> Any:
        """Return what is free, as plain values."""
        return self.free.tolist()

    def restore(self, values: Any) -> None:
        """Take back the values of :meth:`state`."""
        self.free[:] = values

    def without(self, nodes: Iterable[int]) -> NodeTable:
        """Return the table of the other nodes, with nothing taken; they are numbered anew."""
        kept = np.setdiff1d(np.arange(len(self)), list(nodes))
        table = NodeTable(self.capacity[:, kept], switches=None if self.switches is None else self.switches[kept])
        table._place = self._place
        table.settle(None if self.network is None else self.network.part(kept.tolist()), self.seed)
        return table

    def minimum(self, others: Sequence[Any]) -> Self:
        """Return the capacity that is free in this table and all others, node by node."""
        return self._with(np.minimum.reduce([self.free, *[other.free for other in others]]))

    def beside(self, need: Request, now: NodeTable) -> Self:
        """Return what is left of each node beside a request for it, of which ``now`` has what the request finds."""
        table = self.copy()
        table.free -= np.array([[need.cores_per_node], [need.gpus_per_node], [need.memory_per_node]])
        if need.exclusive:
            table.free[:2] -= table.capacity[:2]
        return table

    def told(self, need: Allocation, request: Request | None = None) -> Allocation | None:
        """Return an allocation with the devices that it has; without change if they are not told apart."""
        return need

    # ------------------------------------------------------------------ changes

    def take(self, part: Allocation) -> None:
        """Take parts of nodes; nothing is checked."""
        self._move(part, -1)

    def release(self, part: Allocation) -> None:
        """Give parts of nodes back."""
        self._move(part, 1)

    def _move(self, part: Allocation, sign: int) -> None:
        for nodes, each in part.groups():
            index = nodes[0] if len(nodes) == 1 else part.nodes if part._alike is not None else list(nodes)
            for row, amount in enumerate(each):
                if amount:
                    self.free[row][index] += sign * amount

    def add(self, changes: Sequence[tuple[Allocation, int]]) -> None:
        """Release (1) or take (-1) many parts at once."""
        if len(changes) < 8:
            for part, sign in changes:
                self.free[:, part.nodes] += sign * part.amounts
            return
        nodes = np.concatenate([part.nodes for part, _ in changes])
        amounts = np.concatenate([sign * part.amounts for part, sign in changes], axis=1)
        for free, amount in zip(self.free, amounts, strict=True):
            if amount.any():
                free += np.bincount(nodes, amount, len(self))

    # ------------------------------------------------------------------ questions (pure)

    def suitable(self, request: Request) -> NDArray[np.bool_]:
        """Return the mask of nodes that meet the request's needs per node."""
        cores, _, memory = self.free
        mask: NDArray[np.bool_] = cores >= (1 if request.nodes is None else request.cores_per_node)
        if request.exclusive:  # every user of a node holds at least one of its cores
            mask &= cores == self.capacity[0]
        if request.whole_switches:
            mask &= self._on_unused_switches()
        if request.gpus_per_node:
            mask &= self.with_gpus(request)
        if request.memory_per_node:
            mask &= memory >= request.memory_per_node
        return mask

    def with_gpus(self, request: Request) -> NDArray[np.bool_]:
        """Return the mask of nodes with the GPUs that a request is for."""
        enough: NDArray[np.bool_] = self.free[1] >= request.gpus_per_node
        return enough

    def _on_unused_switches(self) -> NDArray[np.bool_]:
        """Return the mask of nodes on whose switch nothing runs, on nodes that are up or down."""
        used = (self.capacity[0] - self.free[0]) % AWAY > 0
        return ~used if self.switches is None else unused_switches(self.switches, used)

    def _kinds(self) -> list[tuple[tuple[float, float, float], int]]:
        if self._kept_kinds is None:
            self._kept_kinds = list(Counter(zip(*self.capacity.tolist(), strict=True)).items())
        return self._kept_kinds

    def fits(self, need: Need) -> bool:
        """Whether the need can be met now."""
        if isinstance(need, Allocation):
            return bool((self.free[:, need.nodes] >= need.amounts).all())
        if need.chunks:
            return self._for_chunks(need) is not None
        mask = self.suitable(need)
        if self._place.enough is not None:
            return self._may_choose(need, mask.nonzero()[0])
        if need.nodes is not None:
            return int(np.count_nonzero(mask)) >= need.nodes
        return bool(self.free[0] @ mask >= need.processors)

    def _may_choose(self, need: Request, candidates: Numbers) -> bool:
        """Whether a placement with conditions of its own can choose among candidates."""
        assert self._place.enough is not None
        amounts = self.free[0, candidates] if need.nodes is None else np.ones(len(candidates))
        needed = need.processors if need.nodes is None else need.nodes
        return float(amounts.sum()) >= needed and self._place.enough(self.seen(need), candidates, amounts, needed)

    def allows(self, allocation: Allocation, need: Need) -> bool:
        """Whether the parts of an allocation that meets the need are free; and the switches if they must be whole."""
        if isinstance(need, Request) and need.whole_switches:
            alone = self._on_unused_switches()
            if not alone[allocation.nodes].all():
                return False
        if isinstance(need, Request) and self._place.enough is not None:
            count = len(allocation.nodes)
            return self.fits(allocation) and self._place.enough(
                self.seen(need), allocation.nodes, np.ones(count), count
            )
        return self.fits(allocation)

    def why_not(self, request: Request, name: str = "the pool") -> str | None:
        """Return why the request can never be met, or ``None``; ``name`` is the table's name in the reason.

        >>> NodeTable(np.array([[4.0, 4], [0, 2], [0, 0]])).why_not(Request(2, nodes=2, gpus_per_node=1))
        '2 nodes with 1 core and 1 GPU each requested, the pool has 1 such node'
        """
        if request.chunks and (self._place.strict or request.whole_switches):
            return Refusal.of("chunks", f"the placement of {name} is for nodes that are alike")
        if request.nodes is not None:
            there = 0
            for (cores, gpus, memory), count in self._kinds():
                if cores >= request.cores_per_node and gpus >= request.gpus_per_node:
                    there += count if memory >= request.memory_per_node else 0
            if there >= request.nodes and self._place.enough is None:
                return None
        full = self.full()
        if full.fits(request):
            return None
        if request.chunks:
            return Refusal.of(str(request), f"{name} has no such nodes")
        mask = full.suitable(request)
        if self._place.enough is not None:
            return Refusal.of(str(request), f"{name} has no such nodes by its placement")
        if request.nodes is not None:
            return Refusal.of(str(request), f"{name} has {numbered(int(np.count_nonzero(mask)), 'such node')}")
        return Refusal.of(str(request), f"{name} has {int(full.free[0] @ mask)}")

    def allocate(self, need: Need, prefer: Numbers | None = None) -> Allocation | None:
        """Return parts of nodes that meet the need, chosen by the placement, or ``None`` if too little is free.

        Nothing is taken. An allocation as the need stands for exactly its own parts. A request for nodes gets nodes of
        ``prefer`` first, ascending numbers of nodes that meet its needs per node.
        """
        if isinstance(need, Allocation):
            return need if self.fits(need) else None
        if need.chunks:
            return self._for_chunks(need)
        if need.whole_switches:
            return self._whole_switches(need)
        if need.nodes is not None:
            if prefer is not None and len(prefer) >= need.nodes:
                return self._nodes_of(need, need.nodes, prefer, None)
            return self._nodes_of(need, need.nodes, self.suitable(need).nonzero()[0], prefer)
        candidates = self.suitable(need).nonzero()[0]
        free = self.free[:, candidates]
        strict = self._place.enough is not None
        if free[0].sum() < need.processors or (strict and not self._may_choose(need, candidates)):
            return None
        choose = fewest if need.exclusive and not self._place.least and not strict else self._place.cores
        chosen, cores = choose(new_table((*self._seen, need, self.apart)), candidates, free, need.processors)
        order = np.argsort(chosen)
        nodes = chosen[order]
        amounts = np.empty((3, len(nodes)))
        amounts[0] = cores[order]
        amounts[1] = need.gpus_per_node
        amounts[2] = need.memory_per_node
        if need.exclusive:
            amounts[:2] = self.capacity[:2, nodes]
        return Allocation(nodes, amounts)

    def _nodes_of(self, need: Request, count: int, candidates: Numbers, prefer: Numbers | None) -> Allocation | None:
        """Return ``count`` of the candidates, which meet the need per node, or ``None`` if there are too few."""
        if len(candidates) < count or (self._place.enough is not None and not self._may_choose(need, candidates)):
            return None
        chosen = self._place.nodes(new_table((*self._seen, need, self.apart)), candidates, count)
        if prefer is not None:
            preferred = np.zeros(len(self), dtype=bool)
            preferred[prefer] = True
            first = preferred[chosen]
            chosen = np.concatenate([chosen[first], chosen[~first]])
        nodes = tuple(sorted(chosen[:count].tolist()))
        found = Allocation.alike(nodes, need.cores_per_node, need.gpus_per_node, need.memory_per_node)
        if not need.exclusive:
            return found
        amounts = found.amounts
        amounts[:2] = self.capacity[:2, found.nodes]
        return Allocation(found.nodes, amounts)

    def _for_chunks(self, need: Request) -> Allocation | None:
        """Return a node for each chunk, the largest first, in the order of the placement, or ``None``."""
        parts = need.alike()
        able = [self.suitable(part) for part in parts]
        candidates = np.logical_or.reduce(able).nonzero()[0]
        if len(candidates) < len(need.chunks):
            return None
        first = self._place.nodes(new_table((*self._seen, need, self.apart)), candidates, len(need.chunks))
        order = np.concatenate([first, np.setdiff1d(candidates, first)])
        part_of = assigned([each[order] for each in able], parts)
        if part_of is None:
            return None
        rows = sorted((int(order[at]), parts[part_of[at]]) for at in np.flatnonzero(part_of >= 0).tolist())
        each = [(part.cores_per_node, part.gpus_per_node, part.memory_per_node) for _, part in rows]
        nodes, amounts = np.array([node for node, _ in rows]), np.array(each, dtype=np.float64).T.copy()
        if need.exclusive:
            amounts[:2] = self.capacity[:2, nodes]
        return Allocation(nodes, amounts)

    def _whole_switches(self, need: Request) -> Allocation | None:
        """Return all nodes that are up of the fewest switches that meet the need, or ``None`` if there are too few."""
        able = self.suitable(need)
        on = np.arange(len(self)) if self.switches is None else self.switches
        there = np.bincount(on, able if need.nodes is not None else np.where(able, self.free[0], 0.0))
        wanted = need.processors if need.nodes is None else need.nodes
        if there.sum() < wanted:
            return None
        nodes = (np.isin(on, fewest_switches(there, wanted)) & (self.free[0] == self.capacity[0])).nonzero()[0]
        amounts = self.capacity[:, nodes].copy()
        amounts[2] = np.where(able[nodes], need.memory_per_node, 0.0)
        return Allocation(nodes, amounts)


def probe(job: LiveJob, processors: int, requested: float) -> LiveJob:
    """Return a job of no queue that requests processors at the place of another, for some seconds."""
    found = LiveJob(f"{processors} processors for {job.id}", -1, 0.0, processors, requested, requested, requested)
    found.place = job.place
    if job.place.power is not None:
        found.request = job.place.power.counted(attrs.evolve(job.request, processors=processors))
    return found


def joined(first: Allocation, second: Allocation) -> Allocation:
    """Return two allocations as one.

    >>> joined(Allocation.of([(0, 4, 1, 0)]), Allocation.of([(0, 2, 0, 0), (3, 8, 0, 0)])).rows
    ((0, 6, 1, 0), (3, 8, 0, 0))
    """
    parts: dict[int, list[Any]] = {}
    for row in (*first.rows, *second.rows):
        mine = parts.setdefault(row[0], [0, 0, 0, *((),) * (len(row) - 4)])
        for i, amount in enumerate(row[1:]):
            mine[i] += amount
    return Allocation.of([(node, *amounts) for node, amounts in parts.items()])


def cut(held: Allocation, processors: int, *, whole: bool) -> Allocation:
    """Return the part of an allocation with a number of processors, on its nodes with the lowest numbers.

    ``whole``: nodes are kept or given back whole.

    >>> cut(Allocation.of([(1, 8, 0, 0), (4, 8, 0, 0)]), 11, whole=False).rows
    ((1, 8, 0, 0), (4, 3, 0, 0))
    >>> cut(Allocation.of([(1, 8, 0, 0), (4, 8, 0, 0)]), 5, whole=True).rows
    ((1, 8, 0, 0),)
    """
    left, kept = processors, []
    for node, cores, *others in held.rows:
        if left <= 0:
            break
        kept.append((node, cores if whole else min(cores, left), *others))
        left -= cores
    return Allocation.of(kept)
