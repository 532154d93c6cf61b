"""Pictures of what-ifs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.scheduling.objectives import MEASURES
from simmodel.view.style import BLUE, GREY, INK, duration_axis, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval

__all__ = ["Future", "Futures", "outcomes"]


class Future(Protocol):
    """What is drawn of one future: see :class:`~simmodel.futures.outcomes.Outcome`."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def status(self) -> str:
        """How it ended: finished, unfinished or failed."""
        ...

    @property
    def counted(self) -> Sequence[int]:
        """The samples that are compared."""
        ...

    def values(self, name: str, /) -> Any:
        """Return a measure of each sample, as an array."""
        ...

    def interval(self, name: str, /) -> Interval:
        """Return the confidence interval of the mean of a measure."""
        ...


class Futures(Protocol):
    """What is drawn of a what-if: see :class:`~simmodel.futures.what_if_result.WhatIf`."""

    @property
    def best(self) -> Future | None:
        """The future with the lowest score."""
        ...

    def __iter__(self) -> Iterator[Future]: ...

    def __len__(self) -> int: ...


def outcomes(
    found: Futures, measures: Sequence[str] = ("wait_mean", "wait_max", "bounded_slowdown_mean", "utilisation")
) -> Figure:
    """Draw measures as bars, one a policy, the best one dark; several samples with 95 % confidence intervals.

    Parameters
    ----------
    found
        what ``what_if`` returned
    measures
        of :data:`~simmodel.scheduling.objectives.MEASURES`, or ``score``; one panel each
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'simmodel[notebook]'") from None
    height = 0.9 + 0.32 * len(found)
    figure, panels = plt.subplots(
        1, len(measures), figsize=(2.4 * len(measures) + 1.2, height), sharey=True, squeeze=False, layout="constrained"
    )
    for ax, name in zip(panels[0], measures, strict=True):
        _bars(ax, found, name)
    panels[0][0].set_yticks(np.arange(len(found)), [each.name for each in found])
    return figure


def _bars(ax: Axes, found: Futures, name: str) -> None:
    best = found.best
    longest = 0.0
    for y, outcome in enumerate(found):
        values = outcome.values(name) if outcome.counted else np.array([])
        if not np.isfinite(values).all() or not len(values):
            ax.annotate(outcome.status, (0, y), (4, 0), textcoords="offset points", va="center", fontsize=8, color=GREY)
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
    if unit == "s":
        ax.set_xlabel("")
        duration_axis(ax.xaxis, longest, log=False)
    elif name == "utilisation":
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    tidy(ax, grid="x", title=title.partition(" (")[0])
    ax.set_ylim(len(found) - 0.5, -0.5)
