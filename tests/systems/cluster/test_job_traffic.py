"""Jobs with traffic on clusters: ends alone and together, limits, interruptions, copies, records, wrong requests."""

import gzip
import json
import random
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Observer, Policy, Start, WakeAt, Workload, simulate, start, what_if
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.platform.cluster import OutageSpec, ReservationSpec
from simmodel.platform.topology import read_topology
from simmodel.referee import explain
from simmodel.resources.network.progress import rates_of
from simmodel.resources.pools.allocation import Allocation
from simmodel.scheduling.protocol import Resize
from simmodel.snapshots import Snapshot
from simmodel.snapshots.codec import read_state, write_fields
from simmodel.work.elastic import Amdahl, Elastic
from simmodel.work.traffic import PATTERNS, Phase, Phases, Traffic
from simmodel.work.transformations import add_traffic
from tests.helpers.examples import up_to
from tests.helpers.paths import REFERENCE
from tests.oracles.talking_jobs import Talker, play

FOUR = ["torus:5,4,3", "fat-tree:2;8,8;1,4;1,1", "dragonfly:3,4;4,3;5,1;2", "star:40 backbone=200MBps"]


def machine(network, *nodes, bandwidth="125MBps", latency=0.0, cores=1, **more):
    topology = read_topology(f"{network} bandwidth={bandwidth} latency={latency}")
    kinds = nodes or (NodeSpec(count=len(topology.hosts), cores=cores),)
    return ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=kinds, network=topology)], **more)


def star(nodes=4, **more):
    """Return nodes whose links carry 10 bytes/s."""
    return machine(f"star:{nodes}", bandwidth="10B/s", **more)


def ends(result):
    return result.jobs["end"].tolist()


def moved(topology, traffic, hosts):
    """Return the bytes over each link, message by message."""
    found = {}
    for source, destination, size in zip(*(each.tolist() for each in traffic.messages(len(hosts))), strict=True):
        for name in topology.route(hosts[source], hosts[destination]):
            found[name] = found.get(name, 0.0) + size
    return found


def drawn(rng, nodes, **more):
    size = rng.choice([rng.uniform(1e6, 1e9), 1e8])
    traffic = Traffic(rng.choice(list(PATTERNS)), bytes=size, repeats=rng.choice([1, 2, 7]))
    compute = rng.choice([0, rng.uniform(1, 100)])
    return Job(nodes=rng.randint(1, nodes), traffic=traffic, compute=compute, **more)


# ---------------------------------------------------------------------- ends


@pytest.mark.few(3)
@pytest.mark.parametrize("network", FOUR)
def test_alone_a_job_takes_as_long_as_its_slowest_link_or_its_processors(network):
    rng, spec = random.Random(network), machine(network)
    topology = spec.partitions[0].network
    for _ in range(50):
        job = drawn(rng, 24)
        loads = moved(topology, job.traffic, range(job.nodes))
        seconds = max([job.compute, *(size / topology.link(name).bandwidth for name, size in loads.items())])
        assert ends(simulate(spec, [job], "fcfs")) == pytest.approx([seconds], rel=1e-12)


def test_each_phase_begins_after_the_longest_latency_of_its_messages():
    spec = star(latency=0.5)
    ring = Traffic("ring", bytes=100)
    steps = Phases([Phase(ring), Phase(compute=3), Phase(ring, compute=20)], repeats=2)
    jobs = [
        Job(nodes=2, traffic=ring),
        Job(nodes=2, traffic=ring, compute=30),
        Job(nodes=4, traffic=steps),
        Job(nodes=1, traffic=ring, compute=4),
        Job(nodes=2, traffic=ring, requested=0.75),
        Job(nodes=2, traffic=ring, requested=5),
    ]
    for job, end in zip(jobs, [11, 31, 2 * (11 + 3 + 21), 4, 0.75, 5], strict=True):
        (run,) = simulate(spec, [job], "easy").runs.rows()
        assert run["end"] == pytest.approx(end, rel=1e-12)
        if job.requested is None:
            assert (run["alone"], run["stretch"]) == (pytest.approx(end, rel=1e-12), pytest.approx(1))
    mixed = machine("star:4 backbone=10B/s backbone_latency=1", bandwidth="100B/s", latency=0.5)
    late = [Job(nodes=2, traffic=ring), Job(nodes=2, traffic=ring)]
    assert ends(simulate(mixed, late, "easy")) == [42, 42]  # 2 s of latency, 400 bytes over the backbone


