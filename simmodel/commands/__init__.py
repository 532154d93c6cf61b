"""The commands of the command line: one module each.

A module of this folder has a function ``add(commands)`` that adds its parser to the subcommands, and sets
``command=`` to the function that runs it. What it runs is imported when it runs: reading arguments stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["COMMANDS", "add_all"]

COMMANDS = (
    "batch",
    "compare",
    "explore",
    "generate",
    "list",
    "machine",
    "meta",
    "portfolio",
    "whatif",
)
"""The modules of this folder that are commands, in the order in which the help names them."""


def add_all(commands: Commands) -> None:
    """Add the parser of every command."""
    for name in COMMANDS:
        import_module(f"simmodel.commands.{name}").add(commands)
