"""The shadow's score of a real Slurm is that of the table of foretold and actual starts."""

from __future__ import annotations

import re
from random import Random
from threading import Thread
from time import sleep

import pytest

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.twin.mirror import Mirror
from simmodel.twin.shadow import Shadow, shadow_of
from simmodel.twin.slurm.source import SlurmSettings, SlurmSource
from tests.helpers.slurm_cluster import SlurmCluster

pytestmark = pytest.mark.live


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
    rows = [
        (start, foretold)
        for start, foretold in zip(report.jobs["start"].tolist(), report.jobs["foretold"].tolist(), strict=True)
        if foretold == foretold
    ]
    assert 0 < len(rows) <= len(report.jobs) <= len(submitted) == jobs
    assert re.search(rf"foretold starts +{len(rows)} of {len(report.jobs)}", report.summary())
    within = sum(abs(start - foretold) <= 60 for start, foretold in rows)
    assert report.foretold(60.0) == within / len(rows)
    assert re.search(rf"foretold within 1 min +{100 * within / len(rows):.4g} %", report.summary())
    exact = [start == foretold for start, foretold in rows]
    assert not all(exact)


@pytest.mark.exhaustive  # alone: the jobs of other tests on the same cluster are told, too
def test_the_printed_share_is_that_of_the_table(slurm: SlurmCluster) -> None:
    check(slurm, 15)


@pytest.mark.exhaustive
def test_the_printed_share_is_that_of_the_table_of_100_jobs(slurm: SlurmCluster) -> None:
    check(slurm, 100)
