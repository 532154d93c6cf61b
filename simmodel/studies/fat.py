"""HEFT against PEFT over the shape of graphs: random layered graphs from thin to fat, on two different processors.

Run times follow H. Topcuoglu, S. Hariri, M.-Y. Wu, TPDS 13(3), 2002: the mean run time w of a task is uniform from 0 to
twice the overall mean, and its run time on each processor is w times a factor from 1 - beta/2 to 1 + beta/2. The
communication-to-computation ratio (CCR) is the mean time of a transfer over the mean run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from simmodel.experiments.comparison import Exploration, explore
from simmodel.foundation.display import Cells, Shown, texts
from simmodel.generators.layers import layered
from simmodel.metrics.statistics import Interval
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.view.study_plots import fat_curve as drawn
from simmodel.work.table import Table
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike

__all__ = ["CCRS", "FATS", "FatCurve", "Layers", "fat_curve", "two_processors"]

FATS = tuple(round(0.1 * i, 1) for i in range(1, 10))
CCRS = (0.1, 1.0, 10.0)
_MEAN = 100.0  # s, of a task
_BANDWIDTH = 1e6  # bytes/s, of the links


def two_processors() -> MachineSpec:
    """Return a machine of two different processors, each with its own memory, and a link in each direction.

    >>> two_processors()
    <MachineSpec two processors: 2 processors (1 CPUCore, 1 GPU), 2 pools, 2 links>
    """
    return MachineSpec(
        name="two processors",
        pools=[MemoryPoolSpec(name="memory 0"), MemoryPoolSpec(name="memory 1")],
        architectures=[ArchitectureSpec(name="zero"), ArchitectureSpec(name="one")],
        processors=[
            ProcessorSpec(name="processor 0", type="CPUCore", architecture="zero", pool="memory 0"),
            ProcessorSpec(name="processor 1", type="GPU", architecture="one", pool="memory 1"),
        ],
        links=[
            LinkSpec(name=f"{a}->{b}", bandwidth=_BANDWIDTH, between=(f"memory {a}", f"memory {b}"), one_way=True)
            for a, b in ((0, 1), (1, 0))
        ],
    )


@attrs.frozen
class Layers:
    """Layered graphs of one shape and CCR, one per seed; for one seed, CCRs differ only in bytes.

    Parameters
    ----------
    fat, ccr
        the width, from 0 to 1, and communication over computation
    n, regular, density, jump
        of :func:`~simmodel.generators.layers.layered`
    beta
        the heterogeneity of the processors, from 0 to 2

    >>> Layers(fat=0.5, ccr=1.0, n=20)(seed=1)
    <TaskSet fat=0.5 ccr=1: 20 tasks, ... data objects>
    """

    fat: float
    ccr: float
    n: int = 100
    regular: float = 0.9
    density: float = 0.5
    jump: int = 1
    beta: float = 1.0

    def __call__(self, seed: int) -> TaskSet:
        """Return the graph of a seed."""
        shape, running, sizing = np.random.default_rng(seed).spawn(3)
        graph = TaskSet.of(
            layered(self.n, fat=self.fat, regular=self.regular, density=self.density, jump=self.jump, rng=shape)
        )
        n = len(graph)
        parents = graph.parents or [()] * n
        mean = running.uniform(0, 2 * _MEAN, n)
        each = mean[:, None] * running.uniform(1 - self.beta / 2, 1 + self.beta / 2, (n, 2))
        pairs = sorted((parent, child) for child, found in enumerate(parents) for parent in found)
        read: list[list[int]] = [[] for _ in range(n)]
        written: list[list[int]] = [[] for _ in range(n)]
        for edge, (parent, child) in enumerate(pairs):
            written[parent].append(edge)
            read[child].append(edge)
        return TaskSet(
            [float("nan")] * n,
            run_on=[{"zero": a, "one": b} for a, b in each.tolist()],
            inputs=[tuple(found) for found in read],
            outputs=[tuple(found) for found in written],
            sizes=(sizing.uniform(0, 2, len(pairs)) * self.ccr * _MEAN * _BANDWIDTH).tolist(),
            parents=parents,
            name=f"fat={self.fat:g} ccr={self.ccr:g}",
        )


def fat_curve(
    policies: Mapping[str, PolicyLike] | Iterable[PolicyLike] = ("heft", "peft"),
    *,
    fats: Sequence[float] = FATS,
    ccrs: Sequence[float] = CCRS,
    seeds: int | Iterable[int] = 20,
    machine: GivenPlatform = None,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    overlap: bool = True,
    contention: bool = False,
    transfers: Literal["sequential", "parallel"] = "sequential",
    decide: Literal["ready", "submit"] | None = None,
    shape: Mapping[str, float] | None = None,
) -> FatCurve:
    """Run policies on layered graphs of each shape and CCR and return their SLRs.

    By default data move as planners assume: at once, without a processor, and without contention for links.

    Parameters
    ----------
    policies
        names, or labels and policies
    fats, ccrs
        shapes of graphs, from 0 to 1, and communication-to-computation ratios
    seeds
        their number, or the seeds themselves; all policies and CCRs get the same graphs
    machine
        default: :func:`two_processors`
    executor, level, progress
        see :func:`~simmodel.experiments.comparison.explore`
    overlap, contention, transfers, decide
        of :func:`~simmodel.runs.scenario.simulate`
    shape
        further parameters of :class:`Layers`

    Raises
    ------
    InputError
        if a name is unknown, or there is nothing to run

    >>> curve = fat_curve(fats=[0.2, 0.8], ccrs=[1.0], seeds=2, shape={"n": 20})
    >>> curve.table["fat"].tolist(), curve.table["policy"].tolist()
    ([0.2, 0.2, 0.8, 0.8], ['heft', 'peft', 'heft', 'peft'])
    """
    more: dict[str, Any] = dict(shape or {})
    works = {(fat, ccr): Layers(fat=fat, ccr=ccr, **more) for ccr in ccrs for fat in fats}
    found = explore(
        {"machine": two_processors() if machine is None else machine},
        {_label(*key): work for key, work in works.items()},
        policies,
        seeds=seeds,
        executor=executor,
        level=level,
        progress=progress,
        overlap=overlap,
        contention=contention,
        transfers=transfers,
        decide=decide,
    )
    return FatCurve(found, tuple(fats), tuple(ccrs))


def _label(fat: float, ccr: float) -> str:
    return f"fat={fat:g} ccr={ccr:g}"


@attrs.frozen(eq=False, repr=False)
class FatCurve(Shown):
    """SLR over the shape of graphs, for each CCR and policy; ``curve.exploration`` has every run.

    Parameters
    ----------
    exploration
        the runs
    fats, ccrs
        the shapes and the communication-to-computation ratios
    """

    exploration: Exploration
    fats: tuple[float, ...]
    ccrs: tuple[float, ...]

    @property
    def policies(self) -> list[str]:
        return self.exploration.labels("policy")

    def slr(self, fat: float, ccr: float, policy: str) -> Interval:
        return self.exploration.interval("slr", ("machine", _label(fat, ccr), policy))

    def difference(self, fat: float, ccr: float, first: str, second: str) -> Interval:
        """Return the interval of the difference of SLRs between two policies, paired by seed."""
        keys = (("machine", _label(fat, ccr), policy) for policy in (first, second))
        return self.exploration.difference(*keys, metric="slr")

    @property
    def table(self) -> Table:
        """One row per CCR, shape and policy: ``ccr, fat, policy, slr, low, high``."""
        rows = [(ccr, fat, policy) for ccr in self.ccrs for fat in self.fats for policy in self.policies]
        found = [self.slr(fat, ccr, policy) for ccr, fat, policy in rows]
        return Table(
            {
                "ccr": [row[0] for row in rows],
                "fat": [row[1] for row in rows],
                "policy": [row[2] for row in rows],
                "slr": [each.mean for each in found],
                "low": [each.low for each in found],
                "high": [each.high for each in found],
            }
        )

    plot = drawn

    def _cells(self) -> Cells:
        table = self.table
        return [list(table.names), *(texts(row.values()) for row in table.rows())]

    def __repr__(self) -> str:
        return f"<FatCurve {repr(self.exploration).removeprefix('<')}"
