"""The check of placements: functions, and classes derived from ``NodeChoice``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from random import Random
from typing import Any

import attrs
import numpy as np

from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.models import placement_text
from simmodel.platform.topology import Topology
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.resources.pools.placements import placement_named
from simmodel.testing.resources import check_jobs
from simmodel.work.job import Job

__all__ = ["check_placement"]


def check_placement(given: str | Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check a placement: its choices on random tables of nodes, and clusters with it.

    It chooses among the candidates, changes nothing, chooses the same again, and always finds something where it says
    that there is enough; there is still enough when more nodes come free. On clusters all jobs end, on as many nodes as
    they ask for, and runs continue from a snapshot as if they had not been cut.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the placement
    """
    name = placement_text(given)
    refuses = placement_named(name).refuses
    assert not options, f"{name}: placements have no options, got {dict(options)}"
    parts = [PartitionSpec(nodes=[NodeSpec(count=8, cores=4)], network=each, placement=name) for each in _NETWORKS]
    parts = [part for part in parts if refuses is None or refuses(part) is None]
    assert parts, f"{name}: it refuses nodes without a network, on a torus and on a dragonfly"
    for part in parts:
        for seed in range(60):
            _check_choice(name, Random(seed), part.network)
    jobs = [
        Job(id=i, submit=2 * i, nodes=1 + i % 3, cores_per_node=1 + i % 4, run=3 + 7 * i % 11, requested=20)
        if i % 3
        else Job(id=i, submit=2 * i, processors=1 + i % 6, run=2 + i % 9, requested=15)
        for i in range(24)
    ]
    for part, exclusive in product(parts, (False, True)):
        spec = ClusterSpec(partitions=[attrs.evolve(part, exclusive=exclusive)])
        for policy in ("fcfs", "easy", "conservative"):
            result = check_jobs(spec, jobs, policy, str(name))
            for job, held in zip(result.runs["job"].tolist(), result.runs["nodes"], strict=True):
                asked = jobs[job].nodes
                assert asked is None or len(held) == asked, f"{name}: job {job} has nodes {held}, asked for {asked}"


_NETWORKS = (None, "torus:4,2 bandwidth=1GBps", "dragonfly:2;1;2;2 bandwidth=1GBps")


def _check_choice(name: str, rng: Random, topology: Topology | None) -> None:
    count = rng.randint(1, 9) if topology is None else len(topology.hosts)
    table = NodeTable(np.array([[4.0] * count, [0] * count, [8] * count]), name)
    table.settle(None if topology is None else NodeNetwork(topology), rng.randrange(9))
    table.take(Allocation.of([(i, rng.choice([0, 0, 0, 1, 3, 4]), 0, 0) for i in range(count)]))
    each = rng.randint(1, 4)
    exclusive = rng.random() < 0.4
    request = (
        Request(each * 2, 2, each, exclusive=exclusive)
        if rng.random() < 0.5
        else Request(each * 2, exclusive=exclusive)
    )
    before = table.free.copy()
    fits = table.fits(request)
    try:
        found = table.allocate(request)
    except Exception as error:
        raise AssertionError(f"{name}: it raises {type(error).__name__}: {error}; free cores {before[0]}") from error
    assert (table.free == before).all(), f"{name}: a question changes the free capacity"
    assert fits == (found is not None), f"{name}: there is {'' if fits else 'not '}enough, but it chooses {found}"
    assert found == table.allocate(request), f"{name}: it chooses something else when it is asked again"
    if found is None:
        return
    right = found.meets(request) and table.allows(found, request)
    assert right, f"{name}: {found} does not meet the request for {request}"
    table.free[0, [rng.random() < 0.5 for _ in range(count)]] = 4.0
    assert table.fits(request), f"{name}: there is enough on nodes {found.numbers}, but not with more free nodes"
