"""A run in several processes: the record of one process, byte by byte; refusals; workers that fail or are killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from random import Random

import attrs
import numpy as np
import pytest

from simmodel import Environment, InputError, Job, SimmodelError, Start, Workload, simulate
from simmodel.platform import (
    BrokerSpec,
    ClusterSpec,
    FailureModel,
    GridSpec,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    SiteOutageSpec,
    SiteSpec,
)
from simmodel.policies.mapping import RoundRobin
from simmodel.runs.apart import run_apart, simulate_share
from simmodel.runs.scenario import Scenario
from tests.helpers.examples import up_to
from tests.helpers.paths import ROOT


def assert_same(one, other, where="result"):
    """Compare tables and numbers of two records, with the types of their columns; wall-clock times differ."""
    for field in attrs.fields(type(one)):
        name = field.name.lstrip("_")
        if name in ("decisions", "scenario", "reasons", "plot") or not hasattr(one, name):
            continue
        a, b = getattr(one, name), getattr(other, name)
        if name == "clusters":
            assert list(a) == list(b)
            for place in a:
                assert_same(a[place], b[place], f"{where}, {place}")
        elif hasattr(a, "keys") and hasattr(a, "where"):
            assert list(a.keys()) == list(b.keys()), (where, name)
            for column in a.keys():  # noqa: SIM118
                assert a[column].dtype == b[column].dtype, (where, name, column)
                assert str(a[column].tolist()) == str(b[column].tolist()), (where, name, column)
        elif name != "policy":
            assert str(a) == str(b), (where, name)


def in_parts(scenario, groups):
    """Return the result of a scenario whose places are simulated in groups, one after the other in this process."""
    simulation = scenario.start()
    broker = simulation.system
    assert broker.why_coupled() is None
    own, *others = groups
    broker.keep_share(own, first=True)
    simulation.run()
    sent = pickle.dumps(scenario)
    broker.join([pickle.loads(pickle.dumps(simulate_share((sent, names)))) for names in others])
    return simulation.result()


def drawn_log(rng, homes=None, *, jobs=None):
    count = jobs or rng.randint(1, 60)
    numbers = np.random.default_rng(rng.randrange(10**9))
    columns = {
        "submit": np.sort(numbers.integers(0, rng.choice([5, 400]), count)).astype(float),
        "run": numbers.integers(0, 90, count),
        "processors": numbers.integers(1, rng.choice([6, 14]), count),
    }
    if rng.random() < 0.5:
        columns["requested"] = columns["run"] + numbers.integers(-5, 60, count)
    if rng.random() < 0.5:
        columns["user"] = numbers.integers(1, 4, count)
    if rng.random() < 0.3:
        columns["job"] = numbers.integers(1, count + 1, count)
    if homes is not None:
        columns["site"] = np.array([rng.choice(homes) for _ in range(count)])
    return Workload(columns)


def drawn_cluster(rng, until):
    if rng.random() < 0.5:
        return ClusterSpec.simple(rng.randint(3, 12))
    kinds = [NodeSpec(name=f"k{i}", count=rng.randint(1, 4), cores=rng.randint(1, 4)) for i in range(2)]
    failures = (
        [FailureModel(mean_time_between_failures=400, mean_time_to_repair=20)] if until and rng.random() < 0.5 else []
    )
    outages = [OutageSpec(at=50, until=90, nodes=[0], kind="maintenance")] if until and rng.random() < 0.3 else []
    parts = [PartitionSpec(nodes=kinds)]
    return ClusterSpec(partitions=parts, failures=failures, outages=outages, queues=[QueueSpec(name="normal")])


def drawn_scenario(rng):
    names = [f"{'long' * rng.randint(0, 2)}p{i}" for i in range(rng.randint(2, 5))]
    policy = rng.choice(["round-robin", "random", "share(0.6)", "shares", "shares(by=work)", "at home"])
    options = {"seed": rng.randrange(99), "until": rng.choice([None, None, 120, 700])}
    if rng.random() < 0.5:
        sites = [
            SiteSpec(name=name, cores=rng.randint(3, 12))
            if rng.random() < 0.5
            else SiteSpec(name=name, hosts=[NodeSpec(count=2, cores=rng.randint(1, 8), speed=rng.choice([1, 1.5]))])
            for name in names
        ]
        policies = {name: rng.choice(["fcfs", "easy", "sjf"]) for name in names}
        policy = "recorded" if policy == "at home" else policy
        log = drawn_log(rng, [*names, "nowhere"])
        return Scenario.of(GridSpec(sites=sites), log, policy, policies=policies, **options)
    places = {name: drawn_cluster(rng, options["until"]) for name in names}
    if rng.random() < 0.3:
        places["below"] = BrokerSpec(
            places={"x": drawn_cluster(rng, options["until"]), "y": drawn_cluster(rng, options["until"])}
        )
    slowdowns = [rng.choice([1, 1.5]) for _ in places]
    if rng.random() < 0.6:
        options["decide_on"] = rng.choice(["instant", "event"])
    if policy == "at home":
        work = {name: drawn_log(rng) for name in places}
        return Scenario.of(BrokerSpec(places=places, slowdowns=slowdowns), work, "siloed", **options)
    return Scenario.of(BrokerSpec(places=places, slowdowns=slowdowns), drawn_log(rng), policy, **options)


def groups_of(rng, scenario):
    names = [place.name for place in scenario.start().system.places]
    rng.shuffle(names)
    count = rng.randint(1, len(names))
    return [names[i::count] for i in range(count)]


@pytest.mark.few(3)
@pytest.mark.parametrize("block", range(8))
def test_places_apart_have_the_record_of_the_whole(block):
    for seed in range(40 * block, 40 * block + up_to(40, 6)):
        rng = Random(seed)
        scenario = drawn_scenario(rng)
        assert_same(scenario.run(), in_parts(scenario, groups_of(rng, scenario)))


@pytest.mark.parametrize("seed", range(4))
def test_jobs_that_are_cancelled_have_the_record_of_the_whole(seed):
    """Those that are cancelled when they come are handed to no place: the next job takes their turn."""
    rng = Random(seed)
    jobs = []
    for i in range(40):
        submit = rng.choice([rng.randint(0, 100), i])
        cancel = rng.choice([None, None, submit - 3, submit, submit + 5, submit + 30])
        asked = rng.choice([None, 20])
        run = rng.randint(0, 60)
        jobs.append(Job(id=i, submit=submit, run=run, processors=rng.choice([1, 2, 9]), requested=asked, cancel=cancel))
    for places in (GridSpec(sites=[SiteSpec(name="a", cores=4), SiteSpec(name="b", cores=3)]), {"a": 4, "b": 3}):
        for policy in ("round-robin", "random"):
            scenario = Scenario.of(places, jobs, policy, seed=seed)
            assert_same(scenario.run(), in_parts(scenario, groups_of(rng, scenario)))


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(1000, 1008))
def test_several_processes_have_the_record_of_one(seed):
    rng = Random(seed)
    scenario = drawn_scenario(rng)
    assert_same(scenario.run(), run_apart(scenario, rng.choice([2, 3])))


TWO = {"a": ClusterSpec.simple(8), "b": ClusterSpec.simple(4)}
SITES = [SiteSpec(name=name, cores=8) for name in "ab"]


def test_processes_of_simulate_and_a_seed_of_the_clock():
    log = drawn_log(Random(5), jobs=80)
    found = simulate(TWO, log, "random", processes=2, seed=None, progress=False, name="apart")
    assert found.name == "apart"
    assert_same(simulate(TWO, log, "random", seed=found.scenario["seed"], name="apart"), found)
    one = simulate({"a": 8}, log, "round-robin", processes=4)
    assert_same(simulate({"a": 8}, log, "round-robin"), one)


class Nosy(RoundRobin):
    """A round robin whose author may look at anything."""


LOG = drawn_log(Random(1), jobs=9)
CHAIN = [Job(id=1, run=1), Job(id=2, run=1, dependencies=[1])]


def body(env, work, grant):
    yield env.timeout(1)


@pytest.mark.parametrize(
    ("platform", "work", "policy", "options", "reason"),
    [
        (TWO, LOG, "least-loaded", {}, "policy least-loaded may look at what happens there"),
        (TWO, LOG, "sgs-t", {}, "policy sgs-t may look at what happens there"),
        (TWO, LOG, Nosy(), {}, "policy round-robin may look at what happens there"),
        (TWO, LOG, lambda view: (), {}, "may look at what happens there"),
        (TWO, [LOG, LOG], "round-robin", {}, "policy round-robin takes the jobs of several workloads in turn"),
        (TWO, CHAIN, "random", {}, "job 2 has dependencies, files or a body"),
        (TWO, [Job(id=7, run=1, body=body)], "random", {}, "job 7 has dependencies, files or a body"),
        (
            GridSpec(sites=SITES),
            [Job(id=3, run=1, inputs=["f"])],
            "random",
            {},
            "job 3 has dependencies, files",
        ),
        (
            GridSpec(sites=SITES, outages=[SiteOutageSpec(site="a", at=1, until=2)]),
            LOG,
            "random",
            {},
            "the grid has outages",
        ),
        (
            GridSpec(sites=SITES, failures=[FailureModel(of="sites", mean_time_between_failures=9)]),
            LOG,
            "random",
            {},
            "the grid has failures",
        ),
        (GridSpec(sites=SITES, cycle=60), LOG, "random", {}, "the grid has a cycle"),
        (
            GridSpec(sites=[attrs.evolve(SITES[0], limit=3), SITES[1]]),
            LOG,
            "random",
            {},
            "has limits of sites",
        ),
        (
            GridSpec(sites=[attrs.evolve(SITES[0], overhead=3), SITES[1]]),
            LOG,
            "random",
            {},
            "has overheads of sites",
        ),
        (
            {"a": attrs.evolve(TWO["a"], failures=[FailureModel(mean_time_between_failures=9)]), "b": 8},
            LOG,
            "random",
            {},
            "some have outages or failures, which go on until the whole run ends",
        ),
        (8, LOG, "easy", {}, "processes: must be 1 for a cluster, which is simulated as a whole"),
        (TWO, LOG, "random", {"events": True}, "events: must not be given with several processes, each with a part"),
        (TWO, LOG, "random", {"processes": 0}, "processes: must be a whole number >= 1, got 0"),
        (TWO, LOG, "random", {"processes": "two"}, "processes: must be a whole number >= 1, got 'two'"),
    ],
)
def test_what_cannot_be_apart_is_refused_with_its_reason(platform, work, policy, options, reason):
    with pytest.raises(InputError) as told:
        simulate(platform, work, policy, **{"processes": 2, **options})
    assert reason in str(told.value)
    assert "\n" not in str(told.value)


class Failing:
    """A policy that fails in another process, or kills it."""

    def __init__(self, how="raise"):
        self.how = how
        self.parent = os.getpid()

    def decide(self, view):
        if os.getpid() != self.parent:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise InputError("must be something else", place="here")
        for job in list(view.waiting):
            if view.places[0].fits(job):
                yield Start(job, view.places[0])


def test_the_error_of_a_worker_arrives_as_its_sentence():
    with pytest.raises(InputError) as told:
        simulate(TWO, LOG, "round-robin", policies=Failing(), processes=2)
    assert str(told.value) == "here: must be something else"
    assert told.value.__cause__ is None


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes cannot be killed here")
def test_a_killed_worker_is_told():
    with pytest.raises(SimmodelError, match=r"^broker: a process that simulated some of its places was killed"):
        simulate(TWO, LOG, "round-robin", policies=Failing("kill"), processes=2)


def test_what_cannot_be_sent_is_told():
    with pytest.raises(InputError, match=r"^processes: must be 1: the scenario cannot be sent: "):
        simulate(TWO, LOG, "round-robin", policies=lambda view: (), processes=2)


def test_a_bar_counts_the_jobs_of_this_process(capsys):
    simulate(TWO, drawn_log(Random(2), jobs=40), "round-robin", processes=2, progress=True)
    assert "a: 100%" in capsys.readouterr().err


@pytest.mark.long  # those that are forked: the tests before
def test_processes_that_are_spawned_do_the_same(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        "import multiprocessing\n"
        "from simmodel import simulate\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    log = 'lublin:jobs=60,processors=4'\n"
        "    runs = [simulate({'a': 8, 'b': 4}, log, 'random', processes=n).jobs for n in (1, 2)]\n"
        "    print(*[run['end'].tolist() + run['destination'].tolist() for run in runs], sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, check=True)
    one, two = done.stdout.splitlines()
    assert one == two
    assert "'b'" in one


def test_choosing_draws_the_numbers_that_the_policy_would_draw():
    scenario = Scenario.of(TWO, LOG, "random", seed=3)
    simulation = scenario.start()
    chosen = simulation.system.keep_share(["a", "b"], first=True)
    rng = Environment(seed=3).rng("broker.policy")
    wide = LOG["processors"] > 4
    expected = [0 * rng.random() if each else int(2 * rng.random()) for each in wide[LOG["processors"] <= 8]]
    assert chosen[LOG["processors"] <= 8].tolist() == expected
    assert set(chosen[LOG["processors"] > 8].tolist()) <= {-1}
