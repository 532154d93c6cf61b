"""``simmodel explain``, ``verify``, ``identify``: why work waits, and which rules and policies a schedule follows."""

from __future__ import annotations

import argparse
from typing import Any

from simmodel.commands.outputs import PROGRESS, document, files, picture, plot, table, write_and_say
from simmodel.commands.shared import (
    LOG,
    MACHINE,
    POLICIES,
    POLICY,
    RULES,
    TRUST,
    WORKERS,
    chosen_platform,
    chosen_policy,
    kind_arguments,
    kind_options,
    process_pool,
    run_options,
    see_working_folder,
    split_names,
)
from simmodel.commands.values import argument, arguments, at_least_one, command, group, seconds, source
from simmodel.foundation.errors import InputError
from simmodel.platform.options import BrokerOptions, MachineOptions

__all__ = ["identify", "verify"]


@command(
    "explain",
    LOG,
    argument("job JOB", "the id of a job, or of a task of a machine"),
    argument("--at TIME", "the instant, on a cluster (default: that of its submission)", seconds),
    POLICY,
    argument("--broker NAME", "policy of a broker or a grid, whose places have --policy"),
    MACHINE,
    argument("--clusters A,B,...", "a broker over numbers of processors, platforms or files", source),
    RULES,
    kind_arguments(MachineOptions, BrokerOptions),
    TRUST,
    files(
        document("the explanation"),
        plot("what stood in the way, over time", "why.png"),
    ),
    examples=(
        "simmodel explain lublin-128-week 300 --policy fcfs --at 90h --plot",
        "simmodel explain lublin-128-week 300 --clusters 128,64 --broker sgs-t",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Explain why a job waits: jobs ahead, holders of its resources, and the least change that would start it at once.

    Each change (less of what it requests, another partition or queue) is confirmed by asking the policy. On a machine:
    the waits of a task by reason, and the processor on which it would have started earlier; at a broker or on a grid:
    why the job was sent to its place, and its times at each other place. These are confirmed by running all again.
    """
    from simmodel.referee.explaining import explain

    platform, policy, given = _run(options)
    found = explain(platform, options.log, policy, options.job, options.at, **given)
    write_and_say(options, [found.report()], indent="", json=lambda path: found.to_json(path), plot=picture(found.plot))


def _run(options: argparse.Namespace) -> tuple[Any, Any, dict[str, Any]]:
    """Return platform, policy and options of the run; only on a cluster the policy is easy by default."""
    from simmodel.catalogue import load_platform
    from simmodel.systems.kinds import kind_named, kind_of_platform

    if options.clusters is not None:
        if options.platform is not None:
            raise InputError("--platform and --clusters exclude each other")
        parts = [part.strip() for part in options.clusters.split(",") if part.strip()]
        platform: Any = [int(part) if part.isdecimal() else part for part in parts]
        kind = kind_named("broker")
    elif options.platform is not None:
        platform = load_platform(options.platform, trust=options.trust)
        kind = kind_of_platform(platform)
    else:
        kind = kind_named("cluster")
    brokered = kind.homes or kind.name == "grid"
    if options.broker is not None and not brokered:
        raise InputError(f"--broker needs --clusters, or the platform of a broker or a grid, got a {kind.name}")
    if kind.name == "cluster":
        platform, given = run_options(options)
        return platform, chosen_policy(options)[0], given
    if options.processors is not None:
        raise InputError(f"--processors is for clusters, got a {kind.name}")
    given = kind_options(options, kind) | {name: getattr(options, name) for name in ("until", "seed", "progress")}
    for name in filter(None, (options.policy, options.broker)):
        see_working_folder(name)
    if not brokered:
        return platform, options.policy, given
    return platform, options.broker, given | ({} if options.policy is None else {"policies": options.policy})


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
        table("one line a finding: kind, job, instant and a sentence"),
        document("the findings, and the shares of starts that are explained"),
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
    said = [found.report()]
    write_and_say(options, said, "", table=found.to_csv, json=found.to_json, plot=picture(found.plot))
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
        table("one line a policy: what it explains"),
        document("the shares that each policy explains"),
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
    said = [found.report()]
    write_and_say(options, said, "", table=found.table.to_csv, json=found.to_json, plot=picture(found.plot))
