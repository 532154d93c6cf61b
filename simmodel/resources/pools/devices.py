"""Devices of nodes: GPUs that jobs share, of several types in one node, or cut into slices.

The free capacity of each device is kept in whole thousandths. A device that can be cut into slices has its places as
devices, one after another, of equal thousandths: a slice takes several that follow each other, a whole GPU all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from simmodel.resources.pools.allocation import Allocation, Need, NodeTable, Request, WideMoves
from simmodel.resources.pools.placements import Ask, numbered
from simmodel.work.job import Refusal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import NodeSpec, PartitionSpec
    from simmodel.platform.devices import DeviceSpec
    from simmodel.resources.pools.allocation import Devices, Moves

    Thousandths = NDArray[np.int64]  # shape (devices, nodes)
    Numbers = NDArray[np.intp]
    Scores = NDArray[np.float64]

__all__ = ["WHOLE", "DeviceTable"]

WHOLE = 1000
"""Thousandths of a device."""
_CLASSES = 17
_LOG = 50_000  # changes of nodes kept
_WIDE = 16  # nodes of an allocation from which on they change together
NEVER = 1 << 30  # thousandths that no device has


class DeviceTable(NodeTable):
    """The free capacity of each node and of each of its devices.

    Its GPUs in ``free`` are the sum of the devices. Whole GPUs are entirely free ones, by number; a share, or a slice,
    is on the device with the least free capacity that is enough, among equals on the one of lowest number.

    Attributes
    ----------
    devices
        thousandths of each device that are free, shape (devices, nodes)
    all_devices
        the same if nothing is taken; 0 where a node has fewer devices
    kind_of
        the number of the type of each device, -1 where there is none
    gpu_of
        the number of the GPU in its node to which each device belongs
    place_of
        the place of each device in its GPU
    kinds
        what is known of each type
    users
        how many jobs have devices of each node: of row 0 shares, of row n whole ones, n of them or, in the last, more

    >>> from simmodel.platform import NodeSpec, PartitionSpec
    >>> table = DeviceTable.of_partition(PartitionSpec(nodes=[NodeSpec(cores=4, gpus=2)]))
    >>> for _ in range(2):
    ...     table.take(found := table.allocate(Request(1, gpus_per_node=0.6))); found.rows
    ((0, 1, 0.6, 0, ((0, 600),)),)
    ((0, 1, 0.6, 0, ((1, 600),)),)
    >>> table.fits(Request(1, gpus_per_node=0.6)), table.fits(Request(1, gpus_per_node=0.4))
    (False, True)
    """

    __slots__ = (
        "_asks",
        "_changed",
        "_scored",
        "all_devices",
        "devices",
        "gpu_of",
        "kind_of",
        "kinds",
        "place_of",
        "users",
    )

    devices: Thousandths
    all_devices: Thousandths
    kind_of: NDArray[np.int64]
    gpu_of: NDArray[np.int64]
    users: NDArray[np.int64]
    kinds: dict[str, DeviceSpec | None]
    place_of: NDArray[np.int64]
    _asks: dict[tuple[float, str, float], Ask]
    _changed: list[int]  # nodes, in the order of their changes
    # By request, the scores of nodes, and how many changes these know:
    _scored: dict[Request, tuple[Scores, int]]

    @property
    def apart(self) -> DeviceTable:
        """Itself: it knows the devices of each node apart."""
        return self

    @classmethod
    def of_partition(cls, partition: PartitionSpec) -> DeviceTable:
        """Return the table of the nodes of a partition, all free."""
        table = cls.of(partition.nodes, partition.placed_by)
        assert isinstance(table, DeviceTable)
        known = {each.name: each for each in partition.devices}
        columns = [_devices_of(kind, known) for kind in partition.nodes]
        names = list(dict.fromkeys(name for column in columns for name, _, _, _ in column))
        table.kinds = {name: known.get(name) for name in names}
        most = max(map(len, columns), default=0)
        shape = (most, len(columns))
        parts, kinds, gpus, begins = (np.zeros(shape, dtype=np.int64) for _ in range(4))
        kinds -= 1
        for number, column in enumerate(columns):
            for row, (name, gpu, begin, places) in enumerate(column):
                parts[row, number] = WHOLE // places
                kinds[row, number], gpus[row, number], begins[row, number] = names.index(name), gpu, begin
        counts = [kind.count for kind in partition.nodes]
        table.all_devices, table.kind_of, table.gpu_of, table.place_of = (
            np.repeat(each, counts, axis=1) for each in (parts, kinds, gpus, begins)
        )
        table.devices = table.all_devices.copy()
        table._asks, table._changed, table._scored = {}, [], {}
        table.users = np.zeros((_CLASSES, len(table)), dtype=np.int64)
        return table

    # ------------------------------------------------------------------ copies

    def _with(self, free: NDArray[np.float64]) -> Self:
        table = super()._with(free)
        table.all_devices, table.kind_of, table.gpu_of = self.all_devices, self.kind_of, self.gpu_of
        table.kinds, table.place_of, table._asks = self.kinds, self.place_of, self._asks
        table.devices, table.users, table._changed, table._scored = self.devices, self.users, [], {}
        return table

    def copy(self) -> Self:
        """Return a copy."""
        table = super().copy()
        table.devices, table.users = self.devices.copy(), self.users.copy()
        return table

    def full(self) -> Self:
        """Return the table with nothing taken."""
        table = super().full()
        table.devices, table.users = self.all_devices.copy(), np.zeros_like(self.users)
        return table

    def minimum(self, others: Sequence[Any]) -> Self:
        """Return the capacity that is free in this table and all others, device by device."""
        table = super().minimum(others)
        table.devices = np.minimum.reduce([self.devices, *[other.devices for other in others]])
        table.free[1] = table.devices.sum(axis=0) / WHOLE
        return table

    def state(self) -> Any:
        """Return what is free, of each device too, as plain values."""
        return [super().state(), self.devices.tolist()]

    def restore(self, values: Any) -> None:
        """Take back the values of :meth:`state`."""
        super().restore(values[0])
        self.devices[:] = values[1]

    def without(self, nodes: Iterable[int]) -> DeviceTable:
        """Return the table of the other nodes, with nothing taken; they are numbered anew."""
        kept = np.setdiff1d(np.arange(len(self)), list(nodes))
        table = self._with(self.capacity[:, kept])
        table.capacity = table.free.copy()
        table.switches = None if self.switches is None else self.switches[kept]
        table.all_devices, table.kind_of, table.gpu_of, table.place_of = (
            each[:, kept] for each in (self.all_devices, self.kind_of, self.gpu_of, self.place_of)
        )
        table.devices, table.users, table._asks = table.all_devices.copy(), np.zeros_like(self.users[:, kept]), {}
        table.settle(None if self.network is None else self.network.part(kept.tolist()), self.seed)
        return table

    # ------------------------------------------------------------------ changes

    def tell(self, held: Allocation) -> None:
        """Give work that runs already the devices that it has; nodes and amounts are taken already."""
        held.tell((self.told(held) or held).devices or ())
        self._move(Allocation(held.nodes, np.zeros_like(held.amounts), held.devices), -1)

    def _move(self, part: Allocation, sign: int) -> None:
        free, devices = self.free, self.devices
        moves = self._moves(part) if part.moves is None else part.moves
        if isinstance(moves, WideMoves):
            self._move_wide(moves, sign)
            return
        for node, cores, memory, held, row in moves:
            free[0, node] += sign * cores
            if memory:
                free[2, node] += sign * memory
            if held:
                total = 0
                for device, thousandths in held:
                    devices[device, node] += sign * thousandths
                    total += thousandths
                free[1, node] = round(free[1, node] * WHOLE + sign * total) / WHOLE
                self.users[row, node] -= sign
            self._changed.append(node)

    def _moves(self, part: Allocation) -> Moves:
        """Return what an allocation has of each node, which it keeps."""
        devices: Sequence[Devices] = part.devices if part.devices is not None else [()] * len(part.nodes)
        cores, _, memory = part.amounts.tolist()
        rows = [self._class_of(held, node) for node, held in zip(part.nodes.tolist(), devices, strict=True)]
        if len(rows) < _WIDE:
            part.moves = list(zip(part.nodes.tolist(), cores, memory, devices, rows, strict=True))
        else:
            part.moves = WideMoves.of(part, devices, rows)
        return part.moves

    def _move_wide(self, moves: WideMoves, sign: int) -> None:
        free, nodes, holders = self.free, moves.nodes, moves.holders
        free[0, nodes] += sign * moves.cores
        free[2, nodes] += sign * moves.memory
        self.devices[moves.device, moves.at] += sign * moves.thousandths
        free[1, holders] = np.round(free[1, holders] * WHOLE + sign * moves.totals) / WHOLE
        self.users[moves.rows, holders] -= sign
        self._changed += nodes.tolist()

    def _class_of(self, held: Devices, node: int) -> int:
        """Return the row of :attr:`users` for a job that has some devices of a node."""
        total = sum([thousandths for _, thousandths in held])
        whole = all(thousandths == self.all_devices[device, node] for device, thousandths in held)
        return min(total // WHOLE, _CLASSES - 1) if whole and total % WHOLE == 0 else 0

    def add(self, changes: Sequence[tuple[Allocation, int]]) -> None:
        """Release (1) or take (-1) many parts at once."""
        for part, sign in changes:
            self._move(part, sign)

    # ------------------------------------------------------------------ questions

    def ask(self, request: Request) -> Ask | None:
        """Return what a request is for of the devices of each node; ``None``: nothing."""
        if not request.gpus_per_node:
            return None
        key = request.gpus_per_node, request.gpu, request.gpu_memory
        found = self._asks.get(key)
        if found is None:
            found = self._asks[key] = self._new_ask(*key)
        return found

    def _new_ask(self, gpus: float, gpu: str, memory: float) -> Ask:
        named, _, part = gpu.partition(":")
        allowed = named.split("|") if named else self.kinds
        need = np.full(self.kind_of.shape, NEVER)
        length = np.ones_like(need)
        for number, (name, spec) in enumerate(self.kinds.items()):
            if name not in allowed:
                continue
            here = self.kind_of == number
            places = 1 if spec is None else spec.places
            starts: Sequence[int] = (0,)
            if part:
                taken, *starts = spec.slices.get(part, (NEVER,)) if spec is not None else (NEVER,)
                each = WHOLE // places
            elif memory or gpus < 1:
                taken = 1
                each = round(gpus * WHOLE) if not memory else _share(memory, spec)
                each = NEVER if places > 1 or each > WHOLE else each
            else:
                taken, each = places, WHOLE // places
            at = here & np.isin(self.place_of, starts)
            need[at] = each
            length[at] = taken
        same = bool((length == 1).all())
        return Ask(max(1, int(gpus)), need, 1 if same else length, not (part or memory or gpus < 1))

    def open(self, ask: Ask, nodes: Numbers | slice = slice(None)) -> NDArray[np.bool_]:
        """Return the mask of the devices of some nodes, all by default, at which a part can begin now."""
        free, need = self.devices[:, nodes], ask.need[:, nodes]
        there: NDArray[np.bool_] = free >= need
        if isinstance(ask.length, int):
            return there
        length = ask.length[:, nodes]
        for more in range(1, int(length.max())):
            beside = np.zeros_like(there)
            beside[:-more] = free[more:] >= need[:-more]
            there &= beside | (length <= more)
        return there

    def scored(self, request: Request, nodes: Numbers, score: Callable[[Numbers], Scores]) -> Scores:
        """Return a score of each of some nodes; asked for are those that changed since the same request was scored."""
        log = self._changed
        if len(log) > _LOG:
            log.clear()
            self._scored.clear()
        known, position = self._scored.get(request, (None, 0))
        if known is None:
            known = np.full(len(self), np.nan)
        known[log[position:]] = np.nan
        found: Scores = known[nodes]
        new = np.isnan(found)
        if new.any():
            found[new] = score(nodes[new])
            known[nodes] = found
        self._scored[request] = known, len(log)
        return found

    def with_gpus(self, request: Request) -> NDArray[np.bool_]:
        """Return the mask of nodes with the devices that a request is for."""
        ask = self.ask(request)
        assert ask is not None
        there: NDArray[np.bool_] = self.open(ask)
        enough: NDArray[np.bool_] = there.sum(axis=0) >= ask.parts
        return enough

    def fits(self, need: Need) -> bool:
        """Whether the need can be met now."""
        return super().fits(need) and (not isinstance(need, Allocation) or self.told(need) is not None)

    def beside(self, need: Request, now: NodeTable) -> Self:
        """Return what is left of each node beside a request for it, on the devices that it would have there."""
        table = super().beside(need, now)
        ask = self.ask(need)
        if need.exclusive:
            table.devices -= table.all_devices
        elif ask is not None:
            assert isinstance(now, DeviceTable)
            for node in now.suitable(need).nonzero()[0].tolist():
                for device, thousandths in now._choose(ask, node, need) or ():
                    table.devices[device, node] -= thousandths
        return table

    def told(self, need: Allocation, request: Request | None = None) -> Allocation | None:
        """Return an allocation with devices that are free now: its own, or whole ones by number; ``None``: too few.

        ``request``: the one that it meets, which may be for certain types.
        """
        kinds = "" if request is None else request.gpu
        if need.devices is not None:
            mine = zip(need.nodes.tolist(), need.devices, strict=True)
            rows = len(self.devices)
            fits = all(
                device < rows and self.devices[device, node] >= part for node, held in mine for device, part in held
            )
            return need if fits else None
        found = []
        for node, gpus in zip(need.nodes.tolist(), need.amounts[1].tolist(), strict=True):
            ask = self.ask(Request(1, gpus_per_node=gpus, gpu=kinds)) if gpus else None
            held = () if ask is None else self._choose(ask, node)
            if held is None:
                return None
            found.append(held)
        return Allocation(need.nodes, need.amounts, found)

    def allows(self, allocation: Allocation, need: Need) -> bool:
        """Whether the parts of an allocation are free, and its devices are such as the need is for."""
        if not super().allows(allocation, need):
            return False
        if isinstance(need, Allocation) or need.exclusive or need.chunks or (ask := self.ask(need)) is None:
            return True
        if allocation.devices is None:
            return ask.whole and self.told(allocation, need) is not None
        held = zip(allocation.nodes.tolist(), allocation.devices, strict=True)
        return all(self.meets(ask, node, devices) for node, devices in held)

    def meets(self, ask: Ask, node: int, held: Devices) -> bool:
        """Whether some devices of a node are just the parts that are asked for."""
        left, parts = dict(held), 0
        while left:
            device = min(left)
            need = int(ask.need[device, node])
            length = ask.length if isinstance(ask.length, int) else int(ask.length[device, node])
            if any(left.pop(row, None) != need for row in range(device, device + length)):
                return False
            parts += 1
        return parts == ask.parts

    def _choose(self, ask: Ask, node: int, request: Request | None = None) -> Devices | None:
        """Return the devices of a node that a request gets, chosen by the placement, or ``None``."""
        there = self.open(ask, np.array([node]))[:, 0].nonzero()[0].tolist()
        if len(there) < ask.parts:
            return None
        if not ask.whole and len(there) > 1:
            gpu, free = self.gpu_of[:, node].tolist(), self.devices[:, node].tolist()
            left = Counter[int]()
            for number, thousandths in zip(gpu, free, strict=True):
                left[number] += thousandths
            there.sort(key=lambda device: left[gpu[device]])
            if request is not None and self._place.devices is not None:
                there = self._place.devices(self.seen(request), node, there)
        found = []
        for device in there[: ask.parts]:
            length = ask.length if isinstance(ask.length, int) else int(ask.length[device, node])
            found += [(row, int(ask.need[device, node])) for row in range(device, device + length)]
        return tuple(sorted(found))

    def why_not(self, request: Request, name: str = "the pool") -> str | None:
        """Return why the request can never be met, or ``None``; ``name`` is the table's name in the reason."""
        kind, _, part = request.gpu.partition(":")
        allowed = [each for each in kind.split("|") if each in self.kinds]
        if kind and not allowed:
            return f"GPU of type {kind} requested, {name} has {', '.join(filter(None, self.kinds)) or 'no types'}"
        slices = [each for each in allowed if (spec := self.kinds[each]) is not None and part in spec.slices]
        if part and not slices:
            known = {each for kind in allowed if (spec := self.kinds[kind]) is not None for each in spec.slices}
            return f"slice {part} of {kind} requested, it has {', '.join(sorted(known)) or 'no slices'}"
        if not request.of_devices:
            return super().why_not(request, name)
        if self.full().fits(request):
            return None
        return Refusal.of(str(request), f"{name} has no such nodes or devices")

    def why_waits(self, request: Request) -> str:
        """Return that no device has what is free in sum, or no node as many free ones; an empty text if one has."""
        ask = self.ask(request)
        if ask is None:
            return ""
        there = self.open(ask)
        if there.sum(axis=0).max(initial=0) >= ask.parts:
            return ""
        kinds = [number for number, name in enumerate(self.kinds) if (ask.need[self.kind_of == number] < NEVER).any()]
        free = self.devices[np.isin(self.kind_of, kinds)].sum() / WHOLE
        part = request.gpu.partition(":")[2]
        if ask.whole:
            lacks = f"no node with {numbered(ask.parts, 'free one')}"
        else:
            lacks = f"no device with {part or f'{int(ask.need.min()) / WHOLE:g}'}"
        return f"{free:g} GPUs free in sum, {lacks}"

    def allocate(self, need: Need, prefer: Numbers | None = None) -> Allocation | None:
        """Return parts of nodes and devices that meet the need, chosen by the placement, or ``None``."""
        found = super().allocate(need, prefer)
        if found is None or isinstance(need, Allocation):
            return None if found is None else self.told(found)
        if need.exclusive or need.chunks:
            return self.told(found) if need.chunks and not need.exclusive else self._all_of(found)
        ask = self.ask(need)
        devices: list[Devices] = [() for _ in found.nodes]
        amounts = found.amounts.copy()
        if ask is not None:
            for i, node in enumerate(found.nodes.tolist()):
                held = self._choose(ask, node, need)
                assert held is not None
                devices[i] = held
                amounts[1, i] = sum(part for _, part in held) / WHOLE
        return Allocation(found.nodes, amounts, devices)

    def _all_of(self, found: Allocation) -> Allocation:
        """Return an allocation with all devices of its nodes."""
        columns = self.all_devices[:, found.nodes].T.tolist()
        devices = [tuple((row, part) for row, part in enumerate(column) if part) for column in columns]
        return Allocation(found.nodes, found.amounts, devices)


def _share(memory: float, spec: DeviceSpec | None) -> int:
    """Return the thousandths of a device that have some bytes of memory."""
    return ceil(memory * WHOLE / spec.memory) if spec is not None and spec.memory else NEVER


def _devices_of(kind: NodeSpec, known: dict[str, DeviceSpec]) -> list[tuple[str, int, int, int]]:
    """Return type, number of the GPU, place in it and number of places of each device of a node."""
    found = []
    names = [name for name, count in (kind.gpu_types or {"": kind.gpus}).items() for _ in range(count)]
    for gpu, name in enumerate(names):
        places = known[name].places if name in known else 1
        found += [(name, gpu, place, places) for place in range(places)]
    return found
