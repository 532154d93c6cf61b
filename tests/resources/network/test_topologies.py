"""Topologies: routes as SimGrid 3.32 has them, links made when first used, drawn routes, texts, and wrong input."""

import gzip
import json
import re
import sys
from itertools import permutations
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform import from_dict, to_dict
from simmodel.platform.grid import GridSpec, SiteSpec
from simmodel.platform.network import LinkSpec, NetworkSpec
from simmodel.platform.toml import to_toml
from simmodel.platform.topology import Dragonfly, FatTree, Star, Torus, Tree, Valiant, read_topology
from simmodel.records import NetworkRecorder
from simmodel.resources.network.network import Network
from tests.helpers.new_process import printed
from tests.helpers.paths import REFERENCE

CROWDS = {
    "torus:4,3 bandwidth=1GBps latency=1us sharing=splitduplex": [
        (11, 2, 959479167, 0.959481167),
        (2, 8, 921587094, 1.206986216),
        (8, 10, 163186545, 0.2719789083333333),
        (10, 5, 338293563, 0.33829556299999997),
        (5, 0, 658710037, 0.6587120369999999),
        (0, 9, 676255771, 0.676257771),
        (9, 7, 486810028, 0.649998573),
        (7, 6, 397085726, 0.39708672599999995),
        (6, 1, 937245412, 0.937247412),
        (1, 4, 285397122, 0.4756632033333333),
        (4, 3, 987846706, 0.987848706),
        (3, 11, 214013443, 0.214014443),
    ],
    "fat-tree:2;3,4;2,3;2,1 bandwidth=1GBps latency=1us sharing=shared": [
        (11, 2, 959479167, 1.8810702610000003),
        (2, 8, 921587094, 1.8431781880000002),
        (8, 10, 163186545, 0.32637709000000004),
        (10, 5, 338293563, 0.552311006),
        (5, 0, 658710037, 0.6587140370000001),
        (0, 9, 676255771, 0.6762597710000001),
        (9, 7, 486810028, 0.9736240560000001),
        (7, 6, 397085726, 0.39708772600000003),
        (6, 1, 937245412, 1.4240594400000002),
        (1, 4, 285397122, 0.285401122),
        (4, 3, 987846706, 0.9878487060000001),
        (3, 11, 214013443, 0.42803088600000005),
    ],
    "dragonfly:3,2;2,3;3,1;1 bandwidth=1GBps latency=1us sharing=splitduplex limiter=1500MBps": [
        (12, 15, 397085726, 1.223331502690196),
        (15, 5, 937245412, 2.4554207280448934),
        (5, 16, 285397122, 1.6518185353254902),
        (16, 8, 987846706, 1.9680198323327769),
        (8, 14, 214013443, 0.6904826439854757),
        (14, 4, 381019256, 2.007954565788235),
        (4, 13, 330210706, 1.8318182591215686),
        (13, 0, 127530394, 0.6943367039346405),
        (0, 10, 990046123, 2.711576102670545),
        (10, 1, 787934188, 2.322640136855455),
        (1, 2, 966136364, 2.0931337025467576),
        (2, 17, 379445760, 1.7832636869490195),
        (17, 6, 959474321, 2.544644926449147),
        (6, 11, 391786935, 1.0219139895513638),
        (11, 3, 307699913, 1.535393368735985),
        (3, 9, 276972257, 1.2542829706307077),
        (9, 7, 432698856, 0.527569880384742),
        (7, 12, 410999321, 1.7020888946658919),
    ],
}
"""By topology: source, destination, bytes and end (s) of flows in SimGrid 3.32 (CM02, network/optim:Full)."""

RECORDED = sorted((REFERENCE / "topology").glob("[dft]*.json.gz"))


def ends(topology, flows):
    """Return the ends of flows (source, destination, bytes) that begin together."""
    env = Environment()
    network = Network(env, topology=topology, model="cm02")
    transfers = [network.transfer(float(size), source=a, destination=b) for a, b, size in flows]
    env.run()
    return [transfer.end for transfer in transfers]


