"""``simmodel meta``: run logs on several clusters under a broker."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.options import add_kind_options, kind_options
from simmodel.commands.shared import (
    add_policy,
    add_rules,
    add_workers,
    at_least_one,
    check_outputs,
    chosen_policy,
    label,
    process_pool,
    seed,
    split_names,
    write_and_say,
)
from simmodel.errors import InputError
from simmodel.platform.options import BrokerOptions

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands
    from simmodel.work.workload import Workload

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("meta", help="run logs on several clusters under a broker", description=run.__doc__)
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="one for all clusters, or one a cluster: files, or ready names"
    )
    parser.add_argument(
        "--clusters", required=True, metavar="A,B,...", help="of each the processors, a ready platform or a file"
    )
    parser.add_argument(
        "--broker",
        default="sgs-t",
        metavar="NAME[,NAME...]",
        help="default: sgs-t; see 'simmodel list brokers'; several are compared",
    )
    parser.add_argument("--slowdowns", metavar="X,Y,...", help="what multiplies times on each cluster (default: 1)")
    add_kind_options(parser, [BrokerOptions])
    parser.add_argument(
        "--ties", choices=("first", "least-loaded", "home", "random"), help="among equal clusters (default: first)"
    )
    parser.add_argument(
        "--repeat", type=at_least_one, default=1, metavar="N", help="runs of brokers that draw (default: 1)"
    )
    parser.add_argument(
        "--edges", type=seed, default=0, metavar="N", help="the first and the last N jobs do not count (default: 0)"
    )
    parser.add_argument("--align", action="store_true", help="let the first job of each log come at 0")
    add_policy(parser)
    add_rules(parser)
    add_workers(parser)
    files = parser.add_argument_group("files to write")
    files.add_argument("--json", type=Path, metavar="OUT.json", help="metrics, tables, and what repeats the runs")
    files.add_argument("--schedule", type=Path, metavar="OUT.csv", help="one line a job, of the last broker")
    files.add_argument("--plot", type=Path, metavar="OUT.png", help="the comparison on one page (.png, .pdf, .svg)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Run logs on several clusters under a broker, or under several, and compare waits by size and requested time."""
    from simmodel.experiments.broker_comparison import compare_brokers
    from simmodel.scheduling.labels import labelled
    from simmodel.systems.kinds import kind_named

    check_outputs(options, "json", "schedule", "plot")
    policy, _ = chosen_policy(options)
    clusters = [_cluster(text) for text in _parts(options.clusters, "--clusters")]
    brokers = split_names(options.broker)
    given = kind_options(options, kind_named("broker"))
    if options.slowdowns is not None:
        given["slowdowns"] = [_factor(text) for text in _parts(options.slowdowns, "--slowdowns")]
    logs = [_log(name, options.align) for name in options.logs]
    with process_pool(options.workers, most=len(brokers) * options.repeat) as executor:
        found = compare_brokers(
            clusters,
            logs[0] if len(logs) == 1 else logs,
            {name: with_ties(name, options.ties) for name in labelled(brokers, "broker", "brokers")},
            repeat=options.repeat,
            edges=options.edges,
            seed=options.seed,
            executor=executor,
            progress=options.progress,
            until=options.until,
            policies=policy,
            **given,
        )
    last = found[list(found.results)[-1]]
    title = f"{', '.join(map(label, options.logs))} on {len(clusters)} clusters under {', '.join(found.results)}"
    said = [title, found.summary(), *(f"  {line}" for line in last.report.lines())]
    write_and_say(
        said,
        options,
        {
            "json": found.to_json,
            "schedule": last.schedule_csv,
            "plot": lambda path: found.plot().savefig(path, dpi=120),
        },
    )


def with_ties(name: str, ties: str | None) -> str:
    """Return the name of a broker with a rule for ties, where it is one that compares and has no rule of its own.

    >>> with_ties("sgs-t", "home"), with_ties("least-loaded(jobs)", "home"), with_ties("random", "home")
    ('sgs-t(ties=home)', 'least-loaded(jobs, ties=home)', 'random')
    """
    from simmodel.policies.mapping import Lowest
    from simmodel.scheduling.registry import policy

    if ties is None or "ties=" in name or not isinstance(policy(name), Lowest):
        return name
    return f"{name.removesuffix(')')}, ties={ties})" if name.endswith(")") else f"{name}(ties={ties})"


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option}: a list with commas expected, found {text!r}")
    return parts


def _cluster(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--slowdowns: a number > 0 expected, found {text!r}") from None


def _log(name: str, align: bool) -> Workload | str:
    if not align:
        return name
    from simmodel.catalogue import load_workload
    from simmodel.work.transformations import shift

    log = load_workload(name)
    return shift(log, -float(log["submit"].min())) if len(log) else log
