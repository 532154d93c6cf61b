"""Placements that look at the network: along Hilbert's curve, by groups of a dragonfly, and of the fewest hops.

Sources: the curve and the choice of its densest stretch: V. J. Leung et al., "Processor allocation on Cplant: achieving
general processor locality using one-dimensional allocation strategies", CLUSTER 2002; its index: J. Skilling,
"Programming the Hilbert curve", AIP Conf. Proc. 707, 2004. Groups of dragonflies, and the hybrid of small and large
jobs: X. Yang, J. Jenkins, M. Mubarak, R. B. Ross, Z. Lan, "Watch out for the bully! Job interference study on dragonfly
network", SC 2016. The fewest hops: the nodes next to each candidate, of S. O. Krumke et al., "Compact location
problems", Theor. Comput. Sci. 181(2), 1997; and growth by the least sum.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar
from zlib import crc32

import numpy as np

from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.resources.pools.placements import PACKED, NodeChoice, Table, until_enough

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import PartitionSpec

    Numbers = NDArray[np.intp]
    Amounts = NDArray[np.float64]

__all__ = ["FewestHops", "GroupFirst", "Hilbert", "Hybrid", "Random", "RandomGroups", "curve"]

SEEDS = 4096
"""The most nodes from which the nearest ones are tried."""


class OnNetwork(NodeChoice):
    """The base class of placements that need a network."""

    needs: ClassVar[str] = "given"

    @classmethod
    def supports(cls, network: NodeNetwork) -> bool:
        """Whether it can place nodes of a network."""
        return True

    @classmethod
    def refuses(cls, spec: PartitionSpec) -> str | None:
        """Return that the partition lacks the network that it needs, or ``None``."""
        if spec.network is not None and cls.supports(NodeNetwork.of(spec.network, spec.node_names)):
            return None
        return f"needs a partition whose network is {cls.needs}"

    def cores(self, table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        """Return the nodes that it would choose if all had as many free cores as the best, and more if needed."""
        count = min(len(candidates), int(-(-processors // free[0].max())))
        order = np.searchsorted(candidates, self.nodes(table, candidates, count))
        return until_enough(candidates[order], free[0][order], processors)


class Hilbert(OnNetwork):
    """on a torus: nodes that follow each other on Hilbert's curve, where the free ones are densest"""

    needs = "a torus or a mesh"

    @classmethod
    def supports(cls, network: NodeNetwork) -> bool:
        """Whether the network is a torus or a mesh."""
        return network.torus is not None

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the stretch of the curve with enough candidates that is shortest first; ties: the first one."""
        network = table.network
        assert network is not None
        assert network.torus is not None
        along: Numbers = curve(network.torus.dimensions)[network.hosts[candidates]]
        order = np.argsort(along)
        spans: Numbers = along[order[count - 1 :]] - along[order[: len(order) - count + 1]]
        first = int(np.argmin(spans))
        found: Numbers = candidates[
            np.concatenate([order[first : first + count], order[:first], order[first + count :]])
        ]
        return found


@cache
def curve(sizes: tuple[int, ...]) -> Numbers:
    """Return the index of each host of a torus on Hilbert's curve through the smallest cube of 2^n that encloses it.

    >>> np.argsort(curve((4, 2))).tolist()
    [0, 1, 5, 4, 7, 6, 2, 3]
    """
    at = np.array(np.unravel_index(np.arange(np.prod(sizes)), sizes, order="F"))
    bits = max(1, int(max(sizes) - 1).bit_length())
    places = [1 << bit for bit in range(bits - 1, 0, -1)]
    for place in places:
        for each in at:
            swapped = np.where(each & place, 0, (at[0] ^ each) & (place - 1))
            at[0] ^= np.where(each & place, place - 1, swapped)
            each ^= swapped
    at = np.bitwise_xor.accumulate(at)
    flipped = np.zeros_like(at[0])
    for place in places:
        flipped ^= np.where(at[-1] & place, place - 1, 0)
    at ^= flipped
    index: Numbers = np.zeros_like(flipped)
    for bit in range(bits - 1, -1, -1):
        for each in at:
            index = index << 1 | (each >> bit & 1)
    return index


class InGroups(OnNetwork):
    """The base class of placements by the groups of a dragonfly."""

    needs = "a dragonfly"

    @classmethod
    def supports(cls, network: NodeNetwork) -> bool:
        return network.groups is not None

    def groups(self, table: Table) -> Numbers:
        """Return the number of the group of each node."""
        network = table.network
        assert network is not None
        assert network.groups is not None
        return network.groups


class GroupFirst(InGroups):
    """on a dragonfly: the fewest groups, the last one with the fewest nodes that are enough"""

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the candidates of the fewest groups first, in each the partly used ones."""
        return PACKED.nodes(table._replace(switches=self.groups(table)), candidates, count)

    def cores(self, table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        """Return the fewest nodes of the fewest groups."""
        return PACKED.cores(table._replace(switches=self.groups(table)), candidates, free, processors)


class RandomGroups(InGroups):
    """on a dragonfly: groups in random order, by the seed of the run, one after the other"""

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the candidates by the rank of their group, which depends on them, their number and the seed alone."""
        groups = self.groups(table)
        rank = draws(table, b"random-groups", candidates, count).permutation(int(groups.max()) + 1)
        return candidates[np.argsort(rank[groups[candidates]], kind="stable")]


class Random(NodeChoice):
    """any nodes, in random order by the seed of the run"""

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the candidates in an order that depends on them, their number and the seed alone."""
        return draws(table, b"random", candidates, count).permutation(candidates)

    def devices(self, table: Table, node: int, numbers: list[int]) -> list[int]:
        """Return the devices in an order that depends on what is free, on them and on the seed alone."""
        return draws(table, b"devices", np.array(numbers), node).permutation(numbers).tolist()  # type: ignore[no-any-return]


def draws(table: Table, name: bytes, candidates: Numbers, count: int) -> np.random.Generator:
    state = [crc32(candidates.astype("<i8").tobytes()), count]
    if table.devices is not None:  # else a node is drawn until it is full
        state.append(crc32(table.free[:2].tobytes()))
    return np.random.default_rng([table.seed, crc32(name), *state])


class Hybrid(GroupFirst):
    """on a dragonfly: jobs of at most as many nodes as a group, or ``limit``, in a group; larger ones over all groups

    Parameters
    ----------
    limit
        the most nodes of a small job, as in ``"hybrid(16)"``; default: the nodes of a group
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the candidates of the fewest groups first, or one of each group in turn."""
        groups = self.groups(table)
        if count <= (np.bincount(groups).max() if self.limit is None else self.limit):
            return super().nodes(table, candidates, count)
        order = np.argsort(groups[candidates], kind="stable")
        of = groups[candidates[order]]
        turn = np.arange(len(order)) - np.searchsorted(of, of)
        return candidates[order[np.lexsort((of, turn))]]

    cores = OnNetwork.cores


class FewestHops(OnNetwork):
    """nodes next to each other: from the one with the nearest free ones on, each of the fewest hops to the others"""

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the nodes that grow from the candidate whose nearest ones are of the fewest hops; ties: by number."""
        network = table.network
        assert network is not None
        seeds = candidates[:: -(-len(candidates) // SEEDS)]
        near = network.hops(seeds[:, None], candidates) if len(network) > SEEDS else _square(network, candidates)
        total, left = np.zeros(len(seeds), dtype=np.intp), np.full(len(seeds), count)
        for hops in range(int(near.max(initial=0)) + 1):
            here = np.minimum(np.count_nonzero(near == hops, axis=1), left)
            total += hops * here
            left -= here
            if not left.any():
                break
        seed = int(np.searchsorted(candidates, seeds[np.argmin(total)]))
        sums = np.zeros(len(candidates), dtype=np.int64)
        order = [seed]
        for _ in range(count - 1):
            last = order[-1]
            sums += near[last] if len(near) == len(candidates) else network.hops(candidates[last], candidates)
            sums[last] = np.iinfo(np.int64).max // 2
            order.append(int(np.argmin(sums)))
        return np.concatenate([candidates[order], np.delete(candidates, order)])


def _square(network: NodeNetwork, nodes: Numbers) -> Numbers:
    hops = network.all_hops()
    return hops if len(nodes) == len(hops) else hops[np.ix_(nodes, nodes)]
