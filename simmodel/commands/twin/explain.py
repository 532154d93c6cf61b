"""``simmodel twin explain``: why a job waits in a cluster outside."""

from __future__ import annotations

import argparse

from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.shared import add_trust
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin explain twin.toml 4711 --plot",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the action."""
    parser.add_argument("config", type=source, metavar="CONFIG", help="the configuration of the twin (TOML)")
    parser.add_argument("job", metavar="JOB", help="the id of a job that waits or is held")
    parser.add_argument("--policy", metavar="NAME", help="that of the scheduler (default: of the configuration)")
    add_trust(parser)
    shown = parser.add_argument_group("display")
    shown.add_argument("-q", "--quiet", action="store_true", help="do not print the explanation")
    files = parser.add_argument_group("output files")
    add_output(files, "json", "OUT.json", "the explanation")
    add_picture(files, "what stands in the way, and who holds it", usual="why.png")


def run(options: argparse.Namespace) -> None:
    """Say why a job waits in the cluster now: who is ahead, who holds what it needs, and the least change that helps.

    The state is that of a full report of the source, of the audit log, or of events. The policy of the configuration is
    asked on a copy, also about each change; what the scheduler itself says is told beside it. Nothing is changed.
    """
    from simmodel.twin.config import read_config
    from simmodel.twin.present import explain_in_mirror, present

    config = read_config(options.config, trust=options.trust)
    mirror, report = present(config, trust=options.trust)
    found = explain_in_mirror(mirror, options.job, report, options.policy, dated=config.clock == "wall")
    said = [f"{config.cluster}, {config.policy if options.policy is None else options.policy}: {found.report()}"]
    write_and_say(said, options, {"json": found.to_json, "plot": picture(found.plot)}, indent="")
