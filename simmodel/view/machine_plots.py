"""Plots of a run of a machine: processors, links and memory pools over time, and plans against executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.metrics.processors import link_load, load
from simmodel.metrics.workflow import machine_text, planned, summary
from simmodel.records.task_record import positions
from simmodel.view.gantt import LABELLED, LEGEND, Boxes, machine_gantt, machine_time_axis, used_processors
from simmodel.view.style import (
    BLUE,
    COLOURS,
    GREY,
    Look,
    Plot,
    PlotMenu,
    Size,
    about,
    axes,
    drawn,
    font_size,
    headline,
    hide_x,
    legend,
    panels,
    quantity_scale,
    rows_named,
    share_axis,
    tidy,
)

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
        colour = COLOURS[number % len(COLOURS)]
        ax.plot(times, values, drawstyle="steps-post", color=colour, linewidth=1.2, linestyle=style, label=name)
    if steps:
        legend(ax, "upper left", (1.0, 1.0), handlelength=1.2, borderaxespad=0.2)


@drawn
def memory(
    result: TaskRecord,
    *,
    pools: Sequence[str] | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the bytes used in each memory pool over time.

    Parameters
    ----------
    pools
        names; default: those that were ever used
    title, figsize, ax
        title; width and height of the new figure, inches; axes to draw on instead

    >>> from simmodel.metrics._examples import two_kinds
    >>> memory(two_kinds()).get_ylabel()
    'memory (B)'
    """
    rows_named("memory pool", pools or (), [pool.name for pool in result.spec.pools])
    ax = axes(ax, (9.0, 1.8), figsize)
    used = {
        name: steps
        for name, steps in result.memory.items()
        if (pools is None and steps.max() > 0) or name in (pools or ())
    }
    scale, unit = quantity_scale(max((each.max() for each in used.values()), default=0.0), "B")
    _curves(ax, used, dict.fromkeys(used, scale))
    ax.set_ylabel(f"memory ({unit})")
    ax.set_ylim(bottom=0)
    machine_time_axis(ax, result)
    return tidy(ax, title=title)


