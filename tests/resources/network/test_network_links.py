"""Routes, invalid input, and the cost of transfers elsewhere."""

from itertools import product
from math import inf

import pytest
from hypothesis import given, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec
from simmodel.resources.network.network import Delivery, Network
from simmodel.resources.network.routing import Router
from tests.helpers.network_flows import link

# ---------------------------------------------------------------------- routes


def test_routes_come_from_the_table_in_both_directions():
    routes = [
        RouteSpec(source="x", destination="y", links=["a", "b"], symmetrical=True),
        RouteSpec(source="x", destination="z", links=["a"]),
    ]
    network = Network(Environment(), NetworkSpec(links=[link("a"), link("b")], routes=routes))
    assert network.route("x", "y") == ("a", "b")
    assert network.route("y", "x") == ("b", "a")
    assert network.route("y", "y") == ()
    with pytest.raises(InputError, match="no route from z to x in the routing table"):
        network.route("z", "x")
    with pytest.raises(InputError, match="unknown place 'w'"):
        network.transfer(1, source="w", destination="x")


def test_inside_one_place_a_transfer_costs_no_time():
    env = Environment()
    network = Network(env, [link("a", between=("x", "y"))])
    assert network.transfer(1e9, source="x", destination="x").value == Delivery(0, 0, 1e9)


def test_shortest_by_latency_then_by_links_then_by_their_order():
    links = [
        link("slow", latency=5, between=("x", "z")),
        link("xy", latency=1, between=("x", "y")),
        link("late", latency=2, between=("y", "z")),
        link("early", latency=2, between=("y", "z")),
        link("direct", latency=3, between=("x", "z")),
        link("away", latency=1, between=("z", "w"), one_way=True),
        link("lonely", between=("p", "q")),
    ]
    network = Network(Environment(), links)
    assert network.route("x", "z") == ("direct",)
    assert network.route("z", "y") == ("late",)
    assert network.route("x", "w") == ("direct", "away")
    with pytest.raises(InputError, match="no route from w to x"):
        network.route("w", "x")
    with pytest.raises(InputError, match="no route from x to p"):
        network.transfer(1, source="x", destination="p")
    with pytest.raises(InputError, match="unknown place 'nowhere'"):
        network.route("x", "nowhere")


def test_without_latency_the_way_with_fewest_links():
    links = [link(f"{a}{b}", between=(a, b)) for a, b in ["ab", "bc", "cd", "de", "ae"]]
    assert Network(Environment(), links).route("a", "d") == ("ae", "de")


ENDS = st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")).filter(lambda ends: ends[0] != ends[1])


