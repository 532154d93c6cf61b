"""Platforms of SimGrid's XML: routes, latencies and times as SimGrid 3.32 has them, and what is refused."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from simmodel import Environment, InputError, Job, Network, Policy, Start, View, load_platform, simulate, start
from simmodel.cli import main
from simmodel.formats import SimGridPlatform, read_simgrid
from simmodel.formats.simgrid import SimGridHost
from simmodel.platform import (
    ArchitectureSpec,
    ClusterSpec,
    GridSpec,
    LinkSpec,
    MachineSpec,
    MemoryPoolSpec,
    NetworkSpec,
    NodePower,
    NodeSpec,
    ProcessorSpec,
    from_dict,
    read_toml,
    to_dict,
    write_toml,
)
from simmodel.scheduling.protocol import Decision
from simmodel.snapshots import Snapshot
from simmodel.work import Task, Workflow
from tests.helpers.data_files import data_file
from tests.helpers.paths import REFERENCE

HERE = Path(__file__).parent
KEPT = json.loads((HERE / "simgrid-routes.json").read_text())
ROUTES = KEPT["routes"]
"""By platform: number of links, latency (s), seconds of a transfer of 100 MB under SimGrid's defaults, and the pairs
that have these, as numbers of the hosts by name; ``null``: SimGrid has no route."""


def path_of(name: str) -> Path:
    own = HERE / f"{name}.xml"
    return own if own.exists() else data_file(f"platform/{name}.xml.gz")


def pairs(platform: SimGridPlatform, text: str) -> Iterator[tuple[str, str]]:
    names = sorted(host.name for host in platform.hosts)
    for pair in text.split():
        source, _, destination = pair.partition("-")
        yield names[int(source)], names[int(destination)]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ROUTES)
def test_routes_latencies_and_times_are_those_of_simgrid(name: str) -> None:
    platform = read_simgrid(path_of(name))
    network = Network(Environment(), topology=platform.topology, model="simgrid")
    for links, latency, seconds, text in ROUTES[name]:
        for source, destination in pairs(platform, text):
            if links is None:
                with pytest.raises(InputError, match=f"no route from {source} to {destination}"):
                    network.route(source, destination)
                continue
            route = network.route(source, destination)
            assert len(route) == links, (source, destination, route)
            assert sum(platform.topology.link(link).latency for link in route) == pytest.approx(latency, abs=1e-12)
            begin = network.env.now
            end = network.env.run(network.transfer(1e8, source=source, destination=destination)).end
            assert end - begin == pytest.approx(seconds, rel=1e-9), (source, destination, route)


def ends_apart(platform: SimGridPlatform, flows: list[tuple[str, str, float, float]], model: str) -> float:
    """Return by how much the ends of flows that all begin at 0 differ from those given, at most, relative to these."""
    env = Environment()
    network = Network(env, topology=platform.topology, model=model)
    transfers = [(network.transfer(float(size), source=a, destination=b), end) for a, b, size, end in flows]
    env.run()
    return max(abs(transfer.value.end - end) / end for transfer, end in transfers)


def test_a_crowd_over_several_zones_ends_as_in_simgrid() -> None:
    assert ends_apart(read_simgrid(path_of("simgrid-zones")), KEPT["crowd"], "simgrid") < 1e-9


CROWDS = ["dragonfly-60-1", "dragonfly-512-2", "fat_tree-16-8", "fat_tree-60-3", "fat_tree-256-4"]


@pytest.mark.few(6)
@pytest.mark.parametrize("name", [*CROWDS, "torus-60-5", "torus-64-7", "torus-512-6"])
def test_crowds_on_topologies_end_as_in_simgrid(name: str) -> None:
    path = REFERENCE / "topology" / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; set SIMMODEL_REFERENCE to the folder of the references")
    case = json.loads(gzip.decompress(path.read_bytes()))
    assert ends_apart(read_simgrid(io.StringIO(case["xml"])), case["flows"], "cm02") < 1e-9


def platform(*lines: str, routing: str = "Full", version: str = "4.1") -> SimGridPlatform:
    body = "\n".join(lines)
    text = f'<platform version="{version}"><zone id="w" routing="{routing}">\n{body}\n</zone></platform>'
    file = io.BytesIO(text.encode())
    file.name = "p.xml"
    return read_simgrid(file)


A, B = '<host id="a" speed="1Gf"/>', '<host id="b" speed="1Gf"/>'
LINK = '<link id="l" bandwidth="1GBps" latency="1us"/>'
ROUTE = '<route src="a" dst="b"><link_ctn id="l"/></route>'
CLUSTER = 'prefix="n" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us"'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([A, B, A], "p.xml, line 4: duplicate name 'a', already of a host"),
        ([A, '<zone id="a" routing="Full"/>'], "p.xml, line 3: duplicate name 'a', already of a host"),
        (['<link id="l" latency="1us"/>'], "p.xml, line 2: <link 'l'> must have 'bandwidth'"),
        (
            ['<link id="l" bandwidth="0" latency="1us"/>'],
            "p.xml, line 2: link l, bandwidth: must be > 0, got 0.0",
        ),
        (
            ['<link id="l" bandwidth="fast"/>'],
            "p.xml, line 2, bandwidth of l: must be a quantity in B/s such as '40Gbps', got 'fast'",
        ),
        ([A, '<host id="b" speed="1Gf">fast</host>'], "p.xml, line 3: text in <host 'b'> is not read"),
        ([LINK, LINK], "p.xml, line 3: duplicate link 'l'"),
        ([A, B, ROUTE], "p.xml, line 4: unknown link 'l'; known links: none"),
        ([A, LINK, ROUTE], "p.xml, line 4: unknown host 'b'; known hosts: a"),
        ([A, B, LINK, ROUTE, ROUTE], "p.xml, line 6: duplicate route from a to b (routes are symmetrical by default)"),
        (
            [A, B, '<route src="a" dst="b"/>'],
            "p.xml, line 4: route from a to b must have at least one link",
        ),
        (
            ['<zone id="z" routing="Vivaldi"/>'],
            "p.xml, line 2: zone type 'Vivaldi' is not read; accepted: Full, Floyd, Dijkstra, DijkstraCache, Cluster, "
            "Star, None",
        ),
        (
            ['<link id="l" bandwidth="1GBps" sharing_policy="WIFI"/>'],
            "p.xml, line 2: sharing_policy must be one of SHARED, FATPIPE, SPLITDUPLEX, FULLDUPLEX, got 'WIFI'",
        ),
        (
            ['<host id="a" speed="1Gf" speed_file="a.profile"/>'],
            "p.xml, line 2: attribute 'speed_file' of <host 'a'> is not read; accepted: id, speed, core, pstate",
        ),
        (
            ['<host id="a" speed="1Gf" pstate="1"/>'],
            "p.xml, line 2: pstate of a must be below 1, its number of speeds, got 1",
        ),
        (
            [f'<cluster id="c" {CLUSTER}/>'.replace("0-3", "3-0")],
            "p.xml, line 2: radical must be ranges such as 0-3,7, got '3-0'",
        ),
        (
            [f'<cluster id="c" {CLUSTER}/>'.replace("0-3", "0-3,2")],
            "p.xml, line 2: radical must have each number once, got 2 twice in '0-3,2'",
        ),
        (
            [f'<cluster id="c" {CLUSTER} topology="FAT_TREE" topo_parameters="2;2,3;1,1;1,1"/>'],
            "p.xml, line 2: radical must name 6 hosts, by topo_parameters, got 4",
        ),
        (
            [f'<cluster id="c" {CLUSTER} topology="DRAGONFLY" topo_parameters="2,1;2,1;2,1;1"/>'],
            "p.xml, line 2: radical must name 8 hosts, by topo_parameters, got 4",
        ),
        (
            [f'<cluster id="c" {CLUSTER} topology="TORUS" topo_parameters="2,2"/>'.replace('bw="1GBps"', 'bw="0"')],
            "p.xml, line 2: bandwidth: must be > 0, got '0.0'",
        ),
        (
            [f'<cluster id="c" {CLUSTER}/>'.replace('bw="1GBps" ', "")],
            "p.xml, line 2: <cluster 'c'> must have 'bw'",
        ),
        (
            [f'<cluster id="c" {CLUSTER} sharing_policy="FATPIPE"/>'],
            "p.xml, line 2: sharing_policy must be one of SHARED, SPLITDUPLEX, FULLDUPLEX, got 'FATPIPE'",
        ),
        (
            ['<host id="a" speed="1Gf"><prop id="wattage_per_state" value="95:-3"/></host>'],
            "p.xml, line 2: wattage_per_state must be watts such as 95.0:170.0:200.0 for each power state, got '95:-3'",
        ),
        (
            ['<host id="a" speed="1Gf"><prop id="sleep_pstates" value="1:2"/></host>'],
            "p.xml, line 2: sleep_pstates must be numbers of power states with watts to sleep, to stop and to boot, "
            "such as 13:14:15, got '1:2'",
        ),
        (
            ['<host id="a" speed="1Gf"><prop id="wattage_per_state" value="low"/></host>'],
            "p.xml, line 2: wattage_per_state must be watts such as 95.0:170.0:200.0 for each power state, got 'low'",
        ),
        (
            [A, B, LINK.replace("/>", ' sharing_policy="SPLITDUPLEX"/>'), ROUTE],
            "p.xml, line 5: link l must have a direction, UP or DOWN",
        ),
        (
            [f'<zone id="x" routing="Full">{A}</zone><zone id="y" routing="Full">{B}</zone>{LINK}',
             '<zoneRoute src="x" dst="y" gw_src="b" gw_dst="b"><link_ctn id="l"/></zoneRoute>'],
            "p.xml, line 3: gateway 'b' must be in zone x",
        ),
        (['<peer id="p" speed="1Gf"/>'], "p.xml, line 2: <peer> in <zone 'w'> is not read; accepted: prop, zone, "),
    ],
)  # fmt: skip
def test_what_is_wrong_or_not_read_is_refused_with_its_line(lines: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        platform(*lines)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("version", ["3", "4.2", "x"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(InputError, match=f"p.xml, line 1: version must be 4 or 4.1, got '{version}'"):
        platform(A, version=version)


def test_routes_are_refused_in_a_zone_that_computes_them() -> None:
    with pytest.raises(InputError, match="line 5: zone w has no routes by its type; accepted: Full, Floyd, Dijkstra"):
        platform(A, B, LINK, ROUTE, routing="Cluster")


def test_actors_and_configurations_are_refused() -> None:
    for tag in ("actor", "config"):
        with pytest.raises(InputError, match=f"line 2: <{tag}.*> in <platform> is not read; accepted: zone, cluster"):
            read_simgrid(io.StringIO(f'<platform version="4.1">\n<{tag} id="x"/></platform>'))


def test_entities_are_refused() -> None:
    text = (
        '<!DOCTYPE platform [<!ENTITY a "aaaa">]>\n<platform version="4.1"><zone id="&a;" routing="Full"/></platform>'
    )
    with pytest.raises(InputError, match="entity declarations are not accepted, got 'a'"):
        read_simgrid(io.StringIO(text))


def test_hosts_have_cores_speeds_disks_and_properties() -> None:
    found = platform(
        '<host id="a" speed="2Gf, 1Gf" pstate="1" core="8"><prop id="role" value="master"/>',
        '<disk id="d" read_bw="100MBps" write_bw="40MBps"><prop id="size" value="500GiB"/></disk>',
        '<prop id="wattage_per_state" value="95:120:200, 90:100:150"/></host>',
    )
    (host,) = found.hosts
    assert (host.speeds, host.speed, host.cores, host.zone) == ((2e9, 1e9), 1e9, 8, "w")
    assert (host.powers, host.computes) == ((90.0, 100.0, 150.0), False)
    (disk,) = host.disks
    assert (disk.name, disk.capacity, disk.read_bandwidth, disk.write_bandwidth) == ("d", 500 * 2**30, 1e8, 4e7)
    with pytest.raises(InputError, match="must have a host that runs jobs"):
        _ = found.spec


def host_with(speeds: str, cores: int = 4, **properties: str) -> SimGridHost:
    props = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in properties.items())
    return platform(f'<host id="a" speed="{speeds}" core="{cores}">{props}</host>').hosts[0]


def test_power_states_are_levels_and_states_of_sleep() -> None:
    """Numbers of the taurus node as Batsim's platforms have them: 1 flop at 0.01 flop/s takes 100 s."""
    watts = "95.0:190.738, 95.0:180.0, 9.75:9.75, 101.0:101.0, 125.17:125.17"
    host = host_with(
        "100Mf, 80Mf, 1e-9Mf, 0.5f, 0.01f", wattage_per_state=watts, sleep_pstates="2:3:4", wattage_off="9"
    )
    assert host.power == NodePower(
        idle=95, levels=[(1.0, 190.738), (0.8, 180.0)], off=9.75, boot=("100s", 125.17), stop=("2s", 101)
    )
    assert host.passed_over == ()
    assert host.node == NodeSpec(cores=4, power=host.power)


