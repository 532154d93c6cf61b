"""Plots of explorations: means with their confidence intervals, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.metrics.names import JOB_METRICS
from simmodel.metrics.workflow import MACHINE_METRICS
from simmodel.view.style import COLOURS, Size, duration_axis, figure, hide_x, legend, share_axis, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval

__all__ = ["Explored", "exploration"]

_PANELS = ("slr", "makespan", "bounded_slowdown_mean", "wait_mean")
_MARKS = "osD^vPX"


class Explored(Protocol):
    """An exploration, as plots need it: see :class:`~simmodel.experiments.exploration.Exploration`."""

    @property
    def units(self) -> Mapping[str, str | None]:
        """The unit of time of each platform, ``None`` for clusters."""
        ...

    @property
    def metrics(self) -> list[str]:
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


def exploration(
    found: Explored,
    metrics: Sequence[str] | None = None,
    *,
    log: bool = False,
    title: str | None = None,
    figsize: Size | None = None,
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
    title, figsize
        title of the page; width and height of the figure, inches

    >>> from simmodel import explore
    >>> figure = exploration(explore("hetsim-slow", "random:tasks=20", ["hrr", "heft"], seeds=3))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['SLR']
    """
    names = found.shown(metrics) if metrics is not None else _usual(found)
    groups, policies = _groups(found), found.labels("policy")
    wide = min(max(4.2, 1.5 + len(groups) * (0.35 + 0.17 * len(policies))), 14.0)
    fig = figure((wide + 1.6, 0.5 + 2.7 * len(names)), figsize, title)
    first: Axes | None = None
    for number, name in enumerate(names):
        ax = fig.add_subplot(len(names), 1, number + 1, sharex=first)
        _panel(ax, found, name, groups, policies, log)
        if first is None:
            first = ax
            legend(ax, "upper left", (1.0, 1.03), handletextpad=0.3)
        if number + 1 < len(names):
            hide_x(ax)
    return fig


def _usual(found: Explored) -> list[str]:
    known = [name for name in _PANELS if name in found.metrics]
    return known[:1] if "slr" in known else known[1:] or known or found.metrics[:1]


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
        widths = np.nan_to_num(np.array([each.half_width for each in intervals]))
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
