"""Grids by hand: staging, overhead, files that are full, lost or shared, sites that fail, and jobs that wait."""

import pytest

from simmodel import Environment, Job, Start, simulate
from simmodel.foundation.errors import ImpossibleWork, InputError, PolicyError
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.policies import DataPolicy
from simmodel.systems.grid.system import Grid
from simmodel.work import Dependency, File, Workload

DISK = StorageSpec(capacity=100, read_bandwidth=10, write_bandwidth=5)
WAN = NetworkSpec(links=[LinkSpec(name="wan", bandwidth=2, latency=1, between=("a", "b"))])
FILES = (FileSpec(name="f", size=20, sites=["a"]), FileSpec(name="g", size=30, sites=["b"]))


def two(policy="round-robin", *, a=None, b=None, **options):
    sites = [SiteSpec(name=name, **{"cores": 4, "storage": DISK, **(own or {})}) for name, own in (("a", a), ("b", b))]
    return Grid(Environment(), GridSpec(sites=sites, **{"network": WAN, "files": FILES, **options}), policy)


def row(grid, number=0):
    return list(grid.result().jobs.rows())[number]


def instants(grid, number=0):
    found = row(grid, number)
    return [found[name] for name in ("assigned", "queued", "start", "executing", "end", "finished")]


def test_inputs_come_before_the_queue_and_are_read_while_cores_are_held():
    grid = two("siloed")
    grid.submit(Job(run=10, inputs=["f"], outputs=[File("o", 10)]), home="b")
    grid.env.run()
    # 20 bytes at 2 bytes/s after 1 s; read at 10, executed 10 s, written at 5
    assert instants(grid) == [0, 11, 11, 13, 23, 25]
    assert (row(grid)["bytes_in"], row(grid)["bytes_out"]) == (20, 10)
    assert grid.data.catalogue.sites_of("f") == ("a", "b")
    assert grid.data.catalogue.sites_of("o") == ("b",)


def test_inputs_may_come_while_cores_are_held():
    grid = two("siloed", b={"staging": "inside", "overhead": 3})
    grid.submit(Job(run=10, inputs=["f"]), home="b")
    grid.env.run()
    assert instants(grid) == [0, 3, 3, 16, 26, 26]


def test_a_file_that_two_jobs_need_is_sent_once():
    grid = two("siloed")
    for _ in range(2):
        grid.submit(Job(run=10, inputs=["f"]), home="b")
    sent = []

    class Watch:
        def file_transfer_started(self, fetch):
            sent.append((grid.env.now, fetch.file, fetch.source.name, fetch.site.name))

    grid.env.observe(Watch())
    grid.env.run()
    assert sent == [(0, "f", "a", "b")]
    # both read at once: 20 bytes each at 5 bytes/s
    assert [instants(grid, each) for each in (0, 1)] == [[0, 11, 11, 15, 25, 25]] * 2
    assert grid.result().jobs["bytes_in"].tolist() == [20, 0]


def test_hosts_have_speeds_and_disks_of_their_own():
    hosts = [NodeSpec(count=1, cores=2, speed=2.0), NodeSpec(count=1, cores=8)]
    site = SiteSpec(name="a", hosts=hosts, placement="first-fit", disks=[(20, 20), (4, 4)], storage=DISK)
    grid = Grid(Environment(), GridSpec(sites=[site], files=[FILES[0]]))
    small = grid.submit(Job(processors=2, run=10, inputs=["f"]))
    large = grid.submit(Job(processors=8, run=10, inputs=["f"], outputs=[File("o", 8)]))
    grid.env.run()
    assert small.state == large.state == "completed"
    assert instants(grid) == [0, 0, 0, 1, 6, 6]
    assert instants(grid, 1) == [0, 0, 0, 5, 15, 17]


def test_a_job_whose_file_exists_nowhere_fails_at_once():
    grid = two(retries=5)
    job = grid.submit(Job(run=10, inputs=["nowhere"]))
    grid.env.run()
    assert job.state == "failed"
    assert (row(grid)["reason"], row(grid)["attempts"]) == ("file nowhere exists nowhere", 1)


def test_a_file_that_no_route_brings_fails_the_job_there():
    grid = two("siloed", network=NetworkSpec(links=()))
    grid.submit(Job(run=10, inputs=["f"]), home="b")
    grid.env.run()
    assert row(grid)["reason"] == "no route to b from a"


