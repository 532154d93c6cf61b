"""Commands as they are declared (a function, its arguments, examples), and the readers of the arguments' values."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable
from math import inf, isfinite
from pathlib import Path
from stat import S_ISCHR
from typing import Any, Protocol

import attrs

from simmodel.foundation.writing import STDOUT

__all__ = [
    "DECLARED",
    "Command",
    "Declared",
    "OneOf",
    "TakesArguments",
    "argument",
    "arguments",
    "at_least_one",
    "command",
    "group",
    "limit",
    "number",
    "one_of",
    "output",
    "positive",
    "seconds",
    "seed",
    "share",
    "source",
    "whole",
]


def output(text: str) -> Path:
    """Read the path of a file to write; ``-``, and a path of the file that standard output is, are standard output.

    >>> output("-") is STDOUT, output("./-") is STDOUT
    (True, False)
    """
    return STDOUT if text == "-" or _is_stdout(text) else Path(text)


def source(text: str) -> str:
    """Read the name of an input: a file, or bundled data; no output replaces such a file.

    >>> source("log.swf")
    'log.swf'
    """
    return text


def _is_stdout(path: str) -> bool:
    """Return whether a path is the file or pipe that standard output goes to, such as ``/dev/stdout``."""
    try:
        found = os.stat(path)
        return not S_ISCHR(found.st_mode) and os.path.samestat(found, os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # no such file, or standard output is none
        return False


def seconds(text: str) -> float:
    """Read a time > 0, in seconds or with a unit.

    >>> seconds("600"), seconds("90min"), seconds("2d")
    (600.0, 5400.0, 172800.0)
    """
    from simmodel.foundation.errors import InputError
    from simmodel.foundation.units import parse_quantity

    try:
        value = parse_quantity(text, "s")
    except InputError:
        value = 0.0
    if value <= 0:
        raise ArgumentTypeError(f"must be a time > 0 in seconds, or such as 90min, 12h or 2d, got {text!r}")
    return value


def limit(text: str) -> tuple[str, float]:
    """Read a limit of reading (see :class:`simmodel.foundation.loading.Limits`), a size with a unit or not.

    >>> limit("size=16GB"), limit("count=1e8")
    (('size', 16000000000.0), ('count', 100000000.0))
    """
    from simmodel.foundation.errors import InputError
    from simmodel.foundation.loading import limits
    from simmodel.foundation.units import parse_quantity

    name, sign, value = text.partition("=")
    if not sign:
        raise ArgumentTypeError(f"must be NAME=N, such as size=16GB, got {text!r}")
    try:
        found = parse_quantity(value, "B") if name == "size" else positive(value)
        with limits(**{name: found}):
            return name, found
    except InputError as error:
        raise ArgumentTypeError(str(error)) from None


def _whole_from(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise ArgumentTypeError(f"must be a whole number >= {least}, got {text!r}")
        return int(text)

    return read


seed = _whole_from(0)
at_least_one = _whole_from(1)


def whole(text: str) -> int:
    """Read a whole number.

    >>> whole("-3")
    -3
    """
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def number(accepted: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    """Return a reader of finite numbers for which a condition holds.

    >>> number("a number > 0", lambda value: value > 0)("2.5")
    2.5
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = inf
        if not (isfinite(value) and holds(value)):
            raise ArgumentTypeError(f"must be {accepted}, got {text!r}")
        return value

    return read


positive = number("a number > 0", lambda value: value > 0)
share = number("a number between 0 and 1", lambda value: 0 < value < 1)


class OneOf:
    """A reader of one of these names, in which a shell can complete them."""

    def __init__(self, names: Iterable[str], kind: str = "value") -> None:
        self.names = tuple(names)
        self.kind = kind

    def __call__(self, text: str) -> str:
        if text not in self.names:
            from simmodel.foundation.errors import unknown

            raise ArgumentTypeError(str(unknown(self.kind, text, self.names)))
        return text


def one_of(known: Iterable[str], kind: str = "value") -> OneOf:
    """Return a reader of one of these names.

    >>> one_of(["none", "easy"])("easy")
    'easy'
    """
    return OneOf(known, kind)


class TakesArguments(Protocol):
    """A parser of arguments, or a group of one."""

    def add_argument(self, *names: str, **how: Any) -> object:
        """Add an argument."""
        ...

    def add_argument_group(self, title: str, /) -> TakesArguments:
        """Add a group of arguments with a title of its own in the help."""
        ...


Declared = Callable[[TakesArguments], object]
"""An argument, or several: a function that adds them to a parser or a group."""

Run = Callable[[Namespace], int | None]


def argument(names: str, text: str, read: Callable[[str], object] | None = None, **how: Any) -> Declared:
    """Declare an argument by its names and that of its value, its help, and the reader of its value.

    An option without a value is a switch; ``{A,B}`` as the name of a value is read as one of these. Any other keyword
    is that of ``argparse``.

    >>> from argparse import ArgumentParser
    >>> parser = ArgumentParser()
    >>> arguments(argument("log LOG", "a file"), argument("-q --quiet", ""), argument("--by {a,b}", ""))(parser)
    >>> parser.parse_args(["x.swf", "-q", "--by", "b"])
    Namespace(log='x.swf', quiet=True, by='b')
    """
    *first, last = words = names.split()
    if last.startswith("-"):
        return lambda parser: parser.add_argument(*words, help=text, **({"action": "store_true"} | how))
    if last.startswith("{"):
        read = one_of(last.strip("{}").split(","))
    return lambda parser: parser.add_argument(*first, type=read, metavar=last, help=text, **how)


def arguments(*declared: Declared) -> Callable[[TakesArguments], None]:
    """Declare several arguments as one value."""

    def add(parser: TakesArguments) -> None:
        for each in declared:
            each(parser)

    return add


def group(title: str, *declared: Declared) -> Declared:
    """Declare a group of arguments, with its title in the help."""
    return lambda parser: arguments(*declared)(parser.add_argument_group(title))


@attrs.frozen
class Command:
    """A command.

    Parameters
    ----------
    run
        runs it and may return an exit status other than 0
    add
        adds its arguments to a parser
    examples
        the lines that end the help
    description
        the text that begins the help
    """

    run: Run
    add: Declared
    examples: tuple[str, ...]
    description: str


DECLARED: dict[str, Command] = {}
"""The commands of the modules that are imported, by name; an action has two words."""


def command(
    name: str, *declared: Declared, examples: tuple[str, ...], description: str | None = None
) -> Callable[[Run], Run]:
    """Declare the function below as a command with these arguments; default description: its docstring."""

    def declare(run: Run) -> Run:
        DECLARED[name] = Command(run, arguments(*declared), examples, description or run.__doc__ or "")
        return run

    return declare
