"""Capture: the snapshot of a live grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.grid import IN_CLUSTER, GridSnapshot
from simmodel.systems.broker.capture import capture
from simmodel.systems.grid.planned_events import agenda

if TYPE_CHECKING:
    from simmodel.systems.grid.core import GridCore

__all__ = ["capture_grid"]


def capture_grid(grid: GridCore) -> GridSnapshot:
    """Return the snapshot of a grid: see ``Grid.snapshot``."""
    files = grid.data.state(grid.stays, grid.handed)
    sites = tuple(site.state(grid.stays.accessing) for site in grid.places)
    stays = grid.stays.state()
    base = capture(grid)
    fields = {field.name: getattr(base, field.name) for field in attrs.fields(BrokerSnapshot)}
    away = {stay.row for stay in stays if stay.phase not in IN_CLUSTER}
    fields["handed"] = tuple(each._replace(number=-1) if each.row in away else each for each in base.handed)
    traces, tries = grid.ledger.state(grid.present())
    return GridSnapshot(
        **fields,
        **files._asdict(),
        platform=grid.spec,
        dispatching=grid.dispatching,
        rests_until=None if grid.scheduler.rests_until <= grid.env._now else float(grid.scheduler.rests_until),
        data=grid.data_scheduler.state(grid.handed),
        new=tuple(job.row for job in grid.queue.new if job.state == "waiting"),  # type: ignore[attr-defined]
        sites=sites,
        traces=traces,
        tries=tries,
        stays=stays,
        past=grid.outages.state(),
        order=tuple(item.key for item in agenda(grid)),
    )
