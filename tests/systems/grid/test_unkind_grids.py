"""Grids at their limits: full storages, outages at the instants of starts, files that nobody has or two jobs write."""

import numpy as np
import pytest

from simmodel import Environment, Job, Start, simulate, start
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.generators import grid_jobs, tiered_grid
from simmodel.platform import (
    DelaySpec,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    NodeSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.policies import DataPolicy
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.scheduling.protocol import Preempt, Transfer
from simmodel.systems.grid.system import Grid
from simmodel.work import File
from tests.helpers.unkind_grids import check_run, unkind
from tests.oracles.grid_events import Rows


def events_of(spec, jobs, policy="round-robin", **options):
    """Return the rows of the event-level data set of a run."""
    simulation = start(spec, jobs, policy, **options)
    rows = Rows({"events": GRID_EVENTS, "jobs": GRID_JOBS})
    simulation.env.observe(GridEvents(simulation.system, rows))
    simulation.run()
    return rows.tables


def told(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.few(10)
@pytest.mark.parametrize("seed", range(40))
def test_no_job_core_byte_or_file_is_lost_or_doubled(seed):
    check_run(*unkind(seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(40, 2040, 100))
def test_no_job_core_byte_or_file_is_lost_or_doubled_in_2000_grids(first):
    for seed in range(first, first + 100):
        check_run(*unkind(seed))


# ---------------------------------------------------------------------- starts that end at once


def six_sites():
    def site(name, count, cores, speed, staging, evict):
        storage = StorageSpec(capacity="40GB", read_bandwidth=1e9, write_bandwidth=5e8, evict=evict)
        hosts = [NodeSpec(count=count, cores=cores, speed=speed)]
        return SiteSpec(name=name, hosts=hosts, staging=staging, storage=storage)

    names = [f"S{i}" for i in range(6)]
    files = [("f0", 1.36, ["S3", "S0"]), ("f1", 8.21, ["S4"]), ("f2", 7.48, ["S4"]), ("f4", 2.27, ["S4"])]
    files += [("f5", 4.4, ["S4", "S1"]), ("f6", 0.6, ["S1", "S5"]), ("f7", 6.02, ["S4"]), ("f8", 5.79, ["S0"])]
    return GridSpec(
        sites=[
            *(site("S0", 2, 8, 1.5, "inside", "lru"), site("S1", 3, 2, 1.5, "before", "lru")),
            *(site("S2", 1, 8, 1, "inside", "lfu"), site("S3", 1, 2, 1, "before", "fifo")),
            *(site("S4", 3, 4, 1, "before", "lfu"), site("S5", 1, 2, 0.5, "inside", "lru")),
        ],
        network=NetworkSpec(
            links=[
                LinkSpec(name=a + b, bandwidth=5e7, latency=0.01, between=(a, b)) for a in names for b in names if a < b
            ]
        ),
        files=[FileSpec(name=name, size=size * 1e9, sites=sites) for name, size, sites in files],
        outages=[SiteOutageSpec(site="S4", at=3076.6, until=4694.3)],
        retries=3,
    )


def test_a_job_that_starts_has_a_site():
    jobs = [
        Job(id=2, submit=3212.9, run=22.9, inputs=["f8", "f4", "f2"]),
        Job(id=3, submit=2817.1, processors=4, run=842.8, inputs=["f5", "f6", "f1"]),
        Job(id=12, submit=3326.9, processors=4, run=319.5, inputs=["f7", "f4", "f8", "f0"]),
        Job(id=24, submit=1271.4, run=942.6, outputs=[File("o24", 2.07e9)]),
        Job(id=33, submit=683.4, run=57.8, outputs=[File("o33", 2.25e9)]),
    ]
    simulation = start(six_sites(), jobs, "data-locality")
    sites = []

    class Seen:
        def job_started(self, run):
            sites.append(run.job.destination)

    simulation.env.observe(Seen())
    simulation.run()
    assert len(sites) >= 5
    assert None not in sites


@pytest.mark.few(3)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "sjf"])
@pytest.mark.parametrize("retries", [0, 3])
def test_a_job_without_room_ends_after_the_decision_that_started_it(policy, retries):
    """Its policy must not be asked to start it again, and observers hear of its start before its end."""
    site = SiteSpec(name="a", hosts=[NodeSpec(count=2, cores=4)], storage=StorageSpec(capacity=10), staging="inside")
    other = SiteSpec(name="b", cores=1, storage=StorageSpec(capacity=100))
    spec = GridSpec(
        sites=[site, other],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=1, between=("a", "b"))]),
        files=[FileSpec(name="f", size=20, sites=["b"]), FileSpec(name="g", size=1, sites=["a"])],
        retries=retries,
    )
    jobs = [Job(id=i, processors=4, run=5, inputs=["f"] if i % 2 else ["g"]) for i in range(6)]
    rows = events_of(spec, jobs, "least-loaded", policies=policy)
    for number in range(1, 6, 2):
        life = [row["event"] for row in rows["events"] if row["job"] == number]
        assert life == [
            "created",
            *["assigned", "queued", "running", "staging in", "released", "retried"] * retries,
            *["assigned", "queued", "running", "staging in", "released", "failed"],
        ]
    assert {row["running"] for row in rows["events"][-1:]} == {0}
    assert simulate(spec, jobs, "least-loaded", policies=policy).jobs["state"].tolist() == ["finished", "failed"] * 3


