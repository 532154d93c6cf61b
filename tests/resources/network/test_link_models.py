"""Links with a model: TDMA by hand, losses in closed form, contention, and what models may not do."""

from math import inf, sqrt
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Task, Workflow, simulate
from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, NetworkSpec, ProcessorSpec
from simmodel.platform.kinds import to_dict
from simmodel.platform.toml import from_dict
from simmodel.records.network_recorder import NetworkRecorder
from simmodel.resources import Link, Network, Option
from simmodel.runs import start
from simmodel.scheduling.observer import Observer
from simmodel.testing import check_resource
from simmodel.work.task import DataObject
from tests.helpers.examples import up_to
from tests.helpers.network_flows import run


def tdma(slots=("a", "b"), slot=1.0, **options):
    made = {"slots": list(slots), "slot": slot}
    return LinkSpec(name="bus", bandwidth=100.0, between=("a", "b"), model="tdma", options=made, **options)


def network(*links, **options):
    return Network(Environment(), links, **options)


def ends(made, *flows):
    """Run flows (id, size, source, start) between a and b; return their ends."""
    plan = []
    for name, size, source, begin in flows:
        there = "b" if source == "a" else "a"
        plan.append({"id": name, "size": size, "source": source, "destination": there, "start": begin})
    return run(made, plan)


# ---------------------------------------------------------------------- TDMA, by hand


def test_a_transfer_sends_in_its_slots_only():
    # Slot 0 belongs to a (0-1, 2-3, 4-5 s), slot 1 to b: 100 bytes a slot.
    found = ends(network(tdma()), ("x", 250, "a", 0.0), ("y", 250, "b", 0.5))
    assert found == {"x": 4.5, "y": 5.5}


def test_transfers_from_one_source_share_its_slot():
    # x alone to 0.5 (50 bytes), then both at 50 B/s: z has its 100 bytes at 4.5, x its 250 at 6.5.
    found = ends(network(tdma()), ("x", 250, "a", 0.0), ("z", 100, "a", 0.5), ("y", 250, "b", 0.5))
    assert found == {"x": 6.5, "z": 4.5, "y": 5.5}


def test_a_transfer_that_ends_with_its_slot_needs_no_other_slot():
    assert ends(network(tdma()), ("x", 100, "a", 0.0), ("y", 200, "b", 0.0)) == {"x": 1.0, "y": 4.0}
    # 0.1 s slots: 30 slots of 10 bytes; 0.1 has no exact binary value.
    assert ends(network(tdma(slot=0.1)), ("x", 300, "a", 0.0))["x"] == pytest.approx(5.9, rel=1e-12)


def test_a_source_may_own_several_slots_of_a_frame():
    # a: 0-2 and 3-5 s, b: 2-3 and 5-6 s.
    found = ends(network(tdma(["a", "a", "b"])), ("x", 250, "a", 0.0), ("y", 150, "b", 0.0))
    assert found == {"x": 3.5, "y": 5.5}


def test_a_transfer_that_starts_in_a_slot_of_another_waits_for_its_own():
    assert ends(network(tdma()), ("x", 50, "a", 1.5))["x"] == 2.5
    assert ends(network(tdma()), ("x", 50, "a", 2.0))["x"] == 2.5  # on the border: the new slot


def test_a_paused_transfer_loses_its_slots_meanwhile():
    made = network(tdma())
    x = made.transfer(150, source="a", destination="b")
    env = made.env
    env.run(until=0.5)
    assert x.pause() == 50
    env.run(until=3.25)
    x.resume()
    env.run()
    assert x.end == 5.0


@pytest.mark.long  # smaller: the other tests of the file
def test_random_frames_as_slot_by_slot():
    rng = Random(7)
    for _ in range(40):
        slots = [rng.choice("abc") for _ in range(rng.randint(1, 5))] + ["a", "b", "c"]
        slot = rng.choice([0.25, 0.5, 1.0, 3.0])
        starts = {source: rng.randint(0, 40) / 8 for source in "abc"}
        sizes = {source: rng.randint(1, 600) for source in "abc"}
        made = network(tdma(slots, slot))
        plan = [
            {"id": source, "size": sizes[source], "route": ["bus"], "source": source, "start": starts[source]}
            for source in "abc"
        ]
        found = run(made, plan)
        for source in "abc":
            left, number = sizes[source], 0
            while True:
                begin, end = max(number * slot, starts[source]), (number + 1) * slot
                if slots[number % len(slots)] == source and end > begin:
                    if left <= 100 * (end - begin):
                        break
                    left -= 100 * (end - begin)
                number += 1
            assert found[source] == pytest.approx(begin + left / 100, rel=1e-12)


