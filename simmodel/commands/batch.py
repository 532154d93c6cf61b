"""``simmodel batch``: replay a log of a batch system under a policy."""

from __future__ import annotations

import argparse

from simmodel.commands.outputs import (
    add_database,
    add_output,
    add_picture,
    label,
    picture,
    write_and_say,
)
from simmodel.commands.shared import add_log, add_machine, add_policy, add_rules, chosen_policy, run_options
from simmodel.commands.values import seconds

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel batch lublin-128-week --plot overview.png",
    "simmodel batch lublin-128-week --policy sjf+easy --until 2d --schedule -",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_log(parser)
    add_policy(parser)
    add_machine(parser)
    add_rules(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "schedule", "OUT.csv", "one line per job; times as in the log")
    add_output(files, "json", "OUT.json", "metrics, counts and the scenario, which repeats the run")
    add_database(files, " or --stream")
    text = "read the log in chunks and write jobs as they end, to an SQLite file or a folder NAME.parquet"
    add_output(files, "stream", "OUT", text)
    files.add_argument("--events", action="store_true", help="record each state change too, for --db")
    add_output(files, "trace", "OUT.json", "a trace for ui.perfetto.dev")
    add_picture(files, "the run on one page")
    add_output(files, "snapshot", "OUT.json", "the state at --at, for 'simmodel whatif'")
    files.add_argument("--at", type=seconds, metavar="TIME", help="time of the snapshot; the run stops there")


def run(options: argparse.Namespace) -> None:
    """Replay a log of a batch system under a policy and print a summary."""
    from simmodel.errors import InputError
    from simmodel.results.streams import RecordStream
    from simmodel.runs.simulating import start

    if options.stream is not None:
        _refuse_with_stream(options)
    if options.at is not None:
        if options.snapshot is None:
            raise InputError("--at needs --snapshot")
        if options.until is not None:
            raise InputError("--at and --until exclude each other")
        options.until = options.at
    if options.snapshot is not None and options.until is None:
        raise InputError("--snapshot needs the time of the snapshot, --at")
    policy, name = chosen_policy(options)
    platform, given = run_options(options)
    simulation = start(
        platform,
        options.log,
        policy,
        events=options.events,
        name=f"{label(options.log)} under {name}",
        stream=None if options.stream is None else RecordStream(options.stream, force=options.force),
        **given,
    )
    result = simulation.run().result()
    if options.stream is not None:
        said = [result.summary(), f"  jobs written to {options.stream}"]
        write_and_say(said, options, {"json": result.to_json})
        return
    write_and_say(
        [result.summary()],
        options,
        {
            "schedule": result.schedule_csv,
            "json": result.to_json,
            "db": lambda path: result.to_sqlite(path, force=options.force),
            "trace": result.to_perfetto,
            "plot": picture(lambda: result.plot.overview()),
            "snapshot": lambda path: simulation.snapshot().to_json(path),
        },
    )


def _refuse_with_stream(options: argparse.Namespace) -> None:
    """Refuse outputs that need the whole record in memory."""
    from simmodel.errors import InputError

    for name in ("schedule", "db", "events", "trace", "plot", "snapshot"):
        if getattr(options, name) not in (None, False):
            raise InputError(f"--stream and --{name} exclude each other: --{name} needs the whole record in memory")