# ---------------------------------------------------------------------- as SimGrid


@pytest.mark.parametrize("topology", CROWDS)
def test_every_flow_ends_as_in_simgrid(topology):
    flows = [(f"n{a}", f"n{b}", size) for a, b, size, _ in CROWDS[topology]]
    assert ends(topology, flows) == pytest.approx([end for *_, end in CROWDS[topology]], rel=1e-12)


def of_record(record):
    """Return the text of the topology of a recorded crowd, and its flows with their ends."""
    if "xml" not in record:
        kind = record["topology"].lower().replace("_", "-")
        flows = [(each["src"], each["dst"], each["size"], each["end"]) for each in record["permutation"]]
        return f"{kind}:{record['parameters']} bandwidth=125MBps latency=50us", flows
    given_ = dict(re.findall(r'(\w+)="([^"]*)"', record["xml"]))
    kind = given_["topology"].lower().replace("_", "-")
    sharing = given_["sharing_policy"].lower()
    return f"{kind}:{given_['topo_parameters']} bandwidth=1GBps latency=1us sharing={sharing}", record["flows"]


@pytest.mark.few(5)
@pytest.mark.skipif(not RECORDED, reason=f"no crowds in {REFERENCE}; set SIMMODEL_REFERENCE to their folder")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_recorded_crowds_and_their_links(path):
    record = json.loads(gzip.decompress(path.read_bytes()))
    topology, flows = of_record(record)
    assert ends(topology, [each[:3] for each in flows]) == pytest.approx([each[3] for each in flows], rel=1e-9)
    network = Network(Environment(), topology=topology)
    theirs, ours = {}, {}  # which link stands for which
    for each in record.get("pairs", []):
        route = network.route(each["src"], each["dst"])
        for name, other in zip(route, each["links"], strict=True):
            assert (theirs.setdefault(name, other), ours.setdefault(other, name)) == (other, name)
            assert name.endswith("up") == other.endswith("UP")
            assert network.links[name].bandwidth == pytest.approx(record["links"][other][0])
        assert network.way(each["src"], each["dst"]).latency == pytest.approx(each["latency"])


OWN = json.loads((Path(__file__).parent / "simgrid-topologies.json").read_text())
"""Of SimGrid 3.32 (CM02, network/optim:Full; 125 MB/s, 50 us, split duplex): source, destination, bytes and end (s) of
a permutation; of 200 pairs the links by number, + upwards, - downwards."""
LINKS = {
    "torus:5,4,3": (60, 2.94, 5),
    "torus:8,8": (64, 4.07, 8),
    "torus:4,4,4,4": (256, 4.13, 8),
    "fat-tree:2;8,8;1,4;1,1": (64, 3.76, 4),
    "fat-tree:3;4,4,4;1,4,4;1,1,1": (64, 5.46, 6),
    "dragonfly:3,4;4,3;5,1;2": (120, 5.18, 7),
    "dragonfly:4,4;4,3;6,1;2": (192, 5.63, 7),
}
"""Of SimGrid 3.32: hosts, and the links between 200 random pairs, in the mean and at most."""


@pytest.mark.parametrize("record", OWN, ids=lambda record: f"{record['topology']} {record['parameters']}")
def test_permutations_and_links_of_seven_topologies(record):
    text = f"{record['topology'].lower().replace('_', '-')}:{record['parameters']}"
    topology = read_topology(f"{text} bandwidth=125MBps latency=50us")
    flows = [(f"n{a}", f"n{b}", size) for a, b, size, _ in record["permutation"]]
    assert ends(topology, flows) == pytest.approx([end for *_, end in record["permutation"]], rel=1e-9)
    theirs, ours = {}, {}  # which cable stands for which
    for pair in record["pairs"]:
        source, destination, *links = pair.split()
        for name, other in zip(topology.route(int(source), int(destination)), links, strict=True):
            cable = name.partition(":")[0]
            assert (theirs.setdefault(cable, other[:-1]), ours.setdefault(other[:-1], cable)) == (other[:-1], cable)
            assert name.endswith("up") == other.endswith("+")
    every = np.arange(len(topology.hosts))
    hops = topology.hops(every[:, None], every)[~np.eye(len(every), dtype=bool)]
    hosts, mean, most = LINKS[text]
    assert (len(topology.hosts), hops.max()) == (hosts, most)
    assert abs(hops.mean() - mean) < 3 * hops.std() / sqrt(200)


