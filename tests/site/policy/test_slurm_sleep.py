"""Policy slurm over nodes that sleep and boot."""

from __future__ import annotations

import numpy as np
import pytest

from simmodel import Job, Snapshot, simulate, start
from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec
from simmodel.policies import SleepAfter
from simmodel_site.policy.policy import Slurm

BOOT = {"distribution": "uniform", "low": 20, "high": 120}


def spec_of(nodes: int, cores: int, **power: object) -> ClusterSpec:
    given: dict[str, object] = {"boot": (BOOT, 0), "stop": (20, 0), **power}
    kind = NodeSpec(names=f"n[1-{nodes}]", cores=cores, power=NodePower(**given))  # type: ignore[arg-type]
    return ClusterSpec(partitions=[PartitionSpec(nodes=[kind])])


def jobs_of(rng: np.random.Generator, nodes: int, count: int) -> list[Job]:
    return [
        Job(
            id=number,
            submit=float(at),
            run=float(rng.integers(5, 400)),
            requested=float(rng.integers(1, 10) * 60),
            nodes=int(rng.integers(1, nodes + 1)),
        )
        for number, at in enumerate(np.sort(rng.uniform(0, 130 * count, count)))
    ]


@pytest.mark.parametrize("seed", [2, 5, 12, 103])
def test_runs_that_are_passed_over_would_start_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, cores = int(rng.integers(3, 9)), int(rng.choice([1, 4]))
    spec, jobs = spec_of(nodes, cores, asleep=bool(seed % 2)), jobs_of(rng, nodes, 60)
    starts = [
        simulate(spec, jobs, SleepAfter(100, Slurm(fast=fast), spare=seed % 3), overrun="continue").jobs["start"]
        for fast in (True, False)
    ]
    assert np.isfinite(starts[0]).all()
    assert starts[0].tolist() == starts[1].tolist()


def test_a_limit_counts_from_the_end_of_the_boot() -> None:
    """The node is up at 504 s, the limit of a minute is over at 564 s, and the next scan comes within 30 s."""
    spec = spec_of(1, 1, boot=(500, 0), asleep=True)
    result = simulate(spec, [Job(id=1, run=900, requested=60)], "sleep-after(100, slurm)", overrun="continue")
    assert result.jobs["start"] == pytest.approx([504], abs=1)
    assert 564 <= result.jobs["end"][0] <= 595


@pytest.mark.parametrize("cut", [30, 150, 700, 2500])
def test_a_run_continued_while_nodes_boot_is_the_same(cut: int) -> None:
    spec, jobs = spec_of(4, 1, asleep=True), jobs_of(np.random.default_rng(7), 4, 25)
    policy = "sleep-after(100, slurm(bf_interval=20))"
    whole = simulate(spec, jobs, policy, overrun="continue", seed=3).jobs
    part = start(spec, jobs, policy, overrun="continue", seed=3)
    part.run(until=cut)
    found = simulate(Snapshot.from_json(part.snapshot().to_json())).jobs
    ends = dict(zip(whole["job"].tolist(), whole["end"].tolist(), strict=True))
    assert len(found)
    assert {row["job"]: row["end"] for row in found.rows()}.items() <= ends.items()
