"""``simmodel twin replay``: replay a log on a simulated cluster that takes the advice."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments, group
from simmodel.commands.outputs import files, label, picture, plot, write_and_say
from simmodel.commands.shared import LOG, MACHINE, RULES, WORKERS, process_pool, run_options
from simmodel.commands.values import output, positive, seconds
from simmodel.errors import InputError

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel twin replay probe-4 --processors 12 --speed 10000",
    "simmodel twin replay schedtwin --audit audit.jsonl --plot replay.png",
)


add = arguments(
    LOG,
    group(
        "advice",
        argument("--policy NAME", "the policy that advises (default: portfolio)", default="portfolio"),
        argument("--scheduler NAME", "the policy of the scheduler, to compare with (default: easy)", default="easy"),
        argument("--deadline TIME", "after which the scheduler's policy decides (default: none)", seconds),
        argument("--speed FACTOR", "seconds of the log in a second (default: as fast as possible)", positive),
    ),
    MACHINE,
    RULES,
    WORKERS,
    files(
        argument("--schedule OUT.csv", "one line per job, as advised", output),
        argument("--audit OUT.jsonl", "the audit log; it must not exist yet", output),
        plot("the waiting jobs without and with advice, and the jobs started by each policy"),
    ),
)


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
    write_and_say(options, said, schedule=lambda path: found.advised.schedule_csv(path), plot=picture(found.plot))
