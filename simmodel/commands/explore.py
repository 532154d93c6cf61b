"""``simmodel explore``: vary policies, platforms, workloads and seeds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simmodel.commands.outputs import PROGRESS, document, files, picture, plot, table, write_and_say
from simmodel.commands.shared import (
    HETSIM,
    POLICIES,
    READING,
    STOP,
    TRUST,
    UNTIL,
    WORKERS,
    WORKLOAD,
    kept_runs,
    kept_study,
    kind_arguments,
    kind_options,
    process_pool,
    seeds,
    split_names,
)
from simmodel.commands.values import argument, command, group, output, share, source


@command(
    "explore",
    argument(
        "--platforms A,B,C",
        "files, names from 'simmodel list platforms' or numbers of processors",
        source,
        required=True,
    ),
    argument("--workloads WORKLOAD", f"separated by spaces; each is {WORKLOAD}", source, nargs="+", required=True),
    READING,
    argument("--policies A,B,C", POLICIES, required=True),
    argument("--seeds N|A,B,C", "number of seeds, or the seeds (default: 10)", seeds),
    STOP,
    argument("--metrics A,B,C", "metrics in the printed table and the picture; the files have all"),
    argument("--level P", "confidence level of the intervals (default: 0.95)", share, default=0.95),
    WORKERS,
    kept_study("the same command goes on"),
    group("simulation", HETSIM, kind_arguments("tasks", "jobs"), UNTIL, TRUST),
    PROGRESS,
    files(
        table("means and intervals, one line per combination"),
        document("the sample, metrics and differences"),
        argument("--samples OUT.csv", "all metrics, one line per run", output),
        plot("means with their intervals", "exploration.png"),
    ),
    examples=(
        "simmodel explore --platforms hetsim-slow,hetsim-fast --workloads layered:n=40 --policies hrr,heft --seeds 5",
        "simmodel explore --platforms small --workloads poisson-mm4 --policies fcfs,easy --seeds 2 --until 2h",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Run every combination of platforms, workloads, policies and seeds; print means with confidence intervals."""
    from simmodel.catalogue import load_platform
    from simmodel.experiments.comparison import explore
    from simmodel.foundation.errors import InputError, unknown
    from simmodel.metrics.comparison import METRICS_OF
    from simmodel.platform import ClusterSpec
    from simmodel.systems.kinds import kind_of_platform, work_of

    names = split_names(options.platforms)
    if len(set(names)) < len(names):
        raise InputError(f"--platforms: must name each platform once, got {options.platforms!r}")
    platforms = {
        name: ClusterSpec.simple(int(name)) if name.isdecimal() else load_platform(name, trust=options.trust)
        for name in names
    }
    metrics = None if options.metrics is None else split_names(options.metrics)
    if metrics == []:
        raise InputError(f"--metrics: must name at least one metric, got {options.metrics!r}")
    given: dict[str, Any] = {} if options.config is None else {"config": options.config}
    for spec in platforms.values():
        given |= kind_options(options, kind_of_platform(spec))
        for name in metrics or ():
            if name not in (known := METRICS_OF[work_of(spec)]):
                raise unknown("metric", name, known)
    policies = split_names(options.policies)
    study = None if options.study is None else Path(options.study)
    with process_pool(options) as executor, kept_runs(study, "the same command goes on"):
        found = explore(
            platforms,
            options.workloads,
            policies,
            seeds=options.seeds,
            stop=options.stop,
            budget=options.budget,
            study=study,
            force=options.force,
            executor=executor,
            level=options.level,
            progress=options.progress,
            until=options.until,
            **given,
        )
    write_and_say(
        options,
        [repr(found).strip("<>"), "", found.summary(metrics)],
        indent="",
        table=found.table.to_csv,
        samples=found.samples.to_csv,
        json=found.to_json,
        plot=picture(lambda: found.plot(metrics)),
    )
