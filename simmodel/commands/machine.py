"""``simmodel machine``: run tasks on a heterogeneous machine under a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.outputs import (
    DISPLAY,
    database,
    document,
    files,
    log_name,
    page,
    picture,
    plot,
    table,
    write_and_say,
)
from simmodel.commands.shared import (
    HETSIM,
    REPAIR,
    SEED,
    SET,
    TRUST,
    UNTIL,
    WORKLOAD,
    changed_platform,
    kind_arguments,
    kind_options,
    platform_for,
    see_working_folder,
    with_changes,
)
from simmodel.commands.values import argument, command, group, output, source

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult

__all__ = ["work_label"]


@command(
    "machine",
    argument("platform PLATFORM", "a file, or a name from 'simmodel list platforms'", source),
    argument("workload WORKLOAD", WORKLOAD, source),
    argument("--policy NAME", "a name from 'simmodel list policies' (default: hrr)", default="hrr"),
    group("simulation", HETSIM, REPAIR, kind_arguments("tasks"), SET, UNTIL, SEED, TRUST),
    group("display", DISPLAY, argument("--critical", "print the critical path, step by step")),
    files(
        table("one line per task, with the end of each phase", "schedule"),
        document("metrics, counts and the scenario, which repeats the run"),
        database(),
        argument("--trace OUT.json", "a trace for ui.perfetto.dev", output),
        plot("the run on one page", "overview.png"),
        page(),
    ),
    examples=(
        "simmodel machine hetsim-slow-setup layered:n=40,fat=0.5 --policy heft --plot run.png",
        "simmodel machine a100x4 random:tasks=30 --policy earliest-finish --critical",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Run tasks on a machine of processors, memory pools and links under a policy and print a summary."""
    from simmodel.runs.scenario import simulate
    from simmodel.scheduling.registry import policy

    machine, kind = platform_for("tasks", options.platform, trust=options.trust)
    see_working_folder(options.policy)
    policy(options.policy, kind.asks)
    result = simulate(
        changed_platform(options, machine),
        options.workload,
        options.policy,
        seed=options.seed,
        progress=options.progress,
        name=with_changes(options, f"{work_label(options.workload)} under {options.policy}"),
        until=options.until,
        **kind_options(options, kind),
        **({} if options.config is None else {"config": options.config}),
    )
    said = [result.summary()]
    if options.critical:
        said += ["", *critical_lines(result)]
    write_and_say(
        options,
        said,
        schedule=result.schedule_csv,
        json=result.to_json,
        db=lambda path: result.to_sqlite(path, force=options.force),
        trace=result.to_perfetto,
        plot=picture(result.plot.overview),
        html=result.to_html,
    )


def work_label(workload: str) -> str:
    """Return the name of work: of a file without folder and ending, any other text unchanged."""
    return workload if "=" in workload or not Path(workload).suffix else log_name(workload)


def critical_lines(result: MachineResult) -> list[str]:
    """Return the critical path of the run as the lines of a table."""
    from simmodel.foundation.display import text_table
    from simmodel.metrics.workflow import number_text

    rows = [["from", "to", "task", "processor", "phase", "because of"]]
    for row in result.critical_path().rows():
        times = [number_text(row[at]) for at in ("start", "end")]
        cause = f"{row['cause']} {row['after']}".strip()
        rows.append([*times, str(row["task"]), row["processor"], row["phase"], cause])
    return text_table(rows, left=range(2, len(rows[0])))
