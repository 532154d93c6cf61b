"""The commands of the command line that are there: those of the core, and of the packages beside it."""

from importlib.util import find_spec

from simmodel.commands import COMMANDS, others
from simmodel.commands.parser import ActionParser, command_parser

__all__ = ["ACTIONS", "ALL", "SPELLED"]

ALL = [*COMMANDS, *(name for name, module in others().items() if find_spec(module.partition(".")[0]))]
ACTIONS = {name: parser.actions for name in ALL if isinstance(parser := command_parser(name)[1], ActionParser)}
"""The first words of the commands that have some."""
SPELLED = [
    *(name for name in ALL if name not in ACTIONS),
    *(f"{name} {action}" for name, actions in ACTIONS.items() for action in actions),
]
"""Every command that runs something."""