@drawn
def links(
    result: TaskRecord,
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the load of links over time, as a share of their bandwidth.

    Parameters
    ----------
    names
        names of links; default: the seven that carried most
    title, figsize, ax
        title; width and height of the new figure, inches; axes to draw on instead

    >>> from simmodel.metrics._examples import two_kinds
    >>> links(two_kinds()).get_ylabel()
    'load of links'
    """
    loads = link_load(result)
    rows_named("link", names or (), list(loads))
    if names is None:
        carried = sorted(
            ((-steps.integral(), i, name) for i, (name, steps) in enumerate(loads.items()) if steps.max() > 0)
        )
        names = [name for _, _, name in carried[: len(COLOURS)]]
    ax = axes(ax, (9.0, 1.8), figsize)
    bandwidth = {link.name: link.bandwidth for link in result.spec.links}
    chosen = {name: loads[name] for name in names}
    _curves(ax, chosen, bandwidth)
    ax.set_ylabel("load of links")
    most = max((steps.max() / bandwidth[name] for name, steps in chosen.items()), default=1.0)
    ax.set_ylim(0, 1.05 * max(1.0, most))
    share_axis(ax.yaxis)
    machine_time_axis(ax, result)
    return tidy(ax, title=title)


@drawn
def phases(
    result: TaskRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the share of time of each processor in each phase as stacked bars; the rest is idle time.

    Parameters
    ----------
    title, figsize, ax
        title; width and height of the new figure, inches; axes to draw on instead

    >>> from simmodel.metrics._examples import two_kinds
    >>> len(phases(two_kinds()).patches) > 0
    True
    """
    shown = used_processors(result)
    names = result.processors["processor"][shown].tolist()
    ax = axes(ax, (7.0, 0.9 + min(0.26 * len(names), 8.0)), figsize)
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
    share_axis(ax.xaxis)
    ax.set_xlabel("of the run")
    legend(ax, "upper left", (1.0, 1.0), handlelength=1.0)
    tidy(ax, grid="x", title=title)
    ax.tick_params(axis="y", length=0)
    return ax


@drawn
def plan(
    result: TaskRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw a planner's plan above the executions, processor by processor.

    Parameters
    ----------
    title, figsize, ax
        title; width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        if the policy made no plan

    >>> from simmodel.metrics._examples import two_kinds
    >>> plan(two_kinds())
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: example: must be a run under a planner
    """
    table = planned(result)
    if not len(table):
        raise InputError("must be a run under a planner", source=result.name)
    names: list[str] = result.processors["processor"][used_processors(result)].tolist()
    ax = axes(ax, (9.0, 0.9 + min(0.45 * len(names), 9.0)), figsize)
    few = len(table) <= LABELLED
    start, end = result.spans
    at = np.append(positions(table["planned_processor"], names), positions(result.tasks["processor"], names))
    low = np.append(np.full(len(table), 0.08), np.full(len(result.tasks), 0.5)) + at.astype(np.float64)
    begins = np.append(table["planned_start"], start[-1])
    ends = np.append(table["planned_end"], end[-1])
    kept = np.isfinite(begins) & np.isfinite(ends) & (at >= 0)
    colours = np.append(np.full(len(table), GREY), np.full(len(result.tasks), BLUE))
    height = np.append(np.full(len(table), 0.38), np.full(len(result.tasks), 0.42))
    Boxes(begins, ends, low, low + height).where(kept).draw(ax, colours[kept].tolist(), 0.5 if few else 0.0)
    most = max(float(np.nanmax(ends[kept])), result.ended)
    if few:
        tasks = [str(each) for each in [*table["task"].tolist(), *result.tasks["task"].tolist()]]
        span, width = max(most - result.started, 1e-9), ax.figure.bbox.width / ax.figure.dpi
        for i in np.flatnonzero(kept).tolist():
            if len(tasks[i]) * 0.6 * font_size("small") <= (ends[i] - begins[i]) / span * 64 * width:
                middle = ((begins[i] + ends[i]) / 2, low[i] + height[i] / 2)
                ax.annotate(tasks[i], middle, ha="center", va="center", fontsize="small", color="white")
    ax.set_yticks(np.arange(len(names)) + 0.5, names)
    ax.set_ylim(len(names), 0)
    machine_time_axis(ax, result)
    ax.set_xlim(result.started, most)
    ax.axvline(float(table["planned_end"].max()), color=GREY, linewidth=1.0, linestyle="--")
    from matplotlib.patches import Patch

    handles = [Patch(color=GREY, label="planned"), Patch(color=BLUE, label="executed")]
    legend(ax, "lower left", (0.0, 1.0), handles=handles, columns=2, borderaxespad=0.2, handlelength=1.0)
    tidy(ax, grid="", title=title)
    ax.tick_params(axis="y", length=0)
    return ax


_HEADLINE = ("makespan", "slr", "speedup", "utilisation", "energy")
_WORDS = {"slr": "SLR", "speedup": "speedup", "utilisation": "busy"}


@drawn
def machine_overview(
    result: TaskRecord, *, title: str | None = None, figsize: Size | None = None, **look: Unpack[Look]
) -> Figure:
    """Draw a run on one page: the phases of each processor and, below, the memory pools and the links.

    Parameters
    ----------
    title, figsize
        another title than the run's name (``""``: none); width and height of the figure, inches
    """
    used = any(steps.max() > 0 for steps in result.memory.values())
    moved = len(result.transfers) > 0 and len(result.spec.links) > 0
    rows = float(result.processors["cores"][used_processors(result)].sum())
    high = min(max(0.3 * rows, 1.6), 7.0)
    ratios = [high, *([1.3] if used else []), *([1.3] if moved else [])]
    fig, shown = panels((10.5, sum(ratios) + 1.5), list(zip(ratios, "abc", strict=False)), figsize)
    top, *others = shown
    for ax in others:
        ax.sharex(top)
    machine_gantt(result, ax=top)
    if used:
        memory(result, ax=others[0])
    if moved:
        links(result, ax=others[-1])
    for ax in shown[:-1]:
        hide_x(ax)
    found = summary(result)
    told = [
        f"{_WORDS.get(name, name)} {machine_text(name, found[name], result.time_unit)}"
        for name in _HEADLINE
        if np.isfinite(found[name]) and found[name]
    ]
    told.insert(0, counted(len(result.processors), "processor"))
    headline(fig, about(result) if title is None else title, " · ".join(told))
    return fig


class MachinePlots(PlotMenu):
    """The plots of one run of a machine: ``result.plot``.

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

    gantt = Plot(machine_gantt)
    memory = Plot(memory)
    links = Plot(links)
    phases = Plot(phases)
    plan = Plot(plan)
    overview = Plot(machine_overview)
