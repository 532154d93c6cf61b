"""Requested times: a grid stops a job that has held its cores for so long, as a cluster does."""

import pytest

from simmodel import Branch, Environment, Grid, InputError, Job, simulate, start, what_if
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, SiteSpec, StorageSpec
from simmodel.records.cgsim_events import CGSIM_STATES, CGSimStates
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.snapshots import Snapshot
from simmodel.work import Dependency, File
from tests.helpers.usual_policy import usual_policy
from tests.oracles.grid_events import Rows


def spec(staging="before", speed=1.0, cores=2):
    """Return site a, which reads 10 bytes/s, and b, over a link of 1 byte/s: f has 100 bytes."""
    disk = StorageSpec(read_bandwidth=10)
    return GridSpec(
        sites=[
            SiteSpec(name="a", hosts=[NodeSpec(cores=cores, speed=speed)], storage=disk, staging=staging),
            SiteSpec(name="b", cores=2, storage=disk),
        ],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=1, between=("a", "b"))]),
        files=[FileSpec(name="f", size=100, sites=["b"])],
    )


def ends(job, *args, **options):
    [row] = simulate(spec(*args), [job], "siloed", **options).jobs.rows()
    return row["start"], row["end"], row["status"]


def test_a_grid_a_cluster_and_a_broker_stop_a_job_alike():
    jobs = [Job(id=1, run=100, requested=50), Job(id=2, run=50, requested=50), Job(id=3, run=20, requested=50)]
    for platform in (8, {"a": 8}, GridSpec(sites=[SiteSpec(name="a", cores=8)])):
        found = simulate(platform, jobs, usual_policy(platform))
        assert found.jobs["end"].tolist() == [50, 50, 20]
        assert found.jobs["status"].tolist() == ["timeout", "completed", "completed"]
        on = simulate(platform, jobs, usual_policy(platform), overrun="continue")
        assert on.jobs["end"].tolist() == [100, 50, 20]
        assert set(on.jobs["status"].tolist()) == {"completed"}
    with pytest.raises(InputError, match="overrun: must be 'stop' or 'continue', got 'kill'"):
        simulate(GridSpec(sites=[SiteSpec(name="a", cores=8)]), jobs, usual_policy(platform), overrun="kill")


@pytest.mark.parametrize(
    ("staging", "run", "requested", "expected"),
    [
        ("before", 30, 40, (100, 140, "completed")),  # 10 s of reading count, and 30 of executing
        ("before", 30, 39, (100, 139, "timeout")),
        ("before", 30, 5, (100, 105, "timeout")),  # while it reads
        ("before", 500, 39, (100, 139, "timeout")),
        ("inside", 30, 140, (0, 140, "completed")),
        ("inside", 30, 139, (0, 139, "timeout")),
        ("inside", 30, 60, (0, 60, "timeout")),  # while its input comes
    ],
)
def test_reading_counts_and_so_does_the_wait_for_inputs_that_holds_cores(staging, run, requested, expected):
    job = Job(run=run, requested=requested, inputs=["f"], site="a")
    assert ends(job, staging) == expected
    assert ends(job, staging, overrun="continue")[2] == "completed"
    assert ends(Job(run=run, inputs=["f"], site="a"), staging)[2] == "completed"  # without a request, no limit


def test_the_limit_counts_at_the_speed_of_the_host():
    assert ends(Job(run=100, requested=60, site="a"), "before", 2.0) == (0, 30, "timeout")
    assert ends(Job(run=60, requested=60, site="a"), "before", 2.0) == (0, 30, "completed")
    assert ends(Job(run=60, requested=60, inputs=["f"], site="a"), "before", 2.0) == (100, 130, "timeout")


def test_a_job_that_is_stopped_has_failed_and_writes_nothing():
    jobs = [
        Job(id=1, run=100, requested=50, outputs=[File("o", 5)], site="a"),
        Job(id=2, run=1, dependencies=[Dependency(1, after="success")], site="a"),
        Job(id=3, run=1, inputs=["o"], dependencies=[Dependency(1, after="end")], site="a"),
    ]
    sim, rows = start(spec(), jobs, "siloed"), Rows({"events": GRID_EVENTS, "jobs": GRID_JOBS})
    states = Rows({"EVENTS": CGSIM_STATES})
    sim.env.observe(GridEvents(sim.system, rows))
    sim.env.observe(CGSimStates(sim.system, states))
    found = sim.run().result()
    assert found.jobs["state"].tolist() == ["failed", "cancelled", "failed"]
    assert found.jobs["reason"].tolist() == [
        "stopped at its requested time",
        "needs the success of job 1, which is timeout",
        "file o exists nowhere",
    ]
    assert found.jobs["bytes_out"].sum() == 0
    assert found.sites["finished"].tolist() == [0, 0, 0]
    assert found.sites["failed"].tolist() == [2, 0, 2]
    assert {row["job"]: (row["state"], row["reason"]) for row in rows.tables["jobs"]} == {
        row["job"]: (row["state"], row["reason"]) for row in found.jobs.rows()
    }
    assert [row["failed"] for row in rows.tables["events"]][-1] == 2
    assert [row["STATE"] for row in states.tables["EVENTS"] if row["JOB_ID"] == "1"][-1] == "failed"


@pytest.mark.parametrize("staging", ["before", "inside"])
@pytest.mark.parametrize("cut", [50, 102, 115, 130])
def test_the_limit_is_in_snapshots(staging, cut):
    jobs = [
        Job(id=1, run=30, requested=135, inputs=["f"], site="a"),
        Job(id=2, run=500, requested=35, inputs=["f"], site="a"),
    ]
    whole = {row["job"]: (row["end"], row["status"]) for row in simulate(spec(staging), jobs, "siloed").jobs.rows()}
    sim = start(spec(staging), jobs, "siloed").run(until=cut)
    for row in simulate(Snapshot.from_json(sim.snapshot().to_json())).jobs.rows():
        assert (row["end"], row["status"]) == whole[row["job"]]


def test_a_what_if_stops_no_job():
    jobs = [Job(id=i, submit=i, run=30, requested=40, inputs=["f"], site="a") for i in range(4)]
    snapshot = start(spec(cores=1), jobs, "siloed").run(until=105).snapshot()
    [found] = what_if(snapshot, [Branch("siloed")])
    assert found.samples[0].measures["turnaround_mean"] > 100
    assert simulate(snapshot.expected()).jobs["status"].tolist() == ["completed"] * 4


def test_a_body_is_stopped_too():
    def body(env, _job, _grant):
        yield env.timeout(1000)

    grid = Grid(Environment(), spec(), "siloed")
    job = grid.submit(Job(body=body, requested=25, inputs=["f"]), home="a")
    grid.env.run()
    assert (job.state, grid.result().jobs["end"].tolist()) == ("timeout", [125])
