"""SchedTwin's experiment: FCFS, SJF and WFP, each with EASY, and their portfolio on 150 jobs and 32 nodes.

Source: Zhang, Kurkure, Tao, Papka, Lan, "A real-time digital twin for adaptive scheduling", arXiv 2512.18894, 2025.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from simmodel.experiments.portfolio_comparison import (
    PortfolioComparison,
    PortfolioReplications,
    compare_portfolio,
    replicate_portfolio,
)
from simmodel.generators.phased import schedtwin
from simmodel.policies.portfolio import Portfolio
from simmodel.scheduling.objectives import ObjectiveLike

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["PAPER_AREAS", "PAPER_SHARES", "schedtwin_portfolio", "schedtwin_run", "schedtwin_seeds"]

PAPER_AREAS = {"fcfs": 0.00, "sjf": 0.31, "wfp": 1.67, "portfolio": 1.86}
"""Areas on the paper's radar chart: the best of the four is 1 on each axis, the worst 0."""

PAPER_SHARES = {"wfp": 0.35, "fcfs": 0.16, "sjf": 0.49}
"""The share of the jobs started by each policy of the paper's portfolio."""


def schedtwin_portfolio(objective: ObjectiveLike = "schedtwin", **options: Any) -> Portfolio:
    """Return the paper's portfolio: WFP, FCFS and SJF, each with EASY, ties in this order.

    Its objective weighs the longest wait, the largest slowdown and the means of both equally, over the waiting jobs.

    Parameters
    ----------
    objective, options
        of :class:`~simmodel.policies.portfolio.Portfolio`

    >>> schedtwin_portfolio().ties
    ('wfp', 'fcfs', 'sjf')
    """
    return Portfolio({name: f"{name}+easy" for name in ("wfp", "fcfs", "sjf")}, objective, **options)


def schedtwin_run(
    seed: int = 0,
    *,
    run_share: float | Sequence[float] = 1.0,
    objective: ObjectiveLike = "schedtwin",
    executor: Executor | None = None,
    results: bool | None = None,
    **options: Any,
) -> PortfolioComparison:
    """Draw the paper's workload and run it under the three policies and the portfolio.

    Parameters
    ----------
    seed
        of the workload
    run_share
        as of :func:`~simmodel.generators.phased.schedtwin`
    objective, options
        of the portfolio
    executor
        runs the four simulations; default: this process
    results
        whether the whole results are kept, as of :func:`~simmodel.experiments.comparison.compare`

    >>> runs = schedtwin_run(seed=1)
    >>> runs.names, round(float(runs.shares["share"].sum()), 6), len(runs.portfolio.jobs)
    (('wfp', 'fcfs', 'sjf', 'portfolio'), 1.0, 150)
    """
    log = schedtwin(seed=seed, run_share=run_share)
    return compare_portfolio(32, log, schedtwin_portfolio(objective, **options), executor=executor, results=results)


def schedtwin_seeds(
    seeds: int | Iterable[int] = 30,
    *,
    run_share: float | Sequence[float] = 1.0,
    objective: ObjectiveLike = "schedtwin",
    executor: Executor | None = None,
    progress: bool = False,
    **options: Any,
) -> PortfolioReplications:
    """Repeat :func:`schedtwin_run` for each seed and compare the final scores in pairs.

    Parameters
    ----------
    seeds
        the number of independent seeds, at least 2, or the seeds themselves
    run_share, objective, options
        as of :func:`schedtwin_run`
    executor, progress
        runs the simulations (default: this process); show a progress bar

    >>> found = schedtwin_seeds(2)
    >>> found.table().names[:2], found.difference("fcfs").count
    (('policy', 'mean'), 2)
    """
    draw = partial(schedtwin, run_share=run_share)
    portfolio = schedtwin_portfolio(objective, **options)
    return replicate_portfolio(32, draw, portfolio, seeds, executor=executor, progress=progress)
