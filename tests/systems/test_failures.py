"""Random failures of switches, links and sites: their number, what they take, their instants, cuts, unkind cases."""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import exp, gamma, inf, sqrt
from random import Random

import numpy as np
import pytest

from simmodel import Cluster, Environment, Grid, InputError, Job, Start, simulate, start
from simmodel.platform import (
    ClusterSpec,
    FailureModel,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
    Torus,
    duplex,
    read_toml,
    write_toml,
)
from simmodel.platform.topology import FatTree
from simmodel.resources.pools.allocation import Allocation
from simmodel.scheduling import Observer
from simmodel.snapshots import Snapshot
from simmodel.work.traffic import Traffic
from tests.helpers.examples import up_to

SPAN, BETWEEN, REPAIR = 2500.0, 120.0, 30.0
fails = partial(FailureModel, mean_time_between_failures=BETWEEN, mean_time_to_repair=REPAIR)


class Downs(Observer):
    """Notes when links and sites go down and come up."""

    def __init__(self, env):
        self.env, self.told = env, []

    def link_changed(self, link):
        self.told.append((float(self.env.now), link.name, not link.up))

    def site_down(self, site):
        self.told.append((float(self.env.now), site.name, True))

    def site_up(self, site):
        self.told.append((float(self.env.now), site.name, False))

    def began(self):
        return Counter(name for _, name, down in self.told if down)


def watched(env):
    seen = Downs(env)
    env.observe(seen)
    return seen


def switched(*failures, **options):
    nodes = [NodeSpec(count=6, cores=2, nodes_per_switch=3, switch="leaf")]
    return ClusterSpec(partitions=[PartitionSpec(nodes=nodes)], failures=failures, **options)


def star(*failures, names="abc", when_down="wait", **options):
    links = [
        each for name in names for each in duplex(f"w{name}", bandwidth=1e6, between=(name, "hub"), when_down=when_down)
    ]
    sites = [SiteSpec(name=name, cores=4, storage=StorageSpec(capacity=1e9)) for name in names]
    return GridSpec(sites=sites, network=NetworkSpec(links=links), failures=failures, **options)


def failed_switches(env):
    """Return how often the first of two switches failed, by the nodes that are down afterwards."""
    cluster = Cluster(env, switched(fails(of="switches", names=["leaf0"], **LAWS[env.law])))
    env.run(until=SPAN)
    changes = cluster.result().changes
    if changes is None:
        return 0
    assert {tuple(down) for down in changes["down"]} <= {(), (0, 1, 2)}
    return Counter(changes["cause"])["failure"]


def failed_parts(of, part, env):
    seen = watched(env)
    Grid(env, star(fails(of=of, **LAWS[env.law])))
    env.run(until=SPAN)
    return seen.began()[part]


LAWS = {
    "exponential": {},
    "weibull": {"distribution": "weibull", "shape": 0.7, "repair": "weibull", "repair_shape": 2.0},
    "constant repair": {"distribution": "weibull", "shape": 3.0, "repair": "constant"},
}


def closed_form(law):
    """Return the mean number of failures in the span: exact for exponential laws, else by the asymptote of renewals."""
    up, down = BETWEEN, REPAIR
    if law == "exponential":
        rate = 1 / up + 1 / down
        return SPAN / (up + down) + (down / (up + down)) ** 2 * (1 - exp(-rate * SPAN))
    shape = LAWS[law]["shape"]
    spread = up**2 * (gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1)
    if LAWS[law]["repair"] == "weibull":
        spread += down**2 * (gamma(2) / gamma(1.5) ** 2 - 1)
    cycle = up + down
    return SPAN / cycle + (spread + cycle**2) / (2 * cycle**2) - up / cycle


@pytest.mark.few(2)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "count",
    [
        failed_switches,
        partial(failed_parts, "sites", "b"),
        partial(failed_parts, "links", "wa:down"),
        partial(failed_parts, "switches", "wc:up"),
    ],
    ids=["switch", "site", "link", "switch of a grid"],
)
def test_the_mean_number_of_failures_is_that_of_the_closed_form(law, count):
    found = []
    seeds = up_to(200, 100)
    for seed in range(seeds):
        env = Environment(seed=seed)
        env.law = law
        found.append(count(env))
    assert abs(np.mean(found) - closed_form(law)) < 3 * np.std(found, ddof=1) / sqrt(seeds)


