"""The look of the plots (colours, axes, ticks in days, hours and minutes), and their menus on results.

Options that all plots share: ``title`` replaces the default title (an empty one removes it), ``figsize`` is the width
and height of a new figure in inches, ``ax`` the axes to draw on instead of a new figure; plots of one curve take its
``colour``, any of matplotlib's.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from simmodel.foundation.display import Cells, Shown
from simmodel.foundation.errors import InputError, optional_imports, unknown
from simmodel.foundation.units import show_quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

    from simmodel.records.job_record import JobRecord
    from simmodel.records.steps import Steps

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "INK",
    "ORANGE",
    "PALE",
    "Plot",
    "PlotMenu",
    "Size",
    "area",
    "axes",
    "checked_colour",
    "colour_bar",
    "coloured",
    "duration_axis",
    "duration_colours",
    "figure",
    "headline",
    "hide_x",
    "legend",
    "page",
    "quantity_scale",
    "rows_named",
    "sequence",
    "share_axis",
    "span_axis",
    "tidy",
    "time_axis",
]


Each = TypeVar("Each")

Size: TypeAlias = "tuple[float, float]"
"""Width and height of a figure, inches."""

INK, GREY, PALE = "#24292f", "#8b929a", "#e7e9ec"
BLUE, ORANGE = "#2f6690", "#d9773b"
COLOURS = (BLUE, ORANGE, "#4a9c8c", "#8f6bb3", "#c2a83e", "#b3546b", "#6d7f8c")
_SEQUENCE = ("#d4e3ec", "#9ac0d6", "#5794ba", "#2f6690", "#1b3c5b")

_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_NICE = {
    "days": (1, 2, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1460),
    "hours": (1, 2, 3, 6, 12, 24),
    "minutes": (1, 2, 5, 10, 15, 30, 60, 120),
    "seconds": (1, 2, 5, 10, 20, 30, 60, 120),
}
_DURATIONS = (
    (0, "0"),
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (6 * 3600, "6 h"),
    (86400, "1 d"),
    (7 * 86400, "1 wk"),
    (30 * 86400, "30 d"),
    (365 * 86400, "1 y"),
)


def axes(ax: Axes | None, size: Size = (8.0, 3.2), figsize: Size | None = None) -> Axes:
    """Return the axes passed in, or those of a new figure.

    Parameters
    ----------
    ax, figsize
        as passed by the user
    size
        the default size of a new figure, inches

    Raises
    ------
    InputError
        if both are given, or the size is not a pair of positive numbers
    MissingExtra
        if matplotlib is not installed
    """
    if ax is None:
        return figure(size, figsize).subplots()
    if figsize is not None:
        raise InputError("figsize and ax exclude each other: axes have the size of their figure")
    return ax


def figure(
    size: Size, figsize: Size | None = None, title: str | None = None, *, pad: tuple[float, float] | None = None
) -> Figure:
    """Return a new, empty figure; ``pad``: width and height (inches) around its panels; the rest as of :func:`axes`.

    >>> figure((8.0, 3.2), figsize=(4.0, -1.0))
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: figsize: must be width and height in inches, both > 0, got (4.0, -1.0)
    """
    chosen: Any = size if figsize is None else figsize
    numbers = isinstance(chosen, (tuple, list, np.ndarray)) and len(chosen) == 2
    if not numbers or not all(isinstance(each, (int, float, np.number)) and 0 < each < np.inf for each in chosen):
        raise InputError(f"must be width and height in inches, both > 0, got {figsize!r}", place="figsize")
    with optional_imports():
        import matplotlib.pyplot as plt
    new = plt.figure(figsize=(float(chosen[0]), float(chosen[1])), layout="constrained")
    if pad is not None:
        engine: Any = new.get_layout_engine()
        engine.set(w_pad=pad[0], h_pad=pad[1])
    if title:
        new.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return new


@contextmanager
def page(
    size: Size, figsize: Size | None = None, title: str | None = None, *, pad: tuple[float, float] | None = None
) -> Iterator[Figure]:
    """Give a new figure for several plots, which is closed if one of them raises; parameters as of :func:`figure`."""
    new = figure(size, figsize, title, pad=pad)
    try:
        yield new
    except BaseException:
        import matplotlib.pyplot as plt

        plt.close(new)
        raise


def checked_colour(colour: str) -> str:
    """Return a colour of matplotlib; raises ``InputError`` if it is none.

    >>> checked_colour("usr")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: colour: must be a colour of matplotlib, such as 'tab:blue' or '#2f6690', ...
    """
    with optional_imports():
        from matplotlib.colors import is_color_like
    if not is_color_like(colour):
        raise InputError(
            f"must be a colour of matplotlib, such as 'tab:blue' or '{BLUE}', got {colour!r}", place="colour"
        )
    return colour


def tidy(ax: Axes, *, grid: str = "y", title: str | None = None, default: str = "", pad: float = 7) -> Axes:
    """Remove the parts of frame and grid that do not help reading, and set the title: the user's or the default."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(colors=GREY, labelcolor=INK, labelsize=8.5, width=0.8, length=3)
    ax.xaxis.label.set(color=INK, fontsize=9)
    ax.yaxis.label.set(color=INK, fontsize=9)
    ax.grid(False)
    if grid:
        ax.grid(True, axis=grid, color=PALE, linewidth=0.8)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
    shown = default if title is None else title
    if shown:
        ax.set_title(shown, loc="left", fontsize=10, color=INK, pad=pad)
    return ax


