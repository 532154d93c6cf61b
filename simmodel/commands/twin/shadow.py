"""``simmodel twin shadow``: how well the mirrored policy explains and foretells what a scheduler does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.options import platform_for
from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.progress import add_progress
from simmodel.commands.shared import add_machine, add_trust
from simmodel.commands.values import number, seconds, source, whole

if TYPE_CHECKING:
    from simmodel.twin.mirror import Mirror
    from simmodel.twin.source import Source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel twin shadow theta_2022.swf.gz --policy wfp+easy --tolerance 1min --advised portfolio --plot",
    "simmodel twin shadow twin.toml --for 1d --table starts.csv",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the action."""
    parser.add_argument(
        "source", type=source, metavar="CONFIG|LOG", help="the configuration of a twin (TOML), or a log with waits"
    )
    share = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
    judged = parser.add_argument_group("policies")
    judged.add_argument("--policy", metavar="NAME", help="that of the scheduler (default: of the configuration; fcfs)")
    judged.add_argument("--advised", metavar="NAME", help="whose gain is told (default: of the configuration; none)")
    judged.add_argument(
        "--tolerance", type=seconds, default=0.0, metavar="TIME", help="how much later than wanted starts may come"
    )
    judged.add_argument(
        "--window", type=whole, default=200, metavar="N", help="the last starts that an alarm looks at (default: 200)"
    )
    judged.add_argument(
        "--alarm", type=share, default=0.8, metavar="SHARE", help="raised when less of them is explained (default: 0.8)"
    )
    judged.add_argument(
        "--foretell", type=seconds, default=0.0, metavar="TIME", help="the least time between two foretellings"
    )
    parser.add_argument("--for", dest="duration", type=seconds, metavar="TIME", help="how long to follow a live source")
    add_machine(parser)
    add_trust(parser)
    add_progress(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "table", "OUT.csv", "one line a start: wanted, foretold, and whether it is explained")
    add_picture(files, "the starts that depart, over time", usual="shadow.png")


def run(options: argparse.Namespace) -> None:
    """Follow a scheduler and compare: what the mirrored policy would have started, and when starts were foretold.

    Tells the share of starts that the policy explains, how well starts were foretold at submission, when the policy
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
    write_and_say(said, options, {"table": report.jobs.to_csv, "plot": picture(report.plot)}, indent="")


def _opened(options: argparse.Namespace) -> tuple[Source, Mirror, Any, Any]:
    """Return the source, a mirror, and the policies of a configuration or a log."""
    from simmodel.twin.mirror import Mirror

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
    platform = None if options.platform is None else platform_for("jobs", options.platform)[0]
    spec = cluster_of(options.processors if options.processors is not None else platform, log)
    return RecordedLog(log, log.name), Mirror(spec, log.name), "fcfs", None
