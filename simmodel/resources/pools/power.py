"""The power that jobs draw, as an amount that they hold: what a cap limits, and plans count."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import attrs

from simmodel.work.job import Job

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.platform.cluster import NodeSpec, PartitionSpec
    from simmodel.resources.pools.placements import Request
    from simmodel.work.job import LiveJob

__all__ = ["POWER", "PowerCount"]

POWER = "power"
"""The name of the amount, in whole milliwatts: their sums do not depend on their order."""


class _Kind(NamedTuple):
    """Nodes of one kind: how many, the cores and GPUs of each, W idle, W above that under load by level, and of GPUs.

    Nodes that can sleep count as if they drew no less than while they boot and stop: then any of them may. ``loads``:
    ``None`` is no level; ``by_node``: whether load is switched with the node.
    """

    number: int
    cores: int
    gpus: int
    idle: float
    loads: dict[float | None, float]
    gpu: float
    all_gpus: float
    by_node: bool

    @classmethod
    def of(cls, kind: NodeSpec, partition: PartitionSpec) -> _Kind:
        known = {each.name: each for each in partition.devices}
        devices = [(known[name], count) for name, count in kind.gpu_types.items() if name in known]
        more = [(each.load_power - each.idle_power, count) for each, count in devices]
        power = kind.watts
        changes = [phase[1] for phase in (power.boot, power.stop) if phase is not None]
        least = max(power.idle, *changes) if changes else power.idle
        levels: list[tuple[float | None, float]] = [*power.levels, (None, power.load)]
        loads = {level: max(0.0, watts - least) for level, watts in levels}
        idle = least + sum(each.idle_power * count for each, count in devices)
        gpus = max((watts for watts, _ in more), default=0.0), sum(watts * count for watts, count in more)
        return cls(kind.count, kind.cores, kind.gpus, idle, loads, *gpus, power.model == "node")


class CountedPool(Protocol):
    """A pool whose jobs request power: see :class:`~simmodel.resources.pools.pool.Pool`."""

    env: Environment
    spec: Any
    running: Any
    consumables: Any

    def request_of(self, spec: Job) -> Request | None: ...


class PowerCount:
    """Counts what each job draws on a pool above its idle nodes, at most: on the nodes that draw most.

    Where load is linear and nodes are alike this is what it draws. The measured power of a job is the future, and does
    not count.

    Parameters
    ----------
    pool
        the pool, whose jobs request their power once this is its ``power``

    lowers
        whether jobs that draw too much may run at lower levels

    Attributes
    ----------
    idle, most
        mW of all its nodes, idle (of those that can sleep: or while they boot and stop) and under load

    >>> from simmodel import Environment
    >>> from simmodel.platform import NodePower, NodeSpec, PartitionSpec
    >>> from simmodel.resources import NodePool
    >>> nodes = [NodeSpec(count=4, cores=10, power=NodePower(idle=95, levels=[(1.0, 190), (0.8, 145)]))]
    >>> pool = NodePool(Environment(), "batch", PartitionSpec(nodes=nodes))
    >>> count = pool.power = PowerCount(pool)
    >>> count.idle, count.most, count.of(Job(processors=4, run=1)).consumables
    (380000, 760000, {'power': 38000})
    """

    def __init__(self, pool: CountedPool, *, lowers: bool = False) -> None:
        self._pool = pool
        self.lowers = lowers
        spec: PartitionSpec = pool.spec
        if spec.nodes:
            self._kinds = [_Kind.of(kind, spec) for kind in spec.nodes]
        else:
            loads: dict[float | None, float] = {None: spec.load_power - spec.idle_power}
            self._kinds = [_Kind(spec.capacity, 1, 0, spec.idle_power, loads, 0.0, 0.0, False)]
        self.idle = _milliwatts(sum(kind.idle * kind.number for kind in self._kinds))
        full = (kind.number * (kind.idle + max(kind.loads.values()) + kind.all_gpus) for kind in self._kinds)
        self.most = _milliwatts(sum(full))
        self._plain: dict[int, Request] = {}

    def of(self, spec: Job) -> Request:
        """Return the request of a job with the power that it draws."""
        request = self._pool.request_of(spec)
        assert request is not None
        return request

    def counted(self, request: Request, level: float | None = None) -> Request:
        """Return a request with the power that it draws at a level."""
        return attrs.evolve(request, consumables={**request.consumables, POWER: self._amount(request, level)})

    def plain(self, processors: int) -> Request:
        """Return the request for processors and nothing else."""
        found = self._plain.get(processors)
        if found is None:
            found = self._plain[processors] = self.of(Job(processors=processors, run=0.0))
        return found

    def count(self, job: LiveJob) -> None:
        """Let a job request the power that it draws at its present size and level."""
        request = self.plain(job.processors) if job.request is None else job.request
        job.request = self.counted(request, job.level)

    def allows(self, job: LiveJob, request: Request, seconds: float) -> bool:
        """Whether a running job may draw the power of another request for some seconds (s) from now on."""
        now, held = self._pool.env.now, job.request.consumables.get(POWER, 0)
        profile = self._pool.consumables.profiles(now, self._pool.running)[POWER]
        assert job.run is not None
        profile.change(held, now, job.run.expected_end)
        return bool(profile.fits(request.consumables[POWER], seconds))

    def _amount(self, request: Request, level: float | None) -> int:
        able = [kind for kind in self._kinds if request.nodes is None or kind.cores >= request.cores_per_node]
        able = [kind for kind in able if kind.gpus >= request.gpus_per_node] or self._kinds
        least = min(kind.cores for kind in able)
        nodes, processors = request.nodes, request.processors
        if nodes is None:
            nodes = min(sum(kind.number for kind in able), ceil(processors / (least if request.exclusive else 1)))
        if request.exclusive:
            watts = nodes * max(kind.loads.get(level, kind.loads[None]) for kind in able)
            gpus = max(kind.all_gpus for kind in able)
        else:
            shared = [kind.loads.get(level, kind.loads[None]) / kind.cores for kind in able if not kind.by_node]
            switched = [kind.loads.get(level, kind.loads[None]) for kind in able if kind.by_node]
            watts = processors * max(shared, default=0.0) + nodes * max(switched, default=0.0)
            gpus = max(kind.gpu for kind in able) * request.gpus_per_node
        watts += nodes * gpus
        return _milliwatts(watts)


def _milliwatts(watts: float) -> int:
    """Return watts in whole milliwatts, rounded up."""
    return ceil(1000 * watts - 1e-6)