def test_a_snapshot_between_a_start_and_its_files_goes_on_with_the_files():
    spec = GridSpec(
        sites=[SiteSpec(name="a", cores=1, staging="inside"), SiteSpec(name="b", cores=1)],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=2, between=("a", "b"))]),
        files=[FileSpec(name="f", size=20, sites=["b"])],
    )

    def at_a(view):
        for job in view.waiting:
            yield Start(job, view.places[0])

    grid = Grid(Environment(), spec, at_a)
    grid.submit(Job(run=5, inputs=["f"]))
    while grid.view.running or grid.unfinished:
        grid.env.step()
        if grid.places[0].system.running:
            break
    snapshot = grid.snapshot()
    assert [stay.phase for stay in snapshot.stays] == ["queued"]
    later = Environment(0)
    again = Grid.from_snapshot(later, snapshot, at_a)
    later.run()
    grid.env.run()
    assert again.result().jobs["end"].tolist() == grid.result().jobs["end"].tolist() == [15.0]


# ---------------------------------------------------------------------- room


def full(count, **options):
    return GridSpec(
        sites=[SiteSpec(name="a", cores=count + 1, storage=StorageSpec(capacity=100, read_bandwidth=1))],
        files=[FileSpec(name="f", size=100, sites=["a"])],
        **options,
    )


@pytest.mark.parametrize("count", [10, 1000])
def test_outputs_that_wait_for_room_at_once_are_given_up_at_once(count):
    jobs = [Job(id=0, run=10, inputs=["f"])]
    jobs += [Job(id=i, run=1, outputs=[File(f"o{i}", 10)]) for i in range(1, count + 1)]
    result = simulate(full(count), jobs)
    assert result.jobs["state"].tolist() == ["finished"] + ["failed"] * count
    assert set(result.jobs["finished"].tolist()) == {110.0, 100.0}  # when the last reader has its file
    assert set(result.jobs["reason"].tolist()[1:]) == {
        f"no room for file o{i} in storage a" for i in range(1, count + 1)
    }


@pytest.mark.exhaustive
def test_a_grid_of_10000_files_and_20000_jobs_ends():
    grid = tiered_grid(30, files=10_000, seed=1)
    result = simulate(grid, grid_jobs(grid, 20_000, seed=1), "least-loaded")
    assert set(result.jobs["state"].tolist()) <= {"finished", "failed"}


def test_storages_of_drawn_grids_hold_their_files():
    grid = tiered_grid(30, files=10_000, seed=1)
    assert max(site.storage.capacity for site in grid.sites) > 8e12
    assert tiered_grid(30, files=1000, seed=1).sites[1].storage.capacity == 8e12


def test_replicas_beyond_the_capacity_of_a_storage_are_refused():
    message = r"sites\[0\].storage.capacity: must hold the files at a, 110 bytes, got 100"
    sites = [SiteSpec(name=name, cores=1, storage=StorageSpec(capacity=100)) for name in "ab"]
    files = [FileSpec(name=f"f{i}", size=54.5, sites=["a", "b"] if i else ["a"]) for i in range(2)]
    with pytest.raises(InputError, match=message):
        GridSpec(sites=sites, files=files)
    GridSpec(sites=sites, files=[FileSpec(name=f"f{i}", size=50, sites=["a", "b"]) for i in range(2)])


