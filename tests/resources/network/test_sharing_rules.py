"""Rules of sharing: equal split and strict priority by hand, a rule against the solver, and rules that are wrong."""

from math import inf
from random import Random

import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform import GridSpec, LinkSpec, NetworkSpec, SharingModel, SiteSpec
from simmodel.platform.kinds import to_dict
from simmodel.platform.network import MODELS
from simmodel.platform.toml import from_dict
from simmodel.resources import Network
from simmodel.resources.network.sharing import max_min_rates
from simmodel.resources.network.sharing_rule import SharingRule
from tests.helpers.network_flows import flow, link, run


class MaxMin(SharingRule):
    """Max-min fairness, by the slow reference."""

    def rates(self, flows):
        capacities = {link.name: link.capacity for flow in flows for link in flow.links}
        routes = [[link.name for link in flow.links] for flow in flows]
        return max_min_rates(capacities, routes, [flow.weight for flow in flows], [flow.cap for flow in flows])


class Wrong(SharingRule):
    """A rule whose rates are those of its options."""

    def rates(self, flows):
        return self.options["rates"]


class Bare(SharingRule):
    """A rule that says nothing."""


def network(model, *links):
    return Network(Environment(), NetworkSpec(links=links, model=model))


X, Y = link("x", 90.0), link("y", 20.0)


def test_equal_split_by_hand():
    # x: three transfers, 30 each; z is held to 20 by y, and nobody has its other 10.
    made = network("equal-split", X, Y)
    flows = [flow("u", 300, "x"), flow("v", 600, "x"), flow("z", 400, "xy")]
    # 0-10: u 30, v 30, z 20. From 10: v 45 (x is shared by two), z 20: v has its 300 more at 10 + 300/45.
    assert run(made, flows) == {"u": 10.0, "v": pytest.approx(10 + 300 / 45), "z": 20.0}


def test_strict_priority_by_hand():
    made = network("strict-priority", X, Y)
    low = made.transfer(900, route=["x"], weight=1)
    high = made.transfer(200, route=["x", "y"], weight=5)
    equal = made.transfer(100, route=["y"], weight=5)
    # 0-10: high and equal 10 each on y, low 80 on x. 10-15: high 20, low 70. From 15: low 90, of which it lacks none.
    assert (low.rate, high.rate, equal.rate) == (80.0, 10.0, 10.0)
    made.env.run()
    assert (equal.end, high.end) == (10.0, 15.0)
    assert low.end == 10 + 100 / 70


def test_a_cap_binds_before_a_rule_does():
    made = network("equal-split", X, LinkSpec(name="pipe", bandwidth=25.0, sharing="fatpipe"))
    capped = made.transfer(90, route=["x"], rate_cap=10)
    piped = made.transfer(90, route=["x", "pipe"])
    assert (capped.rate, piped.rate) == (10.0, 25.0)


def test_rules_and_corrections_go_together():
    model = SharingModel(name="slow start", rule="equal-split", latency_factor=2.0, bandwidth_factor=0.5)
    made = network(model, link("x", 100.0, latency=1.0))
    both = [made.transfer(100, route=["x"]) for _ in range(2)]
    made.env.run()
    assert [each.end for each in both] == [2.0 + 100 / 25] * 2


@pytest.mark.parametrize("seed", range(12))
def test_max_min_fairness_as_a_rule_is_max_min_fairness(seed):
    rng = Random(seed)
    links = [link(name, rng.randint(10, 100)) for name in "abcde"]
    flows = [
        flow(
            i,
            rng.randint(1, 500),
            rng.sample("abcde", rng.randint(1, 3)),
            rng.randint(0, 20),
            weight=rng.choice([1.0, 2.0]),
            rate_cap=rng.choice([None, 7.0]),
        )
        for i in range(25)
    ]
    expected = run(network("maxmin", *links), flows)
    assert run(network(MaxMin, *links), flows) == pytest.approx(expected)


def test_a_link_that_changes_asks_the_rule_again():
    made = network("equal-split", X)
    both = [made.transfer(900, route=["x"]) for _ in range(2)]
    made.env.run(until=10)
    made.set_bandwidth("x", 180.0)
    made.env.run(until=12)
    made.fail("x")
    made.env.run(until=20)
    made.restore("x")
    made.env.run()
    assert [each.end for each in both] == [pytest.approx(20 + 270 / 90)] * 2


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([60.0, 40.0], "link x: Wrong.rates give 100 bytes/s to transfers over it, its capacity is 90"),
        ([60.0], "Wrong.rates must return a rate for each of 2 flows, got 1"),
        ([60.0, -1.0], "Wrong.rates must be from 0 to the cap of inf bytes/s, got -1.0"),
        ([60.0, inf], "Wrong.rates must be from 0 to the cap of inf bytes/s, got inf"),
        ([30.0, float("nan")], "Wrong.rates must be from 0 to the cap of inf bytes/s, got nan"),
        ([31.0, 30.0], "Wrong.rates must be from 0 to the cap of 30 bytes/s, got 31.0"),
    ],
)
def test_rates_that_cannot_be_are_errors_that_name_the_link_or_the_transfer(rates, message):
    made = network(SharingModel(name="own", rule=Wrong, options={"rates": rates}), X)
    made.transfer(100, route=["x"], rate_cap=30 if "cap of 30" in message else None)
    made.transfer(100, route=["x"])
    with pytest.raises(InputError, match=message):
        made.env.run()


def test_what_a_rule_cannot_do_is_refused_when_the_network_is_built():
    with pytest.raises(InputError, match="crosstraffic: must be false: rule equal-split has no crosstraffic"):
        NetworkSpec(links=[X], model="equal-split", crosstraffic=True)
    with pytest.raises(InputError, match="unknown model 'equal'; known models: maxmin"):
        NetworkSpec(links=[X], model="equal")
    with pytest.raises(InputError, match="model disk, rule: must be a subclass of SharingRule, got"):
        network("disk", X)
    with pytest.raises(InputError, match="options of model e: unknown option 'x'"):
        network(SharingModel(name="e", rule="equal-split", options={"x": 1}), X)


@pytest.mark.parametrize(
    "model", ["equal-split", Wrong, SharingModel(name="own", rule=Wrong, options={"rates": [1]}, weight_s=3.0), "lv08"]
)
def test_rules_are_stored_in_documents(model):
    spec = GridSpec(sites=[SiteSpec(name="a", cores=1)], network=NetworkSpec(links=[X], model=model))
    document = to_dict(spec)
    assert from_dict(document) == spec
    if model == "equal-split":
        assert document["network"]["model"] == "equal-split"
        assert ("network.model.rule", "equal-split") in [*spec.models()]
    assert set(MODELS) == {"maxmin", "cm02", "lv08", "simgrid", "simgrid-cm02"}
