"""``simmodel grid``: run the jobs of a grid of sites under a broker."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.outputs import (
    PROGRESS,
    database,
    document,
    files,
    live,
    page,
    picture,
    plot,
    table,
    watched,
    write_and_say,
)
from simmodel.commands.shared import (
    ELSEWHERE,
    READING,
    SEED,
    SET,
    TRUST,
    UNTIL,
    changed_platform,
    see_working_folder,
    with_changes,
)
from simmodel.commands.values import argument, command, group, output, source
from simmodel.foundation.writing import STDOUT

if TYPE_CHECKING:
    from simmodel.platform.grid import GridSpec
    from simmodel.records import NetworkRecorder


@command(
    "grid",
    argument("config CONFIG", "a configuration of CGSim (JSON), a platform of sites (TOML), or a name", source),
    group(
        "parts",
        argument("--sites FILE", "sites of CGSim (JSON), instead of those that CONFIG names", source),
        argument("--connections FILE", "connections of CGSim, instead of those of CONFIG", source),
        argument("--jobs --workload FILE", "jobs: CSV or SQLite of CGSim, any log, a workflow, or a name", source),
        argument("--home SITE", "the home of these jobs, where the first files of a workflow are (default: none)", str),
        argument("--skip-bad-rows", "skip bad rows of CGSim's jobs, counted by reason"),
        READING,
        SET,
    ),
    group(
        "policies",
        argument("--broker NAME", "see 'simmodel list brokers' (default: that of CONFIG)"),
        argument("--policy NAME", "the policy of the sites (default: fcfs)"),
        argument("--data-policy NAME", "who moves and copies files, such as prefetch (default: nearest)"),
        argument(
            "--overrun {stop,continue}", "stop (default) or continue jobs at their requested time", default="stop"
        ),
        UNTIL,
        SEED,
        TRUST,
    ),
    PROGRESS,
    files(
        database(),
        argument(
            "--stream OUT",
            "write jobs as they end, to an SQLite file or a folder NAME.parquet; jobs are read in chunks",
            output,
        ),
        argument(
            "--schema {simmodel,cgsim-states,cgsim-events}",
            "layout of --db and --csv: our own events and jobs (default), or CGSim's states or events",
            default="simmodel",
        ),
        table("one line per job; of a folder: the tables of --db as CSV", "csv"),
        argument("--schedule OUT.csv", "one line per job", output),
        document("metrics and counts"),
        plot("the run on one page", "grid.png"),
        page(),
        live(),
    ),
    examples=(
        "simmodel grid tiers-30 --broker least-loaded --plot grid.png",
        "simmodel grid tiers-30 --broker data-locality --data-policy prefetch --db events.sqlite",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Run the jobs of a grid of sites under a broker, and print a summary.

    Jobs go to sites, their files are brought there, and they run on one host each.
    """
    from simmodel.foundation.errors import InputError
    from simmodel.results.streams import RecordStream
    from simmodel.runs.scenario import start

    if options.csv is not None and (options.csv is STDOUT or options.csv.suffix == ".csv"):
        options.schedule, options.csv = options.schedule or options.csv, None
    for name in ("schedule", "plot", "html", "live"):
        if options.stream is not None and getattr(options, name) is not None:
            raise InputError(f"--stream and --{name} exclude each other: --{name} needs the whole record in memory")
    grid, workload, plugin = _read(options)
    if workload is None:
        raise InputError("missing jobs: CONFIG names none; pass --jobs", options.config)
    if options.home is not None:
        workload = {options.home: workload}
    broker = _broker(options, plugin)
    policy = options.policy or "fcfs"
    for name in (broker, policy, options.data_policy or "nearest"):
        see_working_folder(name)
    simulation = start(
        changed_platform(options, grid),
        workload,
        broker,
        policies=policy,
        **({} if options.data_policy is None else {"data": options.data_policy}),
        overrun=options.overrun,
        seed=options.seed,
        until=options.until,
        progress=options.progress,
        name=with_changes(options, f"{grid.name} under {broker}"),
        stream=None if options.stream is None else RecordStream(options.stream, force=options.force),
    )
    with watched(simulation, options.live):
        data = _data_set(options, simulation.system, broker)
        links = None if options.plot is None and options.html is None else _record_links(simulation.system)
        try:
            simulation.run()
        except BaseException:
            if data is not None:
                data.leave()
            raise
        said = []
        if data is not None:
            data.close()
            where = [str(path) for path in (options.db, options.csv) if path is not None]
            counts = ", ".join(f"{count:,} rows of {name}" for name, count in data.written.items())
            said.append(f"  data set ({options.schema}) written to {' and '.join(where)}: {counts}")
        result = simulation.result()
        if options.stream is not None:
            said.append(f"  jobs written to {options.stream}")
        write_and_say(
            options,
            [result.summary(), *said],
            schedule=lambda path: result.schedule_csv(path),
            json=result.to_json,
            plot=picture(lambda: result.plot.overview(links)),
            html=lambda path: result.to_html(path, links=links),
        )


