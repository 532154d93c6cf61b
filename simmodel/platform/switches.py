"""The switches of nodes: the name of each, from the specs of the nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

__all__ = ["switch_names", "switch_numbers"]


class Connected(Protocol):
    """Nodes of one kind, as the spec of nodes has it."""

    @property
    def count(self) -> int:
        """Number of nodes."""
        ...

    @property
    def switch(self) -> int | str | None:
        """Name or number of their switch."""
        ...

    @property
    def nodes_per_switch(self) -> int | None:
        """Nodes on each of several switches."""
        ...


def switch_names(kinds: Iterable[Connected]) -> Iterator[str | None]:
    """Yield the name of the switch of each node of some kinds; ``None`` if it has none.

    >>> from simmodel.platform import NodeSpec
    >>> list(switch_names([NodeSpec(count=3, switch="s", nodes_per_switch=2), NodeSpec(switch=4), NodeSpec()]))
    ['s0', 's0', 's1', '4', None]
    """
    counts: dict[str, int] = {}
    for kind in kinds:
        each, named = kind.nodes_per_switch, kind.switch
        if each is None:
            yield from [None if named is None else str(named)] * kind.count
            continue
        if isinstance(named, int):
            name, first = "", named
        else:
            name = "switch" if named is None else named
            first = counts.get(name, 0)
            counts[name] = first - (-kind.count // each)
        yield from (f"{name}{first + node // each}" for node in range(kind.count))


def switch_numbers(kinds: Sequence[Connected]) -> list[int] | None:
    """Return the number of the switch of each node, ``None`` if none has one; a node without has a number of its own.

    >>> from simmodel.platform import NodeSpec
    >>> switch_numbers([NodeSpec(count=3, switch="s", nodes_per_switch=2), NodeSpec(count=2), NodeSpec(switch="s0")])
    [0, 0, 1, 2, 3, 0]
    """
    if all(kind.switch is None and kind.nodes_per_switch is None for kind in kinds):
        return None
    numbers: dict[str | int, int] = {}
    names = (node if name is None else name for node, name in enumerate(switch_names(kinds)))
    return [numbers.setdefault(name, len(numbers)) for name in names]
