"""Drawn workloads and the schedules that policies make of them."""

from typing import Any

import numpy as np

from simmodel import simulate
from simmodel.work.workload import Workload

PROCESSORS = 8
POLICIES = (
    *("fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f4", "multifactor"),
    *("easy", "sjf+easy", "wfp+easy", "easy-sjbf", "conservative", "conservative-keep", "best-fit", "window"),
)
MODES: tuple[dict[str, Any], ...] = (
    {},
    {"decide_on": "event"},
    {"decide_on": "event", "event_order": "ends-first"},
)


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