def test_an_output_of_another_size_than_that_of_its_file_fails_its_job():
    spec = GridSpec(sites=[SiteSpec(name="a", cores=2)], files=[FileSpec(name="f", size=20, sites=["a"])], retries=2)
    jobs = [Job(run=1, outputs=[File("f", 30)]), Job(run=1, outputs=[File("o", 5)]), Job(run=2, outputs=[File("o", 6)])]
    result = simulate(spec, jobs)
    assert result.jobs["state"].tolist() == ["failed", "finished", "failed"]
    assert result.jobs["attempts"].tolist() == [1, 1, 1]
    assert result.jobs["reason"].tolist()[::2] == [
        "file 'f': must have one size, got 20 and 30 bytes",
        "file 'o': must have one size, got 5 and 6 bytes",
    ]


def test_a_file_that_is_overwritten_stays_until_it_is():
    disk = StorageSpec(capacity=100, write_bandwidth=1)
    spec = GridSpec(
        sites=[SiteSpec(name="a", cores=4, storage=disk), SiteSpec(name="b", cores=1)],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=10, between=("a", "b"))]),
        files=[FileSpec(name="f", size=60, sites=["a", "b"]), FileSpec(name="g", size=70, sites=["b"])],
    )
    jobs = [Job(run=0, outputs=[File("f", 60)]), Job(submit=1, run=1, inputs=["g"])]
    rows = events_of(spec, jobs, lambda view: [Start(job, view.places[0]) for job in view.waiting])
    found = [(row["time"], row["event"], row["file"]) for row in rows["events"] if row["file"]]
    assert found[:4] == [
        *[(0, "write started", "f"), (60, "write ended", "f")],
        *[(60, "evicted", "f"), (60, "transfer started", "g")],
    ]


def test_a_job_gives_up_no_room_of_another_that_writes_the_same_file():
    """The second is refused; the first waits on, and writes."""
    spec = full(4, retries=0)
    spec = GridSpec(
        sites=[*spec.sites, SiteSpec(name="b", cores=1)],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=100, between=("a", "b"))]),
        files=[FileSpec(name="f", size=100, sites=["a", "b"])],
    )
    jobs = [Job(id=0, run=10, inputs=["f"]), *(Job(id=i, run=i, outputs=[File("o", 10)]) for i in (1, 2))]
    result = simulate(spec, jobs, lambda view: [Start(job, view.places[0]) for job in view.waiting])
    assert result.jobs["state"].tolist() == ["finished", "finished", "failed"]
    assert result.jobs["finished"].tolist() == [110, 100, 2]


def test_the_last_byte_of_an_output_counts_although_a_script_takes_the_site_down_at_that_instant():
    disk = StorageSpec(capacity=100, write_bandwidth=10)
    spec = GridSpec(sites=[SiteSpec(name="a", cores=1, storage=disk)], retries=1)
    sim = start(spec, [Job(run=5, outputs=[File("o", 100)])])
    sim.env.call_at(15, lambda: sim.system.take_down("a"))  # before the writing, which is planned later
    sim.env.call_at(20, lambda: sim.system.bring_up("a"))
    [row] = sim.run().result().jobs.rows()
    assert (row["state"], row["attempts"]) == ("finished", 2)


# ---------------------------------------------------------------------- what the data set says


def test_reads_writes_and_transfers_that_are_broken_off_say_so():
    disk = StorageSpec(capacity=1000, read_bandwidth=1, write_bandwidth=1)
    spec = GridSpec(
        sites=[SiteSpec(name="a", cores=4, storage=disk), SiteSpec(name="b", cores=1)],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=2, between=("a", "b"))]),
        files=[FileSpec(name="f", size=100, sites=["a"]), FileSpec(name="g", size=200, sites=["b"])],
        outages=[SiteOutageSpec(site="a", at=40, until=50)],
    )
    jobs = [
        Job(id="r", run=1, inputs=["f"]),
        Job(id="w", run=10, outputs=[File("o", 100)]),
        Job(id="t", inputs=["g"], run=1),
    ]
    rows = events_of(spec, jobs, lambda view: [Start(job, view.places[0]) for job in view.waiting])
    broken = [row for row in rows["events"] if row["event"].endswith(" ended")]
    assert told(broken, "time", "event", "job", "bytes", "detail") == [
        (40, "write ended", "w", 30, "failed"),
        (40, "transfer ended", "t", 80, "failed"),
        (40, "read ended", "r", 40, "failed"),
    ]


