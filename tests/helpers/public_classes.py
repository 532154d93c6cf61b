"""The public classes of the package, and one value of each that users hold."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import simmodel
from simmodel.catalogue.formats import FORMATS
from simmodel.environment import Environment
from simmodel.experiments import (
    RecordedTasks,
    Study,
    calibrate,
    compare,
    compare_brokers,
    compare_portfolio,
    explore,
    judge_surrogates,
    optimise,
    replicate,
    replicate_portfolio,
    sensitivity,
)
from simmodel.experiments.calibration.losses import QuantileDistance, RelativeError, StartError
from simmodel.experiments.parameters import Space
from simmodel.formats import CGSimSites, CGSimStudy, HetSimConfig, SimGridHost, SimGridPlatform, SSTScenario
from simmodel.futures import Branch, what_if
from simmodel.generators import JobClass, lublin
from simmodel.generators.distributions import exponential
from simmodel.generators.lublin_feitelson import BATCH
from simmodel.generators.task_kinds import TaskKind
from simmodel.metrics import Energy
from simmodel.metrics._examples import two_kinds
from simmodel.metrics.differences import Source
from simmodel.metrics.statistics import Interval
from simmodel.platform import (
    ArchitectureSpec,
    BrokerSpec,
    ClusterOptions,
    ClusterSpec,
    ConsumableSpec,
    Conversion,
    DelaySpec,
    DeviceSpec,
    Dragonfly,
    FailureModel,
    FatTree,
    FileSpec,
    GridSpec,
    LinkSpec,
    MemoryPoolSpec,
    NetworkSpec,
    NodePower,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    PowerSupply,
    ProcessorSpec,
    QueueSpec,
    ReservationSpec,
    RouteSpec,
    SharingModel,
    Signal,
    SiteOutageSpec,
    SiteSpec,
    Slowdown,
    Star,
    StorageSpec,
    Torus,
    Tree,
    Valiant,
)
from simmodel.platform.options import BrokerOptions, GridOptions, MachineOptions, NoOptions
from simmodel.policies import Portfolio, Quota
from simmodel.records import JobRecord, NetworkRecorder
from simmodel.records.broker_record import BrokerRecord, GridRecord
from simmodel.records.observers import EventRecorder, UsageMeter
from simmodel.records.steps import Steps
from simmodel.referee import explain, identify, verify
from simmodel.resources import Grant, Lost, Network, Preempted
from simmodel.resources.network.zones import FullZone, Zones
from simmodel.runs import Scenario, simulate
from simmodel.runs.scenario import Missing
from simmodel.scheduling import Objective
from simmodel.snapshots import PolicyState
from simmodel.studies import broker_study, fat_curve, setup_study
from simmodel.studies.metascheduling import Setup
from simmodel.systems import Broker, Cluster, Forecast, Grid, Machine
from simmodel.systems.kinds import kind_of_platform
from simmodel.work import (
    Amdahl,
    Checkpoint,
    Chunk,
    ChunkedWorkload,
    DataObject,
    Dependency,
    Elastic,
    Job,
    MeasuredSpeedup,
    Phase,
    Phases,
    RecordedMachine,
    Task,
    TaskSet,
    Traffic,
    Workflow,
    Workload,
)
from simmodel.work.table import Table
from simmodel.work.workload import Report

PACKAGES = ["simmodel", *(f"simmodel.{each.name}" for each in pkgutil.iter_modules(simmodel.__path__) if each.ispkg)]


@cache
def public_classes() -> dict[str, type]:
    """Return the classes that packages export, and those of the values that users get, by name."""
    return classes_of(_all_values(), PACKAGES)


def classes_of(values: Iterable[Any], packages: Iterable[str]) -> dict[str, type]:
    """Return the classes of values and of packages, by name."""
    found: dict[str, type] = {type(each).__name__: type(each) for each in values}
    for package in packages:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) and value.__module__.startswith("simmodel"):
                found[name] = value
    return found


JOBS = [Job(processors=3, run=10, user="ann"), Job(processors=4, run=100, user="<b>"), Job(processors=1, run=10)]


@cache
def public_values() -> dict[str, Any]:
    """Return one value of each public class whose values users hold, by the name of the class."""
    return values_of(_all_values(), public_classes())


def values_of(values: Sequence[Any], classes: Mapping[str, type]) -> dict[str, Any]:
    """Return one value of each class of which there is one, by the name of the class."""
    found = {name: [each for each in values if kind in type(each).__mro__] for name, kind in classes.items()}
    return {name: next((v for v in each if type(v).__name__ == name), each[0]) for name, each in found.items() if each}


@cache
def _all_values() -> list[Any]:
    groups = (_specs, _work, _results, _states, _experiments, _judged)
    return [value for group in groups for value in group()]


def _specs() -> Iterator[Any]:
    node = NodeSpec(cores=4)
    yield node
    yield PartitionSpec(name="batch", processors=4)
    yield QueueSpec(name="short", max_requested=60)
    yield ConsumableSpec(name="licences", amount=2)
    yield FailureModel(mean_time_between_failures=1e6)
    yield OutageSpec(at=0, until=10, processors=1)
    yield ReservationSpec(name="course", start=0, end=10, processors=1)
    yield ClusterSpec(partitions=[PartitionSpec(name="batch", processors=4)])
    yield MemoryPoolSpec(name="ram")
    yield ArchitectureSpec(name="x86")
    yield ProcessorSpec(name="cpu", count=2, type="CPUCore", architecture="x86", pool="ram")
    yield two_kinds().spec
    link = LinkSpec(name="wan", bandwidth=100.0)
    yield link
    yield RouteSpec(source="a", destination="b", links=["wan"])
    yield NetworkSpec(links=[link])
    torus = Torus(dimensions=(4, 4), bandwidth=100.0)
    yield torus
    yield Valiant(of=torus, seed=1)
    yield FatTree(levels=1, down=(4,), up=(2,), parallel=(1,), bandwidth=100.0)
    yield Dragonfly(groups=2, chassis=2, routers=2, nodes=2, bandwidth=100.0)
    yield Star(nodes=4, bandwidth=100.0)
    yield Tree(down=(4, 2), bandwidth=100.0)
    yield SharingModel(name="slow", latency_factor=2.0)
    yield Signal([0, 1800], [300, 200], unit="gCO2/kWh")
    yield NodePower(idle=95, load=190.7)
    yield Conversion(loss=17, efficiency=0.96, nodes=4)
    yield PowerSupply(fixed="804kW", pue=1.05)
    yield DeviceSpec(name="T4", memory="16GB")
    yield Quota({"T4": 4}, cohort="lab", lend={"T4": 3})
    yield Slowdown("a", 2.0)
    yield DelaySpec(mean=60)
    site = SiteSpec(name="a", cores=4)
    host = SimGridHost(name="a", zone="lab", speeds=(1e9,))
    yield host
    yield SimGridPlatform(name="lab", hosts=(host,), topology=Zones(["a"], {"a": FullZone("lab")}, {}))
    yield CGSimSites(sites=[site], files=(), reference=1.0, gflops={"a": 1.0})
    yield CGSimStudy(grid=GridSpec(sites=[site]), workload=None)
    yield GridSpec(
        sites=[SiteSpec(name="a", cores=4, storage=StorageSpec(capacity=100))],
        files=[FileSpec(name="f", size=1, sites=["a"])],
        outages=[SiteOutageSpec(site="a", at=1, until=2)],
    )
    yield SiteSpec(name="a", cores=4)
    yield StorageSpec(capacity=100)
    yield FileSpec(name="f", size=1, sites=["a"])
    yield SiteOutageSpec(site="a", at=1, until=2)
    yield BrokerSpec(places={"a": ClusterSpec(partitions=[PartitionSpec(processors=4)])})
    yield from (NoOptions(), ClusterOptions(overrun="continue"), MachineOptions(), BrokerOptions(), GridOptions())
    yield HetSimConfig()
    yield exponential(10.0)
    yield JobClass(3, 4, 60.0)
    yield BATCH
    yield TaskKind(description="two tasks", make=TaskSet)
    yield SSTScenario(machine=two_kinds().spec, work=(), report=Report())
    yield kind_of_platform(two_kinds().spec)
    yield FORMATS["swf"]


def _work() -> Iterator[Any]:
    yield JOBS[1]
    yield Dependency(3)
    yield Elastic(1, 4, 8, speedup=Amdahl(0.05))
    yield from (Amdahl(0.05), MeasuredSpeedup({1: 1.0, 4: 3.0}))
    yield Checkpoint(600, cost=30, restart=60)
    yield Chunk(2, gpus=1)
    yield from (Traffic("ring", bytes="1MB"), Phase(compute=5), Phases([Phase(compute=5)], repeats=2))
    yield Task(id="a", run=3)
    yield DataObject("d", 1e6)
    yield Workload({"submit": np.arange(30.0), "run": [10.0] * 30, "processors": [1] * 30}, name="<log>")
    yield ChunkedWorkload(lambda: iter(()), name="<log>", processors=4)
    yield Workflow([Task(id="a", run=3), Task(id="b", run=4)])
    yield TaskSet([3.0, 4.0], families=["x", None])
    report = Report()
    report.repaired["requested <time> missing"] += 2
    yield report
    yield RecordedMachine(name="node", cores=4, speed=1e9)
    yield Table({"a & b": np.arange(100), "wait": np.linspace(0, 1, 100)})


def _results() -> Iterator[Any]:
    result = simulate(4, JOBS, "easy")
    yield result
    yield result.plot
    with TemporaryDirectory() as folder:
        yield simulate(4, JOBS, "easy", stream=f"{folder}/jobs.db")
        yield simulate(GridSpec(sites=[SiteSpec(name="a", cores=4)]), JOBS, stream=f"{folder}/grid.db")
    machine = two_kinds()
    yield machine
    found = simulate("hetsim-slow", "random:tasks=10", "heft")
    yield found
    yield found.plot
    brokered = simulate({"a": 4, "b": 4}, {"a": JOBS}, "sgs-t")
    yield brokered
    yield brokered.plot
    jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    own = JobRecord(jobs=jobs, processors=4)
    yield own
    yield GridRecord(jobs={**jobs, "site": ["a", "a"]})
    yield BrokerRecord(jobs={**jobs, "origin": ["", ""], "destination": ["a", "a"]}, clusters={"a": own})
    yield simulate({"a": "hetsim-slow", "b": "hetsim-slow"}, [TaskSet([3.0]), TaskSet([5.0])], "round-robin")
    yield result.busy()
    yield Steps([], [], 0)
    yield Energy(1.0, 2.0)
    yield Interval(10.0, 2.0, 0.95, 5)
    yield Source("users", 20, ("it has no users",))


def _states() -> Iterator[Any]:
    env = Environment()
    cluster = Cluster(env, 4, policy="easy")
    for job in JOBS:
        cluster.submit(job)
    meter = UsageMeter(env)
    events = EventRecorder(env, cluster.places)
    env.observe(meter)
    env.observe(events)
    env.run(until=5)
    yield meter
    yield events
    yield Forecast(cluster)
    yield cluster.snapshot()
    yield what_if(cluster.snapshot(), ["easy", "fcfs"])
    outcome = what_if(cluster.snapshot(), ["easy"])["easy"]
    yield outcome
    yield outcome.samples[0]
    yield Branch("easy").start(2)
    yield PolicyState("fcfs", "fcfs")
    broker = Environment()
    yield Broker(broker, [Cluster(broker, 4, name="a")]).snapshot()
    yield Machine(Environment(), two_kinds().spec).snapshot()
    grid = Grid(Environment(), GridSpec(sites=[SiteSpec(name="a", cores=4)]))
    grid.submit(Job(run=10))
    grid.env.run()
    yield from (grid.result(), grid.result().plot, grid.snapshot())
    network = Network(Environment(), [LinkSpec(name="wan", bandwidth=100.0)])
    yield NetworkRecorder(network)
    yield Grant(4, (0, 1))
    yield Lost("pool", 3.0)
    yield Preempted("other", 3.0)
    yield Scenario.of(4, JOBS, "easy")
    yield Missing("the workload: pass workload=")
    yield Objective({"wait_max": 1})


def _experiments() -> Iterator[Any]:
    yield compare(4, JOBS, ["easy", "fcfs"])
    yield explore("hetsim-slow", "random:tasks=5", ["hrr", "heft"], seeds=2)
    yield replicate(lambda seed: {"sum": float(seed % 7)}, 3)
    sequence = replicate(lambda seed: {"sum": float(seed % 7)}, stop="sum ± 10 %", budget=40)
    assert sequence.stop is not None
    yield from (sequence.stop, sequence.stop.goals[0])
    yield compare_brokers({"a": 4, "b": 4}, {"a": JOBS}, ["siloed", "sgs-t"])
    portfolio = Portfolio(["easy", "sjf+easy"], "slowdown_mean")
    yield compare_portfolio(4, JOBS, portfolio)
    space = Space.of({"sites.<BNL>.speed": (0.5, 2, "log")})
    yield from (space, space.parameters[0])
    study = Study(document={})
    study.add([{"sites.<BNL>.speed": 1.5}])
    yield from (study, study.trials()[0])
    yield sensitivity(lambda x, y: x + y, {"x": (0, 1), "y": (0, 1)}, samples=4)
    yield calibrate(lambda x, y: x + y, None, {"x": (0, 1), "y": (0, 1)}, None, budget=4)
    yield from (RelativeError(), QuantileDistance(), StartError())
    timed = [Task(id=f"<{i}>", run=3, family="<f>", machines=["<a>" if i % 2 else "b"]) for i in range(6)]
    yield RecordedTasks(workflow=Workflow(timed, machines=[RecordedMachine(name="<a>"), RecordedMachine(name="b")]))
    report = judge_surrogates(simulate(64, lublin(60, 64, seed=1), "easy"))
    yield from (report, report.models["wait"])
    yield optimise(lambda x, y: {"<a>": x, "b": y - x}, {"x": (0, 3, "integer"), "y": [0, 1]}, ["<a>", "b"], "all")
    yield replicate_portfolio(32, lambda seed: lublin(10, 32, seed=seed), portfolio, seeds=2)
    yield fat_curve(fats=[0.2], ccrs=[1.0], seeds=2, shape={"n": 5})
    yield setup_study(["hrr", "heft"], seeds=2)
    yield broker_study(
        lublin(60, 64, seed=1),
        Setup(name="small", clusters=(64, 64), brokers=("random", "sgs-t"), paper={}),
        2,
        edges=5,
    )


def _judged() -> Iterator[Any]:
    log = Workload({"submit": [0, 1, 2], "run": [10, 5, 20], "processors": [4, 4, 1]}, name="<log>", processors=5)
    verdict = verify(log, {1: 0, 2: 10, 3: 2}, policy="fcfs")
    yield explain(5, log, "fcfs", 2)
    yield explain("hetsim-slow", "layered:n=10,fat=0.5", "heft", 3)
    yield explain({"a": 5, "b": 5}, log, "round-robin", 2)
    yield from (
        verdict,
        verdict.judgement,
        verdict.schedule,
        identify(log, {1: 0, 2: 10, 3: 2}, candidates=["fcfs", "easy"]),
    )
