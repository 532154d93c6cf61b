"""The network: SimGrid's reference cases, cases worked by hand, and what can happen to a transfer."""

from math import inf

import pytest
import simpy
from reference import sharing_cases

from simmodel.environment import Environment
from simmodel.errors import InputError, Stalled
from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec, SharingModel, duplex
from simmodel.resources.flow import Cancelled
from simmodel.resources.network import Delivery, Network

ORDERS = {
    "as given": lambda flows: flows,
    "reversed": lambda flows: flows[::-1],
    "by id": lambda flows: sorted(flows, key=lambda flow: str(flow["id"])[::-1]),
}


def link(name, bandwidth=100.0, latency=0.0, **options):
    return LinkSpec(name=name, bandwidth=bandwidth, latency=latency, **options)


def run(network, flows, until=None):
    """Start each flow (id, start, size, route, options) at its time; return the ends by id."""
    env = network.env
    ends = {}

    def go(flow):
        options = dict(flow)
        name = options.pop("id")
        yield env.timeout(options.pop("start"))
        ends[name] = (yield network.transfer(options.pop("size"), **options)).end

    for flow in flows:
        env.process(go(flow))
    env.run(until)
    return ends


def flow(name, size, route, start=0.0, **options):
    return {"id": name, "start": start, "size": size, "route": list(route), **options}


# ---------------------------------------------------------------------- against SimGrid


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", sharing_cases("network"))
def test_agrees_with_simgrid(case, order):
    model = {"plain": "maxmin", "LV08": "lv08"}.get(case["fairness"], "cm02")
    links = [LinkSpec(**{**given, "sharing": given["sharing"].lower()}) for given in case["links"]]
    ends = run(Network(Environment(), links, model=model), ORDERS[order](case["flows"]))
    assert ends == pytest.approx(case["expected"], rel=1e-12)


# ---------------------------------------------------------------------- by hand

