"""Links that change: bandwidth, latency, profiles, failures, and transfers that fail with them."""

import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Stalled
from simmodel.platform.network import SharingModel
from simmodel.resources.network.network import LinkFailed, Network
from tests.helpers.network_flows import flow, link, run

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


def test_the_load_of_a_link_is_that_after_all_changes_so_far():
    env = Environment()
    network = Network(env, [link("a", 100), link("b", 50)])

    def loads():
        return [network.load(name) for name in "ab"]

    only = network.transfer(1000, route=["a"])
    assert loads() == [100, 0]
    over = network.transfer(1000, route=["a", "b"])
    assert loads() == [100, 50]
    only.cancel()
    assert loads() == [50, 50]
    env.run(until=1)
    network.set_bandwidth("b", 20)
    assert loads() == [20, 20]
    over.cancel()
    assert loads() == [0, 0]


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


def test_rates_follow_the_bandwidth_and_failures_of_a_fatpipe():
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
    """Weight 1 / (latency + S / bandwidth): with S = 1 and no latency, proportional to the own link's bandwidth."""
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
    """An endlessly repeating profile does not keep the simulation running, and holds when the link is used again."""
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


def test_a_bandwidth_set_by_hand_ends_with_the_profile_also_while_the_link_is_idle():
    """The last point before the transfer, at 18 s, is of the period before: it is later than the script's bandwidth."""
    env = Environment()
    network = Network(env, [link("a", 100, profile=[(8, 25), (18, 10)], repeat=24)])
    env.run(until=12)
    network.set_bandwidth("a", 50)
    env.run(until=26)
    transfer = network.transfer(40, route=["a"])
    env.run()
    assert transfer.end == 30


def test_a_link_knows_whether_a_script_has_changed_it():
    env = Environment()
    network = Network(env, [link("a", profile=[(1, 25)]), *[link(name) for name in "bcdef"]])
    network.transfer(200, route=["a"])
    network.set_bandwidth("b", 99)
    network.set_latency("c", 1)
    network.fail("d")
    network.withhold("e", 1)  # 1 byte/s is enough
    env.run()
    assert [name for name, each in network.links.items() if each.altered] == ["b", "c", "d", "e"]
    network.withhold("e", 0)
    network.restore("d")
    assert [name for name, each in network.links.items() if each.altered] == ["b", "c"]


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


# ---------------------------------------------------------------------- latency changes


def test_a_new_latency_is_that_of_transfers_that_start_from_now_on():
    env = Environment()
    network = Network(env, [link("a", 100, 2), link("b", 100, 1)])
    early = network.transfer(300, route=["a", "b"])
    env.run(until=1)
    network.set_latency("a", "7s")
    late = network.transfer(100, route=["a", "b"])
    env.run()
    # early waits until 3 and moves until 6; late waits from 1 to 9.
    assert (early.end, late.end, network.links["a"].latency) == (6, 10, 7)


def test_a_new_latency_changes_the_weights_of_moving_transfers():
    """Under cm02 the shares of c are as 1 / latency: 75 and 25 at first, 50 and 50 from 7 on."""
    env = Environment()
    network = Network(env, [link("a", 1e9, 1), link("b", 1e9, 3), link("c")], model="cm02")
    first, second = network.transfer(1000, route=["a", "c"], lag=3), network.transfer(1000, route=["b", "c"])
    env.run(until=7)
    assert (first.bytes_done, second.bytes_done) == (300, 100)
    network.set_latency("a", 3)
    assert (first.rate, second.rate) == (50, 50)
    env.run(until=9)
    network.set_latency("b", 1)
    assert (first.rate, second.rate) == (25, 75)
    env.run()
    # first has 600 left at 9, second 800: second ends after 800 / 75, first then takes all.
    assert second.end == pytest.approx(9 + 800 / 75, rel=1e-12)
    assert first.end == pytest.approx(9 + 800 / 75 + (600 - 800 / 3) / 100, rel=1e-12)