@pytest.mark.parametrize(
    ("speeds", "cores", "watts", "power"),
    [
        ("1Gf", 4, "95:200", NodePower(idle=95, load=200)),
        ("1Gf", 4, "95:95:200", NodePower(idle=95, load=200)),
        ("1Gf", 4, "95:200:200", NodePower(idle=95, load=200, model="node")),
        ("1Gf", 1, "95:120:200", NodePower(idle=95, load=200)),
        ("1Gf", 4, "120", NodePower(idle=120, load=120)),
    ],
)
def test_watts_of_a_host_without_rest(speeds: str, cores: int, watts: str, power: NodePower) -> None:
    host = host_with(speeds, cores, wattage_per_state=watts)
    assert (host.power, host.passed_over) == (power, ())


def test_watts_that_are_passed_over_are_counted_and_said(tmp_path: Path) -> None:
    props = '<prop id="wattage_per_state" value="95:120:200, 93:115:170, 96:96:96"/><prop id="wattage_off" value="10"/>'
    text = f'<cluster id="c" {CLUSTER} core="4">{props}<prop id="sleep_pstates" value="2:2:2"/></cluster>'
    found = platform(text.replace('"1Gf"', '"1Gf, 0.5Gf"'))
    assert found.report.skipped == {
        "hosts with other idle watts at slower power states": 4,
        "hosts whose watts with few cores in use are not those when idle": 4,
        "hosts that sleep without the times of their switches": 4,
        "hosts with watts when off, in which they do not sleep": 4,
    }
    assert found.spec.description == str(found.report)
    assert found.spec.partitions[0].nodes[0].power == NodePower(idle=95, levels=[(1, 200), (0.5, 170)])
    faster = host_with("1Gf, 2Gf, 2Gf", wattage_per_state="9:9, 9:10, 9:10", sleep_pstates="1:1:1, 2:2:2")
    assert faster.passed_over == (
        "hosts with power states that are not slower than the first, or as slow as another",
        "hosts with further states of sleep",
    )


