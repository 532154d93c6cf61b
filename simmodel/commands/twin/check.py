"""``simmodel twin check``: try the parts of a configuration."""

from __future__ import annotations

import argparse

from simmodel.commands.shared import add_trust

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin check twin.toml",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the action."""
    parser.add_argument("config", metavar="CONFIG", help="the configuration (TOML)")
    add_trust(parser)


def run(options: argparse.Namespace) -> None:
    """Try the parts of a configuration: the platform, the policies, the source and the files it writes."""
    from contextlib import closing

    from simmodel.twin.config import read_config
    from simmodel.twin.source import RemoteSource
    from simmodel.writing import check_output

    config = read_config(options.config)
    spec = config.spec(trust=options.trust)
    print(f"platform {config.platform}: {spec.processors:,} processors in {len(spec.partitions)} partitions")
    if config.advise is None:
        print(f"policy {config.policy}; nothing is advised")
    else:
        fallback = config.advise.fallback or config.policy
        print(f"policy {config.policy}; advice by {config.advise.policy}, if late by {fallback}")
    with closing(config.settings().open(config.cluster, config.folder_path)) as source:
        for sentence in source.check() if isinstance(source, RemoteSource) else ():
            print(sentence)
        report = source.report()
    told = "events alone" if report is None else f"a report of {len(report.jobs):,} jobs at {report.time:g} s"
    print(f"source {config.source['kind']} of {config.cluster}: {told}")
    if config.audit is not None:
        check_output(config.path(config.audit))
        print(f"audit log {config.audit}: can be written")