# ---------------------------------------------------------------------- routes by hand


def test_torus_goes_the_shorter_way_and_at_equal_distances_as_simgrid():
    ring = Torus(dimensions=(8,), bandwidth=1.0)
    assert ring.route(6, 0) == ["6-7:up", "7-0:up"]
    assert ring.route(1, 7) == ["0-1:down", "7-0:down"]
    assert ring.route(5, 1)[0] == "5-6:up"
    assert ring.route(4, 0)[0] == "3-4:down"
    assert ring.route(3, 3) == ()


def test_mesh_does_not_wrap():
    mesh = Torus(dimensions=(4, 3), bandwidth=1.0, wrap=False)
    assert mesh.route(0, 11) == ["0-1:up", "1-2:up", "2-3:up", "3-7:up", "7-11:up"]
    assert mesh.route(11, 8) == ["10-11:down", "9-10:down", "8-9:down"]
    with pytest.raises(InputError, match="unknown link '3-0:up' of torus:4,3"):
        mesh.link("3-0:up")


def test_dragonfly_within_a_group_as_simgrid_or_continuous():
    values = {"groups": 2, "chassis": 3, "routers": 3, "nodes": 1, "bandwidth": 1.0}
    source, destination = 3, 8  # routers 0.1.0 and 0.2.2
    ends_ = "3-0.1.0:up", "8-0.2.2:down"
    simgrid = Dragonfly(**values).route(source, destination)
    assert simgrid == [ends_[0], "0.1.0-0.1.2:up", "0.0.2-0.2.2:up", ends_[1]]
    assert Dragonfly(**values, continuous=True).route(source, destination)[2] == "0.1.2-0.2.2:up"


def test_dragonfly_with_more_groups_than_routers_in_a_chassis():
    topology = Dragonfly(groups=5, chassis=3, routers=2, nodes=1, bandwidth=1.0, blue=3)
    route = topology.route(0, 24)  # from router 0.0.0 to 4.0.0
    assert route == ["0-0.0.0:up", "0.0.0-0.2.0:up", "0.2.0-4.0.0:up", "24-4.0.0:down"]
    assert topology.link("0.2.0-4.0.0:up").bandwidth == 3.0


def test_routes_of_stars_and_trees_are_as_by_hand():
    assert Star(nodes=3, bandwidth=1.0, sharing="shared").route(0, 2) == ["0-1.0", "2-1.0"]
    tree = Tree(down=(2, 2, 2), width=(1, 2, 4), bandwidth=1.0)
    route = tree.route(1, 6)
    assert route == ["1-1.0:up", "1.0-2.0:up", "2.0-3.0:up", "2.1-3.0:down", "1.3-2.1:down", "6-1.3:down"]
    assert [tree.link(name).bandwidth for name in route] == [1, 2, 4, 4, 2, 1]
    assert tree.route(2, 3) == ["2-1.1:up", "3-1.1:down"]


TEXTS = (
    "torus:4,3,2 bandwidth=1.0",
    "torus:5,3 bandwidth=1.0 sharing=shared limiter=2.0 wrap=false",
    "fat-tree:3;3,2,2;2,2,3;2,1,2 bandwidth=1.0 latency=0.5 limiter=3.0",
    "dragonfly:3,2;2,3;3,2;2 bandwidth=1.0 limiter=3.0 loopback=5.0 loopback_latency=0.1 continuous=true",
    "star:5 bandwidth=1.0 names=a,b,c,d,e backbone=3.0 backbone_latency=0.25",
    "tree:3,2 bandwidth=1.0 sharing=fatpipe width=1,2",
    "valiant:7 torus:4,4 bandwidth=1.0",
)


