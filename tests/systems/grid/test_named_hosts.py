"""Brokers that name the host of a job."""

import numpy as np
import pytest

from simmodel import Environment, Job, Start, what_if
from simmodel.foundation.errors import PolicyError
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.scheduling import Policy, Preempt
from simmodel.snapshots import Snapshot
from simmodel.systems import Broker, Cluster
from simmodel.systems.grid.system import Grid

HOSTS = [NodeSpec(count=3, cores=4), NodeSpec(name="big", count=1, cores=16, gpus=2)]
SLOW = NetworkSpec(links=[LinkSpec(name="wan", bandwidth=2, between=("a", "b"))])


def spec(**options):
    sites = [
        SiteSpec(name="a", hosts=HOSTS, storage=StorageSpec(read_bandwidth=10), **options),
        SiteSpec(name="b", cores=8, storage=StorageSpec(read_bandwidth=10)),
    ]
    return GridSpec(sites=sites, network=SLOW, files=[FileSpec(name="f", size=20, sites=["b"])], retries=1)


def to(*hosts):
    """Return a broker that sends jobs to site a, and there to these hosts in turn."""

    def named(view):
        for job in view.waiting:
            yield Start(job, view.places[0], allocation=hosts[(job.row) % len(hosts)])

    return named


class Watch:
    def __init__(self, env):
        self.ran = []
        env.observe(self)

    def job_started(self, run):
        nodes = run.grant.nodes
        self.ran.append((run.job.id, run.started, run.place.nodes[nodes[0]] if nodes else ""))


def played(jobs, policy, sites="fcfs", **options):
    env = Environment()
    watch = Watch(env)
    grid = Grid(env, spec(**options), policy, policies=sites)
    for job in jobs:
        grid.submit(job)
    env.run()
    assert grid.unfinished == 0
    assert grid.sites["a"].free == 28
    return watch.ran


def test_a_job_runs_on_the_host_that_the_broker_names_by_name_or_number():
    jobs = [Job(id=i, processors=2, run=10) for i in range(4)]
    assert played(jobs, to("node2", 3)) == [(0, 0, "node2"), (1, 0, "big0"), (2, 0, "node2"), (3, 0, "big0")]


def test_a_job_waits_for_its_host_though_others_are_idle():
    jobs = [Job(id=i, processors=3, run=10) for i in range(3)]
    assert played(jobs, to("node1")) == [(i, 10 * i, "node1") for i in range(3)]


@pytest.mark.parametrize("sites", ["fcfs", "easy", "conservative", "conservative-keep"])
def test_jobs_that_wait_for_a_host_keep_their_place_in_the_queue_and_others_pass_as_the_policy_says(sites):
    jobs = [Job(id=0, processors=3, run=10), Job(id=1, processors=3, run=10), Job(id=2, processors=2, run=5)]
    passes = 0 if sites != "fcfs" else 10
    assert played(jobs, to("node1", "node1", "node2"), sites) == sorted(
        [(0, 0, "node1"), (1, 10, "node1"), (2, passes, "node2")], key=lambda run: run[1:2]
    )


def test_the_speed_is_that_of_the_host():
    hosts = [NodeSpec(count=1, cores=4), NodeSpec(name="fast", count=1, cores=4, speed=2)]
    env = Environment()
    grid = Grid(env, GridSpec(sites=[SiteSpec(name="a", hosts=hosts)]), to("fast0"))
    grid.submit(Job(run=10))
    env.run()
    assert grid.result().jobs["end"].tolist() == [5]


@pytest.mark.parametrize(
    ("site", "host", "message"),
    [
        (0, "node7", r"policy wrong at 0\.0, job 1 on a: allocation: unknown host 'node7'; did you mean 'node\d'\?"),
        (0, 4, r"job 1 on a: allocation: must be the name of a host or a number from 0 to 3, got 4"),
        (0, True, "allocation: must be the name of a host or a number from 0 to 3, got True"),
        (0, "node1", "allocation: host node1 is too small: 6 cores requested, 4 there"),
        (1, "node1", "job 1 on b: allocation: must be None: b has no hosts, got 'node1'"),
    ],
)
def test_a_wrong_host_is_refused_with_its_names(site, host, message):
    def wrong(view):
        for job in view.waiting:
            yield Start(job, view.places[site], allocation=host)

    grid = Grid(Environment(), spec(), wrong)
    grid.submit(Job(processors=6, run=1))
    with pytest.raises(PolicyError, match=message):
        grid.env.run()


def test_a_host_without_the_gpus_of_a_job_is_too_small():
    grid = Grid(Environment(), spec(), to("node1"))
    grid.submit(Job(nodes=1, cores_per_node=2, gpus_per_node=1, run=1))
    with pytest.raises(PolicyError, match="host node1 is too small: 1 GPUs requested, 0 there"):
        grid.env.run()
    assert played([Job(id=0, nodes=1, cores_per_node=2, gpus_per_node=1, run=1)], to("big0")) == [(0, 0, "big0")]


