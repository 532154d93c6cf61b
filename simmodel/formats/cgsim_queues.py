"""The real queues of the older files of CGSim: sites with CPUs, and measured rates between them.

Source: CGSim, https://github.com/REDWOOD24/CGSim (files of 2024): queues of ATLAS with their storage, CPUs and rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from simmodel.errors import InputError
from simmodel.formats.cgsim import CGSimSites
from simmodel.formats.documents import Value, read_json
from simmodel.loading import Source, reader
from simmodel.platform.cluster import NodeSpec
from simmodel.platform.grid import GridSpec, SiteSpec
from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec
from simmodel.platform.storage import StorageSpec
from simmodel.units import in_seconds
from simmodel.work.workload import Report

__all__ = ["read_cgsim_queues"]

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
    """Read the real queues of CGSim's older files as a grid; return it, and its sites with what was skipped or filled.

    A queue has so many ``cores`` for each CPU, which is not recorded; they are interchangeable and have the mean speed
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
