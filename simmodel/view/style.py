"""The look of the plots: sizes and fonts for papers, colours, axes, ticks in days, hours and minutes, and their menus.

Options that all plots share: ``title`` replaces the default title (an empty one removes it), ``figsize`` is the width
and height of a new figure in inches, ``ax`` the axes to draw on instead of a new figure, ``style`` one of
:data:`STYLES`, ``save`` a file to write; plots of one curve take its ``colour`` (or ``color``), any of matplotlib's.

The size of text is that of the style, or of matplotlib's ``rcParams``. Several results may be drawn on the same axes:
each gets a colour and a label. Files have text as text: pdf and ps in fonts of Type 42, svg in its own elements.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from itertools import cycle, pairwise
from pathlib import Path
from textwrap import fill
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)
from weakref import WeakKeyDictionary

import numpy as np

from simmodel.foundation.display import Cells, counted, html_page
from simmodel.foundation.errors import InputError, optional_imports, unknown
from simmodel.foundation.units import show_quantity
from simmodel.foundation.writing import replacing
from simmodel.records.job_record import JobRecord
from simmodel.records.task_record import TaskRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    from simmodel.records.steps import Steps

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "INK",
    "ORANGE",
    "PALE",
    "STYLES",
    "Look",
    "Plot",
    "PlotMenu",
    "Size",
    "Style",
    "about",
    "area",
    "axes",
    "checked_colour",
    "colour_bar",
    "coloured",
    "colours_of",
    "drawn",
    "duration_axis",
    "duration_colours",
    "figure",
    "font_size",
    "headline",
    "hide_x",
    "label_results",
    "legend",
    "narrow",
    "panels",
    "quantity_scale",
    "rows_named",
    "save_figure",
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


class Style(NamedTuple):
    """The width of figures and their height at most (inches), the size of their text (points), and pixels an inch."""

    width: float
    height: float
    text: float
    dpi: int = 300


STYLES = {
    "ieee-column": Style(3.5, 8.8, 8),
    "ieee-page": Style(7.16, 8.8, 8),
    "acm-column": Style(3.33, 8.8, 8),
    "springer": Style(4.8, 7.0, 8),
    "slide": Style(12.0, 5.8, 18, 150),
}
"""Figures for papers and slides, by name.