def test_a_broker_that_is_no_grid_names_no_hosts():
    env = Environment()

    def wrong(view):
        for job in view.waiting:
            yield Start(job, view.places[0], allocation=1)

    broker = Broker(env, [Cluster(env, 4)], wrong)
    broker.submit(Job(run=1))
    with pytest.raises(PolicyError, match="allocation: must be None: broker is no grid, got 1"):
        env.run()


def test_sites_show_the_free_cores_of_their_hosts():
    seen = []

    def emptiest(view):
        site = view.places[0]
        for job in view.waiting:
            seen.append(site.hosts)
            yield Start(job, site, allocation=max(site.hosts, key=site.hosts.get))

    assert [run[2] for run in played([Job(id=i, processors=7, run=9) for i in range(2)], emptiest)] == ["big0"] * 2
    assert seen[0] == {"node0": 4, "node1": 4, "node2": 4, "big0": 16}
    grid = Grid(Environment(), spec())
    assert grid.sites["b"].hosts == {}
    grid.take_down("a")
    assert grid.sites["a"].hosts == dict.fromkeys(seen[0], 0)


def test_a_job_that_is_assigned_again_runs_on_the_host_named_then():
    def broker(view):
        for job in view.waiting:
            site = view.places[0]
            if site.can_run(job):
                yield Start(job, site, allocation="node2" if view.now else "node1")

    env = Environment()
    watch = Watch(env)
    grid = Grid(
        env, GridSpec(sites=spec().sites[:1], retries=1, outages=[SiteOutageSpec(site="a", at=4, until=6)]), broker
    )
    grid.submit(Job(id=0, run=10))
    env.run()
    assert watch.ran == [(0, 0, "node1"), (0, 6, "node2")]


class OnHosts(Policy):
    """Sends each job to a drawn host of a, sometimes to b."""

    name = "on-hosts"
    decides = "systems"

    def decide(self, view):
        for job in view.waiting:
            drawn = int(view.rng.integers(5))
            yield Start(
                job, view.places[drawn // 4], allocation=drawn if drawn < 4 and view.places[0].can_run(job) else None
            )


def drawn(seed):
    rng = np.random.default_rng(seed)
    for i in range(25):
        files = ("f",) if rng.random() < 0.4 else ()
        yield Job(
            id=i,
            submit=float(rng.integers(30)),
            processors=int(rng.integers(1, 5)),
            run=float(rng.integers(1, 20)),
            inputs=files,
        )


@pytest.mark.few(6)
@pytest.mark.parametrize("sites", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(12))
def test_named_hosts_are_in_snapshots_in_every_phase(seed, sites):
    def begun():
        env = Environment(seed=seed)
        watch = Watch(env)
        grid = Grid(env, spec(overhead=2, staging=("before", "inside")[seed % 2]), OnHosts(), policies=sites)
        for job in drawn(seed):
            grid.submit(job, at=job.submit)
        return env, grid, watch

    env, grid, watch = begun()
    env.run()
    for cut in (3.25 + seed, 21.5, 34.125):
        env, grid, _ = begun()
        env.run(until=cut)
        read = Snapshot.from_json(grid.snapshot().to_json())
        later = Environment(read.now, read.seed)
        rest = Watch(later)
        again = Grid.from_snapshot(later, read, OnHosts())
        later.run()
        assert rest.ran == [run for run in watch.ran if run[1] > cut]
        assert again.unfinished == 0


def test_what_ifs_know_the_hosts_of_waiting_jobs():
    env = Environment()
    grid = Grid(env, spec(), to("node1"))
    for i in range(4):
        grid.submit(Job(id=i, processors=3, run=10))
    env.run(until=5)
    found = what_if(grid.snapshot(), ["round-robin"])
    assert found["round-robin"].samples[0].ended == 40


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_a_job_that_its_site_preempts_comes_back_to_its_host(mode):
    def once(view):
        site = view.places[0]
        for run in view.running:
            if run.job.id == 0 and view.now == 3:
                yield Preempt(run.job, mode)
        for job in list(view.waiting):
            if site.fits(job) and view.now != 3:
                yield Start(job, site)

    jobs = [Job(id=0, run=10), *(Job(id=i, processors=4, run=1) for i in (1, 2))]
    env = Environment()
    watch = Watch(env)
    grid = Grid(env, spec(), to("node2", "node0", "node1"), policies=once)
    for job in jobs:
        grid.submit(job, at=3 * (job.id == 1) + 8 * (job.id == 2))
    env.run()
    assert {run[2] for run in watch.ran if run[0] == 0} == {"node2"}
    assert grid.sites["a"].free == 28
    assert grid.result().jobs["end"][0] == {"requeue": 18, "suspend": 15}[mode]
