"""``simmodel explain``: why a job or a task waits."""

from __future__ import annotations

import argparse
from typing import Any

from simmodel.commands.arguments import argument, command
from simmodel.commands.options import kind_arguments, kind_options
from simmodel.commands.outputs import files, picture, plot, write_and_say
from simmodel.commands.shared import LOG, MACHINE, POLICY, RULES, TRUST, chosen_policy, run_options, see_working_folder
from simmodel.commands.values import output, seconds, source
from simmodel.foundation.errors import InputError
from simmodel.platform.options import BrokerOptions, MachineOptions


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
        argument("--json OUT.json", "the explanation", output),
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
