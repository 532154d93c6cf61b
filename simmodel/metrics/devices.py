"""GPUs of a run: who held which, how many were allocated and idle by type, and how many free ones nobody can use.

Source of the fragmentation: Q. Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with
fragmentation gradient descent", USENIX ATC 2023.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.metrics.draws import Segments
from simmodel.metrics.packing import pack
from simmodel.platform.toml import from_dict
from simmodel.records.job_record import has_gpus
from simmodel.records.steps import Steps, held_spans, parts_inside
from simmodel.resources.pools.devices import WHOLE, DeviceTable
from simmodel.resources.pools.scores import FGD, mix_of_counts
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.records.job_record import JobRecord

__all__ = ["GpuUse", "gpu_metrics"]

_AT_ONCE = 50_000  # states of nodes whose fragments are computed in one go


def gpu_metrics(result: JobRecord, low: float, high: float) -> dict[str, float]:
    """Return the metrics of the GPUs of a run between two instants (s)."""
    use = GpuUse(result)
    there = use.in_service().integral(low, high) or float("nan")
    useless = use.fragmentation().integral(low, high) if use.apart() else float("nan")
    return {"gpu_utilisation": use.allocated().integral(low, high) / there, "gpu_fragmentation": useless / there}


class GpuUse:
    """The GPUs of a run on a cluster, over time.

    Parameters
    ----------
    result
        the run

    Raises
    ------
    InputError
        its cluster has no GPUs, or it does not say what was held of them

    Attributes
    ----------
    held
        what held capacity, as of :meth:`~simmodel.records.JobRecord.held`
    tables
        the devices of each partition with GPUs, with nothing taken

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
            raise InputError("must be a run on nodes with GPUs that says what was held of them", source=result.name)
        spec: ClusterSpec = from_dict(result.scenario["platform"])
        self._result = result
        self.held = result.held()
        parts = {part.name: part for part in spec.partitions if any(kind.gpus for kind in part.nodes)}
        self.tables = {name: DeviceTable.of_partition(part) for name, part in parts.items()}
        self._names = {name: part.node_names for name, part in parts.items()}
        # By place, its partition, and the number there of each of its nodes:
        self._numbers = {name: (name, np.arange(len(table))) for name, table in self.tables.items()}
        for each in spec.reservations:
            if (name := spec.partition(each.partition).name) in parts:
                numbers = sorted(map(parts[name].node_number, each.nodes))
                self._numbers[each.name] = name, np.array(numbers, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<GpuUse of {self._result.name}: {sum(map(len, self.tables.values()))} nodes>"

    @property
    def types(self) -> tuple[str, ...]:
        """The types of GPUs, ``""`` for GPUs without one."""
        return tuple(dict.fromkeys(name for table in self.tables.values() for name in table.kinds))

    @cached_property
    def _on_nodes(self) -> Table:
        """One row per node of a holder, as of ``held_spans``, with ``place``; numbered as in the partition."""
        tables = []
        for place, (partition, numbers) in self._numbers.items():
            here = np.flatnonzero(self.held["place"] == place)
            spans = held_spans(self.held.where(here), self._result.started, self._result.ended)
            row, node = here[spans["row"]], numbers[spans["node"]]
            tables.append(spans.with_columns(row=row, node=node, place=np.full(len(spans), partition)))
        found = Table({name: np.concatenate([each[name] for each in tables]) for name in tables[0].names})
        return found.where(np.argsort(found["row"], kind="stable"))

    @cached_property
    def spans(self) -> Table:
        """One row per device that something held: ``row, place, node, gpu, device, share, type, holder, start, end``.

        ``row`` is that of :meth:`~simmodel.records.JobRecord.held`; ``place`` the partition; ``gpu`` the number of the
        GPU in its node and ``device`` that of the device, which differ for slices; both are -1 if GPUs are only
        counted. ``share`` is the part of the GPU, or how many are counted.
        """
        held, nodes = self.held, self._on_nodes
        at = np.arange(len(nodes)) - np.searchsorted(nodes["row"], nodes["row"])  # among the nodes of its row
        cells = [held[name] if name in held else np.full(len(held), None) for name in ("gpus", "devices")]
        cells_by_node = zip(at.tolist(), *(each[nodes["row"]].tolist() for each in cells), strict=True)
        found = [
            (number, device, share)
            for number, (position, gpus, devices) in enumerate(cells_by_node)
            for device, share in (devices[position] if devices else ((-1, gpus[position] * WHOLE),) if gpus else ())
            if share
        ]
        row, device, share = np.array(found, dtype=np.int64).reshape(-1, 3).T
        nodes = nodes.where(row)
        gpu, kind = np.full(len(nodes), -1), np.full(len(nodes), "", dtype=object)
        for name, table in self.tables.items():
            here = nodes["place"] == name
            known = np.maximum(device[here], 0), nodes["node"][here]
            gpu[here] = np.where(device[here] < 0, -1, table.gpu_of[known])
            kind[here] = np.array([*table.kinds])[table.kind_of[known]]
        holder = held["holder"][nodes["row"]]
        more = {"gpu": gpu, "device": device, "share": share / WHOLE, "type": kind.astype(str), "holder": holder}
        names = ("row", "place", "node", *more, "start", "end")
        return Table({name: more[name] if name in more else nodes[name] for name in names})

    def apart(self, partition: str | None = None) -> bool:
        """Whether it is known which devices were held, of a partition or of all."""
        counted = self.spans["device"] < 0
        return (
            "devices" in self.held
            and not (counted if partition is None else counted & (self.spans["place"] == partition)).any()
        )

    def _check_apart(self, partition: str | None = None) -> None:
        if not self.apart(partition):
            text = "needs devices told apart, as by shares of GPUs or types of them"
            raise InputError(text, source=self._result.name)

    def _of(self, kind: str | None) -> Table:
        if kind is not None and kind not in self.types:
            raise unknown("type", kind, dict.fromkeys(self.types))
        return self.spans if kind is None else self.spans.where(self.spans["type"] == kind)

    def allocated(self, kind: str | None = None) -> Steps:
        """Return the number of GPUs that are held over time, with the shares of each; of a type, or of all."""
        spans = self._of(kind)
        return Steps.from_spans(spans, spans["share"], self._result.started, self._result.ended)

    def in_service(self, kind: str | None = None) -> Steps:
        """Return the number of GPUs of nodes that are up, or still held, over time; of a type, or of all."""
        spans, result = self._of(kind), self._result
        total = Steps([result.started], [0.0], result.ended)
        for place, (partition, numbers) in self._numbers.items():
            table = self.tables[partition]
            number = [*table.kinds].index(kind) if kind in table.kinds else -1
            mine = table.all_devices * ((table.kind_of == number) | (kind is None))
            gpus = mine[:, numbers].sum(axis=0) / WHOLE
            down = result.down_by_node(place)
            there = Steps.from_spans(down, -gpus[down["node"]], result.started, result.ended)
            away = down.with_columns(node=numbers[down["node"]])
            held = parts_inside(spans.where(self.held["place"][spans["row"]] == place), away)
            total += there.scaled(1.0, float(gpus.sum()))
            total += Steps.from_spans(held, held["share"], result.started, result.ended)
        return total

    def idle(self, kind: str | None = None) -> Steps:
        """Return the number of GPUs in service that nobody holds, over time; of a type, or of all."""
        return self.in_service(kind) + self.allocated(kind).scaled(-1.0)

    @property
    def table(self) -> Table:
        """One row by type: ``type, gpus``, the most in service, the means ``allocated, idle``, and ``utilisation``."""
        rows = []
        for kind in self.types:
            there, taken = self.in_service(kind), self.allocated(kind).mean()
            rows.append((kind, there.max(), taken, there.mean() - taken, taken / (there.mean() or float("nan"))))
        names = ("type", "gpus", "allocated", "idle", "utilisation")
        return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))

    def fragmentation(self, mix: str | None = None) -> Steps:
        """Return the free GPUs that requests of a mix cannot use, over time, weighed by their shares of the mix.

        Free GPUs of a node count for each request that the node cannot meet, or that needs no GPU; else only those of
        which less is free than it needs of one; of a GPU with slices counts what is free in sum. Nodes that are down
        count as if they were up.

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
        self._check_apart()
        if mix is None:
            ran = zip(self.held["cores"].tolist(), self.held["gpus"].tolist(), strict=True)
            mix = mix_of_counts(Counter((int(cores[0]), gpus[0], "") for cores, gpus in ran if cores))
        score, result = FGD(mix), self._result
        total = Steps([result.started], [0.0], result.ended)
        for name, table in self.tables.items():
            nodes, devices = (each.where(each["place"] == name) for each in (self._on_nodes, self.spans))
            every = np.arange(len(table))
            all_along = every, np.full(len(table), result.started), np.full(len(table), result.ended)
            states = Segments(all_along, (nodes["node"], nodes["start"], nodes["end"]))
            which, state = states.pieces(nodes["node"], nodes["start"], nodes["end"])
            cores = table.capacity[0, states.unit] - np.bincount(state, nodes["processors"][which], len(states.unit))
            which, state = states.pieces(devices["node"], devices["start"], devices["end"])
            left = table.all_devices[:, states.unit]
            np.subtract.at(
                left, (devices["device"][which], state), np.rint(devices["share"][which] * WHOLE).astype(int)
            )
            useless = [
                score.fragments(table, states.unit[some], cores[some], left[:, some])
                for some in np.array_split(np.arange(len(cores)), 1 + len(cores) // _AT_ONCE)
            ]
            real = np.flatnonzero(states.real)
            spans = Table({"start": states.start[real], "end": states.end[real]})
            total += Steps.from_spans(spans, np.concatenate(useless)[real] / WHOLE, result.started, result.ended)
        return total

    def strips(self, partition: str) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
        """Return a chart of the GPUs of a partition, a strip of height 1 each.

        The names of the strips; and for each rectangle the row of what held capacity, and its lower and upper edge.

        Raises
        ------
        InputError
            the partition has no GPUs, or the devices are not told apart
        """
        if partition not in self.tables:
            raise unknown("partition with GPUs", partition, self.tables)
        self._check_apart(partition)
        table, spans = self.tables[partition], self.spans.where(self.spans["place"] == partition)
        gpus = table.capacity[1].astype(np.int64)
        names = zip(self._names[partition], gpus.tolist(), strict=True)
        at = spans["device"], spans["node"]
        size = table.all_devices[at]
        base = (np.cumsum(gpus) - gpus)[at[1]] * WHOLE + spans["gpu"] * WHOLE + table.place_of[at] * size
        order = np.lexsort((spans["start"], base))
        parts = np.rint(spans["share"] * WHOLE).astype(np.int64)
        found = [np.zeros((0, 3))]
        for group in np.split(order, np.flatnonzero(np.diff(base[order])) + 1):
            packed = pack(spans["start"][group], spans["end"][group], parts[group], int(size[group].max(initial=0)))
            edges = (base[group[:1]] + packed[edge] for edge in ("low", "high"))
            found.append(np.column_stack([spans["row"][group][packed["index"]], *edges]))
        boxes = np.concatenate(found)
        row, low, high = boxes[np.lexsort((boxes[:, 1], boxes[:, 0]))].T
        strips = [f"{name} GPU {number}" for name, count in names for number in range(count)]
        apart = (row[1:] != row[:-1]) | (low[1:] != high[:-1])  # neighbours of one holder are joined
        begins, ends = np.append(True, apart)[: len(row)], np.append(apart, True)[: len(row)]
        return strips, row[begins].astype(np.int64), np.column_stack([low[begins], high[ends]]) / WHOLE
