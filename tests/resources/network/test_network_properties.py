"""The network under random starts, ends, interrupts, caps and link changes, checked after every event."""

from math import inf

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.platform.network import LinkSpec
from simmodel.resources.network.network import Network
from simmodel.resources.network.sharing import max_min_rates
from tests.helpers.examples import up_to

CLOSE = 1 + 1e-9
NAMES = "abcdef"
SIZES = st.sampled_from([1.0, 10.0, 10.0, 100.0, 1000.0]) | st.floats(0.01, 1e4)
BANDWIDTHS = st.sampled_from([1.0, 10.0, 10.0, 30.0, 1e3]) | st.floats(0.1, 1e3)
LATENCIES = st.sampled_from([0.0, 0.0, 1.0, 0.5]) | st.floats(0, 3)
LINKS = st.lists(
    st.tuples(BANDWIDTHS, LATENCIES, st.sampled_from(["shared", "shared", "fatpipe"])),
    min_size=len(NAMES),
    max_size=len(NAMES),
)
ROUTES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
CAPS = st.none() | st.sampled_from([1.0, 5.0]) | st.floats(0.1, 100)
WEIGHTS = st.sampled_from([1.0, 1.0, 1.0, 2.0]) | st.floats(0.1, 10)
DELAYS = st.sampled_from([0.0, 0.0, 1.0]) | st.floats(0, 20)
WHICH = st.integers(0, 20)
ACTIONS = st.lists(
    st.tuples(
        DELAYS,
        st.tuples(st.just("start"), SIZES, ROUTES, CAPS, WEIGHTS)
        | st.tuples(st.just("start"), SIZES, ROUTES, st.none(), st.just(1.0))
        | st.tuples(st.sampled_from(["cancel", "pause", "resume"]), WHICH)
        | st.tuples(st.just("bandwidth"), st.sampled_from(NAMES), BANDWIDTHS)
        | st.tuples(st.just("latency"), st.sampled_from(NAMES), LATENCIES)
        | st.tuples(st.sampled_from(["fail", "restore"]), st.sampled_from(NAMES)),
    ),
    min_size=1,
    max_size=25,
)
MODELS = st.sampled_from(["maxmin", "cm02", "lv08", "simgrid", "simgrid-cm02"])


class Judge:
    """Checks the rates of the network and the bytes they have carried after every event."""

    def __init__(self, network):
        self.network = network
        self.transfers = []
        self.carried = {}
        self.rates = {}
        self.last = 0.0

    def look(self):
        """Integrate the rates since the last check, and check the current ones."""
        now = self.network.env.now
        for transfer, rate in self.rates.items():
            self.carried[transfer] = self.carried.get(transfer, 0.0) + rate * (now - self.last)
        self.last = now
        moving = [transfer for transfer in self.transfers if transfer.status == "moving"]
        factor = self.network.model.bandwidth_factor
        self.rates = {transfer: transfer.rate for transfer in moving}
        self.against_full_filling(moving, factor)
        self.within_bandwidth(moving, factor)
        self.nobody_could_be_faster(moving, factor)
        for transfer in self.transfers:
            assert transfer.bytes_done == pytest.approx(self.carried.get(transfer, 0.0), rel=1e-9, abs=1e-9)

    def weight(self, transfer):
        return transfer.weight * self.network.model.weight(
            transfer.way.latency, [link.bandwidth for link in transfer.way.links]
        )

    def cap(self, transfer):
        pipes = [link.capacity for link in transfer.way.links if link.spec.sharing == "fatpipe"]
        return min([transfer.rate_cap, self.network.model.cap(transfer.way.latency), *pipes])

    def against_full_filling(self, moving, factor):
        shared = {name: link.capacity for name, link in self.network.links.items() if link.spec.sharing == "shared"}
        routes = [{link.name: times for link, times in transfer.way.uses} for transfer in moving]
        weights = [self.weight(transfer) for transfer in moving]
        rates = max_min_rates(shared, routes, weights, [self.cap(transfer) for transfer in moving])
        assert [rate / factor for rate in self.rates.values()] == pytest.approx(rates, rel=1e-9)

    def within_bandwidth(self, moving, factor):
        for link in self.network.links.values():
            over = [(transfer, times) for transfer in moving for each, times in transfer.way.uses if each is link]
            assert sum(self.rates[transfer] * times for transfer, times in over) <= factor * link.capacity * CLOSE
            if link.spec.sharing == "fatpipe":
                used = [self.rates[transfer] for transfer in moving if link in transfer.way.links]
                assert all(rate <= factor * link.capacity * CLOSE for rate in used)

    def nobody_could_be_faster(self, moving, factor):
        """Each transfer is at its cap, or uses a saturated link on which none has a higher rate per weight."""
        levels = {transfer: self.rates[transfer] / self.weight(transfer) for transfer in moving}
        for transfer in moving:
            if self.rates[transfer] * CLOSE >= factor * self.cap(transfer):
                continue
            held_back = False
            for link, _ in transfer.way.uses:
                others = {other: times for other in moving for each, times in other.way.uses if each is link}
                load = sum(self.rates[other] * times for other, times in others.items())
                full = load * CLOSE >= factor * link.capacity
                held_back |= full and all(levels[other] <= levels[transfer] * CLOSE for other in others)
            assert held_back


