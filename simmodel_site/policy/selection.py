"""Which nodes a job gets: select/cons_tres, on sets of nodes as bits of whole numbers.

Source: select/cons_tres of Slurm 22.05, by its behaviour. Without a topology, nodes stand in maximal runs of
consecutive usable nodes of one weight: of the lowest weight, the smallest run that is large enough is taken from its
lowest node on; if none is, the largest one, and so on. In a tree of switches, leaf switches stand in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simmodel import InputError
from simmodel.extending import Allocation, assigned
from simmodel_site.policy.layout import FAR
from simmodel_site.policy.wishes import NOTHING, Wishes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.extending import NodeTable, Request
    from simmodel_site.policy.layout import Layout
    from simmodel_site.policy.settings import SlurmConf

    Each = tuple[int, int, float, bool, bool, float]
    Grain = float | NDArray[np.float64]
    Free = NDArray[np.float64]  # shape (3, nodes): cores, GPUs and bytes of memory

__all__ = [
    "ANY",
    "Choice",
    "Roomy",
    "Shape",
    "able",
    "allocation_of",
    "at_least",
    "bits_of",
    "choose",
    "choose_alike",
    "enough",
    "flags_of",
    "mask_of",
    "nodes_in",
    "runs",
    "usable_cores",
    "whole_pieces",
]


def mask_of(flags: NDArray[np.bool_]) -> int:
    """Return a set of nodes as the bits of a number, the first node as the lowest bit.

    >>> bin(mask_of(np.array([True, False, True, True])))
    '0b1101'
    """
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def flags_of(mask: int, count: int) -> NDArray[np.bool_]:
    """Return a set of nodes as an array of shape (count,).

    >>> flags_of(0b1101, 5).tolist()
    [True, False, True, True, False]
    """
    bits = np.frombuffer(mask.to_bytes(count // 8 + 1, "little"), dtype=np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)


def bits_of(nodes: NDArray[np.intp]) -> int:
    """Return a set of nodes, given by their numbers, ascending.

    >>> bin(bits_of(np.array([0, 2, 3])))
    '0b1101'
    """
    if len(nodes) < 8:
        return sum([1 << node for node in nodes.tolist()])
    flags = np.zeros(int(nodes[-1]) + 1, dtype=np.bool_)
    flags[nodes] = True
    return mask_of(flags)


def nodes_in(mask: int) -> list[int]:
    """Return the numbers of the nodes of a set, ascending.

    >>> nodes_in(0b1101)
    [0, 2, 3]
    """
    found: list[int] = []
    for first, count in runs(mask):
        found += range(first, first + count)
    return found


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the maximal runs of consecutive nodes: the first node of each, and their number.

    >>> list(runs(0b1101))
    [(0, 1), (2, 2)]
    """
    base = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        count = (~mask & (mask + 1)).bit_length() - 1
        yield base + skipped, count
        mask >>= count
        base += skipped + count


ANY = 1 << 30
"""The largest number of nodes of a job that may have any number."""


def _whole_gpus(request: Request) -> int:
    """Return the whole GPUs of each node that a request is for.

    Raises
    ------
    InputError
        it is for shares, types or slices
    """
    if request.of_devices:
        raise InputError("policy slurm knows whole GPUs alone: a job asks for a share, a type or a slice of one")
    return int(request.gpus_per_node)


