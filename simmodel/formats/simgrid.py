"""Platforms of SimGrid as XML (versions 4 and 4.1 of its DTD): hosts, and the routes between them.

Zones are Full, Floyd, Dijkstra, DijkstraCache, Cluster (or Star) and None. Whatever is not read is refused by name and
line: peers and Vivaldi zones, WiFi, actors, ``<config>``, random profiles, and profiles of hosts and of latencies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, permutations
from pathlib import Path
from typing import Any, Literal, TypeVar

import attrs

from simmodel.formats.documents import Element, read_xml
from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Source, check_count, read_lines, reader, title_of
from simmodel.foundation.units import parse_quantity
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.grid import GridSpec, SiteSpec
from simmodel.platform.links import LinkSpec
from simmodel.platform.machine import CPU_CORES, ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import NetworkSpec, RouteSpec
from simmodel.platform.node_lists import node_list
from simmodel.platform.power import NodePower
from simmodel.platform.storage import StorageSpec
from simmodel.platform.topology import Interconnect, TopologyFile, read_topology
from simmodel.resources.network.zones import DijkstraZone, FloydZone, FullZone, StarZone, TopologyZone, Way, Zone, Zones
from simmodel.work.workload import Report

__all__ = ["SimGridHost", "SimGridPlatform", "node_kinds", "read_simgrid"]

_S = TypeVar("_S")

_ZONES: Mapping[str, type[Zone]] = {
    "full": FullZone,
    "floyd": FloydZone,
    "dijkstra": DijkstraZone,
    "dijkstracache": DijkstraZone,
    "cluster": StarZone,
    "star": StarZone,
    "none": Zone,
}
_SYNONYMS = {"AS": "zone", "ASroute": "zoneRoute", "bypassASroute": "bypassZoneRoute"}
_CLUSTER = "id prefix suffix radical speed bw lat"
_TRACES = "trace trace_connect"
_PARTS = f"prop zone cluster cabinet link backbone host router host_link {_TRACES}"
_ROUTES = ("route", "zoneRoute", "bypassRoute", "bypassZoneRoute")
# Tag: required attributes, optional ones, and the elements inside.
_TAGS: Mapping[str, tuple[str, str, str]] = {
    "platform": ("version", "", f"zone cluster {_TRACES}"),
    "zone": ("id routing", "", f"{_PARTS} {' '.join(_ROUTES)}"),
    "host": ("id speed", "core pstate", "prop disk"),
    "disk": ("id read_bw write_bw", "", "prop"),
    "router": ("id", "", ""),
    "host_link": ("id up down", "", ""),
    "cluster": (
        _CLUSTER,
        "core sharing_policy limiter_link loopback_bw loopback_lat bb_bw bb_lat bb_sharing_policy router_id "
        "topology topo_parameters",
        "prop",
    ),
    "cabinet": (_CLUSTER, "", ""),
    "link": ("id bandwidth", "latency sharing_policy bandwidth_file state_file", "prop"),
    "backbone": ("id bandwidth latency", "", ""),
    "route": ("src dst", "symmetrical", "link_ctn"),
    "zoneRoute": ("src dst gw_src gw_dst", "symmetrical", "link_ctn"),
    "bypassRoute": ("src dst", "", "link_ctn"),
    "bypassZoneRoute": ("src dst gw_src gw_dst", "", "link_ctn"),
    "link_ctn": ("id", "direction", ""),
    "prop": ("id value", "", ""),
    "trace": ("id", "file periodicity", ""),
    "trace_connect": ("trace element", "kind", ""),
}
_POLICIES = {"SHARED": "shared", "FATPIPE": "fatpipe", "SPLITDUPLEX": "splitduplex", "FULLDUPLEX": "splitduplex"}
_TOPOLOGIES = {"TORUS": "torus", "FAT_TREE": "fat-tree", "DRAGONFLY": "dragonfly"}


@attrs.frozen(kw_only=True, repr=False)
class SimGridHost(Fields):
    """A host of SimGrid's XML.

    Parameters
    ----------
    name, zone
        its name, and that of the zone that holds it
    speeds, pstate
        flop/s of a core in each of its power states (0: it does not compute, as a file server), and the
        number of the state at the beginning
    cores, disks
        its cores, and its disks
    properties
        its properties; Batsim reads ``role``, ``wattage_per_state`` and others
    powers
        W in its power state, by ``wattage_per_state``: the first when idle, the last when all cores are busy
    power
        what it draws: also at its slower power states, and while it sleeps, boots and stops, if ``sleep_pstates`` of
        Batsim says which power states these are
    passed_over
        what of its watts is not in ``power``
    """

    name: str
    zone: str
    speeds: tuple[float, ...]
    pstate: int = 0
    cores: int = 1
    disks: tuple[StorageSpec, ...] = ()
    properties: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    powers: tuple[float, ...] = (0.0,)
    power: NodePower = attrs.field(factory=NodePower)
    passed_over: tuple[str, ...] = ()

    @property
    def speed(self) -> float:
        """The flop/s of a core at the beginning."""
        return self.speeds[self.pstate]

    @property
    def computes(self) -> bool:
        """Whether it runs jobs: its speed is above 0, and it is not Batsim's master, by its name or its role."""
        return self.speed > 0 and self.name != "master_host" and self.properties.get("role") != "master"

    @property
    def node(self) -> NodeSpec:
        """A node like it, of speed 1 and without its name."""
        power = self.power
        plain = power == NodePower(idle=power.idle, load=power.load)
        watts: dict[str, Any] = {"idle_power": power.idle, "load_power": power.load} if plain else {"power": power}
        return NodeSpec(cores=self.cores, **watts)


