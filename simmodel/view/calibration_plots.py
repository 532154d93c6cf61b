"""Plots of calibrations: the errors of sites before and after, and the best loss over the trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.view.style import (
    BLUE,
    GREY,
    INK,
    PALE,
    Look,
    Size,
    axes,
    coloured,
    drawn,
    figure,
    headline,
    legend,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.work.table import Table

__all__ = ["Calibrated", "Searched", "convergence", "site_errors"]

_NAMED = 24  # most sites whose names are written below a panel


class Searched(Protocol):
    """A search, as its convergence needs it."""

    @property
    def convergence(self) -> Table:
        """The best loss over the trials."""
        ...


class Calibrated(Searched, Protocol):
    """A calibration, as plots need it: see :class:`~simmodel.experiments.calibration.calibrated.Calibration`."""

    @property
    def errors(self) -> Table:
        """The errors of each site and class."""
        ...

    @property
    def loss_before(self) -> float:
        """The loss of the model as it was."""
        ...


@drawn
def site_errors(
    found: Calibrated, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw the error of each site before and after, as CGSim does: a panel for each loss and class of jobs.

    Sites are in the order of their error before; lines, and the titles, are geometric means.

    Parameters
    ----------
    found
        the calibration
    title, figsize
        as of all plots

    Raises
    ------
    InputError
        the errors before are not known

    >>> from simmodel.experiments import calibrate
    >>> record = {"site": ["a", "b"], "walltime": [2.0, 3.0]}
    >>> found = calibrate(lambda x=1.0: {"walltime": np.array([x, x])}, record, {"x": (1, 4)}, budget=8)
    >>> site_errors(found).axes[0].get_ylabel()
    'error of walltime'
    """
    errors = found.errors
    losses = [name.removesuffix(" after") for name in errors.names if name.endswith(" after")]
    losses = [name for name in losses if f"{name} before" in errors and errors[f"{name} after"].dtype.kind == "f"]
    losses = [name for name in losses if np.isfinite(errors[f"{name} before"]).any()]
    losses = [name for name in losses if list(errors.names).index(f"{name} before") < _first_parameter(errors)]
    if not losses:
        raise InputError("must have errors before, got none: the model has no values to begin with", place="errors")
    kinds = list(dict.fromkeys(errors["class"].tolist()))
    size = (max(3.0 * len(kinds), 1.2 + 0.22 * len(errors)), 1.0 + 2.3 * len(losses))
    page = figure((min(size[0], 13.0), size[1]), figsize)
    panels: Any = page.subplots(len(losses), len(kinds), squeeze=False, sharey="row")
    for row, loss in enumerate(losses):
        for column, kind in enumerate(kinds):
            of = errors.where((errors["class"] == kind) & np.isfinite(errors[f"{loss} before"]))
            means = _panel(panels[row, column], of, loss)
            panels[row, column].set_ylabel(f"error of {loss}" if column == 0 else "")
            name = f"{kind} core: " if kind in ("single", "multi") else f"{kind}: " if kind else ""
            tidy(panels[row, column], grid="y", title=f"{name}{means[0]:.3g} → {means[1]:.3g}")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside lower left", ncols=2, frameon=False, labelcolor=INK)
    headline(page, "Errors before and after calibration" if title is None else title)
    return page


def _first_parameter(errors: Table) -> int:
    """Return the number of the first column of parameters: those of errors stand together after the jobs."""
    names = list(errors.names)[3:]
    before = [name.removesuffix(" before") for name in names if name.endswith(" before")]
    known = [name for name in before if f"{name} low" in names]
    return 3 + names.index(f"{known[0]} before") if known else len(errors.names)


def _panel(ax: Axes, rows: Table, loss: str) -> list[float]:
    """Draw a panel; return the geometric means before and after."""
    order = np.argsort(-rows[f"{loss} before"], kind="stable")
    before, after = rows[f"{loss} before"][order], rows[f"{loss} after"][order]
    at, means = np.arange(len(order)), []
    ax.vlines(at, after, before, color=PALE, linewidth=3, zorder=0)
    for values, colour, word in ((before, GREY, "before"), (after, BLUE, "after")):
        positive = values[values > 0]
        mean = float(np.exp(np.log(positive).mean())) if len(positive) else float("nan")
        means.append(mean)
        ax.plot(at, values, "o", color=colour, markersize=4, label=word)
        ax.axhline(mean, color=colour, linewidth=0.8, linestyle="--", zorder=0)
    if len(order) and (before > 0).all() and (after > 0).all():
        ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    ax.yaxis.set_minor_formatter(lambda value, _: "")
    if len(order) <= _NAMED:
        ax.set_xticks(at, rows["site"][order].tolist(), rotation=90 if len(order) > 5 else 0)
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{len(order)} sites, by their error before")
    return means


@drawn
def convergence(
    found: Mapping[str, Searched], *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw the best loss so far over the trials, of one calibration or of several methods.

    Parameters
    ----------
    found
        the calibrations by name
    title, figsize
        as of all plots

    >>> from simmodel.experiments import calibrate
    >>> several = {name: calibrate(lambda x: x, None, {"x": (1, 4)}, None, name, budget=8) for name in ("random", "gp")}
    >>> [line.get_label() for line in convergence(several).axes[0].lines]
    ['random', 'gp']
    """
    ax = axes(None, (6.4, 3.8), figsize)
    for (name, each), colour in coloured(found.items()):
        rows = each.convergence
        ax.plot(rows["number"] + 1, rows["best"], color=colour, drawstyle="steps-post", label=name)
    if all((each.convergence["best"][np.isfinite(each.convergence["best"])] > 0).all() for each in found.values()):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
        ax.yaxis.set_minor_formatter(lambda value, _: f"{value:.2g}")
    if len(found) > 1:
        legend(ax)
    ax.set_xlabel("trials")
    ax.set_ylabel("best loss so far")
    tidy(ax, grid="y", title=title, default="Convergence")
    return ax.figure  # type: ignore[return-value]
