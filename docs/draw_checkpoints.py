"""Draws ``checkpoints.png``: what jobs lose that save to one storage, and the best interval of their saves.

``python docs/draw_checkpoints.py`` simulates both, which takes about a minute.
"""

from __future__ import annotations

from math import exp
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, FailureModel, PartitionSpec, StorageSpec
from simmodel.view.style import COLOURS, GREY, tidy
from simmodel.work import Checkpoint, daly_interval

ALONE, INTERVAL, WORK = 10.0, 60.0, 6000.0  # s: of a save alone, between saves, of a job
BETWEEN, COST = 3600.0, 60.0  # s: between failures of a job; of its saves alone


def shared(jobs: int, *failures: FailureModel) -> ClusterSpec:
    """Return a cluster of one processor per job, whose storage writes a byte per second."""
    disk = StorageSpec(name="scratch", write_bandwidth=1.0, read_bandwidth=1.0)
    return ClusterSpec(partitions=[PartitionSpec(processors=jobs)], storages=[disk], failures=failures)


def loss(jobs: int, apart: float) -> float:
    """Return the seconds of saves per second of work of jobs that start so many seconds apart."""
    saves = Checkpoint(INTERVAL, size=ALONE, to="scratch")
    given = [Job(submit=apart * i, run=WORK, checkpoint=saves) for i in range(jobs)]
    return float(simulate(shared(jobs), given, "fcfs").metrics()["checkpoint_time"]) / (jobs * WORK)


def overhead(jobs: int, interval: float, work: float = 300_000.0) -> float:
    """Return the seconds that jobs which fail take beside their work, per second of it: the mean."""
    saves = Checkpoint(interval, size=COST, to="scratch")
    failing = FailureModel(mean_time_between_failures=BETWEEN, mean_time_to_repair=1e-9)
    done = simulate(shared(jobs, failing), [Job(run=work, checkpoint=saves)] * jobs, "fcfs", seed=1)
    return float(done.jobs["end"].mean()) / work - 1


def expected(interval: float) -> float:
    """Return the expected overhead of a job alone: Daly (2006), with restarts as long as saves."""
    return BETWEEN / interval * exp(COST / BETWEEN) * (exp((interval + COST) / BETWEEN) - 1) - 1


def draw_losses(ax: Axes) -> None:
    """Draw the losses against the number of jobs: simulated as points, the closed forms as lines."""
    counts = range(1, 17)
    saves = WORK / INTERVAL - 1
    many = np.linspace(1, 16, 200)
    ax.plot(many, 100 * saves * many * ALONE / WORK, color=COLOURS[0], label="n x size / bandwidth a save")
    apart = np.maximum(ALONE, many * ALONE - INTERVAL)
    ax.plot(many, 100 * saves * apart / WORK, color=COLOURS[1], label="the least that is possible")
    ax.plot(counts, [100 * loss(n, 0) for n in counts], "o", color=COLOURS[0], label="jobs that save together")
    spread = [100 * loss(n, (INTERVAL + ALONE) / n) for n in counts]
    ax.plot(counts, spread, "s", color=COLOURS[1], label="jobs that start evenly apart")
    ax.set_xlabel("jobs that save to one storage")
    ax.set_ylabel("time in saves, % of the work")
    ax.set_title("A save of 10 s alone after each 60 s of work", loc="left")


def draw_intervals(ax: Axes) -> None:
    """Draw the overhead against the interval, under failures: a job alone, and eight jobs."""
    daly = daly_interval(COST, BETWEEN)
    fine = np.geomspace(0.25, 4, 200) * daly
    ax.plot(fine, [100 * expected(each) for each in fine], color=COLOURS[0], label="expected, one job (Daly)")
    tried = np.geomspace(0.25, 4, 13) * daly
    for jobs, colour, mark in ((1, COLOURS[0], "o"), (8, COLOURS[1], "s")):
        work = 2_400_000.0 / jobs
        found = [100 * overhead(jobs, each, work) for each in tried]
        ax.plot(
            tried, found, mark, color=colour, label="one job" if jobs == 1 else f"{jobs} jobs that share the storage"
        )
    ax.axvline(daly, color=GREY, linestyle="--", linewidth=1)
    ax.annotate("Daly's interval", (daly, 0.97), (6, 0), xycoords=("data", "axes fraction"), textcoords="offset points")
    ax.set_xscale("log")
    ax.set_xticks([150, 300, 600, 1200, 2400], ["150", "300", "600", "1200", "2400"])
    ax.minorticks_off()
    ax.set_xlabel("interval between saves, s of work")
    ax.set_ylabel("time beside the work, % of it")
    ax.set_title("A save of 60 s alone, a failure of each job every hour", loc="left")


def draw() -> plt.Figure:
    """Return the picture: the losses by contention, and the overheads by interval."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6))
    draw_losses(left)
    draw_intervals(right)
    for ax in (left, right):
        ax.set_ylim(bottom=0)
        tidy(ax)
        ax.legend(frameon=False)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    mpl.use("Agg")
    draw().savefig(Path(__file__).parents[1] / "images" / "checkpoints.png", dpi=110)