def coloured(values: Iterable[Each]) -> Iterator[tuple[Each, str]]:
    """Return each value with its colour; the colours repeat.

    >>> dict(coloured(["fcfs", "easy"]))
    {'fcfs': '#2f6690', 'easy': '#d9773b'}
    """
    return zip(values, cycle(COLOURS), strict=False)


def area(ax: Axes, steps: Steps, colour: str, label: str | None = None) -> None:
    """Draw a step function as a line above a pale area."""
    times, values = steps.curve()
    ax.fill_between(times, values, step="post", color=colour, alpha=0.25, linewidth=0)
    ax.plot(times, values, drawstyle="steps-post", color=colour, linewidth=0.9, label=label)


def legend(
    ax: Axes,
    loc: str = "best",
    at: tuple[float, float] | None = None,
    *,
    handles: Sequence[Artist] | None = None,
    columns: int = 1,
    **spacing: float,
) -> None:
    """Draw a legend without a frame.

    Parameters
    ----------
    loc, at
        the corner of the legend, and where in the axes it lies: (0, 0) to (1, 1); default: inside, where there is room
    handles
        the labelled artists; default: all of the axes
    columns
        the number of columns
    spacing
        matplotlib's ``handlelength``, ``borderaxespad`` and so on, in font sizes
    """
    given: dict[str, Any] = {"loc": loc, "bbox_to_anchor": at, "handles": handles, "ncols": columns, **spacing}
    ax.legend(frameon=False, fontsize=8.5, labelcolor=INK, **given)


def colour_bar(
    ax: Axes, shown: ScalarMappable, ticks: Sequence[tuple[float, str]] = (), *, fraction: float, title: str = ""
) -> None:
    """Draw the bar of the colours of a picture beside its axes.

    Parameters
    ----------
    shown
        the picture, or its colours and norm
    ticks
        values and their texts; default: those of matplotlib
    fraction
        the part of the axes that the bar takes
    title
        above the bar, whose ticks are then marked
    """
    bar: Any = ax.figure.colorbar(shown, ax=ax, pad=0.01, fraction=fraction, aspect=28 if title else 25)
    if ticks:
        bar.set_ticks([at for at, _ in ticks], labels=[text for _, text in ticks])
    bar.minorticks_off()
    bar.outline.set_visible(False)
    if title:
        bar.ax.tick_params(labelsize=8, colors=GREY, labelcolor=INK, width=0.6, length=2)
        bar.ax.set_title(title, fontsize=8.5, color=INK, loc="left", pad=5)
    else:
        bar.ax.tick_params(labelsize=7.5, length=0, labelcolor=INK)


def headline(top: Axes, title: str, told: str, *, heights: tuple[float, float] = (44, 28)) -> None:
    """Write the title of a page, and a line about the run, above its first panel at some heights (points)."""
    above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "color": INK}
    top.annotate(title, (0, 1), (0, heights[0]), fontsize=14, fontweight="bold", **above)
    top.annotate(told, (0, 1), (0, heights[1]), fontsize=9.5, **above)


def hide_x(ax: Axes) -> None:
    """Remove the labels of the x axis of a panel that shares it with the one below."""
    ax.set_xlabel("")
    ax.tick_params(axis="x", labelbottom=False)


def share_axis(axis: XAxis | YAxis) -> None:
    """Label an axis of shares in percent."""
    axis.set_major_formatter(lambda value, _position: f"{100 * value:g} %")


