"""Plots of studies: the effect of setup costs and of the shape of graphs on policies; two clusters under a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Unpack

import numpy as np

from simmodel.metrics.bins import binned
from simmodel.view.style import (
    COLOURS,
    GREY,
    INK,
    Look,
    Size,
    coloured,
    drawn,
    figure,
    legend,
    panels,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.metrics.statistics import Interval
    from simmodel.records.broker_record import BrokerRecord

__all__ = ["Bars", "Curves", "case_study", "fat_curve", "setup_study"]


class Bars(Protocol):
    """SLRs by configuration: see :class:`~simmodel.studies.hetsim.SetupStudy`."""

    @property
    def policies(self) -> list[str]:
        """The labels of the policies."""
        ...

    @property
    def configurations(self) -> list[str]:
        """The labels of the configurations."""
        ...

    def slr(self, configuration: str, policy: str, /) -> Interval:
        """Return the mean SLR with its confidence interval."""
        ...


class Curves(Protocol):
    """SLRs by the shape of graphs: see :class:`~simmodel.studies.fat.FatCurve`."""

    @property
    def policies(self) -> list[str]:
        """The labels of the policies."""
        ...

    @property
    def fats(self) -> Sequence[float]:
        """Shapes of graphs, from 0 (a chain) to 1 (no edges)."""
        ...

    @property
    def ccrs(self) -> Sequence[float]:
        """Ratios of communication to computation."""
        ...

    def slr(self, fat: float, ccr: float, policy: str, /) -> Interval:
        """Return the mean SLR with its confidence interval."""
        ...

    def difference(self, fat: float, ccr: float, first: str, second: str, /) -> Interval:
        """Return the mean of the first policy's SLR less the second's, with its confidence interval."""
        ...


@drawn
def setup_study(study: Bars, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]) -> Figure:
    """Draw mean SLRs as bars with their intervals: a group per configuration, a colour per policy.

    Parameters
    ----------
    study
        the results
    title, figsize
        title of the page; width and height of the figure, inches

    >>> from simmodel.studies import setup_study as run
    >>> [text.get_text() for text in setup_study(run(["hrr", "heft"], seeds=2)).axes[0].get_xticklabels()]
    ['slow', 'fast', 'slow, setup', 'fast, setup']
    """
    fig = figure((9.0, 3.4), figsize, title)
    ax = fig.subplots()
    policies, groups = study.policies, study.configurations
    room = 0.8 / len(policies)
    highest = 0.0
    for number, policy in enumerate(policies):
        found = [study.slr(where, policy) for where in groups]
        means = np.array([each.mean for each in found])
        widths = np.nan_to_num(np.array([each.half_width for each in found]))
        x = np.arange(len(groups)) + (number - (len(policies) - 1) / 2) * room
        colour = COLOURS[number % len(COLOURS)]
        hatch = ("", "///", "...")[number // len(COLOURS) % 3]
        ax.bar(x, means, 0.9 * room, color=colour, label=policy, hatch=hatch, edgecolor="white", linewidth=0)
        ax.errorbar(x, means, [each.half_width for each in found], fmt="none", ecolor=INK, elinewidth=0.9, capsize=2)
        highest = max(highest, float((means + widths).max()))
        for at, mean, width in zip(x, means, widths, strict=True):
            top = (at, mean + width)
            ax.annotate(f"{mean:.1f}", top, (0, 2), textcoords="offset points", ha="center", color=GREY)
    ax.set_xticks(np.arange(len(groups)), groups)
    ax.set_ylim(0, 1.08 * highest)
    ax.set_ylabel("SLR")
    tidy(ax)
    ax.tick_params(axis="x", length=0)
    legend(ax, "upper left")
    return fig


@drawn
def fat_curve(curve: Curves, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]) -> Figure:
    """Draw the SLR over the shape of graphs: a panel a CCR, a line a policy with its interval.

    Where there are two policies, below it the SLR of the second less that of the first, paired.

    Parameters
    ----------
    curve
        the results
    title, figsize
        title of the page; width and height of the figure, inches

    >>> from simmodel.studies import fat_curve as run
    >>> found = run(fats=[0.2, 0.8], ccrs=[0.1, 1.0], seeds=2, shape={"n": 20})
    >>> [axes.get_title(loc="left") for axes in fat_curve(found).axes]
    ['CCR 0.1', 'CCR 1', '', '']
    """
    both = len(curve.policies) == 2
    fig = figure((3.1 * len(curve.ccrs) + 0.6, 4.2 if both else 2.9), figsize, title)
    rows = fig.subplots(1 + both, len(curve.ccrs), squeeze=False, sharex=True, height_ratios=[2, 1][: 1 + both])
    panels = rows[0]
    if both:
        _differences(curve, rows[1])
    for ax, ccr in zip(panels, curve.ccrs, strict=True):
        for policy, colour in coloured(curve.policies):
            found = [curve.slr(fat, ccr, policy) for fat in curve.fats]
            ax.plot(curve.fats, [each.mean for each in found], "o-", color=colour, markersize=3.5, label=policy)
            low, high = [each.low for each in found], [each.high for each in found]
            if np.isfinite(low).all():
                ax.fill_between(curve.fats, low, high, color=colour, alpha=0.18, linewidth=0)
        ax.set_ylim(bottom=0)
        tidy(ax, default=f"CCR {ccr:g}")
    for ax in rows[-1]:
        ax.set_xlabel("fat")
    panels[0].set_ylabel("SLR")
    legend(panels[0])
    return fig


def _differences(curve: Curves, panels: Sequence[Axes]) -> None:
    first, second = curve.policies
    for ax, ccr in zip(panels, curve.ccrs, strict=True):
        found = [curve.difference(fat, ccr, second, first) for fat in curve.fats]
        ax.axhline(0, color=GREY, linewidth=0.8)
        means, widths = [each.mean for each in found], [each.half_width for each in found]
        ax.errorbar(curve.fats, means, widths, fmt="o", color=INK, markersize=3, elinewidth=0.9, capsize=2)
        tidy(ax)
    panels[0].set_ylabel(f"{second} less {first}")


_SIZES = (0, 8, 32, 64, 128, 256, 512, 1024, 2180, 4360)
_HOURS = (0, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 24, 72, 168, 336)


@drawn
def case_study(
    siloed: BrokerRecord,
    brokered: BrokerRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    **look: Unpack[Look],
) -> Figure:
    """Draw what a broker changes on two clusters: waits and jobs of each by size, and the jobs of the first that moved.

    Parameters
    ----------
    siloed, brokered
        results of the same jobs, at home and under a broker
    title, figsize
        title of the page; width and height of the figure, inches
    """
    one, other = brokered.clusters
    both = siloed, brokered
    moved = (brokered.jobs["origin"] == one) & (brokered.jobs["destination"] == other)
    rows = [(f"jobs on {name}", [each.jobs["destination"] == name for each in both]) for name in (one, other)]
    rows.append((f"the {moved.sum():,} jobs of {one} that ran on {other}", [moved, moved]))
    fig, shown = panels((12, 9.6), [(1, "ab"), (1, "cd"), (1, "ef")], figsize, title)
    for left, right, (name, masks) in zip(shown[::2], shown[1::2], rows, strict=True):
        parts = [each.only(mask) for each, mask in zip(both, masks, strict=True)]
        _bars(left, parts, "wait", name)
        _bars(right, parts, "jobs", name, "turnaround" if masks[0] is moved else "processors")
    legend(shown[0], loc="upper left")
    return fig


def _bars(ax: Axes, parts: Sequence[BrokerRecord], value: str, name: str, by: str = "processors") -> None:
    """Draw the number of jobs, or their mean waits, in each bin of size or turnaround: a colour per result."""
    bins, unit = (_SIZES, 1) if by == "processors" else (_HOURS, 3600)
    for i, (part, colour) in enumerate(coloured(parts)):
        table = binned(part, by, [unit * each for each in bins])
        heights = table["jobs"] if value == "jobs" else np.nan_to_num(table["wait"]) / 3600
        ax.bar(np.arange(len(bins) - 1) + 0.4 * i - 0.2, heights[:-1], 0.4, color=colour, label=part.name)
    ax.set_xticks(range(len(bins) - 1), [f"{high:,g}" for high in bins[1:]])
    ax.set_xlabel(f"{by}, up to" if unit == 1 else f"{by} (h), up to")
    ax.set_ylabel("jobs" if value == "jobs" else "mean wait (h)")
    tidy(ax, default=name)