def test_slots_and_plain_links_share_one_solution():
    # In its slots x is held to 30 B/s by the plain link; y then has the rest of it.
    made = network(tdma(), LinkSpec(name="lan", bandwidth=30.0))
    x = made.transfer(90, route=["bus", "lan"], source="a")
    y = made.transfer(120, route=["lan"])
    made.env.run()
    # 0-1: 15 each; 1-2: y 30; 2-3: 15 each; 3-4: y 30; 4-5: 15 each (y 105); 5-5.5: y 30 (120); 6-7.5..: x 30.
    assert y.end == 5.5
    assert x.end == pytest.approx(8.5)


def test_the_estimate_of_a_tdma_link_is_its_mean_rate():
    made = network(tdma(["a", "a", "b", "idle"]))
    assert made.idle("a", "b") == (0.0, 50.0)
    assert made.idle("b", "a") == (0.0, 25.0)
    assert made.transfer(100, source="a", destination="b").alone == 2.0


def test_a_source_without_a_slot_is_refused():
    made = network(tdma(["a"]))
    with pytest.raises(InputError, match="link bus: 'b' has no slot; a have"):
        made.transfer(10, source="b", destination="a")


# ---------------------------------------------------------------------- losses, in closed form


def lossy(loss, bandwidth=100.0, **options):
    made = {"loss": loss, **options}
    return LinkSpec(name="wan", bandwidth=bandwidth, latency=0.5, between=("a", "b"), model="lossy", options=made)


def test_lost_packets_are_sent_again():
    made = network(lossy(0.2))
    both = [made.transfer(400, source="a", destination="b") for _ in range(2)]
    assert made.seconds(400, "a", "b") == 0.5 + 400 / 80
    made.env.run()
    assert [each.end for each in both] == [0.5 + 800 / 80] * 2


def test_tcp_is_bounded_by_losses():
    bound = 10 / 1.0 * sqrt(1.5 / 0.06)  # segment / RTT * sqrt(3 / 2 / p): Mathis et al., equation 3
    made = network(lossy(0.06, segment=10))
    first = made.transfer(500, source="a", destination="b")
    assert first.alone == pytest.approx(0.5 + 500 / bound)
    second = made.transfer(500, source="a", destination="b")
    made.env.run()
    assert first.end == pytest.approx(0.5 + 500 / min(bound, 94 / 2))
    assert second.end == first.end


def test_a_change_of_latency_changes_the_bound_of_tcp():
    made = network(lossy(0.06, segment=10))
    first = made.transfer(500, source="a", destination="b")
    made.env.run(until=1.5)
    left = 500 - 50 * 1.0  # at 50 bytes/s since 0.5
    assert first.left == pytest.approx(left)
    made.set_latency("wan", 1.0)
    made.env.run()
    assert first.end == pytest.approx(1.5 + left / 25)


def test_equal_bounds_share_one_bundle():
    made = network(lossy(0.06, segment=10))
    for _ in range(50):
        made.transfer(500, source="a", destination="b")
    made.env.run(until=1)
    assert len({id(each.bundle) for each in made.under_way()}) == 1


# ---------------------------------------------------------------------- models of one's own


class Contended(Link):
    """A link that loses a tenth of its bandwidth for each further transfer."""

    def carries(self, transfers):
        return self.bandwidth * (1 - 0.1 * (transfers - 1))


class Slow(Link):
    """A link that makes transfers wait for 3 s."""

    def delay(self):
        return 3.0


class Broken(Link):
    """A link whose answers are those of its options."""

    def carries(self, transfers):
        return self.options.get("carries", 1.0)

    def limit(self, transfer, now):
        return self.options.get("limit", inf)

    def until(self, now):
        return self.options.get("until", inf)


def custom(model, **options):
    return LinkSpec(name="own", bandwidth=100.0, between=("a", "b"), model=model, options=options)


def test_a_capacity_may_depend_on_the_number_of_transfers():
    # 0-2: x alone at 100; 2-: 90 for two; y has its 90 bytes at 4, then x has 110 left at 100: 5.1.
    assert ends(network(custom(Contended)), ("x", 400, "a", 0.0), ("y", 90, "b", 2.0)) == {"x": 5.1, "y": 4.0}
    made = network(custom(Contended))
    three = [made.transfer(400, source="a", destination="b") for _ in range(3)]
    assert made.links["own"].capacity == pytest.approx(80.0)
    three[0].pause()
    assert made.links["own"].capacity == 90.0
    three[1].cancel()
    three[0].resume()
    made.env.run()
    assert (made.links["own"].transfers, made.links["own"].capacity) == (0, 100.0)


