"""``simmodel twin describe``: describe the cluster of a scheduler as a platform."""

from __future__ import annotations

import argparse

from simmodel.commands.values import number, one_of

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel twin describe slurm > machine.toml",
    "simmodel twin describe slurm --from nodes.json partitions.json config.txt > machine.toml",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the action."""
    parser.add_argument("scheduler", type=one_of(("slurm",), "scheduler"), metavar="SCHEDULER", help="slurm")
    parser.add_argument(
        "--from",
        dest="told",
        nargs="+",
        default=[],
        metavar="PATH",
        help="files, or folders of files: what 'scontrol show config', 'node', 'partition', 'reservation', 'license' "
        "and 'topology' print, or answers of slurmrestd in JSON (default: scontrol is asked)",
    )
    parser.add_argument("--rest", metavar="SOCKET", help="the unix socket of a slurmrestd to ask instead of scontrol")
    parser.add_argument("--conf", metavar="FILE", help="slurm.conf of the cluster to ask (default: the usual one)")
    parser.add_argument(
        "--timezone", metavar="ZONE", help="of times in files, such as Europe/Paris (default: that of this computer)"
    )
    parser.add_argument(
        "--origin",
        type=number("a number of seconds >= 0", lambda value: value >= 0),
        default=0.0,
        metavar="SECONDS",
        help="the instant, in seconds since 1970, that is 0 in simulations (default: 0, as for the twin)",
    )
    shown = parser.add_argument_group("display")
    shown.add_argument("-q", "--quiet", action="store_true", help="do not list on standard error what is not expressed")


def run(options: argparse.Namespace) -> None:
    """Print the platform, as TOML, that a cluster of Slurm amounts to; nothing is changed there.

    Its comments name the policy that the settings of the scheduler amount to, and list what a platform cannot express.
    """
    import sys

    from simmodel.errors import printable
    from simmodel.formats.cells import zone
    from simmodel.twin.slurm.commands import SlurmCommands
    from simmodel.twin.slurm.describe import describe_slurm
    from simmodel.twin.slurm.rest import SlurmRest

    found = describe_slurm(
        options.told,
        commands=SlurmCommands(conf=options.conf),
        rest=None if options.rest is None else SlurmRest(options.rest),
        local=zone(options.timezone) if options.timezone else None,
        origin=options.origin,
    )
    print(found.toml(), end="")
    if not options.quiet:
        for each in found.unsupported:
            print(f"not expressed: {printable(str(each))}", file=sys.stderr)
