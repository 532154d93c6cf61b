"""Wrong models are named by what they leave of a record, and right ones are not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from simmodel import Job, Scenario, Workload
from simmodel.experiments import Calibration, calibrate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.work.table import Table

PLAIN = ("drift", "class", "size", "run length", "two modes", "day shocks", "truncation")
DAY = 86_400


def function(kind: str, seed: int) -> Calibration:
    """Calibrate the speed and the setup of a function that lacks an effect; with no kind it lacks none.

    The noise of the run times is log-normal, of Student's t with 3 degrees of freedom, or of Laplace.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(300, 800))
    submit = np.sort(rng.uniform(0, rng.integers(8, 30) * DAY, count))
    seconds, cores = rng.lognormal(7, 1, count), rng.choice([1, 2, 4, 8, 16], count)
    user = rng.choice([f"u{i}" for i in range(12)], count, p=np.arange(12, 0, -1) / 78)
    scale = rng.uniform(0.05, 0.15)
    tails = [rng.standard_normal(count), rng.standard_t(3, count), rng.laplace(0, 0.7, count)][seed % 3]
    factor, more = np.exp(scale * tails), rng.uniform(1.3, 1.6)
    if kind == "drift":
        factor = factor * np.where(np.arange(count) > 0.6 * count, more, 1)
    elif kind == "class":
        factor = factor * np.where(user == f"u{rng.integers(4)}", more, 1)
    elif kind == "size":
        factor = factor * np.where(cores >= 8, more, 1)
    elif kind == "run length":
        factor = factor * (seconds / 1000) ** 0.15
    elif kind == "two modes":
        factor = factor * np.where(rng.random(count) < rng.uniform(0.15, 0.4), 2.2, 1)
    elif kind == "day shocks":
        factor = factor * rng.lognormal(0, 0.15, 40)[(submit // DAY).astype(int)]

    def model(speed: float = 1.0, setup: float = 10.0) -> dict[str, Any]:
        return {"walltime": seconds / speed + setup}

    walltime = model(float(rng.uniform(0.5, 2)), float(rng.uniform(5, 40)))["walltime"] * factor
    if kind == "truncation":
        walltime = np.minimum(walltime, np.quantile(walltime, rng.uniform(0.85, 0.95)))
    record = {"submit": submit, "processors": cores, "user": user, "walltime": walltime}
    return calibrate(model, record, {"speed": (0.1, 10, "log"), "setup": (0, 300)})


def cluster(kind: str, seed: int) -> Calibration:
    """Calibrate the speed of a cluster whose policy or number of cores is another one in the model."""
    rng = np.random.default_rng(seed)
    count, cores = 400, int(rng.integers(32, 97))
    run, size = rng.lognormal(7, 1, count), rng.choice([1, 2, 4, 8, 16], count)
    speed = float(rng.uniform(0.7, 1.4))
    submit = np.sort(rng.uniform(0, float(run @ size) / cores / speed / rng.uniform(0.85, 1.05), count))
    noise = rng.lognormal(0, 0.1, count)
    true, policy = cores, str(rng.choice(["fcfs", "easy"]))
    if kind == "cores":
        true = int(cores * rng.choice([0.6, 1.6]))
    other = {"fcfs": rng.choice(["easy", "sjf"]), "easy": rng.choice(["fcfs", "ljf"])}[policy]

    def scenario(cores: int, policy: str, noise: Any, speed: float) -> Scenario:
        work = Workload.from_jobs(
            Job(id=i + 1, submit=submit[i], run=run[i] * noise[i], requested=4 * run[i], processors=int(size[i]))
            for i in range(count)
        )
        platform = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=cores, cores=1, speed=speed)])])
        return Scenario(platform=platform, workload=work, policy=policy)

    jobs = scenario(true, str(other) if kind == "policy" else policy, noise, speed).run().jobs
    log = Table({name: jobs[name] for name in ("job", "processors", "submit", "start", "end")})
    model = scenario(cores, policy, np.ones(count), 1.0)
    ranges = {"partitions[0].nodes[0].speed": (0.25, 4, "log")}
    return calibrate(model, log, ranges, ["walltime", "queue_time"], budget=12)


def kinds(found: Calibration) -> list[str]:
    """Return the kinds of misfit that are named."""
    return [each.kind for each in found.misfits]


@pytest.mark.parametrize(
    "draws", [1, pytest.param(4, marks=pytest.mark.long), pytest.param(40, marks=pytest.mark.exhaustive)]
)
def test_wrong_functions_are_named(draws: int) -> None:
    named = {kind: np.mean([kind in kinds(function(kind, seed)) for seed in range(draws)]) for kind in PLAIN}
    print(f"\n{named}")
    assert all(share >= 0.75 for share in named.values()), named


@pytest.mark.parametrize(
    "draws", [15, pytest.param(50, marks=pytest.mark.long), pytest.param(500, marks=pytest.mark.exhaustive)]
)
def test_right_functions_raise_few_alarms(draws: int) -> None:
    alarms = Counter(kind for seed in range(draws) for kind in kinds(function("", 1000 + seed)))
    print(f"\n{draws}: {dict(alarms)}")
    assert alarms.total() <= 0.02 * draws


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "draws", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(20, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("kind", ["policy", "cores"])
def test_another_policy_and_other_cores_are_named(kind: str, draws: int) -> None:
    named = [kind in kinds(cluster(kind, seed)) for seed in range(draws)]
    assert np.mean(named) >= 0.75


@pytest.mark.parametrize(
    "draws", [1, pytest.param(3, marks=pytest.mark.long), pytest.param(50, marks=pytest.mark.exhaustive)]
)
def test_right_clusters_raise_few_alarms(draws: int) -> None:
    alarms = Counter(kind for seed in range(draws) for kind in kinds(cluster("", 1000 + seed)))
    print(f"\n{draws}: {dict(alarms)}")
    assert alarms.total() <= 0.02 * draws
