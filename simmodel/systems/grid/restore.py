"""Restore: a live grid that continues from a snapshot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from simmodel.foundation.errors import InputError, clipped
from simmodel.snapshots.grid import IN_CLUSTER, FetchState, GridSnapshot, SiteState, StayState
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.broker.restore import Restored, remember_all
from simmodel.systems.cluster.restore import restoring
from simmodel.systems.destination import BrokeredJob
from simmodel.systems.grid.data import Arrived, Fetch
from simmodel.systems.grid.data_policy_state import chosen_data_policy, remember_data
from simmodel.systems.grid.hosts import grant_on
from simmodel.systems.grid.planned_events import keep_order
from simmodel.systems.grid.site import GridJob, Site
from simmodel.systems.grid.staging import Stay
from simmodel.systems.kinds import kind_of_snapshot
from simmodel.systems.policy_state import check_instant, chosen_policy, restore_streams

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.network.shared_channel import ChannelState, SharedChannel
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.broker import Handed
    from simmodel.snapshots.jobs import WorkState
    from simmodel.systems.cluster.system import Cluster
    from simmodel.systems.grid.core import GridCore
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.work.job import Job

__all__ = ["restore_grid"]

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
        remember_data(grid, snapshot.data, files, grid.restored)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, AssertionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the parts of the snapshot contradict each other: {clipped(error)}") from None
    remember_all(grid, snapshot)
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
    return restoring(env, place, policy, record=False, made=made, unplanned=unplanned).cluster


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
        self.stays: dict[int, Stay] = {}  # by row in the snapshot

    def run(self) -> None:
        """Restore all parts."""
        grid, snapshot = self.broker, self.snapshot
        grid.ledger.grow(len(self.known))
        grid.dispatching = snapshot.dispatching
        if snapshot.rests_until is not None:
            grid.scheduler.rests_until = snapshot.rests_until
            grid.scheduler.wake()  # to plan the end of the rest, if jobs wait for it
        for site, state in zip(grid.places, snapshot.sites, strict=True):
            site.down, site.closed = state.down, state.closed
            if site.down:
                grid.changes.append((float(snapshot.now), site.name, "failure", int(site.system.places[0].up), ()))
        super().run()
        grid.queue.new.extend(grid.restored[row] for row in snapshot.new)
        self._traces()
        for stay in snapshot.stays:
            self._stay(stay)
        self._files()
        self._overheads()
        grid.outages.plan(snapshot.past)
        rows: Any = self.rows
        keep_order(grid, [(key[0], rows[key[1]]) if key[0] == "overhead" else key for key in snapshot.order])

    # ------------------------------------------------------------------ jobs

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
        job.home, job.destination = grid.home(each.origin or None), site
        if each.eligible is not None:
            grid.ledger.eligible[job.row] = each.eligible
        grid.handed[job] = None
        grid._active += 1
        site.present += 1
        return job

    def _traces(self) -> None:
        """Restore what the ledger has of unfinished jobs."""
        grid, ledger = self.broker, self.broker.ledger
        for each in self.snapshot.traces:
            row, job = self.rows[each.row], grid.restored[each.row]
            for name in ("assigned", "queued", "start", "executing", "end"):
                value = getattr(each, name)
                if value is not None:
                    getattr(ledger, name)[row] = value
            ledger.site[row], ledger.attempts[row] = each.site, each.attempts
            ledger.bytes_in[row], ledger.bytes_out[row] = each.bytes_in, each.bytes_out
            job.started, job.attempts = each.started, each.starts
        for row, attempt, start, end, site, status in self.snapshot.tries:
            ledger.tries.append((self.rows[row], attempt, start, end, site, status))

    def _stay(self, state: StayState) -> None:
        """Restore a job at a site, without its end of overhead, its files and its accesses."""
        grid, job = self.broker, self.broker.restored[state.row]
        site = grid.places[state.site]
        stay = self.stays[state.row] = grid.stays.present[job] = Stay(job, site)
        stay.phase = state.phase  # type: ignore[assignment]
        stay.host, stay.index, stay.since = state.host, state.position, state.since
        stay.pinned, stay.moved = dict.fromkeys(state.pinned), dict.fromkeys(state.moved)
        job._outcome = state.outcome
        if state.phase in ("overhead", "staging in"):
            job.state = "staging in"
            site.sent(job)
            if state.host is not None:
                job.remember().bind(grant_on(site, state.host, job))
        elif state.phase not in IN_CLUSTER:
            job.state = "staging out"
        else:
            stay.run = job.run
        if isinstance(job, GridJob):
            job.stay = stay
            job.course = grid.stays._started if job.inputs else None
        if stay.holds:
            grid.stays._holding[site] = grid.stays._holding.get(site, 0) + 1
        for file in state.missing:
            stay.missing[file] = self._call(stay, file)

    def _call(self, stay: Stay, file: str) -> Arrived:
        """Return what a stay is told by that a file has arrived."""
        stays = self.broker.stays
        if stay.phase != "staging out":
            return partial(stays._arrived, stay, file)
        target = next(each.site for each in self.snapshot.fetches if each.file == file and self._waits(each, stay))
        stay.target = self.broker.places[target]
        return partial(stays._delivered, stay, stay.target)

    def _waits(self, fetch: FetchState, stay: Stay) -> bool:
        return any(self.broker.restored[row] is stay.job for row in fetch.callers)

    def _overheads(self) -> None:
        for state in self.snapshot.stays:
            if state.ends is not None:
                stay, stays = self.stays[state.row], self.broker.stays
                then = stays._ready if state.phase == "overhead" else stays.bring_inside
                stay.call = self.broker.plan(state.ends, partial(then, stay))

    # ------------------------------------------------------------------ files

    def _files(self) -> None:
        grid, snapshot = self.broker, self.snapshot
        data = grid.data
        fetches = [self._fetch(each) for each in snapshot.fetches]
        for file, number in snapshot.rooms:
            data._rooms[file, grid.places[number].name] = self._room(file, grid.places[number])
        for site, state in zip(grid.places, snapshot.sites, strict=True):
            self._storage(site, state)
        data.catalogue.restore(snapshot.catalogue)
        data.network.restore_own(snapshot.links)
        for each in snapshot.transfers:
            data.go_on(fetches[each.fetch], each.left, each.lag, each.start)
        data.network.settle()
        for file, number in snapshot.stranded:
            data._stranded[data.fetches[file, grid.places[number].name]] = None

    def _fetch(self, state: FetchState) -> Fetch:
        grid = self.broker
        fetch = Fetch(state.file, state.size, grid.places[state.site], state.cause)
        fetch.callers = [self.stays[row].missing[state.file] for row in state.callers]
        fetch.job = None if state.job is None else grid.restored[state.job]
        fetch.source = None if state.source is None else grid.places[state.source]
        fetch.tries, fetch.room, fetch.mode = state.tries, state.room, state.mode
        grid.data.fetches[state.file, fetch.site.name] = fetch
        return fetch

    def _room(self, file: str, site: Site) -> Arrived:
        """Return what is called once there is room for a file: its fetch goes on, or a job writes it."""
        data = self.broker.data
        fetch = data.fetches.get((file, site.name))
        if fetch is not None:
            return partial(data._has_room, fetch)
        for job, stay in self.broker.stays.present.items():
            writes = isinstance(job, GridJob) and stay.phase == "writing" and stay.site is site
            if writes and job.outputs[stay.index].name == file:  # type: ignore[attr-defined]
                return partial(self.broker.stays._has_room, stay)
        raise InputError(f"rooms: nothing waits for room for file {file} at {site.name}")

    def _storage(self, site: Site, state: SiteState) -> None:
        """Restore the files, the room and the accesses of a site."""
        data, storage = self.broker.data, site.storage
        calls = {file: partial(data._reserved, (file, name)) for file, name in data._rooms if name == site.name}
        storage.restore(state.storage, calls)
        self._accesses(storage.reading, state.storage.reading, state.readers, False)
        self._accesses(storage.writing, state.storage.writing, state.writers, True)
        for disk in state.disks:
            channel = site.disks._channel(disk.host, disk.writes)
            self._accesses(channel, disk.channel, disk.rows, disk.writes)

    def _accesses(self, channel: SharedChannel, state: ChannelState, rows: tuple[int, ...], writes: bool) -> None:
        stays = [self.stays[row] for row in rows]
        then = self.broker.stays._written if writes else self.broker.stays._has_read
        calls = [partial(then, stay) for stay in stays]
        for stay, access in zip(stays, channel.restore(state, calls), strict=True):
            job: Any = stay.job
            stay.access = access
            access.about = (stay, job.outputs[stay.index].name if writes else job.inputs[stay.index])
