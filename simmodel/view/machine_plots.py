"""Pictures of a machine's run: what processors, links and memories did, and plans beside what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.metrics.processors import link_load, load
from simmodel.metrics.workflow import planned, summary
from simmodel.metrics.workflow_report import machine_text
from simmodel.platform.units import show_quantity
from simmodel.records.task_moments import positions
from simmodel.view.machine_gantt import LABELLED, LEGEND, machine_gantt, machine_time_axis, used_processors
from simmodel.view.style import BLUE, COLOURS, GREY, INK, axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simmodel.records.steps import Steps
    from simmodel.records.task_record import TaskRecord

__all__ = ["MachinePlots", "links", "machine_gantt", "machine_overview", "memory", "phases", "plan"]

_POINTS = 1500
_COLUMNS = {"core works for others": "for others"}


def _curves(ax: Axes, steps: dict[str, Steps], scale: dict[str, float]) -> None:
    for number, (name, each) in enumerate(steps.items()):
        times, values = each.thinned(_POINTS).scaled(1 / scale[name]).curve()
        style = ("-", "--", ":")[number // len(COLOURS) % 3]
        ax.plot(
            times,
            values,
            drawstyle="steps-post",
            color=COLOURS[number % len(COLOURS)],
            linewidth=1.2,
            linestyle=style,
            label=name,
        )
    if steps:
        ax.legend(
            frameon=False,
            fontsize=8.5,
            labelcolor=INK,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.05),
            handlelength=1.2,
            borderaxespad=0.2,
        )


def _unit_of(most: float) -> tuple[float, str]:
    power = min(max(int(np.log10(most)) // 3, 0), 6) if most > 0 else 0
    scale = 1000.0**power
    return scale, show_quantity(scale, "B").lstrip("1")


def memory(result: TaskRecord, *, pools: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw how many bytes of each memory pool are used over time.

    Parameters
    ----------
    pools
        which; default: those in which anything ever lay
    ax
        where to draw; default: a new figure

    >>> from simmodel.metrics._examples import two_kinds
    >>> memory(two_kinds()).get_ylabel()
    'memory (B)'
    """
    ax = axes(ax, (9.0, 1.8))
    used = {
        name: steps
        for name, steps in result.memory.items()
        if (pools is None and steps.max() > 0) or name in (pools or ())
    }
    scale, unit = _unit_of(max((each.max() for each in used.values()), default=0.0))
    _curves(ax, used, dict.fromkeys(used, scale))
    ax.set_ylabel(f"memory ({unit})")
    ax.set_ylim(bottom=0)
    machine_time_axis(ax, result)
    return tidy(ax)