@pytest.mark.parametrize("kind", [{"cores": 4}, {"hosts": [NodeSpec(count=2, cores=2)]}])
def test_a_site_that_goes_down_is_told_before_what_it_ends(kind):
    outages = [SiteOutageSpec(site="a", at=5, until=8)]
    spec = GridSpec(sites=[SiteSpec(name="a", **kind)], outages=outages, retries=1)
    jobs = [Job(id=i, processors=2, run=10) for i in range(3)]
    rows = events_of(spec, jobs)
    at = [row for row in rows["events"] if row["time"] == 5]
    assert at[0]["event"] == "site down"
    assert sorted(row["event"] for row in at[1:]) == ["released"] * 2 + ["retried"] * 3
    assert {row["free_cores"] for row in at} == {0}
    assert (at[-1]["queued"], at[-1]["running"]) == (0, 0)
    back = next(row for row in rows["events"] if row["event"] == "site up")
    assert (back["free_cores"], back["queued"]) == (4, 0)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("outages", [(), (SiteOutageSpec(site="a", at=5, until=8),)])
def test_rejected_jobs_have_their_events_and_their_row(early, outages):
    """Those that are known to be impossible before they come, and all others; whenever the data set is attached."""
    spec = GridSpec(
        sites=[SiteSpec(name="a", hosts=[NodeSpec(count=2, cores=2)]), SiteSpec(name="b", cores=3)], outages=outages
    )
    jobs = [
        Job(id=1, run=1),
        Job(id=2, submit=7, run=1, processors=5, user="u"),
        Job(id=3, submit=9, run=1, processors=4),
    ]
    for workload in (jobs, jobs[1:]):
        grid, rows = Grid(Environment(), spec, "round-robin"), Rows({"events": GRID_EVENTS, "jobs": GRID_JOBS})
        if early:
            grid.env.observe(GridEvents(grid, rows))
        grid.replay(workload)
        if not early:
            grid.env.observe(GridEvents(grid, rows))
        grid.env.run()
        events = [row for row in rows.tables["events"] if row["job"] in (2, 3)]
        assert sorted(told(events, "job", "time", "event")) == [
            *[(2, 7, "created"), (2, 7, "rejected"), (3, 9, "created"), (3, 9, "rejected")]
        ]
        found = {row["job"]: row for row in rows.tables["jobs"]}
        assert len(found) == len(workload) == len(grid.result().jobs)
        for row in grid.result().jobs.rows():
            assert found[row["job"]]["state"] == row["state"]
            if row["state"] == "rejected":
                assert found[row["job"]]["reason"] == row["reason"] != ""
                assert found[row["job"]]["submit"] == row["submit"]
        assert found[2]["user"] == "u"


# ---------------------------------------------------------------------- policies


def test_a_copy_without_a_route_is_refused():
    class Wrong(DataPolicy):
        name = "wrong"

        def decide(self, view):
            yield Transfer("f", view.sites[0], view.sites[1])

    spec = GridSpec(
        sites=[SiteSpec(name=name, cores=1) for name in "ab"], files=[FileSpec(name="f", size=1, sites="a")]
    )
    with pytest.raises(PolicyError, match="no route from a to b"):
        simulate(spec, [Job(run=1)], data=Wrong())


@pytest.mark.parametrize("broker", ["min-min", "max-min", "sufferage"])
def test_batch_mapping_obeys_the_limit_of_a_site_and_assigns_jobs_whose_files_are_nowhere(broker):
    spec = GridSpec(sites=[SiteSpec(name="a", cores=8, limit=2), SiteSpec(name="b", hosts=[NodeSpec(speed=0.1)])])
    jobs = [Job(id=i, run=10 + i, inputs=["nowhere"] if i == 4 else []) for i in range(8)]
    result = simulate(spec, jobs, broker)
    assert result.jobs["state"].tolist() == ["failed" if i == 4 else "finished" for i in range(8)]
    at_a = sorted((row["assigned"], row["finished"]) for row in result.jobs.rows() if row["site"] == "a")
    for begin, _ in at_a:
        assert sum(other <= begin < end for other, end in at_a) <= 2


def test_a_job_that_reads_files_cannot_be_preempted():
    def rude(view):
        for job in view.waiting:
            yield Start(job, view.places[0])
        for run in list(view.running):
            yield Preempt(run.job, "requeue")

    spec = GridSpec(sites=[SiteSpec(name="a", cores=1)], files=[FileSpec(name="f", size=1, sites="a")])
    with pytest.raises(PolicyError, match="a job that reads files at a site of a grid cannot be preempted"):
        simulate(spec, [Job(run=1, inputs=["f"])], policies=rude)


