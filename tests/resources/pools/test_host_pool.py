"""Pools of hosts, on one of which each job runs: against brute force, and against nodes of the same requests."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from simmodel import Cluster, Environment, InputError, Job, simulate
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel.platform import ClusterSpec, NodeSpec, OutageSpec, PartitionSpec, ReservationSpec, from_dict, to_dict
from simmodel.resources import HostPool, NodePool
from simmodel.systems import Broker
from simmodel.work import LiveJob, Workload
from tests.helpers.examples import up_to
from tests.helpers.snapshot_cuts import check_cut
from tests.oracles.nodes import Machine, NodeJob, easy

PLACEMENTS = ["best-fit", "first-fit", "packed", "spread"]


def partition_of(*cores: int, **options: Any) -> PartitionSpec:
    """Return a partition of one host per number of cores."""
    kinds = [NodeSpec(name=f"h{i}-", cores=each) for i, each in enumerate(cores)]
    return PartitionSpec(nodes=kinds, one_host=True, **options)


def cluster_of(*cores: int, **options: Any) -> ClusterSpec:
    """Return a cluster of one host per number of cores."""
    return ClusterSpec(partitions=[partition_of(*cores, **options)])


# ---------------------------------------------------------------------- what a host can run


def test_one_host_is_in_files_and_best_fit_the_default() -> None:
    spec = cluster_of(8, 4)
    values = to_dict(spec)
    assert values["partitions"][0]["one_host"] is True
    assert "placement" not in values["partitions"][0]
    assert from_dict(values) == spec
    assert spec.partitions[0].placed_by == "best-fit"
    assert cluster_of(8, placement="spread").partitions[0].placed_by == "spread"


def test_counted_processors_are_on_no_host() -> None:
    with pytest.raises(InputError, match="one_host: must be False: batch has no identified nodes"):
        PartitionSpec(processors=8, one_host=True)


def test_a_job_that_no_host_can_run_is_refused_with_a_rule() -> None:
    cluster = Cluster(Environment(), cluster_of(8, 4))
    wide = cluster.why_not(Job(processors=12, run=1))
    assert wide == "12 processors requested, the largest host of batch has 8"
    assert wide.rule == "the largest host of batch has 8"  # type: ignore[attr-defined]
    several = cluster.why_not(Job(nodes=2, cores_per_node=2, run=1))
    assert several == "2 nodes requested, each job of batch runs on one host"
    assert several.rule == "each job of batch runs on one host"  # type: ignore[attr-defined]
    gpus = cluster.why_not(Job(processors=4, gpus_per_node=1, run=1))
    assert gpus == "1 node with 4 cores and 1 GPU requested, batch has 0 such nodes"
    assert cluster.why_not(Job(processors=8, run=1)) is None
    assert cluster.why_not(Job(nodes=1, cores_per_node=8, run=1)) is None
    with pytest.raises(ImpossibleWork, match="the largest host of batch has 8"):
        cluster.places[0].claim(9)


def test_jobs_of_logs_that_are_larger_than_any_host_are_rejected() -> None:
    log = Workload({"job": [1, 2], "submit": [0, 0], "run": [5, 5], "processors": [12, 3]})
    result = simulate(cluster_of(8, 8), log, "fcfs")
    assert result.jobs["status"].tolist() == ["rejected", "completed"]
    assert dict(result.report.rejected) == {"larger than any host": 1}


def test_hosts_that_left_count_no_more() -> None:
    cluster = Cluster(Environment(), cluster_of(8, 4))
    pool: Any = cluster.places[0]
    pool.leave([0])
    assert cluster.why_not(Job(processors=5, run=1)) == "5 processors requested, the largest host of batch has 4"
    pool.join([0])
    assert cluster.why_not(Job(processors=5, run=1)) is None


@pytest.mark.parametrize("plain", [True, False])
def test_a_broker_hands_no_job_to_a_cluster_without_a_host_for_it(plain: bool) -> None:
    log = Workload({"job": [1, 2], "submit": [0, 0], "run": [5, 5], "processors": [12, 3]})
    work = log if plain else Workload.from_jobs([Job(id=1, processors=12, run=5), Job(id=2, processors=3, run=5)])
    result = simulate({"hosts": cluster_of(8, 8), "small": 12}, work, "round-robin")
    assert result.jobs["destination"][0] == "small"
    env = Environment()
    broker = Broker(env, [Cluster(env, cluster_of(8, 8), name="hosts"), Cluster(env, 2, name="small")])
    with pytest.raises(ImpossibleWork, match=r"12 processors requested, the largest host of (hosts|batch) has 8"):
        broker.submit(Job(processors=12, run=5))


def test_a_job_that_waits_although_enough_is_free_in_total_says_so() -> None:
    env = Environment()
    cluster = Cluster(env, cluster_of(8, 8, placement="spread"), "fcfs")

    def endless(env: Any, job: Any, grant: Any) -> Any:
        yield env.event()

    for _ in range(2):
        cluster.submit(Job(processors=3, body=endless))
    cluster.submit(Job(processors=6, run=1))
    with pytest.raises(Stalled) as caught:
        env.run()
    expected = "job 3 has waited for 6 processors of batch since 0 s; 10 processors free in total, on no host"
    assert expected in caught.value.waiters
    assert not cluster.places[0].why_waits(cluster.submit(Job(processors=2, run=1)))


def test_a_job_for_cores_goes_to_the_host_with_fewer_free_gpus() -> None:
    """From 10 s on, 2 cores are free on each host; the GPUs of the second are taken."""
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4, gpus=2)], one_host=True)])
    jobs = [Job(processors=2, run=run) for run in (100, 10)]
    jobs += [Job(submit=1, processors=2, gpus_per_node=2, run=100), Job(submit=10, processors=1, run=1)]
    assert simulate(spec, jobs, "fcfs").runs["nodes"].tolist() == [(0,), (0,), (1,), (1,)]


# ---------------------------------------------------------------------- step by step


class Step(NamedTuple):
    """Take for a job (processors, GPUs), give back what was taken first, or let a host go down or come up."""

    kind: str
    cores: int
    gpus: int
    number: int


STEPS = st.builds(
    Step,
    st.sampled_from(["take", "take", "take", "give", "give", "down", "up", "look", "exact"]),
    st.integers(1, 9),
    st.sampled_from([0, 0, 0, 0, 1]),
    st.integers(0, 5),
)
KINDS = st.lists(
    st.builds(NodeSpec, count=st.integers(1, 3), cores=st.integers(1, 9), gpus=st.sampled_from([0, 0, 2])),
    min_size=1,
    max_size=3,
)


def chosen(free: Sequence[tuple[int, int]], whole: Sequence[int], job: tuple[int, int], placement: str) -> int | None:
    """Return the host that a placement chooses, from the free (cores, GPUs) of each."""
    there = [host for host, (cores, gpus) in enumerate(free) if cores >= job[0] and gpus >= job[1]]
    rank = {
        "best-fit": lambda host: (*free[host], host),
        "first-fit": lambda host: host,
        "packed": lambda host: (free[host][0] == whole[host], host),
        "spread": lambda host: (-free[host][0], -free[host][1], host),
    }[placement]
    return min(there, key=rank, default=None)


@given(kinds=KINDS, steps=st.lists(STEPS, max_size=60), placement=st.sampled_from(PLACEMENTS))
@settings(max_examples=up_to(150), deadline=None)
def test_each_step_as_brute_force_and_as_a_pool_of_nodes_does_it(
    kinds: list[NodeSpec], steps: list[Step], placement: str
) -> None:
    part = PartitionSpec(nodes=kinds, placement=placement)
    hosts = HostPool(Environment(), "hosts", attrs.evolve(part, one_host=True))
    nodes = NodePool(Environment(), "nodes", part)
    whole = [kind.cores for kind in kinds for _ in range(kind.count)]
    free = [(kind.cores, kind.gpus) for kind in kinds for _ in range(kind.count)]
    down: list[int] = []
    held: list[tuple[int, int, int, Any, Any, Any, Any]] = []
    for number, (kind, cores, gpus, which) in enumerate(steps):
        host = which % len(whole)
        if kind in ("take", "exact"):
            job, same = (LiveJob(number, number, 0.0, cores, 5.0, 5.0, 5.0) for _ in range(2))
            job.request = hosts.request_of(Job(processors=cores, gpus_per_node=gpus, run=5))
            same.request = nodes.request_of(Job(nodes=1, cores_per_node=cores, gpus_per_node=gpus, run=5))
            there = [(-1, 0) if i in down else each for i, each in enumerate(free)]
            at = chosen(there, whole, (cores, gpus), placement)
            assert hosts.fits(job) == nodes.fits(same) == (at is not None)
            if at is None:
                continue
            exact = hosts.allocate(job) if kind == "exact" else None
            one, other = hosts.take(job, exact), nodes.take(same)
            assert one.nodes == other.nodes == (at,)
            assert one.allocation == other.allocation
            free[at] = free[at][0] - cores, free[at][1] - gpus
            held.append((at, cores, gpus, job, one, same, other))
        elif kind == "give" and held:
            at, cores, gpus, job, one, same, other = held.pop(which % len(held))
            hosts.give_back(job, one)
            nodes.give_back(same, other)
            free[at] = free[at][0] + cores, free[at][1] + gpus
        elif kind == "down" and host not in down:
            down.append(host)
            for pool in (hosts, nodes):
                pool.take_down([host])
        elif kind == "up" and host in down:
            down.remove(host)
            for pool in (hosts, nodes):
                pool.bring_up([host])
        elif kind == "look":
            assert (hosts.table.free == nodes.table.free).all()
        assert hosts.free == nodes.free == sum(cores for i, (cores, _) in enumerate(free) if i not in down)
    assert (hosts.table.free == nodes.table.free).all()


# ---------------------------------------------------------------------- schedules


@st.composite
def queues(draw: st.DrawFn, gpus: bool = False) -> list[Job]:
    def drawn(number: int) -> Job:
        run = draw(st.integers(1, 20))
        return Job(
            id=number,
            submit=draw(st.integers(0, 40)),
            processors=draw(st.integers(1, 6)),
            run=run,
            requested=draw(st.sampled_from([None, run + 1, run + 10])),
            gpus_per_node=draw(st.sampled_from([0, 0, 0, 1])) if gpus else 0,
            on_preempt=draw(st.sampled_from(["requeue", "suspend"])),
        )

    return sorted((drawn(number) for number in range(draw(st.integers(1, 14)))), key=lambda job: job.submit)


SIZES = st.lists(st.integers(6, 9), min_size=1, max_size=4)


def runs_of(result: Any) -> dict[Any, tuple[float, Any]]:
    """Return the start and the nodes of each job."""
    table = result.runs
    held = zip(table["start"].tolist(), table["nodes"].tolist(), strict=True)
    return dict(zip(table["job"].tolist(), held, strict=True))


def packed(jobs: Sequence[Job], sizes: Sequence[int], placement: str, key: Any) -> dict[Any, tuple[float, Any]]:
    """Return the starts and hosts of jobs that start in an order, one by one, each on one host, by brute force."""
    free = list(sizes)
    running: list[tuple[float, int, int]] = []  # end, host, cores
    waiting: list[Job] = []
    coming = list(jobs)
    found: dict[Any, tuple[float, Any]] = {}
    while coming or waiting:
        now = min([job.submit for job in coming[:1]] + [end for end, _, _ in running])
        for end, host, cores in running:
            free[host] += cores if end == now else 0
        running = [each for each in running if each[0] != now]
        while coming and coming[0].submit == now:
            waiting.append(coming.pop(0))
        waiting.sort(key=key)
        while waiting:
            at = chosen([(cores, 0) for cores in free], sizes, (waiting[0].processors, 0), placement)
            if at is None:
                break
            job = waiting.pop(0)
            assert job.run is not None
            free[at] -= job.processors
            assert free[at] >= 0
            running.append((now + job.run, at, job.processors))
            found[job.id] = now, (at,)
    return found


@pytest.mark.parametrize("log", [False, True])
@given(jobs=queues(), sizes=SIZES, placement=st.sampled_from(PLACEMENTS), policy=st.sampled_from(["fcfs", "sjf"]))
@settings(max_examples=up_to(60), deadline=None)
def test_starts_and_hosts_as_brute_force_packs_them(
    jobs: list[Job], sizes: list[int], placement: str, policy: str, log: bool
) -> None:
    jobs = [attrs.evolve(job, requested=job.run) for job in jobs]
    rank = {job.id: i for i, job in enumerate(jobs)}
    key = {"fcfs": lambda job: rank[job.id], "sjf": lambda job: (job.run, job.submit, rank[job.id])}[policy]
    work = Workload.from_jobs(jobs)
    if log:
        work = Workload({name: work[name] for name in ("job", "submit", "run", "processors", "requested")})
    result = simulate(cluster_of(*sizes, placement=placement), work, policy)
    assert runs_of(result) == packed(jobs, sizes, placement, key)
    assert [row[0] for row in result.runs["cores"]] == result.runs["processors"].tolist()


def crowd(seed: int) -> tuple[list[int], list[NodeJob], list[float]]:
    """Draw hosts, jobs for cores of one that come faster than they can start, and the speeds of the hosts."""
    rng = Random(seed)
    sizes = [rng.randint(6, 9) for _ in range(rng.randint(1, 5))]
    jobs, submit = [], 0
    for _ in range(rng.randint(10, 30)):
        submit += rng.choice([0, 0, 0, 1, 2])
        run = rng.randint(1, 20)
        requested = rng.choice([run, run + 1, 2 * run, run + 30])
        jobs.append(NodeJob(submit, run, requested, 1, (rng.choice([1, 2, 3, rng.randint(1, 6)]), 0, 0)))
    return sizes, jobs, [rng.choice([0.5, 1.0, 2.0]) for _ in sizes]


@pytest.mark.few(3)
@pytest.mark.parametrize("paced", [False, True])
@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "largest+easy"])
@pytest.mark.parametrize(
    "cases", [10, pytest.param(40, marks=pytest.mark.long), pytest.param(1500, marks=pytest.mark.exhaustive)]
)
def test_easy_on_hosts_as_brute_force_says(cases: int, policy: str, paced: bool) -> None:
    order = {"largest+easy": lambda job: -job.shape[0]}.get(policy, lambda job: 0)
    candidates = (lambda job: job.requested) if policy == "easy-sjbf" else None
    for seed in range(cases):
        sizes, jobs, speeds = crowd(seed)
        placement = PLACEMENTS[seed % 4]
        capacity = [(cores, 0, 2.0**50) for cores in sizes]
        machine = Machine(capacity, placement=placement, speeds=speeds if paced else ())
        expected = easy(jobs, machine, order, candidates)
        kinds = [
            NodeSpec(name=f"h{i}-", cores=cores, speed=speed if paced else 1.0)
            for i, (cores, speed) in enumerate(zip(sizes, speeds, strict=True))
        ]
        log = {
            "job": range(len(jobs)),
            "submit": [job.submit for job in jobs],
            "run": [job.run for job in jobs],
            "requested": [job.requested for job in jobs],
            "processors": [int(job.shape[0]) for job in jobs],
        }
        spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, one_host=True, placement=placement)])
        found = runs_of(simulate(spec, Workload(log), policy))
        assert found == {row: (at, tuple(on)) for row, (at, on) in enumerate(expected)}, seed


def test_easy_counts_hosts_as_long_as_jobs_ask_for_processors_only() -> None:
    """A job for memory, which waits from 1 s until 10 s, brings the decisions by the states of nodes."""
    jobs = [Job(processors=6, run=10) for _ in range(4)]
    jobs += [Job(processors=6, memory_per_node=1, run=10, submit=1)]
    env = Environment()
    cluster = Cluster(env, cluster_of(8, 8), "easy")
    cluster.replay(Workload.from_jobs(jobs))
    pool: Any = cluster.places[0]
    counted = []
    for at in (0.5, 1.5, 25):
        env.run(until=at)
        counted.append(pool.counts_hosts(cluster.view.waiting.at(pool)))
    env.run()
    assert counted == [True, False, True]
    assert cluster.result().jobs["start"].tolist() == [0, 0, 10, 10, 20]


@pytest.mark.few(3)
@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy", "easy-sjbf", "conservative", "conservative-keep", "window"])
@given(
    jobs=queues(gpus=True),
    sizes=SIZES,
    placement=st.sampled_from([None, *PLACEMENTS]),
    at=st.integers(0, 30),
    kind=st.sampled_from(["failure", "maintenance", "drain"]),
)
@settings(max_examples=up_to(30), deadline=None, suppress_health_check=list(HealthCheck))
def test_schedules_are_those_of_nodes_with_the_same_requests(
    policy: str, jobs: list[Job], sizes: list[int], placement: str | None, at: int, kind: Any
) -> None:
    kinds = [NodeSpec(name=f"h{i}-", cores=each, gpus=i % 2) for i, each in enumerate([*sizes, 6])]
    outages = [OutageSpec(at=at, until=at + 9, nodes=[0], kind=kind)]
    found = []
    for one_host in (True, False):
        part = PartitionSpec(nodes=kinds, one_host=one_host, placement=placement or "best-fit")
        if placement is None and one_host:
            part = attrs.evolve(part, placement=None)
        asked = jobs if one_host else [attrs.evolve(job, nodes=1, cores_per_node=job.processors) for job in jobs]
        result = simulate(ClusterSpec(partitions=[part], outages=outages), asked, policy)
        found.append((result.jobs["start"].tolist(), result.runs["start"].tolist(), result.runs["nodes"].tolist()))
    assert str(found[0]) == str(found[1])


def test_a_reservation_of_hosts_is_of_hosts() -> None:
    reservation = ReservationSpec(name="r", start=10, end=60, nodes=[1, 2])
    spec = attrs.evolve(cluster_of(8, 8, 8), reservations=[reservation])
    jobs = [Job(processors=5, run=20, partition="r") for _ in range(2)]
    jobs += [Job(processors=5, run=20, submit=15) for _ in range(2)]
    result = simulate(spec, jobs, "fcfs")
    assert result.jobs["start"].tolist() == [10, 10, 15, 35]
    cluster = Cluster(Environment(), spec)
    refused = cluster.why_not(Job(processors=9, run=20, partition="r"))
    assert refused == "9 processors requested, the largest host of r has 8"


@given(
    jobs=queues(),
    sizes=SIZES,
    policy=st.sampled_from(["fcfs", "easy", "conservative", "conservative-keep", "preemptive"]),
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=3, unique=True),
    log=st.booleans(),
)
@settings(max_examples=up_to(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_runs_go_on_from_a_snapshot_on_the_same_hosts(jobs: Any, sizes: Any, policy: str, cuts: Any, log: bool) -> None:
    work = Workload.from_jobs(jobs)
    if log:
        work = Workload({name: work[name] for name in ("job", "submit", "run", "processors")})
    spec = attrs.evolve(cluster_of(*sizes), outages=[OutageSpec(at=7, until=20, nodes=[0])])

    def make(name: str) -> tuple[Environment, Cluster]:
        env = Environment()
        cluster = Cluster(env, spec, name)
        cluster.replay(work)
        return env, cluster

    check_cut(make, policy, sorted(map(float, cuts)))
