"""The fill of a GPU cluster until it is full: which placement leaves the fewest GPUs that nobody can use.

The experiment of Q. Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient
descent", USENIX ATC 2023, as its public run scripts set it up: the nodes with GPUs; the pods of a trace, shuffled by a
seed, and pods of it drawn again after them until 130 % of all GPUs are asked for (or so many left out); none departs,
and a pod that fits nowhere when it comes is dropped. Typical pods of FGD are the most frequent ones that cover 95 % of
the trace, those without GPU among them. Policies that leave the device open take the fullest that is enough. Nodes are
numbered by the seed, too: the published simulator puts a random number before their names, and gives ties to the lowest
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from itertools import groupby
from typing import NamedTuple

import attrs
import numpy as np

from simmodel.experiments.calls import map_calls
from simmodel.formats.openb import read_openb, read_openb_nodes
from simmodel.foundation.loading import Source
from simmodel.metrics.devices import GpuUse
from simmodel.platform.cluster import ClusterSpec
from simmodel.resources.pools.scores import mix_of
from simmodel.runs import simulate, start
from simmodel.scheduling.protocol import Decision, Policy, Start, View
from simmodel.work.job import Job
from simmodel.work.table import Table

__all__ = ["FILL_PLACEMENTS", "OnArrival", "fill_study", "filled", "replay_study"]

FILL_PLACEMENTS = ("random", "dot-product", "gpu-clustering", "gpu-packing", "gpu-best-fit", "fgd")
"""The placements of the study."""

FOREVER = 1e9  # s


class OnArrival(Policy):
    """Start each job that fits when it comes; one that does not is never tried again."""

    name = "on-arrival"
    decides = "jobs"

    def decide(self, view: View) -> Iterable[Decision]:
        """Start the new jobs that fit."""
        for job in list(view.waiting.new):
            if view.places[0].fits(job):
                yield Start(job, view.places[0])


def fill_study(
    pods: Source,
    nodes: Source,
    *,
    placements: Sequence[str] = FILL_PLACEMENTS,
    seeds: Sequence[int] = tuple(range(1, 11)),
    ties: str = "lowest",
    demand: float = 1.3,
    at: Sequence[float] = (0.6, 0.8, 1.0, 1.3),
    executor: Executor | None = None,
    progress: bool = False,
) -> Table:
    """Return the GPUs that are allocated, in percent of all, by placement, seed and GPUs asked for so far.

    Columns: ``placement, seed, asked`` (percent of all GPUs), ``allocated`` (percent), ``pods`` and ``dropped``.

    Parameters
    ----------
    pods, nodes
        the files of openb
    placements
        those to compare; ``"fgd"`` is given the mix of the pods
    seeds
        of the shuffle, the draws, the order of the nodes, and random placements
    ties
        to which node equal scores go: ``"lowest"`` or ``"random"``
    demand
        the GPUs that all pods ask for, as a part of all
    at
        the parts of all GPUs that are asked for, at which it is told what is allocated
    executor, progress
        as for other studies
    """
    trace = read_openb(pods)
    jobs = [attrs.evolve(job, run=FOREVER, submit=0.0) for job in trace.replace(run=np.ones(len(trace))).jobs()]
    specs = _placed(read_openb_nodes(nodes), jobs, placements, ties)
    cells = [(name, seed) for name in placements for seed in seeds]
    setting = _Setting(specs, jobs, demand, tuple(at))
    found = map_calls(_fill, setting, cells, executor, progress)
    rows = [(*cell, *row) for cell, each in zip(cells, found, strict=True) for row in each]
    names = ("placement", "seed", "asked", "allocated", "pods", "dropped")
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def replay_study(
    pods: Source,
    nodes: Source,
    *,
    placements: Sequence[str] = ("gpu-best-fit", "fgd"),
    every: Sequence[int] = (1, 100, 130),
    policy: str = "easy",
) -> Table:
    """Return how long pods wait and how many GPUs are allocated if they come and go at the times of the trace.

    Columns: ``nodes, gpus, placement``; ``waited``, how many pods did, and ``wait_mean, wait_max`` (s) of all;
    ``allocated`` and ``most``, GPUs on average over time and at most; ``useless``, idle ones that the most frequent
    requests cannot use, on average; ``rejected``, pods for which no node is large enough.

    Parameters
    ----------
    pods, nodes, placements
        as of :func:`fill_study`
    every
        which of the nodes with GPUs there are: every first, or every hundredth; the trace asks for 1 % of all
    policy
        the order in which pods start
    """
    trace, spec = read_openb(pods), read_openb_nodes(nodes)
    rows = []
    for step in every:
        for name, placed in _placed(spec, trace.jobs(), placements, "lowest", step).items():
            result = simulate(placed, trace, policy)
            use, metrics, kinds = GpuUse(result), result.metrics(), placed.partitions[0].nodes
            held = use.allocated()
            rows.append(
                (
                    sum(kind.count for kind in kinds),
                    sum(kind.gpus * kind.count for kind in kinds),
                    name,
                    int((result.jobs["wait"] > 0).sum()),
                    metrics["wait_mean"],
                    metrics["wait_max"],
                    held.mean(),
                    held.max(),
                    use.fragmentation().mean(),
                    metrics["status"].get("rejected", 0),
                )
            )
    names = (
        "nodes",
        "gpus",
        "placement",
        "waited",
        "wait_mean",
        "wait_max",
        "allocated",
        "most",
        "useless",
        "rejected",
    )
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _placed(
    spec: ClusterSpec, jobs: Sequence[Job], placements: Sequence[str], ties: str, every: int = 1
) -> dict[str, ClusterSpec]:
    """Return the nodes with GPUs, or one of ``every`` of them, under each placement."""
    part = spec.partitions[0]
    nodes = [kind for kind in part.nodes for _ in range(kind.count) if kind.gpus][::every]
    chosen = [kind.resized(len(list(alike))) for kind, alike in groupby(nodes)]
    found = {}
    for name in placements:
        given = mix_of(jobs) if name == "fgd" else ""
        options = ", ".join(filter(None, (given, "" if name == "random" else f"ties={ties}")))
        placement = f"{name}({options})" if options else name
        found[name] = attrs.evolve(spec, partitions=[attrs.evolve(part, nodes=chosen, placement=placement)])
    return found


class _Setting(NamedTuple):
    specs: dict[str, ClusterSpec]
    jobs: list[Job]
    demand: float
    at: tuple[float, ...]


def _fill(setting: _Setting, cell: tuple[str, int]) -> list[tuple[float, float, int, int]]:
    placement, seed = cell
    return filled(setting.specs[placement], setting.jobs, seed, setting.demand, setting.at)


def drawn(jobs: Sequence[Job], gpus: float, seed: int) -> list[Job]:
    """Return the jobs shuffled, one a second, with more drawn after them, or as many left out, to ask for ``gpus``."""
    rng = np.random.default_rng(seed)
    order: list[int] = rng.permutation(len(jobs)).tolist()
    amounts = [job.gpus_per_node for job in jobs]
    total = sum(amounts)
    while total > gpus:
        total -= amounts[order.pop(int(rng.integers(len(order))))]
    if len(order) == len(jobs):
        while total + min(amounts[again := int(rng.integers(len(jobs)))], 1) <= gpus:
            total += amounts[again]
            order.append(again)
    return [attrs.evolve(jobs[row], id=number, submit=float(number)) for number, row in enumerate(order)]


def filled(
    spec: ClusterSpec, jobs: Sequence[Job], seed: int, demand: float, at: Sequence[float]
) -> list[tuple[float, float, int, int]]:
    """Fill a cluster; return what is allocated when some parts of its GPUs are asked for.

    Each row: percent asked for, percent allocated, pods so far, and how many of them were dropped.
    """
    part = spec.partitions[0]
    gpus = sum(kind.gpus * kind.count for kind in part.nodes)
    kinds = (kind for kind in part.nodes for _ in range(kind.count))
    nodes = [attrs.evolve(kind, names=name, count=1) for kind, name in zip(kinds, part.node_names, strict=True)]
    order: list[int] = np.random.default_rng([seed, 1]).permutation(len(nodes)).tolist()
    spec = attrs.evolve(spec, partitions=[attrs.evolve(part, nodes=[nodes[row] for row in order])])
    pods = drawn(jobs, demand * gpus, seed)
    sim = start(spec, pods, OnArrival(), seed=seed)
    sim.run(until=float(len(pods)))
    started = np.isfinite(sim.result().jobs["start"])
    amounts = np.array([job.gpus_per_node for job in pods])
    asked = np.cumsum(amounts) / gpus
    held = np.cumsum(np.where(started, amounts, 0.0)) / gpus
    last = np.minimum(np.searchsorted(asked, np.array(at)), len(pods) - 1)
    dropped = np.cumsum(~started)
    return [
        (100 * part, 100 * float(held[row]), int(row) + 1, int(dropped[row]))
        for part, row in zip(at, last.tolist(), strict=True)
    ]
