"""Bytes are charged once, to the job that caused their transfer, whoever began it: by hand."""

import pytest

from simmodel import Environment, InputError, Job, Task, Workflow, simulate, start
from simmodel.metrics.grid import by_workflow
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.policies import DataPolicy
from simmodel.records.broker_record import GridRecord
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.scheduling.protocol import Transfer, WakeAt
from simmodel.snapshots import Snapshot
from simmodel.systems.grid.system import Grid
from simmodel.work import File
from tests.oracles.grid_events import Rows

FILES = (FileSpec(name="f", size=20, sites=["c"]), FileSpec(name="g", size=30, sites=["c"]))


def spec(names="abc", files=FILES, storage=None, **options):
    """Return sites of four cores, each pair of which has a link of 1 byte/s."""
    pairs = [(x, y) for i, x in enumerate(names) for y in names[i + 1 :]]
    links = [LinkSpec(name=x + y, bandwidth=1, between=(x, y)) for x, y in pairs]
    common = {"cores": 4, "storage": storage or StorageSpec()}
    sites = [SiteSpec(name=name, **(common | options.pop(name, {}))) for name in names]
    return GridSpec(sites=sites, network=NetworkSpec(links=links), files=files, **options)


def run(grid, jobs, policy="siloed", **options):
    """Return the bytes of each job, of each site, and those that no job asked for; check that they are one number."""
    sim, rows = start(grid, jobs, policy, **options), Rows({"events": GRID_EVENTS, "jobs": GRID_JOBS})
    sim.env.observe(GridEvents(sim.system, rows))
    result = sim.run().result()
    moved = result.flows["bytes"].sum()
    unclaimed = sum(sim.system.data.unclaimed.values())
    by_job = dict(zip(result.jobs["job"].tolist(), result.jobs["bytes_in"].tolist(), strict=True))
    *by_site, whole = result.sites["bytes_in"].tolist()
    told = {row["job"]: row["bytes_in"] for row in rows.tables["jobs"]}
    ended = [row for row in rows.tables["events"] if row["event"] == "transfer ended" and row["detail"] != "failed"]
    assert moved == whole == sum(by_site) == sum(by_job.values()) + unclaimed == sum(row["bytes"] for row in ended)
    assert told == by_job
    assert bool(unclaimed) == any("charged to no job" in note for note in result.report.notes)
    return by_job, by_site, unclaimed


@pytest.mark.parametrize("broker", ["earliest-finish", "heft"])
def test_a_file_that_a_planner_sends_ahead_is_charged_to_the_task_that_reads_it(broker):
    tasks = [Task(id=id_, run=run) for id_, run in zip("abc", (10, 100, 100), strict=True)]
    flow = Workflow(tasks, [("a", "b", 2e9), ("a", "c", 2e9)], name="fork")
    wan = NetworkSpec(links=[LinkSpec(name="w", bandwidth=1e9, between=("A", "B"))])
    two = GridSpec(sites=[SiteSpec(name=name, cores=1) for name in "AB"], network=wan)
    by_job, by_site, _ = run(two, flow, broker)
    assert by_job == {"a": 0, "b": 0, "c": 2e9}
    assert by_site == [0, 2e9]
    result = simulate(two, flow, broker)
    assert result.by_workflow([flow])["bytes"].tolist() == [2e9]
    assert any(line.split()[:3] == ["B", "1", "1"] for line in result.summary().splitlines())
    assert "2GB" in result.summary()


def test_a_file_of_two_jobs_is_charged_to_the_first_that_asks_for_it():
    jobs = [Job(id=1, submit=5, run=1, inputs=["f"], site="a"), Job(id=2, run=1, inputs=["f"], site="a")]
    assert run(spec(), jobs) == ({1: 0, 2: 20}, [20, 0, 0], 0)


