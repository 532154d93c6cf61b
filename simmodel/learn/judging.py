"""Agents beside heuristics on weeks of a log that they have not seen, with intervals of the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.comparison import labelled_policies
from simmodel.experiments.exploration import Exploration, explore
from simmodel.foundation.display import Cells, Shown, counted, text_table
from simmodel.foundation.errors import InputError, unknown
from simmodel.learn.episodes import Span, seconds_of, within
from simmodel.metrics.statistics import Interval, cautious_interval
from simmodel.scheduling.registry import policy as policy_named
from simmodel.systems.submissions import read_workload
from simmodel.work.table import Table

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size

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
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
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
    seed, executor, progress, options
        as for :func:`~simmodel.experiments.exploration.explore`

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
    trained = {name: _several(each) for name, each in agents.items()}
    if not trained or not all(trained.values()):
        raise InputError("must have at least one agent", place="agents")
    found = read_workload(log)
    work = {f"{begin:g} to {end:g} s": within(found, (begin, end)) for begin, end in _apart(weeks, trained)}
    for week, jobs in work.items():
        if not len(jobs):
            raise InputError(f"has no jobs from {week}", place="weeks")
    runs: dict[str, PolicyLike] = {}
    for name, seeds in trained.items():
        for label, each in _by_seed(name, seeds):
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
    measured = explore(
        {"system": platform},
        work,
        runs | others,
        seeds=[seed],
        level=level,
        executor=executor,
        progress=progress,
        **options,
    )
    if metric not in measured.metrics:
        raise unknown("metric", metric, measured.metrics)
    return Judgement(measured, trained, metric)


def _several(given: GivenAgent) -> tuple[Trained, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        return tuple(each if isinstance(each, Trained) else Trained(each) for each in given)
    return (given if isinstance(given, Trained) else Trained(given),)


def _by_seed(name: str, seeds: Sequence[Trained]) -> list[tuple[str, Trained]]:
    """Return the agents of a name with labels of their own."""
    return [(name if len(seeds) == 1 else f"{name} {number}", each) for number, each in enumerate(seeds, 1)]


def _apart(weeks: Sequence[Span], trained: Mapping[str, Sequence[Trained]]) -> list[tuple[float, float]]:
    """Return weeks (s) that overlap neither each other nor the spans of agents."""
    found = [seconds_of(week) for week in weeks]
    if not found:
        raise InputError("must have at least one", place="weeks")
    for (_, end), (begin, _) in pairwise(sorted(found)):
        if begin < end:
            raise InputError(f"must not overlap, as two do from {begin:g} s on", place="weeks")
    for name, seeds in trained.items():
        for first, last in (seconds_of(each.span) for each in seeds if each.span is not None):
            for begin, end in found:
                if begin < last and first < end:
                    reason = f"must not have learned from what it is judged on, {begin:g} to {end:g} s"
                    raise InputError(reason, place=f"agents, {name}")
    return found


@attrs.frozen(eq=False, repr=False)
class Judgement(Shown):
    """Agents and heuristics on unseen weeks.

    The best heuristic is the best one in hindsight, on these very weeks, which favours it. Intervals are those of
    :func:`~simmodel.metrics.statistics.cautious_interval` over the weeks, for agents of the mean of their seeds; with
    fewer than five weeks there are none.

    Parameters
    ----------
    measured
        the metrics of each policy and week; :meth:`~simmodel.experiments.exploration.Exploration.plot` draws them
    trained
        the seeds of each agent
    metric
        the metric by which they are judged
    """

    measured: Exploration
    trained: Mapping[str, tuple[Trained, ...]]
    metric: str

    @property
    def weeks(self) -> list[str]:
        """The labels of the weeks."""
        return self.measured.labels("workload")

    @property
    def heuristics(self) -> list[str]:
        """The names of the heuristics, the best one first."""
        agents = {label for name, seeds in self.trained.items() for label, _ in _by_seed(name, seeds)}
        others = [name for name in self.measured.labels("policy") if name not in agents]
        return sorted(others, key=lambda name: (float(self._week_by_week(name).mean()), name))

    @property
    def best(self) -> str:
        """The heuristic with the lowest mean over the weeks."""
        return self.heuristics[0]

    def _week_by_week(self, label: str) -> NDArray[np.float64]:
        samples = self.measured.samples
        found: NDArray[np.float64] = samples[self.metric][samples["policy"] == label]
        return found

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the metric of an agent or a heuristic in each week, of shape (seeds, weeks)."""
        known = [*self.trained, *self.heuristics]
        if name not in known:
            raise unknown("agent or heuristic", name, known)
        labels = [label for label, _ in _by_seed(name, self.trained[name])] if name in self.trained else [name]
        return np.array([self._week_by_week(label) for label in labels])

    def interval(self, name: str) -> Interval:
        """Return the mean of an agent or a heuristic over the weeks, with its interval."""
        return self._interval(self.values(name).mean(axis=0))

    def difference(self, name: str, other: str | None = None) -> Interval:
        """Return the mean difference to another one (default: the best heuristic) over the weeks, with its interval."""
        return self._interval(self.values(name).mean(axis=0) - self.values(other or self.best).mean(axis=0))

    def _interval(self, values: NDArray[np.float64]) -> Interval:
        if len(values) < _FEWEST:
            return Interval(float(values.mean()), nan, self.measured.level, len(values))
        return cautious_interval(values, self.measured.level)

    @property
    def table(self) -> Table:
        """One row a policy: ``policy, seeds, mean, low, high, worst_seed``, the difference from the best heuristic
        ``difference, difference_low, difference_high``, and ``steps`` and ``seconds`` (CPU) of all its seeds."""
        rows = []
        for name in [*self.trained, *self.heuristics]:
            own, other = self.interval(name), self.difference(name)
            seeds = self.trained.get(name, ())
            rows.append((
                name, len(seeds), own.mean, own.low, own.high, float(self.values(name).mean(axis=1).max()),
                other.mean, other.low, other.high, sum(each.steps for each in seeds),
                sum([each.seconds for each in seeds]),
            ))  # fmt: skip
        return Table(dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)))

    def summary(self) -> str:
        """Return a table of text: agents first, then heuristics, the best one first."""
        weeks = f"{len(self.weeks)} weeks, each from an empty system"
        few = "" if len(self.weeks) >= _FEWEST else f"; no intervals: fewer than {_FEWEST} weeks"
        return "\n".join([*text_table(self._cells()), f"{weeks}{few}; the best heuristic in hindsight: {self.best}"])

    def _cells(self) -> Cells:
        title = self.measured.title(self.metric)
        rows = [["", title, f"less {self.best}", "seeds", "worst seed", "steps", "CPU s"]]
        for row in self.table.rows():
            agent = row["policy"] in self.trained
            own, other = self.interval(row["policy"]), self.difference(row["policy"])
            training = [f"{row['seeds']}", f"{row['worst_seed']:.4g}", f"{row['steps']:,}", f"{row['seconds']:.0f}"]
            difference = "" if row["policy"] == self.best else _text(other)
            rows.append([row["policy"], _text(own), difference, *(training if agent else [""] * 4)])
        return rows

    def plot(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Draw the differences from the best heuristic with their intervals.

        Parameters
        ----------
        title, figsize
            title of the page; width and height of the figure, inches
        """
        from simmodel.view.experiment_plots import differences

        names = [name for name in (*self.trained, *self.heuristics) if name != self.best]
        label = f"{self.measured.title(self.metric)}, less {self.best}"
        return differences({name: self.difference(name) for name in names}, label, title=title, figsize=figsize)

    def __repr__(self) -> str:
        agents, others, weeks = len(self.trained), len(self.heuristics), len(self.weeks)
        several = f"{counted(agents, 'agent')}, {counted(others, 'heuristic')}, {counted(weeks, 'week')}"
        return f"<Judgement: {several}>"


_COLUMNS = (
    "policy", "seeds", "mean", "low", "high", "worst_seed", "difference", "difference_low", "difference_high", "steps",
    "seconds",
)  # fmt: skip


def _text(found: Interval) -> str:
    return f"{found.mean:.4g}" + ("" if found.half_width != found.half_width else f" ± {found.half_width:.2g}")
