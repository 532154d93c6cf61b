"""``simmodel verify``: hold a schedule against what is possible and against a policy."""

from __future__ import annotations

import argparse

from simmodel.commands.judging import add_judging, add_schedule, judging
from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.progress import add_progress
from simmodel.commands.shared import add_machine, see_working_folder

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel batch lublin-128-week --policy easy --schedule jobs.csv",
    "simmodel verify lublin-128-week jobs.csv --policy easy",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_schedule(parser)
    parser.add_argument(
        "--policy", metavar="NAME", help="the policy that should have made it (default: only what is possible)"
    )
    add_machine(parser)
    add_judging(parser.add_argument_group("rules"))
    add_progress(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "table", "OUT.csv", "one line a finding: kind, job, instant and a sentence")
    add_picture(files, "the starts that depart, over time", usual="departures.png")


def run(options: argparse.Namespace) -> int:
    """Say whether a schedule is possible and, with --policy, which starts are not the policy's, and why.

    The exit status is 0 if the schedule is right; 1 if something is impossible or not the policy's; 2 if the input is
    invalid or no schedule of these jobs: some are missing, unknown or doubled, or start before their submission.
    """
    from simmodel.errors import InputError
    from simmodel.referee.verification import verify

    if options.plot is not None and options.policy is None:
        raise InputError("--plot needs --policy")
    if options.policy is not None:
        see_working_folder(options.policy)
    found = verify(**judging(options), policy=options.policy, progress=options.progress)
    write_and_say([found.report()], options, {"table": found.to_csv, "plot": picture(found.plot)}, indent="")
    if found.misfit is not None:
        raise InputError(found.misfit, source=str(options.schedule or options.log))
    return 0 if found.right else 1