def test_a_file_is_charged_to_the_next_job_if_the_first_is_cancelled_on_the_way():
    jobs = [Job(id=i, submit=i, run=1, inputs=["f"], site="a") for i in (1, 2)]
    sim = start(spec(), jobs, "siloed").run(until=5)
    sim.system.cancel(next(job for job in sim.system.present() if job.id == 1))
    result = sim.run().result()
    assert result.jobs["state"].tolist() == ["cancelled", "finished"]
    assert result.jobs["bytes_in"].tolist() == [0, 20]


def test_what_nobody_waits_for_any_more_is_broken_off_and_charged_to_nobody():
    result = simulate(spec(), [Job(id=1, run=1, inputs=["f"], site="a", cancel=5)], "siloed")
    assert result.flows["failed"].tolist() == [1]
    assert result.flows["bytes"].sum() == result.jobs["bytes_in"].sum() == 0


def test_what_is_moved_again_for_a_retry_counts_again_and_at_its_own_site():
    outage = SiteOutageSpec(site="a", at=25, until=1000)
    grid = spec(outages=[outage], retries=1)
    assert run(grid, [Job(id=1, run=100, inputs=["f"])], "least-loaded") == ({1: 40}, [20, 20, 0], 0)


def test_a_file_that_was_evicted_is_charged_again():
    grid = spec(storage=StorageSpec(capacity=60), a={"storage": StorageSpec(capacity=30)})
    jobs = [Job(id=i, submit=100 * i, run=1, inputs=[name], site="a") for i, name in enumerate("fgf")]
    assert run(grid, jobs) == ({0: 20, 1: 30, 2: 20}, [70, 0, 0], 0)


def test_an_output_that_is_sent_on_is_charged_to_the_job_that_wrote_it():
    class Home(DataPolicy):
        name = "to-c"

        def target(self, file, site):
            return self.grid.sites["c"]

    jobs = [Job(id=1, run=1, inputs=["f"], outputs=[File("o", 7)], site="a")]
    assert run(spec(), jobs, data=Home()) == ({1: 27}, [20, 0, 7], 0)


class Ahead(DataPolicy):
    """Sends f to a at once, or at an instant."""

    name = "ahead"

    def __init__(self, at=0):
        self.at = at

    def decide(self, view):
        if view.now < self.at:
            yield WakeAt(self.at)
        elif not view.files.holds("f", "a"):
            yield Transfer("f", None, view.site("a"))


@pytest.mark.parametrize("submit", [10, 500], ids=["on its way", "there"])
def test_what_a_policy_has_moved_is_charged_to_the_first_job_that_asks_for_it_there(submit):
    jobs = [Job(id=i, submit=submit + i, run=1, inputs=["f"], site="a") for i in (1, 2)]
    assert run(spec(), jobs, data=Ahead()) == ({1: 20, 2: 0}, [20, 0, 0], 0)


def test_what_no_job_asks_for_is_in_the_bytes_of_sites_and_in_a_note():
    jobs = [Job(id=1, run=100, site="b"), Job(id=2, submit=30, run=1, inputs=["g"], site="a")]
    assert run(spec(), jobs, data=Ahead()) == ({1: 0, 2: 30}, [50, 0, 0], 20)
    note = "20B were moved by policies to sites where no job asked for them: charged to no job"
    assert note in str(simulate(spec(), jobs, "siloed", data=Ahead()).report)


def test_inputs_that_are_sent_ahead_of_an_overhead_are_charged_to_their_job():
    jobs = [Job(id=1, run=1, inputs=["f"], site="a")]
    assert run(spec(a={"overhead": 60}), jobs, data="prefetch") == ({1: 20}, [20, 0, 0], 0)


