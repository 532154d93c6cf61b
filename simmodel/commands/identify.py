"""``simmodel identify``: which policy made the starts of a log."""

from __future__ import annotations

import argparse

from simmodel.commands.judging import add_judging, add_schedule, judging
from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.progress import add_progress
from simmodel.commands.shared import POLICIES, add_machine, add_workers, process_pool, split_names
from simmodel.commands.values import at_least_one

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel batch lublin-128-week --policy sjf+easy --schedule jobs.csv",
    "simmodel identify lublin-128-week jobs.csv --policies fcfs,easy,sjf+easy --plot",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_schedule(parser)
    parser.add_argument("--policies", metavar="A,B,C", help=f"{POLICIES} (default: the usual batch policies)")
    add_machine(parser)
    rules = parser.add_argument_group("rules")
    add_judging(rules)
    rules.add_argument(
        "--sample",
        type=at_least_one,
        metavar="N",
        help="judge so many starts, in stretches spread evenly over the log (default: all)",
    )
    add_workers(parser)
    add_progress(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "table", "OUT.csv", "one line a policy: what it explains")
    add_picture(files, "what the best policies explain, over time", usual="policies.png")


def run(options: argparse.Namespace) -> None:
    """Ask several policies at each state that a schedule reached, and print which starts each of them explains."""
    from simmodel.referee.identification import CANDIDATES, identify

    policies = CANDIDATES if options.policies is None else split_names(options.policies)
    with process_pool(options, most=len(policies)) as executor:
        given = judging(options) | {"sample": options.sample, "executor": executor, "progress": options.progress}
        found = identify(**given, candidates=policies)
    write_and_say([found.report()], options, {"table": found.table.to_csv, "plot": picture(found.plot)}, indent="")