def test_hosts_of_speed_0_do_not_compute(tmp_path: Path) -> None:
    """As the hosts of ElastiSim for its scheduler and its file system."""
    found = platform(
        '<host id="batch" speed="0"/>',
        A,
        '<host id="pfs" speed="0f, 1Gf"/>',
        '<host id="c" speed="2Gf, 0" pstate="1"/>',
        B,
        '<link id="l" bandwidth="1GBps"/>',
        '<route src="a" dst="pfs"><link_ctn id="l"/></route>',
    )
    assert [host.name for host in found.hosts if host.computes] == ["a", "b"]
    assert isinstance(found.spec, ClusterSpec)
    assert found.spec.partitions[0].node_names == ("a", "b")
    assert [each.name for each in found.machine.processors] == ["a", "b"]
    assert list(found.topology.between("a", "pfs")) == ["l"]
    path = tmp_path / "off.xml"
    path.write_text(f'<platform version="4.1"><cluster id="c" {CLUSTER.replace("1Gf", "0")}/></platform>')
    with pytest.raises(InputError, match="off: must have a host that runs jobs, with a speed above 0"):
        load_platform(path)


@pytest.mark.parametrize(
    ("kind", "parameters"), [("TORUS", "4"), ("FAT_TREE", "1;4;1;1"), ("DRAGONFLY", "1,1;1,1;4,1;1")]
)
def test_links_of_topologies_are_shared_where_they_should_be_fatpipes(kind: str, parameters: str) -> None:
    """SimGrid 3.32 takes 2 s, with links of both directions in one: it does not read FATPIPE there."""
    form = f'{CLUSTER} topology="{kind}" topo_parameters="{parameters}" sharing_policy="FATPIPE"'
    network = Network(Environment(), topology=platform(f'<cluster id="c" {form}/>').topology)
    transfers = [network.transfer(1e9, source="n0", destination="n1", lag=0) for _ in range(2)]
    network.env.run()
    assert [each.end for each in transfers] == [2.0, 2.0]