def between(name):
    """Return the two ends of a link in the direction of travel; ``None`` for a limiter or a backbone."""
    ends_, _, side = name.partition(":")
    one, dash, other = ends_.partition("#")[0].partition("-")
    if not dash:
        return None
    return (other, one) if side == "down" else (one, other)


@pytest.mark.parametrize("text", TEXTS)
def test_routes_lead_from_host_to_host_over_links_that_exist(text):
    topology = read_topology(text)
    for source, destination in permutations(range(len(topology.hosts)), 2):
        route = topology.route(source, destination)
        here = str(source)
        for name in route:
            assert topology.link(name).name == name
            pair = between(name)
            if pair is not None:
                assert here in pair  # split duplex: the first of the two
                assert pair[0] == here or "up" not in name
                here = pair[1] if pair[0] == here else pair[0]
        assert here == str(destination)


@pytest.mark.parametrize("text", TEXTS)
def test_a_topology_survives_its_text(text):
    topology = read_topology(text)
    assert topology.text() == text
    assert read_topology(topology.text()) == topology


# ---------------------------------------------------------------------- Valiant


@given(st.integers(0, 15), st.integers(0, 15), st.integers(0, 5), st.integers(0, 9))
def test_a_drawn_route_passes_its_host(source, destination, flow, seed):
    torus = Torus(dimensions=(4, 4), bandwidth=1.0)
    drawn = Valiant(of=torus, seed=seed)
    if source == destination:
        assert drawn.drawn(source, destination, flow) == ()
        return
    middle = drawn.middle(source, destination, flow)
    visited = [source]
    for name in drawn.drawn(source, destination, flow):
        one, other = map(int, between(name))
        assert one == visited[-1]
        visited.append(other)
    assert middle in visited
    assert visited[-1] == destination
    assert drawn.drawn(source, destination, flow) == [*torus.via(source, middle, destination)]


def test_a_drawn_route_on_a_dragonfly_passes_the_router_of_its_host():
    dragonfly = Dragonfly(groups=3, chassis=2, routers=3, nodes=2, bandwidth=1.0)
    route = dragonfly.via(0, 18, 35)  # hosts of the routers 0.0.0, 1.1.0 and 2.1.2
    assert route == [
        "0-0.0.0:up", "0.0.0-0.0.1:up", "0.0.1-1.0.0:up", "1.0.0-1.1.0:up",
        "1.1.0-1.1.2:up", "1.0.2-1.1.2:down", "1.0.2-2.0.1:up", "2.0.1-2.0.2:up", "2.0.2-2.1.2:up", "35-2.1.2:down",
    ]  # fmt: skip


def test_draws_differ_by_flow_and_are_the_same_in_each_process():
    program = (
        "from simmodel import Environment, Network\n"
        "network = Network(Environment(), topology='valiant:5 torus:8,8 bandwidth=1GBps')\n"
        "for _ in range(6): print(network.transfer(1e9, source='n0', destination='n9').way.links[0].name,\n"
        "                         len(network.route('n0', 'n9')), network.idle('n0', 'n9')[0])\n"
    )
    first = printed(program, "1")
    assert first == printed(program, "2")
    assert len(set(first.splitlines())) > 1


def test_a_question_draws_nothing():
    network = Network(Environment(), topology="valiant:5 torus:8,8 bandwidth=1GBps")
    asked = [network.route("n0", "n9") for _ in range(3)]
    moved = network.transfer(1.0, source="n0", destination="n9")
    assert asked == [tuple(link.name for link in moved.way.links)] * 3
    assert network.route("n0", "n9") != asked[0]


def test_a_link_that_a_route_passes_twice_is_used_twice():
    env = Environment()
    ring = Torus(dimensions=(8,), bandwidth=100.0, sharing="shared")
    network = Network(env, topology=Valiant(of=ring, seed=1))  # from 0 by way of 3 to 1: over 1-2 and 2-3 twice
    assert env.run(network.transfer(1000.0, source="n0", destination="n1")).end == 20.0
    assert network.route("n0", "n0") == ()


