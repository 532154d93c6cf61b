"""Comparison of a portfolio with each of its policies alone: on one workload, and on many random ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.experiments.comparison import SideBySide
from simmodel.experiments.replication import replicate
from simmodel.experiments.runs import Run, old_order, simulated
from simmodel.experiments.stopping import EQUAL, depends_on_seed
from simmodel.foundation.display import Cells, Shown, figures, text_table
from simmodel.foundation.errors import InputError
from simmodel.foundation.tracebacks import shortened
from simmodel.metrics.objective_scores import OBJECTIVES, Kiviat, kiviat_of_measures, measured, started_shares
from simmodel.metrics.report import duration
from simmodel.metrics.statistics import Interval, mean_interval, paired_difference
from simmodel.policies.portfolio import Portfolio
from simmodel.results.result import Result
from simmodel.scheduling.objectives import MEASURES, Objective
from simmodel.scheduling.registry import policy as policy_named
from simmodel.work.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.runs.scenario import GivenPlatform
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size
    from simmodel.work.workload import Workload

__all__ = ["PortfolioComparison", "PortfolioReplications", "compare_portfolio", "replicate_portfolio"]

_AXES = OBJECTIVES["schedtwin"].measures


def compare_portfolio(
    platform: GivenPlatform,
    workload: GivenWork,
    portfolio: Portfolio | str | None = None,
    *,
    executor: Executor | None = None,
    results: bool | None = None,
    progress: bool = False,
    **options: Any,
) -> PortfolioComparison:
    """Run a workload under a portfolio and under each of its policies alone.

    Parameters
    ----------
    platform, workload, options
        as of :func:`~simmodel.runs.scenario.simulate`; all runs have the same seed
    portfolio
        a portfolio, or its text such as ``"portfolio(fcfs, sjf, backfill=easy)"``; default: wfp, fcfs and sjf with EASY
    executor
        runs the simulations, with policies and workload pickled; default: this process
    results
        whether the whole results are kept, as of :func:`~simmodel.experiments.comparison.compare`
    progress
        show a progress bar, one step per run

    Raises
    ------
    InputError
        if it is not a portfolio, or as of :func:`~simmodel.experiments.comparison.compare`

    >>> from simmodel import Job
    >>> jobs = [Job(processors=4, run=100), Job(submit=1, processors=4, run=50), Job(submit=90, processors=4, run=10)]
    >>> runs = compare_portfolio(4, jobs, Portfolio(["easy", "sjf+easy"], "slowdown_mean"))
    >>> runs.names, runs.scores.tolist()
    (('easy', 'sjf+easy', 'portfolio'), [1.0, 0.0, 0.0])
    """
    given = "portfolio" if portfolio is None else portfolio
    chosen = policy_named(given)
    if not isinstance(chosen, Portfolio):
        raise InputError(f"must be a portfolio, got {given!r}", place="portfolio")
    with shortened:
        found = simulated(
            {"": platform},
            {"": workload},
            [Run(label, policy) for label, policy in {**chosen.given, "portfolio": given}.items()],
            options,
            executor=executor,
            results=results,
            progress=progress,
            measure=partial(_measures, chosen.objective),
        )
    runs, measured = zip(*found, strict=True)
    return PortfolioComparison(runs, measured, chosen.objective)


def _measures(objective: Objective, result: Result, _kept: bool) -> dict[str, Any]:
    """Return the numbers of a run for a comparison with a portfolio: measures, score by a function, and starts."""
    score = None if objective.function is None else float(objective.function(result))
    found = {"measures": measured(result, tau=objective.tau), "score": score}
    if result.choices is None:
        return found
    decided = int(result.choices["chosen"].sum())
    return {**found, "shares": started_shares(result), "choices": decided}


@attrs.frozen(eq=False, repr=False, slots=False)
class PortfolioComparison(SideBySide):
    """A run under a portfolio, the last of ``results``, and one under each of its policies, by one objective.

    ``measured`` has the measurements of each of them.
    """

    results: tuple[Any, ...]
    measured: tuple[Mapping[str, Any], ...]
    objective: Objective

    @property
    def portfolio(self) -> Any:
        """The run under the portfolio."""
        return self.results[-1]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(result.name for result in self.results)

    @cached_property
    def scores(self) -> Any:
        """The final score of each run over all its jobs, an array; lower is better."""
        if self.objective.function is not None:
            return np.array([each["score"] for each in self.measured], dtype=np.float64)
        return self.objective.scores([each["measures"] for each in self.measured])

    @cached_property
    def shares(self) -> Table:
        """The jobs that each policy of the portfolio started: ``policy, jobs, share``."""
        shares: Table = self.measured[-1]["shares"]
        return shares

    @property
    def choices(self) -> int:
        return int(self.measured[-1]["choices"])

    @cached_property
    def chart(self) -> Kiviat:
        """The runs on the axes of the objective, or on those of SchedTwin if it has fewer than three."""
        axes = self.objective.measures
        found = [each["measures"] for each in self.measured]
        return kiviat_of_measures(self.names, found, axes if len(axes) >= 3 else _AXES)

    @property
    def table(self) -> Table:
        """One row per run: ``policy``, its measures, the ``area`` on the chart, its final ``score`` and ``started``.

        ``started`` is the share of the portfolio's jobs that this policy started.
        """
        started = dict(zip(self.shares["policy"].tolist(), self.shares["share"].tolist(), strict=True))
        share = [started.get(name, 0.0) for name in self.names[:-1]]
        return self.chart.table.with_columns(score=self.scores, started=np.array([*share, np.nan]))

    def summary(self) -> str:
        return "\n".join(text_table(self._cells()))

    def _cells(self) -> Cells:
        heads = ["", *(MEASURES[axis][1].partition(" (")[0] for axis in self.chart.axes), "area", "score", "started"]
        rows = [heads]
        for row in self.table.rows():
            cells = [_text(axis, row[axis]) for axis in self.chart.axes]
            share = "" if row["started"] != row["started"] else f"{100 * row['started']:.0f} %"
            rows.append([row["policy"], *cells, f"{row['area']:.2f}", figures(row["score"], 4), share])
        return rows

    def document(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        rows = list(self.table.rows())
        return {"objective": str(self.objective), "axes": list(self.chart.axes), "runs": rows}

    def plot(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Draw scores over time, jobs started by each policy, and the radar chart, on one page."""
        from simmodel.view.portfolio_plots import portfolio_page

        return portfolio_page(self.portfolio, self.chart, title=title, figsize=figsize)

    def __repr__(self) -> str:
        return f"<PortfolioComparison: {', '.join(self.names)}>"


