"""Shares by site against their closed form, and by hand."""

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Environment, Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.platform import GridSpec, NodeSpec, SiteOutageSpec, SiteSpec
from simmodel.policies import Shares
from simmodel.scheduling.registry import policy
from simmodel.systems import Grid
from tests.helpers.examples import up_to


def went(sites, shares, jobs, **options):
    """Return the sites of jobs; each site has so many cores."""
    spec = GridSpec(sites=[SiteSpec(name=name, cores=cores) for name, cores in sites.items()], **options)
    return simulate(spec, jobs, shares).jobs["site"].tolist()


def small(count, first=0):
    return [Job(id=first + i, submit=i // 3, run=5) for i in range(count)]


@settings(max_examples=up_to(60), deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 60))
def test_the_first_of_two_sites_gets_its_rounded_share_of_any_number_of_jobs(a, b, count):
    sites = went({"a": 4, "b": 4}, Shares((a, b)), small(count))
    expected = [(2 * n * a + a + b) // (2 * (a + b)) for n in range(count + 1)]  # floor(n a / (a + b) + 1/2)
    assert [sites[:n].count("a") for n in range(count + 1)] == expected


@settings(max_examples=up_to(40), deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.integers(1, 3), st.sampled_from([1, 0.1, 1 / 3]))
def test_after_each_cycle_all_sites_have_exactly_their_shares(shares, cycles, scale):
    names = "abcdef"[: len(shares)]
    count = sum(shares) * cycles
    sites = went(dict.fromkeys(names, 4), Shares([each * scale for each in shares]), small(count))
    if scale == 1:
        assert [sites.count(name) for name in names] == [each * cycles for each in shares]
    for name, share in zip(names, shares, strict=True):
        assert abs(sites.count(name) - share * cycles) <= 1


def test_ties_go_to_the_first_site_and_the_default_is_the_number_of_processors():
    assert went({"x": 2, "y": 2, "z": 2}, "shares", small(6)) == ["x", "y", "z"] * 2
    # deficits in eighths: 6:2, 4:4 (tie), 10:-2, 8:0
    assert went({"x": 6, "y": 2}, "shares", small(4)) == ["x", "x", "y", "x"]


def test_a_site_that_cannot_run_a_job_catches_up():
    wide = [Job(id=i, processors=4, run=1) for i in range(3)]
    assert went({"a": 2, "b": 4}, "shares(1,1)", wide + small(4, 3)) == ["b"] * 3 + ["a"] * 4
    closed = [SiteOutageSpec(site="a", at=0, until=0.5, kind="closed")]
    assert went({"a": 4, "b": 4}, "shares(1,1)", small(8), outages=closed) == ["b"] * 3 + ["a"] * 3 + ["a", "b"]


def test_sites_without_a_share_get_what_no_other_can_run():
    jobs = [Job(id=i, processors=cores, run=1) for i, cores in enumerate((1, 4, 1, 1))]
    assert went({"a": 4, "b": 2}, "shares(b=1)", jobs) == ["b", "a", "b", "b"]


def test_processors_or_work_may_be_shared():
    jobs = [Job(id=i, processors=cores, run=run) for i, (cores, run) in enumerate(((4, 1), (1, 9), (1, 2), (1, 9)))]
    assert went({"a": 4, "b": 4}, "shares(by=processors)", jobs) == ["a", "b", "b", "b"]
    assert went({"a": 4, "b": 4}, "shares(1,1,by=work)", jobs) == ["a", "b", "a", "a"]


def test_names_and_wrong_shares():
    assert policy("shares(T1-x=3,T2=1)").shares == {"T1-x": 3, "T2": 1}
    for given_, message in (
        ("shares(0,0)", "shares: must be numbers >= 0, not all 0"),
        ("shares(a=-1)", "shares: must be numbers >= 0, not all 0"),
        ("shares(1,a=1)", "shares: must be given in the order of the places or by name, got both"),
        ("shares(by=bytes)", "by: unknown amount 'bytes'; known amounts: jobs, processors, work"),
        ("shares(z=1)", "shares: unknown place 'z'; known places: a, b"),
        ("shares(1,2,3)", "shares: must be 2 numbers, one per place, got 3"),
    ):
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            went({"a": 1, "b": 1}, given_, small(1))


def test_what_each_site_got_is_in_snapshots():
    env = Environment()
    hosts = [NodeSpec(count=1, cores=64)]
    grid = Grid(env, GridSpec(sites=[SiteSpec(name=name, hosts=hosts) for name in "abc"]), "shares(5,3,2)")
    for i in range(40):
        grid.submit(Job(run=3), at=i)
    env.run(until=16.5)
    snapshot = grid.snapshot()
    later = Environment(snapshot.now, snapshot.seed)
    again = Grid.from_snapshot(later, snapshot)
    later.run()
    env.run()
    whole = Counter(grid.result().jobs["site"].tolist())
    assert whole == {"a": 20, "b": 12, "c": 8}
    left = [row["site"] for row in grid.result().jobs.rows() if row["finished"] > 16.5]
    assert again.result().jobs["site"].tolist() == left
    assert again.scheduler.policy.state() == grid.scheduler.policy.state() == dict(whole)
