"""``simmodel explain``: why a job waits."""

from __future__ import annotations

import argparse

from simmodel.commands.outputs import add_output, add_picture, check_outputs, picture, write_and_say
from simmodel.commands.shared import add_log, add_machine, add_policy, add_rules, chosen_policy, run_options
from simmodel.commands.values import seconds

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel explain probe-4 3 --processors 12 --policy easy",
    "simmodel explain lublin-128-week 300 --policy fcfs --at 90h --plot",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_log(parser)
    parser.add_argument("job", metavar="JOB", help="the id of a job")
    parser.add_argument("--at", type=seconds, metavar="TIME", help="the instant (default: that of its submission)")
    add_policy(parser)
    add_machine(parser)
    add_rules(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "json", "OUT.json", "the explanation")
    add_picture(files, "what stood in the way, over time", usual="why.png")


def run(options: argparse.Namespace) -> None:
    """Say why a job waits: who is ahead, who holds what it needs, and the least change that would start it at once.

    Each change (fewer processors, a shorter limit, another partition) is confirmed by asking the policy.
    """
    from simmodel.referee.explaining import explain

    check_outputs(options, "json", "plot")
    platform, given = run_options(options)
    found = explain(platform, options.log, chosen_policy(options)[0], options.job, options.at, **given)
    write_and_say(
        [found.report()], options, {"json": lambda path: found.to_json(path), "plot": picture(found.plot)}, indent=""
    )
