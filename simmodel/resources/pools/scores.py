"""Placements by a score of each node, and of each of its devices: those of the field for clusters with shared GPUs.

Sources: best fit, dot product, packing, clustering and fragmentation gradient descent (FGD) as compared in Q. Weng et
al., "Beware of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023,
and in its simulator, from which the whole-number scores are; the dot product: R. Grandl et al., "Multi-resource packing
for cluster schedulers", SIGCOMM 2014; clustering: W. Xiao et al., "Gandiva", OSDI 2018.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.resources.pools.devices import WHOLE
from simmodel.resources.pools.network_placements import draws
from simmodel.resources.pools.placements import NodeChoice, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.placements import DeviceView
    from simmodel.work.job import Job

    Numbers = NDArray[np.intp]
    Scores = NDArray[np.float64]
    Thousandths = NDArray[np.int64]

__all__ = ["FGD", "DotProduct", "GpuBestFit", "GpuClustering", "GpuPacking", "Score", "mix_of", "mix_of_counts"]


class Score(NodeChoice):
    """The base class of placements that give each node a number: the highest is taken.

    A number is asked for again only if its node has changed since the same request was scored, so it must depend on the
    node and the request alone.

    Parameters
    ----------
    ties
        ``"lowest"``: equal scores go to the lowest number; ``"random"``: to any, by the seed of the run

    Raises
    ------
    InputError
        an unknown rule for ties

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
    >>> from simmodel.resources import register_placement
    >>> class Emptiest(Score):
    ...     def score(self, table, nodes):
    ...         return table.devices.devices[:, nodes].sum(axis=0)
    >>> register_placement("emptiest", Emptiest)
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=8, gpus=2)], placement="emptiest")])
    >>> simulate(spec, [Job(nodes=1, gpus_per_node=0.6, run=9)] * 3, "fcfs").runs["nodes"].tolist()
    [(0,), (1,), (0,)]
    """

    tells_devices = True

    def __init__(self, ties: str = "lowest") -> None:
        if ties not in ("lowest", "random"):
            raise InputError(f"must be lowest or random, got {ties!r}", place="ties")
        self.ties = ties

    def score(self, table: Table, nodes: Numbers) -> Any:
        """Return the score of each of some nodes, which meet the request; or of each device of each, as rows.

        The score of a node is then that of its best device, on which a share is. ``-inf``: not on this device.
        """
        raise NotImplementedError

    def nodes(self, table: Table, candidates: Numbers, count: int) -> Numbers:
        """Return the candidates by score, the highest first."""
        devices = table.devices
        assert devices is not None

        def best(nodes: Numbers) -> Scores:
            found: Scores = self.score(table, nodes)
            return found if found.ndim == 1 else found.max(axis=0)

        scores = devices.scored(table.request, candidates, best)
        if self.ties == "random":
            order = draws(table, b"ties", candidates, count).permutation(len(candidates))
            return candidates[order[np.argsort(-scores[order], kind="stable")]]
        if count == 1:
            first = int(scores.argmax())
            return candidates[first : first + 1]
        return candidates[np.argsort(-scores, kind="stable")]


def _wanted(table: Table, devices: DeviceView) -> tuple[int, int, int]:
    """Return the cores, how many parts of devices, and the thousandths of each that a request is for on a node."""
    ask = devices.ask(table.request)
    cores = table.request.cores_per_node if table.request.nodes is not None else 1
    if ask is None:
        return cores, 0, 0
    return cores, ask.parts, int(ask.need.min()) * (1 if isinstance(ask.length, int) else int(ask.length.max()))


def _told(table: Table) -> DeviceView:
    assert table.devices is not None
    return table.devices


class _ByAmounts(Score):
    """The base class of scores by free cores and GPUs, as parts of the largest node."""

    def _parts(self, table: Table, nodes: Numbers) -> tuple[Scores, Scores, float, float]:
        """Return the free cores and GPUs of some nodes, and those that are wanted, as parts of the most of a node."""
        devices = _told(table)
        cores, count, each = _wanted(table, devices)
        most_cores, most_gpus = table.capacity[0].max(), max(table.capacity[1].max(), 1) * WHOLE
        left = devices.devices[:, nodes].sum(axis=0)
        return table.free[0, nodes] / most_cores, left / most_gpus, cores / most_cores, count * each / most_gpus


class GpuBestFit(_ByAmounts):
    """the nodes left with the least of cores and GPUs, as parts of the largest node, in percent"""

    def score(self, table: Table, nodes: Numbers) -> Any:
        """Return what is not left of cores and GPUs, in whole percent of the largest node."""
        cores, gpus, wanted_cores, wanted_gpus = self._parts(table, nodes)
        return np.trunc((1 - ((cores - wanted_cores) * 0.5 + (gpus - wanted_gpus) * 0.5)) * 100)


class DotProduct(_ByAmounts):
    """the nodes whose free cores and GPUs have the least product with those requested, in percent"""

    def score(self, table: Table, nodes: Numbers) -> Any:
        """Return 100 without the mean product, in whole percent."""
        cores, gpus, wanted_cores, wanted_gpus = self._parts(table, nodes)
        return np.trunc((1 - (cores * wanted_cores + gpus * wanted_gpus) / 2) * 100)


class GpuPacking(Score):
    """GPUs in use first, the fullest; then free ones of nodes in use; then idle nodes, those with the fewest GPUs"""

    def score(self, table: Table, nodes: Numbers) -> Any:
        """Return 50 to 100 for GPUs in use, 33 to 50 for free ones of nodes in use, less for idle nodes."""
        devices = _told(table)
        _, count, each = _wanted(table, devices)
        if not count:
            return np.zeros(len(nodes))
        left, there = devices.devices[:, nodes], devices.all_devices[:, nodes]
        free = ((left == there) & (there > 0)).sum(axis=0)
        idle = free == (there > 0).sum(axis=0)
        by_room = np.sort(np.where(left >= each, left, 2 * WHOLE), axis=0)[:count]
        whole = (by_room == WHOLE).sum(axis=0)
        shared = np.maximum(100 - (by_room // 10).sum(axis=0) // 10, 50)
        used = np.where(whole > 0, np.maximum(50 - whole, 33), shared)
        return np.where(idle, np.maximum(33 - free, free), used).astype(np.float64)


class GpuClustering(Score):
    """nodes whose jobs have as many GPUs as this one, or shares as it, then idle ones; the fullest of each"""

    def score(self, table: Table, nodes: Numbers) -> Any:
        """Return 75 to 100 beside jobs of its kind alone, 50 to 75 beside others, 25 to 50 on idle nodes, else less."""
        devices = _told(table)
        _, count, each = _wanted(table, devices)
        if not count:
            return np.zeros(len(nodes))
        users = devices.users[:, nodes] > 0
        like, kinds = users[0 if each < WHOLE else min(count, len(users) - 1)], users.sum(axis=0)
        base = np.where(like, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
        most = int(max(table.capacity[1].max(), 1)) * WHOLE
        return (base + 25 * (most - devices.devices[:, nodes].sum(axis=0)) // most).astype(np.float64)


_TYPICAL = re.compile(r"([0-9]+)\*([0-9]+)/([0-9]+(?:\.[0-9]{1,3})?)(?:/([^/+]+))?")


def mix_of(jobs: Iterable[Job], popularity: float = 0.95) -> str:
    """Return the mix of the requests of some jobs as FGD takes it: the most frequent that cover a part of all.

    Ties of frequency go to more cores, then larger shares, then more GPUs.

    >>> from simmodel import Job
    >>> mix_of([Job(run=1, cores_per_node=4, nodes=1, gpus_per_node=0.5)] * 3 + [Job(run=1, processors=2)])
    '3*4/0.5+1*2/0'
    """
    return mix_of_counts(
        Counter(
            (
                job.processors if job.nodes is None else job.cores_per_node,
                round(job.gpus_per_node, 3),
                job.gpu.partition(":")[0],
            )
            for job in jobs
        ),
        popularity,
    )


def mix_of_counts(counts: Mapping[tuple[int, float, str], int], popularity: float = 0.95) -> str:
    """Return the mix as :func:`mix_of`, given how often each request occurs: its cores, its GPUs, and their types."""
    total, covered, found = sum(counts.values()), 0, []
    rows = [(count, cores, min(gpus, 1), gpus, kind) for (cores, gpus, kind), count in counts.items()]
    for count, cores, _, gpus, kind in sorted(rows, reverse=True):
        if covered >= popularity * total:
            break
        covered += count
        found.append(f"{count}*{cores}/{gpus:g}" + (f"/{kind}" if kind else ""))
    return "+".join(found)


class FGD(Score):
    """fragmentation gradient descent: where the share of free GPUs that a mix of requests cannot use grows least

    Parameters
    ----------
    mix
        the requests, each ``count*cores/GPUs``, or ``count*cores/GPUs/types``, with ``+`` between them, as
        :func:`mix_of` returns them
    ties
        as for every score

    Raises
    ------
    InputError
        the mix is no such text
    """

    def __init__(self, mix: str = "1*1/1", ties: str = "lowest") -> None:
        super().__init__(ties)
        self.mix = mix
        found = [_TYPICAL.fullmatch(part) for part in str(mix).split("+")]
        if not all(found):
            raise InputError(f"must be count*cores/GPUs with + between them, got {mix!r}", place="mix")
        rows = [each.groups() for each in found if each is not None]
        gpus = [float(row[2]) for row in rows]
        self._count = np.array([int(row[0]) for row in rows], dtype=np.int64)
        self._cores = np.array([int(row[1]) for row in rows])
        self._number = np.array([max(int(each), 1) for each in gpus])
        thousandths = [WHOLE if each >= 1 else round(each * WHOLE) for each in gpus]
        self._each, self._row = np.unique([each or WHOLE * 1000 for each in thousandths], return_inverse=True)
        self._types = [row[3] for row in rows]

    def _usable(
        self, cores: Scores, enough: Thousandths, sums: Thousandths, allowed: NDArray[np.bool_] | None
    ) -> Thousandths:
        """Return the thousandths that the requests could use, times their counts, summed.

        Parameters
        ----------
        cores
            free cores by node
        enough, sums
            for each size of a request: how many devices have as much, and how much these have in sum
        allowed
            by request and node, whether it has a type that the request may have
        """
        shape = (-1,) + (1,) * (enough.ndim - 1)
        met = enough[self._row] >= self._number.reshape(shape)
        met &= cores >= self._cores.reshape(shape)
        if allowed is not None:
            met &= allowed
        usable: Thousandths = ((met * sums[self._row]) * self._count.reshape(shape)).sum(axis=0)
        return usable

    def fragments(self, devices: DeviceView, nodes: Numbers, cores: Scores, left: Thousandths) -> Scores:
        """Return the free thousandths of states of nodes that the mix cannot use, on average over its requests.

        Parameters
        ----------
        devices
            the table of the nodes
        nodes, cores, left
            of each state: the node, its free cores, and the free thousandths of each device
        """
        there = left >= self._each[:, None, None]
        usable = self._usable(cores, there.sum(axis=1), (there * left).sum(axis=1), self._allowed(devices, nodes))
        found: Scores = left.sum(axis=0) - usable / int(self._count.sum())
        return found

    def score(self, table: Table, nodes: Numbers) -> Any:
        """Return the sigmoid of the fragmentation that goes, in GPUs, in whole percent; of each device for shares."""
        devices = _told(table)
        cores, count, each = _wanted(table, devices)
        left, free = devices.devices[:, nodes], table.free[0, nodes]
        allowed = self._allowed(devices, nodes)
        sizes = self._each[:, None, None]
        there = left >= sizes
        enough, held = there.sum(axis=1), there * left
        sums = held.sum(axis=1)
        before = self._usable(free, enough, sums, allowed)
        if 0 < each < WHOLE and count == 1:
            open_ = devices.open(devices.ask(table.request), nodes)  # type: ignore[arg-type]
            rest = left - each
            then = rest >= sizes
            enough = enough[:, None] - there + then
            sums = sums[:, None] - held + then * rest
            after = self._usable(free - cores, enough, sums, None if allowed is None else allowed[:, None])
            gone = self._gone(before, after, each)
            return np.where(open_, gone, -np.inf)
        taken = np.zeros_like(left)
        if count:
            ask = devices.ask(table.request)
            assert ask is not None
            open_ = devices.open(ask, nodes)
            taken = (open_ & (open_.cumsum(axis=0) <= count)) * each
        rest = left - taken
        then = rest >= sizes
        after = self._usable(free - cores, then.sum(axis=1), (then * rest).sum(axis=1), allowed)
        return self._gone(before, after, each * count)

    def _gone(self, before: Thousandths, after: Thousandths, taken: int) -> Scores:
        """Return the score of a change of what is usable, when some thousandths are taken."""
        less = (taken - (before - after) / int(self._count.sum())) / WHOLE
        return np.trunc(100 / (1 + np.exp(-less)))

    def _allowed(self, devices: DeviceView, nodes: Numbers) -> NDArray[np.bool_] | None:
        """Return by request and node whether a device has a type that the request may have; ``None``: all do."""
        if not any(self._types):
            return None
        kinds = list(devices.kinds)
        rows = []
        for types in self._types:
            named = [kinds.index(each) for each in types.split("|") if each in kinds] if types else range(len(kinds))
            rows.append(np.isin(devices.kind_of[:, nodes], list(named)).any(axis=0))
        return np.array(rows)