def test_a_new_latency_changes_the_window_and_splits_transfers_that_shared_a_cap():
    """The window holds both at 100 / (2 * 5); at a latency of 0.5 s one has its own cap, 40, the other the rest."""
    model = SharingModel(name="window", tcp_gamma=100.0)
    env = Environment()
    network = Network(env, [link("a", 100, 5)], model=model)
    capped, free = network.transfer(450, route=["a"], rate_cap=40), network.transfer(450, route=["a"])
    paused = network.transfer(100, route=["a"])
    env.run(until=10)
    paused.pause()
    assert (capped.rate, free.rate) == (10, 10)
    network.set_latency("a", 0.5)
    assert (capped.rate, free.rate) == (40, 60)
    env.run(until=16)
    # 50 until 10, then 240 and 360 until 16: 160 and 40 are left.
    assert (capped.left, free.left) == (160, 40)
    network.set_latency("a", 5)
    assert (capped.rate, free.rate) == (10, 10)
    env.run(until=17)
    paused.resume()
    assert paused.rate == 10
    env.run()
    assert (free.end, paused.end, capped.end) == (20, 22, 32)


@pytest.mark.parametrize("model", ["maxmin", "cm02", "lv08", "simgrid"])
def test_a_latency_set_before_the_transfers_is_that_of_a_link_made_with_it(model):
    def ends(latency, later):
        network = Network(Environment(), [link("a", 1e6, latency), link("b", 1e6, 0.01)], model=model)
        network.transfer(1, route=["a"])
        network.env.run(until=1000)
        network.set_latency("a", later)
        given = ((["a"], 4e5), (["a", "b"], None), (["b"], None))
        transfers = [network.transfer(1e6, route=route, rate_cap=cap) for route, cap in given]
        network.env.run()
        return [transfer.end for transfer in transfers]

    assert ends(0.5, 0.02) == ends(0.02, 0.02)


def test_observers_hear_of_a_new_latency_and_wrong_ones_are_errors():
    env = Environment()
    network = Network(env, [link("a", 100, 5)])
    heard = []

    class Ear:
        def link_changed(self, link):
            heard.append((link.name, link.latency))

    env.observe(Ear())
    network.set_latency("a", 5)
    network.set_latency("a", 2)
    assert heard == [("a", 2)]
    with pytest.raises(InputError, match="link a, latency: must be a finite quantity in s >= 0, got -1"):
        network.set_latency("a", -1)
    with pytest.raises(InputError, match="unknown link 'z'"):
        network.set_latency("z", 1)


# ---------------------------------------------------------------------- transfers that fail with their link


def outcome(transfer):
    return transfer.status, transfer.end, transfer.bytes_done


def test_transfers_fail_with_their_link_if_asked():
    env = Environment()
    network = Network(env, [link("a", 100, 1), link("b", 100)])
    fails = network.transfer(1000, route=["a", "b"], when_down="fail")
    waits = network.transfer(1000, route=["a"])
    beside = network.transfer(900, route=["b"], when_down="fail")
    heard = []

    def reader(env):
        try:
            yield fails
        except LinkFailed as error:
            heard.append((env.now, str(error), error.done, error.size, error.link))

    env.process(reader(env))
    env.run(until=5)
    network.fail("a")
    in_vain = network.transfer(10, route=["a"], when_down="fail")
    assert outcome(in_vain) == ("failed", 5, 0)
    env.run(until=9)
    network.restore("a")
    env.run()
    # On a 50 each from 1 to 5; beside has 100 alone for 1 s, 50 for 4 s and 100 from 5 on.
    assert heard == [(5, "transfer 1 over a, b failed with link a at 5 with 200 of 1000 done", 200, 1000, "a")]
    assert outcome(fails) == ("failed", 5, 200)
    assert outcome(waits) == ("done", 17, 1000)
    assert outcome(beside) == ("done", 11, 900)
    assert not list(network.under_way())


def test_a_link_may_ask_for_failures_and_a_transfer_may_wait_all_the_same():
    env = Environment()
    network = Network(env, [link("a", 100, 2, when_down="fail")])
    in_latency, patient = network.transfer(100, route=["a"]), network.transfer(100, route=["a"], when_down="wait")
    paused = network.transfer(100, route=["a"])
    paused.pause()
    env.run(until=1)
    network.fail("a")
    env.run(until=3)
    paused.resume()
    network.restore("a")
    env.run()
    assert outcome(in_latency) == ("failed", 1, 0)
    assert outcome(paused) == ("failed", 3, 0)
    assert outcome(patient) == ("done", 4, 100)