def test_a_job_tries_again_at_another_site_when_its_site_fails():
    grid = two(retries=1, outages=[SiteOutageSpec(site="a", at=4, until=50)])
    first, second = [grid.submit(Job(processors=4, run=10)) for _ in range(2)]
    grid.env.run()
    assert (first.state, second.state) == ("completed", "completed")
    assert instants(grid) == [4, 4, 10, 10, 20, 20]
    assert (row(grid)["site"], row(grid)["attempts"]) == ("b", 2)
    runs = grid.result().runs
    assert [(run["job"], run["start"], run["end"], run["place"], run["status"]) for run in runs.rows()] == [
        (1, 0, 4, "a", "requeued"),
        (2, 0, 10, "b", "completed"),
        (1, 10, 20, "b", "completed"),
    ]


def test_a_result_in_the_middle_of_a_run_says_which_jobs_run_since_when():
    grid = two("siloed")
    for _ in range(2):
        grid.submit(Job(processors=4, run=10), home="a", at=1)
    grid.env.run(until=5)
    found = [[row(grid, number)[name] for name in ("status", "state")] for number in range(2)]
    assert found == [["running", "running"], ["waiting", "queued"]]
    assert str(grid.result().jobs["start"].tolist()) == "[1.0, nan]"


def test_without_retries_the_jobs_of_a_site_that_fails_have_failed():
    grid = two(outages=[SiteOutageSpec(site="a", at=4, until=50)])
    running, waiting = [grid.submit(Job(processors=4, run=10, site="a"), home="a") for _ in range(2)]
    other = grid.submit(Job(run=1), at=5)
    grid.env.run()
    assert [running.state, other.state] == ["failed", "completed"]
    assert waiting.destination.name == "b"  # round robin
    assert row(grid)["reason"] == "site failed"


def test_a_transfer_from_a_site_that_fails_begins_again_elsewhere_or_when_it_is_back():
    grid = two("siloed", outages=[SiteOutageSpec(site="a", at=5, until=20)])
    grid.submit(Job(run=10, inputs=["f"]), home="b")
    grid.env.run()
    assert instants(grid) == [0, 31, 31, 33, 43, 43]


def test_a_closed_site_takes_no_jobs_and_those_that_nobody_takes_wait_at_the_broker():
    grid = two(outages=[SiteOutageSpec(site=name, at=0, until=7, kind="closed") for name in "ab"])
    job = grid.submit(Job(run=10), at=2)
    grid.env.run(until=5)
    assert row(grid)["state"] == "pending"
    assert list(grid.waiting_report()) == ["job 1 waits since 2 for policy round-robin to choose a place"]
    grid.env.run()
    assert (job.started, job.state) == (7, "completed")


def test_a_site_with_a_limit_takes_the_next_job_when_one_has_ended():
    grid = two("least-loaded", a={"limit": 1}, b={"limit": 1})
    jobs = [grid.submit(Job(run=10)) for _ in range(3)]
    grid.env.run()
    assert [job.started for job in jobs] == [0, 0, 10]


def test_dispatch_can_be_stopped():
    grid = two()
    grid.stop_dispatch()
    job = grid.submit(Job(run=10))
    grid.env.call_at(6, grid.resume_dispatch)
    grid.env.run()
    assert job.started == 6


def test_room_is_made_by_eviction_but_a_last_replica_stays():
    small = StorageSpec(capacity=60, read_bandwidth=10, write_bandwidth=5)
    sites = [SiteSpec(name="a", cores=4, storage=DISK), SiteSpec(name="b", cores=1, storage=small)]
    files = [FileSpec(name=f"f{i}", size=30, sites=["a"]) for i in range(3)]
    grid = Grid(Environment(), GridSpec(sites=sites, network=WAN, files=files), "siloed")
    for number in range(3):
        grid.submit(Job(run=1, inputs=[f"f{number}"]), home="b", at=number * 100)
    grid.submit(Job(run=1, outputs=[File("big", 50)]), home="b", at=400)
    grid.submit(Job(run=1, inputs=["f0"]), home="b", at=600)
    grid.env.run()
    assert grid.result().jobs["state"].tolist() == ["finished"] * 4 + ["failed"]
    assert row(grid, 4)["reason"] == "no room for file f0 in storage b"
    assert list(grid.sites["b"].storage.files) == ["big"]
    assert [grid.data.catalogue.sites_of(f"f{i}") for i in range(3)] == [("a",)] * 3


def test_jobs_that_hold_what_each_other_needs_do_not_wait_for_ever():
    tight = StorageSpec(capacity=50, read_bandwidth=10, write_bandwidth=5)
    sites = [SiteSpec(name="a", cores=4, storage=DISK), SiteSpec(name="b", cores=4, storage=tight)]
    files = [FileSpec(name=f"f{i}", size=25, sites=["a"]) for i in range(4)]
    grid = Grid(Environment(), GridSpec(sites=sites, network=WAN, files=files), "siloed")
    grid.submit(Job(run=1, inputs=["f0", "f1"]), home="b")
    grid.submit(Job(run=1, inputs=["f2", "f3"]), home="b")
    grid.env.run()
    assert sorted(grid.result().jobs["state"].tolist()) in (["failed", "finished"], ["finished", "finished"])


