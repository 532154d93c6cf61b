"""Rates of jobs that are one fluid each: SimGrid's rule, max-min, and the bytes over links that patterns cause."""

import gzip
import json
from math import fsum, inf

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.platform.topology import Valiant, read_topology
from simmodel.resources.network.progress import Fluid, Fluids, LinkUsage, rates_of
from simmodel.resources.network.sharing import max_min_rates
from simmodel.work.traffic import PATTERNS, Phase, Phases, Traffic
from tests.helpers.examples import up_to
from tests.helpers.paths import REFERENCE
from tests.oracles.talking_jobs import Talker, fair_bottleneck, play

LINKS = [f"link {number}" for number in range(8)]
AMOUNTS = st.sampled_from([1e8, 2e8, 1.5e8]) | st.floats(1e6, 1e9)
CAPACITIES = st.fixed_dictionaries({name: st.sampled_from([1.25e8, 2.5e8]) | st.floats(1e6, 1e9) for name in LINKS})
JOBS = st.lists(st.dictionaries(st.sampled_from(LINKS), AMOUNTS, min_size=1), min_size=1, max_size=10)


def loads(capacities, jobs, rates):
    return {name: fsum(uses.get(name, 0) * rate for uses, rate in zip(jobs, rates, strict=True)) for name in capacities}


# ---------------------------------------------------------------------- the rule


@pytest.mark.parametrize("name", ["jobs-torus-8x8", "jobs-dragonfly-3x4x5"])
def test_jobs_end_as_those_of_simgrid(name):
    path = REFERENCE / "topology" / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name}")
    given = json.loads(gzip.decompress(path.read_bytes()))
    jobs = given["jobs"]
    ceilings = [given["speed"] / job["flops"] if job["flops"] else inf for job in jobs]
    talkers = [Talker(job["start"], job["usage"]) for job in jobs]

    def rates(order):
        return rates_of(given["links"], [jobs[i]["usage"] for i in order], [ceilings[i] for i in order])

    assert play(given["links"], talkers, rates) == pytest.approx([job["end"] for job in jobs], rel=1e-12)


def test_three_jobs_show_what_simgrids_rule_leaves_unused():
    # Job 1 is done in the first round, and the second link counts its last step again in the next: job 0 gets 23/6.
    capacities = {"wide": 8.0, "mean": 4.0, "thin": 1.0}
    jobs = [{"wide": 1.0}, {"wide": 1.0, "mean": 1.0, "thin": 1.0}, {"wide": 1.0, "mean": 1.0}]
    assert rates_of(capacities, jobs) == pytest.approx([23 / 6, 1, 3], rel=1e-14)
    assert loads(capacities, jobs, rates_of(capacities, jobs))["wide"] == pytest.approx(47 / 6)
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):  # but who came first does not matter
        assert rates_of(capacities, [jobs[i] for i in order])[order.index(0)] == pytest.approx(23 / 6, rel=1e-14)
    # alone 8, 1 and 4: all are slowed by 13/8
    assert rates_of(capacities, jobs, rule="max-min") == pytest.approx([8 / 13 * each for each in (8, 1, 4)])


@settings(max_examples=up_to(2000, 100))
@given(CAPACITIES, JOBS)
def test_the_rule_is_that_of_the_rounds_and_no_link_carries_more_than_it_can(capacities, jobs):
    rates = rates_of(capacities, jobs)
    assert rates == pytest.approx(fair_bottleneck(capacities, jobs), rel=1e-9)
    assert all(load <= capacities[name] * (1 + 1e-9) for name, load in loads(capacities, jobs, rates).items())


