"""``Job(cancel=)`` at any stage of the life of a job in a grid, and of one that waits for a broker."""

import attrs
import pytest

from simmodel import Environment, Job, simulate, start
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.snapshots import Snapshot
from simmodel.systems.grid.system import Grid
from simmodel.work import Dependency, File
from tests.helpers.usual_policy import usual_policy

COLUMNS = ("state", "site", "assigned", "queued", "start", "executing", "end", "finished", "bytes_in", "bytes_out")


def spec(staging="before", **options):
    """Return two sites: an overhead of 10 s, 100 bytes at 1 byte/s from b to a; disks of 1 byte/s."""
    disk = StorageSpec(read_bandwidth=1, write_bandwidth=1)
    return GridSpec(
        sites=[
            SiteSpec(name="a", cores=1, overhead=10, storage=disk, staging=staging),
            SiteSpec(name="b", cores=1, storage=disk),
        ],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=1, between=("a", "b"))]),
        files=[FileSpec(name="f", size=100, sites=["b"])],
        **options,
    )


JOB = Job(id=1, run=50, inputs=["f"], outputs=[File("o", 40)], site="a")
# overhead until 10, the file comes until 110, is read until 210; executed until 260, written until 300
BEFORE = {5: "overhead", 50: "staging in", 110.5: "reading", 150: "reading", 230: "executing", 280: "writing"}


def rows(result):
    return [{name: repr(row[name]) for name in COLUMNS} for row in result.jobs.rows()]


@pytest.mark.parametrize("staging", ["before", "inside"])
@pytest.mark.parametrize("at", [0, *BEFORE, 299.5])
def test_a_job_is_cancelled_at_its_instant_wherever_it_is(staging, at):
    grid = Grid(Environment(), spec(staging), "siloed")
    live = grid.submit(JOB)
    grid.env.call_at(at, lambda: grid.cancel(live))
    grid.env.run()
    sim = start(spec(staging), [attrs.evolve(JOB, cancel=at)], "siloed").run()
    found = sim.result()
    assert rows(found) == rows(grid.result())
    assert found.jobs["state"].tolist() == ["cancelled"]
    assert found.jobs["finished"].tolist()[0] in (at, pytest.approx(float("nan"), nan_ok=True))
    assert sim.env.now == max(at, 0)
    assert found.flows["bytes"].sum() == (100 if at >= 110 else 0)
    assert sim.system.data.catalogue.sites_of("f") == (("a", "b") if at >= 110 else ("b",))
    assert not sim.system.stays.present


def test_a_job_that_has_ended_before_its_instant_is_not_cancelled():
    sim = start(spec(), [attrs.evolve(JOB, cancel=301)], "siloed").run()
    assert sim.result().jobs["state"].tolist() == ["finished"]
    assert sim.env.now == 300


def test_jobs_that_wait_for_the_broker_and_in_the_queue_of_their_site():
    one = GridSpec(sites=[SiteSpec(name="a", cores=1, limit=1)])
    jobs = [Job(id=1, run=100), Job(id=2, run=100, cancel=20)]
    found = simulate(one, jobs)
    assert found.jobs["state"].tolist() == ["finished", "cancelled"]
    assert found.jobs["end"].tolist() == [100, 20]
    queued = simulate(GridSpec(sites=[SiteSpec(name="a", cores=1)]), jobs)
    assert queued.jobs["state"].tolist() == ["finished", "cancelled"]
    assert queued.jobs["finished"].tolist() == [100, 20]


def test_a_job_that_is_tried_again_is_cancelled_at_its_next_site():
    grid = GridSpec(
        sites=[SiteSpec(name=name, cores=1) for name in "ab"],
        outages=[SiteOutageSpec(site="a", at=30, until=500)],
        retries=3,
    )
    found = simulate(grid, [Job(id=1, run=100, cancel=70)])
    assert [found.jobs[name].tolist() for name in ("state", "site", "end", "attempts")] == [
        ["cancelled"],
        ["b"],
        [70],
        [2],
    ]


def test_a_job_whose_dependency_ends_in_time_is_cancelled_while_it_waits_for_the_broker():
    one = GridSpec(sites=[SiteSpec(name="a", cores=1, limit=1)])
    jobs = [
        Job(id=1, run=10),
        Job(id=2, submit=5, run=100),
        Job(id=3, submit=6, run=1, dependencies=[Dependency(1)], cancel=50),
    ]
    for cut in (8, 30):
        whole = simulate(one, jobs)
        assert whole.jobs["state"].tolist() == ["finished", "finished", "cancelled"]
        assert whole.jobs["end"].tolist() == [10, 110, 50]
        snapshot = Snapshot.from_json(start(one, jobs).run(until=cut).snapshot().to_json())
        again = simulate(snapshot)
        assert dict(zip(again.jobs["job"].tolist(), again.jobs["end"].tolist(), strict=True))[3] == 50


@pytest.mark.parametrize("cut", [5, 50, 150, 230, 280])
def test_cancellations_are_in_snapshots(cut):
    for at in (290, 55):
        if cut < at:
            sim = start(spec(), [attrs.evolve(JOB, cancel=at)], "siloed").run(until=cut)
            again = simulate(Snapshot.from_json(sim.snapshot().to_json()))
            assert (again.jobs["state"].tolist(), again.jobs["finished"].tolist()) == (["cancelled"], [at])


def test_a_broker_over_clusters_cancels_the_jobs_that_it_holds_back():
    def last(view):
        return ()

    found = simulate({"a": 4, "b": 4}, [Job(id=1, run=10, cancel=20), Job(id=2, run=10, cancel=30)], last)
    assert found.jobs["status"].tolist() == ["cancelled", "cancelled"]
    assert found.jobs["end"].tolist() == [20, 30]


def test_a_job_that_is_cancelled_before_its_start_has_the_same_end_on_all_systems():
    jobs = [Job(id=1, run=50), Job(id=2, run=10, cancel=10), Job(id=3, submit=20, run=10, cancel=20)]
    for platform in (1, {"a": 1}, GridSpec(sites=[SiteSpec(name="a", cores=1)])):
        found = simulate(platform, jobs, usual_policy(platform))
        assert found.jobs["end"].tolist() == [50, 10, 20]
    assert found.jobs["finished"].tolist() == [50, 10, 20]
