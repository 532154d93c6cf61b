"""The solver: max-min cases worked by hand, and the incremental solution against full progressive filling."""

from math import inf

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.resources.sharing import Channel, Group, Sharing, max_min_rates

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


def incremental(capacities, routes, weights=None, caps=None, order=None):
    """Build the solution by single changes, solving after each."""
    channels = {name: Channel(name, capacity) for name, capacity in capacities.items()}
    sharing = Sharing()
    groups = [None] * len(routes)
    for i in order if order is not None else range(len(routes)):
        route = routes[i] if isinstance(routes[i], dict) else dict.fromkeys(routes[i], 1.0)
        weight = weights[i] if weights else 1.0
        uses = [(channels[name], factor) for name, factor in route.items()]
        groups[i] = Group(uses, weight, (caps[i] if caps else inf) / weight)
        sharing.join(groups[i])
        sharing.solve()
    return [group.demand * group.level for group in groups]


@pytest.mark.parametrize("case", HAND)
def test_hand_cases(case):
    capacities, routes, weights, caps, rates = HAND[case]
    assert max_min_rates(capacities, routes, weights, caps) == pytest.approx(rates, rel=1e-12)
    assert incremental(capacities, routes, weights, caps) == pytest.approx(rates, rel=1e-12)
    assert incremental(capacities, routes, weights, caps, range(len(routes))[::-1]) == pytest.approx(rates, rel=1e-12)


def test_weights_of_very_different_size():
    routes, weights = ["a"] * 3 + ["ab"] * 2, [1e9, 1.0, 1e-6, 1e9, 1.0]
    rates = max_min_rates({"a": 7.0, "b": 1e-9}, routes, weights)
    assert incremental({"a": 7.0, "b": 1e-9}, routes, weights) == pytest.approx(rates, rel=1e-12)


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


@settings(max_examples=400, deadline=None)
@given(st.tuples(*[CAPACITIES] * len(NAMES)), CHANGES)
def test_incremental_equals_full_filling_after_every_change(capacities, batches):
    channels = {name: Channel(name, capacity) for name, capacity in zip(NAMES, capacities, strict=True)}
    sharing = Sharing()
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
