"""Snapshots of grids: cut, written, read and continued, with files on their way."""

import json
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Environment, Job, simulate, what_if
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.snapshots import Snapshot
from simmodel.systems.grid.system import Grid
from tests.helpers.examples import up_to
from tests.helpers.grid_cases import cases, grid_with

POLICIES = ["round-robin", "least-loaded", "random"]
INSTANTS = ("submit", "assigned", "queued", "start", "executing", "end", "finished", "bytes_in", "bytes_out")
NAMES = ("job", "site", "state", "status", "attempts", "processors")
OVER = ("finished", "failed", "rejected", "cancelled")


def check_same(rest, whole, left):
    """Check that a continued run has the rows of jobs left in the uncut run."""
    for column in NAMES:
        assert rest[column].tolist() == whole[column][left].tolist(), column
    for column in INSTANTS:
        np.testing.assert_allclose(rest[column], whole[column][left], rtol=0, atol=1e-9, err_msg=column)


@settings(max_examples=up_to(150), deadline=None)
@given(cases(), st.sampled_from(POLICIES), st.integers(0, 200))
def test_a_run_that_is_cut_and_continued_is_the_uncut_run(case, policy, cut):
    spec, drawn = case
    env, grid, _ = grid_with(spec, policy, drawn)
    env.run()
    whole = grid.result().jobs

    env, grid, _ = grid_with(spec, policy, drawn)
    env.run(until=cut / 4 + 0.125)
    left = np.flatnonzero(~np.isin(grid.result().jobs["state"], OVER))
    snapshot = grid.snapshot()
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    later = Environment(snapshot.now, snapshot.seed)
    again = Grid.from_snapshot(later, read)
    assert again.unfinished == grid.unfinished == len(left) == snapshot.unfinished
    check_same(simulate(read).jobs, whole, left)
    later.run()
    assert not again.handed
    assert not again.stays.present
    assert not again.data.fetches
    for site in again.places:
        assert site.present == 0
        assert site.on_the_way == [0, 0, 0]
        assert site.free == site.capacity
        assert site.storage.used == sum(map(ceil, site.storage.files.values()))
        assert not any(site.storage.pins(file) for file in site.storage.files)
    env.run()
    assert [list(site.storage.files) for site in again.places] == [list(site.storage.files) for site in grid.places]
    check_same(grid.result().jobs, whole, np.arange(len(whole)))


@settings(max_examples=up_to(100), deadline=None)
@given(cases(outages=False, latest=0), st.sampled_from(["round-robin", "least-loaded"]), st.integers(0, 200))
def test_the_future_of_the_present_broker_is_what_then_happens(case, policy, cut):
    spec, drawn = case
    env, grid, _ = grid_with(spec, policy, drawn)
    env.run(until=cut / 4 + 0.125)
    left = np.flatnonzero(~np.isin(grid.result().jobs["state"], OVER))
    found = what_if(grid.snapshot(), [policy, "random"], results=True)
    assert [each.status for each in found] == ["finished"] * 2, found[0].reason
    env.run()
    check_same(found[policy].samples[0].result.jobs, grid.result().jobs, left)


def example(**options):
    """Return a grid with a transfer, a read, a job that executes after it has read, and a waiting job at 5 s."""
    spec = GridSpec(
        sites=[
            SiteSpec(name="a", cores=2, storage=StorageSpec(read_bandwidth=4)),
            SiteSpec(name="b", cores=2, storage=StorageSpec(read_bandwidth=4)),
        ],
        network=NetworkSpec(links=[LinkSpec(name="ab", bandwidth=2, between=("a", "b"))]),
        files=[FileSpec(name="f", size=16, sites=["a"]), FileSpec(name="g", size=8, sites=["a"])],
        **options,
    )
    work = [Job(id="reads", run=10, inputs=["f"]), Job(id="moves", run=10, inputs=["f"])]
    work += [Job(id="runs", run=10, inputs=["g"]), Job(id="moves too", run=10, inputs=["f"])]
    env, grid, _ = grid_with(spec, "round-robin", work)
    return env, grid


def test_a_snapshot_says_what_there_is():
    env, grid = example()
    env.run(until=3)
    snapshot = grid.snapshot()
    assert repr(snapshot) == "<GridSnapshot of a, b at 3 s: 2 running, 2 waiting>"
    assert snapshot.unfinished == 4
    assert sorted(map(str, snapshot.ids)) == ["moves", "moves too", "reads", "runs"]
    assert {(stay.row, stay.phase) for stay in snapshot.stays} == {
        (0, "reading"),
        (1, "staging in"),
        (2, "reading"),
        (3, "staging in"),
    }
    (fetch,) = snapshot.fetches
    assert (fetch.file, fetch.site, fetch.callers, fetch.source) == ("f", 1, (1, 3), 0)
    assert snapshot.transfers[0].left == 10
    assert grid.snapshot() == snapshot


def test_a_what_if_knows_of_the_outages_that_it_assumes_and_of_no_others():
    env, grid = example(outages=[SiteOutageSpec(site="b", at=50)])
    env.run(until=3)
    snapshot = grid.snapshot()
    alone = what_if(snapshot, ["round-robin"])["round-robin"].samples[0].ended
    assumed = snapshot.assuming([SiteOutageSpec(site="a", at=4, until=100)])
    states = simulate(assumed.expected()).jobs["state"].tolist()
    assert alone < 50
    assert states == ["failed", "finished"] * 2  # at b they wait until the files at a are back


def test_a_broken_snapshot_and_what_cannot_be_copied_get_one_sentence():
    env, grid = example()
    env.run(until=3)
    document = json.loads(grid.snapshot().to_json())
    document["stays"][0][1] = 7
    with pytest.raises(InputError, match=r"stays\[0\]: must be a site below 2, got 7"):
        Snapshot.from_json(json.dumps(document))
    grid.places[0].storage.read(5)
    with pytest.raises(SnapshotError, match="cannot be copied: it is none of a job"):
        grid.snapshot()


def test_overheads_that_end_together_keep_their_order_when_earlier_jobs_have_ended():
    env = Environment()
    grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=1, overhead=2)]))
    for number in range(5):
        grid.submit(Job(id=number, run=1 / 4), at=0 if number < 2 else 3)
    env.run(until=4)
    snapshot = grid.snapshot()
    env.run()
    rest = simulate(snapshot).jobs
    assert rest["job"].tolist() == [2, 3, 4]
    assert rest["start"].tolist() == grid.result().jobs["start"].tolist()[2:] == [5, 5.25, 5.5]


def test_a_grid_on_a_torus_goes_on_with_its_transfers():
    sites = [SiteSpec(name=f"n{i}", cores=4) for i in range(8)]
    files = [FileSpec(name=f"f{i}", size=5e6 + i * 1e6, sites=["n0"]) for i in range(6)]
    network = NetworkSpec(topology="torus:4,2 bandwidth=1MBps latency=1ms", model="cm02")
    env = Environment()
    grid = Grid(env, GridSpec(sites=sites, network=network, files=files), "round-robin")
    for number in range(12):
        grid.submit(Job(id=number, submit=number, run=9, inputs=[f"f{number % 6}"]), at=number)
    env.run(until=8.5)
    snapshot = grid.snapshot()
    assert len(list(grid.data.network.under_way())) > 1
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    rest = simulate(read).jobs
    env.run()
    whole = grid.result().jobs
    check_same(rest, whole, np.flatnonzero(np.isin(whole["job"], rest["job"])))
    assert len(rest) > 3
