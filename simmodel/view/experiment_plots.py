"""Plots of experiments: means with intervals, the Pareto front, sensitivities, and the errors of surrogates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.metrics.batch import JOB_METRICS, MACHINE_METRICS
from simmodel.view.style import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    ORANGE,
    PALE,
    Look,
    Size,
    axes,
    drawn,
    duration_axis,
    figure,
    hide_x,
    legend,
    panels,
    rows_named,
    share_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval
    from simmodel.work.table import Table

__all__ = [
    "Explored",
    "Indices",
    "Searched",
    "differences",
    "effects",
    "errors_of_methods",
    "exploration",
    "front",
    "index_bars",
]

_PANELS = ("slr", "makespan", "bounded_slowdown_mean", "wait_mean")
_MARKS = "osD^vPX"


class Explored(Protocol):
    """An exploration, as plots need it: see :class:`~simmodel.experiments.comparison.Comparison`."""

    @property
    def units(self) -> Mapping[str, str | None]:
        """The unit of time of each platform, ``None`` for clusters."""
        ...

    @property
    def measures(self) -> list[str]:
        """The names of the metrics."""
        ...

    def labels(self, axis: str, /) -> list[str]:
        """Return the labels of an axis: platform, workload or policy."""
        ...

    def shown(self, metrics: Sequence[str] | None = None, /) -> list[str]:
        """Return the metrics to show."""
        ...

    def interval(self, metric: str, cell: tuple[str, str, str], /) -> Interval:
        """Return the confidence interval of the mean of a metric in a cell: platform, workload and policy."""
        ...

    def title(self, metric: str, /) -> str:
        """Return the title of a metric."""
        ...


@drawn
def exploration(
    found: Explored,
    metrics: Sequence[str] | None = None,
    *,
    log: bool = False,
    told: str = "",
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw means with their intervals: a panel per metric, a group per platform and workload, a colour per policy.

    Parameters
    ----------
    found
        the results
    metrics
        their names; default: the SLR on machines, mean bounded slowdown and wait on clusters
    log
        draw values on a logarithmic axis
    told
        more about the runs for the default title, such as the number of jobs
    title, figsize
        title of the page; default: workload, platform, level and number of replications; width and height, inches

    >>> from simmodel import explore
    >>> figure = exploration(explore("hetsim-slow", "random:tasks=20", ["hrr", "heft"], seeds=3))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['SLR']
    """
    names = found.shown(metrics) if metrics is not None else _usual(found)
    groups, policies = _groups(found), found.labels("policy")
    wide = min(max(4.2, 1.5 + len(groups) * (0.35 + 0.17 * len(policies))), 14.0)
    fig = figure(
        (wide + 1.6, 0.5 + 2.7 * len(names)), figsize, _explored(found, names, told) if title is None else title
    )
    first: Axes | None = None
    for number, name in enumerate(names):
        ax = fig.add_subplot(len(names), 1, number + 1, sharex=first)
        _panel(ax, found, name, groups, policies, log)
        if first is None:
            first = ax
            legend(ax, "upper left", (1.0, 1.0), handletextpad=0.3)
        if number + 1 < len(names):
            hide_x(ax)
    return fig


def _explored(found: Explored, names: Sequence[str], told: str) -> str:
    """Return the title of an exploration: what all its cells share, and what its intervals are."""
    platforms, workloads = found.labels("platform"), found.labels("workload")
    machine = [f"{each} processors" if each.isdigit() else each for each in platforms]
    cells = [(*group[:2], policy) for group in _groups(found) for policy in found.labels("policy")]
    found_intervals = [found.interval(name, cell) for name in names for cell in cells]
    counts = sorted({each.count for each in found_intervals})
    runs = f"n = {counts[0]:,}" if len(counts) == 1 else f"n = {counts[0]:,} to {counts[-1]:,}"
    intervals = f"means with {100 * found_intervals[0].level:g} % intervals, {runs}"
    shared = [", ".join(each) for each in (workloads, machine) if len(each) == 1]
    return ", ".join([*shared, *([told] if told else []), intervals if counts[-1] > 1 else "one run each"])