def test_hosts_of_one_zone_are_nodes_of_a_cluster(tmp_path: Path) -> None:
    text = (
        '<platform version="4.1"><zone id="w" routing="Full">'
        f'<cluster id="c" {CLUSTER} core="4"><prop id="wattage_per_state" value="50:60:90"/></cluster>'
        '<host id="master_host" speed="1Gf"/></zone></platform>'
    )
    path = tmp_path / "lab.xml.gz"
    path.write_bytes(gzip.compress(text.encode()))
    spec = load_platform(path)
    assert isinstance(spec, ClusterSpec)
    assert spec.name == "lab"
    assert spec.partitions[0].node_names == ("n0", "n1", "n2", "n3")
    assert spec.processors == 16
    assert (spec.partitions[0].nodes[0].idle_power, spec.partitions[0].nodes[0].load_power) == (50.0, 90.0)
    jobs = [Job(id=i, submit=0, run=10, processors=16) for i in range(2)]
    assert simulate(path, jobs, "fcfs").metrics()["makespan"] == 20


def test_hosts_of_several_zones_are_sites_of_a_grid() -> None:
    spec = load_platform(HERE / "simgrid-zones.xml")
    assert isinstance(spec, GridSpec)
    assert [site.name for site in spec.sites] == ["ring", "mesh", "small", "half", "rack"]
    assert [site.capacity for site in spec.sites] == [4, 4, 16, 3, 4]
    assert [site.speed for site in spec.sites] == [1.0, 1.0, 2.0, 1.0, 2.0]
    routes = {(route.source, route.destination): route.links for route in spec.network.routes}
    assert routes["ring", "mesh"] == ("to-mesh",)
    assert routes["half", "rack"] == ("half_link_2", "thin", "wide")
    assert spec.network.model.name == "simgrid"


