"""Grids below a broker: jobs, files, outages, data policies and snapshots."""

import pytest

from simmodel import Environment, Job, Start, simulate, start, what_if
from simmodel.foundation.errors import InputError
from simmodel.platform import (
    BrokerSpec,
    ClusterSpec,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.policies import DataPolicy
from simmodel.snapshots import Snapshot
from simmodel.systems import Broker, Grid
from simmodel.work import File


def region(prefix, file, **options):
    """Return a grid of two sites, the first of which has a file of 20 bytes."""
    names = [prefix + "1", prefix + "2"]
    sites = [SiteSpec(name=name, cores=4, storage=StorageSpec(read_bandwidth=10)) for name in names]
    network = NetworkSpec(links=[LinkSpec(name=prefix, bandwidth=2, between=tuple(names))])
    return GridSpec(sites=sites, network=network, files=[FileSpec(name=file, size=20, sites=names[:1])], **options)


TIERS = BrokerSpec(
    places={
        "eu": region("e", "f", retries=1, outages=[SiteOutageSpec(site="e2", at=5, until=9)]),
        "world": BrokerSpec(places={"us": region("u", "g"), "local": ClusterSpec.simple(2, name="local")}),
    }
)
REGIONS = {"eu": "round-robin", "world": "round-robin", "world.us": "round-robin", "world.local": "fcfs"}


def to_where_the_file_is(view):
    """Send jobs that read f to the first place, and others to the last."""
    for job in view.waiting:
        yield Start(job, view.places[0 if job._job.inputs == ("f",) else 1])


def regional(view):
    """Send jobs with inputs to the grid, and others to the cluster."""
    for job in view.waiting:
        yield Start(job, view.places[0 if job._job.inputs else 1])


def work():
    jobs = [Job(id=i, submit=i, run=10, processors=2, inputs=["fg"[i % 2]]) for i in range(6)]
    return [*jobs, Job(id=6, submit=6, run=3), Job(id=7, submit=7, run=3, outputs=[File("o", 10)], inputs=["f"])]


def played():
    return simulate(TIERS, work(), to_where_the_file_is, policies={**REGIONS, "world": regional})


def test_jobs_go_down_through_all_tiers_and_files_come_there():
    found = played()
    jobs = found.jobs
    assert jobs["status"].tolist() == ["completed"] * 8
    assert jobs["destination"].tolist() == ["eu", "world"] * 3 + ["world", "eu"]
    eu, us = found.clusters["eu"], found.clusters["world"].clusters["us"]
    # 0 to e1; 2 to e2, which fails while the file comes; it and 4 start again at e1 or e2
    assert eu.jobs["job"].tolist() == [0, 2, 4, 7]
    assert eu.jobs["attempts"].tolist() == [1, 2, 1, 1]
    assert eu.jobs["state"].tolist() == ["finished"] * 4
    assert us.jobs["site"].tolist() == ["u1", "u2", "u1"]
    assert us.jobs["bytes_in"].tolist() == [0, 20, 0]
    assert us.jobs["end"].tolist() == [13, 25, 17]  # 3: 10 s of transfer, 2 s of reading
    assert found.clusters["world"].clusters["local"].jobs["end"].tolist() == [9]


def test_changes_and_executions_are_those_of_the_grid_itself():
    found = played()
    assert found.clusters["world"].clusters["us"].changes is None
    assert found.changes["place"].tolist() == ["eu/e2", "eu/e2"]
    places = dict(zip(found.runs["job"].tolist(), found.runs["place"].tolist(), strict=True))
    assert {job: place for job, place in places.items() if job % 2} == {
        1: "world/us/u1", 3: "world/us/u2", 5: "world/us/u1", 7: places[7],
    }  # fmt: skip
    assert sum(found.runs["job"] == 2) == len(found.clusters["eu"].runs.where(found.clusters["eu"].runs["job"] == 2))


def test_a_job_that_its_grid_ends_at_once_has_ended_for_the_broker_above():
    found = simulate(TIERS.places["world"], [Job(id=1, run=5, inputs=["f"]), Job(id=2, run=5)], regional)
    assert found.jobs["status"].tolist() == ["failed", "completed"]
    env = Environment()
    grid = Grid(env, region("u", "g"))
    broker = Broker(env, [grid], "round-robin")
    job = broker.submit(Job(run=1, inputs=["nowhere"]))
    env.run(until=job)
    assert (job.state, broker.unfinished) == ("failed", 0)


def test_a_job_goes_to_the_grid_that_has_its_site():
    spec = BrokerSpec(places={"eu": region("e", "f"), "us": region("u", "g")})
    jobs = [Job(id=i, run=1, site=site) for i, site in enumerate(("u2", "e1", "u1"))]
    found = simulate(spec, jobs, "round-robin", policies={"eu": "recorded", "us": "recorded"})
    assert found.jobs["destination"].tolist() == ["us", "eu", "us"]
    assert found.clusters["us"].jobs["site"].tolist() == ["u2", "u1"]
    log = [Job(id=1, run=1, site="x1"), Job(id=2, run=1)]
    found = simulate(spec, log, "round-robin")
    assert found.jobs["status"].tolist() == ["rejected", "completed"]
    assert dict(found.report.rejected) == {"unknown site 'x1'": 1}


class Hears(DataPolicy):
    name = "hears"

    def __init__(self):
        self.seen = []

    def decide(self, view):
        self.seen += view.added
        return ()


def test_a_data_policy_hears_of_the_files_of_its_own_grid_only():
    env = Environment()
    policies = [Hears(), Hears()]
    grids = [
        Grid(env, region(prefix, file), "round-robin", data=policy, name=prefix)
        for prefix, file, policy in zip("eu", "fg", policies, strict=True)
    ]
    for grid, file in zip(grids, "fg", strict=True):
        for _ in range(2):
            grid.submit(Job(run=1, inputs=[file]))
    env.run()
    assert [policy.seen for policy in policies] == [["f", "f"], ["g", "g"]]


@pytest.mark.few(3)
@pytest.mark.parametrize("cut", [0.5, 4.5, 6.25, 8.5, 12.5, 20.25])
def test_tiers_are_cut_and_continued(cut):
    whole = simulate(TIERS, work(), "round-robin", policies=REGIONS).jobs
    sim = start(TIERS, work(), "round-robin", policies=REGIONS).run(until=cut)
    left = ~(whole["end"] <= cut)
    read = Snapshot.from_json(sim.snapshot().to_json())
    rest = simulate(read).jobs
    for column in ("job", "destination", "attempts", "status"):
        assert rest[column].tolist() == whole[column][left].tolist(), column
    assert rest["end"].tolist() == pytest.approx(whole["end"][left].tolist())
    found = what_if(read, ["round-robin", "least-loaded"])
    assert [each.status for each in found] == ["finished"] * 2


def test_a_grid_is_refused_as_a_site():
    with pytest.raises(
        InputError, match=r"sites\[0\]: must be a SiteSpec \(BrokerSpec\(places=...\) joins grids\), got GridSpec"
    ):
        GridSpec(sites=[region("e", "f")])
