"""``simmodel whatif``: compare policies by simulating them from a snapshot on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simmodel.commands.outputs import PROGRESS, document, files, picture, plot, table, write_and_say
from simmodel.commands.shared import HORIZON, POLICIES, READING, TRUST, WORKERS, process_pool, seed_of, split_names
from simmodel.commands.values import argument, at_least_one, command, seconds, source


@command(
    "whatif",
    argument("snapshot SNAPSHOT.json", "a file that 'simmodel batch --snapshot' wrote", source),
    argument("--policies A,B,C", POLICIES, required=True),
    argument("--objective TERMS", "the score to minimise (default: raw:wait_mean)", default="raw:wait_mean"),
    HORIZON,
    argument("--deadline TIME", "wall-clock time after which unfinished simulations are left", seconds),
    argument(
        "--arrivals NAME|FILE",
        "jobs still to be submitted: a log, or generator settings (TOML) to draw them from",
        source,
    ),
    READING,
    argument("--samples N", "samples of the drawn arrivals (default: 1)", at_least_one, default=1),
    seed_of("seed of the drawn arrivals"),
    WORKERS,
    TRUST,
    PROGRESS,
    files(
        document("outcomes, and the jobs that each policy starts now"),
        table("all measures, one line per policy"),
        plot("the measures as bars", "whatif.png"),
    ),
    examples=(
        "simmodel batch lublin-128-week --snapshot now.json --at 3d",
        "simmodel whatif now.json --policies fcfs,easy,sjf+easy --horizon 12h",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Simulate a snapshot under several policies; print the best one and the jobs that it starts now."""
    from simmodel.foundation.errors import InputError, SimmodelError
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
    said = [f"{Path(options.snapshot).name}, {found.summary()}"]
    write_and_say(options, said, indent="", json=found.to_json, table=found.table.to_csv, plot=picture(found.plot))
    if not any(each.counted for each in found.outcomes):
        raise SimmodelError("no policy finished")


def _arrivals(given: str | None) -> Any:
    """Return generator settings, or the workload of a log."""
    if given is None:
        return None
    from simmodel.catalogue import load_workload
    from simmodel.catalogue.bundled import bundled_file

    path = bundled_file("workloads", given) or Path(given)
    if path.suffix != ".toml":
        return load_workload(given)
    from simmodel.generators.settings import settings_of

    return settings_of(path)