@given(st.lists(st.tuples(ENDS, st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
def test_routes_are_the_least_of_all_paths(drawn):
    links = [
        LinkSpec(name=str(i), bandwidth=1, latency=latency, between=ends, one_way=one_way)
        for i, (ends, latency, one_way) in enumerate(drawn)
    ]
    network = Network(Environment(), links)
    places = sorted({place for link in links for place in link.between})
    for source, destination in product(places, places):
        least = min(paths(links, source, destination), default=None)
        if least is None:
            with pytest.raises(InputError, match=f"no route from {source} to {destination}"):
                network.route(source, destination)
        else:
            assert network.route(source, destination) == tuple(map(str, least[2]))


def paths(links, here, destination, seen=()):
    """Return latency, number of links and links of all paths that meet no place twice."""
    if here == destination:
        return [(0, 0, ())]
    found = []
    for i, each in enumerate(links):
        for start, end in (each.between,) if each.one_way else (each.between, each.between[::-1]):
            if start == here and end not in (*seen, here):
                further = paths(links, end, destination, (*seen, here))
                found += [(each.latency + latency, 1 + count, (i, *rest)) for latency, count, rest in further]
    return found


def test_a_source_is_searched_once(monkeypatch):
    links = [link(f"{i}", 1, 1, between=(f"n{i}", f"n{i + 1}")) for i in range(20)]
    network, searched, tree = Network(Environment(), links), [], Router._tree
    monkeypatch.setattr(Router, "_tree", lambda router, source: searched.append(source) or tree(router, source))
    for i, j in product(range(21), range(21)):
        assert len(network.route(f"n{i}", f"n{j}")) == abs(i - j)
    assert len(searched) == 21


def test_routes_over_a_graph_of_ones_own():
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edge(1, 2, link="a")
    graph.add_edge(2, 3, link="b")
    network = Network(Environment(), [link("a"), link("b")], graph=graph)
    assert network.route(1, 3) == ("a", "b")
    with pytest.raises(InputError, match="no route from 3 to 1"):
        network.route(3, 1)
    graph.add_edge(3, 4, link="c")
    with pytest.raises(InputError, match="edge 3-4: 'link' must be the name of a link of the network, got 'c'"):
        Network(Environment(), [link("a"), link("b")], graph=graph)


def test_answers_go_back_by_the_route_of_the_other_direction():
    env = Environment()
    routes = {("x", "y"): ["a"], ("y", "x"): ["b"]}
    network = Network(env, [link("a", 105), link("b", 105)], routes=routes, crosstraffic=True)
    forth, back = (
        network.transfer(1000, source="x", destination="y"),
        network.transfer(1000, source="y", destination="x"),
    )
    assert (forth.rate, back.rate) == (pytest.approx(100, rel=1e-12),) * 2
    back.cancel()
    assert forth.rate == 105


# ---------------------------------------------------------------------- wrong input

WRONG_LINKS = {
    "link a, bandwidth: must be > 0, got 0": {"bandwidth": 0},
    "link a, bandwidth: must be a finite quantity in B/s >= 0, got -1": {"bandwidth": -1},
    "link a, bandwidth: must be a finite quantity in B/s >= 0, got nan": {"bandwidth": float("nan")},
    "link a, bandwidth: must be a quantity in B/s such as '40Gbps', got 'fast'": {"bandwidth": "fast"},
    "link a, latency: must be a finite quantity in s >= 0, got -0.5": {"latency": -0.5},
    "link a, sharing: must be 'shared' or 'fatpipe', got 'wide'": {"sharing": "wide"},
    "link a, between: must be two places, got ('x',)": {"between": ["x"]},
    "link a, profile: must have ascending times, got [3.0, 3.0]": {"profile": [(3, 1), (3, 2)]},
    "link a, repeat: must be > the last time of the profile, got 3.0": {"profile": [(3, 1)], "repeat": 3},
    "link a, repeat: must be > the last time of the profile, got 9.0": {"repeat": 9},
    "name: must be the name of a link, got ''": {"name": ""},
}
WRONG_NETWORKS = {
    "links: duplicate link 'a'": {"links": [link("a"), link("a")]},
    "link a, reverse: unknown link 'z'": {"links": [link("a", reverse="z")]},
    "route x to y: unknown link 'b'": {"routes": {("x", "y"): ["b"]}},
    "route x to y: must have at least one link": {"routes": {("x", "y"): []}},
    "route x to y: duplicate link 'a'": {"routes": {("x", "y"): ["a", "a"]}},
    "links: must be a list of links, got 'a'": {"routes": {("x", "y"): "a"}},
    "routes: duplicate route from 'x' to 'y'": {
        "routes": [
            RouteSpec(source="x", destination="y", links=["a"]),
            RouteSpec(source="y", destination="x", links=["a"], symmetrical=True),
        ]
    },
    "unknown model 'tcp'; known models: maxmin, cm02, lv08, simgrid, simgrid-cm02": {"model": "tcp"},
}
WRONG_TRANSFERS = {
    "size of a transfer: must be a finite quantity in B >= 0, got -1": {"size": -1},
    "size of a transfer: must be a finite quantity in B >= 0, got nan": {"size": float("nan")},
    "size of a transfer: must be a quantity in B such as '64GB', got 'much'": {"size": "much"},
    "route of a transfer: unknown link 'z'": {"route": ["z"]},
    "route of a transfer: must have at least one link": {"route": []},
    "route of a transfer: duplicate link 'a'": {"route": ["a", "b", "a"]},
    "route of a transfer: must be a list of links, got 'ab'": {"route": "ab"},
    "route of a transfer: missing: needs a route, or source and destination, got None and None": {"route": None},
    "rate_cap of a transfer: must be > 0, got 0": {"rate_cap": 0},
    "rate_cap of a transfer: must be a finite quantity in B/s >= 0, got nan": {"rate_cap": float("nan")},
    "weight of a transfer: must be finite and > 0, got 0": {"weight": 0},
    "weight of a transfer: must be finite and > 0, got nan": {"weight": float("nan")},
    "weight of a transfer: must be finite and > 0, got inf": {"weight": inf},
}


@pytest.mark.parametrize("sentence", WRONG_LINKS)
def test_wrong_links(sentence):
    with pytest.raises(InputError) as caught:
        LinkSpec(**{"name": "a", "bandwidth": 1, **WRONG_LINKS[sentence]})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("sentence", WRONG_NETWORKS)
def test_wrong_networks(sentence):
    with pytest.raises(InputError) as caught:
        Network(Environment(), **{"links": [link("a")], **WRONG_NETWORKS[sentence]})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("sentence", WRONG_TRANSFERS)
def test_wrong_transfers(sentence):
    network = Network(Environment(), [link("a"), link("b")])
    network.transfer(0, route=["a", "b"])
    with pytest.raises(InputError) as caught:
        network.transfer(**{"size": 1, "route": ["a"], **WRONG_TRANSFERS[sentence]})
    assert str(caught.value) == sentence
    assert not list(network.under_way())


def test_wrong_changes_of_links_are_refused():
    network = Network(Environment(), [link("a")])
    stranger = Network(Environment(), [link("a")]).links["a"]
    for change in (lambda: network.fail("z"), lambda: network.restore(stranger), lambda: network.set_bandwidth("z", 1)):
        with pytest.raises(InputError, match=r"unknown link 'z'; known links: a|must be a link of this network"):
            change()
    for value in (0, -1, float("nan"), "wide"):
        with pytest.raises(InputError, match=r"link a.*: must be .*, got"):
            network.set_bandwidth("a", value)


# ---------------------------------------------------------------------- cost


@pytest.mark.parametrize("latency", [0, 1])
def test_one_wake_up_is_pending_however_many_transfers_there_are(latency):
    env = Environment()
    network = Network(env, [link("a", latency=latency), link("b", latency=latency)])
    for number in range(1000):
        network.transfer(1e6 + number, route=["a"])
        network.transfer(1e6 + number, route=["b"])
    pending = []

    def look(env):
        for _ in range(3):
            yield env.timeout(2)
            pending.append(sum(entry[3].callbacks is not None for entry in env._queue))

    env.process(look(env))
    env.run(until=10)
    assert pending == [2, 2, 2]  # one of them ends the run


def test_a_transfer_elsewhere_touches_nothing_here():
    env = Environment()
    network = Network(env, [link("a"), link("b")])
    here = network.transfer(1e6, route=["a"])
    env.run(until=1)
    since = here.bundle.since
    for _ in range(5):
        network.transfer(10, route=["b"])
        env.run(until=env.now + 1)
    assert here.bundle.since == since


def test_the_alone_time_is_what_it_takes_alone():
    for model in ("maxmin", "cm02", "lv08", "simgrid", "simgrid-cm02"):
        env = Environment()
        links = [link("a", 1e6, 0.3), link("b", 3e6, 0.1), link("f", 2e6, sharing="fatpipe")]
        transfer = Network(env, links, model=model, crosstraffic=True).transfer(
            1e8, route=["a", "b", "f"], rate_cap=9e5
        )
        alone = transfer.alone
        env.run()
        assert transfer.end == pytest.approx(alone, rel=1e-12)