SIMGRID = json.loads((Path(__file__).parent / "simgrid-jobs.json").read_text())
"""Parallel tasks in SimGrid 3.32 under ptask_L07, links of 125 MB/s and 2 ms: nodes, start (s), seconds of computing,
bytes between nodes, and end (s)."""


@pytest.mark.parametrize("case", SIMGRID, ids=lambda case: case["topology"])
def test_jobs_over_links_with_latencies_end_as_those_of_simgrid(case):
    where = {number: nodes for number, (nodes, *_) in enumerate(case["jobs"])}
    jobs = [
        Job(id=number, submit=begin, nodes=len(nodes), compute=compute, traffic=Traffic(matrix))
        for number, (nodes, begin, compute, matrix, _) in enumerate(case["jobs"])
    ]
    result = simulate(machine(case["topology"], latency=0.002), jobs, placed(where))
    found = dict(zip(result.jobs["job"].tolist(), ends(result), strict=True))
    assert found == pytest.approx({number: job[-1] for number, job in enumerate(case["jobs"])}, rel=1e-12)


def test_a_job_computes_as_fast_as_its_slowest_node():
    spec = machine("star:4", NodeSpec(count=2, speed=2.0), NodeSpec(count=2), bandwidth="10B/s")
    for nodes, seconds in ((2, 30.0), (3, 60.0)):
        assert ends(simulate(spec, [Job(nodes=nodes, compute=60, traffic=Traffic("ring"))], "fcfs")) == [seconds]


def placed(where):
    """Return a policy that starts each job at once on given nodes."""

    def policy(view):
        for job in [job for job in view.waiting if not job.attempts]:
            yield Start(job, view.places[0], allocation=Allocation.of([(node, 1, 0, 0) for node in where[job.id]]))

    return policy


def test_jobs_on_a_dragonfly_end_as_those_of_simgrid():
    path = REFERENCE / "topology" / "jobs-dragonfly-3x4x5.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name}")
    given = json.loads(gzip.decompress(path.read_bytes()))
    send = {
        "ring": lambda i, j, count: j == (i + 1) % count,
        "all-to-all": lambda i, j, _: i != j,
        "tree": lambda i, j, _: j == 0 != i,
    }
    jobs, where = [], {}
    for number, each in enumerate(given["jobs"]):
        nodes, sends = each["nodes"], send[each["pattern"]]
        order = sorted(range(len(nodes)), key=nodes.__getitem__)
        matrix = [[each["bytes"] * sends(i, j, len(nodes)) for j in order] for i in order]
        where[number] = sorted(nodes)
        traffic, compute = Traffic(matrix), each["flops"] / given["speed"]
        jobs.append(Job(id=number, submit=each["start"], nodes=len(nodes), traffic=traffic, compute=compute))
    result = simulate(machine("dragonfly:3,1;4,1;5,1;2"), jobs, placed(where))
    assert ends(result) == pytest.approx([each["end"] for each in given["jobs"]], rel=1e-12)
    slowed = [run["stretch"] for run in result.runs.rows()]
    assert sum(each > 1.001 for each in slowed) == 16
    assert max(slowed) == pytest.approx(9.15, abs=0.01)


