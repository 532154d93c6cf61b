"""Checks that advance reservations never have more of a partition than there is."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from simmodel.errors import InputError

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec, PartitionSpec, ReservationSpec

    Numbered: TypeAlias = Iterable[tuple[int, ReservationSpec]]

__all__ = ["check_overlaps"]


def check_overlaps(spec: ClusterSpec) -> None:
    """Check the reservations of a cluster, partition by partition.

    Raises
    ------
    InputError
        two reservations overlap on a node, or several have more processors together than their partition
    """
    for partition in spec.partitions:
        reservations = enumerate(spec.reservations)
        here = [(i, each) for i, each in reservations if spec.partition(each.partition) is partition]
        (_check_nodes if partition.nodes else _check_processors)(partition, here)


def _check_nodes(partition: PartitionSpec, reservations: Numbered) -> None:
    """Refuse reservations that overlap on a node."""
    last: dict[int, ReservationSpec] = {}
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


def _check_processors(partition: PartitionSpec, reservations: Numbered) -> None:
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
