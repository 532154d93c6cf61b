"""At the very instant at which a site fails, what ends then has ended, as in clusters."""

import pytest

from simmodel import Job, simulate, start
from simmodel.platform import (
    ClusterSpec,
    FailureModel,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    OutageSpec,
    PartitionSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.snapshots import Snapshot
from simmodel.work import File


def spec(at, **options):
    """Return site a, which is down for 5 s from an instant on, and b, over a link of 1 byte/s; disks of 10 bytes/s."""
    disk = StorageSpec(read_bandwidth=10, write_bandwidth=10)
    return GridSpec(
        sites=[SiteSpec(name="a", cores=2, storage=disk), SiteSpec(name="b", cores=2, storage=disk)],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=1, between=("a", "b"))]),
        files=[FileSpec(name="f", size=20, sites=["b"])],
        outages=[SiteOutageSpec(site="a", at=at, until=at + 5)],
        retries=3,
        **options,
    )


@pytest.mark.parametrize("at", [9, 10, 11])
def test_a_grid_and_a_cluster_have_one_rule(at):
    jobs = [Job(id=1, run=10, processors=2), Job(id=2, run=10)]
    outage = OutageSpec(at=at, until=at + 5, processors=2, kind="failure")
    cluster = simulate(ClusterSpec(partitions=[PartitionSpec(name="a", processors=2)], outages=[outage]), jobs, "fcfs")
    grid = simulate(
        spec(at), [Job(id=job.id, run=job.run, processors=job.processors, site="a") for job in jobs], "siloed"
    )
    assert grid.jobs["end"].tolist() == cluster.jobs["end"].tolist()
    assert grid.jobs["attempts"].tolist() == [2 if at < 10 else 1, 2]  # the second is in the queue, or runs


# The file comes until 20, is read until 22; executed until 32, the output written until 33.
@pytest.mark.parametrize(("at", "attempts"), [(20, 2), (22, 2), (32, 2), (33, 1), (34, 1)])
def test_the_steps_of_a_job_at_the_instant_of_an_outage(at, attempts):
    [row] = simulate(spec(at), [Job(run=10, inputs=["f"], outputs=[File("o", 10)], site="a")], "siloed").jobs.rows()
    assert (row["state"], row["attempts"], row["bytes_in"]) == ("finished", attempts, 20)  # it came before the outage


def test_an_outage_that_ends_with_the_begin_of_another_keeps_the_site_down():
    outages = [SiteOutageSpec(site="a", at=at, until=at + 5) for at in (5, 10)]
    grid = GridSpec(sites=[SiteSpec(name="a", cores=1)], outages=outages, retries=5)
    assert simulate(grid, [Job(run=10)]).jobs["end"].tolist() == [25]


def test_a_snapshot_of_the_instant_before_its_outage_continues_alike():
    jobs = [Job(id=1, run=10, site="a"), Job(id=2, run=10.5, site="a")]
    sim = start(spec(10), jobs, "siloed").run(until=10)
    again = simulate(Snapshot.from_json(sim.snapshot().to_json()))
    whole = simulate(spec(10), jobs, "siloed").jobs
    left = {row["job"]: row["end"] for row in again.jobs.rows()}
    assert left == {row["job"]: row["end"] for row in whole.rows() if row["job"] in left}
    assert left[2] == 25.5


def test_failures_by_chance_follow_the_ends_of_their_instant():
    """Repairs are constant, so that the second failure is drawn; the rule is that of planned outages."""
    model = FailureModel(
        of="sites", names=["a"], mean_time_between_failures=50, mean_time_to_repair=7, repair="constant"
    )
    grid = GridSpec(sites=[SiteSpec(name="a", cores=1)], failures=[model], retries=50)
    down = []

    class Watch:
        def site_down(self, site):
            down.append(float(site.system.env.now))

    simulate(grid, [Job(run=100, site="a")], observers=[Watch()])
    first = down[0]
    assert simulate(grid, [Job(run=first)]).jobs["attempts"].tolist() == [1]
    assert simulate(grid, [Job(run=first + 0.01)]).jobs["attempts"].tolist()[0] > 1
