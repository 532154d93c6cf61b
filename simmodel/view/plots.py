"""All plots in one place; matplotlib is imported when one is drawn.

Each function draws on ``ax`` or on a new figure of ``figsize`` inches and returns the axes; whole pages return their
figure. ``title`` replaces the default title.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.view.gantt import gantt
from simmodel.view.menu import Plot, PlotMenu
from simmodel.view.overview import comparison, overview
from simmodel.view.radar import portfolio_page, radar, score_over_time, starts_by_policy
from simmodel.view.result_plots import cdf, power_over_time, queue, utilisation, value_by_bin
from simmodel.view.workload_plots import arrivals, size_and_run

if TYPE_CHECKING:
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

    gantt = Plot(gantt)
    utilisation = Plot(utilisation)
    queue = Plot(queue)
    power = Plot(power_over_time)
    wait_by_bin = Plot(value_by_bin)
    cdf = Plot(cdf)
    scores = Plot(score_over_time)
    starts_by_policy = Plot(starts_by_policy)
    overview = Plot(overview)
