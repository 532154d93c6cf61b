"""``simmodel batch``: replay a log of a batch system under a policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.commands.outputs import (
    database,
    document,
    files,
    live,
    log_name,
    page,
    picture,
    plot,
    table,
    watched,
    write_and_say,
)
from simmodel.commands.shared import LOG, MACHINE, POLICY, RULES, TOO_LONG, chosen_policy, run_options, with_changes
from simmodel.commands.values import argument, command, one_of, output, seconds

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.records.job_record import JobRecord
    from simmodel.work.table import Table
    from simmodel.work.workload import Workload


@command(
    "batch",
    LOG,
    POLICY,
    MACHINE,
    TOO_LONG,
    RULES,
    argument("--metrics energy", "add energy, its costs by each signal, and whose they are", one_of(("energy",))),
    files(
        table("one line per job; times as in the log", "schedule"),
        argument("--batsim OUT.csv", "one line per job with the columns of Batsim's jobs.csv", output),
        document("metrics, counts and the scenario, which repeats the run"),
        database(" or --stream"),
        argument(
            "--stream OUT",
            "read the log in chunks and write jobs as they end, to an SQLite file or a folder NAME.parquet",
            output,
        ),
        argument("--events", "record each state change too, for --db"),
        argument("--trace OUT.json", "a trace for ui.perfetto.dev", output),
        plot("the run on one page", "overview.png"),
        page(),
        live(),
        argument("--snapshot OUT.json", "the state at --at, for 'simmodel whatif'", output),
        argument("--at TIME", "time of the snapshot; the run stops there", seconds),
    ),
    examples=(
        "simmodel batch lublin-128-week --plot overview.png",
        "simmodel batch lublin-128-week --policy sjf+easy --until 2d --schedule -",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Replay a log of a batch system under a policy and print a summary."""
    from simmodel.foundation.errors import InputError
    from simmodel.runs.scenario import start

    if options.stream is not None:
        _refuse_with_stream(options)
    if options.at is not None:
        if options.snapshot is None:
            raise InputError("--at needs --snapshot")
        if options.until is not None:
            raise InputError("--at and --until exclude each other")
        options.until = options.at
    if options.snapshot is not None and options.until is None:
        raise InputError("--snapshot needs the time of the snapshot, --at")
    policy, name = chosen_policy(options)
    work, cluster = _work(options)
    platform, given = run_options(options, cluster)
    stream = None
    if options.stream is not None:
        from simmodel.results.streams import RecordStream

        stream = RecordStream(options.stream, force=options.force)
    simulation = start(
        platform,
        work,
        policy,
        events=options.events,
        name=with_changes(options, f"{log_name(options.log)} under {name}"),
        stream=stream,
        **given,
    )
    with watched(simulation, options.live):
        simulation.run()
        result = simulation.result()
        if options.stream is not None:
            said = [result.summary(), f"  jobs written to {options.stream}"]
            write_and_say(options, said, json=result.to_json)
            return
        signals = None
        if options.metrics is not None:
            from simmodel.metrics.power_and_energy import energy_by

            signals = given.get("signals", {})
        said = [result.summary() if signals is None else result.summary(signals=signals)]
        if signals is not None:
            parts = [name for name in ("user", "place") if name == "place" or name in result.jobs]
            parts = parts if len(result.places) > 1 else parts[:1]
            said += [str(_in_kwh(energy_by(result, part, signals))) for part in parts]
        begin = min(result.jobs["submit"].tolist(), default=0.0)
        if simulation.env.now < begin:
            said.append(f"  no job is submitted before {begin:.15g} s: --until and --at are instants of the log")
        write_and_say(
            options,
            said,
            schedule=result.schedule_csv,
            batsim=lambda path: _write_batsim(result, path, work),
            json=lambda path: result.to_json(path, signals=signals),
            db=lambda path: result.to_sqlite(path, force=options.force),
            trace=result.to_perfetto,
            plot=picture(lambda: result.plot.overview()),
            html=result.to_html,
            snapshot=lambda path: simulation.snapshot().to_json(path),
        )


def _in_kwh(energies: Table) -> Table:
    """Return energies in kWh, as the summary has them."""
    from simmodel.work.table import Table

    columns = {"kWh" if name == "energy" else name: energies[name] for name in energies.names}
    columns["kWh"] = columns["kWh"] / 3.6e6
    return Table(columns)


def _write_batsim(result: JobRecord, path: Path, work: str | Workload) -> None:
    from simmodel.formats.batsim import write_batsim_jobs

    write_batsim_jobs(result, path, None if isinstance(work, str) else work)


def _work(options: argparse.Namespace) -> tuple[str | Workload, ClusterSpec | None]:
    """Return the log; one of Batsim is read here, together with its platform if that is one of SimGrid."""
    from simmodel.catalogue.formats import looks_like

    path = Path(options.log)
    if not path.is_file() or not looks_like(path, "batsim"):
        return options.log, None
    from simmodel.formats.batsim import read_batsim, read_batsim_run

    if str(options.platform).lower().endswith((".xml", ".xml.gz")):
        return read_batsim_run(path, options.platform)
    return read_batsim(path), None


def _refuse_with_stream(options: argparse.Namespace) -> None:
    """Refuse outputs that need the whole record in memory."""
    from simmodel.foundation.errors import InputError

    for name in ("schedule", "batsim", "db", "events", "trace", "plot", "html", "live", "snapshot", "metrics"):
        if getattr(options, name) not in (None, False):
            raise InputError(f"--stream and --{name} exclude each other: --{name} needs the whole record in memory")