def test_a_switch_that_fails_takes_its_nodes_and_their_jobs():
    spec = switched(fails(of="switches", names=["leaf1"], repair="constant"))
    jobs = [Job(id=i, processors=2, run=100, requested=200) for i in range(6)]  # one on each node
    result = simulate(spec, jobs, "fcfs", seed=2)
    first = float(result.changes["time"][0])
    assert tuple(result.changes["down"][0]) == (3, 4, 5)
    assert 0 < first < 100
    runs = result.runs
    hit = [job for job, status in zip(runs["job"], runs["status"], strict=True) if status == "requeued"]
    assert set(hit) == {3, 4, 5}
    assert runs["end"][runs["status"] == "requeued"].min() == first
    assert set(result.jobs["status"]) == {"completed"}
    lost = simulate(switched(*spec.failures, on_failure="lose"), jobs, "fcfs", seed=2).jobs["status"]
    assert lost.tolist() == ["completed"] * 3 + ["lost"] * 3


def test_a_switch_of_two_partitions_takes_the_nodes_of_both():
    parts = [PartitionSpec(name=name, nodes=[NodeSpec(count=2, switch="s")]) for name in ("a", "b")]
    changes = simulate(
        ClusterSpec(partitions=parts, failures=[fails(of="switches")]), [Job(run=200)], "fcfs", until=2000
    ).changes
    at = changes["time"] == changes["time"][0]
    assert changes["place"][at].tolist() == ["a", "b"]
    alone = ClusterSpec(partitions=parts, failures=[fails(of="switches", partition="b")])
    assert set(simulate(alone, [Job(run=2000)], "fcfs").changes["place"]) == {"b"}


def home(view):
    from simmodel.scheduling import Start

    for job in list(view.waiting):
        if job.home is not None and job.home.fits(job):
            yield Start(job, job.home)


def test_one_more_site_switch_or_link_changes_no_row_of_the_others():
    work = [Job(id=f"{i} at {site}", submit=11 * i, run=40, site=site) for i in range(60) for site in "abc"]
    models = [fails(of="sites"), fails(of="links", **LAWS["weibull"]), fails(of="switches")]
    few, more = (simulate(star(*models, names=names, retries=20), work, home) for names in ("abc", "abcd"))
    for name in few.jobs.keys():  # noqa: SIM118  # a table is no mapping
        assert str(few.jobs[name].tolist()) == str(more.jobs[name].tolist()), name
    assert few.jobs["attempts"].max() > 2

    wide = ClusterSpec(
        partitions=[PartitionSpec(nodes=[NodeSpec(count=9, cores=2, nodes_per_switch=3, switch="leaf")])],
        failures=[fails(of="switches")],
    )
    seen = []
    for spec in (switched(fails(of="switches")), wide):
        changes = simulate(spec, [Job(run=900)], "fcfs", until=900).changes
        seen.append([(t, n) for t, down in zip(changes["time"], changes["down"], strict=True) for n in down if n < 6])
    assert set(seen[0]) <= set(seen[1])


def test_two_models_of_a_part_draw_apart():
    seen = []
    for models in ([fails(of="sites", names=["a"])], [fails(of="sites", names=["a"]) for _ in range(2)]):
        env = Environment(seed=0)
        seen.append(watched(env))
        Grid(env, star(*models))
        env.run(until=3000)
    one, both = ({at for at, name, down in each.told if down} for each in seen)
    assert one < both
    assert len(both) > 1.5 * len(one)


FILES = [FileSpec(name=f"f{i}", size=2e7, sites=["abc"[i % 3]]) for i in range(9)]
MODELS = [
    fails(of="sites", mean_time_between_failures=300.0),
    fails(of="links", **LAWS["weibull"]),
    fails(of="switches", repair="constant", mean_time_between_failures=500.0),
]


