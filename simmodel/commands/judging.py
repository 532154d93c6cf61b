"""What the commands that judge schedules share: the log, the schedule of its jobs, and the rules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.commands.options import platform_for
from simmodel.commands.shared import add_log
from simmodel.commands.values import one_of, seconds, source

if TYPE_CHECKING:
    from simmodel.commands.options import TakesArguments

__all__ = ["add_judging", "add_schedule", "judging"]

_RULES = {
    "decide_on": ("instant", "event"),
    "event_order": ("submits-first", "ends-first"),
    "estimates": ("requested", "exact", "cqsim"),
}


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """Add the log, and the schedule of its jobs."""
    add_log(parser)
    parser.add_argument(
        "schedule",
        nargs="?",
        type=source,
        metavar="SCHEDULE",
        help="starts of its jobs: a CSV file, Batsim's jobs.csv, CQSim's .rst or SWF (default: the waits of the log)",
    )


def add_judging(parser: TakesArguments) -> None:
    """Add the rules under which a policy is asked."""
    helps = {
        "decide_on": "when the policy decides (default: instant)",
        "event_order": "with --decide-on event (default: submits-first)",
        "estimates": "the times that it plans with (default: requested)",
    }
    for name, values in _RULES.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=one_of(values), metavar=f"{{{','.join(values)}}}", help=helps[name])
    parser.add_argument(
        "--tolerance", type=seconds, default=0.0, metavar="TIME", help="times that differ by less are the same"
    )


def judging(options: argparse.Namespace) -> dict[str, Any]:
    """Return the log, the schedule, the platform and the rules, as arguments by name."""
    platform = None if options.platform is None else platform_for("jobs", options.platform)[0]
    rules = {name: getattr(options, name) for name in _RULES if getattr(options, name) is not None}
    return {
        "workload": options.log,
        "schedule": options.schedule,
        "platform": options.processors if options.processors is not None else platform,
        "tolerance": options.tolerance,
        **rules,
    }