@settings(max_examples=up_to(2000, 100))
@given(CAPACITIES, JOBS, st.lists(st.just(inf) | st.floats(1e-3, 10.0), min_size=10, max_size=10))
def test_max_min_gives_each_job_a_full_link_or_full_processors(capacities, jobs, ceilings):
    ceilings = ceilings[: len(jobs)]
    rates = rates_of(capacities, jobs, ceilings, "max-min")
    used = loads(capacities, jobs, rates)
    assert all(load <= capacities[name] * (1 + 1e-9) for name, load in used.items())
    for uses, rate, ceiling in zip(jobs, rates, ceilings, strict=True):
        assert rate >= ceiling * (1 - 1e-9) or any(used[name] >= capacities[name] * (1 - 1e-9) for name in uses)
    alone = [
        min(ceiling, *(capacities[name] / amount for name, amount in uses.items()))
        for uses, ceiling in zip(jobs, ceilings, strict=True)
    ]
    assert rates == pytest.approx(max_min_rates(capacities, jobs, alone, ceilings), rel=1e-9)


@given(
    CAPACITIES,
    JOBS,
    st.lists(st.integers(0, 19), min_size=1, max_size=30),
    st.sampled_from(["fair-bottleneck", "max-min"]),
)
def test_solving_what_a_change_reaches_is_solving_all_to_the_last_bit(capacities, jobs, changes, rule):
    capacity = np.array(list(capacities.values()))
    places = [np.array([LINKS.index(name) for name in uses]) for uses in jobs]
    amounts = [np.array(list(uses.values())) for uses in jobs]

    def fluid(number):
        return Fluid(number, places[number % len(jobs)], amounts[number % len(jobs)])

    fluids, live = Fluids(rule), {}
    for number in changes:
        if number in live:
            fluids.leave(live.pop(number))
        else:
            live[number] = fluid(number)
            fluids.join(live[number], capacity)
        fluids.solve()
        if rule == "fair-bottleneck":
            anew = Fluids(rule)
            for other in sorted(live):
                anew.join(fluid(other), capacity)
            assert [live[other].rate for other in sorted(live)] == [each.rate for each in anew.solve()]


def test_a_change_reaches_only_those_that_share_links_with_it():
    capacity = np.full(4, 10.0)
    fluids = Fluids()
    near, next_to_it, far = (
        Fluid(i, np.array(links), np.ones(len(links))) for i, links in enumerate([[0, 1], [1], [3]])
    )
    for each in (near, next_to_it, far):
        fluids.join(each, capacity)
    assert fluids.solve() == [near, next_to_it, far]
    assert (near.rate, next_to_it.rate, far.rate, near.limit, near.beside, far.limit) == (5, 5, 10, 1, next_to_it, -1)
    fluids.leave(near)
    assert fluids.solve() == [next_to_it]
    assert next_to_it.rate == 10
    assert next_to_it.beside is None


def test_the_rule_does_not_depend_on_the_unit_of_bytes():
    capacities, jobs = {"a": 8.0, "b": 3.0}, [{"a": 1.0, "b": 2.0}, {"a": 3.0}, {"b": 1.0}]
    for scale in (1e-30, 1e30):
        large = [{name: amount * scale for name, amount in uses.items()} for uses in jobs]
        wide = {name: capacity * scale for name, capacity in capacities.items()}
        assert rates_of(wide, large) == pytest.approx(rates_of(capacities, jobs), rel=1e-12)


# ---------------------------------------------------------------------- bytes over links

TOPOLOGIES = [
    "torus:5,4,3",
    "torus:2,3",
    "torus:1,5",
    "torus:7,6 wrap=false",
    "torus:4,4 sharing=shared",
    "torus:4,4 limiter=7",
    "fat-tree:2;8,8;1,4;1,1",
    "fat-tree:3;3,4,2;2,3,2;2,1,3",
    "fat-tree:2;4,4;2,2;3,2 sharing=shared",
    "tree:4,3,2",
    "star:7",
    "star:7 backbone=3",
    "dragonfly:3,4;4,3;5,1;2",
    "dragonfly:3,4;4,3;5,1;1 continuous=true",
    "dragonfly:2;2;3;4 sharing=shared",
    "valiant:3 torus:4,4",
]


