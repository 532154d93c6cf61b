"""The shadow's score of a real Slurm is that of the table of foretold and actual starts."""

from __future__ import annotations

import re
from random import Random
from threading import Thread
from time import sleep

import pytest

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.shadow import Shadow, shadow_of
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from tests.site.helpers.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.live, pytest.mark.exhaustive]  # jobs of seconds, which a busy machine delays


def check(slurm: SlurmCluster, jobs: int) -> None:
    nodes = NodeSpec(names=f"n[1-{slurm.nodes}]", count=slurm.nodes, cores=slurm.cpus)
    spec = ClusterSpec(name="virtual", partitions=[PartitionSpec(name="batch", nodes=[nodes])])
    drawn, submitted = Random(3), []

    def submit() -> None:
        for _ in range(jobs):
            seconds = drawn.randint(1, 4)  # its limit, in its comment: Slurm's own limits are whole minutes
            words = ("--exclusive", "-t1", f"--comment={seconds}", f"-N{drawn.choice((1, 4, 16, 32))}")
            script = f"#!/bin/sh\nexec sleep {seconds}\n"
            submitted.append(slurm.run("sbatch", "--parsable", "-o", "/dev/null", *words, text=script))
            sleep(drawn.choice((0.1, 0.3, 0.8)))

    submitting = Thread(target=submit)
    submitting.start()
    source = SlurmSource("virtual", SlurmSettings(requested="comment", interval=0.5))
    report = shadow_of(
        source,
        Shadow(Mirror(spec, "virtual", "fcfs")),
        lambda: not submitting.is_alive() and not slurm.unfinished(),
        timeout=0.5,
    )
    own = set(map(int, submitted))
    table = report.jobs
    assert len(own) == jobs
    for job, start in starts_of(slurm).items():  # of jobs of other tests, too: they had ended when they were told first
        assert start in table["start"][table["job"] == job], job
    rows = [
        (job, start, foretold)
        for job, start, foretold in zip(*(table[name].tolist() for name in ("job", "start", "foretold")), strict=True)
        if foretold == foretold
    ]
    assert rows
    assert {job for job, _, _ in rows} <= own
    assert re.search(rf"foretold starts +{len(rows)} of {len(table)}", report.summary())
    for seconds in (0.0, 1.0, 5.0, 60.0):
        within = sum(abs(start - foretold) <= seconds for _, start, foretold in rows)
        assert report.foretold(seconds) == within / len(rows)
    assert re.search(rf"foretold within 1 min +{100 * within / len(rows):.4g} %", report.summary())
    assert report.foretold(0.0) < 1
    print(report.summary())


def starts_of(slurm: SlurmCluster) -> dict[int, float]:
    """Return when the jobs started by Slurm's own words (s)."""
    rows = slurm.run("squeue", "-h", "-t", "all", "-o", "%A %S").splitlines()
    return {int(job): float(start) for job, start in map(str.split, rows)}


def test_the_printed_share_is_that_of_the_table(slurm: SlurmCluster) -> None:
    check(slurm, 15)


def test_the_printed_share_is_that_of_the_table_of_100_jobs(slurm: SlurmCluster) -> None:
    check(slurm, 100)
