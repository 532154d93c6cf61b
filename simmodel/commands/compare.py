"""``simmodel compare``: run a log under several policies."""

from __future__ import annotations

import argparse

from simmodel.commands.outputs import add_output, add_picture, label, picture, write_and_say
from simmodel.commands.shared import (
    POLICIES,
    add_log,
    add_machine,
    add_rules,
    add_workers,
    process_pool,
    run_options,
    split_names,
)

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel compare lublin-128-week --policies fcfs,easy,sjf+easy --plot",
    "simmodel compare lublin-128-week --policies easy,conservative --platform kth-sp2 --workers 2",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_log(parser)
    parser.add_argument("--policies", required=True, metavar="A,B,C", help=POLICIES)
    add_machine(parser)
    add_rules(parser)
    add_workers(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "table", "OUT.csv", "all metrics, one line per policy")
    add_picture(files, "the metrics as bars", usual="comparison.png")


def run(options: argparse.Namespace) -> None:
    """Replay a log under several policies and print their metrics side by side."""
    from simmodel.experiments.comparison import compare

    policies = split_names(options.policies)
    platform, given = run_options(options)
    with process_pool(options, most=len(policies)) as executor:
        found = compare(platform, options.log, policies, executor=executor, **given)
    first = found.results[0]
    head = f"{label(options.log)}: {first.metrics()['jobs']:,} jobs on {first.processors:,} processors"
    write_and_say(
        [head, "", found.summary(), *first.report.lines()],
        options,
        {"table": found.table.to_csv, "plot": picture(found.plot)},
        indent="",
    )
