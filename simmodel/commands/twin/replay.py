"""``simmodel twin replay`` and ``replay-audit``: a log under advice, and the decisions of an audit log again."""

from __future__ import annotations

import argparse

from simmodel.commands.outputs import files, label, picture, plot, write_and_say
from simmodel.commands.shared import LOG, MACHINE, RULES, TRUST, WORKERS, process_pool, run_options
from simmodel.commands.values import argument, command, group, output, positive, seconds, source
from simmodel.foundation.errors import InputError


@command(
    "twin replay",
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
    examples=(
        "simmodel twin replay probe-4 --processors 12 --speed 10000",
        "simmodel twin replay schedtwin --audit audit.jsonl --plot replay.png",
    ),
)
def replay(options: argparse.Namespace) -> None:
    """Replay a log on a simulated cluster that starts the jobs advised by a twin, and compare the waits.

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


@command(
    "twin replay-audit",
    argument("audit AUDIT", "the audit log of a twin", source),
    TRUST,
    examples=("simmodel twin replay-audit audit.jsonl",),
)
def replay_again(options: argparse.Namespace) -> None:
    """Make each decision of an audit log again, from the events before it, and compare state and starts."""
    from simmodel.foundation.errors import SimmodelError
    from simmodel.twin.audit_replay import replay_audit

    found = replay_audit(options.audit, trust=options.trust)
    differ = found.decisions - found.reproduced
    print(f"{found.decisions:,} decisions, {found.reproduced:,} reproduced, {differ:,} differ")
    if found.fallbacks:
        print(f"{found.fallbacks:,} of them by the fallback")
    if differ:
        raise SimmodelError(found.first)
