"""SimPy for computing systems: one vocabulary from an accelerator to a grid."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING

from simmodel.environment import Environment, RealtimeEnvironment
from simmodel.errors import (
    ImpossibleWork,
    InputError,
    JobFailed,
    PolicyError,
    SimmodelError,
    SnapshotError,
    Stalled,
)
from simmodel.platform.cluster import (
    ClusterSpec,
    ConsumableSpec,
    FailureModel,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    QueueSpec,
    ReservationSpec,
)
from simmodel.policies.backfilling import Backfill, Easy
from simmodel.policies.ordering import Multifactor, Order
from simmodel.policies.placement import BestFit
from simmodel.policies.planning import Conservative, ConservativeKeep
from simmodel.policies.preemption import Preemptive
from simmodel.policies.window import Window
from simmodel.runs.scenario import Scenario, load_scenario
from simmodel.runs.simulating import simulate, start
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Preempt, Reserve, Start, View, WakeAt
from simmodel.scheduling.registry import policy, policy_names, register_policy
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Dependency, Job
from simmodel.work.table import Table
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from simmodel.catalogue import load_platform, load_tasks, load_workflow, load_workload
    from simmodel.experiments.broker_comparison import BrokerComparison, compare_brokers
    from simmodel.experiments.comparison import Comparison, Replications, compare, replicate
    from simmodel.experiments.exploration import Exploration, explore
    from simmodel.experiments.portfolio_comparison import PortfolioComparison, compare_portfolio, replicate_portfolio
    from simmodel.futures.branches import Branch, CancelJob, StartJob, SubmitJob
    from simmodel.futures.outcomes import Outcome
    from simmodel.futures.what_if_result import WhatIf
    from simmodel.futures.whatif import what_if
    from simmodel.platform.broker import BrokerSpec
    from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    from simmodel.platform.network import LinkSpec, NetworkSpec, RouteSpec, SharingModel
    from simmodel.policies.batch_mapping import MaxMin, MinMin, Sufferage
    from simmodel.policies.brokers import LeastLoaded, Siloed
    from simmodel.policies.mapping import (
        EarliestFinish,
        EarliestStart,
        FastestExecution,
        GreedyDS,
        RoundRobin,
        Share,
    )
    from simmodel.policies.planners import CPOP, HEFT, PEFT, HEFTSetup, LookaheadHEFT, PEFTSetup
    from simmodel.policies.portfolio import Portfolio
    from simmodel.records.network_recorder import NetworkRecorder
    from simmodel.resources.host import Host
    from simmodel.resources.network import Network
    from simmodel.resources.processor import Processor
    from simmodel.results.broker import BrokerResult
    from simmodel.results.loading import load_result
    from simmodel.results.machine import MachineResult
    from simmodel.results.result import Result, recorded_result
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.objectives import Objective, objective
    from simmodel.snapshots.broker import BrokerSnapshot
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.machine import MachineSnapshot
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.studies.metascheduling import broker_study
    from simmodel.systems.broker.system import Broker
    from simmodel.systems.cluster.forecast import Forecast
    from simmodel.systems.cluster.from_data import snapshot_of
    from simmodel.systems.machine.system import Machine
    from simmodel.work.taskset import TaskSet
    from simmodel.work.workflow import DataObject, Task, Workflow
else:
    _LATER = {
        "ArchitectureSpec": "simmodel.platform.machine",
        "compare_portfolio": "simmodel.experiments.portfolio_comparison",
        "PortfolioComparison": "simmodel.experiments.portfolio_comparison",
        "Branch": "simmodel.futures.branches",
        "Broker": "simmodel.systems.broker.system",
        "BrokerComparison": "simmodel.experiments.broker_comparison",
        "BrokerResult": "simmodel.results.broker",
        "BrokerSnapshot": "simmodel.snapshots.broker",
        "MachineSnapshot": "simmodel.snapshots.machine",
        "CancelJob": "simmodel.futures.branches",
        "compare": "simmodel.experiments.comparison",
        "compare_brokers": "simmodel.experiments.broker_comparison",
        "Comparison": "simmodel.experiments.comparison",
        "broker_study": "simmodel.studies.metascheduling",
        "CPOP": "simmodel.policies.planners",
        "DataObject": "simmodel.work.workflow",
        "EarliestFinish": "simmodel.policies.mapping",
        "EarliestStart": "simmodel.policies.mapping",
        "Exploration": "simmodel.experiments.exploration",
        "explore": "simmodel.experiments.exploration",
        "FastestExecution": "simmodel.policies.mapping",
        "Forecast": "simmodel.systems.cluster.forecast",
        "GreedyDS": "simmodel.policies.mapping",
        "HEFT": "simmodel.policies.planners",
        "HEFTSetup": "simmodel.policies.planners",
        "Host": "simmodel.resources.host",
        "LeastLoaded": "simmodel.policies.brokers",
        "LinkSpec": "simmodel.platform.network",
        "load_platform": "simmodel.catalogue",
        "load_result": "simmodel.results.loading",
        "load_workflow": "simmodel.catalogue",
        "load_workload": "simmodel.catalogue",
        "LookaheadHEFT": "simmodel.policies.planners",
        "Machine": "simmodel.systems.machine.system",
        "MachineResult": "simmodel.results.machine",
        "MachineSpec": "simmodel.platform.machine",
        "MaxMin": "simmodel.policies.batch_mapping",
        "MemoryPoolSpec": "simmodel.platform.machine",
        "MinMin": "simmodel.policies.batch_mapping",
        "Network": "simmodel.resources.network",
        "NetworkRecorder": "simmodel.records.network_recorder",
        "NetworkSpec": "simmodel.platform.network",
        "objective": "simmodel.scheduling.objectives",
        "Objective": "simmodel.scheduling.objectives",
        "Outcome": "simmodel.futures.outcomes",
        "PEFT": "simmodel.policies.planners",
        "PEFTSetup": "simmodel.policies.planners",
        "Portfolio": "simmodel.policies.portfolio",
        "Processor": "simmodel.resources.processor",
        "ProcessorSpec": "simmodel.platform.machine",
        "recorded_result": "simmodel.results.result",
        "replicate": "simmodel.experiments.comparison",
        "replicate_portfolio": "simmodel.experiments.portfolio_comparison",
        "Replications": "simmodel.experiments.comparison",
        "Result": "simmodel.results.result",
        "RoundRobin": "simmodel.policies.mapping",
        "RouteSpec": "simmodel.platform.network",
        "Share": "simmodel.policies.mapping",
        "SharingModel": "simmodel.platform.network",
        "Siloed": "simmodel.policies.brokers",
        "BrokerSpec": "simmodel.platform.broker",
        "Simulation": "simmodel.runs.simulation",
        "ClusterSnapshot": "simmodel.snapshots.cluster",
        "snapshot_of": "simmodel.systems.cluster.from_data",
        "Snapshot": "simmodel.snapshots.snapshot",
        "StartJob": "simmodel.futures.branches",
        "SubmitJob": "simmodel.futures.branches",
        "Sufferage": "simmodel.policies.batch_mapping",
        "Task": "simmodel.work.workflow",
        "load_tasks": "simmodel.catalogue",
        "TaskSet": "simmodel.work.taskset",
        "what_if": "simmodel.futures.whatif",
        "WhatIf": "simmodel.futures.what_if_result",
        "Workflow": "simmodel.work.workflow",
    }

    def __getattr__(name):  # what takes longer to import comes when it is first asked for
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found

    def __dir__():
        return sorted({*globals(), *_LATER})


__all__ = [
    "CPOP",
    "HEFT",
    "PEFT",
    "ArchitectureSpec",
    "Backfill",
    "BestFit",
    "Branch",
    "Broker",
    "BrokerComparison",
    "BrokerResult",
    "BrokerSnapshot",
    "BrokerSpec",
    "CancelJob",
    "Cluster",
    "ClusterSnapshot",
    "ClusterSpec",
    "Comparison",
    "Conservative",
    "ConservativeKeep",
    "ConsumableSpec",
    "DataObject",
    "Dependency",
    "EarliestFinish",
    "EarliestStart",
    "Easy",
    "Environment",
    "Exploration",
    "FailureModel",
    "FastestExecution",
    "Forecast",
    "GreedyDS",
    "HEFTSetup",
    "Host",
    "ImpossibleWork",
    "InputError",
    "Job",
    "JobFailed",
    "LeastLoaded",
    "LinkSpec",
    "LookaheadHEFT",
    "Machine",
    "MachineResult",
    "MachineSnapshot",
    "MachineSpec",
    "MaxMin",
    "MemoryPoolSpec",
    "MinMin",
    "Multifactor",
    "Network",
    "NetworkRecorder",
    "NetworkSpec",
    "NodeSpec",
    "Objective",
    "Observer",
    "Order",
    "OutageSpec",
    "Outcome",
    "PEFTSetup",
    "PartitionSpec",
    "Policy",
    "PolicyError",
    "Portfolio",
    "PortfolioComparison",
    "Preempt",
    "Preemptive",
    "Processor",
    "ProcessorSpec",
    "QueueSpec",
    "RealtimeEnvironment",
    "Replications",
    "Report",
    "ReservationSpec",
    "Reserve",
    "Result",
    "RoundRobin",
    "RouteSpec",
    "Scenario",
    "Share",
    "SharingModel",
    "Siloed",
    "SimmodelError",
    "Simulation",
    "Snapshot",
    "SnapshotError",
    "Stalled",
    "Start",
    "StartJob",
    "SubmitJob",
    "Sufferage",
    "Table",
    "Task",
    "TaskSet",
    "View",
    "WakeAt",
    "WhatIf",
    "Window",
    "Workflow",
    "Workload",
    "broker_study",
    "compare",
    "compare_brokers",
    "compare_portfolio",
    "explore",
    "load_platform",
    "load_result",
    "load_scenario",
    "load_tasks",
    "load_workflow",
    "load_workload",
    "objective",
    "policy",
    "policy_names",
    "recorded_result",
    "register_policy",
    "replicate",
    "replicate_portfolio",
    "simulate",
    "snapshot_of",
    "start",
    "what_if",
]
