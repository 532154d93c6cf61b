"""Plots of sensitivities: indices as bars with their intervals, and Morris' plane of mean and deviation of effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.view.style import BLUE, GREY, INK, ORANGE, PALE, Size, axes, legend, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.work.table import Table

__all__ = ["Indices", "effects", "index_bars"]

_LABELS = {
    "mu_star": "μ*: mean size of the effect",
    "first": "first order: alone",
    "total": "total: with all others",
}


class Indices(Protocol):
    """A sensitivity, as plots need it: see :class:`~simmodel.experiments.sensitivity_indices.Sensitivity`."""

    @property
    def method(self) -> str:
        """The method: morris or sobol."""
        ...

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        ...

    def of(self, output: str | None = None, /) -> Table:
        """Return the rows of an output, the most influential parameter first."""
        ...


def index_bars(
    found: Indices, output: str | None = None, *, title: str | None = None, figsize: Size | None = None
) -> Figure:
    """Draw the indices of an output as bars with their intervals, the most influential parameter on top.

    Parameters
    ----------
    found
        the sensitivity
    output
        its name; default: the first one
    title, figsize
        as of all plots

    >>> from simmodel.experiments import sensitivity
    >>> found = sensitivity(lambda x, y: 3 * x + y, {"x": (0, 1), "y": (0, 1)}, method="sobol", samples=64)
    >>> [text.get_text() for text in index_bars(found).axes[0].get_yticklabels()]
    ['x', 'y']
    """
    rows = found.of(output)
    kinds = ("mu_star",) if found.method == "morris" else ("first", "total")
    ax = axes(None, (6.4, 0.9 + 0.34 * len(rows) * (1 + 0.25 * (len(kinds) - 1))), figsize)
    at, room = np.arange(len(rows)), 0.8 / len(kinds)
    for number, kind in enumerate(kinds):
        values = rows[kind]
        errors = np.array([values - rows[f"{kind}_low"], rows[f"{kind}_high"] - values])
        style = {"ecolor": INK, "elinewidth": 1.0, "capsize": 2.0}
        colour = (BLUE, ORANGE)[number]
        places = at + (number - (len(kinds) - 1) / 2) * room
        ax.barh(places, values, 0.9 * room, xerr=errors, color=colour, label=_LABELS[kind], error_kw=style)
    ax.set_yticks(at, rows["parameter"].tolist())
    ax.invert_yaxis()
    ax.axvline(0, color=GREY, linewidth=0.8)
    if len(kinds) > 1:
        legend(ax, "lower right")
    else:
        ax.set_xlabel(_LABELS[kinds[0]])
    tidy(ax, grid="x", title=title, default=_title(found, output))
    return ax.figure  # type: ignore[return-value]


def effects(
    found: Indices, output: str | None = None, *, title: str | None = None, figsize: Size | None = None
) -> Figure:
    """Draw the deviation of the effects of parameters over their mean size, as Morris' method finds them.

    Parameters above the line ``sigma = mu*`` interact with others, or their effect is far from linear.

    Parameters
    ----------
    found
        a sensitivity by Morris' method
    output
        its name; default: the first one
    title, figsize
        as of all plots

    Raises
    ------
    InputError
        if another method was used

    >>> from simmodel.experiments import sensitivity
    >>> figure = effects(sensitivity(lambda x, y: x * y, {"x": (0, 1), "y": (0, 1)}))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('μ*: mean size of the effect', 'σ: deviation of the effect')
    """
    if found.method != "morris":
        raise InputError(f"must be found by Morris' method to be drawn over mu*, got {found.method}", place="method")
    rows = found.of(output)
    ax = axes(None, (5.2, 4.2), figsize)
    far = float(max(rows["mu_star"].max(), np.nan_to_num(rows["sigma"]).max(), 1e-300)) * 1.12
    ax.plot([0, far], [0, far], color=PALE, linewidth=1.2, zorder=0)
    ax.annotate("σ = μ*", (far, far), color=GREY, fontsize=8.5, ha="right", va="top")
    errors = np.array([rows["mu_star"] - rows["mu_star_low"], rows["mu_star_high"] - rows["mu_star"]])
    ax.errorbar(rows["mu_star"], rows["sigma"], xerr=errors, fmt="o", color=BLUE, markersize=5, elinewidth=1.0)
    for row in rows.rows():
        if np.isfinite(row["sigma"]):
            at = (row["mu_star"], row["sigma"])
            ax.annotate(row["parameter"], at, (4, 4), textcoords="offset points", color=INK, fontsize=8.5)
    ax.set_xlim(0, far)
    ax.set_ylim(0, far)
    ax.set_xlabel(_LABELS["mu_star"])
    ax.set_ylabel("σ: deviation of the effect")
    tidy(ax, grid="both", title=title, default=_title(found, output))
    return ax.figure  # type: ignore[return-value]


def _title(found: Indices, output: str | None) -> str:
    name = found.outputs[0] if output is None else output
    return f"Sensitivity of {name}" if name != "value" else "Sensitivity"