Widths: a column and a page of IEEE's author centre, "Size requirements for graphics"; a column of ACM's class acmart,
sigconf (8.5 in less two margins of 54 pt and a gap of 24 pt, halved); the text of Springer's class llncs (12.2 by
19.3 cm); a slide of 13.33 by 7.5 in with room for a title.
"""
_SCREEN = Style(np.inf, np.inf, np.inf)
_STYLE: ContextVar[Style | None] = ContextVar("style", default=None)  # of the figure that is being drawn
_TEXTS: tuple[str, ...] = ("axes.titlesize", "figure.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize")
_TEXTS += ("legend.fontsize", "legend.title_fontsize")
_LEAST = 9.0  # the least size of text on a slide, points
_SMALLEST = 0.5  # how far the text of a page of panels shrinks for a size that users give
_WIDE = 45  # widths of letters that two panels beside each other take
_DRAWN: WeakKeyDictionary[Axes, list[JobRecord]] = WeakKeyDictionary()  # results that share axes


class Look(TypedDict, total=False):
    """Options of all plots.

    ``style``: one of :data:`STYLES`; ``save``: a file to write, in the format of its ending; ``color``: as ``colour``.
    """

    style: str | None
    save: str | Path | None
    color: str | None


Options = ParamSpec("Options")
Picture = TypeVar("Picture", bound="Axes | Figure")


def drawn(draw: Callable[Options, Picture]) -> Callable[Options, Picture]:
    """Return a function that draws a plot, with the options of :class:`Look`.

    Where the user gave no title, that of a run also has its log, machine, policy and number of jobs. Texts are wrapped,
    and labels thinned out, until a new figure has room for them.
    """

    @wraps(draw)
    def plot(*args: Options.args, **options: Options.kwargs) -> Picture:
        if _STYLE.get() is not None:  # a panel of a page
            return draw(*args, **options)
        given: dict[str, Any] = options
        style, save = given.pop("style", None), given.pop("save", None)
        if "color" in given:
            given["colour"] = given.pop("color")
        with _styled(style) as used:
            seconds: Any = [_in_seconds(each) for each in args]
            found = draw(*seconds, **options)
            own = given.get("ax") is None
            whole: Any = found.figure.figure  # of a panel that of its part, then the whole
            if own:
                records = _records(args)
                if given.get("title") is None and records:
                    shown: Any = found
                    if shown is whole:
                        headline(whole, whole.get_suptitle() or about(*records))
                    else:
                        title = f"{shown.get_title(loc='left')}\n{about(*records)}"
                        shown.set_title(title.strip(), loc="left", color=INK)
                _fit(whole, used.height if given.get("figsize") is None else 0.0)
            if save is not None:
                save_figure(whole, save)
        return found

    signature = inspect.signature(draw)
    kept = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    types = {"style": "str | None", "save": "str | Path | None"}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=each)
        for name, each in types.items()
    ]
    plot.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
    return plot


@contextmanager
def _styled(style: str | None) -> Iterator[Style]:
    """Draw in a style: its text has one size; figures are closed if drawing raises."""
    if style is not None and style not in STYLES:
        raise unknown("style", style, STYLES)
    used = _SCREEN if style is None else STYLES[style]
    with optional_imports():
        import matplotlib.pyplot as plt
    load_backend: Any = plt.draw_if_interactive
    load_backend()  # that of notebooks sets what rc_context() would set back
    ours, usual = _settings(), _settings(usual=True)
    sizes: Any = {"font.size": used.text, "figure.dpi": used.dpi, "savefig.dpi": "figure"} if style else {}
    sizes |= {name: "medium" for name in _TEXTS if style or ours[name] == usual[name]}
    before, token = set(plt.get_fignums()), _STYLE.set(used)
    try:
        with plt.rc_context(sizes):
            yield used
    except BaseException:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)
        raise
    finally:
        _STYLE.reset(token)


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


def figure(size: Size, figsize: Size | None = None, title: str | None = None) -> Figure:
    """Return a new, empty figure; parameters as of :func:`axes`.

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
    style = _STYLE.get() or _SCREEN
    if figsize is None and style is not _SCREEN:
        high = chosen[1] * style.text / 10
        chosen = style.width, min(high, style.height)
        _settings()["font.size"] = min(style.text, max(_LEAST, style.text * style.height / high))  # pages on slides
    new: Any = plt.figure(figsize=(float(chosen[0]), float(chosen[1])), layout="constrained")
    new.savefig = partial(_save, new)
    if title:
        headline(new, title)
    return new  # type: ignore[no-any-return]


