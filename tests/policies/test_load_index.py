"""The index of loads against asking every place."""

import sys
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from simmodel.environment import Environment
from simmodel.platform import BrokerSpec, ClusterSpec, FileSpec, GridSpec, NodeSpec, SiteSpec
from simmodel.policies.brokers import LOADS, LeastLoaded
from simmodel.policies.estimates import EarliestFinish
from simmodel.resources.pools.running import UNIT, RunningIndex
from simmodel.runs.scenario import simulate
from simmodel.systems import Broker, Cluster
from simmodel.systems.cluster.destination import ClusterDestination
from simmodel.work import Job
from simmodel.work.workload import Workload


class AsksAll(LeastLoaded):
    """The same policy without the index, which is only for the class itself."""


def jobs(seed, count=400, widest=24):
    rng = np.random.default_rng(seed)
    run = np.round(rng.exponential(100, count)) + rng.integers(0, 2, count) / 8
    columns = {
        "submit": np.sort(np.round(rng.uniform(0, 1500, count), 1)),
        "run": run,
        "requested": np.maximum(run * rng.choice([0.5, 1, 1, 3], count), 1),
        "processors": rng.integers(1, widest + 1, count),
    }
    return Workload(columns)


@pytest.mark.few(9)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("ties", ["first", "random", "home", "least-loaded"])
@pytest.mark.parametrize("seed", range(6))
def test_jobs_go_where_they_go_when_all_places_are_asked(seed, ties, load):
    """Early ends, overruns, ties of idle places, and jobs that only some places can run."""
    sizes = np.random.default_rng(seed).choice([4, 8, 16, 32], 12)
    spec = BrokerSpec(places={f"s{i}": ClusterSpec.simple(int(size)) for i, size in enumerate(sizes)})
    found, asked = (simulate(spec, jobs(seed), kind(load, ties), seed=seed) for kind in (LeastLoaded, AsksAll))
    assert found.jobs["destination"].tolist() == asked.jobs["destination"].tolist()
    assert len(set(found.jobs["destination"].tolist())) > 6


def resize(env, pool, at, processors):
    yield env.timeout(at)
    pool.resize(processors)


@pytest.mark.parametrize("load", LOADS)
def test_changes_of_the_capacity_count(load):
    went = []
    for kind in (LeastLoaded, AsksAll):
        env = Environment()
        sites = [Cluster(env, 16, name=f"s{i}") for i in range(10)]
        broker = Broker(env, sites, kind(load))
        broker.replay(jobs(3, widest=6))
        for at, site, processors in ((200, 0, 8), (400, 1, 0), (600, 1, 40), (800, 2, 6)):
            env.process(resize(env, sites[site].places[0], at, processors))
        env.run()
        went.append(broker.result().jobs["destination"].tolist())
    assert went[0] == went[1]


@pytest.mark.few(1)
@pytest.mark.parametrize("begin", [0.0, 2.0**20 - 700, 2.0**31])
def test_bounds_hold_at_large_instants_and_when_they_are_taken_anew(begin):
    spec = BrokerSpec(places={f"s{i}": ClusterSpec.simple(16 + i) for i in range(12)})
    drawn = jobs(7, count=600, widest=12)
    columns = {name: drawn[name] for name in ("run", "requested", "processors")}
    log = Workload({"submit": drawn["submit"] + begin, **columns})
    found, asked = (simulate(spec, log, kind()).jobs["destination"].tolist() for kind in (LeastLoaded, AsksAll))
    assert found == asked


def test_a_decision_asks_only_the_places_that_have_changed(monkeypatch):
    """Each job changes two places at most between decisions: where it went, and where another one ended."""
    asked = []
    real = ClusterDestination.load_line
    monkeypatch.setattr(ClusterDestination, "load_line", lambda self: asked.append(self.name) or real(self))
    spec = BrokerSpec(places={f"s{i}": ClusterSpec.simple(64) for i in range(40)})
    simulate(spec, jobs(1), LeastLoaded())
    assert 400 < len(asked) < 40 + 3 * 400