@pytest.mark.parametrize("cut", [5, 15, 25])
def test_charges_are_in_snapshots(cut):
    """A planned task, and a file that a policy has moved, before and after they have arrived."""
    tasks = [Task(id="a", run=10), Task(id="b", run=1000), Task(id="c", run=1000), Task(id="d", run=1)]
    flow = Workflow(tasks, [("a", "b", 4), ("a", "c", 4), ("b", "d"), ("c", "d", 9)])
    grid = spec("ab", (), a={"cores": 1}, b={"cores": 1})
    whole = simulate(grid, flow, "heft")
    again = simulate(Snapshot.from_json(start(grid, flow, "heft").run(until=cut).snapshot().to_json()))
    rows = {row["job"]: row["bytes_in"] for row in whole.jobs.rows()}
    assert whole.jobs["bytes_in"].sum() > 0
    assert all(row["bytes_in"] == rows[row["job"]] for row in again.jobs.rows())
    jobs = [Job(id=1, submit=30, run=1, inputs=["f"], site="a")]
    sim = start(spec(), jobs, "siloed", data=Ahead()).run(until=cut)
    again = Grid.from_snapshot(Environment(cut), Snapshot.from_json(sim.snapshot().to_json()), data=Ahead())
    again.env.run()
    assert again.result().jobs["bytes_in"].tolist() == [20]


def test_streamed_records_have_the_same_bytes(tmp_path):
    outage = SiteOutageSpec(site="a", at=25, until=1000)
    jobs = [Job(id=i, submit=i, run=100, inputs=["f" if i % 2 else "g"]) for i in range(6)]
    kept = simulate(spec(outages=[outage], retries=3), jobs, "round-robin")
    streamed = simulate(spec(outages=[outage], retries=3), jobs, "round-robin", stream=tmp_path / "jobs.db")
    assert streamed.sites["bytes_in"].tolist() == kept.sites["bytes_in"].tolist()
    loaded = streamed.load()
    assert loaded.jobs["bytes_in"].tolist() == kept.jobs["bytes_in"].tolist()
    assert kept.jobs["bytes_in"].sum() == kept.flows["bytes"].sum() > 0
    assert list(loaded.runs.rows()) == list(kept.runs.rows())


# ---------------------------------------------------------------------- SLR


def test_slr_is_over_the_fastest_hosts():
    hosts = [NodeSpec(cores=1, speed=2), NodeSpec(cores=1, speed=0.5)]
    grid = GridSpec(sites=[SiteSpec(name="a", hosts=hosts), SiteSpec(name="b", cores=1)])
    one = Workflow([Task(id="x", run=10)])
    for site, seconds in (("a", 5), ("b", 10)):
        result = simulate(grid, {site: one}, "siloed")
        [row] = result.by_workflow([one]).rows()
        assert (row["makespan"], row["slr"]) == (seconds, seconds / 5)
    assert result.by_workflow([one], speed=1)["slr"].tolist() == [1]
    assert result.places["speed"].tolist() == [2, 1]


def test_slr_of_a_chain_on_the_fastest_host_is_one_at_any_instant():
    tasks = [Task(id=i, run=0.1 + i / 7) for i in range(9)]
    flow = Workflow(tasks, [(i, i + 1) for i in range(8)])
    grid = GridSpec(sites=[SiteSpec(name="a", hosts=[NodeSpec(cores=1, speed=1.7)])])
    for at in (0, 1 / 3, 98765.4321):
        [slr] = simulate(grid, [(at, flow)]).by_workflow([(at, flow)])["slr"].tolist()
        assert 1 <= slr <= 1 + 1e-9


def test_records_without_speeds_need_one():
    result = simulate(GridSpec(sites=[SiteSpec(name="a", cores=1)]), flow := Workflow([Task(id="x", run=10)]))
    places = {name: column for name, column in result.places.items() if name != "speed"}
    old = GridRecord(jobs=result.jobs, places=places, processors=1)
    with pytest.raises(
        InputError, match="speed: must be that of the fastest hosts: the record is of an earlier version"
    ):
        by_workflow(old, [flow])
    assert by_workflow(old, [flow], 2)["slr"].tolist() == [2]


def test_a_job_that_a_grid_takes_from_a_script_is_charged_as_any_other():
    grid = Grid(Environment(), spec(), "siloed")
    job = grid.submit(Job(run=1, inputs=["f", "g"]), home="b")
    grid.env.run()
    assert (job.state, grid.result().jobs["bytes_in"].tolist()) == ("completed", [50])
