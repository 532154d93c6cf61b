"""Episodes with cancelled jobs, failed dependencies, outages, stalls and warm beginnings, played at random."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from simmodel import Job, start
from simmodel.foundation.errors import InputError, Stalled
from simmodel.learn import SchedulingEnv, backfill_env, batch_env, route_env
from simmodel.metrics import bounded_slowdown, slowdown
from simmodel.platform import ClusterSpec, OutageSpec, PartitionSpec
from tests.helpers.interrupted_cases import job_of
from tests.helpers.unkind_grids import unkind

KINDS = ("Batch", "Backfill", "Route", "Grid")
MEASURES = (
    *("wait_mean", "wait_max", "slowdown_mean", "slowdown_max", "bounded_slowdown_mean", "bounded_slowdown_max"),
    *("turnaround_mean", "utilisation", "raw: wait_mean + 2*turnaround_mean + 3*bounded_slowdown_max"),
)


def jobs_of(rng: np.random.Generator, size: int) -> list[Job]:
    """Return jobs for a partition without a name, some of which wait for others, are cancelled, or request nothing."""
    submits = np.cumsum(rng.choice([0.0, 0.0, 5.0, 17.5], size=int(rng.integers(3, 16)))).tolist()
    made = [job_of(rng, number, at, ["batch"], size, False) for number, at in enumerate(submits, 1)]
    return [attrs.evolve(each, partition=None) for each in made if each.body is None]


def cluster_of(rng: np.random.Generator, name: str, size: int) -> ClusterSpec:
    """Return a cluster with an outage or two, which may never end."""
    at = np.sort(rng.integers(1, 200, size=int(rng.choice([0, 1, 1, 2])))).tolist()
    until = [each + 30.0 for each in at]
    if at and rng.random() < 0.3:
        until[-1] = math.inf
    spans = zip(at, until, strict=True)
    outages = [OutageSpec(at=begin, until=end, processors=int(rng.integers(1, size))) for begin, end in spans]
    return ClusterSpec(name=name, partitions=[PartitionSpec(name="batch", processors=size)], outages=outages)


def odd_env(kind: str, seed: int) -> tuple[SchedulingEnv, str]:
    """Return an environment of one episode, and its objective."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    when = str(rng.choice(["end", "differences"]))
    objective = MEASURES[int(rng.integers(len(MEASURES)))]
    options: dict[str, Any] = {"reward": objective, "when": "end" if objective == "utilisation" else when}
    if objective == "utilisation":
        options["reward"] = "raw: utilisation"
    if kind == "Grid":
        spec, jobs, more, _ = unkind(seed)
        options |= {name: more[name] for name in ("policies", "data") if name in more}
        jobs = [attrs.evolve(each, cancel=each.submit + 20 if rng.random() < 0.1 else None) for each in jobs]
        return route_env(spec, jobs, **options), objective
    if kind == "Route":
        sizes = rng.choice([2, 4, 8], size=int(rng.integers(2, 4))).tolist()
        platform: Any = {f"c{i}": cluster_of(rng, f"c{i}", size) for i, size in enumerate(sizes)}
        jobs = jobs_of(rng, max(sizes))
        return route_env(platform, jobs, policies=str(rng.choice(["fcfs", "easy"])), **options), objective
    platform, jobs = cluster_of(rng, "c", 8), jobs_of(rng, 8)
    if rng.random() < 0.2:
        options["until"] = float(rng.integers(50, 300))
    elif rng.random() < 0.3:
        try:
            begun = start(platform, jobs, "fcfs", seed=seed).run(until=float(rng.integers(5, 60)))
        except Stalled:
            begun = None
        if begun is not None and begun.system.unfinished:
            platform, jobs, options["warm"] = None, None, [begun.snapshot()]
    if kind == "Backfill":
        return backfill_env(platform, jobs, window=8, **options), objective
    for name in ("hold", "wait"):
        options[name] = bool(rng.random() < 0.5)
    options["backfill"] = str(rng.choice(["none", "none", "easy"]))
    try:
        return batch_env(platform, jobs, window=8, **options), objective
    except InputError:  # a warm beginning with jobs that request no time
        return batch_env(platform, jobs, window=8, **{**options, "backfill": "none"}), objective


def value_of(result: Any, objective: str) -> float:
    """Return an objective from the table of jobs, by its definition."""
    if ":" in objective:
        parts = {"wait_mean": 1, "turnaround_mean": 2, "bounded_slowdown_max": 3}
        return sum(weight * value_of(result, name) for name, weight in parts.items())
    if objective == "utilisation":
        return 1.0 - result.metrics()["utilisation"]
    jobs = dict(result.jobs.items())
    here = result.counted & ((jobs["submit"] >= result.started) | (jobs["start"] >= result.started))
    known = jobs.get("eligible", np.nan)
    eligible = np.where(np.isnan(known), jobs["submit"], known)
    lost, suspended, overhead = (jobs.get(name, 0.0) for name in ("lost", "suspended", "overhead"))
    whole = jobs["end"] - eligible
    needed = jobs["run"] - overhead
    name, _, statistic = objective.rpartition("_")
    values = {
        "wait": whole - jobs["run"] - lost - suspended,
        "turnaround": whole,
        "slowdown": slowdown(whole - needed, needed),
        "bounded_slowdown": bounded_slowdown(whole - needed, needed),
    }[name][here]
    values = values[~np.isnan(values)]
    if not len(values):
        return math.nan
    return float(values.max() if statistic == "max" else values.mean())


def play_at_random(env: SchedulingEnv, seed: int) -> tuple[float, dict[str, Any]] | None:
    """Play an episode at random; return the sum of the rewards and the last info; ``None``: it has no decision."""
    rng, total = np.random.default_rng(seed), 0.0
    try:
        _, info = env.reset(seed=seed)
    except InputError as error:
        if error.place != "episode":
            raise
        return None
    while "reason" not in info:
        mask = info["action_mask"]
        _, reward, _, _, info = env.step(int(rng.choice(np.flatnonzero(mask))))
        total += reward
    return total, info
