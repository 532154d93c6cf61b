"""Drawn clusters of every kind with crowded queues: nodes, memory, partitions, limits, licences, reservations."""

from typing import Any

import numpy as np

from simmodel import Cluster, Environment, Job, Workload
from simmodel.platform import (
    ClusterSpec,
    ConsumableSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)

POLICIES = (
    *("easy", "fcfs", "conservative", "sjf+easy", "wfp+easy", "easy-sjbf", "conservative-keep"),
    *("sjf+conservative", "best-fit", "multifactor(age=1, size=2)+easy", "portfolio(fcfs, easy, sjf+easy)"),
)


def _counted(rng: np.random.Generator) -> tuple[ClusterSpec, Any]:
    return ClusterSpec.simple(8), lambda: {"processors": int(rng.choice([1, 1, 2, 3, 4, 8]))}


def _nodes(rng: np.random.Generator) -> tuple[ClusterSpec, Any]:
    thin, fat = NodeSpec(count=4, cores=4, memory=8e9), NodeSpec(name="fat", count=2, cores=8, memory=64e9, gpus=2)
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[thin, fat], exclusive=bool(rng.integers(2)))])

    def request() -> dict[str, Any]:
        kind = int(rng.integers(4))
        if kind == 0:
            return {"processors": int(rng.integers(1, 17))}
        nodes = {"nodes": int(rng.integers(1, 3)), "cores_per_node": int(rng.integers(1, 7))}
        memory = {"memory_per_node": float(rng.choice([1e9, 6e9, 20e9, 40e9]))} if kind > 1 else {}
        return nodes | memory | ({"gpus_per_node": int(rng.integers(1, 3))} if kind == 3 else {})

    return spec, request


def _partitions(rng: np.random.Generator) -> tuple[ClusterSpec, Any]:
    parts = [
        PartitionSpec(name="a", processors=6),
        PartitionSpec(name="b", processors=4, max_requested=60, priority=5),
        PartitionSpec(name="c", processors=8, max_processors=2),
    ]

    def request() -> dict[str, Any]:
        choice = int(rng.integers(6))
        where = {"partitions": ("a", "b")} if choice == 5 else {"partition": "aabac"[choice]}
        return where | {"processors": int(rng.integers(1, 3 if choice == 4 else 5))}

    return ClusterSpec(partitions=parts), request


def _licences(rng: np.random.Generator) -> tuple[ClusterSpec, Any]:
    spec = ClusterSpec(
        partitions=[PartitionSpec(processors=8)],
        consumables=[ConsumableSpec(name="matlab", amount=5)],
        outages=[OutageSpec(at=int(rng.integers(100, 400)), until=500, processors=6, kind="maintenance")],
    )

    def request() -> dict[str, Any]:
        needs = {"consumables": {"matlab": float(rng.integers(1, 5))}} if rng.integers(2) else {}
        return needs | {"processors": int(rng.integers(1, 5))}

    return spec, request


def _queues(rng: np.random.Generator) -> tuple[ClusterSpec, Any]:
    queues = [
        QueueSpec(name="short", max_requested=30, priority=3),
        QueueSpec(name="long", max_running=2),
        QueueSpec(name="mine", max_running_per_user=1, max_processors=4),
    ]
    at = int(rng.integers(60, 300))
    open_to = [ReservationSpec(name="kept", start=at, end=at + 150, processors=3, users=("0",))]
    spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], queues=queues, reservations=open_to)

    def request() -> dict[str, Any]:
        queue = str(rng.choice(["long", "mine", "mine"]))
        return {"queue": queue, "user": str(rng.integers(0, 3)), "processors": int(rng.integers(1, 5))}

    return spec, request


def _all_at_once(rng: np.random.Generator) -> tuple[ClusterSpec, Any]:
    """Return two partitions with nodes of two kinds, licences, limits, a reservation and maintenance."""
    thin, fat = NodeSpec(count=3, cores=4, memory=8e9), NodeSpec(name="fat", count=2, cores=8, memory=64e9, gpus=2)
    at = int(rng.integers(50, 350))
    kept = ReservationSpec(name="kept", start=at, end=at + 120, nodes=[1, 4], partition="main", users=("0",))
    spec = ClusterSpec(
        partitions=[
            PartitionSpec(name="main", nodes=[thin, fat]),
            PartitionSpec(name="side", nodes=[NodeSpec(name="old", count=3, cores=2, memory=4e9)], max_requested=80),
        ],
        queues=[QueueSpec(name="normal", max_running=6), QueueSpec(name="user", max_running_per_user=2, priority=2)],
        consumables=[ConsumableSpec(name="matlab", amount=4)],
        reservations=[kept],
        outages=[OutageSpec(at=at + 60, until=at + 200, nodes=[3], partition="main", kind="maintenance")],
    )

    def request() -> dict[str, Any]:
        where = {"partition": str(rng.choice(["main", "main", "side"])), "queue": str(rng.choice(["normal", "user"]))}
        size = {"nodes": int(rng.integers(1, 3)), "cores_per_node": int(rng.integers(1, 3))}
        memory = {"memory_per_node": float(rng.choice([0.0, 1e9, 3e9]))}
        needs = {"consumables": {"matlab": float(rng.integers(1, 4))}} if rng.integers(3) == 0 else {}
        return where | size | memory | needs | {"user": str(rng.integers(0, 3))}

    return spec, request


_KINDS = (_counted, _nodes, _partitions, _licences, _queues, _all_at_once)


def crowded(seed: int, count: int = 60) -> Any:
    """Return the snapshot of a drawn cluster at a drawn instant."""
    rng = np.random.default_rng(seed)
    spec, request = _KINDS[seed % len(_KINDS)](rng)
    env = Environment()
    cluster = Cluster(env, spec, POLICIES[seed // len(_KINDS) % len(POLICIES)])
    at, jobs = 0.0, []
    for number in range(count):
        at += float(rng.integers(0, 12))
        run = float(rng.integers(1, 60))
        limit = max(1.0, float(round(run * rng.choice([1, 1, 2, 4]))))
        jobs.append(Job(id=number, submit=at, run=run, requested=limit, **request()))
    cluster.replay(Workload.from_jobs(jobs))
    env.run(until=float(rng.integers(40, 400)) + 0.5)
    return cluster.snapshot()
