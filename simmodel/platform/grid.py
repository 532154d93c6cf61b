"""Specs of grids: sites with hosts and storage, the network between them, and the files that they hold.

Times are in seconds, sizes in bytes, bandwidths in bytes/s. The speed of a host is relative to the run times of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import ceil, exp, inf, isfinite, log, log1p, sqrt
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, of_class, shown, unknown
from simmodel.foundation.units import in_bytes, in_seconds
from simmodel.platform.cluster import (
    ClusterSpec,
    FailureModel,
    NodeSpec,
    PartitionSpec,
    _one_of,
    _whole,
    placement_text,
)
from simmodel.platform.links import cables
from simmodel.platform.network import NetworkSpec
from simmodel.platform.storage import StorageSpec, above_zero, at_least_zero
from simmodel.platform.topology import Valiant, ends_of, switches_in

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DelaySpec", "FileSpec", "GridSpec", "SiteOutageSpec", "SiteSpec"]


def _tuple(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(values)


def _names(value: Iterable[str] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _finite(_instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, (str, bool)) or not (value >= 0 and isfinite(value)):
        raise InputError(f"must be a finite number >= 0, got {value!r}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class DelaySpec(Fields):
    """A random or constant time.

    Parameters
    ----------
    distribution
        ``"constant"``, ``"exponential"`` or ``"log-normal"``
    mean
        seconds
    cv
        coefficient of variation (standard deviation / mean) of ``"log-normal"``

    >>> import numpy as np
    >>> DelaySpec(mean="2min").draw(np.random.default_rng(1))
    120.0
    """

    distribution: Literal["constant", "exponential", "log-normal"] = attrs.field(
        default="constant", validator=_one_of("constant", "exponential", "log-normal")
    )
    mean: float = attrs.field(converter=in_seconds, validator=_finite)
    cv: float = attrs.field(default=1.0, validator=_finite)

    @classmethod
    def of(cls, value: DelaySpec | float | str | None) -> DelaySpec | None:
        """Return a delay: a number or a text such as ``"5min"`` is a constant one, zero is none."""
        if value is None or isinstance(value, DelaySpec):
            return value
        if not isinstance(value, Real | str):
            given = f"DelaySpec(distribution='exponential', mean=300), got {shown(value)}"
            raise InputError(f"must be seconds, or a distribution of seconds such as {given}")
        delay = cls(mean=value)
        return delay if delay.mean else None

    def draw(self, rng: np.random.Generator) -> float:
        """Draw the seconds of one delay; a constant one draws nothing."""
        if self.distribution == "exponential":
            return float(rng.exponential(self.mean))
        if self.distribution == "log-normal" and self.mean and self.cv:
            return float(rng.lognormal(*self._logarithms()))
        return float(self.mean)

    def _logarithms(self) -> tuple[float, float]:
        variance = log1p(self.cv**2)
        return log(self.mean) - variance / 2, sqrt(variance)

    def quantile(self, share: float) -> float:
        """Return the seconds that a share (in (0, 1)) of all delays take at most.

        >>> DelaySpec(distribution="exponential", mean=100).quantile(0.5)
        69.31471805599453
        """
        if self.distribution == "exponential":
            return -self.mean * log1p(-share)
        if self.distribution == "log-normal" and self.mean and self.cv:
            return exp(NormalDist(*self._logarithms()).inv_cdf(share))
        return float(self.mean)


def _delay(value: DelaySpec | float | str | None) -> DelaySpec | None:
    return DelaySpec.of(value)


@attrs.frozen(kw_only=True, repr=False)
class SiteSpec(Fields):
    """A site of a grid: a cluster of hosts with a storage and a place in the network.

    Parameters
    ----------
    name
        its name, which is also its place in the network
    hosts
        its hosts; a job runs on one of them. Hosts of one kind are counted, and chosen when a job starts
    placement
        which host a job gets, as in :class:`~simmodel.platform.cluster.PartitionSpec`; default: ``"best-fit"``
    cores
        instead of ``hosts``: a number of interchangeable cores
    storage
        its storage; default: unlimited and infinitely fast
    disks
        bandwidths (bytes/s) for reading and for writing of the disk of each host, by kind of host, if jobs read and
        write the disk of their host; default: they share the storage's bandwidth
    staging
        ``"before"``: the inputs of a job are brought to the site before it joins the queue; ``"inside"``: after it has
        started, so that it holds its cores meanwhile (as pilots, and CGSim's jobs)
    overhead
        seconds, or a :class:`DelaySpec`, between the assignment of a job to the site and its queue: pilot start
    limit
        the most jobs that may be at the site at once, waiting or running; ``None``: no limit
    tier
        its level in a hierarchy, 0 on top, for policies and pictures

    Raises
    ------
    InputError
        a value is invalid, or not exactly one of ``hosts`` and ``cores`` is given

    >>> site = SiteSpec(name="BNL", hosts=[NodeSpec(count=10, cores=64)], storage=StorageSpec(capacity="3PB"))
    >>> site.cluster.processors
    640
    """

    name: str
    hosts: tuple[NodeSpec, ...] = attrs.field(default=(), converter=_tuple)
    placement: str | None = attrs.field(default=None, converter=placement_text)
    cores: int | None = attrs.field(default=None, validator=_whole(1))
    storage: StorageSpec = attrs.field(factory=StorageSpec)
    disks: tuple[tuple[float, float], ...] = attrs.field(default=(), converter=_tuple)
    staging: Literal["before", "inside"] = attrs.field(default="before", validator=_one_of("before", "inside"))
    overhead: DelaySpec | None = attrs.field(default=None, converter=_delay)
    limit: int | None = attrs.field(default=None, validator=_whole(1))
    tier: int | None = attrs.field(default=None, validator=_whole(0))

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"must be the name of a site, got {self.name!r}", place="name")
        if (self.cores is None) == (not self.hosts):
            found = "neither" if self.cores is None else "both"
            raise InputError(f"must have either hosts or cores, got {found}", place="hosts")
        if self.disks and len(self.disks) != len(self.hosts):
            message = f"must be two bandwidths for each of {len(self.hosts)} kinds of hosts, got {len(self.disks)}"
            raise InputError(message, place="disks")
        for i, pair in enumerate(self.disks):
            if len(pair) != 2 or not all(value > 0 for value in pair):
                raise InputError(f"must be two bandwidths > 0, got {pair!r}", place=f"disks[{i}]")

    @property
    def cluster(self) -> ClusterSpec:
        """Its cluster: one partition."""
        if self.cores is not None:
            partition = PartitionSpec(name=self.name, processors=self.cores)
        else:
            partition = PartitionSpec(name=self.name, nodes=self.hosts, one_host=True, placement=self.placement)
        return ClusterSpec(name=self.name, partitions=(partition,), on_failure="lose")

    @property
    def capacity(self) -> int:
        """Its cores."""
        return self.cores if self.cores is not None else sum(host.count * host.cores for host in self.hosts)

    @property
    def speed(self) -> float:
        """The mean speed of its cores."""
        if self.cores is not None:
            return 1.0
        return sum(host.count * host.cores * host.speed for host in self.hosts) / self.capacity

    def with_speed(self, speed: float) -> SiteSpec:
        """Return the site with this mean speed of its cores: all its hosts are faster or slower by one factor.

        A site of interchangeable cores becomes one host, which has them all.

        >>> SiteSpec(name="BNL", cores=8).with_speed(1.5).hosts
        (NodeSpec(cores=8, speed=1.5),)
        """
        if self.cores is not None:
            return attrs.evolve(self, cores=None, hosts=(NodeSpec(count=1, cores=self.cores, speed=speed),))
        factor = speed / self.speed
        return attrs.evolve(self, hosts=[attrs.evolve(host, speed=host.speed * factor) for host in self.hosts])


@attrs.frozen(kw_only=True, repr=False)
class FileSpec(Fields):
    """A file of a grid: its name, its bytes and the sites that have a replica at first."""

    name: str
    size: float = attrs.field(converter=in_bytes, validator=_finite)
    sites: tuple[str, ...] = attrs.field(converter=_names)


@attrs.frozen(kw_only=True, repr=False)
class SiteOutageSpec(Fields):
    """A time in which a site is down, or takes no jobs.

    Parameters
    ----------
    site
        its name
    at, until
        begin and end in seconds; ``inf``: no end
    kind
        ``"down"``: its jobs and transfers fail, its files cannot be read elsewhere; ``"closed"``: it takes no new jobs
    reason
        for the record
    """

    site: str
    at: float = attrs.field(converter=in_seconds, validator=at_least_zero)
    until: float = attrs.field(default=inf, converter=in_seconds)
    kind: Literal["down", "closed"] = attrs.field(default="down", validator=_one_of("down", "closed"))
    reason: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.until > self.at:
            raise InputError(f"must be > at ({self.at:g} s), got {self.until:g}", place="until")


def _no_network() -> NetworkSpec:
    return NetworkSpec(links=())


@attrs.frozen(kw_only=True, repr=False)
class GridSpec(Fields):
    """A grid: a broker over sites that are joined by a network and hold files.

    Parameters
    ----------
    name
        its name in reports
    sites
        its sites; ties between sites go to the first
    network
        the network, whose places are the names of the sites; a transfer within a site takes no time
    files
        the files at its beginning, with their replicas
    outages
        times in which a site is down, or takes no jobs
    failures
        random failures of sites, links and switches (the places of the network that are no sites)
    cycle
        seconds, or a :class:`DelaySpec`, for which the broker rests after its decisions: jobs that come meanwhile wait
        for its next turn; ``None``: it decides at each instant in which something changes
    retries
        how often a job is assigned again after a failure of its site or of its data; then it has failed
    core_speed
        flop/s of a core of speed 1, for data sets that count work in flop
    description, source
        a description of the grid, and the source of its figures

    Raises
    ------
    InputError
        a name is duplicate or unknown

    >>> spec = GridSpec(sites=[SiteSpec(name="a", cores=8), SiteSpec(name="b", cores=4)])
    >>> spec.site("b").capacity
    4
    """

    name: str = "grid"
    sites: tuple[SiteSpec, ...] = attrs.field(converter=_tuple)
    network: NetworkSpec = attrs.field(factory=_no_network)
    files: tuple[FileSpec, ...] = attrs.field(default=(), converter=_tuple)
    outages: tuple[SiteOutageSpec, ...] = attrs.field(default=(), converter=_tuple)
    failures: tuple[FailureModel, ...] = attrs.field(default=(), converter=_tuple)
    cycle: DelaySpec | None = attrs.field(default=None, converter=_delay)
    retries: int = attrs.field(default=0, validator=_whole(0))
    core_speed: float = attrs.field(default=1.0, validator=above_zero)
    description: str = ""
    source: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.sites:
            raise InputError("must not be empty", place="sites")
        for i, each in enumerate(self.sites):
            of_class(each, SiteSpec, "a SiteSpec (BrokerSpec(places=...) joins grids)", f"sites[{i}]")
        names = _unique("sites", (site.name for site in self.sites))
        _unique("files", (file.name for file in self.files))
        given_to = dict.fromkeys(names, 0)
        for i, file in enumerate(self.files):
            for site in file.sites:
                if site not in names:
                    raise InputError(unknown("site", site, names).message, place=f"files[{i}].sites")
                given_to[site] += ceil(file.size)
        for i, each in enumerate(self.sites):
            if (found := given_to[each.name]) > each.storage.capacity:
                message = f"must hold the files at {each.name}, {found:,} bytes, got {each.storage.capacity:,.15g}"
                raise InputError(message, place=f"sites[{i}].storage.capacity")
        if isinstance(self.network.topology, Valiant):
            message = "must have one route for each pair of sites: snapshots of a grid keep no draws"
            raise InputError(message, place="network.topology")
        for i, outage in enumerate(self.outages):
            if outage.site not in names:
                raise InputError(unknown("site", outage.site, names).message, place=f"outages[{i}].site")
        for i, model in enumerate(self.failures):
            model.check(("sites", "links", "switches"), self.failing, f"failures[{i}]")

    def site(self, name: str) -> SiteSpec:
        """Return the site with this name; raises ``InputError`` if there is none."""
        for site in self.sites:
            if site.name == name:
                return site
        raise unknown("site", name, [site.name for site in self.sites])

    def failing(self, model: FailureModel) -> Mapping[str, Sequence[str]]:
        """Return what each part of a failure model takes down: a site itself, or links.

        >>> from simmodel.platform import LinkSpec
        >>> links = [LinkSpec(name=name, bandwidth=1, between=(name, "hub")) for name in ("a", "b")]
        >>> sites = [SiteSpec(name=name, cores=1) for name in ("a", "b")]
        >>> grid = GridSpec(sites=sites, network=NetworkSpec(links=links))
        >>> grid.failing(FailureModel(of="switches", mean_time_between_failures="30d"))
        {'hub': ['a', 'b']}
        """
        sites = {site.name: [site.name] for site in self.sites}
        if model.of == "sites":
            return sites
        links, topology = self.network.links, self.network.topology
        if model.of == "links":
            return cables(links if topology is None else [topology.link(name) for name in model.names])
        found: dict[str, list[str]] = {}
        for link in links:
            for place in link.between or ():
                if place not in sites:
                    found.setdefault(place, []).append(link.name)
        if topology is not None and (switches := switches_in(topology)):
            numbers = {name: number for number, name in enumerate(topology.hosts)}
            hosts = [numbers[name] for name in sites if name in numbers]
            names = {name: None for a, b in permutations(hosts, 2) for name in topology.route(a, b)}
            found = {switch: [] for switch in switches}
            for name in names:
                for end in ends_of(name):
                    if end in found:
                        found[end].append(name)
        return found

    @property
    def processors(self) -> int:
        """Total number of cores."""
        return sum(site.capacity for site in self.sites)

    @property
    def places(self) -> Mapping[str, ClusterSpec]:
        """The clusters of its sites by name, as the places of a broker."""
        return {site.name: site.cluster for site in self.sites}

    def models(self) -> Iterator[tuple[str, str]]:
        """Yield the place and the name of each model of a custom resource."""
        for i, site in enumerate(self.sites):
            yield f"sites[{i}].storage.model", site.storage.model
            if site.placement is not None:
                yield f"sites[{i}].placement", site.placement
        for place, model in self.network.models():
            yield f"network.{place}", model


def _unique(group: str, names: Iterable[str]) -> dict[str, None]:
    seen: dict[str, None] = {}
    for i, name in enumerate(names):
        if name in seen:
            raise InputError(f"duplicate name {name!r}", place=f"{group}[{i}].name")
        seen[name] = None
    return seen
