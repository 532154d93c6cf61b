"""What grids cost: CPU microseconds a job under each broker, with a yardstick y beside them.

Run ``python benchmarks/grid.py`` for the usual cases, or name some of them: ``one``, ``fifty``, ``busy``, ``200``,
``data``, ``growth``, ``sqlite`` (with an event-level data set on disk, against without), and with the record streamed
to a file ``streamed``, ``queue`` (most of 100,000 jobs wait at one site) and ``million``; these also with one file in
and one out a job (``--data``). y is the CPU seconds of a fixed piece of plain Python, measured before each figure.
Machines are noisy: compare figures of one run.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from simmodel import simulate, start
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, RouteSpec, SiteSpec
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.results.streams import DataSet
from simmodel.work import ChunkedWorkload, File, Job, Workload

CORES = 64  # of a host
DAY = 86_400.0
CHUNK = 4_096
OTHERS = ("growth", "sqlite", "streamed", "queue", "million")
BROKERS = {
    "round-robin": 2.0,
    "random": 2.0,
    "share": 2.0,
    "shares": 2.0,
    "recorded": 2.0,
    "least-loaded": 2.0,
    "data-locality": 2.0,
    "shortest-wait": 2.0,
    "earliest-finish": 3.0,
    "panda": 3.0,
    "sgs-t": 0.0,
}
"""The brokers, and how many times the cost of round robin each may have; 0: 3 s /y for 10,000 jobs."""


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def grid(count: int, *, cores: int = 0, data: bool = False) -> GridSpec:
    """Return sites of 100 to 2,000 cores in hosts of 64; ``cores``: of each site instead."""
    rng = np.random.default_rng(count)
    hosts = [cores // CORES] * count if cores else (rng.integers(100, 2001, count) // CORES + 1).tolist()
    names = [f"s{i:03}" for i in range(count)]
    sites = [
        SiteSpec(name=name, hosts=[NodeSpec(count=each, cores=CORES)]) for name, each in zip(names, hosts, strict=True)
    ]
    if not data:
        return GridSpec(sites=sites)
    links = [LinkSpec(name=f"l-{name}", bandwidth="1GBps", latency=0.01) for name in names]
    network = NetworkSpec(links=links, routes=star(names))
    files = [FileSpec(name=f"f{i}", size="1GB", sites=[names[i % count]]) for i in range(1000)]
    return GridSpec(sites=sites, network=network, files=files)


def star(names: list[str]) -> list[RouteSpec]:
    """Return the routes of a network in which each place has one link to the middle."""
    pairs = ((a, b) for a in names for b in names if a < b)
    return [RouteSpec(source=a, destination=b, links=(f"l-{a}", f"l-{b}"), symmetrical=True) for a, b in pairs]


def drawn(jobs: int, spec: GridSpec, *, load: float = 0.0) -> dict[str, object]:
    """Return the columns of jobs that arrive over 24 h, or so slowly or fast that they load the grid so much."""
    rng = np.random.default_rng(jobs)
    run = rng.lognormal(8.2, 1.0, jobs)
    wide = rng.choice([1, 8], jobs)
    capacity = sum(site.capacity for site in spec.sites)
    span = float(run @ wide) / capacity / load if load else DAY
    submit = np.sort(rng.uniform(0.0, span, jobs))
    sites = np.array([site.name for site in spec.sites])[rng.integers(0, len(spec.sites), jobs)]
    return {"submit": submit, "run": run, "processors": wide, "requested": run, "site": sites}


def workload(jobs: int, spec: GridSpec, *, load: float = 0.0, data: bool = False) -> Workload:
    """Return jobs as :func:`drawn`, with one file in and one out each if ``data``."""
    columns = drawn(jobs, spec, load=load)
    if not data:
        return Workload(columns)
    return Workload.from_jobs(list(with_files(columns)))


def with_files(columns: Mapping[str, object], first: int = 0) -> Iterator[Job]:
    rng = np.random.default_rng(first)
    names = list(columns)
    for i, row in enumerate(zip(*(np.asarray(columns[name]).tolist() for name in names), strict=True), first):
        files = {"inputs": (f"f{rng.zipf(1.3) % 1000}",), "outputs": (File(name=f"o{i}", size=1e8),)}
        yield Job(id=i + 1, **dict(zip(names, row, strict=True)), **files)


def in_chunks(jobs: int, spec: GridSpec, *, load: float, data: bool) -> ChunkedWorkload:
    """Return the jobs of :func:`workload` as a workload that is read in chunks."""
    columns = drawn(jobs, spec, load=load)

    def chunks() -> Iterator[Workload]:
        for begin in range(0, jobs, CHUNK):
            part = {name: np.asarray(column)[begin : begin + CHUNK] for name, column in columns.items()}
            yield Workload.from_jobs(list(with_files(part, begin))) if data else Workload(part)

    return ChunkedWorkload(chunks, name="jobs", total=jobs)


def warm_up() -> None:
    """Load what a run needs, so that the first figure is like the others."""
    spec = grid(2)
    simulate(spec, workload(10, spec), "least-loaded")
    with TemporaryDirectory() as folder:
        simulate(spec, workload(10, spec), "least-loaded", stream=Path(folder, "jobs.db"))


def cost(spec: GridSpec, jobs: Workload, broker: str) -> tuple[float, float]:
    """Return the CPU seconds of a run, and the yardstick beside it."""
    y = yardstick()
    begin = time.process_time()
    simulate(spec, jobs, broker)
    return time.process_time() - begin, y


def line(name: str, seconds: float, y: float, jobs: int, note: str = "") -> None:
    each = seconds / jobs * 1e6
    print(f"{name:44} {seconds:8.2f} s {each:8.1f} us/job  {seconds / y:7.2f} /y  {note}", flush=True)


def brokers(title: str, spec: GridSpec, jobs: Workload, names: list[str]) -> None:
    """Show the cost of a workload under each broker, and against round robin."""
    base = 0.0
    for name in names:
        seconds, y = cost(spec, jobs, name)
        ratio = seconds / y
        base = base or ratio
        limit = BROKERS[name]
        times = f"limit {limit:g}x" if limit else "limit 3 /y for 10,000 jobs"
        line(f"{title}, {name}", seconds, y, len(jobs), f"{ratio / base:5.2f}x round robin ({times})")


def data_set(broker: str, *, data: bool) -> None:
    """Show the cost of 10,000 jobs on 50 sites without and with an event-level data set."""
    spec = grid(50, data=data)
    jobs = workload(10_000, spec, data=data)
    base = 0.0
    for written in (False, True):
        y = yardstick()
        with TemporaryDirectory() as folder:
            begin = time.process_time()
            simulation = start(spec, jobs, broker)
            if written:
                rows = DataSet(Path(folder, "events.db"), {"events": list(GRID_EVENTS), "jobs": list(GRID_JOBS)})
                simulation.env.observe(GridEvents(simulation.system, rows))
            simulation.run()
            if written:
                rows.close()
            seconds = time.process_time() - begin
        base = base or seconds / y
        title = f"{broker} on 50 sites{' with data' if data else ''}, {'data set' if written else 'no data set'}"
        line(title, seconds, y, len(jobs), f"{seconds / y / base:5.2f}x")


def streamed(count: int, broker: str, *, sites: int = 200, load: float = 0.8, data: bool = False) -> None:
    """Show time and memory of many jobs, streamed to a file, in a process of its own; building them is not counted."""
    y = yardstick()
    command = [
        sys.executable,
        __file__,
        "--streamed",
        str(count),
        str(sites),
        str(load),
        broker,
        "data" if data else "",
    ]
    seconds, memory = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    title = f"{count:,} on {sites} sites{' with data' if data else ''}, {broker}, streamed"
    line(title, seconds, y, count, f"{memory:.0f} MiB")


def run_streamed(jobs: int, sites: int, load: float, broker: str, data: bool) -> None:
    """Run jobs with a streamed record; print the CPU seconds and the largest memory in MiB."""
    warm_up()
    spec = grid(sites, data=data)
    given = in_chunks(jobs, spec, load=load, data=data)
    with TemporaryDirectory() as folder:
        begin = time.process_time()
        simulate(spec, given, broker, stream=Path(folder, "jobs.db"))
        print(time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(cases: list[str]) -> None:
    """Run cases by name."""
    if cases[:1] == ["--streamed"]:
        run_streamed(int(cases[1]), int(cases[2]), float(cases[3]), cases[4], cases[5] == "data")
        return
    with_data = "--data" in cases
    cases = [case for case in cases if case != "--data"]
    warm_up()
    names = [case for case in cases if case in BROKERS] or list(BROKERS)
    cases = [case for case in cases if case not in BROKERS] or ["one", "fifty", "busy", "200", "data", "growth"]
    tables = {"one": (1, 0.0, False), "fifty": (50, 0.0, False), "busy": (50, 1.2, False), "200": (200, 0.0, False)}
    tables["data"] = (50, 0.0, True)
    for case in cases:
        if case in tables:
            count, load, data = tables[case]
            spec = grid(count, cores=5120 if case == "one" else 0, data=data)
            brokers(case, spec, workload(10_000, spec, load=load, data=data), names)
        elif case == "growth":
            spec = grid(200)
            for jobs in (1_000, 10_000, 100_000):
                seconds, y = cost(spec, workload(jobs, spec, load=0.8), names[0])
                line(f"{jobs:,} jobs on 200 sites, {names[0]}", seconds, y, jobs)
        elif case == "million":
            streamed(1_000_000, names[0], data=with_data)
        elif case == "sqlite":
            data_set("least-loaded", data=with_data)
        elif case == "streamed":
            for jobs in (1_000, 10_000, 100_000):
                streamed(jobs, names[0], data=with_data)
        elif case == "queue":
            streamed(100_000, names[0], sites=1, load=30.0)
        else:
            sys.exit(f"unknown case {case!r}; known cases: {', '.join([*tables, *OTHERS])}")


if __name__ == "__main__":
    if "--help" in sys.argv:
        sys.exit(__doc__)
    main(sys.argv[1:])
