"""Plots of one run of jobs: utilisation, queue, power, waits in bins and distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Unpack

import numpy as np

from simmodel.metrics.batch import job_values
from simmodel.metrics.bins import BINS, binned, distribution
from simmodel.records.job_record import JobRecord
from simmodel.records.steps import Steps
from simmodel.view.style import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    ORANGE,
    Look,
    Size,
    area,
    axes,
    checked_colour,
    colours_of,
    drawn,
    duration_axis,
    label_results,
    legend,
    tidy,
    time_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from simmodel.platform.signals import Signal
    from simmodel.platform.supply import PowerSupply

__all__ = ["cdf", "gpus_over_time", "power_layers", "power_over_time", "queue", "utilisation", "value_by_bin"]

_POINTS = 400
# Intervals (s) over which a long run is averaged: lengths that keep or level the rhythm of days and weeks.
_INTERVALS = tuple(
    (size * unit, f"{size} {name}s" if size > 1 else f"{'an' if name == 'hour' else 'a'} {name}")
    for unit, name, sizes in (
        (1, "second", (1, 2, 5, 10, 30)),
        (60, "minute", (1, 2, 5, 10, 30)),
        (3600, "hour", (1, 2, 3, 6, 12)),
        (86400, "day", (1, 2, 7, 14, 28)),
    )
    for size in sizes
)
_BANDS = (GREY, COLOURS[2], *COLOURS[:2], *COLOURS[3:])
_TIMES = ("wait", "turnaround", "run", "requested")
_NAMES = {
    "wait": "wait",
    "turnaround": "turnaround",
    "run": "run time",
    "requested": "requested time",
    "slowdown": "slowdown",
    "bounded_slowdown": "bounded slowdown",
    "per_processor_slowdown": "per-processor slowdown",
    "processors": "processors",
}


def _area(ax: Axes, result: JobRecord, steps: Steps, colour: str | None, first: str) -> str:
    """Draw a step function, averaged if it has too many steps for a plot; return a note on the averaging."""
    steps, note = _levelled(steps)
    area(ax, steps, colours_of(ax, [result], colour, first)[0], result.name)
    most = max(each.max(initial=0.0) for line in ax.get_lines() for each in [np.asarray(line.get_ydata())])
    ax.set_ylim(0, 1.05 * most if most > 0 else 1.0)
    label_results(ax)
    return note


def _levelled(steps: Steps) -> tuple[Steps, str]:
    if len(steps.times) <= 3 * _POINTS:
        return steps, ""
    span = steps.end - steps.start
    fitting = [(length, text) for length, text in _INTERVALS if span / length <= _POINTS]
    if span / _POINTS < 1 or not fitting:
        return steps.thinned(_POINTS), ""
    length, text = fitting[0]
    edges = np.append(np.arange(steps.start, steps.end, length), steps.end)
    return Steps(edges[:-1], steps.averages(edges), steps.end), f" (averages over {text})"


@drawn
def utilisation(
    result: JobRecord,
    *,
    place: str | None = None,
    colour: str | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the busy processors over time, and those that were up.

    A long run is shown as exact averages over hours or days.

    Parameters
    ----------
    place
        its name; default: all places together
    colour
        any colour of matplotlib
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    busy, capacity = result.busy(place), result.capacity(place)
    ax = axes(ax, figsize=figsize)
    note = _area(ax, result, busy, colour, BLUE)
    times, values = capacity.thinned(_POINTS).curve()
    ax.plot(times, values, drawstyle="steps-post", color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    ax.set_ylim(0, 1.05 * max(capacity.max(), busy.max(), 1))
    ax.set_ylabel("busy processors")
    time_axis(ax, result)
    up = capacity.integral()
    share = f"busy processors, {100 * busy.integral() / up:.1f} % of those up" if up else "busy processors"
    return tidy(ax, title=title, default=share + note)


@drawn
def queue(
    result: JobRecord,
    *,
    processors: bool = False,
    colour: str | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the number of waiting jobs over time, or of the processors they ask for.

    A long run is shown as exact averages over hours or days.

    Parameters
    ----------
    processors
        draw the processors that waiting jobs ask for
    colour
        any colour of matplotlib
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    ax = axes(ax, figsize=figsize)
    steps = result.queued_processors() if processors else result.queue_length()
    note = _area(ax, result, steps, colour, ORANGE)
    ax.set_ylabel("processors asked for" if processors else "waiting jobs")
    time_axis(ax, result)
    what = "processors asked for by waiting jobs" if processors else "waiting jobs"
    own = f"{what}, {steps.mean():,.3g} on average, {steps.max():,.0f} at most{note}"
    return tidy(ax, title=title, default=own)


@drawn
def power_over_time(
    result: JobRecord,
    *,
    supply: PowerSupply | None = None,
    cap: float | Signal | Steps | None = None,
    colour: str | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the power over time, in kW, by what draws it; see :func:`simmodel.metrics.power_and_energy.power_by_state`.

    On axes that show another run already it is one line, as with a colour.

    Parameters
    ----------
    supply
        how power reaches the nodes, as of :func:`simmodel.metrics.power`
    cap
        W that must not be exceeded, a number, a signal or steps: drawn dashed
    colour
        any colour of matplotlib, for all power together
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    from simmodel.metrics.draws import as_steps
    from simmodel.metrics.power_and_energy import power

    ax = axes(ax, figsize=figsize)
    if colour is None and not ax.has_data():
        layers = power_layers(result, supply)
        steps = [*layers.values()][-1] if layers else Steps([result.started], [0.0], result.ended)
        note = _bands(ax, layers)
    else:
        steps = power(result, supply=supply).scaled(1e-3)
        note = _area(ax, result, steps, colour, COLOURS[2])
    if cap is not None:
        if not isinstance(cap, int | float | Steps):
            cap = as_steps(cap, result.started, result.ended)
        limit = (cap if isinstance(cap, Steps) else Steps([result.started], [cap], result.ended)).scaled(1e-3)
        times, values = limit.curve()
        ax.plot(times, values, drawstyle="steps-post", color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="cap")
        ax.set_ylim(0, max(ax.get_ylim()[1], 1.05 * limit.max()))
    if len(ax.get_legend_handles_labels()[1]) > 1:
        legend(ax, "lower left", columns=5)
    ax.set_ylabel("power (kW)")
    time_axis(ax, result)
    return tidy(ax, title=title, default=f"power, {steps.integral() / 3600:,.4g} kWh in all{note}")


def power_layers(result: JobRecord, supply: PowerSupply | None = None) -> dict[str, Steps]:
    """Return the parts of :func:`simmodel.metrics.power_by_state` in kW, each on those before: the last is all power.

    >>> from simmodel.records import JobRecord
    >>> from simmodel.work.table import Table
    >>> places = {"place": ["all"], "processors": [8], "nodes": [0], "idle_power": [100.0], "load_power": [250.0]}
    >>> result = JobRecord(jobs={"submit": [0], "start": [0], "end": [9], "processors": [4]}, places=Table(places))
    >>> {name: steps.values.tolist() for name, steps in power_layers(result).items()}
    {'idle': [0.8], '+ load': [1.4]}
    """
    from simmodel.metrics.power_and_energy import power_by_state

    found: dict[str, Steps] = {}
    total = Steps([result.started], [0.0], result.ended)
    for name, steps in power_by_state(result, supply=supply).items():
        total += steps.scaled(1e-3)
        found[f"+ {name.replace('gpus', 'GPUs')}" if found else name] = total
    return found


def _bands(ax: Axes, layers: Mapping[str, Steps], colours: Sequence[str] = _BANDS) -> str:
    """Fill the band between each layer and the one before; return a note on the averaging."""
    below: NDArray[np.float64] | float = 0.0
    note, most = "", 0.0
    edges = np.unique(np.concatenate([steps.times for steps in layers.values()])) if layers else np.zeros(0)
    for (label, steps), colour in zip(layers.items(), cycle(colours), strict=False):
        whole = Steps(edges, steps.at(edges), steps.end)  # all change at the same instants
        level, note = _levelled(whole)
        times, values = level.curve()
        ax.fill_between(times, below, values, step="post", color=colour, alpha=0.75, linewidth=0, label=label)
        below, most = values, max(most, float(values.max(initial=0.0)))
    ax.set_ylim(0, 1.05 * most if most > 0 else 1.0)
    return note


@drawn
def gpus_over_time(
    result: JobRecord,
    *,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the allocated and the idle GPUs in service over time, each type above the others.

    If devices are told apart, a line shows the :meth:`~simmodel.metrics.GpuUse.fragmentation`. A long run is shown as
    exact averages over hours or days.

    Parameters
    ----------
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    Raises
    ------
    InputError
        the cluster has no GPUs, or is not known
    """
    from simmodel.metrics.devices import GpuUse

    use = GpuUse(result)
    ax = axes(ax, figsize=figsize)
    layers, total = {}, Steps([result.started], [0.0], result.ended)
    for kind in use.types:
        for label, steps in ((kind or "allocated", use.allocated(kind)), (f"{kind} idle".strip(), use.idle(kind))):
            total += steps
            layers[label] = total
    note = _bands(ax, layers, [each for colour in COLOURS for each in (colour, GREY)])
    if use.apart():
        times, values = use.fragmentation().thinned(_POINTS).curve()
        ax.plot(times, values, drawstyle="steps-post", color=INK, linewidth=1, label="idle, of no use to the mix")
    legend(ax, "upper left", (1.0, 1.0))
    ax.set_ylabel("GPUs")
    time_axis(ax, result)
    share = 100 * use.allocated().integral() / (total.integral() or 1.0)
    return tidy(ax, title=title, default=f"allocated GPUs, {share:.1f} % of those in service{note}")


