"""``simmodel twin check``: try the parts of a configuration."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments
from simmodel.commands.shared import TRUST
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin check twin.toml",)


add = arguments(argument("config CONFIG", "the configuration (TOML)", source), TRUST)


def run(options: argparse.Namespace) -> None:
    """Try the parts of a configuration: platform, policies, connections, the files and the port; say what it may do.

    A full report of the source, if it gives one, is taken into a mirror of the platform: what does not fit is told.
    """
    from simmodel.twin.checking import check_config
    from simmodel.twin.config import read_config

    for line in check_config(read_config(options.config, trust=options.trust), trust=options.trust):
        print(line)