class Shape:
    """What a job asks of its nodes; jobs of one shape share it.

    Parameters
    ----------
    request
        nodes, cores, GPUs and memory of each node
    memory_per_cpu
        bytes of each core
    whole_memory
        whether it gets all memory of its nodes
    wishes
        how its cores and GPUs are spread over nodes, if the request does not say it
    bounds
        the least and the largest number of nodes that its partition gives (0: any), if the request does not say it
    cores
        the least cores of a node
    least_loaded
        whether it gets the least loaded nodes
    roomy
        whether it gets more than it asks for: whole nodes, more nodes, more cores for its memory
    grain
        the cores of each node whose memory is counted together

    Attributes
    ----------
    nodes, most_nodes
        the least and the most of its nodes
    unit, least, most
        the cores of a task, and the least and the most cores of a node, most of them if that is told
    gpus
        GPUs in all, on whichever nodes
    never
        why it can never start; empty: it may
    chunks
        the shapes of its chunks, empty if it has none
    each
        cores, GPUs and bytes of each node at least, whether all cores and memory, bytes of each core
    even
        whether each node gets the same: then enough such nodes are enough
    room
        what decides how many cores of each node it could have, if it is not even
    bounded
        whether it may have a few nodes only, which may not be enough though all together are
    single
        whether it asks for one core of each node, and nothing else
    """

    def __init__(
        self,
        request: Request,
        memory_per_cpu: float = 0.0,
        *,
        whole_memory: bool = False,
        wishes: Wishes = NOTHING,
        bounds: tuple[int, int] = (1, 0),
        cores: int = 0,
        least_loaded: bool = False,
        roomy: bool = False,
        grain: Grain = 1.0,
    ) -> None:
        self.request = request
        self.least_loaded, self.roomy, self.grain = least_loaded, roomy, grain
        self.never = ""
        self.memory_per_cpu = memory_per_cpu
        self.memory_per_gpu = wishes.memory_per_gpu or 0.0
        self.whole_memory = whole_memory
        self.exclusive = request.exclusive
        self.even = request.nodes is not None
        self.unit = wishes.cores_per_task if request.nodes is None else request.cores_per_node
        self.least = max(self.unit * (wishes.tasks_per_node if request.nodes is None else 1), self.unit, cores)
        self.most = self.least if wishes.tasks_per_node else inf
        tasks = max(-(-request.processors // self.unit), 1)
        told = wishes.nodes or (1, ANY)
        told = max(told[0], bounds[0]), min(told[1], bounds[1] or ANY)
        self.nodes = request.nodes or told[0]
        self.most_nodes = request.nodes or max(min(told[1], tasks if tasks > 1 else told[1]), told[0])
        if self.most_nodes == 1:
            self.least = max(self.least, request.processors)
        self.bounded = not self.even and self.most_nodes < tasks
        self.gpus_per_task = wishes.gpus_per_task
        self.gpus = wishes.gpus or tasks * self.gpus_per_task
        self.gpus_per_node = max(_whole_gpus(request), wishes.gpus_per_node)
        self.memory_per_node = max(request.memory_per_node, wishes.memory_per_node)
        gpus = max(self.gpus_per_node, min(self.gpus, self.gpus_per_task or 1))
        self.wanted = self.nodes if self.gpus or wishes.nodes is None else self.most_nodes
        memory = self.memory(self.least, gpus)
        self.each: Each = (self.least, gpus, memory, request.exclusive, whole_memory, memory_per_cpu)
        self.chunks = [Shape(part, memory_per_cpu, whole_memory=whole_memory) for part in request.alike()]
        if self.chunks:
            cores, cards, memory = map(min, zip(*(part.each[:3] for part in self.chunks), strict=True))
            self.each = cores, cards, memory, *self.each[3:]
        self.room = (self.exclusive, memory_per_cpu, self.unit, self.gpus_per_task, self.most)
        self.single = self.each[:3] == (1, 0, 0.0) and wishes.nodes is None and self._is_single()

    def _is_single(self) -> bool:
        """Whether nothing else matters if it asks for one core of each node."""
        special = self.whole_memory or self.memory_per_cpu or self.chunks or self.least_loaded or self.bounded
        count = self.request.processors
        return not special and self.nodes <= count and self.request.nodes in (None, count)

    def memory(self, cores: float, gpus: float) -> float:
        """Return the bytes of a node that it needs with a number of cores and GPUs of it."""
        return max(self.memory_per_node, self.memory_per_cpu * cores, self.memory_per_gpu * gpus)

    @property
    def memory_of_each(self) -> Grain:
        """The bytes of each node at least, with the cores that go together with those it asks for."""
        return np.maximum(self.each[2], self.memory_per_cpu * -(-self.least // self.grain) * self.grain)

    @property
    def needed_gpus(self) -> float:
        """The most GPUs of a node that it can use."""
        return inf if self.exclusive and self.each[1] else self.gpus or self.gpus_per_node


def able(free: Free, capacity: Free, shape: Shape) -> int:
    """Return the nodes that meet what a shape asks of each node."""
    cores, gpus, memory, exclusive, whole_memory, _ = shape.each
    flags = free[0] >= cores
    if exclusive:
        flags &= free[0] == capacity[0]
    if gpus:
        flags &= free[1] >= gpus
    if whole_memory:
        flags &= free[2] == capacity[2]
    elif memory:
        flags &= free[2] >= shape.memory_of_each
    return mask_of(flags)


def usable_cores(free: Free, shape: Shape) -> NDArray[np.float64]:
    """Return the cores of each node that a job of a shape could have."""
    cores: NDArray[np.float64] = free[0]
    if shape.exclusive:
        return cores
    if shape.memory_per_cpu and not shape.even:
        cores = np.minimum(cores, free[2] // (shape.memory_per_cpu * shape.grain) * shape.grain)
        cores = cores - cores % shape.unit
    if shape.gpus_per_task:
        cores = np.minimum(cores, free[1] // shape.gpus_per_task * shape.unit)
    return cores if shape.most == inf else np.minimum(cores, shape.most)


def enough(free: Free, shape: Shape, usable: int) -> bool:
    """Whether these nodes, each of which meets the shape, have enough in sum: if it is even, it fits."""
    if usable.bit_count() < shape.nodes:
        return False
    if shape.even:
        return not shape.chunks or _with_chunks(free, shape, nodes_in(usable)) is not None
    flags = flags_of(usable, free.shape[1])
    if usable_cores(free, shape)[flags].sum() < shape.request.processors:
        return False
    return not shape.gpus or bool(free[1][flags].sum() >= shape.gpus)


def at_least(amounts: Sequence[float], nodes: int, wanted: float) -> bool:
    """Whether the amounts of these nodes are enough in sum.

    >>> at_least([4, 2, 8], 0b101, 12), at_least([4, 2, 8], 0b011, 7)
    (True, False)
    """
    while nodes:
        node = nodes & -nodes
        wanted -= amounts[node.bit_length() - 1]
        if wanted <= 0:
            return True
        nodes ^= node
    return False


def _with_chunks(free: Free, shape: Shape, nodes: list[int]) -> list[tuple[int, Shape]] | None:
    """Return the nodes for the chunks of a shape, the first ones that do, and the chunk of each, or ``None``."""
    there = free[:, nodes]
    able = [np.all(there >= np.array(part.each[:3])[:, None], axis=0) for part in shape.chunks]
    part_of = assigned(able, [part.request for part in shape.chunks])
    if part_of is None:
        return None
    return [(nodes[at], shape.chunks[part_of[at]]) for at in np.flatnonzero(part_of >= 0).tolist()]


class _Run(NamedTuple):
    """A run of consecutive nodes: free cores, the first node, negated so that the first sorts last, length, GPUs."""

    cores: float
    negative: int
    length: int
    gpus: float


class Choice:
    """The nodes that a job gets, as they are chosen.

    Parameters
    ----------
    free
        the free capacity of each node
    shape
        what the job asks of its nodes
    usable
        the nodes that it may get, of which there are enough

    Attributes
    ----------
    found
        the chosen nodes, and the cores of each
    nodes, cores, gpus
        how many nodes, cores and GPUs are still missing
    """

    def __init__(self, free: Free, shape: Shape, usable: int) -> None:
        self.shape = shape
        self.usable = usable
        self.free_gpus = free[1]
        self.available = usable_cores(free, shape)
        self.largest = float(self.available.max())
        self.found: list[tuple[int, int]] = []
        self.taken = 0
        self.nodes = shape.wanted
        self.cores = float(shape.request.processors)
        self.gpus = float(shape.gpus)

    @property
    def complete(self) -> bool:
        return self.nodes <= 0 and self.cores <= 0 and self.gpus <= 0

    @property
    def enough(self) -> bool:
        """Whether nothing is missing but nodes that it can do without."""
        return self.cores <= 0 and self.gpus <= 0 and len(self.found) >= self.shape.nodes

    def take(self, node: int) -> None:
        """Take a node."""
        shape = self.shape
        if shape.even:
            count = shape.unit
        elif shape.exclusive:
            count = int(self.available[node])
        else:  # a core is left for each node that is still missing
            left = int(self.cores) - max(shape.nodes - len(self.found) - 1, 0)
            count = max(min(int(self.available[node]), left), shape.least)
        self.found.append((node, count))
        self.taken |= 1 << node
        self.nodes -= 1
        self.cores -= count
        if shape.gpus:
            self.gpus -= self.free_gpus[node]

    def take_from(self, nodes: Sequence[int]) -> bool:
        """Take nodes in order until nothing is missing; return whether that is so.

        The last node that it may have must be enough for what is missing.
        """
        left, even = self.shape.most_nodes - len(self.found), self.shape.even
        for node in nodes:
            if self.complete or not left:
                break
            if not even and left == 1 and self.available[node] < self.cores:
                continue
            self.take(node)
            left -= 1
        return self.complete

    def fitting(self, nodes: Sequence[int]) -> int | None:
        """Return the node that alone is enough, with the fewest free cores, the first of these; ``None``: none is."""
        if self.nodes > 1 or self.cores > self.largest:
            return None
        cores, wanted, gpus = self.available, self.cores, self.gpus
        best = [node for node in nodes if cores[node] >= wanted and (gpus <= 0 or self.free_gpus[node] >= gpus)]
        return min(best, key=lambda node: (cores[node], node), default=None)

    def by_runs(self, weights: Sequence[int]) -> None:
        """Choose by runs of consecutive nodes: those that have nodes already taken first, and outward from these."""
        sums = np.concatenate(([0.0], np.cumsum(np.maximum(self.available, 0.0)))).tolist()
        gpus = np.concatenate(([0.0], np.cumsum(self.free_gpus))).tolist() if self.gpus > 0 else [0.0] * len(sums)
        must = self.taken
        for weight in weights:
            there = [
                _Run(sums[first + count] - sums[first], -first, count, gpus[first + count] - gpus[first])
                for first, count in runs(self.usable & weight)
            ]
            there.sort()  # the largest one last, the first of several
            while there and not self.complete:
                run = there.pop(self._best(there, must))
                nodes = range(-run.negative, run.length - run.negative)
                begun = next((node for node in nodes if must >> node & 1), None) if must else None
                if begun is not None:
                    order = [*range(begun, nodes.stop), *range(begun - 1, nodes.start - 1, -1)]
                    self.take_from([node for node in order if not self.taken >> node & 1])
                elif (alone := self.fitting(nodes)) is not None:
                    self.take(alone)
                else:
                    self.take_from(nodes)
            if self.complete:
                return

    def _best(self, there: Sequence[_Run], must: int) -> int:
        """Return the place of the run to take: with taken nodes, else the smallest that is enough, else the largest."""
        if must:
            for i, run in enumerate(there):
                if must >> -run.negative & ((1 << run.length) - 1):
                    return i
        best = len(there) - 1
        last, wanted = there[best], self.nodes
        if last.cores < self.cores or (last.length < wanted and max([run.length for run in there]) < wanted):
            return best
        fits = False
        for i, run in enumerate(there):
            if run.cores >= self.cores and run.length >= self.nodes and run.gpus >= self.gpus:
                if fits and run.cores > there[best].cores:
                    break
                best, fits = i, True
        return best

    def least_loaded(self, weights: Sequence[int], capacity: NDArray[np.float64]) -> None:
        """Choose the nodes with the largest part of their cores free (``CR_LLN``)."""
        cores = self.available
        for weight in weights:
            nodes = nodes_in(self.usable & weight & ~self.taken)
            if self.take_from(sorted(nodes, key=lambda node: (-cores[node] / capacity[node], node))):
                return

    def by_switches(self, layout: Layout) -> bool:
        """Choose by leaf switches; return whether all nodes have one, which is not so if there are none.

        Nodes of the lowest weights that together are enough are looked at, and all of these but the last weight are
        taken. Then come leaf switches: near ones first, and of these the one with the fewest nodes that is enough; if
        none is, that below the switch for which this holds, and at last that with most nodes.
        """
        switches, best = layout.switches, self._of_lowest_weights(layout)
        counts = [(switch.nodes & best).bit_count() for switch in switches]
        begun = [i for i, switch in enumerate(switches) if switch.nodes & self.taken]
        for i in begun:
            if not switches[i].level and self.take_from(nodes_in(switches[i].nodes & best & ~self.taken)):
                break
        distances = [sum(layout.distances[j][i] for j in begun) for i in range(len(switches))]
        rest = [i for i, switch in enumerate(switches) if not switch.level and i not in begun]
        while rest and not self.complete:
            near = [i for i in rest if counts[i] and distances[i] < FAR]
            if not near:
                return False
            chosen = self._nearest(near, distances, counts, layout)
            rest.remove(chosen)
            self.take_from(nodes_in(switches[chosen].nodes & best & ~self.taken))
            counts[chosen] = 0
            distances = [far + more for far, more in zip(distances, layout.distances[chosen], strict=True)]
        return self.complete

    def _of_lowest_weights(self, layout: Layout) -> int:
        """Take the nodes of the lowest weights that are not enough, and return them with those of the next weight."""
        usable, best = self._of_one_tree(layout), self.taken
        for weight in layout.weights:
            if best & ~self.taken and self._suffices(best):
                break
            for node in nodes_in(best & ~self.taken):
                self.take(node)
            best |= usable & weight
        return best

    def _of_one_tree(self, layout: Layout) -> int:
        """Return the usable nodes below the highest switch that has enough of them, or those already taken."""
        top: tuple[int, int, int] | None = None
        for i, switch in enumerate(layout.switches):
            mine = switch.nodes & self.usable
            if self.taken & mine or (not self.taken and mine.bit_count() >= self.nodes):
                weight = next(j for j, each in enumerate(layout.weights) if each & mine)
                rank = (switch.level, -weight if not self.taken else 0, i if not self.taken else -i)
                top = rank if top is None else max(top, rank)
        if top is None:
            return 0
        return layout.switches[abs(top[2])].nodes & self.usable

    def _suffices(self, nodes: int) -> bool:
        free = nodes & ~self.taken
        cores = self.available[flags_of(free, len(self.available))].sum()
        return free.bit_count() >= self.nodes and bool(cores >= self.cores)

    def _nearest(self, leaves: Sequence[int], distances: list[int], counts: list[int], layout: Layout) -> int:
        """Return the leaf switch that is nearest, and of these the one that fits best."""
        chosen = leaves[0]
        for i in leaves[1:]:
            fit = self._compare(i, chosen, counts, layout)
            if fit >= 0 if distances[i] < distances[chosen] else distances[i] == distances[chosen] and fit > 0:
                chosen = i
        return chosen

    def _compare(self, i: int, j: int, counts: list[int], layout: Layout) -> int:
        """Return 1 if a switch fits better than another, -1 if worse, and else 0."""
        switches, wanted = layout.switches, self.nodes
        while True:
            fits = counts[i] >= wanted, counts[j] >= wanted
            if all(fits):
                if counts[i] != counts[j]:
                    return 1 if counts[i] < counts[j] else -1
                break
            if any(fits):
                return 1 if fits[0] else -1
            above = switches[i].parent, switches[j].parent
            if above[0] == above[1] or above == (i, j):
                break
            i, j = above
        if counts[i] != counts[j]:
            return 1 if counts[i] > counts[j] else -1
        levels = switches[i].level, switches[j].level
        return (levels[0] < levels[1]) - (levels[0] > levels[1])


def choose(
    free: Free,
    shape: Shape,
    usable: int,
    *,
    layout: Layout | None = None,
    must: int = 0,
    least_loaded: NDArray[np.float64] | None = None,
) -> list[tuple[int, int]] | None:
    """Return the nodes that a job gets of these usable nodes, of which there are enough, and its cores on each.

    Parameters
    ----------
    layout
        the weights and switches of nodes; with switches, nodes are chosen by them; ``None``: neither
    must
        nodes that it gets in any case
    least_loaded
        the cores of each node, if those with most free cores come first (``CR_LLN``), instead of runs

    Returns
    -------
    list of tuple or None
        ``None``: no tree of switches has enough of these nodes

    >>> from simmodel.resources.pools.allocation import Request
    >>> free = np.ones((3, 8))
    >>> choose(free, Shape(Request(2, nodes=2)), 0b11101101), choose(free, Shape(Request(4, nodes=4)), 0b11101101)
    ([(2, 1), (3, 1)], [(5, 1), (6, 1), (7, 1), (0, 1)])
    """
    if shape.chunks:
        found = dict(_with_chunks(free, shape, [*nodes_in(must), *nodes_in(usable & ~must)]) or ())
        chosen = [(node, part.least) for node, part in found.items()]
        return chosen if found and found.keys() >= set(nodes_in(must)) else None
    for nodes in _without_weak(free, shape, usable, must):
        choice = Choice(free, shape, nodes)
        if choice.take_from(nodes_in(must)) or _placed(choice, layout, least_loaded) or choice.enough:
            return _by_tasks(choice.found, shape)
    return None


def _placed(choice: Choice, layout: Layout | None, least_loaded: NDArray[np.float64] | None) -> bool:
    """Choose what is missing; return whether nothing is missing any more."""
    if layout is not None and layout.switches:
        return choice.by_switches(layout)
    weights = [choice.usable] if layout is None else layout.weights
    if choice.shape.each[1]:
        weights = [nodes for weight in weights for nodes in _by_gpus(choice, choice.usable & weight)]
    if least_loaded is not None:
        choice.least_loaded(weights, least_loaded)
    else:
        choice.by_runs(weights)
    return choice.shape.even


def _by_gpus(choice: Choice, nodes: int) -> list[int]:
    """Return sets of nodes: those with most of the GPUs that a job can use come first."""
    most = choice.shape.needed_gpus
    found: dict[float, int] = {}
    for node in nodes_in(nodes):
        near = min(float(choice.free_gpus[node]), most)
        found[near] = found.get(near, 0) | 1 << node
    return [found[near] for near in sorted(found, reverse=True)]


def _without_weak(free: Free, shape: Shape, usable: int, must: int) -> Iterator[int]:
    """Yield the usable nodes, and while no choice is found, those without the ones with the fewest cores and GPUs.

    An uneven job that may have a few nodes only may need the largest ones.
    """
    yield usable
    if shape.even:
        return
    amounts = usable_cores(free, shape) + (free[1] if shape.each[1] else 0.0)
    order = sorted(nodes_in(usable & ~must), key=lambda node: (amounts[node], node))
    for i, node in enumerate(order):
        if usable.bit_count() <= shape.nodes or amounts[node] == amounts[order[-1]]:
            return
        usable &= ~(1 << node)
        if usable.bit_count() <= shape.nodes or amounts[order[i + 1]] > amounts[node]:
            yield usable


def _by_tasks(chosen: list[tuple[int, int]], shape: Shape) -> list[tuple[int, int]]:
    """Return chosen nodes with the cores that tasks have: one task on each first, the others in turn.

    Tasks that find no room for all their cores get those that are left.

    >>> from simmodel.resources.pools.allocation import Request
    >>> _by_tasks([(0, 8), (1, 4)], Shape(Request(12), wishes=Wishes.of("-N 2 -c 3")))
    [(0, 8), (1, 3)]
    """
    unit, total = shape.unit, shape.request.processors
    filled = unit == 1 and sum([cores for _, cores in chosen]) <= total
    if filled or shape.even or shape.exclusive or shape.most < inf:
        return chosen
    chosen = sorted(chosen)
    room = [cores for _, cores in chosen]
    tasks = [1] * len(room)
    for least in (unit, 1):
        added = True
        while sum(tasks) * unit < total and added:
            added = False
            for i, cores in enumerate(room):
                if sum(tasks) * unit < total and cores - tasks[i] * unit >= least:
                    tasks[i] += 1
                    added = True
    return [(node, min(max(tasks[i] * unit, shape.least), cores)) for i, (node, cores) in enumerate(chosen)]


def choose_alike(usable: int, wanted: int) -> int:
    """Return the nodes that :func:`choose` returns if each has one core, as bits; 0: there are too few.

    >>> nodes_in(choose_alike(0b11101101, 2)), nodes_in(choose_alike(0b11101101, 4))
    ([2, 3], [0, 5, 6, 7])
    """
    starts, length = usable, 1  # the nodes at which runs of a length begin
    while length < wanted and starts:
        step = min(length, wanted - length)
        starts &= starts >> step
        length += step
    if starts:
        return ((1 << wanted) - 1) << _shortest(starts)
    if usable.bit_count() < wanted:
        return 0
    # the largest runs, until one is enough for what is missing
    flags = flags_of(usable << 1, usable.bit_length() + 2)
    edges = np.flatnonzero(flags[1:] != flags[:-1])
    firsts, lengths = edges[::2], edges[1::2] - edges[::2]
    order = np.argsort(-lengths, kind="stable")
    sums = lengths[order].cumsum()
    whole = int(sums.searchsorted(wanted))
    least = wanted - int(sums[whole - 1]) if whole else wanted
    lengths = lengths[order]
    last = int(lengths[lengths >= least][-1])  # the smallest that is enough; of several the first
    at = int((-lengths).searchsorted(-last)) if last < lengths[whole] else whole
    flags[:] = False
    for first, count in zip(firsts[order[:whole]].tolist(), lengths[:whole].tolist(), strict=True):
        flags[first : first + count] = True
    first = int(firsts[order[at]])
    flags[first : first + least] = True
    return mask_of(flags)


def _shortest(nodes: int) -> int:
    """Return the first node of the shortest run of consecutive nodes, the first of several."""
    longer = nodes & ~(nodes << 1)  # the first node of each run that is long enough
    for length in range(1, 9):
        found, longer = longer, longer & (nodes >> length)
        if found := found & ~longer:
            return (found & -found).bit_length() - 1
    return min([(count, first) for first, count in runs(nodes)])[1]


class Roomy(Allocation):
    """An allocation that may have more than a job asks for: whole cores, sockets or nodes, or more nodes."""

    __slots__ = ()

    def meets(self, request: Request) -> bool:
        """Whether it has what a request asks for."""
        if request.chunks:
            return self.meets_chunks(request, more=True)
        cores, gpus, memory = self.amounts
        each = request.cores_per_node if request.nodes is not None else 1
        able = (cores >= each) & (gpus >= request.gpus_per_node) & (memory >= request.memory_per_node)
        enough = request.loose or self.processors >= request.processors
        return bool(able.all()) and len(able) >= (request.nodes or 1) and enough


def whole_pieces(count: int, unit: int, free: int, pieces: tuple[int, int], settings: SlurmConf) -> int:
    """Return the CPUs of a node that a job takes that asks for some: those of whole cores or sockets.

    CPUs are dealt out over sockets in turn, so that a job has as many of these as it can; tasks of several CPUs are
    not, where a socket has room for one.

    Parameters
    ----------
    count, unit
        the CPUs that it asks for, and those of a task
    pieces
        the CPUs of a core, and of a socket

    >>> from simmodel_site.policy.settings import SlurmConf
    >>> sockets, block = SlurmConf(allocates="socket"), SlurmConf(allocates="socket", dist_block=True)
    >>> whole_pieces(3, 1, 8, (2, 8), SlurmConf()), [whole_pieces(3, 1, 8, (1, 4), each) for each in (sockets, block)]
    (4, [8, 4])
    >>> whole_pieces(4, 2, 8, (1, 4), sockets), whole_pieces(6, 3, 8, (1, 4), sockets)
    (4, 8)
    """
    threads, socket = pieces
    cores = -(-count // threads)
    if settings.allocates != "socket":
        return cores * threads
    if 1 < unit <= socket:
        sockets = -(-count // (socket // unit * unit))
    else:
        sockets = max(-(-count // socket), 1 if settings.dist_block else min(cores, free // socket))
    return min(sockets * socket, free)


def allocation_of(
    table: NodeTable,
    shape: Shape,
    chosen: list[tuple[int, int]],
    settings: SlurmConf,
    pieces: Mapping[int, tuple[int, int]],
) -> Allocation:
    """Return the parts of chosen nodes that a job takes: whole nodes if it asks for them, else whole cores or sockets.

    Of GPUs in all, each node in turn gives as many as it can, so that one is left for each of the others.

    Parameters
    ----------
    pieces
        the CPUs of a core and of a socket of the nodes where they are more than one
    """
    rows, left = [], shape.gpus
    part_of = dict(_with_chunks(table.free, shape, [node for node, _ in chosen]) or ()) if shape.chunks else {}
    for i, (node, count) in enumerate(sorted(chosen)):
        cores, gpus, memory = table.capacity[:, node].tolist()
        if node in part_of:
            shape = part_of[node]
        if not shape.exclusive:
            cores, gpus = count, shape.gpus_per_node
            if node in pieces:
                unit, free = 1 if shape.even else shape.unit, int(table.free[0, node])
                cores = whole_pieces(count, unit, free, pieces[node], settings)
            if shape.gpus_per_task:
                gpus = -(-count // shape.unit) * shape.gpus_per_task
            elif shape.gpus:
                gpus = min(table.free[1, node], max(left - (len(chosen) - 1 - i), 0))
                left -= gpus
        charged = shape.memory(count if settings.allocates == "cpu" and not shape.exclusive else cores, gpus)
        rows.append((node, cores, gpus, memory if shape.whole_memory else min(table.free[2, node], charged)))
    return (Roomy if pieces or shape.roomy else Allocation).of(rows)
