"""``simmodel explore``: vary policies, platforms, workloads and seeds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.machine import WORKLOAD, add_config
from simmodel.commands.options import add_kind_options, kind_options, options_of
from simmodel.commands.shared import add_workers, check_outputs, process_pool, seconds, split_names, write_and_say

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("explore", help="vary policies, platforms and seeds", description=run.__doc__)
    parser.add_argument("--platforms", required=True, metavar="A,B,C", help="names or files, with commas between them")
    parser.add_argument("--workloads", required=True, nargs="+", metavar="WORKLOAD", help=WORKLOAD)
    parser.add_argument("--policies", required=True, metavar="A,B,C", help="names, with commas between them")
    parser.add_argument(
        "--seeds", type=_seeds, default=10, metavar="N|A,B,C", help="how many, or which with commas (default: 10)"
    )
    parser.add_argument("--metrics", metavar="A,B,C", help="what the table and the picture show; files hold all")
    parser.add_argument("--level", type=_share, default=0.95, metavar="P", help="of the intervals (default: 0.95)")
    rules = parser.add_argument_group("the rules")
    add_config(rules)
    add_kind_options(rules, [*options_of("tasks"), *options_of("jobs")])
    rules.add_argument("--until", type=seconds, metavar="T", help="stop at this instant")
    add_workers(parser)
    parser.add_argument("--progress", action="store_true", help="show a bar")
    files = parser.add_argument_group("files to write")
    files.add_argument("--table", type=Path, metavar="OUT.csv", help="means and intervals, one line a combination")
    files.add_argument("--samples", type=Path, metavar="OUT.csv", help="all metrics, one line a run")
    files.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=Path("exploration.png"),
        metavar="OUT.png",
        help="means with their intervals (default: exploration.png)",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Run every combination of platforms, workloads, policies and seeds, and compare means with their intervals."""
    from simmodel.catalogue import load_platform
    from simmodel.errors import InputError, unknown
    from simmodel.experiments.exploration import explore
    from simmodel.metrics.comparison import METRICS_OF
    from simmodel.systems.kinds import kind_of_platform, work_of

    check_outputs(options, "table", "samples", "plot")
    names = split_names(options.platforms)
    if len(set(names)) < len(names):
        raise InputError(f"--platforms: each platform once expected, found {options.platforms!r}")
    platforms = {name: load_platform(name) for name in names}
    metrics = None if options.metrics is None else split_names(options.metrics)
    if metrics == []:
        raise InputError(f"--metrics: at least one expected, found {options.metrics!r}")
    given: dict[str, Any] = {} if options.config is None else {"config": options.config}
    for spec in platforms.values():
        given |= kind_options(options, kind_of_platform(spec))
        for name in metrics or ():
            if name not in (known := METRICS_OF[work_of(spec)]):
                raise unknown("metric", name, known)
    policies = split_names(options.policies)
    seeds = options.seeds if isinstance(options.seeds, int) else len(options.seeds)
    runs = len(platforms) * len(options.workloads) * len(policies) * seeds
    with process_pool(options.workers, most=runs) as executor:
        found = explore(
            platforms,
            options.workloads,
            policies,
            seeds=options.seeds,
            executor=executor,
            level=options.level,
            progress=options.progress,
            until=options.until,
            **given,
        )
    write_and_say(
        [repr(found).strip("<>"), "", found.summary(metrics)],
        options,
        {
            "table": found.table.to_csv,
            "samples": found.samples.to_csv,
            "plot": lambda path: found.plot(metrics).savefig(path, dpi=120),
        },
        indent="",
    )


def _seeds(text: str) -> int | list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if (
        not parts
        or not all(part.isdecimal() for part in parts)
        or (len(parts) == 1 and "," not in text and int(parts[0]) < 1)
    ):
        raise argparse.ArgumentTypeError(f"a number from 1 on, or numbers with commas, expected, found {text!r}")
    numbers = [int(part) for part in parts]
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"each seed once expected, found {text!r}")
    return int(parts[0]) if len(parts) == 1 and "," not in text else [int(part) for part in parts]


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"a confidence between 0 and 1 expected, found {text}")
    return value
