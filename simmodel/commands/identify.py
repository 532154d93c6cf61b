"""``simmodel identify``: which policy made the starts of a log."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments, group
from simmodel.commands.judging import JUDGED, SCHEDULE, judging
from simmodel.commands.outputs import files, picture, plot, write_and_say
from simmodel.commands.progress import PROGRESS
from simmodel.commands.shared import MACHINE, POLICIES, WORKERS, process_pool, split_names
from simmodel.commands.values import at_least_one, output

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel batch lublin-128-week --policy sjf+easy --schedule jobs.csv",
    "simmodel identify lublin-128-week jobs.csv --policies fcfs,easy,sjf+easy --plot",
)


add = arguments(
    SCHEDULE,
    argument("--policies A,B,C", f"{POLICIES} (default: the usual batch policies)"),
    MACHINE,
    group(
        "rules",
        JUDGED,
        argument(
            "--sample N",
            "judge so many starts, in stretches spread evenly over the log (default: all)",
            at_least_one,
        ),
    ),
    WORKERS,
    PROGRESS,
    files(
        argument("--table OUT.csv", "one line a policy: what it explains", output),
        plot("what the best policies explain, over time", "policies.png"),
    ),
)


def run(options: argparse.Namespace) -> None:
    """Ask several policies at each state that a schedule reached, and print which starts each of them explains."""
    from simmodel.referee.identification import CANDIDATES, identify

    policies = CANDIDATES if options.policies is None else split_names(options.policies)
    with process_pool(options, most=len(policies)) as executor:
        given = judging(options) | {"sample": options.sample, "executor": executor, "progress": options.progress}
        found = identify(**given, candidates=policies)
    write_and_say(options, [found.report()], "", table=found.table.to_csv, plot=picture(found.plot))