def _usual(found: Explored) -> list[str]:
    known = [name for name in _PANELS if name in found.measures]
    return known[:1] if "slr" in known else known[1:] or known or found.measures[:1]


def _groups(found: Explored) -> list[tuple[str, str, str]]:
    """Return platform, workload and the label of each group."""
    platforms, workloads = found.labels("platform"), found.labels("workload")
    groups = []
    for platform in platforms:
        for workload in workloads:
            parts = [*([platform] if len(platforms) > 1 else []), *([workload] if len(workloads) > 1 else [])]
            groups.append((platform, workload, "\n".join(parts) or platform))
    return groups


def _panel(
    ax: Axes, found: Explored, name: str, groups: Sequence[tuple[str, str, str]], policies: Sequence[str], log: bool
) -> None:
    room = 0.8 / max(len(policies), 1)
    for number, policy in enumerate(policies):
        intervals = [found.interval(name, (platform, workload, policy)) for platform, workload, _ in groups]
        x = np.arange(len(groups)) + (number - (len(policies) - 1) / 2) * room
        means = np.array([each.mean for each in intervals])
        widths = np.array([each.half_width for each in intervals])
        ax.errorbar(
            x,
            means,
            yerr=widths,
            fmt=_MARKS[number // len(COLOURS) % len(_MARKS)],
            color=COLOURS[number % len(COLOURS)],
            markersize=5,
            capsize=2.5,
            elinewidth=1.2,
            label=policy,
        )
    for edge in range(1, len(groups)):
        ax.axvline(edge - 0.5, color="#e7e9ec", linewidth=0.8)
    ax.set_xticks(np.arange(len(groups)), [label for _, _, label in groups])
    ax.set_xlim(-0.55, len(groups) - 0.45)
    ax.set_ylabel(found.title(name))
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
        _values(ax, found, name)
    tidy(ax)
    ax.tick_params(axis="x", length=0)


def _values(ax: Axes, found: Explored, name: str) -> None:
    units = set(found.units.values())
    machines = MACHINE_METRICS.get(name, ("", ""))[0]
    kind: Any = machines if units != {None} else JOB_METRICS.get(name, ("", ""))[0]
    if (kind == "time" and units == {"s"}) or (kind == "s" and units == {None}):
        duration_axis(ax.yaxis, ax.get_ylim()[1], log=False)
    elif kind == "share" or name == "utilisation":
        share_axis(ax.yaxis)


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


@drawn
def front(
    found: Searched,
    objectives: Sequence[str] | None = None,
    *,
    colour: str | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
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


@drawn
def index_bars(
    found: Indices,
    output: str | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
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


@drawn
def differences(
    found: Mapping[str, Interval] | Sequence[Mapping[str, Any]],
    label: str,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw differences from a baseline with their intervals, one row each; those around zero are grey.

    Parameters
    ----------
    found
        intervals by name; or rows with ``case, difference, low, high`` and, to be drawn in percent, ``percent,
        percent_low, percent_high``; a ``verdict`` is written above its row, and blue is better
    label
        of the axis: the metric
    title, figsize
        as of all plots

    >>> from simmodel.metrics.statistics import Interval
    >>> figure = differences({"sjf": Interval(3.0, 1.0, 0.95, 9)}, "mean wait, less easy")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['sjf']
    """
    rows: Sequence[Mapping[str, Any]] = (
        [{"case": name, "difference": each.mean, "low": each.low, "high": each.high} for name, each in found.items()]
        if isinstance(found, Mapping)
        else found
    )
    percent = bool(rows) and all(np.isfinite(row.get("percent", np.nan)) for row in rows)
    ax = axes(None, (6.4, 0.9 + (0.4 if percent else 0.25) * len(rows)), figsize)
    names = ("percent", "percent_low", "percent_high") if percent else ("difference", "low", "high")
    for at, row in enumerate(rows):
        value, low, high = (float(row[name]) for name in names)
        verdict = str(row.get("verdict", ""))
        decided = low > 0 or high < 0
        good = verdict.startswith("better") if verdict else high < 0
        colour = (BLUE if good else ORANGE) if decided else GREY
        known = np.isfinite([low, high]).all()
        ax.errorbar(
            value,
            at,
            xerr=[[value - low], [high - value]] if known else None,
            fmt="o",
            color=colour,
            markerfacecolor=colour if known else "white",
            markersize=5,
            capsize=2.5,
        )
        ax.annotate(
            verdict, (0, at - 0.24), xycoords=("axes fraction", "data"), va="bottom", fontsize="small", color=GREY
        )
    ax.set_yticks(np.arange(len(rows)), [str(row["case"]) for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.8 if any(row.get("verdict") for row in rows) else -0.5)
    ax.axvline(0, color=GREY, linewidth=0.8)
    if percent:
        ax.xaxis.set_major_formatter(lambda value, _position: f"{value:+g} %" if value else "0")
    elif isinstance(found, Mapping):
        ax.set_xscale("symlog", linthresh=max(1e-9, min([abs(each.mean) for each in found.values()])))
    ax.set_xlabel(label)
    tidy(ax, grid="x", title=title)
    return ax.figure  # type: ignore[return-value]


@drawn
def effects(
    found: Indices,
    output: str | None = None,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
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
    ax.annotate("σ = μ*", (far, far), color=GREY, ha="right", va="top")
    errors = np.array([rows["mu_star"] - rows["mu_star_low"], rows["mu_star_high"] - rows["mu_star"]])
    ax.errorbar(rows["mu_star"], rows["sigma"], xerr=errors, fmt="o", color=BLUE, markersize=5, elinewidth=1.0)
    for row in rows.rows():
        if np.isfinite(row["sigma"]):
            at = (row["mu_star"], row["sigma"])
            ax.annotate(row["parameter"], at, (4, 4), textcoords="offset points", color=INK)
    ax.set_xlim(0, far)
    ax.set_ylim(0, far)
    ax.set_xlabel(_LABELS["mu_star"])
    ax.set_ylabel("σ: deviation of the effect")
    tidy(ax, grid="both", title=title, default=_title(found, output))
    return ax.figure  # type: ignore[return-value]


def _title(found: Indices, output: str | None) -> str:
    name = found.outputs[0] if output is None else output
    return f"Sensitivity of {name}" if name != "value" else "Sensitivity"


_COLOURS = {"gradient boosting": BLUE, "simulation": COLOURS[2]}
_TITLES = {"run": "Run time", "wait": "Wait"}


@drawn
def errors_of_methods(
    table: Table, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw the mean error of each method in hours as bars, a panel for each target.

    Parameters
    ----------
    table
        ``target, method, error`` (s) and ``relative``, as a report of surrogates has them
    title, figsize
        as of all plots
    """
    targets = list(dict.fromkeys(table["target"].tolist()))
    new, shown = panels((4.6 * len(targets), 2.6), [(1, "abcdef"[: len(targets)])], figsize)
    for target, ax in zip(targets, shown, strict=True):
        rows = table.where(table["target"] == target)
        names = rows["method"].tolist()
        hours = rows["error"] / 3600
        bars = ax.barh(np.arange(len(names)), hours, 0.62, color=[_COLOURS.get(name, ORANGE) for name in names])
        shares = [f" {100 * share:.0f} %" for share in rows["relative"].tolist()]
        ax.bar_label(bars, shares, color=INK)
        ax.set_yticks(np.arange(len(names)), names)
        ax.invert_yaxis()
        ax.margins(x=0.18)
        ax.set_xlabel("mean error (h), and of the mean")
        tidy(ax, grid="x", title=title, default=_TITLES[target])
    return new