def test_a_link_with_a_model_goes_down_and_up_and_changes_its_bandwidth():
    made = network(custom(Contended))
    both = [made.transfer(400, source="a", destination="b") for _ in range(2)]
    env = made.env
    env.run(until=2)  # 90 bytes each
    made.fail("own")
    env.run(until=10)
    assert made.links["own"].capacity == 0
    made.restore("own")
    made.set_bandwidth("own", 200.0)
    env.run()
    assert [each.end for each in both] == pytest.approx([10 + 310 / 90] * 2)


def test_a_delay_comes_before_the_bytes():
    made = network(custom(Slow))
    assert made.seconds(100, "a", "b") == 4.0
    assert ends(made, ("x", 100, "a", 0.0)) == {"x": 4.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"carries": inf}, "link own: carries must return a finite number > 0, got inf"),
        ({"carries": 0.0}, "link own: carries must return a finite number > 0, got 0.0"),
        ({"limit": -1.0}, "link own: limit must return a number >= 0, got -1.0"),
        ({"limit": float("nan")}, "link own: limit must return a number >= 0, got nan"),
        ({"until": 0.0}, "link own: until must return an instant after 0, got 0.0"),
    ],
)
def test_an_impossible_answer_of_a_model_is_an_error_that_names_the_link(options, message):
    with pytest.raises(InputError, match=message):
        network(custom(Broken, **options)).transfer(10, source="a", destination="b")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (lossy(1.0), "options of link wan: loss: must be < 1, got 1.0"),
        (lossy(-0.1), "options of link wan: loss: must be >= 0, got -0.1"),
        (tdma([]), "options of link bus: slots: must be names of sources, got \\[\\]"),
        (tdma(slot=0), "options of link bus: slot: must be > 0, got 0"),
        (custom("tdma", slot=1, slots=["a"], frame=2), "options of link own: unknown option 'frame'"),
        (custom(None, loss=1), "options of link own: must be empty without a model, got {'loss': 1}"),
        (custom("lossy"), "options of link own: missing loss"),
        (custom("disk"), "model of link own: must be a subclass of Link, got"),
        (custom("nonesuch"), "model of link own: unknown model 'nonesuch'; known models: lossy, tdma"),
    ],
)
def test_what_a_link_cannot_be_is_refused_when_the_network_is_built(spec, message):
    with pytest.raises(InputError, match=message):
        network(spec)


def test_loads_of_a_tdma_link_are_recorded():
    env = Environment()
    made = Network(env, [tdma()])
    record = NetworkRecorder(made)
    env.observe(record)
    ends(made, ("x", 250, "a", 0.0))
    steps = record.load("bus")
    assert steps.at([0.5, 1.5, 2.5, 3.5, 4.25, 5.0]).tolist() == [100, 0, 100, 0, 100, 0]


# ---------------------------------------------------------------------- in systems


def machine(model="tdma", **options):
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="vram")],
        architectures=[ArchitectureSpec(name="x")],
        processors=[ProcessorSpec(name="gpu", type="GPU", architecture="x", pool="vram")],
        links=[LinkSpec(name="bus", bandwidth=100.0, between=("ram", "vram"), model=model, options=options)],
    )


def test_data_of_tasks_move_over_a_tdma_link():
    spec = machine(slots=["ram", "vram"], slot=1.0)
    tasks = Workflow(
        [Task(id=i, run=1.0, inputs=["d"], implementations=("GPU",)) for i in range(2)], files=[DataObject("d", 150.0)]
    )
    result = simulate(spec, tasks, "hrr")
    assert result.transfers["end"].tolist() == [2.5]
    assert result.tasks["end"].tolist() == [3.5, 4.5]
    with pytest.raises(InputError, match="contention: must be true: link bus has a model, got False"):
        simulate(spec, tasks, "hrr", contention=False)


def test_a_link_without_snapshots_says_so():
    cut = start(machine(model=Forgetful), Workflow([Task(id=0, run=1.0, implementations=("GPU",))]), "hrr")
    cut.run(until=0.5)
    with pytest.raises(SnapshotError, match="bus cannot be copied: Forgetful has snapshots = False"):
        cut.snapshot()


class Forgetful(Link):
    """A link that cannot be copied."""

    snapshots = False


