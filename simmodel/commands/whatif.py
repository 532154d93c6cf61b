"""``simmodel whatif``: what would become of a snapshot under several policies?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.shared import (
    add_workers,
    at_least_one,
    check_outputs,
    process_pool,
    seconds,
    seed,
    split_names,
    write_and_say,
)

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("whatif", help="compare policies from a snapshot on", description=run.__doc__)
    parser.add_argument("snapshot", type=Path, metavar="SNAPSHOT.json", help="see 'simmodel batch --snapshot'")
    parser.add_argument("--policies", required=True, metavar="A,B,C", help="names, with commas between them")
    parser.add_argument("--objective", default="raw:wait_mean", metavar="TERMS", help="default: raw:wait_mean")
    parser.add_argument("--horizon", type=seconds, metavar="S", help="simulate so long (default: until all is over)")
    parser.add_argument("--deadline", type=seconds, metavar="S", help="wall-clock time; what is late does not count")
    parser.add_argument(
        "--arrivals",
        metavar="NAME|FILE",
        help="what is still to come: TOML of generator settings, drawn from the snapshot on, or a log, as it says",
    )
    parser.add_argument("--samples", type=at_least_one, default=1, metavar="N", help="drawn arrivals (default: 1)")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="of what is drawn (default: 0)")
    add_workers(parser)
    parser.add_argument("--progress", action="store_true", help="show a bar")
    files = parser.add_argument_group("files to write")
    files.add_argument("--json", type=Path, metavar="OUT.json", help="outcomes, and what each policy starts now")
    files.add_argument("--table", type=Path, metavar="OUT.csv", help="all measures, one line a policy")
    files.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=Path("whatif.png"),
        metavar="OUT.png",
        help="the measures as bars (default: whatif.png)",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Simulate a snapshot under several policies, and say which is best and what it starts now."""
    from simmodel.errors import InputError, SimmodelError
    from simmodel.futures.executors import stop_workers
    from simmodel.futures.whatif import what_if

    check_outputs(options, "json", "table", "plot")
    if options.samples > 1 and options.arrivals is None:
        raise InputError("--samples is of what is drawn: --arrivals expected, found none")
    policies = split_names(options.policies)
    # What blocks in a process of its own can be left at the deadline.
    with process_pool(
        options.workers, apart=options.deadline is not None, most=len(policies) * options.samples
    ) as executor:
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
        )
        if executor is not None and any(each.status == "unfinished" for each in found):
            stop_workers(executor)
    write_and_say(
        [f"{options.snapshot.name}, {found.summary()}"],
        options,
        {
            "json": found.to_json,
            "table": found.table.to_csv,
            "plot": lambda path: found.plot().savefig(path, dpi=120),
        },
        indent="",
    )
    if found.best is None:
        raise SimmodelError("no policy is finished")


def _arrivals(given: str | None) -> Any:
    """Return settings, to be drawn from, or the workload of a log."""
    if given is None:
        return None
    from simmodel.catalogue import bundled_file, load_workload

    path = bundled_file("workloads", given) or Path(given)
    if path.suffix != ".toml":
        return load_workload(given)
    from simmodel.generators.settings import settings_of

    return settings_of(path)
