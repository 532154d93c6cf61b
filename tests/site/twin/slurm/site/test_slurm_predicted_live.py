"""Starts of waiting jobs as policy slurm predicts them for a live Slurm, against those that squeue --start tells."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest

from simmodel.futures.start_times import predict_starts
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.slurm.describe import describe_slurm
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, wait_until

pytestmark = [pytest.mark.live, pytest.mark.exhaustive]  # it takes thirteen minutes

SETTINGS = {
    "SchedulerType": "sched/backfill",
    "SelectTypeParameters": "CR_Core_Memory",
    "SchedulerParameters": "bf_max_time=60,bf_interval=10,bf_resolution=1",
}


def drawn(random: Random) -> list[str]:
    """Return the options of a job of one minute."""
    kind = random.choice(("plain", "plain", "plain", "wide", "-w", "-C", "--exclusive", "array", "whole"))
    memory = ["--mem-per-cpu=200"]
    if kind == "whole":  # no memory asked for: all of a node
        return ["-n1", "-N1"]
    if kind == "wide":
        return ["-N2", "-n4", *memory]
    if kind == "-w":
        return ["-N1", "-n2", "-w", f"n{random.randint(1, 8)}", *memory]
    if kind == "-C":
        return ["-N1", "-n2", "-C", "big", *memory]
    if kind == "--exclusive":
        return ["-N1", "-n1", "--exclusive", *memory]
    if kind == "array":
        return ["-N1", "-n2", "-a", "1-3%1", *memory]
    return ["-N1", f"-n{random.randint(1, 4)}", *memory]


def test_predictions_are_as_near_as_those_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs sleep until their limit, which is what both sides plan with: the own errors are less than half."""
    require(*PROGRAMS)
    cluster = SlurmCluster(8, 4, SETTINGS)
    try:
        cluster.start()
        cluster.run("scontrol", "update", "NodeName=n[1-4]", "AvailableFeatures=big", "ActiveFeatures=big")
        monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
        monkeypatch.setenv("PATH", cluster.environment["PATH"])
        described = describe_slurm()
        assert described.policy.startswith("slurm(")
        random = Random(1)
        for _ in range(100):
            cluster.submit("-t1", *drawn(random), seconds=59.5)
        time.sleep(25)  # two cycles of the backfill loop
        told = cluster.run("squeue", "-h", "-t", "PD", "-r", "--start", "-o", "%i %S").split("\n")
        source = SlurmSource("virtual", SlurmSettings())
        mirror = Mirror(described.spec, "virtual", described.policy)
        report = source.report()
        assert report is not None
        mirror.apply(report)
        found = predict_starts(mirror.snapshot(), predictor="request", draws=1)
        predicted = dict(zip(map(str, found["job"].tolist()), found["predicted"].tolist(), strict=True))
        wait_until(lambda: not cluster.unfinished(), 1500, "the end of all jobs")
        started = dict(
            line.split() for line in cluster.run("squeue", "-h", "-t", "all", "-r", "-o", "%i %S").splitlines()
        )
    finally:
        cluster.stop()
    own, other = [], []
    for line in told:
        name, _, at = line.partition(" ")
        if at.isdecimal() and name in predicted:
            own.append(abs(predicted[name] - float(started[name])))
            other.append(abs(float(at) - float(started[name])))
    print(len(own), [float(np.percentile(each, share)) for each in (own, other) for share in (50, 90)])
    assert len(own) >= 40
    for share in (50, 90):
        assert np.percentile(own, share) < np.percentile(other, share) / 2
