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


def beside_queues(seed: int, queues: str) -> tuple[bool, float, float]:
    """Return whether the interval holds the speed of a site, its error, and that of SciPy's least squares.

    Queue times are the overhead, but for a few jobs that wait for others. They are exact or have a noise of 10 %. The
    search begins where they fit and the walltimes do not.
    """
    rng = np.random.default_rng(seed)
    seconds, noise = rng.lognormal(6, 0.8, 100), rng.lognormal(0, 0.1, 100)
    late = rng.choice(100, int(rng.integers(0, 5)), replace=False)
    true = {"speed": float(np.exp(rng.uniform(np.log(0.5), np.log(2)))), "overhead": float(rng.uniform(60, 900))}

    def model(speed: float = 1.0, overhead: float = 300.0, noise: Any = 1.0) -> dict[str, Any]:
        walltime, queue_time = seconds / speed * noise, np.full(100, overhead)
        queue_time[late] += walltime[late - 1]
        return {"walltime": walltime, "queue_time": queue_time}

    record = model(**true, noise=noise)
    if queues == "noisy":
        record["queue_time"] = record["queue_time"] * rng.lognormal(0, 0.1, 100)
    ranges = {"speed": (0.25, 4, "log"), "overhead": (10, 3600, "log")}
    start = {**true, "speed": float(np.exp(rng.uniform(np.log(0.25), np.log(4))))}
    found = calibrate(model, record, ranges, ["walltime", "queue_time"], budget=4, start=start, intervals=True)
    speed, overhead = found.identified
    assert speed.verdict == "identified"
    assert overhead.verdict == "no interval"
    error = abs(found.values["speed"] / true["speed"] - 1)
    return bool(speed.low <= true["speed"] <= speed.high), error, abs(float(np.exp(-np.log(noise).mean())) - 1)


@pytest.mark.few(2)
@pytest.mark.parametrize("runs", [30, pytest.param(1000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("queues", ["exact", "noisy"])
def test_queue_times_that_are_met_exactly_do_not_outvote_walltimes(queues: str, runs: int) -> None:
    found = [beside_queues(seed, queues) for seed in range(runs)]
    share, ours, squares = np.mean(found, axis=0).tolist()
    print(f"\n{queues}: {share:.1%} of {runs} covered, mean errors {ours:.3%}, of SciPy {squares:.3%}")
    assert (0.93 if runs > 30 else 0.85) <= share <= (0.97 if runs > 30 else 1)
    assert ours <= 1.1 * squares


def hidden_speeds(seed: int, queues: str, most: int) -> tuple[list[bool], list[float], list[float]]:
    """Return whether intervals hold the speeds of sites, their errors, and those of least squares of logarithms.

    Walltimes have a noise of 10 %; queue times are not observed, exact, or with a noise of 10 %. Some sites are full,
    at others few jobs wait for others, and their queue times are the overhead.
    """
    rng = np.random.default_rng(seed)
    sites, count = int(rng.integers(most * 2 // 5, most + 1)), 80
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
        filled = float((run * size).sum() / speeds[i] / cores[i]) / rng.choice([0.2, 0.5, 0.95])
        rows += [(each, run[j], int(size[j]), i) for j, each in enumerate(rng.uniform(0, filled, count))]
    rows.sort()
    noise = rng.lognormal(0, 0.1, len(rows))

    def workload(shocks: Any) -> Workload:
        return Workload.from_jobs(
            Job(id=k, submit=submit, run=run * shocks[k], processors=size, site=f"S{i}")
            for k, (submit, run, size, i) in enumerate(rows)
        )

    jobs = Scenario(platform=grid(speeds, waits), workload=workload(noise), policy="recorded").run().jobs
    log = Table({name: jobs[name] for name in ("job", "site", "processors", "submit", "start", "end")})
    if queues == "noisy":
        start = jobs["submit"] + (jobs["start"] - jobs["submit"]) * rng.lognormal(0, 0.1, len(jobs))
        log = log.with_columns(start=start, end=start + jobs["end"] - jobs["start"])
    ranges: dict[str, Any] = {f"sites.S{i}.speed": (0.25, 4, "log") for i in range(sites)}
    if queues:
        ranges |= {f"sites.S{i}.overhead.mean": (10, 3600, "log") for i in range(sites)}
    model = Scenario(
        platform=grid(np.ones(sites), np.full(sites, 300.0)), workload=workload(np.ones(len(rows))), policy="recorded"
    )
    found = calibrate(model, log, ranges, {"walltime": 1, "queue_time": 1} if queues else "walltime", budget=30)
    inside, errors, squares = [], [], []
    for each in found.identified:
        if each.name.endswith("speed"):
            i = int(each.name.split(".")[1][1:])
            inside.append(bool(each.low <= speeds[i] <= each.high))
            errors.append(abs(found.values[each.name] / speeds[i] - 1))
            own = [k for k, row in enumerate(rows) if row[3] == i]  # log(speed) = log(run) - log(walltime), in the mean
            squares.append(abs(float(np.exp(-np.log(noise[own]).mean())) - 1))
        else:  # an overhead, of which only queues tell
            assert each.verdict in ("no interval", "flat", "several")
    return inside, errors, squares


@pytest.mark.few(1)
@pytest.mark.parametrize(("runs", "most"), [(1, 6), pytest.param(100, 15, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("queues", ["", *(pytest.param(each, marks=pytest.mark.long) for each in ("exact", "noisy"))])
def test_intervals_cover_the_hidden_speeds_of_sites(queues: str, runs: int, most: int) -> None:
    found = [hidden_speeds(seed, queues, most) for seed in range(runs)]
    inside = [each for one in found for each in one[0]]
    ours, squares = (float(np.mean([error for each in found for error in each[i]])) for i in (1, 2))
    print(f"\n{queues or 'walltimes'}: {np.mean(inside):.1%} of {len(inside)}, errors {ours:.2%}, SciPy {squares:.2%}")
    assert (0.93 if runs > 10 else 0.5) <= np.mean(inside) <= (0.97 if runs > 10 else 1)
    assert ours <= 1.1 * squares + (0 if runs > 10 else 0.01)