@attrs.frozen(kw_only=True, repr=False)
class SimGridPlatform(Fields):
    """A platform of SimGrid: its hosts, and the routes between them.

    Parameters
    ----------
    name
        that of its file
    hosts
        all hosts, in the order of the file
    topology
        the routes between them, for ``Network(env, topology=platform.topology, model="simgrid")``
    properties
        the properties of zones and links by name
    path
        that of the file, for specs that are written to files; ``None``: it has none
    """

    name: str
    hosts: tuple[SimGridHost, ...]
    topology: Zones
    properties: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict, hash=False)
    path: str | None = None

    @property
    def report(self) -> Report:
        """How many hosts that run jobs have watts that are passed over, by what of them."""
        hosts = [host for host in self.hosts if host.computes]
        return Report(skipped=Counter(what for host in hosts for what in host.passed_over))

    @property
    def spec(self) -> ClusterSpec | GridSpec:
        """The hosts that run jobs: the nodes of a cluster if one zone holds them all, else the sites of a grid.

        Speeds are relative to that of the first of them. Sites are joined by the routes between their routers, or
        between their first hosts if they have none. A cluster has neither network nor disks. The description of either
        says what the :attr:`report` counts.
        """
        hosts = [host for host in self.hosts if host.computes]
        if not hosts:
            raise InputError("must have a host that runs jobs, with a speed above 0", source=self.name)
        places: dict[str, list[SimGridHost]] = {}
        told = str(self.report) if self.report else ""
        for host in hosts:
            places.setdefault(host.zone, []).append(host)
        kinds = {zone: list(node_kinds(held, hosts[0].speed)) for zone, held in places.items()}
        if len(places) == 1:
            nodes = [node for node, _ in kinds[hosts[0].zone]]
            partition = PartitionSpec(name=hosts[0].zone, nodes=nodes)
            return ClusterSpec(name=self.name, partitions=[partition], description=told)
        sites = []
        for zone, found in kinds.items():
            disks = [(disks[0].read_bandwidth, disks[0].write_bandwidth) for _, disks in found if len(disks) == 1]
            each = disks if len(disks) == len(found) else ()
            sites.append(SiteSpec(name=zone, hosts=[node for node, _ in found], disks=each))
        network = self._between(places)
        return GridSpec(name=self.name, sites=sites, network=network, core_speed=hosts[0].speed, description=told)

    @property
    def machine(self) -> MachineSpec:
        """The hosts as a machine: each has a memory pool of its name, and its cores are CPU cores.

        Times of tasks are those on the first host. Data move over the network under SimGrid's defaults. Of the watts
        of a host each core has its share of those when idle and when all are busy.

        Raises
        ------
        InputError
            no host runs jobs
        """
        hosts = [host for host in self.hosts if host.computes]
        if not hosts:
            raise InputError("must have a host that runs jobs, with a speed above 0", source=self.name)
        speeds = dict.fromkeys(host.speed for host in hosts)
        kinds = {speed: f"{speed:.15g} flop/s" for speed in speeds}
        processors = [
            ProcessorSpec(
                name=host.name if host.cores == 1 else f"{host.name}.",
                count=host.cores,
                type=CPU_CORES[0],
                architecture=kinds[host.speed],
                pool=host.name,
                idle_power=host.powers[0] / host.cores,
                load_power=host.powers[-1] / host.cores,
            )
            for host in hosts
        ]
        topology = self.topology if self.path is None else TopologyFile(self.path)
        return MachineSpec(
            name=self.name,
            pools=[MemoryPoolSpec(name=host.name) for host in hosts],
            architectures=[
                ArchitectureSpec(name=name, performance=speed / hosts[0].speed) for speed, name in kinds.items()
            ],
            processors=processors,
            network=NetworkSpec(topology=topology, model="simgrid"),
        )

    def _between(self, places: Mapping[str, list[SimGridHost]]) -> NetworkSpec:
        hosts = {host.name for host in self.hosts}
        routes: list[RouteSpec] = []
        ends: dict[str, str] = {}
        for zone, held in places.items():
            points = self.topology.zone_of[held[0].name].points
            ends[zone] = next((point for point in points if point not in hosts), held[0].name)
        for a, b in permutations(ends, 2):
            try:
                way = self.topology.between(ends[a], ends[b])
            except InputError:  # no host of the one can reach the other
                continue
            if way:
                routes.append(RouteSpec(source=a, destination=b, links=way))
        used = [self.topology.link(name) for name in dict.fromkeys(link for way in routes for link in way.links)]
        halves = [self.topology.link(link.reverse) for link in used if link.reverse is not None]
        links = {link.name: link for link in chain(used, halves)}
        return NetworkSpec(links=links.values(), routes=routes, model="simgrid")


