"""A user's script that mypy checks strictly: every name at the top of the package, and the types behind them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import simpy

import simmodel
from simmodel import (
    Backfill,
    Branch,
    Broker,
    Cluster,
    Elastic,
    Environment,
    Grid,
    InputError,
    Job,
    Machine,
    Network,
    Observer,
    Order,
    Policy,
    PolicyError,
    Portfolio,
    Preempt,
    RealtimeEnvironment,
    Reserve,
    Resize,
    Result,
    Scenario,
    SimmodelError,
    Simulation,
    Snapshot,
    Start,
    Task,
    TaskSet,
    View,
    WakeAt,
    Workflow,
    Workload,
    compare,
    explore,
    load_platform,
    load_result,
    load_scenario,
    load_workflow,
    load_workload,
    register_policy,
    replicate,
    simulate,
    snapshot_of,
    start,
    what_if,
)
from simmodel.experiments import Comparison, Replications
from simmodel.experiments.comparison import Exploration
from simmodel.formats import write_wfformat
from simmodel.futures.what_if_result import WhatIf
from simmodel.generators import lublin
from simmodel.platform import ClusterSpec, GridSpec, LinkSpec, MachineSpec, NodeSpec, PartitionSpec, SiteSpec
from simmodel.resources import Grant, Pool
from simmodel.resources.network.transfer import Delivery
from simmodel.results import BrokerResult, MachineResult
from simmodel.scheduling import Decision, Place
from simmodel.work import LiveJob, Run

JOBS = [Job(processors=3, run=10, requested=20, user="ann"), Job(processors=2, run=5, submit=1)]


class Starts(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[int | str, float]] = []

    def job_started(self, run: Run) -> None:
        self.seen.append((run.job.id, run.started))


class Smallest(Policy):
    def __init__(self, patience: float = 60.0) -> None:
        self.patience = patience

    def decide(self, view: View, /) -> Iterator[Decision]:
        place: Place = view.places[0]
        for job in sorted(view.waiting, key=lambda job: job.processors):
            if place.fits(job):
                yield Start(job, place, reason="it is small")
            else:
                yield WakeAt(view.now + self.patience)
                return


def cautious(view: View) -> Iterator[Decision]:
    for job in view.waiting:
        if view.places[0].fits(job):
            yield Start(job, view.places[0])
        else:
            yield Reserve(job, view.places[0], view.now + 100)
            return


def urgent(view: View) -> Iterator[Decision]:
    for run in list(view.running):
        if any(job.priority > run.job.priority for job in view.waiting):
            yield Preempt(run.job, "requeue")
    yield from cautious(view)


def growing(view: View) -> Iterator[Decision]:
    for run in view.running:
        elastic: Elastic | None = run.job.elastic
        if elastic is not None and view.places[0].free and run.job.processors < elastic.maximum:
            yield Resize(run.job, run.job.processors + 1)
    yield from cautious(view)


def body(env: Environment, job: LiveJob, grant: Grant) -> Generator[simpy.Event, object, None]:
    yield env.timeout(4.0 * job.processors)


def scenario(env: Environment, cluster: Cluster, network: Network) -> Generator[simpy.Event, object, float]:
    live: LiveJob = cluster.submit(Job(processors=2, requested=50, body=body))
    yield live
    delivery = yield network.transfer("1GB", route=["wan"])
    assert isinstance(delivery, Delivery)
    pool: Pool = cluster.places[0]
    with pool.claim(processors=1) as grant:
        yield grant
        yield grant.grow(2) | env.timeout(1)
        grant.shrink(1)
        nodes: tuple[int, ...] | None = grant.nodes
        assert nodes is not None
        assert len(nodes) <= grant.processors
    return delivery.end


def batch(folder: Path) -> list[float]:
    platform = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=2, cores=4)])])
    env, starts = Environment(seed=1), Starts()
    env.observe(starts)
    cluster = Cluster(env, platform, policy=Smallest())
    over = env.process(scenario(env, cluster, Network(env, [LinkSpec(name="wan", bandwidth="1GBps")])))
    env.run(until=2)
    snapshot: Snapshot = cluster.snapshot() if not starts.seen else snapshot_of(4, now=2.0)
    env.run()
    found: WhatIf = what_if(snapshot_of(4, now=2.0, waiting=JOBS), ["fcfs", Branch("easy").switch(3.0, "sjf")])
    sim: Simulation = start(4, JOBS, Backfill(Order("wide", key=lambda job: -job.processors), "easy"))
    result: Result = sim.run().result()
    result.to_sqlite(folder / "run.sqlite")
    again: Scenario = load_scenario(folder / "run.sqlite")
    register_policy("cautious", cautious, "starts what fits, promises the next")
    malleable = [Job(processors=2, run=9, elastic=Elastic(1, 2, 4)), Job(run=5)]
    assert simulate(4, malleable, growing).runs["processors"].max() > 2
    both: Comparison = compare(4, JOBS, ["cautious", urgent, Portfolio(["easy", "sjf+easy"], "wait_mean")])
    many: Replications = replicate(lambda seed: simulate(128, lublin(30, 128, seed=seed), "easy"), 2)
    shared: BrokerResult = simulate({"a": 4, "b": 4}, Workload.from_jobs(JOBS), "round-robin")
    stored = load_result(folder / "run.sqlite")
    waits = [
        float(each.metrics()["wait_mean"]) for each in (result, again.run(workload=JOBS, policy="easy"), stored, shared)
    ]
    assert isinstance(load_platform("kth-sp2"), ClusterSpec)
    assert len(load_workload("probe-4")) == 4
    print(both.summary(["wait_mean"]), many, found.summary(), snapshot.now, over.value)
    return waits


def tasks(folder: Path) -> MachineResult:
    flow = Workflow([Task(id="a", run=5), Task(id="b", run=7)], [("a", "b", 1e6)])
    write_wfformat(flow, folder / "flow.json")
    machine: MachineSpec = load_platform("hetsim-slow")
    found: Exploration = explore(machine, load_workflow(folder / "flow.json"), ["hrr", "heft"], seeds=2)
    env = Environment()
    live = Machine(env, machine, "heft")
    live.submit(TaskSet.of(flow))
    env.run()
    print(found.summary(["makespan"]), live.result().metrics()["makespan"])
    return simulate(machine, flow, "heft")


def main() -> None:
    with TemporaryDirectory() as folder:
        print(batch(Path(folder)), tasks(Path(folder)).metrics()["tasks"])
    env = RealtimeEnvironment(factor=0.001, strict=False)
    broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "least-loaded")
    broker.submit(JOBS[0])
    env.run()
    grid = Grid(Environment(), GridSpec(sites=[SiteSpec(name="a", cores=4)]))
    grid.submit(JOBS[0])
    grid.env.run()
    print(grid.result().jobs["site"])
    try:
        simulate(2, JOBS, "easey")
    except (InputError, PolicyError) as error:
        print(isinstance(error, SimmodelError), error, simmodel.__version__)


if __name__ == "__main__":
    main()
