"""The traffic of a job: who among its nodes sends how much to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.loading import check_count
from simmodel.foundation.units import in_bytes, in_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.int64]

__all__ = ["PATTERNS", "Messages", "Phase", "Phases", "Slowed", "Traffic"]


def _all_to_all(nodes: int) -> tuple[Numbers, Numbers]:
    sources, destinations = np.divmod(np.arange(nodes * nodes), nodes)
    apart = sources != destinations
    return sources[apart], destinations[apart]


def _ring(nodes: int) -> tuple[Numbers, Numbers]:
    sources = np.arange(nodes if nodes > 1 else 0)
    return sources, (sources + 1) % max(1, nodes)


def _both_ways(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    return np.concatenate((low, high)), np.concatenate((high, low))


def _grid(nodes: int, dimensions: int) -> tuple[Numbers, Numbers]:
    """Return the neighbours in a grid that is as even as possible, whose last layer may not be full."""
    every, step = np.arange(nodes), 1
    low, high = [every[:0]], [every[:0]]
    for left in range(dimensions, 0, -1):
        size = ceil(round((ceil(nodes / step)) ** (1 / left), 9))
        near = every[(every // step % size < size - 1) & (every + step < nodes)]
        low.append(near)
        high.append(near + step)
        step *= size
    return _both_ways(np.concatenate(low), np.concatenate(high))


def _tree(nodes: int) -> tuple[Numbers, Numbers]:
    children = np.arange(1, max(1, nodes))
    return _both_ways((children - 1) // 2, children)


def _butterfly(nodes: int) -> tuple[Numbers, Numbers]:
    every = np.arange(nodes)
    rounds = [every ^ (1 << bit) for bit in range(max(0, nodes - 1).bit_length())]
    sources = np.concatenate([every[each < nodes] for each in rounds] or [every[:0]])
    return sources, np.concatenate([each[each < nodes] for each in rounds] or [every[:0]])


PATTERNS: Mapping[str, Callable[[int], tuple[Numbers, Numbers]]] = {
    "all-to-all": _all_to_all,
    "ring": _ring,
    "stencil-2d": lambda nodes: _grid(nodes, 2),
    "stencil-3d": lambda nodes: _grid(nodes, 3),
    "tree": _tree,
    "butterfly": _butterfly,
}
"""The patterns by name: sources and destinations of the messages among a number of nodes."""

Matrix: TypeAlias = tuple[tuple[float, ...], ...]


def _pattern(value: str | Iterable[Iterable[float]]) -> str | Matrix:
    if isinstance(value, str):
        return value
    return tuple(tuple(float(amount) for amount in row) for row in value)


def _above_zero(_instance: Traffic, attribute: attrs.Attribute[float], value: float | str) -> None:
    if isinstance(value, str) or not 0 < value < inf:
        raise InputError(f"{attribute.name}: must be a number > 0 or a quantity such as '16GB', got {value!r}")


class Messages(Fields):
    """What a job sends: traffic that goes on all the time, or phases that follow each other."""

    def why_not(self, nodes: int) -> str | None:
        """Return why a job on a number of nodes cannot have it, or ``None``."""
        raise NotImplementedError

    @property
    def scales(self) -> bool:
        """Whether a job on any number of nodes can have it: it has no matrix."""
        raise NotImplementedError

    def phases(self, compute: float) -> tuple[Phase, ...]:
        """Return the phases of a job with a ``compute`` of so many seconds."""
        raise NotImplementedError

    def total(self, nodes: int) -> float:
        """Return the bytes of all messages among a number of nodes."""
        raise NotImplementedError


@attrs.frozen(repr=False)
class Traffic(Messages):
    """The messages among the nodes of a job, which go on while it computes and are over when it ends.

    They begin after the longest latency of their routes.

    Parameters
    ----------
    pattern
        ``"all-to-all"``; ``"ring"``: each node sends to the next one; ``"stencil-2d"`` and ``"stencil-3d"``: to its
        neighbours in an even grid; ``"tree"``: along a binary tree, up and down; ``"butterfly"``: in round k with the
        node whose number differs in bit k; or a matrix, row i of which has the messages of node i to each node, those
        to itself over its loopback. Nodes are counted in the order of their numbers
    bytes
        of each message, or a text such as ``"16MB"``; a factor of the entries of a matrix. Default: 1
    repeats
        how often all of it is sent

    Raises
    ------
    InputError
        the pattern is unknown, or the matrix is not square or has an amount < 0

    >>> Traffic("ring", bytes="1MB", repeats=3).messages(4)[2]
    array([3000000., 3000000., 3000000., 3000000.])
    >>> [each.tolist() for each in Traffic([[0, 5], [2, 0]]).messages(2)]
    [[0, 1], [1, 0], [5.0, 2.0]]
    """

    pattern: str | Matrix = attrs.field(converter=_pattern)
    bytes: float = attrs.field(default=1.0, converter=in_bytes, validator=_above_zero)
    repeats: float = attrs.field(default=1.0, validator=_above_zero)

    @pattern.validator
    def _known(self, _attribute: attrs.Attribute[object], value: str | Matrix) -> None:
        if isinstance(value, str):
            if value not in PATTERNS:
                raise InputError(unknown("pattern", value, [*PATTERNS, "a matrix of bytes"]).message)
            return
        if not value or any(len(row) != len(value) for row in value):
            raise InputError(
                f"pattern: must have a row and a column for each node, got rows of {list(map(len, value))}"
            )
        for node, row in enumerate(value):
            if not all(isfinite(amount) and amount >= 0 for amount in row):
                raise InputError(f"pattern[{node}]: must have amounts >= 0, got {list(row)}")

    def why_not(self, nodes: int) -> str | None:
        """Return why a job on a number of nodes cannot have this traffic, or ``None``."""
        if isinstance(self.pattern, str) or len(self.pattern) == nodes:
            return None
        return f"traffic: must be a matrix of the {nodes} nodes of the job, got one of {len(self.pattern)}"

    @property
    def scales(self) -> bool:
        """Whether a job on any number of nodes can have it: it has no matrix."""
        return isinstance(self.pattern, str)

    def phases(self, compute: float) -> tuple[Phase, ...]:
        """Return the phases of a job that computes for so many seconds meanwhile: there is one."""
        return (Phase(self, compute),)

    def total(self, nodes: int) -> float:
        """Return the bytes of all messages among a number of nodes.

        >>> Traffic("all-to-all", bytes=2).total(4), Traffic("tree", bytes=2).total(4)
        (24.0, 12.0)
        """
        if self.pattern == "all-to-all":
            return nodes * (nodes - 1) * self.bytes * self.repeats
        return float(self.messages(nodes)[2].sum())

    def messages(self, nodes: int) -> tuple[Numbers, Numbers, NDArray[np.float64]]:
        """Return the sources, the destinations and the bytes of all messages among a number of nodes."""
        each = self.bytes * self.repeats
        if isinstance(self.pattern, str):
            sources, destinations = PATTERNS[self.pattern](nodes)
            return sources, destinations, np.full(len(sources), each)
        amounts = np.array(self.pattern)
        sources, destinations = np.nonzero(amounts)
        return sources, destinations, amounts[sources, destinations] * each


@attrs.frozen(repr=False)
class Phase(Fields):
    """A phase of a job: the traffic among its nodes, and the seconds that they compute meanwhile at speed 1."""

    traffic: Traffic | None = None
    compute: float = attrs.field(default=0.0, converter=in_seconds)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.compute < inf or (self.traffic is None and not self.compute):
            raise InputError(f"compute: must be > 0 in a phase without traffic, and >= 0 in others, got {self.compute}")


def _steps(value: Iterable[Phase]) -> tuple[Phase, ...]:
    return tuple(value)


@attrs.frozen(repr=False)
class Phases(Messages):
    """Phases of a job that follow each other, all of them several times.

    Each begins once the one before is over. They are in place of the traffic of a job and of its ``compute``.

    Parameters
    ----------
    steps
        each a :class:`Phase`
    repeats
        how often all of them go on

    Raises
    ------
    InputError
        there are no phases, or ``repeats`` is no whole number >= 1

    >>> flow = Phases([Phase(Traffic("ring", bytes="1MB"), compute=2), Phase(compute=5)], repeats=2)
    >>> [phase.compute for phase in flow.phases()], flow.total(3)
    ([2, 5, 2, 5], 6000000.0)
    """

    steps: tuple[Phase, ...] = attrs.field(converter=_steps)
    repeats: int = 1

    def __attrs_post_init__(self) -> None:
        if not self.steps:
            raise InputError("steps: must have a phase, got none")
        if isinstance(self.repeats, bool) or not isinstance(self.repeats, int) or self.repeats < 1:
            raise InputError(f"repeats: must be a whole number >= 1, got {self.repeats!r}")
        check_count("steps", len(self.steps) * self.repeats)

    def why_not(self, nodes: int) -> str | None:
        """Return why a job on a number of nodes cannot have these phases, or ``None``."""
        found = (phase.traffic.why_not(nodes) for phase in self.steps if phase.traffic is not None)
        return next((reason for reason in found if reason is not None), None)

    @property
    def scales(self) -> bool:
        """Whether a job on any number of nodes can have them: none has a matrix."""
        return all(phase.traffic is None or phase.traffic.scales for phase in self.steps)

    def phases(self, compute: float = 0.0) -> tuple[Phase, ...]:
        """Return all phases, one after the other; ``compute`` is that of each."""
        return self.steps * self.repeats

    def total(self, nodes: int) -> float:
        """Return the bytes of all messages among a number of nodes."""
        return sum(phase.traffic.total(nodes) for phase in self.steps if phase.traffic is not None) * self.repeats


class Slowed(NamedTuple):
    """How an execution with traffic went: the seconds that it would have taken alone, and who slowed it.

    ``by``: the id of a job, where the link is that both use, and the seconds lost there, the most first; the job is
    that with most of the link's bytes/s. Both are of the part of the job that this execution did.

    >>> Slowed(10.0, ((17, "group 3 - group 5", 4.0),)).text()
    'slowed 1.4 by job 17 on group 3 - group 5'
    """

    alone: float
    by: tuple[tuple[int | str, str, float], ...] = ()

    def text(self, most: int = 3) -> str:
        """Return who slowed it as a clause; at most so many."""
        if not self.alone:
            return ""
        told = [f"{1 + lost / self.alone:.3g} by job {job} on {where}" for job, where, lost in self.by[:most]]
        return f"slowed {', '.join(told)}" if told else ""
