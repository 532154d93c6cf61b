"""The gain from malleable jobs: turnaround and waits of a log when a share of its jobs is malleable.

The question of Zojer, Posner, Özden, "Evaluating malleable job scheduling in HPC clusters using real-world workloads"
(2025), who simulated logs of Cori, Eagle and Theta with ElastiSim: turnaround 37 to 67 % and waits 73 to 99 % lower,
with gains from 20 % of malleable jobs on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from time import process_time
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.experiments.calls import map_calls
from simmodel.runs import simulate
from simmodel.work.table import Table
from simmodel.work.transformations import make_malleable

if TYPE_CHECKING:
    from simmodel.work.workload import Workload

__all__ = ["MALLEABLE_POLICIES", "PAPER_GAINS", "malleable_study"]

MALLEABLE_POLICIES = ("keep-preferred", "shrink-to-start", "equal-shares")
"""The policies of the study."""

PAPER_GAINS = {"turnaround": (0.37, 0.67), "wait": (0.73, 0.99)}
"""By how much means were lower in the paper, over its logs and policies: from, to."""

_MEASURES = ("turnaround", "wait", "run", "utilisation", "cost")


def malleable_study(
    workload: Workload,
    processors: int | None = None,
    *,
    shares: Sequence[float] = (0.2, 0.5, 1.0),
    policies: Iterable[str] = MALLEABLE_POLICIES,
    seeds: int = 10,
    serial: float = 0.05,
    each: bool = False,
    executor: Executor | None = None,
    progress: bool = False,
) -> Table:
    """Return the gains of shares of malleable jobs over EASY with rigid jobs: one row per share and policy.

    Columns: ``policy, share, seeds`` and, as means over the seeds divided by the value under EASY, ``turnaround, wait,
    run`` (means over the jobs), ``utilisation`` and ``cost``, the CPU time of the simulation. Malleable jobs run on a
    quarter of their processors or more, up to twice as many; a seed chooses which jobs are malleable, so one run is
    enough if all or none are.

    Parameters
    ----------
    workload, processors
        the jobs, and the size of the machine; default: that of the workload
    shares, policies
        the shares of malleable jobs, and the policies
    seeds
        how often a share of the jobs is drawn
    serial
        the serial share of the work of malleable jobs (Amdahl)
    each
        return one row per run, with its ``seed``, instead of means
    executor
        where the runs are made, such as a ``ProcessPoolExecutor``; default: here, one after the other
    progress
        show a progress bar

    >>> from simmodel import load_workload
    >>> from simmodel.work import first
    >>> log = first(load_workload("lublin-128-week"), 150)
    >>> found = malleable_study(log, shares=[0, 1], policies=["shrink-to-start"], seeds=2)
    >>> found["share"].tolist(), found["seeds"].tolist(), found["turnaround"].round(2).tolist()[0]
    ([0, 1], [1, 1], 1.0)
    """
    named = tuple(policies)
    draws = [(share, seed) for share in shares for seed in range(seeds if 0 < share < 1 else 1)]
    ratios = map_calls(_draw, _Setting(workload, processors, named, serial), draws, executor, progress)
    rows = [
        (policy, share, seed, *ratio)
        for (share, seed), found in zip(draws, ratios, strict=True)
        for policy, ratio in zip(named, found, strict=True)
    ]
    if each:
        return _table(("policy", "share", "seed", *_MEASURES), rows)
    means = []
    for share in dict.fromkeys(shares):
        for policy in named:
            own = np.array([row[3:] for row in rows if row[:2] == (policy, share)])
            means.append((policy, share, len(own), *own.mean(axis=0).tolist()))
    return _table(("policy", "share", "seeds", *_MEASURES), means)


@attrs.frozen(eq=False)
class _Setting:
    """Settings common to all runs of a study."""

    workload: Workload
    processors: int | None
    policies: tuple[str, ...]
    serial: float


def _table(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Table:
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _draw(setting: _Setting, draw: tuple[float, int]) -> list[tuple[float, ...]]:
    """Return the measures under each policy, divided by those under EASY, for one draw of a share of the jobs."""
    share, seed = draw
    log, processors = setting.workload, setting.processors
    some = make_malleable(log, share, serial=setting.serial, processors=processors, seed=seed)
    rigid = _measures(log, processors, "easy")  # in each process anew: cost is a ratio of CPU times side by side
    found = [_measures(some, processors, policy) for policy in setting.policies]
    return [tuple(a / b if b else 1.0 for a, b in zip(each, rigid, strict=True)) for each in found]


def _measures(workload: Workload, processors: int | None, policy: str) -> tuple[float, ...]:
    begin = process_time()
    result = simulate(processors, workload, policy)
    cost = process_time() - begin
    jobs = result.jobs.where(result.counted)
    turnaround = jobs["end"] - jobs["submit"]
    return (
        float(turnaround.mean()),
        float(jobs["wait"].mean()),
        float(jobs["run"].mean()),
        float(result.utilisation().mean()),
        cost,
    )
