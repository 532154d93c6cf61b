"""``simmodel verify``: hold a schedule against what is possible and against a policy."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments, group
from simmodel.commands.judging import JUDGED, SCHEDULE, judging
from simmodel.commands.outputs import files, picture, plot, write_and_say
from simmodel.commands.progress import PROGRESS
from simmodel.commands.shared import MACHINE, see_working_folder
from simmodel.commands.values import output

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel batch lublin-128-week --policy easy --schedule jobs.csv",
    "simmodel verify lublin-128-week jobs.csv --policy easy",
)


add = arguments(
    SCHEDULE,
    argument("--policy NAME", "the policy that should have made it (default: only what is possible)"),
    MACHINE,
    group("rules", JUDGED),
    PROGRESS,
    files(
        argument("--table OUT.csv", "one line a finding: kind, job, instant and a sentence", output),
        plot("the starts that depart, over time", "departures.png"),
    ),
)


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
    write_and_say(options, [found.report()], "", table=found.to_csv, plot=picture(found.plot))
    if found.misfit is not None:
        raise InputError(found.misfit, source=str(options.schedule or options.log))
    return 0 if found.right else 1
