"""``simmodel verify`` and ``identify``: check a schedule against the limits of the platform, and against policies."""

from __future__ import annotations

import argparse
from typing import Any

from simmodel.commands.arguments import argument, arguments, command, group
from simmodel.commands.outputs import files, picture, plot, write_and_say
from simmodel.commands.progress import PROGRESS
from simmodel.commands.shared import (
    LOG,
    MACHINE,
    POLICIES,
    WORKERS,
    chosen_platform,
    process_pool,
    see_working_folder,
    split_names,
)
from simmodel.commands.values import at_least_one, output, seconds, source

__all__ = ["identify", "verify"]

_RULES = ("decide_on", "event_order", "estimates")

_SCHEDULE = arguments(
    LOG,
    argument(
        "schedule SCHEDULE",
        "starts of its jobs: a CSV file, Batsim's jobs.csv, CQSim's .rst or SWF (default: the waits of the log)",
        source,
        nargs="?",
    ),
)
"""The log, and the schedule of its jobs."""

_JUDGED = arguments(
    argument("--decide-on {instant,event}", "when the policy decides (default: instant)"),
    argument("--event-order {submits-first,ends-first}", "with --decide-on event (default: submits-first)"),
    argument("--estimates {requested,exact,cqsim}", "the times that it plans with (default: requested)"),
    argument("--tolerance TIME", "times that differ by less are the same", seconds, default=0.0),
)
"""The rules under which a policy is asked."""


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the log, the schedule, the platform and the rules, as arguments by name."""
    rules = {name: value for name in _RULES if (value := getattr(options, name)) is not None}
    return {
        "workload": options.log,
        "schedule": options.schedule,
        "platform": chosen_platform(options),
        "tolerance": options.tolerance,
        **rules,
    }


@command(
    "verify",
    _SCHEDULE,
    argument("--policy NAME", "the policy that should have made it (default: only what is possible)"),
    MACHINE,
    group("rules", _JUDGED),
    PROGRESS,
    files(
        argument("--table OUT.csv", "one line a finding: kind, job, instant and a sentence", output),
        plot("the starts that depart, over time", "departures.png"),
    ),
    examples=(
        "simmodel batch lublin-128-week --policy easy --schedule jobs.csv",
        "simmodel verify lublin-128-week jobs.csv --policy easy",
    ),
)
def verify(options: argparse.Namespace) -> int:
    """Say whether a schedule is possible and, with --policy, which starts are not the policy's, and why.

    The exit status is 0 if the schedule is right; 1 if something is impossible or not the policy's; 2 if the input is
    invalid or no schedule of these jobs: some are missing, unknown or doubled, or start before their submission.
    """
    from simmodel.foundation.errors import InputError
    from simmodel.referee.verification import verify as judge

    if options.plot is not None and options.policy is None:
        raise InputError("--plot needs --policy")
    if options.policy is not None:
        see_working_folder(options.policy)
    found = judge(**_given(options), policy=options.policy, progress=options.progress)
    write_and_say(options, [found.report()], indent="", table=found.to_csv, plot=picture(found.plot))
    if found.misfit is not None:
        raise InputError(found.misfit, source=str(options.schedule or options.log))
    return 0 if found.right else 1


@command(
    "identify",
    _SCHEDULE,
    argument("--policies A,B,C", f"{POLICIES} (default: the usual batch policies)"),
    MACHINE,
    group(
        "rules",
        _JUDGED,
        argument(
            "--sample N",
            "judge so many starts, in stretches spread evenly over the log (default: all)",
            at_least_one,
        ),
    ),
    WORKERS,
    PROGRESS,
    files(
        argument("--table OUT.csv", "one line a policy: what it explains", output),
        plot("what the best policies explain, over time", "policies.png"),
    ),
    examples=(
        "simmodel batch lublin-128-week --policy sjf+easy --schedule jobs.csv",
        "simmodel identify lublin-128-week jobs.csv --policies fcfs,easy,sjf+easy --plot",
    ),
)
def identify(options: argparse.Namespace) -> None:
    """Ask several policies at each state that a schedule reached, and print which starts each of them explains."""
    from simmodel.referee.identification import CANDIDATES, identify as compared

    policies = CANDIDATES if options.policies is None else split_names(options.policies)
    with process_pool(options, most=len(policies)) as executor:
        given = _given(options) | {"sample": options.sample, "executor": executor, "progress": options.progress}
        found = compared(**given, candidates=policies)
    write_and_say(options, [found.report()], indent="", table=found.table.to_csv, plot=picture(found.plot))