def test_transfers_fail_when_the_profile_of_a_link_says_down():
    """The profile is down from 4 to 6 and from 14 to 16: while moving, in the latency, at the start."""
    env = Environment()
    network = Network(env, [link("a", 100, 2, profile=[(4, 0), (6, 100)], repeat=10, when_down="fail")])
    moving = network.transfer(1000, route=["a"])
    short = network.transfer(20, route=["a"])
    env.run(until=4.5)
    at_start = network.transfer(10, route=["a"])
    env.run(until=12.5)
    in_latency = network.transfer(10, route=["a"])
    env.run()
    assert outcome(moving) == ("failed", 4, 180)
    assert outcome(short) == ("done", 2.4, 20)
    assert outcome(at_start) == ("failed", 4.5, 0)
    assert outcome(in_latency) == ("failed", 14, 0)


def test_what_happens_when_a_link_is_down_must_be_known():
    with pytest.raises(InputError, match="link a, when_down: must be 'wait' or 'fail', got 'stop'"):
        link("a", when_down="stop")
    with pytest.raises(InputError, match="when_down of a transfer: must be 'wait' or 'fail', got 'stop'"):
        Network(Environment(), [link("a")]).transfer(1, route=["a"], when_down="stop")


# ---------------------------------------------------------------------- links that nothing uses


def live(network, name="l"):
    found = network.links[name]
    return found.bandwidth, found.capacity, found.up, network.seconds(1e6, "a", "b"), network.idle("a", "b")


def test_a_link_that_nothing_uses_follows_its_profile():
    """As one that a transfer uses all the time; a transfer begun at any instant takes what was said."""
    env = Environment()
    profile = {"profile": [(1, 2e6), (5, 0), (6, 5e5)], "repeat": 10}
    network = Network(env, [link("l", 1e6, between=("a", "b"), **profile)])
    used = Network(env, [link("l", 1e6, between=("a", "b"), **profile)])
    used.transfer(1e12, source="a", destination="b")
    expected = {0: 1e6, 0.5: 1e6, 1: 2e6, 3: 2e6, 5.5: 0, 6: 5e5, 10.5: 5e5, 11: 2e6, 15: 0, 26.5: 5e5}
    for at, bandwidth in expected.items():
        if at:
            env.run(until=at)
        seconds = 1e6 / bandwidth if bandwidth else float("inf")
        assert live(network) == (bandwidth, bandwidth, bandwidth > 0, seconds, (0.0, bandwidth)), at
        if at not in (1, 6, 11, 15):  # where transfers follow at the end of the instant
            assert live(used) == live(network)
        assert f"{bandwidth:g} B/s" in repr(network.links["l"])
    network.set_bandwidth("l", 3e6)
    assert live(network)[0] == 3e6
    env.run(until=30)
    assert live(network)[0] == 3e6  # until the next point
    env.run(until=31.5)
    assert live(network)[0] == 2e6
    network.fail("l")
    assert live(network)[:3] == (2e6, 0.0, False)
    env.run(until=36.5)
    network.restore("l")
    assert live(network)[:3] == (5e5, 5e5, True)
    env.run(until=network.transfer(1e6, source="a", destination="b"))
    assert env.now == 38.5


def test_capacities_of_links_that_nothing_uses_follow_what_is_withheld():
    env = Environment()
    network = Network(env, [link("l", 100, profile=[(5, 200)])])
    network.withhold("l", 30)
    assert network.links["l"].capacity == 70
    env.run(until=6)
    assert network.links["l"].capacity == 170


def test_transfers_in_their_latency_fail_with_the_state_of_a_link():
    """At the instant at which it goes down, also if it is up again when the latency is over, as in SimGrid."""
    env = Environment()
    state = {"profile": [(4, 0), (4.5, 100)], "when_down": "fail"}
    network = Network(env, [link("a", 100, 2, **state), link("b", 100, 2)])
    fails = network.transfer(1000, route=["a", "b"])
    waits = network.transfer(100, route=["a"], when_down="wait")
    env.run(until=1)
    cancelled = network.transfer(1000, route=["a"])
    env.run(until=2)
    cancelled.cancel()
    paused = network.transfer(1000, route=["a"])
    env.run(until=3)
    paused.pause()
    env.run(until=4.75)
    late = network.transfer(100, route=["a"])
    paused.resume()
    env.run()
    assert [each.status for each in (fails, waits, cancelled, late, paused)] == ["failed", "done", "cancelled"] + 2 * [
        "done"
    ]
    assert (fails.end, waits.end, late.end) == (4, 3, 4.75 + 2 + 2)
    assert network.links["a"].used_by == 0
