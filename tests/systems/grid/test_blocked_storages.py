"""Jobs that hold files and wait for room that only others of them could give: one gives way, not all that wait."""

import attrs
import numpy as np
import pytest

from simmodel import Job, simulate
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteSpec, StorageSpec
from simmodel.policies import DataPolicy
from simmodel.scheduling.protocol import Transfer
from simmodel.work import File


def spec(files, capacity=4, sizes=None, at_a=(), **options):
    """Return site a with little room, and b, from which a byte takes a second on its way."""
    given = [
        FileSpec(name=name, size=(sizes or {}).get(name, 2), sites=["a" if name in at_a else "b"]) for name in files
    ]
    sites = [SiteSpec(name="a", cores=40, storage=StorageSpec(capacity=capacity)), SiteSpec(name="b", cores=1)]
    network = NetworkSpec(links=[LinkSpec(name="w", bandwidth=1, between=("a", "b"))])
    return GridSpec(sites=sites, network=network, files=given, **options)


def jobs(*inputs):
    return [Job(id=i, run=5, inputs=list(files), site="a") for i, files in enumerate(inputs)]


@pytest.mark.parametrize("staging", ["before", "inside"])
def test_one_of_three_jobs_gives_way(staging):
    """Two files fit: x and y come for the first, the others hold one each and wait for z."""
    grid = spec("xyz")
    grid = attrs.evolve(grid, sites=[attrs.evolve(grid.sites[0], staging=staging), grid.sites[1]])
    result = simulate(grid, jobs("xy", "yz", "xz"), "siloed")
    assert result.jobs["state"].tolist() == ["finished", "finished", "failed"]
    assert result.jobs["reason"].tolist() == ["", "", "no room for file z in storage a"]


def test_a_job_whose_files_others_hold_as_well_gives_no_way():
    """Two hold x; only the one that holds y can make room for z."""
    result = simulate(spec("xyz"), jobs("xy", "yz", "xz", "xz"), "siloed")
    assert result.jobs["state"].tolist() == ["finished", "failed", "finished", "finished"]


def test_those_that_give_way_are_tried_again():
    result = simulate(spec("xyz", retries=5), jobs("xy", "yz", "xz"), "siloed")
    assert set(result.jobs["state"].tolist()) == {"finished"}
    assert result.jobs["attempts"].tolist() == [1, 1, 2]


def test_nobody_gives_way_to_a_file_for_which_there_will_never_be_room():
    """The last replica of k stays, so that z never comes; y comes once its turn is there."""
    grid = spec("kxyz", 6, {"z": 5}, at_a="k")
    result = simulate(grid, [*jobs("xz", "z"), Job(id=9, submit=1, run=5, inputs=["x", "y"], site="a")], "siloed")
    assert result.jobs["state"].tolist() == ["failed", "failed", "finished"]


def test_what_only_a_policy_wants_gives_way_before_any_job():
    class Greedy(DataPolicy):
        name = "greedy"

        def decide(self, view):
            if not view.files.holds("z", "a"):
                yield Transfer("z", None, view.site("a"))

    grid = spec("kxz", 4, {"z": 4, "x": 1}, at_a="k")
    result = simulate(grid, [Job(id=1, submit=1, run=5, inputs=["x"], site="a")], "siloed", data=Greedy())
    assert result.jobs["state"].tolist() == ["finished"]


def test_an_output_waits_until_one_that_holds_files_gives_way():
    """The output is ready at 3, x and y come until 4; then z comes, until 6, and then there is room for the output."""
    writer = Job(id=9, run=3, outputs=[File("o", 2)], site="a")
    result = simulate(spec("xyz"), [writer, *jobs("xy", "yz", "xz")], "siloed")
    assert result.jobs["state"].tolist() == ["finished", "finished", "finished", "failed"]
    assert result.jobs["finished"].tolist() == [6, 9, 11, 4]


@pytest.mark.parametrize("seed", range(12))
def test_with_enough_retries_all_end_and_without_them_less_fail_than_wait_for_a_file(seed):
    rng = np.random.default_rng(seed)
    names = [f"f{i}" for i in range(6)]
    drawn = jobs(*(rng.choice(names, 2, replace=False).tolist() for _ in range(20)))
    room = float(rng.choice([4, 6, 8]))
    assert set(simulate(spec(names, room, retries=50), drawn, "siloed").jobs["state"].tolist()) == {"finished"}
    result = simulate(spec(names, room), drawn, "siloed")
    failed = result.jobs.where(result.jobs["state"] == "failed")
    began = np.unique(result.jobs["executing"][result.jobs["state"] == "finished"])
    for at in np.unique(failed["finished"]):  # what gave way made room for what began next
        assert (began > at).any()
