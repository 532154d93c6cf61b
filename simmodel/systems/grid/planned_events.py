"""The planned events of a grid that may share an instant, so that a restored one keeps their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from simmodel.resources.alarm import Alarm
    from simmodel.systems.grid.core import GridCore

__all__ = ["Item", "Key", "agenda", "keep_order"]

Key = tuple[int | str, ...]


class Item(NamedTuple):
    """A planned event: what it is, its number in the order of events, and where its owner keeps that number."""

    key: Key
    number: int
    occurrence: Any
    owner: Any
    attribute: str


def agenda(grid: GridCore) -> list[Item]:
    """Return the planned ends, calls and alarms of a grid, in the order of events.

    Jobs are named by their numbers at their site, those with overhead by their rows.
    """
    return sorted([*_ends(grid), *_calls(grid), *_alarms(grid)], key=lambda item: item.number)


def _ends(grid: GridCore) -> Iterator[Item]:
    for site in grid.places:
        for _, _, number, run in site.system.execution.endings():
            yield Item(("end", site.number, run.job.seq), number, run, run, "_number")


def _calls(grid: GridCore) -> Iterator[Item]:
    for job, stay in grid.stays.present.items():
        if stay.call is not None and stay.call.pending:
            yield Item(("overhead", job.row), stay.call.number, stay.call, stay.call, "number")
    for (i, what), call in grid.outages.calls.items():
        if call.pending:
            yield Item(("outage", i, what), call.number, call, call, "number")


def _alarms(grid: GridCore) -> Iterator[Item]:
    found: list[tuple[Key, Alarm]] = []
    for site in grid.places:
        found += [(("read", site.number), site.storage.reading.alarm)]
        found += [(("write", site.number), site.storage.writing.alarm)]
        found += [(("storage", site.number, i), alarm) for i, alarm in enumerate(site.storage.alarms)]
        found += [(("disk", site.number, host, int(writes)), alarm) for host, writes, alarm in site.disks.alarms()]
    found += zip((("transfers",), ("latencies",)), grid.data.network.alarms, strict=True)
    for key, alarm in found:
        if alarm.planned is not None:
            yield Item(key, alarm.number, alarm.planned, alarm, "number")


def keep_order(grid: GridCore, order: Sequence[Key]) -> None:
    """Put the planned events of a restored grid into the order that they had; those not in it come last."""
    place = {key: i for i, key in enumerate(order)}
    items = sorted(agenda(grid), key=lambda item: place.get(item.key, len(place)))
    numbers = grid.env.put_in_order([item.occurrence for item in items])
    for item, number in zip(items, numbers, strict=True):
        setattr(item.owner, item.attribute, number)
