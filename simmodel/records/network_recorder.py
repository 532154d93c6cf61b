"""Records of networks: the load of each link over time, and each transfer with its time without contention."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, counted, texts
from simmodel.foundation.errors import InputError
from simmodel.records.steps import Steps
from simmodel.scheduling.observer import Observer
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.platform.network import LinkSpec
    from simmodel.resources.network.network import Link, Network, Transfer
    from simmodel.scheduling.protocol import GridSite, MovedFile
    from simmodel.work.job import LiveJob, Run
    from simmodel.work.task import File

__all__ = ["NetworkRecorder"]


class NetworkRecorder(Observer, Shown):
    """Record the load of each link and every transfer from now on; in a grid also the hosts and files of its jobs.

    Loads include the overhead and acknowledgements of the sharing model.

    Parameters
    ----------
    network
        the observed network

    >>> from simmodel import Environment, Network
    >>> from simmodel.platform import LinkSpec
    >>> env = Environment()
    >>> network = Network(env, [LinkSpec(name="wan", bandwidth=100.0)])
    >>> record = NetworkRecorder(network); env.observe(record)
    >>> for size in (300, 500): _ = network.transfer(size, route=["wan"])
    >>> env.run(until=10)
    >>> for row in record.transfers().rows(): print(row["end"], row["alone"], row["queueing"])
    6.0 3.0 3.0
    8.0 5.0 3.0
    >>> next(record.links().rows())
    {'link': 'wan', 'bytes': 800.0, 'utilisation': 0.8, 'busy': 8.0, 'peak': 100.0}
    >>> record.load("wan").at([7, 9])
    array([100.,   0.])
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._env = network.env
        self.started: float = self._env.now
        self._transfers: list[Transfer] = []
        self._alone: list[float] = []
        # By link: times and loads; times, bandwidths and whether it is down.
        self._loads: dict[str, tuple[list[float], list[float]]] = {}
        self._states: dict[str, list[tuple[float, float, bool]]] = {}
        self._hosts: dict[int | str, str] = {}  # by job: of its last execution
        self._named: dict[int | str, tuple[tuple[str, ...], tuple[File, ...]]] = {}  # by job: inputs and outputs
        self._fetched: dict[tuple[int | str, str], tuple[str, float, float, float]] = {}  # source, start, end, bytes
        for transfer in network.under_way():
            self.transfer_started(transfer)
        for link in network.links.values():
            self._loads[link.name] = ([self.started], [network.load(link)])
            self._states[link.name] = [(self.started, link.bandwidth, link.down)]

    def _find(self, link: Link) -> None:
        """Begin the record of a link of a topology, which was made since."""
        if link.name not in self._loads:
            self._loads[link.name] = ([self.started], [0.0])
            self._states[link.name] = [(self.started, link.spec.bandwidth, False)]

    # ------------------------------------------------------------------ hooks

    def transfer_started(self, transfer: Transfer) -> None:
        """Record a transfer, and its time without contention."""
        if transfer.fluid is self._network:
            self._transfers.append(transfer)
            self._alone.append(transfer.alone)

    def link_load_changed(self, link: Link) -> None:
        """Record the load of a link."""
        if self._network.links.get(link.name) is not link:
            return
        self._find(link)
        times, loads = self._loads[link.name]
        now = self._env._now
        if times[-1] == now:
            loads[-1] = link.load
        elif loads[-1] != link.load:
            times.append(now)
            loads.append(link.load)

    def link_changed(self, link: Link) -> None:
        """Record the bandwidth of a link, and whether it is down."""
        if self._network.links.get(link.name) is link:
            self._find(link)
            self._states[link.name].append((self._env._now, link.bandwidth, link.down))

    def job_assigned(self, job: LiveJob, _site: GridSite) -> None:
        """Record the files of a job of a grid."""
        if hasattr(job, "inputs") and hasattr(job, "outputs"):
            self._named[job.id] = job.inputs, job.outputs

    def job_started(self, run: Run) -> None:
        """Record the host on which a job runs."""
        if run.grant is not None and run.grant.nodes:
            self._hosts[run.job.id] = str(run.place.nodes[run.grant.nodes[0]])

    def file_transfer_ended(self, fetch: MovedFile, transfer: Transfer) -> None:
        """Record a file that was brought for a job."""
        if fetch.job is not None and fetch.source is not None and transfer.ok:
            about = fetch.source.name, float(transfer.start), float(self._env._now), float(transfer.done)
            self._fetched[fetch.job.id, fetch.file] = about

    # ------------------------------------------------------------------ jobs of a grid

    def host(self, job: int | str) -> str:
        """Return the name of the host of the last execution of a job; empty if none is known."""
        return self._hosts.get(job, "")

    def files(self) -> Table:
        """Return one row per file of each job of a grid: job, file, way, start, end, bytes.

        The way is ``from`` a site, from start to end (s), ``already there or on its way``, or ``written``.
        """
        rows: list[tuple[int | str | float, ...]] = []
        nothing = "", nan, nan, nan
        for job, (inputs, outputs) in self._named.items():
            for file in inputs:
                source, *rest = self._fetched.get((job, file), nothing)
                rows.append((job, file, f"from {source}" if source else "already there or on its way", *rest))
            rows.extend((job, file.name, "written", nan, nan, file.size) for file in outputs)
        names = ("job", "file", "way", "start", "end", "bytes")
        return Table(dict(zip(names, map(list, zip(*rows, strict=True)) if rows else ([] for _ in names), strict=True)))

    # ------------------------------------------------------------------ tables and loads

    def _check(self, link: str) -> None:
        if link not in self._loads:
            raise InputError(f"unknown link {link!r}")

    def load(self, link: str) -> Steps:
        """Return the load of a link until now, in bytes/s; raises :class:`InputError` for an unknown link."""
        self._check(link)
        times, loads = self._loads[link]
        return Steps(times, loads, self._env.now)

    def capacity(self, link: str) -> Steps:
        """Return the capacity of a link until now, in bytes/s: its bandwidth, 0 while it is down."""
        self._check(link)
        # A link follows its profile only while in use, so the points of the profile are merged with recorded changes.
        spec = self._network.links[link].spec
        points: list[tuple[float, int, float, bool]] = [
            (at, 0, bandwidth, False) for at, bandwidth in _profile(spec, self.started, self._env.now)
        ]
        points += [(at, 1, bandwidth, down) for at, bandwidth, down in self._states[link]]
        times: list[float] = []
        values: list[float] = []
        is_down = False
        for at, announced, bandwidth, down in sorted(points, key=lambda point: point[:2]):
            if announced:
                is_down = down
            if times and times[-1] == at:
                times.pop()
                values.pop()
            times.append(at)
            values.append(0.0 if is_down else bandwidth)
        return Steps(times, values, self._env.now)

    def joined(self) -> dict[str, tuple[str, str]]:
        """Return the two places that each link joins, of those known; ``""`` is a joint inside the network.

        Without ``between`` they are those of all routes over the link.
        """
        found: dict[str, set[str]] = {}
        for route in self._network.spec.routes:
            for link in route.links:
                found[link] = found.get(link, {route.source, route.destination}) & {route.source, route.destination}
        ends = {link: (min(places), max(places) if len(places) > 1 else "") for link, places in found.items() if places}
        known = {link.name: link.spec.between for link in self._network.links.values()}
        return ends | {link: (str(pair[0]), str(pair[1])) for link, pair in known.items() if pair is not None}

    def links(self) -> Table:
        """Return one row per link: bytes, mean utilisation of its capacity, seconds under load, peak load (bytes/s)."""
        columns: dict[str, list[Any]] = {name: [] for name in ("link", "bytes", "utilisation", "busy", "peak")}
        for name in self._loads:
            load = self.load(name)
            carried, could = load.integral(), self.capacity(name).integral()
            columns["link"].append(name)
            columns["bytes"].append(carried)
            columns["utilisation"].append(carried / could if could else float("nan"))
            columns["busy"].append(Steps(load.times, load.values > 0, load.end).integral())
            columns["peak"].append(load.max())
        return Table(columns)

    def loads(self) -> Table:
        """Return one row per change of a link's load: time (s), link, load (bytes/s), share of its capacity."""
        columns: dict[str, list[Any]] = {name: [] for name in ("time", "link", "load", "utilisation")}
        for name, (times, loads) in self._loads.items():
            columns["time"] += times
            columns["link"] += [name] * len(times)
            columns["load"] += loads
            could = attrs.evolve(self.capacity(name), end=inf).at(times)
            columns["utilisation"] += np.divide(loads, could, out=np.zeros(len(times)), where=could > 0).tolist()
        order = np.argsort(np.asarray(columns["time"]), kind="stable")
        return Table({name: np.asarray(column)[order] for name, column in columns.items()})

    def transfers(self) -> Table:
        """Return one row per transfer, by start.

        Columns: transfer (its number), source, destination, route, start, end (nan while in flight), size, bytes moved,
        status, ``alone`` (its time without contention, on the links as they were at its start) and ``queueing`` (the
        additional time it took; nan if it is not done). Seconds and bytes.
        """
        transfers = self._transfers
        start = np.array([transfer.start for transfer in transfers], dtype=float)
        end = np.array([np.nan if transfer.end is None else transfer.end for transfer in transfers], dtype=float)
        alone = np.array(self._alone, dtype=float)
        done = np.array([transfer.status == "done" for transfer in transfers], dtype=bool)
        # Remove negative and tiny values caused by rounding.
        queueing = np.maximum(end - start - alone, 0.0)
        queueing[queueing <= 1e-12 * np.maximum(np.abs(end), 1.0)] = 0.0
        return Table(
            {
                "transfer": [transfer.number for transfer in transfers],
                "source": ["" if transfer.source is None else str(transfer.source) for transfer in transfers],
                "destination": [
                    "" if transfer.destination is None else str(transfer.destination) for transfer in transfers
                ],
                "route": [" ".join(transfer.route) for transfer in transfers],
                "start": start,
                "end": end,
                "size": np.array([transfer.size for transfer in transfers], dtype=float),
                "bytes": np.array([transfer.bytes_done for transfer in transfers], dtype=float),
                "status": [transfer.status for transfer in transfers],
                "alone": alone,
                "queueing": np.where(done, queueing, np.nan),
            }
        )

    def _cells(self) -> Cells:
        table = self.links()
        return [list(table.names), *(texts(row.values()) for row in table.rows())]

    def __repr__(self) -> str:
        return f"<NetworkRecorder: {counted(len(self._loads), 'link')}, {counted(len(self._transfers), 'transfer')}>"


def _profile(spec: LinkSpec, start: float, end: float) -> Iterator[tuple[float, float]]:
    """Yield the points of a link's profile between two instants."""
    period = 0
    while spec.profile:
        for at, bandwidth in spec.profile:
            when = at if spec.repeat is None else period * spec.repeat + at
            if when > end:
                return
            if when > start:
                yield when, bandwidth
        if spec.repeat is None:
            return
        period += 1