# ---------------------------------------------------------------------- links when first used


def test_links_are_made_when_first_used():
    env = Environment()
    network = Network(env, topology="torus:32,32,32 bandwidth=100")
    assert len(network.links) == 0
    recorder = NetworkRecorder(network)
    env.observe(recorder)
    env.run(until=5)
    network.transfer(1000.0, source="n0", destination="n2")
    assert list(network.links) == ["0-1:up", "1-2:up"]
    env.run()
    assert [(row["link"], row["bytes"], row["busy"]) for row in recorder.links().rows()] == [
        ("0-1:up", 1000.0, 10.0),
        ("1-2:up", 1000.0, 10.0),
    ]
    assert recorder.load("0-1:up").at([4, 6]).tolist() == [0.0, 100.0]


def test_links_that_no_route_has_used_can_be_changed_and_named_in_routes():
    env = Environment()
    network = Network(env, topology="torus:4,4 bandwidth=100")
    network.set_bandwidth("0-1:up", 50.0)
    assert env.run(network.transfer(1000.0, source="n0", destination="n1")).end == 20.0
    assert env.run(network.transfer(1000.0, route=["4-5:up"])).end == 30.0
    with pytest.raises(InputError, match="unknown link '4-6:up' of torus:4,4"):
        network.transfer(1000.0, route=["4-6:up"])
    with pytest.raises(InputError, match="unknown link 'x' of torus:4,4"):
        network.fail("x")


class Wire:
    """A topology of a user: two hosts and a link whose bandwidth changes."""

    hosts = ("left", "right")

    def route(self, source, destination, /):
        return ["wire"] if source != destination else []

    def link(self, name, /):
        return LinkSpec(name=name, bandwidth=100.0, profile=[(5, 50.0)])


def test_a_custom_topology_routes_and_is_not_written_to_files():
    env = Environment()
    network = Network(env, topology=Wire())
    assert env.run(network.transfer(1000.0, source="left", destination="right")).end == 15.0
    spec = GridSpec(sites=[SiteSpec(name="left", cores=1)], network=NetworkSpec(topology=Wire()))
    with pytest.raises(InputError, match="topology: only built-in topologies can be written"):
        to_dict(spec)


class Thin(Torus):
    """A torus of a user, one of whose links is thin."""

    def link(self, name, /):
        return LinkSpec(name=name, bandwidth=10.0 if name == "0-1:up" else 100.0)


@pytest.mark.parametrize("text", TEXTS)
def test_links_of_routes_have_the_specs_of_those_asked_for_by_name(text):
    topology = read_topology(text)
    network = Network(Environment(), topology=topology)
    for source, destination in permutations(range(len(topology.hosts)), 2):
        for link in network.way(topology.hosts[source], topology.hosts[destination]).links:
            spec = topology.link(link.name)
            assert link.spec == spec
            assert (link.name, link.bandwidth, link.latency) == (spec.name, spec.bandwidth, spec.latency)


def test_a_torus_of_a_user_has_its_own_links():
    env = Environment()
    network = Network(env, topology=Thin(dimensions=(4,), bandwidth=100.0))
    assert env.run(network.transfer(1000.0, source="n0", destination="n2")).end == 100.0


def calls(topology, source, destination, ask=Network.route):
    """Return how many functions of Python a question about a route calls."""
    found = 0

    def count(_frame, event, _):
        nonlocal found
        found += event == "call"

    network = Network(Environment(), topology=topology)
    ends_ = topology.hosts[source], topology.hosts[destination]
    sys.setprofile(count)
    try:
        ask(network, *ends_)
    finally:
        sys.setprofile(None)
    return found


