"""``simmodel compare``: run a log under several policies."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.shared import (
    add_log,
    add_machine,
    add_rules,
    add_workers,
    check_outputs,
    label,
    process_pool,
    run_options,
    split_names,
    write_and_say,
)

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands
    from simmodel.results.result import Result

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("compare", help="run a log under several policies", description=run.__doc__)
    add_log(parser)
    parser.add_argument("--policies", required=True, metavar="A,B,C", help="names, with commas between them")
    add_machine(parser)
    add_rules(parser)
    add_workers(parser)
    files = parser.add_argument_group("files to write")
    files.add_argument("--table", type=Path, metavar="OUT.csv", help="all metrics, one line a policy")
    files.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=Path("comparison.png"),
        metavar="OUT.png",
        help="the metrics as bars (default: comparison.png)",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Run a log under several policies, and put their metrics side by side."""
    from simmodel.experiments.comparison import compare

    check_outputs(options, "table", "plot")
    policies = split_names(options.policies)
    platform, given = run_options(options)
    with process_pool(options.workers, most=len(policies)) as executor:
        found = compare(platform, options.log, policies, executor=executor, **given)
    first: Result = found.results[0]
    head = f"{label(options.log)}: {len(first.jobs):,} jobs on {first.processors:,} processors"
    write_and_say(
        [head, "", found.summary(), *first.report.lines()],
        options,
        {"table": found.table.to_csv, "plot": lambda path: found.plot().savefig(path, dpi=120)},
        indent="",
    )
