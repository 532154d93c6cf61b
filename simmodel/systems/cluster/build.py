"""From the description of a cluster to its live parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.errors import InputError
from simmodel.resources.consumables import Consumables
from simmodel.resources.counts import CountPool
from simmodel.resources.nodes import NodePool
from simmodel.resources.pool import Pool
from simmodel.systems.cluster.reservations import reserve

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import ClusterSpec, PartitionSpec
    from simmodel.systems.cluster.core import Core
    from simmodel.work.job import Job, LiveJob

__all__ = ["build_pools", "place_of"]


def build_pools(env: Environment, spec: ClusterSpec) -> dict[str, Pool]:
    """Return the pools of a cluster by name: one a partition, then one a reservation.

    Raises
    ------
    InputError
        where a reservation names nodes that are not there
    """
    consumables = Consumables({each.name: each.amount for each in spec.consumables})
    pools: dict[str, Pool] = {}
    for partition in spec.partitions:
        pools[partition.name] = _pool(env, partition, consumables)
    for reservation in spec.reservations:
        pools[reservation.name] = reserve(env, reservation, pools[spec.partition(reservation.partition).name])
    return pools


def _pool(env: Environment, partition: PartitionSpec, consumables: Consumables) -> Pool:
    pool: Pool
    if partition.nodes:
        pool = NodePool(env, partition.name, partition, consumables)
    else:
        assert partition.processors is not None
        pool = CountPool(env, partition.name, partition.processors, consumables)
        pool.spec = partition
    pool.priority = float(partition.priority)
    pool.max_processors = partition.max_processors
    pool.max_requested = partition.max_requested
    return pool


def place_of(job: LiveJob, spec: Job, core: Core) -> Pool:
    """Return the pool that a job waits for: its partition's, else its queue's, else the default one.

    Where there is no default, the first that can ever run it.

    Raises
    ------
    InputError
        where the partition is not there
    """
    if core.only_pool is not None:
        return core.only_pool
    name = spec.partition
    if name is None and job.rules is not None:
        name = job.rules.spec.partition
    if name is None:
        name = core.spec.default_partition
    if name is not None:
        pool = core.pools.get(str(name))
        if pool is None:
            there = ", ".join(core.pools)
            raise InputError(f"partition {name!r} of job {job.id} is not there; there are {there}")
        return pool
    for pool in core.places:
        if pool.part_of is not None:
            break  # reservations are for those that name them
        job.request = pool.request_of(spec)
        if pool.why_not(job) is None and pool.limits_why_not(job) is None:
            return pool
    return core.places[0]
