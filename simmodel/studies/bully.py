"""The bully effect: on a dragonfly, jobs that send much slow down those that send little, by where they lie.

The question of X. Yang, J. Jenkins, M. Mubarak, R. B. Ross, Z. Lan, "Watch out for the bully! Job interference study on
dragonfly network", SC 2016, who replayed traces of three applications: nodes that are chosen at random balance the load
of those that send much, at the expense of those that send little; a hybrid placement lessens the worst that happens to
these, and retains the performance of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import attrs
import numpy as np

from simmodel.experiments.calls import map_calls
from simmodel.metrics.statistics import all_equal
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.topology import read_topology
from simmodel.runs import simulate
from simmodel.work.job import Job
from simmodel.work.table import Table
from simmodel.work.traffic import Traffic

__all__ = ["BULLY_PLACEMENTS", "bully_claims", "bully_study"]

BULLY_PLACEMENTS = ("contiguous", "random", "hybrid(limit=40)")
"""The placements of the study."""

NETWORK = "dragonfly:9,2;2;8;4 bandwidth=1GBps"
COMPUTE = 100.0  # s
HEAVY, LIGHT = (72, 128), (8, 40)  # nodes, from and to
SENDS = {"heavy": 0.5e9, "light": 0.5e9}  # bytes/s of a node, over the time that it computes


def bully_study(
    network: str = NETWORK,
    *,
    placements: Sequence[str] = BULLY_PLACEMENTS,
    seeds: int = 10,
    sharing: str = "fair-bottleneck",
    executor: Executor | None = None,
    progress: bool = False,
) -> Table:
    """Return how much jobs that fill a dragonfly are slowed: one row per placement, seed and kind of job.

    Three heavy jobs (all-to-all, 72 to 128 nodes) and light ones (rings of 8 to 40 nodes) start together, in an order
    that the seed draws as it does their sizes; each node sends 0.5 GB/s while it computes for 100 s. Columns:
    ``placement, seed, kind, jobs`` and, as means over the jobs of that kind, ``slowdown``, the time until their end
    over the time that they compute, which is all they would take if no link between the hosts were too slow; and
    ``stretch``, the time until their end over what each would take alone on its nodes. ``worst`` is the largest
    slowdown of one of them.

    Parameters
    ----------
    network
        the text of a dragonfly
    placements
        those to compare
    seeds
        how often the jobs are drawn
    sharing
        the rule by which jobs share links
    executor
        where the runs are made, such as a ``ProcessPoolExecutor``; default: here, one after the other
    progress
        show a progress bar

    >>> found = bully_study(seeds=1)
    >>> found["placement"].tolist()[::2], found["kind"].tolist()[:2]
    (['contiguous', 'random', 'hybrid(limit=40)'], ['heavy', 'light'])
    """
    cells = [(placement, seed) for placement in placements for seed in range(seeds)]
    found = map_calls(_run, _Setting(network, sharing), cells, executor, progress)
    rows = [(*cell, *row) for cell, kinds in zip(cells, found, strict=True) for row in kinds]
    names = ("placement", "seed", "kind", "jobs", "slowdown", "stretch", "worst")
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def bully_claims(found: Table) -> Table:
    """Return the paper's claims beside a study of the placements ``contiguous``, ``random`` and a hybrid one.

    The last claim goes beyond the paper: light jobs may be slowed less by the hybrid than by adjacent nodes, too.
    Columns: ``claim``; ``difference``, the mean over the seeds of the slowdown that is to be larger minus the other;
    ``error``, its standard error, infinite if all differences are equal; ``seeds``, in how many of them it is larger;
    ``holds``, whether the difference is above twice its error.

    >>> bully_claims(bully_study(seeds=3))["holds"].tolist()
    [True, True, True, True, False]
    """
    hybrid = next(name for name in found["placement"].tolist() if name.startswith("hybrid"))

    def slowdown(placement: str, kind: str, of: str = "slowdown") -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        here = (found["placement"] == placement) & (found["kind"] == kind)
        return np.array(found[of][here], dtype=np.float64)

    lowest = np.minimum(slowdown("contiguous", "light"), slowdown("random", "light"))
    claims = {
        "light: random > contiguous": slowdown("random", "light") - slowdown("contiguous", "light"),
        "heavy: contiguous > random": slowdown("contiguous", "heavy") - slowdown("random", "heavy"),
        "light, the worst: random > hybrid": slowdown("random", "light", "worst") - slowdown(hybrid, "light", "worst"),
        "heavy: random > hybrid": slowdown("random", "heavy") - slowdown(hybrid, "heavy"),
        "light: both > hybrid": lowest - slowdown(hybrid, "light"),
    }
    errors = [
        np.inf if len(each) < 2 or all_equal(each) else float(each.std(ddof=1) / len(each) ** 0.5)
        for each in claims.values()
    ]
    means = [float(each.mean()) for each in claims.values()]
    return Table(
        {
            "claim": list(claims),
            "difference": means,
            "error": errors,
            "seeds": [int((each > 0).sum()) for each in claims.values()],
            "holds": [mean > 2 * error for mean, error in zip(means, errors, strict=True)],
        }
    )


@attrs.frozen(eq=False)
class _Setting:
    """Settings common to all runs of a study."""

    network: str
    sharing: str


def _jobs(nodes: int, seed: int) -> list[Job]:
    """Return jobs that fill the nodes, in an order that is drawn."""
    rng = np.random.default_rng(seed)
    sizes = [("heavy", size) for size in rng.integers(HEAVY[0], HEAVY[1] + 1, 3).tolist()]
    left = nodes - sum(size for _, size in sizes)
    while left >= LIGHT[0]:
        sizes.append(("light", int(min(left, rng.integers(LIGHT[0], LIGHT[1] + 1)))))
        left -= sizes[-1][1]
    made = []
    for number in rng.permutation(len(sizes)).tolist():
        kind, size = sizes[number]
        pattern, others = ("all-to-all", size - 1) if kind == "heavy" else ("ring", 1)
        traffic = Traffic(pattern, bytes=SENDS[kind] * COMPUTE / others)
        made.append(Job(id=f"{kind}-{number}", nodes=size, traffic=traffic, compute=COMPUTE))
    return made


def _run(setting: _Setting, cell: tuple[str, int]) -> list[tuple[str, int, float, float, float]]:
    """Return the measures of the jobs of each kind."""
    placement, seed = cell
    nodes = len(read_topology(setting.network).hosts)
    part = PartitionSpec(nodes=[NodeSpec(count=nodes)], network=setting.network, placement=placement)
    spec = ClusterSpec(partitions=[part])
    runs = simulate(spec, _jobs(nodes, seed), "fcfs", seed=seed, sharing=setting.sharing).runs
    kinds = np.array([str(job).partition("-")[0] for job in runs["job"]])
    slowdown = (runs["end"] - runs["start"]) / COMPUTE
    rows = []
    for kind in ("heavy", "light"):
        own = kinds == kind
        means = float(slowdown[own].mean()), float(runs["stretch"][own].mean())
        rows.append((kind, int(own.sum()), *means, float(slowdown[own].max())))
    return rows