def check_together(seed, network, sharing, count):
    """Compare a crowd that never waits with its play: no link is too full, and all bytes are moved."""
    rng, spec = random.Random(seed), machine(network)
    topology = spec.partitions[0].network
    jobs, left = [], len(topology.hosts)
    for number in range(count):
        job = drawn(rng, min(left, 9), id=number, submit=rng.choice([0.0, 5.0, rng.uniform(0, 20)]))
        jobs.append(job)
        left -= job.nodes
        if not left:
            break
    result = simulate(spec, jobs, "fcfs", sharing=sharing)
    nodes = {run["job"]: run["nodes"] for run in result.runs.rows()}
    loads = [moved(topology, job.traffic, nodes[job.id]) for job in jobs]
    capacities = {name: topology.link(name).bandwidth for uses in loads for name in uses}
    talkers = [Talker(job.submit, uses) for job, uses in zip(jobs, loads, strict=True)]
    ceilings = [1 / job.compute if job.compute else inf for job in jobs]
    seen = []

    def look(now, rates):
        seen.append((now, rates))
        for name, capacity in capacities.items():
            assert (
                sum(loads[i].get(name, 0.0) * rate for i, rate in rates.items() if rate < inf) <= capacity * 1.0000001
            )

    def rates(order):
        return rates_of(capacities, [loads[i] for i in order], [ceilings[i] for i in order], sharing)

    played = play(capacities, talkers, rates, look)
    assert ends(result) == pytest.approx(played, rel=1e-9)
    seen.append((max(played), {}))
    for i, uses in enumerate(loads):
        if uses:
            shares = ((then - now) * each[i] for (now, each), (then, _) in pairwise(seen) if i in each)
            assert sum(shares) == pytest.approx(1.0, rel=1e-9)


SETS = (
    st.integers(0, 10**9),
    st.sampled_from(["torus:4,4", "dragonfly:3,2;2;3;2", *FOUR[1:]]),
    st.sampled_from(["fair-bottleneck", "max-min"]),
    st.integers(2, 9),
)


@settings(max_examples=up_to(60), deadline=None)
@given(*SETS)
def test_jobs_end_as_their_rates_say(seed, network, sharing, count):
    check_together(seed, network, sharing, count)


@pytest.mark.long
@settings(max_examples=up_to(2000), deadline=None)
@given(*SETS)
def test_many_sets_of_jobs_end_as_their_rates_say(seed, network, sharing, count):
    check_together(seed, network, sharing, count)


# ---------------------------------------------------------------------- limits and plans

RING = Traffic("ring", bytes=100)  # 10 s on the star alone
PAIR = [[0, 0, 1, 0], [0, 0, 0, 1], [0] * 4, [0] * 4]


def test_a_slowed_job_is_stopped_at_its_requested_time_unless_it_may_continue():
    spec = machine("torus:4 wrap=false", bandwidth="10B/s")  # both jobs pass the link in the middle
    where = {1: (0, 2), 2: (1, 3)}
    jobs = [Job(id=n, nodes=2, traffic=Traffic([[0, 100], [0, 0]]), requested=15) for n in (1, 2)]
    stopped = simulate(spec, jobs, placed(where))
    assert (ends(stopped), stopped.jobs["status"].tolist()) == ([15, 15], ["timeout"] * 2)
    assert stopped.runs["alone"].tolist() == [7.5, 7.5]  # of the part that was done
    going = simulate(spec, jobs, placed(where), overrun="continue")
    assert (ends(going), going.jobs["status"].tolist()) == ([20, 20], ["completed"] * 2)
    assert going.runs["stretch"].tolist() == [2, 2]
    assert going.runs["slowed_by"].tolist() == ["2", "1"]
    assert going.runs["slowed_on"].tolist() == ["1 - 2", "1 - 2"]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_plans_are_made_with_the_requested_time(policy):
    jobs = [
        Job(id="long", nodes=3, traffic=RING, requested=50),
        Job(id="wide", nodes=4, run=5, requested=5, submit=1),
        Job(id="fits", nodes=1, run=40, requested=40, submit=2),  # before 50, not before 10
    ]
    result = simulate(star(), jobs, policy)
    assert result.jobs["start"].tolist() == [0, 42, 2]
    assert ends(result)[0] == 10


# ---------------------------------------------------------------------- interruptions


