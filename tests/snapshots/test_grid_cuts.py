"""A grid by hand, cut in each phase of a job, in a retry, in an outage and while files wait for room."""

import pytest

from simmodel import Environment, Job
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.policies import DataPolicy
from simmodel.snapshots import Snapshot
from simmodel.systems import Grid
from simmodel.work import File

INSTANTS = ("submit", "assigned", "queued", "start", "executing", "end", "finished")


class ToA(DataPolicy):
    """Outputs go to site a."""

    name = "to-a"

    def target(self, file, site):
        return self.grid.sites["a"]


def two(*, b=None, work=(), **options):
    """Return a grid in which a job at b has overhead, reads f from a, executes, writes 10 bytes and sends them to a."""
    disk = {"read_bandwidth": 10, "write_bandwidth": 5}
    sites = [
        SiteSpec(name="a", cores=1, storage=StorageSpec(**disk)),
        SiteSpec(name="b", **{"cores": 1, "overhead": 3, "storage": StorageSpec(**disk), **(b or {})}),
    ]
    network = NetworkSpec(links=[LinkSpec(name="wan", bandwidth=2, latency=1, between=("a", "b"))])
    files = [FileSpec(name="f", size=20, sites=["a"]), FileSpec(name="g", size=30, sites=["b"])]
    files.append(FileSpec(name="h", size=20, sites=["a"]))
    env = Environment()
    grid = Grid(env, GridSpec(sites=sites, network=network, files=files, **options), "siloed", data=ToA())
    grid.submit(Job(id="first", run=10, inputs=["f"], outputs=[File("o", 10)]), "b")
    for at, job in work:
        grid.submit(job, "b", at=at)
    return env, grid


def down(site, at, until, kind="down"):
    return SiteOutageSpec(site=site, at=at, until=until, kind=kind)


SECOND = ((0, Job(id="second", run=2, inputs=["f"])),)
BIG = ((1, Job(id="big", run=2, inputs=["h"], outputs=[File("p", 25)])),)
CASES = {
    # what first does, the cut, the grid
    "overhead": (2, {}),
    "staging in": (9, {}),
    "the latency of a transfer": (3.5, {}),
    "reading": (15, {}),
    "executing": (20, {}),
    "writing": (27, {}),
    "staging out": (31, {}),
    "the latency of staging out": (28.5, {}),
    "queued": (20, {"work": SECOND}),
    "inside": (9, {"b": {"staging": "inside"}}),
    "a second attempt": (15, {"outages": [down("b", 5, 8)], "retries": 1}),
    "between two attempts": (6, {"outages": [down("b", 5, 8)], "retries": 1}),
    "a second attempt after outputs were lost": (33, {"outages": [down("b", 30, 31)], "retries": 1}),
    "a failure at the very end": (29, {"outages": [down("b", 30, 40)], "retries": 0}),
    "an outage of the source": (10, {"outages": [down("a", 5, 20)]}),
    "an outage of the target": (32, {"outages": [down("a", 30, 50)]}),
    "an outage of the target before": (29, {"outages": [down("a", 25, 50)]}),
    "two outages while an output is sent": (33, {"outages": [down("a", 30, 50), down("b", 32, 40)], "retries": 1}),
    "a closed site": (2, {"outages": [down("b", 1, 40, "closed")], "work": SECOND}),
    "room that is missing": (10, {"b": {"storage": StorageSpec(capacity=55, write_bandwidth=5)}, "work": BIG}),
    "an output that drops a copy": (35, {"b": {"storage": StorageSpec(capacity=65, write_bandwidth=5)}, "work": BIG}),
}


def rows(grid, cut):
    """Return what became of jobs that had not ended at the cut."""
    found = {}
    for row in grid.result().jobs.rows():
        if not row["finished"] <= cut:
            instants = [round(row[name], 9) for name in INSTANTS]
            found[row["job"]] = repr(
                [row["site"], row["state"], row.get("reason"), row["attempts"], row["bytes_in"], *instants]
            )
    return found


@pytest.mark.few(8)
@pytest.mark.parametrize("name", CASES)
def test_a_grid_that_is_cut_there_goes_on_as_if_it_were_not(name):
    cut, options = CASES[name]
    env, whole = two(**options)
    env.run()
    env, grid = two(**options)
    env.run(until=cut)
    read = Snapshot.from_json(grid.snapshot().to_json())
    phases = {stay.phase for stay in read.stays}
    if name in ("overhead", "staging in", "reading", "executing", "writing", "staging out", "queued", "inside"):
        assert name in phases
    later = Environment(read.now, read.seed)
    again = Grid.from_snapshot(later, read, data=ToA())
    later.run()
    assert rows(again, cut) == rows(whole, cut) != {}
    assert {s.name: list(s.storage.files.items()) for s in again.places} == {
        s.name: list(s.storage.files.items()) for s in whole.places
    }
    assert not again.data.fetches
    assert not again.stays.present
    env.run()
    assert rows(grid, cut) == rows(whole, cut)


def test_the_cuts_are_what_they_say():
    def at(name):
        cut, options = CASES[name]
        env, grid = two(**options)
        env.run(until=cut)
        return grid.snapshot()

    assert at("staging out").fetches[0].cause == "stage out"
    assert at("the latency of a transfer").transfers[0].lag == 0.5
    assert at("between two attempts").waiting[0].id == "first"
    assert at("a second attempt").traces[0].attempts == 2
    assert at("an outage of the source").stranded == (("f", 1),)
    for name in ("an outage of the target", "an outage of the target before"):
        assert at(name).stranded == (("o", 0),)
        assert at(name).sites[0].down == 1
    assert at("a closed site").sites[1].closed == 1
    assert at("room that is missing").rooms == (("h", 1),)
