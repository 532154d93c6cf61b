"""Platforms of SimGrid as XML (versions 4 and 4.1 of its DTD): hosts, and the routes between them.

Zones are Full, Floyd, Dijkstra, DijkstraCache, Cluster (or Star) and None. Whatever is not read is refused by name and
line: peers and Vivaldi zones, WiFi, actors, ``<config>``, stochastic profiles, and profiles of hosts and of latencies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import attrs

from simmodel.formats.documents import Element, read_xml
from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Source, check_count, read_lines, reader, title_of
from simmodel.foundation.units import parse_quantity
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.grid import GridSpec, SiteSpec
from simmodel.platform.network import MODELS, LinkSpec, NetworkSpec, RouteSpec
from simmodel.platform.node_lists import node_list
from simmodel.platform.storage import StorageSpec
from simmodel.resources.network.topology import Topology
from simmodel.resources.network.zones import (
    DijkstraZone,
    FloydZone,
    FullZone,
    StarZone,
    TopologyZone,
    Way,
    Zone,
    Zones,
)

__all__ = ["SimGridHost", "SimGridPlatform", "read_simgrid"]

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
_CLUSTER_OPTIONS = "core sharing_policy topology topo_parameters bb_bw bb_lat bb_sharing_policy router_id"
_INSIDE = "prop zone cluster cabinet link backbone host router host_link trace trace_connect"
_ROUTES = "route zoneRoute bypassRoute bypassZoneRoute"
# Tag: required attributes, optional ones, and the elements inside.
_TAGS: Mapping[str, tuple[str, str, str]] = {
    "platform": ("version", "", "zone cluster"),
    "zone": ("id routing", "", f"{_INSIDE} {_ROUTES}"),
    "host": ("id speed", "core pstate", "prop disk"),
    "disk": ("id read_bw write_bw", "", "prop"),
    "router": ("id", "", ""),
    "host_link": ("id up down", "", ""),
    "cluster": (_CLUSTER, f"{_CLUSTER_OPTIONS} limiter_link loopback_bw loopback_lat", "prop"),
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
    "trace_connect": ("trace element kind", "", ""),
}
_POLICIES = {"SHARED": "shared", "FATPIPE": "fatpipe", "SPLITDUPLEX": "shared", "FULLDUPLEX": "shared"}
_DUPLEX = ("SPLITDUPLEX", "FULLDUPLEX")


@attrs.frozen(kw_only=True, repr=False)
class SimGridHost(Fields):
    """A host of SimGrid's XML.

    Parameters
    ----------
    name, zone
        its name, and that of the zone that holds it
    speeds
        flop/s of one core in each of its power states
    pstate
        the number of its power state at the beginning
    cores
        its cores
    disks
        its disks
    properties
        its properties; Batsim reads ``role``, ``wattage_per_state`` and others
    idle_power, load_power
        W in that power state, by ``wattage_per_state``, when idle and when all cores are busy; 0 without it
    """

    name: str
    zone: str
    speeds: tuple[float, ...]
    pstate: int = 0
    cores: int = 1
    disks: tuple[StorageSpec, ...] = ()
    properties: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    idle_power: float = 0.0
    load_power: float = 0.0

    @property
    def speed(self) -> float:
        """The flop/s of one core at the beginning."""
        return self.speeds[self.pstate]

    @property
    def computes(self) -> bool:
        """Whether it runs jobs: it is not the master of Batsim, which is named or has the role."""
        return self.name != "master_host" and self.properties.get("role") != "master"


@attrs.frozen(kw_only=True, repr=False)
class SimGridPlatform(Fields):
    """A platform of SimGrid: its hosts, and the routes between them.

    Parameters
    ----------
    name
        the name of its file
    hosts
        all hosts, in the order of the file
    topology
        the routes between them, for ``Network(env, topology=platform.topology, model="simgrid")``
    properties
        the properties of zones and links by name
    """

    name: str
    hosts: tuple[SimGridHost, ...]
    topology: Zones
    properties: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict, hash=False)

    @property
    def spec(self) -> ClusterSpec | GridSpec:
        """The hosts that run jobs: the nodes of a cluster if one zone holds them all, else the sites of a grid.

        Speeds are relative to that of the first of them. Routes between sites are those between their routers, or
        their first hosts if they have none; a cluster has no network.
        """
        hosts = [host for host in self.hosts if host.computes]
        if not hosts:
            raise InputError("must have a host that runs jobs", source=self.name)
        places: dict[str, list[SimGridHost]] = {}
        for host in hosts:
            places.setdefault(host.zone, []).append(host)
        if len(places) == 1:
            nodes = tuple(node for node, _ in _nodes(hosts, hosts[0].speed))
            return ClusterSpec(name=self.name, partitions=[PartitionSpec(name=hosts[0].zone, nodes=nodes)])
        sites = []
        for name, held in places.items():
            kinds = list(_nodes(held, hosts[0].speed))
            disks = [(disks[0].read_bandwidth, disks[0].write_bandwidth) for _, disks in kinds if len(disks) == 1]
            each = disks if len(disks) == len(kinds) else ()
            sites.append(SiteSpec(name=name, hosts=tuple(node for node, _ in kinds), disks=each))
        return GridSpec(name=self.name, sites=sites, network=self._between(places), core_speed=hosts[0].speed)

    def _between(self, places: Mapping[str, Sequence[SimGridHost]]) -> NetworkSpec:
        hosts = {host.name for host in self.hosts}
        ends: dict[str, str] = {}
        for name, held in places.items():
            points = self.topology.zone_of[held[0].name].points
            ends[name] = next((point for point in points if point not in hosts), held[0].name)
        routes: list[RouteSpec] = []
        links: dict[str, LinkSpec] = {}
        for a in ends:
            for b in ends:
                way = self._way(ends[a], ends[b]) if a != b else ()
                if way:
                    routes.append(RouteSpec(source=a, destination=b, links=way))
                for link in map(self.topology.link, way):
                    links[link.name] = link
                    if link.reverse is not None:
                        links[link.reverse] = self.topology.link(link.reverse)
        return NetworkSpec(links=links.values(), routes=routes, model=MODELS["simgrid"])

    def _way(self, source: str, destination: str) -> tuple[str, ...]:
        try:
            return self.topology.between(source, destination)
        except InputError:  # a site that no other can reach
            return ()


def _nodes(hosts: Iterable[SimGridHost], unit: float) -> Iterator[tuple[NodeSpec, tuple[StorageSpec, ...]]]:
    """Yield nodes of one kind, with their disks: hosts alike that follow each other."""
    alike = groupby(hosts, lambda host: (host.cores, host.speed, host.disks, host.idle_power, host.load_power))
    for (cores, speed, disks, idle, load), group in alike:
        names = node_list([host.name for host in group])
        yield NodeSpec(names=names, cores=cores, speed=speed / unit, idle_power=idle, load_power=load), disks


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
    folder = Path(source).parent if isinstance(source, str | Path) else None
    return _Reader(name, folder).platform(root)


class _Reader:
    def __init__(self, name: str, folder: Path | None) -> None:
        self.name = name
        self.folder = folder
        self.hosts: dict[str, SimGridHost] = {}
        self.zone_of: dict[str, Zone] = {}
        self.zones: dict[str, Zone] = {}
        self.links: dict[str, LinkSpec] = {}
        self.split: set[str] = set()
        self.traces: dict[str, tuple[tuple[tuple[float, float], ...], float | None]] = {}
        self.properties: dict[str, dict[str, str]] = {}

    def wrong(self, element: Element, message: str) -> InputError:
        return InputError(message, source=self.name, place=f"line {element.line}")

    def make(self, element: Element, spec: Callable[..., _S], **fields: object) -> _S:
        """Return a spec, whose errors get the line of an element."""
        try:
            return spec(**fields)
        except InputError as error:
            where = f"{error.place}: " if error.place else ""
            raise self.wrong(element, f"{where}{error.message}") from None

    def quantity(self, element: Element, key: str, unit: str, default: str = "") -> float:
        text = element.get(key, default)
        place = f"line {element.line}, {element.get('id', element.tag)}, {key}"
        return parse_quantity(text, unit, source=self.name, place=place)

    def parts(self, element: Element) -> list[Element]:
        """Return the elements inside one, after a check of its attributes and of their tags."""
        required, optional, inside = (text.split() for text in _TAGS[element.tag])
        named = element.get("id")
        here = f"<{element.tag}>" if named is None else f"<{element.tag} {named!r}>"
        for key in required:
            if element.get(key) is None:
                raise self.wrong(element, f"{here} must have {key!r}")
        for key in element.keys():
            if key not in required and key not in optional and element.get(key):
                raise self.wrong(element, f"{here}: {unknown('attribute', key, [*required, *optional]).message}")
        found: list[Element] = []
        for each in element:
            assert isinstance(each, Element)
            each.tag = _SYNONYMS.get(each.tag, each.tag)
            if each.tag not in inside:
                accepted = f"accepted: {', '.join(inside)}" if inside else "it must be empty"
                raise self.wrong(each, f"<{each.tag}> in {here} is not read; {accepted}")
            found.append(each)
        return found

    def props(self, parts: Iterable[Element]) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in parts:
            if each.tag == "prop":
                self.parts(each)
                found.setdefault(each.attrib["id"], each.attrib["value"])
        return found

    # ------------------------------------------------------------------ the hierarchy

    def platform(self, root: Element) -> SimGridPlatform:
        if root.tag != "platform":
            raise self.wrong(root, f"must be <platform>, got <{root.tag}>")
        if root.get("version") not in ("4", "4.0", "4.1"):
            raise self.wrong(root, f"version must be 4 or 4.1, got {shown(root.get('version'))}")
        tops = self.parts(root)
        if len(tops) != 1:
            raise self.wrong(root, f"must have one zone or cluster at the top, got {len(tops)}")
        self.inside(tops[0], None)
        topology = Zones(list(self.hosts), self.zone_of, self.links)
        title = title_of(self.name, ".xml", ".xml.gz")
        return SimGridPlatform(
            name=title, hosts=tuple(self.hosts.values()), topology=topology, properties=self.properties
        )

    def inside(self, element: Element, parent: Zone | None) -> None:
        if element.tag == "cluster":
            self.cluster(element, parent)
            return
        parts = self.parts(element)
        routing = element.attrib["routing"]
        if routing.lower() not in _ZONES:
            accepted = "Full, Floyd, Dijkstra, DijkstraCache, Cluster, Star, None"
            raise self.wrong(element, f"zone type {shown(routing)} is not read; accepted: {accepted}")
        zone = _ZONES[routing.lower()](element.attrib["id"], parent)
        self.enter(element, zone)
        self.properties[zone.name] = self.props(parts)
        late: list[Element] = []
        for each in parts:
            if each.tag in ("zone", "cluster"):
                self.inside(each, zone)
            elif each.tag == "host":
                self.host(each, zone)
            elif each.tag == "router":
                self.parts(each)
                self.point(each, each.attrib["id"], zone)
            elif each.tag in ("link", "backbone"):
                self.named_link(each)
            elif each.tag == "trace":
                self.trace(each)
            elif each.tag != "prop":
                late.append(each)
        backbones = [each.attrib["id"] for each in parts if each.tag == "backbone"]
        for each in late:
            if each.tag == "trace_connect":
                self.connect(each)
            elif each.tag in _ROUTES.split():
                self.route(each, zone)
            elif isinstance(zone, StarZone):
                self.spoke(each, zone, tuple(backbones[-1:]))
            else:
                raise self.wrong(each, f"<{each.tag}> must be in a zone of type Cluster, got {routing!r}")

    def enter(self, element: Element, zone: Zone) -> None:
        self.fresh(element, zone.name)
        self.zones[zone.name] = zone
        if zone.parent is not None:
            self.zone_of[zone.name] = zone.parent

    def fresh(self, element: Element, name: str) -> None:
        if not name:
            raise self.wrong(element, f"<{element.tag}>: id must not be empty")
        if name in self.zone_of or name in self.zones:
            kind = "host" if name in self.hosts else "zone" if name in self.zones else "router"
            raise self.wrong(element, f"duplicate name {shown(name)}, already of a {kind}")

    def point(self, element: Element, name: str, zone: Zone) -> None:
        self.fresh(element, name)
        self.zone_of[name] = zone
        zone.points.append(name)

    def host(self, element: Element, zone: Zone) -> None:
        parts = self.parts(element)
        disks = [self.disk(each) for each in parts if each.tag == "disk"]
        self.add_host(element, element.attrib["id"], zone, self.props(parts), tuple(disks))

    def add_host(
        self,
        element: Element,
        name: str,
        zone: Zone,
        properties: Mapping[str, str],
        disks: tuple[StorageSpec, ...] = (),
    ) -> None:
        self.point(element, name, zone)
        place = f"line {element.line}, {name}, speed"
        texts = element.attrib["speed"].split(",")
        speeds = tuple(parse_quantity(text.strip(), "flop/s", source=self.name, place=place) for text in texts)
        pstate = self.whole(element, "pstate", 0)
        if pstate >= len(speeds):
            raise self.wrong(
                element, f"{name}, pstate: must be below {len(speeds)}, the number of speeds, got {pstate}"
            )
        if not speeds[pstate] > 0:
            raise self.wrong(element, f"{name}, speed: must be > 0, got {shown(texts[pstate])}")
        powers = self.powers(element, properties.get("wattage_per_state"), pstate)
        self.hosts[name] = SimGridHost(
            name=name,
            zone=zone.name,
            speeds=speeds,
            pstate=pstate,
            cores=self.whole(element, "core", 1, least=1),
            disks=disks,
            properties=dict(properties),
            idle_power=powers[0],
            load_power=powers[-1],
        )

    def powers(self, element: Element, text: str | None, pstate: int) -> list[float]:
        """Return the watts of a power state: idle, with one core busy if given, and with all busy."""
        if text is None:
            return [0.0]
        states = text.split(",")
        try:
            found = [float(each) for each in states[pstate].split(":")]
        except (IndexError, ValueError):
            found = []
        if not found or not all(0 <= each < 1e300 for each in found):
            accepted = "watts such as 95.0:170.0:200.0 for each power state"
            raise self.wrong(element, f"wattage_per_state must be {accepted}, got {shown(text)}")
        return found

    def whole(self, element: Element, key: str, default: int, least: int = 0) -> int:
        text = element.get(key, str(default))
        found = re.fullmatch(r"\s*(\d{1,9})(\.0*)?\s*", text)
        if found is None or int(found[1]) < least:
            raise self.wrong(element, f"{key} must be a whole number >= {least}, got {shown(text)}")
        return int(found[1])

    def disk(self, element: Element) -> StorageSpec:
        properties = self.props(self.parts(element))
        capacity = {"capacity": properties["size"]} if "size" in properties else {}
        read, write = (self.quantity(element, key, "B/s") for key in ("read_bw", "write_bw"))
        fields = {"name": element.attrib["id"], "read_bandwidth": read, "write_bandwidth": write}
        return self.make(element, StorageSpec, **fields, **capacity)

    # ------------------------------------------------------------------ links

    def named_link(self, element: Element) -> None:
        properties = self.props(self.parts(element))
        policy = element.get("sharing_policy", "SHARED")
        name = element.attrib["id"]
        if properties:
            self.properties[name] = properties
        self.add_link(
            element,
            name,
            self.quantity(element, "bandwidth", "B/s"),
            self.quantity(element, "latency", "s", "0"),
            policy,
        )
        for key, state in (("bandwidth_file", False), ("state_file", True)):
            if element.get(key):
                self.follow(element, name, *self.profile_in(element, element.attrib[key]), state=state)

    def add_link(
        self, element: Element, name: str, bandwidth: float, latency: float = 0.0, policy: str = "SHARED"
    ) -> None:
        if policy not in _POLICIES:
            raise self.wrong(
                element,
                f"link {name}: sharing policy {shown(policy)} is not read; accepted: SHARED, SPLITDUPLEX, FATPIPE",
            )
        names = [name]
        if policy in _DUPLEX:
            names = [f"{name}_UP", f"{name}_DOWN"]
            self.split.add(name)
        for each in (*names, name):
            if each in self.links:
                raise self.wrong(element, f"duplicate link {shown(each)}")
        for each, other in zip(names, [*names[1:], names[0]], strict=True):
            self.links[each] = self.make(
                element,
                LinkSpec,
                name=each,
                bandwidth=bandwidth,
                latency=latency,
                sharing=_POLICIES[policy],
                reverse=None if other == each else other,
            )

    def halves(self, element: Element, name: str) -> list[str]:
        """Return the names under which a link is kept: one, or two if it is split duplex."""
        if name in self.split:
            return [f"{name}_UP", f"{name}_DOWN"]
        if name not in self.links:
            raise self.wrong(element, unknown("link", name, self.links).message)
        return [name]

    # ------------------------------------------------------------------ profiles

    def trace(self, element: Element) -> None:
        self.parts(element)
        name = element.attrib["id"]
        if name in self.traces:
            raise self.wrong(element, f"duplicate trace {shown(name)}")
        if element.get("file"):
            self.traces[name] = self.profile_in(element, element.attrib["file"])
        else:
            period = self.quantity(element, "periodicity", "s", "0")
            lines = enumerate((element.text or "").splitlines(), element.line)
            self.traces[name] = self.profile(lines, self.name, period)

    def connect(self, element: Element) -> None:
        self.parts(element)
        name, kind = element.attrib["trace"], element.attrib["kind"]
        if kind not in ("BANDWIDTH", "LINK_AVAIL"):
            raise self.wrong(
                element, f"<trace_connect> of kind {shown(kind)} is not read; accepted: BANDWIDTH, LINK_AVAIL"
            )
        if name not in self.traces:
            raise self.wrong(element, unknown("trace", name, self.traces).message)
        self.follow(element, element.attrib["element"], *self.traces[name], state=kind == "LINK_AVAIL")

    def profile_in(self, element: Element, file: str) -> tuple[tuple[tuple[float, float], ...], float | None]:
        if self.folder is None:
            raise self.wrong(element, f"profile {shown(file)} is only read for a platform that is read from a path")
        lines, name = read_lines(self.folder / file)
        return self.profile(lines, name, 0.0)

    def profile(
        self, lines: Iterable[tuple[int, str]], name: str, period: float
    ) -> tuple[tuple[tuple[float, float], ...], float | None]:
        """Return the points of a profile, and the period after which it repeats, if it does."""
        points: list[tuple[float, float]] = []
        pause = 0.0
        for number, line in lines:
            words = line.split()
            if not words or words[0][0] in "#%":
                continue
            try:
                first, second = words
                if first == "PERIODICITY":
                    period = float(second)
                elif first == "LOOPAFTER":
                    pause = float(second)
                else:
                    points.append((float(first), float(second)))
            except ValueError:
                accepted = "a time and a value, PERIODICITY or LOOPAFTER and seconds"
                raise InputError(f"must be {accepted}, got {shown(line)}", name, f"line {number}") from None
        if pause and points:
            period = points[-1][0] + pause
        return tuple(points), period or None

    def follow(
        self,
        element: Element,
        name: str,
        points: tuple[tuple[float, float], ...],
        period: float | None,
        *,
        state: bool,
    ) -> None:
        """Give a link a profile of its bandwidth, or of its state."""
        for half in self.halves(element, name):
            link = self.links[half]
            if link.profile:
                raise self.wrong(element, f"link {name}: must have one profile, of its bandwidth or of its state")
            values = [(at, (link.bandwidth if value > 0 else 0.0) if state else value) for at, value in points]
            fields = {field.name: getattr(link, field.name) for field in attrs.fields(LinkSpec)}
            self.links[half] = self.make(element, LinkSpec, **(fields | {"profile": values, "repeat": period}))

    # ------------------------------------------------------------------ routes

    def route(self, element: Element, zone: Zone) -> None:
        names = [link for each in self.parts(element) for link in [self.step(each)]]
        source, destination = element.attrib["src"], element.attrib["dst"]
        bypass = element.tag.startswith("bypass")
        gateways = [element.get("gw_src"), element.get("gw_dst")]
        between_zones = gateways[0] is not None
        for name in (source, destination):
            known = self.zones if between_zones else self.zone_of
            if name not in known or (not between_zones and name in self.zones):
                what = "zone" if between_zones else "host or router"
                raise self.wrong(
                    element,
                    unknown(what, name, sorted(set(known) - (set() if between_zones else set(self.zones)))).message,
                )
            if not bypass and self.zone_of.get(name) is not zone:
                raise self.wrong(element, f"{shown(name)} must be in zone {zone.name}, of which this is a route")
        for name, gateway in zip((source, destination), gateways, strict=True):
            if gateway is not None and (gateway in self.zones or gateway not in self.zone_of):
                raise self.wrong(element, unknown("gateway", gateway, self.zone_of).message)
            if gateway is not None and self.zones[name] not in self.zone_of[gateway].line:
                raise self.wrong(element, f"gateway {shown(gateway)} must be in zone {name}")
        if not bypass and not isinstance(zone, FullZone):
            raise self.wrong(element, f"zone {zone.name} has no routes by its type; accepted: Full, Floyd, Dijkstra")
        if not names:
            raise self.wrong(element, f"route from {source} to {destination}: must have at least one link")
        table = zone.bypasses if bypass else zone.ways
        self.add_way(element, table, (source, destination), Way(tuple(a for a, _ in names), *gateways))
        symmetrical = element.get("symmetrical", "YES").upper()
        if symmetrical not in ("YES", "NO"):
            raise self.wrong(element, f"symmetrical must be YES or NO, got {shown(symmetrical)}")
        if symmetrical == "YES" and source != destination and not bypass:
            back = Way(tuple(b for _, b in reversed(names)), *reversed(gateways))
            self.add_way(element, table, (destination, source), back)

    def add_way(self, element: Element, table: dict[tuple[str, str], Way], ends: tuple[str, str], way: Way) -> None:
        if ends in table:
            raise self.wrong(
                element, f"duplicate route from {ends[0]} to {ends[1]} (routes are symmetrical by default)"
            )
        table[ends] = way

    def step(self, element: Element) -> tuple[str, str]:
        """Return the name of a link of a route, and that of the link of the way back."""
        self.parts(element)
        name, direction = element.attrib["id"], element.get("direction", "NONE")
        if direction not in ("UP", "DOWN", "NONE"):
            raise self.wrong(element, f"direction must be UP, DOWN or NONE, got {shown(direction)}")
        halves = self.halves(element, name)
        if (len(halves) == 2) != (direction != "NONE"):
            accepted = "must have a direction, UP or DOWN" if direction == "NONE" else "must not have a direction"
            raise self.wrong(element, f"link {name} {accepted}")
        return (halves[-1], halves[0]) if direction == "DOWN" else (halves[0], halves[-1])

    # ------------------------------------------------------------------ clusters

    def radical(self, element: Element) -> list[int]:
        """Return the numbers of a list of ranges such as ``0-3,7``."""
        text = element.attrib["radical"]
        found: list[int] = []
        for piece in text.split(","):
            ends = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9}))?\s*", piece)
            if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
                raise self.wrong(element, f"radical must be ranges such as 0-3,7, got {shown(text)}")
            check_count("hosts", len(found) + int(ends[2] or ends[1]) - int(ends[1]) + 1)
            found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
        return found

    def spoke(self, element: Element, zone: StarZone, backbone: tuple[str, ...]) -> None:
        """Read a cabinet or the link of a host."""
        self.parts(element)
        if element.tag == "host_link":
            name = element.attrib["id"]
            if name not in zone.points:
                raise self.wrong(element, unknown("host", name, zone.points).message)
            up, down = element.attrib["up"], element.attrib["down"]
            for link in (up, down):
                if link not in self.links:
                    raise self.wrong(element, unknown("link", link, self.links).message)
            zone.ups[name], zone.downs[name] = (up, *backbone), (*backbone, down)
            return
        bandwidth, latency = self.quantity(element, "bw", "B/s"), self.quantity(element, "lat", "s")
        for number in self.radical(element):
            name = f"{element.attrib['prefix']}{number}{element.attrib['suffix']}"
            self.add_host(element, name, zone, {})
            self.add_link(element, f"link_{name}", bandwidth, latency, "SPLITDUPLEX")
            zone.ups[name], zone.downs[name] = (f"link_{name}_UP", *backbone), (*backbone, f"link_{name}_DOWN")

    def cluster(self, element: Element, parent: Zone | None) -> None:
        properties = self.props(self.parts(element))
        name, prefix, suffix = (element.attrib[key] for key in ("id", "prefix", "suffix"))
        policy = element.get("sharing_policy", "SPLITDUPLEX")
        if policy not in ("SHARED", *_DUPLEX):
            raise self.wrong(element, f"sharing_policy must be SHARED or SPLITDUPLEX, got {shown(policy)}")
        numbers = self.radical(element)
        kind = element.get("topology", "FLAT")
        if kind != "FLAT":
            raise self.wrong(element, f"topology {shown(kind)} is not read")
        zone = StarZone(name, parent)
        self.enter(element, zone)
        self.properties[name] = properties
        bandwidth, latency = self.quantity(element, "bw", "B/s"), self.quantity(element, "lat", "s")
        backbone: tuple[str, ...] = ()
        if element.get("bb_bw") or element.get("bb_lat"):
            backbone = (f"{name}_backbone",)
            shared = element.get("bb_sharing_policy", "SHARED")
            ends = self.quantity(element, "bb_bw", "B/s", "0"), self.quantity(element, "bb_lat", "s", "0")
            self.add_link(element, backbone[0], *ends, shared)
        for number in numbers:
            host, link = f"{prefix}{number}{suffix}", f"{name}_link_{number}"
            self.add_host(element, host, zone, properties)
            self.add_link(element, link, bandwidth, latency, policy)
            up, down = (link, link) if policy == "SHARED" else (f"{link}_UP", f"{link}_DOWN")
            limiter = self.limiter(element, f"{link}_limiter")
            zone.ups[host], zone.downs[host] = (*limiter, up, *backbone), (*backbone, down, *limiter)
            self.loopback(element, zone, host, link)
        self.point(element, element.get("router_id") or f"{prefix}{name}_router{suffix}", zone)

    def limiter(self, element: Element, name: str) -> tuple[str, ...]:
        if not element.get("limiter_link"):
            return ()
        self.add_link(element, name, self.quantity(element, "limiter_link", "B/s"))
        return (name,)

    def loopback(self, element: Element, zone: Zone, host: str, link: str) -> None:
        if element.get("loopback_bw") or element.get("loopback_lat"):
            ends = self.quantity(element, "loopback_bw", "B/s", "0"), self.quantity(element, "loopback_lat", "s", "0")
            self.add_link(element, f"{link}_loopback", *ends, "FATPIPE")
            zone.ways[host, host] = Way((f"{link}_loopback",))
