"""What brokers know of the earlier attempts of a job: where each was, and why it ended there."""

import json

import pytest

from simmodel import Environment, Job, Start, simulate, start
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.snapshots import Snapshot
from simmodel.systems.grid.system import Grid
from simmodel.work import File

OUTAGES = (SiteOutageSpec(site="a", at=4, until=50), SiteOutageSpec(site="b", at=7, until=50))


def spec(outages=OUTAGES, **options):
    return GridSpec(sites=[SiteSpec(name=name, cores=1) for name in "abc"], outages=outages, retries=5, **options)


def elsewhere(view):
    """Retry each job at the first site where it has not failed yet."""
    for job in view.waiting:
        failed = {each.site for each in job.past}
        yield Start(job, next(site for site in view.places if site.name not in failed))


def told(job):
    return [(each.attempt, each.site, each.reason, each.start, each.end) for each in job.past]


def test_a_broker_knows_where_a_job_has_failed_and_why():
    seen = []

    def broker(view):
        seen.extend((job.id, told(job)) for job in view.waiting)
        return elsewhere(view)

    found = simulate(spec(), [Job(id=1, run=10)], broker)
    assert found.jobs["site"].tolist() == ["c"]
    assert seen == [
        (1, []),
        (1, [(1, "a", "site failed", 0, 4)]),
        (1, [(1, "a", "site failed", 0, 4), (2, "b", "site failed", 4, 7)]),
    ]
    runs = [(row["place"], row["start"], row["end"], row["status"]) for row in found.runs.rows()]
    assert runs == [("a", 0, 4, "requeued"), ("b", 4, 7, "requeued"), ("c", 7, 17, "completed")]


@pytest.mark.parametrize("outputs", [(), (File("o", 1),)], ids=["without files", "with files"])
def test_the_past_is_empty_at_the_first_attempt(outputs):
    grid = Grid(Environment(), spec(()), elsewhere)
    job = grid.submit(Job(run=10, outputs=outputs))
    assert job.past == ()
    grid.env.run()
    assert job.past == ()


def test_an_attempt_that_never_held_cores_counts_too():
    files = [FileSpec(name="f", size=100, sites=["b"])]
    network = NetworkSpec(links=[LinkSpec(name="w", bandwidth=1, between=("a", "b"))])
    grid = Grid(Environment(), spec(OUTAGES[:1], files=files, network=network), lambda view: elsewhere(view))
    job = grid.submit(Job(run=10, inputs=["f"]))
    grid.env.run()
    assert told(job) == [(1, "a", "site failed", None, 4)]
    assert len(grid.result().runs) == 1
    small = [SiteSpec(name="a", cores=1, storage=StorageSpec(capacity=50)), *spec().sites[1:]]
    grid = Grid(Environment(), GridSpec(sites=small, files=files, network=network, retries=1), elsewhere)
    job = grid.submit(Job(run=10, inputs=["f"]))
    grid.env.run()
    [(_, site, reason, began, end)] = told(job)
    assert (site, began, end) == ("a", None, 0)
    assert "100 bytes" in reason


def test_a_snapshot_keeps_the_earlier_attempts():
    sim = start(spec(), [Job(id=1, run=10)], elsewhere).run(until=5)
    again = simulate(Snapshot.from_json(sim.snapshot().to_json()), policy=elsewhere)
    assert again.jobs["site"].tolist() == ["c"]
    assert again.runs["place"].tolist() == ["a", "b", "c"]


def test_attempts_of_snapshots_without_reasons_are_read():
    sim = start(spec(), [Job(id=1, run=10)], elsewhere).run(until=5)
    document = json.loads(sim.snapshot().to_json())
    assert document["tries"] == [[0, 1, 0.0, 4.0, 0, "requeued", "site failed"]]
    document["tries"] = [[0, 1, 0.0, 4.0, 0, "requeued"]]
    again = start(Snapshot.from_json(json.dumps(document)), policy=elsewhere)
    assert [told(job) for job in again.system.present()] == [[(1, "a", "", 0, 4)]]