@pytest.mark.parametrize("when_down", ["wait", "fail"])
def test_a_grid_cut_at_any_instant_goes_on_alike(when_down):
    spec = star(
        *MODELS, when_down=when_down, files=FILES, retries=9, outages=[SiteOutageSpec(site="b", at=90, until=300)]
    )
    jobs = [Job(id=i, submit=7 * i, run=30 + i % 11, processors=1 + i % 3, inputs=[f"f{i % 9}"]) for i in range(60)]
    whole = simulate(spec, jobs, "round-robin").jobs
    for at in np.linspace(3, 900, up_to(12, 4)):
        snapshot = Snapshot.from_json(start(spec, jobs, "round-robin", until=float(at)).run().snapshot().to_json())
        rest = simulate(snapshot).jobs
        found = {job: tuple(rest[name][i] for name in ("start", "end", "site")) for i, job in enumerate(rest["job"])}
        place = {job: i for i, job in enumerate(whole["job"])}
        for job, values in found.items():
            assert str(values) == str(tuple(whole[name][place[job]] for name in ("start", "end", "site")))


def test_a_cluster_cut_at_any_instant_goes_on_alike():
    spec = switched(
        fails(of="switches", mean_time_between_failures=300.0),
        fails(of="nodes", mean_time_between_failures=900.0),
        fails(of="links", **LAWS["weibull"]),
        links=[LinkSpec(name="scratch", bandwidth=1e6)],
    )
    jobs = [Job(id=i, submit=9 * i, run=60, requested=90, processors=1 + i % 5) for i in range(50)]
    whole = simulate(spec, jobs, "easy").jobs
    for at in np.linspace(3, 500, 9):
        snapshot = Snapshot.from_json(start(spec, jobs, "easy", until=float(at)).run().snapshot().to_json())
        rest = simulate(snapshot).jobs
        ends = dict(zip(rest["job"].tolist(), rest["end"].tolist(), strict=True))
        assert ends == {
            job: end for job, end in zip(whole["job"].tolist(), whole["end"].tolist(), strict=True) if job in ends
        }
        assert ends


def test_a_what_if_sees_repairs_and_no_further_failures():
    spec = star(fails(of="sites", repair="constant"), retries=99)
    sim = start(spec, [Job(id=i, run=900) for i in range(3)], "round-robin")
    while not any(site.down for site in sim.system.places):
        sim.run(until=sim.env.now + 10)
    snapshot = sim.system.snapshot()
    seen = snapshot.expected()
    assert {each.what for each in seen.failing} == {"back"}
    assert {each.what for each in snapshot.failing} > {"repair"}
    assert [each.at for each in seen.failing] == [snapshot.now + REPAIR] * len(seen.failing)
    assert simulate(seen).jobs["end"].max() < inf


def test_a_part_that_is_down_for_two_reasons_comes_back_after_the_last():
    model = fails(of="sites", names=["a"], repair="constant", mean_time_to_repair=1000.0)
    env = Environment(seed=1)
    seen = watched(env)
    grid = Grid(env, star(model))
    while not grid.sites["a"].down:
        env.run(until=env.now + 1)
    failed = next(at for at, name, down in seen.told if name == "a" and down)
    spec = star(model, outages=[SiteOutageSpec(site="a", at=failed - 1, until=failed + 500)])
    result = simulate(spec, [Job(submit=failed, run=1, site="a")], home, seed=1)
    assert result.jobs["start"].tolist() == [failed + 1000]
    ends_later = star(model, outages=[SiteOutageSpec(site="a", at=failed - 1, until=failed + 1001)])
    assert simulate(ends_later, [Job(submit=failed, run=1, site="a")], home, seed=1).jobs["start"][0] == failed + 1001

    outage = OutageSpec(at=0, until=5000, nodes=[0, 1], kind="drain")
    spec = switched(fails(of="switches", names=["leaf0"]), outages=[outage])
    for down in simulate(spec, [Job(run=4000, processors=2)], "fcfs", until=4900).changes["down"]:
        assert {0, 1} <= set(down)


def test_a_link_that_fails_alone_and_with_its_switch_comes_back_after_the_last():
    env = Environment()
    grid = Grid(env, star(fails(of="links", names=["wa:up"], mean_time_between_failures=inf)))
    network = grid.data.network
    moving = network.transfer(10e6, source="a", destination="b")
    env.run(until=2)
    network.count_failed("wa:up", 1)
    network.count_failed("wa:up", 1)
    network.fail("wa:up")
    env.run(until=3)
    network.count_failed("wa:up", -1)
    network.restore("wa:up")
    env.run(until=50)
    assert not network.links["wa:up"].up
    assert not moving.triggered
    network.count_failed("wa:up", -1)
    env.run(until=100)
    assert network.links["wa:up"].up
    assert moving.value.end == 58


