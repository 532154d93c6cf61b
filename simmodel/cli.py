"""The command line: replay a log, compare policies, generate a workload, list what there is.

It only reads arguments, calls what the package offers in Python as well, and prints. Wrong input ends it with status 2
and one sentence. Each command is a module of :mod:`simmodel.commands`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from simmodel import __version__
from simmodel.commands import add_all
from simmodel.errors import SimmodelError

__all__ = ["main"]

BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit status: 0, or 2 where the input is wrong.

    Parameters
    ----------
    arguments
        of the command line; default: those of this process

    >>> main(["batch", "probe-4", "--policy", "fifo"])
    2
    """
    try:
        options = _parser().parse_args(arguments)
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SimmodelError as error:
        return _complain(str(error))
    except OSError as error:
        said = error.strerror or str(error)
        return _complain(f"{error.filename}: {said}" if error.filename else said)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


def _complain(sentence: str) -> int:
    print(f"simmodel: {sentence}", file=sys.stderr)
    return BAD_INPUT


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with the arguments."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    said = "Simulate computing systems: replay logs of batch systems, and more."
    parser: argparse.ArgumentParser = _Parser(prog="simmodel", description=said)
    parser.add_argument("--version", action="version", version=f"simmodel {__version__}")
    add_all(parser.add_subparsers(title="commands", metavar="COMMAND", required=True))
    return parser
