"""The command line: replay a log, compare policies, generate a workload, list bundled platforms.

Commands read arguments, call the Python interface and print. On invalid input a command prints one sentence and exits
with status 2. Each command is a module of :mod:`simmodel.commands`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import simmodel.form
from simmodel import __version__
from simmodel.commands import COMMANDS, others

__all__ = ["main"]

BAD_INPUT, INTERRUPTED = 2, 130

_NAMES = [*COMMANDS]
START = f"""\
simmodel {__version__}: simulate computing systems

See five things in a minute:
  simmodel demo
Replay a week of jobs and plot it:
  simmodel batch lublin-128-week --plot overview.png
Compare policies on the same jobs:
  simmodel compare lublin-128-week --policies fcfs,easy,sjf+easy

commands: {", ".join(_NAMES[:7])},
  {", ".join(_NAMES[7:14])},
  {", ".join(_NAMES[14:])}
'simmodel help' describes them, 'simmodel help COMMAND' the options of one."""

HELP = """\
usage: simmodel COMMAND ...

Simulate computing systems: batch clusters, heterogeneous machines and brokers.

commands:
{commands}

options:
  -h, --help  show this help
  --version   show the version

examples:
  simmodel batch lublin-128-week --plot overview.png
  simmodel list policies

'simmodel help COMMAND' shows the options of a command, with examples."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 if the input is invalid, or 130 if it is interrupted.

    ``verify`` returns 1 if the schedule is impossible or departs from the policy.

    Parameters
    ----------
    arguments
        of the command line; default: those of this process

    >>> main(["batch", "probe-4", "--policy", "fifo"])
    2
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        reason = error.strerror or str(error)
        return _complain(f"{error.filename}: {reason}" if error.filename else reason)
    except Exception as error:
        from simmodel.foundation.errors import BadLine, NoProcessors, SimmodelError  # not needed for the help: attrs

        if not isinstance(error, SimmodelError):
            from simmodel.foundation.tracebacks import shortened

            with shortened:
                raise
        way_out: dict[type, str] = {
            BadLine: " (--skip-bad passes over such lines)",
            NoProcessors: " (--processors N, or --platform)",
        }
        return _complain(f"{error}{way_out.get(type(error), '')}")
    return status


def _run(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ANSWERS:
        print(ANSWERS[words[0]]() if words else START)
        return 0
    name, *arguments = words
    if name not in COMMANDS and name not in others():
        from simmodel.foundation.errors import unknown
        from simmodel.foundation.packages import unseen

        error = unknown("option", name, ANSWERS)
        if not name.startswith("-"):
            error = unknown("command", name, [*COMMANDS, *others()])
            error.message += unseen()
        raise error
    from simmodel.commands.parser import command_parser

    run, parser = command_parser(name)
    try:
        options = parser.read(arguments)
    except SystemExit as end:  # of argparse: after the help, or an error
        return int(end.code or 0)
    from simmodel.commands.outputs import on_terminal
    from simmodel.foundation.errors import InputError
    from simmodel.foundation.loading import limits, reading

    if getattr(options, "trust", False):
        from simmodel.commands.shared import see_working_folder

        see_working_folder()
    how = {name: getattr(options, name) for name in ("skip_bad", "timezone", "repair") if hasattr(options, name)}
    with reading(**how), limits(**dict(getattr(options, "limit", ()))), on_terminal(options):
        try:
            return run(options) or 0
        except InputError as error:
            if "repair" in how:
                error.message = error.message.replace("repair=True", "--repair")
            raise


def _help() -> str:
    """Return the help, with the names of the commands that other packages add; nothing of these is imported."""
    lines = {**COMMANDS, **{name: f"from {module.partition('.')[0]}" for name, module in others().items()}}
    width = max(map(len, lines))
    return HELP.format(commands="\n".join(f"  {name:<{width}}  {line}" for name, line in lines.items()))


ANSWERS: dict[str, Callable[[], str]] = {
    "-h": _help,
    "--help": _help,
    "--version": lambda: f"simmodel {__version__} ({simmodel.form.form()})",
}


def _complain(sentence: str) -> int:
    text = f"simmodel: {sentence}"
    if sys.stderr.isatty():
        from shutil import get_terminal_size
        from textwrap import fill

        text = fill(text, get_terminal_size().columns, subsequent_indent="  ", break_on_hyphens=False)
    print(text, file=sys.stderr)
    return BAD_INPUT
