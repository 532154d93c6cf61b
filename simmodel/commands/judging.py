"""What the commands that judge schedules share: the log, the schedule of its jobs, and the rules."""

from __future__ import annotations

import argparse
from typing import Any

from simmodel.commands.arguments import argument, arguments
from simmodel.commands.shared import LOG, chosen_platform
from simmodel.commands.values import seconds, source

__all__ = ["JUDGED", "SCHEDULE", "judging"]

_RULES = ("decide_on", "event_order", "estimates")

SCHEDULE = arguments(
    LOG,
    argument(
        "schedule SCHEDULE",
        "starts of its jobs: a CSV file, Batsim's jobs.csv, CQSim's .rst or SWF (default: the waits of the log)",
        source,
        nargs="?",
    ),
)
"""The log, and the schedule of its jobs."""

JUDGED = arguments(
    argument("--decide-on {instant,event}", "when the policy decides (default: instant)"),
    argument("--event-order {submits-first,ends-first}", "with --decide-on event (default: submits-first)"),
    argument("--estimates {requested,exact,cqsim}", "the times that it plans with (default: requested)"),
    argument("--tolerance TIME", "times that differ by less are the same", seconds, default=0.0),
)
"""The rules under which a policy is asked."""


def judging(options: argparse.Namespace) -> dict[str, Any]:
    """Return the log, the schedule, the platform and the rules, as arguments by name."""
    rules = {name: value for name in _RULES if (value := getattr(options, name)) is not None}
    return {
        "workload": options.log,
        "schedule": options.schedule,
        "platform": chosen_platform(options),
        "tolerance": options.tolerance,
        **rules,
    }
