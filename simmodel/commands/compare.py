"""``simmodel compare``: run a log under several policies."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, command
from simmodel.commands.outputs import files, label, picture, plot, write_and_say
from simmodel.commands.shared import LOG, MACHINE, POLICIES, RULES, WORKERS, process_pool, run_options, split_names
from simmodel.commands.values import output


@command(
    "compare",
    LOG,
    argument("--policies A,B,C", POLICIES, required=True),
    MACHINE,
    RULES,
    WORKERS,
    files(
        argument("--table OUT.csv", "all metrics, one line per policy", output),
        plot("the metrics as bars", "comparison.png"),
    ),
    examples=(
        "simmodel compare lublin-128-week --policies fcfs,easy,sjf+easy --plot",
        "simmodel compare lublin-128-week --policies easy,conservative --platform kth-sp2 --workers 2",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Replay a log under several policies and print their metrics side by side."""
    from simmodel.experiments.comparison import compare

    policies = split_names(options.policies)
    platform, given = run_options(options)
    with process_pool(options, most=len(policies)) as executor:
        found = compare(platform, options.log, policies, executor=executor, **given)
    first = found.results[0]
    head = f"{label(options.log)}: {first.metrics()['jobs']:,} jobs on {first.processors:,} processors"
    said = [head, "", found.summary(), *first.report.lines()]
    write_and_say(options, said, indent="", table=found.table.to_csv, plot=picture(found.plot))
