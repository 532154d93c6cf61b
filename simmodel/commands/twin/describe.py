"""``simmodel twin describe``: describe the cluster of a scheduler as a platform."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simmodel.commands.arguments import argument, command, group
from simmodel.commands.values import number, one_of, source

if TYPE_CHECKING:
    from simmodel.twin.described import Described


@command(
    "twin describe",
    argument("scheduler SCHEDULER", "slurm or pbs", one_of(("slurm", "pbs"), "scheduler")),
    argument(
        "--from PATH",
        "files, or folders of files: what 'scontrol show config', 'node', 'partition', 'reservation', 'license' "
        "and 'topology' print, or answers of slurmrestd in JSON; of PBS, the answers in JSON of 'qstat -Bf', "
        "'qstat -Qf' and 'pbsnodes -a' (default: the scheduler's commands are asked)",
        source,
        dest="told",
        nargs="+",
        default=[],
    ),
    argument("--rest SOCKET", "the unix socket of a slurmrestd to ask instead of scontrol"),
    argument("--conf FILE", "slurm.conf or pbs.conf of the cluster to ask (default: the usual one)", source),
    argument("--timezone ZONE", "of times in files, such as Europe/Paris (default: that of this computer)"),
    argument(
        "--origin SECONDS",
        "the instant, in seconds since 1970, that is 0 in simulations (default: 0, as for the twin)",
        number("a number of seconds >= 0", lambda value: value >= 0),
        default=0.0,
    ),
    argument(
        "--log LOG",
        "recorded starts of the cluster: the policy is the one that explains most of them (default: the one that "
        "the settings amount to)",
        source,
    ),
    group("display", argument("-q --quiet", "do not list on standard error what is not expressed")),
    examples=(
        "simmodel twin describe slurm > machine.toml",
        "simmodel twin describe slurm --from nodes.json partitions.json config.txt > machine.toml",
        "simmodel twin describe pbs > machine.toml",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Print the platform, as TOML, that a cluster of Slurm or PBS amounts to; nothing is changed there.

    Its comments name the policy that the settings of the scheduler amount to, and list what a platform cannot express.
    """
    import sys

    from simmodel.catalogue import load_workload
    from simmodel.errors import printable

    found = _pbs(options) if options.scheduler == "pbs" else _slurm(options)
    if options.log is not None:
        found = found.explained_by(load_workload(options.log))
    print(found.toml(), end="")
    if not options.quiet:
        for each in found.unsupported:
            print(f"not expressed: {printable(str(each))}", file=sys.stderr)


def _slurm(options: argparse.Namespace) -> Described:
    from simmodel.formats.tables import zone
    from simmodel.twin.slurm.commands import SlurmCommands
    from simmodel.twin.slurm.describe import describe_slurm
    from simmodel.twin.slurm.rest import SlurmRest

    return describe_slurm(
        options.told,
        commands=SlurmCommands(conf=options.conf),
        rest=None if options.rest is None else SlurmRest(options.rest),
        local=zone(options.timezone) if options.timezone else None,
        origin=options.origin,
    )


def _pbs(options: argparse.Namespace) -> Described:
    from simmodel.errors import InputError
    from simmodel.twin.pbs.commands import PbsCommands
    from simmodel.twin.pbs.describe import describe_pbs

    for name in ("rest", "timezone", "origin"):
        if getattr(options, name):
            raise InputError("is for slurm alone", place=f"--{name}")
    return describe_pbs(options.told, commands=PbsCommands(conf=options.conf))
