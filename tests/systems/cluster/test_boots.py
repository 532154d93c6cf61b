"""Boots with a limit, and nodes that sleep at the beginning."""

from __future__ import annotations

from typing import Any

import pytest

from simmodel import Job, Snapshot, simulate, start
from simmodel.generators import choice
from simmodel.metrics import energy
from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec


def spec_of(nodes: int, **power: Any) -> ClusterSpec:
    kind = NodePower(**{"idle": 100, "load": 200, "off": 10, "boot": ("100s", 150), "asleep": True, **power})
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=nodes, cores=1, power=kind)])])


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "conservative-keep", "sleep-after(50)", "slurm"])
def test_nodes_that_sleep_at_the_beginning_boot_first(policy: str) -> None:
    """The second node sleeps on: 200 s at 10 W; the first boots at 150 W for 100 s and runs at 200 W for as long."""
    result = simulate(spec_of(2), [Job(id=1, run=100, requested=100)], policy, overrun="continue")
    at = result.jobs["start"][0]
    assert at == pytest.approx(100, abs=5)
    slept = at - 100
    assert energy(result).total == pytest.approx(10 * (2 * slept + 200) + 150 * 100 + 200 * 100, rel=1e-4)


def test_a_run_continued_from_its_beginning_is_the_same() -> None:
    jobs = [Job(id=i, submit=70 * i, run=60, processors=1 + i % 2) for i in range(6)]
    whole = simulate(spec_of(3), jobs, "sleep-after(50)").jobs["start"].tolist()
    for until in (10, 90, 250):
        part = start(spec_of(3), jobs, "sleep-after(50)")
        part.run(until=until)
        found = simulate(Snapshot.from_json(part.snapshot().to_json())).jobs
        assert dict(zip(found["job"].tolist(), found["start"].tolist(), strict=True)).items() <= {*enumerate(whole)}


def test_a_boot_beyond_its_limit_takes_the_node_down_and_the_job_waits_again() -> None:
    """Of two nodes each is woken for the only job; both fail after 60 s, and are up again 500 s later."""
    result = simulate(spec_of(2, boot_limit="60s", boot_repair=500), [Job(id=1, run=10)], "easy")
    changes = [(row["cause"], row["time"]) for row in result.changes.rows()]
    assert changes == [
        ("sleep", 0), ("wake", 0), ("boot", 60), ("failure", 60), ("wake", 60), ("boot", 120), ("failure", 120),
        ("repair", 560), ("repair", 620),
    ]  # fmt: skip
    assert result.jobs["start"].tolist() == [560]


def test_the_share_of_boots_beyond_the_limit_fails() -> None:
    power = {"boot": (choice([30.0, 90.0]), 150), "boot_limit": 60, "boot_repair": 0, "asleep": False}
    jobs = [Job(id=i, submit=1000 * i, run=10) for i in range(400)]
    causes = simulate(spec_of(1, **power), jobs, "sleep-after(100)").changes["cause"].tolist()
    boots = causes.count("boot")
    assert causes.count("failure") / boots == pytest.approx(0.5, abs=0.08)
    assert NodePower(boot=(90, 150), boot_limit=60).expected_boot == 60
