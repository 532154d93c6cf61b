"""The parser of a command: its help, and one sentence for each wrong argument."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import cleandoc
from shutil import get_terminal_size
from typing import Any, NoReturn, TypeAlias

from simmodel.commands import MODULES, others
from simmodel.commands.values import DECLARED, limit, one_of, output, source

__all__ = ["NOTES", "ActionParser", "CommandParser", "command_parser"]

Run: TypeAlias = Callable[[argparse.Namespace], int | None]
_REWORDED = {
    "the following arguments are required: ": "missing ",
    "expected one argument": "missing value",
    "expected at least one argument": "missing value",
}
NOTES = {
    "TIME": "TIME is in seconds or has a unit: 90min, 12h, 2d.",
    "NAME=N": (
        "Files beyond a limit are refused: size (2GB after decompression), depth (100 levels of nesting), "
        "digits (300 of a number), count (10000000 nodes, jobs or tasks)."
    ),
    "[-q]": "The output file - is standard output; the summary then goes to standard error.",
}
"""What the help says about arguments that are in use."""


class CommandParser(argparse.ArgumentParser):
    """An :class:`argparse.ArgumentParser` whose errors are one sentence, and which suggests the nearest option."""

    def __init__(self, name: str, description: str) -> None:
        paragraphs = [_filled(each) for each in cleandoc(description).split("\n\n")]
        super().__init__(
            prog=f"simmodel {name}",
            description="\n\n".join(paragraphs),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def add_limits(self) -> None:
        """Add ``--limit`` if an argument names files to read; :func:`simmodel.cli.main` sets the limits."""
        if any(action.type is source for action in self._actions):
            self.add_argument(
                "--limit", type=limit, action="append", default=[], metavar="NAME=N", help="raise a limit of reading"
            )

    @property
    def arguments(self) -> tuple[argparse.Action, ...]:
        """All its arguments and options."""
        return tuple(self._actions)

    def end_with(self, examples: Sequence[str]) -> None:
        """Let the help end with notes on the arguments in use, and with examples."""
        usage = self.format_usage()
        notes = [_filled(note) for argument, note in NOTES.items() if argument in usage]
        title = "example:" if len(examples) == 1 else "examples:"
        self.epilog = "\n".join([*notes, "", title, *map(_example, examples)]).lstrip("\n")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options; raise ``SystemExit`` after the help, or with status 2 after an error.

        Raises
        ------
        InputError
            if an output cannot be written, or is an input of the command or another output
        """
        self._refuse_unknown_options(words)
        options, extra = self.parse_known_args(words)
        if extra:
            self.error(f"unexpected argument {extra[0]!r}")
        if any(action.type is output for action in self._actions):
            from simmodel.commands.outputs import check_outputs

            check_outputs(self._actions, options)
        return options

    def _refuse_unknown_options(self, words: Sequence[str]) -> None:
        """Report an unknown option before a missing one: it may be the missing one, misspelled."""
        known = self._option_string_actions
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if not re.match(r"-[^\d.]", name) or " " in name or name in known:
                continue
            if name.startswith("--") or name[:2] not in known:  # -oFILE is -o FILE
                from simmodel.foundation.errors import unknown

                self.error(str(unknown("option", name, known)))

    def error(self, message: str) -> NoReturn:
        """Print one sentence and exit with status 2."""
        sentence = message.removeprefix("argument ")
        for old, new in _REWORDED.items():
            sentence = sentence.replace(old, new)
        text = f"{self.prog}: {sentence} (see {self.prog} --help)"
        self.exit(2, f"{_filled(text, '  ') if sys.stderr.isatty() else text}\n")


class ActionParser(CommandParser):
    """The parser of a command whose first word is an action: each is declared like a command, in a module of its own.

    ``module`` has the description as its docstring, ``EXAMPLES``, and ``ACTIONS``: by name, what the action does in one
    line, and the module that declares it.
    """

    def __init__(self, name: str, module: Any) -> None:
        super().__init__(name, module.__doc__ or name)
        self._name = name
        self._actions_of: Mapping[str, tuple[str, str]] = module.ACTIONS
        self.add_argument("action", type=one_of(tuple(self._actions_of), "action"), metavar="ACTION", help="see below")
        width = max(map(len, self._actions_of))
        below = " " * (width + 4)
        lines = [_filled(f"  {name:<{width}}  {line}", below) for name, (line, _) in self._actions_of.items()]
        self.end_with(module.EXAMPLES)
        help_of_one = f"'simmodel {name} ACTION --help' shows the options of an action."
        self.epilog = "\n".join(["actions:", *lines, "", help_of_one, "", self.epilog or ""])

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options of the action, with the function that runs it."""
        if not words or words[0] not in self._actions_of:
            super().read(words[:1])
        run, parser = self.action(words[0])
        options = parser.read(words[1:])
        options.run = run
        return options

    def action(self, name: str) -> tuple[Run, CommandParser]:
        """Return the function that runs an action, and its parser."""
        import_module(self._actions_of[name][1])
        return _declared(f"{self._name} {name}")

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions, in the order of the help."""
        return tuple(self._actions_of)


def _run_action(options: argparse.Namespace) -> int | None:
    status: int | None = options.run(options)
    return status


def _filled(text: str, below: str = "") -> str:
    width = min(get_terminal_size().columns - 2, 100)
    return textwrap.fill(text, width, subsequent_indent=below, break_on_hyphens=False)


def _example(line: str) -> str:
    """Return an example as a line of the help, on a terminal as lines that a shell reads as one."""
    most = get_terminal_size().columns - 10 if sys.stdout.isatty() else len(line)
    lines = [""]
    for words in re.split(r"(?= --)", line):
        lines += [] if len(lines[-1]) + len(words) <= most else [""]
        lines[-1] += words
    return "  " + " \\\n     ".join(lines)


def _declared(name: str) -> tuple[Run, CommandParser]:
    found = DECLARED[name]
    parser = CommandParser(name, found.description)
    found.add(parser)
    parser.add_limits()
    parser.end_with(found.examples)
    return found.run, parser


def command_parser(name: str) -> tuple[Run, CommandParser]:
    """Return the function that runs a command, or its action, and its parser; a result is an exit status other than 0.

    Raises
    ------
    InputError
        a command of another package cannot be imported, or its module declares none of this name

    >>> command_parser("list")[1].read(["policies"]).kind
    'policies'
    """
    if name in MODULES:
        import_module(MODULES[name])
        return _declared(name)
    from simmodel.foundation.errors import InputError

    name, _, action = name.partition(" ")
    path, place = others()[name], f"command {name!r}"
    try:
        module = import_module(path)
    except Exception as error:  # of another package: any
        raise InputError(f"cannot import {path}: {type(error).__name__}: {error}", place=place) from error
    if hasattr(module, "ACTIONS"):
        parser = ActionParser(name, module)
        return parser.action(action) if action else (_run_action, parser)
    if name not in DECLARED:
        raise InputError(f"{path} declares no such command", place=place)
    return _declared(name)
