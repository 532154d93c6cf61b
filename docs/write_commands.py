"""Writes the pages of the commands from their parsers: python docs/write_commands.py.

They are docs/reference/commands.md and commands_site.md. A test holds the pages equal to the parsers.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from textwrap import fill

from simmodel.commands import COMMANDS, others
from simmodel.commands.parser import NOTES, ActionParser, CommandParser, command_parser
from simmodel.commands.values import DECLARED

MANY = 4
"""An option that reads alike in so many commands, and in most that have it, stands in the table of such options."""

PAGES = {
    "commands": (
        "Commands",
        "Here is every command of `simmodel` with its options, their defaults and examples, as `simmodel help COMMAND` "
        "prints them. The commands for Slurm and the twin have [a page of their own](commands_site.md).",
    ),
    "commands_site": (
        "Commands for Slurm and the twin",
        "Here is every action of `simmodel slurm` and `simmodel twin` with its options, their defaults and examples, "
        "as `simmodel slurm ACTION --help` prints them. The other commands are [on one page](commands.md).",
    ),
}
"""The title of each page, and how it begins."""
BELOW = "Upper case stands for a value, brackets for a part that may be left out. " + " ".join(NOTES.values())


def filled(text: str) -> str:
    """Return a paragraph in lines."""
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def parsers(page: str) -> dict[str, CommandParser]:
    """Return the parsers of the commands of a page; an action has two words."""
    found: dict[str, CommandParser] = {}
    for name in (
        COMMANDS
        if page == "commands"
        else [name for name, module in others().items() if module.startswith("simmodel_site")]
    ):
        parser = command_parser(name)[1]
        if isinstance(parser, ActionParser):
            found |= {f"{name} {action}": parser.action(action)[1] for action in parser.actions}
        else:
            found[name] = parser
    return found


def spelling(action: argparse.Action) -> str:
    """Return how an argument is written, with its value."""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest).strip("[]")
    value = {"?": f"[{value}]", "+": f"{value} ...", "*": f"[{value} ...]"}.get(str(action.nargs), value)
    return " ".join(filter(None, [", ".join(action.option_strings), value]))


def code(found: re.Match[str]) -> str:
    """Return a command or an option in a text as code."""
    return f"`{found[1] or found[2]}`"


def meaning(action: argparse.Action) -> str:
    """Return what an argument does, and its default unless the text says it."""
    text = re.sub(r"'(simmodel [^']+)'|(?<![\w-])(--[a-z][\w-]*)", code, (action.help or "").replace("%%", "%"))
    usual = action.default
    if usual not in (None, False, True, argparse.SUPPRESS, []) and "default" not in text:
        text += f" (default: {usual})"
    return text


def row(action: argparse.Action) -> str:
    """Return the line of an argument in a table."""
    cells = f"`{spelling(action)}`", meaning(action)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def groups(parser: CommandParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Yield title and arguments of each group of a parser, without ``--help``."""
    for group in parser._action_groups:
        found = [action for action in group._group_actions if action.dest != "help"]
        if found:
            yield group.title or "", found


def section(name: str, parser: CommandParser, common: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a command: what it does, how it is called, examples, and its options by group."""
    places = [spelling(action) for action in parser.arguments if not action.option_strings]
    yield f"\n## {name}\n\n`{' '.join(['simmodel', name, *places, '[OPTIONS]'])}`\n"
    for paragraph in cleandoc(DECLARED[name].description).split("\n\n"):
        yield filled(paragraph) + "\n"
    yield "\n".join(["```none", *DECLARED[name].examples, "```"])
    rows, elsewhere = [], []
    for title, found in groups(parser):
        own = [row(action) for action in found if row(action) not in common]
        elsewhere += [common[row(action)] for action in found if row(action) in common]
        if own and title not in ("positional arguments", "options"):
            rows.append(f"| **{title}** | |")
        rows += own
    if rows:
        yield "\n".join(["\n| argument | meaning |", "|---|---|", *rows])
    if elsewhere:
        link = "[options of many commands](#options-of-many-commands)"
        yield "\n" + filled(f"And {link}: {', '.join(f'`{each}`' for each in elsewhere)}.")


def page(name: str) -> str:
    """Return the text of a page."""
    title, begin = PAGES[name]
    found = parsers(name)
    actions = [
        each for parser in found.values() for _, group in groups(parser) for each in group if each.option_strings
    ]
    counts = Counter(row(each) for each in actions)
    having = Counter(each.option_strings[0] for each in actions)
    common = {
        row(each): each.option_strings[0]
        for each in actions
        if counts[row(each)] >= max(MANY, having[each.option_strings[0]] / 2)
    }
    lines = [f"# {title}\n", filled(begin), "\n## Options of many commands\n", filled(BELOW)]
    lines += ["\n| argument | meaning |", "|---|---|", *common]
    lines += [line for command, parser in found.items() for line in section(command, parser, common)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for each in PAGES:
        Path(__file__).with_name("reference").joinpath(f"{each}.md").write_text(page(each), "utf-8")
