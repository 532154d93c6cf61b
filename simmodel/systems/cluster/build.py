"""Builds the pools of a cluster from its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.counts import CountPool
from simmodel.resources.pools.pool import Pool

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import ClusterSpec, PartitionSpec
    from simmodel.resources.pools.consumables import Consumables

__all__ = ["build_pools"]


def build_pools(env: Environment, spec: ClusterSpec, consumables: Consumables) -> dict[str, Pool]:
    """Return the pools of a cluster by name: one per partition, then one per reservation; all share the consumables.

    Raises
    ------
    InputError
        if a reservation names nodes that its partition does not have
    """
    pools: dict[str, Pool] = {}
    for partition in spec.partitions:
        pools[partition.name] = _pool(env, partition, consumables)
    for reservation in spec.reservations:
        from simmodel.systems.cluster.reservations import reserve

        pools[reservation.name] = reserve(env, reservation, pools[spec.partition(reservation.partition).name])
    return pools


def _pool(env: Environment, partition: PartitionSpec, consumables: Consumables) -> Pool:
    pool: Pool
    if partition.one_host:
        from simmodel.resources.pools.hosts import HostPool
        from simmodel.resources.pools.placements import placement_named

        if placement_named(partition.placed_by).enough is not None:
            message = f"must be another one with one_host, got {partition.placed_by!r}"
            raise InputError(message, place=f"partition {partition.name}, placement")
        pool = HostPool(env, partition.name, partition, consumables)
    elif partition.nodes:
        from simmodel.resources.pools.nodes import NodePool

        pool = NodePool(env, partition.name, partition, consumables)
    else:
        assert partition.processors is not None
        pool = CountPool(env, partition.name, partition.processors, consumables)
        pool.spec = partition
    pool.priority = float(partition.priority)
    pool.max_processors = partition.max_processors
    pool.max_requested = partition.max_requested
    return pool