def act(network, judge, kind, what):
    transfers = judge.transfers
    if kind == "start":
        size, route, cap, weight = what
        transfers.append(network.transfer(size, route=route, rate_cap=cap, weight=weight))
    elif kind == "bandwidth":
        network.set_bandwidth(*what)
    elif kind == "latency":
        network.set_latency(*what)
    elif kind in ("fail", "restore"):
        getattr(network, kind)(*what)
    elif transfers:
        getattr(transfers[what[0] % len(transfers)], kind)()


def build(links, model, crosstraffic, crowd=False):
    specs = [
        LinkSpec(name=name, bandwidth=bandwidth, latency=latency, sharing=sharing)
        for name, (bandwidth, latency, sharing) in zip(NAMES, links, strict=True)
    ]
    network = Network(Environment(), specs, model=model, crosstraffic=crosstraffic)
    if crowd:
        network._sharing.many, network._sharing.each = 2, 0
    return network


def play(network, judge, actions, look):
    """Perform the actions, each after its delay, then run to the end."""
    env = network.env

    def wait(until):
        while env.peek() <= until:
            env.step()
            look()

    for delay, (kind, *what) in actions:
        until = env.now + delay
        wait(until)
        if until > env.now:
            env.run(until=until)
        act(network, judge, kind, what)
        look()
    for name in NAMES:
        network.restore(name)
    for transfer in judge.transfers:
        transfer.resume()
    look()
    while env.peek() < inf:
        wait(env.peek())
    return judge.transfers


@pytest.mark.parametrize("crowd", [False, True], ids=["few", "crowd"])
@settings(max_examples=up_to(250), deadline=None)
@given(LINKS, MODELS, st.booleans(), ACTIONS)
def test_rates_are_fair_and_bytes_are_conserved_after_every_event(crowd, links, model, crosstraffic, actions):
    network = build(links, model, crosstraffic, crowd)
    judge = Judge(network)
    looked_at = play(network, judge, actions, judge.look)
    for transfer in looked_at:
        assert transfer.status in ("done", "cancelled")
        if transfer.status == "done":
            assert judge.carried.get(transfer, 0.0) == pytest.approx(transfer.size, rel=1e-9)
            assert transfer.value.bytes == transfer.size
    assert not list(network.under_way())
    assert network._busy == 0
    assert all(not link.users for link in network.links.values())
    # Reading settles the rates at once; otherwise they are settled once per instant.
    network = build(links, model, crosstraffic, crowd)
    left_alone = play(network, Judge(network), actions, lambda: None)
    assert [transfer.status for transfer in left_alone] == [transfer.status for transfer in looked_at]
    assert [transfer.end for transfer in left_alone] == pytest.approx([each.end for each in looked_at], rel=1e-9)