def test_a_split_duplex_link_has_a_half_for_each_direction() -> None:
    route = '<route src="a" dst="b"><link_ctn id="l" direction="UP"/></route>'
    found = platform(A, B, LINK.replace("/>", ' sharing_policy="SPLITDUPLEX"/>'), route)
    assert (found.topology.route(0, 1), found.topology.route(1, 0)) == (("l_UP",), ("l_DOWN",))
    assert found.topology.link("l_UP") == LinkSpec(name="l_UP", bandwidth=1e9, latency=1e-6, reverse="l_DOWN")


def test_links_follow_profiles(tmp_path: Path) -> None:
    (tmp_path / "wan.profile").write_text("# halved after 1 s\nLOOPAFTER 2\n1.0 50\n3.0 100\n")
    (tmp_path / "state.profile").write_text("PERIODICITY 10\n2 0\n4 1\n")
    (tmp_path / "p.xml").write_text(
        f'<platform version="4.1"><zone id="w" routing="Full">{A}{B}'
        '<link id="l" bandwidth="100Bps" bandwidth_file="wan.profile"/>'
        '<link id="m" bandwidth="100Bps" state_file="state.profile" sharing_policy="SPLITDUPLEX"/>'
        f"{ROUTE}</zone></platform>"
    )
    topology = read_simgrid(tmp_path / "p.xml").topology
    assert (topology.link("l").profile, topology.link("l").repeat) == (((1.0, 50.0), (3.0, 100.0)), 5.0)
    for half in ("m_UP", "m_DOWN"):
        assert (topology.link(half).profile, topology.link(half).repeat) == (((2.0, 0.0), (4.0, 100.0)), 10.0)
    env = Environment()
    network = Network(env, topology=topology)
    assert env.run(network.transfer(300, source="a", destination="b")).end == 4.0
    (tmp_path / "wan.profile").write_text("NORM 1 2 3\n")
    with pytest.raises(InputError, match=r"wan\.profile, line 1: must be a time and a value, or PERIODICITY"):
        read_simgrid(tmp_path / "p.xml")


# ---------------------------------------------------------------------- machines

FORK = Workflow([Task(id=each, run=10) for each in "abc"], [("a", "b", 1e8), ("a", "c", 1e8)])


class Apart(Policy):
    """Runs each task on a processor given by name."""

    name = "apart"
    decides = "tasks"

    def __init__(self, where: dict[str, str]) -> None:
        self.where = where

    def decide(self, view: View) -> Iterator[Decision]:
        places = {place.name: place for place in view.places}
        for task in list(view.waiting):
            yield Start(task, places[self.where[str(task.id)]])