def test_a_link_with_a_model_is_stored_in_documents_and_trusted_only_on_request():
    spec = NetworkSpec(links=[custom(Contended), tdma()])
    assert [link.model for link in spec.links] == ["tests.resources.network.test_link_models:Contended", "tdma"]
    assert [*spec.models()] == [
        ("links[0].model", "tests.resources.network.test_link_models:Contended"),
        ("links[1].model", "tdma"),
    ]
    made = machine(slots=["ram", "vram"], slot="1s")
    assert from_dict(to_dict(made)) == made
    assert ("links[0].model", "tdma") in [*made.models()]


# ---------------------------------------------------------------------- links with a memory


class TokenBucket(Link):
    """A link at full bandwidth as long as there are tokens: `rate` come a second, of which at most `burst` are kept."""

    takes: ClassVar = {"rate": Option(unit="B/s", above=0), "burst": Option(unit="B", above=0)}
    used, since, flow = 0.0, 0.0, 0.0  # the tokens taken at an instant (s), and the bytes/s from it on

    def carries(self, transfers):
        return self.bandwidth if self.used < self.options["burst"] else self.options["rate"]

    def turns(self, now, load):
        burst, rate = self.options["burst"], self.options["rate"]
        self.used = min(max(0.0, self.used + (self.flow - rate) * (now - self.since)), burst)
        self.since, self.flow = now, load
        return now + (burst - self.used) / (load - rate) if load > rate else inf

    def own_state(self):
        return [self.used, self.since, self.flow]

    def restore_own(self, values):
        self.used, self.since, self.flow = values


class Stateless(TokenBucket):
    own_state = Link.own_state


class Remembers(Link):
    """A token bucket without turns: it counts the tokens where its limits are asked."""

    takes = TokenBucket.takes
    used, since = 0.0, 0.0

    def limit(self, transfer, now):
        self.used = max(0.0, self.used - self.options["rate"] * (now - self.since))
        self.since = now
        return self.bandwidth if self.used < self.options["burst"] else self.options["rate"]


class ByTheClock(Link):
    """Slow in the last minute of each hour, which it does not say."""

    takes: ClassVar = {}

    def limit(self, transfer, now):
        return 1.0 if now % 3600 >= 3540 else inf


class Restless(Link):
    """Each load gives it another capacity, at once."""

    takes: ClassVar = {}
    flips = False

    def carries(self, transfers):
        return 50.0 if self.flips else 100.0

    def turns(self, now, load):
        self.flips = not self.flips
        return inf


class Past(Link):
    takes: ClassVar = {}

    def turns(self, now, load):
        return now - 1.0


def bucket(model=TokenBucket, **options):
    options = {"rate": 30.0, "burst": 140.0} if model is TokenBucket else options
    return LinkSpec(name="wan", bandwidth=100.0, between=("a", "b"), model=model, options=options)


def bucket_ends(sizes, starts):
    """The ends of transfers over the bucket, from one event to the next."""
    left, found = dict(enumerate(sizes)), {}
    now, tokens = 0.0, 140.0
    while left:
        here = [i for i in left if starts[i] <= now]
        load = (100.0 if tokens > 1e-9 else 30.0) if here else 0.0
        steps = [starts[i] - now for i in left if starts[i] > now]
        if here:
            steps.append(min(left[i] for i in here) * len(here) / load)
        if load > 30:
            steps.append(tokens / 70)
        step = min(steps)
        tokens = min(140.0, tokens + (30 - load) * step)
        now += step
        for i in here:
            left[i] -= load / len(here) * step
            if left[i] < 1e-9:
                found[i] = now
                del left[i]
    return [found[i] for i in range(len(sizes))]


@pytest.mark.parametrize(
    ("sizes", "starts", "expected"),
    [
        ([1000], [0.0], [2 + 800 / 30]),  # 140 tokens last 2 s, as 30 of 100 B/s come back
        ([1000, 1000], [0.0, 0.0], [62.0, 62.0]),  # 200 B in 2 s, 1,800 B at 30 B/s
        ([100, 1000], [0.0, 2.0], [1.0, 32.0]),  # 100 tokens at 2 s last 100/70 s: 142.86 B, and 857.14 B at 30 B/s
        ([140], [1e6], [1e6 + 1.4]),
    ],
)
def test_a_token_bucket_by_hand(sizes, starts, expected):
    flows = [(i, size, "a", start) for i, (size, start) in enumerate(zip(sizes, starts, strict=True))]
    found = ends(network(bucket()), *flows)
    assert [found[i] for i in range(len(sizes))] == pytest.approx(expected, rel=1e-14)