@pytest.mark.parametrize(
    ("mode", "keeps", "end"), [("suspend", False, 26.0), ("requeue", False, 30.0), ("requeue", True, 26.0)]
)
def test_a_stopped_job_keeps_its_progress_as_others_keep_theirs(mode, keeps, end):
    env = Environment()
    cluster = Cluster(env, star())
    first = cluster.submit(Job(nodes=4, traffic=RING, keeps_work=keeps))

    def operator(env):
        yield env.timeout(4)
        cluster.submit(Job(nodes=4, run=16, priority=1))
        cluster.preempt(first, mode)

    env.process(operator(env))
    env.run()
    assert env.now == end
    assert first.state == "completed"
    runs = [run for run in cluster.result().runs.rows() if run["job"] == first.id]
    assert [run["alone"] for run in runs] == pytest.approx([4, 6] if end == 26 else [4, 10])


def test_the_limit_of_a_suspended_job_counts_the_time_that_it_ran():
    env = Environment()
    cluster = Cluster(env, star())
    job = cluster.submit(Job(nodes=4, traffic=RING, requested=8))

    def operator(env):
        yield env.timeout(4)
        cluster.submit(Job(nodes=4, run=16, priority=1))
        cluster.preempt(job, "suspend")

    env.process(operator(env))
    env.run()
    assert (env.now, job.state) == (24, "timeout")


def test_a_failure_frees_the_links_for_the_others():
    spec = machine(
        "torus:4 wrap=false", bandwidth="10B/s", outages=[OutageSpec(at=4, until=100, nodes=(0,), kind="failure")]
    )
    jobs = [Job(id=n, nodes=2, traffic=Traffic([[0, 100], [0, 0]])) for n in (1, 2)]
    result = simulate(spec, jobs, placed({1: (0, 2), 2: (1, 3)}), until=50)
    assert ends(result)[1] == 4 + 8  # 2 s of its 10 are done by then


def test_a_reservation_shares_the_links_of_its_partition():
    spec = machine("torus:4 wrap=false", bandwidth="10B/s")
    reservation = ReservationSpec(name="course", partition="batch", start=0, end=100, nodes=(1, 3))
    spec = ClusterSpec(partitions=spec.partitions, reservations=[reservation])
    send = Traffic([[0, 100], [0, 0]])
    jobs = [Job(nodes=2, traffic=send, partition="course", requested=50), Job(nodes=2, traffic=send, partition="batch")]
    assert ends(simulate(spec, jobs, "fcfs")) == [20, 20]


# ---------------------------------------------------------------------- sizes


class Sizes(Policy):
    """Starts what fits, and gives elastic jobs other sizes at given instants, by the job."""

    name = "sizes"
    decides = "jobs"

    def __init__(self, plan):
        self.plan = plan

    def decide(self, view):
        for job in list(view.waiting):
            if view.places[0].fits(job):
                yield Start(job, view.places[0])
        running = {run.job.id: run.job for run in view.running}
        for at, name, size in self.plan:
            if at == view.now and name in running:
                yield Resize(running[name], size)
        after = min((at for at, _, _ in self.plan if at > view.now), default=None)
        if after is not None:
            yield WakeAt(after)


def stretchy(**fields):
    return Job(**({"id": 1, "elastic": Elastic(1, 2, 8), "traffic": Traffic("all-to-all", bytes=50)} | fields))


@pytest.mark.parametrize(
    ("fields", "plan", "end"),
    [
        ({}, [], 5),  # 50 bytes over each link
        ({}, [(2, 1, 4)], 2 + 0.6 * 15),  # 150 bytes over each
        ({}, [(2, 1, 4), (5, 1, 2)], 5 + 0.4 * 5),
        ({}, [(2, 1, 4), (5, 1, 1)], 5),  # alone it has nobody to talk to
        ({"compute": 40}, [(4, 1, 8)], 4 + 0.9 * 35),  # 350 bytes over each take longer than to compute for 10 s
        ({"compute": 400}, [(40, 1, 8)], 40 + 0.9 * 100),
        ({"compute": 400, "elastic": Elastic(1, 2, 8, speedup=Amdahl(1.0))}, [(40, 1, 8)], 400),
        ({"requested": 10, "compute": 40}, [(4, 1, 4)], 4 + 6 / 2),  # its limit follows its size
        (
            {
                "traffic": Phases([Phase(Traffic("ring", bytes=40)), Phase(compute=16)]),
            },
            [(2, 1, 4), (6, 1, 8)],
            4 + 2 + 0.75 * 4,
        ),
    ],
)
def test_what_is_done_of_an_elastic_job_stays_done(fields, plan, end):
    result = simulate(star(8), [stretchy(**fields)], Sizes(plan))
    assert ends(result) == pytest.approx([end], rel=1e-12)
    assert result.runs["status"].tolist()[:-1] == ["resized"] * (len(result.runs) - 1)
    assert np.nansum(result.runs["alone"]) == pytest.approx(end, rel=1e-12)


