"""Nominal 95 % intervals of calibrated values cover the truth, and values are about as near as closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simmodel import Job, Scenario, Workload
from simmodel.experiments import calibrate
from simmodel.platform import GridSpec, NodeSpec, SiteSpec
from simmodel.work.table import Table


def covered(kind: str, seed: int) -> tuple[list[bool], float, float]:
    """Return whether each interval of a drawn regression holds its value, the error of the speed, and SciPy's."""
    rng = np.random.default_rng(seed)
    count = 60 if kind == "two" else 150
    seconds, cores = rng.lognormal(5, 0.7, count), rng.choice([1, 2, 4, 8], count)
    noise = rng.lognormal(0, 0.1, count)
    if kind == "shocks":
        day = np.arange(count) // 10
        noise = rng.lognormal(0, 0.05, count) * rng.lognormal(0, 0.15, count // 10)[day]
    true = {"speed": float(np.exp(rng.uniform(np.log(0.5), np.log(2)))), "setup": float(rng.uniform(10, 80))}
    ranges: dict[str, Any] = {"speed": (0.1, 10, "log"), "setup": (0, 200)}
    if kind == "three":
        true["serial"], ranges["serial"] = float(rng.uniform(0.05, 0.4)), (0, 1)

    def model(speed: float = 1.0, setup: float = 1.0, serial: float = 1.0) -> dict[str, Any]:
        return {"walltime": seconds / speed * (serial + (1 - serial) / cores) + setup}

    recorded = model(**true)["walltime"] * noise
    found = calibrate(model, {"walltime": recorded}, ranges, budget=100)
    inside = [bool(each.low <= true[each.name] <= each.high) for each in found.identified]
    return inside, abs(found.values["speed"] / true["speed"] - 1), least_squares(model, recorded, true)


def least_squares(model: Any, recorded: Any, true: dict[str, float]) -> float:
    """Return the error of the speed by SciPy's least squares of logarithms."""
    from scipy.optimize import least_squares as fit

    names = list(true)
    found = fit(
        lambda x: np.log(model(**dict(zip(names, x, strict=True)))["walltime"] / recorded),
        [1.0, 50.0, 0.2][: len(names)],
        bounds=([0.05, 0.0, 0.0][: len(names)], [20.0, 500.0, 1.0][: len(names)]),
    )
    return float(abs(found.x[0] / true["speed"] - 1))


@pytest.mark.few(1)
@pytest.mark.parametrize("runs", [30, pytest.param(200, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("kind", ["two", "three", "shocks"])
def test_intervals_of_regressions_cover(kind: str, runs: int) -> None:
    found = [covered(kind, seed) for seed in range(runs)]
    share = np.mean([inside for inside, _, _ in found], axis=0)
    slack = 0.0 if runs >= 200 else 0.08  # the standard error of 30 draws is 4 %
    assert (share >= 0.9 - slack).all(), share
    assert (share <= 0.98 + slack).all(), share
    ours, theirs = (float(np.median([each[i] for each in found])) for i in (1, 2))
    print(f"\n{kind}: {share.round(3)} covered, errors of the speed {ours:.2%}, of SciPy {theirs:.2%}")
    assert ours <= 1.5 * theirs + 0.002


def crowded_sites(seed: int, queues: str, most: int) -> tuple[list[bool], list[float], list[float]]:
    """Return whether intervals hold the speeds of sites that fill, their errors, and those of median(cpu/wall).

    Queue times are not observed, observed, or observed with noise of 10 %.
    """
    rng = np.random.default_rng(seed)
    sites, count = int(rng.integers(most * 2 // 5, most + 1)), 100
    cores, speeds = rng.integers(8, 49, sites), np.exp(rng.uniform(np.log(0.5), np.log(2), sites))
    waits = rng.uniform(60, 900, sites)

    def grid(speed: Any, overhead: Any) -> GridSpec:
        hosts = [[NodeSpec(count=1, cores=int(cores[i]), speed=float(speed[i]))] for i in range(sites)]
        return GridSpec(
            sites=[SiteSpec(name=f"S{i}", hosts=hosts[i], overhead=float(overhead[i])) for i in range(sites)]
        )

    rows = []
    for i in range(sites):
        run, size = rng.lognormal(8, 0.8, count), rng.choice([1, 1, 8], count)
        submit = rng.uniform(0, float((run * size).sum() / speeds[i] / cores[i]) / 0.95, count)
        rows += [(submit[j], run[j], int(size[j]), i, rng.lognormal(0, 0.1)) for j in range(count)]
    rows.sort()

    def workload(noise: bool) -> Workload:
        return Workload.from_jobs(
            Job(id=k, submit=submit, run=run * (shock if noise else 1), processors=size, site=f"S{i}")
            for k, (submit, run, size, i, shock) in enumerate(rows)
        )

    jobs = Scenario(platform=grid(speeds, waits), workload=workload(True), policy="recorded").run().jobs
    log = Table({name: jobs[name] for name in ("job", "site", "processors", "submit", "start", "end")})
    if queues == "noisy":
        start = jobs["submit"] + (jobs["start"] - jobs["submit"]) * rng.lognormal(0, 0.1, len(jobs))
        log = log.with_columns(start=start, end=start + jobs["end"] - jobs["start"])
    ranges: dict[str, Any] = {f"sites.S{i}.speed": (0.25, 4, "log") for i in range(sites)}
    if queues:
        ranges |= {f"sites.S{i}.overhead.mean": (10, 3600, "log") for i in range(sites)}
    model = Scenario(platform=grid(np.ones(sites), np.full(sites, 300.0)), workload=workload(False), policy="recorded")
    found = calibrate(model, log, ranges, {"walltime": 1, "queue_time": 1} if queues else "walltime", budget=30)
    inside, errors, closed = [], [], []
    for each in found.identified:
        if each.name.endswith("speed"):
            i = int(each.name.split(".")[1][1:])
            inside.append(bool(each.low <= speeds[i] <= each.high))
            errors.append(abs(found.values[each.name] / speeds[i] - 1))
            here = jobs.where(jobs["site"] == f"S{i}")
            cpu = np.array([rows[k][1] for k in here["job"].tolist()])
            closed.append(abs(float(np.median(cpu / (here["end"] - here["start"]))) / speeds[i] - 1))
        elif each.verdict in ("identified", "no interval"):  # an overhead, of which only queues tell
            assert (each.verdict, each.low) == ("no interval", None)
    return inside, errors, closed


@pytest.mark.few(1)
@pytest.mark.parametrize(("runs", "most"), [(1, 6), pytest.param(200, 15, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("queues", ["", *(pytest.param(each, marks=pytest.mark.long) for each in ("exact", "noisy"))])
def test_speeds_of_sites_that_fill(queues: str, runs: int, most: int) -> None:
    found = [crowded_sites(seed, queues, most) for seed in range(runs)]
    share = np.mean([inside for each in found for inside in each[0]])
    ours, closed = (float(np.median([error for each in found for error in each[i]])) for i in (1, 2))
    print(f"\n{queues or 'walltimes'}: {share:.1%} covered, errors {ours:.2%}, of the median {closed:.2%}")
    assert (0.9 if runs > 10 else 0.5) <= share <= (0.98 if runs > 10 else 1)
    assert ours <= 1.5 * closed + (0 if runs > 10 else 0.01)