def quantity_scale(most: float, unit: str) -> tuple[float, str]:
    """Return the power of 1000 by which values up to ``most`` are shown, and its symbol.

    >>> quantity_scale(5e9, "B/s")
    (1000000000.0, 'GBps')
    """
    scale = 1000.0 ** (min(max(int(np.log10(most)) // 3, 0), 8) if most > 0 else 0)
    return scale, show_quantity(scale, unit).lstrip("1")


def rows_named(kind: str, names: Sequence[str], known: Sequence[str]) -> list[int]:
    """Return the positions of names among known ones; raises ``InputError`` for an unknown one."""
    at = {name: row for row, name in enumerate(known)}
    for name in names:
        if name not in at:
            raise unknown(kind, name, known)
    return [at[name] for name in names]


def time_axis(ax: Axes, result: JobRecord) -> None:
    """Label the x axis in days, hours, minutes or seconds since the start of the run."""
    span_axis(ax, result.started, result.ended)


def span_axis(ax: Axes, start: float, end: float, since: str = "since the start") -> None:
    """As :func:`time_axis`, between two instants (s); ``since``: the first one in words."""
    span = max(end - start, 1e-9)
    unit, name = next((unit, name) for unit, name in _UNITS if span >= 3 * unit or unit == 1.0)
    steps = [step for step in _NICE[name] if span / (step * unit) <= 9]
    step = (steps[0] if steps else float(np.ceil(span / unit / 8))) * unit
    if span < 3:
        step = 10 ** np.floor(np.log10(span / 2))
    ticks = np.arange(0, span + step * 1e-6, step)
    ax.set_xticks(start + ticks, [f"{tick / unit:g}" for tick in ticks])
    ax.set_xlim(start, start + span)
    ax.set_xlabel(f"{name} {since}")


def duration_axis(axis: XAxis | YAxis, longest: float, *, log: bool = True, shortest: float = 1.0) -> None:
    """Label an axis of durations (s) as 1 min, 1 h, 1 d; ``log``: linear below ``shortest``, logarithmic above.

    Parameters
    ----------
    axis
        ``ax.xaxis`` or ``ax.yaxis``
    longest
        the longest duration shown, s
    """
    ax, which = axis.axes, axis.axis_name
    if log:
        getattr(ax, f"set_{which}scale")("symlog", linthresh=shortest, linscale=0.4)
        marks = [(at, text) for at, text in _DURATIONS if (at == 0 or at >= shortest) and at <= 1.3 * longest]
        axis.set_ticks([at for at, _ in marks], [text for _, text in marks])
        axis.set_minor_locator(_null())
        return
    unit, name = next(((u, n) for u, n in _UNITS if longest >= 2 * u), (1.0, "seconds"))
    axis.set_major_formatter(lambda value, _position: f"{value / unit:g}")
    from matplotlib.ticker import MaxNLocator

    locator = MaxNLocator(5)
    low, high = 0.0, longest if longest > 0 else 1.0
    axis.set_ticks([tick * unit for tick in locator.tick_values(low / unit, high / unit) if tick >= 0])
    label = axis.get_label().get_text()
    axis.set_label_text(f"{label} ({name})" if label else name)


def _null() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def duration_colours(longest: float) -> tuple[Colormap, Normalize, list[tuple[float, str]]]:
    """Return a colour map for durations (s), pale to dark, its norm, and the ticks of its colour bar."""
    from matplotlib.colors import LinearSegmentedColormap, SymLogNorm

    colours = LinearSegmentedColormap.from_list("durations", _SEQUENCE)
    marks = [(float(at), text) for at, text in _DURATIONS if (at == 0 or at >= 60) and at <= longest]
    return colours, SymLogNorm(linthresh=60, linscale=0.5, vmin=0, vmax=max(longest, 60.0)), marks


def sequence() -> Colormap:
    """Return a colour map for densities, pale to dark."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("density", _SEQUENCE)


Options = ParamSpec("Options")
Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)
Drawn = TypeVar("Drawn")


class _Holder(Protocol[Record_co]):
    @property
    def _result(self) -> Record_co: ...


class Plot(Generic[Record, Options, Drawn]):
    """A function that draws a record, as a method of a menu: with its signature and docstring.

    Parameters
    ----------
    draw
        the function; its first argument is the result of the menu
    """

    def __init__(self, draw: Callable[Concatenate[Record, Options], Drawn]) -> None:
        self._draw = draw

    @overload
    def __get__(self, menu: None, owner: type) -> Callable[Concatenate[Record, Options], Drawn]: ...

    @overload
    def __get__(self, menu: _Holder[Record], owner: type) -> Callable[Options, Drawn]: ...

    def __get__(
        self, menu: _Holder[Record] | None, owner: type
    ) -> Callable[Concatenate[Record, Options], Drawn] | Callable[Options, Drawn]:
        return self._draw if menu is None else MethodType(self._draw, menu._result)


class PlotMenu(Shown):
    """The plots of one result, one method each; its repr and HTML list them."""

    _result: Any

    def _plots(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_")]

    def _cells(self) -> Cells:
        heads = {name: (inspect.getdoc(getattr(self, name)) or "").partition("\n")[0] for name in self._plots()}
        return [["plot", "shows"], *([name, text.partition(";")[0]] for name, text in heads.items())]

    def __repr__(self) -> str:
        return f"<plots of {self._result.name}: {', '.join(self._plots())}>"
