"""``simmodel twin shadow``: how well the mirrored policy explains and forecasts the decisions of a scheduler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.outputs import PROGRESS, files, picture, plot, write_and_say
from simmodel.commands.shared import MACHINE, TRUST, chosen_platform
from simmodel.commands.values import argument, command, group, number, output, seconds, source, whole

if TYPE_CHECKING:
    from simmodel.twin.mirror.mirror import Mirror
    from simmodel.twin.sources import Source


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
        argument("--table OUT.csv", "one line a start: wanted, foretold, and whether it is explained", output),
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

    from simmodel.twin.shadow import Shadow, shadow_of

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
    write_and_say(options, said, indent="", table=report.jobs.to_csv, plot=picture(report.plot))


def _opened(options: argparse.Namespace) -> tuple[Source, Mirror, Any, Any]:
    """Return the source, a mirror, and the policies of a configuration or a log."""
    from simmodel.twin.mirror.mirror import Mirror

    if Path(options.source).suffix == ".toml":
        from simmodel.twin.config import read_config

        config = read_config(options.source, trust=options.trust)
        mirror = Mirror(config.spec(trust=options.trust), config.cluster, config.policy, clock=config.now)
        advised = None if config.advise is None else config.advise.policy
        return config.open_source(), mirror, config.policy, advised
    from simmodel.catalogue import load_workload
    from simmodel.referee.verification import cluster_of
    from simmodel.twin.sources.log import RecordedLog

    log = load_workload(options.source)
    return RecordedLog(log, log.name), Mirror(cluster_of(chosen_platform(options), log), log.name), "fcfs", None
