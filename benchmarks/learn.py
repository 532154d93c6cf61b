"""Steps per CPU second of the environments of learning agents, and heuristics played in them.

``python benchmarks/learn.py`` prints the speeds. All are multiples of the speed of the machine: y are the CPU seconds
of ``sum(i * i for i in range(10**7))``, measured beside each figure; "steps x y" are steps per CPU second times y. With
EASY around a job that is held an episode of 1,024 jobs has 112 steps, since most jobs are backfilled between two: jobs
per second, beside those of ``simulate``, say more there.

``python benchmarks/learn.py sequences`` prints the mean bounded slowdown (10 s) of ten sequences of 1,024 jobs of
lublin_256, run times as requests, beside Table V of Zhang, Dai, He, Bao, Xie, "RLScheduler: an automated HPC batch job
scheduler using reinforcement learning", SC 2020, as in the README of DIR-LAB/deep-batch-scheduler, whose ten sequences
are others. Rules that differ there: the chosen job is next until it starts (``hold``), while policies of ``simulate``
choose again at each event; in the scores of WFP3 and UNICEP the wait of a job that has not started is -1 s minus its
submission (rows "as there"), not the time since; of more than 128 waiting jobs its agent sees short and narrow ones,
ours the first; its backfilling leaves the processors unused that are left beside the promised job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from math import log2
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from time import monotonic, process_time

import gymnasium

from simmodel import load_workload, simulate
from simmodel.learn import batch_env
from simmodel.scheduling.registry import policy
from simmodel.work.job import LiveJob

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
REPEATS, JOBS = 5, 1024


def unit() -> float:
    """Return y, in CPU seconds."""
    begin = process_time()
    sum(i * i for i in range(10**7))
    return process_time() - begin


def played(env: gymnasium.Env) -> tuple[int, float]:
    """Return the steps of an episode with the actions of FCFS, and their CPU seconds."""
    env.reset(seed=0)
    steps, ended = 0, False
    begin = process_time()
    while not ended:
        _, _, terminated, truncated, _ = env.step(0)
        ended = terminated or truncated
        steps += 1
    return steps, process_time() - begin


def resets(env: gymnasium.Env, count: int = 20) -> float:
    """Return the CPU milliseconds of a reset."""
    begin = process_time()
    for _ in range(count):
        env.reset()
    return (process_time() - begin) / count * 1e3


def rate(backfill: str, hold: bool) -> tuple[float, float, int, float]:
    """Return steps x y, the milliseconds of a reset divided by y, the steps of an episode, and jobs x y."""
    log = load_workload(DATA / "swf" / "lublin_256.swf.gz")
    env = gymnasium.make(
        "simmodel/Batch-v0", platform=256, workload=log, jobs=JOBS, estimates="exact", backfill=backfill, hold=hold
    )
    played(env)
    steps, reset = [], []
    for _ in range(REPEATS):
        y = unit()
        count, seconds = played(env)
        steps.append(count / seconds * y)
        reset.append(resets(env) / y)
    return max(steps), min(reset), count, max(steps) * JOBS / count


def simulated(name: str) -> float:
    """Return jobs x y of the same episode in ``simulate``."""
    log = load_workload(DATA / "swf" / "lublin_256.swf.gz").where(slice(JOBS))
    rates = []
    for _ in range(REPEATS):
        y, begin = unit(), process_time()
        simulate(256, log, name, estimates="exact")
        rates.append(JOBS / (process_time() - begin) * y)
    return max(rates)


def together(processes: int, episodes: int = 6) -> tuple[float, float]:
    """Return the steps of environments in processes of their own per second, of the clock and of each one's CPU."""
    log = load_workload(DATA / "swf" / "lublin_256.swf.gz")
    options = {"platform": 256, "workload": log, "jobs": JOBS, "estimates": "exact", "episodes": episodes}
    with get_context("spawn").Pool(processes) as pool:
        pool.map(_episodes, [options] * processes)  # imports
        done = pool.map(_episodes, [options] * processes, chunksize=1)
    first, last = min(begin for begin, _, _, _ in done), max(end for _, end, _, _ in done)
    return sum(steps for *_, steps in done) / (last - first), sum(steps / cpu for _, _, cpu, steps in done)


def _episodes(options: dict) -> tuple[float, float, float, int]:
    env = gymnasium.make("simmodel/Batch-v0", **{name: options[name] for name in options if name != "episodes"})
    begin, cpu, steps = monotonic(), process_time(), 0
    for _ in range(options["episodes"]):
        steps += played(env)[0]
    return begin, monotonic(), process_time() - cpu, steps


AS_THERE = {
    "wfp": lambda job: ((job.submit + 1) / job.requested) ** 3 * job.processors,
    "unicef": lambda job: (job.submit + 1) / (log2(job.processors + 1e-15) * job.requested),
}
PAPER = {"fcfs": 7273.77, "wfp": 19753.53, "unicef": 22274.74, "sjf": 277.35, "f1": 258.37}


def sequences() -> None:
    """Print the table of heuristics."""
    log = load_workload(DATA / "swf" / "lublin_256.swf.gz")
    parts = [log.where(slice(900 * i, 900 * i + 1024)) for i in range(10)]
    print(f"{'policy':16}{'simulate':>12}{'env':>12}{'env, hold':>12}{'SC20':>12}")
    for name, paper in PAPER.items():
        whole = [simulate(256, part, name, estimates="exact").metrics()["bounded_slowdown_mean"] for part in parts]
        found = [mean(whole)]
        for hold in (False, True):
            made = [batch_env(256, part, window=1024, hold=hold, estimates="exact") for part in parts]
            found.append(mean(objective(env, name) for env in made))
        print(f"{name:16}" + "".join(f"{value:12,.2f}" for value in (*found, paper)))
    for name, key in AS_THERE.items():
        value = mean(objective(batch_env(256, part, window=1024, estimates="exact"), key) for part in parts)
        print(f"{name + ', as there':40}{value:12,.2f}{PAPER[name]:12,.2f}")


def objective(env: gymnasium.Env, order: str | Callable[[LiveJob], float]) -> float:
    """Return the objective of an episode in which the agent chooses the head of the queue in an order, or by a key."""
    by, ended = policy(order) if isinstance(order, str) else None, False
    env.reset(seed=0)
    while not ended:
        jobs = env.observe.jobs(env.view)
        job = min(jobs, key=order) if by is None else env.view.waiting.by(by).head()
        _, _, terminated, truncated, info = env.step(jobs.index(job))
        ended = terminated or truncated
    return info["objective"]


def main() -> None:
    """Print the table."""
    for backfill, hold in (("none", True), ("none", False), ("easy", True), ("easy", False)):
        steps, reset, count, jobs = rate(backfill, hold)
        print(
            f"backfill={backfill} hold={hold}: {steps:,.0f} steps x y, reset {reset:.2f} ms / y ({count} steps);"
            f" {jobs:,.0f} jobs x y"
        )
    print(f"simulate: fcfs {simulated('fcfs'):,.0f} jobs x y, easy {simulated('easy'):,.0f}")
    one, two = (together(1), together(2))
    ratios = [b / a for a, b in zip(one, two, strict=True)]
    print("two processes, of one: {:.2f} times the steps per second of the clock, {:.2f} of CPU".format(*ratios))


if __name__ == "__main__":
    sequences() if sys.argv[1:] == ["sequences"] else main()
