"""Run drawn batch cases through a cluster."""

from __future__ import annotations

from typing import Any

from simmodel.environment import Environment
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import LiveJob, Run
from simmodel.work.workload import Workload


class Watch:
    """Records the starts, ends and promises of jobs by row, and checks that no processor is held twice."""

    def __init__(self, env: Environment, rows: int, capacity: int | None = None) -> None:
        self.env = env
        self.starts: list[float | None] = [None] * rows
        self.ends: list[float | None] = [None] * rows
        self.statuses: list[str | None] = [None] * rows
        self.promises: dict[int, list[tuple[float, float]]] = {}
        self.held = 0
        self.capacity = capacity

    def job_started(self, run: Run) -> None:
        assert self.starts[run.job.index] is None, "a job started twice"
        self.starts[run.job.index] = self.env.now
        self.held += run.job.processors
        if self.capacity is not None:
            assert self.held <= self.capacity, f"{self.held} of {self.capacity} processors held at {self.env.now}"

    def job_ended(self, run: Run, status: str) -> None:
        self.held -= run.job.processors
        self.ends[run.job.index] = self.env.now
        self.statuses[run.job.index] = status

    def job_promised(self, job: LiveJob, _place: Any, at: float) -> None:
        self.promises.setdefault(job.index, []).append((self.env.now, at))


def run(workload: Workload, processors: int, policy: Any, *, exclusive: bool = True, **options: Any) -> Watch:
    """Run a workload and return the record.

    ``exclusive``: no processor may be held twice, not even for an instant. The classic order of events (submissions
    first) counts a job as ended before its end is handled, so it needs ``False``.
    """
    env = Environment()
    cluster = Cluster(env, processors, policy, **options)
    watch = Watch(env, len(workload), processors if exclusive else None)
    env.observe(watch)
    cluster.replay(workload)
    env.run()
    assert not cluster.view.waiting
    assert all(pool.free == pool.capacity for pool in cluster.places)
    return watch
