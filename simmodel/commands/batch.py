"""``simmodel batch``: replay a log of a batch system under a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.shared import (
    add_log,
    add_machine,
    add_policy,
    add_rules,
    check_outputs,
    chosen_policy,
    label,
    run_options,
    seconds,
    write_and_say,
)

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("batch", help="replay a log under a policy", description=run.__doc__)
    add_log(parser)
    add_policy(parser)
    add_machine(parser)
    add_rules(parser)
    parser.add_argument("--events", action="store_true", help="keep each state change as well, for --db")
    files = parser.add_argument_group("files to write")
    files.add_argument("--schedule", type=Path, metavar="OUT.csv", help="one line a job, times as in the log")
    files.add_argument("--json", type=Path, metavar="OUT.json", help="metrics, counts, and what repeats the run")
    files.add_argument("--db", type=Path, metavar="OUT.sqlite", help="all tables, as an SQLite database")
    files.add_argument("--trace", type=Path, metavar="OUT.json", help="a trace for ui.perfetto.dev")
    files.add_argument("--plot", type=Path, metavar="OUT.png", help="the run on one page (.png, .pdf, .svg)")
    files.add_argument("--snapshot", type=Path, metavar="OUT.json", help="the state at --at, for 'simmodel whatif'")
    files.add_argument("--at", type=seconds, metavar="S", help="the instant of the snapshot, where the run stops")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Replay a log of a batch system under a policy, and say what happened."""
    from simmodel.errors import InputError
    from simmodel.runs.simulating import start

    check_outputs(options, "schedule", "json", "db", "trace", "plot", "snapshot")
    if options.at is not None:
        if options.snapshot is None or options.until is not None:
            raise InputError("--at goes with --snapshot, and not with --until")
        options.until = options.at
    if options.snapshot is not None and options.until is None:
        raise InputError("--snapshot needs the instant of the snapshot: --at expected")
    policy, name = chosen_policy(options)
    platform, given = run_options(options)
    simulation = start(
        platform,
        options.log,
        policy,
        events=options.events,
        name=f"{label(options.log)} under {name}",
        **given,
    )
    result = simulation.run().result()
    write_and_say(
        [result.summary()],
        options,
        {
            "schedule": result.schedule_csv,
            "json": result.to_json,
            "db": result.to_sqlite,
            "trace": result.to_perfetto,
            "plot": lambda path: result.plot.overview().savefig(path, dpi=120),
            "snapshot": lambda path: simulation.snapshot().to_json(path),
        },
    )