@pytest.mark.parametrize("when_down", ["wait", "fail"])
def test_a_link_that_fails_holds_up_or_breaks_off_what_moves(when_down):
    model = fails(
        of="links", names=["wa:up"], repair="constant", mean_time_between_failures=15.0, mean_time_to_repair=7.0
    )
    spec = star(model, when_down=when_down, files=[FileSpec(name="raw", size=2e7, sites=["a"])], retries=50)
    env = Environment(seed=3)
    seen = watched(env)
    grid = Grid(env, spec, home)
    job = grid.submit(Job(run=5, site="b", inputs=["raw"]))
    env.run(until=job)
    downs = sum(down for at, name, down in seen.told if name == "wa:up" and at < env.now - 5)
    assert seen.began()["wa:up"] == seen.began()["wa:down"]  # both directions of a cable
    if when_down == "wait":
        assert downs
        assert env.now == 20 + 5 + 7.0 * downs
    else:
        assert grid.result().flows["failed"].sum() >= 1


def test_a_job_waits_for_the_only_replica_at_a_site_that_failed():
    model = fails(
        of="sites", names=["a"], repair="constant", mean_time_between_failures=50.0, mean_time_to_repair=400.0
    )
    spec = star(model, files=[FileSpec(name="raw", size=1e6, sites=["a"])])
    env = Environment(seed=0)
    seen = watched(env)
    grid = Grid(env, spec, home)
    while not grid.sites["a"].down:
        env.run(until=env.now + 1)
    job = grid.submit(Job(run=5, site="b", inputs=["raw"]))
    env.run(until=env.now + 1)
    assert "file raw cannot be brought to b: down: a" in list(grid.waiting_report())
    env.run(until=job)
    assert env.now == next(at for at, name, down in seen.told if not down) + 1 + 5


def test_a_rate_of_zero_never_fails_and_a_repair_may_outlast_the_run():
    never = [fails(of=of, mean_time_between_failures=inf) for of in ("sites", "links", "switches")]
    jobs = [Job(id=i, run=50) for i in range(9)]
    result = simulate(star(*never), jobs, "round-robin")
    assert result.report.notes == ()
    assert result.changes is None
    long = fails(of="sites", names=["a"], mean_time_between_failures=10.0, repair="constant", mean_time_to_repair=1e9)
    result = simulate(star(long, retries=3), jobs, "round-robin")
    assert set(result.jobs["status"]) == {"completed"}
    assert "a" not in result.jobs["site"].tolist()
    assert result.report.notes[0].startswith("grid: failures: 1 of sites (down for ")


def test_the_report_counts_failures_by_kind_and_how_long_they_lasted():
    models = [fails(of="sites", repair="constant"), fails(of="links", repair="constant")]
    env = Environment(seed=4)
    seen = watched(env)
    grid = Grid(env, star(*models))
    env.run(until=1000)
    began = seen.began()
    sites, cables = sum(began[name] for name in "abc"), sum(began[f"w{name}:up"] for name in "abc")
    since: dict[str, float] = {}
    seconds = Counter()
    for at, name, down in seen.told:
        if down:
            since[name] = at
        else:
            seconds[name] += at - since.pop(name)
    for name, at in since.items():
        seconds[name] += 1000 - at
    from simmodel.metrics.report import duration

    down = [duration(sum(seconds[name] for name in names)) for names in ("abc", ["wa:up", "wb:up", "wc:up"])]
    told = f"grid: failures: {cables} of links (down for {down[1]}), {sites} of sites (down for {down[0]})"
    assert grid.result().report.notes == (told,)
    assert told in grid.result().summary()


def test_models_pass_through_files(tmp_path):
    for spec in (star(*MODELS), switched(fails(of="switches", **LAWS["weibull"]))):
        write_toml(spec, tmp_path / "spec.toml")
        assert read_toml(tmp_path / "spec.toml") == spec


