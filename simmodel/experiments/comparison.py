"""Comparison of policies on one workload.

The simulations run on any ``concurrent.futures.Executor``: processes of this computer, or of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.experiments.runs import Run, simulated
from simmodel.foundation.display import Cells, Shown, text_table
from simmodel.foundation.errors import UnknownKey, unknown
from simmodel.metrics.batch import TAU, Cut
from simmodel.metrics.comparison import compare as metrics_table, metrics_known, wait_difference
from simmodel.scheduling.registry import labelled, policy as policy_named
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size

__all__ = ["SHOWN", "Comparison", "compare", "labelled_policies"]

SHOWN: dict[str, str] = {
    "wait_mean": "mean wait",
    "wait_p95": "95 % wait less than",
    "bounded_slowdown_mean": "mean bounded slowdown",
    "utilisation": "utilisation",
    "queue_length_mean": "mean queue",
    "makespan": "makespan",
    "fairness_users": "fairness",
    "slr": "SLR",
    "slr_setup": "SLR with setup",
    "speedup": "speedup",
}
"""The metrics in texts and notebooks, if results have them, with their labels; tables have all metrics."""


def compare(
    platform: GivenPlatform,
    workload: GivenWork,
    candidates: Mapping[str, PolicyLike] | Iterable[PolicyLike],
    /,
    *,
    executor: Executor | None = None,
    results: bool | None = None,
    progress: bool = False,
    **options: Any,
) -> Comparison:
    """Run a workload under several policies and return the results side by side.

    Parameters
    ----------
    platform, workload, options
        as of :func:`~simmodel.runs.scenario.simulate`, for a system of any kind; all runs have the same seed. The
        option ``policies=`` is for the places below
    candidates
        the policies to compare (names, objects or functions of a view), or ``{label: policy}``
    executor
        runs the simulations (processes, threads or Dask); each worker gets the workload once. Default: this process
    results
        whether the whole results are kept; default: in this process and on threads. From other processes only the
        metrics come back, as :class:`~simmodel.experiments.runs.MeasuredRun`, which simulates its run again when asked
        for jobs and the like
    progress
        show a progress bar, one step per policy

    Raises
    ------
    InputError
        if there is no policy, a label is duplicate or a name is unknown, or ``stream=`` is given; raised before any run

    >>> from simmodel import Job
    >>> jobs = [Job(processors=3, run=10), Job(processors=4, run=100), Job(processors=1, run=10)]
    >>> both = compare(4, jobs, ["fcfs", "easy"])
    >>> both.table["wait_mean"].round(1).tolist()
    [40.0, 3.3]
    >>> both["easy"].jobs["start"].tolist()
    [0.0, 10.0, 0.0]
    """
    runs = [Run(label, policy) for label, policy in labelled_policies(candidates).items()]
    found = simulated(platform, workload, runs, options, executor=executor, results=results, progress=progress)
    return Comparison(tuple(result for result, _ in found))


def labelled_policies(policies: Mapping[str, PolicyLike] | Iterable[PolicyLike]) -> dict[str, PolicyLike]:
    """Return policies by label; raises ``InputError`` if one is unknown or a label is duplicate.

    >>> labelled_policies(["fcfs", "easy"])
    {'fcfs': 'fcfs', 'easy': 'easy'}
    """
    return labelled(policies, "policy", "policies", purpose=" to compare", check=policy_named)


@attrs.frozen(eq=False, repr=False, slots=False)
class Comparison(Shown):
    """Results side by side, in the order of the policies.

    ``comparison["easy"]`` is the result with that label; iteration yields the results. From other processes they are
    measured runs, unless ``results=True`` was given.
    """

    results: tuple[Any, ...]

    @cached_property
    def table(self) -> Table:
        """One row per result, one column per metric (the results' ``METRICS``)."""
        return metrics_table(self.results)

    def metrics(
        self, metrics: Sequence[str] | None = None, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> Table:
        """Return one row per result, one column per metric; see :func:`simmodel.metrics.comparison.compare`.

        Parameters
        ----------
        metrics
            names; default: all
        warmup, cooldown, tau
            of metrics of jobs, as of :func:`simmodel.metrics.batch.summary`
        """
        return metrics_table(self.results, metrics, warmup=warmup, cooldown=cooldown, tau=tau)

    def plot(
        self,
        metrics: Sequence[str] | None = None,
        *,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        title: str | None = None,
        figsize: Size | None = None,
    ) -> Figure:
        """Draw metrics as bars; see :func:`simmodel.view.plots.comparison`."""
        from simmodel.view.plots import comparison

        return comparison(
            self.results,
            metrics=metrics,
            warmup=warmup,
            cooldown=cooldown,
            tau=tau,
            title=title,
            figsize=figsize,
        )

    def to_html(self, path: str | Path, *, title: str = "comparison") -> None:
        """Write one HTML file that shows the runs of jobs beside each other and needs nothing else.

        Raises
        ------
        InputError
            the records of the runs are not here: compare with ``results=True``
        """
        from simmodel.foundation.writing import write_text
        from simmodel.view.page.results import comparison_page

        write_text(path, comparison_page(self.results, title).html())

    def summary(
        self, metrics: Sequence[str] | None = None, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> str:
        """Return a table of text, one line per result; parameters as of :meth:`metrics`."""
        return "\n".join(text_table(self._cells(metrics, warmup, cooldown, tau)))

    def _cells(
        self, metrics: Sequence[str] | None = None, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
    ) -> Cells:
        """Return the head and the rows of a table of text; metrics without a value are left out."""
        first = self.results[0]
        wanted = [name for name in SHOWN if name in first.METRICS] if metrics is None else metrics
        table = metrics_table(self.results, wanted, warmup=warmup, cooldown=cooldown, tau=tau)
        known = [name for name in wanted if np.isfinite(table[name].astype(np.float64)).any()]
        labels = metrics_known(self.results)
        head = ["", *(SHOWN.get(name, labels[name][1]) for name in known)]
        rows = [[row["result"], *(first.metric_text(name, row[name]) for name in known)] for row in table.rows()]
        rejected = [result.report.rejected.total() for result in self.results]
        if any(rejected):  # the metrics are without them
            head.append("rejected")
            rows = [[*row, f"{count:,}"] for row, count in zip(rows, rejected, strict=True)]
        return [head, *rows]

    def difference(self, first: str, second: str, level: float = 0.95) -> Interval:
        """Return how much longer the same jobs wait under the first policy than under the second, s, with its interval.

        The interval tells how far the mean may move for other jobs like these; where none would hold, the reason is in
        ``why``: see :func:`~simmodel.metrics.comparison.wait_difference`.

        >>> both = compare(None, "lublin-128-week", ["fcfs", "easy"])
        >>> round(both.difference("fcfs", "easy").mean)
        72547
        """
        return wait_difference(self[first], self[second], level)

    def __getitem__(self, name: str) -> Any:
        for result in self.results:
            if result.name == name:
                return result
        raise UnknownKey(unknown("result", name, [result.name for result in self.results]).message)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(result.name for result in self.results)}>"