def test_a_job_that_grows_shares_its_links_as_before():
    # Both send 200 bytes over the backbone, at 5 bytes/s each; from 10 s on the second one 400, of which 300 are left.
    spec = machine("star:6 backbone=10B/s", bandwidth="100B/s")
    ring = Traffic("ring", bytes=100)
    jobs = [Job(id="first", nodes=2, traffic=ring), stretchy(id="second", traffic=ring)]
    rows = list(simulate(spec, jobs, Sizes([(10, "second", 4)])).runs.rows())
    assert [(row["job"], row["end"], row["alone"], row["slowed_by"]) for row in rows] == [
        ("first", 40, 20, "second"),
        ("second", 10, 5, "first"),
        ("second", 55, pytest.approx(30), "first"),
    ]
    assert rows[2]["nodes"] == (2, 3, 4, 5)


@pytest.mark.long  # smaller: the other tests of the file
def test_cut_runs_of_elastic_jobs_with_traffic_end_alike():
    rng = random.Random(5)
    jobs = [each for each in crowd(5, 30) if each.nodes < 6]
    plan = []
    for number in range(100, 112):
        sizes = Elastic(1, rng.randint(1, 4), 9, speedup=Amdahl(0.1))
        traffic = Traffic(rng.choice(list(PATTERNS)), bytes=rng.uniform(1e6, 1e9))
        fields = {"requested": rng.choice([None, rng.uniform(20, 90)]), "keeps_work": rng.random() < 0.5}
        compute = rng.uniform(0, 60)
        jobs.append(
            Job(id=number, submit=rng.uniform(0, 60), elastic=sizes, traffic=traffic, compute=compute, **fields)
        )
        plan += [(rng.uniform(0, 120), number, rng.randint(1, 4)) for _ in range(6)]
    failure = OutageSpec(at=30, until=40, nodes=(0, 1, 2, 3, 30, 31), kind="failure")
    spec = machine("dragonfly:2,2;5;2;2", NodeSpec(count=20), NodeSpec(count=20, speed=2.0), outages=[failure])
    whole = simulate(spec, jobs, Sizes(plan), overrun="stop")
    assert (whole.runs["status"] == "resized").sum() > 8
    wanted = dict(zip(whole.jobs["job"].tolist(), ends(whole), strict=True))
    for cut in range(20):
        simulation = start(spec, jobs, Sizes(plan), overrun="stop")
        simulation.run(until=whole.ended * (cut + 0.5) / 20)
        rest = start(Snapshot.from_json(simulation.snapshot().to_json()), policy=Sizes(plan)).run().result()
        found = dict(zip(rest.jobs["job"].tolist(), ends(rest), strict=True))
        assert found == {job: wanted[job] for job in found}


# ---------------------------------------------------------------------- copies