@settings(max_examples=up_to(250), deadline=None)
@given(LINKS, MODELS, st.booleans(), ACTIONS)
def test_a_crowd_ends_its_transfers_as_few_do(links, model, crosstraffic, actions):
    few, many = (
        play(network, Judge(network), actions, lambda: None)
        for network in (build(links, model, crosstraffic, crowd) for crowd in (False, True))
    )
    assert [transfer.status for transfer in many] == [transfer.status for transfer in few]
    assert [transfer.end for transfer in many] == pytest.approx([transfer.end for transfer in few], rel=1e-12)


class Loads:
    """Asks for loads, which then come from the solver also for transfers that are alone."""

    def link_load_changed(self, link):
        pass


@settings(max_examples=up_to(300), deadline=None)
@given(LINKS, MODELS, st.booleans(), ACTIONS)
def test_transfers_alone_on_their_links_end_at_the_instants_of_the_solver(links, model, crosstraffic, actions):
    short, solved = build(links, model, crosstraffic), build(links, model, crosstraffic)
    solved.env.observe(Loads())
    one, other = (play(network, Judge(network), actions, lambda: None) for network in (short, solved))
    assert [transfer.status for transfer in one] == [each.status for each in other]
    assert [transfer.end for transfer in one] == pytest.approx([each.end for each in other], rel=1e-12)
    for name in NAMES:
        assert short.links[name].load == solved.links[name].load == 0
        assert short.links[name].saturated == solved.links[name].saturated


def test_a_transfer_alone_on_its_links_needs_no_solution(monkeypatch):
    network = Network(Environment(), [LinkSpec(name=name, bandwidth=10.0) for name in "ab"])
    monkeypatch.setattr(type(network._sharing), "solve", lambda self: pytest.fail("solved"))
    first, second = network.transfer(100.0, route=["a"]), network.transfer(50.0, route=["b"])
    assert (first.rate, second.rate) == (10, 10)
    network.env.run(until=6)
    third = network.transfer(10.0, route=["b"])
    network.env.run()
    assert (first.end, second.end, third.end) == (10, 5, 7)


def test_a_crowd_that_shrinks_ends_and_its_transfers_go_on():
    def play(many):
        network = Network(Environment(), [LinkSpec(name=name, bandwidth=10.0 + i) for i, name in enumerate(NAMES)])
        network._sharing.many, network._sharing.each = many, 0
        pairs = [(a, b) for a in NAMES for b in NAMES if a != b]
        transfers = [network.transfer(10.0 + i * i, route=pair) for i, pair in enumerate(pairs)]
        crowds = []
        while network.env.peek() < inf:
            network.env.step()
            crowds.append(network._sharing.crowd is not None)
        return [transfer.end for transfer in transfers], crowds

    (ends, crowds), (plain, never) = play(20), play(10**9)
    assert ends == pytest.approx(plain, rel=1e-12)
    assert crowds[0]
    assert not crowds[-1]
    assert crowds.count(True) > 10
    assert crowds.count(False) > 3
    assert not any(never)


@settings(max_examples=up_to(150), deadline=None)
@given(LINKS, MODELS, ACTIONS, st.randoms(use_true_random=False))
def test_the_order_of_transfers_and_of_links_does_not_matter(links, model, actions, random):
    """The same starts, created in another order."""
    starts, at = [], 0.0
    for delay, (kind, *what) in actions:
        at += delay
        if kind == "start":
            starts.append((len(starts), at, what))

    def ends(order):
        network = build(links, model, False)
        found = {}

        def go(number, at, what):
            size, route, cap, weight = what
            yield network.env.timeout(at)
            found[number] = (yield network.transfer(size, route=route, rate_cap=cap, weight=weight)).end

        for start in order:
            network.env.process(go(*start))
        network.env.run()
        return found

    shuffled = list(starts)
    random.shuffle(shuffled)
    assert ends(shuffled) == pytest.approx(ends(starts), rel=1e-9)