HAND = {
    # Links, flows, options of the network, ends.
    "alone with latency": ([link("a", 100, 1), link("b", 50, 2)], [flow("x", 500, "ab")], {}, {"x": 13}),
    "one joins midway": ([link("a")], [flow("x", 1000, "a"), flow("y", 500, "a", 5)], {}, {"x": 15, "y": 15}),
    "idle between": ([link("a")], [flow("x", 100, "a"), flow("y", 100, "a", 7)], {}, {"x": 1, "y": 8}),
    # long 15 of a, short 15, other 85; then long has b's 100 but a's 30 alone.
    "parking lot": (
        [link("a", 30), link("b", 100)],
        [flow("long", 150, "ab"), flow("short", 75, "a"), flow("other", 425, "b")],
        {},
        {"short": 5, "other": 5, "long": 7.5},
    ),
    "fatpipe": ([link("a", 10, sharing="fatpipe")], [flow("x", 100, "a"), flow("y", 50, "a")], {}, {"x": 10, "y": 5}),
    "fatpipe before a shared link": (
        [link("a", 40, sharing="fatpipe"), link("b", 100)],
        [flow("x", 400, "ab"), flow("y", 600, "b")],
        {},
        {"x": 10, "y": 10},
    ),
    # 20 and 80; from 5 on y is done.
    "cap": ([link("a")], [flow("x", 200, "a", rate_cap=20), flow("y", 400, "a")], {}, {"x": 10, "y": 5}),
    # 25 and 75 until 4, then x has 900 left at 100.
    "weights": ([link("a")], [flow("x", 1000, "a"), flow("y", 300, "a", weight=3)], {}, {"x": 13, "y": 4}),
    "cap and weight": (
        [link("a")],
        [flow("x", 300, "a", weight=3, rate_cap=30), flow("y", 700, "a")],
        {},
        {"x": 10, "y": 10},
    ),
    # cm02: latencies 1 and 3 s, so 75 and 25 from 3 on; x moves alone from 1 to 3.
    "cm02": (
        [link("a", 1e9, 1), link("b", 1e9, 3), link("c", 100)],
        [flow("x", 500, "ac"), flow("y", 400, "bc")],
        {"model": "cm02"},
        {"x": 7, "y": 10},
    ),
    # lv08 alone: 13.01 * latency + size / (0.97 * min(bandwidth, 4194304 / (2 * latency))).
    "lv08 by bandwidth": ([link("a", 1e6, 0.01)], [flow("x", 1e6, "a")], {"model": "lv08"}, {"x": 0.1301 + 1 / 0.97}),
    "lv08 by window": (
        [link("a", 1e9, 0.1)],
        [flow("x", 1e9, "a")],
        {"model": "lv08"},
        {"x": 1.301 + 1e9 / (0.97 * 4194304 / 0.2)},
    ),
    "cross traffic on the same link": ([link("a", 105)], [flow("x", 1000, "a")], {"crosstraffic": True}, {"x": 10}),
    "cross traffic in duplex": (
        duplex("a", bandwidth=105),
        [flow("x", 1000, ["a:up"]), flow("y", 1000, ["a:down"])],
        {"crosstraffic": True},
        {"x": 10, "y": 10},
    ),
    "duplex": (
        duplex("a", bandwidth=100),
        [flow("x", 1000, ["a:up"]), flow("y", 1000, ["a:down"])],
        {},
        {"x": 10, "y": 10},
    ),
    "nothing to move": ([link("a", 1, 2)], [flow("x", 0, "a", 1)], {}, {"x": 3}),
    # Bandwidth 100 until 4, 50 until 10, 100 again: 400, 300, 300 bytes.
    "profile": ([link("a", profile=[(4, 50), (10, 100)])], [flow("x", 1000, "a")], {}, {"x": 13}),
    # Up from 0 to 1 and 2 to 3 and so on.
    "profile that repeats": (
        [link("a", profile=[(0, 100), (1, 0)], repeat=2)],
        [flow("x", 250, "a"), flow("y", 100, "a", 7)],
        {},
        {"x": 4.5, "y": 9},
    ),
    "units": ([link("a", "1Gbps", "10ms")], [flow("x", "1GB", "a")], {}, {"x": 8.01}),
    "a small one on a clock that ran for long": (
        [link("a", 1.0)],
        [flow("x", 1e15, "a"), flow("y", 1e-3, "a", 2**49)],
        {},
        {"x": 1e15 + 1e-3, "y": 2**49 + 2e-3},
    ),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("case", HAND)
def test_hand_cases(case, order):
    links, flows, options, ends = HAND[case]
    env = Environment()
    assert run(Network(env, links[::order], **options), flows[::order]) == pytest.approx(ends, rel=1e-12)
    assert env.now == max(ends.values()) or env.now == pytest.approx(max(ends.values()), rel=1e-12)


def test_bytes_of_a_small_transfer_keep_their_digits_on_a_clock_that_ran_for_long():
    """After 1e15 bytes of service a plain sum has steps of 0.125 bytes."""
    env = Environment()
    network = Network(env, [link("a", 1e15)])
    network.transfer(1e18, route=["a"])
    env.run(until=1)
    small = network.transfer(1.0, route=["a"])
    env.run(until=1 + 2**-50)
    assert small.bytes_done == pytest.approx(2**-50 * 5e14, rel=1e-9)


def test_many_equal_transfers_end_together_at_the_same_float():
    env = Environment()
    network = Network(env, [link("a", 3.0)])
    transfers = [network.transfer(0.7, route=["a"]) for _ in range(101)]
    env.run()
    assert len({transfer.end for transfer in transfers}) == 1
    assert env.now == pytest.approx(0.7 * 101 / 3, rel=1e-14)


# ---------------------------------------------------------------------- an event like others


def test_is_an_event_with_a_value_and_works_in_conditions():
    env = Environment()
    network = Network(env, [link("a")])
    seen = []

    def watch(env):
        first = network.transfer(100, route=["a"])
        second = network.transfer(300, route=["a"])
        yield first | second
        seen.append((env.now, first.triggered, second.triggered, second.bytes_done))
        yield simpy.AllOf(env, [first, second])
        seen.append((env.now, first.value, second.value))
        yield second & env.timeout(1)
        seen.append(env.now)
        assert (yield second) == second.value

    env.process(watch(env))
    env.run()
    assert seen == [(2, True, False, 100), (4, Delivery(0, 2, 100), Delivery(0, 4, 300)), 5]


def test_one_that_nobody_waited_for_can_be_waited_for_later():
    env = Environment()
    network = Network(env, [link("a")])
    transfer = network.transfer(100, route=["a"])
    env.run(until=9)
    assert transfer.processed
    assert env.run(transfer) == Delivery(0, 1, 100)


def test_run_until_a_transfer():
    env = Environment()
    network = Network(env, [link("a")])
    late = network.transfer(1000, route=["a"])
    assert env.run(network.transfer(100, route=["a"])).end == 2
    assert late.bytes_done == 100


def test_a_closed_loop_at_one_instant():
    """Each transfer begins when the last one ends, in the same instant."""
    env = Environment()
    network = Network(env, [link("a")])

    def loop(env, size):
        for _ in range(10):
            yield network.transfer(size, route=["a"])
        return env.now

    loops = [env.process(loop(env, 100)), env.process(loop(env, 100))]
    env.run()
    assert [loop.value for loop in loops] == [20, 20]


# ---------------------------------------------------------------------- interrupts


def test_an_interrupt_gives_up_with_the_bytes_known():
    env = Environment()
    network = Network(env, [link("a", 100, 1)])
    seen = []

    def fetch(env):
        transfer = network.transfer(1000, route=["a"])
        try:
            yield transfer
        except simpy.Interrupt:
            seen.append((env.now, transfer.status, transfer.bytes_done, transfer.rate))
            seen.append((transfer.cancel(), transfer.status, transfer.rate, transfer.end))

    other = network.transfer(1000, route=["a"])
    process = env.process(fetch(env))
    env.run(until=5)
    process.interrupt()
    env.run()
    # 50 B/s each from 1 to 5; then the other has 800 left at 100 B/s.
    assert seen == [(5, "moving", 200, 50), (200, "cancelled", 0, 5)]
    assert other.end == 13


def test_an_interrupt_holds_and_resumes():
    env = Environment()
    network = Network(env, [link("a")])

    def fetch(env):
        transfer = network.transfer(1000, route=["a"])
        while True:
            try:
                return (yield transfer)
            except simpy.Interrupt:
                assert transfer.pause() == transfer.bytes_done == 300
                assert transfer.status == "paused"
                yield env.timeout(10)
                assert transfer.bytes_done == 300
                transfer.resume()

    process = env.process(fetch(env))
    env.run(until=3)
    process.interrupt()
    assert env.run(process) == Delivery(0, 20, 1000)


def test_an_interrupt_alone_leaves_it_going():
    env = Environment()
    network = Network(env, [link("a")])
    transfer = network.transfer(1000, route=["a"])

    def wait(env):
        with pytest.raises(simpy.Interrupt):
            yield transfer

    process = env.process(wait(env))
    env.run(until=3)
    process.interrupt()
    env.run()
    assert transfer.end == 10


def test_leaving_a_with_block_gives_up_and_after_its_end_changes_nothing():
    env = Environment()
    network = Network(env, [link("a")])

    def fetch(env):
        with network.transfer(100, route=["a"]) as whole:
            yield whole
        with network.transfer(100, route=["a"]) as part:
            yield env.timeout(0.25)
        return whole.status, whole.bytes_done, part.status, part.bytes_done

    assert env.run(env.process(fetch(env))) == ("done", 100, "cancelled", 25)


def test_pausing_in_the_latency_keeps_what_is_left_of_it():
    env = Environment()
    network = Network(env, [link("a", 100, 4)])
    transfer, other = network.transfer(100, route=["a"]), network.transfer(100, route=["a"])
    env.run(until=1)
    assert transfer.pause() == 0
    assert transfer.pause() == 0
    env.run(until=10)
    assert other.end == 5
    assert transfer.rate == 0
    transfer.resume()
    transfer.resume()
    env.run()
    assert transfer.end == 14


def test_who_waits_for_a_cancelled_one_hears_of_it():
    env = Environment()
    network = Network(env, [link("a", latency=1)])
    transfer = network.transfer(1000, route=["a"])

    def wait(env):
        with pytest.raises(Cancelled, match=r"transfer 1 over a was cancelled at 3 with 200 of 1000 done") as caught:
            yield transfer
        return env.now, caught.value.done, caught.value.size

    process = env.process(wait(env))
    env.run(until=3)
    assert transfer.cancel() == 200
    assert transfer.cancel() == 200
    transfer.pause()
    transfer.resume()
    assert env.run(process) == (3, 200, 1000)
    assert transfer.status == "cancelled"


def test_cancelled_at_the_instant_at_which_it_would_end_or_start_to_move():
    env = Environment()
    network = Network(env, [link("a", 100, 2)])
    ends, moves, waits = (network.transfer(size, route=["a"]) for size in (100, 1000, 1000))
    early = network.transfer(50, route=["a"])

    def act(env):
        yield env.timeout(2)
        waits.cancel()
        yield env.timeout(1.5)
        ends.cancel()

    env.process(act(env))
    env.run()
    # Three share from 2 on: at 3.5 each has 50, so the early one ends and the cancelled one is half done.
    assert (early.status, early.end, ends.bytes_done, waits.bytes_done) == ("done", 3.5, 50, 0)
    assert moves.end == 13


def test_observers_may_cancel_what_ends_or_starts_at_the_same_instant():
    env = Environment()
    network = Network(env, [link("a")])

    class Nervous:
        def transfer_started(self, transfer):
            if transfer.size == 13:
                transfer.cancel()

        def transfer_ended(self, transfer):
            for other in list(network.under_way()):
                other.cancel()

    env.observe(Nervous())
    transfers = [network.transfer(100, route=["a"]) for _ in range(3)]
    env.run()
    assert [transfer.status for transfer in transfers] == ["done", "cancelled", "cancelled"]
    unlucky = network.transfer(13, route=["a"])
    env.run()
    assert (unlucky.status, unlucky.bytes_done, env.now) == ("cancelled", 0, 3)
    assert not network.links["a"].users


# ---------------------------------------------------------------------- links change


def test_bandwidth_changes_and_a_link_fails_and_returns():
    env = Environment()
    network = Network(env, [link("a"), link("b")])
    transfer, other = network.transfer(1000, route=["a", "b"]), network.transfer(350, route=["b"])
    env.run(until=2)
    network.set_bandwidth("a", "25Bps")  # 100 and 100 done; now 25 and 75
    assert (transfer.rate, other.rate) == (25, 75)
    env.run(until=4)
    network.fail("a")  # 150 and 250 done; now 0 and 100
    assert transfer.rate == 0
    env.run(until=10)
    assert (transfer.bytes_done, other.end) == (150, 5)
    network.restore("a")
    network.set_bandwidth(network.links["a"], 850)
    env.run()
    assert transfer.end == 18.5


def test_several_changes_of_one_instant_count_as_one():
    env = Environment()
    network = Network(env, [link("a")])
    transfer = network.transfer(1000, route=["a"])
    env.run(until=5)
    network.fail("a")
    network.set_bandwidth("a", 1)
    network.restore("a")
    network.set_bandwidth("a", 50)
    network.transfer(10, route=["a"]).cancel()
    env.run()
    assert transfer.end == 15


def test_a_fatpipe_changes():
    env = Environment()
    network = Network(env, [link("f", 10, sharing="fatpipe"), link("a", 100)])
    over, only = network.transfer(100, route=["f", "a"]), network.transfer(100, route=["f"])
    full = network.transfer(1000, route=["a"])
    env.run(until=5)
    assert full.rate == 90
    network.set_bandwidth("f", 25)
    assert (over.rate, only.rate, full.rate) == (25, 25, 75)
    env.run(until=6)
    network.fail("f")
    assert (over.rate, only.rate, full.rate) == (0, 0, 100)
    env.run(until=10)
    network.restore("f")
    env.run()
    assert (full.end, over.end, only.end) == (11, 11, 11)


def test_bandwidth_is_part_of_the_weight_in_lv08():
    """Weight 1 / (latency + S / bandwidth): with S = 1 and no latency, in proportion to the own link's bandwidth."""
    model = SharingModel(name="by bandwidth", weight_s=1.0)
    env = Environment()
    network = Network(env, [link("a", 1000), link("b", 1000), link("c", 100)], model=model)
    first, second = (network.transfer(1e4, route=[own, "c"]) for own in "ab")
    env.run(until=1)
    assert (first.rate, second.rate) == (50, 50)
    network.set_bandwidth("a", 200)
    weights = 1 / (1 / 200 + 1 / 100), 1 / (1 / 1000 + 1 / 100)
    assert first.rate == pytest.approx(100 * weights[0] / sum(weights), rel=1e-12)
    assert second.rate == pytest.approx(100 * weights[1] / sum(weights), rel=1e-12)


def test_a_profile_runs_only_while_its_link_is_used():
    """A profile that repeats for ever does not keep the simulation going, and is right when the link is used again."""
    env = Environment()
    network = Network(env, [link("a", 100, profile=[(8, 25), (18, 100)], repeat=24)])
    ends = run(network, [flow("x", 850, "a"), flow("y", 100, "a", 33)])
    assert ends == {"x": 10, "y": 37}
    assert env.now == 37


def test_a_bandwidth_set_by_hand_holds_until_the_next_point_of_the_profile():
    env = Environment()
    network = Network(env, [link("a", 100, profile=[(10, 50)])])
    transfer = network.transfer(1000, route=["a"])
    env.run(until=5)
    network.set_bandwidth("a", 10)
    env.run()
    assert transfer.end == 19


def test_a_period_that_no_float_holds_exactly():
    env = Environment()
    network = Network(env, [link("a", 1, profile=[(0, 1), (0.05, 3)], repeat=0.1)])
    transfer = network.transfer(200, route=["a"])
    env.run()
    assert transfer.end == pytest.approx(100, rel=1e-9)


def test_events_that_run_out_under_a_dead_link_say_who_is_stuck():
    env = Environment()
    network = Network(env, [link("a"), link("b")], routes={("x", "y"): ["a", "b"]})
    network.transfer(1000, source="x", destination="y")
    env.run(until=2)
    network.fail("b")
    with pytest.raises(
        Stalled, match=r"transfer 1 from x to y over a, b, 200 of 1000 bytes done, moving since 0; down: b"
    ):
        env.run()


# ---------------------------------------------------------------------- routes


def test_routes_from_a_table():
    routes = [
        RouteSpec(source="x", destination="y", links=["a", "b"], symmetrical=True),
        RouteSpec(source="x", destination="z", links=["a"]),
    ]
    network = Network(Environment(), NetworkSpec(links=[link("a"), link("b")], routes=routes))
    assert network.route("x", "y") == ("a", "b")
    assert network.route("y", "x") == ("b", "a")
    assert network.route("y", "y") == ()
    with pytest.raises(InputError, match="a route expected, the table has none from z to x"):
        network.route("z", "x")
    with pytest.raises(InputError, match="a place of this network expected, found 'w'"):
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
    with pytest.raises(InputError, match="a route expected, no links lead from w to x"):
        network.route("w", "x")
    with pytest.raises(InputError, match="no links lead from x to p"):
        network.transfer(1, source="x", destination="p")
    with pytest.raises(InputError, match="a place of this network expected, found 'nowhere'"):
        network.route("x", "nowhere")


def test_without_latency_the_way_with_fewest_links():
    links = [link(f"{a}{b}", between=(a, b)) for a, b in ["ab", "bc", "cd", "de", "ae"]]
    assert Network(Environment(), links).route("a", "d") == ("ae", "de")


def test_routes_over_a_graph_of_ones_own():
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edge(1, 2, link="a")
    graph.add_edge(2, 3, link="b")
    network = Network(Environment(), [link("a"), link("b")], graph=graph)
    assert network.route(1, 3) == ("a", "b")
    with pytest.raises(InputError, match="no links lead from 3 to 1"):
        network.route(3, 1)
    graph.add_edge(3, 4, link="c")
    with pytest.raises(InputError, match="edge 3-4: a link of this network as 'link' expected, found 'c'"):
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
    "link a: a bandwidth above zero expected, found 0": {"bandwidth": 0},
    "link a: a finite quantity in B/s, zero or more, expected, found -1": {"bandwidth": -1},
    "link a: a finite quantity in B/s, zero or more, expected, found nan": {"bandwidth": float("nan")},
    "link a: a quantity in B/s such as '40Gbps' expected, found 'fast'": {"bandwidth": "fast"},
    "link a: a finite quantity in s, zero or more, expected, found -0.5": {"latency": -0.5},
    "link a: sharing 'shared' or 'fatpipe' expected, found 'wide'": {"sharing": "wide"},
    "link a: two places to join expected, found ('x',)": {"between": ["x"]},
    "link a: rising times expected in the profile, found [3.0, 3.0]": {"profile": [(3, 1), (3, 2)]},
    "link a: a repeat after the profile's last time expected, found 3.0": {"profile": [(3, 1)], "repeat": 3},
    "link a: a repeat after the profile's last time expected, found 9.0": {"repeat": 9},
    "a name expected for a link, found ''": {"name": ""},
}
WRONG_NETWORKS = {
    "link a: links of unlike names expected, found this name twice": {"links": [link("a"), link("a")]},
    "link a: a link as reverse expected, found 'z'": {"links": [link("a", reverse="z")]},
    "route x to y: a known link expected, found 'b'": {"routes": {("x", "y"): ["b"]}},
    "route x to y: at least one link expected, found none": {"routes": {("x", "y"): []}},
    "route x to y: each link once expected, found 'a' twice": {"routes": {("x", "y"): ["a", "a"]}},
    "a list of links expected, found the text 'a'": {"routes": {("x", "y"): "a"}},
    "route y to x: one route from x to y expected, found two": {
        "routes": [
            RouteSpec(source="x", destination="y", links=["a"]),
            RouteSpec(source="y", destination="x", links=["a"], symmetrical=True),
        ]
    },
    "one of the models maxmin, cm02, lv08 expected, found 'tcp'": {"model": "tcp"},
}
WRONG_TRANSFERS = {
    "size of a transfer: a finite quantity in B, zero or more, expected, found -1": {"size": -1},
    "size of a transfer: a finite quantity in B, zero or more, expected, found nan": {"size": float("nan")},
    "size of a transfer: a quantity in B such as '64GB' expected, found 'much'": {"size": "much"},
    "route of a transfer: a known link expected, found 'z'": {"route": ["z"]},
    "route of a transfer: at least one link expected, found none": {"route": []},
    "route of a transfer: each link once expected, found 'a' twice": {"route": ["a", "b", "a"]},
    "route of a transfer: a list of links expected, found the text 'ab'": {"route": "ab"},
    "route of a transfer: a route, or a source and a destination expected, found None and None": {"route": None},
    "rate_cap of a transfer: a rate above zero expected, found 0": {"rate_cap": 0},
    "rate_cap of a transfer: a finite quantity in B/s, zero or more, expected, found nan": {"rate_cap": float("nan")},
    "weight of a transfer: a weight above zero expected, found 0": {"weight": 0},
    "weight of a transfer: a weight above zero expected, found nan": {"weight": float("nan")},
    "weight of a transfer: a weight above zero expected, found inf": {"weight": inf},
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


def test_wrong_changes():
    network = Network(Environment(), [link("a")])
    stranger = Network(Environment(), [link("a")]).links["a"]
    for change in (lambda: network.fail("z"), lambda: network.restore(stranger), lambda: network.set_bandwidth("z", 1)):
        with pytest.raises(InputError, match="a link of this network expected, found"):
            change()
    for value in (0, -1, float("nan"), "wide"):
        with pytest.raises(InputError, match=r"link a: .* expected, found"):
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
    since = here._bundle._since
    for _ in range(5):
        network.transfer(10, route=["b"])
        env.run(until=env.now + 1)
    assert here._bundle._since == since


def test_the_alone_time_is_what_it_takes_alone():
    for model in ("maxmin", "cm02", "lv08"):
        env = Environment()
        links = [link("a", 1e6, 0.3), link("b", 3e6, 0.1), link("f", 2e6, sharing="fatpipe")]
        transfer = Network(env, links, model=model, crosstraffic=True).transfer(
            1e8, route=["a", "b", "f"], rate_cap=9e5
        )
        alone = transfer.alone
        env.run()
        assert transfer.end == pytest.approx(alone, rel=1e-12)
