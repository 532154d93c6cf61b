"""HetSim's experiment with setup costs: Sipht on eight cores and three accelerators, with and without setup.

Each seed draws the run times of tasks, the bytes between them, and the speed of each architecture on each task. All
policies get the same draws on all four configurations, so differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from simmodel.experiments.comparison import Exploration, explore
from simmodel.foundation.display import Cells, Shown, text_table
from simmodel.generators.layers import sipht, with_costs
from simmodel.metrics.statistics import Interval
from simmodel.view.study_plots import setup_study as drawn
from simmodel.work.table import Table
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.generators.distributions import Amount
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike

__all__ = ["CLAIMS", "CONFIGURATIONS", "PATSERS", "POLICIES", "Drawn", "Ranking", "SetupStudy", "setup_study"]

CONFIGURATIONS = {
    "slow": "hetsim-slow",
    "fast": "hetsim-fast",
    "slow, setup": "hetsim-slow-setup",
    "fast, setup": "hetsim-fast-setup",
}
"""The machine of HetSim's section 5 with slow and fast accelerators, without and with setup: bundled platforms."""
POLICIES = ("hrr", "greedy-et", "greedy-ds", "heft")
"""The policies of the experiment."""
PATSERS = 21
"""Scans for binding sites in the experiment's Sipht: with them it has the 33 tasks that the paper names."""


@attrs.frozen
class Ranking:
    """The claim that the SLR of one policy on one configuration is below that of another.

    ``lower`` and ``higher`` are pairs (configuration, policy).
    """

    says: str
    lower: tuple[str, str]
    higher: tuple[str, str]


def _claims() -> tuple[Ranking, ...]:
    found = []
    for where, order in (
        ("slow", ("heft", "hrr", "greedy-ds")),
        ("slow", ("heft", "hrr", "greedy-et")),
        ("fast", ("heft", "greedy-ds", "hrr")),
        ("fast", ("heft", "greedy-et", "hrr")),
        ("slow, setup", ("hrr", "heft", "greedy-ds", "greedy-et")),
        ("fast, setup", ("hrr", "heft", "greedy-ds", "greedy-et")),
    ):
        found += [Ranking(f"{a} < {b}", (where, a), (where, b)) for a, b in pairwise(order)]
    for setup in ("", ", setup"):
        found += [Ranking("slow < fast", (f"slow{setup}", policy), (f"fast{setup}", policy)) for policy in POLICIES]
    return tuple(dict.fromkeys(found))


CLAIMS = _claims()
"""The results that HetSim's authors report: without setup HEFT is best, and hRR second with slow accelerators, but
behind the greedy policies with fast ones; with setup hRR is best, then HEFT, GreedyDS and GreedyET; every SLR rises
from slow to fast."""


@attrs.frozen
class Drawn:
    """A graph whose costs are drawn for each seed, as in HetSim's experiment.

    See :func:`~simmodel.generators.with_costs`.

    >>> Drawn(sipht())(seed=1).name
    'sipht-29'
    """

    graph: Workflow | TaskSet
    options: Mapping[str, Any] = attrs.field(factory=dict)

    def __call__(self, seed: int) -> Workflow:
        return with_costs(self.graph, rng=np.random.default_rng(seed), **self.options)