def links(result: TaskRecord, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the load of links over time, as part of their bandwidth.

    Parameters
    ----------
    names
        which; default: the seven that carried most
    ax
        where to draw; default: a new figure

    >>> from simmodel.metrics._examples import two_kinds
    >>> links(two_kinds()).get_ylabel()
    'load of links'
    """
    ax = axes(ax, (9.0, 1.8))
    loads = link_load(result)
    if names is None:
        carried = sorted(
            ((-steps.integral(), i, name) for i, (name, steps) in enumerate(loads.items()) if steps.max() > 0)
        )
        names = [name for _, _, name in carried[: len(COLOURS)]]
    bandwidth = {link.name: link.bandwidth for link in result.spec.links}
    chosen = {name: loads[name] for name in names}
    _curves(ax, chosen, bandwidth)
    ax.set_ylabel("load of links")
    most = max((steps.max() / bandwidth[name] for name, steps in chosen.items()), default=1.0)
    ax.set_ylim(0, 1.05 * max(1.0, most))
    ax.yaxis.set_major_formatter(lambda value, _position: f"{100 * value:g} %")
    machine_time_axis(ax, result)
    return tidy(ax)


def phases(result: TaskRecord, *, ax: Axes | None = None) -> Axes:
    """Draw how much time each processor spent in each phase, as stacked bars; what is missing it stood idle.

    >>> from simmodel.metrics._examples import two_kinds
    >>> len(phases(two_kinds()).patches) > 0
    True
    """
    shown = used_processors(result)
    names = result.processors["processor"][shown].tolist()
    ax = axes(ax, (7.0, 0.9 + min(0.26 * len(names), 8.0)))
    table = load(result).where(shown)
    span = max(result.ended - result.started, 1e-9)
    own_core = np.array([spec.is_cpu for _, spec in result.spec.each_processor()])[shown]
    waits = table["waiting for setup"] + table["waiting for memory"]
    waits = waits + np.where(own_core, 0.0, table["waiting for core"])  # a core works for others meanwhile
    left = np.zeros(len(names))
    for name, colour in LEGEND:
        share = (waits if name == "waits" else table[_COLUMNS.get(name, name)]) / span
        if share.any():
            ax.barh(np.arange(len(names)), share, left=left, height=0.72, color=colour, label=name)
            left = left + share
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, max(1.0, float(left.max(initial=0.0))))
    ax.xaxis.set_major_formatter(lambda value, _position: f"{100 * value:g} %")
    ax.set_xlabel("of the run")
    ax.legend(
        frameon=False, fontsize=8.5, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.0
    )
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def plan(result: TaskRecord, *, ax: Axes | None = None) -> Axes:
    """Draw a planner's plan above what happened, processor by processor.

    Raises
    ------
    ValueError
        where the policy made no plan

    >>> from simmodel.metrics._examples import two_kinds
    >>> plan(two_kinds())
    Traceback (most recent call last):
    ...
    ValueError: a run whose policy planned expected, found one without a plan
    """
    table = planned(result)
    if not len(table):
        raise ValueError("a run whose policy planned expected, found one without a plan")
    names: list[str] = result.processors["processor"][used_processors(result)].tolist()
    ax = axes(ax, (9.0, 0.9 + min(0.45 * len(names), 9.0)))
    few = len(table) <= LABELLED
    start, end = result.spans
    at = np.append(positions(table["planned_processor"], names), positions(result.tasks["processor"], names))
    low = np.append(np.full(len(table), 0.08), np.full(len(result.tasks), 0.5)) + at
    begins = np.append(table["planned_start"], start[-1])
    ends = np.append(table["planned_end"], end[-1])
    kept = np.isfinite(begins) & np.isfinite(ends) & (at >= 0)
    colours = np.append(np.full(len(table), GREY), np.full(len(result.tasks), BLUE))
    from matplotlib.collections import PolyCollection

    height = np.append(np.full(len(table), 0.38), np.full(len(result.tasks), 0.42))
    corners: Any = np.stack(
        [
            np.stack([x[kept], y[kept]], axis=1)
            for x, y in ((begins, low), (ends, low), (ends, low + height), (begins, low + height))
        ],
        axis=1,
    )
    ax.add_collection(
        PolyCollection(corners, facecolors=colours[kept].tolist(), edgecolors="white", linewidths=0.5 if few else 0)
    )
    most = max(float(np.nanmax(ends[kept])), result.ended)
    if few:
        tasks = [str(each) for each in [*table["task"].tolist(), *result.tasks["task"].tolist()]]
        span = max(most - result.started, 1e-9)
        for i in np.flatnonzero(kept).tolist():
            if len(tasks[i]) * 4.2 <= (ends[i] - begins[i]) / span * 9.0 * 64:
                middle = ((begins[i] + ends[i]) / 2, low[i] + height[i] / 2)
                ax.annotate(tasks[i], middle, ha="center", va="center", fontsize=7, color="white")
    ax.set_yticks(np.arange(len(names)) + 0.5, names)
    ax.set_ylim(len(names), 0)
    machine_time_axis(ax, result)
    ax.set_xlim(result.started, most)
    ax.axvline(float(table["planned_end"].max()), color=GREY, linewidth=1.0, linestyle="--")
    from matplotlib.patches import Patch

    handles = [Patch(color=GREY, label="planned"), Patch(color=BLUE, label="happened")]
    ax.legend(
        handles=handles,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        ncols=2,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        handlelength=1.0,
    )
    tidy(ax, grid="")
    ax.tick_params(axis="y", length=0)
    return ax


_HEADLINE = ("makespan", "slr", "speedup", "utilisation", "energy")
_WORDS = {"slr": "SLR", "speedup": "speedup", "utilisation": "busy"}


def machine_overview(result: TaskRecord) -> Figure:
    """Draw a run on one page: what each processor did, and below it the memory pools and the links."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'simmodel[notebook]'") from None
    used = any(steps.max() > 0 for steps in result.memory.values())
    moved = len(result.transfers) > 0 and len(result.spec.links) > 0
    rows = float(result.processors["cores"][used_processors(result)].sum())
    high = min(max(0.3 * rows, 1.6), 7.0)
    ratios = [high, *([1.3] if used else []), *([1.3] if moved else [])]
    fig = plt.figure(figsize=(10.5, sum(ratios) + 1.5), layout="constrained")
    engine: Any = fig.get_layout_engine()
    engine.set(w_pad=0.1, h_pad=0.06)
    grid = fig.add_gridspec(len(ratios), 1, height_ratios=ratios)
    top = fig.add_subplot(grid[0])
    panels = [top]
    machine_gantt(result, ax=top)
    if used:
        panels.append(memory(result, ax=fig.add_subplot(grid[len(panels)], sharex=top)))
    if moved:
        panels.append(links(result, ax=fig.add_subplot(grid[len(panels)], sharex=top)))
    for ax in panels[:-1]:
        ax.set_xlabel("")
        ax.tick_params(axis="x", labelbottom=False)
    found = summary(result)
    told = [
        f"{_WORDS.get(name, name)} {machine_text(name, found[name], result.time_unit)}"
        for name in _HEADLINE
        if np.isfinite(found[name]) and found[name]
    ]
    count = len(result.processors)
    head = f"{len(result.tasks):,} tasks on {result.spec.name} ({count} processors)"
    above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "color": INK}
    top.annotate(result.name, (0, 1), (0, 42), fontsize=14, fontweight="bold", **above)
    top.annotate(" · ".join([head, *told]), (0, 1), (0, 27), fontsize=9.5, **above)
    return fig


class MachinePlots:
    """The pictures of one run of a machine, as ``result.plot``.

    Parameters
    ----------
    result
        the run

    >>> from simmodel.metrics._examples import two_kinds
    >>> MachinePlots(two_kinds()).memory().get_ylabel()
    'memory (B)'
    """

    def __init__(self, result: TaskRecord) -> None:
        self._result = result

    def gantt(
        self, *, processors: Sequence[str] | None = None, labels: bool | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw what each processor did; options as of :func:`machine_gantt`."""
        return machine_gantt(self._result, processors=processors, labels=labels, ax=ax)

    def memory(self, *, pools: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw the use of memory pools over time; options as of :func:`memory`."""
        return memory(self._result, pools=pools, ax=ax)

    def links(self, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draw the load of links over time; options as of :func:`links`."""
        return links(self._result, names=names, ax=ax)

    def phases(self, *, ax: Axes | None = None) -> Axes:
        """Draw the time of each processor in each phase; options as of :func:`phases`."""
        return phases(self._result, ax=ax)

    def plan(self, *, ax: Axes | None = None) -> Axes:
        """Draw the plan above what happened; options as of :func:`plan`."""
        return plan(self._result, ax=ax)

    def overview(self) -> Figure:
        """Draw the run on one page."""
        return machine_overview(self._result)