def test_links_of_a_topology_fail_by_name():
    torus = Torus(dimensions=(3,), bandwidth=1e6, names=["a", "b", "c"])
    sites = [SiteSpec(name=name, cores=4) for name in "abc"]
    files = [FileSpec(name="raw", size=2e7, sites=["a"])]
    model = fails(of="links", names=["0-1:up"], repair="constant", mean_time_between_failures=9.0)
    spec = GridSpec(sites=sites, network=NetworkSpec(topology=torus), failures=[model], files=files)
    env = Environment(seed=0)
    seen = watched(env)
    grid = Grid(env, spec, home)
    job = grid.submit(Job(run=5, site="b", inputs=["raw"]))
    env.run(until=job)
    downs = sum(down for at, name, down in seen.told if name == "0-1:up" and at < env.now - 5)
    assert downs
    assert env.now == 25 + REPAIR * downs


# ---------------------------------------------------------------------- routers and switches of topologies

SEND = Traffic([[0, 100], [0, 0]])  # 10 s over links of 10 bytes/s


def wired(network, nodes, *failures, **options):
    part = PartitionSpec(nodes=[NodeSpec(count=nodes)], network=f"{network} bandwidth=10B/s", **options)
    return ClusterSpec(partitions=[part], failures=failures)


def placed(pairs):
    """Return a policy that starts each job on two given nodes."""

    def policy(view):
        for job in list(view.waiting):
            held = Allocation.of([(node, 1, 0, 0) for node in pairs[job.id]])
            yield Start(job, view.places[0], allocation=held)

    return policy


def test_a_router_of_a_dragonfly_takes_its_nodes():
    spec = wired("dragonfly:2;2;2;3", 24, fails(of="switches", names=["1.0.1"]))
    changes = simulate(spec, [Job(nodes=24, run=900)], "fcfs", until=900).changes
    assert tuple(changes["down"][0]) == (15, 16, 17)
    by_name = PartitionSpec(nodes=[NodeSpec(names="c,a")], network="star:4 bandwidth=1 names=a,b,c,d")
    assert by_name.nodes_below == {"1.0": [1, 0]}
    every = wired("fat-tree:2;2,2;1,2;1,1", 4, fails(of="switches"))
    assert {name: [node for _, node in nodes] for name, nodes in every.failing(every.failures[0]).items()} == {
        "1.0": [0, 1], "1.1": [2, 3], "2.0": [], "2.1": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("network", "switch", "pair", "waits"),
    [
        ("fat-tree:2;2,2;1,2;1,1", "2.0", (0, 2), True),  # by the even one of the upper switches
        ("fat-tree:2;2,2;1,2;1,1", "2.0", (0, 3), False),
        ("fat-tree:2;2,2;1,2;1,1", "2.0", (0, 1), False),
        ("dragonfly:2;1;3;1", "0.0.1", (2, 4), True),  # it leads to the other group
        ("dragonfly:2;1;3;1", "0.0.1", (0, 2), False),
        ("dragonfly:2;1;3;1 limiter=1MBps", "0.0.1", (2, 4), True),
    ],
)
def test_a_job_over_a_switch_that_fails_waits_for_its_repair(network, switch, pair, waits):
    model = FailureModel(
        of="switches", names=[switch], mean_time_between_failures=5, mean_time_to_repair=30, repair="constant"
    )
    spec = wired(network, 4 if network.startswith("fat-tree") else 6, model)

    env = Environment(seed=3)
    cluster = Cluster(env, spec, placed({1: pair}))
    job = cluster.submit(Job(id=1, nodes=2, traffic=SEND))
    env.run(until=job)
    if waits:
        failures = int(str(cluster.result().report).partition("failures: ")[2].split()[0])
        assert failures >= 1
        assert env.now == pytest.approx(10 + 30 * failures)
        run = next(iter(cluster.result().runs.rows()))
        assert (run["alone"], run["slowed_by"]) == (pytest.approx(10), "")
    else:
        assert env.now == 10


def test_a_job_that_waits_for_a_switch_stops_at_its_limit_and_leaves_the_links_to_others():
    model = FailureModel(
        of="switches", names=["2.0"], mean_time_between_failures=1e-3, mean_time_to_repair=1e6, repair="constant"
    )
    spec = wired("fat-tree:2;2,2;1,2;1,1", 4, model)

    policy = placed({1: (0, 2), 2: (1, 3)})
    back = Traffic([[0, 100], [100, 0]])
    jobs = [Job(id=1, nodes=2, traffic=SEND, requested=60), Job(id=2, nodes=2, traffic=back, requested=60, submit=1)]
    result = simulate(spec, jobs, policy, seed=1)
    assert result.jobs["status"].tolist() == ["timeout", "completed"]
    assert result.jobs["end"].tolist() == [60, 11]
    assert simulate(spec, jobs, policy, seed=1, overrun="continue", until=500).jobs["status"].tolist()[0] == "running"