def crowd(seed, count=40):
    rng = random.Random(seed)
    jobs = []
    for number in range(count):
        more = {"id": number, "submit": rng.uniform(0, 60), "keeps_work": rng.random() < 0.5}
        if rng.random() < 0.2:
            jobs.append(Job(nodes=rng.randint(1, 10), run=rng.uniform(1, 30), requested=40, **more))
        else:
            jobs.append(drawn(rng, 10, requested=rng.choice([None, rng.uniform(5, 100)]), **more))
    return jobs


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("seed", "policy", "overrun", "sharing", "latency"),
    [
        (1, "easy", "stop", "fair-bottleneck", 0.0),
        (2, "conservative", "continue", "fair-bottleneck", 0.0),
        (3, "fcfs", "continue", "max-min", 0.0),
        (4, "easy", "stop", "fair-bottleneck", 3.0),
    ],
)
def test_cuts_change_no_end(seed, policy, overrun, sharing, latency):
    nodes = NodeSpec(count=20), NodeSpec(count=20, speed=2.0)
    failure = OutageSpec(at=30, until=40, nodes=(0, 1, 2, 3, 30, 31), kind="failure")
    spec = machine("dragonfly:2,2;5;2;2", *nodes, latency=latency, outages=[failure])
    options = {"policy": policy, "overrun": overrun, "sharing": sharing}
    whole = simulate(spec, crowd(seed), **options)
    wanted = dict(zip(whole.jobs["job"].tolist(), ends(whole), strict=True))
    cuts = up_to(20, 7)
    for cut in range(cuts):
        simulation = start(spec, crowd(seed), **options)
        simulation.run(until=whole.ended * (cut + 0.5) / cuts)
        rest = start(Snapshot.from_json(simulation.snapshot().to_json())).run().result()
        found = dict(zip(rest.jobs["job"].tolist(), ends(rest), strict=True))
        assert found == {job: wanted[job] for job in found}
        if not cut % 7:
            assert ends(simulation.run().result()) == ends(whole)  # nor does the question


def test_a_what_if_knows_the_requested_time_alone():
    simulation = start(
        star(), [Job(id=1, nodes=4, traffic=RING, requested=50), Job(id=2, nodes=4, run=5, submit=1)], "fcfs"
    )
    simulation.run(until=4)
    seen = simulation.system.snapshot(actual=False)
    assert (seen.running[0].pace, seen.running[0].work.spec.traffic, seen.running[0].end) == (None, None, None)
    (outcome,) = what_if(seen, {"fcfs": "fcfs"}).outcomes
    assert [each.at for each in outcome.starts] == [50]


def test_a_suspended_job_continues_in_a_copy_where_it_stopped():
    env = Environment()
    cluster = Cluster(env, star())
    job = cluster.submit(Job(nodes=4, traffic=RING))
    env.run(until=4)
    cluster.submit(Job(nodes=4, run=16, priority=1))
    cluster.preempt(job, "suspend")
    env.run(until=5)
    snapshot = Snapshot.from_json(cluster.snapshot().to_json())
    env.run()
    assert start(snapshot).run().result().ended == env.now == 26


def test_a_start_that_is_taken_back_leaves_the_links_to_the_others():
    simulation = start(
        machine("torus:4 wrap=false", bandwidth="10B/s"),
        [Job(id=n, nodes=2, traffic=Traffic([[0, 100], [0, 0]])) for n in (1, 2)],
        placed({1: (0, 2), 2: (1, 3)}),
    )
    view = simulation.next_decision()
    one, two = view.waiting
    simulation.decide()
    simulation.system.execution.take_back(two)
    simulation.system.cancel(two)
    simulation.run()
    assert (simulation.env.now, one.state, two.state) == (10, "completed", "cancelled")


# ---------------------------------------------------------------------- records


class Slowed(Observer):
    def __init__(self):
        self.told = []

    def job_slowed(self, run, slowed):
        self.told.append((run.job.id, slowed))


def test_seconds_lost_are_those_beyond_the_time_alone():
    observer = Slowed()
    spec = machine("dragonfly:2,2;5;2;2")
    jobs = [drawn(random.Random(n), 10, id=n, submit=n / 2) for n in range(20)]
    result = simulate(spec, jobs, "fcfs", observers=[observer])
    runs = {run["job"]: run for run in result.runs.rows()}
    assert len(observer.told) == 20
    for job, slowed in observer.told:
        run = runs[job]
        lost = run["end"] - run["start"] - slowed.alone
        assert sum(each[2] for each in slowed.by) == pytest.approx(lost, abs=1e-9 * run["end"])


def test_an_explanation_says_who_slowed_a_job_and_where():
    spec = machine("dragonfly:2,1;2;2;2")
    send = Traffic([[0, 5e8], [0, 0]])

    def policy(view):  # one job at each router of the first group and one of the second
        for job in list(view.waiting):
            if view.now >= 3:
                yield Start(job, view.places[0], allocation=Allocation.of([(n, 1, 0, 0) for n in (job.id, job.id + 8)]))

    jobs = [Job(id=n, nodes=2, traffic=send, submit=n) for n in range(4)]
    found = explain(spec, jobs, policy, job=0)
    assert found.slowed == "slowed 4 by job 1 on group 0 - group 1"
    assert f"once it ran: {found.slowed}" in str(found)