class AsksEach(EarliestFinish):
    """The same policy without bounds, which are only for the class itself."""


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["easy", "conservative", "easy-sjbf"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_simulations_are_asked_only_where_they_may_be_the_earliest(seed, policy, monkeypatch):
    """Places of several sizes and speeds, wrong requests, and jobs that only some places can run."""
    rng = np.random.default_rng(seed)
    places = {f"s{i}": ClusterSpec.simple(int(size)) for i, size in enumerate(rng.choice([4, 8, 16, 32], 16))}
    spec = BrokerSpec(places=places, slowdowns=dict.fromkeys(places, 1.0) | {"s3": 0.5, "s5": 2.0, "s6": 0.5})
    asked = []
    real = ClusterDestination.estimate
    monkeypatch.setattr(ClusterDestination, "estimate", lambda self, job: asked.append(self.name) or real(self, job))
    work = jobs(seed, count=200)
    found, every = [], []
    for kind, tables in ((EarliestFinish, found), (AsksEach, every)):
        asked.clear()
        table = simulate(spec, work, kind(simulated=True), policies=policy).jobs
        columns = ("destination", "start", "expected_start", "expected_end")
        tables.append({name: table[name].tolist() for name in columns})
        tables.append(len(asked))
    assert repr(found[0]) == repr(every[0])
    assert len(set(found[0]["destination"])) > 6
    assert found[1] < 0.4 * every[1]


def calls_of(run):
    """Return how often each function is called while another one runs: counts, which depend on no clock."""
    found = Counter()

    def note(frame, event, _):
        if event == "call":
            found[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def calls_a_job(broker, sites):
    """Return the calls of each function that 400 more jobs of a grid make, for each of them."""
    spec = GridSpec(sites=[SiteSpec(name=f"s{i}", hosts=[NodeSpec(count=1, cores=8)]) for i in range(sites)])
    few, many = (calls_of(lambda n=n: simulate(spec, jobs(5, count=n, widest=8), broker)) for n in (100, 500))
    return {name: (many[name] - few[name]) / 400 for name in many}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("broker", "most"),
    [
        *[(name, 112) for name in ("least-loaded", "data-locality", "shortest-wait", "panda")],
        *[(f"least-loaded({load})", 130) for load in ("jobs", "processors")],
        ("earliest-finish", 140),
        ("round-robin", 90),
    ],
)
def test_a_job_costs_as_many_calls_on_forty_sites_as_on_ten(broker, most):
    """A broker looks at columns, in which only sites that changed are renewed."""
    ten, forty = (sum(calls_a_job(broker, sites).values()) for sites in (10, 40))
    assert forty < 1.1 * ten
    assert forty < most


def test_a_start_and_an_end_cost_two_calls_for_the_work_left_and_two_for_the_work_that_waits():
    found = calls_a_job("least-loaded", 10)
    counted = {name: calls for name, calls in found.items() if name.startswith(("WorkLeft.", "QueuedWork."))}
    assert counted.pop("WorkLeft.line") < 3
    assert {name: calls for name, calls in counted.items() if calls} == dict.fromkeys(
        ("WorkLeft.started", "WorkLeft.ended", "QueuedWork.add", "QueuedWork.remove"), 1.0
    )


@pytest.mark.few(7)
@pytest.mark.parametrize("seed", range(20))
def test_the_work_left_is_that_of_the_runs_that_are_not_overdue(seed):
    rng = np.random.default_rng(seed)
    index, there = RunningIndex(), []
    now = 0.0
    for step in range(400):
        if step == 60:
            assert index.left.endless >= 0  # from now on
        if there and rng.random() < 0.45:
            index.remove(there.pop(rng.integers(len(there))))
        else:
            end = now + float(rng.choice([-3.0, 0.0, 1.5, 40.0, 700.0, np.inf], p=[0.1, 0.1, 0.2, 0.3, 0.2, 0.1]))
            run = SimpleNamespace(expected_end=end, entry=None)
            index.add(run, int(rng.integers(1, 9)))
            there.append(run)
        now += float(rng.choice([0.0, 0.0, 0.7, 15.0]))
        if step >= 60 and rng.random() < 0.7:
            ahead = [run.entry for run in there if now < run.expected_end < np.inf]
            width = sum(processors for _, _, processors, _ in ahead)
            work = sum(int(end * UNIT) * processors for end, _, processors, _ in ahead) - int(now * UNIT) * width
            assert index.left.line(now) == (work, width, min((end for end, *_ in ahead), default=np.inf))
            assert index.left.endless == sum(run.expected_end == np.inf for run in there)


@pytest.mark.parametrize("simulated", [True, False])
def test_a_broker_ends_where_the_files_of_a_job_come_to_no_site(simulated):
    """All its ends are infinite, and the first site is too small: simulations were asked for ever."""
    sites = [SiteSpec(name=f"s{i}", cores=8 if i else 2) for i in range(10)]
    spec = GridSpec(sites=sites, files=[FileSpec(name="lost", size=1, sites=[])])
    work = [Job(id=1, submit=0, processors=8, run=10, inputs=["lost"])]
    found = simulate(spec, work, EarliestFinish(simulated=simulated)).jobs
    assert found["site"].tolist() == ["s1"]
