"""Transfers: SimGrid's reference cases, cases worked by hand, events, interrupts."""

import pytest
import simpy

from simmodel.environment import Environment
from simmodel.platform.network import LinkSpec, duplex
from simmodel.resources.network.flow import Cancelled
from simmodel.resources.network.network import Delivery, Network
from tests.helpers.network_flows import flow, link, run
from tests.helpers.reference_cases import sharing_cases

ORDERS = {
    "as given": lambda flows: flows,
    "reversed": lambda flows: flows[::-1],
    "by id": lambda flows: sorted(flows, key=lambda flow: str(flow["id"])[::-1]),
}


# ---------------------------------------------------------------------- against SimGrid


@pytest.mark.few(30)
@pytest.mark.parametrize("crowd", [False, True], ids=["few", "crowd"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", sharing_cases("network"))
def test_agrees_with_simgrid(case, order, crowd):
    model = {"plain": "maxmin", "LV08": "lv08"}.get(case["fairness"], "cm02")
    links = [LinkSpec(**{**given, "sharing": given["sharing"].lower()}) for given in case["links"]]
    network = Network(Environment(), links, model=model)
    if crowd:
        network._sharing.many, network._sharing.each = 2, 0
    ends = run(network, ORDERS[order](case["flows"]))
    assert ends == pytest.approx(case["expected"], rel=1e-12)


# Links, flows, model, ends by SimGrid 3.32 with its defaults (simgrid-cm02: network/model:CM02).
DEFAULTS = {
    "window": ([link("l", 1e9, 0.1)], [flow("x", 1e9, "l")], "simgrid", {"x": 50.45946991784794}),
    "window of CM02": ([link("l", 1e9, 0.1)], [flow("x", 1e9, "l")], "simgrid-cm02", {"x": 47.7837158203125}),
    "cross traffic": ([link("l", 1e6, 1e-3)], [flow("x", 1e8, "l")], "simgrid", {"x": 108.26043268041236}),
    "cap": ([link("l", 1e9, 1e-3)], [flow("x", 1e8, "l", rate_cap=1e6)], "simgrid", {"x": 100.01301}),
    "with and without latency": (
        [link("l", 1e9, 1e-3), link("k", 1e9), link("c", 1e6)],
        [flow("x", 1e6, "lc"), flow("y", 1e6, "kc")],
        "simgrid",
        {"x": 1.118819705, "y": 2.1649484536082477},
    ),
    "mixed": (
        [link("a", 1.25e8), link("b", 1e6, 0.02), link("c", 1e7, 1e-3), link("d", 1e6, 0.02)],
        [
            flow("u", 9e6, "c", 1),
            flow("v", 2e7, "cb"),
            flow("w", 1.9e7, "a", 0.5, rate_cap=1e6),
            flow("x", 3e7, "cd", 1, rate_cap=1e6),
            flow("y", 4.2e7, "ad", 1),
            flow("z", 6e6, "a", rate_cap=1e6),
        ],
        "simgrid",
        {
            "u": 2.0951746712621375,
            "v": 22.322375009625247,
            "w": 19.5,
            "x": 68.5270241261224,
            "y": 79.19834432989693,
            "z": 6.0,
        },
    ),
    "mixed under CM02": (
        [link("b", 1.25e8), link("c", 1e8, 0.02), link("d", 1.25e8, 0.02)],
        [
            flow("u", 3.1e7, "dc", 1, rate_cap=5e6),
            flow("v", 4.5e7, "b"),
            flow("w", 1.6e7, "c"),
            flow("x", 4.6e7, "d", 1, rate_cap=1e6),
            flow("y", 7e6, "dcb", 0.5),
            flow("z", 1.3e7, "cd", 0.5, rate_cap=5e6),
        ],
        "simgrid-cm02",
        {"u": 7.24, "v": 0.378, "w": 0.188, "x": 47.02, "y": 0.673514404296875, "z": 3.14},
    ),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_simgrid_with_its_defaults(case):
    links, flows, model, ends = DEFAULTS[case]
    assert run(Network(Environment(), links, model=model), flows) == pytest.approx(ends, rel=1e-12)


def test_cross_traffic_of_the_model_can_be_switched_off():
    network = Network(Environment(), [link("l", 1e6, 1e-3)], model="simgrid", crosstraffic=False)
    assert run(network, [flow("x", 1e8, "l")]) == pytest.approx({"x": 0.01301 + 1e8 / 0.97e6}, rel=1e-12)


# ---------------------------------------------------------------------- by hand

HAND = {
    # Links, flows, options of the network, ends.
    "alone with latency": ([link("a", 100, 1), link("b", 50, 2)], [flow("x", 500, "ab")], {}, {"x": 13}),
    "one joins midway": ([link("a")], [flow("x", 1000, "a"), flow("y", 500, "a", 5)], {}, {"x": 15, "y": 15}),
    "idle between": ([link("a")], [flow("x", 100, "a"), flow("y", 100, "a", 7)], {}, {"x": 1, "y": 8}),
    # long 15 of a, short 15, other 85; then long is alone on both: a's 30 binds, not b's 100.
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
def test_ends_of_transfers_are_as_by_hand(case, order):
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


# ---------------------------------------------------------------------- transfers as events


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


def test_alone_is_the_duration_on_an_idle_network_also_without_bytes_or_links():
    links = [link("a", 100, 2, between="xy"), link("b", 100, 3, between="yz")]
    env = Environment()
    network = Network(env, links)
    moved = network.transfer(500, source="x", destination="y", rate_cap=50)
    nothing = network.transfer(0, source="y", destination="z")
    within = network.transfer(500, source="x", destination="x", rate_cap=50)
    assert (moved.alone, nothing.alone, within.alone) == (12, 3, 0)
    env.run()
    assert (moved.end, nothing.end, within.end) == (12, 3, 0)
    network.fail("a")
    network.fail("b")
    assert (moved.alone, nothing.alone) == (float("inf"), 3)


def test_run_until_a_transfer():
    env = Environment()
    network = Network(env, [link("a")])
    late = network.transfer(1000, route=["a"])
    assert env.run(network.transfer(100, route=["a"])).end == 2
    assert late.bytes_done == 100


def test_a_closed_loop_at_one_instant():
    """Each transfer starts when the previous one ends, at the same instant."""
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
