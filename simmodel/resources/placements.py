"""Placements: the choice among the nodes that a request can have.

Requests for nodes get the first ones in the order of the placement. Requests for cores anywhere get cores of nodes in
that order, or of the fewest nodes. Ties go to the node of lower number.

Sources: first fit and best fit: Johnson, "Fast algorithms for bin packing", J. Comput. Syst. Sci. 8(3), 1974; batch
systems call the packed placement "pack" or "least nodes", and the opposite "spread" or "least loaded".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from simmodel.platform.placements import PLACEMENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]  # of nodes
    Amounts = NDArray[np.float64]
    Nodes = Callable[["Table", Numbers], Numbers]
    Cores = Callable[["Table", Numbers, Amounts, int], tuple[Numbers, Amounts]]

__all__ = ["Placement", "fewest", "placement_named", "register_placement"]


class Table(Protocol):
    """What placements see of the nodes: the arrays of what is free and of the capacity, of shape (3, nodes)."""

    free: Amounts
    capacity: Amounts


class Placement(NamedTuple):
    """A choice among nodes.

    ``nodes(table, candidates)`` returns the candidates in order of preference; ``cores(table, candidates, free,
    processors)`` the nodes for cores anywhere, and the cores of each; ``plain``: whether idle nodes that are alike are
    taken by number.
    """

    nodes: Nodes
    cores: Cores
    plain: bool = False


def register_placement(name: str, nodes: Nodes) -> None:
    """Make a placement known by a name, which ``PartitionSpec(placement=)`` and platform files accept from then on.

    Parameters
    ----------
    name
        its name; replaces another placement of that name
    nodes
        ``nodes(table, candidates)`` returns the candidates, an array of node numbers, in order of preference;
        ``table.free`` and ``table.capacity`` hold cores, GPUs and bytes of memory by node

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> register_placement("last", lambda table, candidates: candidates[::-1])
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4, cores=8)], placement="last")])
    >>> simulate(spec, [Job(nodes=2, cores_per_node=4, run=10)]).runs["nodes"]
    array([(2, 3)], dtype=object)
    >>> del PLACEMENTS["last"]
    """

    def cores(table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
        order = np.searchsorted(candidates, nodes(table, candidates))
        return _until_enough(candidates[order], free[0][order], processors)

    PLACEMENTS[name] = Placement(nodes, cores)


def placement_named(name: str) -> Placement:
    """Return the placement of a name."""
    found: Placement = PLACEMENTS[name]
    return found


def _by_number(_table: Table, candidates: Numbers) -> Numbers:
    return candidates


def _fullest(table: Table, candidates: Numbers) -> Numbers:
    cores, gpus = table.free[:2, candidates]
    return candidates[np.lexsort((gpus, cores))]


def _emptiest(table: Table, candidates: Numbers) -> Numbers:
    cores, gpus = table.free[:2, candidates]
    return candidates[np.lexsort((-gpus, -cores))]


def _used_first(table: Table, candidates: Numbers) -> Numbers:
    return candidates[np.argsort(table.free[0, candidates] == table.capacity[0, candidates], kind="stable")]


def _until_enough(candidates: Numbers, cores: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    """Take nodes in order until there are enough cores."""
    total = np.cumsum(cores)
    last = int(np.searchsorted(total, processors))
    taken = cores[: last + 1].copy()
    taken[last] -= total[last] - processors
    return candidates[: last + 1], taken


def _cores_by_number(_table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    return _until_enough(candidates, free[0], processors)


def _cores_fullest(_table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    order = np.argsort(free[0], kind="stable")
    return _until_enough(candidates[order], free[0][order], processors)


def _cores_emptiest(_table: Table, candidates: Numbers, free: Amounts, processors: int) -> tuple[Numbers, Amounts]:
    order = np.argsort(-free[0], kind="stable")
    return _until_enough(candidates[order], free[0][order], processors)


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


FIRST_FIT = Placement(_by_number, _cores_by_number, plain=True)
BEST_FIT = Placement(_fullest, _cores_fullest, plain=True)
PACKED = Placement(_used_first, fewest, plain=True)
SPREAD = Placement(_emptiest, _cores_emptiest, plain=True)
