"""``simmodel machine``: run tasks on a heterogeneous machine under a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.options import TakesArguments, add_kind_options, kind_options, options_of, platform_for
from simmodel.commands.shared import check_outputs, label, seconds, see_working_folder, seed, write_and_say

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands
    from simmodel.results.machine import MachineResult

__all__ = ["WORKLOAD", "add", "add_config", "run", "work_label"]

WORKLOAD = "a file, a name of 'simmodel list workloads', or random:tasks=..., database:tasks=..., layered:n=...,fat=..."


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("machine", help="run tasks on a machine under a policy", description=run.__doc__)
    parser.add_argument("platform", metavar="PLATFORM", help="a file, or a name of 'simmodel list platforms'")
    parser.add_argument("workload", metavar="WORKLOAD", help=WORKLOAD)
    parser.add_argument("--policy", default="hrr", metavar="NAME", help="default: hrr; see 'simmodel list policies'")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="of all random numbers (default: 0)")
    rules = parser.add_argument_group("the rules")
    add_config(rules)
    add_kind_options(rules, options_of("tasks"))
    rules.add_argument("--until", type=seconds, metavar="T", help="stop at this instant")
    parser.add_argument("--progress", action="store_true", help="show a bar")
    parser.add_argument("--critical", action="store_true", help="say what the makespan came from, step by step")
    files = parser.add_argument_group("files to write")
    files.add_argument("--schedule", type=Path, metavar="OUT.csv", help="one line a task, with the ends of its phases")
    files.add_argument("--json", type=Path, metavar="OUT.json", help="metrics, counts, and what repeats the run")
    files.add_argument("--db", type=Path, metavar="OUT.sqlite", help="all tables, as an SQLite database")
    files.add_argument("--trace", type=Path, metavar="OUT.json", help="a trace for ui.perfetto.dev")
    files.add_argument("--plot", type=Path, metavar="OUT.png", help="the run on one page (.png, .pdf, .svg)")
    parser.set_defaults(command=run)


def add_config(parser: TakesArguments) -> None:
    """Add the configuration that completes a machine or its work."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="of HetSim: what work is drawn from, reconfiguration"
    )


def run(options: argparse.Namespace) -> None:
    """Run tasks on a machine of processors, memory pools and links under a policy, and say what happened."""
    from simmodel.runs.simulating import simulate
    from simmodel.scheduling.registry import policy

    check_outputs(options, "schedule", "json", "db", "trace", "plot")
    machine, kind = platform_for("tasks", options.platform)
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
            "db": result.to_sqlite,
            "trace": result.to_perfetto,
            "plot": lambda path: result.plot.overview().savefig(path, dpi=120),
        },
    )


def work_label(workload: str) -> str:
    """Return what work is called: a file without folder and ending, a text as it is."""
    return workload if "=" in workload or not Path(workload).suffix else label(workload)


def critical_lines(result: MachineResult) -> list[str]:
    """Return the critical path of what happened as a table of text."""
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