def _text(measure: str, value: float) -> str:
    if MEASURES[measure][0] == "s":
        return duration(value)
    return f"{100 * value:.1f} %" if measure == "utilisation" else figures(value)


# ---------------------------------------------------------------------- many workloads


def replicate_portfolio(
    platform: GivenPlatform,
    draw: Callable[..., Workload],
    portfolio: Portfolio | None = None,
    seeds: int | Iterable[int] = 30,
    *,
    executor: Executor | None = None,
    level: float = 0.95,
    progress: bool = False,
    **options: Any,
) -> PortfolioReplications:
    """Draw a workload for each seed and run it under a portfolio and each of its policies.

    Parameters
    ----------
    platform, options
        as of :func:`~simmodel.runs.scenario.simulate`
    draw
        ``draw(seed=...)`` returns a workload
    portfolio, executor, progress
        as of :func:`compare_portfolio`
    seeds
        the number of independent seeds, at least 2, or the seeds themselves
    level
        confidence of the intervals

    >>> from simmodel.generators import lublin
    >>> runs = replicate_portfolio(32, partial(lublin, 40, 32), Portfolio(["easy", "sjf+easy"]), seeds=3)
    >>> runs.names, runs.scores["easy"].shape, runs.difference("easy").count
    (('easy', 'sjf+easy', 'portfolio'), (3,), 3)
    """
    chosen = Portfolio() if portfolio is None else portfolio
    one = partial(_sample, platform=platform, draw=draw, portfolio=chosen, options=options)
    found = replicate(one, seeds, executor=executor, level=level, progress=progress)
    return PortfolioReplications(found.samples, (*chosen.policies, "portfolio"), str(chosen.objective), level)


