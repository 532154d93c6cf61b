"""``simmodel twin replay``, ``replay-audit``, ``shadow``: logs under advice, decisions made again or by a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel import InputError
from simmodel.extending import (
    LOG,
    MACHINE,
    PROGRESS,
    RULES,
    TRUST,
    WORKERS,
    answer,
    argument,
    chosen_platform,
    command,
    document,
    files,
    group,
    log_name,
    number,
    output,
    page,
    picture,
    plot,
    positive,
    process_pool,
    run_options,
    seconds,
    source,
    table,
    whole,
    write_and_say,
)

if TYPE_CHECKING:
    from simmodel_site.twin.mirror.mirror import Mirror
    from simmodel_site.twin.sources import Source


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
        table("one line per job, as advised", "schedule"),
        document("metrics of the advised run"),
        argument("--audit OUT.jsonl", "the audit log; it must not exist yet", output),
        plot("the waiting jobs without and with advice, and the jobs started by each policy", "replay.png"),
        page("the advised run"),
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
    from simmodel_site.twin.replay import replay_log

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
    head = f"{log_name(options.log)}: {jobs:,} jobs on {processors:,} processors"
    said = [head, "", found.summary(), *found.advised.report.lines()]
    if options.audit is not None:
        said.append(f"  audit written to {options.audit}")
    advised = found.advised
    write_and_say(
        options,
        said,
        schedule=advised.schedule_csv,
        json=advised.to_json,
        plot=picture(found.plot),
        html=advised.to_html,
    )


@command(
    "twin replay-audit",
    argument("audit AUDIT", "the audit log of a twin", source),
    TRUST,
    examples=("simmodel twin replay-audit audit.jsonl",),
)
def replay_again(options: argparse.Namespace) -> None:
    """Make each decision of an audit log again, from the events before it, and compare state and starts."""
    from simmodel import SimmodelError
    from simmodel_site.twin.audit_replay import replay_audit

    found = replay_audit(options.audit, trust=options.trust)
    differ = found.decisions - found.reproduced
    print(f"{found.decisions:,} decisions, {found.reproduced:,} reproduced, {differ:,} differ")
    if found.fallbacks:
        print(f"{found.fallbacks:,} of them by the fallback")
    if differ:
        raise SimmodelError(found.first)


@command(
    "twin shadow",
    argument("source CONFIG|LOG", "the configuration of a twin (TOML), or a log with waits", source),
    group(
        "policies",
        argument("--policy NAME", "that of the scheduler (default: of the configuration; fcfs)"),
        argument("--advised NAME", "whose gain is told (default: of the configuration; none)"),
        argument("--tolerance TIME", "how much later than wanted starts may come", seconds, default=0.0),
        argument("--window N", "the last starts that an alarm looks at (default: 200)", whole, default=200),
        argument(
            "--alarm SHARE",
            "raised when less of them is explained (default: 0.8)",
            number("a number from 0 to 1", lambda value: 0 <= value <= 1),
            default=0.8,
        ),
        argument("--foretell TIME", "the least time between two foretellings", seconds, default=0.0),
    ),
    argument("--for TIME", "how long to follow a live source", seconds, dest="duration"),
    MACHINE,
    TRUST,
    PROGRESS,
    files(
        table("one line a start: wanted, foretold, and whether it is explained"),
        document("the same"),
        plot("the starts that depart, over time", "shadow.png"),
    ),
    examples=(
        "simmodel twin shadow theta_2022.swf.gz --policy wfp+easy --tolerance 1min --advised portfolio --plot",
        "simmodel twin shadow twin.toml --for 1d --table starts.csv",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Follow a scheduler and compare its starts with those of the mirrored policy, and with the starts foretold.

    Reports the share of starts that the policy explains, how well starts were foretold at submission, when the policy
    ceased to explain them, and by how much waits would have been shorter under another policy. Nothing is changed.
    """
    from time import monotonic

    from simmodel_site.twin.shadow import Shadow, shadow_of

    source, mirror, policy, advised = _opened(options)
    shadow = Shadow(
        mirror,
        options.policy or policy,
        options.advised or advised,
        tolerance=options.tolerance,
        window=options.window,
        alarm=options.alarm,
        foretell=options.foretell,
    )
    ends = None if options.duration is None else monotonic() + options.duration
    try:
        report = shadow_of(
            source, shadow, None if ends is None else lambda: monotonic() >= ends, progress=options.progress
        )
    finally:
        source.close()
    said = [f"{mirror.cluster}: followed up to {mirror.now:.10g} s", "", report.summary()]
    said += [f"refused: {reason}: {count:,}" for reason, count in sorted((source.refused + mirror.refused).items())]
    write_and_say(
        options,
        said,
        indent="",
        table=report.jobs.to_csv,
        json=answer(repr(report).strip("<>"), starts=report.jobs.rows()),
        plot=picture(report.plot),
    )


def _opened(options: argparse.Namespace) -> tuple[Source, Mirror, Any, Any]:
    """Return the source, a mirror, and the policies of a configuration or a log."""
    from simmodel_site.twin.mirror.mirror import Mirror

    if Path(options.source).suffix == ".toml":
        from simmodel_site.twin.config import read_config

        config = read_config(options.source, trust=options.trust)
        mirror = Mirror(config.spec(trust=options.trust), config.cluster, config.policy, clock=config.now)
        advised = None if config.advise is None else config.advise.policy
        return config.open_source(), mirror, config.policy, advised
    from simmodel.catalogue import load_workload
    from simmodel.extending import cluster_of
    from simmodel_site.twin.sources.log import RecordedLog

    log = load_workload(options.source)
    return RecordedLog(log, log.name), Mirror(cluster_of(chosen_platform(options), log), log.name), "fcfs", None