def setup_study(
    policies: Mapping[str, PolicyLike] | Iterable[PolicyLike] = POLICIES,
    *,
    seeds: int | Iterable[int] = 20,
    graph: Workflow | TaskSet | None = None,
    configurations: Mapping[str, GivenPlatform] = CONFIGURATIONS,
    draws: Mapping[str, Amount] | None = None,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    overlap: bool = False,
    contention: bool = True,
    transfers: Literal["sequential", "parallel"] = "sequential",
    decide: Literal["ready", "submit"] | None = None,
) -> SetupStudy:
    """Run the experiment of HetSim's section 5.

    Parameters
    ----------
    policies
        names, or labels and policies
    seeds
        their number, or the seeds themselves
    graph
        the graph, of which only the shape is used; default: Sipht with 33 tasks, as in the paper (21 scans for binding
        sites; Pegasus's Sipht_30, ``sipht()``, has 29 tasks)
    configurations
        labels and machines
    draws
        options of :func:`~simmodel.generators.layers.with_costs`, for other run times and data
    executor
        runs the simulations; default: this process
    level
        confidence of the intervals
    progress
        show a progress bar
    overlap, contention, transfers, decide
        of :func:`~simmodel.runs.scenario.simulate`

    Raises
    ------
    InputError
        if a name is unknown, or there is nothing to run

    >>> study = setup_study(["hrr", "heft"], seeds=2)
    >>> print(study.summary())                                                   # doctest: +ELLIPSIS
    SLR   slow ...
    hrr   ...
    heft  ...
    """
    found = explore(
        dict(configurations),
        {"work": Drawn(sipht(PATSERS) if graph is None else graph, dict(draws or {}))},
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
    return SetupStudy(found)


@attrs.frozen(eq=False, repr=False)
class SetupStudy(Shown):
    """The results of the experiment; ``study.exploration`` has every run with all its metrics.

    Parameters
    ----------
    exploration
        the runs: platforms are configurations
    """

    exploration: Exploration

    @property
    def configurations(self) -> list[str]:
        return self.exploration.labels("platform")

    @property
    def policies(self) -> list[str]:
        return self.exploration.labels("policy")

    def slr(self, configuration: str, policy: str) -> Interval:
        return self.exploration.interval("slr", (configuration, "work", policy))

    @property
    def table(self) -> Table:
        """One row per configuration and policy: ``configuration, policy, slr, low, high, rank``."""
        columns: dict[str, list[Any]] = {name: [] for name in ("configuration", "policy", "slr", "low", "high", "rank")}
        for where in self.configurations:
            means = {policy: self.slr(where, policy) for policy in self.policies}
            order = sorted(means, key=lambda policy: means[policy].mean)
            for policy, found in means.items():
                values = (where, policy, found.mean, found.low, found.high, order.index(policy) + 1)
                for name, value in zip(columns, values, strict=True):
                    columns[name].append(value)
        return Table(columns)

    @property
    def claims(self) -> Table:
        """One row per claim of :data:`CLAIMS`: ``configuration, claim, difference, low, high, holds, sure``.

        The difference is the mean SLR claimed to be higher less the other, paired by seed. ``holds``: it is positive;
        ``sure``: its whole interval is.
        """
        columns: dict[str, list[Any]] = {
            name: [] for name in ("configuration", "claim", "difference", "low", "high", "holds", "sure")
        }
        for claim in CLAIMS:
            (where, lower), (other, higher) = claim.lower, claim.higher
            if not {where, other} <= set(self.configurations) or not {lower, higher} <= set(self.policies):
                continue
            found = self.exploration.difference((other, "work", higher), (where, "work", lower), metric="slr")
            says = claim.says if where == other else f"{lower}: {claim.says}"
            place = where if where == other else f"{where} and {other}"
            values = (place, says, found.mean, found.low, found.high, found.mean > 0, found.low > 0)
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)
        return Table(columns)

    def summary(self) -> str:
        """Return mean SLRs with the half widths of their intervals as a table of text, one line per policy."""
        rows = self._cells()
        return "\n".join(text_table(rows, left=len(rows[0])))

    def _cells(self) -> Cells:
        rows = [["SLR", *self.configurations]]
        for policy in self.policies:
            found = [self.slr(where, policy) for where in self.configurations]
            rows.append(
                [policy, *(f"{each.mean:.2f}{'' if each.why else f' ± {each.half_width:.2f}'}" for each in found)]
            )
        return rows

    plot = drawn

    def __repr__(self) -> str:
        return f"<SetupStudy {repr(self.exploration).removeprefix('<')}"
