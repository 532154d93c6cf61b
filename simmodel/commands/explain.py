"""``simmodel explain``: why a job or a task waits."""

from __future__ import annotations

import argparse
from typing import Any

from simmodel.commands.options import add_kind_options, kind_options
from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.shared import (
    add_log,
    add_machine,
    add_policy,
    add_rules,
    add_trust,
    chosen_policy,
    run_options,
    see_working_folder,
)
from simmodel.commands.values import seconds, source
from simmodel.errors import InputError
from simmodel.platform.options import BrokerOptions, MachineOptions

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel explain lublin-128-week 300 --policy fcfs --at 90h --plot",
    "simmodel explain lublin-128-week 300 --clusters 128,64 --broker sgs-t",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_log(parser)
    parser.add_argument("job", metavar="JOB", help="the id of a job, or of a task of a machine")
    parser.add_argument(
        "--at", type=seconds, metavar="TIME", help="the instant, on a cluster (default: that of its submission)"
    )
    add_policy(parser)
    parser.add_argument("--broker", metavar="NAME", help="policy of a broker or a grid, whose places have --policy")
    add_machine(parser)
    parser.add_argument(
        "--clusters", type=source, metavar="A,B,...", help="a broker over numbers of processors, platforms or files"
    )
    add_rules(parser)
    add_kind_options(parser, [MachineOptions, BrokerOptions])
    add_trust(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "json", "OUT.json", "the explanation")
    add_picture(files, "what stood in the way, over time", usual="why.png")


def run(options: argparse.Namespace) -> None:
    """Say why a job waits: who is ahead, who holds what it needs, and the least change that would start it at once.

    Each change (less of what it requests, another partition or queue) is confirmed by asking the policy. On a machine:
    what a task waited for, and on which processor it would have started earlier; at a broker or on a grid: why the job
    went where it did, and what each other place would have given. These are confirmed by running all again.
    """
    from simmodel.referee.explaining import explain

    platform, policy, given = _run(options)
    found = explain(platform, options.log, policy, options.job, options.at, **given)
    write_and_say(
        [found.report()], options, {"json": lambda path: found.to_json(path), "plot": picture(found.plot)}, indent=""
    )


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
