"""Checks that advance reservations never have more of a partition than there is."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Protocol, TypeAlias

from simmodel.foundation.errors import InputError

__all__ = ["check_overlaps"]


class Partition(Protocol):
    """The part of a partition's spec that the checks read."""

    @property
    def name(self) -> str: ...
    @property
    def capacity(self) -> int: ...
    def node_number(self, node: int | str) -> int: ...


class Reservation(Protocol):
    """The part of a reservation's spec that the checks read."""

    @property
    def name(self) -> str: ...
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def processors(self) -> int | None: ...
    @property
    def nodes(self) -> tuple[int | str, ...]: ...


Numbered: TypeAlias = Iterable[tuple[int, Reservation]]


def check_overlaps(partition: Partition, reservations: Numbered, identified: bool) -> None:
    """Check the reservations of a partition, each with its number; ``identified``: whether its nodes are.

    Raises
    ------
    InputError
        two reservations overlap on a node, or several have more processors together than their partition
    """
    (_check_nodes if identified else _check_processors)(partition, reservations)


def _check_nodes(partition: Partition, reservations: Numbered) -> None:
    """Refuse reservations that overlap on a node."""
    last: dict[int, Reservation] = {}
    for i, each in sorted(reservations, key=lambda pair: pair[1].start):
        for node in each.nodes:
            number = partition.node_number(node)
            before = last.get(number)
            if before is not None and before is not each and each.start < before.end:
                raise InputError(
                    f"must be nodes that no other reservation holds from {each.start:g} to {each.end:g} s, "
                    f"got {node!r} of {before.name!r} ({before.start:g} to {before.end:g} s)",
                    place=f"reservations[{i}].nodes",
                )
            last[number] = each


def _check_processors(partition: Partition, reservations: Numbered) -> None:
    """Refuse reservations that together have more processors than the partition at any instant."""
    free = partition.capacity
    ends: list[tuple[float, int]] = []
    for i, each in sorted(reservations, key=lambda pair: pair[1].start):
        while ends and ends[0][0] <= each.start:
            free += heappop(ends)[1]
        processors = each.processors or 0
        if processors > free:
            raise InputError(
                f"must be <= {free}, the processors of {partition.name} that other reservations leave at "
                f"{each.start:g} s, got {processors}",
                place=f"reservations[{i}].processors",
            )
        free -= processors
        heappush(ends, (each.end, processors))