@pytest.mark.parametrize("text", TOPOLOGIES)
def test_all_pairs_at_once_load_the_links_of_their_routes(text):
    kind, _, options = text.partition(" limiter")
    topology = read_topology(f"{kind} bandwidth=10{f' limiter{options}' if options else ''}")
    sources, destinations, _ = Traffic("all-to-all").messages(len(topology.hosts))
    amounts = np.random.default_rng(1).uniform(1, 2, len(sources))
    usage = LinkUsage(topology)
    links, found = usage.of(sources, destinations, amounts)
    wanted = {}
    for source, destination, amount in zip(sources.tolist(), destinations.tolist(), amounts.tolist(), strict=True):
        for name in topology.route(source, destination):
            wanted[name] = wanted.get(name, 0.0) + amount
    assert dict(zip(map(usage.name, links.tolist()), found.tolist(), strict=True)) == pytest.approx(wanted)
    assert usage.capacity[links].tolist() == [topology.link(usage.name(link)).bandwidth for link in links.tolist()]
    assert isinstance(topology, Valiant) or usage.where(int(links[0])).count(" - ") in (0, 1)


def test_a_fatpipe_is_for_each_job_alone():
    usage = LinkUsage(read_topology("star:4 bandwidth=10 sharing=fatpipe"))
    fluids = Fluids()
    jobs = [Fluid(i, *usage.of(np.array([0]), np.array([1]), np.array([5.0]))) for i in range(3)]
    for job in jobs:
        fluids.join(job, usage.capacity, usage.apart)
    assert [job.rate for job in fluids.solve()] == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("nodes", [1, 2, 3, 6, 8, 13, 27])
def test_patterns_send_among_the_nodes_of_a_job_each_message_once(pattern, nodes):
    traffic = Traffic(pattern, bytes="1kB", repeats=2)
    sources, destinations, amounts = traffic.messages(nodes)
    pairs = list(zip(sources.tolist(), destinations.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert all(a != b and 0 <= a < nodes and 0 <= b < nodes for a, b in pairs)
    assert set(amounts.tolist()) <= {2000.0}
    assert traffic.total(nodes) == 2000.0 * len(pairs)
    if nodes > 1:
        assert {end for pair in pairs for end in pair} == set(range(nodes))
    if pattern != "ring":
        assert {(b, a) for a, b in pairs} == set(pairs)


@pytest.mark.parametrize(
    ("pattern", "nodes", "pairs"),
    [
        ("ring", 3, [(0, 1), (1, 2), (2, 0)]),
        ("tree", 4, [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (3, 1)]),
        ("stencil-2d", 4, [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]),
        ("stencil-3d", 3, [(0, 1), (0, 2), (1, 0), (2, 0)]),
        ("butterfly", 3, [(0, 1), (0, 2), (1, 0), (2, 0)]),
    ],
)
def test_small_patterns_by_hand(pattern, nodes, pairs):
    sources, destinations, _ = Traffic(pattern).messages(nodes)
    assert sorted(zip(sources.tolist(), destinations.tolist(), strict=True)) == pairs


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Traffic("rong"), "unknown pattern 'rong'"),
        (lambda: Traffic([[0, 1]]), "a row and a column for each node"),
        (lambda: Traffic([[0, -1], [1, 0]]), r"pattern\[0\]: must have amounts >= 0"),
        (lambda: Phases([]), "steps: must have a phase"),
        (lambda: Phases([Phase(compute=1)], repeats=0), "repeats: must be a whole number >= 1, got 0"),
        (lambda: Phase(), "compute: must be > 0 in a phase without traffic"),
        (lambda: Traffic("ring", bytes=0), "bytes: must be a number > 0"),
        (lambda: Traffic("ring", repeats=inf), "repeats: must be a number > 0"),
        (lambda: Fluids("max"), "unknown rule 'max'"),
    ],
)
def test_wrong_traffic_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()
