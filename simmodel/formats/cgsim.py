"""The grids of CGSim: its configuration, sites and connections, three JSON files; and the queues of its older files.

Source: CGSim, https://github.com/REDWOOD24/CGSim (formats as of 2025; of 2024: queues of ATLAS with their storage, CPUs
and rates).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import attrs
import numpy as np

from simmodel.formats.cgsim_jobs import read_cgsim_jobs
from simmodel.formats.documents import Value, read_json
from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.loading import Source, reader
from simmodel.foundation.units import in_seconds, parse_quantity
from simmodel.platform.cluster import NodeSpec
from simmodel.platform.grid import FileSpec, GridSpec, SiteSpec
from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec
from simmodel.platform.storage import StorageSpec
from simmodel.work.workload import Report, Workload

__all__ = ["CGSimSites", "CGSimStudy", "read_cgsim", "read_cgsim_connections", "read_cgsim_queues", "read_cgsim_sites"]


@attrs.frozen(kw_only=True, repr=False)
class CGSimSites(Fields):
    """Sites as CGSim describes them.

    Parameters
    ----------
    sites
        the sites
    files
        the files with their replicas
    reference
        flop/s of a core of speed 1
    gflops
        flop/s by which the recorded CPU time at a site becomes work, by site
    report
        counts of the parts skipped or filled in
    """

    sites: tuple[SiteSpec, ...]
    files: tuple[FileSpec, ...]
    reference: float
    gflops: Mapping[str, float]
    report: Report = attrs.field(factory=Report)


@attrs.frozen(kw_only=True, repr=False)
class CGSimStudy(Fields):
    """A configuration of CGSim: a grid, its jobs, and the name of the plug-in that was its broker.

    Parameters
    ----------
    grid, workload
        the grid; its jobs, ``None`` if the configuration names none
    plugin
        the plug-in: a compiled library, or a name
    output
        the output file that the configuration names; empty: none
    """

    grid: GridSpec
    workload: Workload | None
    plugin: str = ""
    output: str = ""


@reader
def read_cgsim(
    config: Source,
    *,
    sites: Source | None = None,
    connections: Source | None = None,
    jobs: Source | None = None,
    sizes: Mapping[str, float] | None = None,
    skip_bad_rows: bool = False,
) -> CGSimStudy:
    """Read the configuration of a CGSim run with the files that it names, relative to its folder.

    Hosts of speed 1 have the median speed of all cores (flop/s); the run time of a job is its work divided by its cores
    and that speed. As in CGSim, jobs hold their cores while their inputs arrive, read and write the disk of their host,
    and transfers share the one link of two sites under SimGrid's model.

    Parameters
    ----------
    config
        the configuration: ``Sites_Information``, ``Sites_Connection_Information``, ``Limited_Sites``,
        ``Custom_Parameters`` with ``jobs_file`` and ``Num_of_Jobs``
    sites, connections, jobs
        files instead of those that it names
    sizes
        bytes of files that differ from those of the sites' lists, by name
    skip_bad_rows
        skip bad rows of the jobs, counted by reason in the workload's report

    Raises
    ------
    InputError
        a file is missing, or a value is invalid; with its place
    """
    document = read_json(config)
    folder = Path(document.source).parent if isinstance(config, str | Path) else Path()
    custom = document.get("Custom_Parameters")
    given = read_cgsim_sites(
        _named(document, "Sites_Information", folder) if sites is None else sites,
        only=[each.text() for each in document["Limited_Sites"].list()] if "Limited_Sites" in document else (),
        sizes=sizes,
    )
    source = _named(document, "Sites_Connection_Information", folder) if connections is None else connections
    network = read_cgsim_connections(source, [site.name for site in given.sites])
    name = document["Grid_Name"].text() if "Grid_Name" in document else "grid"
    grid = GridSpec(name=name, sites=given.sites, network=network, files=given.files, core_speed=given.reference)
    if jobs is None and custom is not None and "jobs_file" in custom:
        jobs = _named(custom, "jobs_file", folder)
    workload = None
    if jobs is not None:
        most = _count(custom) if custom is not None else None
        workload = read_cgsim_jobs(
            jobs, gflops=given.gflops, reference=given.reference, most=most, skip_bad_rows=skip_bad_rows
        )
        workload.report.notes = (*given.report.notes, *workload.report.notes)
    plugin = next((document[key].text() for key in ("Plugin", "Dispatcher_Plugin") if key in document), "")
    output = custom["output_file"].text() if custom is not None and "output_file" in custom else ""
    return CGSimStudy(grid=grid, workload=workload, plugin=plugin, output=output)


def _named(document: Value, key: str, folder: Path) -> Path:
    """Return the path that a configuration names, relative to its folder."""
    path = folder / document[key].text()
    if not path.exists():
        raise document[key].wrong(f"must be a file, got {path}, which does not exist")
    return path


def _count(custom: Value) -> int | None:
    """Return ``Num_of_Jobs``, ``None`` for all."""
    found = custom.get("Num_of_Jobs")
    if found is None:
        return None
    given: Any = found.data
    try:
        number = int(given)
    except (TypeError, ValueError):
        raise found.wrong(f"must be a whole number, -1 for all, got {found.data!r}") from None
    return None if number < 0 else number


# ---------------------------------------------------------------------- sites


@reader
def read_cgsim_sites(
    source: Source, *, only: Iterable[str] = (), sizes: Mapping[str, float] | None = None
) -> CGSimSites:
    """Read the sites of CGSim: groups of hosts, disks, storage and files.

    Groups of zero ``units`` are skipped and counted; ``only``: the names of the sites to read, default: all. ``sizes``:
    bytes of files instead of those listed.

    Raises
    ------
    InputError
        a value is missing or invalid, a site has no CPU, or a file has two sizes
    """
    document = read_json(source)
    names = list(only) or list(document.table())
    for name in names:
        if name not in document.table():
            raise InputError(unknown("site", name, document.table()).message, document.source, "Limited_Sites")
    report = Report()
    groups = {name: _groups(document[name], report) for name in names}
    speeds = np.concatenate([np.repeat(each.speed, each.units) for found in groups.values() for each in found])
    reference = float(np.sort(speeds)[len(speeds) // 2])
    sites, gflops = [], {}
    for name in names:
        properties = document[name]["SITE_PROPERTIES"]
        gflops[name] = _number(properties["GFLOPS"]) if "GFLOPS" in properties else reference
        capacity = _number(properties["storage_capacity_bytes"])
        sites.append(_site(name, groups[name], capacity, reference))
    files = _files(document, names, sizes or {})
    return CGSimSites(sites=tuple(sites), files=files, reference=reference, gflops=gflops, report=report)


@attrs.frozen
class _Group:
    units: int
    cores: int
    speed: float
    memory: float
    disk: tuple[float, float] | None


def _number(value: Value) -> float:
    """Return a number that may be written as text."""
    given: Any = value.data
    try:
        number = float(given)
    except (TypeError, ValueError):
        raise value.wrong(f"must be a number, got {value.data!r}") from None
    if not 0 <= number < float("inf"):
        raise value.wrong(f"must be a finite number >= 0, got {value.data!r}")
    return number


def _whole(value: Value, least: int) -> int:
    number = value.number(least=least)
    if number != int(number):
        raise value.wrong(f"must be a whole number >= {least}, got {value.data!r}")
    return int(number)


def _quantity(value: Value, unit: str) -> float:
    try:
        return parse_quantity(value.text(), unit)
    except InputError as error:
        raise value.wrong(error.message) from None


def _groups(site: Value, report: Report) -> list[_Group]:
    found = []
    for group in site["CPUInfo"].list():
        units = _whole(group["units"], 0)
        if not units:
            report.skipped["groups of zero hosts"] += 1
            continue
        speed = group["speed"].number()
        if not speed:
            raise group["speed"].wrong("must be > 0, got 0")
        memory = 0.0
        if "properties" in group:
            for each in group["properties"].list():
                if "ram" in each:
                    memory = _quantity(each["ram"], "B")
        disks = list(group["disks"].list()) if "disks" in group else []
        disk = (_quantity(disks[0]["read_bw"], "B/s"), _quantity(disks[0]["write_bw"], "B/s")) if disks else None
        found.append(_Group(units, _whole(group["cores"], 1), speed, memory, disk))
    if not found:
        raise site["CPUInfo"].wrong("must have at least one host")
    return found


def _site(name: str, groups: list[_Group], capacity: float, reference: float) -> SiteSpec:
    hosts = [
        NodeSpec(
            name=f"{name}_cpu-", count=each.units, cores=each.cores, memory=each.memory, speed=each.speed / reference
        )
        for each in groups
    ]
    disks = [each.disk for each in groups]
    own: tuple[tuple[float, float], ...] = tuple(each or (float("inf"), float("inf")) for each in disks)
    return SiteSpec(
        name=name,
        hosts=hosts,
        placement="first-fit",
        storage=StorageSpec(capacity=capacity),
        disks=own if any(disks) else (),
        staging="inside",
    )


def _files(document: Value, names: Iterable[str], sizes: Mapping[str, float]) -> tuple[FileSpec, ...]:
    where: dict[str, list[str]] = {}
    size: dict[str, float] = {}
    for name in names:
        if "files" not in document[name]:
            continue
        for each in document[name]["files"].list():
            pair = list(each.list())
            if len(pair) != 2:
                raise each.wrong(f"must be a name and a number of bytes, got {each.data!r}")
            file = str(pair[0].key())
            given = sizes.get(file, pair[1].number())
            if size.setdefault(file, given) != given:
                raise each.wrong(f"file {file!r}: must have one size, got {size[file]:.15g} and {given:.15g} bytes")
            if name in where.setdefault(file, []):
                raise each.wrong(f"duplicate file {file!r} at {name}")
            where[file].append(name)
    return tuple(FileSpec(name=file, size=size[file], sites=sites) for file, sites in where.items())


# ---------------------------------------------------------------------- connections


@reader
def read_cgsim_connections(source: Source, sites: Iterable[str]) -> NetworkSpec:
    """Read the connections of CGSim: one shared link for each pair of sites, in both directions.

    Connections of sites that are not among ``sites`` although the file's other pairs name them are left out only if
    ``sites`` is a selection: a name in neither is an error.

    Raises
    ------
    InputError
        a pair names an unknown site, or a site twice; a value is missing or has another unit
    """
    document = read_json(source)
    known = dict.fromkeys(sites)
    links: list[LinkSpec] = []
    routes: list[RouteSpec] = []
    seen: Counter[frozenset[str]] = Counter()
    for key in document.table():
        value = document[key]
        ends = key.split(":")
        if len(ends) != 2:
            raise value.wrong("must be the connection of two sites, 'A:B'")
        if ends[0] == ends[1]:
            raise value.wrong(f"must join two different sites, got {ends[0]!r} twice")
        for end in ends:
            if end not in known:
                raise value.wrong(unknown("site", end, known).message)
        seen[frozenset(ends)] += 1
        if seen[frozenset(ends)] > 1:
            raise value.wrong(f"duplicate connection of {ends[0]} and {ends[1]}")
        bandwidth = _quantity(value["bandwidth"], "B/s")
        if not bandwidth:
            raise value["bandwidth"].wrong("must be > 0, got 0")
        links.append(LinkSpec(name=key, bandwidth=bandwidth, latency=_quantity(value["latency"], "s"), between=ends))
        routes.append(RouteSpec(source=ends[0], destination=ends[1], links=[key], symmetrical=True))
    return NetworkSpec(links=links, routes=routes, model="simgrid")


# ---------------------------------------------------------------------- queues

_MEGABIT = 1e6 / 8
_TERABYTE = 1e12
_NO_CPU = "queues without CPUs"


@reader
def read_cgsim_queues(
    sites: Source,
    connections: Source | None = None,
    *,
    latency: float | str = "20ms",
    cores: int = 16,
    name: str = "queues",
) -> tuple[GridSpec, CGSimSites]:
    """Read the real queues of CGSim's older files as a grid; return it, and its sites with counts of skips and fills.

    A queue has ``cores`` cores for each CPU, which is not recorded; they are interchangeable and have the mean speed
    of its CPUs. Its capacity is the sum of its storages (RSE, in TB). The bandwidth of two queues is the highest rate
    measured in either direction; where none is, it is the median of the rates measured between queues of the same
    closeness, or of all.

    Queues without CPUs, connections of a queue with itself, and connections of unknown queues are skipped and counted;
    so are the rates and latencies that were filled in, and the queues that nothing connects.

    Parameters
    ----------
    sites
        ``{queue: {"RSE": {name: TB}, "CPUCount", "CPUSpeed": [flop/s]}}``
    connections
        ``{"A:B": {"closeness": {"latest"}, "mbps": {source: {window: Mbit/s}}}}``
    latency
        seconds, or a text, of all connections: none is recorded
    cores
        cores of each CPU (a CPU stands for 16,000 of the queue's GFLOPS)
    name
        the name of the grid

    Raises
    ------
    InputError
        a file cannot be read, or has a value of the wrong type
    """
    report = Report()
    document = read_json(sites)
    given: list[tuple[str, int, float, float]] = []
    for queue in document.table():
        value = document[queue]
        cpus = int(value["CPUCount"].number()) if "CPUCount" in value else 0
        if not cpus:
            report.skipped[_NO_CPU] += 1
            continue
        speeds = [each.number() for each in value["CPUSpeed"].list()]
        if len(speeds) != cpus:
            raise value["CPUSpeed"].wrong(f"must have one speed for each of {cpus} CPUs, got {len(speeds)}")
        given.append((queue, cpus, sum(speeds) / cpus, _stored(value)))
    if not given:
        raise InputError("must have a queue with CPUs, got none", source=document.source)
    report.repaired[f"cores of a queue's CPUs not recorded: {cores} each"] += len(given)
    reference = median(speed for _, _, speed, _ in given)
    specs = tuple(
        SiteSpec(
            name=queue,
            hosts=[NodeSpec(name=f"{queue}_cpu-", cores=cpus * cores, speed=speed / reference)],
            storage=StorageSpec(capacity=capacity),
        )
        for queue, cpus, speed, capacity in given
    )
    network = NetworkSpec(links=())
    if connections is not None:
        network = _connections(read_json(connections), [spec.name for spec in specs], in_seconds(latency), report)
    gflops = {queue: speed for queue, _, speed, _ in given}
    found = CGSimSites(sites=specs, files=(), reference=reference, gflops=gflops, report=report)
    return GridSpec(name=name, sites=specs, network=network, core_speed=reference), found


def _stored(queue: Value) -> float:
    """Return the bytes of a queue's storages."""
    total = 0.0
    for name in queue["RSE"].table() if "RSE" in queue else ():
        value = queue["RSE"][name]
        given: Any = value.data
        try:
            total += float(given) * _TERABYTE
        except (TypeError, ValueError):
            raise value.wrong(f"must be a number of TB, got {value.data!r}") from None
    return total


def _connections(document: Value, queues: list[str], latency: float, report: Report) -> NetworkSpec:
    known = dict.fromkeys(queues)
    rates: dict[tuple[str, str], float] = {}
    closeness: dict[tuple[str, str], float] = {}
    for key in document.table():
        value = document[key]
        first, _, second = key.partition(":")
        if first not in known or second not in known:
            report.skipped["connections of unknown queues"] += 1
            continue
        if first == second:
            report.skipped["connections of a queue with itself"] += 1
            continue
        pair = (first, second) if (second, first) not in closeness else (second, first)
        rate = max(_rates(value), default=0.0)
        rates[pair] = max(rate, rates.get(pair, 0.0))
        near = value["closeness"]["latest"].number() if "closeness" in value else float("nan")
        closeness[pair] = min(near, closeness.get(pair, near))
    measured = [rate for rate in rates.values() if rate]
    if rates and not measured:
        raise InputError("must have a measured rate (mbps) somewhere, got none", source=document.source)
    by_closeness: dict[float, list[float]] = {}
    for pair, rate in rates.items():
        if rate:
            by_closeness.setdefault(closeness[pair], []).append(rate)
    links, routes = [], []
    for pair, rate in rates.items():
        if not rate:
            report.repaired["rates not measured: median of the same closeness"] += 1
            rate = median(by_closeness.get(closeness[pair], measured))
        link = LinkSpec(name=":".join(pair), bandwidth=rate * _MEGABIT, latency=latency, between=pair)
        links.append(link)
        routes.append(RouteSpec(source=pair[0], destination=pair[1], links=[link.name], symmetrical=True))
    if links:
        report.repaired[f"latencies not recorded: {latency:g} s"] += len(links)
    joined = {queue for pair in rates for queue in pair}
    alone = [queue for queue in queues if queue not in joined]
    if alone:
        some = ", ".join(alone[:3]) + (", ..." if len(alone) > 3 else "")
        report.note(f"{len(alone)} of {len(queues)} queues have no connection: {some}")
    return NetworkSpec(links=links, routes=routes, model="simgrid")


def _rates(connection: Value) -> Iterator[float]:
    """Yield the rates measured for a connection, in Mbit/s."""
    if "mbps" not in connection:
        return
    found = connection["mbps"]
    for source in found.table():
        for window in found[source].table():
            if window != "timestamp":
                yield found[source][window].number()
