"""GPUs of a run: who held which, how many were allocated and idle by type, and how many free ones nobody can use.

Source of the fragmentation: Q. Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with
fragmentation gradient descent", USENIX ATC 2023.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.foundation.display import Cells, Shown, texts
from simmodel.foundation.errors import InputError, unknown
from simmodel.metrics.batch import has_gpus
from simmodel.metrics.packing import pack
from simmodel.platform.toml import from_dict
from simmodel.records.steps import Steps, parts_inside
from simmodel.resources.pools.devices import WHOLE, DeviceTable
from simmodel.resources.pools.scores import FGD, mix_of_counts
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.records.job_record import JobRecord

__all__ = ["GpuRows", "GpuUse", "gpu_metrics"]

_AT_ONCE = 50_000  # states of nodes whose fragments are computed in one go


def gpu_metrics(result: JobRecord, low: float, high: float) -> dict[str, float]:
    """Return the metrics of the GPUs of a run between two instants (s)."""
    use = GpuUse(result)
    there = use.in_service().integral(low, high) or float("nan")
    useless = use.fragmentation().integral(low, high) if use.apart else float("nan")
    return {"gpu_utilisation": use.allocated().integral(low, high) / there, "gpu_fragmentation": useless / there}


class GpuRows(NamedTuple):
    """Rectangles of a chart of GPUs.

    ``row``: of each, the row of what held capacity; ``edges``: its lowest and highest edge, shape (rectangles, 2);
    ``labels``: of each GPU, its edges and its name; ``height``: of the chart.
    """

    row: NDArray[np.int64]
    edges: NDArray[np.int64]
    labels: list[tuple[int, int, str]]
    height: int


class GpuUse(Shown):
    """The GPUs of a run on a cluster, over time.

    Parameters
    ----------
    result
        the run

    Raises
    ------
    InputError
        its cluster has no GPUs, or is not known

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> nodes = [NodeSpec(cores=8, gpus={"A100": 1, "T4": 1}), NodeSpec(name="t", cores=8, gpus={"T4": 2})]
    >>> jobs = [Job(nodes=1, gpus_per_node=0.6, gpu="T4", run=10), Job(nodes=1, gpus_per_node=2, run=20)]
    >>> use = GpuUse(simulate(ClusterSpec(partitions=[PartitionSpec(nodes=nodes)]), jobs, "fcfs"))
    >>> use.allocated("T4").values, use.idle("T4").integral(), use.table["type"].tolist()
    (array([2.6, 2. ]), 14.0, ['A100', 'T4'])
    >>> for row in use.spans.rows(): print(row["holder"], row["node"], row["gpu"], row["type"], row["share"])
    1 0 1 T4 0.6
    2 1 0 T4 1.0
    2 1 1 T4 1.0
    """

    def __init__(self, result: JobRecord) -> None:
        if not has_gpus(result):
            raise InputError("must be of a cluster whose nodes have GPUs", source=result.name)
        spec: ClusterSpec = from_dict(result.scenario["platform"])
        self._result = result
        self.held = result.held()
        tables = {part.name: DeviceTable.of_partition(part) for part in spec.partitions if part.nodes}
        self._tables = {name: table for name, table in tables.items() if table.kinds}
        self._names = {part.name: part.node_names for part in spec.partitions if part.name in self._tables}
        # By place, its partition, and the number there of each of its nodes:
        self._numbers = {name: (name, np.arange(len(table))) for name, table in self._tables.items()}
        for each in spec.reservations:
            part = spec.partition(each.partition)
            if part.name in self._tables:
                self._numbers[each.name] = (
                    part.name,
                    np.array(sorted(map(part.node_number, each.nodes)), dtype=np.int64),
                )

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of GPUs, ``""`` for GPUs without one."""
        return tuple(dict.fromkeys(name for table in self._tables.values() for name in table.kinds))

    @cached_property
    def spans(self) -> Table:
        """One row per device that something held: ``row, place, node, gpu, device, share, type, holder, start, end``.

        ``row`` is that of :meth:`~simmodel.records.JobRecord.held`; ``place`` the partition; ``gpu`` the number of the
        GPU in its node and ``device`` that of the device, which differ for slices; both are -1 if GPUs are only
        counted. ``share`` is the part of the GPU.
        """
        held, rows = self.held, list[tuple[int, str, int, int, int, float, str]]()
        nothing = [None] * len(held)
        columns = [held[name].tolist() if name in held else nothing for name in ("place", "nodes", "gpus", "devices")]
        for row, (place, nodes, gpus, devices) in enumerate(zip(*columns, strict=True)):
            if place not in self._numbers or gpus is None:
                continue
            partition, numbers = self._numbers[place]
            table = self._tables[partition]
            kinds = [*table.kinds]
            for position, node in enumerate(numbers[list(nodes)].tolist()):
                if devices is None and gpus[position]:
                    rows.append((row, partition, node, -1, -1, gpus[position], kinds[table.kind_of[0, node]]))
                for device, part in () if devices is None else devices[position]:
                    kind, gpu = kinds[table.kind_of[device, node]], int(table.gpu_of[device, node])
                    rows.append((row, partition, node, gpu, device, part / WHOLE, kind))
        of_type = {"row": int, "place": str, "node": int, "gpu": int, "device": int, "share": float, "type": str}
        found: dict[str, Any] = {
            name: np.array([each[i] for each in rows], dtype=kind) for i, (name, kind) in enumerate(of_type.items())
        }
        at = found["row"]
        end = np.where(np.isnan(held["end"]), self._result.ended, held["end"])
        return Table({**found, "holder": held["holder"][at], "start": held["start"][at], "end": end[at]})

    @property
    def apart(self) -> bool:
        """Whether the record tells the devices of a node apart."""
        return "devices" in self.held

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions with GPUs."""
        return tuple(self._tables)

    def _of(self, kind: str | None) -> Table:
        if kind is not None and kind not in self.types:
            raise unknown("type", kind, dict.fromkeys(self.types))
        return self.spans if kind is None else self.spans.where(self.spans["type"] == kind)

    def allocated(self, kind: str | None = None) -> Steps:
        """Return the number of GPUs that are held over time, with the shares of each; of a type, or of all."""
        return self._over_time(self._of(kind), "share")

    def _over_time(self, spans: Table, amount: str) -> Steps:
        times, amounts = np.append(spans["start"], spans["end"]), np.append(spans[amount], -spans[amount])
        return Steps.from_changes(times, amounts, self._result.started, self._result.ended)

    def in_service(self, kind: str | None = None) -> Steps:
        """Return the number of GPUs of nodes that are up, or still held, over time; of a type, or of all."""
        spans, result = self._of(kind), self._result
        total = Steps([result.started], [0.0], result.ended)
        for place, (partition, numbers) in self._numbers.items():
            table = self._tables[partition]
            number = -1 if kind is None else [*table.kinds, kind].index(kind)
            mine = table.all_devices * ((table.kind_of >= 0) if kind is None else (table.kind_of == number))
            gpus = mine[:, numbers].sum(axis=0) / WHOLE
            total += Steps([result.started], [float(gpus.sum())], result.ended)
            down = result.down_by_node(place)
            away = down.with_columns(gpus=gpus[down["node"]], node=numbers[down["node"]])
            total += self._over_time(away, "gpus").scaled(-1.0)
            here = spans.where(self.held["place"][spans["row"]] == place)
            total += self._over_time(parts_inside(here.with_columns(processors=here["share"]), away), "processors")
        return total

    def idle(self, kind: str | None = None) -> Steps:
        """Return the number of GPUs in service that nobody holds, over time; of a type, or of all."""
        return self.in_service(kind) + self.allocated(kind).scaled(-1.0)

    def fragmentation(self, mix: str | None = None) -> Steps:
        """Return the free GPUs that requests of a mix cannot use, over time, weighed by their shares of the mix.

        Free GPUs of a node count for each request that the node cannot meet, or that needs no GPU; else only those
        devices that are too small for it. Nodes that are down count as if they were up.

        Parameters
        ----------
        mix
            the requests, as :func:`~simmodel.resources.mix_of` returns them; default: those that ran most often, 95 %
            of all, of any type

        Raises
        ------
        InputError
            the devices are not told apart, or the mix is no such text
        """
        if "devices" not in self.held:
            raise InputError(
                "needs devices told apart, as by shares of GPUs or types of them", source=self._result.name
            )
        score = FGD(self._mix() if mix is None else mix)
        times, changes = [np.zeros(0)], [np.zeros(0)]
        for partition, table in self._tables.items():
            every = np.arange(len(table))
            times.append(np.full(len(every), self._result.started))
            changes.append(self._fragments(score, table, every, table.capacity[0], table.all_devices))
            node, at, cores, left = self._states(partition, table)
            found = self._fragments(score, table, node, cores, left)
            first = np.append(True, node[1:] != node[:-1])[: len(node)]
            before = np.where(first, changes[-1][node], np.append(0.0, found)[:-1])
            times.append(at)
            changes.append(found - before)
        at, change = np.concatenate(times), np.concatenate(changes)
        return Steps.from_changes(at, change, self._result.started, self._result.ended)

    def _check_apart(self) -> None:
        if not self.apart:
            raise InputError(
                "needs devices told apart, as by shares of GPUs or types of them", source=self._result.name
            )

    def _mix(self) -> str:
        counts: Counter[tuple[int, int, int, str]] = Counter()
        for cores, gpus in zip(self.held["cores"].tolist(), self.held["gpus"].tolist(), strict=True):
            if cores:
                part = gpus[0] % 1
                number = 1 if part else int(gpus[0])
                counts[int(cores[0]), round(part * WHOLE) if part else WHOLE * (gpus[0] > 0), number, ""] += 1
        return mix_of_counts(counts)

    def _states(self, partition: str, table: DeviceTable) -> tuple[NDArray[np.int64], Any, Any, Any]:
        """Return node, instant (s), free cores and free thousandths by device after each change, by node and time."""
        rows, changes = list[tuple[int, int, float]](), list[tuple[int, int, int]]()
        columns = (self.held[name].tolist() for name in ("place", "nodes", "cores", "devices"))
        for row, (place, nodes, cores, devices) in enumerate(zip(*columns, strict=True)):
            of, numbers = self._numbers.get(place, ("", np.arange(0)))
            if of == partition:
                told = devices or ((),) * len(nodes)
                for node, amount, parts in zip(numbers[list(nodes)].tolist(), cores, told, strict=True):
                    changes += [(len(rows), device, part) for device, part in parts]
                    rows.append((row, node, amount))
        at_row, node, taken = (np.array([each[i] for each in rows], dtype=np.int64) for i in range(3))
        parts = np.zeros((len(table.devices), len(rows)), dtype=np.int64)
        if changes:
            which, device, amount = np.array(changes, dtype=np.int64).T
            parts[device, which] = amount
        end = np.where(np.isnan(self.held["end"]), self._result.ended, self.held["end"])
        at = np.append(self.held["start"][at_row], end[at_row])
        node = np.append(node, node)
        order = np.lexsort((np.repeat([1, 0], len(rows)), at, node))
        node, change = node[order], np.append(np.vstack((taken, parts)), -np.vstack((taken, parts)), axis=1)[:, order]
        total = np.cumsum(np.append(np.zeros((len(change), 1), dtype=np.int64), change, axis=1), axis=1)
        used = total[:, 1:] - total[:, np.searchsorted(node, node)]
        return node, at[order], table.capacity[0, node] - used[0], table.all_devices[:, node] - used[1:]

    def _fragments(self, score: FGD, table: DeviceTable, nodes: Any, cores: Any, left: Any) -> NDArray[np.float64]:
        """Return the fragmentation of some states of nodes, in GPUs."""
        found = [
            score.fragments(table, nodes[at], cores[at], left[:, at])
            for at in np.array_split(np.arange(len(nodes)), 1 + len(nodes) // _AT_ONCE)
        ]
        return np.concatenate(found) / WHOLE

    @property
    def table(self) -> Table:
        """One row by type: ``type, gpus``, the most in service, the means ``allocated, idle``, and ``utilisation``."""
        rows = []
        for kind in self.types:
            there, taken = self.in_service(kind), self.allocated(kind)
            share = taken.integral() / there.integral() if there.integral() else float("nan")
            rows.append((kind, there.max(), taken.mean(), self.idle(kind).mean(), share))
        names = ("type", "gpus", "allocated", "idle", "utilisation")
        return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))

    def rows(self, partition: str) -> GpuRows:
        """Return the rows of a chart of the GPUs of a partition: one strip a GPU, of which each device is a part.

        Raises
        ------
        InputError
            the partition has no GPUs, or the devices are not told apart
        """
        if partition not in self._tables:
            raise unknown("partition with GPUs", partition, self._tables)
        self._check_apart()
        table = self._tables[partition]
        spans = self.spans.where((self.spans["place"] == partition) & (self.spans["device"] >= 0))
        parts = np.rint(spans["share"] * WHOLE).astype(np.int64)
        unit = int(np.gcd.reduce(np.append(parts, WHOLE)))
        there = (table.all_devices > 0).T
        gpus = table.gpu_of.T.max(axis=1, initial=-1, where=there) + 1
        first = np.append(0, np.cumsum(gpus))
        tall = WHOLE // unit
        node, device = spans["node"], spans["device"]
        size = table.all_devices[device, node] // unit
        base = (first[node] + spans["gpu"]) * tall + table.place_of[device, node] * size
        index, low, high = [], [], []
        order = np.lexsort((spans["start"], base))
        for group in np.split(order, np.flatnonzero(np.diff(base[order])) + 1) if len(order) else ():
            packed = pack(spans["start"][group], spans["end"][group], parts[group] // unit, int(size[group[0]]))
            index.append(group[packed["index"]])
            low.append(base[group[0]] + packed["low"])
            high.append(base[group[0]] + packed["high"])
        row = spans["row"][np.concatenate([np.zeros(0, dtype=np.int64), *index])]
        edges = np.column_stack([np.concatenate([np.zeros(0, dtype=np.int64), *each]) for each in (low, high)])
        order = np.lexsort((edges[:, 0], row))
        row, edges = row[order], edges[order]
        apart = (row[1:] != row[:-1]) | (edges[1:, 0] != edges[:-1, 1])  # neighbours of one holder are joined
        begins, ends = np.append(True, apart)[: len(row)], np.append(apart, True)[: len(row)]
        row, edges = row[begins], np.column_stack([edges[begins, 0], edges[ends, 1]])
        names = self._names[partition]
        labels = [
            ((first[number] + gpu) * tall, (first[number] + gpu + 1) * tall, f"{names[number]} GPU {gpu}")
            for number, count in enumerate(gpus.tolist())
            for gpu in range(count)
        ]
        return GpuRows(row, edges, [(int(a), int(b), name) for a, b, name in labels], int(first[-1]) * tall)

    def _cells(self) -> Cells:
        return [list(self.table.names), *(texts(row.values()) for row in self.table.rows())]

    def __repr__(self) -> str:
        return f"<GpuUse of {self._result.name}: {', '.join(name or 'GPUs' for name in self.types)}>"
