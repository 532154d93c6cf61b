"""Agents beside heuristics on weeks of a log that they have not seen, with intervals of the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.comparison import explore, labelled_policies
from simmodel.foundation.display import Cells, Shown, counted, figures, text_table
from simmodel.foundation.errors import InputError, unknown
from simmodel.learn.episodes import Span, apart, seconds_of, within
from simmodel.metrics.statistics import Interval, cautious_interval
from simmodel.scheduling.registry import policy as policy_named
from simmodel.systems.submissions import read_workload
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size
    from simmodel.work.workload import Workload

__all__ = ["HEURISTICS", "Judgement", "Trained", "judge"]

_ORDERS = ("fcfs", "sjf", "smallest", "wfp", "unicef", "f1", "f2", "f3", "f4")
HEURISTICS = {
    "jobs": (*_ORDERS, *(f"{order}+easy" for order in _ORDERS), "easy-sjbf", "conservative", "best-fit"),
    "systems": ("round-robin", "random", "least-loaded", "shortest-wait", "earliest-finish", "sgs-t", "data-locality"),
}
"""The heuristics beside agents that decide when jobs start, and beside those that route them."""
_FEWEST = 5  # weeks with an interval


@attrs.frozen
class Trained:
    """An agent and its training.

    Parameters
    ----------
    policy
        the agent: see :func:`~simmodel.learn.agents.agent_policy`
    steps
        the steps of its training
    seconds
        their CPU time (s)
    span
        the range of the log that it has learned from or was chosen on, as for
        :class:`~simmodel.learn.episodes.Episodes`; it is not judged on weeks of it
    """

    policy: PolicyLike
    steps: int = 0
    seconds: float = nan
    span: Span | None = None


GivenAgent: TypeAlias = "Trained | PolicyLike | Sequence[Trained | PolicyLike]"
"""An agent, or those that the same training made with several seeds."""


def judge(
    agents: Mapping[str, GivenAgent],
    log: GivenWork,
    weeks: Sequence[Span],
    /,
    platform: GivenPlatform = None,
    *,
    metric: str = "bounded_slowdown_mean",
    heuristics: Mapping[str, PolicyLike] | Sequence[PolicyLike] | None = None,
    level: float = 0.95,
    **options: Any,
) -> Judgement:
    """Run agents and heuristics on each week of a log, beginning with an empty system, and compare them week by week.

    Parameters
    ----------
    agents
        by name: agents, each alone or in a list of those with different seeds, with their training if it is known
    log
        the jobs
    weeks
        the ranges of time of the log, one for each comparison, as spans of
        :class:`~simmodel.learn.episodes.Episodes`; they need not be weeks, but are best long beside the waits
    platform
        as for :func:`~simmodel.runs.scenario.simulate`; default: the cluster that the log was recorded on
    metric
        one of ``result.metrics()``, low values of which are good
    heuristics
        the policies beside the agents; default: those of :data:`HEURISTICS`
    level
        confidence of the intervals, between 0 and 1
    options
        of :func:`~simmodel.experiments.comparison.explore`, such as ``executor``, and of each simulation

    Raises
    ------
    InputError
        there is no agent or no job in a week, weeks overlap or an agent has learned from one, two policies have one
        name, or the metric is unknown

    >>> from simmodel.learn import agent_policy, batch_env, judge
    >>> def shortest(observation, mask):
    ...     return int(np.where(mask, observation["jobs"][:, 2], 2.0).argmin())
    >>> agent = agent_policy(shortest, batch_env(window=16))
    >>> days = [(f"{day}d", f"{day + 1}d") for day in range(6)]
    >>> found = judge({"agent": agent}, "lublin-128-week", days, heuristics=["fcfs", "sjf"], metric="wait_mean")
    >>> found.best, len(found.weeks), found.difference("agent", "fcfs").mean < 0
    ('sjf', 6, True)
    """
    trained = {name: _several(each) for name, each in agents.items()} if isinstance(agents, Mapping) else {}
    if not trained or not all(trained.values()):
        raise InputError(f"must be at least one agent by name, got {agents!r}", place="agents")
    if "seeds" in options:
        raise InputError("must not be given: each week is run once", place="seeds")
    work = _work(read_workload(log), weeks, trained)
    labels = {
        name: [name] if len(seeds) == 1 else [f"{name} {n}" for n in range(1, len(seeds) + 1)]
        for name, seeds in trained.items()
    }
    runs: dict[str, PolicyLike] = {}
    for name, seeds in trained.items():
        for label, each in zip(labels[name], seeds, strict=True):
            if label in runs:
                raise InputError(f"duplicate name {label!r}", place="agents")
            runs[label] = each.policy
    if heuristics is None:
        kind = policy_named(next(iter(runs.values()))).decides
        heuristics = HEURISTICS["systems" if kind == "systems" else "jobs"]
    others = labelled_policies(heuristics)
    for name in others:
        if name in runs or name in trained:
            raise InputError(f"must not have the name of a heuristic, {name!r}", place="agents")
    found = explore({"system": platform}, work, runs | others, seeds=[0], level=level, **options)
    if metric not in found.measures:
        raise unknown("metric", metric, found.measures)
    column, policies = found.samples[metric], found.samples["policy"]
    beside = sorted(others, key=lambda name: (float(column[policies == name].mean()), name))
    labels |= {name: [name] for name in beside}
    values = {name: np.array([column[policies == label] for label in each]) for name, each in labels.items()}
    return Judgement(values, trained, list(work), found.title(metric), level)


def _several(given: GivenAgent) -> tuple[Trained, ...]:
    each = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return tuple(one if isinstance(one, Trained) else Trained(one) for one in each)


def _work(log: Workload, weeks: Sequence[Span], trained: Mapping[str, Sequence[Trained]]) -> dict[str, Workload]:
    """Return the jobs of each week, which overlaps neither another one nor the spans of agents."""
    if not isinstance(weeks, Sequence) or not weeks:
        raise InputError(f"must be at least one span, got {weeks!r}", place="weeks")
    found = {}
    for begin, end in apart({f"week {n}": week for n, week in enumerate(weeks, 1)}, "weeks").values():
        for name, seeds in trained.items():
            for first, last in (seconds_of(each.span) for each in seeds if each.span is not None):
                if begin < last and first < end:
                    reason = f"must not have learned from what it is judged on, {begin:g} to {end:g} s"
                    raise InputError(reason, place=f"agents, {name}")
        week = f"{begin:g} to {end:g} s"
        found[week] = within(log, (begin, end))
        if not len(found[week]):
            raise InputError(f"has no jobs from {week}", place="weeks")
    return found


@attrs.frozen(eq=False, repr=False)
class Judgement(Shown):
    """Agents and heuristics on unseen weeks.

    The best heuristic is the best one in hindsight, on these very weeks, which favours it. Intervals are those of
    :func:`~simmodel.metrics.statistics.cautious_interval` over the weeks, for agents of the mean of their seeds; with
    fewer than five weeks there are none.

    Parameters
    ----------
    values
        the metric of each policy, of shape (seeds, weeks): agents first, then heuristics, the best one first
    trained
        the seeds of each agent
    weeks
        the labels of the weeks
    title
        what is measured
    level
        confidence of the intervals
    """

    values: Mapping[str, NDArray[np.float64]]
    trained: Mapping[str, tuple[Trained, ...]]
    weeks: list[str]
    title: str
    level: float

    @property
    def heuristics(self) -> list[str]:
        """The names of the heuristics, the best one first."""
        return [name for name in self.values if name not in self.trained]

    @property
    def best(self) -> str:
        """The heuristic with the lowest mean over the weeks."""
        return self.heuristics[0]

    def _mean(self, name: str) -> NDArray[np.float64]:
        if name not in self.values:
            raise unknown("agent or heuristic", name, self.values)
        found: NDArray[np.float64] = self.values[name].mean(axis=0)
        return found

    def interval(self, name: str) -> Interval:
        """Return the mean of an agent or a heuristic over the weeks, with its interval."""
        return self._interval(self._mean(name))

    def difference(self, name: str, other: str | None = None) -> Interval:
        """Return the mean difference to another one (default: the best heuristic) over the weeks, with its interval."""
        return self._interval(self._mean(name) - self._mean(other or self.best))

    def _interval(self, values: NDArray[np.float64]) -> Interval:
        if len(values) < _FEWEST:
            return Interval(float(values.mean()), nan, self.level, len(values), f"fewer than {_FEWEST} weeks")
        return cautious_interval(values, self.level)

    @property
    def table(self) -> Table:
        """One row a policy: ``policy, seeds, mean, low, high, worst_seed``, the difference from the best heuristic
        ``difference, difference_low, difference_high``, and ``steps`` and ``seconds`` (CPU) of all its seeds."""
        columns: dict[str, list[Any]] = {}
        for name, values in self.values.items():
            own, other, seeds = self.interval(name), self.difference(name), self.trained.get(name, ())
            row = {
                "policy": name, "seeds": len(seeds), "mean": own.mean, "low": own.low, "high": own.high,
                "worst_seed": float(values.mean(axis=1).max()), "difference": other.mean, "difference_low": other.low,
                "difference_high": other.high, "steps": sum(each.steps for each in seeds),
                "seconds": sum([each.seconds for each in seeds]),
            }  # fmt: skip
            for column, value in row.items():
                columns.setdefault(column, []).append(value)
        return Table(columns)

    def summary(self) -> str:
        """Return a table of text: agents first, then heuristics, the best one first."""
        weeks = f"{len(self.weeks)} weeks, each from an empty system"
        few = "" if len(self.weeks) >= _FEWEST else f"; no intervals: fewer than {_FEWEST} weeks"
        return "\n".join([*text_table(self._cells()), f"{weeks}{few}; the best heuristic in hindsight: {self.best}"])

    def _cells(self) -> Cells:
        rows = [["", self.title, f"less {self.best}", "seeds", "worst seed", "steps", "CPU s"]]
        for row in self.table.rows():
            name = row["policy"]
            about = (f"{row['seeds']}", figures(row["worst_seed"], 4), f"{row['steps']:,}", f"{row['seconds']:.0f}")
            apart_by = "" if name == self.best else _text(self.difference(name))
            rows.append([name, _text(self.interval(name)), apart_by, *(about if name in self.trained else [""] * 4)])
        return rows

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw the differences from the best heuristic with their intervals.

        Parameters
        ----------
        title, figsize
            title of the page; width and height of the figure, inches
        """
        from simmodel.view.experiment_plots import differences

        shown = {name: self.difference(name) for name in self.values if name != self.best}
        return differences(
            shown, f"{self.title}, less {self.best}", title=title, figsize=figsize, style=style, save=save
        )

    def __repr__(self) -> str:
        agents, others, weeks = len(self.trained), len(self.heuristics), len(self.weeks)
        several = f"{counted(agents, 'agent')}, {counted(others, 'heuristic')}, {counted(weeks, 'week')}"
        return f"<Judgement: {several}>"


def _text(found: Interval) -> str:
    equal = " (all weeks equal)" if found.count >= _FEWEST else ""
    return figures(found.mean, 4) + (equal if isnan(found.half_width) else f" ± {figures(found.half_width, 2)}")
