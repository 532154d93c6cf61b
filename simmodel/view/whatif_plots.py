"""Plots of what-ifs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.scheduling.objectives import MEASURES
from simmodel.view.style import BLUE, GREY, INK, Size, duration_axis, figure, rows_named, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval

__all__ = ["Future", "Futures", "outcomes"]


class Future(Protocol):
    """One future, as plots need it: see :class:`~simmodel.futures.outcomes.Outcome`."""

    @property
    def name(self) -> str:
        """The label of its policy."""
        ...

    @property
    def status(self) -> str:
        """How it ended: finished, unfinished or failed."""
        ...

    @property
    def counted(self) -> Sequence[int]:
        """The numbers of the samples that are compared."""
        ...

    def values(self, name: str, /) -> Any:
        """Return a measure of each sample, as an array."""
        ...

    def interval(self, name: str, /) -> Interval:
        """Return the confidence interval of the mean of a measure."""
        ...


class Futures(Protocol):
    """A what-if, as plots need it: see :class:`~simmodel.futures.what_if_result.WhatIf`."""

    @property
    def best(self) -> Future | None:
        """The future with the lowest score."""
        ...

    def __iter__(self) -> Iterator[Future]: ...

    def __len__(self) -> int: ...


def outcomes(
    found: Futures,
    measures: Sequence[str] = ("wait_mean", "wait_max", "bounded_slowdown_mean", "utilisation"),
    *,
    title: str | None = None,
    figsize: Size | None = None,
) -> Figure:
    """Draw measures as bars, one per policy, the best one dark; several samples with 95 % confidence intervals.

    Parameters
    ----------
    found
        the result of ``what_if``
    measures
        of :data:`~simmodel.scheduling.objectives.MEASURES`, ``unstarted`` or ``score``; one panel each
    title, figsize
        title of the page; width and height of the figure, inches

    Raises
    ------
    InputError
        if a measure is unknown
    """
    rows_named("measure", measures, [*MEASURES, "unstarted", "score"])
    fig = figure((2.4 * len(measures) + 1.2, 0.9 + 0.32 * len(found)), figsize, title)
    panels = fig.subplots(1, len(measures), sharey=True, squeeze=False)
    for ax, name in zip(panels[0], measures, strict=True):
        _bars(ax, found, name)
    panels[0][0].set_yticks(np.arange(len(found)), [each.name for each in found])
    return fig


def _bars(ax: Axes, found: Futures, name: str) -> None:
    best = found.best
    longest = 0.0
    for y, outcome in enumerate(found):
        values = outcome.values(name) if outcome.counted else np.array([])
        if not np.isfinite(values).all() or not len(values):
            text = "no value" if outcome.counted else outcome.status
            ax.annotate(text, (0, y), (4, 0), textcoords="offset points", va="center", fontsize=8, color=GREY)
            continue
        mean = float(values.mean())
        error: dict[str, Any] = {}
        if len(values) > 1:
            half = outcome.interval(name).half_width
            error = {"xerr": half, "error_kw": {"elinewidth": 1.0, "ecolor": INK, "capsize": 2}}
            longest = max(longest, mean + half)
        longest = max(longest, mean)
        ax.barh(y, mean, height=0.66, color=BLUE, alpha=0.95 if outcome is best else 0.45, **error)
    unit, title = MEASURES.get(name, ("", name))
    if not longest:
        ax.set_xticks([0], ["0"])
    elif unit == "s":
        ax.set_xlabel("")
        duration_axis(ax.xaxis, longest, log=False)
    elif name == "utilisation":
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    tidy(ax, grid="x", default=title.partition(" (")[0])
    ax.set_ylim(len(found) - 0.5, -0.5)
