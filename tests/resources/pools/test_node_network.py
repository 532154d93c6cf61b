"""Nodes at their places in a network: hops and links against the routes, one by one, and the specs that say them."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, simulate, start
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec, ReservationSpec, Torus, read_toml, write_toml
from simmodel.platform.cluster import OutageSpec
from simmodel.platform.kinds import to_dict
from simmodel.platform.toml import from_dict
from simmodel.platform.topology import numbers_of_hosts, read_topology
from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.snapshots.snapshot import Snapshot
from simmodel.work.elastic import Elastic
from simmodel.work.traffic import Traffic
from tests.helpers.examples import up_to

TOPOLOGIES = [
    "torus:5,4,3",
    "torus:2,2,2",
    "torus:7",
    "torus:5,4 wrap=false",
    "torus:3,1,2 sharing=shared",
    "fat-tree:2;4,3;1,2;1,3",
    "fat-tree:3;2,3,2;1,2,2;1,2,2",
    "dragonfly:3,4;4,3;5,1;2",
    "dragonfly:3;2;3;2 continuous=true sharing=fatpipe",
    "star:7",
    "star:7 backbone=1GBps",
    "tree:4,4 width=1,4",
    "valiant:3 torus:4,4",
]
DRAGONFLY = "dragonfly:3;2;2;2 bandwidth=1GBps"
XML = """<platform version="4.1"><zone id="world" routing="Full">
<cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="125MBps" lat="50us" topology="TORUS"
 topo_parameters="4,2"/></zone></platform>"""


def made(text):
    return read_topology(f"{text} bandwidth=1GBps")


@pytest.mark.few(5)
@pytest.mark.parametrize("text", TOPOLOGIES)
def test_hops_and_links_are_those_of_each_route(text):
    topology = made(text)
    network = NodeNetwork(topology)
    regular = network.regular  # of Valiant: without its detours
    nodes = np.arange(len(network))
    routes = {pair: list(regular.route(*pair)) for pair in permutations(nodes.tolist(), 2)}
    hops, links = network.hops(nodes[:, None], nodes), regular.crossed(nodes[:, None], nodes)
    assert hops.diagonal().tolist() == [0] * len(nodes)
    for (a, b), route in routes.items():
        assert hops[a, b] == len(route)
        assert [regular.link_name(link) for link in links[:, a, b].tolist() if link >= 0] == route
    assert (network.all_hops() == hops).all()
    rng = np.random.default_rng(5)
    for count in range(1, min(len(nodes), 12) + 1):
        some = rng.choice(nodes, count, replace=False)
        pairs = list(permutations(some.tolist(), 2))
        assert {network.link_name(link) for link in network.links(some).tolist()} == {
            name for pair in pairs for name in routes[pair]
        }
        mean = sum(len(routes[pair]) for pair in pairs) / len(pairs) if pairs else 0.0
        assert network.mean_hops(some) == pytest.approx(mean, rel=1e-14)


@settings(max_examples=up_to(60), deadline=None)
@given(st.data())
def test_hops_of_drawn_topologies(data):
    small = st.integers(1, 4)
    sizes = data.draw(st.lists(small, min_size=1, max_size=3))
    groups, chassis, routers, nodes = (data.draw(small) for _ in range(4))
    texts = [
        f"torus:{','.join(map(str, sizes))} wrap={data.draw(st.sampled_from(['true', 'false']))}",
        f"dragonfly:{min(groups, chassis * routers)};{chassis};{routers};{nodes}",
        f"fat-tree:{len(sizes)};{','.join(map(str, sizes))};{','.join('1' + '2' * (len(sizes) - 1))}"
        f";{','.join('2' * len(sizes))}",
    ]
    topology = made(data.draw(st.sampled_from(texts)))
    number = st.integers(0, len(topology.hosts) - 1)
    a, b = data.draw(number), data.draw(number)
    route = topology.route(a, b)
    assert topology.hops(a, b) == len(route)
    assert [topology.link_name(link) for link in topology.crossed(a, b).tolist() if link >= 0] == list(route)


def test_a_topology_of_ones_own_is_walked():
    class Hypercube:
        hosts = tuple(f"n{number}" for number in range(16))

        def route(self, source, destination, /):
            names, here = [], source
            for bit in (1, 2, 4, 8):
                if (here ^ destination) & bit:
                    names.append(f"{here}-{here ^ bit}")
                    here ^= bit
            return names

        def link(self, name, /):
            raise AssertionError("no link is needed")

    part = PartitionSpec(nodes=[NodeSpec(count=16)], network=Hypercube(), placement="fewest-hops")
    network = NodeNetwork.of(part.network, part.node_names)
    nodes = np.arange(16)
    expected = [[(a ^ b).bit_count() for b in range(16)] for a in range(16)]
    assert network.hops(nodes[:, None], nodes).tolist() == expected
    assert network.all_hops().tolist() == expected
    assert network.shared([0, 1], [1, 0, 2]) == ("0-1", "1-0")
    env = Environment()
    cluster = Cluster(env, ClusterSpec(partitions=[part]), "fcfs")
    cluster.submit(Job(nodes=8, run=1))
    env.run()
    cube = cluster.result().runs
    assert cube["nodes"][0] == tuple(range(8))
    assert cube["hops"][0] == pytest.approx(12 / 7)
    with pytest.raises(InputError, match=r"network: only built-in topologies can be written, got <.*Hypercube"):
        to_dict(ClusterSpec(partitions=[part]))


def test_nodes_are_the_hosts_of_their_names_or_else_of_their_positions():
    ring = Torus(dimensions=(4,), bandwidth=1, names=["a", "b", "c", "d"])
    assert numbers_of_hosts(ring, ["c", "a"]) == [2, 0]
    assert numbers_of_hosts(ring, ["n1", "n2", "n3", "n4"]) == [0, 1, 2, 3]
    part = PartitionSpec(nodes=[NodeSpec(names="d,a,c")], network=ring)
    network = NodeNetwork.of(part.network, part.node_names)
    assert network.hops([0, 0, 1], [1, 2, 2]).tolist() == [1, 1, 2]
    assert network.route(1, 0) == ("3-0:down",)


@pytest.mark.parametrize(
    ("network", "nodes", "message"),
    [
        (DRAGONFLY, NodeSpec(count=23), r"network: must have a host for each of 23 nodes, got 24$"),
        (DRAGONFLY, NodeSpec(name="n", count=23), r"network: must have a host for each of 23 nodes, got 24$"),
        (
            "star:4 bandwidth=1 names=a,b,c,d",
            NodeSpec(names="a,b,x"),
            "network: must have the node 'x' among its hosts",
        ),
        ("ring:4 bandwidth=1", NodeSpec(count=4), "network: unknown topology 'ring'; known topologies: torus"),
        ("torus:2,2", NodeSpec(count=4), "network, bandwidth: missing, such as bandwidth=1GBps"),
        ("torus:2,x bandwidth=1", NodeSpec(count=4), "network, dimensions: must be a whole number >= 1, got 'x'"),
        ("nowhere.xml", NodeSpec(count=4), "network: nowhere.xml: no such file"),
    ],
)
def test_networks_that_do_not_fit_are_refused(network, nodes, message):
    with pytest.raises(InputError, match=message):
        PartitionSpec(nodes=[nodes], network=network)


def test_counted_processors_have_no_network():
    with pytest.raises(InputError, match="network: must be that of identified nodes: batch has none"):
        PartitionSpec(processors=4, network="star:4 bandwidth=1")


def test_platform_files_have_the_network(tmp_path):
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=24)], network=DRAGONFLY)])
    write_toml(spec, tmp_path / "mine.toml")
    assert read_toml(tmp_path / "mine.toml") == spec
    assert from_dict(json.loads(json.dumps(to_dict(spec)))) == spec
    text = (tmp_path / "mine.toml").read_text().replace("count = 24", "count = 25")
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError, match=r"mine.toml, partitions\[0\].network: must have a host for each of 25 nodes"):
        read_toml(tmp_path / "mine.toml")


def test_the_xml_of_simgrid_is_found_beside_the_file_that_names_it(tmp_path):
    (tmp_path / "net.xml").write_text(XML)
    (tmp_path / "mine.toml").write_text(
        'kind = "cluster"\n[[partitions]]\nnetwork = "net.xml"\n[[partitions.nodes]]\nnames = "n[0-7]"\n'
    )
    spec = read_toml(tmp_path / "mine.toml")
    network = NodeNetwork.of(spec.partitions[0].network, spec.partitions[0].node_names)
    assert network.torus is not None
    assert network.hops([0, 0], [3, 6]).tolist() == [1, 3]
    assert from_dict(to_dict(spec)) == spec
    (tmp_path / "net.xml").write_text(XML.replace("125MBps", "fast"))
    with pytest.raises(InputError, match=r"partitions\[0\].network: .*net.xml, line 2, bw of c.*'fast'"):
        read_toml(tmp_path / "mine.toml")


def test_a_job_wider_than_the_network_is_refused():
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=24, cores=2)], network=DRAGONFLY)])
    result = simulate(spec, [Job(nodes=25, run=1), Job(nodes=24, run=1)], "easy")
    assert result.jobs["status"].tolist() == ["rejected", "completed"]
    assert result.jobs["reason"][0] == "25 nodes with 1 core each requested, batch has 24 such nodes"


def test_reserved_nodes_keep_their_places():
    part = PartitionSpec(nodes=[NodeSpec(count=8)], network="torus:8 bandwidth=1GBps", placement="hilbert")
    reserved = ReservationSpec(name="r", start=0, end=50, nodes=[0, 3, 4, 7])
    jobs = [Job(nodes=2, run=10, requested=10, partition="r"), Job(nodes=4, run=10, requested=10)]
    result = simulate(ClusterSpec(partitions=[part], reservations=[reserved]), jobs, "fcfs")
    runs = {
        place: (nodes, hops)
        for place, nodes, hops in zip(*(result.runs[k] for k in ("place", "nodes", "hops")), strict=True)
    }
    assert runs["r"] == ((1, 2), 1.0)  # of the reservation: nodes 3 and 4
    assert runs["batch"][0] == (1, 2, 5, 6)
    # Their links are those of one network: the four pass 3 and 4 on the way from 2 to 5, and the other way round.
    assert result.runs["shared_links"].tolist() == [2.0, 2.0]


def test_the_record_has_hops_and_shared_links_by_hand():
    part = PartitionSpec(nodes=[NodeSpec(count=8, cores=2)], network="torus:8 bandwidth=1GBps")
    jobs = [
        Job(id=1, nodes=3, cores_per_node=1, run=10),  # 0, 1, 2
        Job(id=2, nodes=3, cores_per_node=1, run=4),  # the same
        Job(id=3, submit=5, nodes=2, cores_per_node=2, run=9),  # 3, 4
        Job(id=4, submit=10, nodes=1, run=9),
    ]
    result = simulate(ClusterSpec(partitions=[part]), jobs, "fcfs")
    runs = {
        job: row
        for job, *row in zip(*(result.runs[name].tolist() for name in ("job", "hops", "shared_links")), strict=True)
    }
    assert runs == {1: [pytest.approx(4 / 3), 4.0], 2: [pytest.approx(4 / 3), 4.0], 3: [1.0, 0.0], 4: [0.0, 0.0]}
    shared = result.sharers(1)
    assert shared["job"].tolist() == [2]
    assert (shared["start"][0], shared["end"][0]) == (0.0, 4.0)
    assert shared["links"][0] == ("0-1:down", "0-1:up", "1-2:down", "1-2:up")
    assert len(result.sharers(3)) == 0


def test_shared_links_of_random_schedules_are_those_counted_one_by_one():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        part = PartitionSpec(nodes=[NodeSpec(count=24)], network=DRAGONFLY, placement="random-groups")
        jobs = [Job(submit=int(i), nodes=int(rng.integers(1, 9)), run=int(rng.integers(0, 12))) for i in range(40)]
        result = simulate(ClusterSpec(partitions=[part]), jobs, "easy", seed=seed)
        network = result.networks["batch"]
        rows = list(zip(*(result.runs[name].tolist() for name in ("start", "end")), result.runs["nodes"], strict=True))
        links = [{name for pair in permutations(nodes, 2) for name in network.route(*pair)} for _, _, nodes in rows]
        for i, (begin, end, _) in enumerate(rows):
            others = [
                links[j]
                for j, (b, e, _) in enumerate(rows)
                if j != i and b < end and begin < e and b < e and begin < end
            ]
            assert result.runs["shared_links"][i] == len(links[i] & set().union(*others))


def schedule(seed):
    """Return jobs of several kinds on nodes in a network: elastic, stopped by a failure, with traffic."""
    rng = np.random.default_rng(seed)
    part = PartitionSpec(nodes=[NodeSpec(count=24)], network=DRAGONFLY, placement="random-groups")
    failure = OutageSpec(at=40, until=60, nodes=(0, 1, 2, 3, 12), kind="failure")
    jobs = []
    for number in range(60):
        fields = {"id": f"j{number}", "submit": int(rng.integers(0, 150)), "requested": 300}
        kind = rng.integers(0, 3)
        if kind == 0:
            fields |= {"nodes": int(rng.integers(1, 9)), "run": int(rng.integers(0, 30))}
        elif kind == 1:
            fields |= {"elastic": Elastic(1, int(rng.integers(1, 5)), 9), "run": int(rng.integers(1, 60))}
        else:
            traffic = Traffic("ring", bytes=float(rng.integers(1, 30)) * 1e9)
            fields |= {"nodes": int(rng.integers(1, 9)), "traffic": traffic, "keeps_work": bool(rng.integers(0, 2))}
        jobs.append(Job(**fields))
    return ClusterSpec(partitions=[part], outages=[failure]), sorted(jobs, key=lambda job: job.submit)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cut", [[], [20, 45, 50, 90, 130]])
def test_a_streamed_record_has_the_same_columns(seed, cut, tmp_path):
    spec, jobs = schedule(seed)
    whole = simulate(spec, jobs, "equal-shares", seed=seed).runs
    simulation = start(spec, jobs, "equal-shares", seed=seed, stream=tmp_path / "run.sqlite")
    for instant in cut:
        simulation.run(until=instant)
        simulation.system.core.recorder.drain()
    runs = simulation.run().result().load().runs
    assert (whole["status"] == "resized").any()
    assert (whole["attempt"] > 1).any()
    assert whole["shared_links"].max() > 9
    order = np.lexsort((whole["start"], whole["job"])), np.lexsort((runs["start"], runs["job"]))
    for name in ("job", "start", "end", "hops", "shared_links", "alone", "stretch"):
        one, other = whole[name][order[0]], runs[name][order[1]]
        assert (
            one.tolist() == pytest.approx(other.tolist(), nan_ok=True)
            if one.dtype.kind == "f"
            else (one == other).all()
        )
    for name in ("slowed_by", "slowed_on"):
        assert [str(each or "") for each in runs[name][order[1]]] == whole[name][order[0]].tolist()


def test_nodes_without_a_network_have_no_such_columns():
    result = simulate(ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4)])]), [Job(nodes=2, run=1)], "fcfs")
    assert "hops" not in result.runs
    assert len(result.sharers(0)) == 0


@pytest.mark.parametrize("placement", ["random-groups", "hybrid(3)", "fewest-hops"])
def test_a_run_continues_from_its_snapshot_on_the_same_nodes(placement):
    part = PartitionSpec(nodes=[NodeSpec(count=24, cores=2)], network=DRAGONFLY, placement=placement)
    jobs = [Job(id=i, submit=i, nodes=1 + 5 * i % 9, cores_per_node=1 + i % 2, run=4 + 7 * i % 11) for i in range(30)]
    expected = simulate(ClusterSpec(partitions=[part]), jobs, "easy", seed=3)
    nodes = dict(zip(expected.runs["job"].tolist(), expected.runs["nodes"], strict=True))
    for at in (3.5, 12.0, 31.0):
        cut = start(ClusterSpec(partitions=[part]), jobs, "easy", seed=3)
        cut.run(until=at)
        rest = simulate(Snapshot.from_json(cut.snapshot().to_json()))
        for job, held, hops in zip(rest.runs["job"].tolist(), rest.runs["nodes"], rest.runs["hops"], strict=True):
            assert held == nodes[job]
            assert hops == expected.networks["batch"].mean_hops(held)
        assert set(rest.jobs["end"].tolist()) <= set(expected.jobs["end"].tolist())
