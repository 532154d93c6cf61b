"""``simmodel twin describe`` and ``install-hooks``: a scheduler as a platform, and scripts that report its events."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.extending import argument, command, group, number, one_of, source

if TYPE_CHECKING:
    from simmodel_site.twin.acting.actions import ActSettings
    from simmodel_site.twin.described import Described

__all__ = ["describe", "install_hooks"]


def _described(text: str) -> str:
    """Read the kind of a source whose scheduler describes its cluster."""
    from simmodel.extending import unknown
    from simmodel_site.twin.sources import SOURCES, DescribingSource

    if text in SOURCES and issubclass(SOURCES[text], DescribingSource):
        return text
    known = [name for name, settings in SOURCES.items() if issubclass(settings, DescribingSource)]
    raise argparse.ArgumentTypeError(str(unknown("scheduler", text, known)))


@command(
    "twin describe",
    argument("scheduler SCHEDULER", "slurm, pbs, or the kind of another source that can be described", _described),
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
def describe(options: argparse.Namespace) -> None:
    """Print the platform, as TOML, that the cluster of a scheduler amounts to; nothing is changed there.

    Its comments name the policy equivalent to the scheduler's settings, and list settings that no platform expresses.
    """
    import sys

    from simmodel.catalogue import load_workload
    from simmodel.extending import printable

    found = _told(options)
    if options.log is not None:
        found = found.explained_by(load_workload(options.log))
    print(found.toml(), end="")
    if not options.quiet:
        for each in found.unsupported:
            print(f"not expressed: {printable(str(each))}", file=sys.stderr)


def _told(options: argparse.Namespace) -> Described:
    """Return the description of a cluster by its scheduler, or by saved answers of it."""
    from simmodel import InputError
    from simmodel.extending import zone
    from simmodel_site.twin.sources import DescribingSource, source_settings

    if options.scheduler == "pbs":
        for name in ("rest", "timezone", "origin"):
            if getattr(options, name):
                raise InputError("is for slurm alone", place=f"--{name}")
    given = {"kind": options.scheduler, "conf": options.conf, "socket": options.rest}
    settings = source_settings({name: value for name, value in given.items() if value is not None})
    assert isinstance(settings, DescribingSource)
    local = zone(options.timezone) if options.timezone else None
    return settings.describe(options.told, local=local, origin=options.origin)


@command(
    "twin install-hooks",
    argument("folder FOLDER", "the folder of the scripts; it is made if it is missing"),
    argument("--cluster NAME", "the name of the cluster in the events", required=True),
    argument(
        "--scheduler NAME",
        "slurm or pbs (default: slurm)",
        one_of(("slurm", "pbs"), "scheduler"),
        default="slurm",
    ),
    group(
        "stream",
        argument(
            "--stream URL",
            "redis://HOST:PORT, rediss://HOST:PORT with TLS, or unix:///PATH (default: redis://127.0.0.1:6379)",
            default="redis://127.0.0.1:6379",
        ),
        argument("--key KEY", "the key of the stream (default: simmodel:CLUSTER)"),
        argument("--user USER", "the user at the server (default: its default user)"),
        argument("--password-file FILE", "the password, which the scripts read at each call"),
        argument("--ca-file FILE", "the authorities to trust (default: those of the system)"),
        argument("--certificate-file FILE", "the own certificate, if the server asks for one"),
        argument("--key-file FILE", "its key"),
    ),
    group(
        "hosts of the scheduler",
        argument("--spool FILE", "what keeps entries while the stream is away (default: FOLDER/spool/entries)"),
        argument("--python PATH", "the interpreter (default: /usr/bin/python3)", default="/usr/bin/python3"),
        argument("--programs FOLDER", "PBS's commands on the host of its server (default: /opt/pbs/bin)"),
        argument(
            "--hold CONFIG",
            "the configuration of a twin in mode hold-and-release: batch jobs are held while it is alive",
            source,
        ),
    ),
    examples=(
        "simmodel twin install-hooks hooks --cluster alps --stream redis://redis.example:6379",
        "simmodel twin install-hooks hook --scheduler pbs --cluster alps --stream redis://redis.example:6379",
    ),
)
def install_hooks(options: argparse.Namespace) -> None:
    """Write the scripts that send events of Slurm or PBS to a stream, and print the lines that have them called.

    The lines are those for slurm.conf, or those that an administrator gives to qmgr of PBS. Nothing else is written, in
    particular no file of the scheduler. The scripts need sh and Python's standard library.
    """
    from simmodel import InputError
    from simmodel_site.twin.hooks import install_hooks, install_pbs_hook
    from simmodel_site.twin.streams import RedisSettings

    server = RedisSettings(
        url=options.stream,
        user=options.user,
        password_file=options.password_file,
        ca_file=options.ca_file,
        certificate_file=options.certificate_file,
        key_file=options.key_file,
    )
    if options.programs is not None and options.scheduler != "pbs":
        raise InputError("is for --scheduler pbs alone", place="--programs")
    arguments: Any = (options.folder, options.cluster, server, options.key)
    hosts: dict[str, Any] = {"spool": options.spool, "python": options.python, "hold": _held_for(options.hold)}
    if options.scheduler == "pbs":
        lines = install_pbs_hook(*arguments, **hosts, programs=options.programs or "/opt/pbs/bin")
    else:
        lines = install_hooks(*arguments, **hosts)
    print(lines, end="")


def _held_for(path: str | None) -> ActSettings | None:
    """Return the settings of the twin of a configuration, with the whole path of its heartbeat."""
    if path is None:
        return None
    import attrs

    from simmodel import InputError
    from simmodel_site.twin.config import read_config

    config = read_config(path)
    if config.act is None or config.act.mode != "hold-and-release":
        raise InputError("must be 'hold-and-release': jobs are held for no other mode", path, "act.mode")
    return attrs.evolve(config.act, heartbeat=str(config.path(config.act.heartbeat).absolute()))