def test_hosts_are_the_processors_of_a_machine_whose_data_move_as_in_simgrid(tmp_path: Path) -> None:
    found = read_simgrid(HERE / "simgrid-zones.xml")
    spec = found.machine
    assert repr(spec) == "<MachineSpec simgrid-zones: 31 processors (31 CPUCore), 19 pools, a network>"
    policy = Apart({"a": "r0", "b": "c1", "c": "m1"})
    result = simulate(spec, FORK, policy)
    network = Network(Environment(), topology=found.topology, model="simgrid")
    sent = [network.transfer(1e8, source="r0", destination=each) for each in result.transfers["destination"].tolist()]
    network.env.run()
    assert (result.transfers["end"] - 10).tolist() == [pytest.approx(each.value.end, rel=1e-12) for each in sent]
    tasks = {row["task"]: row for row in result.tasks.rows()}
    assert [tasks[each]["end"] - tasks[each]["start"] for each in "abc"] == pytest.approx([10, 10 / 3, 10])

    assert from_dict(json.loads(json.dumps(to_dict(spec)))) == spec
    write_toml(spec, tmp_path / "machine.toml")
    assert read_toml(tmp_path / "machine.toml") == spec
    for cut in (5, 12, 18):
        simulation = start(spec, FORK, policy)
        simulation.run(until=cut)
        rest = start(Snapshot.from_json(simulation.snapshot().to_json()), policy=policy).run().result()
        assert rest.ended == result.ended


def test_the_command_for_tasks_takes_the_hosts_as_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    main(["machine", str(HERE / "simgrid-zones.xml"), "layered:n=20", "--policy", "heft"])
    assert "31 processors" in capsys.readouterr().out


def test_hosts_with_several_cores_and_powers() -> None:
    spec = platform(
        '<host id="n1" speed="2Gf" core="12"><prop id="wattage_per_state" value="24:30:60"/></host>',
        '<host id="n11" speed="1Gf"/><link id="l" bandwidth="1GBps"/>',
        '<route src="n1" dst="n11"><link_ctn id="l"/></route>',
    ).machine
    assert [name for each in spec.processors for name in each.names][::4] == ["n1.0", "n1.4", "n1.8", "n11"]
    assert [(each.name, each.performance) for each in spec.architectures] == [
        ("2000000000 flop/s", (1.0, 1.0)),
        ("1000000000 flop/s", (0.5, 0.5)),
    ]
    assert (spec.processors[0].idle_power, spec.processors[0].load_power, spec.home) == (2.0, 5.0, "n1")
    with pytest.raises(InputError, match="topology: only built-in topologies can be written"):
        to_dict(spec)