def _sample(
    seed: int, platform: GivenPlatform, draw: Callable[..., Workload], portfolio: Portfolio, options: Mapping[str, Any]
) -> dict[str, float]:
    """Run one drawn workload and return scores, areas, shares and measures by policy."""
    runs = compare_portfolio(platform, draw(seed=seed), portfolio, **options)
    found: dict[str, float] = {}
    for row in runs.table.rows():
        name = row.pop("policy")
        found |= {f"{what} {name}": value for what, value in row.items()}
    for result in runs.results:
        for what, value in measured(result).items():
            found.setdefault(f"{what} {result.name}", value)
    return found


@attrs.frozen(eq=False, repr=False)
class PortfolioReplications(Shown):
    """The measurements of :func:`replicate_portfolio`.

    Parameters
    ----------
    samples
        one row per seed: ``seed``, and ``WHAT POLICY`` for score, area, started and each measure
    names
        of the policies, the portfolio last
    objective
        as text
    level
        confidence of the intervals
    """

    samples: Table
    names: tuple[str, ...]
    objective: str
    level: float = 0.95

    def values(self, what: str) -> dict[str, Any]:
        """Return one value per seed by policy: of ``score``, ``area``, ``started`` or a measure."""
        return {name: self.samples[f"{what} {name}"] for name in self.names}

    @property
    def scores(self) -> dict[str, Any]:
        """The final scores by policy, one per seed."""
        return self.values("score")

    def mean(self, what: str, name: str) -> Interval:
        return mean_interval(self.samples[f"{what} {name}"], self.level)

    def difference(self, *cases: str, metric: str | None = None) -> Interval:
        """Return the interval of the difference between two policies, paired by seed.

        Parameters
        ----------
        cases
            the names of two; of one: the portfolio less this
        metric
            as ``what`` of :meth:`values`; default: the score
        """
        given = cases if len(cases) > 1 and cases[1] in self.names else ("portfolio", *cases)
        (first, second), what = old_order(given, metric, lambda each: each not in self.names, "score")
        return paired_difference(self.samples[f"{what} {first}"], self.samples[f"{what} {second}"], self.level)

    def table(self, what: str = "score") -> Table:
        """One row per policy: ``policy, mean, low, high``, and ``difference``, ``difference_low``, ``difference_high``.

        The difference is the portfolio's value less the policy's; ``better``: the share of seeds with a lower value.
        """
        rows = []
        for name in self.names:
            mean, less = self.mean(what, name), self.difference(name, metric=what)
            better = float((self.samples[f"{what} portfolio"] < self.samples[f"{what} {name}"]).mean())
            rows.append((name, mean.mean, mean.low, mean.high, less.mean, less.low, less.high, better))
        heads = ("policy", "mean", "low", "high", "difference", "difference_low", "difference_high", "better")
        return Table(dict(zip(heads, map(np.array, zip(*rows, strict=True)), strict=True)))

    def summary(self, what: str = "score") -> str:
        moves = depends_on_seed((name, self.samples[name]) for name in self.samples.names if name != "seed")
        return "\n".join([*text_table(self._cells(what)), *([] if moves else [EQUAL])])

    def _cells(self, what: str = "score") -> Cells:
        rows = [["", what, "interval", "portfolio less this", "interval", "lower in", "started", "area"]]
        for row in self.table(what).rows():
            name, own = row["policy"], row["policy"] == "portfolio"
            less = [figures(row[key], 4, "+") for key in ("difference", "difference_low", "difference_high")]
            mean, apart = self.mean(what, name), self.difference(name, metric=what)
            rows.append(
                [
                    name,
                    figures(row["mean"], 4),
                    "all equal" if mean.why else f"{figures(row['low'], 4)} to {figures(row['high'], 4)}",
                    "" if own else less[0],
                    "" if own else "all equal" if apart.why else f"{less[1]} to {less[2]}",
                    "" if own else f"{100 * row['better']:.0f} %",
                    "" if own else f"{100 * self.samples[f'started {name}'].mean():.0f} %",
                    f"{self.samples[f'area {name}'].mean():.2f}",
                ]
            )
        return rows

    def __repr__(self) -> str:
        return f"<PortfolioReplications: {len(self.samples)} seeds of {', '.join(self.names)}>"
