"""Restore: a live grid that continues from a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from simmodel.foundation.errors import InputError, clipped
from simmodel.snapshots.grid import GridSnapshot
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.broker.restore import Restored, remember_all
from simmodel.systems.cluster.restore import restoring
from simmodel.systems.destination import BrokeredJob
from simmodel.systems.grid.data_scheduler import chosen_data_policy
from simmodel.systems.grid.planned_events import keep_order
from simmodel.systems.grid.site import GridJob
from simmodel.systems.kinds import kind_of_snapshot
from simmodel.systems.policy_state import check_instant, chosen_policy, restore_streams

if TYPE_CHECKING:
    from simmodel.environment import Environment
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
        grid.data_scheduler.restore(snapshot.data, files, grid.restored)
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
        grid.ledger.restore(snapshot.traces, snapshot.tries, grid.restored)
        grid.stays.restore(snapshot.stays, snapshot.fetches)
        grid.data.restore(snapshot, grid.stays, grid.restored)
        grid.stays.plan(snapshot.stays)
        grid.outages.restore(snapshot.past)
        rows: Any = self.rows
        keep_order(grid, [(key[0], rows[key[1]]) if key[0] == "overhead" else key for key in snapshot.order])

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