def test_a_transfer_below_the_rate_of_the_tokens_uses_none():
    made = network(bucket())
    slow = made.transfer(1000, route=["wan"], rate_cap=20.0)
    made.env.run()
    assert slow.end == 50.0
    again = made.transfer(200, route=["wan"])
    made.env.run()
    assert again.end == 52.0


@settings(max_examples=up_to(60), deadline=None)
@given(
    st.lists(st.tuples(st.floats(1, 500), st.floats(0, 40)), min_size=1, max_size=6),
    st.sampled_from([0.0, 1e6]),
    st.sampled_from(["maxmin", "equal-split"]),
    st.booleans(),
)
def test_token_buckets_against_a_loop_of_events(flows, begin, rule, seen):
    sizes, starts = [size for size, _ in flows], [begin + start for _, start in flows]
    made = network(bucket(), model=rule)
    if seen:
        made.env.observe(NetworkRecorder(made))
    found = ends(made, *((i, size, "a", start) for i, (size, start) in enumerate(zip(sizes, starts, strict=True))))
    assert [found[i] for i in range(len(sizes))] == pytest.approx(bucket_ends(sizes, starts), abs=1e-6)


class Tokens(Observer):
    """Keeps account of the tokens of buckets by the loads that observers are told."""

    def __init__(self, env):
        self.env, self.least, self._of = env, inf, {}

    def link_load_changed(self, link):
        if isinstance(link, TokenBucket) and link.spec.sharing == "shared":
            assert link.load <= link.capacity * (1 + 1e-9)
            burst, rate = link.options["burst"], link.options["rate"]
            tokens, load, since = self._of.get(link.name, (burst, 0.0, 0.0))
            tokens = min(burst, tokens + (rate - load) * (self.env.now - since))
            self.least = min(self.least, tokens)
            self._of[link.name] = tokens, link.load, self.env.now


@pytest.mark.parametrize("seed", range(12))
def test_buckets_in_a_row_never_spend_tokens_that_they_have_not(seed):
    rng = Random(seed)
    env = Environment(seed=1)

    def made(name, **options):
        given = {"rate": rng.uniform(5, 90), "burst": rng.uniform(1, 200)}
        return LinkSpec(name=name, bandwidth=100.0, latency=rng.random(), model=TokenBucket, options=given, **options)

    links = [made("x"), made("y"), made("z"), made("pipe", sharing="fatpipe"), LinkSpec(name="plain", bandwidth=60.0)]
    net = Network(env, links)
    env.observe(watch := Tokens(env))
    sent = []
    for _ in range(30):
        route = rng.sample([each.name for each in links], rng.randint(1, 4))
        more = {"weight": rng.choice([1, 2]), "rate_cap": rng.choice([None, 25.0])}
        size = rng.uniform(1, 400)
        env.call_at(rng.uniform(0, 60), lambda a=size, b=route, c=more: sent.append(net.transfer(a, route=b, **c)))
    env.call_at(20, lambda: net.fail("x"))
    env.call_at(30, lambda: net.restore("x"))
    env.run()
    assert [each.status for each in sent] == ["done"] * 30
    assert watch.least >= -1e-9


def test_a_read_of_a_rate_sees_the_capacity_that_follows_from_the_load():
    made = network(bucket())
    moving = made.transfer(1000, route=["wan"])
    made.env.run(until=10)
    assert moving.rate == 30.0
    moving.cancel()
    made.env.run(until=14)  # 120 tokens are back
    assert made.transfer(1000, route=["wan"]).rate == 100.0


def test_links_with_a_memory_are_checked():
    check_resource(TokenBucket, rate="30B/s", burst=140)
    with pytest.raises(AssertionError, match=r"Stateless, continued from its snapshot .*own_state"):
        check_resource(Stateless, rate="30B/s", burst=140)
    with pytest.raises(AssertionError, match=r"Remembers: a question changes used, since: .*turns\(now, load\)"):
        check_resource(Remembers, rate="30B/s", burst=140)
    with pytest.raises(AssertionError, match=r"ByTheClock: limit is inf bytes/s at .* and 1 at .*until\(now\)"):
        check_resource(ByTheClock)


def test_models_that_turn_wrongly_are_errors():
    for model, says in ((Restless, "link wan: carries must come to rest at an instant"), (Past, "after 0, got -1.0")):
        made = network(bucket(model))
        made.transfer(1000, route=["wan"])
        with pytest.raises(InputError, match=says):
            made.env.run()
