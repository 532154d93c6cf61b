"""All plots in one place; matplotlib is imported when one is drawn.

Each function draws on ``ax`` or on a new figure of ``figsize`` inches and returns the axes; whole pages return their
figure. ``title`` replaces the default title.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simmodel.view.gantt import gantt
from simmodel.view.menu import PlotMenu
from simmodel.view.overview import comparison, overview
from simmodel.view.radar import portfolio_page, radar, score_over_time, starts_by_policy
from simmodel.view.result_plots import cdf, power_over_time, queue, utilisation, value_by_bin
from simmodel.view.style import BLUE, COLOURS, ORANGE, Size
from simmodel.view.workload_plots import arrivals, size_and_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.records.job_record import JobRecord

__all__ = [
    "ResultPlots",
    "arrivals",
    "cdf",
    "comparison",
    "gantt",
    "overview",
    "portfolio_page",
    "power_over_time",
    "queue",
    "radar",
    "score_over_time",
    "size_and_run",
    "starts_by_policy",
    "utilisation",
    "value_by_bin",
]


class ResultPlots(PlotMenu):
    """The plots of one result of jobs: ``result.plot``.

    Parameters
    ----------
    result
        the run

    >>> from simmodel import Result
    >>> result = Result(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}, processors=4)
    >>> result.plot.queue().get_ylabel()
    'waiting jobs'
    """

    def __init__(self, result: JobRecord) -> None:
        self._result = result

    def gantt(
        self,
        *,
        place: str | None = None,
        colour: str = "wait",
        scale: bool = True,
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw executions on processors or nodes over time; see :func:`gantt`."""
        return gantt(self._result, place=place, colour=colour, scale=scale, title=title, figsize=figsize, ax=ax)

    def utilisation(
        self,
        *,
        place: str | None = None,
        colour: str = BLUE,
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw busy processors over time; see :func:`utilisation`."""
        return utilisation(self._result, place=place, colour=colour, title=title, figsize=figsize, ax=ax)

    def queue(
        self,
        *,
        processors: bool = False,
        colour: str = ORANGE,
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw waiting jobs over time; see :func:`queue`."""
        return queue(self._result, processors=processors, colour=colour, title=title, figsize=figsize, ax=ax)

    def power(
        self,
        *,
        colour: str = COLOURS[2],
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw power over time; see :func:`power_over_time`."""
        return power_over_time(self._result, colour=colour, title=title, figsize=figsize, ax=ax)

    def wait_by_bin(
        self,
        by: str = "processors",
        bins: Sequence[float] | None = None,
        *,
        value: str = "wait",
        statistic: str = "mean",
        colour: str = BLUE,
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the wait or another value by size or another column; see :func:`value_by_bin`."""
        return value_by_bin(
            self._result,
            by=by,
            bins=bins,
            value=value,
            statistic=statistic,
            colour=colour,
            title=title,
            figsize=figsize,
            ax=ax,
        )

    def cdf(
        self,
        value: str = "wait",
        *,
        title: str | None = None,
        figsize: Size | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw a cumulative distribution; see :func:`cdf`."""
        return cdf(self._result, value=value, title=title, figsize=figsize, ax=ax)

    def scores(self, *, title: str | None = None, figsize: Size | None = None, ax: Axes | None = None) -> Axes:
        """Draw the scores of a portfolio's policies over time; see :func:`score_over_time`."""
        return score_over_time(self._result, title=title, figsize=figsize, ax=ax)

    def starts_by_policy(
        self, *, title: str | None = None, figsize: Size | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw the jobs started by each policy of a portfolio; see :func:`starts_by_policy`."""
        return starts_by_policy(self._result, title=title, figsize=figsize, ax=ax)

    def overview(self, *, title: str | None = None, figsize: Size | None = None) -> Figure:
        """Draw the run on one page; see :func:`overview`."""
        return overview(self._result, title=title, figsize=figsize)