def node_kinds(hosts: Iterable[SimGridHost], unit: float) -> Iterator[tuple[NodeSpec, tuple[StorageSpec, ...]]]:
    """Yield nodes, with their disks, for hosts alike that follow each other."""
    for (node, speed, disks), alike in groupby(hosts, lambda each: (each.node, each.speed, each.disks)):
        names = node_list([host.name for host in alike])
        yield attrs.evolve(node, names=names, speed=speed / unit), disks


def _power(
    states: Sequence[tuple[float, ...]], speeds: Sequence[float], pstate: int, cores: int, sleep: Sequence[int]
) -> tuple[NodePower, tuple[str, ...]]:
    """Return what a host draws, and what of its watts is passed over.

    Parameters
    ----------
    states
        of each power state the W when idle, with few cores in use (if other) and with all
    speeds, pstate, cores
        flop/s of the power states, the number of its own, and its cores
    sleep
        the numbers of the power states in which it sleeps, stops and boots; each of the latter takes the time of 1 flop
    """
    fast, own, passed = speeds[pstate], states[pstate], []
    computing = [each for each in range(min(len(states), len(speeds))) if each not in sleep]
    by_speed = {speeds[each]: each for each in reversed(computing) if 0 < speeds[each] < fast}
    slower = [by_speed[speed] for speed in sorted(by_speed, reverse=True)]
    levels = [(1.0, own[-1]), *((speeds[each] / fast, states[each][-1]) for each in slower)]
    if any(speeds[each] >= fast for each in computing if each != pstate) or len(slower) < len(computing) - 1:
        passed.append("hosts with power states that are not slower than the first, or as slow as another")
    if any(states[each][0] != own[0] for each in slower):
        passed.append("hosts with other idle watts at slower power states")
    used = [own, *(states[each] for each in slower)]
    model: Literal["linear", "node"] = "linear"
    if cores > 1 and any(len(watts) > 2 and watts[1] != watts[0] for watts in used):
        switched = all(watts[1:-1] == watts[-1:] for watts in used)
        model = "node" if switched else "linear"
        passed += [] if switched else ["hosts whose watts with few cores in use are not those when idle"]
    phases: dict[str, Any] = {}
    if sleep and all(each < len(speeds) and speeds[each] > 0 for each in sleep[1:]):
        off, stop, boot = (states[each][-1] for each in sleep)
        phases = {"off": off, "stop": (1 / speeds[sleep[1]], stop), "boot": (1 / speeds[sleep[2]], boot)}
    elif sleep:
        passed.append("hosts that sleep without the times of their switches")
    return NodePower(idle=own[0], load=own[-1], levels=levels if slower else (), model=model, **phases), tuple(passed)


@reader
def read_simgrid(source: Source) -> SimGridPlatform:
    """Read a platform of SimGrid.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file

    Raises
    ------
    InputError
        the file cannot be read, is not such XML, names an unknown host, link or zone, has a duplicate name or an
        invalid value, or has something that is not read; the message has the line

    >>> import io
    >>> platform = read_simgrid(io.StringIO('''<platform version="4.1">
    ... <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"/></platform>'''))
    >>> platform.topology.route(0, 3)
    ('c_link_0_UP', 'c_link_3_DOWN')
    >>> platform.spec.partitions[0].nodes
    (NodeSpec(names='n[0-3]', count=4),)
    """
    root, name = read_xml(source)
    if not isinstance(source, str | Path):
        return _Reader(name, None).platform(root)
    return attrs.evolve(_Reader(name, Path(source).parent).platform(root), path=str(source))