def _record_links(grid: Any) -> NetworkRecorder | None:
    """Record the load of the links of a grid, if it has any."""
    from simmodel.records import NetworkRecorder

    if not grid.spec.network.links and grid.spec.network.topology is None:
        return None
    record = NetworkRecorder(grid.data.network)
    grid.env.observe(record)
    return record


def _read(options: argparse.Namespace) -> tuple[GridSpec, Any, str]:
    """Return the grid, its jobs and the name of its plug-in."""
    from simmodel.catalogue import bundled_names, load_platform, load_workload
    from simmodel.catalogue.formats import is_workflow
    from simmodel.formats.cgsim import read_cgsim
    from simmodel.formats.cgsim_jobs import read_cgsim_jobs
    from simmodel.foundation.errors import InputError, of_class
    from simmodel.platform.grid import GridSpec
    from simmodel.systems.kinds import kind_named, kind_of_platform, work_of

    name = options.config
    if name.removesuffix(".gz").endswith(".json"):
        study = read_cgsim(
            name,
            sites=options.sites,
            connections=options.connections,
            jobs=options.jobs,
            skip_bad_rows=options.skip_bad_rows,
        )
        return study.grid, study.workload, study.plugin
    spec = load_platform(name, trust=options.trust)
    if kind_of_platform(spec) is not kind_named("grid"):
        elsewhere = ELSEWHERE[work_of(spec)]
        raise InputError(f"must be a grid, got a {kind_of_platform(spec).name}: {elsewhere}", name)
    grid = of_class(spec, GridSpec, "a grid", name)
    for part in ("sites", "connections"):
        if getattr(options, part) is not None:
            raise InputError(f"--{part} needs a configuration of CGSim (JSON), got {name}")
    if options.jobs is None:
        ready = f"{name}-day"  # the jobs of a ready grid
        return grid, load_workload(ready) if ready in bundled_names("workloads") else None, ""
    gflops = {site.name: grid.core_speed for site in grid.sites}
    flow = Path(options.jobs).is_file() and is_workflow(Path(options.jobs))
    if not flow and _are_cgsims(options.jobs):
        jobs = read_cgsim_jobs(
            options.jobs, gflops=gflops, reference=grid.core_speed, skip_bad_rows=options.skip_bad_rows
        )
        return grid, jobs, ""
    if options.skip_bad_rows:
        raise InputError(f"--skip-bad-rows needs jobs of CGSim, got {options.jobs}")
    return grid, options.jobs if flow else load_workload(options.jobs), ""


def _are_cgsims(jobs: str) -> bool:
    """Whether a file has jobs as CGSim reads them: a database, or a table with its columns."""
    from simmodel.catalogue.formats import FORMATS, format_of

    path = Path(jobs)
    database = jobs.removesuffix(".gz").endswith((".db", ".sqlite"))
    return path.is_file() and (database or format_of(path, "workload", FORMATS) is FORMATS["cgsim"])


def _broker(options: argparse.Namespace, plugin: str) -> str:
    """Return the broker: that of the option, or the plug-in's if it is a name that is known."""
    from simmodel.foundation.errors import InputError
    from simmodel.scheduling.registry import policy

    if options.broker is not None:
        return str(options.broker)
    if not plugin:
        return "least-loaded"
    if ":" in plugin and not options.trust:
        message = f"the plug-in {plugin!r} imports code: pass --trust if you trust the file, or --broker NAME"
        raise InputError(message, options.config, "Plugin")
    try:
        policy(plugin)
    except InputError:
        message = f"the plug-in {plugin!r} is no known broker (a library of CGSim cannot be loaded): pass --broker NAME"
        message += " ('recorded' repeats the sites in its jobs)"
        raise InputError(message, options.config, "Plugin") from None
    return plugin


def _data_set(options: argparse.Namespace, grid: Any, broker: str) -> Any:
    """Return the writer of a run's data set, which observes the grid from now on; ``None`` if none was requested."""
    from simmodel.records.cgsim_events import CGSIM_EVENTS, CGSIM_STATES, CGSimEvents, CGSimStates
    from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
    from simmodel.results.streams import DataSet

    if options.db is None and options.csv is None:
        return None
    layouts: dict[str, tuple[Any, dict[str, Any]]] = {
        "simmodel": (GridEvents, {"events": list(GRID_EVENTS), "jobs": list(GRID_JOBS)}),
        "cgsim-states": (CGSimStates, {"EVENTS": CGSIM_STATES}),
        "cgsim-events": (CGSimEvents, {"EVENTS": CGSIM_EVENTS}),
    }
    observer, tables = layouts[options.schema]
    path = options.db if options.db is not None else options.csv.with_name(f"{options.csv.name}.sqlite")
    data = DataSet(
        path,
        tables,
        {"schema": options.schema, "grid": grid.name, "broker": broker, "seed": options.seed},
        folders={} if options.csv is None else {"csv": options.csv},
        keep=options.db is not None,
        force=options.force,
    )
    grid.env.observe(observer(grid, data))
    return data