def test_a_cut_run_under_failing_routers_goes_on_alike():
    rng = Random(7)
    jobs = [
        Job(
            id=number,
            submit=rng.uniform(0, 100),
            nodes=rng.randint(1, 6),
            traffic=Traffic(rng.choice(["ring", "all-to-all", "tree"]), bytes=rng.uniform(10, 200)),
            compute=rng.uniform(0, 40),
            requested=rng.choice([None, 200]),
            keeps_work=rng.random() < 0.5,
        )
        for number in range(up_to(40, 14))
    ]
    cuts = up_to(12, 3)
    models = [fails(of="switches"), fails(of="switches", repair="constant", mean_time_to_repair=9)]
    for network in ("dragonfly:3;2;2;2", "fat-tree:2;6,4;1,3;1,1"):
        spec = wired(network, 24, *models)
        whole = simulate(spec, jobs, "easy", seed=4)
        wanted = dict(zip(whole.jobs["job"].tolist(), whole.jobs["end"].tolist(), strict=True))
        assert whole.jobs["attempts"].max() > 1
        for cut in range(cuts):
            simulation = start(spec, jobs, "easy", seed=4)
            simulation.run(until=whole.ended * (cut + 0.5) / cuts)
            rest = start(Snapshot.from_json(simulation.snapshot().to_json())).run().result()
            found = dict(zip(rest.jobs["job"].tolist(), rest.jobs["end"].tolist(), strict=True))
            assert found == {job: wanted[job] for job in found}


def test_a_switch_of_a_grid_with_a_topology_takes_its_links():
    sites = [SiteSpec(name=name, cores=4) for name in "abcd"]
    tree = FatTree(levels=2, down=(2, 2), up=(1, 2), parallel=(1, 1), bandwidth=1e6, names="a,b,c,d")
    spec = GridSpec(sites=sites, network=NetworkSpec(topology=tree), failures=[fails(of="switches", names=["2.0"])])
    assert set(spec.failing(spec.failures[0])["2.0"]) == {"1.0-2.0:up", "1.0-2.0:down", "1.1-2.0:up", "1.1-2.0:down"}
    env = Environment(seed=0)
    seen = watched(env)
    Grid(env, spec)
    env.run(until=600)
    assert {name for _, name, _ in seen.told} == set(spec.failing(spec.failures[0])["2.0"])
    torus = NetworkSpec(topology=Torus(dimensions=(4,), bandwidth=1e6, names="a,b,c,d"))
    with pytest.raises(InputError, match=r"failures\[0\].of: must be a kind of parts that are there, got 'switches'"):
        GridSpec(sites=sites, network=torus, failures=[fails(of="switches")])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: star(fails()), "failures[0].of: must be sites or links or switches here, got 'nodes'"),
        (lambda: switched(fails(of="sites")), "failures[0].of: must be nodes or switches or links here, got 'sites'"),
        (
            lambda: wired("dragonfly:2;1;3;1", 6, fails(of="switches", names=["0.0.3"])),
            "failures[0].names: unknown switch '0.0.3'; did you mean '0.0.2'? Known switches: 0.0.0, 0.0.1",
        ),
        (lambda: switched(fails(of="links")), "failures[0].of: must be a kind of parts that are there, got 'links'"),
        (lambda: star(fails(of="sites", names=["d"])), "failures[0].names: unknown site 'd'; known sites: a, b, c"),
        (lambda: switched(fails(names=["node1"])), "failures[0].names: must be empty for nodes, got ('node1',)"),
        (lambda: star(fails(of="links", partition="a")), "failures[0].partition: must be None for links, got 'a'"),
        (lambda: fails(of="racks"), "of: must be one of nodes, switches, links, sites, got 'racks'"),
        (
            lambda: fails(mean_time_to_repair=inf),
            "mean_time_to_repair: must be finite: an outage that never ends is an",
        ),
        (lambda: fails(mean_time_between_failures=0), "mean_time_between_failures: must be > 0, got 0"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(make, sentence):
    with pytest.raises(InputError) as told:
        make()
    assert str(told.value).startswith(sentence)
