"""Snapshots of a live grid, taken and continued: its parts hand over their states, and take them back, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import attrs

from simmodel.foundation.errors import InputError, clipped
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.grid import IN_CLUSTER, GridSnapshot
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.broker.snapshots import Restored, capture, remember_all
from simmodel.systems.cluster.snapshots import restore as restore_cluster
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.destination import BrokeredJob
from simmodel.systems.grid.data_scheduler import chosen_data_policy
from simmodel.systems.grid.site import GridJob
from simmodel.systems.kinds import kind_of_snapshot
from simmodel.systems.policy_state import check_instant, chosen_policy, restore_streams

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.alarm import Alarm
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.broker import Handed
    from simmodel.snapshots.jobs import WorkState
    from simmodel.systems.grid.core import GridCore
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.work.job import Job

__all__ = ["Item", "Key", "agenda", "capture_grid", "keep_order", "restore_grid"]


def capture_grid(grid: GridCore) -> GridSnapshot:
    """Return the snapshot of a grid: see ``Grid.snapshot``."""
    files = grid.data.state(grid.stays, set(grid.present()))
    sites = tuple(site.state(grid.stays.accessing) for site in grid.places)
    stays = grid.stays.state()
    base = capture(grid)
    fields = {field.name: getattr(base, field.name) for field in attrs.fields(BrokerSnapshot)}
    away = {stay.row for stay in stays if stay.phase not in IN_CLUSTER}
    fields["handed"] = tuple(each._replace(number=-1) if each.row in away else each for each in base.handed)
    traces, tries = grid.ledger.state(grid.present(), grid.places)
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
        failing=grid.outages.failing(),
        order=tuple(item.key for item in agenda(grid)),
        plan=tuple((job.row, site.number) for job, site in grid.planned.items()),
    )


G = TypeVar("G", bound="GridCore")


def restore_grid(
    kind: type[G],
    env: Environment,
    snapshot: GridSnapshot,
    policy: PolicyLike | None,
    policies: GivenPolicies,
    data: PolicyLike | None,
) -> G:
    """Return a grid that continues from a snapshot: see ``Grid.from_snapshot``."""
    check_instant(env, snapshot)
    given = policies_of_places(policies, {place.name: kind_of_snapshot(place) for place in snapshot.places})
    chosen = chosen_policy(snapshot, policy)
    files = chosen_data_policy(snapshot.data, data)
    spec = snapshot.platform
    if snapshot.assumed:
        spec = attrs.evolve(spec, outages=(*spec.outages, *snapshot.assumed))
    try:
        clusters = [_cluster(env, snapshot, i, given[each.name].own) for i, each in enumerate(snapshot.places)]
        grid = kind(env, spec, chosen, clusters=clusters, by=snapshot.by, data=files, name=snapshot.name)
        restore_streams(env, snapshot)
        _RestoredGrid(grid, snapshot).run()
        grid.data_scheduler.restore(snapshot.data, files, grid.restored)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, AssertionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the parts of the snapshot contradict each other: {clipped(error)}") from None
    if remember_all(grid, snapshot):
        grid.planned |= {grid.restored[row]: grid.places[site] for row, site in snapshot.plan}
    return grid


def _cluster(env: Environment, snapshot: GridSnapshot, i: int, policy: PolicyLike | None) -> Cluster:
    """Return the cluster of a site, whose live jobs are those of the grid."""
    place: Any = snapshot.places[i]
    works: dict[int, WorkState] = {work.number: work for work in place.works}
    stays = {stay.row: stay for stay in snapshot.stays}
    made: dict[int, BrokeredJob] = {}
    unplanned = set()
    for each in snapshot.handed:
        if each.place == place.name and each.number in works:
            made[each.number] = _job(each, *_of_work(works[each.number]))
            stay = stays.get(each.row)
            if stay is not None and (stay.phase in ("inside", "reading") or stay.ends is not None):
                unplanned.add(each.number)
    return restore_cluster(Cluster, env, place, policy, record=False, made=made, unplanned=unplanned)


def _of_work(work: WorkState) -> tuple[Job | None, float]:
    """Return the request and the whole run time (s) of a job in a cluster."""
    length = work.expected if work.duration is None else work.duration
    if work.past is not None and work.past.whole is not None:
        whole = work.past.whole
        length = whole.expected if whole.duration is None else whole.duration
    return work.spec, length


def _job(each: Handed, spec: Job | None, length: float) -> BrokeredJob:
    """Return the live job of a row, which belongs to no grid yet."""
    family: Any = None
    about = each.id, each.row, each.submit, each.processors, each.asked, length, family
    if spec is None or not (spec.inputs or spec.outputs):
        job = BrokeredJob(*about)
    else:
        job = GridJob(*about)
        job.inputs, job.outputs = spec.inputs, spec.outputs
        job.stay = job.course = None
    job._job, job.user, job.watched, job.unrequested = spec, each.user, spec is not None, each.unrequested
    if spec is not None:
        job.priority, job.plain = spec.priority, spec.plain
    return job


class _RestoredGrid(Restored):
    """Restores the jobs and the files of a snapshot in a grid."""

    broker: GridCore
    snapshot: GridSnapshot

    def __init__(self, grid: GridCore, snapshot: GridSnapshot) -> None:
        super().__init__(grid, snapshot)
        self.staying = {stay.row: stay for stay in snapshot.stays}

    def run(self) -> None:
        """Restore all parts."""
        grid, snapshot = self.broker, self.snapshot
        grid.ledger.grow(len(self.known))
        grid.dispatching = snapshot.dispatching
        if snapshot.rests_until is not None:
            grid.scheduler.rests_until = snapshot.rests_until
            grid.scheduler.wake()  # to plan the end of the rest, if jobs wait for it
        for site, state in zip(grid.places, snapshot.sites, strict=True):
            site.restore(state)
            if site.down:
                grid.changes.append((float(snapshot.now), site.name, "failure", int(site.system.places[0].up), ()))
        super().run()
        grid.queue.new.extend(grid.restored[row] for row in snapshot.new)
        grid.ledger.restore(snapshot.traces, snapshot.tries, grid.restored, grid.places)
        grid.stays.restore(snapshot.stays, snapshot.fetches)
        grid.outages.resume_failing(snapshot.failing)  # before transfers go on over links that are down
        grid.data.restore(snapshot, grid.stays, grid.restored)
        grid.stays.plan(snapshot.stays)
        grid.outages.restore(snapshot.past)
        rows: Any = self.rows
        keep_order(grid, [(key[0], rows[key[1]]) if key[0] in ("overhead", "limit") else key for key in snapshot.order])

    def adopt(self, each: Handed) -> BrokeredJob:
        """Adopt a job that has been assigned to a site, in the cluster there or on its way."""
        grid = self.broker
        site = grid.sites[each.place]
        if each.number < 0:
            stay = self.staying[each.row]
            job = _job(each, stay.spec, each.asked if stay.length is None else stay.length)
        else:
            found = self.numbered[each.place].get(each.number)
            if found is None:
                raise InputError(f"handed: job {each.id} is missing in {each.place} (number {each.number})")
            job = found
            if job.id != each.id or job in grid.handed:
                raise InputError(f"handed: duplicate number {each.number} of {each.place}, of jobs {job.id}, {each.id}")
            site.handed.append((job.index, self.rows[each.row]))
        job.row, job.family = self.rows[each.row], grid.families[each.family]
        job.home = grid.home(each.origin or None)
        if each.eligible is not None:
            grid.ledger.eligible[job.row] = each.eligible
        grid.go_on_at(job, site)
        return job


Key = tuple[int | str, ...]


class Item(NamedTuple):
    """A planned event: its key, its number in the order of events, and where its owner keeps that number."""

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
        for what, call in (("overhead", stay.call), ("limit", stay.limit)):
            if call is not None and call.pending:
                yield Item((what, job.row), call.number, call, call, "number")
    for (i, what), call in grid.outages.calls.items():
        if call.pending:
            yield Item(("outage", i, what), call.number, call, call, "number")
    for (i, part), (_, call) in grid.outages.coming.items():
        yield Item(("failure", i, part), call.number, call, call, "number")


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
