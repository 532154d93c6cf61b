"""The output of a command: its files, standard output as one of them, its summary, and its progress bar."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from simmodel.commands.values import Declared, argument, arguments, group, number, output, source
from simmodel.foundation.errors import InputError, missing_extra
from simmodel.foundation.loading import files_named_in
from simmodel.foundation.writing import STDOUT, check_output, holds_parquet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.runs.simulation import Simulation

__all__ = [
    "DISPLAY",
    "PROGRESS",
    "QUIET",
    "answer",
    "check_outputs",
    "database",
    "document",
    "files",
    "fitted",
    "live",
    "log_name",
    "needs",
    "on_terminal",
    "page",
    "picture",
    "plot",
    "table",
    "watched",
    "write_and_say",
]


LASTING = 1.0
"""Seconds after which a bar appears that was not requested."""

QUIET = argument("-q --quiet", "print neither summary nor progress bar")

DISPLAY = arguments(
    argument(
        "--progress",
        "show a progress bar (default: in a terminal, if the run takes longer than a second)",
        action=argparse.BooleanOptionalAction,
        default=None,
    ),
    QUIET,
)
"""The options of the terminal."""

PROGRESS = group("display", DISPLAY)


@contextmanager
def on_terminal(options: argparse.Namespace) -> Iterator[None]:
    """Fold tables and wrap lines at the width of the terminal, if texts go to one, and settle the progress bar."""
    from shutil import get_terminal_size

    from simmodel.foundation import WIDTH

    token = WIDTH.set(get_terminal_size().columns if _stream(options).isatty() else None)
    try:
        with _bar_settled(options):
            yield
    finally:
        WIDTH.reset(token)


@contextmanager
def _bar_settled(options: argparse.Namespace) -> Iterator[None]:
    """Set ``options.progress`` to whether the run shows a bar, which appears late if it was not requested."""
    wanted: bool | None = getattr(options, "progress", False)
    if wanted is not None:
        yield
        return
    options.progress = not options.quiet and sys.stderr.isatty() and find_spec("tqdm") is not None
    if not options.progress:
        yield
        return
    from simmodel.records.observers import bars_appear_after

    with bars_appear_after(LASTING):
        yield


def files(*declared: Declared) -> Declared:
    """Declare the files that a command writes."""
    return group("output files", *declared)


def database(others: str = "") -> Declared:
    """Declare ``--db``, and ``--force``, which lets it (and ``others``) replace any database."""
    return arguments(
        argument("--db OUT.sqlite", "all tables, as an SQLite database", output),
        argument("--force", f"let --db{others} replace a database of another program"),
    )


def document(text: str) -> Declared:
    """Declare ``--json``: the whole answer, on standard output if the option stands alone.

    Times that this computer took stand in its part ``timing``: the rest of two runs of one command is the same.
    """
    return argument("--json OUT.json", f"{text} (alone: on standard output)", output, nargs="?", const=STDOUT)


def table(text: str, name: str = "table") -> Declared:
    """Declare ``--csv``: the main table of the answer, on standard output if the option stands alone.

    ``name`` is its other name, under which commands find it.
    """
    names = " ".join(f"--{each}" for each in dict.fromkeys((name, "csv")))
    return argument(f"{names} OUT.csv", f"{text} (alone: on standard output)", output, nargs="?", const=STDOUT)


def plot(text: str, usual: str = "plot.png") -> Declared:
    """Declare ``--plot``, which may stand alone: the picture then has its usual name."""
    said = f"{text}, as png, pdf or svg (default: {usual})"
    return argument("--plot OUT.png", said, output, nargs="?", const=Path(usual))


def page(text: str = "the run") -> Declared:
    """Declare ``--html``."""
    return argument("--html OUT.html", f"{text} as one page to zoom into and to search, without anything else", output)


def live() -> Declared:
    """Declare ``--live``."""
    port = number("a port from 0 to 65535", lambda value: 0 <= value <= 65535 and value == int(value))
    text = "serve the page of the run on this machine while it lasts, on a terminal to Ctrl-C (default: any free port)"
    return argument("--live [PORT]", text, port, nargs="?", const=0.0)


@contextmanager
def watched(simulation: Simulation, port: float | None) -> Iterator[None]:
    """Serve a run, if it shall be, and say where: while the block lasts, and on a terminal then on until Ctrl-C."""
    if port is None:
        yield
        return
    with simulation.serve(int(port)) as view:
        print(f"the run is shown at {view.url}", file=sys.stderr, flush=True)
        yield
        if sys.stdin.isatty() and sys.stderr.isatty():  # somebody sees the line and can press the keys
            with suppress(KeyboardInterrupt):
                print(f"the run is over; its page is served until Ctrl-C at {view.url}", file=sys.stderr, flush=True)
                view.stay()


def log_name(log: str) -> str:
    """Return the name of a file's run: that of the file, without folder and ending; of drawn work, how it is drawn.

    >>> log_name("logs/kth.swf.gz"), log_name("-")
    ('kth', 'standard input')
    """
    if log == "-":
        return "standard input"
    from simmodel.catalogue.workloads import is_generator  # imports numpy, which the help does without

    if is_generator(log):
        return log
    name = Path(log).name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


def write_and_say(
    options: argparse.Namespace, said: Sequence[str], indent: str = "  ", **writers: Callable[[Path], object]
) -> None:
    """Write each file that an option names by the writer of its name, and print the text with a line for each file.

    The text is printed even if a file cannot be written, since the run may have taken long. It goes to standard error
    if a file is written to standard output.
    """
    lines = list(said)
    chosen = {kind: path for kind in writers if (path := getattr(options, kind)) is not None}
    try:
        for kind, path in chosen.items():
            writers[kind](path)
            if path is not STDOUT:
                lines.append(f"{indent}{kind} written to {path}")
    finally:
        if not options.quiet:
            print(fitted("\n".join(lines)), file=_stream(options))


def _stream(options: argparse.Namespace) -> TextIO:
    """Return where texts go: to standard error if a file is written to standard output."""
    return sys.stderr if any(value is STDOUT for value in vars(options).values()) else sys.stdout


def fitted(text: str, width: int | None = None) -> str:
    """Return a text whose lines are no longer than a width; default: that of the terminal that it is written to.

    >>> print(fitted("  a line that is longer", 12))
      a line
        that is
        longer
    """
    from simmodel.foundation import WIDTH

    width = WIDTH.get() if width is None else width
    if width is None or not any(len(line) > width for line in text.split("\n")):
        return text
    from textwrap import fill

    lines = []
    for line in text.split("\n"):
        below = " " * (len(line) - len(line.lstrip()) + 2)
        how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": below}
        lines.append(line if len(line) <= width else fill(line, width, **how))
    return "\n".join(lines)


def answer(title: str, **parts: Iterable[object]) -> Callable[[Path], object]:
    """Return a function that writes an answer as JSON: its title, and rows or texts by name."""

    def write(path: Path) -> None:
        from simmodel.results.stores import json_text

        json_text({"title": title, **{name: list(rows) for name, rows in parts.items()}}, path)

    return write


def picture(draw: Callable[[], Figure]) -> Callable[[Path], None]:
    """Return a function that draws a figure and writes it to a path, in the format that the ending names."""

    def write(path: Path) -> None:
        from simmodel.view.style import save_figure

        save_figure(draw(), path)

    return write


def check_outputs(actions: Iterable[argparse.Action], options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, or that the command reads, before the simulation starts.

    The types of a command's arguments distinguish files that it writes from those that it reads:
    :func:`~simmodel.commands.values.output` and :func:`~simmodel.commands.values.source`.
    """
    told = {action: value for action in actions if (value := getattr(options, action.dest, None)) is not None}
    given = {action.dest: path for action, path in told.items() if action.type is output}
    metavars = {action.dest: str(action.metavar) for action in told}
    to_stdout = [name for name, path in given.items() if path is STDOUT]
    if len(to_stdout) > 1:
        raise InputError(f"--{to_stdout[0]} - and --{to_stdout[1]} - exclude each other")
    for name in ("db", "stream"):
        if name in to_stdout:
            raise InputError("must be a file, got standard output", place=f"--{name}")
    inputs = (
        [each for action, value in told.items() if action.type is source for each in _files(value)] if given else []
    )
    replaced: dict[Path, str] = {}
    for name, path in given.items():
        parquet = name == "stream" and holds_parquet(path)
        forced = name in ("db", "stream") and options.force
        target = path.resolve() if parquet else check_output(path, force=forced)
        if target is not None:
            if target in replaced:
                raise InputError(f"--{replaced[target]} and --{name} must be different files", source=str(path))
            replaced[target] = name
            if any(_holds(each, target) for each in inputs):
                raise InputError(f"--{name} must be another file than an input", source=str(path))
        ending = Path(metavars[name]).suffix  # OUT.html says what is written
        if name != "plot" and not parquet:
            check_output(path, *([ending] if ending else [".sqlite", ".parquet"]), force=forced)
        if name == "plot":
            needs("matplotlib", "--plot")
            if path is not STDOUT:
                _check_picture(path)
    if getattr(options, "progress", False):
        needs("tqdm", "--progress")


def _files(value: object) -> Iterator[Path]:
    """Yield the files and folders that the value of an argument names: a list, or parts of a text.

    A configuration also names files, from its folder or from the working folder. A file that does not exist may be made
    by the command, as a study is.
    """
    if isinstance(value, list):
        for each in value:
            yield from _files(each)
        return
    text = str(value)
    for part in {text, *re.split("[,=]", text)}:
        with suppress(OSError, ValueError):  # a text that no file can be called
            path = Path(part.strip())
            if part and (path.exists() or path.suffix):
                yield path
            yield from files_named_in(path)


def _holds(given: Path, target: Path) -> bool:
    """Return whether an input is this file, or the folder that it is in."""
    if not given.exists() or not target.exists():
        return given.resolve() in (target, *([target.parent] if given.is_dir() else []))
    return given.samefile(target) or (given.is_dir() and given.samefile(target.parent))


def _check_picture(path: Path) -> None:
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise InputError(f"must be a picture (.{', .'.join(kinds)}), got {path.suffix!r}", source=str(path))


def needs(module: str, option: str) -> None:
    """Refuse an option whose package is not installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(str(missing_extra(module)), place=option)
