"""Capture: the snapshot of a live grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import SnapshotError
from simmodel.policies.data import described
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.grid import (
    IN_CLUSTER,
    AssignedState,
    DataPolicyState,
    DiskState,
    FetchState,
    GridSnapshot,
    SiteState,
    StayState,
    TraceState,
    TransferState,
    TryState,
)
from simmodel.snapshots.snapshot import PolicyState
from simmodel.systems.broker.capture import capture
from simmodel.systems.grid.ledger import INSTANTS
from simmodel.systems.grid.planned_events import agenda
from simmodel.systems.grid.staging import Stay
from simmodel.systems.policy_state import plain_state

if TYPE_CHECKING:
    from simmodel.resources.network.shared_channel import SharedChannel
    from simmodel.systems.grid.core import GridCore
    from simmodel.systems.grid.data import Arrived, Fetch
    from simmodel.systems.grid.site import Site

__all__ = ["capture_grid"]


def capture_grid(grid: GridCore) -> GridSnapshot:
    """Return the snapshot of a grid: see ``Grid.snapshot``."""
    data = grid.data
    data.network.settle()
    _refuse(grid)
    base = capture(grid)
    fields = {field.name: getattr(base, field.name) for field in attrs.fields(BrokerSnapshot)}
    stays = grid.stays.present
    fields["handed"] = tuple(
        each if job not in stays or stays[job].phase in IN_CLUSTER else each._replace(number=-1)
        for each, job in zip(base.handed, grid.handed, strict=True)
    )
    fetches = list(data.fetches.values())
    number = {fetch.transfer: i for i, fetch in enumerate(fetches) if fetch.transfer is not None}
    site_number = {site.name: site.number for site in grid.places}
    return GridSnapshot(
        **fields,
        platform=grid.spec,
        dispatching=grid.dispatching,
        rests_until=None if grid.scheduler.rests_until <= grid.env._now else float(grid.scheduler.rests_until),
        data=_data(grid),
        new=tuple(job.row for job in grid.queue.new if job.state == "waiting"),  # type: ignore[attr-defined]
        sites=tuple(_site(site) for site in grid.places),
        catalogue=data.catalogue.state(),
        traces=tuple(_traces(grid)),
        tries=tuple(_tries(grid)),
        stays=tuple(_stay(stay) for stay in stays.values()),
        fetches=tuple(_fetch(fetch, _callers(grid), grid) for fetch in fetches),
        transfers=tuple(
            TransferState(number[each], float(each.left), float(each.start), float(each.lag))
            for each in data.network.under_way()
        ),
        rooms=tuple((file, site_number[name]) for file, name in data._rooms),
        stranded=tuple((fetch.file, fetch.site.number) for fetch in data._stranded),
        past=tuple(grid.outages.past()),
        order=tuple(item.key for item in agenda(grid)),
        links=data.network.own_states(),
    )


def _refuse(grid: GridCore) -> None:
    """Raise ``SnapshotError`` for what a snapshot cannot hold."""
    data = grid.data
    ours = {fetch.transfer for fetch in data.fetches.values()}
    for transfer in data.network.under_way():
        if transfer not in ours:
            raise SnapshotError(f"{transfer.describe()} cannot be copied: it is none of {grid.name}")
        if transfer.status not in ("waiting", "moving"):
            raise SnapshotError(f"{transfer.describe()} cannot be copied: it is {transfer.status}")
    under_way = set(data.network.under_way())
    for fetch in data.fetches.values():
        if fetch.transfer is not None and fetch.transfer not in under_way:
            raise SnapshotError(
                f"{fetch!r} cannot be copied: it ends at this instant; take the snapshot between events"
            )
    for link in data.network.links.values():
        if link.altered:
            raise SnapshotError(f"link {link.name} cannot be copied: a script has changed it")
        if not link.snapshots:
            raise SnapshotError(f"link {link.name} cannot be copied: {type(link).__name__} has snapshots = False")
    rule = data.network.rule
    if rule is not None and not rule.snapshots:
        raise SnapshotError(f"the network cannot be copied: {type(rule).__name__} has snapshots = False")
    for site in grid.places:
        if not site.storage.snapshots:
            model = type(site.storage).__name__
            raise SnapshotError(f"storage {site.storage.name} cannot be copied: {model} has snapshots = False")
    for job, stay in grid.stays.present.items():
        spec = job._job
        if spec is not None and spec.has_body:
            raise SnapshotError(f"job {job.id} cannot be copied: {spec.program}")
        if stay.access is not None and stay.access.end is not None:
            message = "its access ends at this instant; take the snapshot between events"
            raise SnapshotError(f"job {job.id} cannot be copied: {message}")


def _data(grid: GridCore) -> DataPolicyState:
    """Return the data policy, and the jobs and files that it has not decided on."""
    scheduler = grid.data_scheduler
    policy, name = scheduler.policy, scheduler.known_as
    here = set(grid.handed)
    return DataPolicyState(
        PolicyState(policy.name, name, plain_state(policy), scheduler.due),
        described(policy) if name is None else None,
        tuple(sorted(scheduler.alarms)),
        tuple(
            AssignedState(
                job.row if job in here else None, site.number, job.id, tuple(job.inputs) if job.needs_files else ()
            )
            for job, site in scheduler.view.assigned
        ),
        tuple(scheduler.view.added),
    )


# ---------------------------------------------------------------------- jobs


def _traces(grid: GridCore) -> Iterator[TraceState]:
    ledger = grid.ledger
    for job in grid.present():
        row = job.row
        if not ledger.attempts[row]:
            continue
        instants = {name: _known(getattr(ledger, name)[row]) for name in INSTANTS[:-1]}
        yield TraceState(
            row,
            ledger.site[row],
            ledger.attempts[row],
            **instants,
            bytes_in=ledger.bytes_in[row],
            bytes_out=ledger.bytes_out[row],
            started=None if job.started is None else float(job.started),
            starts=job.attempts,
        )


def _known(value: float) -> float | None:
    return value if value == value else None


def _tries(grid: GridCore) -> Iterator[TryState]:
    rows = {job.row for job in grid.present()}
    for row, attempt, start, end, site, status in grid.ledger.tries:
        if row in rows:
            yield TryState(row, attempt, start, end, site, status)


def _stay(stay: Stay) -> StayState:
    job = stay.job
    away = stay.phase not in IN_CLUSTER
    return StayState(
        job.row,
        stay.site.number,
        stay.phase,
        stay.since,
        ends=None if stay.call is None else float(stay.call.at),
        host=stay.host,
        position=stay.index,
        pinned=tuple(stay.pinned),
        missing=tuple(stay.missing),
        moved=tuple(stay.moved),
        spec=job._job if away else None,
        length=float(job._length) if away else None,
        outcome=job._outcome,
    )


# ---------------------------------------------------------------------- files


def _callers(grid: GridCore) -> dict[Arrived, int]:
    """Return the rows of the jobs that wait for files, by the calls that tell them."""
    return {call: stay.job.row for stay in grid.stays.present.values() for call in stay.missing.values()}


def _fetch(fetch: Fetch, rows: dict[Arrived, int], grid: GridCore) -> FetchState:
    for call in fetch.callers:
        if call not in rows:
            raise SnapshotError(f"{fetch!r} cannot be copied: a function waits for it")
    known = fetch.job is not None and fetch.job in grid.handed
    return FetchState(
        fetch.file,
        fetch.site.number,
        fetch.size,
        fetch.cause,
        tuple(rows[call] for call in fetch.callers),
        fetch.job.row if known and fetch.job is not None else None,
        None if fetch.source is None else fetch.source.number,
        fetch.tries,
        fetch.room,
        fetch.mode,
    )


def _site(site: Site) -> SiteState:
    storage = site.storage
    return SiteState(
        site.down,
        site.closed,
        storage.state(),
        _rows(storage.reading),
        _rows(storage.writing),
        tuple(
            DiskState(host, writes, channel.state(), _rows(channel))
            for (host, writes), channel in site.disks._channels.items()
            if len(channel)
        ),
    )


def _rows(channel: SharedChannel) -> tuple[int, ...]:
    found: list[int] = []
    for access in channel.under_way():
        about: Any = access.about
        if not (isinstance(about, tuple) and about and isinstance(about[0], Stay)):
            raise SnapshotError(f"{access.describe()} cannot be copied: it is none of a job")
        found.append(about[0].job.row)
    return tuple(found)
