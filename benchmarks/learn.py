"""Steps per CPU second of the environments of learning agents: ``python benchmarks/learn.py``.

The table is printed. All figures are multiples of the speed of the machine: y are the CPU seconds of
``sum(i * i for i in range(10**7))``, measured beside each figure, so that ``steps x y`` means steps per CPU second
times y.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import process_time

import gymnasium

import simmodel.learn  # noqa: F401 - registers the environments
from simmodel import load_workload

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
REPEATS = 5


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


def main() -> None:
    """Print the table."""
    log = load_workload(DATA / "swf" / "lublin_256.swf.gz")
    for backfill, hold in (("none", True), ("easy", True), ("none", False)):
        env = gymnasium.make(
            "simmodel/Batch-v0", platform=256, workload=log, jobs=1024, estimates="exact", backfill=backfill, hold=hold
        )
        played(env)
        steps, reset = [], []
        for _ in range(REPEATS):
            y = unit()
            n, seconds = played(env)
            steps.append(n / seconds * y)
            reset.append(resets(env) / y)
        print(
            f"backfill={backfill} hold={hold}: {max(steps):,.0f} steps x y, reset {min(reset):.2f} ms / y ({n} steps)"
        )


if __name__ == "__main__":
    main()
