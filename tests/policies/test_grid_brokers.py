"""Brokers of grids by hand, and in columns against asking every site."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Environment, Job, simulate
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, RouteSpec, SiteOutageSpec, SiteSpec
from simmodel.policies import EarliestFinish
from simmodel.policies.brokers import DataLocality, Panda, ShortestWait
from simmodel.systems import Cluster, Grid
from simmodel.work.workload import Workload
from tests.helpers.examples import up_to

BROKERS = (
    *("round-robin", "random", "shares", "least-loaded", "shortest-wait", "data-locality", "earliest-finish", "panda"),
)


def star(names, bandwidth=1e6):
    """Return a network with one link from each site to the middle."""
    links = [LinkSpec(name=f"l-{name}", bandwidth=bandwidth) for name in names]
    routes = [
        RouteSpec(source=a, destination=b, links=(f"l-{a}", f"l-{b}"), symmetrical=True)
        for a in names
        for b in names
        if a < b
    ]
    return NetworkSpec(links=links, routes=routes)


def grid_of(*cores, files=(), **options):
    sites = [SiteSpec(name=name, cores=each) for name, each in zip("abcdefghijklmnop", cores, strict=False)]
    return GridSpec(sites=sites, network=star([site.name for site in sites]), files=files, **options)


def went(spec, policy, *jobs, seed=0):
    """Return the sites to which jobs that are submitted one after another at once go."""
    return simulate(spec, Workload.from_jobs(list(jobs)), policy, seed=seed).jobs["site"].tolist()


def test_the_shortest_wait_is_none_with_free_cores_then_the_least_work_a_core():
    spec = grid_of(4, 2)
    jobs = [Job(id=i, submit=i, processors=2, run=100) for i in range(5)]
    # a is the first at 0; then b is idle and a is not; then a has two free cores; then both are full: at 3, 97 + 99 s
    # for two of a's four cores against 98 s on b's two.
    assert went(spec, "shortest-wait", *jobs)[:3] == ["a", "b", "a"]
    assert went(spec, "shortest-wait", *jobs)[3:] == ["a", "b"]


def test_an_idle_site_has_no_wait_though_another_has_less_work_a_core():
    spec = grid_of(8, 2)
    jobs = [Job(id=0, processors=7, run=10), Job(id=1, submit=1, processors=1, run=1000)]
    jobs += [Job(id=2, submit=2, processors=1, run=10), Job(id=3, submit=2, processors=2, run=10)]
    # at 2: a is full of little work, b has one core free and much work.
    placed = went(spec, "shortest-wait", *jobs)
    assert placed[:2] == ["a", "b"]
    assert placed[2] == "a"


def test_data_locality_prefers_the_site_with_most_bytes_then_the_least_loaded():
    files = [FileSpec(name="x", size=100, sites=("b", "c")), FileSpec(name="y", size=50, sites=("c",))]
    spec = grid_of(4, 4, 4, files=files)
    jobs = [Job(id=0, run=10, inputs=("x", "y")), Job(id=1, run=10, inputs=("x",)), Job(id=2, run=10)]
    assert went(spec, "data-locality", *jobs) == ["c", "b", "a"]


def test_earliest_finish_weighs_transfers_against_waits_and_speeds():
    files = [FileSpec(name="big", size=50e6, sites=("b",))]
    fast = SiteSpec(name="a", hosts=[NodeSpec(count=1, cores=4, speed=2.0)])
    spec = GridSpec(sites=[fast, SiteSpec(name="b", cores=4)], network=star("ab"), files=files)
    # 50 s of transfer and 10 s of run against 20 s of run; 50 + 100 against 200
    assert went(spec, "earliest-finish", Job(run=20, inputs=("big",))) == ["b"]
    assert went(spec, "earliest-finish", Job(run=200, inputs=("big",))) == ["a"]
    assert went(spec, "earliest-finish", Job(run=20)) == ["a"]


def test_estimates_of_a_grid_are_quick_and_those_of_sgs_t_simulated():
    spec = grid_of(2)
    seen = []

    def broker(view):
        place = view.places[0]
        for job in view.waiting:
            seen.append((view.estimate(job, place).start, view.foresee(job, place).start))
            yield from EarliestFinish().decide(view)

    env = Environment()
    grid = Grid(env, spec, broker)
    for run in (10, 30):
        grid.submit(Job(processors=1, run=run))
    env.run(until=1)
    grid.submit(Job(processors=2, run=5))
    env.run()
    # 9 and 29 processor seconds on two processors; but both processors are free at 30 only.
    assert seen[-1] == (1 + 38 / 2, 30.0)


def test_the_weight_of_panda_is_running_and_free_slots_per_queued_job():
    spec = grid_of(4, 8)
    jobs = [Job(id=i, submit=i, processors=2, run=1000) for i in range(8)]
    # slots: 2 and 4; one that runs and one that is free count alike, so the larger site is taken until a job queues
    # there (weight 5 / 1 against 3 / 1); once 4 run there, 5 / 1 still; with one queued, 5 / 2 against 3.
    assert went(spec, "panda", *jobs) == ["b"] * 5 + ["a"] * 3


def test_panda_halves_the_weight_of_a_site_without_the_inputs():
    files = [FileSpec(name="x", size=100, sites=("a",))]
    spec = grid_of(4, 6, files=files)
    assert went(spec, "panda", Job(run=1)) == ["b"]  # 7 against 5
    assert went(spec, "panda", Job(run=1, inputs=("x",))) == ["a"]  # 3.5 against 5


class AskingLocality(DataLocality):
    """The same policy without columns."""


class AskingWait(ShortestWait):
    """The same policy without columns."""


class AskingPanda(Panda):
    """The same policy without columns."""


class AskingFinish(EarliestFinish):
    """The same policy without columns."""


PAIRS = {DataLocality: AskingLocality, ShortestWait: AskingWait, Panda: AskingPanda, EarliestFinish: AskingFinish}


def drawn(seed, jobs=250):
    """Return a grid of 12 sites, some fast, and jobs of which some have inputs, some overrun and some end early."""
    rng = np.random.default_rng(seed)
    names = "abcdefghijkl"
    sites = [
        SiteSpec(
            name=name, hosts=[NodeSpec(count=int(rng.integers(1, 4)), cores=8, speed=float(rng.choice([1, 1, 2])))]
        )
        for name in names
    ]
    files = [FileSpec(name=f"f{i}", size=float(rng.integers(1, 100) * 1e6), sites=(names[i % 12],)) for i in range(20)]
    spec = GridSpec(sites=sites, network=star(names), files=files)
    work = []
    for i in range(jobs):
        run = float(rng.exponential(300)) // 1 + 1
        inputs = (f"f{rng.integers(20)}",) if rng.random() < 0.4 else ()
        asked = max(1.0, run * float(rng.choice([0.5, 1, 1, 3])))
        wide = int(rng.integers(1, 9))
        work.append(Job(id=i, submit=float(i * 5), processors=wide, run=run, requested=asked, inputs=inputs))
    return spec, Workload.from_jobs(work)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", PAIRS, ids=lambda kind: kind.name)
def test_columns_choose_as_asking_every_site_does(kind, seed):
    spec, jobs = drawn(seed)
    columns, asked = (simulate(spec, jobs, policy()).jobs["site"].tolist() for policy in (kind, PAIRS[kind]))
    assert columns == asked
    assert len(set(columns)) > 6


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_sgs_t_finds_the_same_site_when_it_simulates_only_some(seed):
    spec, jobs = drawn(seed, 80)
    some, every = (
        simulate(spec, jobs, kind(simulated=True)).jobs["site"].tolist() for kind in (EarliestFinish, AskingFinish)
    )
    assert some == every


def test_sgs_t_counts_the_transfers_of_missing_inputs():
    files = [FileSpec(name="big", size=50e6, sites=("b",))]
    spec = grid_of(4, 4, files=files)
    jobs = [Job(id=0, processors=4, run=30, inputs=("big",)), Job(id=1, submit=1, run=10, inputs=("big",))]
    assert went(spec, "sgs-t", *jobs) == ["b", "b"]  # 29 s of waiting against 50 s of transfer


@settings(max_examples=up_to(25), deadline=None)
@given(
    cores=st.lists(st.integers(1, 16), min_size=1, max_size=10),
    widths=st.lists(st.integers(1, 20), min_size=1, max_size=12),
    broker=st.sampled_from(BROKERS),
)
def test_no_job_goes_to_a_site_that_cannot_run_it(cores, widths, broker):
    spec = grid_of(*cores)
    jobs = [Job(id=i, submit=i, processors=wide, run=7) for i, wide in enumerate(widths)]
    table = simulate(spec, Workload.from_jobs(jobs), broker).jobs
    for wide, site, status in zip(widths, table["site"].tolist(), table["status"].tolist(), strict=True):
        assert status == ("rejected" if wide > max(cores) else "completed")
        assert not site or spec.site(site).capacity >= wide


@pytest.mark.few(3)
@pytest.mark.parametrize("broker", BROKERS)
def test_jobs_wait_at_the_broker_while_every_site_is_down_or_full(broker):
    sites = [SiteSpec(name=f"s{i}", cores=4, limit=1) for i in range(9)]
    outages = [SiteOutageSpec(site=f"s{i}", at=0, until=50, kind="closed") for i in range(9)]
    spec = GridSpec(sites=sites, outages=outages)
    result = simulate(spec, Workload.from_jobs([Job(id=i, submit=1, run=10) for i in range(27)]), broker)
    assert np.bincount(result.jobs["start"].astype(int))[[50, 60, 70]].tolist() == [9, 9, 9]


@pytest.mark.parametrize("broker", ["round-robin", "least-loaded", "random"])
def test_a_full_grid_asks_each_site_only_for_jobs_that_it_may_take(broker, monkeypatch):
    """With n jobs waiting, each end of a job costs one more question a site, not n."""
    from simmodel.systems.grid.site import Site

    asked = []
    real = Site.can_run
    monkeypatch.setattr(Site, "can_run", lambda self, job: asked.append(1) or real(self, job))
    spec = GridSpec(sites=[SiteSpec(name=f"s{i}", cores=1, limit=1) for i in range(8)])
    simulate(spec, Workload.from_jobs([Job(id=i, run=10 + i) for i in range(300)]), broker)
    assert len(asked) < 300 * 60


def test_sgs_t_simulates_no_site_at_which_a_job_with_files_starts_at_once(monkeypatch):
    simulated = []
    real = Cluster.snapshot
    monkeypatch.setattr(Cluster, "snapshot", lambda self, **options: simulated.append(1) or real(self, **options))
    files = [FileSpec(name="f", size=5e6, sites=("b",))]
    jobs = [Job(id=i, submit=20 * i, run=5, inputs=("f",)) for i in range(6)]
    sites = [SiteSpec(name=name, hosts=[NodeSpec(count=2, cores=4)]) for name in "ab"]
    assert went(GridSpec(sites=sites, network=star("ab"), files=files), "sgs-t", *jobs) == ["b"] * 6
    assert not simulated