def _parts(element: Element, *tags: str) -> list[Element]:
    return [each for each in element if isinstance(each, Element) and (not tags or each.tag in tags)]


def _props(element: Element) -> dict[str, str]:
    """Return the properties of an element; the first of a name counts."""
    return {each.attrib["id"]: each.attrib["value"] for each in reversed(_parts(element, "prop"))}


class _Reader:
    def __init__(self, name: str, folder: Path | None) -> None:
        self.name = name
        self.folder = folder
        self.hosts: dict[str, SimGridHost] = {}
        self.zones: dict[str, Zone] = {}
        self.places: dict[str, Zone] = {}  # of hosts and routers
        self.links: dict[str, LinkSpec] = {}
        self.split: set[str] = set()
        self.properties: dict[str, dict[str, str]] = {}
        self.traces: dict[str, tuple[list[tuple[float, float]], float | None]] = {}
        self.connected: list[Element] = []

    def wrong(self, element: Element, message: str) -> InputError:
        return InputError(message, source=self.name, place=f"line {element.line}")

    def known(self, element: Element, what: str, name: str, among: Collection[str]) -> None:
        if name not in among:
            raise self.wrong(element, unknown(what, name, among).message)

    def one_of(self, element: Element, key: str, default: str, accepted: Iterable[str]) -> str:
        """Return an attribute with few values."""
        found = element.get(key, default)
        if found not in accepted:
            raise self.wrong(element, f"{key} must be one of {', '.join(accepted)}, got {shown(found)}")
        return found

    def quantity(self, element: Element, key: str, unit: str) -> float:
        """Return an attribute as a quantity; 0 if it is not given."""
        place = f"line {element.line}, {key} of {element.get('id')}"
        return parse_quantity(element.get(key) or "0", unit, source=self.name, place=place)

    def whole(self, element: Element, key: str, default: int) -> int:
        text = element.get(key, str(default))
        found = re.fullmatch(r"\s*(\d{1,9})(\.0*)?\s*", text)
        if found is None or int(found[1]) < default:
            raise self.wrong(element, f"{key} must be a whole number >= {default}, got {shown(text)}")
        return int(found[1])

    def made(self, element: Element, make: Callable[..., _S], **fields: object) -> _S:
        """Return a spec, whose errors get the line of an element."""
        try:
            return make(**fields)
        except InputError as error:
            where = f"{error.place}: " if error.place else ""
            raise self.wrong(element, f"{where}{error.message}") from None

    def check(self, element: Element) -> None:
        """Check the attributes and the tags of an element and of all inside it."""
        required, optional, inside = (text.split() for text in _TAGS[element.tag])
        here = f"<{element.tag}>" if "id" not in element.attrib else f"<{element.tag} {element.attrib['id']!r}>"
        for key in required:
            if key not in element.attrib:
                raise self.wrong(element, f"{here} must have {key!r}")
        for key, text in element.attrib.items():
            if text and key not in (*required, *optional):
                accepted = ", ".join([*required, *optional])
                raise self.wrong(element, f"attribute {key!r} of {here} is not read; accepted: {accepted}")
        texts = ("" if element.tag == "trace" else element.text, *(each.tail for each in element))
        if any(text and text.strip() for text in texts):
            raise self.wrong(element, f"text in {here} is not read")
        for each in _parts(element):
            each.tag = _SYNONYMS.get(each.tag, each.tag)
            if each.tag not in inside:
                accepted = f"accepted: {', '.join(inside)}" if inside else "it must be empty"
                raise self.wrong(each, f"<{each.tag}> in {here} is not read; {accepted}")
            self.check(each)

    # ------------------------------------------------------------------ the hierarchy

    def platform(self, root: Element) -> SimGridPlatform:
        if root.tag != "platform":
            raise self.wrong(root, f"must be <platform>, got <{root.tag}>")
        if root.get("version") not in ("4", "4.0", "4.1"):
            raise self.wrong(root, f"version must be 4 or 4.1, got {shown(root.get('version'))}")
        self.check(root)
        tops = _parts(root, "zone", "cluster")
        if len(tops) != 1:
            raise self.wrong(root, f"must have one zone or cluster at the top, got {len(tops)}")
        self.inside(tops[0], None)
        for each in _parts(root, *_TRACES.split()):
            self.trace(each)
        for each in self.connected:
            self.connect(each)
        return SimGridPlatform(
            name=title_of(self.name, ".xml"),
            hosts=tuple(self.hosts.values()),
            topology=Zones(list(self.hosts), self.places, self.links),
            properties=self.properties,
        )

    def inside(self, element: Element, parent: Zone | None) -> None:
        if element.tag == "cluster":
            self.cluster(element, parent)
            return
        routing = element.attrib["routing"]
        if routing.lower() not in _ZONES:
            accepted = "Full, Floyd, Dijkstra, DijkstraCache, Cluster, Star, None"
            raise self.wrong(element, f"zone type {shown(routing)} is not read; accepted: {accepted}")
        zone = self.enter(element, _ZONES[routing.lower()](element.attrib["id"], parent), _props(element))
        backbone = tuple(each.attrib["id"] for each in _parts(element, "backbone"))[-1:]
        late: list[Element] = []
        for each in _parts(element):
            if each.tag in ("zone", "cluster"):
                self.inside(each, zone)
            elif each.tag == "host":
                disks = [self.disk(disk) for disk in _parts(each, "disk")]
                self.host(each, each.attrib["id"], zone, _props(each), disks)
            elif each.tag == "router":
                self.point(each, each.attrib["id"], zone)
            elif each.tag in ("link", "backbone"):
                self.given_link(each)
            elif each.tag in _TRACES.split():
                self.trace(each)
            elif each.tag != "prop":
                late.append(each)
        for each in late:
            if each.tag in _ROUTES:
                self.route(each, zone)
            elif isinstance(zone, StarZone):
                self.spokes(each, zone, backbone)
            else:
                raise self.wrong(each, f"<{each.tag}> must be in a zone of type Cluster, got {routing!r}")

    def enter(self, element: Element, zone: Zone, properties: dict[str, str]) -> Zone:
        self.fresh(element, zone.name)
        self.zones[zone.name] = zone
        self.properties[zone.name] = properties
        return zone

    def fresh(self, element: Element, name: str) -> None:
        if not name:
            raise self.wrong(element, f"<{element.tag}>: id must not be empty")
        if name in self.places or name in self.zones:
            kind = "host" if name in self.hosts else "zone" if name in self.zones else "router"
            raise self.wrong(element, f"duplicate name {shown(name)}, already of a {kind}")

    def point(self, element: Element, name: str, zone: Zone) -> None:
        self.fresh(element, name)
        self.places[name] = zone
        zone.points.append(name)

    def host(
        self, element: Element, name: str, zone: Zone, props: Mapping[str, str], disks: Iterable[StorageSpec] = ()
    ) -> None:
        self.point(element, name, zone)
        place = f"line {element.line}, speed of {name}"
        texts = element.attrib["speed"].split(",")
        speeds = tuple(parse_quantity(text.strip(), "flop/s", source=self.name, place=place) for text in texts)
        pstate = self.whole(element, "pstate", 0)
        if pstate >= len(speeds):
            raise self.wrong(
                element, f"pstate of {name} must be below {len(speeds)}, its number of speeds, got {pstate}"
            )
        cores = self.whole(element, "core", 1)
        states = self.watts(element, props, pstate)
        sleep = self.sleep(element, props, len(states))
        own = pstate if "wattage_per_state" in props else 0
        power, passed = _power(states, speeds, own, cores, sleep[0] if sleep else ())
        passed += ("hosts with further states of sleep",) if len(sleep) > 1 else ()
        if not power.can_sleep and props.get("wattage_off", "0").strip("0. "):
            passed += ("hosts with watts when off, in which they do not sleep",)
        self.hosts[name] = SimGridHost(
            name=name,
            zone=zone.name,
            speeds=speeds,
            pstate=pstate,
            cores=cores,
            disks=tuple(disks),
            properties=dict(props),
            powers=states[own],
            power=power,
            passed_over=passed,
        )

    def watts(self, element: Element, props: Mapping[str, str], pstate: int) -> list[tuple[float, ...]]:
        """Return the W of each power state, at least of the present one: idle, with few cores in use, with all."""
        given = props.get("wattage_per_state")
        if given is None:
            return [(0.0,)]
        try:
            found = [tuple(float(each) for each in state.split(":")) for state in given.split(",")]
        except ValueError:
            found = []
        if len(found) <= pstate or not all(0 <= each < 1e300 for state in found for each in state):
            accepted = "watts such as 95.0:170.0:200.0 for each power state"
            raise self.wrong(element, f"wattage_per_state must be {accepted}, got {shown(given)}")
        return found

    def sleep(self, element: Element, props: Mapping[str, str], known: int) -> list[tuple[int, ...]]:
        """Return the numbers of the power states in which a host sleeps, stops and boots, for each way to sleep."""
        given = props.get("sleep_pstates", "")
        triples = [re.fullmatch(r"\s*(\d+):(\d+):(\d+)\s*", each) for each in given.split(",")] if given else []
        found = [tuple(map(int, each.groups())) for each in triples if each is not None]
        if len(found) < len(triples) or any(number >= known for triple in found for number in triple):
            accepted = "numbers of power states with watts to sleep, to stop and to boot, such as 13:14:15"
            raise self.wrong(element, f"sleep_pstates must be {accepted}, got {shown(given)}")
        return found

    def disk(self, element: Element) -> StorageSpec:
        properties = _props(element)
        rates = {f"{key}_bandwidth": self.quantity(element, f"{key}_bw", "B/s") for key in ("read", "write")}
        size = {"capacity": properties["size"]} if "size" in properties else {}
        return self.made(element, StorageSpec, name=element.attrib["id"], **rates, **size)

    # ------------------------------------------------------------------ links and their profiles

    def given_link(self, element: Element) -> None:
        name = element.attrib["id"]
        self.properties |= {name: found} if (found := _props(element)) else {}
        values = self.quantity(element, "bandwidth", "B/s"), self.quantity(element, "latency", "s")
        self.link(element, name, *values, self.one_of(element, "sharing_policy", "SHARED", _POLICIES))
        for key in ("bandwidth_file", "state_file"):
            if element.get(key):
                self.follow(element, name, *self.profile(element, element.attrib[key]), key == "state_file")

    def follow(
        self, element: Element, name: str, profile: list[tuple[float, float]], period: float | None, state: bool
    ) -> None:
        """Let a link follow a profile of its bandwidth, or of its state."""
        for each in dict.fromkeys(self.directions(element, name)):
            link = self.links[each]
            if link.profile:
                raise self.wrong(element, f"link {name} must have one profile, of its bandwidth or of its state")
            scale = link.bandwidth if state else 1.0
            points = [(at, value * scale) for at, value in profile]
            self.links[each] = self.made(element, partial(attrs.evolve, link), profile=points, repeat=period)

    def trace(self, element: Element) -> None:
        """Keep a trace, or a connection of one until all links are known."""
        if element.tag == "trace_connect":
            self.connected.append(element)
            return
        name, text = element.attrib["id"], element.text or ""
        if name in self.traces:
            raise self.wrong(element, f"duplicate trace {shown(name)}")
        if element.get("file"):
            points, period = self.profile(element, element.attrib["file"])
        elif text.strip():
            points, period = self.points(enumerate(text.splitlines(), element.line), self.name)
        else:
            raise self.wrong(element, f"trace {shown(name)} must have a file or lines of a time and a value")
        given = self.quantity(element, "periodicity", "s") if element.get("periodicity", "-1.0")[:1] != "-" else 0.0
        self.traces[name] = points, given or period

    def connect(self, element: Element) -> None:
        """Let a link follow a trace."""
        name = element.attrib["trace"]
        kind = self.one_of(element, "kind", "HOST_AVAIL", ("BANDWIDTH", "LINK_AVAIL"))
        self.known(element, "trace", name, self.traces)
        self.follow(element, element.attrib["element"], *self.traces[name], kind == "LINK_AVAIL")

    def link(self, element: Element, name: str, bandwidth: float, latency: float, policy: str) -> tuple[str, str]:
        """Add a link; return the names of its directions, which are one if it is not split duplex."""
        sharing = _POLICIES[policy]
        names = (f"{name}_UP", f"{name}_DOWN") if sharing == "splitduplex" else (name, name)
        if sharing == "splitduplex":
            self.split.add(name)
            sharing = "shared"
        for each, other in (names, names[::-1])[: len(set(names))]:
            if each in self.links or name in self.links:
                raise self.wrong(element, f"duplicate link {shown(each)}")
            reverse = None if other == each else other
            fields = {"bandwidth": bandwidth, "latency": latency, "sharing": sharing, "reverse": reverse}
            self.links[each] = self.made(element, LinkSpec, name=each, **fields)
        return names

    def directions(self, element: Element, name: str) -> tuple[str, str]:
        if name in self.split:
            return f"{name}_UP", f"{name}_DOWN"
        self.known(element, "link", name, self.links)
        return name, name

    def profile(self, element: Element, file: str) -> tuple[list[tuple[float, float]], float | None]:
        """Return the times and the values of a profile in a file, and its period."""
        if self.folder is None:
            raise self.wrong(element, f"profile {shown(file)} is only read beside a platform that is read from a path")
        return self.points(*read_lines(self.folder / file))

    def points(self, lines: Iterable[tuple[int, str]], name: str) -> tuple[list[tuple[float, float]], float | None]:
        points: list[tuple[float, float]] = []
        period, pause = 0.0, -1.0
        for number, line in lines:
            words = line.split()
            try:
                if words and words[0][0] not in "#%":
                    at, value = words
                    if at == "LOOPAFTER":
                        pause = float(value)
                    elif at == "PERIODICITY":
                        period = float(value)
                    else:
                        points.append((float(at), float(value)))
            except ValueError:
                accepted = "a time and a value, or PERIODICITY or LOOPAFTER and seconds"
                raise InputError(f"must be {accepted}, got {shown(line)}", name, f"line {number}") from None
        if pause >= 0 and points:
            period = points[-1][0] + pause
        return points, period or None

    # ------------------------------------------------------------------ routes

    def route(self, element: Element, zone: Zone) -> None:
        steps = [self.step(each) for each in _parts(element)]
        ends = element.attrib["src"], element.attrib["dst"]
        gateways = element.get("gw_src"), element.get("gw_dst")
        bypass = element.tag.startswith("bypass")
        for name, gateway in zip(ends, gateways, strict=True):
            if gateway is None:
                self.known(element, "host", name, self.places)
                holder = self.places[name]
            else:
                self.known(element, "zone", name, self.zones)
                self.known(element, "gateway", gateway, self.places)
                holder = self.zones[name].line[1]
                if self.zones[name] not in self.places[gateway].line:
                    raise self.wrong(element, f"gateway {shown(gateway)} must be in zone {name}")
            if holder is not zone and not bypass:
                raise self.wrong(element, f"{shown(name)} must be in zone {zone.name}, as the route is")
        if not bypass and not isinstance(zone, FullZone):
            raise self.wrong(element, f"zone {zone.name} has no routes by its type; accepted: Full, Floyd, Dijkstra")
        symmetrical = self.one_of(element, "symmetrical", "NO" if bypass else "YES", ("YES", "NO", "yes", "no"))
        ways = {ends: Way(tuple(forth for forth, _ in steps), *gateways)}
        if symmetrical in ("YES", "yes"):
            ways.setdefault(ends[::-1], Way(tuple(back for _, back in reversed(steps)), *gateways[::-1]))
        table = zone.bypasses if bypass else zone.ways
        for (source, destination), way in ways.items():
            if not way.links:
                raise self.wrong(element, f"route from {source} to {destination} must have at least one link")
            if (source, destination) in table:
                message = f"duplicate route from {source} to {destination} (routes are symmetrical by default)"
                raise self.wrong(element, message)
            table[source, destination] = way

    def step(self, element: Element) -> tuple[str, str]:
        """Return the names of a link of a route on the way and on the way back."""
        name, direction = element.attrib["id"], self.one_of(element, "direction", "NONE", ("UP", "DOWN", "NONE"))
        up, down = self.directions(element, name)
        if (name in self.split) != (direction != "NONE"):
            accepted = "must have a direction, UP or DOWN" if direction == "NONE" else "must not have a direction"
            raise self.wrong(element, f"link {name} {accepted}")
        return (down, up) if direction == "DOWN" else (up, down)

    # ------------------------------------------------------------------ clusters

    def numbers(self, element: Element) -> list[int]:
        """Return the numbers of the ranges of a cluster or a cabinet, such as ``0-3,7``."""
        text = element.attrib["radical"]
        found: list[int] = []
        for piece in text.split(","):
            ends = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9}))?\s*", piece)
            if ends is None or (ends[2] and int(ends[2]) < int(ends[1])):
                raise self.wrong(element, f"radical must be ranges such as 0-3,7, got {shown(text)}")
            more = range(int(ends[1]), int(ends[2] or ends[1]) + 1)
            check_count("hosts", len(found) + len(more))
            found += more
        if len(set(found)) < len(found):
            twice = next(number for number, count in Counter(found).items() if count > 1)
            raise self.wrong(element, f"radical must have each number once, got {twice} twice in {shown(text)}")
        return found

    def spokes(self, element: Element, zone: StarZone, backbone: tuple[str, ...]) -> None:
        """Read the links of a host, or a cabinet of hosts with their links."""
        if element.tag == "host_link":
            name, up, down = (element.attrib[key] for key in ("id", "up", "down"))
            self.known(element, "host", name, zone.points)
            for link in (up, down):
                self.known(element, "link", link, self.links)
            zone.ups[name], zone.downs[name] = (up, *backbone), (*backbone, down)
            return
        values = self.quantity(element, "bw", "B/s"), self.quantity(element, "lat", "s")
        for number in self.numbers(element):
            name = f"{element.attrib['prefix']}{number}{element.attrib['suffix']}"
            self.host(element, name, zone, {})
            up, down = self.link(element, f"link_{name}", *values, "SPLITDUPLEX")
            zone.ups[name], zone.downs[name] = (up, *backbone), (*backbone, down)

    def cluster(self, element: Element, parent: Zone | None) -> None:
        props = _props(element)
        prefix, suffix = element.attrib["prefix"], element.attrib["suffix"]
        kind = self.one_of(element, "topology", "FLAT", ("FLAT", *_TOPOLOGIES))
        hosts = {f"{prefix}{number}{suffix}": number for number in self.numbers(element)}
        if kind != "FLAT":
            zone = self.enter(element, self.topology(element, parent, tuple(hosts)), props)
            for host in hosts:
                self.host(element, host, zone, props)
            return
        name = element.attrib["id"]
        star = StarZone(name, parent)
        self.enter(element, star, props)
        values = self.quantity(element, "bw", "B/s"), self.quantity(element, "lat", "s")
        policy = self.one_of(element, "sharing_policy", "SPLITDUPLEX", ("SHARED", "SPLITDUPLEX", "FULLDUPLEX"))
        if element.get("topo_parameters"):
            raise self.wrong(element, "topo_parameters is only read with a topology")
        backbone: tuple[str, ...] = ()
        ends = self.quantity(element, "bb_bw", "B/s"), self.quantity(element, "bb_lat", "s")
        if any(ends):
            backbone = self.link(
                element,
                f"{name}_backbone",
                *ends,
                self.one_of(element, "bb_sharing_policy", "SHARED", ("SHARED", "FATPIPE")),
            )[:1]
        for host, number in hosts.items():
            self.host(element, host, star, props)
            link = f"{name}_link_{number}"
            up, down = self.link(element, link, *values, policy)
            limiter: tuple[str, ...] = ()
            if element.get("limiter_link"):
                rate = self.quantity(element, "limiter_link", "B/s")
                limiter = self.link(element, f"{link}_limiter", rate, 0.0, "SHARED")[:1]
            star.ups[host], star.downs[host] = (*limiter, up, *backbone), (*backbone, down, *limiter)
            ends = self.quantity(element, "loopback_bw", "B/s"), self.quantity(element, "loopback_lat", "s")
            if any(ends):
                star.ways[host, host] = Way(self.link(element, f"{link}_loopback", *ends, "FATPIPE")[:1])
        self.point(element, element.get("router_id") or f"{prefix}{name}_router{suffix}", star)

    def topology(self, element: Element, parent: Zone | None, hosts: tuple[str, ...]) -> TopologyZone:
        for key in ("bb_bw", "bb_lat", "router_id"):
            if element.get(key):
                raise self.wrong(element, f"{key} is not read for a cluster with a topology")
        policy = self.one_of(element, "sharing_policy", "SPLITDUPLEX", _POLICIES)
        options = {"bw": ("bandwidth", "B/s"), "lat": ("latency", "s"), "limiter_link": ("limiter", "B/s")}
        options |= {"loopback_bw": ("loopback", "B/s"), "loopback_lat": ("loopback_latency", "s")}
        # A fatpipe is shared, as SimGrid 3.32 makes all links of such clusters.
        sharing = "splitduplex" if _POLICIES[policy] == "splitduplex" else "shared"
        words = [f"{_TOPOLOGIES[element.attrib['topology']]}:{element.get('topo_parameters', '')}"]
        words += [
            f"{name}={self.quantity(element, key, unit)}" for key, (name, unit) in options.items() if element.get(key)
        ]
        found = self.made(element, read_topology, text=" ".join([*words, f"sharing={sharing}"]))
        assert isinstance(found, Interconnect)
        count = len(found.hosts)
        if count != len(hosts):
            raise self.wrong(element, f"radical must name {count} hosts, by topo_parameters, got {len(hosts)}")
        return TopologyZone(element.attrib["id"], parent, attrs.evolve(found, names=hosts))
