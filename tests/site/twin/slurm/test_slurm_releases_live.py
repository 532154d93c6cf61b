"""A job that is put on hold and released on a live Slurm: the twin foretells its place in the order."""

from __future__ import annotations

import time

import pytest

from simmodel import simulate
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.slurm.describe import describe_slurm
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, running, wait_until

pytestmark = pytest.mark.live

SETTINGS = {"SchedulerType": "sched/backfill", "SchedulerParameters": "batch_sched_delay=1,bf_interval=5"}


def by_start(starts: list[tuple[float, int]]) -> list[int]:
    return [job for _, job in sorted(starts)]


def test_a_released_job_starts_behind_those_that_came_before_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs 2, 3 and 4 wait for job 1; job 2 is put on hold and released, and then job 5 comes: 1, 3, 4, 2, 5."""
    require(*PROGRAMS)
    with running(SlurmCluster(1, 1, SETTINGS)) as cluster:
        monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
        monkeypatch.setenv("PATH", cluster.environment["PATH"])
        described = describe_slurm()
        source, mirror = SlurmSource("virtual", SlurmSettings()), Mirror(described.spec, "virtual", described.policy)

        def ask() -> None:
            time.sleep(1.2)  # a report in the next second
            report = source.report()
            assert report is not None
            mirror.apply(report)

        jobs = [cluster.submit("-t1", seconds=20)]
        time.sleep(3)
        jobs += [cluster.submit("-t1", seconds=1) for _ in range(3)]
        for what in ("hold", "release"):
            ask()
            cluster.run("scontrol", what, str(jobs[1]))
        ask()
        jobs.append(cluster.submit("-t1", seconds=1))
        ask()
        table = simulate(mirror.snapshot(), policy=mirror.policy).jobs
        foretold = by_start(list(zip(table["start"].tolist(), table["job"].tolist(), strict=True)))
        wait_until(lambda: not cluster.unfinished(), 90, "the end of all jobs")
        rows = [line.split() for line in cluster.run("squeue", "-h", "-t", "all", "-o", "%S %i").splitlines()]
    first, second, third, fourth, last = jobs
    assert by_start([(float(at), int(job)) for at, job in rows]) == [first, third, fourth, second, last]
    assert foretold == [first, third, fourth, second, last]
