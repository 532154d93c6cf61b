"""The output of a command: which files can be written, standard output as one of them, and the summary."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from simmodel.commands.values import STDOUT, output
from simmodel.errors import InputError, missing_extra

if TYPE_CHECKING:
    from simmodel.commands.options import TakesArguments

__all__ = ["add_output", "add_picture", "check_outputs", "label", "needs", "write_and_say"]

_WRITTEN_AS = {"plot": ".png"}


def add_output(parser: TakesArguments, name: str, metavar: str, text: str) -> None:
    """Add the option of a file to write."""
    parser.add_argument(f"--{name}", type=output, metavar=metavar, help=text)


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
            if path is STDOUT:
                _write_to_stdout(writers[kind], kind)
            else:
                writers[kind](path)
                lines.append(f"{indent}{kind} written to {path}")
    finally:
        if not options.quiet:
            print("\n".join(lines), file=sys.stderr if any(path is STDOUT for path in chosen.values()) else sys.stdout)


def _write_to_stdout(write: Callable[[Path], object], kind: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{kind}{_WRITTEN_AS.get(kind, '')}")
        write(path)
        content = path.read_bytes()
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:  # a text stream in its place
        sys.stdout.write(content.decode())


def check_outputs(options: argparse.Namespace, *names: str) -> None:
    """Refuse files that cannot be written, before the simulation starts."""
    given = [(name, path) for name in names if (path := getattr(options, name)) is not None]
    to_stdout = [name for name, path in given if path is STDOUT]
    if len(to_stdout) > 1:
        raise InputError(f"--{to_stdout[0]} - and --{to_stdout[1]} - exclude each other")
    if "db" in to_stdout:
        raise InputError("must be a file, got standard output", place="--db")
    for name, path in given:
        if path is not STDOUT:
            _check_file(path, replaced=name == "db")
        if name == "plot":
            needs("matplotlib", "--plot")
            if path is not STDOUT:
                _check_picture(path)
    if getattr(options, "progress", False):
        needs("tqdm", "--progress")


def _check_file(path: Path, replaced: bool) -> None:
    """Check that a file can be written; a device cannot be ``replaced``."""
    if path.is_dir() or (replaced and path.exists() and not path.is_file()):
        raise InputError("must be a file to write, got a folder or a device", source=str(path))
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"cannot be written: no folder {folder}", source=str(path))
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError("cannot be written: permission denied", source=str(path))


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
