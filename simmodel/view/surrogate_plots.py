"""Plots of surrogates: the errors of each method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.view.style import BLUE, COLOURS, INK, ORANGE, Size, figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.work.table import Table

__all__ = ["errors_of_methods"]

_COLOURS = {"gradient boosting": BLUE, "simulation": COLOURS[2]}
_TITLES = {"run": "Run time", "wait": "Wait"}


def errors_of_methods(table: Table, *, title: str | None = None, figsize: Size | None = None) -> Figure:
    """Draw the mean error of each method in hours as bars, a panel for each target.

    Parameters
    ----------
    table
        ``target, method, error`` (s) and ``relative``, as a report of surrogates has them
    title, figsize
        as of all plots
    """
    targets = list(dict.fromkeys(table["target"].tolist()))
    new = figure((4.6 * len(targets), 2.6), figsize)
    for target, ax in zip(targets, new.subplots(1, len(targets), squeeze=False)[0], strict=True):
        rows = table.where(table["target"] == target)
        names = rows["method"].tolist()
        hours = rows["error"] / 3600
        bars = ax.barh(np.arange(len(names)), hours, 0.62, color=[_COLOURS.get(name, ORANGE) for name in names])
        shares = [f" {100 * share:.0f} %" for share in rows["relative"].tolist()]
        ax.bar_label(bars, shares, fontsize=8.5, color=INK)
        ax.set_yticks(np.arange(len(names)), names)
        ax.invert_yaxis()
        ax.margins(x=0.18)
        ax.set_xlabel("mean error (h), and of the mean")
        tidy(ax, grid="x", title=title, default=_TITLES[target])
    return new