@pytest.mark.parametrize("staging", ["before", "inside"])
def test_a_body_begins_when_its_inputs_are_read(staging):
    began = []

    def body(env, _job, _grant):
        began.append(env.now)
        yield env.timeout(5)

    spec = GridSpec(
        sites=[
            SiteSpec(name="a", cores=1, staging=staging, storage=StorageSpec(read_bandwidth=5)),
            SiteSpec(name="b", cores=1),
        ],
        network=NetworkSpec(links=[LinkSpec(name="w", bandwidth=2, between=("a", "b"))]),
        files=[FileSpec(name="f", size=10, sites=["b"])],
        outages=[SiteOutageSpec(site="a", at=6, until=6.5), SiteOutageSpec(site="a", at=10, until=20)],
        retries=2,
    )
    result = simulate(spec, [Job(body=body, inputs=["f"], outputs=[File("o", 1)], site="a")], "recorded")
    # The first outage breaks off the reading; the file is there for the second attempt, and the body falls into the
    # second outage.
    assert began == [8.5, 22]
    assert [result.jobs[name].tolist() for name in ("attempts", "executing", "end")] == [[3], [22.0], [27.0]]


# ---------------------------------------------------------------------- common random numbers

DELAYS = [DelaySpec(distribution="exponential", mean=60), DelaySpec(distribution="log-normal", mean=90, cv=2)]


def overheads(broker, seed=5, **options):
    sites = [SiteSpec(name=f"s{i}", cores=30, overhead=DELAYS[i % 2]) for i in range(4)]
    jobs = [Job(id=i, submit=i // 3, run=50 + i % 7) for i in range(400)]
    result = simulate(GridSpec(sites=sites, **options), jobs, broker, seed=seed)
    return {row["job"]: (row["site"], row["queued"] - row["assigned"]) for row in result.jobs.rows()}


def test_jobs_that_two_brokers_send_to_the_same_site_have_the_same_overhead():
    by_turns, by_load, drawn = overheads("round-robin"), overheads("least-loaded"), overheads("random")
    for other in (by_load, drawn):
        same = [job for job in by_turns if by_turns[job][0] == other[job][0]]
        assert 50 < len(same) < 400
        for job in same:
            assert by_turns[job][1] == pytest.approx(other[job][1], abs=1e-9)
    assert overheads("round-robin", seed=6)[0][1] != by_turns[0][1]


def test_overheads_have_their_distribution_and_are_independent():
    at = overheads("round-robin", seed=1)
    for kind, (first, second) in enumerate((("s0", "s2"), ("s1", "s3"))):
        shares = np.sort([share(DELAYS[kind], seconds) for site, seconds in at.values() if site in (first, second)])
        steps = (np.arange(len(shares)) + 0.5) / len(shares)
        assert np.abs(shares - steps).max() < 1.63 / np.sqrt(len(shares))  # Kolmogorov and Smirnov, 1 %
    series = [share(DELAYS[int(site[1]) % 2], seconds) for site, seconds in at.values()]
    assert abs(np.corrcoef(series[:-1], series[1:])[0, 1]) < 0.13


def share(delay, seconds):
    """Return the share of delays that take at most so long, by bisection of the quantiles."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if delay.quantile(middle or 1e-18) < seconds else (low, middle)
    return high


def test_a_retried_job_draws_anew_and_a_snapshot_draws_what_the_run_would():
    outages = [SiteOutageSpec(site=f"s{i}", at=40, until=41) for i in range(4)]
    sites = [SiteSpec(name=f"s{i}", cores=30, overhead=DELAYS[0]) for i in range(4)]
    jobs = [Job(id=f"j{i}", submit=i // 3, run=50) for i in range(300)]
    simulation = start(GridSpec(sites=sites, outages=outages, retries=1), jobs, "round-robin", seed=3)
    simulation.run(until=30)
    snapshot = simulation.snapshot()
    whole = {row["job"]: row for row in simulation.run().result().jobs.rows()}
    again = [row for row in whole.values() if row["attempts"] == 2]
    assert len(again) > 50
    assert len({round(row["queued"] - row["assigned"], 6) for row in again}) == len(again)
    rest = simulate(snapshot).jobs
    assert len(rest) > 200
    for row in rest.rows():
        assert row["queued"] == pytest.approx(whole[row["job"]]["queued"], abs=1e-9)
