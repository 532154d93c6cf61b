"""``simmodel whatif``: compare policies by simulating them from a snapshot on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simmodel.commands.outputs import add_output, add_picture, picture, write_and_say
from simmodel.commands.progress import add_progress
from simmodel.commands.shared import POLICIES, add_seed, add_trust, add_workers, process_pool, split_names
from simmodel.commands.values import at_least_one, seconds, source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel batch lublin-128-week --snapshot now.json --at 3d",
    "simmodel whatif now.json --policies fcfs,easy,sjf+easy --horizon 12h",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "snapshot", type=source, metavar="SNAPSHOT.json", help="a file that 'simmodel batch --snapshot' wrote"
    )
    parser.add_argument("--policies", required=True, metavar="A,B,C", help=POLICIES)
    parser.add_argument(
        "--objective", default="raw:wait_mean", metavar="TERMS", help="the score to minimise (default: raw:wait_mean)"
    )
    parser.add_argument("--horizon", type=seconds, metavar="TIME", help="how far to simulate (default: to the end)")
    parser.add_argument(
        "--deadline", type=seconds, metavar="TIME", help="wall-clock time after which unfinished simulations are left"
    )
    parser.add_argument(
        "--arrivals",
        type=source,
        metavar="NAME|FILE",
        help="jobs still to be submitted: a log, or generator settings (TOML) to draw them from",
    )
    parser.add_argument(
        "--samples", type=at_least_one, default=1, metavar="N", help="samples of the drawn arrivals (default: 1)"
    )
    add_seed(parser, "seed of the drawn arrivals")
    add_workers(parser)
    add_trust(parser)
    add_progress(parser)
    files = parser.add_argument_group("output files")
    add_output(files, "json", "OUT.json", "outcomes, and the jobs that each policy starts now")
    add_output(files, "table", "OUT.csv", "all measures, one line per policy")
    add_picture(files, "the measures as bars", usual="whatif.png")


def run(options: argparse.Namespace) -> None:
    """Simulate a snapshot under several policies; print the best one and the jobs that it starts now."""
    from simmodel.errors import InputError, SimmodelError
    from simmodel.futures.executors import stop_workers
    from simmodel.futures.whatif import what_if

    if options.samples > 1 and options.arrivals is None:
        raise InputError("--samples needs --arrivals")
    policies = split_names(options.policies)
    # A policy that blocks can be left at the deadline only if it runs in another process.
    with process_pool(options, apart=options.deadline is not None, most=len(policies) * options.samples) as executor:
        found = what_if(
            options.snapshot,
            policies,
            horizon=options.horizon,
            executor=executor,
            deadline=options.deadline,
            arrivals=_arrivals(options.arrivals),
            samples=options.samples,
            seed=options.seed,
            objective=options.objective,
            progress=options.progress,
            trust=options.trust,
        )
        if executor is not None and any(each.status == "unfinished" for each in found):
            stop_workers(executor)
    write_and_say(
        [f"{Path(options.snapshot).name}, {found.summary()}"],
        options,
        {
            "json": found.to_json,
            "table": found.table.to_csv,
            "plot": picture(found.plot),
        },
        indent="",
    )
    if not any(each.counted for each in found.outcomes):
        raise SimmodelError("no policy finished")


def _arrivals(given: str | None) -> Any:
    """Return generator settings, or the workload of a log."""
    if given is None:
        return None
    from simmodel.catalogue import bundled_file, load_workload

    path = bundled_file("workloads", given) or Path(given)
    if path.suffix != ".toml":
        return load_workload(given)
    from simmodel.generators.settings import settings_of

    return settings_of(path)
