"""``simmodel machine``: run tasks on a heterogeneous machine under a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.options import TakesArguments, add_kind_options, kind_options, options_of, platform_for
from simmodel.commands.outputs import (
    add_database,
    add_output,
    add_picture,
    label,
    picture,
    write_and_say,
)
from simmodel.commands.progress import add_progress
from simmodel.commands.shared import add_seed, add_trust, add_until, see_working_folder

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult

from simmodel.commands.values import source

__all__ = ["EXAMPLES", "WORKLOAD", "add", "add_config", "run", "work_label"]

EXAMPLES = (
    "simmodel machine hetsim-slow-setup layered:n=40,fat=0.5 --policy heft --plot run.png",
    "simmodel machine a100x4 random:tasks=30 --policy earliest-finish --critical",
)
WORKLOAD = "a file, a name from 'simmodel list workloads', or a generator such as layered:n=40,fat=0.5"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "platform", type=source, metavar="PLATFORM", help="a file, or a name from 'simmodel list platforms'"
    )
    parser.add_argument("workload", type=source, metavar="WORKLOAD", help=WORKLOAD)
    parser.add_argument(
        "--policy", default="hrr", metavar="NAME", help="a name from 'simmodel list policies' (default: hrr)"
    )
    rules = parser.add_argument_group("simulation")
    add_config(rules)
    add_kind_options(rules, options_of("tasks"))
    add_until(rules)
    add_seed(rules)
    add_trust(rules)
    add_progress(parser).add_argument("--critical", action="store_true", help="print the critical path, step by step")
    files = parser.add_argument_group("output files")
    add_output(files, "schedule", "OUT.csv", "one line per task, with the end of each phase")
    add_output(files, "json", "OUT.json", "metrics, counts and the scenario, which repeats the run")
    add_database(files)
    add_output(files, "trace", "OUT.json", "a trace for ui.perfetto.dev")
    add_picture(files, "the run on one page")


def add_config(parser: TakesArguments) -> None:
    """Add the configuration that completes a machine or its work."""
    parser.add_argument(
        "--config", type=source, metavar="FILE", help="HetSim's configuration: ranges of drawn work, reconfiguration"
    )


def run(options: argparse.Namespace) -> None:
    """Run tasks on a machine of processors, memory pools and links under a policy and print a summary."""
    from simmodel.runs.simulating import simulate
    from simmodel.scheduling.registry import policy

    machine, kind = platform_for("tasks", options.platform, trust=options.trust)
    see_working_folder(options.policy)
    policy(options.policy)
    result = simulate(
        machine,
        options.workload,
        options.policy,
        seed=options.seed,
        progress=options.progress,
        name=f"{work_label(options.workload)} under {options.policy}",
        until=options.until,
        **kind_options(options, kind),
        **({} if options.config is None else {"config": options.config}),
    )
    said = [result.summary()]
    if options.critical:
        said += ["", *critical_lines(result)]
    write_and_say(
        said,
        options,
        {
            "schedule": result.schedule_csv,
            "json": result.to_json,
            "db": lambda path: result.to_sqlite(path, force=options.force),
            "trace": result.to_perfetto,
            "plot": picture(result.plot.overview),
        },
    )


def work_label(workload: str) -> str:
    """Return the name of work: of a file without folder and ending, any other text unchanged."""
    return workload if "=" in workload or not Path(workload).suffix else label(workload)


def critical_lines(result: MachineResult) -> list[str]:
    """Return the critical path of the run as the lines of a table."""
    from simmodel.metrics.workflow_report import number_text

    rows = [["from", "to", "task", "processor", "phase", "because of"]]
    for row in result.critical_path().rows():
        cause = f"{row['cause']} {row['after']}".strip()
        rows.append(
            [
                *(number_text(row[at]) for at in ("start", "end")),
                str(row["task"]),
                row["processor"],
                row["phase"],
                cause,
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            f"{text:>{width}}" if i < 2 else f"{text:<{width}}"
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
