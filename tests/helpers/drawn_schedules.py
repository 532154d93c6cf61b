"""Drawn workloads and the schedules that policies make of them."""

from typing import Any

import numpy as np

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.work.workload import Workload

PROCESSORS = 8
POLICIES = (
    *("fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f2", "f3", "f4", "multifactor"),
    *("easy", "sjf+easy", "wfp+easy", "easy-sjbf", "conservative", "conservative-keep", "best-fit"),
    *("sjf+conservative", "wfp+conservative-keep"),
)
SLOW = ("window", "portfolio")
"""Policies that simulate or plan many futures at each decision."""
MODES: tuple[dict[str, Any], ...] = (
    {},
    {"decide_on": "event"},
    {"decide_on": "event", "event_order": "ends-first"},
)

EVERY_MODE = tuple({**mode, "estimates": basis} for mode in MODES for basis in ("requested", "exact", "cqsim"))


def drawn_log(seed: int, count: int = 80) -> Workload:
    """Return jobs on a crowded machine, with ties, jobs of zero seconds and wrong requested times."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 60, count).astype(float)
    return Workload(
        {
            "submit": np.sort(rng.integers(0, 600, count)).astype(float),
            "run": run,
            "requested": np.maximum(1.0, np.round(run * rng.choice([0.7, 1, 1, 2, 5], count))),
            "processors": rng.choice([1, 1, 2, 3, 4, 8], count),
            "user": rng.integers(0, 4, count),
        },
        name=f"drawn {seed}",
        processors=PROCESSORS,
    )


def starts_of(result: Any) -> dict[Any, float]:
    """Return the start (s) of each job."""
    return dict(zip(result.jobs["job"].tolist(), result.jobs["start"].tolist(), strict=True))


def schedule_by(log: Workload, policy: Any, **options: Any) -> Any:
    """Return the jobs of a run: columns ``job``, ``start``, ``end``."""
    return simulate(PROCESSORS, log, policy, **options).jobs


def drawn_clusters() -> dict[str, ClusterSpec]:
    """Return clusters of two partitions: of counted processors, and of nodes that differ."""
    counted = [PartitionSpec(name="a", processors=4), PartitionSpec(name="b", processors=5, priority=1)]
    kinds = [NodeSpec(count=2, cores=2), NodeSpec(name="big", cores=3)]
    nodes = [PartitionSpec(name="a", nodes=kinds[:1]), PartitionSpec(name="b", nodes=kinds, placement="best-fit")]
    return {"counted": ClusterSpec(partitions=counted), "nodes": ClusterSpec(partitions=nodes)}


def drawn_jobs(seed: int, count: int = 60) -> list[Job]:
    """Return jobs for one partition, for either of two, or for any; with ties and jobs of zero seconds."""
    rng = np.random.default_rng(seed)
    asked: list[dict[str, Any]] = [{}, {"partition": "a"}, {"partitions": ["b", "a"]}, {"partitions": "any"}]
    jobs = []
    for number in range(1, count + 1):
        run = int(rng.integers(0, 50))
        limit = max(1, run * int(rng.integers(1, 4)))
        submit, processors = int(rng.integers(0, 400)), int(rng.integers(1, 5))
        where = asked[int(rng.integers(len(asked)))]
        jobs.append(Job(id=number, submit=submit, processors=processors, run=run, requested=limit, **where))
    return jobs