def test_a_job_waits_for_another_one_and_for_its_output():
    grid = two("siloed")
    grid.submit(Job(id=1, run=10, outputs=[File("o", 10)]), home="a")
    grid.submit(Job(id=2, run=1, inputs=["o"], dependencies=[Dependency(1, think_time=5)]), home="b")
    grid.env.run()
    assert instants(grid) == [0, 0, 0, 0, 10, 12]
    assert instants(grid, 1) == [17, 23, 23, 24, 25, 25]  # 1 s + 10 bytes at 2 bytes/s, read at 10


def test_live_jobs_are_events_of_their_last_step():
    grid = two("siloed")

    def user(env):
        yield grid.submit(Job(run=10, outputs=[File("o", 10)]), home="a")
        return env.now

    assert grid.env.run(grid.env.process(user(grid.env))) == 12


@pytest.mark.parametrize(
    ("at", "phase"), [(0.5, "overhead"), (4, "staging in"), (15, "reading"), (20, "executing"), (30, "writing")]
)
def test_a_job_can_be_cancelled_in_every_phase(at, phase):
    grid = two("siloed", b={"overhead": 3})
    job = grid.submit(Job(run=10, inputs=["f"], outputs=[File("o", 50)]), home="b")
    grid.env.run(until=at)
    assert grid.stays.present[job].phase == phase
    grid.cancel(job)
    grid.env.run()
    assert (job.state, row(grid)["state"]) == ("cancelled", "cancelled")
    assert not grid.unfinished
    storage = grid.sites["b"].storage
    assert storage.used == sum(storage.files.values())
    assert grid.sites["b"].free == 4


def test_an_output_whose_last_byte_was_written_stays_although_its_job_is_cancelled_at_that_instant():
    """Two outputs are written at once until 15 s; whoever hears that the first job has finished cancels the second."""
    grid = two("siloed", a={"storage": StorageSpec(capacity=100, write_bandwidth=10)}, files=[])

    class Cancels:
        def job_finished(self, job, _site):
            if job is first:
                grid.cancel(second)

    grid.env.observe(Cancels())
    first, second = [grid.submit(Job(run=5, outputs=[File(name, 50)]), home="a") for name in "op"]
    grid.env.run()
    assert (first.state, second.state, grid.env.now) == ("completed", "cancelled", 15)
    assert grid.sites["a"].storage.files == {"o": 50, "p": 50}


def test_a_job_larger_than_every_host_is_refused_or_rejected():
    site = SiteSpec(name="a", hosts=[NodeSpec(count=4, cores=4)])
    grid = Grid(Environment(), GridSpec(sites=[site]))
    with pytest.raises(ImpossibleWork, match="the largest host of a has 4"):
        grid.submit(Job(processors=8, run=1))
    log = Workload({"submit": [0, 0], "run": [1, 1], "processors": [8, 4]})
    result = simulate(GridSpec(sites=[site]), log, "round-robin")
    assert result.jobs["state"].tolist() == ["rejected", "finished"]
    assert dict(result.report.rejected) == {"larger than the machine": 1}


def test_a_job_that_no_host_takes_although_cores_are_free_says_so():
    site = SiteSpec(name="a", hosts=[NodeSpec(count=2, cores=4)])
    grid = Grid(Environment(), GridSpec(sites=[site]))
    for _ in range(2):
        grid.submit(Job(processors=3, run=10))
    grid.submit(Job(processors=2, run=10))
    grid.env.run(until=1)
    assert any("free in total, on no host" in line for line in grid.sites["a"].system.waiting_report())


def test_a_broker_that_names_no_site_is_told():
    def wrong(view):
        for job in view.waiting:
            yield Start(job, "nowhere")

    grid = two(wrong)
    grid.submit(Job(run=1))
    with pytest.raises(PolicyError, match="place"):
        grid.env.run()


def test_each_job_of_a_log_has_its_own_home():
    columns = {"submit": [0, 0, 0], "run": [1, 1, 1], "processors": [1, 1, 1], "site": ["b", "a", "z"]}
    spec = GridSpec(sites=[SiteSpec(name="a", cores=4), SiteSpec(name="b", cores=4)])
    result = simulate(spec, Workload(columns), "recorded")
    assert result.jobs["site"].tolist() == ["b", "a", ""]
    assert result.jobs["state"].tolist() == ["finished", "finished", "rejected"]
    assert dict(result.report.rejected) == {"unknown site z": 1}
    assert simulate(spec, Workload(columns), "round-robin").jobs["state"].tolist() == ["finished"] * 3


