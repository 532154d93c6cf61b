"""Specs of machines: processors, their memory pools, and the links between pools.

Times are in seconds, sizes in bytes, powers in watts; ``time_unit`` names the unit of a machine with abstract times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Literal

import attrs

from simmodel.foundation.display import Fields, counted
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.loading import within_count
from simmodel.foundation.units import in_bytes, in_seconds, in_watts
from simmodel.platform.cluster import NodeSpec, _not_negative, _one_of, _positive, _tuple
from simmodel.platform.devices import DeviceSpec
from simmodel.platform.models import model_text
from simmodel.platform.network import LinkSpec, NetworkSpec
from simmodel.platform.topology import Valiant
from simmodel.work.task import CPU_CORES

__all__ = ["CPU_CORES", "ArchitectureSpec", "MachineSpec", "MemoryPoolSpec", "ProcessorSpec"]

Interval = tuple[float, float]


def _interval(value: float | Sequence[float]) -> Interval:
    if isinstance(value, (int, float)):
        return (value, value)
    least, most = value
    return (least, most)


def _rising(
    instance: ArchitectureSpec | ProcessorSpec,
    attribute: attrs.Attribute[tuple[float, float]],
    value: tuple[float, float],
) -> None:
    least, most = value
    if not 0 <= least <= most < inf or (attribute.name == "performance" and not least):
        bound = "> 0" if attribute.name == "performance" else ">= 0"
        raise InputError(f"must be two numbers {bound} in ascending order, got {list(value)}", place=attribute.name)


def _names(value: Iterable[str] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _phase_power() -> Any:
    return attrs.field(
        default=None,
        converter=attrs.converters.optional(in_watts),
        validator=attrs.validators.optional(_not_negative),
    )


@attrs.frozen(kw_only=True, repr=False)
class MemoryPoolSpec(Fields):
    """A memory pool, which holds the data objects of its processors.

    Parameters
    ----------
    name
        its name
    size
        bytes
    spill
        the slower pool to which data are evicted; ``None``: the ``home`` of the machine
    evict
        which unused data go first: ``"lru"``, ``"lfu"``, ``"size"``, ``"fifo"`` or a rule that
        :func:`~simmodel.resources.data.eviction.register_eviction` has made known
    model, options
        the class of a custom pool, derived from :class:`~simmodel.resources.data.memory.MemoryPool`, as for
        processors; and options for that class

    >>> MemoryPoolSpec(name="hbm", size=16e9, spill="host").size
    16000000000.0
    """

    name: str
    size: float = attrs.field(default=inf, converter=in_bytes, validator=_positive)
    spill: str | None = None
    evict: str = "lru"
    model: str | None = attrs.field(default=None, converter=attrs.converters.optional(model_text))
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)


@attrs.frozen(kw_only=True, repr=False)
class ArchitectureSpec(Fields):
    """A processor architecture, with its performance relative to the reference processor.

    Parameters
    ----------
    name
        its name
    performance
        interval of the speedup over the reference; one factor is drawn uniformly for each task and architecture. A
        single number is an interval of length zero
    speed
        flop/s, for tasks whose operations alone are known; ``None``: such tasks cannot run on it

    >>> ArchitectureSpec(name="gpu", performance=(1.1, 7.2)).performance
    (1.1, 7.2)
    """

    name: str
    performance: tuple[float, float] = attrs.field(default=(1.0, 1.0), converter=_interval, validator=_rising)
    speed: float | None = attrs.field(default=None, validator=_positive)


@attrs.frozen(kw_only=True, repr=False)
class ProcessorSpec(Fields):
    """Processors of one kind, each with its own queue of tasks.

    Parameters
    ----------
    name, count
        their name, with a number appended if there are several; their number
    type
        ``CPUCore``, ``GPU``, ``FPGA``, ``UPMEM`` ..., as in the implementations of tasks
    architecture, pool
        names of an architecture and a memory pool of the machine
    cores
        cores per processor; a processor with several cores runs several tasks simultaneously, each on the cores that
        it requests
    setup, setup_on
        setup time of a task in seconds, and the CPU cores that can perform the setup (the first free one in this
        order); default: the first CPU core of the machine
    reconfiguration
        seconds to load a family of tasks that is not loaded; an interval from which each family draws. Default: 0
    dma
        whether transfers need no CPU core
    model_error
        e: the actual run time is the expected one times a factor from 1 - e to 1 + e
    overlap
        whether data are fetched while the processor is busy with earlier tasks; ``None``: the option of the machine
    queue
        ``"fifo"``: in the order of decisions; ``"priority"``: tasks of higher priority first
    preemption
        ``"no"``, ``"requeue"`` (a preempted task starts again) or ``"suspend"`` (it resumes). With
        ``queue="priority"`` a task of higher priority preempts one of lower priority
    idle_power, load_power
        W per processor, idle and busy
    setup_power, reconfiguration_power, transfer_power
        W per processor in these phases of its own tasks; ``None``: ``load_power``, as in HetSim, whose processors draw
        idle power or load power. A CPU core that works for others draws ``load_power``
    model, options
        the class of a custom processor, derived from :class:`~simmodel.resources.processors.processor.Processor`: the
        class itself, a name (``simmodel list resources``) or ``module:Class``; and options for that class

    >>> ProcessorSpec(name="core", count=8, type="CPUCore", architecture="x86", pool="ram").names
    ('core0', 'core1', 'core2', 'core3', 'core4', 'core5', 'core6', 'core7')
    """

    name: str
    type: str
    architecture: str
    pool: str
    count: int = attrs.field(default=1, validator=[_positive, within_count])
    cores: int = attrs.field(default=1, validator=_positive)
    setup: float = attrs.field(default=0.0, converter=in_seconds, validator=_not_negative)
    setup_on: tuple[str, ...] = attrs.field(default=(), converter=_names)
    reconfiguration: tuple[float, float] = attrs.field(default=(0.0, 0.0), converter=_interval, validator=_rising)
    dma: bool = True
    model_error: float = attrs.field(default=0.0, validator=_not_negative)
    overlap: bool | None = None
    queue: Literal["fifo", "priority"] = attrs.field(default="fifo", validator=_one_of("fifo", "priority"))
    preemption: Literal["no", "requeue", "suspend"] = attrs.field(
        default="no", validator=_one_of("no", "requeue", "suspend")
    )
    idle_power: float = attrs.field(default=0.0, converter=in_watts, validator=_not_negative)
    load_power: float = attrs.field(default=0.0, converter=in_watts, validator=_not_negative)
    setup_power: float | None = _phase_power()
    reconfiguration_power: float | None = _phase_power()
    transfer_power: float | None = _phase_power()
    model: str | None = attrs.field(default=None, converter=attrs.converters.optional(model_text))
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)

    def __attrs_post_init__(self) -> None:
        if self.model_error > 1:
            raise InputError(f"must be a number from 0 to 1, got {self.model_error!r}", place="model_error")

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each processor."""
        return (self.name,) if self.count == 1 else tuple(f"{self.name}{i}" for i in range(self.count))

    @property
    def is_cpu(self) -> bool:
        """Whether they are CPU cores."""
        return self.type in CPU_CORES