def test_a_run_without_traffic_has_no_columns_about_it():
    result = simulate(star(), [Job(nodes=2, run=5)], "fcfs")
    assert "stretch" not in result.runs


# ---------------------------------------------------------------------- work


@pytest.mark.parametrize("traffic", [Traffic("stencil-3d", bytes="1MB", repeats=3), Traffic([[0, 5], [2.5, 0]])])
def test_jobs_with_traffic_survive_json(traffic):
    job = Job(id=3, nodes=2, traffic=traffic, compute=60, requested=90)
    assert read_state(json.loads(json.dumps(write_fields(job))), Job) == job


def test_traffic_is_added_to_a_log_by_a_seed():
    log = Workload(
        {
            "submit": [0, 1, 2, 3],
            "run": [10, 20, 0, 40],
            "processors": [4, 8, 2, 1],
            "requested": [60] * 4,
            "queue": [1] * 4,
        }
    )
    some = add_traffic(log, seed=5)
    assert [job.traffic for job in some.specs] == [job.traffic for job in add_traffic(log, seed=5).specs]
    assert [job.traffic for job in some.specs] != [job.traffic for job in add_traffic(log, seed=6).specs]
    assert [(job.compute, job.run) for job in some.specs] == [(10, None), (20, None), (0, 0), (40, None)]
    for job in some.specs[:2]:
        rate = job.traffic.total(job.processors) / job.processors / job.compute
        assert 1e7 <= rate <= 1e9
    assert [job.traffic for job in add_traffic(log, share=0.0).specs] == [None] * 4
    assert ends(simulate(machine("star:16"), some, "easy", overrun="continue"))[2] == 2
    with pytest.raises(ValueError, match="two rates > 0 in order"):
        add_traffic(log, rates=(2, 1))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"run": 5}, "run: must be left out beside traffic; compute is the time of its processors, got 5"),
        ({"traffic": None, "compute": 3}, "compute: must be left out without traffic"),
        ({"traffic": None}, "must have a run time, a body, a workflow or traffic"),
        ({"body": lambda env, job, grant: iter(())}, "body: must be left out beside traffic"),
        ({"compute": -1}, "compute: must be >= 0"),
        ({"traffic": "ring"}, r"traffic: must be a Traffic or Phases, got 'ring'"),
        (
            {"nodes": None, "elastic": Elastic(1, 2, 4), "traffic": Traffic([[0, 1], [1, 0]])},
            "elastic: must be left out beside traffic by a matrix, which is of one number of nodes",
        ),
    ],
)
def test_wrong_jobs_are_refused(fields, text):
    with pytest.raises(ValueError, match=text):
        Job(**({"nodes": 2, "traffic": RING} | fields))


@pytest.mark.parametrize(
    "spec", [ClusterSpec.simple(4), ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=4)])])]
)
def test_traffic_needs_nodes_in_a_network(spec):
    cluster = Cluster(Environment(), spec)
    with pytest.raises(ImpossibleWork, match="traffic among its nodes requested, batch has no network"):
        cluster.submit(Job(processors=2, traffic=RING))
    report = simulate(spec, [Job(processors=2, traffic=RING)], "fcfs").report
    assert "batch has no network" in str(report)


def test_a_matrix_must_have_the_nodes_of_the_job():
    with pytest.raises(ImpossibleWork, match="traffic: must be a matrix of the 3 nodes of the job, got one of 2"):
        Cluster(Environment(), star()).submit(Job(nodes=3, traffic=Traffic([[0, 1], [1, 0]])))


def test_an_unknown_rule_is_refused():
    with pytest.raises(InputError, match="sharing: must be 'fair-bottleneck' or 'max-min'"):
        simulate(star(), [Job(nodes=2, traffic=RING)], sharing="fair")
