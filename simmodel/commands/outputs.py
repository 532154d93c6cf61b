"""The output of a command: which files can be written, standard output as one of them, and the summary."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.values import output
from simmodel.errors import InputError, missing_extra
from simmodel.writing import STDOUT, check_output, holds_parquet, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simmodel.commands.options import TakesArguments

__all__ = ["add_database", "add_output", "add_picture", "check_outputs", "label", "needs", "picture", "write_and_say"]


def add_output(parser: TakesArguments, name: str, metavar: str, text: str) -> None:
    """Add the option of a file to write."""
    parser.add_argument(f"--{name}", type=output, metavar=metavar, help=text)


INPUTS = frozenset(
    {
        *("log", "logs", "workload", "workloads", "platform", "platforms", "clusters", "snapshot", "config"),
        *("arrivals", "model", "sites", "connections", "jobs", "audit", "told", "study"),
    }
)
"""The arguments that name files to read, in all commands."""


def add_database(parser: TakesArguments, others: str = "") -> None:
    """Add ``--db``, and ``--force``, which lets it (and ``others``) replace any database."""
    add_output(parser, "db", "OUT.sqlite", "all tables, as an SQLite database")
    parser.add_argument("--force", action="store_true", help=f"let --db{others} replace a database of another program")


def add_picture(parser: TakesArguments, text: str, usual: str | None = None) -> None:
    """Add ``--plot``; with a usual name, the option may stand alone."""
    alone = {} if usual is None else {"nargs": "?", "const": Path(usual)}
    ending = "" if usual is None else f" (default: {usual})"
    parser.add_argument("--plot", type=output, metavar="OUT.png", help=f"{text}, as png, pdf or svg{ending}", **alone)


def label(log: str) -> str:
    """Return the name of a file's run: that of the file, without folder and ending."""
    name = Path(log).name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


def write_and_say(
    said: Sequence[str],
    options: argparse.Namespace,
    writers: Mapping[str, Callable[[Path], object]],
    indent: str = "  ",
) -> None:
    """Write each file that an option names, and print the text with a line for each file.

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
            print("\n".join(lines), file=sys.stderr if any(path is STDOUT for path in chosen.values()) else sys.stdout)


def picture(draw: Callable[[], Figure]) -> Callable[[Path], None]:
    """Return a function that draws a figure and writes it to a path, in the format that the ending names."""

    def write(path: Path) -> None:
        figure = draw()
        kind = "png" if path is STDOUT else path.suffix.lower().removeprefix(".")
        with replacing(path) as part:
            figure.savefig(part, format=kind, dpi=120)

    return write


def check_outputs(options: argparse.Namespace, *names: str) -> None:
    """Refuse files that cannot be written, or that the command reads, before the simulation starts."""
    given = {name: path for name in names if (path := getattr(options, name)) is not None}
    to_stdout = [name for name, path in given.items() if path is STDOUT]
    if len(to_stdout) > 1:
        raise InputError(f"--{to_stdout[0]} - and --{to_stdout[1]} - exclude each other")
    for name in ("db", "stream"):
        if name in to_stdout:
            raise InputError("must be a file, got standard output", place=f"--{name}")
    inputs = [each for name in INPUTS.difference(names) for each in _files(getattr(options, name, None))]
    replaced: dict[Path, str] = {}
    for name, path in given.items():
        if name == "stream" and holds_parquet(path):
            continue
        target = check_output(path, force=name in ("db", "stream") and options.force)
        if target is not None:
            if target in replaced:
                raise InputError(f"--{replaced[target]} and --{name} must be different files", source=str(path))
            replaced[target] = name
            if target.exists() and any(_holds(each, target) for each in inputs):
                raise InputError(f"--{name} must be another file than an input", source=str(path))
        if name == "plot":
            needs("matplotlib", "--plot")
            if path is not STDOUT:
                _check_picture(path)
    if getattr(options, "progress", False):
        needs("tqdm", "--progress")


def _files(value: object) -> Iterator[Path]:
    """Yield the files and folders that the value of an argument names: a path, a list, or parts of a text."""
    if isinstance(value, list):
        for each in value:
            yield from _files(each)
    elif isinstance(value, str | Path):
        text = str(value)
        for part in {text, *re.split("[,=]", text)}:
            with suppress(OSError, ValueError):  # a text that no file can be called
                if part and (path := Path(part.strip())).exists():
                    yield path


def _holds(given: Path, file: Path) -> bool:
    """Return whether an input is this file, or the folder that it is in."""
    return given.samefile(file.parent if given.is_dir() else file)


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