def test_the_cost_of_a_route_does_not_grow_with_the_hosts():
    small, large = (Torus(dimensions=(8, 8, size), bandwidth=1.0) for size in (8, 128))
    assert calls(small, 0, 3 + 8 * 2) == calls(large, 0, 3 + 8 * 2)
    few, many = (Dragonfly(groups=g, chassis=4, routers=32, nodes=1, bandwidth=1.0) for g in (4, 32))
    assert calls(few, 0, 128 + 77) == calls(many, 0, 128 + 77)
    low, wide = (FatTree(levels=2, down=(8, d), up=(1, 4), parallel=(1, 1), bandwidth=1.0) for d in (8, 256))
    assert calls(low, 0, 60) == calls(wide, 0, 60)


def test_a_link_is_made_in_a_few_calls():
    torus = Torus(dimensions=(32, 32, 32), bandwidth=1.0)
    short, long = (calls(torus, 0, host, Network.way) for host in (15, 15 + 15 * 32 + 15 * 1024))
    assert long - short <= 30 * 6  # of 30 links more


# ---------------------------------------------------------------------- specs


def test_a_platform_with_a_topology_as_plain_values_and_as_toml():
    network = NetworkSpec(topology="torus:2,2 bandwidth=1GBps latency=10us", model="simgrid")
    spec = GridSpec(sites=[SiteSpec(name=f"n{i}", cores=4) for i in range(4)], network=network)
    assert from_dict(json.loads(json.dumps(to_dict(spec)))) == spec
    assert 'topology" = "torus:2,2 bandwidth=1000000000.0 latency=1e-05"' in to_toml(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torus:0,4 bandwidth=1", "topology, dimensions: must be a whole number >= 1, got 0"),
        ("torus:4,x bandwidth=1", "topology, dimensions: must be a whole number >= 1, got 'x'"),
        ("torus:4,4", "topology, bandwidth: missing, such as bandwidth=1GBps"),
        ("torus:4,4 bandwidth=0", "topology, bandwidth: must be > 0, got '0'"),
        ("torus:4 bandwith=3", "topology: unknown option 'bandwith'; did you mean 'bandwidth'?"),
        ("torus:4 bandwidth=1 wrap=no", "topology, wrap: must be true or false, got 'no'"),
        ("torus:4 bandwidth=1 sharing=both", "topology, sharing: must be 'splitduplex', 'shared' or 'fatpipe'"),
        ("torux:4", "topology: unknown topology 'torux'; did you mean 'torus'? Known topologies: torus,"),
        ("torus:2,2 bandwidth=1 names=a,b,c", "topology, names: must be 4 names, got 3"),
        ("torus:2,2 bandwidth=1 names=a,b,a,c", "topology, names: must be different names, got 'a' twice"),
        ("dragonfly:3;4 bandwidth=1", "topology: must be dragonfly:groups,blue;chassis,black;routers,green;nodes"),
        ("dragonfly:9;2;4;2 bandwidth=1", "topology, groups: must be <= the 8 routers of a group"),
        ("fat-tree:2;4;1,1;1,1 bandwidth=1", "topology, down: must have a number for each of 2 levels, got (4,)"),
        ("tree:4,4 bandwidth=1 width=1,2,3", "topology, width: must have a number for each of 2 levels"),
        ("valiant:1 star:4 bandwidth=1", "topology: must be valiant:SEED and a torus or a dragonfly"),
    ],
)
def test_wrong_topologies(text, message):
    with pytest.raises(InputError, match="^" + re.escape(message)):
        NetworkSpec(topology=text)


def test_a_topology_is_instead_of_links_and_a_grid_has_one_route_for_each_pair():
    with pytest.raises(InputError, match="links: must be empty beside a topology"):
        NetworkSpec(links=[LinkSpec(name="a", bandwidth=1)], topology="star:4 bandwidth=1")
    network = NetworkSpec(topology="valiant:3 torus:2,2 bandwidth=1GBps")
    with pytest.raises(InputError, match=r"network.topology: must have one route for each pair of sites"):
        GridSpec(sites=[SiteSpec(name="n0", cores=4)], network=network)