def _save(drawing: Figure, *args: Any, **options: Any) -> None:
    """Write a figure with its text as text: fonts of Type 42 in pdf and ps, and text elements in svg."""
    from matplotlib import rc_context

    with rc_context({"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}):
        type(drawing).savefig(drawing, *args, **options)


def panels(
    size: Size, rows: Sequence[tuple[float, str]], figsize: Size | None = None, title: str | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a new figure with a title and its panels, which are below each other where it is narrow.

    Parameters
    ----------
    size, figsize, title
        as of :func:`figure`
    rows
        the relative height of each row, and its panels, a letter each, as wide as it is repeated
    """
    new = figure(size, figsize)
    if figsize is not None:  # the size is the user's: what gives way is the text
        _settings()["font.size"] = font_size() * min(1.0, max(_SMALLEST, new.get_figheight() / size[1]))
    if title:
        headline(new, title)
    if narrow(new):
        one = dict.fromkeys(("." + "".join(letters for _, letters in rows))[1:].replace(".", ""))
        apart = [(next(height for height, letters in rows if letter in letters), letter) for letter in one]
        most = (_STYLE.get() or _SCREEN).height
        if figsize is None:
            high = new.get_figheight() * sum(height for height, _ in apart) / sum(height for height, _ in rows)
            new.set_figheight(min(high, most))
        rows = apart
    wide = int(np.lcm.reduce([len(letters) for _, letters in rows]))
    layout: list[Any] = [[letter for letter in letters for _ in range(wide // len(letters))] for _, letters in rows]
    found = new.subplot_mosaic(layout, height_ratios=[height for height, _ in rows])
    return new, list(found.values())


def narrow(drawing: Figure) -> bool:
    """Return whether a figure has no room for two panels beside each other, with text of its size."""
    return bool(72 * drawing.get_figwidth() < _WIDE * font_size())


def save_figure(drawing: Figure, path: str | Path) -> None:
    """Write a figure in the format of the path's ending: png to standard output.

    Raises
    ------
    InputError
        the ending is not that of a picture, or the file cannot be written
    """
    kind = "png" if str(path) == "-" else Path(path).suffix.lower().removeprefix(".")
    if kind not in (kinds := sorted(drawing.canvas.get_supported_filetypes())):
        raise InputError(f"must be a picture (.{', .'.join(kinds)}), got {Path(path).suffix!r}", source=str(path))
    with replacing(path) as part:
        _save(drawing, part, format=kind, dpi=max(120, drawing.dpi))


# ---------------------------------------------------------------------- what runs a plot shows


def _in_seconds(arg: Any) -> Any:
    if isinstance(arg, (list, tuple)):
        return [_in_seconds(each) for each in arg]
    return arg.in_seconds if isinstance(arg, JobRecord) else arg


def _records(args: Iterable[Any]) -> list[JobRecord | TaskRecord]:
    """Return the records among arguments, and in their sequences."""
    flat = [each for arg in args for each in (arg if isinstance(arg, (list, tuple)) else [arg])]
    return [each for each in flat if isinstance(each, (JobRecord, TaskRecord))]


def _parts(record: JobRecord | TaskRecord) -> tuple[str, str, str, str]:
    """Return the log, the number of jobs or tasks, the machine and the policy of a run."""
    work = record.scenario.get("workload") or []
    logs = [Path(name).name for each in work if (name := str(each.get("source") or each.get("name") or ""))]
    if isinstance(record, TaskRecord):
        count, machine = counted(len(record.tasks), "task"), record.spec.name
    else:
        count = counted(len(record.jobs), "job")
        size = counted(record.processors, "processor")
        name = record.scenario.get("platform", {}).get("name")
        machine = f"{name} ({size})" if name else size
    log = " and ".join(dict.fromkeys(logs)) if len(logs) <= 3 else counted(len(logs), "log")
    return log, count, machine, str(record.scenario.get("policy_called") or "")


def about(*records: JobRecord | TaskRecord) -> str:
    """Return log, number of jobs, machine and policy in words: of several runs what they share.

    >>> from simmodel import simulate
    >>> about(simulate(128, "lublin-128-week", "easy"))
    'easy: lublin-128-week, 600 jobs, 128 processors'
    """
    found = [_parts(record) for record in records]
    log, count, machine, policy = (each[0] if len(set(each)) == 1 else "" for each in zip(*found, strict=True))
    names = {record.name for record in records}
    called = names.pop() if len(names) == 1 else ""
    head = ", ".join(part for part in (called, policy if policy not in called else "") if part)
    told = ", ".join(part for part in (log if log not in called else "", count, machine) if part)
    return ": ".join(part for part in (head, told) if part)


def _labels(records: Sequence[JobRecord]) -> list[str]:
    """Return a label for each of several results: its name, and what distinguishes those of one name."""
    names = [record.name for record in records]
    if len(set(names)) == len(names):
        return names
    found = [_parts(record) for record in records]
    unlike = [number for number, each in enumerate(zip(*found, strict=True)) if len(set(each)) > 1]
    return [
        ", ".join(dict.fromkeys([name, *(parts[number] for number in unlike if parts[number])]))
        for name, parts in zip(names, found, strict=True)
    ]


def colours_of(
    ax: Axes, records: Sequence[JobRecord], colour: str | Sequence[str] | None = None, first: str = BLUE
) -> list[str]:
    """Return a colour for each of some results: the next ones, if others stand in these axes.

    Parameters
    ----------
    ax
        the axes
    records
        the results
    colour
        the users' colours; default: ``first`` and then the others
    first
        the colour of a single result
    """
    there = _DRAWN.setdefault(ax, [])
    known = [first, *(each for each in COLOURS if each != first)]
    given = [colour] if isinstance(colour, str) else colour or ()
    if given and len(given) < len(records):
        raise InputError(f"must be one for each of {len(records)} results, got {colour!r}", place="colour")
    chosen = [checked_colour(each) for each in given] or [known[(len(there) + i) % 7] for i in range(len(records))]
    there += records
    return chosen


def label_results(ax: Axes, loc: str = "best") -> None:
    """Draw the legend of the results that stand in the axes, if they are several."""
    there = _DRAWN.get(ax, [])
    if len(there) > 1:
        lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        for line, label in zip(lines, _labels(there), strict=False):
            line.set_label(label)
        legend(ax, loc)


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


def tidy(ax: Axes, *, grid: str = "y", title: str | None = None, default: str = "") -> Axes:
    """Remove the parts of frame and grid that do not help reading, and set the title: the user's or the default."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
        ax.spines[side].set_linewidth(0.8)
    for axis in ("x", "y"):
        size = font_size(_settings()[f"{axis}tick.labelsize"])
        given: dict[str, Any] = {"axis": axis, "which": "both", "labelsize": size}
        ax.tick_params(**given, colors=GREY, labelcolor=INK, width=0.8, length=3)
    ax.xaxis.label.set(color=INK)
    ax.yaxis.label.set(color=INK)
    ax.grid(False)
    if grid:
        ax.grid(True, axis=grid, color=PALE, linewidth=0.8)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
    shown = default if title is None else title
    if shown:
        ax.set_title(shown, loc="left", color=INK, wrap=_STYLE.get() is None)
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
    whole: Any = ax.figure
    shown = ax.get_legend_handles_labels()[0] if handles is None else list(handles)
    beside = at is not None and at[0] >= 1
    if narrow(whole) and (beside or (at is None and len(shown) > 3)):
        loc, at, columns = "lower left", (0.0, 1.0), len(shown)
    if columns > 1:
        longest = max((len(str(each.get_label())) for each in shown), default=0)
        columns = max(1, min(columns, int((72 * whole.get_figwidth() / font_size() - 6) / (0.55 * longest + 3.5))))
    given: dict[str, Any] = {"loc": loc, "bbox_to_anchor": at, "handles": handles, "ncols": columns, **spacing}
    ax.legend(frameon=False, labelcolor=INK, **given)


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
        bar.ax.set_title(title, color=INK, loc="left", pad=5)
    bar.ax.tick_params(
        colors=GREY,
        labelcolor=INK,
        width=0.6,
        length=2 if title else 0,
        labelsize=_settings()["ytick.labelsize"],
    )


def font_size(size: str = "medium") -> float:
    """Return the size of text in points, or of some of it: ``"small"`` and so on."""
    with optional_imports():
        from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=size).get_size_in_points())


def _settings(*, usual: bool = False) -> Any:
    """Return matplotlib's settings, or those it comes with."""
    import matplotlib as mpl

    return mpl.rcParamsDefault if usual else mpl.rcParams


def headline(drawing: Figure, title: str, told: str = "") -> None:
    """Write the title of a page, and below it what is told of the run."""
    parts = told.replace(" ", "\u00a0").replace("\u00a0·\u00a0", " · ")  # lines break between them
    text = "\n".join(each for each in (title, parts) if each)
    if text:
        drawing.suptitle(text, x=0.01, ha="left", color=INK)


def _fit(drawing: Figure, most: float) -> None:
    """Wrap texts and thin out labels until a figure has room for all, and let it grow up to a height (inches)."""
    line = 1.25 * font_size() / 72
    for number in range(6):
        drawing.draw_without_rendering()
        more = sum(_wrapped(text, drawing.bbox.x1 - 4) for text in drawing.texts)
        titles = [_fit_title(ax, drawing, number == 0) for ax in drawing.axes]
        ticks = [_fit_ticks(axis, most > 0) for ax in drawing.axes for axis in (ax.xaxis, ax.yaxis)]
        lines = more + max(titles, default=0.0) + max(ticks, default=0.0)
        high = min(drawing.get_figheight() + line * lines, max(most, drawing.get_figheight()))
        if not lines and not any(map(_fit_label, [axis for ax in drawing.axes for axis in (ax.xaxis, ax.yaxis)])):
            break
        drawing.set_figheight(high)


def _wrapped(text: Text, right: float, axis: int = 0, least: float | None = None) -> int:
    """Wrap a text that goes beyond a pixel, or is longer than so many; return the number of lines that came."""
    box = text.get_window_extent()
    start, end = (box.x0, box.x1) if axis == 0 else (box.y0, box.y1)
    room = right - start if least is None else least
    if not text.get_text() or end - start <= room:
        return 0
    lines = text.get_text().split("\n")
    width = max(int(0.96 * max(map(len, lines)) * room / (end - start)), 6)
    found = [part for each in lines for part in fill(each, width, break_long_words=False).split("\n")]
    text.set_text("\n".join(found))
    return len(found) - len(lines)


def _fit_title(ax: Axes, drawing: Figure, first: bool) -> float:
    """Wrap the title of axes before the next panel, and lift it above the legend; return the lines that came."""
    if not ax.get_title(loc="left"):
        return 0
    above = ax.get_legend()
    high = 72 * (above.get_window_extent().y1 - ax.bbox.y1) / drawing.dpi if above is not None else 0.0
    pad = high + 4 if high > 0 else None
    title = ax.set_title(ax.get_title(loc="left"), loc="left", color=INK, pad=pad)
    box, right = title.get_window_extent(), drawing.bbox.x1 - 4
    for other in drawing.axes:
        around = other.get_tightbbox(for_layout_only=True) if other is not ax else None
        if around is not None and around.x0 > box.x0 and around.y0 < box.y1 and around.y1 > box.y0:
            right = min(right, around.x0 - 4)
    return _wrapped(title, right) + (high / font_size() if pad and first else 0)


def _fit_label(axis: XAxis | YAxis) -> int:
    """Wrap the label of an axis that is longer than the axis."""
    across = axis.axis_name == "y"
    box = axis.axes.bbox
    return _wrapped(axis.label, 0, int(across), 1.02 * (box.height if across else box.width))


def _fit_ticks(axis: XAxis | YAxis, grows: bool) -> float:
    """Wrap, turn or thin out the labels of ticks that overlap; return the lines by which the figure is to grow."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    shown = [each for each in axis.get_major_ticks() if low - room <= each.get_loc() <= high + room]
    texts = [tick.label1 for tick in shown if tick.label1.get_visible() and tick.label1.get_text()]
    across = axis.axis_name == "y"
    wide = 0.38 * axis.axes.figure.bbox.width
    if across and sum(_wrapped(text, 0, 0, wide) for text in texts) > 0:
        _set_ticks(axis, texts)
        return 0.01
    boxes = [text.get_window_extent() for text in texts]
    turned = bool(texts) and texts[0].get_rotation() != 0
    gap = 1.0 if across or turned else 0.4 * font_size() * axis.axes.figure.dpi / 72
    spans = sorted((box.y0, box.y1) if across else (box.x0, box.x1) for box in boxes)
    over = max((one[1] - other[0] + gap for one, other in pairwise(spans)), default=0)
    if over <= 0:
        return 0
    places = [text.get_position()[int(across)] for text in texts]
    named = places == list(range(len(places))) and [text.get_text() for text in texts] != list(
        map(str, range(len(places)))
    )
    if across and named and grows:
        return min(max(1.0, 0.3 * len(texts)), 4.0)
    if named and not across and not turned:
        slot = axis.axes.bbox.width / len(texts)
        words = [word for text in texts for word in text.get_text().replace("-", "- ").split()]
        fits = max(map(len, words)) <= slot / max(
            box.width / len(text.get_text()) for box, text in zip(boxes, texts, strict=True)
        )
        if fits and sum(_wrapped(text, 0, 0, slot - 3) for text in texts) > 0:
            _set_ticks(axis, texts)
        else:
            axis.axes.tick_params("x", labelrotation=90)
        return 1.0
    _set_ticks(axis, texts[::2])
    return 0.01


def _set_ticks(axis: XAxis | YAxis, texts: Sequence[Text]) -> None:
    at = [text.get_position()[axis.axis_name == "y"] for text in texts]
    axis.set_ticks(at, [text.get_text() for text in texts])


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


class PlotMenu:
    """The plots of one result, one method each; its repr and HTML list them."""

    _result: Any

    def _plots(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_")]

    def _cells(self) -> Cells:
        heads = {name: (inspect.getdoc(getattr(self, name)) or "").partition("\n")[0] for name in self._plots()}
        return [["plot", "shows"], *([name, text.partition(";")[0]] for name, text in heads.items())]

    def _repr_html_(self) -> str:
        return html_page(repr(self)[1:-1], self._cells())

    def __repr__(self) -> str:
        return f"<plots of {self._result.name}: {', '.join(self._plots())}>"
