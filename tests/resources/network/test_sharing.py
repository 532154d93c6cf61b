"""The solver: max-min cases worked by hand, and the incremental solution against full progressive filling."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.foundation.errors import InputError
from simmodel.resources.network.bundle import Bundle
from simmodel.resources.network.crowd import fill_levels
from simmodel.resources.network.flow import Channel, Group
from simmodel.resources.network.links import Link
from simmodel.resources.network.sharing import Sharing, max_min_rates
from tests.helpers.examples import up_to

PLAIN = (10**9, 0, 10**9)  # always filled, never a crowd
CROWD = (1, 0)  # a crowd of any two groups
FOLLOW = (10**9, 0, 0)  # every change is followed from channel to channel

# Capacities, routes, weights, caps, rates: worked by hand.
HAND = {
    "nothing": ({"a": 1}, [], None, None, []),
    "alone": ({"a": 100}, ["a"], None, None, [100]),
    "backbone behind access links 10, 100, 100": (
        {"x": 10, "y": 100, "z": 100, "backbone": 60},
        [["x", "backbone"], ["y", "backbone"], ["z", "backbone"]],
        None,
        None,
        [10, 25, 25],
    ),
    "parking lot": ({"a": 30, "b": 100}, ["ab", "a", "b"], None, None, [15, 15, 85]),
    "parking lot of three": ({"a": 12, "b": 12, "c": 12}, ["abc", "a", "b", "c"], None, None, [6, 6, 6, 6]),
    "three levels": ({"a": 10, "b": 40, "c": 100}, ["a", "ab", "b", "bc", "c"], None, None, [5, 5, 17.5, 17.5, 82.5]),
    "caps leave their rest": ({"a": 100}, ["a", "a", "a"], None, [20, inf, inf], [20, 40, 40]),
    "caps that do not bind": ({"a": 90}, ["a", "a", "a"], None, [30, 50, 90], [30, 30, 30]),
    "weights": ({"a": 100}, ["a", "a"], [1, 3], None, [25, 75]),
    "weights over two links": ({"a": 100, "b": 60}, ["a", "ab", "b"], [1, 1, 2], None, [80, 20, 40]),
    "a weight with a cap": ({"a": 100}, ["a", "a"], [1, 3], [inf, 30], [70, 30]),
    "a link that is down": ({"a": 0, "b": 10}, ["ab", "b"], None, None, [0, 10]),
    "cross traffic": ({"a": 210}, [{"a": 1.05}, {"a": 1.05}], None, None, [100, 100]),
    "cross traffic the other way": (
        {"a": 105, "b": 105},
        [{"a": 1, "b": 0.05}, {"a": 0.05, "b": 1}],
        None,
        None,
        [100, 100],
    ),
    "zero cap": ({"a": 10}, ["a", "a"], None, [0, inf], [0, 10]),
}


def incremental(capacities, routes, weights=None, caps=None, order=None, crowd=PLAIN):
    """Build the solution by single changes, solving after each."""
    channels = {name: Channel(name, capacity) for name, capacity in capacities.items()}
    sharing = Sharing(*crowd)
    groups = [None] * len(routes)
    for i in order if order is not None else range(len(routes)):
        route = routes[i] if isinstance(routes[i], dict) else dict.fromkeys(routes[i], 1.0)
        weight = weights[i] if weights else 1.0
        uses = [(channels[name], factor) for name, factor in route.items()]
        groups[i] = Group(uses, weight, (caps[i] if caps else inf) / weight)
        sharing.join(groups[i])
        sharing.solve()
    sharing.tell()
    return [group.demand * group.level for group in groups]


@pytest.mark.parametrize("crowd", [PLAIN, CROWD, FOLLOW], ids=["plain", "crowd", "follow"])
@pytest.mark.parametrize("case", HAND)
def test_max_min_rates_are_as_by_hand(case, crowd):
    capacities, routes, weights, caps, rates = HAND[case]
    assert max_min_rates(capacities, routes, weights, caps) == pytest.approx(rates, rel=1e-12)
    for order in (range(len(routes)), range(len(routes))[::-1]):
        assert incremental(capacities, routes, weights, caps, order, crowd) == pytest.approx(rates, rel=1e-12)


@pytest.mark.parametrize("crowd", [PLAIN, CROWD, FOLLOW], ids=["plain", "crowd", "follow"])
def test_weights_of_very_different_size(crowd):
    routes, weights = ["a"] * 3 + ["ab"] * 2, [1e9, 1.0, 1e-6, 1e9, 1.0]
    rates = max_min_rates({"a": 7.0, "b": 1e-9}, routes, weights)
    assert incremental({"a": 7.0, "b": 1e-9}, routes, weights, crowd=crowd) == pytest.approx(rates, rel=1e-12)


def test_a_change_reaches_only_those_above_it_behind_full_channels():
    """Two pairs of links connected by a capped group: a change of one pair does not affect the other."""
    left, right = Channel("left", 10.0), Channel("right", 100.0)
    sharing = Sharing()
    one, other = Group([(left, 1.0)], 1.0), Group([(right, 1.0)], 1.0, ceiling=50.0)
    both = Group([(left, 1.0), (right, 1.0)], 1.0)
    for group in (one, other, both):
        sharing.join(group)
    sharing.solve()
    assert (one.level, other.level, both.level) == (5, 50, 5)
    newcomer = Group([(right, 1.0)], 1.0, ceiling=10.0)
    sharing.join(newcomer)
    groups, channels = sharing.solve()
    assert groups == [newcomer]
    assert channels == [right]
    assert right.load == 65


def test_a_newcomer_leaves_those_alone_that_have_less_than_its_share():
    left, right = Channel("left", 10.0), Channel("right", 100.0)
    sharing = Sharing()
    one, both = Group([(left, 1.0)], 1.0), Group([(left, 1.0), (right, 1.0)], 1.0)
    other, newcomer = Group([(right, 1.0)], 1.0), Group([(right, 1.0)], 1.0)
    for group in (one, other, both):
        sharing.join(group)
    sharing.solve()
    assert (one.level, other.level, both.level) == (5, 95, 5)
    sharing.join(newcomer)
    groups, channels = sharing.solve()
    assert {id(group) for group in groups} == {id(other), id(newcomer)}
    assert channels == [right]
    assert (one.level, other.level, both.level, newcomer.level) == (5, 47.5, 5, 47.5)


def test_who_rises_on_one_channel_takes_from_those_that_have_more_on_the_next():
    """Once the left channel is wide, the right one, which was not full, limits both users to half of it."""
    left, right = Channel("left", 10.0), Channel("right", 100.0)
    sharing = Sharing()
    neighbour, other = Group([(left, 1.0)], 1.0), Group([(right, 1.0)], 1.0, ceiling=80.0)
    both = Group([(left, 1.0), (right, 1.0)], 1.0)
    for group in (neighbour, other, both):
        sharing.join(group)
    sharing.solve()
    assert (neighbour.level, other.level, both.level) == (5, 80, 5)
    left.capacity = 1000.0
    sharing.refit(left)
    sharing.solve()
    assert (neighbour.level, other.level, both.level) == (950, 50, 50)


NAMES = "abcdefg"
CAPACITIES = st.sampled_from([0.0, 1.0, 2.0, 3.0, 10.0, 10.0, 30.0, 1e3, 1e9]) | st.floats(0.1, 1e4)
ROUTES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
WEIGHTS = st.sampled_from([1.0, 1.0, 2.0, 3.0, 1e-3, 1e3]) | st.floats(0.01, 100)
CAPS = st.sampled_from([inf, inf, 1.0, 5.0]) | st.floats(0.01, 1e3)
JOIN = st.tuples(st.just("join"), ROUTES, WEIGHTS, CAPS, st.sampled_from([1.0, 1.0, 1.0, 0.05, 1.05]))
LEAVE = st.tuples(st.just("leave"), st.integers(0, 30))
RESIZE = st.tuples(st.just("resize"), st.integers(0, 30), WEIGHTS)
REFIT = st.tuples(st.just("refit"), st.sampled_from(NAMES), CAPACITIES)
CHANGES = st.lists(st.lists(JOIN | JOIN | LEAVE | RESIZE | REFIT, min_size=1, max_size=3), min_size=1, max_size=25)


@pytest.mark.parametrize(
    "crowd",
    [PLAIN, CROWD, FOLLOW, (3, 0), (10**9, 0, 3), (5, 0, 2)],
    ids=["plain", "crowd", "follow", "crowd from three on", "follow from four on", "follow, and a crowd from five on"],
)
@settings(max_examples=up_to(400), deadline=None)
@given(st.tuples(*[CAPACITIES] * len(NAMES)), CHANGES)
def test_incremental_equals_full_filling_after_every_change(crowd, capacities, batches):
    channels = {name: Channel(name, capacity) for name, capacity in zip(NAMES, capacities, strict=True)}
    sharing = Sharing(*crowd)
    groups = []
    for batch in batches:
        for kind, *what in batch:
            if kind == "join":
                route, weight, cap, factor = what
                group = Group(
                    [(channels[name], factor if k else 1.0) for k, name in enumerate(route)], weight, cap / weight
                )
                groups.append(group)
                sharing.join(group)
            elif kind == "leave" and groups:
                sharing.leave(groups.pop(what[0] % len(groups)))
            elif kind == "resize" and groups:
                group = groups[what[0] % len(groups)]
                change = sharing.grow if what[1] > group.demand else sharing.shrink
                group.demand = what[1]
                change(group)
            elif kind == "refit":
                channels[what[0]].capacity = what[1]
                sharing.refit(channels[what[0]])
        before = {group: group.level for group in groups}
        changed, _ = sharing.solve()
        changed += sharing.tell()
        full = max_min_rates(
            {name: channel.capacity for name, channel in channels.items()},
            [{channel.name: factor for channel, factor in group.uses} for group in groups],
            [group.demand for group in groups],
            [group.ceiling * group.demand for group in groups],
        )
        assert [group.demand * group.level for group in groups] == pytest.approx(full, rel=1e-9)
        assert len(set(changed)) == len(changed)
        assert all(group in changed for group in groups if group.level != before[group])
        for channel in channels.values():
            load = sum(factor * user.demand * user.level for user, factor in channel.users)
            assert load <= channel.capacity * (1 + 1e-11)
            assert channel.load == pytest.approx(load, rel=1e-12)
        assert not sharing.waiting


GROUPS = st.lists(
    st.tuples(ROUTES, WEIGHTS, CAPS, st.sampled_from([1.0, 1.0, 1.0, 0.05, 1.05])), min_size=2, max_size=40
)


@settings(max_examples=up_to(400), deadline=None)
@given(st.tuples(*[CAPACITIES] * len(NAMES)), GROUPS)
def test_filling_in_columns_equals_full_filling(capacities, groups):
    routes = [{name: factor if k else 1.0 for k, name in enumerate(route)} for route, _, _, factor in groups]
    weights, caps = [weight for _, weight, _, _ in groups], [cap for _, _, cap, _ in groups]
    full = max_min_rates(dict(zip(NAMES, capacities, strict=True)), routes, weights, caps)
    chan, weight = np.zeros((len(groups), 4), np.intp), np.zeros((len(groups), 4))
    for i, route in enumerate(routes):
        for k, (name, factor) in enumerate(route.items()):
            chan[i, k] = 1 + NAMES.index(name)
            weight[i, k] = factor * weights[i]
    levels = fill_levels(chan, weight, np.array(caps) / np.array(weights), np.array([inf, *capacities]))
    assert (levels * weights).tolist() == pytest.approx(full, rel=1e-12)


@pytest.mark.parametrize("other", [(200, 0), (10**9, 0, 0), (300, 0, 20)], ids=["crowd", "follow", "both"])
@pytest.mark.parametrize("channels", [60, 1500])
def test_many_groups_by_columns_or_followed_have_the_levels_of_the_plain_solver(channels, other):
    """The same joins, leaves and new capacities for both solvers, on more channels than one count of loads takes."""
    random = np.random.default_rng(channels)
    plain, crowd = Sharing(*PLAIN), Sharing(*other)
    pairs = [
        (Channel(str(i), x), Channel(str(i), x)) for i, x in enumerate(random.uniform(10, 1000, channels).tolist())
    ]
    groups = []

    def join():
        route = random.choice(channels, random.integers(1, 5), replace=False).tolist()
        factors = [1.0, *random.choice([1.0, 0.05], len(route) - 1).tolist()]
        weight, cap = float(random.uniform(0.1, 10)), float(random.choice([inf, random.uniform(0.01, 30)]))
        both = tuple(
            Group([(pairs[i][side], factor) for i, factor in zip(route, factors, strict=True)], weight, cap / weight)
            for side in (0, 1)
        )
        groups.append(both)
        plain.join(both[0]), crowd.join(both[1])

    def compare():
        plain.solve(), crowd.solve()
        crowd.tell()
        assert [b.level for _, b in groups] == pytest.approx([a.level for a, _ in groups], rel=1e-12)
        assert [b.load for _, b in pairs] == pytest.approx([a.load for a, _ in pairs], rel=1e-11)

    for _ in range(up_to(1200, 700)):
        join()
    compare()
    assert (crowd.crowd is not None) == (other[0] < 10**9)
    for step in range(up_to(60, 25)):
        a, b = groups.pop(int(random.integers(len(groups))))
        plain.leave(a), crowd.leave(b)
        if step % 3:
            join()
        if step % 10 == 0:
            a, b = pairs[int(random.integers(channels))]
            a.capacity = b.capacity = float(random.uniform(0, 1000))
            plain.refit(a), crowd.refit(b)
        compare()
    crowd.disband()
    join()
    compare()


def test_a_change_is_followed_only_to_those_that_it_moves():
    """A chain of links, each with a group of its own and one that also uses the next: a change fades along it."""
    links = [Channel(str(i), 100.0 + 40 * i) for i in range(80)]
    sharing = Sharing(reach=0)
    for one, next_one in pairwise(links):
        sharing.join(Group([(one, 1.0)], 1.0))
        sharing.join(Group([(one, 1.0), (next_one, 1.0)], 1.0))
    sharing.solve()
    newcomer = Group([(links[40], 1.0)], 1.0)
    sharing.join(newcomer)
    before = {id(group): group.level for link in links for group, _ in link.users}
    groups, channels = sharing.solve()
    assert newcomer in groups
    assert [group for group in groups if group is not newcomer and group.level == before[id(group)]] == []
    assert len(channels) < 80


@pytest.mark.parametrize(
    ("base", "name"), [(Channel, "load"), (Link, "load"), (Group, "level"), (Bundle, "demand"), (Sharing, "reach")]
)
def test_a_subclass_overrides_no_attribute_by_a_property(base, name):
    with pytest.raises(InputError, match=f"class Own: {name} is an attribute of .*cannot override it by a property"):
        type("Own", (base,), {name: property(lambda self: 1)})
    own = type("Own", (base,), {"own": property(lambda self: 1)})
    type("Further", (own,), {"own": property(lambda self: 2)})
