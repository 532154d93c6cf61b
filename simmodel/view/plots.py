"""All pictures in one place; matplotlib is imported when one is drawn.

Each function draws on ``ax`` or on a new figure and returns the axes (whole pages return their figure), so that a
picture can be changed before it is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simmodel.view.gantt import gantt
from simmodel.view.overview import comparison, overview
from simmodel.view.radar import portfolio_page, radar, score_over_time, starts_by_policy
from simmodel.view.result_plots import cdf, power_over_time, queue, utilisation, value_by_bin
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


class ResultPlots:
    """The pictures of one result, as ``result.plot``.

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
        self, *, place: str | None = None, colour: str = "wait", scale: bool = True, ax: Axes | None = None
    ) -> Axes:
        """Draw executions on processors or nodes; options as of :func:`gantt`."""
        return gantt(self._result, place=place, colour=colour, scale=scale, ax=ax)

    def utilisation(self, *, place: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw busy processors over time; options as of :func:`utilisation`."""
        return utilisation(self._result, place=place, ax=ax)

    def queue(self, *, processors: bool = False, ax: Axes | None = None) -> Axes:
        """Draw waiting jobs over time; options as of :func:`queue`."""
        return queue(self._result, processors=processors, ax=ax)

    def power(self, *, ax: Axes | None = None) -> Axes:
        """Draw power over time; options as of :func:`power_over_time`."""
        return power_over_time(self._result, ax=ax)

    def wait_by_bin(
        self,
        by: str = "processors",
        bins: Sequence[float] | None = None,
        *,
        value: str = "wait",
        statistic: str = "mean",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the wait by size or another column; options as of :func:`value_by_bin`."""
        return value_by_bin(self._result, by=by, bins=bins, value=value, statistic=statistic, ax=ax)

    def cdf(self, value: str = "wait", *, ax: Axes | None = None) -> Axes:
        """Draw a cumulative distribution; options as of :func:`cdf`."""
        return cdf(self._result, value=value, ax=ax)

    def scores(self, *, ax: Axes | None = None) -> Axes:
        """Draw the scores of a portfolio's policies over time; options as of :func:`score_over_time`."""
        return score_over_time(self._result, ax=ax)

    def starts_by_policy(self, *, ax: Axes | None = None) -> Axes:
        """Draw the jobs started by each policy of a portfolio; options as of :func:`starts_by_policy`."""
        return starts_by_policy(self._result, ax=ax)

    def overview(self) -> Figure:
        """Draw the run on one page."""
        return overview(self._result)
