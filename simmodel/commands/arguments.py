"""Commands as they are declared: a function, its arguments as values, and examples."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any, Protocol

import attrs

from simmodel.commands.values import one_of

__all__ = ["DECLARED", "Command", "Declared", "TakesArguments", "argument", "arguments", "command", "group"]


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
