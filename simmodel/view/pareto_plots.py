"""Plots of optimisations: the runs and the Pareto front in the plane of two objectives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.view.style import BLUE, COLOURS, GREY, PALE, Size, axes, legend, rows_named, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.work.table import Table

__all__ = ["Searched", "front"]


class Searched(Protocol):
    """An optimisation, as plots need it: see :class:`~simmodel.experiments.optimisation.Optimisation`."""

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names of the objectives."""
        ...

    @property
    def maximised(self) -> Collection[str]:
        """Those that are maximised."""
        ...

    @property
    def runs(self) -> Table:
        """All runs: values, objectives, and whether they are on the front."""
        ...

    @property
    def front(self) -> Table:
        """The rows of the front."""
        ...


def front(
    found: Searched,
    objectives: Sequence[str] | None = None,
    *,
    colour: str | None = None,
    title: str | None = None,
    figsize: Size | None = None,
) -> Figure:
    """Draw all runs, and the Pareto front, in the plane of two objectives.

    Parameters
    ----------
    found
        the optimisation
    objectives
        the names of two; default: the first two
    colour
        the name of a choice that gives the points of the front their colours
    title, figsize
        as of all plots

    Raises
    ------
    InputError
        if these are not two objectives, or the choice is unknown

    >>> from simmodel.experiments import optimise
    >>> found = optimise(lambda x, y: {"a": x, "b": -x - y}, {"x": (0, 9, "integer"), "y": [0, 1]}, ["a", "b"], "all")
    >>> front(found, colour="y").axes[0].get_xlabel()
    'a (less is better)'
    """
    names = found.objectives[:2] if objectives is None else tuple(objectives)
    rows_named("objective", names, found.objectives)
    if len(names) != 2:
        raise InputError(f"must be two to draw, got {len(names)}", place="objectives")
    if colour is not None and colour not in found.runs:
        raise InputError(unknown("choice", colour, found.runs.names).message, place="colour")
    ax = axes(None, (5.6, 4.2), figsize)
    x, y = (name if name in found.runs else f"{name} (objective)" for name in names)
    others = found.runs.where(~found.runs["front"])
    ax.plot(
        others[x], others[y], "o", color=PALE, markersize=4, markeredgecolor=GREY, markeredgewidth=0.4, label="runs"
    )
    best = found.front
    if len(found.objectives) == 2:
        order = np.argsort(best[x], kind="stable")
        ax.plot(best[x][order], best[y][order], color=GREY, linewidth=0.8, drawstyle="steps-post", zorder=1)
    kinds = [None] if colour is None else list(dict.fromkeys(best[colour].tolist()))
    for number, kind in enumerate(kinds):
        rows = best if colour is None else best.where(best[colour] == kind)
        shade = BLUE if colour is None else COLOURS[number % len(COLOURS)]
        label = "Pareto front" if colour is None else str(kind)
        ax.plot(rows[x], rows[y], "o", color=shade, markersize=6, label=label)
    legend(ax)
    for axis, name in ((ax.xaxis, names[0]), (ax.yaxis, names[1])):
        axis.set_label_text(f"{name} ({'more' if name in found.maximised else 'less'} is better)")
    tidy(ax, grid="both", title=title, default="Pareto front")
    return ax.figure  # type: ignore[return-value]