@attrs.frozen(kw_only=True, repr=False)
class MachineSpec(Fields):
    """A machine: memory pools, kinds of processors, processors, and links between pools.

    Parameters
    ----------
    name, description, source
        its name, a description, and the source of its figures
    pools, architectures, processors
        see their classes; names must be unique
    links
        each ``between`` two pools; ``one_way``: only from the first to the second
    network
        instead of links: a :class:`~simmodel.platform.NetworkSpec` with a topology, whose hosts have the names of the
        pools, such as a platform of SimGrid
    home
        the pool of the initial data; default: the pool of the first CPU core, or the first pool
    time_unit
        the unit of time, if not seconds

    Raises
    ------
    InputError
        a name is duplicate or unknown, a processor that needs setup has no CPU core for it, no links lead from one
        pool with processors to another, or there are links beside a network

    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="hbm", size=16e9)],
    ...     architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="gpu", performance=8)],
    ...     processors=[ProcessorSpec(name="core", count=4, type="CPUCore", architecture="x86", pool="ram"),
    ...                 ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="hbm", setup=1e-5)],
    ...     links=[LinkSpec(name="pcie", bandwidth="32GBps", between=("ram", "hbm"))])
    >>> spec, spec.home
    (<MachineSpec machine: 5 processors (4 CPUCore, 1 GPU), 2 pools, 1 link>, 'ram')
    """

    name: str = "machine"
    description: str = ""
    source: str = ""
    pools: tuple[MemoryPoolSpec, ...] = attrs.field(converter=_tuple)
    architectures: tuple[ArchitectureSpec, ...] = attrs.field(converter=_tuple)
    processors: tuple[ProcessorSpec, ...] = attrs.field(converter=_tuple)
    links: tuple[LinkSpec, ...] = attrs.field(default=(), converter=_tuple)
    network: NetworkSpec | None = None
    home: str | None = None
    time_unit: str = "s"

    def __attrs_post_init__(self) -> None:
        pools = _by_name("pools", [pool.name for pool in self.pools])
        architectures = _by_name("architectures", [each.name for each in self.architectures])
        if not self.processors:
            raise InputError("must not be empty", place="processors")
        _by_name("processors", [name for each in self.processors for name in each.names])
        _by_name("links", [link.name for link in self.links])
        cores = [name for each in self.processors if each.is_cpu and each.cores == 1 for name in each.names]
        for i, each in enumerate(self.processors):
            where = f"processors[{i}]"
            _known("pool", each.pool, pools, f"{where}.pool")
            _known("architecture", each.architecture, architectures, f"{where}.architecture")
            for name in each.setup_on:
                _known("CPU core", name, cores, f"{where}.setup_on")
            if (each.setup or not each.dma) and not cores and not each.is_cpu:
                raise InputError(
                    f"missing CPU core (processor of type {CPU_CORES[0]}) for the setup of {each.name}",
                    place=where,
                )
        for i, link in enumerate(self.links):
            if link.between is None:
                raise InputError(f"link {link.name}: missing between (two pools)", place=f"links[{i}]")
            for name in link.between:
                _known("pool", name, pools, f"links[{i}].between")
        for i, pool in enumerate(self.pools):
            if pool.spill is not None:
                _known("pool", pool.spill, pools, f"pools[{i}].spill")
                if pool.spill == pool.name:
                    raise InputError(f"must be another pool, got {pool.spill!r}", place=f"pools[{i}].spill")
        if self.home is None:
            first = next((each for each in self.processors if each.is_cpu), None)
            object.__setattr__(self, "home", first.pool if first is not None else self.pools[0].name)
        else:
            _known("pool", self.home, pools, "home")
        self._check_ways()

    def _check_ways(self) -> None:
        used = dict.fromkeys([str(self.home), *(each.pool for each in self.processors)])
        used |= dict.fromkeys(pool.spill for pool in self.pools if pool.spill is not None and pool.name in used)
        if self.network is not None:
            self._check_network(self.network, used)
            return
        for source in used:
            reached = self._reached(source)
            for destination in used:
                if destination not in reached:
                    raise InputError(f"missing links from pool {source!r} to pool {destination!r}", place="links")

    def _check_network(self, network: NetworkSpec, used: Iterable[str]) -> None:
        if self.links:
            raise InputError("must be empty beside a network", place="links")
        if network.topology is None:
            raise InputError("must have a topology; links between pools are those of the machine", place="network")
        if isinstance(network.topology, Valiant):
            message = "must have one route for each pair of pools: snapshots of a machine keep no draws"
            raise InputError(message, place="network.topology")
        hosts = set(network.topology.hosts)
        for pool in used:
            if pool not in hosts:
                raise InputError(f"must have the pool {pool!r} among its hosts", place="network.topology")

    def _reached(self, source: str) -> set[str]:
        reached, ahead = {source}, [source]
        while ahead:
            here = ahead.pop()
            for link in self.links:
                assert link.between is not None
                a, b = link.between
                for one, other in ((a, b),) if link.one_way else ((a, b), (b, a)):
                    if one == here and other not in reached:
                        reached.add(other)
                        ahead.append(other)
        return reached

    @property
    def gpus(self) -> tuple[str, ...]:
        """The types of its processors of type GPU, by number: the names of their architectures."""
        return tuple(each.architecture for _, each in self.each_processor() if each.type == "GPU")

    def with_gpus(self, numbers: Collection[int]) -> MachineSpec:
        """Return the machine with those of its processors of type GPU that have these numbers, and with all others.

        >>> from simmodel import load_platform
        >>> load_platform("gpu-node").with_gpus([1]).gpus
        ('gpu',)
        """
        found, number = list[ProcessorSpec](), -1
        for name, each in self.each_processor():
            number += each.type == "GPU"
            if each.type != "GPU" or number in numbers:
                found.append(attrs.evolve(each, name=name, count=1))
        return attrs.evolve(self, processors=found)

    def as_node(self, **more: Any) -> tuple[NodeSpec, tuple[DeviceSpec, ...]]:
        """Return it as a node of a cluster, and the types of its GPUs, with their memory and power.

        Parameters
        ----------
        more
            further fields of the node
        """
        sizes = {pool.name: 0.0 if pool.size == inf else pool.size for pool in self.pools}
        cpus = [each for each in self.processors if each.is_cpu]
        gpus = {each.architecture: each for each in self.processors if each.type == "GPU"}
        node = {
            "name": self.name,
            "cores": sum(each.cores * each.count for each in cpus),
            "gpus": dict(Counter(self.gpus)),
            "memory": sizes[str(self.home)],
            "idle_power": sum(each.idle_power * each.count for each in cpus),
            "load_power": sum(each.load_power * each.count for each in cpus),
        }
        devices = (
            DeviceSpec(name=name, memory=sizes[gpu.pool], idle_power=gpu.idle_power, load_power=gpu.load_power)
            for name, gpu in gpus.items()
        )
        return NodeSpec(**{**node, **more}), tuple(devices)

    def models(self) -> Iterator[tuple[str, str]]:
        """Yield the place and the name of each model of custom processors, memory pools and links."""
        parts: dict[str, tuple[Any, ...]] = {"processors": self.processors, "pools": self.pools, "links": self.links}
        for key, specs in parts.items():
            for i, spec in enumerate(specs):
                if spec.model is not None:
                    yield f"{key}[{i}].model", spec.model

    def each_processor(self) -> Iterator[tuple[str, ProcessorSpec]]:
        """Yield the name and the spec of each processor, in order."""
        for spec in self.processors:
            for name in spec.names:
                yield name, spec

    @property
    def types(self) -> tuple[str, ...]:
        """The distinct types of its processors, in order."""
        return tuple(dict.fromkeys(each.type for each in self.processors))

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for _, spec in self.each_processor():
            counts[spec.type] = counts.get(spec.type, 0) + 1
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        parts = [f"{counted(sum(counts.values()), 'processor')} ({kinds})"]
        parts += [
            counted(len(self.pools), "pool"),
            counted(len(self.links), "link") if self.network is None else "a network",
        ]
        return f"<MachineSpec {self.name}: {', '.join(parts)}>"


def _by_name(what: str, names: list[str]) -> tuple[str, ...]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"duplicate name {name!r}", place=what)
        seen.add(name)
    return tuple(names)


def _known(kind: str, name: str, known: Iterable[str], place: str) -> None:
    names = list(known)
    if name not in names:
        raise InputError(unknown(kind, name, names).message, place=place)