@pytest.mark.parametrize(
    ("network", "links", "message"),
    [
        ({"topology": "star:2 bandwidth=1"}, [], r"network.topology: must have the pool 'ram' among its hosts"),
        ({}, [], r"network: must have a topology; links between pools are those of the machine"),
        (
            {"topology": "valiant:1 torus:2 bandwidth=1"},
            [],
            "network.topology: must have one route for each pair of pools",
        ),
        (
            {"topology": "star:1 bandwidth=1 names=ram"},
            [LinkSpec(name="l", bandwidth=1, between=("ram", "ram"))],
            "links: must be empty beside a network",
        ),
    ],
)
def test_networks_of_machines_are_checked(network: dict[str, str], links: list[LinkSpec], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MachineSpec(
            pools=[MemoryPoolSpec(name="ram")],
            architectures=[ArchitectureSpec(name="x86")],
            processors=[ProcessorSpec(name="core", type="CPUCore", architecture="x86", pool="ram")],
            links=links,
            network=NetworkSpec(**network),
        )


TRACED = (
    '<trace id="day" periodicity="5.0">\n1.0 50\n 3.0 100\n</trace>',
    '<trace id="off">2 0\n4 1</trace>',
    '<trace_connect kind="BANDWIDTH" trace="day" element="l"/>',
    '<trace_connect kind="LINK_AVAIL" trace="off" element="m"/>',
    A, B,
    '<link id="l" bandwidth="100Bps"/>',
    '<link id="m" bandwidth="100Bps" sharing_policy="SPLITDUPLEX"/>',
    ROUTE,
)  # fmt: skip


def test_links_follow_traces(tmp_path: Path) -> None:
    topology = platform(*TRACED).topology
    assert (topology.link("l").profile, topology.link("l").repeat) == (((1.0, 50.0), (3.0, 100.0)), 5.0)
    for half in ("m_UP", "m_DOWN"):
        assert (topology.link(half).profile, topology.link(half).repeat) == (((2.0, 0.0), (4.0, 100.0)), None)
    env = Environment()
    assert env.run(Network(env, topology=topology).transfer(300, source="a", destination="b")).end == 4.0
    (tmp_path / "day.profile").write_text("PERIODICITY 5\n1.0 50\n3.0 100\n")
    (tmp_path / "p.xml").write_text(
        f'<platform version="4.1"><trace id="day" file="day.profile"/><zone id="w" routing="Full">{A}{B}'
        f'<link id="l" bandwidth="100Bps"/>{ROUTE}</zone>'
        '<trace_connect kind="BANDWIDTH" trace="day" element="l"/></platform>'
    )
    assert read_simgrid(tmp_path / "p.xml").topology.link("l") == topology.link("l")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '<trace id="x">1 fast</trace>',
            "must be a time and a value, or PERIODICITY or LOOPAFTER and seconds, got '1 fast'",
        ),
        ('<trace id="x"/>', "trace 'x' must have a file or lines of a time and a value"),
        ('<trace id="day">1 2</trace>', "duplicate trace 'day'"),
        (
            '<trace id="x" file="x.profile"/>',
            "profile 'x.profile' is only read beside a platform that is read from a path",
        ),
        (
            '<trace_connect kind="BANDWIDTH" trace="night" element="l"/>',
            "unknown trace 'night'; known traces: day, off",
        ),
        ('<trace_connect kind="BANDWIDTH" trace="day" element="k"/>', "unknown link 'k'; known links: "),
        (
            '<trace_connect kind="LATENCY" trace="day" element="l"/>',
            "kind must be one of BANDWIDTH, LINK_AVAIL, got 'LATENCY'",
        ),
        ('<trace_connect trace="day" element="a"/>', "kind must be one of BANDWIDTH, LINK_AVAIL, got 'HOST_AVAIL'"),
        ('<trace_connect kind="LINK_AVAIL" trace="off" element="l"/>', "link l must have one profile, of its "),
        ('<link id="k" bandwidth="1" latency_file="x"/>', "attribute 'latency_file' of <link 'k'> is not read; "),
        ('<host id="c" speed="1Gf" state_file="x"/>', "attribute 'state_file' of <host 'c'> is not read; "),
    ],
)
def test_other_traces_are_refused_with_their_line(line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        platform(*TRACED, line)
    assert str(caught.value).startswith(f"p.xml, line 15: {message}")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('topo_parameters="2,2"', "topo_parameters is only read with a topology"),
        ('topology="RING"', "topology must be one of FLAT, TORUS, FAT_TREE, DRAGONFLY, got 'RING'"),
        ('topology="TORUS" topo_parameters="2,3"', "radical must name 6 hosts, by topo_parameters, got 4"),
        ('topology="TORUS" topo_parameters="2,x"', "dimensions: must be a whole number >= 1, got 'x'"),
        ('topology="TORUS" topo_parameters="2,2" bb_bw="1GBps"', "bb_bw is not read for a cluster with a topology"),
        ('bb_lat="1us"', "link c_backbone, bandwidth: must be > 0, got 0.0"),
    ],
)
def test_clusters_are_refused_with_their_line(attributes: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        platform(f'<cluster id="c" {CLUSTER} {attributes}/>')
    assert str(caught.value) == f"p.xml, line 2: {message}"


def test_hosts_of_a_torus_are_nodes_of_a_cluster() -> None:
    found = platform(f'<cluster id="c" {CLUSTER} topology="TORUS" topo_parameters="2,2" loopback_bw="1GBps"/>')
    network = Network(Environment(), topology=found.topology)
    assert [len(network.route("n0", host)) for host in ("n0", "n1", "n3")] == [1, 1, 2]
    assert found.spec.processors == 4


def test_hosts_of_speed_0_are_there_and_run_no_jobs() -> None:
    found = platform(
        '<host id="Batch_system" speed="0"/><host id="PFS" speed="0Gf"/><host id="n1" speed="1Gf"/>'
        '<host id="n2" speed="2Gf"/><link id="l" bandwidth="1GBps" latency="1us"/>'
        '<route src="PFS" dst="n2"><link_ctn id="l"/></route>'
    )
    assert [host.name for host in found.hosts] == ["Batch_system", "PFS", "n1", "n2"]
    assert isinstance(found.spec, ClusterSpec)
    assert [(node.names, node.speed) for node in found.spec.partitions[0].nodes] == [("n1", 1.0), ("n2", 2.0)]
    hosts = found.topology.hosts
    assert found.topology.route(hosts.index("PFS"), hosts.index("n2")) == ("l",)