@drawn
def value_by_bin(
    result: JobRecord,
    by: str = "processors",
    bins: Sequence[float] | None = None,
    *,
    value: str = "wait",
    statistic: str = "mean",
    colour: str = BLUE,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw a statistic of the jobs in bins, with the number of jobs on each bar.

    Parameters
    ----------
    by, bins, value, statistic
        as of :func:`simmodel.metrics.bins.binned`; the default bins of small machines are powers of two
    colour
        any colour of matplotlib
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead
    """
    if bins is None and by == "processors" and result.jobs["processors"].max(initial=0) <= 2 * BINS["processors"][1]:
        bins = _size_bins(int(result.jobs["processors"].max(initial=1)))
    table = binned(result, by, bins, value, statistic)
    outside = int(table["jobs"][-1])
    table = table.where(slice(None, -1))
    heights = np.nan_to_num(table[value])
    colour, ax = checked_colour(colour), axes(ax, (6.0, 3.2), figsize)
    ax.bar(np.arange(len(heights)), heights, width=0.72, color=colour, alpha=0.9)
    for x, (height, jobs) in enumerate(zip(heights.tolist(), table["jobs"].tolist(), strict=True)):
        ax.annotate(f"{jobs:,}", (x, height), (0, 2), textcoords="offset points", ha="center", color=GREY)
    scale, names = (60.0, " min") if by in _TIMES else (1.0, "")
    labels = [_label(low / scale, high / scale, by) for low, high in zip(table["low"], table["high"], strict=True)]
    ax.set_xticks(np.arange(len(labels)), labels)
    ax.set_xlabel(f"{_NAMES.get(by, by)}{' (' + names.strip() + ')' if names else ''}")
    ax.set_ylabel(f"{statistic} {_NAMES.get(value, value)}")
    highest = float(heights.max(initial=0.0))
    ax.set_ylim(0, 1.15 * highest if highest > 0 else 1.0)
    if value in _TIMES:
        duration_axis(ax.yaxis, float(heights.max(initial=0.0)), log=False)
    own = f"{_NAMES.get(value, value)} by {_NAMES.get(by, by)}, with the number of jobs"
    tidy(ax, title=title, default=own)
    if outside:
        ax.annotate(f"{outside:,} jobs outside", (1, 1), xycoords="axes fraction", ha="right", color=GREY)
    return ax


def _size_bins(largest: int) -> list[float]:
    """Return at most eight edges 0, 1, 2, 4, 8 ... up to the largest size."""
    edges: list[float] = [0.0, *(2.0**i for i in range(int(np.ceil(np.log2(max(largest, 2)))) + 1))]
    return [0.0, *edges[-7:]] if len(edges) > 8 else edges


def _label(low: float, high: float, by: str) -> str:
    if by == "processors":
        if np.isinf(high):
            return f"> {low:,.0f}"
        return f"{high:,.0f}" if high - low == 1 else f"{low + 1:,.0f}-{high:,.0f}"
    return f"> {low:,g}" if np.isinf(high) else f"{low:,g}-{high:,g}"


@drawn
def cdf(
    results: JobRecord | Sequence[JobRecord],
    value: str | JobRecord | Sequence[JobRecord] = "wait",
    *others: JobRecord | Sequence[JobRecord] | str,
    colour: str | Sequence[str] | None = None,
    title: str | None = None,
    figsize: Size | None = None,
    ax: Axes | None = None,
    **look: Unpack[Look],
) -> Axes:
    """Draw the cumulative distribution of a value of the counted jobs, of one result or of several.

    Parameters
    ----------
    value
        as of :func:`simmodel.metrics.batch.job_values`
    others
        more results, one by one or in lists, which may also stand in the place of the value, and the value after them
    colour
        any colour of matplotlib, or one for each result; default: the next ones that these axes do not show
    title, figsize, ax
        another title (``""``: none); width and height of the new figure, inches; axes to draw on instead

    >>> from simmodel import simulate
    >>> runs = [simulate(128, "lublin-128-week", policy) for policy in ("fcfs", "easy", "sjf")]
    >>> axes = runs[0].plot.cdf(runs)  # as cdf(runs), and runs[0].plot.cdf(*runs[1:])
    >>> [line.get_label() for line in axes.get_lines()]
    ['fcfs', 'easy', 'sjf']
    """
    several: list[JobRecord] = []
    name = "wait"
    for each in (results, value, *others):
        if isinstance(each, str):
            name = each
        else:
            given = [each] if isinstance(each, JobRecord) else list(each)
            several += [one for one in given if all(one is not other for other in several)]
    each_value = [job_values(result, name)[result.counted] for result in several]
    ax = axes(ax, (6.0, 3.2), figsize)
    longest = float(ax.get_xlim()[1]) if ax.get_lines() else 0.0
    colours = colours_of(ax, several, colour)
    for result, values, shade in zip(several, each_value, colours, strict=True):
        at, share = distribution(values)
        longest = max(longest, float(at[-1]) if len(at) else 0.0)
        style = ("-", "--", ":")[len(ax.get_lines()) // len(COLOURS) % 3]
        times, shares = np.append(at[:1], at), np.append(np.zeros(len(at[:1])), share)
        ax.plot(times, shares, drawstyle="steps-post", color=shade, linestyle=style, linewidth=1.6, label=result.name)
    if name in _TIMES:
        duration_axis(ax.xaxis, longest)
    elif longest > 20:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _position: f"{value:,g}")
        ax.minorticks_off()
    ax.set_ylim(0, 1.02)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    ax.set_xlabel(_NAMES.get(name, name))
    label_results(ax, "lower right")
    return tidy(ax, grid="both", title=title, default=f"share of jobs with at most this {_NAMES.get(name, name)}")
