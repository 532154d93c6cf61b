"""Invariants of clusters with outages, failures and reservations."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork
from simmodel.platform.cluster import (
    ClusterSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
)
from simmodel.runs.scenario import simulate
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from tests.helpers.batch_cases import cases, to_workload
from tests.helpers.cluster_cases import Body, with_reservations
from tests.helpers.cluster_watch import Watch
from tests.helpers.examples import up_to

POLICIES = ["fcfs", "easy", "conservative", "conservative-keep", "best-fit", "window", "sjf+easy", "easy-sjbf"]


class Ledger:
    """Checks at every instant that the running jobs do not exceed the capacity of the cluster and of each node."""

    def __init__(self, env, cluster):
        self.env = env
        self.cores = {}
        for pool in cluster.places:
            if not hasattr(pool, "table"):
                self.cores[pool] = [pool.capacity]
            else:
                self.cores[pool] = pool.table.capacity[0].tolist()
        self.used = {pool: [0.0] * len(cores) for pool, cores in self.cores.items()}
        self.place = {}

    def _add(self, run, sign):
        used = self.used[run.place]
        if run.grant.nodes is None:
            used[0] += sign * run.job.processors
            return
        amounts = run.grant.allocation.amounts[0].tolist()
        assert sum(amounts) >= run.job.processors
        for node, cores in zip(run.grant.nodes, amounts, strict=True):
            used[node] += sign * cores

    def job_started(self, run):
        self._add(run, 1)
        place = run.place
        for node, (used, cores) in enumerate(zip(self.used[place], self.cores[place], strict=True)):
            assert used <= cores, (self.env.now, place, node)
        assert not set(run.grant.nodes or ()) & set(getattr(place, "down_nodes", ()))
        assert sum(self.used[place]) <= place.up or place.part_of is None
        for other in self.used:  # a reservation shares the nodes of its partition
            if other.part_of is not None and run.grant.nodes is None:
                inside = sum(sum(used) for each, used in self.used.items() if each.part_of is other.part_of)
                assert inside + sum(self.used[other.part_of]) <= other.part_of.capacity
            elif other.part_of is not None:
                assert not any(
                    self.used[other][own] and self.used[other.part_of][node] for own, node in enumerate(other.taken)
                )
        end = self.env.now + run.job.planned
        for window in place.windows:
            if not window.begun and window.start < end and run.grant.nodes is not None:
                assert not set(window.what) & set(run.grant.nodes)

    def job_ended(self, run, _status):
        self._add(run, -1)

    job_resumed = job_started

    def job_suspended(self, run):
        self._add(run, -1)


@st.composite
def calendars(draw, case, nodes):
    """A partition with outages and a reservation, on nodes or on counted processors."""
    processors = case.processors
    sizes = [processors]
    if nodes:
        sizes = draw(st.lists(st.integers(1, max(1, processors)), min_size=1, max_size=4))
    units = len(sizes) if nodes else processors

    def part():
        if nodes:
            return {"nodes": sorted(draw(st.sets(st.integers(0, units - 1), min_size=1, max_size=units)))}
        return {"processors": draw(st.integers(1, processors))}

    outages = []
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, 60))
        kind = draw(st.sampled_from(["failure", "maintenance", "drain"]))
        outages.append(OutageSpec(at=at, until=at + draw(st.integers(1, 50)), kind=kind, **part()))
    if nodes:
        partition = PartitionSpec(
            nodes=[NodeSpec(name=f"kind{i}x", cores=size) for i, size in enumerate(sizes)],
            placement=draw(st.sampled_from(["first-fit", "best-fit", "packed"])),
            exclusive=draw(st.sampled_from([False, False, True])),
        )
    else:
        partition = PartitionSpec(processors=processors)
    failures = []
    if draw(st.booleans()):  # about one in three executions of the largest and longest job fails
        mean = 3.0 * processors * max(1, *(row.run for row in case.jobs))
        failures.append(FailureModel(mean_time_between_failures=mean, mean_time_to_repair=10))
    spec = ClusterSpec(partitions=[partition], outages=outages, failures=failures)
    return draw(with_reservations(spec, st.integers(0, 60), 4))


BODY = Body(run=40.0, fails=False, clean_up=12.0, raises=False)


@pytest.mark.few(4)
@pytest.mark.parametrize("policy", POLICIES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_never_more_than_there_is_and_no_job_forgotten(policy, data):
    case = data.draw(cases(max_jobs=10))
    spec = data.draw(calendars(case, data.draw(st.booleans())))
    options = {
        "overrun": data.draw(st.sampled_from(["stop", "continue"])),
        "decide_on": data.draw(st.sampled_from(["instant", "instant", "event"])),
        "event_order": "ends-first",  # else an end frees capacity before observers hear of it
    }
    outcomes = []
    for _ in range(2):
        env = Environment(seed=3)
        cluster = Cluster(env, spec, policy, **options)
        env.observe(Ledger(env, cluster))
        watch = Watch(env)
        env.observe(watch)
        jobs = []

        def submit(cluster=cluster, env=env, jobs=jobs):
            for row in case.jobs:
                yield env.timeout(row.submit - env.now)
                try:
                    names = [None, *(each.name for each in spec.reservations)]
                    partition = names[len(jobs) % len(names)]
                    requested = row.requested if row.requested and row.requested > 0 else None
                    jobs.append(
                        cluster.submit(
                            Job(
                                run=row.run,
                                body=BODY if row.user == 1 else None,
                                grace=[0, 5, 30][len(jobs) % 3],
                                requested=requested,
                                processors=row.processors,
                                partition=partition,
                                priority=row.priority,
                            )
                        )
                    )
                except ImpossibleWork:
                    pass

        process = env.process(submit())
        env.run(until=process)
        env.run(until=cluster.idle())
        assert {job.state for job in jobs} <= {"completed", "timeout", "cancelled"}
        assert all(job.state != "cancelled" or job.place.part_of is not None for job in jobs)
        for outage in spec.outages:
            if env.now < outage.until:
                env.run(until=outage.until)
        outcomes.append((watch.heard, env.now))
        if not spec.failures:
            env.run()
            for pool in cluster.places:
                assert pool.free == pool.up
                assert (pool.up == pool.capacity) == (pool.part_of is None)
    assert outcomes[0] == outcomes[1]


@pytest.mark.few(4)
@pytest.mark.parametrize("policy", ["fcfs", "sjf", "easy", "sjf+easy", "easy-sjbf", "best-fit", "window", "wfp+easy"])
@given(case=cases(max_jobs=14), data=st.data())
@settings(max_examples=12, deadline=None)
def test_cores_anywhere_on_nodes_are_as_good_as_processors(policy, case, data):
    """A job that can use cores of any node starts as on counted processors, whatever the nodes."""
    sizes, left = [], case.processors
    while left:
        sizes.append(data.draw(st.integers(1, left)))
        left -= sizes[-1]
    placement = data.draw(st.sampled_from(["first-fit", "best-fit", "packed"]))
    nodes = PartitionSpec(nodes=[NodeSpec(cores=size) for size in sizes], placement=placement)
    workload = to_workload(case.jobs, case.processors)
    counts = simulate(case.processors, workload, policy)
    located = simulate(ClusterSpec(partitions=[nodes]), workload, policy)
    assert located.jobs["start"].tolist() == counts.jobs["start"].tolist()


@pytest.mark.parametrize("policy", ["easy", "conservative", "conservative-keep"])
@given(case=cases(max_jobs=14))
@settings(max_examples=12, deadline=None)
def test_whole_nodes_are_as_processors(policy, case):
    """Jobs on exclusive nodes of one core are planned as on counted processors, since no choice remains."""
    nodes = PartitionSpec(nodes=[NodeSpec(count=case.processors)], exclusive=True)
    workload = to_workload(case.jobs, case.processors)
    counts = simulate(case.processors, workload, policy)
    located = simulate(ClusterSpec(partitions=[nodes]), workload, policy)
    if policy == "easy":
        assert located.jobs["start"].tolist() == counts.jobs["start"].tolist()
    else:  # a plan on nodes may leave holes that a plan on counted processors uses
        assert (located.jobs["status"] == counts.jobs["status"]).all()


@given(data=st.data())
@settings(max_examples=up_to(25), deadline=None)
def test_promises_are_kept_on_nodes(data):
    """No job starts later than first promised, whatever its request for nodes."""
    kinds = [NodeSpec(name="fat", count=2, cores=4, gpus=1), NodeSpec(count=3, cores=2)]
    placement = data.draw(st.sampled_from(["first-fit", "best-fit", "packed"]))
    exclusive = data.draw(st.sampled_from([False, False, True]))
    env = Environment()
    spec = ClusterSpec(partitions=[PartitionSpec(nodes=kinds, placement=placement, exclusive=exclusive)])
    cluster = Cluster(env, spec, "conservative-keep")
    ledger = Ledger(env, cluster)
    env.observe(ledger)
    promised = {}
    env.observe(SimpleNamespace(job_promised=lambda job, place, at: promised.setdefault(job.id, at)))
    asked = []
    for number in range(data.draw(st.integers(1, 12))):
        shape = {"processors": data.draw(st.integers(1, 14))}
        if data.draw(st.booleans()):
            shape = {"nodes": data.draw(st.integers(1, 3)), "cores_per_node": data.draw(st.integers(1, 2))}
            shape["gpus_per_node"] = int(shape["nodes"] < 3 and data.draw(st.booleans()))
        run = data.draw(st.integers(0, 20))
        job = Job(id=number, run=run, requested=run + data.draw(st.sampled_from([1, 5, 20])), **shape)
        asked.append((data.draw(st.sampled_from([0, 0, 1, 5])), job))
    jobs = []

    def submit():
        for gap, job in asked:
            yield env.timeout(gap)
            jobs.append(cluster.submit(job))

    env.process(submit())
    env.run()
    for job in jobs:
        assert job.state == "completed"
        assert job.started <= promised.get(job.id, job.started)
