"""``simmodel completion``: a script by which a shell completes commands, options, and the names of what is bundled."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from simmodel.commands.values import OneOf, argument, command, output, source
from simmodel.foundation.errors import optional_imports

if TYPE_CHECKING:
    from simmodel.commands.parser import CommandParser

__all__ = ["completed", "script"]


@command(
    "completion",
    argument("shell {bash,zsh,fish}", "bash, zsh or fish"),
    examples=("simmodel completion bash",),
)
def run(options: argparse.Namespace) -> None:
    """Print a script by which a shell completes commands, options, and the names of policies, platforms and workloads.

    Write it where a new shell finds it: bash in ~/.local/share/bash-completion/completions/simmodel, zsh in a file
    _simmodel in a folder of $fpath, fish in ~/.config/fish/completions/simmodel.fish; and again after an update.
    """
    print(script(options.shell))


def script(shell: str) -> str:
    """Return the script for a shell.

    Raises
    ------
    MissingExtra
        shtab, which writes the script, is not installed
    """
    with optional_imports():
        import shtab
    return str(shtab.complete(completed(), shell))


def completed() -> argparse.ArgumentParser:
    """Return one parser of all commands and actions, whose arguments say how ``shtab`` completes them."""
    from simmodel.commands import COMMANDS, others
    from simmodel.commands.parser import ActionParser, command_parser

    top = argparse.ArgumentParser(prog="simmodel")
    words = top.add_subparsers()
    names = [*COMMANDS, *others()]
    words.add_parser("help", help="show the options of a command").add_argument("command", choices=names)
    for name in names:
        _, parser = command_parser(name)
        if isinstance(parser, ActionParser):
            actions = words.add_parser(name, help=parser.description).add_subparsers()
            for action in parser.actions:
                _add(actions, action, parser.action(action)[1])
        else:
            _add(words, name, parser)
    return top


def _add(words: Any, name: str, parser: CommandParser) -> None:
    argument: Any
    for argument in parser.arguments:
        if isinstance(argument.type, OneOf):
            argument.choices = argument.type.names
        elif (kind := _kind(argument)) is not None:
            argument.complete = _names(kind)
        elif argument.type in (source, output):
            argument.complete = "file"
    words.add_parser(name, help=parser.description, parents=[parser], add_help=False)


_KINDS = {"broker": "brokers", "clusters": "platforms", "arrivals": "workloads", "predictor": "predictors"}
_KINDS |= dict.fromkeys(("policy", "policies", "order", "backfill_order", "advised"), "policies")


def _kind(action: argparse.Action) -> str | None:
    """Return the list that has the values of an argument, which its help mostly names."""
    named = re.search(r"simmodel list (\w+)", action.help or "")
    return None if action.type is output else named[1] if named else _KINDS.get(action.dest)


def _names(kind: str) -> dict[str, Any]:
    """Return how each shell completes names of a list, also after a comma, and files."""
    from simmodel.commands.list import names_of

    function, names = f"_simmodel_{kind}", " ".join(names_of(kind))
    bash = f'compgen -P "${{1%"${{1##*,}}"}}" -W "{names}" -- "${{1##*,}}"; compgen -f -- "$1"'
    functions = {
        "bash": f"{function}() {{ {bash}; }}",
        "zsh": f"{function}() {{ compset -P '*,'; compadd -S '' -- {names}; _files }}",
        "fish": f"function {function}; __fish_append , {names}; __fish_complete_path (commandline -ct); end",
    }
    return {"bash": function, "zsh": function, "fish": f"({function})", "preamble": functions}
