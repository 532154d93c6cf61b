"""The gain from malleable jobs: turnaround and waits of a log when a share of its jobs is malleable.

The question of Zojer, Posner, Özden, "Evaluating malleable job scheduling in HPC clusters using real-world workloads"
(2025), who simulated logs of Cori, Eagle and Theta with ElastiSim: turnaround 37 to 67 % and waits 73 to 99 % lower,
with gains from 20 % of malleable jobs on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

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

_MEASURES = ("turnaround", "wait", "run", "utilisation")


def malleable_study(
    workload: Workload,
    processors: int | None = None,
    *,
    shares: Sequence[float] = (0.2, 0.5, 1.0),
    policies: Iterable[str] = MALLEABLE_POLICIES,
    seeds: int = 10,
    serial: float = 0.05,
) -> Table:
    """Return what shares of malleable jobs gain over EASY with rigid jobs: one row per share and policy.

    Columns: ``policy, share, seeds`` and, as means over the seeds divided by the value under EASY, ``turnaround, wait,
    run`` (means over the jobs) and ``utilisation``. Malleable jobs run on a quarter of their processors or more, up to
    twice as many; a seed chooses which jobs are malleable, so one run is enough if all or none are.

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

    >>> from simmodel import load_workload
    >>> from simmodel.work import first
    >>> log = first(load_workload("lublin-128-week"), 150)
    >>> found = malleable_study(log, shares=[0, 1], policies=["shrink-to-start"], seeds=2)
    >>> found["share"].tolist(), found["seeds"].tolist(), found["turnaround"].round(2).tolist()[0]
    ([0, 1], [1, 1], 1.0)
    """
    rigid = _means(workload, processors, "easy")
    rows = []
    for share in shares:
        draws = range(seeds if 0 < share < 1 else 1)
        logs = [make_malleable(workload, share, serial=serial, processors=processors, seed=seed) for seed in draws]
        for policy in policies:
            found = [_means(log, processors, policy) for log in logs]
            gains = [float(np.mean([each[i] / rigid[i] if rigid[i] else 1.0 for each in found])) for i in range(4)]
            rows.append((policy, share, len(draws), *gains))
    columns = zip(*rows, strict=True)
    return Table(dict(zip(("policy", "share", "seeds", *_MEASURES), map(list, columns), strict=True)))


def _means(workload: Workload, processors: int | None, policy: str) -> tuple[float, ...]:
    result = simulate(processors, workload, policy)
    jobs = result.jobs.where(result.counted)
    turnaround = jobs["end"] - jobs["submit"]
    return (
        float(turnaround.mean()),
        float(jobs["wait"].mean()),
        float(jobs["run"].mean()),
        float(result.utilisation().mean()),
    )
