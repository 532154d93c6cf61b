"""``simmodel twin replay``: replay a log on a simulated cluster that takes the advice."""

from __future__ import annotations

import argparse

from simmodel.commands.outputs import add_output, add_picture, label, picture, write_and_say
from simmodel.commands.shared import add_log, add_machine, add_rules, add_workers, process_pool, run_options
from simmodel.commands.values import number, seconds
from simmodel.errors import InputError

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel twin replay probe-4 --processors 12 --speed 10000",
    "simmodel twin replay schedtwin --audit audit.jsonl --plot replay.png",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the action."""
    add_log(parser)
    advice = parser.add_argument_group("advice")
    advice.add_argument(
        "--policy", default="portfolio", metavar="NAME", help="the policy that advises (default: portfolio)"
    )
    advice.add_argument(
        "--scheduler",
        default="easy",
        metavar="NAME",
        help="the policy of the scheduler, to compare with (default: easy)",
    )
    advice.add_argument(
        "--deadline", type=seconds, metavar="TIME", help="after which the scheduler's policy decides (default: none)"
    )
    advice.add_argument(
        "--speed",
        type=number("a number > 0", lambda value: value > 0),
        metavar="FACTOR",
        help="seconds of the log in a second (default: as fast as possible)",
    )
    add_machine(parser)
    add_rules(parser)
    add_workers(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "schedule", "OUT.csv", "one line per job, as advised")
    add_output(files, "audit", "OUT.jsonl", "the audit log; it must not exist yet")
    add_picture(files, "the waiting jobs without and with advice, and the jobs started by each policy")


def run(options: argparse.Namespace) -> None:
    """Replay a log on a simulated cluster that starts what a twin advises, and compare the waits.

    The twin sees the events of the cluster alone, as it would those of a scheduler, and does not know run times.
    """
    from simmodel.twin.replay import replay_log

    if options.audit is not None and options.audit.exists():
        raise InputError("exists: decisions of another run are not mixed with it", source=str(options.audit))
    platform, given = run_options(options)
    with process_pool(options) as executor:
        found = replay_log(
            platform,
            options.log,
            options.policy,
            scheduler=options.scheduler,
            speed=options.speed,
            deadline=options.deadline,
            executor=executor,
            audit=options.audit,
            **given,
        )
    jobs, processors = len(found.advised.jobs), found.advised.processors
    head = f"{label(options.log)}: {jobs:,} jobs on {processors:,} processors"
    said = [head, "", found.summary(), *found.advised.report.lines()]
    if options.audit is not None:
        said.append(f"  audit written to {options.audit}")
    write_and_say(
        said, options, {"schedule": lambda path: found.advised.schedule_csv(path), "plot": picture(found.plot)}
    )
