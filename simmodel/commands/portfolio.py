"""``simmodel portfolio``: run a log under a portfolio of policies, and under each of them alone."""

from __future__ import annotations

import argparse
import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.shared import (
    add_log,
    add_machine,
    add_rules,
    add_workers,
    check_outputs,
    label,
    process_pool,
    run_options,
    seconds,
    see_working_folder,
    split_names,
    write_and_say,
)
from simmodel.errors import InputError

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands
    from simmodel.experiments.portfolio_comparison import PortfolioComparison

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "portfolio", help="let the policy decide whose simulated future is best", description=run.__doc__
    )
    add_log(parser)
    chosen = parser.add_argument_group("the portfolio")
    chosen.add_argument(
        "--policies", default="wfp,fcfs,sjf", metavar="A,B,C", help="the candidates (default: wfp,fcfs,sjf)"
    )
    chosen.add_argument(
        "--backfill",
        choices=("none", "easy", "conservative", "conservative-keep"),
        default="easy",
        help="of the candidates that are orders (default: easy)",
    )
    chosen.add_argument(
        "--objective",
        default="schedtwin",
        metavar="TEXT",
        help="less is better: such as 0.5*wait_max+0.5*slowdown_mean, raw:wait_mean or MODULE:FUNCTION (default: a "
        "quarter each of wait_max, slowdown_max, wait_mean and slowdown_mean, from 0 of the best to 1 of the worst)",
    )
    chosen.add_argument("--ties", metavar="A,B,C", help="whom equals go to (default: as --policies)")
    chosen.add_argument("--interval", type=seconds, metavar="S", help="how long a choice stands (default: no time)")
    chosen.add_argument(
        "--hysteresis",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="by how much another must be better (default: 0)",
    )
    chosen.add_argument("--horizon", type=seconds, metavar="S", help="how far to simulate (default: to the end)")
    add_machine(parser)
    add_rules(parser)
    add_workers(parser)
    files = parser.add_argument_group("files to write")
    files.add_argument(
        "--schedule", type=Path, metavar="OUT.csv", help="one line a job, with the policy that started it"
    )
    files.add_argument("--choices", type=Path, metavar="OUT.csv", help="each score, and who was chosen when")
    files.add_argument("--json", type=Path, metavar="OUT.json", help="all measures, and what repeats the run")
    files.add_argument("--db", type=Path, metavar="OUT.sqlite", help="all tables of the run, as an SQLite database")
    files.add_argument(
        "--plot", type=Path, metavar="OUT.png", help="scores, starts and the radar chart (.png, .pdf, .svg)"
    )
    parser.set_defaults(command=run)


def _share(text: str) -> float:
    value = float(text)
    if not (value >= 0 and isfinite(value)):
        raise argparse.ArgumentTypeError(f"a share from 0 on expected, found {text}")
    return value


def _text(options: argparse.Namespace) -> str:
    """Return the portfolio as a text, so that what repeats the run holds all of it."""
    from simmodel.scheduling.objectives import objective

    see_working_folder(options.objective)
    goal = objective(options.objective)
    policies = split_names(options.policies)
    if not policies:
        raise InputError(f"--policies: at least one expected, found {options.policies!r}")
    said = [*policies, f"backfill={options.backfill}"]
    said.append(f"objective={options.objective.strip() if goal.function is not None else goal}")
    if options.ties is not None:
        said.append(f"ties={'>'.join(split_names(options.ties))}")
    said += [f"{name}={value!r}" for name in ("interval", "hysteresis", "horizon") if (value := getattr(options, name))]
    return f"portfolio({', '.join(said)})"


def run(options: argparse.Namespace) -> None:
    """Run a log under a portfolio of policies, and under each of them alone.

    At each decision the portfolio simulates each candidate from what a scheduler knows, and the one whose future is
    best for the jobs that wait decides.
    """
    from simmodel.experiments.portfolio_comparison import compare_portfolio

    check_outputs(options, "schedule", "choices", "json", "db", "plot")
    platform, given = run_options(options)
    with process_pool(options.workers, most=len(split_names(options.policies)) + 1) as executor:
        found = compare_portfolio(platform, options.log, _text(options), executor=executor, **given)
    result = found.portfolio
    assert result.choices is not None
    head = f"{label(options.log)}: {len(result.jobs):,} jobs on {result.processors:,} processors"
    time = result.decisions
    choices = len(result.choices) // (len(found.results) - 1)
    spent = (
        f"{choices:,} choices; a decision took {1e3 * time['mean']:.3g} ms on average, {1e3 * time['max']:.3g} at most"
    )
    write_and_say(
        [head, f"objective: {found.objective}", "", found.summary(), "", spent, *result.report.lines()],
        options,
        {
            "schedule": result.schedule_csv,
            "choices": result.choices.to_csv,
            "json": lambda path: _write_json(found, path),
            "db": result.to_sqlite,
            "plot": lambda path: found.plot().savefig(path, dpi=120),
        },
    )


def _write_json(found: PortfolioComparison, path: Path) -> None:
    from simmodel.results.stores import plain, write_text

    document = {**json.loads(found.portfolio.to_json()), "portfolio": plain(found.document())}
    write_text(path, json.dumps(document, indent=2) + "\n")