def test_a_job_goes_only_to_sites_with_a_host_that_is_large_enough():
    sites = [
        SiteSpec(name="small", hosts=[NodeSpec(count=4, cores=4)]),
        SiteSpec(name="large", hosts=[NodeSpec(count=1, cores=8)]),
    ]
    log = Workload({"submit": [0, 0], "run": [1, 1], "processors": [8, 8]})
    for broker in ("round-robin", "least-loaded"):
        result = simulate(GridSpec(sites=sites), log, broker)
        assert result.jobs["site"].tolist() == ["large", "large"]
        assert result.jobs["end"].tolist() == [1, 2]


def test_observers_that_were_there_before_the_grid_are_told():
    seen = []

    class Watch:
        def job_created(self, job):
            seen.append("created")

        def job_assigned(self, job, site):
            seen.append("assigned")

        def job_finished(self, job, site):
            seen.append("finished")

    env = Environment()
    env.observe(Watch())
    Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=1)])).submit(Job(run=1))
    env.run()
    assert seen == ["created", "assigned", "finished"]


def test_switches_name_known_sites():
    grid = two()
    with pytest.raises(InputError, match="unknown site 'c'"):
        grid.close("c")
    with pytest.raises(InputError, match="a is not closed"):
        grid.reopen("a")


def test_a_site_with_a_limit_takes_the_next_job_once_the_outputs_of_one_are_written():
    env = Environment()
    storage = StorageSpec(write_bandwidth=4)
    grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=2, limit=1, storage=storage)]), "round-robin")
    for number in range(2):
        grid.submit(Job(run=10, outputs=[File(f"o{number}", 8)]))
    env.run()
    assert grid.result().jobs["start"].tolist() == [0, 12]


class ToA(DataPolicy):
    name = "to-a"

    def target(self, file, site):
        return self.grid.sites["a"]


@pytest.mark.parametrize(("at", "end"), [(25, 46), (30, 46)])
def test_an_output_waits_for_its_site_that_is_down(at, end):
    grid = two("siloed", outages=[SiteOutageSpec(site="a", at=at, until=40)])
    grid.set_data_policy(ToA())
    job = grid.submit(Job(run=26, outputs=[File("o", 10)]), home="b")
    grid.env.run(until=35)
    assert list(grid.waiting_report())[-1] == "file o cannot be brought to a: down: a"
    grid.env.run()
    assert (job.state, row(grid)["attempts"], row(grid)["finished"]) == ("completed", 1, end)
    assert grid.data.catalogue.sites_of("o") == ("a", "b")


def test_a_file_waits_for_room_that_a_job_which_starts_will_make():
    storage = StorageSpec(capacity=55, read_bandwidth=10, write_bandwidth=5)
    files = [*FILES, FileSpec(name="h", size=20, sites=["a"])]
    grid = two("siloed", b={"storage": storage}, files=files)
    grid.submit(Job(run=10, inputs=["f"]), home="b")
    grid.submit(Job(run=10, inputs=["h"]), home="b", at=1)
    grid.env.run()
    # f comes at 11 and has been read at 13; then h replaces it
    assert instants(grid) == [0, 11, 11, 13, 23, 23]
    assert instants(grid, 1) == [1, 24, 24, 26, 36, 36]


def test_a_job_keeps_its_priority_when_it_is_assigned_again():
    env = Environment()
    outages = [SiteOutageSpec(site="a", at=5, until=6), SiteOutageSpec(site="a", at=16, until=17)]
    spec = GridSpec(sites=[SiteSpec(name="a", cores=1)], outages=outages, retries=3)
    grid = Grid(env, spec, "round-robin", policies="sjf")
    jobs = [grid.submit(Job(id=i, run=10 - i, priority=i)) for i in range(4)]
    env.run(until=20)
    assert [job.priority for job in jobs] == [0, 1, 2, 3]
    assert grid.result().jobs["attempts"].tolist() == [3, 3, 3, 2]
    env.run()
    ended = grid.result().jobs["end"].tolist()
    assert sorted(range(4), key=ended.__getitem__) == [3, 2, 1, 0]


def test_jobs_that_are_assigned_again_wait_in_the_order_in_which_they_came():
    """The site got the last one first, and the failure returns all three."""
    seen = []

    def last_first(view):
        seen.append((view.now, [job.id for job in view.waiting]))
        site = view.places[0]
        yield from [Start(job, site) for job in reversed(list(view.waiting)) if site.can_run(job)]

    outages = [SiteOutageSpec(site="a", at=4, until=6)]
    spec = GridSpec(sites=[SiteSpec(name="a", cores=2)], outages=outages, retries=1)
    simulate(spec, [Job(id=name, run=10) for name in "abc"], last_first)
    assert seen == [(0, ["a", "b", "c"]), (4, ["a", "b", "c"]), (6, ["a", "b", "c"])]
